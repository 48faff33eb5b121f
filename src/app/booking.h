/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Booking what a placement says. Under the store's lock.
 */
#include "app/store.h"

/* For which pod, and when. */
struct booking_entry {
    const char *uid, *ns, *name;
    const struct moment *moment;
};

/* Reserves the placement's shares for the pod, later than all others on the node: node sides serve
 * the oldest first. NULL: they do not fit after all, and nothing is changed. */
struct allocation *booking_reserve(struct ledger *ledger, const struct node *node,
                                   const struct booking_entry *entry,
                                   const struct placement *placement, enum reason *ret_reason);
