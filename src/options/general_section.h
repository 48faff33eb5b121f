/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of more than one command, and of those that have one alone. */
#include "core/section/section.h"

struct general_settings {
    int64_t until; /* 0: to the end */
    bool help, help_all;
};
SECTION_ROW(general, 900);
