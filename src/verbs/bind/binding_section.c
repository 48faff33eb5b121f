/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/bind/binding_section.h"

#include "core/section/rows.h"

#define SETTINGS struct binding_settings

/* clang-format off */
static const struct option rows[] = {
    {"bind-timeout", DURATION(timeout_ms, "25s", 1000, 10 * MINUTE_MS),
     FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .help = "How long one bind may take, waiting included. Keep it below kube-scheduler's "
             "httpTimeout for the extender (5s unless configured; the manifests here say 30s), "
             "or kube-scheduler gives up on binds that succeed."},
    {"scheduler-names", LIST(scheduler_names, "NAME,...", "", item_list_names),
     FOR(COMMAND_SERVE),
     .help = "Bind only pods with one of these as schedulerName (default-scheduler where a pod says "
             "none). Without it: all but those whose own scheduler places them, of Volcano, KAI and "
             "Koordinator."},
    {"bind-trusts-filter", BOOL(trusts_filter, "false"), FOR(COMMAND_SERVE),
     .help = "Do not ask again, of a pod that filter has let pass on the node in the last five "
             "minutes, whether its nodeSelector, affinity and tolerations let it be there. For "
             "profiles of kube-scheduler without the plugins that ask; who can forge a call of bind "
             "can forge one of filter as well."},
    {"volume-bind-timeout", DURATION(volume_timeout_ms, "10m", 0, 60 * MINUTE_MS),
     FOR(COMMAND_SERVE | COMMANDS_ASKING),
     .help = "How long room is kept, from pods of any priority, for a pod with volume claims, ephemeral "
             "volumes or resource claims that filter has let pass: kube-scheduler calls bind once those are "
             "ready. Give kube-scheduler's bindTimeoutSeconds (600 unless configured). 0s: not at all."},
    {"assign-patience", DURATION(patience_ms, "10s", 0, 60 * MINUTE_MS),
     FOR(COMMAND_SERVE | COMMANDS_ASKING), .flags = OPTION_LIVE,
     .help = "How long the node side is expected to take to match a pod. A pod that it could "
             "mistake for one bound less than this ago waits inside bind; for an older one it is "
             "turned away until that one is matched or gone."},
};
/* clang-format on */

const struct section section_binding = {
    .name = "binding",
    .title = "Binding",
    ROWS(rows),
    .recorded = true,
};
