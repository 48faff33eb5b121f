/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a reclaimer is made of, for reclaimer.c, claimants.c and evictions.c alone. */
#include "base/worker.h"
#include "evict/pauses.h"
#include "reclaim/claim_book.h"
#include "reclaim/claim_views.h"
#include "reclaim/claims.h"
#include "reclaim/reclaimer.h"

#define RECLAIM_AGAIN_MS 10000          /* for a pod for which nobody gives back */
#define RECLAIM_PAUSE_MS 5000           /* for a pod that cannot be evicted now */
#define RECLAIM_STAYS_MS 300000         /* for one that may not be ended, or has not in time */
#define RECLAIM_BACKOFF_MIN_MS 60000    /* for one that has not come in time, and its namespace */
#define RECLAIM_BACKOFF_MAX_MS 14400000 /* four hours; a pause is forgotten as long after its end */

/* What is known of a pod for which somebody gave back, or nobody did. */
struct memory {
    int64_t again_ms; /* it is not looked at before */
    bool lapsed;      /* it has not come in time */
    char *controller; /* the UID of its controller, once it has a claim; or NULL */
    int answer;       /* that was told last: enum reclaim_answer, or -1 */
};

struct reclaimer {
    struct reclaimer_args args;
    struct worker worker;
    struct permits *permits; /* those of the arguments, or its own */
    GHashTable *memories;    /* uid -> struct memory * */
    GHashTable *stays;       /* uid -> int64_t *: until when it is not to be ended */
    struct pauses *pauses;   /* of those whose claims have lapsed */
    char *last_ns;           /* which had the last turn; "": none has had one */
    struct claim_book *book;
    struct claim_views *views;
    uint64_t term;          /* of this look */
    uint64_t taken_over;    /* the last one that began with what others had done */
    int64_t now_ms, now_ns; /* when it was read last */
};

void reclaimer_read_clock(struct reclaimer *reclaimer);

struct memory *reclaimer_remember(struct reclaimer *reclaimer, const char *uid);
/* Unix time. */
int64_t reclaimer_now_s(const struct reclaimer *reclaimer);
/* Within the minute, and whether a pod ends, as the permits know it. */
bool reclaimer_counts(const struct reclaimer *reclaimer, const char *uid);
bool reclaimer_ends(const struct reclaimer *reclaimer, const char *uid);
/* Of `stays`. */
void reclaimer_set_time(GHashTable *times, const char *uid, int64_t until_ms);
bool reclaimer_is_before(GHashTable *times, const char *uid, int64_t now_ms);

/* Of a pod that is to give back; its strings are borrowed. */
struct door_order reclaimer_order(struct reclaimer *reclaimer, const char *ns, const char *name,
                                  const char *uid);

/* It is not to be ended for a while: one that is too young, until it is old enough. */
void reclaimer_note_stay(struct reclaimer *reclaimer, const struct door_order *order,
                         const struct evictee *evictee, const char *why);
void reclaimer_note_failure(const struct door_order *order, enum door_answer answer,
                            const char *why);

void reclaimer_post(const struct reclaimer *reclaimer, enum pod_event_cause cause,
                    const struct pod_view *pod, const char *note);
/* "0.2 cards"; free with g_free. */
char *reclaimer_cards(int64_t gpus);

/* Takes back claims that have ended; evicts whom the others name, as far as it may. */
void evictions_settle(struct reclaimer *reclaimer, GArray *rows);
void evictions_send(struct reclaimer *reclaimer, GArray *rows);

/* Finds those for whom somebody is to give back, and writes their claims. */
void claimants_serve(struct reclaimer *reclaimer, const GArray *rows);
