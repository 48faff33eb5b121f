# SPDX-License-Identifier: Apache-2.0
"""Kueue with an AdmissionCheck that asks for cards: what quotas would let in waits until cards can hold it."""

import re

import yaml

from controlplane import ControlPlaneError
from gpushare import RESOURCE
from kubeapi import wait_for
from manager import Manager, condition_of, programs
from world import ROOT, World

CHECK = "cards"
MEMORY = "gpuledger.io/gpu-memory"


def documented():
    """Kueue's configuration as docs/kueue.md has it."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/kueue.md").read_text(), re.S)
    [block] = [each for each in map(yaml.safe_load, blocks) if "resources" in each]
    return block


def define_queue(kueue, units):
    kueue.create("admissionchecks", CHECK, {"controllerName": "gpuledger.io/fit"})
    kueue.create("resourceflavors", "gpus", {"nodeLabels": {"pool": "shared"}})
    kueue.create("clusterqueues", "gpus", {
        "namespaceSelector": {},
        "admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}]},
        "resourceGroups": [{"coveredResources": [MEMORY], "flavors": [
            {"name": "gpus", "resources": [{"name": MEMORY, "nominalQuota": f"{units}Gi"}]}]}]})
    kueue.create("localqueues", "team", {"clusterQueue": "gpus"}, namespace="default")
    wait_for(lambda: condition_of(kueue.get("admissionchecks", CHECK), "Active").get("status") == "True",
             what="the AdmissionCheck is active")
    wait_for(lambda: condition_of(kueue.get("clusterqueues", "gpus"), "Active").get("status") == "True",
             what="the ClusterQueue is active")


def bound(pods):
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


def scenario_kueue(tap):
    """Quota for two Jobs, cards for one: one runs, the other is sent back with numbers, and comes afterwards."""
    try:
        programs()
    except ControlPlaneError as error:
        tap.skip_all(error)
        return
    with World(tap) as world:
        world.kustomize("overlays/kueue")
        with Manager(world, documented()) as kueue:
            world.node("n1", [10, 10])
            world.client.patch("Node", "n1", {"metadata": {"labels": {"pool": "shared"}}})
            world.start("--kueue")
            define_queue(kueue, 20)
            kueue.job("first", "team", 2, {RESOURCE: "6"})
            wait_for(lambda: kueue.is_true("first", "Admitted"), what="the first Job is admitted")
            wait_for(lambda: len(bound(kueue.pods("first"))) == 2, what="the first Job's pods are bound")
            tap.equal(kueue.check("first", CHECK).get("message"), "all 2 pods with a GPU fit", "the first Job is let in")
            [assigned] = kueue.workload("first")["status"]["admission"]["podSetAssignments"]
            tap.equal(assigned["resourceUsage"], {MEMORY: str(12 << 30)}, "Kueue counts what the documented transformations say")

            kueue.job("second", "team", 1, {RESOURCE: "6"})
            wait_for(lambda: condition_of(kueue.workload("second") or {}, "Evicted").get("reason") == "AdmissionCheck",
                     what="the second Job is sent back")
            evicted = condition_of(kueue.workload("second"), "Evicted")
            tap.ok("wants 6GiB, 4GiB free of 10GiB" in evicted["message"],
                   "Kueue's own condition has the numbers of the card", evicted)
            tap.ok(not kueue.pods("second"), "no pod of it was made")
            tap.ok(kueue.is_true("first", "Admitted"), "the first one stays admitted")
            tap.ok(world.metric("gpuledger_kueue_answers_total") >= 2, "the answers are counted")
            world.verify("beside a Job that waits")

            for name in bound(kueue.pods("first")):
                world.fleet.finish(name)
            wait_for(lambda: kueue.is_true("first", "Finished"), what="the first Job has finished")
            wait_for(lambda: kueue.is_true("second", "Admitted"), what="the second Job is admitted")
            wait_for(lambda: len(bound(kueue.pods("second"))) == 1, what="the second Job's pod is bound")
            tap.equal(kueue.check("second", CHECK).get("state"), "Ready", "the second Job comes when the first has ended")
            world.await_running(bound(kueue.pods("second")))
            world.verify("the second Job")
