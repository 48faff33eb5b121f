/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One run: the pods of a scenario come to its cluster one by one, and each goes through the verbs
 * of verbs/extender.h as kube-scheduler would call them, with its own part modelled. What is bound
 * counts at once. Several runs may go on at once, each on a thread of its own.
 *
 * Amounts of GPU are in cards: a pod that shares a card asks for the part that it names; a card is
 * in use as far as its most used resource is.
 */
#include "verbs/extender.h"
#include "simulate/scenario.h"

#define SIMULATION_PERCENT_MAX 1000

/* Which pods' nodes the extender ranks; the others' are left to kube-scheduler's own scores. */
enum ranked {
    RANKED_ALL,  /* also those of pods without GPU: a second entry, for prioritize only */
    RANKED_GPU,  /* one entry */
    RANKED_NONE, /* filter and bind only, as extenders without prioritize */
};

struct simulation_options {
    const struct scenario *scenario;
    const struct policy *policy;
    struct dialect_options dialects;
    struct seals *seals; /* of the pods that have a node in the scenario; NULL: they are believed */
    enum prioritize_shape shape;
    enum ranked ranked;
    int64_t weight;      /* of the extender's marks, times ten */
    uint32_t seed;
    bool in_order;       /* pods come in the order of the file */
    bool foreseen;       /* policies are told of all pods of the file before the first comes */
    int64_t percent;     /* pods come until they ask for so much of the cluster's GPU, more than the
                          * file has being drawn from it; 0: each comes once */
    int64_t lifetimes;   /* pods leave: for how many mean lifetimes this goes on after the first;
                          * `percent` is then what they would hold if none was refused. 0: they stay */
    int64_t
        moves_per_thousand; /* pods that may be moved for others, for a thousand that come; only where
                                 * pods leave */
    uint32_t moves_per_hour; /* the same, in any hour; of the two one at most is not 0 */
    int64_t lifetime_ms;     /* the mean; for that, and for groups */
    int64_t pace_ms;     /* what node sides take for a pod, one after the other; 0: no time */
    int64_t per_second;  /* with a pace: how many pods come */
    int64_t wait_loss;   /* see struct store_options */
    bool
        gangs; /* groups of pods come whole or not at all; without a pace and without moves. Where pods
                 * leave, a group that finds no room waits for a mean lifetime (lifetime_ms) at most */
    int64_t gang_room_ms; /* see struct store_options; only where pods leave */
    bool keep_pods;      /* fill simulation_result.pods */
    gint *progress;      /* atomic, thousandths of the run */
    gint *decisions;     /* atomic, pods that came, counted up */
    gint *cancelled;     /* atomic */
};

/* What a pod asks for. */
enum pod_kind {
    POD_KIND_PART,    /* of one card */
    POD_KIND_ONE,     /* a whole card */
    POD_KIND_SEVERAL, /* more */
    POD_KIND_NO_GPU,
    POD_KIND_N
};
extern const char *const pod_kind_names[POD_KIND_N];

/* All as parts of the cluster's GPU. Where pods stay, a point is the mean over all moments at which
 * the arrivals asked for that percentage, rounded; where they leave, a moment. */
struct simulation_point {
    double x;         /* percent of the GPU that arrivals have asked for, or lifetimes */
    double allocated;
    double part_used; /* free, on cards that are in use */
    double untouched; /* free, on cards that nobody uses */
};

struct simulation_result {
    double gpus;              /* of the cluster */
    guint nodes;
    GArray *points;           /* struct simulation_point, by x */
    struct simulation_point end; /* at the end; where pods leave, means over the time counted */
    double refused;           /* part of the GPU asked for in that time that was not given */
    uint64_t arrivals;
    uint64_t moves;
    uint64_t groups, groups_refused; /* that came; of which nobody was bound */
    double group_wait_s;             /* where pods leave: what the others have waited, on average */
    uint64_t failed[POD_KIND_N];
    double first_failure;     /* x; negative: none */
    double decision_mean_us, decision_p99_us; /* all verbs of one pod, CPU */
    double wait_median_s, wait_p99_s; /* with a pace: from a pod's coming until it is served */
    char *error;              /* what the verbs complained of first, or NULL */
    GPtrArray *pods;          /* char *: the nodes and pods of the end as JSON, or NULL */
};

/* False if it cannot be begun, was cancelled, or if the ledger is wrong at the end. */
bool simulation_run(const struct simulation_options *options, struct simulation_result *ret_result,
                    GError **error);
void simulation_result_clear(struct simulation_result *result);

/* The first point at which arrivals had asked for this percentage, or NULL: they never did. */
const struct simulation_point *simulation_point_at(const struct simulation_result *result,
                                                   double x);
