# SPDX-License-Identifier: Apache-2.0
"""Many equal pods at once, admitted by their nodes in another order than they were placed."""

from gpushare import BEHAVIOURS
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


assert len(BEHAVIOURS) == 3, "a behaviour without a burst"
