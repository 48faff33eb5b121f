/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * This process as one of several replicas (--leader-elect): its Lease, the journal that it leaves
 * to the next holder, and the label by which a Service finds it (--pod-name). One thread starts and ends it; what it hands out serves any.
 */
#include "verbs/leadership.h"
#include "verbs/journal.h"
#include "cmd/backend.h"
#include "options/config.h"
#include "http/routes.h"

struct replica;

/* Stands for election once the store is synced. Borrows all; the backend must be one that has an
 * API server, and be freed later. */
struct replica *replica_start(const struct config *config, struct store *store,
                              struct backend *backend, GError **error);

/* All valid until replica_free, and NULL for no replica (NULL): the only one needs none. */
struct leadership *replica_leadership(struct replica *replica);
struct journal *replica_journal(struct replica *replica);
const struct replica_hooks *replica_hooks(const struct replica *replica);

/* Gives the Lease back, so that another replica takes over at once. NULL is fine. */
void replica_stop(struct replica *replica);

/* Stops it if need be; NULL is fine. No verb may be running. */
void replica_free(struct replica *replica);
