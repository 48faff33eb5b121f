/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether the group that a workload's pods are of (gang/gangs.h) would come whole: its pods wait in a
 * copy of the store, and places are looked for as filter looks for them.
 */
#include "store/store.h"

struct fit_group {
    char *name, *lack;  /* of whose size nobody says anything that can be read: why not */
    uint32_t needs;     /* 0: nobody says */
    uint32_t there;     /* pods of it that are bound, or have places, or need none */
    uint32_t fit;       /* of those that wait in the copy */
    bool cut;           /* not all of these were looked for */
    bool late;          /* likewise: its nodes would take more if their plugins were quicker */
    int64_t timeout_ms; /* its deadline */
    GPtrArray *uids;    /* of these */
};

/* NULL: the pod is in no group that holds it back. */
struct fit_group *fit_group_new(struct store *store, const struct pod_view *pod);
void fit_group_free(struct fit_group *group); /* NULL is ignored */

/* How many pods of it are to come where nothing says how many: those that it lacks. */
int64_t fit_group_lacks(const struct fit_group *group);
/* Lets that many pods like this one wait in the copy, but no more than a group may have. */
void fit_group_await(struct fit_group *group, struct store *copy, const struct pod_view *pod,
                     int64_t n);
/* Under the copy's lock: takes places for those that have none. Returns whether any has got one. */
bool fit_group_place(struct fit_group *group, struct store *copy, const struct pod_view *pod);
/* Why nobody of it would go anywhere; REASON_NONE: it comes. */
enum reason fit_group_reason(const struct fit_group *group);
/* The same for people, as explain has it; NULL: it comes. Free with g_free. */
char *fit_group_tell(const struct fit_group *group);

void fit_group_encode(struct json_writer *writer, const struct fit_group *group);
