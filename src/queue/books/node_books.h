/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was found out about nodes, remembered until they change: pods come in numbers that ask for the same,
 * and each changes one node of thousands. Nobody sees that something was remembered, but for the time that
 * it takes.
 *
 * There is a book for each kind of pod, with an entry for each place of the ledger; what an entry is, its
 * owner knows (queue/books/ratings.h, queue/books/verdicts.h). It depends on the node, the request, the policy and the
 * demand, and on nothing else.
 *
 * Guarded by the store's lock.
 */
#include <gpuledger/ranking.h>

struct ledger;
struct node_books;

/* The kinds of pods that are remembered at most, and the entries of all of them together; of more the latest
 * are. */
struct node_books_limits {
    guint books;
    uint32_t entries;
};

struct node_book {
    struct request *request;
    const struct policy *policy;
    uint64_t demand; /* demand_version */
    uint64_t opened; /* when, for the last time */
    uint32_t n;      /* places */
    bool is_new;     /* nothing is in it */
    void *entries;   /* by place; all zeros: nothing is remembered of the node */
};

struct node_books *node_books_new(size_t entry_size, struct node_books_limits limits);
void node_books_free(struct node_books *books);
/* As if nothing had been remembered: what is remembered leaves more of a call's work for other nodes. */
void node_books_forget(struct node_books *books);

/* The one of pods of this kind, for the nodes of the ledger; until the next call. */
struct node_book *node_books_open(struct node_books *books, const struct ledger *ledger,
                                  const struct request *request, const struct policy *policy,
                                  const struct demand *demand);
