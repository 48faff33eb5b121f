#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every path of api/openapi.yaml, asked for well and badly; every answer is held against it."""

import base64
import collections
import json
import pathlib
import re
import signal
import tempfile
import time

from common import PATIENCE, Server, Tap, main, need, text

need("jsonschema", "yaml")

# pylint: disable=wrong-import-position
from calls import EXPLAINED, FIT_CALLS, NEW_PODS, WORKLOADS, binding, named  # noqa: E402
from document import METHODS, Document, subschemas  # noqa: E402
from page_views import OPTIONS, check_page, write_cluster  # noqa: E402
from program import pod  # noqa: E402
from sizes import BODY_MAX, LARGE, check_sizes, check_unread  # noqa: E402
from verbs import check_inspect, check_status, check_verbs  # noqa: E402
from walk import Walk, send  # noqa: E402

SOURCE = "api/openapi.yaml"

# Bodies that others define: keys that are not described may come, and are passed over.
OPEN = {"KubernetesPod", "KubernetesNode", "NodeList", "FilterCall", "BindCall", "PreemptCall",
        "Workload", "FitCall", "AdmissionCall", "PlacementsCall"}

# Whose answers are seldom so large that they wait for memory.
SELDOM = {"/api/v1/nodes/{name}", "/api/v1/pods/{namespace}/{name}", "/api/v1/waiting", "/api/v1/decisions",
          "/api/v1/usage", "/api/v1/quotas", "/api/v1/audit", "/gpushare-scheduler/inspect/{node}"}

SAMPLES = {"node": "gpu-t4-0", "name": "gpu-t4-0", "namespace": "ml", "file": "app.js"}


def fill(path):
    return re.sub(r"\{(\w+)\}", lambda match: SAMPLES[match[1]], path)


# --- the document by itself -----------------------------------------------------------------------


def check_document(tap, document):
    tree = document.tree
    used = set(document.references())
    for reference in sorted(used):
        try:
            found = document.resolve({"$ref": reference})
        except KeyError:
            found = None
        tap.ok(found, f"{reference} is there")
    for kind, components in tree["components"].items():
        for name in components if kind != "securitySchemes" else ():
            tap.ok(f"#/components/{kind}/{name}" in used, f"{kind}/{name} is used")
    known = {tag["name"] for tag in tree["tags"]}
    ids = [item[method].get("operationId") for item in tree["paths"].values() for method in METHODS if method in item]
    tap.ok(all(ids) and len(set(ids)) == len(ids), "each operation has an operationId of its own", str(ids))
    for path, item in tree["paths"].items():
        declared = [document.resolve(each) for each in item.get("parameters", [])]
        in_path = [each["name"] for each in declared if each["in"] == "path"]
        tap.equal(in_path, re.findall(r"\{(\w+)\}", path), f"{path}: its parameters")
    for operation, details in document.operations.items():
        good = details["summary"] and set(details["tags"]) <= known and details["responses"]
        tap.ok(good, f"{operation.method} {operation.path}: has summary, tags and responses")


def check_schemas(tap, document):
    for place, schema in document.schemas():
        name = re.split(r"[.\[]", place)[0]
        if schema.get("type") == "object":
            closed = schema.get("additionalProperties")
            tap.ok(closed is False or isinstance(closed, dict) or (closed and name in OPEN),
                   f"{place}: says that it is closed")
        for key in schema.get("required", []):
            tap.ok(key in schema.get("properties", {}) or name in OPEN, f"{place}: knows {key}")
    for operation, details in document.operations.items():
        for status, response in details["responses"].items():
            for media, content in document.resolve(response).get("content", {}).items():
                inline = [s for _, s in subschemas(content["schema"], "") if "properties" in s]
                tap.ok(not inline, f"{operation.path}: {status} {media} has a schema with a name")


# --- the index ------------------------------------------------------------------------------------


