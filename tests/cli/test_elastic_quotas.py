#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Namespaces that are sure of a min, may have a max, and lend what lies between: a saved cluster."""

import datetime
import json
import pathlib
import re
import signal
import tempfile
import unittest

from program import Server, listing, node, pod, run

GPUS = "gpuledger.io/gpus"


def quota(namespace, low, high, kind="ElasticQuota"):
    """As scheduler-plugins has it, or as annotations of a ResourceQuota."""
    metadata = {"namespace": namespace, "name": "gpus", "uid": f"uid-{namespace}"}
    spec = {key: {GPUS: value} for key, value in (("min", low), ("max", high)) if value}
    if kind == "ElasticQuota":
        return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    metadata["annotations"] = {f"gpuledger.io/{key}": json.dumps(value) for key, value in spec.items()}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {}}


WORDS = "quota.scheduling.koordinator.sh/"


TREES = "--quota-tree-namespaces=quotas"


def in_tree(name, low, high, namespaces=(), weight=None, **labels):
    """As Koordinator has it, all in one namespace."""
    made = quota("quotas", low, high)
    made["metadata"] |= {"name": name, "uid": f"uid-{name}",
                         "labels": {WORDS + key.replace("_", "-"): value for key, value in labels.items()},
                         "annotations": {WORDS + "namespaces": json.dumps(list(namespaces))}}
    if weight:
        made["metadata"]["annotations"][WORDS + "shared-weight"] = json.dumps({GPUS: weight})
    return made


def member(name, namespace, units):
    """Pending; cards have ten units."""
    made = pod(name, units)
    made["metadata"]["namespace"] = namespace
    return made


