# SPDX-License-Identifier: Apache-2.0
"""The shipped manifests against a real API server, and the roles they grant against real use."""

import http.client
import json
import os
import pathlib
import ssl
import subprocess
import tempfile

import yaml
from kubeapi import Client, wait_for
from world import MANIFESTS, SYSTEM, World, binaries, load_config, program

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "users": ["system:serviceaccount:kube-system:gpuledger"]},
        {"level": "None"},
    ],
}

# What the role system:public-info-viewer, which every cluster has, grants to everybody.
PUBLIC = {("/version", "get")}
# Of the key that stops evictions, which only what evicts reads: e2e_permissions takes this right away.
EVICTING = {("configmaps", "get")}

KUSTOMIZATIONS = sorted(
    str(path.parent.relative_to(MANIFESTS)) for path in MANIFESTS.rglob("kustomization.yaml")
)

def granted():
    """{(resource, verb)} of the shipped roles."""
    found = set()
    for document in yaml.safe_load_all((MANIFESTS / "base/rbac.yaml").read_text()):
        for rule in document.get("rules", []):
            found |= {(what, verb) for what in rule["resources"] for verb in rule["verbs"]}
    return found


def used(log):
    """({(resource, verb)}, {those that were refused}) by the API server's own audit log."""
    allowed, refused = set(), set()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        target = event.get("objectRef", {})
        what = target.get("resource", event["requestURI"])
        if target.get("subresource"):
            what += "/" + target["subresource"]
        code = event.get("responseStatus", {}).get("code", 0)
        (refused if code == 403 else allowed).add((what, event["verb"]))
    return allowed, refused


def await_use(log, what, verb):
    # The last line of the log may be incomplete.
    wait_for(lambda: (what, verb) in used(log)[0], 120, 0.5, f"{verb} {what}", ignore=(ValueError,))


def scenario_manifests(tap):
    """Every kustomization is accepted, and the role is what the program uses: no more, no less."""
    with tempfile.TemporaryDirectory() as folder:
        policy, log = pathlib.Path(folder) / "policy.json", pathlib.Path(folder) / "audit.log"
        policy.write_text(json.dumps(AUDIT_POLICY))
        arguments = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
        with World(tap, apiserver_args=arguments) as world:
            check_manifests(tap, world)
            world.start()
            world.node("n1", [10, 10])
            world.pod("a", 4)
            world.await_running(["a"])
            # Of a pod without GPU memory the extender knows nothing, so it has to read it.
            plain = world.pod("plain", scheduler="another")
            answer = bind_by_hand(world, plain)
            tap.equal(answer, {"Error": ""}, "a pod without GPU memory is bound")
            world.verify()
            # Nobody asks about a pod again for which there is room now, so it is woken.
            answer = filter_by_hand(world, world.pod("waits", 10, scheduler="another"))
            tap.equal(answer["NodeNames"], ["n1"], "there is a card of its own")
            world.pod("b", 8)
            world.await_running(["b"])
            answer = filter_by_hand(world, world.client.get("Pod", "waits"))
            tap.equal(answer["NodeNames"], [], "there is none any more")
            world.fleet.finish("b")
            await_use(log, "pods", "patch")
            # What others bind is said, and after a while said again.
            world.pod("stranger", 2, scheduler="another")
            world.client.bind("stranger", "n1")
            await_use(log, "events", "patch")
        allowed, refused = used(log)
        tap.equal(refused, set(), "no right is missing")
        tap.equal(granted() - allowed - EVICTING, set(), "no right is unused")
        others = allowed - granted() - PUBLIC
        tap.equal(others, set(), "nothing else is allowed by another role")


def bind_by_hand(world, pod):
    """The bind verb, as a scheduler calls it that sends every pod."""
    meta = pod["metadata"]
    body = {
        "PodName": meta["name"],
        "PodNamespace": meta["namespace"],
        "PodUID": meta["uid"],
        "Node": "n1",
    }
    client = Client(f"http://127.0.0.1:{world.port}", timeout=30)
    return client.request("POST", "/gpushare-scheduler/bind", body)


def filter_by_hand(world, pod):
    """The filter verb, as a scheduler calls it that knows one node."""
    client = Client(f"http://127.0.0.1:{world.port}", timeout=30)
    return client.request("POST", "/gpushare-scheduler/filter", {"Pod": pod, "NodeNames": ["n1"]})


