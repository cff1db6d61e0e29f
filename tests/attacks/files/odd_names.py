# SPDX-License-Identifier: Apache-2.0
#| id = "F12"
#| title = "File names of 255 bytes, with newline, escape, bytes that are not UTF-8, right-to-left marks"
#| does = "No crash, valid JSON, no control character anywhere; each is handed out or refused with a reason."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {long = "DID", newline = "DID", escape = "DID", bytes = "DID", rtl = "DID", dash = "DID", space = "DID", json = "DID"}
#| files = ["plain.txt"]
#| [control]
#| kind = "plain"
#| verdicts = {long = "DID", newline = "DID", escape = "DID", bytes = "DID", rtl = "DID", dash = "DID", space = "DID", json = "DID"}
def make(name):
    with open(name, "wb") as file:
        file.write(b"x")


make("plain.txt")
for name, file in {
        "long": b"n" * 255, "newline": b"a\nb", "escape": b"\x1b[31mred\x1b]0;title\x07",
        "bytes": b"\xff\xfe\x80", "rtl": "\u202egpj.exe".encode(), "dash": b"--out",
        "space": b" ", "json": b'","sha256":"'}.items():
    attempt(name, make, file)
