/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of store/seals/seals.h. */
#include "core/section/section.h"

struct seals_settings {
    const char *key_file; /* these two "": nothing is sealed */
    const char *secret;
};
SECTION_ROW(seals, 540);
