# SPDX-License-Identifier: Apache-2.0
"""What a scenario needs: a saved cluster, the program that serves it, and kube-scheduler's calls.

    class S8(Scenario):
        \"\"\"What is done, in one line of docs/scenarios.md.\"\"\"
        cannot = "What of it no extender can do, and why."
        e2e = ("binpack",)

        def test_…(self):
            self.start(gpushare("n", 2, 16))
            self.place("a", {MEM: 8})
            self.refused("b", {MEM: 16}, "Insufficient GPU Memory in one device")

After every bind, what the program says of the cards is added up again: none holds more than it has.
"""

import json
import pathlib
import signal
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / name) for name in ("cli", "players", "controlplane")]

from program import Server, call, listing  # noqa: E402

GIB = 1 << 30
WHOLE = 1000  # thousandths of a card's compute


def pod(name, limits, annotations=None, namespace="ml", created="2026-01-01T00:00:00Z", **meta):
    """`limits`: of its one container, or a list with those of several."""
    several = limits if isinstance(limits, list) else [limits]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": created,
            "annotations": dict(annotations or {}),
            **meta,
        },
        "spec": {
            "containers": [
                {"name": f"c{i}", "resources": {"limits": {k: str(v) for k, v in each.items()}}}
                for i, each in enumerate(several)
            ]
        },
        "status": {"phase": "Pending"},
    }


def node(name, capacity, labels=None, annotations=None):
    amounts = {key: str(value) for key, value in capacity.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "status": {"capacity": amounts, "allocatable": amounts},
    }


