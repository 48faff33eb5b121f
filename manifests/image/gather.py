#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: gather.py image PROGRAM FOLDER
       gather.py krew PROGRAM FOLDER URL

What the Containerfile's last stages consist of, gathered on the Debian machine that built the program.

image  the root of the image: the program, the libraries that it is linked with, the certificates of
       public CAs; no shell, no package manager. /usr/share/sbom/gpuledger.spdx.json (SPDX 2.3) names
       each Debian package with its version, /var/lib/dpkg/status.d has what image scanners read, and
       /usr/share/doc the licences.
krew   gpuledger-VERSION-linux-ARCH.tar.gz, the plugin of kubectl with the same libraries but for
       glibc's, and gpuledger.yaml, krew's manifest, for a tarball that is downloaded from URL.

Every file has the time SOURCE_DATE_EPOCH (or 1970), so that the same program and packages give the same
bytes."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# What glibc itself brings: a program from another glibc's machine runs only with that machine's own.
GLIBC = re.compile(r"ld-linux|lib(c|m|dl|rt|pthread|resolv|util|nss_\w+)\.so\.")
LICENCE = pathlib.Path(__file__).resolve().parents[2] / "LICENSE"


def say(*arguments):
    return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout


def libraries(program):
    """Their paths as the loader finds them."""
    text = say("ldd", program)
    missing = re.findall(r"(\S+) => not found", text)
    if missing:
        sys.exit(f"gather.py: {program} is linked with {', '.join(missing)}, which this machine does not have")
    return re.findall(r"(/\S+) \(0x", text)


def version_of(program):
    return re.match(r"gpuledger (\S+)", say(program, "version"))[1]


def packages_of(paths):
    """The Debian packages of files, each by any of the names under which /usr-merge knows it."""
    names = {path: {path, os.path.realpath(path), os.path.realpath(path).removeprefix("/usr"), "/usr" + path}
             for path in paths}
    found = subprocess.run(["dpkg-query", "-S", *set().union(*names.values())], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False)
    owners = {}
    for line in found.stdout.splitlines():
        owner, _, path = line.partition(": ")
        owners[path] = owner.split(":")[0]
    packages = set()
    for path, others in names.items():
        mine = {owners[name] for name in others if name in owners}
        if not mine:
            sys.exit(f"gather.py: no Debian package has {path}")
        packages |= mine
    return packages


def describe(package):
    fields = ("Package", "Version", "Architecture", "source:Package", "source:Version", "Maintainer", "Homepage")
    text = say("dpkg-query", "-W", "-f", "\\t".join(f"${{{field}}}" for field in fields) + "\\n", package)
    return dict(zip(fields, text.splitlines()[0].split("\t")))


# --- what is in it, as SPDX ----------------------------------------------------------------------


def spdx(version, packages):
    """Source of the format: the SPDX specification 2.3, clauses 6, 7 and 11, in JSON."""
    def package(identity, name, number, **more):
        return {"SPDXID": f"SPDXRef-{identity}", "name": name, "versionInfo": number,
                "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
                "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", **more}

    rows = [package("gpuledger", "gpuledger", version, licenseDeclared="Apache-2.0",
                    licenseConcluded="Apache-2.0", primaryPackagePurpose="APPLICATION")]
    links = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
              "relatedSpdxElement": "SPDXRef-gpuledger"}]
    for one in packages:
        name, number = one["Package"], one["Version"]
        identity = "debian-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        purl = f"pkg:deb/debian/{name.replace('+', '%2B')}@{number.replace('+', '%2B')}?arch={one['Architecture']}"
        rows.append(package(
            identity, name, number, supplier=f"Organization: {one['Maintainer'].replace('<', '(').replace('>', ')')}",
            homepage=one["Homepage"] or "NOASSERTION", primaryPackagePurpose="LIBRARY",
            sourceInfo=f"built from the Debian source package {one['source:Package']} {one['source:Version']}; "
                       f"its licence is /usr/share/doc/{name}/copyright",
            externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]))
        links.append({"spdxElementId": "SPDXRef-gpuledger", "relationshipType": "DEPENDS_ON",
                      "relatedSpdxElement": f"SPDXRef-{identity}"})
    content = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"gpuledger-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/gpuledger-{version}-{content[:32]}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
                         "creators": [f"Tool: gpuledger-gather-{version}"]},
        "packages": rows,
        "relationships": links,
    }


# --- the image -------------------------------------------------------------------------------------


