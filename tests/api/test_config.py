#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The configuration file's schema is what the program writes, and says what the program does."""

import json
import pathlib
import tempfile

from common import ROOT, main, need, run, text

need("jsonschema", "yaml")

import jsonschema  # noqa: E402 pylint: disable=wrong-import-position
import yaml  # noqa: E402 pylint: disable=wrong-import-position

SCHEMA = "api/config.schema.json"
AGAIN = f"gpuledger serve --print-schema | python3 -m json.tool >{SCHEMA}"

# A file, whether the schema takes it, whether the program does. YAML here is what PyYAML and the
# program read alike.
FILES = [
    ("", True, True),
    ("# nothing\n", True, True),
    ("policy: spread\nmax-connections: 9\ngpushare-any-on-single-card: true\n", True, True),
    ("[]", False, False),
    ("spread", False, False),
    ("polcy: spread", False, False),
    ("help: true", False, False),
    ("config: gpuledger.yaml", False, False),
    ("print-schema: true", False, False),
    ("server: http://localhost", False, False),
    ("policy: random", False, False),
    ("policy: [spread]", False, False),
    ("policy: ''", False, False),
    ("log-level: debug", True, True),
    ("log-level: DEBUG", False, False),
    ("gpushare-memory-unit: MiB", True, True),
    ("gpushare-memory-unit: mib", False, False),
    ("gpushare-any-on-single-card: 1", False, False),
    ("context: a b", True, True),
    ("context: ''", True, True),
    ("context: {a: b}", False, False),
    ("kubeconfig: /etc/kubernetes/admin.conf", True, True),
    ("max-connections: 1", True, True),
    ("max-connections: 0", False, False),
    ("max-connections: 65536", True, True),
    ("max-connections: 65537", False, False),
    ("max-connections: 2.5", False, False),
    ("max-connections: many", False, False),
    ("max-body: 1MiB", True, True),
    ("max-body: 1000000", True, True),
    ("max-body: '1000000'", True, True),
    ("max-body: 1", False, False),
    ("max-body: 2000000000", False, False),
    ("max-body: 1 MiB", False, False),
    ("max-body: 1mib", False, False),
    ("max-body: 0.5GiB", False, False),
    ("max-body: MiB", False, False),
    ("bind-timeout: 9s", True, True),
    ("bind-timeout: 1m30s500ms", True, True),
    ("bind-timeout: 1500ms", True, True),
    ("bind-timeout: ''", False, False),
    ("bind-timeout: 9", False, False),
    ("bind-timeout: 30s1m", False, False),
    ("bind-timeout: 1s1s", False, False),
    ("bind-timeout: -9s", False, False),
    ("bind-timeout: 1.5s", False, False),
    ("listen: 127.0.0.1:80", True, True),
    ("listen: ':80'", True, True),
    ("listen: '[::1]:80'", True, True),
    ("listen: localhost:0", True, True),
    ("listen: '::1:80'", False, False),
    ("listen: '[]:80'", False, False),
    ("listen: localhost", False, False),
    ("listen: 'localhost:'", False, False),
    ("listen: localhost:http", False, False),
    ("listen: 'off'", False, False),
    ("ops-listen: 'off'", True, True),
    ("ops-listen: '[::]:80'", True, True),
    # A pattern cannot hold these bounds.
    ("bind-timeout: 1h", True, False),
    ("listen: localhost:65536", True, False),
    ("max-body: 2GiB", True, False),
    # Nor a key the company it keeps.
    ("snapshot-out: after.json", True, False),
    # What is taken, but not what its writer should rely on.
    ("context: 2024", False, True),
    ("policy:", False, True),
    ("max-connections: '9'", False, True),
    ("gpushare-any-on-single-card: 'true'", False, True),
]

# Command lines whose effective configuration is a configuration file.
CONFIGURATIONS = [
    [],
    ["--snapshot=a b.json", "--snapshot-out=\"'\\", "--listen=[::1]:80", "--ops-listen=off"],
    ["--kubeconfig=/k", "--context=2024", "--api-timeout=5m", "--listen=:0"],
    ["--policy=first-fit", "--gpushare-memory-unit=GiB", "--gpushare-any-on-single-card"],
    ["--max-body=1000000", "--max-connections=1", "--bind-timeout=1m1s1ms", "--assign-patience=0s"],
    ["--max-body=1GiB", "--log-level=debug", "--log-format=json", "--drain-timeout=10m"],
]


def errors(schema, document):
    validator = jsonschema.Draft7Validator(schema)
    return [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(document)]


def printed(*arguments):
    result = run("serve", "--print-config", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def check_schema(tap, schema):
    fresh = run("serve", "--print-schema")
    tap.equal((fresh.returncode, fresh.stderr), (0, ""), "--print-schema ends well")
    tap.ok(json.loads(fresh.stdout) == schema, f"{SCHEMA} is fresh", f"make it again: {AGAIN}")
    tap.equal(text(SCHEMA), json.dumps(schema, indent=4) + "\n", f"{SCHEMA} has the usual form")
    try:
        jsonschema.Draft7Validator.check_schema(schema)
        why = None
    except jsonschema.SchemaError as error:
        why = str(error)
    tap.ok(why is None, f"{SCHEMA} is a schema", why)
    keys = list(yaml.safe_load(printed()))
    tap.equal(list(schema["properties"]), keys, "it has the keys of --print-config")
    for key, property_ in schema["properties"].items():
        if "default" in property_:
            tap.equal(errors(property_, property_["default"]), [], f"{key}: the default is valid")


def check_files(tap, schema, path):
    for content, valid, accepted in FILES:
        path.write_text(content)
        tap.equal(not errors(schema, yaml.safe_load(content)), valid,
                  f"schema {'takes' if valid else 'refuses'} {content!r}")
        result = run("serve", "--print-config", "--config", path)
        tap.equal((result.returncode, result.stderr.count("\n")),
                  (0, 0) if accepted else (2, 1),
                  f"program {'takes' if accepted else 'refuses'} {content!r}")


def check_printed(tap, schema, path):
    for arguments in CONFIGURATIONS:
        output = printed(*arguments)
        title = " ".join(arguments) or "the defaults"
        tap.equal(errors(schema, yaml.safe_load(output)), [], f"--print-config is valid: {title}")
        path.write_text(output)
        again = printed("--config", path)
        tap.equal(yaml.safe_load(again), yaml.safe_load(output), f"and read again: {title}")


def check(tap):
    schema = json.loads((ROOT / SCHEMA).read_text())
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "gpuledger.yaml"
        check_schema(tap, schema)
        check_files(tap, schema, path)
        check_printed(tap, schema, path)


if __name__ == "__main__":
    main(check)
