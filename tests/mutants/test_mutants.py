#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every mistake of the tables applies to the sources, and the run plants and judges as it says. Builds nothing of
the program."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import build  # noqa: E402
import judge  # noqa: E402
from tables import ROOT, Mistake, Wrong, plant, plant_all, read_table, read_tables  # noqa: E402
from tap import Tap  # noqa: E402

FOLDER_LEAST = 5
NO_CODE = {"page"}  # src/page has no C

SAMPLE = """\
#include <stdio.h>

/* near() is not called by its own comment */
static int near(int a, int b)
{
    /* a < b */
    int sum = a + b; /* of both */
    if (a < b && b > 2)
        sum = 0;
    else
        sum++;
    return sum;
}

int main(void)
{
    printf("%d %d %s\\n", near(1, 2), near(1, 3), __FILE__);
    return __LINE__;
}
"""


def mistake(name, was, becomes, function="near"):
    return Mistake(name, "core", "src/core/sample.c", function, was, becomes)


def check_tables(tap):
    mistakes = read_tables()
    _, errors = plant_all(mistakes)
    for one in mistakes:
        own = [error for error in errors if f": {one} does" in error]
        tap.ok(not own, f"{one} applies", "\n".join(own))
    tap.equal([error for error in errors if " does not apply" not in error], [], "no two mistakes cross")
    folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()} - NO_CODE
    for folder in sorted(folders):
        n = sum(one.table == folder for one in mistakes)
        tap.ok(n >= FOLDER_LEAST, f"src/{folder} has at least {FOLDER_LEAST} mistakes", f"it has {n}")
    return mistakes


def check_judges(tap, mistakes):
    """Names of tests in the tables are those of meson."""
    known = pathlib.Path(os.environ.get("MESON_BUILD_ROOT", "/nonexistent")) / "meson-info" / "intro-tests.json"
    if not known.is_file():
        tap.note("not run by meson: which tests there are is not known")
        return
    tests = judge.read_tests(types.SimpleNamespace(introspect=lambda what: json.loads(known.read_text())))
    for table in sorted({one.table for one in mistakes}):
        wrong = []
        for one in mistakes:
            try:
                if one.table == table:
                    judge.choose(one, tests)
            except Wrong as error:
                wrong.append(str(error))
        tap.ok(not wrong, f"tests that judge src/{table} are there", "\n".join(wrong))


def check_refusals(tap):
    """What cannot be planted is refused with its reason."""
    for was, function, why in (("a > b", "near", "is there 0 times"), ("sum", "near", "is there 4 times"),
                               ("a < b", "far", "no such function"),
                               ("b && b", "near", "binds more tightly"), ("b > 2) sum = 0;", "near", "whole statement"),
                               ("sum", "main", "is there 0 times")):
        errors = []
        plant(SAMPLE, [mistake("m", was, "1", function)], errors)
        tap.ok(len(errors) == 1 and why in errors[0], f"'{was}' in {function} is refused: {why}", errors)
    errors = []
    plant(SAMPLE, [mistake("m", "a < b && b", "1"), mistake("n", "b && b > 2", "1")], errors)
    tap.ok(errors, "crossing mistakes are refused", errors)


def check_reading(tap, folder):
    path = folder / "core.txt"
    path.write_text("tests: core\n\n# why\n[one] src/core/a.c near\n- a <\n- b\n+ a <= b\n\n"
                    "[two] src/core/a.c near\n- stop();\n+\ntests: store\n")
    one, two = read_table(path)
    tap.equal((one.was, one.becomes, one.tests, one.statement), ("a < b", "a <= b", ["core"], False), "a row is read")
    tap.equal((two.was, two.becomes, two.tests, two.statement), ("stop();", "", ["store"], True),
              "a row without a statement, with tests of its own")
    for text, why in (("[one] src/core/a.c near\n- a\n", "needs"), ("[one] src/core/a.c near\n- a\n+\n", "differs"),
                      ("[one] src/base/a.c near\n- a\n+ b\n", "another folder"), ("? a\n", "no line")):
        path.write_text(text)
        try:
            read_table(path)
            tap.ok(False, f"a table is refused: {why}")
        except Wrong as wrong:
            tap.ok(why in str(wrong), f"a table is refused: {why}", wrong)
    path.write_text("[one] src/core/a.c near\n- a\n+ b\n\n[one] src/core/a.c near\n- c\n+ d\n")
    try:
        read_tables(folder)
        tap.ok(False, "a name that is there twice is refused")
    except Wrong as wrong:
        tap.ok("the name one" in str(wrong), "a name that is there twice is refused", wrong)


