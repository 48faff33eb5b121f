# SPDX-License-Identifier: Apache-2.0
"""Nodes that share their cards in another way at another time: with pods, and when it does not come about."""

import contextlib
import json

from kubeapi import wait_for
from modes import CONFIG, MIG, STATE, ConfigManager, Follower, MigManager
from nvidia import GPU, Plugin, Sharing, labels
from scenarios.maintenance import Maintainer
from scenarios.nvidia import add_node, add_pod, node_of, set_labels, start
from world import SYSTEM, World

NODE, SHARE_NODE, MIG_NODE = "n1", "n2", "n3"
SLOTS = "gpuledger.io/slots"
LAYOUTS = {"all-1g.5gb": ("nvidia.com/mig-1g.5gb", 7), "all-3g.20gb": ("nvidia.com/mig-3g.20gb", 2)}
DAY, NIGHT = Sharing(replicas=4), Sharing()
SHARINGS = {"day": DAY, "night": NIGHT}
TAINT = "gpuledger.io/switching"
AHEAD = "about to be shared in another way"
FULL = "Insufficient nvidia.com/gpu"
FULL_CARDS = "as many holders as an annotation of the node lets them"


def calendar(world, text):
    path = world.folder / "calendar.yaml"
    path.write_text(text)
    return f"--calendar={path}"


def said(world, key, node=NODE):
    return world.client.get("Node", node)["metadata"].get("annotations", {}).get(key)


def label(world, key=CONFIG, node=NODE):
    return world.client.get("Node", node)["metadata"]["labels"].get(key)


def taints(world, node=NODE):
    return [each["key"] for each in world.client.get("Node", node)["spec"].get("taints", [])]


def patch_status(world, amounts, node=NODE):
    """What kubelet reports; what is not there any more has gone."""
    gone = {key: None for key in world.client.get("Node", node)["status"]["capacity"] if key.startswith("nvidia.com/")}
    amounts = {**gone, **amounts}
    world.client.patch("Node", node, {"status": {"capacity": amounts, "allocatable": amounts}}, subresource="status")


@contextlib.contextmanager
def config_manager(world, deaf=False):
    kubelet = world.fleet.kubelet(NODE)

    def report(value):
        if value is None:
            patch_status(world, {GPU: "0"})
            return
        sharing = SHARINGS[value]
        world.fleet.hardware.set_cards(NODE, [sharing.replicas] * 2)
        kubelet.manager.register([Plugin("01", sharing=sharing)])
        patch_status(world, {key: str(n) for key, n in kubelet.manager.capacity().items()})

    def tell(value):
        set_labels(world, NODE, labels(2, SHARINGS[value]))

    manager = ConfigManager(SHARINGS, deaf)
    with Follower(world.client, NODE, CONFIG, manager, report, tell) as follower:
        yield follower
    world.tap.ok(follower.failure is None, "the player is well", follower.failure)


def cut(layout):
    resource, n = LAYOUTS[layout]
    return Plugin([str(i) for i in range(n)], resource)


def counts(layout):
    """What GPU Feature Discovery says of the instances."""
    gone = {f"{resource}.count": None for resource, _ in LAYOUTS.values()}
    resource, n = LAYOUTS[layout]
    return {**gone, f"{resource}.count": str(n)}


@contextlib.contextmanager
def mig_manager(world, layout, **options):
    """Of a node with one card, and with a plugin that goes on with what it is given."""
    kubelet = world.fleet.kubelet(MIG_NODE)

    def report(value):
        if value is not None:
            world.fleet.hardware.set_cards(MIG_NODE, [1] * LAYOUTS[value][1])
            kubelet.manager.register([cut(value)])
        patch_status(world, {key: str(n) for key, n in kubelet.manager.capacity().items()} if value else {}, MIG_NODE)

    manager = MigManager(LAYOUTS, layout, **options)
    with Follower(world.client, MIG_NODE, MIG, manager, report,
                  lambda value: set_labels(world, MIG_NODE, counts(value))) as follower:
        yield follower
    world.tap.ok(follower.failure is None, "mig-manager's player is well", follower.failure)


