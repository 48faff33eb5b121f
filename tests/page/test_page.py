#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: what it shows, what it lets nobody do, and for whom it can be used.

Chromium has to be installed (tests/install page); the check of accessibility also needs axe-core, which
tests/install fetches. What is missing is skipped with the reason.
"""

import datetime
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

# pylint: disable=wrong-import-position
from browser import Browser, find  # noqa: E402
from large import MARKUP, hostile, large, write  # noqa: E402
from program import ROOT, Server, call, node, pod, run  # noqa: E402

CLUSTER = ROOT / "examples" / "wall" / "cluster.json"
CACHE = pathlib.Path(os.environ.get("GPULEDGER_CACHE", pathlib.Path.home() / ".cache" / "gpuledger"))
AXE = CACHE / "axe-core-4.10.3" / "axe.min.js"
ELEMENTS_MAX = 2000
READ = "document.body.dataset.read === 'yes'"
ELEMENTS = "document.getElementsByTagName('*').length"

DESK, PHONE, SCREEN = (1440, 900), (390, 844), (3840, 2160)

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: made-up, namespace: serving}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - name: main
        resources:
          limits:
            aliyun.com/gpu-mem: %d
"""


def text(tab, selector):
    return tab.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")


def texts(tab, selector):
    return tab.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((node) => node.innerText)")


class Case(unittest.TestCase):
    cluster = CLUSTER
    options = ("--hami-resource-quotas", "--elastic-quotas")

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.__exit__)
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory())) \
            if hasattr(cls, "enterClassContext") else pathlib.Path(tempfile.mkdtemp())
        cls.server = Server(*cls.options, snapshot=cls.snapshot())
        cls.addClassCleanup(cls.server.__exit__)

    @classmethod
    def snapshot(cls):
        return cls.cluster

    def setUp(self):
        """Tabs of the test before would go on asking."""
        self.addCleanup(self.browser.close_tabs)

    def tab(self, size=DESK, dark=False, server=None, ready=READ):
        tab = self.browser.tab(*size, dark=dark, mobile=size == PHONE)
        tab.open(f"{(server or self.server).operations}/")
        if ready:
            tab.wait(ready)
        return tab

    def assert_quiet(self, tab, but=()):
        """The console has no error, and no policy was broken."""
        complaints = [line for line in tab.complaints() if not any(each in line for each in but)]
        self.assertEqual(complaints, [])


