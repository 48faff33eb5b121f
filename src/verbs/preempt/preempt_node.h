/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A node, and which pods end there so that another one comes: the search of preempt and of its preview. It needs
 * no lock, and asks the cards and the quotas; all other rules have been asked (feasibility_open).
 */
#include "policy/effort/work_meter.h"
#include "policy/idleness.h"
#include "policy/victims/stand_in.h"
#include "policy/victims/victims.h"
#include "queue/budgets.h"
#include "gate/gate.h"
#include "wire/preemption.h"

#include <gpuledger/dialect.h>

/* The pod that is to come, and what counts on every node. Borrowed. */
struct preempt_query {
    struct json_arena *arena;
    const struct request *request;
    struct admission_query admission; /* `work`: of the searches */
    const struct pod_facts *facts;    /* the pod's */
    int64_t priority;
    bool particular; /* as struct preemption_args has it */
    int64_t now_ns;
    const struct budgets *budgets;
    const int64_t *allowed; /* by each budget */
    const struct idleness *idleness;
};

/* A node that is looked at. */
struct candidate {
    bool seen;
    struct stand_in *stand_in; /* NULL: nobody knows it, or nothing that ends helps there */
    bool alone;                /* no room is kept on it, so the next one who asks sees it so, too */
    struct gates_relief *relief; /* NULL: limits let the pod in as things are */
    GHashTable
        *spared; /* UIDs of pods that do not end for it (quota/elastic/sparing.h); NULL: none */
    int64_t *priorities; /* of the CPU-only pods among those that are named, in the order of their
                          * names; INT64_MIN: of none; NULL: nothing was looked up */
};

/* What a candidate has beside its stand-in. */
void candidate_clear(struct candidate *candidate);

/* What is found on a node. */
struct preempt_answer {
    struct preemption_node node; /* whom to end, perhaps nobody */
    struct victims_cost
        cost;      /* without pods that the ledger does not know, but for their violations */
    size_t n_last; /* so many of them the last answer has named and are not being deleted yet */
    bool beyond;   /* there are others who are not */
};

/* Whose end lets the pod in on the node, at the least cost. False: nobody's; or the search was cut short, as the
 * meter says. `on`: as kube-scheduler has named the node. `last`: who of those that it has not named may end
 * besides who is being deleted; NULL: all who are less important. */
bool preempt_search(const struct preempt_query *query, const struct candidate *candidate,
                    const struct preemption_node *on, const struct preemption_node *last,
                    struct preempt_answer *ret_answer);
