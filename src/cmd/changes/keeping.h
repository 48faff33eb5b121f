/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Room for one pod while others are moved out of its way: the cards that it will have, or the node, are
 * cordoned, and open again in the end, also when a signal ends the program. What an administrator has
 * cordoned is not touched. One at a time.
 */
#include "cmd/changes/places.h"
#include "maintain/relocation.h"

struct keeping;

/* From here on SIGINT and SIGTERM end the program after what was kept is open again. Borrows both. */
struct keeping *keeping_new(const struct config *config, struct api_client *client);
/* Opens what is kept; complains if that fails. */
void keeping_free(struct keeping *keeping);
typedef struct keeping keeping; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(keeping, keeping_free)

/* These places, struct card_place, instead of those that were kept before. False: some may be. */
bool keeping_set(struct keeping *keeping, const GArray *places, GError **error);

/* What is being done, for whoever looks at these nodes: a line; and for which pod, its UID or NULL: the
 * extender keeps room there for it, once the cards are open. */
bool keeping_tell(struct keeping *keeping, const char *text, const char *uid, GError **error);

/* What is kept: struct card_place; empty: nothing. */
const GArray *keeping_places(const struct keeping *keeping);
