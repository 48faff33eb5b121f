/* SPDX-License-Identifier: Apache-2.0 */
#include "options/general_section.h"

#include "core/section/rows.h"

#define SETTINGS struct general_settings

/* clang-format off */
static const struct option rows[] = {
    {"until", INT(until, "N", "0", 0, INT64_C(1) << 53),
     FOR(COMMAND_REPLAY), .flags = OPTION_FLAG_ONLY,
     .help = "Stop after the record with this number and print the ledger as it was then; 0: play "
             "all."},
    {"help-all", BOOL(help_all, "false"),
     FOR(COMMAND_SERVE), .flags = OPTION_FLAG_ONLY | OPTION_COMMON,
     .help = "Print all options, by what they are about, and exit."},
    {"help", BOOL(help, "false"),
     FOR(COMMAND_ANY), .flags = OPTION_FLAG_ONLY | OPTION_COMMON, .letter = 'h',
     .help = "Print this and exit."},
};
/* clang-format on */

const struct section section_general = {
    .name = "general",
    .title = "General",
    ROWS(rows),
};
