#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the program says on the command line: help, errors, completion, the manual page."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from program import PROGRAM, SNAPSHOT, Server, environment, explain, run

# Of an API server that nobody asks for anything.
KUBECONFIG = json.dumps({
    "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    "users": [{"name": "x", "user": {}}],
    "current-context": "x",
})
COMMANDS = ["serve", "nodes", "pods", "top", "inspect", "explain", "fit", "audit", "resume", "cordon", "uncordon", "drain",
            "plan", "migrate", "completion", "man", "version", "help"]


def options_of(command):
    """The long names of a command's options."""
    return re.findall(r"^ +(?:-\w, )?--([a-z-]+)", explain(command).stdout, re.MULTILINE)


class Case(unittest.TestCase):
    def fails(self, code, message, *arguments, env=None):
        """The command ends with this code and one line on standard error."""
        result = run(*arguments, env=env)
        self.assertEqual(result.stderr, f"gpuledger: {message}\n")
        self.assertEqual((result.returncode, result.stdout), (code, ""))


class Help(Case):
    def test_every_command_is_listed_and_explained(self):
        overview = run("--help")
        self.assertEqual((overview.returncode, overview.stderr), (0, ""))
        for command in COMMANDS:
            self.assertRegex(overview.stdout, rf"(?m)^  {command} +\S")
            result = run(command, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(result.stdout.startswith(f"Usage: gpuledger {command} "))
            self.assertEqual(run(command, "-h").stdout, result.stdout)
            self.assertEqual(run("help", command).stdout, result.stdout)
        self.assertEqual(run("help").stdout, overview.stdout)
        self.assertEqual(run("-h").stdout, overview.stdout)

    def test_serve_explains_first_what_most_people_need(self):
        few, every = (re.findall(r"(?m)^ {2,6}(?:-h, )?--([a-z-]+)", run("serve", help_).stdout)
                      for help_ in ("--help", "--help-all"))
        self.assertEqual([name for name in every if name in few], few)
        self.assertLessEqual({"listen", "tls-cert", "policy", "kubeconfig", "leader-elect", "record", "config"}, set(few))
        self.assertLess(len(few), 25)
        self.assertGreater(len(every), 100)
        self.assertIn("'gpuledger serve --help-all' has all", run("serve", "--help").stdout)
        self.assertNotIn("--help-all' has all", run("serve", "--help-all").stdout)
        self.assertIn("\nEvictions:\n      --evictions-observe", run("serve", "--help-all").stdout)

    def test_lines_fit_a_terminal(self):
        for command in COMMANDS:
            for line in explain(command).stdout.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_defaults_and_variables_are_shown(self):
        text = explain("serve").stdout
        self.assertIn("default 25s; environment GPULEDGER_BIND_TIMEOUT", text)
        self.assertIn("GPULEDGER_LISTEN or PORT (the port only, of all", " ".join(text.split()))
        self.assertIn("spread: the emptiest card", text)

    def test_without_a_command(self):
        result = run()
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr, run("--help").stdout)

    def test_version(self):
        result = run("version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^gpuledger \d+\.\d+\.\d+")
        self.assertEqual(run("--version").stdout, result.stdout)

    def test_as_a_plugin_of_kubectl(self):
        with tempfile.TemporaryDirectory() as directory:
            plugin = pathlib.Path(directory) / "kubectl-gpuledger"
            plugin.symlink_to(PROGRAM)
            result = subprocess.run([plugin, "version"], capture_output=True, text=True, check=True)
        self.assertEqual(result.stdout, run("version").stdout)


