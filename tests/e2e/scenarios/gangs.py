# SPDX-License-Identifier: Apache-2.0
"""Groups of pods that come whole or not at all: as scheduler-plugins declares them, one pod of a cycle at a
time, and as Kubernetes does, in kube-scheduler's own cycle for groups."""

from kubeapi import ApiError, wait_for
from world import World

PLUGINS = "/apis/scheduling.x-k8s.io/v1alpha1"
NATIVE = "/apis/scheduling.k8s.io/v1alpha2"
GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
NO_ROOM = "no room for the pod's group as a whole"


def define_pod_groups(world):
    """The CRD of scheduler-plugins, as far as it matters here."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    world.client.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "podgroups.scheduling.x-k8s.io",
                     "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins"}},
        "spec": {
            "group": "scheduling.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
        },
    })
    wait_for(lambda: world.client.request("GET", f"{PLUGINS}/podgroups"), 30, 0.2, "the CRD is served", (ApiError,))


class Groups:
    def __init__(self, world, native):
        self.world, self.native = world, native

    def declare(self, name, least):
        api = NATIVE if self.native else PLUGINS
        spec = {"schedulingPolicy": {"gang": {"minCount": least}}} if self.native else {"minMember": least}
        self.world.client.request("POST", f"{api}/namespaces/default/podgroups", {
            "apiVersion": api.removeprefix("/apis/"), "kind": "PodGroup", "metadata": {"name": name}, "spec": spec})

    def pod(self, group, number):
        name = f"{group}-{number}"
        if self.native:
            self.world.pod(name, 10, spec={"schedulingGroup": {"podGroupName": group}})
        else:
            self.world.pod(name, 10, labels={"scheduling.x-k8s.io/pod-group": group})
        return name


def bound(world, names):
    return [name for name in names if world.client.get("Pod", name)["spec"].get("nodeName")]


def holds(world, name):
    """Places that pods of the group have, bound or not."""
    return sum(pod["name"].startswith(f"{name}-") for node in world.ops("/api/v1/nodes")["nodes"] for pod in node["pods"])


def live(tap, world, native):
    groups = Groups(world, native)
    for node in ("n1", "n2"):
        world.node(node, [10] * 4)
    world.extender_start("--gangs")
    world.scheduler_start(args=[GATES] if native else [])
    world.pod("single", 10)
    world.await_running(["single"])
    groups.declare("g", 8)
    names = [groups.pod("g", number) for number in range(8)]
    said = [world.refusal(name, NO_ROOM) for name in names]
    tap.ok(all(NO_ROOM in text for text in said), "eight do not fit on seven cards, and all of them say so", said)
    tap.equal((bound(world, names), holds(world, "g")), ([], 0), "nobody is bound, and nobody holds a card")
    world.delete("single")
    world.await_gone(["single"])
    world.await_running(names, 90)
    tap.ok(True, "on eight cards all run")
    world.verify("the group")

    world.node("n3", [10] * 4)
    for name in names:
        world.delete(name)
    world.await_gone(names)
    for name in ("a", "b"):
        groups.declare(name, 8)
    pods = {"a": [], "b": []}
    for number in range(8):
        for name in pods:
            pods[name].append(groups.pod(name, number))
    wait_for(lambda: any(len(bound(world, each)) == 8 for each in pods.values()), 90, what="one group is whole")
    [first] = [name for name, each in pods.items() if len(bound(world, each)) == 8]
    [second] = [name for name in pods if name != first]
    world.await_running(pods[first], 60)
    tap.equal(bound(world, pods[second]), [], "of two groups on twelve cards one is whole, and of the other nobody is bound")
    for name in pods[first]:
        world.delete(name)
    world.await_gone(pods[first])
    world.await_running(pods[second], 120)
    tap.ok(True, "when it has ended, the other comes")
    world.verify("two groups")


def scenario_gangs(tap):
    """Eight pods on seven cards: nobody; on eight: all. Two groups on twelve cards: one, then the other."""
    with World(tap) as world:
        world.kustomize("overlays/gangs")
        define_pod_groups(world)
        live(tap, world, False)


def scenario_gangs_native(tap):
    """The same with PodGroups of Kubernetes, in kube-scheduler's cycle for groups."""
    with World(tap, apiserver_args=[GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"]) as world:
        world.kustomize("overlays/gangs")
        live(tap, world, True)
