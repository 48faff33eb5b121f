#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents name is there: options, routes, metrics, files, commands, variables, words."""

import json
import pathlib
import posixpath
import re
import shlex
import tempfile

import yaml

from common import SNAPSHOT, Server, files, main, run, text

# pylint: disable=wrong-import-position
import facts  # noqa: E402
from program import listing, node, pod  # noqa: E402
from walk import send  # noqa: E402

DOCUMENTS = [name for name in files() if name.endswith(".md") and not name.startswith("build")]

# Pages that speak of other projects, of attacks by the beginnings of their names, or of figures.
OTHERS = {f"docs/{name}.md" for name in ("dialects", "packing", "reliability", "scenarios", "security")}

# Whose words are all our own.
OWN = {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"} | {
    name for name in files() if re.match(r"docs/(design/)?[\w-]+\.md$", name)} - OTHERS

# Paths of machines, which are not of this tree, what a build makes, keys and types that look like paths.
ELSEWHERE = ("/etc/kubernetes", "/usr/share/", "/var/lib/dpkg/", "/dev/", "~/", "build/", "${", "volcano.sh/",
             "application/")

# Texts that are examples of themselves.
MADE = {"area: imperative summary", "Problem:"}

# Words of OpenShift.
FOREIGN_WORDS = {"restricted-v2", "nonroot-v2", "MustRunAsRange"}

# What GitHub shows of it before anybody scrolls far.
README_MAX = 8192

# What somebody reads in one go before changing the code.
ARCHITECTURE_MAX = 12288

EXTENSIONS = (".c", ".h", ".py", ".md", ".yaml", ".json", ".mod")


class Document:
    def __init__(self, name):
        self.name = name
        self.folder = name.rpartition("/")[0]
        self.text = text(name)
        # After the language may be what the block needs.
        fence = re.compile(r"^```(\w*)(?: \w+)?\n(.*?)^```$", re.S | re.M)
        self.fences = fence.findall(self.text)
        self.prose = fence.sub("", self.text)
        self.spans = re.findall(r"`([^`\n]+)`", self.prose)

    def lines(self):
        """The shell lines of its fences, continued ones joined, without comments."""
        for language, content in self.fences:
            for line in content.replace("\\\n", " ").splitlines():
                line = re.sub(r"(^|\s)#\s.*", "", line).strip()
                if line and (language == "sh" or self.is_command(line)):
                    yield line

    @staticmethod
    def is_command(line):
        first, *rest = line.split(" ")
        return bool(rest or "/" in first) and (
            first in facts.FOREIGN | {"gpuledger"} or re.match(r"(tests|examples)/\w+$", first))


# --- inline code: the kinds of things that it names, the first that fits -------------------------


def option_faults(span, _):
    everything = set().union(*facts.commands().values())
    name = facts.OPTION.match(span)[0]
    return [] if name in everything or facts.has_word(name) else [f"there is no option {name}"]


def command_faults(span, document):
    return [fault for command in facts.split(span)
            for fault in facts.command_faults(command, document.folder)]


def route_faults(span, _):
    faults = []
    method, _, rest = span.rpartition(" ") if re.match(r"[A-Z]+ /", span) else ("", "", span)
    for path in rest.split():
        for each in (path.replace("[", "").replace("]", ""), re.sub(r"\[.*\]", "", path)):
            if not facts.has_route(each, method=method or None):
                faults.append(f"there is no route {span}")
    return faults


def route_end_faults(span, _):
    ends = [path for rows in facts.served()[0].values() for _, path in rows]
    good = any(path.endswith(span.lstrip("…")) for path in ends)
    return [] if good else [f"no route ends in {span}"]


def port_faults(span, _):
    return [] if span[1:] in facts.ports().values() else [f"{span} is not a port of ours"]


def variable_faults(span, _):
    name = span.split("=")[0]
    return [] if name in facts.variables() else [f"there is no variable {name}"]


def metric_faults(span, _):
    name, _, label = span.partition("{")
    # Some are there with an option only.
    known = name in facts.metrics() or facts.has_word(f'"{name}"')
    faults = [] if known else [f"there is no metric {name}"]
    if label and not facts.has_word(f'"{label.split("=")[0]}"'):
        faults.append(f"no metric has a label {label}")
    return faults


