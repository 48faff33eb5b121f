#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of sections of options in C: sections.py OUTPUT FOLDER...

The rows are those that a line SECTION_ROW(NAME, RANK) announces (core/section/section.h) in a header
NAME_section.h below the folders.
"""

import pathlib
import re
import sys

ROW = re.compile(r"^SECTION_ROW\((\w+), (\d+)\);", re.M)


def find_rows(folders):
    """[(rank, name)] in order; two of one rank are an error."""
    rows = []
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*_section.h")):
            rows += [(int(rank), name) for name, rank in ROW.findall(path.read_text(encoding="utf-8"))]
    rows.sort()
    for (rank, name), (other_rank, other) in zip(rows, rows[1:]):
        if rank == other_rank:
            sys.exit(f"sections.py: the sections {name} and {other} have the same rank, {rank}")
    return rows


def write(rows):
    lines = ["/* Written by src/options/sections.py. */", '#include "options/options.h"', ""]
    lines += [f"SECTION_ROW({name}, {rank});" for rank, name in rows]
    lines += ["", "const struct section *const sections[] = {"]
    lines += [f"    &section_{name}," for _, name in rows]
    lines += ["    NULL,", "};", ""]
    return "\n".join(lines)


def main(output, *folders):
    text, path = write(find_rows(folders)), pathlib.Path(output)
    # An unchanged table is compiled once only.
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
