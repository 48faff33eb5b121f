/* SPDX-License-Identifier: Apache-2.0 */
#include "gang/gangs_section.h"

#include "core/fail.h"
#include "core/section/rows.h"
#include "dialect/classes/classes.h"
#include "dialect/dialects_section.h"

#define SETTINGS struct gangs_settings

/* clang-format off */
static const struct option rows[] = {
    {"gangs", BOOL(on, "false"), FOR(COMMAND_SERVE | COMMAND_SIMULATE | COMMAND_PLAN | COMMANDS_ASKING), .flags = OPTION_COMMON,
     .help = "Bind groups of pods whole or not at all: those of PodGroups (scheduling.k8s.io, "
             "scheduling.x-k8s.io), of scheduling.x-k8s.io/pod-group and of Koordinator's "
             "annotations. Their places are held, for 15 s after one of them was last asked about, "
             "until all can be bound."},
    {"gang-strict", BOOL(strict, "false"), FOR(COMMAND_SERVE), .needs = "gangs", .flags = OPTION_NEEDS_API,
     .help = "With --gangs: when a group stays half for longer than its deadline, after a crash or a "
             "Binding that was refused, evict its pods that are bound, at most 30 a minute. Budgets "
             "are heeded. Needs the rights of manifests/overlays/gang-strict."},
    {"gang-keep-room", DURATION(keep_room_ms, "0s", 0, 60 * MINUTE_MS),
     FOR(COMMAND_SERVE | COMMAND_SIMULATE), .needs = "gangs",
     .help = "With --gangs: how long nodes are kept for a group that has found no room for 30 s: as many "
             "as would hold it, and from pods that are not more important, so that smaller pods do not "
             "go before it for ever. At most half of the time, a quarter for groups of one namespace. "
             "0s: none are kept."},
};
/* clang-format on */

static bool check(const struct settings *settings, GError **error)
{
    if (classes_want_groups(settings_of(settings, dialects)->options.classes) &&
        !settings_of(settings, gangs)->on)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'classes' has a class whose pods come in groups, and 'gangs' is off; set "
                         "'gangs', or give the class the setting 'group: optional'");
    return true;
}

const struct section section_gangs = {
    .name = "gangs",
    .title = "Groups of pods",
    ROWS(rows),
    .recorded = true,
    .check = check,
};
