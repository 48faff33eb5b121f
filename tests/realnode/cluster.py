# SPDX-License-Identifier: Apache-2.0
"""A cluster of real parts in the test's own namespaces: control plane with controllers and
kube-proxy, nodes, kube-scheduler, and gpuledger, as a process or as the shipped Deployment."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import images
from node import Node
from plane import Plane

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MANIFESTS = ROOT / "manifests"
sys.path += [str(HERE.parent / "e2e"), str(HERE.parent / "players")]

from controlplane import binaries, load_config  # noqa: E402
from kubeapi import KINDS, ApiError, Client, WatchError, wait_for  # noqa: E402
from kubelet import TERMINAL  # noqa: E402
from process import Process  # noqa: E402

SYSTEM = "kube-system"
PORT, OPS_PORT, NODE_PORT = 39999, 39998, 32766
NODES = ("gpu-node", "other-node")
PATIENCE_S = 120  # for what takes seconds on a quiet machine

KINDS.setdefault("Endpoints", ("v1", "endpoints", True))


def condition(pod, kind):
    for each in pod["status"].get("conditions", []):
        if each["type"] == kind:
            return each
    return {}


class Diary(threading.Thread):
    """When each pod was created, bound, Running or Failed, by this process's clock."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self._client = client
        self._lock = threading.Lock()
        self._seen = {}
        self._ends = False

    def run(self):
        while not self._ends:
            with contextlib.suppress(WatchError, OSError, ApiError, http.client.HTTPException):
                version = self._client.list("Pod")["metadata"]["resourceVersion"]
                for event, pod in self._client.watch("Pod", None, version, 300):
                    self._note(event, pod)
                    if self._ends:
                        return

    def end(self):
        self._ends = True

    def _note(self, event, pod):
        now = time.monotonic()
        meta = pod["metadata"]
        with self._lock:
            entry = self._seen.setdefault(
                meta["uid"],
                {"name": meta["name"], "namespace": meta["namespace"], "created": now},
            )
            if pod["spec"].get("nodeName"):
                entry.setdefault("bound", now)
                entry["node"] = pod["spec"]["nodeName"]
            phase = pod["status"].get("phase")
            if phase in ("Running", "Failed"):
                entry.setdefault(phase.lower(), now)
                entry["reason"] = pod["status"].get("reason", "")
            if event == "DELETED":
                entry.setdefault("gone", now)

    def entries(self, prefix="", namespace="default"):
        with self._lock:
            return [
                dict(entry) for entry in self._seen.values()
                if entry["name"].startswith(prefix) and entry["namespace"] == namespace
            ]


