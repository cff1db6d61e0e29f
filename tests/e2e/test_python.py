# SPDX-License-Identifier: Apache-2.0
"""Python as one knows it: what works outside works inside, and the environment is what scripts expect."""
import json

import pytest

# Each prints `right` when all is well; M03 of the attack list, the positive set.
WORKS = {
    "threads": "import threading\nr = []\nts = [threading.Thread(target=r.append, args=(i,)) for i in "
               "range(8)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nassert sorted(r) == list(range(8))",
    "thread_pool": "from concurrent.futures import ThreadPoolExecutor\n"
                   "with ThreadPoolExecutor(4) as p: assert list(p.map(abs, [-1, -2])) == [1, 2]",
    "daemon_thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "waits_for_threads": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.3), "
                         "print('late'))).start()",
    "subprocess": "import subprocess\nassert subprocess.run(['echo', 'x'], capture_output=True, "
                  "text=True).stdout == 'x\\n'",
    "shell": "import subprocess, os\nassert subprocess.check_output('echo a | tr a b', shell=True) == b'b\\n'\n"
             "assert os.system('exit 3') >> 8 == 3\nassert os.popen('echo p').read() == 'p\\n'",
    "python_child": "import subprocess, sys\nassert subprocess.check_output([sys.executable, '-c', "
                    "'print(6 * 7)']) == b'42\\n'",
    "fork": "import os\np = os.fork()\nif p == 0: os._exit(5)\nassert os.waitpid(p, 0)[1] >> 8 == 5",
    "process_fork": "import multiprocessing as mp\nmp.set_start_method('fork')\ndef f(x): return x * x\n"
                    "with mp.Pool(2) as p: assert p.map(f, [1, 2, 3]) == [1, 4, 9]",
    "process_spawn": "import multiprocessing as mp\ndef f(q): q.put('spawned')\n"
                     "if __name__ == '__main__':\n    c = mp.get_context('spawn')\n    q = c.Queue()\n"
                     "    p = c.Process(target=f, args=(q,))\n    p.start()\n"
                     "    assert q.get() == 'spawned'\n    p.join()\n    assert p.exitcode == 0",
    "shared_memory": "from multiprocessing import shared_memory\ns = shared_memory.SharedMemory(create=True, "
                     "size=100)\ns.buf[0] = 7\nassert s.buf[0] == 7\ns.close()\ns.unlink()",
    "semaphores": "import multiprocessing as mp\nlock = mp.Lock()\nwith lock: pass\nv = mp.Value('i', 1)\n"
                  "v.value += 1\nassert v.value == 2",
    "process_pool": "from concurrent.futures import ProcessPoolExecutor\nwith ProcessPoolExecutor(2) as p: "
                    "assert list(p.map(abs, [-1, -2])) == [1, 2]",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 1\n"
               "assert asyncio.run(f()) == 1",
    "asyncio_process": "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('echo', "
                       "'x', stdout=-1)\n    return (await p.communicate())[0]\nassert asyncio.run(f()) == b'x\\n'",
    "socketpair": "import socket\na, b = socket.socketpair()\na.send(b'x')\nassert b.recv(1) == b'x'",
    "sqlite": "import sqlite3\nc = sqlite3.connect('d.db')\nc.execute('create table t (x)')\n"
              "c.execute('insert into t values (1)')\nc.commit()\n"
              "assert sqlite3.connect('d.db').execute('select x from t').fetchall() == [(1,)]",
    "tempfile": "import tempfile, os\nwith tempfile.NamedTemporaryFile() as f:\n    f.write(b'x')\n"
                "    assert f.name.startswith('/tmp/')\nassert os.path.isdir(tempfile.mkdtemp())",
    "ssl": "import ssl\nc = ssl.create_default_context()\nassert len(c.get_ca_certs()) > 10\nssl.RAND_bytes(8)",
    "ctypes": "import ctypes\nassert ctypes.CDLL(None).abs(-3) == 3\n"
              "@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)\ndef f(x): return x + 1\nassert f(1) == 2",
    "mmap": "import mmap\nm = mmap.mmap(-1, 4096)\nm[0] = 1\nopen('m', 'wb').write(b'abc')\n"
            "with open('m', 'r+b') as f: assert mmap.mmap(f.fileno(), 0)[:] == b'abc'",
    "signals": "import signal, os\ngot = []\nsignal.signal(signal.SIGUSR1, lambda *a: got.append(1))\n"
               "os.kill(os.getpid(), signal.SIGUSR1)\nassert got == [1]",
    "alarm": "import signal, time\ngot = []\nsignal.signal(signal.SIGALRM, lambda *a: got.append(1))\n"
             "signal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(0.2)\nassert got == [1]",
    "select": "import select, os, selectors\nr, w = os.pipe()\nos.write(w, b'x')\n"
              "assert select.select([r], [], [], 1)[0] == [r]\ne = select.epoll()\ne.register(r)\n"
              "assert e.poll(1)\nselectors.DefaultSelector()",
    "numpy": "import numpy as np\na = np.arange(10000.).reshape(100, 100)\nassert (a @ a).shape == (100, 100)\n"
             "assert np.linalg.inv(np.eye(50)).trace() == 50\nnp.random.default_rng().random()",
    "pandas": "import pandas as pd\ndf = pd.DataFrame({'a': [1, 1, 2], 'b': [1, 2, 3]})\n"
              "assert df.groupby('a').b.sum().tolist() == [3, 3]\ndf.to_csv('x.csv')\npd.read_csv('x.csv')",
    "matplotlib": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('x.png')\nplt.savefig('x.svg')\n"
                  "plt.close()",
    "zoneinfo": "import zoneinfo, datetime\nz = zoneinfo.ZoneInfo('Europe/Berlin')\n"
                "assert datetime.datetime(2024, 7, 1, tzinfo=z).utcoffset().seconds == 7200\n"
                "assert len(zoneinfo.available_timezones()) > 300",
    "locale": "import locale\nlocale.setlocale(locale.LC_ALL, '')\n"
              "assert locale.getpreferredencoding().upper() == 'UTF-8'",
    "users": "import pwd, os, getpass\nme = pwd.getpwuid(os.getuid())\nassert me.pw_dir == '/workspace'\n"
             "assert len(pwd.getpwall()) == 1, pwd.getpwall()\nassert getpass.getuser() == me.pw_name\n"
             "assert os.path.expanduser('~') == '/workspace'",
    "groups": "import grp, os\nassert grp.getgrgid(os.getgid()).gr_name",
    "hostname": "import socket\nassert socket.gethostname()\nassert socket.gethostbyname('localhost') == '127.0.0.1'",
    "mimetypes": "import mimetypes\nassert mimetypes.guess_type('x.csv')[0] == 'text/csv'",
    "uuid": "import uuid, secrets, random\nuuid.uuid1(); uuid.uuid4(); secrets.token_hex(); random.random()",
    "import_own": "open('mine.py', 'w').write('x = 5')\nimport mine\nassert mine.x == 5",
    "import_package": "import os\nos.mkdir('p')\nopen('p/__init__.py', 'w').write('y = 6')\nfrom p import y\n"
                      "assert y == 6",
    "no_bytecode": "import sys, os\nopen('mine.py', 'w').write('x = 5')\nimport mine\n"
                   "assert not os.path.exists('__pycache__')",
    "main_is_a_file": "import inspect, sys\ndef f(): return 1\nassert 'return 1' in inspect.getsource(f)\n"
                      "assert open('main.py').read().startswith('import inspect')",
    "pickle_main": "import pickle\nclass A: pass\nassert isinstance(pickle.loads(pickle.dumps(A())), A)",
    "dataclass": "import dataclasses, typing, enum\n@dataclasses.dataclass\nclass A:\n    x: int = 1\nassert A().x == 1",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertTrue(True)\n"
                "assert unittest.main(exit=False, argv=['x']).result.wasSuccessful()",
    "doctest": "'''\n>>> 1 + 1\n2\n'''\nimport doctest\nassert doctest.testmod().failed == 0",
    "logging": "import logging, sys\nlogging.basicConfig(stream=sys.stdout)\nlogging.warning('w')",
    "decimal": "import decimal, fractions, statistics\nassert decimal.Decimal('0.1') * 3 == decimal.Decimal('0.3')",
    "gzip": "import gzip, bz2, lzma, zipfile, tarfile\nassert gzip.decompress(gzip.compress(b'x')) == b'x'\n"
            "lzma.compress(b'x'); bz2.compress(b'x')",
    "gc": "import gc, weakref\nclass A: pass\na = A()\na.a = a\nw = weakref.ref(a)\ndel a\ngc.collect()\n"
          "assert w() is None",
    "tracemalloc": "import tracemalloc\ntracemalloc.start()\nx = [0] * 1000\nassert tracemalloc.get_traced_memory()[0]",
    "settrace": "import sys\nn = []\nsys.settrace(lambda *a: n.append(1))\ndef f(): pass\nf()\nsys.settrace(None)\nassert n",
    "faulthandler": "import faulthandler\nfaulthandler.enable()",
    "resource": "import resource\nresource.getrusage(resource.RUSAGE_SELF)\n"
                "resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))",
    "pty": "import os\ntry:\n    os.openpty()\nexcept OSError:\n    pass",
    "http_server_class": "import http.server, urllib.request, email, xml.etree.ElementTree as E\nE.fromstring('<a/>')",
    "dev_null": "open('/dev/null', 'w').write('x')\nassert open('/dev/null').read() == ''\n"
                "assert len(open('/dev/urandom', 'rb').read(8)) == 8\nassert open('/dev/zero', 'rb').read(2) == b'\\0\\0'",
    "cpu_count": "import os\nassert os.cpu_count() >= 1\nassert os.sched_getaffinity(0)\nos.getloadavg if True else 0",
    "clock": "import time\na = time.monotonic()\ntime.sleep(0.01)\nassert time.monotonic() > a\nassert time.time() > 1.6e9",
    "copy_files": "import shutil, os\nopen('a', 'w').write('x')\nshutil.copy2('a', 'b')\nshutil.move('b', 'c')\n"
                  "os.replace('c', 'd')\nos.chmod('d', 0o600)\nos.utime('d')\nos.symlink('d', 'l')\nshutil.rmtree('x', True)",
    "recursion": "import sys\nsys.setrecursionlimit(5000)\ndef f(n): return n and f(n - 1)\nassert f(4000) == 0",
    "big_int": "assert len(str(2 ** 10000)) == 3011",
    "input_none": "try:\n    input()\nexcept EOFError:\n    pass",
}


