#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples, shows what came, and checks each against the header of its file.

    demo.py EXECPY DIRECTORY [NAME…]

EXECPY is the program, DIRECTORY is where fetched files go. An example's header is TOML behind
`#| `:

    order        place in the demo                 options    of `execpy run`
    exit         exit status                       status     of the result
    stdout_has, stderr_has    texts                value, displays    MIME types, in order
    value_has    texts in value's text/plain       files      names of created files
    error        the exception's type              frames     the frames' functions
    frame_line   least and most line of the innermost frame
    processes_max    the peak of processes and threads
    truncated    { options, bytes, warden_mib }: run again with these options: all the bytes
                 come, and the warden's peak memory stays below
"""
import base64
import ctypes
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES_SHOWN = 14
PR_SET_CHILD_SUBREAPER = 36
CGROUPS = "/sys/fs/cgroup"


class Example:
    def __init__(self, path):
        text = path.read_text()
        header = "\n".join(line[3:] for line in text.splitlines() if line.startswith("#| "))
        self.path, self.header = path, tomllib.loads(header)
        self.title = text.split('"""')[1]
        unknown = set(self.header) - {
            "order", "options", "exit", "status", "stdout_has", "stderr_has", "value", "displays",
            "value_has", "files", "error", "frames", "frame_line", "processes_max", "truncated"}
        if unknown:
            sys.exit(f"{path}: unknown keys {sorted(unknown)}")

    def command(self, *more):
        return ["run", *self.header.get("options", []), *more,
                str(self.path.relative_to(ROOT))]