def add_cut(world, layout):
    """A node of one A100, cut so."""
    facts = {f"{GPU}.product": "NVIDIA-A100-SXM4-40GB", f"{GPU}.memory": "40960", f"{GPU}.count": "1", "pool": "cut"}
    told = {key: value for key, value in counts(layout).items() if value}
    add_node(world, MIG_NODE, [1] * LAYOUTS[layout][1], [cut(layout)], {**facts, **told, MIG: layout, STATE: "success"})


def add_inference(world):
    """A node of gpushare with three pods on one of its two cards."""
    world.node(SHARE_NODE, [16, 16])
    set_labels(world, SHARE_NODE, {"pool": "inference"})
    names = [f"model{n}" for n in range(3)]
    for name in names:
        world.pod(name, 4)
    world.await_running(names)
    return names


def check_slots(world, models):
    """Two holders of each card: the third had to go, and nobody else."""
    tap = world.tap
    wait_for(lambda: said(world, SLOTS, SHARE_NODE) == "2", 120, 0.2, "the number of slots is set")
    left = [name for name in models if exists(world, name)]
    tap.equal(len(left), 2, "of three on one card one has gone")
    tap.equal((taints(world, SHARE_NODE), said(world, "gpuledger.io/switch", SHARE_NODE)), ([], None), "the node is given back")
    for name in ("model3", "model4"):
        world.pod(name, 4)
    world.await_running(["model3", "model4"], nudge=True)
    tap.equal([world.card(name)[1] for name in (*left, "model3", "model4")], [0, 0, 1, 1], "two on each card")
    world.pod("model5", 4)
    told = world.refusal("model5", FULL_CARDS)
    tap.ok(FULL_CARDS in told, "who would be the third is told why", told)


def check_auto(world, follower):
    """Two pods wanted large instances, of which there were none: the layout that has them was chosen."""
    tap = world.tap
    wait_for(lambda: (said(world, "gpuledger.io/switched", MIG_NODE) or "").startswith(f"{MIG}=all-3g.20gb@"), 120, 0.2,
             "the layout is chosen that serves most, and mig-manager has cut the card")
    tap.equal((label(world, MIG, MIG_NODE), follower.manager.applied), ("all-3g.20gb", "all-3g.20gb"), "by the label")
    tap.equal(taints(world, MIG_NODE), [], "the node is given back")
    world.await_running(["large0", "large1"], nudge=True)
    tap.equal([node_of(world, name) for name in ("large0", "large1")], [MIG_NODE] * 2, "pods of the chosen profile run")


def add_school(world):
    add_node(world, NODE, [4, 4], [Plugin("01", sharing=DAY)], {**labels(2, DAY), CONFIG: "day", "pool": "school"})


def start_school(world, text):
    world.kustomize("overlays/switch")
    add_school(world)
    start(world, calendar(world, text), "--nvidia-config-replicas=day=4,night=1")


