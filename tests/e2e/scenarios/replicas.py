# SPDX-License-Identifier: Apache-2.0
"""Two replicas and a Lease: whatever happens to the holder, no card is given twice.

Both are asked for binds all the time, as by schedulers that know nothing of the Lease, for pods
that do not all fit. Then the holder is stopped, killed, cut off or slowed down. What counts is what
the API server says (truth.py), not what either replica believes.
"""

import collections
import contextlib
import datetime
import http.client
import json
import os
import random
import signal
import statistics
import threading
import time

from controlplane import Process
from gpushare import IDX
from kubeapi import ApiError, Client, pod_object, wait_for
from proxy import Proxy
from truth import Auditor, holding
from world import ACCOUNT, RESOURCE, SEED, SYSTEM, World, free_ports, program

LEASE = "gpuledger"
LEASE_S = 3
ROUNDS = int(os.environ.get("E2E_ROUNDS", "1"))
WORKERS = 12
NODES = {f"n{number}": [100, 100] for number in range(3)}
BINDS_BETWEEN = 40  # before the next thing happens to the holder
BINDS_MEANWHILE = 20  # by the next one, before the former holder comes back
PROBED = "probed"  # a node with room for every probe
REFUSAL = "Insufficient GPU Memory"
LATE = 6  # pods whose Bindings are kept back
PATIENCE_S = 120
CALL_S = 4  # how long a caller waits for a bind
CANARY_S = 60

FAILURES = (OSError, http.client.HTTPException, ApiError, json.JSONDecodeError)


def own_pod(name):
    """Of the account that the program has: no other pod may it label."""
    pod = pod_object(name, namespace=SYSTEM, scheduler="nobody")
    pod["spec"]["serviceAccountName"] = ACCOUNT
    return pod


