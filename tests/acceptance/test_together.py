#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several ways of sharing in one cluster, and those that are only counted."""

import concurrent.futures

from scenario import Scenario, main, node, pod

GPU, MEM, COUNT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
QCORE, QMEM = "tke.cloud.tencent.com/qgpu-core", "tke.cloud.tencent.com/qgpu-memory"
OTHER_USE = "in use by pods that share them in another way"


class S22(Scenario):
    """qGPU: its pods count on every card of their node, so that nobody else uses these; those that
    come to gpuledger are refused, with amounts that qGPU does not know by that reason."""

    cannot = "What its node side reads is not public, so nobody else can place its pods: sixteen of a "\
        "card, or best effort, are its own scheduler's."

    def test_steps_of_five(self):
        self.start(node("n", {QCORE: 200, QMEM: 32}))
        self.invalid("odd", {QCORE: 7, QMEM: 1}, "7")
        self.invalid("even", {QCORE: 5, QMEM: 1}, "qGPU")

    def test_its_pods_are_counted(self):
        theirs = pod("theirs", {QCORE: 5, QMEM: 1})
        theirs["spec"]["nodeName"] = "n"
        theirs["status"]["phase"] = "Running"
        self.start(node("n", {QCORE: 200, QMEM: 32, MEM: 32, COUNT: 2}), theirs)
        self.refused("ours", {MEM: 1}, OTHER_USE, final=False)
        self.end("theirs")
        self.place("ours", {MEM: 1})


class S28(Scenario):
    """Pods with cards and pods with memory: a node serves one kind at a time, the first decides, the
    last one's end frees it, and each kind fills what it has begun."""

    def four(self):
        self.start(*(node(f"n{n}", {GPU: 4, MEM: 64, COUNT: 4}) for n in range(4)))

    def kinds(self):
        """{node: the dialects of its pods}."""
        return {
            name: {holder["dialect"] for holder in each["pods"]}
            for name, each in self.ledger().items()
        }

    def test_interleaved(self):
        self.four()
        for number in range(28):
            if number % 7 in (0, 3):
                self.place(f"card{number}", {GPU: 1})
            else:
                self.place(f"part{number}", {MEM: 5})
            self.assertTrue(all(len(kinds) <= 1 for kinds in self.kinds().values()), self.kinds())
        found = [kind for kinds in self.kinds().values() for kind in kinds]
        self.assertEqual(sorted(found), ["gpushare"] * 2 + ["nvidia"] * 2)
        served = [name for name, kinds in self.kinds().items() if kinds == {"gpushare"}]
        self.refused("late", {GPU: 1}, OTHER_USE, nodes=served, final=False)
        for number in range(28):
            if number % 7 not in (0, 3):
                self.end(f"part{number}")
        for number in range(8):
            self.place(f"late{number}", {GPU: 1}, nodes=served)

    def test_two_firsts_at_once(self):
        self.four()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for number in range(20):
                rivals = [pod(f"card{number}", {GPU: 1}), pod(f"part{number}", {MEM: 5})]
                for each in rivals:
                    self.create(each)
                errors = list(pool.map(lambda each: self.bind(each, "n0"), rivals))
                self.assertEqual(sorted(map(bool, errors)), [False, True], errors)
                self.assertIn(OTHER_USE, "".join(errors))
                for each in rivals:
                    self.end(each["metadata"]["name"])


if __name__ == "__main__":
    main()
