/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who lives in the cluster beside the program: a kubelet, controllers that make pods again, and a
 * kube-scheduler that asks whichever replica serves. Held at every Binding: no card has more than it is.
 */
#include "api.h"

/* Forgets whom it knew. */
void life_reset(void);
/* From now on; ends with the replicas (sim_kill). */
void life_begin(void);

/* A node of `cards` cards of `units` each, gpushare's; and its path, borrowed until the next call. */
void life_put_node(const char *name, int cards, int units);
/* A pod that asks for so much; on a node: it runs there, on that card. `owner`: who makes it again, or NULL.
 * `words`: more of its annotations, as ",\"key\":\"value\"", or "". */
void life_put_pod(const char *ns, const char *name, int units, const char *node, int card,
                  const char *owner, const char *words);
/* On which node it is; NULL: none, or there is no such pod. */
const char *life_node(const char *ns, const char *name);
int life_n_ready(const char *ns, const char *owner);
/* So many pods of the namespace exist. */
int life_n_pods(const char *ns, const char *owner);
bool life_ends(const char *uid);
