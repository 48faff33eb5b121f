#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Made-up lists of pods that each want one part of a card's compute and another of its memory, on 40
nodes of eight cards: the sorts of docs/packing.md. `made_up_lists.py DIR` writes DIR/NAME.json, each
a saved cluster for `gpuledger simulate --snapshot`; the same every time. `made_up_lists.py DIR WORD`
writes others of the same sorts, for each word others: constants that were chosen on the first are
tested on those."""

import json
import pathlib
import random
import sys

NODES, CARDS, PODS = 40, 8, 500
CORE, MEMORY = "elasticgpu.io/gpu-core", "elasticgpu.io/gpu-memory"


def opposed(*pairs):
    return lambda chance: [pair for first in pairs for pair in (first, first[::-1])]


def by_chance(n, low, high):
    return lambda chance: [(chance.randint(low, high), chance.randint(low, high)) for _ in range(n)]


def mostly(n, less, more, swap):
    """Pairs of which nine in ten want more of one side."""
    def make(chance):
        pairs = [(chance.randint(*less), chance.randint(*more)) for _ in range(n)]
        pairs = [pair[::-1] if chance.random() < 0.1 else pair for pair in pairs]
        return [pair[::-1] for pair in pairs] if swap else pairs
    return make


def gigabytes(of, whole=0):
    """4 to 24 GiB of so many, and 10 to 100 % of compute; `whole` in a hundred ask for all."""
    def make(chance):
        pairs = [(chance.choice(range(10, 101, 10)), 100 * chance.choice((4, 6, 8, 10, 12, 16, 20, 24)) // of)
                 for _ in range(24)]
        return pairs + [(100, 100)] * (24 * whole // 100)
    return make


# name: sizes as (compute, memory) in percent of a card, and the GiB of the nodes' cards, in turn
LISTS = {
    "opposed-a": (opposed((20, 60), (30, 50), (10, 80)), [24]),
    "opposed-b": (opposed((15, 70), (25, 55), (35, 45)), [24]),
    "chance-15-a": (by_chance(15, 10, 80), [24]),
    "chance-15-b": (by_chance(15, 10, 80), [24]),
    "chance-12-small": (by_chance(12, 5, 40), [24]),
    "more-memory-a": (mostly(7, (5, 30), (20, 80), False), [24]),
    "more-memory-b": (mostly(7, (5, 30), (20, 80), False), [24]),
    "more-compute-a": (mostly(7, (5, 30), (20, 80), True), [24]),
    "more-compute-12": (mostly(12, (5, 30), (10, 70), True), [24]),
    "gib-24": (gigabytes(24), [24]),
    "gib-40-whole": (gigabytes(40, 10), [40]),
    "gib-24-48": (gigabytes(24), [24, 48]),
    "chance-60": (by_chance(60, 2, 30), [24]),
    "chance-300": (by_chance(300, 3, 40), [24]),
    "chance-300-large": (by_chance(300, 5, 60), [24]),
    "chance-100-two": (by_chance(100, 5, 80), [24, 48]),
}


def node(i, gib):
    amounts = {"cpu": "1000", "memory": "4000Gi", "pods": "1000",
               CORE: str(100 * CARDS), MEMORY: str(1024 * gib * CARDS)}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": f"node-{i:02}", "labels": {"nvidia.com/gpu.product": f"card-{gib}"}},
            "status": {"capacity": amounts, "allocatable": amounts}}


def pod(i, compute, memory, gib):
    amounts = {"cpu": "1", CORE: str(compute), MEMORY: str(1024 * gib * memory // 100)}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"pod-{i:03}", "namespace": "default", "uid": f"pod-{i:03}"},
            "spec": {"containers": [{"name": "main", "image": "example.com/none:1",
                                     "resources": {"requests": amounts, "limits": amounts}}]}}


def make(name, word):
    sizes, gibs = LISTS[name]
    chance = random.Random(name + word)
    pairs = sizes(chance)
    drawn = [chance.choice(pairs) for _ in range(PODS)]
    return {"apiVersion": "v1", "kind": "List",
            "items": [node(i, gibs[i % len(gibs)]) for i in range(NODES)] +
                     [pod(i, *pair, min(gibs)) for i, pair in enumerate(drawn)]}


def main():
    folder = pathlib.Path(sys.argv[1])
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    folder.mkdir(parents=True, exist_ok=True)
    for name in LISTS:
        (folder / f"{name}.json").write_text(json.dumps(make(name, word)))


if __name__ == "__main__":
    main()
