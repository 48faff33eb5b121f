/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/lease.h"

#include <string.h>

#define LEASE(KIND, member, path, flags) JSON_FIELD_##KIND(struct lease_view, member, path, flags)
static const struct json_field lease_fields[] = {
    LEASE(STRING, version, "metadata.resourceVersion", JSON_REQUIRED),
    LEASE(STRING, holder, "spec.holderIdentity", 0),
    LEASE(INT64, duration_s, "spec.leaseDurationSeconds", 0),
    LEASE(INT64, transitions, "spec.leaseTransitions", 0),
    LEASE(STRING, acquired, "spec.acquireTime", 0),
    LEASE(STRING, renewed, "spec.renewTime", 0),
    LEASE(PAIRS, labels, "metadata.labels", 0),
    LEASE(PAIRS, annotations, "metadata.annotations", 0),
    LEASE(STRING, uid, "metadata.uid", 0),
    LEASE(ARRAY, owners, "metadata.ownerReferences", 0),
    LEASE(ARRAY, finalizers, "metadata.finalizers", 0),
    LEASE(STRING, strategy, "spec.strategy", 0),
    LEASE(STRING, preferred, "spec.preferredHolder", 0),
    JSON_FIELD_END,
};

bool lease_view_decode(struct json_arena *arena, const cJSON *object, struct lease_view *ret_lease,
                       GError **error)
{
    struct lease_view lease = {0};

    if (!json_decode(arena, object, lease_fields, &lease, error))
        return false;
    *ret_lease = lease;
    return true;
}

static void write_pairs(struct json_writer *writer, const char *name,
                        const struct string_pairs *pairs, const char *key, const char *value)
{
    json_key_object(writer, name);
    for (size_t i = 0; i < pairs->n; i++) {
        if (!key || strcmp(pairs->items[i].key, key) != 0)
            json_key_string(writer, pairs->items[i].key, pairs->items[i].value);
    }
    if (key && *value)
        json_key_string(writer, key, value);
    json_end_object(writer);
}

static void write_array(struct json_writer *writer, const char *name, const cJSON *array)
{
    const cJSON *item;

    if (!array)
        return;
    json_key_array(writer, name);
    cJSON_ArrayForEach (item, array)
        json_value(writer, item);
    json_end_array(writer);
}

void lease_encode(struct json_writer *writer, const char *ns, const char *name,
                  const struct lease_view *lease, const char *key, const char *value)
{
    json_begin_object(writer);
    json_key_string(writer, "apiVersion", "coordination.k8s.io/v1");
    json_key_string(writer, "kind", "Lease");

    json_key_object(writer, "metadata");
    json_key_string(writer, "name", name);
    json_key_string(writer, "namespace", ns);
    if (lease->version)
        json_key_string(writer, "resourceVersion", lease->version);
    if (lease->version && lease->uid)
        json_key_string(writer, "uid", lease->uid);
    if (lease->version) {
        write_array(writer, "ownerReferences", lease->owners);
        write_array(writer, "finalizers", lease->finalizers);
    }
    if (lease->labels.n > 0)
        write_pairs(writer, "labels", &lease->labels, NULL, NULL);
    write_pairs(writer, "annotations", &lease->annotations, key, value);
    json_end_object(writer);

    json_key_object(writer, "spec");
    json_key_string(writer, "holderIdentity", lease->holder ? lease->holder : "");
    json_key_int(writer, "leaseDurationSeconds", lease->duration_s);
    if (lease->acquired)
        json_key_string(writer, "acquireTime", lease->acquired);
    if (lease->renewed)
        json_key_string(writer, "renewTime", lease->renewed);
    json_key_int(writer, "leaseTransitions", CLAMP(lease->transitions, 0, INT32_MAX));
    if (lease->strategy)
        json_key_string(writer, "strategy", lease->strategy);
    if (lease->preferred)
        json_key_string(writer, "preferredHolder", lease->preferred);
    json_end_object(writer);
    json_end_object(writer);
}
