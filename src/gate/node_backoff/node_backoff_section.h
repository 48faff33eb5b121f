/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of node backoff (node_backoff.h). */
#include "core/section/section.h"

struct node_backoff_settings {
    int64_t limit; /* 0: no node is left out */
    int64_t window_ms;
};
SECTION_ROW(node_backoff, 340);