def scenario_switch(tap):
    """From quarters by day to whole cards by night, with pods on the node: nobody comes who outlasts it, the
    others are evicted, and the node is given back when plugin, kubelet and labels agree. Beside it a node of gpushare
    gets fewer slots, and a node of MIG the layout that pods wait for."""
    always = '[{from: "00:00", to: "00:00", target: %s}]'
    always_night = (
        "{timeZone: UTC, notice: 3s, drain: 1m, deadline: 1m, maxPerHour: 6, maxPerNamespace: 5, "
        "layouts: {all-1g.5gb: {1g.5gb: 7}, all-3g.20gb: {3g.20gb: 2}}, nodes: ["
        f"{{selector: {{pool: school}}, label: {CONFIG}, windows: {always % 'night'}}}, "
        f"{{selector: {{pool: inference}}, label: {SLOTS}, windows: {always % 2}}}, "
        f"{{selector: {{pool: cut}}, label: {MIG}, windows: {always % 'auto'}}}]}}"
    )
    with World(tap, fleet={"start_s": (0.1, 0.3)}) as world:
        world.kustomize("overlays/switch")
        add_school(world)
        add_cut(world, "all-1g.5gb")
        start(world, "--nvidia-config-replicas=day=4,night=1", resources=[resource for resource, _ in LAYOUTS.values()])
        models = add_inference(world)
        for name in ("large0", "large1"):
            add_pod(world, name, resource="nvidia.com/mig-3g.20gb")
        students = [f"student{n}" for n in range(5)]
        for name in students:
            add_pod(world, name)
        world.await_running(students)
        # The same program with a calendar, as after a change of its configuration.
        world.extender_stop()
        world.extender_start(calendar(world, always_night), "--nvidia-config-replicas=day=4,night=1")
        with config_manager(world) as follower, mig_manager(world, "all-1g.5gb") as cutter:
            wait_for(lambda: said(world, "gpuledger.io/switch"), what="announced")
            add_pod(world, "late")
            told = world.refusal("late", (AHEAD, "untolerated taint"))
            tap.ok(AHEAD in told or "untolerated taint" in told, "who does not say that he has ended by then waits", told)
            wait_for(lambda: TAINT in taints(world), what="held")
            wait_for(lambda: label(world) == "night", 120, 0.2, "the label is changed")
            holders = [name for name in students if exists(world, name)]
            tap.equal(holders, [], "by then nobody is there")
            wait_for(lambda: TAINT not in taints(world), 120, 0.2, "given back")
            tap.equal(follower.done[-1], ("tell", "night"), "not before labels had followed")
            check_slots(world, models)
            check_auto(world, cutter)
        tap.ok((said(world, "gpuledger.io/switched") or "").startswith(f"{CONFIG}=night@"), "it says what was done")
        tap.equal(said(world, "gpuledger.io/switch"), None, "nothing is announced any more")
        moves = world.client.get("ConfigMap", "gpuledger-moves", SYSTEM)["data"]["moves"].splitlines()
        ended = [["default", NODE, "switch"]] * len(students) + [["default", SHARE_NODE, "switch"]]
        tap.equal(sorted(line.split()[2:] for line in moves), ended, "the hour has all six")
        world.await_running(["late"], nudge=True)
        add_pod(world, "second")
        world.await_running(["second"], nudge=True)
        add_pod(world, "third")
        told = world.refusal("third", FULL)
        tap.ok(FULL in told, "two cards take two pods now", told)
        tap.equal(world.fleet.kubelet(NODE).refused, [], "kubelet refused nobody")
        tap.equal(world.fleet.hardware.overcommits, [], "no card ever had more holders than it may")
        tap.ok(world.metric("gpuledger_switches_total") >= 4, "steps are counted")
        tap.equal(world.metric("gpuledger_switches_stuck"), 0, "and nobody is called")


def exists(world, name):
    return name in {pod["metadata"]["name"] for pod in world.client.items("Pod")}


def scenario_switch_wedged(tap):
    """The plugin does not obey: in time the label has its old value again, the taint stays, and a metric and
    an Event call somebody, who gives the node back by taking the announcement away."""
    never = "{timeZone: UTC, deadline: 4s, drain: 30s, nodes: []}"
    with World(tap, fleet={"start_s": (0.1, 0.3)}) as world:
        start_school(world, never)
        with config_manager(world, deaf=True):
            mark = f"{CONFIG}=night@2026-01-01T00:00:00Z"
            world.client.patch("Node", NODE, {"metadata": {"annotations": {"gpuledger.io/switch": mark}}})
            wait_for(lambda: label(world) == "night", 120, 0.2, "the label is changed")
            # It goes on from what the Node says.
            world.extender_stop()
            world.extender_start(calendar(world, never), "--nvidia-config-replicas=day=4,night=1")
            wait_for(lambda: label(world) == "day", 120, 0.2, "the label is as before")
            wait_for(lambda: world.metric("gpuledger_switches_stuck") == 1, 120, 0.2, "somebody is called")
            tap.ok(TAINT in taints(world), "the taint stays")
            add_pod(world, "waits")
            told = world.refusal("waits", "untolerated taint")
            tap.ok("untolerated taint" in told, "and nobody comes", told)
            told = world.events_of(NODE, "GPUNodeSwitchFailed")
            tap.ok(any("rolled back" in each for each in told), "an Event of the Node says so", told)
            world.client.patch("Node", NODE, {"metadata": {"annotations": {"gpuledger.io/switch": None}}})
            wait_for(lambda: TAINT not in taints(world), 120, 0.2, "given back")
            world.await_running(["waits"], nudge=True)
            tap.equal(node_of(world, "waits"), NODE, "as it was before")
            wait_for(lambda: world.metric("gpuledger_switches_stuck") == 0, 120, 0.2, "nobody is called any more")


