#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What "migrate" finds of other schedulers, what it says is in the way, and what it has people do."""

import json
import pathlib
import shlex
import sys
import tempfile
import unittest

from program import ROOT, listing, run

sys.path.append(str(ROOT / "tests" / "migrate"))
from left import ALL, GIB, SIZE # noqa: E402


class Migrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "cluster.json"

    def ask(self, name, objects, *more):
        self.file.write_text(listing(*objects), encoding="utf-8")
        return run("migrate", "--from", name, "--snapshot", self.file, *more)

    def document(self, name, objects, code=0, *more):
        answer = self.ask(name, objects, "-o", "json", *more)
        self.assertEqual((answer.returncode, answer.stderr), (code, ""))
        return json.loads(answer.stdout)

    def test_what_is_found_of_each(self):
        for name, left in ALL.items():
            with self.subTest(name):
                found = self.document(name, left.objects())
                self.assertEqual(found["obstacles"], [])
                self.assertEqual((found["nodes"], found["cards"], found["pods"], found["waiting"], found["underWay"]),
                                 (2, 4, 4, 2, 0))
                [scheduler] = found["schedulers"]
                namespace, owner, _ = left.scheduler
                self.assertEqual(scheduler["owner"], f"Deployment {namespace}/{owner}" if owner else "static pod on cp-0")
                self.assertEqual(len(found["nodeSides"]), 2)
                self.assertEqual([each["pod"] for each in found["kubeSchedulers"]], [f"{namespace}/kube-scheduler-cp-0"])
                named = (4, 2) if left.scheduler_name else (0, 0)
                self.assertEqual((found["namedPlaced"], found["namedWaiting"]), named)

    def test_the_ledger_is_what_they_count(self):
        """The cards of old pods, as gpuledger reads them and as their scheduler does."""
        for name, left in ALL.items():
            with self.subTest(name):
                pods = left.pods()
                self.file.write_text(listing(*left.objects()), encoding="utf-8")
                nodes = json.loads(run("nodes", "--snapshot", self.file, "-o", "json",
                                       "--gpushare-memory-unit=GiB").stdout)["nodes"]
                held = {(node["name"], left.key(node["name"], card["index"])): card["memoryUsedBytes"] / GIB
                        for node in nodes for card in node["cards"] if card["memoryUsedBytes"]}
                self.assertEqual(held, dict(left.held(pods)))

    def test_all_find_only_their_own(self):
        objects = ALL["hami"].objects()
        found = self.document("gpushare", objects)
        self.assertEqual((found["nodes"], found["pods"], found["schedulers"], found["nodeSides"]), (0, 0, [], []))
        self.assertIn("no pod, container or image", self.ask("gpushare", objects).stdout)

    def test_the_scheduler_is_ended_and_started_as_it_was_made(self):
        for name, left in ALL.items():
            with self.subTest(name):
                found = self.document(name, left.objects())
                forth = "\n".join(step["command"] or "" for step in found["steps"])
                back = "\n".join(step["command"] or "" for step in found["back"])
                namespace, owner, _ = left.scheduler
                if name == "volcano":
                    self.assertNotIn("--replicas=0", forth) # it goes on with other pods
                elif owner:
                    self.assertIn(f"kubectl -n {namespace} scale deployment/{owner} --replicas=0", forth)
                    self.assertIn(f"kubectl -n {namespace} scale deployment/{owner} --replicas=1", back)
                else:
                    self.assertIn("on cp-0: mv its manifest out of /etc/kubernetes/manifests", forth)
                self.assertIn(f"name: {left.resource},", forth)
                self.assertIn("scale deployment/gpuledger --replicas=0", back)

    def test_who_makes_the_pods_that_name_it(self):
        steps = "\n".join(step["command"] or "" for step in self.document("hami", ALL["hami"].objects())["steps"])
        self.assertIn("# Deployment default/web: 5 pods", steps)
        self.assertIn("# Pod default/new-1: 1 pods", steps)

    def test_pods_that_would_be_refused(self):
        """gpushare's extender places a pod with two GPU containers, which its plugin fails."""
        left = ALL["gpushare"]
        objects = [*left.objects(), left.pod("twice", 1, containers=2), left.pod("two", 1, ("n1", 1), 9, containers=2)]
        found = self.document("gpushare", objects, code=3)
        rows = {row["name"]: row for row in found["obstacles"] if row["cause"] == "refused"}
        self.assertEqual(set(rows), {"twice", "two"})
        self.assertIn("several GPU containers", rows["twice"]["why"])
        self.assertIn("keeps what it has", rows["two"]["advice"])
        self.assertIn("IN THE WAY", self.ask("gpushare", objects).stdout)

    def test_a_pod_that_some_node_serves_is_not_refused(self):
        left = ALL["gpushare"]
        for name in (None, "a", "z"):  # the first or the last that is asked
            nodes = [left.node(name)] if name else []
            for key in ("capacity", "allocatable") if name else ():
                nodes[0]["status"][key].update({"aliyun.com/gpu-mem": "16", "aliyun.com/gpu-count": "1"})
            for objects in ([*left.objects(), *nodes], [*nodes, *left.objects()]):
                found = self.document("gpushare", [*objects, left.pod("twice", 1, containers=2)], 0 if name else 3,
                                      "--gpushare-any-on-single-card=true")
                self.assertEqual([row["name"] for row in found["obstacles"]], [] if name else ["twice"])

    def test_a_node_that_cannot_be_read(self):
        left = ALL["hami"]
        objects = left.objects()
        [node] = [each for each in objects if each["kind"] == "Node" and each["metadata"]["name"] == "n1"]
        node["metadata"]["annotations"]["hami.io/node-nvidia-register"] = "GPU-n1-0,nonsense:"
        found = self.document("hami", objects, code=3)
        self.assertIn(("node_unread", "n1"), [(row["cause"], row["node"]) for row in found["obstacles"]])

    def test_pods_without_a_card_and_cards_beyond_their_size(self):
        left = ALL["gpushare"]
        lost = left.pod("lost", 2, ("n1", 0), 8)
        for key in list(lost["metadata"]["annotations"]):
            del lost["metadata"]["annotations"][key]
        found = self.document("gpushare", [*left.objects(), lost, left.pod("much", SIZE, ("n1", 1), 7),
                                           left.pod("more", 1, ("n1", 1), 6)], code=3)
        causes = {row["name"]: row["cause"] for row in found["obstacles"]}
        self.assertIn("lost", causes)
        self.assertTrue({"much", "more"} & {name for name, cause in causes.items() if cause == "card_overbooked"}, causes)

    def test_pods_that_come_together(self):
        left = ALL["volcano"]
        member = left.pod("member", 1, ("n1", 1), 9)
        member["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = "train"
        found = self.document("volcano", [*left.objects(), member], code=3)
        self.assertEqual([(row["cause"], row["name"]) for row in found["obstacles"]], [("group", "member")])

    def test_who_is_under_way(self):
        left = ALL["hami"]
        fresh = left.pod("fresh", 1, ("n1", 1), 9)
        fresh["metadata"]["annotations"].update({"hami.io/bind-phase": "allocating",
                                                 "hami.io/vgpu-devices-to-allocate": "GPU-n1-1,NVIDIA,1024,0:;"})
        fresh["status"] = {"phase": "Pending"}
        self.assertEqual(self.document("hami", [*left.objects(), fresh], code=3)["underWay"], 1)
        self.assertEqual(self.document("gpushare", [*left.objects(), fresh], code=3)["underWay"], 0)

    def test_names_cannot_become_commands(self):
        """An owner may be called anything, and a pod's author says which it is."""
        left = ALL["gpushare"]
        evil = left.pod("gpushare-schd-extender-x", 0)
        evil["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "x; rm -rf /", "controller": True},
                                               {"kind": "Deployment\nreboot", "name": "y", "controller": True}]
        answer = self.ask("gpushare", [*left.objects(), evil])
        self.assertNotIn("rm -rf", answer.stdout)
        self.assertNotIn("reboot", answer.stdout)

    def test_a_pod_cannot_be_called_a_command(self):
        """In a saved cluster that somebody has edited."""
        left = ALL["gpushare"]
        evil = left.pod("gpushare-schd-extender-x\nreboot", 0)
        answer = self.ask("gpushare", [*left.objects(), evil])
        self.assertEqual((answer.returncode, answer.stdout), (1, ""))
        self.assertIn("called 'gpushare-schd-extender-x\\nreboot'", answer.stderr)

    def test_commands_are_commands(self):
        for name, left in ALL.items():
            found = self.document(name, left.objects())
            for step in found["steps"] + found["back"]:
                for line in (step["command"] or "").replace("\\\n", "").split("\n"):
                    if line.startswith("kubectl") and "|" not in line:
                        self.assertGreater(len(shlex.split(line)), 2, line)

    def test_the_scheduler_must_be_named(self):
        self.file.write_text(listing(), encoding="utf-8")
        answer = run("migrate", "--snapshot", self.file)
        self.assertEqual((answer.returncode, answer.stdout), (2, ""))
        self.assertIn("--from", answer.stderr)
        answer = run("migrate", "--from", "hamii", "--snapshot", self.file)
        self.assertEqual(answer.returncode, 2)
        self.assertIn("hami", answer.stderr)

    def test_nothing_is_changed(self):
        left = ALL["hami"]
        self.ask("hami", left.objects())
        self.assertEqual(self.file.read_text(encoding="utf-8"), listing(*left.objects()))


if __name__ == "__main__":
    unittest.main()
