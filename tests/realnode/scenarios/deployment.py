# SPDX-License-Identifier: Apache-2.0
"""gpuledger as it is shipped: a Deployment with its service account, probes and Service, called through
kube-proxy, in a namespace that enforces PodSecurity's "restricted"."""

import base64
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import images
from cluster import MANIFESTS, NODE_PORT, PATIENCE_S, ROOT, SYSTEM, program
from controlplane import load_config
from gpushare import ASSIGNED, IDX
from kubeapi import ApiError, node_object, wait_for
from scenarios.gpushare import MEMORY, await_served

# docs/install.md's own: what it prints is compared.
CARDS = [15, 15]
SELECTOR = "app.kubernetes.io/name=gpuledger"
HOLDER = "gpuledger.io/holder=true"
# What fails, in seconds, beside what is asked for: machines that run tests are slow, and the defect
# that is looked for is a call that nobody answers for the 30 s of kube-scheduler's httpTimeout.
FROZEN_S = 15
POD_EVERY_S = 0.1


def prepare(cluster):
    cluster.overlay = None  # that installed() has left
    archive = os.environ.get("REALNODE_IMAGE")
    cluster.images.append(archive or images.gpuledger(cluster.folder, program()))
    if archive:
        cluster.tags["localhost/gpuledger:0.1.0"] = images.GPULEDGER
    node = cluster.node()
    cluster.plane.scheduler_start({})  # as every cluster has one before gpuledger comes
    secrets = cluster.folder / "secrets.json"
    with open(secrets, "wb") as output:
        subprocess.run([program(), "certs", f"--folder={cluster.folder / 'gpuledger-tls'}"],
                       check=True, stdout=output)
    kubectl(cluster, "apply", "--server-side", "-f", secrets)
    cluster.client.patch("Namespace", SYSTEM, {"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}})
    node.plugin_start("gpushare", f"--cards={','.join(map(str, CARDS))}", "--client-rate=unlimited")
    cluster.await_amount("gpu-node", MEMORY, sum(CARDS))


def restore(cluster):
    """As it was before a scenario, but for gpuledger, which each installs as it wants it."""
    cluster.retire("other-node")


def gpuledgers(cluster, selector=SELECTOR):
    return [pod for pod in cluster.client.items("Pod", SYSTEM, labelSelector=selector)
            if "deletionTimestamp" not in pod["metadata"]]


def kubectl(cluster, *arguments):
    return cluster.plane.kubectl(*arguments).stdout


def rollout_done(cluster):
    kubectl(cluster, "-n", SYSTEM, "rollout", "status", "deployment/gpuledger", "--timeout=120s")
    service = cluster.client.get("Service", "gpuledger-ops", SYSTEM)
    cluster.ops_url = f"https://{service['spec']['clusterIP']}:39998"
    secret = cluster.client.get("Secret", "gpuledger-ops", SYSTEM)
    cluster.ops_token = base64.b64decode(secret["data"]["token"]).decode().strip()


def scheduler_start(cluster):
    """kube-scheduler with the certificate from its Secret, brought to it as docs/install.md says."""
    folder = cluster.folder / "scheduler-certificate"
    subprocess.run([MANIFESTS / "scheduler/certificate", folder], check=True, stdout=subprocess.PIPE,
                   env={"PATH": "/usr/bin:/bin", "HOME": str(cluster.folder), "KUBECTL": str(cluster.kubectl),
                        "KUBECONFIG": str(cluster.plane.kubeconfig())})
    cluster.scheduler_start(NODE_PORT, certificates=folder)


def installed(cluster, overlay):
    """The overlay and nothing else runs, as manifests/README.md goes about it; kube-scheduler calls
    its node port. What a scenario before has installed stays."""
    if cluster.overlay == overlay:
        rollout_done(cluster)
        await_served(cluster)
        return
    cluster.overlay = None
    if cluster.client.find("Deployment", "gpuledger", SYSTEM):
        kubectl(cluster, "-n", SYSTEM, "scale", "deployment/gpuledger", "--replicas=0")
        wait_for(lambda: not cluster.client.items("Pod", SYSTEM, labelSelector=SELECTOR), 60, 0.1,
                 "no pod of gpuledger")
        kubectl(cluster, "-n", SYSTEM, "delete", "deployment/gpuledger",
                "service/gpuledger", "service/gpuledger-ops")
    kubectl(cluster, "apply", "-k", MANIFESTS / "overlays" / overlay)
    rollout_done(cluster)
    scheduler_start(cluster)
    await_served(cluster)
    cluster.overlay = overlay


# The image and the manifests


def section(title):
    """The text of a section of docs/install.md."""
    text = (ROOT / "docs/install.md").read_text()
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## )", text, re.M | re.S)[1]


def commands(text):
    """[[line]] of the blocks of shell in it, without comments."""
    blocks = re.findall(r"^```sh(?: \w+)?\n(.*?)^```", text, re.M | re.S)
    return [[re.sub(r"\s+#.*", "", line) for line in block.splitlines()] for block in blocks]


def scenario_readme(cluster, rounds):
    """The five minutes of docs/install.md, command by command."""
    tap = cluster.tap
    cluster.overlay = None
    text = section("A real cluster in five minutes")
    blocks = commands(text)
    tap.equal(blocks[0][0], "docker build -t gpuledger:0.1.0 -f Containerfile .",
              "first the image is built, which tests/realnode/containerfile does")
    shell = Shell(cluster)
    with contextlib.closing(shell):
        for line in blocks[0][1:]:
            tap.ok(shell.runs(line), line, shell.said)
        scheduler_start(cluster)  # "then give kube-scheduler its certificate, and the configuration"
        for line in blocks[1]:
            patience = 60 if line.startswith("curl") else 0
            tap.ok(shell.runs(line, patience), line, shell.said)
        wait_for(lambda: sum(pod["status"].get("phase") == "Running" for pod in cluster.pods()) == 6,
                 PATIENCE_S, 0.1, "its six pods run")
        shell.runs(blocks[1][-1])
        sample = re.search(r"^```\n(NODE .*?)^```", text, re.M | re.S)[1]
        tap.note(shell.said)
        tap.equal(placed(shell.said), placed(sample), "what is printed is what the page shows")
        tap.ok(shell.runs("kubectl gpuledger nodes -o name", 60), "kubectl gpuledger nodes", shell.said)
        tap.equal(shell.said, "node/gpu-node\n", "the plugin finds the extender by itself")
    rollout_done(cluster)
    kubectl(cluster, "delete", "-f", ROOT / "examples/pods", "--grace-period=1")


def placed(text):
    """({(card, used, total)}, {pod with its amount}) of a table of nodes: which pod of equals is where
    is up to kube-scheduler's queue."""
    cards = set(re.findall(r"^\S+\s+(\d+)\s+\S+\s+\S+/(\S+)", text, re.M))
    return cards, sorted(re.findall(r"default/[\w-]+\(\w+\)", text))


class Shell:
    """A shell in the clone with kubectl on its PATH, as the page's reader has it."""

    def __init__(self, cluster):
        folder = cluster.folder / "path"
        folder.mkdir(exist_ok=True)
        (folder / "kubectl").unlink(missing_ok=True)
        (folder / "kubectl").symlink_to(cluster.kubectl)
        (folder / "kubectl-gpuledger").unlink(missing_ok=True)
        (folder / "kubectl-gpuledger").symlink_to(os.path.abspath(program()))
        # There is no container engine: what `docker run … IMAGE WORD…` would run, runs.
        (folder / "docker").write_text(
            f'#!/bin/sh\nwhile [ "$1" != gpuledger:0.1.0 ]; do shift; done\nshift\nexec {program()} "$@"\n')
        (folder / "docker").chmod(0o755)
        self._clone = cluster.folder / "clone"  # what is written there stays out of the tree
        self._clone.mkdir(exist_ok=True)
        for name in ("examples", "manifests"):
            (self._clone / name).unlink(missing_ok=True)
            (self._clone / name).symlink_to(ROOT / name)
        self._environment = {
            "PATH": f"{folder}:/usr/bin:/bin",
            "HOME": str(cluster.folder),
            "KUBECONFIG": str(cluster.plane.kubeconfig()),
        }
        self._background = []
        self.said = ""

    def runs(self, line, patience=0):
        """Whether it succeeds; tried again for so many seconds. With "&" it stays."""
        if line.endswith("&"):
            self._background.append(subprocess.Popen(
                ["bash", "-c", f"exec {line[:-1]}"], cwd=self._clone, env=self._environment,
                stdout=subprocess.DEVNULL, start_new_session=True))
            return True
        deadline = time.monotonic() + patience
        while True:
            answer = subprocess.run(
                ["bash", "-c", line], cwd=self._clone, env=self._environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.said = answer.stdout
            if answer.returncode == 0 or time.monotonic() > deadline:
                return answer.returncode == 0
            time.sleep(0.2)

    def close(self):
        for process in self._background:
            process.terminate()
            process.wait()


def scenario_overlays(cluster, rounds):
    """Every overlay is applied, and what it makes is taken away again."""
    cluster.overlay = None
    for overlay in sorted(path.parent for path in (MANIFESTS / "overlays").glob("*/kustomization.yaml")):
        try:
            kubectl(cluster, "apply", "-k", overlay)
            good, why = True, ""
        except subprocess.CalledProcessError as error:
            good, why = False, error.stderr
        cluster.tap.ok(good, f"overlays/{overlay.name} applies", why)
        if overlay.name in ("nodeport", "ha"):
            # A Deployment whose strategy changes while it rolls out stays as it is for ever.
            rollout_done(cluster)
        else:
            kubectl(cluster, "delete", "-k", overlay)


def scenario_restricted(cluster, rounds):
    """The pod runs where "restricted" is enforced, with no rights beyond it."""
    tap = cluster.tap
    installed(cluster, "nodeport")
    tap.equal(len(gpuledgers(cluster)), 1, "the pod is admitted and ready")
    try:
        cluster.client.create({"apiVersion": "v1", "kind": "Pod",
                               "metadata": {"name": "root", "namespace": SYSTEM},
                               "spec": {"containers": [{"name": "c", "image": images.POD}]}})
        refused = ""
    except ApiError as error:
        refused = error.message
    tap.ok("restricted" in refused, "the namespace does enforce it", refused)
    status = dict(
        line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid_of_gpuledger(cluster)}/status")
        .read_text().splitlines() if ":\t" in line
    )
    tap.equal({key: status[key] for key in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")},
              {"CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"},
              "no capabilities, no new privileges, seccomp's filter")
    tap.equal(status["Uid"].split("\t")[0], "65532", "its user is not root")
    mounts = pathlib.Path(f"/proc/{pid_of_gpuledger(cluster)}/mountinfo").read_text()
    root = next(line for line in mounts.splitlines() if line.split()[4] == "/")
    tap.ok(root.split()[5].startswith("ro"), "its root is read-only", root)


def pid_of_gpuledger(cluster, uid=None):
    """The process in the container of the pod with that uid; of the only one if None."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (path / "comm").read_text().strip() != "gpuledger":
                continue
            groups = (path / "cgroup").read_text()
            if uid is None or uid in groups:
                return int(path.name)
    raise RuntimeError("no gpuledger runs in a container")


def scenario_kind(cluster, rounds):
    """What examples/kind needs of a cluster: its kube-scheduler configuration, and workers that
    fake-gpus makes look like nodes with cards. Pods get a card and annotations, and no device."""
    installed(cluster, "nodeport")
    cluster.overlay = None  # kube-scheduler does not stay as it is
    other = cluster.node("other-node")
    config = load_config(ROOT / "examples/kind/scheduler.yaml")
    del config["clientConnection"]
    certificates = cluster.folder / "scheduler-certificate"
    for extender in config["extenders"]:
        extender["tlsConfig"].update(caFile=str(certificates / "ca.crt"),
                                     certFile=str(certificates / "tls.crt"),
                                     keyFile=str(certificates / "tls.key"))
    cluster.plane.scheduler_stop()
    cluster.plane.scheduler_start(config)
    answer = subprocess.run(
        [ROOT / "examples/kind/fake-gpus", "2", "15"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cluster.folder), "KUBECTL": str(cluster.kubectl), "NODES": other.name,
             "KUBECONFIG": str(cluster.plane.kubeconfig())})
    cluster.tap.equal(answer.returncode, 0, "fake-gpus makes a node look so")
    cluster.tap.note(answer.stdout)
    cluster.tap.equal(other.amount(MEMORY), 30, "its kubelet leaves that alone")
    cluster.pod("faked", {MEMORY: 8}, node=other.name)
    cluster.await_settled(["faked"])
    pod = cluster.client.get("Pod", "faked")
    # Without a plugin its promise stands while it runs, until gpuledger revokes it (docs/design/promises.md).
    cluster.tap.equal((pod["status"]["phase"], pod["metadata"]["annotations"].get(IDX)), ("Running", "0"),
                      "a pod runs with a card that nobody hands out")


# No freeze


class Hollow(threading.Thread):
    """A Node without a kubelet, so that many pods may be bound to it at no cost: this is its
    heartbeat, and its plugin. Pods are matched as soon as they are bound, and gone."""

    name_of_node = "hollow-node"

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self._client = cluster.plane.client()
        self._ends = threading.Event()
        capacity = {MEMORY: 20000, "aliyun.com/gpu-count": 2}
        node = node_object(self.name_of_node, capacity)
        # Or gpuledger's own pods come here, where nobody starts them.
        node["spec"] = {"taints": [{"key": self.name_of_node, "effect": "NoSchedule"}]}
        self._client.apply(node)
        self._beat()

    def _beat(self):
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        self._client.apply({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": self.name_of_node, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": self.name_of_node, "leaseDurationSeconds": 40, "renewTime": now},
        })

    def run(self):
        beaten = time.monotonic()
        while not self._ends.wait(0.1):
            with contextlib.suppress(OSError, ApiError):
                if time.monotonic() > beaten + 5:
                    self._beat()
                    beaten = time.monotonic()
                selector = f"spec.nodeName={self.name_of_node},status.phase=Pending"
                for pod in self._client.items("Pod", "default", fieldSelector=selector):
                    name = pod["metadata"]["name"]
                    self._client.annotate("Pod", name, {ASSIGNED: "true"})
                    self._client.set_pod_phase(name, "Running")
                    self._client.delete("Pod", name)

    def end(self):
        self._ends.set()
        self.join()
        # Nobody else would end the last ones, but for the collector of pods without a node.
        self._client.delete_all("Pod", fieldSelector=f"spec.nodeName={self.name_of_node}")
        self._client.delete("Node", self.name_of_node)


class Stream(threading.Thread):
    """Pods that come all the while. Their sizes differ, so that none waits for another's plugin call."""

    def __init__(self, cluster, prefix):
        super().__init__(daemon=True)
        self._cluster, self._prefix = cluster, prefix
        self._ends = threading.Event()
        self.count = 0

    def run(self):
        while not self._ends.wait(POD_EVERY_S):
            self._cluster.pod(f"{self._prefix}{self.count}", {MEMORY: 1 + self.count % 400},
                              node=Hollow.name_of_node, tolerates=Hollow.name_of_node)
            self.count += 1

    def end(self):
        self._ends.set()
        self.join()

    def entries(self):
        return self._cluster.diary.entries(self._prefix)


def longest_gap(entries, since):
    """The longest time from `since` on in which no pod was bound."""
    moments = sorted(entry["bound"] for entry in entries if entry.get("bound", 0) > since)
    return max(
        (after - before for before, after in zip([since, *moments], moments)),
        default=float("inf"),
    )


def without_freeze(cluster, name, wanted_s, disturb, frozen_s=FROZEN_S):
    """Pods come while `disturb()` does something to gpuledger: how long is none bound?"""
    hollow, stream = Hollow(cluster), Stream(cluster, f"{name}-")
    hollow.start()
    stream.start()

    def bound(since):
        return sum(entry.get("bound", 0) > since for entry in stream.entries())

    with contextlib.closing(Closing(stream, hollow)):
        wait_for(lambda: bound(0) >= 10, 60, 0.1, "pods are bound")
        since = time.monotonic()
        disturb()
        # A connection may yet be opened to an address that is gone.
        later = time.monotonic() + 5
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: bound(later) >= 10, 60, 0.1)
        stream.end()
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: bound(0) == stream.count, 60, 0.2)
    gap = longest_gap(stream.entries(), since)
    cluster.tap.ok(gap <= frozen_s, f"{name}: pods go on being bound", f"{gap:.1f} s without a Binding")
    cluster.tap.equal(bound(0), stream.count, f"{name}: all {stream.count} pods are bound in the end")
    cluster.tap.note(f"{name}: longest time without a Binding {gap:.1f} s (wanted: {wanted_s} s)")


class Closing:
    def __init__(self, *threads):
        self._threads = threads

    def close(self):
        for thread in self._threads:
            thread.end()


def restart(cluster):
    kubectl(cluster, "-n", SYSTEM, "rollout", "restart", "deployment/gpuledger")
    rollout_done(cluster)


def holder(cluster):
    return wait_for(lambda: gpuledgers(cluster, HOLDER), 60, 0.05, "a holder")[0]


def another_holds(cluster, before):
    uid = before["metadata"]["uid"]
    wait_for(lambda: any(pod["metadata"]["uid"] != uid for pod in gpuledgers(cluster, HOLDER)),
             60, 0.05, "another replica holds the Lease")


def scenario_freeze_one_rollout(cluster, rounds):
    """One replica, rolled out anew under a stream of pods."""
    installed(cluster, "nodeport")
    without_freeze(cluster, "one-rollout", 5, lambda: restart(cluster))


def scenario_freeze_two_rollout(cluster, rounds):
    """Two replicas, rolled out anew."""
    installed(cluster, "ha")
    without_freeze(cluster, "two-rollout", 3, lambda: restart(cluster))


def scenario_freeze_two_deleted(cluster, rounds):
    """Two replicas; the pod that holds the Lease is deleted."""
    installed(cluster, "ha")
    remove(cluster, "two-deleted", 3, 30)


def scenario_freeze_two_forced(cluster, rounds):
    """Two replicas; the pod that holds the Lease is force-deleted."""
    installed(cluster, "ha")
    remove(cluster, "two-forced", 10, 0)


def remove(cluster, name, wanted_s, grace):
    def disturb():
        before = holder(cluster)
        cluster.client.delete("Pod", before["metadata"]["name"], SYSTEM, grace_s=grace)
        another_holds(cluster, before)

    without_freeze(cluster, name, wanted_s, disturb)


def signalled(cluster, number):
    os.kill(pid_of_gpuledger(cluster, holder(cluster)["metadata"]["uid"]), number)


def scenario_freeze_two_takeover(cluster, rounds):
    """Two replicas; the process that holds the Lease ends and gives it back."""
    installed(cluster, "ha")

    def disturb():
        before = holder(cluster)
        signalled(cluster, signal.SIGTERM)
        another_holds(cluster, before)

    without_freeze(cluster, "two-takeover", 3, disturb)


def scenario_freeze_two_killed(cluster, rounds):
    """Two replicas; the process that holds the Lease is killed, and nobody gives it back: its 15 s."""
    installed(cluster, "ha")
    without_freeze(cluster, "two-killed", "the Lease's 15", lambda: signalled(cluster, signal.SIGKILL),
                   2 * FROZEN_S)
