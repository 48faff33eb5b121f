#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own plugin: devices by count, of the kind that a pod asks for."""

import base64
import json

from scenario import GIB, Scenario, call, main, node, pod  # first: it says where players are

from nvidia import MPS, Sharing, labels

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
MIG_2G, MIG_3G = "nvidia.com/mig-2g.10gb", "nvidia.com/mig-3g.20gb"
CONFIG = "nvidia.com/device-plugin.config"
FEW = "Insufficient GPU devices"
SMALL = "larger than any card of the node"
KIND = "no GPU of the kind that the pod asks for"
ONE = {GPU: 1}


def least(memory):
    return {"gpuledger.io/gpu-memory-min": memory}


def cards(name, count, product="Tesla-T4", memory=15360, sharing=Sharing(), compute="7.5", driver=535,
          **more):
    """A node of `count` cards, with what GPU Feature Discovery says of them."""
    major, minor = compute.split(".")
    said = {
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/cuda.driver-version.major": str(driver),
    }
    resource = SHARED if sharing.rename else GPU
    facts = labels(count, sharing, product, memory)
    return node(name, {resource: count * sharing.replicas}, {**facts, **said, **more})


class S1(Scenario):
    """vGPU guests of a hypervisor: a label says the memory of the one device
    (`--nvidia-memory-label`); the smallest guest that suffices is taken, others are too small for
    good."""

    cannot = "A refusal's text is constant: the two sizes are what explain says."
    LABEL = "example.com/vgpu-memory"

    def workers(self):
        sizes = {"w0": "4GB", "w1": "16GB", "w2": "4Gi", "w3": "4096", "w4": "4GB"}
        self.start(
            *(node(name, ONE, {self.LABEL: size, "nvidia.com/vgpu.present": "true"})
              for name, size in sizes.items()),
            options=[f"--nvidia-memory-label={self.LABEL}"],
        )
        return ["w0", "w2", "w3", "w4"]

    def test_small_pods_fill_small_guests_first(self):
        small = self.workers()
        where = [self.place(f"p{number}", ONE, least("3Gi")) for number in range(5)]
        self.assertEqual(where, [*small, "w1"])

    def test_a_large_pod_fits_the_large_guest_only(self):
        small = self.workers()
        self.refused("large", ONE, SMALL, least("8Gi"), nodes=small, final=True)
        self.assertEqual(self.place("first", ONE, least("8Gi")), "w1")
        self.refused("other", ONE, SMALL, least("8Gi"), nodes=small, final=True)
        self.create(pod("waits", ONE, least("8Gi")))
        self.assertEqual(self.explained("waits", "w3")["why"], "wants 8GiB, its nvidia.com/gpu have 4GiB")
        self.end("waits")
        self.refused("second", ONE, FEW, least("8Gi"), nodes=["w1"], final=False)

    def test_the_labels_of_feature_discovery(self):
        self.start(cards("small", 1, memory=4096), cards("large", 1, memory=16384))
        self.assertEqual(self.fitting(pod("p", ONE, least("8Gi"))), ["large"])


class S7(Scenario):
    """Whole cards by count: the node is chosen with the whole cluster in view, by memory, compute
    capability and model."""

    cannot = "Which card of the node a container gets, kubelet decides: devices are counted."
    e2e = ("nvidia",)

    def test_four_cards(self):
        self.start(cards("n", 4, "NVIDIA-GeForce-RTX-2080-Ti", 11019))
        for number in range(3):
            self.place(f"p{number}", ONE)
        self.refused("two", {GPU: 2}, FEW, final=False)
        self.place("p3", ONE)
        self.refused("fifth", ONE, FEW, final=False)
        self.end("p0")
        self.place("fifth", ONE)

    def test_strongest_first(self):
        self.start(
            cards("t4", 2, compute="7.5"), cards("a100", 2, compute="8.0"),
            options=["--policy=strongest"],
        )
        self.assertEqual([self.place(n, {GPU: 2}) for n in ("a", "b")], ["a100", "t4"])

    def test_memory_of_the_card(self):
        self.start(
            cards("small", 8, "NVIDIA-GeForce-RTX-2080-Ti", 11019),
            cards("large", 1, "NVIDIA-A30", 24576),
        )
        self.assertEqual(self.place("a", ONE, least("24Gi")), "large")
        self.refused("b", ONE, SMALL, least("24Gi"), nodes=["small"], final=True)
        self.refused("c", ONE, FEW, least("24Gi"), nodes=["large"], final=False)


