#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two replicas of the program answer Kueue's Workloads: the one with the Lease alone, and when it is killed, the other.

Fields and their places are those of kueue.x-k8s.io/v1beta2.
"""

import asyncio
import contextlib
import pathlib
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

# pylint: disable=wrong-import-position
from cluster import Cluster, Program  # noqa: E402

PATIENCE = 60
OPTIONS = ("--kueue", "--leader-elect", "--lease-namespace=default", "--lease-duration=4s")


def workload(name, units):
    """Quota is reserved for it."""
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {"namespace": "ml", "name": name},
            "spec": {"podSets": [{"name": "main", "count": 1, "template": {
                "metadata": {"labels": {"app": name}}, "spec": {"containers": [
                    {"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": str(units)}}}]}}}]},
            "status": {"conditions": [{"type": "QuotaReserved", "status": "True",
                                       "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}],
                       "admissionChecks": [{"name": "cards", "state": "Pending", "message": "",
                                            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}


class Replicas(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.cluster = Cluster(self.enterContext(tempfile.TemporaryDirectory()), ((1, 64),))
        await self.cluster.start()
        self.addAsyncCleanup(self.cluster.api.stop)
        self.cluster.api.put("admissionchecks", {
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "cards", "generation": 1},
            "spec": {"controllerName": "gpuledger.io/fit"}})

    @contextlib.asynccontextmanager
    async def serving(self):
        program = Program(self.cluster, self.cluster.api.kubeconfig())
        try:
            await program.start(*OPTIONS)
            yield program
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(program.log[-40:])) from error
        finally:
            await program.end()

    async def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what} did not come")
            await asyncio.sleep(0.05)

    def state(self, name):
        return self.cluster.api.objects["workloads"]["ml", name]["status"]["admissionChecks"][0]["state"]

    async def answered(self, name, units, state):
        """The Workload comes, and is answered so."""
        self.cluster.api.put("workloads", workload(name, units))
        await self.until(lambda: self.state(name) != "Pending", f"an answer to {name}")
        self.assertEqual(self.state(name), state, name)

    def answers(self, program):
        """Whom that replica has answered, in order, as far as its log goes, which leaves some out of many."""
        return [word.removeprefix("name=") for line in program.log if "Workload let in" in line or "Workload sent back" in line
                for word in line.split() if word.startswith("name=")]

    async def test_one_replica_answers_and_when_it_is_killed_the_other(self):
        api = self.cluster.api
        async with self.serving() as first, self.serving() as second:
            await self.answered("small", 40, "Ready")
            await self.answered("large", 40, "Retry")  # 24 are left beside what was promised
            crowd = [f"one{number}" for number in range(20)]
            for name in crowd:
                self.cluster.api.put("workloads", workload(name, 1))
            await self.until(lambda: all(self.state(name) == "Ready" for name in crowd), "an answer to all at once")
            self.assertEqual((self.answers(first)[:2], self.answers(second)), (["small", "large"], []))
            first.kill()
            # The other one knows what was promised from the Workloads themselves.
            await self.answered("next", 5, "Retry")
            await self.answered("tiny", 4, "Ready")
            await self.until(lambda: len(self.answers(second)) == 2, "what it says of both")
            self.assertEqual(self.answers(second), ["next", "tiny"])
        written = [request.path.split("/")[-2] for request in api.sent
                   if request.method == "PATCH" and request.resource == "workloads"]
        self.assertEqual(sorted(written), sorted(["small", "large", "next", "tiny", *crowd]), "each once")


if __name__ == "__main__":
    unittest.main()
