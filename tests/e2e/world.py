# SPDX-License-Identifier: Apache-2.0
"""A control plane, the extender under test, a kube-scheduler that calls it, and played nodes.

    with World(tap) as world:
        world.node("n1", [16, 16])
        world.pod("a", 4)
        world.await_running(["a"])
        world.verify()

The extender runs with a token of the service account that manifests/ ships, and nothing else; the
scheduler runs with the configuration shipped there, only that its URL names the test's port.
"""

import contextlib
import http.client
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MANIFESTS = ROOT / "manifests"
sys.path += [str(HERE.parent / "controlplane"), str(HERE.parent / "players")]

from controlplane import ControlPlane, ControlPlaneError, Process, binaries, free_ports, load_config  # noqa: E402
from gpushare import RESOURCE, RESOURCE_COUNT, GpushareKubelet  # noqa: E402
from hardware import NO_CARD  # noqa: E402
from kubeapi import ApiError, Client, node_object, pod_object, wait_for  # noqa: E402
from kubelet import Fleet  # noqa: E402
from pool import Pool  # noqa: E402
from truth import Auditor, holding  # noqa: E402

SYSTEM = "kube-system"
ACCOUNT = "gpuledger"
INSUFFICIENT = "Insufficient GPU Memory in one device"
SEVERAL_CONTAINERS = "The node's GPU share plugin cannot serve several GPU containers of one pod"
INIT_CONTAINER = "The node's GPU share plugin cannot serve GPU memory in an init container"

NUDGE_S = 3
PATIENCE_S = 120  # for what must come, however much else the machine does

SEED = int(os.environ.get("E2E_SEED", "1"))

# The programs that scenarios of "current" run, by the names that tests/controlplane/build knows.
CURRENT = os.environ.get("GPULEDGER_E2E_CURRENT", "current")

# The folder of a pool of control planes (../controlplane/pool.py); without one each has its own.
PLANES = os.environ.get("GPULEDGER_E2E_PLANES")


def program():
    """The binary under test: $GPULEDGER, which Meson sets."""
    path = os.environ.get("GPULEDGER")
    if not path or not os.access(path, os.X_OK):
        sys.exit('the variable "GPULEDGER" must name the gpuledger binary')
    return path


def gpu_container(name, units):
    resources = {"limits": {RESOURCE: str(units)}} if units else {}
    return {"name": name, "image": "example.com/none:1", "resources": resources}


def kustomize(plane, folder):
    kubectl = binaries("current") / "kubectl"
    rendered = plane.folder / "rendered.yaml"
    answer = subprocess.run(
        [kubectl, "kustomize", MANIFESTS / folder], stdout=subprocess.PIPE, check=True
    )
    rendered.write_bytes(answer.stdout)
    return plane.kubectl("apply", "-f", rendered)


def prepare(plane):
    """What every scenario finds in its control plane: all that the program does, it does under the policy of its own
    writes."""
    kustomize(plane, "overlays/nodeport")
    if plane.version != "legacy":
        kustomize(plane, "overlays/own-writes")


