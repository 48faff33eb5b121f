/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * PodDisruptionBudgets, as far as they say which pods may end. Source: policy/v1 and v1beta1, which
 * are alike in what is read here, but that an empty selector is no pod in v1beta1 and every pod in v1:
 * here it is every pod, for a budget too many spares a pod, and one too few does not.
 */
#include "json/json.h"

#define BUDGET_EXPRESSIONS_MAX 64
#define BUDGET_VALUES_MAX 256

enum selector_operator {
    SELECTOR_IN,
    SELECTOR_NOT_IN,
    SELECTOR_EXISTS,
    SELECTOR_DOES_NOT_EXIST,
    SELECTOR_N
};

struct selector_expression {
    const char *key;
    enum selector_operator operator;
    const char **values;
    size_t n_values;
};

/* Borrowed from the arena. */
struct budget_view {
    const char *ns, *name;
    int64_t allowed;         /* status.disruptionsAllowed */
    bool selects;            /* there is a selector; else no pod is meant */
    struct string_pairs labels;
    struct selector_expression *expressions;
    size_t n_expressions;
    struct string_pairs disrupted; /* pods that are counted already, by name */
};

/* A selector that cannot be understood is an error. */
bool budget_view_decode(struct json_arena *arena, const cJSON *object,
                        struct budget_view *ret_budget, GError **error);

/* The same as an object again. */
void budget_view_encode(struct json_writer *writer, const struct budget_view *budget);
