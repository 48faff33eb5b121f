#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kube-scheduler leaves out by itself, in explain, in fit, and in the dry run of filter: node
selectors, affinity, taints, cordoned nodes."""

import copy
import json
import pathlib
import tempfile
import unittest

from program import Server, call, listing, run

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ML = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
TAINT = "taint dedicated=ml:NoSchedule is not tolerated"


def gpus(name, units, labels=None, **spec):
    return {"kind": "Node", "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, **(labels or {})}},
            "spec": spec, "status": {"capacity": {"aliyun.com/gpu-count": "1",
                                                  "aliyun.com/gpu-mem": str(units)}}}


def asking(units, **spec):
    return {"kind": "Pod", "metadata": {"namespace": "test", "name": "asked"},
            "spec": {"containers": [{"name": "main", "resources": {
                "limits": {"aliyun.com/gpu-mem": str(units)}}}], **spec}}


def zone(operator, *values):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "zone", "operator": operator, **({"values": values} if values else {})}]}]}}}


def dry_run(server, pod, **nodes):
    status, text = call("POST", f"{server.scheduler}/scheduler/filter-dryrun", {"Pod": pod, **nodes})
    answer = json.loads(text)
    if (status, answer["Error"]) != (200, ""):
        raise AssertionError(answer)
    return answer


CLUSTER = [gpus("plain", 10, {"zone": "a"}), gpus("tainted", 10, {"zone": "b"}, taints=[ML]),
           gpus("closed", 10, {"zone": "c"}, unschedulable=True)]
TOLERATING = [{"key": "dedicated", "operator": "Exists"}]
CORDON = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]


class Constraints(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def write(self, name, value):
        file = self.directory / name
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return file

    def ask(self, verb, pod, *arguments, cluster=None, code=0):
        result = run(verb, "-f", self.write("pod.json", pod), "--snapshot",
                     self.write("cluster.json", listing(*(cluster or CLUSTER))), *arguments)
        said = (result.returncode, result.stderr)
        self.assertIn(said, [(0, ""), (3, "")] if verb == "explain" else [(code, "")])
        return result.stdout

    def explain(self, pod, **keywords):
        return json.loads(self.ask("explain", pod, "-ojson", **keywords))

    def takers(self, pod, **keywords):
        """Who takes the pod, by explain, by fit and by the dry run, which must agree."""
        told = self.explain(pod, **keywords)
        nodes = {each["name"]: each for each in told["nodes"]}
        takers = {name for name, each in nodes.items()
                  if each["reason"] is None and each["barrier"] is None}
        self.assertEqual(told["nodesTaking"], len(takers))
        fit = json.loads(self.ask("fit", pod, "-ojson", **keywords))
        self.assertEqual({place["node"] for place in fit["places"]}, takers)
        with Server(snapshot=self.directory / "cluster.json") as server:
            answer = dry_run(server, pod, NodeNames=sorted(nodes))
            self.assertEqual(set(answer["NodeNames"]), takers)
            for name, why in answer["FailedAndUnresolvableNodes"].items():
                if nodes[name]["barrier"]:
                    self.assertIn(why, nodes[name]["why"])
        return takers

    def test_who_is_left(self):
        for wanted, spec in [
            ({"plain"}, {}),
            ({"plain"}, {"nodeSelector": {"zone": "a"}}),
            (set(), {"nodeSelector": {"zone": "b"}}),
            ({"tainted"}, {"nodeSelector": {"zone": "b"}, "tolerations": TOLERATING}),
            ({"plain", "tainted"}, {"tolerations": TOLERATING}),
            ({"plain", "closed"}, {"tolerations": CORDON}),
            ({"tainted"}, {"tolerations": TOLERATING, "affinity": zone("NotIn", "a")}),
            ({"plain", "tainted", "closed"}, {"tolerations": [{"operator": "Exists"}]}),
            ({"closed"}, {"tolerations": [{"operator": "Exists"}], "affinity": zone("In", "c")}),
            (set(), {"affinity": zone("DoesNotExist")}),
            ({"plain"}, {"nodeName": "plain"}),
            (set(), {"nodeName": "tainted"}),
        ]:
            with self.subTest(spec=spec):
                self.assertEqual(self.takers(asking(5, **spec)), wanted)

    def test_what_is_told(self):
        self.assertEqual(self.ask("explain", asking(5, nodeSelector={"zone": "b"})), f"""\
