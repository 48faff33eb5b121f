# SPDX-License-Identifier: Apache-2.0
"""What a pod holds of its node's CPU while it is resized in place, by pod-level resources, init containers, sidecars and
overhead: one pod more fits exactly, or not, by explain, fit and kube-scheduler alike."""

import contextlib

from gpushare import ASSIGNED, RESOURCE, RESOURCE_COUNT
from kubeapi import node_object, wait_for
from scenarios.constraints import PATIENCE_S, ask, found, wish
from world import World

PENDING = {"type": "PodResizePending", "status": "True"}
INFEASIBLE = {"conditions": [{**PENDING, "reason": "Infeasible"}]}
DEFERRED = {"conditions": [{**PENDING, "reason": "Deferred"}]}
IN_PROGRESS = {"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}
START, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
SPARE_M = 500  # thousandths of a core that each node has beside what its pod holds


def cpu(millis):
    return {"cpu": f"{millis}m"}


def container(name, millis, **more):
    return {"name": name, "image": "example.com/none:1", "resources": {"requests": cpu(millis)}, **more}


def sidecar(name, millis):
    return container(name, millis, restartPolicy="Always")


def status(name, allocated, actual):
    """As kubelet reports it of a container; `actual` None: it does not report resources."""
    said = {"name": name, "image": "", "imageID": "", "ready": True, "restartCount": 0, "allocatedResources": cpu(allocated)}
    return said if actual is None else {**said, "resources": {"requests": cpu(actual)}}


def statuses(*each, **more):
    return {"containerStatuses": list(each), **more}


# name: (spec, status, thousandths of a core that the pod holds). The amounts are written down by hand from what
# k8s.io/component-helpers v0.36.3, resource/helpers.go, PodRequests says, and kube-scheduler judges them.
ONE = {"containers": [container("c0", 1000)]}
TWO = {"containers": [container("c0", 1000), container("c1", 2000)]}
LEVEL = {**TWO, "resources": {"requests": cpu(4000)}}
CASES = {
    "plain": (TWO, {}, 3000),
    "down-in-progress": (ONE, statuses(status("c0", 1000, 4000), **IN_PROGRESS), 4000),
    "down-allocated": (ONE, statuses(status("c0", 3000, 2000), **IN_PROGRESS), 3000),
    "up-deferred": (ONE, statuses(status("c0", 250, 250), **DEFERRED), 1000),
    "up-infeasible": (ONE, statuses(status("c0", 250, 250), **INFEASIBLE), 250),
    "up-infeasible-allocated": (ONE, statuses(status("c0", 500, 250), **INFEASIBLE), 500),
    "unreported": (ONE, statuses(status("c0", 4000, None), **INFEASIBLE), 1000),
    "one-of-two": (TWO, statuses(status("c1", 2000, 5000), **IN_PROGRESS), 6000),
    "init-most": ({**TWO, "initContainers": [container("i0", 5000)]}, {}, 5000),
    "init-least": ({**TWO, "initContainers": [container("i0", 2500)]}, {}, 3000),
    "init-resized": ({**ONE, "initContainers": [container("i0", 2000)]},
                     {"initContainerStatuses": [status("i0", 6000, 6000)], **IN_PROGRESS}, 2000),
    "sidecar": ({**TWO, "initContainers": [sidecar("i0", 500)]}, {}, 3500),
    "sidecar-before-init": ({**ONE, "initContainers": [sidecar("i0", 500), container("i1", 3000)]}, {}, 3500),
    "sidecar-after-init": ({**ONE, "initContainers": [container("i0", 3000), sidecar("i1", 500)]}, {}, 3000),
    "sidecar-resized": ({**ONE, "initContainers": [sidecar("i0", 500)]},
                        {"initContainerStatuses": [status("i0", 500, 2500)], **IN_PROGRESS}, 3500),
    "overhead": ({**TWO, "runtimeClassName": "heavy"}, {}, 3250),
    "overhead-resized": ({**ONE, "runtimeClassName": "heavy"},
                         statuses(status("c0", 1000, 4000), **IN_PROGRESS), 4250),
    "level": (LEVEL, {}, 4000),
    "level-below-containers-resized": (LEVEL, statuses(status("c1", 2000, 5000), **IN_PROGRESS), 4000),
    "level-down": (LEVEL, {"resources": {"requests": cpu(6000)}, "allocatedResources": cpu(4000), **IN_PROGRESS}, 6000),
    "level-infeasible": (LEVEL, {"resources": {"requests": cpu(3000)}, "allocatedResources": cpu(3500), **INFEASIBLE}, 3500),
    "level-overhead": ({**LEVEL, "runtimeClassName": "heavy"}, {}, 4250),
}


def put(world, name, spec, said, held):
    """A node with that pod on it, and SPARE_M beside what it holds."""
    capacity = {RESOURCE: 10, RESOURCE_COUNT: 1, "cpu": f"{held + SPARE_M}m"}
    world.client.create(node_object(name, capacity, labels={"only": name}))
    pod = wish(f"on-{name}", {**spec, "nodeName": name})
    world.client.create(pod)
    world.client.patch("Pod", f"on-{name}", {"status": {"phase": "Running", "startTime": START, **said}}, subresource="status")


def asking(name, case, millis):
    return wish(name, {"nodeSelector": {"only": case}, "containers": [
        {"name": "main", "image": "example.com/none:1",
         "resources": {"requests": cpu(millis), "limits": {RESOURCE: "1"}}}]})


def foretold(world, pod):
    """(what bars the node by explain, how many such pods fit)"""
    told, fit = ask(world, "/api/v1/explain", pod), ask(world, "/api/v1/fit", {"pod": pod})
    name = pod["spec"]["nodeSelector"]["only"]
    [node] = [node for node in told["nodes"] if node["name"] == name]
    return node["reason"] or node["barrier"], fit["fitting"]


def scenario_resized(tap):
    """Of each pod's node is left exactly what was foretold: a pod that asks for a thousandth of a core more is refused."""
    with World(tap, played=False) as world:
        world.client.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", {
            "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}, "handler": "heavy",
            "overhead": {"podFixed": cpu(250)}})
        for case, (spec, said, held) in CASES.items():
            put(world, case, spec, said, held)
        world.start()
        wait_for(lambda: len(world.ops("/api/v1/nodes")["nodes"]) == len(CASES), PATIENCE_S, what="the nodes are known")
        over = {f"over-{case}": asking(f"over-{case}", case, SPARE_M + 1) for case in CASES}
        exact = {f"exact-{case}": asking(f"exact-{case}", case, SPARE_M) for case in CASES}
        tap.equal({name: foretold(world, pod) for name, pod in over.items()}, dict.fromkeys(over, ("cpu", 0)),
                  "by explain and fit a pod that asks for more than what is left is refused")
        tap.equal({name: foretold(world, pod) for name, pod in exact.items()}, dict.fromkeys(exact, (None, 1)),
                  "and one that asks for just that is taken")
        for pods, wanted, what in ((over, dict.fromkeys(over, ""), "kube-scheduler refuses the former"),
                                   (exact, {f"exact-{case}": case for case in CASES}, "and takes the latter")):
            for pod in pods.values():
                world.client.create(pod)
            with contextlib.suppress(TimeoutError):
                wait_for(lambda names=pods: set(names) <= set(found(world)), PATIENCE_S, what="kube-scheduler has seen them")
            state = found(world)
            tap.equal({name: state.get(name) for name in pods}, wanted, what)
        preempt(tap, world)


