# SPDX-License-Identifier: Apache-2.0
"""Seals while things change: versions that know nothing of them, another key, a cluster from a backup."""

import contextlib
import json
import shutil
import urllib.request

from kubeapi import ApiError, pod_object, wait_for
from scenarios.replicas import (NODES, PATIENCE_S, PROBED, REFUSAL, Load, Replica, audit_of,
                                await_pair, check_ledgers, kill, make_pod, prepare)
from scenarios.seal import SEAL, SECRET, keys
from world import SYSTEM, World

KEYS = f"--seal-secret={SYSTEM}/{SECRET}"
ROTATION_S = 300  # a new key signs after two minutes
BINDS = 40
BUMP = 500  # more than `change` writes
STAYS = 6  # pods that live through it all
# No node side plays, so a pod would wait for one of its size as long as anybody waits: all differ in size.


def seals(world):
    """{pod: its seal, "" without} of all that are bound."""
    return {pod["metadata"]["name"]: (pod["metadata"].get("annotations") or {}).get(SEAL, "")
            for pod in world.client.items("Pod") if pod["spec"].get("nodeName")}


def key_of(seal):
    return seal.split(":")[1] if seal.startswith("v1:") else ""


def names_of_keys(world):
    """The oldest first."""
    return [line.split()[1] for line in keys(world).splitlines() if line.startswith("key ")]


def unsealed(replica):
    """Pods that it does not believe."""
    return sorted(pod["name"] for node in json.loads(replica.get("/api/v1/nodes"))["nodes"]
                  for pod in node["pods"] if [share["card"] for share in pod["shares"]] == [None])


def bind(world, replica, name, units=1, node=PROBED):
    pod = make_pod(world, name, units)
    wait_for(lambda: replica.bind(pod, node) == "", PATIENCE_S, 0.05, f"{name} is bound")


def two(world, stack, *options):
    """Two replicas, the first with the first options. They stand for election at once."""
    found = []
    for name, some in zip(("gpuledger-0", "gpuledger-1"), options):
        world.client.create(pod_object(name, namespace=SYSTEM, scheduler="nobody"))
        found.append(stack.enter_context(Replica(world, name, options=some)))
    await_pair(found)
    return found


def await_sealed(world, with_key=None, timeout=PATIENCE_S):
    def done():
        return all(key_of(seal) == (with_key or key_of(seal) or None)
                   for seal in seals(world).values())

    with contextlib.suppress(TimeoutError):
        wait_for(done, timeout, 0.2)
    return {name: key_of(seal) for name, seal in seals(world).items()}


def take_over(replicas):
    """The other one serves, the former stands by."""
    holder, standby = await_pair(replicas)
    again = kill(holder)
    wait_for(standby.is_ready, PATIENCE_S, 0.05, f"{standby.name} serves")
    again()
    await_pair(replicas)


def check_end(tap, world, replicas, truth, load):
    check_ledgers(tap, world, replicas)
    tap.ok(not truth.broken, f"0 double grants ({truth.bound} pods bound)", "\n".join(truth.broken))
    tap.ok(not load.wrong, "who was told so was bound", "\n".join(load.wrong))


def scenario_seal_rotated(tap):
    """The key is changed while binds go on and the Lease changes hands: none is refused for it, and in
    the end the new key has sealed all."""
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(tap, played=False))
        prepare(world)
        replicas = two(world, stack, [KEYS], [KEYS])
        truth = stack.enter_context(audit_of(world))
        for number in range(STAYS):
            bind(world, await_pair(replicas)[0], f"stays-{number}", number + 1)
        (old,) = names_of_keys(world)
        with Load(world, replicas, "r") as load:
            load.await_binds(BINDS)
            world.client.patch("Secret", SECRET, {"stringData": {"rotate": "now"}}, SYSTEM)
            wait_for(lambda: len(names_of_keys(world)) == 2, PATIENCE_S, 0.2, "another key")
            new = names_of_keys(world)[1]
            take_over(replicas)
            load.await_binds(BINDS)
            pace, load.lives_s = load.lives_s, 10 * load.lives_s
            wait_for(lambda: new in map(key_of, seals(world).values()), ROTATION_S, 0.5,
                     "the new key signs")
            load.lives_s = pace
            take_over(replicas)
            load.await_binds(BINDS)
        found = await_sealed(world, new)
        tap.equal({name: key for name, key in found.items() if key != new}, {},
                  f"{len(found)} pods are sealed with the new key alone")
        tap.ok(old in names_of_keys(world), "the old one stays for a while")
        for replica in replicas:
            tap.equal(unsealed(replica), [], f"{replica.name} believes every pod")
        known = (REFUSAL, "this replica", "no answer", "Waiting", "wait",
                 # On a busy machine.
                 "could not be written in time", "it is not known whether", "is being bound")
        strange = {error: n for error, n in load.errors.items()
                   if error and not any(word in error for word in known)}
        tap.equal(strange, {}, "binds are refused for want of room alone, or by who stands by")
        check_end(tap, world, replicas, truth, load)


