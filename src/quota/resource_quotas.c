/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/resource_quotas.h"

#include "core/bytes.h"
#include "quota/holding.h"
#include "quota/resources/left_out.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

/* What is limited. */
enum kind { KIND_MEMORY, KIND_CORE, KIND_N };

static const char *const units[KIND_N] = {[KIND_MEMORY] = "MiB", [KIND_CORE] = "%"};

static const char *key_of(const struct dialect *dialect, enum kind kind)
{
    return kind == KIND_MEMORY ? dialect->quota_memory : dialect->quota_core;
}

struct holding {
    int64_t amounts[KIND_N];
};

struct limit {
    const char *key; /* a dialect's */
    int64_t value;
    bool closed; /* it cannot be read, and nothing was known of it before: it lets nothing pass */
};

/* Copies share it. What changes of it only the first reads: the generation. */
struct quota {
    char *ns, *name;
    uint32_t generation;
    GArray *limits; /* struct limit */
};

struct resource_quotas {
    GPtrArray *all;       /* struct quota *, those with limits of ours */
    GHashTable *left_out; /* quota/resources/left_out.h: those that are too many */
    int64_t mib;          /* in one of what limits memory */
};

/* One limit in a room. */
struct bound {
    const struct quota *quota;
    enum kind kind;
    int64_t limit;
};

struct resource_room {
    const struct request *request;
    const char *keys[KIND_N];
    struct holding used;
    GArray *bounds; /* struct bound */
    bool closed;    /* by a limit that cannot be read */
};

static void quota_clear(gpointer data)
{
    struct quota *quota = data;

    g_free(quota->ns);
    g_free(quota->name);
    g_array_unref(quota->limits);
}

static void quota_free(gpointer quota)
{
    g_atomic_rc_box_release_full(quota, quota_clear);
}

struct resource_quotas *resource_quotas_new(void)
{
    struct resource_quotas *quotas = g_new0(struct resource_quotas, 1);

    quotas->all = g_ptr_array_new_with_free_func(quota_free);
    quotas->left_out = left_out_new();
    quotas->mib = 1;
    return quotas;
}

void resource_quotas_scale(struct resource_quotas *quotas, int64_t mib)
{
    quotas->mib = MAX(mib, 1);
}

void resource_quotas_free(struct resource_quotas *quotas)
{
    g_hash_table_unref(quotas->left_out);
    g_ptr_array_unref(quotas->all);
    g_free(quotas);
}

static struct quota *quota_new(const char *ns, const char *name, uint32_t generation,
                               GArray *take_limits)
{
    struct quota *quota = g_atomic_rc_box_new0(struct quota);

    quota->ns = g_strdup(ns);
    quota->name = g_strdup(name);
    quota->generation = generation;
    quota->limits = take_limits;
    return quota;
}

static bool is_full(const struct resource_quotas *quotas, const char *ns)
{
    guint n = 0;

    for (guint i = 0; i < quotas->all->len && n < RESOURCE_QUOTAS_MAX; i++)
        n += g_str_equal(((const struct quota *)quotas->all->pdata[i])->ns, ns);
    return n == RESOURCE_QUOTAS_MAX;
}

/* Whether that is new. */
static bool leave_out(struct resource_quotas *quotas, const char *ns, const char *name,
                      uint32_t generation, GArray *limits)
{
    const struct left_out quota = {ns, name, generation, limits};
    g_autoptr(GPtrArray) keys = g_ptr_array_new();

    for (guint i = 0; i < limits->len; i++)
        g_ptr_array_add(keys, (gpointer)g_array_index(limits, struct limit, i).key);
    g_ptr_array_add(keys, NULL);
    return left_out_add(quotas->left_out, &quota, (const char *const *)keys->pdata);
}

