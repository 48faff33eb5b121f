# SPDX-License-Identifier: Apache-2.0
"""More important pods get a card: whose pods end for them, and that nobody comes in between."""

import contextlib

from gpushare import RESOURCE
from kubeapi import MERGE_PATCH, Client, wait_for
from scenarios.constraints import ask, wish
from world import INSUFFICIENT, World

CLASSES = {"lowest": 1, "low": 10, "middle": 100, "high": 1000}


def create_classes(world):
    for name, value in CLASSES.items():
        world.client.create_priority_class(name, value)


def create_budget(world, app):
    """None of those pods may be ended. Returns when the extender knows."""
    group = "policy/v1"
    path = f"/apis/{group}/namespaces/default/poddisruptionbudgets"
    world.client.request("POST", path, {
        "apiVersion": group, "kind": "PodDisruptionBudget", "metadata": {"name": "budget"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}})
    # No controller is there to say so.
    world.client.request("PATCH", f"{path}/budget/status", {"status": {
        "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
        "observedGeneration": 1}}, MERGE_PATCH)
    before, turns = budget_events(world), iter(range(1000))

    def is_known():
        """Two events later it is: a list, which is no event, may have come in between."""
        world.client.request("PATCH", f"{path}/budget", {"metadata": {"annotations": {"turn": str(next(turns))}}},
                             MERGE_PATCH)
        return budget_events(world) >= before + 2

    wait_for(is_known, what="the budget is known")


def begin(world, sizes):
    world.start()
    create_classes(world)
    world.node("n1", sizes)


def place(world, name, units, priority, **options):
    """One after the other, so that each card is known."""
    world.pod(name, units, spec={"priorityClassName": priority}, **options)
    world.await_running([name])
    world.await_served([name])


def ended(world, names):
    return [name for name in names if world.fleet.phase(name) != "Running"]


def preempt_cards(tap, version):
    with World(tap, version, fleet={"stop_s": (1, 1)}) as world:
        begin(world, [10, 10])
        place(world, "a", 6, "middle")
        place(world, "b", 6, "low")
        place(world, "c", 3, "lowest")
        tap.equal([world.card(name)[1] for name in "abc"], [0, 1, 0], "the cards before")
        # 5 units are free in sum. kube-scheduler would end "c", which is enough in sum; but only
        # the end of "b" frees 8 units on one card without touching "a".
        world.pod("urgent", 8, spec={"priorityClassName": "high"})
        world.await_running(["urgent"])
        tap.equal(ended(world, "abc"), ["b"], "the one whose end frees a card has ended")
        tap.equal(world.card("urgent"), ("n1", 1), "its card is the pod's")
        changed = world.metric("gpuledger_preempt_nodes_total")
        tap.ok(changed >= 1, "kube-scheduler asked", changed)
        world.verify()


def scenario_preempt_cards(tap):
    """Of three pods the one ends whose card is freed, not the one that suffices in sum."""
    preempt_cards(tap, "current")


def scenario_preempt_nominated(tap):
    """Room that is kept for a nominated pod is taken by none that is not more important."""
    with World(tap) as world:
        begin(world, [10, 10])
        place(world, "full", 10, "high")
        # kube-scheduler does not place it, and knows nothing of its nomination.
        world.pod("nominated", 8, scheduler="another", spec={"priorityClassName": "middle"})
        world.client.patch("Pod", "nominated", {"status": {"nominatedNodeName": "n1"}},
                           subresource="status")
        wait_for(lambda: world.client.get("Pod", "nominated")["status"].get("nominatedNodeName"),
                 30, what="the nomination")
        world.await_pods_known()
        # Nominations count for schedulers that ask, and until the next question for pods of any priority.
        with contextlib.closing(Client(f"http://127.0.0.1:{world.port}", timeout=30)) as asks:
            asks.request("POST", "/gpushare-scheduler/filter",
                         {"Pod": world.client.get("Pod", "nominated"), "NodeNames": ["n1"]})
        world.pod("beside", 2, spec={"priorityClassName": "low"})
        world.await_running(["beside"])
        tap.equal(world.card("beside"), ("n1", 1), "what is left beside it is given")
        world.pod("small", 1, spec={"priorityClassName": "low"})
        said = world.refusal("small", INSUFFICIENT)
        tap.ok(INSUFFICIENT in said, "a pod that is less important is refused", said)
        world.pod("equal", 1, spec={"priorityClassName": "middle"})
        said = world.refusal("equal", INSUFFICIENT)
        tap.ok(INSUFFICIENT in said, "and one that is as important", said)
        world.pod("greater", 1, spec={"priorityClassName": "high"})
        world.await_running(["greater"])
        tap.ok(True, "one that is more important is not")
        world.client.delete("Pod", "nominated")
        world.await_running(["small", "equal"])
        tap.ok(True, "all others are placed when the pod is gone")
        world.verify()


def scenario_preempt_budget(tap):
    """A pod that a PodDisruptionBudget guards is spared, though it is the less important one."""
    with World(tap, fleet={"stop_s": (1, 1)}) as world:
        begin(world, [10, 10])
        place(world, "guarded", 6, "low", labels={"app": "guarded"})
        place(world, "free", 6, "middle")
        place(world, "filler", 2, "lowest")
        tap.equal([world.card(name)[1] for name in ("guarded", "free", "filler")], [0, 1, 0],
                  "the cards before")
        create_budget(world, "guarded")
        # "guarded" is the less important one, and its end would do.
        world.pod("urgent", 8, spec={"priorityClassName": "high"})
        world.await_running(["urgent"])
        tap.equal(ended(world, ["guarded", "free", "filler"]), ["free"],
                  "the one that no budget guards has ended")
        tap.equal(world.card("urgent"), ("n1", 1), "its card is the pod's")
        world.verify()


def budget_events(world):
    for line in world.ops("/metrics", raw=True).decode().splitlines():
        if line.startswith('gpuledger_events_total{feed="poddisruptionbudgets"}'):
            return float(line.rpartition(" ")[2])
    return 0


def set_start(world, name, time):
    world.client.patch("Pod", name, {"status": {"startTime": time}}, subresource="status")


def scenario_preempt_start(tap):
    """Of pods of equal priority the one that started last ends, whichever was created first; the preview says so."""
    with World(tap, fleet={"stop_s": (1, 1)}) as world:
        begin(world, [10, 10])
        place(world, "first", 8, "low")
        place(world, "second", 8, "low")
        # kubelet admitted the younger pod a day earlier.
        set_start(world, "second", "2026-01-01T00:00:00Z")
        set_start(world, "first", "2026-01-02T00:00:00Z")
        world.await_pods_known()
        asking = wish("preview", {"priority": CLASSES["high"], "containers": [
            {"name": "main", "image": "example.com/none:1", "resources": {"limits": {RESOURCE: "8"}}}]})
        told = ask(world, "/api/v1/explain", asking)["preemption"]
        tap.equal([pod["name"] for pod in told["pods"]], ["first"], "the preview names the pod that started last")
        world.pod("urgent", 8, spec={"priorityClassName": "high"})
        world.await_running(["urgent"])
        tap.equal(ended(world, ["first", "second"]), ["first"], "it ends for the more important pod")
        world.verify()
