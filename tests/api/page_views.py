# SPDX-License-Identifier: Apache-2.0
"""What the page is made of and what it asks for, held against the document and against other views."""

import collections
import json

from program import ROOT, pod
from walk import send

CLUSTER = ROOT / "examples" / "wall" / "cluster.json"
OPTIONS = ("--hami-resource-quotas", "--elastic-quotas", "--reclaim", "--gangs", "--classes=default")

BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
TAGGED = ("/", "/page/app.js", "/api/v1/wall", "/api/v1/waiting", "/api/v1/decisions", "/api/v1/quotas", "/api/v1/usage",
          "/api/v1/audit")


def check_files(walk):
    for name, media in (("app.js", "text/javascript"), ("style.css", "text/css"), ("icon.svg", "image/svg+xml"),
                        ("index.html", "text/html")):
        walk.ask("operations", "GET", f"/page/{name}", media=media)
    walk.json("/page/nope.js", status=404)
    walk.ask("operations", "GET", "/", media="text/html", headers=BROWSER)
    answer = send(walk.bases["operations"], "GET", "/", headers=BROWSER)
    policy = answer.headers["Content-Security-Policy"]
    walk.tap.ok("default-src 'none'" in policy and "unsafe" not in policy, "the page has a strict policy", policy)
    packed = send(walk.bases["operations"], "GET", "/page/app.js", headers={"Accept-Encoding": "gzip"})
    walk.tap.equal(packed.headers["Content-Encoding"], "gzip", "a browser gets it packed")


def check_tags(walk):
    """Who has an answer does not get it again."""
    for path in TAGGED:
        base = walk.bases["operations"]
        tag = send(base, "GET", path).headers["ETag"]
        for shown, status in ((tag, 304), (f'W/{tag}, "x"', 304), ("*", 304), ('"x"', 200), (tag[:-2], 200)):
            answer = send(base, "GET", path, headers={"If-None-Match": shown})
            walk.tap.equal((answer.status, bool(answer.body)), (status, status == 200),
                           f"{path}: If-None-Match: {shown}: {status}")
        answer = send(base, "GET", path, headers={"If-None-Match": tag})
        walk.hold(walk.document.find("operations", "GET", path), answer, f"{path}: as the document says")


def check_wall(walk):
    wall = walk.json("/api/v1/wall")
    nodes = walk.json("/api/v1/nodes")["nodes"]
    walk.tap.equal([node["name"] for node in wall["nodes"]], [node["name"] for node in nodes],
                   "the wall has the nodes that the ledger has")
    walk.tap.equal([[card["usedMib"] for card in node["cards"]] for node in wall["nodes"]],
                   [[card["memoryUsedBytes"] >> 20 for card in node["cards"]] for node in nodes],
                   "and on their cards what it has")
    walk.tap.equal([node["fragmented"] for node in wall["nodes"]],
                   [node["fragmentedGpuThousandths"] for node in nodes], "as much of it is fragmented")
    walk.tap.equal([pod["name"] for node in wall["nodes"] for pod in node["pods"]],
                   [pod["name"] for node in nodes for pod in node["pods"]], "and its pods")
    states = collections.Counter(card["state"] for node in wall["nodes"] for card in node["cards"])
    walk.tap.equal(states["unhealthy"], 1, "a card is unhealthy")
    walk.tap.equal([node["name"] for node in wall["nodes"] if node["cordoned"]], ["t4-5"], "a node is cordoned")
    cut = next(node for node in wall["nodes"] if node["name"] == "mig-0")
    walk.tap.equal(cut["cards"][0]["slices"], 8, "a card that is cut has so many slices")
    taken = [set(range(share["start"], share["start"] + share["slices"]))
             for each in cut["pods"] for share in each["shares"] if share["card"] == 0]
    walk.tap.ok(taken and sum(map(len, taken)) == len(set().union(*taken)), "its instances do not overlap", taken)
    whole = next(node for node in wall["nodes"] if node["name"] == "h100-0")
    walk.tap.equal([(each["devices"], each["size"]) for each in whole["pools"]], [(8, 1000)], "a pool of whole GPUs")
    last = wall["nodes"][-2]["name"]
    walk.tap.equal([node["name"] for node in walk.json(f"/api/v1/wall?after={last}")["nodes"]],
                   [wall["nodes"][-1]["name"]], "the wall goes on after a node")
    walk.tap.equal(walk.json("/api/v1/wall?after=zzz")["nodes"], [], "after the last there is nothing")


