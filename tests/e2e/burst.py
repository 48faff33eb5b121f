#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bursts of equal pods through kube-scheduler, as a Deployment makes them, beside what the same burst
does without an extender, in one run.

    still    no device plugin acts: 100 pods, 100 nodes; with prioritize and without
    instant  the plugin takes each pod at once: 1,000 pods, 200 nodes; pods a second, with
             kube-scheduler's client as it is shipped and with its limits lifted
    slow     the plugin takes 0.4 s for a pod, one at a time: 200 pods, 20 nodes
    full     the same plugin: 1,000 pods, 20 nodes that hold 320 of them; once they run, one ends every
             50 ms until all have run. Of pods of 8 units kube-scheduler knows by sums when a node is
             full, of pods of 6 only the extender does. Refusals for each pod that had to wait, and how
             long after the n-th room the n-th of them was bound
    plain    200 pods without a GPU, each of which fills a node without: whether kube-scheduler reuses
             what it has found out about the last pod (opportunistic batching), by its own metrics

All pods wait before kube-scheduler is started; times count from the first of them that has a node.
The node is played by what it writes: the plugin's "assigned" into the pod that waits for it, then
kubelet's status. Without the extender it writes the same. etcd's data is on tmpfs without fsync,
everything shares one machine: the ratios are the result. --program may name several binaries, which
take turns.
"""

import argparse
import collections
import os
import pathlib
import queue
import re
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from tap import Tap  # noqa: E402
from throughput import Null  # noqa: E402
from world import World, wait_for  # noqa: E402
from gpushare import ASSIGNED, ASSUME_TIME  # noqa: E402
from kubeapi import ApiError  # noqa: E402
from kubelet import now_rfc3339  # noqa: E402

CARDS, CARD_UNITS, UNITS = 8, 16, 2
UNLIMITED = 5000
DEFAULT_QPS = 50  # with a burst of 100: kube-scheduler's clientConnection unless it is configured
WRITERS = 8
DEPARTURE_S = 11


class Plugins(threading.Thread):
    """Sees pods bound, and writes what the plugin of each node writes, `pace` seconds for each; None:
    nobody writes."""

    def __init__(self, world, pace, count):
        super().__init__(daemon=True)
        self._world, self._pace, self._count = world, pace, count
        self._version = world.client.list("Pod")["metadata"]["resourceVersion"]
        self._lock = threading.Lock()
        self._lines = collections.defaultdict(collections.deque)
        self._busy = set()
        self._work = queue.Queue()
        self.nodes = {}
        self.bound, self.served, self.names = [], [], []
        self.stopped = False
        if pace is not None:
            for _ in range(WRITERS):
                threading.Thread(target=self._write, daemon=True).start()

    def run(self):
        client = self._world.plane.client()
        while not self.stopped:
            events = client.watch("Pod", None, self._version, 300, fieldSelector="spec.nodeName!=")
            for kind, pod in events:
                self._version = pod["metadata"]["resourceVersion"]
                name = pod["metadata"]["name"]
                if kind == "ADDED" and name not in self.nodes:
                    self.bound.append(time.monotonic())
                    self.nodes[name] = pod["spec"]["nodeName"]
                    if self._pace is not None:
                        self._arrive(pod["spec"]["nodeName"], name)
                if self.stopped:
                    return

    def _arrive(self, node, name):
        with self._lock:
            self._lines[node].append(name)
            self._next(node)

    def _next(self, node):
        """Under the lock: a plugin serves one pod at a time."""
        if node in self._busy or not self._lines[node]:
            return
        self._busy.add(node)
        name = self._lines[node].popleft()
        if self._pace:
            timer = threading.Timer(self._pace, self._work.put, [(node, name)])
            timer.daemon = True
            timer.start()
        else:
            self._work.put((node, name))

    def _write(self):
        client = self._world.plane.client()
        while True:
            node, name = self._work.get()
            words = {ASSIGNED: "true", ASSUME_TIME: str(time.time_ns())}
            status = {"startTime": now_rfc3339(), "phase": "Running"}
            try:
                client.annotate("Pod", name, words)
                client.patch("Pod", name, {"status": status}, subresource="status")
            except ApiError:
                pass  # it is gone
            with self._lock:
                self.served.append(time.monotonic())
                self.names.append(name)
                self._busy.discard(node)
                self._next(node)

    def times(self):
        return self.bound if self._pace is None else self.served


def batch_attempts(text):
    """How often kube-scheduler has tried to reuse its results, by what came of it."""
    found = {}
    for line in text.splitlines():
        match = re.match(r'scheduler_batch_attempts_total\{.*result="(\w+)".*\} ([0-9.e+]+)', line)
        if match:
            found[f"batch {match[1]}"] = int(float(match[2]))
    return found


def clear(world, pace):
    """Pods that nobody has served are waited for a while longer (src/gate/waits/departures.h)."""
    world.client.delete_all("Pod")
    wait_for(lambda: not world.client.items("Pod"), 60, 0.2, "pods gone")
    wait_for(lambda: not world.ledger(), 30, 0.2, "the ledger is empty")
    if pace is None:
        time.sleep(DEPARTURE_S)


def bind_results(world):
    """{result: how many binds have ended so}."""
    text = world.ops("/metrics", raw=True).decode()
    found = re.findall(r'gpuledger_binds_total\{result="(\w+)"\} (\d+)', text)
    return {f"binds {result}": int(n) for result, n in found}


class Even:
    """What there is to win: the pods are bound evenly, by nobody's decision, all at once; then only the
    plugins and this file take time."""

    def __init__(self, world, pods, units, pace):
        self.world, self.pods, self.units, self.pace = world, pods, units, pace

    def run(self):
        world = self.world
        nodes = [node["metadata"]["name"] for node in world.client.items("Node")]
        for number in range(self.pods):
            world.pod(f"p{number}", self.units)
        plugins = Plugins(world, self.pace, self.pods)
        plugins.start()
        for number in range(self.pods):
            world.client.bind(f"p{number}", nodes[number % len(nodes)])
        wait_for(lambda: len(plugins.served) >= self.pods, 60, 0.01, "pods served")
        plugins.stopped = True
        last = max(plugins.served) - min(plugins.bound)
        clear(world, self.pace)
        return {"done": len(plugins.served), "last s": round(last, 2)}


def cpu_seconds(world, null):
    """Used so far, by the name of the process; "player": by this one."""
    processes = [*world.plane.processes(), world.extender, *([null.process] if null else [])]
    used = {process.name: process.cpu_seconds() for process in processes}
    return {**used, "player": time.process_time()}


class Burst:
    """One way to do it; `null`: an extender that knows nothing (throughput.py) in gpuledger's place."""

    def __init__(self, world, pods, units=UNITS, pace=None, extender=True, prioritize=True,
                 qps=UNLIMITED, limit=60, spec=None, spread=True, null=None):
        self.spec, self.spread, self.null = spec, spread, null
        self.world, self.pods, self.units, self.pace = world, pods, units, pace
        self.extender, self.prioritize, self.qps, self.limit = extender, prioritize, qps, limit

    def config(self):
        config = self.world.scheduler_config()
        config["clientConnection"] = {"qps": self.qps, "burst": 2 * self.qps}
        if not self.spread:
            config["profiles"] = [
                {
                    "schedulerName": "default-scheduler",
                    "pluginConfig": [
                        {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}
                    ],
                }
            ]
        if not self.extender:
            del config["extenders"]
        elif not self.prioritize:
            for entry in config["extenders"]:
                entry.pop("prioritizeVerb", None)
                entry.pop("weight", None)
            config["extenders"] = config["extenders"][:1]
        return self.null.config(config) if self.null else config

    def run(self):
        """The figures, as a dictionary."""
        world = self.world
        for number in range(self.pods):
            world.pod(f"p{number}", self.units, spec=self.spec)
        plugins = Plugins(world, self.pace, self.pods)
        plugins.start()
        if self.null:
            self.null.start()
        before, before_cpu = bind_results(world), cpu_seconds(world, self.null)
        world.scheduler_start(self.config())
        deadline = time.monotonic() + self.limit
        while len(plugins.times()) < self.pods and time.monotonic() < deadline:
            time.sleep(0.01)
        done, bound = sorted(plugins.times()), sorted(plugins.bound)
        batches = batch_attempts(world.plane.scheduler_metrics())
        cpu = {name: round((used - before_cpu.get(name, 0)) * 1000 / self.pods, 2)
               for name, used in cpu_seconds(world, self.null).items()}
        world.plane.scheduler_stop()
        if self.null:
            self.null.stop()
        plugins.stopped = True
        first = bound[0] if bound else 0
        spread = collections.Counter(plugins.nodes.values())
        figures = {
            "done": len(done),
            "bound": len(bound),
            "within 2 s": sum(moment - first <= 2 for moment in done),
            "last s": round(done[-1] - first, 2) if done else None,
            "pods/s": round((len(done) - 1) / max(done[-1] - done[0], 1e-3)) if done else 0,
            "nodes": len(spread),
            "most on one": max(spread.values(), default=0),
            **{f"{name} ms/pod": ms for name, ms in cpu.items()},
            **{key: n - before[key] for key, n in bind_results(world).items() if n > before[key]},
            **batches,
        }
        clear(world, self.pace)
        return figures


