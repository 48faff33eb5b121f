# SPDX-License-Identifier: Apache-2.0
"""What really runs on the cards: the truth that a ledger is compared with."""

import collections
import dataclasses
import threading

NO_CARD = -1


@dataclasses.dataclass(frozen=True)
class Start:
    """One container and the card that its node side handed to it; NO_CARD if it got none."""

    uid: str
    namespace: str
    pod: str
    node: str
    container: str
    init: bool
    amount: int
    card: int
    trouble: str = ""  # why there is no card, when it was not the matching that failed


class Hardware:
    """The cards of all played nodes. Any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self._sizes = {}
        self._running = {}
        self._ended = set()
        self._used = collections.Counter()
        self.starts = []
        self.overcommits = []
        self.peak = collections.Counter()

    def set_cards(self, node, sizes):
        with self._lock:
            self._sizes[node] = list(sizes)

    def start(self, starts):
        """All containers of one pod, at once."""
        starts = list(starts)
        with self._lock:
            self.starts += starts
            if not starts or starts[0].uid in self._ended:
                return
            self._running[starts[0].uid] = starts
            self._charge(starts, 1)

    def end(self, uid):
        """Its processes are gone; also for a pod that never started, which then never will."""
        with self._lock:
            self._ended.add(uid)
            starts = self._running.pop(uid, None)
            if starts:
                self._charge(starts, -1)

    def running(self):
        """{uid: [Start]} of this moment."""
        with self._lock:
            return dict(self._running)

    def used(self):
        """{(node, card): units} of this moment."""
        with self._lock:
            return {card: units for card, units in self._used.items() if units}

    def _charge(self, starts, sign):
        # A plain init container's share is free again before the pod's containers start.
        apps, peak = collections.Counter(), collections.Counter()
        for start in starts:
            place = start.node, start.card
            if start.card == NO_CARD:
                continue
            if start.init:
                peak[place] = max(peak[place], start.amount)
            else:
                apps[place] += start.amount
        for place in apps.keys() | peak.keys():
            self._used[place] += sign * max(apps[place], peak[place])
            self.peak[place] = max(self.peak[place], self._used[place])
            sizes = self._sizes[place[0]]
            if sign > 0 and self._used[place] > sizes[place[1]]:
                self.overcommits.append((place, self._used[place], starts[0].pod))
