# SPDX-License-Identifier: Apache-2.0
"""One list and watch of all pods, handed on to whoever asked for them."""

import http.client
import json
import threading

from kubeapi import ApiError, WatchError

# What a server that is stopped, restarting or overloaded does to a call.
OUTAGES = (OSError, http.client.HTTPException, ApiError, WatchError, json.JSONDecodeError)

WATCH_S = 20
RETRY_S = 0.1


def key(pod):
    meta = pod["metadata"]
    return meta["namespace"], meta["name"]


def has_ended(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


class PodFeed(threading.Thread):
    """Calls each of `handlers` with (type, pod) for every change, in the server's order.

    After an outage it lists again: a pod that is gone by then is DELETED as it was last seen, all
    others are MODIFIED. A pod created again under its old name is DELETED first.
    """

    def __init__(self, client, handlers):
        super().__init__(daemon=True)
        self.synced = threading.Event()
        self._client = client
        self._handlers = list(handlers)
        self._stopping = threading.Event()
        self._known = {}
        self.lists = 0  # more than one: there was an outage

    def stop(self):
        self._stopping.set()

    def run(self):
        while not self._stopping.is_set():
            try:
                version = self._list()
                self.synced.set()
                while not self._stopping.is_set():
                    version = self._watch(version)
            except OUTAGES:
                self._stopping.wait(RETRY_S)

    def _list(self):
        answer = self._client.list("Pod")
        self.lists += 1
        found = {key(pod): pod for pod in answer["items"]}
        # Also who was created again: whoever was given the room of the earlier one may come first.
        for name, pod in list(self._known.items()):
            if name not in found or found[name]["metadata"]["uid"] != pod["metadata"]["uid"]:
                self._emit("DELETED", pod)
        # What has ended first: whoever adds up must not see the room taken before it was left.
        for pod in sorted(found.values(), key=lambda pod: not has_ended(pod)):
            self._emit("MODIFIED", pod)
        return answer["metadata"]["resourceVersion"]

    def _watch(self, version):
        events = self._client.watch(
            "Pod", None, version, WATCH_S, allowWatchBookmarks="true"
        )
        for kind, pod in events:
            if self._stopping.is_set():
                break
            version = pod["metadata"]["resourceVersion"]
            if kind != "BOOKMARK":
                self._emit(kind, pod)
        return version

    def _emit(self, kind, pod):
        name = key(pod)
        before = self._known.get(name)
        if before is not None and before["metadata"]["uid"] != pod["metadata"]["uid"]:
            self._call("DELETED", before)
        if kind == "DELETED":
            self._known.pop(name, None)
        else:
            self._known[name] = pod
        self._call(kind, pod)

    def _call(self, kind, pod):
        for handler in self._handlers:
            handler(kind, pod)
