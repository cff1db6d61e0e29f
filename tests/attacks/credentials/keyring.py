# SPDX-License-Identifier: Apache-2.0
#| id = "C06"
#| title = "Keys in the session keyring of the caller"
#| does = "keyctl, add_key and request_key are refused with EPERM (the harness runs execpy with a key in its session in test_inheritance.py)."
#| needs = ["keyrings"]
#| [expect]
#| status = "ok"
#| verdicts = {add = "DENIED (EPERM|ENOSYS)", request = "DENIED (EPERM|ENOSYS)", read = "DENIED (EPERM|ENOSYS)", join = "DENIED (EPERM|ENOSYS)"}
#| [control]
#| kind = "plain"
#| verdicts = {add = "DID", request = "DID", read = "DID", join = "DID"}
PROCESS_KEYRING = -2
attempt("add", syscall, "add_key", "user", "@MARK@", "x", 1, PROCESS_KEYRING)
attempt("request", syscall, "request_key", "user", "@MARK@", None, 0)
attempt("read", syscall, "keyctl", 11, PROCESS_KEYRING, ctypes.create_string_buffer(64), 64, 0)
attempt("join", syscall, "keyctl", 1, None, 0, 0, 0)
