/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/budget.h"

#include "core/fail.h"

struct budget_object {
    struct budget_view view;
    const cJSON *expressions;
};

#define BUDGET(KIND, member, path, flags)                                                          \
    JSON_FIELD_##KIND(struct budget_object, member, path, flags)
static const struct json_field budget_fields[] = {
    BUDGET(STRING, view.name, "metadata.name", JSON_REQUIRED),
    BUDGET(STRING, view.ns, "metadata.namespace", JSON_REQUIRED),
    BUDGET(INT64, view.allowed, "status.disruptionsAllowed", JSON_CLAMP),
    BUDGET(PRESENT, view.selects, "spec.selector", 0),
    BUDGET(PAIRS, view.labels, "spec.selector.matchLabels", 0),
    BUDGET(ARRAY, expressions, "spec.selector.matchExpressions", 0),
    BUDGET(PAIRS, view.disrupted, "status.disruptedPods", 0),
    JSON_FIELD_END,
};

struct expression_object {
    const char *key, *operator;
    const cJSON *values;
};

static const struct json_field expression_fields[] = {
    JSON_FIELD_STRING(struct expression_object, key, "key", JSON_REQUIRED),
    JSON_FIELD_STRING(struct expression_object, operator, "operator", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct expression_object, values, "values", 0),
    JSON_FIELD_END,
};

static const char *const operators[SELECTOR_N] = {
    [SELECTOR_IN] = "In",
    [SELECTOR_NOT_IN] = "NotIn",
    [SELECTOR_EXISTS] = "Exists",
    [SELECTOR_DOES_NOT_EXIST] = "DoesNotExist",
};

static bool decode_values(struct json_arena *arena, const cJSON *list,
                          struct selector_expression *expression, GError **error)
{
    const int n = cJSON_GetArraySize(list);
    const cJSON *item;

    if (n > BUDGET_VALUES_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT,
                         "field 'values': %d values, at most %d are read", n, BUDGET_VALUES_MAX);
    expression->values = json_arena_alloc(arena, ((size_t)n + 1) * sizeof *expression->values);
    cJSON_ArrayForEach (item, list) {
        if (!cJSON_IsString(item))
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field 'values': item %zu: expected a string", expression->n_values);
        expression->values[expression->n_values++] = item->valuestring;
    }
    return true;
}

static bool decode_expression(struct json_arena *arena, const cJSON *item,
                              struct selector_expression *expression, GError **error)
{
    struct expression_object fields = {0};

    if (!json_decode(arena, item, expression_fields, &fields, error))
        return false;
    expression->key = fields.key;
    for (int i = 0; i < SELECTOR_N; i++) {
        if (!g_str_equal(operators[i], fields.operator))
            continue;
        expression->operator =(enum selector_operator) i;
        return decode_values(arena, fields.values, expression, error);
    }
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "field 'operator': '%s' is none of In, NotIn, Exists, DoesNotExist",
                     fields.operator);
}

bool budget_view_decode(struct json_arena *arena, const cJSON *object,
                        struct budget_view *ret_budget, GError **error)
{
    struct budget_object budget = {0};
    const cJSON *item;

    if (!json_decode(arena, object, budget_fields, &budget, error))
        return false;
    const int n = cJSON_GetArraySize(budget.expressions);
    if (n > BUDGET_EXPRESSIONS_MAX)
        return fail_with(
            error, GPULEDGER_ERROR_LIMIT,
            "field 'spec.selector.matchExpressions': %d expressions, at most %d are read", n,
            BUDGET_EXPRESSIONS_MAX);
    budget.view.expressions =
        json_arena_alloc(arena, ((size_t)n + 1) * sizeof *budget.view.expressions);
    cJSON_ArrayForEach (item, budget.expressions) {
        if (!decode_expression(arena, item, &budget.view.expressions[budget.view.n_expressions++],
                               error))
            return fail_within(error, "field 'spec.selector.matchExpressions': item %zu: ",
                               budget.view.n_expressions - 1);
    }
    *ret_budget = budget.view;
    return true;
}

/* --- the same again, for a record ----------------------------------------------------------- */

static void write_pairs(struct json_writer *writer, const char *key,
                        const struct string_pairs *pairs)
{
    json_key_object(writer, key);
    for (size_t i = 0; i < pairs->n; i++)
        json_key_string(writer, pairs->items[i].key, pairs->items[i].value);
    json_end_object(writer);
}

static void write_expression(struct json_writer *writer,
                             const struct selector_expression *expression)
{
    json_begin_object(writer);
    json_key_string(writer, "key", expression->key);
    json_key_string(writer, "operator", operators[expression->operator]);
    json_key_array(writer, "values");
    for (size_t i = 0; i < expression->n_values; i++)
        json_string(writer, expression->values[i]);
    json_end_array(writer);
    json_end_object(writer);
}

static void write_selector(struct json_writer *writer, const struct budget_view *budget)
{
    json_key_object(writer, "selector");
    write_pairs(writer, "matchLabels", &budget->labels);
    json_key_array(writer, "matchExpressions");
    for (size_t i = 0; i < budget->n_expressions; i++)
        write_expression(writer, &budget->expressions[i]);
    json_end_array(writer);
    json_end_object(writer);
}

void budget_view_encode(struct json_writer *writer, const struct budget_view *budget)
{
    json_begin_object(writer);
    json_key_object(writer, "metadata");
    json_key_string(writer, "name", budget->name);
    json_key_string(writer, "namespace", budget->ns);
    json_end_object(writer);
    json_key_object(writer, "spec");
    if (budget->selects)
        write_selector(writer, budget);
    json_end_object(writer);
    json_key_object(writer, "status");
    json_key_int(writer, "disruptionsAllowed", budget->allowed);
    write_pairs(writer, "disruptedPods", &budget->disrupted);
    json_end_object(writer);
    json_end_object(writer);
}
