# SPDX-License-Identifier: Apache-2.0
"""The other device plugins: each family goes through the same cases, on a Node of its own."""

import dataclasses
import re
import signal
import typing

from hami import read_promise
from judge import Family, Verdict, figures, judge, unnamed
from kubeapi import wait_for
from scenarios.gpushare import REPORTS, SOON
from tencent import PREDICATE_IDX

NODE = "gpu-node"


def card_of(uuid):
    found = re.search(r"-(\d+)$", uuid)
    return int(found[1]) if found else -1


def visible(environment, _):
    """By UUIDs."""
    text = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    return [card_of(uuid) for uuid in text.split(",")] if text else []


def numbers(text):
    return [int(item) for item in text.split(",") if item.isdigit()]


@dataclasses.dataclass(frozen=True)
class Plugin:
    kind: str
    judged: Family
    cards: list  # for the plugin, in its own unit
    capacity: dict  # what kubelet reports then
    managed: dict  # {resource: ignoredByScheduler}
    limits: typing.Callable  # (share) -> limits of a container; share 1 is what 32 pods have each
    count: int = 32  # equal pods that fill the node
    options: str = ""
    arguments: tuple = ()  # of gpuledger
    rights: tuple = ("base",)
    several: bool = True  # pods with several GPU containers are served
    unhealthy: bool = True  # it says which cards are well
    # A pod that is deleted between its Allocate call and its start is counted no more, and the next
    # call may be answered for it: whoever was bound by then, and made that call, fails.
    forgets_deleted: bool = False


def promised(key):
    """Cards by the annotation of HAMi's kind that is never blanked."""

    def read(pod, index, _):
        containers = read_promise(pod["metadata"]["annotations"].get(key, ""))
        return [card_of(device.uuid) for device in containers[index]] if index < len(containers) else []

    return read


PLUGINS = {
    "gpu-manager": Plugin(
        "gpu-manager",
        Family(
            "tencent.com/vcuda-core", visible,
            lambda pod, index, _: numbers(
                pod["metadata"]["annotations"].get(f"{PREDICATE_IDX}{index}", "")),
            [100] * 4,
        ),
        [64] * 4,
        {"tencent.com/vcuda-core": 400, "tencent.com/vcuda-memory": 256},
        {"tencent.com/vcuda-core": False, "tencent.com/vcuda-memory": False},
        lambda share: {"tencent.com/vcuda-core": 12 * share, "tencent.com/vcuda-memory": 8 * share},
        unhealthy=False,
        forgets_deleted=True,
    ),
    "hami": Plugin(
        "hami",
        Family("nvidia.com/gpu", visible, promised("hami.io/vgpu-devices-allocated"), [10] * 4),
        [16000] * 4,
        {"nvidia.com/gpu": 40},
        {"nvidia.com/gpu": False, "nvidia.com/gpumem": True, "nvidia.com/gpumem-percentage": True,
         "nvidia.com/gpucores": True},
        lambda share: {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000 * share},
        rights=("base", "overlays/hami"),
    ),
    "volcano": Plugin(
        "volcano",
        Family("volcano.sh/gpu-memory",
               lambda environment, _: numbers(environment.get("NVIDIA_VISIBLE_DEVICES", "")),
               lambda pod, _, __: numbers(pod["metadata"]["annotations"].get("volcano.sh/gpu-index", "")),
               [16, 16]),
        [16, 16],
        {"volcano.sh/gpu-memory": 32, "volcano.sh/gpu-number": 2},
        {"volcano.sh/gpu-memory": False, "volcano.sh/gpu-number": False},
        lambda share: {"volcano.sh/gpu-memory": share},
        several=False,
    ),
    "volcano-vgpu": Plugin(
        "volcano-vgpu",
        Family("volcano.sh/vgpu-number", visible, promised("volcano.sh/vgpu-ids-new"), [10] * 4),
        [14000] * 4,  # 60,000 devices and more, and kubelet drops the list
        {"volcano.sh/vgpu-number": 40, "volcano.sh/vgpu-memory": 56000, "volcano.sh/vgpu-cores": 400},
        {"volcano.sh/vgpu-number": False, "volcano.sh/vgpu-memory": True,
         "volcano.sh/vgpu-memory-percentage": True, "volcano.sh/vgpu-cores": True},
        lambda share: {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 1750 * share},
        several=False,
    ),
    "nvidia": Plugin(
        "nvidia",
        Family("nvidia.com/gpu", visible, unnamed, [4] * 8),
        [40960] * 8,
        {"nvidia.com/gpu": 32},
        {"nvidia.com/gpu": False},
        lambda share: {"nvidia.com/gpu": 1},
        options="replicas=4",
    ),
    "nvidia-mig": Plugin(
        "nvidia",
        Family("nvidia.com/mig-1g.5gb", visible, unnamed, [1] * 7),
        [40960] * 2,
        {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 7},
        {"nvidia.com/gpu": False, "nvidia.com/mig-1g.5gb": False},
        lambda share: {"nvidia.com/mig-1g.5gb": 1},
        count=7,
        options="mig=1g.5gb:7",
        unhealthy=False,
    ),
}


