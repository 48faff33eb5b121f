# SPDX-License-Identifier: Apache-2.0
"""Plays the device plugins that grew out of 4paradigm's vGPU on any number of nodes.

Source: Project-HAMi/HAMi at v2.8.3, v2.9.0 and v2.10.0 (GetPendingPod, Allocate), 4paradigm/
k8s-vgpu-scheduler at da7d4ed, Project-HAMi/volcano-vgpu-device-plugin at 0bd97d0 (pkg/plugin/vgpu)
and 0798272 (pkg/util). kubelet calls Allocate once per container with a number of device ids and no
word about the pod. The plugins find "the" pod by what the scheduler left on the node and on the
pods, hand out what the first unserved container of that pod was promised, and blank the promise.

The upper half of the file is that guess, without any I/O.
"""

import dataclasses
import json

from feed import OUTAGES
from hami_mig import A100, ALLOCATIONS, Places, Refused, Templates, card_of
from hardware import NO_CARD
from kubeapi import MERGE_PATCH, STRATEGIC_PATCH, ApiError
from kubelet import TERMINAL, Kubelet, containers_of, limit

FOREVER = str(2**64 - 1)
RECONCILE_S = 5  # how often v2.10 takes down instances of pods that have ended


@dataclasses.dataclass(frozen=True)
class Behaviour:
    name: str
    prefix: str  # of the keys of pods: hami.io
    resource: str  # what kubelet counts
    promise: str  # key: what each container is still to get
    register: str  # key on the node
    encoding: str  # of the register: 7, 9, json, volcano
    lock: str = ""  # key on the node that names the pod to serve; "": not read
    also_served: bool = False  # without a lock, a served pod that still starts is taken again
    any_phase: bool = False  # pods that have ended are looked at too
    ends_each: bool = True  # ';' after every container, else between two
    glues: bool = False  # writes the promise back without what is between containers
    counts: bool = False  # the pod's promised cards in total must be what kubelet asks for
    by_time: bool = False  # the pod of the lowest time, which goes up when it is taken
    app_index: bool = False  # a promise's position is taken for one among spec.containers
    places: bool = False  # MIG instances are named by an annotation of their own
    reports: bool = False  # says on the node every 30 s that it is there, asked or not
    mig_group: str = ""  # what MIG templates are called, with a number; "": by number

    def key(self, name):
        return f"{self.prefix}/{name}"


def _hami(name, encoding, also_served, **more):
    return Behaviour(
        name,
        "hami.io",
        "nvidia.com/gpu",
        "hami.io/vgpu-devices-to-allocate",
        "hami.io/node-nvidia-register",
        encoding,
        lock="hami.io/mutex.lock",
        also_served=also_served,
        **more,
    )


def _volcano(name, **more):
    return Behaviour(
        name,
        "volcano.sh",
        "volcano.sh/vgpu-number",
        "volcano.sh/devices-to-allocate",
        "volcano.sh/node-vgpu-register",
        "volcano",
        ends_each=False,
        app_index=True,
        mig_group="group",
        **more,
    )


BEHAVIOURS = {
    behaviour.name: behaviour
    for behaviour in (
        _hami("hami-v2.5", "9", also_served=False, reports=True),
        _hami("hami-v2.8", "json", also_served=False),
        _hami("hami-v2.9", "json", also_served=True),
        _hami("hami-v2.10", "json", also_served=True, places=True),
        Behaviour(
            "4paradigm-da7d4ed",
            "4pd.io",
            "nvidia.com/gpu",
            "hami.sh/vgpu-devices-to-allocate",
            "4pd.io/node-nvidia-register",
            "7",
            any_phase=True,
            glues=True,
            app_index=True,
        ),
        _volcano("volcano-0bd97d0", by_time=True),
        _volcano("volcano-0798272", by_time=True, any_phase=True, counts=True),
    )
}


@dataclasses.dataclass(frozen=True)
class Device:
    uuid: str
    kind: str
    memory: int
    cores: int


@dataclasses.dataclass(frozen=True)
class Card:
    """A card as the plugin registers it."""

    uuid: str
    memory: int  # MiB
    count: int = 10
    core: int = 100
    kind: str = "NVIDIA-Tesla T4"
    numa: int = 0
    health: bool = True
    mode: str = "hami-core"


def uuid_of(node, index):
    return f"GPU-{node}-{index}"


def mig_profiles(card):
    return [profile.registered() for profile in A100] if card.mode == "mig" else []