def path_faults(span, document):
    if re.match(r"(hami|volcano)\.sh/", span):
        return []  # a key of theirs
    return [] if facts.find_files(span, document.folder) else [f"there is no {span}"]


def word_faults(span, document):
    """Words of code are somewhere in the tree; x and capitals at the end stand for something."""
    faults = []
    if document.name not in OWN:
        return []
    for word in re.findall(r"[A-Za-z_][\w-]*(?:[./][\w-]+)*", span):
        for part in [word] if "/" in word else word.split("."):
            part = re.sub(r"(?<=-)[A-Z]+$|(?<=_)x$", "", part)
            if len(part) > 2 and not facts.has_word(part):
                faults.append(f"{part} is nowhere")
    return faults


KINDS = [
    (r"--", option_faults),
    (r"(\S*/)?(%s|gpuledger)\s+\S|tests/(\w+/)?run\b" % "|".join(facts.FOREIGN), command_faults),
    (r"([A-Z]+ )?/", route_faults),
    (r"…/", route_end_faults),
    (r":\d+$", port_faults),
    (r"GPULEDGER_[A-Z_]+(=|$)", variable_faults),
    (r"gpuledger_\w+", metric_faults),
    (r"(?!([\w.-]*\.(io|com|sh|ai)|nano-gpu)/)[\w.{},-]+/[\w./{},-]*$|\.\w", path_faults),
    (r"[\w.-]+(%s)$" % "|".join(map(re.escape, EXTENSIONS)), path_faults),
    (r"", word_faults),
]


def span_faults(document):
    faults = {}
    for span in document.spans:
        if span.startswith(ELSEWHERE) or span in MADE | FOREIGN_WORDS:
            continue
        kind = next(kind for pattern, kind in KINDS if re.match(pattern, span))
        faults.setdefault(kind.__name__, []).extend(kind(span, document))
    return faults


