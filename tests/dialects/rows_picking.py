# SPDX-License-Identifier: Apache-2.0
"""Whose promise a plugin hands out. a (the larger) is placed first and meets with some fate; then p comes, later
and behind it in every list. Either p is bound and the plugin, asked for p, picks p, or p is refused. Which plugin
picks whom is tests/players."""

import random
import time

from stage import NAMESPACE, PATIENCE, need, row

# pylint: disable=wrong-import-order
import elastic
import gpushare
import hami
import tencent
import volcano
from rows_hami import GPU, MEM, VGPU, VMEM, cards, node, words

SEEDS = 8
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
UNBOUND = "a-pod-without-a-node"
X = "a"  # it comes first by name, and by its time


class Gpushare:
    source = "AliyunContainerService/gpushare-device-plugin@{}:pkg/gpu/nvidia/podmanager.go:101-262, podutils.go:78, allocate.go:42"
    limits = {gpushare.RESOURCE: 4}

    def __init__(self, release):
        self.release, self.name = release, f"gpushare {release}"
        self.source = self.source.format(release)

    def node(self, stage, name="n"):
        stage.node(name, gpushare.capacity([16384, 16384]))

    def wish(self, mib):
        return {gpushare.RESOURCE: 4}  # of one size: another is not mistaken

    def picked(self, stage, name="n"):
        """The names of all that the plugin may pick."""
        pods = stage.pods(name, "Pending")
        return {gpushare.choose(pods, 4, random.Random(seed))["metadata"]["name"] for seed in range(SEEDS)}

    def serve(self, stage, pod):
        stage.annotate(pod, {gpushare.ASSIGNED: "true"})

    def words(self, name):
        return {gpushare.IDX: "1", gpushare.POD: "4", gpushare.ASSIGNED: "false", gpushare.ASSUME_TIME: "1"}


class Volcano:
    source = "volcano-sh/devices@95b591b6:pkg/plugin/nvidia/kube_interactor.go:70, server.go:330, utils.go:134"
    name = "volcano 95b591b6"
    behaviour = volcano.BEHAVIOURS["95b591b6-share"]

    def node(self, stage, name="n"):
        stage.node(name, volcano.capacity(self.behaviour, [16384, 16384]))

    def wish(self, mib):
        return {volcano.MEMORY: 4000}

    def picked(self, stage, name="n"):
        pods = stage.pods(name, "Pending")
        chosen = [volcano.choose(self.behaviour, pods, 4000, random.Random(seed)) for seed in range(SEEDS)]
        return {pod["metadata"]["name"] for pod in chosen}

    def serve(self, stage, pod):
        stage.annotate(pod, {volcano.ASSIGNED: "true"})

    def words(self, name):
        return {volcano.INDEX: "1", volcano.PREDICATE_TIME: "1", volcano.ASSIGNED: "false"}


class Vgpu:
    """HAMi's family."""

    def __init__(self, name, source):
        self.name, self.source, self.behaviour = name, source, hami.BEHAVIOURS[name]

    def node(self, stage, name="n"):
        node(stage, self.behaviour, cards(2), name)

    def wish(self, mib):
        return {VGPU: 1, VMEM: mib} if self.behaviour.mig_group else {GPU: 1, MEM: mib}

    def picked(self, stage, name="n"):
        lock = stage.get_node(name)["metadata"]["annotations"].get(self.behaviour.lock)
        pods = stage.pods()
        if not self.behaviour.cluster and not lock:
            pods = stage.pods(name)
        return {hami.choose(self.behaviour, name, pods, lock, 1)["metadata"]["name"]}

    def serve(self, stage, pod):
        behaviour = self.behaviour
        marks = {behaviour.promise: "", behaviour.key("bind-phase"): "success"}
        if behaviour.by_time:
            marks[behaviour.key("vgpu-time")] = hami.FOREVER
        stage.annotate(pod, marks)
        self.unlock(stage)

    def unlock(self, stage, name="n"):
        if self.behaviour.lock:
            stage._do(stage.api.change, "nodes", (None, name),  # pylint: disable=protected-access
                      lambda obj: obj["metadata"]["annotations"].pop(self.behaviour.lock, None))

    def words(self, name):
        return words(self.behaviour, "GPU-1,NVIDIA,12000,0:", name, "allocating")


