#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the played plugins of the HAMi family to what the real ones do, their defects included."""

import datetime
import json
import pathlib
import random
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "controlplane")]

from hami_ids import Ids  # noqa: E402
from hami_mig import ALLOCATIONS, Places, Templates, key_of  # noqa: E402
from hami import (  # noqa: E402
    BEHAVIOURS,
    FOREVER,
    Card,
    Device,
    Refused,
    choose,
    handshake_text,
    is_hooked,
    is_served,
    locked_pod,
    read_promise,
    register_text,
    serve,
    write_promise,
)

V28, V29 = BEHAVIOURS["hami-v2.8"], BEHAVIOURS["hami-v2.9"]
OLD = BEHAVIOURS["4paradigm-da7d4ed"]
V210 = BEHAVIOURS["hami-v2.10"]
VOLCANO_19, VOLCANO_194, VOLCANO_111, VOLCANO_112 = (
    BEHAVIOURS[f"volcano-{version}"] for version in ("v1.9.0", "v1.9.4", "v1.11.0", "v1.12.0")
)
CARDS = [Card("GPU-a", 15360), Card("GPU-b", 15360, health=False)]


def pod(behaviour, name, promise, phase="allocating", time="5", status="Pending", containers=2, bound="n1"):
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
        "spec": {
            "containers": [{"name": f"c{number}"} for number in range(containers)],
            **({"nodeName": bound} if bound else {}),
        },
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
            register_text(VOLCANO_111, CARDS[:1]), "GPU-a,10,15360,NVIDIA-Tesla T4,true,hami-core:"
        )
        for old in (VOLCANO_19, VOLCANO_194):
            self.assertEqual(
                register_text(old, CARDS[:1]), "GPU-a,10,15360,NVIDIA-Tesla T4,false:", "never well"
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
        self.assertEqual(write_promise(VOLCANO_111, [read_promise(A)[0], []]), f"{A};")
        self.assertEqual(write_promise(OLD, [[], *read_promise(f"{A};{B}")]), f"{A}{B};")
        with self.assertRaises(Refused):
            read_promise("GPU-a,NVIDIA,3000:")

    def test_memory_that_is_registered(self):
        def memory(behaviour, mode="hami-core", **more):
            text = register_text(behaviour, [Card("GPU-a", 1000, mode=mode)], **more)
            return json.loads(text)[0]["devmem"] if text[0] == "[" else int(text.split(",")[2])

        self.assertEqual(memory(V29, scaling=2), 2000)
        self.assertEqual(memory(V29, "mig", scaling=2), 1000, "instances are real since v2.8")
        self.assertEqual(memory(BEHAVIOURS["hami-v2.5"], "mig", scaling=2), 2000)
        self.assertEqual(memory(VOLCANO_112, scaling=2), 1000, "parsed and unused")
        self.assertEqual(memory(VOLCANO_112, factor=10), 100)

    def test_empty_places_are_dropped_up_to_v2_8(self):
        self.assertEqual(len(read_promise(f";{A};", V28)), 1)
        self.assertEqual(len(read_promise(f";{A};", V29)), 3)

    def test_amounts_that_are_no_numbers(self):
        text = "GPU-a,NVIDIA,8Gi,x:"
        self.assertEqual(read_promise(text, V29)[0], [Device("GPU-a", "NVIDIA", 0, 0)])
        self.assertRaises(Refused, read_promise, text, V210)

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

    def test_hami_looks_at_its_own_pending_pods(self):
        self.assertRaises(Refused, choose, V28, "n2", [pod(V28, "a", A)], None, 1)
        for other in (pod(V28, "a", A, status="Running"), pod(V28, "a", A, bound=None)):
            self.assertRaises(Refused, choose, V28, "n1", [other], None, 1)

    def test_4paradigm_and_volcano_look_at_all_pods_in_every_phase(self):
        for behaviour in (OLD, VOLCANO_19, VOLCANO_112):
            for status in ("Pending", "Running", "Failed", "Succeeded"):
                for bound in ("n1", "n2", None):
                    found = choose(behaviour, "n1", [pod(behaviour, "a", A, status=status, bound=bound)], None, 1)
                    self.assertEqual(name(found), "a")
            served = pod(behaviour, "a", "" if behaviour.counts else A, phase="success")
            self.assertRaises(Refused, choose, behaviour, "n1", [served], None, 1)

    def test_volcano_goes_by_time(self):
        for behaviour in (VOLCANO_194, VOLCANO_111, VOLCANO_112):
            pods = [pod(behaviour, "late", A, time="9"), pod(behaviour, "early", B, time="3")]
            self.assertEqual(name(choose(behaviour, "n1", pods, None, 1)), "early")
            pods[1]["metadata"]["annotations"]["volcano.sh/vgpu-time"] = FOREVER
            self.assertEqual(name(choose(behaviour, "n1", pods, None, 1)), "late")
        by_name = [pod(VOLCANO_19, "a", A, time="9"), pod(VOLCANO_19, "b", B, time="3")]
        self.assertEqual(name(choose(VOLCANO_19, "n1", by_name, None, 1)), "a", "not before v1.9.4")

    def test_v1_9_4_to_v1_11_begin_with_the_first_pod_of_the_cluster(self):
        for behaviour in (VOLCANO_194, VOLCANO_111):
            elsewhere = pod(behaviour, "a", A, time="2", bound="n2")
            elsewhere["metadata"]["annotations"]["volcano.sh/vgpu-node"] = "n2"
            pods = [elsewhere, pod(behaviour, "b", B, time="3")]
            self.assertEqual(name(choose(behaviour, "n1", pods, None, 1)), "a", "it is earlier")
            elsewhere["metadata"]["annotations"]["volcano.sh/vgpu-time"] = "4"
            self.assertEqual(name(choose(behaviour, "n1", pods, None, 1)), "b")
            stranger = {"metadata": {"name": "x", "namespace": "ml"}, "spec": {}, "status": {}}
            found = choose(behaviour, "n1", [stranger], None, 1)
            self.assertEqual(name(found), "x", "where there is none of its own")
            self.assertRaises(Refused, serve, behaviour, found, 1)

    def test_volcano_v1_12_counts_the_whole_pod(self):
        pods = [pod(VOLCANO_112, "two", A + B), pod(VOLCANO_112, "one", B)]
        self.assertEqual(name(choose(VOLCANO_112, "n1", pods, None, 2)), "two")
        self.assertEqual(name(choose(VOLCANO_112, "n1", pods, None, 1)), "one")
        both = [pod(VOLCANO_112, "both", f"{A};{B}")]
        self.assertRaises(Refused, choose, VOLCANO_112, "n1", both, None, 1)

    def test_volcano_v1_12_among_equal_times(self):
        pods = [pod(VOLCANO_112, each, A) for each in "abc"]
        self.assertEqual(name(choose(VOLCANO_112, "n1", pods, None, 1)), "c", "the list's last")
        pods[2] = pod(VOLCANO_112, "c", A, time="9")
        self.assertEqual(name(choose(VOLCANO_112, "n1", pods, None, 1)), "a", "else its first")

    def test_a_promise_that_stands_goes_from_pod_to_pod(self):
        """kubelet has rejected x before it asked; each pod that comes is handed its forerunner's."""
        pods = [pod(VOLCANO_112, "x", A, time="1", status="Failed")]
        handed = []
        for number in range(2, 5):
            pods.append(pod(VOLCANO_112, f"p{number}", A, time=str(number)))
            found = choose(VOLCANO_112, "n1", pods, None, 1)
            handed.append(name(found))
            found["metadata"]["annotations"].update({VOLCANO_112.promise: "", "volcano.sh/vgpu-time": FOREVER})
        self.assertEqual(handed, ["x", "p2", "p3"])


class Serving(unittest.TestCase):
    def test_one_container_after_another(self):
        for behaviour, first, second in ((V29, 1, 2), (V28, 0, 0)):
            found = pod(behaviour, "a", f";{A};{A}{B};")
            position, devices, left = serve(behaviour, found, 1)
            self.assertEqual(position, first)
            self.assertEqual([device.memory for device in devices], [3000])
            self.assertFalse(is_served(behaviour, left))
            found["metadata"]["annotations"][behaviour.promise] = left
            position, devices, left = serve(behaviour, found, 2)
            self.assertEqual(position, second)
            self.assertEqual([device.uuid for device in devices], ["GPU-a", "GPU-b"])
            self.assertTrue(is_served(behaviour, left))

    def test_refusals(self):
        self.assertRaises(Refused, serve, V28, pod(V28, "a", f"{A}{B};"), 1)
        self.assertRaises(Refused, serve, V28, pod(V28, "a", ";;"), 1)

    def test_an_init_container_first_is_beyond_the_old_ones(self):
        self.assertEqual(len(serve(V28, pod(V28, "a", f";;{A};"), 1)[1]), 1)
        for behaviour in (OLD, VOLCANO_111):
            self.assertRaises(Refused, serve, behaviour, pod(behaviour, "a", f";;{A}"), 1)

    def test_the_oldest_glues_what_is_left(self):
        _, _, left = serve(OLD, pod(OLD, "a", f"{A};{B};{A};", containers=3), 1)
        self.assertEqual(left, f"{B}{A};")
        self.assertRaises(Refused, serve, OLD, pod(OLD, "a", left, containers=3), 1)


class Hook(unittest.TestCase):
    def test_a_pod_may_do_without(self):
        def hooked(behaviour, *values):
            env = [{"name": "CUDA_DISABLE_CONTROL", "value": value} for value in values]
            return is_hooked(behaviour, {"name": "c", "env": env})

        self.assertTrue(hooked(V210) and hooked(OLD) and hooked(VOLCANO_112))
        self.assertFalse(hooked(V210, "true"))
        self.assertTrue(hooked(V210, "false"))
        self.assertFalse(hooked(OLD, "false") or hooked(VOLCANO_112, "false"), "whatever its value")


class PreferredIds(unittest.TestCase):
    """HAMi v2.9 on with enablegetpreferredallocation: annotations stay, cards are those of the ids."""

    def take(self, ids, pod, *promised, init=False):
        return sorted(ids.take(pod, list(promised), init))

    def test_what_was_promised(self):
        ids = Ids({"a": 2, "b": 2}, random.Random(1))
        self.assertEqual(self.take(ids, "p", "b"), ["b"])
        self.assertEqual(self.take(ids, "q", "a", "b"), ["a", "b"])

    def test_an_app_container_takes_over_the_cards_of_its_init_containers(self):
        ids = Ids({"a": 2, "b": 2}, random.Random(1))
        self.assertEqual(self.take(ids, "p", "b", init=True), ["b"])
        self.assertEqual(self.take(ids, "p", "a"), ["b"], "promised was a")
        self.assertEqual(self.take(ids, "p", "a"), ["a"], "once")

    def test_a_card_without_ids(self):
        ids = Ids({"a": 1, "b": 2}, random.Random(1))
        self.take(ids, "p", "a")
        self.assertEqual(self.take(ids, "q", "a"), ["b"], "kubelet takes any")
        ids.end("p")
        self.assertEqual(self.take(ids, "r", "a"), ["a"])

    def test_in_any_order(self):
        found = {tuple(Ids({"a": 2, "b": 2}, random.Random(n)).take("p", ["a", "b"], False)) for n in range(20)}
        self.assertEqual(found, {("a", "b"), ("b", "a")})


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

    def reconcile(self, places, *active, in_use=(), seed=1):
        return places.reconcile([json.dumps(each) for each in active], map(json.dumps, in_use), random.Random(seed))

    def test_what_nobody_has_is_taken_down(self):
        places = Places()
        kept, gone = entry("GPU-a", "1g.5gb", 0, 1), entry("GPU-a", "1g.5gb", 1, 1)
        places.ensure(kept)
        places.ensure(gone)
        self.assertTrue(self.reconcile(places, [kept]))
        places.ensure(entry("GPU-a", "2g.10gb", 2, 2))
        self.assertEqual(len(places.live), 2)

    def test_a_pod_that_is_being_deleted_ends_the_round(self):
        left = set()
        for seed in range(10):
            places = Places()
            computes, gone = entry("GPU-a", "1g.5gb", 0, 1), entry("GPU-a", "1g.5gb", 1, 1)
            places.ensure(computes)
            places.ensure(gone)
            self.assertFalse(self.reconcile(places, in_use=[[computes]], seed=seed))
            left.add(len(places.live))
            self.assertTrue(self.reconcile(places), "its pod is gone")
            self.assertEqual(places.live, {})
        self.assertEqual(left, {1, 2}, "others stay, or not, by the order of a map")

    def test_an_annotation_that_cannot_be_read_ends_every_round(self):
        places = Places()
        places.ensure(entry("GPU-a", "1g.5gb", 0, 1))
        for text in ("x", "[{}]", "[1]"):
            self.assertFalse(places.reconcile([text], [], random.Random(1)))
        self.assertEqual(len(places.live), 1)

    def test_what_is_not_adopted_is_never_taken_down(self):
        places = Places()
        first, second = entry("GPU-a", "1g.5gb", 0, 1), entry("GPU-a", "1g.5gb", 1, 1)
        first, second = places.ensure(first), places.ensure(second)
        bound = entry("GPU-a", "1g.5gb", 2, 1)  # not served yet: nothing of the plugin's is in it
        places.restart(map(json.dumps, ([first], [bound], [second])), [json.dumps([first]), json.dumps([second])])
        self.assertTrue(self.reconcile(places, [first], [bound]))
        self.assertEqual(len(places.live), 2)
        self.assertRaises(Refused, places.ensure, second)

    def test_idle_cards_are_wiped_at_the_start(self):
        places = Places()
        first, second = places.ensure(entry("GPU-a", "1g.5gb", 0, 1)), places.ensure(entry("GPU-b", "1g.5gb", 0, 1))
        places.restart([json.dumps([first])], [json.dumps([first])])
        self.assertEqual(set(places.live), {key_of(first)})
        self.assertEqual(places.ensure(second)["migUUID"], "MIG-3")

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
