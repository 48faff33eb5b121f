# SPDX-License-Identifier: Apache-2.0
"""The Helm chart on a real API server: installed, upgraded, rolled back, taken over from kustomize."""

import base64
import sys

import yaml

from kubeapi import ApiError, wait_for
from world import ROOT, SYSTEM, World

sys.path.append(str(ROOT / "tests/chart"))

from helm import CHART, built, helm, values_file  # noqa: E402

class Release:
    """helm beside a world's API server."""

    def __init__(self, tap, world):
        self.tap, self.world = tap, world

    def run(self, *arguments, fails=None):
        """One helm command, which must succeed, or fail and say so."""
        answer = helm(*arguments, f"--namespace={SYSTEM}", f"--kubeconfig={self.world.plane.kubeconfig()}")
        text = answer.stdout + answer.stderr
        if fails:
            self.tap.ok(answer.returncode != 0 and fails in text, f"helm {arguments[0]} is refused: {fails}", text)
        else:
            self.tap.ok(answer.returncode == 0, f"helm {' '.join(arguments[:2])}", text)
        return answer.stdout

    def upgrade(self, *arguments, **options):
        # kubectl is still an owner of what it had applied.
        return self.run("upgrade", "gpuledger", str(CHART), "--reset-then-reuse-values", "--force-conflicts", *arguments,
                        **options)


def scenario_chart(tap):
    """helm installs, upgrades and rolls back; the keys of seals survive, and the account's rights suffice."""
    if not built("helm"):
        tap.skip_all("helm is not built: run tests/controlplane/build helm")
        return
    with World(tap) as world:
        release = Release(tap, world)

        def kubectl(*arguments, check=True):
            return world.plane.kubectl("-n", SYSTEM, *arguments, check=check)

        def look(*arguments):
            answer = kubectl("get", *arguments, "-o", "yaml", check=False)
            return yaml.safe_load(answer.stdout) if answer.returncode == 0 else None

        # The world has installed overlays/nodeport. Pods run meanwhile.
        world.start()
        world.node("n1", [10, 10])
        world.pod("before", 4)
        world.await_running(["before"])
        # A key where the first replica puts it: a field that helm does not own.
        keys = base64.b64encode(b"# a key of the test\n").decode()
        kubectl("patch", "secret", "gpuledger-seal", "-p", f'{{"data":{{"keys":"{keys}"}}}}')

        release.run("install", "gpuledger", str(CHART), fails="invalid ownership metadata")
        release.run("install", "gpuledger", str(CHART), "--take-ownership", "--force-conflicts",
                    "--values", str(values_file("nodeport")))
        check_seal(tap, look, keys, "after it is taken over")
        service = look("service", "gpuledger")
        tap.equal(service["spec"]["ports"][0]["nodePort"], 32766, "the node port is still there")
        tap.equal(look("deployment", "gpuledger")["spec"]["replicas"], 1, "one replica")
        world.pod("during", 3)
        world.await_running(["during"])
        tap.ok(True, "a pod is bound with the rights of the chart's account")

        # By way of none to two, and everything that this API server knows.
        release.upgrade("--set", "replicas=0")
        tap.equal(look("deployment", "gpuledger")["spec"]["replicas"], 0, "none")
        release.upgrade("--set", "replicas=2,config.policy=fgd,guard.enabled=true",
                        "--set", "hami.enabled=true,admission.enabled=true,networkPolicy.enabled=true",
                        "--set", "secondScheduler.enabled=true,monitoring.dashboard.enabled=true",
                        "--set", "monitoring.serviceMonitor.enabled=true,monitoring.rules.enabled=true")
        deployment = look("deployment", "gpuledger")
        tap.equal(deployment["spec"]["strategy"]["type"], "RollingUpdate", "two replicas roll")
        tap.ok("--policy=fgd" in deployment["spec"]["template"]["spec"]["containers"][0]["args"], "an option is there")
        tap.equal(look("service", "gpuledger")["spec"]["selector"].get("gpuledger.io/holder"), "true",
                  "the Service selects the holder")
        for kind, name in (("poddisruptionbudget", "gpuledger"), ("role", "gpuledger-lease"),
                           ("validatingadmissionpolicy", "gpuledger-guard"), ("networkpolicy", "gpuledger"),
                           ("mutatingwebhookconfiguration", "gpuledger"), ("deployment", "gpuledger-scheduler"),
                           ("configmap", "gpuledger-dashboard")):
            tap.ok(look(kind, name), f"{kind}/{name} is there")
        check_seal(tap, look, keys, "after an upgrade")

        release.upgrade("--set", "config.polcy=oc", fails="polcy")
        release.upgrade("--set", "config.bind-timeout=9", fails="bind-timeout")

        release.run("rollback", "gpuledger", "1")
        tap.equal(look("deployment", "gpuledger")["spec"]["strategy"]["type"], "Recreate", "one replica again")
        tap.equal(look("service", "gpuledger")["spec"]["selector"], {"app.kubernetes.io/name": "gpuledger"},
                  "and no holder is selected")
        tap.ok(not look("poddisruptionbudget", "gpuledger"), "what it does not need is gone")
        check_seal(tap, look, keys, "after a rollback")
        # kube-apiserver may still go by the guard, whose accounts are gone.
        wait_for(lambda: is_created(world, "after"), what="the guard is gone")
        world.await_running(["after"])
        world.verify()

        release.run("uninstall", "gpuledger")
        for kind, name in (("deployment", "gpuledger"), ("clusterrole", "gpuledger"), ("secret", "gpuledger-seal")):
            tap.ok(not look(kind, name), f"{kind}/{name} is gone")
        tap.ok(all(world.card(name) for name in ("before", "during", "after")), "pods keep their cards")


def is_created(world, name):
    try:
        world.pod(name, 2)
    except ApiError:
        return False
    return True


def check_seal(tap, look, keys, when):
    tap.equal((look("secret", "gpuledger-seal") or {}).get("data", {}).get("keys"), keys, f"the keys are there {when}")
