# SPDX-License-Identifier: Apache-2.0
"""helm, as tests/controlplane/build helm has built it, and what it renders."""

import os
import pathlib
import subprocess
import tempfile

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CHART = ROOT / "charts/gpuledger"
BUILD = ROOT / "tests/controlplane/build"
SYSTEM = "kube-system"

# Such as the cluster has, where the operator of Prometheus runs.
MONITORING_API = "--api-versions=monitoring.coreos.com/v1"


def built(what):
    """The folder of a set of programs of tests/controlplane/build, or None."""
    answer = subprocess.run([BUILD, "--path", what], stdout=subprocess.PIPE, text=True, check=True)
    folder = pathlib.Path(answer.stdout.strip())
    return folder if folder.is_dir() else None


def helm(*arguments, **options):
    """Runs helm away from the user's own configuration."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        return subprocess.run([built("helm") / "helm", *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, env=environment, **options)


def values_file(name):
    return CHART / f"ci/{name}-values.yaml"


def render(*arguments, namespace=SYSTEM):
    return helm("template", "gpuledger", CHART, f"--namespace={namespace}", *arguments)


def objects(text):
    return [one for one in yaml.safe_load_all(text) if one]
