#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the played gpushare plugin to what the real one does, its defects included."""

import pathlib
import random
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "controlplane")]

from gpushare import (  # noqa: E402
    ASSIGNED,
    ASSUME_TIME,
    BEHAVIOURS,
    IDX,
    NO_CARD,
    RESOURCE,
    assigned_annotations,
    capacity,
    card_index,
    card_that_runs,
    choose,
    decide,
    is_candidate,
    pod_total,
)
from hardware import Hardware, Start  # noqa: E402
from kubelet import units  # noqa: E402

HEAD, MIDDLE, OLD = BEHAVIOURS["45fb8b8"], BEHAVIOURS["2656995"], BEHAVIOURS["aff8a23"]


def pod(name, *amounts, card=None, placed=None, assigned="false", init=()):
    annotations = {}
    if card is not None:
        annotations[IDX] = str(card)
    if placed is not None:
        annotations[ASSUME_TIME] = str(placed)
    if assigned is not None:
        annotations[ASSIGNED] = assigned

    def containers(prefix, sizes):
        return [
            {
                "name": f"{prefix}{number}",
                "resources": {"limits": {RESOURCE: str(size)}} if size else {},
            }
            for number, size in enumerate(sizes)
        ]

    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": annotations},
        "spec": {
            "containers": containers("c", amounts),
            "initContainers": containers("i", init),
        },
        "status": {"phase": "Pending"},
    }


def admit(behaviour, cards, waiting, order, seed=1):
    """{pod: [card per container]}: a kubelet that admits `order` while all of `waiting` wait."""
    rng = random.Random(seed)
    handed = {}
    for admitted in order:
        handed[admitted["metadata"]["name"]] = cards_of_pod = []
        spec = admitted["spec"]
        for container in spec["initContainers"] + spec["containers"]:
            amount = int(container["resources"].get("limits", {}).get(RESOURCE, 0))
            if not amount:
                continue
            card, matched = decide(behaviour, cards, waiting, amount, rng)
            if matched is not None:
                matched["metadata"]["annotations"].update(assigned_annotations(99))
            cards_of_pod.append(card)
    return handed


class Matching(unittest.TestCase):
    def test_candidates(self):
        self.assertTrue(is_candidate(pod("a", 4, card=0, placed=1)))
        self.assertTrue(is_candidate(pod("a", 4, card=0, placed="soon")), "presence is enough")
        self.assertFalse(is_candidate(pod("a", 4, card=0)), "not placed")
        self.assertFalse(is_candidate(pod("a", 4, card=0, placed=1, assigned="true")))
        self.assertFalse(is_candidate(pod("a", 4, card=0, placed=1, assigned="False")))
        self.assertFalse(is_candidate(pod("a", 4, card=0, placed=1, assigned=None)))
        self.assertFalse(is_candidate(pod("a", 0, card=0, placed=1)), "asks for nothing")
        self.assertFalse(is_candidate(pod("a", 0, card=0, placed=1, init=(4,))))

    def test_oldest_of_equal_total_first(self):
        pods = [pod("young", 4, placed=9), pod("old", 4, placed=2), pod("older", 5, placed=1)]
        self.assertEqual(choose(pods, 4, random.Random(1))["metadata"]["name"], "old")
        self.assertIsNone(choose(pods, 9, random.Random(1)))

    def test_unreadable_time_counts_as_oldest(self):
        for text in ("-1", " 1", "1.5", str(2**64)):
            pods = [pod("timed", 4, placed=1), pod("untimed", 4, placed=text)]
            self.assertEqual(choose(pods, 4, random.Random(1))["metadata"]["name"], "untimed", text)

    def test_equal_times_come_in_any_order(self):
        pods = [pod("a", 4, placed=1), pod("b", 4, placed=1)]
        first = {choose(pods, 4, random.Random(seed))["metadata"]["name"] for seed in range(20)}
        self.assertEqual(first, {"a", "b"})

    def test_total_is_of_app_containers(self):
        self.assertEqual(pod_total(pod("a", 2, 3, init=(7,))), 5)

    def test_strict_index(self):
        self.assertEqual(card_index(pod("a", 4, card="1")), 1)
        for text in ("0,1", " 1", "1 ", "", "one", "1.0"):
            self.assertEqual(card_index(pod("a", 4, card=text)), NO_CARD, text)
        self.assertEqual(card_index(pod("a", 4)), NO_CARD)

    def test_unknown_index_gets_nothing_and_marks_nothing(self):
        for behaviour in BEHAVIOURS.values():
            waiting = [pod("a", 4, card=2, placed=1)]
            self.assertEqual(decide(behaviour, [0, 1], waiting, 4, random.Random(1)), (-1, None))
        waiting = [pod("a", 4, card=1, placed=1)]
        self.assertEqual(decide(HEAD, [0], waiting, 4, random.Random(1)), (-1, None))

    def test_no_match(self):
        for behaviour in BEHAVIOURS.values():
            self.assertEqual(decide(behaviour, [0, 1], [], 4, random.Random(1)), (NO_CARD, None))
        self.assertEqual(decide(HEAD, [0], [], 4, random.Random(1)), (0, None))
        self.assertEqual(decide(MIDDLE, [0], [], 4, random.Random(1)), (NO_CARD, None))
        self.assertEqual(decide(OLD, [0], [], 4, random.Random(1)), (NO_CARD, None))


