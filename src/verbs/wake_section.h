/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of verbs/wake.h. */
#include "core/section/section.h"

struct wake_settings {
    bool on;
};
SECTION_ROW(wake, 304);
