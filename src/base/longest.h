/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The longest call of filter, prioritize or preempt within the last minute. Time comes in, in microseconds
 * of any clock that only goes forward. Any thread.
 */
#include "base/metrics.h"

#define LONGEST_WINDOW_S 60

void longest_note(enum verb verb, int64_t duration_us, int64_t now_us);

/* How long it was, and of which verb; 0: there was no call. */
int64_t longest_call(int64_t now_us, enum verb *ret_verb);

/* For Prometheus. */
void longest_write(GString *text, int64_t now_us);

/* As if there had been no call: for tests. */
void longest_clear(void);
