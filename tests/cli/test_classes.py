#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classes of work on a mixed trace: training alone, interactive ended first, and no card lost by it.

Who is on which card is read from the pods' annotations and their PriorityClasses alone."""

import collections
import json
import pathlib
import tempfile
import unittest

from program import ROOT, run

FOLDER = ROOT / "examples" / "classes"
TRACE = [f"--trace-nodes={FOLDER / 'nodes.csv'}", f"--trace-pods={FOLDER / 'pods.csv'}"]
CARDS = "elasticgpu.io/container-main"
CORE = "elasticgpu.io/gpu-core"
SEEDS = "1..3"


def told(*arguments, status=0):
    answer = run(*arguments)
    assert status is None or answer.returncode == status, answer.stderr
    return answer.stdout


def simulate(*more):
    return json.loads(told("simulate", *TRACE, "--times=false", "-o", "json", *more))


def allocated(at, *more):
    """What was handed out in percent when the pods had asked for so much of it, the mean of all runs."""
    runs = simulate("--seeds", SEEDS, *more)["policies"][0]["runs"]
    values = [next(point for point in one["points"] if point["x"] >= at)["allocated"] for one in runs]
    return 100 * sum(values) / len(values)


def cards(cluster):
    """{(node, card): the PriorityClasses of those on it}"""
    found = collections.defaultdict(list)
    for item in cluster["items"]:
        if item["kind"] != "Pod" or not item["spec"].get("nodeName"):
            continue
        for card in item["metadata"]["annotations"].get(CARDS, "").split(","):
            found[item["spec"]["nodeName"], card].append(item["spec"]["priorityClassName"])
    return found


def shared_training(cluster):
    return [place for place, names in cards(cluster).items() if "training" in names and len(names) > 1]


def urgent(percent):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent", "namespace": "trace"},
            "spec": {"priority": 2000, "containers": [
                {"name": "main", "image": "example.com/none:1",
                 "resources": {"limits": {CORE: str(percent)}}}]}}


class Classes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        for name, more in (("with", ["--classes", "default"]), ("without", [])):
            simulate("--seeds", "2", "--cluster-out", str(cls.path / name), *more)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def cluster(self, name):
        return json.loads((self.path / name).read_text())

    def test_the_trace_is_what_generate_writes(self):
        lines = (FOLDER / "pods.csv").read_text().splitlines()
        self.assertEqual(len(lines), 601)
        self.assertEqual({line.split(",")[5] for line in lines[1:]}, {"interactive", "inference", "training"})

    def test_no_training_pod_shares_a_card(self):
        # Else it would mean nothing.
        self.assertGreater(len(shared_training(self.cluster("without"))), 0)
        held = cards(self.cluster("with"))
        self.assertGreater(sum("training" in names for names in held.values()), 40)
        self.assertEqual(shared_training(self.cluster("with")), [])

    def test_no_card_is_lost_by_it(self):
        for at in (100, 130):
            without, classed = allocated(at), allocated(at, "--classes", "default")
            self.assertGreater(without, 95)
            self.assertLess(abs(without - classed), 1, f"{without} {classed} at {at} %")

    def victims(self, percent, *more):
        (self.path / "pod.json").write_text(json.dumps(urgent(percent)))
        answer = json.loads(told("explain", "-f", str(self.path / "pod.json"), "-o", "json",
                                 "--snapshot", str(self.path / "priorities"), *more, status=3))
        return [one["name"].rpartition("-")[0] for one in answer["preemption"]["pods"]]

    def test_interactive_pods_end_first(self):
        # As important as all others, so that not their priorities decide.
        cluster = self.cluster("with")
        for item in cluster["items"]:
            if item["kind"] == "Pod":
                item["spec"]["priority"] = 50 if item["spec"]["priorityClassName"] == "inference" else 500
        (self.path / "priorities").write_text(json.dumps(cluster))
        for percent in (20, 35, 50):
            with self.subTest(percent):
                self.assertEqual(set(self.victims(percent)), {"inference"})
                self.assertEqual(set(self.victims(percent, "--classes", "default")), {"interactive"})

    def test_an_audit_finds_training_with_a_neighbour(self):
        def findings(name):
            answer = told("audit", "--snapshot", str(self.path / name), "--classes", "default", "-o", "json",
                          status=None)
            rows = [row for row in json.loads(answer)["rows"] if row["cause"] == "class_neighbour"]
            return {row["name"] for row in rows}

        self.assertEqual(findings("with"), set())
        places = shared_training(self.cluster("without"))
        expected = {item["metadata"]["name"] for item in self.cluster("without")["items"]
                    if item["kind"] == "Pod" and item["spec"]["priorityClassName"] == "training" and any(
                        (item["spec"]["nodeName"], card) in places
                        for card in item["metadata"]["annotations"][CARDS].split(","))}
        self.assertEqual(findings("without"), expected)

    def test_explain_says_the_class(self):
        cluster = self.cluster("with")
        pod = next(item for item in cluster["items"] if item["kind"] == "Pod"
                   and item["spec"]["priorityClassName"] == "training")
        text = told("explain", f"trace/{pod['metadata']['name']}", "--snapshot", str(self.path / "with"),
                    "--classes", "default")
        self.assertIn("CLASS       training, by its PriorityClass 'training'\n", text)


if __name__ == "__main__":
    unittest.main()
