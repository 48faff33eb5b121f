/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Groups of pods that come whole or not at all. A member about whom filter is asked gets a place, with
 * one for every other member, or nobody gets one; no Binding is due before as many have arrived at bind as
 * the group needs.
 *
 * Places are held for GANG_ASKED_MS after a member was last asked about, and until the group's deadline at
 * most, or until its object says that it has failed. On the deadline all go that are not booked, and the
 * group waits before it gets others, for longer each time. One group that is not whole has places in a
 * pool of cards; namespaces that keep others waiting for long take turns.
 *
 * Before the first Binding, the node sides of as many members as the group needs must take them at once:
 * behind a device plugin that serves one pod at a time and is slow, or silent, the group would stay half.
 * Until then all of them wait, and for GANG_FIRST_MS other pods wait behind them on these nodes. Once some
 * are bound, each of the others goes on as its own node's side takes it.
 *
 * A pod that nobody places gets no place, and is none of those that a group needs.
 *
 * A group that was whole once stays so, and its pods are pods like others: a replacement waits for nobody.
 * So are those of a group of which some are bound and too few are left, since what it lacks has ended. Of
 * a group whose bound members are fewer than it needs, and that has never been whole, it is said that it
 * is half; also if it was whole before it came to need more. How many it needs its object says, or, where
 * there is none, the pod of it that says most.
 *
 * For a group that is there and finds no room, room may be kept (struct gang_keeper): the nodes that would
 * hold it are closed to pods that are not more important, until it has its places, until it is asked about
 * no more, and for so long at most. Room is kept for one group of a pool at a time, the one that has wanted
 * it for longest, and of a namespace; after that, for none of the pool for as long as it was kept, and for
 * none of the namespace for three times as long; for the same group later each time.
 *
 * Where a place is, its keeper knows (struct gang_keeper). Time is monotonic and comes in; nothing else
 * does. Guarded by the store's lock.
 */
#include "wire/pod_group.h"

#define GANG_MEMBERS_MAX 1024    /* of a group */
#define GANGS_NAMESPACE_MAX 1024 /* groups of a namespace */
#define GANGS_PLACES_MAX 2048    /* places for a namespace */
/* What looking for places takes, in nodes that are asked about: in one call, after which the rest is
 * left; for a namespace in a second; and for how many milliseconds it may take that in advance. */
#define GANG_WORK_MAX UINT64_C(100000)
#define GANGS_WORK_SECOND 100000
#define GANGS_AHEAD_MS 1000
#define GANG_ASKED_MS 15000
#define GANG_UNSEEN_MS 60000 /* who is known by filter's word alone */
#define GANG_LOOK_MS 500     /* how often it is looked for places that were not there */
#define GANG_ANSWER_MS 1000  /* a bind that waits looks once a second */
#define GANG_FIRST_MS 5000 /* for which a group that has come goes before other pods on its nodes */
#define GANG_TAKE_MS 1000  /* in which a device plugin that serves one pod at a time serves one */
#define GANG_BACKOFF_MIN_MS 1000
#define GANG_BACKOFF_MAX_MS 60000
/* Room: how long a group finds none before, and for how long it is kept after a member was asked about
 * last. kube-scheduler asks about a pod that it has refused 10 s after something has changed. */
#define GANG_ROOM_AFTER_MS 30000
#define GANG_ROOM_ASKED_MS 60000

struct gangs;

/* Who has the places. */
struct gang_keeper {
    /* It is not needed any more. */
    void (*drop)(void *data, const char *uid);
    void *data;
    int64_t room_ms; /* how long room is kept for a group at most; 0: it is not */
    bool unhurried;  /* no namespace waits for what its searches have taken: time is played */
};

struct gangs *gangs_new(const struct gang_keeper *keeper);
void gangs_free(struct gangs *gangs); /* drops nothing */

/* An object declares a group, or again with other terms, or does so no more. The generation is the
 * caller's mark, for gangs_sweep. False: the namespace has too many. */
bool gangs_declare(struct gangs *gangs, const struct pod_group_view *group, uint32_t generation);
void gangs_undeclare(struct gangs *gangs, const char *ns, const char *name, bool native);
/* The same for those of other generations. */
void gangs_sweep(struct gangs *gangs, bool native, uint32_t generation);

enum gang_role {
    GANG_PENDING,
    GANG_BARRED, /* nobody places it: it has scheduling gates, or is being deleted */
    GANG_BOUND,  /* it has a node */
    GANG_BOOKED, /* what became of a Binding of it is not known yet */
    GANG_PLAIN,  /* it asks for no GPU: nobody holds it back, and it counts as there */
};
/* Whose word it is that there is such a pod: the watch's, in a generation as above; or filter's. */
struct gang_source {
    uint32_t generation;
    int64_t asked_ms; /* not 0: filter's */
};
/* A pod is of the group that it claims to be in. False: the group or the namespace has too many. */
bool gangs_join(struct gangs *gangs, const char *ns, const struct pod_group_claim *claim,
                const char *uid, enum gang_role role, const struct gang_source *source);
