#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the feed of pods to the API server's order, also where it has to list anew."""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "controlplane")]

from feed import PodFeed  # noqa: E402


def pod(name, uid, phase="Running"):
    return {"metadata": {"namespace": "default", "name": name, "uid": uid}, "status": {"phase": phase}}


class Server:
    """Lists what it has by name, as the API server does."""

    def __init__(self):
        self.pods = []

    def list(self, kind):
        assert kind == "Pod"
        return {"metadata": {"resourceVersion": "1"},
                "items": sorted(self.pods, key=lambda one: one["metadata"]["name"])}


class Lists(unittest.TestCase):
    def setUp(self):
        self.server, self.seen = Server(), []
        self.feed = PodFeed(self.server, [self.note])

    def note(self, kind, one):
        self.seen.append((kind, one["metadata"]["uid"]))

    def list(self, *pods):
        self.server.pods = list(pods)
        self.seen.clear()
        self.feed._list()
        return self.seen

    def test_who_was_created_again_leaves_before_others_come(self):
        self.list(pod("web-9", "old"))
        self.assertEqual(self.list(pod("web-1", "newcomer"), pod("web-9", "new")),
                         [("DELETED", "old"), ("MODIFIED", "newcomer"), ("MODIFIED", "new")])

    def test_who_is_gone_leaves_once(self):
        self.list(pod("web-9", "old"))
        self.assertEqual(self.list(pod("web-1", "newcomer")), [("DELETED", "old"), ("MODIFIED", "newcomer")])
        self.assertEqual(self.list(pod("web-1", "newcomer")), [("MODIFIED", "newcomer")])

    def test_who_has_ended_is_shown_first(self):
        self.assertEqual(self.list(pod("web-1", "runs"), pod("web-9", "ended", "Succeeded")),
                         [("MODIFIED", "ended"), ("MODIFIED", "runs")])


if __name__ == "__main__":
    unittest.main()
