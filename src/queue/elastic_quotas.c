/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/elastic_quotas.h"

#include "core/bytes.h"
#include "core/ledger.h"
#include "queue/holding.h"
#include "queue/share_amounts.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define KEY_GPUS "gpuledger.io/gpus"
#define KEY_MEMORY "gpuledger.io/gpu-memory"
#define UNIT 1000 /* thousandths */

/* One key of one object. */
struct limit {
    const char *key;  /* interned */
    int64_t min, max; /* -1: not said */
};

struct quota {
    bool elastic;
    char *ns, *name;
    uint32_t generation;
    GArray *limits; /* struct limit */
};

/* A namespace with quotas, by key. */
struct space {
    char *ns;
    int64_t min[ELASTIC_KEYS_MAX], max[ELASTIC_KEYS_MAX];
    int64_t used[ELASTIC_KEYS_MAX], waiting[ELASTIC_KEYS_MAX];
};

/* What the pods of one node hold, as it was in one version. */
struct tally {
    uint64_t version, round;
    GArray *parts; /* struct part */
};
struct part {
    struct space *space;
    int64_t amounts[ELASTIC_KEYS_MAX];
};

/* A pod of which no watch has said that it has a node. It may hold something already: what it asks for
 * counts no more then. */
struct waiter {
    const char *uid; /* the table's */
    char *ns;
    struct request *request;
    struct space *space; /* what it asks for counts there; NULL: not counted yet, or of no quota */
    int64_t amounts[ELASTIC_KEYS_MAX];
};

struct elastic_quotas {
    GPtrArray *all;             /* struct quota * */
    GPtrArray *keys;            /* const char *, interned: those that some quota names */
    GTree *spaces;              /* namespace -> struct space * */
    bool min[ELASTIC_KEYS_MAX]; /* somebody has one */
    GHashTable *tallies;        /* name of a node -> struct tally * */
    GHashTable *waiters;        /* uid -> struct waiter * */
    GHashTable *fresh; /* a set of struct waiter *: not counted yet, or not while they hold */
    uint64_t round;
};

struct elastic_room {
    struct elastic_quotas *quotas;
    const struct request *request;
    const struct space *space;
    int64_t lendable[ELASTIC_KEYS_MAX];
    int64_t taken[ELASTIC_KEYS_MAX]; /* since it was measured */
};

/* --- making ----------------------------------------------------------------------------------- */

static void quota_free(gpointer data)
{
    struct quota *quota = data;

    g_free(quota->ns);
    g_free(quota->name);
    g_array_unref(quota->limits);
    g_free(quota);
}

static void space_free(gpointer data)
{
    g_free(((struct space *)data)->ns);
    g_free(data);
}

static void tally_free(gpointer data)
{
    g_array_unref(((struct tally *)data)->parts);
    g_free(data);
}

static void waiter_free(gpointer data)
{
    struct waiter *waiter = data;

    g_free(waiter->ns);
    request_free(waiter->request);
    g_free(waiter);
}

static gint compare_names(gconstpointer a, gconstpointer b, gpointer data)
{
    return strcmp(a, b);
}

struct elastic_quotas *elastic_quotas_new(void)
{
    struct elastic_quotas *quotas = g_new0(struct elastic_quotas, 1);

    quotas->all = g_ptr_array_new_with_free_func(quota_free);
    quotas->keys = g_ptr_array_new();
    quotas->spaces = g_tree_new_full(compare_names, NULL, NULL, space_free);
    quotas->tallies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, tally_free);
    quotas->waiters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, waiter_free);
    quotas->fresh = g_hash_table_new(NULL, NULL);
    return quotas;
}

void elastic_quotas_free(struct elastic_quotas *quotas)
{
    g_hash_table_unref(quotas->fresh);
    g_hash_table_unref(quotas->waiters);
    g_hash_table_unref(quotas->tallies);
    g_tree_unref(quotas->spaces);
    g_ptr_array_unref(quotas->keys);
    g_ptr_array_unref(quotas->all);
    g_free(quotas);
}

/* --- reading ---------------------------------------------------------------------------------- */

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

static struct limit *limit_of(GArray *limits, const char *key)
{
    for (guint i = 0; i < limits->len; i++) {
        struct limit *limit = &g_array_index(limits, struct limit, i);
        if (g_str_equal(limit->key, key))
            return limit;
    }
    g_array_append_val(limits, ((struct limit){g_intern_string(key), -1, -1}));
    return &g_array_index(limits, struct limit, limits->len - 1);
}

