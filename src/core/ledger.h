/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the program keeps with nodes and allocations beside what the library shows of them
 * (gpuledger/ledger.h): who made what when, for those who remember something of it. The public struct
 * lies within the own one, in the same block.
 */
#include <gpuledger/ledger.h>

#define NODE_ALIGNMENT 64 /* a line of the cache */

/* For who remembers something of a node: what tells whether it holds, without anything else of the node. */
struct node_pulse {
    /* Of all nodes that a ledger ever has at one place no two are of the same version, and neither is one
     * node after a change: then it is another version. */
    uint64_t version; /* not 0 */
    uint32_t flagged; /* the last round of ledger_flag that named it */
    uint32_t marks;   /* of ledger_mark, a bit each */
};

struct node_own {
    guint turn;               /* its place in the order in which nodes were asked for last */
    uint32_t generation;      /* caller's mark, for sweeping after a fresh list */
    uint32_t place;           /* below ledger_places */
    uint64_t hardware;        /* stands for its cards' kinds */
    uint64_t freed_at; /* ledger_freed when something of it alone last may have become free */
    /* Counts what else has changed of its allocations: what they say beside what they hold. */
    uint64_t told;
    bool granted_otherwise;   /* as granted_unit.h has it; of when its pods were chosen last */
    struct node_pulse *pulse; /* the ledger's (core/ledger/pulses.h); `alone` of a node in none */
    struct node_pulse alone;
    uint64_t *changes; /* the ledger's count of them; NULL of a node in none */
    struct node node;
};

/* Of a node that a ledger made. */
static inline struct node_own *node_own(const struct node *node)
{
    return (struct node_own *)((char *)node - offsetof(struct node_own, node));
}

/* It is of another version from now on. */
static inline void node_note_change(struct node *node)
{
    struct node_own *own = node_own(node);

    own->pulse->version++;
    if (own->changes)
        ++*own->changes;
}

/* What one dialect reads of a pod that several read. Those that read the same resources are
 * alternatives: the node decides, by whose node side runs there. All others count beside each
 * other. */
struct pod_reading {
    const struct dialect *dialect;
    struct terms *terms; /* a reference, or NULL */
    int64_t match_amount, assume_time_ns;
    enum distrust distrust;
    bool assigned, waiting, heeded, open; /* as in struct allocation */
    bool alternative;                     /* as it was before it was joined */
};

struct allocation_own {
    uint32_t generation; /* caller's mark, for sweeping after a fresh list */
    uint32_t n_strings;  /* bytes of uid, namespace and name, which follow the shares */
    /* Where not all that was read counts on every node: all of it, which the ledger chooses from,
     * and sets the allocation and its shares by. NULL and 0 for most pods. */
    uint32_t n_readings, n_known;
    struct pod_reading *readings;
    struct share *known;
    struct allocation allocation;
};

/* Of an allocation that allocation_new made. */
static inline struct allocation_own *allocation_own(const struct allocation *allocation)
{
    return (struct allocation_own *)((char *)allocation -
                                     offsetof(struct allocation_own, allocation));
}

/* What who asks for many nodes will read of each. */
enum node_part {
    NODE_PULSE,   /* nothing of the node itself */
    NODE_SUMMARY, /* what tells mostly whether a pod may go there, too */
};

/* One who asks for many nodes by name, one after the other; all zero before the first. Valid as long as
 * no node comes or goes. */
struct node_cursor {
    struct node *node; /* the one that was asked for last; NULL: there is none of that name */
    /* Of that one, if there is one: */
    const struct node_pulse *pulse;
    uint32_t place;

    guint turn; /* for who follows it */
    bool begun; /* a node has been found */
};

/* The node of the next name: cursor->node. Who asks for many asks in the same order the next time, and
 * then the guess costs less than the look-up, reads nothing of the node, and what is read of the next
 * nodes is fetched. The guesses are all that changes. */
struct node *ledger_next_node(struct ledger *ledger, struct node_cursor *cursor, const char *name,
                              enum node_part part);