class CardsOfANode(unittest.TestCase):
    def test_every_card_is_as_large_as_the_first(self):
        self.assertEqual(capacity([16276, 8000]), {RESOURCE: 30, "aliyun.com/gpu-count": 2})
        self.assertEqual(capacity([16276, 8000], 1)[RESOURCE], 32552)

    def test_the_number_is_a_minor_which_the_last_commit_gives_as_an_index(self):
        minors = [1, 0]
        for behaviour, runs in ((OLD, [1, 0]), (MIDDLE, [1, 0]), (HEAD, [0, 1])):
            self.assertEqual([card_that_runs(behaviour, minors, number) for number in (0, 1)], runs)


class KnownDefects(unittest.TestCase):
    def test_equal_pods_swap_cards(self):
        a, b = pod("a", 4, card=0, placed=1), pod("b", 4, card=1, placed=2)
        self.assertEqual(admit(HEAD, [0, 1], [a, b], [b, a]), {"b": [0], "a": [1]})

    def test_what_runs_leaves_no_turn_to_a_pod_whose_own_was_taken(self):
        """In the worst order, the youngest first. The dialect lets eight pods wait at a time."""
        allocate_s, start_s = 0.06, 0.5

        def lost(count):
            batch = [pod(f"p{i}", 2, card=0, placed=i) for i in range(count)]
            runs_at = {}
            cards = []
            for number, admitted in enumerate([batch[-1], *batch[:-1]], 1):
                now = number * allocate_s
                pending = [one for one in batch if runs_at.get(one["metadata"]["name"], now) >= now]
                cards += admit(MIDDLE, [0, 1], pending, [admitted])[admitted["metadata"]["name"]]
                runs_at[admitted["metadata"]["name"]] = now + start_s
            return cards.count(NO_CARD)

        self.assertEqual(lost(8), 0)
        self.assertEqual(lost(32), 1)

    def test_equal_pods_on_one_card_cannot_swap(self):
        a, b = pod("a", 4, card=1, placed=1), pod("b", 4, card=1, placed=2)
        self.assertEqual(admit(HEAD, [0, 1], [a, b], [b, a]), {"b": [1], "a": [1]})

    def test_order_of_placing_is_kept_by_an_orderly_kubelet(self):
        a, b = pod("a", 4, card=0, placed=1), pod("b", 4, card=1, placed=2)
        self.assertEqual(admit(HEAD, [0, 1], [a, b], [a, b]), {"a": [0], "b": [1]})

    def test_several_containers_match_nothing_or_steal(self):
        both = pod("both", 2, 3, card=0, placed=1)
        self.assertEqual(admit(HEAD, [0, 1], [both], [both]), {"both": [-1, -1]})
        both, victim = pod("both", 2, 3, card=0, placed=1), pod("victim", 3, card=1, placed=2)
        handed = admit(HEAD, [0, 1], [both, victim], [both, victim])
        self.assertEqual(handed, {"both": [-1, 1], "victim": [-1]})

    def test_several_containers_on_the_only_card(self):
        self.assertEqual(admit(HEAD, [0], [], [pod("both", 2, 3, card=0, placed=1)]), {"both": [0, 0]})
        self.assertEqual(
            admit(MIDDLE, [0], [], [pod("both", 2, 3, card=0, placed=1)]), {"both": [-1, -1]}
        )

    def test_init_container_consumes_the_only_match(self):
        both = pod("both", 4, card=1, placed=1, init=(4,))
        self.assertEqual(admit(HEAD, [0, 1], [both], [both]), {"both": [1, -1]})


class Cards(unittest.TestCase):
    def start(self, uid, amount, card, init=False):
        return Start(uid, "default", uid, "n", "c", init, amount, card)

    def test_overcommit_is_noticed(self):
        hardware = Hardware()
        hardware.set_cards("n", [10, 10])
        hardware.start([self.start("a", 6, 0)])
        hardware.start([self.start("b", 6, 1)])
        self.assertEqual(hardware.overcommits, [])
        hardware.start([self.start("c", 5, 0)])
        self.assertEqual(hardware.overcommits, [(("n", 0), 11, "c")])

    def test_end_frees_once(self):
        hardware = Hardware()
        hardware.set_cards("n", [10])
        hardware.start([self.start("a", 6, 0, init=True), self.start("a", 4, 0)])
        self.assertEqual(hardware.used(), {("n", 0): 6})
        hardware.end("a")
        hardware.end("a")
        self.assertEqual(hardware.used(), {})

    def test_ended_before_it_started(self):
        hardware = Hardware()
        hardware.set_cards("n", [10])
        hardware.end("a")
        hardware.start([self.start("a", 6, 0)])
        self.assertEqual(hardware.used(), {})


class Quantities(unittest.TestCase):
    def test_forms(self):
        for text, value in (("8065", 8065), ("8k", 8000), ("16Ki", 16384), ("1e3", 1000), ("0", 0)):
            self.assertEqual(units(text), value)


if __name__ == "__main__":
    unittest.main()
