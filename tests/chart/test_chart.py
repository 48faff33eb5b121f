#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart: what it renders is what the kustomizations render, and stays what it was.

    test_chart.py --write       writes golden/ anew
"""

import json
import os
import re
import subprocess
import sys
import unittest

import yaml
from helm import CHART, HERE, MONITORING_API, ROOT, built, helm, objects, render, values_file

MANIFESTS = ROOT / "manifests"
GOLDEN = HERE / "golden"

# Values, and the kustomizations or files that have the same objects; arguments that only the chart adds.
SAME = [
    ("nodeport", ["overlays/nodeport"], []),
    ("ha", ["overlays/ha"], []),
    ("minimal", ["overlays/minimal"], []),
    ("guard", ["base", "overlays/guard"], []),
    ("own-writes", ["base", "overlays/own-writes"], []),
    ("hami", ["base", "overlays/hami"], []),
    ("quotas", ["base", "overlays/quotas"], []),
    ("reclaim", ["base", "overlays/reclaim"], []),
    ("gangs", ["base", "overlays/gangs", "overlays/gang-strict"], []),
    ("kueue", ["base", "overlays/kueue"], []),
    ("switch", ["base", "overlays/switch"], []),
    ("plans", ["base", "overlays/plans"], []),
    ("network-policy", ["base", "overlays/network-policy"], []),
    ("admission", ["base", "overlays/admission"], ["--admission"]),
    ("second-scheduler", ["base", "second-scheduler"], []),
    ("monitoring", ["base", "monitoring/servicemonitor.yaml", "monitoring/prometheusrule.yaml"], []),
]


def setUpModule():
    if not built("helm"):
        raise unittest.SkipTest("helm is not built: run tests/controlplane/build helm")


def kubectl():
    folder = built("current")
    if not folder:
        raise unittest.SkipTest("kubectl is not built: run tests/controlplane/build current")
    return folder / "kubectl"


def shipped(path):
    """The objects of a kustomization, or of a file, of manifests/."""
    if path.endswith(".yaml"):
        return objects((MANIFESTS / path).read_text())
    answer = subprocess.run([kubectl(), "kustomize", MANIFESTS / path], stdout=subprocess.PIPE, check=True)
    return objects(answer.stdout)


def plain(document):
    """Without what the two tools do each in their own way: a generated ConfigMap's name has a hash of it with
    kustomize, the chart has the hash in an annotation; and comments inside of texts."""
    text = re.sub(r"(gpuledger-scheduler)-[a-z0-9]{10}\b", r"\1", json.dumps(document))
    document = json.loads(text)
    pod = document.get("spec", {}).get("template", {})
    if isinstance(pod, dict) and list(pod.get("metadata", {}).get("annotations", ())) == ["checksum/config"]:
        del pod["metadata"]["annotations"]
    if document["kind"] == "ConfigMap":
        document["data"] = {key: yaml.safe_load(text) if key.endswith(".yaml") else text
                            for key, text in document["data"].items()}
    return document


def by_name(documents):
    named = {}
    for one in documents:
        meta = one["metadata"]
        key = (one["apiVersion"], one["kind"], meta.get("namespace", ""), re.sub(r"-[a-z0-9]{10}$", "", meta["name"]))
        assert key not in named, key
        named[key] = plain(one)
    return named


class Chart(unittest.TestCase):
    maxDiff = None

    def rendered(self, *arguments, **options):
        answer = render(MONITORING_API, *arguments, **options)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout

    def refused(self, *arguments):
        answer = render(*arguments)
        self.assertNotEqual(answer.returncode, 0, arguments)
        return answer.stderr

    def same(self, here, there):
        self.assertEqual(sorted(here), sorted(there))
        for key, document in here.items():
            self.assertEqual(yaml.safe_dump(document), yaml.safe_dump(there[key]))

    def test_lint(self):
        for values in (None, *sorted(CHART.glob("ci/*-values.yaml"))):
            with self.subTest(values):
                answer = helm("lint", "--strict", CHART, *(("--values", values) if values else ()))
                self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
                self.assertNotIn("[WARNING]", answer.stdout)

    def test_without_values_it_is_the_base(self):
        self.same(by_name(objects(self.rendered())), by_name(shipped("base")))

    def test_values_are_overlays(self):
        for name, folders, arguments in SAME:
            with self.subTest(name):
                there = by_name([one for folder in folders for one in shipped(folder)])
                here = by_name(objects(self.rendered("--values", values_file(name))))
                if arguments:
                    deployment = here["apps/v1", "Deployment", "kube-system", "gpuledger"]
                    container = deployment["spec"]["template"]["spec"]["containers"][0]
                    for one in arguments:
                        container["args"].remove(one)
                board = here.pop(("v1", "ConfigMap", "kube-system", "gpuledger-dashboard"), None)
                if board:
                    self.assertEqual(json.loads(board["data"]["gpuledger.json"]),
                                     json.loads((MANIFESTS / "monitoring/dashboard.json").read_text()))
                self.same(here, there)

    def test_every_overlay_has_values(self):
        compared = {folder for _, folders, _ in SAME for folder in folders}
        folders = {str(path.parent.relative_to(MANIFESTS)) for path in MANIFESTS.rglob("kustomization.yaml")}
        self.assertEqual(folders - compared, set())
        self.assertEqual({path.name.removesuffix("-values.yaml") for path in CHART.glob("ci/*")},
                         {name for name, _, _ in SAME} | {"full"})

    def test_golden(self):
        for name, text in golden().items():
            with self.subTest(name):
                self.assertEqual(text, (GOLDEN / name).read_text(), "write it anew: tests/chart/test_chart.py --write")

    def test_without_the_operator_it_asks_for_no_monitor(self):
        answer = render("--values", values_file("full"))
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertNotIn("monitoring.coreos.com", {one["apiVersion"].partition("/")[0] for one in objects(answer.stdout)})

    def test_nothing_is_looked_up_or_made_by_chance(self):
        for path in CHART.glob("templates/*"):
            for word in ("lookup", "rand", "genCA", "genSelfSigned", "genSigned", "now", "uuidv4", "derivePassword"):
                self.assertIsNone(re.search(rf"\b{word}", "".join(re.findall(r"{{.*?}}", path.read_text(), re.S))), path)
        once, again = (self.rendered("--values", values_file("full")) for _ in range(2))
        self.assertEqual(once, again)

    def test_options_are_the_program_s(self):
        for values in (["config.polcy=oc"], ["config.policy=random"], ["config.max-connections=many"],
                       ["config.bind-timeout=9"], ["config.help=true"], ["nonsense=1"], ["replicas=-1"],
                       ["service.type=Nodeport"]):
            with self.subTest(values):
                error = self.refused("--set", ",".join(values))
                self.assertIn(values[0].partition("=")[0].rpartition(".")[2], error)

    def test_what_templates_need_is_there(self):
        for values, named in (("config=null", "config"), ("serviceAccount=null", "serviceAccount"),
                              ("monitoring.rules=null", "rules"), ('serviceAccount={"name":""}', "/serviceAccount/name"),
                              ('serviceAccount={"create":false,"name":""}', "/serviceAccount/name")):
            with self.subTest(values):
                error = self.refused("--set-json", values)
                self.assertIn("values don't meet the specifications of the schema", error)
                self.assertIn(named, error)
        self.rendered("--set-json", "affinity=null")

    def test_the_program_takes_what_is_rendered(self):
        for name in ("full", "minimal", "admission"):
            with self.subTest(name):
                deployment = by_name(objects(self.rendered("--values", values_file(name))))[
                    "apps/v1", "Deployment", "kube-system", "gpuledger"]
                arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
                answer = subprocess.run([os.environ["GPULEDGER"], *arguments, "--print-config"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
                self.assertEqual(answer.returncode, 0, answer.stderr)
                given = yaml.safe_load(answer.stdout)
                wanted = {**yaml.safe_load((CHART / "values.yaml").read_text())["config"],
                          **yaml.safe_load(values_file(name).read_text()).get("config", {})}
                for option, value in wanted.items():
                    if option == "classes":  # printed with every setting
                        for name, row in value.items():
                            self.assertEqual({key: given[option][name][key] for key in row}, row)
                    elif option != "max-body":
                        self.assertEqual(given[option], value, option)

    def test_large_numbers_are_no_floats(self):
        self.assertIn('--max-body=134217728"', self.rendered("--values", values_file("full")).replace(
            "--max-body=134217728\n", '--max-body=134217728"\n'))

    def test_a_default_can_be_taken_away(self):
        text = self.rendered("--set", "config.ops-tls=null,config.ops-token-file=null")
        self.assertNotIn("--ops-tls", text)
        self.assertIn("scheme: HTTP\n", text)

    def test_the_affinity_can_be_taken_away(self):
        self.assertNotIn("ffinity:", self.rendered("--set", "affinity=null"))
        self.assertIn("podAntiAffinity:", self.rendered("--set", "affinity=null,replicas=2"))

    def test_a_network_policy_never_lets_everybody_in(self):
        for cidrs in ("null", "[]"):
            with self.subTest(cidrs):
                error = self.refused("--set", "networkPolicy.enabled=true", "--set-json",
                                     f"networkPolicy.podCIDRs={cidrs}")
                self.assertIn("podCIDRs", error)
        for cidrs in ('["10.0.0.0/8"]', '["fd00::/8"]'):
            policy = by_name(objects(self.rendered("--set", "networkPolicy.enabled=true", "--set-json",
                                                   f"networkPolicy.podCIDRs={cidrs}")))[
                "networking.k8s.io/v1", "NetworkPolicy", "kube-system", "gpuledger"]
            self.assertTrue(all(rule["from"] for rule in policy["spec"]["ingress"]))

    def test_plans_write_gpushare_s_config_maps_wherever_they_run(self):
        for namespace, verbs in (("kube-system", ["get", "list", "create", "patch"]),
                                 ("gpus", ["get", "create", "patch"])):
            with self.subTest(namespace):
                here = by_name(objects(self.rendered("--set", "plans.enabled=true", namespace=namespace)))
                role = here["rbac.authorization.k8s.io/v1", "Role", "kube-system", "gpuledger-plans"]
                self.assertEqual(role["rules"], [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}])
                binding = here["rbac.authorization.k8s.io/v1", "RoleBinding", "kube-system", "gpuledger-plans"]
                self.assertEqual(binding["subjects"][0]["namespace"], namespace)

    def test_another_namespace(self):
        for one in objects(self.rendered("--values", values_file("full"), namespace="gpus")):
            meta = one["metadata"]
            text = json.dumps({**one, "data": None, "spec": None if one["kind"] == "PrometheusRule" else one.get("spec")})
            if meta.get("namespace") == "kube-system":
                self.assertIn(meta["name"], ("gpuledger", "gpuledger-plans", "gpuledger-scheduler-authentication"))
                self.assertIn(one["kind"], ("Role", "RoleBinding"))
                text = text.replace('"namespace": "kube-system"', "", 1)
            self.assertNotIn("kube-system", text)

    def test_versions_agree(self):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        told = subprocess.run([os.environ["GPULEDGER"], "version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn(chart["appVersion"], told)
        images = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
        self.assertEqual(images[0]["image"], f"gpuledger:{chart['appVersion']}")


def golden():
    """{file: what the chart renders}: with nothing, and with everything."""
    made = {}
    for name, arguments in (("default.yaml", []), ("full.yaml", ["--values", values_file("full")])):
        answer = render(MONITORING_API, *arguments, namespace="kube-system" if not arguments else "gpus")
        assert answer.returncode == 0, answer.stderr
        # The board is held by another test, and is long.
        made[name] = re.sub(r"(  gpuledger\.json: \|\n)(?:    .*\n|\n)+", r"\1    …\n", answer.stdout)
    return made


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        GOLDEN.mkdir(exist_ok=True)
        for file, content in golden().items():
            (GOLDEN / file).write_text(content)
    else:
        unittest.main()
