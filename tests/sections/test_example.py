#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A section is added by a header and a source: the program with tests/sections/example_section.c beside those of
src has its options everywhere, and nothing else has changed."""

import difflib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAIN, EXAMPLE = os.environ["GPULEDGER"], os.environ["EXAMPLE"]
NAMES = ["example", "example-pace", "example-names"]


def run(program, *arguments, **env):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env})


def changes(*arguments):
    """The lines that are gone, and those that are new, of what the two programs print."""
    lines = list(difflib.ndiff(*(run(which, *arguments).stdout.splitlines() for which in (PLAIN, EXAMPLE))))
    return ([line[2:] for line in lines if line.startswith("- ")],
            [line[2:] for line in lines if line.startswith("+ ")])


class Example(unittest.TestCase):
    def test_help(self):
        self.assertEqual(changes("serve", "--help"), ([], []))
        gone, new = changes("serve", "--help-all")
        self.assertEqual(gone, [])
        self.assertIn("An example:", new)
        self.assertEqual([line.split()[0] for line in new if line.startswith("      --")],
                         [f"--{name}" for name in NAMES])
        self.assertIn("          [default 30s; environment GPULEDGER_EXAMPLE_PACE]", new)
        self.assertIn("      --example-names NAME,...", changes("plan", "--help")[1])
        self.assertEqual(changes("nodes", "--help"), ([], []))

    def test_schema_and_documents(self):
        before, after = (json.loads(run(which, "serve", "--print-schema").stdout) for which in (PLAIN, EXAMPLE))
        added = {name: after["properties"].pop(name) for name in NAMES}
        self.assertEqual(after, before)
        self.assertEqual(added["example"]["type"], "boolean")
        self.assertEqual(added["example-pace"]["default"], "30s")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("charts", "manifests"):
                shutil.copytree(ROOT / name, pathlib.Path(folder) / name)
            subprocess.run(["python3", ROOT / "charts/write.py", EXAMPLE, folder], check=True)
            values = pathlib.Path(folder) / "charts/gpuledger/values.schema.json"
            self.assertIn("example-pace", json.loads(values.read_text())["properties"]["config"]["properties"])

    def test_values_come_from_everywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "gpuledger.yaml"
            file.write_text("example: true\nexample-pace: 20s\nexample-names: a\n")
            said = run(EXAMPLE, "serve", "--print-config", f"--config={file}", "--example-names=b",
                       GPULEDGER_EXAMPLE_PACE="40s")
            self.assertEqual(said.stderr, "")
            said = {line.split(":")[0]: line for line in said.stdout.splitlines()}
            self.assertRegex(said["example"], rf"^example: true +# file {file}$")
            self.assertRegex(said["example-pace"], r'^example-pace: "40s" +# environment GPULEDGER_EXAMPLE_PACE$')
            self.assertRegex(said["example-names"], r'^example-names: "b" +# command line$')
            wrong = run(PLAIN, "serve", "--print-config", f"--config={file}")
            self.assertIn("unknown key 'example'", wrong.stderr)

    def test_it_is_checked(self):
        both = run(EXAMPLE, "serve", "--print-config", "--example", "--admission")
        self.assertEqual((both.returncode, both.stderr), (2, "gpuledger: 'example' and 'admission' are both set\n"))
        self.assertIn("from 1s to 1m", run(EXAMPLE, "serve", "--example-pace=2m").stderr)

    def test_manual_and_completion(self):
        for words in (("man",), *(("completion", shell) for shell in ("bash", "zsh", "fish"))):
            gone, new = changes(*words)
            self.assertIn("example", "\n".join(new).replace("\\-", "-"), words)
            if words == ("man",):
                self.assertEqual(gone, [])

    def test_two_of_one_rank_are_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a", "b"):
                (pathlib.Path(folder) / f"{name}_section.h").write_text(f"SECTION_ROW({name}, 5);\n")
            done = subprocess.run(["python3", ROOT / "src/options/sections.py", f"{folder}/table.c", folder],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "sections.py: the sections a and b have the same rank, 5\n"))


if __name__ == "__main__":
    unittest.main()