def check_index(walk):
    """The program's own list of its routes and the document are the same."""
    titles = {"This listener": "operations", "The scheduler's listener": "scheduler"}
    listed, listener = set(), None
    for line in walk.text("/").splitlines():
        row = re.match(r"  (\w+) +(/\S*)  +\S", line)
        if row:
            listed.add((listener, *row.groups()))
        else:
            listener = titles[line]
    one_sided = listed ^ set(map(tuple, walk.document.operations))
    walk.tap.ok(not one_sided, "the index has what the document has", sorted(one_sided))


# --- what holds for every route -------------------------------------------------------------------


def check_refusal(walk, listener, method, path, status, allow=None):
    """An answer of no operation: the listener's way to say no."""
    answer = send(walk.bases[listener], method, path)
    title = f"{listener}: {method} {path[:60]}: {status}"
    walk.tap.equal((answer.status, answer.headers.get("Allow")), (status, allow), title)
    if listener == "scheduler" or method == "HEAD":
        faults = [f"body {answer.body!r}"] if answer.body else []
    else:
        schema = {"$ref": "#/components/schemas/Error"}
        faults = walk.document.errors(schema, json.loads(answer.body))
        if answer.media != "application/json":
            faults.append(f"content type {answer.type!r}")
    walk.tap.ok(not faults, f"{title}: in the listener's way", "\n".join(faults))


def check_methods(walk):
    """Wrong methods are 405, with exactly the right ones in Allow; HEAD goes where GET does."""
    taken = collections.defaultdict(list)
    for operation in walk.document.operations:
        taken[operation.listener, operation.path].append(operation.method)
    for (listener, path), methods in taken.items():
        allowed = [name for method in methods
                   for name in ([method, "HEAD"] if method == "GET" else [method])]
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"):
            if method not in allowed:
                check_refusal(walk, listener, method, fill(path), 405, ", ".join(allowed))
        for other in {"scheduler", "operations"} - {listener}:
            if (other, path) not in taken:
                check_refusal(walk, other, methods[0], fill(path), 404)


def check_spellings(walk):
    """HEAD, slashes at the end and doubled, queries nobody asked for: the same answer."""
    for operation in walk.document.operations:
        path = fill(operation.path)
        if operation.method != "GET" or path.startswith("/api/v1/pods/"):
            continue  # that of pods has its own samples
        base = walk.bases[operation.listener]
        plain = send(base, "GET", path)
        walk.hold(operation, plain, f"{operation.listener}: GET {path}")
        head = send(base, "HEAD", path)
        title = f"{operation.listener}: HEAD {path}"
        walk.tap.equal((head.status, head.type, head.body), (plain.status, plain.type, b""), title)
        walk.tap.ok(int(head.headers["Content-Length"]) > 0, f"{title}: says how long it would be")
        for spelling in (path + "/", path.replace("/", "//"), path + "?nobody=asked"):
            answer = send(base, "GET", spelling)
            title = f"{operation.listener}: GET {spelling}"
            walk.hold(operation, answer, title, (plain.status, plain.media))
            if path != "/metrics":
                walk.tap.ok(answer.body == plain.body, f"{title}: the same body")


def check_unknown(walk):
    paths = ["/nope", "/api", "/api/v1", "/api/v1/pods", "/api/v1/pods/ml", "/api/v1/nodes/a/b",
             "/api/v1/nodes/a%2Fb", "/HEALTHZ", "/healthz/x", "/%7Bnode%7D",
             "/gpushare-scheduler", "/gpushare-scheduler/inspect/a/b", "/scheduler/inspect",
             "/a" * 17, "/" + "a" * 8000]
    for listener in walk.bases:
        for path in paths:
            check_refusal(walk, listener, "GET", path, 404)


# --- the operations listener ----------------------------------------------------------------------


