# SPDX-License-Identifier: Apache-2.0
"""An API server for tests over real sockets, on which what goes wrong is said beforehand.

Lists in pages, watches with bookmarks, GET, POST, PUT, merge patches and Bindings, with
resourceVersions and conflicts as kube-apiserver has them. Everything is in one asyncio loop, so that
a test may look at and change the objects between two awaits.

Faults: `server.faults` is a list of Fault; each request takes the first one that fits. `server.hook`
is awaited as hook(stage, request) with a Binding's stages "received", "applied", "replied"; when it
returns "drop", the connection is closed and nothing more is done. A fault's act "open" is a 409 for a
raw error of etcd: the request is kept in `server.open`, and `server.finish` carries it out. `server.evicted` is called with the key
of each pod that is evicted (a fault's sort "evict", "try to evict" for dryRun).
"""

import asyncio
import base64
import collections
import contextlib
import copy
import dataclasses
import json
import re
import ssl
import urllib.parse

KINDS = {"pods": "Pod", "nodes": "Node", "configmaps": "ConfigMap", "leases": "Lease",
         "events": "Event", "secrets": "Secret", "poddisruptionbudgets": "PodDisruptionBudget",
         "admissionchecks": "AdmissionCheck", "workloads": "Workload", "resourcequotas": "ResourceQuota",
         "elasticquotas": "ElasticQuota", "podgroups": "PodGroup", "podgroups.scheduling.k8s.io": "PodGroup"}
LOG_MAX = 4000


@dataclasses.dataclass
class Fault:
    """What befalls `times` requests of a sort: "list", "watch", "bind", "get", or any other verb and
    resource, as in "patch pods". `page`: only with a continue token. `after`: changes of a watch."""

    sort: str
    act: str  # status, refuse, cut, lost, done-cut, done-status, slow, error, repeat, end, open
    status: int = 500
    reason: str = "InternalError"
    retry_after: int = 0
    times: int = 1
    page: bool = False
    after: int = 0
    seconds: float = 0.2


class Request:
    def __init__(self, method, target, headers, body):
        self.method = method
        self.path, _, query = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query))
        self.headers = headers
        self.body = json.loads(body) if body else None
        parts = self.path.strip("/").split("/")
        # api/v1/... or apis/GROUP/VERSION/..., then namespaces/NS, then the resource
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        self.namespace = None
        if len(rest) > 2 and rest[0] == "namespaces":
            self.namespace, rest = rest[1], rest[2:]
        rest += [None] * 3
        self.resource, self.name, self.sub = rest[:3]
        if parts[0] == "apis" and f"{self.resource}.{parts[1]}" in KINDS:  # that two groups have
            self.resource += f".{parts[1]}"
        if self.method == "GET" and self.name is None:
            self.sort = "watch" if self.query.get("watch") else "list"
        elif self.method == "GET":
            self.sort = "get"
        elif self.sub == "binding":
            self.sort = "bind"
        elif self.sub == "eviction":
            self.sort = "try to evict" if "dryRun" in self.body["deleteOptions"] else "evict"
        else:
            self.sort = f"{self.method.lower()} {self.resource}"


class Refusal(Exception):
    def __init__(self, code, reason, message="", retry_after=0):
        super().__init__(message)
        self.code, self.retry_after = code, retry_after
        self.status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                       "reason": reason, "message": message or reason}


class Cut(Exception):
    """The connection is to be closed without another word."""


