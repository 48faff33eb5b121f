/* SPDX-License-Identifier: Apache-2.0 */
#include "options/process_section.h"

#include "core/section/rows.h"

#define SETTINGS struct process_settings

/* clang-format off */
static const struct option rows[] = {
    {"shutdown-delay", DURATION(shutdown_delay_ms, "8s", 0, 10 * MINUTE_MS),
     FOR(COMMAND_SERVE), .flags = OPTION_LIVE,
     .help = "How long it goes on answering after SIGTERM with readiness failing, so that nobody is "
             "sent here any more when it ends: the readiness probe's period times its "
             "failureThreshold, and some seconds for Service and kube-proxy. Where it is not given, it "
             "counts in pods and with --leader-elect only: elsewhere no Service leads here."},
    {"drain-timeout", DURATION(drain_timeout_ms, "20s", 0, 10 * MINUTE_MS),
     FOR(COMMAND_SERVE), .flags = OPTION_LIVE,
     .help = "How long calls that are under way may take to finish after SIGTERM and "
             "--shutdown-delay. Keep the sum of both below the pod's "
             "terminationGracePeriodSeconds (30 unless configured)."},
    {"config", PATH(file, "FILE", ""), FOR(COMMAND_SERVE), .flags = OPTION_NO_FILE | OPTION_COMMON,
     .help = "A YAML file with values for these options: flat, the keys are their long names. "
             "SIGHUP reads it again."},
    {"print-config", BOOL(print_config, "false"),
     FOR(COMMAND_SERVE), .flags = OPTION_FLAG_ONLY,
     .help = "Print the effective configuration as YAML, with the source of each value, and "
             "exit."},
    {"print-schema", BOOL(print_schema, "false"),
     FOR(COMMAND_SERVE), .flags = OPTION_FLAG_ONLY,
     .help = "Print the JSON Schema of the configuration file, for editors and validators, and "
             "exit."},
};
/* clang-format on */

const struct section section_process = {
    .name = "process",
    .title = "Running",
    ROWS(rows),
};
