/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who has to leave a node so that none of its cards has more holders than it is to take
 * (gpuledger.io/slots). Holders are counted as the ledger does: who is on no known card counts on each.
 * Pure; the caller serialises access to the node.
 */
#include <gpuledger/ledger.h>

/* UIDs, a set with strings of its own; empty: nobody has to. Of the pods on a card with too many, those
 * that are ending anyway go first, then those of lower priority, then the youngest; those in `staying`
 * (UIDs; NULL: none), whom nobody can evict, last. `most`: 0 is any number. */
GHashTable *slot_drain_find(const struct node *node, int32_t most, GHashTable *staying);
