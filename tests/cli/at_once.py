# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a file several at a time, for files whose tests wait more than they compute:
`unittest.main(testRunner=AtOnce(8))`. Each test has a thread, so it may share nothing with another.
"""

import concurrent.futures
import time
import unittest


def each(suite):
    """The tests in it, one by one."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def run_one(test):
    """(result, title, seconds)."""
    began = time.monotonic()
    result = unittest.TestResult()
    test(result)
    return result, test.id().removeprefix("__main__."), time.monotonic() - began


class AtOnce:
    """A runner for unittest.main. Prints TAP in the order in which tests end."""

    def __init__(self, n):
        self.n = n

    def run(self, suite):
        total = unittest.TestResult()
        with concurrent.futures.ThreadPoolExecutor(self.n) as pool:
            ends = concurrent.futures.as_completed([pool.submit(run_one, test) for test in each(suite)])
            for number, end in enumerate(ends, 1):
                result, title, seconds = end.result()
                wrong = [text for _, text in (*result.failures, *result.errors)]
                wrong += ["unexpected success"] * bool(result.unexpectedSuccesses)
                skipped = "".join(f" # SKIP {why}" for _, why in result.skipped)
                print(f"{'not ok' if wrong else 'ok'} {number} - {title}{skipped}\n# {seconds:.1f} s", flush=True)
                for text in wrong:
                    print("# " + text.rstrip().replace("\n", "\n# "), flush=True)
                total.failures += result.failures
                total.errors += result.errors
                total.unexpectedSuccesses += result.unexpectedSuccesses
                total.testsRun += result.testsRun
        print(f"1..{total.testsRun}", flush=True)
        return total