def check_about(walk):
    for path in ("/healthz", "/livez", "/readyz"):
        walk.tap.equal(walk.text(path), "ok\n", f"{path} says ok")
    verbose = walk.text("/readyz?verbose")
    walk.tap.ok(re.fullmatch(r"(\[\+\]\w+ ok\n)+(\[\+\]longest call [^\n]*\n)?readyz check passed\n", verbose), "checks by name")
    walk.tap.equal(walk.text("/readyz?verbose=1"), verbose, "verbose with a value is the same")
    for name in re.findall(r"(\w+) ok", verbose):
        walk.tap.equal(walk.text(f"/readyz?exclude={name}"), "ok\n", f"{name} may be left out")
    walk.json("/readyz?exclude=nothing", status=400)
    same = walk.ask("operations", "GET", "/openapi.yaml", media="application/yaml")
    walk.tap.ok(same == text(SOURCE), "/openapi.yaml is the document", "build again")
    version = walk.json("/version")
    bare = walk.ask("scheduler", "GET", "/version", media="text/plain")
    walk.tap.equal(version["version"], bare, "both listeners have one version")
    walk.tap.equal(version["cluster"], "snapshot", "the cluster is a snapshot")


def check_metrics(walk):
    """The text format: HELP and TYPE once for each, then its samples."""
    answer = send(walk.bases["operations"], "GET", "/metrics")
    walk.tap.equal(answer.type, "text/plain; version=0.0.4; charset=utf-8", "it names its format")
    name, names, bad = None, [], []
    for line in walk.text("/metrics").splitlines():
        head = re.fullmatch(r"# (HELP|TYPE) (\w+) (\S.*)", line)
        if head and head[1] == "HELP":
            name = head[2]
            names.append(name)
        elif head:
            if head[2] != name or head[3] not in ("counter", "gauge", "histogram"):
                bad.append(line)
        elif not re.fullmatch(rf'{name}(_bucket|_sum|_count)?(\{{(\w+="[^"]*",?)+\}})? [-+.e\d]+',
                              line):
            bad.append(line)
    walk.tap.equal(bad, [], "/metrics is well-formed")
    walk.tap.equal(sorted(names), sorted(set(names)), "and explains each metric once")


def check_nodes(walk):
    names = [node["name"] for node in walk.json("/api/v1/nodes")["nodes"]]
    walk.tap.equal(names, sorted(names), "nodes come by name")
    walk.tap.ok("gpu-t4-0" in names and "cpu-0" not in names, "those that share GPUs", names)
    one = walk.json("/api/v1/nodes/gpu-t4-0")
    walk.tap.ok(one in walk.json("/api/v1/nodes")["nodes"], "one is as it is among all")
    walk.tap.equal(walk.json("/api/v1/nodes/cpu-0")["dialects"], [], "a node without GPUs")
    for name in ("nope", "a%20b", "%C3%A9", "{name}"):
        walk.json(f"/api/v1/nodes/{name}", status=404)
    table = walk.text("/api/v1/nodes?output=table")
    for path in ("/api/v1/nodes", "/api/v1/nodes/gpu-t4-0"):
        walk.text(path, headers={"Accept": "text/plain"})
        walk.text(path + "?output=table")
        walk.text(path + "?output=table", headers={"Accept": "application/json"})
        walk.json(path + "?output=json", headers={"Accept": "text/plain"})
        for accept in ("*/*", "application/json, text/plain", "image/png", ""):
            walk.json(path, headers={"Accept": accept})
        for wish in ("xml", "", "JSON", "json%20"):
            walk.json(f"{path}?output={wish}", status=400)
    walk.json("/api/v1/nodes/nope?output=table", status=404)
    walk.json("/api/v1/nodes/nope", status=404, headers={"Accept": "text/plain"})
    accepted = walk.text("/api/v1/nodes", headers={"Accept": "text/plain"})
    walk.tap.equal(accepted, table, "Accept and output ask for the same table")


