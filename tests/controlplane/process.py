# SPDX-License-Identifier: Apache-2.0
"""The programs of a control plane as processes.

Every process is recorded in a pid file together with its start time, and only such a process is
ever signalled.
"""

import contextlib
import os
import pathlib
import signal
import subprocess

from kubeapi import wait_for

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 20


class ControlPlaneError(Exception):
    """The programs are missing, or one of them did not start."""


def _stat(pid):
    """The fields of /proc/PID/stat from the state on; None when it is gone or a zombie."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields


def _start_time(pid):
    """When a process began, in clock ticks since boot; None when it is gone or a zombie."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


class Process:
    """A background process with a log file and a pid file; survives the Python that started it."""

    def __init__(self, name, folder):
        self.name = name
        self.log = folder / f"{name}.log"
        self.pid_file = folder / f"{name}.pid"
        self._child = None

    def pid(self):
        """The pid while the recorded process runs, else None."""
        try:
            pid, started = map(int, self.pid_file.read_text().split())
        except (OSError, ValueError):
            return None
        if self._child is not None:
            self._child.poll()
        return pid if _start_time(pid) == started else None

    def cpu_seconds(self):
        """What all its threads have used, also those that have ended; 0 when it does not run."""
        fields = _stat(self.pid())
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0

    def start(self, argv, env=None, pass_fds=()):
        if self.pid() is not None:
            raise ControlPlaneError(f'"{self.name}" already runs as process {self.pid()}')
        with open(self.log, "ab") as log:
            self._child = subprocess.Popen(
                [str(arg) for arg in argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        self.pid_file.write_text(f"{self._child.pid} {_start_time(self._child.pid) or 0}\n")

    def stop(self, how=signal.SIGTERM, timeout=STOP_TIMEOUT_S):
        """Signal the process and wait for its end; SIGKILL once `timeout` seconds have passed. Returns its
        exit status as subprocess has it; None for one that another Python has started, or nobody."""
        status = None
        pid = self.pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
            try:
                wait_for(lambda: self.pid() is None, timeout, 0.02)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                wait_for(lambda: self.pid() is None, 10, 0.02, f'end of "{self.name}"')
        if self._child is not None:
            status = self._child.wait()
            self._child = None
        self.pid_file.unlink(missing_ok=True)
        return status

    def await_ready(self, probe, timeout=START_TIMEOUT_S):
        """Wait until `probe` is true; ControlPlaneError with the log's tail when it never is."""

        def check():
            if self.pid() is None:
                raise ControlPlaneError(f'"{self.name}" ended at its start:\n{self.tail()}')
            return probe()

        try:
            wait_for(check, timeout, 0.05)
        except TimeoutError:
            raise ControlPlaneError(
                f'"{self.name}" is not ready after {timeout} s:\n{self.tail()}'
            ) from None

    def tail(self, lines=15):
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:]) + f"\n(all of it: {self.log})"
