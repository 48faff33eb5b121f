#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Grants that are sealed with the key of a file: what a pod holds is known after a restart, whatever it
was made to say meanwhile. The cluster is a snapshot, the tenant edits it between two lives."""

import json
import pathlib
import re
import signal
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
        self.assertEqual(done.returncode, 1)
        self.assertIn("option '--seal-key-file': line 1 of the keys", done.stderr)
        self.assertEqual(self.keys.read_text(), "key 0000000a 00 1\n")

    def test_one_place(self):
        done = run("serve", "--seal-key-file=k", "--seal-secret=a/b")
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(re.search("'seal-secret' is set as well as 'seal-key-file'", done.stderr))


if __name__ == "__main__":
    unittest.main()
