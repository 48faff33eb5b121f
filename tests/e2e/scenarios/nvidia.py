# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own plugin: devices by count, of the right kind, and never two kinds on one card."""

from kubeapi import node_object, wait_for
from nvidia import GPU, NvidiaKubelet, Plugin, Sharing, labels
from world import World

MIG = "nvidia.com/mig-2g.10gb"
CONFIG = "nvidia.com/device-plugin.config"
FEW = "Insufficient GPU devices"
AT_ONCE = "fewer devices at a time than the pod asks for"
KIND = "no GPU of the kind that the pod asks for"
MEMORY = "want more memory than it has"
OTHER_USE = "in use by pods that share them in another way"
# The scheduler checks the nodes' sums itself; what the extender says comes after that.
FULL = "Insufficient nvidia.com/gpu"


def start(world, *args, resources=()):
    """Extender and scheduler, which calls it for these resources too."""
    world.extender_start(*args)
    config = world.scheduler_config()
    config["extenders"][0]["managedResources"] += [
        {"name": name, "ignoredByScheduler": False} for name in (GPU, MIG, *resources)
    ]
    world.scheduler_start(config)


def add_node(world, name, sizes, plugins, said):
    world.fleet.add(NvidiaKubelet, name, sizes, plugins)
    capacity = world.fleet.kubelet(name).manager.capacity()
    world.client.create(node_object(name, capacity, labels=said))


def set_plugin(world, name, sizes, plugins):
    """The plugin restarts with another configuration; the node's status follows."""
    kubelet = world.fleet.kubelet(name)
    world.fleet.hardware.set_cards(name, sizes)
    kubelet.manager.register(plugins)
    amounts = {key: str(value) for key, value in kubelet.manager.capacity().items()}
    status = {"capacity": amounts, "allocatable": amounts}
    world.client.patch("Node", name, {"status": status}, subresource="status")


def set_labels(world, name, said):
    world.client.patch("Node", name, {"metadata": {"labels": said}})


def add_pod(world, name, devices=1, resource=GPU, node=None, **conditions):
    limits = {resource: str(devices)}
    container = {"name": "c", "image": "example.com/none:1", "resources": {"limits": limits}}
    spec = {"containers": [container]}
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    annotations = {
        f"gpuledger.io/{key.replace('_', '-')}": value for key, value in conditions.items()
    }
    world.pod(name, spec=spec, annotations=annotations)


def pool(world, node, resource=GPU):
    pools = world.ops(f"/api/v1/nodes/{node}")["pools"]
    return next(((each["used"], each["capacity"]) for each in pools if each["resource"] == resource), None)


def node_of(world, name):
    return world.client.get("Pod", name)["spec"].get("nodeName")


def verify(world, nodes):
    """What each node's kubelet gave is what the ledger counts, and it refused nobody."""
    tap, hardware = world.tap, world.fleet.hardware
    given = {}
    for starts in hardware.running().values():
        for one in starts:
            given[one.node] = given.get(one.node, 0) + 1

    def counted():
        return {
            node: sum(each["used"] for each in world.ops(f"/api/v1/nodes/{node}")["pools"])
            for node in nodes
        }

    expected = {node: given.get(node, 0) for node in nodes}
    try:
        wait_for(lambda: counted() == expected)
    except TimeoutError:
        pass
    tap.equal(counted(), expected, "the ledger counts what the nodes gave")
    refused = {node: world.fleet.kubelet(node).refused for node in nodes}
    tap.equal({node: each for node, each in refused.items() if each}, {}, "no kubelet refused a pod")
    tap.equal(hardware.overcommits, [], "no card ever had more holders than it may")
    tap.equal(world.metric("gpuledger_ledger_drift"), 0, "no drift of the ledger's sums")
    tap.ok(not world.fleet.failures, "the players are well", world.fleet.failures)


