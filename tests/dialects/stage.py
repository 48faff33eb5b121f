# SPDX-License-Identifier: Apache-2.0
"""What a row of the tables needs: a cluster with an API server, the program as a process, kube-scheduler's
calls, and rows themselves.

    @row("Project-HAMi/HAMi@v2.10.0:pkg/…", "what there is", "what the real one does", "what is answered")
    def some_name(stage):
        stage.node("n", {…})
        stage.start()
        stage.place("a", {…})
        stage.refused("b", {…}, "text")
"""

import asyncio
import copy
import dataclasses
import pathlib
import sys
import tempfile
import threading
import time
import typing

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / name) for name in ("cli", "faults", "players", "controlplane")]

from apiserver import ApiServer, Fault  # noqa: E402 pylint: disable=wrong-import-position
from program import Server, call  # noqa: E402 pylint: disable=wrong-import-position

import json  # noqa: E402 pylint: disable=wrong-import-position

PATIENCE = 60  # seconds for what should happen at once
NAMESPACE = "ml"
MARK = "sync"  # node and namespace by which it is seen that the watches have arrived


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    source: str  # repository@version:path
    given: str
    real: str
    ours: str
    play: typing.Callable
    known: str = ""  # why it fails today; the test fails when it passes


ROWS = {}


def row(source, given, real, ours, known="", name=None):
    def note(function):
        title = name or function.__name__.replace("_", " ")
        assert title not in ROWS, title
        ROWS[title] = Row(title, source, given, real, ours, function, known)
        return function

    return note


def need(condition, message):
    if not condition:
        raise AssertionError(message)


def equal(found, wanted, what=""):
    need(found == wanted, f"{what}: {found!r}, not {wanted!r}")


def containers(prefix, several):
    return [
        {"name": f"{prefix}{number}", "image": "example.com/none:1",
         "resources": {"limits": {key: str(value) for key, value in each.items()}}}
        for number, each in enumerate(several)
    ]


def pod_object(name, limits, annotations=None, namespace=NAMESPACE, init=(), env=None, **meta):
    """`limits`: of its one container, or a list with those of several."""
    spec = {"containers": containers("c", limits if isinstance(limits, list) else [limits])}
    if init:
        spec["initContainers"] = containers("i", init)
    if env:
        spec["containers"][0]["env"] = [{"name": key, "value": value} for key, value in env.items()]
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": f"uid-{namespace}-{name}",
                     "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": dict(annotations or {}), **meta},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


