# SPDX-License-Identifier: Apache-2.0
"""Which card a pod gets, which pods are refused, and in which words."""

import time

from gpushare import ASSIGNED, ASSUME_TIME, DEV, IDX, POD, RESOURCE, RESOURCE_COUNT
from kubeapi import ApiError, wait_for
from world import INIT_CONTAINER, INSUFFICIENT, SEVERAL_CONTAINERS, SYSTEM, World


# kube-scheduler asks again by itself after five minutes.
WOKEN_S = 60


def scenario_binpack(tap):
    """Two pods of half a card share card 0, the third goes to card 1."""
    with World(tap) as world:
        world.start()
        world.node("n1", [16130, 16130])
        for name in ("a", "b", "c"):
            world.pod(name, 8065)
            world.await_running([name])
        tap.equal([world.card(name)[1] for name in ("a", "b", "c")], [0, 0, 1], "cards filled up")
        annotations = world.client.get("Pod", "a")["metadata"]["annotations"]
        tap.equal(
            {key: annotations.get(key) for key in (IDX, DEV, POD, ASSIGNED)},
            {IDX: "0", DEV: "16130", POD: "8065", ASSIGNED: "true"},
            "the plugin's five annotations are as it expects them",
        )
        tap.ok(annotations[ASSUME_TIME].isdigit(), "the fifth is a time")
        tap.equal(len(world.events_of("a", "Scheduled")), 1, "one Scheduled event")
        world.pod("d", 8000)
        world.pod("e", 65)
        world.await_running(["d", "e"])
        tap.equal(world.card("e")[1], 1, "the tightest card that fits")
        answer = world.inspect("n1")["nodes"][0]
        tap.equal(
            (answer["totalGPU"], answer["usedGPU"], [dev["usedGPU"] for dev in answer["devs"]]),
            (32260, 32260, [16130, 16130]),
            "the old command-line tool's view",
        )
        world.fleet.finish("a")
        world.pod("f", 8065)
        world.await_running(["f"])
        tap.equal(world.card("f")[1], 0, "a finished pod's memory is used again")
        world.verify()


def scenario_fragmentation(tap):
    """Enough memory in sum but on no card: refused in constant words, placed once there is room."""
    with World(tap) as world:
        world.start()
        world.node("n1", [10, 10])
        world.pod("a", 6)
        world.await_running(["a"])
        world.pod("b", 6)
        world.await_running(["b"])
        world.pod("big", 8)
        said = world.refusal("big", INSUFFICIENT)
        tap.ok(INSUFFICIENT in said and said.startswith("Unschedulable"), "refused", said)
        tap.ok("1 " + INSUFFICIENT in said, "counted by node", said)
        tap.ok(any(INSUFFICIENT in text for text in world.events_of("big", "FailedScheduling")), "event")
        world.await_quiet(4)
        tap.ok(True, "a refused pod is not changed again and again")
        world.fleet.finish("b")
        world.await_running(["big"], nudge=True)
        tap.equal(world.card("big")[1], 1, "placed when a card became free")
        world.node("n2", [10, 10])
        wait_for(lambda: len(world.ops("/api/v1/nodes")["nodes"]) == 2, what="the node is known")
        world.pod("huge", 15)
        said = world.refusal("huge", "larger than any card")
        tap.ok("larger than any card" in said, "larger than any card: said so", said)
        world.verify()


def scenario_wake(tap):
    """A refused pod is placed when there is room, also if nothing else happens."""
    with World(tap, fleet={"start_s": (0.1, 0.3)}) as world:
        world.start()
        world.node("n1", [10, 10])
        for name in ("always", "w0"):
            world.pod(name, 6)
            world.await_running([name])
        slow = []
        for number in range(1, 41):
            # Eight units are free in sum, so that only the extender refuses.
            name = f"w{number}"
            world.pod(name, 6 + number % 2 * 2)
            world.refusal(name, INSUFFICIENT)
            world.fleet.finish(f"w{number - 1}")
            try:
                world.await_running([name], WOKEN_S)
            except TimeoutError:
                slow.append(name)
                world.await_running([name], nudge=True)
        tap.equal(slow, [], "none of 40 had to be woken by something else")
        world.verify()


