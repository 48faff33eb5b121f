# SPDX-License-Identifier: Apache-2.0
"""A GPU trace through the real kube-scheduler, against the simulation of the same.

GPULEDGER_TRACE_NODES and GPULEDGER_TRACE_PODS name another trace than examples/trace,
GPULEDGER_TRACE_COUNT how many of its pods come (1000), GPULEDGER_TRACE_POLICY the policy.
"""

import csv
import json
import os
import pathlib
import re
import subprocess
import threading
import time

from feed import PodFeed
from kubeapi import node_object, pod_object, wait_for
from named import manage
from world import PATIENCE_S, ROOT, World, program

CORE = "elasticgpu.io/gpu-core"
CARDS = "elasticgpu.io/container-main"
FOLDER = ROOT / "examples" / "trace"
WEIGHT = 100


def rows(variable, name):
    path = pathlib.Path(os.environ.get(variable) or FOLDER / name)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def trace_node(row):
    capacity = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "1000"}
    if int(row["gpu"]):
        capacity[CORE] = 100 * int(row["gpu"])
    labels = {"nvidia.com/gpu.product": row["model"]} if row.get("model") else None
    return node_object(row["sn"], capacity, labels=labels)


def trace_pod(row):
    core = int(row["num_gpu"]) * int(row["gpu_milli"]) // 10
    amounts = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    if core:
        amounts[CORE] = str(core)
    models = (row.get("gpu_spec") or "").replace("|", ",")
    return pod_object(row["name"], limits=amounts, requests=amounts,
                      annotations={"gpuledger.io/gpu-models": models} if models else None)


def decided(pod):
    """Its node; "" once kube-scheduler has said that there is none; None before."""
    if pod["spec"].get("nodeName"):
        return pod["spec"]["nodeName"]
    conditions = pod["status"].get("conditions") or []
    refused = any(each["type"] == "PodScheduled" and each["status"] == "False" and
                  each.get("reason") == "Unschedulable" for each in conditions)
    return "" if refused else None


class Order:
    """Pods come one after the other for the extender, too: each is held by a gate until the
    extender's watch has shown it, and with it whatever happened before."""

    GATE = {"schedulingGates": [{"name": "e2e/hold"}]}

    def __init__(self, world):
        self._world = world
        self._places = {}
        self._pods = {}
        self._events = 0
        self._news = threading.Condition()
        self._feed = PodFeed(world.client, [self._note])

    def __enter__(self):
        self._feed.start()
        self._feed.synced.wait(30)
        self._before = self._seen()
        return self

    def __exit__(self, *_):
        self._feed.stop()

    def _note(self, _, pod):
        with self._news:
            self._events += 1
            self._places.setdefault(pod["metadata"]["uid"], self._events)
            self._pods[pod["metadata"]["name"]] = pod
            self._news.notify_all()

    def _seen(self):
        text = self._world.ops("/metrics", raw=True).decode()
        return int(float(re.search(r'gpuledger_events_total\{feed="pods"\} (\S+)', text)[1]))

    def come(self, pod):
        created = self._world.client.create({**pod, "spec": {**pod["spec"], **self.GATE}})
        uid = created["metadata"]["uid"]
        with self._news:
            self._news.wait_for(lambda: uid in self._places, PATIENCE_S)
            place = self._places[uid]
        wait_for(lambda: self._seen() - self._before >= place, 120, 0.002, "the pod is seen")
        self._world.client.patch("Pod", pod["metadata"]["name"],
                                 {"spec": {"schedulingGates": None}})

    def outcome(self, name):
        """What decided() says of the pod, once kube-scheduler has decided, and the pod."""
        with self._news:
            if not self._news.wait_for(lambda: decided(self._pods[name]) is not None, PATIENCE_S):
                raise TimeoutError(f"kube-scheduler has not decided about {name}")
            return decided(self._pods[name]), self._pods[name]


def place(world, objects):
    """One by one, so that there is an order; those that find no node go. {name: (node, cards)}"""
    with Order(world) as order:
        return place_in_order(world, objects, order)


def place_in_order(world, objects, order):
    found = {}
    for pod in objects:
        name = pod["metadata"]["name"]
        order.come(pod)
        node, answer = order.outcome(name)
        if node:
            found[name] = node, (answer["metadata"].get("annotations") or {}).get(CARDS)
        else:
            world.client.delete("Pod", name, grace_s=0)
    return found


