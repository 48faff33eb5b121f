# SPDX-License-Identifier: Apache-2.0
"""NVIDIA, Koordinator, KAI, gpushare, Volcano's gpushare and elastic: what their nodes and schedulers say,
and who sees whom where two schedulers share a node."""

import json
import random

from stage import equal, need, row

# pylint: disable=wrong-import-order
import elastic
import gpushare
import nvidia
import volcano
from rows_hami import HAMI, cards, node, serve, told

GPU = "nvidia.com/gpu"
MEM, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
KOORD, KCORE, KMEM, KRATIO = (f"koordinator.sh/{what}" for what in ("gpu", "gpu-core", "gpu-memory", "gpu-memory-ratio"))
DEVICES = "scheduling.koordinator.sh/device-allocated"
CONFIG = "nvidia.com/device-plugin.config"
MIN, WANTED, ISOLATION = (f"gpuledger.io/{what}" for what in ("gpu-memory-min", "gpu-memory", "isolation"))
NV = "NVIDIA/k8s-device-plugin@v0.20.0"
ONE = {GPU: 1}


def nvidia_node(stage, devices, sharing=nvidia.Sharing(), cards=1, **labels):
    stage.node("n", {GPU: devices}, None, nvidia.labels(cards, sharing, **labels))


def start(stage, name):
    stage.set_status(name, phase="Running")
    stage.sync()


@row(f"{NV}:internal/rm/device_map.go:328, cmd/mps-control-daemon/mps/daemon.go:93, 120, 171, 268",
     "time-slicing 4 becomes MPS 4 while a pod runs",
     "kubelet sees no change; the daemon limits memory and sets EXCLUSIVE_PROCESS",
     "nothing new until the pod of before has ended")
def nvidia_a_way_of_sharing_is_a_kind(stage):
    nvidia_node(stage, 4, nvidia.Sharing(replicas=4))
    stage.start()
    stage.place("old", ONE)
    start(stage, "old")
    nvidia_node(stage, 4, nvidia.Sharing(nvidia.MPS, replicas=4))
    stage.sync()
    stage.refused("new", ONE)
    stage.set_status("old", phase="Succeeded")
    stage.sync()
    stage.place("new", ONE)


@row(f"{NV}:cmd/gpu-feature-discovery/main.go:64-80",
     "4 devices of one card of 15360 MiB, the label still says 2 replicas", "the plugin reports at once, labels come later",
     "the memory guard lets no more meet than a card has")
def nvidia_replicas_that_are_older_than_devices(stage):
    nvidia_node(stage, 4, nvidia.Sharing(replicas=2))
    stage.start("--nvidia-memory-guard")
    placed = 0
    for number in range(4):
        wanted = stage.pod(f"p{number}", ONE, {WANTED: "7Gi"})
        stage.sync()
        placed += not stage.try_once(wanted)
    need(placed * 7 <= 15, f"{placed} pods of 7 GiB on a card of 15")


@row(f"{NV}:cmd/gpu-feature-discovery/main.go:64-80, cmd/mps-control-daemon/mps/daemon.go",
     "MPS with 4 devices, the label still says 2 replicas of 40 GiB", "each client gets 10 GiB",
     "no device is promised 20 GiB")
def nvidia_mps_memory_while_the_label_is_old(stage):
    nvidia_node(stage, 4, nvidia.Sharing(nvidia.MPS, replicas=2), memory=40960)
    stage.start()
    stage.refused("a", ONE, "", {MIN: "20000Mi"})


@row(f"{NV}:internal/lm/mig-strategy.go:134-171", "one T4 and two A100 under one name",
     "the labels are of one model, which may change", "nobody who needs 40000 MiB is sent there, whatever the label says")
def nvidia_several_models_under_one_name(stage):
    groups = [nvidia.labels(1, product="Tesla-T4", memory=15360), nvidia.labels(2, product="A100", memory=40960)]
    stage.node("n", {GPU: 3}, None, nvidia.merged(groups, random.Random(0)))
    stage.start()
    for seed in range(4):
        stage.node("n", {GPU: 3}, None, nvidia.merged(groups, random.Random(seed)))
        stage.sync()
        stage.refused("a", ONE, "", {MIN: "40000Mi"})
    stage.place("b", ONE)


