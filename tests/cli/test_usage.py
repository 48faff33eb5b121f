#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Idle pods of a class that ends first are ended before busy ones, by the word of a played Prometheus; the
answers are recorded, and what was decided is decided again."""

import http.server
import json
import pathlib
import signal
import tempfile
import threading
import time
import unittest
import urllib.parse

from program import PATIENCE, Server, call, listing, node, run

MEM = "aliyun.com/gpu-mem"


class Prometheus(http.server.ThreadingHTTPServer):
    """Says how busy pods are, by its `percents`; None: nothing that can be understood."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            path, _, query = self.path.partition("?")
            self.server.asked.append((path, urllib.parse.parse_qs(query)))
            rows = [{"metric": {"exported_namespace": "test", "exported_pod": name,
                                "namespace": "monitoring", "pod": "dcgm-exporter-x"},
                     "value": [time.time(), str(percent)]}
                    for name, percent in (self.server.percents or {}).items()]
            answer = {"status": "success", "data": {"resultType": "vector", "result": rows}}
            text = b"?" if self.server.percents is None else json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    def __init__(self, percents):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.percents, self.asked = percents, []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def asking(name, units, priority, work_class, **spec):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "test", "name": name, "uid": name,
                         "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"priority": priority, "priorityClassName": work_class, **spec, "containers": [
                {"name": "main", "resources": {"limits": {MEM: str(units)}}}]}}


