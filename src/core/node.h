/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One node's cards and pools, and what is counted on them: the arithmetic beneath the ledger, which
 * says which allocations there are. Only core/ledger.c changes nodes.
 */
#include <gpuledger/error.h>
#include <gpuledger/ledger.h>

struct node *node_new(const char *name);
void node_free(struct node *node);

/* The same in memory of the caller's: so many bytes, zeroed and aligned, which node_clear leaves. */
size_t node_block_size(const char *name);
struct node *node_init(void *block, const char *name);
void node_clear(struct node *node);

/* What the Node object says beside its cards. */
struct node_facts {
    uint32_t generation;
    bool cordoned, distrusted, limited;
    int64_t switches_ns; /* as in struct node, these two */
    int32_t slots_ahead;
    struct heartbeat heartbeat; /* likewise */
    const struct host *host; /* NULL: the topology has it, or it is not known anew */
};

/* Gives the traits that the node had, for whoever wants to free them without a lock. */
struct node_traits *node_set_facts(struct node *node, const struct node_facts *facts,
                                   struct node_traits *take_traits);

/* Adds (sign 1) or takes away (sign -1) what an allocation holds, and says in its shares which
 * cards that is. Another sign: of so many that hold the same. */
void node_charge(struct node *node, struct allocation *allocation, int sign);

/* Replaces cards and pools and counts the node's allocations anew. */
void node_set_topology(struct node *node, const struct topology *topology);

/* The bytes in one AMOUNT_NODE_UNITS; its pods count anew. */
void node_set_unit(struct node *node, int64_t memory_unit);

/* Replaces cards, pools and all that a Node object says by those of another node, and counts the
 * node's own allocations anew. */
void node_copy_hardware(struct node *node, const struct node *from);

/* Makes a new node the same as another one, what is counted on it included: its allocations, which the
 * caller has listed, are copies of the other's. */
void node_copy_all(struct node *node, const struct node *from);

/* Gives a copy of the node, which is of its version, what has changed all the same: see node_set_facts. */
void node_copy_marks(struct node *copy, const struct node *from);

/* What pools say is given if a change lasts too long is given. */
void node_end_change(struct node *node);

/* After a change of node->unhealthy. */
void node_apply_health(struct node *node);

/* What is told of one card, until health is applied again. */
void node_set_health(struct node *node, struct card *card, bool healthy, enum closure closure);

/* As if no card of the node, which is a copy, took more holders. */
void node_bound_slots(struct node *node, int32_t most);

/* The stray promises of that size there; NULL: there are none. */
const struct promised *node_promised(const struct node *node, const struct dialect *dialect,
                                     int64_t match_amount);

/* Whether every share fits its card or pool beside what is there, several on one added up. */
enum reason node_check_fit(const struct node *node, const struct allocation *allocation);

/* The same for what a pod takes of the node itself; node_charge does it for allocations. */
void node_charge_host(struct node *node, const struct host *host, int sign);

/* What is used of the node itself beside its allocations. */
struct host node_cpu_pods(const struct node *node);

/* Whether the kept sums are those of the allocations, and of CPU-only pods that have so much. */
bool node_verify(const struct node *node, struct host cpu_pods, GError **error);
