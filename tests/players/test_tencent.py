#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the played gpu-manager to what the real one does, its defects included."""

import pathlib
import random
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "controlplane")]

from tencent import (  # noqa: E402
    ASSIGNED,
    BEHAVIOURS,
    BLOCK,
    CORE,
    MEMORY,
    PREDICATE_IDX,
    PREDICATE_TIME,
    AllocateError,
    Manager,
    cards_of,
    is_active,
    is_candidate,
    predicate_time,
    predicted_minor,
)

HEAD = "8cd842e"
CARD = 60 * BLOCK


def pod(name, *containers, cards=None, placed=None, assigned="false", phase="Pending", **meta):
    annotations = {}
    for index, text in (cards or {}).items():
        annotations[f"{PREDICATE_IDX}{index}"] = str(text)
    if placed is not None:
        annotations[PREDICATE_TIME] = str(placed)
    if assigned is not None:
        annotations[ASSIGNED] = assigned
    return {
        "metadata": {"name": name, "uid": name, "annotations": annotations, **meta},
        "spec": {
            "containers": [
                {
                    "name": f"c{number}",
                    "resources": {"limits": {CORE: str(core), MEMORY: str(blocks)}},
                }
                for number, (core, blocks) in enumerate(containers)
            ]
        },
        "status": {"phase": phase},
    }


def take(manager, core, *pods, seed=1):
    """(minors, name of the pod that was meant, patch)."""
    cards, meant, patch = manager.allocate(list(pods), core, random.Random(seed))
    return [card.minor for card in cards], meant["metadata"]["name"], patch


def fill(manager, card, core, blocks, name):
    holder = manager.cards[card]
    holder.free_core -= core
    holder.free -= blocks * BLOCK
    manager.held[name] = {0: (core, blocks, [holder])}


class Matching(unittest.TestCase):
    def test_candidates(self):
        self.assertTrue(is_candidate(pod("a", (10, 1))))
        self.assertTrue(is_candidate(pod("a", (10, 1), assigned=None)), "nobody predicted it")
        self.assertTrue(is_candidate(pod("a", (10, 1), deletionTimestamp="x")))
        self.assertFalse(is_candidate(pod("a", (10, 1), assigned="true")))
        self.assertFalse(is_candidate(pod("a", (10, 1), assigned="True")), "anything but false")
        self.assertFalse(is_candidate(pod("a", (10, 0))), "no memory: not a GPU pod")
        self.assertFalse(is_candidate(pod("a", (0, 4))))
        self.assertTrue(is_candidate(pod("a", (50, 0), (50, 0))), "in sum it is one")

    def test_order_is_of_prediction_and_only_cores_are_compared(self):
        pods = [pod("late", (10, 4), placed=9), pod("soon", (10, 7), placed=2), pod("x", (20, 4), placed=1)]
        manager = Manager(HEAD, [CARD])
        self.assertEqual(manager.match(pods, 10)[0]["metadata"]["name"], "soon")
        with self.assertRaises(AllocateError):
            manager.match(pods, 30)

    def test_times(self):
        self.assertEqual(predicate_time(pod("a", placed="12")), 12)
        self.assertEqual(predicate_time(pod("a", placed="soon")), 0)
        self.assertEqual(predicate_time(pod("a", placed=2**64)), 0)
        created = pod("a", creationTimestamp="1970-01-01T00:00:07Z")
        self.assertEqual(predicate_time(created), 7 * 10**9)

    def test_half_allocated_pod_comes_first(self):
        manager = Manager(HEAD, [CARD])
        both = pod("both", (10, 1), (20, 1), placed=2, cards={0: 0, 1: 0})
        other = pod("other", (20, 1), placed=1, cards={0: 0})
        self.assertEqual(take(manager, 10, both, other)[1], "both")
        self.assertEqual(take(manager, 20, both, other)[1], "both")
        self.assertEqual(take(manager, 20, both, other)[1], "other")
        half = Manager(HEAD, [CARD])
        take(half, 10, both)
        with self.assertRaisesRegex(AllocateError, "mismatch"):
            take(half, 30, both, pod("third", (30, 1)))

    def test_what_was_served_in_part_blocks_whoever_comes_after_its_end(self):
        manager = Manager(HEAD, [CARD])
        both = pod("both", (10, 1), (20, 1), placed=2, cards={0: 0, 1: 0})
        take(manager, 10, both)
        with self.assertRaisesRegex(AllocateError, "mismatch"):
            take(manager, 30, pod("other", (30, 1), placed=1, cards={0: 0}))
        later = pod("other", (20, 1), placed=1, cards={0: 0})
        rng = random.Random(1)
        self.assertEqual(manager.allocate([later], 20, rng, {"other": later})[1], both)
        self.assertEqual(manager.gone, ["both"], "only then its first container is taken back")
        with self.assertRaisesRegex(AllocateError, "mismatch"):
            manager.allocate([later], 20, rng, {"other": later})

    def test_cards_are_taken_back_once_a_pod_is_found(self):
        manager = Manager(HEAD, [CARD])
        take(manager, 60, pod("a", (60, 30), placed=1, cards={0: 0}))
        with self.assertRaisesRegex(AllocateError, "candidate"):
            manager.allocate([], 60, random.Random(1), {})
        self.assertIn("a", manager.held)
        b = pod("b", (60, 30), placed=2, cards={0: 0})
        manager.allocate([b], 60, random.Random(1), {"b": b})
        self.assertEqual((list(manager.held), manager.gone), (["b"], ["a"]))

    def test_strict_index(self):
        for text, minor in (("1", 1), ("0,1", None), ("", None), ("x", None)):
            self.assertEqual(predicted_minor(pod("a", (1, 1), cards={0: text}), 0), minor)

    def test_active(self):
        self.assertTrue(is_active(pod("a", (1, 1))))
        self.assertFalse(is_active(pod("a", (1, 1), phase="Failed")))
        ending = pod("a", (1, 1), deletionTimestamp="x")
        self.assertFalse(is_active(ending))
        ending["status"]["containerStatuses"] = [{"state": {"running": {}}}]
        self.assertTrue(is_active(ending))


