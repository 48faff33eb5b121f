#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree keeps to its own rules: licences are named, layers include only what is below them."""

import functools
import pathlib
import re

from common import files, main, text
from shapes import check_shapes

LICENCE = "SPDX-License-Identifier: Apache-2.0"
HEAD = 3  # lines in which it stands

# The headers of what ARCHITECTURE.md's table of folders calls an outside library.
LIBRARIES = {
    "GLib": r"glib(-object|-unix)?\.h$|glib/|gio/",
    "cJSON": r"cjson/",
    "pthread": r"pthread\.h$",
    "libcurl": r"curl/",
    "libyaml": r"yaml\.h$",
    "libmicrohttpd": r"microhttpd\.h$",
    "GnuTLS": r"gnutls/",
    "zlib": r"zlib\.h$",
}

# Those are in the layers' own headers, so who includes a layer has its library too.
SHARED = {"GLib", "cJSON", "pthread"}

# What a library without I/O, clock and threads has of the C library, and may not call of GLib.
PURE = ("core", "policy", "plan", "dialect")
PURE_HEADERS = {"ctype.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdarg.h", "stdbool.h", "stddef.h",
                "stdint.h", "stdlib.h", "string.h"}
IMPURE_CALLS = re.compile(
    r"\b(f?printf|fopen|open|read|write|getenv|time|clock_gettime|usleep|pthread_\w+"
    r"|g_(get_(real|monotonic)_time|getenv|file_\w+|print(err)?|usleep|thread_\w+|mutex_\w+))\("
)

LOCKS = re.compile(r"\b(pthread_(mutex|rwlock|spin|cond)_\w+|g_(mutex|rw_lock|cond)_\w+)\(")

PURE_CALLS = {"json": LOCKS, "wire": LOCKS} | {folder: IMPURE_CALLS for folder in PURE}

# A reader finds what he looks for in a folder of so many files, sources and headers counted once, and so
# much of all lines.
FILES_MAX = 22
LINES_MAX = 0.15

# Only dialects know dialects' keys. Others name what people write in options' help texts.
KEYS_FOLDER = "src/dialect/"
# Groups, opt-outs and quotas are of no dialect, though Koordinator names some. Who comes from another scheduler knows its words.
KEYS_ELSEWHERE = ("src/options/", "src/wire/pod_group.", "src/core/object.", "src/wire/resource_quota.",
                  "src/migrate/peers.")
NO_DIALECTS = {"gpuledger.io", "kubernetes.io", "scheduling.x-k8s.io"}  # whose keys are everybody's

# Only core changes the ledger's nodes. Others change copies of them, to see what would be.
NODE_COPIES = {
    "src/policy/what_if.c", "src/explain/remedy_cpu_pods.c", "src/explain/remedy_step.c", "src/queue/reservation.c",
    "src/queue/nominees.c",
}
NODE_CHANGE = re.compile(r"\bnode->(\w+)(?:\[[^]]*\])?(?:\.\w+)*\s*(?:[-+|&]?=(?!=)|\+\+|--)")

# By how many files outside its own ones a capability is known, that is, whose headers they include. To be three at most;
# a figure may only fall.
KNOWN_BY = {
    "quotas": (14, ("src/quota/", "src/gate/quotas.")),
    "elastic quotas": (6, ("src/quota/elastic/",)),
    "gangs": (11, ("src/gang/", "src/verbs/gang/", "src/gate/gang_room.")),
    "mode switch": (8, ("src/switch/", "src/wire/switch_", "src/gate/mode_switch.")),
    "seals": (6, ("src/store/seals/",)),
    "node backoff": (2, ("src/gate/node_backoff/",)),
    "idle pods": (4, ("src/gate/idle_pods/",)),
    "waits": (1, ("src/gate/waits/",)),
    "reclaim": (3, ("src/reclaim/", "src/explain/reclaim/")),
    "usage": (1, ("src/usage/",)),
}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def architecture():
    """The folders in order, each with the libraries that its row names."""
    rows = re.findall(r"^\| `src/(\w+)` \| [^|]* \| ([^|]*) \|$", text("ARCHITECTURE.md"), re.M)
    return {
        layer: set(LIBRARIES) if named.strip() == "everything"
        else {library for library in LIBRARIES if library in named}
        for layer, named in rows
    }


