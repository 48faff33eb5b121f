#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuledger switch of slots, against an API server of three kinds of calls: what it shows, whom it evicts, and that the
annotation changes when no card has more holders."""

import datetime
import http.server
import json
import pathlib
import re
import tempfile
import threading
import unittest
import urllib.parse

from program import run

SLOTS = "gpuledger.io/slots"
KEYS = ("gpuledger.io/switch", "gpuledger.io/switch-state")


def held(name, card, **metadata):
    words = {"ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_POD": "2", "ALIYUN_COM_GPU_MEM_DEV": "16",
             "ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1"}
    return {"metadata": {"name": name, "namespace": "ml", "uid": name, "annotations": words, **metadata},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": "2"}}}]},
            "status": {"phase": "Running"}}


def merge(old, patch):
    """As a merge patch of JSON has it."""
    for key, value in patch.items():
        if value is None:
            old.pop(key, None)
        elif isinstance(value, dict):
            merge(old.setdefault(key, {}), value)
        else:
            old[key] = value


class ApiServer(http.server.ThreadingHTTPServer):
    """One node with two cards. Who is evicted has gone when pods are listed next."""

    def __init__(self, amounts, pods):
        super().__init__(("127.0.0.1", 0), Handler)
        self.node = {"metadata": {"name": "n", "resourceVersion": "1", "labels": {}, "annotations": {}}, "spec": {},
                     "status": {"capacity": amounts, "allocatable": amounts}}
        self.pods = {pod["metadata"]["name"]: pod for pod in pods}
        self.evicted, self.values, self.most = [], [None], 0

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        """Whoever has what he wants hangs up."""

    @property
    def annotations(self):
        return self.node["metadata"]["annotations"]

    def patch(self, body):
        if body["metadata"].get("resourceVersion") != self.node["metadata"]["resourceVersion"]:
            return 409
        merge(self.node, body)
        self.node["metadata"]["resourceVersion"] = str(int(self.node["metadata"]["resourceVersion"]) + 1)
        if self.annotations.get(SLOTS) != self.values[-1]:
            holders = [pod["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] for pod in self.pods.values()]
            self.values.append(self.annotations.get(SLOTS))
            self.most = max((holders.count(card) for card in holders), default=0)
        return 200


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        if path == "/api/v1/nodes/n":
            self.answer(200, self.server.node)
        elif path == "/api/v1/nodes":
            self.answer(200, {"items": [self.server.node]})
        elif path == "/api/v1/pods":
            self.answer(200, {"metadata": {"resourceVersion": "1"}, "items": list(self.server.pods.values())})
        else:
            self.answer(404, {"kind": "Status", "code": 404})

    def do_PATCH(self):
        status = self.server.patch(self.body())
        self.answer(status, self.server.node if status == 200 else {"kind": "Status", "code": status})

    def do_POST(self):
        self.body()
        match = re.fullmatch(r"/api/v1/namespaces/ml/pods/(\w+)/eviction", urllib.parse.urlsplit(self.path).path)
        if match:
            self.server.evicted.append(match[1])
            self.server.pods.pop(match[1], None)
        self.answer(201, {"kind": "Status", "code": 201})

    def log_message(self, *_):
        pass


SHARED = {"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2", "cpu": "8", "memory": "32Gi", "pods": "110"}
TIME = "2026-01-01T0{}:00:00Z"


def now(seconds):
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


class Switch(unittest.TestCase):
    def switch(self, server, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "config"
            config.write_text(json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
            return run("switch", *arguments, f"--kubeconfig={config}")

    def pods(self):
        return [held("old", 0, creationTimestamp=TIME.format(1)), held("young", 0, creationTimestamp=TIME.format(3)),
                held("middle", 0, creationTimestamp=TIME.format(2)), held("alone", 1, creationTimestamp=TIME.format(4))]

    def test_who_has_to_go_is_told(self):
        with ApiServer(SHARED, self.pods()) as server:
            answer = self.switch(server, "n", "slots=2", "-o", "json")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            row = json.loads(answer.stdout)["nodes"][0]
            self.assertEqual((row["label"], row["pods"], row["next"]), (SLOTS, 1, "announced"))
            self.assertEqual((server.annotations, server.evicted), ({}, []))

    def test_more_slots_end_nobody(self):
        with ApiServer(SHARED, self.pods()) as server:
            server.annotations[SLOTS] = "2"
            answer = self.switch(server, "n", "slots=4", "--apply")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertEqual((server.annotations[SLOTS], server.evicted), ("4", []))
            self.assertEqual(server.node["spec"].get("taints", []), [])
            self.assertFalse(set(KEYS) & set(server.annotations))

    def test_the_youngest_go_where_they_are_too_many(self):
        with ApiServer(SHARED, self.pods()) as server:
            # As one that began a minute ago, so that no Binding from before it is waited for.
            server.annotations.update({KEYS[0]: f"{SLOTS}=1@{TIME.format(0)}", KEYS[1]: f"draining@{now(-60)}/"})
            server.node["spec"]["taints"] = [{"key": "gpuledger.io/switching", "effect": "NoSchedule"}]
            answer = self.switch(server, "n", "slots=1", "--apply")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertEqual(sorted(server.evicted), ["middle", "young"])
            self.assertEqual((server.values, server.most), ([None, "1"], 1))
            self.assertEqual((server.annotations[SLOTS], server.node["spec"]["taints"]), ("1", []))
            self.assertFalse(set(KEYS) & set(server.annotations))
            self.assertTrue(server.annotations["gpuledger.io/switched"].startswith(f"{SLOTS}=1@"))

    def test_another_switch_is_left_to_whoever_announced_it(self):
        for state in ({}, {KEYS[1]: f"draining@{now(-60)}/"}):
            with self.subTest(state), ApiServer(SHARED, self.pods()) as server:
                server.annotations.update({KEYS[0]: f"{SLOTS}=2@{TIME.format(0)}", **state})
                before = dict(server.annotations)
                answer = self.switch(server, "n", "slots=1", "--apply")
                self.assertEqual((answer.returncode, answer.stdout), (1, ""))
                self.assertIn(f"another switch is announced: {SLOTS}=2@", answer.stderr)
                self.assertEqual((server.annotations, server.evicted), (before, []))

    def test_what_is_taken_away_is_not_done(self):
        for value, code in ((None, 1), ("4", 0)):  # somebody withdraws it, or does it himself
            with self.subTest(value), ApiServer(SHARED, self.pods()) as server:
                patch = server.patch

                def meddle(body):
                    status = patch(body)
                    server.annotations.pop(KEYS[0])
                    server.annotations.update({SLOTS: value} if value else {})
                    return status

                server.patch = meddle
                answer = self.switch(server, "n", "slots=4", "--apply")
                self.assertEqual(answer.returncode, code, answer.stderr)
                self.assertEqual("was taken away" in answer.stderr, code == 1, answer.stderr)

    def test_what_is_no_number_is_refused(self):
        with ApiServer(SHARED, []) as server:
            for target in ("slots=0", "slots=many", "slots=1001", "gpuledger.io/slots=-1"):
                answer = self.switch(server, "n", target, "--apply")
                self.assertEqual(answer.returncode, 2, answer.stderr)
                self.assertIn("neither a number from 1 to 1000 nor 'any'", answer.stderr)
            self.assertEqual(server.annotations, {})

    def test_where_kubelet_chooses_the_card_it_is_refused(self):
        with ApiServer({"nvidia.com/gpu": "8"}, []) as server:
            answer = self.switch(server, "n", "slots=1", "--apply")
            self.assertEqual(answer.returncode, 1, answer.stderr)
            self.assertIn("gpuledger chooses no cards there", answer.stderr)
            self.assertEqual(server.annotations, {})


if __name__ == "__main__":
    unittest.main()
