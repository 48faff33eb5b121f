#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`serve --record` and the command "replay": what was decided is decided again, byte for byte."""

import json
import os
import pathlib
import random
import re
import signal
import tempfile
import threading
import unittest

from program import Server, call, listing, node, pod, run

NODES = [f"n{i}" for i in range(6)]
SECRET = "hunter2"


def pending(i):
    made = pod(f"p{i}", i % 5 + 1, metadata={
        "creationTimestamp": f"2026-01-01T00:00:{i % 60:02}Z",
        "labels": {"app": "web" if i % 2 else "batch"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET}})
    made["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
    return made


PODS = [pending(i) for i in range(72)]
BUDGET = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
          "metadata": {"name": "web", "namespace": "test"},
          "spec": {"selector": {"matchLabels": {"app": "web"}}},
          "status": {"disruptionsAllowed": 2}}
CLUSTER = listing(*(node(name, 2, 10) for name in NODES), *PODS, BUDGET)
# One pod on each card, and three that came before all others and find no card free.
OLD = [pod(f"old-{name}-{card}", 6, spec={"nodeName": name}, status={"phase": "Running"},
           metadata={"creationTimestamp": "2025-12-31T00:00:00Z", "annotations": {
               "ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}})
       for name in NODES for card in range(2)]
LARGE = [pod(f"large-{i}", 10, metadata={"creationTimestamp": "2025-12-31T00:00:00Z"})
         for i in range(3)]
CROWDED = listing(*(node(name, 2, 10) for name in NODES), *OLD, *LARGE, *PODS, BUDGET)


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.cluster = self.directory / "cluster.json"
        self.cluster.write_text(CLUSTER)
        self.record = self.directory / "record"

    def schedule(self, server, pods, seed):
        """What kube-scheduler does with each, the node aside, which is any that passes."""
        chance = random.Random(seed)
        for one in pods:
            names = chance.sample(NODES, len(NODES))
            passed = server.filter(one, names)
            if not passed["NodeNames"]:
                continue
            call("POST", f"{server.scheduler}/scheduler/prioritize",
                 {"Pod": one, "NodeNames": passed["NodeNames"]})
            self.preempt(server, one, names, chance)
            chosen = chance.choice(passed["NodeNames"])
            server.bind(one, chosen)
            if chance.random() < 0.3:
                server.bind(one, chance.choice(NODES))  # again, or elsewhere
            if chance.random() < 0.3:
                meta = one["metadata"]
                call("DELETE", f"{server.operations}/api/v1/snapshot/pods/"
                               f"{meta['namespace']}/{meta['name']}")

    def preempt(self, server, one, names, chance):
        """A more important pod like it looks for nodes where somebody has to go."""
        uid = one["metadata"]["uid"]
        victims = {name: {"Pods": [{"UID": chance.choice(PODS)["metadata"]["uid"]}],
                          "NumPDBViolations": 0} for name in names}
        other = {**one, "metadata": {**one["metadata"], "uid": uid + "-more", "name": "more"},
                 "spec": {**one["spec"], "priority": 100}}
        status, answer = call("POST", f"{server.scheduler}/scheduler/preempt",
                              {"Pod": other, "NodeNameToMetaVictims": victims})
        self.assertEqual(status, 200, answer)

    def run_and_record(self, *arguments, end=signal.SIGTERM):
        with Server(f"--record={self.record}", *arguments, snapshot=self.cluster) as server:
            threads = [threading.Thread(target=self.schedule, args=(server, PODS[i::4], i))
                       for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            status, metrics = call("GET", server.operations + "/metrics")
            self.assertEqual(status, 200)
            self.assertIn('gpuledger_records_total{result="lost"} 0', metrics)
            server.signal(end)
            server.exit_code()

    def replay(self, *arguments, file=None):
        return run("replay", *arguments, file or self.record)

    def summary(self, *arguments, file=None, code=0):
        result = self.replay("-o", "json", *arguments, file=file)
        self.assertEqual((result.returncode, result.stderr), (code, ""), result.stdout)
        return json.loads(result.stdout)

    def lines(self):
        return [json.loads(line) for line in self.record.read_text().splitlines()]

    def change(self, change):
        """Rewrites the first line that `change` says it has changed, and returns it as it is then."""
        lines = self.lines()
        changed = next(line for line in lines if change(line))
        self.record.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n"
                                       for line in lines))
        return changed


class Replay(Case):
    def test_what_many_threads_did_is_decided_again(self):
        self.run_and_record()
        said = self.summary()
        kinds = [line["kind"] for line in self.lines()]
        self.assertEqual(said["different"], 0)
        self.assertEqual(said["unchecked"], 0)
        self.assertEqual(said["compared"], said["calls"] + said["bindLooks"])
        self.assertEqual(said["calls"], kinds.count("call"))
        self.assertEqual(said["bindLooks"], kinds.count("look"))
        self.assertGreater(said["bindLooks"], 50)
        self.assertTrue(said["ended"])
        verbs = {line["verb"] for line in self.lines() if line["kind"] == "call"}
        self.assertEqual(verbs, {"filter", "prioritize", "preempt"})
        budgets = [line for line in self.lines() if line["kind"] == "budget"]
        self.assertEqual([line["object"]["metadata"]["name"] for line in budgets], ["web"])
        self.assertEqual(budgets[0]["object"]["spec"]["selector"]["matchLabels"], {"app": "web"})
        text = self.replay()
        self.assertEqual(text.returncode, 0)
        self.assertIn(f"{said['compared']} decisions compared: {said['compared']} equal, "
                      "0 different\n", text.stdout)

    def test_nothing_secret_is_kept(self):
        self.run_and_record()
        text = self.record.read_text()
        self.assertNotIn(SECRET, text)
        self.assertNotIn("PASSWORD", text)
        self.assertEqual(self.record.stat().st_mode & 0o777, 0o600)

    def test_what_is_no_file_is_left_alone(self):
        """Begun anew, a record moves what is there out of its way: a device, say."""
        old = self.directory / "record.1"
        for path in (self.record, old):
            os.mkfifo(path)
            inode = path.stat().st_ino
            done = run("serve", f"--snapshot={self.cluster}", "--listen=127.0.0.1:0",
                       "--ops-listen=127.0.0.1:0", f"--record={self.record}")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("--record", done.stderr.splitlines()[-1])
            self.assertEqual((path.is_fifo(), path.stat().st_ino), (True, inode))
            path.unlink()
        # A link is ours to move; what it leads to is not.
        target = self.directory / "target"
        target.write_text("theirs")
        self.record.symlink_to(target)
        self.run_and_record()
        self.assertTrue(old.is_symlink())
        self.assertEqual(target.read_text(), "theirs")
        self.assertFalse(self.record.is_symlink())

    def test_whole_nodes_are_kept_as_far_as_they_are_read(self):
        items = [node(name, 2, 10) for name in NODES]
        for item in items:
            item["spec"] = {"providerID": SECRET}
            item["status"]["images"] = [{"names": [SECRET]}]
        with Server(f"--record={self.record}", snapshot=self.cluster) as server:
            body = {"Pod": PODS[0], "Nodes": {"metadata": {}, "items": items}}
            self.assertIn(SECRET, json.dumps(server._verb("filter", body)))
            server.signal(signal.SIGTERM)
            server.exit_code()
        self.assertNotIn(SECRET, self.record.read_text())
        said = self.summary()
        self.assertEqual((said["calls"], said["compared"], said["different"]), (1, 1, 0))

    def test_another_card_is_found_at_its_number(self):
        self.run_and_record()

        def elsewhere(line):
            if line["kind"] != "look" or line["answer"]["step"] != "send":
                return False
            line["answer"]["card"] = 1 - line["answer"]["card"]
            return True

        changed = self.change(elsewhere)
        said = self.summary(code=3)
        self.assertEqual(said["different"], 1)
        found = said["firstDifference"]
        self.assertEqual(found["number"], changed["n"])
        self.assertIn(changed["node"], found["what"])
        self.assertIn(changed["node"], found["ledger"])
        self.assertEqual(json.loads(found["recorded"]), changed["answer"])
        self.assertEqual(json.loads(found["replayed"])["card"], 1 - changed["answer"]["card"])
        self.assertIn(f"record {changed['n']} (line ", self.replay().stdout)

    def test_another_booking_is_found_at_its_number(self):
        """The answer stays: only what was booked for it is another."""
        self.run_and_record()
        whole = self.record.read_text()

        def look(line):
            return line["kind"] == "look" and "booking" in line

        def share(line):
            return line["booking"]["shares"][0]

        changes = {
            "card": lambda line: share(line).update(card=1 - share(line)["card"]),
            "memory": lambda line: share(line).update(memory=share(line)["memory"] + 1),
            "amount": lambda line: line["booking"].update(amount=line["booking"]["amount"] + 1),
            "node": lambda line: line["booking"].update(
                node=NODES[NODES.index(line["node"]) - 1]),
            "dialect": lambda line: line["booking"].update(dialect="hami"),
            "shares": lambda line: line["booking"]["shares"].append(share(line)),
        }
        for name, change in changes.items():
            with self.subTest(name):
                self.record.write_text(whole)
                changed = self.change(lambda line: look(line) and (change(line), True)[1])
                said = self.summary(code=3)
                found = said["firstDifference"]
                self.assertEqual(found["number"], changed["n"])
                self.assertIn("booking of ", found["what"])
                self.assertEqual(json.loads(found["recorded"]), changed["booking"])
                self.assertNotEqual(json.loads(found["replayed"]), changed["booking"])

    def test_another_ledger_in_the_end_is_found(self):
        self.run_and_record()
        whole = self.record.read_text()
        self.assertEqual(self.summary()["ledgers"], 1)
        self.assertIn("the ledger compared 1 times: 0 different\n", self.replay().stdout)

        def share(line):
            return line["object"]["pods"][3]["shares"][0]

        changes = {
            "card": lambda line: share(line).update(card=1 - share(line)["card"]),
            "memory": lambda line: share(line).update(memory=share(line)["memory"] + 1),
            "node": lambda line: line["object"]["pods"][3].update(node="elsewhere"),
            "dialect": lambda line: line["object"]["pods"][3].update(dialect="hami"),
            "more": lambda line: line["object"]["pods"].append({"uid": "nobody"}),
            "less": lambda line: line["object"]["pods"].pop(),
        }
        for name, change in changes.items():
            with self.subTest(name):
                self.record.write_text(whole)
                self.change(lambda line: line["kind"] == "end" and (change(line), True)[1])
                said = self.summary(code=3)
                self.assertEqual((said["different"], said["equal"]), (1, said["compared"]))
                self.assertIn("what the pod '", said["firstDifference"]["what"])

    def test_a_record_that_tells_neither_is_played(self):
        """As older programs have written them."""
        self.run_and_record()
        lines = [json.loads(line) for line in self.record.read_text().splitlines()]
        del lines[-1]["object"]
        for line in lines:
            for one in line.get("booking", {}).get("shares", []):
                del one["exclusive"]
        self.record.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n"
                                       for line in lines))
        said = self.summary()
        self.assertEqual((said["different"], said["unchecked"], said["ledgers"]), (0, 0, 0))

    def test_another_verdict_of_filter_is_found(self):
        self.run_and_record()

        def refuse(line):
            if line["kind"] != "call" or line["verb"] != "filter":
                return False
            name = line["reply"]["NodeNames"].pop()
            line["reply"]["FailedNodes"][name] = "no"
            line["named"] = name
            return True

        changed = self.change(refuse)
        found = self.summary(code=3)["firstDifference"]
        self.assertEqual((found["number"], found["what"]), (changed["n"], "filter"))
        self.assertIn(changed["named"], found["ledger"])

    def test_what_was_done_goes_on_after_a_difference(self):
        """The booking that was recorded is on another card than the one that is chosen again: what
        follows is compared with the former in the ledger."""
        self.run_and_record()

        def move(line):
            if line["kind"] != "look" or line["answer"]["step"] != "send":
                return False
            line["answer"]["annotations"] = {"what": "ever"}
            return True

        self.change(move)
        self.assertEqual(self.summary(code=3)["different"], 1)

    def test_another_policy(self):
        self.run_and_record()
        said = self.summary("--policy=spread", code=3)
        self.assertGreater(said["different"], 0)
        self.assertEqual(said["policy"], "spread")
        self.assertIn("would differ", self.replay("--policy=spread").stdout)
        self.assertEqual(self.summary("--policy=binpack")["different"], 0)

    def test_the_ledger_on_the_way(self):
        self.run_and_record()
        lines = self.lines()
        first = next(line for line in lines
                     if line["kind"] == "look" and line["answer"]["step"] == "send")
        before = self.replay("--until", first["n"] - 1)
        after = self.replay("--until", first["n"])
        self.assertEqual((before.returncode, after.returncode), (0, 0), before.stderr)
        self.assertRegex(before.stdout, r"\ANAME +CARDS \(USED/TOTAL\)")
        row = re.compile(rf"^{first['node']} .*$", re.MULTILINE)
        self.assertIn("0/10 0/10 GiB", row.search(before.stdout).group())
        self.assertNotIn("0/10 0/10 GiB", row.search(after.stdout).group())

    def test_what_was_learned_goes_on_in_the_next_file(self):
        for policy in ("oc", "fgd"):
            with self.subTest(policy):
                self.run_and_record("--record-max=64KiB", f"--policy={policy}")
                lines = self.lines()
                learned = next(line for line in lines if line["kind"] == "learned")
                self.assertNotIn("n", learned)
                self.assertGreater(learned["object"]["gpuPods"], 60)
                for file in (self.record, self.record.with_name("record.1")):
                    said = self.summary(file=file)
                    self.assertEqual((said["different"], said["unchecked"]), (0, 0))

    def test_a_policy_that_is_gone(self):
        """"auto" began as oc, and lines say what it went over to; --policy does not know it."""
        self.run_and_record("--policy=oc")
        header, *lines = self.record.read_text().splitlines(keepends=True)
        header = json.loads(header)
        self.assertEqual(header["options"]["policy"], "oc")
        header["options"]["policy"] = "auto"
        self.record.write_text("".join([json.dumps(header) + "\n", *lines]))
        said = self.summary()
        self.assertGreater(said["compared"], 0)
        self.assertEqual((said["different"], said["unchecked"]), (0, 0))
        self.assertRegex(self.replay("--policy=auto").stderr, "'auto' is not valid, expected binpack, ")

    def test_who_has_been_waited_for_goes_on_in_the_next_file(self):
        self.cluster.write_text(CROWDED)
        self.run_and_record("--record-max=64KiB", "--arrival-hold=1h", "--arrival-places=4")
        known = next(line for line in self.lines() if line["kind"] == "arrivals")
        self.assertNotIn("n", known)
        places = {one["uid"]: one.get("place", {}).get("ending") for one in known["object"]["pods"]}
        for large in LARGE:
            self.assertTrue(places[large["metadata"]["uid"]], known)
        for file in (self.record, self.record.with_name("record.1")):
            said = self.summary(file=file)
            self.assertEqual((said["different"], said["unchecked"]), (0, 0))

    def test_a_file_that_is_full_is_begun_anew(self):
        self.run_and_record("--record-max=64KiB")
        old = self.record.with_name("record.1")
        self.assertTrue(old.exists())
        for file in (self.record, old):
            said = self.summary(file=file)
            self.assertEqual((said["different"], said["unchecked"]), (0, 0))
        # The last file may hold no decision, or nothing, if it was begun at the end.
        self.assertGreater(self.summary(file=old)["compared"], 0)
        first = self.summary()["first"]  # 0: none
        self.assertIn(first, (0, self.summary(file=old)["last"] + 1))
        self.assertFalse(self.summary(file=old)["ended"])

    def test_a_file_that_is_there_is_kept(self):
        self.record.write_text("before\n")
        self.run_and_record()
        self.assertEqual(self.record.with_name("record.1").read_text(), "before\n")

    def test_a_process_that_was_killed(self):
        self.run_and_record(end=signal.SIGKILL)
        said = self.summary()
        self.assertEqual((said["different"], said["ended"]), (0, False))
        self.assertIn("has no last line", self.replay().stdout)


