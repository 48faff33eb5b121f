# SPDX-License-Identifier: Apache-2.0
"""overlays/guard on a real API server: a tenant who may do all that can be done to pods of his
namespace cannot write what a pod was given; schedulers and node sides can."""

import time

import yaml

from kubeapi import JSON_PATCH, ApiError, Client, wait_for
from scenarios.install import bind_by_hand, filter_by_hand
from world import MANIFESTS, RESOURCE, RESOURCE_COUNT, SYSTEM, World, node_object

TEAM = "team"

# What schedulers and node sides write, by who does: from the projects' sources, not from the program.
RECORDS = {
    "gpushare-device-plugin": [
        "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_POD",
        "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
        "scheduler.framework.gpushare.allocation", "scheduler.framework.gpushare.assigned",
    ],
    "gpu-manager": [
        "tencent.com/gpu-assigned", "tencent.com/predicate-time", "tencent.com/predicate-node",
        "tencent.com/predicate-gpu-idx-0", "tencent.com/predicate-gpu-idx-1",
    ],
    "hami-device-plugin": [
        "hami.io/bind-phase", "hami.io/bind-time", "hami.io/vgpu-node", "hami.io/vgpu-time",
        "hami.io/vgpu-devices-allocated", "hami.io/vgpu-devices-to-allocate",
        "hami.io/vgpu-mig-allocations", "4pd.io/vgpu-node", "4pd.io/vgpu-ids-new",
        "4pd.io/devices-to-allocate", "hami.sh/vgpu-devices-allocated",
    ],
    "volcano-device-plugin": [
        "volcano.sh/gpu-index", "volcano.sh/gpu-assigned", "volcano.sh/predicate-time",
        "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate", "volcano.sh/bind-phase",
    ],
    "elastic-gpu-agent": [
        "elasticgpu.io/assumed", "elasticgpu.io/container-c0",
        "nano-gpu.io/gpu-c0", "nano-gpu/container-c0",
    ],
    "gpuledger": ["gpuledger.io/gpu-replicas", "gpuledger.io/seal", "gpuledger.io/gang", "gpuledger.io/gang-min",
                  "scheduling.koordinator.sh/device-allocated", "run.ai/reserve_for_gpu_index"],
}
EVERYTHING = [{"apiGroups": [""], "verbs": ["*"],
               "resources": ["pods", "pods/status", "pods/binding", "bindings"]}]
LABELS = ["hami.io/vgpu-node", "elasticgpu.io/assumed", "runai-gpu-group", "runai-gpu-group/a"]

# What users write themselves.
WISHES = {
    "gpuledger.io/gpu-models": "T4", "gpuledger.io/policy": "spread",
    "hami.io/gpu-scheduler-policy": "binpack", "hami.io/node-scheduler-policy": "spread",
    "nvidia.com/use-gputype": "T4", "nvidia.com/vgpu-mode": "hami-core",
    "volcano.sh/vgpu-use-gpuuuid": "GPU-a", "tencent.com/vcuda-core-limit": "50",
    "gpuledger.io/gpu-memory": "1Gi", "example.com/other": "x",
}


def account(world, name, namespace, rules, bound_in):
    """A client with the token of a service account that may do that."""
    role = f"{name}-in-{bound_in}"
    for document in (
        {"apiVersion": "v1", "kind": "ServiceAccount",
         "metadata": {"name": name, "namespace": namespace}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
         "metadata": {"name": role, "namespace": bound_in}, "rules": rules},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
         "metadata": {"name": role, "namespace": bound_in},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
         "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]},
    ):
        world.plane.kubectl("apply", "-f", write(world, f"{role}.yaml", document))
    world.kubeconfig(name, namespace)
    token = (world.folder / f"{name}.token").read_text().strip()
    return Client(world.plane.url, token, str(world.plane.ca_file))


def write(world, name, document):
    path = world.folder / name
    path.write_text(yaml.safe_dump(document))
    return path


def pod(name, annotations=None, labels=None, node=None):
    spec = {"containers": [{"name": "c0", "image": "example.com/none:1",
                            "resources": {"limits": {RESOURCE: "2"}}}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": name, "namespace": TEAM, "annotations": annotations or {},
                         "labels": labels or {}}}


def denied(call):
    """What the API server says, if the guard was it; None if the call passed."""
    try:
        call()
    except ApiError as error:
        return str(error) if "gpuledger-guard" in str(error) else f"not the guard: {error}"
    return None


class Judge:
    def __init__(self, tap):
        self.tap = tap

    def refuses(self, call, what, names=""):
        said = denied(call)
        self.tap.ok(said is not None and not said.startswith("not the guard") and names in said,
                    f"denied: {what}", said or "it passed")

    def accepts(self, call, what):
        try:
            call()
        except ApiError as error:
            self.tap.ok(False, f"passes: {what}", str(error))
        else:
            self.tap.ok(True, f"passes: {what}")


