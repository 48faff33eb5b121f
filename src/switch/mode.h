/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What of a node may be switched: a label by which NVIDIA's node side is told how to share cards
 * (nvidia_modes.h), or the annotation by which gpuledger is told how many holders a card takes
 * (node_marks.h). Of the latter no node side knows, so nothing has to obey: the value counts at once, and
 * pods have to end only where a card has more of them. Pure functions.
 */
#include "dialect/nvidia/nvidia_modes.h"

/* By its key, or by what follows the slash; NULL: there is none. */
const struct node_mode *switch_mode_find(const char *name);

/* It is the annotation. */
bool switch_mode_is_slots(const struct node_mode *mode);

/* Of the node, or NULL. */
const char *switch_mode_value(const struct node_mode *mode, const struct node_view *node);
