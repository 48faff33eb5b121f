#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A dialect is added by one file: the program with tests/dialects/example.c beside src/dialect knows it
everywhere, and nothing else about it has changed."""

import difflib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cli")]

# pylint: disable=wrong-import-position
import program  # noqa: E402
from program import Server, call, listing  # noqa: E402

PLAIN, EXAMPLE = os.environ["GPULEDGER"], os.environ["EXAMPLE"]
POLICIES = ("manifests/overlays/guard/policy.yaml", "manifests/overlays/own-writes/policy.yaml")
DOCUMENTS = ("README.md", "docs/dialects.md", *POLICIES, "api/config.schema.json")


def told(which, *arguments, codes=(0,)):
    done = subprocess.run([which, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode in codes, done
    return done.stdout


def changes(before, after):
    """The lines that are gone, and those that are new."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return ([line[2:] for line in lines if line.startswith("- ")],
            [line[2:] for line in lines if line.startswith("+ ")])


def node(name):
    resources = {"cards.example.com/count": "2", "cards.example.com/memory": "20000"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": resources, "allocatable": resources}}


def pod(name, amount):
    return {"kind": "Pod", "metadata": {"namespace": "test", "name": name, "uid": f"uid-{name}"},
            "spec": {"containers": [{"name": "main",
                                     "resources": {"limits": {"cards.example.com/memory": str(amount)}}}]},
            "status": {"phase": "Pending"}}


class Example(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.addCleanup(setattr, program, "PROGRAM", program.PROGRAM)
        program.PROGRAM = EXAMPLE

    def test_documents_have_it(self):
        for name in DOCUMENTS:
            (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.directory / name)
        write = [sys.executable, ROOT / "docs/write.py"]
        subprocess.run([*write, PLAIN, self.directory], check=True)
        for name in DOCUMENTS:
            self.assertEqual((self.directory / name).read_text(), (ROOT / name).read_text(), name)
        subprocess.run([*write, EXAMPLE, self.directory], check=True)
        new = {}
        for name in DOCUMENTS:
            gone, new[name] = changes((ROOT / name).read_text(), (self.directory / name).read_text())
            self.assertEqual(gone, [], name)
        self.assertEqual(new["README.md"], ["| `example` | `cards.example.com/memory` | yes |"])
        self.assertIn("## example", new["docs/dialects.md"])
        for name in POLICIES:
            self.assertIn("'cards.example.com/card',", "".join(new[name]))
        self.assertEqual(new["api/config.schema.json"], [])
        subprocess.run([*write, PLAIN, self.directory], check=True)
        for name in DOCUMENTS:
            self.assertEqual((self.directory / name).read_text(), (ROOT / name).read_text(), f"{name}: taken back")

    def test_pods_are_placed(self):
        snapshot = self.directory / "nodes.json"
        snapshot.write_text(listing(node("n0"), node("n1")))
        with Server("--policy=spread", snapshot=snapshot) as server:
            for name, amount, where in (("a", 6000, "n0"), ("b", 7000, "n0"), ("c", 9000, "n1")):
                asked = pod(name, amount)
                self.assertIn(where, server.filter(asked, ["n0", "n1"])["NodeNames"])
                call("POST", f"{server.operations}/api/v1/snapshot/pods", asked)
                self.assertEqual(server.bind(asked, where), {"Error": ""})
            answer = server.filter(pod("d", 5000), ["n0", "n1"])
            self.assertEqual(answer["NodeNames"], ["n1"])
            self.assertIn("n0", answer["FailedNodes"])
            seen = json.loads(server.get("/api/v1/nodes/n0")[1])
            self.assertEqual(seen["dialects"], ["example"])
            self.assertEqual(sorted(holder["name"] for holder in seen["pods"]), ["a", "b"])

    def test_another_dialect_is_told_its_words(self):
        snapshot, asked = self.directory / "nodes.json", self.directory / "asked.json"
        snapshot.write_text(listing(node("n0")))
        other = pod("a", 0)
        other["spec"]["containers"][0]["resources"]["limits"] = {"volcano.sh/gpu-memory": "4096"}
        asked.write_text(json.dumps(other))
        said = told(EXAMPLE, "explain", "-f", asked, "--snapshot", snapshot, "-ojson", codes=(3,))
        self.assertIn("cards.example.com/memory", said)


if __name__ == "__main__":
    unittest.main()
