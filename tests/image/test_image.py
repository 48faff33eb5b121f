#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the image consists of runs by itself, is named in its SBOM and is the same each time; krew installs the
plugin's tarball. tests/realnode/containerfile builds the Containerfile itself."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("GPULEDGER", str(ROOT / "build" / "gpuledger"))
GATHER = ROOT / "manifests" / "image" / "gather.py"
ELF = b"\x7fELF"
# To see another root as a user sees the image's; root of a user namespace may, where there are such.
INTO = ["/usr/sbin/chroot"] if os.geteuid() == 0 else ["/usr/bin/unshare", "--map-root-user", "--root"]


def gather(kind, *arguments, program=PROGRAM, epoch="0"):
    return subprocess.run([GATHER, kind, program, *map(str, arguments)], check=True, capture_output=True, text=True,
                          env={**os.environ, "SOURCE_DATE_EPOCH": epoch})


def is_sanitized():
    """A program under a sanitizer looks for files that no image has."""
    return b"__asan_init" in pathlib.Path(PROGRAM).read_bytes() or b"__tsan_init" in pathlib.Path(PROGRAM).read_bytes()


def state(folder):
    """All that a layer keeps of a tree."""
    rows = []
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = os.readlink(path) if path.is_symlink() else \
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        mode = None if path.is_symlink() else oct(about.st_mode)
        rows.append((str(path.relative_to(folder)), mode, int(about.st_mtime), content))
    return rows


