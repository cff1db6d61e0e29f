#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/limits.md from the tables of src/policy/limits.h, src/policy/config.h and
src/base/bounds.h, or checks it.

    make_limits.py [--check]
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/limits.md"
UNITS = {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
MEANING = {
    "time_ms": "wall clock, by a monotonic clock",
    "cpu_ms": "user and system time of all its processes",
    "memory_bytes": "of its own; pages shared with the template are free",
    "processes": "and threads, together, at one moment",
    "output_bytes": "stdout and stderr together",
    "disk_bytes": "/workspace, /tmp and /dev/shm together",
}


def number(text):
    """The value of a product of numbers and KIB, MIB, GIB."""
    text = re.sub(r"UINT64_C\((\d+)\)|\b(\d+)ull\b", lambda m: m[1] or m[2], text.strip(" ()"))
    value = 1
    for part in text.split("*"):
        part = part.strip(" ()")
        value *= UNITS[part] if part in UNITS else int(part)
    return value


def words(value, name):
    if name.endswith("_ms") or name.endswith("_MS"):
        if value == 0:
            return "0"
        for unit, size in (("h", 3600000), ("s", 1000)):
            if value >= size and value % size == 0:
                return f"{value // size} {unit}"
        return f"{value} ms"
    if "bytes" in name.lower():
        for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if value >= size and value % size == 0:
                return f"{value // size} {unit}"
        return f"{value} bytes"
    return str(value)


def run_limits():
    text = (ROOT / "src/policy/limits.h").read_text()
    table = text.split("#define LIMIT_TABLE(X)")[1].split("\n\n")[0]
    rows = re.findall(r"X\((\w+), \"(--\w+)\", \w+, ([^,]+), ([^,]+), ([^)]+)\)", table)
    for name, option, initial, least, most in rows:
        yield name, option, *(words(number(part), name) for part in (initial, least, most))


def daemon_numbers():
    """(key, default, least, most, sentence) of each number of a daemon."""
    text = (ROOT / "src/policy/config.h").read_text()
    table = text.split("#define DAEMON_NUMBER_TABLE(X)")[1].split("\n\n")[0].replace("\\\n", " ")
    for row in re.findall(r"X\(((?:[^()]|\([^()]*\))*)\)", table):
        words_of_row = re.match(r'\s*(\w+),\s*"(\w+)",\s*\w+,\s*\w+,([^,]+),([^,]+),([^,]+),\s*(.+)',
                                row, re.DOTALL)
        name, key, *numbers, sentence = words_of_row.groups()
        sentence = "".join(re.findall(r'"([^"]*)"', sentence))
        yield key, *(words(number(part), name) for part in numbers), sentence


def http_numbers():
    """The same of HTTP."""
    text = (ROOT / "src/policy/http_config.h").read_text()
    table = text.split("#define HTTP_NUMBER_TABLE(X)")[1].split("\n\n")[0].replace("\\\n", " ")
    for row in re.findall(r"X\(((?:[^()]|\([^()]*\))*)\)", table):
        name, key, *numbers, sentence = re.match(
            r'\s*(\w+),\s*"(\w+)",\s*\w+,([^,]+),([^,]+),([^,]+),\s*(.+)', row, re.DOTALL).groups()
        sentence = "".join(re.findall(r'"([^"]*)"', sentence))
        yield key, *(words(number(part), name) for part in numbers), sentence


def bounds():
    """(heading or None, name, value, comment) of each #define in bounds.h."""
    text = (ROOT / "src/base/bounds.h").read_text().split("#define GIB")[1].split("\n", 1)[1]
    for heading, name, value, comment in re.findall(
            r"^/\* ((?:[^*]|\*(?!/))+) \*/$|^#define (\w+)[ \t]+(\([^)]*\)|\w+)"
            r"[ \t]*(?:/\* (.*?) \*/)?$", text, re.MULTILINE):
        heading = re.sub(r"\s*\n \* ", " ", heading).split(". ")[0]
        yield heading, name, words(number(value), name) if name else "", comment


def document():
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->",
             "<!-- Made by tools/make_limits.py; do not edit. -->",
             "# Limits and bounds", "",
             "## Limits of a run", "",
             "| key | option | default | least | most | what counts |", "|---|---|---|---|---|---|"]
    lines += [f"| `{name}` | `{option}` | {initial} | {least} | {most} | {MEANING[name]} |"
              for name, option, initial, least, most in run_limits()]
    lines += ["", "Sizes are powers of 1024. Zero and \"unlimited\" do not exist, but for "
              "`--output 0`.", "",
              "## Numbers of a daemon", "",
              "Keys of the file that `execpy serve --config` takes (docs/serve.md).", "",
              "| key | default | least | most | what it is |", "|---|---|---|---|---|"]
    lines += [f"| `{key}` | {initial} | {least} | {most} | {sentence} |"
              for key, initial, least, most, sentence in daemon_numbers()]
    lines += ["", "And of its HTTP server (docs/http.md):", "",
              "| key | default | least | most | what it is |", "|---|---|---|---|---|"]
    lines += [f"| `{key}` | {initial} | {least} | {most} | {sentence} |"
              for key, initial, least, most, sentence in http_numbers()]
    lines += ["", "## Bounds that are not for choosing"]
    for heading, name, value, comment in bounds():
        if heading:
            lines += ["", f"### {heading.rstrip('.')}", "", "| name | value | |", "|---|---|---|"]
        else:
            lines.append(f"| `{name}` | {value} | {comment} |")
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == ["--check"]:
        fresh = DOCUMENT.exists() and DOCUMENT.read_text() == document()
        if not fresh:
            print("docs/limits.md is stale: run tools/make_limits.py")
        return 0 if fresh else 1
    DOCUMENT.write_text(document())
    return 0


if __name__ == "__main__":
    sys.exit(main())
