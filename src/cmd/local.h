/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Commands that look at a cluster by themselves, without a running extender, when the command line
 * names one.
 */
#include "cmd/backend.h"
#include "cmd/keys.h"

/* Whether the command line names a cluster; false: a server too, or two clusters, which has been complained about. */
bool local_choose(const struct config *config, bool *ret_local);

/* What serve would know of the cluster, read once; seals that were not checked are told of. */
struct local {
    struct store *store;
    struct backend *backend;
    struct keys *keys;
};
bool local_open(const struct config *config, struct local *ret_local, GError **error);
void local_close(struct local *local);
