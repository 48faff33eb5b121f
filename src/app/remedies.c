/* SPDX-License-Identifier: Apache-2.0 */
#include "app/remedies.h"

#include "app/plan.h"
#include "app/telling.h"

#include <gpuledger/quantity.h>
#include <string.h>

#define GET_POD_MS 2000
#define RESOURCES_MAX 8    /* of a pod, tried one by one */
#define ANNOTATIONS_TRIED 32

struct search {
    const struct remedies_query *query;
    struct ledger *ledger;
    struct moment moment;
    GArray *found;
    int tries;
};

/* --- asking --------------------------------------------------------------------------------- */

static enum reason ask_node(struct search *search, const struct node *node,
                            const struct pod_view *pod, const struct request *request,
                            struct placement *ret_placement)
{
    struct judge judge;

    search->tries++;
    judge_init(&judge, search->query->copy, pod, request, &search->moment);
    const enum reason reason = judge_node(&judge, node, ret_placement);
    judge_clear(&judge);
    return reason;
}

/* Whether the pod, as it is, may go to the node, as it is now. */
static bool takes(struct search *search, const struct node *node)
{
    return ask_node(search, node, search->query->pod, search->query->request, NULL) ==
           REASON_NONE;
}

/* The first node that takes a pod other than that which was refused; NULL: none. */
static const struct node *who_takes(struct search *search, const struct pod_view *pod)
{
    const struct dialect_options *options = &store_options(search->query->copy)->dialects;
    g_autoptr(request) request = dialect_read_request(pod, options, NULL);
    const struct node *taker = NULL;
    struct judge judge;

    if (!request)
        return NULL;
    judge_init(&judge, search->query->copy, pod, request, &search->moment);
    for (const char *const *name = search->query->nodes; *name && !taker; name++) {
        const struct node *node = ledger_node(search->ledger, *name);
        search->tries++;
        if (!node->cordoned && judge_node(&judge, node, NULL) == REASON_NONE)
            taker = node;
    }
    judge_clear(&judge);
    return taker;
}

static bool may_try(const struct search *search)
{
    return search->tries < REMEDY_TRIES_MAX;
}

static void clear_pod(gpointer data)
{
    struct remedy_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->name);
    g_free(pod->to);
}

static void clear_remedy(gpointer data)
{
    struct remedy *remedy = data;

    g_free(remedy->node);
    g_free(remedy->text);
    g_free(remedy->container);
    g_free(remedy->resource);
    g_free(remedy->from);
    g_free(remedy->to);
    g_free(remedy->key);
    g_clear_pointer(&remedy->pods, g_array_unref);
}

static bool has_found(const struct search *search, enum remedy_kind kind)
{
    for (guint i = 0; i < search->found->len; i++) {
        if (g_array_index(search->found, struct remedy, i).kind == kind)
            return true;
    }
    return false;
}

/* Takes the remedy's strings. */
static void add(struct search *search, struct remedy remedy, const struct node *node)
{
    remedy.node = g_strdup(node->name);
    g_array_append_val(search->found, remedy);
}

/* --- a pod that asks for less --------------------------------------------------------------- */

/* The pod with one amount changed. */
struct changed {
    struct pod_view view;
    struct container_view *containers;
    struct string_pair *pairs[2]; /* limits and requests of the container */
    char text[24];
};

static struct string_pairs change_pairs(const struct string_pairs *pairs, const char *resource,
                                        const char *text, struct string_pair **ret_items)
{
    struct string_pair *items = g_memdup2(pairs->items, pairs->n * sizeof *items);

    for (size_t i = 0; i < pairs->n; i++) {
        if (g_str_equal(items[i].key, resource))
            items[i].value = text;
    }
    *ret_items = items;
    return (struct string_pairs){items, pairs->n};
}

static void change(struct changed *changed, const struct pod_view *pod, size_t container,
                   const char *resource, int64_t amount)
{
    changed->view = *pod;
    changed->containers =
        g_memdup2(pod->containers, pod->n_containers * sizeof *changed->containers);
    changed->view.containers = changed->containers;
    g_snprintf(changed->text, sizeof changed->text, "%" G_GINT64_FORMAT, amount);
    struct container_view *view = &changed->containers[container];
    view->limits = change_pairs(&view->limits, resource, changed->text, &changed->pairs[0]);
    view->requests = change_pairs(&view->requests, resource, changed->text, &changed->pairs[1]);
}

