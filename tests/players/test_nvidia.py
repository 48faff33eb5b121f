#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the played NVIDIA plugin, and kubelet's device manager, to what the real ones do."""

import collections
import pathlib
import random
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "controlplane")]

from nvidia import (  # noqa: E402
    GPU,
    MPS,
    AdmissionError,
    DeviceManager,
    Plugin,
    Sharing,
    labels,
    merged,
    mixed_count,
    mps_clients,
    mps_limit,
)

MIG = "nvidia.com/mig-1g.5gb"


def pod(name, *containers, init=()):
    """Each container is {resource: amount}, or an amount of whole GPUs."""

    def listed(prefix, all_limits):
        limits = [each if isinstance(each, dict) else {GPU: each} for each in all_limits]
        return [
            {"name": f"{prefix}{n}", "resources": {"limits": {k: str(v) for k, v in each.items()}}}
            for n, each in enumerate(limits)
        ]

    return {
        "metadata": {"name": name, "uid": name},
        "spec": {"containers": listed("c", containers), "initContainers": listed("i", init)},
    }


def cards(given):
    return [card for _, _, _, found in given for card in found]


class WholeCards(unittest.TestCase):
    def test_four_run_the_fifth_does_not(self):
        manager = DeviceManager([Plugin("0123")])
        got = [cards(manager.admit(pod(f"p{n}", 1))) for n in range(4)]
        self.assertEqual(sorted(card for each in got for card in each), list("0123"))
        with self.assertRaisesRegex(AdmissionError, "Requested: 1, Available: 0"):
            manager.admit(pod("p4", 1))
        manager.release("p2")
        self.assertEqual(cards(manager.admit(pod("p5", 1))), got[2])

    def test_the_scheduler_cannot_tell_the_card(self):
        seen = {cards(DeviceManager([Plugin("0123")], seed).admit(pod("p", 1)))[0] for seed in range(40)}
        self.assertEqual(seen, set("0123"))

    def test_all_or_nothing(self):
        manager = DeviceManager([Plugin("012")])
        with self.assertRaises(AdmissionError):
            manager.admit(pod("p", 2, 2))
        self.assertEqual(len(cards(manager.admit(pod("q", 3)))), 3)

    def test_init_containers_devices_are_used_again(self):
        manager = DeviceManager([Plugin("01")])
        given = manager.admit(pod("p", 1, 1, init=(2,)))
        self.assertEqual([name for name, *_ in given], ["i0", "c0", "c1"])
        self.assertEqual(sorted(cards(given[1:])), ["0", "1"])


