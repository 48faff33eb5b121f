# SPDX-License-Identifier: Apache-2.0
"""Plays the device plugins that grew out of 4paradigm's vGPU on any number of nodes.

Sources, of which only releases are played:
  Project-HAMi/HAMi@v2.5.3, v2.8.3, v2.9.0 and v2.10.0: pkg/util/util.go GetPendingPod,
    pkg/device-plugin/nvidiadevice/nvinternal/plugin/server.go Allocate, util.go
  4paradigm/k8s-vgpu-scheduler@da7d4ed: pkg/util/util.go, pkg/device-plugin/nvidiadevice/nvinternal/plugin/server.go
  Project-HAMi/volcano-vgpu-device-plugin@v1.9.0, v1.9.4, v1.11.0: pkg/plugin/vgpu/util/util.go GetPendingPod, getOldestPod
  Project-HAMi/volcano-vgpu-device-plugin@v1.12.0 (the same at 4fb76ba): pkg/util/util.go, pkg/plugin/server.go

kubelet calls Allocate once per container with a number of device ids and no word about the pod. The
plugins find "the" pod by what the scheduler left on the node and on the pods, hand out what the first
unserved container of that pod was promised, and erase the promise. 4paradigm's and Volcano's look at the
pods of the whole cluster, in every phase, bound or not.

The upper half of the file is that guess, without any I/O.
"""

import dataclasses
import json
import re

from feed import OUTAGES
from hami_ids import Ids
from hami_mig import A100, ALLOCATIONS, Places, Refused, Templates, Unmade, card_of
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
    encoding: str  # of the register: 7, 9, json, volcano, volcano-5
    lock: str = ""  # key on the node that names the pod to serve; "": not read
    also_served: bool = False  # without a lock, a served pod that still starts is taken again
    cluster: bool = False  # looks at all pods, in every phase and on every node, bound or not
    reads_phase: bool = True  # only pods with a bind-time and the bind-phase "allocating"
    by_time: bool = False  # the pod of the lowest time, which is set to the highest when it is served
    begins_anywhere: bool = False  # the lowest is sought from the first pod of the list on, whatever it is
    takes_early: bool = False  # the time is set as soon as the pod is picked
    counts: bool = False  # the pod's promised cards in total must be what kubelet asks for
    silent: bool = False  # an answer that cannot be made leaves the pod's annotations as they are
    ends_each: bool = True  # ';' after every container, else between two
    glues: bool = False  # writes the promise back without what is between containers
    compacts: bool = False  # reads the promise without the containers that have nothing
    app_index: bool = False  # a promise's position is taken for one among spec.containers
    strict: bool = False  # an amount that is no number is an error; else it is 0
    ill: bool = False  # registers every card as unhealthy
    scales: bool = True  # registers memory times deviceMemoryScaling
    any_control: bool = False  # CUDA_DISABLE_CONTROL switches the hook off whatever its value
    places: bool = False  # MIG instances are named by an annotation of their own
    reports: bool = False  # says on the node every 30 s that it is there, asked or not
    mig_group: str = ""  # what MIG templates are called, with a number; "": by number

    def key(self, name):
        return f"{self.prefix}/{name}"


def _hami(name, encoding, **more):
    return Behaviour(
        name,
        "hami.io",
        "nvidia.com/gpu",
        "hami.io/vgpu-devices-to-allocate",
        "hami.io/node-nvidia-register",
        encoding,
        lock="hami.io/mutex.lock",
        **more,
    )


def _volcano(name, encoding="volcano", **more):
    return Behaviour(
        name,
        "volcano.sh",
        "volcano.sh/vgpu-number",
        "volcano.sh/devices-to-allocate",
        "volcano.sh/node-vgpu-register",
        encoding,
        cluster=True,
        ends_each=False,
        app_index=True,
        scales=False,
        any_control=True,
        mig_group="group",
        **more,
    )