class Shows(Case):
    def test_the_headline_adds_up(self):
        tab = self.tab()
        nodes = json.loads(self.server.get("/api/v1/wall")[1])["nodes"]
        given = sum(card["given"] for node in nodes for card in node["cards"])
        given += sum(pool["used"] * pool["size"] for node in nodes for pool in node["pools"])
        figures = dict(zip(texts(tab, ".fig dt"), texts(tab, ".fig .value")))
        self.assertEqual(figures["GPUs"], "100")
        self.assertEqual(figures["Handed out"], f"{given / 1000:.1f}".removesuffix(".0"))
        self.assertEqual(figures["Waiting"], "6")
        parts = sum(float(figures[name]) for name in
                    ("Handed out", "Free and usable", "Free but useless", "Out of service"))
        self.assertAlmostEqual(parts, 100, delta=0.3)
        self.assert_quiet(tab)

    def test_nothing_but_its_own_origin(self):
        tab = self.tab()
        tab.wait("document.querySelector('.remedy')")
        asked = tab.requests()
        self.assertGreater(len(asked), 15)
        self.assertEqual([url for url in asked if not url.startswith(self.server.operations + "/")], [])

    def test_a_card_tells_who_has_it(self):
        tab = self.tab()
        tab.run("document.querySelector('[data-node=\"l40s-0\"] [data-i=\"0\"]').click()")
        tab.wait("document.querySelector('#detail[open] .holders li')")
        detail = text(tab, "#detail")
        for part in ("Card 0 of l40s-0", "NVIDIA L40S", "embedder-0", "serving", "beside"):
            self.assertIn(part, detail)
        tab.wait("document.querySelector('#detail').innerText.includes('GPU-l40s-0-0')")
        tab.run("document.querySelector('#detail .holders .link').click()")
        tab.wait("document.querySelector('#detail .answer').innerText.includes('l40s-0, card 0')")
        self.assert_quiet(tab)

    def test_instances_are_in_their_places(self):
        tab = self.tab((1440, 3000))
        tab.wait("document.querySelector('[data-node=\"mig-0\"]')")
        image = tab.run("document.querySelector('[data-node=\"mig-0\"] [data-i=\"0\"]').style.backgroundImage")
        self.assertIn("12.50%", image)  # an eighth, which is a slice

    def test_what_is_out_of_service_is_marked(self):
        tab = self.tab((1440, 3000))
        sick = tab.run("document.querySelector('[data-node=\"a100-1\"] [data-i=\"5\"]').outerHTML")
        self.assertIn("unhealthy", sick)
        self.assertIn("cordoned", tab.run("document.querySelector('[data-node=\"t4-5\"]').innerText"))

    def test_filters(self):
        tab = self.tab((1440, 3000))

        def rows():
            return tab.run("[...document.querySelectorAll('.row')].map((row) => row.dataset.node).sort()")

        everything = rows()
        self.assertEqual(len(everything), 19)
        tab.run("{const f = document.querySelector('#f-text'); f.value = 'WHISPER'; f.dispatchEvent(new Event('input'))}")
        whispering = rows()
        self.assertTrue(whispering and set(whispering) < set(everything), whispering)
        self.assertTrue(all(name.startswith("t4-") for name in whispering), whispering)
        tab.run("{const f = document.querySelector('#f-text'); f.value = ''; f.dispatchEvent(new Event('input'))}")
        tab.run("{const f = document.querySelector('#f-dialect'); f.value = 'nvidia'; f.dispatchEvent(new Event('change'))}")
        self.assertEqual(rows(), ["h100-0", "h100-1", "l4-0"])
        tab.run("{const f = document.querySelector('#f-dialect'); f.value = ''; f.dispatchEvent(new Event('change'))}")
        tab.run("[...document.querySelectorAll('.chip')].find((chip) => chip.innerText.startsWith('speech')).click()")
        self.assertEqual(text(tab, "#f-count"), f"{len(rows())} of 19 nodes")
        self.assertIn("l4-0", rows())
        tab.run("[...document.querySelectorAll('.chip')].find((chip) => chip.innerText.startsWith('speech')).click()")
        tab.run("document.querySelector('#f-trouble').click()")
        self.assertIn("a100-1", rows())
        self.assertNotIn("h100-0", rows())

    def test_namespaces_have_what_top_says(self):
        tab = self.tab()
        tab.wait("document.querySelector('.chip')")
        top = json.loads(run("top", "--snapshot", CLUSTER, "-ojson").stdout)["rows"]
        top = {row["name"]: row["usedGpuThousandths"] for row in top}
        shown = tab.run("import('./page/model.js').then(({ model }) => [...model.namespaces])")
        self.assertEqual({name: round(amount) for name, amount in shown}, {name: top[name] for name, _ in shown})
        self.assertEqual({name for name, used in top.items() if used}, {name for name, amount in shown if amount})
        for chip in texts(tab, ".chip"):
            name, amount = chip.split()
            self.assertAlmostEqual(float(amount), top[name] / 1000, delta=0.05)

    def test_a_pod_that_is_searched_for_is_marked_on_its_card(self):
        tab = self.tab()
        tab.run("{const f = document.querySelector('#f-text'); f.value = 'serving/embedder-0'; f.dispatchEvent(new Event('input'))}")
        hits = tab.run("[...document.querySelectorAll('.card.hit')].map((card) => card.getAttribute('aria-label'))")
        self.assertEqual(len(hits), 1, hits)
        self.assertIn("serving/embedder-0", hits[0])
        tab.run("document.querySelector('.row .node').click()")
        tab.wait("document.querySelector('#detail[open] .holders li')")
        holder = next(item for item in texts(tab, "#detail .holders li") if item.startswith("embedder-0"))
        self.assertIn(hits[0].split(", ")[1].partition(":")[0], holder)
        self.assert_quiet(tab)

    def test_who_waits_and_what_would_help(self):
        tab = self.tab()
        tab.wait("document.querySelectorAll('#waiting .pending').length === 6")
        tab.wait("[...document.querySelectorAll('#waiting .brief')].every((brief) => !brief.innerText.includes('finding out'))")
        items = texts(tab, "#waiting .pending")
        wish = next(item for item in items if item.startswith("diarizer"))
        self.assertIn("card too small", wish)
        self.assertIn("ask for 4 aliyun.com/gpu-mem instead of 4096", wish)
        tab.run("document.querySelector('#waiting details summary').click()")
        tab.wait("document.querySelector('#waiting .groups')")
        self.assert_quiet(tab)

    def test_the_moves_that_make_room(self):
        """As the extender plans them; a look later they are still there."""
        tab = self.tab()
        tab.wait("document.querySelectorAll('#waiting .pending').length === 6")
        item = "[...document.querySelectorAll('#waiting .pending')].find((each) => each.innerText.startsWith('notebook-xl'))"
        tab.wait(f"!{item}.querySelector('details').hidden")
        tab.run(f"{item}.querySelector('details summary').click()")
        tab.wait(f"{item}.querySelector('.ask-plan')")
        tab.run(f"{item}.querySelector('.ask-plan').click()")
        tab.wait(f"{item}.querySelector('.moves')")
        plan = json.loads(self.server.get("/api/v1/plan?pod=research/notebook-xl")[1])
        self.assertGreater(len(plan["steps"]), 0)
        rows = tab.run(f"[...{item}.querySelectorAll('.moves tbody tr')].map((row) => row.innerText)")
        self.assertEqual(len(rows), len(plan["steps"]))
        for row, step in zip(rows, plan["steps"]):
            for word in (f"{step['namespace']}/{step['name']}", step["from"], step["frees"], step["to"], step["takes"]):
                self.assertIn(word, row)
        self.assertIn("gpuledger plan research/notebook-xl --apply", tab.run(f"{item}.innerText"))
        hopeless = item.replace("notebook-xl", "diarizer")
        tab.run(f"{hopeless}.querySelector('details summary').click()")
        tab.wait(f"{hopeless}.querySelector('.ask-plan')")
        tab.run(f"{hopeless}.querySelector('.ask-plan').click()")
        tab.wait(f"{hopeless}.innerText.includes('No moves make')")
        self.assert_quiet(tab)

    def test_what_a_plan_is_doing(self):
        cluster = json.loads(CLUSTER.read_text(encoding="utf-8"))
        node = next(item for item in cluster["items"] if item["kind"] == "Node" and item["metadata"]["name"] == "t4-4")
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=10)
        node["metadata"].setdefault("annotations", {})["gpuledger.io/plan"] = json.dumps({
            "doing": "room for ml/big: move 1 of 2 " + "<b>x</b>" * 99, "until": until.strftime("%Y-%m-%dT%H:%M:%SZ")})
        file = self.directory / "planned.json"
        file.write_text(json.dumps(cluster), encoding="utf-8")
        with Server(snapshot=file) as server:
            tab = self.tab(server=server)
            tab.wait("document.querySelector('#waiting .running')")
            said = text(tab, "#waiting .running")
            self.assertIn("t4-4 room for ml/big: move 1 of 2 <b>x</b>", said)
            self.assertLess(len(said), 400)
            self.assertIn("gpuledger_nodes_planned 1\n", server.get("/metrics")[1])
            self.assert_quiet(tab)

    def test_groups_and_how_far_they_are(self):
        with Server("--gangs", snapshot=CLUSTER) as server:
            for number in range(3):
                member = pod(f"g-{number}", 999)
                member["metadata"]["annotations"] = {"gang.scheduling.koordinator.sh/name": "train",
                                                     "gang.scheduling.koordinator.sh/min-available": "4"}
                self.assertEqual(call("POST", f"{server.operations}/api/v1/snapshot/pods", member)[0], 201)
            tab = self.tab(server=server)
            tab.wait("document.querySelector('#waiting .gang')")
            said = text(tab, "#waiting .gang")
            self.assertIn("train", said)
            self.assertIn("0 of 4 have a place", said)
            self.assertIn("only 3 pods of it known", said)
            self.assertEqual(tab.run("document.querySelector('.gang meter').ariaLabel ?? document.querySelector('.gang meter')"
                                     ".getAttribute('aria-label')"), "0 of 4 have a place")
            self.assert_quiet(tab)

    def test_quotas_as_bars(self):
        tab = self.tab()
        tab.run("document.querySelector('.tabs [data-tab=quotas]').click()")
        meters = tab.run("[...document.querySelectorAll('#quotas [role=meter]')].map((meter) => meter.ariaValueText)")
        self.assertEqual(len(meters), 8)
        self.assertTrue(any(one.endswith(" of 1,074 GiB") for one in meters), meters)
        self.assertTrue(any(one.endswith(" of 12 GPUs") for one in meters), meters)
        rows = texts(tab, "#quotas .who")
        self.assertTrue(any("vision" in row and "sure of 4 GPUs, borrows 5.6 GPUs" in row for row in rows), rows)

    def test_without_quotas_there_is_no_tab(self):
        with Server(snapshot=CLUSTER) as server:
            tab = self.tab(server=server)
            self.assertEqual(tab.run("document.querySelector('.tabs [data-tab=quotas]').offsetParent"), None)

    def test_what_if(self):
        tab = self.tab()
        tab.run("document.querySelector('.tabs [data-tab=whatif]').click()")
        for amount, words in ((2, "2 of 2 pods"), (99, "0 of 2 pods")):
            tab.run(f"document.querySelector('#w-text').value = {json.dumps(DEPLOYMENT % amount)}")
            tab.run("document.querySelector('.ask .main').click()")
            tab.wait(f"document.querySelector('.answers').innerText.includes({json.dumps(words)})")
        self.assertIn("card too small", text(tab, ".answers"))
        tab.run(f"document.querySelector('#w-text').value = {json.dumps(json.dumps(pod('p', 2)))}")
        tab.run("document.querySelector('#w-replicas').value = 3; document.querySelector('#w-drain').value = 't4-0'")
        tab.run("document.querySelector('.ask .main').click()")
        tab.wait("document.querySelector('.answers').innerText.includes('of 3 pods like test/p')")
        self.assertIn("drained pods", text(tab, ".answers"))
        tab.run("document.querySelector('#w-text').value = '['; document.querySelector('.ask .main').click()")
        tab.wait("document.querySelector('.answers .bad')")

    def test_an_error_names_the_line_of_the_manifest(self):
        tab = self.tab()
        tab.run("document.querySelector('.tabs [data-tab=whatif]').click()")
        lines = DEPLOYMENT.splitlines()
        lines[4] = "  replicas: [2"
        for head, replicas, drain in (("", "", ""), ("", "3", "t4-0"), ("# so\n---\n", "3", "")):
            tab.run(f"document.querySelector('#w-text').value = {json.dumps(head + chr(10).join(lines) % 2)};"
                    f"document.querySelector('#w-replicas').value = {json.dumps(replicas)};"
                    f"document.querySelector('#w-drain').value = {json.dumps(drain)};"
                    "document.querySelector('.answers').replaceChildren()")
            tab.run("document.querySelector('.ask .main').click()")
            tab.wait("document.querySelectorAll('.answers .bad').length === 2")
            told = [re.findall(r"line (\d+)", each) for each in texts(tab, ".answers .bad")]
            self.assertTrue(told[0], texts(tab, ".answers .bad"))
            self.assertEqual(told[0], told[1], texts(tab, ".answers .bad"))

    def test_nothing_is_wider_than_its_screen(self):
        for width in (390, 360):
            tab = self.browser.tab(width, 800, mobile=True)
            tab.open(f"{self.server.operations}/")
            tab.wait(READ)
            for name in ("wall", "waiting", "quotas", "decisions", "whatif"):
                tab.run(f"document.querySelector('.tabs [data-tab={name}]').click()")
                for box in (".tabs", f"#{name}", f"#{name} .body", "#scroll", "html"):
                    wide = tab.run(f"(() => {{ const box = document.querySelector({json.dumps(box)});"
                                   " return box && box.scrollWidth > box.clientWidth && "
                                   "[box.scrollWidth, box.clientWidth]; })()")
                    self.assertFalse(wide, (width, name, box, wide))
                if name == "quotas":
                    cut = tab.run("[...document.querySelectorAll('#quotas .pod b, #quotas .pod span, #quotas .age')]"
                                  ".filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.innerText)")
                    self.assertEqual(cut, [], width)
            edges = tab.run("[...document.querySelectorAll('.tabs button')].map((each) => each.getBoundingClientRect().right)")
            self.assertLessEqual(max(edges), width)

    def test_what_changes_is_shown(self):
        with Server(snapshot=CLUSTER) as server:
            tab = self.tab(server=server)
            tab.run("document.querySelector('.tabs [data-tab=decisions]').click()")
            self.assertIn("Nothing has been decided", text(tab, "#decisions"))
            new = pod("fresh", 2)
            self.assertEqual(call("POST", f"{server.operations}/api/v1/snapshot/pods", new)[0], 201)
            server.filter(new, ["t4-3", "l40s-0"])
            server.bind(new, "t4-3")
            tab.wait("document.querySelector('#decisions').innerText.includes('bound to t4-3, card')")
            self.assertIn("1 of 2 nodes take it; not: 1 other dialect", text(tab, "#decisions"))
            tab.wait("document.querySelector('#f-ns').innerText.includes('test')")
            statuses = [event["params"]["response"]["status"] for event in self.browser.events
                        if event.get("sessionId") == tab.session and event["method"] == "Network.responseReceived"]
            self.assertIn(304, statuses)  # what has not changed was not sent again
            server.process.kill()
            tab.wait("!document.querySelector('#trouble').hidden")
            self.assertIn("stale", text(tab, "#live"))


