#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A part and a gate are added by one folder: the program with tests/gates beside src/gate asks them everywhere, and
nothing else about it has changed."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cli")]

# pylint: disable=wrong-import-position
import program  # noqa: E402
from program import Server, call, listing, node, pod  # noqa: E402

PLAIN, EXAMPLE = os.environ["GPULEDGER"], os.environ["EXAMPLE"]
HELP = "--help-all"
TEXT = "The node has started as many pods as it may for other namespaces"


def running(name, amount, where, card, **extra):
    one = pod(name, amount, **extra)
    one["metadata"].setdefault("annotations", {})["ALIYUN_COM_GPU_MEM_IDX"] = card
    one["spec"]["nodeName"] = where
    one["status"] = {"phase": "Running"}
    return one


def of(namespace, one):
    one["metadata"]["namespace"] = namespace
    return one


class Example(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.addCleanup(setattr, program, "PROGRAM", program.PROGRAM)
        program.PROGRAM = EXAMPLE
        self.saved = self.directory / "saved.json"
        self.saved.write_text(listing(node("n1", 1, 8), node("n2", 1, 8), of("ml", running("a", 2, "n1", "0")),
                                      of("web", pod("b", 2))))

    def serve(self, *arguments):
        return Server("--pods-left=1", *arguments, snapshot=self.saved)

    def test_verbs_ask_it(self):
        with self.serve() as server:
            answer = server.filter(of("web", pod("b", 2)), ["n1", "n2"])
            self.assertEqual((answer["NodeNames"], answer["FailedAndUnresolvableNodes"]), (["n2"], {"n1": TEXT}))
            answer = server.filter(of("ml", pod("c", 2)), ["n1", "n2"])
            self.assertIn("n1", answer["NodeNames"])
            victims = server.preempt(of("web", pod("b", 8)), {"n1": ["uid-a"]})
            self.assertEqual(victims, {})
            self.assertIn('gpuledger_refusals_total{reason="pods_left"} 1', server.get("/metrics")[1])

    def test_people_are_told(self):
        with self.serve() as server:
            told = json.loads(server.get("/api/v1/explain?pod=web/b")[1])
            n1 = next(each for each in told["nodes"] if each["name"] == "n1")
            self.assertEqual((n1["reason"], n1["why"]),
                             ("pods_left", "has started 1 pods, the last of namespace ml"))
            base = server.address("operations")
            self.assertEqual(call("POST", f"{base}/api/v1/nodes/n1/resume")[0], 200)
            answer = server.filter(of("web", pod("b", 2)), ["n1", "n2"])
            self.assertEqual(sorted(answer["NodeNames"]), ["n1", "n2"])

    def test_it_is_recorded_and_replayed(self):
        record = self.directory / "record.jsonl"
        with self.serve(f"--record={record}", "--record-max=64KiB") as server:
            for _ in range(300):  # so that a file begins with what is known by then
                server.filter(of("web", pod("b", 2)), ["n1", "n2"])
            server.signal(15)
            self.assertEqual(server.exit_code(), 0)
        kinds = [json.loads(line)["kind"] for line in record.read_text().splitlines()]
        self.assertIn("pods-left", kinds)
        done = subprocess.run([EXAMPLE, "replay", "-ojson", record], stdout=subprocess.PIPE, check=True)
        said = json.loads(done.stdout)
        self.assertEqual((said["different"], said["lost"]), (0, 0), said)

    def test_help(self):
        told = [subprocess.run([which, "serve", HELP], stdout=subprocess.PIPE, text=True, check=False).stdout
                for which in (PLAIN, EXAMPLE)]
        self.assertNotIn("--pods-left", told[0])
        self.assertIn("--pods-left", told[1])

    def test_two_at_one_position_are_an_error(self):
        sources = [self.directory / f"{name}.c" for name in ("b", "a")]
        for source in sources:
            source.write_text(f"GATE_ROW({source.stem},\n         5); /* as a formatter may leave it */\n")
        done = subprocess.run(["python3", ROOT / "src/table.py", "gate", self.directory / "table.c.new",
                               self.directory, "--", *sources], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "table.py: the gates a and b have the same position, 5\n"))

    def test_the_program_without_it_does_not_know_it(self):
        self.assertNotIn(b"pods_left", pathlib.Path(PLAIN).read_bytes())


if __name__ == "__main__":
    unittest.main()
