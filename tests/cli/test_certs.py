#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpuledger certs`: what it makes, keeps and renews, and that it shuts out everybody else."""

import base64
import datetime
import http.client
import json
import os
import pathlib
import re
import shutil
import ssl
import stat
import subprocess
import tempfile
import unittest

import yaml
from program import JSON, PROGRAM, ROOT, Server, environment, listing, node, pod, run

NAMES = ["ca.crt", "ca.key", "gpuledger.crt", "gpuledger.key", "kube-scheduler.crt",
         "kube-scheduler.key", "token"]


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.folder = self.directory / "gpuledger-tls"

    def certs(self, *arguments, status=0):
        done = run("certs", f"--folder={self.folder}", *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def files(self):
        return {path.name: path.read_text() for path in self.folder.iterdir()}

    def openssl(self, *arguments):
        return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True,
                              check=True, cwd=self.folder).stdout


def data(document):
    """{Secret: {key: text}}."""
    return {
        item["metadata"]["name"]: {key: base64.b64decode(value).decode()
                                   for key, value in item["data"].items()}
        for item in yaml.safe_load(document)["items"]
    }


class Made(Case):
    def test_files_and_secrets_are_the_same(self):
        done = self.certs()
        files = self.files()
        self.assertEqual(sorted(files), NAMES)
        for name in NAMES:
            mode = stat.S_IMODE((self.folder / name).stat().st_mode)
            self.assertEqual(mode, 0o644 if name.endswith(".crt") else 0o600, name)
        self.assertEqual(stat.S_IMODE(self.folder.stat().st_mode), 0o700)
        self.assertEqual(data(done.stdout), {
            "gpuledger-tls": {"ca.crt": files["ca.crt"], "tls.crt": files["gpuledger.crt"],
                              "tls.key": files["gpuledger.key"]},
            "gpuledger-kube-scheduler": {
                "ca.crt": files["ca.crt"], "tls.crt": files["kube-scheduler.crt"],
                "tls.key": files["kube-scheduler.key"]},
            "gpuledger-ops": {"ca.crt": files["ca.crt"], "token": files["token"]},
        })
        for item in yaml.safe_load(done.stdout)["items"]:
            self.assertEqual((item["apiVersion"], item["kind"], item["metadata"]["namespace"]),
                             ("v1", "Secret", "kube-system"))
        # The key that makes all others is not for the cluster, and none is for people's eyes.
        self.assertRegex(files["token"], "^[0-9a-f]{64}$")
        for name in ("ca.key", "gpuledger.key", "kube-scheduler.key", "token"):
            for line in files[name].splitlines():
                if not line.startswith("-----"):
                    self.assertNotIn(line, done.stderr)
        self.assertNotIn(files["ca.key"], [text for keys in data(done.stdout).values()
                                           for text in keys.values()])

    def test_openssl_agrees(self):
        self.certs("--hosts=10.0.0.7, gpu.example.com")
        verify = ("verify", "-x509_strict", "-CAfile", "ca.crt", "-purpose")
        for host in ("gpuledger.kube-system.svc", "gpuledger-ops.kube-system.svc", "localhost",
                     "gpu.example.com"):
            self.openssl(*verify, "sslserver", "-verify_hostname", host, "gpuledger.crt")
        for address in ("127.0.0.1", "::1", "10.0.0.7"):
            self.openssl(*verify, "sslserver", "-verify_ip", address, "gpuledger.crt")
        self.openssl(*verify, "sslclient", "kube-scheduler.crt")
        # Neither does for what the other is, nor signs anything.
        for purpose, name in (("sslclient", "gpuledger.crt"), ("sslserver", "kube-scheduler.crt")):
            with self.assertRaises(subprocess.CalledProcessError):
                self.openssl(*verify, purpose, name)
        for name in ("gpuledger.crt", "kube-scheduler.crt"):
            self.assertIn("CA:FALSE", self.openssl("x509", "-in", name, "-noout", "-text"))
        self.assertIn("CA:TRUE, pathlen:0",
                      self.openssl("x509", "-in", "ca.crt", "-noout", "-text"))

    def test_nothing_is_kept_without_a_folder(self):
        first, second = (data(run("certs", "--folder=").stdout) for _ in range(2))
        self.assertEqual(sorted(first), ["gpuledger-kube-scheduler", "gpuledger-ops", "gpuledger-tls"])
        self.assertNotEqual(first["gpuledger-tls"]["ca.crt"], second["gpuledger-tls"]["ca.crt"])
        # As in a pod, where nothing can be written.
        done = subprocess.run([PROGRAM, "certs", "--folder="], cwd="/proc", env=environment(),
                              capture_output=True, text=True, check=True)
        self.assertEqual(len(data(done.stdout)), 3)
        self.assertEqual(done.stderr, "")  # a pod's log has both

    def test_a_namespace_is_one(self):
        for name in ("", "Kube_System", "a: b", "kube.system", "-a", "a-", "a" * 64):
            refused = self.certs(f"--namespace={name}", status=2)
            self.assertEqual(refused.stdout, "")
            self.assertEqual(refused.stderr,
                             f"gpuledger: option '--namespace': '{name}' is not valid, expected a namespace: at most "
                             "63 lower-case letters, digits and '-', none of them at an end, such as 'kube-system'\n")
        self.certs(f"--namespace={'a' * 63}")

    def test_other_names(self):
        done = self.certs("--clients=kube-scheduler, kube-apiserver", "--namespace=gpu")
        secrets = data(done.stdout)
        self.assertIn("gpuledger-kube-apiserver", secrets)
        self.assertIn("DNS:gpuledger.gpu.svc,",
                      self.openssl("x509", "-in", "gpuledger.crt", "-noout", "-text"))
        self.assertIn("CN = kube-apiserver",
                      self.openssl("x509", "-in", "kube-apiserver.crt", "-noout", "-subject"))
        for name in ("ca", "ops", "tls", "gpuledger", "../x", "A", "a b", "-a", "a" * 51):
            refused = self.certs(f"--clients={name}", status=2)
            self.assertIn("--clients", refused.stderr)
            self.assertEqual(refused.stdout, "")


