# SPDX-License-Identifier: Apache-2.0
"""Groups of pods that come whole or not at all: as scheduler-plugins declares them, one pod of a cycle at a
time, and as Kubernetes does, in kube-scheduler's own cycle for groups."""

import pathlib
import re
import tempfile
import time

from kubeapi import ApiError, wait_for
from scenarios.record import replay
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
    wait_for(lambda: world.client.request("GET", f"{PLUGINS}/podgroups"), 120, 0.2, "the CRD is served", (ApiError,))


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
    world.await_running(names)
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
    wait_for(lambda: any(len(bound(world, each)) == 8 for each in pods.values()), what="one group is whole")
    [first] = [name for name, each in pods.items() if len(bound(world, each)) == 8]
    [second] = [name for name in pods if name != first]
    world.await_running(pods[first])
    tap.equal(bound(world, pods[second]), [], "of two groups on twelve cards one is whole, and of the other nobody is bound")
    for name in pods[first]:
        world.delete(name)
    world.await_gone(pods[first])
    world.await_running(pods[second])
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


BINDINGS = "/apis/admissionregistration.k8s.io/v1"
KOORDINATOR = "gang.scheduling.koordinator.sh/"


def refuse_bindings(world, name):
    """The API server refuses each Binding of that pod from now on."""
    for kind, spec in (
            ("ValidatingAdmissionPolicy", {
                "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                                                        "resources": ["pods/binding"]}]},
                "validations": [{"expression": f"object.metadata.name != '{name}'", "message": "not this one"}]}),
            ("ValidatingAdmissionPolicyBinding", {"policyName": "refuse", "validationActions": ["Deny"]})):
        plural = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies",
                  "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}[kind]
        world.client.request("POST", f"{BINDINGS}/{plural}", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "refuse"}, "spec": spec})


def is_refused(world, name):
    try:
        world.client.request("POST", f"/api/v1/namespaces/default/pods/{name}/binding?dryRun=All", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}})
    except ApiError as error:
        return "not this one" in str(error)
    return False


def evictions(world, result):
    text = world.ops("/metrics", raw=True).decode()
    [count] = re.findall(rf'^gpuledger_evictions_total{{capability="gang-strict",outcome="{result}"}} (\d+)$', text, re.MULTILINE)
    return int(count)


def scenario_gangs_strict(tap):
    """The Binding of one of two pods is refused: the other is evicted after the group's deadline, once a budget lets it;
    one of a half group that gpuledger did not bind stays."""
    with World(tap) as world:
        world.kustomize("overlays/gangs")
        world.kustomize("overlays/gang-strict")
        for node in ("n1", "n2"):
            world.node(node, [10] * 2)
        world.extender_start("--gangs", "--gang-strict")
        said = {f"{KOORDINATOR}name": "g", f"{KOORDINATOR}min-available": "2", f"{KOORDINATOR}waiting-time": "5s"}
        world.pod("probe")
        refuse_bindings(world, "g-1")
        world.client.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"keep": "yes"}}}})
        for number in range(2):
            world.pod(f"g-{number}", 10, labels={"keep": "yes"}, annotations=said)
        wait_for(lambda: is_refused(world, "g-1"), 120, 0.2, "the policy is enforced")
        # One that somebody else has bound, whose other pod nobody schedules.
        other = {**said, f"{KOORDINATOR}name": "other", "ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "10",
                 "ALIYUN_COM_GPU_MEM_ASSIGNED": "false", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(time.time_ns())}
        world.pod("other-0", 10, annotations=other, spec={"nodeName": "n2"})
        world.pod("other-1", 10, annotations=other, spec={"schedulerName": "nobody"})
        world.scheduler_start()
        wait_for(lambda: bound(world, ["g-0"]) == ["g-0"], what="one of two is bound")
        tap.equal(world.client.get("Pod", "g-0")["metadata"]["annotations"].get("gpuledger.io/gang"), "true",
                  "its Binding says that its group came")
        # Nobody is tried for a minute after the start.
        wait_for(lambda: evictions(world, "budget") > 0, 120, 0.5, "a budget has nothing to give")
        tap.equal((bound(world, ["g-0"]), evictions(world, "evicted")), (["g-0"], 0), "which is waited for")
        world.client.request("DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/keep")
        world.await_gone(["g-0"])
        tap.equal(evictions(world, "evicted"), 1, "then it is evicted")
        wait_for(lambda: any("of the group default/g" in text for text in world.events_of("g-0", "GPUPodMoved")),
                 30, 0.2, "an Event")
        tap.equal(bound(world, ["other-0"]), ["other-0"], "whom gpuledger did not bind stays")


def scenario_gangs_slow(tap):
    """Beside a node whose plugin does not serve an earlier pod none of a group is bound, and explain says why; once it
    serves again, all run. A replay decides the same."""
    with tempfile.TemporaryDirectory() as directory, World(tap) as world:
        record = pathlib.Path(directory) / "record"
        world.kustomize("overlays/gangs")
        for node in ("n1", "n2", "n3"):
            world.node(node, [40])
            world.client.patch("Node", node, {"metadata": {"labels": {"only": node}}})
        world.start("--gangs", "--assign-patience=10m", f"--record={record}")
        world.fleet.pause()
        world.pod("busy", 10, spec={"nodeSelector": {"only": "n2"}})
        wait_for(lambda: bound(world, ["busy"]), what="a pod that its plugin does not serve")
        said = {f"{KOORDINATOR}name": "g", f"{KOORDINATOR}min-available": "3"}
        names = [f"g-{number}" for number in range(3)]
        for number, name in enumerate(names):
            world.pod(name, 10, annotations=said, spec={"nodeSelector": {"only": f"n{number + 1}"}})
        wait_for(lambda: world.ops("/api/v1/explain?pod=default/g-0")["group"]["behind"] == 1,
                 what="explain says that a plugin keeps the group")
        tap.equal(bound(world, names), [], "of three none is bound")
        world.fleet.resume()
        world.await_running(["busy", *names])
        tap.ok(True, "when the plugin has served the other pod, all run")
        world.verify("a group behind a slow plugin")
        world.extender_stop()
        replay(tap, record, "the group")
