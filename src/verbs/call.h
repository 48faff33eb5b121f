/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One call of filter or prioritize, which kube-scheduler sends the same body: how it is read, what
 * is measured of it, and what its failure counts as. preempt has a body of its own.
 */
#include "verbs/extender.h"
#include "wire/extender.h"

struct call {
    struct extender *extender;
    enum verb verb;
    struct filter_args args;
    const char *body;
    size_t length;
    int entry;                  /* for a record: which of the verb's entries was called */
    GString *recalled;          /* for a record: the last answer, as preempt knows it; NULL: none */
    struct moment moment;       /* of the decision: store_decide_recorded */
    int64_t start_us, since_us; /* the call's beginning, the present phase's */
};

void call_begin(struct call *call, struct extender *extender, enum verb verb);

/* A phase has ended, and the next begins. */
void call_phase(struct call *call, enum phase phase);

/* False: nothing can be said, since this replica stands by, or has not read the cluster yet. */
bool call_check_ready(const struct call *call, GError **error);

/* Sets the arguments. Fails also where nothing can be said: this replica stands by, or has not read
 * the cluster yet. */
bool call_read(struct call *call, struct json_arena *arena, const char *body, size_t length,
               GError **error);

/* The answer is written; `failure` NULL: it is one. Records both if there was a decision. */
void call_end(struct call *call, const GString *reply, const GError *failure);
