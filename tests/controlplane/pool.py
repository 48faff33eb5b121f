#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Control planes that tests use one after the other, instead of starting one each.

    pool.py start DIR [--with PID]    from now on planes may be kept in DIR
    pool.py stop DIR                  ends them all, and removes DIR

`start` leaves a keeper in the background, which ends all planes and itself when the process PID has
ended, however it did, or at `stop`. Tests find the pool by a variable (see tests/e2e/world.py) and
start a plane there when none is free. Without a keeper there is no pool.

A plane is given back as it was: whatever etcd has that it did not have when the plane was new is
deleted there, what has changed is written back, and what is missing, too. That is complete without
a list of resources, and neither finalizers nor admission stand in its way; kube-apiserver learns of
it by its watches, as of everything. A plane that is not clean afterwards, or whose test came to no
good end, is stopped.
"""

import argparse
import base64
import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import sys
import time

from controlplane import ControlPlane, ControlPlaneError
from kubeapi import Client, wait_for
from process import Process

REGISTRY = b"/registry/"
# kube-apiserver renews these by itself, and they say nothing of any object.
OWN = (b"/registry/masterleases/", b"/registry/leases/kube-system/apiserver-")
# Made after kube-apiserver is ready; kube-scheduler reads it.
LATE = b"/registry/configmaps/kube-system/extension-apiserver-authentication"
SETTLED_S = 0.5
TXN_OPERATIONS = 100  # etcd takes 128
RESTORE_TRIES = 100
STOP_S = 60


def _locked(path, how=fcntl.LOCK_EX):
    """The open file with its lock; None when another process has it."""
    file = open(path, "a+")
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
        return file
    except BlockingIOError:
        file.close()
        return None


class Etcd:
    """What the etcd of a plane holds of Kubernetes."""

    def __init__(self, plane):
        self._client = Client(f"http://127.0.0.1:{plane.state.etcd_port}", timeout=30)

    def read(self):
        """{key: value}, both as etcd's gateway writes them."""
        answer = self._client.request("POST", "/v3/kv/range", {
            "key": _text(REGISTRY), "range_end": _text(REGISTRY[:-1] + bytes([REGISTRY[-1] + 1]))})
        pairs = {pair["key"]: pair.get("value", "") for pair in answer.get("kvs", [])}
        return {key: value for key, value in pairs.items()
                if not base64.b64decode(key).startswith(OWN)}

    def settled(self):
        """What it holds once kube-apiserver has written all that it writes by itself at its start."""
        found, since = None, 0

        def quiet():
            nonlocal found, since
            now = self.read()
            if now != found:
                found, since = now, time.monotonic()
            return _text(LATE) in now and time.monotonic() - since > SETTLED_S

        wait_for(quiet, 60, 0.1, "kube-apiserver has written what it writes at its start")
        return found

    def restore(self, wanted):
        """Makes it what `wanted` says; whether it stays so. kube-apiserver may not have seen it at once, and make
        an object anew, such as the APIService of a CRD that is gone."""
        quiet_since = time.monotonic()
        for _ in range(RESTORE_TRIES):
            found = self.read()
            changes = [{"requestDeleteRange": {"key": key}} for key in found.keys() - wanted.keys()]
            changes += [{"requestPut": {"key": key, "value": value}}
                        for key, value in wanted.items() if found.get(key) != value]
            for first in range(0, len(changes), TXN_OPERATIONS):
                self._client.request("POST", "/v3/kv/txn", {"success": changes[first:first + TXN_OPERATIONS]})
            if changes:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > SETTLED_S:
                return True
            time.sleep(0.1)
        return False


def _text(key):
    return base64.b64encode(key).decode()


class Lent(ControlPlane):
    """A plane of a pool in the hands of one test: its schedulers, their files and links to the plane's own
    are in the test's folder. etcd and kube-apiserver are not the test's to stop."""

    def __init__(self, home, folder):
        super().__init__(folder, home.version, home.users)
        self.state = home.state
        self._etcd, self._apiserver = home.processes()[:2]
        names = [self.ca_file.name, *(home.log(name).name for name in ("etcd", "kube-apiserver"))]
        for name in names + [home.kubeconfig(user).name for user in home.users]:
            (self.folder / name).unlink(missing_ok=True)
            (self.folder / name).symlink_to(home.folder / name)

    def start(self):
        return self

    def stop(self):
        for name in self.scheduler_names():
            self.scheduler_stop(name, signal.SIGKILL)

    def etcd_stop(self):
        raise ControlPlaneError("etcd is others' as well: the test needs a plane of its own")

    def apiserver_stop(self, how=signal.SIGKILL):
        raise ControlPlaneError("kube-apiserver is others' as well: the test needs a plane of its own")


