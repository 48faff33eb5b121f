/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/evictions_section.h"

#include "core/section/rows.h"
#include "evict/permits.h"

#define SETTINGS struct evictions_settings

/* clang-format off */
static const struct option rows[] = {
    {"evictions-observe", LIST(observe, "CAPABILITY,...", "", item_list_capabilities),
     FOR(COMMAND_SERVE),
     .help = "Capabilities that decide, log and count, but evict no pod: calendar, gang-strict, plans, "
             "reclaim. To try one, name it here, and look at "
             "gpuledger_evictions_total{outcome=\"observed\"}."},
    {"evictions-per-minute", INT(per_minute, "PODS", "60", 0, 10000),
     FOR(COMMAND_SERVE),
     .help = "How many pods all capabilities together evict in a minute. 0: any number."},
    {"evictions-for-reclaim", INT(for_reclaim, "PODS", "15", 0, 10000),
     FOR(COMMAND_SERVE),
     .help = "How many of --evictions-per-minute only --reclaim may use."},
    {"evictions-per-namespace", INT(per_namespace, "PODS", "30", 0, 10000),
     FOR(COMMAND_SERVE),
     .help = "How many pods of one namespace are evicted in a minute, by all capabilities together. "
             "0: any number."},
    {"evictions-min-runtime", DURATION(min_runtime_ms, "0s", 0, 24 * 60 * MINUTE_MS),
     FOR(COMMAND_SERVE),
     .help = "--plans and --reclaim evict no pod that has run for less, so that pods do not take turns "
             "without getting anything done."},
};
/* clang-format on */

const struct section section_evictions = {
    .name = "evictions",
    .title = "Evictions",
    ROWS(rows),
    .recorded = true,
};
