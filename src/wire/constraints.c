/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/constraints.h"

#include "core/fail.h"

#include <string.h>

struct spec_object {
    struct constraints constraints;
    const char *preemption_policy, *priority_class;
    bool has_priority, pod_affinity, pod_anti_affinity;
    const cJSON *terms, *tolerations, *spreads, *volumes, *claims, *gates;
    const cJSON *containers, *init_containers;
};

#define REQUIRED_TERMS "requiredDuringSchedulingIgnoredDuringExecution"
#define NODE_AFFINITY "spec.affinity.nodeAffinity." REQUIRED_TERMS
#define SPEC(KIND, member, path) JSON_FIELD_##KIND(struct spec_object, member, path, 0)
static const struct json_field spec_fields[] = {
    SPEC(PAIRS, constraints.selector, "spec.nodeSelector"),
    SPEC(PRESENT, constraints.has_affinity, NODE_AFFINITY),
    SPEC(ARRAY, terms, NODE_AFFINITY ".nodeSelectorTerms"),
    SPEC(ARRAY, tolerations, "spec.tolerations"),
    SPEC(STRING, preemption_policy, "spec.preemptionPolicy"),
    SPEC(STRING, priority_class, "spec.priorityClassName"),
    SPEC(PRESENT, has_priority, "spec.priority"),
    SPEC(PRESENT, pod_affinity, "spec.affinity.podAffinity." REQUIRED_TERMS),
    SPEC(PRESENT, pod_anti_affinity, "spec.affinity.podAntiAffinity." REQUIRED_TERMS),
    SPEC(ARRAY, spreads, "spec.topologySpreadConstraints"),
    SPEC(ARRAY, volumes, "spec.volumes"),
    SPEC(ARRAY, claims, "spec.resourceClaims"),
    SPEC(ARRAY, gates, "spec.schedulingGates"),
    SPEC(ARRAY, containers, "spec.containers"),
    SPEC(ARRAY, init_containers, "spec.initContainers"),
    JSON_FIELD_END,
};

/* --- lists ---------------------------------------------------------------------------------- */

static bool count_items(const cJSON *list, const char *field, size_t *ret_n, GError **error)
{
    *ret_n = (size_t)cJSON_GetArraySize(list);
    if (*ret_n <= CONSTRAINTS_ITEMS_MAX)
        return true;
    return fail_with(error, GPULEDGER_ERROR_LIMIT, "field '%s': %zu items, at most %d are read",
                     field, *ret_n, CONSTRAINTS_ITEMS_MAX);
}

/* The place of the word in the table, or false with an error. */
static bool find_word(const char *const *words, int n, const char *word, int *ret_at,
                      GError **error)
{
    for (*ret_at = 0; *ret_at < n; ++*ret_at) {
        if (g_str_equal(words[*ret_at], word))
            return true;
    }
    g_autofree char *shown = g_utf8_make_valid(word, (gssize)strnlen(word, 32));
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "field 'operator': '%s' is not one that is known", shown);
}

/* --- node affinity -------------------------------------------------------------------------- */

struct match_object {
    const char *key, *operator;
    const cJSON *values;
};
static const struct json_field match_fields[] = {
    JSON_FIELD_STRING(struct match_object, key, "key", JSON_REQUIRED),
    JSON_FIELD_STRING(struct match_object, operator, "operator", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct match_object, values, "values", 0),
    JSON_FIELD_END,
};

static bool decode_values(struct json_arena *arena, const cJSON *list, struct match *match,
                          GError **error)
{
    const cJSON *item;
    size_t n;

    if (!count_items(list, "values", &n, error))
        return false;
    const char **values = json_arena_alloc(arena, (n + 1) * sizeof *values);
    match->values = values;
    cJSON_ArrayForEach (item, list) {
        if (!cJSON_IsString(item))
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field 'values': item %zu: expected a string", match->n_values);
        values[match->n_values++] = item->valuestring;
    }
    return true;
}

static bool decode_match(struct json_arena *arena, const cJSON *item, bool field,
                         struct match *match, GError **error)
{
    static const char *const operators[MATCH_N] = {
        [MATCH_IN] = "In",         [MATCH_NOT_IN] = "NotIn",
        [MATCH_EXISTS] = "Exists", [MATCH_DOES_NOT_EXIST] = "DoesNotExist",
        [MATCH_GT] = "Gt",         [MATCH_LT] = "Lt",
    };
    struct match_object fields = {0};
    int operator= 0;

    if (!json_decode(arena, item, match_fields, &fields, error) ||
        !find_word(operators, MATCH_N, fields.operator, &operator, error))
        return false;
    *match = (struct match){
        .key = fields.key, .operator =(enum match_operator) operator, .field = field};
    if (field && strcmp(fields.key, "metadata.name") != 0)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field 'matchFields': only 'metadata.name' is a field of nodes");
    return decode_values(arena, fields.values, match, error);
}

