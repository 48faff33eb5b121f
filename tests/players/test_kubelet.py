#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every played kubelet keeps to."""

import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "controlplane"))

from kubelet import Fleet, Kubelet  # noqa: E402

POD = {"metadata": {"uid": "u", "namespace": "default", "name": "p"}, "spec": {"containers": []}}


class Reports(unittest.TestCase):
    def test_a_report_that_comes_late_does_not_have_an_ended_pod_live_again(self):
        client = mock.Mock()
        kubelet = Fleet(client).add(Kubelet, "n1", [1])
        kubelet._seen["u"] = "admitted"
        kubelet._report_containers(POD, "Running", {"running": {}})
        # Another thread has looked whether the pod is alive, and reports after its end.
        kubelet.finish(POD, "Succeeded")
        kubelet._seen["u"] = "admitted"
        kubelet._report_containers(POD, "Running", {"running": {}})
        kubelet._report_admitted(POD, [])
        phases = [call.args[2]["status"]["phase"] for call in client.patch.call_args_list]
        self.assertEqual(phases, ["Running", "Succeeded"])


if __name__ == "__main__":
    unittest.main()
