/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The program, as far as it is above libcurl: what follows the cluster, the verbs, who keeps house, and what a
 * scenario adds. Two replicas may live at once, of which one serves.
 */
#include "kube/api_client.h"
#include "kube/events.h"
#include "kube/reflector.h"
#include "verbs/extender.h"

struct replica {
    struct leadership leadership; /* first: what it asks whether it serves */
    char name;                    /* 'a', 'b', …: the last of its token */
    bool serves;
    int64_t deposed_us; /* since then it does not; 0: it does, or never has */
    struct store_options options;
    struct store *store;
    struct api_client *client;
    struct cluster *cluster;
    struct events *events;
    struct extender extender;
    struct reflector *reflectors[FEED_BUDGETS];
    bool stopping;
};

struct scenario {
    const char *name;
    void (*build)(void); /* the cluster */
    void (*options)(struct store_options *options);
    void (*feed)(struct store *store);      /* what is not watched here; NULL: nothing */
    void (*begin)(struct replica *replica); /* its executors; a simulated thread's */
    void (*live)(void); /* the node side, several times a second; NULL: nobody's */
    /* What must hold at any time, and NULL, or why it is not over yet. */
    const char *(*look)(void);
    /* What must hold in the end; `calm`: nothing has gone wrong but deaths. */
    void (*check)(bool calm);
    int64_t patience_s; /* for all of it */
    unsigned stride;    /* only each so manieth write is struck; 0: all. For what takes long */
    unsigned most;      /* and none after so many; 0: all */
    bool deaths_only;   /* and no single write goes wrong; likewise */
};

extern const struct scenario *scenario; /* that is played */

struct replica *replica_start(void);
/* SIGKILL of all that live. */
void replicas_kill(void);
/* NULL: it does not live. */
struct replica *replica_find(char name);
/* That serves; NULL: nobody. */
struct replica *replica_serving(void);
/* It goes on, but serves no more; and another one does. */
void replica_depose(void);
