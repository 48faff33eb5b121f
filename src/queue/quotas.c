/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/quotas.h"

#include "core/amount_sum.h"
#include "json/json.h"
#include "queue/holding.h"
#include "queue/share_amounts.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define LIMIT_MAX 1000000 /* GPUs */

struct limits {
    GHashTable *models; /* model -> GPUs, as share_amounts.h has them, an int64_t * */
    GHashTable *pools;  /* a set; empty: any */
};

struct mark {
    char *model, *pool;
};

struct quotas {
    GHashTable *namespaces; /* name -> struct limits * */
    char *text;             /* which says so, or NULL */
    GHashTable *nodes;      /* name -> struct mark * */
    struct resource_quotas *resources;
    struct elastic_quotas *elastic;
};

struct quota_room {
    const struct quotas *quotas;
    char *ns;
    const struct limits *limits; /* NULL: none by model */
    const struct request *request;
    struct resource_room *resources; /* NULL: none by ResourceQuotas */
    struct elastic_room *elastic;    /* NULL: none by elastic quotas */
    GHashTable *used;                /* model (the node's mark's) -> GPUs, an int64_t * */
};

static void limits_free(gpointer data)
{
    struct limits *limits = data;
    g_hash_table_unref(limits->models);
    g_hash_table_unref(limits->pools);
    g_free(limits);
}

static void mark_free(gpointer data)
{
    struct mark *mark = data;
    g_free(mark->model);
    g_free(mark->pool);
    g_free(mark);
}

static GHashTable *new_namespaces(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, limits_free);
}

struct quotas *quotas_new(void)
{
    struct quotas *quotas = g_new0(struct quotas, 1);

    quotas->namespaces = new_namespaces();
    quotas->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, mark_free);
    quotas->resources = resource_quotas_new();
    quotas->elastic = elastic_quotas_new();
    return quotas;
}

struct quotas *quotas_dup(const struct quotas *quotas)
{
    struct quotas *copy = quotas_new();

    g_hash_table_unref(copy->namespaces);
    copy->namespaces = g_hash_table_ref(quotas->namespaces); /* replaced, never changed */
    copy->text = g_strdup(quotas->text);
    resource_quotas_free(copy->resources);
    copy->resources = resource_quotas_dup(quotas->resources);
    elastic_quotas_free(copy->elastic);
    copy->elastic = elastic_quotas_dup(quotas->elastic);
    return copy;
}

void quotas_copy_node(struct quotas *quotas, const struct quotas *from, const char *node)
{
    const struct mark *mark = g_hash_table_lookup(from->nodes, node);

    if (mark)
        quotas_set_node(quotas, node, mark->model, mark->pool);
}

void quotas_free(struct quotas *quotas)
{
    g_hash_table_unref(quotas->namespaces);
    g_hash_table_unref(quotas->nodes);
    resource_quotas_free(quotas->resources);
    elastic_quotas_free(quotas->elastic);
    g_free(quotas->text);
    g_free(quotas);
}

struct resource_quotas *quotas_resources(struct quotas *quotas)
{
    return quotas->resources;
}

struct elastic_quotas *quotas_elastic(const struct quotas *quotas)
{
    return quotas->elastic;
}

/* --- reading -------------------------------------------------------------------------------- */

struct entry {
    struct string_pairs quota;
    const cJSON *pool;
};

static const struct json_field entry_fields[] = {
    JSON_FIELD_PAIRS(struct entry, quota, "quota", JSON_NUMBERS),
    JSON_FIELD_ARRAY(struct entry, pool, "pool", 0),
    JSON_FIELD_END,
};

static struct limits *read_limits(struct json_arena *arena, const cJSON *object, GError **error)
{
    struct limits *limits = g_new0(struct limits, 1);
    struct entry entry = {0};
    const cJSON *pool;

    limits->models = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    limits->pools = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (!json_decode(arena, object, entry_fields, &entry, error))
        goto fail;
    for (size_t i = 0; i < entry.quota.n; i++) {
        const struct string_pair *pair = &entry.quota.items[i];
        int64_t gpus;
        if (!quantity_parse(pair->value, &gpus, error)) {
            g_prefix_error(error, "model '%s': ", pair->key);
            goto fail;
        }
        gpus = MIN(gpus, LIMIT_MAX) * SHARE_UNIT;
        g_hash_table_insert(limits->models, g_strdup(pair->key), g_memdup2(&gpus, sizeof gpus));
    }
    cJSON_ArrayForEach(pool, entry.pool) {
        if (cJSON_IsString(pool))
            g_hash_table_add(limits->pools, g_strdup(pool->valuestring));
    }
    return limits;

fail:
    limits_free(limits);
    return NULL;
}

