#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command "explain", of a running extender and of a cluster alone."""

import json
import pathlib
import tempfile
import unittest

from program import SNAPSHOT, Server, call, listing, node, pod, run


def bound(name, amount, where, card, assigned="true", phase="Running"):
    return pod(name, amount, spec={"nodeName": where}, status={"phase": phase},
               metadata={"annotations": {
                   "ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_POD": str(amount),
                   "ALIYUN_COM_GPU_MEM_ASSIGNED": assigned,
                   "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767225600000000000"}})


def cordoned(name, cards, units):
    return {**node(name, cards, units), "spec": {"unschedulable": True}}


CLUSTER = listing(
    node("n1", 2, 10), node("n2", 1, 10), cordoned("n3", 1, 16), {**node("cpu", 1, 1), "status": {}},
    bound("a", 6, "n1", 0), bound("b", 4, "n1", 0), bound("c", 5, "n1", 1),
    bound("d", 3, "n2", 0, "false", "Pending"),
    pod("small", 5), pod("tight", 8), pod("large", 12), pod("odd", "1.5"),
    {"kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "unhealthy-gpu-n2"},
     "data": {"gpus": "0"}},
)

REMEDIES = """\

Preemption ends nobody: no pod where it may go has a lower priority than its own, 0.

ANY OF THESE WOULD ADMIT IT
    1  uncordon n3; it would go to n3
    2  ask for 5 aliyun.com/gpu-mem instead of 8 in container main; it would go to n1
    3  end test/c; it would go to n1

'gpuledger plan test/tight --only test/c --end --force' shows how those of 3 end; with --apply it ends them.
"""

REFUSED = """\
test/tight wants 8 units of memory of one card (gpushare): none of 4 nodes takes it

NODES  REASON                CLOSEST  WHY
    1  cordoned              n3       cordoned; else it takes the pod
    1  insufficient_memory   n1       card 1: wants 8GiB, 5GiB free of 10GiB; held by test/c (5GiB)
    1  card_unhealthy        n2       card 0: a ConfigMap says that it is unhealthy
    1  not_gpu_share         cpu      shares no GPU
"""


WHICH_POD = "which pod? 'explain pod NAMESPACE/NAME', 'explain pod NAME -n NAMESPACE', or one in a file with -f"

