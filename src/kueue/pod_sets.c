/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/pod_sets.h"

#include "core/fail.h"
#include "dialect/hami/hook.h"
#include "wire/constraints.h"
#include "wire/kubernetes.h"

#include <string.h>

/* Gates of Kueue's own, which it takes away when it lets the pods go. */
#define KUEUE_DOMAIN "kueue.x-k8s.io/"

static void clear_set(gpointer data)
{
    struct pod_set *set = data;

    g_free(set->name);
    g_free(set->text);
    pod_facts_unref(set->facts);
}

struct pod_sets *pod_sets_ref(struct pod_sets *sets)
{
    g_atomic_int_inc(&sets->n_references);
    return sets;
}

void pod_sets_unref(struct pod_sets *sets)
{
    if (!sets || !g_atomic_int_dec_and_test(&sets->n_references))
        return;
    g_free(sets->ns);
    g_free(sets->name);
    g_free(sets->uid);
    g_array_unref(sets->sets);
    g_free(sets);
}

GPtrArray *pod_sets_flavors(const struct workload_view *workload)
{
    GPtrArray *names = g_ptr_array_new();
    const cJSON *name;

    for (size_t i = 0; i < workload->n_pod_sets; i++) {
        cJSON_ArrayForEach (name, workload->pod_sets[i].flavors) {
            if (cJSON_IsString(name) && names->len < POD_SETS_FLAVORS_MAX &&
                !g_ptr_array_find_with_equal_func(names, name->valuestring, g_str_equal, NULL))
                g_ptr_array_add(names, name->valuestring);
        }
    }
    return names;
}

/* --- writing -------------------------------------------------------------------------------- */

/* What a template's pods are made of. */
struct recipe {
    const struct workload_view *workload;
    const struct workload_pod_set *set;
    const GArray *flavors; /* struct named_flavor */
};

static const struct flavor_view *find_flavor(const struct recipe *recipe, const char *name)
{
    for (guint i = 0; i < recipe->flavors->len; i++) {
        const struct named_flavor *flavor = &g_array_index(recipe->flavors, struct named_flavor, i);
        if (g_str_equal(flavor->name, name))
            return &flavor->view;
    }
    return NULL;
}

/* Some value of a check's podSetUpdates for this pod set; NULL: there is none. */
static const cJSON *update_of(const struct recipe *recipe, const struct workload_check *check,
                              const char *key)
{
    const cJSON *update;

    cJSON_ArrayForEach (update, check->updates) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(update, "name"));
        if (g_strcmp0(name, recipe->set->name) == 0)
            return cJSON_GetObjectItemCaseSensitive(update, key);
    }
    return NULL;
}

static void write_members(struct json_writer *writer, const cJSON *object)
{
    const cJSON *item;

    if (!cJSON_IsObject(object))
        return;
    cJSON_ArrayForEach (item, object) {
        json_key(writer, item->string);
        json_value(writer, item);
    }
}

/* The template's own, then what the checks add: of two equal keys the first counts. */
static void write_map(struct json_writer *writer, const struct recipe *recipe, const cJSON *own,
                      const char *key)
{
    json_key_object(writer, key);
    write_members(writer, cJSON_GetObjectItemCaseSensitive(own, key));
    for (size_t i = 0; i < recipe->workload->n_checks; i++)
        write_members(writer, update_of(recipe, &recipe->workload->checks[i], key));
    if (g_str_equal(key, "nodeSelector")) {
        const cJSON *name;
        cJSON_ArrayForEach (name, recipe->set->flavors) {
            const struct flavor_view *flavor =
                cJSON_IsString(name) ? find_flavor(recipe, name->valuestring) : NULL;
            for (size_t i = 0; flavor && i < flavor->labels.n; i++)
                json_key_string(writer, flavor->labels.items[i].key, flavor->labels.items[i].value);
        }
    }
    json_end_object(writer);
}

static void write_items(struct json_writer *writer, const cJSON *list)
{
    const cJSON *item;

    if (!cJSON_IsArray(list))
        return;
    cJSON_ArrayForEach (item, list)
        json_value(writer, item);
}

