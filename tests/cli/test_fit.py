#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command "fit". What it says is done through the real verbs, over random clusters of many
dialects: so many pods are bound, and one more is not."""

import json
import os
import pathlib
import random
import tempfile
import unittest

from program import Server, call, listing, run
from test_remedies import DIALECTS, Remedies, admit, make_pod, node

SEED = int(os.environ.get("GPULEDGER_SEED") or random.randrange(1 << 32))
CLUSTERS = int(os.environ.get("GPULEDGER_EVENTS") or 12)


def gpus(name, cards, units, **metadata):
    return node(name, {"aliyun.com/gpu-count": str(cards),
                       "aliyun.com/gpu-mem": str(cards * units)}, **metadata)


class Fit(unittest.TestCase):
    write, fill = Remedies.write, Remedies.fill

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def fit(self, code, *arguments):
        result = run("fit", *arguments)
        self.assertEqual((result.returncode, result.stderr), (code, ""))
        return result.stdout

    def test_as_many_as_are_bound(self):
        chance = random.Random(SEED)
        for _ in range(CLUSTERS):
            dialect = DIALECTS[chance.choice(sorted(DIALECTS))]
            items, _ = self.fill(chance, dialect)
            open_nodes = [each["metadata"]["name"] for each in items if each["kind"] == "Node"
                          and not each.get("spec", {}).get("unschedulable")]
            asked = make_pod("asked", dialect.ask(chance))
            cluster = self.write("cluster.json", listing(*items))
            told = json.loads(self.fit(0, "-f", self.write("pod.json", asked), "--snapshot",
                                       cluster, "-ojson"))
            bound = 0
            with Server(snapshot=cluster) as server:
                for place in told["places"]:
                    for _ in range(place["pods"]):
                        one = make_pod(f"one-{bound}",
                                       asked["spec"]["containers"][0]["resources"]["limits"])
                        self.assertEqual(admit(server, one, open_nodes, place["node"]),
                                         place["node"], f"seed {SEED}: {told['summary']}")
                        bound += 1
                more = make_pod("more", asked["spec"]["containers"][0]["resources"]["limits"])
                self.assertEqual(server.filter(more, open_nodes)["NodeNames"], [],
                                 f"seed {SEED}: {told['summary']}")
            self.assertEqual(bound, told["fitting"])

    def test_draining(self):
        items = [gpus("n1", 1, 10), gpus("n2", 1, 10), gpus("n3", 1, 4)]
        with Server(snapshot=self.write("nodes.json", listing(*items))) as server:
            for name, amount, where in (("a", 6, "n1"), ("b", 4, "n1"), ("c", 5, "n2")):
                admit(server, make_pod(name, {"aliyun.com/gpu-mem": str(amount)}), [where])
            before = server.get("/api/v1/nodes")
            text = self.fit(3, "--drain", "n1", "-s", server.operations)
            self.assertEqual(text.splitlines()[0],
                             "2 drained pods with a GPU: 1 fits elsewhere, 1 nowhere")
            self.assertRegex(text, r"(?m)^test/a +n1 +nowhere; n[23]: card 0: wants 6GiB, [15]GiB free")
            self.assertRegex(text, r"(?m)^test/b +n1 +n[23]$")
            text = self.fit(3, "--drain=n1", "--drain=n2", "-s", server.operations, "-ojson")
            told = {each["name"]: each["to"] for each in json.loads(text)["drained"]}
            text = self.fit(0, "--drain", "n3", "-s", server.operations)
            self.assertEqual(text, "no pod of the drained nodes holds a GPU\n")
            pod = self.write("pod.json", make_pod("p", {"aliyun.com/gpu-mem": "1"}))
            text = self.fit(0, "--drain=n3", "--replicas=1", "-f", pod, "-s", server.operations)
            self.assertEqual(text.splitlines()[0],
                             "no pod of the drained nodes holds a GPU; then 1 of 1 pods like test/p "
                             "(1 unit of memory of one card) fit")
            self.assertEqual(told, {"a": None, "b": "n3", "c": None})
            self.assertEqual(server.get("/api/v1/nodes"), before)

    def test_a_template(self):
        cluster = self.write("nodes.json", listing(gpus("n1", 2, 10)))
        template = self.write("template.yaml", """\
kind: Node
metadata: {name: large}
status:
  capacity: {aliyun.com/gpu-mem: 40, aliyun.com/gpu-count: 2}
""")
        pod = self.write("pod.json", make_pod("p", {"aliyun.com/gpu-mem": "8"}))
        text = self.fit(0, "-f", pod, "--snapshot", cluster, "--replicas=9", "--template", template)
        self.assertEqual(text, """\
9 of 9 pods like test/p (8 units of memory of one card) fit, with 2 new nodes

 PODS  NODE
    2  n1
    4  large (new 1)
    3  large (new 2)
