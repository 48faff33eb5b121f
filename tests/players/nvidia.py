# SPDX-License-Identifier: Apache-2.0
"""Plays NVIDIA's own device plugin, and the part of kubelet that chooses devices for it.

Source: NVIDIA/k8s-device-plugin@v0.20.0 (and v0.19 where `obeys_mps` is said): internal/rm/rm.go,
internal/rm/device_map.go, api/config/v1/config.go, internal/lm/mig-strategy.go, cmd/gpu-feature-discovery/main.go,
cmd/mps-control-daemon/mps/daemon.go, device.go; kubernetes@v1.36.3: pkg/kubelet/cm/devicemanager/manager.go.
kubelet keeps a set of free device ids per resource, asks the plugin which of them
it would prefer, and calls Allocate with the ids that it took. Neither knows of a scheduler.

The upper half of the file is that, without any I/O. A physical device is a card, a MIG instance or
a vGPU: "card" in what follows; replicas of one have ids that end with "::" and a number.
"""

import dataclasses
import random

from hardware import NO_CARD
from kubelet import Kubelet, limit

GPU = "nvidia.com/gpu"
SHARED = ".shared"
REPLICA = "::"
MPS = "mps"
TIME_SLICING = "time-slicing"


class AdmissionError(Exception):
    """kubelet fails the pod with UnexpectedAdmissionError; it is never started again."""


@dataclasses.dataclass(frozen=True)
class Sharing:
    """sharing.timeSlicing or sharing.mps of the plugin's configuration, for one resource."""

    strategy: str = TIME_SLICING
    replicas: int = 1
    rename: bool = False
    fail_requests_greater_than_one: bool = False
    policy: str = "distributed"
    obeys_mps: bool = True  # v0.20 on; before, MPS takes one device for a container whatever is said

    @property
    def strict(self):
        return self.fail_requests_greater_than_one or (self.strategy == MPS and not self.obeys_mps)

    @property
    def shares(self):
        return self.replicas > 1


def mps_clients(compute_capability):
    """How many replicas of a card the MPS daemon starts with; with more no device appears at all."""
    return 48 if compute_capability >= 7.5 else 16


def mps_limit(memory, replicas):
    """MiB that the daemon gives each client of a card."""
    return memory // replicas


class Plugin:
    """The plugin for one resource of a node: `cards` are the ids of its physical devices. Replicas have
    the same ids whatever the strategy: kubelet sees no change from time-slicing to MPS."""

    def __init__(self, cards, resource=GPU, sharing=Sharing(), compute_capability=7.5):
        self.sharing = sharing
        if sharing.strategy == MPS and sharing.replicas > mps_clients(compute_capability):
            cards = []
        self.resource = resource + (SHARED if sharing.shares and sharing.rename else "")
        if sharing.shares:
            self.devices = [f"{card}{REPLICA}{n}" for card in cards for n in range(sharing.replicas)]
        else:
            self.devices = list(cards)

    @staticmethod
    def card_of(device):
        return device.split(REPLICA)[0]

    def prefer(self, available, size, rng):
        """What GetPreferredAllocation answers. Whole cards are picked by their links, which are
        not played: any set of them."""
        free = list(available)
        rng.shuffle(free)
        if not self.sharing.shares:
            return free[:size]
        chosen = []
        for _ in range(size):
            chosen.append(min(free, key=lambda device: self._rank(device, free, chosen)))
            free.remove(chosen[-1])
        return chosen

    def _rank(self, device, free, chosen):
        card = self.card_of(device)
        taken = self.sharing.replicas - sum(self.card_of(other) == card for other in free)
        here = sum(self.card_of(other) == card for other in chosen)
        return {
            "distributed": (taken, here),
            "packed": (-taken, here),
            "spread": (here, taken),
        }[self.sharing.policy]

    def allocate(self, devices):
        """Allocate for one container."""
        unknown = [device for device in devices if device not in self.devices]
        if unknown:
            raise AdmissionError(f"unknown device: {unknown[0]}")
        if self.sharing.shares and self.sharing.strict and len(devices) > 1:
            raise AdmissionError(
                f"maximum request size for shared resources is 1; found {len(devices)}"
            )
        return [self.card_of(device) for device in devices]


