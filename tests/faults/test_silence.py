#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The API server falls silent while a capability that evicts pods waits for it: SIGTERM ends the program all the
same, long before the calls would end by themselves.
"""

import asyncio
import json
import pathlib
import signal
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

# pylint: disable=wrong-import-position
from apiserver import Fault  # noqa: E402
from at_once import AtOnce  # noqa: E402
from cluster import PATIENCE, Program  # noqa: E402
from moving import Moving  # noqa: E402
from program import pod  # noqa: E402

FOR_EVER = 3600
CALL_S = 10  # that a call may take by itself


class Silence(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.cluster = Moving(directory.name, n1=8, n2=4, n3=4)
        await self.cluster.start()
        self.addAsyncCleanup(self.cluster.stop)
        self.program = Program(self.cluster, self.cluster.api.kubeconfig())

    def fall_silent(self, *sorts):
        self.cluster.api.faults = [Fault(sort, "slow", times=1000, seconds=FOR_EVER) for sort in sorts]

    async def ends(self, method, *path, patience=PATIENCE):
        """Once that was asked for, and was not answered."""
        def asked():
            return any(each.method == method and all(part in each.path for part in path)
                       for each in self.cluster.api.sent)
        await self.cluster.until(asked, lambda: "\n".join(self.program.log[-20:]), patience)
        self.program.kill(signal.SIGTERM)
        try:
            code = await asyncio.wait_for(self.program.process.wait(), CALL_S / 2)
        except asyncio.TimeoutError:
            await self.program.end()
            raise AssertionError("it waits:\n" + "\n".join(self.program.log[-20:])) from None
        await self.program.reader
        self.assertEqual(code, 0, "\n".join(self.program.log[-20:]))

    async def test_a_plan(self):
        self.cluster.web(3, "n1")
        self.cluster.api.put("pods", pod("big", 8))
        self.fall_silent("patch configmaps")
        await self.program.start("--plans")
        self.cluster.order(pod="test/big")
        await self.ends("PATCH", "configmaps", "plan")

    async def test_a_calendar(self):
        self.cluster.api.change("nodes", (None, "n1"), lambda node: node.setdefault("spec", {}).update(
            taints=[{"key": "gpuledger.io/switching", "effect": "NoSchedule"}]))
        calendar = self.directory / "calendar"
        calendar.write_text(json.dumps({"nodes": []}))
        self.fall_silent("get")
        await self.program.start(f"--calendar={calendar}")
        await self.ends("GET", "/nodes/n1")

    async def test_a_quota_that_is_lent(self):
        def quota(namespace, least, most):
            amounts = {f"gpuledger.io/{word}": json.dumps({"gpuledger.io/gpus": str(n)})
                       for word, n in (("min", least), ("max", most))}
            self.cluster.api.put("resourcequotas", {
                "apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"namespace": namespace, "name": "gpus", "uid": f"q-{namespace}", "annotations": amounts},
                "spec": {}})
        for sizes in (("test", 0, 3), ("ml", 3, 3)):
            quota(*sizes)
        for node, size in (("n1", 8), ("n2", 4), ("n3", 4)):
            self.cluster.web(size, node)
        claimant = pod("big", 8)
        claimant["metadata"].update(namespace="ml", uid="uid-ml-big")
        self.cluster.api.put("pods", claimant)
        self.fall_silent("get")
        await self.program.start("--elastic-quotas", "--reclaim", "--reclaim-delay=0s")
        await self.program.filter(claimant)
        await self.ends("GET", "/configmaps/gpuledger-claims")

    async def test_a_group_that_stays_half(self):
        """Many of them; each has one pod that is bound, and one for which there is no room. They are tried after the
        first minute."""
        for i in range(8):
            for j, units in enumerate((1, 9)):
                member = self.cluster.web(units, None, f"g{i}-{j}")
                key = (member["metadata"]["namespace"], member["metadata"]["name"])
                self.cluster.api.change("pods", key, lambda each, group=f"g{i}": each["metadata"].setdefault(
                    "annotations", {}).update({
                        "gang.scheduling.koordinator.sh/name": group,
                        "gang.scheduling.koordinator.sh/min-available": "2",
                        "gang.scheduling.koordinator.sh/waiting-time": "1s",
                        "gpuledger.io/gang": f"test/{group}", "gpuledger.io/gang-min": "2"}))
                if j == 0:
                    self.cluster.place(member, "n1")
        self.fall_silent("try to evict")
        await self.program.start("--gangs", "--gang-strict")
        await self.ends("POST", "/eviction", patience=2 * PATIENCE)

    async def test_the_stop_key(self):
        self.fall_silent("get")
        await self.program.start("--plans")
        await self.ends("GET", "/configmaps/gpuledger-evictions")


if __name__ == "__main__":
    unittest.main(testRunner=AtOnce(4))
