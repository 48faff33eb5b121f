/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Groups of pods that come whole or not at all. A member that asks gets a place for every member, or
 * nobody gets one; no Binding is due before as many have arrived at bind as the group needs.
 *
 * A place is held for GANG_ASKED_MS after a member last asked, and until the group's deadline at most.
 * On the deadline, or if the group has failed, all places that are not committed go, and the group waits
 * for longer each time before it gets others. One group that is not whole has places in a pool.
 *
 * A group that was whole once stays so: a replacement waits for nobody. Of a group whose bound members
 * are fewer than it needs, and that has never been whole, it is said that it is half.
 *
 * Time is monotonic and comes in; nothing else does. Guarded by the store's lock. No verb asks it yet.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define GANG_MEMBERS_MAX 1024  /* of a group */
#define GANGS_NAMESPACE_MAX 64 /* groups of a namespace */
#define GANGS_PLACES_MAX 2048  /* places for a namespace */
#define GANG_ASKED_MS 15000
#define GANG_BACKOFF_MIN_MS 1000
#define GANG_BACKOFF_MAX_MS 60000

struct gangs;

struct gangs *gangs_new(void);
void gangs_free(struct gangs *gangs);

struct gang_terms {
    const char *ns, *name;
    const char *pool;   /* what its members can be on: one group at a time holds places there */
    uint32_t min;       /* members that must come together; may change */
    int64_t timeout_ms; /* from its first place to its deadline */
    bool failed;        /* its condition says so */
};

/* A group is declared, or again with other terms. False: the namespace has too many. */
bool gangs_declare(struct gangs *gangs, const struct gang_terms *terms, int64_t now_ms);
/* A pod names the group; `bound`: it has a node. False: no such group, or too many members. */
bool gangs_join(struct gangs *gangs, const char *ns, const char *name, const char *uid, bool bound);
/* The pod is gone; the group goes with its last member. */
void gangs_forget(struct gangs *gangs, const char *uid);

/* Finds places for all of the pods beside all that others hold: sets `ret_nodes[i]`, owned, or leaves NULL
 * where there is none. */
struct gang_placer {
    void (*place)(void *data, const char *const *uids, size_t n, char **ret_nodes);
    void *data;
};

enum gang_answer {
    GANG_NONE,    /* the pod is in no group */
    GANG_YES,     /* it has a place: gangs_place. From bind: its Binding is due */
    GANG_WAIT,    /* bind only: until enough have arrived, or the place is gone */
    GANG_FEW,     /* fewer members are known than the group needs */
    GANG_NO_ROOM, /* fewer fit than it needs */
    GANG_BUSY,    /* another group has places in the pool */
    GANG_BACKOFF, /* it has failed, or let its deadline pass */
    GANG_CAPPED,  /* its namespace has too many places */
    GANG_LOST,    /* bind only: its place is gone */
};

enum gang_answer gangs_ask(struct gangs *gangs, const char *uid, const struct gang_placer *placer,
                           int64_t now_ms);
/* bind was asked about it, first or again after a wait. */
enum gang_answer gangs_arrive(struct gangs *gangs, const char *uid, int64_t now_ms);
/* bind waits no longer for the others: the place stays. */
void gangs_depart(struct gangs *gangs, const char *uid);
/* What became of a Binding that was due. */
void gangs_settle(struct gangs *gangs, const char *uid, bool bound);

/* Takes back what has lapsed. Returns whether anything has. */
bool gangs_expire(struct gangs *gangs, int64_t now_ms);

/* The node where a place is held for the pod; NULL: none is. */
const char *gangs_place(const struct gangs *gangs, const char *uid);

struct gang_row {
    const char *ns, *name;
    uint32_t min, known, held, bound, fit; /* fit: bound, and with a place when it last asked */
    int64_t deadline_ms;                   /* 0: holds nothing */
    bool half;
};
/* Texts are borrowed. False: the pod is in no group. */
bool gangs_tell(const struct gangs *gangs, const char *uid, struct gang_row *ret_row);
