#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods per second through kube-scheduler, with the extender and without it, in one run.

All pods wait before kube-scheduler is started; the rate is that between the first and the last of
them that a watch sees with a node. Both ways use the same configuration but for the extender, and
take turns, so that whatever else the machine does hits both. No node is played: no two pods are of
one size, so that none has to wait for the device plugin to tell it from another.

etcd's data is on tmpfs without fsync, kube-scheduler's client is not limited (--qps), everything shares one machine: the ratio is the result, not the rates. Where the processes
keep all cores busy, it is the ratio of the CPU time that a pod costs, which is printed by process;
kube-scheduler's start is part of it.
"""

import argparse
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from tap import Tap  # noqa: E402
from world import World, wait_for  # noqa: E402

CARDS, CARD_UNITS, SMALLEST = 4, 100_000, 1000
WANTED = 0.9


class Stopwatch(threading.Thread):
    """Notes when the watch shows the first and the last of `count` pods with a node."""

    def __init__(self, client, count):
        super().__init__(daemon=True)
        self._client = client
        self._count = count
        self._version = client.list("Pod")["metadata"]["resourceVersion"]
        self.times = []

    def run(self):
        bound = set()
        while len(bound) < self._count:
            # The server ends the watch of a reader that falls behind; it goes on from there.
            events = self._client.watch(
                "Pod", None, self._version, 300, fieldSelector="spec.nodeName!="
            )
            for kind, pod in events:
                self._version = pod["metadata"]["resourceVersion"]
                if kind == "ADDED" and pod["metadata"]["uid"] not in bound:
                    bound.add(pod["metadata"]["uid"])
                    self.times.append(time.monotonic())
                if len(bound) == self._count:
                    break

    def rate(self, timeout=300):
        self.join(timeout)
        if len(self.times) < self._count:
            sys.exit(f"only {len(self.times)} of {self._count} pods were bound")
        return (self._count - 1) / (self.times[-1] - self.times[0])


def cpu_seconds(world):
    """Used so far, by the name of the process."""
    processes = [*world.plane.processes(), world.extender]
    return {process.name: process.cpu_seconds() for process in processes}


def measure(world, count, extender, qps):
    """Pods per second, and milliseconds of CPU time per pod by process."""
    for number in range(count):
        world.pod(f"p{number}", SMALLEST + number)
    config = world.scheduler_config()
    config["clientConnection"] = {"qps": qps, "burst": 2 * qps}
    if not extender:
        del config["extenders"]
    stopwatch = Stopwatch(world.client, count)
    stopwatch.start()
    before = cpu_seconds(world)
    world.scheduler_start(config)
    rate = stopwatch.rate()
    after = cpu_seconds(world)
    world.plane.scheduler_stop()
    if extender:
        wait_for(lambda: world.ledger() == world.cluster(), 30, 0.2, "the ledger is right")
    world.client.delete_all("Pod")
    wait_for(lambda: not world.client.items("Pod"), 60, 0.2, "pods gone")
    wait_for(lambda: not world.ledger(), 30, 0.2, "the ledger is empty")
    cost = {name: (after[name] - before.get(name, 0)) * 1000 / count for name in after}
    return rate, cost


def describe(cost):
    return ", ".join(f"{name} {ms:.2f}" for name, ms in cost.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--qps",
        type=int,
        default=5000,
        help="calls that kube-scheduler makes a second at most; 50 unless it is configured",
    )
    arguments = parser.parse_args()
    rates = {True: [], False: []}
    costs = {True: [], False: []}
    with World(Tap(sys.stderr), played=False) as world:
        world.extender_start("--log-level=warn")
        for number in range(arguments.nodes):
            world.node(f"n{number}", [CARD_UNITS] * CARDS)
        measure(world, arguments.pods, True, arguments.qps)  # warms everything up; not counted
        for number in range(arguments.rounds):
            for extender in (True, False) if number % 2 else (False, True):
                rate, cost = measure(world, arguments.pods, extender, arguments.qps)
                rates[extender].append(rate)
                costs[extender].append(cost)
                way = "with" if extender else "without"
                print(f"{way} extender: {rate:.0f} pods/s; ms per pod: {describe(cost)}", flush=True)
    medians = {extender: statistics.median(values) for extender, values in rates.items()}
    ratio = medians[True] / medians[False]
    for extender, all_costs in costs.items():
        cost = {
            name: statistics.median(each[name] for each in all_costs) for name in all_costs[0]
        }
        print(f"median {'with' if extender else 'without'}, ms per pod: {describe(cost)}")
    print(
        f"{arguments.pods} pods, {arguments.nodes} nodes, median of {arguments.rounds}: "
        f"{medians[True]:.0f} with, {medians[False]:.0f} without, ratio {ratio:.2f} "
        f"(wanted: {WANTED})"
    )
    return 0 if ratio >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