bool quotas_set(struct quotas *quotas, const char *text, bool *ret_changed, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GHashTable) namespaces = new_namespaces();
    const cJSON *document = NULL, *item;

    if (text && !(document = json_parse(arena, text, strlen(text), error)))
        return false;
    if (document && !cJSON_IsObject(document)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "expected an object of namespaces");
        return false;
    }
    cJSON_ArrayForEach(item, document) {
        struct limits *limits = read_limits(arena, item, error);
        if (!limits) {
            g_prefix_error(error, "namespace '%s': ", item->string);
            return false;
        }
        g_hash_table_insert(namespaces, g_strdup(item->string), limits);
    }
    g_hash_table_unref(quotas->namespaces);
    quotas->namespaces = g_steal_pointer(&namespaces);
    *ret_changed = g_strcmp0(quotas->text, text) != 0;
    g_free(quotas->text);
    quotas->text = g_strdup(text);
    return true;
}

void quotas_set_node(struct quotas *quotas, const char *node, const char *model, const char *pool)
{
    if (!model && !pool) {
        g_hash_table_remove(quotas->nodes, node);
        return;
    }
    struct mark *mark = g_new0(struct mark, 1);
    mark->model = g_strdup(model);
    mark->pool = g_strdup(pool);
    g_hash_table_replace(quotas->nodes, g_strdup(node), mark);
}

/* --- asking --------------------------------------------------------------------------------- */

/* Of the dialect whose quotas they are compute alone counts, as with
 * gpu-quota-admission; of others the larger part, of memory or of compute. */
static int64_t measure_gpus(const struct node *node, const struct share *share, const void *data)
{
    const struct dialect *dialect = data;

    if (dialect && dialect->quotas_key)
        return share->exclusive ? SHARE_UNIT : share->core * (SHARE_UNIT / CORE_WHOLE);
    return share_gpus(node, share);
}

static int64_t size_of(const struct node *node, const struct dialect *dialect,
                       const struct share *shares, uint32_t n_shares)
{
    return holding_peak(&(struct holding_query){node, shares, n_shares, measure_gpus, dialect});
}

static int64_t size_of_all(const struct allocation *allocation)
{
    return size_of(allocation->node, allocation->dialect, allocation->shares, allocation->n_shares);
}

/* As it was placed there; or, `placement` NULL, on the node's largest cards. */
static int64_t size_wanted(const struct quota_room *room, const struct node *node,
                           const struct placement *placement)
{
    struct share shares[REQUEST_ASKS_MAX];

    if (placement)
        return size_of(node, placement->request->dialect, placement->shares, placement->n_shares);
    return size_of(node, room->request->dialect, shares, holding_ask(room->request, shares));
}

struct count {
    struct quota_room *room;
    const char *ns;
};

static void count_allocation(struct allocation *allocation, void *data)
{
    const struct count *count = data;
    GHashTable *nodes = count->room->quotas->nodes;

    if (!g_str_equal(allocation->ns, count->ns))
        return;
    const struct mark *mark = g_hash_table_lookup(nodes, allocation->node->name);
    if (!mark || !mark->model)
        return;
    int64_t *used = g_hash_table_lookup(count->room->used, mark->model);
    if (!used) {
        used = g_new0(int64_t, 1);
        g_hash_table_insert(count->room->used, mark->model, used);
    }
    *used = amount_add(*used, size_of_all(allocation));
}

struct quota_room *quotas_room(const struct quotas *quotas, struct ledger *ledger,
                               const struct pod_view *pod, const struct request *request)
{
    const char *ns = pod->ns ? pod->ns : "";
    const struct limits *limits = g_hash_table_lookup(quotas->namespaces, ns);
    struct resource_room *resources =
        resource_quotas_room(quotas->resources, ledger, ns, request);
    struct elastic_room *elastic = elastic_quotas_room(quotas->elastic, ledger, pod, request);

    if (!limits && !resources && !elastic)
        return NULL;
    struct quota_room *room = g_new0(struct quota_room, 1);
    room->quotas = quotas;
    room->ns = g_strdup(ns);
    room->limits = limits;
    room->request = request;
    room->resources = resources;
    room->elastic = elastic;
    room->used = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    if (limits)
        ledger_each(ledger, count_allocation, &(struct count){room, ns});
    return room;
}

void quota_room_take(struct quota_room *room, struct allocation *allocation)
{
    if (room->limits)
        count_allocation(allocation, &(struct count){room, allocation->ns});
    resource_room_take(room->resources, allocation);
    elastic_room_take(room->elastic, allocation);
}

