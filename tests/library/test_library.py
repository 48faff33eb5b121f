#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libgpuledger as other programs find it: installed, by pkg-config, and with nothing else.

`python3 tests/library/test_library.py --write` writes include/gpuledger/names.h anew."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
HEADERS = TOP / "include" / "gpuledger"
NAMES = HEADERS / "names.h"
PREFIX = "gpuledger_"
VERSION = "GPULEDGER_0"
RENAMED = re.compile(r"^#pragma redefine_extname (\w+) (\w+)$", re.MULTILINE)
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
CC = shlex.split(os.environ.get("CC", "cc"))
SANITIZE = os.environ.get("SANITIZE", "none")
PURE_TESTS = os.environ.get("PURE_TESTS", "").split()
# Of the outside parts, the pure half may have GLib.
FOREIGN = re.compile(r"lib(curl|microhttpd|yaml|ssl|crypto|gnutls)\b")

EXPECTED = """\
pod-0: card 0
pod-1: card 1
pod-2: card 0
pod-3: card 1
pod-4: Insufficient GPU Memory in one device
pod-5: Insufficient GPU Memory in one device
"""


EXAMPLE = """\
notebook: card 0
card 0: 9216 MiB of 15360 left
card 1: 15360 MiB of 15360 left
"""


def run(*command, **env):
    result = subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise AssertionError(f"{shlex.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def declared():
    """The functions and tables that the public headers declare."""
    names = set()
    for header in HEADERS.glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        text = re.sub(r"^#.*?(?<!\\)$", "", text, flags=re.DOTALL | re.MULTILINE)
        for line in re.split(r";", re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", text))):
            line = re.sub(r"G_DEFINE_\w+\([^)]*\)", "", line).strip()
            function = re.fullmatch(r"(?!typedef\b)[\w\s*]*?\b(\w+)\(.*\)", line, re.DOTALL)
            table = re.fullmatch(r"extern [\w\s*]*?\b(\w+)\[\]", line)
            if function or table:
                names.add((function or table).group(1))
    return names


def listed():
    """The names of names.h, each with the one that the linker sees."""
    return RENAMED.findall(NAMES.read_text())


def write_names():
    """Keeps what stands above the list."""
    head = RENAMED.split(NAMES.read_text())[0]
    names = sorted(name for name in declared() if not name.startswith(PREFIX))
    NAMES.write_text(head + "".join(f"#pragma redefine_extname {name} {PREFIX}{name}\n" for name in names))


def linked_name(name):
    return name if name.startswith(PREFIX) else PREFIX + name


class Headers(unittest.TestCase):
    def test_each_declared_name_is_listed_and_none_else(self):
        short = sorted(name for name in declared() if not name.startswith(PREFIX))
        self.assertEqual(listed(), [(name, PREFIX + name) for name in short],
                         "python3 tests/library/test_library.py --write")

    def test_each_header_begins_with_the_names(self):
        for header in sorted(HEADERS.glob("*.h")):
            if header != NAMES:
                with self.subTest(header=header.name):
                    first = re.search("^#include (.*)$", header.read_text(), re.MULTILINE).group(1)
                    self.assertEqual(first, "<gpuledger/names.h>")


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("meson", "pkg-config", "nm", "ldd", CC[0]):
            if not shutil.which(program):
                raise unittest.SkipTest(f"{program} is not installed")
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet",
            "--tags", "devel,runtime", "--destdir", cls.root)
        [cls.description] = cls.root.rglob("gpuledger.pc")
        cls.lib = cls.description.parent.parent
        # What a package manager does by unpacking at /, the test does by moving the prefix.
        text = cls.description.read_text()
        prefix = re.search("^prefix=(.*)$", text, re.MULTILINE).group(1)
        cls.prefix = cls.root / prefix.lstrip("/")
        cls.description.write_text(text.replace(f"prefix={prefix}", f"prefix={cls.prefix}"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def pkg_config(self, *arguments):
        path = os.pathsep.join(
            filter(None, (str(self.description.parent), os.environ.get("PKG_CONFIG_PATH")))
        )
        return shlex.split(run("pkg-config", *arguments, PKG_CONFIG_PATH=path))

    def compile(self, output, *libraries, source=HERE / "consumer.c"):
        sanitize = [] if SANITIZE == "none" else [f"-fsanitize={SANITIZE}"]
        program = self.root / output
        run(*CC, "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
            *sanitize, source, "-o", program,
            *self.pkg_config("--cflags", "gpuledger"), *libraries)
        return program

    def test_a_program_is_built_with_the_shared_library(self):
        program = self.compile("shared", *self.pkg_config("--libs", "gpuledger"))
        linked = run("ldd", program, LD_LIBRARY_PATH=str(self.lib))
        self.assertIn(str(self.lib / "libgpuledger.so.0"), linked)
        self.assertIsNone(FOREIGN.search(linked), linked)
        self.assertEqual(run(program, LD_LIBRARY_PATH=str(self.lib)), EXPECTED)

    def test_a_program_is_built_with_the_static_library(self):
        archive = self.lib / "libgpuledger.a"
        program = self.compile("static", archive, "-lm",
                               *self.pkg_config("--libs", "glib-2.0", "libcjson"))
        linked = run("ldd", program)
        self.assertNotIn("gpuledger", linked)
        self.assertIsNone(FOREIGN.search(linked), linked)
        self.assertEqual(run(program), EXPECTED)

    def test_the_example_tells_card_and_what_is_left(self):
        folder = TOP / "examples" / "library"
        program = self.compile("place", *self.pkg_config("--cflags", "--libs", "gpuledger", "libcjson"),
                               source=folder / "place.c")
        out = run(program, folder / "node.json", folder / "pod.json", LD_LIBRARY_PATH=str(self.lib))
        self.assertEqual(out, EXAMPLE)

    def test_exactly_what_the_headers_declare_is_exported(self):
        library = self.lib / "libgpuledger.so"
        lines = run("nm", "-D", "--defined-only", "--with-symbol-versions", "--format=posix",
                    library).splitlines()
        exported = {line.split()[0] for line in lines} - {f"{VERSION}@@{VERSION}", VERSION}
        self.assertEqual(exported, {f"{linked_name(name)}@@{VERSION}" for name in declared()})

    def test_exactly_the_public_headers_are_installed(self):
        installed = {path.name for path in (self.prefix / "include" / "gpuledger").iterdir()}
        self.assertEqual(installed, {path.name for path in HEADERS.iterdir()})

    def test_a_header_needs_no_other_before_it(self):
        for header in sorted(HEADERS.glob("*.h")):
            with self.subTest(header=header.name):
                run("sh", "-c", f'printf "#include <gpuledger/{header.name}>\\n" | "$@"', "sh",
                    *CC, "-std=gnu17", "-Wall", "-Werror", "-fsyntax-only", "-xc", "-",
                    *self.pkg_config("--cflags", "gpuledger"))

    def test_the_version_is_that_of_the_library(self):
        [version] = self.pkg_config("--modversion", "gpuledger")
        self.assertTrue((self.lib / f"libgpuledger.so.{version}").is_file())


class PureHalf(unittest.TestCase):
    def test_tests_of_core_and_dialect_link_nothing_of_the_network(self):
        self.assertTrue(PURE_TESTS)
        for program in PURE_TESTS:
            with self.subTest(program=program):
                linked = run("ldd", program)
                self.assertIn("libglib", linked)
                self.assertIsNone(FOREIGN.search(linked), linked)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_names()
    else:
        unittest.main()
