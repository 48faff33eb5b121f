/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Annotations of a Node that is to share its cards in another way. Whoever switches it writes them, and
 * from then on the ledger gives the node to those pods alone that have ended by then; so it does not
 * matter who that is, or whether he is still there.
 *
 *   gpuledger.io/switch         LABEL=VALUE@TIME   that label of the node gets that value at that time
 *                                                  (RFC 3339)
 *                               or the annotation gpuledger.io/slots (dialect/marks/node_marks.h)
 *   gpuledger.io/switch-state   how far it is (switch/switch_state.h): the time has come
 *
 * What cannot be read stands for a time that has come. Pure functions.
 */
#include <gpuledger/object.h>

#define SWITCH_KEY "gpuledger.io/switch"
#define SWITCH_STATE_KEY "gpuledger.io/switch-state"

#define SWITCH_LABEL_MAX                                                                           \
    317 /* bytes, these two: what the API server takes of a label's key and value */
#define SWITCH_VALUE_MAX 63

struct switch_mark {
    char label[SWITCH_LABEL_MAX + 1];
    char value[SWITCH_VALUE_MAX + 1];
    int64_t at_s; /* Unix time */
};

/* Whether a label may have such a value, which is not empty. */
bool switch_value_is_valid(const char *value);

/* False: it cannot be read. */
bool switch_mark_parse(const char *text, struct switch_mark *ret_mark);
/* As it is parsed. Free with g_free. */
char *switch_mark_format(const struct switch_mark *mark);

/* What of it concerns those who want to come. */
struct switch_ahead {
    int64_t at_ns; /* Unix time from which the node is another one; 0: none is said, or that takes
                    * nothing from anybody */
    int32_t slots; /* of each card, from then on; 0: all pods have to end by then */
};

/* A warning as those of dialects. */
struct switch_ahead switch_mark_ahead(const struct node_view *view, char **ret_warning);

/* Unix time as "2026-11-25T20:00:00Z", and back; false: it is none. Free with g_free. */
char *switch_time_format(int64_t time_s);
bool switch_time_parse(const char *text, int64_t *ret_time_s);