/* As struct elastic_count has it. */
static bool read_amount(const char *key, const char *text, int64_t *ret_amount, GError **error)
{
    int64_t units;

    if (g_str_equal(key, KEY_MEMORY)) {
        if (!quantity_parse(text, &units, error))
            return false;
        *ret_amount = units / KIB;
        return true;
    }
    if (!quantity_parse(text, &units, NULL))
        return quantity_parse_thousandths(text, ret_amount, error);
    *ret_amount = MIN(units, SHARE_AMOUNT_MAX / UNIT) * UNIT;
    return true;
}

double elastic_units(const char *key, int64_t amount)
{
    return g_str_equal(key, KEY_MEMORY) ? (double)amount * KIB : (double)amount / UNIT;
}

static bool read_amounts(const struct resource_quota_view *view, bool is_max, GArray *limits,
                         GError **error)
{
    const struct string_pairs *pairs = is_max ? &view->max : &view->min;

    for (size_t i = 0; i < pairs->n; i++) {
        const char *key = pairs->items[i].key;
        int64_t amount;
        if (!is_key(key))
            continue;
        if (!read_amount(key, pairs->items[i].value, &amount, error)) {
            g_prefix_error(
                error, "%s '%s/%s': %s of '%s': ", view->elastic ? "ElasticQuota" : "ResourceQuota",
                view->ns, view->name, is_max ? "max" : "min", key);
            return false;
        }
        struct limit *limit = limit_of(limits, key);
        *(is_max ? &limit->max : &limit->min) = MIN(amount, SHARE_AMOUNT_MAX);
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

    if (!read_amounts(view, false, limits, error) || !read_amounts(view, true, limits, error))
        return NULL;
    g_array_sort(limits, compare_limits);
    return g_steal_pointer(&limits);
}

static bool is_same(const GArray *one, const GArray *other)
{
    return one->len == other->len &&
           (one->len == 0 || memcmp(one->data, other->data, one->len * sizeof(struct limit)) == 0);
}

/* --- what follows from the quotas --------------------------------------------------------------- */

/* The key's place, or -1: there are too many. */
static int key_place(struct elastic_quotas *quotas, const char *key)
{
    for (guint i = 0; i < quotas->keys->len; i++) {
        if (quotas->keys->pdata[i] == key) /* interned */
            return (int)i;
    }
    if (quotas->keys->len == ELASTIC_KEYS_MAX)
        return -1;
    g_ptr_array_add(quotas->keys, (gpointer)key);
    return (int)quotas->keys->len - 1;
}

static struct space *space_of(struct elastic_quotas *quotas, const char *ns)
{
    struct space *space = g_tree_lookup(quotas->spaces, ns);

    if (space)
        return space;
    space = g_new0(struct space, 1);
    space->ns = g_strdup(ns);
    for (int i = 0; i < ELASTIC_KEYS_MAX; i++)
        space->max[i] = INT64_MAX;
    g_tree_insert(quotas->spaces, space->ns, space);
    return space;
}

static void uncount_waiters(struct elastic_quotas *quotas)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, quotas->waiters);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        ((struct waiter *)value)->space = NULL;
        g_hash_table_add(quotas->fresh, value);
    }
}

/* Quotas have changed: what was counted for others is forgotten. Of several quotas of a namespace mins
 * add up, and each max holds. */
static void rebuild(struct elastic_quotas *quotas)
{
    g_hash_table_remove_all(quotas->tallies);
    g_tree_remove_all(quotas->spaces);
    g_ptr_array_set_size(quotas->keys, 0);
    memset(quotas->min, 0, sizeof quotas->min);
    uncount_waiters(quotas);
    for (guint i = 0; i < quotas->all->len; i++) {
        const struct quota *quota = quotas->all->pdata[i];
        struct space *space = space_of(quotas, quota->ns);
        for (guint j = 0; j < quota->limits->len; j++) {
            const struct limit *limit = &g_array_index(quota->limits, struct limit, j);
            const int key = key_place(quotas, limit->key);
            if (key < 0)
                continue;
            quotas->min[key] |= limit->min > 0;
            space->min[key] += MAX(limit->min, 0);
            if (limit->max >= 0)
                space->max[key] = MIN(space->max[key], limit->max);
        }
    }
}

