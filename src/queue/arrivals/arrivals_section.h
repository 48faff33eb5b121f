/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of queue/arrivals/arrivals.h. */
#include "core/section/section.h"

struct arrivals_settings {
    int64_t hold_ms; /* 0: no order is kept */
    int64_t places;
};
SECTION_ROW(arrivals, 330);