void quota_room_free(struct quota_room *room)
{
    if (!room)
        return;
    g_free(room->ns);
    g_hash_table_unref(room->used);
    resource_room_free(room->resources);
    elastic_room_free(room->elastic);
    g_free(room);
}

static void count_on(const struct quota_room *room, const struct node *node,
                     const struct placement *placement, struct quota_count *ret_count)
{
    const struct mark *mark = g_hash_table_lookup(room->quotas->nodes, node->name);

    *ret_count = (struct quota_count){.model = mark ? mark->model : NULL,
                                      .wanted = size_wanted(room, node, placement)};
    if (!ret_count->model)
        return;
    const int64_t *limit = g_hash_table_lookup(room->limits->models, mark->model);
    const int64_t *used = g_hash_table_lookup(room->used, mark->model);
    ret_count->pooled = g_hash_table_size(room->limits->pools) == 0 ||
                        (mark->pool && g_hash_table_contains(room->limits->pools, mark->pool));
    ret_count->limited = limit != NULL;
    ret_count->limit = limit ? *limit : 0;
    ret_count->used = used ? *used : 0;
}

void quota_room_count(const struct quota_room *room, const struct node *node,
                      struct quota_count *ret_count)
{
    count_on(room, node, NULL, ret_count);
}

const struct resource_room *quota_room_resources(const struct quota_room *room)
{
    return room->resources;
}

const struct elastic_room *quota_room_elastic(const struct quota_room *room)
{
    return room->elastic;
}

static bool is_within_limits(const struct quota_room *room, const struct node *node,
                             const struct placement *placement)
{
    struct quota_count count;

    if (!room->limits)
        return true;
    count_on(room, node, placement, &count);
    return count.pooled && count.limited && count.used + count.wanted <= count.limit;
}

enum reason quota_room_refuse(const struct quota_room *room, const struct node *node,
                              const struct placement *placement)
{
    if (!room)
        return REASON_NONE;
    if (!is_within_limits(room, node, placement))
        return REASON_QUOTA;
    if (!resource_room_allows(room->resources, node, placement, NULL))
        return REASON_RESOURCE_QUOTA;
    return elastic_room_refuse(room->elastic, node, placement, NULL, NULL);
}

/* --- what would be given back --------------------------------------------------------------- */

bool quota_room_lacks(const struct quota_room *room, const struct node *node,
                      int64_t ret_lacks[QUOTA_AMOUNTS_MAX])
{
    struct quota_count count;

    ret_lacks[0] = 0;
    if (elastic_room_is_closed(room->elastic))
        return false;
    if (room->limits) {
        quota_room_count(room, node, &count);
        if (!count.pooled || !count.limited)
            return false;
        ret_lacks[0] = MAX(count.used + count.wanted - count.limit, 0);
    }
    resource_room_lacks(room->resources, node, &ret_lacks[1]);
    elastic_room_lacks(room->elastic, node, &ret_lacks[1 + RESOURCE_AMOUNTS]);
    return true;
}

void quota_room_gives(const struct quota_room *room, const struct allocation *allocation,
                      int64_t ret_amounts[QUOTA_AMOUNTS_MAX])
{
    const bool own = g_str_equal(allocation->ns, room->ns);

    ret_amounts[0] = own && room->limits ? size_of_all(allocation) : 0;
    resource_room_gives(own ? room->resources : NULL, allocation, &ret_amounts[1]);
    elastic_room_gives(room->elastic, allocation, &ret_amounts[1 + RESOURCE_AMOUNTS]);
}

/* --- for people ----------------------------------------------------------------------------- */

void quotas_each(const struct quotas *quotas,
                 void (*visit)(const struct model_limit *limit, void *data), void *data)
{
    GHashTableIter namespaces, models;
    gpointer ns, limits, model, limit;

    g_hash_table_iter_init(&namespaces, quotas->namespaces);
    while (g_hash_table_iter_next(&namespaces, &ns, &limits)) {
        g_hash_table_iter_init(&models, ((const struct limits *)limits)->models);
        while (g_hash_table_iter_next(&models, &model, &limit))
            visit(&(struct model_limit){ns, model, share_thousandths(*(const int64_t *)limit)},
                  data);
    }
}

int64_t quotas_count(const struct quotas *quotas, const struct allocation *allocation,
                     const char *model)
{
    const struct mark *mark = g_hash_table_lookup(quotas->nodes, allocation->node->name);

    return mark && g_strcmp0(mark->model, model) == 0 ? size_of_all(allocation) : 0;
}

const struct resource_quotas *quotas_see_resources(const struct quotas *quotas)
{
    return quotas->resources;
}
