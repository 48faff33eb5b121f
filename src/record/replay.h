/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A record (record/recorder.h) played again: its events are given to a store of its own, and each
 * decision is made once more, by the same code, at the moment that the record names. What comes out
 * is compared byte by byte; where it differs, what was recorded is what goes on, so that each decision
 * is judged by itself. One thread.
 */
#include "verbs/extender.h"
#include "json/json.h"

struct replay;

struct replay_options {
    /* The store's options, and what the verbs are told, from the header's options; what they borrow
     * must live as long as the replay. */
    bool (*configure)(void *data, const cJSON *options, struct store_options *ret_options,
                      struct extender *ret_extender, GError **error);
    void *data;
    const struct policy *policy; /* instead of the recorded ones; NULL: those */
    uint64_t until;              /* the last number to be played; 0: all */
};

struct replay *replay_new(const struct replay_options *options);
void replay_free(struct replay *replay);
typedef struct replay replay; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(replay, replay_free)

/* Plays one line, without its end. False, with an error that does not name the line: the record
 * cannot be used from here on. */
bool replay_line(struct replay *replay, const char *text, size_t length, GError **error);

/* The record with the number `until` has been played. */
bool replay_is_done(const struct replay *replay);

struct replay_difference {
    uint64_t number;
    uint64_t line;  /* from 1 */
    char *what;     /* "filter", "bind of ml/a to n1" */
    char *recorded; /* JSON, both */
    char *replayed;
    char *ledger;   /* the node that it is about, as the decision saw it; "" if there is no one node */
};

struct replay_summary {
    uint64_t lines;
    uint64_t first, last; /* numbers; 0: there was none */
    uint64_t events;      /* that changed the store */
    uint64_t calls, looks;
    uint64_t what_was_learned;     /* times that it was told what policies have learned, or who has been waited
                           * for, and compared */
    uint64_t ledgers, ledgers_different; /* times that it was told what every pod holds, and compared */
    uint64_t compared, different; /* decisions; and what of them, what_was_learned and ledgers differs */
    uint64_t unchecked; /* decisions from before everything is known, or that could not be kept */
    uint64_t orphans;   /* looks of binds that began in an earlier file, whose pods have gone since */
    uint64_t lost;      /* missing records */
    bool ended;         /* the record has its last line */
    char *version, *commit;
    struct replay_difference difference; /* the first; `what` is NULL: none */
};

/* Borrowed from the replay. */
const struct replay_summary *replay_summary(const struct replay *replay);

/* NULL before the header. */
struct store *replay_store(struct replay *replay);
