#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goes on calling filter and bind while somebody attacks the listener, one attack after the other.

Every call must be answered, and rightly; one whose connection is cut under it is made once more, as
kube-scheduler does, and counted. Prints how much longer calls took than without an attack; nothing
is asserted of that. Afterwards the process has the descriptors, threads and about the memory that
it had before, and hardly a port of this machine waits for stray packets.
"""

import contextlib
import http.client
import json
import os
import pathlib
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

# pylint: disable=wrong-import-position
from attacks import RESET  # noqa: E402
from pki import Authority  # noqa: E402
from program import JSON, Server, call, listing, node, pod  # noqa: E402

SECONDS = float(os.environ.get("GPULEDGER_ATTACK_SECONDS", "1"))  # of calls during each attack
PATIENCE = 60
NODES = [f"node-{i}" for i in range(20)]
RSS_GROWTH_KIB = 16 << 10
WAITING_MAX = 1000
TIME_WAIT = "06"  # in /proc/net/tcp
ELSEWHERE = "127.0.0.2"

# The attack, from where, and what the server counts of it: cuts by reason. A source of its own has
# more than a quarter of all places; with the same one as ours, it is like behind a NAT.
PLAIN = [
    ("idle-beyond-the-limit", ELSEWHERE, "room"),
    ("idle-beyond-the-limit", "127.0.0.1", "room"),
    ("idle-after-a-call", "127.0.0.1", "room"),
    ("come-and-go", "127.0.0.1", None),
    ("half-closed", "127.0.0.1", None),
    ("slow", "127.0.0.1", "receiving"),
    ("unread-answers", "127.0.0.1", "sending"),
    ("stalled-bodies", "127.0.0.1", None),
    ("gigabytes", "127.0.0.1", None),
    ("long-heads", "127.0.0.1", None),
    ("bombs", "127.0.0.1", None),
    ("pipelined", "127.0.0.1", None),
    ("calls", "127.0.0.1", None),
    ("garbage", "127.0.0.1", None),
]
OVER_TLS = [
    ("endless-handshakes", "127.0.0.1", "handshake"),
    ("broken-handshakes", "127.0.0.1", None),
    ("idle-beyond-the-limit", "127.0.0.1", "room"),
]


class Connection:
    """One that is kept, and made afresh where the server has closed it. Ends with a reset."""

    def __init__(self, address, context=None):
        self.address, self.context = address, context
        self.http = None

    def open(self):
        if self.context:
            self.http = http.client.HTTPSConnection(self.address, timeout=PATIENCE,
                                                    context=self.context)
        else:
            self.http = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        self.http.connect()
        self.http.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def is_open(self):
        """Go's client, too, looks whether the end of a connection has come before it uses it."""
        return (self.http is not None and self.http.sock is not None
                and not select.select([self.http.sock], [], [], 0)[0])

    def call(self, method, path, body=None):
        """Status and body."""
        if not self.is_open():
            self.close()
            self.open()
        try:
            self.http.request(method, path, None if body is None else json.dumps(body), JSON)
            reply = self.http.getresponse()
            return reply.status, reply.read()
        except BaseException:
            self.close()
            raise

    def close(self):
        if self.http:
            self.http.close()
        self.http = None


