# SPDX-License-Identifier: Apache-2.0
"""What must hold on a node when nothing moves any more: the environment inside each container is what
the pod's annotations say and what the ledger says; no container is without a card; no card carries
more than it has.
"""

import collections
import dataclasses
import statistics
import typing

from kubeapi import wait_for
from kubelet import TERMINAL, limit


@dataclasses.dataclass(frozen=True)
class Family:
    """How to read what one device plugin and its annotations say. A card is its number, None where
    nobody can tell, or -1 where the container was refused one."""

    resource: str
    got: typing.Callable  # (environment, node) -> [card]
    named: typing.Callable  # (pod, container's index, node) -> [card]; None: there is no annotation
    sizes: list  # of each card, in units of `resource`
    share: typing.Callable = None  # (container) -> units of each card; the resource's limit if None


@dataclasses.dataclass
class Verdict:
    served: int = 0
    broken: list = dataclasses.field(default_factory=list)  # without a card, for good
    swapped: list = dataclasses.field(default_factory=list)  # another card than was written
    ledger: list = dataclasses.field(default_factory=list)  # another card than the ledger has
    overfull: list = dataclasses.field(default_factory=list)
    failed: list = dataclasses.field(default_factory=list)  # rejected by kubelet
    waiting: list = dataclasses.field(default_factory=list)  # neither runs nor has ended

    def add(self, other):
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def report(self, tap, what, pods, rejected=0):
        """A line each. `pods`: how many there are; `rejected`: how many of them kubelet may turn
        away, by what the scenario did."""
        seen = self.served + len(self.broken) + len(self.failed)
        tap.ok(seen >= pods, f"{what}: kubelet has dealt with {pods} pods", f"{seen} of {pods}")
        tap.ok(not self.broken, f"{what}: no pod is without a card"
               f" ({len(self.broken)} of {self.served + len(self.broken)})", self.broken)
        tap.ok(not self.swapped, f"{what}: every container has the card of its pod's annotation"
               f" ({self.served} pods)", self.swapped)
        tap.ok(not self.ledger, f"{what}: the ledger has what the containers have", self.ledger)
        tap.ok(not self.overfull, f"{what}: no card is given twice", self.overfull)
        tap.ok(len(self.failed) <= rejected, f"{what}: kubelet rejects"
               f" {'no pod' if not rejected else f'at most {rejected} pods'}"
               f" ({len(self.failed)})", self.failed)
        tap.ok(not self.waiting, f"{what}: no pod is stuck", self.waiting)


def shares_of(cluster):
    """{uid: {container's index: [card]}} as the ledger has it; cards are numbers, or None."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for node in cluster.ops("/api/v1/nodes")["nodes"]:
        for pod in node["pods"]:
            for share in pod["shares"]:
                found[pod["uid"]][share["container"]].append(share["card"])
    return found


def _ordered(cards):
    return sorted(cards, key=lambda card: -2 if card is None else card)


def judge(cluster, family, namespace="default", prefix="", ledger_s=15):
    """Look at all pods now. The ledger follows the API server, so it gets a moment."""
    verdict = Verdict()
    pods = cluster.pods(prefix, namespace)
    load = collections.Counter()
    has = {}
    for pod in pods:
        name, phase = pod["metadata"]["name"], pod["status"].get("phase")
        amounts = [limit(each, family.resource) for each in pod["spec"]["containers"]]
        if not any(amounts):
            continue
        if phase in TERMINAL:
            status = pod["status"]
            verdict.failed.append(f"{name}: {status.get('reason')}: {status.get('message', '')[:200]}")
            continue
        node = cluster.nodes.get(pod["spec"].get("nodeName"))
        if node is None or not cluster.settled(pod):
            verdict.waiting.append(_state(pod))
            continue
        good = True
        for index, container in enumerate(pod["spec"]["containers"]):
            if not amounts[index]:
                continue
            cards = family.got(node.environment(pod, container["name"]), node)
            if -1 in cards or not cards:
                verdict.broken.append(f"{name}/{container['name']}: {_state(pod)}")
                good = False
                continue
            for card in cards:
                load[node.name, card] += family.share(container) if family.share else amounts[index]
            said = family.named(pod, index, node)
            if said is not None and _ordered(said) != _ordered(cards):
                verdict.swapped.append(f"{name}/{container['name']}: has {cards}, annotation {said}")
            has[pod["metadata"]["uid"], index] = name, _ordered(cards)
        verdict.served += good
    for (node, card), amount in load.items():
        if card is not None and amount > family.sizes[card]:
            verdict.overfull.append(f"{node} card {card}: {amount} of {family.sizes[card]}")
    verdict.ledger = _ledger_differs(cluster, family, has, ledger_s)
    return verdict


def _ledger_differs(cluster, family, has, timeout):
    def differences():
        shares = shares_of(cluster)
        found = []
        for (uid, index), (name, cards) in has.items():
            booked = _ordered(shares.get(uid, {}).get(index, []))
            if [card for card in booked if card is not None] and booked != cards:
                found.append(f"{name} container {index}: has {cards}, ledger {booked}")
            elif not booked:
                found.append(f"{name} container {index}: has {cards}, the ledger does not know it")
            elif family.named is not unnamed and None in booked:
                found.append(f"{name} container {index}: has {cards}, ledger: no known card")
        return found

    try:
        wait_for(lambda: not differences(), timeout, 0.25)
    except TimeoutError:
        pass
    return differences()


def unnamed(pod, index, node):
    """For plugins whose cards nobody writes down."""
    return None


def _state(pod):
    status = pod["status"]
    said = [each.get("message", "") for each in status.get("conditions", [])
            if each["type"] == "PodScheduled" and each["status"] == "False"]
    return f"{pod['metadata']['name']}: {status.get('phase')} on {pod['spec'].get('nodeName')} {said}"


def figures(entries):
    """A line about how long pods took."""
    bound = [e["bound"] - e["created"] for e in entries if "bound" in e]
    ran = [e["running"] - e["bound"] for e in entries if "running" in e and "bound" in e]
    if not ran:
        return "no pod ran"
    whole = max(e["running"] for e in entries if "running" in e) - min(e["created"] for e in entries)
    return (
        f"{len(ran)} pods; created to bound {_three(bound)}, bound to Running {_three(ran)}, "
        f"all running after {whole:.1f} s"
    )


def _three(values):
    return f"{min(values):.2f} / {statistics.median(values):.2f} / {max(values):.2f} s"
