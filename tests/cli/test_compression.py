#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers for people are compressed for clients that take gzip; those for kube-scheduler never are."""

import gzip
import json
import pathlib
import tempfile
import unittest
import urllib.error
import urllib.request

from program import PATIENCE, Server

NODES = 400
POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"},
       "spec": {"containers": [{"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": "99"}}}]}}


def cluster():
    return {"kind": "List", "items": [
        {"kind": "Node", "metadata": {"name": f"n{i}"},
         "status": {name: {"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2"} for name in ("capacity", "allocatable")}}
        for i in range(NODES)] + [{"kind": "Pod", **POD}]}


class Compression(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        file = pathlib.Path(cls.folder.name) / "cluster.json"
        file.write_text(json.dumps(cluster()))
        cls.server = Server("--ops-hosts=localhost", snapshot=file)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def ask(self, path, accepted=None, base=None, body=None, **headers):
        """(status, headers, body as it came)"""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers |= {"Accept-Encoding": accepted} if accepted is not None else {}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        request = urllib.request.Request((base or self.server.operations) + path, headers=headers, data=body)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def test_it_is_the_same_answer(self):
        for path in ("/api/v1/nodes", "/api/v1/wall", "/api/v1/explain?pod=ns/p", "/openapi.yaml", "/metrics", "/page/app.js"):
            with self.subTest(path):
                _, plain_headers, plain = self.ask(path, "identity")
                status, headers, small = self.ask(path, "gzip, deflate, br")
                self.assertEqual((status, headers["Content-Encoding"], headers["Vary"]), (200, "gzip", plain_headers["Vary"]))
                self.assertIsNone(plain_headers["Content-Encoding"])
                self.assertIn("Accept-Encoding", plain_headers["Vary"])
                self.assertEqual(headers["Content-Type"], plain_headers["Content-Type"])
                self.assertEqual(int(headers["Content-Length"]), len(small))
                if path != "/metrics":  # the process goes on counting
                    self.assertEqual(gzip.decompress(small), plain)
                self.assertLess(len(small), len(plain) / 2)

    def test_what_many_nodes_say_becomes_small(self):
        plain, small = (self.ask("/api/v1/explain?pod=ns/p", each)[2] for each in ("identity", "gzip"))
        self.assertGreater(len(plain), 20000)
        self.assertLess(len(small), len(plain) / 8)

    def test_what_is_asked_by_post(self):
        _, headers, small = self.ask("/api/v1/explain", "gzip", body=json.dumps(POD).encode())
        self.assertEqual(headers["Content-Encoding"], "gzip")
        self.assertIn("verdict", json.loads(gzip.decompress(small)))

    def test_only_who_takes_it(self):
        for accepted, taken in ((None, False), ("", False), ("identity", False), ("br", False), ("gzip;q=0", False),
                                ("gzip; q=0.000, br", False), ("*;q=0", False), ("gzip;q=0, *", False), ("gzipped", False),
                                ("GZIP", True), ("x-gzip", True), ("br, gzip;q=0.1", True), ("*", True),
                                ("gzip;q=1.0, *;q=0", True), ("deflate,gzip", True)):
            with self.subTest(accepted):
                headers = self.ask("/api/v1/nodes", accepted)[1]
                self.assertEqual(headers["Content-Encoding"], "gzip" if taken else None)

    def test_tags(self):
        """Each form has its own tag, and either is known again."""
        plain, small = (self.ask("/api/v1/wall", each)[1]["ETag"] for each in ("identity", "gzip"))
        self.assertNotEqual(plain, small)
        for tag in (plain, small):
            for accepted in ("identity", "gzip"):
                status, headers, body = self.ask("/api/v1/wall", accepted, If_None_Match=tag)
                self.assertEqual((status, body, headers["Content-Encoding"], headers["ETag"]), (304, b"", None, tag))

    def test_what_is_small_or_an_error_stays(self):
        for path in ("/healthz", "/version", "/api/v1/nodes/none", "/api/v1/nodes/n1"):
            self.assertIsNone(self.ask(path, "gzip")[1]["Content-Encoding"], path)

    def test_kube_scheduler_waits_for_no_compression(self):
        for path, body in (("/gpushare-scheduler/inspect", None),
                           ("/gpushare-scheduler/filter", {"Pod": POD, "NodeNames": [f"n{i}" for i in range(NODES)]})):
            status, headers, answer = self.ask(path, "gzip", base=self.server.scheduler,
                                               body=None if body is None else json.dumps(body).encode())
            self.assertEqual((status, headers["Content-Encoding"]), (200, None))
            self.assertGreater(len(answer), 1400)


if __name__ == "__main__":
    unittest.main()
