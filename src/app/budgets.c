/* SPDX-License-Identifier: Apache-2.0 */
#include "app/budgets.h"

#include <string.h>

struct expression {
    char *key;
    enum selector_operator operator;
    char **values; /* NULL-terminated */
};

struct budget {
    char *ns, *name;
    int64_t allowed;
    uint32_t generation;
    bool selects;
    GArray *expressions;   /* struct expression; matchLabels are such, too */
    GHashTable *disrupted; /* names of pods */
};

struct budgets {
    GPtrArray *all; /* struct budget * */
};

static void expression_clear(gpointer data)
{
    struct expression *expression = data;

    g_free(expression->key);
    g_strfreev(expression->values);
}

static void budget_free(gpointer data)
{
    struct budget *budget = data;

    g_free(budget->ns);
    g_free(budget->name);
    g_array_unref(budget->expressions);
    g_hash_table_unref(budget->disrupted);
    g_free(budget);
}

struct budgets *budgets_new(void)
{
    struct budgets *budgets = g_new0(struct budgets, 1);

    budgets->all = g_ptr_array_new_with_free_func(budget_free);
    return budgets;
}

void budgets_free(struct budgets *budgets)
{
    g_ptr_array_unref(budgets->all);
    g_free(budgets);
}

static void add_expression(struct budget *budget, const char *key,
                           enum selector_operator operator, const char *const *values, size_t n)
{
    struct expression expression = {g_strdup(key), operator, g_new0(char *, n + 1)};

    for (size_t i = 0; i < n; i++)
        expression.values[i] = g_strdup(values[i]);
    g_array_append_val(budget->expressions, expression);
}

void budgets_set(struct budgets *budgets, const struct budget_view *view, uint32_t generation)
{
    struct budget *budget = g_new0(struct budget, 1);

    budget->ns = g_strdup(view->ns);
    budget->name = g_strdup(view->name);
    budget->allowed = view->allowed;
    budget->generation = generation;
    budget->selects = view->selects;
    budget->expressions = g_array_new(FALSE, FALSE, sizeof(struct expression));
    g_array_set_clear_func(budget->expressions, expression_clear);
    budget->disrupted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (size_t i = 0; i < view->labels.n; i++)
        add_expression(budget, view->labels.items[i].key, SELECTOR_IN,
                       &view->labels.items[i].value, 1);
    for (size_t i = 0; i < view->n_expressions; i++)
        add_expression(budget, view->expressions[i].key, view->expressions[i].operator,
                       view->expressions[i].values, view->expressions[i].n_values);
    for (size_t i = 0; i < view->disrupted.n; i++)
        g_hash_table_add(budget->disrupted, g_strdup(view->disrupted.items[i].key));
    budgets_remove(budgets, view->ns, view->name);
    g_ptr_array_add(budgets->all, budget);
}

void budgets_remove(struct budgets *budgets, const char *ns, const char *name)
{
    for (guint i = 0; i < budgets->all->len; i++) {
        const struct budget *budget = g_ptr_array_index(budgets->all, i);
        if (g_str_equal(budget->name, name) && g_str_equal(budget->ns, ns)) {
            g_ptr_array_remove_index_fast(budgets->all, i);
            return;
        }
    }
}

void budgets_sweep(struct budgets *budgets, uint32_t generation)
{
    for (guint i = budgets->all->len; i-- > 0;) {
        const struct budget *budget = g_ptr_array_index(budgets->all, i);
        if (budget->generation != generation)
            g_ptr_array_remove_index_fast(budgets->all, i);
    }
}

uint32_t budgets_n(const struct budgets *budgets)
{
    return budgets->all->len;
}

void budgets_allowed(const struct budgets *budgets, int64_t *ret_allowed)
{
    for (guint i = 0; i < budgets->all->len; i++)
        ret_allowed[i] = ((const struct budget *)g_ptr_array_index(budgets->all, i))->allowed;
}

static bool holds(const struct expression *expression, const char *value)
{
    const bool among =
        value && g_strv_contains((const char *const *)expression->values, value);

    switch (expression->operator) {
    case SELECTOR_IN:
        return among;
    case SELECTOR_NOT_IN:
        return !among;
    case SELECTOR_EXISTS:
        return value;
    case SELECTOR_DOES_NOT_EXIST:
    case SELECTOR_N:
        break;
    }
    return !value;
}

static bool draws_on(const struct budget *budget, const struct allocation *allocation)
{
    if (!budget->selects || !g_str_equal(budget->ns, allocation->ns) ||
        g_hash_table_contains(budget->disrupted, allocation->name))
        return false;
    for (guint i = 0; i < budget->expressions->len; i++) {
        const struct expression *expression =
            &g_array_index(budget->expressions, struct expression, i);
        if (!holds(expression, pod_facts_label(allocation->facts, expression->key)))
            return false;
    }
    return true;
}

uint32_t budgets_of(const struct budgets *budgets, const struct allocation *allocation,
                    uint32_t *ret_places, uint32_t max)
{
    uint32_t n = 0;

    for (guint i = 0; i < budgets->all->len && n < max; i++) {
        if (draws_on(g_ptr_array_index(budgets->all, i), allocation))
            ret_places[n++] = i;
    }
    return n;
}
