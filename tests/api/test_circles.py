#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No files of the program call one another round in a circle: each can be read after those that it needs."""

import os
import pathlib
import re
import subprocess

from common import main

DEFINED = "TDBRCV"


def symbols(archive):
    """Of each object in it, what it defines and what it needs."""
    found = {}
    out = subprocess.run(["nm", "-A", archive], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        match = re.match(r".*[:/]([^:/]+)\.o:[0-9a-f ]* (\w) (\S+)$", line)
        if not match:
            continue
        defined, needed = found.setdefault(match[1], (set(), set()))
        if match[2] == "U":
            needed.add(match[3])
        elif match[2] in DEFINED:
            defined.add(match[3])
    return found


def read_calls(archives):
    """Whom each file of the program calls: folder/file -> folder/files."""
    objects = {f"{archive.parent.name}/{name}": both for archive in archives
               for name, both in symbols(archive).items()}
    owner = {symbol: name for name, (defined, _) in objects.items() for symbol in defined}
    return {name: {owner[symbol] for symbol in needed if owner.get(symbol, name) != name}
            for name, (_, needed) in objects.items()}


def find_circles(calls):
    """Strongly connected parts of more than one file."""
    index, low, stack, circles = {}, {}, [], []

    def visit(name):
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in calls[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            part, stack[at:] = stack[at:], []
            if len(part) > 1:
                circles.append(sorted(part))

    for name in calls:
        if name not in index:
            visit(name)
    return circles


def check(tap):
    tap.equal(find_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}), [["b", "c"]], "it would notice")
    archives = sorted(pathlib.Path(os.environ["GPULEDGER_LIBRARIES"]).glob("*/*.a"))
    calls = read_calls(archives)
    tap.ok(len(calls) > 100, "the program's files are found", str(len(calls)))
    circles = find_circles(calls)
    tap.ok(not circles, "no circle of files that call each other", "\n".join(map(str, circles)))


if __name__ == "__main__":
    main(check)
