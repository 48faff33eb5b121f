# SPDX-License-Identifier: Apache-2.0
"""Quotas by GPU model, as gpu-quota-admission reads them, while many pods come at once."""

import json

from kubeapi import wait_for
from scenarios.tencent import TencentWorld
from tencent import BLOCK, CARD_CORE
from world import SYSTEM

EXCEEDS = "ExceedsGPUQuota"
CARDS = [60 * BLOCK] * 4
WHOLE = (CARD_CORE, 0)


def config_map(quota):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "gpuquota", "namespace": SYSTEM},
        "data": {"gpu_quota": json.dumps(quota)},
    }


def label(world, node, model, pool):
    labels = {"gpu-model": model, "gpu-pool": pool}
    world.client.patch("Node", node, {"metadata": {"labels": labels}})


def running(world, names):
    return [name for name in names if world.fleet.phase(name) == "Running"]


def refused(world, names):
    """All of them, for the quota."""
    tap = world.tap
    for name in names:
        said = world.refusal(name, EXCEEDS, 60)
        tap.ok(EXCEEDS in said, f"{name} exceeds the quota", said)


def scenario_quotas(tap):
    """Twelve pods at once, a quota for two GPUs of one model in one pool: never more than two run;
    parts count as parts, and a larger quota lets the others in."""
    with TencentWorld(tap) as world:
        for node, model, pool in (
            ("n1", "M40", "public"), ("n2", "M40", "public"), ("n3", "M40", "private"), ("n4", "P4", "public"),
        ):
            world.node(node, CARDS)
            label(world, node, model, pool)
        quota = {"default": {"quota": {"M40": 2}, "pool": ["public"]}}
        world.client.create(config_map(quota))
        world.start("--quota-model-label=gpu-model", "--quota-pool-label=gpu-pool")
        names = [f"p{number}" for number in range(12)]
        for name in names:
            world.pod(name, WHOLE)
        wait_for(lambda: len(running(world, names)) == 2, 60, what="two pods run")
        first = running(world, names)
        refused(world, [name for name in names if name not in first])
        tap.equal(running(world, names), first, "and no more than two")
        nodes = {world.client.get("Pod", name)["spec"]["nodeName"] for name in first}
        tap.ok(nodes <= {"n1", "n2"}, "on nodes of that model and pool", nodes)

        for name in names:
            if name not in first:
                world.client.delete("Pod", name)
        world.fleet.finish(first[0])
        parts = [f"part{number}" for number in range(3)]
        for name in parts:
            world.pod(name, (40, 4))
        wait_for(lambda: len(running(world, parts)) == 2, 60, what="1 + 0.4 + 0.4 of 2 GPUs run")
        refused(world, [name for name in parts if name not in running(world, parts)])

        quota["default"]["quota"]["M40"] = 3
        world.client.patch("ConfigMap", "gpuquota", {"data": config_map(quota)["data"]}, SYSTEM)
        world.await_running(parts, 120)  # woken: kube-scheduler knows nothing of the ConfigMap
        tap.ok(True, "a larger quota lets the third in")
        world.verify()
