/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of verbs/bind. */
#include "core/section/section.h"

struct binding_settings {
    int64_t timeout_ms;
    const char *scheduler_names; /* "": the usual ones */
    bool trusts_filter;
    int64_t volume_timeout_ms;
    int64_t patience_ms;
};
SECTION_ROW(binding, 302);