class DeviceManager:
    """kubelet's: which container has which devices. Survives a restart of the plugin, whose
    devices may have other names then."""

    def __init__(self, plugins, seed=1):
        self.random = random.Random(seed)
        self._held = {}
        self.register(plugins)

    def register(self, plugins):
        self.plugins = {plugin.resource: plugin for plugin in plugins}

    def capacity(self):
        return {resource: len(plugin.devices) for resource, plugin in self.plugins.items()}

    def release(self, uid):
        self._held.pop(uid, None)

    def admit(self, pod):
        """[(container, init, resource, [card])], or AdmissionError, which leaves the pod without
        anything."""
        uid = pod["metadata"]["uid"]
        self._held[uid] = {}
        given = []
        reusable = {}
        spec = pod["spec"]
        try:
            for init, containers in ((True, spec.get("initContainers", [])), (False, spec["containers"])):
                for container in containers:
                    for resource in sorted(container.get("resources", {}).get("limits", {})):
                        plugin = self.plugins.get(resource)
                        if not plugin:
                            continue
                        devices = self._take(uid, plugin, limit(container, resource), reusable)
                        plain = init and container.get("restartPolicy") != "Always"
                        if plain:
                            reusable.setdefault(resource, set()).update(devices)
                        cards = plugin.allocate(devices)
                        given.append((container["name"], plain, resource, cards))
        except AdmissionError:
            self.release(uid)
            raise
        return given

    def _take(self, uid, plugin, size, reusable):
        again = sorted(reusable.get(plugin.resource, ()))[:size]
        if reusable.get(plugin.resource):
            reusable[plugin.resource] -= set(again)
        held = {
            device
            for resources in self._held.values()
            for device in resources.get(plugin.resource, ())
        }
        free = [device for device in plugin.devices if device not in held]
        missing = size - len(again)
        if len(free) < missing:
            raise AdmissionError(
                f"requested number of devices unavailable for {plugin.resource}. "
                f"Requested: {missing}, Available: {len(free)}"
            )
        taken = again + (plugin.prefer(free, missing, self.random) if missing else [])
        self._held[uid].setdefault(plugin.resource, set()).update(taken)
        return taken


def labels(cards, sharing=Sharing(), product="Tesla-T4", memory=15360, resource=GPU, **more):
    """What GPU Feature Discovery says of `cards` devices of one resource, MiB each."""
    suffix = "-SHARED" if sharing.shares and not sharing.rename else ""
    said = {
        f"{resource}.product": product + suffix,
        f"{resource}.count": str(cards),
        f"{resource}.replicas": str(sharing.replicas),
        f"{resource}.memory": str(memory),
    }
    if resource == GPU:
        said["nvidia.com/gpu.sharing-strategy"] = sharing.strategy if sharing.shares else "none"
    return {**said, **{key.replace("_", "."): value for key, value in more.items()}}


def merged(groups, rng):
    """What GPU Feature Discovery says of a node with several models under one name: `groups` are labels() of
    each, of which the last that is merged wins, in the order of a map; it may change at each pass. It runs
    every 60 s, or once, and the plugin reports at once: labels may be older than what is allocatable."""
    order = list(groups)
    rng.shuffle(order)
    said = {}
    for group in order:
        said |= group
    return said


def mixed_count(whole, in_mig_mode):
    """nvidia.com/gpu.count with mig.strategy=mixed: cards in MIG mode are in it, though nvidia.com/gpu has
    none of them."""
    return whole + in_mig_mode


class NvidiaKubelet(Kubelet):
    """`sizes`: how many pods' devices each physical device stands for; the hardware counts those.
    `plugins` number their cards by position, all together."""

    def __init__(self, fleet, node, sizes, seed, plugins):
        super().__init__(fleet, node, sizes, seed)
        self.manager = DeviceManager(plugins, f"{seed}/{node}")
        self.refused = []

    def finish(self, pod, phase):
        with self._lock:
            self.manager.release(pod["metadata"]["uid"])
        super().finish(pod, phase)

    def _admit(self, pod):
        meta = pod["metadata"]
        with self._lock:
            if self._seen.get(meta["uid"]) != "new":
                return
            self._seen[meta["uid"]] = "admitted"
            try:
                given = self.manager.admit(pod)
            except AdmissionError as error:
                self.refused.append((meta["name"], str(error)))
                given = None
        if given is None:
            status = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
            self.fleet.later(0, self.report, pod, status)
            return
        starts = [
            self._start(pod, container, init, 1, int(card) if card.isdigit() else NO_CARD)
            for container, init, _, cards in given
            for card in cards
        ]
        self.fleet.hardware.start(starts)
        self.fleet.later(0, self._report_admitted, pod, starts)
