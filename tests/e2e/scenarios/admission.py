# SPDX-License-Identifier: Apache-2.0
"""The optional webhook: a pod that asks for memory of a MIG instance is created with a profile."""

import base64
import json
import pathlib
import sys

from kubeapi import ApiError, node_object, pod_object, wait_for
from nvidia import GPU, NvidiaKubelet, Plugin, labels
from scenarios.nvidia import node_of, verify
from world import MANIFESTS, World, load_config

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli"))
from pki import Authority  # noqa: E402 pylint: disable=wrong-import-position

MEMORY = "gpuledger.io/mig-memory"
SMALL, LARGE = "nvidia.com/mig-2g.10gb", "nvidia.com/mig-3g.20gb"


def asking(name, memory, **more):
    container = {"name": "c", "image": "example.com/none:1",
                 "resources": {"limits": {MEMORY: memory, **more}}}
    return pod_object(name, spec={"containers": [container]})


def limits(pod):
    return pod["spec"]["containers"][0]["resources"]["limits"]


def start(world):
    """Extender and scheduler over TLS, and the shipped webhook at the extender's address."""
    authority = Authority(world.folder)
    certificate, key = authority.sign("gpuledger")
    world.extender_start("--admission", f"--tls-cert={certificate}", f"--tls-key={key}")
    config = world.scheduler_config()
    for extender in config["extenders"]:
        extender["urlPrefix"] = extender["urlPrefix"].replace("http://", "https://")
        extender["enableHTTPS"] = True
        extender["tlsConfig"] = {"caFile": str(authority.certificate)}
    config["extenders"][0]["managedResources"] += [
        {"name": name, "ignoredByScheduler": False} for name in (GPU, SMALL, LARGE)]
    world.scheduler_start(config)
    webhook = load_config(MANIFESTS / "overlays/admission/webhook.yaml")
    webhook["webhooks"][0]["clientConfig"] = {
        "url": f"https://127.0.0.1:{world.port}/admission/mig",
        "caBundle": base64.b64encode(authority.certificate.read_bytes()).decode()}
    path = world.folder / "webhook.json"
    path.write_text(json.dumps(webhook))
    world.plane.kubectl("apply", "-f", path)


def is_asked(world):
    """Whether the API server calls the webhook by now."""
    answer = world.client.request("POST", "/api/v1/namespaces/default/pods?dryRun=All",
                                  asking("probe", "10Gi"))
    return MEMORY not in limits(answer)


def scenario_admission(tap):
    """Memory of MIG instances becomes a profile, and the node's plugin serves the pod."""
    with World(tap, fleet={"start_s": (0.1, 0.3)}) as world:
        start(world)
        world.fleet.add(NvidiaKubelet, "mixed", [1] * 3,
                        [Plugin("0", SMALL), Plugin("1", LARGE), Plugin("2")])
        world.client.create(node_object(
            "mixed", world.fleet.kubelet("mixed").manager.capacity(),
            labels={**labels(1, product="NVIDIA-A100-SXM4-40GB", memory=40960),
                    **labels(1, product="NVIDIA-A100-MIG-2g.10gb", memory=9856, resource=SMALL),
                    **labels(1, product="NVIDIA-A100-MIG-3g.20gb", memory=19968, resource=LARGE)}))
        wait_for(lambda: world.ops("/api/v1/nodes")["nodes"])
        wait_for(lambda: is_asked(world))

        tap.equal(limits(world.client.create(asking("first", "10Gi"))), {SMALL: "1"},
                  "the smallest profile that is enough")
        world.await_running(["first"])
        tap.equal(limits(world.client.create(asking("second", "10Gi", cpu="1"))),
                  {LARGE: "1", "cpu": "1"}, "a larger one that is free, while the smaller is not")
        world.await_running(["second"])
        tap.equal(limits(world.client.create(asking("third", "10Gi"))), {SMALL: "1"},
                  "none is free: the smallest is waited for")
        try:
            world.client.create(asking("vast", "21Gi"))
            tap.ok(False, "what no node has is refused")
        except ApiError as error:
            tap.ok("the largest is nvidia.com/mig-3g.20gb" in str(error),
                   "what no node has is refused, and the largest named", error)
        whole = {"name": "c", "image": "example.com/none:1", "resources": {"limits": {GPU: "1"}}}
        created = world.client.create(pod_object("whole", spec={"containers": [whole]}))
        tap.equal(limits(created), {GPU: "1"}, "other pods are left alone")
        world.await_running(["whole"])
        world.delete("first")
        world.await_running(["third"], nudge=True)
        tap.equal([node_of(world, name) for name in ("second", "third", "whole")], ["mixed"] * 3,
                  "all of them are on the node")
        verify(world, ("mixed",))