class Errors(Case):
    def test_commands(self):
        self.fails(2, "unknown command 'serv', did you mean 'serve'?", "serv")
        self.fails(2, "unknown command 'ndoes', did you mean 'nodes'?", "ndoes")
        self.fails(2, "unknown command 'xyzzy'; 'gpuledger help' lists all", "xyzzy")
        self.fails(2, "unknown command ''; 'gpuledger help' lists all", "")
        self.fails(
            2, "there is no command 'x' to explain; 'gpuledger help' lists all", "help", "x"
        )
        self.fails(
            2,
            "'b' is one word too many; 'gpuledger nodes --help' says what it takes",
            "nodes", "a", "b",
        )

    def test_an_empty_word_is_no_node(self):
        for command, takes, *before in (("cordon", "NODE[/CARD] ..."), ("uncordon", "NODE[/CARD] ..."),
                                        ("drain", "NODE[/CARD] ...", "gpu-1"),
                                        ("switch", "[NODE [LABEL=VALUE]]"), ("nodes", "[NODE]"), ("resume", "NODE"),
                                        ("explain", "[pod NAMESPACE/NAME]"), ("top", "[namespaces|nodes|models]")):
            self.fails(2, f"'gpuledger {command}' was given an empty word; it takes {takes}. "
                          "Is a variable of a script not set?", command, *before, "")

    def test_options(self):
        self.fails(
            2,
            "unknown option '--bind-timout', did you mean '--bind-timeout'? See --help-all",
            "serve", "--bind-timout=3s",
        )
        self.fails(
            2,
            "option '--bind-timeout': '3' is not valid, expected a duration such as 500ms, 30s or "
            "1m30s, from 1s to 10m",
            "serve", "--bind-timeout", "3",
        )
        self.fails(
            2,
            "option '--output': 'xml' is not valid, expected table, wide, json, yaml, jsonpath= or name",
            "nodes", "-oxml",
        )
        self.fails(2, "unknown option '--listen'; --help lists all", "nodes", "--listen=x")

    def test_what_makes_no_sense_is_2(self):
        """Whatever the cluster: none is asked."""
        place = "'n/x': what follows the slash is no card's index"
        for message, *call in (
                (place, "cordon", "n/x"), (place, "uncordon", "m", "n/x"), (place, "drain", "n/x"),
                (f"option '--drain': {place}", "fit", "--drain=m,n/x"), ("option '--empty'", "plan", "--empty=n/x"),
                ("is not like LABEL=VALUE", "switch", "n", "bad"), ("jsonpath, character", "audit", "-ojsonpath={"),
                ("cannot read", "fit", "-f/nonexistent"), ("cannot read", "explain", "-f/nonexistent"),
                ("cannot read", "plan", "-f/nonexistent"), ("NAMESPACE/NAME", "plan", "a/b/c"),
                ("NAMESPACE/NAME", "explain", "a/b/c"), ("one word too many", "resume", "a", "b"),
                ("which node", "resume"), ("what is to fit", "fit"), ("what is the goal", "plan")):
            with self.subTest(call=call):
                result = run(*call, env={"KUBECONFIG": "/nonexistent", "GPULEDGER_SERVER": "http://127.0.0.1:1"})
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
                self.assertIn(message, result.stderr)

    def test_environment(self):
        self.fails(
            2,
            "environment variable 'GPULEDGER_POLICY': 'random' is not valid, expected binpack, "
            "spread, first-fit, strongest, oc or fgd",
            "serve", env={"GPULEDGER_POLICY": "random"},
        )
        self.fails(
            2,
            "environment variable 'PORT': 'tcp://10.0.0.1:80' is not valid, expected a port from "
            "0 to 65535",
            "serve", env={"PORT": "tcp://10.0.0.1:80"},
        )

    def test_file(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "gpuledger.yaml"
            for text, message in [
                ("polcy: spread\n", "unknown key 'polcy', did you mean 'policy'?"),
                (
                    "policy: [spread]\n",
                    "key 'policy': a list or mapping is not valid, expected binpack, spread, "
                    "first-fit, strongest, oc or fgd",
                ),
                ("policy: 'spread\n", None),
                ("policy: spread\n\tlisten: x\n", None),
            ]:
                file.write_text(text)
                result = run("serve", "--config", file)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertTrue(result.stderr.startswith(f"gpuledger: file '{file}': "))
                self.assertEqual(result.stderr.count("\n"), 1)
                if message:
                    self.assertEqual(result.stderr, f"gpuledger: file '{file}': {message}\n")
                else:
                    self.assertRegex(result.stderr, r": line \d+, column \d+: ")

    def test_no_cluster(self):
        result = run("serve", "--listen=127.0.0.1:0", env={"HOME": "/nonexistent"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("name one with --kubeconfig, or serve a saved one with --snapshot",
                      result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)
        result = run("serve", "--kubeconfig=/nonexistent/config")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr,
                         r"^gpuledger: option '--kubeconfig': .*/nonexistent/config")

    def test_leases_that_cannot_be(self):
        self.fails(
            2,
            "option '--leader-elect': a saved cluster (--snapshot) has no Leases; leave out one of "
            "the two",
            "serve", "--leader-elect", f"--snapshot={SNAPSHOT}",
            env={"GPULEDGER_LOG_LEVEL": "error"},
        )
        with tempfile.TemporaryDirectory() as directory:
            kubeconfig = pathlib.Path(directory) / "config"
            kubeconfig.write_text(KUBECONFIG)
            for option, message in (
                ("--lease-duration=3500ms",
                 "option '--lease-duration': a Lease counts in whole seconds; round it"),
                ("--lease-name=",
                 "options '--lease-name' and '--lease-namespace': neither may be empty"),
            ):
                self.fails(2, message, "serve", "--leader-elect", f"--kubeconfig={kubeconfig}",
                           "--listen=127.0.0.1:0", option, env={"GPULEDGER_LOG_LEVEL": "error"})

    def test_bad_snapshots(self):
        self.fails(
            2,
            "option '--snapshot': cannot read \"/nonexistent.json\": No such file or directory",
            "serve", "--snapshot=/nonexistent.json",
        )
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "snapshot.json"
            for text in ["[]", "{", "a: [b", '{"kind":"List","items":[{"kind":"Pod"}]}']:
                file.write_text(text)
                result = run("serve", "--snapshot", file, "--listen=127.0.0.1:0", "--ops-listen=off")
                self.assertEqual(result.returncode, 2, text)
                self.assertRegex(result.stderr, f"^gpuledger: option '--snapshot': .*{file}")
                self.assertEqual(result.stderr.count("\n"), 1, text)

    def test_a_port_that_is_taken(self):
        with Server() as server:
            address = server.scheduler.removeprefix("http://")
            result = run("serve", "--snapshot", SNAPSHOT, "--listen", address, "--ops-listen=off")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(
            result.stderr.splitlines()[-1],
            f"gpuledger: option '--listen': cannot listen on '{address}': Address already in use; "
            "give it an address of this machine and a free port",
        )

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = run("serve", "--help", stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(
            result.stderr,
            "gpuledger: standard output cannot be written: No space left on device\n",
        )

    def test_who_reads_no_further_gets_no_complaint(self):
        for arguments in (["nodes", "--snapshot", SNAPSHOT], ["man"]):
            read_end, write_end = os.pipe()
            os.close(read_end)
            with open(write_end, "w", encoding="utf-8") as pipe:
                result = run(*arguments, stdout=pipe)
            self.assertEqual((result.returncode, result.stderr), (-signal.SIGPIPE, ""), arguments)

    def test_two_clusters_are_one_too_many(self):
        for option in ("kubeconfig", "context"):
            for command in (["nodes"], ["audit"], ["explain", "ml/classifier"]):
                self.fails(2, f"option '--{option}': a saved cluster (--snapshot) is given as well; keep one of them",
                           *command, "--snapshot", SNAPSHOT, f"--{option}=x")

    def test_standard_input_is_a_file(self):
        pod = json.dumps({"kind": "Pod", "metadata": {"name": "p", "namespace": "ml"}, "spec": {"containers": [
            {"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": "3"}}}]}})
        for text, arguments in ((pod, ["explain", "-f", "-", "--snapshot", SNAPSHOT]),
                                (pod, ["fit", "-f-", "--replicas=1", "--snapshot", SNAPSHOT]),
                                (SNAPSHOT.read_text(), ["nodes", "--snapshot=-"])):
            result = subprocess.run([PROGRAM, *map(str, arguments)], env=environment(), input=text, text=True,
                                    capture_output=True, timeout=60, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
            self.assertIn("gpu-", result.stdout)


class PrintConfig(Case):
    def test_sources(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "gpuledger.yaml"
            file.write_text("policy: spread\nmax-body: 1MiB\nlog-level: warn\n")
            result = run(
                "serve", "--print-config", "--config", file, "--bind-timeout=9s",
                env={"PORT": "12345", "LOG_LEVEL": "101", "THREADNESS": "4"},
            )
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        values = dict(
            (match[1], (match[2].strip(), match[3]))
            for match in re.finditer(r"(?m)^([a-z-]+): (.*?) # (.*)$", result.stdout)
        )
        self.assertEqual(values["policy"], ('"spread"', f"file {file}"))
        self.assertEqual(values["max-body"], ('"1MiB"', f"file {file}"))
        self.assertEqual(values["log-level"], ('"debug"', "environment LOG_LEVEL"))
        self.assertEqual(values["listen"], ('"0.0.0.0:12345"', "environment PORT"))
        self.assertEqual(values["bind-timeout"], ('"9s"', "command line"))
        self.assertEqual(values["drain-timeout"], ('"20s"', "default"))
        settable = set(options_of("serve")) - {"help", "help-all", "print-config", "print-schema", "config"}
        self.assertEqual(set(values), settable)

    def test_it_can_be_read_again(self):
        first = run("serve", "--print-config", "--snapshot=a b", "--listen=[::1]:80")
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "gpuledger.yaml"
            file.write_text(first.stdout)
            second = run("serve", "--print-config", "--config", file)

        def values(result):
            return re.sub(r" +#.*", "", result.stdout)

        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertEqual(values(second), values(first))


class Completion(Case):
    def script(self, shell):
        result = run("completion", shell)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for command in COMMANDS:
            self.assertIn(command, result.stdout)
            for option in options_of(command):
                self.assertIn(option, result.stdout)
        return result.stdout

    def test_shells(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.script(shell)
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=script, text=True, check=True)
        self.fails(
            2, "'gpuledger completion' does not know 'tcsh'; it takes bash|zsh|fish", "completion", "tcsh"
        )
        self.fails(
            2, "for which shell? 'gpuledger completion bash', zsh or fish", "completion"
        )

    def complete(self, *words):
        """What bash offers for the last of these words."""
        quoted = " ".join(f"'{word}'" for word in words)
        driver = (
            f"{self.script('bash')}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n"
            f"_gpuledger gpuledger '{words[-1]}' '{words[-2]}'\n"
            'printf "%s\\n" "${COMPREPLY[@]}"\n'
        )
        result = subprocess.run(
            ["bash", "-c", driver], capture_output=True, text=True, check=True, cwd="/"
        )
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_bash_offers_what_fits(self):
        self.assertEqual(self.complete("gpuledger", "no"), ["nodes"])
        self.assertEqual(self.complete("gpuledger", "nodes", "--ou"), ["--output"])
        self.assertEqual(self.complete("gpuledger", "nodes", "-o", ""),
                         ["table", "wide", "json", "yaml", "jsonpath=", "name"])
        self.assertEqual(self.complete("gpuledger", "serve", "--policy", "sp"), ["spread"])
        self.assertEqual(self.complete("gpuledger", "serve", "--policy", "="),
                         ["binpack", "spread", "first-fit", "strongest", "oc", "fgd"])
        self.assertEqual(self.complete("gpuledger", "serve", "--policy", "=", "f"),
                         ["first-fit", "fgd"])
        self.assertEqual(self.complete("gpuledger", "serve", "--snapshot", "/et"), ["/etc"])
        self.assertEqual(self.complete("gpuledger", "completion", "z"), ["zsh"])
        self.assertEqual(self.complete("gpuledger", "help", "ser"), ["serve"])
        self.assertEqual(self.complete("gpuledger", "serve", "--bind-timeout", ""), [])


class Plugin(Case):
    """As kubectl calls what completes a plugin's words."""

    def offered(self, *words):
        with tempfile.TemporaryDirectory() as directory:
            name = pathlib.Path(directory) / "kubectl_complete-gpuledger"
            name.symlink_to(os.path.abspath(PROGRAM))
            result = subprocess.run([name, *words], capture_output=True, text=True, check=True)
        self.assertEqual(result.stderr, "")
        *candidates, directive = result.stdout.splitlines()
        return candidates, directive

    def test_it_offers_what_fits(self):
        for words, candidates, directive in (
            (["po"], ["pods"], ":4"),
            (["nodes", "--ou"], ["--output"], ":4"),
            (["nodes", "-o", ""], ["table", "wide", "json", "yaml", "jsonpath=", "name"], ":4"),
            (["nodes", "--output=w"], ["--output=wide"], ":4"),
            (["nodes", "--output", "j"], ["json", "jsonpath="], ":4"),
            (["nodes", "--snapshot", ""], [], ":0"),
            (["nodes", "--nothing=", ""], [], ":4"),
            (["nonsense", "--ou"], [], ":4"),
            (["help", "ser"], ["serve"], ":4"),
            (["completion", "z"], ["zsh"], ":4"),
            (["resume", ""], [], ":4"),
        ):
            with self.subTest(words):
                self.assertEqual(self.offered(*words), (candidates, directive))
        self.assertLess(set(COMMANDS), set(self.offered("")[0]))
        self.assertEqual(self.offered(), self.offered(""))


class Manual(Case):
    def test_every_option_is_in_it(self):
        page = run("man").stdout
        for command in COMMANDS:
            for option in options_of(command):
                self.assertIn("\\-\\-" + option.replace("-", "\\-") + "\\fR", page)
        self.assertNotIn("\n\n", page)

    def test_it_is_valid(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        result = subprocess.run(
            ["groff", "-man", "-ww", "-z"], input=run("man").stdout, capture_output=True, text=True,
            check=False,
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))


class Client(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.__exit__)

    def ask(self, *arguments):
        result = run(*arguments, "--server", self.server.operations)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_table(self):
        self.assertEqual(
            self.ask("nodes"),
            "NAME          CARDS (USED/TOTAL)           FREE        LARGEST FREE\n"
            "gpu-mib-0     8000/11178 0/11178 MiB       14356 MiB   11178 MiB\n"
            "gpu-mixed-0   0/10 5/20 GiB                25 GiB      15 GiB\n"
            "gpu-t4-0      12/15 13/15 GiB              5 GiB       3 GiB\n"
            "gpu-v100-0    24/31 16/31 0/31 0/31! GiB   53 GiB      31 GiB\n",
        )

    def test_one_node(self):
        lines = self.ask("nodes", "gpu-t4-0").splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[1].startswith("gpu-t4-0 "))

    def test_wide(self):
        line = self.ask("nodes", "gpu-t4-0", "-owide").splitlines()[1]
        self.assertRegex(line, r"^gpu-t4-0 +12/15 13/15 GiB +5 GiB +3 GiB +4 +0 GiB +0.00 GPU +gpushare$")

    def test_devices_by_count(self):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "namespace": "ml", "uid": "a"},
            "spec": {
                "nodeName": "whole-0",
                "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "3"}}}],
            },
            "status": {"phase": "Running"},
        }
        capacity = {"nvidia.com/gpu": "4", "nvidia.com/mig-1g.5gb": "7"}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "whole-0"},
            "status": {"capacity": capacity},
        }
        with tempfile.TemporaryDirectory() as directory:
            snapshot = pathlib.Path(directory) / "snapshot.json"
            snapshot.write_text(
                json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]})
            )
            with Server(snapshot=snapshot) as server:
                table = run("nodes", "-owide", "--server", server.operations).stdout
        self.assertRegex(
            table,
            r"whole-0 +3/4 nvidia.com/gpu, 0/7 nvidia.com/mig-1g.5gb +- +- +1 +0 GiB +0.00 GPU +nvidia\n$",
        )

    def test_json(self):
        document = json.loads(self.ask("nodes", "-o", "json"))
        self.assertEqual([n["name"] for n in document["nodes"]][0], "gpu-mib-0")
        self.assertEqual(json.loads(self.ask("inspect", "gpu-t4-0", "-o", "json"))["name"],
                         "gpu-t4-0")

    def test_inspect(self):
        text = self.ask("inspect", "gpu-t4-0")
        self.assertEqual(
            text,
            self.server.get("/api/v1/nodes/gpu-t4-0?output=table")[1],
        )
        self.assertIn("ml/recommender-0(6GiB)", text)

    def test_pods(self):
        self.assertEqual(
            self.ask("pods").splitlines()[:3],
            ["NAMESPACE   NAME                         NODE          CARDS   MEMORY     STATE",
             "ml          tiny-llm-0                   gpu-mib-0     0       8000 MiB   assigned",
             "ml          ocr-6b5c9d4f7-l8nqt          gpu-mixed-0   1       5 GiB      assigned"])
        self.assertRegex(self.ask("pods", "-owide").splitlines()[2], r" assigned +- +gpushare +[0-9a-f-]{36}$")
        pods = json.loads(self.ask("pods", "-ojson", "-n", "ml"))["pods"]
        self.assertEqual(len(pods), len(self.ask("pods").splitlines()) - 1)
        self.assertEqual((pods[0]["name"], pods[0]["shares"][0]["card"]), ("tiny-llm-0", 0))
        self.assertEqual(json.loads(self.ask("pods", "-ojson", "--namespace=other"))["pods"], [])
        self.assertEqual(len(self.ask("pods", "-n", "other").splitlines()), 1)

    def test_names_and_templates(self):
        names = ["gpu-mib-0", "gpu-mixed-0", "gpu-t4-0", "gpu-v100-0"]
        self.assertEqual(self.ask("nodes", "-oname").splitlines(), [f"node/{name}" for name in names])
        self.assertEqual(self.ask("nodes", "gpu-t4-0", "-o", "name"), "node/gpu-t4-0\n")
        self.assertEqual(self.ask("pods", "-n", "ml", "--output=name").splitlines()[0], "pod/ml/tiny-llm-0")
        self.assertEqual(self.ask("nodes", "-o", "jsonpath={.nodes[*].name}"), " ".join(names) + "\n")
        self.assertEqual(self.ask("explain", "ml/tiny-llm-0", "-ojsonpath={.name}"), "tiny-llm-0\n")
        self.fails(2, "option '--output': jsonpath, character 3: expected a key behind '.'",
                   "nodes", f"--snapshot={SNAPSHOT}", "-ojsonpath={..name}")
        self.fails(2, "option '--output': name is for nodes and pods; audit has no objects of its own",
                   "audit", "-oname")

    def test_documents_have_a_version(self):
        for call in (["nodes"], ["nodes", "gpu-t4-0"], ["pods"], ["top"], ["quotas"], ["audit"],
                     ["explain", "ml/tiny-llm-0"], ["fit", "--drain=gpu-t4-0"], ["drain", "gpu-t4-0"],
                     ["plan", "--empty=gpu-t4-0/0"], ["migrate", "--from=hami"]):
            with self.subTest(call=call):
                answer = run(*call, "--snapshot", SNAPSHOT, "-ojson").stdout
                self.assertEqual(next(iter(json.loads(answer).items())), ("apiVersion", "gpuledger.io/v1"))
                same = run(*call, "--snapshot", SNAPSHOT, "-oyaml").stdout
                self.assertEqual(same.splitlines()[0], 'apiVersion: gpuledger.io/v1')

    def test_rows_are_sorted(self):
        rows = [line.split()[0] for line in self.ask("nodes", "--sort-by=-free").splitlines()[1:]]
        self.assertEqual(rows, ["gpu-v100-0", "gpu-mixed-0", "gpu-mib-0", "gpu-t4-0"])
        self.fails(2, "option '--sort-by': there is no column 'size'; there are 'NAME', 'CARDS (USED/TOTAL)', "
                      "'FREE', 'LARGEST FREE'", "nodes", f"--snapshot={SNAPSHOT}", "--sort-by=size")
        self.fails(2, "option '--sort-by': it sorts the rows of a table, and --output asks for none",
                   "nodes", f"--snapshot={SNAPSHOT}", "--sort-by=name", "-ojson")
        self.fails(2, "option '--namespace': --all-namespaces is given as well; keep one of them",
                   "pods", f"--snapshot={SNAPSHOT}", "-A", "-n", "ml")
        self.assertEqual(self.ask("pods", "-A"), self.ask("pods"))

    def test_what_changes_is_watched(self):
        with Server() as server:
            watch = subprocess.Popen([PROGRAM, "nodes", "-w", "--server", server.operations], stdout=subprocess.PIPE,
                                     text=True, env=environment())
            try:
                first = [watch.stdout.readline() for _ in range(5)]
                self.assertTrue(first[0].startswith("NAME "))
                metadata = {"name": "fine-tuning", "namespace": "ml", "uid": "5c216aac-7a3d-4c1e-9b52-a100001ff5f4"}
                self.assertEqual(server.bind({"metadata": metadata}, "gpu-v100-0")["Error"], "")
                self.assertRegex(watch.stdout.readline(), r"^gpu-v100-0 ")
            finally:
                watch.terminate()
                watch.communicate()

    def test_a_cluster_alone_is_shown_alike(self):
        for words in (["nodes"], ["nodes", "gpu-t4-0", "-owide"], ["nodes", "-ojson"], ["pods"], ["pods", "-oyaml"],
                      ["inspect"], ["inspect", "gpu-t4-0"]):
            with self.subTest(words):
                result = run(*words, f"--snapshot={SNAPSHOT}")
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertEqual(result.stdout, self.ask(*words))
        for command in ("nodes", "pods", "inspect"):
            self.fails(2, "option '--server': a cluster is given as well; keep one of them", command,
                       f"--snapshot={SNAPSHOT}", "--server=http://127.0.0.1:1")
        self.fails(1, "node 'no such' is not known", "nodes", "no such", f"--snapshot={SNAPSHOT}")

    def test_resume(self):
        self.assertEqual(self.ask("resume", "gpu-t4-0"), "node gpu-t4-0 was not left out\n")
        self.assertEqual(json.loads(self.ask("resume", "gpu-t4-0", "-o", "json")),
                         {"apiVersion": "gpuledger.io/v1", "node": "gpu-t4-0", "resumed": False})
        self.fails(2, "which node? gpuledger resume NODE", "resume", "--server",
                   self.server.operations)
        self.fails(1, f"'{self.server.operations}/api/v1/nodes/no%20such/resume': status 404: node "
                      "'no such' is not known", "resume", "no such", "--server",
                   self.server.operations)

    def test_cordon(self):
        self.fails(2, "which node or card? gpuledger cordon NODE[/CARD]", "cordon")
        self.fails(2, "which node or card? gpuledger uncordon NODE[/CARD]", "uncordon")
        with tempfile.NamedTemporaryFile("w") as kubeconfig:
            kubeconfig.write(KUBECONFIG)
            kubeconfig.flush()
            for word, problem in (("n/x", "what follows the slash is no card's index, 0 to 255"),
                                  ("n/256", "what follows the slash is no card's index, 0 to 255"),
                                  ("/1", "the node's name is empty, expected NODE or NODE/CARD, such as gpu-1/0")):
                self.fails(2, f"'{word}': {problem}", "cordon", word, "--kubeconfig", kubeconfig.name)
            result = run("cordon", "n/1", "--kubeconfig", kubeconfig.name)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertRegex(result.stderr, "^gpuledger: node n: no connection to the API server")

    def test_drain(self):
        """A saved cluster: only who would go where."""
        here = f"--snapshot={SNAPSHOT}"
        self.fails(2, "which node or card? gpuledger drain NODE[/CARD]", "drain", here)
        self.fails(2, "option '--apply': a saved cluster has no pods to evict", "drain", "gpu-t4-0", here, "--apply")
        self.fails(1, "node 'nowhere' is not known", "drain", "nowhere/0", here)
        self.fails(1, "node 'gpu-t4-0' has no card 9, only 0 to 1", "drain", "gpu-t4-0/9", here)
        pods = {}
        for place in ("gpu-t4-0", "gpu-t4-0/0", "gpu-t4-0/1"):
            shown = json.loads(run("drain", place, here, "-o", "json").stdout)
            self.assertFalse(shown["applied"])
            pods[place] = {pod["name"] for pod in shown["pods"]}
            fit = json.loads(run("fit", "--drain", place, here, "-o", "json").stdout)
            self.assertEqual(pods[place], {pod["name"] for pod in fit["drained"]})
        held = {card: {pod["name"] for node in json.loads(run("nodes", here, "-o", "json").stdout)["nodes"]
                       for pod in node["pods"] for share in pod["shares"]
                       if node["name"] == "gpu-t4-0" and share["card"] == card} for card in (0, 1)}
        self.assertEqual((pods["gpu-t4-0/0"], pods["gpu-t4-0/1"]), (held[0], held[1]))
        self.assertEqual(pods["gpu-t4-0"], held[0] | held[1])
        self.assertTrue(held[0] and held[1])

    def test_the_server_may_come_from_the_environment(self):
        result = run("nodes", env={"GPULEDGER_SERVER": self.server.operations + "/"})
        self.assertEqual(result.stdout, self.ask("nodes"))

    def test_an_unknown_node(self):
        for command in ("nodes", "inspect"):
            self.fails(
                1,
                f"'{self.server.operations}/api/v1/nodes/no%20such%20node': status 404: node "
                "'no such node' is not known",
                command, "no such node", "--server", self.server.operations,
            )

    def test_somebody_else_answers(self):
        result = run("nodes", "--server", self.server.operations + "/version?")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("is not understood: field 'name'", result.stderr)

    def test_nobody_answers(self):
        result = run("nodes", "--server=http://127.0.0.1:1")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("'http://127.0.0.1:1/api/v1/nodes': ", result.stderr)
        self.assertIn("is 'gpuledger serve' running", result.stderr)

    def test_only_http(self):
        result = run("nodes", f"--server=file://{os.getcwd()}")
        self.assertEqual((result.returncode, result.stdout), (2, ""))


if __name__ == "__main__":
    unittest.main()
