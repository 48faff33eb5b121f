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
    char *scheduler; /* the pod's; NULL: of rooms */
    int64_t
        comes_until_ns; /* until then it is on its way, Unix time; 0: it is not; or a COMES_ value */
    struct kept_room *room; /* these two NULL: the pod's status says so */
    const struct room_claim *claim;
};

/* A pod's claim, and where. Both are the table's of nodes. */
struct claimed {
    const char *node;
    const struct room_claim *claim;
};

#define COMES_UNKNOWN (-2) /* it is looked at with the next decision */
#define COMES_NOW (-1)     /* it comes, and its time begins with the next decision */

struct nominations {
    struct ledger *ledger;
    bool any_unsettled;  /* some are COMES_UNKNOWN or COMES_NOW */
    int64_t earliest_ns; /* none that comes ends earlier; INT64_MAX: none does */
    GHashTable *pods;    /* uid -> struct nomination *, but for rooms */
    GPtrArray *rooms;    /* struct nomination: the rooms */
    GHashTable *nodes;   /* name -> GPtrArray of the same, the most important first */
    GHashTable *claims;  /* node name -> GPtrArray of struct room_claim * */
    GHashTable *claimed; /* the claim's uid -> struct claimed * */
    uint64_t n_kept;
};

/* nominations_coming.c: none that comes ends later than the earliest that is known; 0: it does not come. */
void nominations_expect(struct nominations *nominations, int64_t until_ns);
/* Those whose time is over do not come any more; whether there were any. */
bool nominations_end_coming(struct nominations *nominations, int64_t now_ns);

/* Whether the room is for the first pod of a controller, and the pod is one. */
bool nomination_is_for(const struct kept_room *room, const struct kept_room_taker *pod);
