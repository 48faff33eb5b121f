/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of base/log.h. */
#include "core/section/section.h"

struct log_settings {
    int64_t level;  /* enum log_level */
    int64_t format; /* enum log_format */
};
SECTION_ROW(log, 570);
