# SPDX-License-Identifier: Apache-2.0
"""overlays/own-writes on a real API server: whatever RBAC grants gpuledger's account, of pods and Nodes it changes
only what gpuledger writes. Here it may do all that can be done to them, and what is not gpuledger's is denied. Every
scenario of the current version runs under the policy (`prepare` in world.py), so what gpuledger does write passes."""

import time

from kubeapi import JSON_PATCH, ApiError, Client, wait_for
from world import ACCOUNT, RESOURCE, RESOURCE_COUNT, SYSTEM, World, node_object

POLICY = "gpuledger-own-writes"
EVERYTHING = [{"apiGroups": [""], "verbs": ["*"], "resources": ["pods", "pods/binding", "nodes"]}]
TAINT = "gpuledger.io/switching"
HOLDER = "gpuledger.io/holder"
# What the API server lets a pod's annotations have together is 256 KiB.
MANY = 50000


def grant_everything(world):
    """The account has more rights than any manifest grants."""
    world.client.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                         "metadata": {"name": "everything"}, "rules": EVERYTHING})
    world.client.create({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "everything"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "everything"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM}]})


def pod(name, annotations=None, namespace="default", account="default"):
    container = {"name": "c0", "image": "example.com/none:1", "resources": {"limits": {RESOURCE: "2"}}}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": "a"},
                         "finalizers": ["example.com/theirs"],
                         "annotations": {"example.com/theirs": "x", **(annotations or {})}},
            "spec": {"serviceAccountName": account, "containers": [container],
                     "tolerations": [{"key": "a", "operator": "Exists"}]}}


class Writer:
    """gpuledger's account, and what comes of its writes."""

    def __init__(self, tap, client):
        self.tap, self.client = tap, client

    def said(self, kind, name, patch, namespace="default", content_type=None):
        """What the policy says; None if the write passes."""
        more = {"content_type": content_type} if content_type else {}
        try:
            self.client.patch(kind, name, patch, namespace=namespace, **more)
        except ApiError as error:
            return str(error)
        return None

    def refused(self, what, said):
        self.tap.ok(said is not None and POLICY in said, f"denied: {what}", said or "it passed")

    def passed(self, what, said):
        self.tap.ok(said is None, f"passes: {what}", said)

    def bind(self, name, annotations, labels=None):
        try:
            self.client.request("POST", f"/api/v1/namespaces/default/pods/{name}/binding", {
                "apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": name, "namespace": "default", "annotations": annotations,
                             "labels": labels or {}},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}})
        except ApiError as error:
            return str(error)
        return None


def note(key, value):
    return {"metadata": {"annotations": {key: value}}}


def label(key, value):
    return {"metadata": {"labels": {key: value}}}


def check_pods(writer, world):
    def said(patch, **more):
        return writer.said("Pod", "free", patch, **more)

    def image(value):
        return [{"op": "replace", "path": "/spec/containers/0/image", "value": value}]

    more = world.client.get("Pod", "free")["spec"]["tolerations"] + [{"key": "b", "operator": "Exists"}]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": world.client.get("Node", "n1")["metadata"]["uid"]}
    for what, patch, kind in (
        ("another image", image("example.com/other:1"), JSON_PATCH),
        ("activeDeadlineSeconds", {"spec": {"activeDeadlineSeconds": 1}}, None),
        ("a toleration", {"spec": {"tolerations": more}}, None),
        ("a label", label("app", "b"), None),
        ("a label less", label("app", None), None),
        ("the label of the holder on a pod of another account", label(HOLDER, "true"), None),
        ("the key of an annotation as a label", label("gpuledger.io/seal", "x"), None),
        ("another finalizer", {"metadata": {"finalizers": ["example.com/theirs", "example.com/f"]}}, None),
        ("a finalizer less", {"metadata": {"finalizers": None}}, None),
        ("an owner", {"metadata": {"ownerReferences": [owner]}}, None),
        ("an annotation", note("example.com/new", "x"), None),
        ("another value of an annotation", note("example.com/theirs", "y"), None),
        ("an annotation less", note("example.com/theirs", None), None),
        ("a wish of the pod's author", note("gpuledger.io/policy", "spread"), None),
        ("a Node's annotation on a pod", note("gpuledger.io/cordoned-cards", "0"), None),
        ("a key that begins like one of ours", note("gpuledger.io/sealed", "x"), None),
        ("an image beside what it may write",
         [*image("example.com/other:1"), {"op": "add", "path": "/metadata/annotations/gpuledger.io~1woken", "value": "1"}],
         JSON_PATCH),
        ("all annotations less", [{"op": "remove", "path": "/metadata/annotations"}], JSON_PATCH),
    ):
        writer.refused(what, said(patch, content_type=kind))
    for key in ("gpuledger.io/woken", "gpuledger.io/seal", "ALIYUN_COM_GPU_MEM_ASSIGNED", "hami.io/bind-phase",
                "hami.io/vgpu-devices-allocated"):
        writer.passed(f"{key} on a pod", said(note(key, "1")))
        writer.passed(f"{key} off it", said(note(key, None)))
    writer.refused("the last scheduling gate less", writer.said("Pod", "gated", {"spec": {"schedulingGates": None}}))
    writer.passed("the label of the holder on its own pod", writer.said("Pod", "own", label(HOLDER, "true"), SYSTEM))
    writer.passed("and off it", writer.said("Pod", "own", label(HOLDER, None), SYSTEM))
    writer.refused("another label on its own pod", writer.said("Pod", "own", label("app", "b"), SYSTEM))
    more = {f"example.com/{number}": "" for number in range(1001)}
    writer.refused("more annotations than the policy goes through", said({"metadata": {"annotations": more}}))
    for what, patch in (("our own", note("gpuledger.io/woken", "1")), ("one more", note("example.com/new", "x")),
                        ("another value", note("00001", "x")), ("one less", note("00001", None))):
        writer.refused(f"of more than 1,000 annotations {what}", writer.said("Pod", "wordy", patch))
    writer.refused("nor is its deadline set", writer.said("Pod", "wordy", {"spec": {"activeDeadlineSeconds": 1}}))
    writer.refused("an annotation of others on a pod with some annotations",
                   writer.said("Pod", "talkative", note("00001", "x")))
    writer.passed("which is woken", writer.said("Pod", "talkative", note("gpuledger.io/woken", "1")))