def held(name, units, priority, work_class, where, card):
    pod = asking(name, units, priority, work_class, nodeName=where)
    pod["metadata"]["annotations"] = {
        "ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_POD": str(units),
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767225600000000000"}
    return {**pod, "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}


# By priorities alone "busy" would end; "served" is of a class that ends last, "trained" of none of both.
PODS = [held("idle", 5, 9, "interactive", "n1", 0), held("busy", 5, 1, "interactive", "n1", 0),
        held("served", 10, 0, "inference", "n1", 1), held("trained", 10, 0, "training", "n2", 0),
        held("idler", 10, 50, "interactive", "n2", 1)]
CLUSTER = listing(node("n1", 2, 10), node("n2", 2, 10), *PODS)
URGENT = asking("urgent", 5, 1000, "inference")


class Usage(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.record = self.directory / "record"
        self.cluster = self.directory / "cluster.json"
        self.cluster.write_text(CLUSTER)

    def serve(self, *arguments):
        return Server("--classes=default", "--gangs", f"--record={self.record}", "--usage-interval=5s",
                      "--usage-idle-for=0s", *arguments, snapshot=self.cluster)

    def preempt(self, server, nodes, pod=URGENT):
        """Whom the answer ends: {node: [UID]}. Each time it is a pod of which nothing is known."""
        self.asked = getattr(self, "asked", 0) + 1
        pod = {**pod, "metadata": {**pod["metadata"], "uid": f"asked-{self.asked}"}}
        named = {"n1": "busy", "n2": "idler"}
        status, text = call("POST", f"{server.scheduler}/scheduler/preempt",
                            {"Pod": pod, "NodeNameToMetaVictims": {
                                name: {"Pods": [{"UID": named[name]}], "NumPDBViolations": 0}
                                for name in nodes}})
        self.assertEqual(status, 200, text)
        return {name: sorted(each["UID"] for each in found["Pods"])
                for name, found in (json.loads(text)["NodeNameToMetaVictims"] or {}).items()}

    def counted(self, server, result):
        _, text = server.get("/metrics")
        return int(next(line.split()[-1] for line in text.splitlines()
                        if line.startswith(f'gpuledger_usage_answers_total{{result="{result}"}}')))

    def await_counted(self, server, result):
        deadline = time.monotonic() + PATIENCE
        while self.counted(server, result) == 0:
            self.assertLess(time.monotonic(), deadline, result)
            time.sleep(0.05)

    def end(self, server):
        server.signal(signal.SIGTERM)
        server.exit_code()

    def replay(self, code=0):
        result = run("replay", "-o", "json", self.record)
        self.assertEqual((result.returncode, result.stderr), (code, ""), result.stdout)
        return json.loads(result.stdout)

    def test_without_a_source_priorities_count(self):
        with self.serve() as server:
            self.assertEqual(self.preempt(server, ["n1", "n2"]), {"n1": ["busy"], "n2": ["idler"]})
            self.end(server)
        said = self.replay()
        self.assertEqual((said["compared"], said["different"], said["unchecked"]), (1, 0, 0))

    def test_pods_of_three_classes_are_decided_again(self):
        """From filter to bind and preempt; what class a pod is of is a part of it."""
        names = [f"n{i}" for i in range(4)]
        pods = []
        for i in range(24):
            work_class = ("interactive", "inference", "training")[i % 3]
            pod = asking(f"p{i}", (4, 3, 10)[i % 3], (1, 100, 10)[i % 3], work_class)
            if work_class == "training":
                pod["metadata"]["annotations"] = {"gang.scheduling.koordinator.sh/name": f"g{i}",
                                                  "gang.scheduling.koordinator.sh/min-available": "1"}
            pods.append(pod)
        self.cluster.write_text(listing(*(node(name, 2, 10) for name in names), *pods))
        refused, bound = [], {}
        with self.serve() as server:
            for pod in pods:
                uid = pod["metadata"]["uid"]
                passed = server.filter(pod, names)["NodeNames"]
                if not passed:
                    refused.append(pod)
                    continue
                status, text = call("POST", f"{server.scheduler}/scheduler/prioritize",
                                    {"Pod": pod, "NodeNames": passed})
                self.assertEqual(status, 200, text)
                best = max(json.loads(text), key=lambda row: row["Score"])["Host"]
                if not server.bind(pod, best).get("Error"):
                    bound.setdefault(pod["spec"]["priorityClassName"], []).append(uid)
            self.assertEqual(set(bound), {"interactive", "inference", "training"})
            self.assertTrue(refused)
            for pod in refused:
                status, text = call("POST", f"{server.scheduler}/scheduler/preempt",
                                    {"Pod": {**pod, "spec": {**pod["spec"], "priority": 1000}},
                                     "NodeNameToMetaVictims": {
                                         name: {"Pods": [{"UID": bound["interactive"][0]}],
                                                "NumPDBViolations": 0} for name in names}})
                self.assertEqual(status, 200, text)
            self.end(server)
        said = self.replay()
        self.assertEqual((said["different"], said["unchecked"]), (0, 0))
        self.assertGreater(said["bindLooks"], 6)
        text = self.record.read_text()
        self.assertIn('"class":"training"', text)
        # As if training had been nothing special.
        self.record.write_text(text.replace('"priorityClassName":"training"', '"priorityClassName":"other"'))
        self.assertGreater(self.replay(code=3)["different"], 0)

    def test_the_idle_one_ends_first(self):
        with Prometheus({"idle": 0, "busy": 70, "trained": 0, "served": 0}) as source, \
                self.serve(f"--usage={source.url}/") as server:
            self.await_counted(server, "ok")
            path, query = source.asked[0]
            self.assertEqual(path, "/api/v1/query")
            self.assertIn("DCGM_FI_DEV_GPU_UTIL", query["query"][0])
            # Of the nodes those are left where it is the idle that end.
            self.assertEqual(self.preempt(server, ["n1", "n2"]), {"n1": ["idle"]})
            self.assertEqual(self.preempt(server, ["n2"]), {"n2": ["idler"]})
            # Whoever is idle of another class ends no sooner for it.
            large = asking("large", 10, 1000, "inference")
            self.assertEqual(self.preempt(server, ["n1"], large), {"n1": ["busy", "idle"]})
            status, text = server.get("/api/v1/explain?pod=test/idle")
            self.assertEqual(status, 200)
            self.assertGreater(json.loads(text)["class"]["idleSeconds"], 0)
            for name in ("busy", "idler"):
                told = json.loads(server.get(f"/api/v1/explain?pod=test/{name}")[1])["class"]
                self.assertIsNone(told["idleSeconds"], name)
            self.assertIn("gpuledger_usage_answered_timestamp_seconds ", server.get("/metrics")[1])
            explained = run("explain", f"--server={server.operations}", "test/idle")
            self.assertIn("CLASS       interactive, by its PriorityClass 'interactive'; idle for 0 min by "
                          "usage source\n", explained.stdout)
            self.end(server)
        said = self.replay()
        self.assertEqual((said["compared"], said["different"], said["unchecked"]), (3, 0, 0))
        # Who was idle is part of what was decided.
        text = self.record.read_text()
        self.assertIn('"kind":"usage"', text)
        self.record.write_text(text.replace('"name":"idle","since"', '"name":"idol","since"'))
        said = self.replay(code=3)
        self.assertEqual(said["firstDifference"]["what"], "preempt")

    def test_what_cannot_be_understood_changes_nothing(self):
        with Prometheus(None) as source, self.serve(f"--usage={source.url}") as server:
            self.await_counted(server, "unreadable")
            server.wait_for("usage is not known.*invalid JSON")
            self.assertEqual(self.preempt(server, ["n1", "n2"]), {"n1": ["busy"], "n2": ["idler"]})
            self.assertNotIn("gpuledger_usage_answered", server.get("/metrics")[1])

    def test_a_file_that_goes_on_knows_who_is_idle(self):
        with Prometheus({"idle": 0, "busy": 70}) as source, \
                self.serve(f"--usage={source.url}", "--record-max=64KiB") as server:
            self.await_counted(server, "ok")
            older = self.directory / "record.1"
            while not older.exists():
                for _ in range(20):
                    self.assertEqual(self.preempt(server, ["n1"]), {"n1": ["idle"]})
            self.assertEqual(self.preempt(server, ["n1"]), {"n1": ["idle"]})
            self.end(server)
        said = self.replay()
        self.assertEqual((said["different"], said["unchecked"]), (0, 0))
        self.assertGreater(said["compared"], 0)

    def test_it_is_refused_where_nothing_would_follow(self):
        for arguments, why in [
            (["--usage=http://p"], "no class of 'classes' has 'victims: first'"),
            (["--usage=ftp://p", "--classes=default", "--gangs"], "begins with http:// or https://"),
            (["--usage=https://me:word@p", "--classes=default", "--gangs"], "has no user"),
            (["--usage=http://p", "--usage-token-file=t", "--classes=default", "--gangs"],
             "'usage' is not https"),
        ]:
            result = run("serve", f"--snapshot={self.cluster}", *arguments)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(why, result.stderr)


if __name__ == "__main__":
    unittest.main()