BEHAVIOURS = {
    behaviour.name: behaviour
    for behaviour in (
        _hami("hami-v2.5", "9", compacts=True, reports=True),
        _hami("hami-v2.8", "json", compacts=True),
        _hami("hami-v2.9", "json", also_served=True),
        _hami("hami-v2.10", "json", also_served=True, strict=True, places=True),
        Behaviour(
            "4paradigm-da7d4ed",
            "4pd.io",
            "nvidia.com/gpu",
            "hami.sh/vgpu-devices-to-allocate",
            "4pd.io/node-nvidia-register",
            "7",
            cluster=True,
            silent=True,
            glues=True,
            app_index=True,
            any_control=True,
        ),
        _volcano("volcano-v1.9.0", "volcano-5", ill=True),
        _volcano("volcano-v1.9.4", "volcano-5", ill=True, reads_phase=False, by_time=True,
                 begins_anywhere=True, takes_early=True),
        _volcano("volcano-v1.11.0", reads_phase=False, by_time=True, begins_anywhere=True),
        _volcano("volcano-v1.12.0", reads_phase=False, by_time=True, counts=True, silent=True),
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


def register_text(behaviour, cards, scaling=1, factor=1):
    """The node's annotation. Order of the JSON form is Go's map order: any.

    `scaling`: deviceMemoryScaling, which Volcano's plugin parses and does not use. `factor`: its
    gpuMemoryFactor, by which it divides; HAMi's has the scheduler multiply what pods ask for instead.
    """
    cards = [
        dataclasses.replace(
            card,
            memory=_registered(behaviour, card, scaling, factor),
            health=card.health and not behaviour.ill,
        )
        for card in cards
    ]
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
        if behaviour.encoding.startswith("volcano"):
            fields = [card.uuid, card.count, card.memory, card.kind, health]
            fields += [card.mode] * (behaviour.encoding == "volcano")
        else:
            fields = [card.uuid, card.count, card.memory, card.core, card.kind, card.numa, health]
            if behaviour.encoding == "9":
                fields += [index, card.mode]
        text += ",".join(str(field) for field in fields) + ":"
    return text


def _registered(behaviour, card, scaling, factor):
    if behaviour.mig_group:
        return card.memory // factor
    real = card.mode == "mig" and behaviour.encoding == "json"
    return card.memory if real or not behaviour.scales else int(card.memory * scaling)


HANDSHAKE = "hami.io/node-handshake"


def handshake_text(behaviour, moment):
    """The node's annotation as the plugin writes it, Go's form of a time; None: it writes none, and none reads it."""
    if not behaviour.reports:
        return None
    zone = moment.strftime("%z %Z")
    return f"Reported {moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond:06d}123 {zone} m=+30.000000001"


def _amount(text, strict):
    if re.fullmatch("[+-]?[0-9]+", text):
        return int(text)
    if strict:
        raise Refused("pod annotation format error")
    return 0


def read_promise(text, behaviour=None):
    """[[Device]] by position; a piece without a comma is nothing."""
    containers = []
    for segment in text.split(";"):
        devices = []
        for piece in segment.split(":"):
            if "," in piece:
                fields = piece.split(",")
                if len(fields) < 4:
                    raise Refused("pod annotation format error")
                strict = behaviour is None or behaviour.strict
                devices.append(Device(fields[0], fields[1], *(_amount(f, strict) for f in fields[2:4])))
        if devices or not (behaviour and behaviour.compacts):
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
    value = int(text) if re.fullmatch("[0-9]+", text) else int(FOREVER)
    return min(value, int(FOREVER))


def is_candidate(behaviour, pod, node, amount):
    annotations = _annotations(pod)
    if annotations.get(behaviour.key("vgpu-node")) != node:
        return False
    if not behaviour.cluster:
        if pod["spec"].get("nodeName") != node or pod["status"].get("phase") != "Pending":
            return False
    if behaviour.counts:
        promised = sum(map(len, read_promise(annotations.get(behaviour.promise, ""), behaviour)))
        return promised == amount
    if not behaviour.reads_phase:
        return True
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
    """The pod that an Allocate call for `amount` devices is taken to be for; `pods` as they are listed,
    by namespace and name. A pod that the lock names is not looked at: neither its phase, nor its node,
    nor its UID."""
    named = locked_pod(lock) if behaviour.lock else None
    if named is not None:
        for pod in pods:
            if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == named:
                return pod
        raise Refused("the pod of the lock is not there")
    candidates = [pod for pod in pods if is_candidate(behaviour, pod, node, amount)]
    if behaviour.begins_anywhere:
        candidates = pods[:1] + candidates
    elif behaviour.by_time:
        candidates = candidates[-1:] + candidates
    if not candidates:
        raise Refused(f"no binding pod found on node {node}")
    if behaviour.by_time:
        return min(candidates, key=lambda pod: _time(pod, behaviour))
    return candidates[0]


def serve(behaviour, pod, amount):
    """(position of the next container, its devices, the promise that is left)."""
    containers = read_promise(_annotations(pod).get(behaviour.promise, ""), behaviour)
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


def is_hooked(behaviour, container):
    """Whether the container runs with the library that holds it to its limits."""
    for variable in container.get("env", []):
        if variable["name"] == "CUDA_DISABLE_CONTROL":
            return not behaviour.any_control and variable.get("value", "") != "true"
    return True


def is_served(behaviour, left):
    """Whether nothing is promised any more: the plugins look for a word."""
    return ("GPU" if behaviour.mig_group else "NVIDIA") not in left


class HamiKubelet(Kubelet):
    """A node with one of these plugins. `sizes` are the MiB of its cards, all in MIG mode or none;
    `mig` "ordered": as hami_mig.Templates has it. `preferred`: HAMi's plugin since v2.9 with
    enablegetpreferredallocation, which hands out the cards of kubelet's ids: hami_ids."""

    def __init__(self, fleet, node, sizes, seed, behaviour, mig=False, preferred=False):
        super().__init__(fleet, node, sizes, seed)
        self.behaviour = BEHAVIOURS[behaviour]
        self.resource = self.behaviour.resource
        self.mig = self._cutter(mig) if mig else None
        self.index = {uuid_of(node, index): index for index in range(len(sizes))}
        self.ids = Ids({uuid: 10 for uuid in self.index}, self.random) if preferred else None

    def _cutter(self, mig):
        if self.behaviour.places:
            return Places()
        return Templates(group=self.behaviour.mig_group, ordered=mig == "ordered")

    def _admit(self, pod):
        if not self._take_up(pod) or self._turn_away(pod):
            return
        starts, trouble = [], ""
        for init, container in containers_of(pod):
            amount = limit(container, self.behaviour.resource)
            if amount == 0 or trouble:
                continue
            try:
                devices = self._handed_out(pod, init, self._allocate(amount))
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
        elif not self._turn_away_late(pod):
            self.fleet.later(0, self._report_admitted, pod, starts)

    def _handed_out(self, pod, init, devices):
        """With what the container runs: limits by position, on the cards of kubelet's ids."""
        if not self.ids:
            return devices
        with self._lock:
            cards = self.ids.take(pod["metadata"]["uid"], [device.uuid for device in devices], init)
        return [dataclasses.replace(device, uuid=card) for device, card in zip(devices, cards)]

    def _allocate(self, amount):
        behaviour = self.behaviour
        lock = None
        if behaviour.lock:
            node = self.fleet.client.get("Node", self.node)
            lock = (node["metadata"].get("annotations") or {}).get(behaviour.lock)
        pod = choose(behaviour, self.node, self._pods(lock), lock, amount)
        if behaviour.takes_early:
            self._annotate(pod, {behaviour.key("vgpu-time"): FOREVER})
        try:
            position, devices, left = serve(behaviour, pod, amount)
            if self.mig:
                self._cut(pod, position, devices)
            self._annotate(pod, {behaviour.promise: left})
        except Unmade:
            if not behaviour.silent:
                self._conclude(pod, "failed")
            raise
        except (Refused, *OUTAGES):
            self._conclude(pod, "failed")
            raise
        if is_served(behaviour, left):
            self._conclude(pod, "success")
        return devices

    def _cut(self, pod, position, devices):
        try:
            if not self.behaviour.places:
                self.mig.take(pod["metadata"]["uid"], devices)
                return
            annotations = _annotations(pod)
            entries = json.loads(annotations.get(ALLOCATIONS, "[]"))
            for entry in self.mig.entries_of(annotations, position, devices):
                entries[entries.index(entry)] = self.mig.ensure(entry)
        except Refused as error:
            raise Unmade(*error.args) from error
        self._annotate(pod, {ALLOCATIONS: json.dumps(entries)})

    def observe(self, kind, pod):
        super().observe(kind, pod)
        over = kind == "DELETED" or pod["status"].get("phase") in TERMINAL
        if over and self.ids:
            with self._lock:
                self.ids.end(pod["metadata"]["uid"])
        if self.mig and over and self.behaviour.places:
            self.fleet.later(self.random.uniform(0, RECONCILE_S), self._reconcile)
        elif self.mig and over:
            self.mig.end(pod["metadata"]["uid"])

    def _reconcile(self):
        """What is left because a round ended early is tried again in the next."""
        living = [
            pod
            for pod in self._pods(None)
            if pod["spec"].get("nodeName") == self.node
            and pod["status"].get("phase") not in TERMINAL
        ]
        active = [pod for pod in living if "deletionTimestamp" not in pod["metadata"]]
        ending = [pod for pod in living if "deletionTimestamp" in pod["metadata"]]
        with self._lock:
            said = [_annotations(pod).get(ALLOCATIONS, "[]") for pod in active]
            in_use = [_annotations(pod).get(ALLOCATIONS, "[]") for pod in ending]
            whole = self.mig.reconcile(said, in_use, self.random)
        if not whole:
            self.fleet.later(RECONCILE_S, self._reconcile)

    def _pods(self, lock):
        client = self.fleet.client
        if self.behaviour.cluster:
            return client.items("Pod", None)
        named = locked_pod(lock)
        if named:
            try:
                return [client.get("Pod", named[1], named[0])]
            except ApiError as error:
                if error.code != 404:
                    raise
                return []
        return client.items("Pod", None, fieldSelector=f"spec.nodeName={self.node}")

    def _annotate(self, pod, annotations):
        meta = pod["metadata"]
        patch = {"metadata": {"annotations": annotations}}
        self.fleet.client.patch(
            "Pod", meta["name"], patch, meta["namespace"], None, STRATEGIC_PATCH
        )

    def _conclude(self, pod, phase):
        """Errors are only logged."""
        behaviour = self.behaviour
        marks = {behaviour.key("bind-phase"): phase}
        if behaviour.by_time:
            marks[behaviour.key("vgpu-time")] = FOREVER
        try:
            self._annotate(pod, marks)
            if behaviour.lock:
                self._release(pod)
        except OUTAGES:
            pass

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
