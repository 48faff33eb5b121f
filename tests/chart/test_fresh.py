#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the chart has from elsewhere is what charts/write.py would write now. Needs no helm."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRITTEN = ["charts/gpuledger/values.schema.json", "charts/gpuledger/README.md",
           "charts/gpuledger/templates/guard-policy.yaml", "charts/gpuledger/templates/own-writes.yaml",
           "charts/gpuledger/files/rules.yaml",
           "charts/gpuledger/files/dashboard.json", "manifests/monitoring/dashboard.json",
           "manifests/monitoring/prometheusrule.yaml"]


class Fresh(unittest.TestCase):
    maxDiff = None

    def test_files_are_fresh(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("charts", "manifests"):
                shutil.copytree(ROOT / name, pathlib.Path(folder) / name)
            # What is not written shows.
            for name in WRITTEN:
                if not name.endswith("README.md"):
                    (pathlib.Path(folder) / name).unlink()
            subprocess.run([sys.executable, "-B", ROOT / "charts/write.py", os.environ["GPULEDGER"], folder], check=True)
            for name in WRITTEN:
                with self.subTest(name):
                    self.assertEqual((pathlib.Path(folder) / name).read_text(), (ROOT / name).read_text(),
                                     "write it anew: charts/write.py build/gpuledger")

    def test_every_option_is_a_value(self):
        told = subprocess.run([os.environ["GPULEDGER"], "serve", "--print-schema"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        schema = json.loads((ROOT / "charts/gpuledger/values.schema.json").read_text())
        options = schema["properties"]["config"]["properties"]
        self.assertEqual(list(options), list(json.loads(told)["properties"]))
        for name, option in json.loads(told)["properties"].items():
            # Go knows no lookahead; this one says that the text is not empty.
            if "(?=.)" in option.get("pattern", ""):
                option.update(pattern=option["pattern"].replace("(?=.)", ""), minLength=1)
            self.assertEqual(options[name], option)

    def test_every_value_is_described(self):
        schema = json.loads((ROOT / "charts/gpuledger/values.schema.json").read_text())
        values = yaml.safe_load((ROOT / "charts/gpuledger/values.yaml").read_text())

        def look(part, value, path):
            for key, each in value.items():
                inside = part["properties"][key]
                if "properties" in inside and key != "config":
                    look(inside, each, f"{path}{key}.")
                else:
                    self.assertIn("description", inside, path + key)

        look(schema, values, "")


if __name__ == "__main__":
    unittest.main()