test/asked wants 5 units of memory of one card (gpushare): none of 3 nodes takes it

NODES  REASON                CLOSEST  WHY
    1  cordoned              closed   cordoned; else it takes the pod
    1  taint                 tainted  {TAINT}; else it takes the pod
    1  node_selector         plain    nodeSelector: zone=b; the node has zone=a; else it takes the pod

Preemption ends nobody: no pod where it may go has a lower priority than its own, 0.

ANY OF THESE WOULD ADMIT IT
    1  tolerate dedicated=ml:NoSchedule; it would go to tainted
    2  take zone=b out of its nodeSelector; it would go to plain
""")
        told = self.explain(asking(11))
        self.assertEqual({each["name"]: each["why"] for each in told["nodes"]}, {
            "plain": "card 0: wants 11GiB, the card has 10GiB in all",
            "tainted": TAINT + ", and card 0: wants 11GiB, the card has 10GiB in all",
            "closed": "cordoned, and card 0: wants 11GiB, the card has 10GiB in all"})
        self.assertEqual([(group["reason"], group["barrier"]) for group in told["groups"]],
                         [("card_too_small", None), ("card_too_small", "cordoned"),
                          ("card_too_small", "taint")])

    def test_the_remedies_admit_it(self):
        def tolerate(cluster, pod, remedy):
            key, effect = remedy["key"].split(":")
            key, _, value = key.partition("=")
            pod["spec"].setdefault("tolerations", []).append(
                {"key": key, "value": value, "effect": effect})

        def select(cluster, pod, remedy):
            del pod["spec"]["nodeSelector"][remedy["key"].partition("=")[0]]

        def uncordon(cluster, pod, remedy):
            del next(each for each in cluster
                     if each["metadata"]["name"] == remedy["node"])["spec"]["unschedulable"]

        seen = set()
        doing = {"tolerate": tolerate, "selector": select, "uncordon": uncordon,
                 "affinity": lambda cluster, pod, remedy: pod["spec"].pop("affinity")}
        for spec in ({"nodeSelector": {"zone": "b"}}, {"nodeSelector": {"zone": "c"}},
                     {"affinity": zone("In", "z")},
                     {"nodeSelector": {"zone": "a", "disk": "ssd"}}):
            for remedy in self.explain(asking(5, **spec))["remedies"]:
                cluster, pod = copy.deepcopy((CLUSTER, asking(5, **spec)))
                doing[remedy["kind"]](cluster, pod, remedy)
                self.assertIn(remedy["node"], self.takers(pod, cluster=cluster), remedy)
                seen.add(remedy["kind"])
        self.assertEqual(seen, set(doing))

    def test_what_is_not_looked_at(self):
        pod = asking(5, affinity={"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}},
                     volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                     topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}])
        names = ["podAntiAffinity", "topologySpreadConstraints", "volumes"]
        for verb in ("explain", "fit"):
            self.assertEqual(json.loads(self.ask(verb, pod, "-ojson"))["notLookedAt"], names)
            self.assertEqual(self.ask(verb, pod).splitlines()[1],
                             "Not looked at: " + ", ".join(names))
            self.assertNotIn("Not looked at", self.ask(verb, asking(5)))

    def test_gates(self):
        def gated(*names):
            return asking(5, schedulingGates=[{"name": name} for name in names])

        for names, wanted in (
                ((), None),
                (("example.com/budget",), "scheduling gate example.com/budget"),
                (("kueue.x-k8s.io/admission", "example.com/budget"),
                 "scheduling gates kueue.x-k8s.io/admission, example.com/budget; Kueue takes its own away when it "
                 "admits the pod's Workload")):
            self.assertEqual(self.explain(gated(*names))["heldBack"], wanted)
            told = self.ask("explain", gated(*names)).splitlines()
            self.assertEqual([line for line in told if line.startswith("Held back: ")],
                             [f"Held back: {wanted}"] if wanted else [])

    def test_a_mistake(self):
        pod = asking(5, tolerations=[{"operator": "Maybe"}])
        told = self.explain(pod)
        self.assertEqual((told["verdict"], told["failure"]), (
            "invalid",
            "field 'spec.tolerations': item 0: field 'operator': 'Maybe' is not one that is known"))
        result = run("fit", "-f", self.write("pod.json", pod), "--snapshot",
                     self.write("cluster.json", listing(*CLUSTER)))
        self.assertEqual((result.returncode, result.stderr),
                         (1, f"gpuledger: {told['failure']}\n"))

    def test_a_template(self):
        """A new node is of the template's kind: its labels and taints, but neither its name nor how
        it was doing."""
        template = gpus("large", 10, {"zone": "z"}, unschedulable=True, taints=[
            ML, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
        file = self.write("template.json", template)
        for fitting, spec in [
            (1, {}),
            (0, {"nodeSelector": {"zone": "z"}}),
            (3, {"nodeSelector": {"zone": "z"}, "tolerations": TOLERATING}),
            (0, {"nodeSelector": {"kubernetes.io/hostname": "large"}, "tolerations": TOLERATING}),
        ]:
            told = json.loads(self.ask("fit", asking(10, **spec), "-ojson", "--replicas=3",
                                       "--template", file, code=0 if fitting == 3 else 3))
            self.assertEqual(told["fitting"], fitting, spec)
        with Server(snapshot=self.directory / "cluster.json") as server:
            answer = dry_run(server, asking(5), Nodes={"items": [template]})
            self.assertEqual(answer["FailedAndUnresolvableNodes"], {"large": TAINT})

    def test_draining(self):
        """A pod of a drained node goes where it may; that it tolerates cordoned nodes does not bring
        it back."""
        def held(name, **spec):
            pod = asking(4, nodeName="plain", **spec)
            pod["metadata"] = {"namespace": "test", "name": name, "uid": name, "annotations": {
                "ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "4",
                "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767225600000000000"}}
            return {**pod, "status": {"phase": "Running"}}

        cluster = listing(*CLUSTER, held("lost"), held("saved", tolerations=TOLERATING),
                          held("stubborn", tolerations=CORDON, nodeSelector={"zone": "a"}))
        result = run("fit", "--drain=plain", "-ojson", "--snapshot",
                     self.write("cluster.json", cluster))
        told = {each["name"]: each for each in json.loads(result.stdout)["drained"]}
        self.assertEqual({name: each["to"] for name, each in told.items()},
                         {"lost": None, "saved": "tainted", "stubborn": None})
        self.assertIn(TAINT, told["lost"]["why"] + told["stubborn"]["why"])

    def test_cpu_and_memory(self):
        """What pods with and without a GPU request of the node counts."""
        def taking(pod, **requests):
            pod["spec"]["containers"][0]["resources"]["requests"] = requests
            return pod

        node = gpus("n1", 10)
        node["status"]["allocatable"] = {**node["status"]["capacity"], "cpu": "4", "memory": "8Gi"}
        guest = {"kind": "Pod", "metadata": {"namespace": "test", "name": "guest", "uid": "guest"},
                 "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": {
                     "requests": {"cpu": "1500m", "memory": "2Gi"}}}]},
                 "status": {"phase": "Running"}}
        cluster = [node, guest]
        for wanted, requests in [({"n1"}, {"cpu": "2500m", "memory": "6Gi"}), (set(), {"cpu": "2600m"}),
                                 (set(), {"memory": "7Gi"})]:
            self.assertEqual(self.takers(taking(asking(10), **requests), cluster=cluster), wanted)
        told = self.explain(taking(asking(5), cpu="3"), cluster=cluster)
        self.assertEqual((told["nodes"][0]["barrier"], told["nodes"][0]["why"]), (
            "cpu", "wants 3 CPU, the node has 2.5 free of 4; else it takes the pod"))
        told = self.explain(taking(asking(5), memory="7Gi"), cluster=cluster)
        self.assertEqual((told["nodes"][0]["barrier"], told["nodes"][0]["why"]), (
            "memory", "wants 7GiB of the node's memory, which has 6GiB free of 8GiB; else it takes "
                      "the pod"))
        fit = json.loads(self.ask("fit", taking(asking(2), cpu="1"), "-ojson", cluster=cluster))
        self.assertEqual(fit["fitting"], 2)

    def test_pods(self):
        """A node takes so many pods, whatever they ask for; those that have ended do not count."""
        def guest(name, phase="Running"):
            return {"kind": "Pod", "metadata": {"namespace": "test", "name": name, "uid": name},
                    "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
                    "status": {"phase": phase}}

        node = gpus("n1", 10)
        node["status"]["allocatable"] = {**node["status"]["capacity"], "pods": "3"}
        cluster = [node, guest("a"), guest("b"), guest("ended", "Succeeded")]
        self.assertEqual(self.takers(asking(5), cluster=cluster), {"n1"})
        fit = json.loads(self.ask("fit", asking(2), "-ojson", cluster=cluster))
        self.assertEqual((fit["fitting"], fit["refusals"][0]["barrier"]), (1, "pods"))
        told = self.explain(asking(5), cluster=[*cluster, guest("c")])
        self.assertEqual((told["nodes"][0]["barrier"], told["nodes"][0]["why"]), (
            "pods", "the node has 3 pods of at most 3; else it takes the pod"))

    def test_moving_a_pod_without_a_gpu(self):
        """Of those whose end makes room the least important that has a home, which may be a node
        without GPUs; what is proposed is done."""
        def guest(name, cpu, where="n1", **spec):
            return {"kind": "Pod", "metadata": {"namespace": "web", "name": name, "uid": name},
                    "spec": {"nodeName": where, "containers": [{"name": "main", "resources": {
                        "requests": {"cpu": cpu}}}], **spec}, "status": {"phase": "Running"}}

        def room(name, cpu, pods, capacity=None):
            return {"kind": "Node", "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name}}, "status": {
                    "capacity": capacity or {}, "allocatable": {
                        **(capacity or {}), "cpu": cpu, "memory": "8Gi", "pods": pods}}}

        gpu = {"aliyun.com/gpu-count": "1", "aliyun.com/gpu-mem": "10"}
        own = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}
        mirror = guest("mirror", "1", priority=-9)
        mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        guests = [guest("tied", "1", priority=-5, **own), mirror,
                  guest("vast", "4", priority=-4), guest("claims", "1", priority=-3, volumes=[
                      {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
                  guest("movable", "2", priority=-2), guest("important", "2", priority=5)]
        asked = asking(5)
        asked["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
        for nodes, moved in (
                ([room("n1", "99", "6", gpu), room("cpu", "3", "1")], "movable"),
                ([room("n1", "11", "99", gpu), room("cpu", "3", "1")], "movable"),
                ([room("n1", "99", "6", gpu), room("cpu", "3", "1"), guest("full", "0", "cpu")],
                 None),
                ([room("n1", "99", "5", gpu), room("cpu", "3", "1")], None)):
            cluster = [*nodes, *guests]
            told = self.explain(asked, cluster=cluster)
            self.assertEqual(told["verdict"], "refused")
            if not moved:
                self.assertEqual(told["remedies"], [])
                continue
            remedy = told["remedies"][0]
            self.assertEqual((remedy["kind"], remedy["text"], remedy["node"]),
                             ("move", f"move web/{moved} to cpu", "n1"))
            after = [{**each, "spec": {**each["spec"], "nodeName": "cpu"}}
                     if each["metadata"]["name"] == moved else each for each in cluster]
            self.assertEqual(self.takers(asked, cluster=after), {"n1"})

    def test_filter_does_not_look(self):
        """kube-scheduler has, before it asks."""
        with Server(snapshot=self.write("cluster.json", listing(*CLUSTER))) as server:
            pod = asking(5, nodeSelector={"zone": "z"})
            pod["metadata"]["uid"] = "asked"
            self.assertEqual(server.filter(pod, ["plain", "tainted", "closed"])["NodeNames"],
                             ["plain", "tainted", "closed"])


if __name__ == "__main__":
    unittest.main()
