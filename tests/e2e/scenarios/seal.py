# SPDX-License-Identifier: Apache-2.0
"""Seals on a real API server: the key comes into its Secret, grants carry a seal, and what a
tenant makes of his pod while nobody watches changes nothing."""

import base64

from kubeapi import Client, wait_for
from scenarios.install import bind_by_hand, filter_by_hand
from world import RESOURCE, RESOURCE_COUNT, SYSTEM, World, node_object

SECRET = "gpuledger-seal"
SEAL = "gpuledger.io/seal"
CARD = "ALIYUN_COM_GPU_MEM_IDX"


def keys(world):
    """The Secret's text."""
    secret = world.client.request("GET", f"/api/v1/namespaces/{SYSTEM}/secrets/{SECRET}")
    return "".join(base64.b64decode(text).decode() for text in (secret.get("data") or {}).values())


def start(world):
    world.extender_start(f"--seal-secret={SYSTEM}/{SECRET}")


def cards(world, name):
    """Where the ledger has the pod; None: on each card."""
    client = Client(f"http://127.0.0.1:{world.ops_port}", timeout=10)
    pods = client.request("GET", "/api/v1/nodes")["nodes"][0]["pods"]
    return [share["card"] for pod in pods if pod["name"] == name for share in pod["shares"]]


def passes(world, pod):
    return filter_by_hand(world, pod)["NodeNames"] == ["n1"]


def bind(world, name, units):
    pod = world.pod(name, units)
    wait_for(lambda: passes(world, pod), what=f"room for {name}")
    world.tap.equal(bind_by_hand(world, pod).get("Error"), "", f"{name} is bound")
    return world.client.get("Pod", name)["metadata"]["annotations"]


def scenario_seal(tap):
    """Cards stay taken whatever is written while no replica watches; a seal of another pod is none."""
    with World(tap, played=False, own=True) as world:
        tap.equal(keys(world), "", "the manifests bring an empty Secret")
        world.client.create(node_object("n1", {RESOURCE: 20, RESOURCE_COUNT: 2}))
        start(world)
        first = bind(world, "first", 10)
        tap.ok(first.get(SEAL, "").startswith("v1:"), "a grant carries a seal", first)
        wait_for(lambda: "adopted" in keys(world), what="the date of adoption in the Secret")
        second = bind(world, "second", 4)
        tap.equal(second[CARD], "1" if first[CARD] == "0" else "0", "on the other card")
        text = keys(world)

        world.extender_stop()
        for name, words in (
            ("first", {CARD: second[CARD], "ALIYUN_COM_GPU_MEM_POD": "1"}),
            ("second", {CARD: None, "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1,0:;"}),
        ):
            world.client.patch("Pod", name, {"metadata": {"annotations": words}})
        start(world)
        # The card that it names now is held beside its own while its plugin may still act on that.
        tap.ok(int(first[CARD]) in cards(world, "first"), "edited meanwhile: first has its card")
        tap.equal(cards(world, "second"), [int(second[CARD])], "and second its own")
        tap.equal(keys(world), text, "the same keys")
        world.kustomize("overlays/nodeport")
        tap.equal(keys(world), text, "applying the manifests again leaves them")
        large = world.pod("large", 7)
        tap.ok(not passes(world, large), "no card is given again")

        world.extender_stop()
        world.client.patch("Pod", "second", {"metadata": {"annotations": {SEAL: first[SEAL]}}})
        start(world)
        tap.equal(cards(world, "second"), [None], "with another pod's seal it may be on each card")
        world.client.patch("Pod", "second", {"metadata": {"annotations": {SEAL: second[SEAL]}}})
        wait_for(lambda: cards(world, "second") == [int(second[CARD])],
                 what="its own seal is believed again")
        tap.ok(True, "its own seal is believed again")

        world.extender_stop()
        kubeconfig = world.kubeconfig()
        world.plane.apiserver_stop()
        world.extender_start(f"--seal-secret={SYSTEM}/{SECRET}", wait=False, kubeconfig=kubeconfig)
        wait_for(lambda: "keys of seals are waited for" in world.extender.tail(50),
                 what="a start without an API server waits")
        world.plane.apiserver_start()
        wait_for(lambda: world.ready(), what="ready once it is there")
        tap.ok(True, "an API server that is away at the start is waited for")
