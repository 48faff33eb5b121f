#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Objects of every watched kind come, change and go, and the program records it.

    story.py FILE    writes such a record: records/story.jsonl is one, and stays as it is
"""

import asyncio
import copy
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "faults"), str(HERE.parent / "cli")]

# pylint: disable=wrong-import-position
from cluster import Cluster, Program  # noqa: E402
from program import node  # noqa: E402

OPTIONS = ("--elastic-quotas", "--gangs", "--quota-model-label=gpu-model", "--events=false")
GONE = ["node", "configmap", "budget", "resourcequota", "elasticquota", "podgroup", "native-podgroup"]


def named(name, namespace="test", **more):
    return {"metadata": {"namespace": namespace, "name": name, **more}}


def objects():
    """Of all kinds but nodes and pods, each in two states: resource, first, then."""
    gpus = {"gpuledger.io/gpus": "2"}
    selector = {"matchLabels": {"app": "a"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["x", "y"]}]}
    return (
        ("configmaps", {**named("unhealthy-gpu-n0", "kube-system"), "data": {"gpus": "1"}}, {"data": {"gpus": "0,1"}}),
        ("configmaps", {**named("gpuquota", "kube-system"), "data": {"gpu_quota": "{}"}},
         {"data": {"gpu_quota": '{"test":{"quota":{"V100":4}}}'}}),
        ("poddisruptionbudgets", {**named("a"), "spec": {"selector": selector}, "status": {"disruptionsAllowed": 1}},
         {"status": {"disruptionsAllowed": 0, "disruptedPods": {"p": "2026-01-02T03:04:05Z"}}}),
        ("resourcequotas", {**named("gpus", annotations={"gpuledger.io/max": '{"gpuledger.io/gpus":"4"}'}),
                            "spec": {"hard": {"requests.aliyun.com/gpu-mem": "40"}}},
         {"spec": {"hard": {"requests.aliyun.com/gpu-mem": "30"}}}),
        ("resourcequotas", {**named("unread", "ml", annotations={"gpuledger.io/min": "none"}), "spec": {}},
         {"spec": {"hard": {"requests.aliyun.com/gpu-mem": "7"}}}),
        ("elasticquotas", {**named("root", "ml", labels={"quota.scheduling.koordinator.sh/is-parent": "true"}),
                           "spec": {"min": gpus, "max": {"gpuledger.io/gpus": "6"}}},
         {"spec": {"min": gpus, "max": {"gpuledger.io/gpus": "8"}}}),
        ("elasticquotas", {**named("leaf", "ml", labels={"quota.scheduling.koordinator.sh/parent": "root"}),
                           "spec": {"min": gpus, "max": gpus}},
         {"spec": {"min": {"gpuledger.io/gpus": "1"}, "max": gpus}}),
        ("podgroups", {**named("old"), "spec": {"minMember": 2, "scheduleTimeoutSeconds": 20}},
         {"spec": {"minMember": 3}, "status": {"phase": "Failed"}}),
        ("podgroups.scheduling.k8s.io", {**named("new"),
                                         "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
         {"status": {"conditions": [{"type": "PodGroupScheduled", "status": "False",
                                     "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}),
    )


class Story:
    def __init__(self, directory, more=()):
        """`more`: objects of further kinds, as objects() has them."""
        self.cluster = Cluster(directory)
        self.api = self.cluster.api
        self.program = self.record = None
        self.objects = [*objects(), *more]

    async def start(self, *options):
        await self.cluster.start()
        for name in self.cluster.shapes:
            self.api.change("nodes", (None, name), lambda one: one["metadata"].update(labels={"gpu-model": "V100"}))
        self.program = Program(self.cluster, self.api.kubeconfig())
        await self.program.start(*OPTIONS, *options)

    async def seen(self, *parts, times=1):
        """Until so many lines of the record have them."""
        for _ in range(1000):
            lines = self.record.read_text().splitlines()
            if sum(all(part in line for part in parts) for line in lines) >= times:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"no line with {parts} in\n{self.record.read_text()}\n" + "\n".join(self.program.log))

    async def place(self, name, units, where=None):
        made = self.cluster.create(name, units)
        await self.seen(f'"{name}"')
        nodes = await self.program.filter(made)
        error = await self.program.bind(made, where or nodes[0]) if nodes else "none"
        assert not error, error
        self.cluster.play()
        await self.program.settle()

    async def play(self, record):
        self.record = record
        await self.start(f"--record={record}")
        await self.place("before", 3)
        for resource, first, _ in self.objects:
            self.api.put(resource, copy.deepcopy(first))
        await self.seen('"native-podgroup"')
        await self.seen('"elasticquota"', '"leaf"')
        await self.place("between", 2)
        for resource, first, then in self.objects:
            key = (first["metadata"]["namespace"], first["metadata"]["name"])
            self.api.change(resource, key, lambda one, then=then: one.update(copy.deepcopy(then)))
        for part in ('"0,1"', '"disruptionsAllowed":0', '"30"', '"8"', '"Failed"', '"False"'):
            await self.seen(part)
        waiting = self.cluster.create("waiting", 16)
        await self.seen('"waiting"')
        await self.program.filter(waiting)
        self.end_objects(self.objects[:8:2] + self.objects[7:])
        self.api.delete("pods", ("test", "waiting"))
        self.api.put("nodes", node("n9", 1, 4))
        self.api.delete("nodes", (None, "n9"))
        for kind in GONE:
            await self.seen(f'"{kind}-gone"')
        for resource, first, _ in self.objects:
            self.api.put(resource, copy.deepcopy(first))
        for kind, n in (("configmap", 6), ("budget", 3), ("resourcequota", 6), ("elasticquota", 6), ("podgroup", 3),
                        ("native-podgroup", 3)):
            await self.seen(f'"kind":"{kind}"', times=n)
        await self.sweep()
        await self.place("after", 4, "n1")
        await self.program.end(kill=False)
        await self.cluster.api.stop()

    def end_objects(self, which):
        for resource, first, _ in which:
            self.api.delete(resource, (first["metadata"]["namespace"], first["metadata"]["name"]))

    async def sweep(self):
        """What went while no watch lived is told by no event."""
        lists = self.record.read_text().count('"list-end"')
        self.end_objects(self.objects[1:])
        self.api.compact()
        self.api.cut_all()
        for _ in range(3000):
            if self.record.read_text().count('"list-end"') >= 2 * lists:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(self.record.read_text())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        asyncio.run(Story(own).play(pathlib.Path(sys.argv[1])))
