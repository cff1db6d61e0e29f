# SPDX-License-Identifier: Apache-2.0
"""Policy files, and the documents that are made from the tables."""
import subprocess

import pytest

import verdicts
from verdicts import TOOL, blocked, verify


def load(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return path


def test_a_file_changes_a_profile(tmp_path):
    policy = load(tmp_path, """
# what the lab allows
name: lab
profile: strict
rules:
  process: warn        # told, not refused
  undefined-name: off
modules:
  requests: allow
  turtle: block
calls:
  os.getlogin: allow
  numpy.linalg.inv: warn
paths:
  read: [/data, /etc/hostname]
  write:
    - /data/out
""")
    assert not blocked(verify("import subprocess\nsubprocess.run('x')\nprint(nothing)", policy))
    assert verify("print(nothing)", policy)["findings"] == []
    assert not blocked(verify("import requests\nrequests.get('http://x')", policy))
    assert blocked(verify("import turtle\nturtle.forward(1)", policy))
    assert not blocked(verify("import os\nos.getlogin()", policy))
    assert blocked(verify("import os\nos.nice(1)", policy))
    found = verify("import numpy as np\nnp.linalg.inv([[1]])", policy)["findings"]
    assert [f["severity"] for f in found] == ["warn"]
    assert not blocked(verify("open('/etc/hostname')", policy))
    assert blocked(verify("open('/etc/hostname2')", policy))
    assert not blocked(verify("open('/data/out/x', 'w')", policy))
    assert blocked(verify("open('/data/in', 'w')", policy))


@pytest.mark.parametrize("text, line, column, words", [
    ("profile: strict\nrulez: {}\n", 2, 1, "there is no key 'rulez'"),
    ("profile: strickt\n", 1, 10, "there is no profile 'strickt'"),
    ("profile: strict\nrules:\n  proces: warn\n", 3, 3, "there is no rule 'proces'"),
    ("profile: strict\nrules:\n  process: maybe\n", 3, 12, "'maybe' is no severity"),
    ("profile: strict\nrules:\n  process: warn\n  process: off\n", 4, 3, "stands here twice"),
    ("profile: strict\nprofile: open\n", 2, 1, "stands here twice"),
    ("profile: strict\nmodules:\n  1x: block\n", 3, 3, "is no dotted name"),
    ("profile: strict\nmodules: [a]\n", 2, 10, "must be a mapping"),
    ("profile: strict\npaths:\n  read: [data]\n", 3, 10, "must begin with /"),
    ("profile: strict\npaths:\n  exec: [/x]\n", 3, 3, "there is no key 'exec'"),
    ("profile: strict\npaths:\n  write: [/]\n", 3, 11, "would allow everything"),
    ("rules: {process: warn}\nprofile: open\n", 2, 1, "must stand before"),
    ("name: x\n", 1, 1, "'profile' is missing"),
    ("", 1, 1, "empty"),
    ("- a\n", 1, 1, "is a mapping"),
    ("profile: &a strict\n", 1, 10, "anchors and tags"),
    ("profile: !!str strict\n", 1, 10, "anchors and tags"),
    ("profile: strict\n---\nprofile: open\n", 2, 1, "second document"),
    ("profile: strict\nrules: {nul-byte: off}\n", 2, 19, "always blocks"),
    ("profile: strict\n\tname: x\n", 2, 1, ""),
    ("profile: {a: b}\n", 1, 10, "must be one word"),
])
def test_errors_have_a_place(tmp_path, text, line, column, words):
    path = load(tmp_path, text)
    done = subprocess.run([TOOL, "--policy", str(path), "-"], input=b"", capture_output=True)
    message = done.stderr.decode()
    assert done.returncode == 2
    assert message.startswith(f"{path}:{line}:{column}: "), message
    assert words in message


def test_a_policy_that_is_not_there(tmp_path):
    done = subprocess.run([TOOL, "--policy", "strcit", "-"], input=b"", capture_output=True)
    assert done.returncode == 2 and b"neither strict, standard, open nor a file" in done.stderr
    done = subprocess.run([TOOL, "--policy", str(tmp_path), "-"], input=b"", capture_output=True)
    assert done.returncode == 2 and b"no regular file" in done.stderr


def test_the_example_of_the_document_works(tmp_path):
    text = (verdicts.SOURCE / "docs/policies.md").read_text()
    for block in text.split("```yaml\n")[1:]:
        path = load(tmp_path, block.split("```")[0])
        assert verify("x = 1", path)["decision"] == "allow"


def test_the_document_of_rules_is_fresh():
    made = subprocess.run([TOOL, "--rules-md"], capture_output=True, check=True).stdout.decode()
    assert made == (verdicts.SOURCE / "docs/rules.md").read_text(), \
        "run: verify-tool --rules-md > docs/rules.md"
