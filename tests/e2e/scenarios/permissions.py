# SPDX-License-Identifier: Apache-2.0
"""Each right that the manifests grant is taken away, one after the other.

What is expected: the log names verb and resource, and so does the place where a user looks; what
does not need the right goes on; the ledger stays right; and all is well again, without a restart,
when the right is granted.
"""

import yaml
from kubeapi import wait_for
from scenarios.install import bind_by_hand, filter_by_hand
from world import ACCOUNT, MANIFESTS, RESOURCE_COUNT, SYSTEM, World, RESOURCE, node_object

PATIENCE_S = 150  # a refused feed is asked for again after at most a minute
USER = f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"
MANIFEST_FILES = ("base/rbac.yaml", "overlays/ha/lease.yaml")
KINDS = ("ClusterRole", "Role")
CARD = 10


def roles():
    """The roles that the manifests hold."""
    for name in MANIFEST_FILES:
        for document in yaml.safe_load_all((MANIFESTS / name).read_text()):
            if document["kind"] in KINDS:
                yield document


def granted():
    """[(API group, resource, verb)], as they stand there."""
    found = []
    for role in roles():
        for rule in role["rules"]:
            for resource in rule["resources"]:
                found += [(rule["apiGroups"][0], resource, verb) for verb in rule["verbs"]]
    return found


class Rights:
    """The roles of a running control plane, whole or without one right."""

    def __init__(self, world):
        self.client = world.client

    def _write(self, without=None):
        for role in roles():
            namespace = SYSTEM if role["kind"] == "Role" else None
            there = self.client.get(role["kind"], role["metadata"]["name"], namespace)
            there["rules"] = [
                {**rule, "verbs": left}
                for rule in role["rules"]
                if (left := [verb for verb in rule["verbs"] if without is None or not (
                    verb == without[2] and without[1] in rule["resources"])])
            ]
            self.client.update(there)

    def _allowed(self, right):
        """What the API server would say now."""
        group, resource, verb = right
        resource, _, subresource = resource.partition("/")
        review = self.client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": USER, "resourceAttributes": {
                "group": group, "resource": resource, "subresource": subresource, "verb": verb,
                "namespace": SYSTEM if resource in ("configmaps", "leases") else "",
                "name": NAMES.get((resource, verb), "")}},
        })
        return review["status"]["allowed"]

    def take(self, right):
        self._write(right)
        wait_for(lambda: not self._allowed(right), PATIENCE_S, 0.1, f"{right} is denied")

    def give_back(self, right):
        self._write()
        wait_for(lambda: self._allowed(right), PATIENCE_S, 0.1, f"{right} is granted")


# --- where a user looks ----------------------------------------------------------------------------


def counted(world, name, label):
    """A metric's cell, as text for people."""
    for line in world.ops("/metrics", raw=True).decode().splitlines():
        if line.startswith(name + "{") and label in line and not line.endswith(" 0"):
            return line
    return ""


def readyz(world, _):
    return world.ops("/readyz?verbose", raw=True).decode()


def unready(world, _):
    try:
        return "it is ready: " + readyz(world, _)
    except Exception as error:  # ApiError holds the answer's text
        return getattr(error, "body", b"").decode()


def bind_error(world, name):
    return bind_by_hand(world, world.client.get("Pod", name))["Error"]


def bind_unknown(world, name):
    """Of a pod without GPU memory nothing is kept, so it has to be read."""
    return bind_error(world, f"plain-{name}")


def metric(name, label):
    return lambda world, _: counted(world, name, label)


def wake(world, name):
    """A pod is refused, room appears, nobody asks again."""
    waits = world.pod(f"waits-{name}", CARD, scheduler="another")
    world.pod(f"big-{name}", CARD, scheduler="another")
    world.client.bind(f"big-{name}", "n1", annotations=annotations(CARD))
    wait_for(lambda: not filter_by_hand(world, waits)["NodeNames"], PATIENCE_S, 0.1, "refused")
    world.client.delete("Pod", f"big-{name}")
    wait_for(lambda: counted(world, "gpuledger_wakes_total", 'result="failed"'), PATIENCE_S, 0.2,
             "a pod that could not be woken")
    return counted(world, "gpuledger_wakes_total", 'result="failed"')


