#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A large cluster whose views are asked for and not read, and binds that wait for ever.

Memory stays within bounds, filter and bind go on and are answered rightly, on new connections, too;
beyond the budget there is a 503.
"""

import http.client
import json
import pathlib
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

# pylint: disable=wrong-import-position
from program import Server, call, listing, node, pod  # noqa: E402
from test_hostile import ELSEWHERE, PATIENCE, SECONDS, Connection, Process, Tap, attack  # noqa: E402

NODES, CARDS, PODS = 5000, 8, 30000
RSS_KIB = 256 << 10
CONNECTIONS = 64

# The attack, whether it comes to the operations listener, and a view that is refused meanwhile.
VIEWS = [
    ("unread-nodes", True, "/api/v1/nodes"),
    ("unread-metrics", True, "/metrics"),
    ("unread-status", False, "/scheduler/status"),
]


def held(i):
    """A pod of 2 units that its node side has taken."""
    where, card = divmod(i, CARDS)
    return pod(
        f"held-{i}", 2, spec={"nodeName": f"node-{where % NODES}"}, status={"phase": "Running"},
        metadata={"annotations": {"ALIYUN_COM_GPU_MEM_IDX": str(card),
                                  "ALIYUN_COM_GPU_MEM_POD": "2",
                                  "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                                  "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1700000000000000000"}})


class Caller:
    """Filter as kube-scheduler asks it: a kept connection, and now and then a fresh one."""

    def __init__(self, server, names):
        self.address = server.scheduler.removeprefix("http://")
        self.names = names
        self.kept = Connection(self.address)
        self.n = 0
        self.times = []

    def once(self):
        self.n += 1
        fresh = self.n % 3 == 0
        connection = Connection(self.address) if fresh else self.kept
        began = time.monotonic()
        body = {"Pod": pod(f"asked-{self.n}", 1), "NodeNames": self.names}
        try:
            status, text = connection.call("POST", "/gpushare-scheduler/filter", body)
        except (ConnectionError, http.client.HTTPException):  # once more, as kube-scheduler does
            status, text = connection.call("POST", "/gpushare-scheduler/filter", body)
        self.times.append((time.monotonic() - began) * 1000)
        if fresh:
            connection.close()
        assert status == 200, (status, text[:200])
        answer = json.loads(text)
        assert answer["NodeNames"] == self.names and not answer["Error"], text[:200]

    def go_on(self, seconds, enough=lambda: True):
        self.times = []
        began = time.monotonic()
        while (time.monotonic() < began + seconds
               or (not enough() and time.monotonic() < began + PATIENCE)):
            self.once()
        return sorted(self.times)


def refused(server, path, operations):
    base = server.operations if operations else server.scheduler
    connection = Connection(base.removeprefix("http://"))
    try:
        status, _ = connection.call("GET", path)
    except OSError:
        return False
    finally:
        connection.close()
    return status == 503


def run_one(tap, server, name, operations, path):
    process = Process(server)
    caller = Caller(server, [f"node-{i}" for i in range(500)])
    calm = caller.go_on(1)
    before, peak, why, hit, said_no = process.status("VmRSS"), 0, "", calm, False
    with attack(server, name, "127.0.0.1", operations) as done:

        def enough():
            nonlocal peak, said_no
            peak = max(peak, process.status("VmRSS"))
            said_no = said_no or path is None or refused(server, path, operations)
            return said_no

        try:
            hit = caller.go_on(max(SECONDS, 4), enough)
            for _ in range(20):
                peak = max(peak, process.status("VmRSS"))
                caller.once()
            probe = call("GET", server.operations + "/readyz")[0]
        except (AssertionError, OSError) as error:
            why, probe = repr(error), 0
    tap.ok(not why, f"{name}: filter is answered", why)
    tap.ok(done[0] >= CONNECTIONS, f"{name}: it took place", str(done))
    tap.ok(said_no, f"{name}: beyond the budget there is a 503")
    tap.ok(probe == 200, f"{name}: the probe is answered", str(probe))
    tap.ok(peak <= RSS_KIB, f"{name}: memory is bounded", f"{peak} KiB")
    # Afterwards views are answered again.
    deadline = time.monotonic() + PATIENCE
    while path and refused(server, path, operations) and time.monotonic() < deadline:
        time.sleep(0.1)
    tap.ok(not path or not refused(server, path, operations), f"{name}: then views are answered")
    print(f"# {name:15} x{done[0]:<5} {before >> 10} MiB, then at most {peak >> 10}; filter's p50 "
          f"{calm[len(calm) // 2]:.2f} ms, then {hit[len(hit) // 2]:.2f} (x"
          f"{hit[len(hit) // 2] / calm[len(calm) // 2]:.1f}), at most {hit[-1]:.0f}", flush=True)


def unread_views(tap, directory):
    snapshot = directory / "large.json"
    snapshot.write_text(listing(*(node(f"node-{i}", CARDS, 16) for i in range(NODES)),
                                *(held(i) for i in range(PODS))))
    with Server("--transfer-timeout=20s", "--audit-interval=0s", "--drain-timeout=60s",
                snapshot=snapshot) as server:
        snapshot.unlink()
        for name, operations, path in VIEWS:
            run_one(tap, server, name, operations, path)
        run_one(tap, server, "unread-filters", False, None)
        server.signal(signal.SIGTERM)
        tap.ok(server.exit_code() == 0, "the program ends well", "\n# ".join(server.log[-20:]))


def waiting_binds(tap, directory):
    """Binds that wait leave half of the connections to others."""
    from test_serve import crowded  # pylint: disable=import-outside-toplevel

    snapshot = directory / "crowded.json"
    document = json.loads(crowded())
    document["items"] += [pod(f"w{i}", 3) for i in range(1, 2000)]  # the attack's
    document["items"] += [pod(f"v{i}", 3) for i in range(20)]
    snapshot.write_text(json.dumps(document))
    with Server(f"--max-connections={CONNECTIONS}", "--bind-timeout=5m", "--assign-patience=1h",
                "--drain-timeout=0s", snapshot=snapshot) as server:
        process = Process(server)

        def refusals():
            metrics = process.operations.call("GET", "/metrics")[1].decode()
            return sum(int(float(line.split()[1])) for line in metrics.splitlines()
                       if line.startswith('gpuledger_binds_total{result="crowded"}'))

        why, texts = "", set()
        with attack(server, "waiting-binds", ELSEWHERE) as done:
            caller = Caller(server, ["n"])
            caller.names = []
            try:
                caller.go_on(SECONDS, lambda: refusals() > 0)
                for i in range(20):
                    connection = Connection(caller.address)
                    meta = {"PodName": f"v{i}", "PodNamespace": "test", "PodUID": f"uid-v{i}",
                            "Node": "n"}
                    status, text = connection.call("POST", "/gpushare-scheduler/bind", meta)
                    texts.add((status, json.loads(text)["Error"]))
                    connection.close()
                    caller.once()
            except (AssertionError, OSError) as error:
                why = repr(error)
        tap.ok(not why, "waiting binds: filter is answered, on new connections too", why)
        tap.ok(done[0] > CONNECTIONS, "waiting binds: it took place", str(done))
        tap.ok(refusals() > 0, "waiting binds: those beyond half of the connections are refused")
        # All are for one node, of which fewer may wait than of all nodes together.
        tap.ok(texts == {(200, "too many binds wait already; try again")},
               "waiting binds: with the reason, at once", repr(texts))
        print(f"# waiting-binds   x{done[0]:<5} filter at most {max(caller.times):.0f} ms", flush=True)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as name:
        waiting_binds(tap, pathlib.Path(name))
        unread_views(tap, pathlib.Path(name))
    print(f"1..{tap.n}")
    sys.exit(tap.failed > 0)


if __name__ == "__main__":
    main()