@row(f"{NV}:internal/lm/mig-strategy.go:134-171",
     "mig.strategy=mixed: of 8 cards 4 are in MIG mode, 4 in 2 replicas; device-plugin.config is there",
     "gpu.count is 8, gpu.replicas 2, and 8 devices are reported", "pods are placed: the node is not being changed for good")
def nvidia_count_has_cards_in_mig_mode(stage):
    said = nvidia.labels(nvidia.mixed_count(4, 4), nvidia.Sharing(replicas=2))
    said |= {"nvidia.com/mig.strategy": "mixed", CONFIG: "shared"}
    stage.node("n", {GPU: 8, "nvidia.com/mig-1g.5gb": 28}, None, said)
    stage.start()
    stage.place("a", ONE)


@row(f"{NV}:deployments/helm/nvidia-device-plugin/values.yaml:110-111", "two nvidia.com/gpu without a label",
     "they may be replicas of one card: GFD is off by default", "no isolation: two namespaces do not meet there")
def nvidia_devices_without_labels_have_no_isolation(stage):
    stage.node("n", {GPU: 2})
    stage.start("--tenant-isolation=hardware")
    stage.place("a", ONE, namespace="first")
    stage.refused("b", ONE, "", namespace="second")


@row(f"{NV}:deployments/helm/nvidia-device-plugin/values.yaml:110-111", "a pod demands hardware, no label",
     "nobody knows how the cards are shared", "refused",
     name="nvidia isolation that nobody knows is none")
def nvidia_isolation_unknown(stage):
    stage.node("n", {GPU: 2})
    stage.start()
    stage.refused("a", ONE, "", {ISOLATION: "hardware"})
    stage.place("b", ONE)


@row(f"{NV}:api/config/v1/config.go:72, internal/rm/rm.go:102",
     "MPS, a container asks for two devices, failRequestsGreaterThanOne is false (--nvidia-mps-several)",
     "since v0.20 that is obeyed", "placed")
def nvidia_mps_with_two_devices(stage):
    nvidia_node(stage, 4, nvidia.Sharing(nvidia.MPS, replicas=4))
    stage.start("--nvidia-mps-several")
    stage.place("a", {GPU: 2})


@row(f"{NV}:api/config/v1/config.go:72, internal/rm/rm.go:102", "MPS, a container asks for two devices, nothing is said",
     "the plugin fails the pod", "refused")
def nvidia_mps_with_two_devices_by_default(stage):
    nvidia_node(stage, 4, nvidia.Sharing(nvidia.MPS, replicas=4))
    stage.start()
    stage.refused("a", {GPU: 2})


@row(f"{NV}:cmd/mps-control-daemon/mps/device.go:46-54", "MPS with 20 replicas on a V100",
     "the daemon takes 16 clients below compute capability 7.5, and no device appears", "a page says 16",
     name="nvidia mps clients by compute capability are said")
def nvidia_mps_clients(_):
    told("at most 48 pods of a card", "16 below")


# Koordinator


def koordinator_node(stage, cards=1, memory=16, core=None, **more):
    order = {"gpuledger.io/card-order": ",".join(map(str, range(cards)))}
    stage.node("n", {MEM: cards * memory, COUNT: cards, KCORE: core or 100 * cards,
                     KMEM: f"{cards * memory}Gi", KRATIO: 100 * cards, **more}, order)


@row("koordinator-sh/koordinator@v1.8.0:pkg/scheduler/plugins/deviceshare/eventhandler_pod.go:44, 104",
     "a gpushare pod on a node that has Koordinator's capacity, too", "Koordinator knows what device-allocated says, whoever bound",
     "device-allocated comes with the Binding, or the pod is refused", name="koordinator sees the pods of others")
def koordinator_sees(stage):
    koordinator_node(stage, 2)
    stage.start()
    wanted = stage.pod("a", {MEM: 10})
    stage.sync()
    if not stage.try_once(wanted):
        said = json.loads(stage.annotations("a").get(DEVICES, "{}"))
        minors = [each["minor"] for each in said.get("gpu", [])]
        equal(minors, [stage.card("a")], "cards that Koordinator is told")


