#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an autoscaler is told of nodes that are not there yet, and of several pods at once: profiles of
cards for groups at zero, in fit and in the dry run of filter, and in nothing else."""

import json
import pathlib
import tempfile
import unittest

from program import Server, call, listing, run

PROFILES = "pool=l4: gpushare, cards=2, memory=24Gi; pool=hami: hami, cards=1, memory=24000Mi, slots=4"


def template(name, pool, **status):
    """A node as cluster-autoscaler makes one from a group's annotations: labels and what kubelet has."""
    return {"kind": "Node", "metadata": {"name": name, "labels": {"pool": pool}},
            "status": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110", **status},
                       "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", **status}}}


def asking(name, units, resource="aliyun.com/gpu-mem", **metadata):
    return {"kind": "Pod", "metadata": {"namespace": "test", "name": name, **metadata},
            "spec": {"containers": [{"name": "main", "resources": {
                "limits": {resource: str(units)} if units else {}}}]}}


REAL = template("real", "l4", **{"aliyun.com/gpu-count": "1", "aliyun.com/gpu-mem": "10"})
MUTE = template("mute", "l4")  # its plugin has not come yet


class Templates(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.cluster = self.write("cluster.json", listing(REAL, MUTE))
        self.config = self.write("gpuledger.yaml", f'card-profiles: "{PROFILES}"\n')

    def write(self, name, value):
        file = self.directory / name
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return file

    def server(self, *arguments):
        return Server("--config", self.config, *arguments, snapshot=self.cluster)

    def ask(self, server, verb, body):
        status, text = call("POST", f"{server.scheduler}/scheduler/{verb}", body)
        self.assertEqual(status, 200)
        return json.loads(text)

    def test_a_template_has_the_cards_of_its_profile(self):
        with self.server() as server:
            nodes = {"items": [template("new-l4", "l4"), template("new-cpu", "cpu"), MUTE, REAL]}
            answer = self.ask(server, "filter-dryrun", {"Pod": asking("a", 24), "Nodes": nodes})
            self.assertEqual(answer["Error"], "")
            self.assertEqual([node["metadata"]["name"] for node in answer["Nodes"]["items"]], ["new-l4"])
            refused = {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}
            # A node that is there is what it says: one has less, the other nothing yet.
            self.assertEqual(sorted(refused), ["mute", "new-cpu", "real"])
            answer = self.ask(server, "filter-dryrun", {"Pod": asking("a", 25), "Nodes": nodes})
            self.assertEqual(answer["Nodes"]["items"], [])
            # cluster-autoscaler states so many of the resource as the group's annotation does.
            hami = template("new-hami", "hami", **{"nvidia.com/gpu": "4"})
            pod = asking("b", 1, "nvidia.com/gpu")
            pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "20000"
            answer = self.ask(server, "filter-dryrun", {"Pod": pod, "Nodes": {"items": [hami]}})
            self.assertEqual(len(answer["Nodes"]["items"]), 1, answer)
            # What it holds goes away with the answer.
            self.assertNotIn("new-l4", call("GET", f"{server.operations}/api/v1/nodes")[1])

    def test_nothing_is_bound_to_an_unknown_node(self):
        with self.server() as server:
            pod = asking("a", 24, uid="a")
            nodes = {"items": [template("new-l4", "l4")]}
            answer = self.ask(server, "filter", {"Pod": pod, "Nodes": nodes})
            self.assertEqual(answer["Nodes"]["items"], [])
            self.assertIn("new-l4", {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]})
            self.ask(server, "filter-dryrun", {"Pod": pod, "Nodes": nodes})
            answer = self.ask(server, "filter", {"Pod": pod, "NodeNames": ["new-l4", "mute"]})
            self.assertEqual(answer["NodeNames"], [])
            answer = self.ask(server, "bind", {"PodName": "a", "PodNamespace": "test", "PodUID": "a",
                                               "Node": "new-l4"})
            self.assertNotEqual(answer["Error"], "")

    def test_fit_with_a_template(self):
        pod, file = self.write("pod.json", asking("a", 12)), self.write("new.json", template("group", "l4"))
        for profiles, made, code in ((PROFILES, 3, 0), ("", 0, 3)):
            result = run("fit", "-f", pod, "--replicas=9", "--template", file, "--snapshot", self.cluster,
                         "--card-profiles", profiles, "-ojson")
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual(json.loads(result.stdout)["newNodes"], made)
        # The name of a Node that is there: what that one says counts, and it says nothing.
        result = run("fit", "-f", pod, "--replicas=1", "--template", self.write("mute.json", MUTE),
                     "--snapshot", self.cluster, "--card-profiles", PROFILES, "-ojson")
        self.assertEqual((result.returncode, json.loads(result.stdout)["fitting"]), (3, 0))

    def test_several_pods_at_once(self):
        with self.server() as server:
            before = call("GET", f"{server.operations}/api/v1/nodes")[1]
            pods = [asking("a", 20), asking("b", 20), asking("c", 20), asking("d", 8), asking("cpu", 0),
                    asking("odd", "1.5")]
            nodes = {"items": [template("new", "l4"), REAL]}
            answer = self.ask(server, "filter-dryrun", {"Pods": pods, "Nodes": nodes})
            self.assertEqual(answer["Error"], "")
            told = {row["Name"]: row for row in answer["Placements"]}
            self.assertEqual(list(told), [pod["metadata"]["name"] for pod in pods])
            self.assertEqual([told[name]["Node"] for name in "abcd"], ["new", "new", None, "real"])
            self.assertEqual([row["Fits"] for row in told.values()],
                             [True, True, False, True, True, False])
            self.assertEqual(told["c"]["Reasons"], {"insufficient_memory": 1, "card_too_small": 1})
            self.assertEqual(told["a"]["Reasons"], {})
            self.assertIn("1.5", told["odd"]["Why"])
            # Only the nodes that are offered.
            answer = self.ask(server, "filter-dryrun", {"Pods": [asking("a", 4)], "NodeNames": ["mute", "nope"]})
            self.assertEqual(answer["Placements"][0]["Reasons"], {"node_unknown": 1, "not_gpu_share": 1})
            self.assertEqual(call("GET", f"{server.operations}/api/v1/nodes")[1], before, "nothing has changed")

    def test_a_pod_that_has_a_place_gives_it_up_first(self):
        held = asking("held", 8, uid="held", annotations={
            "ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "8",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767225600000000000"})
        bound = {**held, "spec": {**held["spec"], "nodeName": "real"}, "status": {"phase": "Running"}}
        self.cluster = self.write("cluster.json", listing(REAL, bound))
        with self.server() as server:
            for pods, fits in (([asking("a", 8)], [False]), ([asking("a", 8), held], [True, False])):
                answer = self.ask(server, "filter-dryrun", {"Pods": pods, "NodeNames": ["real"]})
                self.assertEqual([row["Fits"] for row in answer["Placements"]], fits)

    def test_what_is_no_question(self):
        with self.server() as server:
            one = asking("a", 1)
            for body, part in (({"Pods": [one], "Pod": one, "NodeNames": []}, "'Pod' and 'Pods'"),
                               ({"NodeNames": []}, "'Pod' and 'Pods'"),
                               ({"Pods": [], "NodeNames": []}, "0 pods"),
                               ({"Pods": [one] * 1001, "NodeNames": []}, "1001 pods"),
                               ({"Pods": [one] * 1000, "NodeNames": ["n"] * 5001}, "too many"),
                               ({"Pods": [{}], "NodeNames": []}, "item 0"),
                               ({"Pods": [one]}, "'NodeNames' and 'Nodes'"),
                               ({"Pods": one, "NodeNames": []}, "Pods")):
                answer = self.ask(server, "filter-dryrun", body)
                self.assertIn(part, answer["Error"])
                self.assertNotIn("Placements", answer)
            # filter itself is asked about one pod.
            answer = self.ask(server, "filter", {"Pods": [one], "NodeNames": ["real"]})
            self.assertIn("Pod", answer["Error"])

    def test_profiles_that_cannot_be_read(self):
        result = run("serve", "--card-profiles", "pool=a: gpushare, cards=4", "--snapshot", self.cluster)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("cards=N, memory=SIZE", result.stderr)


if __name__ == "__main__":
    unittest.main()