static void changed_clear(struct changed *changed)
{
    g_free(changed->containers);
    g_free(changed->pairs[0]);
    g_free(changed->pairs[1]);
}

static const struct node *who_takes_amount(struct search *search, size_t container,
                                           const char *resource, int64_t amount)
{
    struct changed changed;

    change(&changed, search->query->pod, container, resource, amount);
    const struct node *taker = who_takes(search, &changed.view);
    changed_clear(&changed);
    return taker;
}

static void add_amount(struct search *search, enum remedy_kind kind, size_t container,
                       const struct string_pair *pair, int64_t to, const struct node *node)
{
    const char *name = search->query->pod->containers[container].name;
    struct remedy remedy = {
        .kind = kind,
        .container = g_strdup(name ? name : ""),
        .resource = g_strdup(pair->key),
        .from = g_strdup(pair->value),
        .to = g_strdup_printf("%" G_GINT64_FORMAT, to),
    };

    remedy.text = g_strdup_printf("ask for %s %s instead of %s%s%s%s", remedy.to, pair->key,
                                  pair->value, name ? " in container " : "", name ? name : "",
                                  kind == REMEDY_UNIT ? ": it was meant in another unit" : "");
    add(search, remedy, node);
}

/* By how much amounts are too large that were written in a smaller unit than the node's. */
static const int64_t unit_factors[] = {1024, 1000, 256, INT64_C(1) << 20, INT64_C(1) << 30,
                                       INT64_C(1) << 28};

static bool try_units(struct search *search, size_t container, const struct string_pair *pair,
                      int64_t amount)
{
    for (size_t i = 0; i < G_N_ELEMENTS(unit_factors) && may_try(search); i++) {
        const int64_t to = amount / unit_factors[i];
        if (to == 0 || amount % unit_factors[i] != 0)
            continue;
        const struct node *node = who_takes_amount(search, container, pair->key, to);
        if (!node)
            continue;
        add_amount(search, REMEDY_UNIT, container, pair, to, node);
        return true;
    }
    return false;
}

/* The largest smaller amount, by bisection: somebody takes `low`, nobody takes `high`. */
static void try_less(struct search *search, size_t container, const struct string_pair *pair,
                     int64_t amount)
{
    int64_t low = 1, high = amount;
    const struct node *node =
        amount > 1 ? who_takes_amount(search, container, pair->key, low) : NULL;

    /* Hundredths of several cards go by whole cards: what is between is not valid. */
    const bool hundredths = g_str_has_suffix(pair->key, "-core") && amount > 100;
    for (int64_t to = (amount - 1) / 100 * 100; hundredths && to >= 100 && may_try(search); to -= 100) {
        const struct node *taker = who_takes_amount(search, container, pair->key, to);
        if (!taker)
            continue;
        add_amount(search, REMEDY_LESS, container, pair, to, taker);
        return;
    }
    if (!node)
        return;
    while (high - low > 1 && may_try(search)) {
        const int64_t middle = low + (high - low) / 2;
        const struct node *taker = who_takes_amount(search, container, pair->key, middle);
        low = taker ? middle : low;
        node = taker ? taker : node;
        high = taker ? high : middle;
    }
    add_amount(search, REMEDY_LESS, container, pair, low, node);
}

/* Whether some dialect reads the resource at all. */
static bool is_read(const char *resource)
{
    for (size_t i = 0; dialects[i]; i++) {
        for (const char *const *own = dialects[i]->resources; *own; own++) {
            const size_t stem = strlen(*own) - 1;
            if ((*own)[stem] == '*' ? strncmp(resource, *own, stem) == 0
                                    : g_str_equal(resource, *own))
                return true;
        }
    }
    return false;
}

