#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real program over real sockets, one fault for each cluster, many at a time: each is scripted, must strike, and
may cost time but nothing else. Every pod gets its card, no card is given twice, and in the end the
ledger is what the API server has.
"""

import asyncio
import contextlib
import os
import pathlib
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

# pylint: disable=wrong-import-position
from apiserver import Fault  # noqa: E402
from cluster import IDX, PATIENCE, Cluster, Program, require  # noqa: E402
from pki import Authority  # noqa: E402
from program import PROGRAM, environment  # noqa: E402

PATIENT = "--bind-timeout=50s"  # however slow the machine is
REJECTS_PAUSE_S = 10  # the first one, as src/queue/rejects.h has it
GANG = "gang.scheduling.koordinator.sh/"
GONE = {"status": 410, "reason": "Expired"}
BUSY = {"status": 429, "reason": "TooManyRequests"}

# What goes wrong with a bind; True: the first call may fail, kube-scheduler's next one does not.
BINDS = {
    "409": ([Fault("bind", "status", 409, "Conflict")], True),
    "409, etcd timed out": ([Fault("bind", "open", times=2)], False),
    "409, etcd timed out, GET fails": ([Fault("bind", "open"), Fault("get", "status", times=2)], False),
    "403": ([Fault("bind", "status", 403, "Forbidden")], True),
    "429": ([Fault("bind", "status", **BUSY)], False),
    "429 with Retry-After": ([Fault("bind", "status", retry_after=1, **BUSY)], False),
    "500": ([Fault("bind", "status")], False),
    "500 twice": ([Fault("bind", "status", times=2)], False),
    "done, answered with 500": ([Fault("bind", "done-status")], False),
    "done, answered with 504": ([Fault("bind", "done-status", 504, "Timeout")], False),
    "done, reply lost": ([Fault("bind", "done-cut")], False),
    "done, reply lost, GET fails": ([Fault("bind", "done-cut"), Fault("get", "status", times=2)],
                                    False),
    "reply cut in the middle": ([Fault("bind", "cut")], False),
    "connection cut": ([Fault("bind", "refuse")], False),
    "request lost": ([Fault("bind", "lost")], False),
    "slow": ([Fault("bind", "slow", seconds=1)], False),
}

# What goes wrong with a watch of the pods, after so many changes.
WATCHES = {
    "410": [Fault("watch", "status", times=3, **GONE)],
    "429 with Retry-After": [Fault("watch", "status", retry_after=1, times=3, **BUSY)],
    "500": [Fault("watch", "status", times=3)],
    "401": [Fault("watch", "status", 401, "Unauthorized", times=3)],
    "cut mid-line": [Fault("watch", "cut", after=1, times=3)],
    "ERROR 410": [Fault("watch", "error", after=1, times=3, **GONE)],
    "ERROR 500": [Fault("watch", "error", after=1, times=3)],
    "a change told twice": [Fault("watch", "repeat", after=1, times=3)],
    "ends": [Fault("watch", "end", after=1, times=3)],
}

LISTS = {
    "410 between pages": [Fault("list", "status", page=True, **GONE)],
    "429 with Retry-After": [Fault("list", "status", retry_after=1, **BUSY)],
    "500 between pages": [Fault("list", "status", page=True)],
    "cut mid-object": [Fault("list", "cut", times=3)],
    "cut between pages": [Fault("list", "refuse", page=True)],
    "no connection": [Fault("list", "refuse", times=3)],
    "401": [Fault("list", "status", 401, "Unauthorized", times=3)],
}


# What goes wrong with the Lease; nothing is bound without it, and nothing is lost.
LEASES = {
    "taken without trouble": [],
    "409": [Fault("put leases", "status", 409, "Conflict", times=2)],
    "500": [Fault("put leases", "status", times=2)],
    "done, answered with 500": [Fault("put leases", "done-status", times=2)],
    "done, reply lost": [Fault("put leases", "done-cut", times=2)],
    "slow": [Fault("put leases", "slow", seconds=1, times=2)],
    "GET fails": [Fault("get", "status", times=2)],
}


# What goes wrong with the Secret of the keys at the start; all of it is waited for.
SEALS = {
    "no connection": [Fault("get", "refuse", times=2)],
    "500": [Fault("get", "status", times=2)],
    "403, roles are not read yet": [Fault("get", "status", 403, "Forbidden", times=3)],
    "403 when it comes back": [Fault("get", "refuse"),
                               Fault("get", "status", 403, "Forbidden", times=2)],
    "403 for the first key": [Fault("patch secrets", "status", 403, "Forbidden", times=2)],
    "409 for the first key": [Fault("patch secrets", "status", 409, "Conflict")],
}


@contextlib.asynccontextmanager
async def running(cluster, *options, kubeconfig=None):
    """The program, in sync with a cluster that may be in trouble."""
    program = Program(cluster, kubeconfig or cluster.api.kubeconfig())
    try:
        await program.start(*options)
        yield program
    finally:
        await program.end()


@contextlib.asynccontextmanager
async def cluster_of(*shapes):
    with tempfile.TemporaryDirectory() as directory:
        cluster = Cluster(directory, shapes or ((2, 16), (2, 16)))
        await cluster.start()
        try:
            yield cluster
        finally:
            await cluster.api.stop()


async def bind(program, obj, may_fail=False):
    """As kube-scheduler does: asks, binds, and if that fails asks and binds again."""
    passing = await program.filter(obj)
    require(passing, f"no node for {obj['metadata']['name']}")
    error = await program.bind(obj, passing[0])
    if error and may_fail:
        passing = await program.filter(obj)
        require(passing, "no node after a bind that failed")
        error = await program.bind(obj, passing[0])
    require(error == "", f"bind: {error}")
    require(obj["spec"].get("nodeName") == passing[0], f"{obj} is not bound")


async def bind_test(faults, may_fail):
    async with cluster_of((2, 16)) as cluster, running(cluster, PATIENT) as program:
        cluster.api.faults = faults = [Fault(**vars(fault)) for fault in faults]
        # 9 of 16 each: both fit only if neither is booked twice
        for name in ("a", "b"):
            obj = cluster.create(name, 9)
            await bind(program, obj, may_fail)
            card = obj["metadata"]["annotations"][IDX]
            require(await program.bind(obj, "n0") == "", "a repeated bind")
            require(obj["metadata"]["annotations"][IDX] == card, "a repeated bind moves nothing")
            cluster.play()
            await program.settle()
        require(not faults, f"{faults} did not strike")
        require(await program.filter(cluster.create("c", 8)) == [], "there is no room left")
        cluster.end(("test", "a"))
        await program.settle()
        await bind(program, cluster.create("d", 16))
        cluster.check()


async def watch_test(faults):
    """One fault for each of the three watches, which begin at the same time."""
    async with cluster_of() as cluster:
        cluster.api.faults = faults = [Fault(**vars(fault)) for fault in faults]
        async with running(cluster, PATIENT) as program:
            for i in range(12):
                await bind(program, cluster.create(f"p{i}", 5))
                cluster.play()
                cluster.api.put("nodes", dict(cluster.api.objects["nodes"][(None, "n0")]))
                cluster.api.put("configmaps", {
                    "metadata": {"namespace": "kube-system", "name": "unhealthy-gpu-n1"},
                    "data": {"gpus": ""}})
                if i % 2:
                    cluster.end(("test", f"p{i}"))
                await program.settle()
            require(not faults, f"{faults} did not strike")


async def list_test(faults):
    """A cluster of several pages, read with a fault in it."""
    async with cluster_of(*(((2, 16),) * 30)) as cluster:
        for i in range(1100):
            obj = cluster.create(f"p{i}", 1)
            where = {IDX: str(i % 2), "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}
            if i < 600:
                obj["metadata"]["annotations"] = where
                obj["spec"]["nodeName"] = f"n{i % 30}"
                obj["status"]["phase"] = "Running"
        cluster.api.faults = faults = [Fault(**vars(fault)) for fault in faults]
        async with running(cluster) as program:
            require(not faults, f"{faults} did not strike")
            await program.settle()


async def lease_test(faults):
    async with cluster_of((2, 16)) as cluster:
        cluster.api.faults = faults = [Fault(**vars(fault)) for fault in faults]
        async with running(cluster, "--leader-elect", "--lease-namespace=test",
                           "--lease-duration=6s") as program:
            deadline = asyncio.get_running_loop().time() + PATIENCE
            for name in ("a", "b"):
                obj = cluster.create(name, 9)
                while error := await retry(program, obj):
                    require(asyncio.get_running_loop().time() < deadline, f"bind: {error}")
                    await asyncio.sleep(0.1)
                cluster.play()
                await program.settle()
            while faults:  # each renewal may meet one
                require(asyncio.get_running_loop().time() < deadline, f"{faults} did not strike")
                await asyncio.sleep(0.1)
            while error := await retry(program, obj):  # which may have cost the Lease
                require(asyncio.get_running_loop().time() < deadline, f"bind: {error}")
                await asyncio.sleep(0.1)
            cluster.check()


async def seal_test(faults):
    async with cluster_of((2, 16)) as cluster:
        cluster.api.put("secrets", {"metadata": {"namespace": "test", "name": "seal"}})
        cluster.api.faults = faults = [Fault(**vars(fault)) for fault in faults]
        async with running(cluster, "--seal-secret=test/seal") as program:
            obj = cluster.create("a", 9)
            await bind(program, obj)
            require("gpuledger.io/seal" in obj["metadata"]["annotations"], "a grant has a seal")
            require(not faults, f"{faults} did not strike")
            cluster.play()
            await program.settle()


async def late_binding_test():
    """Killed, started again, and only then is the first one's Binding carried out: its successor
    knows of it from the Lease, and gives its place to nobody."""
    elect = ("--leader-elect", "--lease-namespace=test", "--lease-duration=4s")
    released = asyncio.Event()

    async with cluster_of((1, 16)) as cluster:
        async with running(cluster, *elect) as first:
            obj = cluster.create("a", 9)

            async def hold(stage, _):
                if stage == "received" and not released.is_set():
                    first.kill()
                    await released.wait()

            cluster.api.hook = hold
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while not first.killed:
                await retry(first, obj)
                require(asyncio.get_running_loop().time() < deadline, "nothing was bound")
                await asyncio.sleep(0.1)
        async with running(cluster, *elect) as second:
            other = cluster.create("b", 9)
            while await second.filter(other) is None:  # until it holds the Lease
                require(asyncio.get_running_loop().time() < deadline, "nobody holds the Lease")
                await asyncio.sleep(0.1)
            require(await second.filter(other) == [], "the place is kept")
            require(await second.bind(other, "n0") != "", "and given to nobody")
            released.set()
            await second.settle()
            require(obj["spec"].get("nodeName") == "n0", "the late Binding was carried out")
            cluster.check()


async def open_conflict_test():
    """The API server answers each Binding with the 409 that it makes of etcd's timeouts, and etcd carries the first
    one out in the end: its card is nobody else's meanwhile."""
    async with cluster_of((1, 16)) as cluster, running(cluster, "--bind-timeout=2s") as program:
        obj, other = cluster.create("a", 16), cluster.create("b", 16)
        cluster.api.faults = [Fault("bind", "open", times=1000)]
        require(await program.filter(obj) == ["n0"], "there is room")
        error = await program.bind(obj, "n0")
        require("it is not known whether the pod was bound" in error, f"bind: {error}")
        cluster.api.faults = []
        require(await program.filter(other) == [], "its place is kept")
        require(await program.bind(other, "n0") != "", "and given to nobody")
        cluster.api.finish(cluster.api.open[0])
        await program.settle()
        require(obj["spec"].get("nodeName") == "n0", "the first Binding was carried out")
        cluster.check()


