# SPDX-License-Identifier: Apache-2.0
"""The scheduler's listener: its verbs, called well and badly, and what it shows of cards."""

import json

from calls import BIND_CALLS, FILTER_CALLS, NODES, PREEMPT_CALLS, PRIORITIZE_CALLS
from calls import binding, named, preemption
from program import pod


def check_dry_run(walk, path):
    """Nodes that nobody knows are empty ones of their kind; everything else is as filter has it."""
    before = walk.json("/api/v1/nodes")
    fresh = {"metadata": {"name": "fresh"}, "status": {
        "capacity": {"aliyun.com/gpu-mem": "40", "aliyun.com/gpu-count": "1"}}}
    bare = {"metadata": {"name": "bare"}}
    asked = pod("asked", 33)
    del asked["metadata"]["uid"]
    call = {"Pod": asked, "Nodes": {"items": [fresh, bare, {"metadata": {"name": "gpu-t4-0"}}]}}
    answer = walk.ask("scheduler", "POST", path, body=call)
    names = [node["metadata"]["name"] for node in answer["Nodes"]["items"]]
    walk.tap.equal(names, ["fresh"], "a new node that is large enough")
    refused = {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}
    walk.tap.equal(sorted(refused), ["bare", "gpu-t4-0"], "and the others are not")
    named_call = {"Pod": pod("asked", 1), "NodeNames": ["gpu-v100-0", "nope"]}
    answer = walk.ask("scheduler", "POST", path, body=named_call)
    walk.tap.equal(answer["NodeNames"], ["gpu-v100-0"], "names are those of the cluster")
    several = {"Pods": [asked, pod("second", 33), pod("third", 33)], "Nodes": {"items": [fresh]}}
    walk.takes("PlacementsCall", several, True)
    walk.takes("PlacementsCall", {**several, "Pods": []}, False)
    walk.takes("PlacementsCall", {"Pods": [asked], "NodeNames": ["gpu-v100-0"]}, True)
    answer = walk.ask("scheduler", "POST", path, body=several)
    walk.tap.equal([row["Fits"] for row in answer["Placements"]], [True, False, False],
                   "several pods are placed together")
    for body in ("", "{", {"NodeNames": []}, {"Pod": pod("odd", "1.5"), "NodeNames": ["a"]},
                 {"Pods": [], "NodeNames": []}):
        walk.tap.ok(walk.ask("scheduler", "POST", path, body=body)["Error"], "it says why not")
    walk.tap.equal(walk.json("/api/v1/nodes"), before, "nothing has changed")


def check_filter(walk, path):
    for body, valid, error in FILTER_CALLS:
        walk.takes("FilterCall", body, valid)
        answer = walk.ask("scheduler", "POST", path, body=body)
        rest = [value for key, value in answer.items() if key != "Error"]
        good = answer["Error"].startswith(error) if error else not answer["Error"]
        walk.tap.ok(good and any(value is not None for value in rest) == (not error),
                    f"its Error is {error!r}", answer)
    answer = walk.ask("scheduler", "POST", path + "/", body=named())
    failed = [list(answer[key]) for key in ("FailedNodes", "FailedAndUnresolvableNodes")]
    walk.tap.equal((answer["NodeNames"], failed), (["gpu-t4-0"], [[], ["cpu-0", "nope"]]),
                   "names go back as names")
    answer = walk.ask("scheduler", "POST", "/" + path, body=named(NodeNames=None, Nodes=NODES))
    walk.tap.equal(answer["Nodes"]["items"], NODES["items"][:1], "whole nodes as whole nodes")


def check_prioritize(walk, path):
    for body, valid, status in PRIORITIZE_CALLS:
        walk.takes("FilterCall", body, valid)
        media = "application/json" if status == 200 else None
        walk.ask("scheduler", "POST", path, body=body, status=status, media=media)
    marks = {"gpu-t4-0": 10}
    without = {"cpu-0": 10, "nope": 10}
    for units, expected in ((1, [] if path.endswith("-cpu") else marks), (0, without)):
        answer = walk.ask("scheduler", "POST", path, body=named(Pod=pod("asked", units)))
        walk.tap.equal({row["Host"]: row["Score"] for row in answer}, dict(expected),
                       f"the marks for a pod of {units}")


def check_preempt(walk, path):
    for body, valid, status in PREEMPT_CALLS:
        walk.takes("PreemptCall", body, valid)
        media = "application/json" if status == 200 else None
        walk.ask("scheduler", "POST", path, body=body, status=status, media=media)
    asked = pod("asked", 1, spec={"priority": 10})
    for body in (preemption(Pod=asked), preemption(Pod=pod("asked", 0))):
        answer = walk.ask("scheduler", "POST", path, body=body)
        walk.tap.equal(sorted(answer["NodeNameToMetaVictims"]), ["gpu-t4-0"],
                       "the node where somebody has to end")


def check_bind(walk, path, name):
    for body, valid, error in BIND_CALLS:
        walk.takes("BindCall", body, valid)
        answer = walk.ask("scheduler", "POST", path, body=body)
        walk.tap.ok(answer["Error"].startswith(error), f"its Error is {error!r}", answer)
    added = walk.ask("operations", "POST", "/api/v1/snapshot/pods", body=pod(name, 1), status=201)
    body = binding(PodName=name, PodNamespace="test", PodUID=added["metadata"]["uid"],
                   Node="gpu-v100-0")
    for spelling in (path, path + "/"):
        answer = walk.ask("scheduler", "POST", spelling, body=body)
        walk.tap.equal(answer, {"Error": ""}, "the pod is bound")
    walk.json(f"/api/v1/pods/test/{name}")
    answer = walk.ask("scheduler", "POST", path, body={**body, "Node": "nope"})
    walk.tap.ok(answer["Error"], "it is not bound elsewhere", answer)


def check_verbs(walk):
    check_dry_run(walk, "/scheduler/filter-dryrun")
    for prefix in ("gpushare-scheduler", "scheduler"):
        check_filter(walk, f"/{prefix}/filter")
        check_filter(walk, f"/{prefix}/predicates")
        for verb in ("prioritize", "priorities", "prioritize-cpu"):
            check_prioritize(walk, f"/{prefix}/{verb}")
        check_preempt(walk, f"/{prefix}/preempt")
        check_bind(walk, f"/{prefix}/bind", f"bound-{prefix}")


def check_inspect(walk):
    path = "/gpushare-scheduler/inspect"
    everything = walk.ask("scheduler", "GET", path)["nodes"]
    walk.tap.ok(everything, "some nodes share GPUs")
    for node in everything:
        one = walk.ask("scheduler", "GET", f"{path}/{node['name']}")
        walk.tap.equal(one, {"nodes": [node]}, f"{node['name']} is as it is among all")
    walk.ask("scheduler", "GET", f"{path}/nope", status=404)
    walk.ask("scheduler", "GET", f"{path}/%2e%2e", status=404)
    walk.ask("scheduler", "GET", path, headers={"Accept": "text/plain"})


def check_status(walk):
    answer = walk.ask("scheduler", "GET", "/scheduler/status")
    cards = json.loads(answer["aliyun.com/gpu-mem"])
    walk.tap.ok(cards and all(set(card) == {"CoreAvailable", "CoreTotal", "MemoryAvailable",
                                            "MemoryTotal"} for card in sum(cards.values(), [])),
                "JSON in a string, a list of cards for each node")