class Trial:
    """One family on a fresh Node."""

    current = None  # what the cluster is set up for

    def __init__(self, cluster, name):
        self.cluster, self.name, self.plugin = cluster, name, PLUGINS[name]
        self.tap = cluster.tap
        if Trial.current != (cluster, name):
            self._set_up()
            Trial.current = cluster, name

    def _set_up(self):
        cluster, plugin = self.cluster, self.plugin
        cluster.extender.stop()
        cluster.rights(*plugin.rights)
        cluster.extender_start(*plugin.arguments)
        cluster.scheduler_start(path="scheduler", resources=plugin.managed)
        if NODE in cluster.nodes:
            self._clear_node()
        node = cluster.node()
        wait_for(node.ready, 120, 0.1, "the node is ready")
        node.plugin_start(plugin.kind, f"--cards={','.join(map(str, plugin.cards))}",
                          f"--options={plugin.options}")
        self.await_capacity()

    def _clear_node(self):
        node = self.cluster.node()
        node.plugin_stop()
        node.kubelet_stop()
        self.cluster.client.delete("Node", NODE)
        folder = node.folder / "kubelet"
        for path in (*(folder / "device-plugins").iterdir(), *folder.glob("gpu-manager.*")):
            path.unlink()
        node.kubelet_start()

    def await_capacity(self):
        for resource, amount in self.plugin.capacity.items():
            self.cluster.await_amount(NODE, resource, amount)

    def make(self, prefix, count, share=1):
        names = [f"{prefix}{number}" for number in range(count)]
        for name in names:
            self.cluster.pod(name, self.plugin.limits(share))
        return names

    def judge(self, what, pods, rejected=0, prefix=""):
        found = judge(self.cluster, self.plugin.judged, prefix=prefix)
        found.report(self.tap, f"{self.name}, {what}", pods, rejected)
        return found

    # The cases

    def burst(self, rounds):
        """As many equal pods as the node holds, at once."""
        total = Verdict()
        for number in range(rounds or 1):
            names = self.make(f"burst-{number}-", self.plugin.count)
            self.cluster.await_settled(names, 180)
            total.add(judge(self.cluster, self.plugin.judged))
            # Earlier families' pods had the same names.
            self.tap.note(figures(self.cluster.diary.entries(f"burst-{number}-")[-len(names):]))
            self.cluster.drop_pods()
        total.report(self.tap, f"{self.name}, burst", self.plugin.count * (rounds or 1))

    def containers(self, rounds):
        """Pods with sidecars, and with two GPU containers, which are served or refused."""
        limits = self.plugin.limits(1)
        for number in range(2):
            self.cluster.pod(f"sidecar-{number}", {}, limits)
            self.cluster.pod(f"two-{number}", limits, {}, limits)
        served = ["sidecar-0", "sidecar-1"] + ["two-0", "two-1"] * self.plugin.several
        self.cluster.await_settled(served)
        if not self.plugin.several:
            pods = self.cluster.pods("two-")
            bound = [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]
            self.tap.equal(bound, [], f"{self.name}: two GPU containers are not bound")
            for pod in pods:
                self.cluster.client.delete("Pod", pod["metadata"]["name"])
        self.judge("containers", len(served))

    def restarts(self, rounds):
        """Plugin and kubelet restart, and the plugin is away while pods come."""
        node = self.cluster.node()
        names = self.make("old-", 2)
        self.cluster.await_settled(names)
        node.plugin_stop()
        resource = self.plugin.judged.resource
        self.cluster.await_amount(NODE, resource, 0)
        if not any(self.plugin.managed.values()):
            # kube-scheduler 1.36 does not look again at pods with resources that it is to ignore when
            # a node changes: it forgets there that it is to ignore them. They wait for 5 minutes.
            names += self.make("away-", 1)
        node.plugin_again()
        self.await_capacity()
        self.cluster.await_settled(names)
        node.kubelet_stop(signal.SIGKILL)
        node.kubelet_start()
        self.await_capacity()
        names += self.make("new-", 1)
        self.cluster.await_settled(names)
        self.judge("restarts", len(names), 1)

    def deletions(self, rounds):
        """Two of ten pods are deleted at their Binding, one by force and one with a grace period."""
        total = Verdict()
        for number in range(rounds or 1):
            count = min(10, self.plugin.count)
            names = self.make(f"deleted-{number}-", count)
            victims = {names[count - 5]: 0, names[count - 3]: 1}
            for victim, grace in victims.items():
                self.cluster.await_bound([victim])
                self.cluster.client.delete("Pod", victim, grace_s=grace)
            self.cluster.await_settled(set(names) - set(victims))
            wait_for(lambda: len(self.cluster.pods("deleted-")) == count - 2, 60, 0.1, "two pods gone")
            total.add(judge(self.cluster, self.plugin.judged))
            self.cluster.drop_pods()
        total.report(self.tap, f"{self.name}, deleted", (count - 2) * (rounds or 1),
                     2 * (rounds or 1) if self.plugin.forgets_deleted else 0)

    def node(self, rounds):
        """The Node is deleted and comes back with kubelet; the plugin starts anew as its DaemonSet's
        pod does."""
        node = self.cluster.node()
        names = self.make("old-", 2)
        self.cluster.await_settled(names)
        node.kubelet_stop()
        node.plugin_stop()
        self.cluster.client.delete("Node", NODE)
        node.kubelet_start()
        wait_for(node.ready, 120, 0.1, "the node is ready")
        node.plugin_again()
        self.await_capacity()
        names += self.make("new-", 2)
        self.cluster.await_settled(names)
        self.judge("the Node came back", 4)

    def unhealthy(self, rounds):
        """Nothing new goes to a card that is not well."""
        if not self.plugin.unhealthy:
            self.tap.ok(True, f"{self.name} says nothing about health")
            return
        node = self.cluster.node()
        resource, cards = self.plugin.judged.resource, len(self.plugin.cards)
        whole = self.plugin.capacity[resource]
        node.set_unhealthy(0)
        self.cluster.await_amount(NODE, resource, whole - whole // cards)
        names = self.make("well-", 4)
        self.cluster.await_settled(names)
        self.judge("an unhealthy card", 4)
        used = {
            card for pod in self.cluster.pods("well-")
            for card in self.plugin.judged.got(node.environment(pod, "c0") or {}, node)
        }
        self.tap.ok(0 not in used, f"{self.name}: nothing is on the unhealthy card", used)
        node.set_unhealthy()
        self.await_capacity()


def prepare(cluster):
    cluster.kubelet[REPORTS] = SOON
    Trial.current = None


def scenarios():
    for name in PLUGINS:
        for case in ("burst", "containers", "restarts", "deletions", "node", "unhealthy"):

            def scenario(cluster, rounds, name=name, case=case):
                getattr(Trial(cluster, name), case)(rounds)

            scenario.__doc__ = getattr(Trial, case).__doc__
            yield f"scenario_{name.replace('-', '_')}_{case}", scenario


globals().update(scenarios())