def check_pools(walk):
    pool = {"resource": "nvidia.com/gpu", "model": "Tesla-T4", "shared": False, "capacity": 4,
            "used": 1, "memoryBytes": 15360 << 20}
    answer = walk.json("/api/v1/nodes/whole-0")
    walk.tap.equal(answer["pools"], [pool], "devices that are given by count")
    walk.tap.equal([share["devices"] for share in answer["pods"][0]["shares"]], [1],
                   "and what a pod has of them")
    walk.tap.equal(walk.ask("scheduler", "GET", "/gpushare-scheduler/inspect"), {"nodes": []},
                   "of which the gpushare tool is not told")
    wish = {"metadata": {"name": "all"}, "spec": {"containers": [
        {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "4"}}}]}}
    told = walk.ask("operations", "POST", "/api/v1/explain", body=wish)
    walk.tap.equal([len(remedy["pods"]) for remedy in told["remedies"]
                    if remedy["kind"] in ("end", "move")], [1], "the pod in the way is named")
    wish["spec"]["nodeSelector"] = {"no": "where"}
    wish["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "99"}
    told = walk.ask("operations", "POST", "/api/v1/explain", body=wish)
    walk.tap.equal([[each["kind"] for each in pair["changes"]] for pair in told["pairs"]],
                   [["selector", "less"]], "two changes together")
    wish["spec"] = {"containers": [
        {"name": "c", "resources": {"limits": {"volcano.sh/gpu-number": "2"}}}]}
    told = walk.ask("operations", "POST", "/api/v1/explain", body=wish)
    walk.tap.equal([remedy["containers"] for remedy in told["remedies"]],
                   [[{"name": "c", "amounts": {"nvidia.com/gpu": "2"}}]], "other words for it")


def check_admission(walk):
    def review(memory):
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "r", "operation": "CREATE", "object": {"spec": {"containers": [
                {"name": "c", "resources": {"limits": {"gpuledger.io/mig-memory": memory}}}]}}}}

    walk.takes("AdmissionCall", review("5Gi"), True)
    walk.takes("AdmissionCall", {**review("5Gi"), "request": {"uid": "r"}}, False)
    answer = walk.ask("scheduler", "POST", "/admission/mig", body=review("5Gi"))
    walk.tap.ok("nvidia.com~1mig-1g.5gb" in base64.b64decode(answer["response"]["patch"]).decode(),
                "memory of an instance becomes a profile")
    answer = walk.ask("scheduler", "POST", "/admission/mig", body=review("6Gi"))
    walk.tap.ok("the largest is nvidia.com/mig-1g.5gb" in answer["response"]["status"]["message"],
                "unless no node has one", answer)
    walk.ask("scheduler", "POST", "/admission/mig", body={}, status=400, media=None)


def check_no_admission(walk):
    walk.ask("scheduler", "POST", "/admission/mig", body={}, status=404, media=None)


def check_pods(walk):
    held = [held for node in walk.json("/api/v1/nodes")["nodes"] for held in node["pods"]]
    walk.tap.ok(held, "some pods hold GPUs")
    for each in held:
        path = f"/api/v1/pods/{each['namespace']}/{each['name']}"
        walk.tap.equal(walk.json(path), each, f"{each['name']} is as it is on its node")
    path = f"/api/v1/pods/{held[0]['namespace']}/{held[0]['name']}"
    for spelling in (path + "/", path.replace("/", "//")):
        walk.json(spelling)
    walk.json(path, headers={"Accept": "text/plain"})
    head = send(walk.bases["operations"], "HEAD", path)
    walk.tap.equal((head.status, head.media, head.body), (200, "application/json", b""),
                   f"HEAD {path}")
    for name in ("nope", "%20", held[0]["name"].upper()):
        walk.json(f"/api/v1/pods/ml/{name}", status=404)
    walk.json(f"/api/v1/pods/nope/{held[0]['name']}", status=404)


