#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real control plane on loopback: etcd, kube-apiserver and kube-scheduler, without containers.

    with ControlPlane("/tmp/cp") as plane:
        client = plane.client()
        client.make_node("n1", {"aliyun.com/gpu-mem": 16})
        plane.scheduler_start({"extenders": [...]})

The programs come from the cache that the script `build` beside this file fills. Nothing else plays
a part: there are no controllers and no kubelets, so pods that were bound stay Pending until a test
sets their status.

A plane brought up by the command line outlives it; one used as a context manager is stopped at the
end, also after an exception.
"""

import argparse
import dataclasses
import http.client
import json
import os
import pathlib
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from kubeapi import ApiError, Client
from process import ControlPlaneError, Process

HERE = pathlib.Path(__file__).resolve().parent
SHM = pathlib.Path("/dev/shm")

ADMIN = "admin"
SCHEDULER = "system:kube-scheduler"
USERS = {ADMIN: ["system:masters"], SCHEDULER: []}


def binaries(version):
    """The folder with the programs of a version, as `build` names it; ControlPlaneError when not built."""
    answer = subprocess.run(
        [HERE / "build", "--path", version], stdout=subprocess.PIPE, text=True, check=False
    )
    folder = pathlib.Path(answer.stdout.strip() or "/nonexistent")
    if answer.returncode != 0 or not (folder / "kube-apiserver").exists():
        raise ControlPlaneError(
            f'Kubernetes "{version}" is not built: run tests/controlplane/build {version}'
        )
    return folder


def free_ports(count):
    """Ports of loopback that nothing listens on at this moment, and that the kernel gives to no connection
    before the caller's program listens there."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = {}
    try:
        while len(found) < count:
            bound, port = socket.socket(), random.SystemRandom().randrange(min(10000, first - 1000), first)
            try:
                bound.bind(("127.0.0.1", port))
                found.setdefault(port, bound)
            except OSError:
                bound.close()
        return list(found)
    finally:
        for bound in found.values():
            bound.close()


def service_account(name, namespace):
    """A `users` entry that authenticates as a ServiceAccount, so that its RoleBindings apply."""
    return {
        f"system:serviceaccount:{namespace}:{name}": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{namespace}",
        ]
    }


@dataclasses.dataclass
class State:
    """What DIR/state.json holds, enough to reach and stop a plane from another process."""

    version: str
    etcd_port: int
    peer_port: int
    api_port: int
    data: str
    users: dict
    tokens: dict


