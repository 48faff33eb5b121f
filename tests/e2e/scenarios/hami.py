# SPDX-License-Identifier: Apache-2.0
"""HAMi's plugin, its ancestor's and Volcano's: cards by UUID, promised to each container."""

import datetime
import json

from hami import BEHAVIOURS, HANDSHAKE, Card, HamiKubelet, handshake_text, read_promise, register_text, uuid_of
from hami_mig import A100_KIND, ALLOCATIONS, card_of
from hardware import NO_CARD
from kubeapi import MERGE_PATCH, ApiError, node_object, pod_object, wait_for
from world import World

GPU, MEM, PERCENT, CORES = (
    f"nvidia.com/{what}" for what in ("gpu", "gpumem", "gpumem-percentage", "gpucores")
)
VGPU, VMEM, VCORES = (f"volcano.sh/vgpu-{what}" for what in ("number", "memory", "cores"))
LOCK = "hami.io/mutex.lock"
ALLOCATED = {
    "hami.io": "hami.io/vgpu-devices-allocated",
    "4pd.io": "4pd.io/vgpu-ids-new",
    "volcano.sh": "volcano.sh/vgpu-ids-new",
}


def start(world, *options):
    """Extender and scheduler as manifests/README.md has them for these plugins."""
    world.kustomize("overlays/hami")
    world.extender_start(*options)
    config = world.scheduler_config()
    config["extenders"][0]["managedResources"] += [
        {"name": name, "ignoredByScheduler": name not in (GPU, VGPU)}
        for name in (GPU, MEM, PERCENT, CORES, VGPU, VMEM, VCORES)
    ]
    world.scheduler_start(config)


def add_node(world, name, behaviour, cards, annotations=None, ordered=False):
    played = BEHAVIOURS[behaviour]
    mig = cards[0].mode == "mig" and ("ordered" if ordered else True)
    world.fleet.add(HamiKubelet, name, [card.memory for card in cards], behaviour, mig)
    slots = sum(card.count for card in cards)
    now = datetime.datetime.now(datetime.timezone.utc)
    said = {played.register: register_text(played, cards), **(annotations or {})}
    if played.reports:
        said.setdefault(HANDSHAKE, handshake_text(played, now))
    world.client.create(node_object(name, {played.resource: slots}, annotations=said))


def cards_of(name, sizes, **more):
    return [Card(uuid_of(name, index), size, **more) for index, size in enumerate(sizes)]


def object_of(name, *containers, init=(), annotations=None, node=None):
    def render(prefix, wishes):
        return [
            {
                "name": f"{prefix}{number}",
                "image": "example.com/none:1",
                "resources": {"limits": {key: str(value) for key, value in wish.items()}},
            }
            for number, wish in enumerate(wishes)
        ]

    spec = {"containers": render("c", containers)}
    if init:
        spec["initContainers"] = render("i", init)
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return pod_object(name, spec=spec, annotations=annotations or {})


def add_pod(world, name, *containers, **options):
    world.client.create(object_of(name, *containers, **options))


def one(memory, **more):
    return {GPU: 1, MEM: memory, **more}


def check(world, what):
    """What each container was handed is what its pod was promised, and nothing is too much."""
    tap, hardware = world.tap, world.fleet.hardware
    promised, wrong = {}, []
    for pod in world.client.items("Pod"):
        annotations = pod["metadata"].get("annotations", {})
        for key in ALLOCATED.values():
            if key in annotations:
                promised[pod["metadata"]["uid"]] = sorted(
                    (card_of(device.uuid), device.memory)
                    for devices in read_promise(annotations[key])
                    for device in devices
                )
    for uid, starts in hardware.running().items():
        got = sorted((uuid_of(start.node, start.card), start.amount) for start in starts)
        if got != promised.get(uid):
            wrong.append(f"{starts[0].pod}: {got}, promised {promised.get(uid)}")
    tap.ok(not wrong, f"{what}: every container got what its pod was promised", "\n".join(wrong))
    lost = [start for start in list(hardware.starts) if start.card == NO_CARD]
    tap.ok(not lost, f"{what}: none was left without", lost)
    tap.ok(not hardware.overcommits, f"{what}: no card carries too much", hardware.overcommits)
    tap.equal(world.metric("gpuledger_ledger_drift"), 0, f"{what}: no drift")
    tap.ok(not world.fleet.failures, f"{what}: the players are well", world.fleet.failures)


def lock_of(world, node):
    return world.client.get("Node", node)["metadata"].get("annotations", {}).get(LOCK)


