# SPDX-License-Identifier: Apache-2.0
"""A node whose device plugin is gone, and which looks like the best place for every pod."""

import re
import subprocess

from kubeapi import wait_for
from world import World, program

WANTED, UNITS = 8, 2


def phases(world, names):
    return [world.fleet.phase(name) for name in names]


def replace(world):
    """As a controller does, two at a time, until as many run as are wanted. All that were made."""
    names = []
    while phases(world, names).count("Running") < WANTED:
        new = [f"work-{len(names) + i}" for i in range(2)]
        for name in new:
            world.pod(name, UNITS)
        names += new
        wait_for(lambda: all(p in ("Running", "Failed") for p in phases(world, names)),
                 what=f"what becomes of {new}")
    return names


def left_out_events(world):
    listed = world.client.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events")
    return [event for event in listed["items"] if event["reason"] == "GPUNodeLeftOut"]


def resume_as_told(world, node):
    """The command that the audit prints for the node, as somebody runs it."""
    server = f"--server=http://127.0.0.1:{world.ops_port}"
    said = subprocess.run([program(), "audit", "-o", "wide", server], stdout=subprocess.PIPE, text=True, check=False).stdout
    [command] = set(re.findall(r"'gpuledger (resume [^']*)'", " ".join(said.split())))
    answer = subprocess.run([program(), *command.replace("NODE", node).split(), server], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False)
    world.tap.equal((answer.returncode, answer.stdout), (0, f"node {node} is asked again\n"), f"gpuledger {command}")


def scenario_rejects(tap):
    """At most one and three pods are lost, the others run elsewhere, people are told and can end it."""
    with World(tap) as world:
        world.start()
        world.node("n0", [20, 20])
        world.pod("anchor", 6)
        world.await_running(["anchor"])
        world.node("n1", [20, 20])
        world.fleet.kubelet("n0").unserved = True
        names = replace(world)
        lost = [name for name in names if world.fleet.phase(name) == "Failed"]
        tap.ok(0 < len(lost) <= 4, f"{len(lost)} pods are lost", lost)
        running = {world.card(name)[0] for name in names if name not in lost}
        tap.equal(running, {"n1"}, "the others run on the other node")
        tap.equal(world.metric("gpuledger_rejected_pods_total"), len(lost), "they are counted")
        tap.equal(world.metric("gpuledger_nodes_left_out"), 1, "the node is, too")
        wait_for(lambda: left_out_events(world), 120, 0.2, "an Event")
        event = left_out_events(world)[0]
        tap.equal((event["regarding"]["kind"], event["regarding"]["name"]), ("Node", "n0"),
                  f"the Node has an Event: {event['note']}")

        world.pod("large", 14)  # on n1 there is no card for it
        world.pod("larger", 14)
        world.refusal("larger", "left out for a while")
        world.fleet.kubelet("n0").unserved = False
        resume_as_told(world, "n0")
        world.await_running(["large", "larger"])
        tap.equal(world.metric("gpuledger_nodes_left_out"), 0, "the command that the audit prints ends it")
        world.verify("at last")
