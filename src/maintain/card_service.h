/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Takes a card or a node out of service for new pods, and back. Who is there stays.
 *
 * A node is closed by spec.unschedulable, as kubectl does it. A card is named in the node's annotation
 * gpuledger.io/cordoned-cards, which the ledger heeds for every dialect, and in what others of the node's
 * dialects read: the annotation of struct dialect.cordon_key, by UUID, and the ConfigMap of unhealthy
 * cards (struct dialect.health_prefix), key "gpus", by index. Of the ConfigMap only those indices are
 * taken back that its own annotation gpuledger.io/cordoned-cards says were written here. Devices of DRA
 * with the card's UUID get a DeviceTaintRule, where those are served (device_taint.h).
 *
 * Each object is written once, against the version that was read: a conflict reads it again. One thread.
 */
#include "explain/card_place.h"
#include "kube/api_client.h"

#include <gpuledger/dialect.h>

struct service_query {
    struct api_client *client;
    const struct card_place *place;
    const struct dialect_options *dialects;
    bool open;    /* back into service */
    bool dry_run; /* nothing is written */
};

/* What was, or would be, written. */
struct service_change {
    char *object;    /* "node gpu-1", "configmap kube-system/unhealthy-gpu-gpu-1" */
    char *field;     /* "annotation gpuledger.io/cordoned-cards", "spec.unschedulable", "gpus" */
    char *from, *to; /* NULL: it is not there */
};

void service_change_free(gpointer change);

/* Array of struct service_change, the caller's; empty: everything says so already. NULL, with an error:
 * what stands before the one that failed has been written. */
GPtrArray *card_service_set(const struct service_query *query, GError **error);