def scenario_nvidia(tap):
    """Whole cards, replicas and MIG instances by count; conditions choose the node."""
    twice = Sharing(replicas=2, fail_requests_greater_than_one=True)
    with World(tap, fleet={"start_s": (0.1, 0.3)}) as world:
        start(world, "--nvidia-fail-requests-greater-than-one")
        facts = {"gpu.compute.major": "8", "gpu.compute.minor": "0", "cuda.driver-version.major": "535"}
        ampere = {f"nvidia.com/{key}": value for key, value in facts.items()}
        add_node(world, "whole", [1] * 4, [Plugin("0123")],
                 {**labels(4, product="NVIDIA-A100-SXM4-40GB", memory=40960), **ampere})
        add_node(world, "shared", [2], [Plugin("0", sharing=twice)],
                 {**labels(1, twice), "nvidia.com/gpu.compute.major": "7"})
        add_node(world, "mixed", [1, 1], [Plugin("0"), Plugin("1", MIG)],
                 {**labels(1, product="NVIDIA-A30", memory=24576), **ampere,
                  **labels(1, product="NVIDIA-A30-MIG-2g.10gb", memory=9856, resource=MIG)})
        nodes = ("whole", "shared", "mixed")

        add_pod(world, "strong", gpu_compute_min="8.0", gpu_memory_min="32Gi", gpu_unshared="true")
        world.await_running(["strong"])
        tap.equal(node_of(world, "strong"), "whole", "the only node with such cards")
        for number in range(3):
            add_pod(world, f"w{number}", node="whole")
        world.await_running([f"w{number}" for number in range(3)])
        add_pod(world, "w3", node="whole")
        said = world.refusal("w3", FULL)
        tap.ok(FULL in said, "the fifth of four waits", said)

        add_pod(world, "two", 2, node="shared")
        said = world.refusal("two", AT_ONCE)
        tap.ok(AT_ONCE in said, "two replicas at once are refused before kubelet sees the pod", said)
        add_pod(world, "alone", node="shared", gpu_unshared="true")
        said = world.refusal("alone", KIND)
        tap.ok(KIND in said, "who wants a card unshared avoids the node", said)
        for number in range(2):
            add_pod(world, f"s{number}", node="shared")
        world.await_running(["s0", "s1"])
        tap.equal(pool(world, "shared"), (2, 2), "two pods on the one card")

        add_pod(world, "job1", node="mixed", gpu_memory_min="20Gi")
        add_pod(world, "job2", resource=MIG)
        world.await_running(["job1", "job2"])
        tap.equal(node_of(world, "job2"), "mixed", "card and instance on one node")
        add_pod(world, "job3", resource=MIG)
        said = world.refusal("job3", "Insufficient " + MIG)
        tap.ok("Insufficient " + MIG in said, "the second instance waits", said)
        verify(world, nodes)

        world.client.delete("Pod", "two")
        world.client.delete("Pod", "alone")
        for name in ("strong", "s0", "job2"):
            world.fleet.finish(name)
        world.await_running(["w3", "job3"], nudge=True)
        verify(world, nodes)


def most_wanted(world, wants):
    """GiB that the pods on one card want together, where that is most."""
    cards = {}
    for starts in world.fleet.hardware.running().values():
        for one in starts:
            cards[one.card] = cards.get(one.card, 0) + wants[one.pod]
    return max(cards.values(), default=0)


def scenario_nvidia_guard(tap):
    """Time-slicing: whichever pods meet on a card, what they want of its memory fits on it."""
    three = Sharing(replicas=3)
    with World(tap, fleet={"start_s": (0.1, 0.3)}) as world:
        start(world, "--nvidia-memory-guard")
        add_node(world, "t4", [3, 3], [Plugin("01", sharing=three)],
                 labels(2, three, product="Tesla-T4", memory=15360))
        wants = {"a": 6, "b": 6, "late": 6, "small": 2, "tiny": 1}
        for name in ("a", "b"):
            add_pod(world, name, gpu_memory=f"{wants[name]}Gi")
        world.await_running(["a", "b"])
        add_pod(world, "late", gpu_memory="6Gi")
        said = world.refusal("late", MEMORY)
        tap.ok(MEMORY in said, "three that want 6 of 15 GiB each could meet on one card", said)
        add_pod(world, "small", gpu_memory="2Gi")
        add_pod(world, "tiny", gpu_memory="1Gi")
        world.await_running(["small", "tiny"])
        tap.equal(pool(world, "t4"), (4, 6), "smaller ones could meet anybody")
        tap.ok(most_wanted(world, wants) <= 15, "what meets fits", most_wanted(world, wants))
        world.fleet.finish("a")
        world.await_running(["late"])
        tap.ok(most_wanted(world, wants) <= 15, "what meets fits", most_wanted(world, wants))
        verify(world, ["t4"])


def scenario_nvidia_flip(tap):
    """Replicas change under load: no card ever has holders of both kinds."""
    four = Sharing(replicas=4)
    with World(tap, fleet={"start_s": (0.1, 0.3)}) as world:
        start(world, "--nvidia-config-replicas=whole=1,four=4")
        shared = [Plugin("01", sharing=four)]
        add_node(world, "flip", [4, 4], shared, {**labels(2, four), CONFIG: "four"})
        early = [f"early{number}" for number in range(3)]
        for name in early:
            add_pod(world, name)
        world.await_running(early)
        tap.equal(pool(world, "flip"), (3, 8), "three of eight replicas")

        set_labels(world, "flip", {CONFIG: "whole"})
        wait_for(lambda: pool(world, "flip") == (3, 0), what="the flip is seen")
        add_pod(world, "late0")
        add_pod(world, "late1")
        said = world.refusal("late0", "0/1 nodes")
        tap.equal(node_of(world, "late0"), None, "nothing is given while the status is stale")
        tap.note(said)
        set_plugin(world, "flip", [4, 4], [Plugin("01")])
        wait_for(lambda: pool(world, "flip") == (3, 0), what="the labels are late")
        set_labels(world, "flip", labels(2))
        wait_for(lambda: pool(world, "flip") == (3, 2), what="plugin and labels agree")
        # The sums say that nothing is left: 3 of 2 are held.
        world.fleet.finish("early0")
        world.fleet.finish("early1")
        said = world.refusal("late0", OTHER_USE)
        tap.ok(OTHER_USE in said, "a pod of the old kind may be on any card", said)
        # From now on a card that gets a second holder is noticed.
        world.fleet.hardware.set_cards("flip", [1, 1])
        world.fleet.finish("early2")
        world.await_running(["late0", "late1"], nudge=True)
        verify(world, ["flip"])
