#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every subcommand and every way not to understand it: exit status 2, and one line that names the fault. What is
understood and cannot be done ends with 1, and a no with 3 (docs/api.md)."""

import json
import pathlib
import re
import tempfile
import unittest

from program import SNAPSHOT, explain, run

COMMANDS = re.findall(r"^  ([a-z]+) ", run("--help").stdout, re.MULTILINE)

# What a command needs beside the option in question, or it misses that first.
NEEDS = {
    "explain": ["ns/p"], "fit": ["--drain=n"], "plan": ["--empty=n"], "drain": ["n"], "cordon": ["n"],
    "uncordon": ["n"], "resume": ["n"], "migrate": ["--from=gpushare"], "replay": ["x"], "completion": ["bash"],
}
# Options whose FILE is written, or made if it is not there, and what a saved cluster does not need.
LEFT_OUT = {"snapshot-out", "cluster-out", "record", "seal-key-file", "usage-token-file", "usage-ca-file",
            "calendar"}
# With the option alone no file is read.
BESIDE = {
    "tls-cert": ["--tls-key=missing"], "tls-key": ["--tls-cert=missing"],
    "tls-client-ca": ["--tls-cert=missing", "--tls-key=missing"],
    "pods": [f"--snapshot={SNAPSHOT}"], "trace-nodes": ["--trace-pods=missing"],
    "trace-pods": ["--trace-nodes=missing"], "ca-file": ["--server=https://127.0.0.1:1"],
}
# Of these any line of text will do.
ANY_TEXT = {"token-file", "ops-token-file"}


def options_of(command):
    """[(name, metavar)] of the long options of a command."""
    return re.findall(r"^ +(?:-\w, )?--([a-z-]+)(?: ([A-Z][A-Z/\[\]:]*))?$", explain(command).stdout, re.MULTILINE)


class Misuse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        at = pathlib.Path(cls.folder.name)
        (at / "text").write_text("hello\n")
        (at / "broken").write_text('{"a": [1,')
        (at / "empty").write_text("")
        (at / "folder").mkdir()
        (at / "configmap").write_text('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}')
        cls.at = at

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ends(self, status, *arguments):
        with self.subTest(" ".join(map(str, arguments))):
            result = run(*arguments, env={"HOME": str(self.at)})
            self.assertEqual((result.returncode, result.stdout), (status, ""), result.stderr)
            said = [line for line in result.stderr.splitlines() if not line.startswith("time=")]
            self.assertEqual([line[:11] for line in said], ["gpuledger: "], result.stderr)
            return said[0]
        return "option"

    def test_words(self):
        self.assertGreater(len(COMMANDS), 20)
        for command in COMMANDS:
            needs = NEEDS.get(command, [])
            self.ends(2, command, *needs, "--nonsense")
            self.ends(2, command, *needs, "")
            self.ends(2, command, *["word"] * 101)
        self.ends(2, "nonsense")

    def test_every_option_of_every_command_with_no_value_and_a_wrong_one(self):
        for command in COMMANDS:
            for name, metavar in options_of(command):
                if name in ("help", "help-all"):
                    continue
                self.ends(2, command, *NEEDS.get(command, []), f"--{name}=" if not metavar else f"--{name}")
                if re.fullmatch("N|TIME|NUMBER|PERCENT|WHEN|SIZE|BYTES", metavar):
                    self.ends(2, command, *NEEDS.get(command, []), f"--{name}=?")

    def test_every_file_of_every_option_of_every_command(self):
        for command in COMMANDS:
            for name, metavar in options_of(command):
                if metavar != "FILE" or name in LEFT_OUT:
                    continue
                if command == "serve" and name not in ("kubeconfig", "snapshot"):
                    needs = [f"--snapshot={SNAPSHOT}", "--listen=127.0.0.1:0", "--ops-listen=127.0.0.1:0"]
                else:
                    needs = [word for word in NEEDS.get(command, []) if name != "filename"]
                kinds = ["missing", "folder"] + ([] if name == "config" else ["empty"]) + ([] if name in ANY_TEXT else ["text", "broken"])
                for kind in kinds:
                    said = self.ends(2, command, *needs, *BESIDE.get(name, []), f"--{name}={self.at / kind}")
                    self.assertRegex(said, "option|file|field")

    def test_a_file_that_is_no_pod(self):
        for command in ("explain", "fit", "plan"):
            for where in (f"--snapshot={SNAPSHOT}", "--server=http://127.0.0.1:1"):
                for kind in ("missing", "folder", "empty", "text", "broken", "configmap"):
                    self.ends(2, command, where, f"--filename={self.at / kind}")

    def test_places_and_pods(self):
        for place in ("/", "/0", "n/", "n/x", "n/-1", "n/0/1"):
            for command in ("cordon", "uncordon", "drain"):
                self.ends(2, command, place)
            self.ends(2, "fit", f"--drain={place}", f"--snapshot={SNAPSHOT}")
            self.ends(2, "plan", f"--empty={place}", f"--snapshot={SNAPSHOT}")
        for words in (["/"], ["a/"], ["/a"], ["a/b/c"], ["pod", ""], ["node", "a/b"], ["a"], []):
            self.ends(2, "explain", *words, f"--snapshot={SNAPSHOT}")
        for command in ("fit", "plan", "drain", "cordon", "uncordon", "replay", "migrate", "resume"):
            self.ends(2, command)

    def test_resume_asks_a_running_extender_only(self):
        for option in (f"--snapshot={SNAPSHOT}", "--kubeconfig=x", "--context=x", "--api-timeout=1s"):
            said = self.ends(2, "resume", "n", option)
            self.assertIn(option.split("=")[0], said)

    def test_no_record(self):
        for kind in ("missing", "folder", "empty", "text", "broken", "configmap"):
            self.ends(2, "replay", self.at / kind)

    def test_what_is_not_there_is_no_misuse(self):
        for words in (["nodes", "nowhere"], ["inspect", "nowhere"], ["explain", "ns/none"], ["drain", "nowhere/0"],
                      ["drain", "nowhere"], ["plan", "--empty=nowhere"], ["plan", "ns/none"], ["fit", "--drain=nowhere"]):
            self.ends(1, *words, f"--snapshot={SNAPSHOT}")
        for command in ("nodes", "pods", "inspect", "top", "audit", "quotas", "explain", "fit", "plan"):
            self.ends(1, command, *NEEDS.get(command, []), "--server=http://127.0.0.1:1")

    def test_a_document_has_a_version(self):
        needs = {"fit": ["--drain=gpu-t4-0"], "plan": ["--empty=gpu-t4-0"], "drain": ["gpu-t4-0"]}
        for command in ("nodes", "pods", "inspect", "top", "quotas", "fit", "plan", "drain"):
            result = run(command, *needs.get(command, []), f"--snapshot={SNAPSHOT}", "-o", "json")
            with self.subTest(command):
                self.assertIn(result.returncode, (0, 3), result.stderr)
                self.assertEqual(json.loads(result.stdout)["apiVersion"], "gpuledger.io/v1")


if __name__ == "__main__":
    unittest.main()