/* Others take the places of those that are gone. */
static void take_in(struct resource_quotas *quotas, const char *ns)
{
    struct left_out left_out;
    g_autofree char *name = NULL;

    while (!is_full(quotas, ns) && left_out_take(quotas->left_out, ns, &name, &left_out)) {
        g_ptr_array_add(quotas->all, quota_new(ns, name, left_out.generation, left_out.limits));
        g_clear_pointer(&name, g_free);
    }
}

struct resource_quotas *resource_quotas_dup(const struct resource_quotas *quotas)
{
    struct resource_quotas *copy = resource_quotas_new();

    copy->mib = quotas->mib;
    for (guint i = 0; i < quotas->all->len; i++) {
        g_ptr_array_add(copy->all, g_atomic_rc_box_acquire(quotas->all->pdata[i]));
    }
    left_out_copy(copy->left_out, quotas->left_out);
    return copy;
}

/* --- feeding -------------------------------------------------------------------------------- */

/* The dialects' own text of a key, or NULL. */
static const char *find_key(const char *key)
{
    for (size_t i = 0; dialects[i]; i++) {
        for (int kind = 0; kind < KIND_N; kind++) {
            const char *own = key_of(dialects[i], (enum kind)kind);
            if (g_strcmp0(own, key) == 0)
                return own;
        }
    }
    return NULL;
}

static struct quota *find(const struct resource_quotas *quotas, const char *ns, const char *name)
{
    for (guint i = 0; i < quotas->all->len; i++) {
        struct quota *quota = g_ptr_array_index(quotas->all, i);
        if (g_str_equal(quota->name, name) && g_str_equal(quota->ns, ns))
            return quota;
    }
    return NULL;
}

static bool is_core_key(const char *key)
{
    for (size_t i = 0; dialects[i]; i++) {
        if (g_strcmp0(key_of(dialects[i], KIND_CORE), key) == 0)
            return true;
    }
    return false;
}

/* One that cannot be read is closed, with an error. */
static GArray *read_limits(const struct resource_quotas *quotas,
                           const struct resource_quota_view *view, GError **error)
{
    g_autoptr(GArray) limits = g_array_new(FALSE, FALSE, sizeof(struct limit));

    for (size_t i = 0; i < view->hard.n; i++) {
        struct limit limit = {.key = find_key(view->hard.items[i].key)};
        if (!limit.key)
            continue;
        g_autoptr(GError) failure = NULL;
        if (!quantity_parse(view->hard.items[i].value, &limit.value, &failure)) {
            g_prefix_error(&failure, "ResourceQuota '%s/%s': '%s': ", view->ns, view->name,
                           limit.key);
            if (error && !*error)
                g_propagate_error(error, g_steal_pointer(&failure));
            limit.closed = true;
            g_array_append_val(limits, limit);
            continue;
        }
        if (!is_core_key(limit.key))
            limit.value =
                limit.value > INT64_MAX / quotas->mib ? INT64_MAX : limit.value * quotas->mib;
        if (limit.value > 0)
            g_array_append_val(limits, limit);
    }
    return g_steal_pointer(&limits);
}

static bool same_limits(const GArray *one, const GArray *other)
{
    bool same = one->len == other->len;

    for (guint i = 0; same && i < one->len; i++) {
        const struct limit *left = &g_array_index(one, struct limit, i);
        const struct limit *right = &g_array_index(other, struct limit, i);
        same =
            left->key == right->key && left->value == right->value && left->closed == right->closed;
    }
    return same;
}

static bool is_any_closed(const GArray *limits)
{
    for (guint i = 0; i < limits->len; i++) {
        if (g_array_index(limits, struct limit, i).closed)
            return true;
    }
    return false;
}

struct resource_limits {
    char *ns, *name;
    GArray *limits;  /* struct limit */
    GError *failure; /* or NULL */
};

struct resource_limits *resource_limits_read(const struct resource_quotas *quotas,
                                             const struct resource_quota_view *view)
{
    struct resource_limits *read = g_new0(struct resource_limits, 1);

    read->ns = g_strdup(view->ns);
    read->name = g_strdup(view->name);
    read->limits = read_limits(quotas, view, &read->failure);
    return read;
}

