#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans that are carried out on a cluster in which anything may go wrong: each stops at what it does not
expect, says why, and leaves nothing behind.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

# pylint: disable=wrong-import-position
from apiserver import Fault  # noqa: E402
from at_once import AtOnce  # noqa: E402
from cluster import Program  # noqa: E402
from moving import GROUP, MOVES, PLAN, STATUS, Moving  # noqa: E402
from program import PROGRAM, environment, pod  # noqa: E402


@contextlib.asynccontextmanager
async def cluster_of(**sizes):
    with tempfile.TemporaryDirectory() as directory:
        cluster = Moving(directory, **sizes)
        await cluster.start()
        try:
            yield cluster
        finally:
            await cluster.stop()


def crowded(cluster):
    """Two pods of 3 have to leave n1 for a pod of 8; there is room for one on each of two others."""
    cluster.web(3, "n1"), cluster.web(3, "n1", "db")  # pylint: disable=expression-not-assigned
    big = pod("big", 8)
    cluster.api.put("pods", big)


ROOMS = {"n1": 8, "n2": 4, "n3": 4, "n4": 2}


async def command(cluster, *words):
    """(exit status, what it prints, what it says)."""
    process = await asyncio.create_subprocess_exec(
        os.environ.get("GPULEDGER", PROGRAM), *map(str, words), f"--kubeconfig={cluster.api.kubeconfig()}",
        env=environment(), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE)
    printed, said = await asyncio.wait_for(process.communicate(), 100)
    return process.returncode, printed.decode(), said.decode()


