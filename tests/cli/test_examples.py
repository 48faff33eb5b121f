#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from program import PROGRAM, ROOT, SNAPSHOT, environment

EXAMPLES = ROOT / "examples"


class Demo(unittest.TestCase):
    def demo(self, program, **env):
        return subprocess.run(
            [EXAMPLES / "demo"],
            env=environment(GPULEDGER=str(program), **env),
            capture_output=True, text=True, timeout=60, check=False,
        )

    def setUp(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")

    def test_every_answer_is_as_expected(self):
        result = self.demo(PROGRAM)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertIn("Every answer was as expected.", result.stdout)
        self.assertNotIn("\x1b", result.stdout)

    def test_readme_shows_what_it_prints(self):
        [shown] = re.findall(r"^```\n(NODE .*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
        printed = self.demo(PROGRAM).stdout.rpartition("What every card holds now\n")[2]
        self.assertIn(shown, re.sub(r"^  ", "", printed, flags=re.M))

    def test_what_the_caller_has_set_does_not_matter(self):
        result = self.demo(PROGRAM, PORT="1", LOG_LEVEL="error", KUBECONFIG="/nonexistent",
                           GPULEDGER_OPS_LISTEN="off")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_program_that_does_not_start(self):
        result = self.demo("/bin/false")
        self.assertEqual(result.returncode, 1)
        self.assertIn("gpuledger did not start", result.stderr)


class Snapshot(unittest.TestCase):
    def test_it_is_what_kubectl_writes(self):
        document = json.loads(SNAPSHOT.read_text())
        self.assertEqual((document["kind"], document["apiVersion"]), ("List", "v1"))
        uids = [item["metadata"]["uid"] for item in document["items"]]
        self.assertEqual(len(uids), len(set(uids)))
        self.assertEqual(SNAPSHOT.read_text(),
                         json.dumps(document, indent=4, sort_keys=True) + "\n")


class FakeGpus(unittest.TestCase):
    """Against a kubectl that writes down what it is asked."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.kubectl = pathlib.Path(directory.name) / "kubectl"
        self.log = pathlib.Path(directory.name) / "log"
        self.kubectl.write_text(
            "#!/bin/bash\n"
            f"printf '%s\\n' \"$*\" >>'{self.log}'\n"
            "[[ $1 != get || $* != *jsonpath* ]] || printf 'w1\\nw2\\n'\n"
        )
        self.kubectl.chmod(0o755)

    def run_script(self, *arguments, **env):
        return subprocess.run(
            [EXAMPLES / "kind" / "fake-gpus", *arguments],
            env={**os.environ, "KUBECTL": str(self.kubectl), **env},
            capture_output=True, text=True, timeout=20, check=False,
        )

    def test_workers_get_cards(self):
        result = self.run_script("4", "31")
        self.assertEqual(result.returncode, 0, result.stderr)
        calls = self.log.read_text().splitlines()
        for name in ("w1", "w2"):
            patches = [c for c in calls if c.startswith(f"patch node {name} --subresource=status")]
            self.assertEqual(len(patches), 1)
            status = json.loads(patches[0].split(" -p ")[1])["status"]
            wanted = {"aliyun.com/gpu-mem": "124", "aliyun.com/gpu-count": "4"}
            self.assertEqual(status, {"capacity": wanted, "allocatable": wanted})
            self.assertIn(f"label node {name} --overwrite gpushare=true", calls)

    def test_named_nodes(self):
        self.assertEqual(self.run_script(NODES="a b").returncode, 0)
        calls = self.log.read_text()
        self.assertIn("patch node a ", calls)
        self.assertIn("patch node b ", calls)
        self.assertNotIn("w1", calls)

    def test_bad_numbers(self):
        for arguments in (("0",), ("x",), ("2", "-1"), ("2", "1;true")):
            self.assertEqual(self.run_script(*arguments).returncode, 2, arguments)
        self.assertFalse(self.log.exists())


class Manifests(unittest.TestCase):
    def load(self, name):
        try:
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("python3-yaml is not installed")
        return list(yaml.safe_load_all((EXAMPLES / name).read_text()))

    def test_pods_ask_for_shares(self):
        for file in sorted((EXAMPLES / "pods").glob("*.yaml")):
            for item in self.load(f"pods/{file.name}"):
                spec = item["spec"].get("template", item)["spec"]
                amounts = [c["resources"]["limits"]["aliyun.com/gpu-mem"] for c in spec["containers"]]
                self.assertTrue(all(isinstance(a, int) and a > 0 for a in amounts), file)

    def test_kind_mounts_the_scheduler_configuration(self):
        (cluster,) = self.load("kind/cluster.yaml")
        (scheduler,) = self.load("kind/scheduler.yaml")
        control_plane = cluster["nodes"][0]
        mount, secrets = control_plane["extraMounts"]
        self.assertTrue((EXAMPLES / "kind" / mount["hostPath"]).exists())
        for patch in control_plane["kubeadmConfigPatches"]:
            self.assertEqual(patch.count(mount["containerPath"]), 1)
            for line in ("hostPath: /etc/gpuledger", "mountPath: /etc/gpuledger"):
                self.assertEqual(patch.count(line + "\n"), 1)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PROGRAM, "certs"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            made = pathlib.Path(folder) / secrets["hostPath"]
            for extender in scheduler["extenders"]:
                for key in ("caFile", "certFile", "keyFile"):
                    name = extender["tlsConfig"][key].removeprefix(secrets["containerPath"] + "/")
                    self.assertTrue((made / name).exists(), name)
        for extender in scheduler["extenders"]:
            self.assertTrue(extender["nodeCacheCapable"])
            self.assertEqual(extender["ignorable"], "bindVerb" not in extender)


if __name__ == "__main__":
    unittest.main()