class Scenario(unittest.TestCase):
    cannot = ""
    e2e = ()
    server = None

    def start(self, *objects, options=()):
        """Anew, if it was started before."""
        if self.server:
            self.server.__exit__()
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self._options = options
        self._serve(objects)
        self.addCleanup(lambda: self.server.__exit__())

    def _serve(self, objects):
        folder = pathlib.Path(self._directory.name)
        before = folder / "before.json"
        before.write_text(listing(*objects))
        self._after = folder / "after.json"
        self.nodes = [each["metadata"]["name"] for each in objects if each["kind"] == "Node"]
        self.server = Server(
            f"--snapshot-out={self._after}", *self._options, snapshot=before
        )

    def restart(self, change=None):
        """Ends the program and starts it on what it left, {(kind, name): object} once `change` has
        been at it; returns that. Without a change nothing of the ledger may differ."""
        before = self.ledger()
        self.server.signal(signal.SIGTERM)
        self.assertEqual(self.server.exit_code(), 0)
        self.server.__exit__()
        items = json.loads(self._after.read_text())["items"]
        objects = {(each["kind"], each["metadata"]["name"]): each for each in items}
        if change:
            change(objects)
        self._serve(objects.values())
        if not change:
            self.assertEqual(self.ledger(), before)
        return objects

    def saved(self, *names):
        """These pods as they are in the cluster."""
        objects = self.restart()
        return [objects["Pod", name] for name in names]

    def annotations(self, name):
        return self.saved(name)[0]["metadata"]["annotations"]

    # kube-scheduler's calls

    def verb(self, verb, body):
        status, text = call("POST", f"{self.server.scheduler}/scheduler/{verb}", body)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def create(self, wanted):
        status, text = call("POST", f"{self.server.operations}/api/v1/snapshot/pods", wanted)
        self.assertEqual(status, 201, text)

    def end(self, name, namespace="ml"):
        url = f"{self.server.operations}/api/v1/snapshot/pods/{namespace}/{name}"
        status, text = call("DELETE", url)
        self.assertEqual(status, 204, text)

    def fitting(self, wanted, nodes=None):
        """The nodes that filter passes."""
        return self.verb("filter", {"Pod": wanted, "NodeNames": nodes or self.nodes})["NodeNames"] or []

    def best(self, wanted, fits):
        """The node that prioritize marks highest, the first by name among equals."""
        marks = self.verb("prioritize", {"Pod": wanted, "NodeNames": fits})
        marked = {mark["Host"]: mark["Score"] for mark in marks}
        return min(fits, key=lambda host: (-marked.get(host, 0), host))

    def bind(self, wanted, where):
        meta = wanted["metadata"]
        body = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"]}
        return self.verb("bind", {**body, "Node": where})["Error"]

    def schedule(self, wanted, nodes=None):
        """Filter, prioritize and bind of a pod of the cluster; its node, or None."""
        fits = self.fitting(wanted, nodes)
        if not fits:
            return None
        where = self.best(wanted, fits)
        self.assertEqual(self.bind(wanted, where), "")
        self.check_sums()
        return where

    def place(self, name, limits, annotations=None, nodes=None, **more):
        """Creates a pod and schedules it: its node."""
        wanted = pod(name, limits, annotations, **more)
        self.create(wanted)
        where = self.schedule(wanted, nodes)
        self.assertIsNotNone(where, f"{name} finds no node")
        return where

    def refused(self, name, limits, text, annotations=None, nodes=None, final=None, **more):
        """Each of the nodes refuses the pod for that reason, filter and bind alike. `final`:
        whether preemption cannot help."""
        wanted = pod(name, limits, annotations, **more)
        nodes = nodes or self.nodes
        answer = self.verb("filter", {"Pod": wanted, "NodeNames": nodes})
        said = {True: answer["FailedAndUnresolvableNodes"], False: answer["FailedNodes"]}
        everywhere = said[final] if final is not None else {**said[True], **said[False]}
        self.assertEqual(sorted(everywhere), sorted(nodes), answer)
        for each in everywhere.values():
            self.assertIn(text, each)
        self.create(wanted)
        self.assertIn(text, self.bind(wanted, nodes[0]))
        self.end(name, wanted["metadata"]["namespace"])

    def invalid(self, name, limits, text, annotations=None):
        """The pod is turned away at once, whatever the nodes."""
        wanted = pod(name, limits, annotations)
        self.assertIn(text, self.verb("filter", {"Pod": wanted, "NodeNames": self.nodes})["Error"])
        self.create(wanted)
        self.assertIn(text, self.bind(wanted, self.nodes[0]))
        self.end(name)

    # The ledger

    def ask(self, path):
        status, text = self.server.get(path)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def ledger(self):
        """{node: what is said of it}."""
        return {each["name"]: each for each in self.ask("/api/v1/nodes")["nodes"]}

    def cards(self, where):
        return self.ledger()[where]["cards"]

    def pool(self, where, resource="nvidia.com/gpu"):
        """(used, capacity)."""
        for each in self.ledger()[where]["pools"]:
            if each["resource"] == resource:
                return each["used"], each["capacity"]
        return None

    def held(self, name, namespace="ml"):
        """[(container, card)] of a pod."""
        shares = self.ask(f"/api/v1/pods/{namespace}/{name}")["shares"]
        return sorted((share["container"], share["card"]) for share in shares)

    def card(self, name, namespace="ml"):
        """Of a pod that holds one."""
        [(_, card)] = self.held(name, namespace)
        return card

    def explained(self, name, where, namespace="ml"):
        """What is said, with numbers, of why a pod of the cluster cannot go to a node."""
        nodes = self.ask(f"/api/v1/explain?pod={namespace}/{name}")["nodes"]
        return next(each for each in nodes if each["name"] == where)

    def metric(self, name):
        """{labels: value}, the labels as they are written."""
        _, text = self.server.get("/metrics")
        rows = (line.rpartition(" ") for line in text.splitlines() if line.startswith(name))
        found = {series.partition("{")[::2]: float(value) for series, _, value in rows}
        return {labels.rstrip("}"): value for (key, labels), value in found.items() if key == name}

    def check_sums(self):
        for where, each in self.ledger().items():
            for card in each["cards"]:
                shares = [
                    share
                    for holder in each["pods"]
                    for share in holder["shares"]
                    if share["card"] == card["index"]
                ]
                place = f"card {card['index']} of {where}"
                memory = sum(share["memoryBytes"] for share in shares)
                core = sum(share["coreThousandths"] for share in shares)
                self.assertLessEqual(memory, card["memoryBytes"], place)
                self.assertLessEqual(core, card["coreThousandths"], place)
                self.assertLessEqual(card["memoryUsedBytes"], card["memoryBytes"], place)
                if card["slots"] is not None:
                    self.assertLessEqual(card["holders"], card["slots"], place)
            for pool in each["pools"]:
                self.assertLessEqual(pool["used"], pool["capacity"], f"{pool['resource']} of {where}")


def main():
    unittest.main()
