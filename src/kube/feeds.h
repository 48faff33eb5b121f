/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How the store is fed with objects of the kinds that are watched (store/kinds/kind.h): as trees, by the
 * reflector, by lists of the audit, and by a saved cluster.
 */
#include "store/kinds/kind.h"
#include "json/json.h"

/* Hands an object of a list or a watch to the store; those that it does not care for are left out in silence.
 * NULL: its text is no JSON, and the error is the caller's. What cannot be read is kept as it was known, or
 * counts as the worst that it may be, and false with an error. */
bool feed_apply(enum feed feed, struct store *store, struct json_arena *arena, const cJSON *object,
                GError **error);
/* Takes it away again; reads no more of the object than its identity. */
bool feed_forget(enum feed feed, struct store *store, struct json_arena *arena, const cJSON *object,
                 GError **error);

/* The namespace that the feed is confined to, NULL for the whole cluster. False: nothing is to be
 * read (no dialect uses ConfigMaps). */
bool feed_namespace(enum feed feed, const char **ret_ns);

/* Where the API server has it: "/api/v1/pods"; NULL if nothing is to be read. Free with g_free. */
char *feed_path(enum feed feed);
/* Where an older one does, or NULL. Free with g_free. */
char *feed_older_path(enum feed feed);