class ControlPlane:
    """One etcd and one kube-apiserver in `folder`, and any number of kube-schedulers.

    version         "current", "legacy" or "1.30" (see the script `build`)
    users           {user name: [groups]} beside the administrator (`ADMIN`) and `SCHEDULER`;
                    service_account() makes an entry for a ServiceAccount's name
    apiserver_args  appended to kube-apiserver's, so they win

    Not thread-safe; the clients it hands out are.
    """

    # Both need a controller manager: one waits for service account objects, the other taints every
    # new node until its taint controller has seen it Ready.
    disabled_admission = ("ServiceAccount", "TaintNodesByCondition")
    authorization = "RBAC"
    certificate_names = "IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"

    def __init__(self, folder, version="current", users=None, apiserver_args=()):
        self.folder = pathlib.Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.version = version
        self.users = {**USERS, **(users or {})}
        self.apiserver_args = list(apiserver_args)
        self.state = None
        self._bin = None
        self._etcd = Process("etcd", self.folder)
        self._apiserver = Process("kube-apiserver", self.folder)
        self._schedulers = {}

    @classmethod
    def attach(cls, folder):
        """The plane that runs in `folder` already; ControlPlaneError when there is none."""
        try:
            state = State(**json.loads((pathlib.Path(folder) / "state.json").read_text()))
        except (OSError, ValueError, TypeError):
            raise ControlPlaneError(f'no control plane was started in "{folder}"') from None
        plane = cls(folder, state.version, state.users)
        plane.state = state
        return plane

    def __enter__(self):
        # A test runner ends a test that takes too long by SIGTERM, which Python does not turn into
        # an exception by itself.
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        return self.start()

    def __exit__(self, *_):
        self.stop()

    @property
    def bin(self):
        """The folder with this version's programs."""
        if self._bin is None:
            self._bin = binaries(self.version)
        return self._bin

    @property
    def url(self):
        return f"https://127.0.0.1:{self.state.api_port}"

    @property
    def ca_file(self):
        return self.folder / "apiserver.crt"

    def log(self, name="kube-apiserver"):
        """The log file of "etcd", "kube-apiserver" or a scheduler by its name."""
        return self.folder / f"{name}.log"

    def token(self, user=ADMIN):
        return self.state.tokens[user]

    def client(self, user=ADMIN, timeout=30):
        return Client(self.url, self.token(user), str(self.ca_file), timeout)

    def kubeconfig(self, user=ADMIN):
        """The path of a kubeconfig for one of the users; it names its CA file and holds a token."""
        return self.folder / f"{user.replace(':', '_')}.kubeconfig"

    def kubectl(self, *args, user=ADMIN, check=True):
        """Run kubectl of this version; returns its CompletedProcess with text output."""
        return subprocess.run(
            [self.bin / "kubectl", "--kubeconfig", self.kubeconfig(user), *args],
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=check,
        )

    # Start and stop

    def start(self):
        """Everything up to a ready API server; leaves nothing running when it fails."""
        if (self.folder / "state.json").exists():
            ControlPlane.attach(self.folder).stop()
        for log in self.folder.glob("*.log"):
            log.unlink()
        etcd_port, peer_port, api_port = free_ports(3)
        in_memory = SHM.is_dir() and os.access(SHM, os.W_OK)
        self.state = State(
            version=self.version,
            etcd_port=etcd_port,
            peer_port=peer_port,
            api_port=api_port,
            data=tempfile.mkdtemp(
                prefix="controlplane-", dir=SHM if in_memory else self.folder
            ),
            users=self.users,
            tokens={user: secrets.token_hex(16) for user in self.users},
        )
        self._write("state.json", json.dumps(dataclasses.asdict(self.state), indent=2))
        try:
            self._write_credentials()
            self.etcd_start()
            self.apiserver_start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        """Stop every process and drop etcd's data; logs stay. Harmless when nothing runs."""
        for name in self.scheduler_names():
            self.scheduler_stop(name, signal.SIGKILL)
        self._apiserver.stop(signal.SIGKILL)
        self._etcd.stop(signal.SIGKILL)
        if self.state is not None:
            shutil.rmtree(self.state.data, ignore_errors=True)
        (self.folder / "state.json").unlink(missing_ok=True)

    def processes(self):
        """etcd, kube-apiserver and every kube-scheduler that was started, running or not."""
        return [self._etcd, self._apiserver, *self._schedulers.values()]

    def etcd_start(self):
        client = f"http://127.0.0.1:{self.state.etcd_port}"
        peer = f"http://127.0.0.1:{self.state.peer_port}"
        self._etcd.start(
            [
                self.bin / "etcd",
                "--name=test",
                f"--data-dir={self.state.data}/etcd",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=test={peer}",
                "--unsafe-no-fsync",
                "--quota-backend-bytes=4294967296",
                "--log-level=warn",
                "--logger=zap",
            ],
            self._environment(),
        )
        self._etcd.await_ready(lambda: self._etcd_healthy(client))

    def etcd_stop(self):
        """Stop etcd alone; its data stays in `state.data`/etcd for etcd_start()."""
        self._etcd.stop(signal.SIGKILL)

    @staticmethod
    def _etcd_healthy(url):
        try:
            return Client(url, timeout=5).request("GET", "/health").get("health") == "true"
        except (OSError, ValueError, http.client.HTTPException, ApiError):
            return False

    def apiserver_start(self):
        """Start kube-apiserver on its port, and again after apiserver_stop(), and await /readyz."""
        folder = self.folder
        self._apiserver.start(
            [
                self.bin / "kube-apiserver",
                f"--etcd-servers=http://127.0.0.1:{self.state.etcd_port}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self.state.api_port}",
                f"--tls-cert-file={folder}/apiserver.crt",
                f"--tls-private-key-file={folder}/apiserver.key",
                f"--client-ca-file={folder}/apiserver.crt",
                f"--token-auth-file={folder}/tokens.csv",
                f"--authorization-mode={self.authorization}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={folder}/service-account.key",
                f"--service-account-signing-key-file={folder}/service-account.key",
                "--service-cluster-ip-range=10.255.0.0/24",
                "--endpoint-reconciler-type=none",
                "--allow-privileged=true",
                f"--disable-admission-plugins={','.join(self.disabled_admission)}",
                *self.apiserver_args,
            ],
            self._environment(),
        )
        client = self.client(timeout=5)
        self._apiserver.await_ready(client.ready)
        # Pods may be created once their namespace exists, which is after the first readyz.
        self._apiserver.await_ready(lambda: client.find("Namespace", "default"))
        client.close()

    def apiserver_stop(self, how=signal.SIGKILL):
        """Stop kube-apiserver alone; its port, certificate and data stay for apiserver_start().

        SIGTERM would let it drain its watches, for more than `process.STOP_TIMEOUT_S`
        seconds.
        """
        self._apiserver.stop(how)

    # kube-scheduler

    def scheduler_start(self, config=None, name="kube-scheduler", args=()):
        """Start a kube-scheduler and wait until it is healthy.

        `config` is a KubeSchedulerConfiguration or, for "legacy", a Policy: a dict, or the path of
        a JSON or YAML file. apiVersion and kind may be left out of a dict: they default to what
        fits the version. Client connection, rates and leader election are filled in where the
        configuration does not set them.
        """
        config = self._scheduler_config(config)
        port = free_ports(1)[0]
        kubeconfig = self.kubeconfig(SCHEDULER)
        argv = [
            self.bin / "kube-scheduler",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--v=2",
        ]
        config_file = self.folder / f"{name}.config"
        self._write(config_file.name, json.dumps(config, indent=2))
        if config["kind"] == "Policy":
            argv += [
                f"--policy-config-file={config_file}",
                f"--kubeconfig={kubeconfig}",
                "--leader-elect=false",
                "--kube-api-qps=5000",
                "--kube-api-burst=5000",
            ]
        else:
            argv.append(f"--config={config_file}")
        if self.version == "legacy":
            argv.append("--port=0")
        process = self._scheduler(name)
        process.start([*argv, *args], self._environment())
        self._write(f"{name}.port", str(port))
        try:
            process.await_ready(lambda: self._scheduler_get(name, "/healthz") == "ok")
        except BaseException:
            process.stop()
            raise

    def scheduler_stop(self, name="kube-scheduler", how=signal.SIGTERM):
        self._scheduler(name).stop(how)

    def scheduler_names(self):
        """The schedulers that run in this plane."""
        started = sorted(port_file.stem for port_file in self.folder.glob("*.port"))
        return [name for name in started if self._scheduler(name).pid() is not None]

    def scheduler_metrics(self, name="kube-scheduler"):
        """The text of a scheduler's /metrics."""
        return self._scheduler_get(name, "/metrics")

    def _scheduler(self, name):
        return self._schedulers.setdefault(name, Process(name, self.folder))

    def _scheduler_get(self, name, path):
        """The text at a path of a scheduler's own server; "" unless it answers with 200."""
        port = (self.folder / f"{name}.port").read_text().strip()
        # It makes its certificate in its own memory, so there is nothing to check it with.
        client = Client(f"https://127.0.0.1:{port}", self.token(), timeout=10)
        try:
            return client.raw("GET", path).decode()
        except (OSError, http.client.HTTPException, ApiError):
            return ""
        finally:
            client.close()

    def _scheduler_config(self, config):
        if isinstance(config, (str, os.PathLike)):
            config = load_config(config)
        config = dict(config or {})
        if self.version == "legacy":
            config.setdefault("apiVersion", "v1")
            config.setdefault("kind", "Policy")
        else:
            config.setdefault("apiVersion", "kubescheduler.config.k8s.io/v1")
            config.setdefault("kind", "KubeSchedulerConfiguration")
        if config["kind"] != "Policy":
            config["leaderElection"] = {"leaderElect": False, **config.get("leaderElection", {})}
            config["clientConnection"] = {
                "kubeconfig": str(self.kubeconfig(SCHEDULER)),
                "qps": 5000,
                "burst": 5000,
                **config.get("clientConnection", {}),
            }
        return config

    # Files

    def _environment(self):
        """This process's environment, less proxies: all traffic stays on loopback."""
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        env.pop("KUBECONFIG", None)
        return env

    def _write(self, name, text):
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text + "\n")
        return path

    def _openssl(self, *args):
        answer = subprocess.run(
            ["openssl", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if answer.returncode != 0:
            raise ControlPlaneError(f"openssl {args[0]}: {answer.stdout}")

    def _write_credentials(self):
        folder = self.folder
        self._openssl(
            *"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30".split(),
            *("-subj", "/CN=test control plane"),
            *("-addext", f"subjectAltName={self.certificate_names}"),
            *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
            *("-keyout", str(folder / "apiserver.key"), "-out", str(folder / "apiserver.crt")),
        )
        self._openssl("genrsa", "-out", str(folder / "service-account.key"), "2048")
        rows = []
        for number, (user, groups) in enumerate(self.users.items()):
            rows.append(f'{self.token(user)},"{user}",{number},"{",".join(groups)}"')
            self._write(self.kubeconfig(user).name, self._kubeconfig_text(user))
        self._write("tokens.csv", "\n".join(rows))

    def _kubeconfig_text(self, user):
        # JSON is YAML, so this is a kubeconfig for every client.
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {
                        "name": "test",
                        "cluster": {
                            "server": self.url,
                            "certificate-authority": str(self.ca_file),
                        },
                    }
                ],
                "users": [{"name": user, "user": {"token": self.token(user)}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
                "current-context": "test",
            },
            indent=2,
        )


def load_config(path):
    """A configuration file as a dict: JSON, or YAML where PyYAML (python3-yaml) is installed."""
    text = pathlib.Path(path).read_text()
    try:
        return json.loads(text)
    except ValueError:
        import yaml

        return yaml.safe_load(text)


def up(arguments):
    plane = ControlPlane(arguments.dir, arguments.version).start()
    try:
        if arguments.scheduler_config is not None:
            plane.scheduler_start(arguments.scheduler_config or None)
    except BaseException:
        plane.stop()
        raise
    status(arguments)


def down(arguments):
    ControlPlane.attach(arguments.dir).stop()


def status(arguments):
    plane = ControlPlane.attach(arguments.dir)
    ready = plane.client(timeout=5).ready()
    print(f"server      {plane.url} ({'ready' if ready else 'not ready'})")
    print(f"version     {plane.version}")
    print(f"kubeconfig  {plane.kubeconfig()}")
    print(f"kubectl     {plane.bin / 'kubectl'}")
    print(f"schedulers  {' '.join(plane.scheduler_names()) or 'none'}")
    return 0 if ready else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for function in (up, down, status):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("--dir", required=True, help="where its files, logs and pids live")
        if function is up:
            command.add_argument("--version", choices=("current", "legacy", "1.30"), default="current")
            command.add_argument(
                "--scheduler-config",
                nargs="?",
                const="",
                metavar="FILE",
                help="also start kube-scheduler, with this configuration when given",
            )
    arguments = parser.parse_args()
    try:
        return arguments.function(arguments)
    except ControlPlaneError as error:
        print(f"controlplane: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