def place(root, path, source=None, text=None, mode=0o644):
    at = root / path.lstrip("/")
    at.parent.mkdir(parents=True, exist_ok=True)
    if source:
        shutil.copyfile(source, at)
    else:
        at.write_text(text, encoding="utf-8")
    at.chmod(mode)


def settle(root):
    """Time and rights that do not depend on when and by whom it was made."""
    for folder, names, files in os.walk(root, topdown=False):
        for name in names + files:
            os.utime(pathlib.Path(folder) / name, (EPOCH, EPOCH), follow_symlinks=False)
        os.chmod(folder, 0o755)
    os.utime(root, (EPOCH, EPOCH))


def gather_image(program, root):
    version = version_of(program)
    found = libraries(program)
    names = {"ca-certificates", *packages_of(found)}
    place(root, "usr/bin/gpuledger", program, mode=0o755)
    for path in found:
        folder, name = os.path.split(path)
        place(root, os.path.realpath(folder) + "/" + name, path, mode=0o755)
    # Debian's /usr-merge: the loader's own path begins with /lib64 or /lib.
    for name in ("lib", "lib64"):
        if os.path.islink("/" + name):
            (root / f"usr/{name}").mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(f"usr/{name}")
    place(root, CERTIFICATES, CERTIFICATES)
    place(root, "etc/nsswitch.conf", text="hosts: files dns\n")
    place(root, "etc/passwd", text="gpuledger:x:65532:65532:gpuledger:/:/nonexistent\n")
    place(root, "etc/group", text="gpuledger:x:65532:\n")
    place(root, "etc/os-release", "/etc/os-release")
    place(root, "usr/share/doc/gpuledger/LICENSE", LICENCE)
    packages = [describe(name) for name in sorted(names)]
    for one in packages:
        name = one["Package"]
        place(root, f"usr/share/doc/{name}/copyright", f"/usr/share/doc/{name}/copyright")
        place(root, f"var/lib/dpkg/status.d/{name}", text=say("dpkg-query", "-s", name))
    document = json.dumps(spdx(version, packages), indent=1) + "\n"
    place(root, "usr/share/sbom/gpuledger.spdx.json", text=document)
    settle(root)


# --- kubectl's plugin --------------------------------------------------------------------------------

# Source: krew's developer guide, plugin manifest v1alpha2.
MANIFEST = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: gpuledger
spec:
  version: v{version}
  shortDescription: Show and explain who holds which GPU
  description: |
    Nodes, cards and pods of the gpuledger scheduler extender: who holds how much of
    which GPU, why a pod waits, what would fit, which pods to move.
  caveats: |
    Needs glibc {glibc} or later, and gpuledger in the cluster, or rights to list
    nodes, pods and configmaps (--kubeconfig).
  platforms:
  - selector:
      matchLabels:
        os: linux
        arch: {arch}
    uri: {url}/{archive}
    sha256: {digest}
    bin: kubectl-gpuledger
"""


def gather_krew(program, folder, url):
    version = version_of(program)
    arch = ARCHITECTURES.get(os.uname().machine, os.uname().machine)
    archive = f"gpuledger-{version}-linux-{arch}.tar.gz"
    files = {"kubectl-gpuledger": (program, 0o755), "LICENSE": (LICENCE, 0o644)}
    found = [path for path in libraries(program) if not GLIBC.match(os.path.basename(path))]
    names = packages_of(found)
    for path in found:
        files[f"lib/{os.path.basename(path)}"] = (path, 0o644)
    for name in sorted(names):
        files[f"doc/{name}/copyright"] = (f"/usr/share/doc/{name}/copyright", 0o644)
    document = json.dumps(spdx(version, [describe(name) for name in sorted(names)]), indent=1) + "\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        def add(name, data, mode):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode, EPOCH
            tar.addfile(entry, io.BytesIO(data))

        for name, (path, mode) in sorted(files.items()):
            add(name, pathlib.Path(path).read_bytes(), mode)
        add("gpuledger.spdx.json", document.encode(), 0o644)
    data = gzip.compress(packed.getvalue(), 9, mtime=EPOCH)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / archive).write_bytes(data)
    (folder / "gpuledger.yaml").write_text(MANIFEST.format(
        version=version, glibc=say("getconf", "GNU_LIBC_VERSION").split()[1], arch=arch, url=url.rstrip("/"),
        archive=archive, digest=hashlib.sha256(data).hexdigest()), encoding="utf-8")


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "image":
        gather_image(arguments[1], pathlib.Path(arguments[2]))
    elif len(arguments) == 4 and arguments[0] == "krew":
        gather_krew(arguments[1], pathlib.Path(arguments[2]), arguments[3])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
