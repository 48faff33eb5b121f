# SPDX-License-Identifier: Apache-2.0
"""Scenarios that show known defects of the program. A check that fails in one of them does not count;
take the line out when the defect is mended."""

ZERO = "amounts of a node whose capacity is 0 for a moment have no unit and no card"
HOLE = "a node that rejects what it is given is chosen again"

EXPECTED = {
    "gpushare-zero": ZERO,
    "gpushare-waiting": ZERO,
    "gpushare-stopped": HOLE,
}
