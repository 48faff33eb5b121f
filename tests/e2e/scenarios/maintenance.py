# SPDX-License-Identifier: Apache-2.0
"""Cards and nodes out of service by `gpuledger cordon`, `uncordon` and `drain`, with the rights of
manifests/maintenance and no more."""

import json
import signal
import subprocess
import threading
import time

from kubeapi import ApiError, node_object, pod_object, wait_for
from world import MANIFESTS, SYSTEM, World, gpu_container, program

MAINTAINER, NAMESPACE = "maintainer", "default"
PATIENCE_S = 240  # for what must come, however much else the machine does
HEALTH = ("kube-system", "unhealthy-gpu-n1")
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web-uid", "controller": True}


def maintain(world):
    """A kubeconfig of somebody who has the rights of manifests/maintenance."""
    world.plane.kubectl("apply", "-f", str(MANIFESTS / "maintenance" / "role.yaml"))
    world.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": MAINTAINER}})
    subject = {"kind": "ServiceAccount", "name": MAINTAINER, "namespace": NAMESPACE}
    for kind, role, namespace in (("ClusterRoleBinding", "ClusterRole", None), ("RoleBinding", "Role", "kube-system")):
        metadata = {"name": MAINTAINER, **({"namespace": namespace} if namespace else {})}
        world.client.create({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "gpuledger-maintainer"},
            "subjects": [subject],
        })
    return world.kubeconfig(MAINTAINER, NAMESPACE)


