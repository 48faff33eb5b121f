/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many pods of a kind fit, where, and after what: on a copy of the store (explain/trial.h), so that
 * nothing is changed anywhere. Pods are placed one after the other, as kube-scheduler would if it
 * followed the policy, and as matched by the node side. Those of a group that comes whole or not at all
 * are placed as filter places them, together. Any thread.
 */
#include "store/cluster.h"
#include "explain/explain.h"
#include "explain/fit_group.h"

#define FIT_REPLICAS_MAX 10000 /* placed for one question */
#define FIT_DRAIN_MAX 100      /* nodes and cards */
#define FIT_TEMPLATE_MAX 1000  /* nodes like the template */

struct fit_query {
    struct store *store;
    struct cluster *cluster;        /* asked for the pods of drained nodes */
    const struct pod_view *pod;     /* NULL: only the drained nodes' pods are placed */
    int64_t replicas;               /* 0: until nothing fits any more */
    const char *const *drain;       /* NODE or NODE/CARD; ends with NULL */
    const struct node_view *template; /* NULL: there are no other nodes */
    const char *uid; /* what the UIDs of the pods on the copy begin with; NULL: "fit" */
};

/* Pods on one node. */
struct fit_place {
    char *node;
    int64_t pods;
    bool made; /* one like the template */
};

/* A pod of a drained node. */
struct fit_move {
    char *ns, *name, *uid, *from;
    char *to;  /* NULL: nowhere */
    char *why; /* if nowhere */
};

struct fit {
    char *ns, *name, *asks; /* NULL: no pod was given, or it asks for no GPU */
    int64_t wanted;         /* 0: as many as fit */
    int64_t fitting;
    bool capped;            /* there may be room for more than FIT_REPLICAS_MAX */
    bool no_gpu;            /* the pod asks for none: nothing here keeps it from any node */
    struct fit_group *group; /* that the pods are of, and that holds them back; NULL: none */
    GArray *places;          /* struct fit_place, in the order in which they were first used; none
                             * if the group does not come */
    int64_t made;           /* nodes like the template that are used */
    bool drains;            /* nodes were to be drained, whatever was on them */
    GArray *moves;          /* struct fit_move */
    int64_t stranded;       /* of these, how many fit nowhere */
    unsigned overlooked;    /* of the pod, as in struct explanation */
    struct explanation *rest; /* why the next pod does not fit; NULL: it would, or was not asked for */
};

/* Errors are GPULEDGER_ERROR_INVALID or _NOT_FOUND: the pod, a node, the template. */
struct fit *fit_find(const struct fit_query *query, GError **error);
/* The same on a copy of the store that is the caller's: the pods stay there. Without a store in the query
 * they are placed one by one, whatever group they are of. Takes the copy's lock. */
struct fit *fit_on(const struct fit_query *query, struct store *copy, GError **error);
/* Takes the pods that it has placed off the copy again. */
void fit_take_back(const struct fit *fit, const struct fit_query *query, struct store *copy);
void fit_free(struct fit *fit);
typedef struct fit fit; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(fit, fit_free)

/* All that was asked for fits. */
bool fit_is_whole(const struct fit *fit);

void fit_encode(struct json_writer *writer, const struct fit *fit);
void fit_write(GString *text, const struct fit *fit);
