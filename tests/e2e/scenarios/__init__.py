# SPDX-License-Identifier: Apache-2.0
"""Every function scenario_… of the modules here is a scenario; its name follows the prefix."""
