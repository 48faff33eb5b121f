# SPDX-License-Identifier: Apache-2.0
"""A proxy on loopback that misbehaves on demand: a partition, a slow network, late packets.

It takes plain text and speaks TLS to the server, so that it can tell Bindings from all else. What
it has taken from one side it delivers to the other whatever becomes of the sender, as a network
does: a request held here arrives at its server long after its client has given up or died.
"""

import collections
import contextlib
import random
import select
import socket
import ssl
import threading
import time

CHUNK = 1 << 16
CONNECT_TIMEOUT_S = 10
LINGER_S = 1  # a server that sees its client go drops the request that it is working on


def _is_binding(chunk, prefix):
    """Whether a Binding of such a pod begins here; curl writes a request's head at once."""
    line = chunk.split(b"\r\n", 1)[0]
    return line.startswith(b"POST ") and b"/binding" in line and b"/pods/" + prefix in line


class _TlsEnd:
    """A TLS connection that one thread reads and another writes."""

    def __init__(self, plain, context, host):
        self._tls = context.wrap_socket(plain, server_hostname=host)
        self._tls.setblocking(False)
        self._lock = threading.Lock()

    def shutdown(self, how):
        # SSLSocket's own would forget about TLS for what is still to be read.
        socket.socket.shutdown(self._tls, how)

    def _try(self, call):
        while True:
            with self._lock:
                try:
                    return call()
                except ssl.SSLWantReadError:
                    wanted = select.POLLIN
                except ssl.SSLWantWriteError:
                    wanted = select.POLLOUT
            poll = select.poll()
            poll.register(self._tls, wanted)
            poll.poll(1000)

    def recv(self, size):
        return self._try(lambda: self._tls.recv(size))

    def sendall(self, data):
        rest = memoryview(data)
        while rest:
            rest = rest[self._try(lambda some=rest: self._tls.send(some)) :]


class _Pipe:
    """One direction of one connection: a thread that takes, and one that delivers."""

    def __init__(self, proxy, source, target, upwards):
        self._proxy, self._source, self._target = proxy, source, target
        self._upwards = upwards
        self._chunks = collections.deque()
        self._news = threading.Condition()
        for run in (self._take, self._deliver):
            threading.Thread(target=run, daemon=True).start()

    def _put(self, chunk):
        with self._news:
            self._chunks.append(chunk)
            self._news.notify()

    def _take(self):
        with contextlib.suppress(OSError):
            while chunk := self._source.recv(CHUNK):
                self._put(chunk)
        self._put(b"")

    def _deliver(self):
        while True:
            with self._news:
                while not self._chunks:
                    self._news.wait()
                chunk = self._chunks.popleft()
            self._proxy.pass_through(self._upwards, chunk)
            try:
                if not chunk:
                    time.sleep(LINGER_S if self._upwards else 0)
                    self._target.shutdown(socket.SHUT_WR)
                    return
                self._target.sendall(chunk)
            except OSError:
                with contextlib.suppress(OSError):
                    self._source.shutdown(socket.SHUT_RDWR)
                return


class Proxy:
    """Forwards to (host, port); a context manager. `port` is its own."""

    def __init__(self, target, ca_file, seed=0):
        self._target = target
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._random = random.Random(seed)
        self._change = threading.Condition()
        self._held = {True: False, False: False}
        self._held_pods = None
        self.bindings_waiting = 0
        self._delay_s = 0.0
        self._cut = False
        self._sockets = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # Closing alone would not wake the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.heal()
        self.cut()

    # What goes wrong

    def cut(self):
        """Ends every connection, and each new one at once."""
        with self._change:
            self._cut = True
            doomed, self._sockets = self._sockets, set()
        for end in doomed:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def hold(self, up=True, down=True):
        """Keeps what is sent to the server (up) or by it (down) until it is told otherwise."""
        with self._change:
            self._held = {True: up, False: down}
            self._change.notify_all()

    def hold_bindings(self, prefix):
        """Keeps Bindings of pods whose names begin so, and what follows on their connections."""
        with self._change:
            self._held_pods = prefix.encode()

    def slow(self, delay_s):
        """Everything takes up to so much longer."""
        with self._change:
            self._delay_s = delay_s

    def heal(self):
        with self._change:
            self._cut = False
            self._delay_s = 0.0
            self._held_pods = None
        self.hold(up=False, down=False)

    # The machinery

    def pass_through(self, upwards, chunk):
        with self._change:
            delay_s = self._random.uniform(0, self._delay_s)
        if delay_s:
            time.sleep(delay_s)
        with self._change:
            late = upwards and self._held_pods and _is_binding(chunk, self._held_pods)
            self.bindings_waiting += bool(late)
            while self._held[upwards] or (late and self._held_pods):
                self._change.wait()
            self.bindings_waiting -= bool(late)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client):
        try:
            server = socket.create_connection(self._target, CONNECT_TIMEOUT_S)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = _TlsEnd(server, self._tls, self._target[0])
        except OSError:
            client.close()
            return
        with self._change:
            if self._cut:
                client.close()
                return
            self._sockets |= {client, server}
        _Pipe(self, client, server, True)
        _Pipe(self, server, client, False)
