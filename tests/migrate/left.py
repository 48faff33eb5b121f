# SPDX-License-Identifier: Apache-2.0
"""What other schedulers leave in a cluster, and how they count it, written from their own formats: gpushare-scheduler-
extender c0b6141, HAMi v2.10.0 and v2.7, 4paradigm's da7d4ed, gpu-admission 47d56ae, Volcano ed72c7c8,
elastic-gpu-scheduler 09b010d. Nothing of the program under test reads or writes this."""

import collections
import itertools
import json

GIB, MIB = 1 << 30, 1 << 20
CARDS, SIZE = 2, 16  # of each node; GiB of a card


class Left:
    """Two nodes of CARDS cards, whose scheduler has placed pods by first fit."""

    name = None            # of --from
    scheduler = None       # (namespace, Deployment or None for a static pod, image)
    node_side = None       # (DaemonSet, image)
    scheduler_name = None  # in the pods
    resource = None        # what pods ask by, beside others
    assigned = {}          # what the node side adds when it has served a pod

    def capacity(self):
        raise NotImplementedError

    def node_annotations(self, _node):
        return {}

    def limits(self, gib):
        """Of a container that is to have so much of one card."""
        raise NotImplementedError

    def placed(self, node, card, gib, number):
        """The annotations that its scheduler writes."""
        raise NotImplementedError

    def labels(self, _node):
        return {}

    def count(self, pod):
        """[(card, GiB)] as its own scheduler counts the pod, by index or UUID; None: it does not count it."""
        raise NotImplementedError

    def key(self, _node, card):
        """What `count` calls the card."""
        return card

    # --- objects ---------------------------------------------------------------------------------

    def node(self, name):
        capacity = {key: str(value) for key, value in self.capacity().items()}
        return {"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name},
                             "annotations": self.node_annotations(name)},
                "status": {"capacity": {"cpu": "64", "memory": "256Gi", "pods": "110", **capacity},
                           "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", **capacity},
                           "conditions": [{"type": "Ready", "status": "True"}]}}

    def pod(self, name, gib=0, place=None, number=1, containers=1, owner=None):
        """`place`: (node, card); None: it waits. `owner`: a Deployment's name."""
        container = {"image": "example.com/none:1", "resources": {
            "limits": {key: str(value) for key, value in self.limits(gib).items()} if gib else {}}}
        metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}",
                    "creationTimestamp": "2026-01-01T00:00:00Z"}
        spec = {"containers": [{**container, "name": f"c{i}"} for i in range(containers)]}
        status = {"phase": "Pending"}
        if self.scheduler_name:
            spec["schedulerName"] = self.scheduler_name
        if owner:
            metadata["labels"] = {"pod-template-hash": "5d9f"}
            metadata["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{owner}-5d9f",
                                            "uid": f"uid-{owner}", "controller": True}]
        if place:
            metadata["annotations"] = {**self.placed(*place, gib * containers, number), **self.assigned}
            metadata["labels"] = {**metadata.get("labels", {}), **self.labels(place[0])}
            spec["nodeName"] = place[0]
            status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

    def parts(self):
        """The pods of the scheduler and of its node side."""
        namespace, owner, image = self.scheduler

        def part(name, image, kind, of, node):
            return {"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}",
                                 "labels": {"pod-template-hash": "abc"} if kind == "ReplicaSet" else {},
                                 "ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": of, "uid": f"uid-{of}",
                                                      "controller": True}]},
                    "spec": {"nodeName": node, "containers": [{"name": "main", "image": image}]},
                    "status": {"phase": "Running"}}

        if owner:
            yield part(f"{owner}-abc-x1", image, "ReplicaSet", f"{owner}-abc", "cp-0")
        else:
            yield part("gpu-admission-cp-0", image, "Node", "cp-0", "cp-0")
        for node in ("n0", "n1"):
            yield part(f"{self.node_side[0]}-{node}", self.node_side[1], "DaemonSet", self.node_side[0], node)
        yield part("kube-scheduler-cp-0", "registry.k8s.io/kube-scheduler:v1.36.3", "Node", "cp-0", "cp-0")

    def nodes(self):
        return [self.node("n0"), self.node("n1")]

    def pods(self):
        """Placed ones, n0 and a card of n1 nearly full, and two that wait."""
        numbers = itertools.count(1)
        places = [("n0", 0, 10), ("n0", 0, 4), ("n0", 1, 12), ("n1", 0, 8)]
        placed = [self.pod(f"old-{i}", gib, (node, card), next(numbers), owner="web")
                  for i, (node, card, gib) in enumerate(places)]
        return placed + [self.pod("new-0", 6, owner="web"), self.pod("new-1", 3)]

    def objects(self):
        return [*self.nodes(), *self.parts(), *self.pods()]

    def held(self, pods):
        """{(node, card): GiB} as its scheduler counts."""
        sums = collections.Counter()
        for pod in pods:
            node = pod["spec"].get("nodeName")
            if node and self.resource in pod["spec"]["containers"][0].get("resources", {}).get("limits", {}):
                for card, gib in self.count(pod) or ():
                    sums[node, card] += gib
        return sums