class Replica:
    """A gpuledger behind a proxy of its own, in a pod that exists on paper."""

    def __init__(self, world, name, elect=True, options=()):
        self.name = name
        self.options = list(options)
        self._world = world
        self._elect = elect
        self.process = Process(name, world.folder)
        self.proxy = Proxy(("127.0.0.1", world.client.port), world.plane.ca_file, SEED)
        self.port, self.ops_port = free_ports(2)
        self._ops = Client(f"http://127.0.0.1:{self.ops_port}", timeout=2)
        self._calls = Client(f"http://127.0.0.1:{self.port}", timeout=CALL_S)

    def __enter__(self):
        self.proxy.__enter__()
        self.start()
        return self

    def __exit__(self, *_):
        self.process.stop(signal.SIGKILL)
        self.proxy.__exit__()

    def _kubeconfig(self):
        config = json.loads(self._world.kubeconfig().read_text())
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.proxy.port}"}
        path = self._world.folder / f"{self.name}.kubeconfig"
        path.write_text(json.dumps(config))
        return path

    def start(self):
        argv = [
            program(),
            "serve",
            f"--kubeconfig={self._kubeconfig()}",
            f"--listen=127.0.0.1:{self.port}",
            f"--ops-listen=127.0.0.1:{self.ops_port}",
            "--bind-timeout=3s",
            "--shutdown-delay=0s",
            *self.options,
        ]
        if self._elect:
            argv += [
                "--leader-elect",
                f"--lease-duration={LEASE_S}s",
                f"--lease-identity={self.name}-{time.monotonic_ns()}",
                f"--pod-name={self.name}",
            ]
        names = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")
        self.process.start(argv, {name: os.environ[name] for name in names if name in os.environ})
        self.process.await_ready(lambda: self.get("/livez") is not None)

    def signal(self, number):
        os.kill(self.process.pid(), number)

    def get(self, path):
        """The answer's text, also of a refusal; None if there is none."""
        try:
            return self._ops.raw("GET", path).decode()
        except ApiError as error:
            return error.body.decode()
        except (OSError, http.client.HTTPException):
            return None

    def is_ready(self):
        return self.get("/readyz") == "ok\n"

    def stands_by(self):
        return "[-]elected failed: this replica stands by" in (self.get("/readyz") or "")

    def bind(self, pod, node):
        """What the extender says went wrong; "" for a success."""
        meta = pod["metadata"]
        body = {
            "PodName": meta["name"],
            "PodNamespace": meta["namespace"],
            "PodUID": meta["uid"],
            "Node": node,
        }
        try:
            return self._calls.request("POST", "/gpushare-scheduler/bind", body)["Error"]
        except FAILURES as error:
            return f"no answer: {error!r}"

    def ledger(self):
        """{uid: (node, card, units)}."""
        found = {}
        for node in json.loads(self.get("/api/v1/nodes"))["nodes"]:
            for pod in node["pods"]:
                size = sum(share["memoryBytes"] for share in pod["shares"])
                cards = [share["card"] for share in pod["shares"]]
                found[pod["uid"]] = (node["name"], cards[0], size // node["memoryUnitBytes"])
        return found


def make_pod(world, name, units):
    return world.client.create(
        pod_object(name, {RESOURCE: units}, scheduler="nobody"),
    )


class Load:
    """Pods that come, ask either replica for a card, and go. A context manager."""

    def __init__(self, world, replicas, prefix, reckless=False):
        self.asked = self.bound = 0
        self.wrong = []
        self.errors = collections.Counter()
        self._world, self._replicas, self._prefix = world, replicas, prefix
        self.lives_s = 0.05 if reckless else 0.3  # the longest; may be changed meanwhile
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(WORKERS)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def await_binds(self, more):
        wanted = self.bound + more
        wait_for(lambda: self.bound >= wanted, PATIENCE_S, what=f"{more} more binds")

    def _run(self, number):
        chance = random.Random(f"{SEED}-{self._prefix}-{number}")
        # One that hangs holds up those alone who call it.
        first = number % len(self._replicas)
        usual = self._replicas[first:] + self._replicas[:first]
        for turn in range(1 << 30):
            name = f"{self._prefix}{number}-{turn}"
            with contextlib.suppress(*FAILURES):
                # Of few equal sizes: an equal one would have to wait for its twin's plugin.
                pod = make_pod(self._world, name, chance.randint(20, 70))
                bound = self._place(chance, pod, usual)
                if self._stopping.is_set() and bound:
                    return  # something is left to compare
                self._stopping.wait(chance.uniform(0, self.lives_s))
                self._world.client.delete("Pod", name)
            if self._stopping.is_set():
                return

    def _place(self, chance, pod, usual):
        for _ in range(20):
            node = chance.choice(list(NODES))
            error = usual[chance.random() < 0.1].bind(pod, node)
            self._note(error)
            if not error:
                self._check(pod, node)
                return True
            if self._stopping.wait(0.02):
                break
        return False

    def _check(self, pod, node):
        """A success is a pod on that node, with a card."""
        now = self._world.client.get("Pod", pod["metadata"]["name"])
        held = holding(now)
        if not held or held.node != node or IDX not in now["metadata"]["annotations"]:
            with self._lock:
                self.wrong.append(f"{pod['metadata']['name']}: said to be on {node}: {held}")

    def _note(self, error):
        with self._lock:
            self.asked += 1
            self.bound += not error
            self.errors[error.split(":")[0][:60]] += 1


class LeaseWatch(threading.Thread):
    """Each version of the Lease: (when it was written by the writer's clock, its holder)."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self._client = client
        self._lock = threading.Lock()
        self._seen = []
        self._stopping = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()

    def run(self):
        while not self._stopping.is_set():
            with contextlib.suppress(*FAILURES):
                for kind, lease in self._client.watch("Lease", SYSTEM, timeout=20):
                    if lease["metadata"].get("name") == LEASE and kind != "BOOKMARK":
                        self._note(lease["spec"])
                    if self._stopping.is_set():
                        return

    def _note(self, spec):
        when = datetime.datetime.fromisoformat(spec["renewTime"].replace("Z", "+00:00"))
        with self._lock:
            self._seen.append((when.timestamp(), spec.get("holderIdentity", "")))

    def mark(self):
        with self._lock:
            return len(self._seen)

    def free_s(self, mark, former, next_one):
        """When `next_one` could have taken it from `former`, after the mark: it was given back, or
        its time was over. None: that has not been seen."""
        with self._lock:
            seen = list(self._seen)
        for index in range(mark, len(seen)):
            when, holder = seen[index - 1]
            if not seen[index][1].startswith(next_one) or holder.startswith(next_one):
                continue
            return when if not holder else when + LEASE_S if holder.startswith(former) else None
        return None


class Probe:
    """Asks one replica for a bind, with one pod, until it succeeds."""

    numbers = iter(range(1 << 30))

    def __init__(self, world, replica):
        self.pod = make_pod(world, f"probe-{next(self.numbers)}", 1)
        self._world, self._replica = world, replica

    def await_bound(self):
        wait_for(
            lambda: self._replica.bind(self.pod, PROBED) == "", PATIENCE_S, 0.01, "first bind"
        )
        return time.time()

    def end(self):
        """Whether it has a card."""
        held = holding(self._world.client.get("Pod", self.pod["metadata"]["name"]))
        self._world.client.delete("Pod", self.pod["metadata"]["name"])
        return held is not None and held.node == PROBED and held.card == 0


# What happens to the holder, and what ends it. The former returns once the harm is done.


def stop_and_go(holder):
    holder.signal(signal.SIGSTOP)
    return lambda: holder.signal(signal.SIGCONT)


def kill(holder):
    holder.process.stop(signal.SIGKILL)
    return holder.start


def terminate(holder):
    holder.signal(signal.SIGTERM)

    def again():
        holder.process.stop(signal.SIGTERM)
        holder.start()

    return again


def partition(holder):
    holder.proxy.cut()
    return holder.proxy.heal


def hold_back(holder):
    """Nothing arrives, either way, but all of it later."""
    holder.proxy.hold()
    return holder.proxy.heal


def deafen(holder):
    """Its calls arrive; the answers do not."""
    holder.proxy.hold(up=False, down=True)
    return holder.proxy.heal


ATTACKS = {
    "SIGSTOP": stop_and_go,
    "kill -9": kill,
    "SIGTERM": terminate,
    "partition": partition,
    "held back": hold_back,
    "no answers": deafen,
}


def await_pair(replicas):
    """(holder, standby), once that is what they are, and are labelled so."""

    def pair():
        ready = [one for one in replicas if one.is_ready()]
        others = [one for one in replicas if one.stands_by()]
        return (ready[0], others[0]) if len(ready) == len(others) == 1 else None

    return wait_for(pair, PATIENCE_S, 0.05, "one serves, the other stands by")


def attack(tap, world, watch, replicas, load, name):
    """Seconds from the moment the Lease could be taken to the first bind by the other one."""
    holder, standby = await_pair(replicas)
    probe = Probe(world, standby)
    mark = watch.mark()
    recover = ATTACKS[name](holder)
    try:
        bound_s = probe.await_bound()
        load.await_binds(BINDS_MEANWHILE)
    except TimeoutError as error:
        tap.ok(False, f"{name}: the other one takes over", f"{error}\n{standby.get('/readyz')}")
        return None
    finally:
        recover()
    free_s = wait_for(lambda: watch.free_s(mark, holder.name, standby.name), PATIENCE_S)
    seconds = bound_s - free_s
    tap.ok(probe.end(), f"{name}: the other one binds, {seconds:.2f} s after the Lease was free")
    return seconds


def bind_late(tap, world, replicas, load):
    """The holder dies with Bindings on their way, which arrive when the next one serves."""
    holder, standby = await_pair(replicas)
    pods = [make_pod(world, f"late-{number}", 30 + number) for number in range(LATE)]
    names = {pod["metadata"]["name"] for pod in pods}

    def ask(pod):
        for turn in range(1000):
            if REFUSAL not in holder.bind(pod, list(NODES)[turn % len(NODES)]):
                return

    def bound():
        return {
            pod["metadata"]["name"]
            for pod in world.client.items("Pod", "default")
            if pod["metadata"]["name"] in names and pod["spec"].get("nodeName")
        }

    holder.proxy.hold_bindings("late-")
    for pod in pods:
        threading.Thread(target=ask, args=(pod,), daemon=True).start()
    wait_for(lambda: holder.proxy.bindings_waiting >= 2, PATIENCE_S, what="Bindings held back")
    holder.process.stop(signal.SIGKILL)
    waiting = holder.proxy.bindings_waiting
    wait_for(standby.is_ready, PATIENCE_S, what="the other one takes over")
    load.await_binds(BINDS_MEANWHILE)
    before = bound()
    holder.proxy.heal()
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: len(bound()) >= waiting, PATIENCE_S)
    late = len(bound() - before)
    tap.ok(late, f"late Bindings: {late} of {waiting} came true after the other one had taken over")
    for name in names:
        world.client.delete("Pod", name)
    holder.start()


def slow_down(tap, world, replicas, load):
    """Both have a slow API server for a while."""
    before = load.bound
    for replica in replicas:
        replica.proxy.slow(0.4)
    time.sleep(2 * LEASE_S)
    tap.note(f"slow API server: {load.bound - before} pods bound meanwhile")
    for replica in replicas:
        replica.proxy.heal()
    await_pair(replicas)
    load.await_binds(1)
    tap.ok(True, "slow API server: one of them serves afterwards")


def check_labels(tap, world, replicas):
    """The Service's selector finds the holder, and nobody else."""
    holder, standby = await_pair(replicas)

    def labelled():
        return [
            pod["metadata"]["name"]
            for pod in world.client.items("Pod", SYSTEM, labelSelector="gpuledger.io/holder=true")
        ]

    with contextlib.suppress(TimeoutError):
        wait_for(lambda: labelled() == [holder.name], PATIENCE_S)
    tap.equal(labelled(), [holder.name], "the holder's pod alone is labelled")
    wait_for(lambda: standby.get("/readyz?exclude=elected") == "ok\n", PATIENCE_S)
    tap.ok(True, "the one that stands by is ready but for the Lease")


def check_ledgers(tap, world, replicas):
    """Both have what the API server has, once nothing moves any more."""

    def cluster():
        held = {pod["metadata"]["uid"]: holding(pod) for pod in world.client.items("Pod")}
        return {uid: (one.node, one.card, one.units) for uid, one in held.items() if one}

    for replica in replicas:
        with contextlib.suppress(TimeoutError):
            wait_for(lambda one=replica: one.ledger() == cluster(), PATIENCE_S, 0.2)
        tap.equal(replica.ledger(), cluster(), f"the ledger of {replica.name} is the cluster's")


def prepare(world):
    world.kustomize("overlays/ha")
    for name, sizes in {**NODES, PROBED: [1000]}.items():
        world.node(name, sizes)


def audit_of(world):
    auditor = Auditor(world.client)
    for name, sizes in {**NODES, PROBED: [1000]}.items():
        auditor.set_cards(name, sizes)
    return auditor


def report(tap, seconds):
    for name, values in seconds.items():
        tap.note(
            f"{name}: {len(values)} takeovers, Lease free to first bind "
            f"median {statistics.median(values):.2f} s, longest {max(values):.2f} s"
        )


def scenario_replicas(tap):
    """The holder is stopped, killed, cut off and slowed down: 0 double grants."""
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(tap, played=False))
        prepare(world)
        replicas = []
        for name in ("gpuledger-0", "gpuledger-1"):
            world.client.create(own_pod(name))
            replicas.append(stack.enter_context(Replica(world, name)))
        truth = stack.enter_context(audit_of(world))
        watch = stack.enter_context(LeaseWatch(world.client))
        await_pair(replicas)
        seconds = collections.defaultdict(list)
        with Load(world, replicas, "p") as load:
            for _ in range(ROUNDS):
                for name in ATTACKS:
                    load.await_binds(BINDS_BETWEEN)
                    took = attack(tap, world, watch, replicas, load, name)
                    if took is not None:
                        seconds[name].append(took)
                bind_late(tap, world, replicas, load)
                slow_down(tap, world, replicas, load)
        check_labels(tap, world, replicas)
        check_ledgers(tap, world, replicas)
        tap.ok(
            not truth.broken,
            f"0 double grants ({truth.bound} pods bound, {load.asked} binds asked for)",
            "\n".join(truth.broken),
        )
        tap.ok(not load.wrong, "who was told so was bound", "\n".join(load.wrong))
        logs = "".join(one.process.log.read_text(errors="replace") for one in replicas)
        tap.ok("grant the verb" not in logs, "the shipped role suffices")
        report(tap, seconds)
        tap.note(f"answers: {dict(load.errors.most_common(12))}")