def held_by_tests(document, test):
    """The rules of SPDX 2.3 that its own validator checks first."""
    test.assertEqual((document["spdxVersion"], document["dataLicense"], document["SPDXID"]),
                     ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
    test.assertRegex(document["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    identities = [package["SPDXID"] for package in document["packages"]]
    test.assertEqual(len(identities), len(set(identities)))
    for identity in identities:
        test.assertRegex(identity, r"^SPDXRef-[A-Za-z0-9.-]+$")
    ends = {link["relatedSpdxElement"] for link in document["relationships"]}
    test.assertEqual(ends, set(identities))


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuledger-image-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.root = cls.folder / "root"
        gather("image", cls.root)

    def inside(self, *arguments, **options):
        return subprocess.run([*INTO, self.root, "/usr/bin/gpuledger", *arguments], capture_output=True, text=True,
                              check=False, timeout=60, env={}, **options)

    def test_the_program_runs_with_nothing_else(self):
        if is_sanitized():
            self.skipTest("built with a sanitizer")
        answer = self.inside("version")
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        place = self.root / "snapshot.json"
        shutil.copy(ROOT / "examples" / "snapshot.json", place)
        self.addCleanup(place.unlink)
        answer = self.inside("nodes", "--snapshot", "/snapshot.json")
        self.assertIn("gpu-v100-0", answer.stdout)

    def test_it_serves(self):
        if is_sanitized():
            self.skipTest("built with a sanitizer")
        place = self.root / "snapshot.json"
        shutil.copy(ROOT / "examples" / "snapshot.json", place)
        self.addCleanup(place.unlink)
        with subprocess.Popen([*INTO, self.root, "/usr/bin/gpuledger", "serve", "--snapshot", "/snapshot.json",
                               "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"], stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, text=True, env={}) as server:
            try:
                address = None
                for line in server.stderr:
                    found = re.search(r"listener=operations address=(\S+)", line)
                    address = found[1] if found else address
                    if "msg=synced" in line and address:
                        break
                self.wait_ready(f"http://{address}/readyz")
            finally:
                server.terminate()
                server.stderr.read()
        self.assertEqual(server.returncode, 0)

    def wait_ready(self, url):
        for _ in range(100):
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    self.assertEqual(answer.status, 200)
                    return
            except urllib.error.HTTPError:
                time.sleep(0.1)
        self.fail(f"{url} is not ready")

    def test_there_is_one_program_and_no_shell(self):
        programs = {str(path.relative_to(self.root)) for path in self.root.rglob("*")
                    if path.is_file() and path.parent.name in ("bin", "sbin")}
        self.assertEqual(programs, {"usr/bin/gpuledger"})

    def test_nothing_may_be_written_and_nothing_has_rights_of_its_own(self):
        for path in self.root.rglob("*"):
            if not path.is_symlink():
                self.assertEqual(path.stat().st_mode & 0o7022, 0, path)

    def test_the_sbom_names_every_library(self):
        document = json.loads((self.root / "usr/share/sbom/gpuledger.spdx.json").read_text(encoding="utf-8"))
        held_by_tests(document, self)
        known = {package["name"]: package["versionInfo"] for package in document["packages"]}
        self.assertIn("ca-certificates", known)
        libraries = [path for path in self.root.rglob("*") if path.is_file() and path.name != "gpuledger"
                     and path.read_bytes()[:4] == ELF]
        self.assertGreater(len(libraries), 10)
        installed = {}
        for line in subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n"], check=True,
                                   stdout=subprocess.PIPE, text=True).stdout.splitlines():
            name, version = line.split()
            installed[name] = version
        owners = set()
        for path in libraries: # as dpkg's own lists of files have them
            names = subprocess.run(f"grep -lE '/{re.escape(path.name)}$' /var/lib/dpkg/info/*.list", shell=True,
                                   stdout=subprocess.PIPE, text=True, check=False).stdout.split()
            owner = {pathlib.Path(name).stem.split(":")[0] for name in names} & set(known)
            self.assertTrue(owner, f"{path.name} is of no package of the SBOM")
            owners |= owner
        self.assertEqual(set(known) - owners, {"gpuledger", "ca-certificates"}, "and no other")
        for name, version in known.items():
            if name == "gpuledger":
                continue
            self.assertEqual(version, installed[name])
            self.assertIn(f"Version: {version}\n",
                          (self.root / "var/lib/dpkg/status.d" / name).read_text(encoding="utf-8"))
            self.assertGreater((self.root / "usr/share/doc" / name / "copyright").stat().st_size, 100)

    def test_made_again_it_is_the_same(self):
        again = self.folder / "again"
        gather("image", again)
        self.assertEqual(state(again), state(self.root))
        self.assertEqual({row[2] for row in state(again)}, {0})

    def test_what_a_library_is_missing_for_is_said(self):
        """A library that the loader does not find."""
        lost = self.folder / "lost"
        data = pathlib.Path(PROGRAM).read_bytes().replace(b"libyaml-0.so.2\0", b"libyaml-9.so.2\0")
        lost.write_bytes(data)
        lost.chmod(0o755)
        answer = subprocess.run([GATHER, "image", lost, self.folder / "none"], capture_output=True, text=True, check=False)
        self.assertNotEqual(answer.returncode, 0)


class Plugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuledger-krew-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        gather("krew", cls.folder / "out", "https://example.com/here/")
        cls.manifest = yaml.safe_load((cls.folder / "out/gpuledger.yaml").read_text(encoding="utf-8"))
        [cls.archive] = (cls.folder / "out").glob("*.tar.gz")

    def test_the_manifest_names_the_tarball(self):
        [platform] = self.manifest["spec"]["platforms"]
        self.assertEqual(platform["uri"], f"https://example.com/here/{self.archive.name}")
        self.assertEqual(platform["sha256"], hashlib.sha256(self.archive.read_bytes()).hexdigest())
        with tarfile.open(self.archive) as tar:
            names = tar.getnames()
            held_by_tests(json.load(tar.extractfile("gpuledger.spdx.json")), self)
        self.assertIn(platform["bin"], names)
        self.assertIn("LICENSE", names)
        self.assertTrue(any(name.startswith("lib/libmicrohttpd.so") for name in names), names)
        self.assertFalse([name for name in names if name.startswith(("lib/libc.so", "lib/ld-"))], "glibc is the machine's")

    def test_made_again_it_is_the_same(self):
        gather("krew", self.folder / "again", "https://example.com/here")
        for path in (self.folder / "out").iterdir():
            self.assertEqual((self.folder / "again" / path.name).read_bytes(), path.read_bytes(), path.name)

    def test_krew_installs_it(self):
        answer = subprocess.run([ROOT / "tests/controlplane/build", "--path", "krew"], stdout=subprocess.PIPE, text=True,
                                check=True)
        krew = pathlib.Path(answer.stdout.strip()) / "krew"
        if not krew.exists():
            self.skipTest("krew is not built: run tests/controlplane/build krew")
        home = self.folder / "home"
        home.mkdir()
        settings = {"HOME": str(home), "KREW_ROOT": str(home / "krew"), "PATH": os.environ["PATH"],
                    "KREW_NO_UPGRADE_CHECK": "1"}
        answer = subprocess.run([krew, "install", f"--manifest={self.folder / 'out/gpuledger.yaml'}",
                                 f"--archive={self.archive}"], capture_output=True, text=True, env=settings, check=False)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        plugin = home / "krew/bin/kubectl-gpuledger"
        version = subprocess.run([plugin, "version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual("v" + version.split()[1], self.manifest["spec"]["version"])
        # kubectl finds the plugin by its name, and hands it the words.
        nodes = subprocess.run([plugin, "nodes", "--snapshot", ROOT / "examples/snapshot.json"], capture_output=True,
                               text=True, check=True)
        self.assertIn("gpu-v100-0", nodes.stdout)


if __name__ == "__main__":
    unittest.main()
