#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Groups of pods that come whole or not at all: a saved cluster, and calls as kube-scheduler sends them."""

import collections
import json
import os
import pathlib
import random
import signal
import tempfile
import threading
import time
import unittest

from program import PATIENCE, Server, call, listing, node, pod, run

SEED = int(os.environ.get("GPULEDGER_SEED") or random.randrange(1 << 32))
ROUNDS = int(os.environ.get("GPULEDGER_EVENTS") or 12)
LABEL = "scheduling.x-k8s.io/pod-group"
LIGHT = "pod-group.scheduling.sigs.k8s.io/"
KOORDINATOR = "gang.scheduling.koordinator.sh/"


def pod_group(name, least, native=False, status=None):
    metadata = {"namespace": "test", "name": name, "uid": f"uid-{name}"}
    if native:
        made = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata,
                "spec": {"schedulingPolicy": {"gang": {"minCount": least}}}}
    else:
        made = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": metadata,
                "spec": {"minMember": least}}
    return {**made, "status": status} if status else made


def members(name, number, units=10, least=None, how="label"):
    """Pending pods of a group; a card has ten units."""
    made = []
    for i in range(number):
        one = pod(f"{name}-{i}", units)
        if how == "label":
            one["metadata"]["labels"] = {LABEL: name}
        elif how == "light":
            one["metadata"]["labels"] = {f"{LIGHT}name": name, f"{LIGHT}min-available": str(least)}
        elif how == "koordinator":
            one["metadata"].setdefault("annotations", {}).update(
                {f"{KOORDINATOR}name": name, f"{KOORDINATOR}min-available": str(least)})
        else:
            one["spec"]["schedulingGroup"] = {"podGroupName": name}
        made.append(one)
    return made


def occupy(wanted, name, card, units=10):
    """It runs there; a card has ten units."""
    wanted["metadata"].setdefault("annotations", {}).update({
        "ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_POD": str(units), "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"})
    wanted["spec"]["nodeName"] = name
    wanted["status"] = {"phase": "Running"}


def await_rows(ask):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        rows = ask()
        if rows:
            return rows
    raise AssertionError("nothing was found")


def card_of(one):
    return one["spec"]["nodeName"], int(one["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"])


def most_that_fit(free, sizes):
    """Of pods of these sizes, on cards with so much free: every way is tried."""
    if not sizes:
        return 0
    first, rest = sizes[0], sizes[1:]
    best = most_that_fit(free, rest)
    for i in {amount: i for i, amount in enumerate(free) if amount >= first}.values():
        left = sorted(free[:i] + free[i + 1:] + [free[i] - first])
        best = max(best, 1 + most_that_fit(left, rest))
    return best


