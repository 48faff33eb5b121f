/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings down what is fragmented, by one move after the other. What a move brings is what its pod's end brings on
 * the node that it leaves, and what its successor takes on another: each is found out once, for pods that ask for
 * the same once for each node, and again only where a move was made.
 */
#include "core/ledger.h"
#include "plan/search.h"

#include <gpuledger/fragmentation.h>
#include <string.h>

#define UID "to gather" /* of what is put on a node to see */
#define NEVER INT64_MAX /* it does not fit, or was not looked at */
#define NOWHERE G_MAXUINT
#define WRONG_MAX 64 /* moves that bring less than was foreseen, before the search ends */

/* Pods that ask for the same. */
struct kind {
    const struct request *request;
    int64_t best;     /* what the end of one of them brings, at best */
    int64_t *arrives; /* of each node: what a successor adds there; NULL: that was not looked at */
    guint *order;     /* of nodes, those where it adds least first */
};

/* Of a pod: what it would add to what is fragmented, mostly less than 0. */
struct outlook {
    guint kind;
    guint on;       /* its node; NOWHERE: it is not to move */
    int64_t leaves; /* by its end */
    int64_t stays;  /* by a move to where the policy then has it on its own node */
    bool wrong;     /* a move of it did not bring what was foreseen */
};

struct gather {
    struct search *search;
    GHashTable *numbers; /* name of a node -> its place in the ledger's list */
    guint n_nodes;
    GArray *kinds;        /* struct kind */
    struct outlook *pods; /* as the query has them */
};

/* A move, and what is fragmented after it. */
struct choice {
    size_t pod;
    guint to; /* NOWHERE: there is none */
    int64_t fragmented, cost;
};

static const struct node *node_at(const struct gather *gather, guint i)
{
    return ledger_nodes(gather->search->ledger)->pdata[i];
}

static const struct plan_pod *pod_at(const struct gather *gather, size_t i)
{
    return &gather->search->query->pods[i];
}

static int64_t measure(const struct gather *gather, const char *node)
{
    return fragmentation_of(ledger_node(gather->search->ledger, node),
                            gather->search->query->goal.demand);
}

/* --- what is known of pods and nodes ------------------------------------------------------------ */

static bool move(struct search *search, size_t i, const char *to)
{
    const struct node *node = ledger_node(search->ledger, to);
    struct placement placement;

    return search_place(search, node, search->query->pods[i].request, CARD_UNKNOWN, &placement) &&
           search_move(search, i, to, &placement);
}

static int64_t leave_of(const struct gather *gather, size_t i, const char *name)
{
    struct ledger *ledger = gather->search->ledger;
    struct allocation *kept = allocation_dup(ledger_get(ledger, pod_at(gather, i)->uid));
    const int64_t before = measure(gather, name);

    ledger_drop(ledger, kept->uid);
    const int64_t after = measure(gather, name);
    ledger_put(ledger, name, kept);
    return after - before;
}

static int64_t stay_of(const struct gather *gather, size_t i, const char *name)
{
    struct search *search = gather->search;
    const guint n = search->steps->len;
    const int64_t before = search->fragmented;
    const int64_t adds = move(search, i, name) ? search->fragmented - before : NEVER;

    search_return(search, n);
    return adds;
}

static void look_at_pod(const struct gather *gather, size_t i)
{
    struct outlook *outlook = &gather->pods[i];
    const struct allocation *old = ledger_get(gather->search->ledger, pod_at(gather, i)->uid);

    outlook->on = NOWHERE;
    outlook->leaves = outlook->stays = NEVER;
    if (!old || gather->search->moved[i] || !search_try(gather->search))
        return;
    g_autofree char *name = g_strdup(old->node->name);
    outlook->on = GPOINTER_TO_UINT(g_hash_table_lookup(gather->numbers, name));
    outlook->leaves = leave_of(gather, i, name);
    outlook->stays = stay_of(gather, i, name);
}

