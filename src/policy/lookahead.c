/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/lookahead.h"

#include "core/bytes.h"
#include "core/ledger.h"
#include "policy/room.h"
#include "policy/what_if.h"

#include <gpuledger/ranking.h>
#include <math.h>
#include <string.h>

/* A shape as a pod that comes. */
struct visitor {
    struct request *request;
    double gpus;  /* that it asks for, in cards */
    double until; /* counts of this shape and of those before it */
};

struct lookahead {
    struct ledger *ledger; /* empty but during a run */
    struct demand *demand;
    GPtrArray *nodes; /* const struct node *, the ledger's */
    GArray *visitors; /* struct visitor */
    double gpus;      /* of the cluster, in cards */
    double mean_gpus; /* of a visitor */
};

/* --- the cluster ------------------------------------------------------------------------------ */

static gint compare_nodes(gconstpointer a, gconstpointer b)
{
    const struct node *const *left = a, *const *right = b;
    const uint64_t one = node_own(*left)->hardware, other = node_own(*right)->hardware;

    if (one != other)
        return one < other ? -1 : 1;
    return strcmp((*left)->name, (*right)->name);
}

static void leave(struct allocation *allocation, void *data)
{
    g_ptr_array_add(data, g_strdup(allocation->uid));
}

/* Whoever is there goes. */
static void empty(struct ledger *ledger)
{
    g_autoptr(GPtrArray) uids = g_ptr_array_new_with_free_func(g_free);

    ledger_each(ledger, leave, uids);
    for (guint i = 0; i < uids->len; i++)
        ledger_drop(ledger, uids->pdata[i]);
    ledger_sweep_cpu_pods(ledger, UINT32_MAX);
}

static void copy_nodes(struct lookahead *lookahead, struct ledger *ledger)
{
    const GPtrArray *all = ledger_nodes(ledger);
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();

    for (guint i = 0; i < all->len; i++) {
        const struct node *node = all->pdata[i];
        if (node->present && (node->n_cards > 0 || node->n_pools > 0))
            g_ptr_array_add(sorted, all->pdata[i]);
    }
    g_ptr_array_sort(sorted, compare_nodes);
    const guint n = MIN(sorted->len, LOOKAHEAD_NODES_MAX);
    for (guint i = 0; i < n; i++)
        ledger_copy_node(lookahead->ledger, sorted->pdata[(guint64)i * sorted->len / n]);
    empty(lookahead->ledger);
    all = ledger_nodes(lookahead->ledger);
    for (guint i = 0; i < all->len; i++) {
        const struct node *node = all->pdata[i];
        g_ptr_array_add(lookahead->nodes, all->pdata[i]);
        lookahead->gpus += node->n_cards;
        for (int32_t k = 0; node->n_cards == 0 && k < node->n_pools; k++)
            lookahead->gpus += node->pools[k].capacity * pool_device_size(&node->pools[k]);
    }
}

/* --- the pods --------------------------------------------------------------------------------- */

static double gpus_on(const struct node *node, const struct shape *shape)
{
    const struct pool *pool = shape->device ? node_pool(node, shape->device) : NULL;

    if (pool)
        return shape->cards * pool_device_size(pool);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct room wanted = room_wanted(node, &node->cards[i], shape);
        const int32_t part = MAX(wanted.memory, wanted.core);
        if (part > 0 && terms_accept_model(shape->terms, node->cards[i].model))
            return (double)shape->cards * part / PART_WHOLE;
    }
    return 0;
}

/* Where cards differ, the mean over the nodes that have some for it. */
static double gpus_of(const struct lookahead *lookahead, const struct shape *shape)
{
    double sum = 0;
    unsigned n = 0;

    for (guint i = 0; i < lookahead->nodes->len; i++) {
        const double gpus = gpus_on(lookahead->nodes->pdata[i], shape);
        sum += gpus;
        n += gpus > 0;
    }
    return n > 0 ? sum / n : 0;
}

static struct request *request_of(const struct shape *shape)
{
    struct request *request = request_new(NULL, shape->cards > 0);

    request->terms = terms_ref(shape->terms);
    request->host.cpu = shape->cpu;
    request->host.memory = shape->count > 0 ? (int64_t)(shape->gib / shape->count * GIB) : 0;
    if (shape->cards > 0)
        request->asks[0] = (struct card_ask){.memory = shape->memory,
                                             .container = CONTAINER_POD,
                                             .count = shape->cards,
                                             .core = shape->core,
                                             .exclusive = shape->exclusive && !shape->device,
                                             .device = shape->device};
    return request;
}

