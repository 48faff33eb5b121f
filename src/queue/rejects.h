/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Nodes that reject what is bound to them. kubelet fails a pod at once that its device plugin does not
 * serve, and such a node looks emptier than all others: each replacement goes there, too. So rejected
 * pods are counted by node and dialect, and after `limit` within `window_ms` the node is left out for
 * REJECTS_PAUSE_MS; then one pod at a time is tried. One that kubelet admits ends it, one that it
 * rejects doubles the pause, up to REJECTS_PAUSE_MAX_MS. From the first one on, no more pods are on
 * their way to the node than would be lost at the limit. If plugin and kubelet work and only what was
 * asked of one card fails, it is that card alone.
 *
 * Whoever may write a pod's status can say that it was rejected. So a pod counts once, and only if the
 * ledger has it on the node; the pods of a namespace close the node to that namespace, and to everybody
 * only together with those of another. One namespace whose probes always fail does not double the pause
 * of the others, and waits longer than they do itself.
 *
 * Time passes from the first decision that finds a pod rejected, as in queue/waits.h. Memory only.
 * Guarded by the store's lock.
 */
#include "wire/rejection.h"
#include "json/json.h"

#include <gpuledger/ledger.h>
#include <gpuledger/object.h>

#define REJECTS_PAUSE_MS 10000
#define REJECTS_PAUSE_MAX_MS 600000
#define REJECTS_TRIAL_MS 60000 /* a pod that kubelet has said nothing of by then keeps no other from being tried */
#define REJECTS_RESUME "gpuledger.io/resume" /* a Node's annotation: any new value ends its pauses */

struct rejects;

/* With limit 0 nothing is counted. */
struct rejects *rejects_new(int64_t limit, int64_t window_ms);
void rejects_free(struct rejects *rejects);

/* A copy, a few nodes at a time under the other's lock, so not all of one moment: `at` is REJECTS_ALL at
 * first. False: that was the last of them. */
#define REJECTS_ALL G_MAXUINT
bool rejects_copy(struct rejects *rejects, const struct rejects *from, guint *at);

/* The same of one moment (queue/roll.h), into one that nobody else has: begun under the lock, complete when
 * take, under the lock, says false. */
void rejects_image_begin(struct rejects *image, struct rejects *rejects);
bool rejects_image_take(struct rejects *rejects);

/* The pod that the ledger still has was rejected; or kubelet has admitted it, which is true if that
 * has ended something. */
void rejects_note(struct rejects *rejects, const struct allocation *allocation,
                  const struct rejection *rejection);
bool rejects_note_start(struct rejects *rejects, const struct allocation *allocation);

/* Ends all pauses of a node; false: there are none. */
bool rejects_resume(struct rejects *rejects, const char *node);
/* What the Node's annotation says now, NULL: nothing. The same as resume if that is new. */
bool rejects_see_mark(struct rejects *rejects, const char *node, const char *value);
void rejects_forget_node(struct rejects *rejects, const char *node);

/* A decision is made. Whether anything has changed. */
bool rejects_settle(struct rejects *rejects, struct ledger *ledger, int64_t now_ms);

/* Whether it matters which pods were rejected there. */
bool rejects_concern(const struct rejects *rejects, const struct node *node);
/* Flags the nodes of which that is so (ledger_flag). */
void rejects_flag(const struct rejects *rejects, struct ledger *ledger);
/* Whether the node is left out for a pod of the namespace; else, for one of its cards, likewise. */
bool rejects_close(const struct rejects *rejects, const struct node *node,
                   const struct request *request, const char *ns);
bool rejects_close_card(const struct rejects *rejects, const struct node *node,
                        const struct request *request, const char *ns, int32_t card);

/* Marks the places of a card in which pods of the namespace have failed (queue/mig/failed_places.h); whether there
 * are any. */
bool rejects_leave_places_out(const struct rejects *rejects, const struct node *node,
                              const struct request *request, const char *ns, struct card *card);

/* A node, a card of it, or a place for a MIG instance there, that is left out, for people. */
struct rejects_pause {
    const char *node;
    const struct dialect *dialect;
    const char *ns; /* NULL: for everybody */
    int32_t card;   /* CARD_UNKNOWN: the node */
    struct mig_place place;      /* size 0: all of it */
    int64_t until_ms, length_ms; /* monotonic */
    bool what_if;     /* it is over, and one pod at a time is tried */
    uint64_t total; /* pods that were rejected there since it began to be counted */
    enum rejection_kind last; /* why the last one was */
};
typedef void (*rejects_visit)(const struct rejects_pause *pause, void *data);
/* Those of a node. */
void rejects_each(const struct rejects *rejects, const char *node, rejects_visit visit, void *data);
/* Those of a few nodes of all, as rejects_copy has it, in no order, some perhaps twice. */
bool rejects_walk(const struct rejects *rejects, guint *at, rejects_visit visit, void *data);
/* "for pods of namespace ml, for 8 s more". `now_ms` 0: without times. Free with g_free. */
char *rejects_tell(const struct rejects_pause *pause, int64_t now_ms);

/* All of it, as a record has it, and back; false: it cannot be understood.
 *
 *   {"sites":[{"node":"n1","dialect":"gpushare","total":3,"last":0,
 *     "rejects":[{"uid":"u1","namespace":"ml","card":-1,"since":MS}],
 *     "pauses":[{"namespace":"ml","card":-1,"until":MS,"length":MS,"trial":true,"tried":MS,
 *                "author":"ml","former":["u0"]}],
 *     "places":[…]}]}, the last as failed_places.h has it; a record of before has none */
void rejects_encode(struct json_writer *writer, const struct rejects *rejects);
bool rejects_decode(struct rejects *rejects, struct json_arena *arena, const cJSON *object,
                    GError **error);
