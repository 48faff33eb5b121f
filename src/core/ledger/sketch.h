/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <gpuledger/ledger.h>

/* Draws the cards of a node anew of which there is only a sketch; after every change of the pods that
 * are counted on it. It is not told of any other node. */
void sketch_draw(struct node *node);
