/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/budgets.h"

#include <string.h>

struct expression {
    char *key;
    enum selector_operator operator;
    char **values; /* NULL-terminated */
};

/* Not changed once it is here. */
struct budget {
    char *ns, *name;
    int64_t allowed;
    uint32_t generation;
    bool selects;
    GArray *expressions;   /* struct expression; matchLabels are such, too */
    GHashTable *disrupted; /* names of pods */
};

struct budgets {
    GPtrArray *all; /* struct budget *, by namespace and name; a reference of each */
};

static void expression_clear(gpointer data)
{
    struct expression *expression = data;

    g_free(expression->key);
    g_strfreev(expression->values);
}

static void budget_clear(gpointer data)
{
    struct budget *budget = data;

    g_free(budget->ns);
    g_free(budget->name);
    g_array_unref(budget->expressions);
    g_hash_table_unref(budget->disrupted);
}

static void budget_unref(gpointer data)
{
    g_atomic_rc_box_release_full(data, budget_clear);
}

struct budgets *budgets_new(void)
{
    struct budgets *budgets = g_new0(struct budgets, 1);

    budgets->all = g_ptr_array_new_with_free_func(budget_unref);
    return budgets;
}

static gpointer budget_ref(gconstpointer budget, gpointer data)
{
    return g_atomic_rc_box_acquire((gpointer)budget);
}

struct budgets *budgets_copy(const struct budgets *budgets)
{
    struct budgets *copy = g_new0(struct budgets, 1);

    copy->all = g_ptr_array_copy(budgets->all, budget_ref, NULL);
    return copy;
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

/* Where the budget is, or belongs. */
static guint place_of(const struct budgets *budgets, const char *ns, const char *name,
                      bool *ret_known)
{
    guint from = 0, to = budgets->all->len;

    *ret_known = false;
    while (from < to && !*ret_known) {
        const guint middle = from + (to - from) / 2;
        const struct budget *budget = g_ptr_array_index(budgets->all, middle);
        int order = strcmp(budget->ns, ns);
        if (order == 0)
            order = strcmp(budget->name, name);
        *ret_known = order == 0;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return to;
}

void budgets_set(struct budgets *budgets, const struct budget_view *view, uint32_t generation)
{
    struct budget *budget = g_atomic_rc_box_new0(struct budget);

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
    bool known;
    const guint at = place_of(budgets, view->ns, view->name, &known);
    if (known)
        g_ptr_array_remove_index(budgets->all, at);
    g_ptr_array_insert(budgets->all, (gint)at, budget);
}

void budgets_remove(struct budgets *budgets, const char *ns, const char *name)
{
    bool known;
    const guint at = place_of(budgets, ns, name, &known);

    if (known)
        g_ptr_array_remove_index(budgets->all, at);
}

void budgets_sweep(struct budgets *budgets, uint32_t generation)
{
    for (guint i = budgets->all->len; i-- > 0;) {
        const struct budget *budget = g_ptr_array_index(budgets->all, i);
        if (budget->generation != generation)
            g_ptr_array_remove_index(budgets->all, i);
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
