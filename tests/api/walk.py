# SPDX-License-Identifier: Apache-2.0
"""Requests to a running program whose answers are held against its document."""

import collections
import contextlib
import http.client
import json

from program import JSON, PATIENCE


class Answer(collections.namedtuple("Answer", "status headers body")):
    @property
    def type(self):
        return self.headers.get("Content-Type")

    @property
    def media(self):
        return self.type and self.type.split(";")[0]


def send(base, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request(method, path, body, {**(JSON if method == "POST" else {}), **(headers or {})})
        reply = connection.getresponse()
        return Answer(reply.status, reply.headers, reply.read())


def announce(base, path, length):
    """Only the head of a request; the answer may come before its body does."""
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.putrequest("POST", path)
        connection.putheader("Content-Length", str(length))
        connection.putheader("Content-Type", "application/json")
        connection.endheaders()
        reply = connection.getresponse()
        return Answer(reply.status, reply.headers, reply.read())


class Walk:
    """Requests to one server, each a line of the result."""

    def __init__(self, tap, document, server):
        self.tap = tap
        self.document = document
        self.bases = {name: server.address(name) for name in ("scheduler", "operations")}
        self.met = set()  # (operation, status, media type) that were answered

    def hold(self, operation, answer, title, wanted=None):
        """The answer is as the document says, and has the status and media type that are wanted."""
        self.met.add((operation, answer.status, answer.media))
        faults = self.document.faults(operation, answer) if operation else ["it is not in there"]
        if wanted and (answer.status, answer.media) != wanted:
            faults.append(f"it is {answer.status} {answer.media}")
        self.tap.ok(not faults, title, "\n".join(faults + [repr(answer.body[:400])]))

    def takes(self, component, body, valid):
        """The document takes a body or does not; of text that is no JSON it has no opinion."""
        if valid is None:
            return
        value = json.loads(body) if isinstance(body, str) else body
        errors = self.document.errors({"$ref": f"#/components/schemas/{component}"}, value)
        self.tap.equal(not errors, valid,
                       f"{component} {'takes' if valid else 'refuses'} {json.dumps(value)[:60]}")

    def ask(self, listener, method, path, status=200, body=None, media="application/json",
            headers=None):
        """One request, whose answer has this status and media type. Returns its content."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        operation = self.document.find(listener, "GET" if method == "HEAD" else method, path)
        answer = send(self.bases[listener], method, path, body, headers)
        sent = f" {str(body)[:60]}" if body is not None else ""
        shown = "".join(f" ({key}: {value})" for key, value in (headers or {}).items())
        title = f"{listener}: {method} {path}{shown}{sent}: {status} {media}"
        self.hold(operation, answer, title, (status, media))
        content = answer.body.decode()
        return json.loads(content) if answer.media == "application/json" else content

    def text(self, path, **wanted):
        return self.ask("operations", "GET", path, media="text/plain", **wanted)

    def json(self, path, **wanted):
        return self.ask("operations", "GET", path, **wanted)
