/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/audit_section.h"

#include "core/section/rows.h"

#define SETTINGS struct audit_settings

/* clang-format off */
static const struct option rows[] = {
    {"audit-interval", DURATION(interval_ms, "5m", 0, 24 * 60 * MINUTE_MS),
     FOR(COMMAND_SERVE),
     .help = "How often the ledger is checked against the cluster, which is read as a whole for "
             "it; 0s: only when somebody asks."},
    {"events", BOOL(events, "true"), FOR(COMMAND_SERVE),
     .help = "Write Events about pods with which something is wrong: bound without a card, on a "
             "card that holds too much, not taken by their node side, not to be understood. Needs "
             "the verbs create and patch on events of the group events.k8s.io."},
};
/* clang-format on */

const struct section section_audit = {
    .name = "audit",
    .title = "Audit and Events",
    ROWS(rows),
};
