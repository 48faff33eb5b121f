/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a ledger is made of, for ledger.c and the files of this folder alone. */
#include "core/ledger.h"
#include "core/ledger/node_blocks.h"
#include "core/ledger/pulses.h"

/* A pod without a GPU. There may be many more of these than of the others. */
struct cpu_pod {
    const char *uid; /* lives in the CPU-only pod's own block */
    struct node *node;
    struct host host;
    uint32_t generation;
    int32_t priority;               /* 0: not noted */
    struct cpu_pod *before, *after; /* in the order in which they were put */
};

#define FREED_IN 256 /* namespaces told apart, by hash */

struct ledger {
    GHashTable *nodes;          /* struct node *, a set by name */
    struct node_blocks *blocks; /* where they are */
    struct pulses pulses;
    GHashTable *allocations; /* uid (the allocation's own) -> struct allocation * */
    GHashTable *cpu_pods;    /* struct cpu_pod *, a set by uid */
    struct cpu_pod *first_cpu_pod, *last_cpu_pod; /* the one put longest ago is the first */
    GHashTable *open;                             /* likewise: those that are not confirmed */
    size_t n_in_state[ALLOCATION_STATES];
    GPtrArray *sorted;   /* nodes by name */
    GPtrArray *at_place; /* struct node *, by place; NULL: none */
    GArray *free_places; /* uint32_t, of nodes that are gone */
    uint32_t n_places;
    uint64_t changes; /* ledger_changes */
    uint64_t newest;  /* no node that is gone was of this version or a later one */
    uint64_t supply;  /* the sum of the nodes' hardware */
    size_t n_cards;
    uint64_t freed;     /* counts what may have made room */
    uint64_t all_freed; /* the same, when it last may have on every node */
    uint64_t freed_in[FREED_IN];
    struct asked_order *asked;
    uint32_t flag_round; /* of ledger_flag */
    GHashTable *marks;   /* name -> the bits of ledger_mark, not 0; owned */
};

/* ledger_nodes.c: the node of that name, made if there is none. */
struct node *ledger_intern_node(struct ledger *ledger, const char *name);
/* A node that neither exists nor holds anything nor has a health record is forgotten. */
void ledger_collect_node(struct ledger *ledger, struct node *node);
/* It is nowhere any more. */
void ledger_free_node(struct ledger *ledger, struct node *node);
/* Something of it may have become free. */
void ledger_note_freed(struct ledger *ledger, struct node *node);
/* After a change of the node's allocations. */
void ledger_redraw(struct ledger *ledger, struct node *node);

/* cpu_pods.c: NULL: there is none. */
struct cpu_pod *ledger_cpu_pod(const struct ledger *ledger, const char *uid);
/* As the one that was put last; one that was there before is unlinked first. */
void ledger_append_cpu_pod(struct ledger *ledger, struct cpu_pod *cpu_pod);
void ledger_unlink_cpu_pod(struct ledger *ledger, const struct cpu_pod *cpu_pod);
/* False: there was none. */
bool ledger_drop_cpu_pod(struct ledger *ledger, const char *uid);
