/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Filter as the only verb, for a scheduler configuration that names no other (gpu-admission's
 * `predicates`): there is no bind in which to choose, so filter chooses, books, writes the
 * annotations and passes one node. It is the one exception to "filter changes nothing".
 *
 * Asking again is harmless: a pod keeps its node and cards while that node is offered, else it is
 * planned anew and its annotations overwritten. A booking of a pod that is not bound ends like a
 * Binding whose outcome is not known (verbs/reconcile.c).
 */
#include "verbs/extender.h"
#include "wire/extender.h"

/* Sets a reason for each of the nodes offered, none for the one that was booked, if any. */
bool predicate_book(struct extender *extender, const struct filter_args *args,
                    const struct request *request, enum reason *ret_reasons, GError **error);
