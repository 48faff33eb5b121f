#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands that reach the extender through its Service, by kubectl."""

import base64
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from pki import Authority
from program import PROGRAM, SNAPSHOT, Server, environment, run

# Answers as kubectl does: the Secret, and a port-forward that lasts until it is ended.
KUBECTL = """#!/usr/bin/env python3
import json, os, signal, sys
folder = os.path.dirname(os.path.abspath(__file__))
with open(folder + "/calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
if sys.argv[1] == "get":
    secret = open(folder + "/secret").read() if os.path.exists(folder + "/secret") else ""
    sys.stdout.write(secret)
    sys.exit(0 if secret else 1)
port = open(folder + "/port").read() if os.path.exists(folder + "/port") else ""
if not port:
    sys.exit("no such service")
with open(folder + "/pid", "w") as pid:  # before the line after which it may be ended at any time
    pid.write(str(os.getpid()))
print("Forwarding from 127.0.0.1:%s -> 39998" % port, flush=True)
for _ in range(3):
    print("Handling connection for %s" % port, flush=True)
signal.pause()
"""


class Service(unittest.TestCase):
    """The extender of a cluster, reached through kubectl."""

    def fails(self, code, message, *arguments, env=None):
        result = run(*arguments, env=env)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (code, "", f"gpuledger: {message}\n"))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in (("kubectl", KUBECTL), ("token", "s3cret\n")):
            (self.folder / name).write_text(text)
        (self.folder / "kubectl").chmod(0o755)
        self.path = {"PATH": f"{folder.name}:{os.environ['PATH']}"}

    def serve(self, *arguments):
        server = Server(*arguments)
        self.addCleanup(server.__exit__)
        (self.folder / "port").write_text(server.operations.rsplit(":", 1)[1])
        return server

    def secret(self, **data):
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        (self.folder / "secret").write_text(json.dumps({"kind": "Secret", "data": encoded}))

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()

    def test_it_is_found_with_its_token(self):
        self.serve(f"--ops-token-file={self.folder}/token")
        self.secret(token="s3cret")
        for words in (["nodes"], ["pods"], ["inspect"], ["explain", "ml/tiny-llm-0"],
                      ["resume", "gpu-t4-0"], ["audit"]):
            with self.subTest(words):
                result = run(*words, "--service=gpus/ops", env=self.path)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.calls()[:2], ["get secret -n gpus ops -o json",
                                            "port-forward -n gpus service/ops :39998 --address=127.0.0.1"])
        self.assertRaises(OSError, os.kill, int((self.folder / "pid").read_text()), 0)

    def test_over_tls_it_trusts_the_ca_of_the_secret(self):
        authority, other = Authority(self.folder), Authority(self.folder, "other")
        certificate, key = authority.sign("ops")
        self.serve("--ops-tls", f"--tls-cert={certificate}", f"--tls-key={key}",
                   f"--ops-token-file={self.folder}/token")
        self.secret(**{"token": "s3cret", "ca.crt": authority.certificate.read_text()})
        result = run("nodes", "-oname", "--service=gpus/ops", env=self.path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.secret(**{"token": "s3cret", "ca.crt": other.certificate.read_text()})
        result = run("nodes", "-oname", "--service=gpus/ops", env=self.path)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("--ca-file names the CA's certificate", result.stderr)

    def test_a_token_is_one_line(self):
        server = self.serve(f"--ops-token-file={self.folder}/token")
        (self.folder / "lines").write_text("s3cret\nX-Other: header\n")
        self.fails(2, f"option '--token-file': \"{self.folder}/lines\" has more than one line", "nodes",
                   f"--server={server.operations}", f"--token-file={self.folder}/lines")
        self.secret(token="s3cret\nX-Other: header")
        self.fails(1, "the Secret's token has more than one line", "nodes", "--service=gpus/ops", env=self.path)

    def test_slashes_at_the_end_of_the_server_do_not_matter(self):
        server = self.serve()
        for slashes in ("", "/", "//"):
            with self.subTest(slashes):
                result = run("nodes", "-oname", f"--server={server.operations}{slashes}")
                self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("'http://127.0.0.1:1/api/v1/nodes'", run("nodes", "--server=http://127.0.0.1:1//").stderr)

    def test_as_a_plugin_it_finds_the_usual_one(self):
        server = self.serve()
        self.secret(token="unused")
        (self.folder / "kubectl-gpuledger").symlink_to(PROGRAM)

        def plugin(*arguments, **env):
            return subprocess.run([self.folder / "kubectl-gpuledger", *arguments], capture_output=True, text=True,
                                  check=False, env=environment(**self.path, **env))

        self.assertEqual(plugin("nodes", "-oname").stdout.splitlines()[0], "node/gpu-mib-0")
        self.assertIn("get secret -n kube-system gpuledger-ops -o json", self.calls())
        before = self.calls()
        for words, env in ((["nodes", "--server", server.operations], {}),
                           (["nodes"], {"GPULEDGER_SERVER": server.operations}),
                           (["nodes", f"--snapshot={SNAPSHOT}"], {})):
            self.assertEqual(plugin(*words, **env).returncode, 0)
        self.assertEqual(self.calls(), before)

    def test_who_may_not_read_the_secret_is_told(self):
        self.serve(f"--ops-token-file={self.folder}/token")
        result = run("nodes", "--service=gpus/ops", env=self.path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("the Secret gpus/ops was not read; --token-file and --ca-file name files", result.stderr)
        self.assertIn("status 401", result.stderr)

    def test_what_fails_is_said(self):
        self.secret(token="x")
        for service in ("ops", "/ops", "a/", "a/b/c"):
            self.fails(1, f"option '--service': '{service}' is not NAMESPACE/NAME", "nodes", "--service", service)
        result = run("nodes", "--service=gpus/ops", env=self.path)
        self.assertIn("'kubectl port-forward -n gpus service/ops' ended; is gpuledger installed there?", result.stderr)
        self.fails(1, "option '--service': kubectl cannot be run: Failed to execute child process “kubectl” "
                      "(No such file or directory); --server asks without it", "nodes", "--service=gpus/ops",
                   env={"PATH": "/nowhere"})
        self.fails(2, "option '--service': a cluster is given as well; keep one of them", "nodes",
                   f"--snapshot={SNAPSHOT}", "--service=gpus/ops")


if __name__ == "__main__":
    unittest.main()
