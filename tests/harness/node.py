# SPDX-License-Identifier: Apache-2.0
"""npm's packages for tests, from tests/node/package-lock.json and from nothing else."""
import fcntl
import shutil
import subprocess
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent / "node"
INSTALL_S = 300


def packages():
    """Installs what is missing; the directory with package.json. Suites may ask at once."""
    lock, installed = PLACE / "package-lock.json", PLACE / "node_modules/.package-lock.json"
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
            # No script of a package needs to run: esbuild's only looks for its own program.
            done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                                  cwd=PLACE, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=INSTALL_S)
            assert done.returncode == 0, f"npm ci: {done.stdout}{done.stderr}"
    return PLACE


def program():
    found = shutil.which("node")
    assert found, "node is missing: tools/packages.sh install test"
    return found