class Shared(unittest.TestCase):
    def test_replicas(self):
        manager = DeviceManager([Plugin("0", sharing=Sharing(replicas=2))])
        self.assertEqual(manager.capacity(), {GPU: 2})
        self.assertEqual([cards(manager.admit(pod(n, 1))) for n in "ab"], [["0"], ["0"]])
        with self.assertRaises(AdmissionError):
            manager.admit(pod("c", 1))

    def test_forty(self):
        plugin = Plugin("01234567", sharing=Sharing(replicas=5, rename=True))
        manager = DeviceManager([plugin])
        self.assertEqual(manager.capacity(), {"nvidia.com/gpu.shared": 40})
        one = {"nvidia.com/gpu.shared": 1}
        on = collections.Counter(cards(manager.admit(pod(f"p{n}", one)))[0] for n in range(40))
        self.assertEqual(set(on.values()), {5})

    def test_policies(self):
        def spread_of(policy):
            manager = DeviceManager([Plugin("012", sharing=Sharing(replicas=4, policy=policy))])
            return len({cards(manager.admit(pod(f"p{n}", 1)))[0] for n in range(3)})

        self.assertEqual((spread_of("distributed"), spread_of("packed")), (3, 1))

    def test_two_replicas_may_be_one_card(self):
        manager = DeviceManager([Plugin("0", sharing=Sharing(replicas=2))])
        self.assertEqual(cards(manager.admit(pod("p", 2))), ["0", "0"])

    def test_fails_requests_greater_than_one(self):
        words = "maximum request size for shared resources is 1; found 2"
        strict = Sharing(replicas=2, fail_requests_greater_than_one=True)
        for sharing in (
            strict,
            Sharing(strategy=MPS, replicas=2, fail_requests_greater_than_one=True),
            Sharing(strategy=MPS, replicas=2, obeys_mps=False),
        ):
            manager = DeviceManager([Plugin("01", sharing=sharing)])
            with self.assertRaisesRegex(AdmissionError, words):
                manager.admit(pod("p", 2))
            self.assertEqual(len(cards(manager.admit(pod("q", 1, 1)))), 2, "one per container")
        lonely = Sharing(replicas=1, fail_requests_greater_than_one=True)
        self.assertEqual(len(cards(DeviceManager([Plugin("01", sharing=lonely)]).admit(pod("p", 2)))), 2)

    def test_mps_with_more_than_one_device_since_v0_20(self):
        manager = DeviceManager([Plugin("0", sharing=Sharing(strategy=MPS, replicas=2))])
        self.assertEqual(cards(manager.admit(pod("p", 2))), ["0", "0"])

    def test_mps_with_too_many_clients_has_no_device(self):
        for capability, most in ((7.0, 16), (7.5, 48), (9.0, 48)):
            self.assertEqual(mps_clients(capability), most)
            for replicas, devices in ((most, most), (most + 1, 0)):
                plugin = Plugin("0", GPU, Sharing(strategy=MPS, replicas=replicas), capability)
                self.assertEqual(len(plugin.devices), devices)
        self.assertEqual(mps_limit(40000, 3), 13333)

    def test_kubelet_sees_no_change_from_time_slicing_to_mps(self):
        plugins = [Plugin("0", sharing=Sharing(strategy=s, replicas=4)) for s in ("time-slicing", MPS)]
        self.assertEqual(plugins[0].devices, plugins[1].devices)

    def test_changed_replicas_make_held_cards_look_free(self):
        manager = DeviceManager([Plugin("0")])
        self.assertEqual(cards(manager.admit(pod("whole", 1))), ["0"])
        manager.register([Plugin("0", sharing=Sharing(replicas=2))])
        self.assertEqual(cards(manager.admit(pod("shared", 2))), ["0", "0"])


class Instances(unittest.TestCase):
    def test_mixed(self):
        manager = DeviceManager([Plugin("0"), Plugin(["m1", "m2"], MIG)])
        self.assertEqual(manager.capacity(), {GPU: 1, MIG: 2})
        self.assertEqual(cards(manager.admit(pod("a", {GPU: 1, MIG: 1}))[:1]), ["0"])
        self.assertEqual(len(cards(manager.admit(pod("b", {MIG: 1})))), 1)
        with self.assertRaises(AdmissionError):
            manager.admit(pod("c", {MIG: 1}))


class Labels(unittest.TestCase):
    def test_several_models_have_the_labels_of_one(self):
        groups = [labels(1, product="Tesla-T4", memory=15360), labels(2, product="A100", memory=40960)]
        seen = {
            (said[GPU + ".product"], said[GPU + ".memory"], said[GPU + ".count"])
            for said in (merged(groups, random.Random(seed)) for seed in range(20))
        }
        self.assertEqual(seen, {("Tesla-T4", "15360", "1"), ("A100", "40960", "2")})
        self.assertEqual(mixed_count(4, 4), 8)

    def test_product(self):
        self.assertEqual(labels(1)[GPU + ".product"], "Tesla-T4")
        self.assertEqual(labels(1, Sharing(replicas=2))[GPU + ".product"], "Tesla-T4-SHARED")
        renamed = labels(1, Sharing(replicas=2, rename=True))
        self.assertEqual(renamed[GPU + ".product"], "Tesla-T4")
        self.assertEqual(renamed["nvidia.com/gpu.sharing-strategy"], "time-slicing")


if __name__ == "__main__":
    unittest.main()
