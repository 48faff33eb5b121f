# SPDX-License-Identifier: Apache-2.0
"""Adds up, from the API server's own events, what every card carries; shares no code with gpuledger.

The annotations say which card a pod was given, the containers' limits how much of it. Nothing is
taken from the extender.
"""

import collections
import dataclasses
import threading

from feed import PodFeed, key
from gpushare import IDX, RESOURCE, card_index, pod_total
from kubelet import TERMINAL, limit

NO_CARD = -1


@dataclasses.dataclass(frozen=True)
class Holding:
    """What a bound pod holds; `card` is NO_CARD where nothing says which one."""

    namespace: str
    name: str
    node: str
    card: int
    units: int


def holding(pod):
    """None for a pod that holds nothing: unbound, ended, or without GPU memory."""
    node = pod["spec"].get("nodeName")
    # A plain init container is over before the others start.
    inits = [limit(container, RESOURCE) for container in pod["spec"].get("initContainers", [])]
    units = max([pod_total(pod), *inits])
    if not node or pod["status"].get("phase") in TERMINAL or units == 0:
        return None
    return Holding(*key(pod), node, card_index(pod), units)


class Auditor:
    """Follows every event and keeps what broke a rule. Use as a context manager."""

    def __init__(self, client):
        self.broken = []
        self.bound = 0
        self._client = client
        self._lock = threading.Lock()
        self._sizes = {}
        self._held = {}
        self._cards = {}
        self._used = collections.Counter()
        self._feed = None

    def __enter__(self):
        self._feed = PodFeed(self._client, [self._observe])
        self._feed.start()
        self._feed.synced.wait(30)
        return self

    def __exit__(self, *_):
        self._feed.stop()

    def set_cards(self, node, sizes):
        with self._lock:
            self._sizes[node] = list(sizes)

    def card_of(self, uid):
        """The card that the pod was bound to, also after its end; None if it never was."""
        with self._lock:
            return self._cards.get(uid)

    def held(self):
        """{uid: Holding} of this moment."""
        with self._lock:
            return dict(self._held)

    def _observe(self, kind, pod):
        uid = pod["metadata"]["uid"]
        now = None if kind == "DELETED" else holding(pod)
        with self._lock:
            before = self._held.pop(uid, None)
            if before is not None:
                self._used[before.node, before.card] -= before.units
            if now is None:
                return
            self._held[uid] = now
            self._note_card(uid, now)
            place = now.node, now.card
            self._used[place] += now.units
            if now.card == NO_CARD or now == before:
                return
            sizes = self._sizes.get(now.node, [])
            size = sizes[now.card] if now.card < len(sizes) else 0
            if self._used[place] > size:
                self.broken.append(
                    f"{now.node} card {now.card}: {self._used[place]} of {size} with {now.name}, beside "
                    f"{self._beside(uid, place)}; pods were listed {self._feed.lists} times"
                )

    def _beside(self, uid, place):
        return ", ".join(f"{other.name} ({other.units})" for its, other in self._held.items()
                         if its != uid and (other.node, other.card) == place)

    def _note_card(self, uid, now):
        earlier = self._cards.get(uid)
        if earlier is None:
            self.bound += 1
        elif earlier not in (NO_CARD, now.card):
            self.broken.append(f"{now.name}: {IDX} changed from {earlier} to {now.card}")
        self._cards[uid] = now.card
