#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TLS on the scheduler's listener, the token of the other one, and where secrets do not appear."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import warnings

from pki import Authority
from program import JSON, PATIENCE, SNAPSHOT, Server, call, listing, node, pod, run
from test_serve import crowded

FILTER = "/gpushare-scheduler/filter"
BIND = "/gpushare-scheduler/bind"
TOKEN = "t0ken-that-must-not-be-seen-0123456789"


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.ca = Authority(cls.shared.name)
        cls.first = cls.ca.sign("first")
        cls.second = cls.ca.sign("second")
        cls.client = cls.ca.sign("client", usage="clientAuth")
        cls.stranger_ca = Authority(cls.shared.name, "stranger")
        cls.stranger = cls.stranger_ca.sign("client", usage="clientAuth")

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.certificate, self.key = self.directory / "tls.crt", self.directory / "tls.key"

    def install(self, pair):
        self.certificate.write_bytes(pair[0].read_bytes())
        self.key.write_bytes(pair[1].read_bytes())

    def start(self, *arguments, snapshot=None):
        self.install(self.first)
        options = {"snapshot": snapshot} if snapshot else {}
        server = Server(f"--tls-cert={self.certificate}", f"--tls-key={self.key}", *arguments,
                        **options)
        self.addCleanup(server.__exit__)
        return server

    def context(self, client=None):
        context = ssl.create_default_context(cafile=str(self.ca.certificate))
        if client:
            context.load_cert_chain(*map(str, client))
        return context

    def connect(self, server, client=None, context=None):
        host, port = server.scheduler.removeprefix("http://").split(":")
        connection = http.client.HTTPSConnection(
            host, int(port), context=context or self.context(client), timeout=20)
        self.addCleanup(connection.close)
        connection.connect()
        return connection

    def name(self, connection):
        """The common name of the server's certificate."""
        return dict(one for (one,) in connection.sock.getpeercert()["subject"])["commonName"]

    def wait_for_name(self, server, name):
        deadline = time.monotonic() + PATIENCE
        while self.name(self.connect(server)) != name:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)


def ask(connection, method="GET", path="/version", body=None):
    connection.request(method, path, json.dumps(body) if body is not None else None, JSON)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


def binding(one):
    meta = one["metadata"]
    return {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"],
            "Node": "n"}


