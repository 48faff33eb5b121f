/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What autoscalers tell at the API server of nodes on their way (plan/scale_up.h): Events of a pod,
 * cluster-autoscaler's ConfigMap, Karpenter's NodeClaims. One thread.
 */
#include "kube/api_client.h"

struct autoscalers_query {
    struct api_client *client;
    const char *ns, *name; /* of a pod that waits for a node; NULL: nodes for anybody */
};

struct autoscalers_wait {
    struct autoscalers_query query;
    int64_t most_ms;
    void (*progress)(void *data, const char *text);
    void *data;
};

/* Returns when nobody brings nodes any more, or the time is over. False as above. */
bool autoscalers_await(const struct autoscalers_wait *wait, GError **error);
