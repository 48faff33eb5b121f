# SPDX-License-Identifier: Apache-2.0
"""Clusters for the page's tests: one that is large, and one whose names mean harm."""

import json

MARKUP = "<img src=x onerror=alert(1)>"


def hami_node(name, cards, number, **spec):
    told = "".join(f"GPU-{number}-{i},10,81920,100,NVIDIA-A100-SXM4-80GB,0,true:" for i in range(cards))
    amount = {"cpu": "96", "memory": "768Gi", "pods": "250", "nvidia.com/gpu": str(cards * 10)}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}", "annotations": {"hami.io/node-nvidia-register": told}},
            "spec": spec, "status": {"capacity": amount, "allocatable": amount}}


def hami_pod(namespace, name, node, card, mib, number=0):
    written = f"GPU-{number}-{card},NVIDIA,{mib},0:;"
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "uid": f"{namespace}-{name}",
                         "annotations": {"hami.io/vgpu-node": node, "hami.io/vgpu-time": "1767225600",
                                         "hami.io/vgpu-devices-allocated": written,
                                         "hami.io/vgpu-devices-to-allocate": ";", "hami.io/bind-phase": "success"}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"limits": {
                "nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib)}}}]},
            "status": {"phase": "Running"}}


def waiting_pod(namespace, name, mib):
    pod = hami_pod(namespace, name, "", 0, mib)
    pod["metadata"].pop("annotations")
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    pod["spec"].pop("nodeName")
    pod["status"]["phase"] = "Pending"
    return pod


def write(path, items):
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def large(nodes=5000, cards=8):
    """Every other card with two pods of one of twenty namespaces; 300 pods wait."""
    items = []
    for at in range(nodes):
        name = f"node-{at:04}"
        items.append(hami_node(name, cards, at, unschedulable=at % 97 == 0))
        for card in range(0, cards, 2):
            for half in range(2):
                items.append(hami_pod(f"team-{(at + card) % 20}", f"p-{at}-{card}-{half}", name, card, 30000, at))
    return items + [waiting_pod(f"team-{at % 20}", f"w-{at}", 90000) for at in range(300)]


def hostile():
    """Names as long as they may be, and such that no API server would take: markup, quotes, controls."""
    bad = [MARKUP, "\"><script>alert(2)</script>", "a" * 253, "x'\"`${alert(3)}", "‮evil‬", "javascript:alert(4)",
           "<style>*{display:none}</style>" + "b" * 220]
    items = []
    for at, name in enumerate(bad):
        items.append(hami_node(name, 2, at))
        items.append(hami_pod(bad[-1 - at], name, name, 0, 20000, at))
        items.append(waiting_pod(name, "w" + bad[-1 - at][1:], 99999))
    return items
