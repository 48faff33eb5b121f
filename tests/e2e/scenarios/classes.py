# SPDX-License-Identifier: Apache-2.0
"""Classes of work on a real kube-scheduler: nobody beside training, also after a restart; interactive ends first."""

import json

from world import World

# Interactive pods are the more important ones, so that priorities alone would end the others.
PRIORITIES = {"interactive": 100, "inference": 10, "training": 50, "urgent": 1000}
CLASSES = {"interactive": {}, "inference": {}, "training": {"group": "optional"}}
NOT_BESIDE = "have holders that the pod's class shares none with"


def place(world, name, units, priority=None):
    """One after the other, so that each card is known."""
    world.pod(name, units, spec={"priorityClassName": priority} if priority else None)
    world.await_running([name])
    world.await_served([name])


def cards(world, names):
    return [world.card(name)[1] for name in names]


def scenario_classes(tap):
    """A slice waits rather than go beside training; a more important notebook ends before inference does."""
    with World(tap, fleet={"stop_s": (1, 1)}) as world:
        for name, value in PRIORITIES.items():
            world.client.create_priority_class(name, value)
        world.node("n1", [10, 10])
        world.extender_start(f"--classes={json.dumps(CLASSES)}")
        world.scheduler_start()
        place(world, "chat", 2, "interactive")
        place(world, "train", 2, "training")
        place(world, "slice", 6)
        tap.equal(cards(world, ["chat", "train", "slice"]), [0, 1, 0], "training has a card, the others share one")

        world.extender_stop()
        world.extender_start(f"--classes={json.dumps(CLASSES)}")
        world.pod("late", 4)
        said = world.refusal("late", NOT_BESIDE)
        tap.ok(NOT_BESIDE in said, "after a restart a slice waits, though the card of training has room", said)
        world.pod("train-2", 1, spec={"priorityClassName": "training"})
        tap.ok(NOT_BESIDE in world.refusal("train-2", NOT_BESIDE), "and so does training, though there is room beside slices")
        world.delete("train-2")
        world.delete("train")
        world.await_gone(["train"])
        world.await_running(["late"])
        tap.equal(cards(world, ["late"]), [1], "when it has ended the slice comes")

        world.node("n2", [10, 10])
        world.client.patch("Node", "n1", {"spec": {"unschedulable": True}})
        place(world, "served", 10, "inference")
        place(world, "notebook", 10, "interactive")
        tap.equal(cards(world, ["served", "notebook"]), [0, 1], "two full cards")
        world.pod("urgent", 10, spec={"priorityClassName": "urgent"})
        world.await_running(["urgent"])
        tap.equal(world.fleet.phase("served"), "Running", "inference goes on")
        tap.equal(world.card("urgent"), ("n2", 1), "the notebook has ended")
        world.verify()