""")
        huge = self.write("pod.json", make_pod("p", {"aliyun.com/gpu-mem": "30"}))
        text = self.fit(3, "-f", huge, "--snapshot", cluster, "--replicas=2", "--template",
                        template)
        self.assertTrue(text.startswith("0 of 2 pods like test/p"))
        self.assertIn("wants 30GiB, the card has 20GiB in all", text)

    def test_no_pods_are_no_question(self):
        cluster = self.write("nodes.json", listing(gpus("n1", 1, 10)))
        spec = make_pod("p", {"aliyun.com/gpu-mem": "8"})["spec"]
        for replicas, said in ((0, "field 'spec.replicas' is 0: no pod is to fit"),
                               (-1, "field 'spec.replicas' is -1; expected 0 or more")):
            made = self.write("made.json", {"kind": "Deployment", "metadata": {"name": "d"},
                                            "spec": {"replicas": replicas, "template": {"spec": spec}}})
            done = run("fit", "-f", made, "--snapshot", cluster)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)

    def test_drained_pods_go_to_new_nodes(self):
        """Where no other takes them; what they leave there the replicas find."""
        items = [gpus("n1", 1, 20), gpus("n2", 1, 4)]
        template = self.write("template.yaml", """\
kind: Node
metadata: {name: large}
status:
  capacity: {aliyun.com/gpu-mem: 16, aliyun.com/gpu-count: 1}
""")
        pod = self.write("pod.json", make_pod("p", {"aliyun.com/gpu-mem": "5"}))
        with Server(snapshot=self.write("nodes.json", listing(*items))) as server:
            for name, amount in (("a", 6), ("b", 11), ("c", 3)):
                admit(server, make_pod(name, {"aliyun.com/gpu-mem": str(amount)}), ["n1"])
            arguments = ("--drain=n1", "--template", template, "-f", pod, "-s", server.operations)
            self.assertEqual(self.fit(0, *arguments, "--replicas=2"), """\
3 drained pods with a GPU: 3 fit elsewhere, 0 nowhere; then 2 of 2 pods like test/p (5 units of memory of one card) fit, with 2 new nodes

DRAINED  FROM  TO
test/a   n1    large (new 1)
test/b   n1    large (new 2)
test/c   n1    large (new 2)

 PODS  NODE
    2  large (new 1)
""")
        # A pod that no new node takes either leaves none behind.
        with Server(snapshot=self.write("nodes.json", listing(gpus("n1", 1, 20)))) as server:
            admit(server, make_pod("d", {"aliyun.com/gpu-mem": "19"}), ["n1"])
            told = json.loads(self.fit(3, *arguments[:-1], server.operations, "-ojson"))
            self.assertEqual((told["newNodes"], told["fitting"], told["drained"][0]["to"]),
                             (0, 0, None))

    def test_a_limit(self):
        cluster = self.write("nodes.json", listing(gpus("n1", 1, 30), gpus("n2", 1, 30)))
        pod = self.write("pod.json", make_pod("p", {"aliyun.com/gpu-mem": "10"}))
        text = self.fit(0, "-f", pod, "--snapshot", cluster)
        self.assertTrue(text.startswith("6 pods like test/p"))
        self.assertIn("WHY NOT ONE MORE", text)
        self.fit(0, "-f", pod, "--snapshot", cluster, "--replicas=6")
        self.fit(3, "-f", pod, "--snapshot", cluster, "--replicas=7")

    def test_what_a_job_runs_at_once(self):
        """No more than have to end; of a CronJob it is its jobs' word that counts."""
        cluster = self.write("nodes.json", listing(gpus("n1", 1, 50)))
        made = {"spec": make_pod("p", {"aliyun.com/gpu-mem": "10"})["spec"]}
        job = {"parallelism": 7, "template": made}
        for kind, spec, wanted in (("Job", job, 7), ("Job", {**job, "completions": 3}, 3),
                                   ("Job", {**job, "completions": 9}, 7), ("Job", {"completions": 3, "template": made}, None),
                                   ("CronJob", {"jobTemplate": {"spec": job}}, 7),
                                   ("CronJob", {"jobTemplate": {"spec": {**job, "completions": 2}}}, 2)):
            body = self.write("job.json", json.dumps({"kind": kind, "metadata": {"name": "j"}, "spec": spec}))
            told = json.loads(self.fit(3 if wanted == 7 else 0, "-f", body, "--snapshot", cluster, "-ojson"))
            self.assertEqual((told["wanted"], told["fitting"]), (wanted, min(wanted or 5, 5)), (kind, spec))

    def test_mistakes(self):
        cluster = self.write("nodes.json", listing(gpus("n1", 1, 10)))
        pod = self.write("pod.json", make_pod("p", {"aliyun.com/gpu-mem": "10"}))
        for code, message, *arguments in [
            (2, "what is to fit? Give a pod with -f, or --drain a node", ),
            (1, "node 'nope' is not known", "--drain", "nope"),
            (2, "field 'pod': expected a Pod, or an object with a pod template such as a "
                "Deployment", "-f", self.write("s.yaml", "kind: Service")),
            (2, "field 'template': field 'kind': expected Node, such as a node of the group would be", "-f", pod,
             "--template", pod),
        ]:
            result = run("fit", *arguments, "--snapshot", cluster)
            self.assertEqual((result.returncode, result.stderr), (code, f"gpuledger: {message}\n"))
        for text in ("null", "42", "nothing of the kind"): # beside what is right by itself, too
            for more in ((), ("--drain", "n1")):
                result = run("fit", "-f", self.write("no.yaml", text), *more, "--snapshot", cluster)
                self.assertEqual(result.returncode, 2)
                self.assertIn("expected an object", result.stderr)


if __name__ == "__main__":
    del Remedies  # its tests are not these
    unittest.main()
