/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What kube-scheduler does with one pod, with two entries of the extender: one for pods with GPU
 * (filter, prioritize, bind), one that only ranks the nodes for the others. Its own part is
 * simulate/scheduler_model.h. The extender is asked with the bodies that kube-scheduler sends.
 *
 * Source: kube-scheduler v1.36, pkg/scheduler/schedule_one.go: a single node that is left is taken
 * without scores; marks of extenders count ten times their weight; equal totals are a matter of
 * chance.
 *
 * One thread at a time.
 */
#include "verbs/extender.h"
#include "simulate/scheduler_model.h"
#include "simulate/workload.h"

struct scheduler_cycle;

struct scheduler_cycle_options {
    struct extender *extender;
    struct scheduler_model *model;
    const char *const *nodes; /* names, in the order of the model's nodes */
    size_t n_nodes;
    struct workload *chance;  /* for equal totals */
    int64_t weight;
};

struct scheduler_cycle *scheduler_cycle_new(const struct scheduler_cycle_options *options);
void scheduler_cycle_free(struct scheduler_cycle *cycle); /* NULL is ignored */

struct scheduler_pod {
    const char *ns, *name, *uid;
    const char *text;       /* JSON */
    const pod_needs *needs;
    const uint8_t *barred; /* by node: 1 where kube-scheduler does not offer it; NULL: nowhere */
    bool filtered; /* the extender filters and binds it: it asks for GPU */
    bool ranked;   /* the extender ranks its nodes */
    uint32_t avoided; /* a node that it does not go on; UINT32_MAX: none */
};

/* Finds a node, on which the pod counts from now on; and binds it there, or it counts no longer. As below;
 * the time is added. */
bool scheduler_cycle_choose(struct scheduler_cycle *cycle, const struct scheduler_pod *pod,
                            uint32_t *ret_node, int64_t *ret_ns, GError **error);
bool scheduler_cycle_bind(struct scheduler_cycle *cycle, const struct scheduler_pod *pod,
                          uint32_t node, int64_t *ret_ns, GError **error);

/* Finds a node, and binds the pod there. False: none, or with an error the extender complained.
 * `ret_ns` is the CPU time that the verbs took. */
bool scheduler_cycle_run(struct scheduler_cycle *cycle, const struct scheduler_pod *pod,
                         uint32_t *ret_node, int64_t *ret_ns, GError **error);
