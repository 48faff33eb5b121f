# SPDX-License-Identifier: Apache-2.0
"""Namespaces of the test's own, in which it plays a machine: network, mounts, processes, cgroups.

Outside, `enter()` runs this program again within them and tidies up when it has ended, however it
ended. Inside, `prepare()` makes the network. Nothing else of the machine is changed: what programs
insist to write below /run, /var/lib and /var/log goes to file systems in memory that vanish with
the namespaces, as do processes, interfaces and iptables' rules. What remains for tidying up are
empty cgroups and the folder with the logs.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")
CGROUP = "gpuledger-realnode"
ADDRESSES = "10.77.0"  # .1 is the first node and the control plane, .2 the second node
PODS = "10.88.0.0/16"
# Where programs write whatever they are told.
COVERED = ["/run", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers"]
PROGRAMS = {
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "conntrack": "conntrack",
    "openssl": "openssl",
    "gcc": "gcc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "/bin/busybox": "busybox-static",
}


def obstacle():
    """Why this machine cannot run the test, as root; None if it can."""
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            return f'"{program}" is missing: tests/install realnode'
    probe = subprocess.run(
        [*_unshare(), "sh", "-c", "mount -t tmpfs probe /mnt && ip link add up0 type veth peer up1"
         " && iptables -t nat -A POSTROUTING -j MASQUERADE"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    if probe.returncode != 0:
        return f"namespaces, a veth pair and iptables are not to be had here: {probe.stdout.strip()}"
    if not _hierarchies():
        return f"{CGROUPS} is no cgroup file system"
    try:
        _cgroups_make(f"{CGROUP}-probe-{os.getpid()}")
    except OSError as error:
        return f"cgroups cannot be made here: {error}"
    _cgroups_remove(f"{CGROUP}-probe-{os.getpid()}")
    return None


def _unshare():
    return ["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child",
            "--mount-proc", "--propagation", "private"]


# cgroups: both layouts


def _hierarchies():
    """The folders below which groups are made: one per controller, or the only one."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.glob("*") if (path / "cgroup.procs").exists()]


def _cgroups_make(name):
    for hierarchy in _hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        if (hierarchy / "cgroup.subtree_control").exists():
            for level in (hierarchy, group):
                for controller in (level / "cgroup.controllers").read_text().split():
                    with contextlib.suppress(OSError):
                        (level / "cgroup.subtree_control").write_text(f"+{controller}")
        for each in ("cpuset.cpus", "cpuset.mems"):
            if (group / each).exists() and (hierarchy / each).exists():
                with contextlib.suppress(OSError):
                    (group / each).write_text((hierarchy / each).read_text())


def _cgroups_remove(name):
    """Processes that were killed take a moment to leave theirs."""
    for _ in range(100):
        left = [hierarchy / name for hierarchy in _hierarchies() if (hierarchy / name).exists()]
        if not left:
            return
        for group in left:
            for path, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
        time.sleep(0.05)


def _leftovers():
    """Names of groups whose run has ended without tidying up."""
    for group in {path.name for each in _hierarchies() for path in each.glob(f"{CGROUP}-*")}:
        pid = group.rpartition("-")[2]
        if not pathlib.Path(f"/proc/{pid}").exists():
            yield group


def enter(arguments, keep=None):
    """Runs this program again, inside; returns its exit status. `keep`: a folder for the logs."""
    for name in list(_leftovers()):
        _cgroups_remove(name)
        shutil.rmtree(pathlib.Path(tempfile.gettempdir()) / name, ignore_errors=True)
    name = f"{CGROUP}-{os.getpid()}"
    folder = pathlib.Path(keep or pathlib.Path(tempfile.gettempdir()) / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    _cgroups_make(name)
    # The first process there only collects the orphans.
    collector = ["bash", "-c", '"$@" & wait $!', "init"]
    child = subprocess.Popen(
        [*_unshare(), *collector, sys.executable, *arguments],
        env={**os.environ, "REALNODE_DIR": str(folder), "REALNODE_CGROUP": name},
    )
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: child.kill())
        return child.wait()
    finally:
        child.kill()
        child.wait()
        _cgroups_remove(name)
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def run(*command, **options):
    """A command that must succeed; its output."""
    answer = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options,
    )
    if answer.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {answer.returncode}: {answer.stdout}")
    return answer.stdout


def prepare():
    """Inside: file systems and network. Returns the folder of this run."""
    run("mount", "--make-rshared", "/")
    for folder in COVERED:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "realnode", folder)
    folder = pathlib.Path(os.environ["REALNODE_DIR"])
    state = folder / "state"
    state.mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "mode=0755", "realnode", state)
    run("hostname", "realnode")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1")
    for link in ("up0", "up1"):
        run("ip", "link", "set", link, "up")
    for host in (1, 2):
        run("ip", "address", "add", f"{ADDRESSES}.{host}/24", "dev", "up0")
    # kubelet and kube-proxy look for one; it leads nowhere.
    run("ip", "route", "add", "default", "via", f"{ADDRESSES}.254", "dev", "up0")
    for setting in ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.route_localnet=1"):
        run("sysctl", "-q", "-w", setting)
    return folder