class Simulated(unittest.TestCase):
    """Groups in simulate, against every way to place them."""

    def simulate(self, items, *options):
        with tempfile.TemporaryDirectory() as folder:
            cluster, out = pathlib.Path(folder) / "cluster.json", pathlib.Path(folder) / "out.json"
            cluster.write_text(listing(*items))
            result = run("simulate", "--snapshot", cluster, "--policy", "binpack", "--seeds", "1", "-ojson",
                         "--cluster-out", out, *options)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            [told] = json.loads(result.stdout)["policies"][0]["runs"]
            after = json.loads(out.read_text())["items"]
        return told, [each for each in after if each["kind"] == "Pod"]

    def bound_of(self, pods, name, ns="test"):
        return [each for each in pods if each["metadata"]["name"].startswith(f"{name}-") and
                each["metadata"]["namespace"] == ns and each["spec"].get("nodeName")]

    def come(self, chance):
        """Groups and single pods, one after the other, on a few cards of ten units."""
        names = ["n1", "n2", "n3"][:chance.randint(1, 3)]
        free = {(name, card): 10 for name in names for card in range(2)}
        units, arrivals = [], []
        for number in range(chance.randint(1, 5)):
            equal, size = chance.random() < 0.6, chance.randint(2, 10)
            sizes = [size if equal else chance.randint(2, 10) for _ in range(chance.randint(2, 5))]
            least = chance.randint(2, len(sizes)) + (chance.random() < 0.1)
            unit = members(f"g{number}", len(sizes), least=least, how="koordinator")
            for one, amount in zip(unit, sizes):
                one["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"] = str(amount)
            units.append((f"g{number}", sizes, least))
            arrivals += unit
        told, after = self.simulate([node(name, 2, 10) for name in names] + arrivals, "--gangs", "--in-order",
                                    "--arrivals=once")
        return free, units, told, after

    def test_whole_or_not_at_all(self):
        chance = random.Random(SEED)
        refused_mixed = placed = 0
        for _ in range(3 * ROUNDS):
            free, units, told, after = self.come(chance)
            refused = 0
            for name, sizes, least in units:
                bound = self.bound_of(after, name)
                context = f"seed {SEED}: {name} {sizes} {least} {free} {len(bound)}"
                best = most_that_fit(sorted(free.values()), sizes)
                if not bound:
                    refused += 1
                    refused_mixed += best >= least
                    if len(set(sizes)) == 1:
                        self.assertLess(best, least, context)
                else:
                    self.assertGreaterEqual(len(bound), least, context)
                    self.assertLessEqual(len(bound), best, context)
                    placed += 1
                for one in bound:
                    free[card_of(one)] -= int(one["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"])
                self.assertGreaterEqual(min(free.values()), 0, context)
            self.assertEqual((told["groups"], told["groupsRefused"]), (len(units), refused))
            self.assertEqual(told["arrivals"], sum(len(sizes) for _, sizes, _ in units))
        self.assertGreater(placed, 0)
        self.assertLess(refused_mixed, max(placed / 4, 3), f"seed {SEED}: the search misses too much")

    def test_they_come_again_as_groups_of_their_own(self):
        told, after = self.simulate([node("n1", 4, 10), node("n2", 4, 10), pod_group("g", 3), *members("g", 3)],
                                    "--gangs", "--arrivals=130%")
        self.assertEqual((told["groups"], told["groupsRefused"], told["arrivals"]), (4, 2, 12))
        self.assertEqual([len(self.bound_of(after, "g", ns)) for ns in ("test", "test.2", "test.3", "test.4")],
                         [3, 3, 0, 0])

    def test_without_the_option(self):
        told, after = self.simulate([node("n1", 2, 10), pod_group("g", 3), *members("g", 3)], "--arrivals=once")
        self.assertNotIn("groups", told)
        self.assertEqual(len(self.bound_of(after, "g")), 2)

    def trace(self, rows, *options, columns="name,cpu_milli,memory_mib,num_gpu,gpu_milli,pod_group,pod_group_min"):
        with tempfile.TemporaryDirectory() as folder:
            nodes, pods = pathlib.Path(folder) / "nodes.csv", pathlib.Path(folder) / "pods.csv"
            nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,64000,65536,2,A100\nn2,64000,65536,2,A100\n")
            pods.write_text("\n".join([columns, *rows]) + "\n")
            return run("simulate", f"--trace-nodes={nodes}", f"--trace-pods={pods}", "--in-order", "--arrivals=once",
                       "--policy", "binpack", "--seeds", "1", "-ojson", *options)

    def test_a_trace(self):
        """Five pods on four cards: of whom so many come together; without a number all must."""
        for least, columns, refused in ((4, ",pod_group_min", 0), (5, ",pod_group_min", 1), (0, ",pod_group_min", 1),
                                        (None, "", 1)):
            rows = [f"g-{i},1000,1024,1,1000,g" + ("" if least is None else f",{least}") for i in range(5)]
            result = self.trace(rows, "--gangs", columns=f"name,cpu_milli,memory_mib,num_gpu,gpu_milli,pod_group{columns}")
            self.assertEqual(result.returncode, 0, result.stderr)
            [told] = json.loads(result.stdout)["policies"][0]["runs"]
            self.assertEqual((told["groups"], told["groupsRefused"]), (1, refused), (least, told))

    def test_a_trace_that_contradicts_itself(self):
        row = "1000,1024,1,1000"
        for rows, why in (([f"a,{row},g,2", f"b,{row},g,3"], "line 3, column 7 (pod_group_min): another pod of 'g' above "
                                                            "says that it needs 2"),
                          ([f"a,{row},,2"], "line 2, column 7 (pod_group_min): the pod is in no pod_group"),
                          ([f"a,{row},g,1025"], "'1025' is not a whole number from 0 to 1024")):
            result = self.trace(rows)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(why, result.stderr)
        result = self.trace([f"a{i},{row},g{i},0" for i in range(1025)], "--gangs")
        self.assertIn("it has 1025 groups, more than the 1024", result.stderr)

    def test_what_it_is_not_for(self):
        for options in (("--churn", "--moves=5"), ("--plugin-pace=1s",)):
            result = run("simulate", "--snapshot", "x", "--gangs", *options)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("'--gangs' is without '--moves' and '--plugin-pace'", result.stderr)
        for options in (("--gangs",), ("--churn",)):
            result = run("simulate", "--snapshot", "x", "--gang-keep-room=1m", *options)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("'--gang-keep-room' is for '--gangs' with '--churn'", result.stderr)

    def starve(self, seed, *options):
        """Pods of one card come and go, and groups that need half of all cards."""
        items = [node(f"n{i}", 4, 10) for i in range(4)] + [pod(f"s{i}", 10) for i in range(60)]
        items += [each for name in ("g", "h") for each in members(name, 8, least=8, how="koordinator")]
        return self.simulate(items, "--gangs", "--churn", "--arrivals=150%", "--lifetimes=20", f"--seeds={seed}",
                             "--times=false", *options)

    def test_they_wait_where_pods_leave(self):
        groups = came = came_with_room = 0
        for seed in range(1, 4):
            told, after = self.starve(seed)
            kept, after_with_room = self.starve(seed, "--gang-keep-room=30m")
            self.assertEqual(self.starve(seed, "--gang-keep-room=30m")[0], kept, "the same seed")
            self.assertEqual(told["groups"], kept["groups"], "as many come")
            self.assertGreater(told["groupWaitSeconds"] + kept["groupWaitSeconds"], 20)
            self.assertLess(max(told["groupWaitSeconds"], kept["groupWaitSeconds"]), 3620, "for a lifetime at most")
            groups += told["groups"]
            came += told["groups"] - told["groupsRefused"]
            came_with_room += kept["groups"] - kept["groupsRefused"]
            for pods in (after, after_with_room):
                bound = [each for each in pods if each["spec"].get("nodeName")]
                self.assertEqual(len({card_of(each) for each in bound}), len(bound), "no card is given twice")
                whole = collections.Counter((each["metadata"]["namespace"], each["metadata"]["name"][0])
                                            for each in bound if each["metadata"]["name"][0] in "gh")
                self.assertLessEqual(set(whole.values()), {8}, "whole or not at all")
        self.assertGreater(groups, 20)
        self.assertGreater(came_with_room, came, "room that is kept helps them")


