# SPDX-License-Identifier: Apache-2.0
"""Pods of elastic-gpu and nano-gpu on nodes with the agent, behind their own configuration."""

import collections
import json

from elastic import SPELLINGS, ElasticKubelet
from kubeapi import Client, node_object, pod_object
from kubelet import limit
from named import manage, verify
from world import World

CARD_MIB = 16160


def cards_of(pod, container):
    annotations = pod["metadata"].get("annotations") or {}
    for spelling in SPELLINGS.values():
        if limit(container, spelling.core) or limit(container, spelling.memory):
            text = annotations.get(spelling.container + container["name"], "")
            return [int(item) for item in text.split(",")] if text else []
    return []


def add_node(world, name, spelling, cards):
    words = SPELLINGS[spelling]
    world.fleet.add(ElasticKubelet, name, [CARD_MIB] * cards, spelling)
    capacity = {words.core: 100 * cards}
    if words.memory:
        capacity[words.memory] = CARD_MIB * cards
    world.client.create(node_object(name, capacity))


def add_pod(world, name, spelling, *wishes):
    """`wishes`: (core, MiB) of each container."""
    words = SPELLINGS[spelling]
    pod = pod_object(name)
    pod["spec"]["containers"] = [
        {
            "name": f"c{number}",
            "image": "example.com/none:1",
            "resources": {
                "limits": {
                    key: str(value)
                    for key, value in ((words.core, core), (words.memory, memory))
                    if key and value
                }
            },
        }
        for number, (core, memory) in enumerate(wishes)
    ]
    world.client.create(pod)


def cores(world):
    """{(node, card): hundredths} that running containers hold."""
    used = collections.Counter()
    pods = {pod["metadata"]["uid"]: pod for pod in world.client.items("Pod")}
    for uid, starts in world.fleet.hardware.running().items():
        for start in starts:
            containers = pods[uid]["spec"]["containers"]
            container = next(c for c in containers if c["name"] == start.container)
            core = sum(limit(container, words.core) for words in SPELLINGS.values())
            used[start.node, start.card] += min(core, 100)
    return used


def status(world):
    """The other scheduler's status page."""
    client = Client(f"http://127.0.0.1:{world.port}", timeout=10)
    try:
        return client.request("GET", "/scheduler/status")
    finally:
        client.close()


def scenario_elastic(tap):
    """A card for each container, whole cards, equal pods at once, all four spellings."""
    with World(tap, fleet={"shuffled": True, "window_s": 0.3}) as world:
        resources = [
            name for words in SPELLINGS.values() for name in (words.core, words.memory) if name
        ]
        world.extender_start()
        verbs = {"prioritizeVerb": "priorities", "weight": 1}
        world.scheduler_start(manage(world.scheduler_config(), "scheduler", resources, **verbs))
        add_node(world, "io", "elasticgpu.io", 4)
        add_node(world, "com", "elasticgpu.com", 1)
        add_node(world, "nano", "nano-gpu.io", 1)
        add_node(world, "percent", "nano-gpu", 1)

        add_pod(world, "half", "elasticgpu.io", (150, 0))
        said = world.refusal("half", "multiple of it")
        tap.ok("multiple of it" in said, "a card and a half is refused", said)
        world.client.delete("Pod", "half")

        add_pod(world, "pair", "elasticgpu.io", (30, 8000), (0, 0), (50, 8000))
        add_pod(world, "two", "elasticgpu.io", (200, 0))
        add_pod(world, "com", "elasticgpu.com", (100, 100))
        add_pod(world, "nano", "nano-gpu.io", (25, 100))
        add_pod(world, "percent", "nano-gpu", (60, 0))
        first = ["pair", "two", "com", "nano", "percent"]
        world.await_running(first, nudge=True)
        annotations = world.client.get("Pod", "pair")["metadata"]["annotations"]
        tap.equal(
            sorted(key for key in annotations if key.startswith("elasticgpu.io/")),
            ["elasticgpu.io/assumed", "elasticgpu.io/container-c0", "elasticgpu.io/container-c2"],
            "an annotation for each container with GPU, and none for the other",
        )
        two = world.client.get("Pod", "two")
        tap.equal(len(set(cards_of(two, two["spec"]["containers"][0]))), 2, "two whole cards")

        burst = [f"burst{number}" for number in range(5)]
        for name in burst:
            add_pod(world, name, "elasticgpu.io", (20, 100))
        world.await_running(burst, nudge=True)
        verify(world, cards_of)
        used = cores(world)
        tap.ok(max(used.values()) <= 100, "no card's compute is given twice", used)
        page = json.loads(status(world)["elasticgpu.io/gpu-core"])
        left = [card["CoreTotal"] - card["CoreAvailable"] for card in page["io"]]
        tap.equal(left, [used["io", card] for card in range(4)], "the status page says the same")