static void add_visitors(struct lookahead *lookahead)
{
    const struct learned_demand learned = demand_tell(lookahead->demand);
    double until = 0, gpus = 0;

    for (size_t i = 0; i < learned.n; i++) {
        const struct shape *shape = &learned.shapes[i];
        const double each = shape->cards > 0 ? gpus_of(lookahead, shape) : 0;
        if (shape->cards > 0 && each == 0)
            continue; /* no card here does for it */
        until += shape->count;
        gpus += shape->count * each;
        const struct visitor visitor = {request_of(shape), each, until};
        g_array_append_val(lookahead->visitors, visitor);
    }
    lookahead->mean_gpus = until > 0 ? gpus / until : 0;
}

static void clear_visitor(gpointer data)
{
    request_free(((struct visitor *)data)->request);
}

struct lookahead *lookahead_new(struct ledger *ledger, const struct demand *demand)
{
    g_autoptr(lookahead) lookahead = g_new0(struct lookahead, 1);

    lookahead->ledger = ledger_new();
    lookahead->demand = demand_dup(demand);
    lookahead->nodes = g_ptr_array_new();
    lookahead->visitors = g_array_new(FALSE, TRUE, sizeof(struct visitor));
    g_array_set_clear_func(lookahead->visitors, clear_visitor);
    copy_nodes(lookahead, ledger);
    demand_settle_now(lookahead->demand, lookahead->ledger);
    add_visitors(lookahead);
    if (demand_version(lookahead->demand) == 0 || lookahead->gpus == 0 || lookahead->mean_gpus == 0)
        return NULL;
    return g_steal_pointer(&lookahead);
}

void lookahead_free(struct lookahead *lookahead)
{
    if (!lookahead)
        return;
    g_array_unref(lookahead->visitors);
    g_ptr_array_unref(lookahead->nodes);
    demand_free(lookahead->demand);
    ledger_free(lookahead->ledger);
    g_free(lookahead);
}

/* --- a run ------------------------------------------------------------------------------------ */

/* What a node was found to be for a visitor, and when. */
struct sight {
    struct rank *ranks; /* by node; of infinite loss: it does not fit */
    uint64_t *at;       /* by node: its `changed` then */
};

/* One that has found room. */
struct stay {
    double until, gpus;
    guint node;
    char *uid;
};

struct run {
    struct lookahead *lookahead;
    const struct lookahead_options *options;
    GRand *chance;
    GRand *times;
    struct sight *sights; /* by visitor */
    uint64_t *changed;    /* by node, from 1 on */
    GSequence *stays;     /* struct stay, by time */
    uint64_t n_pods;
    double used, asked, now, end, used_time;
};

static void free_stay(gpointer data)
{
    struct stay *stay = data;

    g_free(stay->uid);
    g_free(stay);
}

static gint compare_stays(gconstpointer a, gconstpointer b, gpointer unused)
{
    const struct stay *left = a, *right = b;

    return left->until < right->until ? -1 : left->until > right->until;
}

static double wait(GRand *chance, double mean)
{
    return -mean * log1p(-g_rand_double(chance));
}

static bool place(const struct run *run, const struct visitor *visitor, const struct node *node,
                  struct placement *ret_placement)
{
    const struct policy *policy = node->policy ? node->policy : run->options->policy;
    const struct host left = node_host_free(node), *asked = &visitor->request->host;

    return left.cpu >= asked->cpu && left.memory >= asked->memory &&
           placement_find(node, visitor->request, policy, run->lookahead->demand, CARD_UNKNOWN,
                          ret_placement) == REASON_NONE;
}

static void look(struct run *run, const struct visitor *visitor, struct sight *sight)
{
    const GPtrArray *nodes = run->lookahead->nodes;
    struct placement placement;

    for (guint i = 0; i < nodes->len; i++) {
        if (sight->at[i] == run->changed[i])
            continue;
        const struct node *node = nodes->pdata[i];
        sight->at[i] = run->changed[i];
        sight->ranks[i] = (struct rank){.name = node->name, .loss = INFINITY};
        if (place(run, visitor, node, &placement))
            ranking_rate(run->options->policy, node, &placement, run->lookahead->demand,
                         &sight->ranks[i]);
    }
}

static const struct visitor *draw(struct run *run, size_t *ret_index)
{
    const GArray *visitors = run->lookahead->visitors;
    const struct visitor *all = (const struct visitor *)(const void *)visitors->data;
    const double at = g_rand_double(run->chance) * all[visitors->len - 1].until;
    size_t from = 0, to = visitors->len - 1;

    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (all[middle].until > at)
            to = middle;
        else
            from = middle + 1;
    }
    *ret_index = from;
    return &all[from];
}

