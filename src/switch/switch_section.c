/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/switch_section.h"

#include "core/section/rows.h"

#define SETTINGS struct switch_settings

/* clang-format off */
static const struct option rows[] = {
    {"calendar", PATH(calendar, "FILE", ""), FOR(COMMAND_SERVE | COMMAND_SWITCH), .flags = OPTION_NEEDS_API,
     .help = "Let nodes share their cards in another way at other times: windows of the week, each "
             "with a value of nvidia.com/device-plugin.config or nvidia.com/mig.config, for nodes "
             "of NVIDIA's plugin, or of gpuledger.io/slots, as docs/switch.md has them. Before one "
             "begins, nodes take no pods that outlast it; then the others are evicted. Needs the "
             "rights of manifests/overlays/switch."},
};
/* clang-format on */

const struct section section_switch = {
    .name = "switch",
    .title = "Sharing cards otherwise at times",
    ROWS(rows),
};