static void try_amounts(struct search *search, bool too_large)
{
    const struct pod_view *pod = search->query->pod;
    int n = 0;

    for (size_t i = 0; i < pod->n_containers; i++) {
        const struct container_view *view = &pod->containers[i];
        const struct string_pairs *pairs = view->limits.n ? &view->limits : &view->requests;
        for (size_t j = 0; j < pairs->n && n < RESOURCES_MAX; j++) {
            const struct string_pair *pair = &pairs->items[j];
            int64_t amount;
            if (!is_read(pair->key) || !quantity_parse(pair->value, &amount, NULL))
                continue;
            n++;
            if (!too_large || !try_units(search, i, pair, amount))
                try_less(search, i, pair, amount);
        }
    }
}

/* --- a pod that asks for anything ----------------------------------------------------------- */

static void try_annotations(struct search *search)
{
    const struct pod_view *pod = search->query->pod;

    for (size_t i = 0; i < pod->annotations.n && i < ANNOTATIONS_TRIED && may_try(search); i++) {
        const struct string_pair *pair = &pod->annotations.items[i];
        g_autofree struct string_pair *others =
            g_memdup2(pod->annotations.items, pod->annotations.n * sizeof *others);
        struct pod_view without = *pod;
        others[i] = others[pod->annotations.n - 1];
        without.annotations = (struct string_pairs){others, pod->annotations.n - 1};
        const struct node *node = who_takes(search, &without);
        if (!node)
            continue;
        add(search,
            (struct remedy){.kind = REMEDY_CONDITION,
                            .key = g_strdup(pair->key),
                            .from = g_strdup(pair->value),
                            .text = g_strdup_printf("take away the annotation %s: %s", pair->key,
                                                    pair->value)},
            node);
    }
}

/* --- other pods ----------------------------------------------------------------------------- */

static int64_t size_of(const struct node *node, const struct allocation *allocation)
{
    int64_t size = 0;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        size += share->device ? share->devices
                              : card_bytes(node, node_share_card(node, share), share->memory) +
                                    share->core;
    }
    return size;
}

static gint compare_sizes(gconstpointer a, gconstpointer b)
{
    const struct allocation *left = *(const struct allocation *const *)a;
    const struct allocation *right = *(const struct allocation *const *)b;
    const int64_t one = size_of(left->node, left), other = size_of(right->node, right);

    if (one != other)
        return one < other ? -1 : 1;
    return strcmp(left->uid, right->uid);
}

/* Ends pods of the node, the smaller ones first, until it takes the pod, and then lets back those
 * that need not have ended. What has ended is the caller's, and is not in the ledger any more; empty:
 * nothing helps. */
static GPtrArray *make_room(struct search *search, const struct node *node)
{
    GPtrArray *ended = g_ptr_array_new();
    g_autoptr(GPtrArray) others = g_ptr_array_new();
    bool room = false;

    for (guint i = 0; i < node->allocations->len; i++)
        g_ptr_array_add(others, node->allocations->pdata[i]);
    g_ptr_array_sort(others, compare_sizes);
    for (guint i = 0; i < others->len; i++) {
        struct allocation *copy = allocation_dup(others->pdata[i]);
        g_ptr_array_add(ended, copy);
    }
    /* One is better than several. */
    for (guint i = 0; i < ended->len && may_try(search) && !room; i++) {
        struct allocation *only = ended->pdata[i];
        ledger_drop(search->ledger, only->uid);
        room = takes(search, node);
        if (!room) {
            ledger_put(search->ledger, node->name, allocation_dup(only));
            continue;
        }
        for (guint j = 0; j < ended->len; j++) {
            if (j != i)
                allocation_free(ended->pdata[j]);
        }
        g_ptr_array_set_size(ended, 0);
        g_ptr_array_add(ended, only);
        return ended;
    }
    guint n = 0;
    while (n < ended->len && !room && may_try(search)) {
        ledger_drop(search->ledger, ((struct allocation *)ended->pdata[n++])->uid);
        room = takes(search, node);
    }
    for (guint i = ended->len; i > n; i--)
        allocation_free(ended->pdata[i - 1]);
    g_ptr_array_set_size(ended, (gint)n);
    for (guint i = n; i > 0; i--) {
        struct allocation *one = ended->pdata[i - 1];
        ledger_put(search->ledger, node->name, allocation_dup(one));
        if (room && takes(search, node)) {
            allocation_free(one);
            g_ptr_array_remove_index(ended, i - 1);
        } else if (room) {
            ledger_drop(search->ledger, one->uid);
        } else {
            allocation_free(one);
            g_ptr_array_remove_index(ended, i - 1);
        }
    }
    return ended;
}

