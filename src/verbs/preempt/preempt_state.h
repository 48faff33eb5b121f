/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One call of preempt, for preempt*.c and recall.c alone. */
#include "verbs/call.h"
#include "verbs/preempt/preempt_node.h"

/* The last answer for the pod (queue/clearings.h), as far as it counts: the node that the pod is nominated
 * to, or all of the answer if it is none of them. */
struct recall {
    struct clearing *clearing; /* NULL: none, and there are no nodes */
    int64_t since_ms;          /* the clearing's */
    const struct preemption_node *nodes;
    size_t n_nodes;
    const struct preemption_node *
        *offered; /* for each that kube-scheduler has named: the same in `nodes`, or NULL */
    const struct preemption_node **absent; /* those that it has not named */
    struct candidate *candidates;          /* theirs */
    size_t n_absent;
};

struct preempt {
    struct call call;
    struct preemption_args args;
    struct json_arena *arena;
    struct preempt_query query;
    struct work_meter work; /* of its searches, which keep no lock */
    struct recall recall;

    /* Of the moment: */
    struct candidate *candidates; /* per node */
    GPtrArray *left_over;         /* struct stand_in *, to be freed once no lock is held */
    struct budgets *budgets;      /* NULL: nothing was looked at */
    struct idleness *idleness;    /* NULL: nobody is known to be idle */

    /* What is known from now on: */
    struct clearing *answered; /* NULL: nothing new */
    bool recalled;             /* the answer is no more than the last one was */
};

/* Before the moment: what is known of the last answer. */
void recall_find(struct preempt *preempt);
/* Once the moment is known: what counts no longer is forgotten. */
void recall_check(struct preempt *preempt);
/* Whether preempt goes by the last answer, and then with which nodes, in the order in which they are
 * offered; none: kube-scheduler waits for those who end. */
bool recall_answer(const struct preempt *preempt, struct preemption_node *answers, size_t *ret_n);
/* As text for a record; NULL: there is nothing to say. For g_string_free. */
GString *recall_text(const struct preempt *preempt);
/* Under the lock: what this answer leaves. */
void recall_keep(struct preempt *preempt);
void recall_clear(struct preempt *preempt);
