#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks against a real kube-apiserver: every figure is a ratio of two things done in one run.

  bind      bind calls to gpuledger, 16 and 64 in flight, against raw Binding POSTs by the same sender
  start-up  from starting gpuledger until it is ready, against one paged LIST of the same nodes and
            pods by libcurl, which throws them away
  memory    gpuledger's resident memory with that many nodes and pods

Needs the control plane (tests/controlplane/build current). etcd's data is on tmpfs without fsync.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "controlplane"))

from controlplane import ControlPlane  # noqa: E402
import kubeapi  # noqa: E402
from gpuledger_process import Gpuledger  # noqa: E402

CARDS, CARD_UNITS = 8, 100


class Bench:
    def __init__(self, arguments, control, folder):
        self.arguments, self.control, self.folder = arguments, control, folder
        self.api = control.client()
        self.auth = ["-H", "Authorization: Bearer " + control.token(), "--cacert", str(control.ca_file)]

    def send(self, lines, auth=True, connections=16):
        result = subprocess.run(
            [self.arguments.load, "-c", str(connections), "--show-failures"]
            + (self.auth if auth else []),
            input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
        answer = json.loads(result.stdout)
        if answer["failed"]:
            raise RuntimeError(f"{answer['failed']} of {answer['requests']} requests failed: "
                               + result.stderr[:600])
        return answer

    def post(self, path, obj):
        return f"POST\t{self.control.url}{path}\t{json.dumps(obj)}"

    def make_nodes(self, count):
        # Status is a subresource: created first, then written.
        nodes = [kubeapi.node_object(f"gpu-{i:05d}", capacity={
            "cpu": "96", "memory": "792Gi", "pods": "1000",
            "aliyun.com/gpu-mem": str(CARDS * CARD_UNITS), "aliyun.com/gpu-count": str(CARDS),
        }) for i in range(count)]
        self.send([self.post("/api/v1/nodes", node) for node in nodes])

    def pod(self, name, units, node=None, card=None):
        pod = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "inference"}},
            "spec": {
                "containers": [{
                    "name": "main", "image": "registry.example/inference:1",
                    "env": [{"name": "MODEL", "value": "resnet"}],
                    "resources": {"limits": {"aliyun.com/gpu-mem": str(units)}},
                }],
                "schedulerName": "nobody",
            },
        }
        if node:
            pod["spec"]["nodeName"] = node
            pod["metadata"]["annotations"] = {
                "ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_DEV": str(CARD_UNITS),
                "ALIYUN_COM_GPU_MEM_POD": str(units), "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(time.time_ns()),
            }
        return pod

    def make_bound_pods(self, first, last, nodes):
        self.send([self.post("/api/v1/namespaces/default/pods", self.pod(
            f"held-{i:06d}", 1, f"gpu-{i % nodes:05d}", i // nodes % CARDS))
            for i in range(first, last)])

    # --- bind -------------------------------------------------------------------------------

    def bind_round(self, gpuledger, serial, count, nodes, in_flight):
        """Binds `count` new pods raw, and `count` through gpuledger."""
        names = {kind: [f"{kind}-{serial}-{i:05d}" for i in range(count)]
                 for kind in ("raw", "ext")}
        # No plugin acts: a pod would wait for one of its size, even for one that is deleted.
        for turn, kind in enumerate(names):
            self.send([self.post("/api/v1/namespaces/default/pods",
                                 self.pod(name, 1 + i % 7 + 7 * (2 * serial + turn)))
                       for i, name in enumerate(names[kind])])
        uids = {pod["metadata"]["name"]: pod["metadata"]["uid"]
                for pod in self.api.items("Pod", "default",
                                          fieldSelector="spec.nodeName=")}
        target = [f"gpu-{i % nodes:05d}" for i in range(count)]
        raw = [self.post(f"/api/v1/namespaces/default/pods/{name}/binding", {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "namespace": "default", "uid": uids[name], "annotations": {
                "ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_DEV": str(CARD_UNITS),
                "ALIYUN_COM_GPU_MEM_POD": "1", "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(time.time_ns())}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": target[i]},
        }) for i, name in enumerate(names["raw"])]
        ext = [f"POST\thttp://127.0.0.1:{gpuledger.port}/gpushare-scheduler/bind\t" + json.dumps({
            "PodName": name, "PodNamespace": "default", "PodUID": uids[name], "Node": target[i]})
            for i, name in enumerate(names["ext"])]
        order = [("raw", raw, True), ("ext", ext, False)]
        rates = {}
        for kind, lines, auth in order if serial % 2 else reversed(order):
            rates[kind] = self.send(lines, auth, in_flight)
        self.api.delete_all("Pod", "default", labelSelector="app=inference",
                            fieldSelector="spec.schedulerName=nobody")
        return rates

    def bind(self):
        nodes, count = 200, self.arguments.binds
        self.make_nodes(nodes)
        gpuledger = self.gpuledger()
        gpuledger.wait_ready()
        print(f"bind: {count} pods on {nodes} nodes")
        print("  in flight  round   raw/s  through gpuledger/s  ratio   raw p50  gpuledger p50 (us)  load")
        serial = 0
        for in_flight in (16, 64):
            ratios = []
            for number in range(self.arguments.rounds):
                time.sleep(1)
                rates = self.bind_round(gpuledger, serial, count, nodes, in_flight)
                serial += 1
                ratios.append(rates["ext"]["rate"] / rates["raw"]["rate"])
                print(f"  {in_flight:9d} {number:6d} {rates['raw']['rate']:7.0f} "
                      f"{rates['ext']['rate']:20.0f} {ratios[-1]:6.2f} {rates['raw']['p50_us']:9d} "
                      f"{rates['ext']['p50_us']:19d} {os.getloadavg()[0]:5.0f}", flush=True)
            print(f"  {in_flight} in flight: median ratio {statistics.median(ratios):.2f}", flush=True)
        gpuledger.stop()
        for node in self.api.items("Node"):
            self.api.delete("Node", node["metadata"]["name"])

    # --- start-up and memory ----------------------------------------------------------------

    def gpuledger(self):
        return Gpuledger(self.arguments.gpuledger, str(self.control.kubeconfig()),
                         os.path.join(self.folder, "gpuledger.log"))

    def list_once(self):
        selector = "&fieldSelector=status.phase!%3DSucceeded"
        urls = [f"{self.control.url}/api/v1/{kind}?limit=1000{query}"
                for kind, query in (("nodes", ""), ("pods", selector))]
        return float(subprocess.run([self.arguments.list, *self.auth, *urls],
                                    stdout=subprocess.PIPE, text=True, check=True).stdout)

    def start_once(self):
        gpuledger = self.gpuledger()
        try:
            return gpuledger.wait_ready()
        finally:
            gpuledger.stop()

    def start_up(self, nodes, pods):
        """Turn by turn, in changing order, so that whatever else the machine does hits both."""
        ratios = []
        print(f"start-up: {nodes} nodes, {pods} pods")
        print("  round   LIST s  ready s  ratio")
        for serial in range(self.arguments.starts):
            took = self.list_once() if serial % 2 else None
            ready = self.start_once()
            took = took or self.list_once()
            ratios.append(ready / took)
            print(f"  {serial:5d} {took:8.2f} {ready:8.2f} {ready / took:6.2f}")
        print(f"  median ratio {statistics.median(ratios):.2f}")

    def memory(self, nodes, pods):
        gpuledger = self.gpuledger()
        gpuledger.wait_ready()
        time.sleep(2)
        print(f"memory: {nodes} nodes, {pods} pods: {gpuledger.rss_mib():.1f} MiB resident")
        gpuledger.stop()

    def grow(self):
        nodes = self.arguments.nodes
        self.make_nodes(nodes)
        made = 0
        for pods in self.arguments.pods:
            self.make_bound_pods(made, pods, nodes)
            made = pods
            self.start_up(nodes, pods)
            self.memory(nodes, pods)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpuledger", required=True, help="the binary")
    parser.add_argument("--load", required=True, help="the sender's binary")
    parser.add_argument("--list", required=True, help="the lister's binary")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=9)
    parser.add_argument("--binds", type=int, default=1000, help="pods per bind round")
    parser.add_argument("--nodes", type=int, default=1000, help="for start-up and memory")
    parser.add_argument("--pods", type=int, nargs="+", default=[10000, 30000], help="the same, one after the other")
    parser.add_argument("--only", choices=["bind", "grow"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuledger-bench-") as folder:
        with ControlPlane(os.path.join(folder, "cp")) as control:
            bench = Bench(arguments, control, folder)
            for part in [arguments.only] if arguments.only else ["bind", "grow"]:
                getattr(bench, part)()


if __name__ == "__main__":
    main()