class S13(Scenario):
    """MIG, strategy single: each instance is a device of its own memory."""

    def test_seven_instances(self):
        product = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
        self.start(cards("n", 7, product, 4864, compute="8.0", **{"nvidia.com/mig.strategy": "single"}))
        self.refused("large", ONE, SMALL, least("8Gi"), final=True)
        for number in range(7):
            self.place(f"p{number}", ONE, least("4Gi"))
        self.refused("eighth", ONE, FEW, final=False)


class S14(Scenario):
    """MIG, strategy mixed: whole cards and instances of a node are different devices; a pod that asks
    for memory gets the smallest profile that is enough (`--admission`)."""

    cannot = "The resource that a pod names counts before any extender is asked, hence a webhook."

    e2e = ("nvidia",)

    def mixed(self):
        said = {
            **labels(1, product="NVIDIA-A100-SXM4-40GB", memory=40960),
            **labels(1, product="NVIDIA-A100-SXM4-40GB-MIG-2g.10gb", memory=9856, resource=MIG_2G),
            **labels(1, product="NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", memory=19968, resource=MIG_3G),
            "nvidia.com/mig.strategy": "mixed",
        }
        self.start(node("n", {GPU: 1, MIG_2G: 1, MIG_3G: 1}, said), options=["--admission"])

    def admitted(self, wanted):
        """What the API server makes of a pod: (limits of its container, why it is refused)."""
        request = {"uid": "r", "operation": "CREATE", "object": wanted}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        status, text = call("POST", f"{self.server.scheduler}/admission/mig", review)
        self.assertEqual(status, 200, text)
        response = json.loads(text)["response"]
        if not response["allowed"]:
            return None, response["status"]["message"]
        limits = dict(wanted["spec"]["containers"][0]["resources"]["limits"])
        head = "/spec/containers/0/resources/limits"
        for change in json.loads(base64.b64decode(response["patch"])):
            key = change["path"][len(head) + 1:].replace("~1", "/")
            if change["path"] == head:
                limits = dict(change["value"])
            elif change["path"].startswith(head) and change["op"] == "remove":
                del limits[key]
            elif change["path"].startswith(head):
                limits[key] = change["value"]
        return limits, None

    def test_at_least_so_much_memory(self):
        self.mixed()
        asks = {"gpuledger.io/mig-memory": "10Gi"}
        for name, profile in (("small", MIG_2G), ("next", MIG_3G)):
            limits, _ = self.admitted(pod(name, asks))
            self.assertEqual(limits, {profile: "1"})
            self.place(name, limits)
        _, why = self.admitted(pod("large", {"gpuledger.io/mig-memory": "40Gi"}))
        self.assertIn("3g.20gb", why)

    def test_card_and_instance(self):
        self.mixed()
        self.place("job1", ONE)
        self.place("job2", {MIG_2G: 1})
        self.refused("job3", {MIG_2G: 1}, FEW, final=False)
        self.refused("job4", ONE, FEW, final=False)
        self.assertEqual(self.pool("n", MIG_3G), (0, 1))


