#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of dialects in C: table.py OUTPUT FOLDER... -- SOURCE...

The rows are those that a line DIALECT_ROW(NAME, POSITION) announces (rows.h) in any file of the folders,
which are searched with all below them. SOURCE is what the build compiles; a file that has come since
is an error, since the build does not look for files by itself.
"""

import pathlib
import re
import sys

ROW = re.compile(r"^DIALECT_ROW\((\w+), (\d+)\);", re.M)


def find_rows(folders):
    """[(position, name)] in order."""
    rows = []
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*.[ch]")):
            rows += [(int(position), name) for name, position in ROW.findall(path.read_text(encoding="utf-8"))]
    return sorted(rows)


def write(rows):
    lines = ["/* Written by src/dialect/table.py. */", '#include "dialect/rows.h"', ""]
    lines += [f"DIALECT_ROW({name}, {position});" for position, name in rows]
    lines += ["", "const struct dialect *const dialects[] = {"]
    lines += [f"    &dialect_{name}," for _, name in rows]
    lines += ["    NULL,", "};", f"const size_t dialects_n = {len(rows)};",
              f'G_STATIC_ASSERT({len(rows)} <= DIALECTS_MAX);', ""]
    return "\n".join(lines)


def main(output, *rest):
    folders, sources = rest[: rest.index("--")], rest[rest.index("--") + 1:]
    known = {pathlib.Path(source).resolve() for source in sources}
    there = {path.resolve() for folder in folders for path in pathlib.Path(folder).rglob("*.c")}
    if there != known:
        names = ", ".join(sorted(path.name for path in there ^ known))
        sys.exit(f"table.py: {names}: new or gone since the build was configured: "
                 "run meson setup --reconfigure in the build folder")
    text, path = write(find_rows(folders)), pathlib.Path(output)
    # An unchanged table is compiled once only.
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
