# SPDX-License-Identifier: Apache-2.0
"""Kubernetes 1.20, configured by a Policy file."""

from scenarios.bursts import burst
from scenarios.preemption import preempt_cards
from world import INSUFFICIENT, World


def scenario_legacy(tap):
    """Placing and refusing under kube-scheduler 1.20 with the shipped Policy."""
    with World(tap, "legacy") as world:
        world.start()
        world.node("n1", [10, 10], "aff8a23")
        for name in ("a", "b"):
            world.pod(name, 6)
            world.await_running([name])
        tap.equal([world.card(name) for name in ("a", "b")], [("n1", 0), ("n1", 1)], "placed")
        world.pod("big", 8)
        said = world.refusal("big", INSUFFICIENT)
        tap.ok(INSUFFICIENT in said, "refused in the same words", said)
        world.fleet.finish("a")
        world.await_running(["big"], nudge=True)
        tap.equal(world.card("big"), ("n1", 0), "placed when a card became free")
        said = world.extender.tail(1000)
        tap.ok("preempts without asking extenders" in said, "a scheduler of 1.20.2 is warned of",
               said)
        world.verify()


def scenario_legacy_burst(tap):
    """200 equal pods on 80 cards under Kubernetes 1.20."""
    burst(tap, "aff8a23", "legacy")


def scenario_legacy_preempt(tap):
    """Whose pods end is the extender's choice under kube-scheduler 1.20.10 and later, too."""
    preempt_cards(tap, "legacy")


scenario_legacy.version = scenario_legacy_preempt.version = scenario_legacy_burst.version = "legacy"
