/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of all that evicts pods (evict/permits.h). */
#include "core/section/section.h"

struct evictions_settings {
    const char *observe; /* "": no capability only observes */
    int64_t per_minute, for_reclaim, per_namespace;
    int64_t min_runtime_ms;
};
SECTION_ROW(evictions, 370);
