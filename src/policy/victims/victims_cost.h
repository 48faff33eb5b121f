/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the end of pods costs: which set is better, and the order in which victims are tried. */
#include "policy/victims/victims.h"

/* Negative, 0, positive, as the first is better, as good, or worse. */
int victims_cost_compare(const struct victims_cost *a, const struct victims_cost *b);

/* The first start with one more pod; before its priority is counted as `highest`. */
int64_t victims_cost_oldest(const struct victims_cost *cost, int64_t priority, int64_t started_s);

/* Its class counts before whether it is idle. */
bool victim_ends_as_idle(const struct victim *victim);

/* Those that are to end in any case come first, then those whose end costs most. */
void victims_sort(struct victim *victims, size_t n);
