#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real program asks a real Prometheus who is idle; it scrapes stand-ins for dcgm-exporter.

Source of the metric and its labels: NVIDIA/dcgm-exporter, README (gpu, UUID) and issue 342 (container, namespace, pod,
as far as kubelet tells). Where Prometheus has labels `namespace` and `pod` of what it scrapes, as with a PodMonitor, it
keeps the exporter's as `exported_...`, but for honor_labels.
"""

import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request

import yaml
from prometheus import ROOT
from prometheus import program as tool

sys.path.insert(0, str(ROOT / "tests/cli"))

# pylint: disable=wrong-import-position
from program import Server, listing, node, pod, run  # noqa: E402

PATIENCE = 60


def setUpModule():
    tool("prometheus")


def series(card, percent, name=None):
    """Of a card, and the pod that kubelet has given it to."""
    holder = f'container="c",namespace="test",pod="{name}"' if name else 'container="",namespace="",pod=""'
    return (f'DCGM_FI_DEV_GPU_UTIL{{gpu="{card}",UUID="GPU-{card}",device="nvidia{card}",modelName="Tesla T4",'
            f'Hostname="n1",{holder}}} {percent}\n')


class Exporter:
    """A stand-in for dcgm-exporter on one node."""

    def __init__(self, *rows):
        text = ("# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
                + "".join(series(*row) for row in rows))

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def free_port():
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as one:
        return one.server_port


def holder(name, card):
    return pod(name, 2, metadata={"annotations": {
        "ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_POD": "2", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1", "ALIYUN_COM_GPU_MEM_DEV": "10"}},
        spec={"nodeName": "n1", "priorityClassName": "interactive"}, status={"phase": "Running"})


class Asked(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def scrape(self, *targets):
        """Starts Prometheus. Targets are exporters and what Prometheus's configuration says of them."""
        self.url = f"http://127.0.0.1:{free_port()}"
        (self.folder / "prometheus.yaml").write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [
                {"job_name": f"dcgm{number}", "honor_labels": honors,
                 "static_configs": [{"targets": [exporter.address],
                                     "labels": {"namespace": "gpu-operator", "pod": f"dcgm-exporter-{number}"}}]}
                for number, (exporter, honors) in enumerate(targets)]}))
        log = self.enterContext(open(self.folder / "prometheus.log", "wb"))
        process = subprocess.Popen(
            [tool("prometheus"), f"--config.file={self.folder}/prometheus.yaml",
             f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address={self.url.removeprefix('http://')}",
             "--log.level=warn"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(lambda: self.count("count(DCGM_FI_DEV_GPU_UTIL)") == 5, "a scrape of all")

    def count(self, query):
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}",
                                        timeout=30) as reply:
                found = json.load(reply)["data"]["result"]
        except OSError:
            return None
        return int(found[0]["value"][1]) if found else 0

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.2)
        raise AssertionError(f"{what} did not come; {(self.folder / 'prometheus.log').read_text()[-2000:]}")

    def test_who_is_idle_by_a_real_prometheus(self):
        cluster = self.folder / "cluster.json"
        pods = ["quiet", "busy", "honored", "two", "unknown"]
        cluster.write_text(listing(node("n1", 5, 10), *(holder(name, card) for card, name in enumerate(pods))))
        first = self.enterContext(Exporter((0, 0, "quiet"), (1, 97, "busy"), (2, 0)))
        second = self.enterContext(Exporter((3, 4, "honored"), (4, 60, "two")))
        self.scrape((first, False), (second, True))
        server = self.enterContext(Server("--classes=default", "--gangs", f"--usage={self.url}", "--usage-interval=5s",
                                          "--usage-idle-for=0s", snapshot=cluster))

        def idle():
            told = {}
            for name in pods:
                answer = run("explain", f"test/{name}", "--server", server.operations, "-ojson")
                told[name] = json.loads(answer.stdout)["class"]["idleSeconds"] is not None
            return told

        expected = {"quiet": True, "busy": False, "honored": True, "two": False, "unknown": False}
        self.wait_for(lambda: idle() == expected, f"{expected}, but {idle()}")
        metrics = server.get("/metrics")[1]
        self.assertRegex(metrics, r'gpuledger_usage_answers_total\{result="ok"\} [1-9]')
        for result in ("failed", "unreadable", "out_of_date", "empty", "cut"):
            self.assertIn(f'gpuledger_usage_answers_total{{result="{result}"}} 0\n', metrics)
        # Of a query that it cannot read people see its own words.
        with Server("--classes=default", "--gangs", f"--usage={self.url}", "--usage-query=sum(", snapshot=cluster) as wrong:
            wrong.wait_for("usage is not known.*parse error")


if __name__ == "__main__":
    unittest.main()