class Sharing(unittest.TestCase):
    def choice(self, behaviour, manager, core=10, blocks=1):
        return manager.evaluate_share(core, blocks)[0].minor

    def test_least_cores_then_least_memory(self):
        for behaviour in BEHAVIOURS:
            manager = Manager(behaviour, [CARD] * 3)
            fill(manager, 2, 30, 5, "a")
            self.assertEqual(self.choice(behaviour, manager), 2)
            fill(manager, 1, 30, 9, "b")
            self.assertEqual(self.choice(behaviour, manager), 1)
            self.assertEqual(self.choice(behaviour, manager, 80), 0)
            self.assertEqual(self.choice(behaviour, manager, 10, 52), 2)

    def test_a_few_megabytes_matter_to_the_old_ones_only(self):
        sizes = [CARD + (3 << 20), CARD + (1 << 20)]
        wanted = {"v1.0.9": 1, "v1.1.4": 1, "v1.1.5": 0, "8cd842e": 0}
        for behaviour, minor in wanted.items():
            self.assertEqual(self.choice(behaviour, Manager(behaviour, sizes)), minor, behaviour)

    def test_nvml_order_matters_to_the_old_ones_only(self):
        wanted = {"v1.0.9": 1, "v1.1.4": 1, "v1.1.5": 1, "8cd842e": 0}
        for behaviour, minor in wanted.items():
            manager = Manager(behaviour, [CARD] * 2, minors=[1, 0])
            self.assertEqual(self.choice(behaviour, manager), minor, behaviour)

    def test_processes_come_before_the_number(self):
        manager = Manager(HEAD, [CARD] * 2)
        manager.cards[0].pids = 1
        self.assertEqual(self.choice(HEAD, manager), 1)

    def test_another_prediction_fails_the_pod(self):
        with self.assertRaisesRegex(AllocateError, "pick up:/dev/nvidia0 predicate: /dev/nvidia1"):
            take(Manager(HEAD, [CARD] * 2), 10, pod("a", (10, 1), placed=1, cards={0: 1}))

    def test_without_a_prediction_the_pick_is_written(self):
        for unpredicted in (
            pod("a", (10, 1), cards={0: 1}),
            pod("a", (10, 1), placed=1, cards={0: 1}, assigned=None),
        ):
            minors, _, patch = take(Manager(HEAD, [CARD] * 2), 10, unpredicted)
            self.assertEqual((minors, patch[f"{PREDICATE_IDX}0"]), ([0], "0"))
            self.assertEqual(patch[ASSIGNED], "false")

    def test_shares_only_if_told_to(self):
        with self.assertRaises(AllocateError):
            take(Manager(HEAD, [CARD], share=False), 10, pod("a", (10, 1)))

    def test_pod_that_ends_is_given_back(self):
        manager = Manager(HEAD, [CARD])
        one = pod("a", (60, 30), placed=1, cards={0: 0})
        take(manager, 60, one)
        self.assertEqual(manager.evaluate_share(50, 1), [])
        manager.recycle({"a": one})
        self.assertEqual(manager.evaluate_share(50, 1), [])
        manager.recycle({"a": pod("a", (60, 30), phase="Succeeded")})
        self.assertEqual(manager.cards[0].free, CARD)
        self.assertEqual(manager.cards[0].free_core, 100)


