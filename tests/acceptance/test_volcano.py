#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Volcano's gpushare and elastic-gpu."""

import random

from scenario import Scenario, main, node  # first: it says where players are

import elastic
import volcano
from volcano import MEMORY, NUMBER


def memory_node(name, annotations=None):
    return node(name, {MEMORY: 2 * 16160, NUMBER: 2}, None, annotations)


class S26(Scenario):
    """elastic-gpu and nano-gpu in all spellings: a card for each container, N times 100 are N whole
    cards, and the agent reads each container's own annotation."""

    cannot = "The label that the other scheduler reads at its start is not written: a Binding carries "\
        "no labels in older Kubernetes, and the agent reads the annotation."
    e2e = ("elastic",)

    def grants(self, key, name):
        """What the agent gives each container: cards and hundredths of each."""
        spelling = elastic.SPELLINGS[key]
        [found] = self.saved(name)
        given = (elastic.grant(spelling, range(4), found, c) for c in found["spec"]["containers"])
        return [each[:2] for each in given]

    def test_two_containers(self):
        for key, spelling in elastic.SPELLINGS.items():
            capacity = {spelling.core: 400, **({spelling.memory: 4096} if spelling.memory else {})}
            self.start(node("n", capacity))
            self.place("pair", [{spelling.core: 30}, {spelling.core: 50}])
            self.assertEqual(self.held("pair"), [(0, 0), (1, 0)])
            self.assertEqual(self.grants(key, "pair"), [([0], 30), ([0], 50)])
            said = self.annotations("pair")
            self.assertEqual([said[f"{spelling.container}c{n}"] for n in (0, 1)], ["0", "0"])
            self.assertIn(spelling.mark, said)

    def test_whole_cards(self):
        core = elastic.SPELLINGS["elasticgpu.io"].core
        self.start(node("n", {core: 400, "elasticgpu.io/gpu-memory": 4096}))
        self.place("part", {core: 10})
        self.place("two", {core: 200})
        self.assertEqual(self.held("two"), [(0, 1), (0, 2)])
        self.assertEqual(self.annotations("two")["elasticgpu.io/container-c0"], "1,2")
        self.refused("two-more", {core: 200}, "Insufficient GPU", final=False)
        self.invalid("odd", {core: 150}, "150")


class S27(Scenario):
    """Volcano's gpushare: a card is the quotient of its capacities; whole cards by number on nodes
    that serve numbers; unhealthy ones are left alone; the plugin takes the oldest pod."""

    cannot = "A plugin registers memory or numbers, so one node does not serve both."
    e2e = ("volcano",)

    def test_three_of_8000(self):
        self.start(memory_node("n"))
        for number, card in enumerate((0, 0, 1)):
            self.place(f"p{number}", {MEMORY: 8000})
            self.assertEqual(self.annotations(f"p{number}")[volcano.INDEX], str(card))

    def test_whole_cards(self):
        self.start(node("n", {NUMBER: 2}))
        self.place("pair", {NUMBER: 2})
        self.assertEqual(self.annotations("pair")[volcano.INDEX], "0,1")
        self.end("pair")
        self.place("one", {NUMBER: 1})
        self.refused("pair", {NUMBER: 2}, "Insufficient GPU", final=False)

    def test_unhealthy(self):
        self.start(memory_node("n", {volcano.UNHEALTHY: "1"}))
        for number in range(2):
            self.place(f"p{number}", {MEMORY: 8000})
            self.assertEqual(self.card(f"p{number}"), 0)
        self.refused("late", {MEMORY: 8000}, "Insufficient GPU Memory", final=False)

    def test_the_plugin_takes_the_oldest(self):
        self.start(memory_node("n"))
        for number in range(3):
            self.place(f"p{number}", {MEMORY: 8000})
        found = self.saved("p2", "p0", "p1")
        for each in found:  # as they were bound: the saved cluster's node side has marked them
            each["metadata"]["annotations"][volcano.ASSIGNED] = "false"
        behaviour = volcano.BEHAVIOURS["95b591b6-share"]
        for name, card in (("p0", 0), ("p1", 0), ("p2", 1)):
            given, taken = volcano.decide(behaviour, [0, 1], found, 8000, random.Random(1))
            self.assertEqual((taken["metadata"]["name"], given), (name, [card]))
            taken["metadata"]["annotations"][volcano.ASSIGNED] = "true"


if __name__ == "__main__":
    main()
