#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the program to what plugins, schedulers and kubelet really do: a row for each thing that they do.

    test_rows.py            all rows, TAP
    test_rows.py --list     the table: row, what there is, what the real one does, what is answered, source
    test_rows.py NAME…      these, by a part of the name

A row with `known` fails today, with the reason. When it passes, the test fails until the mark is taken away.
"""

import concurrent.futures
import sys
import traceback

from stage import ROWS, Stage

import rows_hami  # noqa: F401 pylint: disable=wrong-import-order
import rows_kube  # noqa: F401 pylint: disable=wrong-import-order
import rows_others  # noqa: F401 pylint: disable=wrong-import-order
import rows_picking  # noqa: F401 pylint: disable=wrong-import-order

AT_ONCE = 12


def play(each):
    """What went wrong, or nothing."""
    try:
        with Stage() as stage:
            each.play(stage)
    except Exception:  # pylint: disable=broad-except
        return traceback.format_exc()
    return ""


def verdict(number, each, trouble):
    notes = [f"# {each.given}; really: {each.real}; so: {each.ours}", f"# {each.source}"]
    if not trouble and each.known:
        return [f"not ok {number} - {each.name}: passes now, take away its mark: {each.known}", *notes]
    if not trouble:
        return [f"ok {number} - {each.name}"]
    last = [f"# {line}" for line in trouble.rstrip().splitlines()[-6:]]
    known = f" # TODO {each.known}" if each.known else ""
    return [f"not ok {number} - {each.name}{known}", *notes, *last]


def main(arguments):
    if arguments == ["--list"]:
        for each in ROWS.values():
            print("\t".join((each.name, each.given, each.real, each.ours, each.source, each.known)))
        return 0
    rows = [each for each in ROWS.values() if not arguments or any(word in each.name for word in arguments)]
    print(f"1..{len(rows)}", flush=True)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for number, (each, trouble) in enumerate(zip(rows, pool.map(play, rows)), 1):
            lines = verdict(number, each, trouble)
            bad += bool(trouble) != bool(each.known)
            print("\n".join(lines), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
