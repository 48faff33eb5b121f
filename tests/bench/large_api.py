# SPDX-License-Identifier: Apache-2.0
"""An API server over TLS that holds a large cluster and does little else: its pages are made and
compressed beforehand, so that a LIST costs it no more than sending them.

Nodes are as gpushare's plugin leaves them, pods as kube-scheduler and that plugin do. Of other kinds
there is nothing. Watches of pods get what `Churn` does; each event is made once for all watches.
"""

import gzip
import http.server
import json
import queue
import ssl
import threading
import time
import urllib.parse

PAGE = 1000
FIRST_VERSION = 1_000_000


def node_name(i):
    return f"gpu-{i:05d}"


def node(i, cards, units):
    amounts = {"cpu": "96", "memory": "792Gi", "pods": "1000",
               "aliyun.com/gpu-mem": str(cards * units), "aliyun.com/gpu-count": str(cards)}
    return {
        "metadata": {"name": node_name(i), "uid": f"node-uid-{i:05d}",
                     "resourceVersion": str(FIRST_VERSION),
                     "creationTimestamp": "2026-01-01T00:00:00Z",
                     "labels": {"kubernetes.io/hostname": node_name(i), "kubernetes.io/arch": "amd64",
                                "kubernetes.io/os": "linux", "gpushare": "true"}},
        "spec": {"podCIDR": f"10.{i // 256}.{i % 256}.0/24"},
        "status": {"capacity": amounts, "allocatable": amounts,
                   "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                   "nodeInfo": {"kubeletVersion": "v1.36.3", "architecture": "amd64"}},
    }


def pod(i, place, cards, card_units, version=FIRST_VERSION):
    """The i-th pod that there ever was, of one unit, at the place of that number."""
    return {
        "metadata": {
            "name": f"held-{i:07d}", "namespace": f"team-{i % 50:02d}", "uid": f"pod-uid-{i:07d}",
            "resourceVersion": str(version), "creationTimestamp": "2026-01-02T00:00:00Z",
            "labels": {"app": "inference", "pod-template-hash": "6d4cf56db6"},
            "annotations": {
                "ALIYUN_COM_GPU_MEM_IDX": str(place % cards),
                "ALIYUN_COM_GPU_MEM_DEV": str(card_units), "ALIYUN_COM_GPU_MEM_POD": "1",
                "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767312000000000000"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True,
                                 "name": "inference-6d4cf56db6", "uid": "7d0e"}]},
        "spec": {
            "nodeName": None,  # set by Cluster
            "schedulerName": "default-scheduler", "serviceAccountName": "default",
            "containers": [{
                "name": "main", "image": "registry.example/inference:1",
                "env": [{"name": "MODEL", "value": "resnet"}],
                "resources": {"limits": {"aliyun.com/gpu-mem": "1"},
                              "requests": {"aliyun.com/gpu-mem": "1"}},
                "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets"}]}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                             "effect": "NoExecute", "tolerationSeconds": 300}]},
        "status": {"phase": "Running",
                   "conditions": [{"type": "Ready", "status": "True"},
                                  {"type": "PodScheduled", "status": "True"}],
                   "startTime": "2026-01-02T00:00:05Z"},
    }