class Maintainer:
    """Runs commands with those rights."""

    def __init__(self, world):
        self.world, self.kubeconfig = world, maintain(world)

    def run(self, *arguments):
        command = [program(), *arguments, "--kubeconfig", str(self.kubeconfig)]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    def start(self, *arguments):
        command = [program(), *arguments, "--kubeconfig", str(self.kubeconfig)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def changes(self, *arguments):
        """[(object, from, to)]."""
        answer = self.run(*arguments, "-o", "json")
        self.world.tap.equal((answer.returncode, answer.stderr), (0, ""), " ".join(arguments))
        return [(each["object"], each["from"], each["to"]) for each in json.loads(answer.stdout)["changes"]]


def annotation(world, key="gpuledger.io/cordoned-cards", node="n1"):
    return world.client.get("Node", node)["metadata"].get("annotations", {}).get(key)


def mark(world, node="n1"):
    """What a plan says of the node, or None."""
    text = annotation(world, "gpuledger.io/plan", node)
    return text and json.loads(text)


def kept(world, node="n1"):
    """Whom room is kept for there: UIDs of pods, and of controllers."""
    return [room.get("pod") or room["controller"] for room in (mark(world, node) or {"rooms": []})["rooms"]]


def await_webs(world):
    """As many as there were, all of them Ready, and none that ends."""
    def settled():
        pods = [pod for pod in world.client.items("Pod") if pod["metadata"]["name"].startswith("web")]
        return len(pods) == 2 and not any(pod["metadata"].get("deletionTimestamp") for pod in pods) and pods
    await_ready(world, [pod["metadata"]["name"] for pod in wait_for(settled, PATIENCE_S)])


def unhealthy(world):
    found = world.client.find("ConfigMap", HEALTH[1], HEALTH[0])
    return found and found["data"]["gpus"]


def scenario_cordon(tap):
    """A card takes no new pods and keeps those that it has; others' marks stay."""
    with World(tap) as world:
        world.start()
        world.node("n1", [8, 8])
        person = Maintainer(world)
        world.pod("before", 4)
        world.await_running(["before"])
        card = world.card("before")[1]
        place = f"n1/{card}"

        named = f"{card}=of:2"
        wanted = [("node n1", None, named), (f"configmap {'/'.join(HEALTH)}", None, str(card))]
        tap.equal(person.changes("cordon", place, "--dry-run"), wanted, "a dry run says what it would write")
        tap.equal((annotation(world), unhealthy(world)), (None, None), "and writes nothing")
        tap.equal(person.changes("cordon", place), wanted, "cordon says what it has written")
        tap.equal((annotation(world), unhealthy(world)), (named, str(card)), "and has written it")
        tap.equal(person.changes("cordon", place), [], "once more changes nothing")
        wait_for(lambda: world.ops("/api/v1/nodes/n1")["cards"][card]["closed"], what="the extender knows")
        for name in ("a", "b", "c"):
            world.pod(name, 4)
        world.await_running(["a", "b"])
        tap.equal({world.card(name)[1] for name in ("a", "b")}, {1 - card}, "new pods get the other card")
        world.refusal("c", "Unschedulable", PATIENCE_S)
        tap.equal(world.fleet.phase("before"), "Running", "who was there stays")

        world.client.patch("ConfigMap", HEALTH[1], {"data": {"gpus": f"{card},7"}}, HEALTH[0])
        tap.equal([change[0] for change in person.changes("uncordon", place)],
                  ["node n1", f"configmap {'/'.join(HEALTH)}"], "uncordon takes both back")
        tap.equal((annotation(world), unhealthy(world)), (None, "7"), "but not what others have written")
        world.await_running(["c"])
        tap.equal(world.card("c")[1], card, "the card takes pods again")
        world.client.patch("ConfigMap", HEALTH[1], {"data": {"gpus": str(card)}}, HEALTH[0])
        tap.equal((person.changes("uncordon", place), unhealthy(world)), ([], str(card)),
                  "a card that others call unhealthy stays so")

        tap.equal(person.changes("cordon", "n1"), [("node n1", "false", "true")], "a node")
        tap.equal(world.client.get("Node", "n1")["spec"].get("unschedulable"), True, "is closed as kubectl does it")
        tap.equal(person.changes("uncordon", "n1"), [("node n1", "true", "false")], "and opened")
        for words, said, status in (("cordon n1/2", "no card 2, only 0 to 1", 1),
                                    ("cordon nowhere/0", '"nowhere" not found', 1),
                                    ("cordon n1/x", "no card's index", 2)):
            answer = person.run(*words.split())
            tap.ok(answer.returncode == status and said in answer.stderr, f"{words}: {said}", answer.stderr)
        world.verify("at last")


class Controller(threading.Thread):
    """Makes a pod again whenever one of its pods is gone, and calls those that run Ready, unless it is `held`:
    then whoever waits for a successor waits."""

    def __init__(self, world, units):
        super().__init__(daemon=True)
        self.world, self.units, self.made, self.stopped, self.held = world, units, 0, False, False

    def make(self):
        self.made += 1
        pod = pod_object(f"web-{self.made}", spec={"containers": [gpu_container("c0", self.units)],
                                                   "terminationGracePeriodSeconds": 30})
        pod["metadata"]["ownerReferences"] = [OWNER]
        self.world.client.create(pod)
        return pod["metadata"]["name"]

    def run(self):
        client = self.world.plane.client()
        while not self.stopped:
            pods = [pod for pod in client.items("Pod") if pod["metadata"].get("ownerReferences")]
            if len([pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]) < 2:
                self.make()
            for pod in pods:
                conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
                if not self.held and pod["status"].get("phase") == "Running" and conditions.get("Ready") != "True":
                    ready = [{"type": "Ready", "status": "True"}]
                    try:
                        client.patch("Pod", pod["metadata"]["name"], {"status": {"conditions": ready}},
                                     subresource="status")
                    except ApiError:
                        pass  # it is gone
            threading.Event().wait(0.2)


def scenario_cordon_drain(tap):
    """drain says where pods would go, and moves them one after the other through the Eviction API."""
    with World(tap) as world:
        world.start()
        world.node("n1", [8, 8])
        person = Maintainer(world)
        controller = Controller(world, 6)
        names = [controller.make(), controller.make()]
        world.pod("alone", 2)
        world.await_running([*names, "alone"])
        world.node("n2", [8, 8])
        card = world.card(names[0])[1]
        kept = world.client.get("Pod", names[1])["metadata"]["uid"]
        on_card = {name for name in [*names, "alone"] if world.card(name)[1] == card}

        answer = person.run("drain", f"n1/{card}", "-o", "json")
        shown = json.loads(answer.stdout)
        tap.equal(({pod["name"] for pod in shown["pods"]}, shown["nowhere"], shown["applied"]), (on_card, 0, False),
                  "drain shows who is on the card")
        tap.ok(all(pod["fitsOn"] for pod in shown["pods"]), "and where each would go", shown)
        tap.equal((annotation(world), answer.returncode), (None, 0), "and writes nothing")

        controller.start()
        await_ready(world, names)
        world.client.create({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 2, "selector": {}},
        })
        budget = {"status": {"disruptionsAllowed": 0, "observedGeneration": 1, "currentHealthy": 3,
                             "desiredHealthy": 3, "expectedPods": 3}}
        world.client.patch("PodDisruptionBudget", "web", budget, subresource="status")
        answer = person.run("drain", f"n1/{card}", "--apply", "--evict-timeout", "4s")
        tap.equal(answer.returncode, 1, "a budget that gives nothing is waited for, and then it stops")
        tap.ok("waits for a PodDisruptionBudget" in answer.stderr and "disruption budget" in answer.stderr,
               "it says why", answer.stderr)
        tap.equal(annotation(world), f"{card}=of:2", "the card is cordoned")
        budget["status"]["disruptionsAllowed"] = 2
        world.client.patch("PodDisruptionBudget", "web", budget, subresource="status")
        answer = person.run("drain", f"n1/{card}", "--apply", "-o", "json")
        states = {pod["name"]: pod["state"] for pod in json.loads(answer.stdout)["pods"]}
        left = {"alone"} & on_card
        tap.equal(states, {name: "stays" if name in left else "evicted" for name in on_card},
                  "the pods are evicted, but for one that nobody makes again")
        tap.equal(answer.returncode, 3 if left else 0, "which the exit status tells")
        tap.equal(world.client.get("Pod", names[1])["metadata"]["uid"], kept, "who is on another card stays")
        tap.ok("its successor is Ready" in answer.stderr, "each successor was waited for", answer.stderr)
        if left:
            answer = person.run("drain", f"n1/{card}", "--apply", "--force")
            tap.equal(answer.returncode, 0, "--force ends that as well")
        holders = [pod["name"] for node in world.ops("/api/v1/nodes")["nodes"] if node["name"] == "n1"
                   for pod in node["pods"] for share in pod["shares"] if share["card"] == card]
        tap.equal(holders, [], "nobody is left on the card")
        controller.stopped = True
        controller.join()
        world.verify("at last")