void resource_limits_free(struct resource_limits *read)
{
    if (!read)
        return;
    g_free(read->ns);
    g_free(read->name);
    g_array_unref(read->limits);
    g_clear_error(&read->failure);
    g_free(read);
}

bool resource_quotas_set(struct resource_quotas *quotas, const struct resource_limits *view,
                         uint32_t generation, bool *ret_changed, GError **error)
{
    struct quota *before = find(quotas, view->ns, view->name);
    GArray *limits = view->limits;
    const bool closed = is_any_closed(limits);

    if (view->failure)
        g_propagate_error(error, g_error_copy(view->failure));
    if (!before && limits->len > 0 && is_full(quotas, view->ns)) {
        *ret_changed = leave_out(quotas, view->ns, view->name, generation, limits);
        if (!error || !*error)
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "ResourceQuota '%s/%s': the namespace has more than %d that limit GPUs",
                        view->ns, view->name, RESOURCE_QUOTAS_MAX);
        return false;
    }
    const bool opened = left_out_remove(quotas->left_out, view->ns, view->name);
    if (before)
        before->generation = generation;
    if (closed && before && !is_any_closed(before->limits))
        return false; /* what it said before counts on */
    const bool differs = before ? !same_limits(before->limits, limits) : limits->len > 0;
    *ret_changed = differs || opened;
    if (!differs)
        return !closed;
    if (before)
        g_ptr_array_remove(quotas->all, before);
    if (limits->len > 0)
        g_ptr_array_add(quotas->all,
                        quota_new(view->ns, view->name, generation, g_array_ref(limits)));
    take_in(quotas, view->ns);
    return !closed;
}

void resource_quotas_remove(struct resource_quotas *quotas, const char *ns, const char *name)
{
    struct quota *quota = find(quotas, ns, name);

    left_out_remove(quotas->left_out, ns, name);
    if (quota)
        g_ptr_array_remove(quotas->all, quota);
    take_in(quotas, ns);
}

bool resource_quotas_sweep(struct resource_quotas *quotas, uint32_t generation)
{
    const guint before = quotas->all->len;

    for (guint i = quotas->all->len; i-- > 0;) {
        const struct quota *quota = g_ptr_array_index(quotas->all, i);
        if (quota->generation != generation)
            g_ptr_array_remove_index(quotas->all, i);
    }
    const bool fewer = quotas->all->len < before;
    const bool opened = left_out_sweep(quotas->left_out, generation);
    g_auto(GStrv) spaces = left_out_spaces(quotas->left_out);
    for (char **ns = spaces; *ns; ns++)
        take_in(quotas, *ns);
    return opened || fewer;
}

/* --- adding up ------------------------------------------------------------------------------ */

/* Whole MiB, as the node side is told. */
static int64_t measure_memory(const struct node *node, const struct share *share, const void *data)
{
    return card_bytes(node, node_share_card(node, share), share->memory) / MIB;
}

static int64_t measure_core(const struct node *node, const struct share *share, const void *data)
{
    return share->core * INT64_C(100) / CORE_WHOLE;
}

static struct holding add_up(const struct node *node, const struct share *shares, uint32_t n)
{
    struct holding_query query = {node, shares, n, measure_memory};
    struct holding most;

    most.amounts[KIND_MEMORY] = holding_peak(&query);
    query.measure = measure_core;
    most.amounts[KIND_CORE] = holding_peak(&query);
    return most;
}

static bool is_limited(const struct resource_room *room, const struct dialect *dialect)
{
    return dialect->quota_memory && g_str_equal(dialect->quota_memory, room->keys[KIND_MEMORY]);
}

bool resource_quotas_limit(const struct resource_quotas *quotas)
{
    return quotas->all->len > 0 || g_hash_table_size(quotas->left_out) > 0;
}

