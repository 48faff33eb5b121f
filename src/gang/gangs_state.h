/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What gangs are made of, for gangs*.c alone. */
#include "gang/gangs.h"
#include "base/roll.h"

/* KNOWN: without a place. HELD, ARRIVED (its bind waits), DUE (its bind goes on): with one that can be
 * taken back. BOOKED: its Binding may be on its way. */
enum gang_stage { KNOWN, HELD, ARRIVED, DUE, BOOKED, BOUND, PLAIN, GANG_STAGES };
extern const char *const gang_stage_names[GANG_STAGES]; /* in records */

/* What is kept for a group that finds no room; several may hold it, and it stays as it was made. */
struct gang_room {
    const char *pool;
    int64_t priority; /* who is more important is not kept out */
    int64_t since_ms, until_ms;
    GHashTable *nodes; /* names */
};

struct gang {
    struct roll_entry entry;
    struct gang_tenant *tenant;
    char *key, *ns, *name;
    bool native, declared, whole;
    bool half;           /* some are bound, and too few */
    int64_t half_ms;     /* since when, as far as it was looked at; 0: not yet */
    uint32_t generation; /* of its object */
    uint32_t min, fit;
    uint32_t last_min; /* the last that was said, if none is said now */
    uint32_t
        raised_from; /* what it was when those came who are bound; 0: it has not risen above them */
    bool recalled;   /* it was whole by what its Bindings say */
    uint32_t
        says_least; /* of the numbers that its pods say the least; 0: none, or it has an object */
    int64_t timeout_ms, asked_ms, tried_ms, deadline_ms, backoff_ms, again_ms;
    char *failure;
    const char *pool;
    struct gang_room *room; /* NULL: none is kept */
    int64_t wanting_ms;     /* since when it is there and finds none; 0: it is not, or does */
    int64_t wanted_ms;      /* when it was asked about last while that was so */
    int64_t room_again_ms;  /* it gets none before */
    uint32_t vain;          /* how often it had some, or there was none, in vain */
    int64_t held_ms;        /* when it got places for as many as it needs; 0: it has none */
    int64_t came_ms;        /* when as many as it needs had arrived first; 0: they have not */
    bool touched;           /* it is in gangs.touched */
    bool short_told;        /* what gangs_take_shifted has told last */
    bool waiting;           /* it was told last that another group has places */
    int64_t turn_ms;        /* since when it might have had them if it had been asked about; or 0 */
    uint32_t n[GANG_STAGES];
    uint32_t n_barred;  /* of those that are KNOWN */
    GPtrArray *members; /* in the order in which they came */
};

struct gang_member {
    char *uid;
    uint32_t generation; /* of the list or watch that named it last */
    int64_t unseen_ms;   /* when filter told of it, which nothing else has done; 0: the watch has */
    bool barred;         /* see GANG_BARRED */
    bool ours;           /* bound with its group, by its Binding */
    bool behind;         /* ARRIVED, and its node's side did not take it at the last look */
    uint64_t answered;   /* its node's version then; 0: not known */
    int64_t answered_ms;
    uint64_t answered_in; /* struct gangs, round */
    uint32_t says;        /* how many the group needs; 0: nothing */
    int64_t says_timeout_ms;
    uint32_t came_with; /* how many it needed when this one came, if it is bound; 0: not known */
    enum gang_stage stage;
    struct gang *gang;
};

struct gangs {
    struct gang_keeper keeper;
    GHashTable *by_key, *by_uid;
    GHashTable *tenants;           /* namespace -> struct gang_tenant *, whose that is */
    struct roll roll, tenant_roll; /* all groups, all tenants */
    GPtrArray *holding;            /* gangs with places */
    GPtrArray *resting;            /* gangs that get none for a while */
    GPtrArray *unseen;             /* members */
    GPtrArray *halves;             /* gangs that are half, or on their way to be whole */
    GPtrArray *wanting;            /* gangs that find no room */
    GPtrArray *rooms;              /* gangs for which it is kept */
    GPtrArray *touched;            /* gangs that may have become short, or are so no more */
    GPtrArray *waiting;            /* gangs that wait for their turn */
    /* "pool/NAME", "namespace/NAME" -> until when no room is kept there; "slow/NAMESPACE" -> see
     * gangs_turns.c: int64_t * */
    GHashTable *rests;
    uint64_t room_ends[GANG_ROOM_N];
    uint64_t round; /* of what nodes' sides have answered: an image has none of it */
    bool news;
};

struct gang_tenant {
    struct roll_entry entry;
    char *ns;
    uint32_t n_gangs, n_places;
    int64_t rested_ms; /* when it has made up for what its searches have taken */
    int64_t slow_ms;   /* "slow/NAMESPACE" of gangs.rests; 0: there is none */
};

/* Before anything of it or of its members changes that an image has (gangs_image.c): what gangs.h offers for
 * changes says so at its begin. */
static inline void gang_change(struct gangs *gangs, struct gang *gang)
{
    roll_change(&gangs->roll, &gang->entry);
    if (!gang->touched)
        g_ptr_array_add(gangs->touched, gang);
    gang->touched = true;
}