struct term_object {
    const cJSON *expressions, *fields;
};
static const struct json_field term_fields[] = {
    JSON_FIELD_ARRAY(struct term_object, expressions, "matchExpressions", 0),
    JSON_FIELD_ARRAY(struct term_object, fields, "matchFields", 0),
    JSON_FIELD_END,
};

static bool decode_term(struct json_arena *arena, const cJSON *item, struct match_term *term,
                        GError **error)
{
    struct term_object lists = {0};
    size_t n_expressions, n_fields;
    const cJSON *match;

    if (!json_decode(arena, item, term_fields, &lists, error) ||
        !count_items(lists.expressions, "matchExpressions", &n_expressions, error) ||
        !count_items(lists.fields, "matchFields", &n_fields, error))
        return false;
    struct match *matches = json_arena_alloc(arena, (n_expressions + n_fields + 1) * sizeof *matches);
    term->matches = matches;
    cJSON_ArrayForEach (match, lists.expressions) {
        if (!decode_match(arena, match, false, &matches[term->n++], error))
            return false;
    }
    cJSON_ArrayForEach (match, lists.fields) {
        if (!decode_match(arena, match, true, &matches[term->n++], error))
            return false;
    }
    return true;
}

static bool decode_terms(struct json_arena *arena, const cJSON *list,
                         struct constraints *constraints, GError **error)
{
    const cJSON *item;
    size_t n;

    if (!count_items(list, "nodeSelectorTerms", &n, error))
        return false;
    struct match_term *terms = json_arena_alloc(arena, (n + 1) * sizeof *terms);
    constraints->terms = terms;
    cJSON_ArrayForEach (item, list) {
        if (!decode_term(arena, item, &terms[constraints->n_terms], error))
            return fail_within(error, "field '" NODE_AFFINITY ".nodeSelectorTerms': item %zu: ",
                               constraints->n_terms);
        constraints->n_terms++;
    }
    return true;
}

/* --- tolerations ---------------------------------------------------------------------------- */

struct toleration_object {
    struct toleration toleration;
    const char *operator;
};
#define TOLERATION(member, path) JSON_FIELD_STRING(struct toleration_object, member, path, 0)
static const struct json_field toleration_fields[] = {
    TOLERATION(toleration.key, "key"),
    TOLERATION(toleration.value, "value"),
    TOLERATION(toleration.effect, "effect"),
    TOLERATION(operator, "operator"),
    JSON_FIELD_END,
};

static bool decode_toleration(struct json_arena *arena, const cJSON *item,
                              struct toleration *toleration, GError **error)
{
    static const char *const operators[TOLERATION_N] = {
        [TOLERATION_EQUAL] = "Equal",
        [TOLERATION_EXISTS] = "Exists",
        [TOLERATION_LT] = "Lt",
        [TOLERATION_GT] = "Gt",
    };
    struct toleration_object fields = {0};
    int operator= TOLERATION_EQUAL;

    if (!json_decode(arena, item, toleration_fields, &fields, error))
        return false;
    if (fields.operator && *fields.operator &&
        !find_word(operators, TOLERATION_N, fields.operator, &operator, error))
        return false;
    *toleration = fields.toleration;
    toleration->operator =(enum toleration_operator) operator;
    return true;
}

static bool decode_tolerations(struct json_arena *arena, const cJSON *list,
                               struct constraints *constraints, GError **error)
{
    const cJSON *item;
    size_t n;

    if (!count_items(list, "spec.tolerations", &n, error))
        return false;
    struct toleration *tolerations = json_arena_alloc(arena, (n + 1) * sizeof *tolerations);
    constraints->tolerations = tolerations;
    cJSON_ArrayForEach (item, list) {
        if (!decode_toleration(arena, item, &tolerations[constraints->n_tolerations], error))
            return fail_within(error,
                               "field 'spec.tolerations': item %zu: ", constraints->n_tolerations);
        constraints->n_tolerations++;
    }
    return true;
}

/* --- what is not modelled ------------------------------------------------------------------- */

/* Volumes of these kinds are on every node, or made there. */
static bool is_anywhere(const cJSON *volume)
{
    static const char *const kinds[] = {"configMap", "secret",      "emptyDir", "projected",
                                        "hostPath",  "downwardAPI", "image"};

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (cJSON_GetObjectItemCaseSensitive(volume, kinds[i]))
            return true;
    }
    return false;
}

static bool has_volume(const cJSON *volumes)
{
    const cJSON *volume;

    cJSON_ArrayForEach (volume, volumes) {
        if (!is_anywhere(volume))
            return true;
    }
    return false;
}

