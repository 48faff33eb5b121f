# SPDX-License-Identifier: Apache-2.0
"""Bodies that are too large, and too many at a time; answers that nobody takes."""

import collections
import contextlib
import fcntl
import http.client
import itertools
import socket
import sys
import time

from program import PATIENCE, listing, node
from walk import Answer, announce, send

# Bytes of one; of all, less than four times that.
BODY_MAX = {"operations": 4 << 20, "scheduler": 64 << 20}

SIOCOUTQ = 0x5411  # from linux/sockios.h


def check_sizes(walk, listener):
    """Bodies that are too large, and then too many at a time."""
    operations = [o for o in walk.document.operations
                  if (o.listener, o.method) == (listener, "POST")]
    media = "application/json" if listener == "operations" else None
    for operation in operations:
        # A large one is refused by its head, before it comes.
        length = BODY_MAX[listener] + 1
        answer = (announce(walk.bases[listener], operation.path, length) if listener == "scheduler" else
                  send(walk.bases[listener], "POST", operation.path, b" " * length))
        walk.hold(operation, answer, f"{listener}: POST {operation.path}: 413", (413, media))
    for operation, answer in stall(walk, operations, listener):
        walk.hold(operation, answer, f"{listener}: POST {operation.path}: 503", (503, media))


def stall(walk, operations, listener):
    """(operation, what is answered to its body, which stops before its last byte, when a fourth one needs
    the memory). The first three need it from the last three."""
    host, port = walk.bases[listener].removeprefix("http://").split(":")
    length = BODY_MAX[listener]
    rest = b" " * (length - 1)
    held = collections.deque()
    with contextlib.ExitStack() as stack:
        for operation in [*operations, *itertools.islice(itertools.cycle(operations), 3)]:
            one = stack.enter_context(socket.create_connection((host, int(port)), PATIENCE))
            one.sendall(f"POST {operation.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {length}\r\n\r\n".encode())
            one.sendall(rest)
            await_read(one)
            held.append((operation, one))
            if len(held) == 4:
                operation, first = held.popleft()
                first.sendall(b" ")
                reply = http.client.HTTPResponse(first)
                reply.begin()
                yield operation, Answer(reply.status, reply.headers, reply.read())
                first.close()


def await_read(connection):
    """Until all that was sent is the server's."""
    deadline = time.monotonic() + PATIENCE
    while unread(connection) and time.monotonic() < deadline:
        time.sleep(0.01)


def unread(connection):
    """Bytes that the other side's kernel holds for its program, or ours for it."""
    local = "{1:04X}".format(*connection.getsockname())
    with open("/proc/net/tcp", encoding="ascii") as table:
        for fields in map(str.split, table):
            if fields[2].endswith(f":{local}"):
                if int(fields[4].split(":")[1], 16):
                    return True
    return bool(int.from_bytes(fcntl.ioctl(connection, SIOCOUTQ, b"\0" * 4), sys.byteorder))


# Its views of all nodes take some megabytes each.
LARGE = listing(*(node(f"node-{i}", 16, 16) for i in range(5000)))
VIEWS = ("/api/v1/nodes", "/api/v1/wall", "/metrics", "/gpushare-scheduler/inspect", "/scheduler/status")


def check_unread(walk):
    """Views while the memory for answers is used up by clients that do not take theirs."""
    with contextlib.ExitStack() as stack:
        for operation in walk.document.operations:
            if operation.method != "GET" or operation.path not in VIEWS:
                continue
            deadline = time.monotonic() + 6 * PATIENCE
            base = walk.bases[operation.listener]
            host, port = base.removeprefix("http://").split(":")
            while (answer := send(base, "GET", operation.path)).status != 503:
                assert time.monotonic() < deadline, f"no {operation.path} was refused"
                one = stack.enter_context(socket.socket())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.connect((host, int(port)))
                one.sendall(f"GET {operation.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            media = "application/json" if operation.listener == "operations" else None
            walk.hold(operation, answer, f"{operation.listener}: GET {operation.path}: 503 {media}", (503, media))
        # What is small is shown all the same.
        walk.json("/api/v1/nodes/node-0")
        walk.ask("scheduler", "GET", "/gpushare-scheduler/inspect/node-0")
