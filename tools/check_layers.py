#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a layer includes a layer that it may not use (docs/architecture.md).

A layer may include its own headers and those of the layers above it in the list below. Beside
that, each layer must not know certain things: those are system headers that it must not include.
"""
import pathlib
import re
import sys

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "src"

# Top to bottom: each may use those before it.
LAYERS = ["base", "proto", "policy", "jail", "guest", "warden", "engine", "server", "cli"]

# Exceptions to "all those before it".
FORBIDDEN = {
    "policy": {"jail"},            # limits and policies do not know how they are enforced
    "warden": {"guest"},           # different programs, which share what stands above both
    "engine": {"jail", "guest", "warden"},       # reaches them through messages only
    "server": {"proto", "jail", "guest", "warden"},
    "cli": {"proto", "jail", "guest", "warden"},
}

# Exceptions to the exceptions: one header each, and docs/architecture.md says why.
NARROW = {
    "server": {"proto/frame.h", "proto/messages.h", "jail/confine.h"},
}

# Headers that say that a layer knows what it must not know.
PYTHON = r"Python\.h|internal/pycore_\w+\.h|structmember\.h"
HTTP = r"llhttp\.h|event2/http\.h"
NAMESPACES = r"sched\.h|linux/sched\.h|sys/mount\.h|linux/mount\.h|linux/landlock\.h|seccomp\.h"
JSON = r"jansson\.h"
FOREIGN = {
    "base": "|".join([PYTHON, HTTP, NAMESPACES, JSON]),
    "proto": "|".join([PYTHON, HTTP, NAMESPACES, JSON]),
    "policy": "|".join([PYTHON, HTTP, NAMESPACES]),
    "jail": "|".join([PYTHON, HTTP, JSON]),
    "guest": HTTP,
    "warden": "|".join([PYTHON, HTTP, JSON]),
    "engine": "|".join([PYTHON, HTTP]),
    "server": "|".join([PYTHON, NAMESPACES]),
    "cli": "|".join([PYTHON, HTTP, NAMESPACES]),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def complaints(path):
    layer = path.relative_to(SOURCES).parts[0]
    if layer not in LAYERS:
        yield f"src/{layer} is not a layer"
        return
    place = LAYERS.index(layer)
    allowed = set(LAYERS[:place + 1]) - FORBIDDEN.get(layer, set())
    text = path.read_text()
    for match in INCLUDE.finditer(text):
        kind, name = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        first = name.split("/")[0]
        # A .def table or a header beside the file may be named without its layer.
        known = first if "/" in name and first in LAYERS else None
        if kind == '"' and known and known not in allowed and name not in NARROW.get(layer, ()):
            yield f"{path.relative_to(SOURCES.parent)}:{line}: {layer} includes {name}; " \
                  f"it may use {', '.join(name for name in LAYERS if name in allowed)}"
        if kind == '"' and ".." in name.split("/"):
            yield f"{path.relative_to(SOURCES.parent)}:{line}: {name}: include from src/"
        if re.fullmatch(FOREIGN[layer], name):
            yield f"{path.relative_to(SOURCES.parent)}:{line}: {layer} must not know {name}"


def main():
    files = sorted(path for path in SOURCES.rglob("*") if path.suffix in (".c", ".h", ".def"))
    found = [complaint for path in files for complaint in complaints(path)]
    for complaint in found:
        print(complaint)
    print(f"layers: {len(files)} files, {len(found)} complaints")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
