#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HAMi, its ancestor of 4paradigm, and Volcano's vGPUs."""

from scenario import Scenario, main, node

GPU, MEM, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
VGPU, VMEM, VCORES = (f"volcano.sh/vgpu-{what}" for what in ("number", "memory", "cores"))
ALLOCATED = "hami.io/vgpu-devices-allocated"
CONSENT = {"gpuledger.io/oversubscribe": "true"}
GIB = 1024  # MiB
FULL = "as many holders as they may"
ONE_DEVICE = "Insufficient GPU Memory"


def hami_register(mib, uuids, count=10):
    return "".join(
        f"{uuid},{count},{mib},100,NVIDIA-Tesla T4,0,true,{index},hami-core:"
        for index, uuid in enumerate(uuids)
    )


def hami(name, mib, annotations=None, n_cards=2):
    register = hami_register(mib, [f"GPU-{name}-{index}" for index in range(n_cards)])
    said = {"hami.io/node-nvidia-register": register, **(annotations or {})}
    return node(name, {GPU: n_cards * 10}, None, said)


def paradigm(name, mib, n_cards=2):
    register = "".join(
        f"GPU-{name}-{index},10,{mib},100,NVIDIA-Tesla T4,0,true:" for index in range(n_cards)
    )
    return node(name, {GPU: n_cards * 10}, None, {"4pd.io/node-nvidia-register": register})


def volcano(name, mib, n_cards=2):
    register = "".join(
        f"GPU-{name}-{index},10,{mib},NVIDIA-Tesla T4,true,hami-core:" for index in range(n_cards)
    )
    return node(name, {VGPU: n_cards * 10}, None, {"volcano.sh/node-vgpu-register": register})


class Cards(Scenario):
    """Two cards, each in ten: twenty pods of a tenth, and no more."""

    def play(self, where, count, memory, cores):
        self.start(where)
        self.refused("three", {count: 3, memory: 1}, "fewer GPUs than the pod asks for", final=True)
        for number in range(20):
            self.place(f"p{number}", {count: 1, memory: 1600})
        for card in self.cards("n"):
            self.assertEqual((card["holders"], card["memoryUsedBytes"] >> 20), (10, 16000))
        self.refused("late", {count: 1, memory: 1}, FULL, final=False)
        for number in range(20):
            self.end(f"p{number}")

        for number in range(3):
            self.place(f"pair{number}", {count: 2, memory: 5000, cores: 30})
            self.assertEqual(self.held(f"pair{number}"), [(0, 0), (0, 1)])
        self.refused("pair", {count: 2, memory: 5000, cores: 30}, ONE_DEVICE, final=False)
        for card in self.cards("n"):
            self.assertEqual(card["coreUsedThousandths"], 900)
        for number in range(3):
            self.end(f"pair{number}")

        for number in range(2):
            self.place(f"own{number}", {count: 1, memory: 10, cores: 100})
            self.assertEqual(self.card(f"own{number}"), number)
        self.refused("own", {count: 1, memory: 10, cores: 100}, ONE_DEVICE, final=False)


class S23(Cards):
    """4paradigm and HAMi: each vGPU of a container is on another card; slots, memory and compute of
    each card hold."""

    e2e = ("hami", "hami-family", "hami-mig")

    def test_hami(self):
        self.play(hami("n", 16000), GPU, MEM, CORES)

    def test_4paradigm(self):
        self.play(paradigm("n", 16000), GPU, MEM, CORES)

    def test_two_uuids(self):
        self.start(hami("n", 16000))
        self.place("pair", {GPU: 2, MEM: 100})
        said = self.annotations("pair")[ALLOCATED]
        self.assertEqual([f"GPU-n-{n}" in said for n in (0, 1)], [True, True])


class S27b(Cards):
    """Volcano's vGPUs: the same under its keys; nodes of one spelling take no pods of the other."""

    e2e = ("hami-family",)

    def test_slots_memory_and_compute(self):
        self.play(volcano("n", 16000), VGPU, VMEM, VCORES)

    def test_spellings(self):
        self.start(volcano("v", 16000), hami("h", 16000))
        self.refused("a", {GPU: 1, MEM: 10}, "in another way", nodes=["v"], final=True)
        self.refused("b", {VGPU: 1, VMEM: 10}, "in another way", nodes=["h"], final=True)


