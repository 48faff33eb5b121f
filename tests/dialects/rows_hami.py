# SPDX-License-Identifier: Apache-2.0
"""HAMi, 4paradigm's plugin and Volcano's vGPUs: what their schedulers write, their plugins hand out, and
their nodes say. ND is pkg/device/nvidia/device.go, NV pkg/device-plugin/nvidiadevice/nvinternal/plugin, VU
pkg/scheduler/api/devices/nvidia/vgpu."""

import json
import random
import subprocess

from stage import NAMESPACE, TESTS, equal, need, row

# pylint: disable=wrong-import-order
from hami import BEHAVIOURS, Card, read_promise, register_text
from hami_ids import Ids
from hami_mig import A100_KIND, ALLOCATIONS
from program import PROGRAM

GPU, MEM, PERCENT, CORES = (f"nvidia.com/{what}" for what in ("gpu", "gpumem", "gpumem-percentage", "gpucores"))
VGPU, VMEM, VPERCENT, VCORES = (
    f"volcano.sh/vgpu-{what}" for what in ("number", "memory", "memory-percentage", "cores")
)
HAMI, VOLCANO = BEHAVIOURS["hami-v2.10"], BEHAVIOURS["volcano-v1.12.0"]
TO_ALLOCATE = {"hami.io": "hami.io/vgpu-devices-allocated", "volcano.sh": "volcano.sh/vgpu-ids-new"}
SIZE = 16384
NO_ROOM = "Insufficient GPU"


def cards(n_cards=1, memory=SIZE, **more):
    return [Card(f"GPU-{index}", memory, **more) for index in range(n_cards)]


def node(stage, behaviour, some_cards=None, name="n", allocatable=None, annotations=None, labels=None, capacity=None,
         **more):
    """A node as the plugin of that release registers it."""
    some_cards = some_cards or cards()
    said = {behaviour.register: register_text(behaviour, some_cards, **more), **(annotations or {})}
    amounts = {behaviour.resource: sum(card.count for card in some_cards), **(capacity or {})}
    stage.node(name, amounts, said, labels, allocatable)


def words(behaviour, text, node_name="n", phase="success", time="5"):
    """What a scheduler has written into a pod that its plugin has served."""
    key = behaviour.key
    standing = text if phase == "allocating" else ";"
    said = {key("vgpu-node"): node_name, key("vgpu-time"): time, key("bind-time"): "1", key("bind-phase"): phase,
            behaviour.promise: standing}
    if behaviour.mig_group:
        return {**said, "volcano.sh/vgpu-ids-new": text}
    if behaviour.prefix == "4pd.io":
        return {**said, "hami.sh/vgpu-devices-allocated": text, "4pd.io/vgpu-ids-new": text,
                "4pd.io/devices-to-allocate": standing}
    return {**said, "hami.io/vgpu-devices-allocated": text}


def promised(pod, behaviour):
    """[Device] of all containers, as the Binding promised them."""
    text = pod["metadata"]["annotations"][TO_ALLOCATE[behaviour.prefix]]
    return [device for devices in read_promise(text) for device in devices]


