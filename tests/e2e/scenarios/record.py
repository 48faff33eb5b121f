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

from scenarios.failures import UNITS, Burst, nodes
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
            data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as reply:
            reply.read()


def scenario_record(tap):
    """Bursts with repeated binds, a kill -9 of the extender and of the API server: two records."""
    with tempfile.TemporaryDirectory() as directory, \
            World(tap, fleet={"shuffled": True, "window_s": 0.1}) as world:
        record = pathlib.Path(directory) / "record"
        old = pathlib.Path(directory) / "record.1"
        nodes(world)
        world.start(f"--record={record}")
        with Repeater(world) as repeater:
            with Burst(world) as burst:
                burst.await_bound(60)
                world.extender_stop(signal.SIGKILL)
                world.extender_start(f"--record={record}")
            world.await_running(burst.names, 120, nudge=True)
        tap.ok(repeater.answered > 10, f"{repeater.answered} binds were repeated")
        for name in burst.names[:60]:
            world.delete(name)
        world.await_gone(burst.names[:60])
        late = [f"late-{number}" for number in range(60)]
        world.fleet.pause()
        for name in late:
            world.pod(name, UNITS)
        time.sleep(0.2)
        world.plane.apiserver_stop(signal.SIGKILL)
        time.sleep(2)
        world.plane.apiserver_start()
        world.fleet.resume()
        world.await_running(late, 120, nudge=True)
        world.verify()
        world.extender_stop()
        killed, ended = replay(tap, old, "killed"), replay(tap, record, "ended")
        tap.equal((killed.get("ended"), ended.get("ended")), (False, True), "one has its last line")
        tap.ok(killed.get("bindLooks", 0) >= 60 and ended.get("bindLooks", 0) >= 120,
               "both hold the binds", f"{killed} {ended}")
