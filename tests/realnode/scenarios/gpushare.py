# SPDX-License-Identifier: Apache-2.0
"""Aliyun's plugin, 45fb8b8: it guesses whose Allocate call it answers, at client-go's default rate."""

import collections
import contextlib
import json
import re
import signal
import subprocess
import time

from cluster import PATIENCE_S, condition, program
from gpushare import ASSIGNED, IDX
from gpushare import RESOURCE as MEMORY
from judge import Family, Verdict, figures, judge
from kubeapi import ApiError, wait_for
from kubelet import limit

CARDS = [16, 16]
TOTAL = sum(CARDS)
# How often kubelet says what its node has: its default, for which most scenarios would only wait.
REPORTS, SOON, DEFAULT = "nodeStatusUpdateFrequency", "1s", "10s"


def got(environment, _):
    return [int(environment.get(IDX, -1))]


def named(pod, _, __):
    return [int(pod["metadata"]["annotations"].get(IDX, -1))]


FAMILY = Family(MEMORY, got, named, CARDS)


def prepare(cluster):
    cluster.kubelet[REPORTS] = SOON
    cluster.rights("base")
    cluster.extender_start()
    cluster.scheduler_start()
    node = cluster.node()
    node.plugin_start("gpushare", f"--cards={','.join(map(str, CARDS))}")
    cluster.await_amount("gpu-node", MEMORY, TOTAL)
    cluster.await_amount("gpu-node", "aliyun.com/gpu-count", len(CARDS))


def restore(cluster):
    """As it was before a scenario: one node whose plugin runs, and that nobody leaves out."""
    cluster.retire("other-node")
    cluster.client.delete("ConfigMap", "unhealthy-gpu-gpu-node", "kube-system")
    node = cluster.node()
    if node.plugin_runs():
        node.set_unhealthy()
    else:
        node.unhealthy.unlink(missing_ok=True)
        node.plugin_again()
    if cluster.kubelet[REPORTS] != SOON:
        reports_every(cluster, SOON)
    cluster.await_amount("gpu-node", MEMORY, TOTAL)
    cluster.client.annotate("Node", "gpu-node", {"gpuledger.io/resume": str(time.monotonic())})


def reports_every(cluster, period):
    """kubelet begins anew, and says so often what its node has."""
    cluster.kubelet[REPORTS] = period
    node = cluster.node()
    node.kubelet_stop()
    node.kubelet_start()
    await_served(cluster)


def make(cluster, names, units=1, **options):
    names = list(names)
    for name in names:
        cluster.pod(name, {MEMORY: units}, **options)
    return names


def allocations(cluster):
    return [each for each in cluster.nodes["gpu-node"].calls_made() if each["call"] == "Allocate"]


def plugin_with(cluster, *arguments):
    node = cluster.node()
    node.plugin_stop()
    registered = f"--cards={','.join(map(str, CARDS))}"
    node.plugin_start("gpushare", registered, *arguments)
    await_served(cluster)


def await_served(cluster):
    """Until the plugin has registered and kubelet has said so: a pod of its own runs."""
    def runs():
        with contextlib.suppress(ApiError):
            cluster.client.delete("Pod", "probe")
            wait_for(lambda: cluster.client.find("Pod", "probe") is None, 30, 0.1)
            cluster.pod("probe", {MEMORY: 1})
            return cluster.await_settled(["probe"], 15) and (
                cluster.client.get("Pod", "probe")["status"]["phase"] == "Running"
            )

    wait_for(runs, 120, 0.1, "a pod is served")
    cluster.client.delete("Pod", "probe", grace_s=1)
    wait_for(lambda: cluster.client.find("Pod", "probe") is None, 60, 0.1)


