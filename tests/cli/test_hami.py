#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HAMi's, its ancestor's and Volcano's pods through filter and bind, with a saved cluster."""

import json
import pathlib
import tempfile
import unittest

from program import Server, listing

GPU, MEM, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
VGPU, VMEM, VCORES = (f"volcano.sh/vgpu-{what}" for what in ("number", "memory", "cores"))
ALLOCATED = "hami.io/vgpu-devices-allocated"
VOLCANO_ALLOCATED = "volcano.sh/vgpu-ids-new"
CONSENT = "gpuledger.io/oversubscribe"
GIB = 1024  # MiB


def hami_node(name, mib, annotations=None, count=10, n_cards=2):
    register = "".join(
        f"GPU-{name}-{index},{count},{mib},100,NVIDIA-Tesla T4,0,true,{index},hami-core:"
        for index in range(n_cards)
    )
    return node_object(
        name, GPU, n_cards * count, {"hami.io/node-nvidia-register": register, **(annotations or {})}
    )


def volcano_node(name, mib, n_cards=2):
    register = "".join(
        f"GPU-{name}-{index},10,{mib},NVIDIA-Tesla T4,true,hami-core:" for index in range(n_cards)
    )
    return node_object(name, VGPU, n_cards * 10, {"volcano.sh/node-vgpu-register": register})


def node_object(name, resource, amount, annotations):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "annotations": annotations},
        "status": {
            "capacity": {resource: str(amount)},
            "allocatable": {resource: str(amount)},
        },
    }


def pod(name, limits, annotations=None):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "ml",
            "name": name,
            "uid": f"uid-{name}",
            "annotations": annotations or {},
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "resources": {"limits": {key: str(value) for key, value in limits.items()}},
                }
            ]
        },
        "status": {"phase": "Pending"},
    }


class Case(unittest.TestCase):
    def start(self, *items, options=()):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.written = pathlib.Path(directory.name) / "after.json"
        snapshot = pathlib.Path(directory.name) / "before.json"
        snapshot.write_text(listing(*items))
        self.server = Server(*options, snapshot=snapshot)
        self.addCleanup(self.server.__exit__)

    def place(self, wanted, node="n"):
        """Filter and bind."""
        answer = self.server.filter(wanted, [node])
        self.assertEqual(answer.get("NodeNames"), [node], answer)
        self.assertFalse(self.server.bind(wanted, node).get("Error"))

    def refused(self, wanted, text, final, node="n"):
        answer = self.server.filter(wanted, [node])
        self.assertFalse(answer.get("NodeNames"), answer)
        key = "FailedAndUnresolvableNodes" if final else "FailedNodes"
        self.assertIn(text, answer[key][node])
        error = self.server.bind(wanted, node)["Error"]
        self.assertIn(text, error)

    def cards(self, node="n"):
        _, text = self.server.get(f"/api/v1/nodes/{node}")
        return json.loads(text)["cards"]

    def held(self, name):
        """[(card, MiB)] of a pod as the extender has it."""
        _, text = self.server.get(f"/api/v1/pods/ml/{name}")
        shares = json.loads(text)["shares"]
        return sorted((share["card"], share["memoryBytes"] >> 20) for share in shares)


