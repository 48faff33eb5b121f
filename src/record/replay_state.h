/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a replay is made of, for replay*.c alone. */
#include "record/record_line.h"
#include "record/replay.h"

struct replay {
    struct replay_options options;
    struct extender extender; /* its store is NULL before the header */
    struct replay_summary summary;
    GHashTable *binds; /* number of the first look -> struct bind_call *, replay_bind.c's own */
    struct json_arena *arena;
    bool begun[FEEDS_MAX];
    bool listed[FEEDS_MAX]; /* what is known of it is all that the store knew */
    bool learned;        /* and so is what policies have learned and what has come of waiting */
    bool done;
};

/* False; all that play a line give that, with an error, where the line cannot be used. */
bool replay_fail(GError **error, const char *what);

/* The verb's decisions may be compared: all that they depended on is known. */
bool replay_is_complete(const struct replay *replay, enum verb verb);

/* A line that is neither header, end nor loss. */
bool replay_event(struct replay *replay, const struct record_line *line, GError **error);

/* Bookings that were open where the file begins or that another replica left, and how they end. */
bool replay_booking(struct replay *replay, const struct record_line *line, GError **error);
/* Under the lock: puts a recorded booking, with what only the pod's request tells; NULL: that is not
 * known. */
bool replay_put_booking(struct replay *replay, const struct record_line *line,
                        const struct request *request, enum allocation_state state, GError **error);

/* What every pod holds: compared. */
bool replay_ledger(struct replay *replay, const struct record_line *line, GError **error);
/* Under the lock: whether the recorded booking, if there is one, is this (NULL: none); else both as text. */
bool replay_is_booked(struct replay *replay, const struct record_line *line,
                      const struct allocation *booked, char **ret_recorded, char **ret_here);

/* A call, and a look of a bind at the ledger: decided once more and compared. */
bool replay_call(struct replay *replay, const struct record_line *line, GError **error);
bool replay_look(struct replay *replay, const struct record_line *line, GError **error);
GHashTable *replay_binds_new(void);

/* A decision differs. `take_what` and `node` (NULL: none) say what it is about; the ledger is as the
 * decision saw it. */
void replay_differ(struct replay *replay, const struct record_line *line, char *take_what,
                   const char *recorded, const char *replayed, const char *node);
/* The recorded value as it is compared; for g_free. */
char *replay_text_of(const cJSON *value);
