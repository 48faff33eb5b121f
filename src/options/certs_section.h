/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of the command certs. */
#include "core/section/section.h"

struct certs_settings {
    const char *folder; /* "": nothing is kept */
    const char *ns;
    const char *clients; /* these two with commas between */
    const char *hosts;
    int64_t days;
    bool renew;
};
SECTION_ROW(certs, 830);
