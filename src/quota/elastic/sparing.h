/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods preemption spares because quotas guarantee what they hold. A pod whose account would have more than its
 * min ends no pod of an account that then has less than its own min. Otherwise --reclaim would take the room back, the
 * pod would preempt again, and neither would stop.
 *
 * Of the pods of one account on a node the least important may end, as many as leave the account its min. If accounts
 * stand below one another, each of them, up to where they meet the preempting pod's, has to have borrowed what ends,
 * as with reclaim (policy/reclaim.h). Pods that terminate count as gone. Pods that count in the preempting pod's own
 * account, or in none, are not spared.
 */
#include "quota/elastic/elastic_quotas.h"

struct elastic_sparing;

/* NULL: no pod is spared, because the room (NULL: there is none) limits nothing. Borrows room and ledger, and so is
 * for the time in which neither changes. */
struct elastic_sparing *elastic_sparing_new(const struct elastic_room *room, struct ledger *ledger);
void elastic_sparing_free(struct elastic_sparing *sparing); /* NULL is ignored */
typedef struct elastic_sparing elastic_sparing;             /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(elastic_sparing, elastic_sparing_free)

/* The UIDs, a set, of the spared pods on a node of the ledger whose priority is below the given one; NULL: there are
 * none, or no sparing (NULL). For g_hash_table_unref. */
GHashTable *elastic_sparing_find(struct elastic_sparing *sparing, const struct node *node,
                                 int64_t priority);
