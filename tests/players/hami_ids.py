# SPDX-License-Identifier: Apache-2.0
"""kubelet's device ids, where HAMi's plugin hands out their cards in place of those that were promised.
No I/O.

Source: Project-HAMi/HAMi@v2.10.0 (also v2.9.0): pkg/device-plugin/nvidiadevice/nvinternal/plugin/server.go
GetPreferredAllocation and Allocate, with enablegetpreferredallocation in config.json (off unless said);
kubernetes@v1.36.3: pkg/kubelet/cm/devicemanager/manager.go devicesToAllocate.
"""


class Ids:
    """`counts`: {card: how many ids}."""

    def __init__(self, counts, rng):
        self.all = [(card, number) for card, count in counts.items() for number in range(count)]
        self.rng = rng
        self.held = {}  # pod: {id}
        self.again = {}  # pod: ids of its init containers, which its next container is given first

    def take(self, pod, promised, init):
        """The cards of a container that was promised these, by position. ids come in any order."""
        held = self.held.setdefault(pod, set())
        chosen = sorted(self.again.get(pod, ()))[: len(promised)]
        if len(chosen) < len(promised):
            chosen += self._choose(promised, len(promised) - len(chosen))
        held.update(chosen)
        again = self.again.setdefault(pod, set())
        again.difference_update(chosen)
        if init:
            again.update(chosen)
        self.rng.shuffle(chosen)
        return [card for card, _ in chosen]

    def _choose(self, promised, count):
        """Ids of the promised cards. If one of them has none left, the plugin's answer is an error, and
        kubelet takes any."""
        taken = set().union(*self.held.values())
        free = [each for each in self.all if each not in taken]
        preferred = []
        for card in promised[:count]:
            fits = [each for each in free if each[0] == card and each not in preferred]
            preferred += fits[:1]
        return preferred if len(preferred) == count else self.rng.sample(free, count)

    def end(self, pod):
        self.held.pop(pod, None)
        self.again.pop(pod, None)
