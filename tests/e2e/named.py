# SPDX-License-Identifier: Apache-2.0
"""Verdicts on pods of dialects that name the cards of each container in annotations."""

import collections

from hardware import NO_CARD
from kubeapi import wait_for
from kubelet import TERMINAL


def manage(config, path, resources, **verbs):
    """Makes kube-scheduler's configuration one for these resources at another path."""
    for extender in config["extenders"]:
        prefix = extender["urlPrefix"].rpartition("/")[0]
        extender["urlPrefix"] = f"{prefix}/{path}"
        if "bindVerb" in extender:
            extender["managedResources"] = [
                {"name": name, "ignoredByScheduler": False} for name in resources
            ]
            extender.update(verbs)
    return config


def held(world):
    """{(pod, container index): cards} as the extender has it."""
    found = collections.defaultdict(list)
    for node in world.ops("/api/v1/nodes")["nodes"]:
        for pod in node["pods"]:
            for share in pod["shares"]:
                found[pod["name"], share["container"]].append(share["card"])
    return {place: sorted(cards, key=str) for place, cards in found.items()}


def named(world, cards_of):
    """The same by the annotations of all bound pods that have not ended."""
    found = {}
    for pod in world.client.items("Pod"):
        if not pod["spec"].get("nodeName") or pod["status"].get("phase") in TERMINAL:
            continue
        for index, container in enumerate(pod["spec"]["containers"]):
            cards = cards_of(pod, container)
            if cards:
                found[pod["metadata"]["name"], index] = sorted(cards, key=str)
    return found


def verify(world, cards_of, timeout=30):
    """`cards_of(pod, container)`: the cards that the annotations name, [] for none."""
    tap, hardware = world.tap, world.fleet.hardware
    try:
        wait_for(lambda: held(world) == named(world, cards_of), timeout, 0.2)
    except TimeoutError:
        pass
    tap.equal(held(world), named(world, cards_of), "the ledger equals the cluster")
    pods = {pod["metadata"]["uid"]: pod for pod in world.client.items("Pod")}
    got = collections.defaultdict(list)
    for start in list(hardware.starts):
        if start.uid in pods:
            got[start.uid, start.container].append(start.card)
    wrong = []
    for (uid, name), cards in got.items():
        container = next(c for c in pods[uid]["spec"]["containers"] if c["name"] == name)
        if sorted(cards) != sorted(cards_of(pods[uid], container)):
            wrong.append((pods[uid]["metadata"]["name"], name, cards))
    lost = [start for start in hardware.starts if start.card == NO_CARD]
    tap.equal(wrong, [], f"every container got the cards of its pod ({len(got)} containers)")
    tap.equal(lost, [], "no container was left without a card")
    tap.equal(hardware.overcommits, [], "no card ever carried more than it has")
    tap.equal(world.fleet.failures, [], "the players are well")
    tap.equal(world.metric("gpuledger_ledger_drift"), 0, "no drift of its sums")
