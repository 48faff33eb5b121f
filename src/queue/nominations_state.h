/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is kept, for nominations.c and nominees.c alone. */
#include "queue/nominations.h"

struct nomination {
    char *uid; /* of a room its own */
    char *node;
    int64_t priority;
    char *created; /* the pod, as its view has it, or NULL */
    const struct request *request;
    struct kept_room *room; /* these two NULL: the pod's status says so */
    const struct room_claim *claim;
};

/* A pod's claim, and where. Both are the table's of nodes. */
struct claimed {
    const char *node;
    const struct room_claim *claim;
};

struct nominations {
    struct ledger *ledger;
    GHashTable *pods;    /* uid -> struct nomination *, but for rooms */
    GPtrArray *rooms;    /* struct nomination: the rooms */
    GHashTable *nodes;   /* name -> GPtrArray of the same, the most important first */
    GHashTable *claims;  /* node name -> GPtrArray of struct room_claim * */
    GHashTable *claimed; /* the claim's uid -> struct claimed * */
    uint64_t n_kept;
};

/* Whether the room is for the first pod of a controller, and the pod is one. */
bool nomination_is_for(const struct kept_room *room, const struct kept_room_taker *pod);