def scenario_hami(tap):
    """HAMi v2.9: slots, several cards, init containers, conditions, one pod at a time."""
    with World(tap) as world:
        start(world)
        add_node(world, "n1", "hami-v2.9", cards_of("n1", [16000, 16000]))
        # Each of another size, all at once: whoever is mixed up is seen.
        names = [f"s{number}" for number in range(20)]
        for number, name in enumerate(names):
            add_pod(world, name, one(1400 + number))
        world.await_running(names, nudge=True)
        check(world, "twenty at once")
        tap.equal(len({start.card for start in world.fleet.hardware.starts}), 2, "on both cards")
        wait_for(lambda: lock_of(world, "n1") is None, what="the lock is gone")
        tap.ok(True, "the node is not locked any more")
        add_pod(world, "late", one(10))
        said = world.refusal("late", "Insufficient nvidia.com/gpu")
        tap.ok("Insufficient nvidia.com/gpu" in said, "no slot is left", said)
        world.client.delete("Pod", "late")

        add_node(
            world,
            "n2",
            "hami-v2.9",
            cards_of("n2", [8000])
            + [Card(uuid_of("n2", 1), 40000, kind="NVIDIA A100", numa=1)],
        )
        add_pod(world, "three", {GPU: 3, MEM: 10}, node="n2")
        said = world.refusal("three", "fewer GPUs")
        tap.ok("fewer GPUs than the pod asks for" in said, "three of two cards", said)
        add_pod(world, "pair", {GPU: 2, PERCENT: 25, CORES: 30}, node="n2")
        world.await_running(["pair"], nudge=True)
        starts = [s for s in world.fleet.hardware.starts if s.pod == "pair"]
        tap.equal(
            sorted((s.card, s.amount) for s in starts), [(0, 2000), (1, 10000)], "a part of each"
        )
        labels = world.client.get("Pod", "pair")["metadata"].get("labels", {})
        tap.equal(labels.get("hami.io/vgpu-node"), "n2", "vGPUmonitor finds the pod")
        add_pod(world, "many", one(100), {}, one(200), init=[one(3000), {}], node="n2")
        world.await_running(["many"], nudge=True)
        add_pod(world, "a100", one(100), annotations={"nvidia.com/use-gputype": "A100"}, node="n2")
        world.await_running(["a100"], nudge=True)
        [got] = [s for s in world.fleet.hardware.starts if s.pod == "a100"]
        tap.equal(got.card, 1, "the kind of card that was asked for")
        add_pod(world, "own", one(100, **{CORES: 100}), node="n2")
        said = world.refusal("own", "GPU")
        tap.ok("Unschedulable" in said, "no card is idle", said)
        add_pod(world, "bytes", one("8Gi"), node="n2")
        said = world.refusal("bytes", "counts MiB")
        tap.ok("counts MiB, not bytes" in said, "bytes are no MiB", said)
        check(world, "all")


def scenario_hami_family(tap):
    """Every plugin on a node of its own; locks left behind; a pod that two of them could serve."""
    with World(tap) as world:
        start(world)
        nodes = {"v25": "hami-v2.5", "v28": "hami-v2.8", "old": "4paradigm-da7d4ed",
                 "v19": "volcano-v1.9.4", "vold": "volcano-v1.11.0", "vnew": "volcano-v1.12.0"}
        for name, behaviour in nodes.items():
            add_node(world, name, behaviour, cards_of(name, [10000, 10000]))
        # Its scheduler has died between lock and Binding, long ago.
        lock = "2020-01-02T03:04:05Z,default,gone"
        patch = {"metadata": {"annotations": {LOCK: lock}}}
        world.client.patch("Node", "v28", patch, None)
        names = []
        for name in nodes:
            for number in range(4):
                wish = one(3000 + number)
                if name.startswith("v") and name not in ("v25", "v28"):
                    wish = {VGPU: 1, VMEM: 3000 + number, VCORES: 10}
                add_pod(world, f"{name}-{number}", wish, node=name)
                names.append(f"{name}-{number}")
        world.await_running(names, nudge=True)
        check(world, "each on its own")
        wait_for(lambda: lock_of(world, "v28") is None, what="the lock is gone")
        tap.ok(True, "the lock of who is gone was taken over")
        for node in ("old", "vnew"):
            wish = one(10) if node == "old" else {VGPU: 1, VMEM: 10}
            add_pod(world, f"{node}-two", wish, wish, node=node)
            said = world.refusal(f"{node}-two", "several GPU containers")
            tap.ok("several GPU containers" in said, f"{node}: two containers", said)
        names = [f"any{number}" for number in range(6)]
        for number, name in enumerate(names):
            add_pod(world, name, one(2000 + number))
        world.await_running(names, nudge=True)
        check(world, "wherever there is room")
        # v2.5's plugin was given up by its scheduler; what is left of v2.9's scheduler on v28 means nothing.
        world.client.annotate("Node", "v25", {HANDSHAKE: "Deleted_2026-01-02 03:04:05"})
        world.client.annotate("Node", "v28", {HANDSHAKE: "Requesting_2026-01-02 03:04:05"})
        world.await_filter(object_of("late", one(100), node="v25"), "v25", "stopped reporting")
        for node in ("v25", "v28"):
            add_pod(world, f"late-{node}", one(100), node=node)
        world.await_running(["late-v28"], nudge=True)
        said = world.refusal("late-v25", "stopped reporting")
        tap.ok("stopped reporting" in said, "a plugin that does not report gets no pods", said)
        played = BEHAVIOURS["hami-v2.5"]
        now = datetime.datetime.now(datetime.timezone.utc)
        world.client.annotate("Node", "v25", {HANDSHAKE: handshake_text(played, now)})
        world.await_running(["late-v25"], nudge=True)
        tap.ok(True, "until it reports")


