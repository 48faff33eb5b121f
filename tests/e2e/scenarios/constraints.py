# SPDX-License-Identifier: Apache-2.0
"""What explain and fit say of node selectors, affinity, taints and priorities, and what kube-scheduler
then does."""

import contextlib

from gpushare import ASSIGNED, RESOURCE, RESOURCE_COUNT
from kubeapi import Client, node_object, pod_object, wait_for
from world import World

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
UNITS = 10  # of the one card of a node: one pod fills it
PATIENCE_S = 90


def terms(*expressions, fields=()):
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def tolerating(key, **more):
    return {"tolerations": [{"key": key, "operator": "Exists", **more}]}


def with_cpu(amount):
    resources = {"limits": {RESOURCE: str(UNITS), "cpu": str(amount)}}
    return {"containers": [{"name": "main", "image": "example.com/none:1", "resources": resources}]}


NODES = {  # name: (labels, spec)
    "plain": ({"zone": "a", "age": "3"}, {}),
    "gold": ({"zone": "b", "age": "12", "tier": "gold"}, {}),
    "ml": ({"zone": "b"}, {"taints": [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]}),
    "sick": ({"zone": "c"}, {"taints": [{"key": "sick", "effect": "NoExecute"}]}),
    "shy": ({"zone": "c"}, {"taints": [{"key": "shy", "effect": "PreferNoSchedule"}]}),
    "closed": ({"zone": "a"}, {"unschedulable": True}),
}

WISHES = [
    {},
    with_cpu(64),
    with_cpu(65),
    {"nodeSelector": {"zone": "b"}},
    {"nodeSelector": {"zone": "b", "tier": "gold"}},
    {"nodeSelector": {"zone": "z"}},
    terms(expression("zone", "In", "a", "c")),
    terms(expression("zone", "NotIn", "a")),
    terms(expression("tier", "DoesNotExist"), expression("age", "Exists")),
    terms(expression("age", "Gt", "5")),
    terms(expression("age", "Lt", "5")),
    terms(fields=[expression("metadata.name", "In", "shy")]),
    tolerating("dedicated"),
    {"tolerations": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
    tolerating("sick", effect="NoSchedule"),
    {**tolerating("sick"), "nodeSelector": {"zone": "c"}},
    tolerating("node.kubernetes.io/unschedulable"),
    {"tolerations": [{"operator": "Exists"}]},
    {"tolerations": [{"operator": "Exists"}], **terms(expression("zone", "NotIn", "a"))},
]


def wish(name, spec):
    pod = pod_object(name, {RESOURCE: UNITS}, spec=spec)
    pod["metadata"]["namespace"] = "default"
    return pod


def ask(world, path, body=None):
    client = Client(f"http://127.0.0.1:{world.ops_port}", timeout=30)
    try:
        return client.request("POST" if body else "GET", path, body)
    finally:
        client.close()


def places(world, pod):
    """Who takes the pod, as explain says and as fit says."""
    told = ask(world, "/api/v1/explain", pod)
    takers = {node["name"] for node in told["nodes"]
              if node["reason"] is None and node["barrier"] is None}
    fit = ask(world, "/api/v1/fit", {"pod": pod})
    return takers, {place["node"] for place in fit["places"]}, fit["fitting"]


def found(world):
    """{pod: its node, or "" once kube-scheduler has found none}"""
    state = {}
    for pod in world.client.items("Pod"):
        conditions = {each["type"]: each for each in pod["status"].get("conditions", [])}
        node = pod["spec"].get("nodeName")
        if node or conditions.get("PodScheduled", {}).get("reason") == "Unschedulable":
            state[pod["metadata"]["name"]] = node or ""
    return state


def settle(world, names, wanted):
    """What kube-scheduler has made of the pods, once that is what was foretold, or in the end."""
    def done():
        state = found(world)
        return sorted(state.get(name, "?") for name in names) == sorted(wanted)

    with contextlib.suppress(TimeoutError):
        wait_for(done, PATIENCE_S, 0.1, "the pods are where they were foretold")
    state = found(world)
    return sorted(state.get(name, "?") for name in names)


def clear(world, free):
    for pod in world.client.items("Pod"):
        # Of one that is just gone kubelet may still ask for a card, so the next one of its size would wait.
        if pod["spec"].get("nodeName"):
            world.client.set_pod_phase(pod["metadata"]["name"], "Failed")
        world.client.delete("Pod", pod["metadata"]["name"])
    wait_for(lambda: not world.client.items("Pod") and places(world, wish("any", {}))[2] == free
             and not any(node["pods"] for node in world.ops("/api/v1/nodes")["nodes"]),
             PATIENCE_S, what="all pods are gone")


def begin(world):
    for name, (labels, spec) in NODES.items():
        node = node_object(name, {RESOURCE: UNITS, RESOURCE_COUNT: 1}, labels=labels)
        world.client.create({**node, "spec": spec})
    for name, value in (("low", 3), ("middle", 5), ("high", 1000)):
        world.client.create_priority_class(name, value)
    world.start()
    wait_for(lambda: places(world, wish("any", {}))[2] == 3, PATIENCE_S, what="the nodes are known")


def scenario_constraints(tap):
    """Pods of each kind, one more than there are nodes, fill exactly the nodes that explain and fit
    have named; the rest are unschedulable."""
    with World(tap, played=False) as world:
        begin(world)
        for number, spec in enumerate(WISHES):
            takers, fitting, amount = places(world, wish("any", spec))
            tap.equal((fitting, amount), (takers, len(takers)), f"explain and fit agree on {spec}")
            names = [f"w{number}-{i}" for i in range(len(NODES) + 1)]
            for name in names:
                world.client.create(wish(name, spec))
            wanted = sorted(takers) + [""] * (len(names) - len(takers))
            tap.equal(settle(world, names, wanted), sorted(wanted), "and so says kube-scheduler")
            left = [name for name, node in found(world).items() if not node]
            told = ask(world, f"/api/v1/explain?pod=default/{left[0]}")
            tap.equal(told["verdict"], "refused", "one that is left over is refused by name, too")
            clear(world, 3)


def scenario_constraints_preempt(tap):
    """Whom explain says that preemption would end, and where, ends there."""
    with World(tap, played=False) as world:
        begin(world)
        for name, zone, priority in (("a", "a", "middle"), ("b", "b", "low"), ("c", "c", "high")):
            world.client.create(wish(name, {"nodeSelector": {"zone": zone},
                                            "priorityClassName": priority}))
        wait_for(lambda: sorted(found(world).values()) == ["gold", "plain", "shy"], PATIENCE_S,
                 what="the nodes are full")
        for name in "abc":  # as kubelet and the plugin have it: of one that is gone nothing is left
            world.client.annotate("Pod", name, {ASSIGNED: "true"})
            world.client.set_pod_phase(name, "Running")
        world.await_served("abc")

        def told(policy):
            urgent = wish("urgent", {"priorityClassName": "high", "priority": 1000, "preemptionPolicy": policy})
            return ask(world, "/api/v1/explain", urgent)["preemption"]

        answer = told("Never")
        tap.equal((answer["node"], answer["whyNot"]), (None, "its preemptionPolicy is Never"),
                  "who never preempts ends nobody")
        answer = told("PreemptLowerPriority")
        tap.equal((answer["node"], [pod["name"] for pod in answer["pods"]]), ("gold", ["b"]),
                  "the least important pod is to end")
        world.client.create(wish("urgent", {"priorityClassName": "high"}))
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: found(world).get("urgent"), PATIENCE_S, what="the pod has its node")
        tap.equal(found(world), {"a": "plain", "c": "shy", "urgent": "gold"},
                  "and has ended; the pod is where it was")


