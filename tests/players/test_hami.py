#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the played plugins of the HAMi family to what the real ones do, their defects included."""

import datetime
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "controlplane")]

from hami_mig import ALLOCATIONS, Places, Templates  # noqa: E402
from hami import (  # noqa: E402
    BEHAVIOURS,
    FOREVER,
    Card,
    Device,
    Refused,
    choose,
    handshake_text,
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
        moment = datetime.datetime(2026, 11, 25, 12, tzinfo=datetime.timezone.utc)
        self.assertEqual(
            handshake_text(BEHAVIOURS["hami-v2.5"], moment),
            "Reported 2026-11-25 12:00:00.000000123 +0000 UTC m=+30.000000001",
        )
        self.assertIsNone(handshake_text(V29, moment), "since v2.8 no plugin writes it")
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
        position, devices, left = serve(V28, found, 1)
        self.assertEqual(position, 1)
        self.assertEqual([device.memory for device in devices], [3000])
        self.assertFalse(is_served(V28, left))
        found["metadata"]["annotations"][V28.promise] = left
        position, devices, left = serve(V28, found, 2)
        self.assertEqual(position, 2)
        self.assertEqual([device.uuid for device in devices], ["GPU-a", "GPU-b"])
        self.assertTrue(is_served(V28, left))

    def test_refusals(self):
        self.assertRaises(Refused, serve, V28, pod(V28, "a", f"{A}{B};"), 1)
        self.assertRaises(Refused, serve, V28, pod(V28, "a", ";;"), 1)

    def test_an_init_container_first_is_beyond_the_old_ones(self):
        self.assertEqual(len(serve(V28, pod(V28, "a", f";;{A};"), 1)[1]), 1)
        for behaviour in (OLD, VOLCANO):
            self.assertRaises(Refused, serve, behaviour, pod(behaviour, "a", f";;{A}"), 1)

    def test_the_oldest_glues_what_is_left(self):
        _, _, left = serve(OLD, pod(OLD, "a", f"{A};{B};{A};", containers=3), 1)
        self.assertEqual(left, f"{B}{A};")
        self.assertRaises(Refused, serve, OLD, pod(OLD, "a", left, containers=3), 1)


def entry(card, profile, start, size, container=0, device=0):
    return {
        "containerIndex": container,
        "deviceIndex": device,
        "gpuUUID": card,
        "profile": profile,
        "placement": {"start": start, "size": size},
    }


class Instances(unittest.TestCase):
    def test_the_register_of_v2_10(self):
        cards = [Card("GPU-a", 40960, mode="mig"), Card("GPU-b", 40960)]
        written = json.loads(register_text(BEHAVIOURS["hami-v2.10"], cards))
        self.assertNotIn("migProfiles", written[0])
        profiles = {profile["name"]: profile for profile in written[1]["migProfiles"]}
        self.assertEqual(profiles["2g.10gb"]["placements"][2], {"start": 4, "size": 2})
        self.assertNotIn("migProfiles", json.loads(register_text(V29, cards))[1])

    def test_exactly_what_was_reserved_is_made(self):
        places = Places()
        made = places.ensure(entry("GPU-a", "2g.10gb", 2, 2))
        self.assertEqual(made["migUUID"], "MIG-1")
        self.assertEqual(places.ensure(entry("GPU-a", "2g.10gb", 2, 2)), made, "it is there")
        places.ensure(entry("GPU-b", "7g.40gb", 0, 8))
        for wrong in (
            entry("GPU-a", "1g.5gb", 3, 1),
            entry("GPU-a", "2g.10gb", 1, 2),
            entry("GPU-a", "3g.20gb", 4, 3),
            entry("GPU-a", "4g.20gb", 0, 4),
        ):
            self.assertRaises(Refused, places.ensure, wrong)
        places.ensure(entry("GPU-a", "3g.20gb", 4, 4))

    def test_what_nobody_has_is_taken_down(self):
        places = Places()
        kept, gone = entry("GPU-a", "1g.5gb", 0, 1), entry("GPU-a", "1g.5gb", 1, 1)
        places.ensure(kept)
        places.ensure(gone)
        places.reconcile([kept])
        places.ensure(entry("GPU-a", "2g.10gb", 2, 2))
        self.assertEqual(len(places.live), 2)

    def test_each_device_has_one_reservation(self):
        places = Places()
        two = [Device("GPU-a", "NVIDIA", 4864, 14)] * 2
        entries = [entry("GPU-a", "1g.5gb", 0, 1, 1, 0), entry("GPU-a", "1g.5gb", 1, 1, 1, 1)]
        said = {ALLOCATIONS: json.dumps(entries)}
        self.assertEqual(places.entries_of(said, 1, two), entries)
        self.assertRaises(Refused, places.entries_of, said, 0, two)
        self.assertRaises(Refused, places.entries_of, {}, 1, two)
        said = {ALLOCATIONS: json.dumps([*entries, entries[0]])}
        self.assertRaises(Refused, places.entries_of, said, 1, two)

    def test_templates(self):
        templates = Templates()

        def take(pod, uuid, memory):
            templates.take(pod, [Device(uuid, "NVIDIA", memory, 14)])

        take("a", "GPU-a[0-0]", 5120)
        take("b", "GPU-a[0-1]", 5120)
        for uuid, memory in (
            ("GPU-a[0-1]", 5120),
            ("GPU-a[2-0]", 20480),
            ("GPU-b[1-0]", 10240),
            ("GPU-b[2-2]", 20480),
            ("GPU-b[9-0]", 20480),
            ("GPU-b", 20480),
        ):
            self.assertRaises(Refused, take, "c", uuid, memory)
        templates.end("a")
        self.assertRaises(Refused, take, "c", "GPU-a[2-0]", 20480)
        templates.end("b")
        take("c", "GPU-a[2-0]", 20480)

    def test_templates_with_names(self):
        templates = Templates(group="group")
        templates.take("a", [Device("GPU-a[group1-1]", "NVIDIA", 5120, 14)])
        for uuid, memory in (
            ("GPU-a[group1-1]", 5120),
            ("GPU-a[0-2]", 5120),
            ("GPU-a[group3-0]", 20480),
            ("GPU-b[group5-0]", 20480),
            ("GPU-b[group0-0]", 5120),
        ):
            devices = [Device(uuid, "NVIDIA", memory, 14)]
            self.assertRaises(Refused, templates.take, "c", devices)

    def test_templates_of_several_sizes(self):
        templates = Templates(ordered=True)
        templates.take("a", [Device("GPU-a[1-2]", "NVIDIA", 10240, 28)])
        templates.take("b", [Device("GPU-a[1-3]", "NVIDIA", 5120, 14)])
        for uuid, memory in (("GPU-a[1-0]", 5120), ("GPU-a[1-4]", 5120)):
            devices = [Device(uuid, "NVIDIA", memory, 14)]
            self.assertRaises(Refused, templates.take, "c", devices)


if __name__ == "__main__":
    unittest.main()