class Pool:
    """The planes in a folder. `prepare` is called with each new one, and its changes are not undone."""

    def __init__(self, folder, prepare=lambda plane: None):
        self.folder = pathlib.Path(folder).resolve()
        self._prepare = prepare

    def is_kept(self):
        """Whether a keeper will end what is started here."""
        with contextlib.suppress(OSError):
            lock = _locked(self.folder / "keeper.lock", fcntl.LOCK_SH)
            if lock is not None:
                lock.close()
            return lock is None
        return False

    @contextlib.contextmanager
    def lend(self, version, folder):
        """A Lent in `folder` of a plane that nobody else uses meanwhile, and that is as a new one is."""
        number = 0
        while (lock := _locked(self.folder / f"{version}-{number}.lock")) is None:
            number += 1
        home = self.folder / f"{version}-{number}"
        user = home / "user"
        with lock:
            plane = self._clean(home) or self._new(home, version)
            user.write_text(str(pathlib.Path(folder).resolve()))
            with Lent(plane, folder) as lent:
                yield lent
            # Not after an exception: then the next one finds "user" and starts anew.
            if Etcd(plane).restore(json.loads((home / "clean.json").read_text())):
                user.unlink()

    @staticmethod
    def _clean(home):
        """The plane that was given back, if one was, and if it runs."""
        with contextlib.suppress(ControlPlaneError):
            plane = ControlPlane.attach(home)
            if (home / "clean.json").exists() and not (home / "user").exists() and plane.client(timeout=5).ready():
                return plane
        return None

    def _new(self, home, version):
        discard(home)
        plane = ControlPlane(home, version).start()
        try:
            self._prepare(plane)
            unfinished = home / "clean.new"
            unfinished.write_text(json.dumps(Etcd(plane).settled()))
            unfinished.rename(home / "clean.json")
            if not self.is_kept():
                raise ControlPlaneError(f'nobody keeps the planes in "{self.folder}" any more')
        except BaseException:
            plane.stop()
            raise
        return plane

    def stop(self):
        """End every plane, also those in use, and what their users have left running."""
        for state in self.folder.glob("*/state.json"):
            discard(state.parent)
        shutil.rmtree(self.folder, ignore_errors=True)


def discard(home):
    """Stop the plane in a folder, and what a test that was killed has left running."""
    user = home / "user"
    if user.exists():
        folder = pathlib.Path(user.read_text())
        for file in folder.glob("*.pid"):
            Process(file.stem, folder).stop(signal.SIGKILL)
    with contextlib.suppress(ControlPlaneError):
        ControlPlane.attach(home).stop()
    shutil.rmtree(home, ignore_errors=True)


# Commands


def start(arguments):
    pool = Pool(arguments.dir)
    pool.folder.mkdir(parents=True, exist_ok=True)
    lock = _locked(pool.folder / "keeper.lock")
    if lock is None:
        raise ControlPlaneError(f'"{arguments.dir}" has a keeper already')
    command = [sys.executable, __file__, "keep", str(pool.folder), f"--lock={lock.fileno()}"]
    if arguments.pid:
        command.append(f"--with={arguments.pid}")
    # It inherits the lock. It has no part of the caller's input and output, or a pipe would not end.
    keeper = Process("keeper", pool.folder)
    keeper.start(command, pass_fds=[lock.fileno()])


def keep(arguments):
    """The keeper itself: waits for the end of PID or for SIGTERM, then ends the planes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if arguments.pid:
            with contextlib.suppress(ProcessLookupError):
                select.select([os.pidfd_open(arguments.pid)], [], [])
        else:
            signal.pause()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.close(arguments.lock)  # first of all, so that nobody starts another plane
        Pool(arguments.dir).stop()


def stop(arguments):
    pool = Pool(arguments.dir)
    Process("keeper", pool.folder).stop(timeout=STOP_S)
    pool.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for function in (start, keep, stop):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("dir", metavar="DIR")
        if function is not stop:
            command.add_argument("--with", type=int, dest="pid", metavar="PID", help="end when this process has ended")
        if function is keep:
            command.add_argument("--lock", type=int, required=True, help="the descriptor of the keeper's lock")
    arguments = parser.parse_args()
    try:
        arguments.function(arguments)
        return 0
    except (ControlPlaneError, TimeoutError) as error:
        print(f"pool: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
