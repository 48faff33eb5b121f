# SPDX-License-Identifier: Apache-2.0
"""Quotas by GPU model, as gpu-quota-admission reads them, while many pods come at once."""

import json
import pathlib
import re
import tempfile
import time

from kubeapi import ApiError, pod_object, wait_for
from scenarios.record import replay
from scenarios.tencent import TencentWorld
from tencent import BLOCK, CARD_CORE
from world import SYSTEM, World

EXCEEDS = "ExceedsGPUQuota"
CARDS = [60 * BLOCK] * 4
WHOLE = (CARD_CORE, 0)


def config_map(quota):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "gpuquota", "namespace": SYSTEM},
        "data": {"gpu_quota": json.dumps(quota)},
    }


def label(world, node, model, pool):
    labels = {"gpu-model": model, "gpu-pool": pool}
    world.client.patch("Node", node, {"metadata": {"labels": labels}})


def running(world, names):
    return [name for name in names if world.fleet.phase(name) == "Running"]


def refused(world, names):
    """All of them, for the quota."""
    tap = world.tap
    for name in names:
        said = world.refusal(name, EXCEEDS)
        tap.ok(EXCEEDS in said, f"{name} exceeds the quota", said)


def scenario_quotas(tap):
    """Twelve pods at once, a quota for two GPUs of one model in one pool: never more than two run;
    parts count as parts, and a larger quota lets the others in."""
    with TencentWorld(tap) as world:
        for node, model, pool in (
            ("n1", "M40", "public"), ("n2", "M40", "public"), ("n3", "M40", "private"), ("n4", "P4", "public"),
        ):
            world.node(node, CARDS)
            label(world, node, model, pool)
        quota = {"default": {"quota": {"M40": 2}, "pool": ["public"]}}
        world.client.create(config_map(quota))
        world.start("--quota-model-label=gpu-model", "--quota-pool-label=gpu-pool")
        names = [f"p{number}" for number in range(12)]
        for name in names:
            world.pod(name, WHOLE)
        wait_for(lambda: len(running(world, names)) == 2, what="two pods run")
        first = running(world, names)
        refused(world, [name for name in names if name not in first])
        tap.equal(running(world, names), first, "and no more than two")
        nodes = {world.client.get("Pod", name)["spec"]["nodeName"] for name in first}
        tap.ok(nodes <= {"n1", "n2"}, "on nodes of that model and pool", nodes)

        for name in names:
            if name not in first:
                world.client.delete("Pod", name)
        world.fleet.finish(first[0])
        parts = [f"part{number}" for number in range(3)]
        for name in parts:
            world.pod(name, (40, 4))
        wait_for(lambda: len(running(world, parts)) == 2, what="1 + 0.4 + 0.4 of 2 GPUs run")
        refused(world, [name for name in parts if name not in running(world, parts)])

        quota["default"]["quota"]["M40"] = 3
        world.client.patch("ConfigMap", "gpuquota", {"data": config_map(quota)["data"]}, SYSTEM)
        world.await_running(parts)  # woken: kube-scheduler knows nothing of the ConfigMap
        tap.ok(True, "a larger quota lets the third in")
        world.verify()


ELASTIC = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/elasticquotas"


