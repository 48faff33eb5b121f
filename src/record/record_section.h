/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of record/recorder.h. */
#include "core/section/section.h"

struct record_settings {
    const char *file; /* "": nothing is recorded */
    int64_t file_max; /* bytes */
};
SECTION_ROW(record, 550);
