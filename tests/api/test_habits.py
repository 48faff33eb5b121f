#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What CONTRIBUTING asks of commits is asked by the hooks, and of lines by tests/format; locks are such that
ThreadSanitizer sees them."""

import pathlib
import subprocess
import tempfile

from common import ROOT, main

RIGHT = ("core: count what is free", "core, json: read it once", "tests/e2e: heed it", "ci: bring a cache",
         "Merge the edges", "fixup! core: count what is free", "core: " + "x" * 66)
WRONG = ("core: " + "x" * 67, "count what is free", "Core: count what is free", "core: Count what is free",
         "core: counted what is free", "core: counting what is free", "core: count what is free.", "core:count", "")


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def check_subjects(tap, folder):
    message = folder / "message"
    for subjects, wanted in ((RIGHT, 0), (WRONG, 1)):
        for subject in subjects:
            message.write_text(f"{subject}\n\nProblem: it was not.\n# a comment of git's\n")
            out = run(folder, ROOT / "tests/hooks/commit-msg", message)
            tap.equal(out.returncode, wanted, f"subject '{subject[:40]}', {len(subject)} characters")


def check_format(tap, folder):
    """Only of lines that were changed, and of those it tells."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "core.hooksPath=/dev/null")
    source = folder / "a.c"
    run(folder, *git, "init", "-q", "-b", "main")
    (folder / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    source.write_text("int  old;\n\nint same;\n\nint end;\n")
    run(folder, *git, "add", "-A")
    run(folder, *git, "commit", "-q", "-m", "a: begin")
    tap.equal(run(folder, ROOT / "tests/format").returncode, 0, "format: nothing was changed")
    source.write_text("int  old;\n\nint same;\n\nint right;\nint end;\n")
    tap.equal(run(folder, ROOT / "tests/format").returncode, 0, "format: an old line is let be")
    source.write_text("int  old;\n\nint same;\n\nint  wrong;\nint end;\n")
    judged = run(folder, ROOT / "tests/format")
    if "skipped" in judged.stderr:
        return
    tap.equal((judged.returncode, "+int wrong;" in judged.stderr), (1, True), "format: a new line is judged")
    run(folder, *git, "add", "-A")
    tap.equal(run(folder, ROOT / "tests/hooks/pre-commit").returncode, 127, "the hook is of its own tree")
    tap.equal(run(folder, ROOT / "tests/format", "--staged").returncode, 1, "format: what is staged is judged")
    tap.equal(run(folder, ROOT / "tests/format", "--all").returncode, 1, "format: all of it")
    run(folder, ROOT / "tests/format", "--fix", "HEAD")
    tap.ok("int wrong;" in source.read_text() and "int  old;" in source.read_text(), "format: --fix sets it right")


def check_locks(tap):
    """ThreadSanitizer does not see into GLib. A command that only has a pool of GLib's may use its locks."""
    for source in sorted((ROOT / "src").rglob("*.[ch]")):
        text = source.read_text()
        if "g_mutex_lock" in text or "g_thread_new" in text:
            tap.ok("g_thread_pool_new" in text, f"{source.relative_to(ROOT)}: locks are of base/worker.h or pthread's")


def check(tap):
    check_locks(tap)
    with tempfile.TemporaryDirectory() as folder:
        check_subjects(tap, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        check_format(tap, pathlib.Path(folder))


if __name__ == "__main__":
    main(check)
