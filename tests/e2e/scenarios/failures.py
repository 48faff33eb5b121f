# SPDX-License-Identifier: Apache-2.0
"""The extender or the API server goes away in the middle of things."""

import signal
import threading
import time

from world import World

NODES = 10
CARDS = 4
PODS = 150
UNITS = 4
CARD_UNITS = 16


class Burst:
    """Pods that arrive over a few seconds, from a thread of their own."""

    def __init__(self, world, pause_s=0.01):
        self.names = [f"p{number}" for number in range(PODS)]
        self._world = world
        self._pause_s = pause_s
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join()

    def _run(self):
        for name in self.names:
            self._world.pod(name, UNITS)
            time.sleep(self._pause_s)

    def await_bound(self, count):
        while self._world.audit.bound < count:
            time.sleep(0.005)


def nodes(world):
    for number in range(NODES):
        world.node(f"n{number}", [CARD_UNITS] * CARDS)


def scenario_kill(tap):
    """kill -9 of the extender in the middle of a burst, three times."""
    with World(tap, fleet={"shuffled": True, "window_s": 0.1}) as world:
        nodes(world)
        world.start()
        with Burst(world) as burst:
            for bound in (20, 60, 100):
                burst.await_bound(bound)
                world.extender_stop(signal.SIGKILL)
                tap.note(f"killed with {world.audit.bound} pods bound")
                time.sleep(0.3)
                world.extender_start()
        world.await_running(burst.names, nudge=True)
        tap.ok(True, f"all {PODS} pods run")
        world.verify()


def scenario_drain(tap):
    """SIGTERM in the middle of a burst: calls under way are answered, nothing is lost."""
    with World(tap, fleet={"shuffled": True, "window_s": 0.1}) as world:
        nodes(world)
        world.start()
        with Burst(world) as burst:
            for bound in (20, 60, 100):
                burst.await_bound(bound)
                tap.equal(world.extender_stop(signal.SIGTERM), 0, "it ends by itself after SIGTERM")
                world.extender_start()
        world.await_running(burst.names, nudge=True)
        tap.ok(True, f"all {PODS} pods run")
        world.verify()
        log = world.extender.log.read_text()
        tap.ok("drain" in log or "shutting down" in log or "stop" in log, "the log says so", log[-2000:])


def scenario_apiserver(tap):
    """kube-apiserver is restarted in the middle of a burst, once cleanly and once by kill -9."""
    with World(tap, fleet={"shuffled": True, "window_s": 0.1}, own=True) as world:
        nodes(world)
        world.start()
        names = []
        for round_number, how in enumerate((signal.SIGTERM, signal.SIGKILL)):
            part = [f"r{round_number}-{number}" for number in range(60)]
            # Without the API server the plugin could not match, which is its own affair.
            world.fleet.pause()
            for name in part:
                world.pod(name, UNITS)
            time.sleep(0.2)
            world.plane.apiserver_stop(how)
            tap.note(f"API server stopped, {world.audit.bound} pods seen bound")
            time.sleep(2)
            tap.ok(world.extender.pid() is not None, "the extender lives on")
            world.plane.apiserver_start()
            world.fleet.resume()
            names += part
            world.await_running(names, nudge=True)
            tap.ok(True, f"all {len(names)} pods run")
            # A pod that kubelet has not admitted for a minute is waited for no more (src/gate/waits/waits.h). On a machine
            # on which the API server takes so long to start, the next one of its size may get its card.
            ended = world.metric("gpuledger_waits_ended_total")
            tap.note(f"{ended:.0f} waits ended meanwhile")
            world.verify(f"after {how.name}", may_swap=ended > 0)