def scenario_containers(tap):
    """Pods that the plugin cannot serve are refused, or served where it can."""
    with World(tap) as world:
        world.start()
        world.node("multi", [10, 10])
        world.pod("two", containers=[2, 3])
        world.pod("init", 2, init=[2])
        world.pod("sidecar", containers=[2, 0, 0])
        said = world.refusal("two", SEVERAL_CONTAINERS)
        tap.ok(SEVERAL_CONTAINERS in said, "two GPU containers refused", said)
        said = world.refusal("init", INIT_CONTAINER)
        tap.ok(INIT_CONTAINER in said, "GPU init container refused", said)
        world.await_running(["sidecar"])
        world.node("single", [10])
        for name in ("two", "init"):
            said = world.refusal(name, "0/2 nodes")
            tap.ok("0/2 nodes" in said, f"{name}: one card is no exception yet", said)
        world.extender_stop()
        world.extender_start("--gpushare-any-on-single-card")
        world.await_running(["two", "init"], nudge=True)
        tap.equal((world.card("two")[0], world.card("init")[0]), ("single",) * 2, "served there")
        used = world.fleet.hardware.used()
        tap.equal(used.get(("single", 0)), 7, "two and three, and two once")
        world.verify()


def scenario_health(tap):
    """The ConfigMap of unhealthy cards takes them out, and gives them back."""
    with World(tap) as world:
        world.start()
        world.node("n1", [10, 10])
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "unhealthy-gpu-n1", "namespace": SYSTEM},
            "data": {"gpus": "0"},
        }
        world.client.create(config)
        wait_for(
            lambda: not world.ops("/api/v1/nodes/n1")["cards"][0]["healthy"], what="unhealthy", ignore=(ApiError,)
        )
        world.pod("a", 4)
        world.await_running(["a"])
        tap.equal(world.card("a"), ("n1", 1), "the healthy card")
        world.pod("b", 8)
        said = world.refusal("b", INSUFFICIENT)
        tap.ok("1 Insufficient GPU Memory in one device." in said, "the rest is refused", said)
        world.client.patch("ConfigMap", "unhealthy-gpu-n1", {"data": {"gpus": "0,1"}}, SYSTEM)
        wait_for(lambda: not world.ops("/api/v1/nodes/n1")["cards"][1]["healthy"], what="both are")
        world.nudge()
        said = world.refusal("b", "unhealthy")
        tap.ok("the cards large enough are unhealthy" in said, "with the reason", said)
        world.client.patch(
            "ConfigMap", "unhealthy-gpu-n1", {"data": {"gpus": " 7, x ,"}}, SYSTEM
        )
        # Nothing that kube-scheduler watches has changed.
        world.await_running(["b"], nudge=True)
        tap.equal(world.card("b"), ("n1", 0), "items that name no card are ignored")
        world.client.delete("ConfigMap", "unhealthy-gpu-n1", SYSTEM)
        wait_for(
            lambda: world.ops("/api/v1/nodes/n1")["cards"][0]["healthy"], what="healthy"
        )
        other = {**config, "metadata": {"name": "unhealthy-gpu-n1", "namespace": "default"}}
        world.client.create(other)
        # What comes later is known later.
        world.client.create({**config, "data": {"gpus": "1"}})
        wait_for(lambda: not world.ops("/api/v1/nodes/n1")["cards"][1]["healthy"], what="the next one is known")
        tap.ok(world.ops("/api/v1/nodes/n1")["cards"][0]["healthy"], "other namespaces do not count")
        world.verify()


def scenario_cards(tap):
    """Cards of different sizes, and nodes whose cards change."""
    with World(tap) as world:
        world.start()
        world.node("mixed", [45, 15], annotations={"gpuledger.io/card-memory": "45,15"})
        for number, units in enumerate((20, 20, 14)):
            world.pod(f"m{number}", units)
            world.await_running([f"m{number}"])
        tap.equal([world.card(f"m{n}")[1] for n in range(3)], [0, 0, 1], "the small card is small")
        world.pod("m3", 20)
        said = world.refusal("m3", INSUFFICIENT)
        tap.ok(INSUFFICIENT in said, "what the plugin claims the small card has is not given", said)
        world.client.delete("Pod", "m3")

        world.node("grows", [10])
        world.pod("g0", 8, spec={"nodeSelector": {"kubernetes.io/hostname": "grows"}})
        world.await_running(["g0"])
        world.pod("g1", 8, spec={"nodeSelector": {"kubernetes.io/hostname": "grows"}})
        said = world.refusal("g1", RESOURCE)
        tap.ok(RESOURCE in said, "the node's sum is kube-scheduler's own affair", said)
        world.set_cards("grows", [10, 10])
        world.await_running(["g1"], nudge=True)
        tap.equal(world.card("g1"), ("grows", 1), "the new card is used")
        world.fleet.finish("g1")
        wait_for(lambda: len(world.ledger()) == 4, what="g1 released")
        world.set_cards("grows", [10])
        wait_for(lambda: len(world.ops("/api/v1/nodes/grows")["cards"]) == 1, what="one card")
        world.pod("g2", 2, spec={"nodeSelector": {"kubernetes.io/hostname": "grows"}})
        world.await_running(["g2"])
        tap.equal(world.card("g2"), ("grows", 0), "the card that was taken out is not")
        world.verify()


