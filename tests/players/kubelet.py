# SPDX-License-Identifier: Apache-2.0
"""Plays the kubelets of many nodes in one process, for control planes without nodes.

A kubelet sees the pods that were bound to its node, asks its device plugin for a device once per
container, and reports: start time and phase, the end, the last DELETE of a pod that is being
deleted. What a plugin does is a subclass's business (allocate()).

Source of the order at admission, kubernetes@v1.36.3: pkg/kubelet/kubelet.go NewMainKubelet and
pkg/kubelet/lifecycle/predicate.go. Node pressure, sysctls and topology reject a pod before its plugin is
asked, too few cores, ports and the like only after it. Pods are admitted one after another, after a
restart by their creation; a container, plugin or kubelet that restarts asks for nothing again.
"""

import concurrent.futures
import heapq
import itertools
import random
import threading
import time

from feed import OUTAGES, PodFeed, key
from hardware import NO_CARD, Hardware, Start
from kubeapi import STRATEGIC_PATCH, ApiError, resource_path

TERMINAL = ("Succeeded", "Failed")
RETRY_S = 0.2

# Why kubelet rejects pods: before the plugin is asked, and after it has answered.
BEFORE_PLUGIN = ("Evicted", "SysctlForbidden", "TopologyAffinityError")
AFTER_PLUGIN = ("OutOfcpu", "OutOfmemory", "NodeAffinity", "NodePorts", "AppArmor", "NodeShutdown")

SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def units(text):
    """A whole quantity as the API server writes it: "8065", "8k", "1e3"."""
    text = str(text)
    for suffix, factor in sorted(SUFFIXES.items(), key=lambda item: -len(item[0])):
        if suffix and text.endswith(suffix):
            return int(text[: -len(suffix)]) * factor
    digits, _, exponent = text.partition("e")
    return int(digits) * 10 ** int(exponent or 0)


def limit(container, resource):
    return units(container.get("resources", {}).get("limits", {}).get(resource, 0))


def containers_of(pod):
    """In the order in which kubelet starts them: (whether it is an init container, container)."""
    spec = pod["spec"]
    for init, containers in ((True, spec.get("initContainers", [])), (False, spec["containers"])):
        for container in containers:
            yield init, container


