/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Words for the rows of a section, for NAME_section.c alone, which says before them what struct they are of:
 *
 *     #define SETTINGS struct node_backoff_settings
 *     static const struct option rows[] = {
 *         {"reject-limit", INT(limit, "N", "3", 0, 100), FOR(COMMAND_SERVE), .help = "…"},
 *     };
 *     const struct section section_rejects = {.name = "rejects", .title = "…", ROWS(rows)};
 */
#include "core/section/option.h"

/* A member of another type than the kind's is no alternative of _Generic, and does not compile. */
#define AT(kind_, ctype, member_)                                                                  \
    .kind = kind_, .offset = _Generic(((SETTINGS *)0)->member_, ctype: offsetof(SETTINGS, member_))
#define SHOWN(metavar_, fallback_) .metavar = metavar_, .fallback = fallback_
#define WITHIN(min_, max_) .min = min_, .max = max_
#define TEXT(member_, metavar_, fallback_)                                                         \
    AT(OPTION_TEXT, const char *, member_), SHOWN(metavar_, fallback_)
#define NAMESPACE(member_, fallback_)                                                              \
    AT(OPTION_NAMESPACE, const char *, member_), SHOWN("NAMESPACE", fallback_)
#define LIST(member_, metavar_, fallback_, list_)                                                  \
    AT(OPTION_LIST, const char *, member_), SHOWN(metavar_, fallback_), .list = &list_
#define PATH(member_, metavar_, fallback_)                                                         \
    AT(OPTION_PATH, const char *, member_), SHOWN(metavar_, fallback_)
#define INT(member_, metavar_, fallback_, min_, max_)                                              \
    AT(OPTION_INT, int64_t, member_), SHOWN(metavar_, fallback_), WITHIN(min_, max_)
#define BOOL(member_, fallback_) AT(OPTION_BOOL, bool, member_), SHOWN(NULL, fallback_)
#define DURATION(member_, fallback_, min_, max_)                                                   \
    AT(OPTION_DURATION, int64_t, member_), SHOWN("DURATION", fallback_), WITHIN(min_, max_)
#define SIZE(member_, fallback_, min_, max_)                                                       \
    AT(OPTION_SIZE, int64_t, member_), SHOWN("SIZE", fallback_), WITHIN(min_, max_)
#define CHOICE(member_, metavar_, fallback_, choice_)                                              \
    AT(OPTION_CHOICE, int64_t, member_), SHOWN(metavar_, fallback_), .choice = choice_
#define ADDRESS(member_, fallback_)                                                                \
    AT(OPTION_ADDRESS, struct address, member_), SHOWN("ADDRESS:PORT", fallback_)
#define CLASSES(member_) AT(OPTION_CLASSES, struct classes *, member_), SHOWN("YAML", "")

#define FOR(commands_) .commands = (commands_)
#define MINUTE_MS INT64_C(60000)

/* Commands that have options in common. */
#define COMMANDS_ASKING (COMMAND_EXPLAIN | COMMAND_FIT) /* they answer as serve would */
#define COMMANDS_VIEWING                                                                           \
    (COMMAND_NODES | COMMAND_PODS | COMMAND_INSPECT | COMMAND_TOP) /* they show the ledger */
#define COMMANDS_LISTING (COMMAND_NODES | COMMAND_PODS | COMMAND_QUOTAS | COMMAND_TOP) /* objects */
#define COMMANDS_MOVING (COMMAND_DRAIN | COMMAND_PLAN) /* they read the cluster by themselves */
#define COMMANDS_CORDONING (COMMAND_CORDON | COMMAND_UNCORDON) /* they ask the API server only */
#define COMMANDS_OF_CLIENTS                                                                        \
    (COMMAND_QUOTAS | COMMANDS_VIEWING | COMMAND_AUDIT | COMMAND_RESUME | COMMAND_PLAN |           \
     COMMANDS_ASKING)
#define COMMANDS_ON_CLUSTERS                                                                       \
    (COMMAND_SERVE | COMMAND_AUDIT | COMMANDS_MOVING | COMMAND_MIGRATE | COMMAND_QUOTAS |          \
     COMMANDS_VIEWING | COMMANDS_ASKING)
#define COMMANDS_LOOKING                                                                           \
    (COMMAND_QUOTAS | COMMAND_SERVE | COMMAND_AUDIT | COMMAND_MIGRATE | COMMANDS_MOVING |          \
     COMMANDS_VIEWING | COMMANDS_ASKING)
#define COMMANDS_READING (COMMANDS_ON_CLUSTERS | COMMAND_SIMULATE) /* a saved cluster */

/* What a section has of its rows. */
#define ROWS(rows_) .rows = rows_, .n_rows = G_N_ELEMENTS(rows_), .size = sizeof(SETTINGS)
