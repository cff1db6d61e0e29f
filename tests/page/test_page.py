# SPDX-License-Identifier: Apache-2.0
"""The page: each scenario as a user meets it, in a browser, on a real daemon.

Screenshots are in page/ of the build directory. With --full and EXECPY_PICTURE=1 docs/page.png is
made anew."""
import filecmp
import http.client
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import host, node
from harness.web import keyed_server

HERE = Path(__file__).resolve().parent
SOURCES = host.REPOSITORY / "src/server/page"
SCENARIOS = sorted(path.stem for path in (HERE / "scenarios").glob("*.mjs"))
OF_THEIR_OWN = {"key", "picture"}
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8",
               ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@pytest.mark.parametrize("scenario", sorted(set(SCENARIOS) - OF_THEIR_OWN))
def test_scenario(browser, server, scenario):
    browser.play(scenario, server.url)


@pytest.mark.full
def test_picture(browser, server, screenshots):
    place = host.REPOSITORY / "docs" if "EXECPY_PICTURE" in os.environ else screenshots
    browser.play("picture", server.url, picture=str(place / "page.png"))


def test_key(browser, product):
    key = "execpy_" + "k" * 43
    with keyed_server(product, "page-keys", {"ada": key}, {}) as server:
        browser.play("key", server.url, key=key)


# -- how it is served ---------------------------------------------------------------------------

def ask(server, method, path, **fields):
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    client.request(method, path, headers=fields)
    response = client.getresponse()
    body = response.read()
    client.close()
    return response, body


def directives(response):
    policy = response.getheader("Content-Security-Policy")
    return {name: values for name, *values in (part.split() for part in policy.split(";"))}


@pytest.mark.parametrize("name", sorted(path.name for path in SOURCES.iterdir()
                                        if path.suffix in MEDIA_TYPES))
def test_file(server, name):
    path = "/" if name == "index.html" else f"/page/{name}"
    response, body = ask(server, "GET", path)
    assert response.status == 200
    assert body == (SOURCES / name).read_bytes()
    assert response.getheader("Content-Type") == MEDIA_TYPES[Path(name).suffix]
    assert response.getheader("X-Content-Type-Options") == "nosniff"
    assert response.getheader("Cache-Control") == "no-cache"
    assert response.getheader("Referrer-Policy") == "no-referrer"
    assert response.getheader("Cross-Origin-Opener-Policy") == "same-origin"
    assert "camera=()" in response.getheader("Permissions-Policy")

    policy = directives(response)
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert policy["script-src"] == ["'self'"]
    assert policy["require-trusted-types-for"] == ["'script'"]
    if name == "guest.html":
        assert policy["frame-ancestors"] == ["'self'"] and "connect-src" not in policy
    else:
        assert policy["style-src"] == ["'self'"] and policy["frame-ancestors"] == ["'none'"]

    tag = response.getheader("ETag")
    for had, status in ((tag, 304), (f'"other", W/{tag}', 304), ("*", 304), ('"other"', 200)):
        response, body = ask(server, "GET", path, **{"If-None-Match": had})
        assert (response.status, body == b"") == (status, status == 304), had
        assert response.getheader("ETag") == tag
    response, body = ask(server, "HEAD", path)
    assert (response.status, body) == (200, b"")
    assert int(response.getheader("Content-Length")) == (SOURCES / name).stat().st_size


@pytest.mark.parametrize("path, status", [("/page/index.html", 404), ("/page/page.c", 404),
                                          ("/page/", 404), ("/page/..%2Fpage.css", 404),
                                          ("/page/page.css/", 404)])
def test_what_is_not_there(server, path, status):
    assert ask(server, "GET", path)[0].status == status


def test_nothing_is_written_in_place():
    """Documents have no script and no style of their own, and handlers of no kind."""
    for path in SOURCES.glob("*.html"):
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?:", text), path


# -- the bundle ---------------------------------------------------------------------------------

def test_bundle_is_made_from_the_lock_file(base):
    made = Path(tempfile.mkdtemp(dir=base)) / "codemirror.js"
    done = subprocess.run([node.program(), host.REPOSITORY / "tools/make_editor.mjs", made],
                          cwd=node.packages(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert filecmp.cmp(made, SOURCES / "codemirror.js", shallow=False), \
        "run tools/make_editor.mjs and commit what it makes"
    assert "MIT License" in made.read_text()[:2000]
