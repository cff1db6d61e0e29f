#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when C code calls a function that is banned here, or a file lacks its head.

Comments and strings do not count. The head is the SPDX line; in src/ a sentence of purpose
follows it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

BANNED = {
    "strcpy": "has no bound; snprintf or struct bytes",
    "strcat": "has no bound; snprintf or struct bytes",
    "stpcpy": "has no bound; snprintf or struct bytes",
    "sprintf": "has no bound; snprintf",
    "vsprintf": "has no bound; vsnprintf",
    "strtok": "keeps state; strcspn, or struct reader",
    "gets": "has no bound",
    "atoi": "hides errors; limit_set_text, or a loop that checks",
    "atol": "hides errors; limit_set_text, or a loop that checks",
    "atoll": "hides errors; limit_set_text, or a loop that checks",
    "system": "asks a shell; posix_spawn",
    "popen": "asks a shell; posix_spawn",
    "tmpnam": "is a race; mkstemp or memfd_create",
    "mktemp": "is a race; mkstemp or memfd_create",
    "alloca": "has no bound",
}
CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def blank(match):
    """Keeps the lines, drops the rest."""
    return re.sub(r"[^\n]", " ", match[0])


def complaints(path):
    text = path.read_text()
    name = path.relative_to(ROOT)
    lines = text.split("\n")
    if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(lines[:2]):
        yield f"{name}:1: lacks the SPDX line"
    if name.parts[0] == "src" and not re.match(r"/\* [\w./ -]+(: |,)", "".join(lines[1:2])):
        yield f"{name}:2: lacks its sentence of purpose"
    code = NOISE.sub(blank, text)
    for number, line in enumerate(code.split("\n"), 1):
        for match in CALL.finditer(line):
            yield f"{name}:{number}: {match[1]}() {BANNED[match[1]]}"


def main():
    files = sorted(path for folder in ("src", "tests", "bench")
                   for path in (ROOT / folder).rglob("*") if path.suffix in (".c", ".h", ".def")
                   and "node_modules" not in path.parts)
    found = [complaint for path in files for complaint in complaints(path)]
    for complaint in found:
        print(complaint)
    print(f"banned functions and heads: {len(files)} files, {len(found)} complaints")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
