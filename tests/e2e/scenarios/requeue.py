# SPDX-License-Identifier: Apache-2.0
"""Refused pods of a real kube-scheduler: how often it asks in vain, how soon freed room is used."""

import statistics
import time

from feed import PodFeed
from world import INSUFFICIENT, World, wait_for

NODES, CARDS, CARD_UNITS = 4, 3, 10
HELD_UNITS = 6
# Free in sum on every node at all times, so that none but the extender refuses; on no card.
WAITING_UNITS = 7
WAITING = 50
QUIET_S = 20  # longer than the longest pause of kube-scheduler between two tries of a pod


class Clock:
    """When the API server showed each pod with a node, and when it showed its end."""

    def __init__(self):
        self.bound = {}
        self.ended = {}

    def observe(self, kind, pod):
        name, now = pod["metadata"]["name"], time.monotonic()
        if pod["spec"].get("nodeName"):
            self.bound.setdefault(name, now)
        if pod["status"].get("phase") == "Succeeded":
            self.ended.setdefault(name, now)


def attempts(world):
    """How often kube-scheduler has found no place for a pod."""
    total = 0
    for line in world.plane.scheduler_metrics().splitlines():
        if line.startswith("scheduler_schedule_attempts_total") and '"unschedulable"' in line:
            total += float(line.rpartition(" ")[2])
    return int(total)


def check_quiet(world, when):
    """Refusals and wakes do not feed themselves: each pod may be tried once more for what has just happened."""
    first = attempts(world)
    time.sleep(QUIET_S)
    quiet = attempts(world) - first
    world.tap.note(f"{first} refusals {when}, {quiet} more in {QUIET_S} quiet seconds")
    world.tap.ok(quiet <= WAITING, f"while nothing is freed, hardly anybody asks: {when}", quiet)


def requeue(tap, version="current"):
    with World(tap, version, fleet={"start_s": (0, 0.1)}) as world:
        for number in range(NODES):
            world.node(f"n{number}", [CARD_UNITS] * CARDS)
        world.start()
        held = [f"held-{number}" for number in range(NODES * CARDS)]
        for name in held:
            world.pod(name, HELD_UNITS)
        world.await_running(held, nudge=True)
        clock = Clock()
        feed = PodFeed(world.client, [clock.observe])
        feed.start()
        feed.synced.wait(30)
        waiting = [f"w{number}" for number in range(WAITING)]
        for name in waiting:
            world.pod(name, WAITING_UNITS)
        for name in waiting:
            world.refusal(name, INSUFFICIENT)

        tap.ok(attempts(world) >= WAITING, "all were refused")
        check_quiet(world, "at first")

        first, wakes = attempts(world), world.metric("gpuledger_wakes_total")
        delays = []
        for number in range(WAITING):
            if number == WAITING // 2:
                check_quiet(world, "after many wakes")
            world.await_running([held[number]])
            world.fleet.finish(held[number])
            wait_for(lambda: len(clock.bound.keys() & set(waiting)) > number, 120, 0.01,
                     f"a pod takes the place of {held[number]}")
            held += sorted(clock.bound.keys() - set(held))
            delays.append(max(clock.bound[held[-1]] - clock.ended[held[number]], 0))
        vain = attempts(world) - first
        delays.sort()
        tap.note(
            f"{WAITING} rooms freed one by one: from free to bound {statistics.median(delays):.2f} s "
            f"(median), {delays[len(delays) * 9 // 10]:.2f} s (nine of ten), {delays[-1]:.2f} s (longest)"
        )
        tap.note(
            f"{vain} refusals, {vain / WAITING:.1f} for each waiting pod; "
            f"{world.metric('gpuledger_wakes_total') - wakes:.0f} woken by the extender"
        )
        feed.stop()
        world.verify()


def scenario_requeue(tap):
    """50 refused pods, room freed one by one."""
    requeue(tap)


def scenario_legacy_requeue(tap):
    """50 refused pods, room freed one by one, under Kubernetes 1.20."""
    requeue(tap, "legacy")


scenario_legacy_requeue.version = "legacy"
