# SPDX-License-Identifier: Apache-2.0
"""A browser that plays scenarios on the page of a daemon."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from harness import node, witness
from harness.daemon import configuration
from harness.product import SLOW
from harness.web import Server

HERE = Path(__file__).resolve().parent
TEMPLATES = {"bare": (2, 2), "plot": (1, 1)}


@pytest.fixture(scope="session")
def screenshots():
    place = Path(os.environ.get("EXECPY_BUILD", HERE.parent.parent / "build")) / "page"
    place.mkdir(parents=True, exist_ok=True)
    return place


class Browser:
    """tests/page/driver.mjs: one process for all scenarios."""

    def __init__(self, screenshots):
        node.packages()
        self.screenshots = screenshots
        self.process = subprocess.Popen([node.program(), HERE / "driver.mjs"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        witness.exempt.add(self.process.pid)

    def play(self, scenario, url, **order):
        order = {"scenario": scenario, "url": url, "screenshots": str(self.screenshots),
                 "slow": SLOW, **order}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["passed"], answer["said"]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        witness.exempt.discard(self.process.pid)


@pytest.fixture(scope="session")
def browser(screenshots):
    browser = Browser(screenshots)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def server(product):
    server = Server(product, product.directory("page"), configuration(TEMPLATES))
    yield server
    server.close()
