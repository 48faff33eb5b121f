/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/controller.h"

struct pod {
    const cJSON *owners;
};
static const struct json_field pod_fields[] = {
    JSON_FIELD_ARRAY(struct pod, owners, "metadata.ownerReferences", 0),
    JSON_FIELD_END,
};

struct owner {
    struct controller controller;
    bool controls;
};
static const struct json_field owner_fields[] = {
    JSON_FIELD_STRING(struct owner, controller.uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct owner, controller.kind, "kind", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct owner, controls, "controller", 0),
    JSON_FIELD_END,
};

bool controller_decode(struct json_arena *arena, const cJSON *object,
                       struct controller *ret_controller)
{
    struct pod pod;
    const cJSON *item;

    if (!json_decode(arena, object, pod_fields, &pod, NULL))
        return false;
    cJSON_ArrayForEach (item, pod.owners) {
        struct owner owner;
        if (!json_decode(arena, item, owner_fields, &owner, NULL) || !owner.controls)
            continue;
        *ret_controller = owner.controller;
        return true;
    }
    return false;
}
