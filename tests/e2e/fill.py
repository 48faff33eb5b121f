#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster that fills with pods of one whole GPU each, as KAI-Scheduler's scale tests fill theirs:

  waiting     all pods are there before kube-scheduler is started
  submitting  kube-scheduler runs while pods are made
  background  400 more pods wait all the time, which no node can take

Without an extender, with one that knows nothing (tests/bench/null_extender.c), and with gpuledger. Times
go from the first pod that kube-scheduler can see until the watch shows the last with a node. With
--report FILE gpuledger's times are written in the form in which KAI publishes its own
(docs/scale-tests/example-results.json of its repository), and so are those of the other ways, each in a file
beside it.

No node is played, and there is no controller: a job is a pod. etcd's data is on tmpfs without fsync,
kube-scheduler's client is not limited, and all share one machine, so the ratios are the result.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

from tap import Tap
from throughput import Gpuledger, Nobody, Null, Stopwatch
from world import ROOT, World, program, wait_for
from kubeapi import node_object, pod_object

GPU, BACKGROUND = "nvidia.com/gpu", 400
CASES = {
    "waiting": "Fill Cluster with single GPU Jobs",
    "submitting": "Fill Cluster with single GPU Jobs - scheduler is running while submitting jobs",
    "background": f"Fill Cluster with single GPU Jobs with {BACKGROUND} pending tasks in background",
}


class Fill:
    def __init__(self, world, arguments):
        self.world, self.arguments = world, arguments
        self.jobs = arguments.nodes * arguments.gpus

    def add_nodes(self):
        for number in range(self.arguments.nodes):
            self.world.client.create(node_object(f"n{number}", {GPU: self.arguments.gpus}))

    def submit(self, names, gpus):
        plane = self.world.plane
        url = f"{plane.url}/api/v1/namespaces/default/pods"
        lines = [f"POST\t{url}\t{json.dumps(pod_object(name, limits={GPU: gpus}))}\n" for name in names]
        subprocess.run([self.arguments.load, "-c", "8", "-H", f"Authorization: Bearer {plane.token()}",
                        "--cacert", plane.ca_file], input="".join(lines), text=True, check=True,
                       stdout=subprocess.DEVNULL)

    def start_scheduler(self, way):
        config = self.world.scheduler_config()
        config["clientConnection"] = {"qps": 5000, "burst": 10000}
        config["extenders"][0]["managedResources"].append({"name": GPU, "ignoredByScheduler": False})
        managed = config["extenders"][0]["managedResources"]
        config = way.config(config)
        if config.get("extenders"):
            config["extenders"][0]["managedResources"] = managed
        self.world.scheduler_start(config)

    def verify(self):
        """Each node has as many pods as GPUs."""
        nodes = collections.Counter(pod["spec"].get("nodeName") for pod in self.world.client.items("Pod", "default"))
        del nodes[None]
        if set(nodes.values()) != {self.arguments.gpus} or len(nodes) != self.arguments.nodes:
            sys.exit(f"pods on nodes: {nodes.most_common(3)}, {len(nodes)} nodes have some")

    def run(self, way, case):
        """Seconds."""
        names = [f"job-{number}" for number in range(self.jobs)]
        way.start()
        if case == "background":
            self.submit([f"waits-{number}" for number in range(BACKGROUND)], self.arguments.gpus + 1)
        if case != "submitting":
            self.submit(names, 1)
        stopwatch = Stopwatch(self.world.client, self.jobs)
        stopwatch.start()
        began = time.monotonic()
        self.start_scheduler(way)
        if case == "submitting":
            began = time.monotonic()
            submitting = threading.Thread(target=self.submit, args=(names, 1))
            submitting.start()
        stopwatch.rate(timeout=900)
        took = stopwatch.times[-1] - began
        if case == "submitting":
            submitting.join()
        self.world.plane.scheduler_stop()
        self.verify()
        self.world.client.delete_all("Pod")
        wait_for(lambda: not self.world.client.items("Pod", "default"), 180, 0.5, "pods gone")
        way.stop()
        return took


def commit():
    said = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True)
    return said.stdout.strip()


def go_duration(seconds):
    """As Go prints it."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:.3f}s" if minutes else f"{rest:.3f}s"


def report(way, arguments, times):
    """KAI's form. In the metadata gpuledger is named where KAI names itself."""
    tests = [{"test_name": CASES[case], "status": "success",
              "details": {"jobs": arguments.nodes * arguments.gpus, "nodes": arguments.nodes,
                          "time": go_duration(seconds)}}
             for case, seconds in times.items()]
    return {
        "metadata": {
            "gpuledger_version": subprocess.run([program(), "--version"], capture_output=True,
                                                text=True).stdout.splitlines()[0],
            "gpuledger_commit_hash": commit(),
            "extender": way,
            "played_node_count": arguments.nodes,
            "cluster_node_count": 1,
            "cores": os.cpu_count(),
            "timestamp": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        "results": {"status": "success", "tests": tests},
    }


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--gpus", type=int, default=8, help="of a node")
    parser.add_argument("--ways", default="without,null,with")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--null", required=True, help="the null extender's binary")
    parser.add_argument("--load", required=True, help="the sender's binary, which makes pods")
    parser.add_argument("--report", type=pathlib.Path, help="file for gpuledger's times in KAI's form")
    return parser.parse_args()


def main():
    arguments = parse()
    times = {}
    with World(Tap(sys.stderr), played=False) as world:
        fill = Fill(world, arguments)
        fill.add_nodes()
        ways = {"without": Nobody(), "null": Null(world, arguments.null), "with": Gpuledger(world)}
        for case in arguments.cases.split(","):
            for name in arguments.ways.split(","):
                took = times.setdefault(name, {})[case] = fill.run(ways[name], case)
                print(f"{CASES[case]}: {name}: {fill.jobs} jobs, {arguments.nodes} nodes, "
                      f"{go_duration(took)}, {fill.jobs / took:.0f} a second; load {os.getloadavg()[0]:.0f}",
                      flush=True)
    for name, its in times.items():
        for case, took in its.items():
            if name != "with" and "with" in times:
                print(f"pace with gpuledger / {name}, {case}: {took / times['with'][case]:.2f}")
        if arguments.report:
            path = arguments.report
            path = path if name == "with" else path.with_name(f"{path.stem}-{name}{path.suffix}")
            path.write_text(json.dumps(report(name, arguments, its), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
