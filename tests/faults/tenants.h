/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tenants: who may create pods in a namespace, and patch them. They write whatever the API server
 * takes: keys of every dialect, at any time, copies of pods, nodes' names, specs that nobody can
 * serve.
 */
#include "../prop/chance.h"
#include "holders.h"

#define TENANTS_PODS 40

extern const struct chance_action tenants_actions[]; /* all that they may do */
extern const struct chance_action tenants_honest[];  /* what no tenant means any harm by */
extern const struct chance_action tenants_sieges[];  /* what must not keep others waiting */

/* Boxes by which a pod of that tongue asks for a part of a card of the node: `eighths` of it. */
/* Of a class of work, at times. */
void tenants_draw_class(struct played_pod *pod);
void tenants_ask(struct played_pod *pod, enum tongue tongue, const struct played_node *node,
                 int eighths);
/* As an honest user would copy a running pod: all its words and none of its state. */
void tenants_copy_words(struct played_pod *pod);
