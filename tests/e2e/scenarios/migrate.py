# SPDX-License-Identifier: Apache-2.0
"""From another scheduler to gpuledger and back: its node side stays, pods that run keep their cards, new ones get
others, and the other scheduler counts them all."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from hami import uuid_of
from hardware import NO_CARD
from kubeapi import wait_for
from scenarios import elastic, hami, tencent, volcano
from world import World, program

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "migrate"))
from left import ALL, GIB, SIZE  # noqa: E402

OLD = {"old-0": ("n0", 0, 10), "old-1": ("n0", 0, 4), "old-2": ("n0", 1, 12), "old-3": ("n1", 0, 8)}
NEW = {"new-0": 6, "new-1": 3, "new-2": 7, "new-3": 1}
MIB_CARDS = [SIZE * 1024, SIZE * 1024]


def place_as(world, left, name, place, number):
    """As the other scheduler does it: its annotations, then the Binding; one pod after the other."""
    node, card, gib = place
    pod = left.pod(name, gib, owner="web")
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": pod["spec"]}
    created = world.client.create(body)
    if left.name == "hami":
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        world.client.patch("Node", node, {"metadata": {"annotations": {"hami.io/mutex.lock": f"{stamp},default,{name}"}}})
    metadata = {"annotations": left.placed(node, card, gib, number), "labels": left.labels(node)}
    world.client.patch("Pod", name, {"metadata": metadata})
    world.client.request("POST", f"/api/v1/namespaces/default/pods/{name}/binding", {
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "namespace": "default", "uid": created["metadata"]["uid"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
    world.await_running([name])


def new_pods(world, left):
    """Their template names no other scheduler any more."""
    for name, gib in NEW.items():
        spec = left.pod(name, gib)["spec"]
        spec.pop("schedulerName", None)
        world.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
                             "spec": spec})
    world.await_running(NEW, nudge=True)


def running(world):
    return {starts[0].pod: sorted((start.node, start.card) for start in starts)
            for starts in world.fleet.hardware.running().values()}


def ledger(world, left):
    return {(node["name"], left.key(node["name"], card["index"])): card["memoryUsedBytes"] / GIB
            for node in world.ops("/api/v1/nodes")["nodes"] for card in node["cards"] if card["memoryUsedBytes"]}


def looked_at(world, name):
    answer = subprocess.run([program(), "migrate", "--from", name, f"--kubeconfig={world.kubeconfig()}", "-o", "json"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    world.tap.equal((answer.returncode, answer.stderr), (0, ""), "nothing stands in the way")
    return json.loads(answer.stdout)


def manage(world, found):
    """kube-scheduler's configuration with the resources that the steps name."""
    config = world.scheduler_config()
    named = [line.split("name: ")[1].split(",")[0] for step in found["steps"]
             for line in (step["command"] or "").splitlines() if "ignoredByScheduler" in line]
    config["extenders"][0]["managedResources"] = [{"name": name, "ignoredByScheduler": True} for name in named]
    return config


def migrate(world, left, *options):
    tap = world.tap
    for number, (name, place) in enumerate(OLD.items(), 1):
        place_as(world, left, name, place, number)
    before = running(world)
    said = {name: world.client.get("Pod", name)["metadata"].get("annotations") for name in OLD}
    tap.equal({name: cards for name, cards in before.items() if cards and cards[0][1] == NO_CARD}, {},
              "the other scheduler's pods run")

    found = looked_at(world, left.name)
    tap.equal((found["nodes"], found["pods"], found["waiting"], found["underWay"]), (2, 4, 0, 0), "what it has left is seen")
    if left.name == "hami":
        world.kustomize("overlays/hami")
    world.extender_start(*options)
    world.scheduler_start(manage(world, found))
    new_pods(world, left)

    after = running(world)
    tap.equal({name: after.get(name) for name in OLD}, before, "pods that run have kept their cards")
    tap.equal({name: world.client.get("Pod", name)["metadata"].get("annotations") for name in OLD}, said,
              "and nobody has touched their annotations")
    tap.ok(not world.fleet.hardware.overcommits, "no card carries too much", world.fleet.hardware.overcommits)
    tap.equal([start.pod for start in world.fleet.hardware.starts if start.card == NO_CARD], [], "each pod got a card")
    tap.ok(not world.fleet.failures, "the players are well", world.fleet.failures)
    audit = subprocess.run([program(), "audit", "-s", f"http://127.0.0.1:{world.ops_port}"], stdout=subprocess.PIPE,
                           text=True, check=False)
    tap.ok(audit.returncode == 0, "the audit finds nothing", audit.stdout)
    return found


