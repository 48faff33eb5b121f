#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the played elastic-gpu agent to what the real one does."""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "controlplane")]

from elastic import SPELLINGS, Links, grant, node_memory  # noqa: E402

ELASTIC = SPELLINGS["elasticgpu.io"]
NANO = SPELLINGS["nano-gpu.io"]
PERCENT = SPELLINGS["nano-gpu"]


def container(spelling, core=0, memory=0, name="c"):
    limits = {spelling.core: str(core)} if core else {}
    if memory:
        limits[spelling.memory] = str(memory)
    return {"name": name, "resources": {"limits": limits}}


def pod(spelling, cards, mark="true", name="c"):
    annotations = {} if mark is None else {spelling.mark: mark}
    if cards is not None:
        annotations[spelling.container + name] = cards
    return {"metadata": {"annotations": annotations}}


class Agent(unittest.TestCase):
    def granted(self, spelling, cards, core=0, memory=0, mark="true"):
        return grant(
            spelling, [0, 1, 2], pod(spelling, cards, mark), container(spelling, core, memory)
        )

    def test_reads_the_annotation_of_that_container(self):
        for spelling in (ELASTIC, NANO):
            self.assertEqual(self.granted(spelling, "1", 30, 256), ([1], 30, 256))
        self.assertEqual(self.granted(PERCENT, "2", 30), ([2], 30, 0))
        other = pod(ELASTIC, "1", name="other")
        self.assertEqual(grant(ELASTIC, [0, 1], other, container(ELASTIC, 30)), ([], 0, 0))

    def test_the_mark_must_be_there_whatever_it_says(self):
        self.assertEqual(self.granted(ELASTIC, "1", 30, mark=""), ([1], 30, 0))
        self.assertEqual(self.granted(ELASTIC, "1", 30, mark=None), ([], 0, 0))

    def test_several_cards(self):
        self.assertEqual(self.granted(ELASTIC, "0,2", 200), ([0, 2], 100, 0))
        self.assertEqual(self.granted(ELASTIC, "0", 200), ([], 0, 0))
        self.assertEqual(self.granted(NANO, "0,2", 200), ([], 0, 0))

    def test_the_memory_plugin_reads_one_card(self):
        self.assertEqual(self.granted(ELASTIC, "0,2", 200, 256), ([], 0, 0))
        self.assertEqual(self.granted(ELASTIC, "0", 100, 256), ([0], 100, 256))
        self.assertEqual(self.granted(ELASTIC, "1", memory=256), ([1], 0, 256))

    def test_what_cannot_be_read_does_not_start(self):
        for text in (None, "", "-1", "3", "x", "0, 1", "0,"):
            self.assertEqual(self.granted(ELASTIC, text, 30), ([], 0, 0), text)

    def test_a_link_that_is_there_is_kept(self):
        links = Links()
        self.assertEqual(links.start(["a", "b"], [1]), [1])
        self.assertEqual(links.start(["b", "a"], [0]), [1], "the pod before has left it")
        self.assertEqual(links.start(["b", "c"], [0]), [0])
        links.sweep(["a", "b"])
        self.assertEqual(links.start(["a", "b"], [0]), [0])

    def test_memory_of_a_node_is_the_sum(self):
        self.assertEqual(node_memory([16384, 8192]), 24576)

    def test_a_container_without_gpu_is_not_asked_for(self):
        self.assertIsNone(self.granted(ELASTIC, "0"))


if __name__ == "__main__":
    unittest.main()