/* Finds the ended pod another node, and leaves it there. Free with g_free; NULL: there is none. */
static char *find_home(struct search *search, const struct allocation *ended)
{
    struct cluster *cluster = search->query->cluster;
    struct store *copy = search->query->copy;
    g_autoptr(json_arena) arena = json_arena_new();
    struct placement placement;
    struct pod_view view;
    bool found;

    if (!cluster)
        return NULL;
    store_unlock(copy); /* nobody else has it, but no lock is held while the cluster is asked */
    found = cluster->ops->get_pod(cluster, arena, ended->ns, ended->name,
                                  g_get_monotonic_time() / 1000 + GET_POD_MS, &view,
                                  NULL) == OUTCOME_OK;
    store_lock(copy);
    if (!found)
        return NULL;
    g_autoptr(request) request =
        dialect_read_request(&view, &store_options(copy)->dialects, NULL);
    if (!request)
        return NULL;
    const struct plan_pod pod = {&view, request, &search->moment};
    const struct node *home = plan_choose(copy, &pod, &placement);
    return home && plan_put(copy, &pod, ended->uid, home, &placement) ? g_strdup(home->name)
                                                                      : NULL;
}

/* Where all of the ended pods would go once the pod is on the node. */
static bool find_homes(struct search *search, const struct node *node, const GPtrArray *ended,
                       GArray *pods)
{
    const struct plan_pod own = {search->query->pod, search->query->request, &search->moment};
    struct placement placement;
    bool all = ended->len <= REMEDY_MOVES_MAX &&
               ask_node(search, node, own.view, own.request, &placement) == REASON_NONE &&
               plan_put(search->query->copy, &own, "", node, &placement);

    for (guint i = 0; i < pods->len && all; i++) {
        struct remedy_pod *pod = &g_array_index(pods, struct remedy_pod, i);
        pod->to = find_home(search, ended->pdata[i]);
        all = pod->to;
    }
    ledger_drop(search->ledger, "");
    return all;
}

static char *tell_moves(const GArray *pods, bool move)
{
    GString *text = g_string_new(move ? "move " : "end ");

    for (guint i = 0; i < pods->len; i++) {
        const struct remedy_pod *pod = &g_array_index(pods, struct remedy_pod, i);
        g_string_append_printf(text, "%s%s/%s%s%s", i ? ", " : "", pod->ns, pod->name,
                               move ? " to " : "", move ? pod->to : "");
    }
    return g_string_free(text, FALSE);
}

static void add_pods(struct search *search, const struct node *node, const GPtrArray *ended)
{
    struct remedy remedy = {.pods = g_array_new(FALSE, FALSE, sizeof(struct remedy_pod))};

    g_array_set_clear_func(remedy.pods, clear_pod);
    for (guint i = 0; i < ended->len; i++) {
        const struct allocation *one = ended->pdata[i];
        const struct remedy_pod pod = {g_strdup(one->ns), g_strdup(one->name), NULL};
        g_array_append_val(remedy.pods, pod);
    }
    const bool move = find_homes(search, node, ended, remedy.pods);
    remedy.kind = move ? REMEDY_MOVE : REMEDY_END;
    remedy.text = tell_moves(remedy.pods, move);
    for (guint i = 0; i < remedy.pods->len && !move; i++)
        g_clear_pointer(&g_array_index(remedy.pods, struct remedy_pod, i).to, g_free);
    add(search, remedy, node);
}

