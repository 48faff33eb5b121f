/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether the node's side takes a pod of a group at once where the pod has its place, beside the places of
 * the other pods. Under the store's lock; changes nothing.
 */
#include "store/store.h"

/* `request`: what the pod asks for. Sets why not for ADMISSION_NO. */
enum admission gang_gate_ask(struct store *store, const struct moment *moment,
                             const struct allocation *held, const struct request *request,
                             enum reason *ret_reason);

/* Whether a group that has just come goes before other pods there. */
bool gang_gate_is_taken(struct store *store, const struct moment *moment, const struct node *node);
