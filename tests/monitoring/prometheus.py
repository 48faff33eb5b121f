# SPDX-License-Identifier: Apache-2.0
"""Where Prometheus and its tools are: on the PATH, or where tests/install has unpacked them."""

import os
import pathlib
import shutil
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MONITORING = ROOT / "manifests/monitoring"
RULES = [MONITORING / "recording.yaml", MONITORING / "alerts.yaml"]


def program(name):
    """The path of prometheus or promtool; skips the module's tests if there is none."""
    cache = os.environ.get("GPULEDGER_CACHE") or pathlib.Path.home() / ".cache/gpuledger"
    found = shutil.which(name) or shutil.which(name, path=pathlib.Path(cache) / "prometheus")
    if not found:
        raise unittest.SkipTest(f"{name} is missing: tests/install monitoring")
    return found
