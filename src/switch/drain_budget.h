/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many pods may end for a switch, beside what PodDisruptionBudgets and the hour (evict/moves.h) say.
 * Pure.
 */
#include "switch/calendar.h"

/* Of the pods with GPUs that are on the node still. NULL: they may go; else why none does, a constant. */
const char *drain_budget_forbids(const struct switch_limits *limits, const struct pod_view *pods,
                                 size_t n);