@pytest.mark.parametrize("name", WORKS)
def test_works(run, name):
    result = run(WORKS[name] + "\nprint('right')").result
    assert result["status"] == "ok" and "right\n" in result["stdout"], result
    if name == "waits_for_threads":
        assert result["stdout"] == "right\nlate\n"
    if name == "no_bytecode":
        assert [f["path"] for f in result["files"]] == ["mine.py"]


FACTS = """
import os, sys, json, locale
print(json.dumps({
    "cwd": os.getcwd(), "home": os.environ.get("HOME"), "tmp": os.environ.get("TMPDIR"),
    "path": os.environ.get("PATH"), "stdout": sys.stdout.encoding, "stderr": sys.stderr.encoding,
    "stdin": sys.stdin.encoding, "fs": sys.getfilesystemencoding(), "argv": sys.argv,
    "bytecode": sys.dont_write_bytecode, "path0": sys.path[0], "flags": sys.flags.isolated,
    "uid": os.getuid(), "pid": os.getpid(), "user": os.environ.get("USER"),
    "names": sorted(os.environ), "listing": sorted(os.listdir()), "executable": sys.executable,
    "tmp_listing": [n for n in os.listdir("/tmp") if n[0] != "."], "modules": sorted(m for m in sys.modules if "execpy" in m),
    "line_buffered": sys.stdout.line_buffering, "version": sys.version_info[:2],
}))
"""


