/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What of a pod says on which nodes it may be. Source: core/v1, PodSpec.
 */
#include "core/constraints.h"
#include "json/json.h"

/* In one list of a pod. */
#define CONSTRAINTS_ITEMS_MAX 1024

/* Sets `pod->constraints`, borrowed from the arena and from the pod's own. A pod that was made by
 * hand keeps what it has. Unknown operators, and more than is read, are an error. */
bool constraints_decode(struct json_arena *arena, struct pod_view *pod, GError **error);

/* Whether the pod says nothing that could keep kube-scheduler from asking about it but for sums: no
 * selector, no gates, nothing that is overlooked. What cannot be read says something. */
bool constraints_are_none(const struct pod_view *pod);

/* Gates for which kube-scheduler does not look at the pod at all, and who takes them away if that is known, as
 * a sentence; NULL: there are none. Free with g_free. */
char *gates_tell(const struct pod_view *pod);

/* The key "notLookedAt": a list of fields, empty if all of them were looked at. */
void overlooked_encode(struct json_writer *writer, unsigned overlooked);