def refusals(text):
    """How often kube-scheduler has tried a pod in vain: found no node, or could not bind it."""
    found = re.findall(r'scheduler_schedule_attempts_total\{.*result="(\w+)".*\} ([0-9.e+]+)', text)
    return sum(int(float(n)) for result, n in found if result != "scheduled")


class Crowd(Burst):
    """More pods than there is room for."""

    PAUSE = 0.05

    def __init__(self, world, pods, room, units, **options):
        super().__init__(world, pods, units, pace=0.4, limit=240, **options)
        self.room = room

    def run(self):
        world, rooms = self.world, []
        for number in range(self.pods):
            world.pod(f"p{number}", self.units)
        plugins = Plugins(world, self.pace, self.pods)
        plugins.start()
        before, before_cpu = bind_results(world), world.extender.cpu_seconds()
        world.scheduler_start(self.config())
        start = time.monotonic()
        wait_for(lambda: len(plugins.names) >= self.room, self.limit, 0.05, "the nodes are full")
        filled = time.monotonic() - start
        # Until everybody has been refused once.
        wait_for(lambda: refusals(world.plane.scheduler_metrics()) >= self.pods - self.room,
                 self.limit, 0.5, "the rest is refused")
        at_first, ended = refusals(world.plane.scheduler_metrics()), 0
        deadline = time.monotonic() + self.limit
        while len(plugins.names) < self.pods and time.monotonic() < deadline:
            if ended < len(plugins.names):
                status = {"status": {"phase": "Succeeded"}}
                rooms.append(time.monotonic())
                world.client.patch("Pod", plugins.names[ended], status, subresource="status")
                ended += 1
            time.sleep(self.PAUSE)
        later = sorted(plugins.bound)[self.room :]
        delays = sorted(bound - room for bound, room in zip(later, rooms))
        waiting = self.pods - self.room
        refused = refusals(world.plane.scheduler_metrics())
        gpuledger_cpu = world.extender.cpu_seconds()
        world.plane.scheduler_stop()
        plugins.stopped = True
        figures = {
            "done": len(plugins.names),
            "filled s": round(filled, 1),
            "last s": round(plugins.served[-1] - rooms[0], 1),
            "refusals a pod, at first": round(at_first / waiting, 2),
            "refusals a pod": round(refused / waiting, 2),
            "room to bound s, median": round(delays[len(delays) // 2], 2),
            "of nine in ten": round(delays[len(delays) * 9 // 10], 2),
            "longest": round(delays[-1], 2),
            "woken": world.metric("gpuledger_wakes_total"),
            "gpuledger ms/pod": round((gpuledger_cpu - before_cpu) * 1000 / self.pods, 2),
            **{key: n - before[key] for key, n in bind_results(world).items() if n > before[key]},
        }
        clear(world, self.pace)
        return figures


def beside(world, null, pods, **options):
    """Without an extender, with one that knows nothing if its binary is given, and with gpuledger."""
    ways = {"without": Burst(world, pods, extender=False, **options)}
    if null:
        ways["null"] = Burst(world, pods, null=Null(world, null), **options)
    return {**ways, "with": Burst(world, pods, **options)}


def ways_of(case, world, null):
    """{name: Burst}; the first is what the others are held to."""
    if case == "still":
        return 100, {
            "without": Burst(world, 100, extender=False),
            "with": Burst(world, 100, limit=20),
            "without prioritize": Burst(world, 100, prioritize=False, limit=20),
        }
    if case == "instant":
        return 200, beside(world, null, 1000, pace=0)
    if case == "limited":
        return 200, beside(world, null, 1000, pace=0, qps=DEFAULT_QPS)
    if case == "slow":
        return 20, {
            "bound evenly": Even(world, 200, UNITS, 0.4),
            "without": Burst(world, 200, pace=0.4, extender=False),
            "with": Burst(world, 200, pace=0.4),
            "without prioritize": Burst(world, 200, pace=0.4, prioritize=False),
        }
    if case == "full":
        return 20, {
            "without, 8 units": Crowd(world, 1000, 320, 8, extender=False),
            "with, 8 units": Crowd(world, 1000, 320, 8),
            "with, 6 units": Crowd(world, 1000, 320, 6),
        }
    if case == "plain":
        limits = {"cpu": "3"}
        spec = {
            "containers": [
                {
                    "name": "c",
                    "image": "example.com/none:1",
                    "resources": {"limits": limits, "requests": limits},
                }
            ]
        }
        return 200, {
            "without": Burst(world, 200, extender=False, spec=spec),
            "with": Burst(world, 200, spec=spec),
            "without, no default spread": Burst(world, 200, spec=spec, extender=False, spread=False),
            "with, no default spread": Burst(world, 200, spec=spec, spread=False),
        }
    sys.exit(f'no case "{case}"')


def summarize(runs):
    keys = {key: None for run in runs for key in run}
    return {key: statistics.median(run.get(key) or 0 for run in runs) for key in keys}


def measure(case, programs, rounds, arguments, null):
    results = collections.defaultdict(list)
    for number in range(rounds):
        for program in programs:
            os.environ["GPULEDGER"] = program
            with World(Tap(sys.stderr), played=False) as world:
                world.extender_start("--log-level=error", *arguments)
                nodes, ways = ways_of(case, world, null)
                for node in range(nodes):
                    if case == "plain":
                        world.client.make_node(f"n{node}", {"cpu": "4"})
                    else:
                        world.node(f"n{node}", [CARD_UNITS] * CARDS)
                for name, burst in ways.items():
                    label = name if len(programs) == 1 else f"{name} [{program}]"
                    figures = {**burst.run(), "load": round(os.getloadavg()[0], 1)}
                    results[label].append(figures)
                    print(f"{case}, round {number + 1}, {label}: {figures}", flush=True)
    for label, runs in results.items():
        print(f"{case}, median of {rounds}, {label}: {summarize(runs)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=["still", "instant", "limited", "slow", "full", "plain"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", action="append", default=[])
    parser.add_argument("--option", action="append", default=[], help="for gpuledger serve")
    parser.add_argument("--null", help="the null extender's binary; a way of instant and limited")
    arguments = parser.parse_args()
    programs = arguments.program or [os.environ.get("GPULEDGER", "")]
    for case in arguments.cases:
        measure(case, programs, arguments.rounds, arguments.option, arguments.null)
    return 0


if __name__ == "__main__":
    sys.exit(main())
