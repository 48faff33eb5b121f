#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpuledger serve` as a process: starting, signals, ending. The cluster is a snapshot."""

import json
import pathlib
import signal
import socket
import tempfile
import threading
import time
import unittest

from program import PATIENCE, Server, call, listing, node, pod


def crowded():
    """A node whose plugin has not matched a pod of 3 units yet: the next one of that size would
    have to join it on card 0, which is full, so its bind waits."""
    waiting = pod(
        "waiting", 3,
        metadata={
            "annotations": {
                "ALIYUN_COM_GPU_MEM_IDX": "0",
                "ALIYUN_COM_GPU_MEM_POD": "3",
                "ALIYUN_COM_GPU_MEM_DEV": "4",
                "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(time.time_ns()),
            }
        },
        spec={"nodeName": "n"},
    )
    return listing(node("n", 2, 4), waiting, pod("next", 3))


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def file(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def start(self, *arguments, **options):
        server = Server(*arguments, **options)
        self.addCleanup(server.__exit__)
        return server

    def start_crowded(self, *arguments):
        return self.start(f"--record={self.directory}/record", *arguments,
                          snapshot=self.file("snapshot.json", crowded()))

    def bind_in_background(self, server):
        """Begins a bind that waits, as the record says. Returns a function that waits for the answer, None if the
        connection was cut."""
        answers = []

        def bind():
            try:
                answers.append(server.bind(pod("next", 3), "n"))
            except OSError:
                answers.append(None)

        thread = threading.Thread(target=bind)
        thread.start()

        def answer():
            thread.join(PATIENCE)
            return answers[0]

        deadline = time.monotonic() + PATIENCE
        while "wait-for-node-side" not in (self.directory / "record").read_text():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        return answer


class Start(Case):
    def test_milestones_are_logged(self):
        server = self.start()
        for pattern in (
            'msg="snapshot loaded" .*nodes=5 pods=16',
            "msg=starting version=[0-9.]+ .*cluster=snapshot at=.*snapshot.json",
            r"msg=listening listener=scheduler address=127\.0\.0\.1:\d+",
            r"msg=listening listener=operations address=127\.0\.0\.1:\d+",
            r"msg=synced gpu_nodes=4 cards=10 pods=9 ms=\d+",
        ):
            server.wait_for(pattern)
        self.assertEqual(server.get("/readyz"), (200, "ok\n"))
        self.assertEqual(server.get("/healthz")[0], 200)
        self.assertEqual(server.get("/version", server.scheduler)[0], 200)

    def test_log_as_json(self):
        server = self.start("--log-format=json")
        for line in server.log:
            self.assertIn("msg", json.loads(line))

    def test_variables_without_effect_are_named(self):
        server = self.start(env={"THREADNESS": "4", "GPULEDGER_POLCY": "spread"})
        server.wait_for("level=warn msg=ignored .*'THREADNESS' has no effect")
        server.wait_for("'GPULEDGER_POLCY' is not known, did you mean 'GPULEDGER_POLICY'")

    def test_without_a_listener_for_operations(self):
        server = self.start("--ops-listen=off", wait=False)
        server.wait_for("synced")
        self.assertFalse([line for line in server.log if "listener=operations" in line])
        server.signal(signal.SIGTERM)
        self.assertEqual(server.exit_code(), 0)

    def test_a_cluster_without_gpus(self):
        server = self.start(snapshot=self.file("snapshot.json", listing()))
        server.wait_for('level=warn msg="no node shares GPUs"')

    def test_a_cluster_of_which_kubelet_knows_the_cards(self):
        only = {"kind": "Node", "metadata": {"name": "n"},
                "status": {"capacity": {"nvidia.com/gpu": "2"},
                           "allocatable": {"nvidia.com/gpu": "2"}}}
        server = self.start(snapshot=self.file("snapshot.json", listing(only)))
        server.wait_for("msg=synced gpu_nodes=1 cards=0 pods=0 ms=.* pools=1")
        self.assertFalse([line for line in server.log if "no node shares GPUs" in line])

    def test_the_policy_is_applied(self):
        snapshot = self.file("snapshot.json", listing(
            node("n", 2, 8), pod("a", 2), pod("b", 3)))
        for policy, cards in (("binpack", [0, 0]), ("spread", [0, 1])):
            server = self.start(f"--policy={policy}", snapshot=snapshot)
            for name, amount, card in zip("ab", (2, 3), cards):
                self.assertEqual(server.bind(pod(name, amount), "n"), {"Error": ""})
                held = json.loads(server.get(f"/api/v1/pods/test/{name}")[1])
                self.assertEqual(held["shares"][0]["card"], card)

    def test_memory_units_and_single_cards(self):
        both = pod("both", 1)
        both["spec"]["containers"].append(dict(both["spec"]["containers"][0], name="second"))
        snapshot = self.file("snapshot.json", listing(node("n", 1, 8), both))
        server = self.start("--gpushare-memory-unit=MiB", snapshot=snapshot)
        self.assertEqual(json.loads(server.get("/api/v1/nodes/n")[1])["memoryUnitBytes"], 1 << 20)
        self.assertEqual(server.filter(both, ["n"])["NodeNames"], [])
        server = self.start("--gpushare-any-on-single-card", snapshot=snapshot)
        self.assertEqual(server.filter(both, ["n"])["NodeNames"], ["n"])

    def test_bodies_above_the_limit_are_refused(self):
        server = self.start("--max-body=64KiB")
        large = pod("a", 1, metadata={"annotations": {"filler": "x" * 70000}})
        status, _ = call("POST", server.scheduler + "/gpushare-scheduler/filter",
                         {"Pod": large, "NodeNames": ["n"]})
        self.assertEqual(status, 413)


class Stop(Case):
    def test_term_and_int(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.start()
            server.signal(number)
            self.assertEqual(server.exit_code(), 0)
            self.assertRegex(server.log[-2], "msg=draining signal=")
            self.assertRegex(server.log[-1], "level=info msg=stopped ms=")

    def test_the_snapshot_is_left_behind(self):
        out = self.directory / "after.json"
        server = self.start(
            f"--snapshot-out={out}",
            snapshot=self.file("snapshot.json", listing(node("n", 2, 4), pod("a", 3))),
        )
        self.assertEqual(server.bind(pod("a", 3), "n"), {"Error": ""})
        server.signal(signal.SIGTERM)
        self.assertEqual(server.exit_code(), 0)
        items = {item["metadata"]["name"]: item for item in json.loads(out.read_text())["items"]}
        self.assertEqual(items["a"]["spec"]["nodeName"], "n")
        self.assertEqual(items["a"]["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"], "0")
        again = self.start(snapshot=out)
        self.assertEqual(again.bind(pod("a", 3), "n"), {"Error": ""})

    def test_a_snapshot_that_cannot_be_left_behind(self):
        server = self.start("--snapshot-out=/nonexistent/after.json")
        server.signal(signal.SIGTERM)
        self.assertEqual(server.exit_code(), 1)
        server.wait_for("^gpuledger: option '--snapshot-out': .*/nonexistent/after.json")

    def test_calls_under_way_are_answered(self):
        server = self.start_crowded("--bind-timeout=5m", "--assign-patience=5m")
        answer = self.bind_in_background(server)
        server.signal(signal.SIGTERM)
        server.wait_for("draining")
        self.assertEqual(server.get("/readyz")[0], 503)
        self.assertIn("shutting down", server.get("/readyz")[1])
        self.assertEqual(server.get("/livez")[0], 200)
        self.assertIsNone(server.process.poll())
        # The pod that is waited for ends, so the waiting bind can go on.
        self.assertEqual(
            call("DELETE", server.operations + "/api/v1/snapshot/pods/test/waiting")[0], 204
        )
        self.assertEqual(answer(), {"Error": ""})
        self.assertEqual(server.exit_code(), 0)

    def test_but_not_for_ever(self):
        server = self.start_crowded("--bind-timeout=60s", "--drain-timeout=300ms")
        answer = self.bind_in_background(server)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.exit_code(), 1)
        server.wait_for('level=warn msg="stopped with calls under way"')
        self.assertIsNone(answer())

    def test_after_term_it_goes_on_until_nobody_is_sent_here(self):
        server = self.start("--shutdown-delay=10m", snapshot=self.file("snapshot.json", listing(
            node("n", 2, 8), pod("a", 2))))
        server.signal(signal.SIGTERM)
        server.wait_for("msg=leaving signal=Terminated ms=600000")
        self.assertEqual(server.get("/readyz")[0], 503)
        self.assertIn("shutting down", server.get("/readyz")[1])
        self.assertEqual(server.get("/livez")[0], 200)
        # On a new connection, and on one that is kept, which stays.
        port = int(server.scheduler.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = connection.recv(1000)
            self.assertIn(b" 200 ", answer)
            self.assertNotIn(b"close", answer.lower())
        self.assertEqual(server.bind(pod("a", 2), "n"), {"Error": ""})
        self.assertFalse([line for line in server.log if "draining" in line])
        server.signal(signal.SIGTERM)
        self.assertEqual(server.exit_code(), 1)

    def test_then_it_ends(self):
        server = self.start("--shutdown-delay=50ms")
        server.signal(signal.SIGTERM)
        server.wait_for("leaving")
        server.wait_for("draining")
        self.assertEqual(server.exit_code(), 0)

    def test_where_no_service_leads_nobody_is_waited_for(self):
        """A saved cluster, even in a pod, where nobody says otherwise."""
        for more in ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}):
            server = self.start_plain(more)
            server.signal(signal.SIGTERM)
            self.assertEqual(server.exit_code(), 0)
            self.assertFalse([line for line in server.log if "leaving" in line])

    def start_plain(self, env):
        """Without --shutdown-delay, which other tests are given."""
        server = Server(plain=True, env=env)
        self.addCleanup(server.__exit__)
        return server

    def test_a_terminal_does_not_wait_for_that(self):
        server = self.start("--shutdown-delay=10m")
        server.signal(signal.SIGINT)
        self.assertEqual(server.exit_code(), 0)
        self.assertFalse([line for line in server.log if "leaving" in line])

    def test_a_second_signal_ends_it_at_once(self):
        server = self.start_crowded("--bind-timeout=60s", "--drain-timeout=60s")
        answer = self.bind_in_background(server)
        server.signal(signal.SIGTERM)
        server.wait_for("draining")
        time.sleep(0.1)
        self.assertIsNone(server.process.poll())
        server.signal(signal.SIGTERM)
        self.assertEqual(server.exit_code(), 1)
        self.assertIsNone(answer())

    def test_idle_connections_do_not_delay_it(self):
        server = self.start()
        port = int(server.scheduler.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b"200", connection.recv(1000))
            server.signal(signal.SIGTERM)
            self.assertEqual(server.exit_code(), 0)