class Slots(Case):
    """Two cards, each in ten: twenty pods of a tenth, and no more."""

    def play(self, node, count, memory):
        names = [f"p{number}" for number in range(20)]
        pods = {name: pod(name, {count: 1, memory: 1600}) for name in names}
        late = pod("late", {count: 1, memory: 1})
        three = pod("three", {count: 3, memory: 1})
        pair = pod("pair", {count: 2, memory: 1})
        self.start(node, *pods.values(), late, three, pair)
        self.refused(three, "fewer GPUs than the pod asks for", True)
        for wanted in pods.values():
            self.place(wanted)
        for card in self.cards():
            self.assertEqual((card["holders"], card["memoryUsedBytes"] >> 20), (10, 16000))
        self.refused(late, "as many holders as they may", False)

    def test_hami(self):
        self.play(hami_node("n", 16000), GPU, MEM)

    def test_volcano(self):
        self.play(volcano_node("n", 16000), VGPU, VMEM)

    def test_several_cards_are_different_ones(self):
        pairs = [pod(f"pair{number}", {GPU: 2, MEM: 5000, CORES: 30}) for number in range(4)]
        self.start(hami_node("n", 16000), *pairs)
        for wanted in pairs[:3]:
            self.place(wanted)
            self.assertEqual(self.held(wanted["metadata"]["name"]), [(0, 5000), (1, 5000)])
        self.refused(pairs[3], "Insufficient GPU Memory", False)
        for card in self.cards():
            self.assertEqual(card["coreUsedThousandths"], 900)

    def test_all_of_a_cards_compute_is_the_card(self):
        own = [pod(f"own{number}", {GPU: 1, MEM: 10, CORES: 100}) for number in range(3)]
        self.start(volcano_node("v", 16000), hami_node("n", 16000), *own)
        for wanted in own[:2]:
            self.place(wanted)
        self.refused(own[2], "Insufficient GPU Memory", False)
        answer = self.server.filter(own[2], ["v"])
        self.assertIn("in another way", answer["FailedAndUnresolvableNodes"]["v"])


class Oversubscription(Case):
    """16 GiB that are registered as 28.8: what is beyond is for pods that accept it."""

    REAL = {"gpuledger.io/physical-memory": "*=16Gi"}

    def test_grants_up_to_the_scaled_memory(self):
        sizes = [10000, 10000, 9491]
        pods = [pod(f"p{n}", {GPU: 1, MEM: size}, {CONSENT: "true"}) for n, size in enumerate(sizes)]
        more = pod("more", {GPU: 1, MEM: 1}, {CONSENT: "true"})
        self.start(hami_node("n", 29491, self.REAL, n_cards=1), *pods, more)
        for wanted in pods:
            self.place(wanted)
        self.assertEqual(self.cards()[0]["memoryUsedBytes"] >> 20, 29491)
        self.refused(more, "Insufficient GPU Memory in one device", False)

    def test_what_is_promised_is_real(self):
        first = pod("first", {GPU: 1, MEM: 12 * GIB})
        plain = pod("plain", {GPU: 1, MEM: 5 * GIB})
        willing = pod("willing", {GPU: 1, MEM: 5 * GIB}, {CONSENT: "true"})
        big = pod("big", {GPU: 1, MEM: 17 * GIB})
        self.start(
            hami_node("n", 29491, n_cards=1), first, plain, willing, big,
            options=["--hami-memory-scaling=180"],
        )
        self.refused(big, "larger than any card", True)
        self.place(first)
        self.refused(plain, "what is left is oversubscribed", False)
        self.place(willing)
        self.assertEqual(self.cards()[0]["memoryUsedBytes"] >> 20, 17 * GIB)

    def test_a_card_without_real_memory_is_left_alone(self):
        full = pod("full", {GPU: 1, MEM: 16 * GIB}, {"nvidia.com/use-gpuuuid": "GPU-n-0"})
        next_one = pod("next", {GPU: 1, MEM: 100}, {CONSENT: "true"})
        self.start(hami_node("n", 29491, self.REAL), full, next_one)
        self.place(full)
        self.place(next_one)
        self.assertEqual(self.held("next"), [(1, 100)])

    def test_a_card_whose_memory_is_in_use_is_left_alone(self):
        said = {**self.REAL, "gpuledger.io/memory-in-use": "0=95,1=94"}
        wanted = pod("a", {GPU: 1, MEM: 100}, {CONSENT: "true"})
        other = pod("b", {GPU: 1, MEM: 100}, {CONSENT: "true", "nvidia.com/use-gpuuuid": "GPU-n-0"})
        self.start(hami_node("n", 29491, said), wanted, other)
        self.place(wanted)
        self.assertEqual(self.held("a"), [(1, 100)])
        self.refused(other, "what is left is oversubscribed", False)


if __name__ == "__main__":
    unittest.main()