class ApiServer:
    def __init__(self, directory):
        self.directory = directory
        self.version = 1000
        self.objects = {resource: {} for resource in KINDS}  # (namespace, name) -> object
        self.log = []  # (version, resource, type, object, what it was before)
        self.cut_off = 0  # watches from before are told 410
        self.snapshots = {}
        self.tokens = {"first"}
        self.faults, self.struck = [], []
        self.sent = collections.deque(maxlen=1000)
        self.lists = 0
        self.clients = None  # common names of certificates that are accepted; None: no matter
        self.strangers = set()  # connections that are not
        self.open = []  # requests that were answered as if etcd had not
        self.hook = None
        self.grants = []  # called with each pod that was bound
        self.evicted = None
        self.changed = asyncio.Condition()
        self.server = self.port = self.tls = None
        self.connections, self.tasks = set(), set()
        self.uids = 0

    # --- life ------------------------------------------------------------------------------------

    async def start(self, identity=None, authority=None):
        """`identity`: certificate and key, for TLS; `authority`: of those of clients."""
        if identity:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*identity)
        if authority:
            self.tls.verify_mode = ssl.CERT_OPTIONAL
            self.tls.load_verify_locations(authority)
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", self.port or 0,
                                                 ssl=self.tls)
        self.port = self.server.sockets[0].getsockname()[1]

    def cut_all(self):
        for writer in list(self.connections):
            writer.transport.abort()

    async def stop(self):
        self.server.close()
        self.cut_all()
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.server.wait_closed()

    def kubeconfig(self, ca=None, identity=None):
        """A path; the token is in a file beside it. `identity`: a client's certificate and key."""
        (self.directory / "token").write_text("first\n")
        cluster = {"server": f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"}
        if ca:
            cluster["certificate-authority-data"] = base64.b64encode(ca.read_bytes()).decode()
        user = {"tokenFile": str(self.directory / "token")}
        if identity:
            user.update(zip(("client-certificate", "client-key"), map(str, identity)))
        path = self.directory / "kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }))
        return path

    # --- objects ---------------------------------------------------------------------------------

    def _note(self, resource, kind, obj, before):
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.log.append((self.version, resource, kind, copy.deepcopy(obj), before))
        if len(self.log) > LOG_MAX:
            self.cut_off = self.log[LOG_MAX // 2][0]
            del self.log[: LOG_MAX // 2 + 1]
        asyncio.get_running_loop().create_task(self._wake())

    async def _wake(self):
        async with self.changed:
            self.changed.notify_all()

    def put(self, resource, obj):
        """Creates or replaces."""
        meta = obj["metadata"]
        key = (meta.get("namespace"), meta["name"])
        before = copy.deepcopy(self.objects[resource].get(key))
        if not meta.get("uid"):
            self.uids += 1
            meta["uid"] = f"uid-{self.uids}"
        self.objects[resource][key] = obj
        self._note(resource, "MODIFIED" if before else "ADDED", obj, before)
        return obj

    def change(self, resource, key, function):
        obj = self.objects[resource].get(key)
        if obj is not None:
            before = copy.deepcopy(obj)
            function(obj)
            self._note(resource, "MODIFIED", obj, before)

    def delete(self, resource, key):
        obj = self.objects[resource].pop(key, None)
        if obj is not None:
            self._note(resource, "DELETED", obj, copy.deepcopy(obj))

    def compact(self):
        self.cut_off = self.version
        self.snapshots.clear()

    # --- HTTP ------------------------------------------------------------------------------------

    async def _serve(self, reader, writer):
        self.connections.add(writer)
        self.tasks.add(asyncio.current_task())
        try:
            while await self._serve_one(reader, writer):
                pass
        except (Cut, ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            writer.transport.abort()
        finally:
            self.connections.discard(writer)
            self.tasks.discard(asyncio.current_task())
            writer.close()

    async def _serve_one(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        # a token is not to be lowered
        for line in lines:
            if line.lower().startswith("authorization: "):
                headers["authorization"] = line.split(": ", 1)[1]
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, target, _ = first.split(" ", 2)
        request = Request(method, target, headers, body)
        self.sent.append(request)
        fault = self._strike(request)
        try:
            await self._answer(request, fault, reader, writer)
        except Refusal as refusal:
            extra = f"Retry-After: {refusal.retry_after}\r\n" if refusal.retry_after else ""
            await self._reply(writer, refusal.code, refusal.status, extra)
        return True

    def _strike(self, request):
        for fault in self.faults:
            if fault.sort == request.sort and (not fault.page or "continue" in request.query):
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                self.struck.append((request.sort, request.path, fault.act, fault.status))
                return fault
        return None

    async def _reply(self, writer, code, body, extra="", cut=False):
        text = json.dumps(body).encode()
        if writer.is_closing():
            raise Cut
        writer.write(f"HTTP/1.1 {code} X\r\nContent-Type: application/json\r\n{extra}"
                     f"Content-Length: {len(text)}\r\n\r\n".encode())
        writer.write(text[:len(text) // 2] if cut else text)
        await writer.drain()
        if cut:
            await asyncio.sleep(0.05)  # so that the first half arrives
            raise Cut

    async def _answer(self, request, fault, reader, writer):
        act = fault.act if fault else None
        if act == "refuse":
            raise Cut
        if act == "lost":
            await asyncio.sleep(fault.seconds)
            raise Cut
        if act == "slow":
            await asyncio.sleep(fault.seconds)
        if act == "status":
            raise Refusal(fault.status, fault.reason, "said so", fault.retry_after)
        if act == "open":
            self.open.append(request)
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on pods/binding "{request.name}": '
                                           "etcdserver: request timed out")
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens or not self._is_client(writer):
            raise Refusal(401, "Unauthorized")
        if request.sort == "watch":
            await self._watch(request, fault, reader, writer)
            return
        if self.hook and request.sort == "bind" and await self.hook("received", request) == "drop":
            raise Cut
        code, body = self._carry_out(request)
        if self.hook and request.sort == "bind" and await self.hook("applied", request) == "drop":
            raise Cut
        if act == "done-cut":
            raise Cut
        if act == "done-status":
            raise Refusal(fault.status, fault.reason, "and yet it is done")
        await self._reply(writer, code, body, cut=act == "cut")
        if self.hook and request.sort == "bind":
            await self.hook("replied", request)

    def _is_client(self, writer):
        """As kube-apiserver does, with each request by the connection's certificate."""
        if self.clients is None:
            return True
        subject = (writer.get_extra_info("peercert") or {}).get("subject", ())
        return writer not in self.strangers and dict(pair for each in subject for pair in each).get(
            "commonName") in self.clients

    # --- verbs -----------------------------------------------------------------------------------

    def _carry_out(self, request):
        if request.path == "/version":
            return 200, {"gitVersion": "v1.36.3"}
        if request.resource not in KINDS:
            raise Refusal(404, "NotFound")
        if request.sort == "list":
            return 200, self._list(request)
        if request.sort == "bind":
            return 201, self._bind(request)
        if request.sub == "eviction":
            return 201, self._evict(request)
        objects, key = self.objects[request.resource], (request.namespace, request.name)
        if request.method == "POST":
            meta = request.body["metadata"]
            key = (request.namespace, meta["name"])
            if key in objects:
                raise Refusal(409, "AlreadyExists")
            meta["namespace"] = request.namespace
            return 201, self.put(request.resource, request.body)
        obj = objects.get(key)
        if obj is None:
            raise Refusal(404, "NotFound", f"{request.resource} not found")
        if request.method in ("PUT", "PATCH"):
            version = request.body.get("metadata", {}).get("resourceVersion")
            if version not in (None, obj["metadata"]["resourceVersion"]):
                raise Refusal(409, "Conflict", "the object has been modified")
            uid = request.body.get("metadata", {}).get("uid")
            if uid not in (None, obj["metadata"]["uid"]):
                raise Refusal(422, "Invalid", "metadata.uid: field is immutable")
        if request.method == "PUT":
            request.body["metadata"]["uid"] = obj["metadata"]["uid"]
            self.put(request.resource, request.body)
        elif request.method == "PATCH":
            self.change(request.resource, key, lambda old: merge(old, request.body))
        elif request.method == "DELETE":
            self.delete(request.resource, key)
        return 200, objects.get(key, {})

    def finish(self, request):
        """Etcd carries out what was answered long ago, unless something else came first."""
        with contextlib.suppress(Refusal):
            self._carry_out(request)

    def _bind(self, request):
        key = (request.namespace, request.name)
        pod, meta = self.objects["pods"].get(key), request.body["metadata"]
        if pod is None:
            raise Refusal(404, "NotFound", "pods not found")
        if meta.get("uid") not in (None, pod["metadata"]["uid"]):
            raise Refusal(409, "Conflict", "Precondition failed: UID in precondition")
        if pod["metadata"].get("deletionTimestamp"):
            raise Refusal(409, "Conflict", f"pod {request.name} is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            raise Refusal(409, "Conflict",
                          f'pod {request.name} is already assigned to node "{pod["spec"]["nodeName"]}"')

        def bind(obj):
            obj["spec"]["nodeName"] = request.body["target"]["name"]
            obj["metadata"].setdefault("annotations", {}).update(meta.get("annotations", {}))

        self.change("pods", key, bind)
        for grant in self.grants:
            grant(pod)
        return {"kind": "Status", "status": "Success", "code": 201}

    def _evict(self, request):
        key = (request.namespace, request.name)
        pod = self.objects["pods"].get(key)
        if pod is None:
            raise Refusal(404, "NotFound", "pods not found")
        if request.body["deleteOptions"]["preconditions"]["uid"] != pod["metadata"]["uid"]:
            raise Refusal(409, "Conflict", "the UID in the precondition is another")
        if request.sort == "evict" and not pod["metadata"].get("deletionTimestamp"):
            self.change("pods", key, lambda obj: obj["metadata"].update(deletionTimestamp="2026-01-02T03:04:05Z"))
            self.evicted(key)
        return {"kind": "Status", "status": "Success", "code": 201}

    def _selected(self, request, obj):
        if obj is None:
            return False
        if request.namespace and obj["metadata"].get("namespace") != request.namespace:
            return False
        label = request.query.get("labelSelector")
        if label and label not in obj["metadata"].get("labels", {}):
            return False
        for term in filter(None, request.query.get("fieldSelector", "").split(",")):
            field, value = re.split("!?=", term)
            part, name = field.split(".")
            assert field in ("status.phase", "spec.nodeName"), term
            if (obj.get(part, {}).get(name) == value) == ("!=" in term):
                return False
        return True

    def _list(self, request):
        token = request.query.get("continue")
        if token:
            name, _, start = token.partition("_")
            if name not in self.snapshots:
                raise Refusal(410, "Expired", "The provided continue parameter is too old")
            version, items = self.snapshots[name]
        else:
            items = [copy.deepcopy(obj) for _, obj in sorted(
                self.objects[request.resource].items(), key=lambda item: str(item[0]))
                     if self._selected(request, obj)]
            self.lists += 1
            name, start, version = f"s{self.lists}", 0, self.version
        limit = int(request.query.get("limit", 0)) or len(items)
        end = int(start) + limit
        meta = {"resourceVersion": str(version)}
        if end < len(items):
            meta["continue"] = f"{name}_{end}"
            self.snapshots[name] = (version, items)
        return {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items[int(start):end]}

    async def _watch(self, request, fault, reader, writer):
        version = int(request.query["resourceVersion"])
        if version < self.cut_off:
            raise Refusal(410, "Expired", "too old resource version")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        told = 0
        while True:
            for number, resource, kind, obj, before in self.log[self._first_after(version):]:
                version = number
                if resource != request.resource:
                    continue
                was, is_now = self._selected(request, before), self._selected(request, obj)
                if kind != "DELETED" and not is_now:
                    kind = "DELETED"
                    if not was:
                        continue
                elif kind == "DELETED" and not was:
                    continue
                text = line(kind, obj)
                if fault and told == fault.after and fault.act in ("cut", "error", "end", "repeat"):
                    await self._break(writer, fault, text)
                if writer.is_closing():
                    raise Cut
                chunk(writer, text)
                told += 1
            await writer.drain()
            if reader.at_eof() or writer.is_closing():
                raise Cut
            async with self.changed:
                if not self.log or self.log[-1][0] <= version:
                    await self.changed.wait()

    def _first_after(self, version):
        low, high = 0, len(self.log)
        while low < high:
            middle = (low + high) // 2
            if self.log[middle][0] <= version:
                low = middle + 1
            else:
                high = middle
        return low

    async def _break(self, writer, fault, text):
        if fault.act == "repeat":
            chunk(writer, text)
            return
        if fault.act == "cut":
            chunk(writer, text[:len(text) // 2])
            await writer.drain()
            await asyncio.sleep(0.05)
            raise Cut
        if fault.act == "error":
            chunk(writer, line("ERROR", Refusal(fault.status, fault.reason).status))
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        raise Cut


def merge(old, patch):
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            old.pop(key, None)
        elif isinstance(value, dict) and isinstance(old.get(key), dict):
            merge(old[key], value)
        else:
            old[key] = value


def line(kind, obj):
    return (json.dumps({"type": kind, "object": obj}) + "\n").encode()


def chunk(writer, text):
    writer.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
