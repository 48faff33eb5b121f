# SPDX-License-Identifier: Apache-2.0
"""What is true of the program and of the tree, for documents to be held against."""

import functools
import re
import shlex

from common import Server, files, run, text
from walk import send

# Where words of documents are looked for: everywhere but in documents, and in what reads them.
SILENT = re.compile(r"\.md$|^tests/api/|/corpus/|\.sum$|^LICENSE$")

# Shell commands that documents may use; of what they do nothing is known here.
FOREIGN = {"cd", "cmp", "curl", "docker", "git", "helm", "kind", "kubectl", "kustomize", "meson", "mkdir", "ninja",
           "pkg-config", "podman", "python3"}

OPTION = re.compile(r"--[a-z][a-z0-9-]*")


@functools.lru_cache(None)
def commands():
    """The program's subcommands, each with its long options."""
    overview = run("--help").stdout
    names = re.findall(r"^  (\w+) +\S", overview.split("Commands:")[1].split("\n\n")[0], re.M)
    return {name: options(run(name, "--help-all" if name == "serve" else "--help").stdout) for name in names}


def options(help_text):
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]*)", help_text, re.M))


@functools.lru_cache(None)
def variables():
    """Environment variables: what the manual names, and what scripts and tests may read."""
    named = re.findall(r"environment\s+(\w+)(?:\s+or\s+(\w+))?", run("man").stdout)
    read = re.findall(r"\b[A-Z][A-Z0-9_]{3,}\b", words())
    return {name for pair in named for name in pair} | set(read)


@functools.lru_cache(None)
def served():
    """What a running program says: (routes by listener, names of metrics, sample of the table)."""
    with Server() as server:
        index = send(server.operations, "GET", "/").body.decode()
        metrics = send(server.operations, "GET", "/metrics").body.decode()
        table = send(server.operations, "GET", "/api/v1/nodes?output=table").body.decode()
    here, there = index.split("The scheduler's listener\n")
    rows = r"^  (\w+) +(/\S*)"
    routes = {
        "operations": re.findall(rows, here, re.M),
        "scheduler": re.findall(rows, there, re.M),
    }
    return routes, set(re.findall(r"^# HELP (\w+)", metrics, re.M)), table


def metrics():
    return served()[1]


@functools.lru_cache(None)
def ports():
    """The port of each listener unless configured."""
    config = run("serve", "--print-config").stdout
    return {
        listener: re.search(rf'^{option}: "[^"]*:(\d+)"', config, re.M)[1]
        for listener, option in (("scheduler", "listen"), ("operations", "ops-listen"))
    }


def has_route(path, listener=None, method=None):
    """Whether a path, with capitals for parameters, or the beginning of one is served."""
    parts = [part for part in path.split("?")[0].split("/") if part]
    for name, rows in served()[0].items():
        for verb, pattern in rows:
            wanted = [part for part in pattern.split("/") if part]
            if listener in (None, name) and method in (None, verb) and len(parts) <= len(wanted):
                if all(w == p or w.startswith("{") for w, p in zip(wanted, parts)):
                    return True
    return False


@functools.lru_cache(None)
def words():
    """What there is to be named, scenarios as they are named to run them."""
    known = "\n".join(text(name) for name in files() if not SILENT.search(name))
    return "\n".join([known, *(
        name.replace("_", "-") for name in re.findall(r"^def scenario_(\w+)", known, re.M))])


def has_word(word):
    """Anywhere in the tree, whole; what ends in a dash or a low line may be only a beginning, and
    capitals the end of a constant's name."""
    # Beginning with the word itself: with what may not stand before it, the search takes a hundred times as long.
    end = "" if word[-1] in "-_" else r"(?!\w)"
    before = r"[^\W_]" if word.isupper() else r"\w"
    return any(not re.match(before, words()[found.start() - 1:found.start()])
               for found in re.finditer(re.escape(word) + end, words()))


