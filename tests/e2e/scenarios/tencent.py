# SPDX-License-Identifier: Apache-2.0
"""Nodes of Tencent's gpu-manager, which chooses cards itself and fails pods that were foreseen
elsewhere."""

import contextlib
import random
import time

from kubeapi import node_object, pod_object, wait_for
from tencent import (
    ASSIGNED,
    BLOCK,
    CARD_CORE,
    CORE,
    MEMORY,
    PREDICATE_IDX,
    PREDICATE_NODE,
    PREDICATE_TIME,
    GpuManagerKubelet,
    cards_of,
)
from world import SEED, World

MIB = 1 << 20
STUCK_S = 120


def resources(amounts):
    if amounts is None:
        return {}
    return {"limits": {CORE: str(amounts[0]), MEMORY: str(amounts[1])}}


class TencentWorld(World):
    """Cards are in bytes; a pod is a list of (core, blocks), None for a container without GPU."""

    nodes = ()

    def start(self, *args):
        config = self.scheduler_config()
        extender = config["extenders"][0]
        managed = extender["managedResources"]
        for name in {CORE, MEMORY} - {resource["name"] for resource in managed}:
            managed.append({"name": name, "ignoredByScheduler": False})
        self.extender_start(*args)
        self.scheduler_start(config)

    def node(self, name, sizes, behaviour="8cd842e", annotations=None, **manager):
        self.fleet.add(
            lambda fleet, node, cards, seed: GpuManagerKubelet(
                fleet, node, cards, seed, behaviour, **manager
            ),
            name,
            sizes,
        )
        self.nodes += (name,)
        capacity = {CORE: CARD_CORE * len(sizes), MEMORY: sum(sizes) // BLOCK}
        self.client.create(node_object(name, capacity, annotations=annotations))

    def pod(self, name, *containers, node=None, **options):
        """`node`: the only one it may go to."""
        spec = {
            "containers": [
                {"name": f"c{i}", "image": "example.com/none:1", "resources": resources(amounts)}
                for i, amounts in enumerate(containers)
            ]
        }
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        return self.client.create(pod_object(name, spec=spec, **options))

    def cards(self, name):
        """[[card, …] per GPU container] by the pod's annotations."""
        return list(cards_of(self.client.get("Pod", name)).values())

    def ledger(self):
        """{uid: (node, [[card, …] per GPU container])} as the extender has it."""
        found = {}
        for node in self.ops("/api/v1/nodes")["nodes"]:
            for pod in node["pods"]:
                held = {}
                for share in pod["shares"]:
                    held.setdefault(share["container"], []).append(share["card"])
                found[pod["uid"]] = node["name"], list(held.values())
        return found

    def cluster(self):
        return {
            pod["metadata"]["uid"]: (pod["spec"]["nodeName"], list(cards_of(pod).values()))
            for pod in self.client.items("Pod")
            if pod["spec"].get("nodeName")
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
            and cards_of(pod)
        }

    def real(self):
        """The same by what gpu-manager handed out and still runs."""
        found = {}
        for uid, starts in self.fleet.hardware.running().items():
            held = {}
            for start in starts:
                if not start.node.endswith("/core"):
                    held.setdefault(start.container, []).append(start.card)
            found[uid] = starts[0].node, list(held.values())
        return found

    def verify(self, what=""):
        prefix = f"{what}: " if what else ""
        try:
            wait_for(lambda: self.ledger() == self.cluster() == self.real())
        except TimeoutError:
            pass
        ledger, cluster, real = self.ledger(), self.cluster(), self.real()
        self.tap.equal(ledger, cluster, f"{prefix}the ledger equals the cluster ({len(cluster)} pods)")
        self.tap.equal(cluster, real, f"{prefix}and what runs on the cards")
        failed = [pod for node in self.nodes for pod in self.fleet.kubelet(node).failed]
        self.tap.equal(failed, [], f"{prefix}gpu-manager has failed no pod")
        hardware = self.fleet.hardware
        self.tap.equal(hardware.overcommits, [], f"{prefix}no card ever carried more than it has")
        self.tap.equal(self.fleet.failures, [], f"{prefix}the players are well")
        self.tap.equal(self.metric("gpuledger_ledger_drift"), 0, f"{prefix}no drift of its sums")


def scenario_tencent(tap):
    """Shares and whole cards as gpu-manager takes them; what it would fail is refused."""
    with TencentWorld(tap) as world:
        world.start()
        for node, order in (("n1", (1, 2, 3)), ("n2", (2, 3, 1))):
            world.node(node, [64 * BLOCK] * 2)
            jobs = {1: (100, 64), 2: (40, 24), 3: (30, 24)}
            for number in order:
                name = f"{node}-job{number}"
                world.pod(name, jobs[number], node=node)
                world.await_running([name])
            got = [world.cards(f"{node}-job{number}")[0] for number in (1, 2, 3)]
            tap.equal(
                got,
                [[0], [1], [1]] if order[0] == 1 else [[1], [0], [0]],
                f"one alone, two together, submitted as {order}",
            )
        world.node("n3", [64 * BLOCK] * 2)
        for name in ("h0", "h1"):
            world.pod(name, (70, 8), node="n3")
            world.await_running([name])
        world.pod("more", (40, 8), node="n3")
        said = world.refusal("more", "Insufficient GPU core in one device")
        tap.ok("Insufficient GPU core in one device" in said, "70 and 40 are more than a card", said)
        soft = {"tencent.com/vcuda-core-limit": "100"}
        world.pod("soft", (30, 8), node="n3", annotations=soft)
        world.await_running(["soft"])
        tap.equal(world.cards("soft"), [[0]], "70 and 30 are not, whatever they may grow to")
        world.client.delete("Pod", "more")

        world.node("n4", [60 * BLOCK] * 4)
        for name, containers, text in (
            ("part", [(150, 4)], "no part beside a whole"),
            ("core-only", [(50, 0)], "a container without GPU memory"),
            ("memory-only", [(0, 4)], "asks for GPU memory only"),
            ("whole-first", [(100, 0), (10, 1)], "after one that takes whole GPUs"),
            ("large", [(10, 65)], "larger than any card"),
        ):
            world.pod(name, *containers)
            said = world.refusal(name, text)
            tap.ok(text in said, f"{name} is refused with its reason", said)
            world.client.delete("Pod", name)
        world.pod("several", (60, 10), None, (60, 10), (200, 0), node="n4")
        world.await_running(["several"])
        tap.equal(world.cards("several"), [[0], [1], [2, 3]], "each container has cards of its own")
        annotations = world.client.get("Pod", "several")["metadata"]["annotations"]
        tap.equal(
            (annotations[PREDICATE_NODE], annotations[ASSIGNED], annotations[PREDICATE_TIME].isdigit()),
            ("n4", "true", True),
            "with the annotations that gpu-manager reads",
        )
        tap.ok(f"{PREDICATE_IDX}1" not in annotations, "and none for the container without GPU")
        world.verify()


def draw(rng, whole):
    """A pod's containers."""
    if whole:
        return [(CARD_CORE * rng.randint(1, 2), 0)]
    return [(rng.choice((10, 20, 30)), rng.randint(1, 12))] * rng.randint(1, 2)


def until_all_are_over(world, waiting, step):
    """Calls step(waiting), which says who is over, until nobody waits any more; gives up when nobody
    has been over for STUCK_S, and tells how those are who wait. A slow machine is not stuck."""
    waiting = set(waiting)
    deadline = time.monotonic() + STUCK_S
    while waiting and time.monotonic() < deadline:
        world.nudge()
        over = step(sorted(waiting))
        if over:
            deadline = time.monotonic() + STUCK_S
        waiting -= over
    for name in sorted(waiting):
        pod = world.client.find("Pod", name)
        if pod:
            world.tap.note(f"{name} on {pod['spec'].get('nodeName')}: {pod['status']}")
    world.tap.equal(waiting, set(), "nobody waits any more")


def burst(tap, behaviour, nodes, pods, *options, ending=False):
    """Many pods at once, admitted in any order. `ending`: they end while others come, until all
    have run; else there is room for all."""
    rng = random.Random(SEED)
    with TencentWorld(tap, fleet={"shuffled": True, "window_s": 0.2}) as world:
        for number, node in enumerate(nodes):
            world.node(f"n{number}", behaviour=behaviour, **node)
        world.start(f"--tencent-gpu-manager={behaviour}", *options)
        names = [f"p{number}" for number in range(pods)]
        for number, name in enumerate(sorted(names)):
            world.pod(name, *draw(rng, number % 5 == 0 and (ending or number < 10)))

        def step(waiting):
            time.sleep(1)
            over = {n for n in waiting if world.fleet.phase(n) in ("Running", "Failed")}
            for name in sorted(over) if ending else ():
                world.fleet.finish(name)
            return over

        until_all_are_over(world, names, step)
        world.verify()


EQUAL = {"sizes": [60 * BLOCK] * 4, "groups": [[0, 1], [2, 3]]}


def scenario_tencent_burst(tap):
    """Shares and whole cards at once on nodes whose cards are equal, and grouped by switches."""
    burst(tap, "8cd842e", [EQUAL] * 3, 20)


def scenario_tencent_unchecked(tap):
    """Pods end while others are on their way, which changes what gpu-manager takes."""
    burst(tap, "8cd842e", [EQUAL] * 2, 30, "--tencent-unchecked", ending=True)


def is_starting(world, name):
    """Whether kubelet has admitted the pod and it does not run yet."""
    pod = world.client.find("Pod", name)
    status = pod["status"] if pod else {}
    return status.get("phase") == "Pending" and "startTime" in status


def delete_while_starting(world, name, core):
    """Ends a pod of `core` before it runs; the next of that size comes while it is still there."""
    world.pod(f"{name}-first", (core, 4), node="n0")
    wait_for(lambda: is_starting(world, f"{name}-first"), 120, 0.05, f"{name}-first starts")
    world.delete(f"{name}-first")
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: world.ops(f"/api/v1/pods/default/{name}-first")["waiting"], 1)
    world.pod(f"{name}-next", (core, 8), node="n0")
    world.await_running([f"{name}-next"], nudge=True)