def await_ready(world, names):
    wait_for(lambda: all(
        {c["type"]: c["status"] for c in world.client.get("Pod", name)["status"].get("conditions", [])}
        .get("Ready") == "True" for name in names), PATIENCE_S, 0.2, "pods are Ready")


def order(world, name, **data):
    """A ConfigMap that orders a plan."""
    world.client.create({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {
        "namespace": SYSTEM, "name": name, "labels": {"gpuledger.io/plan": "run"}}})


def ordered(world, name, *phases):
    """What has come of it, once it is in one of these phases."""
    metadata = world.client.get("ConfigMap", name, SYSTEM)["metadata"]
    status = json.loads(metadata.get("annotations", {}).get("gpuledger.io/plan-status", "{}"))
    return status.get("phase") in phases and status


def scenario_plan(tap):
    """A pod for which no card has room gets one: plan shows the moves, and makes them one by one."""
    with World(tap) as world:
        world.kustomize("overlays/plans")
        world.start("--plans")
        world.node("n1", [8])
        person = Maintainer(world)
        controller = Controller(world, 3)
        names = [controller.make(), controller.make()]
        world.await_running(names, PATIENCE_S)
        world.node("n2", [8])
        world.pod("alone", 4)
        world.await_running(["alone"], PATIENCE_S)
        world.node("n3", [6])
        controller.start()
        await_ready(world, names)
        world.pod("big", 8)
        world.refusal("big", "Unschedulable", PATIENCE_S)

        answer = person.run("plan", "default/big", "-o", "json")
        tap.equal((answer.returncode, answer.stderr), (0, ""), "a plan is found, with the rights of maintenance")
        shown = json.loads(answer.stdout)
        tap.equal({(step["name"], step["from"]) for step in shown["steps"]}, {(name, "n1") for name in names},
                  "both pods leave the card that they share")
        tap.equal({step["to"] for step in shown["steps"]}, {"n2", "n3"}, "each for where there is room")
        tap.equal((shown["fewest"], shown["node"]), (True, "n1"), "fewer do not do")
        tap.equal([stay["name"] for stay in shown["stays"]], ["alone"], "who has no controller stays")
        tap.ok(all(world.fleet.phase(name) == "Running" for name in names), "nothing has moved yet")
        explained = person.run("explain", "default/big")
        tap.ok("gpuledger plan default/big" in explained.stdout, "explain names the command", explained.stdout)

        world.client.create({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 2, "selector": {}},
        })
        budget = {"status": {"disruptionsAllowed": 0, "observedGeneration": 1, "currentHealthy": 3,
                             "desiredHealthy": 3, "expectedPods": 3}}
        world.client.patch("PodDisruptionBudget", "web", budget, subresource="status")
        answer = person.run("plan", "default/big", "--apply", "-o", "json")
        tap.equal((answer.returncode, json.loads(answer.stdout)["moved"]), (3, 0),
                  "a budget that gives nothing leaves no plan")
        tap.ok({stay["name"] for stay in json.loads(answer.stdout)["stays"]} >= set(names), "which it says",
               answer.stdout)
        budget["status"]["disruptionsAllowed"] = 2
        world.client.patch("PodDisruptionBudget", "web", budget, subresource="status")

        far = (time.gmtime().tm_hour + 12) % 24
        answer = person.run("plan", "default/big", "--apply", "--window", f"{far:02}:00-{far:02}:59")
        tap.equal((answer.returncode, "window" in answer.stderr, mark(world)), (1, True, None),
                  f"outside of its window nothing begins: {answer.stderr}")

        # Who ends it while the first successor is waited for leaves nothing; it goes on from there.
        big = world.client.get("Pod", "big")["metadata"]["uid"]
        controller.held = True
        process = person.start("plan", "default/big", "--apply")
        wait_for(lambda: controller.made == 3, PATIENCE_S, what="a pod was evicted")
        tap.equal(kept(world), [big], "room is kept for the pod from the first move on")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE_S)[1]
        tap.equal(process.returncode, 130, f"a signal ends it: {said}")
        tap.equal([mark(world, node) for node in ("n1", "n2", "n3")], [None] * 3, "and nothing is kept any more")
        controller.held = False
        await_webs(world)

        # Whoever asks for the room that is made, while it is made, does not get it.
        controller.held = True
        process = person.start("plan", "default/big", "--apply", "-o", "json", "--max-per-namespace", "2", "--window",
                               "00:00-24:00")
        wait_for(lambda: controller.made == 4, PATIENCE_S, what="the other was evicted")
        doing = mark(world)["doing"]
        rooms = [room for node in ("n2", "n3") for room in (mark(world, node) or {"rooms": []})["rooms"]]
        world.pod("thief", 2, spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}, "priority": 0})
        tap.ok("Unschedulable" in world.refusal("thief", "Unschedulable", PATIENCE_S), "who comes for the room is refused")
        controller.held = False
        printed, said = process.communicate(timeout=PATIENCE_S)
        tap.equal(process.returncode, 0, f"carried out: {said}")
        tap.equal([(room["namespace"], room["controller"], room["asks"]) for room in rooms],
                  [("default", "web-uid", "1 x 3 units")], "room was kept for the successor as well")
        tap.ok("room for default/big" in doing and "leaves n1 (since " in doing,
               "meanwhile the node said what was being done", doing)
        tap.equal([mark(world, node) for node in ("n1", "n2", "n3")], [None] * 3, "and says it no more")
        shown = json.loads(printed)
        tap.equal((shown["moved"], shown["steps"], [step["outcome"] for step in shown["taken"]]), (1, [], ["moved"]),
                  "by the move that was left")
        tap.equal(said.count("its successor is Ready"), 1, f"its successor was waited for: {said}")
        world.await_running(["big"], PATIENCE_S)
        tap.equal(world.card("big")[0], "n1", "the pod has the card")
        told = [text for why, _, text in world.client.events() if why == "GPUPodMoved"]
        tap.ok(len(told) >= 1 and all("makes room on n1" in text and "big" not in text for text in told),
               "an Event says why each pod ended, and not for whom", told)
        tap.ok(world.fleet.phase("alone") == "Running", "and nobody else has moved")
        tap.equal(world.client.get("Pod", "thief")["spec"].get("nodeName"), None, "who came for the room has none")
        world.client.delete("Pod", "thief")
        answer = person.run("plan", "default/big", "--apply")
        tap.equal(answer.returncode, 0, "once more changes nothing")

        # Who is killed leaves what ends by itself; until then it is taken for another's, at work.
        world.node("n4", [8])
        world.pod("wide", 6, spec={"nodeSelector": {"kubernetes.io/hostname": "n3"}})
        world.refusal("wide", "Unschedulable", PATIENCE_S)
        world.client.patch("PodDisruptionBudget", "web", budget, subresource="status")
        controller.held = True
        process = person.start("plan", "default/wide", "--apply")
        wait_for(lambda: controller.made == 5, PATIENCE_S, what="the pod on n3 was evicted")
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        left = mark(world, "n3")
        tap.equal(kept(world, "n3"), [world.client.get("Pod", "wide")["metadata"]["uid"]], "SIGKILL leaves the annotation")
        person.run("uncordon", "n3")
        tap.equal(mark(world, "n3"), left, "which a living plan may have written, so that uncordon leaves it")
        left["until"] = "2026-01-01T00:00:00Z"  # as if the time had passed
        for node in ("n1", "n2", "n3", "n4"):
            world.client.patch("Node", node, {"metadata": {"annotations": {"gpuledger.io/plan": json.dumps(left)}}})
        person.run("uncordon", "n1")
        tap.equal(mark(world, "n1"), None, "when it is over, it takes it away")
        controller.held = False
        await_webs(world)
        world.await_running(["wide"], PATIENCE_S)

        world.node("n5", [8])
        world.client.patch("PodDisruptionBudget", "web", budget, subresource="status")
        order(world, "empty-n4", empty="n4", **{"max-per-hour": "1"})
        status = wait_for(lambda: ordered(world, "empty-n4", "done", "stopped"), PATIENCE_S)
        tap.equal((status["phase"], [step["outcome"] for step in status["steps"]]), ("done", ["moved"]),
                  f"a ConfigMap has the next plan carried out, with the rights of its overlay: {status}")
        tap.equal(world.card(f"web-{controller.made}")[0], "n5", "the pod has gone where there is room")
        tap.equal([mark(world, node) for node in ("n1", "n2", "n3", "n4", "n5")], [None] * 5, "and nothing is left behind")

        [line] = world.client.get("ConfigMap", "gpuledger-moves", SYSTEM)["data"]["moves"].splitlines()
        tap.equal(line.split()[1:], [status["steps"][0]["uid"], "default", "n4", "plan"],
                  "the hour has it, and no move without a bound")
        person.run("uncordon", "n4")
        world.client.patch("PodDisruptionBudget", "web", budget, subresource="status")
        process = person.start("plan", "--empty", "n5", "--apply", "--max-per-hour", "1")
        said = process.stderr.readline()
        while said and "the next one waits" not in said:
            said = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        tap.ok("in this hour" in said, "a command counts the same hour, with the rights of maintenance", said)

        answer = person.run("plan", "--empty", "n2/0", "--apply", "--max-moves", "1")
        tap.equal(answer.returncode, 3, "a card whose pod nobody makes again is not emptied")
        controller.stopped = True
        controller.join()
        world.verify("at last")