def now_rfc3339():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Kubelet:
    """One node. Created by Fleet.add()."""

    resource = None

    def __init__(self, fleet, node, sizes, seed):
        self.fleet = fleet
        self.node = node
        self.random = random.Random(f"{seed}/{node}")
        self.cards = range(len(sizes))
        self.unserved = False  # the plugin is gone: kubelet rejects whoever asks for its resource
        self.rejects = {}  # {pod's name: the reason why kubelet turns it away}
        fleet.hardware.set_cards(node, sizes)
        self._lock = threading.Lock()
        self._inbox = []
        self._seen = {}
        self._busy = False
        self._reports = threading.Lock()  # they arrive in the order in which they were made
        self._over = set()

    def allocate(self, amount):
        """The plugin's answer for one container: (card or NO_CARD, trouble)."""
        raise NotImplementedError

    # What the API server says

    def observe(self, kind, pod):
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self.fleet.hardware.end(uid)
            with self._lock:
                self._seen.pop(uid, None)
            return
        terminating = "deletionTimestamp" in pod["metadata"]
        over = pod["status"].get("phase") in TERMINAL
        with self._lock:
            state = self._seen.get(uid)
            if state is None:
                self._seen[uid] = "new"
                if not terminating and not over:
                    self._inbox.append(pod)
                    self._wake()
            if not terminating or state == "stopping":
                return
            self._seen[uid] = "stopping"
        self.fleet.later(self.random.uniform(*self.fleet.stop_s), self._end_deleted, pod)

    def _wake(self):
        """Under the lock: one batch at a time, as a kubelet admits pods one after another."""
        if self._inbox and not self._busy:
            self._busy = True
            self.fleet.later(self.fleet.window_s, self._admit_batch)

    def arrived(self):
        """How many pods of the node it has seen that still exist."""
        with self._lock:
            return len(self._seen)

    # Admission

    def _admit_batch(self):
        self.fleet.running.wait()
        with self._lock:
            batch, self._inbox = self._inbox, []
        if self.fleet.shuffled:
            self.random.shuffle(batch)
        try:
            for pod in batch:
                self._admit(pod)
        finally:
            with self._lock:
                self._busy = False
                self._wake()

    def _take_up(self, pod):
        """Whether the pod is new here; from then on it counts as admitted."""
        with self._lock:
            uid = pod["metadata"]["uid"]
            if self._seen.get(uid) != "new":
                return False
            self._seen[uid] = "admitted"
            return True

    def _start(self, pod, container, init, amount, card, trouble=""):
        """What its container of that name was given."""
        meta = pod["metadata"]
        return Start(meta["uid"], meta["namespace"], meta["name"], self.node, container, init,
                     amount, card, trouble)

    def _admit(self, pod):
        if not self._take_up(pod) or self._turn_away(pod):
            return
        starts = []
        for init, container in containers_of(pod):
            amount = limit(container, self.resource)
            if amount == 0:
                continue
            card, trouble = self.allocate(amount)
            starts.append(self._start(pod, container["name"], init, amount, card, trouble))
        self.fleet.hardware.start(starts)
        if not self._turn_away_late(pod):
            self.fleet.later(0, self._report_admitted, pod, starts)

    def _turn_away(self, pod):
        """Whether kubelet rejects the pod without a word to the plugin."""
        reason = self.rejects.get(pod["metadata"]["name"])
        message = f"Pod was rejected: {reason}"
        if self.unserved and any(limit(each, self.resource) for _, each in containers_of(pod)):
            reason, message = "UnexpectedAdmissionError", "Allocate failed due to no healthy devices present"
        elif reason not in BEFORE_PLUGIN:
            return False
        self._reject(pod, reason, message)
        return True

    def _turn_away_late(self, pod):
        """Whether kubelet rejects a pod that the plugin has served."""
        reason = self.rejects.get(pod["metadata"]["name"])
        if reason not in AFTER_PLUGIN:
            return False
        self._reject(pod, reason, f"Pod was rejected: {reason}")
        return True

    def _reject(self, pod, reason, message):
        """At once; a pod that kubelet has rejected has a start time, too."""
        status = {"phase": "Failed", "reason": reason, "message": message, "startTime": now_rfc3339()}
        self._report_end(pod, status)

    # Reports

    def _report_admitted(self, pod, starts):
        self._report_alive(pod, {"startTime": now_rfc3339(), "phase": "Pending"})
        if any(start.card == NO_CARD for start in starts):
            waiting = {"reason": "RunContainerError", "message": "unknown device id"}
            self._report_containers(pod, "Pending", {"waiting": waiting})
        else:
            self.fleet.later(
                self.random.uniform(*self.fleet.start_s),
                self._report_containers,
                pod,
                "Running",
                {"running": {"startedAt": now_rfc3339()}},
            )

    def _report_containers(self, pod, phase, state):
        with self._lock:
            if self._seen.get(pod["metadata"]["uid"]) != "admitted":
                return
        statuses = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": phase == "Running",
                "restartCount": 0,
                "state": state,
            }
            for container in pod["spec"]["containers"]
        ]
        self._report_alive(pod, {"phase": phase, "containerStatuses": statuses})

    def _report_alive(self, pod, status):
        """Of one that has ended nothing is said that would have it live again."""
        with self._reports:
            if pod["metadata"]["uid"] not in self._over:
                self.report(pod, status)

    def finish(self, pod, phase):
        """The pod's processes end by themselves."""
        with self._lock:
            if self._seen.get(pod["metadata"]["uid"]) == "admitted":
                self._seen[pod["metadata"]["uid"]] = "ended"
        self._report_end(pod, {"phase": phase})

    def _report_end(self, pod, status):
        self.fleet.hardware.end(pod["metadata"]["uid"])
        with self._reports:
            self._over.add(pod["metadata"]["uid"])
            self.report(pod, status)

    def _end_deleted(self, pod):
        self.fleet.ending.wait()
        self.finish(pod, "Failed")
        path = resource_path("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        self.insist(lambda: self.fleet.client.request("DELETE", path, options))

    def report(self, pod, status):
        meta = pod["metadata"]
        # The UID makes it fail for a pod created again under this name.
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}
        self.insist(
            lambda: self.fleet.client.patch(
                "Pod", meta["name"], patch, meta["namespace"], "status", STRATEGIC_PATCH
            )
        )

    def insist(self, call):
        """Repeat a call until the server has answered it one way or the other."""
        while not self.fleet.stopping.is_set():
            try:
                return call()
            except ApiError as error:
                if error.code < 500 and error.code != 429:
                    return None
            except OUTAGES:
                pass
            self.fleet.stopping.wait(RETRY_S)
        return None