class Gangs(unittest.TestCase):
    def start(self, *items, options=(), cards=4, nodes=("n1", "n2")):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.nodes = list(nodes)
        snapshot = pathlib.Path(folder.name) / "cluster.json"
        snapshot.write_text(listing(*(node(name, cards, 10) for name in nodes), *items))
        self.server = Server("--gangs", *options, snapshot=snapshot)
        self.addCleanup(self.server.__exit__)

    def ask(self, wanted, nodes=None):
        """Its node, or the reason why there is none."""
        answer = self.server.filter(wanted, nodes or self.nodes)
        if answer.get("NodeNames"):
            [name] = answer["NodeNames"]
            return name
        reasons = set({**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}.values())
        self.assertEqual(len(reasons), 1, answer)
        return reasons.pop()

    def bind(self, placed):
        """All at once, as kube-scheduler's binding cycles do: what each came to."""
        said = {}

        def one(wanted, name):
            said[wanted["metadata"]["name"]] = self.server.bind(wanted, name).get("Error", "")

        threads = [threading.Thread(target=one, args=each) for each in placed]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return said

    def used(self):
        """Cards that are taken, by node."""
        _, text = self.server.get("/api/v1/nodes")
        return {each["name"]: sum(card["holders"] for card in each["cards"]) for each in json.loads(text)["nodes"]}

    def whole(self, how, *objects):
        pods = members("g", 8, least=8, how=how)
        self.start(*objects, *pods)
        placed = [(each, self.ask(each)) for each in pods]
        self.assertEqual(sorted(name for _, name in placed), ["n1"] * 4 + ["n2"] * 4)
        self.assertEqual(self.bind(placed), {each["metadata"]["name"]: "" for each in pods})

    def test_a_group_comes_whole(self):
        for how, objects in (("label", [pod_group("g", 8)]), ("native", [pod_group("g", 8, True)]),
                             ("light", []), ("koordinator", [])):
            with self.subTest(how):
                self.whole(how, *objects)

    def test_or_not_at_all(self):
        """Eight on seven cards: nobody gets one, and others do."""
        pods = members("g", 8)
        single = pod("single", 10)
        other = pod("other", 10)
        self.start(pod_group("g", 8), *pods, single, other)
        name = self.ask_any(single)
        self.assertFalse(self.server.bind(single, name).get("Error"))
        for each in pods:
            self.assertIn("no room for the pod's group as a whole", self.ask(each))
        self.assertEqual(sum(self.used().values()), 1)
        self.assertTrue(self.server.filter(other, self.nodes)["NodeNames"])

    def ask_any(self, wanted):
        return self.server.filter(wanted, self.nodes)["NodeNames"][0]

    def test_others_find_their_places_taken(self):
        pods = members("g", 8)
        single = pod("single", 10)
        self.start(pod_group("g", 8), *pods, single)
        self.assertIn(self.ask(pods[3]), self.nodes)
        self.assertEqual(sum(self.used().values()), 8)
        self.assertFalse(self.server.filter(single, self.nodes).get("NodeNames"))

    def test_two_groups_do_not_block_each_other(self):
        """Two of eight on twelve cards: one is whole, the other waits for all of it."""
        first, second = members("a", 8), members("b", 8)
        self.start(pod_group("a", 8), pod_group("b", 8), *first, *second, nodes=("n1", "n2", "n3"))
        placed = []
        for mine, other in zip(first, second):
            placed.append((mine, self.ask(mine)))
            self.assertIn("Another group of pods is being placed", self.ask(other))
        self.assertEqual(set(self.bind(placed).values()), {""})
        self.assertIn("no room for the pod's group as a whole", self.ask(second[0]))

    def test_bind_waits_for_the_others(self):
        """One that comes alone is told so, and keeps its place."""
        pods = members("g", 2)
        self.start(pod_group("g", 2), *pods, options=["--bind-timeout=4s"])
        placed = [(each, self.ask(each)) for each in pods]
        self.assertEqual(list(self.bind(placed[:1]).values()), ["The other pods of the pod's group have yet to come"])
        self.assertEqual(sum(self.used().values()), 2)
        self.assertEqual(set(self.bind(placed).values()), {""})

    def test_who_is_missing_is_waited_for(self):
        pods = members("g", 3)
        self.start(pod_group("g", 4), *pods)
        self.assertIn("has fewer pods than it needs", self.ask(pods[0]))
        self.assertEqual(sum(self.used().values()), 0)

    def test_what_takes_too_long_to_look_for(self):
        """Long lists in affinities on many nodes, none of which will do: it is cut short, and said and counted."""
        pods = members("g", 3)
        zones = [{"key": "zone", "operator": "NotIn", "values": [f"z{i}" for i in range(1000)]}] * 50
        zones += [{"key": "zone", "operator": "In", "values": ["nowhere"]}]
        for each in pods:
            each["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": zones}]}}}
        self.start(pod_group("g", 3), *pods, nodes=[f"n{i}" for i in range(300)])
        self.assertIn("places for the namespace's groups of pods takes too long", self.ask(pods[0]))
        self.assertEqual(sum(self.used().values()), 0)
        self.assertIn('gpuledger_refusals_total{reason="gang_work"} 300', self.server.get("/metrics")[1])

    def test_quotas_count_the_places_of_a_group(self):
        """A quota for three of its pods, and for the one that it lacks elsewhere."""
        quota = {"apiVersion": "v1", "kind": "ResourceQuota",
                 "metadata": {"namespace": "test", "name": "q", "annotations": {
                     "gpuledger.io/max": json.dumps({"aliyun.com/gpu-mem": "30"})}}}
        for least, answer in ((3, None), (4, "no room for the pod's group as a whole")):
            pods = members("g", 4)
            self.start(pod_group("g", least), quota, *pods, options=["--elastic-quotas"])
            said = self.ask(pods[0])
            self.assertIn(answer or said, said)
            self.assertEqual(sum(self.used().values()), 0 if answer else 3)
            self.server.__exit__()

    def test_a_group_that_nobody_declares(self):
        pods = members("g", 3)
        self.start(*pods)
        self.assertIn("Nothing says how many pods", self.ask(pods[0]))

    def test_a_pod_alone_is_no_gang(self):
        [single] = members("g", 1)
        self.start(pod_group("g", 1), single)
        self.assertIn(self.server.filter(single, self.nodes)["NodeNames"][0], self.nodes)
        self.assertEqual(sum(self.used().values()), 0)

    def test_members_that_ask_for_no_gpu_are_there(self):
        pods = members("g", 3)
        pods[2]["spec"]["containers"][0].pop("resources")
        self.start(pod_group("g", 3), *pods)
        placed = [(each, self.ask(each)) for each in pods[:2]]
        self.assertEqual(set(self.bind(placed).values()), {""})

    def test_where_members_may_go(self):
        """Those that select a node get places there, whoever is asked about first."""
        pods = members("g", 4)
        for each in pods[2:]:
            each["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n2"}
        free = node("n1", 4, 10)
        free["metadata"]["labels"] = {**free["metadata"].get("labels", {}), "kubernetes.io/hostname": "n1"}
        small = node("n2", 2, 10)
        small["metadata"]["labels"] = {**small["metadata"].get("labels", {}), "kubernetes.io/hostname": "n2"}
        self.start(pod_group("g", 4), *pods, free, small, nodes=())
        self.nodes = ["n1", "n2"]
        for each in pods[2:]:
            self.assertEqual(self.ask(each, ["n2"]), "n2")
        for each in pods[:2]:
            self.assertEqual(self.ask(each), "n1")

    def test_a_place_that_kube_scheduler_does_not_offer(self):
        """Its place moves to a node that is left, if there is room."""
        pods = members("g", 2)
        self.start(pod_group("g", 2), *pods)
        first = self.ask(pods[0])
        other = next(name for name in self.nodes if name != first)
        self.assertEqual(self.ask(pods[0], [other]), other)
        self.assertEqual(sum(self.used().values()), 2)

    def test_explain_tells_how_many_fit(self):
        pods = members("g", 9)
        self.start(pod_group("g", 9), *pods)
        told = json.loads(run("explain", "test/g-0", "--server", self.server.operations, "-ojson").stdout)
        self.assertEqual(told["group"], {
            "name": "g", "reason": "gang_no_room", "text": "There is no room for the pod's group as a whole",
            "needs": 9, "known": 9, "fit": 8, "held": 0, "bound": 0, "half": False, "behind": 0, "saysLeast": 0,
            "roomNodes": 0, "roomForSeconds": 0})
        self.assertIsNone(told["preemption"])
        self.assertEqual(sum(self.used().values()), 0)
        text = run("explain", "test/g-0", "--server", self.server.operations).stdout
        self.assertIn("GROUP       test/g needs 9 pods together: 9 known, 8 fit, 0 with a place, 0 bound", text)
        [group] = json.loads(self.server.get("/api/v1/waiting")[1])["groups"]
        self.assertEqual((group["state"], group["needs"], group["known"]), ("waiting", 9, 9))
        self.assertIn('gpuledger_groups{state="waiting"} 1', self.server.get("/metrics")[1])

    def explain(self, name):
        return json.loads(run("explain", f"test/{name}", "--server", self.server.operations, "-ojson").stdout)

    def test_explain_and_fit_say_what_would_declare_a_group(self):
        for how, least, said in (("label", None, "a PodGroup of that name would, or the label "),
                                 ("light", "four", "label pod-group.scheduling.sigs.k8s.io/min-available is 'four'"),
                                 ("koordinator", "0", "annotation gang.scheduling.koordinator.sh/min-available is '0'")):
            [single] = members("g", 1, least=least, how=how)
            self.start(single)
            self.assertIn("Nothing says how many pods", self.ask(single))
            told = self.explain("g-0")["group"]
            self.assertEqual(told["reason"], "gang_unknown")
            self.assertIn(said, told["text"])
            [new] = members("g", 1, least=least, how=how)
            fit = self.fit(new)["group"]
            self.assertEqual((fit["reason"], fit["text"]), (told["reason"], told["text"]))
            table = self.ask_fit(new).stdout
            self.assertIn(f"\n{told['text']}\n", table)
            self.server.__exit__()

    def test_explain_says_what_filter_says(self):
        """A node that would take the pod alone does not take it; what makes room for it alone is no way out."""
        holders = [pod(f"h-{i}", 10) for i in range(7)]
        for i, each in enumerate(holders):
            occupy(each, ("n1", "n2")[i // 4], i % 4)
        pods = members("g", 2)
        self.start(pod_group("g", 2), *holders, *pods)
        self.assertIn("There is no room", self.ask(pods[0]))
        told = self.explain("g-0")
        self.assertEqual((told["verdict"], told["nodesTaking"], told["place"], told["remedies"], told["pairs"]),
                         ("refused", 0, None, [], []))
        self.assertEqual({(row["reason"], row["nodes"]) for row in told["groups"]},
                         {("gang_no_room", 1), ("insufficient_memory", 1)})

    def test_explain_of_the_last_that_a_group_lacks(self):
        """What makes room for it makes its group whole: as for a pod alone."""
        holders = [pod(f"h-{i}", 10) for i in range(8)]
        for i, each in enumerate(holders):
            occupy(each, ("n1", "n2")[i // 4], i % 4)
        one, few = members("one", 1), members("few", 1)
        self.start(pod_group("one", 1), pod_group("few", 2), *holders, *one, *few)
        self.assertIn("Insufficient GPU Memory", self.ask(one[0]))
        self.assertIn("end test/h-", self.explain("one-0")["remedies"][0]["text"])
        self.assertIn("has fewer pods than it needs", self.ask(few[0]))
        self.assertEqual(self.explain("few-0")["remedies"], [])

    def test_pods_that_say_different_numbers(self):
        """The largest counts, and explain says so."""
        pods = members("g", 3, least=2, how="koordinator")
        pods[1]["metadata"]["annotations"][f"{KOORDINATOR}min-available"] = "4"
        self.start(*pods)
        for each in (pods[1], pods[0], pods[2]):
            self.assertIn("has fewer pods than it needs", self.ask(each))
        told = json.loads(run("explain", "test/g-0", "--server", self.server.operations, "-ojson").stdout)["group"]
        self.assertEqual((told["needs"], told["saysLeast"]), (4, 2))
        text = run("explain", "test/g-0", "--server", self.server.operations).stdout
        self.assertIn("Its pods say different numbers, from 2 to 4: the largest counts", text)

    def test_explain_of_a_place(self):
        pods = members("g", 2)
        self.start(pod_group("g", 2), *pods)
        self.ask(pods[0])
        text = run("explain", "test/g-1", "--server", self.server.operations).stdout
        self.assertIn("its group has a place for it there", text)
        self.assertIn("2 known, 2 fit, 2 with a place, 0 bound", text)

    def test_preemption_ends_nobody_for_a_part(self):
        pods = members("g", 9)
        self.start(pod_group("g", 9), *pods)
        self.assertIn("no room for the pod's group as a whole", self.ask(pods[0]))
        body = {"Pod": pods[0], "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-x"}], "NumPDBViolations": 0}}}
        status, text = call("POST", f"{self.server.scheduler}/gpushare-scheduler/preempt", body)
        self.assertEqual(status, 200, text)
        self.assertFalse(json.loads(text)["NodeNameToMetaVictims"])

    def test_a_record_holds_them(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "record"
            pods, others = members("g", 6), members("h", 4)
            pods[5]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n2"}
            marked = [node(name, 4, 10) for name in ("n1", "n2")]
            for each in marked:
                each["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = each["metadata"]["name"]
            self.start(pod_group("g", 6), pod_group("h", 4), *marked, *pods, *others, nodes=(),
                       options=[f"--record={file}"])
            self.nodes = ["n1", "n2"]
            placed = [(each, self.ask(each)) for each in pods]
            self.ask(others[0])
            self.assertEqual(set(self.bind(placed).values()), {""})
            self.ask(others[1])
            self.server.signal(signal.SIGTERM)
            self.server.exit_code()
            told = json.loads(run("replay", file, "-o", "json").stdout)
            self.assertEqual((told["different"], told["unchecked"]), (0, 0), told)
            self.assertGreater(told["compared"], 12)

    def test_the_audit_names_groups_that_are_half(self):
        """Three of eight run, and five wait for longer than the group's deadline."""
        pods = members("g", 8, least=8, how="koordinator")
        whole = members("w", 2, least=2, how="koordinator")
        for each in pods:
            each["metadata"]["annotations"][f"{KOORDINATOR}waiting-time"] = "1s"
        for number, each in enumerate(pods[:3]):
            occupy(each, "n1", number)
        for number, each in enumerate(whole):
            occupy(each, "n2", number)
        self.start(*pods, *whole)
        self.ask(pods[4])

        def rows():
            told = run("audit", "--server", self.server.operations, "-o", "json")
            return [row for row in json.loads(told.stdout)["rows"] if row["cause"] == "group_half"]

        [row] = await_rows(rows)
        self.assertEqual((row["namespace"], row["name"], row["node"]), ("test", "g-0", "n1"))
        self.assertEqual(row["cluster"], "group g: 3 bound of the 8 that it needs")
        self.assertIn("8 known, half for ", row["ledger"])
        self.assertIn('gpuledger_audit_differences{cause="group_half"} 1', self.server.get("/metrics")[1])

    def ask_fit(self, wanted, *options):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "pod.json"
            file.write_text(json.dumps(wanted))
            return run("fit", "-f", file, "-s", self.server.operations, *options)

    def fit(self, wanted, *options):
        result = self.ask_fit(wanted, "-ojson", *options)
        self.assertEqual(result.stderr, "")
        told = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0 if told["fits"] else 3)
        return told

    def test_fit_tells_whether_a_group_comes(self):
        """Equal pods on cards of which others have something: as many as the rest of each holds. filter
        says the same."""
        chance = random.Random(SEED)
        seen = set()
        for _ in range(ROUNDS):
            size, number, needs = chance.randint(1, 10), chance.randint(1, 9), chance.randint(2, 9)
            names = ["n1", "n2", "n3"][:chance.randint(1, 3)]
            room, others = {}, []
            for name in names:
                for card in range(2):
                    used = chance.randint(0, 10)
                    room[name] = room.get(name, 0) + (10 - used) // size
                    if used:
                        others.append(pod(f"other-{name}-{card}", used))
                        occupy(others[-1], name, card, used)
            pods = members("g", number, units=size, least=needs, how="koordinator")
            self.start(*others, *pods, cards=2, nodes=names)
            told = self.fit(pods[0], f"--replicas={number}")
            fitting = min(sum(room.values()), number)
            comes = fitting >= needs
            context = f"seed {SEED}: {size} {number} {needs} {room}: {told}"
            self.assertEqual((told["fitting"], told["wanted"]), (fitting, number), context)
            self.assertEqual((told["group"]["needs"], told["group"]["comes"]), (needs, comes), context)
            self.assertEqual(told["fits"], comes and fitting == number, context)
            self.assertEqual(sum(place["pods"] for place in told["places"]), fitting if comes else 0, context)
            for place in told["places"]:
                self.assertLessEqual(place["pods"], room[place["node"]], context)
            self.assertEqual(any(self.ask(each) in names for each in pods), comes, context)
            seen.add(told["group"]["reason"])
            self.server.__exit__()
        if ROUNDS > 100:
            self.assertEqual(seen, {None, "gang_few", "gang_no_room"})

    def test_fit_of_a_group_that_is_there_in_part(self):
        """Who runs counts; a Pod alone stands for all that are missing; new nodes may help."""
        pods = members("g", 4, least=8, how="koordinator")
        for number, each in enumerate(pods):
            occupy(each, "n1", number)
        self.start(*pods, nodes=("n1",))
        [new] = members("g", 1, least=8, how="koordinator")
        told = self.fit(new)
        self.assertEqual((told["wanted"], told["fitting"], told["group"]["reason"]), (4, 0, "gang_no_room"))
        self.assertIn("their group g does not come, so none is placed: it needs 8, 4 there already", told["summary"])
        with tempfile.TemporaryDirectory() as folder:
            template = pathlib.Path(folder) / "node.json"
            template.write_text(json.dumps(node("large", 3, 10)))
            told = self.fit(new, "--template", template)
            self.assertEqual((told["newNodes"], told["fitting"], told["group"]["comes"]), (2, 4, True))
        [light] = members("unsaid", 1)
        told = self.fit(light)
        self.assertEqual((told["fits"], told["group"]["reason"]), (False, "gang_unknown"))

    def test_without_the_option(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        snapshot = pathlib.Path(folder.name) / "cluster.json"
        pods = members("g", 2)
        snapshot.write_text(listing(node("n", 1, 10), pod_group("g", 2), *pods))
        with Server(snapshot=snapshot) as server:
            self.assertEqual(server.filter(pods[0], ["n"])["NodeNames"], ["n"])
            self.assertFalse(server.bind(pods[0], "n").get("Error"))


if __name__ == "__main__":
    unittest.main()