class GpuManager:
    source = "tkestack/gpu-manager@8cd842e:pkg/services/allocator/nvidia/allocator.go:663, 1139, pkg/utils/util.go:241"
    name = "gpu-manager 8cd842e"

    def node(self, stage, name="n"):
        stage.node(name, {tencent.CORE: 200, tencent.MEMORY: 128})

    def wish(self, mib):
        return {tencent.CORE: 30, tencent.MEMORY: 10}

    def picked(self, stage, name="n"):
        """Also its own cards are those that it would take; who has started is in its cache."""
        manager = tencent.Manager("8cd842e", [64 * tencent.BLOCK] * 2)
        for pod in stage.pods(name):
            if "startTime" in pod["status"] and tencent.is_active(pod):
                [[minor]] = tencent.cards_of(pod).values()
                card = manager.cards[minor]
                card.free_core, card.free = card.free_core - 30, card.free - 10 * tencent.BLOCK
                manager.held[pod["metadata"]["uid"]] = {0: (30, 10, [card])}
        known = {pod["metadata"]["uid"]: pod for pod in stage.pods(name)}
        _, pod, _ = manager.allocate(stage.pods(name, "Pending"), 30, random.Random(1), known)
        return {pod["metadata"]["name"]}

    def serve(self, stage, pod):
        """An end and what comes before it are seen one by one."""
        stage.set_status(pod, phase="Pending")
        stage.annotate(pod, {tencent.ASSIGNED: "true"})

    def words(self, name):
        return {tencent.PREDICATE_IDX + "0": "1", tencent.PREDICATE_TIME: "1", tencent.ASSIGNED: "false",
                tencent.PREDICATE_NODE: name}


class Elastic:
    """The agent asks kubelet whose devices it starts: nothing is mistaken, and no pod waits for another."""

    source = "elastic-ai/elastic-gpu-agent@2609107:pkg/plugins/gpushare.go:88, 213, pkg/kube/locator.go:43"
    name = "elastic 2609107"
    spelling = elastic.SPELLINGS["elasticgpu.io"]
    certain = True

    def node(self, stage, name="n"):
        sizes = [16384, 16384]
        stage.node(name, {self.spelling.core: 200, self.spelling.memory: elastic.node_memory(sizes)})

    def wish(self, mib):
        return {self.spelling.core: 10, self.spelling.memory: mib}

    def picked(self, stage, name="n"):
        """The last that was bound gets what its own annotation says."""
        pod = max(stage.pods(name), key=lambda pod: pod["metadata"]["name"])
        [container] = pod["spec"]["containers"]
        granted, _, _ = elastic.grant(self.spelling, range(2), pod, container)
        own = pod["metadata"]["annotations"][self.spelling.container + container["name"]]
        return {pod["metadata"]["name"] if granted == [int(own)] else "nobody"}

    def serve(self, stage, pod):
        pass

    def words(self, name):
        return {self.spelling.mark: "true", self.spelling.container + "c0": "1"}


OLD = "Project-HAMi/volcano-vgpu-device-plugin@{}:pkg/plugin/vgpu/util/util.go:{}"
PLUGINS = [
    *map(Gpushare, gpushare.BEHAVIOURS),
    Volcano(),
    Vgpu("hami-v2.8", "Project-HAMi/HAMi@v2.8.3:pkg/util/util.go:76-136"),
    Vgpu("hami-v2.10", "Project-HAMi/HAMi@v2.10.0:pkg/util/util.go:76-136, NV/server.go:747, util.go:388-414"),
    Vgpu("4paradigm-da7d4ed", "4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/util/util.go:51, nvinternal/plugin/server.go:292"),
    Vgpu("volcano-v1.9.0", OLD.format("v1.9.0", "58")),
    Vgpu("volcano-v1.9.4", OLD.format("v1.9.4", "67-105")),
    Vgpu("volcano-v1.11.0", OLD.format("v1.11.0", "67-105")),
    Vgpu("volcano-v1.12.0", "Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/util/util.go:58-118, pkg/plugin/server.go:377-491"),
    GpuManager(),
    Elastic(),
]


def place_first(stage, plugin):
    """X, a hundred seconds before p: vGPUs' times are whole seconds."""
    stage.place(X, plugin.wish(12000))
    for key, value in stage.annotations(X).items():
        if key.endswith("vgpu-time"):
            stage.annotate(X, {key: str(int(value) - 100)})
    stage.sync()