def register_text(behaviour, cards):
    """The node's annotation. Order of the JSON form is Go's map order: any."""
    if behaviour.encoding == "json":
        return json.dumps(
            [
                {
                    key: value
                    for key, value in (
                        ("id", card.uuid),
                        ("index", index),
                        ("count", card.count),
                        ("devmem", card.memory),
                        ("devcore", card.core),
                        ("type", card.kind),
                        ("numa", card.numa),
                        ("mode", card.mode),
                        ("health", card.health),
                        ("migProfiles", behaviour.places and mig_profiles(card)),
                    )
                    if value
                }
                for index, card in reversed(list(enumerate(cards)))
            ]
        )
    text = ""
    for index, card in enumerate(cards):
        health = "true" if card.health else "false"
        if behaviour.encoding == "volcano":
            fields = [card.uuid, card.count, card.memory, card.kind, health, card.mode]
        else:
            fields = [card.uuid, card.count, card.memory, card.core, card.kind, card.numa, health]
            if behaviour.encoding == "9":
                fields += [index, card.mode]
        text += ",".join(str(field) for field in fields) + ":"
    return text


HANDSHAKE = "hami.io/node-handshake"


def handshake_text(behaviour, moment):
    """The node's annotation as the plugin writes it, Go's form of a time; None: it writes none, and none reads it."""
    if not behaviour.reports:
        return None
    zone = moment.strftime("%z %Z")
    return f"Reported {moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond:06d}123 {zone} m=+30.000000001"


def read_promise(text):
    """[[Device]] by position; a piece without a comma is nothing."""
    containers = []
    for segment in text.split(";"):
        devices = []
        for piece in segment.split(":"):
            if "," in piece:
                fields = piece.split(",")
                if len(fields) < 4:
                    raise Refused("pod annotation format error")
                devices.append(Device(fields[0], fields[1], int(fields[2]), int(fields[3])))
        containers.append(devices)
    return containers


def write_promise(behaviour, containers):
    pieces = [
        "".join(f"{d.uuid},{d.kind},{d.memory},{d.cores}:" for d in devices)
        for devices in containers
    ]
    if behaviour.glues:
        return "".join(pieces) + ";"
    if behaviour.ends_each:
        return "".join(piece + ";" for piece in pieces)
    return ";".join(pieces)


def _annotations(pod):
    return pod["metadata"].get("annotations") or {}


def _time(pod, behaviour):
    text = _annotations(pod).get(behaviour.key("vgpu-time"), "")
    return int(text) if text.isdigit() else int(FOREVER)


def is_candidate(behaviour, pod, node, amount):
    annotations = _annotations(pod)
    if annotations.get(behaviour.key("vgpu-node")) != node:
        return False
    if behaviour.counts:
        promised = sum(len(d) for d in read_promise(annotations.get(behaviour.promise, "")))
        return promised == amount
    if not behaviour.any_phase and pod["status"].get("phase") != "Pending":
        return False
    phases = ["allocating"] + ["success"] * behaviour.also_served
    return (
        behaviour.key("bind-time") in annotations
        and annotations.get(behaviour.key("bind-phase")) in phases
    )


def locked_pod(lock):
    """(namespace, name) of whom the lock names; None if there is no lock, or an old one."""
    parts = (lock or "").split(",")
    if len(parts) == 1:
        return None
    if len(parts) != 3:
        raise Refused("malformed lock annotation")
    return parts[1], parts[2]


def choose(behaviour, node, pods, lock, amount):
    """The pod that an Allocate call for `amount` devices is taken to be for."""
    named = locked_pod(lock) if behaviour.lock else None
    if named is not None:
        for pod in pods:
            if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == named:
                return pod
        raise Refused("the pod of the lock is not there")
    candidates = [pod for pod in pods if is_candidate(behaviour, pod, node, amount)]
    if not candidates:
        raise Refused(f"no binding pod found on node {node}")
    if behaviour.by_time:
        return min(candidates, key=lambda pod: _time(pod, behaviour))
    return candidates[0]


def serve(behaviour, pod, amount):
    """(position of the next container, its devices, the promise that is left)."""
    containers = read_promise(_annotations(pod).get(behaviour.promise, ""))
    for position, devices in enumerate(containers):
        if devices:
            break
    else:
        raise Refused("device request not found")
    if behaviour.app_index and position >= len(pod["spec"]["containers"]):
        raise Refused("index out of range")
    if len(devices) != amount:
        raise Refused("device number not matched")
    return position, devices, write_promise(
        behaviour, containers[:position] + [[]] + containers[position + 1 :]
    )


def is_served(behaviour, left):
    """Whether nothing is promised any more: the plugins look for a word."""
    return ("GPU" if behaviour.by_time else "NVIDIA") not in left


