/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What pods are expected: those that came lately, by what they ask for. Policies that weigh what
 * a placement leaves to others ask here who the others will be.
 *
 * Each pod counts a little more than the one before it, so that after some 10,000 pods a changed
 * mix has taken the place of the old one. At most DEMAND_SHAPES_MAX different wishes are told
 * apart; a new one takes the place of the rarest. The same pods in the same order give the same
 * demand, and with the same cards the same weights.
 *
 * Threads: none of its own and no lock; the caller serialises, as with the ledger.
 */
#include <gpuledger/names.h>
#include <gpuledger/ledger.h>

#pragma GCC visibility push(default)

#define DEMAND_SHAPES_MAX 512

struct demand;

struct demand *demand_new(void);
struct demand *demand_dup(const struct demand *demand);
void demand_free(struct demand *demand);
typedef struct demand demand; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(demand, demand_free)

/* A pod that is seen for the first time, wherever it is; without asks: one without a GPU. Pods that
 * ask for devices of several pools, or for cards beside devices, are not learned. */
void demand_note(struct demand *demand, const struct request *request);

/* Works out what follows from the pods noted so far for the cards of the ledger, if enough of
 * either has changed to matter; else costs next to nothing. Before anything is placed or ranked. */
void demand_settle(struct demand *demand, struct ledger *ledger);

/* Grows whenever demand_settle has changed something; 0: nothing is known yet. NULL is a demand
 * that knows nothing. */
uint64_t demand_version(const struct demand *demand);

#pragma GCC visibility pop
