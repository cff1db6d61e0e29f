# SPDX-License-Identifier: Apache-2.0
"""The default policy: what is refused before it runs, what is ended while it runs, what is left alone."""
import time

import pytest

from harness.product import GRACE_S, SLOW, slowly

# /opt/x, told over stdin, so that only the run can show it.
OUTSIDE = "path = '/'.join(['', input(), 'x'])\n"


@pytest.fixture
def run(product, watch, place):
    """run(code, *options, files={…}) -> Completed with a validated result; policy as by default."""
    def run(code, *options, files=None, **more):
        for name, text in (files or {}).items():
            (place / name).write_text(text)
        return product.run(code, *options, cwd=place, **more)
    return run


@pytest.fixture
def plain(product, watch, place):
    return lambda *args, **more: product.execute("run", *args, cwd=place, **more)


# -- refused before it runs ----------------------------------------------------------------------

# name: (code, message, line, column, rule)
REFUSED = {
    "system": ("import os\nos.system('ls')", "module 'os' is not allowed", 2, 1, "process"),
    "from_os": ("from os import system\nsystem('ls')", "module 'os' is not allowed", 1, 16, "process"),
    "alias": ("import os as o\nf = o.popen\nf('ls')", "module 'os' is not allowed", 2, 5, "process"),
    "dunder_import": ("__import__('os').system('x')", "module 'os' is not allowed", 1, None, "process"),
    "subprocess": ("import subprocess\nsubprocess.run(['ls'])", "module 'subprocess' is not allowed",
                   1, 8, "process"),
    "socket": ("import socket\ns = socket.socket()", "module 'socket' is not allowed", 1, 8,
               "network"),
    "sys": ("import sys\nsys._getframe()", "module 'sys' is not allowed", 2, None, None),
    "ctypes": ("import ctypes\nctypes.CDLL(None)", "module 'ctypes' is not allowed", 1, 8,
               "native-code"),
    "requests": ("import requests\nrequests.get('http://x')", "module 'requests' is not allowed",
                 1, 8, "network"),
    "eval": ("x = input()\neval(x)", "eval() is not allowed on code that is not a constant", 2, None,
             "dynamic-code"),
    "exec": ("x = input()\nexec(x)", "exec() is not allowed on code that is not a constant", 2, None,
             "dynamic-code"),
    "compile": ("x = input()\ncompile(x, 'f', 'exec')",
                "compile() is not allowed on code that is not a constant", 2, None, "dynamic-code"),
    "eval_constant": ("eval(\"__import__('os').system('ls')\")", None, 1, None, None),
    "write_system": ("open('/etc/x', 'w')",
                     "writing to '/etc/x' is not allowed: it belongs to the system", 1, None,
                     "write-system"),
    "write_outside": ("open('/home/me/x', 'w')",
                      "writing to '/home/me/x' is not allowed: it is outside the workspace", 1, None,
                      "write-outside"),
    "write_above": ("open('../x', 'w')",
                    "writing to '../x' is not allowed: it is outside the workspace", 1, None,
                    "write-outside"),
    "read_system": ("open('/etc/passwd').read()", None, 1, None, None),
    "internals": ("().__class__.__bases__[0].__subclasses__()",
                  "__subclasses__ is not allowed: it reaches the interpreter's internals", 1, None,
                  "internals"),
    "server": ("from http.server import HTTPServer\nHTTPServer(('', 80), None)", None, None, None,
               None),
    "kill": ("import os\nos.kill(1, 9)", "module 'os' is not allowed", 2, 1, None),
    "fork": ("import os\nos.fork()", "module 'os' is not allowed", 2, 1, "process"),
    "rmtree": ("import shutil\nshutil.rmtree('/home')", None, 2, None, None),
    "multiprocessing": ("import multiprocessing\nmultiprocessing.Process(target=print).start()",
                        "module 'multiprocessing' is not allowed", 1, 8, "process"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(run, name):
    code, message, line, column, rule = REFUSED[name]
    done = run("print('ran')\n" + code)
    result = done.result
    assert done.returncode == 126 and result["status"] == "blocked", str(done)[:2000]
    assert result["stdout"] == "" and result["exit_code"] is None, "it ran"
    error = result["error"]
    assert error["type"] == "SecurityError" and error["hint"]
    if message:
        assert error["message"] == message
    causes = [f for f in result["findings"] if f["severity"] == "block"]
    cause = causes[0]
    assert cause["message"] == error["message"] and cause["hint"]
    assert cause["line"] >= 2 and cause["column"] >= 1
    assert (cause["end_line"], cause["end_column"]) > (cause["line"], cause["column"])
    if line:
        assert cause["line"] == line + 1
    if column:
        assert cause["column"] == column
    if rule:
        assert cause["rule"] == rule
    frame = error["frames"][0]
    assert (frame["line"], frame["column"]) == (cause["line"], cause["column"])
    assert frame["source"] == code.splitlines()[cause["line"] - 2]


def test_the_descriptions_example(run):
    """import os; os.remove('important_file.txt')"""
    done = run("import os; os.remove('important_file.txt')",
               "--file", "important_file.txt", files={"important_file.txt": "important"})
    assert done.returncode == 126 and done.result["status"] == "blocked"
    assert done.result["error"]["type"] == "SecurityError"
    cause = done.result["findings"][0]
    assert (cause["line"], cause["severity"]) == (1, "block") and cause["column"] >= 12
    assert cause["hint"]


def test_the_descriptions_words(run):
    error = run("import os; os.remove('important_file.txt')").result["error"]
    assert f"{error['type']}: {error['message']}" == "SecurityError: module 'os' is not allowed"


def test_refusal_for_a_person(plain):
    done = plain("-c", "x = 1\nimport os; os.system('ls')")
    assert done.returncode == 126 and done.out == ""
    lines = done.err.splitlines()
    assert 'line 2' in lines[0] and lines[1].strip() == "import os; os.system('ls')"
    assert lines[2].strip().startswith("^")
    assert lines[3] == "SecurityError: module 'os' is not allowed"
    assert lines[4].startswith("hint: ")


def test_syntax_error_is_pythons(run):
    done = run("x = 1\ndef f(:\n    pass")
    assert done.returncode == 126 and done.result["status"] == "blocked"
    assert done.result["error"]["type"] == "SyntaxError"
    assert done.result["error"]["message"] == "invalid syntax"
    assert done.result["error"]["frames"][0]["line"] == 2


HARMLESS = {
    "os": "import os\nprint(os.path.join('a', 'b'), os.getcwd(), os.listdir('.'))\n"
          "os.makedirs('d', exist_ok=True)\nprint(os.environ.get('HOME'))",
    "sys": "import sys\nsys.stdout.write('x\\n')\nprint(sys.argv, sys.version)\nsys.exit(0)",
    "own_file": "import os\nopen('own.txt', 'w').write('x')\nos.remove('own.txt')",
    "tmp": "open('/tmp/x', 'w').write('x')\nprint(open('/tmp/x').read())",
    "absolute": "open('/workspace/x', 'w').write('x')",
    "eval_constant": "print(eval('1 + 1'))",
    "threads": "import threading\nt = threading.Thread(target=print, args=(1,))\nt.start()\nt.join()",
    "re_compile": "import re\nprint(re.compile('a').match('a'))",
    "model_eval": "class Model:\n    def eval(self): return self\nModel().eval()",
    "pathlib": "from pathlib import Path\nPath('a.txt').write_text('x')\nprint(Path('a.txt').exists())",
    "pickle": "import pickle\nprint(pickle.loads(pickle.dumps([1])))",
    "frame_eval": "import pandas as pd\nprint(pd.DataFrame({'a': [1, 2]}).query('a > 1'))",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_uses_pass(run, name):
    done = run(HARMLESS[name])
    assert done.returncode == 0 and done.result["status"] == "ok", str(done)[:2000]
    assert not [f for f in done.result["findings"] if f["severity"] == "block"]


# -- policies ------------------------------------------------------------------------------------

def test_profiles(run):
    code = "x = input()\nprint(eval(x))"
    for options, status in (((), "blocked"), (("--policy", "strict"), "blocked"),
                            (("--policy", "standard"), "ok"), (("--policy", "open"), "ok")):
        result = run(code, "--stdin", "in", *options, files={"in": "1 + 1\n"}).result
        assert result["status"] == status, (options, result["error"])
        assert result["policy"] == (options[1] if options else "strict")


def test_policy_file(run):
    policy = ("# comments are allowed\nname: mine\nprofile: strict\nrules:\n"
              "  dynamic-code: warn   # a severity\nmodules:\n  math: block\n")
    result = run("x = input()\nprint(eval(x))", "--stdin", "in", "--policy", "p.yaml",
                 files={"p.yaml": policy, "in": "1 + 1\n"}).result
    assert (result["status"], result["stdout"], result["policy"]) == ("ok", "2\n", "mine")
    assert any(f["rule"] == "dynamic-code" and f["severity"] == "warn" for f in result["findings"])
    result = run("import math\nprint(math.pi)", "--policy", "p.yaml").result
    assert result["status"] == "blocked"
    assert result["error"]["message"] == "math is not allowed by this policy"


@pytest.mark.parametrize("text,where,word", [
    ("profile: strict\nruels: {}\n", ":2:1:", "ruels"),
    ("profile: stern\n", ":1:10:", "stern"),
    ("profile: strict\nrules:\n  nosuch: off\n", ":3:3:", "nosuch"),
    ("profile: strict\nrules:\n  network: maybe\n", ":3:12:", "maybe"),
    ("profile: [\n", ":1:10:", ""),
])
def test_wrong_policy_file(plain, place, text, where, word):
    (place / "p.yaml").write_text(text)
    done = plain("--policy", "p.yaml", "-c", "1")
    assert done.returncode == 2 and done.out == "", str(done)
    assert len(done.err.splitlines()) == 1 and f"p.yaml{where}" in done.err and word in done.err


def test_what_is_refused_leaves_no_file(product, watch, place):
    done = product.run("import subprocess\nsubprocess.run(['ls'])", cwd=place)
    assert done.result["status"] == "blocked" and done.result["files"] == [], str(done)


# -- ended while it runs -------------------------------------------------------------------------

def test_trying_an_address_is_no_anomaly(run):
    """urllib3 does it when it is imported; with a port of its own it is one: ANOMALIES."""
    for port, status in ((0, "ok"), (8000, "anomaly")):
        done = run("import ctypes, struct\nc = ctypes.CDLL(None)\nfd = c.socket(2, 1, 0)\n"
                   f"a = struct.pack('<H', 2) + struct.pack('>H', {port}) + bytes([127, 0, 0, 1]) "
                   "+ bytes(8)\nc.bind(fd, a, 16)", "--policy", "standard")
        assert done.result["status"] == status, str(done)


# name: (code, event, what the detail holds, line)
ANOMALIES = {
    "bind": ("import socket\ns = socket.socket()\ns.bind(('127.0.0.1', 8000))", "socket.bind",
             "127.0.0.1:8000", 3),
    "bind_v6": ("import socket\ns = socket.socket(socket.AF_INET6)\ns.bind(('::', 8000))",
                "socket.bind", "[::]:8000", 3),
    "listen": ("import socket\ns = socket.socket()\ns.listen(1)", "socket.listen", "", 3),
    "listen_ctypes": ("import ctypes\nc = ctypes.CDLL(None)\nfd = c.socket(2, 1, 0)\n"
                      "c.listen(fd, 1)", "socket.listen", "", 4),
    "connect": ("import socket\ns = socket.socket()\ns.connect(('192.0.2.1', 80))",
                "socket.connect", "192.0.2.1:80", 3),
    "connect_ctypes": ("import ctypes, socket, struct\nc = ctypes.CDLL(None)\nfd = c.socket(2, 1, 0)\n"
                       "a = struct.pack('<H', 2) + struct.pack('>H', 80) + bytes([192, 0, 2, 1]) + "
                       "bytes(8)\nc.connect(fd, a, 16)", "socket.connect", "192.0.2.1:80", 5),
    "datagram": ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                 "s.sendto(b'x', ('192.0.2.1', 53))", None, "192.0.2.1:53", 3),
    "write": (OUTSIDE + "open(path, 'w')", "file.write", "/opt/x", 2),
    "write_os": (OUTSIDE + "import os\nos.open(path, os.O_WRONLY | os.O_CREAT)", "file.write",
                 "/opt/x", 3),
    "write_directory": (OUTSIDE + "import os\nd = os.open('/', os.O_RDONLY)\n"
                        "os.open(path[1:], os.O_RDWR | os.O_CREAT, dir_fd=d)", "file.write",
                        "/opt/x", 4),
    "attach": (OUTSIDE + "import sqlite3\nc = sqlite3.connect(':memory:')\n"
               "c.execute('attach database ? as d', (path,))\nc.execute('create table d.t(x)')",
               "file.write", "/opt/x", None),
    "write_ctypes": (OUTSIDE + "import ctypes\nctypes.CDLL(None).open(path.encode(), 65, 420)",
                     "file.write", "/opt/x", 3),
    "write_native": (OUTSIDE + "import ctypes\nc = ctypes.CDLL('libsqlite3.so.0')\n"
                     "d = ctypes.c_void_p()\nc.sqlite3_open(path.encode(), ctypes.byref(d))\n"
                     "c.sqlite3_exec(d, b'create table t(x)', None, None, None)", "file.write",
                     "/opt/x", None),
    "proc_self_fd": ("import os\nd = os.open('/usr', os.O_RDONLY)\n"
                     "open('/'.join(['', 'proc', 'self', 'fd', str(d), 'x']), 'w')",
                     "file.write", "/proc/self/fd/", 3),
    "write_late": (OUTSIDE + "import threading, time\n"
                   "def work():\n    time.sleep(0.1)\n    open(path, 'w')\n"
                   "t = threading.Thread(target=work)\nt.start()\nt.join()\ntime.sleep(9)",
                   "file.write", "/opt/x", None),
}


@pytest.mark.parametrize("name", ANOMALIES)
def test_anomaly(run, name):
    code, event, detail, line = ANOMALIES[name]
    done = run("print('before', flush=True)\n" + code + "\nprint('after', flush=True)\n"
               "import time\ntime.sleep(9)", "--policy", "standard", "--stdin", "in",
               files={"in": "opt\n"})
    result = done.result
    assert done.returncode == 126 and result["status"] == "anomaly", str(done)[:2000]
    assert result["stdout"] == "before\n", "it went on"
    seen = result["anomaly"]
    if event:
        assert seen["event"] == event
    assert detail in (seen["detail"] or "") and seen["action"] == "killed"
    if line:
        assert seen["line"] == line + 1
    assert done.seconds < (GRACE_S + 5) * SLOW, "it was not ended at once"


@pytest.mark.parametrize("name", ["bind", "listen_ctypes", "connect", "write", "attach",
                                  "write_ctypes", "proc_self_fd"])
def test_open_reports_and_goes_on(run, name):
    code, _, detail, _ = ANOMALIES[name]
    code = "try:\n" + "".join(f"    {line}\n" for line in code.splitlines()) + \
        "except Exception as e:\n    print(type(e).__name__)\nprint('after')"
    result = run(code, "--policy", "open", "--stdin", "in", files={"in": "opt\n"}).result
    assert result["status"] == "ok" and result["stdout"].endswith("after\n"), result
    assert any(f["rule"] == "watch" and detail in f["message"] for f in result["findings"]), \
        result["findings"]


LOOSE = ("profile: strict\nrules:\n  process: off\n  native-code: off\n  network: off\n"
         "  network-server: off\n  write-outside: off\n")


@pytest.mark.parametrize("code,event,line", [
    ("import os\nos.execv('/bin/true', ['true'])", "process.exec", 2),
    ("import subprocess\nsubprocess.run(['/bin/true'])", "process.exec", None),
    ("import os\nos.posix_spawn('/bin/true', ['true'], {})", "process.exec", None),
    ("import ctypes\nctypes.CDLL(None).system(b'true')", "process.exec", None),
])
def test_exec_under_strict(run, code, event, line):
    """What the verifier was told to let pass, the watch still ends."""
    result = run(code + "\nprint('after')", "--policy", "p.yaml", files={"p.yaml": LOOSE}).result
    assert result["status"] == "anomaly" and result["stdout"] == "", result
    assert result["anomaly"]["event"] == event
    if line:
        assert result["anomaly"]["line"] == line


def test_exec_under_standard_is_none(run):
    result = run("import subprocess\nprint(subprocess.run(['/bin/echo', 'x'], capture_output=True)"
                 ".stdout)", "--policy", "standard").result
    assert (result["status"], result["stdout"]) == ("ok", "b'x\\n'\n"), result


def test_flood_of_harmless_notices(run):
    """Neither hangs nor is taken for an anomaly."""
    began = time.monotonic()
    result = run("for i in range(20000):\n    open('/dev/null', 'w').close()\nprint('done')",
                 "--policy", "standard").result
    assert (result["status"], result["stdout"]) == ("ok", "done\n"), result
    assert time.monotonic() - began < 8 * SLOW


# -- left alone ----------------------------------------------------------------------------------

# name: (code, whether strict lets it run at all)
BENIGN = {
    "numpy": ("import numpy as np\nm = np.memmap('m', mode='w+', shape=(9,))\nm[:] = 1\nm.flush()\n"
              "print(np.linalg.inv(np.eye(3)).sum())", True),
    "pandas": ("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\ndf.to_csv('o.csv')\n"
               "df.to_excel('o.xlsx')\nprint(len(pd.read_csv('o.csv')))", True),
    "matplotlib": ("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('x')\n"
                   "for kind in ('png', 'pdf', 'svg'):\n    plt.savefig('a.' + kind)\nplt.show()", True),
    "scipy": ("import scipy.stats, scipy.optimize\nprint(scipy.stats.norm.cdf(0))", True),
    "sklearn": ("from sklearn.linear_model import LinearRegression\nimport numpy as np\n"
                "x = np.arange(9.)[:, None]\nprint(LinearRegression().fit(x, x[:, 0]).coef_)", True),
    "seaborn": ("import seaborn as sns\nimport matplotlib.pyplot as plt\nsns.histplot([1, 2, 2])\n"
                "plt.savefig('s.png')", True),
    "font_cache": ("import matplotlib.font_manager as fm\nprint(len(fm.findSystemFonts()))\n"
                   "print(fm.findfont('DejaVu Sans'))", True),
    "threads_of_sklearn": ("from sklearn.ensemble import RandomForestClassifier\nimport numpy as np\n"
                           "x = np.arange(20)[:, None]\n"
                           "print(RandomForestClassifier(n_jobs=2, n_estimators=4)"
                           ".fit(x, [0, 1] * 10).score(x, [0, 1] * 10) > 0.4)", True),
    "tempfile": ("import tempfile\nf = tempfile.NamedTemporaryFile('w')\nf.write('x')\nf.close()\n"
                 "with tempfile.TemporaryDirectory() as d:\n    open(d + '/x', 'w').write('y')\n"
                 "with tempfile.TemporaryFile() as g:\n    g.write(b'z')\ntempfile.mkstemp()", True),
    "dev_null": ("import os\nf = open(os.devnull, 'w')\nf.write('x')\nf.close()\n"
                 "open('/dev/null', 'r+b').close()", True),
    "dev_shm": ("open('/dev/shm/x', 'wb').write(b'1')", True),
    "shared_memory": ("from multiprocessing import shared_memory\n"
                      "s = shared_memory.SharedMemory(create=True, size=9)\ns.buf[0] = 1\n"
                      "s.close()\ns.unlink()", False),
    "multiprocessing": ("import multiprocessing as mp\nif __name__ == '__main__':\n"
                        "    with mp.Pool(2) as p:\n        print(p.map(abs, [-1, -2]))\n"
                        "    with mp.Manager() as m:\n        d = m.dict()\n        d[1] = 2\n", False),
    "executors": ("from concurrent.futures import ProcessPoolExecutor\n"
                  "with ProcessPoolExecutor(2) as e:\n    print(list(e.map(abs, [-1, -2])))", False),
    "asyncio": ("import asyncio\nasync def main():\n    await asyncio.sleep(0.01)\n"
                "    await asyncio.to_thread(print, 'x')\nasyncio.run(main())", True),
    "socketpair": ("import socket\na, b = socket.socketpair()\na.send(b'x')\nb.recv(1)", False),
    "sqlite": ("import sqlite3\nc = sqlite3.connect('a.db')\nc.execute('pragma journal_mode=wal')\n"
               "c.execute('create table t(x)')\nc.execute('create temp table u(x)')\nc.commit()\n"
               "c.execute('vacuum')", True),
    "sqlite_attach": ("import sqlite3\nc = sqlite3.connect(':memory:')\n"
                      "c.execute(\"attach database 'b.db' as d\")\nc.execute('create table d.t(x)')",
                      True),
    "shelve": ("import shelve\ns = shelve.open('s')\ns['a'] = 1\ns.close()", True),
    "archives": ("import tarfile, zipfile, shutil\nopen('x', 'w').write('1')\n"
                 "with zipfile.ZipFile('z.zip', 'w') as z:\n    z.write('x')\n"
                 "with tarfile.open('t.tgz', 'w:gz') as t:\n    t.add('x')\n"
                 "shutil.make_archive('a', 'zip', '.', 'x')", True),
    "pillow": ("from PIL import Image\nImage.new('RGB', (3, 3)).save('a.png')", True),
    "uuid4": ("import uuid\nprint(uuid.uuid4())", True),
    "uuid1": ("import uuid\nprint(uuid.uuid1(), uuid.getnode())", True),
    "streams": ("open('/dev/stdout', 'w').write('x')\nopen('/dev/stderr', 'w').write('x')", None),
    "no_network": ("import urllib.request\ntry:\n    urllib.request.urlopen('http://example.com')\n"
                   "except OSError:\n    print('none')", False),
    "localhost": ("import socket\nprint(socket.gethostbyname('localhost'))\n"
                  "s = socket.socket()\ntry:\n    s.connect(('127.0.0.1', 9))\nexcept OSError:\n"
                  "    print('refused')", False),
    "syslog": ("import syslog\nsyslog.syslog('x')", None),
}


@pytest.mark.parametrize("policy", ["strict", "standard"])
@pytest.mark.parametrize("name", BENIGN)
def test_benign(run, name, policy):
    """Nothing of this is an anomaly; under strict some is refused before it runs."""
    code, strict = BENIGN[name]
    result = run(code, "--policy", policy, "--memory", "300M", "--time", slowly(20000)).result
    assert result["anomaly"] is None, result["anomaly"]
    if policy == "standard" or strict:
        assert result["status"] == "ok", (result["error"], result["stderr"][-1000:])
    elif strict is False:
        assert result["status"] == "blocked", result
    else:
        assert result["status"] in ("ok", "blocked")
