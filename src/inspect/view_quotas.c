/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of namespaces, and what counts towards them. */
#include "core/amount_sum.h"
#include "inspect/views.h"
#include "quota/quotas.h"
#include "quota/share_amounts.h"
#include "store/node_walk.h"

#include <string.h>

/* A limit and what counts towards it. */
struct quota_row {
    char *ns;
    char *quota;      /* the ResourceQuota, or NULL: a limit by model */
    char *key;        /* of the ResourceQuota, or the model */
    const char *unit; /* a constant */
    int64_t limit, used;
};

struct quota_rows {
    const struct quotas *quotas;
    GPtrArray *rows;        /* struct quota_row * */
    GHashTable *namespaces; /* namespace -> GPtrArray of its rows */
    guint n;                /* that there are, those beyond VIEW_QUOTAS too */
};

static void quota_row_free(gpointer data)
{
    struct quota_row *row = data;

    g_free(row->ns);
    g_free(row->quota);
    g_free(row->key);
    g_free(row);
}

static void add_row(struct quota_rows *rows, const struct quota_row *from)
{
    if (rows->n++ >= VIEW_QUOTAS)
        return;
    struct quota_row *row = g_new(struct quota_row, 1);
    *row = (struct quota_row){g_strdup(from->ns),  g_strdup(from->quota), g_strdup(from->key),
                              from->unit, from->limit, 0};
    g_ptr_array_add(rows->rows, row);
    GPtrArray *others = g_hash_table_lookup(rows->namespaces, row->ns);
    if (!others) {
        others = g_ptr_array_new();
        g_hash_table_insert(rows->namespaces, row->ns, others);
    }
    g_ptr_array_add(others, row);
}

static void add_resource_limit(const struct resource_limit *limit, void *data)
{
    add_row(data, &(struct quota_row){(char *)limit->ns, (char *)limit->quota, (char *)limit->key,
                                      limit->unit, limit->limit, 0});
}

static void add_model_limit(const struct model_limit *limit, void *data)
{
    add_row(data, &(struct quota_row){(char *)limit->ns, NULL, (char *)limit->model, "thousandths",
                                      limit->limit, 0});
}

static void count_node(const struct node *node, void *data)
{
    const struct quota_rows *rows = data;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
        const GPtrArray *limits = g_hash_table_lookup(rows->namespaces, allocation->ns);
        for (guint j = 0; limits && j < limits->len; j++) {
            struct quota_row *row = g_ptr_array_index(limits, j);
            row->used = amount_add(row->used,
                                   row->quota ? resource_quotas_count(allocation, row->key)
                                              : quotas_count(rows->quotas, allocation, row->key));
        }
    }
}

static gint compare_rows(gconstpointer a, gconstpointer b)
{
    const struct quota_row *left = *(struct quota_row *const *)a;
    const struct quota_row *right = *(struct quota_row *const *)b;
    int order = strcmp(left->ns, right->ns);

    order = order ? order : g_strcmp0(left->quota, right->quota);
    return order ? order : strcmp(left->key, right->key);
}

static void write_quota(struct json_writer *writer, const struct quota_row *row)
{
    json_begin_object(writer);
    json_key_string(writer, "namespace", row->ns);
    json_key_string(writer, "quota", row->quota);
    json_key_string(writer, "key", row->key);
    json_key_string(writer, "unit", row->unit);
    json_key_int(writer, "limit", row->limit);
    json_key_int(writer, "used", row->quota ? row->used : share_thousandths(row->used));
    json_end_object(writer);
}

#define FAULTS "gpuledger_quota_faults"
#define UNKEPT "gpuledger_quotas_unkept"
#define UNHEEDED "gpuledger_quota_labels_unheeded"

/* --- elastic ones ------------------------------------------------------------------------------- */

static void add_elastic(const struct elastic_count *count, void *data)
{
    GArray *rows = data;

    g_array_append_val(rows, *count);
}

/* What all that lend to each other have of a key above their mins, and below. */
struct balance {
    amount_sum borrowed, unused;
};

/* It lends and borrows nothing. */
static bool is_apart(const struct elastic_count *row)
{
    return row->fault != QUOTA_FAULT_NONE && row->fault != QUOTA_FAULT_LISTS;
}

