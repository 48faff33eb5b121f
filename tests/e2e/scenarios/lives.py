# SPDX-License-Identifier: Apache-2.0
"""What may befall a pod besides being bound, run and ended, by a tenant who may do to pods what the role
"edit" lets him and by administrators; then the same while the extender is down. What holds: nothing
of it frees a card that a container has, and what nobody knows any more is held, counted and said."""

from kubeapi import JSON_PATCH, STRATEGIC_PATCH, ApiError, Client, node_object, pod_object, wait_for
from scenarios.guard import TEAM, account
from scenarios.install import bind_by_hand, filter_by_hand
from scenarios.seal import CARD, SEAL, cards, keys, start
from world import RESOURCE, RESOURCE_COUNT, World

# As the cluster role "edit" has it, without what concerns no pod, and with what newer versions add.
EDIT = [
    {"apiGroups": [""], "resources": ["pods"],
     "verbs": ["create", "get", "list", "watch", "patch", "update", "delete"]},
    {"apiGroups": [""], "resources": ["pods/ephemeralcontainers", "pods/resize"],
     "verbs": ["get", "patch", "update"]},
]
NODE = {RESOURCE: 20, RESOURCE_COUNT: 2}


def container_of(units):
    return {"name": "c0", "image": "example.com/none:1",
            "resources": {"limits": {RESOURCE: str(units), "cpu": "200m"}}}


def object_of(name, units, **options):
    spec = {"containers": [container_of(units)], **options.pop("spec", {})}
    return pod_object(name, namespace=TEAM, spec=spec, **options)


class Tenant:
    def __init__(self, world):
        self.world, self.tap = world, world.tap
        self.client = account(world, "tenant", TEAM, EDIT, TEAM)

    def get(self, name):
        return self.world.client.get("Pod", name, TEAM)

    def annotate(self, name, words):
        self.client.patch("Pod", name, {"metadata": {"annotations": words}}, namespace=TEAM)

    def refused(self, call, what):
        """By the API server itself."""
        try:
            call()
        except ApiError as error:
            # 404: it knows no such thing yet, as 1.30 knows no resizes.
            self.tap.ok(error.code in (403, 404, 422), f"the API server refuses {what}", error)
        else:
            self.tap.ok(False, f"the API server refuses {what}", "it passed")

    def bind(self, pod):
        """Its words after that; {} if it is refused."""
        name = pod["metadata"]["name"]
        if filter_by_hand(self.world, pod)["NodeNames"] != ["n1"]:
            return {}
        if bind_by_hand(self.world, pod).get("Error"):
            return {}
        return self.get(name)["metadata"]["annotations"]

    def bound(self, name, units, **options):
        """The words of a pod that is bound and runs, as kubelet and the plugin have it."""
        pod = self.client.create(object_of(name, units, **options))
        words = {}

        def done():
            words.update(self.bind(pod))
            return bool(words)

        wait_for(done, what=f"{name} is bound")
        self.world.client.annotate("Pod", name, {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}, TEAM)
        self.world.client.set_pod_phase(name, "Running", TEAM)
        return self.get(name)["metadata"]["annotations"]

    def full(self, what, units=7):
        """Nobody else gets a card of which that much would have to be free."""
        pod = self.client.create({**object_of("unused", units), "metadata": {
            "generateName": "probe-", "namespace": TEAM}})
        self.tap.equal(self.bind(pod), {}, f"no card is given again: {what}")
        self.client.delete("Pod", pod["metadata"]["name"], TEAM)

    def on(self, name, card, what):
        wait_for(lambda: cards(self.world, name), what=f"the ledger has {name}")
        self.tap.equal(cards(self.world, name), [card], f"{name} is on its card: {what}")


def findings(world):
    """{pod: {causes}} of an audit that begins now."""
    client = Client(f"http://127.0.0.1:{world.ops_port}", timeout=10)
    run = client.request("POST", "/api/v1/audit", {})["run"]
    last = {}

    def done():
        last.update(client.request("GET", "/api/v1/audit"))
        return last["run"] >= run and not last["running"]

    wait_for(done, what="an audit")
    client.close()
    found = {}
    for row in last["report"]["rows"]:
        found.setdefault(row["name"], set()).add(row["cause"])
    return found


def check_specs(tenant, name):
    """What a container has cannot be changed, whichever way."""
    client = tenant.client
    path = f"/api/v1/namespaces/{TEAM}/pods/{name}"
    debug = {"name": "debug", "image": "example.com/none:1"}
    greedy = {**debug, "resources": {"limits": {RESOURCE: "8"}, "requests": {RESOURCE: "8"}}}

    def ephemeral(container):
        return client.request("PATCH", f"{path}/ephemeralcontainers",
                              {"spec": {"ephemeralContainers": [container]}},
                              content_type=STRATEGIC_PATCH)

    def resize(resources):
        return client.request("PATCH", f"{path}/resize", {"spec": {"containers": [
            {"name": "c0", "resources": {"limits": resources, "requests": resources}}]}},
            content_type=STRATEGIC_PATCH)

    def change(field, value):
        return client.request("PATCH", path, [
            {"op": "replace", "path": f"/spec/containers/0/{field}", "value": value}],
            content_type=JSON_PATCH)

    tenant.refused(lambda: ephemeral(greedy), "devices for an ephemeral container")
    ephemeral(debug)
    tenant.refused(lambda: ephemeral({**debug, "name": "c0"}), "a second container of a name")
    for amount in ("1", "20"):
        tenant.refused(lambda: resize({RESOURCE: amount, "cpu": "200m"}),
                       f"a resize to {amount} of the devices")
    tenant.refused(lambda: change("name", "c1"), "another name of a container")
    tenant.refused(lambda: change("resources", {"limits": {RESOURCE: "1"}, "requests": {RESOURCE: "1"}}),
                   "other amounts of a pod")
    tenant.refused(lambda: client.create(object_of("double", 0, spec={
        "containers": [container_of(1), container_of(1)]})),
        "a pod with two containers of one name")
    try:
        resize({RESOURCE: "7", "cpu": "100m"})
        tenant.tap.ok(True, "a resize of cpu passes")
    except ApiError as error:
        if error.code != 404:
            raise