static bool has_host_port(const cJSON *containers)
{
    const cJSON *container, *port;

    cJSON_ArrayForEach (container, containers) {
        cJSON_ArrayForEach (port, cJSON_GetObjectItemCaseSensitive(container, "ports")) {
            const cJSON *number = cJSON_GetObjectItemCaseSensitive(port, "hostPort");
            if (cJSON_IsNumber(number) && number->valuedouble > 0)
                return true;
        }
    }
    return false;
}

static bool has_strict_spread(const cJSON *spreads)
{
    const cJSON *spread;

    cJSON_ArrayForEach (spread, spreads) {
        const char *otherwise = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(spread, "whenUnsatisfiable"));
        if (g_strcmp0(otherwise, "ScheduleAnyway") != 0)
            return true;
    }
    return false;
}

static unsigned find_overlooked(const struct spec_object *spec)
{
    const bool found[OVERLOOKED_N] = {
        [OVERLOOKED_POD_AFFINITY] = spec->pod_affinity,
        [OVERLOOKED_POD_ANTI_AFFINITY] = spec->pod_anti_affinity,
        [OVERLOOKED_TOPOLOGY_SPREAD] = has_strict_spread(spec->spreads),
        [OVERLOOKED_VOLUMES] = has_volume(spec->volumes),
        [OVERLOOKED_HOST_PORTS] =
            has_host_port(spec->containers) || has_host_port(spec->init_containers),
        [OVERLOOKED_RESOURCE_CLAIMS] = cJSON_GetArraySize(spec->claims) > 0,
        [OVERLOOKED_SCHEDULING_GATES] = cJSON_GetArraySize(spec->gates) > 0,
        [OVERLOOKED_PRIORITY_CLASS] =
            spec->priority_class && *spec->priority_class && !spec->has_priority,
    };
    unsigned bits = 0;

    for (unsigned i = 0; i < OVERLOOKED_N; i++)
        bits |= found[i] ? 1U << i : 0;
    return bits;
}

/* --- gates ---------------------------------------------------------------------------------- */

#define GATES_MAX 8                   /* named in one sentence */
#define KUEUE_GATES "kueue.x-k8s.io/" /* of Kueue: its plain pods, and its topologies */

char *gates_tell(const struct pod_view *pod)
{
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(pod->object, "spec");
    const cJSON *gates = cJSON_GetObjectItemCaseSensitive(spec, "schedulingGates"), *gate;
    g_autoptr(GString) names = g_string_new(NULL);
    bool kueue = false;
    int n = 0;

    cJSON_ArrayForEach (gate, gates) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(gate, "name"));
        if (!name)
            continue;
        kueue |= g_str_has_prefix(name, KUEUE_GATES);
        if (n++ < GATES_MAX)
            g_string_append_printf(names, "%s%s", n > 1 ? ", " : "", name);
    }
    if (n == 0)
        return NULL;
    return g_strdup_printf("scheduling gate%s %s%s%s", n == 1 ? "" : "s", names->str,
                           n > GATES_MAX ? " and others" : "",
                           kueue ? "; Kueue takes its own away when it admits the pod's Workload"
                                 : "");
}

/* --- the whole ------------------------------------------------------------------------------ */

bool constraints_decode(struct json_arena *arena, struct pod_view *pod, GError **error)
{
    struct spec_object spec = {0};

    if (!pod->object)
        return true;
    if (!json_decode(arena, pod->object, spec_fields, &spec, error) ||
        !decode_terms(arena, spec.terms, &spec.constraints, error) ||
        !decode_tolerations(arena, spec.tolerations, &spec.constraints, error))
        return false;
    struct constraints *constraints = json_arena_alloc(arena, sizeof *constraints);
    *constraints = spec.constraints;
    constraints->node_name = pod->node_name;
    constraints->never_preempts = g_strcmp0(spec.preemption_policy, "Never") == 0;
    constraints->overlooked = find_overlooked(&spec);
    pod->constraints = constraints;
    return true;
}

bool constraints_are_none(const struct pod_view *pod)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view = *pod;

    if (!constraints_decode(arena, &view, NULL))
        return false;
    const struct constraints *own = view.constraints;
    return !own || (own->selector.n == 0 && !own->has_affinity &&
                    (own->overlooked & ~(1U << OVERLOOKED_PRIORITY_CLASS)) == 0);
}

void overlooked_encode(struct json_writer *writer, unsigned overlooked)
{
    json_key_array(writer, "notLookedAt");
    for (unsigned i = 0; i < OVERLOOKED_N; i++) {
        if (overlooked & 1U << i)
            json_string(writer, overlooked_name((enum overlooked)i));
    }
    json_end_array(writer);
}