def scenario_terminating(tap):
    """A pod that is being deleted holds its card until its processes are gone."""
    with World(tap) as world:
        world.start()
        world.node("n1", [10, 10])
        world.pod("old", 8)
        world.await_running(["old"])
        world.pod("other", 8)
        world.await_running(["other"])
        world.pod("small", 2)
        world.await_running(["small"])
        # kube-scheduler's own sum leaves 2 units; the extender must not add those of "old".
        world.fleet.hold_ends()
        world.delete("old")
        world.pod("new", 8)
        said = world.refusal("new", RESOURCE)
        tap.ok("nodeName" not in world.client.get("Pod", "new")["spec"], "not placed meanwhile", said)
        tap.ok(world.fleet.phase("old") is not None, "the old one is still there")
        world.fleet.let_end()
        world.await_running(["new"], nudge=True)
        tap.equal(world.card("new"), ("n1", 0), "placed after its end")
        world.verify()


def scenario_foreign(tap):
    """Pods that other schedulers bind count as their node side serves them."""
    with World(tap) as world:
        world.start()
        world.node("n1", [10, 10])
        world.pod("stray", 4, scheduler="another")
        world.client.bind("stray", "n1")
        wait_for(lambda: len(world.ops("/api/v1/nodes/n1")["pods"]) == 1, ignore=(ApiError,),
                 what="the stray pod is known")
        node = world.ops("/api/v1/nodes/n1")
        used = [card["memoryUsedBytes"] for card in node["cards"]] + [node["unplacedMemoryBytes"]]
        tap.equal(used, [0, 0, 0], "of several cards the plugin gives it none")
        world.pod("fits", 10)
        world.await_running(["fits"])
        wait_for(lambda: world.fleet.hardware.starts, what="the plugin's answer")
        strays = [start for start in world.fleet.hardware.starts if start.pod == "stray"]
        tap.equal([start.card for start in strays], [-1], "the plugin has no card for it")

        world.pod("marked", 5, scheduler="another")
        marks = {IDX: "1", DEV: "10", POD: "5", ASSIGNED: "false", ASSUME_TIME: str(time.time_ns())}
        world.client.bind("marked", "n1", annotations=marks)
        world.await_running(["marked"])
        world.client.delete("Pod", "stray")
        world.pod("last", 5)
        world.await_running(["last"])
        tap.equal(world.card("last"), ("n1", 1), "beside the one that another scheduler placed")
        world.verify(without_card=["stray"])


def scenario_swap(tap):
    """The check itself: placed as the gpushare extender places, pods do swap, and it is seen."""
    with World(tap, fleet={"shuffled": True, "window_s": 0.5}) as world:
        cards = 4
        world.node("n1", [10] * cards)
        world.fleet.pause()
        for number in range(cards):
            world.pod(f"p{number}", 8, scheduler="another")
            marks = {
                IDX: str(number),
                DEV: "10",
                POD: "8",
                ASSIGNED: "false",
                ASSUME_TIME: str(time.time_ns()),
            }
            world.client.bind(f"p{number}", "n1", annotations=marks)
        wait_for(lambda: world.fleet.kubelet("n1").arrived() == cards, what="the node has seen them all")
        world.fleet.resume()
        world.await_starts(cards)
        swapped = [
            start
            for start in world.fleet.hardware.starts
            if start.card != world.audit.card_of(start.uid)
        ]
        tap.ok(swapped, "equal pods on different cards, admitted in another order, swap cards")
        tap.equal(world.fleet.hardware.overcommits, [], "which no sum shows")
        tap.ok(RESOURCE_COUNT in world.client.get("Node", "n1")["status"]["capacity"], "as a node is")
