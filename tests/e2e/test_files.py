# SPDX-License-Identifier: Apache-2.0
"""Files in by --file, out by --out, and listed by content with their sha256."""
import hashlib
import os

import pytest

from harness.product import slowly


def sha256(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


@pytest.fixture
def source(place, product):
    def source(name, data):
        path = place / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        product.give(path)
        return path
    return source


def listed(result):
    return {f["path"]: f for f in result["files"] if "sha256" in f}


def test_file_in(run, source):
    path = source("data.csv", "a,b\n1,2\n")
    result = run("print(open('data.csv').read())", "--file", path).result
    assert result["stdout"] == "a,b\n1,2\n\n" and result["files"] == []


def test_file_in_with_a_name(run, source):
    path = source("data.csv", "x")
    result = run("import os\nprint(open('in/put.txt').read(), sorted(os.listdir()))", "--file",
                 f"{path}:in/put.txt").result
    assert result["stdout"] == "x ['in', 'main.py']\n", result
    assert result["files"] == []


def test_several_files_in(run, source):
    options = []
    for number in range(5):
        options += ["--file", f"{source(f's{number}', str(number))}:n{number}"]
    result = run("print(*(open(f'n{i}').read() for i in range(5)))", *options).result
    assert result["stdout"] == "0 1 2 3 4\n"


def test_file_in_can_be_changed_inside_only(run, source):
    path = source("data.txt", "before")
    result = run("open('data.txt', 'w').write('after')", "--file", path).result
    assert path.read_text() == "before"
    assert listed(result)["data.txt"]["sha256"] == sha256("after")


def test_empty_and_binary_files_in(run, source):
    blob = bytes(range(256)) * 1000
    result = run("import hashlib\nprint(len(open('e', 'rb').read()), hashlib.sha256(open('b', 'rb').read())"
                 ".hexdigest())", "--file", f"{source('e', b'')}:e", "--file",
                 f"{source('b', blob)}:b").result
    assert result["stdout"] == f"0 {sha256(blob)}\n"


def test_file_in_larger_than_the_disk(product, run, source, place):
    path = source("big", b"x" * (3 << 20))
    done = product.execute("run", "--json", "--policy", "open", "--disk", "1M", "--file", path, "-c",
                           "print('ran')", cwd=place)
    assert done.returncode in (2, 125, 137) and b"ran" not in done.stdout, str(done)


def test_files_out(run, place):
    result = run("import os\nopen('a.txt', 'w').write('aaa')\nos.makedirs('d/e')\n"
                 "open('d/e/b.bin', 'wb').write(bytes(range(256)))\nopen('empty', 'w')", "--out",
                 place / "out").result
    files = listed(result)
    assert {p: (f["size"], f["sha256"]) for p, f in files.items()} == {
        "a.txt": (3, sha256("aaa")), "d/e/b.bin": (256, sha256(bytes(range(256)))),
        "empty": (0, sha256(b""))}
    assert files["a.txt"]["media_type"] == "text/plain"
    assert (place / "out/a.txt").read_text() == "aaa"
    assert (place / "out/d/e/b.bin").read_bytes() == bytes(range(256))
    assert (place / "out/empty").read_bytes() == b""


def test_files_out_in_plain_mode(plain, place):
    done = plain("--out", place / "o", "-c", "open('x.txt', 'w').write('x')\nprint('done')")
    assert done.returncode == 0 and done.out == "done\n", str(done)
    assert (place / "o/x.txt").read_text() == "x" and os.listdir(place / "o") == ["x.txt"]


def test_out_overwrites_what_was_there(run, place, product):
    out = place / "out"
    out.mkdir()
    (out / "x").write_text("old and longer")
    (out / "other").write_text("stays")
    product.give(out, out / "x", out / "other")
    run("open('x', 'w').write('new')", "--out", out)
    assert (out / "x").read_text() == "new" and (out / "other").read_text() == "stays"


def test_out_after_an_error_and_a_limit(run, place):
    """What was made before the end is fetched all the same."""
    for name, end, status in (("e", "1 / 0", "error"), ("t", "while True: pass", "timeout"),
                              ("k", "import os; os.kill(os.getpid(), 9)", "crashed")):
        done = run(f"open('x', 'w').write('kept')\n{end}", "--time", slowly(700), "--out", place / name)
        assert done.result["status"] == status
        assert (place / name / "x").read_text() == "kept", str(done)


def test_change_is_told_by_content(run, source):
    """Not by mtime: touched is not changed; changed with the old mtime and size is."""
    names = {n: source(n, "12345") for n in ("untouched", "touched", "sly", "rewritten", "removed")}
    options = [word for n, p in names.items() for word in ("--file", p)]
    result = run("import os\nst = os.stat('sly')\nopen('sly', 'w').write('54321')\n"
                 "os.utime('sly', ns=(st.st_atime_ns, st.st_mtime_ns))\nos.utime('touched')\n"
                 "open('rewritten', 'w').write('12345')\nos.remove('removed')\nopen('made', 'w').write('1')",
                 *options).result
    assert set(listed(result)) == {"sly", "made"}, result["files"]
    assert listed(result)["sly"]["sha256"] == sha256("54321")


def test_main_is_listed_when_changed(run):
    assert run("print(1)").result["files"] == []
    assert set(listed(run("open('main.py', 'a').write('# more')").result)) == {"main.py"}


def test_refused_kinds(run, place):
    result = run("import os, socket\nos.symlink('/etc/passwd', 'link')\nos.mkfifo('fifo')\n"
                 "s = socket.socket(socket.AF_UNIX)\ns.bind('sock')\nopen('one', 'w').write('1')\n"
                 "os.link('one', 'two')\nopen('good', 'w').write('g')", "--out", place / "out").result
    assert set(listed(result)) == {"good"}
    refused = {f["path"]: f["refused"] for f in result["files"] if "refused" in f}
    assert set(refused) == {"link", "fifo", "sock", "one", "two"}, result["files"]
    assert len(set(refused.values())) >= 4, refused
    assert os.listdir(place / "out") == ["good"]


def test_refused_kinds_are_told_in_plain_mode(plain, place):
    done = plain("--out", place / "out", "-c", "import os\nos.symlink('/etc/passwd', 'link')")
    assert "link" in done.err and done.out == "", str(done)
    assert done.returncode == 0


def test_media_types(run):
    result = run("import json, pathlib\nfor n, t in (('a.csv', 'x'), ('a.json', '{}'), ('a.png', 'x'), "
                 "('a.html', 'x'), ('a.svg', 'x'), ('a.unknownext', 'x'), ('a.txt', 'x'), ('a.pdf', 'x')):\n"
                 "    pathlib.Path(n).write_text(t)").result
    kinds = {p: f["media_type"] for p, f in listed(result).items()}
    assert kinds == {"a.csv": "text/csv", "a.json": "application/json", "a.png": "image/png",
                     "a.html": "text/html", "a.svg": "image/svg+xml", "a.txt": "text/plain",
                     "a.pdf": "application/pdf", "a.unknownext": kinds["a.unknownext"]}
    assert kinds["a.unknownext"] in ("application/octet-stream", "text/plain")


def test_holes_are_read_as_far_as_there_is_room(run):
    files = run("for i in range(20):\n    open(f'f{i}', 'wb').truncate(30 << 20)\n"
                "open('one', 'w').write('x')").result["files"]
    read = [file for file in files if "refused" not in file]
    assert sum(file["size"] for file in read) <= 64 << 20
    assert len([file for file in read if file["size"] == 30 << 20]) == 2
    assert {file["refused"] for file in files if "refused" in file} == \
        {"is sparse: with those before it larger than the disk limit"}


def test_files_outside_the_workspace_are_not_listed(run):
    result = run("open('/tmp/t', 'w').write('x')\nopen('/dev/shm/s', 'w').write('x')\nopen('w', 'w')").result
    assert set(listed(result)) == {"w"}


def test_files_are_sorted_and_unique(run):
    result = run("for n in 'zayxb': open(n, 'w').write(n)").result
    paths = [f["path"] for f in result["files"]]
    assert paths == sorted(paths) and len(set(paths)) == 5


def test_disk_limit(run):
    assert run("open('x', 'wb').write(b'x' * 3000000)", "--disk", "1M").result["status"] == "disk_limit"
    assert run("open('x', 'wb').write(b'x' * 500000)", "--disk", "1M").result["status"] == "ok"