/* A list of all pods has not named those of other generations. */
void gangs_sweep_pods(struct gangs *gangs, uint32_t generation);
/* The pod is gone. False: it was not known. */
bool gangs_forget(struct gangs *gangs, const char *uid);

enum gang_answer {
    GANG_NONE,    /* the pod is in no group that holds it back */
    GANG_YES,     /* it has a place; from bind: its Binding is due */
    GANG_WAIT,    /* bind only: until enough have arrived, or the place is gone */
    GANG_UNKNOWN, /* nobody says how many members the group needs */
    GANG_FEW,     /* fewer members are known than that */
    GANG_NO_ROOM, /* fewer fit than it needs */
    GANG_BUSY,    /* another group has places in the pool, or comes first */
    GANG_BACKOFF, /* it has let its deadline pass */
    GANG_CAPPED,  /* its namespace has too many places */
    GANG_SPENT,   /* it takes too long to look for places, or has lately for its namespace */
    GANG_LOST,    /* bind only: its place is gone */
    GANG_BEHIND,  /* bind only: until its node's side, or those of the other members, take them */
};

/* For what room is looked for: so many of these pods, who have no place. */
struct gang_need {
    const char *const *uids;
    size_t n;
    uint32_t lacks;
};
/* Nodes that would hold as many if nobody else were there, within the quotas. */
struct gang_choice {
    GPtrArray
        *take_nodes; /* names, owned; NULL: there are none, or it takes too long to look for them */
    int64_t priority; /* of the least important of the pods */
};

struct gang_ask {
    const char *uid;
    const char *pool; /* what the members can be on; it stays */
    int64_t now_ms;
    /* Takes places for the pods, who have none, the one that is asked about first, beside all that others
     * have. Sets which of them have one then. Returns what it took: more than GANG_WORK_MAX if it has
     * not looked for all. */
    uint64_t (*take)(void *data, const char *const *uids, size_t n, bool *ret_taken);
    /* Chooses where room is kept; returns what it took. NULL: it never is. */
    uint64_t (*choose)(void *data, const struct gang_need *need, struct gang_choice *ret_choice);
    void *data;
};
enum gang_answer gangs_ask(struct gangs *gangs, const struct gang_ask *ask);
/* Whether it is worth asking, which changes nothing: GANG_YES, or why not. */
enum gang_answer gangs_judge(const struct gangs *gangs, const char *uid, int64_t now_ms);
/* Its place is of no use. */
void gangs_lose(struct gangs *gangs, const char *uid);

/* Whether the node's side would take the pod, which has a place there, at once. Changes nothing. NULL: each
 * does. */
struct gang_gate {
    bool (*takes)(void *data, const char *uid);
    void *data;
    /* Of the pod's node: another one after each change; 0, or NULL: not known. A pod that was not taken is not asked
     * about for others of its group while it stays, for GANG_ANSWER_MS. */
    uint64_t (*version)(void *data, const char *uid);
};
/* bind was asked about it, first or again after a wait. */
enum gang_answer gangs_arrive(struct gangs *gangs, const char *uid, int64_t now_ms,
                              const struct gang_gate *gate);
/* Its Binding was due, and its node's side does not take it yet: it arrives again. */
void gangs_stay(struct gangs *gangs, const char *uid);
/* Whether other pods wait on the node where the pod has its place. */
bool gangs_go_first(const struct gangs *gangs, const char *uid, int64_t now_ms);
/* bind waits no longer: the place stays, for a while. */
void gangs_depart(struct gangs *gangs, const char *uid);
/* The place of a Binding that was due is its booking's now; and what became of that. */
void gangs_book(struct gangs *gangs, const char *uid);
void gangs_settle(struct gangs *gangs, const char *uid, bool bound);

/* Takes back what has lapsed. Returns whether anything has. */
bool gangs_expire(struct gangs *gangs, int64_t now_ms);

/* Whether the pod's group cannot come for want of pods, or since nobody says how many it needs. */
bool gangs_are_short(const struct gangs *gangs, const char *uid);
/* UIDs of all pods without a place of groups of which that has changed; once. Free with g_strfreev. */
char **gangs_take_shifted(struct gangs *gangs);

/* Whether who was told to wait might be told otherwise now; once. */
bool gangs_take_news(struct gangs *gangs);

/* --- room --------------------------------------------------------------------------------------- */

/* What became of it. */
#define GANG_ROOM_ENDS(X)                                                                          \
    X(CAME, "came")     /* the group has its places */                                             \
    X(OVER, "over")     /* it was kept for as long as it may be */                                 \
    X(LAPSED, "lapsed") /* nobody asked about the group any more */                                \
    X(LEFT, "left")     /* its pods went, or it came to need another number */                     \
    X(NONE, "none")     /* there is none that would hold it, within its quotas */
#define GANG_ROOM_ROW(name, text) GANG_ROOM_##name,
enum gang_room_end { GANG_ROOM_ENDS(GANG_ROOM_ROW) GANG_ROOM_N };

