# SPDX-License-Identifier: Apache-2.0
"""The control plane of tests/controlplane with what a node needs besides: addresses that pods reach,
node authorization, service accounts, controllers."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "controlplane"))

from controlplane import ControlPlane  # noqa: E402
from enclosure import ADDRESSES  # noqa: E402
from process import Process  # noqa: E402

CONTROLLERS = "system:kube-controller-manager"
PROXY = "system:kube-proxy"
SERVICE_ADDRESS = "10.255.0.1"


def node_user(name):
    return f"system:node:{name}"


class Plane(ControlPlane):
    certificate_names = f"IP:127.0.0.1,IP:{ADDRESSES}.1,IP:{SERVICE_ADDRESS},DNS:localhost,DNS:kubernetes.default.svc"
    disabled_admission = ()
    authorization = "Node,RBAC"

    def __init__(self, folder, nodes, programs):
        super().__init__(
            folder,
            users={
                CONTROLLERS: [],
                PROXY: [],
                **{node_user(name): ["system:nodes"] for name in nodes},
            },
            apiserver_args=[
                "--bind-address=0.0.0.0",
                f"--advertise-address={ADDRESSES}.1",
                "--endpoint-reconciler-type=lease",
                "--enable-admission-plugins=NodeRestriction",
                "--kubelet-preferred-address-types=InternalIP",
            ],
        )
        self.programs = programs
        self._controllers = Process("kube-controller-manager", self.folder)
        self._proxy = Process("kube-proxy", self.folder)

    def start(self):
        super().start()
        try:
            self._start_controllers()
            self._start_proxy()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        self._proxy.stop()
        self._controllers.stop()
        super().stop()

    def _start_controllers(self):
        kubeconfig = self.kubeconfig(CONTROLLERS)
        self._controllers.start(
            [
                self.programs / "kube-controller-manager",
                f"--kubeconfig={kubeconfig}",
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
                "--bind-address=127.0.0.1",
                "--leader-elect=false",
                f"--service-account-private-key-file={self.folder}/service-account.key",
                f"--root-ca-file={self.ca_file}",
                "--use-service-account-credentials",
                "--allocate-node-cidrs=false",
                f"--cert-dir={self.folder}/controllers",
            ],
            self._environment(),
        )
        client = self.client()
        self._controllers.await_ready(lambda: client.find("ServiceAccount", "default"))

    def _start_proxy(self):
        self.client().apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "test-kube-proxy"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "system:node-proxier",
                },
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": PROXY}
                ],
            }
        )
        self._write(
            "kube-proxy.config",
            f"""
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {{kubeconfig: {self.kubeconfig(PROXY)}}}
hostnameOverride: gpu-node
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
""",
        )
        self._proxy.start(
            [self.programs / "kube-proxy", f"--config={self.folder}/kube-proxy.config"],
            self._environment(),
        )
