# SPDX-License-Identifier: Apache-2.0
"""Plays the agent of elastic-gpu, and of nano-gpu before it, on any number of nodes.

Source: elastic-ai/elastic-gpu-agent@2609107: pkg/plugins/gpushare.go, pkg/kube/locator.go,
pkg/operator/gpushare.go; its earlier names from nano-gpu-scheduler@v0.1.0 to v0.3.0. Allocate decides nothing:
it hands out device files that do not exist yet. Before each container starts, the agent asks
kubelet which pod and container the device ids belong to, and reads the cards from that container's
annotation. It never guesses, so order does not matter. What it cannot read keeps the container
from starting.

The upper half of the file is that reading, without any I/O.
"""

import dataclasses
import re

from feed import OUTAGES
from hardware import NO_CARD
from kubelet import Kubelet, limit


@dataclasses.dataclass(frozen=True)
class Spelling:
    core: str
    memory: str  # "" if there is none
    mark: str
    container: str  # its name follows
    several: bool  # the core plugin reads "0,1"


SPELLINGS = {
    "elasticgpu.io": Spelling(
        "elasticgpu.io/gpu-core",
        "elasticgpu.io/gpu-memory",
        "elasticgpu.io/assumed",
        "elasticgpu.io/container-",
        several=True,
    ),
    "elasticgpu.com": Spelling(
        "elasticgpu.com/gpu-core",
        "elasticgpu.com/gpu-memory",
        "elasticgpu.io/assumed",  # the annotations were not renamed
        "elasticgpu.io/container-",
        several=True,
    ),
    "nano-gpu.io": Spelling(
        "nano-gpu.io/gpu-core",
        "nano-gpu.io/gpu-memory",
        "nano-gpu.io/gpu",
        "nano-gpu.io/gpu-",
        several=False,
    ),
    "nano-gpu": Spelling(
        "nano-gpu/gpu-percent", "", "nano-gpu/assume", "nano-gpu/container-", several=False
    ),
}

CORE_OF_CARD = 100


def prestart(spelling, cards, pod, container, memory):
    """The cards that a container gets from the core plugin, or from the memory plugin; empty if
    it refuses to start it."""
    annotations = pod["metadata"].get("annotations") or {}
    text = annotations.get(spelling.container + container["name"], "")
    if spelling.mark not in annotations:
        return []
    items = text.split(",") if spelling.several and not memory else [text]
    if not all(re.fullmatch("[+-]?[0-9]+", item) for item in items):
        return []
    found = [int(item) for item in items]
    return found if set(found) <= set(cards) else []


class Links:
    """The device files of an agent. One is named after the device ids; if it is there it is kept, whatever
    card it leads to, and it is removed up to a minute after the pod's object has gone."""

    def __init__(self):
        self.cards = {}

    def start(self, ids, cards):
        """The cards on which a container with these ids runs."""
        return self.cards.setdefault(frozenset(ids), list(cards))

    def sweep(self, ids):
        self.cards.pop(frozenset(ids), None)


def node_memory(sizes):
    """gpu-memory of a node: the sum, whatever each card has."""
    return sum(sizes)


def grant(spelling, cards, pod, container):
    """(cards, core and memory of each) of a container; ([], 0, 0) if it cannot start. None: it
    asks for no GPU. kubelet asks each plugin whose devices the container has."""
    core = limit(container, spelling.core)
    memory = limit(container, spelling.memory)
    if not core and not memory:
        return None
    answers = []
    if core:
        answers.append(prestart(spelling, cards, pod, container, False))
    if memory:
        answers.append(prestart(spelling, cards, pod, container, True))
    if not all(answers):
        return [], 0, 0
    whole = core // CORE_OF_CARD
    if whole and len(answers[0]) != whole:
        return [], 0, 0  # device files are missing: it starts, but not as it wished
    return answers[0], core // len(answers[0]), memory


class ElasticKubelet(Kubelet):
    """`sizes` are MiB by card. What a container holds is counted in the same."""

    def __init__(self, fleet, node, sizes, seed, spelling):
        super().__init__(fleet, node, sizes, seed)
        self.spelling = SPELLINGS[spelling]
        self.sizes = list(sizes)

    def _admit(self, pod):
        if not self._take_up(pod) or self._turn_away(pod):
            return
        starts, meta, spec = [], pod["metadata"], pod["spec"]
        try:
            pod = self.fleet.client.get("Pod", meta["name"], meta["namespace"])
        except OUTAGES:
            pass  # the informer's copy then
        for container in spec["containers"]:
            answer = grant(self.spelling, self.cards, pod, container)
            if answer is None:
                continue
            cards, core, memory = answer
            starts += [
                self._start(pod, container["name"], False, self._held(card, core, memory), card)
                for card in cards or [NO_CARD]
            ]
        self.fleet.hardware.start(starts)
        if not self._turn_away_late(pod):
            self.fleet.later(0, self._report_admitted, pod, starts)

    def _held(self, card, core, memory):
        whole = card != NO_CARD and core >= CORE_OF_CARD
        return self.sizes[card] if whole else memory
