# SPDX-License-Identifier: Apache-2.0
"""A process of the product on a terminal of its own: what a person types, and sees.

Every wait has an end: what does not come in time is a failure that shows what came instead."""
import contextlib
import fcntl
import os
import select
import signal
import termios
import time

PATIENCE_S = 20.0
PROMPTS = (">>> ", "... ")
CONTROL_C, CONTROL_D, UP = "\x03", "\x04", "\x1b[A"


class Terminal:
    def __init__(self, product, *args, env=None, **options):
        self.product = product
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, b"\x28\x00\x78\x00\x00\x00\x00\x00")  # 40 by 120

        def become_its_own():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.before = termios.tcgetattr(slave)
        self.process = product.start(*args, stdin=slave, stdout=slave, stderr=slave,
                                     preexec_fn=become_its_own, env={"TERM": "dumb", **(env or {})},
                                     **options)
        self.slave = slave  # kept open: else the end of the process takes what was not read
        self.seen, self.mark = "", 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        os.close(self.master)
        os.close(self.slave)

    def _read(self, seconds):
        if select.select([self.master], [], [], max(0, seconds))[0]:
            self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
            return True
        return False

    def type(self, text):
        os.write(self.master, text.encode())

    def line(self, text=""):
        self.type(text + "\n")

    def await_(self, text, seconds=PATIENCE_S):
        """Waits for a text behind all that was waited for before; what came up to it."""
        deadline = time.monotonic() + seconds * self.product.SLOW
        while text not in self.seen[self.mark:]:
            left = deadline - time.monotonic()
            assert left > 0 and (self._read(left) or time.monotonic() < deadline), \
                f"{text!r} does not come; since the last: {self.seen[self.mark:]!r}"
            ended = self.process.poll() is not None and not select.select([self.master], [], [], 0)[0]
            assert not ended or text in self.seen[self.mark:], \
                f"ended with {self.process.returncode} before {text!r}: {self.seen[self.mark:]!r}"
        end = self.seen.index(text, self.mark) + len(text)
        found = self.seen[self.mark:end]
        self.mark = end
        # What is typed between a prompt and the editor's own mode is shown twice.
        while text in PROMPTS and termios.tcgetattr(self.slave)[3] & termios.ICANON:
            assert time.monotonic() < deadline, f"no line is read behind {found!r}"
            time.sleep(0.005)
        return found.replace("\r\n", "\n")

    def ask(self, text, prompt=">>> "):
        """Types a line, and gives what is shown until the next prompt, without the line."""
        self.line(text)
        shown = self.await_(prompt)
        return shown.split("\n", 1)[-1].removesuffix(prompt)

    def end(self, seconds=PATIENCE_S):
        """Waits for the end of the process; its exit status. The rest is in `seen`."""
        deadline = time.monotonic() + seconds * self.product.SLOW
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"it does not end: {self.seen[self.mark:]!r}")
            self._read(0.02)
        while self._read(0):
            pass
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        return self.process.returncode
