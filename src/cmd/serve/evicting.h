/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the capabilities of serve that evict pods share: --reclaim, --plans, --calendar and --gang-strict. They have a
 * client and a cluster of their own, whose calls end at once when the process is told to end, and the permits
 * (evict/permits.h). One thread.
 */
#include "cmd/backend.h"
#include "evict/permits.h"

struct evicting;

/* With nothing in it where no capability is on. NULL, with an error: it cannot be had. */
struct evicting *evicting_start(const struct config *config, struct backend *backend,
                                GError **error);
/* Ends all calls under way; none begins from here on. NULL is ignored. */
void evicting_abort(struct evicting *evicting);
void evicting_free(struct evicting *evicting); /* NULL is ignored */

/* NULL where no capability is on. */
struct permits *evicting_permits(const struct evicting *evicting);
struct api_client *evicting_client(const struct evicting *evicting);
struct cluster *evicting_cluster(const struct evicting *evicting);
