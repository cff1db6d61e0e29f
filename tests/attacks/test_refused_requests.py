# SPDX-License-Identifier: Apache-2.0
"""Requests that must be refused before anything starts, or be carried in bounded memory.

R21 giants as code, argument, environment and stdin; R25 limits out of range; N12 names that lead
elsewhere; X10 links planted where files are fetched to."""
import os
import resource

import pytest

from harness.product import SLOW


def peak_of_children():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def refused(done, statuses=(2,)):
    assert done.returncode in statuses, str(done)
    assert done.stdout == b"", str(done)
    lines = done.err.strip().splitlines()
    assert 1 <= len(lines) <= 2, f"not one helpful line: {done}"
    assert "Traceback" not in done.err and len(done.err) < 2000, str(done)
    assert "\x1b" not in done.err and "\0" not in done.err, "control characters are passed on"


@pytest.mark.parametrize("option", ["--time", "--cpu", "--memory", "--processes", "--output",
                                    "--disk"])
@pytest.mark.parametrize("value", ["", "-1", "-1s", "9223372036854775808",
                                   "18446744073709551616", "99999999999999999999999", "1e9", "nan",
                                   "inf", "unlimited", "5x", "5 s s", "0x10", "١", "1;2", "+5",
                                   "NULL\x01", "18446744073709551615M"])
def test_R25_limits(product, watch, place, option, value):
    refused(product.execute("run", f"{option}={value}" if value.startswith("-") else option,
                            *([] if value.startswith("-") else [value]), "-c", "print('ran')",
                            cwd=place))


@pytest.mark.parametrize("option", ["--time", "--cpu", "--memory", "--processes", "--disk"])
def test_R25_zero(product, watch, place, option):
    """Zero is neither unlimited nor nothing: it is refused (only --output may be 0)."""
    refused(product.execute("run", option, "0", "-c", "print('ran')", cwd=place))


def test_R25_limits_are_told(product, watch, place):
    done = product.run("pass", "--policy", "open", "--time", "1.5s", "--cpu", "2s", "--memory",
                       "128M", "--processes", "7", "--output", "64K", "--disk", "1M", cwd=place)
    assert done.result["limits"] == {"time_ms": 1500, "cpu_ms": 2000, "memory_bytes": 128 << 20,
                                     "processes": 7, "output_bytes": 64 << 10,
                                     "disk_bytes": 1 << 20}


def test_R21_giant_code(product, watch, place):
    """A sparse file of 1 GiB as code: refused without reading it all."""
    path = place / "giant.py"
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    product.give(path)
    before = peak_of_children()
    done = product.execute("run", "--policy", "open", path, cwd=place)
    refused(done, (2, 125))
    assert done.seconds < 2 * SLOW
    assert peak_of_children() - before < 200 << 10, "it was read into memory"


def test_R21_endless_code(product, watch, place):
    """Code from a pipe that never ends, and from /dev/zero: bounded."""
    refused(product.execute("run", "--policy", "open", "/dev/zero", cwd=place, timeout=10), (2, 125))
    with open("/dev/zero", "rb") as zero:
        refused(product.execute("run", "--policy", "open", "-", cwd=place, stdin=zero, timeout=10),
                (2, 125))


@pytest.mark.parametrize("reads", [True, False])
def test_R21_giant_stdin(product, watch, place, reads):
    """1 GiB on stdin: streamed, or left unread; neither fills memory nor hangs."""
    path = place / "input"
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    product.give(path)
    code = "import sys\nprint(len(sys.stdin.buffer.read(1000)))" if reads else "print('unread')"
    before = peak_of_children()
    done = product.run(code, "--policy", "open", "--stdin", path, cwd=place, timeout=15)
    assert done.result["status"] == "ok", str(done)
    assert done.result["stdout"] == ("1000\n" if reads else "unread\n")
    assert done.seconds < 3 * SLOW
    assert peak_of_children() - before < 300 << 10, "it was read into memory"


def test_R21_giant_argument_and_environment(product, watch, place):
    """As large as a program's arguments may be: passed on whole, or refused in one line."""
    text = "x" * 100_000
    for options, code in ((["-c", "import sys\nprint(len(sys.argv[1]))", "--", text], None),
                          (["--env", "BIG=" + text, "-c",
                            "import os\nprint(len(os.environ['BIG']))"], None)):
        done = product.execute("run", "--policy", "open", *options, cwd=place)
        if done.returncode == 0:
            assert done.out == "100000\n", str(done)[:500]
        else:
            refused(done, (2, 125))
    many = [word for number in range(5000) for word in ("--env", f"K{number}=v")]
    done = product.execute("run", "--policy", "open", *many, "-c",
                           "import os\nprint(os.environ['K4999'])", cwd=place)
    if done.returncode == 0:
        assert done.out == "v\n"
    else:
        refused(done, (2, 125))


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "a/../..", "..", ".", "",
                                  "x/", "/x", "x" * 10_000, "a/" * 3000 + "x",
                                  "main.py/x"])
def test_N12_names_of_input_files(product, watch, place, name):
    """A name in the workspace stays in the workspace."""
    source = place / "source"
    source.write_text("data")
    product.give(source)
    done = product.execute("run", "--policy", "open", "--file", f"{source}:{name}", "-c",
                           "print('ran')", cwd=place)
    refused(done, (2, 125))