static struct quota *find(const struct elastic_quotas *quotas,
                          const struct resource_quota_view *view)
{
    for (guint i = 0; i < quotas->all->len; i++) {
        struct quota *quota = quotas->all->pdata[i];
        if (quota->elastic == view->elastic && g_str_equal(quota->name, view->name) &&
            g_str_equal(quota->ns, view->ns))
            return quota;
    }
    return NULL;
}

/* Whether those keys and the others' are too many. */
static bool has_room(const struct elastic_quotas *quotas, const GArray *limits)
{
    guint n = quotas->keys->len;

    for (guint i = 0; i < limits->len; i++)
        n += !g_ptr_array_find(quotas->keys, g_array_index(limits, struct limit, i).key, NULL);
    return n <= ELASTIC_KEYS_MAX && quotas->all->len < ELASTIC_QUOTAS_MAX;
}

bool elastic_quotas_set(struct elastic_quotas *quotas, const struct resource_quota_view *view,
                        uint32_t generation, bool *ret_changed, GError **error)
{
    struct quota *quota = find(quotas, view);
    g_autoptr(GArray) limits = read_limits(view, error);

    *ret_changed = false;
    if (quota)
        quota->generation = generation;
    if (!limits)
        return false;
    if (quota ? is_same(quota->limits, limits) : limits->len == 0)
        return true;
    if (!has_room(quotas, limits)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "quota '%s/%s': more than %d quotas, or %d resources in them", view->ns,
                    view->name, ELASTIC_QUOTAS_MAX, ELASTIC_KEYS_MAX);
        return false;
    }
    if (quota)
        g_ptr_array_remove(quotas->all, quota);
    if (limits->len > 0) {
        quota = g_new0(struct quota, 1);
        *quota = (struct quota){view->elastic, g_strdup(view->ns), g_strdup(view->name), generation,
                                g_steal_pointer(&limits)};
        g_ptr_array_add(quotas->all, quota);
    }
    *ret_changed = true;
    rebuild(quotas);
    return true;
}

void elastic_quotas_remove(struct elastic_quotas *quotas, const struct resource_quota_view *view)
{
    if (g_ptr_array_remove(quotas->all, find(quotas, view)))
        rebuild(quotas);
}

bool elastic_quotas_sweep(struct elastic_quotas *quotas, bool elastic, uint32_t generation)
{
    const guint before = quotas->all->len;

    for (guint i = quotas->all->len; i-- > 0;) {
        const struct quota *quota = quotas->all->pdata[i];
        if (quota->elastic == elastic && quota->generation != generation)
            g_ptr_array_remove_index(quotas->all, i);
    }
    if (quotas->all->len == before)
        return false;
    rebuild(quotas);
    return true;
}

struct elastic_quotas *elastic_quotas_dup(const struct elastic_quotas *quotas)
{
    struct elastic_quotas *copy = elastic_quotas_new();
    GHashTableIter iter;
    gpointer uid, value;

    for (guint i = 0; i < quotas->all->len; i++) {
        const struct quota *from = quotas->all->pdata[i];
        struct quota *quota = g_new0(struct quota, 1);
        *quota = (struct quota){from->elastic, g_strdup(from->ns), g_strdup(from->name),
                                from->generation, g_array_copy(from->limits)};
        g_ptr_array_add(copy->all, quota);
    }
    rebuild(copy);
    g_hash_table_iter_init(&iter, quotas->waiters);
    while (g_hash_table_iter_next(&iter, &uid, &value)) {
        const struct waiter *waiter = value;
        elastic_quotas_await(copy, uid, waiter->ns, waiter->request);
    }
    return copy;
}

/* --- measuring ---------------------------------------------------------------------------------- */

struct measuring {
    const struct dialect *dialect;
    const char *key;
};

static int64_t measure(const struct node *node, const struct share *share, const void *data)
{
    const struct measuring *measuring = data;

    if (g_str_equal(measuring->key, KEY_GPUS))
        return share_gpus(node, share);
    if (g_str_equal(measuring->key, KEY_MEMORY))
        return share_kib(node, share);
    return measuring->dialect ? share_units(node, share, measuring->dialect, measuring->key) : 0;
}

static int64_t amount_of(const struct elastic_quotas *quotas, guint key,
                         const struct holding_query *of, const struct dialect *dialect)
{
    const struct measuring measuring = {dialect, quotas->keys->pdata[key]};
    struct holding_query query = *of;

    query.measure = measure;
    query.data = &measuring;
    return MIN(holding_peak(&query), SHARE_AMOUNT_MAX);
}

