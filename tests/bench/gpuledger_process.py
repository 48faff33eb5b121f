# SPDX-License-Identifier: Apache-2.0
"""gpuledger as a process that a benchmark starts, waits for and ends."""

import http.client
import os
import signal
import socket
import subprocess
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Gpuledger:
    def __init__(self, binary, kubeconfig, log, *options):
        self.port, self.ops_port = free_port(), free_port()
        self.started = time.monotonic()
        self.log = open(log, "w")
        self.process = subprocess.Popen(
            [binary, "serve", "--kubeconfig", kubeconfig, "--log-level", "warn",
             "--listen", f"127.0.0.1:{self.port}", "--ops-listen", f"127.0.0.1:{self.ops_port}",
             "--shutdown-delay", "0s", *options],
            stderr=self.log)

    def wait_ready(self, timeout=120):
        """Asks again and again over one connection: more would take time from what is measured."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ops_port, timeout=5)
        try:
            while time.monotonic() < self.started + timeout:
                if self.process.poll() is not None:
                    raise RuntimeError("gpuledger ended: " + open(self.log.name).read())
                try:
                    connection.request("GET", "/readyz")
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == 200:
                        return time.monotonic() - self.started
                except OSError:
                    connection.close()
                time.sleep(0.005)
        finally:
            connection.close()
        raise RuntimeError("gpuledger is not ready: " + open(self.log.name).read())

    def rss_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
        return 0

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.log.close()
