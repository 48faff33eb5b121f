#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes anew what the chart has from elsewhere: charts/write.py PROGRAM [ROOT].

values.schema.json and the README's table come from values.yaml and its comments, and for `config` from
the program's table of options. The two policies are what the program prints. Rules and board come from
manifests/monitoring.
"""

import json
import pathlib
import re
import subprocess
import sys

import yaml

# Whose insides Kubernetes describes, not the chart.
KUBERNETES = {"affinity", "resources", "podSecurityContext", "securityContext"}
CHOICES = {"service.type": ["ClusterIP", "NodePort", "LoadBalancer"],
           "image.pullPolicy": ["", "Always", "IfNotPresent", "Never"]}
# Templates name an object by it.
NAMES = {"serviceAccount.name"}
OBJECTS = {"imagePullSecrets", "extraEnv", "extraIngress", "tolerations", "topologySpreadConstraints",
           "extraVolumes", "extraVolumeMounts", "managedResources"}

KEY = re.compile(r"^( *)([\w-]+):")


def descriptions(text):
    """{"service.port": the comment above it}."""
    found, path, comment = {}, [], []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            comment.append(line.strip().lstrip("#").strip())
            continue
        match = KEY.match(line)
        if match:
            path = path[: len(match[1]) // 2] + [match[2]]
            if comment:
                found[".".join(path)] = " ".join(comment)
        comment = []
    return found


def is_section(name, value):
    """Templates look into it, so it cannot be taken away with null."""
    return isinstance(value, dict) and bool(value) and name not in KUBERNETES | {"labels"}


def schema_of(path, value, told):
    """What a value may be, by what it is without the user's."""
    name = path.rpartition(".")[2]
    if path in CHOICES:
        schema = {"enum": CHOICES[path]}
    elif name in KUBERNETES:
        schema = {"type": "object"}
    elif isinstance(value, bool):
        schema = {"type": "boolean"}
    elif isinstance(value, int):
        schema = {"type": "integer", "minimum": 0}
    elif value is None:
        schema = {"type": ["integer", "null"], "minimum": 1, "maximum": 65535}
    elif isinstance(value, str):
        schema = {"type": "string", **({"minLength": 1} if path in NAMES else {})}
    elif isinstance(value, list):
        schema = {"type": "array", "items": {"type": "object" if name in OBJECTS else "string"}}
    elif not value or name == "labels":
        schema = {"type": "object", "additionalProperties": {"type": "string"}}
    else:
        schema = {"type": "object", "additionalProperties": False,
                  "properties": {key: schema_of(f"{path}.{key}".lstrip("."), each, told)
                                 for key, each in value.items()},
                  "required": [key for key, each in value.items() if is_section(key, each)]}
        schema = {key: each for key, each in schema.items() if each != []}
    return {"description": told[path], **schema} if path in told else schema


def for_helm(option):
    """An option's schema without lookahead, which Go's regular expressions have not."""
    pattern = option.get("pattern", "")
    if not pattern.startswith("^(?=.)"):
        return option
    return {**option, "pattern": pattern.replace("(?=.)", "", 1), "minLength": 1}


def values_schema(values, told, config):
    schema = schema_of("", values, told)
    config = {key: each for key, each in config.items() if key not in ("$schema", "title")}
    config["properties"] = {name: for_helm(option) for name, option in config["properties"].items()}
    schema["properties"]["config"] = {"description": told["config"], **config, "type": "object"}
    # Helm hands these down to every chart.
    schema["properties"]["global"] = {"type": "object"}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart gpuledger", **schema}


def rows(values, told, path=""):
    for key, value in values.items():
        at = f"{path}.{key}".lstrip(".")
        if isinstance(value, dict) and value and at != "config" and key not in KUBERNETES | {"labels"}:
            yield from rows(value, told, at)
        else:
            shown = json.dumps(value) if len(json.dumps(value)) <= 40 else "see values.yaml"
            yield f"| `{at}` | {f'`{shown}`' if shown != 'see values.yaml' else shown} | {told[at]} |\n"


def update_readme(text, table):
    head, _, rest = text.partition("| value | default | what it is |\n")
    rest = re.sub(r"\A\|---.*?\n(?=\n|\Z)", "", rest, flags=re.S)
    return f"{head}| value | default | what it is |\n|---|---|---|\n{''.join(table)}{rest}"


def policy_template(text, value):
    """A policy of `gpuledger guard` as a template: the release's namespace and account, the chart's labels."""
    text = text.replace("    namespace: kube-system\n", "    namespace: {{ .Release.Namespace }}\n")
    text = text.replace("'system:serviceaccount:kube-system:gpuledger'",
                        "'system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.serviceAccount.name }}'")
    text = text.replace("    app.kubernetes.io/name: gpuledger\n",
                        '    {{- include "gpuledger.labels" . | nindent 4 }}\n')
    return "{{- if .Values.%s.enabled }}\n%s{{- end }}\n" % (value, text)


def prometheus_rule(*files):
    """Rule files of Prometheus as one object of its operator."""
    head = ("# Made by charts/write.py from the files beside this one. For the Prometheus operator:\n"
            "#   kubectl apply -f manifests/monitoring/prometheusrule.yaml\n"
            "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: gpuledger\n"
            "  namespace: kube-system\n  labels:\n    app.kubernetes.io/name: gpuledger\nspec:\n")
    return head + "".join(f"  {line}\n" if line else "\n" for line in merged(*files).splitlines())


def merged(*files):
    """The groups of rule files under one key."""
    parts = [file.partition("groups:\n")[2] for file in files]
    return "groups:\n" + "".join(parts)


def main(program, root=pathlib.Path(__file__).parents[1]):
    def told(*arguments):
        return subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout

    root = pathlib.Path(root)
    chart, monitoring = root / "charts/gpuledger", root / "manifests/monitoring"

    def read(path):
        return path.read_text(encoding="utf-8")

    text = read(chart / "values.yaml")
    values, comments = yaml.safe_load(text), descriptions(text)
    schema = values_schema(values, comments, json.loads(told("serve", "--print-schema")))
    rules = [read(monitoring / name) for name in ("recording.yaml", "alerts.yaml")]
    board = subprocess.run([sys.executable, "-B", monitoring / "board.py"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    for path, content in (
        (chart / "values.schema.json", json.dumps(schema, indent=2, ensure_ascii=False) + "\n"),
        (chart / "README.md", update_readme(read(chart / "README.md"), rows(values, comments))),
        (chart / "templates/guard-policy.yaml", policy_template(told("guard"), "guard")),
        (chart / "templates/own-writes.yaml", policy_template(told("guard", "own-writes"), "ownWrites")),
        (chart / "files/rules.yaml", merged(*rules)),
        (chart / "files/dashboard.json", board),
        (monitoring / "dashboard.json", board),
        (monitoring / "prometheusrule.yaml", prometheus_rule(*rules)),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