@pytest.fixture(scope="module")
def facts(product):
    return json.loads(product.run(FACTS, "--policy", "open").result["stdout"])


def test_environment(facts):
    assert facts["cwd"] == facts["home"] == "/workspace"
    assert facts["tmp"] == "/tmp" and facts["tmp_listing"] == []
    assert {facts["stdout"].lower(), facts["stdin"].lower(), facts["fs"].lower()} == {"utf-8"}
    assert facts["argv"] == ["main.py"] or facts["argv"] == ["/workspace/main.py"]
    assert facts["bytecode"] is True
    assert facts["path0"] in ("/workspace", "")
    assert facts["uid"] != 0 and facts["pid"] > 1
    assert facts["listing"] == ["main.py"]
    assert facts["modules"] == []
    assert not [n for n in facts["names"] if n.startswith(("EXECPY", "LD_", "SSH", "XDG_RUNTIME"))]
    assert "/usr/bin" in facts["path"]


def test_code_is_exactly_the_bytes(run, place, product):
    """File name main.py; the bytes are those that were sent, CRLF and all."""
    data = b"# -*- coding: latin-1 -*-\r\nimport hashlib\r\nprint(hashlib.sha256(open('main.py', 'rb')" \
           b".read()).hexdigest(), '\xe4')"
    path = place / "anything.py"
    path.write_bytes(data)
    product.give(path)
    import hashlib
    result = run(path).result
    assert result["stdout"] == hashlib.sha256(data).hexdigest() + " ä\n", result
    assert result["files"] == []


