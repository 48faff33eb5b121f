#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kind is added by one file: the program with tests/kinds/example.c beside src/store/kinds reads, sweeps, saves,
records and replays its objects, and nothing else about it has changed."""

import asyncio
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "faults"), str(HERE.parent / "cli")]

# pylint: disable=wrong-import-position
import apiserver  # noqa: E402
import cluster  # noqa: E402
import program  # noqa: E402
from program import Server, listing, node  # noqa: E402
from story import GONE, Story  # noqa: E402

EXAMPLE, AGAIN = os.environ["EXAMPLE"], os.environ["AGAIN"]
FAULT = {"apiVersion": "cards.example.com/v1", "kind": "CardFault", "metadata": {"namespace": "ops", "name": "a"},
         "spec": {"node": "n1", "cards": "1"}}


class Example(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        for module, name, value in ((program, "PROGRAM", EXAMPLE), (os.environ, "GPULEDGER", EXAMPLE)):
            if module is os.environ:
                self.addCleanup(module.__setitem__, name, module[name])
                module[name] = value
            else:
                self.addCleanup(setattr, module, name, getattr(module, name))
                setattr(module, name, value)
        apiserver.KINDS["cardfaults"] = "CardFault"
        self.addCleanup(apiserver.KINDS.pop, "cardfaults")

    async def asyncSetUp(self):
        self.story = Story(self.directory, [("cardfaults", copy.deepcopy(FAULT), {"spec": {"node": "n1", "cards": "0"}})])

    async def healthy(self, expected):
        """Until those are the healthy cards of n1."""
        for _ in range(1000):
            answer = await self.story.program.call("operations", "GET", "/api/v1/nodes/n1")
            seen = [card["index"] for card in answer["cards"] if card["healthy"]]
            if seen == expected:
                return
            await asyncio.sleep(0.02)
        self.fail(f"healthy are {seen}, not {expected}: " + "\n".join(self.story.program.log))

    async def test_it_is_read_and_swept(self):
        story, api = self.story, self.story.api
        api.put("cardfaults", copy.deepcopy(FAULT))
        await story.start()
        self.addAsyncCleanup(api.stop)
        self.addAsyncCleanup(story.program.end)
        await self.healthy([0])
        paths = {(each.sort, each.path) for each in api.sent}
        self.assertIn(("list", "/apis/cards.example.com/v1/cardfaults"), paths)
        self.assertIn('gpuledger_lists_total{feed="cardfaults"} 1', await story.program.text("operations", "/metrics"))
        api.change("cardfaults", ("ops", "a"), lambda one: one["spec"].update(cards="0"))
        await self.healthy([1])
        api.delete("cardfaults", ("ops", "a"))
        await self.healthy([0, 1])
        api.put("cardfaults", copy.deepcopy(FAULT))
        await self.healthy([0])
        api.delete("cardfaults", ("ops", "a"))
        api.compact()
        api.cut_all()
        await self.healthy([0, 1])

    async def test_it_is_recorded_and_replayed(self):
        record = self.directory / "story.jsonl"
        GONE.append("cardfault")
        self.addCleanup(GONE.remove, "cardfault")
        await self.story.play(record)
        done = await asyncio.to_thread(subprocess.run, [EXAMPLE, "replay", "-ojson", record], stdout=subprocess.PIPE,
                                       check=True)
        said = json.loads(done.stdout)
        self.assertEqual((said["different"], said["lost"]), (0, 0), said)
        again = {**os.environ, "RECORDS": str(self.directory), "MORE": "cardfault"}
        done = await asyncio.to_thread(subprocess.run, [AGAIN], env=again, stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_it_is_saved(self):
        saved, again = self.directory / "saved.json", self.directory / "again.json"
        saved.write_text(listing(node("n1", 2, 16), FAULT))
        with Server("--snapshot-out", again, snapshot=saved) as server:
            seen = json.loads(server.get("/api/v1/nodes/n1")[1])
            self.assertEqual([card["healthy"] for card in seen["cards"]], [True, False])
            server.signal(15)
            self.assertEqual(server.exit_code(), 0)
        kept = [one for one in json.loads(again.read_text())["items"] if one["kind"] == "CardFault"]
        self.assertEqual([one["spec"] for one in kept], [FAULT["spec"]])

    def test_the_program_without_it_does_not_know_it(self):
        self.assertNotIn(b"cardfaults", pathlib.Path(cluster.PROGRAM).read_bytes())


if __name__ == "__main__":
    unittest.main()