class Files(Case):
    """Files that are none, or not whole."""

    def setUp(self):
        super().setUp()
        with Server(f"--record={self.record}", snapshot=self.cluster) as server:
            server.filter(PODS[0], NODES)
            server.signal(signal.SIGTERM)
            server.exit_code()
        self.whole = self.record.read_text().splitlines(keepends=True)

    def fails(self, pattern, text):
        self.record.write_text(text)
        result = self.replay()
        status = 2 if pattern.startswith(("line 1:", "there is no header")) else 1
        self.assertEqual((result.returncode, result.stdout), (status, ""))
        self.assertRegex(result.stderr, r"\Agpuledger: '.*record': " + pattern)

    def test_what_is_written_makes_room(self):
        """More than is kept in memory at a time, one call after the other: nothing of it is lost."""
        names = [f"{'n' * 240}-{i}" for i in range(5000)]
        with Server(f"--record={self.record}", snapshot=self.cluster) as server:
            for i in range(60):
                server.filter(PODS[i], names)
            status, metrics = call("GET", server.operations + "/metrics")
            self.assertEqual(status, 200)
            self.assertIn('gpuledger_records_total{result="lost"} 0', metrics)
            server.signal(signal.SIGTERM)
            server.exit_code()

    def test_no_record(self):
        self.fails("there is no header", "")
        self.fails("line 1: ", "hello\n")
        self.fails("line 1: a record begins with a header", "".join(self.whole[1:]))
        self.fails("line 1: field 'kind': missing", "{}\n")
        self.assertRegex(run("replay", self.directory / "none").stderr, "none' cannot be opened")
        self.assertEqual(run("replay").returncode, 2)

    def test_two_records_in_one_file(self):
        self.fails(f"line {len(self.whole) + 1}: a second header: each file is played by itself",
                   "".join([*self.whole, *self.whole]))

    def test_a_line_that_is_missing(self):
        self.fails("line 4: number 4 where 3 was expected", "".join(self.whole[:3] + self.whole[4:]))

    def test_a_line_that_is_damaged(self):
        self.fails("line 3: ", "".join(self.whole[:2]) + self.whole[2][:20] + "\n")
        self.fails("line 2: field 'kind'", self.whole[0] + '{"n":1,"kind":"what"}\n')
        self.fails("line 2: field 'feed'", self.whole[0] + '{"n":1,"kind":"list-begin"}\n')

    def test_another_format(self):
        header = json.loads(self.whole[0])
        self.fails("line 1: format 6 is not understood", json.dumps({**header, "format": 6}) + "\n")
        header["options"]["colour"] = "red"
        self.fails("line 1: option '--colour'", json.dumps(header) + "\n")

    def test_an_older_format(self):
        """Without budgets: played if it begins at the beginning, else refused."""
        header = {**json.loads(self.whole[0]), "format": 1}
        lines = [line for line in self.whole[1:] if "budget" not in line]
        numbered = [{**json.loads(line), "n": n} for n, line in enumerate(lines[:-1], 1)]
        self.assertEqual(numbered[-1]["kind"], "call")
        text = "".join(json.dumps(line) + "\n" for line in (header, *numbered))
        self.record.write_text(text)
        said = self.summary()
        self.assertEqual((said["compared"], said["different"], said["unchecked"]), (1, 0, 0))
        header["before"] = 7
        self.fails("line 1: the file goes on from an older one, and in format 1 it says neither what "
                   "policies had learned by then nor which PodDisruptionBudgets there were",
                   json.dumps(header) + "\n")

    def test_a_format_without_who_has_been_waited_for(self):
        """Refused only where it matters: in the order of arrival, if it goes on from another."""
        header = {**json.loads(self.whole[0]), "format": 2}
        self.record.write_text("".join([json.dumps(header) + "\n", *self.whole[1:]]))
        self.assertEqual(self.summary()["compared"], 1)
        header["options"]["arrival-hold"] = "1m"
        self.record.write_text("".join([json.dumps(header) + "\n", *self.whole[1:]]))
        self.assertEqual(self.summary()["unchecked"], 0)
        header["before"] = 7
        self.fails(r"line 1: the file goes on from an older one, and in format 2 it does not say which "
                   r"places were kept by then \('--arrival-hold'\); use", json.dumps(header) + "\n")
        del header["options"]["arrival-hold"]
        self.record.write_text(json.dumps(header) + "\n")
        self.assertEqual(self.summary()["compared"], 0)

    def test_a_format_without_who_has_asked(self):
        header = {**json.loads(self.whole[0]), "format": 3, "before": 7}
        self.record.write_text(json.dumps(header) + "\n")
        self.assertEqual(self.summary()["compared"], 0)
        header["options"]["arrival-hold"] = "1m"
        self.fails(r"line 1: the file goes on from an older one, and in format 3 it does not say which "
                   r"pods had asked by then \('--arrival-hold'\); use", json.dumps(header) + "\n")

    def test_a_line_that_is_cut(self):
        text = "".join(self.whole)
        self.record.write_text(text[:-20])
        result = self.replay()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("ends in the middle of a line", result.stdout)

    def test_where_no_file_can_be(self):
        with Server(f"--record={self.directory}/none/record", wait=False) as server:
            self.assertEqual(server.exit_code(), 1)
            self.assertRegex("\n".join(server.log), "option '--record': '.*' cannot be begun: No such")


if __name__ == "__main__":
    unittest.main()
