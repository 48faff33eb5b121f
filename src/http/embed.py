#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files as C text.

embed.py INPUT OUTPUT NAME      gives resource_NAME and its length
embed.py --page OUTPUT FILE...  gives page_files: each as it is, and with gzip
"""

import gzip
import pathlib
import sys

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE_MAX = 150_000  # bytes of all its files


def literal(line):
    """A C string; a '?' is escaped too, since two of them can begin a trigraph."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in line) + '"'


def literals(data, width=64):
    """Lines of text as they are, other bytes in equal pieces."""
    lines = data.splitlines(keepends=True)
    if any(len(line) > 4000 for line in lines):
        lines = [data[at:at + width] for at in range(0, len(data), width)]
    return "".join(f"    {literal(line)}\n" for line in lines or [b""])


def embed(source, target, name):
    data = pathlib.Path(source).read_bytes()
    target.write(f"const char resource_{name}[] =\n{literals(data)}    ;\n")
    target.write(f"const size_t resource_{name}_length = {len(data)};\n")


def embed_page(sources, target):
    rows, total = [], 0
    for source in map(pathlib.Path, sources):
        data = source.read_bytes()
        packed = gzip.compress(data, 9, mtime=0)
        total += len(data)
        rows.append(f'    {{"{source.name}", "{TYPES[source.suffix]}",\n{literals(data)}    , {len(data)},\n'
                    f"{literals(packed)}    , {len(packed)}}},\n")
    if total > PAGE_MAX:
        sys.exit(f"embed.py: the page has {total} bytes, at most {PAGE_MAX} are allowed")
    target.write("const struct page_file page_files[] = {\n" + "".join(rows) + "    {0},\n};\n")


def main():
    page = sys.argv[1] == "--page"
    with open(sys.argv[2], "w", encoding="ascii") as target:
        target.write('#include "http/resources.h"\n\n')
        if page:
            embed_page(sys.argv[3:], target)
        else:
            embed(sys.argv[1], target, sys.argv[3])


if __name__ == "__main__":
    main()