class Tls(Case):
    def test_calls_over_tls(self):
        snapshot = self.directory / "snapshot.json"
        snapshot.write_text(listing(node("n", 2, 8), pod("a", 2)))
        server = self.start(snapshot=snapshot)
        connection = self.connect(server)
        for _ in range(3):
            status, text = ask(connection, "POST", FILTER, {"Pod": pod("a", 2), "NodeNames": ["n"]})
            self.assertEqual((status, json.loads(text)["NodeNames"]), (200, ["n"]))
        self.assertEqual(ask(connection, "POST", BIND, binding(pod("a", 2))), (200, '{"Error":""}'))
        large = {"Pod": pod("a", 2), "NodeNames": [f"node-{i:06}" for i in range(40000)] + ["n"]}
        status, text = ask(connection, "POST", FILTER, large)
        self.assertEqual(status, 200)
        answer = json.loads(text)
        self.assertEqual(answer["NodeNames"], ["n"])
        self.assertEqual(
            len(answer["FailedNodes"]) + len(answer["FailedAndUnresolvableNodes"]), 40000)

    def test_versions_and_protocols(self):
        server = self.start()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context()
            context.minimum_version = context.maximum_version = version
            # As Go's client offers it.
            context.set_alpn_protocols(["h2", "http/1.1"])
            connection = self.connect(server, context=context)
            self.assertEqual(connection.sock.selected_alpn_protocol(), "http/1.1")
            self.assertEqual(ask(connection)[0], 200)
        context = self.context()
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings(), contextlib.suppress(ValueError):  # a library without them
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
            with self.assertRaises((ssl.SSLError, OSError)):
                self.connect(server, context=context)
        self.assertEqual(ask(self.connect(server))[0], 200)

    def test_plain_text_gets_nothing(self):
        server = self.start("--transfer-timeout=1s")
        with self.assertRaises((OSError, http.client.HTTPException)):
            call("GET", server.scheduler + "/version")
        # The other listener is not concerned.
        self.assertEqual(server.get("/healthz")[0], 200)

    def test_clients_need_a_certificate(self):
        server = self.start(f"--tls-client-ca={self.ca.certificate}")
        self.assertEqual(ask(self.connect(server, self.client))[0], 200)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for pair in (None, self.stranger, self.second):  # none, unknown, not for clients
                context = self.context(pair)
                context.minimum_version = context.maximum_version = version
                with self.assertRaises((ssl.SSLError, ConnectionError, http.client.BadStatusLine)):
                    ask(self.connect(server, context=context))
        server.wait_for('msg="client certificate refused" why="there is none"')
        server.wait_for('msg="client certificate refused" why=".*issuer is unknown')
        self.assertEqual(ask(self.connect(server, self.client))[0], 200)

    def refused(self, server, pair):
        """Whether a call with the certificate gets no answer, by TLS 1.2 and by 1.3."""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context(pair)
            context.minimum_version = context.maximum_version = version
            try:
                ask(self.connect(server, context=context))
                return False
            except (ssl.SSLError, ConnectionError, http.client.BadStatusLine):
                pass
        return True

    def test_a_certificate_says_what_it_is_for(self):
        server = self.start(f"--tls-client-ca={self.ca.certificate}")
        for usage in ("", "serverAuth", "codeSigning,emailProtection", "anyExtendedKeyUsage"):
            self.assertTrue(self.refused(server, self.ca.sign("odd", usage=usage)), usage)
        server.wait_for('msg="client certificate refused" why=".*extendedKeyUsage clientAuth')
        both = self.ca.sign("both", usage="serverAuth,clientAuth")
        self.assertEqual(ask(self.connect(server, both))[0], 200)

    def test_only_some_names(self):
        server = self.start(f"--tls-client-ca={self.ca.certificate}",
                            "--tls-client-names=kube-scheduler, system:kube-scheduler")
        def sign(name, names):
            return self.ca.sign(name, usage="clientAuth", names=names)
        for name, names in (("kube-scheduler", ""), ("system:kube-scheduler", "DNS:other"),
                            ("other", "DNS:a,DNS:kube-scheduler")):
            self.assertEqual(ask(self.connect(server, sign(name, names)))[0], 200, name)
        for name, names in (
            ("system:node:n1", ""), ("kube-schedule", ""), ("kube-scheduler2", ""), ("*", ""),
            ("KUBE-SCHEDULER", ""), ("kube-scheduler,", ""), ("other", "DNS:*"),
            ("other", "email:kube-scheduler@x,URI:kube-scheduler"), ("x" * 64, "DNS:" + "y" * 300),
            ("other", "DNS:kube-scheduler.evil"), ("other", ""),
        ):
            self.assertTrue(self.refused(server, sign(name, names)), (name, names))
        server.wait_for('msg="client certificate refused" why=".*--tls-client-names')
        # Another CA's certificate of the right name is still another CA's.
        self.assertTrue(self.refused(
            server, self.stranger_ca.sign("kube-scheduler", usage="clientAuth", names="")))

    def test_open_doors_are_said(self):
        ca = f"--tls-client-ca={self.ca.certificate}"
        token = self.directory / "token"
        token.write_text(TOKEN)
        self.start(ca, "--tls-client-names=a", "--ops-tls", f"--ops-token-file={token}")
        wide = ("--listen=0.0.0.0:0", "--ops-listen=0.0.0.0:0")
        for address, level in (((), "info"), (("--listen=127.1.2.3:0", "--ops-listen=127.1.2.3:0"), "info"),
                               (("--listen=[::]:0", "--ops-listen=[::]:0"), "warn"), (wide, "warn")):
            said = []
            for arguments in ((), (ca,), (ca, "--tls-client-names=a", f"--ops-token-file={token}")):
                said.append(self.doors(level, *arguments, *address))
            with self.subTest(address=address):
                self.assertEqual([len(lines) for lines in said], [2, 2, 0], said)
                self.assertIn("everybody who reaches it may bind pods", said[0][0])
                self.assertIn("every certificate of the CA may bind pods", said[1][0])
        with Server(*wide, wait=False) as server:
            server.wait_for('level=warn.*everybody who reaches it may bind pods.*transport="plain HTTP"')
            server.wait_for('level=warn.*everybody who reaches it may look.*transport="plain HTTP"')

    def doors(self, level, *arguments):
        """What is logged at a level of listeners that ask for nothing, on TLS."""
        self.install(self.first)
        with Server(f"--tls-cert={self.certificate}", f"--tls-key={self.key}", *arguments, wait=False) as server:
            server.wait_for("synced")
            return [line for line in server.log if f"level={level}" in line and "closed-by" in line]

    def test_mistakes_are_named(self):
        self.install(self.first)
        nothing = self.directory / "nothing.pem"
        nothing.write_text("s3cret that is no PEM")
        certificate, key = f"--tls-cert={self.certificate}", f"--tls-key={self.key}"
        for arguments, words in (
            ((certificate, "--tls-key=/nonexistent"), ["--tls-key", "/nonexistent", "No such file"]),
            (("--tls-cert=/nonexistent", key), ["--tls-cert", "/nonexistent", "No such file"]),
            ((f"--tls-cert={nothing}", key), ["--tls-cert", str(nothing)]),
            ((certificate, f"--tls-key={nothing}"), ["--tls-key", str(nothing)]),
            ((certificate, f"--tls-key={self.second[1]}"), ["--tls-key", "do not match"]),
            ((certificate, key, f"--tls-client-ca={nothing}"), ["--tls-client-ca", str(nothing)]),
            ((certificate, key, f"--tls-client-ca={self.directory}"), ["--tls-client-ca", "directory"]),
            ((certificate, key, "--tls-client-names=a"), ["tls-client-names", "tls-client-ca"]),
            (("--ops-tls",), ["ops-tls", "tls-cert"]),
            (("--ops-token-file=/nonexistent",), ["--ops-token-file", "No such file"]),
            ((f"--ops-token-file={nothing}",), ["--ops-token-file", str(nothing)]),
        ):
            with self.subTest(arguments):
                result = run("serve", f"--snapshot={SNAPSHOT}", "--listen=127.0.0.1:0",
                             "--ops-listen=127.0.0.1:0", *arguments)
                self.assertIn(result.returncode, (1, 2))
                last = result.stderr.splitlines()[-1]
                for word in words:
                    self.assertIn(word, last)
                self.assertNotIn("s3cret", result.stderr)