@row("koordinator-sh/koordinator@v1.8.0:pkg/scheduler/plugins/deviceshare/utils.go:425",
     "an init container with 1 card and an app container with 1", "the larger of both counts: one card",
     "one card is held, not every one", name="koordinator init containers do not add up")
def koordinator_init_containers(stage):
    koordinator_node(stage, 2)
    resources = {KCORE: "100", KRATIO: "100", KMEM: "16Gi"}
    said = {DEVICES: json.dumps({"gpu": [{"minor": 1, "resources": resources}]})}
    stage.running("k", {KOORD: 100}, said, init=[{KOORD: 100}])
    stage.start()
    stage.place("a", {MEM: 16})
    equal(stage.card("a"), 0, "card")


@row("koordinator-sh/koordinator@v1.8.0:pkg/koordlet/metricsadvisor/devices/gpu, pkg/slo-controller/noderesource/"
     "plugins/gpudeviceresource/plugin.go:182",
     "8 cards, one of them not well: gpu-core 700, a pod on minor 7", "unhealthy cards are left out, minors are not numbered anew",
     "its pod holds card 7", name="koordinator capacity without unhealthy cards")
def koordinator_unhealthy(stage):
    koordinator_node(stage, 8, core=700)
    resources = {KCORE: "100", KRATIO: "100", KMEM: "16Gi"}
    stage.running("k", {KOORD: 100}, {DEVICES: json.dumps({"gpu": [{"minor": 7, "resources": resources}]})})
    stage.start()
    for number in range(7):
        stage.place(f"p{number}", {MEM: 16})
        need(stage.card(f"p{number}") != 7, "card 7 is given twice")
        stage.annotate(f"p{number}", {gpushare.ASSIGNED: "true"})
        start(stage, f"p{number}")
    stage.refused("last", {MEM: 16})


# Numbers of cards


def mixed_numbers(stage, annotations):
    capacity = {**gpushare.capacity([16384, 16384]), "elasticgpu.io/gpu-core": 200,
                "elasticgpu.io/gpu-memory": elastic.node_memory([16384, 16384])}
    stage.node("n", capacity, annotations)
    stage.start()
    stage.place("a", {MEM: 12})
    stage.annotate("a", {gpushare.ASSIGNED: "true"})
    start(stage, "a")
    return {"elasticgpu.io/gpu-core": 50, "elasticgpu.io/gpu-memory": 12000}


@row("AliyunContainerService/gpushare-device-plugin@45fb8b8:pkg/gpu/nvidia/allocate.go:117; "
     "elastic-ai/elastic-gpu-agent@2609107:pkg/operator/gpushare.go:32",
     "gpushare and elastic on one node, nothing says how NVML's index and the minor map",
     "one counts by NVML's index, the other by /dev/nvidiaN", "they do not share the node")
def rows_of_both_numbers_do_not_share_a_node(stage):
    need([gpushare.card_that_runs(gpushare.BEHAVIOURS["45fb8b8"], [1, 0], n) for n in (0, 1)] == [0, 1], "by index")
    wish = mixed_numbers(stage, None)
    stage.refused("b", wish, "card-order")
    stage.place("d", {MEM: 4})
    stage.set_status("d", phase="Succeeded")
    stage.set_status("a", phase="Succeeded")
    stage.sync()
    stage.place("b", wish)
    stage.refused("e", {MEM: 4}, "card-order")


@row("AliyunContainerService/gpushare-device-plugin@45fb8b8:pkg/gpu/nvidia/allocate.go:117; "
     "elastic-ai/elastic-gpu-agent@2609107:pkg/operator/gpushare.go:32",
     "the same with gpuledger.io/card-order: 1,0", "NVML's card 0 is /dev/nvidia1", "the second pod is on the other card")
def rows_of_both_numbers_share_a_node_by_card_order(stage):
    wish = mixed_numbers(stage, {"gpuledger.io/card-order": "1,0"})
    stage.place("b", wish)
    text = stage.annotations("b")["elasticgpu.io/container-c0"]
    index = int(stage.annotations("a")[gpushare.IDX])
    equal(int(text), [1, 0][1 - index], "minor of the other card")
    equal(stage.card("b"), 1 - index, "card by NVML's index")
    stage.restart()
    equal(stage.card("b"), 1 - index, "card by NVML's index")
    need('"b"' not in stage.audit(), "audit takes it for an edit")