static int64_t arrive_of(const struct gather *gather, const struct kind *kind, guint at)
{
    const struct node *node = node_at(gather, at);
    struct ledger *ledger = gather->search->ledger;
    struct placement placement;
    enum reason reason;

    if (!node->present || node->cordoned ||
        !search_place(gather->search, node, kind->request, CARD_UNKNOWN, &placement))
        return NEVER;
    g_autofree char *name = g_strdup(node->name);
    struct allocation *held = allocation_new(UID, "", UID, placement.n_shares);
    allocation_note_request(held, placement.request);
    held->state = ALLOCATION_ASSUMED;
    memcpy(held->shares, placement.shares, placement.n_shares * sizeof *placement.shares);
    const int64_t before = measure(gather, name);
    if (!ledger_reserve(ledger, name, held, &reason))
        return NEVER;
    const int64_t after = measure(gather, name);
    ledger_drop(ledger, UID);
    return after - before;
}

static gint compare_nodes(gconstpointer a, gconstpointer b, gpointer arrives)
{
    const guint one = *(const guint *)a, other = *(const guint *)b;
    const int64_t adds[] = {((const int64_t *)arrives)[one], ((const int64_t *)arrives)[other]};

    if (adds[0] != adds[1])
        return adds[0] < adds[1] ? -1 : 1;
    return (one > other) - (one < other);
}

static void sort_nodes(const struct gather *gather, struct kind *kind)
{
    g_qsort_with_data(kind->order, (gint)gather->n_nodes, sizeof *kind->order, compare_nodes,
                      kind->arrives);
}

static void kind_clear(void *data)
{
    struct kind *kind = data;

    g_free(kind->arrives);
    g_free(kind->order);
}

static guint kind_of(struct gather *gather, const struct request *request)
{
    for (guint i = 0; i < gather->kinds->len; i++) {
        if (request_equal(g_array_index(gather->kinds, struct kind, i).request, request))
            return i;
    }
    const struct kind kind = {.request = request, .best = NEVER};
    g_array_append_val(gather->kinds, kind);
    return gather->kinds->len - 1;
}

static gint compare_kinds(gconstpointer a, gconstpointer b)
{
    const struct kind *one = *(const struct kind *const *)a,
                      *other = *(const struct kind *const *)b;

    return (one->best > other->best) - (one->best < other->best);
}

static void look_at_kind(const struct gather *gather, struct kind *kind)
{
    kind->arrives = g_new(int64_t, gather->n_nodes + 1);
    kind->order = g_new(guint, gather->n_nodes + 1);
    for (guint i = 0; i < gather->n_nodes; i++) {
        kind->order[i] = i;
        kind->arrives[i] = search_try(gather->search) ? arrive_of(gather, kind, i) : NEVER;
    }
    sort_nodes(gather, kind);
}

/* Those first whose pods bring most, since there may be too many to be looked at. */
static void look_at_kinds(struct gather *gather)
{
    g_autoptr(GPtrArray) kinds = g_ptr_array_new();

    for (guint i = 0; i < gather->kinds->len; i++)
        g_ptr_array_add(kinds, &g_array_index(gather->kinds, struct kind, i));
    g_ptr_array_sort(kinds, compare_kinds);
    for (guint i = 0; i < kinds->len && !gather->search->gave_up; i++)
        look_at_kind(gather, kinds->pdata[i]);
}

static void gather_init(struct gather *gather, struct search *search)
{
    const GPtrArray *nodes = ledger_nodes(search->ledger);

    *gather =
        (struct gather){.search = search,
                        .numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                        .n_nodes = nodes->len,
                        .kinds = g_array_new(FALSE, FALSE, sizeof(struct kind)),
                        .pods = g_new0(struct outlook, search->query->n_pods + 1)};
    g_array_set_clear_func(gather->kinds, kind_clear);
    for (guint i = 0; i < nodes->len; i++)
        g_hash_table_insert(gather->numbers, g_strdup(((const struct node *)nodes->pdata[i])->name),
                            GUINT_TO_POINTER(i));
    for (size_t i = 0; i < search->query->n_pods; i++) {
        gather->pods[i].kind = kind_of(gather, pod_at(gather, i)->request);
        look_at_pod(gather, i);
        struct kind *kind = &g_array_index(gather->kinds, struct kind, gather->pods[i].kind);
        kind->best = MIN(kind->best, gather->pods[i].leaves);
    }
    look_at_kinds(gather);
}