def burst(cluster, rounds, count=TOTAL, units=1):
    """(verdict over all rounds, lines of figures)"""
    total, lines = Verdict(), []
    for number in range(rounds):
        prefix = f"burst-{number}-"
        before = len(allocations(cluster))
        names = make(cluster, (f"{prefix}{i}" for i in range(count)), units)
        cluster.await_settled(names)
        found = judge(cluster, FAMILY, prefix=prefix)
        calls = [each["seconds"] for each in allocations(cluster)[before:]]
        slowest = f", slowest Allocate {max(calls):.2f} s" if calls else ""
        lines.append(f"{len(found.broken)} broken; {figures(cluster.diary.entries(prefix)[-count:])}{slowest}")
        cluster.tap.note(f"round {number + 1}: {lines[-1]}")
        total.add(found)
        cluster.drop_pods()
    return total


def scenario_gpushare_one(cluster, rounds):
    """One pod, from its creation to the environment in its container."""
    make(cluster, ["one"], 3)
    cluster.await_settled(["one"])
    judge(cluster, FAMILY).report(cluster.tap, "one pod", 1)
    cluster.tap.note(figures(cluster.diary.entries("one")))
    pod = cluster.client.get("Pod", "one")
    cluster.tap.equal(pod["metadata"]["annotations"].get(ASSIGNED), "true", "the plugin matched it")


def scenario_gpushare_burst(cluster, rounds):
    """32 equal pods at once fill two cards; five rounds unless --rounds says more."""
    rounds = rounds or 5
    burst(cluster, rounds).report(cluster.tap, "bursts of 32", rounds * TOTAL)


def scenario_gpushare_burst_unlimited(cluster, rounds):
    """The same with a plugin whose client knows no rate."""
    plugin_with(cluster, "--client-rate=unlimited")
    rounds = rounds or 1
    burst(cluster, rounds).report(cluster.tap, "bursts of 32, unlimited plugin", rounds * TOTAL)
    plugin_with(cluster)


def scenario_gpushare_containers(cluster, rounds):
    """Pods of one GPU container and a sidecar, and pods of two GPU containers, which are refused."""
    names = []
    for number in range(8):
        cluster.pod(f"sidecar-{number}", {}, {MEMORY: 2}, {})
        names.append(f"sidecar-{number}")
    cluster.pod("two", {MEMORY: 2}, {MEMORY: 2})
    cluster.await_settled(names)
    judge(cluster, FAMILY, prefix="sidecar-").report(cluster.tap, "pods with sidecars", 8)
    two = cluster.client.get("Pod", "two")
    cluster.tap.ok(not two["spec"].get("nodeName"), "two GPU containers are not bound", two["spec"])


def scenario_gpushare_kubelet(cluster, rounds):
    """kubelet restarts: pods stay, keep their amounts in the ledger, and new ones are served."""
    node = cluster.node()
    names = make(cluster, (f"old-{i}" for i in range(4)), 3)
    cluster.await_settled(names)
    calls = len(allocations(cluster))
    node.kubelet_stop(signal.SIGKILL)
    node.kubelet_start()
    await_served(cluster)
    cluster.tap.equal(len([c for c in allocations(cluster)[calls:] if len(c["devices"]) == 3]), 0,
                      "no second Allocate for pods that run")
    late = make(cluster, (f"new-{i}" for i in range(4)), 3)
    cluster.await_settled(names + late)
    judge(cluster, FAMILY).report(cluster.tap, "after kubelet's restart", 8)


def scenario_gpushare_plugin(cluster, rounds):
    """The plugin is replaced by another process while pods run and wait."""
    node = cluster.node()
    names = make(cluster, (f"old-{i}" for i in range(4)), 3)
    cluster.await_settled(names)
    node.plugin_stop()
    node.plugin_again()
    await_served(cluster)
    late = make(cluster, (f"new-{i}" for i in range(4)), 3)
    cluster.await_settled(names + late)
    judge(cluster, FAMILY).report(cluster.tap, "after the plugin's restart", 8)