def rejected(reason):
    def act(stage, plugin):
        stage.set_status(X, phase="Failed", reason=reason)

    return act


def terminating(stage, plugin):
    stage.change(X, lambda pod: pod["metadata"].update(DELETED))


def forced(stage, plugin):
    stage.delete(X)


def ended(stage, plugin):
    plugin.serve(stage, X)
    stage.set_status(X, phase="Running")
    stage.set_status(X, phase="Succeeded")


def started_by_anothers_promise(stage, plugin):
    """Its own stands."""
    stage.set_status(X, phase="Running")


def ended_by_anothers_promise(stage, plugin):
    started_by_anothers_promise(stage, plugin)
    stage.sync()
    stage.set_status(X, phase="Succeeded")


def mark_lost(stage, plugin):
    """Admitted, and Pending while its image comes."""
    stage.set_status(X, phase="Pending")


def rejected_late(stage, plugin):
    """kubelet adds up cores after the plugin has answered."""
    plugin.serve(stage, X)
    stage.set_status(X, phase="Failed", reason="OutOfcpu")


def restarted(act):
    """The program starts again and has its lists only."""

    def then(stage, plugin):
        act(stage, plugin)
        stage.restart()

    return then


def long_ago(stage, plugin):
    """kubelet has not asked for an hour, and the program has started since."""
    for key, value in stage.annotations(X).items():
        if key.endswith("bind-time"):
            stage.annotate(X, {key: "1"})
        elif key.endswith(("TIME", "-time")) and value != hami.FOREVER:
            stage.annotate(X, {key: "2"})
    stage.restart()


def served(stage, plugin):
    plugin.serve(stage, X)
    stage.set_status(X, phase="Running")


# fate: (what befalls a, whether p must be bound for all that, what kubelet and plugin do)
FATES = {
    "in flight": (lambda stage, plugin: None, False, "kubelet has not asked for a yet"),
    "served": (served, True, "a is served"),
    "rejected before Allocate": (rejected("TopologyAffinityError"), True, "kubelet has rejected a and never asks for it"),
    "rejected for a sysctl": (rejected("SysctlForbidden"), True, "likewise, and any tenant can make such a pod"),
    "rejected because another device failed": (rejected("UnexpectedAdmissionError"), True, "likewise"),
    "evicted before Allocate": (rejected("Evicted"), True, "likewise"),
    "terminating before Allocate": (terminating, False, "kubelet may still ask for a"),
    "deleted by force before Allocate": (forced, False, "kubelet may still ask for a once"),
    "ended after Allocate": (ended, True, "a has ended and its promise was erased"),
    "started by another's promise": (started_by_anothers_promise, False, "a runs on another's card, its own promise stands"),
    "ended by another's promise": (ended_by_anothers_promise, False, "likewise, and a has ended"),
    "rejected after Allocate": (rejected_late, True, "a was served, its promise is taken"),
    "in flight for an hour": (long_ago, False, "kubelet still asks for a, and the plugin serves it"),
    "rejected, and gpuledger restarts": (restarted(rejected("TopologyAffinityError")), True, "a's promise stands, or not"),
    "ended by another's promise, and gpuledger restarts": (restarted(ended_by_anothers_promise), False, "a's promise stands, or not"),
    "mark lost": (mark_lost, False, "a is admitted, Pending, and its promise stands"),
}


def judge(stage, plugin, must, node_name="n", limits=None):
    """p is bound and picked, or refused. Something may have to be revoked before; what is refused without
    that stays so."""
    wanted = stage.pod("p", limits or plugin.wish(4000))
    stage.sync()
    deadline = time.monotonic() + PATIENCE
    why = stage.try_once(wanted, node_name)
    while why and must:
        need(time.monotonic() < deadline, f"p is refused for good: {why}")
        time.sleep(0.05)
        why = stage.try_once(wanted, node_name)
    if not why:
        check(stage, plugin, node_name)


def check(stage, plugin, node_name="n"):
    """p is bound, and served its own."""
    picked = plugin.picked(stage, node_name)
    need(picked == {"p"}, f"p is bound, and {plugin.name} hands it what {', '.join(picked)} was promised")


def fate(plugin, name):
    act, must, real = FATES[name]

    def play(stage):
        plugin.node(stage)
        stage.start()
        place_first(stage, plugin)
        picked = plugin.picked(stage)
        need(picked == {X}, f"alone, a is served what {picked} was promised")
        act(stage, plugin)
        stage.sync()
        judge(stage, plugin, must or getattr(plugin, "certain", False))

    row(plugin.source, f"a was bound, then {name}; now p", real, "p is bound and picked" + (", or refused" * (not must)),
        name=f"{plugin.name}: {name}")(play)


