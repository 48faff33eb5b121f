/* SPDX-License-Identifier: Apache-2.0 */
/* What one object says. */
#include "core/bytes.h"
#include "core/fail.h"
#include "quota/elastic/elastic_state.h"
#include "quota/share_amounts.h"

#include <gpuledger/quantity.h>
#include <string.h>

static bool is_key(const char *key)
{
    if (g_str_equal(key, KEY_GPUS) || g_str_equal(key, KEY_MEMORY))
        return true;
    for (size_t i = 0; dialects[i]; i++) {
        if (dialect_reads(dialects[i], key))
            return true;
    }
    return false;
}

/* Of one object, for its namespace to have more than one. */
#define LIMITS_MAX 64

static struct limit *limit_of(GArray *limits, const char *key)
{
    for (guint i = 0; i < limits->len; i++) {
        struct limit *limit = &g_array_index(limits, struct limit, i);
        if (g_str_equal(limit->key, key))
            return limit;
    }
    g_array_append_val(limits, ((struct limit){g_intern_string(key), -1, -1, -1}));
    return &g_array_index(limits, struct limit, limits->len - 1);
}

/* As struct elastic_count has it. */
static bool read_amount(const char *key, const char *text, int64_t *ret_amount, GError **error)
{
    const int64_t unit = elastic_unit(key);
    int64_t units;

    if (g_str_equal(key, KEY_MEMORY)) {
        if (!quantity_parse(text, &units, error))
            return false;
        *ret_amount = units / KIB;
        return true;
    }
    if (quantity_parse(text, &units, NULL)) {
        *ret_amount = MIN(units, AMOUNT_SUM_MAX / unit) * unit;
        return true;
    }
    if (!quantity_parse_thousandths(text, &units, error))
        return false;
    *ret_amount = MIN(units, AMOUNT_SUM_MAX / unit) * (unit / 1000);
    return true;
}

double elastic_units(const char *key, int64_t amount)
{
    if (g_str_equal(key, KEY_MEMORY))
        return (double)amount * KIB;
    return (double)(g_str_equal(key, KEY_GPUS) ? share_thousandths(amount) : amount) / 1000;
}

static bool read_amounts(const struct string_pairs *pairs, const char *what, size_t member,
                         GArray *limits, GError **error)
{
    for (size_t i = 0; i < pairs->n; i++) {
        const char *key = pairs->items[i].key;
        int64_t amount;
        if (!is_key(key))
            continue;
        if (!read_amount(key, pairs->items[i].value, &amount, error))
            return fail_within(error, "%s of '%s': ", what, key);
        if (limits->len == LIMITS_MAX)
            return fail_with(error, GPULEDGER_ERROR_LIMIT, "it limits more than %d resources",
                             LIMITS_MAX);
        G_STRUCT_MEMBER(int64_t, limit_of(limits, key), member) = MIN(amount, AMOUNT_SUM_MAX);
    }
    return true;
}

/* Sorted, so that the same words in another order are the same. */
static gint compare_limits(gconstpointer a, gconstpointer b)
{
    return strcmp(((const struct limit *)a)->key, ((const struct limit *)b)->key);
}

static GArray *read_limits(const struct resource_quota_view *view, GError **error)
{
    g_autoptr(GArray) limits = g_array_new(FALSE, FALSE, sizeof(struct limit));

    if (!read_amounts(&view->min, "min", offsetof(struct limit, min), limits, error) ||
        !read_amounts(&view->max, "max", offsetof(struct limit, max), limits, error) ||
        !read_amounts(&view->in.weights, "weight", offsetof(struct limit, weight), limits, error))
        return NULL;
    g_array_sort(limits, compare_limits);
    return g_steal_pointer(&limits);
}

static struct quota *quota_read(const struct resource_quota_view *view, GError **error)
{
    const struct quota_tree_view *in = &view->in;
    GArray *limits = in->unread ? NULL : read_limits(view, error);

    if (in->unread)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "%s", in->unread);
    if (!limits) {
        g_prefix_error(error, "%s '%s/%s': ", view->elastic ? "ElasticQuota" : "ResourceQuota",
                       view->ns, view->name);
        return NULL;
    }
    struct quota *quota = g_new(struct quota, 1);
    *quota = (struct quota){
        .elastic = view->elastic,
        .ns = g_strdup(view->ns),
        .name = g_strdup(view->name),
        .limits = limits,
        .inside = in->inside,
        .is_parent = in->is_parent,
        .keeps = in->keeps,
        .parent = g_strdup(in->parent),
        .tree = g_strdup(in->tree ? in->tree : ""),
        .namespaces = g_strdupv((char **)in->namespaces),
    };
    return quota;
}

struct elastic_limits {
    struct quota *quota; /* NULL: it cannot be read */
    GError *failure;
};

struct elastic_limits *elastic_limits_read(const struct resource_quota_view *view)
{
    struct elastic_limits *limits = g_new0(struct elastic_limits, 1);

    limits->quota = quota_read(view, &limits->failure);
    return limits;
}

void elastic_limits_free(struct elastic_limits *limits)
{
    if (!limits)
        return;
    quota_free(limits->quota);
    g_clear_error(&limits->failure);
    g_free(limits);
}

struct quota *elastic_limits_take(struct elastic_limits *limits, GError **error)
{
    if (limits->failure)
        g_propagate_error(error, g_error_copy(limits->failure));
    return g_steal_pointer(&limits->quota);
}

struct quota *quota_dup(const struct quota *quota)
{
    struct quota *copy = g_memdup2(quota, sizeof *quota);

    copy->ns = g_strdup(quota->ns);
    copy->name = g_strdup(quota->name);
    copy->limits = g_array_copy(quota->limits);
    copy->parent = g_strdup(quota->parent);
    copy->tree = g_strdup(quota->tree);
    copy->namespaces = g_strdupv(quota->namespaces);
    return copy;
}

void quota_free(gpointer data)
{
    struct quota *quota = data;

    if (!quota)
        return;
    g_free(quota->ns);
    g_free(quota->name);
    g_array_unref(quota->limits);
    g_free(quota->parent);
    g_free(quota->tree);
    g_strfreev(quota->namespaces);
    g_free(quota);
}

static bool is_same_list(char **one, char **other)
{
    return one && other ? g_strv_equal((const char *const *)one, (const char *const *)other)
                        : one == other;
}

bool quota_is_same(const struct quota *one, const struct quota *other)
{
    const GArray *limits = one->limits, *others = other->limits;

    return limits->len == others->len &&
           (limits->len == 0 ||
            memcmp(limits->data, others->data, limits->len * sizeof(struct limit)) == 0) &&
           one->inside == other->inside && one->is_parent == other->is_parent &&
           one->keeps == other->keeps && g_strcmp0(one->parent, other->parent) == 0 &&
           g_str_equal(one->tree, other->tree) && is_same_list(one->namespaces, other->namespaces);
}

bool quota_is_idle(const struct quota *quota)
{
    return quota->limits->len == 0 && !quota->inside;
}
