/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The smallest changes after which a refused pod would be admitted; where none is enough alone, two
 * together. Each has been tried: made on a copy of the store, and filter's question asked again.
 */
#include "queue/budgets.h"
#include "store/cluster.h"
#include "store/feasibility.h"
#include "json/json.h"

#define REMEDY_NODES_MAX 200   /* looked at, the closest first */
#define REMEDY_TRIES_MAX 20000 /* questions asked for one explanation; as many more for pairs */
#define REMEDY_PAIR_NODES_MAX 50 /* for pairs, the closest first */
#define REMEDY_PAIRS_MAX 5     /* told, the smallest ones */
#define REMEDY_MOVES_MAX 8     /* pods that may be moved for one */
#define REMEDY_LISTS_MAX 4     /* nodes whose pods the cluster is asked for */

enum remedy_kind {
    REMEDY_TURN,      /* let the older pod go first */
    REMEDY_MATCH,     /* wait until the node side has matched the pods */
    REMEDY_UNCORDON,  /* the node */
    REMEDY_TOLERATE,  /* the node's taints */
    REMEDY_SELECTOR,  /* take labels out of the pod's nodeSelector */
    REMEDY_AFFINITY,  /* take the pod's required node affinity away */
    REMEDY_UNIT,      /* ask for `to` of the resource: the amount was meant in another unit */
    REMEDY_DIALECT,   /* ask for `amounts` instead, which nodes of another dialect read */
    REMEDY_LESS,      /* ask for `to` of the resource */
    REMEDY_MOVE,      /* the pods, each to where it would go */
    REMEDY_END,       /* the pods */
    REMEDY_HEAL,      /* the card */
    REMEDY_CONDITION, /* take the pod's annotation away */
    REMEDY_LABEL,     /* give the node the label */
    REMEDY_QUOTA,     /* give the namespace `to` of the model, or under the ResourceQuota's key */
    REMEDY_N
};

struct remedy_pod {
    char *ns, *name;
    char *to; /* a node, or NULL */
};

struct remedy_amount {
    char *container;
    const char *resource; /* a dialect's own */
    char *amount;
};

struct remedy {
    enum remedy_kind kind;
    char *node; /* that takes the pod then */
    char *text; /* a sentence */
    char *container, *resource, *from, *to;
    char *key;  /* annotation, label, model or dialect; taints, "KEY=VALUE:EFFECT, …" */
    GArray *amounts; /* struct remedy_amount, by container; REMEDY_DIALECT, or NULL */
    int32_t card; /* REMEDY_HEAL */
    GArray *pods; /* struct remedy_pod, or NULL */
    bool planned; /* REMEDY_MOVE and _END: of pods that hold GPUs, which a plan can move or end */
    bool force;   /* with --force alone: nobody makes one of them again */
};

/* Two that are enough only together, the smaller one first; both name the node that takes the pod. */
struct remedy_pair {
    struct remedy changes[2];
};

struct remedies {
    GArray *single; /* struct remedy, the smallest first */
    GArray *pairs;  /* struct remedy_pair, likewise; none if there is a single one */
};

struct remedies_query {
    struct store *copy; /* which is as it was afterwards */
    struct cluster *cluster; /* for reading pods that might be moved; NULL: none is */
    const struct budgets *budgets;
    const struct pod_view *pod;
    const struct request *request;
    const char *const *nodes; /* the closest first; ends with NULL */
};

struct remedies *remedies_find(const struct remedies_query *query);
void remedies_free(struct remedies *remedies); /* NULL is ignored */

/* The keys "remedies" and "pairs", empty for NULL; and the same for people, nothing for NULL. */
void remedies_encode(struct json_writer *writer, const struct remedies *remedies);
void remedies_write(GString *text, const struct remedies *remedies);
