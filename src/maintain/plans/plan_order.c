/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/plan_order.h"

#include "core/fail.h"
#include "maintain/plans/plan_status.h"
#include "plan/plan.h"

#include <string.h>

#define MOVES 8 /* as the command has it */
#define TIMEOUT_MS (INT64_C(10) * 60000)
#define HOUR_MAX                                                                                   \
    100 /* so many steps its log has, and more: other bounds of 'waiting' are for the hour, too */

void plan_order_free(struct plan_order *order)
{
    if (!order)
        return;
    g_free(order->ns);
    g_free(order->name);
    g_free(order->uid);
    g_free(order->version);
    g_free(order->created);
    g_free(order->digest);
    g_free(order->status);
    g_free(order->problem);
    plan_aim_clear(&order->aim);
    window_free(order->window);
    g_free(order);
}

/* --- its data --------------------------------------------------------------------------------- */

static bool read_window(struct plan_order *order, const char *text, GError **error)
{
    order->window = window_parse(text, error);
    return order->window != NULL;
}

static bool read_number(const char *text, uint32_t least, uint32_t most, uint32_t *ret_n,
                        GError **error)
{
    guint64 n;

    if (!g_ascii_string_to_unsigned(text, 10, least, most, &n, NULL))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "'%s': expected a number from %u to %u",
                         text, least, most);
    *ret_n = (uint32_t)n;
    return true;
}

static bool read_moves(struct plan_order *order, const char *text, GError **error)
{
    return read_number(text, 1, PLAN_MOVES_MAX, &order->moves_max, error);
}

static bool read_per_owner(struct plan_order *order, const char *text, GError **error)
{
    return read_number(text, 0, PLAN_MOVES_MAX, &order->budgets.per_owner, error);
}

static bool read_per_node(struct plan_order *order, const char *text, GError **error)
{
    return read_number(text, 0, PLAN_MOVES_MAX, &order->budgets.per_node, error);
}

static bool read_per_namespace(struct plan_order *order, const char *text, GError **error)
{
    return read_number(text, 0, PLAN_MOVES_MAX, &order->budgets.per_namespace, error);
}

static bool read_per_hour(struct plan_order *order, const char *text, GError **error)
{
    return read_number(text, 0, HOUR_MAX, &order->budgets.per_hour, error);
}

static bool read_timeout(struct plan_order *order, const char *text, GError **error)
{
    return plan_aim_read_time(text, &order->timeout_ms, error) &&
           (order->timeout_ms > 0 ||
            fail_with(error, GPULEDGER_ERROR_INVALID, "'%s': expected more", text));
}

static const struct {
    const char *key;
    bool (*read)(struct plan_order *order, const char *text, GError **error);
} keys[] = {
    {"max-moves", read_moves},       {"max-per-workload", read_per_owner},
    {"max-per-node", read_per_node}, {"max-per-namespace", read_per_namespace},
    {"max-per-hour", read_per_hour}, {"window", read_window},
    {"evict-timeout", read_timeout},
};

/* A word that is not known may be a bound that somebody relies on. */
static bool read_pair(struct plan_order *order, const char *key, const char *value, GError **error)
{
    if (g_strv_contains(plan_aim_words, key))
        return plan_aim_read(&order->aim, key, value, error) ||
               fail_within(error, "data, '%s': ", key);
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!g_str_equal(keys[i].key, key))
            continue;
        return keys[i].read(order, value, error) || fail_within(error, "data, '%s': ", key);
    }
    return fail_with(error, GPULEDGER_ERROR_INVALID, "data, '%s': there is no such word", key);
}

static size_t size_of(const struct string_pairs *data)
{
    size_t size = 0;

    for (size_t i = 0; i < data->n; i++)
        size += strlen(data->items[i].key) + strlen(data->items[i].value);
    return size;
}

static bool read_data(struct plan_order *order, const struct string_pairs *data, GError **error)
{
    if (size_of(data) > PLAN_ORDER_DATA_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT, "data: more than %d bytes",
                         PLAN_ORDER_DATA_MAX);
    for (size_t i = 0; i < data->n; i++) {
        if (!read_pair(order, data->items[i].key, data->items[i].value, error))
            return false;
    }
    g_autofree char *words = g_strjoinv("', '", (char **)plan_aim_words);
    if (plan_aim_count(&order->aim) != 1)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "data: expected one of '%s'", words);
    return !order->aim.waits || order->budgets.per_hour > 0 ||
           fail_with(error, GPULEDGER_ERROR_INVALID,
                     "data: 'waiting' goes on for ever, and needs 'max-per-hour'");
}

static gint compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The same for the same pairs in whatever order; keys have no such bytes. */
static char *digest_of(const struct string_pairs *data)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

    for (size_t i = 0; i < data->n; i++)
        g_ptr_array_add(lines, g_strdup_printf("%s\n%s", data->items[i].key, data->items[i].value));
    g_ptr_array_sort(lines, compare_lines);
    for (guint i = 0; i < lines->len; i++)
        g_checksum_update(sum, lines->pdata[i], (gssize)strlen(lines->pdata[i]) + 1);
    return g_strndup(g_checksum_get_string(sum), 16);
}

/* --- the object ------------------------------------------------------------------------------- */

struct fields {
    const char *ns, *name, *uid, *version, *created;
    struct string_pairs labels, annotations, data;
};
static const struct json_field fields[] = {
    JSON_FIELD_STRING(struct fields, ns, "metadata.namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, name, "metadata.name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, uid, "metadata.uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, version, "metadata.resourceVersion", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, created, "metadata.creationTimestamp", 0),
    JSON_FIELD_PAIRS(struct fields, labels, "metadata.labels", 0),
    JSON_FIELD_PAIRS(struct fields, annotations, "metadata.annotations", 0),
    JSON_FIELD_PAIRS(struct fields, data, "data", 0),
    JSON_FIELD_END,
};

struct plan_order *plan_order_decode(struct json_arena *arena, const cJSON *object, GError **error)
{
    struct fields read = {0};
    g_autoptr(GError) problem = NULL;

    if (!json_decode(arena, object, fields, &read, error))
        return NULL;
    struct plan_order *order = g_new0(struct plan_order, 1);
    const char *label = string_pairs_get(&read.labels, PLAN_ORDER_LABEL);
    order->ns = g_strdup(read.ns);
    order->name = g_strdup(read.name);
    order->uid = g_strdup(read.uid);
    order->version = g_strdup(read.version);
    order->created = g_strdup(read.created ? read.created : "");
    order->digest = digest_of(&read.data);
    order->status = g_strdup(string_pairs_get(&read.annotations, PLAN_STATUS_KEY));
    order->wanted = g_strcmp0(label, PLAN_ORDER_RUN) == 0;
    order->moves_max = MOVES;
    order->timeout_ms = TIMEOUT_MS;
    if (!read_data(order, &read.data, &problem))
        order->problem = g_strdup(problem->message);
    return order;
}