def documents():
    """Everything that people are told."""
    docs = TESTS.parent / "docs"
    told = [path.read_text() for path in sorted(docs.rglob("*.md"))]
    told.append(subprocess.run([PROGRAM, "dialects"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    return "\n".join(told)


def told(*words_of_it):
    text = documents()
    for each in words_of_it:
        need(each in text, f"no page says {each!r}")


# What a container runs with


@row("Project-HAMi/HAMi@v2.8.3:ND:556, v2.10.0:ND:538, NV/server.go:832-837",
     "memoryFactor 1024: a pod with a limit of 12 has the text 12288", "it runs with 12288 MiB",
     "12288 count: 8000 more do not fit on 16384, 4000 do")
def hami_text_by_a_factor_counts(stage):
    node(stage, HAMI)
    stage.running("a", {GPU: 1, MEM: 12}, words(HAMI, "GPU-0,NVIDIA,12288,0:;"))
    stage.start()
    stage.refused("b", {GPU: 1, MEM: 8000}, NO_ROOM)
    stage.place("c", {GPU: 1, MEM: 4000})


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go:832-837",
     "a pod of 50 % was placed while deviceMemoryScaling was 2", "the text keeps the old MiB, and it runs with them",
     "the whole card counts, though 50 % of it are half now")
def hami_text_of_before_scaling_was_lowered_counts(stage):
    node(stage, HAMI)
    stage.running("a", {GPU: 1, PERCENT: 50}, words(HAMI, f"GPU-0,NVIDIA,{SIZE},0:;"))
    stage.start()
    stage.refused("b", {GPU: 1, MEM: 100}, NO_ROOM)


@row("volcano-sh/volcano@v1.13.0:VU/utils.go:389, v1.14.0:VU/utils.go:330",
     "vgpu-memory 1000 and its percentage 50", "memory wins up to 1.13, the percentage from 1.14 on",
     "the text counts: 8192 of 16384")
def volcano_percentage_beside_memory_counts_by_the_text(stage):
    node(stage, VOLCANO)
    stage.running("a", {VGPU: 1, VMEM: 1000, VPERCENT: 50}, words(VOLCANO, "GPU-0,NVIDIA,8192,0:"))
    stage.start()
    stage.refused("b", {VGPU: 1, VMEM: 9000}, NO_ROOM)
    stage.place("c", {VGPU: 1, VMEM: 8000})


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go:832-837", "defaultCores 60 of HAMi's, not said here",
     "the text says 60 and the container is held to them", "60 count: 50 more do not fit, 40 do")
def hami_text_by_default_cores_counts(stage):
    node(stage, HAMI)
    stage.running("a", {GPU: 1, MEM: 100}, words(HAMI, "GPU-0,NVIDIA,100,60:;"))
    stage.start()
    stage.refused("b", {GPU: 1, MEM: 100, CORES: 50}, NO_ROOM)
    stage.place("c", {GPU: 1, MEM: 100, CORES: 40})


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go:832-837", "text and limits differ", "the text is what it runs with",
     "audit names the pod")
def hami_audit_names_a_text_that_says_more(stage):
    node(stage, HAMI)
    stage.running("a", {GPU: 1, MEM: 12}, words(HAMI, "GPU-0,NVIDIA,12288,0:;"))
    stage.start()
    report = stage.audit()
    need('"a"' in report or f"{NAMESPACE}/a" in report, report)


@row("Project-HAMi/HAMi@v2.10.0:ND:538", "--hami-memory-factor=1024, a limit of 12", "12 stands for 12288 MiB",
     "the plugin is promised 12288")
def hami_factor_when_placing(stage):
    node(stage, HAMI)
    stage.start("--hami-memory-factor=1024")
    [device] = promised(stage.place("a", {GPU: 1, MEM: 12}), HAMI)
    equal(device.memory, 12288, "promised")


# Which card


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go:733-744, 807-814; v2.9.0:569, 630; kubernetes@v1.36.3:"
     "pkg/kubelet/cm/devicemanager/manager.go",
     "enablegetpreferredallocation, a pod with an init container", "the app container runs on its init containers' cards",
     "those cards are what its app containers are promised")
def hami_app_containers_are_on_their_init_containers_cards(stage):
    node(stage, HAMI, cards(2))
    stage.start()
    for number, (init, app) in enumerate(((1000, 9000), (12000, 3000), (3000, 3000))):
        pod = stage.place(f"p{number}", {GPU: 1, MEM: app}, init=[{GPU: 1, MEM: init}])
        first, second = promised(pod, HAMI)
        ids = Ids({"GPU-0": 10, "GPU-1": 10}, random.Random(number))
        ids.take("p", [first.uuid], True)
        equal(ids.take("p", [second.uuid], False), [second.uuid], "the card on which it runs")
        serve(stage, HAMI, pod)


def serve(stage, behaviour, pod):
    """The plugin does its work, and kubelet has started the pod."""
    name = pod["metadata"]["name"]
    marks = {behaviour.promise: ";" if behaviour.ends_each else "", behaviour.key("bind-phase"): "success"}
    if behaviour.by_time:
        marks[behaviour.key("vgpu-time")] = str(2**64 - 1)
    stage.annotate(name, marks)
    stage.set_status(name, phase="Running")
    if behaviour.lock:
        stage._do(stage.api.change, "nodes", (None, "n"),  # pylint: disable=protected-access
                  lambda obj: obj["metadata"]["annotations"].pop(behaviour.lock, None))
    stage.sync()


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go:700-703", "the same option, and a promised card without free ids",
     "kubelet takes any card", "named under Limits")