class World:
    """version: "current" or "legacy"; fleet: keyword arguments of Fleet(); played: whether nodes
    are played and pods watched at all; own: whether it needs a control plane that no other scenario
    has used, and none will, as one does that stops the API server."""

    def __init__(self, tap, version="current", fleet=None, apiserver_args=(), played=True, own=False):
        self.tap = tap
        self.version = CURRENT if version == "current" else version
        self.audit = self.fleet = None
        self._played = played
        self._stack = contextlib.ExitStack()
        self._numbers = itertools.count()
        self._fleet_options = {"seed": SEED, **(fleet or {})}
        self._apiserver_args = list(apiserver_args)
        self._own = own or bool(apiserver_args) or self.version == "legacy"

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = pathlib.Path(
                os.environ.get("E2E_DIR")
                or stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuledger-e2e-"))
            )
            self.plane = stack.enter_context(self._take_plane())
            self.client = self.plane.client()
            self.extender = Process("gpuledger", self.folder)
            stack.callback(lambda: self.extender.stop(signal.SIGKILL))
            self.port, self.ops_port = free_ports(2)
            if self._played:
                self.audit = stack.enter_context(Auditor(self.client))
                self.fleet = stack.enter_context(Fleet(self.client, **self._fleet_options))
            self._stack = stack.pop_all()
        self.tap.note(f"{self.version} control plane is up, seed {SEED}")
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None and not issubclass(kind, ControlPlaneError):
            self.tap.note(f"{kind.__name__}; the extender's last words:\n{self.extender.tail(15)}")
        # A plane of the pool is not given back after an exception.
        self._stack.__exit__(kind, error, trace)

    @contextlib.contextmanager
    def _take_plane(self):
        """One with the shipped manifests: out of the pool, if there is one and that will do."""
        pool = Pool(PLANES, prepare) if PLANES else None
        if pool and not self._own and pool.is_kept():
            with pool.lend(self.version, self.folder) as plane:
                yield plane
        else:
            with ControlPlane(self.folder, self.version, apiserver_args=self._apiserver_args) as plane:
                prepare(plane)
                yield plane

    # Programs

    def kustomize(self, folder):
        """Apply a kustomization of manifests/ for real; returns kubectl's CompletedProcess."""
        return kustomize(self.plane, folder)

    def kubeconfig(self, account=ACCOUNT, namespace=SYSTEM):
        """A kubeconfig with a fresh token of a service account, in a file as a pod has it."""
        answer = self.client.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": 7200},
            },
        )
        token = self.folder / f"{account}.token"
        token.touch(mode=0o600)
        token.write_text(answer["status"]["token"] + "\n")
        path = self.folder / f"{account}.kubeconfig"
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [
                        {
                            "name": "test",
                            "cluster": {
                                "server": self.plane.url,
                                "certificate-authority": str(self.plane.ca_file),
                            },
                        }
                    ],
                    "users": [{"name": account, "user": {"tokenFile": str(token)}}],
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": account,
                                                                "namespace": namespace}}],
                    "current-context": "test",
                }
            )
        )
        return path

    def extender_start(self, *args, env=None, argv=None, wait=True, kubeconfig=None):
        """Start the extender; `argv` replaces its whole command line. A kubeconfig is made by the API
        server, so one that is wanted while that is away has to be given."""
        environment = {"PATH": os.environ.get("PATH", ""), **(env or {})}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                environment[name] = os.environ[name]
        if argv is None:
            argv = [
                program(),
                "serve",
                f"--kubeconfig={kubeconfig or self.kubeconfig()}",
                f"--listen=127.0.0.1:{self.port}",
                f"--ops-listen=127.0.0.1:{self.ops_port}",
                "--shutdown-delay=0s",
                *args,
            ]
        self.extender.start(argv, environment)
        if wait:
            self.extender.await_ready(self.ready)

    def extender_stop(self, how=signal.SIGTERM):
        """Its exit status."""
        return self.extender.stop(how, PATIENCE_S)

    def ready(self):
        try:
            return self.ops("/readyz", raw=True).strip() == b"ok"
        except (OSError, http.client.HTTPException, ApiError):
            return False

    def scheduler_config(self, path="scheduler/kube-scheduler.yaml", port=None, certificates=None):
        """A configuration of manifests/ with the test's port, and nothing of the host's files: over
        plain HTTP, unless a folder is given that `manifests/scheduler/certificate` has filled."""
        config = load_config(MANIFESTS / path)
        for extender in config["extenders"]:
            scheme = "https" if certificates else "http"
            extender["urlPrefix"] = f"{scheme}://127.0.0.1:{port or self.port}/gpushare-scheduler"
            if certificates:
                extender["tlsConfig"].update(
                    caFile=str(certificates / "ca.crt"),
                    certFile=str(certificates / "tls.crt"),
                    keyFile=str(certificates / "tls.key"))
            else:
                for key in ("enableHTTPS", "enableHttps", "tlsConfig"):
                    extender.pop(key, None)
        config.get("clientConnection", {}).pop("kubeconfig", None)
        if "leaderElection" in config:
            config["leaderElection"]["leaderElect"] = False
        return config

    def scheduler_start(self, config=None, name="kube-scheduler", args=()):
        if config is None:
            legacy = self.version == "legacy"
            config = self.scheduler_config(
                "legacy/scheduler-policy.json" if legacy else "scheduler/kube-scheduler.yaml"
            )
        self.plane.scheduler_start(config, name, args)

    def start(self, *args):
        """Extender and scheduler."""
        self.extender_start(*args)
        self.scheduler_start()

    # Objects

    def node(self, name, sizes, behaviour="45fb8b8", annotations=None):
        """A node whose plugin reports every card to be as large as the first, as it does."""
        if self._played:
            self.fleet.add(GpushareKubelet, name, sizes, behaviour)
            self.audit.set_cards(name, sizes)
        capacity = {RESOURCE: sizes[0] * len(sizes), RESOURCE_COUNT: len(sizes)}
        self.client.create(node_object(name, capacity, annotations=annotations))

    def set_cards(self, name, sizes):
        """The plugin of a node restarts and finds other cards."""
        self.fleet.hardware.set_cards(name, sizes)
        self.audit.set_cards(name, sizes)
        self.fleet.kubelet(name).cards = range(len(sizes))
        amounts = {RESOURCE: str(sizes[0] * len(sizes)), RESOURCE_COUNT: str(len(sizes))}
        status = {"capacity": amounts, "allocatable": amounts}
        self.client.patch("Node", name, {"status": status}, subresource="status")

    def pod(self, name, units=0, containers=None, init=(), spec=None, **options):
        """`containers`: units of each, where there are several; `init` likewise."""
        amounts = [units] if containers is None else containers
        pod_spec = {
            "containers": [gpu_container(f"c{i}", amount) for i, amount in enumerate(amounts)],
            "terminationGracePeriodSeconds": 30,
            **(spec or {}),
        }
        if init:
            pod_spec["initContainers"] = [
                gpu_container(f"i{i}", amount) for i, amount in enumerate(init)
            ]
        return self.client.create(pod_object(name, spec=pod_spec, **options))

    def delete(self, name):
        """Asks kubelet to end the pod, as a controller does."""
        self.client.delete("Pod", name, grace_s=30)

    # Waiting and looking

    def await_running(self, names, timeout=PATIENCE_S, nudge=False):
        """`nudge`: remind kube-scheduler of its waiting pods, where that is not what is tested."""
        names = list(names)
        self._wait(
            lambda: all(self.fleet.phase(name) == "Running" for name in names),
            timeout,
            nudge,
            f"{len(names)} pods running",
        )

    def await_starts(self, pods, timeout=PATIENCE_S):
        """Wait until the nodes have admitted that many pods; reminds kube-scheduler of the rest."""
        hardware = self.fleet.hardware
        self._wait(
            lambda: len({start.uid for start in list(hardware.starts)}) >= pods,
            timeout,
            True,
            f"{pods} pods admitted by their nodes",
        )

    def _wait(self, done, timeout, nudge, what):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                wait_for(done, NUDGE_S if nudge else timeout)
                return
            if nudge:
                self.nudge()
        raise TimeoutError(f"{what}: not so after {timeout} s")

    def nudge(self):
        """Any change of a node's labels makes kube-scheduler look at refused pods again.

        Without a change it looks again after minutes only. The extender's own part in this is the
        subject of the scenario "wake".
        """
        node = self.client.items("Node")[0]["metadata"]["name"]
        labels = {"e2e/nudge": str(time.monotonic_ns())}
        self.client.patch("Node", node, {"metadata": {"labels": labels}})

    def await_gone(self, names, timeout=PATIENCE_S):
        names = list(names)
        wait_for(
            lambda: not any(self.fleet.phase(name) for name in names), timeout, what="pods gone"
        )

    def card(self, name):
        """(node, card) by the pod's annotations."""
        found = holding(self.client.get("Pod", name))
        return (found.node, found.card) if found else None

    def refusal(self, name, text, timeout=PATIENCE_S):
        """The message of the pod's condition PodScheduled, once it holds `text`, or one of several; else what
        it is."""
        texts = (text,) if isinstance(text, str) else text

        def message():
            pod = self.client.get("Pod", name)
            for condition in pod["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return f"{condition.get('reason')}: {condition.get('message')}"
            return ""

        with contextlib.suppress(TimeoutError):
            wait_for(lambda: any(each in message() for each in texts), timeout, 0.1)
        return message()

    def await_filter(self, pod, node, text=None):
        """Wait until the extender, asked without effect, refuses the node to such a pod with that text, or takes
        it (None): then it knows of what was written just before. kube-scheduler may be faster than a watch."""
        client = Client(f"http://127.0.0.1:{self.port}", timeout=30)
        body = {"Pod": pod, "NodeNames": [node]}

        def answer():
            said = client.request("POST", "/scheduler/filter-dryrun", body)
            reasons = {**(said.get("FailedNodes") or {}), **(said.get("FailedAndUnresolvableNodes") or {})}
            return text in reasons.get(node, "") if text else node in (said["NodeNames"] or ())

        with contextlib.closing(client):
            wait_for(answer, what=f'"{text}" of {node}')

    def await_served(self, names):
        """Wait until the extender has seen that the node side serves these pods: until then the next one of their
        size goes elsewhere, and none of them ends for another."""
        for name in names:
            wait_for(lambda pod=name: not self.ops(f"/api/v1/pods/default/{pod}")["waiting"], ignore=(ApiError,),
                     what=f"{name} is served")

    def await_pods_known(self):
        """Wait until the extender has seen every change of a pod that was made until now."""
        name = f"seen-{next(self._numbers)}"
        self.client.create(pod_object(name, {RESOURCE: 1}, scheduler="nobody"))
        wait_for(lambda: any(pod["name"] == name for pod in self.ops("/api/v1/waiting")["pods"]), what=f"{name} is known")
        self.client.delete("Pod", name)

    def events_of(self, name, reason):
        return [text for why, pod, text in self.client.events() if pod == name and why == reason]

    def ops(self, path, raw=False):
        client = Client(f"http://127.0.0.1:{self.ops_port}", timeout=10)
        try:
            return client.raw("GET", path) if raw else client.request("GET", path)
        finally:
            client.close()

    def inspect(self, node=None):
        """The gpushare command-line tool's view, from the port that kube-scheduler calls."""
        client = Client(f"http://127.0.0.1:{self.port}", timeout=10)
        try:
            suffix = f"/{node}" if node else ""
            return client.request("GET", f"/gpushare-scheduler/inspect{suffix}")
        finally:
            client.close()

    def metric(self, name):
        """The sum of a metric over its labels."""
        total = 0.0
        for line in self.ops("/metrics", raw=True).decode().splitlines():
            series, _, value = line.rpartition(" ")
            if series.split("{")[0] == name:
                total += float(value)
        return total

    def ledger(self):
        """{uid: (node, card or NO_CARD, units)} as the extender has it."""
        found = {}
        for node in self.ops("/api/v1/nodes")["nodes"]:
            for pod in node["pods"]:
                if not pod["shares"]:
                    continue
                cards = {share["card"] for share in pod["shares"]}
                card = cards.pop() if len(cards) == 1 else NO_CARD
                size = sum(share["memoryBytes"] for share in pod["shares"])
                found[pod["uid"]] = (
                    node["name"],
                    NO_CARD if card is None else card,
                    size // node["memoryUnitBytes"],
                )
        return found

    def cluster(self):
        """The same from a list of the API server."""
        found = {}
        cards = {node["metadata"]["name"]: int(
            node.get("status", {}).get("capacity", {}).get(RESOURCE_COUNT, 0))
                 for node in self.client.items("Node")}
        for pod in self.client.items("Pod"):
            held = holding(pod)
            marked = any(key.startswith("ALIYUN_COM_GPU_MEM_")
                         for key in pod["metadata"].get("annotations", {}))
            # Of several cards the plugin gives none to whom nobody has marked.
            if held and held.card == NO_CARD and not marked and cards.get(held.node, 0) > 1:
                continue
            if held:
                found[pod["metadata"]["uid"]] = (held.node, held.card, held.units)
        return found

    # Verdicts

    def verify(self, what="", timeout=PATIENCE_S, without_card=(), may_swap=False):
        """Every rule that must hold whatever happened; call it when nothing moves any more.

        `without_card`: pods that the plugin was right to give nothing; `may_swap`: whether pods of one size
        on a node may have each other's cards.
        """
        prefix = f"{what}: " if what else ""
        try:
            wait_for(lambda: self.ledger() == self.cluster(), timeout, 0.2)
        except TimeoutError:
            pass
        ledger, cluster = self.ledger(), self.cluster()
        self.tap.ok(
            ledger == cluster,
            f"{prefix}the ledger equals the cluster ({len(cluster)} pods)",
            "\n".join(
                f"{uid}: ledger {ledger.get(uid)}, cluster {cluster.get(uid)}"
                for uid in ledger.keys() | cluster.keys()
                if ledger.get(uid) != cluster.get(uid)
            ),
        )
        self.verify_history(prefix, without_card, may_swap)
        self.verify_pods(prefix)
        self.tap.equal(self.metric("gpuledger_ledger_drift"), 0, f"{prefix}no drift of its sums")

    def verify_history(self, prefix="", without_card=(), may_swap=False):
        hardware = self.fleet.hardware
        starts = list(hardware.starts)
        lost = [
            start
            for start in starts
            if start.card == NO_CARD and start.pod not in without_card
        ]
        wrong = [
            (start, self.audit.card_of(start.uid))
            for start in starts
            if start.card != NO_CARD and start.card != self.audit.card_of(start.uid)
        ]
        self.tap.ok(
            not wrong or may_swap,
            f"{prefix}every container got the card of its pod ({len(starts)} containers)",
            "\n".join(f"{start} but annotation {card}" for start, card in wrong),
        )
        # The plugin of 2019 writes the whole pod back, tries twice, and leaves the container without
        # a card if kubelet's own writes came between both times, as on a slow machine they do.
        outrun = [start for start in lost if "409 Conflict" in start.trouble]
        self.tap.ok(
            len(lost) == len(outrun) and len(outrun) * 100 <= len(starts),
            f"{prefix}no container was left without a card"
            + (f" but for {len(outrun)} whose plugin was outrun by kubelet" if outrun else ""),
            lost,
        )
        self.tap.ok(
            not self.audit.broken,
            f"{prefix}no card was ever given twice ({self.audit.bound} pods bound)",
            "\n".join(self.audit.broken),
        )
        self.tap.ok(
            not hardware.overcommits,
            f"{prefix}no card ever carried more than it has",
            hardware.overcommits,
        )
        self.tap.ok(not self.fleet.failures, f"{prefix}the players are well", self.fleet.failures)

    def verify_pods(self, prefix=""):
        """The answer about single pods, asked for a sample of those that run."""
        running = [
            (uid, starts[0])
            for uid, starts in self.fleet.hardware.running().items()
            if starts[0].card != NO_CARD
        ][:50]
        wrong = []
        for uid, start in running:
            try:
                answer = self.ops(f"/api/v1/pods/{start.namespace}/{start.pod}")
            except ApiError as error:
                wrong.append(f"{start.pod}: {error}")
                continue
            cards = {share["card"] for share in answer["shares"]}
            if answer["uid"] != uid or answer["node"] != start.node or cards != {start.card}:
                wrong.append(f"{start}: {answer}")
        self.tap.ok(
            not wrong,
            f"{prefix}what is said of each pod is what it got ({len(running)} asked)",
            "\n".join(wrong),
        )

    def await_quiet(self, seconds):
        """Wait until no pod has changed for so long. Retries that feed themselves never let that come."""

        def versions():
            return {pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"] for pod in self.client.items("Pod")}

        def quiet():
            before = versions()
            time.sleep(seconds)
            return versions() == before

        wait_for(quiet, what=f"{seconds} s without a change of a pod")