def deletion(cluster, grace, rounds):
    """Of 14 pods two are deleted at their Binding, late enough for kubelet to have others before them
    in its queue. The twelve others must be served."""
    total = Verdict()
    for number in range(rounds):
        prefix = f"deleted-{grace}-{number}-"
        names = make(cluster, (f"{prefix}{i}" for i in range(14)), 2)
        victims = names[7], names[9]
        for victim in victims:
            cluster.await_bound([victim])
            cluster.client.delete("Pod", victim, grace_s=grace)
        cluster.await_settled(set(names) - set(victims))
        wait_for(lambda: len(cluster.pods(prefix)) == 12, 60, 0.1, "two pods gone")
        found = judge(cluster, FAMILY, prefix=prefix)
        cluster.tap.note(f"grace {grace}, round {number + 1}: {len(found.broken)} of 12 broken")
        total.add(found)
        cluster.drop_pods()
    return total


def scenario_gpushare_deleted(cluster, rounds):
    """Pods deleted at their Binding with grace 1 and 30."""
    for grace in (1, 30):
        times = rounds or 1
        deletion(cluster, grace, times).report(cluster.tap, f"deleted with grace {grace}", 12 * times)


def scenario_gpushare_forced(cluster, rounds):
    """Pods force-deleted (grace 0) at their Binding: kubelet may still call Allocate for them."""
    rounds = rounds or 3
    deletion(cluster, 0, rounds).report(cluster.tap, "deleted with grace 0", 12 * rounds)


def scenario_gpushare_node(cluster, rounds):
    """The Node object is deleted and comes back when kubelet restarts; its pods are known again."""
    node = cluster.node()
    names = make(cluster, (f"old-{i}" for i in range(4)), 3)
    cluster.await_settled(names)
    node.kubelet_stop()
    cluster.client.delete("Node", "gpu-node")
    node.kubelet_start()
    await_served(cluster)
    late = make(cluster, (f"new-{i}" for i in range(4)), 3)
    cluster.await_settled(names + late)
    judge(cluster, FAMILY).report(cluster.tap, "after the Node came back", 8)


def scenario_gpushare_unhealthy(cluster, rounds):
    """A card that gpushare's ConfigMap and the plugin call unhealthy gets no new pods."""
    node = cluster.node()
    cluster.client.apply(
        {"apiVersion": "v1", "kind": "ConfigMap",
         "metadata": {"name": "unhealthy-gpu-gpu-node", "namespace": "kube-system"},
         "data": {"gpus": "0"}}
    )
    node.set_unhealthy(0)
    cluster.await_amount("gpu-node", MEMORY, CARDS[1])
    names = make(cluster, (f"well-{i}" for i in range(4)), 4)
    cluster.await_settled(names)
    found = judge(cluster, FAMILY, prefix="well-")
    found.report(cluster.tap, "beside an unhealthy card", 4)
    cards = {named(pod, 0, node)[0] for pod in cluster.pods("well-")}
    cluster.tap.equal(cards, {1}, "all on the healthy card")


def scenario_gpushare_zero(cluster, rounds):
    """Capacity is 0 while kubelet is back and the plugin is not: holders keep their amounts, and what
    waits is bound when the plugin is back."""
    node = cluster.node()
    names = make(cluster, (f"old-{i}" for i in range(4)), 3)
    cluster.await_settled(names)
    before = amounts(cluster)
    node.plugin_stop()
    node.kubelet_stop()
    node.kubelet_start()
    wait_for(lambda: node.amount(MEMORY, "capacity") == 0, 60, 0.05, "capacity 0")
    try:
        wait_for(lambda: amounts(cluster) != before, 3, 0.1)
    except TimeoutError:
        pass
    cluster.tap.equal(amounts(cluster), before, "holders keep their amounts while capacity is 0")
    make(cluster, ["waiting"], 3)
    node.plugin_again()
    cluster.await_settled(["waiting"])
    judge(cluster, FAMILY).report(cluster.tap, "after the plugin has registered", 5)