def hami_preferred_allocation_is_a_documented_limit(_):
    told("enablegetpreferredallocation")


@row("volcano-sh/volcano@v1.15.1:pkg/scheduler/api/devices/util.go:213-222; Project-HAMi/volcano-vgpu-device-plugin@"
     "v1.12.0:pkg/plugin/server.go:369",
     "a Running pod that says vgpu-memory and no number, whose promise stands",
     "Volcano counts one card; the plugin hands the promise to the next", "10000 beside its 8000 are not bound")
def volcano_memory_without_a_number_counts(stage):
    node(stage, VOLCANO)
    stage.running("a", {VMEM: 8000}, words(VOLCANO, "GPU-0,NVIDIA,8000,0:", phase="allocating"))
    stage.start()
    stage.refused("b", {VGPU: 1, VMEM: 10000})


@row("volcano-sh/volcano@v1.15.1:pkg/scheduler/api/devices/util.go:213-222", "a pod with vgpu-memory alone is to be placed",
     "kubelet asks for vgpu-memory, for which the plugin hands out nothing", "an error, and no Binding")
def volcano_memory_without_a_number_is_not_placed(stage):
    node(stage, VOLCANO)
    stage.start()
    stage.refused("a", {VMEM: 8000})


# What nodes say


@row("Project-HAMi/volcano-vgpu-device-plugin@v1.9.4:pkg/plugin/vgpu/register.go:72, nvidia.go:157",
     "the plugin of v1.9 registers a card that is well", "it compares with another word and says false",
     "pods are placed: allocatable says how the cards are")
def volcano_v1_9_says_that_no_card_is_well(stage):
    old = BEHAVIOURS["volcano-v1.9.4"]
    need(register_text(old, cards()).endswith(",false:"), register_text(old, cards()))
    node(stage, old)
    stage.start()
    stage.place("a", {VGPU: 1, VMEM: 10000})


@row("Project-HAMi/volcano-vgpu-device-plugin@v1.10.0:pkg/plugin/vgpu/register.go:87", "v1.10 and later say false",
     "the card is not well", "the pod is refused")
def volcano_v1_12_says_that_a_card_is_not_well(stage):
    node(stage, VOLCANO, cards(health=False))
    stage.start()
    stage.refused("a", {VGPU: 1, VMEM: 10000})


@row("Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/plugin/register.go:91", "--hami-memory-scaling=200, said for HAMi",
     "Volcano's plugin never multiplies memory", "a whole card of Volcano's goes to a pod without consent")
def scaling_is_not_volcanos(stage):
    node(stage, VOLCANO, scaling=2)
    stage.start("--hami-memory-scaling=200")
    stage.place("a", {VGPU: 1, VMEM: SIZE})


@row("Project-HAMi/HAMi@v2.10.0:pkg/scheduler/scheduler.go:137-171, 998", "HAMi's own scheduler on the same node",
     "it counts pods from its filter on, and its bind looks at no capacity", "a page says that this does not work",
     name="hami's own scheduler beside gpuledger is said not to work")
def hami_scheduler_beside(_):
    told("| HAMi's own scheduler |", "this does not work")


@row("Project-HAMi/HAMi@v2.9.0:charts/hami/templates/scheduler/device-configmap.yaml; Project-HAMi/"
     "volcano-vgpu-device-plugin@v1.12.0:volcano-vgpu-device-plugin.yml",
     "an A100 of 80 GB in MIG mode, 10000 MiB are asked for", "its smallest instance has 9728 MiB",
     "the promised instance is a larger one")
def hami_instances_of_an_a100_80gb(stage):
    node(stage, BEHAVIOURS["hami-v2.9"], cards(memory=81920, mode="mig", kind="NVIDIA A100-SXM4-80GB"))
    stage.start()
    [device] = promised(stage.place("a", {GPU: 1, MEM: 10000}), HAMI)
    template = device.uuid.partition("[")[2].partition("-")[0]
    need(template != "0", f"{device}: the first template is seven of the smallest")


@row("volcano-sh/volcano@v1.15.1:VU/mig.go:36-51", "gpuMemoryFactor 10, a card in MIG mode registered as 4096",
     "the ask is multiplied before it is compared with an instance's MiB", "3000 get the whole card of 40960 MiB")
