#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What namespaces may have of their cards by ResourceQuotas with HAMi's keys, with a saved cluster."""

import json
import pathlib
import signal
import tempfile
import unittest

from program import Server, listing, run

GPU, MEM, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"


def hami_node(name, mib):
    register = "".join(
        f"GPU-{name}-{index},10,{mib},100,NVIDIA-Tesla T4,0,true,{index},hami-core:"
        for index in range(2)
    )
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "annotations": {"hami.io/node-nvidia-register": register},
        },
        "status": {"capacity": {GPU: "20"}, "allocatable": {GPU: "20"}},
    }


def pod(name, limits):
    limits = {key: str(value) for key, value in limits.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "ml", "name": name, "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
        "status": {"phase": "Pending"},
    }


class ResourceQuotas(unittest.TestCase):
    OPTION = "--hami-resource-quotas"
    QUOTA = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"namespace": "ml", "name": "gpus", "uid": "uid-gpus"},
        "spec": {"hard": {"limits.nvidia.com/gpumem": "8000", "limits.nvidia.com/gpucores": "50"}},
    }
    LEAVES = "ResourceQuota leaves less"

    def start(self, *items, options=()):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        snapshot = pathlib.Path(directory.name) / "cluster.json"
        snapshot.write_text(listing(*items))
        self.server = Server(*options, snapshot=snapshot)
        self.addCleanup(self.server.__exit__)

    def place(self, wanted):
        """Filter and bind."""
        answer = self.server.filter(wanted, ["n"])
        self.assertEqual(answer.get("NodeNames"), ["n"], answer)
        self.assertFalse(self.server.bind(wanted, "n").get("Error"))

    def refused(self, wanted):
        answer = self.server.filter(wanted, ["n"])
        self.assertFalse(answer.get("NodeNames"), answer)
        self.assertIn(self.LEAVES, answer["FailedAndUnresolvableNodes"]["n"])
        self.assertIn(self.LEAVES, self.server.bind(wanted, "n")["Error"])

    def test_a_bind_asks_again(self):
        first, second = (pod(name, {GPU: 1, MEM: 5000}) for name in ("first", "second"))
        rest = pod("rest", {GPU: 1, "nvidia.com/gpumem-percentage": 18, CORES: 50})
        late = pod("late", {GPU: 1, MEM: 1, CORES: 1})
        self.start(
            hami_node("n", 16000), self.QUOTA, first, second, rest, late, options=[self.OPTION]
        )
        for wanted in (first, second):  # filter books nothing
            self.assertEqual(self.server.filter(wanted, ["n"]).get("NodeNames"), ["n"])
        self.assertFalse(self.server.bind(first, "n").get("Error"))
        self.assertIn(self.LEAVES, self.server.bind(second, "n")["Error"])
        self.refused(second)
        self.place(rest)
        self.refused(late)
        _, metrics = self.server.get("/metrics")
        self.assertRegex(metrics, r'gpuledger_refusals_total{[^}]*reason="resource_quota"} [1-9]')

    def test_without_the_option(self):
        wanted = pod("a", {GPU: 1, MEM: 9000})
        self.start(hami_node("n", 16000), self.QUOTA, wanted)
        self.place(wanted)

    def test_a_record_holds_them(self):
        wanted = [pod(name, {GPU: 1, MEM: 5000}) for name in ("a", "b")]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "record"
            self.start(
                hami_node("n", 16000), self.QUOTA, *wanted,
                options=[self.OPTION, f"--record={file}"],
            )
            self.place(wanted[0])
            self.refused(wanted[1])
            self.server.signal(signal.SIGTERM)
            self.server.exit_code()
            self.assertIn("limits.nvidia.com/gpumem", file.read_text())
            told = json.loads(run("replay", file, "-o", "json").stdout)
            self.assertEqual((told["different"], told["unchecked"]), (0, 0))
            self.assertGreater(told["compared"], 3)

    def test_explain_tells_and_mends(self):
        told = {}
        for limit in ("8000", "9000"):
            quota = json.loads(json.dumps(self.QUOTA))
            quota["spec"]["hard"]["limits.nvidia.com/gpumem"] = limit
            with tempfile.TemporaryDirectory() as folder:
                asked, cluster = pathlib.Path(folder) / "a.json", pathlib.Path(folder) / "c.json"
                asked.write_text(json.dumps(pod("a", {GPU: 2, MEM: 4500})))
                cluster.write_text(listing(hami_node("n", 16000), quota))
                told[limit] = json.loads(
                    run("explain", "-f", asked, "--snapshot", cluster, "-ojson", self.OPTION).stdout
                )
        self.assertEqual(told["9000"]["verdict"], "fits")
        [group] = told["8000"]["groups"]
        self.assertEqual(group["reason"], "resource_quota")
        self.assertEqual(
            group["why"],
            "wants 9000 MiB, ResourceQuota gpus leaves 8000 of 8000 (limits.nvidia.com/gpumem)",
        )
        [mend] = [each for each in told["8000"]["remedies"] if each["kind"] == "quota"]
        self.assertEqual((mend["key"], mend["to"]), ("limits.nvidia.com/gpumem", "9000"))


if __name__ == "__main__":
    unittest.main()