def annotations(units):
    return {"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": str(units),
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1"}


def stranger(world, name):
    """Bound by somebody else, without a card, which is said in an Event, and later again."""
    world.pod(f"stranger-{name}", 1, scheduler="another")
    world.client.bind(f"stranger-{name}", "n2")
    what = "gpuledger_pod_events_total"
    wait_for(lambda: counted(world, what, 'result="failed"'), PATIENCE_S, 0.5, "an Event refused")
    return counted(world, what, 'result="failed"')


def lease(world, _):
    what = "gpuledger_lease_failures_total"
    wait_for(lambda: counted(world, what, 'outcome="refused"'), PATIENCE_S, 0.2, "a Lease refused")
    return counted(world, what, 'outcome="refused"')


# Rights that are granted for one object only.
NAMES = {("configmaps", "get"): "gpuledger-evictions", ("leases", "get"): ACCOUNT, ("leases", "update"): ACCOUNT}

# Rights that are used only with these options.
OPTIONS = {
    ("configmaps", "get"): ["--gangs", "--gang-strict"],
    **{("leases", verb): ["--leader-elect"] for verb in ("get", "create", "update")},
}

# A row for every right: where a user sees it, what stands there besides the API server's words
# (None: those), and whether the program serves all the same.
LOOK = {
    ("nodes", "list"): (unready, None, False),
    ("pods", "list"): (unready, None, False),
    ("nodes", "watch"): (readyz, None, True),
    ("pods", "watch"): (readyz, None, True),
    ("configmaps", "get"): (readyz, None, True),
    ("configmaps", "list"): (readyz, None, True),
    ("configmaps", "watch"): (readyz, None, True),
    ("poddisruptionbudgets", "list"): (readyz, None, True),
    ("poddisruptionbudgets", "watch"): (readyz, None, True),
    ("pods", "get"): (bind_unknown, None, True),
    ("pods/binding", "create"): (bind_error, None, True),
    ("pods", "patch"): (wake, "gpuledger_wakes_total", True),
    ("events", "create"): (stranger, "gpuledger_pod_events_total", True),
    ("events", "patch"): (stranger, "gpuledger_pod_events_total", True),
    ("leases", "get"): (lease, "gpuledger_lease_failures_total", False),
    ("leases", "create"): (lease, "gpuledger_lease_failures_total", False),
    ("leases", "update"): (lease, "gpuledger_lease_failures_total", False),
}


def log_says(world, resource, verb):
    words = f'cannot {verb} resource "{resource}"'
    return words in world.extender.log.read_text().replace("\\", "")


def deny(tap, world, rights, right, name):
    _, resource, verb = right
    title = f"{verb} {resource}"
    look, words, serves = LOOK[(resource, verb)]
    world.extender.log.unlink(missing_ok=True)
    rights.take(right)
    world.extender_start(*OPTIONS.get((resource, verb), []), wait=False)
    world.extender.await_ready(lambda: alive(world))
    if serves:
        wait_for(world.ready, PATIENCE_S, 0.1, f"without {title} it serves")
    wait_for(lambda: (words or f'cannot {verb} resource "{resource}"') in look(world, name),
             PATIENCE_S, 0.5, f"{look.__name__} says that {title} is missing")
    tap.ok(True, f"{title}: a user sees it: {look.__name__}")
    wait_for(lambda: log_says(world, resource, verb), PATIENCE_S, 0.2, f"the log names {title}")
    tap.ok(True, f"{title}: the log names verb and resource")
    if serves:
        tap.ok(filter_by_hand(world, world.client.get("Pod", name))["NodeNames"] is not None,
               f"{title}: filter answers")
        wait_for(lambda: world.ledger() == world.cluster(), PATIENCE_S, 0.2, "the ledger is right")
        tap.ok(True, f"{title}: the ledger equals the cluster")
    if serves and resource != "pods/binding":
        tap.equal(bind_error(world, name), "", f"{title}: a pod is bound")
    rights.give_back(right)
    wait_for(world.ready, PATIENCE_S, 0.1, f"ready once {title} is granted")
    if resource == "pods/binding":
        tap.equal(bind_error(world, name), "", f"{title}: granted again, the pod is bound")
    wait_for(lambda: world.ledger() == world.cluster(), PATIENCE_S, 0.2, "the ledger is right")
    tap.ok(world.extender.pid() is not None, f"{title}: all is well once it is granted")
    world.extender_stop()


def alive(world):
    try:
        return world.ops("/livez", raw=True).strip() == b"ok"
    except OSError:
        return False


def scenario_permissions(tap):
    """Without any one of its rights the program says which, and goes on with the rest."""
    with World(tap, played=False) as world:
        world.kustomize("overlays/ha")
        rights = Rights(world)
        known = {right[1:] for right in granted()}
        tap.equal(known, set(LOOK), "every right of the manifests has its row")
        for name, cards in (("n1", 1), ("n2", 8)):
            capacity = {RESOURCE: CARD * cards, RESOURCE_COUNT: cards}
            world.client.create(node_object(name, capacity))
        for number, right in enumerate(dict.fromkeys(granted())):
            name = f"p{number}"
            world.pod(name, 1, scheduler="another")
            world.pod(f"plain-{name}", scheduler="another")
            deny(tap, world, rights, right, name)
            for left in world.client.items("Pod", "default"):
                world.client.delete("Pod", left["metadata"]["name"])
            world.client.delete("Lease", ACCOUNT, SYSTEM)
