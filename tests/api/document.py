# SPDX-License-Identifier: Apache-2.0
"""An OpenAPI 3.0 document: its operations, and answers held against it."""

import collections
import json

import jsonschema
import yaml

METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")

Operation = collections.namedtuple("Operation", "listener method path")


def as_json_schema(node):
    """OpenAPI's dialect in JSON Schema's words: the one difference in use is `nullable`."""
    if isinstance(node, list):
        return [as_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {key: as_json_schema(value) for key, value in node.items() if key != "nullable"}
    if node.get("nullable") is True:
        plain["type"] = [plain["type"], "null"]
        if "enum" in plain:
            plain["enum"].append(None)
    return plain


def subschemas(schema, place):
    """A schema and those within it, each with its place; no reference is followed."""
    yield place, schema
    for key, value in schema.get("properties", {}).items():
        yield from subschemas(value, f"{place}.{key}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from subschemas(schema[key], f"{place}[]")
    for key in ("allOf", "anyOf", "oneOf"):
        for value in schema.get(key, []):
            yield from subschemas(value, place)


class Document:
    def __init__(self, text):
        self.tree = yaml.safe_load(text)
        self.plain = as_json_schema(self.tree)
        self.operations = dict(self._operations())
        self.met = set()  # places of properties that some answer had

    def _operations(self):
        """Of every listener that a path is on: which, and what the document says of it."""
        for path, item in self.plain["paths"].items():
            for server in item.get("servers", self.plain["servers"]):
                for method in METHODS:
                    if method in item:
                        yield Operation(server["description"], method.upper(), path), item[method]

    def schemas(self):
        """Every schema that is written in the document: (place, schema)."""
        for name, schema in self.tree["components"]["schemas"].items():
            yield from subschemas(schema, name)

    def references(self, node=None):
        """Every "$ref"."""
        node = self.tree if node is None else node
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            node = list(node.values())
        if isinstance(node, list):
            for item in node:
                if item is not None:
                    yield from self.references(item)

    def resolve(self, node):
        """What a reference leads to, KeyError if nowhere; another node is its own."""
        while "$ref" in node:
            place, node = node["$ref"].split("/"), self.plain
            for key in place[1:]:
                node = node[key]
        return node

    def find(self, listener, method, path):
        """The operation that a path, as it is sent, belongs to; a name comes before a parameter."""
        parts = [part for part in path.split("?")[0].split("/") if part]

        def matches(operation):
            pattern = [part for part in operation.path.split("/") if part]
            return (
                (operation.listener, operation.method) == (listener, method)
                and len(pattern) == len(parts)
                and all(p.startswith("{") or p == part for p, part in zip(pattern, parts))
            )

        found = sorted(filter(matches, self.operations), key=lambda o: o.path.count("{"))
        return found[0] if found else None

    def response(self, operation, status):
        responses = self.operations[operation]["responses"]
        return self.resolve(responses[str(status)]) if str(status) in responses else None

    def errors(self, schema, value):
        """What is wrong with a value, in sentences; the properties that it has are noted."""
        whole = {"allOf": [schema], "components": self.plain["components"]}
        validator = jsonschema.Draft7Validator(whole)
        self._meet(schema, value, "")
        return [
            f"{'/'.join(map(str, error.absolute_path)) or 'the whole'}: {error.message}"
            for error in validator.iter_errors(value)
        ]

    def _taking(self, schemas, value):
        """Those that the value is valid by."""
        return [schema for schema in schemas if jsonschema.Draft7Validator(
            {"allOf": [schema], "components": self.plain["components"]}).is_valid(value)]

    def _meet(self, schema, value, place):
        if "$ref" in schema:
            place = schema["$ref"].rsplit("/", 1)[1]
            schema = self.resolve(schema)
        for part in schema.get("allOf", []) + self._taking(schema.get("oneOf", []), value):
            self._meet(part, value, place)
        if isinstance(value, dict):
            for key in value.keys() & schema.get("properties", {}).keys():
                self.met.add(f"{place}.{key}")
                self._meet(schema["properties"][key], value[key], f"{place}.{key}")
            if isinstance(schema.get("additionalProperties"), dict):
                for key in value.keys() - schema.get("properties", {}).keys():
                    self._meet(schema["additionalProperties"], value[key], f"{place}[]")
        elif isinstance(value, list) and "items" in schema:
            for item in value:
                self._meet(schema["items"], item, f"{place}[]")

    def faults(self, operation, answer):
        """What an answer has that the document does not say of the operation."""
        response = self.response(operation, answer.status)
        if response is None:
            return [f"status {answer.status} is not in the document"]
        content = response.get("content", {})
        if not content:
            return [] if not answer.body and not answer.media else ["a body is not in the document"]
        if answer.media not in content:
            return [f"content type {answer.type!r} is not in the document"]
        schema = content[answer.media]["schema"]
        try:
            value = answer.body.decode("utf-8")
            if answer.media == "application/json":
                value = json.loads(value)
        except ValueError as error:
            return [str(error)]
        return self.errors(schema, value)