G_STATIC_ASSERT(SPACE_UNITS == KIND_N);

void resource_quotas_measure(const struct node *node, const struct dialect *dialect,
                             const struct share *shares, uint32_t n_shares,
                             struct space_amounts *ret_amounts)
{
    if (!dialect || !dialect->quota_memory)
        return;
    const struct holding held = add_up(node, shares, n_shares);
    ret_amounts->key = dialect->quota_memory;
    memcpy(ret_amounts->units, held.amounts, sizeof held.amounts);
}

static void add_used(struct resource_room *room, const struct holding *held)
{
    for (int kind = 0; kind < KIND_N; kind++)
        room->used.amounts[kind] = amount_add(room->used.amounts[kind], held->amounts[kind]);
}

static void add_bounds(struct resource_room *room, const struct quota *quota)
{
    for (guint i = 0; i < quota->limits->len; i++) {
        const struct limit *limit = &g_array_index(quota->limits, struct limit, i);
        for (int kind = 0; kind < KIND_N; kind++) {
            const struct bound bound = {quota, (enum kind)kind, limit->value};
            if (g_strcmp0(limit->key, room->keys[kind]) != 0)
                continue;
            room->closed |= limit->closed;
            g_array_append_val(room->bounds, bound);
        }
    }
}

struct resource_room *resource_quotas_room(const struct resource_quotas *quotas,
                                           const struct space_sums *sums, const char *ns,
                                           const struct request *request)
{
    const struct request *reading = request;

    while (reading && !(reading->dialect && reading->dialect->quota_memory))
        reading = reading->alternative;
    if (!reading || !resource_quotas_limit(quotas))
        return NULL;
    struct resource_room *room = g_new0(struct resource_room, 1);
    room->request = reading;
    room->bounds = g_array_new(FALSE, FALSE, sizeof(struct bound));
    for (int kind = 0; kind < KIND_N; kind++)
        room->keys[kind] = key_of(reading->dialect, (enum kind)kind);
    for (guint i = 0; i < quotas->all->len; i++) {
        const struct quota *quota = g_ptr_array_index(quotas->all, i);
        if (g_str_equal(quota->ns, ns))
            add_bounds(room, quota);
    }
    for (int kind = 0; kind < KIND_N; kind++)
        room->closed |= left_out_has(quotas->left_out, ns, room->keys[kind]);
    if (room->bounds->len == 0 && !room->closed)
        g_clear_pointer(&room, resource_room_free);
    for (int kind = 0; room && kind < KIND_N; kind++)
        room->used.amounts[kind] = space_sums_units(sums, ns, room->keys[KIND_MEMORY], kind);
    return room;
}

void resource_room_free(struct resource_room *room)
{
    if (!room)
        return;
    g_array_unref(room->bounds);
    g_free(room);
}

bool resource_room_is_closed(const struct resource_room *room)
{
    return room && room->closed;
}

void resource_room_take(struct resource_room *room, struct allocation *allocation)
{
    if (!room || !allocation->dialect || !is_limited(room, allocation->dialect))
        return;
    const struct holding held = add_up(allocation->node, allocation->shares, allocation->n_shares);
    add_used(room, &held);
}

/* As if each ask were on the node's largest cards. */
static struct holding add_up_asks(const struct node *node, const struct request *request)
{
    struct share shares[REQUEST_ASKS_MAX];

    return add_up(node, shares, holding_ask(request, shares));
}