class Keyboard(Case):
    def test_all_of_it_by_keyboard(self):
        tab = self.tab()
        active = "document.activeElement"
        tab.key("/", "/")
        tab.wait(f"{active}.id === 'f-text'")
        for _ in range(30):  # past the filters and the legend, to the one cell that can be reached so
            tab.key("Tab", code=9)
            if tab.run(f"{active}.closest('#grid') !== null"):
                break
        self.assertEqual(tab.run(f"{active}.parentElement.dataset.node"), "a100-0")
        self.assertEqual(tab.run("document.querySelectorAll('#grid [tabindex=\"0\"]').length"), 1)
        tab.key("ArrowRight", code=39)
        tab.key("ArrowRight", code=39)
        tab.key("ArrowDown", code=40)
        self.assertEqual(tab.run(f"[{active}.parentElement.dataset.node, {active}.dataset.i]"), ["a100-1", "1"])
        tab.key("Enter", "\r", 13)
        tab.wait("document.querySelector('#detail').open")
        self.assertTrue(tab.run(f"document.querySelector('#detail').contains({active})"))
        tab.key("Escape", code=27)
        tab.wait("!document.querySelector('#detail').open")
        self.assertEqual(tab.run(f"[{active}.parentElement.dataset.node, {active}.dataset.i]"), ["a100-1", "1"])
        tab.key("End", code=35, modifiers=2)
        self.assertEqual(tab.run(f"{active}.parentElement.dataset.node"), "t4-5")
        self.assertTrue(tab.run(f"{{const r = {active}.getBoundingClientRect(); r.top >= 0 && r.bottom <= innerHeight}}"))


