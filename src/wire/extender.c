/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/extender.h"

#include "core/fail.h"
#include "wire/kubernetes.h"

/* --- filter --------------------------------------------------------------------------------- */

struct filter_body {
    const cJSON *pod;
    const cJSON *pods;
    const cJSON *names;
    const cJSON *nodes; /* the NodeList */
    const cJSON *items;
};

#define FILTER(KIND, member, path, flags)                                                          \
    JSON_FIELD_##KIND(struct filter_body, member, path, (flags) | JSON_IGNORE_CASE)
static const struct json_field filter_fields[] = {
    FILTER(OBJECT, pod, "Pod", JSON_REQUIRED),
    FILTER(ARRAY, names, "NodeNames", 0),
    FILTER(OBJECT, nodes, "Nodes", 0),
    FILTER(ARRAY, items, "Nodes.items", 0),
    JSON_FIELD_END,
};

static const struct json_field dry_run_fields[] = {
    FILTER(OBJECT, pod, "Pod", 0),          FILTER(ARRAY, pods, "Pods", 0),
    FILTER(ARRAY, names, "NodeNames", 0),   FILTER(OBJECT, nodes, "Nodes", 0),
    FILTER(ARRAY, items, "Nodes.items", 0), JSON_FIELD_END,
};

static bool check_count(size_t n, const char *path, GError **error)
{
    if (n <= EXTENDER_NODES_MAX)
        return true;
    return fail_with(error, GPULEDGER_ERROR_LIMIT,
                     "field '%s': %zu nodes, at most %d are accepted in one call", path, n,
                     EXTENDER_NODES_MAX);
}

static const char **new_names(struct json_arena *arena, const cJSON *list, const char *path,
                              size_t *ret_n, GError **error)
{
    const size_t n = (size_t)cJSON_GetArraySize(list);

    if (!check_count(n, path, error))
        return NULL;
    *ret_n = n;
    return json_arena_alloc(arena, MAX(n, 1) * sizeof(const char *));
}

static bool decode_names(struct json_arena *arena, const cJSON *list, struct filter_args *args,
                         GError **error)
{
    const cJSON *item;
    size_t i = 0;

    args->by_name = true;
    if (args->strings.values) {
        args->names = args->strings.values;
        args->n_names = args->strings.n;
        return check_count(args->n_names, "NodeNames", error);
    }
    args->names = new_names(arena, list, "NodeNames", &args->n_names, error);
    if (!args->names)
        return false;
    cJSON_ArrayForEach (item, list) {
        if (!cJSON_IsString(item) || item->valuestring[0] == '\0')
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field 'NodeNames': item %zu: expected the name of a node", i);
        args->names[i++] = item->valuestring;
    }
    return true;
}

struct node_object {
    const char *name;
};

static const struct json_field node_fields[] = {
    JSON_FIELD_STRING(struct node_object, name, "metadata.name", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool decode_nodes(struct json_arena *arena, const cJSON *body, const cJSON *items,
                         struct filter_args *args, GError **error)
{
    const cJSON *item;
    size_t i = 0;

    args->names = new_names(arena, items, "Nodes.items", &args->n_names, error);
    if (!args->names)
        return false;
    cJSON_ArrayForEach (item, items) {
        struct node_object node = {0};

        if (!json_decode(arena, item, node_fields, &node, error))
            return fail_within(error, "field 'Nodes.items': item %zu: ", i);
        args->names[i++] = node.name;
    }
    args->nodes = items;
    if (items)
        args->spans = json_item_spans(arena, body, "Nodes.items", JSON_IGNORE_CASE, i);
    return true;
}

/* All but the pod. */
static bool parse_nodes(struct json_arena *arena, const cJSON *body,
                        const struct filter_body *fields, struct filter_args *args, GError **error)
{
    const bool by_name = fields->names || args->strings.values;

    if (by_name == (fields->nodes != NULL))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "expected one of 'NodeNames' and 'Nodes', got %s",
                         by_name ? "both" : "neither");
    return by_name ? decode_names(arena, fields->names, args, error)
                   : decode_nodes(arena, body, fields->items, args, error);
}

static bool parse_pod(struct json_arena *arena, const cJSON *pod, struct filter_args *args,
                      GError **error)
{
    return pod_view_decode_anonymous(arena, pod, &args->pod, error) ||
           fail_within(error, "field 'Pod': ");
}

bool filter_args_parse(struct json_arena *arena, const char *text, size_t length,
                       struct filter_args *ret_args, GError **error)
{
    struct filter_body fields = {0};
    struct filter_args args = {0};
    const cJSON *body = json_parse_strings(arena, text, length, "NodeNames", JSON_IGNORE_CASE,
                                           &args.strings, error);

    if (!body || !json_decode(arena, body, filter_fields, &fields, error) ||
        !parse_nodes(arena, body, &fields, &args, error) ||
        !parse_pod(arena, fields.pod, &args, error))
        return false;
    *ret_args = args;
    return true;
}

static bool parse_pods(struct json_arena *arena, const cJSON *list, struct dry_run_args *args,
                       GError **error)
{
    const size_t n = (size_t)cJSON_GetArraySize(list);
    const cJSON *item;

    if (n == 0 || n > EXTENDER_PODS_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT, "field 'Pods': %zu pods, expected 1 to %d",
                         n, EXTENDER_PODS_MAX);
    args->pods = json_arena_alloc(arena, n * sizeof *args->pods);
    cJSON_ArrayForEach (item, list) {
        if (!pod_view_decode_anonymous(arena, item, &args->pods[args->n_pods], error))
            return fail_within(error, "field 'Pods': item %zu: ", args->n_pods);
        args->n_pods++;
    }
    return true;
}

bool dry_run_args_parse(struct json_arena *arena, const char *text, size_t length,
                        struct dry_run_args *ret_args, GError **error)
{
    struct filter_body fields = {0};
    struct dry_run_args args = {0};
    const cJSON *body = json_parse_strings(arena, text, length, "NodeNames", JSON_IGNORE_CASE,
                                           &args.filter.strings, error);

    if (!body || !json_decode(arena, body, dry_run_fields, &fields, error) ||
        !parse_nodes(arena, body, &fields, &args.filter, error))
        return false;
    if (!fields.pod == !fields.pods)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "expected one of 'Pod' and 'Pods', got %s",
                         fields.pod ? "both" : "neither");
    if (fields.pods ? !parse_pods(arena, fields.pods, &args, error)
                    : !parse_pod(arena, fields.pod, &args.filter, error))
        return false;
    *ret_args = args;
    return true;
}

