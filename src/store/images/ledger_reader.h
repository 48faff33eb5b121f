/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the pods of each node hold and which quotas they have asked for, for who writes it down: a few
 * nodes at a time are copied under the store's lock, and written after it. Any thread; one reader is one
 * thread's.
 */
#include "store/images/node_images.h"

struct held_pod {
    const struct allocation *allocation; /* on a node of which only the name need be right */
    const char *quota; /* as elastic_quotas_choice, "" for none; NULL: quotas are not kept */
};

struct held_node {
    const char *name;
    uint64_t number; /* under which it may be told (store/observer.h), else 0 */
    GArray *pods;    /* struct held_pod */
};

const char *held_quota(const struct elastic_quotas *quotas, const char *uid);

/* `numbered`: each node gets a number, which is then to be told, unless it has no cards and no pods. */
struct ledger_reader;
#define ledger_reader_new(store, numbered) ledger_reader_new_by(store, numbered, __func__)
struct ledger_reader *ledger_reader_new_by(struct store *store, bool numbered, const char *who);
void ledger_reader_free(struct ledger_reader *reader); /* NULL is ignored */
typedef struct ledger_reader ledger_reader;            /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ledger_reader, ledger_reader_free)

/* The next few: struct held_node, the reader's own until the next call. NULL: there are no more. */
const GArray *ledger_reader_next(struct ledger_reader *reader);
