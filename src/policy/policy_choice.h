/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The policy that chooses itself: looks ahead (policy/lookahead.h) under each of some policies now and
 * then, and goes over to another one when several looks in a row say that it allocates more by a
 * margin. The same looks in the same order choose the same. One thread at a time; takes no lock.
 */
#include "policy/lookahead.h"

/* What options call it. It stands in no table, since no node or pod can ask for it; where nobody
 * chooses it is as oc. */
extern const struct policy policy_auto;

/* What decisions go by before anything was chosen: auto's first, or the policy itself. */
const struct policy *policy_begin(const struct policy *policy);

/* Points of the cluster's GPU by which another policy must be ahead, in so many looks in a row. */
#define POLICY_CHOICE_MARGIN 0.25
#define POLICY_CHOICE_IN_ROW 3

/* Of which policies. The first is where it begins. */
#define POLICY_CHOICE_N 4

/* What the last look has said. */
struct policy_figure {
    const struct policy *policy;
    double allocated; /* percent of the GPUs; 0: it has not been looked at */
    double gain;      /* points above the policy that was in use, on the same arrivals */
};

struct policy_choice;

struct policy_choice *policy_choice_new(void);
void policy_choice_free(struct policy_choice *choice); /* NULL is ignored */

/* Looks ahead from the nodes and the demand, which are borrowed. Whether the policy is another one
 * now. `cancelled` (atomic) ends it early, without any outcome. */
bool policy_choice_look(struct policy_choice *choice, struct ledger *ledger,
                        const struct demand *demand, const gint *cancelled);

/* The one to use. */
const struct policy *policy_choice_now(const struct policy_choice *choice);
/* Of the last look, POLICY_CHOICE_N of them. */
const struct policy_figure *policy_choice_figures(const struct policy_choice *choice);
/* Looks so far that came to something. */
unsigned policy_choice_looks(const struct policy_choice *choice);
