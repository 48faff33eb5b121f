# SPDX-License-Identifier: Apache-2.0
"""Nodes on their way: whoever would evict pods waits for them first, if told so. What autoscalers write is
written here by hand, as cluster-autoscaler and Karpenter write it, to a real API server."""

import datetime

from kubeapi import ApiError, wait_for
from scenarios.maintenance import Controller, Maintainer, await_ready
from world import World

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
REPORT = """autoscalerStatus: Running
clusterWide:
  health:
    status: Healthy
  scaleUp:
    status: {status}
    lastProbeTime: "{time}"
"""


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def tell(world, name, reason, message, reporter="cluster-autoscaler"):
    """An Event as client-go's recorder writes it."""
    pod, time = world.client.get("Pod", name), now().strftime("%Y-%m-%dT%H:%M:%SZ")
    world.client.request("POST", "/api/v1/namespaces/default/events", {
        "kind": "Event", "apiVersion": "v1", "metadata": {"generateName": f"{name}.", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": name,
                           "uid": pod["metadata"]["uid"]},
        "reason": reason, "message": message, "type": "Normal", "count": 1, "firstTimestamp": time,
        "lastTimestamp": time, "source": {"component": reporter}, "reportingComponent": reporter})


def report(world, status):
    """cluster-autoscaler's ConfigMap, as since 1.30."""
    data = {"status": REPORT.format(status=status, time=now().strftime("%Y-%m-%dT%H:%M:%S.%f789Z"))}
    if world.client.find("ConfigMap", "cluster-autoscaler-status", "kube-system"):
        world.client.patch("ConfigMap", "cluster-autoscaler-status", {"data": data}, "kube-system")
    else:
        world.client.create({"kind": "ConfigMap", "apiVersion": "v1", "data": data, "metadata": {
            "name": "cluster-autoscaler-status", "namespace": "kube-system"}})


def serve_claims(world):
    """As much of Karpenter's CRD as a list of NodeClaims needs."""
    world.client.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodeclaims.karpenter.sh"},
        "spec": {"group": "karpenter.sh", "scope": "Cluster",
                 "names": {"kind": "NodeClaim", "plural": "nodeclaims", "singular": "nodeclaim"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": {
                                   "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    wait_for(lambda: world.client.request("GET", CLAIMS) is not None, 120, 0.1, "NodeClaims are served",
             ignore=(ApiError,))


def claim(world, status):
    conditions = {"status": {"conditions": [{"type": "Launched", "status": "True"},
                                            {"type": "Initialized", "status": status}]}}
    try:
        world.client.request("POST", CLAIMS, {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                                              "metadata": {"name": "g-x7k"}})
    except ApiError as error:
        if error.code != 409:
            raise
    world.client.request("PATCH", f"{CLAIMS}/g-x7k/status", conditions, "application/merge-patch+json")


class Said:
    """A command that goes on, and what it has said so far."""

    def __init__(self, process):
        self.process, self.lines = process, []

    def await_line(self, part):
        for line in self.process.stderr:
            self.lines.append(line)
            if part in line:
                return True
        return False

    def end(self):
        out, rest = self.process.communicate(timeout=90)
        return self.process.returncode, out, "".join(self.lines) + rest


def uids(world, names):
    return {name: (world.client.find("Pod", name) or {"metadata": {}})["metadata"].get("uid") for name in names}


def scenario_autoscaler_wait(tap):
    """plan and drain wait for nodes that autoscalers bring, no longer than they are told, and evict nobody
    meanwhile; they evict when nobody brings any."""
    with World(tap) as world:
        world.start()
        world.node("n1", [8, 8])
        person = Maintainer(world)
        controller = Controller(world, 5)
        names = [controller.make(), controller.make()]
        world.await_running(names)
        controller.start()
        await_ready(world, names)
        world.node("n0", [5])
        world.pod("big", 8)
        world.refusal("big", "Unschedulable")
        before = uids(world, names)

        tell(world, "big", "TriggeredScaleUp", "pod triggered scale-up: [{g 0->1 (max: 3)}]")
        waiting = Said(person.start("plan", "default/big", "--apply", "--wait-for-nodes", "80s"))
        tap.ok(waiting.await_line("waits for nodes that cluster-autoscaler brings"), "plan waits for the nodes",
               waiting.lines)
        world.node("n2", [8])
        world.await_running(["big"])
        code, out, said = waiting.end()
        tap.equal(code, 0, f"and has nothing to do when the pod has its node: {out}{said}")
        tap.equal(uids(world, names), before, "nobody was evicted")

        world.pod("late", 8)
        world.refusal("late", "Unschedulable")
        tell(world, "late", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
        answer = person.run("plan", "default/late", "--apply", "--wait-for-nodes", "80s")
        tap.equal(answer.returncode, 0, f"nobody brings nodes: {answer.stdout}{answer.stderr}")
        tap.ok("waits for nodes" not in answer.stderr, "so it does not wait", answer.stderr)
        tap.ok(uids(world, names) != before, "a pod has made room", answer.stdout)
        world.await_running(["late"])

        report(world, "InProgress")
        answer = person.run("drain", "n2", "--apply", "--wait-for-nodes", "2s")
        tap.ok("waits for nodes that cluster-autoscaler brings" in answer.stderr
               and "the time is over" in answer.stderr, "drain waits no longer than it is told", answer.stderr)
        report(world, "NoActivity")
        serve_claims(world)
        claim(world, "Unknown")
        waiting = Said(person.start("drain", "n2", "--apply", "--wait-for-nodes", "80s"))
        tap.ok(waiting.await_line("waits for nodes that karpenter brings"), "it waits for a NodeClaim", waiting.lines)
        claim(world, "True")
        _, _, said = waiting.end()
        tap.ok("the time is over" not in said, "until that is initialized", said)
        world.plane.kubectl("delete", "clusterrolebinding", "maintainer")
        wait_for(lambda: person.run("plan", "default/late", "--apply", "--wait-for-nodes", "1s").returncode == 1,
                 20, 0.2, "the rights are gone")
        controller.stopped = True
        controller.join()
        world.verify("at last")
