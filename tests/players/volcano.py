# SPDX-License-Identifier: Apache-2.0
"""Plays the device plugin of Volcano gpushare on any number of nodes.

Source: volcano-sh/devices@0d68534 (v1.0: memory only, one index) and 95b591b6 (the last:
`--gpu-strategy` share or number, several indices): pkg/plugin/nvidia/kube_interactor.go, server.go,
utils.go. kubelet calls Allocate once per
container with a number of devices and no word about the pod, so the plugin guesses: among the
pending, unassigned pods of its node that ask for its resource it takes the one with the oldest
predicate time that has any container of that size, and marks the whole pod as assigned. Where it
finds none, or no card, Allocate fails and kubelet fails the pod.

The upper half of the file is that guess, without any I/O.
"""

import dataclasses
import re

from feed import OUTAGES
from hardware import NO_CARD
from kubelet import Kubelet, containers_of, limit

MEMORY = "volcano.sh/gpu-memory"
NUMBER = "volcano.sh/gpu-number"

INDEX = "volcano.sh/gpu-index"
PREDICATE_TIME = "volcano.sh/predicate-time"
ASSIGNED = "volcano.sh/gpu-assigned"
UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"

LATEST_TIME = 2**64 - 1
LIST_S = 10  # how long it goes on asking for its pods


@dataclasses.dataclass(frozen=True)
class Behaviour:
    name: str
    resource: str  # what it registers with kubelet
    several: bool  # reads "0,1"


BEHAVIOURS = {
    behaviour.name: behaviour
    for behaviour in (
        Behaviour("0d68534", MEMORY, several=False),
        Behaviour("95b591b6-share", MEMORY, several=True),
        Behaviour("95b591b6-number", NUMBER, several=True),
    )
}


def _annotations(pod):
    return pod["metadata"].get("annotations") or {}


def is_candidate(behaviour, pod):
    """Whether the plugin may take the pod; a mark that was never written is no obstacle. The
    caller has selected node and phase."""
    sizes = [limit(container, behaviour.resource) for container in pod["spec"]["containers"]]
    return (
        sum(sizes) > 0
        and _annotations(pod).get(ASSIGNED, "false") == "false"
        and "deletionTimestamp" not in pod["metadata"]
        and pod["status"].get("reason") != "UnexpectedAdmissionError"
    )


def capacity(behaviour, sizes, factor=1):
    """What a node with cards of so many MiB has. Every card counts as large as the first."""
    if behaviour.resource == NUMBER:
        return {NUMBER: len(sizes)}
    return {MEMORY: sizes[0] // factor * len(sizes), NUMBER: len(sizes)}


def predicate_time(pod):
    """What cannot be read comes last."""
    text = _annotations(pod).get(PREDICATE_TIME, "")
    value = int(text) if re.fullmatch("[0-9]+", text) else LATEST_TIME
    return min(value, LATEST_TIME)


def indices(behaviour, pod):
    """The cards that the annotation names; empty if the plugin cannot read it."""
    text = _annotations(pod).get(INDEX, "")
    items = text.split(",") if behaviour.several else [text]
    if not all(re.fullmatch("[+-]?[0-9]+", item) for item in items):
        return []
    return [int(item) for item in items]


def choose(behaviour, pods, amount, rng):
    """The pod that an Allocate call for `amount` devices is taken to be for, or None.

    The plugin's order of equal times is anybody's guess.
    """
    candidates = [pod for pod in pods if is_candidate(behaviour, pod)]
    candidates.sort(key=lambda pod: (predicate_time(pod), rng.random()))
    return next(
        (
            pod
            for pod in candidates
            if any(limit(c, behaviour.resource) == amount for c in pod["spec"]["containers"])
        ),
        None,
    )


def decide(behaviour, cards, pods, amount, rng):
    """(cards, the pod to mark as assigned) for one Allocate call; ([], None) if it fails."""
    pod = choose(behaviour, pods, amount, rng)
    if pod is None:
        return [], None
    found = indices(behaviour, pod)
    return (found, pod) if found and set(found) <= set(cards) else ([], None)


class VolcanoKubelet(Kubelet):
    """`sizes` are the units of each card that one device of the plugin's resource stands for; in
    number mode 1 each."""

    def __init__(self, fleet, node, sizes, seed, behaviour):
        super().__init__(fleet, node, sizes, seed)
        self.behaviour = BEHAVIOURS[behaviour]
        self.resource = self.behaviour.resource

    def _admit(self, pod):
        if not self._take_up(pod) or self._turn_away(pod):
            return
        starts = []
        for init, container in containers_of(pod):
            amount = limit(container, self.resource)
            if amount == 0:
                continue
            cards, trouble = self._allocate(amount)
            each = amount // len(cards) if self.resource == NUMBER and cards else amount
            starts += [self._start(pod, container["name"], init, each, card, trouble)
                       for card in cards or [NO_CARD]]
            if not cards:
                break  # kubelet asks for nothing more
        self.fleet.hardware.start(starts)
        if not self._turn_away_late(pod):
            self.fleet.later(0, self._report_admitted, pod, starts)

    def _report_admitted(self, pod, starts):
        if all(start.card != NO_CARD for start in starts):
            super()._report_admitted(pod, starts)
            return
        self.fleet.hardware.end(pod["metadata"]["uid"])
        failed = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
        self.report(pod, {**failed, "message": "Allocate failed due to rpc error"})

    def _allocate(self, amount):
        """(cards or [], trouble)"""
        try:
            cards, pod = decide(self.behaviour, self.cards, self._pending(), amount, self.random)
            if pod is not None:
                self._mark(pod)
        except OUTAGES as error:
            return [], f"{error!r}"
        return cards, ""

    def _pending(self):
        selector = f"spec.nodeName={self.node},status.phase=Pending"
        for _ in range(LIST_S):
            try:
                return self.fleet.client.items("Pod", None, fieldSelector=selector)
            except OUTAGES:
                self.fleet.stopping.wait(1)
        return self.fleet.client.items("Pod", None, fieldSelector=selector)

    def _mark(self, pod):
        """Reads the pod again and writes it back as a whole; a conflict is an error like others."""
        meta = pod["metadata"]
        fresh = self.fleet.client.get("Pod", meta["name"], meta["namespace"])
        fresh["metadata"]["annotations"] = {**_annotations(fresh), ASSIGNED: "true"}
        self.fleet.client.update({"apiVersion": "v1", "kind": "Pod", **fresh})
