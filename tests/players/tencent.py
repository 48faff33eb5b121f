# SPDX-License-Identifier: Apache-2.0
"""Plays Tencent's gpu-manager on any number of nodes.

Source: tkestack/gpu-manager@v1.0.9, v1.1.4, v1.1.5 and 8cd842e (the last commit):
pkg/services/allocator/nvidia/allocator.go, pkg/utils/util.go, pkg/algorithm/nvidia, pkg/device/nvidia,
pkg/services/watchdog/watchdog.go. kubelet calls
Allocate once per container with a number of vcuda-core devices and no word about the pod.
gpu-manager guesses the pod, picks cards by an order of its own, and only then looks whether the
pod's annotation says the same. Before a container starts it learns whose container that is, and
fails the pod if the guess was wrong.

The upper part of the file is that, without any I/O.
"""

import calendar
import dataclasses
import re
import threading
import time

from feed import OUTAGES
from hardware import NO_CARD, Start
from kubeapi import STRATEGIC_PATCH
from kubelet import TERMINAL, Kubelet, limit, now_rfc3339

CORE = "tencent.com/vcuda-core"
MEMORY = "tencent.com/vcuda-memory"
BLOCK = 256 << 20
CARD_CORE = 100

PREDICATE_TIME = "tencent.com/predicate-time"
PREDICATE_NODE = "tencent.com/predicate-node"
PREDICATE_IDX = "tencent.com/predicate-gpu-idx-"
ASSIGNED = "tencent.com/gpu-assigned"

ADMISSION_ERROR = "UnexpectedAdmissionError"
PRESTART_ERROR = "PreStartContainerCheckErr"

CHECK_S = 30  # --allocation-check-period


@dataclasses.dataclass(frozen=True)
class Behaviour:
    name: str
    bytewise: bool  # cards are compared by bytes, not by blocks of 256 MiB
    nvml_ties: bool  # equal cards go by their number in NVML, though minors are compared
    cached_list: bool = False  # pods are listed as the API server's cache has them, which may be old


BEHAVIOURS = {
    behaviour.name: behaviour
    for behaviour in (
        Behaviour("v1.0.9", bytewise=True, nvml_ties=True, cached_list=True),
        Behaviour("v1.1.4", bytewise=True, nvml_ties=True),
        Behaviour("v1.1.5", bytewise=False, nvml_ties=True),
        Behaviour("8cd842e", bytewise=False, nvml_ties=False),
    )
}


class AllocateError(Exception):
    """What kubelet is told, and fails the pod for."""


@dataclasses.dataclass
class Card:
    nvml: int
    minor: int
    size: int  # bytes
    pids: int = 0
    free_core: int = CARD_CORE
    free: int = 0

    def __post_init__(self):
        self.free = self.size

    def is_free(self):
        return self.free_core == CARD_CORE


# Pods


def _annotations(pod):
    return pod["metadata"].get("annotations") or {}


def amounts(container):
    return limit(container, CORE), limit(container, MEMORY)


def counts_as_gpu(core, blocks):
    return core > 0 and not (core < CARD_CORE and blocks == 0)


def is_gpu_pod(pod):
    pairs = [amounts(container) for container in pod["spec"]["containers"]]
    return counts_as_gpu(sum(core for core, _ in pairs), sum(blocks for _, blocks in pairs))


def is_assigned(pod):
    return _annotations(pod).get(ASSIGNED, "false") != "false"


def is_active(pod):
    if pod["status"].get("phase") in TERMINAL:
        return False
    states = pod["status"].get("containerStatuses", [])
    running = any("running" in status.get("state", {}) for status in states)
    return "deletionTimestamp" not in pod["metadata"] or running


def predicate_time(pod):
    """Unix nanoseconds; whole seconds of the creation if nobody predicted anything."""
    text = _annotations(pod).get(PREDICATE_TIME)
    if text is None:
        created = pod["metadata"].get("creationTimestamp", "1970-01-01T00:00:00Z")
        return _seconds(created) * 10**9
    value = int(text) if re.fullmatch("[0-9]+", text) else 0
    return value if value < 2**64 else 0


