/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of a made-up capability. */
#include "core/section/section.h"

struct example_settings {
    bool on;
    int64_t pace_ms;
    const char *names;
};
SECTION_ROW(example, 345);
