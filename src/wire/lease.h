/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A Lease of coordination.k8s.io/v1, as client-go's tools/leaderelection uses it.
 */
#include "json/json.h"

/* Strings are borrowed; NULL where there is nothing. */
struct lease_view {
    const char *version; /* metadata.resourceVersion */
    const char *holder;  /* spec.holderIdentity; NULL or "": nobody */
    int64_t duration_s;
    int64_t transitions;  /* written as the API server takes them, INT32_MAX at most */
    const char *acquired; /* MicroTime: six digits after the point */
    const char *renewed;
    struct string_pairs labels;
    struct string_pairs annotations;
    const char *uid; /* of a Lease that is there */
    /* What is others' business, and is written as it was read: an update replaces all of a Lease. */
    const cJSON *owners, *finalizers; /* metadata.ownerReferences and .finalizers */
    const char *strategy, *preferred; /* spec.strategy and .preferredHolder */
};

/* The view borrows from the arena. Only the resourceVersion must be there. */
bool lease_view_decode(struct json_arena *arena, const cJSON *object, struct lease_view *ret_lease,
                       GError **error);

/* The object to write over the version in `lease`, or to create without one. Of `annotations` the
 * one with this key is replaced by `value`, or left out for "". With a version goes the UID: the API
 * server makes a Lease by an update, too, of whatever version, and only the UID keeps that from
 * bringing back one that was deleted (kubernetes 1.36 pkg/registry/coordination/lease/strategy.go). */
void lease_encode(struct json_writer *writer, const char *ns, const char *name,
                  const struct lease_view *lease, const char *key, const char *value);
