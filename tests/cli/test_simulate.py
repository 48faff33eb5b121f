#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command "simulate": what it says is what an independent count of the cluster says."""

import collections
import csv
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from program import ROOT, SNAPSHOT, listing, node, pod, run

FOLDER = ROOT / "examples" / "trace"
TRACE = [f"--trace-nodes={FOLDER / 'nodes.csv'}", f"--trace-pods={FOLDER / 'pods.csv'}"]
CORE = "elasticgpu.io/gpu-core"
CARDS = "elasticgpu.io/container-main"
MODELS = "gpuledger.io/gpu-models"


def amount(text):
    for unit, factor in (("m", 0.001), ("Mi", 1), ("", 1)):
        if text.endswith(unit):
            return float(text[: len(text) - len(unit)]) * factor
    raise AssertionError(text)


class Count:
    """Adds up what the pods of a cluster hold, by their annotations; shares no code."""

    def __init__(self, cluster):
        self.nodes, self.pods = {}, []
        self.cards = collections.Counter()  # (node, card): hundredths
        self.used = collections.defaultdict(collections.Counter)
        self.faults = []
        for item in cluster["items"]:
            if item["kind"] == "Node":
                self.nodes[item["metadata"]["name"]] = item
            else:
                self.pods.append(item)
        for each in self.pods:
            self._add(each)
        for (name, card), held in self.cards.items():
            if held > 100 or card >= self._cards_of(name):
                self.faults.append(f"card {card} of {name} holds {held}")
        for name, used in self.used.items():
            for resource, value in used.items():
                have = self.nodes[name]["status"]["allocatable"][resource]
                if value > amount(have) + 1e-6:
                    self.faults.append(f"{name}: {resource} {value} of {have}")

    def _cards_of(self, name):
        return int(amount(self.nodes[name]["status"]["allocatable"].get(CORE, "0"))) // 100

    def _add(self, each):
        name, meta = each["spec"]["nodeName"], each["metadata"]
        requests = each["spec"]["containers"][0]["resources"]["requests"]
        for resource, text in requests.items():
            self.used[name][resource] += amount(text)
        core = int(requests.get(CORE, 0))
        if core == 0:
            return
        cards = [int(card) for card in meta["annotations"][CARDS].split(",")]
        if len(set(cards)) != max(core // 100, 1):
            self.faults.append(f"{meta['name']}: {core} on {cards}")
        for card in cards:
            self.cards[name, card] += core // len(cards)
        models = meta["annotations"].get(MODELS)
        model = self.nodes[name]["metadata"]["labels"]["nvidia.com/gpu.product"]
        if models and model not in models.split(","):
            self.faults.append(f"{meta['name']} accepts {models}, not {model}")

    def allocated(self):
        return sum(self.cards.values()) / 100 / sum(map(self._cards_of, self.nodes))

    def untouched(self):
        total = sum(map(self._cards_of, self.nodes))
        return (total - len(self.cards)) / total


def whole_cards(resource, per_card):
    """The made-up trace's nodes, and its pods without parts of cards, in one dialect."""

    def has(row, cards):
        amounts = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
        return {**amounts, resource: str(cards * per_card)} if cards else amounts

    nodes, pods = (list(csv.DictReader((FOLDER / f"{name}.csv").read_text().splitlines()))
                   for name in ("nodes", "pods"))
    return listing(*(
        {"kind": "Node",
         "metadata": {"name": row["sn"], "labels": {"nvidia.com/gpu.product": row["model"]}},
         "status": {key: {**has(row, int(row["gpu"])), "pods": "512"}
                    for key in ("capacity", "allocatable")}} for row in nodes)), listing(*(
        {"kind": "Pod",
         "metadata": {"namespace": "trace", "name": row["name"],
                      "annotations": {MODELS: row["gpu_spec"].replace("|", ",")}
                      if row["gpu_spec"] else {}},
         "spec": {"containers": [{"name": "main", "resources": {
             key: has(row, int(row["num_gpu"])) for key in ("requests", "limits")}}]},
         "status": {"phase": "Pending"}}
        for row in pods if row["gpu_milli"] in ("0", "1000")))


def simulate(*arguments):
    result = run("simulate", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def first_run(*arguments):
    answer = json.loads(simulate("-o", "json", *arguments))
    return answer, answer["policies"][0]["runs"][0]


class Files(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


class Results(Files):
    def test_whole_cards_go_alike_in_every_dialect(self):
        """Cards that kubelet picks are worth what cards are that have an address."""
        for policy in ("oc", "fgd"):
            chosen = []
            for resource, per_card in ((CORE, 100), ("nvidia.com/gpu", 1)):
                nodes, pods = whole_cards(resource, per_card)
                out = self.folder / "out.json"
                simulate(f"--snapshot={self.write('nodes.json', nodes)}", "--arrivals=130%",
                         f"--pods={self.write('pods.json', pods)}", f"--policy={policy}",
                         f"--cluster-out={out}")
                chosen.append({item["metadata"]["name"]: item["spec"]["nodeName"]
                               for item in json.loads(out.read_text())["items"]
                               if item["kind"] == "Pod"})
            self.assertGreater(len(chosen[0]), 300)
            self.assertEqual(chosen[0], chosen[1], policy)

    def count(self, *arguments):
        out = self.folder / "out.json"
        answer, result = first_run(*arguments, f"--cluster-out={out}")
        count = Count(json.loads(out.read_text()))
        self.assertEqual(count.faults, [])
        return answer, result, count

    def test_every_policy_is_counted_right(self):
        table = simulate(*TRACE, "--policy=all", "--arrivals=10%").split("\n\n")[0]
        names = [line.split()[0] for line in table.splitlines()[1:]]
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            with self.subTest(policy=name):
                answer, result, count = self.count(*TRACE, f"--policy={name}", "--seeds=7")
                self.assertEqual((answer["nodes"], answer["gpus"]), (118, 564))
                self.assertAlmostEqual(count.allocated(), result["end"]["allocated"], 5)
                self.assertAlmostEqual(count.untouched(), result["end"]["untouched"], 5)
                failed = sum(result["failed"].values())
                self.assertEqual(len(count.pods), result["arrivals"] - failed)
                self.assertGreater(count.allocated(), 0.7)
                points = {point["x"]: point for point in result["points"]}
                self.assertIn(100, points)
                self.assertLessEqual(points[100]["allocated"], 1)
                self.assertTrue(all(
                    abs(point["allocated"] + point["partUsed"] + point["untouched"] - 1) < 0.02
                    for point in result["points"]))

    def test_pods_that_leave_give_back_what_they_held(self):
        _, result, count = self.count(*TRACE, "--churn", "--arrivals=60%", "--lifetimes=1")
        self.assertLess(sum(result["failed"].values()), result["arrivals"] / 20)
        self.assertTrue(0.5 < result["end"]["allocated"] < 0.7, result["end"])
        self.assertTrue(0.4 < count.allocated() < 0.8, count.allocated())

    def test_moves_stay_within_their_budget_and_admit_more(self):
        options = [*TRACE, "--churn", "--arrivals=95%", "--policy=oc", "--seeds=1..4", "-o", "json"]
        refused = {}
        for moves in (0, 5, 20):
            answer = json.loads(simulate(*options, f"--moves={moves}"))
            runs = answer["policies"][0]["runs"]
            refused[moves] = sum(run["refused"] for run in runs) / len(runs)
            for run in runs:
                self.assertLessEqual(run.get("moves", 0) * 1000, moves * run["arrivals"])
            if moves:
                self.assertGreater(sum(run["moves"] for run in runs), 0)
        self.assertLess(refused[5], refused[0])
        self.assertLess(refused[20], refused[0])

    def test_moves_of_an_hour(self):
        """Four lifetimes are simulated: as many hours, and days."""
        options = [*TRACE, "--churn", "--arrivals=95%", "--policy=oc", "--seeds=1", "-o", "json"]

        def outcome(*words):
            [run] = json.loads(simulate(*options, *words))["policies"][0]["runs"]
            return run["moves"], run["refused"]
        short, long = (outcome("--moves=3/h", f"--mean-lifetime={time}")[0] for time in ("1h", "24h"))
        self.assertTrue(0 < short <= 3 * 5, short)
        self.assertGreater(long, short)
        self.assertEqual(outcome("--moves=1000/h", "--mean-lifetime=24h"), outcome("--moves=1000"))

    def test_moved_pods_over_commit_no_card(self):
        _, result, count = self.count(*TRACE, "--churn", "--arrivals=95%", "--lifetimes=1",
                                      "--moves=50")
        self.assertGreater(result["moves"], 0)
        self.assertGreater(count.allocated(), 0.7)

    def test_the_same_seed_gives_the_same_bytes(self):
        out = self.folder / "o.json"
        seen = set()
        for _ in range(2):
            text = simulate(*TRACE, "--times=false", "-o", "json", "--seeds=5", "--ranked=none",
                            f"--cluster-out={out}")
            seen.add((text, out.read_text()))
        self.assertEqual(len(seen), 1)
        both = json.loads(simulate(*TRACE, "--times=false", "-o", "json", "--seeds=5..6", "-j2"))
        alone = json.loads(simulate(*TRACE, "--times=false", "-o", "json", "--seeds=6"))
        runs = both["policies"][0]["runs"]
        self.assertEqual([run["seed"] for run in runs], [5, 6])
        self.assertNotEqual(runs[0]["points"], runs[1]["points"])
        self.assertEqual(alone["policies"][0]["runs"][0], runs[1])

    def test_who_ranks_nodes_matters(self):
        ends = {ranked: first_run(*TRACE, f"--ranked={ranked}")[1]["end"]["allocated"]
                for ranked in ("all", "none")}
        self.assertGreater(ends["all"], ends["none"])

    def test_a_saved_cluster_goes_on_from_where_it_is(self):
        cluster = self.write("cluster.json", listing(
            node("n1", 2, 10), node("n2", 1, 10),
            pod("there", 6, spec={"nodeName": "n1"}, status={"phase": "Running"},
                metadata={"annotations": {"ALIYUN_COM_GPU_MEM_IDX": "0",
                                          "ALIYUN_COM_GPU_MEM_POD": "6",
                                          "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}}),
            pod("a", 8), pod("b", 4), pod("c", 5), pod("d", 10)))
        out = self.folder / "out.json"
        answer, result = first_run(f"--snapshot={cluster}", "--in-order", "--arrivals=once",
                                   f"--cluster-out={out}")
        self.assertEqual((answer["gpus"], result["arrivals"]), (3, 4))
        pods = {item["metadata"]["name"]: item for item in json.loads(out.read_text())["items"]
                if item["kind"] == "Pod"}
        self.assertEqual(set(pods), {"there", "a", "b", "c"})
        self.assertEqual(result["failed"], {"part": 0, "one": 1, "several": 0, "noGpu": 0})
        used = collections.Counter()
        for each in pods.values():
            limits = each["spec"]["containers"][0]["resources"]["limits"]
            card = each["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"]
            used[each["spec"]["nodeName"], card] += int(limits["aliyun.com/gpu-mem"])
        self.assertLessEqual(max(used.values()), 10)
        self.assertAlmostEqual(sum(used.values()) / 30, result["end"]["allocated"], 5)
        # The file that was written is a cluster, too.
        again = first_run(f"--snapshot={out}", f"--pods={cluster}", "--arrivals=once")
        self.assertEqual(again[1]["arrivals"], 5)

    def test_pods_go_only_where_kube_scheduler_offers_a_node(self):
        """Labels, taints and cordons, as explain has them; a pod that no node is offered to fails."""
        def there(name, labels=None, **spec):
            made = node(name, 16, 10)
            return {**made, "metadata": {**made["metadata"], "labels": labels or {}}, "spec": spec}

        def affine(operator, *values):
            return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": operator, "values": list(values)}]}]}}}}

        tolerates = {"tolerations": [{"key": "team", "operator": "Equal", "value": "ml",
                                      "effect": "NoSchedule"}]}
        nodes = [there("a", {"zone": "one"}), there("b", {"zone": "two"}),
                 there("cordoned", {"zone": "one", "old": "yes"}, unschedulable=True),
                 there("tainted", {"zone": "one"},
                       taints=[{"key": "team", "value": "ml", "effect": "NoSchedule"}])]
        wishes = {
            "selects": ({"nodeSelector": {"zone": "one"}}, {"a"}),
            "tolerates": ({"nodeSelector": {"zone": "one"}, **tolerates}, {"a", "tainted"}),
            "affine": (affine("In", "two", "three"), {"b"}),
            "not-there": (affine("NotIn", "one"), {"b"}),
            "no-such": ({"nodeSelector": {"zone": "four"}}, {None}),
            "closed": ({"nodeSelector": {"old": "yes"}}, {None}),
            "free": ({}, {"a", "b"}),
        }
        pods = [pod(f"{name}-{i}", 6, spec=spec) for name, (spec, _) in wishes.items()
                for i in range(3)]
        cluster, out = self.write("cluster.json", listing(*nodes, *pods)), self.folder / "out.json"
        for policy in ("binpack", "spread"):
            result = first_run(f"--snapshot={cluster}", "--arrivals=once", f"--policy={policy}",
                               f"--cluster-out={out}")[1]
            self.assertEqual(sum(result["failed"].values()), 6)
            # Six pods whose share of a card is not known count as if they asked for a whole one.
            self.assertAlmostEqual(result["refused"], 6 / (15 * 0.6 + 6), 5)
            found = {item["metadata"]["name"]: item["spec"]["nodeName"]
                     for item in json.loads(out.read_text())["items"] if item["kind"] == "Pod"}
            for name, (_, allowed) in wishes.items():
                for i in range(3):
                    self.assertIn(found.get(f"{name}-{i}"), allowed, name)
            told = {name: json.loads(run("explain", "pod", f"test/{name}-0", "-o", "json",
                                         f"--snapshot={cluster}").stdout) for name in wishes}
            for name, (_, allowed) in wishes.items():
                offered = {each["name"] for each in told[name]["nodes"]
                           if not each["barrier"]}
                self.assertEqual(offered, allowed - {None}, name)

    def test_pods_are_moved_only_where_kube_scheduler_offers_a_node(self):
        """Room for the pod of 10 could be made only by moves to a node that is not for these pods."""
        def there(name, cards, zone):
            made = node(name, cards, 10)
            return {**made, "metadata": {**made["metadata"], "labels": {"zone": zone}}}
        one = {"nodeSelector": {"zone": "one"}}
        cluster = self.write("cluster.json", listing(
            there("a", 2, "one"), there("b", 2, "two"),
            *(pod(f"p{i}", size, spec=one) for i, size in enumerate((3, 4, 6, 10)))))
        out = self.folder / "out.json"
        for seed in range(1, 6):
            result = first_run(f"--snapshot={cluster}", "--churn", "--arrivals=80%", "--lifetimes=20",
                               "--moves=1000", f"--seeds={seed}", f"--cluster-out={out}")[1]
            self.assertGreater(sum(result["failed"].values()), 0)
            self.assertEqual({item["spec"]["nodeName"]
                              for item in json.loads(out.read_text())["items"]
                              if item["kind"] == "Pod"} - {"a"}, set())

    def test_amounts_are_in_the_unit_of_the_node(self):
        """The README's snapshot: one node counts in MiB, others in GiB; an independent sum by card."""
        out = self.folder / "out.json"
        for options in (["--arrivals=once", f"--pods={SNAPSHOT}"], ["--arrivals=200%"],
                        ["--arrivals=once"]):
            for seed in range(1, 6):
                answer, result = first_run(f"--snapshot={SNAPSHOT}", f"--cluster-out={out}",
                                           f"--seeds={seed}", *options)
                items = json.loads(out.read_text())["items"]
                nodes = {each["metadata"]["name"]: each for each in items if each["kind"] == "Node"}
                cards = collections.Counter()
                for each in items:
                    notes = each["metadata"].get("annotations", {})
                    if each["kind"] == "Pod" and "ALIYUN_COM_GPU_MEM_IDX" in notes:
                        place = each["spec"]["nodeName"], int(notes["ALIYUN_COM_GPU_MEM_IDX"])
                        cards[place] += int(notes["ALIYUN_COM_GPU_MEM_POD"])
                        selector = each["spec"].get("nodeSelector", {})
                        labels = nodes[place[0]]["metadata"]["labels"]
                        self.assertLessEqual(selector.items(), labels.items())

                def size(name, card):
                    meta = nodes[name]["metadata"]
                    own = meta.get("annotations", {}).get("gpuledger.io/card-memory")
                    has = nodes[name]["status"]["allocatable"]
                    return int(own.split(",")[card]) if own else \
                        int(has["aliyun.com/gpu-mem"]) // int(has["aliyun.com/gpu-count"])

                def asked(each):
                    """The mean over the nodes that it may go to, on their cards that have so much."""
                    spec, shares = each["spec"], []
                    amount = sum(int(str(one.get("resources", {}).get("limits", {}).get(
                        "aliyun.com/gpu-mem", 0)).replace("k", "000")) for one in spec["containers"])
                    for name, there in nodes.items():
                        labels = there["metadata"]["labels"].items()
                        count = int(there["status"]["allocatable"].get("aliyun.com/gpu-count", 0))
                        fits = [amount / size(name, card) for card in range(count)
                                if size(name, card) >= amount]
                        if fits and spec.get("nodeSelector", {}).items() <= labels:
                            shares.append(sum(fits) / len(fits))
                    return 0 if amount == 0 else sum(shares) / len(shares) if shares else 1

                if "--arrivals=once" in options:
                    before = [each for each in json.loads(SNAPSHOT.read_text())["items"]
                              if each["kind"] == "Pod"]
                    come = [each for each in before
                            if len(options) == 2 or not each["spec"].get("nodeName")]
                    there = sum(int(each["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_POD"]) /
                                size(each["spec"]["nodeName"],
                                     int(each["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"]))
                                for each in before if each["status"]["phase"] == "Running" and
                                "ALIYUN_COM_GPU_MEM_IDX" in each["metadata"].get("annotations", {}))
                    self.assertAlmostEqual(result["end"]["x"] / 100 * answer["gpus"],
                                           there + sum(map(asked, come)), 3)
                held = sum(amount / size(*place) for place, amount in cards.items())
                self.assertAlmostEqual(held / answer["gpus"], result["end"]["allocated"], 5)
                for point in [*result["points"], result["end"]]:
                    self.assertLessEqual(point["allocated"], 1)
                end = result["end"]
                self.assertAlmostEqual(end["allocated"] + end["partUsed"] + end["untouched"], 1, 5)

    def test_a_replica_is_a_part_of_a_card(self):
        """Ten replicas of one card are one GPU, whether they are asked for one by one or not."""
        def replicas(name, n, **more):
            has = {"requests": {"nvidia.com/gpu": str(n)}, "limits": {"nvidia.com/gpu": str(n)}}
            made = pod(name, 1, **more)
            made["spec"]["containers"][0]["resources"] = has
            return made
        there = node("n1", 1, 10)
        there["metadata"]["labels"] = {"nvidia.com/gpu.replicas": "10", "nvidia.com/gpu.count": "1",
                                       "nvidia.com/gpu.product": "Tesla-T4-SHARED"}
        there["status"] = {key: {"nvidia.com/gpu": "10"} for key in ("capacity", "allocatable")}
        cluster = self.write("cluster.json",
                             listing(there, *(replicas(f"p{i}", 1) for i in range(12))))
        answer, result = first_run(f"--snapshot={cluster}", "--arrivals=once")
        self.assertEqual((answer["gpus"], result["end"]["allocated"]), (1, 1))
        self.assertEqual(result["failed"]["part"], 2)
        self.assertAlmostEqual(result["end"]["x"], 120, 5)

    def test_the_last_column_is_the_first_moment_at_which_so_much_was_asked_for(self):
        text = simulate(f"--snapshot={SNAPSHOT}", "--times=false").splitlines()
        self.assertRegex(text[1], r"^binpack +[\d.]+ +[\d.]+ ")

    def test_a_plugin_takes_its_time(self):
        """Two pods of 6 do not fit on one card of 10: on a node the second waits for the first."""
        pods = [pod(name, 6) for name in "abcd"]
        burst = ("--plugin-pace=1s", "--pods-per-second=1000", "--in-order", "--arrivals=once")

        def waits(nodes, *options):
            cluster = self.write("cluster.json", listing(*nodes, *pods))
            result = first_run(f"--snapshot={cluster}", *burst, *options)[1]
            self.assertEqual(result["failed"]["part"], 0)
            self.assertEqual(result["end"]["allocated"], 0.6 * 4 / sum(
                int(each["status"]["capacity"]["aliyun.com/gpu-count"]) for each in nodes))
            return round(result["waitMedianSeconds"]), round(result["waitP99Seconds"])

        self.assertEqual(waits([node(name, 2, 10) for name in ("n1", "n2", "n3", "n4")]), (1, 1))
        self.assertEqual(waits([node("n1", 4, 10)]), (2, 4))
        self.assertEqual(waits([node("n1", 2, 10), node("n2", 2, 10)]), (1, 2))

    def test_waiting_is_weighed_against_packing(self):
        """Two pods share a card unless that is worse than a card more."""
        cluster = self.write("cluster.json", listing(
            node("n1", 2, 10), node("n2", 2, 10), pod("a", 4), pod("b", 3)))
        for loss, waits in ((0, 2), (5000, 1)):
            result = first_run(f"--snapshot={cluster}", "--plugin-pace=1s", "--in-order",
                               "--pods-per-second=1000", "--arrivals=once",
                               f"--wait-loss={loss}")[1]
            self.assertEqual(round(result["waitP99Seconds"]), waits)

    def test_a_node_takes_so_many_pods(self):
        """Those of a saved cluster that want no GPU count, too."""
        full = node("n1", 4, 10)
        full["status"]["allocatable"] = {**full["status"]["capacity"], "pods": "4"}
        guests = [{"kind": "Pod", "metadata": {"namespace": "test", "name": name, "uid": name},
                   "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
                   "status": {"phase": "Running"}} for name in ("g1", "g2")]
        pods = [pod(name, 2) for name in "abcdef"]
        cluster = self.write("cluster.json", listing(full, *guests, *pods))
        result = first_run(f"--snapshot={cluster}", "--arrivals=once")[1]
        self.assertEqual((result["arrivals"], result["failed"]["part"]), (6, 4))

    def test_the_tables_of_the_page(self):
        """docs/packing.md has what its first two commands print, but for the times."""
        page = (ROOT / "docs" / "packing.md").read_text()
        made_up = page[page.index("## A made-up trace"):]
        blocks = re.findall(r"```\n(POLICY .*?)```", made_up, re.DOTALL)[:2]
        for block, options in zip(blocks, (["--seeds=1..10"],
                                           ["--churn", "--arrivals=95%", "--seeds=1..4"]), strict=True):
            said = simulate(*TRACE, "--policy=first-fit,binpack,spread,fgd,oc", *options)
            without_times = [[re.sub(r"( +[\d.]+){2}$", "", line) for line in text.splitlines()]
                             for text in (block, said)]
            self.assertEqual(*without_times)

    def test_the_table(self):
        lines = simulate(*TRACE, "--policy=first-fit,binpack", "--seeds=1,3..4").splitlines()
        self.assertRegex(lines[0], r"^POLICY +AT 100% +AT 130% +FIRST FAILURE % +FAILED +PART .*US$")
        self.assertRegex(lines[1], r"^first-fit +\d\d\.\d\d ±\d\.\d\d ")
        self.assertRegex(lines[2], r"^binpack +\d\d\.\d\d ±\d\.\d\d ")
        self.assertIn("564 GPUs on 118 nodes", lines[4])
        self.assertIn("3 seeds", lines[4])

    def test_the_trace_is_what_its_program_writes(self):
        before = {name: (FOLDER / name).read_bytes() for name in ("nodes.csv", "pods.csv")}
        script = self.write("generate", (FOLDER / "generate").read_text())
        subprocess.run(["python3", script], check=True, timeout=60)
        self.assertEqual({name: (self.folder / name).read_bytes() for name in before}, before)
        self.assertLess(sum(map(len, before.values())), 100_000)


NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,1000,100,2,T4\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,10,10,1,500\n"


class Refusals(Files):
    def refuse(self, code, pattern, *arguments):
        result = run("simulate", *arguments)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertRegex(result.stderr, pattern)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_bad_csv_is_named_by_file_line_and_column(self):
        for nodes, pods, pattern in (
            ("", PODS, r'nodes.csv": the file is empty'),
            ("sn,cpu_milli\n", PODS, r"nodes.csv\": line 1: there is no column 'memory_mib'"),
            (NODES + "n2,x,1,1,T4\n", PODS,
             r"nodes.csv\": line 3, column 2 \(cpu_milli\): 'x' is not a whole number from 0 to"),
            (NODES + "n1,1,1,1,T4\n", PODS, r"line 3, column 1 \(sn\): 'n1' is the name of a node"),
            (NODES + "n2,1,1,1\n", PODS, r"line 3: 4 columns, the first line has 5"),
            (NODES + "n2,1,1,300,\n", PODS, r"line 3, column 4 \(gpu\): '300' .* 0 to 256"),
            (NODES + 'n2,1,1,1,"T4\n', PODS, r"line 3, column 5 \(model\): a quotation mark"),
            (NODES, PODS + "p2,1,1,1,505\n", r"pods.csv\": line 3, column 5 .* a multiple of 10"),
            (NODES, PODS + "p2,1,1,2,500\n", r"line 3, column 5 \(gpu_milli\): is 500; several"),
            (NODES, PODS + ",1,1,1,500\n", r"line 3, column 1 \(name\): is empty"),
            (NODES, PODS.encode() + b"\xff,1,1,1,500\n", r"line 3: not text in UTF-8"),
            (NODES, "name,name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", r"line 1, column 2: the column 'name' is there"),
            (NODES, PODS.splitlines()[0] + "\n", "there are no pods in it"),
            ("sn,cpu_milli,memory_mib,gpu\nn1,1,1,0\n", PODS, "no node of the cluster has a GPU"),
            (NODES, PODS.replace("1,500", "0,0"), "no pod asks for GPU"),
        ):
            with self.subTest(pattern=pattern):
                self.refuse(1 if pattern.startswith("no ") else 2, pattern, f"--trace-nodes={self.write('nodes.csv', nodes)}",
                            f"--trace-pods={self.write('pods.csv', pods)}")

    def test_bad_json_is_named(self):
        bad = self.write("bad.json", '{"kind": "List", "items": [{"kind": "Node", "metadata": 1}]}')
        self.refuse(2, r"option '--snapshot': .*bad.json.*Node without a name.*metadata",
                    f"--snapshot={bad}")
        cut = self.write("cut.json", '{"kind": "List", "items": [')
        self.refuse(2, r"cut.json\": the JSON ends in the middle", f"--snapshot={cut}")
        self.refuse(2, r"option '--pods': cannot read", f"--snapshot={SNAPSHOT}", "--pods=/nowhere")

    def test_bad_options_are_named(self):
        for pattern, *arguments in (
            ("no cluster is given",),
            ("give both", TRACE[0]),
            ("keep one of them", *TRACE, f"--snapshot={SNAPSHOT}"),
            (r"'--policy': 'bin' is not valid, expected some of binpack, ", *TRACE, "--policy=bin"),
            (r"'binpack' is there twice", *TRACE, "--policy=binpack,binpack"),
            (r"'--seeds': '9..1' is not valid", *TRACE, "--seeds=9..1"),
            (r"'--seeds': '1..9999' .* at most 1000", *TRACE, "--seeds=1..9999"),
            (r"'--arrivals': '0%' is not valid", *TRACE, "--arrivals=0%"),
            (r"'--churn' needs", *TRACE, "--churn", "--arrivals=once"),
            (r"'--moves' is for '--churn'", *TRACE, "--moves=5"),
            (r"option '--moves': '5/d' is not valid", *TRACE, "--churn", "--moves=5/d"),
            (r"'--cluster-out' is for one", *TRACE, "--seeds=1,2", "--cluster-out=x"),
            (r"'--ranked': 'some' is not valid, expected all, gpu or none", *TRACE, "--ranked=some"),
            (r"did you mean '--seeds'", *TRACE, "--seed=1"),
        ):
            with self.subTest(pattern=pattern):
                self.refuse(2, pattern, *arguments)

    def test_what_cannot_be_written_is_an_error(self):
        result = run("simulate", *TRACE, "--cluster-out=/nonexistent/x")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "option '--cluster-out': ")

    def test_what_is_no_file_is_written_to(self):
        target, link, piped = (self.folder / name for name in ("target", "link", "stdout"))
        target.write_text("old" * 1000000)
        link.symlink_to(target)
        piped.symlink_to("/proc/self/fd/1")  # as /dev/stdout is
        self.assertEqual(run("simulate", *TRACE, f"--cluster-out={link}").returncode, 0)
        self.assertEqual(json.loads(target.read_text())["kind"], "List")
        result = run("simulate", *TRACE, f"--cluster-out={piped}")
        self.assertIn('"kind":"List"', result.stdout)
        self.assertTrue(link.is_symlink() and piped.is_symlink())

    def test_a_pod_that_cannot_be_understood_is_told(self):
        cluster = self.write("cluster.json", listing(node("n1", 2, 10), pod(
            "odd", 4, metadata={"annotations": {"gpuledger.io/gpu-memory-min": "7"}})))
        result = run("simulate", f"--snapshot={cluster}", "--arrivals=once")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"pod test/odd: filter: .*gpu-memory-min")

    def test_help_teaches(self):
        text = simulate("--help")
        for word in ("kubectl get nodes,pods -A -o json", "--trace-nodes", "elastic", "--churn"):
            self.assertEqual(bool(re.search(word, text)), word != "elastic", word)


if __name__ == "__main__":
    unittest.main()
