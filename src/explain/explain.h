/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why a pod is where it is, or nowhere: for each node the reason that filter would give, and for
 * each card the one thing that speaks against it, with numbers.
 *
 * Everything is found out on a copy of the store, with the question that filter itself asks
 * (store/feasibility.h): nothing is changed anywhere. Any thread.
 */
#include "store/cluster.h"
#include "explain/class_told.h"
#include "explain/reclaim/quota_told.h"
#include "explain/group_place.h"
#include "explain/preemption_preview.h"
#include "explain/reclaim/reclaim_preview.h"
#include "store/feasibility.h"
#include "explain/remedies.h"
#include "core/constraints.h"
#include "json/json.h"

#define EXPLAIN_NODES_MAX 500 /* described in one answer; all of them are counted */
#define EXPLAIN_PODS_MAX 8    /* named in one sentence */

enum verdict {
    VERDICT_NO_GPU,  /* it asks for none: every node will do */
    VERDICT_INVALID, /* what it asks for cannot be understood */
    VERDICT_PLACED,  /* it holds what it holds */
    VERDICT_FITS,
    VERDICT_REFUSED,
};

struct explained_card {
    int32_t index;
    enum reason reason; /* of the ask that the node fails on, by itself */
    char *why;          /* a sentence with the numbers */
    int64_t memory_wants, memory_free, memory; /* bytes */
    int32_t core_wants, core_free, core;       /* thousandths */
    bool healthy;
    GPtrArray *pods; /* char *, "NAMESPACE/NAME" */
};

struct explained_node {
    char *name;
    enum reason reason;
    enum barrier barrier; /* kube-scheduler does not ask about it */
    bool waits;    /* it takes the pod, after one that waits there */
    char *why;
    int64_t lack;  /* how far it is from taking the pod, to compare nodes of one reason */
    GArray *cards; /* struct explained_card */
};

/* Nodes that say the same. */
struct explained_group {
    enum reason reason;
    enum barrier barrier;
    guint n;
    guint closest; /* in `nodes`: the one that lacks least */
};

/* Where a pod is, or would go. */
struct explained_place {
    char *node;  /* NULL: nowhere */
    char *cards; /* "card 1 (8GiB)", for people */
    char *state; /* of a pod that is there: "assigned", "waiting" …; else the policy that chose */
    int64_t since_ns; /* Unix time of its placement; 0: not known */
    GPtrArray *neighbours; /* char *, "NAMESPACE/NAME": on the same cards */
};

struct explanation {
    bool brief; /* the caller's: JSON has no single nodes */
    char *ns, *name;
    bool known; /* the cluster has the pod */
    enum verdict verdict;
    char *asks;   /* "8GiB of one card"; NULL: nothing that can be read */
    char *dialects; /* that read it, "gpushare, volcano"; NULL likewise */
    char *failure; /* VERDICT_INVALID: what is wrong with it */
    struct explained_place place; /* VERDICT_PLACED and _FITS */
    guint n_nodes, n_taking; /* that exist; that kube-scheduler offers and that take it */
    GArray *nodes;  /* struct explained_node: those that take it first, then the closest */
    GArray *groups; /* struct explained_group, in the same order */
    struct remedies *remedies; /* VERDICT_REFUSED, else NULL */
    struct class_told *work_class; /* NULL: it is of none, and says nothing of one */
    struct quota_told *quota;      /* NULL: it is in none of a tree, and says nothing of one */
    struct group_place *group;     /* that the pod comes with, or NULL */
    struct preview *preview; /* whom kube-scheduler would end for it; likewise */
    struct reclaim_preview *reclaim; /* who would give back lent quota; likewise */
    unsigned overlooked; /* of the pod, by kube-scheduler alone: bits of enum overlooked */
    char *held_back;     /* why kube-scheduler does not look at the pod at all; NULL: it does */
};

/* The pod of that name as the cluster has it; borrows from the arena. */
bool explain_read_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                      const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                      GError **error);

/* The pod as it stands somewhere: in the cluster, or in a file. Without a UID it is a new one. The
 * cluster is asked for pods that might be moved to make room. */
struct explanation *explain_pod(struct store *store, struct cluster *cluster,
                                const struct pod_view *asked);
/* The same of a pod that wants a GPU, of a copy of the store that is the caller's, without what might
 * be done about it. Takes the copy's lock. */
struct explanation *explain_on(struct store *copy, const struct pod_view *pod,
                               const struct request *request);
void explanation_free(struct explanation *explanation);
typedef struct explanation explanation; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(explanation, explanation_free)

/* As JSON, and as tables for terminals; wide: every node and card. */
void explanation_encode(struct json_writer *writer, const struct explanation *explanation);
void explanation_write(GString *text, const struct explanation *explanation, bool wide);
