#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pairs of changes that "explain" proposes where no single one is enough: neither change alone admits
the pod, and both together do, through the real verbs."""

import copy
import json
import unittest

from program import listing
from test_remedies import Remedies, make_pod, node

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ML = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
ZONE_B = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [
    {"key": "zone", "operator": "In", "values": ["b"]}]}]}}}
MAX_PAIRS = 5


def gpus(name="n1", cards=1, units=10, spec=None, **metadata):
    made = node(name, {"aliyun.com/gpu-count": str(cards), "aliyun.com/gpu-mem": str(cards * units)},
                **metadata)
    return {**made, "spec": spec or {}}


def asking(units, annotations=None, **spec):
    pod = make_pod("asked", {"aliyun.com/gpu-mem": str(units)}, annotations)
    pod["spec"].update(spec)
    return pod


def held(name, units, where="n1"):
    pod = make_pod(name, {"aliyun.com/gpu-mem": str(units)}, {
        "ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": str(units),
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767225600000000000"})
    pod["spec"]["nodeName"] = where
    return {**pod, "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}


def sick(name):
    return {"kind": "ConfigMap", "metadata": {"namespace": "kube-system",
                                              "name": f"unhealthy-gpu-{name}"},
            "data": {"gpus": "0"}}


CORDONED = {"unschedulable": True}
ELASTIC = node("n1", {"elasticgpu.io/gpu-core": "100", "elasticgpu.io/gpu-memory": "16384"})


def elastic(name, core, memory, card=None):
    pod = make_pod(name, {"elasticgpu.io/gpu-core": str(core),
                          "elasticgpu.io/gpu-memory": str(memory)})
    if card is not None:
        pod["metadata"]["annotations"] = {"elasticgpu.io/assumed": "true",
                                          "elasticgpu.io/container-main": card}
        pod["spec"]["nodeName"] = "n1"
        pod["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    return pod


CASES = [
    # what is refused, the cluster, the texts of the pairs that must be told
    (asking(12), [gpus(spec=CORDONED)],
     ["uncordon n1, ask for 10 aliyun.com/gpu-mem instead of 12 in container main"]),
    (asking(12), [gpus(spec={"taints": [ML]})],
     ["tolerate dedicated=ml:NoSchedule, "
      "ask for 10 aliyun.com/gpu-mem instead of 12 in container main"]),
    (asking(10), [gpus(spec={"taints": [ML], **CORDONED})],
     ["uncordon n1, tolerate dedicated=ml:NoSchedule"]),
    (asking(10, nodeSelector={"zone": "a"}), [gpus(spec=CORDONED)],
     ["uncordon n1, take zone=a out of its nodeSelector"]),
    (asking(10, nodeSelector={"disk": "ssd"}, affinity=ZONE_B), [gpus(labels={"zone": "a"})],
     ["take disk=ssd out of its nodeSelector, take its required nodeAffinity away"]),
    (asking(8192, affinity=ZONE_B), [gpus(labels={"zone": "a"})],
     ["take its required nodeAffinity away, ask for 8 aliyun.com/gpu-mem instead of 8192 in "
      "container main, if it was meant in another unit"]),
    (asking(12), [gpus(), sick("n1")],
     ["ask for 10 aliyun.com/gpu-mem instead of 12 in container main, "
      "mend card 0 of n1, which a ConfigMap says is unhealthy"]),
    (asking(10), [gpus(spec=CORDONED), held("x", 4)],
     ["uncordon n1, ask for 6 aliyun.com/gpu-mem instead of 10 in container main"]),
    (asking(1), [gpus(spec=CORDONED), held("x", 10)], ["uncordon n1, end test/x"]),
    (asking(1), [gpus(spec=CORDONED), held("x", 10), gpus("n2", spec={"taints": [ML]}),
                 held("y", 10, "n2")],
     ["uncordon n1, end test/x", "tolerate dedicated=ml:NoSchedule, end test/y"]),
    (asking(12, {"gpuledger.io/gpu-models": "H100"}),
     [gpus(labels={"nvidia.com/gpu.product": "Tesla-T4"})],
     ["ask for 10 aliyun.com/gpu-mem instead of 12 in container main, "
      "take away the annotation gpuledger.io/gpu-models: H100"]),
    (asking(4, {"gpuledger.io/gpu-models": "H100", "gpuledger.io/gpu-memory-min": "80Gi"}),
     [gpus(labels={"nvidia.com/gpu.product": "Tesla-T4"})],
     ["take away the annotation gpuledger.io/gpu-models: H100, "
      "take away the annotation gpuledger.io/gpu-memory-min: 80Gi"]),
    (asking(12, {"gpuledger.io/gpu-compute-min": "8.0"}), [gpus()],
     ["ask for 10 aliyun.com/gpu-mem instead of 12 in container main, "
      "take away the annotation gpuledger.io/gpu-compute-min: 8.0",
      "ask for 10 aliyun.com/gpu-mem instead of 12 in container main, "
      "let GPU Feature Discovery label n1 (nvidia.com/gpu.compute.major), if its GPUs are such"]),
    (elastic("asked", 60, 20480), [ELASTIC, elastic("x", 50, 4096, "0")],
     ["ask for 50 elasticgpu.io/gpu-core instead of 60 in container main, "
      "ask for 12288 elasticgpu.io/gpu-memory instead of 20480 in container main"]),
    (make_pod("asked", {"volcano.sh/gpu-memory": "8192"}), [gpus(units=16, spec=CORDONED)],
     ["uncordon n1, ask in the words of Aliyun gpushare in container main: aliyun.com/gpu-mem: 8"]),
    # what was mended in thought is not well for the next thought
    (asking(8192, {"gpuledger.io/gpu-memory-min": "80Gi"}), [gpus(), held("x", 4), sick("n1")], []),
    # three are needed
    (asking(12), [gpus(spec={"taints": [ML], **CORDONED})], []),
    # nothing helps
    (asking(4, nodeName="gone"), [gpus(spec=CORDONED)], []),
]


class Pairs(unittest.TestCase):
    setUp, write, explain, check = Remedies.setUp, Remedies.write, Remedies.explain, Remedies.check
    DOING = Remedies.DOING

    def apply(self, items, asked, changes):
        items, asked = copy.deepcopy(items), copy.deepcopy(asked)
        for each in changes:
            self.DOING[each["kind"]](self, items, asked, each)
        return self.explain(asked, self.write("one.json", listing(*items)))["verdict"]

    def test_both_admit_and_neither_alone(self):
        for asked, items, wanted in CASES:
            with self.subTest(asked=json.dumps(asked["spec"]), wanted=wanted):
                told = self.explain(asked, self.write("cluster.json", listing(*items)))
                self.assertEqual((told["verdict"], told["remedies"]), ("refused", []))
                texts = [", ".join(each["text"] for each in pair["changes"])
                         for pair in told["pairs"]]
                self.assertEqual(texts, wanted)
                self.assertLessEqual(len(texts), MAX_PAIRS)
                for pair in told["pairs"]:
                    names = [each["metadata"]["name"] for each in items if each["kind"] == "Node"]
                    self.check(items, names, asked, *pair["changes"])
                    for each in pair["changes"]:
                        self.assertEqual(self.apply(items, asked, [each]), "refused", each)


if __name__ == "__main__":
    del Remedies  # its tests are not these
    unittest.main()
