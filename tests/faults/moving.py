# SPDX-License-Identifier: Apache-2.0
"""A cluster in which pods move: whoever is evicted ends, its controller makes a successor, a scheduler that heeds
what Nodes keep room for places it, and a kubelet runs it. Nothing of it is the program's."""

import asyncio
import json

from apiserver import ApiServer, Request  # noqa: F401 pylint: disable=unused-import
from cluster import ASSIGNED, IDX, PATIENCE, Cluster, run_pod, units_of
from program import pod

PLAN, STATUS = "gpuledger.io/plan", "gpuledger.io/plan-status"
GROUP = "pod-group.scheduling.sigs.k8s.io/name"  # a pod's label
MOVES = "gpuledger-moves"  # a ConfigMap


class Moving(Cluster):
    """Every node has one card. Pods named "web-…" have a controller."""

    def __init__(self, directory, **sizes):
        super().__init__(directory, [(1, size) for size in sizes.values()])
        self.shapes = {name: (1, size) for name, size in sizes.items()}
        self.api.evicted = self._evicted
        self.made, self.gone, self.moves, self.on_eviction = 0, [], [], None
        self.delay = 0.05  # seconds until who is evicted has ended
        self.stopped = False
        self.task = None

    async def start(self, identity=None):
        await super().start(identity)
        self.task = asyncio.create_task(self._live())

    async def stop(self):
        self.stopped = True
        await self.task
        await self.api.stop()

    # --- pods ------------------------------------------------------------------------------------

    def web(self, units, where, controller="web"):
        """A pod that runs there."""
        self.made += 1
        obj = pod(f"{controller}-{self.made}", units)
        obj["metadata"]["uid"] = f"uid-{controller}-{self.made}"
        obj["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": controller,
                                               "uid": f"uid-of-{controller}", "controller": True}]
        self.api.put("pods", obj)
        if where:
            self.place(obj, where)
        return obj

    def place(self, obj, where):
        key = (obj["metadata"]["namespace"], obj["metadata"]["name"])

        def change(each):
            each["spec"]["nodeName"] = where
            each["metadata"].setdefault("annotations", {}).update({
                IDX: "0", ASSIGNED: "false", "ALIYUN_COM_GPU_MEM_POD": str(units_of(obj)),
                "ALIYUN_COM_GPU_MEM_DEV": str(self.shapes[where][1]),
                "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767323045000000000"})
            run_pod(each)
            each["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        self.api.change("pods", key, change)

    def foreign(self, where):
        """A pod that another scheduler has bound, without a card: a finding of any audit."""
        obj = pod("foreign", 1)
        obj["spec"]["nodeName"] = where
        obj["status"]["phase"] = "Running"
        self.api.put("pods", obj)

    def where(self, name):
        obj = self.pods().get(("test", name))
        return obj and obj["spec"].get("nodeName")

    # --- those who live in it --------------------------------------------------------------------

    def _evicted(self, key):
        self.moves.append(key[1])
        self.gone.append((asyncio.get_running_loop().time() + self.delay, key))
        if self.on_eviction:
            self.on_eviction(len(self.moves))

    def rooms(self, where):
        text = self.api.objects["nodes"][(None, where)]["metadata"].get("annotations", {}).get(PLAN)
        return json.loads(text)["rooms"] if text else []

    def _free(self, where, obj):
        """Units that the pod may have there; rooms that are kept for it are its own."""
        used = sum(units_of(each) for each in self.pods().values() if each["spec"].get("nodeName") == where)
        owner = (obj["metadata"].get("ownerReferences") or [{}])[0].get("uid")
        group = obj["metadata"].get("labels", {}).get(GROUP)
        there = {each["metadata"]["uid"] for each in self.pods().values() if each["spec"].get("nodeName")}
        for room in self.rooms(where):
            own = (room.get("pod") == obj["metadata"]["uid"] or (owner and room.get("controller") == owner)
                   or (group and room.get("group") == group))
            if not own and room.get("pod") not in there:
                used += sum(share["memory"] for share in room["shares"])
        return self.shapes[where][1] - used

    def _schedule(self):
        closed = {key[1] for key, node in self.api.objects["nodes"].items() if node.get("spec", {}).get("unschedulable")}
        for obj in list(self.pods().values()):
            if obj["spec"].get("nodeName"):
                continue
            fits = [(self._free(where, obj), where) for where in self.shapes if where not in closed]
            fits = sorted(each for each in fits if each[0] >= units_of(obj))
            if fits:
                self.place(obj, fits[0][1])

    async def _live(self):
        while not self.stopped:
            now = asyncio.get_running_loop().time()
            for moment, key in list(self.gone):
                if moment > now:
                    continue
                obj = self.pods()[key]
                self.gone.remove((moment, key))
                self.api.delete("pods", key)
                if key[1].rsplit("-", 1)[0] in ("web", "db"):
                    self.web(units_of(obj), None, key[1].rsplit("-", 1)[0])
            self._schedule()
            await asyncio.sleep(0.02)

    async def until(self, condition, what, patience=PATIENCE):
        """What it answers, once that is something."""
        deadline = asyncio.get_running_loop().time() + patience
        while not (found := condition()):
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"never: {what() if callable(what) else what}")
            await asyncio.sleep(0.02)
        return found

    # --- plans that ConfigMaps order -------------------------------------------------------------

    def order(self, name="plan", namespace="default", label="run", **data):
        self.api.put("configmaps", {
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name, "labels": {PLAN: label},
                         "creationTimestamp": "2026-01-01T00:00:00Z"},
            "data": {key.replace("_", "-"): value for key, value in data.items()}})

    def status(self, name="plan", namespace="default"):
        """What has come of it; None: nothing yet."""
        text = self.api.objects["configmaps"][(namespace, name)]["metadata"].get("annotations", {}).get(STATUS)
        return text and json.loads(text)

    async def looks(self, n):
        """The program has listed the orders so many times more: it is through with all but the last list."""
        self.api.sent.clear()
        await self.until(lambda: n < sum(each.sort == "list" and each.resource == "configmaps" and
                                         PLAN in each.query.get("labelSelector", "") for each in self.api.sent),
                         f"{n} looks at the orders")

    def hour(self, namespace="default"):
        """Lines of what was evicted in the last hour."""
        return self.api.objects["configmaps"][(namespace, MOVES)]["data"]["moves"].splitlines()

    async def phase(self, *wanted, name="plan"):
        """The status, once it is in one of these."""
        return await self.until(lambda: (self.status(name) or {}).get("phase") in wanted and self.status(name),
                                lambda: f"{name} is {wanted}, but {self.status(name)}")

    # --- what is told ----------------------------------------------------------------------------

    def events(self, reason):
        """[(name of the object, note)], in order."""
        return [(event["regarding"]["name"], event["note"]) for event in self.api.objects["events"].values()
                if event["reason"] == reason]

    def marks(self):
        return [where for where in self.shapes if self.rooms(where)]