def check_bindings(writer, world):
    writer.refused("an annotation of others in a Binding", writer.bind("free", {"example.com/new": "x"}))
    writer.refused("a label in a Binding", writer.bind("free", {}, {"app": "b"}))
    writer.passed("a Binding with a card", writer.bind("free", {"ALIYUN_COM_GPU_MEM_IDX": "0", "gpuledger.io/seal": "x"},
                                                       {"hami.io/vgpu-node": "n1"}))
    writer.tap.equal(world.client.get("Pod", "free")["metadata"]["labels"].get("topology.kubernetes.io/zone"), "z1",
                     "with the labels that the API server adds to a Binding")


def check_nodes(writer, world):
    def said(patch, content_type=None):
        return writer.said("Node", "n1", patch, None, content_type)

    theirs = {"key": "example.com/theirs", "effect": "NoSchedule"}
    ours = {"key": TAINT, "effect": "NoSchedule"}
    for what, patch in (
        ("a label of a Node", label("topology.kubernetes.io/zone", "z2")),
        ("a new label of a Node", label("example.com/new", "x")),
        ("an annotation of a Node", note("example.com/new", "x")),
        ("an annotation of a Node less", note("example.com/theirs", None)),
        ("a pod's annotation on a Node", note("gpuledger.io/seal", "x")),
        ("what an administrator says of cards", note("gpuledger.io/card-memory", "10,20")),
        ("another taint", {"spec": {"taints": [theirs, {"key": "b", "effect": "NoSchedule"}]}}),
        ("a taint less", {"spec": {"taints": []}}),
        ("no taints", {"spec": {"taints": None}}),
        ("another effect of a taint", {"spec": {"taints": [{**theirs, "effect": "NoExecute"}]}}),
        ("our taint, to end pods", {"spec": {"taints": [theirs, {**ours, "effect": "NoExecute"}]}}),
        ("a provider's name", {"spec": {"providerID": "example://1"}}),
        ("addresses of pods", {"spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}}),
        ("a finalizer of a Node", {"metadata": {"finalizers": ["example.com/f"]}}),
    ):
        writer.refused(what, said(patch))
    for what, patch in (
        ("our taint", {"spec": {"taints": [theirs, ours]}}),
        ("our taint less", {"spec": {"taints": [theirs]}}),
        ("a cordon of a Node", {"spec": {"unschedulable": True}}),
        ("its end", {"spec": {"unschedulable": None}}),
        ("a switch's label", label("nvidia.com/mig.config", "all-1g.5gb")),
        ("a switch's label less", label("nvidia.com/mig.config", None)),
        *((f"{key} of a Node", note(key, "x")) for key in (
            "gpuledger.io/switch", "gpuledger.io/switch-state", "gpuledger.io/switched", "gpuledger.io/slots",
            "gpuledger.io/cordoned-cards", "gpuledger.io/plan", "gpuledger.io/reclaim", "hami.io/mutex.lock",
            "hami.io/device-cordon")),
    ):
        writer.passed(what, said(patch))


def scenario_own_writes(tap):
    """What is not gpuledger's to write is denied to its account, whatever RBAC grants it."""
    with World(tap, played=False) as world:
        grant_everything(world)
        node = node_object("n1", {RESOURCE: 16, RESOURCE_COUNT: 2}, labels={"topology.kubernetes.io/zone": "z1"})
        node["metadata"]["annotations"] = {"example.com/theirs": "x"}
        node.setdefault("spec", {})["taints"] = [{"key": "example.com/theirs", "effect": "NoSchedule"}]
        world.client.create(node)
        world.client.create(pod("free"))
        gated = pod("gated")
        gated["spec"]["schedulingGates"] = [{"name": "example.com/theirs"}]
        world.client.create(gated)
        world.client.create(pod("own", namespace=SYSTEM, account=ACCOUNT))
        world.client.create(pod("wordy", {f"{number:05}": "" for number in range(MANY)}))
        world.client.create(pod("talkative", {f"{number:05}": "" for number in range(900)}))
        world.kubeconfig()
        client = Client(world.plane.url, (world.folder / f"{ACCOUNT}.token").read_text().strip(),
                        str(world.plane.ca_file))
        writer = Writer(tap, client)
        wait_for(lambda: POLICY in (writer.said("Pod", "free", note("example.com/now", str(time.monotonic_ns()))) or ""),
                 60, what="the policy is on its post")
        world.client.patch("Pod", "free", note("example.com/now", None))
        check_pods(writer, world)
        check_nodes(writer, world)
        check_bindings(writer, world)
        others = world.client.patch("Pod", "free", label("app", "b"))
        tap.equal(others["metadata"]["labels"]["app"], "b", "it holds no other account")