LAYERS = architecture()
ORDER = list(LAYERS)
SENDERS = ["src/cmd/serve/serve.c"]


def public_layer(header):
    """A public header belongs to the layer that has its source, core if there is none."""
    source = pathlib.PurePath(header).stem + ".c"
    return next((layer for layer in PURE if f"src/{layer}/{source}" in files()), "core")


def layer_of(name):
    """Of a source or header, None for what is in no layer."""
    if name.startswith("include/"):
        return public_layer(name)
    match = re.match(r"src/(\w+)/", name)
    return match and match[1]


def allowed_libraries(layer):
    below = ORDER[: ORDER.index(layer)]
    return LAYERS[layer] | {lib for each in below for lib in LAYERS[each] & SHARED}


def include_faults(name, source):
    """What a file includes that its layer may not."""
    layer, faults = layer_of(name), []
    for mark, header in INCLUDE.findall(source):
        first = header.split("/")[0]
        library = next((lib for lib, own in LIBRARIES.items() if re.match(own, header)), None)
        if header.startswith("gpuledger/"):
            other = public_layer(header)
            if f"include/{header}" not in files():
                faults.append(f"{header} is not there")
        elif mark == '"':
            other = first
            if f"src/{header}" not in files():
                faults.append(f"{header} is not there, counted from src")
            if name.startswith("include/"):
                faults.append(f"{header} is not installed")
        else:
            other = None
        if other and (other not in ORDER or ORDER.index(other) > ORDER.index(layer)):
            faults.append(f"{header} is above {layer}")
        if library and library not in allowed_libraries(layer):
            faults.append(f"{header}: {layer} knows no {library}")
        if layer in PURE and mark == "<" and not library and not header.startswith("gpuledger/"):
            if header not in PURE_HEADERS:
                faults.append(f"{header}: {layer} does no I/O")
    return faults


def header_circles(sources):
    """Of headers by name, each that includes itself, by whatever way."""
    included = {name: {f"include/{header}" for _, header in INCLUDE.findall(source)} & set(sources)
                for name, source in sources.items()}
    circles = []
    for name in sources:
        reached, ahead = set(), [name]
        while ahead:
            fresh = included[ahead.pop()] - reached
            reached |= fresh
            ahead += fresh
        if name in reached:
            circles.append(name)
    return circles


def check_installed_headers(tap):
    """Includes of installed headers run one way."""
    tap.equal(header_circles({"include/gpuledger/a.h": "#include <gpuledger/b.h>\n",
                              "include/gpuledger/b.h": "#include <gpuledger/c.h>\n",
                              "include/gpuledger/c.h": "#include <gpuledger/b.h>\n"}),
              ["include/gpuledger/b.h", "include/gpuledger/c.h"], "a circle of headers would be noticed")
    sources = {name: text(name) for name in files() if re.match(r"include/gpuledger/.*\.h$", name)}
    tap.ok(len(sources) > 10, "the installed headers are found", str(len(sources)))
    tap.equal(header_circles(sources), [], "no installed header includes itself by way of another")


def call_faults(name, source):
    """What a file calls that its layer may not."""
    code = re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"', "", source, flags=re.S)
    forbidden = PURE_CALLS.get(layer_of(name))
    faults = [f"calls {match[1]}" for match in forbidden.finditer(code)] if forbidden else []
    # Pods end through the one door (evict/door.h); whoever gives it a way to send says so here.
    if not name.startswith("src/evict/") and name not in SENDERS:
        faults += [f"calls {match[1]}" for match in re.finditer(r"\b(eviction_send)\(", code)]
    return faults


def literals(source):
    """The texts in C's code, those in comments and names of headers left out."""
    code = re.sub(r'/\*.*?\*/|^\s*#\s*include.*?$', "", source, flags=re.S | re.M)
    return [match[1] for match in re.finditer(r'"((?:\\.|[^"\\])*)"', code)]


