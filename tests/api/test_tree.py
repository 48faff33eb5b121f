#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree keeps to its own rules: licences are named, layers include only what is below them."""

import pathlib
import re

from common import files, main, text

LICENCE = "SPDX-License-Identifier: Apache-2.0"
HEAD = 3  # lines in which it stands

# The headers of what ARCHITECTURE.md's table of layers calls an outside library.
LIBRARIES = {
    "GLib": r"glib(-object|-unix)?\.h$|glib/|gio/",
    "cJSON": r"cjson/",
    "pthread": r"pthread\.h$",
    "libcurl": r"curl/",
    "libyaml": r"yaml\.h$",
    "libmicrohttpd": r"microhttpd\.h$",
    "GnuTLS": r"gnutls/",
}

# Those are in the layers' own headers, so who includes a layer has its library too.
SHARED = {"GLib", "cJSON", "pthread"}

# What a library without I/O, clock and threads has of the C library, and may not call of GLib.
PURE = ("core", "dialect")
PURE_HEADERS = {"ctype.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdarg.h", "stdbool.h", "stddef.h",
                "stdint.h", "stdlib.h", "string.h"}
IMPURE_CALLS = re.compile(
    r"\b(f?printf|fopen|open|read|write|getenv|time|clock_gettime|usleep|pthread_\w+"
    r"|g_(get_(real|monotonic)_time|getenv|file_\w+|print(err)?|usleep|thread_\w+|mutex_\w+))\("
)

LOCKS = re.compile(r"\b(pthread_(mutex|rwlock|spin|cond)_\w+|g_(mutex|rw_lock|cond)_\w+)\(")

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def architecture():
    """The layers in order, each with the libraries that its row names."""
    rows = re.findall(r"^\| `src/(\w+)` \| [^|]* \| ([^|]*) \|$", text("ARCHITECTURE.md"), re.M)
    return {
        layer: set(LIBRARIES) if named.strip() == "everything"
        else {library for library in LIBRARIES if library in named}
        for layer, named in rows
    }


LAYERS = architecture()
ORDER = list(LAYERS)


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


def call_faults(name, source):
    """What a file calls that its layer may not."""
    code = re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"', "", source, flags=re.S)
    forbidden = {"core": IMPURE_CALLS, "dialect": IMPURE_CALLS, "json": LOCKS, "wire": LOCKS}.get(layer_of(name))
    return [f"calls {match[1]}" for match in forbidden.finditer(code)] if forbidden else []


def check_the_check(tap):
    """It would notice."""
    for name, source, wanted in (
        ("src/core/x.c", '#include "app/log.h"\n', "app/log.h is above core"),
        ("src/core/x.c", "#include <gpuledger/dialect.h>\n", "gpuledger/dialect.h is above core"),
        ("src/core/x.c", "#  include <curl/curl.h>\n", "curl/curl.h: core knows no libcurl"),
        ("src/core/x.c", "#include <cjson/cJSON.h>", "cjson/cJSON.h: core knows no cJSON"),
        ("src/dialect/x.c", "#include <unistd.h>", "unistd.h: dialect does no I/O"),
        ("src/wire/x.c", "#include <yaml.h>", "yaml.h: wire knows no libyaml"),
        ("src/kube/x.c", '#include "http/server.h"', "http/server.h is above kube"),
        ("src/http/x.c", "#include <curl/curl.h>", "curl/curl.h: http knows no libcurl"),
        ("src/app/x.c", "#include <microhttpd.h>", "microhttpd.h: app knows no libmicrohttpd"),
        ("src/app/x.c", '#include "nowhere.h"', "nowhere.h is above app"),
        ("include/gpuledger/error.h", '#include "core/x.h"', "core/x.h is not installed"),
    ):
        faults = include_faults(name, source)
        tap.ok(wanted in faults, f"{name}: {wanted}", "\n".join(faults))
    tap.equal(include_faults("src/cmd/x.c", '#include "kube/clock.h"\n#include <yaml.h>\n'), [],
              "what is right is let be")
    source = '/* time() */ "open("; g_get_monotonic_time(); pthread_mutex_lock(&lock);'
    for name, wanted in (
        ("src/core/x.c", ["calls g_get_monotonic_time", "calls pthread_mutex_lock"]),
        ("include/gpuledger/dialect.h", ["calls g_get_monotonic_time", "calls pthread_mutex_lock"]),
        ("src/wire/x.c", ["calls pthread_mutex_lock"]),
        ("src/app/x.c", []),
    ):
        tap.equal(call_faults(name, source), wanted, f"{name}: calls")


def is_ours(name):
    """Written by hand, in a language with comments."""
    if name.endswith((".c", ".h", ".c.in", ".py", ".sh")):
        return True
    return "." not in pathlib.PurePath(name).name[1:] and text(name).startswith("#!")


def check(tap):
    tap.equal(ORDER, ["core", "json", "dialect", "wire", "app", "kube", "http", "cmd"],
              "ARCHITECTURE.md has the table of layers")
    check_the_check(tap)
    for name in filter(is_ours, files()):
        head = text(name).split("\n")[:HEAD]
        tap.ok(any(LICENCE in line for line in head), f"{name}: names its licence")
    for name in files():
        if not re.match(r"(src|include)/.*\.[ch](\.in)?$", name):
            continue
        faults = include_faults(name, text(name)) + call_faults(name, text(name))
        tap.ok(not faults, f"{name}: keeps to its layer", "\n".join(faults))


if __name__ == "__main__":
    main(check)
