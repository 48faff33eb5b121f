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


class Pods:
    """What the API server has shown: when each pod had a node, when it ended, how often it was woken."""

    def __init__(self):
        self.bound = {}
        self.ended = {}
        self.wakes = {}

    def observe(self, kind, pod):
        name, now = pod["metadata"]["name"], time.monotonic()
        if pod["spec"].get("nodeName"):
            self.bound.setdefault(name, now)
        if pod["status"].get("phase") == "Succeeded":
            self.ended.setdefault(name, now)
        woken = pod["metadata"].get("annotations", {}).get("gpuledger.io/woken")
        if woken:
            self.wakes.setdefault(name, set()).add(woken)

    def count_wakes(self):
        return sum(len(times) for times in self.wakes.values())


def attempts(world):
    """How often kube-scheduler has found no place for a pod."""
    total = 0
    for line in world.plane.scheduler_metrics().splitlines():
        if line.startswith("scheduler_schedule_attempts_total") and '"unschedulable"' in line:
            total += float(line.rpartition(" ")[2])
    return int(total)


def check_quiet(world, pods, when, under_way):
    """Refusals and wakes do not feed themselves. How often kube-scheduler asks by itself depends on how busy
    the machine is; what the program adds to that are its wakes."""
    first, wakes = attempts(world), pods.count_wakes()
    time.sleep(QUIET_S)
    quiet, woken = attempts(world) - first, pods.count_wakes() - wakes
    world.tap.note(f"{first} refusals {when}, {quiet} more in {QUIET_S} quiet seconds, in which {woken} were woken")
    world.tap.ok(woken <= under_way, f"while nothing is freed, nobody is woken: {when}", woken)


def requeue(tap, version="current"):
    with World(tap, version, fleet={"start_s": (0, 0.1)}) as world:
        for number in range(NODES):
            world.node(f"n{number}", [CARD_UNITS] * CARDS)
        world.start()
        held = [f"held-{number}" for number in range(NODES * CARDS)]
        for name in held:
            world.pod(name, HELD_UNITS)
        world.await_running(held, nudge=True)
        pods = Pods()
        feed = PodFeed(world.client, [pods.observe])
        feed.start()
        feed.synced.wait(30)
        waiting = [f"w{number}" for number in range(WAITING)]
        for name in waiting:
            world.pod(name, WAITING_UNITS)
        for name in waiting:
            world.refusal(name, INSUFFICIENT)

        tap.ok(attempts(world) >= WAITING, "all were refused")
        check_quiet(world, pods, "at first", 0)

        first = attempts(world)
        delays = []
        for number in range(WAITING):
            if number == WAITING // 2:
                check_quiet(world, pods, "after many wakes", 1)  # one before whose write the room was taken
            world.await_running([held[number]])
            world.fleet.finish(held[number])
            wait_for(lambda: len(pods.bound.keys() & set(waiting)) > number, 120, 0.01,
                     f"a pod takes the place of {held[number]}")
            held += sorted(pods.bound.keys() - set(held))
            delays.append(max(pods.bound[held[-1]] - pods.ended[held[number]], 0))
        vain = attempts(world) - first
        delays.sort()
        tap.note(
            f"{WAITING} rooms freed one by one: from free to bound {statistics.median(delays):.2f} s "
            f"(median), {delays[len(delays) * 9 // 10]:.2f} s (nine of ten), {delays[-1]:.2f} s (longest)"
        )
        tap.note(
            f"{vain} refusals, {vain / WAITING:.1f} for each waiting pod; "
            f"{pods.count_wakes()} woken by the extender"
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