def go_back(world, left, found):
    """What the other scheduler counts at its start is what there is."""
    tap = world.tap
    held = ledger(world, left)
    world.extender_stop()
    if left.name == "elastic":
        missing = dict(left.held(world.client.items("Pod")))
        tap.ok(missing != held, "without the label it misses some")
        tap.ok("assumed" in "\n".join(step["command"] or "" for step in found["back"]), "which the way back says")
        run_printed(world, printed(found["back"], "jq")[0])

    def counted():
        return dict(left.held(world.client.items("Pod")))

    try:
        wait_for(lambda: counted() == held)
    except TimeoutError:
        pass
    tap.equal(counted(), held, "on the way back the other scheduler counts what the ledger had")
    tap.ok(max(counted().values()) <= SIZE, "no card beyond its size", counted())


def other_scheduler(world):
    """It runs as a Deployment."""
    labels = {"app": "gpushare-schd-extender"}
    spec = {"containers": [{"name": "main", "image": "example.com/none:1"}]}
    world.client.request("POST", "/apis/apps/v1/namespaces/kube-system/deployments", {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "gpushare-schd-extender"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}})
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gpushare-schd-extender", "uid": "none", "controller": True}
    world.client.request("POST", "/api/v1/namespaces/kube-system/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gpushare-schd-extender-x", "labels": labels,
                                                        "ownerReferences": [owner]},
        "spec": {**spec, "schedulerName": "nobody"}})


def replicas(world, name):
    return world.client.request("GET", f"/apis/apps/v1/namespaces/kube-system/deployments/{name}")["spec"]["replicas"]


def scale_as_told(world, steps):
    """Runs the lines that scale, as somebody does; how many."""
    lines = [line for step in steps for line in (step["command"] or "").splitlines() if " scale " in line]
    for line in lines:
        tool, *words = shlex.split(line)
        world.tap.equal(tool, "kubectl", line)
        world.plane.kubectl(*words)
    return len(lines)


def printed(steps, word):
    """The commands with that word; what a pipe or a backslash continues is one."""
    lines = [line for step in steps
             for line in (step["command"] or "").replace("\\\n", " ").replace("|\n", "| ").splitlines()]
    return [line for line in lines if word in line.split()]


def start_printed(world, line, *more):
    """As a shell runs it in a checkout, with the control plane's kubectl, for its administrator."""
    return subprocess.Popen(["bash", "-c", " ".join([line, *more])], cwd=ROOT, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={**os.environ, "KUBECONFIG": str(world.plane.kubeconfig()),
                                 "PATH": f"{world.plane.bin}:{os.environ['PATH']}"})


def run_printed(world, line, *more, code=0):
    with start_printed(world, line, *more) as process:
        said, _ = process.communicate()
        world.tap.equal(process.returncode, code, f"{' '.join([line, *more])}: {said.strip()[-300:]}")
    return said


def roll_out(world, ready):
    """As the controller of Deployments tells of gpuledger's: it runs, or has yet to begin."""
    path = "/apis/apps/v1/namespaces/kube-system/deployments/gpuledger"
    deployment = world.client.request("GET", path)
    n = deployment["spec"]["replicas"] if ready else 0
    deployment["status"] = {"observedGeneration": deployment["metadata"]["generation"], "replicas": n, "updatedReplicas": n,
                            "readyReplicas": n, "availableReplicas": n}
    world.client.request("PUT", f"{path}/status", deployment)
    return deployment


