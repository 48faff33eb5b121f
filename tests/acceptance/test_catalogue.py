#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/scenarios.md is what the tests say, every number is in it, and e2e has what it names."""

import re
import unittest

from scenario import HERE

from catalogue import ELSEWHERE, SHOWN, catalogue, classes

ROOT = HERE.parents[1]


class Catalogue(unittest.TestCase):
    def test_it_is_fresh(self):
        self.assertEqual(
            (ROOT / "docs/scenarios.md").read_text(),
            catalogue(),
            "make it again: python3 tests/acceptance/catalogue.py >docs/scenarios.md",
        )

    def test_every_number_is_in_it(self):
        numbers = {int(re.match(r"S(\d+)", each)[1]) for each in {*classes(), *ELSEWHERE}}
        self.assertEqual(numbers, set(range(1, 35)))
        self.assertFalse(classes().keys() & ELSEWHERE.keys())

    def test_each_has_cases_and_its_line(self):
        for name, each in classes().items():
            cases = [case for case in dir(each) if case.startswith("test_")]
            self.assertTrue(cases and each.__doc__, name)

    def test_modules_are_run(self):
        listed = (HERE / "meson.build").read_text()
        for path in HERE.glob("test_*.py"):
            self.assertIn(f"'{path.stem[5:]}'", listed)

    def test_e2e_has_what_is_named(self):
        functions = (re.findall(r"^def scenario_(\w+)", path.read_text(), re.M)
                     for path in (HERE.parent / "e2e/scenarios").glob("*.py"))
        listed = {name.replace("_", "-") for names in functions for name in names}
        named = {name for each in classes().values() for name in each.e2e}
        named |= {name for names in SHOWN.values() for name in names.split()}
        self.assertEqual(named - listed, set())


if __name__ == "__main__":
    unittest.main()
