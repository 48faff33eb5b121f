#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans that are carried out on a cluster in which anything may go wrong: each stops at what it does not
expect, says why, and leaves nothing behind.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

# pylint: disable=wrong-import-position
from apiserver import Fault  # noqa: E402
from moving import Moving  # noqa: E402
from program import PROGRAM, environment, pod  # noqa: E402


@contextlib.asynccontextmanager
async def cluster_of(**sizes):
    with tempfile.TemporaryDirectory() as directory:
        cluster = Moving(directory, **sizes)
        await cluster.start()
        try:
            yield cluster
        finally:
            await cluster.stop()


def crowded(cluster):
    """Two pods of 3 have to leave n1 for a pod of 8; there is room for one on each of two others."""
    cluster.web(3, "n1"), cluster.web(3, "n1", "db")  # pylint: disable=expression-not-assigned
    big = pod("big", 8)
    cluster.api.put("pods", big)


ROOMS = {"n1": 8, "n2": 4, "n3": 4, "n4": 2}


async def command(cluster, *words):
    """(exit status, what it prints, what it says)."""
    process = await asyncio.create_subprocess_exec(
        os.environ.get("GPULEDGER", PROGRAM), *map(str, words), f"--kubeconfig={cluster.api.kubeconfig()}",
        env=environment(), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE)
    printed, said = await asyncio.wait_for(process.communicate(), 100)
    return process.returncode, printed.decode(), said.decode()


class Command(unittest.IsolatedAsyncioTestCase):
    """gpuledger plan --apply."""

    async def apply(self, cluster, code, *words):
        status, printed, said = await command(cluster, "plan", "test/big", "--apply", "-o", "json", *words)
        self.assertEqual(status, code, said)
        self.assertEqual(cluster.marks(), [], "nothing is kept any more")
        return json.loads(printed), said

    async def test_carried_out(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            answer, said = await self.apply(cluster, 0)
            self.assertEqual((answer["moved"], len(answer["taken"]), cluster.where("big")), (2, 2, "n1"), said)
            for step, name in zip(answer["taken"], cluster.moves):
                self.assertEqual((step["name"], step["outcome"], step["from"], step["ready"]), (name, "moved", "n1", 1))
            self.assertEqual([name for name, _ in cluster.events("GPUPodMoved")], cluster.moves)
            told = cluster.events("GPUPlanMoved")
            self.assertEqual([name for name, _ in told], ["n1", "n1"])
            self.assertTrue(all(f"test/{name}" in text and "big" not in text for (_, text), name in
                                zip(told, cluster.moves)), told)

    async def stops(self, cluster, why, taken, *words):
        """It stops after so many evictions, and says why, there and in an Event."""
        answer, said = await self.apply(cluster, 1, *words)
        self.assertEqual(len(cluster.moves), taken, said)
        self.assertIn(why, said)
        self.assertIn("stopped", said)
        return answer

    async def test_a_step_is_refused(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.on_eviction = lambda n: cluster.api.faults.append(Fault("evict", "status", 403, "Forbidden"))
            answer = await self.stops(cluster, "said so", 1)
            self.assertEqual([step["outcome"] for step in answer["taken"]], ["moved", "failed"])
            self.assertIn("said so", answer["taken"][1]["why"])
            [(name, text)] = cluster.events("GPUPlanStopped")
            self.assertEqual(name, "n1")
            self.assertIn("said so", text)

    async def test_nobody_knows_what_came_of_a_step(self):
        """It may have been done, or not; asking again does no harm, and may tell."""
        for done in ("done-status", "status"):
            async with cluster_of(**ROOMS) as cluster:
                crowded(cluster)
                cluster.delay = 10
                cluster.api.faults += [Fault("evict", done, times=100)]
                answer = await self.stops(cluster, "", done == "done-status")
                self.assertEqual([step["outcome"] for step in answer["taken"]], ["failed"])
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.api.faults += [Fault("evict", "done-status", times=100)]
            answer, said = await self.apply(cluster, 0)
            self.assertEqual(answer["moved"], 2, said)

    async def test_an_audit_finds_something_meanwhile(self):
        """Wherever it is: on a node that the plan never touches."""
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.on_eviction = lambda n: cluster.foreign("n4")
            answer = await self.stops(cluster, "foreign n4 test/foreign", 1)
            self.assertEqual([step["outcome"] for step in answer["taken"]], ["moved"])

    async def test_an_audit_found_something_before(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.foreign("n4")
            answer, said = await self.apply(cluster, 0)
            self.assertEqual((answer["moved"], cluster.where("big")), (2, "n1"))
            self.assertEqual(said.count("the audit has found before: foreign n4 test/foreign"), 1, said)

    async def test_an_audit_found_something_on_a_node_of_a_move(self):
        async with cluster_of(n1=8, n2=5, n3=5) as cluster:
            crowded(cluster)
            cluster.foreign("n3")
            await self.stops(cluster, "about a node of the next move: foreign n3 test/foreign", 0)

    async def test_the_extender_has_found_something(self):
        """What its ledger has is asked for, if it is named."""
        found = {"run": 1, "report": {"differences": 1, "unchecked": 0, "omitted": 0,
                 "causes": [{"cause": "left_out", "difference": True}, {"cause": "unconfirmed", "difference": False}],
                 "rows": [{"cause": "left_out", "node": "n1"}, {"cause": "unconfirmed", "node": "n2", "name": "x"}]}}
        asked = []

        async def answer(reader, writer):
            asked.append((await reader.readuntil(b"\r\n\r\n")).split(b" ")[0])
            text = json.dumps(found).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(text) + text)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            await self.stops(cluster, "left_out n1", 0, "--server", address)
            found["report"]["rows"][0]["node"] = "n4"
            result, said = await self.apply(cluster, 0, "--server", address)
            self.assertEqual(result["moved"], 2, said)
            self.assertGreaterEqual(asked.count(b"POST"), 4, "before each step, and after the last")
        server.close()
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            await self.stops(cluster, address.rsplit(":", 1)[1], 0, "--server", address)


if __name__ == "__main__":
    unittest.main()