class Scheduler:
    """Calls as kube-scheduler's: a kept connection, and now and then a new one beside it."""

    def __init__(self, server, context=None):
        self.address = server.scheduler.removeprefix("http://")
        self.context = context
        self.kept = Connection(self.address, context)
        self.operations = Connection(server.operations.removeprefix("http://"))
        self.n = self.repeated = 0
        self.times = []

    def call(self, verb, body, fresh=False):
        connection = Connection(self.address, self.context) if fresh else self.kept
        path = f"/gpushare-scheduler/{verb}"
        began = time.monotonic()
        try:
            status, text = connection.call("POST", path, body)
        except (ConnectionError, http.client.HTTPException, ssl.SSLError):
            self.repeated += 1
            status, text = connection.call("POST", path, body)
        self.times.append(time.monotonic() - began)
        if fresh:
            connection.close()
        if status != 200:
            raise AssertionError(f"{verb}: {status} {text}")
        return json.loads(text)

    def once(self):
        """A pod's way, and back."""
        self.n += 1
        one = pod(f"pod-{self.n}", 1 + self.n % 8)
        status, text = self.operations.call("POST", "/api/v1/snapshot/pods", one)
        assert status == 201, (status, text)
        fresh = self.n % 3 == 0
        answer = self.call("filter", {"Pod": one, "NodeNames": NODES}, fresh)
        assert answer["NodeNames"] == NODES and not answer["Error"], answer
        meta = one["metadata"]
        answer = self.call("bind", {"PodName": meta["name"], "PodNamespace": meta["namespace"],
                                    "PodUID": meta["uid"], "Node": NODES[self.n % len(NODES)]}, fresh)
        assert answer == {"Error": ""}, answer
        status, _ = self.operations.call("DELETE", f"/api/v1/snapshot/pods/test/{meta['name']}")
        assert status == 204, status

    def go_on(self, seconds, enough=lambda: True):
        """Times of the calls made in these seconds, and until there is enough of what is done
        meanwhile; sorted."""
        self.times, self.repeated = [], 0
        began = time.monotonic()
        while (time.monotonic() < began + seconds or len(self.times) < 20
               or (not enough() and time.monotonic() < began + PATIENCE)):
            self.once()
        return sorted(self.times)

    def close(self):
        self.kept.close()
        self.operations.close()


