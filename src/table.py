#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a table of rows in C: table.py KIND OUTPUT FOLDER... -- SOURCE...

The rows of KIND, dialect say, are those that a line DIALECT_ROW(NAME, POSITION) announces in any file of the folders,
which are searched with all below them. SOURCE is what the build compiles; a file that has come since is an error, since
the build does not look for files by itself.
"""

import pathlib
import re
import sys

# By kind: the header with the macro, the table, and the most rows that it may have.
TABLES = {
    "dialect": ("dialect/rows.h", "dialects", "DIALECTS_MAX"),
    "gate": ("gate/gate.h", "gates_table", "GATES_MAX"),
    "kind": ("store/kinds/kind.h", "kinds", "FEEDS_MAX"),
    "part": ("gate/part.h", "parts_table", "PART_ROWS_MAX"),
}

COUNTED = {"dialect": "size_t", "kind": "int"}  # those whose number of rows is told, and its type


def find_rows(kind, folders):
    """[(position, name)] in order."""
    row = re.compile(rf"^{kind.upper()}_ROW\(\s*(\w+),\s*(\d+)\);", re.M)
    rows = []
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*.[ch]")):
            rows += [(int(position), name) for name, position in row.findall(path.read_text(encoding="utf-8"))]
    rows.sort()
    for (position, name), (other_position, other) in zip(rows, rows[1:]):
        if position == other_position:
            sys.exit(f"table.py: the {kind}s {name} and {other} have the same position, {position}")
    return rows


def write(kind, rows):
    header, table, most = TABLES[kind]
    lines = ["/* Written by src/table.py. */", f'#include "{header}"', ""]
    lines += [f"{kind.upper()}_ROW({name}, {position});" for position, name in rows]
    lines += ["", f"const struct {kind} *const {table}[] = {{"]
    lines += [f"    &{kind}_{name}," for _, name in rows]
    lines += ["    NULL,", "};"]
    if kind in COUNTED:
        lines += [f"const {COUNTED[kind]} {table}_n = {len(rows)};"]
    lines += [f"G_STATIC_ASSERT({len(rows)} <= {most});", ""]
    return "\n".join(lines)


def main(kind, output, *rest):
    folders, sources = rest[: rest.index("--")], rest[rest.index("--") + 1:]
    known = {pathlib.Path(source).resolve() for source in sources}
    there = {path.resolve() for folder in folders for path in pathlib.Path(folder).rglob("*.c")}
    if there != known:
        names = ", ".join(sorted(path.name for path in there ^ known))
        sys.exit(f"table.py: {names}: new or gone since the build was configured: "
                 "run meson setup --reconfigure in the build folder")
    text, path = write(kind, find_rows(kind, folders)), pathlib.Path(output)
    # An unchanged table is compiled once only.
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
