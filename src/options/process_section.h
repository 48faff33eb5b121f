/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of the process that serves. */
#include "core/section/section.h"

struct process_settings {
    int64_t shutdown_delay_ms;
    int64_t drain_timeout_ms;
    const char *file;
    bool print_config;
    bool print_schema;
};
SECTION_ROW(process, 500);