def scenario_hami_mig(tap):
    """Cards in MIG mode: HAMi v2.10 makes what is reserved, the others cut by template."""
    with World(tap) as world:
        # The chart's, but that the driver is said to count larger instances first.
        start(world, "--hami-mig-templates=A100-SXM4-40GB=7x1g.5gb:5120,"
                     "3x2g.10gb:10240+1x1g.5gb:5120,2x3g.20gb:20480,1x7g.40gb:40960")
        for name, behaviour in (("m10", "hami-v2.10"), ("m9", "hami-v2.9"), ("m8", "hami-v2.8"),
                                ("mv", "volcano-v1.12.0"), ("mw", "volcano-v1.11.0")):
            cards = cards_of(name, [40960, 40960], kind=A100_KIND, mode="mig")
            add_node(world, name, behaviour, cards, ordered=name in ("m8", "mw"))
        add_node(world, "core", "hami-v2.10", cards_of("core", [16000]))
        add_pod(world, "plain", one(1000), node="core")

        # v2.10: of both cards 3g at one end, then as many of the smallest as there is room for.
        sizes = {"big": 12000, "half": 9000, **{f"s{number}": 4000 for number in range(6)}}
        for name, memory in sizes.items():
            add_pod(world, name, one(memory), node="m10")
        add_pod(world, "two", {GPU: 2, MEM: 4000}, node="m10")
        world.await_running(["plain", "two", *sizes], nudge=True)
        check(world, "v2.10")
        entries = [
            entry
            for name in ("two", *sizes)
            for entry in json.loads(
                world.client.get("Pod", name)["metadata"]["annotations"][ALLOCATIONS]
            )
        ]
        tap.equal(len(entries), 10, "every device has its instance")
        tap.ok(all("migUUID" in entry for entry in entries), "and the plugin has made it")
        add_pod(world, "late", one(15000), node="m10")
        said = world.refusal("late", "MIG instance")
        tap.ok("No MIG instance as large" in said, "no room for another 3g", said)
        add_pod(world, "huge", one(41000), node="m10")
        said = world.refusal("huge", "larger than any card")
        tap.ok("larger than any card" in said, "no instance is as large", said)

        # Before: a card has one template at a time.
        older = {**{f"o{number}": 5000 for number in range(7)}, "o20": 20000, "o12": 12000}
        for name, memory in older.items():
            add_pod(world, name, one(memory), node="m9")
        world.await_running(older, nudge=True)
        check(world, "v2.9")
        add_pod(world, "again", one(30000), node="m9")
        world.refusal("again", "GPU")
        for name in ("o20", "o12"):
            world.fleet.finish(name)
        world.await_running(["again"], nudge=True)
        check(world, "cut anew when it is empty")

        # Volcano's templates have names; several sizes in one, where their order is known.
        several = {**{f"x{number}": 8000 for number in range(6)}, "x8": 4000, "x9": 4000}

        def add_several(names):
            for name in names:
                add_pod(world, name, one(several[name]), node="m8")
                add_pod(world, f"w{name}", {VGPU: 1, VMEM: several[name]}, node="mw")

        larger = [name for name in several if several[name] == 8000]
        add_several(larger)
        volcanos = {**{f"v{number}": 5000 for number in range(7)}, "v20": 20000, "v12": 12000}
        for name, memory in volcanos.items():
            add_pod(world, name, {VGPU: 1, VMEM: memory}, node="mv")
        world.await_running([*larger, *(f"w{name}" for name in larger)], nudge=True)
        add_several(["x8", "x9"])
        world.await_running([*several, *(f"w{name}" for name in several), *volcanos], 120,
                            nudge=True)
        check(world, "several sizes, and Volcano's")
        devices = [
            device.uuid.partition("[")[2]
            for name in several
            for devices in read_promise(
                world.client.get("Pod", name)["metadata"]["annotations"][ALLOCATED["hami.io"]]
            )
            for device in devices
        ]
        tap.equal(sorted(devices), sorted([f"1-{number}]" for number in range(4)] * 2),
                  "both cards have the template with two sizes")


