# SPDX-License-Identifier: Apache-2.0
"""Images without a registry: an OCI layout in a tar, of one layer."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import tarfile

from enclosure import run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAUSE = "registry.k8s.io/pause:3.6"
POD = "gpuledger.test/pod:1"
BUSYBOX = "docker.io/library/busybox:1.36"
GPULEDGER = "docker.io/library/gpuledger:0.1.0"
APPLETS = "sh env grep sleep cat echo true false ls wget nc".split()
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _layer(files, links=()):
    """`files`: {path in the image: path here}; `links`: {path: target}. A tar, as bytes."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as tar:
        folders = set()
        for path in [*files, *links]:
            parents = list(pathlib.PurePosixPath(path).parents)[-2::-1]
            for parent in parents:
                if str(parent) not in folders:
                    folders.add(str(parent))
                    entry = tarfile.TarInfo(str(parent))
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(entry)
        for path, source in files.items():
            data = pathlib.Path(source).read_bytes()
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
        for path, target in dict(links).items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return output.getvalue()


def write(path, names, layer, **config):
    """An image archive at `path` that is imported under each of `names`."""
    blobs = {}

    def blob(data, media_type, **more):
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data), **more}

    kind = "application/vnd.oci.image"
    packed = blob(gzip.compress(layer, 1, mtime=0), f"{kind}.layer.v1.tar+gzip")
    settings = blob(
        {
            "architecture": ARCHITECTURE,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        },
        f"{kind}.config.v1+json",
    )
    manifest = {"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json", "config": settings,
                "layers": [packed]}
    index = {
        "schemaVersion": 2,
        "manifests": [
            blob(manifest, f"{kind}.manifest.v1+json", annotations={"io.containerd.image.name": name})
            for name in names
        ],
    }
    contents = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
    contents.update({f"blobs/sha256/{digest}": data for digest, data in blobs.items()})
    with tarfile.open(path, "w") as tar:
        for name, data in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def small(folder):
    """pause, the test's pods and busybox, which the examples name: one image."""
    program = folder / "pod"
    run("gcc", "-O2", "-static", "-o", program, HERE / "pod.c")
    layer = _layer(
        {"pod": program, "bin/busybox": "/bin/busybox"},
        {f"bin/{applet}": "busybox" for applet in APPLETS},
    )
    return write(folder / "small.tar", [PAUSE, POD, BUSYBOX], layer, Entrypoint=["/pod"],
                 Env=["PATH=/bin"])


def gpuledger(folder, binary, name=GPULEDGER):
    """What the Containerfile's last stage is made of, and its settings."""
    root = folder / "gpuledger-root"
    run(ROOT / "manifests/image/gather.py", "image", binary, root)
    paths = {str(path.relative_to(root)): path for path in sorted(root.rglob("*"))}
    files = {name: path for name, path in paths.items() if path.is_file() and not path.is_symlink()}
    links = {name: os.readlink(path) for name, path in paths.items() if path.is_symlink()}
    return write(folder / "gpuledger.tar", [name], _layer(files, links), User="65532:65532",
                 Entrypoint=["/usr/bin/gpuledger"], Cmd=["serve"])
