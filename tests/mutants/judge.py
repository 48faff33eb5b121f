# SPDX-License-Identifier: Apache-2.0
"""Tests as meson knows them, run one at a time with a mistake switched on or without."""

import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from tables import Wrong

SKIPPED = 77
LIMIT_LEAST, LIMIT_TIMES = 30, 8  # A test that takes this much longer than without mistakes hangs.
LIMIT_MOST = 300  # So does one that takes as long without a mistake.


@dataclasses.dataclass
class Test:
    name: str
    suites: set
    command: list
    environment: dict
    depends: list
    limit: float
    tap: bool
    seconds: float = 0
    reached: frozenset = frozenset()  # names of mistakes whose places it passes


def read_tests(build):
    """{name: test}"""
    found = {}
    for row in build.introspect("tests"):
        name = row["name"].split(":")[-1].strip()
        suites = {suite.split(":")[-1] for suite in row["suite"]}
        found[name] = Test(name, suites, row["cmd"], row["env"], row["depends"], row["timeout"] or 600,
                           row["protocol"] == "tap")
    return found


def choose(mistake, tests, only=None):
    """The unit tests of a mistake's folder, and the tests and suites that its table names; or only some."""
    chosen = [test for test in tests.values() if not only and {"unit", mistake.table} <= test.suites]
    for word in only or mistake.tests:
        found = [test for test in tests.values() if word == test.name or word in test.suites]
        if not found:
            raise Wrong(f"{mistake}: '{word}' is neither a test nor a suite; 'meson test --list' has them")
        chosen += [test for test in found if test not in chosen]
    if not chosen:
        raise Wrong(f"{mistake} has no tests: its folder has no unit suite, and its table names none")
    return chosen


def end_session(leader):
    """Kills what a test has started: Check puts each of its own in a process group."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader:
                    os.kill(int(entry.name), signal.SIGKILL)
            except (OSError, IndexError):
                pass  # It has ended.


def run(test, build, mutant=None, reached=None, limit=None):
    """'passed', 'failed', 'hung' or 'skipped', the seconds and what it printed."""
    limit = limit or min(test.limit, LIMIT_MOST)
    temporary = tempfile.mkdtemp(prefix="mutants-")
    environment = {**os.environ, **test.environment, "GPULEDGER_SEED": "1", "TMPDIR": temporary,
                   "CK_DEFAULT_TIMEOUT": str(int(limit)), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("MUTANT", None)
    if mutant:
        environment["MUTANT"] = mutant
    if reached:
        environment["MUTANTS_REACHED"] = str(reached)
    begun = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(test.command, cwd=build.out, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status, verdict = process.wait(limit), None
        except subprocess.TimeoutExpired:
            status, verdict = None, "hung"
        end_session(process.pid)
        process.wait()
        out.seek(0)
        printed = out.read().decode(errors="replace")
    shutil.rmtree(temporary, ignore_errors=True)
    if verdict is None:
        broken = status != 0 or (test.tap and re.search(r"^not ok(?!.*# TODO)", printed, re.M))
        verdict = "skipped" if status == SKIPPED else "failed" if broken else "passed"
        if verdict == "failed" and "Test timeout expired" in printed:
            verdict = "hung"
    return verdict, time.monotonic() - begun, printed


def learn(test, build):
    """Runs a test without mistakes: how long it takes and which places it passes. Returns the verdict and why."""
    reached = build.folder / f"reached-{test.name}"
    reached.unlink(missing_ok=True)
    verdict, test.seconds, printed = run(test, build, reached=reached)
    test.reached = frozenset(reached.read_text().split()) if reached.exists() else frozenset()
    reached.unlink(missing_ok=True)
    return verdict, printed


def limit_of(test):
    return min(test.limit, LIMIT_MOST, max(LIMIT_LEAST, LIMIT_TIMES * test.seconds))


def why(printed):
    """The line of a test's output that says most."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"not ok|FAIL|AssertionError|\S*Error\b", line)
               or re.search(r"Assertion .*failed| FAIL|ERROR:", line)]
    return (telling or lines or ["it printed nothing"])[0][:160]
