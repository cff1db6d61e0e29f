# SPDX-License-Identifier: Apache-2.0
#| id = "F15"
#| title = "A run plants modules and files for the next one"
#| does = "The next run imports none of them and sees an empty workspace and /tmp."
#| needs = ["overlay"]
#| [expect]
#| status = "ok"
#| verdicts = {planted = "DID"}
#| [next]
#| status = "ok"
#| verdicts = {workspace = "clean", tmp = "clean", shm = "clean", module = "DENIED ModuleNotFoundError", builtins = "clean", home = "clean"}
#| [control]
#| kind = "host"
#| has = ["@planted: DID", "@workspace: planted", "@tmp: planted", "@shm: planted", "@module: DID", "@home: planted"]
import pathlib

for name in ("usercustomize.py", "sitecustomize.py", "planted.py", "json.py", ".bashrc", "x.pth",
             "conftest.py", "planted.txt"):
    pathlib.Path(name).write_text("print('planted')\n")
pathlib.Path("__pycache__").mkdir(exist_ok=True)
site = pathlib.Path(os.path.expanduser("~/.local/lib/python3.11/site-packages"))
site.mkdir(parents=True, exist_ok=True)
(site / "usercustomize.py").write_text("import builtins; builtins.planted = 1\n")
(site / "planted.pth").write_text("import builtins; builtins.planted = 1\n")
for directory in ("/tmp", "/dev/shm"):
    pathlib.Path(directory, "@MARK@").write_text("x")
import builtins
builtins.planted = 1
os.environ["PLANTED"] = "1"
verdict("planted", "DID")
#== next run
import builtins

attempt("module", __import__, "planted")
for name, path in (("workspace", "planted.txt"), ("tmp", "/tmp/@MARK@"), ("shm", "/dev/shm/@MARK@"),
                   ("home", os.path.expanduser("~/.local"))):
    verdict(name, "planted" if os.path.exists(path) else "clean")
verdict("builtins", "planted" if hasattr(builtins, "planted") or "PLANTED" in os.environ else "clean")