def scenario_replicas_unfenced(tap):
    """Checks the check: two that know nothing of each other do give cards twice."""
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(tap, played=False))
        prepare(world)
        replicas = [
            stack.enter_context(Replica(world, name, elect=False)) for name in ("one", "two")
        ]
        truth = stack.enter_context(audit_of(world))
        for replica in replicas:
            wait_for(replica.is_ready, PATIENCE_S)
        with Load(world, replicas, "u", reckless=True) as load:
            with contextlib.suppress(TimeoutError):
                wait_for(lambda: truth.broken, CANARY_S)
        tap.ok(truth.broken, f"a card was given twice ({load.bound} pods bound)")


def bind_both(old, new, pods, node):
    """At the same moment; what each says."""
    says = {}
    threads = [
        threading.Thread(target=lambda replica=replica, pod=pod: says.update({replica: replica.bind(pod, node)}))
        for replica, pod in zip((old, new), pods)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return says[old], says[new]


def scenario_replicas_successor(tap):
    """Without a Lease: a single replica's pod ends while the next one is there already."""
    own = [f"--lease-namespace={SYSTEM}", "--wake=false"]
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(tap, played=False))
        auditor = Auditor(world.client)
        for number in range(12):
            world.node(f"n{number}", [100])
            auditor.set_cards(f"n{number}", [100])
        truth = stack.enter_context(auditor)
        pods = [(make_pod(world, f"a{number}", 60), make_pod(world, f"b{number}", 61)) for number in range(12)]
        labels = {"app.kubernetes.io/name": "gpuledger"}

        def run(name, *options):
            pod = own_pod(name)
            pod["metadata"]["labels"] = labels
            world.client.create(pod)
            options = [f"--pod-name={name}", *own, *options]
            replica = stack.enter_context(Replica(world, name, elect=False, options=options))
            wait_for(replica.is_ready, PATIENCE_S)
            return replica

        old = run("gpuledger-0", "--shutdown-delay=60s")
        os.kill(old.process.pid(), signal.SIGTERM)
        wait_for(lambda: not old.is_ready(), PATIENCE_S)
        said = [old.bind(pods[number][0], f"n{number}") for number in range(2)]
        tap.equal(said, ["", ""], "who leaves binds on while nobody follows")
        new = run("gpuledger-1")
        answers = [bind_both(old, new, pods[number], f"n{number}") for number in range(2, 12)]
        tap.equal({answer[0] for answer in answers}, {"gpuledger is shutting down; try again"},
                  "and not once its successor is there")
        tap.equal({answer[1] for answer in answers}, {""}, "which binds")
        tap.ok(not truth.broken, "no card is given twice", "\n".join(truth.broken))
