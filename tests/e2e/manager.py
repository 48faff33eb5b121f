# SPDX-License-Identifier: Apache-2.0
"""Kueue's manager and the controller that makes the pods of Jobs, beside a World.

The manager is the real one with the manifests of its own release. Its webhooks are on, and its own
certificate manager makes their certificate. Two things are played: kubelet, which would write the
Secret with it into the manager's folder, and the cluster network, by a Service that is another name
of this machine.
"""

import base64
import json
import os
import pathlib
import subprocess
import threading

from controlplane import ADMIN, ControlPlaneError, Process, binaries, free_ports
from kubeapi import ApiError, Client, wait_for

HERE = pathlib.Path(__file__).resolve().parent
API = "/apis/kueue.x-k8s.io/v1beta2"
NAMESPACE = "kueue-system"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"
ACCOUNT = "kueue-controller-manager"
# What only a cluster with kubelets and a network of its own can run.
LEFT_OUT = ("Deployment", "APIService", "Service")


def programs():
    """The folder that `tests/controlplane/build kueue` fills."""
    build = HERE.parent / "controlplane" / "build"
    answer = subprocess.run([build, "--path", "kueue"], stdout=subprocess.PIPE, text=True, check=False)
    folder = pathlib.Path(answer.stdout.strip() or "/nonexistent")
    if answer.returncode != 0 or not (folder / "kueue").exists():
        raise ControlPlaneError("Kueue is not built: run tests/controlplane/build kueue")
    return folder


class Manager:
    """with Manager(world): the CRDs are there, Kueue and the Job controller run."""

    def __init__(self, world, config=None):
        self.world, self.config = world, config or {}
        self.folder = programs()
        self.kueue = Process("kueue", world.folder)
        self.jobs = Process("kube-controller-manager", world.folder)
        self.certificates = world.folder / "kueue-certs"
        self._ended = threading.Event()

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._ended.set()
        self.kueue.stop(9)
        self.jobs.stop(9)

    def _start(self):
        self.port, self.health, self.metrics, controllers = free_ports(4)
        self._install()
        self.certificates.mkdir(exist_ok=True)
        threading.Thread(target=self._mount, daemon=True).start()
        self.jobs.start(
            [self.folder / "kube-controller-manager", f"--kubeconfig={self.world.plane.kubeconfig(ADMIN)}",
             "--controllers=job", "--leader-elect=false", "--bind-address=127.0.0.1",
             f"--secure-port={controllers}"], self._environment())
        config = self.world.folder / "kueue.config"
        config.write_text(json.dumps({
            "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": NAMESPACE,
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.health}"},
            "metrics": {"bindAddress": f"127.0.0.1:{self.metrics}"},
            "webhook": {"host": "127.0.0.1", "port": self.port, "certDir": str(self.certificates)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": True, "webhookServiceName": SERVICE, "webhookSecretName": SECRET},
            "integrations": {"frameworks": ["batch/job"]},
            "featureGates": {"VisibilityOnDemand": False},
            **self.config,
        }))
        kubeconfig = self.world.kubeconfig(ACCOUNT, NAMESPACE)
        self.kueue.start([self.folder / "kueue", f"--config={config}", f"--kubeconfig={kubeconfig}",
                          "--zap-log-level=2"], self._environment())
        self.kueue.await_ready(self._ready)

    @staticmethod
    def _environment():
        return {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}

    def _ready(self):
        client = Client(f"http://127.0.0.1:{self.health}", timeout=5)
        try:
            return client.raw("GET", "/readyz").strip() == b"ok"
        except (OSError, ApiError):
            return False
        finally:
            client.close()

    def _install(self):
        """The manifests of the release, but for what is played."""
        import yaml

        rendered = subprocess.run([binaries("current") / "kubectl", "kustomize", self.folder / "config" / "default"],
                                  stdout=subprocess.PIPE, check=True).stdout
        objects = [each for each in yaml.safe_load_all(rendered) if each["kind"] not in LEFT_OUT]
        for each in objects:
            for hook in each.get("webhooks", []):
                hook["clientConfig"]["service"]["port"] = self.port
            conversion = each.get("spec", {}).get("conversion", {}) if each["kind"] == "CustomResourceDefinition" else {}
            if "webhook" in conversion:
                conversion["webhook"]["clientConfig"]["service"]["port"] = self.port
        objects.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": NAMESPACE},
                        "spec": {"type": "ExternalName", "externalName": "localhost"}})
        path = self.world.folder / "kueue.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        # Too large for the annotation that a plain apply keeps.
        self.world.plane.kubectl("apply", "--server-side", "-f", path)
        wait_for(lambda: self.world.client.request("GET", f"{API}/workloads"), 120, 0.2, "Kueue's CRDs are served",
                 (ApiError,))

    def _mount(self):
        """kubelet's part: the Secret's keys as files."""
        client = self.world.plane.client()
        while not self._ended.wait(0.1):
            try:
                data = client.request("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}").get("data") or {}
            except (OSError, ApiError):
                continue
            # tls.crt last: its presence says that all is there.
            for name in sorted(data, key=lambda key: key == "tls.crt"):
                path, text = self.certificates / name, base64.b64decode(data[name])
                if not path.exists() or path.read_bytes() != text:
                    fresh = path.with_suffix(".new")
                    fresh.write_bytes(text)
                    fresh.rename(path)
        client.close()

    # Objects

    def create(self, resource, name, spec, namespace=None):
        kinds = {"resourceflavors": "ResourceFlavor", "clusterqueues": "ClusterQueue", "localqueues": "LocalQueue",
                 "admissionchecks": "AdmissionCheck"}
        where = f"{API}/namespaces/{namespace}" if namespace else API
        return self.world.client.request("POST", f"{where}/{resource}", {
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kinds[resource], "metadata": {"name": name}, "spec": spec})

    def get(self, resource, name, namespace=None):
        where = f"{API}/namespaces/{namespace}" if namespace else API
        return self.world.client.request("GET", f"{where}/{resource}/{name}")

    def workload(self, job):
        """The Workload of a Job, or None."""
        uid = self.world.client.request("GET", f"/apis/batch/v1/namespaces/default/jobs/{job}")["metadata"]["uid"]
        for each in self.world.client.request("GET", f"{API}/namespaces/default/workloads")["items"]:
            if any(owner["uid"] == uid for owner in each["metadata"].get("ownerReferences", [])):
                return each
        return None

    def is_true(self, job, condition):
        """Whether the condition of the Job's Workload is True, by Kueue's own word."""
        workload = self.workload(job) or {}
        return condition_of(workload, condition).get("status") == "True"

    def check(self, job, name):
        """The state of an admission check in the Job's Workload."""
        workload = self.workload(job) or {}
        for each in workload.get("status", {}).get("admissionChecks", []):
            if each["name"] == name:
                return each
        return {}

    def job(self, name, queue, pods, limits):
        self.world.client.request("POST", "/apis/batch/v1/namespaces/default/jobs", {
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}},
            "spec": {"parallelism": pods, "completions": pods, "suspend": True, "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"restartPolicy": "Never", "containers": [
                    {"name": "main", "image": "example.com/none:1", "resources": {"limits": limits}}]}}}})

    def pods(self, job):
        return [pod for pod in self.world.client.items("Pod", "default")
                if pod["metadata"].get("labels", {}).get("app") == job]


def condition_of(obj, kind):
    for each in obj.get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return each
    return {}