def quantiles(times):
    return times[len(times) // 2] * 1000, times[len(times) * 99 // 100] * 1000, times[-1] * 1000


@contextlib.contextmanager
def attack(server, name, source, operations=False):
    """It goes on for as long as the block; yields a list that gets how often it was done."""
    address = (server.operations if operations else server.scheduler).rsplit(":", 1)[1]
    attacker = subprocess.Popen(
        [sys.executable, str(HERE / "attacks.py"), name, address, "300", source],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    done = []
    try:
        attacker.stdout.readline()  # it has begun, or ended
        yield done
    finally:
        out, _ = attacker.communicate()
        done.append(int(out or 0))


def waiting_connections(server):
    """Closed connections to or from the server that still hold a port of this machine."""
    ports = {int(base.rsplit(":", 1)[1]) for base in (server.scheduler, server.operations)}
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(
        state == TIME_WAIT and not ports.isdisjoint(int(end[-4:], 16) for end in (local, remote))
        for _, local, remote, state, *_ in map(str.split, lines)
    )


class Process:
    """What the server's process uses."""

    def __init__(self, server):
        self.operations = Connection(server.operations.removeprefix("http://"))
        self.folder = pathlib.Path(f"/proc/{server.process.pid}")

    def status(self, key):
        for line in (self.folder / "status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        raise KeyError(key)

    def files(self):
        return len(list((self.folder / "fd").iterdir()))

    def threads(self):
        return self.status("Threads")

    def cuts(self, reason):
        metrics = self.operations.call("GET", "/metrics")[1].decode()
        for line in metrics.splitlines():
            if line.startswith(f'gpuledger_http_connections_cut_total{{reason="{reason}"}}'):
                return int(float(line.split()[1]))
        return 0

    def large_mappings(self):
        """Where memory is, for a failure."""
        found, at = [], ""
        for line in (self.folder / "smaps").read_text().splitlines():
            if "-" in line.split()[0]:
                at = line
            elif line.startswith("Rss:") and int(line.split()[1]) > 2048:
                found.append(f"{line.split()[1]} KiB {at}")
        return "\n# ".join(found)

    def settle(self, files, threads):
        """Waits until no more than these are left; what is left otherwise."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.files() <= files and self.threads() <= threads:
                return ""
            time.sleep(0.02)
        return f"{self.files()} files of {files}, {self.threads()} threads of {threads}"


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def ok(self, right, title, otherwise=""):
        self.n += 1
        self.failed += not right
        print(("ok" if right else "not ok"), self.n, "-", title, flush=True)
        if not right:
            print(f"# {otherwise}", flush=True)


def run_attacks(tap, server, title, attacks, context=None):
    process, scheduler = Process(server), Scheduler(server, context)
    scheduler.go_on(0.5)
    calm = quantiles(scheduler.go_on(1.0))
    scheduler.close()
    process.cuts("room")  # its own connection counts as well
    time.sleep(0.1)
    files, threads, rss = process.files(), process.threads(), process.status("VmRSS")
    print(f"# {title}: calls without an attack: p50 {calm[0]:.2f} ms, p99 {calm[1]:.2f} ms")
    for name, source, reason in attacks:
        cuts, peak, why, hit = process.cuts(reason) if reason else 0, 0, "", calm
        with attack(server, name, source) as done:
            try:
                hit = quantiles(scheduler.go_on(
                    SECONDS, lambda: not reason or process.cuts(reason) > cuts))
            except (AssertionError, OSError, http.client.HTTPException) as error:
                why = repr(error)
            peak = process.status("VmRSS")
            most = process.threads()
        scheduler.close()
        where = "" if source == "127.0.0.1" else f" from {source}"
        tap.ok(not why, f"{title}: {name}{where}: calls are answered", why)
        tap.ok(done[0] > 0, f"{title}: {name}{where}: it took place", "not once")
        if reason:
            tap.ok(process.cuts(reason) > cuts, f"{title}: {name}{where}: some are cut: {reason}")
        left = process.settle(files, threads)
        tap.ok(not left, f"{title}: {name}{where}: nothing is left of it", left)
        print(f"# {name:24} x{done[0]:<7} p50 {hit[0]:8.2f} ms (x{hit[0] / calm[0]:6.1f})  "
              f"p99 {hit[1]:8.2f} ms (x{hit[1] / calm[1]:6.1f})  {scheduler.repeated:2} repeated  "
              f"{most:5} threads  {peak / 1024:6.1f} MiB, then "
              f"{process.status('VmRSS') / 1024:.1f}", flush=True)
    deadline = time.monotonic() + PATIENCE
    while process.status("VmRSS") - rss > RSS_GROWTH_KIB and time.monotonic() < deadline:
        time.sleep(0.1)
    growth = process.status("VmRSS") - rss
    tap.ok(growth <= RSS_GROWTH_KIB, f"{title}: memory is given back",
           f"{growth} KiB more: " + process.large_mappings())
    print(f"# {title}: {rss} KiB before, {growth:+} KiB after", flush=True)


def flood_during_a_bind(tap, directory):
    """A bind that has to wait ends well although others make a noise."""
    sys.path.insert(0, str(HERE.parent / "cli"))
    from test_serve import crowded  # pylint: disable=import-outside-toplevel

    snapshot = directory / "crowded.json"
    snapshot.write_text(crowded())
    with Server("--bind-timeout=5m", "--assign-patience=5m", snapshot=snapshot) as server:
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(server.bind(pod("next", 3), "n")))
        waiting.start()
        for name in ("idle-beyond-the-limit", "calls", "come-and-go"):
            with attack(server, name, "127.0.0.1"):
                time.sleep(SECONDS)
                # Probes come on the other listener.
                tap.ok(server.get("/readyz")[0] == 200, f"during a bind: {name}: it is ready")
            tap.ok(not answers, f"during a bind: {name}: it goes on waiting", repr(answers))
        call("DELETE", server.operations + "/api/v1/snapshot/pods/test/waiting")
        waiting.join(PATIENCE)
        tap.ok(answers == [{"Error": ""}], "during a bind: it ends well", repr(answers))
        end(tap, "during a bind", server)


def end(tap, title, server):
    left = waiting_connections(server)
    print(f"# {title}: {left} closed connections wait")
    tap.ok(left <= WAITING_MAX, f"{title}: ports are free again", f"{left} are not")
    server.signal(signal.SIGTERM)
    tap.ok(server.exit_code() == 0, f"{title}: the program ends well", "\n# ".join(server.log[-20:]))


def main():
    tap = Tap()
    options = ("--transfer-timeout=5s", "--drain-timeout=10s")
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        snapshot = directory / "snapshot.json"
        snapshot.write_text(listing(*(node(one, 4, 16) for one in NODES)))
        with Server(*options, snapshot=snapshot) as server:
            run_attacks(tap, server, "plain", PLAIN)
            end(tap, "plain", server)
        ca = Authority(directory)
        certificate, key = ca.sign("server")
        context = ssl.create_default_context(cafile=str(ca.certificate))
        with Server(f"--tls-cert={certificate}", f"--tls-key={key}", *options,
                    snapshot=snapshot) as server:
            run_attacks(tap, server, "TLS", OVER_TLS, context)
            end(tap, "TLS", server)
        flood_during_a_bind(tap, directory)
    print(f"1..{tap.n}")
    sys.exit(tap.failed > 0)


if __name__ == "__main__":
    main()
