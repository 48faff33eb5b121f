/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of both listeners. */
#include "core/section/section.h"

struct listeners_settings {
    struct address scheduler, operations;
    bool admission;
    int64_t max_connections;
    int64_t max_body; /* bytes */
    int64_t transfer_timeout_ms;
    const char *operations_hosts;
    const char *operations_token_file;
};
SECTION_ROW(listeners, 200);