/* Fewer pods are better, then smaller ones. */
static bool is_smaller(const GPtrArray *left, const GPtrArray *right)
{
    int64_t one = 0, other = 0;

    if (left->len != right->len)
        return left->len < right->len;
    for (guint i = 0; i < left->len; i++) {
        const struct allocation *a = left->pdata[i], *b = right->pdata[i];
        for (uint32_t j = 0; j < a->n_shares; j++)
            one += a->shares[j].memory.value + a->shares[j].devices + a->shares[j].core;
        for (uint32_t j = 0; j < b->n_shares; j++)
            other += b->shares[j].memory.value + b->shares[j].devices + b->shares[j].core;
    }
    return one < other;
}

/* Back to how it was, wherever they are now. */
static void put_back(struct search *search, const char *node, const GPtrArray *ended)
{
    for (guint i = 0; i < ended->len; i++)
        ledger_put(search->ledger, node, allocation_dup(ended->pdata[i]));
}

static void free_allocation(gpointer data)
{
    allocation_free(data);
}

static void try_pods(struct search *search)
{
    g_autoptr(GPtrArray) best = NULL;
    const struct node *where = NULL;

    for (const char *const *name = search->query->nodes; *name && may_try(search); name++) {
        const struct node *node = ledger_node(search->ledger, *name);
        if (node->cordoned || node->allocations->len == 0)
            continue;
        g_autoptr(GPtrArray) ended = make_room(search, node);
        g_ptr_array_set_free_func(ended, free_allocation);
        put_back(search, *name, ended);
        if (ended->len == 0 || (best && !is_smaller(ended, best)))
            continue;
        g_clear_pointer(&best, g_ptr_array_unref);
        best = g_steal_pointer(&ended);
        where = node;
    }
    if (!best)
        return;
    for (guint i = 0; i < best->len; i++)
        ledger_drop(search->ledger, ((struct allocation *)best->pdata[i])->uid);
    add_pods(search, where, best);
    put_back(search, where->name, best);
}

/* --- the node ------------------------------------------------------------------------------- */

/* Waiting pods of the node as the node side will have matched them; what they were is returned. */
static GPtrArray *match_all(struct search *search, const struct node *node)
{
    GPtrArray *waiting = g_ptr_array_new_with_free_func(free_allocation);

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *one = node->allocations->pdata[i];
        if (one->waiting)
            g_ptr_array_add(waiting, allocation_dup(one));
    }
    for (guint i = 0; i < waiting->len; i++) {
        struct allocation *matched = allocation_dup(waiting->pdata[i]);
        matched->waiting = false;
        matched->assigned = true;
        ledger_put(search->ledger, node->name, matched);
    }
    return waiting;
}

static void try_match(struct search *search, const struct node *node)
{
    g_autoptr(GPtrArray) waiting = match_all(search, node);

    if (waiting->len > 0 && takes(search, node)) {
        struct remedy remedy = {
            .kind = REMEDY_MATCH,
            .pods = g_array_new(FALSE, FALSE, sizeof(struct remedy_pod)),
            .text = g_strdup_printf("wait until the node side of %s has matched the pods that "
                                    "wait there",
                                    node->name),
        };
        g_array_set_clear_func(remedy.pods, clear_pod);
        for (guint i = 0; i < waiting->len; i++) {
            const struct allocation *one = waiting->pdata[i];
            const struct remedy_pod pod = {g_strdup(one->ns), g_strdup(one->name), NULL};
            g_array_append_val(remedy.pods, pod);
        }
        add(search, remedy, node);
    }
    put_back(search, node->name, waiting);
}

static void try_heal(struct search *search, struct node *node)
{
    for (int32_t i = 0; i < node->n_cards && may_try(search); i++) {
        struct card *card = &node->cards[i];
        if (card->healthy || has_found(search, REMEDY_HEAL))
            continue;
        card->healthy = true;
        if (takes(search, node))
            add(search,
                (struct remedy){.kind = REMEDY_HEAL,
                                .card = card->index,
                                .text = g_strdup_printf("mend card %d of %s, which %s says is "
                                                        "unhealthy",
                                                        card->index, node->name,
                                                        card->broken ? "its node side"
                                                                     : "a ConfigMap")},
                node);
        card->healthy = false;
    }
}

