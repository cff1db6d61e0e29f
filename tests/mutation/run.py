#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Group M: builds the product with one layer switched off at a time and asks which named tests notice.

    tests/mutation/run.sh [--scenarios] [LAYER…]

The complete build comes first: there every named test must pass, else the rest is void. Each unsafe build
must run `print(1)` and say in --version which layer it is without; then at least one named test must fail.
With --scenarios the attack scenarios named below are run as well, which takes longer.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILDS = Path(os.environ.get("MUTATION_BUILD", ROOT / "build-mutation"))
PROGRAMS = ["src/cli/execpy", "src/warden/execpy-warden", "src/guest/execpy-guest",
            "src/jail/execpy-keeper"]
PYTHON = "/usr/bin/python3"

# The scenario files of tests/attacks that prove a layer by itself.
SCENARIOS = {
    "seccomp": ["every_thread", "dangerous_calls"],
    "landlock": [],
    "capabilities": ["capabilities"],
    "mounts": ["write_the_system"],
    "network": ["every_destination"],
    "cgroups": ["cpu_of_grandchildren"],
    "descriptors": ["descriptors"],
    "rlimits": ["many_descriptors"],
}


def layers():
    """The values of the option, so that a new one cannot be forgotten here."""
    text = (ROOT / "meson_options.txt").read_text()
    found = re.search(r"option\('unsafe_without'.*?choices: \[(.*?)\]", text, re.DOTALL)
    return [name for name in re.findall(r"'(\w+)'", found.group(1)) if name != "nothing"]


def build(layer):
    """The program's path, or None and the reason."""
    place = BUILDS / layer
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "log", "ab") as log:
        if not (place / "build.ninja").exists():
            done = subprocess.run(["meson", "setup", place, ROOT, f"-Dunsafe_without={layer}", "-Dbuildtype=debug"],
                                  stdout=log, stderr=log)
            if done.returncode:
                return None, f"cannot be configured, see {place}/log"
        done = subprocess.run(["ninja", "-C", place, *PROGRAMS], stdout=log, stderr=log)
    if done.returncode:
        return None, f"does not build, see {place}/log"
    return place / PROGRAMS[0], None


def execute(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL)


def works(program, layer):
    """Why this build cannot be judged, or None."""
    version = execute(program, "--version").stdout.strip()
    unsafe = f"without {layer}" in version and "UNSAFE" in version
    if unsafe == (layer == "nothing"):
        return f'--version says "{version}"'
    done = execute(program, "run", "--policy", "open", "-c", "print(1)")
    if done.stdout != "1\n" or done.returncode:
        return f"print(1) gives {done.returncode}: {done.stdout}{done.stderr}".strip()
    return None


def probe(program):
    """{probe of a layer: whether it holds}."""
    done = execute(program, "run", "--policy", "open", "--json", "--time", "60s", "--cpu", "60s",
                   str(Path(__file__).with_name("probe.py")), "--", os.readlink("/proc/self/ns/net"))
    result = json.loads(done.stdout)
    said = dict(line.split() for line in result["stdout"].splitlines())
    found = {f"probe {layer}": word == "held" for layer, word in said.items()}
    # Ten times 60 ms, of which sampling sees at most a few.
    found["probe cgroups"] = result["usage"]["cpu_ms"] > 500
    if result["status"] != "ok":
        raise RuntimeError(f"the probe itself gave {result['status']}: {result['error']}")
    return found


def scenarios(program, names):
    """{scenario: whether it passed}; what was skipped is not in it."""
    if not names:
        return {}
    report = program.parent / "scenarios.xml"
    subprocess.run([PYTHON, "-m", "pytest", "-q", "--no-controls", "--tb=no", f"--junitxml={report}",
                    "tests/attacks/test_scenarios.py", "-k", " or ".join(f"-{name}]" for name in names)],
                   cwd=ROOT, env=os.environ | {"EXECPY_BIN": str(program)}, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    from xml.etree import ElementTree
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = re.sub(r".*\[(.*)\]", r"\1", case.get("name"))
        if case.find("skipped") is None:
            found[f"scenario {name}"] = case.find("failure") is None and case.find("error") is None
    return found


def main(arguments):
    with_scenarios = "--scenarios" in arguments
    chosen = [a for a in arguments if not a.startswith("-")] or layers()
    passed = failed = 0
    unknown = set(chosen) - set(layers())
    if unknown:
        sys.exit(f"mutation: no such layer: {', '.join(sorted(unknown))}")
    print(f"{'layer off':<14} noticed by")
    for layer in ["nothing", *chosen]:
        program, why = build(layer)
        why = why or works(program, layer)
        found = {}
        if not why:
            try:
                found = probe(program)
                if with_scenarios:
                    names = sum(SCENARIOS.values(), []) if layer == "nothing" else SCENARIOS.get(layer, [])
                    found |= scenarios(program, names)
            except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
                why = str(error)
        noticed = [name for name, held in found.items() if not held]
        if layer == "nothing":
            good = not why and not noticed
            text = f"nobody; {len(found)} named tests pass" if good else f"VOID: {why or ', '.join(noticed)}"
        else:
            good = not why and bool(noticed)
            text = ", ".join(noticed) if good else f"NOBODY: {why or 'every named test still passes'}"
        print(f"{layer:<14} {text}", flush=True)
        passed += good
        failed += not good
        if layer == "nothing" and not good:
            break
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
