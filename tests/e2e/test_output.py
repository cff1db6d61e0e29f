# SPDX-License-Identifier: Apache-2.0
"""stdout and stderr: complete, in order, as they come, bounded; and what is not text."""
import os
import select
import subprocess
import time

import pytest

from harness.product import SLOW, slowly


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 65535, 65536, 65537, 200_000, 1_000_000])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_O14_exact_sizes(run, size, stream):
    result = run(f"import sys\nsys.{stream}.write('x' * {size})").result
    assert result["status"] == "ok"
    assert result[stream] == "x" * size
    assert result["output"] == {**result["output"], f"{stream}_bytes": size, "truncated": False,
                                "dropped_bytes": 0}


def test_O14_both_streams_before_a_crash(run):
    result = run("import os\nos.write(1, b'o' * 65536)\nos.write(2, b'e' * 65537)\nos.kill(os.getpid(), 9)").result
    assert (len(result["stdout"]), len(result["stderr"])) == (65536, 65537)


def test_O15_crash_without_flush(run):
    """What was written is returned; what Python would still hold outside may be there as well."""
    result = run("import os, sys\nsys.stdout.write('buffered')\nos.write(1, b'written\\n')\nos._exit(1)").result
    assert result["stdout"] in ("written\n", "bufferedwritten\n")


@pytest.mark.parametrize("stream", ["stdout", "stderr", "both"])
def test_O01_endless_output(run, stream):
    """output_limit at 1 MiB of both together; what came before is kept, the excess is told."""
    target = {"stdout": "sys.stdout.write('x' * 4096)", "stderr": "sys.stderr.write('x' * 4096)",
              "both": "sys.stdout.write('x' * 4096); sys.stderr.write('y' * 4096)"}[stream]
    done = run(f"import sys\nwhile True: {target}")
    result = done.result
    assert result["status"] == "output_limit" and done.returncode == 137
    kept = len(result["stdout"]) + len(result["stderr"])
    assert (1 << 20) - 8192 <= kept <= 1 << 20, kept
    assert result["output"]["truncated"] is True
    assert done.seconds < 4 * SLOW


def test_output_limit_is_an_option(run):
    assert run("print('x' * 5000)", "--output", "1K").result["status"] == "output_limit"
    assert run("print('x' * 5000)", "--output", "8K").result["status"] == "ok"
    assert run("x = 1", "--output", "0").result["status"] == "ok"
    assert run("print(1)", "--output", "0").result["status"] == "output_limit"


def test_output_limit_exactly(run):
    assert run("print('x' * 1023)", "--output", "1K").result["status"] == "ok"
    result = run("print('x' * 1024)", "--output", "1K").result
    assert result["status"] == "output_limit" and len(result["stdout"]) == 1024


@pytest.mark.parametrize("data,text,lossy", [
    (b"\xff\xfe", "\ufffd\ufffd", True), (b"a\0b", "a\0b", False),
    ("é\u2028\u202e".encode(), "é\u2028\u202e", False), (b"\xed\xa0\x80", None, True),
    (b"ok\xc3", None, True), (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m", False),
    (b"\xf0\x9f\x8e\x89", "🎉", False), (b'"\\\r\n\t\x7f', '"\\\r\n\t\x7f', False),
    (b"\xc0\xaf", None, True), (b"\xf4\x90\x80\x80", None, True),
])
def test_O04_bytes_that_are_not_text(run, data, text, lossy):
    result = run(f"import os\nos.write(1, {data!r})").result
    assert result["status"] == "ok"
    if text is not None:
        assert result["stdout"] == text
    else:
        assert "\ufffd" in result["stdout"]
    assert result["output"].get("lossy", False) is lossy
    assert result["output"]["stdout_bytes"] == len(data)


def test_O04_character_split_by_a_pause(run):
    result = run("import os, time\nos.write(1, b'\\xf0\\x9f')\ntime.sleep(0.2)\nos.write(1, b'\\x8e\\x89')").result
    assert result["stdout"] == "🎉" and not result["output"].get("lossy", False)


def test_plain_mode_passes_bytes(plain):
    done = plain("-c", "import os\nos.write(1, b'\\xff\\0\\xfe')\nos.write(2, b'\\xfd')")
    assert done.stdout == b"\xff\0\xfe" and done.stderr == b"\xfd" and done.returncode == 0


def test_streaming(product, watch, place):
    """Lines arrive as they are printed, not at the end; without -u and without flush. The code
    prints the next one only when the last one has come and been answered."""
    process = product.start("run", "--policy", "open", "--time", slowly(5000), "--stdin", "-", "-c",
                            "import sys\nfor i in range(3):\n    print('line', i)\n"
                            "    print('e', i, file=sys.stderr)\n    assert input() == str(i)",
                            cwd=place, stdin=subprocess.PIPE)
    try:
        for number in range(3):
            for stream, line in ((process.stdout, b"line %d\n"), (process.stderr, b"e %d\n")):
                seen = b""
                while not seen.endswith(b"\n"):
                    assert select.select([stream], [], [], 5 * SLOW)[0], (number, seen)
                    block = os.read(stream.fileno(), 100)
                    assert block, (number, seen)
                    seen += block
                assert seen == line % number
            process.stdin.write(b"%d\n" % number)
            process.stdin.flush()
        out, err = process.communicate(timeout=5 * SLOW)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert (out, err, process.returncode) == (b"", b"", 0)


def test_slow_reader_gets_everything(product, watch, place):
    process = product.start("run", "--policy", "open", "-c",
                            "import sys\nfor i in range(9000): print(f'{i:099d}')", cwd=place)
    time.sleep(1.0)
    out, err = process.communicate(timeout=10 * SLOW)
    assert process.returncode == 0 and len(out) == 900_000, (process.returncode, err)
    assert out.endswith(b"8999\n")


def test_reader_that_never_reads(product, watch, place):
    """O03: backpressure does not stop the clock."""
    process = product.start("run", "--policy", "open", "--time", "1s", "--output", "100M", "-c",
                            "while True: print('x' * 1000)", cwd=place)
    time.sleep(2.5 * SLOW)
    out, err = process.communicate(timeout=5 * SLOW)
    assert process.returncode == 124, (process.returncode, err)


def test_messages_of_execpy_are_apart_from_the_codes(plain):
    """At a limit one line of ours goes to stderr; stdout stays the code's."""
    done = plain("--time", slowly(500), "-c", "print('mine', flush=True)\nwhile True: pass")
    assert done.out == "mine\n" and done.returncode == 124
    assert done.err.strip(), "nothing says why the run was ended"
    assert "\x1b[" not in done.err, "colours only on a terminal"


def test_pipe_into_a_closing_reader(product, watch, place):
    words = product.words("run", "--policy", "open", "-c", "for i in range(100000): print(i)")
    import shlex
    done = subprocess.run(["sh", "-c", shlex.join(words) + " | head -n 1"], capture_output=True,
                          env=product.environment(), cwd=place, timeout=20 * SLOW)
    assert done.stdout == b"0\n" and done.returncode == 0, done