@row("koordinator-sh/koordinator@v1.8.0:pkg/koordlet/metricsadvisor/devices/gpu",
     "a pod of Koordinator's on minor 0 of a node that has gpushare, too", "minor 0 need not be NVML's card 0",
     "gpushare's pods are refused until card-order says how they map, and audit names the node when they are there",
     name="koordinator beside gpushare without card-order")
def koordinator_numbers(stage):
    koordinator_node(stage, 2)
    without = {MEM: 32, COUNT: 2, KCORE: 200, KMEM: "32Gi", KRATIO: 200}
    stage.node("n", without)
    resources = {KCORE: "100", KRATIO: "100", KMEM: "16Gi"}
    stage.running("k", {KOORD: 100}, {DEVICES: json.dumps({"gpu": [{"minor": 0, "resources": resources}]})})
    stage.start()
    stage.refused("a", {MEM: 4}, "card-order")
    stage.running("b", {MEM: 4}, {gpushare.IDX: "0", gpushare.POD: "4", gpushare.ASSIGNED: "true", gpushare.ASSUME_TIME: "1"})
    stage.sync()
    need('"card_numbers"' in stage.audit(), "audit says nothing of the node")
    stage.delete("b")
    stage.node("n", without, {"gpuledger.io/card-order": "1,0"})
    stage.sync()
    stage.place("a", {MEM: 16})
    equal(stage.card("a"), 0, "card by NVML's index")


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go; elastic-ai/elastic-gpu-agent@2609107:pkg/operator/gpushare.go:32",
     "elastic's agent on a node of HAMi's, whose pods are named by UUID", "the order of HAMi's cards is NVML's",
     "as beside gpushare", name="elastic beside hami without card-order")
def elastic_beside_hami(stage):
    node(stage, HAMI, cards(2), capacity={"elasticgpu.io/gpu-core": 200, "elasticgpu.io/gpu-memory": 32768})
    stage.start()
    serve(stage, HAMI, stage.place("a", {GPU: 1, "nvidia.com/gpumem": 12000}))
    wish = {"elasticgpu.io/gpu-core": 50, "elasticgpu.io/gpu-memory": 12000}
    stage.refused("b", wish, "card-order")
    node(stage, HAMI, cards(2), capacity={"elasticgpu.io/gpu-core": 200, "elasticgpu.io/gpu-memory": 32768},
         annotations={"gpuledger.io/card-order": "1,0"})
    stage.sync()
    stage.place("b", wish)
    equal(stage.annotations("b")["elasticgpu.io/container-c0"], str(stage.card("a")), "minor of the other card")


# Unequal cards


def unequal(stage, capacity, wish):
    stage.node("n", capacity, {"gpuledger.io/card-memory": "16384,8192"})
    stage.start()
    first = stage.pod("a", wish(12000))
    stage.sync()
    error = stage.try_once(first)
    need(not error, f"the large card is there: {error}")
    start(stage, "a")
    second = stage.pod("b", wish(12000))
    stage.sync()
    if stage.try_once(second):
        return
    report = "\n".join(stage.server.log)
    need("card-memory" in report, "12000 MiB on a card of 8192, and card-memory is ignored in silence")


@row("volcano-sh/devices@95b591b6:pkg/plugin/nvidia/utils.go:80-82", "cards of 16384 and 8192 MiB, card-memory says so",
     "the plugin makes every card as large as the first", "the small card takes 8192, or a warning names card-memory")
def volcano_unequal_cards(stage):
    behaviour = volcano.BEHAVIOURS["95b591b6-share"]
    unequal(stage, volcano.capacity(behaviour, [16384, 8192]), lambda mib: {volcano.MEMORY: mib})


@row("elastic-ai/elastic-gpu-agent@2609107:pkg/plugins/gpushare.go:161", "cards of 16384 and 8192 MiB, card-memory says so",
     "the agent reports the sum", "the large card takes 12000, the small one does not")