async def same_identity_test():
    """Two replicas were given one name, as a Deployment gives it to all its pods: one serves."""
    elect = ("--leader-elect", "--lease-namespace=test", "--lease-identity=one")

    async with cluster_of((1, 16)) as cluster, running(cluster, *elect) as first:
        obj = cluster.create("a", 1)
        deadline = asyncio.get_running_loop().time() + PATIENCE

        async def until(is_so, what):
            while not await is_so():
                require(asyncio.get_running_loop().time() < deadline, what)
                await asyncio.sleep(0.1)

        async def serves():
            return await first.filter(obj) is not None

        async def has_looked():
            if await second.filter(obj) is not None:
                return True
            return "was last held by one_" in await second.text("operations", "/readyz?verbose")

        await until(serves, "nobody holds the Lease")
        async with running(cluster, *elect) as second:
            await until(has_looked, "the second neither serves nor stands by")
            require(await second.filter(obj) is None, "both serve")
            require(await first.filter(obj) == ["n0"], "the first goes on")


async def unreadable_test():
    """A pod that says which node and card it is on, and a grace period that no double holds; one that is no pod of
    ours to read, which may be on any card; and one that becomes so. All hold what they hold."""
    async with cluster_of((1, 16), (1, 16), (1, 16)) as cluster:
        def place(name, node):
            obj = cluster.create(name, 16, {IDX: "0", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"})
            obj["spec"]["nodeName"] = node
            obj["status"]["phase"] = "Running"
            return obj

        place("a", "n0")["spec"]["terminationGracePeriodSeconds"] = 2 ** 53
        place("b", "n1")["metadata"]["labels"] = {"a": 7}
        place("c", "n2")
        async with running(cluster) as program:
            for _ in range(2):
                require(await program.filter(cluster.create("new", 1)) == [], "a held card is offered")
                cluster.api.change("pods", ("test", "c"), lambda obj: obj["metadata"].update(labels={"a": 7}))
                cluster.api.compact()
                lists = cluster.api.lists
                cluster.api.cut_all()
                while cluster.api.lists < lists + 3:
                    await asyncio.sleep(0.02)
                await audited(program)
            report = (await program.call("operations", "GET", "/api/v1/audit"))["report"]
            found = [row.get("name") for row in report["rows"] if row["cause"] == "unreadable"]
            require("b" in found, f"audit finds {report['rows']}")


async def half_group_test():
    """Two replicas; the one that serves is killed when two of a group's four Bindings have been carried out. The
    other says that the group is half, and brings the rest."""
    elect = ("--gangs", "--leader-elect", "--lease-namespace=test", "--lease-duration=4s", "--bind-timeout=20s")
    served = asyncio.Event()  # by the other one

    def pod_of(cluster, i):
        return cluster.create(f"g-{i}", 16, {GANG + "name": "g", GANG + "min-available": "4"})

    async def bind_all(program, pods):
        places = [await program.filter(obj) for obj in pods]
        if all(places):
            await asyncio.gather(*(program.bind(obj, place) for obj, [place] in zip(pods, places)))

    # one plugin serves one pod at a time
    async with cluster_of(*(((1, 16),) * 4)) as cluster, running(cluster, *elect) as first:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        pods = [pod_of(cluster, i) for i in range(4)]
        bound = 0

        async def until(is_so, what):
            while not await is_so():
                require(asyncio.get_running_loop().time() < deadline, what)
                await asyncio.sleep(0.1)

        async def hook(stage, _):
            nonlocal bound
            if served.is_set():
                return None
            if stage == "received":
                return "drop" if bound == 2 else None
            bound += stage == "applied"
            if bound < 2:
                return None
            first.kill()
            return "drop"

        async def serves():
            return await first.filter(pods[0]) is not None

        await until(serves, "nobody holds the Lease")
        async with running(cluster, *elect) as second:
            cluster.api.hook = hook
            require(await second.filter(pods[0]) is None, "one that stands by answers")

            async def is_killed():
                await bind_all(first, pods)
                return first.killed

            async def is_half():
                groups = (await second.call("operations", "GET", "/api/v1/waiting"))["groups"]
                told = [(each["name"], each["state"], each["needs"], each["bound"]) for each in groups]
                return told == [("g", "half", 4, 2)]

            async def serves_now():
                return await second.filter(lacking[0]) is not None

            async def is_whole():
                await bind_all(second, lacking)
                return all(obj["spec"].get("nodeName") for obj in pods)

            await until(is_killed, "nothing was bound")
            lacking = [obj for obj in pods if not obj["spec"].get("nodeName")]
            require(len(lacking) == 2, f"{len(lacking)} of four are not bound")
            await until(is_half, "the other does not say that the group is half")
            await until(serves_now, "the other does not take the Lease")
            served.set()
            await until(is_whole, "the group does not become whole")
            marks = [obj["metadata"]["annotations"].get("gpuledger.io/gang-min") for obj in pods]
            require(marks.count("4") >= 2, marks)
            cluster.play()
            await second.settle()
            require((await second.call("operations", "GET", "/api/v1/waiting"))["groups"] == [], "it is whole")


async def retry(program, obj):
    """What goes wrong with one try to bind, "" if nothing does."""
    if obj["spec"].get("nodeName"):
        return await program.bind(obj, "n0")
    if not await program.filter(obj):
        return "filter"
    return await program.bind(obj, "n0")


async def compaction_test():
    """The watches are cut, and what they have missed is no longer there to be told."""
    async with cluster_of() as cluster, running(cluster) as program:
        for i in range(3):
            await bind(program, cluster.create(f"p{i}", 9 + i))
        cluster.play()
        await program.settle()
        cluster.api.cut_all()
        cluster.end(("test", "p0"))
        cluster.api.compact()
        await program.settle()
        require(await program.filter(cluster.create("q", 16)), "its room is free")


async def restart_test():
    """The API server goes away in the middle of a bind, and comes back."""
    async with cluster_of() as cluster, running(cluster, PATIENT) as program:
        obj = cluster.create("p", 9)
        passing = await program.filter(obj)
        cluster.api.faults = [Fault("bind", "lost", seconds=0.1)]
        call = asyncio.create_task(program.bind(obj, passing[0]))
        while cluster.api.faults:
            await asyncio.sleep(0.01)
        await cluster.api.stop()
        await cluster.api.start()
        error = await call
        if error:
            require(await program.bind(obj, passing[0]) == "", "bind")
        await program.settle()


def reject(cluster):
    """kubelet of n0, whose plugin is gone, and that of the other nodes. How many pods it rejects."""
    lost = 0
    for key, obj in list(cluster.pods().items()):
        if obj["status"]["phase"] == "Pending" and obj["spec"].get("nodeName") == "n0":
            cluster.api.change("pods", key, fail_pod)
            lost += 1
    cluster.play()
    return lost


def fail_pod(obj):
    obj["status"].update(phase="Failed", reason="UnexpectedAdmissionError",
                         message="Allocate failed due to no healthy devices present")


async def resume(program, node):
    """What the command prints."""
    command = await asyncio.create_subprocess_exec(
        os.environ.get("GPULEDGER", PROGRAM), "resume", node,
        f"--server=http://127.0.0.1:{program.ports['operations']}", env=environment(),
        stdout=asyncio.subprocess.PIPE)
    text, _ = await command.communicate()
    require(command.returncode == 0, "resume failed")
    return text.decode().strip()


async def audited(program):
    """The nodes that an audit finds to be left out."""
    before = (await program.call("operations", "GET", "/api/v1/audit"))["run"]
    await program.call("operations", "POST", "/api/v1/audit")
    while True:
        answer = await program.call("operations", "GET", "/api/v1/audit")
        if answer["run"] > before:
            return [row["node"] for row in answer["report"]["rows"] if row["cause"] == "left_out"]
        await asyncio.sleep(0.02)


async def black_hole_test():
    """A node whose plugin is gone rejects all it gets, and prioritize favours it: at most one and three
    pods are lost, their replacements run elsewhere, and what is recorded is decided alike again."""
    async with cluster_of((2, 16), (2, 16)) as cluster:
        record = cluster.api.directory / "record"
        lost = n = since = 0

        def is_paused():
            """If it is not, on a slow machine, another pod may be lost in trying the node."""
            return time.monotonic() - since < REJECTS_PAUSE_S

        async with running(cluster, PATIENT, f"--record={record}") as program:
            while len(running_on(cluster)) < 8:
                for _ in range(2):
                    obj = cluster.create(f"p{n}", 1 + n % 2)  # equal ones would wait for each other
                    n += 1
                    passing = await program.filter(obj)
                    require("n1" in passing, f"a node that works is left out: {passing}")
                    error = await program.bind(obj, passing[0])
                    require(error == "", f"bind: {error}")
                begun, more = time.monotonic(), reject(cluster)
                require(more == 0 or lost + more <= 4 or not is_paused(), f"{lost + more} pods are lost")
                lost, since = lost + more, begun if more else since
                await program.settle()
                if lost == 4:
                    passing = await program.filter(cluster.create("asks", 1))
                    require(passing == ["n1"] or not is_paused(), "it is open")
                    require(await audited(program) == ["n0"] or not is_paused(), "the audit names the node")
            require(lost >= 4, f"only {lost} pods are lost")
            require(set(running_on(cluster)) == {"n1"}, "the replacements run elsewhere")
            require(await resume(program, "n0") == "node n0 is asked again", "resume")
            require(await resume(program, "n0") == "node n0 was not left out", "resume again")
            require(await audited(program) == [], "the audit has no more to say")
            for _ in range(3):
                obj = cluster.create(f"p{n}", 1)
                n += 1
                require(await program.bind(obj, "n0") == "", "bind after resume")
                since = time.monotonic()
                reject(cluster)
                await program.settle()
            obj = cluster.create("last", 1)
            require(await program.filter(obj) == ["n1"] or not is_paused(), "it is left out again")
            error = await program.bind(obj, "n0")
            require("left out for a while" in error or not is_paused(), f"bind refuses: {error}")
            obj = cluster.create("later", 2)
            cluster.api.change("nodes", (None, "n0"), mark_node)
            while await program.filter(obj) != ["n0", "n1"]:
                await asyncio.sleep(0.02)
            await program.end(kill=False)
        replayed = await asyncio.create_subprocess_exec(
            os.environ.get("GPULEDGER", PROGRAM), "replay", str(record), env=environment(),
            stdout=asyncio.subprocess.PIPE)
        text, _ = await replayed.communicate()
        require(replayed.returncode == 0, text.decode())


def mark_node(obj):
    obj["metadata"].setdefault("annotations", {})["gpuledger.io/resume"] = "now"


def running_on(cluster):
    return [obj["spec"]["nodeName"] for obj in cluster.pods().values()
            if obj["status"]["phase"] == "Running"]


async def token_test():
    """The token is replaced; the old one ends with it."""
    async with cluster_of() as cluster, running(cluster) as program:
        for i, token in enumerate(("second", "third")):
            await bind(program, cluster.create(f"p{i}", 5))
            cluster.play()
            (cluster.api.directory / "token").write_text(f"{token}\n")
            cluster.api.tokens = {token}
            # Renewed at most every 5 s: kube-scheduler asks again.
            deadline = asyncio.get_running_loop().time() + PATIENCE
            obj = cluster.create(f"q{i}", 5)
            while await program.bind(obj, "n0"):
                require(asyncio.get_running_loop().time() < deadline, "the new token is not used")
                await asyncio.sleep(0.2)
            cluster.play()
            cluster.api.cut_all()  # watches keep their token for as long as they live
            cluster.end(("test", f"p{i}"))
            await program.settle()


async def certificate_test():
    """The server's certificate is replaced by another of the same authority; then by one of nobody
    we know, which is worse than no answer, and back."""
    with tempfile.TemporaryDirectory() as directory:
        ours, other = Authority(directory), Authority(directory, "other")
        cluster = Cluster(directory)
        await cluster.start(ours.sign("one"))
        kubeconfig = cluster.api.kubeconfig(ours.certificate)

        async def replace(identity):
            await cluster.api.stop()
            await cluster.api.start(identity)

        async with running(cluster, PATIENT, kubeconfig=kubeconfig) as program:
            await bind(program, cluster.create("a", 9))
            cluster.play()
            await replace(ours.sign("two"))
            await bind(program, cluster.create("b", 9))
            cluster.play()
            await program.settle()
            await replace(other.sign("three"))
            obj = cluster.create("c", 9)
            passing = await program.filter(obj)
            error = await program.bind(obj, passing[0])
            require(error and not obj["spec"].get("nodeName"), f"bound by a stranger: {error}")
            await replace(ours.sign("four"))
            await bind(program, obj)
            await program.settle()
        await cluster.api.stop()


async def client_certificate_test():
    """The client's certificate is replaced in its files, and the old one is no longer accepted; then the connections
    are not. Calls, watches and the Lease go on."""
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(directory)
        cluster = Cluster(directory, ((2, 16), (2, 16)))
        await cluster.start(authority.sign("server"), authority.certificate)
        files = authority.sign("first", usage="clientAuth")
        kubeconfig = cluster.api.kubeconfig(authority.certificate, files)
        cluster.api.clients = {"first"}
        elect = ("--leader-elect", "--lease-namespace=test", "--lease-duration=6s")

        async def goes_on(program, name):
            obj = cluster.create(name, 5)
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while error := await retry(program, obj):  # renewed at most every 5 s
                require(asyncio.get_running_loop().time() < deadline, f"bind: {error}")
                await asyncio.sleep(0.1)
            cluster.play()
            cluster.api.faults = faults = [Fault("watch", "end", times=3)]
            for i in range(2):  # watches end with the next change
                cluster.api.put("nodes", dict(cluster.api.objects["nodes"][(None, f"n{i}")]))
            await program.settle()
            cluster.end(("test", name))
            await program.settle()
            cluster.api.faults = []
            return faults

        async with running(cluster, PATIENT, *elect, kubeconfig=kubeconfig) as program:
            await goes_on(program, "a")
            for old, new in zip(files, authority.sign("second", usage="clientAuth")):
                old.write_bytes(new.read_bytes())
            cluster.api.clients = {"second"}
            await goes_on(program, "b")
            cluster.api.strangers = set(cluster.api.connections)
            await goes_on(program, "c")
        await cluster.api.stop()


def tests():
    for title, (faults, may_fail) in BINDS.items():
        yield f"bind: {title}", bind_test(faults, may_fail)
    for title, faults in WATCHES.items():
        yield f"watch: {title}", watch_test(faults)
    for title, faults in LISTS.items():
        yield f"list: {title}", list_test(faults)
    for title, faults in SEALS.items():
        yield f"seal: {title}", seal_test(faults)
    for title, faults in LEASES.items():
        yield f"Lease: {title}", lease_test(faults)
    yield "Lease: a Binding that comes after a crash", late_binding_test()
    yield "Lease: two replicas of one name", same_identity_test()
    yield "list: pods that cannot be read", unreadable_test()
    yield "bind: etcd carries out what was answered with 409", open_conflict_test()
    yield "Lease: a group that is half when its leader is killed", half_group_test()
    yield "watch: compaction", compaction_test()
    yield "the API server restarts", restart_test()
    yield "a node rejects what it gets", black_hole_test()
    yield "the token is rotated", token_test()
    yield "the certificate is replaced", certificate_test()
    yield "the client's certificate is replaced", client_certificate_test()


AT_ONCE = 16  # they wait more than they compute


async def main(wanted):
    """How many have failed. They are told in the order in which they end."""
    failed = n = 0
    turn = asyncio.Semaphore(AT_ONCE)

    async def run(title, test):
        nonlocal failed, n
        wrong = ""
        async with turn:
            began = asyncio.get_running_loop().time()
            try:
                await test
            except Exception:  # pylint: disable=broad-except
                wrong = "# " + traceback.format_exc().replace("\n", "\n# ") + "\n"
            seconds = asyncio.get_running_loop().time() - began
        failed += wrong != ""
        n += 1
        print(f"{'not ' * (wrong != '')}ok {n} - {title}\n# {seconds:.1f} s\n{wrong}", end="", flush=True)

    runs = []
    for title, test in tests():
        if wanted in title:
            runs.append(run(title, test))
        else:
            test.close()
    await asyncio.gather(*runs)
    print(f"1..{n}")
    return failed


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1] if sys.argv[1:] else "")) > 0)
