/* SPDX-License-Identifier: Apache-2.0 */
#include "usage/usage_section.h"

#include "core/section/rows.h"
#include "core/fail.h"
#include "dialect/classes/classes.h"
#include "dialect/dialects_section.h"
#include "usage/usage_source.h"

#include <string.h>

#define SETTINGS struct usage_settings

/* clang-format off */
static const struct option rows[] = {
    {"usage", TEXT(url, "URL", ""), FOR(COMMAND_SERVE),
     .help = "Ask this Prometheus-compatible server (URL/api/v1/query) how busy the cards of pods are: "
             "of a class whose pods preemption ends first, those that are idle end before the "
             "others. Nothing else follows from what it says. Needs --classes."},
    {"usage-query", TEXT(query, "PROMQL", USAGE_QUERY), FOR(COMMAND_SERVE),
     .help = "What is asked: an instant vector of percentages, 0 to 100, whose labels "
             "exported_namespace and exported_pod, or else namespace and pod, name the pod."},
    {"usage-interval", DURATION(interval_ms, "1m", 5000, 10 * MINUTE_MS),
     FOR(COMMAND_SERVE),
     .help = "How often. An answer counts for three times as long; after that nobody is known to be "
             "idle."},
    {"usage-idle-below", INT(idle_below, "PERCENT", "5", 1, 100),
     FOR(COMMAND_SERVE),
     .help = "A pod counts as idle if all its cards were less busy than that for --usage-idle-for."},
    {"usage-idle-for", DURATION(idle_for_ms, "30m", 0, 7 * 24 * 60 * MINUTE_MS),
     FOR(COMMAND_SERVE),
     .help = "See --usage-idle-below. What was before a start of this process is not known."},
    {"usage-token-file", PATH(token_file, "FILE", ""), FOR(COMMAND_SERVE),
     .help = "A bearer token for --usage, read anew each time. Needs https."},
    {"usage-ca-file", PATH(ca_file, "FILE", ""), FOR(COMMAND_SERVE),
     .help = "Certificates of CAs that the server of --usage is trusted by. Without it: the "
             "system's."},
};
/* clang-format on */

static bool check(const struct settings *settings, GError **error)
{
    const struct usage_settings *usage = settings_of(settings, usage);
    const bool tls = g_str_has_prefix(usage->url, "https://");

    if (!*usage->url)
        return true;
    if ((!tls && !g_str_has_prefix(usage->url, "http://")) || strpbrk(usage->url, "@?# "))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'usage' is no address that begins with http:// or https:// and has no "
                         "user, no '?' and no '#'; write it without /api/v1/query");
    if (!tls && *usage->token_file)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'usage-token-file' is set, and 'usage' is not https; a token would be "
                         "readable on its way");
    if (!classes_have_first(settings_of(settings, dialects)->options.classes))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'usage' is set, and no class of 'classes' has 'victims: first'; nothing "
                         "would follow from it, leave it out or set 'classes'");
    return true;
}

const struct section section_usage = {
    .name = "usage",
    .title = "Who is idle",
    ROWS(rows),
    .recorded = true,
    .check = check,
};
