/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a record keeps of an extender's calls, and its replay.
 */
#include "recorded_line.h"

#include "base/log.h"
#include "record/record_state.h"
#include "record/replay.h"
#include "verbs/extender.h"

#include <string.h>

#define HEADER "{\"kind\":\"header\",\"format\":4,\"options\":{}}\n"

static GString *lines;
static struct record_state *known; /* what the next file begins with */
static uint64_t number;

static inline uint64_t give_number(struct observer *observer)
{
    return ++number;
}

static inline void take(struct observer *observer, const struct observation *what)
{
    struct record *record = record_new(what);

    record_state_note(known, record);
    end_line(record);
    g_string_append(lines, record->text->str);
    record_free(record);
}

/* From now on what happens to the store is recorded. */
static inline void record_begin(struct store *store)
{
    static struct observer observer = {give_number, take};

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    number = 0;
    lines = g_string_new(HEADER);
    known = record_state_new();
    store_set_observer(store, &observer);
}

static inline void record_end(struct store *store)
{
    store_set_observer(store, NULL);
    g_string_free(g_steal_pointer(&lines), TRUE);
    record_state_free(known);
}

static inline bool configure(void *data, const cJSON *recorded, struct store_options *ret_options,
                             struct extender *ret_extender, GError **error)
{
    *ret_options = *(const struct store_options *)data;
    return true;
}

/* NULL, with an error: a line is not understood. */
static inline struct replay *play_lines(const struct store_options *options, GError **error)
{
    struct replay *replay = replay_new(
        &(struct replay_options){.configure = configure, .data = (gpointer)(uintptr_t)options});

    for (const char *at = lines->str, *stop; (stop = strchr(at, '\n')); at = stop + 1) {
        if (!replay_line(replay, at, (size_t)(stop - at), error)) {
            replay_free(replay);
            return NULL;
        }
    }
    return replay;
}

/* All calls are compared, and so many are decided otherwise. */
static inline void expect_played(const struct store_options *options, uint64_t calls,
                                 uint64_t different)
{
    g_autoptr(GError) error = NULL;
    struct replay *replay = play_lines(options, &error);

    ck_assert_msg(replay != NULL, "%s", error ? error->message : "");
    ck_assert_uint_eq(replay_summary(replay)->calls, calls);
    ck_assert_uint_eq(replay_summary(replay)->unchecked, 0);
    ck_assert_uint_eq(replay_summary(replay)->different, different);
    replay_free(replay);
}
