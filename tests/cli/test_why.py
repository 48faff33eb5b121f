#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands in docs/*.md write what stands below them; `test_why.py --write` writes it."""

import os
import re
import shlex
import subprocess
import sys
import unittest

from program import PATIENCE, PROGRAM, ROOT, environment

PAGES = sorted((ROOT / "docs").glob("*.md"))
EXPLAIN = ROOT / "docs" / "explain.md"
BLOCK = re.compile(r"```console\n\$ gpuledger (.*)\n(?:.*\n)*?```\n")


def answer(match):
    """The block as it should be."""
    result = subprocess.run([PROGRAM, *shlex.split(match[1])], cwd=ROOT, env=environment(),
                            capture_output=True, text=True, timeout=PATIENCE, check=False)
    if result.stderr or result.returncode not in (0, 3):
        raise AssertionError((match[1], result.returncode, result.stderr))
    return f"```console\n$ gpuledger {match[1]}\n{result.stdout}```\n"


class Why(unittest.TestCase):
    maxDiff = None

    def test_each_page_is_what_the_program_writes(self):
        commands = []
        for page in PAGES:
            text = page.read_text()
            with self.subTest(page=page.name):
                self.assertEqual(BLOCK.sub(answer, text), text)
                found = [match[1].split()[0] for match in BLOCK.finditer(text)]
                self.assertEqual(text.count("```console"), len(found))
                commands += found
        self.assertLessEqual({"explain", "fit"}, set(commands))

    def test_each_command_that_explain_prints_works(self):
        """Of the examples, on the cluster of the example: plan finds what explain has found."""
        printed = []
        for example in BLOCK.finditer(EXPLAIN.read_text()):
            words = shlex.split(example[1])
            if words[0] != "explain":
                continue
            cluster = words[words.index("--snapshot"):]
            for command in re.findall(r"^'gpuledger (.*?)'", example[0], re.MULTILINE):
                result = subprocess.run([PROGRAM, *shlex.split(command), *cluster], cwd=ROOT, env=environment(),
                                        capture_output=True, text=True, timeout=PATIENCE, check=False)
                self.assertEqual((result.returncode, result.stderr), (0, ""), (command, result.stdout))
                printed.append(command)
        self.assertTrue(any("--end" in command for command in printed), printed)

    def test_every_pod_that_waits_is_explained(self):
        cluster = (ROOT / "examples" / "why" / "cluster.yaml").read_text()
        waiting = re.findall(r"namespace: (research)\n  name: (.*)\n", cluster)
        self.assertGreater(len(waiting), 1)
        for namespace, name in waiting:
            self.assertIn(f"explain pod {namespace}/{name} ", EXPLAIN.read_text())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PROGRAM = os.path.abspath(PROGRAM)
        for each in PAGES:
            each.write_text(BLOCK.sub(answer, each.read_text()))
    else:
        unittest.main()