def volcano_instances_by_a_factor(stage):
    node(stage, VOLCANO, cards(memory=40960, mode="mig", kind=A100_KIND), factor=10)
    stage.start("--volcano-memory-factor=10")
    [device] = promised(stage.place("a", {VGPU: 1, VMEM: 3000}), VOLCANO)
    equal(device.uuid.partition("[")[2].rpartition("-")[0], "group4", "template")


# What pods ask


@row("Project-HAMi/HAMi@v2.10.0:ND:800; 4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/scheduler/score.go:131",
     "deviceCoreScaling 2, two pods with 100 cores", "100 is exclusive only while devcore is 100",
     "both are placed, and nothing more")
def hami_cores_of_a_scaled_card_are_not_exclusive(stage):
    node(stage, HAMI, cards(core=200))
    stage.start()
    serve(stage, HAMI, stage.place("a", {GPU: 1, MEM: 100, CORES: 100}))
    serve(stage, HAMI, stage.place("b", {GPU: 1, MEM: 100, CORES: 100}))
    stage.refused("c", {GPU: 1, MEM: 100, CORES: 1})


@row("Project-HAMi/HAMi@v2.10.0:ND:800; 4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/scheduler/score.go:131",
     "deviceCoreScaling 2, one pod with 100 cores", "the card has 100 more", "others join it, for 50 and for none in particular")
def hami_whole_core_of_a_scaled_card_leaves_room(stage):
    node(stage, HAMI, cards(core=200))
    stage.start()
    for name, cores in (("a", {CORES: 100}), ("b", {CORES: 50}), ("c", {})):
        serve(stage, HAMI, stage.place(name, {GPU: 1, MEM: 100, **cores}))


@row("Project-HAMi/HAMi@v2.10.0:ND:800; 4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/scheduler/score.go:131",
     "devcore 100, a pod without cores, then one with 100", "100 is exclusive while devcore is 100", "the second is refused")
def hami_whole_core_of_a_plain_card_is_exclusive(stage):
    node(stage, HAMI)
    stage.start()
    serve(stage, HAMI, stage.place("a", {GPU: 1, MEM: 100}))
    stage.refused("b", {GPU: 1, MEM: 100, CORES: 100})


@row("Project-HAMi/HAMi@v2.10.0:ND:772, 559", "cores 150", "clamped to 100", "refused, with the reason")
def hami_cores_above_a_card(stage):
    node(stage, HAMI)
    stage.start()
    stage.refused("a", {GPU: 1, MEM: 100, CORES: 150}, "gpucores")


@row("Project-HAMi/HAMi@v2.9.0:ND:485-494", "nvidia.com/numa-bind: t, two cards on two NUMA nodes", "t is true",
     "refused, as for true")
def hami_numa_bind_by_every_word_for_true(stage):
    node(stage, HAMI, [Card("GPU-0", SIZE), Card("GPU-1", SIZE, numa=1)])
    stage.start()
    for word in ("true", "TRUE", "True", "1", "t", "T"):
        stage.refused("a", {GPU: 2, MEM: 100}, "", {"nvidia.com/numa-bind": word})
    serve(stage, HAMI, stage.place("b", {GPU: 2, MEM: 100}, {"nvidia.com/numa-bind": "false"}))
    stage.place("c", {GPU: 2, MEM: 100}, {"nvidia.com/numa-bind": "yes"})


@row("Project-HAMi/HAMi@v2.4.1:pkg/device/nvidia/device.go", "a card without a mode, vgpu-mode hami-core",
     "no mode is part of every value", "placed")
def hami_mode_of_a_card_without_one(stage):
    stage.node("n", {GPU: 10}, {HAMI.register: f"GPU-0,10,{SIZE},100,NVIDIA-Tesla T4,0,true:"})
    stage.start()
    stage.place("a", {GPU: 1, MEM: 100}, {"nvidia.com/vgpu-mode": "hami-core"})


@row("volcano-sh/volcano@v1.15.1:VU/utils.go:324-346", "a node of mps cards, vgpu-mode hami-core",
     "all but mig is hami-core", "placed; mig is refused")