def running(name, namespace, where, card):
    """On a card of its own."""
    made = member(name, namespace, 10)
    made["spec"]["nodeName"] = where
    made["status"] = {"phase": "Running"}
    made["metadata"].setdefault("annotations", {}).update({
        "ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_POD": "10", "ALIYUN_COM_GPU_MEM_DEV": "10",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1"})
    return made


class ElasticQuotas(unittest.TestCase):
    def start(self, *items, options=()):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.snapshot = pathlib.Path(folder.name) / "cluster.json"
        self.snapshot.write_text(listing(node("n", 8, 10), *items))
        self.server = Server("--elastic-quotas", TREES, *options, snapshot=self.snapshot)
        self.addCleanup(self.server.__exit__)

    def place(self, wanted):
        answer = self.server.filter(wanted, ["n"])
        self.assertEqual(answer.get("NodeNames"), ["n"], answer)
        self.assertFalse(self.server.bind(wanted, "n").get("Error"))

    def refused(self, wanted, why):
        answer = self.server.filter(wanted, ["n"])
        self.assertFalse(answer.get("NodeNames"), answer)
        self.assertIn(why, answer["FailedAndUnresolvableNodes"]["n"])
        self.assertIn(why, self.server.bind(wanted, "n")["Error"])

    def rows(self):
        _, text = self.server.get("/api/v1/quotas")
        return {each["namespace"]: each for each in json.loads(text)["elastic"]}

    def lends(self, kind):
        """a lends to b while it needs nothing; what is waiting for it is left to it."""
        late = member("late", "b", 10)
        waits = member("waits", "a", 10)
        first = [member(f"b{i}", "b", 10) for i in range(4)]
        self.start(quota("a", "2", None, kind), quota("b", "2", "4", kind), *first, late)
        for wanted in first:
            self.place(wanted)
        self.assertEqual({key: (row["used"], row["lent"], row["borrowed"]) for key, row in self.rows().items()},
                         {"a": (0, 2, 0), "b": (4, 0, 2)})
        self.refused(late, "quota's max")
        self.assertTrue(self.server.filter(waits, ["n"]).get("NodeNames"))

    def test_elastic_quotas_lend(self):
        self.lends("ElasticQuota")

    def test_annotations_of_resource_quotas_do_as_well(self):
        self.lends("ResourceQuota")

    def test_what_others_wait_for_is_not_lent(self):
        waits, borrows = member("waits", "a", 10), member("borrows", "b", 10)
        mine = member("mine", "b", 10)
        self.start(quota("a", "1", None), quota("b", "1", None), mine, waits, borrows)
        self.place(mine)
        self.refused(borrows, "would borrow")
        _, metrics = self.server.get("/metrics")
        self.assertRegex(metrics, r'gpuledger_refusals_total{[^}]*reason="quota_lent"} [1-9]')
        for name, value in (("min", 1), ("used", 1), ("waiting", 1)):
            self.assertIn(f'gpuledger_quota_{name}{{namespace="b",resource="{GPUS}"}} {value}\n', metrics)
        self.assertNotIn("gpuledger_quota_max{", metrics)
        shown = run("quotas", "--server", self.server.operations)
        self.assertEqual([line.split() for line in shown.stdout.splitlines()], [
            ["NAMESPACE", "RESOURCE", "MIN", "MAX", "USED", "LENT", "BORROWED", "WAITING"],
            ["a", GPUS, "1", "-", "0", "0", "0", "1"],
            ["b", GPUS, "1", "-", "1", "0", "0", "1"],
        ])
        alone = run("quotas", "--elastic-quotas", TREES, "--snapshot", self.snapshot)
        self.assertEqual(len(alone.stdout.splitlines()), 3, alone.stderr)

    def test_explain_tells_the_numbers(self):
        self.start(quota("a", "2", "3"), quota("b", "1", None), member("x", "a", 10))
        for units, namespace, reason, why in (
            (5, "a", None, None),
            (10, "b", None, None),
        ):
            self.assertIsNone(reason or why)
            wanted = member("asked", namespace, units)
            self.assertTrue(self.server.filter(wanted, ["n"]).get("NodeNames"))
        with tempfile.TemporaryDirectory() as folder:
            file, cluster = pathlib.Path(folder) / "pod.json", pathlib.Path(folder) / "cluster.json"
            cluster.write_text(listing(node("n", 8, 10), quota("a", "1", "500m"), quota("b", "0", None),
                                       member("y", "a", 5), member("never", "a", 10)))
            told = {}
            for namespace in ("a", "b"):
                file.write_text(json.dumps(member("asked", namespace, 10)))
                [group] = json.loads(run("explain", "-f", file, "--snapshot", cluster, "-ojson",
                                         "--elastic-quotas", TREES).stdout)["groups"]
                told[namespace] = (group["reason"], group["why"])
        self.assertEqual(told["a"], ("quota_max", f"wants 1 of {GPUS}, the namespace has 0 of at most 0.5"))
        self.assertEqual(told["b"], ("quota_lent", f"wants 1 of {GPUS}, the namespace has 0, is sure of 0, and may "
                                                   "have 0.5 while others need theirs"))

    def tree(self):
        """a and b are below team, which is sure of 4 together with what c is sure of beside it."""
        return [in_tree("team", "4", "6", is_parent="true"), in_tree("a", "1", None, parent="team", namespaces=["a"]),
                in_tree("b", "3", None, parent="team", namespaces=["b", "a"], weight="2"),
                in_tree("c", "4", None, namespaces=["c"], allow_lent_resource="false"),
                in_tree("lost", "1", None, parent="nobody", namespaces=["d"])]

    def test_a_tree_lends_within_its_parent(self):
        first = [member(f"a{i}", "a", 10) for i in range(2)]
        late, lost, again = member("late", "a", 10), member("lost", "d", 10), member("again", "d", 10)
        others = [member(f"b{i}", "b", 10) for i in range(2)]
        self.start(*self.tree(), *first, late, lost, again, *others)
        for wanted in first + others: # one of those of a is lent by b
            self.place(wanted)
        self.refused(late, "would borrow") # c lends nothing
        self.place(lost) # within its min
        self.refused(again, "would borrow")
        rows = {row["quota"]: row for row in json.loads(self.server.get("/api/v1/quotas")[1])["elastic"]}
        self.assertEqual({name: (row["parent"], row["used"]) for name, row in rows.items()},
                         {"team": (None, 4), "a": ("team", 2), "b": ("team", 2), "c": (None, 0), "lost": ("nobody", 1)})
        self.assertEqual((rows["lost"]["fault"], rows["c"]["lends"], rows["b"]["weight"]), ("no_parent", False, 2))
        shown = run("quotas", "--server", self.server.operations).stdout.splitlines()
        self.assertEqual([line.split()[-1] for line in shown], ["PARENT", "team", "team", "-", "(no_parent)", "-"])
        _, metrics = self.server.get("/metrics")
        self.assertIn("gpuledger_quota_faults 1\n", metrics)
        self.assertIn(f'gpuledger_quota_used{{namespace="quotas",quota="team",resource="{GPUS}"}} 4\n', metrics)

    def test_who_borrows_in_a_branch_makes_no_min_less_sure(self):
        first, wanted = [member(f"a{i}", "a", 10) for i in range(4)], member("wanted", "b", 10)
        self.start(in_tree("all", None, None, is_parent="true"), in_tree("mid", None, None, parent="all", is_parent="true"),
                   in_tree("a", "1", None, parent="mid", namespaces=["a"]),
                   in_tree("b", "3", None, parent="mid", namespaces=["b"]), *first)
        for each in first: # three of them are b's
            self.place(each)
        self.assertEqual(self.server.filter(wanted, ["n"]).get("NodeNames"), ["n"])

    def test_a_label_names_only_a_quota_for_its_namespace(self):
        mine, theirs = member("mine", "a", 10), member("theirs", "d", 10)
        for wanted in (mine, theirs):
            wanted["metadata"]["labels"] = {WORDS + "name": "b"}
        self.start(*self.tree(), mine, theirs)
        self.place(mine)
        self.place(theirs)
        rows = {row["quota"]: row["used"] for row in json.loads(self.server.get("/api/v1/quotas")[1])["elastic"]}
        self.assertEqual((rows["a"], rows["b"], rows["lost"]), (0, 1, 1))
        self.assertIn("gpuledger_quota_labels_unheeded 1\n", self.server.get("/metrics")[1])

    def test_explain_says_where_a_pod_counts(self):
        def told(namespace, label=None, first=None):
            """Of a pod that waits, or was bound with the label `first`."""
            wanted = member("asked", namespace, 10) if first is None else running("asked", namespace, "n", 0)
            wanted["metadata"]["labels"] = {WORDS + "name": label} if label else {}
            with tempfile.TemporaryDirectory() as folder:
                cluster = pathlib.Path(folder) / "cluster.json"
                cluster.write_text(listing(node("n", 8, 10), *self.tree(), wanted))
                both = [run("explain", f"{namespace}/asked", "--elastic-quotas", TREES, "--snapshot", cluster, *more).stdout
                        for more in ([], ["-ojson"])]
            self.assertEqual("QUOTA  " in both[0], json.loads(both[1])["quota"] is not None)
            found = json.loads(both[1])["quota"]
            return found and (found["name"], found["from"], found["note"])
        self.assertEqual(told("a"), ("quotas/a", None, None))
        self.assertEqual(told("a", "b"), ("quotas/b", "its label", None))
        says = "its label names '{}', which does not count: "
        self.assertEqual(told("a", "c"), ("quotas/a", None, says.format("c") + "that quota is not for its namespace"))
        self.assertEqual(told("other", "c"), (None, None, says.format("c") + "that quota is not for its namespace"))
        self.assertEqual(told("a", "team"),
                         ("quotas/a", None, says.format("team") + "pods count in those below that quota, not in it directly"))
        self.assertEqual(told("a", "x", first=""),
                         ("quotas/a", None, says.format("x") + "there is no quota of that name in a tree"))
        self.assertIsNone(told("other"))

    def test_the_audit_finds_labels_that_count_for_nothing(self):
        held = [running(f"h{number}", "d", "n", number) for number in range(7)] + [running("good", "a", "n", 7)]
        for one in held:
            one["metadata"]["labels"] = {WORDS + "name": "b"}
        self.start(*self.tree(), *held)
        found = json.loads(run("audit", "--server", self.server.operations, "-ojson").stdout)
        rows = [row for row in found["rows"] if row["cause"] == "quota_label"]
        self.assertEqual([row["name"] for row in rows], [f"h{number}" for number in range(5)]) # of a namespace no more
        self.assertEqual({(row["cluster"], row["ledger"]) for row in rows},
                         {("asks for quota 'b': that quota is not for its namespace", "counts in quotas/lost")})
        [cause] = [cause for cause in found["causes"] if cause["cause"] == "quota_label"]
        self.assertEqual((cause["count"], cause["difference"]), (7, False))
        self.assertEqual(found["differences"], 0)

    def remedies(self, namespace, *items):
        """What explain offers a pod of a whole card: what and to what; and why it is refused."""
        with tempfile.TemporaryDirectory() as folder:
            file, cluster = pathlib.Path(folder) / "pod.json", pathlib.Path(folder) / "cluster.json"
            cluster.write_text(listing(node("n", 8, 10), node("o", 8, 10), *items))
            file.write_text(json.dumps(member("asked", namespace, 10)))
            told = json.loads(run("explain", "-f", file, "--snapshot", cluster, "-ojson", "--elastic-quotas", TREES).stdout)
        return ({(each["kind"], each["text"]) for each in told["remedies"] if each["kind"] in ("quota", "end", "turn")},
                {group["why"] for group in told["groups"]})

    def test_explain_names_the_quota_to_raise_and_the_pod_to_end(self):
        found, _ = self.remedies("a", quota("a", "2", "2"), quota("b", "3", None),
                                 *(running(f"a{i}", "a", "o", i) for i in range(2)), running("b0", "b", "o", 2))
        self.assertEqual(found, {
            ("quota", f"give namespace a a max of 3 {GPUS} instead of 2"), ("end", "end a/a0")})

    def test_explain_names_who_has_borrowed(self):
        found, why = self.remedies("a", quota("a", "1", None), quota("b", "1", None), quota("c", "1", None),
                                   running("a0", "a", "o", 0), *(running(f"b{i}", "b", "o", 1 + i) for i in range(2)))
        self.assertEqual(found, {
            ("quota", f"give namespace a a min of 2 {GPUS} instead of 1"), ("end", "end a/a0"),
            ("end", "end b/b0 on o, which counts in the quota, or wait until it ends")})
        self.assertEqual(why, {f"wants 1 of {GPUS}, the namespace has 1, is sure of 1, and may have 1 while others need "
                               "theirs; b has borrowed 1"})

    def test_explain_names_the_quota_above(self):
        found, _ = self.remedies("a", in_tree("team", "1", "1", is_parent="true"), in_tree("idle", "2", None),
                                 in_tree("a", "1", None, parent="team", namespaces=["a"]), running("a0", "a", "o", 0))
        self.assertIn(("quota", f"give ElasticQuota quotas/team a max of 2 {GPUS} instead of 1"), found)

    def commands(self, units, *items, more=()):
        """{command that explain prints for a pod of a, or of `more`: who ends; None: no plan is found}."""
        found = {}
        for item in items:
            if item["kind"] == "Pod":
                item["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set",
                                                        "uid": f"set-{item['metadata']['name']}", "controller": True}]
        with tempfile.TemporaryDirectory() as folder:
            cluster = pathlib.Path(folder) / "cluster.json"
            cluster.write_text(listing(node("n", 8, 10), node("o", 8, 10), *items, member("asked", "a", units)))
            of = ("--snapshot", cluster, "--elastic-quotas", TREES)
            said = run("explain", "a/asked", *of).stdout
            for command in [*re.findall(r"^'gpuledger (plan .*? --end)'", said, re.MULTILINE), *more]:
                result = run(*command.split(), *of, "-ojson")
                plan = json.loads(result.stdout)
                self.assertEqual((result.returncode, plan["reached"]), (0, True) if plan["steps"] else (3, False))
                self.assertTrue(all(step["ends"] for step in plan["steps"]))
                found[command] = sorted(step["name"] for step in plan["steps"]) or None
        return found

    def test_the_commands_that_explain_prints_free_the_quota(self):
        """Wherever the pod is that counts in it."""
        named = "plan a/asked --only "
        ours = [running(f"a{i}", "a", "o", i) for i in range(2)]
        self.assertEqual(self.commands(10, quota("a", "2", "2"), quota("b", "3", None), *ours, running("b0", "b", "o", 2),
                                       more=[f"{named}b/b0 --end", f"{named}b/b0,a/a1 --end"]),
                         {f"{named}a/a0 --end": ["a0"], f"{named}b/b0 --end": None, f"{named}b/b0,a/a1 --end": ["a1"]})
        theirs = [running(f"b{i}", "b", "o", 1 + i) for i in range(2)]
        self.assertEqual(self.commands(10, quota("a", "1", None), quota("b", "1", None), quota("c", "1", None), ours[0],
                                       *theirs),
                         {f"{named}a/a0 --end": ["a0"], f"{named}b/b0 --end": ["b0"]})

    def test_what_a_node_keeps_for_a_pod_counts_in_no_quota(self):
        """Its kubelet can write there that it keeps room for any pod."""
        until = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=60)).strftime("%FT%TZ")

        def kept(pod_uid, namespace="a", room="uid-asked"):
            made = node("n", 8, 10)
            made["metadata"].setdefault("annotations", {})["gpuledger.io/plan"] = json.dumps({
                "doing": "room", "by": "test", "until": until, "rooms": [{
                    "id": room, "pod": pod_uid, "namespace": namespace, "priority": 0, "dialect": "gpushare",
                    "shares": [{"memory": 10, "units": True, "card": 7}]}]})
            return made

        asked, rival = member("asked", "a", 10), member("rival", "a", 10)
        asked["metadata"]["uid"] = "uid-asked"
        for where in (kept("uid-asked"), kept("uid-asked", "b"), kept("left by uid-gone", room="uid-gone"),
                      node("n", 8, 10)):
            with tempfile.TemporaryDirectory() as folder:
                cluster = pathlib.Path(folder) / "cluster.json"
                cluster.write_text(listing(where, quota("a", "2", "2"), running("a0", "a", "n", 0), asked, rival))
                with Server("--elastic-quotas", TREES, snapshot=cluster) as server:
                    answer = server.filter(rival, ["n"])
                    self.assertTrue(answer.get("NodeNames"), (where, answer))
                    self.assertTrue(server.filter(asked, ["n"]).get("NodeNames"))

    def test_as_few_end_as_free_the_quota(self):
        """Within the bounds of the plan."""
        def pair(i):
            made = member(f"p{i}", "a", 5)
            made["spec"]["nodeName"], made["status"] = "o", {"phase": "Running"}
            made["metadata"]["annotations"] = {**running("x", "a", "o", i)["metadata"]["annotations"],
                                               "ALIYUN_COM_GPU_MEM_POD": "5"}
            return made

        named = "plan a/asked --only a/p0,a/p1,a/p2 --end"
        found = self.commands(10, quota("a", "2", "2"), *(pair(i) for i in range(3)),
                              more=[named, f"{named} --max-moves 1", f"{named} --max-per-namespace 1",
                                    f"{named} --max-per-node 1"])
        self.assertEqual({command: ends and len(ends) for command, ends in found.items() if command.startswith(named)},
                         {named: 1, f"{named} --max-moves 1": 1, f"{named} --max-per-namespace 1": 1,
                          f"{named} --max-per-node 1": 1})
        found = self.commands(10, quota("a", "2", "2"), *(pair(i) for i in range(4)),
                              more=[named, f"{named} --max-moves 1", f"{named} --max-per-namespace 1",
                                    f"{named} --max-per-node 1"])
        self.assertEqual({command: ends and len(ends) for command, ends in found.items() if command.startswith(named)},
                         {named: 2, f"{named} --max-moves 1": None, f"{named} --max-per-namespace 1": None,
                          f"{named} --max-per-node 1": None})

    def ends(self, *items, options=()):
        """Who would give back for a pod of a whole card of a."""
        with tempfile.TemporaryDirectory() as folder:
            file, cluster = pathlib.Path(folder) / "pod.json", pathlib.Path(folder) / "cluster.json"
            cluster.write_text(listing(node("n", 4, 10), *items))
            asked = member("asked", "a", 10)
            asked["metadata"]["ownerReferences"] = [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}]
            file.write_text(json.dumps(asked))
            told = json.loads(run("explain", "-f", file, "--snapshot", cluster, "-ojson", "--elastic-quotas", TREES, "--reclaim",
                                  *options).stdout)["reclaim"]
        return told["answer"], {each["name"] for each in told["pods"]}

    def test_what_cannot_be_taken_back_is_not_lent(self):
        bare, owned = member("bare", "b", 10), member("owned", "b", 10)
        owned["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "b", "uid": "b", "controller": True}]
        self.start(quota("a", "2", None), quota("b", "0", None), bare, owned, options=["--reclaim"])
        self.refused(bare, "only by pods that can be taken back")
        self.place(owned)

    def test_a_record_says_what_was_lent(self):
        """An older one does not, and any pod could borrow then."""
        bare = member("bare", "b", 10)
        with tempfile.TemporaryDirectory() as folder:
            record = pathlib.Path(folder) / "record"
            self.start(quota("a", "2", None), quota("b", "0", None), bare,
                       options=["--reclaim", "--lend-unreclaimable", f"--record={record}"])
            self.place(bare)
            self.server.signal(signal.SIGTERM)
            self.server.exit_code()
            head, *rest = record.read_text().splitlines(keepends=True)
            header = json.loads(head)
            self.assertEqual(header["options"].pop("lend-unreclaimable"), "true")
            for option, code in ({}, 0), ({"lend-unreclaimable": "false"}, 3):
                changed = {**header, "options": {**header["options"], **option}}
                record.write_text(json.dumps(changed) + "\n" + "".join(rest))
                played = run("replay", str(record))
                self.assertEqual(played.returncode, code, played.stdout + played.stderr)

    def test_classes_say_who_gives_back_first(self):
        items = [quota("a", "1", None), quota("b", "1", None), *(running(f"b{i}", "b", "n", i) for i in range(4))]
        for number in range(4): # the youngest is b3
            items[2 + number]["metadata"]["creationTimestamp"] = f"2026-01-0{number + 1}T00:00:00Z"
            items[2 + number]["metadata"]["ownerReferences"] = [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "b", "uid": "b", "controller": True}]
        items[3]["metadata"]["annotations"]["gpuledger.io/class"] = "interactive"
        self.assertEqual(self.ends(*items), ("found", {"b3"}))
        self.assertEqual(self.ends(*items, options=["--classes=default"]), ("found", {"b1"}))

    def test_in_a_tree_a_branch_gives_back_what_it_has_borrowed(self):
        tree = [in_tree("left", "2", None, is_parent="true"), in_tree("a", "1", None, parent="left", namespaces=["a"]),
                in_tree("b", "1", None, parent="left", namespaces=["b"]), in_tree("c", "2", None, namespaces=["c"])]
        def hold(*names):
            made = [running(name, name[0], "n", card) | {"status": {"phase": "Running"}} for card, name in enumerate(names)]
            for each in made:
                each["metadata"]["ownerReferences"] = [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}]
            return made
        def giver(tree, *names):
            answer, found = self.ends(*tree, *hold(*names))
            return answer, {name[0] for name in found}
        self.assertEqual(giver(tree, "b0", "b1", "c0", "c1"), ("found", {"b"})) # its own side, not c's
        self.assertEqual(giver(tree, "b0", "c0", "c1", "c2"), ("found", {"c"}))
        self.assertEqual(giver(tree, "a0", "b0", "c0", "c1"), ("above_min", set()))
        # What left is sure of as a whole, a may have, too.
        wider = [in_tree("left", "3", None, is_parent="true"), *tree[1:3], in_tree("c", "1", None, namespaces=["c"])]
        self.assertEqual(giver(wider, "a0", "b0", "c0", "c1"), ("found", {"c"}))
        self.assertEqual(giver(wider, "a0", "b0", "b1", "c0"), ("above_min", set()))

    def test_a_record_holds_trees(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "record"
            first = [member(f"a{i}", "a", 10) for i in range(4)]
            first[1]["metadata"]["labels"] = {WORDS + "name": "b"}
            late = member("late", "a", 10)
            self.start(*self.tree(), *first, late, options=[f"--record={file}"])
            for wanted in first:
                self.place(wanted)
            self.refused(late, "would borrow")
            self.server.signal(signal.SIGTERM)
            self.server.exit_code()
            told = json.loads(run("replay", file, "-o", "json").stdout)
            self.assertEqual((told["different"], told["unchecked"]), (0, 0))
            self.assertGreater(told["compared"], 6)

    def test_annotations_of_a_tree_that_cannot_be_read_are_said(self):
        bad = in_tree("bad", "1", None)
        bad["metadata"]["annotations"][WORDS + "namespaces"] = '"a"'
        self.start(*self.tree(), bad)
        _, metrics = self.server.get("/metrics")
        self.assertRegex(metrics, r'gpuledger_objects_bad_total{[^}]*elasticquotas[^}]*} [1-9]')
        self.assertNotIn('quota="bad"', metrics)

    def test_a_record_holds_them(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "record"
            wanted = [member(f"b{i}", "b", 10) for i in range(3)]
            self.start(quota("a", "1", None), quota("b", "1", "3"), *wanted, options=[f"--record={file}"])
            self.place(wanted[0])
            self.place(wanted[1])
            self.refused(wanted[2], "would borrow")
            self.server.signal(signal.SIGTERM)
            self.server.exit_code()
            told = json.loads(run("replay", file, "-o", "json").stdout)
            self.assertEqual((told["different"], told["unchecked"]), (0, 0))
            self.assertGreater(told["compared"], 3)

    def test_without_the_option(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        snapshot = pathlib.Path(folder.name) / "cluster.json"
        snapshot.write_text(listing(node("n", 8, 10), quota("a", "0", "0"), member("x", "a", 10)))
        with Server(snapshot=snapshot) as server:
            self.assertTrue(server.filter(member("x", "a", 10), ["n"]).get("NodeNames"))

    def test_what_cannot_be_read_is_said(self):
        self.start(quota("a", "two", None), quota("b", "1", "3"))
        self.assertEqual(set(self.rows()), {"b"})
        _, metrics = self.server.get("/metrics")
        self.assertRegex(metrics, r'gpuledger_objects_bad_total{[^}]*elasticquotas[^}]*} [1-9]')


if __name__ == "__main__":
    unittest.main()
