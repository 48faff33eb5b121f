/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of switch/switcher.h. */
#include "core/section/section.h"

struct switch_settings {
    const char *calendar; /* "": no node is switched */
};
SECTION_ROW(switch, 520);
