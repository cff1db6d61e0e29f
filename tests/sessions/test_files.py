# SPDX-License-Identifier: Apache-2.0
"""Files of a session: what a run changed, and what the client does with them."""
import io
import tarfile

import pytest

from conftest import Refused


def changes(result):
    return {f["path"]: f.get("change", f.get("refused")) for f in result["files"]}


@pytest.fixture
def local(place, product):
    """local(name, content) -> a file of the client's."""
    def local(name, content=b""):
        (place / name).write_bytes(content)
        product.give(place / name)
        return place / name
    return local


def test_created_changed_deleted(session):
    session.ok("for n in 'abc': open(n, 'w').write(n)")
    result = session.ok("open('a', 'w').write('other')\nopen('b', 'w').write('b')\n"
                        "import os\nos.remove('c')\nopen('d', 'w').write('d')")
    assert changes(result) == {"a": "changed", "d": "created"}  # b was written, and is the same
    assert result["session"]["deleted"] == ["c"]
    result = session.ok("1")
    assert changes(result) == {} and result["session"]["deleted"] == []


def test_a_changed_time_is_no_change(session):
    session.ok("open('a', 'w').write('a')")
    assert changes(session.ok("import os\nos.utime('a', (1, 1))\nos.chmod('a', 0o600)")) == {}
    assert changes(session.ok("open('a', 'w').write('b')\nos.utime('a', (1, 1))")) == \
        {"a": "changed"}


def test_links_are_told_once(session):
    result = session.ok("import os\nos.symlink('/etc/passwd', 'link')")
    assert changes(result) == {"link": "is a symbolic link"}
    assert changes(session.ok("1")) == {}


def test_put_get_list_delete_rename(session, local):
    session.call("put", name="in/put.txt", path=local("one", b"hello\n" * 1000))
    result = session.ok("len(open('in/put.txt').read())")
    assert result["value"]["text/plain"] == "6000" and changes(result) == {}
    session.call("put", name="in/put.txt", path=local("two", b"short"))
    assert session.value("open('in/put.txt').read()") == "'short'"
    session.ok("import os\nos.symlink('x', 'l')\nos.mkfifo('f')")
    assert sorted((f["path"], f["size"], f["directory"], f["link"], f["other"])
                  for f in session.call("files")) == \
        [("f", 0, False, False, True), ("in", 0, True, False, False),
         ("in/put.txt", 5, False, False, False), ("l", 0, False, True, False)]
    got = local("got")
    session.call("get", name="in/put.txt", path=got)
    assert got.read_bytes() == b"short"
    session.call("delete", name="l")
    session.call("delete", name="f")
    with pytest.raises(Refused, match="not empty"):
        session.call("delete", name="in")
    session.call("delete", name="in/put.txt")
    session.call("delete", name="in")
    assert session.call("files") == []


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "", "a//b", "."])
def test_names_that_leave_the_workspace(session, local, name):
    for call in ("put", "get", "delete"):
        with pytest.raises(Refused, match="must be relative|must stay in the workspace"):
            session.call(call, name=name, path=local("x", b"x"))


def test_links_are_never_followed(session, local):
    session.ok("import os\nos.symlink('/etc/passwd', 'p')\nos.symlink('/etc', 'd')\n"
               "os.symlink('/tmp', 't')\nopen('/tmp/mine', 'w').write('mine')")
    for name in ("p", "d/passwd", "t/mine"):
        got = local("got", b"")
        with pytest.raises(Refused):
            session.call("get", name=name, path=got)
        assert got.read_bytes() == b""
    with pytest.raises(Refused):
        session.call("put", name="t/new", path=local("x", b"x"))
    with pytest.raises(Refused):
        session.call("delete", name="t/mine")
    session.call("put", name="p", path=local("x", b"x"))  # in the link's place
    assert session.value("os.path.islink('p'), open('p').read(), os.listdir('/tmp')") == \
        "(False, 'x', ['mine'])"