def annotate(client, name, values, field="annotations", subresource=None):
    return client.patch("Pod", name, {"metadata": {field: values}}, namespace=TEAM,
                        subresource=subresource)


def binding(name, annotations):
    return {"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "namespace": TEAM, "annotations": annotations},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}


def check_tenant(judge, world, tenant, bound):
    keys = [key for keys in RECORDS.values() for key in keys]
    for key in keys:
        judge.refuses(lambda: tenant.create(pod("planted", {key: "0"})), f"create with {key}", key)
        judge.refuses(lambda: annotate(tenant, "free", {key: "0"}), f"set {key}", key)
    for key in LABELS:
        judge.refuses(lambda: tenant.create(pod("planted", labels={key: "x"})),
                      f"create with label {key}", key)
        judge.refuses(lambda: annotate(tenant, "free", {key: "x"}, "labels"), f"label {key}", key)
    key = "ALIYUN_COM_GPU_MEM_IDX"
    judge.refuses(lambda: annotate(tenant, bound, {key: "7"}), "change the card", key)
    judge.refuses(lambda: annotate(tenant, bound, {key: None}), "remove the card", key)
    judge.refuses(lambda: annotate(tenant, bound, {key: "7"}, subresource="status"),
                  "change the card through pods/status", key)
    mine = world.client.get("Pod", bound, TEAM)
    mine["metadata"]["annotations"] = {}
    judge.refuses(lambda: tenant.update(mine), "write the pod without its annotations", key)
    path = f"/api/v1/namespaces/{TEAM}/pods/free/binding"
    judge.refuses(lambda: tenant.request("POST", path, binding("free", {key: "0"})),
                  "a Binding with a card", key)
    path = f"/api/v1/namespaces/{TEAM}/bindings"
    judge.refuses(lambda: tenant.request("POST", path, binding("free", {key: "0"})),
                  "a Binding with a card, the old way", key)
    judge.refuses(lambda: tenant.create(pod("placed", node="n1")), "create with spec.nodeName",
                  "spec.nodeName")
    judge.accepts(lambda: tenant.create(pod("wishful", WISHES)), "users' own words at creation")
    judge.accepts(lambda: annotate(tenant, bound, WISHES), "users' own words later")
    judge.accepts(lambda: annotate(tenant, bound, {"app": "a"}, "labels"), "a label of his own")
    judge.accepts(lambda: say(tenant, bound, "Running"), "a status")


def say(client, name, phase):
    return client.patch("Pod", name, {"status": {"phase": phase}}, namespace=TEAM, subresource="status")


def check_ends(judge, world, tenant, bound):
    """Containers run on while the API server has it that the pod has ended: its card is not freed by a word."""
    for phase in ("Succeeded", "Failed"):
        judge.refuses(lambda: say(tenant, bound, phase), f"say that a pod has {phase}", "has ended")
    judge.refuses(lambda: tenant.request(
        "PATCH", f"/api/v1/namespaces/{TEAM}/pods/{bound}/status", [
            {"op": "replace", "path": "/status/phase", "value": "Failed"},
            {"op": "add", "path": "/metadata/labels", "value": {"app": "b"}}],
        content_type=JSON_PATCH), "say so beside a label", "has ended")
    tenant.create(pod("over"))
    say(world.client, "over", "Succeeded")
    judge.refuses(lambda: say(tenant, "over", "Running"), "say that one that has ended runs", "has ended")
    collector = account(world, "pod-garbage-collector", SYSTEM, EVERYTHING, TEAM)
    judge.accepts(lambda: say(collector, "free", "Failed"), "the controller that collects pods says so")
    judge.refuses(lambda: annotate(collector, "free", {"hami.io/vgpu-node": "x"}), "but it writes no card")


def check_bindings(judge, world, tenant):
    """A pod that its author binds has a node and no card, as with spec.nodeName."""
    for path in ("pods/unbound/binding", "bindings"):
        judge.refuses(lambda: tenant.request("POST", f"/api/v1/namespaces/{TEAM}/{path}", binding("unbound", {})),
                      f"a Binding without a card, to {path}", "may bind")
    scheduler = account(world, "gpuledger-scheduler", SYSTEM, EVERYTHING, TEAM)
    path = f"/api/v1/namespaces/{TEAM}/pods/unbound/binding"
    judge.refuses(lambda: scheduler.request("POST", path, binding("unbound", {"hami.io/vgpu-node": "n1"})),
                  "a card in the Binding of a scheduler that only binds", "hami.io/vgpu-node")
    judge.accepts(lambda: scheduler.request("POST", path, binding("unbound", {})), "its Binding without one")


def check_opt_outs(judge, world, tenant, bound):
    """What was lent to a pod stays lent: its author opts it out before it has a node, or not at all."""
    for key, value in (("karpenter.sh/do-not-disrupt", "true"), ("scheduling.koordinator.sh/eviction-cost", "1")):
        judge.accepts(lambda: annotate(tenant, "later", {key: value}), f"{key} of a pod without a node")
        judge.refuses(lambda: annotate(tenant, bound, {key: value}), f"{key} of one with a node", "out of evictions")
        judge.accepts(lambda: annotate(tenant, "later", {key: None}), f"{key} is taken away")
    judge.refuses(lambda: annotate(tenant, bound, {"karpenter.sh/do-not-disrupt": "true"}, subresource="status"),
                  "the same beside the status", "out of evictions")
    mover = account(world, "kubevirt-controller", "kubevirt", EVERYTHING, TEAM)
    key = "descheduler.alpha.kubernetes.io/eviction-in-progress"
    judge.accepts(lambda: annotate(mover, bound, {key: "kubevirt"}), "KubeVirt says that it moves")
    judge.refuses(lambda: annotate(tenant, bound, {key: "x"}), "change that", "out of evictions")
    judge.accepts(lambda: annotate(tenant, bound, {key: None}), "take that away")


def check_many(judge, tenant, bound):
    """Through more than 1,000 nobody goes: a tenant writes none of them."""
    many = {f"example.com/{number}": "" for number in range(1001)}
    wordy = pod("wordy")
    wordy["metadata"]["annotations"] = many
    judge.refuses(lambda: tenant.create(wordy), "a pod with more than 1,000 annotations", "more than 1000")
    judge.refuses(lambda: annotate(tenant, bound, many), "more than 1,000 annotations of a pod", "more than 1000")


def check_old_accounts(judge, world, tenant):
    """Of before there were these keys: nobody is refused who was not."""
    name = next(document["metadata"]["name"] for document in yaml.safe_load_all(
        (MANIFESTS / "overlays/guard/accounts.yaml").read_text()))
    world.client.patch("ConfigMap", name, {"data": {"schedulers": None, "enders": None, "opters": None}}, namespace=SYSTEM)
    wait_for(lambda: denied(lambda: say(tenant, "unbound", "Failed")) is None, what="the keys are gone")
    path = f"/api/v1/namespaces/{TEAM}/pods/later/binding"
    judge.accepts(lambda: tenant.request("POST", path, binding("later", {})), "a Binding where no key says who may")
    judge.accepts(lambda: annotate(tenant, "asking", {"karpenter.sh/do-not-disrupt": "true"}), "and an opt-out")


def stands(tenant):
    """Whether the API server has seen the guard, and the ConfigMap without which it denies everything."""
    now = str(time.monotonic_ns())
    return (denied(lambda: annotate(tenant, "free", {"volcano.sh/vgpu-time": now})) and
            not denied(lambda: annotate(tenant, "free", {"example.com/other": now})))


def scenario_guard(tap):
    """Each of a tenant's writes is denied, each of a scheduler's or node side's passes."""
    judge = Judge(tap)
    with World(tap, played=False) as world:
        capacity = {RESOURCE: 16, RESOURCE_COUNT: 2}
        world.client.create(node_object("n1", capacity))
        for name in (TEAM, "kubevirt"):
            world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        tenant = account(world, "tenant", TEAM, EVERYTHING, TEAM)
        for name in ("free", "asking", "unbound", "later"):
            tenant.create(pod(name))
        answer = world.kustomize("overlays/guard")
        tap.ok("Warning" not in answer.stderr, "overlays/guard: accepted", answer.stderr)
        wait_for(lambda: stands(tenant), 60, what="the guard is on its post")
        world.extender_start()
        asking = world.client.get("Pod", "asking", TEAM)
        wait_for(lambda: filter_by_hand(world, asking)["NodeNames"], what="room for the pod")
        said = bind_by_hand(world, asking)
        tap.equal(said.get("Error"), "", "the extender binds")
        check_tenant(judge, world, tenant, "asking")
        check_opt_outs(judge, world, tenant, "asking")
        check_many(judge, tenant, "asking")
        check_ends(judge, world, tenant, "asking")
        check_bindings(judge, world, tenant)
        for name, keys in RECORDS.items():
            client = account(world, name, SYSTEM, EVERYTHING, TEAM)
            for key in keys:
                judge.accepts(lambda: annotate(client, "asking", {key: "1"}), f"{name} writes {key}")
        check_old_accounts(judge, world, tenant)
        for document in yaml.safe_load_all((MANIFESTS / "overlays/guard/accounts.yaml").read_text()):
            world.client.delete("ConfigMap", document["metadata"]["name"], SYSTEM)
        judge.refuses(lambda: annotate(tenant, "free", {"hami.io/vgpu-node": "x"}),
                      "anything of that while the ConfigMap is gone")
