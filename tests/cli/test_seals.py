#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Grants that are sealed with the key of a file: what a pod holds is known after a restart, whatever it
was made to say meanwhile. The cluster is a snapshot, the tenant edits it between two lives."""

import json
import os
import pathlib
import re
import signal
import stat
import tempfile
import unittest

from program import Server, listing, node, pod, run

INDEX = "ALIYUN_COM_GPU_MEM_IDX"
SEAL = "gpuledger.io/seal"


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.keys = self.directory / "keys"
        self.saved = self.directory / "cluster.json"
        self.saved.write_text(listing(node("n", 2, 8), pod("a", 3)))

    def start(self, *arguments):
        server = Server(f"--snapshot-out={self.saved}", *arguments, snapshot=self.saved)
        self.addCleanup(server.__exit__)
        return server

    def start_sealed(self):
        return self.start(f"--seal-key-file={self.keys}")

    def end(self, server):
        server.signal(signal.SIGTERM)
        self.assertEqual(server.exit_code(), 0)

    def bind_a(self):
        server = self.start_sealed()
        self.assertEqual(server.bind(pod("a", 3), "n"), {"Error": ""})
        self.end(server)

    def adopted(self):
        """No pod without a seal is believed from now on."""
        self.keys.write_text(self.keys.read_text() + "adopted 1000\n")

    def edit(self, key, value):
        cluster = json.loads(self.saved.read_text())
        for item in cluster["items"]:
            if item["metadata"]["name"] != "a":
                continue
            annotations = item["metadata"]["annotations"]
            annotations.pop(key, None)
            if value is not None:
                annotations[key] = value
            seal = annotations.get(SEAL)
        self.saved.write_text(json.dumps(cluster))
        return seal

    def card_of_a(self, server):
        status, text = server.get("/api/v1/nodes/n")
        self.assertEqual(status, 200)
        (held,) = [held for held in json.loads(text)["pods"] if held["name"] == "a"]
        (share,) = held["shares"]
        return share["card"]

    def test_the_key_is_made_and_kept_to_its_owner(self):
        self.bind_a()
        key = self.keys.read_text()
        self.assertRegex(key, r"\Akey [0-9a-f]{8} [0-9a-f]{64} \d+\n\Z")
        self.assertEqual(self.keys.stat().st_mode & 0o777, 0o600)
        server = self.start_sealed()
        self.assertEqual(self.keys.read_text(), key)
        said = "\n".join(server.log)
        self.assertIn('msg="grants are sealed"', said)
        self.assertNotIn(key.split()[2], said)
        self.assertRegex(self.edit("x", None), f"^v1:{key.split()[1]}:[0-9a-f]{{64}}:{{")

    def test_an_edited_pod_keeps_its_card(self):
        self.bind_a()
        self.edit(INDEX, "1")
        self.adopted()
        server = self.start_sealed()
        self.assertEqual(self.card_of_a(server), 0)
        self.assertIn("gpuledger_pods_sealed{", server.get("/metrics")[1])

    def test_a_pod_that_has_lost_its_seal_is_on_every_card(self):
        self.bind_a()
        self.edit(SEAL, None)
        self.adopted()
        server = self.start_sealed()
        self.assertIsNone(self.card_of_a(server))
        report = run("audit", "--server", server.operations)
        self.assertIn("unsealed", report.stdout, report.stderr)

    def test_before_the_date_it_is_believed(self):
        self.bind_a()
        self.edit(SEAL, None)
        self.assertEqual(self.card_of_a(self.start_sealed()), 0)

    def test_without_a_key_it_is_said(self):
        self.bind_a()
        self.edit(INDEX, "1")
        server = self.start()
        self.assertEqual(self.card_of_a(server), 1)
        server.wait_for("after a restart annotations are believed")

    def test_a_record_replays_without_the_key(self):
        self.bind_a()
        self.edit(INDEX, "1")
        self.adopted()
        record = self.directory / "record"
        server = self.start(f"--seal-key-file={self.keys}", f"--record={record}")
        self.assertEqual(server.bind(pod("a", 3), "n"), {"Error": ""})
        self.end(server)
        self.assertNotIn(self.keys.read_text().split()[2], record.read_text())
        self.assertRegex(record.read_text(), '"seal":"valid"')
        replayed = run("replay", record)
        self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)

    def test_keys_that_cannot_be_read_are_no_start(self):
        self.keys.write_text("key 0000000a 00 1\n")
        done = run("serve", f"--snapshot={self.saved}", f"--seal-key-file={self.keys}",
                   "--listen=127.0.0.1:0", "--ops-listen=off")
        self.assertEqual(done.returncode, 2)
        self.assertIn("option '--seal-key-file': line 1 of the keys", done.stderr)
        self.assertEqual(self.keys.read_text(), "key 0000000a 00 1\n")

    def test_a_device_stays_what_it_is(self):
        try:
            os.mknod(self.keys, 0o600 | stat.S_IFCHR, os.makedev(1, 3))  # as /dev/null is
        except PermissionError:
            self.skipTest("devices are made by root")
        done = run("serve", f"--snapshot={self.saved}", f"--seal-key-file={self.keys}",
                   "--listen=127.0.0.1:0", "--ops-listen=off")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("is no regular file", done.stderr)
        self.assertTrue(self.keys.is_char_device())

    def look(self, command, *arguments):
        return run(*command, f"--snapshot={self.saved}", *arguments)

    def bind_and_edit(self):
        """a is on card 0 for good, and says 1; b of 6 of a card's 8 has room only beside one of them."""
        self.bind_a()
        self.adopted()
        self.edit(INDEX, "1")
        return self.edit("ALIYUN_COM_GPU_MEM_ASSIGNED", "true")

    def test_who_looks_with_the_key_goes_by_the_seal(self):
        self.bind_and_edit()
        key = f"--seal-key-file={self.keys}"
        before = self.keys.read_text()
        explain = ("explain", "test/a", "-o", "json")
        told = self.look(explain, key)
        self.assertEqual((json.loads(told.stdout)["place"]["cards"][:6], told.stderr), ("card 0", ""))
        blind = self.look(explain)
        self.assertEqual(json.loads(blind.stdout)["place"]["cards"][:6], "card 1")
        self.edit(SEAL, None)
        said = self.look(("audit",), key)
        self.assertRegex(said.stdout, r"(?m)^unsealed +test +a +n ")
        self.assertEqual((said.returncode, said.stderr), (3, ""))
        self.assertEqual(self.keys.read_text(), before)

    def test_who_looks_without_the_key_says_so(self):
        self.bind_and_edit()
        (self.directory / "pod.json").write_text(json.dumps(pod("b", 6)))
        come = self.directory / "come.json"
        come.write_text(listing(pod("b", 6)))
        for command in (
            ("audit",),
            ("explain", "test/a"),
            ("fit", "-f", self.directory / "pod.json"),
            ("simulate", f"--pods={come}"),
        ):
            with self.subTest(command[0]):
                said = self.look(command)
                self.assertRegex(said.stderr, r"\A[^\n]*seals were not checked[^\n]*\n\Z")
                with_key = self.look(command, f"--seal-key-file={self.keys}")
                self.assertNotIn("not checked", with_key.stderr)
        self.edit(SEAL, None)
        self.assertEqual(self.look(("audit",)).stderr, "")

    def test_fit_and_simulate_count_a_pod_without_a_seal_on_every_card(self):
        self.bind_and_edit()
        self.edit(SEAL, None)
        key = f"--seal-key-file={self.keys}"
        (self.directory / "pod.json").write_text(json.dumps(pod("b", 6)))
        come = self.directory / "come.json"
        come.write_text(listing(pod("b", 6)))
        fit = ("fit", "--replicas=1", "-f", self.directory / "pod.json")
        simulate = ("simulate", f"--pods={come}", "-o", "json")
        self.assertEqual(self.look(fit).returncode, 0)
        self.assertEqual(self.look(fit, key).returncode, 3)
        self.assertNotEqual(self.look(simulate).stdout, self.look(simulate, key).stdout)

    def test_a_look_needs_a_key_that_is_there(self):
        self.bind_a()
        missing = self.directory / "missing"
        for command in (("audit",), ("simulate", "--seeds=1")):
            said = self.look(command, f"--seal-key-file={missing}")
            self.assertEqual(said.returncode, 2)
            self.assertIn("option '--seal-key-file': there is no key in", said.stderr)
        self.assertFalse(missing.exists())
        said = self.look(("audit",), "--seal-secret=a/b")
        self.assertIn("'--snapshot' is given as well", said.stderr)

    def test_one_place(self):
        done = run("serve", "--seal-key-file=k", "--seal-secret=a/b")
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(re.search("'seal-secret' is set as well as 'seal-key-file'", done.stderr))


if __name__ == "__main__":
    unittest.main()
