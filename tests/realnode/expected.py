# SPDX-License-Identifier: Apache-2.0
"""Scenarios that show known defects of the program. A check that fails in one of them does not count;
take the line out when the defect is mended."""

EXPECTED = {
}
