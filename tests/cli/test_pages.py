#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shell blocks of README.md and docs/ run.

A block ```sh with a line of gpuledger or curl is run, by a shell that ends at the first
failure, beside the examples, against the saved cluster of the demo, unless it starts an extender of
its own. A block that needs more says what: ```sh cluster, or ```sh trace for files of somebody else."""

import os
import pathlib
import re
import socket
import subprocess
import tempfile
import unittest

from program import PATIENCE, PROGRAM, ROOT, SNAPSHOT, Server, environment

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```sh(?: (\w+))?\n(.*?)^```$", re.S | re.M)
OURS = re.compile(r"^(gpuledger|curl) ", re.M)
# What a block needs, by its words; one of this tree needs nothing.
NEEDS = {
    "cluster": re.compile(r"\b(kubectl|docker|helm|kind)\b|gpuledger ((un)?cordon|plan|migrate|switch)\b|https://|--kubeconfig|/var/lib/"),
    "trace": re.compile(r"\bopenb_"),
}
PORTS = {"39999": "scheduler", "39998": "operations"}


def blocks():
    for page in PAGES:
        for kind, content in BLOCK.findall(page.read_text()):
            yield page.relative_to(ROOT), kind, content


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Pages(unittest.TestCase):
    def test_blocks_run(self):
        count = 0
        with Server(snapshot=SNAPSHOT) as server:
            addresses = {port: server.address(name) for port, name in PORTS.items()}
            for page, kind, content in blocks():
                if not kind and OURS.search(content):
                    with self.subTest(page=str(page), block=content):
                        self.run_block(content, addresses)
                        count += 1
        self.assertGreater(count, 5)

    def run_block(self, content, addresses):
        """Addresses: of the server that runs, by the default port."""
        starts = re.search(r"^gpuledger serve\b.*&$", content, re.M)
        env = {}
        if starts:
            addresses = {port: f"127.0.0.1:{free_port()}" for port in PORTS}
            env = {"GPULEDGER_LISTEN": addresses["39999"], "GPULEDGER_OPS_LISTEN": addresses["39998"],
                   "GPULEDGER_SHUTDOWN_DELAY": "0s"}
            content = content.replace(starts[0], f"$PROGRAM{starts[0].removeprefix('gpuledger')}\n"
                                                 f"ready {addresses['39998']}")
        for port, address in addresses.items():
            content = re.sub(rf"(http://)?localhost:{port}\b", re.sub(r"^http://", "", address), content)
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "docs").mkdir()
            (place / "examples").symlink_to(ROOT / "examples")
            (place / "cluster.json").symlink_to(SNAPSHOT)
            (place / "bin").mkdir()
            (place / "bin" / "gpuledger").symlink_to(os.path.abspath(PROGRAM))
            operations = re.sub(r"^http://", "", addresses["39998"])
            script = "".join([
                "ready() { for i in $(seq 200); do command curl -fs $1/readyz >/dev/null && return; sleep 0.1; done; "
                "return 1; }\n",
                "trap 'kill $(jobs -p) 2>/dev/null || :; wait' EXIT\n",
                # explain, fit and audit say with 3 that they found something.
                "gpuledger() { command gpuledger \"$@\" || [ $? = 3 ]; }\n",
                "curl() { command curl -fsS \"$@\"; }\n",
                content,
            ])
            result = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=6 * PATIENCE, check=False,
                env=environment(PATH=f"{place / 'bin'}:/usr/bin:/bin",
                                GPULEDGER_SERVER=f"http://{operations}",
                                PROGRAM=os.path.abspath(PROGRAM), **env))
            self.assertEqual(result.returncode, 0, result.stdout[-2000:])
            self.assertIsNone(re.search(r'"Error":"[^"]+"', result.stdout), content)

    def test_what_is_not_run_says_why(self):
        for page, kind, content in blocks():
            with self.subTest(page=str(page), block=content):
                needed = [name for name, words in NEEDS.items() if words.search(content)]
                self.assertEqual(needed, [kind] if kind else [])

    def test_no_block_is_hidden_in_a_list(self):
        for page in PAGES:
            with self.subTest(page=page.name):
                self.assertNotRegex(page.read_text(), r"(?m)^ +```")


if __name__ == "__main__":
    unittest.main()
