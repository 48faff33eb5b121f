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
    int64_t transitions;
    const char *acquired; /* MicroTime: six digits after the point */
    const char *renewed;
    struct string_pairs labels;
    struct string_pairs annotations;
};

/* The view borrows from the arena. Only the resourceVersion must be there. */
bool lease_view_decode(struct json_arena *arena, const cJSON *object, struct lease_view *ret_lease,
                       GError **error);

/* The object to write over the version in `lease`, or to create without one. Of `annotations` the
 * one with this key is replaced by `value`, or left out for "". */
void lease_encode(struct json_writer *writer, const char *ns, const char *name,
                  const struct lease_view *lease, const char *key, const char *value);
