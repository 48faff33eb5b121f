#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods per second through kube-scheduler in one run: without an extender, with gpuledger, with gpuledger
over TLS, and with an extender that knows nothing (tests/bench/null_extender.c): no extender is faster.

All pods wait before kube-scheduler is started; the rate is that between the first and the last of
them that a watch sees with a node. All ways use the same configuration but for the extender, and
take turns, so that whatever else the machine does hits each. Only the extender of the way runs. No node
is played: unless --sizes says otherwise no two pods are of one size, so that none has to wait for the
device plugin to tell it from another; with fewer sizes a node has one pod of each.

etcd's data is on tmpfs without fsync, kube-scheduler's client is not limited (--qps), everything shares
one machine: the ratio is the result, not the rates. Where the processes keep all cores busy, it is the
ratio of the CPU time that a pod costs, which is printed by process; kube-scheduler's start is part of it.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from tap import Tap  # noqa: E402
from world import Process, World, free_ports, program, wait_for  # noqa: E402
from gpushare import RESOURCE  # noqa: E402
from kubelet import now_rfc3339  # noqa: E402

CARDS, CARD_UNITS, SMALLEST = 4, 100_000, 6000  # about 60 pods to a node: kubelet takes 110
WANTED = 0.95
THERE = "there"  # the namespace of pods that are bound before anything is measured


class Stopwatch(threading.Thread):
    """Notes when the watch shows the first and the last of `count` pods with a node."""

    def __init__(self, client, count):
        super().__init__(daemon=True)
        self._client = client
        self._count = count
        self._version = client.list("Pod")["metadata"]["resourceVersion"]
        self.times = []

    def run(self):
        bound = set()
        while len(bound) < self._count:
            # The server ends the watch of a reader that falls behind; it goes on from there.
            events = self._client.watch(
                "Pod", None, self._version, 300, fieldSelector="spec.nodeName!="
            )
            for kind, pod in events:
                self._version = pod["metadata"]["resourceVersion"]
                if kind == "ADDED" and pod["metadata"]["uid"] not in bound:
                    bound.add(pod["metadata"]["uid"])
                    self.times.append(time.monotonic())
                if len(bound) == self._count:
                    break

    def rate(self, timeout=300):
        self.join(timeout)
        if len(self.times) < self._count:
            sys.exit(f"only {len(self.times)} of {self._count} pods were bound")
        return (self._count - 1) / (self.times[-1] - self.times[0])


class Nobody:
    """No extender."""

    process = None

    def start(self):
        pass

    stop = start

    def config(self, config):
        del config["extenders"]
        return config

    def settle(self):
        pass


class Gpuledger(Nobody):
    def __init__(self, world):
        self.world, self.process = world, world.extender

    def start(self):
        self.world.extender_start("--log-level=warn")

    def stop(self):
        self.world.extender_stop()

    def config(self, config):
        return config

    def settle(self):
        """What is bound is in the ledger."""
        world = self.world
        wait_for(lambda: world.ledger() == world.cluster(), 60, 0.5, "the ledger is right")


class GpuledgerTls(Gpuledger):
    def __init__(self, world):
        super().__init__(world)
        made, self.folder = world.folder / "made", world.folder / "tls"
        subprocess.run([program(), "certs", f"--folder={made}"], check=True, capture_output=True)
        self.own = [f"--tls-cert={made / 'gpuledger.crt'}", f"--tls-key={made / 'gpuledger.key'}",
                    f"--tls-client-ca={made / 'ca.crt'}", "--tls-client-names=kube-scheduler"]
        self.folder.mkdir()
        for name, source in (("ca.crt", "ca.crt"), ("tls.crt", "kube-scheduler.crt"),
                             ("tls.key", "kube-scheduler.key")):
            shutil.copy(made / source, self.folder / name)

    def start(self):
        self.world.extender_start("--log-level=warn", *self.own)

    def config(self, config):
        return {**config, "extenders": self.world.scheduler_config(certificates=self.folder)["extenders"]}


class Null(Nobody):
    def __init__(self, world, binary):
        self.world, self.binary = world, binary
        self.process = Process("null", world.folder)
        (self.port,) = free_ports(1)

    def start(self):
        kubeconfig = json.loads(self.world.kubeconfig().read_text())
        token = kubeconfig["users"][0]["user"]["tokenFile"]
        self.process.start([self.binary, self.port, self.world.plane.url, self.world.plane.ca_file, token])

    def stop(self):
        self.process.stop()

    def config(self, config):
        return {**config, "extenders": self.world.scheduler_config(port=self.port)["extenders"]}


def cpu_seconds(world, way):
    """Used so far, by the name of the process."""
    processes = [*world.plane.processes(), *([way.process] if way.process else [])]
    return {process.name: process.cpu_seconds() for process in processes}