def check_waiting(walk):
    waiting = walk.json("/api/v1/waiting")
    created = [each["created"] for each in waiting["pods"]]
    walk.tap.equal((waiting["total"], created), (6, sorted(created)), "pods wait in order of arrival")
    walk.tap.equal([each["asked"] for each in waiting["pods"]], [False] * 6, "nobody has asked about them")


def write_cluster(folder):
    """The example, and a quota of a tree that has lost its parent."""
    cluster = json.loads(CLUSTER.read_text(encoding="utf-8"))
    words = "quota.scheduling.koordinator.sh/"
    cluster["items"].append({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": "lost", "namespace": "trees", "labels": {words + "parent": "nobody", words + "tree-id": "t"}},
        "spec": {"min": {"gpuledger.io/gpus": "1"}}})
    path = folder / "cluster.json"
    path.write_text(json.dumps(cluster), encoding="utf-8")
    return path


def check_quotas(walk):
    quotas = {(each["namespace"], each["unit"]): each for each in walk.json("/api/v1/quotas")["quotas"]}
    held = sum(share["memoryBytes"] >> 20 for node in walk.json("/api/v1/nodes")["nodes"] for each in node["pods"]
               if each["namespace"] == "vision" and each["dialect"] == "hami" for share in each["shares"])
    walk.tap.equal(quotas["vision", "MiB"]["used"], held, "what counts of a namespace")
    walk.tap.equal(quotas["vision", "MiB"]["limit"], 300000, "and its limit")
    walk.tap.ok(0 < quotas["vision", "%"]["used"] <= 600, "compute is counted, too", quotas)


def check_elastic(walk):
    elastic = {(each["namespace"], each["key"]): each for each in walk.json("/api/v1/quotas")["elastic"]}
    lost = elastic["trees", "gpuledger.io/gpus"]
    walk.tap.equal({key: lost[key] for key in ("quota", "parent", "tree", "lends", "weight", "fault")},
                   {"quota": "lost", "parent": "nobody", "tree": "t", "lends": True, "weight": 1, "fault": "no_parent"},
                   "a quota without its parent")
    vision = elastic["vision", "gpuledger.io/gpus"]
    walk.tap.ok(vision["used"] > vision["min"] == 4, "vision has more cards than it is sure of", vision)
    walk.tap.equal(vision["borrowed"], round(vision["used"] - vision["min"], 3), "which it has borrowed")


def check_reclaim(walk):
    """vision has more than its min, research less."""
    wish = {"metadata": {"name": "trainer", "namespace": "research"}, "spec": {"containers": [
        {"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": "15"}}}]}}
    found = walk.ask("operations", "POST", "/api/v1/explain", body=wish)["reclaim"]
    walk.tap.equal((found["answer"], found["waitsSeconds"], found["podsTogether"]), ("found", 30, 1),
                   "after the delay somebody gives back")
    walk.tap.equal([(each["namespace"], each["gpuThousandths"]) for each in found["pods"]], [("vision", 533)],
                   "one pod of who has borrowed, 8 GiB of 15")
    walk.ask("operations", "POST", "/api/v1/explain?output=wide", body=wish, media="text/plain")
    wish["metadata"]["namespace"] = "vision"
    found = walk.ask("operations", "POST", "/api/v1/explain", body=wish)["reclaim"]
    walk.tap.equal(found["answer"], "above_min", "nobody does for whoever has borrowed")
    for namespace, counts in (("trees", "trees/lost"), ("vision", "vision")): # whose quota that is, and another
        wish["metadata"] |= {"namespace": namespace, "labels": {"quota.scheduling.koordinator.sh/name": "lost"}}
        told = walk.ask("operations", "POST", "/api/v1/explain", body=wish)["quota"]
        walk.tap.equal((told["name"], told["from"] is None, told["note"] is None),
                       (counts, namespace == "vision", namespace == "trees"), "where a pod's label lets it count")


def usage(walk, by):
    answer = walk.json(f"/api/v1/usage?by={by}")
    return answer["cluster"], {row["name"]: row for row in answer["rows"]}, [row["usedGpuThousandths"] for row in answer["rows"]]


