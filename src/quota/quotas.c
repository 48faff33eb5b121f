/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/quotas.h"

#include "core/amount_sum.h"
#include "quota/holding.h"
#include "quota/share_amounts.h"
#include "quota/sums/quota_wants.h"
#include "quota/sums/space_limits.h"

#include <string.h>

/* Interned, so that equal ones are the same. */
struct mark {
    GRefString *model, *pool;
};

struct quotas {
    GHashTable *namespaces; /* name -> struct space_limits * */
    char *text;             /* which says so, or NULL */
    GHashTable *nodes;      /* name -> struct mark * */
    struct space_sums *sums;
    struct quota_wants *wants;
    GHashTable *wrong; /* a set of namespaces whose sums are wrong */
    GHashTable *found; /* those of the verification under way */
    struct resource_quotas *resources;
    struct elastic_quotas *elastic;
    struct counting *counting;
};

struct counting {
    uint64_t most; /* pods, in one decision */
    bool goes_on;  /* not all are counted: what is limited is refused */
};

/* What was asked by number; 0: nothing. */
struct judged {
    uint64_t number;
    enum reason reason;
};

#define JUDGED_MAX 256 /* of one room, by the numbers' remainders */

struct quota_room {
    const struct quotas *quotas;
    char *ns;
    const struct space_limits *limits; /* NULL: none by model */
    const struct request *request;
    struct resource_room *resources; /* NULL: none by ResourceQuotas */
    struct elastic_room *elastic;    /* NULL: none by elastic quotas */
    bool counting;                   /* sums are not complete */
    GArray *kinds;                   /* struct kind, of nodes that were asked about */
    GHashTable *taken; /* model (a mark's) -> GPUs since it was measured, an int64_t * */
    struct judged judged[JUDGED_MAX];
};

/* What follows for nodes of one model and pool. */
struct kind {
    const char *model, *pool;
    struct quota_count count; /* but for what is wanted */
};

static void mark_free(gpointer data)
{
    struct mark *mark = data;
    g_clear_pointer(&mark->model, g_ref_string_release);
    g_clear_pointer(&mark->pool, g_ref_string_release);
    g_free(mark);
}

static void measure_pod(const struct allocation *pod, struct space_amounts *ret_amounts);

static const char *model_of(const void *data, const char *node)
{
    const struct mark *mark = g_hash_table_lookup(((const struct quotas *)data)->nodes, node);

    return mark ? mark->model : NULL;
}

static GHashTable *new_names(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

struct quotas *quotas_new(void)
{
    struct quotas *quotas = g_new0(struct quotas, 1);

    quotas->sums = space_sums_new(&(struct space_counting){measure_pod, model_of, quotas});

    quotas->namespaces = space_limits_new();
    quotas->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, mark_free);
    quotas->wants = quota_wants_new();
    quotas->wrong = new_names();
    quotas->found = new_names();
    quotas->resources = resource_quotas_new();
    quotas->elastic = elastic_quotas_new();
    quotas->counting = g_new0(struct counting, 1);
    quotas->counting->most = QUOTAS_COUNT_MAX;
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
    copy->counting->most = UINT64_MAX;
    return copy;
}

void quotas_copy_pod(struct quotas *quotas, const struct quotas *from, const char *uid)
{
    elastic_quotas_copy_pod(quotas->elastic, from->elastic, uid);
}

void quotas_copy_node(struct quotas *quotas, const struct quotas *from, const struct node *node)
{
    const struct mark *mark = g_hash_table_lookup(from->nodes, node->name);

    if (mark)
        quotas_set_node(quotas, node->name, mark->model, mark->pool);
    for (guint i = 0; i < node->allocations->len; i++)
        quotas_copy_pod(quotas, from,
                        ((const struct allocation *)node->allocations->pdata[i])->uid);
}

