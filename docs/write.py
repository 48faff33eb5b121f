#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes anew what is made from the program's tables: docs/write.py PROGRAM [ROOT].

docs/dialects.md, the two policies of `guard` and the configuration's schema are what the program prints. README's
table of dialects gets a row for each dialect that has none; rows that are there stay as people wrote them.
"""

import json
import pathlib
import re
import subprocess
import sys

README_ROW = re.compile(r"^\| `([\w-]+)` \| .* \| (?:yes|counted)\b.*\n", re.M)


def readme_rows(dialects):
    """{name: row} from docs/dialects.md. A bind writes nothing for who is only counted."""
    rows = {}
    for name, resources in re.findall(r"^\| \[([\w-]+)\]\(#[\w-]+\) \| ([^|]*) \|", dialects, re.M):
        section = dialects.split(f"\n## {name}\n")[1].split("\n## ")[0]
        placed = "counted" if "- **A bind writes:** Nothing" in section else "yes"
        rows[name] = f"| `{name}` | {resources} | {placed} |\n"
    return rows


def update_readme(text, dialects):
    rows, kept = readme_rows(dialects), README_ROW.findall(text)
    start, end = (each.span() for each in (list(README_ROW.finditer(text))[i] for i in (0, -1)))
    table = "".join(match[0] for match in README_ROW.finditer(text) if match[1] in rows)
    table += "".join(row for name, row in rows.items() if name not in kept)
    return text[: start[0]] + table + text[end[1]:]


def main(program, root=pathlib.Path(__file__).parents[1]):
    def told(*arguments):
        return subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout

    root = pathlib.Path(root)
    dialects = told("dialects")
    schema = json.loads(told("serve", "--print-schema"))
    readme = root / "README.md"
    for path, text in (
        (root / "docs/dialects.md", dialects),
        (root / "manifests/overlays/guard/policy.yaml", told("guard")),
        (root / "manifests/overlays/own-writes/policy.yaml", told("guard", "own-writes")),
        (root / "api/config.schema.json", json.dumps(schema, indent=4, ensure_ascii=False) + "\n"),
        (readme, update_readme(readme.read_text(encoding="utf-8"), dialects)),
    ):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