class Reload(Case):
    def test_a_new_certificate_and_old_connections(self):
        server = self.start()
        old = self.connect(server)
        self.assertEqual((self.name(old), ask(old)[0]), ("first", 200))
        self.install(self.second)
        self.wait_for_name(server, "second")
        self.assertEqual((self.name(old), ask(old)[0]), ("first", 200))
        self.assertEqual(len([one for one in server.log if "certificate loaded" in one]), 2)

    def test_a_metric_says_when_it_ends(self):
        server = self.start()
        for pair, name in ((self.first, "first"), (self.ca.sign("long", days=60), "long")):
            self.install(pair)
            server.signal(signal.SIGHUP)
            self.wait_for_name(server, name)
            told = subprocess.run(["openssl", "x509", "-noout", "-enddate", "-in", pair[0]], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout.strip().removeprefix("notAfter=")
            metrics = call("GET", server.operations + "/metrics")[1]
            self.assertIn("gpuledger_certificate_not_after_timestamp_seconds "
                          f"{int(ssl.cert_time_to_seconds(told))}\n", metrics)

    def test_at_once_on_hup(self):
        server = self.start()
        self.install(self.second)
        server.signal(signal.SIGHUP)
        server.wait_for("configuration reloaded")
        self.assertEqual(self.name(self.connect(server)), "second")

    def test_calls_under_way_are_not_disturbed(self):
        snapshot = self.directory / "snapshot.json"
        snapshot.write_text(crowded())
        server = self.start("--bind-timeout=30s", "--assign-patience=20s", snapshot=snapshot)
        connection = self.connect(server)
        self.assertEqual(ask(connection)[0], 200)
        answers = []
        waiting = threading.Thread(
            target=lambda: answers.append(ask(connection, "POST", BIND, binding(pod("next", 3)))))
        waiting.start()
        for pair, name in ((self.second, "second"), (self.first, "first")):
            self.install(pair)
            self.wait_for_name(server, name)
        self.assertEqual(answers, [])
        self.assertEqual(
            call("DELETE", server.operations + "/api/v1/snapshot/pods/test/waiting")[0], 204)
        waiting.join(20)
        self.assertEqual(answers, [(200, '{"Error":""}')])

    def test_halves_and_rubbish_change_nothing(self):
        server = self.start()
        self.certificate.write_bytes(self.second[0].read_bytes())  # not yet its key
        server.wait_for('msg="certificate not reloaded" why=.*do not match')
        self.assertEqual(self.name(self.connect(server)), "first")
        self.key.write_bytes(self.second[1].read_bytes())
        self.wait_for_name(server, "second")
        self.key.unlink()
        server.wait_for('msg="certificate not reloaded" why=.*--tls-key.*No such file')
        self.assertEqual(self.name(self.connect(server)), "second")
        self.install(self.first)
        self.wait_for_name(server, "first")
        self.assertLess(len([one for one in server.log if "not reloaded" in one]), 5)

    def test_as_kubelet_changes_a_secret(self):
        for name, pair in (("one", self.first), ("two", self.second)):
            (self.directory / name).mkdir()
            for source, target in zip(pair, ("tls.crt", "tls.key")):
                (self.directory / name / target).write_bytes(source.read_bytes())
        data = self.directory / "..data"
        data.symlink_to("one")
        server = Server(f"--tls-cert={data / 'tls.crt'}", f"--tls-key={data / 'tls.key'}")
        self.addCleanup(server.__exit__)
        self.assertEqual(self.name(self.connect(server)), "first")
        fresh = self.directory / "..data_tmp"
        fresh.symlink_to("two")
        os.rename(fresh, data)
        self.wait_for_name(server, "second")
        self.assertFalse([one for one in server.log if "not reloaded" in one])

    def test_another_client_ca(self):
        ca = self.directory / "clients.crt"
        ca.write_bytes(self.ca.certificate.read_bytes())
        server = self.start(f"--tls-client-ca={ca}")
        old = self.connect(server, self.client)
        self.assertEqual(ask(old)[0], 200)
        ca.write_bytes(self.stranger_ca.certificate.read_bytes())
        server.signal(signal.SIGHUP)
        server.wait_for("configuration reloaded")
        self.assertEqual(ask(self.connect(server, self.stranger))[0], 200)
        with self.assertRaises((ssl.SSLError, ConnectionError, http.client.BadStatusLine)):
            ask(self.connect(server, self.client))
        self.assertEqual(ask(old)[0], 200)


def get(server, path, authorization=None):
    host = server.operations.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": authorization} if authorization else {})
        reply = connection.getresponse()
        return reply.status, reply.getheader("WWW-Authenticate"), reply.read().decode()


class Token(Case):
    def setUp(self):
        super().setUp()
        self.file = self.directory / "token"
        self.file.write_text(TOKEN + "\n")

    def test_who_may_look(self):
        server = self.start(f"--ops-token-file={self.file}")
        # The page is the same everywhere; what it shows it asks for, with the token.
        for path in ("/healthz", "/livez", "/readyz", "/readyz?verbose", "/healthz/", "/",
                     "/page/app.js"):
            self.assertEqual(get(server, path)[0], 200, path)
        closed = ("/metrics", "/version", "/openapi.yaml", "/api/v1/nodes", "/nowhere",
                  "/api/v1/pods/a/b", "/api/v1/wall", "/api/v1/waiting", "/api/v1/decisions")
        for path in closed:
            status, challenge, text = get(server, path)
            self.assertEqual((status, challenge), (401, 'Bearer realm="gpuledger"'), path)
            self.assertIn("a token is needed", json.loads(text)["error"])
            status, challenge, text = get(server, path, "Bearer wrong")
            self.assertEqual(status, 401)
            self.assertIn('error="invalid_token"', challenge)
            self.assertNotIn("wrong", text)
            self.assertIn(get(server, path, f"Bearer {TOKEN}")[0], (200, 404), path)
        for method, path in (("POST", "/api/v1/snapshot/pods"),
                             ("DELETE", "/api/v1/snapshot/pods/ml/trainer")):
            self.assertEqual(call(method, server.operations + path, {})[0], 401)
        # kube-scheduler has none to show.
        self.assertEqual(ask(self.connect(server))[0], 200)

    def test_it_may_change(self):
        server = self.start(f"--ops-token-file={self.file}")
        self.file.write_text("another-one")
        deadline = time.monotonic() + PATIENCE
        while get(server, "/version", "Bearer another-one")[0] != 200:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(get(server, "/version", f"Bearer {TOKEN}")[0], 401)
        # Who takes it away takes it from everybody; probes go on.
        self.file.unlink()
        server.signal(signal.SIGHUP)
        server.wait_for("configuration reloaded")
        self.assertEqual(get(server, "/version", "Bearer another-one")[0], 401)
        self.assertEqual(get(server, "/readyz")[0], 200)
        server.wait_for('msg="token not reloaded; ')
        self.file.write_text(TOKEN)
        server.signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE
        while get(server, "/version", f"Bearer {TOKEN}")[0] != 200:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_over_tls(self):
        server = self.start("--ops-tls", f"--tls-client-ca={self.ca.certificate}",
                            f"--ops-token-file={self.file}")
        port = server.operations.rsplit(":", 1)[1]
        ca, token = f"--ca-file={self.ca.certificate}", f"--token-file={self.file}"
        url = f"--server=https://127.0.0.1:{port}"
        # Who looks needs no certificate; a probe no token either.
        connection = http.client.HTTPSConnection("127.0.0.1", int(port), context=self.context(),
                                                 timeout=20)
        with contextlib.closing(connection):
            deadline = time.monotonic() + PATIENCE
            while ask(connection, path="/readyz")[0] != 200:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            self.assertEqual(ask(connection, path="/metrics")[0], 401)
        shown = run("nodes", url, ca, token)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("gpu-t4-0", shown.stdout)
        for arguments, words in (((url, token), "--ca-file names"),
                                 ((url, ca), "--token-file names"),
                                 ((f"--server=http://127.0.0.1:{port}", token), "--ops-listen"),
                                 ((url, token, f"--ca-file={self.stranger_ca.certificate}"),
                                  "certificate")):
            refused = run("nodes", *arguments)
            self.assertEqual(refused.returncode, 1)
            self.assertIn(words, refused.stderr)
        # It is renewed as the other one is.
        self.install(self.second)
        server.signal(signal.SIGHUP)
        server.wait_for("configuration reloaded")
        with socket.create_connection(("127.0.0.1", int(port)), timeout=20) as plain:
            with self.context().wrap_socket(plain, server_hostname="127.0.0.1") as tls:
                self.assertIn((("commonName", "second"),), tls.getpeercert()["subject"])

    def test_the_program_shows_it(self):
        server = self.start(f"--ops-token-file={self.file}")
        for words in (("nodes",), ("inspect",)):
            bare = run(*words, f"--server={server.operations}")
            self.assertEqual(bare.returncode, 1)
            self.assertIn("a token is needed", bare.stderr)
            shown = run(*words, f"--server={server.operations}", f"--token-file={self.file}")
            self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("gpu-t4-0", run("nodes", f"--server={server.operations}",
                                      env={"GPULEDGER_TOKEN_FILE": str(self.file)}).stdout)
        lost = run("nodes", f"--server={server.operations}", "--token-file=/nonexistent")
        self.assertIn("option '--token-file': ", lost.stderr)


class Secrets(Case):
    def test_they_do_not_appear(self):
        token = self.directory / "token"
        token.write_text(TOKEN)
        options = [f"--tls-client-ca={self.ca.certificate}", f"--ops-token-file={token}",
                   "--log-level=debug", "--log-format=json"]
        server = self.start(*options)
        secrets = [TOKEN] + [
            line for pair in (self.first, self.second) for line in pair[1].read_text().split("\n")
            if line and not line.startswith("-----")
        ]
        seen = []
        for authorization in (None, f"Bearer {TOKEN}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN):
            for path in ("/", "/metrics", "/version", "/openapi.yaml", "/api/v1/nodes", "/readyz?verbose",
                         "/api/v1/nodes?output=table", "/api/v1/nodes/gpu-t4-0", "/nowhere"):
                seen.append(repr(get(server, path, authorization)))
        connection = self.connect(server, self.client)
        seen.append(ask(connection, "POST", FILTER, {"Pod": pod("a", 1), "NodeNames": ["gpu-t4-0"]})[1])
        seen.append(ask(connection, path="/gpushare-scheduler/inspect")[1])
        for pair in (None, self.stranger):
            with self.assertRaises((ssl.SSLError, ConnectionError, http.client.BadStatusLine)):
                ask(self.connect(server, pair))
        # Files that go wrong: halves, and each in the other's place.
        self.certificate.write_bytes(self.second[0].read_bytes())
        server.wait_for("certificate not reloaded")
        self.certificate.write_bytes(self.second[1].read_bytes())
        token.write_bytes(self.second[1].read_bytes())
        server.signal(signal.SIGHUP)
        get(server, "/metrics", f"Bearer {TOKEN}")
        server.wait_for("token not reloaded")
        printed = run("serve", f"--tls-cert={self.certificate}", f"--tls-key={self.key}", *options,
                      "--print-config")
        seen += [printed.stdout, printed.stderr]
        self.assertIn(str(token), printed.stdout)
        for wrong in ([f"--tls-cert={self.key}", f"--tls-key={self.key}"],
                      [f"--ops-token-file={self.key}"], [f"--config={self.key}"]):
            result = run("serve", f"--snapshot={SNAPSHOT}", "--listen=127.0.0.1:0",
                         "--ops-listen=127.0.0.1:0", *wrong)
            self.assertNotEqual(result.returncode, 0)
            seen += [result.stdout, result.stderr]
        seen.append(run("nodes", f"--server={server.operations}", f"--token-file={self.key}").stderr)
        server.signal(signal.SIGTERM)
        server.exit_code()
        seen += server.log
        everything = "\n".join(seen)
        self.assertIn("invalid_token", everything)
        for secret in secrets:
            self.assertNotIn(secret, everything)


if __name__ == "__main__":
    unittest.main()
