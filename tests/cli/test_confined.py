#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program as the shipped Deployments confine it: what they say, and that it can live so."""

import pathlib
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import program
import yaml
from program import ROOT, Server, listing, node, pod

CAGE = pathlib.Path(__file__).resolve().parent / "cage.py"
MANIFESTS = ROOT / "manifests"


def deployments():
    """(path, pod's spec) of all of them that say how pods are confined."""
    for path in sorted(MANIFESTS.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document.get("kind") == "Deployment" and "overlays" not in path.parts:
                yield path.relative_to(MANIFESTS), document["spec"]["template"]["spec"]


def user():
    """Who the program runs as."""
    return next(spec["securityContext"]["runAsUser"] for path, spec in deployments()
                if path == pathlib.Path("base/deployment.yaml"))


class Manifests(unittest.TestCase):
    def test_pods_may_do_nothing(self):
        found = list(deployments())
        self.assertGreaterEqual(len(found), 2)
        for path, spec in found:
            with self.subTest(str(path)):
                context = spec["securityContext"]
                self.assertIs(context["runAsNonRoot"], True)
                self.assertGreater(context["runAsUser"], 0)
                self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
                for name in ("hostNetwork", "hostPID", "hostIPC"):
                    self.assertNotIn(name, spec)
                for volume in spec.get("volumes", []):
                    self.assertNotIn("hostPath", volume)
                for container in spec["containers"]:
                    own = container["securityContext"]
                    self.assertIs(own["allowPrivilegeEscalation"], False)
                    self.assertIs(own["readOnlyRootFilesystem"], True)
                    self.assertEqual(own["capabilities"], {"drop": ["ALL"]})
                    self.assertNotIn("privileged", own)

    def test_overlays_do_not_loosen_that(self):
        for path in MANIFESTS.rglob("*.yaml"):
            if "overlays" in path.parts:
                self.assertNotIn("securityContext", path.read_text(), path)


class Confined(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.directory.chmod(0o755)
        binary = self.directory / "gpuledger"  # where that user can read it
        shutil.copy(program.PROGRAM, binary)
        binary.chmod(0o755)
        self.cage = [sys.executable, str(CAGE), str(user())]
        wrapper = self.directory / "wrapper"
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join([*self.cage, str(binary)])} "$@"\n')
        wrapper.chmod(0o755)
        before, program.PROGRAM = program.PROGRAM, str(wrapper)
        self.addCleanup(setattr, program, "PROGRAM", before)
        # The cage's own helper has to be readable, too.
        answer = self.run_caged("test", "-r", str(CAGE), "-a", "-x", str(binary))
        if answer.returncode != 0:
            self.skipTest("no such cage can be made here: " + (answer.stderr.strip() or "unreadable"))

    def run_caged(self, *command):
        return subprocess.run([*self.cage, *command], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def test_the_cage_holds(self):
        answer = self.run_caged("touch", str(self.directory / "x"))
        self.assertIn("Read-only file system", answer.stderr)
        self.assertEqual(self.run_caged("unshare", "--user", "true").returncode, -signal.SIGSYS)

    def test_it_serves_and_ends_in_it(self):
        snapshot = self.directory / "snapshot.json"
        one = pod("a", 4)
        snapshot.write_text(listing(node("n", 2, 8), one))
        with Server(snapshot=snapshot) as server:
            status = dict(
                line.split(":\t", 1) for line in
                pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
                if ":\t" in line)
            self.assertEqual(status["Name"], "gpuledger")
            self.assertEqual(set(status["Uid"].split()), {str(user())})
            for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                self.assertEqual(int(status[name], 16), 0, name)
            self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
            self.assertEqual(server.filter(one, ["n"])["NodeNames"], ["n"])
            self.assertEqual(server.bind(one, "n"), {"Error": ""})
            for path in ("/readyz", "/metrics", "/api/v1/nodes", "/api/v1/audit"):
                self.assertEqual(server.get(path)[0], 200, path)
            server.signal(signal.SIGHUP)
            server.wait_for("reload")
            server.signal(signal.SIGTERM)
            self.assertEqual(server.exit_code(), 0, server.log)


class Hardening(unittest.TestCase):
    """How the program is built."""

    def setUp(self):
        if not shutil.which("readelf"):
            self.skipTest("binutils are not installed")
        self.symbols = self.readelf("--dyn-syms")
        if any(f"__{name}san_" in self.symbols for name in "atu"):
            self.skipTest("a sanitizer's build is another thing")

    def readelf(self, what):
        return subprocess.run(["readelf", "-W", what, program.PROGRAM], capture_output=True,
                              text=True, check=True).stdout

    def test_memory_cannot_be_written_and_run(self):
        for line in self.readelf("--segments").splitlines():
            fields = line.split()
            if fields and fields[0] in ("LOAD", "GNU_STACK"):
                self.assertNotIn("WE", "".join(fields[6:-1]), line)

    def test_addresses_are_chance_and_tables_read_only(self):
        dynamic = self.readelf("--dynamic")
        self.assertRegex(dynamic, r"FLAGS_1.*NOW.*PIE")
        self.assertIn("GNU_RELRO", self.readelf("--segments"))
        self.assertNotRegex(dynamic, r"R(UN)?PATH")

    def test_the_stack_and_copies_are_checked(self):
        self.assertIn("__stack_chk_fail", self.symbols)
        self.assertIn("__memcpy_chk", self.symbols)

    @unittest.skipUnless(platform.machine() == "x86_64", "elsewhere it has another name")
    def test_indirect_calls_have_marks(self):
        # The C library's start files bring a few.
        self.assertGreater(pathlib.Path(program.PROGRAM).read_bytes().count(b"\xf3\x0f\x1e\xfa"), 100)


if __name__ == "__main__":
    unittest.main()
