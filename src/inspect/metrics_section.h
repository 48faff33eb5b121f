/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of inspect/gauges.h. */
#include "core/section/section.h"

struct metrics_settings {
    bool pods;
    int64_t cards_max; /* of more cards metrics have sums only */
};
SECTION_ROW(metrics, 560);
