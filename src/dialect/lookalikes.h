/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods that a plugin takes for each other: kubelet does not tell it whose container it serves, and it
 * goes by the pods' size and age. Of these, one at a time may wait on a node.
 *
 * More of them, even on one card, are served wrongly. kubelet calls in the order of its watch, which is
 * that in which Bindings were carried out; those of one moment are not carried out in the order of the
 * times that they carry, and the plugin goes by the times. So one of the calls takes the turn of
 * another pod. Once that call's own pod runs, which is before its turn comes if a call takes the plugin
 * some tenths of a second, it is no candidate any more, and the last call finds nobody.
 */
#include <gpuledger/dialect.h>

/* Who of the newcomer's size is there already. */
void lookalikes_find(const struct node *node, const struct request *request,
                     struct in_flight *ret_in_flight);