class Cluster:
    """Which pods there are: place -> number of the pod that has it. Pods go round over the nodes."""

    def __init__(self, nodes, cards, units, pods):
        self.nodes, self.cards, self.units = nodes, cards, units
        self.places = list(range(pods))
        self.made = pods
        self.version = FIRST_VERSION

    def pod_at(self, place, number, version=FIRST_VERSION):
        made = pod(number, place // self.nodes, self.cards, self.units, version)
        made["spec"]["nodeName"] = node_name(place % self.nodes)
        return made

    def list_pages(self, kind):
        """Compressed pages of the list, in the order of the continue tokens."""
        if kind == "NodeList":
            items = (node(i, self.cards, self.units) for i in range(self.nodes))
            n = self.nodes
        else:
            items = (self.pod_at(place, number) for place, number in enumerate(self.places))
            n = len(self.places)
        pages, version = [], str(self.version)
        for first in range(0, max(n, 1), PAGE):
            meta = {"resourceVersion": version}
            if first + PAGE < n:
                meta |= {"continue": str(first + PAGE), "remainingItemCount": n - first - PAGE}
            page = {"kind": kind, "apiVersion": "v1", "metadata": meta,
                    "items": [item for item, _ in zip(items, range(min(PAGE, n - first)))]}
            pages.append(gzip.compress(json.dumps(page, separators=(",", ":")).encode(), 1))
        return pages


class Watch:
    def __init__(self):
        self.events = queue.SimpleQueue()


class LargeApi:
    """Serves a Cluster on a port of 127.0.0.1 until closed."""

    def __init__(self, cluster, certificate, key):
        self.cluster = cluster
        self.lock = threading.Lock()
        self.watches = set()
        self.lists = 0  # of pods that have begun
        self.pages = {}
        self.refresh()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def refresh(self):
        """Makes the pages anew of what there is now."""
        with self.lock:
            pages = {"/api/v1/nodes": self.cluster.list_pages("NodeList"),
                     "/api/v1/pods": self.cluster.list_pages("PodList")}
            self.pages = pages

    def page(self, path, token):
        pages = self.pages.get(path)
        if pages is None:
            kind = {"metadata": {"resourceVersion": str(self.cluster.version)}, "items": [],
                    "kind": "List", "apiVersion": "v1"}
            return gzip.compress(json.dumps(kind).encode(), 1)
        if path == "/api/v1/pods" and not token:
            self.lists += 1
        return pages[int(token or 0) // PAGE]

    def replace_pod(self):
        """The pod of the oldest place ends, another comes there: two events of each watch."""
        cluster = self.cluster
        with self.lock:
            place = cluster.made % len(cluster.places)
            old, new = cluster.places[place], cluster.made
            cluster.places[place] = new
            cluster.made += 1
            for kind, number in (("DELETED", old), ("ADDED", new)):
                cluster.version += 1
                made = cluster.pod_at(place, number, cluster.version)
                line = json.dumps({"type": kind, "object": {"kind": "Pod", "apiVersion": "v1", **made}},
                                  separators=(",", ":")).encode() + b"\n"
                for watch in self.watches:
                    watch.events.put(line)

    def expire(self):
        """Says 410 to each watch of pods: whoever watches has to list anew."""
        line = json.dumps({"type": "ERROR", "object": {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired",
            "code": 410, "message": "too old resource version"}}).encode() + b"\n"
        with self.lock:
            for watch in self.watches:
                watch.events.put(line)
                watch.events.put(None)

    def close(self):
        self.expire()
        self.server.shutdown()
        self.server.server_close()


def handler_of(api):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(url.query))
            if query.get("watch") in ("1", "true"):
                self.stream(url.path)
            elif url.path == "/version":
                self.answer(200, b'{"major":"1","minor":"36","gitVersion":"v1.36.3"}')
            elif url.path in ("/api/v1/nodes", "/api/v1/pods") or "limit" in query:
                self.answer(200, api.page(url.path, query.get("continue")), compressed=True)
            else:
                self.answer(404, b'{"kind":"Status","status":"Failure","code":404,"reason":"NotFound"}')

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.answer(201, b"{}")

        do_PUT = do_PATCH = do_POST

        def answer(self, status, body, compressed=False):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if compressed:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def stream(self, path):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            watch = Watch()
            if path == "/api/v1/pods":
                with api.lock:
                    api.watches.add(watch)
            try:
                while (line := watch.events.get()) is not None:
                    lines = [line]
                    while not watch.events.empty() and lines[-1] is not None:
                        lines.append(watch.events.get())
                    ended = lines[-1] is None
                    chunk = b"".join(lines[:-1] if ended else lines)
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    if ended:
                        break
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True
            finally:
                with api.lock:
                    api.watches.discard(watch)

        def log_message(self, *_):
            pass

    return Handler


class Churn:
    """Replaces pods so that each watch gets so many events a second, until it is stopped."""

    def __init__(self, api, rate):
        self.api, self.rate, self.sent = api, rate, 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.began = time.monotonic()
        self.thread.start()

    def run(self):
        while not self.stopping.wait(0.01):
            due = int((time.monotonic() - self.began) * self.rate)
            while self.sent < due:
                self.api.replace_pod()
                self.sent += 2

    def stop(self):
        """Events a second that there really were."""
        self.stopping.set()
        self.thread.join()
        return self.sent / (time.monotonic() - self.began)
