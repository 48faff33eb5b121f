/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of dialects. */
#include "core/section/section.h"
#include <gpuledger/dialect.h>

struct dialects_settings {
    struct dialect_options options;
};
SECTION_ROW(dialects, 310);