class Cluster:
    def __init__(self, tap, folder):
        self.tap = tap
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self.nodes = {}
        self.ops_url = f"http://127.0.0.1:{OPS_PORT}"
        self.ops_token = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.plane = stack.enter_context(Plane(self.folder, NODES, binaries_of("node")))
            self.client = self.plane.client()
            self.plugins = binaries_of("plugins") / "plugins"
            self.images = [images.small(self.folder)]
            self.tags = {}  # {name in an archive: name in a pod}
            self.kubelet = {}  # settings beside those that every node has
            self.kubectl = binaries("current") / "kubectl"
            self.extender = Process("gpuledger", self.folder)
            stack.callback(lambda: self.extender.stop(signal.SIGKILL))
            stack.callback(lambda: [node.stop() for node in self.nodes.values()])
            self.diary = Diary(self.plane.client())
            self.diary.start()
            stack.callback(self.diary.end)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self.drop_pods()
        self._stack.close()

    # Nodes

    def node(self, name="gpu-node"):
        """The node of that name, made at the first call."""
        if name not in self.nodes:
            number = NODES.index(name) + 1
            node = Node(self.plane, name, number, self.images, self.plugins, self.kubelet)
            self.nodes[name] = node
            node.start()
            for given, wanted in self.tags.items():
                node.tag(given, wanted)
        return self.nodes[name]

    def retire(self, name):
        """Puts a node away, with all that is on it, or nothing else would be as if it had never been."""
        if name not in self.nodes:
            return
        self.client.patch("Node", name, {"spec": {"unschedulable": True}})

        def left():
            return self.client.items("Pod", fieldSelector=f"spec.nodeName={name}")

        for pod in left():
            meta = pod["metadata"]
            self.client.delete("Pod", meta["name"], meta["namespace"], grace_s=1)
        wait_for(lambda: not left(), PATIENCE_S, 0.1, f"no pod on {name}")
        self.nodes.pop(name).stop()
        self.client.delete("Node", name)

    # Programs

    def rendered(self, folder):
        """The objects of a kustomization of manifests/."""
        answer = subprocess.run(
            [self.kubectl, "kustomize", MANIFESTS / folder], stdout=subprocess.PIPE, check=True
        )
        import yaml

        return [each for each in yaml.safe_load_all(answer.stdout) if each]

    def apply(self, objects):
        path = self.folder / "applied.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return self.plane.kubectl("apply", "-f", path)

    def rights(self, *folders):
        """The service account of the manifests and what it may do, without the Deployment."""
        kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
        for folder in folders:
            self.apply([each for each in self.rendered(folder) if each["kind"] in kinds])

    def kubeconfig(self):
        """With a token of the shipped service account."""
        answer = self.client.request(
            "POST",
            f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/gpuledger/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
             "spec": {"expirationSeconds": 7200}},
        )
        config = json.loads(self.plane.kubeconfig().read_text())
        config["users"][0]["user"] = {"token": answer["status"]["token"]}
        path = self.folder / "gpuledger.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path

    def extender_start(self, *arguments):
        """gpuledger as a process on loopback, with the rights of the shipped service account."""
        self._arguments = arguments
        self.extender.start(
            [program(), "serve", f"--kubeconfig={self.kubeconfig()}",
             f"--listen=127.0.0.1:{PORT}", f"--ops-listen=127.0.0.1:{OPS_PORT}",
             "--shutdown-delay=0s", *arguments],
            {"PATH": os.environ.get("PATH", "")},
        )
        self.ops_url = f"http://127.0.0.1:{OPS_PORT}"
        self.extender.await_ready(self.ready)

    def ready(self):
        try:
            return self.ops("/readyz", raw=True).strip() == b"ok"
        except (OSError, http.client.HTTPException, ApiError):
            return False

    def ops(self, path, raw=False):
        client = Client(self.ops_url, token=self.ops_token, timeout=10)
        try:
            return client.raw("GET", path) if raw else client.request("GET", path)
        finally:
            client.close()

    def scheduler_start(self, port=PORT, path="gpushare-scheduler", resources=None, certificates=None):
        """kube-scheduler as manifests/scheduler has it; `resources`: {name: ignoredByScheduler};
        over plain HTTP unless `certificates` is a folder that manifests/scheduler/certificate filled."""
        config = load_config(MANIFESTS / "scheduler/kube-scheduler.yaml")
        for extender in config["extenders"]:
            scheme = "https" if certificates else "http"
            extender["urlPrefix"] = f"{scheme}://127.0.0.1:{port}/{path}"
            if certificates:
                extender["tlsConfig"].update(caFile=str(certificates / "ca.crt"),
                                             certFile=str(certificates / "tls.crt"),
                                             keyFile=str(certificates / "tls.key"))
            else:
                del extender["enableHTTPS"], extender["tlsConfig"]
            if "bindVerb" in extender and resources:
                extender["managedResources"] = [
                    {"name": name, "ignoredByScheduler": ignored}
                    for name, ignored in resources.items()
                ]
        config.get("clientConnection", {}).pop("kubeconfig", None)
        config["leaderElection"]["leaderElect"] = False
        self.plane.scheduler_stop()
        self.plane.scheduler_start(config)

    # Pods

    def pod(self, name, *limits, init=(), grace=1, node=None, labels=None, annotations=None,
            namespace="default", tolerates=None, gated=False):
        """A pod whose containers print their environment; `limits`: those of each container; `gated`: nobody
        schedules it."""

        def container(name, amounts):
            return {
                "name": name,
                "image": images.POD,
                "imagePullPolicy": "Never",
                "resources": {"limits": {key: str(value) for key, value in amounts.items()}},
                # As "restricted" asks, so that it runs in any namespace.
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "runAsNonRoot": True,
                    "runAsUser": 65534,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
            }

        spec = {
            "containers": [container(f"c{i}", amounts) for i, amounts in enumerate(limits)],
            "terminationGracePeriodSeconds": grace,
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
        }
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        if tolerates:
            spec["tolerations"] = [{"key": tolerates, "operator": "Exists"}]
        if gated:
            spec["schedulingGates"] = [{"name": "gpuledger.test/later"}]
        meta = {"name": name, "namespace": namespace, "labels": labels or {},
                "annotations": annotations or {}}
        return self.client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        )

    def pods(self, prefix="", namespace="default"):
        return [pod for pod in self.client.items("Pod", namespace)
                if pod["metadata"]["name"].startswith(prefix)]

    def settled(self, pod):
        """Whether kubelet has done what it will do: every container has begun, or the pod has ended."""
        if pod["status"].get("phase") in TERMINAL:
            return True
        node = self.nodes.get(pod["spec"].get("nodeName"))
        return (
            node is not None
            and pod["status"].get("phase") == "Running"
            and all(node.environment(pod, each["name"]) is not None
                    for each in pod["spec"]["containers"])
        )

    def await_settled(self, names, timeout=PATIENCE_S, namespace="default"):
        """Whether all of them are; the judge says about the rest what they are."""
        names = set(names)

        def done():
            found = {pod["metadata"]["name"]: pod for pod in self.client.items("Pod", namespace)
                     if pod["metadata"]["name"] in names}
            return all(name in found and self.settled(found[name]) for name in names)

        try:
            wait_for(done, timeout, 0.25)
            return True
        except TimeoutError:
            return False

    def await_bound(self, names, timeout=PATIENCE_S):
        self.client.wait_bound(list(names), timeout)

    def drop_pods(self, timeout=PATIENCE_S, grace=1):
        """Every pod of the default namespace; with a grace period kubelet ends it before it is gone."""
        self.client.delete_all("Pod", grace_s=grace)
        wait_for(lambda: not self.pods(), timeout, 0.1, "pods gone")

    def await_amount(self, node, resource, amount, timeout=PATIENCE_S):
        wait_for(lambda: self.nodes[node].amount(resource) == amount, timeout, 0.1,
                 f"{amount} {resource} on {node}")


def program():
    path = os.environ.get("GPULEDGER", str(ROOT / "build" / "gpuledger"))
    if not os.access(path, os.X_OK):
        sys.exit('the variable "GPULEDGER" must name the gpuledger binary')
    return path


def binaries_of(what):
    """The folder of a set of programs that tests/controlplane/build has built; None if it has not."""
    answer = subprocess.run(
        [HERE.parent / "controlplane" / "build", "--path", what], stdout=subprocess.PIPE, text=True
    )
    folder = pathlib.Path(answer.stdout.strip() or "/nonexistent")
    return folder if folder.is_dir() else None
