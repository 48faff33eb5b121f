/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of usage/usage_source.h. */
#include "core/section/section.h"

struct usage_settings {
    const char *url; /* "": nobody is asked how busy pods are */
    const char *query, *ca_file, *token_file;
    int64_t interval_ms;
    int64_t idle_below; /* percent */
    int64_t idle_for_ms;
};
SECTION_ROW(usage, 380);