static bool lend_each_other(const struct elastic_count *one, const struct elastic_count *other)
{
    return !is_apart(one) && !is_apart(other) && g_str_equal(one->key, other->key) &&
           g_str_equal(one->tree, other->tree) && g_strcmp0(one->parent, other->parent) == 0;
}

static struct balance balance_of(const GArray *rows, const struct elastic_count *of)
{
    struct balance balance = {0};

    for (guint i = 0; i < rows->len; i++) {
        const struct elastic_count *row = &g_array_index(rows, struct elastic_count, i);
        if (!lend_each_other(row, of))
            continue;
        balance.borrowed += MAX(row->used - row->min, 0);
        balance.unused += row->keeps ? 0 : MAX(row->min - row->used, 0);
    }
    return balance;
}

/* The namespace's part of what others have borrowed, as far as it is not known of whom. */
static int64_t lent(const struct elastic_count *row, const struct balance *balance)
{
    const double unused = (double)MAX(row->min - row->used, 0);

    return balance->unused > 0 && !row->keeps && !is_apart(row)
               ? (int64_t)(unused * (double)MIN(balance->borrowed, balance->unused) /
                           (double)balance->unused)
               : 0;
}

static void write_amount(struct json_writer *writer, const struct elastic_count *row,
                         const char *name, int64_t amount)
{
    json_key(writer, name);
    json_double(writer, elastic_units(row->key, amount));
}

/* In a tree. */
static void write_place(struct json_writer *writer, const struct elastic_count *row)
{
    json_key_string(writer, "quota", row->quota);
    json_key_string(writer, "parent", row->parent);
    if (*row->tree)
        json_key_string(writer, "tree", row->tree);
    json_key_bool(writer, "lends", !row->keeps);
    write_amount(writer, row, "weight", row->weight);
}

static void write_elastic(struct json_writer *writer, const struct elastic_count *row,
                          const struct balance *balance)
{
    json_begin_object(writer);
    json_key_string(writer, "namespace", row->ns);
    if (row->quota)
        write_place(writer, row);
    if (row->fault != QUOTA_FAULT_NONE)
        json_key_string(writer, "fault", quota_fault_code(row->fault));
    json_key_string(writer, "key", row->key);
    write_amount(writer, row, "min", row->min);
    if (row->max < INT64_MAX) {
        write_amount(writer, row, "max", row->max);
    } else {
        json_key(writer, "max");
        json_null(writer);
    }
    write_amount(writer, row, "used", row->used);
    write_amount(writer, row, "lent", lent(row, balance));
    write_amount(writer, row, "borrowed", MAX(row->used - row->min, 0));
    write_amount(writer, row, "waiting", row->waiting);
    json_end_object(writer);
}

static void write_all_elastic(struct json_writer *writer, const GArray *rows)
{
    json_key_array(writer, "elastic");
    for (guint i = 0; i < MIN(rows->len, VIEW_QUOTAS); i++) {
        const struct elastic_count *row = &g_array_index(rows, struct elastic_count, i);
        const struct balance balance = balance_of(rows, row);
        write_elastic(writer, row, &balance);
    }
    json_end_array(writer);
    json_key_int(writer, "elasticTotal", rows->len);
}

static void clear_elastic(gpointer data)
{
    struct elastic_count *row = data;

    g_free((char *)row->ns);
    g_free((char *)row->quota);
    g_free((char *)row->parent);
}

/* Under the lock: names are copied, since quotas may go. */
static GArray *collect_elastic(struct store *store)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct elastic_count));

    elastic_quotas_each(quotas_elastic(store_quotas(store)), store_ledger(store), add_elastic,
                        rows);
    for (guint i = 0; i < rows->len; i++) {
        struct elastic_count *row = &g_array_index(rows, struct elastic_count, i);
        row->ns = g_strdup(row->ns);
        row->quota = g_strdup(row->quota);
        row->parent = g_strdup(row->parent);
    }
    g_array_set_clear_func(rows, clear_elastic);
    return rows;
}

static int64_t get_min(const struct elastic_count *row)
{
    return row->min;
}