def _seconds(rfc3339):
    return calendar.timegm(time.strptime(rfc3339, "%Y-%m-%dT%H:%M:%SZ"))


def is_candidate(pod):
    """The caller has selected node and phase. One that is being deleted stays a candidate."""
    failed = pod["status"].get("reason") in (ADMISSION_ERROR, PRESTART_ERROR)
    return is_gpu_pod(pod) and not is_assigned(pod) and not failed


def predicted_minor(pod, index):
    """The one card that the annotation names, or None for anything but one whole number."""
    text = _annotations(pod).get(f"{PREDICATE_IDX}{index}", "")
    return int(text) if re.fullmatch("[+-]?[0-9]+", text) else None


def is_predicted(pod, core, blocks):
    annotations = _annotations(pod)
    return (
        PREDICATE_TIME in annotations
        and ASSIGNED in annotations
        and annotations[ASSIGNED] != "true"
        and core > 0
        and blocks > 0
    )


# Cards


class Manager:
    """gpu-manager's memory and its choices; one node.

    `sizes` are the cards' bytes in NVML's order, `minors` their device numbers in that order,
    `groups` which of them share a PCI switch.
    """

    def __init__(self, behaviour, sizes, minors=None, groups=None, share=True):
        self.behaviour = BEHAVIOURS[behaviour]
        self.share = share
        minors = list(minors or range(len(sizes)))
        self.cards = [Card(nvml, minors[nvml], size) for nvml, size in enumerate(sizes)]
        self.groups = groups or [list(range(len(sizes)))]
        self.held = {}  # uid -> {container index: (core, blocks, [card])}
        self.unfinished = None  # the pod of which one container was served and another was not
        self.gone = []  # uids that the last call has recycled

    # Choosing

    def evaluate_share(self, core, blocks):
        unit = 1 if self.behaviour.bytewise else BLOCK

        def order(card):
            last = card.nvml if self.behaviour.nvml_ties else card.minor
            return card.free_core, card.free // unit, card.pids, last

        for card in sorted(self.cards, key=order):
            if card.free_core >= core and card.free >= blocks * BLOCK:
                return [card]
        return []

    def evaluate_whole(self, count, rng):
        free = [[c for c in map(self.cards.__getitem__, group) if c.is_free()] for group in self.groups]
        if count == 1:
            # The switch with the fewest free cards; among equal ones nobody can tell.
            options = [group for group in free if group]
            options.sort(key=lambda group: (len(group), sum(c.pids for c in group), rng.random()))
        else:
            options = sorted((g for g in free if len(g) >= count), key=len)
            options.append([card for group in free for card in group])
        for group in options:
            if len(group) >= count:
                return sorted(group, key=lambda card: card.nvml)[:count]
        return []

    # kubelet's calls

    def recycle(self, pods):
        """`pods`: {uid: pod} of the node, in any phase. Whose cards it has back."""
        gone = [uid for uid in self.held if uid not in pods or not is_active(pods[uid])]
        for uid in gone:
            self.release(uid)
        return gone

    def release(self, uid):
        for core, blocks, cards in self.held.pop(uid, {}).values():
            for card in cards:
                card.free_core += min(core, CARD_CORE)
                card.free = card.size if core >= CARD_CORE else card.free + blocks * BLOCK

    def match(self, pods, core):
        """(pod, container index) that an Allocate of so many devices is taken to be for. A pod that was
        served in part comes first, also when it has ended: nothing but a restart forgets it."""
        if self.unfinished:
            pod = self.unfinished
            if pod["metadata"]["uid"] not in self.held:
                raise AllocateError("failed to find pod in cache")
            index = self._open(pod)[0]
            if amounts(pod["spec"]["containers"][index])[0] != core:
                raise AllocateError("allocation request mismatch")
            return pod, index
        candidates = sorted(filter(is_candidate, pods), key=predicate_time)
        for pod in candidates:
            for index in self._open(pod):
                if amounts(pod["spec"]["containers"][index])[0] == core:
                    return pod, index
        raise AllocateError("unable to get candidate pod")

    def _open(self, pod):
        """Indices of the GPU containers that nothing was handed out for."""
        done = self.held.get(pod["metadata"]["uid"], {})
        containers = pod["spec"]["containers"]
        return [
            index
            for index, container in enumerate(containers)
            if counts_as_gpu(*amounts(container)) and index not in done
        ]

    def allocate(self, pods, core, rng, known=None):
        """(cards, pod that it was for, annotations to write on that pod or None).

        `pods`: those of the node that are Pending; `known`: {uid: pod} in any phase. Cards of pods that
        have ended are taken back once the pod is found, not before.
        """
        self.gone = []
        pod, index = self.match(pods, core)
        if known is not None:
            self.gone = self.recycle(known)
        _, blocks = amounts(pod["spec"]["containers"][index])
        if core > CARD_CORE and core % CARD_CORE:
            raise AllocateError("must be multiple of 100")
        if core >= CARD_CORE:
            cards = self.evaluate_whole(core // CARD_CORE, rng)
        elif self.share:
            cards = self.evaluate_share(core, blocks)
        else:
            raise AllocateError("share mode is not enabled")
        if not cards:
            raise AllocateError("no free node")
        predicted = is_predicted(pod, core, blocks)
        if predicted and core < CARD_CORE:
            wanted = predicted_minor(pod, index)
            if wanted != cards[0].minor:
                raise AllocateError(
                    f"Nvidia node mismatch for pod {pod['metadata']['name']}, "
                    f"pick up:/dev/nvidia{cards[0].minor} predicate: /dev/nvidia{wanted}"
                )
        for card in cards:
            card.free_core -= min(core, CARD_CORE)
            card.free = 0 if core >= CARD_CORE else card.free - blocks * BLOCK
        self.held.setdefault(pod["metadata"]["uid"], {})[index] = core, blocks, cards
        self.unfinished = pod if self._open(pod) else None
        patch = None if predicted else {**self.indices(pod), ASSIGNED: "false"}
        return cards, pod, patch

    def indices(self, pod):
        held = self.held.get(pod["metadata"]["uid"], {})
        return {
            f"{PREDICATE_IDX}{index}": ",".join(str(card.minor) for card in cards)
            for index, (_, _, cards) in held.items()
        }

    def prestart(self, pod, index, count):
        """Annotations to write, or None: the pod is failed. By now its identity is known."""
        uid = pod["metadata"]["uid"]
        core, blocks = amounts(pod["spec"]["containers"][index])
        kept = self.held.get(uid, {}).get(index)
        if kept is None or kept[:2] != (core, blocks) or len(kept[2]) != count:
            self.release(uid)
            return None
        return {**self.indices(pod), ASSIGNED: "true"}


# The node


def core_node(node):
    """The name under which Hardware keeps a node's compute."""
    return f"{node}/core"


class GpuManagerKubelet(Kubelet):
    """`sizes` are bytes."""

    resource = CORE

    def __init__(self, fleet, node, sizes, seed, behaviour, **manager):
        self.blocks = [size // BLOCK for size in sizes]
        super().__init__(fleet, node, self.blocks, seed)
        fleet.hardware.set_cards(core_node(node), [CARD_CORE] * len(sizes))
        self.manager = Manager(behaviour, sizes, **manager)
        self._turn = threading.Lock()
        self.failed = []  # (pod, why)

    def _admit(self, pod):
        if not self._take_up(pod) or self._turn_away(pod):
            return
        spec = pod["spec"]
        starts, counts = [], {}
        for init, containers in ((True, spec.get("initContainers", [])), (False, spec["containers"])):
            for index, container in enumerate(containers):
                core, blocks = amounts(container)
                if core == 0:
                    continue
                try:
                    cards = self._allocate(core)
                except (AllocateError, *OUTAGES) as error:
                    self._fail(pod, ADMISSION_ERROR, error)
                    return
                if not init:
                    counts[index] = len(cards)
                starts += self._starts(pod, container, init, core, blocks, cards)
        self.fleet.hardware.start(starts)
        if not self._turn_away_late(pod):
            self.fleet.later(0, self._report_start, pod, counts)

    def _starts(self, pod, container, init, core, blocks, cards):
        meta = pod["metadata"]
        whole = core >= CARD_CORE
        for card in cards:
            for node, amount in (
                (self.node, self.blocks[card.nvml] if whole else blocks),
                (core_node(self.node), min(core, CARD_CORE)),
            ):
                yield Start(
                    meta["uid"],
                    meta["namespace"],
                    meta["name"],
                    node,
                    container["name"],
                    init,
                    amount,
                    card.minor,
                )

    def _allocate(self, core):
        more = {"resourceVersion": "0"} if self.manager.behaviour.cached_list else {}
        known = self.fleet.client.items("Pod", None, fieldSelector=f"spec.nodeName={self.node}", **more)
        pending = [pod for pod in known if pod["status"].get("phase") == "Pending"]
        with self._turn:
            try:
                cards, pod, patch = self.manager.allocate(
                    pending, core, self.random, {each["metadata"]["uid"]: each for each in known}
                )
            finally:
                for uid in self.manager.gone:  # nothing of it runs, or will
                    self.fleet.hardware.end(uid)
        if patch:
            self._annotate(pod, patch)
        return cards

    def _annotate(self, pod, annotations):
        meta = pod["metadata"]
        patch = {"metadata": {"annotations": annotations}}
        self.insist(
            lambda: self.fleet.client.patch(
                "Pod", meta["name"], patch, meta["namespace"], None, STRATEGIC_PATCH
            )
        )

    def _fail(self, pod, reason, why):
        self.failed.append((pod["metadata"]["name"], f"{reason}: {why}"))
        self._report_end(pod, {"phase": "Failed", "reason": reason, "message": str(why), "startTime": now_rfc3339()})
        if pod["metadata"].get("ownerReferences"):
            self.fleet.later(self.random.uniform(0, CHECK_S), self._delete, pod)

    def _delete(self, pod):
        """gpu-manager removes pods that it has failed, unless they are naked."""
        meta = pod["metadata"]
        self.insist(lambda: self.fleet.client.delete("Pod", meta["name"], meta["namespace"]))

    def _report_start(self, pod, counts):
        self._report_alive(pod, {"startTime": now_rfc3339(), "phase": "Pending"})
        delay_s = self.random.uniform(*self.fleet.start_s)
        self.fleet.later(delay_s, self._prestart, pod, counts)

    def _prestart(self, pod, counts):
        with self._lock:
            if self._seen.get(pod["metadata"]["uid"]) != "admitted":
                return
        for index, count in counts.items():
            with self._turn:
                annotations = self.manager.prestart(pod, index, count)
            if annotations is None:
                self._fail(pod, PRESTART_ERROR, "the containers of another pod were allocated")
                return
            self._annotate(pod, annotations)
        self._report_containers(pod, "Running", {"running": {"startedAt": now_rfc3339()}})


def cards_of(pod):
    """{container name: [minor, …]} by the pod's annotations; NO_CARD for what cannot be read."""
    found = {}
    for index, container in enumerate(pod["spec"]["containers"]):
        if not counts_as_gpu(*amounts(container)):
            continue
        text = _annotations(pod).get(f"{PREDICATE_IDX}{index}", "")
        items = text.split(",")
        good = all(re.fullmatch("[0-9]+", item) for item in items)
        found[container["name"]] = [int(item) for item in items] if good else [NO_CARD]
    return found
