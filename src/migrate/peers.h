/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The schedulers whose place gpuledger takes: how they are recognised, what is different afterwards, and
 * what there is to do beside what all have in common. One table, constant.
 * Sources: the manifests and charts of gpushare-scheduler-extender c0b6141, HAMi v2.10.0 and 4paradigm's
 * da7d4ed, gpu-admission 47d56ae, Volcano ed72c7c8, elastic-gpu-scheduler 09b010d.
 */

#include <stdbool.h>

struct peer_step {
    const char *what;    /* a sentence or two */
    const char *command; /* lines; NULL: none */
};

#define PEER_WORDS 5

struct peer {
    const char *name;                   /* of --from */
    const char *title;                  /* for people */
    const char *dialects[PEER_WORDS];   /* whose pods and nodes it serves */
    const char *schedulers[PEER_WORDS]; /* what its pods, containers or images are called */
    const char *node_sides[PEER_WORDS]; /* likewise; these stay */
    const char *scheduler_name;         /* what pods name; NULL: they name kube-scheduler's */
    const char *group_key;             /* annotation of pods that come together there; NULL: none */
    bool stays;                        /* it goes on elsewhere in the cluster */
    const char *overlay;               /* the manifests to apply */
    const char *const *changes;        /* sentences; NULL ends them */
    const struct peer_step *first;     /* before it ends; .what NULL ends them */
    const struct peer_step *configure; /* of kube-scheduler; likewise */
    const struct peer_step *back;      /* before it starts again; likewise */
};

/* Ends with a row whose name is NULL. */
extern const struct peer peers[];
