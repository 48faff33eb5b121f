/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What node.c and ledger/node_sums.c need of cards and pools beside what anybody may ask (gpuledger/ledger.h).
 */
#include <gpuledger/ledger.h>

/* As node_card, node_share_card (of a share of cards) and node_pool say, for who changes them. */
struct card *card_find(const struct node *node, int32_t index);
struct card *card_find_share(const struct node *node, const struct share *share);
/* Sets the card of a share that is named otherwise than by the ledger's number; NULL: there is none such. */
void share_settle(struct share *share, const struct card *card);
struct pool *pool_find(const struct node *node, const char *resource);

/* What a card has of compute, in the unit of card_core, if that is so many thousandths of a card. */
int32_t card_core_size(const struct card *card, int32_t core);

/* Whether a share of that compute, which tolerates no other (`exclusive`), does so on this card: not a card's whole
 * compute where the node side gives out more than one has.
 * Source: Project-HAMi/HAMi@v2.10.0:pkg/device/nvidia/device.go; 4paradigm/k8s-vgpu-scheduler@da7d4ed:
 * pkg/scheduler/score.go */
bool card_excludes(const struct card *card, bool exclusive, int32_t core);

/* What of it shares on no known card may take. */
int32_t card_core_unplaced(const struct node *node, const struct card *card);

/* The same number for all that policies cannot tell apart while nothing of it is taken. */
uint64_t card_kind(const struct node *node, const struct card *card);
uint64_t pool_kind(const struct pool *pool);

/* A number that stands for kinds and one more, in their order. */
uint64_t kind_join(uint64_t kinds, uint64_t kind);

/* terms_accept_card, but for the card's model. */
bool terms_accept_but_model(const struct terms *terms, const struct card *card);