class S24(Scenario):
    """Oversubscribed memory: what is beyond the real memory goes to pods that accept it, and nothing
    is given once the real memory is promised or in use."""

    e2e = ("hami-oversubscribed",)
    REAL = {"gpuledger.io/physical-memory": "*=16Gi"}
    SCALED = 29491  # 1.8 times 16 GiB

    def test_grants_up_to_the_scaled_memory(self):
        self.start(hami("n", self.SCALED, self.REAL, n_cards=1))
        for number, size in enumerate((10000, 10000, 9491)):
            self.place(f"p{number}", {GPU: 1, MEM: size}, CONSENT)
        self.assertEqual(self.cards("n")[0]["memoryUsedBytes"] >> 20, self.SCALED)
        self.refused("more", {GPU: 1, MEM: 1}, ONE_DEVICE, CONSENT, final=False)

    def test_what_is_promised_is_real(self):
        self.start(hami("n", self.SCALED, n_cards=1), options=["--hami-memory-scaling=180"])
        self.refused("big", {GPU: 1, MEM: 17 * GIB}, "larger than any card", final=True)
        self.place("first", {GPU: 1, MEM: 12 * GIB})
        self.refused("plain", {GPU: 1, MEM: 5 * GIB}, "what is left is oversubscribed", final=False)
        self.place("willing", {GPU: 1, MEM: 5 * GIB}, CONSENT)
        self.assertEqual(self.cards("n")[0]["memoryUsedBytes"] >> 20, 17 * GIB)

    def test_a_card_without_real_memory_is_left_alone(self):
        self.start(hami("n", self.SCALED, self.REAL))
        self.place("full", {GPU: 1, MEM: 16 * GIB}, {"nvidia.com/use-gpuuuid": "GPU-n-0"})
        self.place("next", {GPU: 1, MEM: 100}, CONSENT)
        self.assertEqual(self.card("next"), 1)

    def test_a_card_whose_memory_is_in_use_is_left_alone(self):
        self.start(hami("n", self.SCALED, {**self.REAL, "gpuledger.io/memory-in-use": "0=95,1=94"}))
        self.place("a", {GPU: 1, MEM: 100}, CONSENT)
        self.assertEqual(self.card("a"), 1)
        first = {**CONSENT, "nvidia.com/use-gpuuuid": "GPU-n-0"}
        self.refused("b", {GPU: 1, MEM: 100}, "what is left is oversubscribed", first, final=False)


class S4(Scenario):
    """A machine moves to other hardware while its pods run: cards are known by UUID, whatever their
    number, and by their former UUIDs where somebody says them (`gpuledger.io/former-uuids`)."""

    cannot = "Dialects that write an index say nothing that outlives a new numbering."
    REGISTER = "hami.io/node-nvidia-register"

    def settle(self):
        self.start(hami("n", 16 * GIB))
        self.place("a", {GPU: 1, MEM: 4 * GIB}, {"nvidia.com/use-gpuuuid": "GPU-n-0"})
        self.place("b", {GPU: 1, MEM: 8 * GIB}, {"nvidia.com/use-gpuuuid": "GPU-n-1"})
        self.assertEqual((self.card("a"), self.card("b")), (0, 1))

    def register(self, uuids, **more):
        def change(objects):
            said = objects["Node", "n"]["metadata"]["annotations"]
            said[self.REGISTER] = hami_register(16 * GIB, uuids)
            said.update(more)

        self.restart(change)

    def test_other_numbers(self):
        self.settle()
        self.register(["GPU-n-1", "GPU-n-0"])
        self.assertEqual((self.card("a"), self.card("b")), (1, 0))
        self.place("c", {GPU: 1, MEM: 12 * GIB})
        self.assertEqual(self.card("c"), 1)
        self.assertIn("GPU-n-0,", self.annotations("c")[ALLOCATED])

    def test_other_uuids(self):
        self.settle()
        self.register(["GPU-x", "GPU-y"], **{"gpuledger.io/former-uuids": "0=GPU-n-1,1=GPU-n-0"})
        self.assertEqual((self.card("a"), self.card("b")), (1, 0))
        used = [card["memoryUsedBytes"] >> 30 for card in self.cards("n")]
        self.assertEqual(used, [8, 4])
        self.place("c", {GPU: 1, MEM: 12 * GIB})
        self.assertIn("GPU-y,", self.annotations("c")[ALLOCATED])


if __name__ == "__main__":
    main()
