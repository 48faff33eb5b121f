#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What "top" prints, and when tables have colours."""

import json
import os
import pathlib
import pty
import re
import select
import subprocess
import tempfile
import unittest

from program import PATIENCE, PROGRAM, ROOT, Server, environment, run

CLUSTER = ROOT / "examples" / "wall" / "cluster.json"
ESCAPE = "\x1b["


def top(*arguments):
    result = run("top", "--snapshot", CLUSTER, *arguments)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return result.stdout


def on_a_terminal(*arguments, until=lambda text: False, **variables):
    """What the command writes to a terminal, until it ends or this is enough."""
    ours, theirs = pty.openpty()
    env = {**environment(), "TERM": "xterm", "NO_COLOR": "", **variables}
    text = b""
    with subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=theirs, stdout=theirs, env=env) as process:
        os.close(theirs)
        while not until(text.decode(errors="ignore")) and select.select([ours], [], [], PATIENCE)[0]:
            try:
                text += os.read(ours, 1 << 16)
            except OSError:  # it has ended
                break
        process.kill()
    os.close(ours)
    return text.decode()


class Top(unittest.TestCase):
    def test_the_cluster_comes_first_then_rows(self):
        summary, rows = top().split("\n\n")
        cluster = json.loads(top("-o", "json"))["cluster"]
        self.assertIn(f"{cluster['gpuThousandths'] / 1000:.2f} ", summary)
        self.assertIn(f"{cluster['waiting']}, {cluster['oldestWaiting']} since", summary)
        heads = [line.split()[0] for line in rows.splitlines()]
        self.assertEqual(heads[:3], ["NAMESPACE", "training", "serving"])

    def test_a_bar_has_a_letter_for_each_part(self):
        document = json.loads(top("nodes", "-o", "json"))
        lines = {line.split()[0]: line for line in top("nodes").splitlines() if "[" in line and not line.startswith("[")}
        self.assertEqual(len(lines), len(document["rows"]))
        uneven = 0
        for row in document["rows"]:
            percent = 100 * row["usedGpuThousandths"] / row["gpuThousandths"]
            uneven += percent % 1 >= 0.5
            self.assertIn(f"] {int(percent + 0.5)} %", lines[row["name"]])
            [bar] = re.findall(r"\[([^\]]*)\]", lines[row["name"]])
            self.assertEqual(len(bar), 20)
            parts = {"#": "usedGpuThousandths", ".": "usableGpuThousandths", "~": "uselessGpuThousandths",
                     "x": "outOfServiceGpuThousandths"}
            for letter, key in parts.items():
                wanted = 20 * row[key] / row["gpuThousandths"]
                self.assertLessEqual(abs(bar.count(letter) - wanted), 1, (row, bar))
        self.assertGreater(uneven, 0)

    def test_rows_are_sorted_as_asked(self):
        rows = top("models", "--sort-by", "gpus").split("\n\n")[1].splitlines()[1:]
        sizes = [float(re.search(r" (\d+\.\d\d) ", row).group(1)) for row in rows]
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreater(len(sizes), 3)

    def test_a_running_extender_says_the_same(self):
        with Server(snapshot=CLUSTER) as server:
            for by in ("namespaces", "nodes", "models"):
                asked = run("top", by, "--server", server.address("operations"))
                self.assertEqual((asked.returncode, asked.stdout), (0, top(by)))

    def test_what_it_does_not_take(self):
        result = run("top", "pods", "--snapshot", CLUSTER)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("[namespaces|nodes|models]", result.stderr)
        result = run("top", "-o", "name", "--snapshot", CLUSTER)
        self.assertEqual(result.returncode, 2)

    def test_watched_on_a_terminal_it_is_drawn_anew(self):
        text = on_a_terminal("top", "-w", "--snapshot", CLUSTER, until=lambda text: text.count("training") == 2)
        self.assertEqual(text.count("\x1b[H\x1b[2J"), 2, text)
        self.assertEqual(text.count("training"), 2)

    def test_watched_into_a_file_nothing_is_wiped(self):
        with subprocess.Popen([PROGRAM, "top", "-w", "--snapshot", str(CLUSTER)], stdout=subprocess.PIPE, text=True,
                              env=environment()) as process:
            text = ""
            while text.count("training") < 2:
                line = process.stdout.readline()
                self.assertTrue(line, f"it has ended: {text}")
                text += line
            process.kill()
        self.assertNotIn("\x1b", text)


class Colours(unittest.TestCase):
    def test_only_on_a_terminal(self):
        for command in ("nodes", "pods", "quotas", "top"):
            self.assertNotIn(ESCAPE, run(command, "--snapshot", CLUSTER).stdout)
            self.assertIn(ESCAPE, on_a_terminal(command, "--snapshot", CLUSTER), command)

    def test_who_wants_none_has_none(self):
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"GPULEDGER_COLOR": "never"}):
            text = on_a_terminal("nodes", "--snapshot", CLUSTER, **variables)
            self.assertIn("LARGEST FREE", text)
            self.assertNotIn(ESCAPE, text, variables)

    def test_who_asks_has_them_always(self):
        painted = run("nodes", "--snapshot", CLUSTER, "--color", "always").stdout
        self.assertIn(ESCAPE, painted)
        self.assertEqual(re.sub(r"\x1b\[\d+m", "", painted), run("nodes", "--snapshot", CLUSTER).stdout)

    def test_sentences_have_bold_headings(self):
        words = ("explain", "research/notebook-xl", "--snapshot", CLUSTER)
        painted, plain = run(*words, "--color=always").stdout, run(*words).stdout
        self.assertEqual(re.sub(r"\x1b\[\d+m", "", painted), plain)
        self.assertIn("\x1b[1mNODES  REASON", painted)
        self.assertNotIn(ESCAPE, plain)

    def test_what_tenants_write_steers_no_terminal(self):
        """Where colours are wanted no more than a colour gets through."""
        cluster = json.loads(CLUSTER.read_text(encoding="utf-8"))
        for item in cluster["items"]:
            if item["kind"] == "Pod" and item["metadata"]["name"].startswith("labeler"):
                item["metadata"]["namespace"] = "v\x1b]0;owned\x07\x1b[2J\x9b"
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "cluster.json"
            file.write_text(json.dumps(cluster), encoding="utf-8")
            for color in ("always", "never"):
                for words in (("explain", "research/notebook-xl"), ("inspect",), ("pods",), ("top",)):
                    text = run(*words, "--snapshot", file, "--color", color).stdout
                    self.assertGreater(len(text), 100)
                    self.assertNotRegex(re.sub(r"\x1b\[\d+m", "", text) if color == "always" else text,
                                        "[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", words)

    def test_documents_have_none(self):
        for output in ("json", "yaml", "name"):
            self.assertNotIn(ESCAPE, run("nodes", "--snapshot", CLUSTER, "--color=always", "-o", output).stdout)

    def test_what_is_wrong_is_marked(self):
        """A card out of service, in a row of its own colour; words say the same."""
        lines = run("nodes", "--snapshot", CLUSTER, "--color=always").stdout.splitlines()
        for line in lines[1:]:
            self.assertEqual("!" in line, "\x1b[33m" in line, line)


if __name__ == "__main__":
    unittest.main()
