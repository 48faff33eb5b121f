#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of cards, and compute beside it, under Aliyun's keys."""

import random

from scenario import GIB, WHOLE, Scenario, main, node, pod  # first: it says where players are

import gpushare as plugin

MEM, COUNT, CORE = "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "aliyun.com/gpu-core.percentage"
SPREAD = {"gpuledger.io/policy": "spread"}
FULL = "as many holders as they may"
ONE_DEVICE = "Insufficient GPU Memory in one device"


def shared(name, cards, units, labels=None, annotations=None):
    """`units` of memory on all cards together."""
    return node(name, {MEM: units, COUNT: cards}, labels, annotations)


def divided(name, cards, units, labels=None, annotations=None):
    """A node whose compute is divided, too."""
    return shared(name, cards, units, {"ack.node.gpu.schedule": "core_mem", **(labels or {})}, annotations)


class S3(Scenario):
    """Share classes of cards: fixed and equal shares promise compute, best effort promises none;
    each has so many slots (`gpuledger.io/share-class`)."""

    cannot = "What an equal share comes to while others are idle is the hypervisor's doing."

    def test_one_card_of_each_class(self):
        classes = {"gpuledger.io/share-class": "0=fixed:4,1=equal:4,2=best-effort:4"}
        self.start(divided("n", 3, 48, annotations=classes))
        quarter = {MEM: 1, CORE: 25}
        for number in range(8):
            self.place(f"q{number}", quarter)
        self.assertEqual([card["holders"] for card in self.cards("n")], [4, 4, 0])
        self.refused("fifth", quarter, FULL, final=False)
        for number in range(4):
            self.place(f"b{number}", {MEM: 1})
            self.assertEqual(self.card(f"b{number}"), 2)
        self.refused("late", {MEM: 1}, FULL, final=False)

    def test_best_effort_promises_nothing(self):
        classes = {"gpuledger.io/share-class": "0=best-effort:4"}
        self.start(divided("n", 1, 16, annotations=classes))
        self.refused("quarter", {MEM: 1, CORE: 25}, "no GPU of the kind", final=True)
        self.place("any", {MEM: 1})


class S5(Scenario):
    """Many small pods on one card, replicas of a service on several, containers of a pod on one card
    or on different ones (`gpuledger.io/containers`)."""

    cannot = "Anti-affinity between nodes is kube-scheduler's; between cards it is the pods' policy."

    def test_ten_servers_on_one_card(self):
        self.start(shared("n1", 2, 2 * 16380), shared("n2", 2, 2 * 16380))
        where = {self.place(f"tf-serving-{n}", {MEM: 1638}) for n in range(10)}
        self.assertEqual(len(where), 1)
        self.assertEqual({self.card(f"tf-serving-{n}") for n in range(10)}, {0})
        self.assertEqual(self.cards(where.pop())[0]["memoryFreeBytes"], 0)

    def test_replicas_are_spread(self):
        self.start(shared("n1", 2, 32))
        for service in ("a", "b"):
            for number in range(8):
                self.place(f"{service}{number}", {MEM: 1}, SPREAD)
            self.assertEqual({self.card(f"{service}{n}") for n in range(8)}, {0, 1})

    def test_containers_of_one_pod(self):
        core, memory = "elasticgpu.io/gpu-core", "elasticgpu.io/gpu-memory"
        self.start(node("n", {core: 300, memory: 3 * 16384}))
        three = [{memory: 4096, core: 10}] * 3
        for name, cards in (("same-card", 1), ("different-cards", 3)):
            self.place(name, three, {"gpuledger.io/containers": name})
            self.assertEqual(len({card for _, card in self.held(name)}), cards)


class S6(Scenario):
    """CUDA streams are a matter within one process: nothing is read, one pod is one holder."""

    def test_streams_are_not_counted(self):
        self.start(shared("n", 1, 16))
        self.place("a", {MEM: 2}, {"example.com/cuda-streams": "64"})
        self.assertEqual(self.cards("n")[0]["holders"], 1)


