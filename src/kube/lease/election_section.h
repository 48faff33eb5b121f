/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of kube/election.h, and of what else a replica does for others. */
#include "core/section/section.h"

struct election_settings {
    bool on;
    const char *lease, *ns;
    int64_t duration_ms;
    const char *identity; /* what the holder's name begins with; "": the host's name */
    const char *pod_name; /* "": no label is kept */
};
SECTION_ROW(election, 400);
