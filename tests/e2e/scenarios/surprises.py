# SPDX-License-Identifier: Apache-2.0
"""What users, administrators and other programs do to pods and nodes behind our back."""

from gpushare import ASSIGNED, ASSUME_TIME, IDX, POD
from kubeapi import wait_for
from world import INSUFFICIENT, World


def scenario_annotations(tap):
    """Annotations that come with the pod's template, are edited, or get lost."""
    with World(tap) as world:
        world.start()
        world.node("n1", [16000, 16000])
        forged = {IDX: "7", POD: "1", ASSIGNED: "true", ASSUME_TIME: "5"}
        world.pod("forged", 10000, annotations=forged)
        world.await_running(["forged"])
        annotations = world.client.get("Pod", "forged")["metadata"]["annotations"]
        tap.equal((annotations[IDX], annotations[POD]), ("0", "10000"), "forged ones are replaced")

        def used():
            node = world.ops("/api/v1/nodes/n1")
            held = [card["memoryUsedBytes"] for card in node["cards"]] + [node["unplacedMemoryBytes"]]
            return [amount // node["memoryUnitBytes"] for amount in held]

        world.client.annotate("Pod", "forged", {IDX: None})
        world.await_pods_known()
        tap.equal(used(), [10000, 0, 0], "a lost card is not free, and the other is")
        world.pod("big", 8000)
        world.await_running(["big"])
        tap.equal(world.card("big"), ("n1", 1), "beside it")

        for text in ("1", "0,1", "-1", "9", "zero", ""):
            world.client.annotate("Pod", "forged", {IDX: text})
            world.await_pods_known()
            tap.equal(used(), [10000, 8000, 0], f'index "{text}" moves nothing')
        world.client.annotate("Pod", "forged", {IDX: "0", POD: "1"})
        world.verify_pods()
        wait_for(lambda: world.ledger() == world.cluster(), what="the ledger has seen it")
        tap.equal(world.ledger(), world.cluster(), "amounts are those of the containers")


def scenario_nodes(tap):
    """A node's object is deleted and made again while its pods run."""
    with World(tap) as world:
        world.start()
        world.node("n1", [10, 10])
        world.pod("a", 8)
        world.await_running(["a"])
        node = world.client.get("Node", "n1")
        world.client.delete("Node", "n1")
        world.pod("b", 8)
        said = world.refusal("b", "no nodes available")
        tap.equal(world.card("b"), None, f"nowhere to go: {said}")
        held = world.cluster()
        wait_for(lambda: world.ledger() == held, what="the pod counts without its node")
        tap.ok(True, "the pod counts without its node")
        meta = {"name": "n1", "labels": node["metadata"]["labels"]}
        world.client.create({**node, "metadata": meta})
        world.await_running(["b"], nudge=True)
        tap.equal(world.card("b"), ("n1", 1), "its card is still taken when the node is back")
        world.fleet.finish("a")
        world.pod("c", 10)
        world.await_running(["c"], nudge=True)
        tap.equal(world.card("c"), ("n1", 0), "and free when it ends")
        world.verify()


def scenario_preemption(tap):
    """A pod of higher priority takes the card of one of lower priority, once that is gone."""
    with World(tap, fleet={"stop_s": (1, 1)}) as world:
        world.start()
        for name, value in (("low", 1), ("high", 1000)):
            world.client.create_priority_class(name, value)
        world.node("n1", [10, 10])
        for name in ("a", "b"):
            world.pod(name, 8, spec={"priorityClassName": "low"})
            world.await_running([name])
        world.pod("urgent", 8, spec={"priorityClassName": "high"})
        world.await_running(["urgent"], nudge=True)
        left = [name for name in ("a", "b") if world.fleet.phase(name) == "Running"]
        tap.equal(len(left), 1, "one of the two had to go")
        world.verify()


def given_up(world):
    """Binds of which kube-scheduler has not awaited the answer."""
    return world.plane.log("kube-scheduler").read_text().count("Client.Timeout exceeded")


def scenario_impatient(tap):
    """kube-scheduler gives up on binds that wait for the node side, and asks again."""
    with World(tap, fleet={"shuffled": True, "window_s": 0.2}) as world:
        for number in range(3):
            world.node(f"n{number}", [10] * 4)
        world.extender_start()
        config = world.scheduler_config()
        config["extenders"][0]["httpTimeout"] = "1s"
        world.scheduler_start(config)
        names = [f"p{number}" for number in range(24)]
        world.fleet.pause()
        for name in names:
            world.pod(name, 5)
        # One of the size waits on each node; the next one waits until it is matched.
        wait_for(lambda: world.audit.bound >= 3 and given_up(world) >= 3, what="three are bound, and three binds given up")
        tap.ok(world.audit.bound < 24, f"{world.audit.bound} bound before any was matched")
        world.fleet.resume()
        world.await_running(names, nudge=True)
        world.verify()
