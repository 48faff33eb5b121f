# SPDX-License-Identifier: Apache-2.0
"""Pods of mixed sizes that come, end, are deleted, and come back under their old names."""

import random
import threading

from gpushare import BEHAVIOURS
from kubeapi import ApiError, wait_for
from world import SEED, World

NODES = 12
CARDS = 4
CARD_UNITS = 16
SIZES = (1, 2, 3, 4, 4, 4, 6, 8, 11, 16)
SLOTS = 180
BOUND = 2 * SLOTS


class Churn(threading.Thread):
    """Keeps a set of names alive, as a StatefulSet does: what is gone is made again."""

    def __init__(self, world, number, slots, over):
        super().__init__(daemon=True)
        self._world = world
        self._random = random.Random(f"{SEED}/{number}")
        self._slots = slots
        self._over = over
        self.created = 0
        self.troubles = []

    def run(self):
        while not self._over.wait(0.02):
            try:
                self._step(self._random.choice(self._slots))
            except (ApiError, KeyError) as error:
                # The pod moved on between look and act.
                if isinstance(error, ApiError) and error.code not in (404, 409):
                    self.troubles.append(repr(error))

    def _step(self, name):
        phase = self._world.fleet.phase(name)
        if phase is None:
            self._world.pod(name, self._random.choice(SIZES))
            self.created += 1
        elif phase in ("Succeeded", "Failed"):
            self._world.client.delete("Pod", name)
        elif phase == "Running":
            what = self._random.random()
            if what < 0.12:
                self._world.fleet.finish(name)
            elif what < 0.24:
                self._world.delete(name)
            elif what < 0.27:
                # Forced: the object is gone at once, and its name is free.
                self._world.client.delete("Pod", name)
        elif self._random.random() < 0.05:
            self._world.delete(name)


def scenario_churn(tap):
    """Churn until each name has been bound twice or so, over 48 cards with all three plugins side by side."""
    with World(tap, fleet={"shuffled": True, "window_s": 0.1}) as world:
        for number in range(NODES):
            behaviour = sorted(BEHAVIOURS)[number % len(BEHAVIOURS)]
            world.node(f"n{number}", [CARD_UNITS] * CARDS, behaviour)
        world.start()
        over = threading.Event()
        names = [f"web-{number}" for number in range(SLOTS)]
        workers = [Churn(world, number, names[number::3], over) for number in range(3)]
        for worker in workers:
            worker.start()
        try:
            wait_for(lambda: world.audit.bound >= BOUND, 400, 0.5, f"{BOUND} pods are bound")
        finally:
            over.set()
        for worker in workers:
            worker.join()
        tap.equal([trouble for worker in workers for trouble in worker.troubles], [], "no trouble")
        created = sum(worker.created for worker in workers)
        tap.ok(world.audit.bound >= BOUND, f"{world.audit.bound} of {created} pods were placed")
        world.await_quiet(1)
        world.verify()
