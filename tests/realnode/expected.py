# SPDX-License-Identifier: Apache-2.0
"""Scenarios that show known defects of the program. A check that fails in one of them does not count;
take the line out when the defect is mended."""

ORDER = "eight pods of one size that wait for the plugin are too many"
GONE = "a pod that vanished is no longer counted as waiting, though kubelet still has it"
ZERO = "amounts of a node whose capacity is 0 for a moment have no unit and no card"
HOLE = "a node that rejects what it is given is chosen again"
ENDING = "Volcano's plugin passes over a pod that is being deleted, whose call then takes another's match"

EXPECTED = {
    "gpushare-burst": ORDER,
    "gpushare-burst-unlimited": ORDER,
    "gpushare-deleted": ORDER,
    "gpushare-forced": GONE,
    "gpushare-zero": ZERO,
    "gpushare-waiting": ZERO,
    "gpushare-stopped": HOLE,
    "hami-deletions": GONE,
    "volcano-burst": ORDER,
    "volcano-deletions": ENDING,
}
