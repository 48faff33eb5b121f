/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The pod group that a pod says it is in; what more it says of that is in wire/pod_group.h. */
#include <gpuledger/object.h>

/* By what stands first: spec.schedulingGroup, the label of scheduler-plugins, its older one,
 * Koordinator's annotation. Borrowed from the pod; NULL: in none. */
const char *group_name(const struct pod_view *pod);