class Whole(unittest.TestCase):
    def test_prediction_is_ignored(self):
        minors, _, patch = take(Manager(HEAD, [CARD] * 2), 100, pod("a", (100, 4), placed=1, cards={0: 1}))
        self.assertEqual((minors, patch), ([0], None))

    def test_half_used_switch_first(self):
        manager = Manager(HEAD, [CARD] * 4, groups=[[0, 1], [2, 3]])
        fill(manager, 2, 10, 1, "a")
        self.assertEqual([card.minor for card in manager.evaluate_whole(1, random.Random(1))], [3])
        self.assertEqual([card.minor for card in manager.evaluate_whole(2, random.Random(1))], [0, 1])
        self.assertEqual([card.minor for card in manager.evaluate_whole(3, random.Random(1))], [0, 1, 3])
        self.assertEqual(manager.evaluate_whole(4, random.Random(1)), [])

    def test_equal_switches_come_in_any_order(self):
        found = set()
        for seed in range(20):
            manager = Manager(HEAD, [CARD] * 4, groups=[[0, 1], [2, 3]])
            found.add(manager.evaluate_whole(1, random.Random(seed))[0].minor)
        self.assertEqual(found, {0, 2})

    def test_whole_cards_are_whole_again(self):
        manager = Manager(HEAD, [CARD])
        take(manager, 100, pod("a", (100, 4)))
        self.assertEqual((manager.cards[0].free_core, manager.cards[0].free), (0, 0))
        manager.release("a")
        self.assertEqual((manager.cards[0].free_core, manager.cards[0].free), (100, CARD))

    def test_half_a_card_more_is_refused_late(self):
        with self.assertRaisesRegex(AllocateError, "multiple of 100"):
            take(Manager(HEAD, [CARD] * 2), 150, pod("a", (150, 4)))


class Starting(unittest.TestCase):
    def test_equal_pods_swap_and_nobody_notices(self):
        manager = Manager(HEAD, [CARD] * 2)
        a, b = pod("a", (10, 4), placed=1, cards={0: 0}), pod("b", (10, 4), placed=2, cards={0: 0})
        self.assertEqual(take(manager, 10, a, b)[1], "a")
        self.assertEqual(take(manager, 10, a, b)[1], "b")
        self.assertEqual(manager.prestart(b, 0, 1), {f"{PREDICATE_IDX}0": "0", ASSIGNED: "true"})

    def test_other_memory_is_noticed_before_the_start(self):
        manager = Manager(HEAD, [CARD] * 2)
        a, b = pod("a", (10, 4), placed=1, cards={0: 0}), pod("b", (10, 9), placed=2, cards={0: 0})
        take(manager, 10, a, b)
        self.assertIsNone(manager.prestart(b, 0, 1), "kubelet asked for b, a was taken")

    def test_real_indices_are_written(self):
        manager = Manager(HEAD, [CARD] * 4, groups=[[0, 1], [2, 3]])
        fill(manager, 0, 10, 1, "x")
        whole = pod("a", (10, 1), (100, 0), placed=1, cards={0: 0, 1: 3})
        take(manager, 10, whole)
        take(manager, 100, whole)
        written = manager.prestart(whole, 1, 1)
        self.assertEqual(written[f"{PREDICATE_IDX}1"], "1")
        self.assertEqual(written[ASSIGNED], "true")
        whole["metadata"]["annotations"].update(written)
        self.assertEqual(cards_of(whole), {"c0": [0], "c1": [1]})


if __name__ == "__main__":
    unittest.main()