bool resource_room_allows(const struct resource_room *room, const struct node *node,
                          const struct placement *placement, struct resource_count *ret_count)
{
    if (!room || (placement && !is_limited(room, placement->request->dialect)))
        return true;
    const struct holding wanted = placement ? add_up(node, placement->shares, placement->n_shares)
                                            : add_up_asks(node, room->request);
    uint32_t exceeded = 0;

    for (guint i = 0; i < room->bounds->len; i++) {
        const struct bound *bound = &g_array_index(room->bounds, struct bound, i);
        const struct resource_count count = {
            .quota = bound->quota->name,
            .key = room->keys[bound->kind],
            .unit = units[bound->kind],
            .limit = bound->limit,
            .used = room->used.amounts[bound->kind],
            .wanted = wanted.amounts[bound->kind],
        };
        if (count.wanted == 0 || count.used + count.wanted <= count.limit)
            continue;
        if (ret_count && exceeded == 0)
            *ret_count = count;
        exceeded++;
    }
    if (ret_count)
        ret_count->alone = exceeded == 1;
    return exceeded == 0;
}

bool resource_room_allows_amounts(const struct resource_room *room, const char *key,
                                  const int64_t units[SPACE_UNITS])
{
    if (!room || g_strcmp0(key, room->keys[KIND_MEMORY]) != 0)
        return true;
    for (guint i = 0; i < room->bounds->len; i++) {
        const struct bound *bound = &g_array_index(room->bounds, struct bound, i);
        const int64_t wanted = units[bound->kind];
        if (wanted > 0 && room->used.amounts[bound->kind] + wanted > bound->limit)
            return false;
    }
    return true;
}

G_STATIC_ASSERT(RESOURCE_AMOUNTS == KIND_N);

void resource_room_lacks(const struct resource_room *room, const struct node *node,
                         int64_t ret_lacks[RESOURCE_AMOUNTS])
{
    memset(ret_lacks, 0, RESOURCE_AMOUNTS * sizeof *ret_lacks);
    if (!room)
        return;
    const struct holding wanted = add_up_asks(node, room->request);
    for (guint i = 0; i < room->bounds->len; i++) {
        const struct bound *bound = &g_array_index(room->bounds, struct bound, i);
        const int64_t more = wanted.amounts[bound->kind];
        if (more > 0)
            ret_lacks[bound->kind] =
                MAX(ret_lacks[bound->kind], room->used.amounts[bound->kind] + more - bound->limit);
    }
}

void resource_room_gives(const struct resource_room *room, const struct allocation *allocation,
                         int64_t ret_amounts[RESOURCE_AMOUNTS])
{
    memset(ret_amounts, 0, RESOURCE_AMOUNTS * sizeof *ret_amounts);
    if (!room || !allocation->dialect || !is_limited(room, allocation->dialect))
        return;
    const struct holding held = add_up(allocation->node, allocation->shares, allocation->n_shares);
    memcpy(ret_amounts, held.amounts, sizeof held.amounts);
}

/* --- for people ----------------------------------------------------------------------------- */

static bool is_key(const struct dialect *dialect, enum kind kind, const char *key)
{
    return dialect && g_strcmp0(key_of(dialect, kind), key) == 0;
}

static const char *unit_of(const char *key)
{
    return units[is_core_key(key) ? KIND_CORE : KIND_MEMORY];
}

void resource_quotas_each(const struct resource_quotas *quotas,
                          void (*visit)(const struct resource_limit *limit, void *data), void *data)
{
    for (guint i = 0; i < quotas->all->len; i++) {
        const struct quota *quota = g_ptr_array_index(quotas->all, i);
        for (guint j = 0; j < quota->limits->len; j++) {
            const struct limit *limit = &g_array_index(quota->limits, struct limit, j);
            if (limit->closed)
                continue;
            visit(&(struct resource_limit){quota->ns, quota->name, limit->key, unit_of(limit->key),
                                           limit->value},
                  data);
        }
    }
}

int64_t resource_quotas_count(const struct allocation *allocation, const char *key)
{
    for (int kind = 0; kind < KIND_N; kind++) {
        if (is_key(allocation->dialect, (enum kind)kind, key))
            return add_up(allocation->node, allocation->shares, allocation->n_shares).amounts[kind];
    }
    return 0;
}