static void write_tolerations(struct json_writer *writer, const struct recipe *recipe,
                              const cJSON *spec)
{
    const cJSON *name;

    json_key_array(writer, "tolerations");
    write_items(writer, cJSON_GetObjectItemCaseSensitive(spec, "tolerations"));
    for (size_t i = 0; i < recipe->workload->n_checks; i++)
        write_items(writer, update_of(recipe, &recipe->workload->checks[i], "tolerations"));
    cJSON_ArrayForEach (name, recipe->set->flavors) {
        const struct flavor_view *flavor =
            cJSON_IsString(name) ? find_flavor(recipe, name->valuestring) : NULL;
        write_items(writer, flavor ? flavor->tolerations : NULL);
    }
    json_end_array(writer);
}

/* Of the environment what limits go by. */
static void write_environment(struct json_writer *writer, const cJSON *list)
{
    const cJSON *variable;
    bool any = false;

    cJSON_ArrayForEach (variable, list) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(variable, "name"));
        if (g_strcmp0(name, HOOK_VARIABLE) != 0)
            continue;
        if (!any)
            json_key_array(writer, "env");
        any = true;
        json_value(writer, variable);
    }
    if (any)
        json_end_array(writer);
}

/* Of a container what says where it may run. */
static void write_containers(struct json_writer *writer, const cJSON *spec, const char *key)
{
    static const char *const keys[] = {"name", "resources", "restartPolicy", "ports"};
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(spec, key), *container;

    if (!cJSON_IsArray(list))
        return;
    json_key_array(writer, key);
    cJSON_ArrayForEach (container, list) {
        json_begin_object(writer);
        for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
            const cJSON *value = cJSON_GetObjectItemCaseSensitive(container, keys[i]);
            if (!value)
                continue;
            json_key(writer, keys[i]);
            json_value(writer, value);
        }
        write_environment(writer, cJSON_GetObjectItemCaseSensitive(container, "env"));
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void write_gates(struct json_writer *writer, const cJSON *gates)
{
    const cJSON *gate;

    json_key_array(writer, "schedulingGates");
    cJSON_ArrayForEach (gate, gates) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(gate, "name"));
        if (!name || !g_str_has_prefix(name, KUEUE_DOMAIN))
            json_value(writer, gate);
    }
    json_end_array(writer);
}

static void write_spec(struct json_writer *writer, const struct recipe *recipe, const cJSON *spec)
{
    static const char *const written[] = {
        "nodeSelector",    "tolerations", "containers", "initContainers",
        "schedulingGates", "nodeName",    NULL};
    const cJSON *item;

    json_key_object(writer, "spec");
    write_map(writer, recipe, spec, "nodeSelector");
    write_tolerations(writer, recipe, spec);
    write_containers(writer, spec, "containers");
    write_containers(writer, spec, "initContainers");
    write_gates(writer, cJSON_GetObjectItemCaseSensitive(spec, "schedulingGates"));
    cJSON_ArrayForEach (item, spec) {
        if (g_strv_contains(written, item->string))
            continue;
        json_key(writer, item->string);
        json_value(writer, item);
    }
    json_end_object(writer);
}

