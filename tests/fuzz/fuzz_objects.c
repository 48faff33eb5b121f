/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any JSON value is refused with a message by each decoder, or gives a view whose every string can
 * be read and whose identity is complete.
 */
#include "target.h"

#include "wire/kubernetes.h"
#include "wire/plan_mark.h"
#include "wire/resource_quota.h"

#include <string.h>

static size_t read_string(const char *string)
{
    return string ? strlen(string) : 0;
}

static size_t read_pairs(const struct string_pairs *pairs)
{
    size_t sum = 0;

    for (size_t i = 0; i < pairs->n; i++)
        sum += strlen(pairs->items[i].key) + strlen(pairs->items[i].value);
    return sum;
}

static void check_binding(const struct pod_view *pod)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const struct binding binding = {
        .ns = pod->ns, .name = pod->name, .uid = pod->uid, .node = pod->name};
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    binding_encode(&writer, &binding);
    FUZZ_CHECK(json_parse(arena, text->str, text->len, NULL));
    g_string_free(text, TRUE);
}

static size_t check_pod(struct json_arena *arena, const cJSON *object)
{
    g_autoptr(GError) error = NULL;
    struct pod_view pod;
    size_t sum = 0;

    if (!pod_view_decode(arena, object, &pod, &error)) {
        FUZZ_CHECK(error);
        return 0;
    }
    FUZZ_CHECK(!error && *pod.name && *pod.ns && *pod.uid);
    FUZZ_CHECK(pod.n_containers <= POD_CONTAINERS_MAX);
    for (size_t i = 0; i < pod.n_containers; i++) {
        FUZZ_CHECK(pod.containers[i].init || !pod.containers[i].sidecar);
        FUZZ_CHECK(i == 0 || pod.containers[i].init >= pod.containers[i - 1].init);
        sum += read_string(pod.containers[i].name) + read_pairs(&pod.containers[i].limits) +
               read_pairs(&pod.containers[i].requests);
    }
    check_binding(&pod);
    return sum + read_string(pod.node_name) + read_string(pod.nominated_node) +
           read_string(pod.phase) + read_string(pod.scheduler_name) +
           read_string(pod.resource_version) + read_pairs(&pod.labels) +
           read_pairs(&pod.annotations);
}

static size_t check_node(struct json_arena *arena, const cJSON *object)
{
    g_autoptr(GError) error = NULL;
    struct node_view node;

    if (!node_view_decode(arena, object, &node, &error)) {
        FUZZ_CHECK(error);
        return 0;
    }
    FUZZ_CHECK(!error && *node.name);
    return read_pairs(&node.labels) + read_pairs(&node.annotations) + read_pairs(&node.capacity) +
           read_pairs(&node.allocatable);
}

static size_t check_configmap(struct json_arena *arena, const cJSON *object)
{
    g_autoptr(GError) error = NULL;
    struct configmap_view configmap;

    if (!configmap_view_decode(arena, object, &configmap, &error)) {
        FUZZ_CHECK(error);
        return 0;
    }
    FUZZ_CHECK(!error && *configmap.name && *configmap.ns);
    return read_pairs(&configmap.data);
}

static size_t check_resource_quota(struct json_arena *arena, const cJSON *object)
{
    g_autoptr(GError) error = NULL;
    struct resource_quota_view quota;

    if (!resource_quota_view_decode(arena, object, &quota, &error)) {
        FUZZ_CHECK(error);
        return 0;
    }
    FUZZ_CHECK(!error && *quota.name && *quota.ns);
    return read_pairs(&quota.hard);
}

/* What it says of its tree, too, comes back as it was written. */
static size_t check_elastic_quota(struct json_arena *arena, const cJSON *object)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct resource_quota_view quota, again;
    struct json_writer writer;

    if (!elastic_quota_view_decode(arena, object, &quota, NULL))
        return 0;
    FUZZ_CHECK(quota.elastic && *quota.name && *quota.ns && quota.in.tree);
    FUZZ_CHECK(quota.in.inside == (quota.labels.n + quota.annotations.n > 0));
    json_writer_init(&writer, text);
    resource_quota_view_encode(&writer, &quota);
    FUZZ_CHECK(elastic_quota_view_decode(arena, json_parse(arena, text->str, text->len, NULL),
                                         &again, NULL));
    /* What is no UTF-8, which no API server lets be, is written as signs that stand for it. */
    FUZZ_CHECK((g_strcmp0(quota.in.parent, again.in.parent) == 0 ||
                !g_utf8_validate(quota.in.parent, -1, NULL)) &&
               quota.in.is_parent == again.in.is_parent && quota.in.keeps == again.in.keeps &&
               !quota.in.unread == !again.in.unread && quota.in.weights.n == again.in.weights.n);
    size_t n = read_string(quota.in.unread);
    for (const char **ns = quota.in.namespaces; ns && *ns; ns++)
        n += strlen(*ns);
    return n + read_pairs(&quota.min) + read_pairs(&quota.max) + read_pairs(&quota.in.weights);
}

static size_t check_status(struct json_arena *arena, const cJSON *object)
{
    g_autoptr(GError) error = NULL;
    struct status_view status;

    if (!status_view_decode(arena, object, &status, &error)) {
        FUZZ_CHECK(error);
        return 0;
    }
    FUZZ_CHECK(!error);
    return read_string(status.reason) + read_string(status.message);
}

/* What a plan says of a node comes back as it was written. */
static void check_plan_mark(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    static struct classes *classes;

    if (!classes)
        classes = classes_read(
            &(cJSON){.type = cJSON_String, .valuestring = (char *)CLASS_DEFAULTS}, NULL);
    g_autoptr(plan_mark) mark = plan_mark_parse(text, classes, &error);

    if (!mark) {
        FUZZ_CHECK(error);
        return;
    }
    FUZZ_CHECK(!error && mark->rooms->len <= PLAN_MARK_ROOMS_MAX);
    g_autofree char *written = plan_mark_format(mark);
    if (strlen(written) > PLAN_MARK_MAX) /* escapes are longer than what they stand for */
        return;
    g_autoptr(plan_mark) again = plan_mark_parse(written, classes, NULL);
    FUZZ_CHECK(again && again->rooms->len == mark->rooms->len);
    for (guint i = 0; i < mark->rooms->len; i++) {
        const struct kept_room *one = mark->rooms->pdata[i], *other = again->rooms->pdata[i];
        FUZZ_CHECK(one->held->n_shares == other->held->n_shares && !one->uid == !other->uid &&
                   one->held->priority == other->held->priority &&
                   one->held->work_class == other->held->work_class);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *object = json_parse(arena, (const char *)data, size, NULL);

    /* The sum keeps the compiler from leaving the reads out. */
    check_plan_mark(data, size);
    if (object)
        FUZZ_CHECK(check_pod(arena, object) + check_node(arena, object) +
                       check_configmap(arena, object) + check_resource_quota(arena, object) +
                       check_elastic_quota(arena, object) + check_status(arena, object) <
                   SIZE_MAX);
    return 0;
}
