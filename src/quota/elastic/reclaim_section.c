/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/elastic/reclaim_section.h"

#include "core/section/rows.h"

#define SETTINGS struct reclaim_settings

/* clang-format off */
static const struct option rows[] = {
    {"reclaim", BOOL(on, "false"), FOR(COMMAND_SERVE | COMMANDS_ASKING), .needs = "elastic-quotas", .flags = OPTION_NEEDS_API,
     .help = "Take back what elastic quotas have lent: if a pod within its namespace's min finds no "
             "room, pods of namespaces above theirs are evicted, as few cards of them as suffice, "
             "and the room is kept for it. Needs --elastic-quotas, the verb create on "
             "pods/eviction, and get and patch on nodes."},
    {"reclaim-delay", DURATION(delay_ms, "30s", 0, 24 * 60 * MINUTE_MS),
     FOR(COMMAND_SERVE | COMMANDS_ASKING),
     .help = "How long a pod has waited before anybody is evicted for it, so that "
             "an autoscaler may bring nodes first."},
    {"reclaim-at-once", INT(at_once, "PODS", "10", 1, 1000), FOR(COMMAND_SERVE),
     .help = "How many pods are on their way out for --reclaim at a time."},
    {"reclaim-per-minute", INT(per_minute, "PODS", "10", 1, 10000),
     FOR(COMMAND_SERVE),
     .help = "How many pods are evicted for --reclaim in a minute."},
    {"reclaim-uncontrolled", BOOL(uncontrolled, "false"),
     FOR(COMMAND_SERVE | COMMANDS_ASKING),
     .help = "Also evict pods that no controller makes again."},
    {"lend-unreclaimable", BOOL(lend_unreclaimable, "false"), FOR(COMMAND_SERVE | COMMANDS_ASKING),
     .help = "With --reclaim: let a namespace exceed its min also by pods that --reclaim does not evict, "
             "such as those with an opt-out annotation, of groups and without a controller. They may "
             "keep what others are sure of for as long as they run."},
};
/* clang-format on */

const struct section section_reclaim = {
    .name = "reclaim",
    .title = "Taking back what quotas lend",
    ROWS(rows),
    .recorded = true,
};