def follow_rollout(world, line):
    roll_out(world, False)
    with start_printed(world, line) as process:
        world.tap.ok(process.stdout.readline().startswith("Waiting for deployment"), f"{line}: waits")
        roll_out(world, True)
        said, _ = process.communicate()
        world.tap.equal(process.returncode, 0, f"{line}: {said.strip()[-300:]}")


def wait_for_the_end(world, line):
    """It waits for pods as the Deployment makes them, and ends if there are none."""
    template = roll_out(world, True)["spec"]["template"]
    world.client.request("POST", "/api/v1/namespaces/kube-system/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gpuledger-x", "labels": template["metadata"]["labels"]},
        "spec": {"containers": [{"name": "main", "image": "example.com/none:1"}], "schedulerName": "nobody"}})
    run_printed(world, line, "--timeout=1s", code=1)
    with start_printed(world, line) as process:
        world.client.request("DELETE", "/api/v1/namespaces/kube-system/pods/gpuledger-x")
        said, _ = process.communicate()
        world.tap.equal(process.returncode, 0, f"{line}: {said.strip()[-300:]}")
    run_printed(world, line)


def scenario_migrate_lines(tap):
    """What migrate prints to install gpuledger, and to wait for it, does so, whichever scheduler it is for."""
    with World(tap, played=False) as world:
        for name in ALL:
            found = looked_at(world, name)
            [install] = printed(found["steps"], "-k")
            run_printed(world, install)
            [rollout] = printed(found["steps"], "rollout")
            follow_rollout(world, rollout)
            [wait] = printed(found["back"], "wait")
            wait_for_the_end(world, wait)


def scenario_migrate_commands(tap):
    """The commands by which migrate ends and starts schedulers do so."""
    with World(tap, played=False) as world:
        other_scheduler(world)
        found = looked_at(world, "gpushare")
        tap.equal(scale_as_told(world, found["steps"]), 1, "one command ends the other scheduler")
        tap.equal(replicas(world, "gpushare-schd-extender"), 0, "which has no replica then")
        tap.ok(replicas(world, "gpuledger") > 0, "gpuledger has")
        tap.equal(scale_as_told(world, found["back"]), 2, "two lead back")
        tap.equal((replicas(world, "gpushare-schd-extender"), replicas(world, "gpuledger")), (1, 0), "each way round")


def scenario_migrate_gpushare(tap):
    """From gpushare's extender."""
    left = ALL["gpushare"]
    with World(tap) as world:
        for name in ("n0", "n1"):
            world.node(name, [SIZE, SIZE])
        go_back(world, left, migrate(world, left, "--gpushare-memory-unit=GiB"))


def scenario_migrate_hami(tap):
    """From HAMi's scheduler, with the node's lock."""
    left = ALL["hami"]
    with World(tap) as world:
        for name in ("n0", "n1"):
            hami.add_node(world, name, "hami-v2.10", hami.cards_of(name, MIB_CARDS))
        tap.equal(left.key("n0", 1), uuid_of("n0", 1), "the cards are called so")
        go_back(world, left, migrate(world, left))


def scenario_migrate_tencent(tap):
    """From gpu-admission."""
    left = ALL["gpu-admission"]
    with tencent.TencentWorld(tap) as world:
        for name in ("n0", "n1"):
            world.node(name, [SIZE * GIB, SIZE * GIB])
        go_back(world, left, migrate(world, left))


def scenario_migrate_volcano(tap):
    """From Volcano's scheduler, whose pods then name none."""
    left = ALL["volcano"]
    with World(tap) as world:
        for name in ("n0", "n1"):
            volcano.add_node(world, name, "95b591b6-share", MIB_CARDS)
        go_back(world, left, migrate(world, left))


def scenario_migrate_elastic(tap):
    """From elastic-gpu-scheduler, which needs labels on the way back."""
    left = ALL["elastic"]
    with World(tap) as world:
        for name in ("n0", "n1"):
            elastic.add_node(world, name, "elasticgpu.io", 2)
        go_back(world, left, migrate(world, left))
