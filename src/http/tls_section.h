/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of http/tls.h. */
#include "core/section/section.h"

struct tls_settings {
    const char *certificate, *key, *client_ca, *client_names; /* "": none */
    bool operations;                                          /* their listener, too */
};
SECTION_ROW(tls, 210);
