# SPDX-License-Identifier: Apache-2.0
"""Scenarios that show known defects of the program. A check that fails in one of them does not count;
take the line out when the defect is mended."""

ORDER = "eight pods of one size that wait for the plugin are too many"
GONE = "a pod that vanished is no longer counted as waiting, though kubelet still has it"
ZERO = "amounts of a node whose capacity is 0 for a moment have no unit and no card"
FREEZE = "a pod that ends takes its address along, and calls to it are waited for in vain"
ENDING = "Volcano's plugin passes over a pod that is being deleted, whose call then takes another's match"

EXPECTED = {
    "gpushare-burst": ORDER,
    "gpushare-burst-unlimited": ORDER,
    "gpushare-deleted": ORDER,
    "gpushare-forced": GONE,
    "gpushare-zero": ZERO,
    "gpushare-waiting": ZERO,
    "hami-deletions": GONE,
    "volcano-burst": ORDER,
    "volcano-deletions": ENDING,
    "freeze-one-rollout": FREEZE,
    "freeze-two-rollout": FREEZE,
    "freeze-two-deleted": FREEZE,
    "freeze-two-forced": FREEZE,
}