def check_new_pods(walk):
    path = "/api/v1/snapshot/pods"
    for body, valid, status in NEW_PODS:
        walk.takes("KubernetesPod", body, valid)
        answer = walk.ask("operations", "POST", path, body=body, status=status)
        if status == 201:
            meta = answer["metadata"]
            walk.tap.ok(meta["uid"] and meta["namespace"] and answer["status"]["phase"],
                        "what it lacked is filled in", answer)
    walk.ask("operations", "POST", path + "//", body=pod("slashed", 1), status=201)
    large = json.dumps(pod("large", 1)) + " " * BODY_MAX["operations"]
    walk.ask("operations", "POST", path, body=large, status=413)


def check_explain(walk):
    path = "/api/v1/explain"
    for title, verdict in EXPLAINED:
        found = walk.json(f"{path}?pod={title}")
        walk.tap.equal(found["verdict"], verdict, f"{title} is {verdict}")
        for output in ("table", "wide"):
            lines = walk.text(f"{path}?pod={title}&output={output}").splitlines()
            walk.tap.equal(lines[0], found["summary"], f"so says its {output}")
    for body, valid, status, verdict in WORKLOADS:
        walk.takes("Workload", body, valid)
        found = walk.ask("operations", "POST", path, body=body, status=status)
        if status == 200:
            walk.tap.equal(found["verdict"], verdict, "the verdict on it")
            walk.ask("operations", "POST", path + "?output=wide", body=body, media="text/plain")
    for query in ("", "?pod", "?pod=a", "?pod=/", "?pod=ml/", "?pod=/a", "?pod=a/b/c",
                  "?pod=ml/classifier&output=xml"):
        walk.json(path + query, status=400)
    walk.json(f"{path}?pod=ml/nope", status=404)
    large = b" " * (BODY_MAX["operations"] + 1)
    walk.ask("operations", "POST", path, body=large, status=413)


def check_fit(walk):
    path = "/api/v1/fit"
    for body, valid, status, fitting in FIT_CALLS:
        walk.takes("FitCall", body, valid)
        found = walk.ask("operations", "POST", path, body=body, status=status)
        if status == 200:
            wanted = found["fitting"] if fitting is None else fitting
            walk.tap.equal(found["fitting"], wanted, "so many fit")
            table = walk.ask("operations", "POST", path + "?output=table", body=body,
                             media="text/plain")
            walk.tap.equal(table.splitlines()[0], found["summary"], "so says its table")
    walk.ask("operations", "POST", path + "?output=xml", body="{}", status=400)
    large = b" " * (BODY_MAX["operations"] + 1)
    walk.ask("operations", "POST", path, body=large, status=413)


def check_resume(walk):
    path = "/api/v1/nodes/gpu-t4-0/resume"
    answer = walk.ask("operations", "POST", path)
    walk.tap.equal(answer, {"node": "gpu-t4-0", "resumed": False}, "it was not left out")
    walk.ask("operations", "POST", "/api/v1/nodes/nope/resume", status=404)
    large = b" " * (BODY_MAX["operations"] + 1)
    walk.ask("operations", "POST", path, body=large, status=413)


def check_audit(walk):
    """A pod that somebody else has bound, found by the audit that was asked for."""
    path = "/api/v1/audit"
    before = walk.json(path)
    walk.tap.equal((before["run"], before["report"]), (0, None), "no audit yet")
    run = walk.ask("operations", "POST", path, status=202)["run"]
    deadline = time.monotonic() + PATIENCE
    while walk.json(path)["run"] < run and time.monotonic() < deadline:
        time.sleep(0.1)
    report = walk.json(path)["report"]
    found = [(row["cause"], row["name"], row["node"]) for row in report["rows"]]
    walk.tap.ok(("foreign", "lost", "gpu-t4-0") in found, "the pod without a card is found", found)
    counts = {cause["cause"]: cause["count"] for cause in report["causes"]}
    walk.tap.equal(counts["foreign"], len([row for row in found if row[0] == "foreign"]),
                   "its cause is counted")
    walk.tap.ok(report["compared"] and report["differences"], "they are differences", report)
    metric = f'gpuledger_audit_differences{{cause="foreign"}} {counts["foreign"]}\n'
    walk.tap.ok(metric in walk.text("/metrics"), "and a metric")
    age = send(walk.bases["operations"], "GET", path).headers["Age"]
    walk.tap.ok(age and int(age) < PATIENCE, "it says how old it is", age)
    large = b" " * (BODY_MAX["operations"] + 1)
    walk.ask("operations", "POST", path, body=large, status=413)


