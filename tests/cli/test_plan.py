#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command "plan". Its moves are carried out through the real verbs, over random clusters of many
dialects: each pod ends, its successor is filtered and bound where the plan has it, and in the end the
goal is there. GPULEDGER_SEED repeats a run, GPULEDGER_EVENTS says how many clusters there are."""

import copy
import datetime
import itertools
import json
import os
import pathlib
import random
import re
import signal
import tempfile
import unittest

from program import ROOT, Server, call, listing, run
from test_fit import gpus
from test_gangs import members, pod_group
import test_remedies
from test_remedies import DIALECTS, admit, make_pod

SEED = int(os.environ.get("GPULEDGER_SEED") or random.randrange(1 << 32))
CLUSTERS = int(os.environ.get("GPULEDGER_EVENTS") or 40)
OPT_OUTS = {
    "descheduler.alpha.kubernetes.io/prefer-no-eviction": "",
    "descheduler.alpha.kubernetes.io/eviction-in-progress": "true",
    "scheduling.koordinator.sh/refuse-to-migrate": "true",
    "scheduling.koordinator.sh/eviction-cost": "2147483647",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}


def own(pod, uid="owner", kind="ReplicaSet"):
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Tower", "name": "no", "uid": "no"},
        {"apiVersion": "apps/v1", "kind": kind, "name": uid, "uid": uid, "controller": True}]
    return pod


def held(name, units, node, card, **annotations):
    """A pod of gpushare that runs."""
    pod = make_pod(name, {"aliyun.com/gpu-mem": str(units)}, {
        "ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_POD": str(units),
        "ALIYUN_COM_GPU_MEM_DEV": "16", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1700000000000000000", **annotations})
    pod["spec"]["nodeName"] = node
    pod["status"]["phase"] = "Running"
    return own(pod, f"owner-{name}")


def wants(units, name="asked"):
    return make_pod(name, {"aliyun.com/gpu-mem": str(units)})


class Plan(unittest.TestCase):
    write, fill = test_remedies.Remedies.write, test_remedies.Remedies.fill

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.seen = {}

    def plan(self, cluster, *arguments, code=0):
        result = run("plan", *arguments, "--snapshot", cluster, "-ojson")
        self.assertEqual((result.returncode, result.stderr), (code, ""), f"seed {SEED}")
        plan = json.loads(result.stdout)
        self.assertEqual(plan["reached"], code == 0)
        return plan

    def of(self, items, *arguments, code=0):
        return self.plan(self.write("cluster.json", listing(*items)), *arguments, code=code)

    def moves(self, plan):
        return [(step["name"], step["from"], step["to"]) for step in plan["steps"]]

    # --- random clusters ---------------------------------------------------------------------------

    def carry_out(self, server, items, plan):
        pods = {pod["metadata"]["name"]: pod for pod in items if pod["kind"] == "Pod"}
        for step in plan["steps"]:
            gone = pods[step["name"]]
            self.assertEqual(gone["spec"]["nodeName"], step["from"])
            successor = make_pod(f"{step['name']}-again",
                                 gone["spec"]["containers"][0]["resources"]["limits"])
            call("DELETE", f"{server.operations}/api/v1/snapshot/pods/test/{step['name']}")
            self.assertEqual(admit(server, successor, [step["to"]]), step["to"],
                             f"seed {SEED}: {plan}")

    # --- all plans there are -------------------------------------------------------------------------

    @staticmethod
    def draw_crowded(chance):
        """Crowded nodes, cards of 8: what their pods hold, by node and card; and a goal."""
        nodes = {f"n{i}": [[] for _ in range(chance.randint(1, 3))] for i in range(chance.randint(1, 3))}
        for _ in range(16):
            card, units = chance.choice(chance.choice(list(nodes.values()))), chance.randint(1, 6)
            if sum(card) + units <= 8 and sum(len(each) for cards in nodes.values() for each in cards) < 8:
                card.append(units)
        free = max(8 - sum(card) for cards in nodes.values() for card in cards)
        places = [(node, card) for node in nodes for card in range(len(nodes[node])) if nodes[node][card]]
        return nodes, chance.choice(places) if free == 8 or chance.random() < 0.5 else min(8, free + chance.randint(1, 2))

    @staticmethod
    def brute_force(nodes, goal):
        """Brute force: all places that the pods can come to by one move of each. None: not the goal's."""
        places = [(node, card) for node in nodes for card in range(len(nodes[node]))]
        pods = [(units, place) for place in places for units in nodes[place[0]][place[1]]]
        start = tuple(place for _, place in pods)

        def free(state):
            left = dict.fromkeys(places, 8)
            for (units, _), place in zip(pods, state):
                left[place] -= units
            return left

        def done(state):
            return goal not in state if isinstance(goal, tuple) else max(free(state).values()) >= goal
        seen, level, moves = {start}, [start], 0
        while level:
            if any(map(done, level)):
                return moves
            after = []
            for state in level:
                left = free(state)
                for i, (units, home) in enumerate(pods):
                    for place in places:
                        state_then = (*state[:i], place, *state[i + 1:])
                        if state[i] == home and place != goal and left[place] >= units \
                                and state_then not in seen:
                            seen.add(state_then)
                            after.append(state_then)
            level, moves = after, moves + 1
        return None

    @staticmethod
    def crowded(nodes, goal):
        names = (f"p{i}" for i in itertools.count())
        return [*(gpus(node, len(cards), 8) for node, cards in nodes.items()),
                *(held(next(names), units, node, card, ALIYUN_COM_GPU_MEM_DEV="8")
                  for node, cards in nodes.items() for card, pods in enumerate(cards) for units in pods),
                *([] if isinstance(goal, tuple) else [wants(goal)])]

    def plan_for(self, nodes, goal):
        words = ("--empty", f"{goal[0]}/{goal[1]}") if isinstance(goal, tuple) else ("test/asked",)
        result = run("plan", *words, "--snapshot", self.write("cluster.json", listing(*self.crowded(nodes, goal))),
                     "-ojson")
        self.assertIn(result.returncode, (0, 3), result.stderr)
        return json.loads(result.stdout)

    @staticmethod
    def keep_card(name, successor, card):
        """What a plan writes on a node, of a pod whose UID is known."""
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=60)
        return json.dumps({
            "doing": f"move of {name}", "by": "test", "until": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "rooms": [{"id": "r", "dialect": "gpushare", "pod": successor["metadata"]["uid"],
                       "shares": [{"memory": 1, "units": True, "card": card}]}]})

    def test_a_plan_is_found_where_there_is_one(self):
        """And it has as few moves as any; else it says that there is none, for all were tried."""
        chance, reached = random.Random(SEED), set()
        cases = [self.draw_crowded(chance) for _ in range(CLUSTERS)]
        cases += [({"n0": [[6, 1], [2, 4], [3]]}, ("n0", 0)), ({"n0": [[6], [6], [1, 2, 1, 3, 1]]}, 3),
                  ({"n0": [[2, 3], [6, 1], [6, 2]]}, 4), ({"n0": [[6, 1], [2, 2]]}, 5)]
        for nodes, goal in cases:
            plan, least = self.plan_for(nodes, goal), self.brute_force(nodes, goal)
            told = f"seed {SEED}: {nodes}, {goal}: {least}, {plan}"
            self.assertEqual(plan["reached"], least is not None, told)
            if least is None:
                self.assertTrue(plan["fewest"], told)
                self.assertRegex(plan["why"], "^no moves exist: |even if nobody were there$", told)
                continue
            reached.add(least)
            self.assertEqual(len(plan["steps"]), least, told)
            self.assertTrue(plan["fewest"], told)
            at = {each["metadata"]["name"]: each for each in self.crowded(nodes, goal)}
            left = {(node, card): 8 - sum(pods) for node, cards in nodes.items()
                    for card, pods in enumerate(cards)}
            for step in plan["steps"]:
                pod = at[step["name"]]
                units = int(pod["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"])
                to = step["to"], int(re.match(r"card (\d+)", step["takes"])[1])
                self.assertGreaterEqual(left[to], units, told)
                self.assertNotEqual(to, goal, told)
                left[to] -= units
                left[step["from"], int(re.match(r"card (\d+)", step["frees"])[1])] += units
            self.assertEqual(max(left.values()) >= goal if isinstance(goal, int) else left[goal] == 8, True, told)
        self.assertLessEqual({0, 1, 2} & reached, reached)
        self.assertGreaterEqual(len(reached), 3, f"seed {SEED}")

    def test_a_successor_is_on_the_card_that_is_kept_for_it(self):
        """Its policy would have it on the fullest, which the goal needs empty."""
        nodes, goal = {"n0": [[6, 1], [2, 2]]}, 5
        plan = self.plan_for(nodes, goal)
        self.assertEqual(len(plan["steps"]), self.brute_force(nodes, goal))
        items = self.crowded(nodes, goal)
        for step in plan["steps"]:
            gone = next(each for each in items if each["metadata"]["name"] == step["name"])
            limits = gone["spec"]["containers"][0]["resources"]["limits"]
            successor = make_pod(f"{step['name']}-again", limits)
            card = int(re.match(r"card (\d+)", step["takes"])[1])
            node = next(each for each in items if each["kind"] == "Node")
            items.remove(gone)
            found = []
            for mark in (None, self.keep_card(step["name"], successor, card)):
                node["metadata"]["annotations"] = {"gpuledger.io/plan": mark} if mark else {}
                out = self.directory / "out.json"
                with Server(f"--snapshot-out={out}",
                            snapshot=self.write("kept.json", listing(*items))) as server:
                    self.assertEqual(admit(server, copy.deepcopy(successor), [step["to"]]), step["to"])
                    server.signal(signal.SIGTERM)
                    self.assertEqual(server.exit_code(), 0)
                after = json.loads(out.read_text())["items"]
                bound = next(each for each in after if each["metadata"]["name"] == f"{step['name']}-again")
                found.append(int(bound["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"]))
            self.assertEqual(found[1], card, plan)
            self.seen.setdefault("moved", []).append(found[0] != found[1])
            bound["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_ASSIGNED"] = "true"
            bound["status"]["phase"] = "Running"
            items = [*(each for each in items if each["metadata"]["name"] != bound["metadata"]["name"]), bound]
        self.assertTrue(any(self.seen["moved"]), "no card was chosen that the policy would not have chosen")
        node["metadata"]["annotations"] = {}
        with Server(snapshot=self.write("done.json", listing(*items))) as server:
            self.assertEqual(server.filter(wants(goal), ["n0"])["NodeNames"], ["n0"])

    # --- random clusters of many dialects -----------------------------------------------------------

    def test_its_moves_are_carried_out(self):
        chance = random.Random(SEED)
        reached = {}
        for number in range(CLUSTERS):
            name = sorted(DIALECTS)[number % len(DIALECTS)]
            items, _ = self.fill(chance, DIALECTS[name])
            nodes = [each["metadata"]["name"] for each in items if each["kind"] == "Node"]
            opened = [each["metadata"]["name"] for each in items if each["kind"] == "Node"
                      and not each.get("spec", {}).get("unschedulable")]
            for number_of_pod, pod in enumerate(each for each in items if each["kind"] == "Pod"):
                if chance.random() < 0.9:
                    own(pod, f"owner-{number_of_pod % 4}")
            cluster = self.write("cluster.json", listing(*items))
            asked = make_pod("asked", DIALECTS[name].ask(chance))
            emptied = chance.choice(nodes)
            goal = chance.choice((("-f", self.write("asked.json", asked)), ("--empty", emptied)))
            result = run("plan", *goal, "--snapshot", cluster, "-ojson")
            self.assertIn(result.returncode, (0, 3), result.stderr)
            plan = json.loads(result.stdout)
            if not plan["reached"]:
                self.assertTrue(plan["why"] and not plan["steps"], f"seed {SEED}: {plan}")
                continue
            reached[len(plan["steps"])] = reached.get(len(plan["steps"]), 0) + 1
            with Server(snapshot=cluster) as server:
                self.carry_out(server, items, plan)
                if goal[0] == "-f":
                    self.assertIsNotNone(admit(server, asked, opened, plan["node"]),
                                         f"seed {SEED}: {plan}")
                else:
                    there = json.loads(server.get(f"/api/v1/nodes/{emptied}",
                                                  server.operations)[1])
                    self.assertEqual(there["pods"], [], f"seed {SEED}: {plan}")
        self.assertTrue(set(reached) & {1, 2, 3}, f"seed {SEED}: no plan had a move: {reached}")

    # --- by hand -----------------------------------------------------------------------------------

    CLUSTER = [gpus("n1", 2, 16), gpus("n2", 2, 16), held("a", 4, "n1", 0), held("b", 6, "n1", 1),
               held("c", 8, "n2", 0), held("d", 10, "n2", 1)]

    def test_the_fewest_and_smallest(self):
        plan = self.of([*self.CLUSTER, wants(16)], "test/asked")
        self.assertEqual(self.moves(plan), [("a", "n1", "n2")])
        self.assertEqual((plan["fewest"], plan["node"], plan["cards"]), (True, "n1", "card 0 (16GiB)"))
        self.assertEqual(plan["steps"][0]["frees"], "card 0 (4GiB)")
        self.assertEqual(plan["steps"][0]["waitsFor"], "a Ready pod of its ReplicaSet")

    def test_what_is_there_needs_no_move(self):
        self.assertEqual(self.of([*self.CLUSTER, wants(10)], "test/asked")["steps"], [])
        bound = self.of(self.CLUSTER, "test/a")
        self.assertEqual((bound["steps"], bound["node"]), ([], "n1"))

    def test_a_card(self):
        self.assertEqual(self.moves(self.of(self.CLUSTER, "--empty", "n1/1")), [("b", "n1", "n2")])
        items = copy.deepcopy(self.CLUSTER)
        items[0]["metadata"]["annotations"] = {"gpuledger.io/cordoned-cards": "0"}
        self.assertEqual(self.moves(self.of(items, "--empty", "n1/1")), [("b", "n1", "n2")])

    def test_who_opts_out_stays(self):
        for key, value in OPT_OUTS.items():
            items = copy.deepcopy(self.CLUSTER)
            items[2]["metadata"]["annotations"][key] = value
            plan = self.of([*items, wants(16)], "test/asked")
            self.assertNotIn("a", [step["name"] for step in plan["steps"]], key)
            self.assertEqual([(stay["name"], key in stay["why"]) for stay in plan["stays"]],
                             [("a", True)], key)
            plan = self.of(items, "--empty", "n1/0", code=3)
            self.assertEqual([stay["name"] for stay in plan["stays"]], ["a"], key)

    def test_who_cannot_come_back_stays(self):
        for change, why in ((lambda pod: own(pod, kind="DaemonSet"), "DaemonSet"),
                            (lambda pod: pod["metadata"].pop("ownerReferences"), "--force"),
                            (lambda pod: pod["metadata"]["annotations"].update(
                                {"kubernetes.io/config.mirror": "x"}), "kubelet"),
                            (lambda pod: pod["metadata"].update(
                                {"labels": {"scheduling.x-k8s.io/pod-group": "team"}}), "'team'")):
            items = copy.deepcopy(self.CLUSTER)
            change(items[2])
            plan = self.of(items, "--empty", "n1/0", code=3)
            self.assertIn(why, plan["stays"][0]["why"])
        items = copy.deepcopy(self.CLUSTER)
        items[2]["metadata"].pop("ownerReferences")
        plan = self.of(items, "--empty", "n1/0", "--force")
        self.assertEqual(plan["steps"][0]["waitsFor"], "its end")

    def test_who_is_kept_by_a_budget_stays(self):
        def budget(name, allowed):
            return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                    "metadata": {"name": name, "namespace": "test", "uid": name},
                    "spec": {"selector": {"matchLabels": {"app": "a"}}},
                    "status": {"disruptionsAllowed": allowed}}

        items = copy.deepcopy(self.CLUSTER)
        items[2]["metadata"]["labels"] = {"app": "a"}
        plan = self.of([*items, budget("one", 0)], "--empty", "n1/0", code=3)
        self.assertEqual([(stay["name"], "nothing to give" in stay["why"]) for stay in plan["stays"]],
                         [("a", True)])
        self.assertEqual(self.moves(self.of([*items, budget("one", 1)], "--empty", "n1/0")),
                         [("a", "n1", "n2")])
        plan = self.of([*items, budget("one", 1), budget("two", 1)], "--empty", "n1/0", code=3)
        self.assertIn("several PodDisruptionBudgets", plan["stays"][0]["why"])

    def test_limits(self):
        items = copy.deepcopy(self.CLUSTER)
        for pod in items[2:4]:
            own(pod, "one")
        self.assertEqual(len(self.of(items, "--empty", "n1")["steps"]), 2)
        for limit in ("--max-moves", "--max-per-workload", "--max-per-node"):
            plan = self.of(items, "--empty", "n1", f"{limit}=1", code=3)
            self.assertEqual(plan["steps"], [], limit)

    def test_where_the_successor_may_not_be(self):
        items = copy.deepcopy(self.CLUSTER)
        items[2]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
        self.assertNotIn("a", [step["name"] for step in
                               self.of([*items, wants(16)], "test/asked")["steps"]])
        items = copy.deepcopy(self.CLUSTER)
        items[1]["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
        self.of(items, "--empty", "n1/1", "--max-moves=1")
        self.assertEqual(self.moves(self.of(items, "--empty", "n1/1", "--max-moves=1")),
                         [("b", "n1", "n1")])

    def test_a_budget_of_each_namespace(self):
        """Two pods have to leave the card, of one namespace or of two."""
        for other, most, code in (("test", 0, 0), ("test", 1, 3), ("test", 2, 0), ("elsewhere", 1, 0)):
            pods = [held("a", 4, "n1", 0), held("b", 4, "n1", 0)]
            pods[1]["metadata"]["namespace"] = other
            items = [gpus("n1", 1, 16), gpus("n2", 1, 8), *pods]
            plan = self.of(items, "--empty", "n1", f"--max-per-namespace={most}", code=code)
            self.assertEqual(len(plan["steps"]), 0 if code else 2, (other, most))

    def test_what_no_move_helps(self):
        plan = self.of([*self.CLUSTER, wants(17)], "test/asked", code=3)
        self.assertIn("even if nobody were there", plan["why"])

    def test_cards_of_another_dialect_lend_no_room(self):
        result = run("plan", "research/notebook-xl", "--snapshot", ROOT / "examples/wall/cluster.json", "-ojson")
        plan = json.loads(result.stdout)
        self.assertEqual((plan["reached"], len(plan["steps"])), (True, 2), result.stdout)
        self.assertEqual({step["to"][:3] for step in plan["steps"]}, {"t4-"})

    def test_words_of_tenants_reach_no_terminal(self):
        items = copy.deepcopy(self.CLUSTER)
        items[2]["metadata"]["annotations"]["gang.scheduling.koordinator.sh/name"] = "\x1b[2J" + "x" * 5000
        own(items[3], kind="\x1b]0;owned\x07")
        cluster = self.write("cluster.json", listing(*items))
        stays = run("plan", "--empty", "n1/0", "--snapshot", cluster).stdout
        moves = run("plan", "--empty", "n1/1", "--snapshot", cluster).stdout
        self.assertIn("a Ready pod of its controller", moves)
        self.assertIn("which would wait for it", stays)
        for text in (stays, moves):
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f]")
            self.assertLess(max(map(len, text.splitlines())), 250)

    def test_the_table(self):
        cluster = self.write("cluster.json", listing(*self.CLUSTER, wants(16)))
        result = run("plan", "test/asked", "--snapshot", cluster)
        self.assertEqual(result.stdout.splitlines()[0],
                         "room for test/asked (16 units of memory of one card): 1 move")
        self.assertIn("1      test/a   n1     card 0 (4GiB)", result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], "The pod: n1, card 0 (16GiB)")

    @staticmethod
    def mark(until, **room):
        """A node of one card whose annotation keeps all of it, until so many seconds from now."""
        node = gpus("n1", 1, 8)
        moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=until)
        node["metadata"]["annotations"] = {"gpuledger.io/plan": json.dumps({
            "doing": "room for test/big: move 1 of 1", "by": "test", "until": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "rooms": [{"id": "r", "dialect": "gpushare", "shares": [{"memory": 8, "units": True, "card": 0}], **room}],
        })}
        return node

    def test_room_that_a_node_keeps_for_a_pod(self):
        """Whoever asks first, the pod gets it; nobody is refused when it is over, or without it."""
        big, thief = wants(8, "big"), wants(2, "thief")
        for until, kept, passes in ((60, "uid-big", False), (60, "uid-other", False), (-1, "uid-big", True),
                                    (3600, "uid-big", True)):
            node = self.mark(until, pod=kept)
            with Server(snapshot=self.write("kept.json", listing(node, big, thief))) as server:
                self.assertEqual(server.filter(thief, ["n1"])["NodeNames"], ["n1"] if passes else [], kept)
                self.assertEqual(server.filter(big, ["n1"])["NodeNames"],
                                 ["n1"] if passes or kept == "uid-big" else [], kept)

    def test_room_that_a_node_keeps_for_a_successor(self):
        """Who writes the controller's UID into a pod gets what it could have had if nothing were kept."""
        room = {"namespace": "test", "controller": "uid-set", "asks": "1 x 8 units", "since": 0}
        kept, free = self.mark(60, **room), gpus("n1", 1, 8)
        taken = held("t", 4, "n1", 0)
        for owner, amount, beside in (("uid-set", 8, None), ("uid-set", 9, None), ("uid-set", 4, None),
                                      ("uid-other", 8, None), (None, 8, None), ("uid-set", 8, taken)):
            asked = wants(amount, "forged")
            if owner:
                asked["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "x", "uid": owner,
                                                         "controller": True}]
            found = []
            for node in (kept, free):
                items = [node, asked] + ([beside] if beside else [])
                with Server(snapshot=self.write("kept.json", listing(*items))) as server:
                    found.append(server.filter(asked, ["n1"])["NodeNames"])
            self.assertLessEqual(set(found[0]), set(found[1]), (owner, amount))
            self.assertEqual(bool(found[0]), owner == "uid-set" and amount == 8 and not beside, (owner, amount))

    def test_a_running_extender_says_the_same(self):
        cluster = ROOT / "examples" / "wall" / "cluster.json"
        with Server(snapshot=cluster) as server:
            asked = ("--server", server.address("operations"))
            for words in (("research/notebook-xl",), ("training/llm-eval",), ("--empty", "t4-3/1"),
                          ("--empty", "l4-0", "--max-moves", "2"), ("research/notebook-xl", "--max-moves", "1"),
                          ("research/notebook-xl", "--max-per-node", "1"),
                          ("training/llm-eval", "--max-per-namespace", "1"),
                          ("research/notebook-xl", "--only", "serving/ocr-0"),
                          ("-f", ROOT / "examples" / "pods" / "binpack.yaml")):
                for output in ("table", "json"):
                    alone = run("plan", *words, "--snapshot", cluster, "-o", output)
                    there = run("plan", *words, *asked, "-o", output)
                    self.assertIn(alone.returncode, (0, 3), alone.stderr)
                    self.assertEqual((there.returncode, there.stdout, there.stderr),
                                     (alone.returncode, alone.stdout, alone.stderr), words)
            answer = run("plan", "research/nobody", *asked)
            self.assertEqual(answer.returncode, 1)

    def test_what_explain_names_is_what_to_run(self):
        """Whoever runs the commands that explain prints gets the moves that it named, and no others."""
        items = [gpus("n1", 1, 16), gpus("n2", 1, 16), gpus("n3", 1, 8), held("a", 8, "n1", 0), held("b", 6, "n2", 0),
                 held("c", 12, "n3", 0), wants(16)]
        cluster = self.write("cluster.json", listing(*items))
        said = run("explain", "test/asked", "--snapshot", cluster).stdout
        commands = re.findall(r"^'gpuledger (plan .*?)'", said, re.MULTILINE)
        self.assertGreaterEqual(len(commands), 2, said)
        for command in commands:
            result = run(*command.split(), "--snapshot", cluster, "-ojson")
            self.assertEqual(result.returncode, 0, (command, result.stdout, said))
            named = command.partition("--only ")[2].split(",") if "--only" in command else None
            moved = [f"test/{step['name']}" for step in json.loads(result.stdout)["steps"]]
            self.assertTrue(moved and (named is None or sorted(moved) == sorted(named)), (command, moved))
        # One that nobody makes again is ended by a command that says so.
        items[4]["metadata"]["ownerReferences"] = []
        cluster = self.write("cluster.json", listing(*items))
        said = run("explain", "test/asked", "--snapshot", cluster).stdout
        self.assertIn("--end --force'", said)
        self.try_printed(said, cluster)

    def test_what_the_page_prints_works(self):
        """docs/explain.md, whose outputs are compared elsewhere, prints commands, too."""
        page = (ROOT / "docs" / "explain.md").read_text()
        self.assertGreater(self.try_printed(page, ROOT / "examples" / "why" / "cluster.yaml"), 0)

    def try_printed(self, said, cluster):
        """Each command of plan that is printed reaches its goal, by the pods that it names; how many."""
        commands = re.findall(r"^'gpuledger (plan .*?)'", said, re.MULTILINE)
        for command in commands:
            result = run(*command.split(), "--snapshot", cluster, "-ojson")
            self.assertEqual(result.returncode, 0, (SEED, command, result.stdout, result.stderr, said))
            steps = json.loads(result.stdout)["steps"]
            moved = sorted(f"{step['namespace']}/{step['name']}" for step in steps)
            if "--only" in command:
                named = sorted(re.search(r"--only (\S+)", command)[1].split(","))
                self.assertEqual(moved, named, (SEED, command, said))
                self.assertEqual({step["ends"] for step in steps}, {"--end" in command}, (command, said))
        return len(commands)

    def test_every_command_that_explain_prints_works(self):
        """On random clusters, whose pods belong to controllers of all kinds or to none, and whose budgets,
        priorities and annotations may keep them where they are."""
        chance, printed, words = random.Random(SEED), 0, set()
        for number in range(CLUSTERS):
            name = sorted(DIALECTS)[number % len(DIALECTS)]
            items, _ = self.fill(chance, DIALECTS[name])
            for pod in [each for each in items if each["kind"] == "Pod"]:
                kind = chance.choice((None, None, "ReplicaSet", "ReplicaSet", "ReplicaSet", "DaemonSet"))
                if kind:
                    own(pod, f"owner-{pod['metadata']['name']}", kind=kind)
                if chance.random() < 0.15:
                    pod["metadata"].setdefault("annotations", {}).update([chance.choice(list(OPT_OUTS.items()))])
                if chance.random() < 0.3:
                    pod["metadata"].setdefault("labels", {})["app"] = chance.choice("ab")
                if chance.random() < 0.2:
                    pod["spec"]["priority"] = chance.choice((-5, 5))
            items += [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                       "metadata": {"name": app, "namespace": "test", "uid": app},
                       "spec": {"selector": {"matchLabels": {"app": app}}},
                       "status": {"disruptionsAllowed": chance.choice((0, 1))}} for app in "ab"]
            for i in range(3):
                items.append(make_pod(f"asked-{i}", DIALECTS[name].ask(chance)))
            cluster = self.write("cluster.json", listing(*items))
            for i in range(3):
                said = run("explain", f"test/asked-{i}", "--snapshot", cluster).stdout
                printed += self.try_printed(said, cluster)
                words |= set(re.findall(r"--end --force'|--end'|--only \S+'", said))
        self.assertGreater(printed, 0)
        self.assertTrue({"--end --force'", "--end'"} & words, (SEED, words))

    def test_only_some_pods(self):
        one = self.of([*self.CLUSTER, wants(16)], "test/asked")
        self.assertEqual([step["name"] for step in one["steps"]], ["a"])
        self.assertEqual(self.of([*self.CLUSTER, wants(16)], "test/asked", "--only", "test/a"), one)
        other = self.of([*self.CLUSTER, wants(16)], "test/asked", "--only", "test/b")
        self.assertEqual([step["name"] for step in other["steps"]], ["b"])

    # Nobody of n1 has room elsewhere.
    FULL = [gpus("n1", 1, 16), gpus("n2", 1, 16), held("a", 8, "n1", 0), held("b", 4, "n1", 0), held("c", 15, "n2", 0)]
    END = ("test/asked", "--end", "--only")

    def test_some_pods_end(self):
        for wanted, names, ended in ((12, "test/a", ["a"]), (12, "test/b,test/a", ["a"]), (8, "test/a,test/b", ["b"]),
                                     (16, "test/a,test/b", ["a", "b"]), (16, "test/a,test/b,test/c", ["c"])):
            items = [*self.FULL, wants(wanted)]
            self.of(items, "test/asked", code=3)
            plan = self.of(items, *self.END, names)
            self.assertEqual(sorted(step["name"] for step in plan["steps"]), ended, (wanted, names))
            self.assertTrue(plan["fewest"])
            for step in plan["steps"]:
                self.assertEqual((step["ends"], step["to"], step["takes"], step["waitsFor"]), (True, None, None, "its end"))
        said = run("plan", *self.END, "test/a", "--snapshot", self.write("cluster.json", listing(*self.FULL, wants(12))))
        self.assertIn("1 pod ends; nobody says where a successor then goes\n", said.stdout)
        self.assertRegex(said.stdout, r"test/a +n1 +card 0 \(8GiB\) +nobody says where +its end")
        self.of([*self.FULL, wants(16)], *self.END, "test/a", code=3)
        self.of([*self.FULL, wants(16)], *self.END, "test/a,test/b", "--max-moves", "1", code=3)
        self.of([*self.FULL, wants(16)], *self.END, "test/a,test/b", "--max-per-namespace", "1", code=3)
        moved = self.of([*self.CLUSTER, wants(16)], "test/asked", "--only", "test/a")
        self.assertEqual([step["ends"] for step in moved["steps"]], [False])

    def test_who_does_not_end(self):
        def stays(why, change, *words):
            items = copy.deepcopy([*self.FULL, wants(12)])
            change(items[2])
            result = run("plan", *self.END, "test/a", *words, "--snapshot", self.write("cluster.json", listing(*items)))
            self.assertEqual(result.returncode, 3 if why else 0, (why, result.stdout, result.stderr))
            self.assertIn(why, result.stdout)
            self.assertNotIn("test/c", result.stdout)

        def ownerless(pod):
            pod["metadata"]["ownerReferences"] = []

        stays("--force ends it", ownerless)
        stays("", ownerless, "--force")
        stays("DaemonSet would make it again", lambda pod: own(pod, "set", "DaemonSet"))
        for key, value in OPT_OUTS.items():
            stays(key, lambda pod, key=key, value=value: pod["metadata"]["annotations"].update({key: value}))
        stays("more important", lambda pod: pod["spec"].update(priority=1))
        stays("", lambda pod: pod["spec"].update(priority=-1))

    def test_as_few_end_as_do(self):
        """By brute force: nodes of one card, and any pods that have a name in it."""
        chance = random.Random(SEED)
        reached = set()
        for _ in range(max(CLUSTERS // 4, 5)):
            rooms, sizes = {name: 16 for name in ("n1", "n2")}, {}
            for number in range(chance.randint(3, 7)):
                node, size = chance.choice(sorted(rooms)), chance.randint(1, 6)
                if rooms[node] >= size:
                    rooms[node] -= size
                    sizes[f"p{number}"] = (node, size)
            named = chance.sample(sorted(sizes), chance.randint(1, len(sizes)))
            wanted = chance.randint(8, 16)
            least = min((n for n in range(len(named) + 1) for some in itertools.combinations(named, n)
                         if any(room + sum(sizes[name][1] for name in some if sizes[name][0] == node) >= wanted
                                for node, room in rooms.items())), default=None)
            items = [*(gpus(name, 1, 16) for name in rooms), wants(wanted),
                     *(held(name, size, node, 0) for name, (node, size) in sizes.items())]
            plan = self.of(items, *self.END, ",".join(f"test/{name}" for name in named), code=3 if least is None else 0)
            reached.add(least)
            self.assertEqual(len(plan["steps"]), least or 0, (SEED, sizes, named, wanted))
            self.assertTrue({step["name"] for step in plan["steps"]} <= set(named))
        self.assertGreater(len(reached), 1, SEED)

    def test_what_explain_ends(self):
        cluster = self.write("cluster.json", listing(*self.FULL, wants(16)))
        said = run("explain", "test/asked", "--snapshot", cluster).stdout
        [command] = re.findall(r"^'gpuledger (plan .*? --end)' shows how those of [0-9]+ end", said, re.MULTILINE)
        plan = self.plan(cluster, *command.split()[1:])
        ends = re.search(r" end (test/.*); it would go", said)[1].split(", ")
        self.assertEqual(sorted(f"test/{step['name']}" for step in plan["steps"]), sorted(ends))
        self.assertNotIn("shows moves", said)

    def test_an_extender_is_asked_who_ends(self):
        cluster = self.write("cluster.json", listing(*self.FULL, wants(12)))
        with Server(snapshot=cluster) as server:
            for output in ("table", "json"):
                there = run("plan", *self.END, "test/a", "--server", server.operations, "-o", output)
                alone = run("plan", *self.END, "test/a", "--snapshot", cluster, "-o", output)
                self.assertEqual((there.returncode, there.stdout), (0, alone.stdout), there.stderr)
            for query in ("pod=test/asked&end=true", "empty=n1&only=test/a&end=true", "pod=test/asked&only=test/a&end=x"):
                self.assertEqual(server.get(f"/api/v1/plan?{query}")[0], 400, query)

    def test_a_name_of_nobody_is_an_error(self):
        """Beside a good one, too; asked of a saved cluster and of a running extender."""
        cluster = self.write("cluster.json", listing(*self.CLUSTER, wants(16)))
        with Server(snapshot=cluster) as server:
            for names, wrong in (("test/a,test/nobody", "test/nobody"), ("test/nobody,test/a", "test/nobody"),
                                 ("test/a,", ""), ("a", "a"), ("test/a,test/asked", "test/asked")):
                for where in (("--snapshot", cluster), ("--server", server.operations)):
                    result = run("plan", "test/asked", "--only", names, *where)
                    self.assertEqual((result.returncode, result.stdout), (1, ""), names)
                    self.assertIn(f"'{wrong}' is no NAMESPACE/NAME", result.stderr)

    # n9 has 2 units free, which hardly anybody wants; n10 has a pod of 2, and would be free without it.
    PIECES = [*(gpus(f"n{i}", 1, 8) for i in range(11)),
              *(held(f"half-{i}", 4, f"n{i // 2}", 0) for i in range(18)),
              held("six", 6, "n9", 0), held("two", 2, "n10", 0)]

    def test_fewer_pieces(self):
        cluster = self.write("cluster.json", listing(*self.PIECES))
        plan = self.plan(cluster, "--defragment", "0.2")
        self.assertEqual((self.moves(plan), plan["fewest"]), ([("two", "n10", "n9")], True))
        pieces = plan["fragmentedGpuThousandths"]
        with Server(snapshot=cluster) as server:
            measured = re.search(r"^gpuledger_fragmented_gpus (.*)$", server.get("/metrics")[1], re.M)
            self.assertEqual(pieces["now"], round(float(measured[1]) * 1000))
            asked = run("plan", "--defragment", "0.2", "--server", server.operations, "-ojson")
            self.assertEqual(json.loads(asked.stdout), plan)
        self.assertEqual(pieces["most"], pieces["now"] - 200)
        self.assertLessEqual(pieces["then"], pieces["most"])
        told = run("plan", "--defragment", "0.2", "--snapshot", cluster).stdout
        self.assertIn("at most 0.0", told)
        self.assertIn("In pieces that the expected pods cannot use: 0.2", told)
        # The same measure once they have moved.
        moved = [*self.PIECES[:-1], held("two", 2, "n9", 0)]
        after = self.of(moved, "--defragment", "100", code=3)
        self.assertEqual(after["fragmentedGpuThousandths"]["now"],
                         pieces["then"])
        self.assertIn("only 0.00 GPU are free", after["why"])

    def test_fewer_pieces_of_many_nodes(self):
        """Of more than can be tried in every order: one after the other they are found all the same."""
        full, pairs = 230, 20
        items = [*(gpus(f"n{i:03}", 1, 8) for i in range(full + 2 * pairs)),
                 *(held(f"half-{i}", 4, f"n{i // 2:03}", 0) for i in range(2 * full))]
        for i in range(pairs):
            items += [held(f"six-{i}", 6, f"n{full + i:03}", 0), held(f"two-{i}", 2, f"n{full + pairs + i:03}", 0)]
        cluster = self.write("cluster.json", listing(*items))
        plan = self.plan(cluster, "--defragment", "0.6")
        self.assertEqual(self.moves(plan), [(f"two-{i}", f"n{full + pairs + i:03}", f"n{full + i:03}") for i in range(3)])
        self.assertEqual((plan["fewest"], plan["nodesLookedAt"], plan["nodes"]), (False, 256, full + 2 * pairs))
        said = run("plan", "--defragment", "0.6", "--snapshot", cluster).stdout
        self.assertIn("3 moves (fewer may do)\nLooked at the pods of 256 nodes of 270, those with the most in pieces; they "
                      "may go to any.\n", said)

    def waits(self, units, name, minute):
        pod = wants(units, name)
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:{minute:02}:00Z"
        return pod

    def test_those_who_wait(self):
        items = [*self.CLUSTER, self.waits(10, "small", 1), self.waits(17, "huge", 2), self.waits(16, "large", 3)]
        cluster = self.write("cluster.json", listing(*items))
        plan = self.plan(cluster, "--waiting", "5m")
        self.assertEqual((self.moves(plan), plan["goal"].split(" (")[0]), ([("a", "n1", "n2")], "room for test/large"))
        with Server(snapshot=cluster) as server:
            asked = run("plan", "--waiting", "5m", "--server", server.operations, "-ojson")
            self.assertEqual(json.loads(asked.stdout), plan)
        young = self.waits(16, "young", 0)
        young["metadata"]["creationTimestamp"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        none = self.of([*self.CLUSTER, young], "--waiting", "5m")
        self.assertEqual((none["steps"], none["goal"]), ([], "room for those who wait"))
        self.assertEqual(self.moves(self.of([*self.CLUSTER, young], "--waiting", "0s")), [("a", "n1", "n2")])
        lost = self.of([*self.CLUSTER, self.waits(17, "huge", 2)], "--waiting", "0s", code=3)
        self.assertIn("1 wait, and no moves help", lost["why"])

    def fewest(self, cards, pods, sizes, left, packed=False):
        """Of any order of moves on plain numbers, until all fit at once; None: more than that, or none.
        `packed`: each goes to the fullest card of its node."""
        def free(card):
            return 16 - sum(amount for amount, at, _ in pods.values() if at == card)

        def fit(wanted, rooms):
            return not wanted or any(fit(wanted[1:], {**rooms, card: room - wanted[0]})
                                     for card, room in rooms.items() if room >= wanted[0])
        if fit(sizes, {card: free(card) for card in cards}):
            return 0
        found = [1 + more for name, (amount, at, moved) in pods.items() if left and not moved for card in cards
                 if free(card) >= amount and (packed or card != at) and
                 (not packed or card == min((free(other), other) for other in cards if other[0] == card[0]
                                            and free(other) >= amount)[1])
                 and (more := self.fewest(cards, {**pods, name: (amount, card, True)}, sizes, left - 1,
                                             packed)) is not None]
        return min(found, default=None)

    def draw(self, chance):
        cards, pods = [(name, card) for name in ("n1", "n2") for card in (0, 1)], {}
        for number in range(6):
            at, amount = chance.choice(cards), chance.randint(3, 9)
            if sum(each for each, where, _ in pods.values() if where == at) + amount <= 16:
                pods[f"p{number}"] = (amount, at, False)
        return cards, pods

    def drawn(self, pods):
        return [gpus("n1", 2, 16), gpus("n2", 2, 16),
                *(held(name, amount, *at) for name, (amount, at, _) in pods.items())]

    def test_a_group_as_a_whole(self):
        """With as few moves as brute force finds; carried out, filter has places for all of them, and not before."""
        chance = random.Random(SEED)
        helped = 0
        for _ in range(CLUSTERS):
            cards, pods = self.draw(chance)
            number, size = chance.randint(2, 3), chance.randint(6, 14)
            need = self.fewest(cards, pods, [size] * number, 2, packed=True)
            items = [*self.drawn(pods), pod_group("train", number), *members("train", number, size)]
            cluster = self.write("cluster.json", listing(*items))
            plan = self.plan(cluster, "--group", "test/train", "--gangs", "--max-moves", "2", code=0 if need is not None else 3)
            self.assertEqual(len(plan["steps"]), need or 0, f"seed {SEED}: {pods} {number} x {size}")
            if not need:
                continue
            helped += 1
            self.assertEqual([each["name"] for each in plan["pods"]], [f"train-{i}" for i in range(number)])
            with Server("--gangs", snapshot=cluster) as server:
                asked = run("plan", "--group", "test/train", "--max-moves", "2", "--server", server.operations, "-ojson")
                self.assertEqual(json.loads(asked.stdout), plan)
                first = next(each for each in items if each["metadata"]["name"] == "train-0")
                self.assertIsNone(admit(server, first, ["n1", "n2"]), f"seed {SEED}: not before")
            moved = {**pods, **{step["name"]: (pods[step["name"]][0], (step["to"], int(re.match(r"card (\d)", step["takes"])[1])), True)
                                for step in plan["steps"]}}
            after = self.of([*self.drawn(moved), *items[len(pods) + 2:]], "--group", "test/train", "--gangs")
            self.assertEqual((after["steps"], len(after["pods"])), ([], number), f"seed {SEED}")
        self.assertTrue(helped or CLUSTERS < 20)

    def test_groups_for_which_there_is_no_plan(self):
        few = [*self.CLUSTER, pod_group("train", 3), *members("train", 2, 1)]
        plan = self.of(few, "--group", "test/train", "--gangs", code=3)
        self.assertIn("it needs 3 pods: 0 have a node or a place, and 2 wait", plan["why"])
        cluster = self.write("cluster.json", listing(*few))
        for words, said in ((("test/train",), "without --gangs"), (("test/nobody", "--gangs"), "there is no group")):
            result = run("plan", "--group", *words, "--snapshot", cluster)
            self.assertEqual(result.returncode, 1)
            self.assertIn(said, result.stderr)

    def test_the_first_whom_moves_help(self):
        """Of those who wait: as brute force finds it, with as few moves."""
        chance = random.Random(SEED)
        helped = 0
        for _ in range(CLUSTERS):
            cards, pods = self.draw(chance)
            sizes = [chance.randint(8, 17) for _ in range(3)]
            needs = [self.fewest(cards, pods, [size], 2) for size in sizes]
            items = [*self.drawn(pods),
                     *(self.waits(size, f"w{number}", number) for number, size in enumerate(sizes))]
            result = run("plan", "--waiting", "0s", "--max-moves", "2", "--snapshot",
                         self.write("cluster.json", listing(*items)), "-ojson")
            self.assertIn(result.returncode, (0, 3), result.stderr)
            plan = json.loads(result.stdout)
            first = next((number for number, need in enumerate(needs) if need), None)
            said = (plan["goal"].split(" (")[0], len(plan["steps"]))
            wanted = ("room for those who wait", 0) if first is None else (f"room for test/w{first}", needs[first])
            self.assertEqual(said, wanted, f"seed {SEED}: {pods} {sizes} {needs}")
            helped += first is not None
        self.assertTrue(helped or CLUSTERS < 20)

    def test_too_few_pods_were_seen(self):
        result = run("plan", "--defragment", "1", "--snapshot", self.write("cluster.json", listing(*self.CLUSTER)))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("too few pods were seen", result.stderr)

    def test_errors(self):
        cluster = self.write("cluster.json", listing(*self.CLUSTER))
        for arguments, code, said in (
                ((), 2, "what is the goal?"), (("a",), 2, "NAMESPACE/NAME"),
                (("test/a", "-n", "b"), 2, "option '--namespace': 'test/a' names another namespace than 'b'"),
                (("-n", "b", "--empty", "n1"), 2, "option '--namespace': which pod of it?"),
                (("nope", "-n", "b"), 1, "b/nope"),
                (("test/a", "--empty", "n1"), 2, "what is the goal?"),
                (("--defragment", "1", "--empty", "n1"), 2, "what is the goal?"),
                (("--defragment", "0"), 2, "option '--defragment': '0': expected a number"),
                (("--defragment", "-1"), 2, "option '--defragment'"),
                (("--empty", "n1/x"), 2, "option '--empty'"), (("--empty", "n9"), 1, "'n9' is not known"),
                (("--empty", "n1/2"), 1, "only 0 to 1"), (("test/none",), 1, "there is no pod"),
                (("-f", "/none"), 2, "option '--filename'"),
                (("test/a", "--end"), 2, "option '--end'"),
                (("--empty", "n1", "--only", "test/a", "--end"), 2, "option '--end'"),
                (("-f", "/none", "--only", "test/a", "--end"), 2, "option '--end'"),
                (("test/a", "--apply"), 2, "no pods to evict"),
                (("test/a", "--window", "at night"), 2, "option '--window': 'at night'"),
                (("test/a", "--max-moves", "0"), 2, "max-moves")):
            result = run("plan", *arguments, "--snapshot", cluster)
            self.assertEqual(result.returncode, code, arguments)
            self.assertIn(said, result.stderr)


if __name__ == "__main__":
    unittest.main()
