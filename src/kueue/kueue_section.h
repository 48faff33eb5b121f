/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of kueue/controller.h. */
#include "core/section/section.h"

struct kueue_settings {
    bool on;
};
SECTION_ROW(kueue, 390);