static bool passes(const struct filter_result *result, size_t i)
{
    return result->reasons[i] == REASON_NONE && !(result->barriers && result->barriers[i]);
}

/* The first from `i` on that does not pass; as many as there are: none. */
static size_t find_failed(const struct filter_result *result, size_t i)
{
    const size_t n = result->args->n_names;

    if (!result->barriers) { /* mostly, and thousands pass */
        while (i < n && result->reasons[i] == REASON_NONE)
            i++;
        return i;
    }
    while (i < n && passes(result, i))
        i++;
    return i;
}

static void encode_passing_names(struct json_writer *writer, const struct filter_result *result)
{
    const struct filter_args *args = result->args;

    json_begin_array(writer);
    for (size_t i = 0, end; i < args->n_names; i = end + 1) {
        end = find_failed(result, i);
        if (args->strings.values && end > i)
            json_strings_raw(writer, &args->strings, i, end - i);
        for (; !args->strings.values && i < end; i++)
            json_string(writer, args->names[i]);
    }
    json_end_array(writer);
}

static void encode_passing_nodes(struct json_writer *writer, const struct filter_result *result)
{
    const struct filter_args *args = result->args;
    const cJSON *node;
    size_t i = 0;

    json_begin_object(writer);
    json_key_object(writer, "metadata");
    json_end_object(writer);
    json_key_array(writer, "items");
    cJSON_ArrayForEach (node, args->nodes) {
        if (passes(result, i)) {
            if (args->spans)
                json_raw(writer, args->spans[i].text, args->spans[i].length);
            else
                json_value(writer, node);
        }
        i++;
    }
    json_end_array(writer);
    json_end_object(writer);
}

static void encode_failed(struct json_writer *writer, const struct filter_result *result,
                          bool resolvable)
{
    json_begin_object(writer);
    for (size_t i = find_failed(result, 0); i < result->args->n_names;
         i = find_failed(result, i + 1)) {
        const char *barrier = result->barriers ? result->barriers[i] : NULL;
        const struct reason_info *info = reason_info(result->reasons[i]);
        if (barrier ? !resolvable : info->resolvable == resolvable)
            json_key_string(writer, result->args->names[i], barrier ? barrier : info->text);
    }
    json_end_object(writer);
}

void filter_result_encode(struct json_writer *writer, const struct filter_result *result)
{
    json_begin_object(writer);
    json_key(writer, "Nodes");
    if (result->args->by_name)
        json_null(writer);
    else
        encode_passing_nodes(writer, result);
    json_key(writer, "NodeNames");
    if (result->args->by_name)
        encode_passing_names(writer, result);
    else
        json_null(writer);
    json_key(writer, "FailedNodes");
    encode_failed(writer, result, true);
    json_key(writer, "FailedAndUnresolvableNodes");
    encode_failed(writer, result, false);
    json_key_string(writer, "Error", "");
    json_end_object(writer);
}

void filter_error_encode(struct json_writer *writer, const char *message)
{
    static const char *const empty[] = {"Nodes", "NodeNames", "FailedNodes",
                                        "FailedAndUnresolvableNodes"};

    json_begin_object(writer);
    for (size_t i = 0; i < G_N_ELEMENTS(empty); i++) {
        json_key(writer, empty[i]);
        json_null(writer);
    }
    json_key_string(writer, "Error", message);
    json_end_object(writer);
}

/* --- prioritize ----------------------------------------------------------------------------- */

void prioritize_result_encode(struct json_writer *writer, const struct filter_args *args,
                              const int32_t *scores)
{
    json_begin_array(writer);
    for (size_t i = 0; scores && i < args->n_names; i++) {
        if (scores[i] == 0)
            continue;
        json_begin_object(writer);
        json_key_string(writer, "Host", args->names[i]);
        json_key_int(writer, "Score", scores[i]);
        json_end_object(writer);
    }
    json_end_array(writer);
}

/* --- bind ----------------------------------------------------------------------------------- */

#define BIND(member, path)                                                                         \
    JSON_FIELD_STRING(struct bind_args, member, path, JSON_REQUIRED | JSON_IGNORE_CASE)
static const struct json_field bind_fields[] = {
    BIND(pod_name, "PodName"),
    BIND(pod_namespace, "PodNamespace"),
    BIND(pod_uid, "PodUID"),
    BIND(node, "Node"),
    JSON_FIELD_END,
};

bool bind_args_decode(struct json_arena *arena, const cJSON *body, struct bind_args *ret_args,
                      GError **error)
{
    struct bind_args args = {0};

    if (!json_decode(arena, body, bind_fields, &args, error))
        return false;
    *ret_args = args;
    return true;
}

void bind_result_encode(struct json_writer *writer, const char *message)
{
    json_begin_object(writer);
    json_key_string(writer, "Error", message);
    json_end_object(writer);
}