def volcano_mode_of_a_card_with_mps(stage):
    node(stage, VOLCANO, cards(mode="mps"))
    stage.start()
    stage.refused("a", {VGPU: 1, VMEM: 100}, "", {"volcano.sh/vgpu-mode": "mig"})
    stage.place("b", {VGPU: 1, VMEM: 100}, {"volcano.sh/vgpu-mode": "hami-core"})


@row("Project-HAMi/HAMi@v2.10.0:ND", "use-gpuuuid and nouse-gpuuuid of one card", "both hold since v2.10", "refused")
def hami_use_and_nouse(stage):
    node(stage, HAMI, cards(2))
    stage.start()
    both = {"nvidia.com/use-gpuuuid": "GPU-0", "nvidia.com/nouse-gpuuuid": "GPU-0"}
    stage.refused("a", {GPU: 1, MEM: 100}, "", both)
    stage.place("b", {GPU: 1, MEM: 100}, {"nvidia.com/use-gpuuuid": ""})


@row("volcano-sh/volcano@v1.15.1:VU/utils.go:166-196", "volcano.sh/vgpu-podgroup-policy: spread",
     "members of a PodGroup are on different cards", "read, or named as a wish that is not",
     name="volcano's policy of groups is named")
def volcano_group_policy(_):
    told("vgpu-podgroup-policy")


@row("volcano-sh/volcano@v1.15.1:VU/device_info.go:103-120", "allocatable vgpu-memory 0: kubelet has dropped the list",
     "Volcano takes the node for empty; with ignoredByScheduler false kube-scheduler does", "placed by vgpu-number")
def volcano_allocatable_is_of_the_number(stage):
    node(stage, VOLCANO, allocatable={VMEM: 0})
    stage.start()
    stage.place("a", {VGPU: 1, VMEM: 100})


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go:362, migmgr.go:366, 456-466, 500-513",
     "an instance that the plugin could not make: its pod has failed", "what the plugin does not know stays there for good",
     "the next pod is not sent to that place")
def hami_mig_place_that_failed_is_left_alone(stage):
    node(stage, HAMI, cards(memory=40960, mode="mig", kind=A100_KIND))
    stage.start()
    first = stage.place("a", {GPU: 1, MEM: 4000})
    place = json.loads(first["metadata"]["annotations"][ALLOCATIONS])[0]["placement"]
    stage.annotate("a", {HAMI.key("bind-phase"): "failed"})
    stage.set_status("a", phase="Failed", reason="UnexpectedAdmissionError",
                     message="Allocate failed due to rpc error: CreateGpuInstanceWithPlacement")
    stage.sync()
    second = stage.place("b", {GPU: 1, MEM: 4000})
    need(json.loads(second["metadata"]["annotations"][ALLOCATIONS])[0]["placement"] != place, f"again at {place}")


def without_hook(stage, behaviour, limits, value):
    node(stage, behaviour)
    stage.start("--reject-limit=0")
    hook = {"gpuledger.io/isolation": "hook"}
    wish = {"CUDA_DISABLE_CONTROL": value}
    stage.refused("own", limits, "", hook, env=wish)
    serve(stage, behaviour, stage.place("careful", limits, hook))
    stage.refused("free", limits, "switches its limits off", env=wish)
    serve(stage, behaviour, stage.place("plain", limits))
    for name in ("careful", "plain"):
        stage.delete(name)
    stage.sync()
    serve(stage, behaviour, stage.place("free", limits, env=wish))
    stage.refused("late", limits, NO_ROOM)


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go:866-883", "env CUDA_DISABLE_CONTROL=true", "it runs without the hook",
     "it needs a card that has no other holder")
def hami_container_without_the_hook(stage):
    without_hook(stage, HAMI, {GPU: 1, MEM: 1000}, "true")


@row("Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/plugin/server.go:473-485", "env CUDA_DISABLE_CONTROL=no",
     "any value switches the hook off", "it needs a card that has no other holder")
def volcano_container_without_the_hook(stage):
    without_hook(stage, VOLCANO, {VGPU: 1, VMEM: 1000}, "no")


@row("4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/device-plugin/nvidiadevice/nvinternal/plugin/server.go:381",
     "env CUDA_DISABLE_CONTROL=no", "any value switches the hook off", "it needs a card that has no other holder",
     name="4paradigm container without the hook")