static void gather_clear(struct gather *gather)
{
    g_hash_table_unref(gather->numbers);
    g_array_unref(gather->kinds);
    g_free(gather->pods);
}

/* A move has changed the node. */
static void look_again(struct gather *gather, guint at)
{
    for (guint k = 0; k < gather->kinds->len; k++) {
        struct kind *kind = &g_array_index(gather->kinds, struct kind, k);
        if (!kind->arrives)
            continue;
        kind->arrives[at] = search_try(gather->search) ? arrive_of(gather, kind, at) : NEVER;
        sort_nodes(gather, kind);
    }
    for (size_t i = 0; i < gather->search->query->n_pods; i++) {
        if (gather->pods[i].on == at)
            look_at_pod(gather, i);
    }
}

/* --- the best move ------------------------------------------------------------------------------ */

static void keep_better(struct choice one, struct choice *best)
{
    if (one.fragmented < best->fragmented ||
        (best->to != NOWHERE && one.fragmented == best->fragmented && one.cost < best->cost))
        *best = one;
}

/* Where it adds least of all nodes but its own that may take it. */
static guint find_home(const struct gather *gather, size_t i)
{
    const struct outlook *outlook = &gather->pods[i];
    const struct kind *kind = &g_array_index(gather->kinds, struct kind, outlook->kind);

    for (guint n = 0; kind->arrives && n < gather->n_nodes; n++) {
        const guint at = kind->order[n];
        if (kind->arrives[at] == NEVER)
            break;
        if (at != outlook->on &&
            search_admits(gather->search, node_at(gather, at), pod_at(gather, i)))
            return at;
    }
    return NOWHERE;
}

/* That leaves the least. */
static struct choice choose(const struct gather *gather)
{
    const struct search *search = gather->search;
    struct choice best = {.to = NOWHERE, .fragmented = search->fragmented};

    for (size_t i = 0; i < search->query->n_pods; i++) {
        const struct outlook *outlook = &gather->pods[i];
        const int64_t cost = pod_at(gather, i)->cost;
        if (outlook->on == NOWHERE || outlook->wrong || !search_may_move(search, i))
            continue;
        const guint home = find_home(gather, i);
        if (home != NOWHERE) {
            const struct kind *kind = &g_array_index(gather->kinds, struct kind, outlook->kind);
            const int64_t adds = outlook->leaves + kind->arrives[home];
            keep_better((struct choice){i, home, search->fragmented + adds, cost}, &best);
        }
        if (outlook->stays != NEVER &&
            search_admits(search, node_at(gather, outlook->on), pod_at(gather, i)))
            keep_better((struct choice){i, outlook->on, search->fragmented + outlook->stays, cost},
                        &best);
    }
    return best;
}

/* False: none leaves less than there is. */
static bool take_best(struct gather *gather)
{
    struct search *search = gather->search;

    for (int i = 0; i < WRONG_MAX; i++) {
        const int64_t before = search->fragmented;
        const guint n = search->steps->len;
        const struct choice best = choose(gather);
        if (best.to == NOWHERE)
            return false;
        const guint from = gather->pods[best.pod].on;
        g_autofree char *to = g_strdup(node_at(gather, best.to)->name);
        if (move(search, best.pod, to) && search->fragmented < before) {
            gather->pods[best.pod].on = NOWHERE;
            look_again(gather, from);
            look_again(gather, best.to);
            return true;
        }
        search_return(search, n);
        gather->pods[best.pod].wrong = true;
    }
    return false;
}

bool gather_find(struct search *search, uint32_t most)
{
    bool reached = search_reached(search);
    struct gather gather;

    search->gave_up = false; /* what came before, and what follows, counts its own tries */
    search->tries = 0;
    gather_init(&gather, search);
    while (!reached && search->steps->len < most && take_best(&gather))
        reached = search_reached(search);
    gather_clear(&gather);
    search->gave_up = false;
    search->tries = 0;
    return reached;
}
