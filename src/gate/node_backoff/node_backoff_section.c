/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/node_backoff/node_backoff_section.h"

#include "core/section/rows.h"

#define SETTINGS struct node_backoff_settings

/* clang-format off */
static const struct option rows[] = {
    {"reject-limit", INT(limit, "N", "3", 0, 100), FOR(COMMAND_SERVE),
     .help = "Leave a node, or one of its cards, out once its kubelet has rejected so many pods within "
             "--reject-window: for 10s, then with one pod at a time, and twice as long after each that "
             "is rejected again, up to 10m. The pods of one namespace close a node to that namespace, "
             "those of several to all. 0: never."},
    {"reject-window", DURATION(window_ms, "1m", 1000, 60 * MINUTE_MS), FOR(COMMAND_SERVE),
     .help = "See --reject-limit."},
};
/* clang-format on */

const struct section section_node_backoff = {
    .name = "node_backoff",
    .title = "Nodes whose kubelet rejects pods",
    ROWS(rows),
    .recorded = true,
};
