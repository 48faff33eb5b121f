/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Booking what a placement says. Under the store's lock.
 */
#include "store/store.h"
#include "json/json.h"

/* For which pod, and when. */
struct booking_entry {
    const char *uid, *ns, *name;
    const struct moment *moment;
    int64_t turn; /* as in struct allocation */
};

/* Reserves the placement's shares for the pod, later than all others on the node: node sides serve
 * the oldest first. NULL: they do not fit after all, and nothing is changed. */
struct allocation *booking_reserve(struct ledger *ledger, const struct node *node,
                                   const struct booking_entry *entry,
                                   const struct placement *placement, enum reason *ret_reason);

/* The same for a pod about which bind was not asked yet: no node side knows of it. */
struct allocation *booking_hold(struct ledger *ledger, const struct node *node,
                                const struct booking_entry *entry,
                                const struct placement *placement);

/* As the journal (verbs/journal.h) and records have it; of one outside the ledger, with its node's name. */
void booking_encode(struct json_writer *writer, const struct allocation *booking);
void booking_encode_on(struct json_writer *writer, const struct allocation *booking,
                       const char *node);
/* An allocation of that booking with an unknown outcome, and its node; NULL: it cannot be understood.
 * What annotations carry beside the shares is lost. `classes`: those that there are now. */
struct allocation *booking_decode(struct json_arena *arena, const cJSON *object,
                                  const struct classes *classes, const char **ret_node);