def scenario_hami_oversubscribed(tap):
    """Cards registered with 1.8 times their memory: what is not there is for who accepts it."""
    with World(tap) as world:
        start(world)
        real = {"gpuledger.io/physical-memory": "*=16000Mi"}
        add_node(world, "n1", "hami-v2.10", cards_of("n1", [28800, 28800]), real)
        willing = {"gpuledger.io/oversubscribe": "true"}
        plain = [f"p{number}" for number in range(6)]
        eager = [f"w{number}" for number in range(8)]
        # Were they to come together, who is served first would decide how many of each fit.
        for name in plain:
            add_pod(world, name, one(5000))
        world.await_running(plain, nudge=True)
        for name in eager:
            add_pod(world, name, one(3000), annotations=willing)
        world.await_running(eager, nudge=True)
        running = world.fleet.hardware.running
        check(world, "both kinds")
        for card in range(2):
            starts = [s for all_of in running().values() for s in all_of if s.card == card]
            promised = sum(s.amount for s in starts if s.pod.startswith("p"))
            tap.ok(promised <= 16000, f"card {card}: what is promised is there", promised)
        total = sum(s.amount for all_of in running().values() for s in all_of)
        tap.ok(total > 32000, "and more is given than there is", total)
        add_pod(world, "late", one(1001))
        said = world.refusal("late", "oversubscribed")
        tap.ok("what is left is oversubscribed" in said, "the rest is not for everybody", said)
        patch = {"metadata": {"annotations": {"gpuledger.io/memory-in-use": "*=95"}}}
        world.client.patch("Node", "n1", patch, None)
        # kube-scheduler may ask sooner than the watch of nodes tells.
        world.await_filter(object_of("pressed", one(10), annotations=willing), "n1", "oversubscribed")
        add_pod(world, "pressed", one(10), annotations=willing)
        said = world.refusal("pressed", "oversubscribed")
        tap.ok("what is left is oversubscribed" in said, "nor when it is in use", said)


def set_quota(world, name, **hard):
    """A ResourceQuota of HAMi's keys, new or changed."""
    spec = {"spec": {"hard": {f"limits.nvidia.com/{key}": str(hard[key]) for key in hard}}}
    path = "/api/v1/namespaces/default/resourcequotas"
    try:
        world.client.request("PATCH", f"{path}/{name}", spec, content_type=MERGE_PATCH)
    except ApiError as error:
        if error.code != 404:
            raise
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, **spec}
        world.client.request("POST", path, quota)


def quota_events(world):
    for line in world.ops("/metrics", raw=True).decode().splitlines():
        if line.startswith('gpuledger_events_total{feed="resourcequotas"}'):
            return float(line.rpartition(" ")[2])
    return 0


def scenario_hami_quota(tap):
    """A namespace gets what its ResourceQuotas leave of cards, as the cards are handed out."""
    with World(tap) as world:
        set_quota(world, "memory", gpumem=8000)
        set_quota(world, "compute", gpucores=90)
        start(world, "--hami-resource-quotas")
        add_node(world, "n1", "hami-v2.10", cards_of("n1", [16000, 16000]))
        # A quarter of a card each, which is 4000 MiB, all at once: two may.
        names = [f"q{number}" for number in range(6)]
        for name in names:
            add_pod(world, name, {GPU: 1, PERCENT: 25, CORES: 30})

        def running():
            return [name for name in names if world.fleet.phase(name) == "Running"]

        def refused(name):
            said = world.refusal(name, "ResourceQuota")
            tap.ok("ResourceQuota leaves less of GPUs" in said, f"{name} waits", said)

        wait_for(lambda: len(running()) == 2, what="two pods run")
        for name in set(names) - set(running()):
            refused(name)
        check(world, "8000 MiB")
        before = quota_events(world)
        set_quota(world, "memory", gpumem=24000)
        wait_for(lambda: quota_events(world) > before, what="the change is known")
        add_pod(world, "late", {GPU: 1, PERCENT: 25, CORES: 31})
        refused("late")
        wait_for(lambda: len(running()) == 3, what="a third one is woken and runs")
        check(world, "24000 MiB, but 90 % of compute")
        world.fleet.finish(running()[0])
        wait_for(lambda: len(running()) == 3, what="another one takes its place")
        check(world, "what is free again is given")
        tap.equal(world.fleet.phase("late"), "Pending", "but not to who wants more")
