/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps Kubernetes' own allocation of devices (DRA) from a card: a DeviceTaintRule for each device of the
 * node's ResourceSlices whose attribute "uuid" is the card's. Source: resource.k8s.io/v1 and v1beta2
 * (KEP-5055). One thread.
 */
#include "kube/api_client.h"

struct device_taint {
    struct api_client *client;
    const char *node, *uuid;
    bool open; /* takes the rule back */
    bool dry_run;
    /* Of each rule that is, or would be, made or taken back. */
    void (*changed)(void *data, const char *rule, bool made);
    void *data;
};

/* True as well where such rules, or such slices, are not served. False, with an error: one could not be
 * read or written. */
bool device_taint_set(const struct device_taint *taint, GError **error);
