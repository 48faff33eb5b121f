/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Node backoff: nodes whose kubelet rejects pods that are bound to them. kubelet fails a pod at once if its device
 * plugin does not serve it. The node then looks emptier than all others, and each replacement pod would go there, too.
 *
 * The part counts rejected pods by node and dialect. After `limit` of them within `window_ms` the node is in backoff
 * for NODE_BACKOFF_MS; then it is probed with one pod at a time. A probe that kubelet admits ends the backoff, a
 * rejected one doubles it, up to NODE_BACKOFF_MAX_MS. From the first rejected pod on, no more pods are under way to the
 * node than would be lost at the limit. If the plugin refused only what was asked of one card, only that card is in
 * backoff; a place for a MIG instance that failed is in backoff alone (failed_places.h).
 *
 * A tenant may write the status of a pod. So a pod counts once, and only if the ledger has it on the node. The rejected
 * pods of a namespace close the node to that namespace, and to all only together with those of another. A namespace
 * whose probes always fail does not double the backoff of the others.
 *
 * Time passes from the first decision that finds a pod rejected. In memory only, guarded by the store's lock.
 */
#include "gate/gate.h"
#include "gate/node_backoff/node_backoff_section.h"
#include "wire/rejection.h"

#define NODE_BACKOFF_MS 10000
#define NODE_BACKOFF_MAX_MS 600000
#define NODE_BACKOFF_PROBE_MS                                                                      \
    60000 /* a probe of which kubelet says nothing blocks no other for longer */
#define NODE_BACKOFF_RESUME                                                                        \
    "gpuledger.io/resume" /* a Node's annotation: any new value ends its backoff */

struct node_backoff;

/* Member of struct store_options. */
#define NODE_BACKOFF_SETTINGS(limit, window_ms)                                                    \
    .parts = (const struct part_settings[])                                                        \
    {                                                                                              \
        {&part_node_backoff, &(const struct node_backoff_settings){limit, window_ms}},             \
        {                                                                                          \
            NULL                                                                                   \
        }                                                                                          \
    }

extern const struct part part_node_backoff;
extern const struct gate gate_node_backoff;

/* A node, a card of it, or a place for a MIG instance there, in backoff: for people. */
struct node_backoff_row {
    const char *node;
    const struct dialect *dialect;
    const char *ns;              /* NULL: for all */
    int32_t card;                /* CARD_UNKNOWN: the node */
    struct mig_place place;      /* size 0: all of it */
    int64_t until_ms, length_ms; /* monotonic */
    bool probing;                /* it is over, and one pod at a time is tried */
    uint64_t total;              /* pods that were rejected there since it began to be counted */
    enum rejection_kind last;    /* why the last one was */
};
typedef void (*node_backoff_visit)(const struct node_backoff_row *row, void *data);
/* Those of a node. */
void node_backoff_each(const struct node_backoff *self, const char *node, node_backoff_visit visit,
                       void *data);
/* Those of a few nodes of all, from PART_BEGIN on, in no order, some perhaps twice. False: that was all. */
bool node_backoff_walk(const struct node_backoff *self, struct part_cursor *at,
                       node_backoff_visit visit, void *data);
/* "is left out for 8 s more, for pods of namespace ml". `now_ms` 0: without times. Free with g_free. */
char *node_backoff_text(const struct node_backoff_row *row, int64_t now_ms);
