/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/wake_section.h"

#include "core/section/rows.h"

#define SETTINGS struct wake_settings

/* clang-format off */
static const struct option rows[] = {
    {"wake", BOOL(on, "true"), FOR(COMMAND_SERVE),
     .help = "Wake a refused pod when room for it has appeared and kube-scheduler has not asked "
             "again within a second: its annotation gpuledger.io/woken is set. Needs the verb "
             "patch on pods. Without it such a pod may wait for minutes in a quiet cluster."},
};
/* clang-format on */

const struct section section_wake = {
    .name = "wake",
    .title = "Waking refused pods",
    ROWS(rows),
    .recorded = true,
};
