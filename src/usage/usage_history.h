/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Since when pods have done nothing with their cards, from one answer of the source to the next. Whom an
 * answer does not name is not known, and begins anew; so do all after a time without answers.
 *
 * Times are Unix milliseconds. One thread; reads no clock.
 */
#include "policy/idleness.h"
#include "usage/usage_answer.h"

struct usage_history;

struct usage_rule {
    int64_t below;    /* percent: less than that is nothing */
    int64_t after_ms; /* for so long, and a pod counts as idle */
    int64_t gap_ms;   /* an answer that is older says nothing any more */
};

struct usage_history *usage_history_new(const struct usage_rule *rule);
void usage_history_free(struct usage_history *history); /* NULL is ignored */

void usage_history_take(struct usage_history *history, const struct usage_reading *reading,
                        int64_t now_ms);

/* What the last answer came to, by the order of names; one reference. */
struct idleness *usage_history_tell(const struct usage_history *history);
