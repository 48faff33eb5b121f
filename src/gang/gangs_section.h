/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of gang/gangs.h. */
#include "core/section/section.h"

struct gangs_settings {
    bool on;
    bool strict;
    int64_t keep_room_ms; /* 0: none is kept */
};
SECTION_ROW(gangs, 350);
