/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A run under way: what the files simulate/simulation*.c share.
 */
#include "simulate/occupancy.h"
#include "simulate/pace.h"
#include "simulate/scheduler_cycle.h"
#include "simulate/simulation.h"

struct simulation_gang;

/* A pod of the scenario, which may come more than once. */
struct kind_of_pod {
    const struct manifest *manifest;
    pod_needs *needs;
    struct request *request; /* NULL: no GPU, or not understood */
    double gpus;             /* occupancy_of_request; 0 without a request */
    const uint8_t *barred;   /* as struct scheduler_pod has it; pods that are alike share it */
    enum pod_kind kind;
    bool filtered;
    struct simulation_gang *gang; /* it comes with others; NULL: alone */
    unsigned times; /* the number that its next name may have; 0: it has not come */
};

/* One that has been bound and will leave. */
struct departure {
    double at; /* mean lifetimes */
    double gpus;
    struct kind_of_pod *of;
    char *ns, *name;
    uint32_t node;
};

/* What was found on a node when it was counted last. */
struct node_count {
    double used; /* cards */
    unsigned overcommitted;
};

struct simulation {
    const struct simulation_options *options;
    struct simulation_result *result;
    struct store *store;
    struct extender extender;
    struct cluster *cluster;
    struct scheduler_model *model;
    struct scheduler_cycle *cycle;
    struct workload *workload;
    struct pace *pace; /* NULL: node sides take no time */
    GPtrArray *node_names; /* sorted; the model's nodes are in this order */
    GPtrArray *node_texts;
    GPtrArray *gangs;     /* struct simulation_gang */
    GPtrArray *queue;     /* struct gang_arrival: groups that wait, in order */
    struct moment moment; /* where groups wait: the store's */
    GArray *kinds; /* struct kind_of_pod, as scenario->arrivals */
    GArray *took_ns; /* int64_t, of each decision */
    GArray *moved_ms;  /* int64_t: when pods were moved, where that is bounded for each hour */
    GPtrArray *barred; /* of `kinds`, owned */
    struct node_count *counts; /* by node */
    double gpus, asked, used; /* cards: of the cluster, that arrivals asked for, that are held */
    double refused;           /* of `asked`, by pods that found no room */
    double mean_gpus; /* of an arrival */
    uint64_t placed;  /* pods that were led through the verbs; for UIDs */
};

/* Fills the store, and reads what each arrival asks for. False also if nothing could ever come of
 * it: no GPU, or nobody who wants one. */
bool simulation_fill(struct simulation *simulation, GError **error);

/* The arrivals, and what each asks for. */
bool simulation_read_kinds(struct simulation *simulation, GError **error);
/* The store learns of each of them, and that it has gone; of one without GPU it learns where it is bound
 * only. */
bool simulation_foresee(struct simulation *simulation, GError **error);

/* What pods hold before the first comes. */
void simulation_count(struct simulation *simulation);

/* A pod has come to the node, or left it. Aborts if a card of it holds more than it has and did not
 * before, or if all pods hold more than the cluster has. Not under the store's lock. */
void simulation_recount(struct simulation *simulation, uint32_t at);

void simulation_occupancy(struct simulation *simulation, struct occupancy *ret_occupancy);

/* A pod comes, and is bound or gone again. Returns its name if it stays (free with g_free). NULL
 * without an error: it found no node. */
char *simulation_arrive(struct simulation *simulation, struct kind_of_pod *kind, double x,
                        uint32_t *ret_node, GError **error);

/* A pod that waits to be led through the verbs. */
struct led_pod {
    char *ns, *name, *uid, *text;
    struct scheduler_pod pod; /* borrows these */
    uint32_t node;
    int64_t took_ns;
};
/* It is there, without a node; in another namespace than its kind's if one is given. */
struct led_pod *led_pod_new(struct simulation *simulation, struct kind_of_pod *kind, const char *ns,
                            GError **error);
void led_pod_free(struct led_pod *led); /* NULL is ignored */

/* What has come of an arrival. */
struct led_end {
    double x;
    bool bound;
    uint32_t node; /* if bound */
    int64_t took_ns;
    const GError *failure;
};
void simulation_note_led(struct simulation *simulation, const struct kind_of_pod *kind,
                         const struct led_end *end);

/* The same for a pod that is no arrival: nothing of it is counted. It does not go on the node
 * `avoided`. NULL with an error only if something is wrong with the run. */
#define SIMULATION_ANYWHERE UINT32_MAX
char *simulation_place(struct simulation *simulation, struct kind_of_pod *kind, uint32_t avoided,
                       uint32_t *ret_node, GError **error);

/* Moves pods of `departures` (struct departure), within the budget, so that the one that has just been
 * refused finds room, and places it. NULL without an error: it stays refused. */
char *simulation_make_room(struct simulation *simulation, GSequence *departures,
                           struct kind_of_pod *kind, double now, uint32_t *ret_node,
                           GError **error);

/* Of a pod that has been bound; takes the name. */
void simulation_add_departure(GSequence *departures, struct kind_of_pod *kind, const char *ns,
                              char *take_name, uint32_t node, double at);

/* How things are. */
struct simulation_point simulation_look(struct simulation *simulation, double x);

bool simulation_is_cancelled(const struct simulation *simulation, GError **error);
void simulation_report(const struct simulation *simulation, double part);

/* Pods come and leave. */
bool simulation_churn(struct simulation *simulation, GError **error);
