#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes matplotlib's list of fonts, which takes it seconds, once at build time.

    make_fonts.py DIRECTORY STAMP

Without matplotlib the directory stays empty; a later build finds it again.
"""
import os
import pathlib
import sys

directory, stamp = map(pathlib.Path, sys.argv[1:3])
directory.mkdir(parents=True, exist_ok=True)
os.environ["MPLCONFIGDIR"] = str(directory)
try:
    import matplotlib.font_manager  # noqa: F401  (importing writes the list)
except ImportError:
    print("matplotlib is not installed: no list of fonts")
stamp.touch()