/* Whether some node is kept from a pod of that priority, which is of another group or of none. */
bool gangs_keep_from(const struct gangs *gangs, const char *uid, int64_t priority);
/* Whether this one is. Sets for whom, if not NULL. */
struct gang_row;
bool gangs_kept_on(const struct gangs *gangs, const char *node, const char *uid, int64_t priority,
                   struct gang_row *ret_row);
/* How often each has happened: GANG_ROOM_N numbers. */
const uint64_t *gangs_room_ends(const struct gangs *gangs);
/* Of a copy of the store, which knows no groups otherwise. */
void gangs_copy_rooms(struct gangs *gangs, const struct gangs *from);
/* Likewise: whose pods a group has, for which a plan keeps room (queue/nominations.h). */
void gangs_copy_pods(struct gangs *gangs, const struct gangs *from, const char *ns,
                     const char *name);
/* The name of the pod's group, or NULL. */
const char *gangs_name(const struct gangs *gangs, const char *uid);

/* --- for people and records --------------------------------------------------------------------- */

struct gang_row {
    const char *ns, *name;
    bool native; /* of a kind that Kubernetes has itself */
    uint32_t min, bound;
    uint32_t known;  /* but for those that nobody places */
    uint32_t held;   /* with a place, in bookings, too */
    uint32_t there;  /* bound, with a place, or in need of none */
    uint32_t fit;    /* there, and found room when it was last looked for */
    uint32_t behind; /* in bind, and their nodes' sides do not take them yet */
    int64_t timeout_ms;
    int64_t deadline_ms; /* 0: holds nothing */
    int64_t again_ms;    /* gets no places before; 0: any time */
    bool whole, half;
    uint32_t
        says_least; /* what the pod says that says least, if they differ and it counts; else 0 */
    uint32_t room_nodes;   /* on which room is kept for it */
    int64_t room_until_ms; /* at most; 0: none is */
};
/* Texts are borrowed. False: the pod is in no group. */
bool gangs_tell(const struct gangs *gangs, const char *uid, struct gang_row *ret_row);
/* Groups that have been half for longer than their deadline, by what gangs_expire has seen. One of which
 * fewer pods are left than it needs is none: what it lacks has ended. If it needs more than before, it is
 * one until as many are bound. */
struct gang_half {
    struct gang_row group;
    const char *uid;      /* of one that is bound */
    bool ours;            /* all that are bound came with the group, by their Bindings */
    uint32_t raised_from; /* as many as it needed before; 0: it has not come to need more */
    int64_t for_ms;
};
void gangs_each_half(const struct gangs *gangs, int64_t now_ms,
                     void (*visit)(const struct gang_half *half, void *data), void *data);

/* How many the pod's group needed when it came: what its Binding says for the time after a restart. */
uint32_t gangs_came_with(const struct gangs *gangs, const char *uid);
/* UIDs of the bound pods of its group; free with g_strfreev. */
char **gangs_bound(const struct gangs *gangs, const char *uid);
/* UIDs of the pods of its group that have no place, its own first if it has none; free with g_strfreev.
 * NULL: it is in no group. */
char **gangs_without(const struct gangs *gangs, const char *uid);
/* The same of the group that a pod claims to be in. False: nobody has told of it. */
bool gangs_tell_claimed(const struct gangs *gangs, const char *ns,
                        const struct pod_group_claim *claim, struct gang_row *ret_row);
/* A few of those with members, in no order: `at` is GANGS_ALL at first. False: that was the last of them.
 * Between two calls others may come and go; one that is there all the time is visited, perhaps twice. */
#define GANGS_ALL G_MAXUINT
bool gangs_walk(const struct gangs *gangs, guint *at,
                void (*visit)(const struct gang_row *row, void *data), void *data);

/* How an image has the places of pods. */
struct gang_places {
    void *(*keep)(void *data, const char *uid); /* under the lock; NULL: it has none */
    void (*write)(struct json_writer *writer, const void *place);
    void (*free)(void *place);
    void *data;
};
/* What has come of groups by one moment, taken a few at a time (base/roll.h). One at a time. */
struct gangs_image;
struct gangs_image *gangs_image_new(const struct gang_places *places);
void gangs_image_free(struct gangs_image *image); /* once it is complete, or has not begun */
typedef struct gangs_image gangs_image;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(gangs_image, gangs_image_free)
/* Under the lock: it is of this moment, and the generation is the present one. */
void gangs_image_begin(struct gangs_image *image, struct gangs *gangs, uint32_t generation);
/* Under the lock: some more. False: it is complete. */
bool gangs_image_take(struct gangs_image *image);

/* A complete one, as a record has it; and back, where the same pods and declarations are known; false: it
 * cannot be understood. The generation is the present one; `hold` takes a place. */
void gangs_encode(struct json_writer *writer, struct gangs_image *image);
bool gangs_decode(struct gangs *gangs, struct json_arena *arena, const cJSON *object,
                  uint32_t generation,
                  bool (*hold)(void *data, const char *uid, const cJSON *place), void *data,
                  GError **error);
