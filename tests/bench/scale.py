#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A large cluster, served over TLS by a stand-in for the API server (large_api.py):

  start     from starting gpuledger until it is ready, its CPU, and one paged LIST of the same nodes
            and pods by libcurl, which throws them away. The stand-in has its pages ready, so this
            ratio is what reading costs; against a real API server it is benchmark `cluster`'s
  memory    what nodes alone take, and what each pod adds
  events    how long filter takes while pods come and go, against the same before and after
  relist    how long filter takes while the pods are listed anew, since the watch has expired

The sender, the stand-in and gpuledger share the machine, so events cost filter some of its CPU in
any case.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from large_api import Churn, Cluster, LargeApi, node_name  # noqa: E402
from pki import Authority  # noqa: E402
from gpuledger_process import Gpuledger  # noqa: E402

CARD_UNITS = 24
CALLS, NAMES = 200, 1000  # of a sample, and in each call


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.authority = Authority(folder)
        self.certificate = self.authority.sign("api")

    def serve(self, nodes, pods):
        return LargeApi(Cluster(nodes, self.arguments.cards, CARD_UNITS, pods), *self.certificate)

    def start(self, api):
        config = self.folder / "kubeconfig"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "large",
            "clusters": [{"name": "large", "cluster": {
                "server": api.url, "certificate-authority": str(self.authority.certificate)}}],
            "users": [{"name": "bench", "user": {"token": "token"}}],
            "contexts": [{"name": "large", "context": {"cluster": "large", "user": "bench"}}]}))
        return Gpuledger(self.arguments.gpuledger, str(config), str(self.folder / "log"),
                         "--audit-interval=0s", "--events=false")

    def list_once(self, api):
        urls = [f"{api.url}/api/v1/{kind}?limit=1000" for kind in ("nodes", "pods")]
        done = subprocess.run([self.arguments.list, "--cacert", self.authority.certificate, *urls],
                              stdout=subprocess.PIPE, text=True, check=True)
        return float(done.stdout)

    def compare_start(self, api):
        ratios, cpus = [], []
        print("  round   LIST s  ready s  CPU s  ratio")
        for number in range(self.arguments.starts):
            listed = self.list_once(api) if number % 2 else None
            gpuledger = self.start(api)
            ready = gpuledger.wait_ready()
            cpus.append(gpuledger.cpu_seconds())
            gpuledger.stop()
            listed = listed or self.list_once(api)
            ratios.append(ready / listed)
            print(f"  {number:5d} {listed:8.2f} {ready:8.2f} {cpus[-1]:6.2f} {ratios[-1]:6.2f}", flush=True)
        objects = self.arguments.nodes + self.arguments.pods
        print(f"  start: median ratio {statistics.median(ratios):.2f}; "
              f"{statistics.median(cpus) / objects * 1e6:.0f} us of CPU an object", flush=True)

    def memory_of(self, nodes):
        """MiB without pods."""
        api = self.serve(nodes, 0)
        resident = self.resident(api)
        api.close()
        return resident

    def resident(self, api):
        gpuledger = self.start(api)
        gpuledger.wait_ready()
        time.sleep(2)
        resident = gpuledger.rss_mib()
        gpuledger.stop()
        return resident

    def sample(self, gpuledger, number):
        """Times of some calls, one after the other; microseconds."""
        first = number * NAMES % self.arguments.nodes
        body = json.dumps({
            "Pod": {"metadata": {"name": "asks", "namespace": "team-00", "uid": "asks"},
                    "spec": {"containers": [{"name": "main", "resources": {
                        "limits": {"aliyun.com/gpu-mem": "2"}}}]}},
            "NodeNames": [node_name((first + i) % self.arguments.nodes) for i in range(NAMES)]})
        line = f"POST\thttp://127.0.0.1:{gpuledger.port}/gpushare-scheduler/filter\t{body}\n"
        done = subprocess.run([self.arguments.load, "-c", "1", "--show-failures"], input=line * CALLS,
                              capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        if answer["failed"]:
            sys.exit(f"{answer['failed']} calls failed: {done.stderr[:600]}")
        return answer

    def samples(self, gpuledger, until):
        """Samples, one a second, until the function says that it is over."""
        found = []
        while not until(len(found)):
            began = time.monotonic()
            found.append(self.sample(gpuledger, len(found)))
            time.sleep(max(0, began + 1 - time.monotonic()))
        return found

    @staticmethod
    def show(title, samples):
        p50, p99 = ([sample[key] for sample in samples] for key in ("p50_us", "p99_us"))
        print(f"  {title:28} {statistics.median(p50):8.0f} {statistics.median(p99):8.0f} "
              f"{max(p99):10.0f}", flush=True)
        return statistics.median(p99)

    def events(self, api, gpuledger):
        seconds = self.arguments.seconds
        print(f"  filter, {NAMES} names, us        p50      p99  worst p99 of {CALLS} calls")
        before = self.show("no events", self.samples(gpuledger, lambda n: n >= min(seconds, 60)))
        churn = Churn(api, self.arguments.rate)
        during = []
        for first in range(0, seconds, 60):
            samples = self.samples(gpuledger, lambda n, first=first: n >= min(60, seconds - first))
            during.append(self.show(f"events, from second {first}", samples))
        rate = churn.stop()
        after = self.show("no events", self.samples(gpuledger, lambda n: n >= min(seconds, 60)))
        print(f"  events: {rate:.0f} a second; p99 against that without: "
              f"{statistics.median(during) / statistics.median([before, after]):.2f}; "
              f"{gpuledger.rss_mib():.0f} MiB resident", flush=True)

    def relist(self, api, gpuledger):
        api.refresh()
        lists = api.lists
        api.expire()
        began = time.monotonic()
        # The reflector waits a moment before it lists; a while after the last page all is read.
        samples = self.samples(gpuledger, lambda n: n >= 3 and api.lists > lists and n >= 10)
        self.show("relist", samples)
        if api.lists == lists:
            sys.exit("relist: the pods were not listed anew")
        print(f"  relist: {time.monotonic() - began:.0f} s watched", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpuledger", required=True, help="the binary")
    parser.add_argument("--load", required=True, help="the sender's binary")
    parser.add_argument("--list", required=True, help="the lister's binary")
    parser.add_argument("--nodes", type=int, default=10000)
    parser.add_argument("--cards", type=int, default=16, help="of a node")
    parser.add_argument("--pods", type=int, default=200000)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--rate", type=int, default=1000, help="events a second")
    parser.add_argument("--seconds", type=int, default=120, help="for which there are events")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuledger-bench-") as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        print(f"{arguments.nodes} nodes of {arguments.cards} cards, {arguments.pods} pods", flush=True)
        one_node, all_nodes = bench.memory_of(1), bench.memory_of(arguments.nodes)
        api = bench.serve(arguments.nodes, arguments.pods)
        bench.compare_start(api)
        resident = bench.resident(api)
        mib = 1 << 20
        print(f"  memory: {resident:.0f} MiB resident, of which {one_node:.0f} with a single node; "
              f"{(all_nodes - one_node) * mib / arguments.nodes / arguments.cards:.0f} bytes a card "
              f"with its part of the node, {(resident - all_nodes) * mib / arguments.pods:.0f} a pod",
              flush=True)
        gpuledger = bench.start(api)
        gpuledger.wait_ready()
        bench.events(api, gpuledger)
        bench.relist(api, gpuledger)
        gpuledger.stop()
        api.close()


if __name__ == "__main__":
    main()