@functools.lru_cache(None)
def resources():
    """Names of Kubernetes objects in the manifests."""
    return {
        name for file in files() if re.match(r"(manifests|examples)/.*\.yaml$", file)
        for name in re.findall(r"^ +name: ([\w.-]+)$", text(file), re.M)
    }


def places(path, folder):
    """Where a path of a document may start: at the document, the tree's root, or at the sources."""
    bases = [folder.split("/") if folder else []]
    if not path.startswith("../"):
        bases += [[], ["src"], ["include"]]
    for base in bases:
        at = list(base)
        for part in path.rstrip("/").split("/"):
            at = at[:-1] if part == ".." else at if part == "." else at + [part]
        yield "/".join(at)


def find_files(path, folder=""):
    """The files that a path of a document names, or that are in the folder it names. Capitals
    stand for any name, braces for each of several."""
    path = re.sub(r"[A-Z]{3,}(?=\.\w+$)", "*", path)
    brace = re.search(r"\{([^}]*)\}", path)
    if brace:
        each = [find_files(path[:brace.start()] + name + path[brace.end():], folder)
                for name in brace[1].split(",")]
        return sum(each, []) if all(each) else []
    for place in places(path, folder):
        shape = re.compile(re.escape(place).replace(r"\*", "[^/]+") + "(/|$)")
        found = [name for name in files() if shape.match(name)]
        if found:
            return found
    return [] if "/" in path else [name for name in files() if name.endswith("/" + path)]


def split(line):
    """The commands of a shell line, as words each."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    command = []
    for token in lexer:
        if token and set(token) <= set("();|&"):
            yield command
            command = []
        else:
            command.append(token)
    yield command


def command_faults(command, folder=""):
    """What is wrong with a command of a document, in words."""
    while "=" in command[0]:
        name = command.pop(0).partition("=")[0]
        if name not in variables():
            return [f"there is no variable {name}"]
    program, *rest = command
    if program == "kubectl" and rest[:1] == ["gpuledger"]:
        program, *rest = rest
    if program == "gpuledger":
        known = commands().get(rest[0])
        if known is None:
            return [f"there is no command {rest[0]!r}"]
        return [f"{rest[0]} has no {option}" for option in OPTION.findall(" ".join(rest))
                if option not in known]
    if re.match(r"(\./|tests/|examples/|manifests/)", program):
        script = find_files(program.removeprefix("./"), folder)
        if len(script) != 1:
            return [f"there is no {program}"]
        known = text(script[0]) if program == "tests/run" else words()
        return [f"{program} has no {word}" for word in rest if word not in known]
    if program not in FOREIGN:
        return [f"{program!r} is not known"]
    return foreign_faults(program, rest, folder)


def appliable(path, folder):
    """A file, or a folder with some directly in it."""
    found = find_files(path, folder)
    return len(found) == 1 or any(
        name == f"{place}/{name.rpartition('/')[2]}" and name.endswith(".yaml")
        for name in found for place in places(path, folder)
    )


def foreign_faults(program, rest, folder):
    """Paths and objects that are handed to somebody else's program."""
    faults = []
    for before, word in zip([None] + rest, rest):
        kind, _, name = word.partition("/")
        if program == "kubectl" and kind in ("deployment", "svc", "service"):
            if name not in resources() and not name.startswith("gpushare-"):
                faults.append(f"there is no object {word}")
        elif program == "kubectl" and before == "-k":
            if not find_files(f"{word}/kustomization.yaml", folder):
                faults.append(f"nothing to apply with -k in {word}")
        elif program == "kubectl" and before == "-f" and word != "-":
            if not appliable(word, folder):
                faults.append(f"nothing to apply with -f in {word}")
        elif re.match(r"(examples|manifests|tests|api|src|include)/", word):
            if not find_files(word, folder):
                faults.append(f"there is no {word}")
    return faults