@pytest.mark.parametrize("value", ["../../etc", "/etc/passwd", "a" * 10_000, "-x", "a\nb", "",
                                   "nosuch", "bare/../bare"])
@pytest.mark.parametrize("option", ["--template", "--policy"])
def test_N12_names_of_templates_and_policies(product, watch, place, option, value):
    refused(product.execute("run", option, value, "-c", "print('ran')", cwd=place), (2, 125))


@pytest.mark.parametrize("value", ["", "=", "=x", "NOEQUALS", "A\nB"])
def test_N12_environment_names(product, watch, place, value):
    refused(product.execute("run", "--policy", "open", "--env", value, "-c", "print('ran')",
                            cwd=place), (2, 125))


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PYTHONSTARTUP",
                                  "PYTHONPATH", "PYTHONHOME", "MALLOC_ARENA_MAX", "IFS", "PATH",
                                  "HOME", "TMPDIR", "EXECPY_X"])
def test_C01_environment_cannot_weaken(product, watch, canary, place, name):
    """Variables that loaders and interpreters obey reach the code's environment at most."""
    done = product.parse(product.execute(
        "run", "--json", "--policy", "open", "--env", f"{name}={canary.directory}", "-c",
        "print(1)", cwd=place))
    assert done.result["status"] == "ok" and done.result["stdout"] == "1\n", str(done)


def test_C01_environment_of_execpy_itself(product, watch, canary, place):
    """Variables around execpy that loaders and Python obey do not change what the code sees."""
    (place / "planted.py").write_text("raise SystemExit('planted')\n")
    (place / "sitecustomize.py").write_text("raise SystemExit('planted')\n")
    done = product.parse(product.execute(
        "run", "--json", "--policy", "open", "-c",
        "import os, sys\nprint(sorted(k for k in os.environ if k.startswith(('PYTHON', 'LD_'))))\n"
        f"print(any('{place.name}' in p for p in sys.path))",
        cwd=place, env={"PYTHONPATH": str(place), "PYTHONHOME": str(place), "PYTHONSTARTUP":
                        str(place / "planted.py"), "PYTHONINSPECT": "1", "PYTHONMALLOC": "debug",
                        "PYTHONDEVMODE": "1"}))
    assert done.result["status"] == "ok", str(done)
    assert done.result["stdout"].splitlines()[1] == "False", str(done)
    assert "PYTHONPATH" not in done.result["stdout"] and "PYTHONHOME" not in done.result["stdout"]


def test_X10_links_where_files_are_fetched_to(product, watch, canary, place):
    """A link planted in the directory of --out is not written through."""
    out = place / "out"
    out.mkdir()
    (out / "result.txt").symlink_to(canary.path)
    (out / "sub").symlink_to(canary.directory / "tree")
    product.give(out, out / "result.txt", out / "sub")
    done = product.execute(
        "run", "--policy", "open", "--out", out, "-c",
        "import os\nopen('result.txt', 'w').write('overwritten')\nos.mkdir('sub')\n"
        "open('sub/inner.txt', 'w').write('overwritten')", cwd=place)
    watch.check()
    assert canary.path.read_text() == "this file never changes\n"
    if done.returncode == 0:
        assert not (out / "result.txt").is_symlink()
        assert (out / "result.txt").read_text() == "overwritten"
    else:
        assert done.returncode == 125 and done.err.strip(), str(done)


def test_X10_out_directory_is_a_link(product, watch, canary, place):
    """--out that names a link to a directory writes there only what the user asked for."""
    real = place / "real"
    real.mkdir()
    (place / "link").symlink_to(real)
    product.give(real)
    done = product.execute("run", "--policy", "open", "--out", place / "link", "-c",
                           "open('x', 'w').write('x')", cwd=place)
    if done.returncode == 0:
        assert (real / "x").read_text() == "x"
    assert sorted(os.listdir(place)) == ["link", "real"]


def test_X01_input_file_is_a_directory_or_missing(product, watch, place):
    for path in (place, place / "missing", "/dev/zero", "/proc/self/mem"):
        refused(product.execute("run", "--policy", "open", "--file", f"{path}:x", "-c",
                                "print('ran')", cwd=place, timeout=10), (2, 125))


def test_X04_input_file_is_a_fifo(product, watch, place):
    os.mkfifo(place / "fifo")
    product.give(place / "fifo")
    refused(product.execute("run", "--policy", "open", "--file", f"{place}/fifo:x", "-c",
                            "print('ran')", cwd=place, timeout=10), (2, 125))


def test_X15_memory_of_execpy_is_flat(product, watch, place):
    """A run that prints 1 GB and fills its disk does not make execpy or its warden grow."""
    before = peak_of_children()
    done = product.run("import sys\nf = open('big', 'wb')\nfor _ in range(20): f.write(b'x' * (1 << 20))\n"
                       "while True: sys.stdout.write('x' * 1000000)", "--policy", "open", cwd=place)
    assert done.result["status"] == "output_limit", str(done)[:500]
    assert peak_of_children() - before < 200 << 10
