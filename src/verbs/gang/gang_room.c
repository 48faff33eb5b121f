/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/gang/gang_room.h"

#include "core/constraints.h"
#include "policy/what_if.h"
#include "verbs/gang/gang_kinds.h"

#include <stdlib.h>

/* What takes as long as some nodes that are asked about. */
#define WORK_EMPTY 4 /* to see a node without its pods */

struct choosing {
    const struct gang_places_query *query;
    struct gang_kinds kinds;
    struct gang_kind *by_size[GANG_KINDS_MAX + 1]; /* the largest first */
    uint32_t lacks;                                /* pods for which there is no place yet */
    struct gang_row group;
    struct placement placement; /* too large to be made for each node */
};

struct candidate {
    const struct node *node;
    int64_t used; /* thousandths of what it has */
};

static int compare_sizes(const void *a, const void *b)
{
    const struct gang_kind *const *left = a, *const *right = b;

    if ((*left)->size != (*right)->size)
        return (*left)->size > (*right)->size ? -1 : 1;
    return *left < *right ? -1 : *left > *right;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;

    if (left->used != right->used)
        return left->used < right->used ? -1 : 1;
    return strcmp(left->node->name, right->node->name);
}

/* Of the scarcer of memory and compute of each card, and of its pools. */
static int64_t used_of(const struct node *node)
{
    int64_t used = 0, all = 0;

    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        const int64_t memory =
            card->memory > 0 ? (int64_t)((double)card->memory_used / (double)card->memory * 1000)
                             : 0;
        const int64_t core = card->core > 0 ? (int64_t)card->core_used * 1000 / card->core : 0;
        used += MAX(MAX(memory, core), card->exclusive > 0 ? 1000 : 0);
        all += 1000;
    }
    for (int32_t i = 0; i < node->n_pools; i++) {
        used += node->pools[i].used * 1000;
        all += (int64_t)node->pools[i].capacity * 1000;
    }
    return all > 0 ? used * 1000 / all : 1000;
}

static GArray *list_candidates(struct choosing *choosing)
{
    const GPtrArray *all = ledger_nodes(store_ledger(choosing->query->store));
    GArray *candidates = g_array_sized_new(FALSE, FALSE, sizeof(struct candidate), all->len);

    for (guint i = 0; i < all->len; i++) {
        const struct node *node = all->pdata[i];
        const struct candidate candidate = {node, used_of(node)};
        if (node->present && node->dialect)
            g_array_append_val(candidates, candidate);
    }
    choosing->kinds.work += all->len / 2;
    g_array_sort(candidates, compare_candidates);
    return candidates;
}

/* The node without anybody but the group's own. */
static struct what_if *empty(const struct choosing *choosing, const struct node *node)
{
    const struct gangs *gangs = store_gangs(choosing->query->store);
    struct what_if *what_if = what_if_new(node);
    struct gang_row row;

    for (guint i = 0; i < what_if->n_copied; i++) {
        struct allocation *allocation = what_if->allocations->pdata[i];
        if (!gangs_tell(gangs, allocation->uid, &row) || row.name != choosing->group.name)
            what_if_without(what_if, allocation);
    }
    return what_if;
}

/* One more of the kind there, within the namespace's quotas. */
static bool place(struct choosing *choosing, struct what_if *what_if, struct gang_kind *kind)
{
    struct feasibility *question = &kind->question;
    enum reason reason;

    choosing->kinds.work++;
    if (dialect_admit(what_if->node, &question->admission, &choosing->placement, &reason) ==
            ADMISSION_NO ||
        gates_refuse(&question->gates, what_if->node, &choosing->placement) != REASON_NONE)
        return false;
    struct allocation *allocation = what_if_allocation("", kind->priority, &choosing->placement);
    allocation->ns = question->ns;
    what_if_add(what_if, allocation);
    for (size_t i = 0; i < choosing->kinds.n; i++)
        feasibility_note_taken(&choosing->kinds.all[i].question, allocation);
    kind->n--;
    choosing->lacks--;
    return true;
}

/* Whether the group could come once the others there have ended. */
static bool opens(struct gang_kind *kind, const struct node *node)
{
    struct feasibility_opening opening = {0};
    const enum reason reason = feasibility_open(&kind->question, node, &opening);

    gates_relief_free(opening.relief);
    return reason == REASON_NONE;
}

static bool may_be_on(struct choosing *choosing, struct gang_kind *kind, const struct node *node)
{
    choosing->kinds.work += 1 + kind->values / VALUES_PER_NODE;
    return constraints_check(kind->constraints, node) == BARRIER_NONE &&
           dialect_serves(node, kind->request) && opens(kind, node);
}

/* As many of the group as it would take. */
static bool fill(struct choosing *choosing, const struct node *node)
{
    g_autoptr(what_if) what_if = NULL;
    bool any = false;

    for (size_t i = 0; i < choosing->kinds.n && choosing->lacks > 0; i++) {
        struct gang_kind *kind = choosing->by_size[i];
        if (kind->n == 0 || !may_be_on(choosing, kind, node))
            continue;
        if (!what_if) {
            what_if = empty(choosing, node);
            choosing->kinds.work += WORK_EMPTY;
        }
        while (kind->n > 0 && choosing->lacks > 0 && place(choosing, what_if, kind))
            any = true;
    }
    return any;
}

/* The least important of its pods counts. */
static int64_t lowest_priority(const struct gang_kinds *kinds)
{
    int64_t priority = kinds->all[0].priority;

    for (size_t i = 1; i < kinds->n; i++)
        priority = MIN(priority, kinds->all[i].priority);
    return priority;
}

static GPtrArray *choose_nodes(struct choosing *choosing)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) candidates = list_candidates(choosing);

    for (guint i = 0; i < candidates->len && choosing->lacks > 0; i++) {
        const struct node *node = g_array_index(candidates, struct candidate, i).node;
        if (gang_kinds_are_spent(&choosing->kinds))
            return NULL;
        if (fill(choosing, node))
            g_ptr_array_add(nodes, g_strdup(node->name));
    }
    return choosing->lacks == 0 ? g_steal_pointer(&nodes) : NULL;
}

uint64_t gang_room_choose(void *data, const struct gang_need *need, struct gang_choice *ret_choice)
{
    const struct gang_places_query *asked = data;
    const struct pod_view nobody = {.uid = "", .ns = asked->pod->ns, .name = asked->pod->name};
    /* The nodes that kube-scheduler has left are those that have room by its sums: each is looked at as
     * the watch has shown it. */
    const struct gang_places_query query = {
        .store = asked->store, .moment = asked->moment, .pod = &nobody};
    struct choosing *choosing = g_new0(struct choosing, 1);

    choosing->query = choosing->kinds.query = &query;
    choosing->lacks = need->lacks;
    g_autoptr(GArray) members = gang_kinds_sort(&choosing->kinds, need->uids, need->n);
    *ret_choice = (struct gang_choice){0};
    if (members->len >= need->lacks &&
        gangs_tell(store_gangs(query.store), need->uids[0], &choosing->group)) {
        for (size_t i = 0; i < choosing->kinds.n; i++)
            choosing->by_size[i] = &choosing->kinds.all[i];
        qsort(choosing->by_size, choosing->kinds.n, sizeof *choosing->by_size, compare_sizes);
        ret_choice->priority = lowest_priority(&choosing->kinds);
        ret_choice->take_nodes = choose_nodes(choosing);
    }
    gang_kinds_clear(&choosing->kinds);
    const uint64_t work = choosing->kinds.work;
    g_free(choosing);
    return work;
}
