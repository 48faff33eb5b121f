#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pool of control planes: what a test leaves behind, and who ends the planes."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from controlplane import ControlPlaneError, binaries
from kubeapi import ApiError, node_object, pod_object, wait_for
from pool import Pool

HERE = pathlib.Path(__file__).resolve().parent
COMMAND = [sys.executable, str(HERE / "pool.py")]
API = "/apis/example.com/v1"
KEPT = "example.com/kept"


def prepare(plane):
    plane.client().create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shipped"}, "data": {"a": "1"}})


def define(client):
    """A CRD, and an object of it."""
    client.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster",
                 "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                     "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    wait_for(lambda: client.request("GET", f"{API}/things"), ignore=(ApiError,), what="the CRD is served")
    client.request("POST", f"{API}/things", {
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing", "finalizers": [KEPT]}})


def forbid_everything(client):
    """A webhook that nobody answers, so that no pod may be made or changed."""
    client.request("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "no"}, "webhooks": [{
            "name": "no.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]}]})

    def is_forbidden():
        try:
            client.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod_object("any"))
        except ApiError as error:
            return "no.example.com" in str(error)
        return False

    wait_for(is_forbidden, what="the webhook is asked")


def litter(client):
    """Whatever would be hard to delete by the API."""
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    client.create(node_object("n1"))
    pod = pod_object("pod", namespace="other")
    pod["metadata"]["finalizers"] = [KEPT]
    client.create(pod)
    client.patch("ConfigMap", "shipped", {"data": {"a": "2"}})
    client.delete("ClusterRole", "view")
    client.delete("Namespace", "kube-node-lease")
    define(client)
    forbid_everything(client)


class PoolTest(unittest.TestCase):
    def setUp(self):
        try:
            binaries("current")
        except ControlPlaneError as error:
            self.skipTest(str(error))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pool-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.planes = self.folder / "planes"
        # The process with which all ends.
        self.watched = subprocess.Popen(["sleep", "infinity"])
        subprocess.run([*COMMAND, "start", self.planes, f"--with={self.watched.pid}"], check=True)
        self.addCleanup(subprocess.run, [*COMMAND, "stop", self.planes], check=True)
        self.addCleanup(self.watched.wait)
        self.addCleanup(self.watched.kill)
        self.pool = Pool(self.planes, prepare)

    @contextlib.contextmanager
    def lent(self, name):
        with self.pool.lend("current", self.folder / name) as plane:
            yield plane

    def test_a_plane_comes_back_as_new(self):
        with self.lent("one") as plane:
            client, first = plane.client(), plane.state.api_port
            roles = {role["metadata"]["name"] for role in client.items("ClusterRole")}
            plane.scheduler_start()
            scheduler = plane.processes()[-1]
            litter(client)
            with self.assertRaises(ControlPlaneError):
                plane.apiserver_stop()
        self.assertIsNone(scheduler.pid(), "the test's scheduler has been stopped")
        with self.lent("two") as plane:
            client = plane.client()
            self.assertEqual(plane.state.api_port, first, "it is the same plane")
            self.assertEqual(client.items("Pod") + client.items("Node"), [])
            self.assertEqual({space["metadata"]["name"] for space in client.items("Namespace")},
                             {"default", "kube-system", "kube-public", "kube-node-lease"})
            self.assertEqual(client.get("ConfigMap", "shipped")["data"], {"a": "1"})
            self.assertEqual({role["metadata"]["name"] for role in client.items("ClusterRole")}, roles)
            # It need not be at once that kube-apiserver sees what etcd has.
            wait_for(lambda: client.create(pod_object("free")), ignore=(ApiError,), what="no webhook is asked any more")
            define(client)
            with self.lent("three") as other:
                self.assertNotEqual(other.state.api_port, first, "one that is in use is not given to another")

    def test_a_plane_of_a_test_that_failed_is_not_given_on(self):
        with self.assertRaises(KeyError), self.lent("one") as plane:
            first = plane.state.api_port
            raise KeyError
        with self.lent("two") as plane:
            self.assertNotEqual(plane.state.api_port, first)

    def test_all_end_with_the_process_that_is_watched(self):
        with self.lent("one") as plane:
            processes = plane.processes()
            self.assertEqual([process.pid() is None for process in processes], [False, False])
        os.kill(self.watched.pid, signal.SIGKILL)
        self.watched.wait()
        wait_for(lambda: not self.planes.exists(), what="the keeper has ended all")
        self.assertEqual([process.pid() for process in processes], [None, None])
        self.assertFalse(self.pool.is_kept())

    def test_one_in_use_ends_as_well(self):
        with self.assertRaises(Exception), self.lent("one") as plane:
            plane.scheduler_start()
            processes = plane.processes()
            subprocess.run([*COMMAND, "stop", self.planes], check=True)
            self.assertEqual([process.pid() for process in processes], [None] * 3)
            self.assertFalse(self.planes.exists())


if __name__ == "__main__":
    unittest.main(warnings="ignore")
