#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What "explain" proposes, done: the pod is then admitted by filter. Over random clusters of many
dialects; GPULEDGER_SEED repeats a run, GPULEDGER_EVENTS says how many clusters there are."""

import copy
import json
import os
import pathlib
import random
import signal
import tempfile
import unittest

from program import Server, call, listing, run

GIB, MIB = 1 << 30, 1 << 20
SEED = int(os.environ.get("GPULEDGER_SEED") or random.randrange(1 << 32))
CLUSTERS = int(os.environ.get("GPULEDGER_EVENTS") or 36)


def node(name, resources, **metadata):
    return {"kind": "Node", "metadata": {"name": name, **metadata},
            "status": {"capacity": resources, "allocatable": resources}}


def hami_card(name, card, memory):
    return (f"GPU-{name}-{card}", 10, memory, 100, "NVIDIA-Tesla-T4", 0, "true")


class Dialect:
    """How nodes of a way to share look, and what pods ask of it."""

    def __init__(self, make, ask):
        self.node, self.ask = make, ask


def gpushare(unit):
    return Dialect(
        lambda chance, name: (lambda cards: node(name, {
            "aliyun.com/gpu-count": str(cards),
            "aliyun.com/gpu-mem": str(cards * chance.choice((11, 15, 23)) * unit)}))(
                chance.randint(1, 4)),
        lambda chance: {"aliyun.com/gpu-mem": str(chance.randint(1, 26) * unit)})


def draw_hami(chance, name):
    cards = [hami_card(name, card, chance.choice((11264, 15360)))
             for card in range(chance.randint(1, 3))]
    text = "".join(",".join(map(str, card)) + ":" for card in cards)
    return node(name, {"nvidia.com/gpu": str(10 * len(cards))},
                annotations={"hami.io/node-nvidia-register": text})


DIALECTS = {
    "gpushare": gpushare(1),
    "gpushare of MiB": gpushare(1024),
    "volcano": Dialect(
        lambda chance, name: (lambda cards: node(name, {
            "volcano.sh/gpu-number": str(cards),
            "volcano.sh/gpu-memory": str(cards * chance.choice((8000, 16000)))}))(
                chance.randint(1, 3)),
        lambda chance: {"volcano.sh/gpu-memory": str(chance.randint(1, 20) * 1000)}),
    "elastic": Dialect(
        lambda chance, name: (lambda cards: node(name, {
            "elasticgpu.io/gpu-core": str(cards * 100),
            "elasticgpu.io/gpu-memory": str(cards * 16384)}))(chance.randint(1, 4)),
        lambda chance: chance.choice((
            {"elasticgpu.io/gpu-core": str(chance.choice((20, 50, 70, 100, 300)))},
            {"elasticgpu.io/gpu-core": str(chance.randint(5, 60)),
             "elasticgpu.io/gpu-memory": str(chance.randint(1, 17) * 1024)}))),
    "tencent": Dialect(
        lambda chance, name: (lambda cards: node(name, {
            "tencent.com/vcuda-core": str(cards * 100),
            "tencent.com/vcuda-memory": str(cards * 60)}))(chance.randint(1, 4)),
        lambda chance: chance.choice((
            {"tencent.com/vcuda-core": str(chance.choice((100, 200, 500)))},
            {"tencent.com/vcuda-core": str(chance.randint(5, 95)),
             "tencent.com/vcuda-memory": str(chance.randint(1, 70))}))),
    "nvidia": Dialect(
        lambda chance, name: node(name, {"nvidia.com/gpu": str(chance.randint(1, 4))}, labels={
            "nvidia.com/gpu.product": chance.choice(("Tesla-T4", "NVIDIA-A10")),
            "nvidia.com/gpu.memory": "15360", "nvidia.com/gpu.count": "4"}),
        lambda chance: {"nvidia.com/gpu": str(chance.randint(1, 5))}),
    "hami": Dialect(
        draw_hami,
        lambda chance: {"nvidia.com/gpu": str(chance.randint(1, 3)),
                        "nvidia.com/gpumem": str(chance.randint(1, 16) * 1024)}),
}

CONDITIONS = [{}, {}, {}, {"gpuledger.io/gpu-models": "H100"}, {"gpuledger.io/gpu-memory-min": "80Gi"},
              {"gpuledger.io/isolation": "hardware"}, {"gpuledger.io/gpu-compute-min": "8.0"}]


def make_pod(name, limits, annotations=None):
    return {"kind": "Pod",
            "metadata": {"namespace": "test", "name": name, "uid": f"uid-{name}",
                         "annotations": dict(annotations or {})},
            "spec": {"containers": [{"name": "main", "resources": {"limits": dict(limits)}}]},
            "status": {"phase": "Pending"}}


def admit(server, asked, names, wanted=None):
    """Has the pod filtered and bound; the node, or None."""
    passing = server.filter(asked, names)["NodeNames"]
    if not passing or (wanted and wanted not in passing):
        return None
    target = wanted or passing[0]
    call("POST", f"{server.operations}/api/v1/snapshot/pods", asked)
    return target if server.bind(asked, target)["Error"] == "" else None


class Remedies(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.seen = {}

    def write(self, name, value):
        file = self.directory / name
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return file

    def fill(self, chance, dialect):
        """A cluster after some pods have come, as objects."""
        nodes = [dialect.node(chance, f"n{i}") for i in range(chance.randint(1, 4))]
        for each in nodes:
            if chance.random() < 0.15:
                each["spec"] = {"unschedulable": True}
        names = [each["metadata"]["name"] for each in nodes]
        out = self.directory / "filled.json"
        with Server(f"--snapshot-out={out}",
                    snapshot=self.write("empty.json", listing(*nodes))) as server:
            for i in range(chance.randint(0, 14)):
                admit(server, make_pod(f"p{i}", dialect.ask(chance)),
                      [chance.choice(names)])
            server.signal(signal.SIGTERM)
            self.assertEqual(server.exit_code(), 0)
        items = json.loads(out.read_text())["items"]
        for name in names:
            if chance.random() < 0.2:
                items.append({"kind": "ConfigMap",
                              "metadata": {"namespace": "kube-system",
                                           "name": f"unhealthy-gpu-{name}"},
                              "data": {"gpus": "0"}})
        return items, names

    def explain(self, asked, cluster):
        result = run("explain", "-f", self.write("asked.json", asked), "--snapshot",
                     cluster, "-ojson")
        self.assertIn((result.returncode, result.stderr), ((0, ""), (3, "")))
        return json.loads(result.stdout)

    # --- doing what is proposed: each changes objects or the pod in place -------------------------

    def do_uncordon(self, items, asked, remedy):
        for each in items:
            if each["kind"] == "Node" and each["metadata"]["name"] == remedy["node"]:
                del each["spec"]["unschedulable"]

    def do_amount(self, items, asked, remedy):
        for container in asked["spec"]["containers"]:
            if container["name"] == remedy["container"]:
                limits = container["resources"]["limits"]
                self.assertEqual(limits[remedy["resource"]], remedy["from"])
                limits[remedy["resource"]] = remedy["to"]

    def do_dialect(self, items, asked, remedy):
        said = {each["name"]: each["amounts"] for each in remedy["containers"]}
        for container in asked["spec"]["containers"]:
            if container["name"] in said:
                container["resources"]["limits"] = said[container["name"]]

    def do_end(self, items, asked, remedy):
        gone = [(pod["namespace"], pod["name"]) for pod in remedy["pods"]]
        items[:] = [each for each in items if each["kind"] != "Pod" or
                    (each["metadata"]["namespace"], each["metadata"]["name"]) not in gone]

    def do_heal(self, items, asked, remedy):
        items[:] = [each for each in items if each["kind"] != "ConfigMap" or
                    each["metadata"]["name"] != "unhealthy-gpu-" + remedy["node"]]

    def do_condition(self, items, asked, remedy):
        self.assertEqual(asked["metadata"]["annotations"].pop(remedy["key"]), remedy["from"])

    def do_tolerate(self, items, asked, remedy):
        for taint in remedy["key"].split(", "):
            key, effect = taint.rsplit(":", 1)
            key, _, value = key.partition("=")
            asked["spec"].setdefault("tolerations", []).append(
                {"key": key, "value": value, "effect": effect})

    def do_selector(self, items, asked, remedy):
        for label in remedy["key"].split(", "):
            del asked["spec"]["nodeSelector"][label.partition("=")[0]]

    def do_affinity(self, items, asked, remedy):
        del asked["spec"]["affinity"]

    def do_label(self, items, asked, remedy):
        for each in items:
            if each["kind"] == "Node" and each["metadata"]["name"] == remedy["node"]:
                each["metadata"].setdefault("labels", {})[remedy["key"]] = "9"

    DOING = {"uncordon": do_uncordon, "unit": do_amount, "less": do_amount, "dialect": do_dialect,
             "end": do_end,
             "move": do_end, "heal": do_heal, "condition": do_condition, "label": do_label,
             "tolerate": do_tolerate, "selector": do_selector, "affinity": do_affinity}

    def check(self, items, names, asked, remedy, *also):
        """Does one, or all of several; the node takes the pod, and those that move find a home."""
        before = {each["metadata"]["name"]: copy.deepcopy(each)
                  for each in items if each["kind"] == "Pod"}
        items, asked = copy.deepcopy(items), copy.deepcopy(asked)
        for each in (remedy, *also):
            self.DOING[each["kind"]](self, items, asked, each)
        with Server(snapshot=self.write("changed.json", listing(*items))) as server:
            # What filter is not asked, since kube-scheduler looks at it, the dry run is.
            _, text = call("POST", f"{server.scheduler}/scheduler/filter-dryrun",
                           {"Pod": asked, "NodeNames": names})
            self.assertIn(remedy["node"], json.loads(text)["NodeNames"] or [],
                          f"seed {SEED}: {remedy} {also} does not admit {asked} to {items}")
            self.assertEqual(admit(server, asked, names, remedy["node"]), remedy["node"],
                             f"seed {SEED}: {remedy} does not admit {asked} to {items}")
            for moved in [*remedy["pods"], *(pod for each in also for pod in each["pods"])]:
                if not moved["to"]:
                    continue
                limits = before[moved["name"]]["spec"]["containers"][0]["resources"]["limits"]
                home = admit(server, make_pod(moved["name"] + "-again", limits), names, moved["to"])
                self.assertEqual(home, moved["to"], f"seed {SEED}: {remedy}: {moved} of {items}")
        kinds = " and ".join(each["kind"] for each in (remedy, *also))
        self.seen[kinds] = self.seen.get(kinds, 0) + 1

    def check_less(self, cluster, asked, remedy):
        """One more would be too much: the bisection has ended where it should."""
        asked = copy.deepcopy(asked)
        limits = asked["spec"]["containers"][0]["resources"]["limits"]
        limits[remedy["resource"]] = str(int(remedy["to"]) + 1)
        if limits[remedy["resource"]] != remedy["from"]:
            self.assertNotEqual(self.explain(asked, cluster)["verdict"], "fits",
                                f"seed {SEED}: {remedy}")

    def test_what_is_proposed_admits_the_pod(self):
        chance = random.Random(SEED)
        refused = 0
        for _ in range(CLUSTERS):
            dialect = DIALECTS[chance.choice(sorted(DIALECTS))]
            items, names = self.fill(chance, dialect)
            cluster = self.write("cluster.json", listing(*items))
            for i in range(3):
                asked = make_pod(f"asked-{i}", dialect.ask(chance), chance.choice(CONDITIONS))
                told = self.explain(asked, cluster)
                if told["verdict"] != "refused":
                    continue
                refused += 1
                for remedy in told["remedies"]:
                    self.check(items, names, asked, remedy)
                    if remedy["kind"] == "less":
                        self.check_less(cluster, asked, remedy)
                for pair in told["pairs"]:
                    self.assertEqual(told["remedies"], [])
                    self.assertEqual({each["node"] for each in pair["changes"]}, {pair["node"]})
                    self.check(items, names, asked, *pair["changes"])
        print(f"# seed {SEED}: {refused} refused pods; done and admitted: {self.seen}")
        self.assertGreater(sum(self.seen.values()), 0)

    def test_a_unit(self):
        nodes = [node("n1", {"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "30"})]
        cluster = self.write("cluster.json", listing(*nodes))
        asked = make_pod("a", {"aliyun.com/gpu-mem": "8192"})
        found = {remedy["kind"]: remedy for remedy in self.explain(asked, cluster)["remedies"]}
        self.assertEqual(list(found), ["unit"])
        self.assertEqual((found["unit"]["from"], found["unit"]["to"]), ("8192", "8"))
        self.check(nodes, ["n1"], asked, found["unit"])

    def test_another_dialect(self):
        """Who speaks the only dialect that no node here reads is told the words of each other one."""
        nodes = {
            "gpushare": node("gpushare", {"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "32"}),
            "tencent": node("tencent", {"tencent.com/vcuda-core": "200",
                                        "tencent.com/vcuda-memory": "128"}),
            "volcano": node("volcano", {"volcano.sh/gpu-number": "2",
                                        "volcano.sh/gpu-memory": "32768"}),
            "volcano-number": node("volcano-number", {"volcano.sh/gpu-number": "2"}),
            "elastic": node("elastic", {"elasticgpu.io/gpu-core": "200",
                                        "elasticgpu.io/gpu-memory": "32768"}),
            "nvidia": node("nvidia", {"nvidia.com/gpu": "2"}),
            "hami": node("hami", {"nvidia.com/gpu": "10"},
                         annotations={"hami.io/node-nvidia-register": ",".join(
                             map(str, hami_card("h", 0, 16384))) + ":"}),
            "volcano-vgpu": node("volcano-vgpu", {"volcano.sh/vgpu-number": "10"},
                                 annotations={"volcano.sh/node-vgpu-register":
                                              "GPU-v,10,16384,T4,true,hami-core:"}),
        }
        # 8 GiB of one card of 16, half of it
        half = {
            "gpushare": {"aliyun.com/gpu-mem": "8"},
            "hami": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8192"},
            "tencent": {"tencent.com/vcuda-memory": "32", "tencent.com/vcuda-core": "50"},
            "volcano": {"volcano.sh/gpu-memory": "8192"},
            "elastic": {"elasticgpu.io/gpu-memory": "8192", "elasticgpu.io/gpu-core": "50"},
            "volcano-vgpu": {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "8192"},
        }
        whole = {
            "tencent": {"tencent.com/vcuda-core": "200"},
            "volcano-number": {"volcano.sh/gpu-number": "2"},
            "elastic": {"elasticgpu.io/gpu-core": "200"},
            "nvidia": {"nvidia.com/gpu": "2"},
        }
        # What says half a compute can only be said where that can be.
        cores = {"tencent", "elastic", "hami", "volcano-vgpu"}
        for wordings, spoken in ((half, ("gpushare", "hami", "volcano", "volcano-vgpu")),
                                 (half, ("tencent", "elastic")), (whole, tuple(whole))):
            for own in spoken:
                speaks = own.split("-number", maxsplit=1)[0]
                heard = [name for name in wordings if name != own]
                items = [nodes[name] for name in heard]
                asked = make_pod("asked", wordings[own])
                told = self.explain(asked, self.write("cluster.json", listing(*items)))
                found = {remedy["node"]: remedy for remedy in told["remedies"]
                         if remedy["kind"] == "dialect"}
                wanted = set(heard) - ({"volcano"} if speaks == "volcano" else set())
                if own in ("tencent", "elastic") and wordings is half:
                    wanted &= cores
                self.assertEqual(set(found), wanted, (own, told["summary"]))
                for name, remedy in found.items():
                    if own not in ("tencent", "elastic") or wordings is whole:
                        self.assertEqual(remedy["containers"],
                                         [{"name": "main", "amounts": wordings[name]}], (own, name))
                    self.check(items, heard, asked, remedy)
        seen = {remedy["key"] for remedy in found.values()}
        self.assertEqual(seen, {"tencent", "volcano", "elastic"})

    def translations(self, containers, *heard):
        """In which dialects, container by container, the pod may ask; each is tried."""
        asked = make_pod("asked", {})
        asked["spec"]["containers"] = [{"name": name, "resources": {"limits": limits}}
                                       for name, limits in containers.items()]
        told = self.explain(asked, self.write("cluster.json", listing(*heard)))
        found = {}
        for remedy in told["remedies"]:
            if remedy["kind"] != "dialect":
                continue
            self.check(heard, [each["metadata"]["name"] for each in heard], asked, remedy)
            found[remedy["key"]] = {each["name"]: each["amounts"] for each in remedy["containers"]}
        return found

    def test_another_dialect_for_several_containers(self):
        """All of them, with compute and memory of their own; not where they would be added up."""
        gpushare = node("gpushare", {"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "32"})
        elastic = node("elastic", {"elasticgpu.io/gpu-core": "200",
                                   "elasticgpu.io/gpu-memory": "32768"})
        hami = node("hami", {"nvidia.com/gpu": "10"}, annotations={
            "hami.io/node-nvidia-register": ",".join(map(str, hami_card("h", 0, 16384))) + ":" +
                                            ",".join(map(str, hami_card("h", 1, 16384))) + ":"})
        tencent = node("tencent", {"tencent.com/vcuda-core": "200",
                                   "tencent.com/vcuda-memory": "128"})
        in_hami = {"a": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096",
                         "nvidia.com/gpucores": "30"},
                   "b": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8192",
                         "nvidia.com/gpucores": "50"}, "idle": {}}
        in_elastic = {"a": {"elasticgpu.io/gpu-memory": "4096", "elasticgpu.io/gpu-core": "30"},
                      "b": {"elasticgpu.io/gpu-memory": "8192", "elasticgpu.io/gpu-core": "50"}}
        in_tencent = {"a": {"tencent.com/vcuda-memory": "16", "tencent.com/vcuda-core": "30"},
                      "b": {"tencent.com/vcuda-memory": "32", "tencent.com/vcuda-core": "50"}}
        self.assertEqual(self.translations(in_hami, elastic, tencent, gpushare),
                         {"elastic": in_elastic, "tencent": in_tencent})
        del in_hami["idle"]
        self.assertEqual(self.translations(in_elastic, hami, tencent, gpushare),
                         {"hami": in_hami, "tencent": in_tencent})
        # What its own node side cannot serve, since it adds containers up, another one can.
        self.assertEqual(
            self.translations({name: {"aliyun.com/gpu-mem": "4"} for name in "ab"}, hami),
            {"hami": {name: {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096"} for name in "ab"}})
        # A whole card and a part of one.
        self.assertEqual(self.translations({"a": {"tencent.com/vcuda-core": "100"},
                                            "b": in_tencent["b"]}, elastic),
                         {"elastic": {"a": {"elasticgpu.io/gpu-core": "100"},
                                      "b": in_elastic["b"]}})

    def test_what_no_other_dialect_can_say(self):
        """Compute alone, parts of a unit, percents of unequal cards: not told, as it would be more."""
        gpushare = node("gpushare", {"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "32"})
        tencent = node("tencent", {"tencent.com/vcuda-core": "200",
                                   "tencent.com/vcuda-memory": "128"})
        com = node("com", {"elasticgpu.com/gpu-core": "200", "elasticgpu.com/gpu-memory": "32768"})
        vgpu = node("vgpu", {"volcano.sh/vgpu-number": "10"}, annotations={
            "volcano.sh/node-vgpu-register": "GPU-v,10,16384,T4,true,hami-core:"})
        everybody = gpushare, tencent, com, vgpu
        self.assertEqual(self.translations({"a": {"elasticgpu.io/gpu-core": "50"}}, *everybody),
                         {"elastic-com": {"a": {"elasticgpu.com/gpu-core": "50"}}})
        self.assertEqual(set(self.translations({"a": {"volcano.sh/gpu-memory": "8000"}},
                                               *everybody)), {"elastic-com", "volcano-vgpu"})
        third = {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "33"}
        self.assertEqual(self.translations({"a": third}, *everybody), {
            "elastic-com": {"a": {"elasticgpu.com/gpu-memory": "5406", # node sides round down
                                  "elasticgpu.com/gpu-core": "33"}},
            "volcano-vgpu": {"a": {"volcano.sh/vgpu-number": "1",
                                   "volcano.sh/vgpu-memory-percentage": "33"}}})
        quarter = {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "25"}
        gpushare["metadata"]["annotations"] = {"gpuledger.io/card-memory": "20,12"}
        self.assertEqual(set(self.translations({"a": quarter}, *everybody)),
                         {"tencent", "elastic-com", "volcano-vgpu"})
        all_but_compute = {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30"}
        self.assertEqual(self.translations({"a": all_but_compute}, com, gpushare),
                         {"elastic-com": {"a": {"elasticgpu.com/gpu-memory": "16384",
                                                "elasticgpu.com/gpu-core": "30"}}})

    def test_a_pod_that_the_node_side_has_not_matched(self):
        waiting = make_pod("w", {"aliyun.com/gpu-mem": "6"}, {
            "ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "6",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767225600000000000"})
        waiting["spec"]["nodeName"] = "n1"
        nodes = [node("n1", {"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "20"})]
        asked = make_pod("a", {"aliyun.com/gpu-mem": "6"})
        told = self.explain(asked, self.write("cluster.json", listing(*nodes, waiting)))
        self.assertEqual([group["reason"] for group in told["groups"]], ["awaiting_assignment"])
        self.assertIn("has not matched test/w yet", told["groups"][0]["why"])
        first = told["remedies"][0]
        self.assertEqual((first["kind"], [pod["name"] for pod in first["pods"]]), ("match", ["w"]))
        waiting["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_ASSIGNED"] = "true"
        waiting["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        told = self.explain(asked, self.write("cluster.json", listing(*nodes, waiting)))
        self.assertEqual(told["verdict"], "fits")

    def test_a_quota(self):
        label = "--quota-model-label=nvidia.com/gpu.product"
        quota = {"kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "gpuquota"},
                 "data": {"gpu_quota": json.dumps({"test": {"quota": {"T4": 1}}})}}
        asked = make_pod("a", {"tencent.com/vcuda-core": "200"})
        nodes = [node("n1", {"tencent.com/vcuda-core": "400", "tencent.com/vcuda-memory": "240"},
                      labels={"nvidia.com/gpu.product": "T4"})]
        for limit, verdict in ((1, "refused"), (2, "fits")):
            quota["data"]["gpu_quota"] = json.dumps({"test": {"quota": {"T4": limit}}})
            result = run("explain", "-f", self.write("asked.json", asked), "--snapshot",
                         self.write("cluster.json", listing(*nodes, quota)), "-ojson", label)
            told = json.loads(result.stdout)
            self.assertEqual(told["verdict"], verdict)
            if verdict == "refused":
                self.assertEqual(told["groups"][0]["why"],
                                 "wants 2 T4, the namespace has 0 of 1")
                found = {each["kind"]: each for each in told["remedies"]}
                self.assertEqual((found["quota"]["key"], found["quota"]["to"]), ("T4", "2"))


if __name__ == "__main__":
    unittest.main()