@functools.lru_cache(None)
def dialect_keys():
    """What the keys of dialects begin with (domains), and those that have none (ALIYUN_COM_GPU_MEM_IDX)."""
    keys = set()
    for name in files():
        if name.startswith(KEYS_FOLDER) and name.endswith((".c", ".h")):
            for each in literals(text(name)):
                keys |= set(re.findall(r"(?<![\w./-])((?:[a-z0-9-]+\.)+[a-z]+/|[a-z]+-gpu/)[a-zA-Z]", each))
                keys |= set(re.findall(r"\b[A-Z]+(?:_[A-Z]+){2,}\b", each))
    return {key for key in keys if not any(key.endswith(own + "/") for own in NO_DIALECTS)}


def key_faults(name, source):
    """Keys of dialects in a file that is none of theirs."""
    if not name.startswith("src/") or name.startswith((KEYS_FOLDER, *KEYS_ELSEWHERE)) or name.endswith("_section.c"):
        return []
    return [f"knows {key}" for each in literals(source) for key in sorted(dialect_keys()) if key in each]


@functools.lru_cache(None)
def node_fields():
    body = re.search(r"^struct node \{\n(.*?)^\};", text("include/gpuledger/ledger.h"), re.S | re.M)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return {name for line in body.split(";") for name in re.findall(r"(\w+)(?:\[\w*\])?\s*(?:,|$)", line.strip())}


def node_faults(name, source):
    """What a file above core writes into a node. Other structs' pointers called node have other fields."""
    if not name.startswith("src/") or name.startswith("src/core/") or name in NODE_COPIES:
        return []
    if "struct node *node" not in source:
        return []
    code = re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"', "", source, flags=re.S)
    return [f"changes node->{match[1]}" for match in NODE_CHANGE.finditer(code) if match[1] in node_fields()]


def check_the_check(tap):
    """It would notice."""
    for name, source, wanted in (
        ("src/core/x.c", '#include "base/log.h"\n', "base/log.h is above core"),
        ("src/core/x.c", "#include <gpuledger/dialect.h>\n", "gpuledger/dialect.h is above core"),
        ("src/core/x.c", "#  include <curl/curl.h>\n", "curl/curl.h: core knows no libcurl"),
        ("src/core/x.c", "#include <cjson/cJSON.h>", "cjson/cJSON.h: core knows no cJSON"),
        ("src/dialect/x.c", "#include <unistd.h>", "unistd.h: dialect does no I/O"),
        ("src/wire/x.c", "#include <yaml.h>", "yaml.h: wire knows no libyaml"),
        ("src/kube/x.c", '#include "http/server.h"', "http/server.h is above kube"),
        ("src/http/x.c", "#include <curl/curl.h>", "curl/curl.h: http knows no libcurl"),
        ("src/verbs/x.c", "#include <microhttpd.h>", "microhttpd.h: verbs knows no libmicrohttpd"),
        ("src/store/x.c", '#include "record/record.h"', "record/record.h is above store"),
        ("src/verbs/x.c", '#include "nowhere.h"', "nowhere.h is above verbs"),
        ("include/gpuledger/error.h", '#include "core/x.h"', "core/x.h is not installed"),
    ):
        faults = include_faults(name, source)
        tap.ok(wanted in faults, f"{name}: {wanted}", "\n".join(faults))
    tap.equal(include_faults("src/cmd/x.c", '#include "kube/clock.h"\n#include <yaml.h>\n'), [],
              "what is right is let be")
    for name, source, wanted in (
        ("src/verbs/x.c", '#define MIG "nvidia.com/mig-"', ["knows nvidia.com/"]),
        ("src/store/x.c", 'f("ALIYUN_COM_GPU_MEM_IDX"); /* "hami.io/x" */', ["knows ALIYUN_COM_GPU_MEM_IDX"]),
        ("src/store/x.c", 'f("gpuledger.io/seal", "kubernetes.io/hostname");', []),
        ("src/options/x.c", 'help = "one aliyun.com/gpu-mem"', []),
        ("src/queue/x_section.c", 'help = "one aliyun.com/gpu-mem"', []),
    ):
        tap.equal(key_faults(name, source), wanted, f"{name}: keys")
    for name, source, wanted in (
        ("src/store/x.c", "struct node *node; node->cordoned = true; node->cards[i].healthy |= 1; node->used--;",
         ["changes node->cordoned", "changes node->cards"]),
        ("src/store/x.c", "struct node *node; if (node->cordoned == yes) a = node->host;", []),
        ("src/core/x.c", "struct node *node; node->cordoned = true;", []),
    ):
        tap.equal(node_faults(name, source), wanted, f"{name}: nodes")
    for name in NODE_COPIES:
        tap.ok(name in files(), f"{name}: is there")
    source = '/* time() */ "open("; g_get_monotonic_time(); pthread_mutex_lock(&lock);'
    for name, wanted in (
        ("src/core/x.c", ["calls g_get_monotonic_time", "calls pthread_mutex_lock"]),
        ("include/gpuledger/dialect.h", ["calls g_get_monotonic_time", "calls pthread_mutex_lock"]),
        ("src/wire/x.c", ["calls pthread_mutex_lock"]),
        ("src/base/x.c", []),
    ):
        tap.equal(call_faults(name, source), wanted, f"{name}: calls")
    for name, wanted in (("src/switch/x.c", ["calls eviction_send"]), ("src/evict/x.c", [])):
        tap.equal(call_faults(name, "eviction_send(client);"), wanted, f"{name}: evictions")