def scenario_gpushare_waiting(cluster, rounds):
    """kubelet and plugin restart while binds wait for their turn: none of them fails because the
    node's capacity is 0 for a moment."""
    node = cluster.node()
    names = make(cluster, (f"waiting-{i}" for i in range(24)), 1)
    cluster.await_bound(names[:6])
    node.plugin_stop()
    node.kubelet_stop()
    node.kubelet_start()
    wait_for(lambda: node.amount(MEMORY, "capacity") == 0, 60, 0.05, "capacity 0")
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: failed_binds(cluster), 5, 0.1)
    node.plugin_again()
    cluster.await_settled(names)
    # What is bound while kubelet is away is turned away when it comes back; that is kubelet's way.
    judge(cluster, FAMILY, prefix="waiting-").report(cluster.tap, "after both are back", 24, 24)
    cluster.tap.equal(failed_binds(cluster), [], "no bind failed for a node without capacity")


# Of binds that have waited as long as they may, two thirds of --bind-timeout, and of too many that wait.
WAITED = ("still waits for its GPU", "not registered with kubelet just now", "too many binds wait")
# Of binds to a node whose kubelet has turned away as many pods as --reject-limit says.
LEFT_OUT = "is left out for a while"
REJECT_LIMIT = 3


def failed_binds(cluster):
    """For another reason than those."""
    rejected = sum("failed" in entry for entry in cluster.diary.entries("waiting-"))
    right = (*WAITED, LEFT_OUT) if rejected >= REJECT_LIMIT else WAITED
    return sorted({
        f"{pod}: {text}" for reason, pod, text in cluster.client.events()
        if pod.startswith("waiting-") and reason == "FailedScheduling"
        and "available:" not in text and not any(each in text for each in right)
    })


def amounts(cluster):
    """{pod: [(card, bytes)]} of the ledger."""
    return {
        pod["name"]: [(share["card"], share["memoryBytes"]) for share in pod["shares"]]
        for node in cluster.ops("/api/v1/nodes")["nodes"]
        for pod in node["pods"]
    }


def scenario_gpushare_stopped(cluster, rounds):
    """A node whose plugin has stopped must not swallow one pod after the other: at most one and three
    more are lost, and their replacements run on the other node."""
    # For so long the node looks as if nothing were amiss.
    reports_every(cluster, DEFAULT)
    other = cluster.node("other-node")
    other.plugin_start("gpushare", f"--cards={','.join(map(str, CARDS))}")
    cluster.await_amount("other-node", MEMORY, TOTAL)
    cluster.client.create(
        {"apiVersion": "apps/v1", "kind": "Deployment",
         "metadata": {"name": "work", "namespace": "default"},
         "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "work"}},
                  "template": template({"app": "work"}, 2)}}
    )
    # The policy fills the node that has begun, and that is the one whose plugin goes.
    make(cluster, ["anchor"], 6, node="gpu-node")
    cluster.await_settled(["anchor"])
    cluster.node().plugin_stop()
    cluster.client.patch("Deployment", "work", {"spec": {"replicas": 8}})

    def running():
        return [pod for pod in cluster.pods("work-") if pod["status"].get("phase") == "Running"]

    left_out = set()

    def all_run():
        left_out.update(re.findall(r'^gpuledger_node_left_out{node="([^"]+)"',
                                   cluster.ops("/metrics", raw=True).decode(), re.M))
        return len(running()) == 8

    with contextlib.suppress(TimeoutError):
        wait_for(all_run, 60, 0.2)
    lost = [e for e in cluster.diary.entries("work-") if "failed" in e]
    cluster.tap.ok(len(lost) <= 4, f"at most 1 + 3 pods are lost ({len(lost)})", lost)
    if len(lost) >= REJECT_LIMIT:  # fewer: kubelet has reported in time that the plugin is away
        cluster.tap.equal(left_out, {"gpu-node"}, "the node was left out")
    cluster.tap.equal({pod["spec"]["nodeName"] for pod in running()}, {"other-node"},
                      f"the replacements run on the other node ({len(running())} of 8)")
    cluster.client.delete("Deployment", "work")
    wait_for(lambda: not cluster.pods("work-"), 60, 0.1, "work gone", ignore=())


