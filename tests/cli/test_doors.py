#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may call without TLS and a token: nobody from elsewhere, and no web page of a stranger."""

import contextlib
import http.client
import json
import re
import tempfile
import unittest

from program import JSON, PATIENCE, Server, listing, node, pod, run

ORIGIN = {"Origin": "http://evil.example"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def ask(base, method, path, body=None, headers=None):
    """Status and text, with these headers and no other but Host, which may be one of them."""
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read().decode()


class Doors(unittest.TestCase):
    def start(self, *arguments):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        saved = f"{folder.name}/cluster.json"
        with open(saved, "w", encoding="utf-8") as file:
            file.write(listing(node("n", 2, 8), pod("a", 2)))
        server = Server(*arguments, snapshot=saved)
        self.addCleanup(server.__exit__)
        return server

    def test_by_itself_it_listens_to_this_machine(self):
        printed = run("serve", "--print-config").stdout
        self.assertEqual(re.findall(r'(?m)^((?:ops-)?listen: "[^"]*")', printed),
                         ['listen: "127.0.0.1:39999"', 'ops-listen: "127.0.0.1:39998"'])

    def test_a_form_binds_nothing(self):
        server = self.start()
        bind = json.dumps({"PodName": "a", "PodNamespace": "test", "PodUID": "uid-a", "Node": "n"})
        path = "/scheduler/bind"
        for headers, status in (({}, 415), (FORM, 415), ({"Content-Type": "text/plain"}, 415),
                                (ORIGIN | JSON, 403), (ORIGIN | FORM, 403)):
            with self.subTest(headers=headers):
                self.assertEqual(ask(server.scheduler, "POST", path, bind, headers), (status, ""))
        self.assertEqual(server.get("/api/v1/pods/test/a")[0], 404)
        self.assertEqual(ask(server.scheduler, "POST", path, bind, JSON), (200, '{"Error":""}'))
        server.wait_for('level=warn msg="request refused" path=/scheduler/bind status=415')

    def test_a_form_starts_no_audit(self):
        server = self.start()
        for headers in ({}, FORM, {"Content-Type": "text/plain"}):
            status, text = ask(server.operations, "POST", "/api/v1/audit", None, headers)
            self.assertEqual(status, 415)
            self.assertIn("Content-Type: application/json", json.loads(text)["error"])
        self.assertEqual(ask(server.operations, "POST", "/api/v1/audit", None, ORIGIN | JSON)[0], 202)

    def test_a_name_that_leads_here_reads_nothing(self):
        server = self.start("--ops-hosts=gpus.example,other.example")
        for host, status in (("evil.example", 403), ("evil.example:39998", 403), ("gpus.example:39998", 200),
                             ("other.example", 200), ("localhost:1", 200), ("[::1]", 200)):
            for path in ("/api/v1/nodes/n", "/healthz", "/"):
                with self.subTest(host=host, path=path):
                    self.assertEqual(ask(server.operations, "GET", path, None, {"Host": host})[0], status)
        status, text = ask(server.operations, "GET", "/api/v1/nodes/n", None, {"Host": "evil.example"})
        self.assertIn("--ops-hosts", json.loads(text)["error"])

    def test_the_token_is_worth_more_than_a_name(self):
        with tempfile.NamedTemporaryFile("w") as token:
            token.write("secret-of-a-test")
            token.flush()
            server = self.start(f"--ops-token-file={token.name}")
            shown = {"Host": "gpus.example", "Authorization": "Bearer secret-of-a-test"}
            self.assertEqual(ask(server.operations, "GET", "/api/v1/nodes/n", None, shown)[0], 200)
            self.assertEqual(
                ask(server.operations, "GET", "/api/v1/nodes/n", None, {"Host": "gpus.example"})[0], 401)


if __name__ == "__main__":
    unittest.main()