# case: (thousandths of a core that an urgent pod asks for, the pods that have to end). Without all less important ones
# the pod has room; then "on", which has started before, is let back if it can be, and "exact", which holds SPARE_M and a
# GPU, after that.
ENDS = {
    "up-infeasible": (SPARE_M, {"exact"}),  # "on" holds 250, and 1000 by its spec
    "level": (4500, {"on", "exact"}),
    "up-deferred": (SPARE_M + 1, {"on"}),
    "up-infeasible-allocated": (SPARE_M + 1, {"on", "exact"}),  # the end of neither alone gives back so much
    "down-in-progress": (4000, {"on"}),  # more than its spec says
    "sidecar-resized": (3501, {"on", "exact"}),
    "down-allocated": (3250, {"on", "exact"}),  # see GROWN
}
GROWN = {"down-allocated": 4000}  # what "on" holds by then: with "exact" more than the node has


def serve(world, name):
    """As its device plugin and kubelet do: while a pod of the same size waits for the plugin, it would end as well."""
    world.client.patch("Pod", name, {"metadata": {"annotations": {ASSIGNED: "true"}}})
    world.client.patch("Pod", name, {"status": {"phase": "Running", "startTime": LATER}}, subresource="status")
    world.await_served([name])


def preempt(tap, world):
    """Who asks for what pods of a node give back, with a GPU or without, has those end that explain names."""
    world.client.create_priority_class("high", 1000)
    for case in ENDS:
        serve(world, f"exact-{case}")
    for case, held in GROWN.items():
        grown = statuses(status("c0", 3000, held), **IN_PROGRESS)
        world.client.patch("Pod", f"on-{case}", {"status": grown}, subresource="status")
    world.await_pods_known()
    for case, (millis, kinds) in ENDS.items():
        ends, name = {f"{kind}-{case}" for kind in kinds}, f"urgent-{case}"
        pod = asking(name, case, millis)
        pod["spec"]["priorityClassName"] = "high"
        before = {each["metadata"]["name"] for each in world.client.items("Pod")}
        foretelling = {**pod, "spec": {**pod["spec"], "priority": 1000, "preemptionPolicy": "PreemptLowerPriority"}}
        told = ask(world, "/api/v1/explain", foretelling)["preemption"]
        tap.equal((told["node"], {each["name"] for each in told["pods"]}), (case, ends), f"{case}: who is to end, by explain")
        world.client.create(pod)
        with contextlib.suppress(TimeoutError):
            wait_for(lambda urgent=name: found(world).get(urgent), PATIENCE_S, what="the pod has its node")
        after = {each["metadata"]["name"] for each in world.client.items("Pod")}
        tap.equal((before - after, found(world).get(name)), (ends, case), f"{case}: and who kube-scheduler ends")
