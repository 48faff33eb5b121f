/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of filter and prioritize. */
#include "core/section/section.h"

struct placing_settings {
    int64_t policy; /* index into policies */
    int64_t shape;  /* enum prioritize_shape */
    int64_t wait_loss;
};
SECTION_ROW(placing, 300);
