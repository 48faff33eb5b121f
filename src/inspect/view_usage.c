/* SPDX-License-Identifier: Apache-2.0 */
/* Who has how much of the GPUs, in cards, whatever the dialect: the most first. */
#include "core/amount_sum.h"
#include "core/bytes.h"
#include "core/ledger.h"
#include "inspect/views.h"
#include "policy/room.h"
#include "quota/holding.h"
#include "quota/share_amounts.h"
#include "store/node_walk.h"

#include <gpuledger/fragmentation.h>
#include <string.h>

#define CARD 1000 /* thousandths */
#define UNKNOWN_MODEL "unknown"

/* Amounts are thousandths of a card; `used` of a namespace is as share_amounts.h has it. */
struct usage {
    int64_t size, used, useless, out;
    int64_t memory; /* bytes that are handed out */
    guint pods, waiting;
};

struct row {
    char *name;
    struct usage usage;
};

struct survey {
    enum usage_by by;
    const struct demand *demand;
    GHashTable *left_out; /* a set of names of nodes */
    GHashTable *rows;     /* name -> struct row */
    struct usage all;
    char *oldest, *oldest_pod; /* when it was made; NULL: nobody waits */
};

static void row_free(gpointer data)
{
    g_free(((struct row *)data)->name);
    g_free(data);
}

static struct usage *row_of(struct survey *survey, const char *name)
{
    struct row *row = g_hash_table_lookup(survey->rows, name);

    if (!row) {
        row = g_new0(struct row, 1);
        row->name = g_strdup(name);
        g_hash_table_insert(survey->rows, row->name, row);
    }
    return &row->usage;
}

/* --- cards and devices ------------------------------------------------------------------------ */

static int64_t part(int64_t of, int64_t whole)
{
    return whole > 0 ? CLAMP(of * CARD / whole, 0, CARD) : 0;
}

/* As the page has it: of memory or compute, whichever is more; all, if its holder tolerates no other. */
static struct usage measure_card(const struct node *node, const struct card *card, bool in_service)
{
    const int64_t held = MIN(card->memory_used + node->unplaced_memory, card->memory);
    struct usage usage = {.size = CARD, .memory = held};

    usage.used = card->exclusive > 0
                     ? CARD
                     : MAX(part(held, card->memory), part(card->core_used, card->core));
    if (!in_service || !card->healthy || card->closure != CLOSURE_NONE)
        usage.out = CARD - usage.used;
    return usage;
}

static struct usage measure_pool(const struct pool *pool, bool in_service)
{
    const double size = pool_device_size(pool) * CARD;
    const int32_t used = MIN(pool->used, pool->capacity);
    struct usage usage = {
        .size = (int64_t)(pool->capacity * size + 0.5),
        .used = (int64_t)(used * size + 0.5),
        .memory = pool->memory * used,
    };

    if (!in_service)
        usage.out = usage.size - usage.used;
    return usage;
}

static void add(struct usage *sum, const struct usage *one)
{
    sum->size += one->size;
    sum->used += one->used;
    sum->useless += one->useless;
    sum->out += one->out;
    sum->memory += one->memory;
    sum->pods += one->pods;
}

static void add_device(struct survey *survey, struct usage *node, const struct usage *device,
                       const char *model)
{
    add(node, device);
    if (survey->by == USAGE_MODELS)
        add(row_of(survey, model ? model : UNKNOWN_MODEL), device);
}

/* --- pods ------------------------------------------------------------------------------------- */

static int64_t measure_gpus(const struct node *node, const struct share *share, const void *data)
{
    return share_gpus(node, share);
}

static int64_t measure_kib(const struct node *node, const struct share *share, const void *data)
{
    return share_kib(node, share);
}

static void add_pods(struct survey *survey, const struct node *node)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *one = g_ptr_array_index(node->allocations, i);
        struct usage *usage = row_of(survey, one->ns);
        struct holding_query query = {node, one->shares, one->n_shares, measure_gpus};
        usage->used = amount_add(usage->used, holding_peak(&query));
        query.measure = measure_kib;
        usage->memory =
            amount_add(usage->memory, MIN(holding_peak(&query), AMOUNT_SUM_MAX / KIB) * KIB);
        usage->pods++;
    }
}

/* Under the lock. */
static void add_node(const struct node *node, void *data)
{
    struct survey *survey = data;
    const bool in_service = node->present && !node->cordoned && !node->paused &&
                            !g_hash_table_contains(survey->left_out, node->name);
    struct usage sum = {.pods = node->allocations->len};

    if (node->n_cards == 0 && node->n_pools == 0 && sum.pods == 0)
        return;
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct usage card = measure_card(node, &node->cards[i], in_service);
        add_device(survey, &sum, &card, node->cards[i].model);
    }
    for (int32_t i = 0; i < node->n_pools; i++) {
        const struct usage pool = measure_pool(&node->pools[i], in_service);
        add_device(survey, &sum, &pool, node->pools[i].model);
    }
    if (in_service)
        sum.useless = MIN(fragmentation_of(node, survey->demand), sum.size - sum.used - sum.out);
    add(&survey->all, &sum);
    if (survey->by == USAGE_NODES)
        add(row_of(survey, node->name), &sum);
    if (survey->by == USAGE_NAMESPACES)
        add_pods(survey, node);
}

