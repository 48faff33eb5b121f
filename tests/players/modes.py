# SPDX-License-Identifier: Apache-2.0
"""Plays those who change what a node of NVIDIA's plugin makes of its cards, when its label changes.

ConfigManager: the sidecar of NVIDIA/k8s-device-plugin v0.20.0. The plugin and GPU Feature Discovery are
started again; kubelet reports the new devices some seconds later, the labels follow after that.

MigManager: NVIDIA/mig-parted 0.14 and 0.15, pkg/mig/reconfigure. It acts on changes of the label alone:
looks whether the entry exists, whether it is applied already, and else pauses the plugin and others, waits
for them to leave, cuts the cards, and lets them come back. Pods are not looked at: instances that are in use
make it fail. Where they do not leave in time, 0.14 stays pending, with all of them paused, until the label
changes again; 0.15 fails, and lets them come back.

The upper half of each is without any I/O: what happens, in order, as pairs of a name and a value.
"""

import threading

CONFIG = "nvidia.com/device-plugin.config"
MIG = "nvidia.com/mig.config"
STATE = MIG + ".state"
CLIENTS = [f"nvidia.com/gpu.deploy.{name}" for name in ("device-plugin", "gpu-feature-discovery", "dcgm-exporter",
                                                        "dcgm", "nvsm")]
PAUSED = "paused-for-mig-change"


class ConfigManager:
    """`configs`: names of the plugin's ConfigMap. `deaf`: it obeys none of them."""

    def __init__(self, configs, deaf=False):
        self.configs, self.deaf = configs, deaf

    def obey(self, value):
        if self.deaf or value not in self.configs:
            return []
        return [("report", None), ("report", value), ("tell", value)]


class MigManager:
    """`configs`: entries of the mig-parted ConfigMap. `holdouts`: how often the clients will not leave."""

    def __init__(self, configs, applied, version="0.15", holdouts=0):
        self.configs, self.applied, self.version, self.holdouts = configs, applied, version, holdouts
        self.in_use = lambda: False

    @property
    def clients(self):
        return CLIENTS + (["nvidia.com/gpu.deploy.client"] if self.version >= "0.15" else [])

    def obey(self, value):
        if value not in self.configs:
            return [("state", "failed")]
        if value == self.applied:
            return [("state", "success")]
        begin = [("state", "pending"), ("clients", PAUSED), ("report", None)]
        end = [("clients", "true")]
        if self.holdouts > 0:
            self.holdouts -= 1
            return begin if self.version < "0.15" else [*begin, ("state", "failed"), *end, ("report", self.applied)]
        if self.in_use():
            return [*begin, ("state", "failed"), *end, ("report", self.applied)]
        self.applied = value
        return [*begin, *end, ("report", value), ("tell", value), ("state", "success")]


class Follower:
    """Does for one node what `manager` says: `report` and `tell` are called with a value, and set what
    kubelet reports and what labels say."""

    def __init__(self, client, node, label, manager, report, tell, pause_s=0.5):
        self.client, self.node, self.label, self.manager = client, node, label, manager
        self.report, self.tell, self.pause_s = report, tell, pause_s
        self.done, self.failure = [], None
        self._seen = self._value()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _value(self):
        return self.client.get("Node", self.node)["metadata"]["labels"].get(self.label)

    def _set_labels(self, labels):
        self.client.patch("Node", self.node, {"metadata": {"labels": labels}})

    def _act(self, name, value):
        if name == "state":
            self._set_labels({STATE: value})
        elif name == "clients":
            self._set_labels(dict.fromkeys(self.manager.clients, value))
        else:
            {"report": self.report, "tell": self.tell}[name](value)
        self.done.append((name, value))

    def _run(self):
        try:
            while not self._stop.wait(self.pause_s):
                value = self._value()
                if value == self._seen:
                    continue
                self._seen = value
                for name, what in self.manager.obey(value):
                    self._act(name, what)
                    if self._stop.wait(self.pause_s):
                        return
        except Exception as error:  # the scenario says so
            self.failure = error
