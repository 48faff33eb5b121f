# SPDX-License-Identifier: Apache-2.0
"""The build with all mistakes: a copy of the tree, of which only files that have changed are written again."""

import json
import os
import pathlib
import shutil
import subprocess

from tables import ROOT, Wrong

HEADER = "tests/mutants/mutant.h"
OPTIONS = ["-Doptimization=1", "-Ddebug=false", "-Dwarning_level=0"]


def list_files():
    """The tree's files, those not yet added included."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            stdout=subprocess.PIPE, text=True, check=False)
    if listed.returncode == 0:
        return sorted({name for name in listed.stdout.split("\0") if name and os.path.lexists(ROOT / name)})
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in (".git", "__pycache__")
                      and not (pathlib.Path(folder) / name / "meson-private").exists()
                      and not (name.startswith("build") and folder == str(ROOT))]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return sorted(found)


def write_file(source, target, text):
    """Writes what differs: ninja goes by times."""
    if source.is_symlink():
        if not target.is_symlink() or os.readlink(source) != os.readlink(target):
            target.unlink(missing_ok=True)
            target.symlink_to(os.readlink(source))
        return
    content = source.read_bytes() if text is None else text.encode()
    if target.is_symlink() or not target.is_file() or target.read_bytes() != content:
        target.unlink(missing_ok=True)
        target.write_bytes(content)
    shutil.copymode(source, target)


def copy_tree(tree, planted):
    """Whether files have come or gone: meson lists some folders only when it configures."""
    wanted = list_files()
    had = {os.path.relpath(os.path.join(folder, name), tree)
           for folder, folders, names in os.walk(tree) if "__pycache__" not in folder for name in names}
    for name in had - set(wanted):
        (tree / name).unlink()
    for name in wanted:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(ROOT / name, tree / name, planted.get(name))
    return had != set(wanted)


def run_logged(command, log):
    with log.open("ab") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        lines = log.read_text(errors="replace").splitlines()
        errors = [line for line in lines if "error:" in line or line.startswith("ERROR")]
        raise Wrong("\n".join([f"'{' '.join(map(str, command[:3]))}' failed (see {log}):"] + (errors or lines)[-20:]))


class Build:
    def __init__(self, folder):
        self.folder, self.tree, self.out = folder, folder / "tree", folder / "out"
        self.log = folder / "build.log"

    def prepare(self, planted):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        moved = copy_tree(self.tree, planted)
        arguments = ["-w", "-include", str(self.tree / HEADER)]
        if not (self.out / "build.ninja").is_file():
            run_logged(["meson", "setup", *OPTIONS, f"-Dc_args={arguments}", self.out, self.tree], self.log)
        elif moved:
            run_logged(["meson", "setup", "--reconfigure", self.out, self.tree], self.log)

    def introspect(self, what):
        return json.loads((self.out / "meson-info" / f"intro-{what}.json").read_text())

    def make(self, tests, jobs):
        """Builds what the tests need."""
        files = {target["id"]: target["filename"] for target in self.introspect("targets")}
        needed = {os.path.relpath(file, self.out) for test in tests for one in test.depends for file in files[one]}
        run_logged(["ninja", "-C", self.out, "-k", "0", f"-j{jobs}", *sorted(needed)], self.log)
