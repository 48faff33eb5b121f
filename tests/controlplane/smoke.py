#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Smoke test: a control plane of the version named comes up and places ten pods on three nodes.

Prints the seconds of each phase; exit code 0 when every pod got a node.
"""

import argparse
import contextlib
import sys
import tempfile
import time

from controlplane import ControlPlane

GPU_MEMORY = "aliyun.com/gpu-mem"
NODES = 3
PODS = 10


@contextlib.contextmanager
def phase(name):
    start = time.monotonic()
    yield
    print(f"{name:12} {time.monotonic() - start:6.2f} s", flush=True)


def run(version, folder):
    with contextlib.ExitStack() as stack:
        with phase("start"):
            plane = stack.enter_context(ControlPlane(folder, version))
        client = plane.client()
        with phase("nodes"):
            for number in range(NODES):
                client.make_node(f"node-{number}", {GPU_MEMORY: 16})
        with phase("pods"):
            names = [f"pod-{number}" for number in range(PODS)]
            for name in names:
                client.make_pod(name, {GPU_MEMORY: 4, "cpu": 1})
        with phase("scheduler"):
            plane.scheduler_start()
        with phase("placing"):
            placed = client.wait_bound(names)
        server = client.version()["gitVersion"]
        with phase("stop"):
            plane.stop()
    nodes = set(placed.values())
    print(f"{len(placed)} pods on {len(nodes)} nodes of Kubernetes {server}")
    # 16 units a node hold four pods of 4 units, so ten pods cannot do with two nodes.
    return 0 if len(nodes) == NODES else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", nargs="?", choices=("current", "legacy"), default="current")
    parser.add_argument("--dir", help="keep the logs here")
    arguments = parser.parse_args()
    if arguments.dir:
        return run(arguments.version, arguments.dir)
    with tempfile.TemporaryDirectory(prefix="controlplane-") as folder:
        return run(arguments.version, folder)


if __name__ == "__main__":
    sys.exit(main())
