/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What explain says of the group that a pod comes with (gang/gangs.h), and how many of it would find a
 * place together.
 */
#include "json/json.h"
#include "store/store.h"

struct group_place {
    char *ns, *name;
    enum reason reason; /* why nobody of it may go anywhere now; REASON_NONE: they may */
    char *text;         /* says so; NULL: they may */
    uint32_t needs, known, held, bound;
    uint32_t fit; /* of all that are known, those with a place and those that would find one now */
    uint32_t room_nodes; /* that are kept for it, for so many seconds at most */
    int64_t room_for_s;
    uint32_t says_least; /* what the pod says that says least, if they differ; else 0 */
    uint32_t behind;     /* in bind, and their nodes' sides do not take them yet */
    bool half;           /* fewer are bound than it needs, and it has never been whole */
};

/* `copy` is the caller's copy of the store, and of no use after that. NULL: the pod is in no group that
 * holds it back. */
struct group_place *group_place_find(struct store *store, struct store *copy,
                                     const struct pod_view *pod, const struct request *request);
void group_place_free(struct group_place *group); /* NULL is ignored */

/* Why a group does not come, for people; `lack` is as pod_group_claim_lack has it. NULL: it comes. Free with
 * g_free. */
char *group_place_tell(enum reason reason, const char *lack);

void group_place_encode(struct json_writer *writer, const struct group_place *group);
void group_place_write(GString *text, const struct group_place *group);
