# SPDX-License-Identifier: Apache-2.0
"""A small Kubernetes API client for the tests: Python's standard library and nothing else.

One `Client` may be used from many threads. Every thread keeps a connection of its own alive; a
watch opens one more and closes it when its generator ends.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.parse

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

# kind: (API group and version, plural, namespaced)
KINDS = {
    "Namespace": ("v1", "namespaces", False),
    "Node": ("v1", "nodes", False),
    "Pod": ("v1", "pods", True),
    "ConfigMap": ("v1", "configmaps", True),
    "Secret": ("v1", "secrets", True),
    "Service": ("v1", "services", True),
    "ServiceAccount": ("v1", "serviceaccounts", True),
    "Event": ("v1", "events", True),
    "DaemonSet": ("apps/v1", "daemonsets", True),
    "Deployment": ("apps/v1", "deployments", True),
    "Lease": ("coordination.k8s.io/v1", "leases", True),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies", True),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets", True),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses", False),
    "Role": ("rbac.authorization.k8s.io/v1", "roles", True),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings", True),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
}


class ApiError(Exception):
    """An answer other than 2xx; `reason` is the Status object's, such as "Conflict"."""

    def __init__(self, method, path, code, body):
        self.code = code
        self.body = body
        status = {}
        with contextlib.suppress(ValueError):
            status = json.loads(body)
        if not isinstance(status, dict):
            status = {}
        self.reason = status.get("reason", "")
        self.message = status.get("message") or body.decode("utf-8", "replace")[:400]
        super().__init__(f"{method} {path}: {code} {self.reason}: {self.message}")


class WatchError(Exception):
    """The ERROR event of a watch, for example 410 Gone when its resourceVersion is too old."""

    def __init__(self, status):
        self.code = status.get("code")
        self.reason = status.get("reason", "")
        super().__init__(f"watch: {self.code} {self.reason}: {status.get('message')}")


def wait_for(predicate, timeout=120, interval=0.05, what="condition", ignore=()):
    """Call `predicate` until its result is true; return that result or raise TimeoutError.

    Exceptions of the classes in `ignore` count as false, for example ApiError while a new role
    binding is not known everywhere yet.
    """
    deadline = time.monotonic() + timeout
    while True:
        result = None
        with contextlib.suppress(*ignore):
            result = predicate()
        if result:
            return result
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not so after {timeout} s")
        time.sleep(interval)


def resource_path(kind, name=None, namespace="default", subresource=None):
    """The URL path of a kind of KINDS: the collection, or one object when `name` is given.

    `namespace=None` names the collection of every namespace.
    """
    version, plural, namespaced = KINDS[kind]
    prefix = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    parts = [prefix]
    if namespaced and namespace is not None:
        parts += ["namespaces", namespace]
    parts.append(plural)
    if name is not None:
        parts.append(urllib.parse.quote(name, safe=""))
    if subresource is not None:
        parts.append(subresource)
    return "/".join(parts)


def node_object(name, capacity=None, labels=None, annotations=None, allocatable=None):
    """A Ready node. `capacity` is laid over 64 CPUs, 256 GiB and 250 pods."""
    quantities = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    quantities.update({key: str(value) for key, value in (capacity or {}).items()})
    free = dict(quantities)
    free.update({key: str(value) for key, value in (allocatable or {}).items()})
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "status": {
            "capacity": quantities,
            "allocatable": free,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "played by a test",
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
            ],
        },
    }


def pod_object(
    name,
    limits=None,
    requests=None,
    namespace="default",
    labels=None,
    annotations=None,
    scheduler=None,
    spec=None,
):
    """A pod of one container. `spec` is laid over its spec last, so it may replace all of it."""
    resources = {}
    if limits:
        resources["limits"] = {key: str(value) for key, value in limits.items()}
    if requests:
        resources["requests"] = {key: str(value) for key, value in requests.items()}
    pod_spec = {
        "containers": [{"name": "main", "image": "example.com/none:1", "resources": resources}],
        "terminationGracePeriodSeconds": 0,
    }
    if scheduler:
        pod_spec["schedulerName"] = scheduler
    pod_spec.update(spec or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": pod_spec,
    }