class S16(Scenario):
    """Time-slicing: replicas are counted; more than one at a time is refused where the plugin
    fails it; what pods declare of a shared card's memory fits on it (`--nvidia-memory-guard`)."""

    cannot = "Who meets whom on a card, kubelet decides: the guard counts those that want most together."

    e2e = ("nvidia", "nvidia-guard")
    TWICE = Sharing(replicas=2, fail_requests_greater_than_one=True)

    def test_a_card_in_two(self):
        self.start(cards("n", 1, sharing=self.TWICE))
        for number in range(2):
            self.place(f"p{number}", ONE)
        self.refused("third", ONE, FEW, final=False)

    def test_eight_cards_in_five(self):
        for resource, sharing in ((GPU, Sharing(replicas=5)), (SHARED, Sharing(replicas=5, rename=True))):
            self.start(cards("n", 8, sharing=sharing))
            for number in range(40):
                self.place(f"p{number}", {resource: 1})
            self.refused("late", {resource: 1}, FEW, final=False)
            self.assertEqual(self.pool("n", resource), (40, 40))

    def test_two_at_a_time(self):
        self.start(
            cards("n", 1, sharing=self.TWICE),
            options=["--nvidia-fail-requests-greater-than-one"],
        )
        self.refused("two", {GPU: 2}, "fewer devices at a time than the pod asks for", final=True)

    def test_not_shared(self):
        self.start(cards("shared", 1, sharing=self.TWICE), cards("whole", 1))
        alone = {"gpuledger.io/gpu-unshared": "true"}
        self.refused("no", ONE, KIND, alone, nodes=["shared"], final=True)
        self.assertEqual(self.place("alone", ONE, alone), "whole")

    def test_declared_memory(self):
        wants = {"gpuledger.io/gpu-memory": "10Gi"}
        self.start(cards("t4", 1, sharing=self.TWICE), options=["--nvidia-memory-guard"])
        self.place("a", ONE, wants)
        self.refused("b", ONE, "want more memory than it has", wants, final=False)
        self.place("small", ONE, {"gpuledger.io/gpu-memory": "5Gi"})
        self.start(cards("t4", 1, sharing=self.TWICE))
        for name in ("a", "b"):  # unless asked for, nobody guards it
            self.place(name, ONE, wants)


class S17(Scenario):
    """A configuration of the plugin for each node (`--nvidia-config-replicas`): while label, plugin
    and Feature Discovery disagree (a minute at most), and while pods of the former division run,
    nothing is given."""

    e2e = ("nvidia-flip",)

    def test_capacities_differ_and_flip(self):
        four = Sharing(replicas=4)
        self.start(
            cards("default", 2),
            cards("group", 2, "NVIDIA-A100-SXM4-80GB", 81920, four, **{CONFIG: "four"}),
            options=["--nvidia-config-replicas=whole=1,four=4"],
        )
        self.assertEqual((self.pool("default"), self.pool("group")), ((0, 2), (0, 8)))
        for number in range(3):
            self.place(f"early{number}", ONE, nodes=["group"])

        def label(objects):
            objects["Node", "group"]["metadata"]["labels"][CONFIG] = "whole"

        self.restart(label)
        self.refused("stale", ONE, "", nodes=["group"])

        def status(objects):
            for key in ("capacity", "allocatable"):
                objects["Node", "group"]["status"][key] = {GPU: "2"}
            objects["Node", "group"]["metadata"]["labels"].update(
                labels(2, product="NVIDIA-A100-SXM4-80GB", memory=81920)
            )

        self.restart(status)
        self.end("early0")
        self.end("early1")
        # One of the old division may be on either card.
        self.refused("late", ONE, "share them in another way", nodes=["group"], final=False)
        self.end("early2")
        for number in range(2):
            self.place(f"late{number}", ONE, nodes=["group"])
        self.refused("third", ONE, FEW, nodes=["group"], final=False)


