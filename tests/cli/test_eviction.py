#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whom kube-scheduler would end for a refused pod, as "explain" foresees it; and that the verb preempt,
asked with what kube-scheduler would name, says the same."""

import json
import pathlib
import tempfile
import unittest

from program import Server, call, listing, run


def gpus(name, cards, units, **spec):
    amounts = {"aliyun.com/gpu-count": str(cards), "aliyun.com/gpu-mem": str(cards * units)}
    return {"kind": "Node", "metadata": {"name": name}, "spec": spec,
            "status": {"capacity": amounts, "allocatable": amounts}}


def asking(name, units, priority, **spec):
    return {"kind": "Pod", "metadata": {"namespace": "test", "name": name, "uid": name},
            "spec": {"priority": priority, **spec, "containers": [{"name": "main", "resources": {
                "limits": {"aliyun.com/gpu-mem": str(units)}}}]}}


def held(name, units, priority, node, card, **metadata):
    pod = asking(name, units, priority, nodeName=node)
    pod["metadata"].update(creationTimestamp="2026-01-01T00:00:00Z", annotations={
        "ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_POD": str(units),
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767225600000000000"}, **metadata)
    return {**pod, "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}


def budget(label):
    return {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1",
            "metadata": {"namespace": "test", "name": label},
            "spec": {"selector": {"matchLabels": {"app": label}}},
            "status": {"disruptionsAllowed": 0}}


# 5 units are free in sum. By sums the end of "c" would do; only that of "b" frees 8 on one card
# without "a".
CARDS = [gpus("n1", 2, 10), held("a", 6, 100, "n1", 0), held("b", 6, 10, "n1", 1),
         held("c", 3, 1, "n1", 0)]


class Eviction(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def write(self, name, text):
        file = self.directory / name
        file.write_text(text)
        return file

    def explain(self, pod, cluster, *arguments):
        result = run("explain", "-f", self.write("pod.json", json.dumps(pod)), "--snapshot",
                     self.write("cluster.json", listing(*cluster)), *arguments)
        self.assertIn((result.returncode, result.stderr), ((0, ""), (3, "")))
        return result.stdout

    def told(self, pod, cluster):
        found = json.loads(self.explain(pod, cluster, "-ojson"))["preemption"]
        names = sorted(each["name"] for each in found["pods"])
        return found["node"], names, found["budgetViolations"], found["whyNot"]

    def test_whose_card_is_freed(self):
        urgent = asking("urgent", 8, 1000)
        self.assertEqual(self.told(urgent, CARDS), ("n1", ["b"], 0, None))
        self.assertIn("\nPreemption would end, on n1: test/b (priority 10).\n",
                      self.explain(urgent, CARDS))
        with Server(snapshot=self.directory / "cluster.json") as server:
            named = {"Pod": urgent, "NodeNameToMetaVictims": {
                "n1": {"Pods": [{"UID": "c"}], "NumPDBViolations": 0}}}
            _, text = call("POST", f"{server.scheduler}/gpushare-scheduler/preempt", named)
            victims = json.loads(text)["NodeNameToMetaVictims"]["n1"]["Pods"]
            self.assertEqual([each["UID"] for each in victims], ["b"])

    def test_nobody(self):
        for why, pod, cluster in [
            ("its preemptionPolicy is Never",
             asking("x", 8, 1000, preemptionPolicy="Never"), CARDS),
            ("no pod where it may go has a lower priority than its own, 1", asking("x", 8, 1), CARDS),
            ("no node would take it even if all pods of a priority below 1000 ended",
             asking("x", 11, 1000), CARDS),
            ("no node would take it even if all pods of a priority below 50 ended",
             asking("x", 10, 50), [gpus("n1", 1, 10), held("a", 6, 100, "n1", 0),
                                   held("b", 2, 10, "n1", 0)]),
            ("in sum n1 has room for it, so kube-scheduler sees no need; that the room is in pieces, "
             "it cannot see", asking("x", 6, 1000),
             [gpus("n1", 2, 10), held("a", 6, 1, "n1", 0), held("b", 6, 1, "n1", 1)]),
        ]:
            with self.subTest(why=why):
                self.assertEqual(self.told(pod, cluster), (None, [], 0, why))
                self.assertIn(f"\nPreemption ends nobody: {why}.\n", self.explain(pod, cluster))

    def test_where(self):
        """The cheaper of two nodes, by kube-scheduler's order; not one that it would leave out."""
        cluster = [gpus("n1", 1, 10), held("a", 10, 5, "n1", 0),
                   gpus("n2", 1, 10), held("b", 10, 3, "n2", 0)]
        urgent = asking("urgent", 4, 10)
        self.assertEqual(self.told(urgent, cluster), ("n2", ["b"], 0, None))
        cluster[2]["spec"]["taints"] = [{"key": "ml", "effect": "NoSchedule"}]
        self.assertEqual(self.told(urgent, cluster), ("n1", ["a"], 0, None))

    def test_a_budget(self):
        """Who is guarded ends last, and then it is said."""
        cluster = [gpus("n1", 1, 10), held("a", 10, 1, "n1", 0, labels={"app": "a"}),
                   gpus("n2", 1, 10), held("b", 10, 9, "n2", 0, labels={"app": "b"})]
        urgent = asking("urgent", 4, 10)
        self.assertEqual(self.told(urgent, cluster), ("n1", ["a"], 0, None))
        self.assertEqual(self.told(urgent, cluster + [budget("a")]), ("n2", ["b"], 0, None))
        both = cluster + [budget("a"), budget("b")]
        self.assertEqual(self.told(urgent, both), ("n1", ["a"], 1, None))
        self.assertIn("test/a (priority 1); 1 against a PodDisruptionBudget.",
                      self.explain(urgent, both))

    def test_a_pod_that_waits_for_them(self):
        cluster = [gpus("n1", 1, 10), held("a", 10, 1, "n1", 0)]
        cluster[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
        urgent = asking("urgent", 4, 10)
        urgent["status"] = {"nominatedNodeName": "n1"}
        self.assertEqual(self.told(urgent, cluster),
                         (None, [], 0, "it waits until test/a has ended on n1"))

    def test_only_of_a_refused_pod(self):
        self.assertIsNone(json.loads(self.explain(asking("x", 1, 1), CARDS, "-ojson"))["preemption"])


if __name__ == "__main__":
    unittest.main()