/* Under the lock; there are only so many. */
static bool add_waiting(const struct arrivals_row *row, void *data)
{
    struct survey *survey = data;

    if (row->created && (!survey->oldest || strcmp(row->created, survey->oldest) < 0)) {
        g_free(survey->oldest);
        g_free(survey->oldest_pod);
        survey->oldest = g_strdup(row->created);
        survey->oldest_pod = g_strdup(row->title);
    }
    if (survey->by == USAGE_NAMESPACES)
        row_of(survey, row->ns)->waiting++;
    return ++survey->all.waiting < VIEW_USAGE_WAITING;
}

/* --- writing ---------------------------------------------------------------------------------- */

static gint compare_rows(gconstpointer a, gconstpointer b)
{
    const struct row *left = *(struct row *const *)a, *right = *(struct row *const *)b;

    if (left->usage.used != right->usage.used)
        return left->usage.used > right->usage.used ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Namespaces have no cards of their own, so that of them only what they hold is told. */
static void write_usage(struct json_writer *writer, const struct usage *usage, bool has_cards)
{
    if (has_cards) {
        json_key_int(writer, "gpuThousandths", usage->size);
        json_key_int(writer, "usableGpuThousandths",
                     usage->size - usage->used - usage->out - usage->useless);
        json_key_int(writer, "uselessGpuThousandths", usage->useless);
        json_key_int(writer, "outOfServiceGpuThousandths", usage->out);
    }
    json_key_int(writer, "usedGpuThousandths",
                 has_cards ? usage->used : share_thousandths(usage->used));
    json_key_int(writer, "memoryUsedBytes", usage->memory);
}

static void write_row(struct json_writer *writer, const struct row *row, enum usage_by by)
{
    json_begin_object(writer);
    json_key_string(writer, "name", row->name);
    write_usage(writer, &row->usage, by != USAGE_NAMESPACES);
    if (by != USAGE_MODELS)
        json_key_int(writer, "pods", row->usage.pods);
    if (by == USAGE_NAMESPACES)
        json_key_int(writer, "waiting", row->usage.waiting);
    json_end_object(writer);
}

static GPtrArray *sort_rows(const struct survey *survey)
{
    GPtrArray *rows = g_ptr_array_new();
    GHashTableIter iter;
    gpointer row;

    g_hash_table_iter_init(&iter, survey->rows);
    while (g_hash_table_iter_next(&iter, NULL, &row))
        g_ptr_array_add(rows, row);
    g_ptr_array_sort(rows, compare_rows);
    return rows;
}

static void write_survey(const struct survey *survey, guint waiting, GString *reply)
{
    g_autoptr(GPtrArray) rows = sort_rows(survey);
    struct json_writer writer;

    json_writer_init(&writer, reply);
    json_begin_object(&writer);
    json_key_object(&writer, "cluster");
    write_usage(&writer, &survey->all, true);
    json_key_int(&writer, "pods", survey->all.pods);
    json_key_int(&writer, "waiting", waiting);
    json_key_string(&writer, "oldestWaiting", survey->oldest_pod);
    json_key_string(&writer, "oldestCreated", survey->oldest);
    json_end_object(&writer);
    json_key_string(&writer, "by", usage_names[survey->by]);
    json_key_array(&writer, "rows");
    for (guint i = 0; i < MIN(rows->len, VIEW_USAGE_ROWS); i++)
        write_row(&writer, rows->pdata[i], survey->by);
    json_end_array(&writer);
    json_key_int(&writer, "total", rows->len);
    json_end_object(&writer);
}

const char *const usage_names[] = {
    [USAGE_NAMESPACES] = "namespaces",
    [USAGE_NODES] = "nodes",
    [USAGE_MODELS] = "models",
    NULL,
};

void view_usage(struct store *store, enum usage_by by, GString *reply)
{
    g_autoptr(GHashTable) left_out = view_left_out(store);
    g_autoptr(GHashTable) rows = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, row_free);
    struct demand *demand = store_demand_copy(store);
    struct survey survey = {by, demand, left_out, rows};

    const guint waiting = store_arrivals_each(store, add_waiting, &survey);
    node_walk_all(store, add_node, &survey);
    write_survey(&survey, waiting, reply);
    demand_free(demand);
    g_free(survey.oldest);
    g_free(survey.oldest_pod);
}