def simulate(world, objects, policy):
    """The same by `gpuledger simulate`."""
    nodes, pods, out = (world.folder / f"sim-{name}.json" for name in ("nodes", "pods", "out"))
    nodes.write_text(json.dumps(
        {"apiVersion": "v1", "kind": "List",
         "items": [{**node, "kind": "Node"} for node in world.client.items("Node")]}))
    pods.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    answer = subprocess.run(
        [program(), "simulate", f"--snapshot={nodes}", f"--pods={pods}", f"--policy={policy}",
         "--arrivals=once", "--in-order", f"--extender-weight={WEIGHT}", "-o", "json",
         f"--cluster-out={out}"],
        stdout=subprocess.PIPE, check=True, timeout=300)
    found = {}
    for item in json.loads(out.read_text())["items"]:
        if item["kind"] == "Pod":
            annotations = item["metadata"].get("annotations") or {}
            found[item["metadata"]["name"]] = item["spec"]["nodeName"], annotations.get(CARDS)
    return found, json.loads(answer.stdout)["policies"][0]["runs"][0]


def configuration(world):
    """Both entries: one for pods with GPU, one that ranks the nodes for the others."""
    config = manage(world.scheduler_config(), "gpushare-scheduler", [CORE],
                    filterVerb="filter", prioritizeVerb="prioritize", bindVerb="bind",
                    weight=WEIGHT)
    first = next(each for each in config["extenders"] if each.get("bindVerb"))
    second = {key: value for key, value in first.items()
              if key not in ("filterVerb", "bindVerb", "managedResources")}
    second.update(prioritizeVerb="prioritize-cpu", ignorable=True)
    config["extenders"] = [first, second]
    config["percentageOfNodesToScore"] = 100
    return config


def allocated(objects, found):
    core = {pod["metadata"]["name"]: int(
        pod["spec"]["containers"][0]["resources"]["limits"].get(CORE, 0)) for pod in objects}
    return sum(core[name] for name in found) / 100


# A thread works out what is expected, from time to time; the simulation does so whenever it is asked.
EXPECTING = ("oc", "fgd")


def scenario_trace(tap):
    """A GPU trace, pod by pod, goes where the simulation says."""
    policy = os.environ.get("GPULEDGER_TRACE_POLICY", "binpack")
    count = int(os.environ.get("GPULEDGER_TRACE_COUNT", "1000"))
    with World(tap, played=False) as world:
        nodes = rows("GPULEDGER_TRACE_NODES", "nodes.csv")
        objects = [trace_pod(row) for row in rows("GPULEDGER_TRACE_PODS", "pods.csv")[:count]]
        for row in nodes:
            world.client.create(trace_node(row))
        world.extender_start(f"--policy={policy}", "--wake=false", "--log-level=warn")
        world.scheduler_start(configuration(world))
        wait_for(lambda: len(world.ops("/api/v1/nodes")["nodes"]) == len(nodes), 120, 0.2, "nodes")
        start = time.monotonic()
        real = place(world, objects)
        took = time.monotonic() - start
        said, result = simulate(world, objects, policy)
        total = sum(int(row["gpu"]) for row in nodes)
        tap.note(f"{policy}: {len(objects)} pods in {took:.0f} s; kube-scheduler bound {len(real)}, "
                 f"{100 * allocated(objects, real) / total:.2f} % of {total} GPUs; simulation "
                 f"{len(said)}, {100 * result['end']['allocated']:.2f} %")
        tap.ok(abs(allocated(objects, said) / total - result["end"]["allocated"]) < 1e-6,
               "the simulation counts what it has placed", result["end"])
        if policy in EXPECTING:
            apart = abs(allocated(objects, real) - allocated(objects, said)) / total
            tap.ok(apart < 0.01, "nearly as much GPU is allocated", apart)
        else:
            tap.equal(allocated(objects, real), allocated(objects, said), "as much GPU is allocated")
            other = [(name, real.get(name), said.get(name)) for name in
                     (pod["metadata"]["name"] for pod in objects) if real.get(name) != said.get(name)]
            tap.equal(other[:5], [], f"every pod is on the same cards ({len(real)})")
        tap.equal(world.metric("gpuledger_ledger_drift"), 0, "no drift of its sums")
