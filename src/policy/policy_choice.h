/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The policy that chooses itself: looks ahead (policy/lookahead.h) under each of some policies now and
 * then, adds up by how much each was ahead of the policy in use, and goes over to the first of which the
 * sum is large enough (Page's cumulative sum). The same looks in the same order choose the same. One
 * thread at a time; takes no lock.
 */
#include "policy/lookahead.h"

/* What options call it. It stands in no table, since no node or pod can ask for it; where nobody
 * chooses it is as oc. */
extern const struct policy policy_auto;

/* What decisions go by before anything was chosen: auto's first, or the policy itself. */
const struct policy *policy_begin(const struct policy *policy);

/* In points of the cluster's GPU. A look adds to a policy's lead what the policy gained in it, less
 * the allowance, but no more than so much; a lead is never negative. Whose lead reaches the last of
 * these is gone over to; then all begin anew at 0. */
#define POLICY_CHOICE_ALLOWANCE 0.05
#define POLICY_CHOICE_LOOK_MAX 0.2
#define POLICY_CHOICE_LEAD 0.4

/* Of which policies. The first is where it begins. */
#define POLICY_CHOICE_N 4

/* What looks have said. */
struct policy_figure {
    const struct policy *policy;
    double allocated; /* in the last look, percent of the GPUs; 0: it has not been looked at */
    double gain; /* in the last look, points above the policy that was in use, at loads that tell */
    double lead; /* added up since that is in use, points; 0 of that itself */
};

struct policy_choice;

struct policy_choice *policy_choice_new(void);
void policy_choice_free(struct policy_choice *choice); /* NULL is ignored */

/* Looks ahead from the nodes and the demand, which are borrowed. Whether the policy is another one
 * now. `cancelled` (atomic) ends it early, without any outcome. */
bool policy_choice_look(struct policy_choice *choice, struct ledger *ledger,
                        const struct demand *demand, const gint *cancelled);

/* What comes of a look in which each of POLICY_CHOICE_N policies gained so many points over the one in
 * use: as policy_choice_look, which calls it. */
bool policy_choice_weigh(struct policy_choice *choice, const double *gains);

/* The one to use. */
const struct policy *policy_choice_now(const struct policy_choice *choice);
/* POLICY_CHOICE_N of them. */
const struct policy_figure *policy_choice_figures(const struct policy_choice *choice);
/* Looks so far that came to something. */
unsigned policy_choice_looks(const struct policy_choice *choice);
/* Of them, those by which it went over last; 0: it has not. */
unsigned policy_choice_looks_taken(const struct policy_choice *choice);
