/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The label of the pod that this process runs in: gpuledger.io/holder=true while it serves, none
 * otherwise. A Service that selects it reaches the holder of the Lease alone, although all replicas
 * may be ready. A thread of its own keeps it so, tries again until it is, and says it again from time to
 * time, for somebody may have edited the pod: a Service would lead nobody, or to who stands by.
 */
#include "kube/api_client.h"

#define HOLDER_LABEL "gpuledger.io/holder"
#define HOLDER_LABEL_AGAIN_MS 30000

struct holder_label;

/* Removes a label that an earlier process may have left. Borrows the client; strings are copied.
 * `again_ms`: after how long it is said again. NULL with an error: a name that cannot be, or no thread. */
struct holder_label *holder_label_start(struct api_client *client, const char *ns, const char *pod,
                                        int64_t again_ms, GError **error);

/* From any thread; returns at once. */
void holder_label_set(struct holder_label *label, bool serves);

/* Whether the API server has confirmed that the pod has no label. Any thread. */
bool holder_label_is_off(struct holder_label *label);

/* Leaves the label as it is: the pod is about to end. NULL is fine. */
void holder_label_free(struct holder_label *label);
