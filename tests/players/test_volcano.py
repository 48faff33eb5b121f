#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the played Volcano plugin to what the real one does, its defects included."""

import pathlib
import random
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "controlplane")]

from volcano import (  # noqa: E402
    ASSIGNED,
    BEHAVIOURS,
    INDEX,
    PREDICATE_TIME,
    capacity,
    choose,
    decide,
    indices,
    is_candidate,
)

OLD = BEHAVIOURS["0d68534"]
SHARE = BEHAVIOURS["95b591b6-share"]
NUMBER = BEHAVIOURS["95b591b6-number"]


def pod(name, *amounts, behaviour=SHARE, cards=None, placed=None, assigned=None, **more):
    annotations = {}
    for key, value in ((INDEX, cards), (PREDICATE_TIME, placed), (ASSIGNED, assigned)):
        if value is not None:
            annotations[key] = str(value)
    containers = [
        {
            "name": f"c{number}",
            "resources": {"limits": {behaviour.resource: str(size)}} if size else {},
        }
        for number, size in enumerate(amounts)
    ]
    return {
        "metadata": {"name": name, "annotations": annotations, **more},
        "spec": {"containers": containers},
        "status": {"phase": "Pending"},
    }


def admit(behaviour, cards, waiting, order):
    """{pod: [cards per container]}: a kubelet that admits `order` while all of `waiting` wait."""
    rng = random.Random(1)
    handed = {}
    for admitted in order:
        handed[admitted["metadata"]["name"]] = cards_of_pod = []
        for container in admitted["spec"]["containers"]:
            amount = int(container["resources"].get("limits", {}).get(behaviour.resource, 0))
            if not amount:
                continue
            found, matched = decide(behaviour, cards, waiting, amount, rng)
            if matched is not None:
                matched["metadata"]["annotations"][ASSIGNED] = "true"
            cards_of_pod.append(found)
    return handed


class Matching(unittest.TestCase):
    def test_candidates(self):
        self.assertTrue(is_candidate(SHARE, pod("a", 4)), "no annotation is needed")
        self.assertTrue(is_candidate(SHARE, pod("a", 4, assigned="false")))
        self.assertFalse(is_candidate(SHARE, pod("a", 4, assigned="true")))
        self.assertFalse(is_candidate(SHARE, pod("a", 4, assigned="no")))
        self.assertFalse(is_candidate(SHARE, pod("a", 0)))
        self.assertFalse(is_candidate(NUMBER, pod("a", 4)), "another resource")
        self.assertFalse(is_candidate(SHARE, pod("a", 4, deletionTimestamp="now")))

    def test_oldest_with_any_container_of_that_size(self):
        pods = [pod("young", 4, placed=9), pod("old", 7, 4, placed=2), pod("older", 5, placed=1)]
        self.assertEqual(choose(SHARE, pods, 4, random.Random(1))["metadata"]["name"], "old")
        self.assertIsNone(choose(SHARE, pods, 11, random.Random(1)))

    def test_unreadable_time_counts_as_youngest(self):
        for text in ("-1", " 1", "1.5", None):
            pods = [pod("timed", 4, placed=9), pod("untimed", 4, placed=text)]
            first = choose(SHARE, pods, 4, random.Random(1))["metadata"]["name"]
            self.assertEqual(first, "timed", text)

    def test_equal_times_come_in_any_order(self):
        pods = [pod("a", 4, placed=1), pod("b", 4, placed=1)]
        first = {choose(SHARE, pods, 4, random.Random(s))["metadata"]["name"] for s in range(20)}
        self.assertEqual(first, {"a", "b"})

    def test_indices(self):
        self.assertEqual(indices(SHARE, pod("a", 4, cards="0,2")), [0, 2])
        self.assertEqual(indices(OLD, pod("a", 4, cards="0,2")), [])
        self.assertEqual(indices(OLD, pod("a", 4, cards="2")), [2])
        for text in ("", "0, 1", "x", "0,", None):
            self.assertEqual(indices(SHARE, pod("a", 4, cards=text)), [], text)

    def test_failures_mark_nothing(self):
        for cards in (None, "5", "x"):
            waiting = [pod("a", 4, cards=cards, placed=1)]
            self.assertEqual(decide(SHARE, [0, 1], waiting, 4, random.Random(1)), ([], None))

    def test_number_mode(self):
        waiting = [pod("a", 2, behaviour=NUMBER, cards="0,1", placed=1)]
        self.assertEqual(admit(NUMBER, [0, 1], waiting, waiting), {"a": [[0, 1]]})


class Capacity(unittest.TestCase):
    def test_every_card_is_as_large_as_the_first(self):
        wanted = {"volcano.sh/gpu-memory": 32768, "volcano.sh/gpu-number": 2}
        self.assertEqual(capacity(SHARE, [16384, 8192]), wanted)
        self.assertEqual(capacity(SHARE, [16384, 8192], 1024)["volcano.sh/gpu-memory"], 32)
        self.assertEqual(capacity(NUMBER, [16384, 8192]), {"volcano.sh/gpu-number": 2})


class KnownDefects(unittest.TestCase):
    def test_equal_pods_swap_cards(self):
        a, b = pod("a", 4, cards=0, placed=1), pod("b", 4, cards=1, placed=2)
        self.assertEqual(admit(SHARE, [0, 1], [a, b], [b, a]), {"b": [[0]], "a": [[1]]})

    def test_equal_pods_on_one_card_cannot_swap(self):
        a, b = pod("a", 4, cards=1, placed=1), pod("b", 4, cards=1, placed=2)
        self.assertEqual(admit(SHARE, [0, 1], [a, b], [b, a]), {"b": [[1]], "a": [[1]]})

    def test_second_container_finds_nothing_or_steals(self):
        both = pod("both", 2, 3, cards=0, placed=1)
        self.assertEqual(admit(SHARE, [0, 1], [both], [both]), {"both": [[0], []]})
        both, victim = pod("both", 2, 3, cards=0, placed=1), pod("victim", 3, cards=1, placed=2)
        handed = admit(SHARE, [0, 1], [both, victim], [both, victim])
        self.assertEqual(handed, {"both": [[0], [1]], "victim": [[]]})

    def test_unplaced_pod_fails_where_it_is_the_only_match(self):
        stray = pod("stray", 4)
        self.assertEqual(admit(SHARE, [0], [stray], [stray]), {"stray": [[]]})


if __name__ == "__main__":
    unittest.main()
