#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""api/openapi.yaml by two programs that are not ours: openapi-spec-validator says whether it is OpenAPI,
schemathesis calls each operation of both listeners with what the document allows and what it does not, and
holds the answers against it. `tests/install api` brings both; without them the test is skipped."""

import os
import pathlib
import subprocess
import sys
import tempfile

from common import ROOT, Server, Tap, main

SOURCE = ROOT / "api" / "openapi.yaml"
CACHE = pathlib.Path(os.environ.get("GPULEDGER_CACHE", pathlib.Path.home() / ".cache" / "gpuledger"))
TOOLS = CACHE / f"openapi-{(ROOT / 'tests/api/requirements.txt').read_text().split()[0].split('==')[1]}" / "bin"

# What an answer is held against. A status of the document is one, 503 included.
CHECKS = ("status_code_conformance,content_type_conformance,response_schema_conformance,"
          "response_headers_conformance")
SECONDS = 400  # for each listener; it takes 10 to 30


def validate(tap):
    done = subprocess.run([TOOLS / "openapi-spec-validator", SOURCE], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    tap.ok(done.returncode == 0, "it is OpenAPI", done.stdout[:4000])


def call(tap, address, title, *which):
    """As many calls as the seed makes: the same in every run."""
    with tempfile.TemporaryDirectory() as folder:  # for what it leaves behind
        done = call_from(folder, address, *which)
    tap.ok(done.returncode == 0, f"{title}: all answers are as it says", done.stdout[-6000:])
    tap.ok(" generated, " in done.stdout, f"{title}: there were some", done.stdout[-2000:])


def call_from(folder, address, *which):
    return subprocess.run(
        [TOOLS / "st", "run", SOURCE, f"--url={address}", *which, "--phases=coverage,fuzzing",
         f"--checks={CHECKS}", "--max-examples=8", "--seed=1", "--no-shrink",
         "--generation-database=none", "--no-color"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=SECONDS,
        cwd=folder, env={**os.environ, "NO_PROXY": "127.0.0.1"})


def check(tap: Tap):
    if not (TOOLS / "st").exists():
        tap.skip_all("openapi-spec-validator and schemathesis are not there: tests/install api")
        sys.exit(0)
    validate(tap)
    with Server() as server:
        call(tap, server.scheduler, "the scheduler's listener", "--include-tag=scheduler")
        call(tap, server.operations, "the operations listener", "--exclude-tag=scheduler")
        tap.equal(server.get("/readyz")[0], 200, "the program goes on")


if __name__ == "__main__":
    main(check)
