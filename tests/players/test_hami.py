#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the played plugins of the HAMi family to what the real ones do, their defects included."""

import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "controlplane")]

from hami import (  # noqa: E402
    BEHAVIOURS,
    FOREVER,
    Card,
    Device,
    Refused,
    choose,
    is_served,
    locked_pod,
    read_promise,
    register_text,
    serve,
    write_promise,
)

V28, V29 = BEHAVIOURS["hami-v2.8"], BEHAVIOURS["hami-v2.9"]
OLD = BEHAVIOURS["4paradigm-da7d4ed"]
VOLCANO, VOLCANO_NEW = BEHAVIOURS["volcano-0bd97d0"], BEHAVIOURS["volcano-0798272"]
CARDS = [Card("GPU-a", 15360), Card("GPU-b", 15360, health=False)]


def pod(behaviour, name, promise, phase="allocating", time="5", status="Pending", containers=2):
    key = behaviour.key
    return {
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": name,
            "annotations": {
                key("vgpu-node"): "n1",
                key("bind-time"): "1",
                key("bind-phase"): phase,
                key("vgpu-time"): time,
                behaviour.promise: promise,
            },
        },
        "spec": {"containers": [{"name": f"c{number}"} for number in range(containers)]},
        "status": {"phase": status},
    }


def name(found):
    return found["metadata"]["name"]


A = "GPU-a,NVIDIA,3000,0:"
B = "GPU-b,NVIDIA,5000,30:"


class Texts(unittest.TestCase):
    def test_register(self):
        self.assertEqual(
            register_text(BEHAVIOURS["hami-v2.5"], CARDS),
            "GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true,0,hami-core:"
            "GPU-b,10,15360,100,NVIDIA-Tesla T4,0,false,1,hami-core:",
        )
        self.assertEqual(
            register_text(OLD, CARDS[:1]), "GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true:"
        )
        self.assertEqual(
            register_text(VOLCANO, CARDS[:1]), "GPU-a,10,15360,NVIDIA-Tesla T4,true,hami-core:"
        )
        written = json.loads(register_text(V29, CARDS))
        self.assertEqual([card["id"] for card in written], ["GPU-b", "GPU-a"])
        self.assertNotIn("health", written[0], "what is false or zero is left out")
        self.assertNotIn("index", written[1])

    def test_promise(self):
        text = f";{A};{A}{B};"
        self.assertEqual([len(devices) for devices in read_promise(text)], [0, 1, 2, 0])
        self.assertEqual(read_promise(B)[0], [Device("GPU-b", "NVIDIA", 5000, 30)])
        self.assertEqual(write_promise(V28, [[], read_promise(A)[0]]), f";{A};")
        self.assertEqual(write_promise(VOLCANO, [read_promise(A)[0], []]), f"{A};")
        self.assertEqual(write_promise(OLD, [[], *read_promise(f"{A};{B}")]), f"{A}{B};")
        with self.assertRaises(Refused):
            read_promise("GPU-a,NVIDIA,3000:")

    def test_lock(self):
        self.assertEqual(locked_pod("2026-01-01T00:00:00Z,ml,a"), ("ml", "a"))
        self.assertIsNone(locked_pod("2026-01-01T00:00:00Z"))
        self.assertIsNone(locked_pod(None))
        with self.assertRaises(Refused):
            locked_pod("2026-01-01T00:00:00Z,a")


class Matching(unittest.TestCase):
    def test_the_lock_decides(self):
        pods = [pod(V28, "a", A), pod(V28, "b", B)]
        lock = "2026-01-01T00:00:00Z,ml,b"
        self.assertEqual(name(choose(V28, "n1", pods, lock, 1)), "b")
        self.assertEqual(name(choose(V28, "n1", pods, None, 1)), "a", "whoever is first")
        with self.assertRaises(Refused):
            choose(V28, "n1", pods[:1], lock, 1)

    def test_the_lock_is_not_questioned(self):
        ended = pod(V29, "a", A, phase="failed", status="Failed")
        self.assertEqual(name(choose(V29, "n1", [ended], "t,ml,a", 1)), "a")

    def test_a_served_pod_that_still_starts(self):
        pods = [pod(V29, "served", ";", phase="success"), pod(V29, "next", B)]
        self.assertEqual(name(choose(V29, "n1", pods, None, 1)), "served")
        self.assertEqual(name(choose(V28, "n1", pods, None, 1)), "next")

    def test_other_nodes_and_phases(self):
        self.assertRaises(Refused, choose, V28, "n2", [pod(V28, "a", A)], None, 1)
        running = pod(V28, "a", A, status="Running")
        self.assertRaises(Refused, choose, V28, "n1", [running], None, 1)
        ended = pod(OLD, "a", A, status="Failed")
        self.assertEqual(name(choose(OLD, "n1", [ended], None, 1)), "a", "takes what has ended")

    def test_volcano_goes_by_time(self):
        pods = [pod(VOLCANO, "late", A, time="9"), pod(VOLCANO, "early", B, time="3")]
        self.assertEqual(name(choose(VOLCANO, "n1", pods, None, 1)), "early")
        pods[1]["metadata"]["annotations"]["volcano.sh/vgpu-time"] = FOREVER
        self.assertEqual(name(choose(VOLCANO, "n1", pods, None, 1)), "late")

    def test_newer_volcano_counts_the_whole_pod(self):
        pods = [pod(VOLCANO_NEW, "two", A + B), pod(VOLCANO_NEW, "one", B)]
        self.assertEqual(name(choose(VOLCANO_NEW, "n1", pods, None, 2)), "two")
        self.assertEqual(name(choose(VOLCANO_NEW, "n1", pods, None, 1)), "one")
        both = [pod(VOLCANO_NEW, "both", f"{A};{B}")]
        self.assertRaises(Refused, choose, VOLCANO_NEW, "n1", both, None, 1)


class Serving(unittest.TestCase):
    def test_one_container_after_another(self):
        found = pod(V28, "a", f";{A};{A}{B};")
        devices, left = serve(V28, found, 1)
        self.assertEqual([device.memory for device in devices], [3000])
        self.assertFalse(is_served(V28, left))
        found["metadata"]["annotations"][V28.promise] = left
        devices, left = serve(V28, found, 2)
        self.assertEqual([device.uuid for device in devices], ["GPU-a", "GPU-b"])
        self.assertTrue(is_served(V28, left))

    def test_refusals(self):
        self.assertRaises(Refused, serve, V28, pod(V28, "a", f"{A}{B};"), 1)
        self.assertRaises(Refused, serve, V28, pod(V28, "a", ";;"), 1)

    def test_an_init_container_first_is_beyond_the_old_ones(self):
        self.assertEqual(len(serve(V28, pod(V28, "a", f";;{A};"), 1)[0]), 1)
        for behaviour in (OLD, VOLCANO):
            self.assertRaises(Refused, serve, behaviour, pod(behaviour, "a", f";;{A}"), 1)

    def test_the_oldest_glues_what_is_left(self):
        _, left = serve(OLD, pod(OLD, "a", f"{A};{B};{A};", containers=3), 1)
        self.assertEqual(left, f"{B}{A};")
        self.assertRaises(Refused, serve, OLD, pod(OLD, "a", left, containers=3), 1)


if __name__ == "__main__":
    unittest.main()
