/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A cluster whose namespaces lend each other cards and take them back, for property tests: a table of pods, on
 * which kube-scheduler, the controllers and the Eviction API are played, with the real store and the real
 * reclaimer around it. Which quotas there are, and what is right, says the test: its oracle reads this table.
 * One thread, one cluster at a time. Amounts are units, LENDING_CARD of a card.
 */
#include "reclaim/reclaimer.h"

#define LENDING_PODS 512
#define LENDING_CARD 10 /* units */
#define LENDING_NODES 13
#define LENDING_SPACES 6

enum lending_stage { STAGE_GONE, STAGE_WAITS, STAGE_HELD, STAGE_ENDS };

struct lending_pod {
    enum lending_stage stage;
    int space, units, node, card, priority;
    int64_t created_s;
    unsigned born; /* part of its UID */
    bool again;    /* its controller makes it again when it was evicted */
    bool opts_out;
    bool grouped; /* with all of its namespace that are */
    bool refused; /* its eviction, when it was tried last */
    int64_t ends_ms;
};

/* What is right. None is NULL. */
struct lending_judge {
    /* The pod is about to end, for that claimant; or nobody will know whether it does. */
    void (*eviction)(const struct lending_pod *pod);
    void (*taking)(const struct lending_pod *pod, const struct lending_pod *claimant);
    /* Room is kept for the claimant from now on; not while there is chaos. */
    void (*claim)(const struct lending_pod *claimant);
    /* All has come to rest. */
    void (*rest)(void);
    /* Of a claim that was written: a pod that is to end for it. NULL: no matter. */
    void (*named)(const struct lending_pod *pod);
    /* A second is over. NULL: no matter. */
    void (*step)(void);
};

struct lending {
    const struct lending_judge *judge;
    struct lending_pod pods[LENDING_PODS];
    int n_spaces, n_nodes, n_cards; /* cards of each node */
    struct node_note {
        char *text;  /* the claims on it, as the ConfigMap has them, or NULL */
        char *shown; /* what its annotation says, or NULL */
        int version;
    } notes[LENDING_NODES];
    struct store *store;
    struct reclaimer *reclaimer;
    struct moment moment;
    const char *group_min; /* NULL: there are no groups */
    int64_t hold_ms;       /* for which older pods are waited for, as long as a test lasts */
    void (*observe)(
        struct store *store); /* one that is new and knows nothing yet; NULL: nobody does */
    void (*schedule)(
        int number); /* a pod that waits, in kube-scheduler's place; NULL: it is played */
    int64_t at_once, per_minute; /* 0: as many as there are */
    bool unsure;                 /* of some evictions nobody knows whether they were made */
    bool stuck;                  /* a budget never has anything to give */
    bool shaky;                  /* the replica's term may be over at any moment */
    bool deposed;                /* it is */
    bool chaos;                  /* evictions and writes fail at random, and watches are late */
    bool quiet;                  /* pods come and go by eviction alone */
    bool taken[LENDING_SPACES][LENDING_SPACES]; /* from whom for whom, since it was quiet */
    int64_t evicted_units[LENDING_SPACES];
    unsigned n_evicted, n_refused, n_takeovers;
};
extern struct lending lending;

/* An empty one. Its namespaces are s0 and so on; there are no quotas. */
void lending_begin(int spaces, int nodes, int cards);

/* Its number; -1: there are too many. */
int lending_create(int space, int units, int priority, bool again);
/* The watch shows it as it is in the table. */
void lending_tell(int number);

/* A second passes: pods end, kube-scheduler tries all that wait, the reclaimer looks. */
void lending_step(void);
/* kube-scheduler tries a pod. */
void lending_schedule(int number);
/* By its UID; NULL: it is gone. */
struct lending_pod *lending_find(const char *uid);
/* It is gone from one moment to the next. */
void lending_end(int number);
/* Another replica reclaims from now on. */
void lending_take_over(void);

/* What a test does at random, a chance_act's actions. */
void lending_submit(void *data);
void lending_crowd(void *data); /* one namespace has the cards to itself for a while */
void lending_finish(void *data);
void lending_leave(void *data); /* most of a namespace's pods end, so that others may borrow */
void lending_pass_time(void *data);
void lending_change_replica(void *data);
void lending_stir(void *data); /* there is chaos, or no more */

/* Nothing comes from outside any more: it comes to rest, which the judge then looks at. */
void lending_rest(void);

/* Of a namespace: its pods, those of them that hold something, and what those hold for whom room is kept. */
int lending_count(int space, enum lending_stage stage);
int64_t lending_held(int space, bool ending);
int64_t lending_promised(int space);
