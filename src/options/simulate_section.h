/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of the command simulate. */
#include "core/section/section.h"

struct simulate_settings {
    const char *pods;
    const char *trace_nodes;
    const char *trace_pods;
    const char *policies; /* these two as on the command line */
    const char *arrivals;
    bool churn;
    int64_t lifetimes;
    const char *moves; /* "N" or "N/h" */
    int64_t lifetime_ms;
    const char *seeds;
    bool in_order;
    bool foreseen;
    int64_t pace_ms;
    int64_t per_second;
    int64_t ranked; /* enum ranked */
    int64_t weight;
    int64_t jobs; /* 0: one for each processor */
    const char *cluster_out;
    bool times;
};
SECTION_ROW(simulate, 820);