class Client:
    """Talks to one server as one user. `ca_file=None` leaves its certificate unchecked."""

    def __init__(self, url, token=None, ca_file=None, timeout=30):
        parts = urllib.parse.urlsplit(url)
        self.host = parts.hostname
        self.port = parts.port
        self.timeout = timeout
        self._local = threading.local()
        self._headers = {"Accept": "application/json", "User-Agent": "gpuledger-tests"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._context = None
        if parts.scheme == "https":
            self._context = ssl.create_default_context(cafile=ca_file)
            if ca_file is None:
                self._context.check_hostname = False
                self._context.verify_mode = ssl.CERT_NONE

    def close(self):
        """Close the calling thread's connection; the next request opens a new one."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _connect(self, timeout):
        if self._context is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=timeout, context=self._context
        )

    def raw(self, method, path, body=None, content_type="application/json", query=None):
        """One request; the body of a 2xx answer as bytes, ApiError for every other code.

        `body` is bytes, or anything json.dumps() takes.
        """
        if query:
            path = f"{path}?{urllib.parse.urlencode(query)}"
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = content_type
            if not isinstance(body, bytes):
                body = json.dumps(body, separators=(",", ":")).encode()
        while True:
            connection = getattr(self._local, "connection", None)
            reused = connection is not None
            if not reused:
                connection = self._local.connection = self._connect(self.timeout)
            try:
                connection.request(method, path, body=body, headers=headers)
                response = connection.getresponse()
                data = response.read()
            except OSError as error:
                # The server may close an idle connection at any moment; a fresh one tells.
                self.close()
                if not reused or isinstance(error, TimeoutError):
                    raise
                continue
            except BaseException:
                self.close()
                raise
            if response.will_close:
                self.close()
            if not 200 <= response.status < 300:
                raise ApiError(method, path, response.status, data)
            return data

    def request(self, method, path, body=None, content_type="application/json", query=None):
        """As raw(), with the answer decoded from JSON."""
        data = self.raw(method, path, body, content_type, query)
        return json.loads(data) if data else None

    def ready(self):
        """True when /readyz answers "ok"; never raises for a server that is not there."""
        try:
            return self.raw("GET", "/readyz").strip() == b"ok"
        except (OSError, http.client.HTTPException, ApiError):
            return False

    def version(self):
        return self.request("GET", "/version")

    def get(self, kind, name, namespace="default"):
        return self.request("GET", resource_path(kind, name, namespace))

    def find(self, kind, name, namespace="default"):
        """As get(), but None for an object that does not exist."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def list(self, kind, namespace=None, **query):
        """The whole List object; namespace=None lists every namespace.

        `query` takes the API's own names: labelSelector, fieldSelector, resourceVersion, limit, ...
        """
        return self.request("GET", resource_path(kind, None, namespace), query=query)

    def items(self, kind, namespace=None, **query):
        return self.list(kind, namespace, **query)["items"]

    def create(self, obj, namespace=None):
        """POST an object of a kind of KINDS; the namespace defaults to the object's own."""
        namespace = namespace or obj["metadata"].get("namespace", "default")
        return self.request("POST", resource_path(obj["kind"], None, namespace), obj)

    def create_priority_class(self, name, value):
        """Returns when pods may have it: the API server's admission refuses those whose class its own watch has not
        shown it yet."""
        self.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                     "value": value})
        pod = pod_object(f"of-{name}", spec={"priorityClassName": name})

        def is_admitted():
            try:
                return self.request("POST", resource_path("Pod"), pod, query={"dryRun": "All"})
            except ApiError as error:
                if error.code != 403 or "no PriorityClass with name" not in error.message:
                    raise
                return None

        wait_for(is_admitted, what=f"admission knows the PriorityClass {name}")

    def update(self, obj, subresource=None):
        meta = obj["metadata"]
        path = resource_path(
            obj["kind"], meta["name"], meta.get("namespace", "default"), subresource
        )
        return self.request("PUT", path, obj)

    def apply(self, obj):
        """Create the object, or lay it over the one that exists (merge patch)."""
        try:
            return self.create(obj)
        except ApiError as error:
            if error.code != 409:
                raise
        meta = obj["metadata"]
        return self.patch(obj["kind"], meta["name"], obj, meta.get("namespace", "default"))

    def patch(
        self,
        kind,
        name,
        patch,
        namespace="default",
        subresource=None,
        content_type=MERGE_PATCH,
    ):
        path = resource_path(kind, name, namespace, subresource)
        return self.request("PATCH", path, patch, content_type)

    def delete(self, kind, name, namespace="default", grace_s=0, missing_ok=True):
        try:
            return self.request(
                "DELETE",
                resource_path(kind, name, namespace),
                {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace_s},
            )
        except ApiError as error:
            if error.code == 404 and missing_ok:
                return None
            raise

    def delete_all(self, kind, namespace="default", grace_s=0, **query):
        """DELETE the collection; for pods without a kubelet keep `grace_s` at 0."""
        return self.request(
            "DELETE",
            resource_path(kind, None, namespace),
            {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace_s},
            query=query,
        )

    def watch(self, kind, namespace=None, resource_version=None, timeout=30, **query):
        """Yield (type, object) until `timeout` seconds have passed; WatchError on ERROR events.

        `timeout` is sent as timeoutSeconds, so the server ends the stream itself.
        """
        query.update(watch="true", timeoutSeconds=max(1, int(timeout)))
        if resource_version is not None:
            query["resourceVersion"] = resource_version
        path = resource_path(kind, None, namespace) + "?" + urllib.parse.urlencode(query)
        connection = self._connect(timeout + 5)
        try:
            connection.request("GET", path, headers=self._headers)
            response = connection.getresponse()
            if response.status != 200:
                raise ApiError("GET", path, response.status, response.read())
            with contextlib.suppress(http.client.IncompleteRead, socket.timeout):
                for line in response:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise WatchError(event["object"])
                    yield event["type"], event["object"]
        finally:
            connection.close()

    def make_node(self, name, capacity=None, labels=None, annotations=None, allocatable=None):
        """Create a Ready node that kube-scheduler uses at once; see node_object()."""
        return self.create(node_object(name, capacity, labels, annotations, allocatable))

    def make_pod(self, name, limits=None, **options):
        """Create a pod; the options are pod_object()'s."""
        return self.create(pod_object(name, limits, **options))

    def set_pod_phase(self, name, phase, namespace="default"):
        """Play the kubelet: "Running" (with a start time), "Succeeded" or "Failed"."""
        status = {"phase": phase}
        if phase == "Running":
            status["startTime"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return self.patch("Pod", name, {"status": status}, namespace, "status")

    def annotate(self, kind, name, annotations, namespace="default"):
        """Set annotations; a value of None removes its key."""
        return self.patch(kind, name, {"metadata": {"annotations": annotations}}, namespace)

    def bind(self, name, node, namespace="default", annotations=None, uid=None):
        """POST the binding subresource, as a scheduler does."""
        meta = {"name": name, "namespace": namespace}
        if annotations:
            meta["annotations"] = annotations
        if uid:
            meta["uid"] = uid
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": meta,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self.request("POST", resource_path("Pod", name, namespace, "binding"), binding)

    def placements(self, namespace=None, **query):
        """{(namespace, pod name): node name or None} of all pods."""
        return {
            (pod["metadata"]["namespace"], pod["metadata"]["name"]): pod["spec"].get("nodeName")
            for pod in self.items("Pod", namespace, **query)
        }

    def wait_bound(self, names, timeout=30, namespace="default"):
        """Wait until every named pod has a node; return {name: node}, or raise TimeoutError.

        Watches instead of polling: many lists of many pods would take the cores away from the
        scheduler that is waited for.
        """
        wanted = set(names)
        nodes = {}

        def note(event, pod):
            name = pod["metadata"]["name"]
            if event == "DELETED":
                nodes.pop(name, None)
            elif name in wanted:
                nodes[name] = pod["spec"]["nodeName"]
            return len(nodes) == len(wanted)

        deadline = time.monotonic() + timeout
        while True:
            nodes.clear()
            listed = self.list("Pod", namespace, fieldSelector="spec.nodeName!=")
            for pod in listed["items"]:
                note("ADDED", pod)
            if len(nodes) == len(wanted):
                return nodes
            left = deadline - time.monotonic()
            if left <= 0:
                missing = sorted(wanted - nodes.keys())
                raise TimeoutError(
                    f"{len(missing)} of {len(wanted)} pods without a node after {timeout} s, "
                    f'the first "{missing[0]}"'
                )
            version = listed["metadata"]["resourceVersion"]
            events = self.watch("Pod", namespace, version, left, fieldSelector="spec.nodeName!=")
            with contextlib.closing(events), contextlib.suppress(WatchError):
                for event, pod in events:
                    if note(event, pod):
                        return nodes

    def events(self, namespace="default", **query):
        """[(reason, object name, message)], oldest first."""
        found = self.items("Event", namespace, **query)
        found.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [
            (event["reason"], event["involvedObject"].get("name", ""), event.get("message", ""))
            for event in found
        ]
