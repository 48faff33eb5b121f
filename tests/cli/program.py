# SPDX-License-Identifier: Apache-2.0
"""Running the program: once, or as a server for the length of a test."""

import json
import os
import pathlib
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GPULEDGER", str(ROOT / "build" / "gpuledger"))
SNAPSHOT = ROOT / "examples" / "snapshot.json"
PATIENCE = 60  # seconds for anything that should happen at once
JSON = {"Content-Type": "application/json"}


def environment(**extra):
    """Nothing of the caller's that the program reads."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GPULEDGER")
        and key not in ("PORT", "LOG_LEVEL", "THREADNESS", "KUBECONFIG")
    }
    return {**kept, **extra}


def run(*arguments, env=None, stdout=subprocess.PIPE):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        env=environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=4 * PATIENCE,
        check=False,
    )


def explain(command):
    """What its help says of all its options."""
    return run(command, "--help-all" if command == "serve" else "--help")


class Server:
    """`gpuledger serve` on free ports. Its log is kept as it comes, line by line."""

    def __init__(self, *arguments, env=None, snapshot=SNAPSHOT, wait=True, plain=False):
        self.log = []
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            [
                PROGRAM,
                "serve",
                *([f"--snapshot={snapshot}"] if snapshot else []),
                "--listen=127.0.0.1:0",
                "--ops-listen=127.0.0.1:0",
                *([] if plain else ["--shutdown-delay=0s"]),
                *map(str, arguments),
            ],
            env=environment(**(env or {})),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if wait:
            self.wait_for("synced")
            self.scheduler = self.address("scheduler")
            self.operations = self.address("operations")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()

    def _read(self):
        for line in self.process.stderr:
            with self._news:
                self.log.append(line.rstrip("\n"))
                self._news.notify_all()

    def address(self, listener):
        """Where it listens, as soon as it does."""
        line = self.wait_for(f"listener[=\":]+{listener}.*address")
        return "http://" + re.search(r"127\.0\.0\.1:\d+", line).group()

    def wait_for(self, pattern):
        """The first line of the log that matches; fails the test if there is none in time."""
        deadline = time.monotonic() + PATIENCE
        with self._news:
            while True:
                for line in self.log:
                    if re.search(pattern, line):
                        return line
                left = deadline - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._reader.is_alive()):
                    raise AssertionError(f"no line like {pattern!r} in\n" + "\n".join(self.log))
                self._news.wait(min(left, 0.1))

    def signal(self, number):
        self.process.send_signal(number)

    def exit_code(self):
        code = self.process.wait(PATIENCE)
        self._reader.join()
        return code

    def get(self, path, base=None):
        return call("GET", (base or self.operations) + path)

    def filter(self, pod, nodes):
        return self._verb("filter", {"Pod": pod, "NodeNames": nodes})

    def bind(self, pod, node):
        meta = pod["metadata"]
        return self._verb(
            "bind",
            {
                "PodName": meta["name"],
                "PodNamespace": meta["namespace"],
                "PodUID": meta["uid"],
                "Node": node,
            },
        )

    def preempt(self, pod, named):
        """`named`: UIDs by node; so is the answer, as kube-scheduler reads it."""
        offered = {node: {"Pods": [{"UID": uid} for uid in uids]} for node, uids in named.items()}
        return self._verb("preempt", {"Pod": pod, "NodeNameToMetaVictims": offered})["NodeNameToMetaVictims"]

    def _verb(self, verb, body):
        status, text = call("POST", f"{self.scheduler}/gpushare-scheduler/{verb}", body)
        assert status == 200, (status, text)
        return json.loads(text)


def call(method, url, body=None):
    """Status and text, whatever the status."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers=JSON)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def pod(name, amount, **extra):
    """A pod as kube-scheduler would send it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "test", "name": name, "uid": f"uid-{name}", **extra.pop("metadata", {})},
        "spec": {
            "containers": [
                {"name": "main", "resources": {"limits": {"aliyun.com/gpu-mem": str(amount)}}}
            ],
            **extra.pop("spec", {}),
        },
        "status": {"phase": "Pending", **extra.pop("status", {})},
    }


def node(name, cards, units):
    resources = {"aliyun.com/gpu-count": str(cards), "aliyun.com/gpu-mem": str(cards * units)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "status": {"capacity": resources, "allocatable": resources},
    }


def listing(*items):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
