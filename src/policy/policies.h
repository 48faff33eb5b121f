/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The policies' functions that are more than a line or two; what they do is told where they are.
 */
#include "policy/value_model.h"

#include <gpuledger/ranking.h>

/* fullness.c; the first two are what the others do while they know nothing. */
struct cost cost_binpack(const struct node *node, const struct card *card,
                         const struct card_ask *ask, const struct demand *demand);
void rate_binpack(const struct node *node, const struct placement *placement,
                  const struct demand *demand, struct rank *ret_rank);

struct cost cost_spread(const struct node *node, const struct card *card,
                        const struct card_ask *ask, const struct demand *demand);
void rate_spread(const struct node *node, const struct placement *placement,
                 const struct demand *demand, struct rank *ret_rank);
struct cost cost_first_fit(const struct node *node, const struct card *card,
                           const struct card_ask *ask, const struct demand *demand);
void rate_strongest(const struct node *node, const struct placement *placement,
                    const struct demand *demand, struct rank *ret_rank);

/* What is in use of a card with the ask, by the pod's weights, for a policy that goes by fullness. */
struct cost cost_weighted(const struct node *node, const struct card *card,
                          const struct card_ask *ask, const struct policy *policy,
                          const struct weights *weights);

/* opportunity.c */
struct cost cost_oc(const struct node *node, const struct card *card, const struct card_ask *ask,
                    const struct demand *demand);
void rate_oc(const struct node *node, const struct placement *placement,
             const struct demand *demand, struct rank *ret_rank);

/* fragmentation.c */
struct cost cost_fgd(const struct node *node, const struct card *card, const struct card_ask *ask,
                     const struct demand *demand);
void rate_fgd(const struct node *node, const struct placement *placement,
              const struct demand *demand, struct rank *ret_rank);