def check_old_pods(walk):
    path = "/api/v1/snapshot/pods/test/new"
    for spelling in (path, path.replace("new", "slashed") + "/"):
        walk.ask("operations", "DELETE", spelling, status=204, media=None)
        walk.ask("operations", "DELETE", spelling, status=404)


# --- a cluster that is no snapshot, and not there -------------------------------------------------


# A node whose GPUs kubelet hands out by count, and a pod that has one of them.
POOLED = {"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": "v1", "kind": "Node",
     "metadata": {"name": "whole-0", "labels": {"nvidia.com/gpu.product": "Tesla-T4",
                                                "nvidia.com/gpu.memory": "15360"}},
     "status": {"capacity": {"nvidia.com/gpu": "4"}, "allocatable": {"nvidia.com/gpu": "4"}}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cut-0"},
     "status": {"capacity": {"nvidia.com/mig-1g.5gb": "7"}}},
    {"apiVersion": "v1", "kind": "Pod",
     "metadata": {"name": "a", "namespace": "ml", "uid": "a"},
     "spec": {"nodeName": "whole-0", "containers": [
         {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
     "status": {"phase": "Running"}}]}

KUBECONFIG = {
    "apiVersion": "v1", "kind": "Config", "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
}


def check_no_cluster(walk):
    walk.tap.ok("[-]synced failed: " in walk.text("/readyz", status=503), "what failed is named")
    walk.tap.ok("[+]serving ok" in walk.text("/readyz?verbose", status=503), "and what did not")
    walk.text("/livez")
    walk.tap.equal(walk.json("/version")["cluster"], "kubernetes", "the cluster is a real one")
    walk.tap.equal(walk.json("/api/v1/nodes"), {"nodes": []}, "no node is known")
    walk.json("/api/v1/nodes/gpu-t4-0", status=404)
    walk.text("/metrics")
    walk.ask("operations", "POST", "/api/v1/snapshot/pods", body=pod("a", 1), status=404)
    walk.ask("operations", "DELETE", "/api/v1/snapshot/pods/test/a", status=404)
    answer = walk.ask("scheduler", "POST", "/scheduler/filter", body=named())
    walk.tap.ok(answer["Error"] and answer["NodeNames"] is None, "filter says an error", answer)
    answer = walk.ask("scheduler", "POST", "/scheduler/bind", body=binding())
    walk.tap.ok(answer["Error"], "so does bind", answer)
    walk.ask("scheduler", "GET", "/gpushare-scheduler/inspect/gpu-t4-0", status=404)
    for path in ("/api/v1/explain?pod=ml/a", "/api/v1/plan?pod=ml/a"):
        walk.ask("operations", "GET", path, status=503)


# --- all of it ------------------------------------------------------------------------------------


def check_token(walk):
    """Nobody gets in without one but probes, and who wants the page, which shows nothing by itself."""
    for operation in walk.document.operations:
        if operation.listener != "operations":
            continue
        path = fill(operation.path)
        wanted = {"/healthz": (200, "text/plain"), "/livez": (200, "text/plain"),
                  "/readyz": (200, "text/plain"), "/": (200, "text/plain"),
                  "/page/app.js": (200, "text/javascript")}.get(path, (401, "application/json"))
        walk.ask("operations", operation.method, path, status=wanted[0], media=wanted[1])


def check_doors(walk):
    """What may come from a web page of another site."""
    for operation in walk.document.operations:
        base, path = walk.bases[operation.listener], fill(operation.path)
        title = f"{operation.listener}: {operation.method} {path}"
        body = b"{}" if operation.method == "POST" else None
        if operation.listener == "operations":
            answer = send(base, operation.method, path, body, {"Host": "other.example"})
            walk.hold(operation, answer, f"{title}: by a name that is not known", (403, "application/json"))
        elif operation.path != "/version":  # the document cannot tell it from that of the other listener
            answer = send(base, operation.method, path, body, {"Origin": "http://other.example"})
            walk.hold(operation, answer, f"{title}: with an Origin", (403, None))
        if operation.method == "POST":
            answer = send(base, "POST", path, b"{}", {"Content-Type": "text/plain"})
            media = "application/json" if operation.listener == "operations" else None
            walk.hold(operation, answer, f"{title}: of another type", (415, media))


def check_coverage(tap, document, met):
    for operation in document.operations:
        tap.ok(any(operation == one for one, _, _ in met),
               f"asked for: {operation.listener} {operation.method} {operation.path}")
    # On one listener or the other: the document cannot tell them apart within a path.
    answered = {(*one[1:], str(status), media) for one, status, media in met if one}
    for operation, details in document.operations.items():
        for status, response in details["responses"].items():
            if status == "503" and operation.path in SELDOM:
                continue
            for media in document.resolve(response).get("content", {None: None}):
                tap.ok((*operation[1:], status, media) in answered,
                       f"answered: {operation.method} {operation.path} {status} {media}")
    for place, schema in document.schemas():
        for key in schema.get("properties", {}):
            name = f"{place}.{key}"
            tap.ok(name in document.met, f"met: {name}")


def stop(tap, server):
    """The end under a sanitizer, too, is a good one."""
    server.signal(signal.SIGTERM)
    tap.equal(server.exit_code(), 0, "the server ends well")
    tap.ok(not [line for line in server.log if "Sanitizer" in line], "and has nothing to report",
           "\n".join(server.log[-40:]))


def check(tap: Tap):
    document = Document(text(SOURCE))
    check_document(tap, document)
    check_schemas(tap, document)
    with Server() as server:
        walk = Walk(tap, document, server)
        for part in (check_index, check_methods, check_spellings, check_unknown, check_about,
                     check_metrics, check_nodes, check_explain, check_fit, check_new_pods,
                     check_resume, check_audit, check_verbs, check_no_admission, check_nodes, check_pods, check_inspect, check_status, check_old_pods):
            part(walk)
        check_doors(walk)
        for listener in walk.bases:
            check_sizes(walk, listener)
        stop(tap, server)
    met = walk.met
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = pathlib.Path(directory) / "config"
        kubeconfig.write_text(json.dumps(KUBECONFIG))
        with Server(f"--kubeconfig={kubeconfig}", snapshot="", wait=False) as server:
            walk = Walk(tap, document, server)
            check_no_cluster(walk)
            stop(tap, server)
        met |= walk.met
        token = pathlib.Path(directory) / "token"
        token.write_text("open-sesame")
        with Server(f"--ops-token-file={token}") as server:
            walk = Walk(tap, document, server)
            check_token(walk)
            stop(tap, server)
        met |= walk.met
        large = pathlib.Path(directory) / "large.json"
        large.write_text(LARGE)
        with Server("--transfer-timeout=5m", "--audit-interval=0s", "--drain-timeout=60s",
                    "--card-metrics-max=1000000", snapshot=large) as server:
            walk = Walk(tap, document, server)
            check_unread(walk)
            stop(tap, server)
        met |= walk.met
        with Server(*OPTIONS, snapshot=write_cluster(pathlib.Path(directory))) as server:
            walk = Walk(tap, document, server)
            check_page(walk)
            stop(tap, server)
        met |= walk.met
        pooled = pathlib.Path(directory) / "pooled.json"
        pooled.write_text(json.dumps(POOLED))
        with Server("--admission", snapshot=pooled) as server:
            walk = Walk(tap, document, server)
            check_pools(walk)
            check_admission(walk)
            stop(tap, server)
    check_coverage(tap, document, met | walk.met)


if __name__ == "__main__":
    main(check)