/* --- counting ----------------------------------------------------------------------------------- */

static struct part *part_of(struct tally *tally, struct space *space)
{
    for (guint i = 0; i < tally->parts->len; i++) {
        struct part *part = &g_array_index(tally->parts, struct part, i);
        if (part->space == space)
            return part;
    }
    g_array_append_val(tally->parts, (struct part){space});
    return &g_array_index(tally->parts, struct part, tally->parts->len - 1);
}

static void add_parts(const struct elastic_quotas *quotas, const struct tally *tally, int sign)
{
    for (guint i = 0; i < tally->parts->len; i++) {
        const struct part *part = &g_array_index(tally->parts, struct part, i);
        for (guint key = 0; key < quotas->keys->len; key++)
            part->space->used[key] += sign * part->amounts[key];
    }
}

static void uncount(struct elastic_quotas *quotas, struct waiter *waiter)
{
    g_hash_table_remove(quotas->fresh, waiter);
    for (guint key = 0; waiter->space && key < quotas->keys->len; key++)
        waiter->space->waiting[key] -= waiter->amounts[key];
    waiter->space = NULL;
}

/* Whoever holds something waits no more, until it holds nothing. */
static void meet(struct elastic_quotas *quotas, const struct allocation *allocation)
{
    struct waiter *waiter = g_hash_table_lookup(quotas->waiters, allocation->uid);

    if (waiter) {
        uncount(quotas, waiter);
        g_hash_table_add(quotas->fresh, waiter);
    }
}

static void count_node(struct elastic_quotas *quotas, const struct node *node, struct tally *tally)
{
    add_parts(quotas, tally, -1);
    g_array_set_size(tally->parts, 0);
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *one = node->allocations->pdata[i];
        meet(quotas, one);
        struct space *space = g_tree_lookup(quotas->spaces, one->ns);
        const struct holding_query of = {node, one->shares, one->n_shares};
        struct part *part = space ? part_of(tally, space) : NULL;
        for (guint key = 0; part && key < quotas->keys->len; key++)
            part->amounts[key] += amount_of(quotas, key, &of, one->dialect);
    }
    add_parts(quotas, tally, 1);
    tally->version = node_own(node)->version;
}

static gboolean is_over(gpointer name, gpointer value, gpointer data)
{
    const struct elastic_quotas *quotas = data;

    if (((const struct tally *)value)->round == quotas->round)
        return FALSE;
    add_parts(quotas, value, -1);
    return TRUE;
}

/* Only nodes that have changed since are looked at. */
static void count_used(struct elastic_quotas *quotas, struct ledger *ledger)
{
    const GPtrArray *nodes = ledger_nodes(ledger);

    quotas->round++;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        struct tally *tally = g_hash_table_lookup(quotas->tallies, node->name);
        if (!tally) {
            tally = g_new0(struct tally, 1);
            tally->parts = g_array_new(FALSE, FALSE, sizeof(struct part));
            g_hash_table_insert(quotas->tallies, g_strdup(node->name), tally);
        }
        if (tally->version != node_own(node)->version)
            count_node(quotas, node, tally);
        tally->round = quotas->round;
    }
    if (g_hash_table_size(quotas->tallies) > nodes->len)
        g_hash_table_foreach_remove(quotas->tallies, is_over, quotas);
}

/* A node on which the pod may be, for units and sizes that only nodes know. */
static const struct node *find_example(struct ledger *ledger, const struct request *request)
{
    const GPtrArray *nodes = ledger_nodes(ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->present &&
            (node->dialect == request->dialect || node_offers(node, request->dialect)))
            return node;
    }
    return NULL;
}

/* After count_used: whoever holds something counts there. */
static void count_waiters(struct elastic_quotas *quotas, struct ledger *ledger)
{
    struct share shares[REQUEST_ASKS_MAX];
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, quotas->fresh);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        struct waiter *waiter = value;
        if (ledger_get(ledger, waiter->uid))
            continue;
        g_hash_table_iter_remove(&iter);
        const struct node *node = find_example(ledger, waiter->request);
        waiter->space = node ? g_tree_lookup(quotas->spaces, waiter->ns) : NULL;
        const struct holding_query of = {node, shares, holding_ask(waiter->request, shares)};
        for (guint key = 0; waiter->space && key < quotas->keys->len; key++) {
            waiter->amounts[key] = amount_of(quotas, key, &of, waiter->request->dialect);
            waiter->space->waiting[key] += waiter->amounts[key];
        }
    }
}