class S8(Scenario):
    """One card must hold a pod, not the node's sum; the fullest card that does gets it; the plugin's
    annotations, unhealthy cards and the inspect API are as gpushare's."""

    e2e = ("binpack", "fragmentation", "swap", "health", "burst-45fb8b8")
    JOB = {MEM: 8065}

    def play(self, units):
        self.start(shared("n", 2, units), options=["--gpushare-memory-unit=MiB"])
        for number in range(3):
            self.place(f"job{number}", self.JOB)
        return [self.card(f"job{number}") for number in range(3)]

    def test_two_share_a_card_of_16130(self):
        self.assertEqual(self.play(32260), [0, 0, 1])

    def test_two_do_not_share_one_of_15630(self):
        self.start(shared("n", 2, 31260), options=["--gpushare-memory-unit=MiB"])
        for number in range(2):
            self.place(f"job{number}", self.JOB)
            self.assertEqual(self.card(f"job{number}"), number)
        self.refused("job2", self.JOB, ONE_DEVICE, final=False)

    def test_each_is_found_by_the_plugin(self):
        self.play(32260)
        found = self.saved("job0", "job1", "job2")
        for each in found:  # as they were bound: the saved cluster's node side has marked them
            each["metadata"]["annotations"][plugin.ASSIGNED] = "false"
        for expected in (0, 0, 1):
            card, taken = plugin.decide(
                plugin.BEHAVIOURS["45fb8b8"], [0, 1], found, 8065, random.Random(1)
            )
            self.assertEqual(card, expected)
            taken["metadata"]["annotations"][plugin.ASSIGNED] = "true"
            said = taken["metadata"]["annotations"]
            self.assertEqual((said[plugin.DEV], said[plugin.POD]), ("16130", "8065"))

    def test_fragments_are_named(self):
        self.start(shared("n", 2, 32260), options=["--gpushare-memory-unit=MiB"])
        for name in ("a", "b"):
            self.place(name, self.JOB, SPREAD)
        self.refused("large", {MEM: 12000}, ONE_DEVICE, final=False)
        self.refused("larger", {MEM: 16131}, "larger than any card", final=True)
        self.create(pod("waits", {MEM: 12000}))
        cards = self.explained("waits", "n")["cards"]
        self.assertEqual([card["reason"] for card in cards], ["insufficient_memory"] * 2)
        self.assertTrue(all("8065" in card["why"] for card in cards), cards)

    def test_unhealthy_cards_and_inspect(self):
        sick = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": "kube-system", "name": "unhealthy-gpu-n"},
            "data": {"gpus": "0"},
        }
        self.start(shared("n", 2, 32), sick)
        self.place("a", {MEM: 4})
        self.assertEqual(self.card("a"), 1)
        _, text = self.server.get("/gpushare-scheduler/inspect/n", self.server.scheduler)
        self.assertIn('"usedGPU":4', text.replace(" ", ""))


class S9(Scenario):
    """A pod may demand isolation; metrics say per pod, container and card what was granted
    (`--pod-metrics`)."""

    def test_isolation(self):
        whole = node("whole", {"nvidia.com/gpu": 1}, {"nvidia.com/gpu.replicas": "1"})
        unsaid = node("unsaid", {"nvidia.com/gpu": 1})
        self.start(shared("n", 1, 16), whole, unsaid)
        demand = {"gpuledger.io/isolation": "hook"}
        self.refused("isolated", {MEM: 2}, "apart", demand, nodes=["n"], final=True)
        self.place("plain", {MEM: 2}, nodes=["n"])
        hardware = {"gpuledger.io/isolation": "hardware"}
        self.refused("vague", {"nvidia.com/gpu": 1}, "apart", hardware, nodes=["unsaid"], final=True)
        self.place("hardware", {"nvidia.com/gpu": 1}, hardware)

    def test_a_series_for_each_container_and_card(self):
        register = "GPU-x,10,16384,100,T4,0,true:GPU-y,10,16384,100,T4,0,true:"
        vgpus = node("h", {"nvidia.com/gpu": 20}, None, {"hami.io/node-nvidia-register": register})
        self.start(vgpus, options=["--pod-metrics"])
        self.place("a", [{"cpu": 1}, {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 1024, "nvidia.com/gpucores": 25}])
        for name, value in (("memory_bytes", GIB), ("core_ratio", 0.25)):
            found = self.metric(f"gpuledger_container_{name}")
            self.assertEqual(len(found), 2)
            for index, uuid in enumerate(("GPU-x", "GPU-y")):
                labels = (
                    f'namespace="ml",pod="a",container="c1",container_index="1",node="h",'
                    f'card="{index}",uuid="{uuid}"'
                )
                self.assertEqual(found[labels], value)
        self.end("a")
        self.assertEqual(self.metric("gpuledger_container_memory_bytes"), {})

    def test_a_uuid_where_the_node_tells_one(self):
        register = "GPU-x,10,8192,100,T4,0,true:GPU-y,10,8192,100,T4,0,true:"
        both = node("both", {"nvidia.com/gpu": 20, MEM: 16, COUNT: 2}, None,
                    {"hami.io/node-nvidia-register": register})
        self.start(both, shared("n", 2, 16), options=["--pod-metrics"])
        for where, uuid in (("both", "GPU-x"), ("n", "")):
            self.place(f"on-{where}", {MEM: 3}, nodes=[where])
            self.assertIn(
                f'namespace="ml",pod="on-{where}",container="c0",container_index="0",'
                f'node="{where}",card="0",uuid="{uuid}"',
                self.metric("gpuledger_container_memory_bytes"))


