/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of the made-up part (pods_left.c). */
#include "core/section/section.h"

struct pods_left_settings {
    int64_t most;
};
SECTION_ROW(pods_left, 346);