def check_sizes(tap):
    """No folder is a heap."""
    folders, lines = {}, {}
    for name in files():
        if re.match(r"src/.*\.[ch]$", name):
            folder = str(pathlib.PurePath(name).parent)
            folders.setdefault(folder, set()).add(pathlib.PurePath(name).stem)
            room = layer_of(name)
            lines[room] = lines.get(room, 0) + text(name).count("\n")
    for folder, stems in folders.items():
        tap.ok(len(stems) <= FILES_MAX, f"{folder}: has at most {FILES_MAX} files", str(len(stems)))
    for room, count in lines.items():
        tap.ok(count <= LINES_MAX * sum(lines.values()), f"src/{room}: has at most {LINES_MAX:.0%} of the lines",
               str(count))


def known_by(sources, homes):
    """The files outside those that include a header of them."""
    return sorted(name for name, source in sources.items() if not name.startswith(homes) and
                  any(f"src/{header}".startswith(homes) for _, header in INCLUDE.findall(source)))


def check_known(tap):
    """A capability is known by few files."""
    lines = {"src/a/x.c": '#include "b/y.h"', "src/b/y.c": '#include "b/y.h"', "src/a/z.c": '#include "c/b/y.h"'}
    tap.equal(known_by(lines, ("src/b/",)), ["src/a/x.c"], "which files know a capability")
    sources = {name: text(name) for name in files() if re.match(r"src/.*\.[ch]$", name)}
    for capability, (most, homes) in KNOWN_BY.items():
        for home in homes:
            tap.ok(any(name.startswith(home) for name in sources), f"{capability}: {home} is there")
        known = known_by(sources, homes)
        tap.ok(len(known) <= most, f"{capability}: known by at most {most} files", "\n".join(known))


def is_ours(name):
    """Written by hand, in a language with comments."""
    if name.endswith((".c", ".h", ".c.in", ".py", ".sh")):
        return True
    return "." not in pathlib.PurePath(name).name[1:] and text(name).startswith("#!")


def check(tap):
    tap.equal(ORDER, ["core", "policy", "plan", "json", "dialect", "wire", "base", "quota", "gang", "queue", "gate", "store", "verbs", "inspect",
                      "explain", "record", "audit", "migrate", "simulate", "kube", "evict", "kueue", "usage", "snapshot", "maintain", "switch",
                      "reclaim", "http",
                       "options", "client", "cmd"],
              "ARCHITECTURE.md has the table of folders")
    check_sizes(tap)
    check_known(tap)
    check_shapes(tap, {name: text(name) for name in files() if re.match(r"(src|include)/.*\.[ch]$", name)})
    check_the_check(tap)
    check_installed_headers(tap)
    for name in filter(is_ours, files()):
        head = text(name).split("\n")[:HEAD]
        tap.ok(any(LICENCE in line for line in head), f"{name}: names its licence")
    for name in files():
        if not re.match(r"(src|include)/.*\.[ch](\.in)?$", name):
            continue
        faults = include_faults(name, text(name)) + call_faults(name, text(name))
        faults += key_faults(name, text(name)) + node_faults(name, text(name))
        tap.ok(not faults, f"{name}: keeps to its folder", "\n".join(faults))


if __name__ == "__main__":
    main(check)
