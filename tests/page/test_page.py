# SPDX-License-Identifier: Apache-2.0
"""The page: each scenario as a user meets it, in a browser, on a real daemon.

Screenshots are in page/ of the build directory. EXECPY_PICTURE=1 makes docs/page.png anew."""
import os
import shutil
from pathlib import Path

import pytest

from conftest import need
from harness import host

HERE = Path(__file__).resolve().parent
SCENARIOS = sorted(path.stem for path in (HERE / "scenarios").glob("*.mjs"))
OF_THEIR_OWN = ["key", "picture"]


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name not in OF_THEIR_OWN])
def test_scenario(browser, server, scenario):
    need("chromium")
    browser.play(scenario, server.url)
