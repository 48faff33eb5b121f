#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TLS with client certificates adds to a bind: bind calls to gpuledger over TLS against the same
over plain HTTP, by the same sender, on kept connections and on a fresh one for each.

The cluster is a saved one, so a Binding costs next to nothing: with an API server, whose call takes
milliseconds, the ratios are nearer to 1. Certificates are those of `gpuledger certs`.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

NODES, AT_A_TIME = 500, 8


def rates_of(arguments, server, scheme, folder, names, fresh):
    base = server.scheduler.replace("http://", scheme + "://")
    lines = [
        f"POST\t{base}/gpushare-scheduler/bind\t" + json.dumps({
            "PodName": name, "PodNamespace": "test", "PodUID": f"uid-{name}",
            "Node": f"node-{i % NODES}"})
        for i, name in enumerate(names)
    ]
    tls = ["--cacert", folder / "ca.crt", "--cert", folder / "kube-scheduler.crt",
           "--key", folder / "kube-scheduler.key"] if scheme == "https" else []
    done = subprocess.run(
        [arguments.load, "-c", str(AT_A_TIME), "--show-failures", *(["--fresh"] if fresh else []), *tls],
        input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    if answer["failed"]:
        sys.exit(f"{answer['failed']} of {answer['requests']} failed: {done.stderr[:600]}")
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpuledger", required=True, help="the binary")
    parser.add_argument("--load", required=True, help="the sender's binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--binds", type=int, default=300, help="of a round, of each kind")
    arguments = parser.parse_args()
    os.environ["GPULEDGER"] = arguments.gpuledger
    from program import Server, listing, node, pod  # pylint: disable=import-outside-toplevel

    # A pod is bound once; each node takes few, which fit beside each other.
    count = 2 * arguments.rounds * arguments.binds
    with tempfile.TemporaryDirectory(prefix="gpuledger-bench-") as name:
        folder = pathlib.Path(name) / "tls"
        subprocess.run([arguments.gpuledger, "certs", f"--folder={folder}"], check=True,
                       capture_output=True)
        snapshot = pathlib.Path(name) / "cluster.json"
        snapshot.write_text(listing(*(node(f"node-{i}", 8, 100) for i in range(NODES)),
                                    *(pod(f"pod-{i}", 1) for i in range(count))))
        options = ("--log-level=warn", "--audit-interval=0s", "--events=false")
        tls = (f"--tls-cert={folder / 'gpuledger.crt'}", f"--tls-key={folder / 'gpuledger.key'}",
               f"--tls-client-ca={folder / 'ca.crt'}", "--tls-client-names=kube-scheduler")
        servers = {"http": Server(*options[1:], snapshot=snapshot),
                   "https": Server(*options[1:], *tls, snapshot=snapshot)}
        print(f"bind: {arguments.binds} a round, {AT_A_TIME} in flight")
        print("  connections  round   plain/s   TLS/s  ratio  plain p50  TLS p50 (us)")
        serial = 0
        for title, fresh in (("kept", False), ("fresh", True)):
            ratios, medians = [], []
            for number in range(arguments.rounds):
                names = [f"pod-{serial + i}" for i in range(arguments.binds)]
                serial += arguments.binds
                found = {}
                for scheme in ("http", "https") if number % 2 else ("https", "http"):
                    found[scheme] = rates_of(arguments, servers[scheme], scheme, folder, names, fresh)
                ratios.append(found["https"]["rate"] / found["http"]["rate"])
                medians.append(found["https"]["p50_us"] / found["http"]["p50_us"])
                print(f"  {title:11} {number:6d} {found['http']['rate']:9.0f} "
                      f"{found['https']['rate']:7.0f} {ratios[-1]:6.2f} "
                      f"{found['http']['p50_us']:10d} {found['https']['p50_us']:8d}", flush=True)
            print(f"  {title}: median ratio of rates {statistics.median(ratios):.2f}, of a call's "
                  f"median time {statistics.median(medians):.2f}", flush=True)
        for server in servers.values():
            server.signal(signal.SIGTERM)
            server.exit_code()


if __name__ == "__main__":
    main()
