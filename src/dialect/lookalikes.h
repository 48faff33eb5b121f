/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pods that a plugin could take for each other, where it goes by their size alone. */
#include <gpuledger/dialect.h>

/* A newcomer joins the card of an unassigned pod of its size: a swap means nothing there. If those
 * are on several cards, none can be joined. Returns how many there are; 0 on a single card, where
 * every pod joins the same one anyway. */
int lookalikes_find(const struct node *node, const struct request *request,
                    struct in_flight *ret_in_flight);
