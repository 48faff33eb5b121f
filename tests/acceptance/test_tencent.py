#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tencent's gpu-manager, and the order in which pods that wait are served."""

import random

from scenario import Scenario, main, node, pod  # first: it says where players are

import tencent
from tencent import ASSIGNED, BLOCK, CORE, MEMORY, PREDICATE_IDX, PREDICATE_NODE, PREDICATE_TIME

MEM, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
CARD_BLOCKS = 64
FULL = "Insufficient GPU core in one device"


def managed(name, cards=2):
    """Blocks are of 256 MiB."""
    return node(name, {CORE: 100 * cards, MEMORY: CARD_BLOCKS * cards})


def vcuda(core, blocks):
    return {key: value for key, value in ((CORE, core), (MEMORY, blocks)) if value}


class S10(Scenario):
    """gpu-manager: each container's card is the one that gpu-manager takes by itself; 100 are a card,
    150 are nothing; a played gpu-manager agrees with every annotation."""

    cannot = "Which whole cards a pod gets, nobody outside can foresee: until they are named, they count."
    e2e = ("tencent", "tencent-burst", "tencent-deleted")
    JOBS = {1: (100, 64), 2: (40, 24), 3: (30, 24)}

    def play(self, *names):
        """gpu-manager allocates for each of these pods, in their order, as kubelet asks it; fails the
        test where it would fail the pod."""
        manager = tencent.Manager("8cd842e", [CARD_BLOCKS * BLOCK] * 2)
        given = {}
        for each in self.saved(*names):
            # As it was bound: the saved cluster's node side has marked it.
            each["metadata"]["annotations"][ASSIGNED] = "false"
            for container in each["spec"]["containers"]:
                core, _ = tencent.amounts(container)
                if core:
                    cards, _, _ = manager.allocate([each], core, random.Random(1))
                    given.setdefault(each["metadata"]["name"], []).append([c.minor for c in cards])
        return given

    def orders(self, order, expected):
        self.start(managed("n"))
        names = [f"job{number}" for number in order]
        for number in order:
            self.place(f"job{number}", vcuda(*self.JOBS[number]))
        for number, card in zip((1, 2, 3), expected):
            self.assertEqual(self.card(f"job{number}"), card)
        given = self.play(*names)
        self.assertEqual([given[f"job{n}"] for n in (1, 2, 3)], [[[card]] for card in expected])

    def test_submitted_1_2_3(self):
        self.orders((1, 2, 3), (0, 1, 1))

    def test_submitted_2_3_1(self):
        self.orders((2, 3, 1), (1, 0, 0))

    def test_what_is_written(self):
        self.start(managed("n"))
        self.place("p", vcuda(40, 24))
        said = self.annotations("p")
        self.assertEqual((said[f"{PREDICATE_IDX}0"], said[PREDICATE_NODE]), ("0", "n"))
        self.assertTrue(said[PREDICATE_TIME].isdigit())
        self.assertIn(ASSIGNED, said)

    def test_70_and_40(self):
        self.start(managed("n", 1))
        self.place("p", vcuda(70, 8))
        self.refused("more", vcuda(40, 8), FULL, final=False)

    def test_150(self):
        self.start(managed("n"))
        self.refused("odd", vcuda(150, 8), "no part beside a whole", final=True)

    def test_two_containers(self):
        self.start(managed("n"))
        self.place("pair", [vcuda(60, 8), {}, vcuda(60, 8)])
        self.assertEqual(self.held("pair"), [(0, 0), (2, 1)])
        self.assertEqual(self.play("pair"), {"pair": [[0], [1]]})
        said = self.annotations("pair")
        self.assertEqual((said[f"{PREDICATE_IDX}0"], said[f"{PREDICATE_IDX}2"]), ("0", "1"))
        self.assertNotIn(f"{PREDICATE_IDX}1", said)


