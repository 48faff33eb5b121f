/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What node backoff is made of, for the files of this folder alone. */
#include "gate/node_backoff/node_backoff.h"
#include "base/roll.h"

#include <gpuledger/dialect.h>

#define NODE_BACKOFF_TIME_MAX (INT64_MAX / 2) /* of a clock; a record may say anything */
#define NODE_BACKOFF_COPIED 4                 /* sites in one hold of the lock */

/* A pod that was rejected. */
struct rejected {
    char *uid, *ns;
    int32_t card;     /* that it may be about; CARD_UNKNOWN: the node */
    int64_t since_ms; /* 0: no decision has found it yet */
};

struct backoff {
    char *ns; /* NULL: for all */
    int32_t card;
    int64_t until_ms, length_ms;
    bool probing;
    int64_t probed_ms;  /* since when a pod is being tried; 0: none is */
    char *author;       /* for all: the namespace of the last rejected pod that lengthened it */
    GHashTable *former; /* UIDs that are no probe: those were under way before */
};

/* A dialect on a node. */
struct site {
    struct roll_entry entry;
    struct site *next; /* of the same node, by the dialect's name */
    char *node;
    const struct dialect *dialect;
    uint64_t total;
    enum rejection_kind last;
    GPtrArray *recent;   /* struct rejected *, within the window; those without a time last */
    GPtrArray *backoffs; /* struct backoff * */
    GPtrArray *places;   /* failed_places.h */
};

struct node_backoff {
    const struct part_base *base; /* NULL: of an image */
    int64_t limit, window_ms;
    GHashTable *nodes;   /* node name -> struct site *, the first of the node; owned */
    struct roll roll;    /* all sites */
    GHashTable *resumed; /* node name -> char *: what its annotation says */
};

struct rejected *rejected_new(const char *uid, const char *ns, int32_t card, int64_t since_ms);
struct backoff *backoff_new(const char *ns, int32_t card, int64_t until_ms, int64_t length_ms);

/* sites.c. `base` NULL: an image; `settings` NULL: nothing is counted. */
struct node_backoff *node_backoff_new(const struct part_base *base,
                                      const struct node_backoff_settings *settings);
void node_backoff_free(struct node_backoff *self);
/* The first of the node, or NULL; and the one of the dialect, made if there is none. */
struct site *node_backoff_sites(const struct node_backoff *self, const char *node);
struct site *node_backoff_site(struct node_backoff *self, const char *node,
                               const struct dialect *dialect);
/* Before it changes. */
void node_backoff_change(struct node_backoff *self, struct site *site);
void node_backoff_drop_site(struct node_backoff *self, struct site *site);
/* All of a node; false: there are none. */
bool node_backoff_drop_node(struct node_backoff *self, const char *node);
void node_backoff_clear(struct node_backoff *self);
/* Into `data`, another one's state; for struct part and for images. */
void node_backoff_copy_site(const struct roll_entry *entry, void *data);
bool node_backoff_copy(void *self, const void *from_self, struct part_cursor *at);

/* node_backoff.c: pods of the dialect, and of the namespace unless it is NULL, that are under way to the node. Of a
 * backoff that is not NULL those that it concerns. */
int64_t node_backoff_coming(const struct node *node, const struct dialect *dialect, const char *ns,
                            const struct backoff *backoff);
bool backoff_is_for(const struct backoff *backoff, const char *ns);

/* Rejected pods that a decision has found. */
struct rejected_count {
    int64_t n;
    int32_t card;     /* that all of them are about, or CARD_UNKNOWN */
    int64_t n_spaces; /* namespaces that they are of */
};
struct rejected_count node_backoff_count(const struct site *site, const char *ns);
struct rejected_count node_backoff_count_all(const struct site *site);

/* record.c: as a record has it.
 *
 *   {"sites":[{"node":"n1","dialect":"gpushare","total":3,"last":0,
 *     "rejects":[{"uid":"u1","namespace":"ml","card":-1,"since":MS}],
 *     "pauses":[{"namespace":"ml","card":-1,"until":MS,"length":MS,"trial":true,"tried":MS,
 *                "author":"ml","former":["u0"]}],
 *     "places":[…]}]}, the last as failed_places.h has it */
extern const struct part_image node_backoff_image;
