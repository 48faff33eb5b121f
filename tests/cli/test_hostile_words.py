#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tenants, nodes and callers write steers nobody's terminal, through whichever command it comes."""

import json
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from program import PATIENCE, PROGRAM, Server, environment, listing, node, pod, run

# Colours, the title of a window, a bell, another line, text from right to left, ends of lines and paragraphs,
# one-byte controls, and what is no UTF-8.
HOSTILE = "\x1b[31mX\x1b]0;pwn\x07\r\nlevel=error msg=FORGED\n\u202e\u2066\u061c\u200f\u2028\u2029\x7f\x9b31m\u0085"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
FORGED = re.compile(r"(?m)^\W*level=error msg=FORGED")

KEYS = ["gpuledger.io/policy", "gpuledger.io/gpu-memory-min", "gpuledger.io/gpu-models", "nvidia.com/use-gputype",
        "nvidia.com/nouse-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/vgpu-mode", "gpuledger.io/gang",
        "gpuledger.io/plan", "gpuledger.io/seal", "ALIYUN_COM_GPU_MEM_IDX", "hami.io/vgpu-devices-allocated",
        "tencent.com/predicate-gpu-idx-0", "volcano.sh/gpu-index", "scheduling.koordinator.sh/device-allocated"]
NODE_KEYS = ["hami.io/node-nvidia-register", "hami.io/node-handshake", "gpuledger.io/policy", "gpuledger.io/plan",
             "gpuledger.io/reclaim", "gpuledger.io/cordoned", "gpuledger.io/switch", "gpuledger.io/seal"]


def words(keys):
    return dict.fromkeys(keys, HOSTILE)


def hostile_cluster():
    """Pods that wait, run and are named badly, on nodes that say what they should not."""
    bad = node("n1", 2, 8)
    bad["metadata"].update(annotations=words(NODE_KEYS), labels={"pool": HOSTILE, "nvidia.com/gpu.product": HOSTILE})
    worse = node(f"n{HOSTILE}", 2, 8)
    pods = [pod("sound", 2), pod("large", 99), pod("cut", 2, metadata={"annotations": words(KEYS)}),
            pod(f"p{HOSTILE}", 2), pod("selects", 2, spec={"nodeSelector": {"pool": HOSTILE}}),
            pod("runs", 3, metadata={"annotations": words(KEYS)}, spec={"nodeName": "n1"}, status={"phase": "Running"}),
            pod("there", 3, spec={"nodeName": f"n{HOSTILE}"}, status={"phase": "Running"})]
    # Each key by itself, since the first that is not understood is all that is said.
    pods += [pod(f"key-{i}", 2, metadata={"annotations": {key: HOSTILE}}) for i, key in enumerate(KEYS)]
    hami = pod("hami", 0)
    hami["metadata"]["annotations"] = words(KEYS)
    hami["spec"]["containers"][0].update(name=f"c{HOSTILE}", resources={"limits": {
        "nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"}})
    pods.append(hami)
    return [bad, worse, node("n2", 2, 8), quota('{"gpuledger.io/gpus": "1"}'), *pods]


def quota(most):
    return {"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": f"q{HOSTILE}", "namespace": "test", "uid": "q",
                         "annotations": {"gpuledger.io/min": most, "gpuledger.io/max": most}},
            "spec": {"hard": {"requests.aliyun.com/gpu-mem": "4"}}}


# What each command is asked: a list of calls; "{cluster}" is the saved cluster's place in whichever form.
ASKED = {
    "nodes": [[], ["-o", "wide"], ["-o", "name"], ["-o", "json"], ["-o", "yaml"],
              ["-o", "jsonpath={.nodes[*].name}"], ["--sort-by", HOSTILE], ["-l", HOSTILE], [HOSTILE]],
    "pods": [[], ["-A"], ["-A", "-o", "wide"], ["-A", "-o", "json"], ["-A", "-o", "name"], ["-n", HOSTILE]],
    "quotas": [["--hami-resource-quotas"], ["--elastic-quotas"], ["-o", "json"], [HOSTILE]],
    "top": [[], ["nodes"], ["models"], [HOSTILE], ["-o", "json"]],
    "inspect": [[], [HOSTILE], ["n1"], [f"n{HOSTILE}"]],
    "explain": [["pod", f"test/{name}", *more] for name in
                ("sound", "large", "cut", "runs", "there", "selects", "hami", f"p{HOSTILE}", HOSTILE,
                 *(f"key-{i}" for i in range(len(KEYS)))) for more in ([], ["-o", "json"], ["-o", "wide"])],
    "fit": [["-f", "{manifest}"], ["-f", "{hostile}"], ["-f", "{manifest}", "-o", "json"], ["--drain", "n1"],
            ["--drain", HOSTILE], ["-f", f"/{HOSTILE}"]],
    "audit": [[], ["-o", "json"], ["-o", "yaml"]],
    "resume": [["n1"], [HOSTILE]],
    "cordon": [["n1"], [f"{HOSTILE}/0"]],
    "uncordon": [[HOSTILE]],
    "switch": [[], ["n1"], [HOSTILE], ["n1", f"{HOSTILE}=x"]],
    "drain": [["n1"], [f"n{HOSTILE}"], [HOSTILE], ["n1", "-o", "json"]],
    "plan": [["test/large"], ["test/cut"], [f"test/{HOSTILE}"], ["--empty", "n1/0"], ["--empty", HOSTILE],
             ["--waiting", "0s"], ["test/sound", "-o", "json"]],
    "migrate": [["--from", "hami"], ["--from", HOSTILE], []],
    "replay": [["{record}"], [HOSTILE]],
    "simulate": [[], ["--policies", HOSTILE], ["--trace", f"/{HOSTILE}"], ["--trace", "{hostile}"], ["-o", "json"]],
    "certs": [["--hosts", HOSTILE], ["--folder", f"/dev/null/{HOSTILE}"], [HOSTILE]],
    "dialects": [[HOSTILE]], "guard": [[HOSTILE]], "completion": [[HOSTILE]], "man": [[HOSTILE]],
    "version": [[HOSTILE]], "help": [[HOSTILE]],
    # A server that would start finds its port taken, and so ends.
    "serve": [["--snapshot", "{broken}", "--listen", "{taken}"], ["--print-config", "--policy", HOSTILE],
              ["--config", "{hostile}"], ["--listen", HOSTILE], ["--print-config", "--tls-client-names", HOSTILE],
              ["--snapshot", f"/{HOSTILE}", "--listen", "{taken}"]],
}