class S18(Scenario):
    """Labels of GPU Feature Discovery as facts of cards: conditions pick exactly the right of 20
    mixed nodes; where labels contradict the capacity, that counts, with a warning and a metric."""

    LABELLED = [  # name suffix, product, compute, driver, replicas, whether it fits
        ("a100-535", "NVIDIA-A100-SXM4-40GB", "8.0", 535, 1, True),
        ("a100-550", "NVIDIA-A100-SXM4-80GB", "8.0", 550, 1, True),
        ("a100-525", "NVIDIA-A100-SXM4-80GB", "8.0", 525, 1, False),
        ("h100", "NVIDIA-H100-80GB-HBM3", "9.0", 570, 1, True),
        ("l4", "NVIDIA-L4", "8.9", 535, 1, True),
        ("l4-shared", "NVIDIA-L4", "8.9", 535, 4, False),
        ("a10-shared", "NVIDIA-A10", "8.6", 550, 2, False),
        ("t4", "Tesla-T4", "7.5", 535, 1, False),
        ("v100", "Tesla-V100", "7.0", 550, 1, False),
        ("k80", "Tesla-K80", "3.7", 470, 1, False),
    ]

    def test_conditions(self):
        objects, expected = [], []
        for count in (1, 4):
            for name, product, compute, driver, replicas, fits in self.LABELLED:
                name = f"{name}-{count}"
                sharing = Sharing(replicas=replicas)
                objects.append(cards(name, count, product, sharing=sharing, compute=compute, driver=driver))
                expected += [name] if fits else []
        self.assertEqual(len(objects), 20)
        self.start(*objects)
        wanted = pod("p", ONE, {
            "gpuledger.io/gpu-driver-min": "535",
            "gpuledger.io/gpu-compute-min": "8.0",
            "gpuledger.io/gpu-unshared": "true",
        })
        self.assertEqual(sorted(self.fitting(wanted)), sorted(expected))

    def test_capacity_counts(self):
        lying = cards("n", 8)
        lying["status"]["capacity"] = lying["status"]["allocatable"] = {GPU: "7"}
        self.start(lying)
        self.assertEqual(self.metric("gpuledger_objects_bad_total")['feed="nodes"'], 1)
        self.assertEqual(self.metric("gpuledger_node_doubted"), {'node="n"': 1})
        line = self.server.wait_for("node is not quite understood")
        self.assertRegex(line, r"node[\"=:]+n\b")
        self.assertIn("promise 8 of nvidia.com/gpu, it has 7", line)
        self.assertEqual(self.pool("n"), (0, 7))
        for number in range(7):
            self.place(f"p{number}", ONE)
        self.refused("eighth", ONE, FEW, final=False)


class S19(Scenario):
    """MPS: equal parts of memory, at most 48 clients of a card, one at a time; tenants on cards of
    their own (`--tenant-isolation`)."""

    cannot = "Unequal parts need a node side that sets the two variables; NVIDIA's plugin divides."

    def test_ten_parts(self):
        self.start(cards("n", 1, memory=16384, sharing=Sharing(MPS, 10)))
        self.assertEqual(self.ledger()["n"]["pools"][0]["memoryBytes"], 16 * GIB // 10)
        self.refused("two", {GPU: 2}, "fewer devices at a time", final=True)
        for number in range(10):
            self.place(f"p{number}", ONE)
        self.refused("late", ONE, FEW, final=False)

    def test_48_clients(self):
        self.start(cards("n", 1, memory=98304, sharing=Sharing(MPS, 60)))
        self.assertEqual(self.pool("n"), (0, 48))
        for number in range(48):
            self.place(f"p{number}", ONE)
        self.refused("late", ONE, FEW, final=False)

    def test_tenants(self):
        self.start(
            cards("n", 1, memory=16384, sharing=Sharing(MPS, 10)),
            options=["--tenant-isolation=hardware"],
        )
        self.place("a", ONE, namespace="a")
        self.refused("b", ONE, "pods of another namespace", namespace="b", final=False)
        self.place("a2", ONE, namespace="a")
        for name in ("a", "a2"):
            self.end(name, "a")
        self.place("b", ONE, namespace="b")


class S20(Scenario):
    """A guest's vGPU is one device, whatever it is cut from; its node is never changed."""

    cannot = "A node is cut anew or switched only where a calendar or `gpuledger switch` names it."

    def test_a_guest_is_left_as_it_is(self):
        said = {"nvidia.com/vgpu.present": "true", "nvidia.com/mig.capable": "true"}
        self.start(cards("n", 1, "GRID-A100-10C", 10240, compute="8.0", **said))
        before = self.restart()["Node", "n"]
        self.refused("large", ONE, SMALL, least("16Gi"), final=True)
        self.refused("part", {"nvidia.com/mig-1g.5gb": 1}, "", final=True)
        self.place("a", ONE, least("8Gi"))
        self.refused("second", ONE, FEW, final=False)
        after = self.restart()["Node", "n"]
        for each in (before, after):
            each["metadata"].pop("resourceVersion", None)
        self.assertEqual(after, before)


if __name__ == "__main__":
    main()