def elastic_unequal_cards(stage):
    capacity = {"elasticgpu.io/gpu-core": 200, "elasticgpu.io/gpu-memory": elastic.node_memory([16384, 8192])}
    unequal(stage, capacity, lambda mib: {"elasticgpu.io/gpu-core": 10, "elasticgpu.io/gpu-memory": mib})


@row("AliyunContainerService/gpushare-device-plugin@45fb8b8:pkg/gpu/nvidia/server.go:49",
     "4 cards of 15, one is lost: 60/3 for a moment", "gpu-count is written before the plugin registers 45",
     "named under Limits", name="gpushare count before memory is a documented limit")
def gpushare_count_before_memory(_):
    told("counts for a moment as the old memory by the new number")


# KAI


def reservation(stage, namespace):
    said = {"run.ai/reserve_for_gpu_index": "GPU-0"}
    stage.running("gpu-reservation-0", ONE, said, namespace=namespace)


@row("NVIDIA/KAI-Scheduler@72de64fc:pkg/binder/binding/resourcereservation/resource_reservation.go:43, 397",
     "a reservation pod holds one of 2 time-sliced devices of a card of 15360 MiB", "its group may use the whole card",
     "the memory guard promises nothing beside it: 11 GiB are refused")
def kai_reservation_is_a_whole_card(stage):
    nvidia_node(stage, 2, nvidia.Sharing(replicas=2))
    reservation(stage, "kai-resource-reservation")
    stage.start("--nvidia-memory-guard")
    stage.refused("a", ONE, "", {WANTED: "11Gi"})


@row("NVIDIA/KAI-Scheduler@72de64fc:cmd/binder/app/options.go:46", "its namespace has another name: a flag of the binder",
     "the pod holds a device all the same", "the device is counted")
def kai_reservation_in_another_namespace(stage):
    nvidia_node(stage, 2, cards=2)
    reservation(stage, "kai-of-ours")
    stage.start()
    equal(stage.pool(), 1, "devices in use")


# Two schedulers on one node


def sees(name, source, real, text):
    row(source, "its own scheduler on a node of gpuledger's", real, f"a page says so: {text}",
        name=f"beside {name}")(lambda _: told(text))


sees("gpushare's extender", "AliyunContainerService/gpushare-scheduler-extender@c0b6141:pkg/gpushare/controller.go:208, 287",
     "it sees IDX and POD of any pod, and lets go at the deletionTimestamp", "| gpushare-scheduler-extender |")
sees("gpu-admission", "tkestack/gpu-admission@47d56ae:pkg/predicate/gpu_predicate.go:213",
     "it sees predicate-gpu-idx of pods whose node or predicate-node it is", "| gpu-admission |")
sees("Volcano", "volcano-sh/volcano@ed72c7c8:pkg/scheduler/api/devices/nvidia/gpushare/device_info.go",
     "it sees gpu-index of all pods", "| Volcano's scheduler |")
sees("elastic-gpu-scheduler", "elastic-ai/elastic-gpu-scheduler@09b010d:pkg/scheduler/pod.go:80, scheduler.go:71, 91",
     "it sees annotations while it runs, labels when it starts", "| elastic-gpu-scheduler |")
sees("Koordinator", "koordinator-sh/koordinator@v1.8.0:pkg/scheduler/plugins/deviceshare/eventhandler_pod.go:44",
     "it sees device-allocated only", "| Koordinator |")
sees("KAI", "NVIDIA/KAI-Scheduler@72de64fc:pkg/binder/binding/resourcereservation/resource_reservation.go",
     "it sees pods with nvidia.com/gpu only", "| KAI |")
sees("GAS", "intel/platform-aware-scheduling@c4c90e3:gpu-aware-scheduling/pkg/gpuscheduler/scheduler.go",
     "it sees its own, and gpuledger does not mix with it", "| GAS |")


@row("NVIDIA/KAI-Scheduler@72de64fc:pkg/binder/binding/resourcereservation/resource_reservation.go",
     "a reservation of KAI's stands on a node that has gpushare, too", "KAI does not see gpushare's pods",
     "other rows keep off while it stands")
def kai_keeps_others_off(stage):
    stage.node("n", {GPU: 2, MEM: 32, COUNT: 2}, None, nvidia.labels(2))
    reservation(stage, "kai-resource-reservation")
    stage.start()
    stage.refused("a", {MEM: 4})
