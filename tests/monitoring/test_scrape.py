#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes the real program: every query of board and alerts finds its series."""

import json
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import yaml
from prometheus import MONITORING, ROOT, RULES
from prometheus import program as tool

sys.path.insert(0, str(ROOT / "tests/cli"))

# pylint: disable=wrong-import-position
from pki import Authority  # noqa: E402
from program import Server, call, listing, node, pod  # noqa: E402

PATIENCE = 60

# Of these there are none as long as nothing is wrong, there is one replica, no calendar, or nothing that evicts.
RARE = {"gpuledger_lease_held", "gpuledger_node_left_out", "gpuledger_node_doubted",
        "gpuledger_node_silent", "gpuledger_switches_stuck", "gpuledger_evictions_stopped",
        "gpuledger_evictions_total", "gpuledger:evictions:rate5m"}


def setUpModule():
    tool("prometheus")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def cluster():
    """A node with cards, one with whole GPUs by count, and a pod that holds some of each."""
    whole = node("counted", 0, 0)
    whole["status"]["capacity"] = whole["status"]["allocatable"] = {"nvidia.com/gpu": "4"}
    holder = pod("holder", 2, metadata={"annotations": {
        "ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "2", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1", "ALIYUN_COM_GPU_MEM_DEV": "10"}},
        spec={"nodeName": "n1"}, status={"phase": "Running"})
    quota = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota",
             "metadata": {"namespace": "test", "name": "gpus", "uid": "quota"},
             "spec": {"min": {"gpuledger.io/gpus": "0"}, "max": {"gpuledger.io/gpus": "4"}}}
    return listing(node("n1", 2, 10), whole, holder, pod("next", 3), pod("huge", 9000), quota)


class Scraped(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        authority = Authority(cls.folder)
        certificate, key = authority.sign("server")
        cls.trust = ssl.create_default_context(cafile=authority.certificate)
        snapshot = cls.folder / "cluster.json"
        snapshot.write_text(cluster())
        cls.server = cls.enterClassContext(Server(
            f"--tls-cert={certificate}", f"--tls-key={key}", "--pod-metrics", "--audit-interval=1s",
            "--elastic-quotas", "--policy=fgd", snapshot=snapshot))
        cls.port = free_port()
        rules = [str(path) for path in RULES]
        (cls.folder / "prometheus.yaml").write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": rules,
            "scrape_configs": [{
                "job_name": "gpuledger",
                "honor_labels": True,
                "static_configs": [{"targets": [cls.server.operations.removeprefix("http://")]}],
            }],
        }))
        log = cls.enterClassContext(open(cls.folder / "prometheus.log", "wb"))
        cls.prometheus = subprocess.Popen(
            [tool("prometheus"), f"--config.file={cls.folder}/prometheus.yaml",
             f"--storage.tsdb.path={cls.folder}/data", f"--web.listen-address=127.0.0.1:{cls.port}",
             "--log.level=warn"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        cls.addClassCleanup(cls.prometheus.wait)
        cls.addClassCleanup(cls.prometheus.kill)
        cls.wait_for(cls.answers, "Prometheus")
        cls.wait_for(lambda: cls.ask("up == 1"), "a scrape")

    @classmethod
    def answers(cls):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{cls.port}/-/ready", timeout=30):
                return True
        except OSError:
            return False

    @classmethod
    def wait_for(cls, condition, what):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.5)
        raise AssertionError(f"{what} did not come; {(cls.folder / 'prometheus.log').read_text()[-2000:]}")

    @classmethod
    def get(cls, path, **words):
        url = f"http://127.0.0.1:{cls.port}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{words}: {error.read().decode()}") from error

    @classmethod
    def ask(cls, query):
        return cls.get("query", query=query)["result"]

    def decide(self):
        """One pod is refused, another one bound, so that counters move between two scrapes."""
        for name, amount in (("huge", 9000), ("next", 3)):
            self.post("filter", {"Pod": pod(name, amount), "NodeNames": ["n1"]})
        self.post("bind", {"PodName": "next", "PodNamespace": "test", "PodUID": "uid-next", "Node": "n1"})

    def post(self, verb, body):
        address = self.server.scheduler.replace("http://", "https://")
        request = urllib.request.Request(f"{address}/gpushare-scheduler/{verb}", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30, context=self.trust):
            pass

    def test_the_board_s_queries_find_something(self):
        board = json.loads((MONITORING / "dashboard.json").read_text())
        queries = {target["expr"]: panel["title"] for panel in board["panels"] for target in panel.get("targets", ())}
        self.assertGreater(len(queries), 20)
        self.maxDiff = None
        missing = {query: title for query, title in queries.items()
                   if not RARE & set(re.findall(r"\bgpuledger[_:][\w:]+", query))}

        def all_found():
            self.decide()
            for query in list(missing):
                if self.ask(query):
                    del missing[query]
            return not missing

        try:
            self.wait_for(all_found, "every series")
        except AssertionError:
            self.assertEqual(missing, {})

    def test_rules_are_evaluated_and_their_series_are_there(self):
        self.wait_for(lambda: all(rule["health"] != "unknown" for rule in self.rules()), "an evaluation")
        for rule in self.rules():
            self.assertEqual(rule["health"], "ok", rule)
        self.wait_for(lambda: self.ask("gpuledger_audit_differences"), "an audit")
        self.decide()
        self.wait_for(lambda: self.ask("gpuledger_verb_duration_seconds_bucket"), "a decision")
        named = set(re.findall(r"\bgpuledger_\w+", "".join(path.read_text() for path in RULES)))
        there = set(self.get("label/__name__/values"))
        self.assertEqual(named - there - RARE, set())

    def rules(self):
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]

    def test_nothing_is_heard_while_all_is_well(self):
        self.wait_for(lambda: self.ask("gpuledger_audit_differences"), "an audit")
        heard = {alert["labels"]["alertname"] for alert in self.get("alerts")["alerts"]
                 if alert["state"] == "firing"}
        # The certificate is good for 30 days, the pods are in order.
        self.assertEqual(heard, set())

    def test_names_and_units(self):
        text = call("GET", self.server.operations + "/metrics")[1]
        answer = subprocess.run([tool("promtool"), "check", "metrics"], input=text, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual((answer.returncode, answer.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