def test_randomness_differs_between_runs(run):
    """Z01: nothing is the same twice."""
    code = ("import random, uuid, secrets, tempfile, os\nimport numpy as np\n"
            "print(random.random())\nprint(uuid.uuid4())\nprint(secrets.token_hex(8))\n"
            "print(tempfile.mktemp())\nprint(np.random.random())\nprint(os.urandom(8).hex())\n"
            "import ssl\nprint(ssl.RAND_bytes(8).hex())\nprint(uuid.uuid1().node and uuid.uuid1())")
    first, second = (run(code).result["stdout"].splitlines() for _ in range(2))
    assert len(first) == 8 and not set(first) & set(second), (first, second)


# -- the end of a run: nothing is lost ----------------------------------------------------------

def test_atexit(run):
    result = run("import atexit\natexit.register(print, 'one')\n@atexit.register\ndef f(): print('two')\n"
                 "print('main')").result
    assert result["stdout"] == "main\ntwo\none\n"


def test_atexit_after_an_exception_and_exit(run):
    for end, code in (("1 / 0", 1), ("import sys\nsys.exit(4)", 4)):
        result = run(f"import atexit\natexit.register(print, 'cleaned')\n{end}").result
        assert result["stdout"] == "cleaned\n" and result["exit_code"] == code


def test_os_exit_skips_atexit(run):
    result = run("import atexit, os\natexit.register(print, 'no')\nos._exit(0)").result
    assert result["stdout"] == "" and result["status"] == "ok"


def test_unflushed_files_are_written(run):
    result = run("f = open('out.txt', 'w')\nf.write('kept')\ng = open('two.bin', 'wb', buffering=100000)\n"
                 "g.write(b'x' * 5000)\nprint('no newline', end='')").result
    assert {f["path"]: f["size"] for f in result["files"]} == {"out.txt": 4, "two.bin": 5000}
    assert result["stdout"] == "no newline"


def test_finalizers_run(run):
    result = run("class A:\n    def __del__(self): open('del.txt', 'w').write('x')\na = A()").result
    assert [f["path"] for f in result["files"]] == ["del.txt"]


def test_temporary_directory_object(run):
    result = run("import tempfile\nd = tempfile.TemporaryDirectory()\nprint(d.name[:5])").result
    assert result["status"] == "ok" and result["stdout"] == "/tmp/\n"


def test_hang_at_exit_is_ended_by_the_limit(run):
    for code in ("import atexit, time\natexit.register(time.sleep, 60)",
                 "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()"):
        result = run(code, "--time", "600ms").result
        assert result["status"] == "timeout", result