class Again(Case):
    def test_what_is_good_stays(self):
        first = self.certs().stdout
        before = self.files()
        second = self.certs()
        self.assertEqual(second.stdout, first)
        self.assertEqual(self.files(), before)
        self.assertEqual(second.stderr.count("kept"), 4)

    def test_renew(self):
        self.certs()
        before = self.files()
        self.certs("--renew")
        after = self.files()
        same = {name for name in NAMES if before[name] == after[name]}
        self.assertEqual(same, {"ca.crt", "ca.key"})
        self.openssl("verify", "-CAfile", "ca.crt", "gpuledger.crt")

    def changed(self, *arguments):
        """What another run makes anew."""
        before = self.files()
        self.certs(*arguments)
        after = self.files()
        return sorted(name for name in before if before[name] != after[name])

    def test_what_is_not_good_goes(self):
        self.certs()
        server = ["gpuledger.crt", "gpuledger.key"]
        client = ["kube-scheduler.crt", "kube-scheduler.key"]
        # Another host.
        self.assertEqual(self.changed("--hosts=elsewhere"), server)
        self.assertEqual(self.changed("--hosts=elsewhere"), [])
        # Somebody else's work, as good as ours; then for something else, and of another name.
        def sign(days, usage, subject="/CN=kube-scheduler"):
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                         "-nodes", "-subj", subject, "-days", days, "-CA", "ca.crt", "-CAkey", "ca.key",
                         "-addext", "basicConstraints=critical,CA:FALSE",
                         *(("-addext", f"extendedKeyUsage={usage}") if usage else ()),
                         "-keyout", "kube-scheduler.key", "-out", "kube-scheduler.crt")
        sign(365, "clientAuth")
        self.assertEqual(self.changed(), [])
        for days, usage, subject in ((365, "serverAuth", "/CN=kube-scheduler"),
                                     (365, "", "/CN=kube-scheduler"),
                                     (365, "clientAuth", "/CN=another")):
            sign(days, usage, subject)
            self.assertEqual(self.changed(), client, (usage, subject))
        # Halves, rubbish, another CA's.
        (self.folder / "kube-scheduler.key").write_text(self.files()["gpuledger.key"])
        self.assertEqual(self.changed(), client)
        (self.folder / "gpuledger.crt").write_text("nothing")
        self.assertEqual(self.changed("--hosts=elsewhere"), server)
        (self.folder / "token").write_text(" \n")
        self.assertEqual(self.changed("--hosts=elsewhere"), ["token"])
        other = self.directory / "other"
        run("certs", f"--folder={other}")
        for name in client:
            shutil.copy(other / name, self.folder / name)
        self.assertEqual(self.changed("--hosts=elsewhere"), client)

    def test_a_third_of_the_time(self):
        self.certs()
        (self.directory / "index").touch()
        (self.directory / "ca.cnf").write_text(
            f"[ca]\ndefault_ca=c\n[c]\ndatabase={self.directory}/index\nnew_certs_dir={self.directory}\n"
            "certificate=ca.crt\nprivate_key=ca.key\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n"
            "unique_subject=no\n[p]\ncommonName=supplied\n[e]\nextendedKeyUsage=clientAuth\n")
        self.openssl("req", "-new", "-key", "kube-scheduler.key", "-subj", "/CN=kube-scheduler",
                     "-out", self.directory / "csr")
        # Of 300 days so many are left.
        for left, expected in ((120, []), (80, ["kube-scheduler.crt", "kube-scheduler.key"])):
            now = datetime.datetime.now(datetime.timezone.utc)
            begin, end = (f"{now + datetime.timedelta(days=days):%Y%m%d%H%M%SZ}"
                          for days in (left - 300, left))
            self.openssl("ca", "-batch", "-config", self.directory / "ca.cnf", "-extensions", "e",
                         "-in", self.directory / "csr", "-startdate", begin, "-enddate", end,
                         "-out", "kube-scheduler.crt", "-notext")
            self.assertEqual(self.changed(), expected, left)

    def test_a_lost_key_of_the_ca_is_said(self):
        self.certs()
        (self.folder / "ca.key").unlink()
        before = self.files()
        self.assertIn("not ca.key", self.certs(status=1).stderr)
        (self.folder / "ca.key").write_text(before["gpuledger.key"])
        self.assertIn("do not belong together", self.certs(status=1).stderr)
        (self.folder / "ca.key").unlink()
        self.assertEqual(self.files(), before)

    def test_what_cannot_be_written_is_said(self):
        self.folder.write_text("a file")
        self.assertEqual(self.certs(status=1).stdout, "")
        self.folder.unlink()
        self.certs()
        (self.folder / "token").unlink()
        (self.folder / "token").mkdir()
        refused = self.certs(status=1)
        self.assertIn("token", refused.stderr)
        self.assertEqual(refused.stdout, "")
        with open("/dev/full", "w", encoding="ascii") as full:
            shutil.rmtree(self.folder)
            done = subprocess.run([PROGRAM, "certs", f"--folder={self.folder}"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)


class Installed(Case):
    """The arguments of the shipped Deployment, with the Secrets' files where it mounts them."""

    def start(self, **options):
        secrets = data(self.certs().stdout)
        documents = yaml.safe_load_all((ROOT / "manifests/base/deployment.yaml").read_text())
        spec = next(documents)["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        volumes = {volume["name"]: volume["secret"]["secretName"] for volume in spec["volumes"]}
        arguments = [one for one in container["args"][1:] if "listen=" not in one]
        for mount in container["volumeMounts"]:
            place = self.directory / mount["name"]
            place.mkdir()
            for key, text in secrets[volumes[mount["name"]]].items():
                (place / key).write_text(text)
            arguments = [one.replace(mount["mountPath"] + "/", f"{place}/") for one in arguments]
        self.assertNotIn("/etc/gpuledger", " ".join(arguments))
        server = Server(*arguments, **options)
        self.addCleanup(server.__exit__)
        return server

    def scheduler(self, path):
        """Client contexts as the shipped configuration of kube-scheduler has them."""
        (config,) = yaml.safe_load_all((ROOT / path).read_text())
        files = {"ca.crt": "ca.crt", "tls.crt": "kube-scheduler.crt", "tls.key": "kube-scheduler.key"}
        for extender in config["extenders"]:
            tls = extender["tlsConfig"]
            ca, certificate, key = (self.folder / files[pathlib.PurePath(tls[name]).name]
                                    for name in ("caFile", "certFile", "keyFile"))
            context = ssl.create_default_context(cafile=ca)
            context.load_cert_chain(certificate, key)
            yield tls["serverName"], context

    def bind(self, server, one, context=None, name=None, tls=True):
        """What a bind is answered; an exception if nothing is."""
        host, port = server.scheduler.removeprefix("http://").split(":")
        meta = one["metadata"]
        body = json.dumps({"PodName": meta["name"], "PodNamespace": meta["namespace"],
                           "PodUID": meta["uid"], "Node": "n"})
        if tls:
            connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
            # Go's client looks for tlsConfig.serverName, whatever the address.
            connect = http.client.HTTPConnection.connect
            connect(connection)
            connection.sock = context.wrap_socket(connection.sock, server_hostname=name or host)
        else:
            connection = http.client.HTTPConnection(host, int(port), timeout=20)
        try:
            connection.request("POST", "/gpushare-scheduler/bind", body, JSON)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()

    def test_a_forged_bind_is_refused(self):
        snapshot = self.directory / "snapshot.json"
        snapshot.write_text(listing(node("n", 2, 8), pod("a", 2), pod("b", 2), pod("victim", 2)))
        server = self.start(snapshot=snapshot)
        self.assertFalse([line for line in server.log if "closed-by" in line])
        trusting = ssl.create_default_context(cafile=self.folder / "ca.crt")
        other = self.directory / "other"
        run("certs", f"--folder={other}")
        foreign = ssl.create_default_context(cafile=self.folder / "ca.crt")
        foreign.load_cert_chain(other / "kube-scheduler.crt", other / "kube-scheduler.key")
        servers = ssl.create_default_context(cafile=self.folder / "ca.crt")
        servers.load_cert_chain(self.folder / "gpuledger.crt", self.folder / "gpuledger.key")
        self.certs("--clients=kube-scheduler,kube-apiserver")
        named = ssl.create_default_context(cafile=self.folder / "ca.crt")
        named.load_cert_chain(self.folder / "kube-apiserver.crt", self.folder / "kube-apiserver.key")
        for context in (trusting, foreign, servers, named):
            with self.assertRaises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                self.bind(server, pod("victim", 2), context)
        with self.assertRaises((OSError, http.client.HTTPException)):
            self.bind(server, pod("victim", 2), tls=False)
        # kube-scheduler of either manifest gets in, by the same certificate.
        for letter, path in (("a", "manifests/scheduler/kube-scheduler.yaml"),
                             ("b", "manifests/second-scheduler/kube-scheduler.yaml")):
            (name, context), (again, _) = self.scheduler(path)
            self.assertEqual(name, again)
            self.assertEqual(self.bind(server, pod(letter, 2), context, name), (200, '{"Error":""}'))
        shown = run("nodes", f"--server=https{server.operations[4:]}", "-o", "json",
                    f"--ca-file={self.folder / 'ca.crt'}", f"--token-file={self.folder / 'token'}")
        bound = {one["name"] for each in json.loads(shown.stdout)["nodes"] for one in each["pods"]}
        self.assertEqual(bound, {"a", "b"})

    def test_curl_as_the_documents_have_it(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        server = self.start()
        port = server.operations.rsplit(":", 1)[1]
        def curl(*arguments):
            return subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}",
                                   "--cacert", self.folder / "ca.crt", *arguments],
                                  capture_output=True, text=True, check=False).stdout
        url = f"https://localhost:{port}/api/v1/nodes"
        token = (self.folder / "token").read_text()
        self.assertEqual(curl(url), "401")
        self.assertEqual(curl("-H", f"Authorization: Bearer {token}", url), "200")
        self.assertEqual(curl(f"https://localhost:{port}/readyz"), "200")

    def test_renewed_while_it_runs(self):
        server = self.start()
        before = server.wait_for("certificate loaded.*sha256=")
        self.certs("--renew")
        for name, key in (("gpuledger.crt", "tls.crt"), ("gpuledger.key", "tls.key")):
            (self.directory / "tls-new").mkdir(exist_ok=True)
            (self.directory / "tls-new" / key).write_text((self.folder / name).read_text())
        # A kubelet's way is one rename; here the two files come one after the other.
        mounted = pathlib.Path(re.search(r"--tls-cert=(\S+)", " ".join(
            pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_text().split("\0"))).group(1)).parent
        for key in ("tls.key", "tls.crt"):
            os.replace(self.directory / "tls-new" / key, mounted / key)
        fingerprint = subprocess.run(
            ["openssl", "x509", "-in", mounted / "tls.crt", "-noout", "-fingerprint", "-sha256"],
            capture_output=True, text=True, check=True).stdout.split("=")[1].strip()
        expected = fingerprint.replace(":", "").lower()
        self.assertNotIn(expected, before)
        server.wait_for(f"certificate loaded.*sha256=\"?{expected}")


if __name__ == "__main__":
    unittest.main()
