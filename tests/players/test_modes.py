#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The players of config-manager and mig-manager do what those two do, version by version."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "e2e")]

from modes import PAUSED, ConfigManager, MigManager  # noqa: E402
from tap import Tap  # noqa: E402

CONFIGS = ("all-1g.5gb", "all-3g.20gb")


def check_config(tap):
    manager = ConfigManager(("day", "night"))
    tap.equal(manager.obey("night"), [("report", None), ("report", "night"), ("tell", "night")],
              "the plugin goes, kubelet reports, labels follow")
    tap.equal(manager.obey("dusk"), [], "a configuration that is not there is passed over")


def check_mig(tap):
    for version in ("0.14", "0.15"):
        manager = MigManager(CONFIGS, "all-1g.5gb", version)
        tap.equal(manager.obey("none"), [("state", "failed")], f"{version}: no entry")
        tap.equal(manager.obey("all-1g.5gb"), [("state", "success")], f"{version}: it is so already")
        done = manager.obey("all-3g.20gb")
        tap.equal(done[0], ("state", "pending"), f"{version}: first it is pending")
        tap.equal(done[-1], ("state", "success"), f"{version}: last it is done")
        tap.equal("nvidia.com/gpu.deploy.client" in manager.clients, version == "0.15",
                  f"{version}: others' daemons are paused since 0.15")
        manager.in_use = lambda: True
        tap.ok(("state", "failed") in manager.obey("all-1g.5gb"), f"{version}: in use by another client")
        tap.equal(manager.applied, "all-3g.20gb", f"{version}: then nothing is cut")


def check_stuck(tap):
    old = MigManager(CONFIGS, "all-1g.5gb", "0.14", holdouts=1)
    tap.equal(old.obey("all-3g.20gb"), [("state", "pending"), ("clients", PAUSED), ("report", None)],
              "0.14 stays pending")
    tap.equal(old.obey("all-3g.20gb")[-1], ("state", "success"), "until the label changes again")
    new = MigManager(CONFIGS, "all-1g.5gb", "0.15", holdouts=1)
    done = new.obey("all-3g.20gb")
    tap.ok(("state", "failed") in done and ("clients", "true") in done, "0.15 fails, and lets them come back")


def main():
    tap = Tap()
    check_config(tap)
    check_mig(tap)
    check_stuck(tap)
    tap.plan()
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