bool elastic_quotas_forget(struct elastic_quotas *quotas, const char *uid)
{
    struct waiter *waiter = g_hash_table_lookup(quotas->waiters, uid);
    const bool limited = waiter && g_tree_lookup(quotas->spaces, waiter->ns);

    if (!waiter)
        return false;
    uncount(quotas, waiter);
    g_hash_table_remove(quotas->waiters, uid);
    return limited;
}

void elastic_quotas_await(struct elastic_quotas *quotas, const char *uid, const char *ns,
                          const struct request *request)
{
    struct waiter *waiter = g_new0(struct waiter, 1);

    elastic_quotas_forget(quotas, uid);
    waiter->ns = g_strdup(ns);
    waiter->request = request_dup(request);
    waiter->uid = g_strdup(uid);
    g_hash_table_insert(quotas->waiters, (gpointer)waiter->uid, waiter);
    g_hash_table_add(quotas->fresh, waiter);
}

/* --- asking ------------------------------------------------------------------------------------- */

struct lending {
    const struct elastic_quotas *quotas;
    const struct space *but;
    int64_t *left; /* by key */
};

/* What another namespace holds, or needs of its own, is not there to be lent. */
static gboolean leave(gpointer ns, gpointer value, gpointer data)
{
    const struct space *space = value;
    const struct lending *lending = data;

    for (guint key = 0; key < lending->quotas->keys->len; key++) {
        lending->left[key] += space->min[key];
        if (space != lending->but) {
            const int64_t needed = MIN(space->min[key], space->used[key] + space->waiting[key]);
            lending->left[key] -= MAX(space->used[key], needed);
        }
    }
    return FALSE;
}

static void find_lendable(const struct elastic_quotas *quotas, const struct space *space,
                          int64_t *ret_lendable)
{
    const struct lending lending = {quotas, space, ret_lendable};

    memset(ret_lendable, 0, ELASTIC_KEYS_MAX * sizeof *ret_lendable);
    g_tree_foreach(quotas->spaces, leave, (gpointer)&lending);
    for (guint key = 0; key < quotas->keys->len; key++) {
        if (!quotas->min[key])
            ret_lendable[key] = INT64_MAX;
    }
}

struct elastic_room *elastic_quotas_room(struct elastic_quotas *quotas, struct ledger *ledger,
                                         const char *ns, const struct request *request)
{
    const struct space *space = g_tree_lookup(quotas->spaces, ns);

    if (!space)
        return NULL;
    struct elastic_room *room = g_new0(struct elastic_room, 1);
    count_used(quotas, ledger);
    count_waiters(quotas, ledger);
    room->quotas = quotas;
    room->request = request;
    room->space = space;
    find_lendable(quotas, space, room->lendable);
    return room;
}

void elastic_room_free(struct elastic_room *room)
{
    g_free(room);
}

void elastic_room_take(struct elastic_room *room, const struct allocation *allocation)
{
    const struct holding_query of = {allocation->node, allocation->shares, allocation->n_shares};

    for (guint key = 0; room && key < room->quotas->keys->len; key++)
        room->taken[key] += amount_of(room->quotas, key, &of, allocation->dialect);
}

static struct elastic_count count_of(const struct elastic_quotas *quotas, const struct space *space,
                                     const int64_t *lendable, guint key)
{
    return (struct elastic_count){
        .ns = space->ns,
        .key = quotas->keys->pdata[key],
        .min = space->min[key],
        .max = space->max[key],
        .used = space->used[key],
        .waiting = space->waiting[key],
        .lendable = lendable[key],
    };
}

static enum reason refuse(const struct elastic_count *count, int64_t wanted)
{
    if (wanted == 0 || count->used + wanted <= count->min)
        return wanted > 0 && count->used + wanted > count->max ? REASON_QUOTA_MAX : REASON_NONE;
    if (count->used + wanted > count->max)
        return REASON_QUOTA_MAX;
    return count->used + wanted > count->lendable ? REASON_QUOTA_LENT : REASON_NONE;
}

