/* SPDX-License-Identifier: Apache-2.0 */
#include "example_section.h"

#include "core/fail.h"
#include "core/section/rows.h"
#include "http/listeners_section.h"

#define SETTINGS struct example_settings

/* clang-format off */
static const struct option rows[] = {
    {"example", BOOL(on, "false"), FOR(COMMAND_SERVE), .flags = OPTION_NEEDS_API,
     .help = "Do what nobody needs."},
    {"example-pace", DURATION(pace_ms, "30s", 1000, MINUTE_MS),
     FOR(COMMAND_SERVE), .needs = "example",
     .help = "How long it takes."},
    {"example-names", LIST(names, "NAME,...", "", item_list_names), FOR(COMMAND_SERVE | COMMAND_PLAN),
     .help = "For what."},
};
/* clang-format on */

static bool check(const struct settings *settings, GError **error)
{
    if (settings_of(settings, example)->on && settings_of(settings, listeners)->admission)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "'example' and 'admission' are both set");
    return true;
}

const struct section section_example = {
    .name = "example",
    .title = "An example",
    ROWS(rows),
    .check = check,
};