def check_manifests(tap, world):
    for folder in KUSTOMIZATIONS:
        answer = world.kustomize(folder)
        tap.ok("Warning" not in answer.stderr, f"{folder}: accepted", answer.stderr)
    first = load_config(MANIFESTS / "scheduler/kube-scheduler.yaml")
    second = load_config(MANIFESTS / "second-scheduler/kube-scheduler.yaml")
    legacy = load_config(MANIFESTS / "legacy/scheduler-policy.json")
    for config in (first, second, legacy):
        for extender in config["extenders"]:
            extender.pop("urlPrefix")
            for file in ("caFile", "certFile", "keyFile"):
                extender["tlsConfig"].pop(file)
    tap.equal(first["extenders"], second["extenders"], "both schedulers call the extender alike")
    for extender, there in zip(legacy["extenders"], first["extenders"], strict=True):
        seconds = int(there.pop("httpTimeout").removesuffix("s"))
        tap.equal(extender.pop("httpTimeout"), seconds * 10**9, "the Policy counts in nanoseconds")
        tap.equal((extender.pop("enableHttps"), there.pop("enableHTTPS")), (True, True),
                  "and spells TLS in its own way")
    tap.equal(legacy["extenders"], first["extenders"], "all else is the same")


def shipped_arguments(folder):
    """The extender's arguments as the manifests have them but for the addresses, with the Secrets' files in a
    folder."""
    deployment = load_config(MANIFESTS / "base/deployment.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    files = {
        "/etc/gpuledger/tls/tls.crt": "gpuledger.crt",
        "/etc/gpuledger/tls/tls.key": "gpuledger.key",
        "/etc/gpuledger/tls/ca.crt": "ca.crt",
        "/etc/gpuledger/ops/token": "token",
    }
    arguments = []
    for argument in container["args"][1:]:
        option, equals, value = argument.partition("=")
        if option not in ("--listen", "--ops-listen"):
            arguments.append(option + equals + (str(folder / files[value]) if value in files else value))
    return arguments