def check_usage(walk):
    """Held against the wall, node by node, and against what quotas count."""
    wall = walk.json("/api/v1/wall")["nodes"]
    cluster, nodes, order = usage(walk, "nodes")
    walk.tap.equal(order, sorted(order, reverse=True), "the node that gives most comes first")
    for node in wall:
        size = 1000 * len(node["cards"]) + sum(pool["devices"] * pool["size"] for pool in node["pools"])
        given = sum(card["given"] for card in node["cards"]) + sum(pool["used"] * pool["size"] for pool in node["pools"])
        shut = sum(1000 - card["given"] for card in node["cards"] if card["state"] != "open")
        out = size - given if node["cordoned"] else shut
        row = nodes[node["name"]]
        walk.tap.equal((row["gpuThousandths"], row["usedGpuThousandths"], row["outOfServiceGpuThousandths"], row["pods"]),
                       (size, given, out, len(node["pods"])), f"{node['name']}: as the wall has it")
        walk.tap.equal(size, given + out + row["usableGpuThousandths"] + row["uselessGpuThousandths"], "nothing is missing")
    _, models, _ = usage(walk, "models")
    for key in ("gpuThousandths", "usedGpuThousandths"):
        sums = {key: sum(row[key] for row in rows.values()) for rows in (nodes, models)}
        walk.tap.equal(sums, {key: cluster[key]}, f"{key}: nodes and models come to the same")
    _, spaces, _ = usage(walk, "namespaces")
    walk.tap.equal((sum(row["pods"] for row in spaces.values()), sum(row["waiting"] for row in spaces.values())),
                   (cluster["pods"], cluster["waiting"]), "every pod is of a namespace")
    first = walk.json("/api/v1/waiting")["pods"][0]
    walk.tap.equal((cluster["oldestWaiting"], cluster["oldestCreated"]),
                   (f"{first['namespace']}/{first['name']}", first["created"]), "who has waited longest")
    elastic = {(each["namespace"], each["key"]): each for each in walk.json("/api/v1/quotas")["elastic"]}
    walk.tap.equal(spaces["vision"]["usedGpuThousandths"], round(1000 * elastic["vision", "gpuledger.io/gpus"]["used"]),
                   "a namespace has what its quota counts")
    walk.json("/api/v1/usage?by=pods", status=400)


def check_plan(walk):
    """Who moves is where it is said to be, and leaves for where there is room."""
    plan = walk.json("/api/v1/plan?pod=research/notebook-xl")
    walk.tap.ok(plan["reached"] and plan["steps"], "moves make room", plan)
    nodes = {node["name"]: node for node in walk.json("/api/v1/nodes")["nodes"]}
    for step in plan["steps"]:
        there = {(each["namespace"], each["name"]) for each in nodes[step["from"]]["pods"]}
        walk.tap.ok((step["namespace"], step["name"]) in there, f"{step['name']} is on {step['from']}")
    walk.tap.ok(any(step["from"] == plan["node"] for step in plan["steps"]), "somebody leaves the node that takes it")
    stuck = walk.json("/api/v1/plan?empty=l4-0&moves=1")
    walk.tap.ok(not stuck["reached"] and stuck["why"], "26 pods do not leave in one move", stuck)
    pieces = walk.json("/api/v1/plan?defragment=0.1")
    walk.tap.ok(pieces["steps"] and pieces["fragmentedGpuThousandths"]["then"] <= pieces["fragmentedGpuThousandths"]["most"],
                "less is in pieces", pieces)
    alone = walk.ask("operations", "POST", "/api/v1/plan", body=pod("new", 2))
    walk.tap.equal((alone["reached"], alone["steps"]), (True, []), "there is room for a small one")
    for number in range(2):
        member = pod(f"both-{number}", 1)
        member["metadata"]["annotations"] = {"gang.scheduling.koordinator.sh/name": "both",
                                             "gang.scheduling.koordinator.sh/min-available": "2"}
        walk.ask("operations", "POST", "/api/v1/snapshot/pods", body=member, status=201)
    both = walk.json("/api/v1/plan?group=test/both")
    walk.tap.equal((both["reached"], [each["name"] for each in both["pods"]]), (True, ["both-0", "both-1"]), "a group has places")
    walk.json("/api/v1/plan?group=test/none", status=404)
    for number in range(2):
        walk.ask("operations", "DELETE", f"/api/v1/snapshot/pods/test/both-{number}", status=204, media=None)
    lonely = pod("lonely", 14)
    walk.ask("operations", "POST", "/api/v1/snapshot/pods", body=lonely, status=201)
    helped = walk.json("/api/v1/plan?waiting=0s")
    walk.tap.ok("research/notebook-xl" in helped["goal"] and helped["steps"], "the first who waits and can be helped", helped)
    walk.json("/api/v1/plan?pod=test/nobody", status=404)
    walk.json("/api/v1/plan?empty=nowhere", status=404)
    for query in ("pod=x", "pod=test/lonely&moves=0", "empty=/1", "empty=t4-0&force=yes", "empty=t4-0&perNode=99", "empty=t4-0&perNamespace=x",
                  "defragment=0", "waiting=soon", "group=both", "empty=t4-0&defragment=1", "pod=test/lonely&defragment=1"):
        walk.json(f"/api/v1/plan?{query}", status=400)
    walk.ask("operations", "POST", "/api/v1/plan", body="[", status=400)
    walk.ask("operations", "DELETE", "/api/v1/snapshot/pods/test/lonely", status=204, media=None)
    kept = walk.json("/api/v1/plan?empty=t4-3")
    walk.tap.equal([(each["name"], each["node"]) for each in kept["stays"]], [("new", "t4-3")], "nobody makes it again")