class Explain(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.cluster = self.write("cluster.json", CLUSTER)

    def write(self, name, text):
        file = self.directory / name
        file.write_text(text if isinstance(text, str) else json.dumps(text))
        return file

    def alone(self, *arguments, code=0):
        result = run("explain", *arguments, "--snapshot", self.cluster)
        self.assertEqual((result.returncode, result.stderr), (code, ""))
        return result.stdout

    def test_a_refused_pod(self):
        text = self.alone("pod", "test/tight", code=3)
        self.assertEqual(text, REFUSED + REMEDIES)
        with Server(snapshot=self.cluster) as server:
            asked = run("explain", "pod", "test/tight", "-s", server.operations)
            self.assertEqual((asked.returncode, asked.stdout), (3, text))
            taken = run("explain", "pod", "test/small", "-s", server.operations)
            self.assertEqual((taken.returncode, taken.stdout), (0, self.alone("pod", "test/small")))
            status, body = call("GET", f"{server.operations}/api/v1/explain?pod=test/tight&output=table")
            self.assertEqual((status, body), (200, text))

    def test_the_reason_is_filters(self):
        texts = {}
        with Server(snapshot=self.cluster) as server:
            for amount in (1, 5, 8, 10, 12, 17):
                asked = pod(f"p{amount}", amount)
                answer = server.filter(asked, ["n1", "n2", "n3", "cpu"])
                refused = {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}
                file = self.write("pod.json", asked)
                told = json.loads(run("explain", "-f", file, "-ojson", "-s",
                                      server.operations).stdout)
                for group in told["groups"]:
                    texts[group["reason"]] = group["text"]
                self.assertEqual(len(told["nodes"]), 4)
                for each in told["nodes"]:
                    self.assertEqual(texts[each["reason"]], refused.get(each["name"], ""))
                    if each["reason"] and each["name"] != "cpu":
                        self.assertIn(each["reason"], [card["reason"] for card in each["cards"]])

    def test_a_pod_that_fits(self):
        self.assertIn("1 of 4 nodes takes it, first by binpack is n1, card 1 (5GiB)",
                      self.alone("test/small"))
        wide = self.alone("test/small", "-owide")
        self.assertRegex(wide, r"(?m)^n1 +0  insufficient_memory +wants 5GiB, 0GiB free of 10GiB; "
                               r"held by test/a \(6GiB\), test/b \(4GiB\)$")
        self.assertIn("is n1, card 1", self.alone("test/small", "--policy=spread"))

    def test_a_node_that_cannot_be_understood(self):
        strange = node("strange", 2, 10)
        strange["status"]["capacity"]["aliyun.com/gpu-count"] = "0"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cluster.json"
            path.write_text(listing(strange, pod("small", 5)))
            with Server(snapshot=path) as server:
                shown = json.loads(server.get("/api/v1/explain?pod=test/small")[1])["nodes"][0]
        self.assertEqual(shown["reason"], "not_gpu_share")
        self.assertIn("not all that it says of its GPUs can be understood", shown["why"])

    def test_a_cordoned_node_that_refuses(self):
        file = self.write("pod.json", pod("huge", 17))
        told = json.loads(self.alone("-f", file, "-ojson", code=3))
        found = {each["name"]: each for each in told["nodes"]}
        self.assertEqual((found["n3"]["reason"], found["n3"]["cordoned"]), ("card_too_small", True))
        self.assertEqual(found["n3"]["why"],
                         "cordoned, and card 0: wants 17GiB, the card has 16GiB in all")

    def test_a_pod_that_has_its_card(self):
        text = self.alone("pod", "test/a")
        self.assertIn("test/a is on n1, card 0 (6GiB)\n", text)
        self.assertIn("STATE       assigned", text)
        self.assertIn("BESIDE      test/b\n", text)
        waiting = self.alone("pod", "test/d")
        self.assertIn("STATE       waiting for its node side", waiting)
        self.assertIn("SINCE       2026-01-01T00:00:00Z\n", waiting)
        self.assertIn("BESIDE      nobody\n", waiting)

    def test_a_pod_that_cannot_be_understood(self):
        told = json.loads(self.alone("pod", "test/odd", "-ojson", code=3))
        self.assertEqual(told["verdict"], "invalid")
        self.assertIn("aliyun.com/gpu-mem", told["failure"])

    def test_files(self):
        manifest = self.write("job.yaml", """\
apiVersion: v1
kind: Service
metadata: {name: s}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: test}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - name: main
            resources: {limits: {aliyun.com/gpu-mem: 5}}
""")
        self.assertIn("test/nightly wants 5 units of memory", self.alone("-f", manifest))
        with Server(snapshot=self.cluster) as server:
            asked = run("explain", "-f", manifest, "-s", server.operations)
            self.assertEqual(asked.stdout, self.alone("-f", manifest))

    def test_yaml(self):
        try:
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("no YAML reader")
        for title, code in (("test/tight", 3), ("test/a", 0), ("test/odd", 3)):
            self.assertEqual(yaml.safe_load(self.alone(title, "-oyaml", code=code)),
                             json.loads(self.alone(title, "-ojson", code=code)))

    def test_the_place_of_an_older_pod(self):
        def since(second, which):
            which["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{second:02}Z"
            return which

        cluster = self.write("queue.json", listing(
            node("n1", 1, 10), bound("a", 5, "n1", 0), bound("b", 2, "n1", 0),
            since(1, pod("large", 7)), since(2, pod("small", 2))))
        told = run("explain", "test/small", "--snapshot", cluster, "--arrival-hold=1m").stdout
        self.assertIn("1  earlier_pod           n1       the pod does not fit beside what is kept "
                      "there: card 0 for test/large, which came first and gets it after test/a\n",
                      told)
        for option in ("--arrival-hold=0s", "--arrival-hold=1m", "--arrival-places=0"):
            told = run("explain", "test/small", "--snapshot", cluster, "--arrival-hold=1m",
                       option).stdout
            self.assertEqual("takes it, first" in told, not option.endswith("1m"), told)

    def test_a_namespace_as_kubectl_takes_it(self):
        told = self.alone("test/tight", code=3)
        for arguments in (("pod", "tight", "-n", "test"), ("tight", "--namespace=test"), ("test/tight", "-ntest")):
            result = run("explain", *arguments, "--snapshot", self.cluster)
            self.assertEqual((result.returncode, result.stdout), (3, told), result.stderr)
        with Server(snapshot=self.cluster) as server:
            result = run("explain", "tight", "-n", "test", "-s", server.operations)
            self.assertEqual((result.returncode, result.stdout), (3, told), result.stderr)

    def test_nothing_changes(self):
        with Server(snapshot=self.cluster) as server:
            before = server.get("/api/v1/nodes")
            for title in ("test/tight", "test/small", "test/a"):
                run("explain", title, "-s", server.operations)
            self.assertEqual(server.get("/api/v1/nodes"), before)

    def test_mistakes(self):
        manifest = self.write("pod.json", pod("x", 1))
        for code, message, *arguments in [
            (2, WHICH_POD, ),
            (2, WHICH_POD, "pod", "a/"),
            (2, "option '--namespace': 'a/b' names another namespace than 'c'; say it once", "a/b", "-n", "c"),
            (2, "option '--namespace': 'a/b' names another namespace than 'a0'; say it once", "a/b", "-na0"),
            (2, "option '--namespace': which pod of it? A pod in a file says its own", "-n", "a", "-f", manifest),
            (1, "there is no pod 'c/nope'", "pod", "nope", "-n", "c"),
            (2, "only pods are explained, not 'node'", "node", "a/b"),
            (2, "option '--filename': a pod is named as well; keep one of them", "a/b", "-f",
             manifest),
            (2, "option '--server': a cluster is given as well; keep one of them", "a/b",
             "--server=x"),
            (1, "there is no pod 'default/nope'", "pod", "nope"),
            (2, "option '--filename': expected a Pod, or an object with a pod template such as a "
                "Deployment", "-f", self.write("s.yaml", "kind: Service")),
        ]:
            result = run("explain", *arguments, "--snapshot", SNAPSHOT)
            self.assertEqual((result.returncode, result.stderr), (code, f"gpuledger: {message}\n"))


    def told(self, asked, *objects, options=()):
        """What is asked for, why the one node refuses, and what would help."""
        result = run("explain", "-f", self.write("asked.json", asked), "--snapshot",
                     self.write("one.json", listing(*objects)), "-ojson", *options)
        answer = json.loads(result.stdout)
        self.assertEqual((result.returncode, result.stderr), (3 if answer["verdict"] == "refused" else 0, ""))
        return (answer["asks"], answer["nodes"][0]["why"],
                [remedy["text"] for remedy in answer["remedies"]])

    def test_memory_that_is_not_really_there(self):
        there = node("n1", 1, 20)
        there["metadata"]["annotations"] = {"gpuledger.io/physical-memory": "*=16Gi"}
        asks, why, remedies = self.told(pod("p", 18), there)
        self.assertEqual((asks, why), ("18 units of memory of one card",
                                       "card 0: wants 18GiB, the card really has 16GiB in all"))
        # Not "2, if it was meant in another unit": who asks for a little too much knows the unit.
        self.assertEqual(remedies, ["ask for 16 aliyun.com/gpu-mem instead of 18 in container main"])
        _, why, _ = self.told(pod("p", 6), there, bound("a", 12, "n1", 0))
        self.assertEqual(why, "card 0: wants 6GiB, 4GiB free of the 16GiB that it really has; beyond "
                              "that the pod would have to accept oversubscribed memory "
                              "(gpuledger.io/oversubscribe); held by test/a (12GiB)")

    def test_whole_cards_and_compute(self):
        def elastic(name, core, **extra):
            made = pod(name, 1, **extra)
            made["spec"]["containers"][0]["resources"]["limits"] = {
                "elasticgpu.io/gpu-core": str(core)}
            return made

        there = node("n1", 1, 1)
        there["status"]["capacity"] = {"elasticgpu.io/gpu-core": "200",
                                       "elasticgpu.io/gpu-memory": "32768"}
        part = elastic("part", 10, spec={"nodeName": "n1"}, status={"phase": "Running"}, metadata={
            "annotations": {"elasticgpu.io/assumed": "true", "elasticgpu.io/container-main": "0"}})
        asks, why, _ = self.told(elastic("p", 200), there, part)
        self.assertEqual((asks, why), ("2 whole cards", "card 0: wants it alone, it has 1 holder; "
                                                        "held by test/part (10% of the compute)"))

    def test_who_asks_for_compute_may_do_without(self):
        there = node("n1", 1, 16)
        there["metadata"]["labels"] = {"ack.node.gpu.schedule": "share"}
        asked = pod("p", 1)
        limits = asked["spec"]["containers"][0]["resources"]["limits"]
        limits["aliyun.com/gpu-core.percentage"] = "25"
        asks, _, remedies = self.told(asked, there)
        self.assertEqual((asks, remedies), (
            "1 unit of memory and 25% of the compute of one card",
            ["ask for 0 aliyun.com/gpu-core.percentage instead of 25 in container main"]))
        limits["aliyun.com/gpu-core.percentage"] = "0"
        self.assertEqual(self.told(asked, there)[1], "takes the pod")

    def test_a_pod_moves_to_another_card_of_its_node(self):
        pods = [bound("x", 6, "n1", 0), bound("y", 4, "n1", 1)]
        _, _, remedies = self.told(pod("p", 10), node("n1", 2, 10), *pods)
        self.assertEqual(remedies[-1], "end test/y")  # nobody makes it again
        for each in pods:
            each["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}]
        _, _, remedies = self.told(pod("p", 10), node("n1", 2, 10), *pods)
        self.assertEqual(remedies[-1], "move test/y to other cards of n1")

    def test_other_tenants(self):
        _, why, _ = self.told({**pod("p", 2), "metadata": {"namespace": "other", "name": "p"}},
                              node("n1", 1, 10), bound("a", 3, "n1", 0),
                              options=["--tenant-isolation=kernel"])
        self.assertEqual(why, "card 0: pods of another namespace share it; held by test/a (3GiB)")


if __name__ == "__main__":
    unittest.main()