/* NULL: the namespace has too many. */
struct gang *gang_find_or_make(struct gangs *gangs, const char *ns, const char *name, bool native);
struct gang *gang_find(const struct gangs *gangs, const char *ns, const char *name, bool native);
/* NULL: the group has too many. */
struct gang_member *gang_add(struct gangs *gangs, struct gang *gang, const char *uid);
void gang_set_unseen(struct gangs *gangs, struct gang_member *member, int64_t unseen_ms);
void gang_rest(struct gangs *gangs, struct gang *gang, int64_t again_ms);
/* Members that have come, or may. */
static inline uint32_t gang_able(const struct gang *gang)
{
    return gang->members->len - gang->n_barred;
}
/* Of members that have a place, in a booking or not. */
static inline uint32_t gang_places(const struct gang *gang)
{
    return gang->n[HELD] + gang->n[ARRIVED] + gang->n[DUE] + gang->n[BOOKED];
}
/* Bound, with a place, or in need of none. */
static inline uint32_t gang_there(const struct gang *gang)
{
    return gang_places(gang) + gang->n[BOUND] + gang->n[PLAIN];
}
/* It may get one. */
static inline bool gang_wants_place(const struct gang_member *member)
{
    return member->stage == KNOWN && !member->barred;
}
static inline uint32_t gang_arrived(const struct gang *gang)
{
    return gang->n[ARRIVED] + gang->n[DUE] + gang->n[BOOKED] + gang->n[BOUND] + gang->n[PLAIN];
}
/* Some of it are bound, or on their way. */
static inline bool gang_has_begun(const struct gang *gang)
{
    return gang->n[DUE] + gang->n[BOOKED] + gang->n[BOUND] > 0;
}
static inline bool gang_has_place(enum gang_stage stage)
{
    return stage >= HELD && stage <= BOOKED;
}
static inline struct gang_tenant *gang_tenant_of(const struct gangs *gangs, const char *ns)
{
    return g_hash_table_lookup(gangs->tenants, ns);
}
void gang_set_stage(struct gangs *gangs, struct gang_member *member, enum gang_stage stage);
/* Takes the member's place; what is booked is its bind's to take back. */
void gang_drop(struct gangs *gangs, struct gang_member *member);
/* Takes all places of it but of those whose binds go on: they end in a booking, or depart. Whether there were any. */
bool gang_release(struct gangs *gangs, struct gang *gang);
/* Its pods are pods like others. */
bool gang_is_free(const struct gang *gang);

void gang_set_min(struct gangs *gangs, struct gang *gang, uint32_t min);
/* After a change of what its pods say. */
void gang_heed_pods(struct gangs *gangs, struct gang *gang);
/* One of its pods is known, and bound, from before a restart. */
void gang_recall(struct gangs *gangs, struct gang *gang);
/* After any change of who is bound, and of how many must be. */
void gang_note_whole(struct gangs *gangs, struct gang *gang);
void gang_note_half(struct gangs *gangs, struct gang *gang);
void gangs_time_halves(struct gangs *gangs, int64_t now_ms);
/* It has fewer members than it needs, since some have ended; not since it needs more than before. */
bool gang_lacks_ended(const struct gang *gang);
/* No Binding of it is under way that may mend that. */
bool gang_is_half(const struct gang *gang);
struct gang_row gang_row(const struct gang *gang);

/* It let its deadline pass. */
void gang_back_off(struct gangs *gangs, struct gang *gang, int64_t now_ms);
bool gangs_end_rests(struct gangs *gangs, int64_t now_ms);

/* Some other group that is not whole has places in the pool, or should have them first. */
bool gang_must_wait(const struct gangs *gangs, const struct gang *asking, const char *pool);
/* It has no places any more. */
void gang_end_turn(struct gangs *gangs, struct gang *gang);
/* It was told so, or something else. */
void gang_set_waiting(struct gangs *gangs, struct gang *gang, bool waiting);
/* From gangs.rests. */
void gang_recall_slow(const struct gangs *gangs, struct gang_tenant *tenant);
/* Before places lapse. Returns whether anything has changed. */
bool gangs_expire_turns(struct gangs *gangs, int64_t now_ms);

/* It was asked about. */
void gang_note_asked(struct gangs *gangs, struct gang *gang, int64_t now_ms);
/* It found no room. Returns what it took to look for some. */
uint64_t gang_want_room(struct gangs *gangs, struct gang *gang, const struct gang_ask *ask);
/* It has its places, is no group any more, or another one. */
void gang_want_nothing(struct gangs *gangs, struct gang *gang, enum gang_room_end end);
bool gangs_expire_rooms(struct gangs *gangs, int64_t now_ms);
struct gang_room *gang_room_ref(struct gang_room *room);
void gang_room_unref(struct gang_room *room); /* NULL is ignored */
/* Of a group that has some: whether it is kept from a pod of that priority. */
bool gang_room_excludes(const struct gangs *gangs, const struct gang *gang, const char *uid,
                        int64_t priority);
/* It has the same from now on. */
void gang_copy_room(struct gangs *gangs, struct gang *gang, const struct gang *from);

/* Of a record: the group's own keys, and what rests. */
void gang_encode_room(struct json_writer *writer, const struct gang *gang);
bool gang_decode_room(struct gangs *gangs, struct gang *gang, struct json_arena *arena,
                      const cJSON *object, GError **error);
/* As gangs.rests. */
void gangs_encode_room_rests(struct json_writer *writer, GHashTable *rests);
bool gangs_decode_room_rests(struct gangs *gangs, struct json_arena *arena, const cJSON *object,
                             GError **error);
