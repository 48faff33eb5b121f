/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether another pod of this process's Deployment is there: one in its namespace with all labels of its own
 * pod but those that tell revisions apart, and not at its end. Whoever follows in this one's place is made
 * as a pod before it runs. Once one has been seen, or the own pod is gone, the answer stays.
 */
#include "kube/api_client.h"
#include "verbs/succession.h"

/* Borrows the client; strings are copied. NULL with an error: names that cannot be. */
struct succession *successor_new(struct api_client *client, const char *ns, const char *pod,
                                 GError **error);
void successor_free(struct succession *succession); /* NULL is ignored */
