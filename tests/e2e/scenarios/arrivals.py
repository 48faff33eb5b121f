# SPDX-License-Identifier: Apache-2.0
"""Pods that wait for room are served in the order in which they were created."""

from feed import PodFeed
from kubeapi import wait_for
from world import World

ROOM = 5
PODS = 25


class Order:
    """In which order pods were seen to have a node."""

    def __init__(self):
        self.names = []

    def observe(self, kind, pod):
        name = pod["metadata"]["name"]
        if pod["spec"].get("nodeName") and name not in self.names:
            self.names.append(name)


def scenario_arrivals(tap):
    """Room for five of 25 pods that come at once, freed one by one: who was created first gets it,
    whoever asks first. A younger pod passes an older one that it does not delay."""
    with World(tap) as world:
        world.node("n1", [ROOM])
        world.extender_start("--arrival-hold=1h")
        config = world.scheduler_config()
        config.update(podInitialBackoffSeconds=1, podMaxBackoffSeconds=1)
        world.scheduler_start(config)
        order = Order()
        feed = PodFeed(world.client, [order.observe])
        feed.start()
        feed.synced.wait(30)
        names = [f"p{number:02}" for number in range(PODS)]
        for name in names:
            world.pod(name, 1)
        wait_for(lambda: len(order.names) == ROOM, what=f"{ROOM} pods have a node")
        # Who has not asked yet is passed.
        for name in set(names) - set(order.names):
            world.refusal(name, "0/1 nodes")
        for number in range(PODS - ROOM):
            world.await_running([order.names[number]], nudge=True)
            world.fleet.finish(order.names[number])
            wait_for(lambda: len(order.names) == number + 1 + ROOM, what="the next has its place")
        tap.equal(sorted(order.names[:ROOM]), names[:ROOM], "the first five have room together")
        tap.equal(order.names[ROOM:], names[ROOM:], "all others follow in the order of their creation")

        world.await_running(names[-ROOM:])
        for name in names[-ROOM:]:
            world.fleet.finish(name)
        world.pod("holder", 3)
        world.await_running(["holder"], nudge=True)
        world.pod("older", 3)
        said = world.refusal("older", "Insufficient")
        world.pod("younger", 2)
        world.await_running(["younger"], nudge=True)
        tap.equal(world.fleet.phase("older"), "Pending", f"a younger pod uses what is left: {said}")
        world.fleet.finish("holder")
        world.await_running(["older"], nudge=True)
        tap.equal(world.fleet.phase("younger"), "Running", "and delays nobody by that")
        feed.stop()
        world.verify()