def planted(plugin):
    """A pod without a node with the words: gated, restored from a backup, or meant so."""

    def play(stage):
        plugin.node(stage)
        stage.pod(UNBOUND, plugin.wish(12000), plugin.words("n"), schedulerName=None)
        stage.start()
        judge(stage, plugin, True)

    row(plugin.source, "a pod without a node has the words", "spec.nodeName is read, or not, by the plugin",
        "p is bound and picked", name=f"{plugin.name}: never bound")(play)


def made_again(plugin):
    """The Node is deleted with its pods and made again under its name; a is still there, of the old one."""

    def play(stage):
        plugin.node(stage)
        stage.start()
        place_first(stage, plugin)
        stage.set_status(X, phase="Failed", reason="NodeLost")
        stage._do(stage.api.delete, "nodes", (None, "n"))  # pylint: disable=protected-access
        stage.sync()
        plugin.node(stage)
        stage.sync()
        judge(stage, plugin, True)

    row(plugin.source, "the Node was made again under its name", "vgpu-node is a name", "p is bound and picked",
        name=f"{plugin.name}: node made again")(play)


def elsewhere(plugin, first, then):
    """One pod is in flight on another node when the next one comes: both are served their own, whichever comes first in
    the list, and so does a third between them."""

    def play(stage):
        nodes = dict(zip((first, then, "f"), ("other", "n", "third")))
        for node_name in nodes.values():
            plugin.node(stage, node_name)
        stage.start()
        bound = []
        for name, node_name in nodes.items():
            wanted = stage.pod(name, plugin.wish(4000))
            stage.sync()
            need(not stage.try_once(wanted, node_name), f"{name} is bound")
            stage.sync()
            bound.append(name)
            for each in bound:
                picked = plugin.picked(stage, nodes[each])
                need(picked == {each}, f"{plugin.name} hands {each} what {', '.join(picked)} was promised")

    row(plugin.source, f"{first} is in flight on another node when {then} comes, and then f on a third",
        "v1.9.4 to v1.11.0 begin with the list's first pod, of whatever node", "each is bound and picked",
        name=f"{plugin.name}: in flight elsewhere, {first} before {then}")(play)


def planted_elsewhere(plugin):
    """A tenant's pod comes first in the list, with the words of another node and whatever time."""

    def play(stage):
        plugin.node(stage)
        plugin.node(stage, "other")
        for number, time_said in enumerate(("0", "1", "2", "3000000000")):
            said = {key: time_said if key.endswith("-time") else value for key, value in plugin.words("other").items()}
            said = {key: "other" if key.endswith("-node") else value for key, value in said.items()}
            stage.pod(f"a{number}", plugin.wish(12000), said, schedulerName=None)
        stage.start()
        judge(stage, plugin, True)

    row(plugin.source, "pods without a node have the words of another node, with several times",
        "v1.9.4 to v1.11.0 begin with the list's first pod, of whatever node", "p is bound and picked",
        name=f"{plugin.name}: planted elsewhere")(play)


def without_rights(plugin):
    """patch on pods is not granted."""

    def play(stage):
        plugin.node(stage)
        stage.start()
        place_first(stage, plugin)
        stage.set_status(X, phase="Failed", reason="TopologyAffinityError")
        stage.forbid("patch pods")
        stage.sync()
        wanted = stage.pod("p", plugin.wish(4000))
        stage.sync()
        why = stage.try_once(wanted)
        if not why:
            check(stage, plugin)
            return
        need("promise" in why, f"p is refused for {why}")
        stage.delete(X)
        judge(stage, plugin, True)

    row(plugin.source, "a was rejected before Allocate, and nobody may patch pods", "a's promise stands until somebody deletes a",
        "p is bound and picked, or refused with that reason until a is gone", name=f"{plugin.name}: no right to revoke")(play)


for each in PLUGINS:
    without_rights(each)
    for title in FATES:
        fate(each, title)
    planted(each)
    made_again(each)
    elsewhere(each, "a", "p")
    elsewhere(each, "p", "a")
    planted_elsewhere(each)

assert NAMESPACE == "ml", "names sort as above"
