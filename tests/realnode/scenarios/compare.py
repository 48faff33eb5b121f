# SPDX-License-Identifier: Apache-2.0
"""Bursts of equal pods on two real nodes: kube-scheduler with gpuledger beside kube-scheduler alone.
By hand; what counts are the figures. docs/performance.md has some."""

import os

from judge import judge
from scenarios import gpushare, plugins

NODES = ("gpu-node", "other-node")
WAYS = ("without an extender", "gpuledger")


def prepare(cluster):
    cluster.kubelet[gpushare.REPORTS] = gpushare.SOON
    cluster.rights("base")
    cluster.extender_start()


def nodes_with(cluster, kind, arguments, resource, count):
    """Fresh nodes, whose plugins are of that kind."""
    for name in NODES:
        if name in cluster.nodes:
            devices = cluster.nodes[name].folder / "kubelet/device-plugins"
            cluster.retire(name)
            for path in devices.iterdir():
                path.unlink()
        cluster.node(name).plugin_start(kind, *arguments)
    for name in NODES:
        cluster.await_amount(name, resource, count)


def burst(cluster, way, limits, managed, prefix, count):
    """All wait before kube-scheduler is started. The pods' entries in the diary."""
    cluster.plane.scheduler_stop()
    names = [f"{prefix}{number}" for number in range(count)]
    for name in names:
        cluster.pod(name, limits)
    if way == "gpuledger":
        cluster.scheduler_start(resources=managed)
    else:
        cluster.plane.scheduler_start({})
    cluster.await_settled(names, 300)
    # Pods of an earlier scenario had the same names.
    return cluster.diary.entries(prefix)[-count:]


def compare(cluster, family, limits, managed, count, rounds):
    for number in range(rounds or 3):
        for way in WAYS:
            prefix = f"{way.split()[0]}-{number}-"
            entries = burst(cluster, way, limits, managed, prefix, count)
            bound = [entry["bound"] for entry in entries if "bound" in entry]
            ran = [entry["running"] for entry in entries if "running" in entry]
            found = judge(cluster, family, prefix=prefix, ledger_s=15 if way == "gpuledger" else 0)
            first = min(bound, default=0)
            cluster.tap.note(
                f"round {number + 1}, {way}: {len(ran)} of {count} run; all bound after "
                f"{max(bound, default=0) - first:.1f} s, running after {max(ran, default=0) - first:.1f} s, "
                f"{len(found.broken)} without a card, load {os.getloadavg()[0]:.0f}")
            if way == "gpuledger":
                found.report(cluster.tap, f"round {number + 1}", count)
            cluster.drop_pods()


def gpushare_compared(cluster, rounds, *arguments):
    cards = gpushare.CARDS
    nodes_with(cluster, "gpushare", (f"--cards={','.join(map(str, cards))}", *arguments),
               gpushare.MEMORY, sum(cards))
    for name in NODES:
        cluster.await_amount(name, "aliyun.com/gpu-count", len(cards))
    compare(cluster, gpushare.FAMILY, {gpushare.MEMORY: 1}, None, len(NODES) * sum(cards), rounds)


def scenario_compare_gpushare(cluster, rounds):
    """64 pods of gpushare fill four cards; three rounds unless --rounds says more."""
    gpushare_compared(cluster, rounds)


def scenario_compare_gpushare_unlimited(cluster, rounds):
    """The same with a plugin whose client knows no rate."""
    gpushare_compared(cluster, rounds, "--client-rate=unlimited")


def scenario_compare_nvidia(cluster, rounds):
    """64 pods of NVIDIA's plugin, four to a card, whose plugin asks nobody."""
    plugin = plugins.PLUGINS["nvidia"]
    resource = plugin.judged.resource
    nodes_with(cluster, plugin.kind, (f"--cards={','.join(map(str, plugin.cards))}",
                                      f"--options={plugin.options}"),
               resource, plugin.capacity[resource])
    compare(cluster, plugin.judged, plugin.limits(1), plugin.managed, len(NODES) * plugin.count, rounds)
