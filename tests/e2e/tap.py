# SPDX-License-Identifier: Apache-2.0
"""Results in the Test Anything Protocol, one line per check."""

import sys
import time


class Tap:
    def __init__(self, out=sys.stdout):
        self._out = out
        self._count = 0
        self._start = time.monotonic()
        self.failed = 0
        self.todo = None  # why checks may fail for now

    def ok(self, passed, text, detail=None):
        """One check; `detail` is shown when it failed. Returns whether it passed."""
        self._count += 1
        text = "; ".join(filter(None, text.replace("#", "").splitlines()))  # of which neither may be in a line
        todo = f" # TODO {self.todo}" if self.todo and not passed else ""
        self._print(f"{'ok' if passed else 'not ok'} {self._count} - {text}{todo}")
        if not passed:
            self.failed += not todo
            if detail is not None:
                self.note(detail)
            if not todo:  # of a runner that shows no more than the errors
                print(f"not ok {self._count} - {text}\n{str(detail)[:4000]}", file=sys.stderr, flush=True)
        return bool(passed)

    def equal(self, got, wanted, text):
        return self.ok(got == wanted, text, f"got {got!r}\nwanted {wanted!r}")

    def note(self, text):
        seconds = time.monotonic() - self._start
        lines = str(text).splitlines()
        for line in lines[:40]:
            self._print(f"# {seconds:6.1f}s {line}")
        if len(lines) > 40:
            self._print(f"# … {len(lines) - 40} lines more")

    def plan(self):
        self._print(f"1..{self._count}")

    def skip_all(self, why):
        self._print(f"1..0 # SKIP {why}")

    def _print(self, line):
        print(line, file=self._out, flush=True)
