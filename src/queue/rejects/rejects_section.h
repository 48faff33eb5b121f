/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of queue/rejects.h. */
#include "core/section/section.h"

struct rejects_settings {
    int64_t limit; /* 0: no node is left out */
    int64_t window_ms;
};
SECTION_ROW(rejects, 340);
