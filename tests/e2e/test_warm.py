# SPDX-License-Identifier: Apache-2.0
"""A parked cell has rehearsed and its template was warmed up: the code must not be able to tell."""
import json
import time

import pytest

from harness.daemon import Daemon, configuration

# What a program could know of its own process and of the libraries' state.
SEES = r"""
before = sorted(globals())
import atexit, gc, json, locale, os, resource, signal, sys, threading, time, traceback, warnings
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines()
              if line.split(":")[0] in ("Umask", "Threads", "SigBlk", "SigIgn", "SigCgt", "CapEff", "CapBnd",
                                        "NoNewPrivs", "Seccomp", "Seccomp_filters", "Groups"))
seen = {
    "globals": before,
    "file": [__file__, __cached__, __name__, __doc__ is None, __spec__ is None],
    "argv": [sys.argv, sys.path, sys.executable],
    "files": [os.getcwd(), os.listdir("/workspace"), os.listdir("/tmp"), os.listdir("/dev/shm")],
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "kinds": [os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in range(3)],
    "threads": [threading.active_count(), threading.current_thread() is threading.main_thread()],
    "warnings": [repr(f) for f in warnings.filters],
    "streams": [(s.name, s.mode, s.encoding, s.errors, s.newlines, s.line_buffering, s.write_through, s.fileno(),
                 type(s.buffer).__name__, s.seekable(), s.isatty(), s.readable(), s.writable(), s.closed)
                for s in (sys.stdin, sys.stdout, sys.stderr)],
    "originals": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, sys.gettrace(),
              sys.getprofile(), threading.excepthook is threading.__excepthook__],
    "last": [hasattr(sys, "last_" + name) for name in ("type", "value", "traceback")] + [sys.exc_info()[0]],
    "gc": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks), len(gc.garbage), gc.get_debug()],
    "limits": [resource.getrlimit(n) for n in range(16) if n != resource.RLIMIT_DATA],
    "niceness": os.nice(0),
    "environment": dict(os.environ),
    "numbers": [sys.getrecursionlimit(), sys.getswitchinterval(), time.tzname, locale.getlocale()],
    "alarms": [signal.getitimer(n) for n in range(3)],
    "status": status,
    "exits": atexit._ncallbacks(),
    "loaded": ["/workspace" in str(getattr(m, "__file__", "")) for m in sys.modules.values()].count(True),
    "importers": sorted(p for p in sys.path_importer_cache if not p.startswith("/usr")),
}
if "numpy" in sys.modules:
    import numpy
    seen["numpy"] = [numpy.get_printoptions(), numpy.geterr(), numpy.random.get_state()[3]]
    seen["numpy"][0].pop("formatter")
if "pandas" in sys.modules:
    import pandas
    seen["pandas"] = repr(pandas.describe_option(_print_desc=False))
if "matplotlib.pyplot" in sys.modules:
    import matplotlib, matplotlib.pyplot as plt, matplotlib.units as units
    seen["plot"] = [plt.get_fignums(), matplotlib.get_backend(), repr(dict(matplotlib.rcParams)),
                    sorted(map(str, units.registry)), plt.figure().number]
    plt.close("all")
print(json.dumps(seen))
"""

# These change with what is loaded, and a warm-up loads more.
LOADED = ("exits", "importers")


@pytest.fixture(scope="module")
def warm(product):
    daemon = Daemon(product, product.directory("warm"), configuration({"bare": (2, 2), "plot": (2, 2)}))
    yield daemon
    daemon.stop()


@pytest.mark.parametrize("template", ["bare", "plot"])
def test_a_warm_cell_looks_like_a_cold_one(product, warm, template):
    deadline = time.monotonic() + 30 * product.SLOW
    while warm.template(template)["parked"] == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    done = warm.run(SEES, "--template", template)
    cold = product.run(SEES, "--policy", "open", "--template", template, "--no-daemon", daemon=True)
    assert done.result["warm"] and not cold.result["warm"]
    looks = json.loads(done.result["stdout"]), json.loads(cold.result["stdout"])
    for what in looks[0]:
        if what not in LOADED:
            assert looks[0][what] == looks[1][what], what


# What each cell must draw anew, though its template drew the same for all of them.
DRAWS = """
import random, secrets, ssl, tempfile, uuid, numpy as np
print(random.random(), secrets.token_hex(8), ssl.RAND_bytes(8).hex(), tempfile.mktemp(), uuid.uuid4(),
      uuid.uuid1(), np.random.rand(), np.random.randn(), np.random.default_rng().random(), sep="\\n")
"""
DRAWING = ("import random, ssl, tempfile, uuid, numpy as np\n"
           "random.random(), ssl.RAND_bytes(8), tempfile.mktemp(), uuid.uuid1(), np.random.randn(3)\n")


def test_no_two_cells_draw_the_same(product):
    """One warm-up has drawn from every source there is, and left a normal number over."""
    what = {"mine": {"modules": ["numpy", "ssl", "uuid"], "warm_up": DRAWING, "pool": (4, 4)}}
    daemon = Daemon(product, product.directory("draws"), configuration(what))
    try:
        runs = [daemon.run(DRAWS, "--template", "mine") for _ in range(12)]
        drawn = [line for run in runs for line in run.result["stdout"].splitlines()]
        assert all(run.result["status"] == "ok" for run in runs), runs[0]
        assert len(drawn) == 12 * 9 and len(set(drawn)) == len(drawn), sorted(drawn)
    finally:
        daemon.stop()


@pytest.mark.parametrize("what, words", [
    ({"modules": ["json", "no_such_module"]}, "no_such_module"),
    ({"warm_up": "x = 1\ny = x / 0\n"}, "warm-up, line 2: ZeroDivisionError"),
    ({"warm_up": "import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()\n"},
     "the warm-up started 1 threads"),
    ({"warm_up": "import builtins; builtins.kept = open('/etc/hostname')\n"},
     "the warm-up left 1 descriptors open (/etc/hostname)"),
])
def test_a_template_that_cannot_be_forked_is_refused(product, what, words):
    directory = product.directory(f"refused-{abs(hash(words))}")
    daemon = Daemon(product, directory, configuration({"bare": (1, 1), "mine": {**what, "pool": (1, 1)}}), wait=False)
    try:
        daemon.process.wait(60 * product.SLOW)
        daemon.reader.join(10)
        said = [line for line in daemon.lines if words in line]
        assert daemon.process.returncode == 125 and said and "mine" in said[0], daemon.lines
    finally:
        daemon.kill()
