# SPDX-License-Identifier: Apache-2.0
"""print() writes a line at once, is otherwise CPython's own, and what it printed is there whatever
comes after it."""
import subprocess

import pytest

PYTHON = "/usr/bin/python3"

ENDS = {
    "exit": "import os\n{}\nos._exit(0)",
    "kill": "import os\n{}\nos.kill(os.getpid(), 9)",
    "segfault": "import ctypes\n{}\nctypes.string_at(0)",
    "abort": "import os\n{}\nos.abort()",
    "memory": "{}\nheld = []\nwhile True: held.append(b'x' * (1 << 20))",
    "time": "{}\nwhile True: pass",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("line,text", [
    ("print('whole', 'line', 1)", "whole line 1\n"), ("print('part', end='')", "part"),
    ("print('a', [1], end=' '); print(2, 'é', end='')", "a [1] 2 é"),
    ("for i in range(3000): print(i)", "".join(f"{i}\n" for i in range(3000))),
])
def test_printed_before_the_end(run, end, line, text):
    result = run(ENDS[end].format(line), "--time", "1s").result
    assert result["stdout"] == text


# Each prints the same here and in CPython with -u.
SAME = {
    "pieces": "print(1, 2.5, None, True, 'x', b'y', [1, 'z'], {'k': 1})",
    "nothing": "print(); print(end=''); print('', end=''); print(sep='-')",
    "sep and end": "print('a', 'b', sep='--', end='!\\n'); print('a', 'b', sep=None, end=None, file=None)",
    "many": "print(*range(100)); print(*'abc' * 50, sep='\\n')",
    "long": "print('x' * 100000, 'y' * 70000, 'é' * 40000)",
    "not ASCII": "print('é', 'ï', '漢', '🎉', sep='·')",
    "named otherwise": "print('a', **{'e' + 'nd': '?'}); print('b', **{''.join(['s', 'ep']): '?'})",
    "subclass of str": "class S(str): pass\nprint(S('a'), S('b'), sep=S('-'), end=S('.\\n'))",
    "subclass of int": "class I(int):\n    def __str__(self): return 'I'\nprint(I(5), 6)",
    "str that prints": "class P:\n    def __str__(self):\n        print('inner', end=' ')\n        return 'outer'\n"
                       "print('before', P(), 'after')",
    "str that raises": "class R:\n    def __str__(self): raise KeyError('no')\ntry: print('before', R(), 'after')\n"
                       "except KeyError as e: print(repr(e))",
    "too large an int": "try: print('before', 10 ** 5000)\nexcept ValueError as e: print(e)",
    "str that replaces stdout": "import sys, io\nclass P:\n    def __str__(self):\n        sys.stdout = io.StringIO()\n"
                                "        return 'x'\nprint('before', P(), 'after')\nprint('lost')",
    "lone surrogate": "import sys\nsys.stdout.reconfigure(errors='strict')\ntry: print('before', '\\udc80', 'after')\nexcept UnicodeEncodeError as e: print(e)",
    "other encoding": "import sys\nsys.stdout.reconfigure(encoding='latin-1')\ntry: print('a', '漢')\n"
                      "except UnicodeEncodeError as e: print(e)",
    "other errors": "import sys\nsys.stdout.reconfigure(errors='replace')\nprint('a', '\\udc80', 'b')",
    "other newline": "import sys\nsys.stdout.reconfigure(newline='\\r\\n')\nprint('a', 'b')\nprint('c')",
    "to a list": "class File:\n    def __init__(self): self.got = []\n    def write(self, text): self.got.append(text)\n"
                 "f = File()\nprint('a', 1, file=f, flush=False)\nprint(f.got)",
    "to text in memory": "import io\nf = io.StringIO()\nprint('a', 1, file=f)\nprint(repr(f.getvalue()))",
    "to a file": "with open('/tmp/f', 'w+') as f:\n    print('a', 'é', 1, file=f, flush=True)\n    f.seek(0)\n"
                 "    print(f.read())",
    "to a closed file": "import io\nf = io.TextIOWrapper(io.BytesIO())\nf.close()\ntry: print('a', file=f)\n"
                        "except ValueError as e: print(e)",
    "to nothing": "import sys\nkept, sys.stdout = sys.stdout, None\nprint('a')\nsys.stdout = kept\nprint('b')",
    "redirected": "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f: print('a', 'b')\n"
                  "print(repr(f.getvalue()))",
    "wrong": "for k in ({'sep': 1}, {'end': b''}, {'x': 1}, {'file': 3}):\n    try: print('a', **k)\n"
             "    except Exception as e: print(type(e).__name__, e)",
    "what it is": "import inspect, pickle\nprint(print, print.__name__, print.__qualname__, print.__module__)\n"
                  "print(inspect.signature(print), print.__doc__, type(print), print.__self__)\n"
                  "print(pickle.loads(pickle.dumps(print)) is print)",
    "replaced": "import builtins\nreal = builtins.print\nbuiltins.print = lambda *a: real('mine', *a)\nprint('a')",
    "write set on the stream": "import sys\nreal = sys.stdout.write\nsys.stdout.write = lambda t: real(t.upper())\nprint('a', 'b')",
}


@pytest.mark.parametrize("name", SAME)
def test_as_in_cpython(run, name):
    result = run(SAME[name]).result
    outside = subprocess.run([PYTHON, "-I", "-u", "-X", "utf8", "-c", SAME[name]], stdout=subprocess.PIPE, check=True)
    assert result["status"] == "ok", result
    assert result["stdout"] == outside.stdout.decode("utf-8", "replace")


def test_one_write_for_a_print(run):
    """A pipe of packets keeps each write apart."""
    code = ("import os, sys\nread, write = os.pipe2(os.O_DIRECT)\nkept = os.dup(1)\nos.dup2(write, 1)\n"
            "print('a', 1, 2.5, sep=', ')\nprint('b', end='')\nprint('é', None)\nprint('c', [1, 2])\nprint()\n"
            "os.dup2(kept, 1)\nos.close(write)\npackets = []\n"
            "while packet := os.read(read, 100): packets.append(packet.decode())\nprint(packets)")
    assert run(code).result["stdout"] == "['a, 1, 2.5\\n', 'b', 'é None\\n', 'c ', '[1, 2]\\n', '\\n']\n"


def test_order_of_everything_that_writes(run):
    """stderr goes where stdout goes: one stream tells the order."""
    code = ("import os, subprocess, sys\nos.dup2(1, 2)\nfor i in range(50):\n"
            "    print('out', i)\n    print('err', i, file=sys.stderr)\n    os.write(1, b'raw %d\\n' % i)\n"
            "    sys.stdout.write(f'write {i} ')\n    sys.stdout.buffer.write(b'bytes ')\n    print('end', end='.\\n')\n"
            "    if i % 10 == 0:\n        subprocess.run(['echo', 'child', str(i)])\n")
    text = "".join(f"out {i}\nerr {i}\nraw {i}\nwrite {i} bytes end.\n" + (f"child {i}\n" if i % 10 == 0 else "")
                   for i in range(50))
    assert run(code).result["stdout"] == text


def test_threads_print_whole_lines(run):
    code = ("import threading\ndef work(n):\n    for i in range(500): print('thread', n, 'line', i)\n"
            "threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n"
            "for t in threads: t.start()\nfor t in threads: t.join()")
    lines = run(code).result["stdout"].splitlines()
    assert sorted(lines) == sorted(f"thread {n} line {i}" for n in range(8) for i in range(500))


def test_children_print(run):
    code = ("import os\nprint('before')\nfor n in range(3):\n    if os.fork() == 0:\n        print('child', n)\n"
            "        os._exit(0)\n    os.wait()\nprint('after')")
    assert run(code).result["stdout"] == "before\nchild 0\nchild 1\nchild 2\nafter\n"