def check_kept(tenant, other):
    """A deleted pod that a finalizer keeps."""
    world, tap = tenant.world, tenant.tap
    words = tenant.bound("kept", 7, labels={"app": "kept"})
    card = int(words[CARD])
    tenant.client.patch("Pod", "kept", {"metadata": {"finalizers": ["example.com/kept"]}},
                        namespace=TEAM)
    tenant.client.delete("Pod", "kept", TEAM, grace_s=1)
    tap.ok("deletionTimestamp" in tenant.get("kept")["metadata"], "kept is being deleted")
    tenant.annotate("kept", {CARD: other})
    tenant.on("kept", card, "deleted, kept by a finalizer, and edited")
    tenant.full("kept by a finalizer")
    return card


def scenario_lives(tap):
    """Ephemeral containers, resizes, twins, mirrors, finalizers, spec.nodeName: no card is freed."""
    with World(tap, played=False) as world:
        world.client.create(node_object("n1", NODE))
        world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        tenant = Tenant(world)
        start(world)
        first = tenant.bound("first", 7)
        card = int(first[CARD])
        check_specs(tenant, "first")
        tenant.on("first", card, "after ephemeral containers and resizes")
        other = check_kept(tenant, first[CARD])
        tap.ok(other != card, "on the other card")

        # The next of its name, with all that the last one said, while that is kept.
        twins = [tenant.client.create({**object_of("twin", 7), "metadata": {
            "generateName": "twin-", "namespace": TEAM, "annotations": first}}) for _ in range(2)]
        for pod in twins:
            tap.equal(tenant.bind(pod), {}, f"{pod['metadata']['name']} gets no card for copied words")
        world.client.set_pod_phase("kept", "Failed", TEAM)
        wait_for(lambda: tenant.bind(twins[0]), what="a place for one twin")
        name = twins[0]["metadata"]["name"]
        tap.equal(tenant.get(name)["metadata"]["annotations"][CARD], str(other),
                  "when the kept pod has ended one twin has its card")
        tap.equal(tenant.bind(twins[1]), {}, "and the other none")
        tenant.annotate("kept", {CARD: str(card)})
        tenant.on(name, other, "beside edits of who has ended")

        # kubelet's mirror of a static pod, and a pod of the tenant's that says it is one.
        for who, pod in (("kubelet", "static"), ("tenant", "mirror")):
            client = world.client if who == "kubelet" else tenant.client
            client.create(object_of(pod, 2, spec={"nodeName": "n1"},
                                    annotations={"kubernetes.io/config.mirror": "0123"}))
        tenant.client.create(object_of("planted", 2, spec={"nodeName": "n1"}, annotations=first))
        wait_for(lambda: {"static", "mirror", "planted"} <= findings(world).keys()
                 | {pod["name"] for pod in world.ops("/api/v1/nodes")["nodes"][0]["pods"]}, 60, 2,
                 what="they are counted or named")
        said = findings(world)
        for name in ("static", "mirror"):
            tap.equal(said.get(name), {"foreign"}, f"{name}, which has no card, is named")
        tap.equal((cards(world, "planted"), said.get("planted")), ([card], {"annotation_edited"}),
                  "planted is on the card that it names, with what it asks for, and not what it says")
        tenant.full("beside pods with spec.nodeName")


def scenario_lives_down(tap):
    """The same while the extender is down: seals tell, and what they do not tell is held and said."""
    with World(tap, played=False) as world:
        world.client.create(node_object("n1", NODE))
        world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        tenant = Tenant(world)
        start(world)
        first = tenant.bound("first", 7)
        card = int(first[CARD])
        other = check_kept(tenant, first[CARD])
        wait_for(lambda: "adopted" in keys(world), what="the date of adoption in the Secret")

        world.extender_stop()
        tenant.annotate("first", {CARD: str(other), SEAL: tenant.get("kept")["metadata"]["annotations"][SEAL]})
        tenant.annotate("kept", {key: None for key in first if key != SEAL})
        world.client.delete("Node", "n1")
        world.client.create(node_object("n1", NODE))
        tenant.client.create(object_of("placed", 1, spec={"nodeName": "n1"}, annotations=first))
        start(world)
        tenant.on("kept", other, "its seal is left, of all its words")
        tap.equal(cards(world, "first"), [None], "with the seal of another: on every card")
        tap.equal(cards(world, "placed"), [None], "with spec.nodeName and copied words: on every card")
        said = findings(world)
        for name in ("first", "placed"):
            tap.equal(said.get(name), {"unsealed"}, f"{name} is a finding of the audit, and no other")
        tap.ok(any(world.client.events(TEAM)), "and there are Events")
        tenant.full("nobody knows where they are", 4)

        tenant.annotate("first", first)
        wait_for(lambda: cards(world, "first") == [card], what="its own words")
        tap.ok(True, "its own seal is believed again")
        world.client.set_pod_phase("kept", "Failed", TEAM)
        words = tenant.bound("next", 6)
        tap.equal(words[CARD], str(other), "what has ended is free")
