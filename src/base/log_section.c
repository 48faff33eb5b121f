/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_section.h"

#include "core/section/rows.h"
#include "base/log.h"
#include "core/fail.h"

#define SETTINGS struct log_settings

static bool choices_log_level(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"error", "what needs somebody's attention", LOG_LEVEL_ERROR},
        {"warn", "also what looks wrong but was coped with", LOG_LEVEL_WARN},
        {"info", "also one line per bind and per change of state", LOG_LEVEL_INFO},
        {"debug", "also every call", LOG_LEVEL_DEBUG},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

static bool choices_log_format(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"logfmt", "key=value pairs", LOG_FORMAT_LOGFMT},
        {"json", "one JSON object per line", LOG_FORMAT_JSON},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

/* Names, or the numbers that stand for them there: a line at V(n) is printed when n is below the
 * level; debug is 101, info 50, warn 10, error 5. */
static bool alias_read_log_level(const struct option *option, const char *text, void *value,
                                 GError **error)
{
    static const struct {
        gint64 from;
        enum log_level level;
    } numbers[] = {
        {101, LOG_LEVEL_DEBUG},
        {50, LOG_LEVEL_INFO},
        {10, LOG_LEVEL_WARN},
        {0, LOG_LEVEL_ERROR},
    };
    guint64 number;
    if (g_ascii_string_to_unsigned(text, 10, 0, INT32_MAX, &number, NULL)) {
        size_t i = 0;
        while ((gint64)number < numbers[i].from)
            i++;
        *(int64_t *)value = numbers[i].level;
        return true;
    }
    if (option_choose(option, text, value))
        return true;
    return fail_with(
        error, GPULEDGER_ERROR_INVALID,
        "neither a number (debug is 101, info 50, warn 10, error 5) nor a name: '%s' is "
        "not valid, expected error, warn, info or debug",
        text);
}

/* clang-format off */
static const struct option rows[] = {
    {"log-level", CHOICE(level, "LEVEL", "info", choices_log_level),
     FOR(COMMAND_SERVE), .flags = OPTION_LIVE | OPTION_COMMON,
     .alias = "LOG_LEVEL", .alias_help = "also a number", .read_alias = alias_read_log_level,
     .help = "How much is logged to standard error."},
    {"log-format", CHOICE(format, "FORMAT", "logfmt", choices_log_format),
     FOR(COMMAND_SERVE), .flags = OPTION_LIVE,
     .help = "How it is written."},
};
/* clang-format on */

const struct section section_log = {
    .name = "log",
    .title = "Log",
    ROWS(rows),
};
