# SPDX-License-Identifier: Apache-2.0
"""Plays the device plugin of Aliyun gpushare on any number of nodes.

Source: AliyunContainerService/gpushare-device-plugin@aff8a23, 2656995 (the images that its manifests
and its chart name) and 45fb8b8 (the last commit): pkg/gpu/nvidia/allocate.go, podmanager.go, podutils.go,
nvidia.go, server.go. kubelet calls
Allocate once per container with a number of devices and no word about the pod, so the plugin
guesses: among the pending pods of its node that were placed and not yet assigned it takes the one
placed first whose total equals that number.

The upper half of the file is that guess, without any I/O.
"""

import dataclasses
import re
import time

from feed import OUTAGES
from hardware import NO_CARD
from kubeapi import STRATEGIC_PATCH, ApiError
from kubelet import Kubelet, limit

RESOURCE = "aliyun.com/gpu-mem"
RESOURCE_COUNT = "aliyun.com/gpu-count"

IDX = "ALIYUN_COM_GPU_MEM_IDX"
DEV = "ALIYUN_COM_GPU_MEM_DEV"
POD = "ALIYUN_COM_GPU_MEM_POD"
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ASSUME_TIME = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"

CONFLICT = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


@dataclasses.dataclass(frozen=True)
class Behaviour:
    name: str
    puts: bool  # writes the whole pod back instead of a patch
    one_card_shortcut: bool  # hands out the only card of a node to whatever matches no pod
    by_index: bool  # gives the runtime the number, which takes it for NVML's index; else the UUID


BEHAVIOURS = {
    behaviour.name: behaviour
    for behaviour in (
        Behaviour("aff8a23", puts=True, one_card_shortcut=False, by_index=False),
        Behaviour("2656995", puts=True, one_card_shortcut=False, by_index=False),
        Behaviour("45fb8b8", puts=False, one_card_shortcut=True, by_index=True),
    )
}


def capacity(sizes, unit=1024):
    """What a node with cards of so many MiB has; `unit`: of --memory-unit, in MiB. Every card counts as
    large as the first, and what is less than a unit is lost. gpu-count is written before the plugin
    registers, so that after a change a node has the new count with the old memory for a moment."""
    return {RESOURCE: sizes[0] // unit * len(sizes), RESOURCE_COUNT: len(sizes)}


def card_that_runs(behaviour, minors, number):
    """NVML's index of the card on which a container runs that was given this number, a minor; `minors`
    are the cards' minors in NVML's order."""
    return number if behaviour.by_index else minors.index(number)


def pod_total(pod):
    """What the plugin takes for the pod's amount: init containers do not count."""
    return sum(limit(container, RESOURCE) for container in pod["spec"]["containers"])


def _annotations(pod):
    return pod["metadata"].get("annotations") or {}


def is_candidate(pod):
    """Placed and not yet assigned. The caller has selected node and phase."""
    annotations = _annotations(pod)
    return (
        pod_total(pod) > 0 and ASSUME_TIME in annotations and annotations.get(ASSIGNED) == "false"
    )


def assume_time(pod):
    text = _annotations(pod).get(ASSUME_TIME, "")
    value = int(text) if re.fullmatch("[0-9]+", text) else 0
    return value if value < 2**64 else 0


def card_index(pod):
    """The card that the annotation names; NO_CARD for anything but one whole number."""
    text = _annotations(pod).get(IDX, "")
    return int(text) if re.fullmatch("[+-]?[0-9]+", text) else NO_CARD


def choose(pods, amount, rng):
    """The pod that an Allocate call for `amount` devices is taken to be for, or None.

    The plugin's sort is not stable, so the order of equal times is anybody's guess.
    """
    candidates = [pod for pod in pods if is_candidate(pod)]
    candidates.sort(key=lambda pod: (assume_time(pod), rng.random()))
    return next((pod for pod in candidates if pod_total(pod) == amount), None)


def decide(behaviour, cards, pods, amount, rng):
    """(card or NO_CARD, the pod to mark as assigned or None) for one Allocate call."""
    pod = choose(pods, amount, rng)
    if pod is not None:
        card = card_index(pod)
        return (card, pod) if card in cards else (NO_CARD, None)
    if behaviour.one_card_shortcut and len(cards) == 1:
        return cards[0], None
    return NO_CARD, None


def assigned_annotations(now_ns):
    return {ASSIGNED: "true", ASSUME_TIME: str(now_ns)}


class GpushareKubelet(Kubelet):
    """`sizes` in NVML's order, `minors` their device numbers in that order."""

    resource = RESOURCE

    def __init__(self, fleet, node, sizes, seed, behaviour, minors=None):
        super().__init__(fleet, node, sizes, seed)
        self.behaviour = BEHAVIOURS[behaviour]
        self._minors = minors

    @property
    def minors(self):
        """Of the cards that there are now; without any told, as NVML counts them."""
        return list(self._minors or self.cards)

    def allocate(self, amount):
        try:
            pods = self._pending()
        except OUTAGES as error:
            return NO_CARD, f"list: {error!r}"
        card, pod = decide(self.behaviour, self.minors, pods, amount, self.random)
        if pod is not None:
            try:
                self._mark(pod)
            except OUTAGES as error:
                return NO_CARD, f"mark: {error!r}"
            card = card_that_runs(self.behaviour, self.minors, card)
            card = card if card in self.cards else NO_CARD
        elif card != NO_CARD:
            card = 0  # the only one, by UUID
        return card, ""

    def _pending(self):
        selector = f"spec.nodeName={self.node},status.phase=Pending"
        for _ in range(3):
            try:
                return self.fleet.client.items("Pod", None, fieldSelector=selector)
            except OUTAGES:
                self.fleet.stopping.wait(1)
        return self.fleet.client.items("Pod", None, fieldSelector=selector)

    def _mark(self, pod):
        """Retries once, and only if somebody else changed the pod in between."""
        try:
            self._write(pod)
        except ApiError as error:
            if CONFLICT not in error.message:
                raise
            meta = pod["metadata"]
            self._write(self.fleet.client.get("Pod", meta["name"], meta["namespace"]))

    def _write(self, pod):
        meta = pod["metadata"]
        marks = assigned_annotations(time.time_ns())
        if self.behaviour.puts:
            annotations = {**_annotations(pod), **marks}
            whole = {**pod, "metadata": {**meta, "annotations": annotations}}
            self.fleet.client.update({"apiVersion": "v1", "kind": "Pod", **whole})
        else:
            patch = {"metadata": {"annotations": marks}}
            self.fleet.client.patch(
                "Pod", meta["name"], patch, meta["namespace"], None, STRATEGIC_PATCH
            )