class S21(Scenario):
    """cGPU: memory and compute on one card, only where the node divides compute; the node's label
    chooses among its cards."""

    cannot = "ACK's node side is closed, so none was played."

    def test_memory_and_compute_on_one_card(self):
        self.start(divided("n", 2, 32), shared("memory", 2, 32, {"ack.node.gpu.schedule": "cgpu"}))
        self.place("fills", {MEM: 12, CORE: 10}, nodes=["n"])
        self.place("both", {MEM: 8, CORE: 30}, nodes=["n"])
        self.assertEqual((self.card("fills"), self.card("both")), (0, 1))
        self.refused("elsewhere", {MEM: 8, CORE: 30}, "in another way", nodes=["memory"], final=True)

    def test_the_nodes_placement(self):
        self.start(
            divided("packed", 2, 32),
            divided("spread", 2, 32, {"ack.node.gpu.placement": "spread"}),
        )
        for where, cards in (("packed", {0}), ("spread", {0, 1})):
            for number in range(2):
                self.place(f"{where}{number}", {MEM: 2, CORE: 10}, nodes=[where])
            self.assertEqual({self.card(f"{where}{n}") for n in range(2)}, cards)


class S25(Scenario):
    """Compute by multiprocessors: what is asked is rounded up to whole ones of the card's model
    (`--gpushare-multiprocessors`)."""

    def play(self, multiprocessors, each, pods):
        label = {"nvidia.com/gpu.multiprocessors": str(multiprocessors)}
        self.start(divided("n", 1, 32, label), options=["--gpushare-multiprocessors"])
        for number in range(pods):
            self.place(f"p{number}", {MEM: 1, CORE: 10})
        used = self.cards("n")[0]["coreUsedThousandths"]
        self.assertEqual(used * multiprocessors // WHOLE, each * pods)
        self.refused("late", {MEM: 1, CORE: 10}, "Insufficient GPU core", final=False)

    def test_eight_of_80(self):
        self.play(80, 8, 10)

    def test_seven_of_68(self):
        self.play(68, 7, 9)


class S32(Scenario):
    """Cards are filled up or spread over, by cluster, node or pod: a hundred quarters on forty
    cards."""

    def play(self, policy, opened, whole):
        nodes = [shared(f"n{n}", 4, 32) for n in range(10)]
        self.start(*nodes, options=[f"--policy={policy}"])
        for number in range(100):
            self.place(f"quarter{number}", {MEM: 2})
        used = [card for each in self.nodes for card in self.cards(each) if card["holders"]]
        self.assertEqual(len(used), opened)
        for number in range(whole):
            self.place(f"whole{number}", {MEM: 8})
        self.refused("late", {MEM: 8}, ONE_DEVICE, final=False)

    def test_binpack(self):
        self.play("binpack", 25, 15)

    def test_spread(self):
        self.play("spread", 40, 0)

    def test_by_node_and_by_pod(self):
        self.start(shared("n", 2, 32, {"gpuledger.io/policy": "spread"}))
        for name, cards in (("a", 0), ("b", 1)):
            self.place(name, {MEM: 1})
            self.assertEqual(self.card(name), cards)
        for name in ("c", "d"):
            self.place(name, {MEM: 1}, {"gpuledger.io/policy": "first-fit"})
            self.assertEqual(self.card(name), 0)


class S34(Scenario):
    """A card in exclusive compute mode never gets a second holder (`gpuledger.io/exclusive-cards`);
    views and metrics tell what was granted."""

    cannot = "Nobody reports compute mode or use by themselves: an annotation of the node does."

    def test_one_holder(self):
        self.start(shared("n", 2, 32, None, {"gpuledger.io/exclusive-cards": "0"}))
        self.place("alone", {MEM: 1})
        self.assertEqual(self.card("alone"), 0)
        for number in range(8):
            self.place(f"p{number}", {MEM: 2})
            self.assertEqual(self.card(f"p{number}"), 1)
        self.refused("late", {MEM: 1}, ONE_DEVICE, final=False)
        self.assertEqual(self.metric("gpuledger_card_holders")['node="n",card="0"'], 1)
        self.end("alone")
        self.place("late", {MEM: 1})
        self.assertEqual(self.card("late"), 0)

    def test_a_closed_card_is_not_an_unhealthy_one(self):
        self.start(shared("n", 3, 48, None, {"gpuledger.io/cordoned-cards": "1"}),
                   shared("torn", 1, 16, None, {"gpuledger.io/share-class": "0=quarter:4"}))
        said = {f'node="{where}",card="{card["index"]}"': (card["healthy"], card["closed"])
                for where in self.nodes for card in self.cards(where)}
        shut = ('node="n",card="1"', 'node="torn",card="0"')
        self.assertEqual(said, {card: (True, card in shut) for card in said})
        for name, place in (("gpuledger_card_healthy", 0), ("gpuledger_card_closed", 1)):
            self.assertEqual(self.metric(name), {card: each[place] for card, each in said.items()})


if __name__ == "__main__":
    main()