def measure(world, count, sizes, way, qps):
    """Pods per second, and milliseconds of CPU time per pod by process."""
    way.start()
    for number in range(count):
        world.pod(f"p{number}", SMALLEST + number % sizes)
    config = world.scheduler_config()
    config["clientConnection"] = {"qps": qps, "burst": 2 * qps}
    stopwatch = Stopwatch(world.client, count)
    stopwatch.start()
    before = cpu_seconds(world, way)
    world.scheduler_start(way.config(config))
    rate = stopwatch.rate()
    after = cpu_seconds(world, way)
    world.plane.scheduler_stop()
    way.settle()
    world.client.delete_all("Pod")
    wait_for(lambda: not world.client.items("Pod", "default"), 60, 0.2, "pods gone")
    way.stop()
    cost = {name: (after[name] - before.get(name, 0)) * 1000 / count for name in after}
    return rate, cost


def fill(world, load, nodes, pods):
    """Nodes, and pods that run on them already, of a size that is not measured."""
    for number in range(nodes):
        world.node(f"n{number}", [CARD_UNITS] * CARDS)
    if not pods:
        return
    world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": THERE}})
    made, running = [], []
    for number in range(pods):
        annotations = {
            "ALIYUN_COM_GPU_MEM_IDX": str(number // nodes % CARDS),
            "ALIYUN_COM_GPU_MEM_DEV": str(CARD_UNITS),
            "ALIYUN_COM_GPU_MEM_POD": "10",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(time.time_ns()),
        }
        container = {"name": "c", "image": "example.com/none:1", "resources": {"limits": {RESOURCE: "10"}}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"held-{number}", "namespace": THERE, "annotations": annotations},
            "spec": {"containers": [container], "nodeName": f"n{number % nodes}"},
        }
        url = f"{world.plane.url}/api/v1/namespaces/{THERE}/pods"
        made.append(f"POST\t{url}\t{json.dumps(pod)}\n")
        pod["status"] = {"phase": "Running", "startTime": now_rfc3339()}
        running.append(f"PUT\t{url}/held-{number}/status\t{json.dumps(pod)}\n")
    for lines in (made, running):
        subprocess.run([load, "-c", "16", "-H", f"Authorization: Bearer {world.plane.token()}",
                        "--cacert", world.plane.ca_file], input="".join(lines), text=True, check=True,
                       stdout=subprocess.DEVNULL)


def describe(cost):
    return ", ".join(f"{name} {ms:.2f}" for name, ms in cost.items())


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--there", type=int, default=0, help="pods that are bound before")
    parser.add_argument("--sizes", type=int, help="of pods; as many as pods unless told")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--null", required=True, help="the null extender's binary")
    parser.add_argument("--load", help="the sender's binary, which makes --there")
    parser.add_argument("--ways", default="without,null,with,TLS")
    parser.add_argument(
        "--qps",
        type=int,
        default=5000,
        help="calls that kube-scheduler makes a second at most; 50 unless it is configured",
    )
    return parser.parse_args()


def main():
    arguments = parse()
    rates, costs = {}, {}
    with World(Tap(sys.stderr), played=False) as world:
        fill(world, arguments.load, arguments.nodes, arguments.there)
        ways = {"without": Nobody(), "null": Null(world, arguments.null), "with": Gpuledger(world),
                "TLS": GpuledgerTls(world)}
        names, sizes = arguments.ways.split(","), arguments.sizes or arguments.pods
        measure(world, arguments.pods, sizes, ways[names[-1]], arguments.qps)  # warms up; not counted
        for number in range(arguments.rounds):
            for name in names if number % 2 else reversed(names):
                rate, cost = measure(world, arguments.pods, sizes, ways[name], arguments.qps)
                rates.setdefault(name, []).append(rate)
                costs.setdefault(name, []).append(cost)
                print(f"{name}: {rate:.0f} pods/s; ms per pod: {describe(cost)}; "
                      f"load {os.getloadavg()[0]:.0f}", flush=True)
    for name, all_costs in costs.items():
        cost = {key: statistics.median(each[key] for each in all_costs) for key in all_costs[0]}
        print(f"median {name}: {statistics.median(rates[name]):.0f} pods/s; ms per pod: {describe(cost)}")
    print(f"{arguments.pods} pods, {arguments.nodes} nodes, {arguments.there} pods there, "
          f"median of {arguments.rounds}")
    if "with" not in rates:
        return 0
    ratios = {}
    for name in rates:
        # Of each round, in which all met the same load.
        ratios[name] = statistics.median(own / other for own, other in zip(rates["with"], rates[name]))
        print(f"with / {name}: {ratios[name]:.2f}")
    return 0 if ratios.get("null", 1) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