DRA = ["--feature-gates=DRADeviceTaints=true,DRADeviceTaintRules=true", "--runtime-config=resource.k8s.io/v1beta2=true"]
RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
CARDS = "GPU-0,10,16000,100,T4,0,true,0,hami-core:GPU-1,10,16000,100,T4,0,true,1,hami-core:"


def scenario_cordon_dra(tap):
    """A card that is a device of DRA, too: others of its dialect and kube-scheduler are told as well."""
    with World(tap, apiserver_args=DRA, played=False) as world:
        person = Maintainer(world)
        world.client.create(node_object("n1", {"nvidia.com/gpu": "20"}, annotations={
            "hami.io/node-nvidia-register": CARDS, "hami.io/device-cordon": "GPU-9"}))
        devices = [{"name": f"gpu-{i}", "attributes": {"uuid": {"string": f"GPU-{i}"}}} for i in range(2)]
        world.client.request("POST", "/apis/resource.k8s.io/v1/resourceslices", {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "n1"},
            "spec": {"driver": "gpu.nvidia.com", "nodeName": "n1", "devices": devices,
                     "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}},
        })
        rule, taint = "devicetaintrule gpuledger-n1-gpu-1", "gpuledger.io/cordoned:NoSchedule"
        wanted = [("node n1", None, "1=GPU-1"), ("node n1", "GPU-9", "GPU-9,GPU-1"), (rule, None, taint)]
        tap.equal(person.changes("cordon", "n1/1", "--dry-run"), wanted, "a dry run says all three")
        tap.equal(world.client.request("GET", RULES)["items"], [], "and writes nothing")
        tap.equal(person.changes("cordon", "n1/1"), wanted, "they are written")
        [made] = world.client.request("GET", RULES)["items"]
        tap.equal(made["spec"]["deviceSelector"], {"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-1"},
                  "the rule is for the card's device")
        tap.equal((made["spec"]["taint"]["key"], made["spec"]["taint"]["effect"]),
                  ("gpuledger.io/cordoned", "NoSchedule"), "and keeps new claims from it")
        tap.equal(person.changes("cordon", "n1/1"), [], "once more changes nothing")
        tap.equal(person.changes("uncordon", "n1/1"),
                  [("node n1", "1=GPU-1", None), ("node n1", "GPU-9,GPU-1", "GPU-9"), (rule, taint, None)],
                  "uncordon takes back what was written")
        tap.equal(world.client.request("GET", RULES)["items"], [], "the rule, too")
