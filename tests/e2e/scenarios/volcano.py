# SPDX-License-Identifier: Apache-2.0
"""Pods of Volcano gpushare on nodes with its device plugin, in both of its modes."""

from kubeapi import node_object, pod_object
from kubelet import limit
from named import manage, verify
from volcano import INDEX, MEMORY, NUMBER, UNHEALTHY, VolcanoKubelet
from world import SEVERAL_CONTAINERS, World

OTHER_WAY = "shares its GPUs in another way"


def cards_of(pod, container):
    text = (pod["metadata"].get("annotations") or {}).get(INDEX)
    if not limit(container, MEMORY) and not limit(container, NUMBER):
        return []
    return [int(item) for item in text.split(",")] if text else []


def add_node(world, name, behaviour, sizes, annotations=None):
    world.fleet.add(VolcanoKubelet, name, sizes, behaviour)
    capacity = {NUMBER: len(sizes)}
    if not behaviour.endswith("number"):
        capacity[MEMORY] = sum(sizes)
    world.client.create(node_object(name, capacity, annotations=annotations))


def add_pod(world, name, limits, node):
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}}
    world.client.create(pod_object(name, limits=limits, spec=spec))


def card(world, name):
    return world.client.get("Pod", name)["metadata"]["annotations"][INDEX]


def scenario_volcano(tap):
    """Cards by memory and by number, equal pods in a burst, an unhealthy card."""
    with World(tap, fleet={"shuffled": True, "window_s": 0.3}) as world:
        world.extender_start()
        config = manage(world.scheduler_config(), "scheduler", [MEMORY, NUMBER])
        world.scheduler_start(config)
        add_node(world, "share", "95b591b6-share", [16160, 16160])
        add_node(world, "old", "0d68534", [16160, 16160], {UNHEALTHY: "1"})
        add_node(world, "whole", "95b591b6-number", [1, 1])

        names = ["a", "b", "c"]
        for name in names:
            add_pod(world, name, {MEMORY: 8000}, "share")
        world.await_running(names, nudge=True)
        tap.equal(sorted(card(world, name) for name in names), ["0", "0", "1"], "two on one card")

        sick = [f"sick{number}" for number in range(4)]
        for name in sick:
            add_pod(world, name, {MEMORY: 3000}, "old")
        world.await_running(sick, nudge=True)
        tap.equal({card(world, name) for name in sick}, {"0"}, "the unhealthy card is left alone")

        add_pod(world, "two", {NUMBER: 2}, "whole")
        world.await_running(["two"], nudge=True)
        tap.equal(card(world, "two"), "0,1", "two whole cards")
        add_pod(world, "misled", {NUMBER: 1}, "share")
        said = world.refusal("misled", OTHER_WAY)
        tap.ok(OTHER_WAY in said, "a node that shares memory serves no whole cards", said)

        both = pod_object("both", spec={"nodeSelector": {"kubernetes.io/hostname": "old"}})
        main = both["spec"]["containers"][0]
        main["resources"] = {"limits": {MEMORY: "1"}}
        both["spec"]["containers"].append({**main, "name": "side"})
        world.client.create(both)
        said = world.refusal("both", SEVERAL_CONTAINERS)
        tap.ok(SEVERAL_CONTAINERS in said, "two GPU containers are refused", said)

        for name in names:
            world.fleet.finish(name)
        burst = [f"burst{number}" for number in range(12)]
        for name in burst:
            add_pod(world, name, {MEMORY: 2600}, "share")
        world.await_running(burst, nudge=True)
        verify(world, cards_of)
