/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of what elastic quotas lend, and of taking it back (src/reclaim). */
#include "core/section/section.h"

struct reclaim_settings {
    bool on;
    int64_t delay_ms;
    int64_t at_once, per_minute; /* evictions */
    bool uncontrolled;
    bool lend_unreclaimable;
};
SECTION_ROW(reclaim, 360);