def command(cluster, *arguments):
    """gpuledger as a maintainer runs it: (exit status, what it printed as JSON, what it said)."""
    answer = subprocess.run(
        [program(), *arguments, "-o", "json", f"--kubeconfig={cluster.plane.kubeconfig()}"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return answer.returncode, json.loads(answer.stdout or "{}"), answer.stderr


def moved_judged(cluster, what, cards):
    """All pods of the scenario are served, and are on these cards: {card: units}. A pod that was evicted has ended
    when a move is done, and is gone a moment later."""
    wait_for(lambda: not any(pod["metadata"].get("deletionTimestamp") for pod in cluster.pods("moved-")),
             PATIENCE_S, 0.1, "whoever was evicted gone")
    cluster.await_settled([pod["metadata"]["name"] for pod in cluster.pods("moved-")])
    judge(cluster, FAMILY, prefix="moved-").report(cluster.tap, what, len(cluster.pods("moved-")))
    load = collections.Counter()
    for pod in cluster.pods("moved-"):
        load[named(pod, 0, None)[0]] += limit(pod["spec"]["containers"][0], MEMORY)
    cluster.tap.equal(dict(load), cards, f"{what}: the cards")


def scenario_gpushare_moves(cluster, rounds):
    """A plan for a pod, drain of a card and defragmentation evict pods: each successor gets the other card by
    kubelet's Allocate and is Ready before the next step."""
    cluster.client.create(
        {"apiVersion": "apps/v1", "kind": "Deployment",
         "metadata": {"name": "moved-web", "namespace": "default"},
         "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                  "template": template({"app": "web"}, 3)}}
    )
    wait_for(lambda: len(cluster.pods("moved-web")) == 2, PATIENCE_S, 0.1, "two pods")
    cluster.await_settled([pod["metadata"]["name"] for pod in cluster.pods("moved-web")])
    make(cluster, ["moved-alone"], 11)
    moved_judged(cluster, "before the moves", {0: 6, 1: 11})

    make(cluster, ["moved-big"], 12)
    wait_for(lambda: condition(cluster.client.get("Pod", "moved-big"), "PodScheduled").get("status") == "False",
             PATIENCE_S, 0.1, "no card has room")
    status, shown, said = command(cluster, "plan", "default/moved-big", "--apply")
    cluster.tap.equal((status, shown.get("moved")), (0, 1), f"one move makes room: {said}")
    moved_judged(cluster, "room for a pod", {0: 15, 1: 14})
    cluster.client.delete("Pod", "moved-big", grace_s=1)
    wait_for(lambda: cluster.client.find("Pod", "moved-big") is None, PATIENCE_S, 0.1, "the pod gone")

    status, shown, said = command(cluster, "drain", "gpu-node/1", "--apply", "--force")
    states = [pod["state"] for pod in shown.get("pods", [])]
    cluster.tap.equal((status, states), (0, ["evicted"] * 2), f"the card is drained: {said}")
    moved_judged(cluster, "after the drain", {0: 6})
    cluster.tap.equal(command(cluster, "uncordon", "gpu-node/1")[0], 0, "the card is back")

    # What is expected decides which pieces are of no use: pods that nobody schedules yet.
    for number in range(16):
        cluster.pod(f"expected-{number}", {MEMORY: 12}, gated=True)
    make(cluster, ["moved-alone"], 11)
    moved_judged(cluster, "before the pieces are put together", {0: 6, 1: 11})
    status, shown, said = command(cluster, "plan", "--defragment", "0.5", "--apply")
    cluster.tap.equal((status, shown.get("moved")), (0, 1), f"one move puts them together: {said}")
    moved_judged(cluster, "after that", {0: 3, 1: 14})
    cluster.client.delete("Deployment", "moved-web")
    wait_for(lambda: not cluster.pods("moved-web"), PATIENCE_S, 0.1, "their pods gone", ignore=())


def template(labels, units):
    return {
        "metadata": {"labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": [
                {"name": "c0", "image": "gpuledger.test/pod:1", "imagePullPolicy": "Never",
                 "resources": {"limits": {MEMORY: str(units)}}}
            ],
        },
    }
