/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the store is fed with: one row per kind of object, from its place in the API to the store's
 * functions. The reflector and the snapshot read the same rows.
 */
#include "store/store.h"
#include "json/json.h"

struct feed_row {
    const char *resource;       /* plural, as in paths and permissions: "pods" */
    const char *kind;           /* "Pod" */
    const char *api;            /* "/api/v1" */
    const char *older_api;      /* where servers that do not have it there do; or NULL */
    bool optional; /* without permission to read it everything else works: there is none, then */

    /* Hands a complete object to the store. Objects that are none of our business (a ConfigMap of
     * something else) are left out in silence. */
    bool (*apply)(struct store *store, struct json_arena *arena, const cJSON *object,
                  GError **error);
    /* Of an object that `apply` could not read: sees to it that what was known of it counts on, or that
     * it counts as the worst that it may be. NULL, or false: it cannot be told which one it is. */
    bool (*keep)(struct store *store, struct json_arena *arena, const cJSON *object);
    /* Takes it away again; reads no more of the object than its identity. */
    bool (*forget)(struct store *store, struct json_arena *arena, const cJSON *object,
                   GError **error);
};

extern const struct feed_row feeds[FEED_N];

/* `apply`, for an object of a list or a watch; NULL: its text is no JSON, and the error is the caller's. What
 * cannot be read is kept as it was known, and false with an error. */
bool feed_apply(enum feed feed, struct store *store, struct json_arena *arena, const cJSON *object,
                GError **error);

/* The namespace that the feed is confined to, NULL for the whole cluster. False: nothing is to be
 * read (no dialect uses ConfigMaps). */
bool feed_namespace(enum feed feed, const char **ret_ns);

/* Where the API server has it: "/api/v1/pods"; NULL if nothing is to be read. Free with g_free. */
char *feed_path(enum feed feed);
/* Where an older one does, or NULL. Free with g_free. */
char *feed_older_path(enum feed feed);

/* Whether a dialect keeps word of unhealthy cards in a ConfigMap of that name. */
bool feed_wants_configmap(const char *ns, const char *name);