/* For who is to ask about thousands of nodes, of which something else matters for a few: a round, in
 * which those are flagged by name, so that the others need no look-up. Numbers grow, so a node whose
 * number is not smaller than the round's has been flagged in it or later. Unknown nodes are ignored. */
uint32_t ledger_flag_round(struct ledger *ledger);
void ledger_flag(struct ledger *ledger, const char *name);

/* The same for what lasts: a bit of the names of which a rule has something to say (gate/gate.h), until it is taken
 * back, whether there is such a node or not. */
void ledger_mark(struct ledger *ledger, const char *name, unsigned bit, bool on);

/* Adds what another dialect reads of the same pod, before either is in a ledger. Both are taken.
 * NULL: they have more than ALLOCATION_SHARES_MAX together. */
struct allocation *allocation_join(struct allocation *take_first, struct allocation *take_other);

/* What a pod that asks so is known by, beside its shares, before anything of it has been seen. */
void allocation_note_request(struct allocation *allocation, const struct request *request);

/* The pod is being given its devices now, as the node divides its cards. */
void allocation_witness(struct allocation *allocation, const struct node *node);

/* All shares that were read, those included that do not count on its node. */
const struct share *allocation_known(const struct allocation *allocation, uint32_t *ret_n);

/* Cards of all nodes. */
size_t ledger_cards(const struct ledger *ledger);

/* A CPU-only pod of this node that is known counts as put in this generation, as it is. False: there is none. */
bool ledger_keep_cpu_pod(struct ledger *ledger, const char *node, const char *uid,
                         uint32_t generation);

/* The UID of a CPU-only pod that was not put in this generation, or NULL. Generations only grow. */
const char *ledger_stale_cpu_pod(const struct ledger *ledger, uint32_t generation);

/* The priority of a CPU-only pod. Nothing is noted of pods that are none. */
void ledger_note_cpu_pod_priority(struct ledger *ledger, const char *uid, int64_t priority);
/* False: it is no CPU-only pod of the ledger. */
bool ledger_cpu_pod_priority(const struct ledger *ledger, const char *uid, int64_t *ret_priority);

/* How many there are in a state. */
size_t ledger_count(const struct ledger *ledger, enum allocation_state state);

/* Those that are not confirmed: few, however large the ledger is. */
void ledger_each_open(const struct ledger *ledger, ledger_visit visit, void *data);

/* Whether what a node of it holds is what the ledger has there. */
bool ledger_holds(const struct ledger *ledger, const struct node *node);

/* A number that grows whenever something of some node may have become free; and that number when something
 * of this one last may have. */
uint64_t ledger_freed(const struct ledger *ledger);
uint64_t ledger_freed_on(const struct ledger *ledger, const struct node *node);
/* The same, as it was when a pod of the namespace last gave something back; never less, now and then
 * more. */
uint64_t ledger_freed_in(const struct ledger *ledger, const char *ns);
/* Says that of a node on which the caller kept room, and does so no more. Unknown nodes are ignored. */
void ledger_mark_freed(struct ledger *ledger, const char *name);
/* Says that of all nodes. */
void ledger_mark_all_freed(struct ledger *ledger);

/* Gives what is withheld of the node as long as it is being changed. */
void ledger_end_change(struct ledger *ledger, const char *name);

/* Nodes have places below this; those of nodes that are gone are given to others. */
uint32_t ledger_places(const struct ledger *ledger);
/* The node at a place, or NULL; and a number that is another one after each change of that node, and of which node
 * that is. Not 0. */
const struct node *ledger_node_at(const struct ledger *ledger, uint32_t place);
uint64_t ledger_version_at(const struct ledger *ledger, uint32_t place);
/* A number that grows with every change of the version at some place. Not 0 once there is one. */
uint64_t ledger_changes(const struct ledger *ledger);

/* A number that stands for the kinds of cards on the nodes, and how many there are of each. */
uint64_t ledger_supply(const struct ledger *ledger);
