/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the search for remedies shares, for remed*.c alone. All of it is under the copy's lock, and
 * leaves the copy as it was.
 */
#include "explain/remedies.h"

struct search {
    const struct remedies_query *query;
    struct ledger *ledger;
    struct moment moment;
    GArray *found; /* struct remedy */
    GArray *pairs; /* struct remedy_pair; NULL: this is the search for the second of a pair */
    const struct node *only; /* of that, the node; NULL: any */
    int tries, tries_max; /* questions asked, and how many may be */
    int lists; /* nodes whose pods the cluster was asked for */
};

/* The question about the pod, to be asked of nodes; ends with feasibility_clear. `without`: enum
 * feasibility_flag. */
void search_begin(struct search *search, struct feasibility *ret_question,
                  const struct pod_view *pod, const struct request *request, unsigned without);

/* Filter's question, whether kube-scheduler asks it or not. */
enum reason search_ask(struct search *search, const struct node *node, const struct pod_view *pod,
                       const struct request *request, struct placement *ret_placement);

/* Whether the pod, as it is, may go to the node, as it is now. */
bool search_takes(struct search *search, const struct node *node);

/* The same of a pod that differs in its constraints. */
bool search_takes_as(struct search *search, const struct node *node, const struct pod_view *pod);

/* What keeps kube-scheduler from asking about the node, whatever other pods are there. */
enum barrier search_barrier(const struct search *search, const struct node *node);

/* The first node that takes a pod other than that which was refused; NULL: none. */
const struct node *search_taker(struct search *search, const struct pod_view *pod);

/* Whether some dialect reads the resource at all. */
bool search_reads(const char *resource);

bool search_may_try(const struct search *search);
bool search_has(const struct search *search, enum remedy_kind kind);

/* Takes the remedy's strings. */
void search_add(struct search *search, struct remedy remedy, const struct node *node);

/* For remedy->pods and remedy->amounts. */
GArray *remedy_pods_new(void);
GArray *remedy_amounts_new(void);

/* Why the node, which kube-scheduler does not ask about, has no room beside its GPUs: one of the
 * barriers that are sums, or BARRIER_NONE. */
enum barrier search_shortage(struct search *search, const struct node *node);

/* Plan neither moves nor ends the pod, with --force either. */
bool search_stays(const struct allocation *allocation);
/* It does so with --force alone. */
bool search_needs_force(const struct allocation *allocation);
/* Nothing that plan knows besides keeps it from the pod now; of one that is to end, its priority too. */
bool search_may_plan(const struct search *search, const struct allocation *allocation, bool end);

void remedy_clear(struct remedy *remedy);
GArray *remedies_new(void); /* of struct remedy */

/* Asks all of the searches below; what they have found, the smallest first. */
void search_singles(struct search *search);

/* Two that are enough only together. Takes the strings of both. */
void search_add_pair(struct search *search, struct remedy first, struct remedy second,
                     const struct node *node);
void search_pairs(struct search *search);
void search_two_amounts(struct search *search); /* of a pod's */

/* Each adds what it finds, whatever the others find, with questions of its own; in any order. */
void search_nodes(struct search *search);                   /* that change */
void search_amounts(struct search *search);                 /* other ones */
void search_dialects(struct search *search);                /* another one */
void search_annotations(struct search *search);             /* one less */
void search_pods(struct search *search);                    /* that end or move */
void search_quotas(struct search *search);                  /* elastic ones */
void search_cpu_pods(struct search *search);                  /* that hold no GPU, and move */