def test_rename(session):
    session.ok("import os\nopen('a', 'w').write('a')\nos.mkdir('d')\nopen('b', 'w').close()")
    session.tool.call("rename", id=session.id, name="a", to="d/c")
    with pytest.raises(Refused, match="File exists"):
        session.tool.call("rename", id=session.id, name="b", to="d/c")
    result = session.ok("os.listdir('d')")
    assert result["value"]["text/plain"] == "['c']" and changes(result) == {}


def test_a_full_disk(tool, local):
    session = tool.open(disk_bytes=1 << 20)
    with pytest.raises(Refused, match="No space left"):
        session.call("put", name="big", path=local("big", b"x" * (2 << 20)))
    assert session.call("files") == []  # no half of it
    session.call("put", name="small", path=local("small", b"x"))
    assert session.value("open('small').read()") == "'x'"


def test_tar_there_and_back(session, tool, local):
    session.ok("import os\nos.makedirs('d/e')\nopen('d/e/f', 'wb').write(bytes(5000))\n"
               "open('ü ' + 'n' * 120, 'w').write('long')\nopen('run', 'w').close()\n"
               "os.chmod('run', 0o755)\nos.symlink('x', 'link')")
    archive = local("w.tar")
    session.call("tar_out", path=archive)
    with tarfile.open(archive) as tar:
        assert sorted(tar.getnames()) == sorted(["d/e/f", "ü " + "n" * 120, "run"])
    other = tool.open()
    other.call("tar_in", path=archive)
    result = other.ok("import os\nsorted((n, oct(os.stat(n).st_mode)) for n in "
                      "('d/e/f', 'ü ' + 'n' * 120, 'run')), open('d/e/f', 'rb').read() == bytes(5000)")
    assert result["value"]["text/plain"].endswith("True)") and "0o100755" in \
        result["value"]["text/plain"]
    assert changes(result) == {}


def entry(name, kind=tarfile.REGTYPE, content=b"", link=""):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(content), link
    return info, content


# An archive's entries, and what is said of the one that is refused.
BAD_ARCHIVES = {
    "above": ([entry("../x")], "must stay in the workspace"),
    "absolute": ([entry("/x")], "must be relative"),
    "symlink": ([entry("l", tarfile.SYMTYPE, link="/etc")], "is a link"),
    "hard link": ([entry("a"), entry("l", tarfile.LNKTYPE, link="a")], "is a link"),
    "fifo": ([entry("f", tarfile.FIFOTYPE)], "is no regular file"),
    "device": ([entry("n", tarfile.CHRTYPE)], "is no regular file"),
    "through": ([entry("a/../../x")], "must stay in the workspace"),
}


@pytest.mark.parametrize("name", BAD_ARCHIVES)
def test_odd_archives(session, local, name):
    entries, said = BAD_ARCHIVES[name]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, content in [entry("good", content=b"good"), *entries]:
            tar.addfile(info, io.BytesIO(content))
    with pytest.raises(Refused, match=said):
        session.call("tar_in", path=local("bad.tar", buffer.getvalue()))
    assert session.value("open('good').read()") == "'good'"


def test_an_archive_through_a_link(session, local):
    session.ok("import os\nos.symlink('/tmp', 'd')")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(*[(i, io.BytesIO(c)) for i, c in [entry("d/x", content=b"x")]][0])
    with pytest.raises(Refused):
        session.call("tar_in", path=local("bad.tar", buffer.getvalue()))
    assert session.value("os.listdir('/tmp')") == "[]"


@pytest.mark.parametrize("content", [b"", b"no archive at all" * 100, b"PK\x03\x04" + bytes(600)])
def test_no_archive(session, local, content):
    try:
        session.call("tar_in", path=local("bad", content))
    except Refused as refused:
        assert "archive" in refused.text
    assert session.call("files") == []


def test_a_file_that_comes_with_the_run(session, local):
    result = session.ok("open('in').read()", put="in", put_from=local("x", b"one"))
    assert result["value"]["text/plain"] == "'one'" and changes(result) == {}
    result = session.ok("open('in').read()", put="in", put_from=local("x", b"two"))
    assert result["value"]["text/plain"] == "'two'" and changes(result) == {}
