/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/controller.h"

#include <string.h>

#define KIND_MAX 63

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

/* Pods may be made with any text here, and people are shown it. */
static const char *checked_kind(const char *kind)
{
    size_t n = 0;

    while (g_ascii_isalnum(kind[n]) && n <= KIND_MAX)
        n++;
    return n > 0 && n <= KIND_MAX && !kind[n] ? kind : "controller";
}

bool controller_find(struct json_arena *arena, const cJSON *owners,
                     struct controller *ret_controller)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, owners) {
        struct owner owner = {0};
        if (!json_decode(arena, item, owner_fields, &owner, NULL) || !owner.controls ||
            strlen(owner.controller.uid) > CONTROLLER_UID_MAX)
            continue;
        *ret_controller = owner.controller;
        ret_controller->kind = checked_kind(owner.controller.kind);
        return true;
    }
    return false;
}

bool controller_decode(struct json_arena *arena, const cJSON *object,
                       struct controller *ret_controller)
{
    struct pod pod = {0};

    return json_decode(arena, object, pod_fields, &pod, NULL) &&
           controller_find(arena, pod.owners, ret_controller);
}