class HamiKubelet(Kubelet):
    """A node with one of these plugins. `sizes` are the MiB of its cards, all in MIG mode or none;
    `mig` "ordered": as hami_mig.Templates has it."""

    def __init__(self, fleet, node, sizes, seed, behaviour, mig=False):
        super().__init__(fleet, node, sizes, seed)
        self.behaviour = BEHAVIOURS[behaviour]
        self.mig = self._cutter(mig) if mig else None
        self.index = {uuid_of(node, index): index for index in range(len(sizes))}

    def _cutter(self, mig):
        if self.behaviour.places:
            return Places()
        return Templates(group=self.behaviour.mig_group, ordered=mig == "ordered")

    def _admit(self, pod):
        if not self._take_up(pod):
            return
        starts, trouble = [], ""
        for init, container in containers_of(pod):
            amount = limit(container, self.behaviour.resource)
            if amount == 0 or trouble:
                continue
            try:
                devices = self._allocate(amount)
            except (Refused, *OUTAGES) as error:
                trouble, devices = repr(error), [Device("", "", 0, 0)]
            starts += [
                self._start(pod, container["name"], init, device.memory,
                            self.index.get(card_of(device.uuid), NO_CARD), trouble)
                for device in devices
            ]
        self.fleet.hardware.start(starts)
        if trouble:
            self.finish(pod, "Failed")  # UnexpectedAdmissionError
        else:
            self.fleet.later(0, self._report_admitted, pod, starts)

    def _allocate(self, amount):
        behaviour = self.behaviour
        lock = None
        if behaviour.lock:
            node = self.fleet.client.get("Node", self.node)
            lock = (node["metadata"].get("annotations") or {}).get(behaviour.lock)
        pod = choose(behaviour, self.node, self._pods(), lock, amount)
        try:
            position, devices, left = serve(behaviour, pod, amount)
            if self.mig:
                self._cut(pod, position, devices)
            self._annotate(pod, {behaviour.promise: left})
        except Refused:
            self._conclude(pod, "failed")
            raise
        if is_served(behaviour, left):
            self._conclude(pod, "success")
        return devices

    def _cut(self, pod, position, devices):
        if not self.behaviour.places:
            self.mig.take(pod["metadata"]["uid"], devices)
            return
        annotations = _annotations(pod)
        entries = json.loads(annotations.get(ALLOCATIONS, "[]"))
        for entry in self.mig.entries_of(annotations, position, devices):
            entries[entries.index(entry)] = self.mig.ensure(entry)
        self._annotate(pod, {ALLOCATIONS: json.dumps(entries)})

    def observe(self, kind, pod):
        super().observe(kind, pod)
        over = kind == "DELETED" or pod["status"].get("phase") in TERMINAL
        if self.mig and over and self.behaviour.places:
            self.fleet.later(self.random.uniform(0, RECONCILE_S), self._reconcile)
        elif self.mig and over:
            self.mig.end(pod["metadata"]["uid"])

    def _reconcile(self):
        living = [
            pod
            for pod in self._pods()
            if pod["spec"].get("nodeName") == self.node
            and pod["status"].get("phase") not in TERMINAL
        ]
        with self._lock:
            self.mig.reconcile(
                entry
                for pod in living
                for entry in json.loads(_annotations(pod).get(ALLOCATIONS, "[]"))
            )

    def _pods(self):
        if self.behaviour.any_phase or self.behaviour.lock:
            return self.fleet.client.items("Pod", None)
        return self.fleet.client.items("Pod", None, fieldSelector=f"spec.nodeName={self.node}")

    def _annotate(self, pod, annotations):
        meta = pod["metadata"]
        patch = {"metadata": {"annotations": annotations}}
        self.fleet.client.patch(
            "Pod", meta["name"], patch, meta["namespace"], None, STRATEGIC_PATCH
        )

    def _conclude(self, pod, phase):
        behaviour = self.behaviour
        marks = {behaviour.key("bind-phase"): phase}
        if behaviour.by_time:
            marks[behaviour.key("vgpu-time")] = FOREVER
        self._annotate(pod, marks)
        if behaviour.lock:
            self._release(pod)

    def _release(self, pod):
        """Only a lock of this pod, guarded against whoever changed the node in between."""
        meta = pod["metadata"]
        for _ in range(5):
            node = self.fleet.client.get("Node", self.node)["metadata"]
            lock = (node.get("annotations") or {}).get(self.behaviour.lock, "")
            if not lock.endswith(f",{meta['namespace']},{meta['name']}"):
                return
            patch = {
                "metadata": {
                    "annotations": {self.behaviour.lock: None},
                    "resourceVersion": node["resourceVersion"],
                }
            }
            try:
                self.fleet.client.patch("Node", self.node, patch, None, None, MERGE_PATCH)
                return
            except ApiError as error:
                if error.code != 409:
                    raise
