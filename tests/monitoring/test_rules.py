#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Alerts and recording rules, by promtool: each alert is heard when it must be, and not otherwise."""

import re
import subprocess
import unittest

import yaml
from prometheus import HERE, MONITORING, ROOT, RULES, program


def setUpModule():
    program("promtool")


def groups(path):
    return yaml.safe_load(path.read_text())["groups"]


ALERTS = [rule for group in groups(MONITORING / "alerts.yaml") for rule in group["rules"]]
TESTS = yaml.safe_load((HERE / "rules_test.yaml").read_text())["tests"]
DOCUMENT = (ROOT / "docs/monitoring.md").read_text()


class Rules(unittest.TestCase):
    def promtool(self, *arguments):
        answer = subprocess.run([program("promtool"), *arguments], cwd=HERE, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(answer.returncode, 0, answer.stdout)

    def test_they_are_sound(self):
        self.promtool("check", "rules", "--lint=all", "--lint-fatal", *RULES)

    def test_they_are_heard_when_they_must_be(self):
        self.promtool("test", "rules", "rules_test.yaml")

    def test_each_is_tested_both_ways(self):
        heard, silent = set(), set()
        for test in TESTS:
            for case in test.get("alert_rule_test", ()):
                (heard if case["exp_alerts"] else silent).add(case["alertname"])
        names = {alert["alert"] for alert in ALERTS}
        self.assertEqual(heard, names)
        self.assertEqual(silent, names)

    def test_each_has_a_runbook(self):
        headings = re.findall(r"^### (\w+)$", DOCUMENT, re.M)
        self.assertEqual(sorted(headings), sorted(alert["alert"] for alert in ALERTS))
        for alert in ALERTS:
            self.assertEqual(alert["annotations"]["runbook_url"], f"docs/monitoring.md#{alert['alert'].lower()}")
            self.assertIn(alert["labels"]["severity"], ("critical", "warning", "info"))

    def test_the_page_s_queries_are_tested(self):
        def words(text):
            return re.sub(r"\s+", "", text)

        queries = {words(query) for query in re.findall(r"^```promql\n(.*?)^```$", DOCUMENT, re.M | re.S)}
        self.assertGreater(len(queries), 3)
        tested = {words(case["expr"]) for test in TESTS for case in test.get("promql_expr_test", ())}
        self.assertEqual(queries - tested, set())

    def test_the_operator_s_object_has_the_same(self):
        document = yaml.safe_load((MONITORING / "prometheusrule.yaml").read_text())
        self.assertEqual(document["spec"], {"groups": [group for path in RULES for group in groups(path)]})


if __name__ == "__main__":
    unittest.main()