def scenario_constraints_pods(tap):
    """A node with a free card and as many pods as it may have takes none; once the pod without a GPU
    has moved that explain names, kube-scheduler puts the pod there."""
    with World(tap, played=False) as world:
        for name, capacity in (("full", {RESOURCE: UNITS, RESOURCE_COUNT: 1, "pods": 2}),
                               ("spare", {})):
            world.client.create(node_object(name, capacity))
        for name, priority in (("needed", 5), ("idle", 3)):
            world.client.create_priority_class(name, priority)
            world.client.create(pod_object(name, spec={"nodeName": "full",
                                                       "priorityClassName": name}))
        world.start()
        wait_for(lambda: ask(world, "/api/v1/explain", wish("any", {}))["nodesTotal"] == 2,
                 PATIENCE_S, what="the nodes are known")
        takers, fitting, amount = places(world, wish("any", {}))
        tap.equal((takers, fitting, amount), (set(), set(), 0), "nobody takes the pod")
        world.client.create(wish("asked", {"priorityClassName": "idle"}))
        wait_for(lambda: found(world).get("asked") == "", PATIENCE_S,
                 what="kube-scheduler has found no node")
        told = ask(world, "/api/v1/explain?pod=default/asked")
        tap.equal({node["name"]: node["barrier"] for node in told["nodes"] if not node["reason"]},
                  {"full": "pods"}, "for the number of pods")
        tap.equal([remedy["text"] for remedy in told["remedies"]], ["move default/idle to spare"],
                  "the least important pod may move to a node without GPUs")
        world.client.delete("Pod", "idle")
        world.client.create(pod_object("idle-again", spec={"nodeSelector": {
            "kubernetes.io/hostname": "spare"}}))
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: found(world).get("asked") and found(world).get("idle-again"), PATIENCE_S,
                     what="both pods have a node")
        tap.equal(found(world), {"needed": "full", "asked": "full", "idle-again": "spare"},
                  "and the pod is where it was foretold")