class Reload(Case):
    def test_what_can_change_does(self):
        config = self.file("gpuledger.yaml", "log-level: info\n")
        server = self.start(
            "--config", config,
            snapshot=self.file("snapshot.json", listing(
                node("n", 2, 8), pod("a", 2), pod("b", 3))),
        )
        self.assertEqual(server.bind(pod("a", 2), "n"), {"Error": ""})
        config.write_text(
            "log-level: debug\npolicy: spread\nmax-connections: 9\nbind-timeout: 20s\n"
        )
        server.signal(signal.SIGHUP)
        server.wait_for("level=info msg=\"option changed\" option=policy from=binpack to=spread")
        server.wait_for("level=info msg=\"option changed\" option=log-level from=info to=debug")
        server.wait_for(
            "level=warn msg=\"option needs a restart\" option=max-connections from=4096 to=9"
        )
        server.wait_for("msg=\"configuration reloaded\" changed=2 need_restart=2")
        self.assertEqual(server.bind(pod("b", 3), "n"), {"Error": ""})
        held = json.loads(server.get("/api/v1/pods/test/b")[1])
        self.assertEqual(held["shares"][0]["card"], 1)
        server.wait_for("level=debug")

        # Again: what has changed is the new state, what needs a restart still does.
        server.signal(signal.SIGHUP)
        server.wait_for("msg=\"configuration reloaded\" changed=0 need_restart=2")

    def test_a_mistake_changes_nothing(self):
        config = self.file("gpuledger.yaml", "log-format: logfmt\n")
        server = self.start("--config", config)
        config.write_text("log-format: json\nlog-level: loud\n")
        server.signal(signal.SIGHUP)
        server.wait_for("level=error msg=\"configuration not reloaded\" why=.*'loud' is not valid")
        self.assertEqual(server.get("/readyz")[0], 200)
        config.unlink()
        server.signal(signal.SIGHUP)
        server.wait_for("level=error msg=\"configuration not reloaded\" why=.*No such file")
        server.signal(signal.SIGTERM)
        self.assertEqual(server.exit_code(), 0)

    def test_a_flag_still_wins(self):
        config = self.file("gpuledger.yaml", "")
        server = self.start("--config", config, "--log-format=logfmt")
        config.write_text("log-format: json\n")
        server.signal(signal.SIGHUP)
        server.wait_for("msg=\"configuration reloaded\" changed=0 need_restart=0")


if __name__ == "__main__":
    unittest.main()
