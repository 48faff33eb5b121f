#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Binds that kube-scheduler would not have sent, over plain HTTP, where anybody can.

Each is refused by name, whether filter was called before or not; and whoever invents pods without
end keeps nobody else from being bound.
"""

import http.client
import json
import pathlib
import signal
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

# pylint: disable=wrong-import-position
from program import Server, listing, node, pod  # noqa: E402
from test_hostile import ELSEWHERE, NODES, SECONDS, Process, Scheduler, Tap, attack  # noqa: E402

TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}

# What is forged: the pod's spec, the node, and what is said of it; "": it may be there.
FORGED = [
    ("tainted", {}, "control-plane",
     "the pod may not be on the node: taint node-role.kubernetes.io/control-plane:NoSchedule is not "
     "tolerated"),
    ("cordoned", {}, "closed", "the pod may not be on the node: cordoned"),
    ("selector", {"nodeSelector": {"zone": "secure"}}, "node-0",
     "the pod may not be on the node: nodeSelector: zone=secure; the node has no label zone"),
    ("foreign", {"schedulerName": "volcano"}, "node-0",
     "the pod's schedulerName is 'volcano', whose pods are not bound here (--scheduler-names)"),
    ("nowhere", {}, "does-not-exist", "The node is not yet known to gpuledger"),
    ("tolerant", {"tolerations": [{"operator": "Exists"}]}, "control-plane", ""),
]


def cluster():
    items = [node(one, 4, 16) for one in NODES]
    items.append({**node("control-plane", 4, 16), "spec": {"taints": [TAINT]}})
    items.append({**node("closed", 4, 16), "spec": {"unschedulable": True}})
    for name, spec, _, _ in FORGED:
        items.append(pod(name, 3, spec=spec))
        items.append(pod(f"{name}-without-gpu", 0, spec=spec))
    return listing(*items)


def denials(process, cause):
    text = process.operations.call("GET", "/metrics")[1].decode()
    return sum(int(float(line.split()[1])) for line in text.splitlines()
               if line.startswith(f'gpuledger_bind_denials_total{{cause="{cause}"}}'))


def forge(tap, server):
    for name, spec, where, error in FORGED:
        for suffix, amount in (("", 9), ("-without-gpu", 0)):  # of no size that asks below
            victim = pod(name + suffix, amount, spec=spec)
            answers = [server.bind(victim, where)["Error"]]
            if error:  # a call of filter is forged as easily
                server.filter(victim, [where])
                answers.append(server.bind(victim, where)["Error"])
            tap.ok(set(answers) == {error}, f"{name}{suffix}: {error or 'bound'}", repr(answers))
    bound = json.loads(server.get("/api/v1/nodes")[1])
    held = {one["name"] for each in bound["nodes"] for one in each["pods"]}
    tap.ok(held == {"tolerant"}, "nobody else is anywhere", repr(held))


def flood(tap, server):
    process, scheduler = Process(server), Scheduler(server)
    why = ""
    with attack(server, "strangers", ELSEWHERE) as done:
        try:
            scheduler.go_on(SECONDS, lambda: denials(process, "lookups") > 0)
        except (AssertionError, OSError, http.client.HTTPException) as error:
            why = repr(error)
    tap.ok(not why, "strangers: kube-scheduler's binds go on", why)
    tap.ok(done[0] > 0, "strangers: it took place")
    refused = denials(process, "lookups")
    tap.ok(refused > 0, "strangers: they are refused without a look")
    print(f"# strangers x{done[0]}, {refused} refused without a look")


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        snapshot = pathlib.Path(name) / "snapshot.json"
        snapshot.write_text(cluster())
        with Server("--drain-timeout=10s", snapshot=snapshot) as server:
            forge(tap, server)
            flood(tap, server)
            server.signal(signal.SIGTERM)
            tap.ok(server.exit_code() == 0, "the program ends well", "\n# ".join(server.log[-20:]))
    print(f"1..{tap.n}")
    sys.exit(tap.failed > 0)


if __name__ == "__main__":
    main()