def check_choice(world, maintainer):
    """Pods wait for small instances, which none of the layouts but one has."""
    small = {name: [{"devices": "all", "mig-enabled": True, "mig-devices": profiles}]
             for name, profiles in [("all-1g.5gb", {"1g.5gb": 7}), ("all-2g.10gb", {"2g.10gb": 3})]}
    world.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mig-parted", "namespace": "default"},
                         "data": {"config.yaml": json.dumps({"mig-configs": small})}})
    for i in range(3):
        add_pod(world, f"small{i}", resource="nvidia.com/mig-1g.5gb")
    answer = maintainer.run("switch", MIG_NODE, "mig.config=auto", "--mig-configs=default/mig-parted", "-o", "json")
    told = json.loads(answer.stdout or "{}")
    world.tap.ok(told.get("chosen") == "all-1g.5gb", "the layout is chosen that pods wait for", answer.stdout + answer.stderr)
    world.tap.equal([row["name"] for row in told.get("layouts", [])], ["all-1g.5gb", "all-2g.10gb", "all-3g.20gb"],
                    "of those that mig-manager has, and the one that is")
    for i in range(3):
        world.client.delete("Pod", f"small{i}", "default")


def scenario_switch_mig(tap):
    """By hand, with the rights of those who maintain nodes: mig-manager 0.14 stays pending; another value of
    the label and back wakes it, and the cards are cut."""
    never = "{timeZone: UTC, deadline: 8s, drain: 30s, layouts: {all-1g.5gb: {1g.5gb: 7}}, nodes: []}"
    with World(tap, fleet={"start_s": (0.1, 0.3)}) as world:
        add_cut(world, "all-3g.20gb")
        start(world)
        maintainer = Maintainer(world)
        target = ("switch", MIG_NODE, "mig.config=all-1g.5gb", calendar(world, never))
        with mig_manager(world, "all-3g.20gb", version="0.14", holdouts=1) as follower:
            answer = maintainer.run(*target)
            tap.ok("announced" in answer.stdout, "without --apply it says what it would do", answer.stdout + answer.stderr)
            tap.equal(said(world, "gpuledger.io/switch", MIG_NODE), None, "and does nothing")
            check_choice(world, maintainer)
            answer = maintainer.run(*target, "--apply", "-o", "json")
            tap.equal(answer.returncode, 0, "with it, it is done")
            tap.note(answer.stderr)
            told = {"node": MIG_NODE, "phase": "none", "pods": 0, "stuck": False}
            tap.equal(json.loads(answer.stdout)["nodes"], [told], "a script reads how the node is then")
        tap.equal(follower.manager.applied, "all-1g.5gb", "the cards are cut anew")
        tap.equal(label(world, MIG, MIG_NODE), "all-1g.5gb", "the label says so")
        states = [value for name, value in follower.done if name == "state"]
        tap.equal(states[0], "pending", "first it was stuck")
        tap.equal(states[-1], "success", "then it was woken")
        tap.equal(taints(world, MIG_NODE), [], "the node is given back")
        answer = maintainer.run("switch")
        tap.ok("no node is to be switched" in answer.stdout, "nothing is under way", answer.stdout + answer.stderr)