/* Takes its place on the node. */
static void settle(struct run *run, const struct visitor *visitor, guint node, double until)
{
    struct ledger *ledger = run->lookahead->ledger;
    const struct node *on = run->lookahead->nodes->pdata[node];
    struct stay *stay = g_new(struct stay, 1);
    struct placement placement;
    enum reason reason;

    *stay = (struct stay){until, visitor->gpus, node,
                          g_strdup_printf("%" G_GUINT64_FORMAT, ++run->n_pods)};
    g_sequence_insert_sorted(run->stays, stay, compare_stays, NULL);
    run->used += visitor->gpus;
    run->changed[node]++;
    if (visitor->request->n_asks == 0)
        ledger_put_cpu_pod(ledger, on->name, stay->uid, visitor->request->host, 1);
    else if (place(run, visitor, on, &placement))
        ledger_reserve(ledger, on->name, what_if_allocation(stay->uid, 0, &placement), &reason);
}

static void come(struct run *run)
{
    size_t index;
    const struct visitor *visitor = draw(run, &index);
    struct sight *sight = &run->sights[index];
    const double until = run->now + wait(run->times, 1);

    run->asked += visitor->gpus;
    look(run, visitor, sight);
    const size_t winner =
        ranking_winner(run->options->policy, sight->ranks, run->lookahead->nodes->len);
    if (!isinf(sight->ranks[winner].loss))
        settle(run, visitor, (guint)winner, until);
}

/* Counts from the first lifetime on. */
static void go_on(struct run *run, double now)
{
    run->used_time += run->used * MAX(now - MAX(run->now, 1), 0);
    run->now = now;
}

static void let_go(struct run *run, double now)
{
    GSequenceIter *first;

    while (!g_sequence_iter_is_end(first = g_sequence_get_begin_iter(run->stays))) {
        const struct stay *stay = g_sequence_get(first);
        if (stay->until > now)
            break;
        go_on(run, stay->until);
        ledger_drop(run->lookahead->ledger, stay->uid);
        run->used -= stay->gpus;
        run->changed[stay->node]++;
        g_sequence_remove(first);
    }
    go_on(run, now);
}

static bool is_cancelled(const struct run *run)
{
    return run->options->cancelled && g_atomic_int_get(run->options->cancelled);
}

/* Begins with as many pods as there would be, as what is left of an exponential lifetime is as long
 * as the whole. */
static void turn_over(struct run *run)
{
    const double load = run->options->load * run->lookahead->gpus;
    double next = 0;

    while (!is_cancelled(run) && run->asked < load)
        come(run);
    while (!is_cancelled(run) &&
           (next += wait(run->chance, run->lookahead->mean_gpus / load)) < run->end) {
        let_go(run, next);
        come(run);
    }
    let_go(run, run->end);
}

static void run_init(struct run *run, struct lookahead *lookahead,
                     const struct lookahead_options *options)
{
    const guint32 words[] = {options->seed, 1};
    const guint n = lookahead->nodes->len;

    *run = (struct run){
        .lookahead = lookahead,
        .options = options,
        .chance = g_rand_new_with_seed(options->seed),
        .times = g_rand_new_with_seed_array(words, G_N_ELEMENTS(words)),
        .sights = g_new(struct sight, lookahead->visitors->len),
        .changed = g_new(uint64_t, n),
        .stays = g_sequence_new(free_stay),
        .end = 1 + options->lifetimes,
    };
    for (guint i = 0; i < n; i++)
        run->changed[i] = 1;
    for (guint i = 0; i < lookahead->visitors->len; i++)
        run->sights[i] = (struct sight){g_new(struct rank, n), g_new0(uint64_t, n)};
}

static void run_clear(struct run *run)
{
    for (guint i = 0; i < run->lookahead->visitors->len; i++) {
        g_free(run->sights[i].ranks);
        g_free(run->sights[i].at);
    }
    g_free(run->sights);
    g_free(run->changed);
    g_sequence_free(run->stays);
    g_rand_free(run->chance);
    g_rand_free(run->times);
    empty(run->lookahead->ledger);
}

double lookahead_arrivals(const struct lookahead *lookahead)
{
    return lookahead->gpus / lookahead->mean_gpus;
}

double lookahead_run(struct lookahead *lookahead, const struct lookahead_options *options)
{
    struct run run;

    run_init(&run, lookahead, options);
    turn_over(&run);
    const double allocated =
        is_cancelled(&run) ? -1 : run.used_time / lookahead->gpus / options->lifetimes;
    run_clear(&run);
    return allocated;
}