class Fleet:
    """All nodes of a cluster, fed by one watch.

    shuffled    admit the pods that arrive within `window_s` in an order of its own (a kubelet
                sorts a batch by creation time, and its workers race)
    start_s     (least, most) seconds from a pod's admission until it runs; the plugin looks among
                pods that do not run yet, so this must cover a batch, as it does in life
    stop_s      (least, most) seconds that a deleted pod takes to end
    """

    def __init__(
        self,
        client,
        seed=1,
        shuffled=False,
        window_s=0.0,
        start_s=(1.0, 2.0),
        stop_s=(0.0, 0.2),
        threads=8,
    ):
        self.client = client
        self.hardware = Hardware()
        self.shuffled = shuffled
        self.window_s = window_s
        self.start_s = start_s
        self.stop_s = stop_s
        self.stopping = threading.Event()
        self.running = threading.Event()
        self.running.set()
        self.ending = threading.Event()
        self.ending.set()
        self.failures = []
        self._seed = seed
        self._kubelets = {}
        self._pods = {}
        self._feed = None
        self._jobs = []
        self._number = itertools.count()
        self._turn = threading.Condition()
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)

    def add(self, kubelet, node, sizes, *arguments):
        """`kubelet` is a subclass of Kubelet; `sizes` are the units of the node's cards."""
        self._kubelets[node] = kubelet(self, node, sizes, self._seed, *arguments)
        return self._kubelets[node]

    def kubelet(self, node):
        return self._kubelets[node]

    def __enter__(self):
        threading.Thread(target=self._keep_time, daemon=True).start()
        self._feed = PodFeed(self.client, [self._observe])
        self._feed.start()
        self._feed.synced.wait(30)
        return self

    def __exit__(self, *_):
        self._feed.stop()
        self.stopping.set()
        self.running.set()
        self.ending.set()
        with self._turn:
            self._turn.notify_all()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def pause(self):
        """Admit nothing more until resume()."""
        self.running.clear()

    def resume(self):
        self.running.set()

    def hold_ends(self):
        """Let deleted pods go on until let_end()."""
        self.ending.clear()

    def let_end(self):
        self.ending.set()

    def finish(self, name, namespace="default", phase="Succeeded"):
        """End a running pod of that name by itself, as a batch job does."""
        pod = self._pods[namespace, name]
        self._kubelets[pod["spec"]["nodeName"]].finish(pod, phase)

    def phase(self, name, namespace="default"):
        """The pod's phase as the watch last said; None if there is no such pod."""
        pod = self._pods.get((namespace, name))
        return pod["status"].get("phase", "") if pod else None

    def later(self, delay_s, function, *arguments):
        with self._turn:
            job = time.monotonic() + delay_s, next(self._number), function, arguments
            heapq.heappush(self._jobs, job)
            self._turn.notify()

    def _keep_time(self):
        while not self.stopping.is_set():
            with self._turn:
                wait_s = self._jobs[0][0] - time.monotonic() if self._jobs else 60
                if wait_s > 0:
                    self._turn.wait(wait_s)
                    continue
                _, _, function, arguments = heapq.heappop(self._jobs)
            try:
                self._pool.submit(self._run, function, arguments)
            except RuntimeError:
                return  # shut down meanwhile

    def _run(self, function, arguments):
        try:
            function(*arguments)
        except Exception as error:  # a player that dies silently would look like a slow product
            self.failures.append(f"{function.__qualname__}: {error!r}")

    def _observe(self, kind, pod):
        if kind == "DELETED":
            self._pods.pop(key(pod), None)
        else:
            self._pods[key(pod)] = pod
        kubelet = self._kubelets.get(pod["spec"].get("nodeName"))
        if kubelet is not None:
            kubelet.observe(kind, pod)