def check_decisions(walk):
    """Asked again with the same answer, it is the same decision."""
    walk.tap.equal(walk.json("/api/v1/decisions")["decisions"], [], "nothing was decided yet")
    asked = pod("new", 2)
    names = {"NodeNames": ["t4-3", "l40s-0", "nope"]}
    for _ in range(3):
        walk.ask("scheduler", "POST", "/scheduler/filter", body={"Pod": asked, **names})
    huge = pod("huge", 999)
    walk.ask("scheduler", "POST", "/scheduler/filter", body={"Pod": huge, **names})
    walk.ask("operations", "POST", "/api/v1/snapshot/pods", body=asked, status=201)
    bind = {"PodName": "new", "PodNamespace": "test", "PodUID": "uid-new", "Node": "t4-3"}
    walk.ask("scheduler", "POST", "/scheduler/bind", body=bind)
    walk.ask("scheduler", "POST", "/scheduler/bind", body={**bind, "Node": "t4-4"})
    failed, bound, refused, passed = walk.json("/api/v1/decisions")["decisions"]
    walk.tap.equal((passed["name"], passed["times"], passed["offered"], passed["taking"]), ("new", 3, 3, 1),
                   "three questions with one answer")
    walk.tap.equal({each["reason"]: each["nodes"] for each in passed["refusals"]},
                   {"other_dialect": 1, "node_unknown": 1}, "why not elsewhere")
    walk.tap.equal((refused["taking"], refused["refusals"][0]["reason"]), (0, "node_unknown"), "who fits nowhere")
    walk.tap.equal((bound["result"], bound["node"], bound["policy"]), ("bound", "t4-3", "binpack"), "a bind")
    walk.tap.ok(bound["card"] is not None, "and its card")
    walk.tap.ok(failed["result"] == "conflict" and failed["why"], "a bind that failed", failed)


def check_groups(walk):
    """Pods that come together, one too many for what is free."""
    for number in range(2):
        member = pod(f"g-{number}", 999)
        member["metadata"]["annotations"] = {"gang.scheduling.koordinator.sh/name": "g",
                                             "gang.scheduling.koordinator.sh/min-available": "2"}
        walk.ask("operations", "POST", "/api/v1/snapshot/pods", body=member, status=201)
    [group] = walk.json("/api/v1/waiting")["groups"]
    walk.tap.equal((group["name"], group["state"], group["needs"], group["known"]), ("g", "waiting", 2, 2), "a group waits")
    group = walk.json("/api/v1/explain?pod=test/g-0")["group"]
    walk.tap.equal((group["reason"], group["fit"]), ("gang_no_room", 0), "and none of it fits")
    fit = walk.ask("operations", "POST", "/api/v1/fit", body={"pod": member, "replicas": 2}, status=200)
    walk.tap.equal((fit["fits"], fit["group"]["reason"], fit["places"]), (False, "gang_no_room", []), "fit says so, too")


def check_class(walk):
    """A pod of a class, and one that says what its namespace may not."""
    for name in ("interactive", "training"):
        member = pod(f"c-{name}", 1)
        member["metadata"]["annotations"] = {"gpuledger.io/class": name}
        walk.ask("operations", "POST", "/api/v1/snapshot/pods", body=member, status=201)
    told = walk.json("/api/v1/explain?pod=test/c-interactive")["class"]
    walk.tap.equal(told, {"name": "interactive", "from": "its annotation gpuledger.io/class", "note": None,
                          "idleSeconds": None}, "a class")
    told = walk.json("/api/v1/explain?pod=test/c-training")["class"]
    walk.tap.ok(told["name"] is None and "may not choose" in told["note"], "a class that it may not choose", told)


def check_page(walk):
    for part in (check_files, check_tags, check_wall, check_waiting, check_quotas, check_elastic, check_reclaim, check_usage,
                 check_decisions, check_plan, check_groups, check_class):
        part(walk)
