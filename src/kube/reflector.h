/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps one feed of the store, or whoever else wants to know of one kind of objects, equal to what the API
 * server has: a list, then watches from where it ended, for ever. A thread of its own per reflector;
 * nothing that the API server does ends it.
 *
 * Lists are consistent (no resourceVersion), paged, and handed on object by object as they arrive. Watches resume from the last resourceVersion seen, bookmarks included; only an
 * expired version (410) leads to a new list, and one of which nothing at all is heard: an API server that
 * was restored from a backup may not have come to it yet. Failures are followed by a pause that doubles, with
 * jitter, and is never shorter than Retry-After.
 */
#include "store/store.h"
#include "kube/api_client.h"

struct reflector;

/* Zero means the default, which is client-go's where it has one. */
struct reflector_options {
    int64_t backoff_ms;       /* the first pause, up to twice that: 800 */
    int64_t backoff_max_ms;   /* 30,000 */
    int64_t backoff_reset_ms; /* without a failure, the next pause is a first one again: 120,000 */
    int64_t idle_ms; /* silence that means a dead peer; bookmarks come each minute: 100,000 */
    int64_t short_watch_ms; /* a watch that ends sooner, without events, is a failure: 1,000 */
    int64_t
        unwatched_ms; /* without a watch that lives for so long, the feed is not watched: 60,000 */
    int64_t page;           /* objects in one reply: API_LIST_PAGE */
};

/* Objects of one kind, and who is told of them, from the reflector's thread. */
struct reflected {
    const char *resource;   /* plural, as in paths: "pods" */
    const char *kind;       /* "Pod" */
    const char *path;       /* where the API server has it; copied. NULL: nothing is to be read */
    const char *older_path; /* where an older one does, or NULL; copied */
    const char *ns;         /* that it is confined to, or NULL */
    unsigned cell;          /* under which it is counted: enum feed, or one of enum watched */
    bool
        optional; /* without it, or the permission to read it, everything else works: there is none, then */

    /* A list begins; what it does not name by its end is there no longer. A list that fails midway is
     * begun again. */
    void (*begin)(void *data);
    void (*end)(void *data);
    bool (*apply)(void *data, struct json_arena *arena, const cJSON *object, GError **error);
    /* An item of the list is no JSON, so that nobody knows what the list does not name; or NULL. */
    void (*spare)(void *data);
    bool (*forget)(void *data, struct json_arena *arena, const cJSON *object, GError **error);
    void (*trouble)(void *data, const char *why);   /* why it cannot be read; NULL: it is */
    void (*unwatched)(void *data, const char *why); /* no watch lives; NULL: one does. Or NULL */
    void *data;
    void (*release)(void *data); /* at the end, or when it cannot start; or NULL */
};

/* Borrows the client and whoever is told. */
struct reflector *reflector_start_on(struct api_client *client, const struct reflected *reflected,
                                     const struct reflector_options *options, GError **error);

/* The same for the store. Borrows the client and the store; options may be NULL. NULL with an error if no thread can be
 * had. */
struct reflector *reflector_start(struct api_client *client, struct store *store, enum feed feed,
                                  const struct reflector_options *options, GError **error);

/* From any thread: asks for a list that begins after this call, without waiting for what is under
 * way, and returns a number by which to ask for its end. While one is wanted, pauses are short. */
uint64_t reflector_relist(struct reflector *reflector);
bool reflector_has_listed(const struct reflector *reflector, uint64_t wanted);

/* Makes it end soon; returns at once. */
void reflector_stop(struct reflector *reflector);

/* Stops it, waits for its thread. */
void reflector_free(struct reflector *reflector);
typedef struct reflector reflector; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(reflector, reflector_free)
