# SPDX-License-Identifier: Apache-2.0
"""A node: containerd and kubelet in a mount namespace of their own, and a device plugin."""

import json
import os
import pathlib
import signal
import subprocess

from enclosure import ADDRESSES, PODS, run
from kubeapi import wait_for
from kubelet import units
from plane import node_user
from process import Process

READY_S = 120
CNI = "/usr/lib/cni"

CONTAINERD = """
version = 2
root = "{folder}/containerd"
state = "{state}"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{state}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.6"
  # Without CAP_SYS_RESOURCE runc may not lower a score, and no sandbox starts.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""

# All nodes are on one bridge, whose addresses are given out from one folder.
NETWORK = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": PODS}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


class Node:
    """`number`: 1 or 2, which decides address and ports. Nothing runs before start()."""

    def __init__(self, plane, name, number, archives, plugins, settings):
        self.plane, self.name, self.number = plane, name, number
        self.address = f"{ADDRESSES}.{number}"
        # On a file system in memory: images, containers and what kubelet keeps.
        self.folder = pathlib.Path(os.environ["REALNODE_DIR"]) / "state" / plane.folder.name / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.logs = plane.folder / f"{name}-pods"
        self.logs.mkdir(exist_ok=True)
        self.calls = plane.folder / f"{name}-calls.jsonl"
        self.unhealthy = plane.folder / f"{name}-unhealthy"
        self._plugins = plugins
        self._archives = archives
        self._settings = settings
        self._holder = None
        self._plugin_arguments = None
        self._containerd = Process(f"{name}-containerd", plane.folder)
        self._kubelet = Process(f"{name}-kubelet", plane.folder)
        self._plugin = Process(f"{name}-plugin", plane.folder)

    def start(self):
        kubelet = self.folder / "kubelet"
        (kubelet / "device-plugins").mkdir(parents=True, exist_ok=True)
        script = (
            f"mount --make-rshared / && mount --bind {kubelet} /var/lib/kubelet"
            " && echo ready && exec sleep infinity"
        )
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
            stdout=subprocess.PIPE,
        )
        if self._holder.stdout.readline().strip() != b"ready":
            raise RuntimeError(f"no mount namespace for {self.name}")
        self._start_containerd()
        self.kubelet_start()
        wait_for(self.ready, READY_S, 0.1, f"{self.name} ready")
        return self

    def stop(self):
        self.plugin_stop()
        self.kubelet_stop()
        self._containerd.stop(signal.SIGTERM)
        if self._holder:
            self._holder.kill()
            self._holder.wait()

    def _inside(self, *command):
        return ["nsenter", "-t", str(self._holder.pid), "-m", *map(str, command)]

    def _environment(self):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}

    # containerd

    @property
    def _socket(self):
        return f"/run/{self.name}/containerd.sock"

    def _start_containerd(self):
        config = self.folder / "containerd.toml"
        config.write_text(
            CONTAINERD.format(folder=self.folder, state=f"/run/{self.name}", cni=CNI)
        )
        (self.folder / "cni").mkdir(exist_ok=True)
        (self.folder / "cni" / "10-pods.conflist").write_text(json.dumps(NETWORK))
        self._containerd.start(
            self._inside("containerd", "--config", config), self._environment()
        )
        self._containerd.await_ready(lambda: self._ctr("version", check=False))
        for archive in self._archives:
            self.load(archive)

    def _ctr(self, *arguments, check=True):
        answer = subprocess.run(
            self._inside("ctr", "-a", self._socket, "-n", "k8s.io", *arguments),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        if check and answer.returncode != 0:
            raise RuntimeError(f"ctr {' '.join(map(str, arguments))}: {answer.stdout}")
        return answer.returncode == 0

    def load(self, archive):
        self._ctr("images", "import", archive)

    def tag(self, name, another):
        self._ctr("images", "tag", "--force", name, another)

    # kubelet

    def kubelet_start(self):
        offset = (self.number - 1) * 100
        group = f"/{os.environ['REALNODE_CGROUP']}/{self.name}"
        self._make_cgroups(group)
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "port": 10250 + offset,
            "healthzPort": 10248 + offset,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": group,
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "evictionHard": {"memory.available": "1%", "nodefs.available": "1%"},
            "failCgroupV1": False,
            "failSwapOn": False,
            "imageGCHighThresholdPercent": 100,
            "makeIPTablesUtilChains": False,
            "maxPods": 250,
            "podLogsDir": str(self.logs),
            "resolvConf": "",
            "volumePluginDir": str(self.folder / "volume-plugins"),
            **self._settings,
        }
        path = self.folder / "kubelet.config"
        path.write_text(json.dumps(config))
        self._kubelet.start(
            self._inside(
                self.plane.programs / "kubelet",
                f"--config={path}",
                f"--kubeconfig={self.plane.kubeconfig(node_user(self.name))}",
                f"--hostname-override={self.name}",
                f"--node-ip={self.address}",
                "--v=2",
            ),
            self._environment(),
        )

    def kubelet_stop(self, how=signal.SIGKILL):
        self._kubelet.stop(how)

    def _make_cgroups(self, group):
        base = pathlib.Path("/sys/fs/cgroup")
        whole = (base / "cgroup.controllers").exists()
        for hierarchy in [base] if whole else base.glob("*"):
            path = hierarchy / group.lstrip("/")
            if not path.parent.exists():
                continue
            path.mkdir(exist_ok=True)
            for each in ("cpuset.cpus", "cpuset.mems"):
                if not whole and (path / each).exists():
                    (path / each).write_text((path.parent / each).read_text())
            if whole:
                for controller in (path / "cgroup.controllers").read_text().split():
                    (path / "cgroup.subtree_control").write_text(f"+{controller}")

    def object(self):
        return self.plane.client().find("Node", self.name)

    def ready(self):
        node = self.object()
        return node is not None and any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in node["status"].get("conditions", [])
        ) and not any(
            taint["key"].startswith("node.kubernetes.io/") for taint in node["spec"].get("taints", [])
        )

    def amount(self, resource, of="allocatable"):
        node = self.object()
        return units((node or {}).get("status", {}).get(of, {}).get(resource, 0))

    # The device plugin

    def plugin_start(self, kind, *arguments):
        """Start the stand-in; its kubeconfig is an administrator's, since each real one has rights of
        its own."""
        self._plugin_arguments = (kind, *arguments)
        self._plugin.start(
            self._inside(
                self._plugins, f"--kind={kind}", f"--node={self.name}",
                f"--kubeconfig={self.plane.kubeconfig()}", f"--calls={self.calls}",
                f"--unhealthy={self.unhealthy}", *arguments,
            ),
            self._environment(),
        )

    def plugin_again(self):
        self.plugin_start(*self._plugin_arguments)

    def plugin_stop(self, how=signal.SIGKILL):
        self._plugin.stop(how)

    def plugin_runs(self):
        return self._plugin.pid() is not None

    def set_unhealthy(self, *cards):
        self.unhealthy.write_text(" ".join(map(str, cards)))
        os.kill(self._plugin.pid(), signal.SIGHUP)

    def calls_made(self):
        """What the plugin wrote down, oldest first."""
        try:
            lines = self.calls.read_text().splitlines()
        except OSError:
            return []
        return [json.loads(line) for line in lines]

    # Containers

    def environment(self, pod, container):
        """What the container printed when it started: {name: value}; None before that."""
        meta = pod["metadata"]
        folder = self.logs / f"{meta['namespace']}_{meta['name']}_{meta['uid']}" / container
        found = None
        for log in sorted(folder.glob("*.log")):
            lines = [line.split(" ", 3)[3] for line in log.read_text().splitlines()
                     if line.count(" ") >= 3]
            if "END" in lines:
                found = dict(line.split("=", 1) for line in lines if "=" in line)
        return found
