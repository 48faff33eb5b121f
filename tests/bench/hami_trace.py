#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GPU trace (CSV) as a saved cluster of HAMi nodes, whose plugin serves one pod at a time:

    hami_trace.py NODES.csv PODS.csv CLUSTER.json
    gpuledger simulate --snapshot CLUSTER.json --plugin-pace 400ms --pods-per-second 10
"""

import csv
import json
import pathlib
import sys

CARD_MIB = 16384


def node(row):
    cards = int(row["gpu"])
    name = row["sn"]
    register = [
        {
            "id": f"GPU-{name}-{index}",
            "index": index,
            "count": 10,
            "devmem": CARD_MIB,
            "devcore": 100,
            "type": f"NVIDIA-{row['model'] or 'A10'}",
            "health": True,
            "mode": "hami-core",
        }
        for index in range(cards)
    ]
    capacity = {
        "cpu": f"{row['cpu_milli']}m",
        "memory": f"{row['memory_mib']}Mi",
        "pods": "1000",
    }
    annotations = {}
    if cards:
        capacity["nvidia.com/gpu"] = str(10 * cards)
        # HAMi has kube-scheduler ignore these, which the simulation does not know.
        capacity["nvidia.com/gpumem-percentage"] = str(100 * cards)
        capacity["nvidia.com/gpucores"] = str(100 * cards)
        annotations["hami.io/node-nvidia-register"] = json.dumps(register)
    labels = {"nvidia.com/gpu.product": row["model"]} if row.get("model") else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": annotations, "labels": labels},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def pod(row):
    limits = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    if int(row["num_gpu"]):
        percent = str(int(row["gpu_milli"]) // 10)
        limits["nvidia.com/gpu"] = row["num_gpu"]
        limits["nvidia.com/gpumem-percentage"] = percent
        limits["nvidia.com/gpucores"] = percent
    meta = {"name": row["name"], "namespace": "default", "uid": row["name"]}
    if row.get("gpu_spec"):
        meta["annotations"] = {"gpuledger.io/gpu-models": row["gpu_spec"].replace("|", ",")}
    container = {"name": "c", "resources": {"limits": limits, "requests": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container]},
        "status": {"phase": "Pending"},
    }


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main():
    nodes, pods, cluster = sys.argv[1:]
    items = [node(row) for row in read(nodes)] + [pod(row) for row in read(pods)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    pathlib.Path(cluster).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