class Command(unittest.IsolatedAsyncioTestCase):
    """gpuledger plan --apply."""

    async def apply(self, cluster, code, *words):
        status, printed, said = await command(cluster, "plan", "test/big", "--apply", "-o", "json", *words)
        self.assertEqual(status, code, said)
        self.assertEqual(cluster.marks(), [], "nothing is kept any more")
        return json.loads(printed), said

    async def test_carried_out(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            answer, said = await self.apply(cluster, 0)
            self.assertEqual((answer["moved"], len(answer["taken"]), cluster.where("big")), (2, 2, "n1"), said)
            for step, name in zip(answer["taken"], cluster.moves):
                self.assertEqual((step["name"], step["outcome"], step["from"], step["ready"]), (name, "moved", "n1", 1))
            self.assertEqual([name for name, _ in cluster.events("GPUPodMoved")], cluster.moves)
            told = cluster.events("GPUPlanMoved")
            self.assertEqual([name for name, _ in told], ["n1", "n1"])
            self.assertTrue(all(f"test/{name}" in text and "big" not in text for (_, text), name in
                                zip(told, cluster.moves)), told)

    END = ("--only", "test/web-1,test/db-2", "--end", "--evict-timeout", "20s")

    async def test_pods_end(self):
        """Their successors find no room, which is kept for the pod that it is made for, and nobody waits for them."""
        async with cluster_of(n1=8, n2=2) as cluster:
            crowded(cluster)
            answer, said = await self.apply(cluster, 0, *self.END)
            self.assertEqual((sorted(cluster.moves), cluster.where("big")), (["db-2", "web-1"], "n1"), said)
            self.assertEqual([(step["name"], step["outcome"], step["from"], step["to"]) for step in answer["taken"]],
                             [(name, "ended", "n1", None) for name in cluster.moves])
            self.assertEqual([cluster.where(name) for _, name in cluster.pods()], ["n1", None, None])
            self.assertEqual([name for name, _ in cluster.events("GPUPodMoved")], cluster.moves)
            for (_, text), name in zip(cluster.events("GPUPlanMoved"), cluster.moves):
                self.assertIn(f"has ended test/{name}", text)
            self.assertNotIn("Ready", said)

    async def test_an_end_is_refused(self):
        async with cluster_of(n1=8, n2=2) as cluster:
            crowded(cluster)
            cluster.api.faults.append(Fault("try to evict", "status", 403, "Forbidden"))
            answer = await self.stops(cluster, "said so", 0, *self.END)
            self.assertEqual([step["outcome"] for step in answer["taken"]], ["failed"])
        async with cluster_of(n1=8, n2=2) as cluster:
            crowded(cluster)
            cluster.on_eviction = lambda n: cluster.foreign("n2")
            await self.stops(cluster, "foreign", 1, *self.END)

    async def test_a_successor_of_the_same_name_does_not_end(self):
        """As a StatefulSet makes it. Its end would do, and be the smallest."""
        async with cluster_of(n1=8, n2=8) as cluster:
            cluster.web(4, "n1"), cluster.web(4, "n1", "db"), cluster.web(8, "n2")  # pylint: disable=expression-not-assigned
            cluster.api.put("pods", pod("big", 8))
            made = cluster.web

            def again(units, where, controller="web"):
                if len(cluster.moves) > 1:
                    return made(units, where, controller)
                cluster.api.delete("pods", ("test", "web-3"))
                obj = pod(cluster.moves[0], 1)
                obj["metadata"].update(uid="uid-again", ownerReferences=[{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": controller, "uid": "uid-of-set",
                    "controller": True}])
                cluster.api.put("pods", obj)
                cluster.place(obj, "n2")
                return obj
            cluster.web = again
            _, said = await self.apply(cluster, 0, *self.END)
            self.assertEqual((sorted(cluster.moves), cluster.where("big")), (["db-2", "web-1"], "n1"), said)

    async def test_what_was_cordoned_before_an_error_is_told(self):
        async with cluster_of(n1=8, n2=8) as cluster:
            for words, changed, code in ((("n1", "n2/x"), False, 2), (("n1", "n9"), True, 1)):
                status, printed, said = await command(cluster, "cordon", *words, "-o", "json")
                told = [change["object"] for change in json.loads(printed)["changes"]] if printed else []
                self.assertEqual((status, told), (code, ["node n1"] if changed else []), said)
                self.assertIn(words[1], said)
                node = cluster.api.objects["nodes"][(None, "n1")]
                self.assertEqual(node.get("spec", {}).get("unschedulable", False), changed)

    async def test_a_drain_leaves_a_pod_of_the_same_name_alone(self):
        """While the first pod goes, the other one ends by itself, and its StatefulSet makes it again elsewhere."""
        async with cluster_of(n1=8, n2=8, n3=8) as cluster:
            cluster.web(3, "n1"), cluster.web(3, "n1", "db")  # pylint: disable=expression-not-assigned

            def return_elsewhere(_):
                name, = {"web-1", "db-2"} - set(cluster.moves)
                again = cluster.pods()["test", name]
                cluster.api.delete("pods", ("test", name))
                again["metadata"]["uid"] += "-again"
                again["spec"].pop("nodeName")
                cluster.api.put("pods", again)
                cluster.place(again, "n3")

            cluster.on_eviction = return_elsewhere
            status, printed, said = await command(cluster, "drain", "n1", "--apply", "-o", "json")
            self.assertEqual((status, len(cluster.moves)), (0, 1), said)
            self.assertEqual(sorted(row["state"] for row in json.loads(printed)["pods"]), ["evicted", "gone"])

    async def test_those_who_wait(self):
        """One after the other, until moves help nobody."""
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.api.put("pods", pod("huge", 13))
            status, printed, said = await command(cluster, "plan", "--waiting", "0s", "--apply", "-o", "json",
                                                  "--evict-timeout", "30s")
            answer = json.loads(printed)
            self.assertEqual((status, cluster.where("big"), cluster.where("huge"), answer["moved"]),
                             (3, "n1", None, 2), said)
            self.assertIn("1 wait, and no moves help any of them", answer["why"])
            self.assertEqual(cluster.marks(), [])

    async def stops(self, cluster, why, taken, *words):
        """It stops after so many evictions, and says why, there and in an Event."""
        answer, said = await self.apply(cluster, 1, *words)
        self.assertEqual(len(cluster.moves), taken, said)
        self.assertIn(why, said)
        self.assertIn("stopped", said)
        return answer

    async def test_a_step_is_refused(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.on_eviction = lambda n: cluster.api.faults.append(Fault("evict", "status", 403, "Forbidden"))
            answer = await self.stops(cluster, "said so", 1)
            self.assertEqual([step["outcome"] for step in answer["taken"]], ["moved", "failed"])
            self.assertIn("said so", answer["taken"][1]["why"])
            [(name, text)] = cluster.events("GPUPlanStopped")
            self.assertEqual(name, "n1")
            self.assertIn("said so", text)

    async def test_nobody_knows_what_came_of_a_step(self):
        """It may have been done, or not; asking again does no harm, and may tell."""
        for done in ("done-status", "status"):
            async with cluster_of(**ROOMS) as cluster:
                crowded(cluster)
                cluster.delay = 10
                cluster.api.faults += [Fault("evict", done, times=100)]
                answer = await self.stops(cluster, "", done == "done-status")
                self.assertEqual([step["outcome"] for step in answer["taken"]], ["failed"])
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.api.faults += [Fault("evict", "done-status", times=100)]
            answer, said = await self.apply(cluster, 0)
            self.assertEqual(answer["moved"], 2, said)

    async def test_an_audit_finds_something_meanwhile(self):
        """Wherever it is: on a node that the plan never touches."""
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.on_eviction = lambda n: cluster.foreign("n4")
            answer = await self.stops(cluster, "foreign n4 test/foreign", 1)
            self.assertEqual([step["outcome"] for step in answer["taken"]], ["moved"])

    async def test_an_audit_found_something_before(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.foreign("n4")
            answer, said = await self.apply(cluster, 0)
            self.assertEqual((answer["moved"], cluster.where("big")), (2, "n1"))
            self.assertEqual(said.count("the audit has found before: foreign n4 test/foreign"), 1, said)

    async def test_an_audit_found_something_on_a_node_of_a_move(self):
        async with cluster_of(n1=8, n2=5, n3=5) as cluster:
            crowded(cluster)
            cluster.foreign("n3")
            await self.stops(cluster, "about a node of the next move: foreign n3 test/foreign", 0)

    async def test_the_extender_has_found_something(self):
        """What its ledger has is asked for, if it is named."""
        found = {"run": 1, "report": {"differences": 1, "unchecked": 0, "omitted": 0,
                 "causes": [{"cause": "left_out", "difference": True}, {"cause": "unconfirmed", "difference": False}],
                 "rows": [{"cause": "left_out", "node": "n1"}, {"cause": "unconfirmed", "node": "n2", "name": "x"}]}}
        asked = []

        async def answer(reader, writer):
            asked.append((await reader.readuntil(b"\r\n\r\n")).split(b" ")[0])
            text = json.dumps(found).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(text) + text)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            await self.stops(cluster, "left_out n1", 0, "--server", address)
            found["report"]["rows"][0]["node"] = "n4"
            result, said = await self.apply(cluster, 0, "--server", address)
            self.assertEqual(result["moved"], 2, said)
            self.assertGreaterEqual(asked.count(b"POST"), 4, "before each step, and after the last")
        server.close()
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            await self.stops(cluster, address.rsplit(":", 1)[1], 0, "--server", address)


async def ask_on(program, cluster):
    """kube-scheduler goes on asking about pods that have no node."""
    while True:
        for obj in list(cluster.pods().values()):
            if not obj["spec"].get("nodeName"):
                with contextlib.suppress(OSError, asyncio.TimeoutError):
                    await program.filter(obj)
        await asyncio.sleep(0.2)


@contextlib.asynccontextmanager
async def serving(cluster, *options):
    program = Program(cluster, cluster.api.kubeconfig())
    asking = None
    try:
        await program.start("--plans", *options)
        asking = asyncio.create_task(ask_on(program, cluster))
        yield program
    except AssertionError as error:
        raise AssertionError(f"{error}\n" + "\n".join(program.log[-40:])) from error
    finally:
        if asking:
            asking.cancel()
        await program.end()


class Service(unittest.IsolatedAsyncioTestCase):
    """gpuledger serve --plans."""

    def outcomes(self, status):
        return [(step["name"], step["outcome"]) for step in status["steps"]]

    async def test_carried_out(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            record = cluster.api.directory / "record"
            async with serving(cluster, f"--record={record}") as program:
                cluster.order(pod="test/big")
                status = await cluster.phase("done", "stopped")
                self.assertEqual((status["phase"], status["moved"], status["left"], cluster.where("big")),
                                 ("done", 2, 0, "n1"), status)
                self.assertEqual(self.outcomes(status), [(name, "moved") for name in cluster.moves])
                self.assertEqual(cluster.marks(), [], "nothing is kept any more")
                self.assertEqual([name for name, _ in cluster.events("GPUPlanMoved")], ["n1", "n1"])
                text = await program.text("operations", "/metrics")
                for line in ('plans_total{result="done"} 1', 'plan_steps_total{result="begun"} 2',
                             'plan_steps_total{result="moved"} 2', 'plan_steps_total{result="failed"} 0'):
                    self.assertIn(f"gpuledger_{line}\n", text)
                await program.end(kill=False)
            lines = [json.loads(line) for line in record.read_text().splitlines()]
            self.assertEqual([(line["name"], line["result"], line["plan"]) for line in lines if line["kind"] == "move"],
                             [(name, result, "default/plan") for name in cluster.moves
                              for result in ("begun", "moved")])
            process = await asyncio.create_subprocess_exec(
                os.environ.get("GPULEDGER", PROGRAM), "replay", record, env=environment(),
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
            said = (await process.communicate())[0].decode()
            self.assertEqual(process.returncode, 0, said)

    async def test_a_node_is_emptied(self):
        async with cluster_of(n1=8, n2=8) as cluster:
            cluster.web(3, "n1")
            async with serving(cluster):
                cluster.order(empty="n1")
                status = await cluster.phase("done", "stopped")
                self.assertEqual((status["phase"], status["goal"], cluster.where("web-2")),
                                 ("done", "nobody on n1", "n2"), status)
                self.assertTrue(cluster.api.objects["nodes"][(None, "n1")]["spec"]["unschedulable"])

    async def test_those_who_wait(self):
        """It goes on for ever: who comes later is helped as well, also after a crash."""
        async with cluster_of(**ROOMS) as cluster:
            async with serving(cluster) as program:
                cluster.order(waiting="0s", max_per_hour="9")
                status = await cluster.phase("waiting", "done", "stopped", "refused")
                self.assertEqual((status["phase"], status["text"]), ("waiting", "nobody waits"))
                crowded(cluster)
                cluster.delay = 2
                cluster.order(waiting="1s", max_per_hour="9")  # another order looks at once
                await cluster.until(lambda: cluster.moves, "the first eviction")
                self.assertEqual((cluster.status()["phase"], cluster.status()["for"]), ("running", "test/big"))
                program.kill()
            async with serving(cluster) as program:
                await cluster.until(lambda: cluster.status()["moved"] == 2 and cluster.status()["phase"] == "waiting",
                                    lambda: f"two moves: {cluster.status()}")
                status = cluster.status()
                self.assertEqual((self.outcomes(status), cluster.where("big"), cluster.marks()),
                                 ([(name, "moved") for name in cluster.moves], "n1", []), status)
                await cluster.until(lambda: cluster.status()["text"] == "nobody waits", lambda: cluster.status())

    async def test_those_who_wait_have_an_hour(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            async with serving(cluster):
                cluster.order(waiting="0s", max_per_hour="1")
                await cluster.until(lambda: (cluster.status() or {}).get("moved") == 1, "one move")
                status = await cluster.phase("waiting", "done", "stopped")
                self.assertIn("in this hour", status["text"])
            async with serving(cluster):
                await cluster.looks(2)
                self.assertEqual((cluster.status()["phase"], len(cluster.moves)), ("waiting", 1), cluster.status())

    async def test_a_group_as_a_whole(self):
        async with cluster_of(n1=8, n2=8, n3=4, n4=4) as cluster:
            cluster.web(3, "n1"), cluster.web(3, "n2", "db")  # pylint: disable=expression-not-assigned
            for name in ("train-0", "train-1"):
                obj = pod(name, 8)
                obj["metadata"]["labels"] = {GROUP: "train",
                                             "pod-group.scheduling.sigs.k8s.io/min-available": "2"}
                cluster.api.put("pods", obj)
            rooms = []

            def come(n):
                """Somebody comes for what the group is to have, and would find it free already."""
                rooms.append([room["group"] for where in ("n1", "n2") for room in cluster.rooms(where) if "group" in room])
                if n == 1:
                    cluster.api.put("pods", pod("thief", 5))
            cluster.on_eviction = come
            async with serving(cluster, "--gangs"):
                cluster.order(group="test/train")
                status = await cluster.phase("done", "stopped", "refused")
                self.assertEqual((status["phase"], status["moved"], sorted(cluster.moves)),
                                 ("done", 2, ["db-2", "web-1"]), status)
                self.assertTrue(cluster.where("train-0") and cluster.where("train-1"), "it is done when they have nodes")
                self.assertEqual((rooms[0], cluster.where("thief"), cluster.marks()), (["train", "train"], None, []))

    async def defragment(self, cluster):
        """n9 has 2 free, which hardly anybody wants; n10 has a pod of 2 and would be free without it."""
        for number in range(18):
            cluster.web(4, f"n{number // 2}", "db")
        cluster.web(6, "n9", "db")
        return cluster.web(2, "n10")["metadata"]["name"]

    async def test_pieces_become_fewer(self):
        async with cluster_of(**{f"n{number}": 8 for number in range(11)}) as cluster:
            name = await self.defragment(cluster)
            async with serving(cluster) as program:
                cluster.order(defragment="0.2", max_per_hour="3")
                status = await cluster.phase("done", "stopped", "refused")
                self.assertEqual((status["phase"], status["moved"], cluster.moves), ("done", 1, [name]), status)
                self.assertEqual([each["spec"]["nodeName"] for each in cluster.pods().values()
                                  if each["metadata"]["name"].startswith("web")], ["n9"])
                text = await program.text("operations", "/metrics")
                self.assertIn("\ngpuledger_fragmented_gpus 0\n", text.replace("0.000", "0"))
                self.assertEqual(cluster.marks(), [])

    async def test_nobody_comes_back(self):
        """What the pod leaves is kept until its successor is elsewhere, and the target is known after a crash."""
        async with cluster_of(**{f"n{number}": 8 for number in range(11)}) as cluster:
            await self.defragment(cluster)
            cluster.delay = 3
            async with serving(cluster) as program:
                cluster.order(defragment="0.2")
                await cluster.until(lambda: cluster.moves, "the eviction")
                self.assertEqual(cluster.marks(), ["n9", "n10"])
                most = cluster.status()["fragmentedMost"]
                program.kill()
            async with serving(cluster):
                status = await cluster.phase("done", "stopped", "refused")
            self.assertEqual((status["phase"], status["moved"], status["fragmentedMost"], len(cluster.moves)),
                             ("done", 1, most, 1), status)

    async def crash(self, moment):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.delay = 1
            cluster.order(pod="test/big")
            reached = {
                "status": lambda: (cluster.status() or {}).get("steps"),
                "evicted": lambda: cluster.moves,
                "gone": lambda: cluster.moves and not cluster.gone,
                "moved": lambda: (cluster.status() or {}).get("moved") == 1,
                "last": lambda: len(cluster.moves) == 2,
            }
            async with serving(cluster) as program:
                await cluster.until(reached[moment], moment)
                program.kill()
            self.assertEqual(cluster.status()["phase"], "running", moment)
            async with serving(cluster):
                status = await cluster.phase("done", "stopped")
            self.assertEqual((status["phase"], status["moved"], cluster.where("big")), ("done", 2, "n1"),
                             (moment, status))
            self.assertEqual(self.outcomes(status), [(name, "moved") for name in cluster.moves], moment)
            self.assertEqual(cluster.marks(), [], moment)

    async def take_over(self, moment):
        """Of two replicas with a Lease the one that carries it out is killed, and the other goes on."""
        elect = ("--leader-elect", "--lease-namespace=default", "--lease-duration=4s")
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.delay = 1
            reached = {
                "status": lambda: (cluster.status() or {}).get("steps"),
                "evicted": lambda: cluster.moves,
                "moved": lambda: (cluster.status() or {}).get("moved") == 1,
            }
            async with serving(cluster, *elect) as first, serving(cluster, *elect) as second:
                cluster.order(pod="test/big")
                await cluster.until(reached[moment], moment)

                def at_it():
                    return [each for each in (first, second)
                            if any("plan's step" in line or "msg=plan " in line for line in each.log)]
                await cluster.until(at_it, "the log, which comes a moment later, says who is at it")
                self.assertEqual(at_it(), [first], "only one replica is at it")
                first.kill()
                status = await cluster.phase("done", "stopped")
                await cluster.until(lambda: any("plan ended" in line for line in second.log),
                                    "the other's log, which comes a moment later, says that it ended")
            self.assertEqual((status["phase"], status["moved"], cluster.where("big")), ("done", 2, "n1"), (moment, status))
            self.assertEqual(self.outcomes(status), [(name, "moved") for name in cluster.moves], "each once")
            self.assertEqual(cluster.marks(), [], moment)

    async def test_another_replica_goes_on(self):
        await asyncio.gather(*map(self.take_over, ("status", "evicted", "moved")))

    async def test_it_goes_on_after_a_crash(self):
        """At whatever moment: each pod moves once, and what is known of the steps is kept."""
        await asyncio.gather(*map(self.crash, ("status", "evicted", "gone", "moved", "last")))

    async def test_the_hour_is_kept_across_restarts_and_plans(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            async with serving(cluster):
                cluster.order(pod="test/big", max_per_hour="1")
                status = await cluster.phase("waiting", "done", "stopped")
                self.assertEqual((status["phase"], status["moved"], cluster.marks()), ("waiting", 1, []), status)
            async with serving(cluster) as program:
                cluster.order("other", empty="n4", max_per_hour="1")
                cluster.web(1, "n4")
                status = await cluster.phase("waiting", "done", "stopped", name="other")
                self.assertEqual((status["phase"], len(cluster.moves)), ("waiting", 1), "the hour is everybody's")
                cluster.api.delete("configmaps", ("default", "plan"))
                cluster.order("another", empty="n4", max_per_hour="1")
                status = await cluster.phase("waiting", "done", "stopped", name="another")
                self.assertEqual((status["phase"], len(cluster.moves)), ("waiting", 1), program.log)
                cluster.order("other", empty="n4", max_per_hour="2")
                status = await cluster.phase("done", "stopped", name="other")
                self.assertEqual((status["phase"], len(cluster.moves)), ("done", 2), status)

    async def test_the_hour_is_shared_with_the_command(self):
        """Who moves pods, and by what, does not matter; without a bound nobody counts."""
        words = ("plan", "test/big", "--apply", "--moves-namespace", "default", "--evict-timeout", "20s")
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            process = await asyncio.create_subprocess_exec(
                os.environ.get("GPULEDGER", PROGRAM), *words, "--max-per-hour", "1",
                f"--kubeconfig={cluster.api.kubeconfig()}", env=environment(), stderr=asyncio.subprocess.PIPE)
            said = (await process.stderr.readuntil(b"the next one waits")).decode()
            await cluster.until(lambda: not cluster.marks(), "nothing is kept meanwhile")
            process.kill()
            await process.communicate()
            self.assertEqual(len(cluster.moves), 1, said)
            [line] = cluster.hour()
            pod_uid = f"uid-{cluster.moves[0]}"
            self.assertEqual(line.split()[1:], [pod_uid, "test", "n1", "plan"])
            async with serving(cluster):
                cluster.order(pod="test/big", max_per_hour="1")
                status = await cluster.phase("waiting", "done", "stopped")
                self.assertEqual((status["phase"], len(cluster.moves)), ("waiting", 1), status)
            code, _, said = await command(cluster, *words)
            self.assertEqual((code, len(cluster.moves), cluster.hour()), (0, 2, [line]), said)

    async def test_the_hour_cannot_be_read(self):
        """Nobody moves, which is said and counted; when it can be read again, it goes on."""
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            broken = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"moves": "yesterday"},
                      "metadata": {"namespace": "default", "name": MOVES}}
            cluster.api.put("configmaps", broken)
            async with serving(cluster) as program:
                cluster.order(pod="test/big", max_per_hour="9")
                status = await cluster.phase("waiting", "done", "stopped")
                self.assertEqual((status["phase"], cluster.moves), ("waiting", []), status)
                self.assertIn(f"ConfigMap default/{MOVES}) cannot be read", status["text"])
                text = await program.text("operations", "/metrics")
                self.assertIn('gpuledger_plans_total{result="unreadable"} 1\n', text)
                code, _, said = await command(cluster, "plan", "test/big", "--apply", "--max-per-hour", "1",
                                              "--moves-namespace", "default")
                self.assertEqual((code, cluster.moves), (1, []), said)
                self.assertIn("'yesterday' is not like", said)
                cluster.api.delete("configmaps", ("default", MOVES))
                status = await cluster.phase("done", "stopped")
                self.assertEqual((status["phase"], len(cluster.moves), len(cluster.hour())), ("done", 2, 2), status)

    async def test_orders_that_are_not_understood(self):
        orders = {"word": {"pod": "test/big", "max-evictions": "3"}, "both": {"pod": "test/big", "empty": "n1"},
                  "none": {}, "number": {"pod": "test/big", "max-moves": "many"}, "pod": {"pod": "big"},
                  "window": {"empty": "n1", "window": "at night"}, "force": {"empty": "n1", "force": "true"},
                  "long": {"empty": "n1", "window": "x" * 5000}, "time": {"empty": "n1", "evict-timeout": "10"},
                  "hour": {"waiting": "5m"}, "soon": {"waiting": "soon", "max-per-hour": "1"},
                  "pieces": {"defragment": "none"}}
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            for name, data in orders.items():
                cluster.order(name, **data)
            cluster.order("elsewhere", namespace="test", pod="test/big")
            cluster.order("off", label="stop", pod="test/big")
            cluster.order("broken", pod="test/big")
            cluster.api.objects["configmaps"][("default", "broken")]["metadata"]["annotations"] = {STATUS: "{"}
            async with serving(cluster) as program:
                for name in orders:
                    status = await cluster.phase("refused", "done", "stopped", "running", name=name)
                    self.assertEqual(status["phase"], "refused", (name, status))
                cluster.order("last", empty="n4")
                await cluster.phase("done", name="last")
                self.assertEqual((cluster.status("elsewhere", "test"), cluster.status("off"), cluster.moves),
                                 (None, None, []))
                self.assertTrue(any("broken" in line and "cannot be read" in line for line in program.log))

    async def test_a_configmap_that_cannot_be_read(self):
        """It may be under way, so no other plan begins beside it; it is said and counted once."""
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.order("broken", empty="n3")
            cluster.api.objects["configmaps"][("default", "broken")]["data"]["empty"] = 7
            async with serving(cluster) as program:
                cluster.order(pod="test/big")
                status = await cluster.phase("waiting", "done", "stopped", "running")
                self.assertEqual((status["phase"], cluster.moves), ("waiting", []), status)
                self.assertIn("broken cannot be read", status["text"])
                await cluster.looks(2)
                text = await program.text("operations", "/metrics")
                self.assertIn('gpuledger_plans_total{result="unreadable"} 1\n', text)
                said = [line for line in program.log if "plan cannot be read" in line and "broken" in line]
                self.assertEqual((len(said), cluster.moves), (1, []), said)
                cluster.api.delete("configmaps", ("default", "broken"))
                status = await cluster.phase("done", "stopped")
                self.assertEqual((status["phase"], status["moved"]), ("done", 2), status)

    async def tell_to_stop(self, what, change):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.delay = 6
            cluster.order(pod="test/big")
            async with serving(cluster) as program:
                await cluster.until(lambda: cluster.moves, "the first eviction")
                if change:
                    cluster.api.change("configmaps", ("default", "plan"), change)
                    status = await cluster.phase("done", "stopped")
                    self.assertEqual(status["phase"], "stopped", (what, status))
                else:
                    cluster.api.delete("configmaps", ("default", "plan"))
                    await cluster.until(lambda: any("ended" in line for line in program.log), "its end")
                self.assertEqual((len(cluster.moves), cluster.marks()), (1, []), what)

    async def test_it_is_told_to_stop(self):
        await asyncio.gather(
            self.tell_to_stop("label", lambda each: each["metadata"]["labels"].update({PLAN: "stop"})),
            self.tell_to_stop("data", lambda each: each["data"].update({"max-moves": "1", "window": "00:00-24:00"})),
            self.tell_to_stop("gone", None))

    async def change_while_down(self, order, change, phase):
        """After a crash in the middle of a step, and a change of the order before anybody is there again."""
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.delay = 3
            cluster.order(**order)
            async with serving(cluster) as program:
                await cluster.until(lambda: cluster.moves, "the first eviction")
                program.kill()
            cluster.api.change("configmaps", ("default", "plan"), change)
            async with serving(cluster):
                await cluster.until(lambda: (cluster.status()["phase"], cluster.status()["moved"]) == phase,
                                    cluster.status)
            step = cluster.status()["steps"][0]
            self.assertEqual((step["name"], step["outcome"]), (cluster.moves[0], "failed"), step)
            self.assertIn("while nobody was at it", step["why"])
            return cluster.status()

    async def test_it_is_changed_while_nobody_is_at_it(self):
        """Another order begins, also one that goes on for ever; one that is to stop has no step under way."""
        await asyncio.gather(
            self.change_while_down({"waiting": "0s", "max_per_hour": "9"},
                                   lambda each: each["data"].update({"max-per-hour": "8"}), ("waiting", 1)),
            self.change_while_down({"pod": "test/big"},
                                   lambda each: each["data"].update({"max-moves": "7"}), ("done", 1)),
            self.change_while_down({"pod": "test/big"},
                                   lambda each: each["metadata"]["labels"].update({PLAN: "stop"}), ("stopped", 0)))

    async def test_what_it_kept_goes_when_it_is_stopped_while_nobody_is_at_it(self):
        def left():
            return [name for (_, name), node in cluster.api.objects["nodes"].items()
                    if PLAN in node["metadata"].get("annotations", {})]

        def age(node):
            mark = json.loads(node["metadata"]["annotations"][PLAN])
            node["metadata"]["annotations"][PLAN] = json.dumps({**mark, "until": "2026-01-01T00:00:00Z"})
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.delay = 3
            cluster.order(pod="test/big")
            async with serving(cluster) as program:
                await cluster.until(lambda: cluster.moves, "the first eviction")
                program.kill()
            self.assertNotEqual(left(), [])
            cluster.api.change("configmaps", ("default", "plan"),
                               lambda each: each["metadata"]["labels"].update({PLAN: "stop"}))
            for name in left():
                cluster.api.change("nodes", (None, name), age)  # two minutes go by
            async with serving(cluster):
                await cluster.until(lambda: not left(), left)
            self.assertEqual(cluster.status()["phase"], "stopped")

    async def test_a_pod_goes_by_itself(self):
        """Between the plan and its eviction: it was not moved, and counts for nothing."""
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.api.faults.append(Fault("try to evict", "slow", seconds=1))
            async with serving(cluster) as program:
                cluster.order(pod="test/big")
                begun = await cluster.until(lambda: (cluster.status() or {}).get("steps"), "a step")
                cluster.gone.append((0, ("test", begun[0]["name"])))
                status = await cluster.phase("done", "stopped")
                text = await program.text("operations", "/metrics")
            self.assertEqual((status["phase"], status["moved"], cluster.where("big"), len(cluster.moves)),
                             ("done", 1, "n1", 1), status)
            self.assertEqual(self.outcomes(status), [(cluster.moves[0], "moved")], status)
            self.assertIn('gpuledger_plan_steps_total{result="gone"} 1\n', text)

    async def test_an_audit_finds_something_meanwhile(self):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            cluster.on_eviction = lambda n: cluster.foreign("n4")
            cluster.order(pod="test/big")
            async with serving(cluster):
                status = await cluster.phase("done", "stopped")
            self.assertEqual((status["phase"], status["moved"], cluster.marks()), ("stopped", 1, []), status)
            self.assertIn("foreign n4 test/foreign", status["text"])

    async def strike(self, *faults):
        async with cluster_of(**ROOMS) as cluster:
            crowded(cluster)
            async with serving(cluster):
                cluster.api.faults += faults
                cluster.order(pod="test/big")
                status = await cluster.phase("done", "stopped")
            self.assertEqual((status["phase"], status["moved"]), ("done", 2), (faults, status))
            self.assertEqual(self.outcomes(status), [(name, "moved") for name in cluster.moves], faults)

    async def test_faults_that_stop_nothing(self):
        """Of what is written, and of what is evicted."""
        await asyncio.gather(*map(self.strike, (
            Fault("patch configmaps", "done-cut", times=2), Fault("patch configmaps", "status", 409, times=2),
            Fault("list", "status", 500, times=2), Fault("evict", "done-status", times=50),
            Fault("try to evict", "status", 429, "TooManyRequests"))))


if __name__ == "__main__":
    unittest.main(testRunner=AtOnce(16))