def scenario_closed(tap):
    """As it is installed: kube-scheduler gets in by its certificate, nobody else does."""
    with World(tap) as world:
        folder = world.folder / "gpuledger-tls"
        secrets = subprocess.run([program(), "certs", f"--folder={folder}"], check=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        path = world.folder / "secrets.yaml"
        for _ in range(2):  # it may be repeated
            path.write_bytes(secrets.stdout)
            world.plane.kubectl("apply", "--server-side", "-f", path)
        names = {item["metadata"]["name"] for item in yaml.safe_load(secrets.stdout)["items"]}
        wanted = set()
        for name in ("base", "second-scheduler"):
            deployment = load_config(MANIFESTS / name / "deployment.yaml")
            wanted |= {volume["secret"]["secretName"]
                       for volume in deployment["spec"]["template"]["spec"]["volumes"]
                       if "secret" in volume}
        tap.equal(names, wanted, "the Secrets are those that the Deployments mount")

        node_folder = world.folder / "kubernetes"
        fetched = subprocess.run(
            [MANIFESTS / "scheduler/certificate", node_folder], check=True, capture_output=True,
            env={**os.environ, "KUBECTL": str(binaries("current") / "kubectl"),
                 "KUBECONFIG": str(world.plane.kubeconfig())})
        tap.equal(
            {key: (node_folder / key).read_text() for key in ("ca.crt", "tls.crt", "tls.key")},
            {key: (folder / file).read_text() for key, file in (
                ("ca.crt", "ca.crt"), ("tls.crt", "kube-scheduler.crt"),
                ("tls.key", "kube-scheduler.key"))}, "a control-plane node gets the files",)
        tap.ok(b"PRIVATE" not in fetched.stdout + fetched.stderr, "and nobody sees the key")

        world.extender_start(*shipped_arguments(folder), wait=False)
        world.scheduler_start(world.scheduler_config(certificates=node_folder))
        world.node("n1", [10, 10])
        world.pod("a", 4)
        world.await_running(["a"])
        tap.equal(world.card("a"), ("n1", 0), "kube-scheduler binds over TLS")

        victim = world.pod("victim", 4, scheduler="another")
        meta = victim["metadata"]
        body = json.dumps({"PodName": meta["name"], "PodNamespace": meta["namespace"],
                           "PodUID": meta["uid"], "Node": "n1"})
        trusting = ssl.create_default_context(cafile=folder / "ca.crt")
        for what, connection in (
            ("plain HTTP", http.client.HTTPConnection("127.0.0.1", world.port, timeout=30)),
            ("no certificate",
             http.client.HTTPSConnection("127.0.0.1", world.port, timeout=30, context=trusting)),
        ):
            try:
                connection.request("POST", "/gpushare-scheduler/bind", body, {"Content-Type": "application/json"})
                answer = connection.getresponse().read()
            except (OSError, http.client.HTTPException) as error:
                answer = error
            tap.ok(isinstance(answer, Exception), f"a forged bind is refused: {what}", answer)
        tap.equal(world.card("victim"), None, "the victim is not bound")

        def look(token=None):
            connection = http.client.HTTPSConnection("127.0.0.1", world.ops_port, timeout=30,
                                                     context=trusting)
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", "/api/v1/nodes", headers=headers)
            return connection.getresponse().status

        tap.equal(look(), 401, "nobody looks without the token")
        tap.equal(look((folder / "token").read_text()), 200, "with it they do")


def scenario_second_scheduler(tap):
    """The second scheduler, under its own service account, places pods that ask for it."""
    with World(tap) as world:
        world.kustomize("second-scheduler")
        world.extender_start()
        config = world.scheduler_config("second-scheduler/kube-scheduler.yaml")
        account = world.kubeconfig("gpuledger-scheduler")
        config["clientConnection"] = {"kubeconfig": str(account)}
        world.scheduler_start(config, "second")
        world.node("n1", [10, 10])
        world.pod("ours", 4, scheduler="gpuledger-scheduler")
        world.pod("others", 4)
        world.await_running(["ours"])
        tap.equal(world.card("ours"), ("n1", 0), "placed with its card")
        tap.equal(world.card("others"), None, "pods of other schedulers are left alone")
        log = world.plane.log("second").read_text()
        tap.ok("forbidden" not in log.lower(), "it was refused nothing", log)
        world.verify()


# What the gpushare extender's own manifest grants to it, as people have it installed; the one of
# 2019 lacks the ConfigMaps.
PEER = "gpushare-schd-extender"
PEER_RULES = [
    (["nodes"], ["get", "list", "watch"]),
    (["events"], ["create", "patch"]),
    (["pods"], ["update", "patch", "get", "list", "watch"]),
    (["bindings", "pods/binding"], ["create"]),
    (["configmaps"], ["get", "list", "watch"]),
]


def install_peer(world, rules):
    meta = {"name": PEER, "namespace": SYSTEM}
    rbac = "rbac.authorization.k8s.io"
    world.client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    world.client.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": PEER},
            "rules": [
                {"apiGroups": [""], "resources": resources, "verbs": verbs}
                for resources, verbs in rules
            ],
        }
    )
    world.client.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": PEER},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": PEER},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        }
    )


def drop_in(tap, rules):
    with World(tap) as world:
        install_peer(world, rules)
        environment = {
            "PORT": str(world.port),
            "LOG_LEVEL": "debug",
            "THREADNESS": "4",
            "KUBECONFIG": str(world.kubeconfig(PEER)),
            "GPULEDGER_OPS_LISTEN": f"127.0.0.1:{world.ops_port}",
            "GPULEDGER_SHUTDOWN_DELAY": "0s",
        }
        world.extender_start(env=environment, argv=[program(), "serve"])
        world.scheduler_start()
        world.node("n1", [15, 15], "aff8a23")
        for name in ("a", "b"):
            world.pod(name, 10)
            world.await_running([name])
        tap.equal([world.card(name)[1] for name in ("a", "b")], [0, 1], "placed")
        tap.equal(world.inspect()["nodes"][0]["usedGPU"], 20, "the old tool's view")
        world.verify()


def scenario_drop_in(tap):
    """Under the gpushare extender's manifest: its environment, its role, no flags."""
    drop_in(tap, PEER_RULES)


def scenario_drop_in_2019(tap):
    """The same under the role of the manifest of 2019, which grants no ConfigMaps."""
    drop_in(tap, PEER_RULES[:-1])