class Words(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        place = pathlib.Path(cls.folder.name)
        cls.places = {name: str(place / name) for name in ("cluster", "manifest", "hostile", "broken", "record")}
        objects = hostile_cluster()
        pathlib.Path(cls.places["cluster"]).write_text(listing(*objects))
        pathlib.Path(cls.places["manifest"]).write_text(json.dumps(pod("new", 2)))
        pathlib.Path(cls.places["hostile"]).write_text(
            json.dumps(pod(f"x{HOSTILE}", 2, metadata={"annotations": words(KEYS)})))
        pathlib.Path(cls.places["broken"]).write_text(listing(quota(HOSTILE)))
        cls.server = Server("--record", cls.places["record"], snapshot=cls.places["cluster"])
        cls.places["taken"] = cls.server.scheduler.removeprefix("http://")
        for one in objects:
            if one["kind"] == "Pod" and one["status"]["phase"] == "Pending":
                cls.server.filter(one, ["n1", "n2", f"n{HOSTILE}"])
                cls.server.bind(one, "n1")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def printed(self, *arguments):
        arguments = [self.places.get(one.strip("{}"), one) if one.startswith("{") else one for one in arguments]
        done = subprocess.run([PROGRAM, *arguments], env=environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=4 * PATIENCE, check=False)
        for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
            text = text.decode("utf-8")  # all that is printed is text
            found = STEERS.search(text)
            self.assertIsNone(found, f"{name}: {text[max(found.start() - 200, 0):found.end() + 50]!r}"
                              if found else "")
            self.assertNotRegex(text, FORGED, name)
        return done

    def test_every_command(self):
        listed = re.findall(r"(?m)^  ([a-z]+)  +[A-Z]", run("help").stdout)
        self.assertEqual(sorted(listed), sorted(ASKED), "each command is asked")
        for command, calls in ASKED.items():
            for call in calls:
                for where in ([f"--snapshot={self.places['cluster']}"], [f"--server={self.server.operations}"], []):
                    with self.subTest(command=command, call=call, where=where):
                        self.printed(command, *call, *where)

    def test_what_is_said_of_commands_and_options(self):
        for call in ([HOSTILE], [f"--{HOSTILE}"], ["nodes", f"--{HOSTILE}"], ["nodes", "-o", HOSTILE],
                     ["serve", f"--policy={HOSTILE}"]):
            with self.subTest(call=call):
                self.assertEqual(self.printed(*call).returncode, 2)

    def test_values_are_kept_in_documents(self):
        name = f"n{HOSTILE}"
        for output in ("json", "yaml"):
            text = self.printed("nodes", "-o", output, f"--snapshot={self.places['cluster']}").stdout.decode()
            self.assertIn(json.dumps(name)[1:-1], re.sub(r"\\u[0-9A-Fa-f]{4}", lambda m: m[0].lower(), text))
        nodes = json.loads(self.printed("nodes", "-o", "json", f"--snapshot={self.places['cluster']}").stdout)
        self.assertIn(name, [one["name"] for one in nodes["nodes"]])

    def test_log(self):
        for form in ("logfmt", "json"):
            with Server(f"--log-format={form}", "--log-level=debug", snapshot=self.places["cluster"]) as server:
                for one in hostile_cluster():
                    if one["kind"] == "Pod" and one["status"]["phase"] == "Pending":
                        server.filter(one, ["n1", f"n{HOSTILE}"])
                        server.bind(one, f"n{HOSTILE}")
                server.signal(signal.SIGINT)
                server.exit_code()
                for line in server.log:
                    self.assertNotRegex(line, STEERS)
                    self.assertNotRegex(line, FORGED)


if __name__ == "__main__":
    unittest.main()