static void try_label(struct search *search, struct node *node)
{
    const struct terms *terms = search->query->request->terms;
    const int32_t compute = node->compute, driver = node->driver;
    const bool first = terms && compute == 0 && terms->compute_min > 0;

    if (!first && (!terms || driver != 0 || terms->driver_min == 0))
        return;
    node->compute = MAX(compute, terms->compute_min);
    node->driver = MAX(driver, terms->driver_min);
    if (takes(search, node)) {
        const char *label = first ? "nvidia.com/gpu.compute.major"
                                  : "nvidia.com/cuda.driver-version.major";
        add(search,
            (struct remedy){.kind = REMEDY_LABEL,
                            .key = g_strdup(label),
                            .text = g_strdup_printf("let GPU Feature Discovery label %s (%s), if "
                                                    "its GPUs are such",
                                                    node->name, label)},
            node);
    }
    node->compute = compute;
    node->driver = driver;
}

static void try_quota(struct search *search, const struct node *node)
{
    struct quota_count count;
    struct judge judge;

    judge_init(&judge, search->query->copy, search->query->pod, search->query->request,
               &search->moment);
    struct quota_room *room = g_steal_pointer(&judge.room);
    if (room) {
        quota_room_count(room, node->name, &count);
        const int64_t to = (count.used + count.wanted + CORE_WHOLE - 1) / CORE_WHOLE;
        if (count.limited && count.pooled && judge_node(&judge, node, NULL) == REASON_NONE)
            add(search,
                (struct remedy){
                    .kind = REMEDY_QUOTA,
                    .key = g_strdup(count.model),
                    .from = g_strdup_printf("%g", (double)count.limit / CORE_WHOLE),
                    .to = g_strdup_printf("%" G_GINT64_FORMAT, to),
                    .text = g_strdup_printf("give namespace %s %" G_GINT64_FORMAT " %s instead of "
                                            "%g (ConfigMap kube-system/gpuquota)",
                                            search->query->pod->ns, to, count.model,
                                            (double)count.limit / CORE_WHOLE)},
                node);
    }
    judge.room = room;
    judge_clear(&judge);
}

static void try_resource_quota(struct search *search, const struct node *node)
{
    struct resource_count count;
    struct placement placement;
    struct judge judge;

    judge_init(&judge, search->query->copy, search->query->pod, search->query->request,
               &search->moment);
    struct quota_room *room = g_steal_pointer(&judge.room);
    if (room && judge_node(&judge, node, &placement) == REASON_NONE &&
        !resource_room_allows(quota_room_resources(room), node, &placement, &count) &&
        count.alone) {
        const int64_t to = count.used + count.wanted;
        add(search,
            (struct remedy){
                .kind = REMEDY_QUOTA,
                .key = g_strdup(count.key),
                .from = g_strdup_printf("%" G_GINT64_FORMAT, count.limit),
                .to = g_strdup_printf("%" G_GINT64_FORMAT, to),
                .text = g_strdup_printf("let ResourceQuota %s/%s have %" G_GINT64_FORMAT
                                        " instead of %" G_GINT64_FORMAT " under %s",
                                        search->query->pod->ns, count.quota, to, count.limit,
                                        count.key)},
            node);
    }
    judge.room = room;
    judge_clear(&judge);
}

static void try_turn(struct search *search, const struct node *node)
{
    struct judge judge;

    judge_init(&judge, search->query->copy, search->query->pod, search->query->request,
               &search->moment);
    if (judge_node(&judge, node, NULL) == REASON_EARLIER_POD)
        add(search,
            (struct remedy){.kind = REMEDY_TURN,
                            .text = g_strdup_printf("wait: the room on %s is left to %s for a "
                                                    "while, which came first",
                                                    node->name, judge.older)},
            node);
    judge_clear(&judge);
}

static void try_uncordon(struct search *search, const struct node *node)
{
    if (node->cordoned && takes(search, node))
        add(search,
            (struct remedy){.kind = REMEDY_UNCORDON,
                            .text = g_strdup_printf("uncordon %s", node->name)},
            node);
}

