#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whom preempt ends for a pod of a namespace that has all that its quotas let it have: pods of its own that give it
back. Each kind of quota, with a saved cluster; after their end filter takes the pod."""

import json
import pathlib
import tempfile
import unittest

from program import Server, listing, node, run
from test_elastic_quotas import TREES, in_tree, member, quota, running

NAMED = "n"


def by_model(gpus, model):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "kube-system", "name": "gpuquota", "uid": "uid-gpuquota"},
            "data": {"gpu_quota": json.dumps({"a": {"quota": {model: gpus}}})}}


def hami_node():
    register = "".join(f"GPU-{i},1,10000,100,NVIDIA-Tesla T4,0,true,{i},hami-core:" for i in range(4))
    capacity = {"nvidia.com/gpu": "4"}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": NAMED, "uid": "uid-n", "annotations": {"hami.io/node-nvidia-register": register}},
            "status": {"capacity": capacity, "allocatable": capacity}}


def of_hami(made):
    """The same pod in HAMi's words."""
    made["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10000"}
    card = made["metadata"].pop("annotations", {}).get("ALIYUN_COM_GPU_MEM_IDX")
    if card is not None:
        made["metadata"]["annotations"] = {
            "hami.io/vgpu-devices-allocated": f"GPU-{card},NVIDIA,10000,0:;", "hami.io/vgpu-devices-to-allocate": ";",
            "hami.io/vgpu-node": NAMED, "hami.io/vgpu-time": "1700000000", "hami.io/bind-phase": "success"}
    return made


def elastic_node(model):
    capacity = {"elasticgpu.io/gpu-core": "400", "elasticgpu.io/gpu-memory": "40000"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAMED, "uid": "uid-n", "labels": {"model": model}},
            "status": {"capacity": capacity, "allocatable": capacity}}


def of_elastic(made):
    """The same pod as one of a whole card."""
    made["spec"]["containers"][0]["resources"]["limits"] = {"elasticgpu.io/gpu-core": "100"}
    card = made["metadata"].pop("annotations", {}).get("ALIYUN_COM_GPU_MEM_IDX")
    if card is not None:
        made["metadata"]["annotations"] = {"elasticgpu.io/assumed": "true", "elasticgpu.io/container-main": card}
    return made


class QuotaVictims(unittest.TestCase):
    def start(self, items, options):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        snapshot = pathlib.Path(folder.name) / "cluster.json"
        snapshot.write_text(listing(*items))
        server = Server(*options, snapshot=snapshot)
        self.addCleanup(server.__exit__)
        return server

    def victims(self, server, wanted, named):
        """By name; None: the node is no candidate."""
        told = server.preempt(wanted, {NAMED: named}).get(NAMED)
        return told and sorted(each["UID"].removeprefix("uid-") for each in told["Pods"])

    def ends_its_own(self, quotas, options, place=None, speak=lambda made: made):
        """a has two cards, which is all that it may; b's pods matter less, and their end would make room as well."""
        holders = [running(f"a{i}", "a", NAMED, i) for i in range(2)] + [running(f"b{i}", "b", NAMED, 2 + i) for i in range(2)]
        wanted, great = member("wanted", "a", 10), member("great", "a", 10)
        for each in holders:
            each["spec"]["priority"] = 5 if each["metadata"]["namespace"] == "a" else 0
        holders[0]["spec"]["priority"] = 7
        wanted["spec"]["priority"] = great["spec"]["priority"] = 6
        great["spec"]["priority"] = 5
        items = [speak(each) for each in (*holders, wanted, great)]
        fixed = [place or node(NAMED, 4, 10), *quotas]
        server = self.start([*fixed, *items], options)
        self.assertFalse(server.filter(wanted, [NAMED])["NodeNames"])
        self.assertEqual(self.victims(server, wanted, ["uid-b0"]), ["a1"])
        self.assertIsNone(self.victims(server, great, ["uid-b0"]), "its own pods are as important")
        text = run("explain", "a/wanted", "--server", server.operations).stdout
        self.assertIn("Preemption would end, on n: a/a1 (priority 5)", text)
        text = run("explain", "a/great", "--server", server.operations).stdout
        self.assertIn("Preemption ends nobody: its quotas leave no room for it", text)
        for gone, takes in (("a1", [NAMED]), ("b0", [])):
            server = self.start([*fixed, *(each for each in items if each["metadata"]["name"] != gone)], options)
            self.assertEqual(server.filter(wanted, [NAMED])["NodeNames"], takes, gone)

    def test_the_max_of_a_namespace(self):
        self.ends_its_own([quota("a", "2", "2")], ["--elastic-quotas"])

    def test_what_is_lent(self):
        self.ends_its_own([quota("a", "1", "4"), quota("c", "1", None, kind="ResourceQuota")], ["--elastic-quotas"])

    def test_a_quota_above(self):
        self.ends_its_own([in_tree("team", "4", "2", is_parent="true"),
                           in_tree("own", "4", "4", namespaces=["a"], parent="team")], ["--elastic-quotas", TREES])

    def test_gpus_by_model(self):
        self.ends_its_own([by_model(2, "T4")], ["--quota-model-label", "model"], place=elastic_node("T4"), speak=of_elastic)

    def test_hamis_resource_quotas(self):
        kept = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": "a", "name": "q", "uid": "uid-q"},
                "spec": {"hard": {"limits.nvidia.com/gpumem": "20000"}}}
        self.ends_its_own([kept], ["--hami-resource-quotas"], place=hami_node(), speak=of_hami)


if __name__ == "__main__":
    unittest.main()
