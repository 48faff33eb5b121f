/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/container.h"

#include "core/fail.h"
#include "dialect/hami/hook.h"
#include "wire/kubernetes.h"

struct container_object {
    struct container_view view;
    const char *restart_policy;
    const cJSON *environment;
};

#define CONTAINER(KIND, member, path, flags)                                                       \
    JSON_FIELD_##KIND(struct container_object, member, path, flags)
/* The API server writes every quantity as a string; files written by hand hold bare numbers. */
static const struct json_field container_fields[] = {
    CONTAINER(STRING, view.name, "name", 0),
    CONTAINER(STRING, restart_policy, "restartPolicy", 0),
    CONTAINER(ARRAY, environment, "env", 0),
    CONTAINER(PAIRS, view.limits, "resources.limits", JSON_NUMBERS),
    CONTAINER(PAIRS, view.requests, "resources.requests", JSON_NUMBERS),
    /* Of records; the API's objects have these in the pod's status. */
    CONTAINER(BOOL, view.reported, "status.reported", 0),
    CONTAINER(PAIRS, view.actual, "status.resources.requests", JSON_NUMBERS),
    CONTAINER(PAIRS, view.allocated, "status.allocatedResources", JSON_NUMBERS),
    JSON_FIELD_END,
};

static const char *text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* The word that says most, whichever comes first: the node side looks at all of them. */
static enum hook_word read_hook(const cJSON *environment)
{
    enum hook_word most = HOOK_UNSAID;
    const cJSON *variable;

    cJSON_ArrayForEach (variable, environment) {
        const char *name = text_of(variable, "name");
        if (name)
            most = MAX(most, hook_word_of(name, text_of(variable, "value")));
    }
    return most;
}

bool container_views_decode(struct json_arena *arena, const cJSON *list, bool init,
                            struct container_view *views, size_t *n, GError **error)
{
    const char *path = init ? "spec.initContainers" : "spec.containers";
    const cJSON *item;
    unsigned position = 0;

    cJSON_ArrayForEach (item, list) {
        struct container_object container = {0};

        if (*n == POD_CONTAINERS_MAX)
            return true;
        if (!json_decode(arena, item, container_fields, &container, error))
            return fail_within(error, "field '%s': item %u: ", path, position);
        container.view.init = init;
        container.view.sidecar = init && g_strcmp0(container.restart_policy, "Always") == 0;
        container.view.hook = read_hook(container.environment);
        views[(*n)++] = container.view;
        position++;
    }
    return true;
}

/* The one variable of the environment that is read. */
static void write_hook(struct json_writer *writer, const struct json_field *field, const void *base)
{
    const struct container_object *object = base;

    json_begin_array(writer);
    json_begin_object(writer);
    json_key_string(writer, "name", HOOK_VARIABLE);
    json_key_string(writer, "value", object->view.hook == HOOK_OFF ? "true" : "");
    json_end_object(writer);
    json_end_array(writer);
}

static bool says_hook(const struct json_field *field, const void *base)
{
    return ((const struct container_object *)base)->view.hook != HOOK_UNSAID;
}

void container_view_encode(struct json_writer *writer, const struct container_view *view)
{
    const struct container_object object = {
        .view = *view,
        .restart_policy = view->sidecar ? "Always" : NULL,
    };

    json_encode(writer, &(struct json_encoding){container_fields, &object, write_hook, says_hook});
}
