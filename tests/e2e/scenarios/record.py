# SPDX-License-Identifier: Apache-2.0
"""What the extender records on a real control plane is decided again, byte for byte."""

import http.client
import json
import pathlib
import random
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

from scenarios.failures import CARD_UNITS, CARDS, NODES, PODS, UNITS, Burst, nodes
from scenarios.preemption import CLASSES, create_budget, create_classes
from world import ApiError, World, program


def replay(tap, record, what):
    """The summary; every decision of the record is equal."""
    answer = subprocess.run([program(), "replay", "-o", "json", record], capture_output=True,
                            text=True, timeout=120, check=False)
    tap.equal((answer.returncode, answer.stderr), (0, ""), f"{what}: every decision is equal")
    said = json.loads(answer.stdout or "{}")
    tap.equal((said.get("different"), said.get("unchecked")), (0, 0), f"{what}: all are compared")
    tap.note(f"{what}: {said.get('events')} events, {said.get('compared')} decisions")
    return said


class Repeater:
    """Binds pods once more that kube-scheduler has bound or is binding, there or elsewhere."""

    def __init__(self, world):
        self._world = world
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answered = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        chance = random.Random(1)
        while not self._stop.wait(0.02):
            try:
                pod = chance.choice(self._world.client.items("Pod"))
                self._bind(pod["metadata"], pod["spec"].get("nodeName") or "n0")
                self.answered += 1
            except (OSError, IndexError, http.client.HTTPException, ApiError):
                pass  # nobody is there, or nothing

    def _bind(self, meta, node):
        body = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"],
                "Node": node}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._world.port}/gpushare-scheduler/bind",
            data=json.dumps(body).encode(), method="POST",
            headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            reply.read()


def fill_and_preempt(world):
    """Until nothing is free; then for each of some more important pods others end."""
    rest = [f"rest-{number}" for number in range(NODES * CARDS * CARD_UNITS // UNITS - PODS)]
    for name in rest:
        world.pod(name, UNITS)
    world.await_running(rest, nudge=True)
    create_budget(world, "guarded")
    urgent = [f"urgent-{number}" for number in range(10)]
    for number, name in enumerate(urgent):
        priority = list(CLASSES)[number % len(CLASSES)]
        world.pod(name, 2 * UNITS, spec={"priorityClassName": priority})
    world.await_running(urgent, nudge=True)


def preempted(record):
    """Of the calls of preempt in a record: how many there are, and how many named victims."""
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    replies = [line["reply"] for line in lines if line.get("verb") == "preempt"]
    return len(replies), sum(any(node["Pods"] for node in reply["NodeNameToMetaVictims"].values())
                             for reply in replies)


def scenario_record(tap):
    """Repeated binds, a kill -9 of the extender and of the API server, preemption: two records."""
    with tempfile.TemporaryDirectory() as directory, \
            World(tap, fleet={"shuffled": True, "window_s": 0.1, "stop_s": (1, 1)}, own=True) as world:
        record = pathlib.Path(directory) / "record"
        old = pathlib.Path(directory) / "record.1"
        nodes(world)
        create_classes(world)
        world.client.create_priority_class("least", -1)  # the first to end, but for the budget
        world.start(f"--record={record}")
        with Repeater(world) as repeater:
            with Burst(world) as burst:
                burst.await_bound(60)
                world.extender_stop(signal.SIGKILL)
                world.extender_start(f"--record={record}")
            world.await_running(burst.names, nudge=True)
        tap.ok(repeater.answered > 10, f"{repeater.answered} binds were repeated")
        for name in burst.names[:60]:
            world.delete(name)
        world.await_gone(burst.names[:60])
        late = [f"late-{number}" for number in range(60)]
        world.fleet.pause()
        for name in late:
            world.pod(name, UNITS, labels={"app": "guarded"}, spec={"priorityClassName": "least"})
        time.sleep(0.2)
        world.plane.apiserver_stop(signal.SIGKILL)
        time.sleep(2)
        world.plane.apiserver_start()
        world.fleet.resume()
        world.await_running(late, nudge=True)
        fill_and_preempt(world)
        tap.equal([name for name in late if world.fleet.phase(name) != "Running"], [],
                  "no pod has ended that the budget guards")
        world.verify()
        world.extender_stop()
        killed, ended = replay(tap, old, "killed"), replay(tap, record, "ended")
        tap.equal((killed.get("ended"), ended.get("ended")), (False, True), "one has its last line")
        tap.ok(killed.get("bindLooks", 0) >= 60 and ended.get("bindLooks", 0) >= 120,
               "both hold the binds", f"{killed} {ended}")
        calls, victims = preempted(record)
        # A pod may find what was freed for another one, so there need not be a call for each.
        tap.ok(victims >= 3, f"{calls} calls of preempt are in it, {victims} named somebody")
        tap.ok('"kind":"budget"' in record.read_text(), "and the budget")