class Stage:
    def __init__(self):
        self.server = None
        self.marks = 0
        self._folder = tempfile.TemporaryDirectory()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # of connections that are cut at the end
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self.api = ApiServer(pathlib.Path(self._folder.name))
        self._await(self.api.start())
        self.node(MARK, {"aliyun.com/gpu-mem": 1000, "aliyun.com/gpu-count": 1})
        return self

    def __exit__(self, *_):
        if self.server:
            self.server.__exit__()
        self._await(self.api.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()

    def _await(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def _do(self, function, *arguments):
        async def act():
            return copy.deepcopy(function(*arguments))

        return self._await(act())

    def start(self, *options):
        """The program, once nodes and pods of before are there."""
        self.options = options
        self.server = Server(f"--kubeconfig={self.api.kubeconfig()}", "--bind-timeout=5s", *options, snapshot=None)
        self.sync()

    def restart(self):
        self.server.__exit__()
        self.start(*self.options)

    def forbid(self, sort):
        """Requests of a sort are answered with 403, from now on."""
        self._do(lambda: self.api.faults.append(Fault(sort, "status", 403, "Forbidden", times=10**9)))

    # Objects

    def node(self, name, capacity, annotations=None, labels=None, allocatable=None):
        """Creates or replaces."""
        amounts = {key: str(value) for key, value in capacity.items()}
        free = {**amounts, **{key: str(value) for key, value in (allocatable or {}).items()}}
        self._do(self.api.put, "nodes", {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {}),
                         "annotations": dict(annotations or {}), "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"capacity": amounts, "allocatable": free,
                       "conditions": [{"type": "Ready", "status": "True"}]},
        })

    def pod(self, name, limits, annotations=None, node=None, phase="Pending", reason=None, started=False, **more):
        """Creates or replaces a pod; its object."""
        wanted = pod_object(name, limits, annotations, **more)
        if node:
            wanted["spec"]["nodeName"] = node
        wanted["status"] = {"phase": phase}
        if reason:
            wanted["status"]["reason"] = reason
        if started or phase != "Pending":
            wanted["status"]["startTime"] = "2026-01-01T00:00:00Z"
        return self._do(self.api.put, "pods", wanted)

    def running(self, name, limits, annotations=None, node="n", **more):
        return self.pod(name, limits, annotations, node, "Running", **more)

    def change(self, name, function, namespace=NAMESPACE):
        """Of a pod, by whoever writes it."""
        self._do(self.api.change, "pods", (namespace, name), function)

    def set_status(self, name, namespace=NAMESPACE, **status):
        started = {"startTime": "2026-01-01T00:00:00Z"}
        self.change(name, lambda pod: pod["status"].update({**started, **status}), namespace)

    def annotate(self, name, annotations, namespace=NAMESPACE):
        self.change(name, lambda pod: pod["metadata"]["annotations"].update(annotations), namespace)

    def delete(self, name, namespace=NAMESPACE):
        self._do(self.api.delete, "pods", (namespace, name))

    def get(self, name, namespace=NAMESPACE):
        return self._do(self.api.objects["pods"].get, (namespace, name))

    def annotations(self, name, namespace=NAMESPACE):
        return self.get(name, namespace)["metadata"]["annotations"]

    def get_node(self, name):
        return self._do(self.api.objects["nodes"].get, (None, name))

    def pods(self, node=None, phase=None):
        """As the API server lists them: by namespace and name."""
        listed = self._do(lambda: [pod for _, pod in sorted(self.api.objects["pods"].items())])
        return [pod for pod in listed if pod["metadata"]["namespace"] != MARK
                and node in (None, pod["spec"].get("nodeName")) and phase in (None, pod["status"]["phase"])]

    def sync(self):
        """Until the program has seen all that was written."""
        self.marks += 1
        self.node(MARK, {"aliyun.com/gpu-mem": 1000 + self.marks, "aliyun.com/gpu-count": 1})
        said = {"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "1", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1"}
        name = f"s{self.marks}"
        self.running(name, {"aliyun.com/gpu-mem": 1}, said, MARK, namespace=MARK)
        deadline = time.monotonic() + PATIENCE
        before = None
        while time.monotonic() < deadline:
            there = self.server.get(f"/api/v1/pods/{MARK}/{name}")[0] == 200
            seen = next(each for each in self.ledger() if each["name"] == MARK) if there else None
            if seen and seen["cards"][0]["memoryBytes"] % (1000 + self.marks) == 0:
                self.delete(name, MARK)
                return
            before = seen
            time.sleep(0.01)
        raise AssertionError(f"the watches do not arrive: {before}")

    # What the program says

    def ask(self, path):
        status, text = self.server.get(path)
        equal(status, 200, text)
        return json.loads(text)

    def ledger(self):
        return self.ask("/api/v1/nodes")["nodes"]

    def cards(self, node="n"):
        return next(each for each in self.ledger() if each["name"] == node)["cards"]

    def pool(self, node="n", resource="nvidia.com/gpu"):
        pools = next(each for each in self.ledger() if each["name"] == node)["pools"]
        return next(each["used"] for each in pools if each["resource"] == resource)

    def held(self, name, namespace=NAMESPACE):
        """[(container, card)]"""
        shares = self.ask(f"/api/v1/pods/{namespace}/{name}")["shares"]
        return sorted((share["container"], share["card"]) for share in shares)

    def card(self, name):
        [(_, card)] = self.held(name)
        return card

    def audit(self):
        """The report of an audit that begins now, as text."""
        status, text = call("POST", f"{self.server.operations}/api/v1/audit", {})
        equal(status, 202, text)
        run, deadline = json.loads(text)["run"], time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = self.ask("/api/v1/audit")
            if found["run"] >= run and not found["running"]:
                return json.dumps(found["report"])
            time.sleep(0.02)
        raise AssertionError("the audit does not end")

    # kube-scheduler's calls

    def _verb(self, verb, body):
        status, text = call("POST", f"{self.server.scheduler}/scheduler/{verb}", body)
        equal(status, 200, text)
        return json.loads(text)

    def filter(self, wanted, node="n"):
        """(whether the node fits, why not)"""
        answer = self._verb("filter", {"Pod": wanted, "NodeNames": [node]})
        said = {**(answer["FailedNodes"] or {}), **(answer["FailedAndUnresolvableNodes"] or {})}
        return answer["NodeNames"] == [node], said.get(node) or answer["Error"]

    def bind(self, wanted, node="n"):
        meta = wanted["metadata"]
        body = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}
        return self._verb("bind", body)["Error"]

    def try_once(self, wanted, node="n"):
        """Filter and bind: why not, or nothing."""
        fits, why = self.filter(wanted, node)
        return self.bind(wanted, node) if fits else why

    def place(self, name, limits, annotations=None, node="n", **more):
        """Must be bound, though not at the first call where something has to be revoked before."""
        wanted = self.pod(name, limits, annotations, **more)
        self.sync()
        deadline = time.monotonic() + PATIENCE
        while why := self.try_once(wanted, node):
            need(time.monotonic() < deadline and self._may_change(why), f"{name} is not bound: {why}")
            time.sleep(0.05)
        return self.get(name, wanted["metadata"]["namespace"])

    @staticmethod
    def _may_change(why):
        return any(word in why for word in ("promise", "wait", "no reply"))

    def refused(self, name, limits, text="", annotations=None, node="n", **more):
        """Neither filter nor bind take the pod, which goes away again."""
        wanted = self.pod(name, limits, annotations, **more)
        self.sync()
        fits, why = self.filter(wanted, node)
        need(not fits, f"{name} passes filter")
        need(text in why, f"{name} is refused for {why!r}, not for {text!r}")
        need(self.bind(wanted, node), f"{name} is bound")
        self.delete(name, wanted["metadata"]["namespace"])
        self.sync()
        return why
