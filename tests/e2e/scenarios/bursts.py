# SPDX-License-Identifier: Apache-2.0
"""Many equal pods at once, admitted by their nodes in another order than they were placed."""

import re

from gpushare import ASSIGNED, ASSUME_TIME, BEHAVIOURS, IDX, POD
from world import World

NODES = 20
CARDS = 4
CARD_UNITS = 16
PODS = 200
UNITS = 6


def burst(tap, behaviour, version="current"):
    fleet = {"shuffled": True, "window_s": 0.3}
    with World(tap, version, fleet) as world:
        for number in range(NODES):
            world.node(f"n{number}", [CARD_UNITS] * CARDS, behaviour)
        world.start()
        names = [f"p{number}" for number in range(PODS)]
        for name in names:
            world.pod(name, UNITS)
        # Two pods fit on a card: 160 run, the rest waits.
        room = NODES * CARDS * (CARD_UNITS // UNITS)
        world.await_starts(room)
        tap.equal(len(world.fleet.hardware.starts), room, f"{room} of {PODS} pods run")
        world.verify("full")
        for start in list(world.fleet.hardware.starts)[: PODS - room]:
            world.fleet.finish(start.pod)
        world.await_starts(PODS)
        world.verify("with those that waited")


def scenario_burst_aff8a23(tap):
    """200 equal pods on 80 cards under the oldest plugin, which writes whole pods."""
    burst(tap, "aff8a23")


def scenario_burst_2656995(tap):
    """200 equal pods on 80 cards under the plugin of the chart."""
    burst(tap, "2656995")


def scenario_burst_45fb8b8(tap):
    """200 equal pods on 80 cards under the newest plugin, which patches."""
    burst(tap, "45fb8b8")


STILL_NODES = 20


def results(world):
    """{result: how many binds ended so}, but for those that none did."""
    found = {}
    for line in world.ops("/metrics", raw=True).decode().splitlines():
        match = re.match(r'gpuledger_binds_total\{result="(\w+)"\} (\d+)', line)
        if match and int(match[2]):
            found[match[1]] = int(match[2])
    return found


def still(tap, prioritize):
    """Of one size one pod is let on a node at a time; the next would wait for a plugin that never acts."""
    with World(tap, played=False) as world:
        for number in range(STILL_NODES):
            world.node(f"n{number}", [CARD_UNITS] * CARDS)
        for card in range(CARDS):
            # It fits beside one of the burst, so that n0 is where each of those packs best.
            name, words = f"old{card}", {IDX: str(card), POD: "8", ASSIGNED: "true", ASSUME_TIME: "1"}
            world.pod(name, 8)
            world.client.bind(name, "n0", annotations=words)
            world.client.set_pod_phase(name, "Running")
        world.extender_start()
        names = [f"p{number}" for number in range(STILL_NODES)]
        for name in names:
            world.pod(name, UNITS)
        config = world.scheduler_config()
        if not prioritize:
            for entry in config["extenders"]:
                entry.pop("prioritizeVerb", None)
                entry.pop("weight", None)
            config["extenders"] = config["extenders"][:1]
        world.scheduler_start(config)
        placed = world.client.wait_bound(names, timeout=60)
        tap.equal(len(placed), len(names), "all pods are bound")
        ends = results(world)
        tap.ok(
            not ends.keys() & {"timed_out", "crowded"},
            "nobody waited in vain while another node was free",
            ends,
        )
        tap.note(f"binds ended so: {ends}")


def scenario_burst_still(tap):
    """20 equal pods on 20 nodes whose plugins do nothing, the best of which has room for two."""
    still(tap, prioritize=True)


def scenario_burst_still_unranked(tap):
    """The same where kube-scheduler asks about no node which is best."""
    still(tap, prioritize=False)


assert len(BEHAVIOURS) == 3, "a behaviour without a burst"