/* Free with g_free. */
static char *pod_text(const struct recipe *recipe)
{
    const cJSON *template = recipe->set->template;
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(template, "metadata");
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(template, "spec");
    g_autofree char *name = g_strdup_printf("%s-%s", recipe->workload->name, recipe->set->name);
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_object(&writer, "metadata");
    json_key_string(&writer, "name", name);
    json_key_string(&writer, "namespace", recipe->workload->ns);
    write_map(&writer, recipe, metadata, "labels");
    write_map(&writer, recipe, metadata, "annotations");
    json_end_object(&writer);
    if (cJSON_IsObject(spec))
        write_spec(&writer, recipe, spec);
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

/* --- reading -------------------------------------------------------------------------------- */

bool pod_set_read(const struct pod_set *set, struct json_arena *arena, struct pod_view *ret_pod,
                  GError **error)
{
    const size_t length = strlen(set->text);

    if (length > POD_SET_TEXT_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT, "a pod has %zu bytes, at most %d are read",
                         length, POD_SET_TEXT_MAX);
    const cJSON *object = json_parse(arena, set->text, length, error);
    return object && pod_view_decode_anonymous(arena, object, ret_pod, error) &&
           constraints_decode(arena, ret_pod, error);
}

/* Whether its pods ask for a GPU; they are no part of the sets otherwise. */
static bool add_set(struct pod_sets *sets, const struct recipe *recipe,
                    const struct dialect_options *dialects, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    GError *failure = NULL;
    struct pod_view pod;
    struct pod_set set = {
        .name = g_strdup(recipe->set->name),
        .count = recipe->set->count,
        .text = pod_text(recipe),
    };

    g_autoptr(request) request = pod_set_read(&set, arena, &pod, &failure)
                                     ? dialect_read_request(&pod, dialects, &failure)
                                     : NULL;
    set.facts = request ? pod_facts_new(&pod) : NULL;
    if (!request)
        clear_set(&set);
    else
        g_array_append_val(sets->sets, set);
    if (failure)
        g_propagate_prefixed_error(error, failure, "pod set '%s': ", recipe->set->name);
    sets->n_pods += request ? recipe->set->count : 0;
    sets->topology |= request && recipe->set->topology;
    return !failure;
}

static bool add_sets(struct pod_sets *sets, struct recipe *recipe,
                     const struct dialect_options *dialects, GError **error)
{
    for (size_t i = 0; i < recipe->workload->n_pod_sets; i++) {
        recipe->set = &recipe->workload->pod_sets[i];
        if (recipe->set->count > 0 && !add_set(sets, recipe, dialects, error))
            return false;
    }
    return sets->n_pods <= WORKLOAD_COUNT_MAX ||
           fail_with(error, GPULEDGER_ERROR_LIMIT,
                     "%" G_GINT64_FORMAT " pods with a GPU, at most %d are tried", sets->n_pods,
                     WORKLOAD_COUNT_MAX);
}

struct pod_sets *pod_sets_new(const struct workload_view *workload, const GArray *flavors,
                              const struct dialect_options *dialects, GError **error)
{
    struct recipe recipe = {workload, NULL, flavors};

    if (workload->unreadable) {
        g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, workload->unreadable);
        return NULL;
    }
    g_autoptr(pod_sets) sets = g_new0(struct pod_sets, 1);
    sets->n_references = 1;
    sets->ns = g_strdup(workload->ns);
    sets->name = g_strdup(workload->name);
    sets->uid = g_strdup(workload->uid);
    sets->sets = g_array_new(FALSE, TRUE, sizeof(struct pod_set));
    g_array_set_clear_func(sets->sets, clear_set);
    return add_sets(sets, &recipe, dialects, error) ? g_steal_pointer(&sets) : NULL;
}

/* --- pods that have come -------------------------------------------------------------------- */

static bool has_label(const struct pod_facts *facts, const struct string_pair *wanted)
{
    for (uint32_t i = 0; i < facts->n_labels; i++) {
        if (g_str_equal(facts->labels[i].key, wanted->key))
            return g_strcmp0(facts->labels[i].value, wanted->value) == 0;
    }
    return false;
}

bool pod_set_describes(const struct pod_set *set, const struct pod_facts *facts)
{
    if (!facts || facts->n_amounts != set->facts->n_amounts)
        return false;
    for (uint32_t i = 0; i < facts->n_amounts; i++) {
        if (!g_str_equal(facts->amounts[i].resource, set->facts->amounts[i].resource) ||
            facts->amounts[i].thousandths != set->facts->amounts[i].thousandths)
            return false;
    }
    for (uint32_t i = 0; i < set->facts->n_labels; i++) {
        if (!has_label(facts, &set->facts->labels[i]))
            return false;
    }
    return true;
}
