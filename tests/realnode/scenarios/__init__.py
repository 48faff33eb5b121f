# SPDX-License-Identifier: Apache-2.0
"""Each module needs a cluster of its own and is a name for all its scenarios."""