def scenario_tencent_deleted(tap):
    """Pods are deleted before they have a node, while they are bound, while they start and while
    they run: nobody is taken for one that is gone, and nobody waits for it."""
    rng = random.Random(SEED)
    with TencentWorld(tap, fleet={"shuffled": True, "window_s": 0.2, "stop_s": (1, 3)}) as world:
        for number in range(2):
            world.node(f"n{number}", **EQUAL)
        world.start("--tencent-unchecked")
        delete_while_starting(world, "part", 30)
        delete_while_starting(world, "whole", 100)
        world.verify("deleted while they start")

        names = [f"p{number}" for number in range(40)]
        for number, name in enumerate(names):
            world.pod(name, *draw(rng, number % 5 == 0))

        def step(waiting):
            time.sleep(0.5)
            starting = [name for name in waiting if is_starting(world, name)]
            for name in starting[:1] + rng.sample(waiting, rng.randint(0, 1)):
                world.delete(name)
            for name in waiting:
                if world.fleet.phase(name) == "Running" and rng.random() < 0.3:
                    world.fleet.finish(name)
            return {n for n in waiting if world.fleet.phase(n) not in ("Pending", "Running")}

        until_all_are_over(world, names, step)
        # One that is deleted between the bind of the next and its admission may be taken for it.
        failed = [pod for node in world.nodes for pod in world.fleet.kubelet(node).failed]
        tap.note(f"failed by gpu-manager: {failed}")


def burst_of_odd_cards(tap, behaviour):
    """NVML counts them in another order than their minors, and some have a little more memory."""
    sizes = [15361 * MIB, 15363 * MIB, 15361 * MIB, 15361 * MIB]
    minors = [2, 0, 1, 3]
    by_minor = dict(zip(minors, sizes))
    cards = {
        "sizes": sizes,
        "minors": minors,
        "annotations": {
            "gpuledger.io/card-memory": ",".join(f"{by_minor[i] // MIB}Mi" for i in range(4)),
            "gpuledger.io/card-order": ",".join(map(str, minors)),
        },
    }
    burst(tap, behaviour, [cards] * 3, 20)


def scenario_tencent_burst_nvml(tap):
    """A gpu-manager that takes equal cards as NVML counts them."""
    burst_of_odd_cards(tap, "v1.1.5")


def scenario_tencent_burst_old(tap):
    """A gpu-manager that compares bytes as well."""
    burst_of_odd_cards(tap, "v1.1.4")
