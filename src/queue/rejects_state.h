/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What rejects are made of, for rejects*.c alone. */
#include "queue/rejects.h"
#include "queue/roll.h"

#include <gpuledger/dialect.h>

#define REJECTS_TIME_MAX (INT64_MAX / 2) /* of a clock; a record may say anything */

/* A pod that was rejected. */
struct reject {
    char *uid, *ns;
    int32_t card;    /* that it may be about; CARD_UNKNOWN: the node */
    int64_t since_ms; /* 0: no decision has found it yet */
};

struct pause {
    char *ns; /* NULL: for everybody */
    int32_t card;
    int64_t until_ms, length_ms;
    bool what_if;
    int64_t tried_ms;   /* since when somebody is being tried; 0: nobody is */
    char *author;       /* for everybody: the namespace of the last reject that lengthened it */
    GHashTable *former; /* UIDs that are no what-if node: they were on their way before */
};

/* A dialect on a node. */
struct site {
    struct roll_entry entry;
    struct site *next; /* of the same node, by the dialect's name */
    char *node;
    const struct dialect *dialect;
    uint64_t total;
    enum rejection_kind last;
    GPtrArray *recent; /* struct reject *, within the window; those without a time last */
    GPtrArray *pauses; /* struct pause * */
    GPtrArray *places; /* queue/mig/failed_places.h */
};

struct rejects {
    int64_t limit, window_ms;
    GHashTable *nodes; /* node name -> struct site *, the first of the node; owned */
    struct roll roll;  /* all sites */
    GHashTable *marks; /* node name -> char *: what its annotation says */
};

struct site *rejects_site(struct rejects *rejects, const char *node, const struct dialect *dialect);
void rejects_clear(struct rejects *rejects);
struct reject *reject_new(const char *uid, const char *ns, int32_t card, int64_t since_ms);
struct pause *pause_new(const char *ns, int32_t card, int64_t until_ms, int64_t length_ms);
