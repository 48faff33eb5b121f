#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: attacks.py NAME PORT SECONDS [FROM]

Does one bad thing to a server on 127.0.0.1, over and over, from the loopback address FROM. Ends
after SECONDS, at most 300, or when its standard input does; prints a line when it has done it for
the first time, and at the end how often it did it. Meant for tests of this program only: it knows
no other host, and connections end with a reset, so that the ports of this machine are free again.
"""

import asyncio
import contextlib
import itertools
import os
import random
import resource
import socket
import ssl
import struct
import sys

HOST = "127.0.0.1"
SECONDS_MAX = 300
CONNECTIONS_MAX = 10000  # in all
RESET = struct.pack("ii", 1, 0)  # struct linger: on, no time
IP_BIND_ADDRESS_NO_PORT = 24  # the port is chosen by connect, which may share it
FILTER = b"POST /gpushare-scheduler/filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
VERSION = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
MIB = 1 << 20

# What an attack needs to know of the server, how many times it happened, and its connections.
port, source = 0, HOST
done = connections = pods = 0


def count(n=1):
    global done
    if done == 0:
        print("begun", flush=True)
    done += n


async def connect():
    """A connection with small buffers on this side that ends with a reset."""
    global connections
    if connections >= CONNECTIONS_MAX:  # the attack goes on with those that it has
        await asyncio.sleep(SECONDS_MAX)
    connections += 1
    one = socket.socket()
    try:
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        one.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        one.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(one, (HOST, port))
        return await asyncio.open_connection(sock=one, limit=1 << 16)
    except BaseException:
        one.close()
        raise


async def wait_for_end(reader):
    """Until the server has closed the connection, in whatever way."""
    with contextlib.suppress(OSError):
        while await reader.read(1 << 16):
            pass


async def repeat(one, at_a_time):
    """Keeps so many of them going; a server that refuses or cuts is tried again."""
    rng = random.Random(1)

    async def keep_going():
        while True:
            writer = None
            try:
                reader, writer = await connect()
                await one(reader, writer)
            except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
                await asyncio.sleep(0.02)
            finally:
                if writer:
                    writer.transport.abort()

    tasks = []
    for _ in range(at_a_time):
        tasks.append(asyncio.create_task(keep_going()))
        if len(tasks) % 50 == 0:
            await asyncio.sleep(0.01 * rng.random())
    await asyncio.gather(*tasks)


# --- connections ----------------------------------------------------------------------------------


async def idle(reader, writer):
    count()
    await wait_for_end(reader)


async def idle_after_a_call(reader, writer):
    writer.write(VERSION)
    await reader.readuntil(b"\r\n\r\n")
    count()
    await wait_for_end(reader)


async def come_and_go(reader, writer):
    count()


async def half_closed(reader, writer):
    """The one that leaves ports waiting, since it has ended its side by itself: not too often."""
    writer.write(random.choice((b"", b"GET", VERSION, FILTER, FILTER + b"Content-Length: 10\r\n\r\n{")))
    writer.write_eof()
    count()
    await wait_for_end(reader)
    await asyncio.sleep(0.5)


# --- time -----------------------------------------------------------------------------------------


async def trickle(reader, writer, begin, pieces):
    writer.write(begin)
    count()
    end = asyncio.create_task(wait_for_end(reader))
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        finished, _ = await asyncio.wait({end}, timeout=0.1)
        if finished:
            break


async def slow(reader, writer):
    await random.choice((slow_head, slow_body, slow_chunks))(reader, writer)


async def slow_head(reader, writer):
    await trickle(reader, writer, FILTER + b"X-A: ", itertools.repeat(b"a"))


async def slow_body(reader, writer):
    await trickle(reader, writer, FILTER + b"Content-Length: 1000000\r\n\r\n", itertools.repeat(b" "))


async def slow_chunks(reader, writer):
    await trickle(reader, writer, FILTER + b"Transfer-Encoding: chunked\r\n\r\n",
                  itertools.repeat(b"1\r\n \r\n"))


async def unread_answers(reader, writer):
    writer.transport.pause_reading()
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(3000):
        writer.write(b"GET /gpushare-scheduler/inspect HTTP/1.1\r\nHost: localhost\r\n\r\n")
    count()
    await asyncio.sleep(10)


async def unread(reader, writer, path):
    """One view of the whole cluster, not read, and another at once when that is over."""
    writer.transport.pause_reading()
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    count()
    await asyncio.sleep(3)


async def unread_nodes(reader, writer):
    await unread(reader, writer, b"/api/v1/nodes")


async def unread_metrics(reader, writer):
    await unread(reader, writer, b"/metrics")


async def unread_status(reader, writer):
    await unread(reader, writer, b"/scheduler/status")


async def unread_filters(reader, writer):
    """A little body that makes an answer of some megabytes."""
    writer.transport.pause_reading()
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    names = b",".join(b'"x%05d"' % i for i in range(40000))
    body = (b'{"Pod":{"metadata":{"name":"p","namespace":"test","uid":"u"},"spec":{"containers":['
            b'{"name":"c","resources":{"limits":{"aliyun.com/gpu-mem":"1"}}}]}},"NodeNames":['
            + names + b"]}")
    writer.write(FILTER + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    count()
    await asyncio.sleep(3)


async def waiting_binds(reader, writer):
    """Binds of pods that have to wait for one that its node side never takes."""
    global pods
    pods += 1
    body = b'{"PodName":"w%d","PodNamespace":"test","PodUID":"uid-w%d","Node":"n"}' % (pods, pods)
    writer.write(b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Content-Length: %d\r\n\r\n" % len(body) + body)
    count()
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(0.1)


# --- sizes ----------------------------------------------------------------------------------------


async def stalled_bodies(reader, writer):
    """All but the last byte of the largest body there may be."""
    writer.write(FILTER + b"Content-Length: %d\r\n\r\n" % (64 * MIB))
    for _ in range(64 * 4 - 1):
        writer.write(b" " * (MIB // 4))
        await writer.drain()
    count()
    await wait_for_end(reader)


async def gigabytes(reader, writer):
    await random.choice((announced_gigabyte, chunked_gigabyte))(reader, writer)


async def announced_gigabyte(reader, writer):
    writer.write(FILTER + b"Content-Length: 1073741824\r\n\r\n")
    await pour(reader, writer, b" " * (MIB // 4))


async def pour(reader, writer, piece):
    """A gigabyte, if the server takes it."""
    end = asyncio.create_task(wait_for_end(reader))
    count()
    for _ in range(4096):
        writer.write(piece)
        if end.done():
            break
        await writer.drain()
    end.cancel()


async def chunked_gigabyte(reader, writer):
    writer.write(FILTER + b"Transfer-Encoding: chunked\r\n\r\n")
    await pour(reader, writer, b"40000\r\n" + b" " * (MIB // 4) + b"\r\n")


async def long_heads(reader, writer):
    writer.write(random.choice((
        b"GET /" + b"a" * MIB + b" HTTP/1.1\r\n\r\n",
        VERSION[:-2] + b"X-A: " + b"a" * MIB,
        VERSION[:-2] + b"a:b\r\n" * 100000,
        VERSION[:-2] + b" folded\r\n" * 100000,
    )))
    await writer.drain()
    count()
    await wait_for_end(reader)


async def bombs(reader, writer):
    """Bodies from which much larger things could be made."""
    body = random.choice((
        b"[" + b"0," * (4 * MIB) + b"0]",
        b"[" * (4 * MIB),
        b'{"Pod":' * MIB,
        b'{"Pod":{"metadata":{"annotations":{' + b'"a":"",' * MIB + b'"a":""}}}}',
        b'{"Pod":{"spec":{"containers":[' + b"{}," * (2 * MIB) + b"{}]}}}",
        b'{"NodeNames":[' + b'"",' * (2 * MIB) + b'""]}',
    ))
    writer.write(FILTER + b"Content-Length: %d\r\n\r\n" % len(body))
    writer.write(body)
    await writer.drain()
    await reader.readuntil(b"\r\n\r\n")
    count()


# --- floods ---------------------------------------------------------------------------------------


async def pipelined(reader, writer):
    for _ in range(20):
        writer.write(VERSION * 50)
        await writer.drain()
    end = asyncio.create_task(wait_for_end(reader))
    await asyncio.wait({end}, timeout=0.2)
    end.cancel()
    count()


async def calls(reader, writer):
    body = b'{"PodName":"p","PodNamespace":"n","PodUID":"u","Node":"node-0"}'
    bind = (b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)) + body
    inspect = b"GET /gpushare-scheduler/inspect HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for _ in range(50):
        writer.write(random.choice((bind, inspect, FILTER + b"Content-Length: 2\r\n\r\n{}")))
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        count()


async def strangers(reader, writer):
    """Binds of pods that nobody has, each with a name of its own."""
    global pods
    for _ in range(50):
        pods += 1
        body = (b'{"PodName":"x%d","PodNamespace":"ns%d","PodUID":"uid-x%d","Node":"node-0"}'
                % (pods, pods % 97, pods))
        writer.write(b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        count()


async def garbage(reader, writer):
    rng = random.Random(done)
    writer.write(random.choice((b"", VERSION, b"POST / HTTP/1.1\r\n", FILTER,
                                FILTER + b"Transfer-Encoding: chunked\r\n\r\n",
                                b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
    writer.write(rng.randbytes(rng.choice((1, 100, 10000))))
    count()
    end = asyncio.create_task(wait_for_end(reader))
    await asyncio.wait({end}, timeout=0.05)
    end.cancel()


# --- TLS ------------------------------------------------------------------------------------------


def client_hello():
    """The first message of a handshake."""
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    session = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


async def endless_handshakes(reader, writer):
    """Begun and not gone on with, by half or by whole messages, or a byte at a time."""
    hello = client_hello()
    await trickle(reader, writer, *random.choice((
        (b"", itertools.repeat(b"")),
        (hello[: len(hello) // 2], itertools.repeat(b"")),
        (hello, itertools.repeat(b"")),
        (b"", (bytes([byte]) for byte in hello)),
    )))


async def broken_handshakes(reader, writer):
    """Each costs the server a signature."""
    hello = client_hello()
    writer.write(hello)
    await reader.read(1000)
    writer.write(random.Random(done).randbytes(200))
    count()
    await wait_for_end(reader)


# How each is done: what, and how many at a time.
ATTACKS = {
    "idle": (idle, 1000),
    "idle-beyond-the-limit": (idle, 4600),
    "idle-after-a-call": (idle_after_a_call, 4400),
    "come-and-go": (come_and_go, 20),
    "half-closed": (half_closed, 50),
    "slow": (slow, 400),
    "unread-answers": (unread_answers, 15),
    "unread-nodes": (unread_nodes, 64),
    "unread-metrics": (unread_metrics, 64),
    "unread-status": (unread_status, 300),
    "unread-filters": (unread_filters, 64),
    "waiting-binds": (waiting_binds, 200),
    "stalled-bodies": (stalled_bodies, 6),
    "gigabytes": (gigabytes, 3),
    "long-heads": (long_heads, 10),
    "bombs": (bombs, 2),
    "pipelined": (pipelined, 10),
    "calls": (calls, 10),
    "strangers": (strangers, 10),
    "garbage": (garbage, 20),
    "endless-handshakes": (endless_handshakes, 300),
    "broken-handshakes": (broken_handshakes, 4),
}


async def wait_for_stdin(seconds):
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def readable():
        if not os.read(0, 1024):
            loop.remove_reader(0)
            ended.set()

    loop.add_reader(0, readable)
    try:
        await asyncio.wait_for(ended.wait(), seconds)
    except asyncio.TimeoutError:
        pass


async def attack(name, seconds):
    one, at_a_time = ATTACKS[name]
    going = asyncio.create_task(repeat(one, at_a_time))
    await wait_for_stdin(seconds)
    going.cancel()
    await asyncio.gather(going, return_exceptions=True)


def main():
    global port, source
    if len(sys.argv) < 4 or sys.argv[1] not in ATTACKS:
        sys.exit(__doc__ + "\nNAME is one of " + " ".join(ATTACKS))
    port = int(sys.argv[2])
    source = sys.argv[4] if len(sys.argv) > 4 else HOST
    if not source.startswith("127."):
        sys.exit("attacks.py: FROM is a loopback address")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    loop_seconds = min(float(sys.argv[3]), SECONDS_MAX)
    asyncio.run(attack(sys.argv[1], loop_seconds))
    print(done)


if __name__ == "__main__":
    main()