# --- links ----------------------------------------------------------------------------------------


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def link_faults(document):
    faults = []
    for target in re.findall(r"\]\(([^)\s]+)\)", document.prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        name = posixpath.normpath(posixpath.join(document.folder, path)) if path else document.name
        if not any(file == name or file.startswith(name + "/") for file in files()):
            faults.append(f"{target} leads nowhere")
        elif anchor and anchor not in map(slug, re.findall(r"^#+ (.*)$", text(name), re.M)):
            faults.append(f"{target}: there is no such heading")
    return faults


# --- shell lines ----------------------------------------------------------------------------------


def line_faults(document):
    faults, folder = [], document.folder
    for line in document.lines():
        for command in facts.split(line):
            if command[:1] == ["cd"]:
                folder = command[1]
            elif command:
                faults += facts.command_faults(command, folder)
    return faults


def call_faults(document, server):
    """curl at the default ports, done at those of a running program: every call ends well."""
    faults = []
    bases = {facts.ports()[name]: server.address(name) for name in ("scheduler", "operations")}
    for line in document.lines():
        words = shlex.split(line)
        url = re.fullmatch(r"localhost:(\d+)(/.*)", words[-1])
        if words[0] != "curl" or not url:
            continue
        given = dict(zip(words[1:-1:2], words[2:-1:2]))
        unknown = given.keys() - {"-H", "-d"}
        header = dict([given["-H"].split(": ")]) if "-H" in given else {}
        body = given.get("-d")
        answer = send(bases[url[1]], "POST" if body else "GET", url[2], body, header)
        if unknown or answer.status != 200:
            faults.append(f"{line}: {unknown or answer.status}")
        elif body and json.loads(answer.body)["Error"]:
            faults.append(f"{line}: {answer.body}")
    return faults


# --- particular places ----------------------------------------------------------------------------


def check_listeners(tap, page):
    """The table of listeners: each with its port, and with routes that it has."""
    rows = {row[0].strip(): row[1:] for row in
            (line.strip("| \n").split("|") for line in page.prose.splitlines() if "|" in line)}
    for listener, port in facts.ports().items():
        default, routes = rows[listener]
        tap.equal(default.strip(), f"`:{port}`", f"docs/api.md: the port of {listener}")
        paths = re.findall(r"/[\w.-]+(?:/[\w.-]+)*", re.sub(r"…\S*|\[.*?\]", "", routes))
        tap.ok(paths, f"docs/api.md: {listener} has routes")
        for path in paths:
            tap.ok(facts.has_route(path, listener), f"docs/api.md: {listener} has {path}")


def read_table(sample):
    """Nodes and pods of a table: {node: [(card, units)]}, [(pod, node, card, units)]."""
    cards, pods = {}, []
    for line in sample.splitlines()[1:]:
        name, card, _, usage, _, *held = line.split()
        cards.setdefault(name, []).append((int(card), int(re.search(r"/(\d+)GiB", usage)[1])))
        for each in held:
            pod_name, units = re.fullmatch(r"(\S+/\S+)\((\d+)GiB\)", each).groups()
            pods.append((pod_name, name, int(card), int(units)))
    return cards, pods


def check_table(tap, page):
    """The sample is what the program shows of a cluster with these nodes and pods."""
    [sample] = [content for language, content in page.fences
                if not language and content.startswith("NODE")]
    real = facts.served()[2]
    heads = [table.splitlines()[0].split() for table in (sample, real)]
    tap.equal(heads[0], heads[1], "docs/install.md: the table's head")
    cards, held = read_table(sample)
    items = [node(name, len(sizes), sizes[0][1]) for name, sizes in cards.items()]
    for name, where, card, units in held:
        namespace, _, short = name.partition("/")
        annotations = {"ALIYUN_COM_GPU_MEM_IDX": str(card), "ALIYUN_COM_GPU_MEM_POD": str(units),
                       "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                       "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1700000000000000000"}
        items.append(pod(short, units, spec={"nodeName": where}, status={"phase": "Running"},
                         metadata={"namespace": namespace, "annotations": annotations}))
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "snapshot.json"
        path.write_text(listing(*items))
        with Server(snapshot=path) as server:
            shown = send(server.operations, "GET", "/api/v1/nodes?output=table").body.decode()
    tap.equal(sample, shown, "docs/install.md: the table is what the program shows")


def check_pods(tap, page):
    """The pods of the sample are those of examples/pods, which is applied before it."""
    [sample] = [content for language, content in page.fences
                if not language and content.startswith("NODE")]
    _, held = read_table(sample)
    examples = "\n".join(text(name) for name in files() if name.startswith("examples/pods/"))
    for name, _, _, units in held:
        plain = re.sub(r"^\w+/|-\d+$", "", name)
        described = re.search(rf"^  name: {plain}\n(?:.*\n)*?.*gpu-mem: (\d+)", examples, re.M)
        tap.equal(described and described[1], str(units), f"docs/install.md: {name} is one of examples/pods")


def constant(name):
    return int(re.search(rf"^#define {name} (\d+)\b", facts.words(), re.M)[1])


def check_numbers(tap, readme):
    limits = re.search(r"Up to (\S+) cards a node, (\S+) nodes in one call, (\d+ ?MiB) of body",
                       readme.prose)
    config = run("serve", "--print-config").stdout
    tap.equal([limits[1], limits[2], limits[3].replace(" ", "")],
              [str(constant("NODE_CARDS_MAX")), f"{constant('EXTENDER_NODES_MAX'):,}",
               re.search(r'^max-body: "(\w+)"', config, re.M)[1]], "README: the limits")
    version = re.search(r"version: '([^']+)'", text("meson.build"))[1]
    for name in files():
        if name == "meson.build" or facts.SILENT.search(name) and not name.endswith(".md"):
            continue
        for found in set(re.findall(r"\bgpuledger:(\d+\.\d+\.\d+)", text(name))):
            tap.equal(found, version, f"{name}: the image's version")


def check_versions(tap, page):
    rows = re.findall(r"^\| (1\.\d+\.\d+) \|", page.prose, re.M)
    tap.equal(re.findall(r"\b1\.\d+\.\d+\b", text("README.md")), rows,
              "README names the versions of docs/upgrade.md")
    for row in rows:
        tap.ok(any(row in text(name) for name in files() if name.startswith("tests/controlplane/")),
               f"docs/upgrade.md: Kubernetes {row} is what the tests build")


def check_sizes(tap):
    for name, most in (("README.md", README_MAX), ("ARCHITECTURE.md", ARCHITECTURE_MAX)):
        size = len(text(name).encode())
        tap.ok(size <= most, f"{name} is short: {size} bytes of {most}")


def check_limits(tap):
    """Each table that somebody can fill is filled by the test that its row names."""
    _, _, section = text("docs/design/limits.md").partition("## Who can fill it")
    rows = re.findall(r"\(\.\./\.\./(tests/unit/\w+\.c)\) `(\w+)` \|$", section, re.M)
    tap.equal(len(rows), section.count("\n| ") - 1, "docs/design/limits.md: each row names a test")
    for name, test in rows:
        tap.ok(f"START_TEST({test})" in text(name) and re.search(rf"tcase_add\w+\(\w+, {test}\b", text(name)),
               f"docs/design/limits.md: {test} is run")


def check_index(tap):
    """Every page is in the index, one about the design in that of ARCHITECTURE, too."""
    index, design = text("docs/README.md"), text("ARCHITECTURE.md")
    for name in files():
        page = re.fullmatch(r"docs/((?:design/)?[\w-]+\.md)", name)
        if page and page[1] != "README.md":
            tap.ok(f"]({page[1]}" in index, f"docs/README.md leads to {page[1]}")
        if name.startswith("docs/design/"):
            tap.ok(f"]({name}" in design, f"ARCHITECTURE.md leads to {name}")


def check_places(tap):
    """Files and folders of which the design speaks are there, named from the root."""
    for name in files():
        if name != "ARCHITECTURE.md" and not name.startswith("docs/design/"):
            continue
        spans = re.findall(r"`((?:src|include|tests|docs|manifests|api)/[\w./-]+)`", text(name))
        lost = [span for span in spans if "NAME" not in span
                and not any(file == span or file.startswith(span.rstrip("/") + "/") for file in files())]
        tap.equal(lost, [], f"{name}: the files that it names are there")


def check_gates(tap):
    """The table of which asker leaves out which gate is what the rows of the gates say."""
    _, _, heads = text("src/gate/gate.h").partition("#define GATE_ASKERS(")
    askers = re.findall(r"\w+", heads.partition(")")[0])
    rows = []
    for name in files():
        for gate, said in re.findall(r'struct gate gate_\w+ = \{\s*\.name = "(\w+)",\s*\.left_out =\s*GATE_ASKERS\((.*?)\),\n',
                                     text(name) if re.match(r"src/.*\.c$", name) else "", re.S):
            says = re.findall(r'ASKED|LEFT_OUT\(\s*"([^"]*)"\s*\)', said)
            tap.equal(len(says), len(askers), f"{gate}: a word for each asker")
            left = [(asker, why) for asker, why in zip(askers, says) if why] or [("none", "")]
            rows += [f"| `{gate}` | {asker} | {why} |".replace("|  |", "| |") for asker, why in left]
    _, _, section = text("docs/design/verbs.md").partition("## Which gates are asked")
    tap.ok(len(rows) >= 5, "the rows of gates are found", str(rows))
    tap.equal(re.findall(r"^\| `.*$", section, re.M), sorted(rows), "docs/design/verbs.md: the gates that are left out")


def check_layers(tap):
    table = re.findall(r"^\| `src/(\w+)` \|", text("ARCHITECTURE.md"), re.M)
    folders = {name.split("/")[1] for name in files() if re.match(r"src/\w+/.*\.c$", name)}
    tap.equal(sorted(table), sorted(folders), "ARCHITECTURE: the layers are the folders of src")


def check_ways(tap):
    _, _, section = text("ARCHITECTURE.md").partition("## Three ways through the code")
    ways = re.findall(r"^\| ([^|]+) \| ([\w/., ]+\.c) \|$", section.partition("\n## ")[0], re.M)
    tap.equal(len(ways), 3, "ARCHITECTURE: three ways")
    for what, listed in ways:
        names = [f"src/{name}" for name in listed.split(", ")]
        tap.ok(len(names) <= 10, f"ARCHITECTURE: {what} goes by at most ten files", str(len(names)))
        tap.equal([name for name in names if name not in files()], [], f"ARCHITECTURE: {what}: the files are there")


def check_dialects(tap):
    printed = run("dialects").stdout
    tap.equal(text("docs/dialects.md"), printed, "docs/dialects.md is what `gpuledger dialects` prints")
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| (yes|counted)\b", text("README.md"), re.M)
    tap.equal(sorted(name for name, _ in rows), sorted(re.findall(r"^## (\S+)$", printed, re.M)),
              "README: the table has every dialect")


def check_kueue(tap):
    """Kueue's transformations have every resource of every dialect."""
    blocks = re.findall(r"```yaml\n(.*?)```", text("docs/kueue.md"), re.S)
    [rows] = [each["resources"]["transformations"] for each in map(yaml.safe_load, blocks) if "resources" in each]
    inputs = [row["input"] for row in rows]
    tap.equal(sorted(set(inputs)), sorted(inputs), "no resource is transformed twice")
    table = re.findall(r"^\| \[([\w-]+)\]\(#[\w-]+\) \| ([^|]*) \|", text("docs/dialects.md"), re.M)
    tap.ok(len(table) > 10, "the table of dialects is found", str(len(table)))
    for dialect, resources in table:
        for name in re.findall(r"`([^`]+)`", resources):
            found = [each for each in inputs if each == name or name.endswith("*") and each.startswith(name[:-1])]
            tap.ok(found, f"docs/kueue.md: {dialect}'s {name} is transformed", "\n".join(inputs))
    for row in rows:
        if "multiplyBy" in row:
            tap.ok(row["multiplyBy"] in inputs, f"docs/kueue.md: {row['input']} is multiplied by what is there")


def check_symptoms(tap):
    """Each cause of an audit's findings and each Event is explained."""
    page = text("docs/troubleshooting.md")
    causes = set(re.findall(r'\[AUDIT_\w+\] = \{"(\w+)", "', facts.words())) - {"none"}
    events = set(re.findall(r'\[POD_EVENT_\w+\] = \{"(GPU\w+)"', facts.words()))
    tap.ok(causes and events, "there are causes and Events")
    for name in sorted(causes | events):
        tap.ok(f"`{name}`" in page, f"docs/troubleshooting.md explains {name}")


def check_annotations(tap):
    """Each key of ours is explained somewhere."""
    pages = "\n".join(text(name) for name in files() if re.match(r"docs/[\w-]+\.md$", name))
    sources = "\n".join(text(name) for name in files() if re.match(r"(src|include)/", name))
    # The names under which Events are written are no annotation.
    keys = set(re.findall(r'"(gpuledger\.io/[a-z-]+)"', sources)) - {"gpuledger.io/extender", "gpuledger.io/maintenance"}
    tap.ok(len(keys) > 20, "there are keys")
    for key in sorted(keys):
        tap.ok(f"`{key}`" in pages, f"docs: {key} is explained")


def check_guard(tap):
    tap.equal(text("manifests/overlays/guard/policy.yaml"), run("guard").stdout,
              "overlays/guard: its policy is what `gpuledger guard` prints")
    policy = run("guard", "own-writes").stdout
    tap.equal(text("manifests/overlays/own-writes/policy.yaml"), policy,
              "overlays/own-writes: its policy is what `gpuledger guard own-writes` prints")
    check_own_writes(tap, policy)


def check_own_writes(tap, policy):
    """The keys of ours that it lets through are those of which docs/annotations.md says that we write them."""
    def list_of(name):
        return set(re.findall(r"'(gpuledger\.io/[\w-]+)'", re.search(rf"- name: {name}\n[^\]]*", policy)[0]))

    rows = text("docs/annotations.md").partition("## What gpuledger writes\n")[2]
    for variable, place in (("keys", "pod"), ("nodeKeys", "Nodes")):
        written = re.findall(rf"^\| ([^|]*) \| {place} \|", rows, re.M)
        keys = {key for cell in written for key in re.findall(r"`(gpuledger\.io/[\w-]+)`", cell)}
        tap.equal(list_of(variable), keys, f"docs/annotations.md: what gpuledger writes on a {place.rstrip('s').lower()}")


def check_urls(tap):
    """What kube-scheduler is told to call is a port and a prefix that we have."""
    ports = set(facts.ports().values())
    node_ports = set(re.findall(r"(?:nodePort\n +value: |nodePort: )(\d+)", facts.words()))
    for name in files():
        if not re.match(r"(manifests|examples)/.*\.(yaml|json)$", name):
            continue
        urls = re.findall(r'urlPrefix"?: "?https://([\w.-]+):(\d+)(/[\w-]+)', text(name))
        for host, port, path in urls:
            wanted = node_ports if host == "127.0.0.1" else ports
            service = host.split(".")[0]
            tap.ok(port in wanted and facts.has_route(path, "scheduler")
                   and (host == "127.0.0.1" or service in facts.resources()),
                   f"{name}: {host}:{port}{path}")


def check_advice(tap):
    """Commands that the program and the examples advise."""
    sources = {"gpuledger --help": run("--help").stdout}
    for name in files():
        if re.match(r"(manifests|examples)/.*\.yaml$", name):
            sources[name] = text(name)
    for name, content in sources.items():
        folder = name.rpartition("/")[0]
        advice = re.findall(r"^(?:#  |  )+ *((?:kubectl|kind|gpuledger) .*|\./.*)$", content, re.M)
        for line in advice:
            faults = facts.command_faults(next(facts.split(line)), folder)
            tap.ok(not faults, f"{name}: {line}", faults)


def check_container(tap):
    """What the image is built from is built."""
    targets = re.findall(r"^gpuledger = executable\('(\w+)'", text("meson.build"), re.M)
    content = text("Containerfile")
    tap.equal(re.findall(r"ninja -C /build (\S+)", content), targets, "Containerfile: the target")
    tap.equal(re.findall(r"gather.py \w+ /build/(\S+)", content), targets * 2,
              "Containerfile: the program, in the image and for krew")


def check_events(tap):
    """Every reason of an Event is explained, and no other."""
    reasons = set(re.findall(r'= \{"(GPU\w+)"', text("src/store/pod_event.c")))
    rows = re.findall(r"^\| ((?:`GPU\w+`(?:, )?)+) \|", text("docs/troubleshooting.md"), re.M)
    told = {reason for row in rows for reason in re.findall(r"GPU\w+", row)}
    tap.equal(sorted(told), sorted(reasons), "docs/troubleshooting.md: Events")


def check(tap):
    with Server(snapshot=SNAPSHOT) as server:
        for name in DOCUMENTS:
            document = Document(name)
            spans = {} if name.startswith("tests/") else span_faults(document)
            for kind, faults in sorted(spans.items()):
                tap.ok(not faults, f"{name}: {kind.replace('_faults', 's')}", "\n".join(faults))
            others = {
                "links": link_faults(document),
                "lines": line_faults(document),
                "calls": call_faults(document, server),
            }
            for title, faults in others.items():
                tap.ok(not faults, f"{name}: {title}", "\n".join(faults))
    install = Document("docs/install.md")
    check_listeners(tap, Document("docs/api.md"))
    check_table(tap, install)
    check_pods(tap, install)
    check_numbers(tap, Document("README.md"))
    check_versions(tap, Document("docs/upgrade.md"))
    check_sizes(tap)
    check_limits(tap)
    check_index(tap)
    check_places(tap)
    check_layers(tap)
    check_ways(tap)
    check_gates(tap)
    check_dialects(tap)
    check_kueue(tap)
    check_symptoms(tap)
    check_events(tap)
    check_annotations(tap)
    check_guard(tap)
    check_urls(tap)
    check_advice(tap)
    check_container(tap)


if __name__ == "__main__":
    main(check)
