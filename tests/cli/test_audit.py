#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command "audit", of a running extender and of a cluster alone."""

import json
import pathlib
import tempfile
import unittest

from program import SNAPSHOT, Server, call, listing, node, pod, run

HOLDS = {"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "6",
         "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}


def bound(name, annotations, **status):
    return pod(name, 6, spec={"nodeName": "n1"}, metadata={"annotations": annotations},
               status={"phase": "Running", **status})


ODD = listing(
    node("n1", 2, 10),
    bound("good", HOLDS),
    bound("beyond", HOLDS),
    bound("gone", {**HOLDS, "ALIYUN_COM_GPU_MEM_IDX": "7"}),
    bound("stranger", {}),
)

TABLE = """\
CAUSE             COUNT   WHAT
foreign           1       bound by a scheduler that does not ask gpuledger: no card is written
card_gone         1       its card does not exist on the node any more
card_overbooked   1       it goes beyond what its card has

CAUSE             NAMESPACE   POD        NODE   CLUSTER         LEDGER
foreign           test        stranger   n1     no card, 6GiB   nothing: its node side gives it no card
card_gone         test        gone       n1     card 7, 6GiB    the node has 2 cards
card_overbooked   test        good       n1     card 0, 6GiB    card 0 holds 12GiB of 10GiB

3 differences; 4 pods on 1 nodes """


# Where each vGPU plugin registers cards, what its nodes offer, and where its pods name theirs.
VGPUS = [
    ("hami.io/node-nvidia-register", "GPU-a,10,16000,100,T4,0,true:GPU-b,10,16000,100,T4,0,true:",
     "nvidia.com/gpu", "nvidia.com/gpumem", "hami.io/vgpu-devices-allocated"),
    ("4pd.io/node-nvidia-register", "GPU-a,10,16000,100,T4,0,true:GPU-b,10,16000,100,T4,0,true:",
     "nvidia.com/gpu", "nvidia.com/gpumem", "4pd.io/vgpu-ids-new"),
    ("volcano.sh/node-vgpu-register", "GPU-a,10,16000,T4,true:GPU-b,10,16000,T4,true:",
     "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-ids-new"),
]


def of_vgpus(register, cards, count, memory, allocated, uuid):
    node_ = {"kind": "Node", "metadata": {"name": "n1", "annotations": {register: cards}},
             "status": {"capacity": {count: "20"}, "allocatable": {count: "20"}}}
    limits = {"resources": {"limits": {count: "1", memory: "1000"}}}
    pod_ = {"kind": "Pod",
            "metadata": {"name": "p", "namespace": "test", "uid": "u",
                         "annotations": {allocated: f"{uuid},NVIDIA,1000,0:;"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", **limits}]},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
    return listing(node_, pod_)


class Audit(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.odd = pathlib.Path(directory.name) / "odd.json"
        self.odd.write_text(ODD)

    def ends(self, code, stdout, *arguments, env=None):
        result = run("audit", *arguments, env=env)
        self.assertEqual((result.stderr, result.stdout), ("", stdout))
        self.assertEqual(result.returncode, code)

    def test_a_sound_cluster(self):
        self.ends(0, "0 differences; 9 pods on 4 nodes looked at, without a ledger to compare them "
                     "with.\n", "--snapshot", SNAPSHOT)
        with Server() as server:
            self.ends(0, "0 differences; 9 pods on 4 nodes compared with the cluster.\n",
                      "--server", server.operations)

    def test_an_odd_cluster(self):
        self.ends(3, TABLE + "looked at, without a ledger to compare them with.\n",
                  "--snapshot", self.odd)
        with Server(snapshot=self.odd) as server:
            self.ends(3, TABLE + "compared with the cluster.\n", "-s", server.operations)
            env = {"GPULEDGER_SERVER": server.operations, "KUBECONFIG": "/nonexistent"}
            self.ends(3, TABLE + "compared with the cluster.\n", env=env)

    def test_uuids_that_are_on_no_card(self):
        for vgpu in VGPUS:
            for uuid, found in (("GPU-b", 0), ("GPU-c", 1)):
                with self.subTest(vgpu=vgpu[0], uuid=uuid):
                    self.odd.write_text(of_vgpus(*vgpu, uuid))
                    result = run("audit", "--snapshot", self.odd)
                    self.assertEqual("none of the node's 2 cards has this UUID" in result.stdout,
                                     found == 1, result.stdout)
                    if found:
                        self.assertIn("card_gone", result.stdout)
        with Server("--audit-interval=1s", snapshot=self.odd) as server:
            server.wait_for("msg=difference cause=card_gone count=1")

    def test_wide(self):
        result = run("audit", "--snapshot", self.odd, "-owide")
        self.assertIn("WHAT TO DO", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^foreign .* uid-stranger$")

    def test_json(self):
        alone = run("audit", "--snapshot", self.odd, "-o", "json")
        with Server(snapshot=self.odd) as server:
            asked = run("audit", "--server", server.operations, "-o", "json")
            answered = json.loads(call("GET", server.operations + "/api/v1/audit")[1])
        self.assertEqual((alone.returncode, asked.returncode), (3, 3))
        alone, asked = json.loads(alone.stdout), json.loads(asked.stdout)
        self.assertEqual(asked, {"apiVersion": "gpuledger.io/v1", **answered["report"]})
        self.assertEqual((alone["compared"], asked["compared"]), (False, True))
        for key in ("differences", "causes", "rows", "omitted", "unchecked", "pods", "nodes"):
            self.assertEqual(alone[key], asked[key])

    def fails(self, code, message, *arguments):
        result = run("audit", *arguments)
        self.assertEqual((result.returncode, result.stdout), (code, ""))
        self.assertIn(message, result.stderr)

    def test_what_cannot_be_done(self):
        self.fails(1, "is 'gpuledger serve' running", "--server=http://127.0.0.1:1")
        self.fails(2, "option '--snapshot': ", "--snapshot=/nonexistent")
        self.fails(2, "option '--kubeconfig': ", "--kubeconfig=/nonexistent")
        self.fails(2, "option '--server': a cluster is given as well", "--server=http://x",
                   "--snapshot=x")
        with Server() as server:
            self.fails(1, "status 405", "--server", server.operations + "/version?")

    def test_a_cluster_that_cannot_be_read(self):
        kubeconfig = self.odd.with_name("config")
        kubeconfig.write_text(json.dumps({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": {}}],
        }))
        self.fails(1, "cannot list pods: ", "--kubeconfig", kubeconfig)

    def test_it_runs_by_itself(self):
        with Server("--audit-interval=1s", snapshot=self.odd) as server:
            server.wait_for("msg=audited pods=4 differences=3")
            server.wait_for("msg=difference cause=card_gone count=1")


if __name__ == "__main__":
    unittest.main()
