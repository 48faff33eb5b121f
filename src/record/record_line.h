/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A line of a record as it is read again; record/record.h says what there is. What a line lacks is zero
 * or NULL; all is borrowed from the arena.
 */
#include "record/record.h"

struct record_line {
    int kind;     /* as of struct record */
    enum feed of; /* of an object of OBSERVED_OBJECT and OBSERVED_OBJECT_GONE */
    int64_t number, before, format, ms, until_ms, call, state, count, patience_ms, left_out, entry,
        change_ms;
    const char *feed, *key, *verb, *at, *ns, *name, *uid, *node, *result, *policy, *version, *commit;
    const char *scheduler, *seal, *quota, *claims;
    bool confirmed, picky, spared;
    const cJSON *object, *body, *reply, *asks, *answer, *booking, *options, *recalled;
    struct moment moment; /* from `at` and `ms` */
};

/* `text` is without its end. */
bool record_line_decode(struct json_arena *arena, const char *text, size_t length,
                        struct record_line *ret_line, GError **error);