def paradigm_container_without_the_hook(stage):
    without_hook(stage, BEHAVIOURS["4paradigm-da7d4ed"], {GPU: 1, MEM: 1000}, "no")


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go:866-883", "a pod with CUDA_DISABLE_CONTROL=1 that HAMi has put beside another",
     "it may take all memory of the card", "it counts with all of it, and audit names it",
     name="hami container without the hook beside another")
def hami_container_without_the_hook_beside_another(stage):
    node(stage, HAMI, cards(2))
    stage.running("a", {GPU: 1, MEM: 1000}, words(HAMI, "GPU-0,NVIDIA,1000,0:;"))
    stage.running("b", {GPU: 1, MEM: 1000}, words(HAMI, "GPU-0,NVIDIA,1000,0:;"), env={"CUDA_DISABLE_CONTROL": "1"})
    stage.start()
    need('"unlimited"' in stage.audit(), "audit does not name it")
    serve(stage, HAMI, stage.place("c", {GPU: 1, MEM: 100}))
    equal(stage.card("c"), 1, "card")


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go:866-883", "CUDA_DISABLE_CONTROL=no", "no word for true: the hook stays",
     "as without it", name="hami container that says no to the variable")
def hami_container_that_keeps_the_hook(stage):
    node(stage, HAMI)
    stage.start()
    serve(stage, HAMI, stage.place("a", {GPU: 1, MEM: 1000}, {"gpuledger.io/isolation": "hook"},
                                   env={"CUDA_DISABLE_CONTROL": "no"}))
    stage.place("b", {GPU: 1, MEM: 1000})


@row("Project-HAMi/HAMi@v2.10.0:NV/server.go, operatingMode", "CUDA_DISABLE_CONTROL=true on a card in MIG mode",
     "no hook is used there: the instance holds it", "it gets the instance that it asks for",
     name="hami container without the hook in an instance")
def hami_container_in_an_instance(stage):
    node(stage, HAMI, cards(memory=40960, mode="mig", kind=A100_KIND))
    stage.start()
    pod = stage.place("a", {GPU: 1, MEM: 4000}, env={"CUDA_DISABLE_CONTROL": "true"})
    equal(promised(pod, HAMI)[0].memory, promised(stage_other(stage, pod), HAMI)[0].memory, "MiB")


def stage_other(stage, pod):
    serve(stage, HAMI, pod)
    return stage.place("plain", {GPU: 1, MEM: 4000})


# What agrees


@row("Project-HAMi/HAMi@v2.9.0:pkg/util/util.go", "gpumem 8Gi of a pod that runs", "up to v2.9 it becomes 0, which is no limit",
     "the whole card counts")
def hami_amount_that_is_none(stage):
    node(stage, HAMI)
    stage.running("a", {GPU: 1, MEM: "8Gi"}, words(HAMI, "GPU-0,NVIDIA,0,0:;"))
    stage.start()
    stage.refused("b", {GPU: 1, MEM: 100}, NO_ROOM)


@row("Project-HAMi/HAMi@v2.8.3:pkg/util/util.go; v2.9.0", "texts of v2.8, without empty places, and of v2.9", "both are read",
     "both count")
def hami_texts_with_and_without_empty_places(stage):
    node(stage, HAMI)
    stage.running("a", [{}, {GPU: 1, MEM: 5000}], words(HAMI, "GPU-0,NVIDIA,5000,0:;"))
    stage.running("b", [{}, {GPU: 1, MEM: 6000}], words(HAMI, ";GPU-0,NVIDIA,6000,0:;"))
    stage.start()
    equal(stage.cards()[0]["memoryUsedBytes"] >> 20, 11000, "MiB used")


@row("Project-HAMi/HAMi@v2.10.0:pkg/scheduler/scheduler.go:154-164", "a terminating pod, and a text that nobody can read",
     "HAMi's scheduler forgets both when it starts", "both count")
def hami_terminating_and_unreadable_pods_count(stage):
    node(stage, HAMI, cards(2))
    stage.running("a", {GPU: 1, MEM: 9000}, words(HAMI, "GPU-0,NVIDIA,9000,0:;"),
                  deletionTimestamp="2026-01-01T00:00:00Z")
    stage.running("b", {GPU: 1, MEM: 9000}, words(HAMI, "GPU-1,NVIDIA"))
    stage.start()
    stage.refused("c", {GPU: 1, MEM: 9000}, NO_ROOM)
