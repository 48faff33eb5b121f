# SPDX-License-Identifier: Apache-2.0
"""A small cluster on the API server of apiserver.py, the program as a process, a kube-scheduler's
calls, and the oracle: what the cards hold by the API server's objects, against what the ledger says.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import re
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from apiserver import ApiServer  # noqa: E402 pylint: disable=wrong-import-position
from program import PROGRAM, environment, node, pod  # noqa: E402 pylint: disable=wrong-import-position

GIB = 1 << 30
IDX, ASSIGNED = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_ASSIGNED"
PATIENCE = 60  # seconds for what should happen at once


class Violation(AssertionError):
    pass


def require(condition, message):
    if not condition:
        raise Violation(message)


class Cluster:
    def __init__(self, directory, shapes=((2, 16), (2, 16))):
        """`shapes`: cards and units of each, by node."""
        self.api = ApiServer(pathlib.Path(directory))
        self.shapes = {f"n{i}": shape for i, shape in enumerate(shapes)}
        self.api.grants.append(self._check_grant)
        self.violation = None

    async def start(self, *identities):
        await self.api.start(*identities)
        for name, (cards, units) in self.shapes.items():
            self.api.put("nodes", node(name, cards, units))

    def pods(self):
        return self.api.objects["pods"]

    def create(self, name, units, annotations=None):
        obj = pod(name, units)
        if annotations:
            obj["metadata"]["annotations"] = dict(annotations)
        del obj["metadata"]["uid"]
        return self.api.put("pods", obj)

    def play(self):
        """kubelet and the plugin: whoever is bound gets its card, and runs."""
        for key, obj in list(self.pods().items()):
            if obj["spec"].get("nodeName") and obj["status"]["phase"] == "Pending":
                self.api.change("pods", key, run_pod)

    def end(self, key):
        self.api.delete("pods", key)

    # --- the oracle ------------------------------------------------------------------------------

    def truth(self):
        """node -> card -> sorted names and units of who holds it."""
        held = {name: [[] for _ in range(cards)] for name, (cards, _) in self.shapes.items()}
        for obj in self.pods().values():
            where = obj["spec"].get("nodeName")
            if where and obj["status"]["phase"] not in ("Succeeded", "Failed"):
                card = int(obj["metadata"]["annotations"][IDX])
                held[where][card].append((obj["metadata"]["uid"], units_of(obj)))
        return {name: [sorted(card) for card in cards] for name, cards in held.items()}

    def _check_grant(self, obj):
        """In the server's own turn, so that nothing has changed since."""
        try:
            for name, cards in self.truth().items():
                for i, card in enumerate(cards):
                    used, size = sum(units for _, units in card), self.shapes[name][1]
                    require(used <= size, f"card {i} of {name} holds {used} of {size}: {card}")
            require(obj["metadata"]["annotations"].get(ASSIGNED) == "false", f"not marked: {obj}")
        except Violation as violation:
            self.violation = self.violation or violation

    def check(self):
        if self.violation:
            raise self.violation


def run_pod(obj):
    obj["metadata"]["annotations"][ASSIGNED] = "true"
    obj["status"].update(phase="Running", startTime="2026-01-02T03:04:05Z")


def units_of(obj):
    return int(obj["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"])


class Program:
    """`gpuledger serve` against the cluster."""

    def __init__(self, cluster, kubeconfig):
        self.cluster, self.kubeconfig = cluster, kubeconfig
        self.process = self.reader = None
        self.killed = False
        self.log = []
        self.ports = {}
        self.synced = asyncio.Event()

    async def start(self, *options, wait=True):
        self.process = await asyncio.create_subprocess_exec(
            os.environ.get("GPULEDGER", PROGRAM), "serve", f"--kubeconfig={self.kubeconfig}",
            "--listen=127.0.0.1:0", "--ops-listen=127.0.0.1:0", "--shutdown-delay=0s", *options, env=environment(),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE)
        self.reader = asyncio.create_task(self._read())
        if wait:
            await self.wait_until_synced()

    async def _read(self):
        async for raw in self.process.stderr:
            text = raw.decode().rstrip()
            self.log.append(text)
            found = re.search(r"listener=(\w+) address=\S+:(\d+)", text)
            if found:
                self.ports[found[1]] = int(found[2])
            if " msg=synced" in text or "synced" in text:
                self.synced.set()

    async def wait_until_synced(self):
        ended = asyncio.create_task(self.process.wait())
        synced = asyncio.create_task(self.synced.wait())
        await asyncio.wait({ended, synced}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        for task in (ended, synced):
            task.cancel()
        require(self.synced.is_set(), "never in sync:\n" + "\n".join(self.log))

    async def end(self, kill=True):
        self.kill(signal.SIGKILL if kill else signal.SIGTERM)
        await self.process.wait()
        await self.reader

    def kill(self, number=signal.SIGKILL):
        if self.process.returncode is None and not self.killed:
            self.killed = number == signal.SIGKILL
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)  # asyncio's own way would reap it as well

    async def call(self, listener, method, path, body=None):
        """The answer as JSON, None if there was none."""
        text = b"" if body is None else json.dumps(body).encode()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[listener])
            writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         "Content-Type: application/json\r\n"
                         f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
            writer.close()
        except ConnectionError:
            return None
        _, found, body = answer.partition(b"\r\n\r\n")
        return json.loads(body) if found and body else None

    async def text(self, listener, path):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[listener])
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return answer.decode()

    # --- kube-scheduler --------------------------------------------------------------------------

    async def filter(self, obj):
        """The nodes that pass; None without an answer."""
        answer = await self.call("scheduler", "POST", "/gpushare-scheduler/filter",
                                 {"Pod": obj, "NodeNames": list(self.cluster.shapes)})
        if answer is None or answer["Error"]:
            return None
        return answer["NodeNames"]

    async def bind(self, obj, where):
        """The error, "" for success; None without an answer."""
        meta = obj["metadata"]
        answer = await self.call("scheduler", "POST", "/gpushare-scheduler/bind", {
            "PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"],
            "Node": where})
        return None if answer is None else answer["Error"]

    # --- the ledger ------------------------------------------------------------------------------

    async def ledger(self):
        """As Cluster.truth; None while something is not confirmed."""
        answer = await self.call("operations", "GET", "/api/v1/nodes")
        held = {}
        for one in answer["nodes"]:
            cards = [[] for _ in one["cards"]]
            for holder in one["pods"]:
                if holder["state"] not in ("confirmed", "assigned"):
                    return None
                share = holder["shares"][0]
                cards[share["card"]].append((holder["uid"], share["memoryBytes"] // GIB))
            for card, pods in zip(one["cards"], cards):
                used = sum(units for _, units in pods) * GIB
                require(card["memoryUsedBytes"] == used, f"the sums differ: {one}")
            held[one["name"]] = [sorted(card) for card in cards]
        return held

    async def settle(self):
        """Waits until the ledger is what the API server has."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while (ledger := await self.ledger()) != self.cluster.truth():
            if asyncio.get_running_loop().time() > deadline:
                log = "\n".join(self.log[-30:])
                raise Violation(f"the ledger has\n{ledger}\nbut it is\n{self.cluster.truth()}\n{log}")
            await asyncio.sleep(0.02)
        self.cluster.check()