def children(pid):
    """Process ids directly below this one, with their names."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                found.append((int(child), pathlib.Path(f"/proc/{child}/comm").read_text().strip()))
        except OSError:
            continue
    return found


def peak_kib(pid):
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


class Finished:
    """One process of execpy that has ended, and what was seen of its warden meanwhile."""

    def __init__(self, program, arguments):
        self.wardens, self.warden_peak_kib = set(), 0
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([program, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err)
            while process.poll() is None:
                self.look_at(process.pid)
                time.sleep(0.01)
            self.seconds, self.exit = time.monotonic() - began, process.returncode
            out.seek(0)
            err.seek(0)
            self.stdout, self.stderr = out.read(), err.read()

    def look_at(self, pid):
        for child, name in children(pid):
            if name.startswith("execpy-warden"):
                self.wardens.add(child)
                for warden in (child, *(p for p, _ in children(child))):
                    self.warden_peak_kib = max(self.warden_peak_kib, peak_kib(warden))

    def left_behind(self):
        """What of the run is still there: processes (this one is their reaper) and cgroups."""
        left = [f"process {pid} ({name})" for pid, name in children(os.getpid())]
        for directory, names, _ in os.walk(CGROUPS):
            left += [f"cgroup {directory}/{name}" for name in names
                     if any(name.startswith(f"execpy.{pid}.") for pid in self.wardens)]
        return left


def show(text, mark=""):
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    for line in lines[:LINES_SHOWN]:
        print("  " + mark + (line if len(line) <= 110 else
                             f"{line[:60]}… ({len(line)} characters)"))
    if len(lines) > LINES_SHOWN:
        print(f"  {mark}… {len(lines) - LINES_SHOWN} more lines")


def show_bundle(what, bundle, kept):
    for kind, content in bundle.items():
        if kind.startswith("text/"):
            print(f"  {what} as {kind}:")
            show(content, "  ")
        else:
            path = kept.with_suffix("." + kind.split("/")[1].split("+")[0])
            path.write_bytes(base64.b64decode(content))
            print(f"  {what} as {kind}: {path}")


def compare(wrong, what, got, expected):
    if got != expected:
        wrong.append(f"{what} is {got!r}, expected {expected!r}")


def check_texts(wrong, where, text, expected):
    wrong += [f"{where} lacks {words!r}" for words in expected if words not in text]


def check_plain(example, run, out):
    """Complaints about exit status, streams, fetched files and leftovers."""
    wrong, header = [], example.header
    compare(wrong, "exit status", run.exit, header["exit"])
    check_texts(wrong, "stdout", run.stdout.decode(), header.get("stdout_has", []))
    check_texts(wrong, "stderr", run.stderr.decode(), header.get("stderr_has", []))
    for name in header.get("files", []):
        path = out / name
        if not path.is_file():
            wrong.append(f"--out did not fetch {name}")
        elif path.suffix == ".png" and path.read_bytes()[:8] != b"\x89PNG\r\n\x1a\n":
            wrong.append(f"{name} is not a PNG file")
    return wrong + [f"{what} was left behind" for what in run.left_behind()]


def check_result(example, run, kept):
    """Complaints about the result object, of which the interesting parts are shown."""
    wrong, header = [], example.header
    result = json.loads(run.stdout)
    error, value = result["error"] or {}, result["value"] or {}
    frames = error.get("frames") or []
    compare(wrong, "exit status with --json", run.exit, header["exit"])
    compare(wrong, "status", result["status"], header["status"])
    if "value" in header:
        show_bundle("value", value, kept)
        compare(wrong, "value", sorted(value), sorted(header["value"]))
        check_texts(wrong, "value", value.get("text/plain", ""), header.get("value_has", []))
    if "displays" in header:
        for number, bundle in enumerate(result["displays"], 1):
            show_bundle(f"display {number}",
                        {k: v for k, v in bundle.items() if k != "text/plain"},
                        kept.with_name(f"{kept.name}-display-{number}"))
        kinds = [kind for bundle in result["displays"] for kind in bundle if kind != "text/plain"]
        compare(wrong, "displays", kinds, header["displays"])
    if "error" in header:
        compare(wrong, "error", error.get("type"), header["error"])
    if "frames" in header:
        compare(wrong, "frames", [frame["function"] for frame in frames], header["frames"])
        for frame in frames:
            print(f"  frame: line {frame['line']}, column {frame['column']}, in "
                  f"{frame['function']}: {(frame['source'] or '').strip()}")
    if "frame_line" in header:
        least, most = header["frame_line"]
        if not frames or not least <= frames[-1]["line"] <= most:
            wrong.append(f"the innermost frame is not in lines {least} to {most}: {frames[-1:]}")
    if "processes_max" in header:
        peak = result["usage"]["processes_peak"]
        print(f"  processes and threads at most: {peak}")
        if peak > header["processes_max"]:
            wrong.append(f"{peak} processes, at most {header['processes_max']} expected")
    return wrong + [f"{what} was left behind" for what in run.left_behind()]


def check_truncated(example, program):
    """Complaints about a run in which everything passes and little is kept."""
    wrong, expected = [], example.header["truncated"]
    arguments = example.command("--json", *expected["options"])
    print(f"$ execpy {shlex.join(arguments)}")
    run = Finished(program, arguments)
    result = json.loads(run.stdout)
    peak = run.warden_peak_kib / 1024
    print(f"  {result['output']['stdout_bytes']} bytes came, {len(result['stdout'])} were kept, "
          f"{result['output']['dropped_bytes']} dropped, in {run.seconds:.1f} s; "
          f"the warden's peak memory was {peak:.1f} MiB")
    compare(wrong, "bytes with --truncate", result["output"]["stdout_bytes"], expected["bytes"])
    compare(wrong, "exit status with --truncate", run.exit, 0)
    if not 0 < peak < expected["warden_mib"]:
        wrong.append(f"the warden's peak is {peak:.1f} MiB, not below {expected['warden_mib']}")
    return wrong


def demonstrate(example, program, out):
    """Runs one example; prints it all, and returns the complaints."""
    print(f"\n── {example.path.stem}: {example.title}")
    fetch = ["--out", str(out)] if "files" in example.header else []
    arguments = example.command(*fetch)
    print(f"$ execpy {shlex.join(arguments)}")
    run = Finished(program, arguments)
    show(run.stdout.decode("utf-8", "replace"))
    show(run.stderr.decode("utf-8", "replace"))
    wrong = check_plain(example, run, out)
    for name in example.header.get("files", []):
        print(f"  file: {out / name}")
    print(f"  exit status {run.exit} after {run.seconds:.1f} s")
    wrong += check_result(example, Finished(program, example.command("--json")),
                          out / example.path.stem)
    if "truncated" in example.header:
        wrong += check_truncated(example, program)
    for complaint in wrong:
        print(f"  WRONG: {complaint}")
    print("  " + ("as expected" if not wrong else "NOT as expected"), flush=True)
    return wrong


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, out = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    out.chmod(0o777 & ~0o022)
    # What outlives its parent comes to this process, and is seen.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    examples = sorted((Example(path) for path in (ROOT / "examples").glob("*.py")),
                      key=lambda example: example.header["order"])
    chosen = [e for e in examples if not sys.argv[3:] or e.path.stem in sys.argv[3:]]
    began = time.monotonic()
    failed = sum(bool(demonstrate(example, program, out)) for example in chosen)
    print(f"\n{len(chosen)} examples in {time.monotonic() - began:.0f} s, results in {out}")
    print(f"{len(chosen) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