def check_switching(tap, folder):
    """All mistakes are in one program; each is switched on by its name, and says once that it is passed."""
    mistakes = [mistake("less", "a < b", "a > b"), mistake("both", "a < b && b > 2", "1"),
                mistake("kept", "sum = 0;", ""), mistake("twice", "sum++;", "sum += 2;"),
                mistake("same", "a < b", "0"), mistake("far", "near(1, 3)", "-1", "main")]
    errors = []
    text = plant(SAMPLE, mistakes, errors)
    tap.equal(errors, [], "the sample's mistakes apply")
    tap.equal(text.count("\n"), SAMPLE.count("\n") + 1, "lines stay where they were")
    (folder / "sample.c").write_text(text)
    program = folder / "sample"
    compiler = os.environ.get("CC", "cc").split()
    done = subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-include", ROOT / build.HEADER, "-o", program,
                           folder / "sample.c"], capture_output=True, text=True, check=False)
    if not tap.equal((done.returncode, done.stderr), (0, ""), "the sample compiles"):
        return
    reached, last = folder / "reached", SAMPLE.split("return __LINE__")[0].count("\n") + 1
    for name, wanted in (("", "4 0"), ("less", "4 5"), ("both", "0 0"), ("kept", "4 4"), ("twice", "5 0"),
                         ("same", "4 5"), ("far", "4 -1"), ("unknown", "4 0")):
        done = subprocess.run([program], env={"MUTANT": name, "MUTANTS_REACHED": str(reached)},
                              capture_output=True, text=True, check=False)
        tap.equal((done.stdout.rsplit(" ", 1)[0], done.returncode), (wanted, last), f"with mistake '{name}'")
    tap.ok("src/core/sample.c" in done.stdout, "messages name the file of the tree", done.stdout)
    lines = reached.read_text().split()
    tap.equal(set(lines), {one.name for one in mistakes}, "places that are passed are recorded")
    tap.equal(lines.count("far"), 8, "once in a process")


def check_verdicts(tap, folder):
    here = types.SimpleNamespace(out=folder, folder=folder)

    def verdict(script, mutant=None, limit=60, tap_output=False):
        test = judge.Test("it", set(), ["sh", "-c", script], {"ITS_OWN": "yes"}, [], 60, tap_output)
        return judge.run(test, here, mutant, limit=limit)[0]

    script = 'test "$ITS_OWN" = yes && test "$MUTANT" != wrong'
    tap.equal(verdict(script), "passed", "a test that passes")
    tap.equal(verdict(script, "wrong"), "failed", "a test that fails with a mistake")
    tap.equal(verdict("exit 77"), "skipped", "a test that is skipped")
    tap.equal(verdict("echo not ok 1 - it", tap_output=True), "failed", "a line 'not ok'")
    tap.equal(verdict("echo 'not ok 1 - it # TODO later'", tap_output=True), "passed", "an expected 'not ok'")
    tap.equal(verdict("echo not ok 1 - it"), "passed", "'not ok' of a test that prints no TAP")
    tap.equal(verdict("sleep 600 & setsid true; sleep 600", limit=0.3), "hung", "a test that hangs")
    tap.equal(verdict("echo 'Test timeout expired'; exit 1"), "hung", "a test of Check's that hangs")

    test = judge.Test("learned", set(), ["sh", "-c", 'echo core-a >>"$MUTANTS_REACHED"'], {}, [], 60, False)
    judge.learn(test, here)
    tap.equal(test.reached, frozenset({"core-a"}), "which places a test passes is learned")
    tap.equal(judge.limit_of(test), judge.LIMIT_LEAST, "a quick test may take the least limit")
    tap.equal(judge.why("ok 1\nnot ok 2 - cards\n# detail"), "not ok 2 - cards", "the line that says most")

    tests = {name: judge.Test(name, suites, [], {}, [], 60, False)
             for name, suites in (("a", {"unit", "core"}), ("b", {"cli"}), ("c", {"prop"}), ("cli", {"e2e"}))}
    chosen = judge.choose(Mistake("m", "core", "", "", tests=["c", "cli", "a"]), tests)
    tap.equal([one.name for one in chosen], ["a", "c", "b", "cli"], "the folder's own tests, then others by name or suite")
    chosen = judge.choose(Mistake("m", "core", "", "", tests=["c"]), tests, ["cli"])
    tap.equal([one.name for one in chosen], ["b", "cli"], "only what is asked for")


def check_copy(tap, folder):
    """Only what has changed is written again."""
    tree, file = folder / "tree", "src/core/error.c"
    listed = [name for name in build.list_files() if name.startswith("src/core/")]
    tap.ok(file in listed, "the tree's files are listed", listed)
    build.list_files, list_all, copy_tree = lambda: listed, build.list_files, build.copy_tree
    tap.ok(copy_tree(tree, {}), "the first copy brings files")
    times = {name: (tree / name).lstat().st_mtime_ns for name in listed}
    (tree / "stale.c").write_text("")
    tap.ok(copy_tree(tree, {file: "changed"}), "a file that has gone is noticed")
    tap.ok(not (tree / "stale.c").exists() and (tree / file).read_text() == "changed", "it goes; another is replaced")
    tap.equal([name for name in times if (tree / name).lstat().st_mtime_ns != times[name]], [file],
              "no other file is written")
    tap.ok(not copy_tree(tree, {file: "changed"}), "nothing comes or goes")
    build.list_files = list_all


def main():
    tap = Tap()
    mistakes = check_tables(tap)
    check_judges(tap, mistakes)
    check_refusals(tap)
    for check in (check_reading, check_switching, check_verdicts, check_copy):
        with tempfile.TemporaryDirectory() as folder:
            check(tap, pathlib.Path(folder))
    tap.plan()
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
