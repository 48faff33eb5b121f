# SPDX-License-Identifier: Apache-2.0
"""What the checks of this folder share: the tree's files, the program, results as TAP."""

import functools
import importlib.util
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "e2e")]

# pylint: disable=wrong-import-position
from program import PATIENCE, SNAPSHOT, Server, run  # noqa: E402
from tap import Tap  # noqa: E402

__all__ = ["PATIENCE", "ROOT", "SNAPSHOT", "Server", "Tap", "files", "main", "need", "run", "text"]


def need(*modules):
    """Ends the test here, as skipped, where Debian's package of a module is not installed."""
    for module in modules:
        if not importlib.util.find_spec(module):
            Tap().skip_all(f"python3-{module} is not installed")
            sys.exit(0)


def main(check):
    tap = Tap()
    check(tap)
    tap.plan()
    sys.exit(1 if tap.failed else 0)


def unlisted():
    """Without git (an archive): all files but those of build folders."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name for name in folders
            if name not in (".git", "__pycache__")
            and not os.path.exists(os.path.join(folder, name, "meson-private"))
        ]
        yield from (os.path.relpath(os.path.join(folder, name), ROOT) for name in names)


@functools.lru_cache(None)
def files():
    """The tree's files relative to its root, those not yet added included."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True,
    )
    names = listed.stdout.split("\0") if listed.returncode == 0 else unlisted()
    return sorted(name for name in set(names) if name and (ROOT / name).is_file())


@functools.lru_cache(None)
def text(name):
    return (ROOT / name).read_text(errors="replace")