enum reason elastic_room_refuse(const struct elastic_room *room, const struct node *node,
                                const struct placement *placement, struct elastic_count *ret_count,
                                int64_t *ret_wanted)
{
    struct share shares[REQUEST_ASKS_MAX];
    const struct request *request = placement ? placement->request : room ? room->request : NULL;
    struct holding_query of = {.node = node};

    if (!room)
        return REASON_NONE;
    of.shares = placement ? placement->shares : shares;
    of.n_shares = placement ? placement->n_shares : holding_ask(request, shares);
    for (guint key = 0; key < room->quotas->keys->len; key++) {
        struct elastic_count count = count_of(room->quotas, room->space, room->lendable, key);
        count.used += room->taken[key];
        const int64_t wanted = amount_of(room->quotas, key, &of, request->dialect);
        const enum reason reason = refuse(&count, wanted);
        if (reason == REASON_NONE)
            continue;
        if (ret_count)
            *ret_count = count;
        if (ret_wanted)
            *ret_wanted = wanted;
        return reason;
    }
    return REASON_NONE;
}

/* --- giving back -------------------------------------------------------------------------------- */

uint32_t elastic_quotas_n_keys(const struct elastic_quotas *quotas)
{
    return quotas->keys->len;
}

bool elastic_quotas_lends(const struct elastic_quotas *quotas, uint32_t key)
{
    return quotas->min[key];
}

bool elastic_quotas_sum(struct elastic_quotas *quotas, struct ledger *ledger, const char *ns,
                        struct elastic_sums *ret_sums)
{
    const struct space *space = g_tree_lookup(quotas->spaces, ns);

    if (!space)
        return false;
    count_used(quotas, ledger);
    memcpy(ret_sums->min, space->min, sizeof space->min);
    memcpy(ret_sums->max, space->max, sizeof space->max);
    memcpy(ret_sums->used, space->used, sizeof space->used);
    return true;
}

static void measure_all(const struct elastic_quotas *quotas, const struct holding_query *of,
                        const struct dialect *dialect, int64_t ret_amounts[ELASTIC_KEYS_MAX])
{
    memset(ret_amounts, 0, ELASTIC_KEYS_MAX * sizeof *ret_amounts);
    for (guint key = 0; key < quotas->keys->len; key++)
        ret_amounts[key] = amount_of(quotas, key, of, dialect);
}

void elastic_quotas_measure(const struct elastic_quotas *quotas,
                            const struct allocation *allocation,
                            int64_t ret_amounts[ELASTIC_KEYS_MAX])
{
    const struct holding_query of = {allocation->node, allocation->shares, allocation->n_shares};

    measure_all(quotas, &of, allocation->dialect, ret_amounts);
}

void elastic_quotas_foresee(const struct elastic_quotas *quotas, const struct node *node,
                            const struct request *request, int64_t ret_amounts[ELASTIC_KEYS_MAX])
{
    struct share shares[REQUEST_ASKS_MAX];
    const struct holding_query of = {node, shares, holding_ask(request, shares)};

    measure_all(quotas, &of, request->dialect, ret_amounts);
}

int64_t elastic_gpus(const struct allocation *allocation)
{
    const struct measuring measuring = {NULL, KEY_GPUS};

    return MIN(holding_peak(&(struct holding_query){allocation->node, allocation->shares,
                                                    allocation->n_shares, measure, &measuring}),
               SHARE_AMOUNT_MAX);
}

/* --- for people --------------------------------------------------------------------------------- */

struct visiting {
    struct elastic_quotas *quotas;
    void (*visit)(const struct elastic_count *count, void *data);
    void *data;
};

static gboolean visit_space(gpointer ns, gpointer value, gpointer data)
{
    const struct visiting *visiting = data;
    const struct space *space = value;
    int64_t lendable[ELASTIC_KEYS_MAX];

    find_lendable(visiting->quotas, space, lendable);
    for (guint key = 0; key < visiting->quotas->keys->len; key++) {
        const struct elastic_count count = count_of(visiting->quotas, space, lendable, key);
        if (count.min > 0 || count.max < INT64_MAX)
            visiting->visit(&count, visiting->data);
    }
    return FALSE;
}

void elastic_quotas_each(struct elastic_quotas *quotas, struct ledger *ledger,
                         void (*visit)(const struct elastic_count *count, void *data), void *data)
{
    count_used(quotas, ledger);
    count_waiters(quotas, ledger);
    g_tree_foreach(quotas->spaces, visit_space, &(struct visiting){quotas, visit, data});
}