static int64_t get_max(const struct elastic_count *row)
{
    return row->max;
}

static int64_t get_used(const struct elastic_count *row)
{
    return row->used;
}

static int64_t get_waiting(const struct elastic_count *row)
{
    return row->waiting;
}

static const struct {
    const char *name, *help;
    int64_t (*get)(const struct elastic_count *row);
} gauges[] = {
    {"gpuledger_quota_min", "What a namespace's elastic quotas make it sure of.", get_min},
    {"gpuledger_quota_max", "What it may have at most.", get_max},
    {"gpuledger_quota_used", "What its pods hold.", get_used},
    {"gpuledger_quota_waiting", "What its pods without a node ask for.", get_waiting},
};

static void write_gauge(GString *reply, const char *name, const struct elastic_count *row,
                        int64_t value)
{
    g_string_append_printf(reply, "%s{namespace=\"%s\"", name, row->ns);
    if (row->quota)
        g_string_append_printf(reply, ",quota=\"%s\"", row->quota);
    g_string_append_printf(reply, ",resource=\"%s\"} %.15g\n", row->key,
                           elastic_units(row->key, value));
}

void view_quotas_metrics(struct store *store, GString *reply)
{
    if (!store_options(store)->elastic_quotas)
        return;
    store_count_quotas(store);
    store_lock(store);
    g_autoptr(GArray) rows = collect_elastic(store);
    const guint n_faults = elastic_quotas_n_faults(store_elastic_quotas(store));
    const guint n_unkept = elastic_quotas_n_unkept(store_elastic_quotas(store));
    const guint n_unheeded = elastic_quotas_n_unheeded(store_elastic_quotas(store));
    store_unlock(store);
    g_string_append_printf(reply,
                           "# HELP %s Quotas whose place in a tree cannot be told, or that list "
                           "namespaces which they may not.\n# TYPE %s gauge\n%s %u\n",
                           FAULTS, FAULTS, FAULTS, n_faults);
    g_string_append_printf(reply,
                           "# HELP %s Quotas that cannot be kept, which refuse pods of their "
                           "namespace.\n# TYPE %s gauge\n%s %u\n",
                           UNKEPT, UNKEPT, UNKEPT, n_unkept);
    g_string_append_printf(reply,
                           "# HELP %s Pods whose label names an elastic quota in which they do not "
                           "count.\n# TYPE %s gauge\n%s %u\n",
                           UNHEEDED, UNHEEDED, UNHEEDED, n_unheeded);
    for (size_t i = 0; i < G_N_ELEMENTS(gauges); i++) {
        g_string_append_printf(reply, "# HELP %s %s\n# TYPE %s gauge\n", gauges[i].name,
                               gauges[i].help, gauges[i].name);
        for (guint j = 0; j < MIN(rows->len, VIEW_QUOTAS); j++) {
            const struct elastic_count *row = &g_array_index(rows, struct elastic_count, j);
            if (gauges[i].get(row) < INT64_MAX)
                write_gauge(reply, gauges[i].name, row, gauges[i].get(row));
        }
    }
}

void view_quotas(struct store *store, GString *reply)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(quota_row_free);
    g_autoptr(GHashTable) namespaces =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)g_ptr_array_unref);
    struct quota_rows rows = {.rows = all, .namespaces = namespaces};
    struct json_writer writer;

    store_count_quotas(store);
    store_lock(store);
    rows.quotas = store_quotas(store);
    resource_quotas_each(quotas_see_resources(rows.quotas), add_resource_limit, &rows);
    quotas_each(rows.quotas, add_model_limit, &rows);
    g_autoptr(GArray) elastic = collect_elastic(store);
    store_unlock(store);
    if (all->len > 0)
        node_walk_all(store, count_node, &rows);
    g_ptr_array_sort(all, compare_rows);

    json_writer_init(&writer, reply);
    json_begin_object(&writer);
    json_key_array(&writer, "quotas");
    for (guint i = 0; i < all->len; i++)
        write_quota(&writer, g_ptr_array_index(all, i));
    json_end_array(&writer);
    json_key_int(&writer, "total", rows.n);
    write_all_elastic(&writer, elastic);
    json_end_object(&writer);
}
