# SPDX-License-Identifier: Apache-2.0
"""Cards in MIG mode as HAMi's plugin of each version cuts them. No I/O.

Source: Project-HAMi/HAMi at v2.9.0 (GenerateMigTemplate, GetMigUUIDFromIndex, knownMigGeometries of
the chart) and v2.10.0 (migmgr.go, mig_allocations.go). What stands for the hardware is stricter than
NVML: whatever a real card would do with an instance that may not be, here it is an error.
"""

import dataclasses
import json

ALLOCATIONS = "hami.io/vgpu-mig-allocations"


class Refused(Exception):
    """The plugin's error: kubelet fails the pod."""


class Unmade(Refused):
    """The pod was found, but what it was promised cannot be made."""


@dataclasses.dataclass(frozen=True)
class Profile:
    name: str
    memory: int  # MiB
    core: int  # percent
    starts: tuple
    size: int

    def registered(self):
        return {
            "name": self.name,
            "memoryMB": self.memory,
            "core": self.core,
            "sliceCount": int(self.name[0]),
            "placements": [{"start": start, "size": self.size} for start in self.starts],
        }


A100 = (
    Profile("1g.5gb", 4864, 14, tuple(range(7)), 1),
    Profile("2g.10gb", 9856, 28, (0, 2, 4), 2),
    Profile("3g.20gb", 19968, 42, (0, 4), 4),
    Profile("7g.40gb", 40192, 100, (0,), 8),
)
A100_KIND = "NVIDIA A100-SXM4-40GB"

# Instances of (name, MiB, count) per template, in the chart's order.
A100_TEMPLATES = (
    (("1g.5gb", 5120, 7),),
    (("2g.10gb", 10240, 3), ("1g.5gb", 5120, 1)),
    (("3g.20gb", 20480, 2),),
    (("7g.40gb", 40960, 1),),
)


def card_of(uuid):
    """The card's own UUID, without the instance that a device before v2.10 names behind it."""
    return uuid.partition("[")[0]


RUNTIME = {"migUUID", "gpuInstanceID", "computeInstanceID"}


def key_of(entry):
    place = entry["placement"]
    return entry["gpuUUID"], entry["profile"], place["start"], place["size"]


class Places:
    """v2.10: exactly the instance that the scheduler has reserved is made, or the pod fails.

    Instances that the plugin does not know of, because it has not adopted them at its start, are in the
    hardware all the same, and never taken down."""

    def __init__(self, profiles=A100):
        self.profiles = {profile.name: profile for profile in profiles}
        self.live = {}  # (card, profile, start, size): runtime identity
        self.known = set()  # of these, those that the plugin takes for its own
        self.made = 0

    def entries_of(self, annotations, position, devices):
        """What the devices of the container at this position of the promise are to be."""
        try:
            entries = json.loads(annotations.get(ALLOCATIONS, "[]"))
        except ValueError as error:
            raise Refused(f"{ALLOCATIONS}: {error}") from error
        found = []
        for index, device in enumerate(devices):
            mine = [
                entry
                for entry in entries
                if (entry["containerIndex"], entry["deviceIndex"]) == (position, index)
            ]
            if len(mine) != 1 or mine[0]["gpuUUID"] != device.uuid:
                raise Refused(f"device {index} of container {position} has no reservation")
            found.append(mine[0])
        return found

    def ensure(self, entry):
        """The entry with what the hardware says of the instance; one that it has made is taken again."""
        key = key_of(entry)
        if key not in self.known:
            self._check(*key)
            self.made += 1
            self.known.add(key)
            self.live[key] = {
                "migUUID": f"MIG-{self.made}",
                "gpuInstanceID": self.made,
                "computeInstanceID": 0,
            }
        return {**entry, **self.live[key]}

    def _check(self, card, name, start, size):
        profile = self.profiles.get(name)
        if profile is None or start not in profile.starts or size != profile.size:
            raise Refused(f"invalid placement {start}+{size} for profile {name}")
        for other, their_name, their_start, their_size in self.live:
            if other == card and start < their_start + their_size and their_start < start + size:
                raise Refused(f"{name} at {start}: {their_name} is at {their_start}")

    def reconcile(self, active, in_use, rng):
        """Every 5 s: what no active pod has reserved is taken down, in any order. `active`: the annotations
        of pods that have not ended and are not being deleted; one that cannot be read ends the round, and
        so does an instance in which a pod that is being deleted still computes (`in_use`): NVML refuses.
        Whether the round came to its end."""
        try:
            kept = {key_of(entry) for text in active for entry in json.loads(text)}
        except (ValueError, KeyError, TypeError):
            return False
        busy = {key_of(entry) for text in in_use for entry in json.loads(text)}
        gone = sorted(self.known - kept)
        rng.shuffle(gone)
        for key in gone:
            if key in busy:
                return False
            self.known.discard(key)
            del self.live[key]
        return True

    def restart(self, active, in_use):
        """The plugin starts: cards without a pod that computes are wiped; then active pods' instances are
        adopted, one pod after another, up to the first whose entries lack what the plugin adds to them."""
        busy = {entry["gpuUUID"] for text in in_use for entry in json.loads(text)}
        self.live = {key: value for key, value in self.live.items() if key[0] in busy}
        self.known = set()
        for text in active:
            entries = json.loads(text)
            if not all(RUNTIME <= entry.keys() for entry in entries):
                return
            self.known.update(key_of(entry) for entry in entries if key_of(entry) in self.live)


class Templates:
    """Before v2.10, and Volcano's: the device's UUID ends in template and instance, and a card that
    has another template is cut anew as a whole. Volcano names its templates, group1 and so on.

    The instance is a number in NVML's order. `ordered` says that it counts the larger ones first, as
    drivers were seen to do and none promises; without it instances of different sizes are an error."""

    def __init__(self, templates=A100_TEMPLATES, group="", ordered=False):
        self.templates = templates
        self.group = group
        self.ordered = ordered
        self.current = {}  # card: template
        self.held = {}  # pod: {(card, template, instance)}

    def take(self, pod, devices):
        for device in devices:
            card, bracket, rest = device.uuid.partition("[")
            if not bracket:
                raise Refused("a card in MIG mode without an instance")
            name, instance = rest.rstrip("]").split("-")[:2]
            self._take(pod, card, self._find(name), int(instance), device.memory)

    def _find(self, name):
        names = [
            f"{self.group}{number + 1}" if self.group else str(number)
            for number in range(len(self.templates))
        ]
        if name not in names:
            raise Refused("invalid template index")
        return names.index(name)

    def _take(self, pod, card, template, instance, memory):
        there = sorted(
            (size for _, size, count in self.templates[template] for _ in range(count)),
            reverse=True,
        )
        if len(set(there)) != 1 and not self.ordered:
            raise Refused("NVML's order of instances of different sizes is anybody's guess")
        if instance >= len(there) or there[instance] != memory:
            raise Refused(f"template {template} has no instance {instance} of {memory}")
        others = [held for all_held in self.held.values() for held in all_held if held[0] == card]
        if self.current.get(card) != template and others:
            raise Refused("cut anew under a running pod")
        if (card, template, instance) in others:
            raise Refused("two pods in one instance")
        self.current[card] = template
        self.held.setdefault(pod, set()).add((card, template, instance))

    def end(self, pod):
        self.held.pop(pod, None)
