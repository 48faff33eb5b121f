/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An API server in memory with pods and nodes of every dialect, as net.c and streams.c ask for it
 * (server.h), in the place of server.c, which knows one dialect and no strangers: pods have several
 * containers, any annotations and labels, namespaces and schedulers. Uses nothing of the program.
 */
#include "server.h"
#include "words.h"

#define PLAYED_NODES 5
#define PLAYED_CARDS 8

enum box_sort { BOX_APP, BOX_INIT, BOX_SIDECAR };

/* A container. */
struct box {
    char *name;
    enum box_sort sort;
    struct words limits;
};

struct played_pod {
    bool exists;
    int slot;
    char ns[24], name[16], uid[32];
    int64_t version, created_us;
    GArray *boxes; /* struct box, containers before init containers */
    struct words annotations, labels;
    const char *scheduler; /* NULL: the default one */
    const char *priority_class; /* NULL: none */
    bool gated;
    bool elsewhere; /* its selector names no node: kube-scheduler never asks us about it */
    bool quiet;     /* its scheduler has stopped asking */
    int64_t not_before_us; /* it asks again then */
    int node;       /* -1: unbound */
    enum pod_phase phase;
    bool terminating, started;
    bool image_missing; /* it stays Pending */

    /* For the oracle: */
    bool ours;          /* bound by a Binding of the program */
    struct words grant; /* what that wrote; of pods bound by others: what they said at first */
    int64_t bound_version, bound_us, edited_version, edited_us, wished_version;
    int64_t started_us, started_real_us; /* by the simulation's clock, by the API server's */
    bool edited;        /* by a tenant, since it was bound */
    bool tainted;       /* it has words that neither we nor a node side nor an honest user wrote */
    unsigned edited_run; /* of the program, at the last edit */
    unsigned run;        /* of the program that bound it */
    int64_t known;      /* up to which version of the pods a bind of it may be founded on; -1: none */
    bool taken_up;      /* the node side has done its part */

    char *text; /* as JSON; NULL: to be made */
};

struct played_node {
    char name[8];
    int64_t version;      /* 0: there is none */
    unsigned lives;       /* how often it has been put */
    unsigned serves;      /* bits by enum tongue (holders.h) */
    int n_cards, split;
    int64_t card_mib, unit_mib; /* of a card; of one aliyun.com/gpu-mem */
    bool core_divided;    /* by gpushare's node side */
    struct words capacity, annotations, labels;
    const char *closed; /* members of its spec that keep pods away, as JSON; or NULL */
};

struct played {
    GPtrArray *pods; /* struct played_pod *, by slot */
    struct played_node nodes[PLAYED_NODES];
    GHashTable *bound; /* uid -> node's number + 1 */
    unsigned run;      /* of the program */
    uint64_t n_patched; /* pods */
    void (*on_granted)(struct played_pod *pod);
    bool
        classed; /* pods of the PriorityClass "batch", and those of "lab" that say so, are alone on cards */
    bool sealed; /* who is edited while the program does not know him may count on every card */
    void (*on_patched)(struct played_pod *pod);
};
extern struct played played;

void played_reset(void);

/* A free slot of the first `max`, made if need be; NULL: none. */
struct played_pod *played_slot(int max);
/* Empty, not known to anybody yet: add boxes and words, then announce it. */
struct played_pod *played_pod_new(struct played_pod *slot, const char *ns);
struct box *played_add_box(struct played_pod *pod, enum box_sort sort, const char *limits);
void played_announce(struct played_pod *pod);
void played_touch(struct played_pod *pod);
void played_delete(struct played_pod *pod);
/* By its author, not by a node side. */
void played_edit(struct played_pod *pod, const char *key, const char *value);
bool played_lives(const struct played_pod *pod);
struct played_pod *played_at(unsigned slot);
unsigned played_n(void);
const char *played_json(struct played_pod *pod);
void played_node_changed(int node);
void played_put_node(int node);
/* The Node, not the machine: its pods stay. */
void played_delete_node(int node);