class S12(Scenario):
    """Memory is hard, compute a promise that may be exceeded while the card is idle
    (`tencent.com/vcuda-core-limit`): promises add up, limits do not."""

    e2e = ("tencent",)

    def test_promises_add_up(self):
        self.start(managed("n", 1))
        soft = {"tencent.com/vcuda-core-limit": "100"}
        self.place("a", vcuda(40, 8), soft)
        self.place("b", vcuda(30, 8), soft)
        self.refused("c", vcuda(40, 8), FULL, soft, final=False)
        self.place("d", vcuda(30, 8), soft)
        self.assertEqual(self.cards("n")[0]["coreUsedThousandths"], 1000)
        self.assertEqual(self.annotations("d")["tencent.com/vcuda-core-limit"], "100")

    def test_memory_is_hard(self):
        self.start(managed("n", 1))
        self.place("a", vcuda(10, 40))
        self.refused("b", vcuda(10, 25), "Insufficient GPU Memory", final=False)

    def test_a_limit_is_a_number(self):
        self.start(managed("n", 1))
        odd = {"tencent.com/vcuda-core-limit": "much"}
        self.refused("a", vcuda(40, 8), "not a whole number", odd, final=True)

    def test_a_limit_is_no_less_than_the_share(self):
        self.start(managed("n", 1))
        self.refused("a", vcuda(40, 8), "below what it asks for",
                     {"tencent.com/vcuda-core-limit": "39"}, final=True)
        self.place("b", vcuda(40, 8), {"tencent.com/vcuda-core-limit": "40"})


class S11(Scenario):
    """Of the pods that ask, what becomes free goes to the one that was created first, whoever asks
    first (`--arrival-hold`); younger ones pass where they delay none of the oldest."""

    e2e = ("arrivals",)
    EARLIER = "left to a pod that has waited for longer"

    def waiting(self, *pods):
        """Creates (name, units), a second after one another; the pods by name."""
        made = {}
        for number, (name, units) in enumerate(pods):
            created = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
            made[name] = pod(name, {MEM: units}, created=created)
            self.create(made[name])
        return made

    def test_fifty_pods_and_room_for_ten(self):
        self.start(node("n", {MEM: 10, COUNT: 1}), options=["--arrival-hold=1h"])
        names = [f"p{number:02}" for number in range(50)]
        made = self.waiting(*((name, 1) for name in names))
        for name in names:  # kube-scheduler asks about each as it comes
            self.fitting(made[name])
        rng = random.Random(1)
        granted = []
        while len(granted) < 50:
            left = [name for name in names if name not in granted]
            rng.shuffle(left)  # they ask again in any order
            while True:
                got = next((name for name in left if self.fitting(made[name])), None)
                if got is None:
                    break
                self.assertEqual(self.schedule(made[got]), "n")
                left.remove(got)
                granted.append(got)
            self.end(granted[len(granted) - 10])
        self.assertEqual(sorted(granted[:10]), names[:10])
        self.assertEqual(granted[10:], names[10:])

    def test_backfill_delays_nobody(self):
        self.start(node("n", {MEM: 10, COUNT: 1}), options=["--arrival-hold=1h"])
        made = self.waiting(("runs", 5), ("large", 8), ("small", 2), ("tiny", 1))
        self.assertEqual(self.schedule(made["runs"]), "n")
        self.assertEqual(self.fitting(made["large"]), [])
        self.assertEqual(self.schedule(made["small"]), "n")  # beside the large one, too
        answer = self.verb("filter", {"Pod": made["tiny"], "NodeNames": self.nodes})
        self.assertIn(self.EARLIER, answer["FailedAndUnresolvableNodes"]["n"])
        self.assertIn(self.EARLIER, self.bind(made["tiny"], "n"))
        self.end("runs")
        self.assertEqual(self.fitting(made["tiny"]), [])
        self.assertEqual(self.schedule(made["large"]), "n")
        self.end("small")
        self.assertEqual(self.schedule(made["tiny"]), "n")


if __name__ == "__main__":
    main()
