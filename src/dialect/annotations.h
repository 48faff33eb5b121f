/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How much of a pod's annotations is taken (gpuledger/dialect.h). */
#include <gpuledger/dialect.h>

/* Bytes of those that a Binding in the dialect leaves; 0: fewer than ANNOTATIONS_BYTES_FEW. */
int64_t annotations_left(const struct pod_view *pod, const struct dialect *dialect);

/* Whether a Binding of the request, whatever it will say, leaves room enough. */
bool annotations_may_fit(const struct request *request);