def annotations_of(pod):
    return pod["metadata"].get("annotations") or {}


class Gpushare(Left):
    name = "gpushare"
    scheduler = ("kube-system", "gpushare-schd-extender",
                 "registry.cn-hangzhou.aliyuncs.com/acs/k8s-gpushare-schd-extender:1.11-d170d8a")
    node_side = ("gpushare-device-plugin-ds", "registry.cn-hangzhou.aliyuncs.com/acs/gpushare-device-plugin:v2")
    resource = "aliyun.com/gpu-mem"
    assigned = {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}

    def capacity(self):
        return {"aliyun.com/gpu-mem": CARDS * SIZE, "aliyun.com/gpu-count": CARDS}

    def limits(self, gib):
        return {"aliyun.com/gpu-mem": gib}

    def placed(self, node, card, gib, number):
        return {"ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_DEV": str(SIZE),
                "ALIYUN_COM_GPU_MEM_POD": str(gib), "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(1767225600_000000000 + number)}

    def count(self, pod):
        annotations = annotations_of(pod)
        gib = sum(int(each["resources"]["limits"]["aliyun.com/gpu-mem"]) for each in pod["spec"]["containers"])
        return [(int(annotations["ALIYUN_COM_GPU_MEM_IDX"]), gib)] if "ALIYUN_COM_GPU_MEM_IDX" in annotations else None


class Hami(Left):
    name = "hami"
    scheduler = ("kube-system", "hami-scheduler", "projecthami/hami:v2.10.0")
    node_side = ("hami-device-plugin", "projecthami/hami:v2.10.0")
    scheduler_name = "hami-scheduler"
    resource = "nvidia.com/gpu"
    assigned = {"hami.io/bind-phase": "success", "hami.io/vgpu-devices-to-allocate": ";"}

    def key(self, node, card):
        return f"GPU-{node}-{card}"

    def capacity(self):
        return {"nvidia.com/gpu": CARDS * 10}

    def node_annotations(self, node):
        cards = [{"id": self.key(node, i), "index": i, "count": 10, "devmem": SIZE * 1024, "devcore": 100,
                  "type": "NVIDIA A10", "numa": 0, "mode": "hami-core", "health": True} for i in range(CARDS)]
        return {"hami.io/node-nvidia-register": json.dumps(cards)}

    def limits(self, gib):
        return {"nvidia.com/gpu": 1, "nvidia.com/gpumem": gib * 1024}

    def labels(self, node):
        return {"hami.io/vgpu-node": node}

    def placed(self, node, card, gib, number):
        device = f"{self.key(node, card)},NVIDIA,{gib * 1024},0:;"
        return {"hami.io/vgpu-node": node, "hami.io/vgpu-time": str(1767225600 + number),
                "hami.io/vgpu-devices-allocated": device, "hami.io/vgpu-devices-to-allocate": device,
                "hami.io/bind-phase": "allocating", "hami.io/bind-time": str(1767225600 + number)}

    def count(self, pod):
        text = annotations_of(pod).get("hami.io/vgpu-devices-allocated")
        if not text or "hami.io/vgpu-node" not in annotations_of(pod):
            return None
        fields = [device.split(",") for device in text.replace(";", ":").split(":") if "," in device]
        return [(uuid, int(mib) / 1024) for uuid, _, mib, _ in fields]


class Admission(Left):
    name = "gpu-admission"
    scheduler = ("kube-system", None, "thomassong/gpu-admission:47d56ae9")
    node_side = ("gpu-manager-daemonset", "thomassong/gpu-manager:1.0.3")
    resource = "tencent.com/vcuda-core"
    assigned = {"tencent.com/gpu-assigned": "true"}

    def capacity(self):
        return {"tencent.com/vcuda-core": 100 * CARDS, "tencent.com/vcuda-memory": CARDS * SIZE * 4}

    def limits(self, gib):
        return {"tencent.com/vcuda-core": 5 * gib, "tencent.com/vcuda-memory": 4 * gib}

    def placed(self, node, card, gib, number):
        return {"tencent.com/predicate-gpu-idx-0": str(card), "tencent.com/predicate-node": node,
                "tencent.com/predicate-time": str(1767225600_000000000 + number), "tencent.com/gpu-assigned": "false"}

    def count(self, pod):
        index = annotations_of(pod).get("tencent.com/predicate-gpu-idx-0")
        blocks = int(pod["spec"]["containers"][0]["resources"]["limits"]["tencent.com/vcuda-memory"])
        return [(int(index), blocks / 4)] if index else None


class Volcano(Left):
    name = "volcano"
    scheduler = ("volcano-system", "volcano-scheduler", "volcanosh/vc-scheduler:v1.12.0")
    node_side = ("volcano-device-plugin", "volcanosh/volcano-device-plugin:v1.1.0")
    scheduler_name = "volcano"
    resource = "volcano.sh/gpu-memory"
    assigned = {"volcano.sh/gpu-assigned": "true"}

    def capacity(self):
        return {"volcano.sh/gpu-memory": CARDS * SIZE * 1024, "volcano.sh/gpu-number": CARDS}

    def limits(self, gib):
        return {"volcano.sh/gpu-memory": gib * 1024}

    def placed(self, node, card, gib, number):
        return {"volcano.sh/gpu-index": str(card), "volcano.sh/predicate-time": str(1767225600_000000000 + number),
                "volcano.sh/gpu-assigned": "false", "scheduling.k8s.io/group-name": f"podgroup-{number}"}

    def count(self, pod):
        index = annotations_of(pod).get("volcano.sh/gpu-index")
        mib = int(pod["spec"]["containers"][0]["resources"]["limits"]["volcano.sh/gpu-memory"])
        return [(int(index), mib / 1024)] if index else None


class Elastic(Left):
    name = "elastic"
    scheduler = ("kube-system", "elastic-gpu-scheduler", "elasticai/elastic-gpu-scheduler:v0.1.0")
    node_side = ("elastic-gpu-agent", "elasticai/elastic-gpu-agent:v0.1.0")
    resource = "elasticgpu.io/gpu-memory"

    def capacity(self):
        return {"elasticgpu.io/gpu-core": 100 * CARDS, "elasticgpu.io/gpu-memory": CARDS * SIZE * 1024}

    def limits(self, gib):
        return {"elasticgpu.io/gpu-core": 5 * gib, "elasticgpu.io/gpu-memory": gib * 1024}

    def labels(self, node):
        return {"elasticgpu.io/assumed": "true"}

    def placed(self, node, card, gib, number):
        return {"elasticgpu.io/container-c0": str(card), "elasticgpu.io/assumed": "true"}

    def count(self, pod):
        """It looks for the label when it starts."""
        if pod["metadata"].get("labels", {}).get("elasticgpu.io/assumed") != "true":
            return None
        mib = int(pod["spec"]["containers"][0]["resources"]["limits"]["elasticgpu.io/gpu-memory"])
        return [(int(annotations_of(pod)["elasticgpu.io/container-c0"]), mib / 1024)]


ALL = {each.name: each for each in (Gpushare(), Hami(), Admission(), Volcano(), Elastic())}