class Token(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.directory / "token"
        path.write_text("open-sesame")
        cls.locked = Server(f"--ops-token-file={path}", snapshot=CLUSTER)
        cls.addClassCleanup(cls.locked.__exit__)

    def give(self, tab, token):
        tab.wait("document.querySelector('#token').open")
        tab.run(f"document.querySelector('#token-text').value = '{token}';"
                "document.querySelector('#token button').click()")

    def test_asks_once_and_keeps_it_for_the_tab(self):
        tab = self.tab(server=self.locked, ready=None)
        tab.wait("document.querySelector('#token')?.open")
        self.assertEqual(tab.run("document.querySelectorAll('.row').length"), 0)
        self.assertNotIn("No node shares GPUs", tab.run("document.body.innerText"))
        self.give(tab, "guess")
        tab.wait("document.querySelector('#token-why').innerText.includes('does not take that token')")
        self.give(tab, "open-sesame")
        tab.wait(READ)
        self.assertEqual(text(tab, ".fig .value"), "100")
        self.assertNotIn("sesame", tab.run("JSON.stringify(localStorage) + document.cookie + location.href"))
        self.assertNotIn("sesame", tab.run("document.documentElement.outerHTML"))
        tab.call("Page.reload")
        tab.wait(READ)
        self.assertFalse(tab.run("document.querySelector('#token').open"))
        self.assertFalse([url for url in tab.requests() if "sesame" in url])
        other = self.tab(server=self.locked, ready=None)
        other.wait("document.querySelector('#token')?.open")
        tab.run("document.querySelector('#forget').click()")
        tab.wait("document.querySelector('#token').open")


class Crowd(Case):
    """Many pods wait, and many namespaces have a pod each."""

    SPACES = 14

    @classmethod
    def snapshot(cls):
        items = [node(f"n{i}", 4, 16) for i in range(8)]
        for i in range(300):
            items.append(pod(f"waits-{i:03}", 99, metadata={"creationTimestamp": f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z"}))
        for i in range(cls.SPACES):
            card = {"ALIYUN_COM_GPU_MEM_IDX": str(i % 4), "ALIYUN_COM_GPU_MEM_POD": "8",
                    "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}
            each = pod(f"runs-{i}", 8 if i < 12 else 1, spec={"nodeName": f"n{i // 4}"}, status={"phase": "Running"},
                       metadata={"annotations": {**card, "ALIYUN_COM_GPU_MEM_POD": "8" if i < 12 else "1"}})
            each["metadata"]["namespace"] = f"space-{i:02}"
            items.append(each)
        return write(cls.directory / "crowd.json", items)

    def search(self, tab, what):
        tab.run(f"{{const f = document.querySelector('#q-text'); f.value = {json.dumps(what)}; f.dispatchEvent(new Event('input'))}}")

    def test_each_pod_that_waits_can_be_reached(self):
        tab = self.tab()
        tab.wait("document.querySelectorAll('#waiting .pending').length === 20")
        for shown in (40, 60):
            tab.run("document.querySelector('#waiting .found > button').click()")
            tab.wait(f"document.querySelectorAll('#waiting .pending').length === {shown}")
        self.search(tab, "WAITS-277")
        tab.wait("document.querySelectorAll('#waiting .pending').length === 1")
        self.assertIn("waits-277", text(tab, "#waiting .pending"))
        self.assertEqual(text(tab, "#n-waiting"), "300")
        self.search(tab, "no-such")
        tab.wait("document.querySelector('#waiting .empty')")
        self.search(tab, "")
        tab.wait("document.querySelectorAll('#waiting .pending').length === 20")
        self.assert_quiet(tab)

    def test_an_explanation_is_asked_for_once_and_has_what_is_shown(self):
        tab = self.tab()
        self.search(tab, "waits-29")
        tab.wait("document.querySelectorAll('#waiting .pending').length === 10")
        tab.wait("[...document.querySelectorAll('#waiting .brief')].every((brief) => !brief.innerText.includes('finding out'))")
        asked = [url.partition("explain?")[2] for url in tab.requests() if "/explain?" in url]
        self.assertTrue(asked and all(url.endswith("&nodes=0") for url in asked), asked)
        self.assertEqual(len(asked), len(set(asked)))
        whole, brief = (json.loads(self.server.get(f"/api/v1/explain?pod=test/waits-290{more}")[1])
                        for more in ("", "&nodes=0"))
        self.assertEqual((len(whole["nodes"]), whole["nodesOmitted"]), (8, 0))
        self.assertEqual((brief["nodes"], brief["nodesOmitted"], brief["groups"]), ([], 8, whole["groups"]))

    def test_the_largest_namespaces_have_colours_of_their_own(self):
        """Whoever is large in the end: the smallest two share theirs with the first ones."""
        tab = self.tab()
        tab.wait("document.querySelectorAll('.chip').length === 10")
        for number in (12, 13):
            for i in range(4):
                big = pod(f"big-{number}-{i}", 16)
                big["metadata"].update(namespace=f"space-{number:02}", uid=f"uid-big-{number}-{i}")
                call("POST", f"{self.server.operations}/api/v1/snapshot/pods", big)
                target = self.server.filter(big, [f"n{4 + number - 12}"])["NodeNames"]
                self.assertEqual(self.server.bind(big, target[0])["Error"], "")
        tab.wait("[...document.querySelectorAll('.chip')].slice(0, 2).every((chip) => /space-1[23]/.test(chip.innerText))")
        colours = tab.run("[...document.querySelectorAll('.chip i')].map((dot) => dot.style.background)")
        self.assertEqual(len(set(colours)), len(colours), colours)


class Hostile(Case):
    """Names are text wherever they are shown."""

    @classmethod
    def snapshot(cls):
        return write(cls.directory / "hostile.json", hostile())

    # A name with a slash is none that explain can be asked about; no API server has one.
    SLASHES = ("api/v1/explain?pod=",)

    def check(self, tab):
        self.assertEqual(tab.run("document.querySelectorAll('main img, main script, main style, main iframe').length"), 0)
        opened = [event for event in self.browser.events
                  if event.get("sessionId") == tab.session and event["method"] == "Page.javascriptDialogOpening"]
        self.assertEqual(opened, [])
        self.assertEqual(tab.run("document.documentElement.scrollWidth > innerWidth"), False)
        self.assert_quiet(tab, self.SLASHES)

    def test_names_are_text(self):
        for size in (DESK, PHONE):
            tab = self.tab(size)
            tab.wait("document.querySelectorAll('.row').length > 5")
            self.assertIn(MARKUP, texts(tab, ".node .name"))
            self.check(tab)
            tab.run("document.querySelector('.tabs [data-tab=waiting]').click()")
            tab.wait("document.querySelectorAll('.pending').length > 5")
            tab.run("document.querySelector('.tabs [data-tab=wall]').click()")
            for at in range(7):
                tab.run(f"document.querySelectorAll('.row .node')[{at}].click()")
                tab.wait("document.querySelector('#detail').open")
                tab.run("document.querySelector('#detail .link')?.click()")
            self.check(tab)

    def test_the_policy_holds(self):
        """It would be noticed if it did not: what the page itself never does is refused."""
        tab = self.tab()
        for attempt in ("document.body.append(Object.assign(document.createElement('script'), {text: 'window.hit = 1'}))",
                        "document.body.innerHTML = '<img src=x onerror=\"window.hit = 1\">'",
                        "document.body.setAttribute('onclick', 'window.hit = 1'); document.body.click()",
                        "setTimeout('window.hit = 1')"):
            tab.run(f"try {{ {attempt} }} catch (error) {{ }}")
        time.sleep(0.2)
        self.assertIsNone(tab.run("window.hit"))
        self.assertGreaterEqual(len(tab.complaints()), 2)


class Large(Case):
    """5,000 nodes with 8 cards."""

    @classmethod
    def snapshot(cls):
        return write(cls.directory / "large.json", large())

    def test_few_elements(self):
        for size in (DESK, PHONE, SCREEN):
            tab = self.tab(size)
            tab.wait("document.querySelector('#f-count').innerText === '5,000 nodes'")
            seen = [tab.run(ELEMENTS)]
            for part in (0.3, 0.7, 1):
                tab.run(f"{{const s = document.querySelector('#scroll'); s.scrollTop = s.scrollHeight * {part}}}")
                tab.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                seen.append(tab.run(ELEMENTS))
            self.assertTrue(tab.run("document.querySelector('[data-node=\"node-4999\"]') !== null"))
            print(f"# {size[0]} x {size[1]}: at most {max(seen)} elements")
            self.assertLessEqual(max(seen), ELEMENTS_MAX)
            self.assertGreater(min(seen), 150)
            self.assert_quiet(tab)

    def test_search_finds_one(self):
        tab = self.tab()
        tab.wait("document.querySelector('#f-count').innerText === '5,000 nodes'")
        tab.run("{const f = document.querySelector('#f-text'); f.value = 'p-4711-2-1'; f.dispatchEvent(new Event('input'))}")
        self.assertEqual(texts(tab, ".row .name"), ["node-4711"])


@unittest.skipUnless(AXE.exists(), f"axe-core is not there ({AXE}): tests/install page")
class Accessible(Case):
    def check(self, tab, what):
        """axe-core, which finds what can be found without a person, has nothing to say."""
        tab.run(AXE.read_text())
        found = tab.run("axe.run(document, {resultTypes: ['violations', 'incomplete'], runOnly: "
                        "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
                        ".then((result) => ({passes: result.passes.length, violations: result.violations.map((each) => "
                        "[each.id, each.help, each.nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary)])}))")
        self.assertEqual(found["violations"], [], what)
        self.assertGreater(found["passes"], 15, what)

    def test_in_every_light_and_size(self):
        for size in (DESK, PHONE):
            for dark in (False, True):
                tab = self.browser.tab(*size, dark=dark, mobile=size == PHONE)
                tab.call("Page.setBypassCSP", enabled=True)  # axe makes styles and markup of its own
                tab.open(f"{self.server.operations}/")
                tab.wait(READ)
                what = f"{size}, {'dark' if dark else 'light'}"
                self.check(tab, what)
                for name in ("waiting", "quotas", "decisions", "whatif"):
                    tab.run(f"document.querySelector('.tabs [data-tab={name}]').click()")
                    self.check(tab, f"{what}, {name}")
                tab.run("document.querySelector('.tabs [data-tab=wall]').click()")
                tab.run("document.querySelector('[data-node=\"a100-1\"] [data-i=\"0\"]').click()")
                tab.wait("document.querySelector('#detail .holders')")
                self.check(tab, f"{what}, a card")

    def test_asking_for_the_token(self):
        path = self.directory / "token"
        path.write_text("open-sesame")
        with Server(f"--ops-token-file={path}", snapshot=CLUSTER) as server:
            tab = self.browser.tab(*DESK)
            tab.call("Page.setBypassCSP", enabled=True)
            tab.open(f"{server.operations}/")
            tab.wait("document.querySelector('#token')?.open")
            self.check(tab, "the token")


if __name__ == "__main__":
    if not find():
        print("skipped: there is no Chromium (tests/install page)")
        sys.exit(77)
    unittest.main(verbosity=1)