void quotas_free(struct quotas *quotas)
{
    g_hash_table_unref(quotas->namespaces);
    g_hash_table_unref(quotas->nodes);
    space_sums_free(quotas->sums);
    quota_wants_free(quotas->wants);
    g_hash_table_unref(quotas->wrong);
    g_hash_table_unref(quotas->found);
    resource_quotas_free(quotas->resources);
    elastic_quotas_free(quotas->elastic);
    g_free(quotas->counting);
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

/* --- telling -------------------------------------------------------------------------------- */

struct quotas_text *quotas_text_read(const char *text, GError **error)
{
    GHashTable *namespaces = space_limits_read(text, error);

    if (!namespaces)
        return NULL;
    struct quotas_text *read = g_new0(struct quotas_text, 1);
    read->namespaces = namespaces;
    read->text = g_strdup(text);
    return read;
}

void quotas_text_free(struct quotas_text *text)
{
    if (!text)
        return;
    g_hash_table_unref(text->namespaces);
    g_free(text->text);
    g_free(text);
}

bool quotas_swap(struct quotas *quotas, struct quotas_text *text)
{
    const struct quotas_text before = {quotas->namespaces, quotas->text};

    quotas->namespaces = text->namespaces;
    quotas->text = text->text;
    *text = before;
    return g_strcmp0(quotas->text, before.text) != 0;
}

void quotas_set_node(struct quotas *quotas, const char *node, const char *model, const char *pool)
{
    if (g_strcmp0(model_of(quotas, node), model) != 0)
        space_sums_renew(quotas->sums, node);
    if (!model && !pool) {
        g_hash_table_remove(quotas->nodes, node);
        return;
    }
    struct mark *mark = g_new0(struct mark, 1);
    mark->model = model ? g_ref_string_new_intern(model) : NULL;
    mark->pool = pool ? g_ref_string_new_intern(pool) : NULL;
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

static void measure_pod(const struct allocation *pod, struct space_amounts *ret_amounts)
{
    ret_amounts->gpus = size_of_all(pod);
    resource_quotas_measure(pod->node, pod->dialect, pod->shares, pod->n_shares, ret_amounts);
}

/* What limits nobody is not looked at. */
static bool count_for_limits(const struct quotas *quotas, struct ledger *ledger, uint64_t most)
{
    uint64_t left = most;

    return ((g_hash_table_size(quotas->namespaces) == 0 &&
             !resource_quotas_limit(quotas->resources)) ||
            space_sums_catch_up(quotas->sums, ledger, &left)) &&
           (!elastic_quotas_limit(quotas->elastic) ||
            elastic_quotas_catch_up(quotas->elastic, ledger, &left));
}

bool quotas_catch_up(struct quotas *quotas, struct ledger *ledger, uint64_t most)
{
    uint64_t left = most;

    return space_sums_catch_up(quotas->sums, ledger, &left) &&
           elastic_quotas_catch_up(quotas->elastic, ledger, &left);
}

bool quotas_begin(struct quotas *quotas, struct ledger *ledger)
{
    struct counting *counting = quotas->counting;

    counting->goes_on = !count_for_limits(quotas, ledger, counting->most);
    return !counting->goes_on;
}

void quotas_begin_as(struct quotas *quotas, struct ledger *ledger, bool counting)
{
    quotas->counting->goes_on = counting || !count_for_limits(quotas, ledger, UINT64_MAX);
}

void quotas_set_most(const struct quotas *quotas, uint64_t most)
{
    quotas->counting->most = most;
}

struct quota_room *quotas_room(const struct quotas *quotas, struct ledger *ledger,
                               const struct pod_view *pod, const struct request *request)
{
    const char *ns = pod->ns ? pod->ns : "";
    const struct space_limits *limits = g_hash_table_lookup(quotas->namespaces, ns);
    struct counting *counting = quotas->counting;

    /* What has changed since the decision began. */
    counting->goes_on = counting->goes_on || !count_for_limits(quotas, ledger, counting->most);
    struct resource_room *resources =
        resource_quotas_room(quotas->resources, quotas->sums, ns, request);
    struct elastic_room *elastic = elastic_quotas_room(quotas->elastic, pod, request);

    if (!limits && !resources && !elastic)
        return NULL;
    struct quota_room *room = g_new0(struct quota_room, 1);
    room->quotas = quotas;
    room->ns = g_strdup(ns);
    room->limits = limits;
    room->request = request;
    room->resources = resources;
    room->elastic = elastic;
    room->counting = counting->goes_on;
    room->kinds = g_array_new(FALSE, FALSE, sizeof(struct kind));
    room->taken = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    return room;
}

static void take(struct quota_room *room, const struct allocation *allocation)
{
    const char *model = model_of(room->quotas, allocation->node->name);

    if (!model)
        return;
    int64_t *taken = g_hash_table_lookup(room->taken, model);
    if (!taken) {
        taken = g_new0(int64_t, 1);
        g_hash_table_insert(room->taken, (gpointer)model, taken);
    }
    *taken = amount_add(*taken, size_of_all(allocation));
    g_array_set_size(room->kinds, 0);
    memset(room->judged, 0, sizeof room->judged);
}

void quota_room_take(struct quota_room *room, struct allocation *allocation)
{
    if (room->limits)
        take(room, allocation);
    resource_room_take(room->resources, allocation);
    elastic_room_take(room->elastic, allocation);
}

void quota_room_free(struct quota_room *room)
{
    if (!room)
        return;
    g_free(room->ns);
    g_array_unref(room->kinds);
    g_hash_table_unref(room->taken);
    resource_room_free(room->resources);
    elastic_room_free(room->elastic);
    g_free(room);
}

static struct quota_count count_kind(const struct quota_room *room, const struct mark *mark)
{
    struct quota_count count = {.model = mark->model};
    const int64_t *limit = g_hash_table_lookup(room->limits->models, mark->model);
    const int64_t *taken = g_hash_table_lookup(room->taken, mark->model);

    count.pooled = g_hash_table_size(room->limits->pools) == 0 ||
                   (mark->pool && g_hash_table_contains(room->limits->pools, mark->pool));
    count.limited = limit != NULL;
    count.limit = limit ? *limit : 0;
    count.used =
        amount_add(space_sums_gpus(room->quotas->sums, room->ns, mark->model), taken ? *taken : 0);
    return count;
}

#define KINDS_MAX 16 /* of nodes, remembered in one room */

static struct quota_count find_kind(const struct quota_room *room, const struct mark *mark)
{
    for (guint i = 0; i < room->kinds->len; i++) {
        const struct kind *kind = &g_array_index(room->kinds, struct kind, i);
        if (kind->model == mark->model && kind->pool == mark->pool)
            return kind->count;
    }
    const struct kind kind = {mark->model, mark->pool, count_kind(room, mark)};
    if (room->kinds->len < KINDS_MAX)
        g_array_append_val(room->kinds, kind);
    return kind.count;
}

static void count_on(const struct quota_room *room, const struct node *node,
                     const struct placement *placement, struct quota_count *ret_count)
{
    const struct mark *mark = g_hash_table_lookup(room->quotas->nodes, node->name);

    *ret_count = mark && mark->model ? find_kind(room, mark) : (struct quota_count){0};
    ret_count->wanted = size_wanted(room, node, placement);
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

/* By a limit that cannot be kept, or not yet; REASON_NONE: it is not. */
static enum reason closure(const struct quota_room *room)
{
    if (g_hash_table_contains(room->quotas->wrong, room->ns) ||
        resource_room_is_closed(room->resources) || elastic_room_is_closed(room->elastic))
        return REASON_QUOTA_UNKEPT;
    return room->counting ? REASON_QUOTA_COUNTING : REASON_NONE;
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
    const enum reason closed = room ? closure(room) : REASON_NONE;

    if (!room || closed != REASON_NONE)
        return closed;
    if (!is_within_limits(room, node, placement))
        return REASON_QUOTA;
    if (!resource_room_allows(room->resources, node, placement, NULL))
        return REASON_RESOURCE_QUOTA;
    return elastic_room_refuse(room->elastic, node, placement, NULL, NULL);
}

G_STATIC_ASSERT(QUOTA_WANT_KEYS == ELASTIC_KEYS_MAX && QUOTA_WANT_UNITS == SPACE_UNITS);

uint64_t quota_room_number(const struct quota_room *room, const struct node *node,
                           const struct placement *placement)
{
    const struct quotas *quotas = room->quotas;
    const struct mark *mark = g_hash_table_lookup(quotas->nodes, node->name);
    const struct dialect *dialect = placement->request->dialect;
    struct space_amounts amounts = {0};
    struct quota_want want;

    memset(&want, 0, sizeof want);
    want.model = mark ? mark->model : NULL;
    want.pool = mark ? mark->pool : NULL;
    want.gpus = size_of(node, dialect, placement->shares, placement->n_shares);
    resource_quotas_measure(node, dialect, placement->shares, placement->n_shares, &amounts);
    want.key = amounts.key;
    memcpy(want.units, amounts.units, sizeof want.units);
    elastic_quotas_measure_placed(quotas->elastic, node, placement, want.amounts);
    return quota_wants_number(quotas->wants, &want, elastic_quotas_round(quotas->elastic));
}

static enum reason judge(const struct quota_room *room, const struct quota_want *want)
{
    const struct mark mark = {(GRefString *)want->model, (GRefString *)want->pool};
    const enum reason closed = closure(room);

    if (closed != REASON_NONE)
        return closed;
    if (room->limits) {
        const struct quota_count count =
            mark.model ? find_kind(room, &mark) : (struct quota_count){0};
        if (!count.pooled || !count.limited || count.used + want->gpus > count.limit)
            return REASON_QUOTA;
    }
    if (!resource_room_allows_amounts(room->resources, want->key, want->units))
        return REASON_RESOURCE_QUOTA;
    return elastic_room_judge(room->elastic, want->amounts);
}

bool quota_room_judge(struct quota_room *room, uint64_t number, enum reason *ret_reason)
{
    struct judged *judged = &room->judged[number % JUDGED_MAX];

    if (judged->number != number) {
        const struct quota_want *want = quota_wants_get(
            room->quotas->wants, number, elastic_quotas_round(room->quotas->elastic));
        if (!want)
            return false;
        *judged = (struct judged){number, judge(room, want)};
    }
    *ret_reason = judged->reason;
    return true;
}

/* --- what would be given back --------------------------------------------------------------- */

bool quota_room_lacks(const struct quota_room *room, const struct node *node,
                      int64_t ret_lacks[QUOTA_AMOUNTS_MAX])
{
    struct quota_count count;

    ret_lacks[0] = 0;
    if (closure(room) != REASON_NONE)
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

/* --- whether sums are right ------------------------------------------------------------------- */

static void note_wrong(const char *ns, void *data)
{
    g_hash_table_add(data, g_strdup(ns));
}

void quotas_verify_begin(struct quotas *quotas)
{
    g_hash_table_remove_all(quotas->found);
    space_sums_verify_begin(quotas->sums);
    elastic_verify_begin(quotas->elastic);
}

void quotas_verify_node(struct quotas *quotas, const struct ledger *ledger, const struct node *node)
{
    space_sums_verify_node(quotas->sums, ledger, node, note_wrong, quotas->found);
    elastic_verify_node(quotas->elastic, ledger, node, note_wrong, quotas->found);
}

bool quotas_verify_end(struct quotas *quotas)
{
    space_sums_verify_end(quotas->sums, note_wrong, quotas->found);
    elastic_verify_end(quotas->elastic, note_wrong, quotas->found);
    GHashTable *wrong = quotas->found;
    quotas->found = quotas->wrong;
    quotas->wrong = wrong;
    return g_hash_table_size(quotas->wrong) == 0;
}

guint quotas_n_wrong(const struct quotas *quotas)
{
    return g_hash_table_size(quotas->wrong);
}

/* --- for people ----------------------------------------------------------------------------- */

void quotas_each(const struct quotas *quotas,
                 void (*visit)(const struct model_limit *limit, void *data), void *data)
{
    GHashTableIter namespaces, models;
    gpointer ns, limits, model, limit;

    g_hash_table_iter_init(&namespaces, quotas->namespaces);
    while (g_hash_table_iter_next(&namespaces, &ns, &limits)) {
        g_hash_table_iter_init(&models, ((const struct space_limits *)limits)->models);
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

uint64_t quotas_n_counted(const struct quotas *quotas)
{
    return space_sums_n_pods(quotas->sums) + elastic_quotas_n_counted(quotas->elastic);
}

const struct resource_quotas *quotas_see_resources(const struct quotas *quotas)
{
    return quotas->resources;
}
