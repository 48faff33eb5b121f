#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The options that there are, with what they take, their defaults and variables, are those of options.txt.

`GPULEDGER=build/gpuledger python3 tests/cli/test_options.py --write` writes it anew."""

import pathlib
import re
import sys
import unittest

from program import explain, run

LIST = pathlib.Path(__file__).with_name("options.txt")
OPTION = re.compile(r"^ +(?:-(\w), )?--([a-z-]+)(?: (\S+))?$")


def options_of(command):
    """{what an option is: the command} of those that its help lists."""
    found, at = [], False
    for line in explain(command).stdout.splitlines():
        match = OPTION.match(line)
        if match:
            letter, name, takes = match.groups()
            found.append([f"--{name}" + (f" {takes}" if takes else "") + (f" -{letter}" if letter else "")])
            at = False
        elif found and (at or line.startswith(" " * 10 + "[")):
            at = not line.endswith("]")
            found[-1].append(line.strip())
    return [" ".join(words) for words in found]


def listed():
    takers = {}
    for command in re.findall(r"^  ([a-z]+) ", run("--help").stdout, re.MULTILINE):
        for option in options_of(command):
            takers.setdefault(option, []).append(command)
    return "".join(f"{option}: {' '.join(sorted(commands))}\n" for option, commands in sorted(takers.items()))


class Options(unittest.TestCase):
    maxDiff = None

    def test_the_set_is_the_same(self):
        self.assertEqual(listed(), LIST.read_text(encoding="utf-8"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        LIST.write_text(listed(), encoding="utf-8")
    else:
        unittest.main()
