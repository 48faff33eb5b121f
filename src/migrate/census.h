/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the pods of a cluster say of a scheduler whose place is to be taken: its own pods, those of its
 * node side, those that name it, and those that it has placed or should. Does no I/O. One thread.
 */
#include "migrate/peers.h"
#include "json/json.h"

#include <gpuledger/dialect.h>

/* A pod that is part of a scheduler, and what made it: "Deployment kube-system/x", or NULL. */
struct census_part {
    char *pod; /* "NAMESPACE/NAME" */
    char *node;
    char *owner;
};

/* A pod that asks for what the peer serves. */
struct census_pod {
    char *ns, *name, *node; /* node NULL: none yet */
    char *group;            /* that it comes with there; NULL: none */
    char *unread;           /* why its request cannot be read, or NULL */
    struct request *request;
};

struct census {
    const struct peer *peer;
    const struct dialect_options *options;
    GPtrArray *schedulers, *node_sides, *kube_schedulers; /* struct census_part * */
    GPtrArray *pods;                                      /* struct census_pod * */
    GHashTable *owners; /* of pods that name the scheduler: text -> GUINT_TO_POINTER(pods) */
    guint named_placed, named_waiting;
};

/* Both borrowed. */
struct census *census_new(const struct peer *peer, const struct dialect_options *options);
void census_free(struct census *census);
typedef struct census census; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(census, census_free)

/* Pods that have ended count for nothing. An error: the object is no pod. */
bool census_add(struct census *census, const cJSON *pod, GError **error);