def scenario_seal_mixed(tap):
    """One replica that seals and one that does not, and takeovers between them."""
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(tap, played=False))
        prepare(world)
        older, newer = two(world, stack, [], [KEYS])
        replicas = [older, newer]
        truth = stack.enter_context(audit_of(world))
        with Load(world, replicas, "m") as load:
            for _ in range(3):
                load.await_binds(BINDS)
                take_over(replicas)
            load.await_binds(BINDS)
        if not newer.is_ready():
            take_over(replicas)
        found = await_sealed(world)
        tap.equal([name for name, key in found.items() if not key], [],
                  f"{len(found)} pods, whoever has bound them, are sealed once the newer one serves")
        wait_for(lambda: "adopted" in keys(world), PATIENCE_S, what="the date of adoption")
        check_end(tap, world, replicas, truth, load)

        newer.process.stop()
        wait_for(older.is_ready, PATIENCE_S, what="the older one serves")
        bind(world, older, "meanwhile", 10)
        newer.start()
        await_pair(replicas)
        wait_for(lambda: unsealed(newer), PATIENCE_S, what="the newer one knows the pods")
        tap.equal(unsealed(newer), ["meanwhile"],
                  "what the older one binds while the newer one is down may be on every card")
        older.process.stop()
        wait_for(newer.is_ready, PATIENCE_S, what="the newer one serves")
        newer.process.stop()
        text = keys(world)
        world.client.patch("Secret", SECRET, {"stringData": {
            "keys": "".join(line for line in text.splitlines(True) if "adopted" not in line)}}, SYSTEM)
        newer.start()
        wait_for(newer.is_ready, PATIENCE_S, what="the newer one serves again")
        tap.equal(unsealed(newer), [], "without the date it is adopted")
        tap.equal([name for name, key in await_sealed(world).items() if not key], [], "and sealed")
        tap.ok(not truth.broken, "0 double grants", "\n".join(truth.broken))


def bump_revision(plane):
    """What etcd's own restore is told to do for Kubernetes, --bump-revision: no version of an object is given
    out a second time, so whoever watches from a version of the lost days is told that it is gone."""
    for _ in range(BUMP):
        request = urllib.request.Request(f"http://127.0.0.1:{plane.state.etcd_port}/v3/kv/put", method="POST",
                                         data=b'{"key":"YnVtcA==","value":""}')
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
            reply.read()


def restore(world, change):
    """etcd as it was before `change`."""
    plane = world.plane
    data, backup = f"{plane.state.data}/etcd", f"{plane.state.data}/backup"
    plane.apiserver_stop()
    plane.etcd_stop()
    shutil.copytree(data, backup)
    plane.etcd_start()
    plane.apiserver_start()
    change()
    plane.apiserver_stop()
    plane.etcd_stop()
    shutil.rmtree(data)
    shutil.move(backup, data)
    plane.etcd_start()
    bump_revision(plane)
    plane.apiserver_start()


def scenario_seal_restored(tap):
    """etcd is restored from a backup; then the Secret alone, from before the key was changed."""
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(tap, played=False, own=True))
        prepare(world)
        world.client.create(pod_object("gpuledger-0", namespace=SYSTEM, scheduler="nobody"))
        replica = stack.enter_context(Replica(world, "gpuledger-0", options=[KEYS]))
        wait_for(replica.is_ready, PATIENCE_S)
        bind(world, replica, "before", 10)
        wait_for(lambda: "adopted" in keys(world), PATIENCE_S, what="the date of adoption")
        first = keys(world)

        def change():
            wait_for(replica.is_ready, PATIENCE_S, ignore=(ApiError,))
            bind(world, replica, "after", 11)
            ready_made = "key 0000000b " + "5a" * 32 + " 1000\n"
            world.client.patch("Secret", SECRET, {"stringData": {
                "keys": ready_made + "adopted 1000\n"}}, SYSTEM)
            wait_for(lambda: set(map(key_of, seals(world).values())) == {"0000000b"}, PATIENCE_S,
                     0.2, "sealed anew with the keys that took the place of the first")

        restore(world, change)
        tap.equal(keys(world), first, "restored: the Secret is the one of the backup")
        wait_for(lambda: len(replica.ledger()) == 1, PATIENCE_S, what="the later pod is gone")
        tap.equal(unsealed(replica), [], "the pod of the backup is where it was")
        own = first.split()[1]
        wait_for(lambda: replica.get("/metrics").count(f'sealed{{key="{own}"}} 1'), PATIENCE_S, 0.2,
                 "its seal is by the key of the backup")
        wait_for(lambda: list(map(key_of, seals(world).values())) == [own], PATIENCE_S, 0.2)
        for round_, units in (("at once", 12), ("after a restart", 13)):
            bind(world, replica, f"card-{round_.replace(' ', '-')}", units)
            tap.equal(unsealed(replica), [], f"{round_}: all pods are believed")
            replica.process.stop()
            replica.start()
            wait_for(replica.is_ready, PATIENCE_S)

        # The Secret alone goes back: to keys that know nothing of the seals.
        text = keys(world)
        other = "key 0000000c " + "a5" * 32 + " 1000\nadopted 1000\n"
        world.client.patch("Secret", SECRET, {"stringData": {"keys": other}}, SYSTEM)
        found = await_sealed(world, "0000000c")
        tap.equal(set(found.values()), {"0000000c"}, "a replica that runs seals them anew")
        replica.process.stop()
        world.client.patch("Secret", SECRET, {"stringData": {"keys": text}}, SYSTEM)
        replica.start()
        wait_for(replica.is_ready, PATIENCE_S)
        tap.equal(unsealed(replica), sorted(found),
                  "one that starts takes pods with other seals for unsealed")
        refused = make_pod(world, "refused", 995)
        tap.ok(REFUSAL in replica.bind(refused, PROBED), "and gives their room to nobody")
        tap.equal(len(replica.ledger()), len(found), "all of them count")
