# SPDX-License-Identifier: Apache-2.0
"""Which node a pod gets, as the shipped configuration has kube-scheduler ask for it."""

from kubeapi import node_object, wait_for
from world import World

NODES = 4
CARDS = 4
UNITS = 8  # of a card
QUARTERS = 40


def await_bound(world, name):
    wait_for(lambda: world.client.get("Pod", name)["spec"].get("nodeName"), 120, 0.05, f"{name} bound")
    return world.client.get("Pod", name)["spec"]["nodeName"]


def place(world, names, units):
    """One after the other, each when the plugin has served the one before: so each is marked by what all
    before it have been given, and none is sent elsewhere because it would have to wait."""
    for name in names:
        world.pod(name, units)
        await_bound(world, name)
        world.await_running([name])
        world.await_served([name])


def quarters(tap, policy):
    """Forty pods of a quarter of a card each on sixteen cards; returns how many they opened."""
    with World(tap, fleet={"start_s": (0, 0.1)}) as world:
        for number in range(NODES):
            world.node(f"n{number}", [UNITS] * CARDS)
        world.start(f"--policy={policy}")
        for first in range(0, QUARTERS, NODES):
            place(world, [f"q{number}" for number in range(first, first + NODES)], UNITS // 4)
        opened = len({world.card(f"q{number}") for number in range(QUARTERS)})
        if policy == "binpack":
            wholes = [f"w{number}" for number in range(NODES * CARDS - QUARTERS // 4)]
            place(world, wholes, UNITS)
            tap.ok(True, f"{len(wholes)} pods of a whole card fit beside them")
        tap.ok(world.metric("gpuledger_requests_bad_total") == 0, "every call was understood")
        world.verify()
        return opened


def scenario_prioritize_binpack(tap):
    """The policy's node gets the pod: quarters open as few cards as there can be."""
    tap.equal(quarters(tap, "binpack"), QUARTERS // 4, "cards in use")


def scenario_prioritize_spread(tap):
    """The same with the other policy: they open all there are."""
    tap.equal(quarters(tap, "spread"), NODES * CARDS, "cards in use")


def scenario_prioritize_cpu(tap, version="current"):
    """Pods without a GPU keep off nodes with GPUs, though these are emptier."""
    with World(tap, version) as world:
        for number in range(3):
            world.node(f"gpu{number}", [10, 10])
        small = node_object("plain", {"cpu": 2, "memory": 2 << 30})
        world.client.create(small)
        world.start()
        request = {"containers": [{"name": "c", "image": "example.com/none:1",
                                   "resources": {"requests": {"cpu": "400m"}}}]}
        nodes = []
        for number in range(5):
            world.pod(f"web{number}", spec=request)
            nodes.append(await_bound(world, f"web{number}"))
        tap.equal(nodes, ["plain"] * 5, "they fill up the node without GPUs first")
        world.pod("one", 4)
        world.await_running(["one"])
        world.pod("web5", spec=request)
        tap.equal(await_bound(world, "web5"), world.card("one")[0], "then one whose GPUs are in use")
        world.verify()


def scenario_prioritize_legacy(tap):
    """The same under kube-scheduler 1.20 with the shipped Policy."""
    scenario_prioritize_cpu(tap, "legacy")


scenario_prioritize_legacy.version = "legacy"
