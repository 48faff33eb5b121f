/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many pods may end for switches, beside what PodDisruptionBudgets say. What has ended is counted by whoever
 * switches, so after a restart the hour begins anew. Pure.
 */
#include "switch/calendar.h"

/* Of the pods with GPUs that are on the node still. NULL: they may go; else why none does, a constant. */
const char *drain_budget_forbids(const struct switch_limits *limits, const struct pod_view *pods,
                                 size_t n);

/* One more may be evicted now, after those at `times_ms` (int64_t, in order; NULL: nobody counts). */
bool drain_budget_allows(const struct switch_limits *limits, const GArray *times_ms,
                         int64_t now_ms);
extern const char drain_budget_spent[]; /* why not */
