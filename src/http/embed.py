#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a file as C text: embed.py INPUT OUTPUT NAME gives resource_NAME and its length."""

import sys


def literal(line):
    """A C string; a '?' is escaped too, since two of them can begin a trigraph."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in line) + '"'


def main():
    source, target, name = sys.argv[1:]
    with open(source, "rb") as file:
        data = file.read()
    with open(target, "w", encoding="ascii") as file:
        file.write('#include "http/resources.h"\n\n')
        file.write(f"const char resource_{name}[] =\n")
        for line in data.splitlines(keepends=True) or [b""]:
            file.write("    " + literal(line) + "\n")
        file.write(f"    ;\nconst size_t resource_{name}_length = {len(data)};\n")


if __name__ == "__main__":
    main()
