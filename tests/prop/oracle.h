/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the ledger should say, worked out afresh from a plain list of nodes and pods each time it is
 * asked. Shares types with the ledger, but no code.
 */
#include <gpuledger/ledger.h>

#define ORACLE_NODES 5
#define ORACLE_CARDS 6
#define ORACLE_PODS 48
#define ORACLE_SHARES 4

struct oracle_node {
    char name[8];
    bool present, shared;
    int64_t unit;
    struct host host;
    int32_t n_cards;
    int64_t memory[ORACLE_CARDS]; /* bytes */
    bool sick[ORACLE_CARDS + 2];  /* also cards that do not exist */
};

struct oracle_pod {
    char uid[8];
    int node; /* -1: no such pod */
    bool assigned, waiting;
    int64_t match_amount, assume_time_ns;
    struct host host;
    uint32_t generation; /* guests only */
    bool guest; /* without shares */
    uint32_t n_shares;
    struct share shares[ORACLE_SHARES];
};

struct oracle {
    struct oracle_node nodes[ORACLE_NODES];
    struct oracle_pod pods[ORACLE_PODS];
};

/* What is on one card, or (card CARD_UNKNOWN) on none. */
struct oracle_usage {
    int64_t memory, core;
    int32_t holders, exclusive;
};

void oracle_init(struct oracle *oracle);

struct oracle_usage oracle_usage(const struct oracle *oracle, int node, int32_t card);
int64_t oracle_memory_free(const struct oracle *oracle, int node, int32_t card);
int64_t oracle_core_free(const struct oracle *oracle, int node, int32_t card);
int64_t oracle_bytes(const struct oracle *oracle, int node, struct amount amount);

/* Whether a new pod with these shares finds room for all of them. */
bool oracle_fits(const struct oracle *oracle, int node, const struct share *shares, uint32_t n);

/* Ends the program if the ledger says anything else. */
void oracle_check_node(const struct oracle *oracle, int node, const struct ledger *ledger);
void oracle_check(const struct oracle *oracle, const struct ledger *ledger);

/* The allocation that an oracle's pod stands for; the caller owns it. */
struct allocation *oracle_allocation(const struct oracle_pod *pod, const struct dialect *dialect);
void oracle_topology(const struct oracle_node *node, const struct dialect *dialect,
                     struct topology *ret_topology);
/* The unhealthy cards of a node; returns how many. */
size_t oracle_sick(const struct oracle_node *node, int32_t *ret_indices);