def define_elastic_quotas(world):
    """The CRD of scheduler-plugins, as far as it matters here."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    world.client.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "elasticquotas.scheduling.x-k8s.io",
                     "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins"}},
        "spec": {
            "group": "scheduling.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "ElasticQuota", "listKind": "ElasticQuotaList", "plural": "elasticquotas",
                      "singular": "elasticquota"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
        },
    })
    wait_for(lambda: world.client.request("GET", ELASTIC.format("default")), 120, 0.2, "the CRD is served", (ApiError,))


def set_elastic(world, namespace, **spec):
    world.client.request("POST", ELASTIC.format(namespace), {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": {"name": "gpus"},
        "spec": {key: {"gpuledger.io/gpus": str(value)} for key, value in spec.items()},
    })


def scenario_quotas_elastic(tap):
    """A namespace borrows up to its max what another does not need, and no more once that one waits."""
    with World(tap) as world:
        world.kustomize("overlays/quotas")
        define_elastic_quotas(world)
        world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        set_elastic(world, "default", min=2, max=5)
        set_elastic(world, "other", min=4)
        world.node("n1", [10] * 8)
        world.start("--elastic-quotas")
        names = [f"p{number}" for number in range(6)]
        for name in names:
            world.pod(name, 10)
        wait_for(lambda: len(running(world, names)) == 5, what="five pods run")
        [last] = [name for name in names if name not in running(world, names)]
        tap.ok("quota's max" in world.refusal(last, "quota's max"), f"{last} would be above the max")
        [row] = [row for row in world.ops("/api/v1/quotas")["elastic"] if row["namespace"] == "default"]
        tap.equal((row["used"], row["borrowed"], row["waiting"]), (5, 3, 1), "what it has, has borrowed and wants")

        waiting = pod_object("waits", {"aliyun.com/gpu-mem": 10}, namespace="other", scheduler="nobody")
        world.client.create(waiting)
        wait_for(lambda: any(row["waiting"] == 1 for row in world.ops("/api/v1/quotas")["elastic"]
                             if row["namespace"] == "other"), 120, 0.1, "the other waits")
        gone = running(world, names)[0]
        world.delete(gone)
        world.await_gone([gone])
        wait_for(lambda: world.fleet.phase(last) == "Running", what="the sixth pod runs")
        tap.ok(True, "what is left of all mins is lent while one card is needed")
        for name in ("q1", "q2"):
            world.pod(name, 10)
        tap.ok("quota's max" in world.refusal("q2", "quota's max"), "no more than the max all the same")
        for number in range(3):
            world.client.create(pod_object(f"waits-{number}", {"aliyun.com/gpu-mem": 10}, namespace="other",
                                           scheduler="nobody"))
        for name in [name for name in [*names, "q1", "q2"] if world.fleet.phase(name) == "Running"][:2]:
            world.delete(name)
            world.await_gone([name])
        said = [world.refusal(name, "would borrow") for name in ("q1", "q2")]
        tap.ok(any("would borrow" in text for text in said), "what the other waits for is not lent", said)
        world.client.delete_all("Pod", namespace="other")
        wait_for(lambda: len(running(world, [*names, "q1", "q2"])) == 5, what="five run again, since nobody waits")
        tap.ok(True, "when nobody waits any more, it is lent again")
        world.verify("at last")


def owned(name, namespace, priority=None):
    """A pod that some controller would make again."""
    spec = {"priorityClassName": priority} if priority else {}
    pod = pod_object(name, {"aliyun.com/gpu-mem": 10}, namespace=namespace, spec=spec)
    pod["metadata"]["ownerReferences"] = [{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "made", "uid": "11111111-2222-3333-4444-555555555555",
        "controller": True,
    }]
    return pod


def of_namespace(world, namespace):
    """{name: where it is}; those that are about to end are left out."""
    pods = world.client.items("Pod", namespace)
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods
            if not pod["metadata"].get("deletionTimestamp")}


def scenario_quotas_reclaim(tap):
    """What a namespace has borrowed it gives back, no more than the other is sure of and asks for, and who has asked
    to stay stays. What is recorded meanwhile is decided again."""
    with tempfile.TemporaryDirectory() as directory, World(tap) as world:
        record = pathlib.Path(directory) / "record"
        world.kustomize("overlays/quotas")
        world.kustomize("overlays/reclaim")
        define_elastic_quotas(world)
        world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        set_elastic(world, "default", min=3)
        set_elastic(world, "other", min=3)
        world.node("n1", [10] * 6)
        world.start("--elastic-quotas", "--reclaim", "--reclaim-delay=1s", f"--record={record}")
        for number in range(6):
            world.client.create(owned(f"p{number}", "default"))
        wait_for(lambda: len([1 for node in of_namespace(world, "default").values() if node]) == 6,
                 what="six pods are bound: three are borrowed")
        # Had it asked before, nothing would have been lent to it.
        world.client.annotate("Pod", "p5", {"scheduling.koordinator.sh/refuse-to-migrate": "true"}, "default")
        # A kubelet may write onto its Node what it likes: it is written over, and nobody ends by it.
        uids = [world.client.get("Pod", f"p{number}")["metadata"]["uid"] for number in range(3)]
        forged = [{"for": "somebody", "namespace": "other", "since": int(time.time()), "ends": uids}]
        world.client.annotate("Node", "n1", {"gpuledger.io/reclaim": json.dumps(forged)})
        wait_for(lambda: "gpuledger.io/reclaim" not in world.client.get("Node", "n1")["metadata"].get("annotations", {}),
                 what="a forged claim is taken away")
        tap.equal(len([1 for node in of_namespace(world, "default").values() if node]), 6, "nobody ends for it")
        for number in range(4):
            world.client.create(owned(f"q{number}", "other"))
        wait_for(lambda: len([1 for node in of_namespace(world, "other").values() if node]) == 3,
                 what="three pods of the other have come")
        left = of_namespace(world, "default")
        tap.equal(len(left), 3, "three of the first have ended, and three are left")
        tap.ok("p5" in left, "who has asked to stay is left", left)
        [waits] = [name for name, node in of_namespace(world, "other").items() if not node]
        answer = world.ops(f"/api/v1/explain?pod=other/{waits}")
        tap.equal(answer["reclaim"]["answer"], "above_min", "nobody gives back for the fourth")
        # But of those who have ended within the minute, for nobody any more.
        wait_for(lambda: all(claim["for"].startswith("over ") for claim in json.loads(
            world.client.get("Node", "n1")["metadata"].get("annotations", {}).get("gpuledger.io/reclaim", "[]"))),
                 30, what="no claim is left")
        events = world.client.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
        told = {event["regarding"]["name"] for event in events if event["reason"] == "GPUQuotaReclaimed"}
        tap.equal(told, {f"p{number}" for number in range(6)} - set(left), "those who have ended are told why")
        tap.equal(len(of_namespace(world, "default")), 3, "and nobody else ends")
        world.verify("at last")
        world.extender_stop()
        tap.ok("gpuledger.io/reclaim" in record.read_text(), "the claims are in the record")
        said = replay(tap, record, "claims")
        tap.ok(said.get("compared", 0) > 20, "and what was decided meanwhile", said)


def scenario_quotas_stopped(tap):
    """The stop key: nobody gives back while it is set, which is said, and without a restart once it is not."""
    def stop(value):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gpuledger-evictions", "namespace": SYSTEM},
                "data": {"stop": value}}

    def bound(world, namespace):
        return len([1 for node in of_namespace(world, namespace).values() if node])

    def looks(world):
        text = world.ops("/metrics", raw=True).decode()
        return sum(int(n) for n in re.findall(r"(?m)^gpuledger_reclaim_looks_total\S* (\d+)$", text))
    with World(tap) as world:
        world.kustomize("overlays/quotas")
        world.kustomize("overlays/reclaim")
        define_elastic_quotas(world)
        world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        set_elastic(world, "default", min=1)
        set_elastic(world, "other", min=1)
        world.node("n1", [10] * 2)
        world.start("--elastic-quotas", "--reclaim", "--reclaim-delay=1s")
        for number in range(2):
            world.client.create(owned(f"p{number}", "default"))
        wait_for(lambda: bound(world, "default") == 2, what="two pods are bound: one is borrowed")
        world.client.create(stop("true"))
        wait_for(lambda: b"evictions ok, but stopped" in world.ops("/readyz?verbose", raw=True), what="it says so")
        world.client.create(owned("q0", "other"))
        wait_for(lambda: any(one["name"] == "q0" for one in world.ops("/api/v1/waiting")["pods"]), 60, what="it waits")
        before = looks(world)
        wait_for(lambda: looks(world) > before + 8, 60, what="it was looked at, past its delay")
        tap.equal((bound(world, "default"), bound(world, "other")), (2, 0), "nobody ends")
        world.client.patch("ConfigMap", "gpuledger-evictions", {"data": {"stop": "false"}}, namespace=SYSTEM)
        wait_for(lambda: bound(world, "other") == 1, 60, what="the other's pod has come")
        tap.equal(bound(world, "default"), 1, "one has given back")