/* One node of each kind is enough. */
static void try_node(struct search *search, struct node *node)
{
    const enum reason reason =
        ask_node(search, node, search->query->pod, search->query->request, NULL);

    if (!has_found(search, REMEDY_UNCORDON))
        try_uncordon(search, node);
    if (node->cordoned)
        return;
    if (reason == REASON_EARLIER_POD && !has_found(search, REMEDY_TURN))
        try_turn(search, node);
    if (reason == REASON_AWAITING_ASSIGNMENT && !has_found(search, REMEDY_MATCH))
        try_match(search, node);
    if (reason == REASON_QUOTA && !has_found(search, REMEDY_QUOTA))
        try_quota(search, node);
    if (reason == REASON_RESOURCE_QUOTA && !has_found(search, REMEDY_QUOTA))
        try_resource_quota(search, node);
    if (reason == REASON_TERMS && !has_found(search, REMEDY_LABEL))
        try_label(search, node);
    if (!has_found(search, REMEDY_HEAL))
        try_heal(search, node);
}

/* --- all of them ---------------------------------------------------------------------------- */

static gint compare_remedies(gconstpointer a, gconstpointer b)
{
    const struct remedy *left = a, *right = b;
    return (gint)left->kind - (gint)right->kind;
}

/* Whether those that read the pod's resources say that no card is large enough. */
static bool is_too_large(struct search *search)
{
    bool too_large = false;

    for (const char *const *name = search->query->nodes; *name; name++) {
        const enum reason reason =
            ask_node(search, ledger_node(search->ledger, *name), search->query->pod,
                     search->query->request, NULL);
        too_large |= reason == REASON_CARD_TOO_SMALL;
        if (reason == REASON_INSUFFICIENT_MEMORY)
            return false;
    }
    return too_large;
}

GArray *remedies_find(const struct remedies_query *query)
{
    struct search search = {
        .query = query,
        .found = g_array_new(FALSE, FALSE, sizeof(struct remedy)),
    };

    g_array_set_clear_func(search.found, clear_remedy);
    search.ledger = store_decide(query->copy, &search.moment);
    for (const char *const *name = query->nodes; *name && may_try(&search); name++)
        try_node(&search, ledger_node(search.ledger, *name));
    try_amounts(&search, is_too_large(&search));
    try_annotations(&search);
    try_pods(&search);
    store_unlock(query->copy);
    g_array_sort(search.found, compare_remedies);
    return search.found;
}

static const char *const kind_names[REMEDY_N] = {
    [REMEDY_TURN] = "turn",       [REMEDY_MATCH] = "match",
    [REMEDY_UNCORDON] = "uncordon", [REMEDY_UNIT] = "unit",
    [REMEDY_LESS] = "less",       [REMEDY_MOVE] = "move",
    [REMEDY_END] = "end",         [REMEDY_HEAL] = "heal",
    [REMEDY_CONDITION] = "condition", [REMEDY_LABEL] = "label",
    [REMEDY_QUOTA] = "quota",
};

void remedy_encode(struct json_writer *writer, const struct remedy *remedy)
{
    json_begin_object(writer);
    json_key_string(writer, "kind", kind_names[remedy->kind]);
    json_key_string(writer, "text", remedy->text);
    json_key_string(writer, "node", remedy->node);
    json_key_string(writer, "container", remedy->container);
    json_key_string(writer, "resource", remedy->resource);
    json_key_string(writer, "key", remedy->key);
    json_key_string(writer, "from", remedy->from);
    json_key_string(writer, "to", remedy->to);
    json_key(writer, "card");
    if (remedy->kind == REMEDY_HEAL)
        json_int(writer, remedy->card);
    else
        json_null(writer);
    json_key(writer, "pods");
    json_begin_array(writer);
    for (guint i = 0; remedy->pods && i < remedy->pods->len; i++) {
        const struct remedy_pod *pod = &g_array_index(remedy->pods, struct remedy_pod, i);
        json_begin_object(writer);
        json_key_string(writer, "namespace", pod->ns);
        json_key_string(writer, "name", pod->name);
        json_key_string(writer, "to", pod->to);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}
