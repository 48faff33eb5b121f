/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/reclaim.h"

#include <stdlib.h>
#include <string.h>

struct search {
    struct what_if *what_if;
    const struct reclaim_query *query;
    struct giver **list; /* those that are looked at now, in order */
    size_t n;
    int64_t *left; /* of each budget */
    struct reclaim_cost cost, best;
    GPtrArray *ending, *best_ending; /* struct giver * */
    bool found;
    unsigned tries;
};

int reclaim_cost_compare(const struct reclaim_cost *a, const struct reclaim_cost *b)
{
    const int64_t pairs[][2] = {
        {a->violations, b->violations},
        {a->dearest, b->dearest},
        {a->gpus, b->gpus},
        {a->highest, b->highest},
        {a->n, b->n},
        {b->oldest, a->oldest},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
    }
    return 0;
}

static bool may_give(const struct borrower *borrower, const int64_t *amounts, uint32_t n_keys)
{
    bool borrowed = false;

    for (uint32_t key = 0; key < n_keys; key++) {
        const amount_sum over = borrower->held[key] - borrower->min[key];
        if (amounts[key] == 0 || over < 0)
            continue;
        if (over < amounts[key])
            return false;
        borrowed = true;
    }
    return borrowed;
}

bool borrower_may_give(const struct borrower *borrower, const int64_t *amounts, uint32_t n_keys)
{
    for (; borrower; borrower = borrower->parent) {
        if (!may_give(borrower, amounts, n_keys))
            return false;
    }
    return true;
}

void borrower_give(struct borrower *borrower, const int64_t *amounts, uint32_t n_keys, int sign)
{
    for (; borrower; borrower = borrower->parent) {
        for (uint32_t key = 0; key < n_keys; key++)
            borrower->held[key] -= sign * amounts[key];
    }
}

/* --- one pod more or less ----------------------------------------------------------------------- */

static int64_t order_of(const struct allocation *allocation)
{
    return allocation->work_class ? (int64_t)allocation->work_class->victims : VICTIMS_NORMAL;
}

/* What the last one has changed, for take_back. */
static struct reclaim_cost end(struct search *search, struct giver *giver)
{
    const struct reclaim_cost before = search->cost;
    struct reclaim_cost *cost = &search->cost;
    bool violates = false;

    borrower_give(giver->borrower, giver->amounts, search->query->n_keys, 1);
    what_if_without(search->what_if, giver->allocation);
    g_ptr_array_add(search->ending, giver);
    for (uint32_t i = 0; i < giver->n_budgets; i++)
        violates |= search->left[giver->budgets[i]]-- <= 0;
    cost->violations += violates;
    cost->dearest = MAX(cost->dearest, order_of(giver->allocation));
    cost->gpus += giver->gpus;
    cost->highest = MAX(cost->highest, giver->allocation->priority);
    cost->n++;
    cost->oldest = MIN(cost->oldest, giver->allocation->created_s);
    return before;
}

static void take_back(struct search *search, struct giver *giver, const struct reclaim_cost *before)
{
    borrower_give(giver->borrower, giver->amounts, search->query->n_keys, -1);
    what_if_with(search->what_if, giver->allocation);
    g_ptr_array_remove(search->ending, giver);
    for (uint32_t i = 0; i < giver->n_budgets; i++)
        search->left[giver->budgets[i]]++;
    search->cost = *before;
}

static bool may_end(const struct search *search, const struct giver *giver)
{
    return borrower_may_give(giver->borrower, giver->amounts, search->query->n_keys);
}

static bool suffices(struct search *search)
{
    search->tries++;
    return search->query->admits(search->what_if->node, search->query->data);
}

static bool is_hopeless(const struct search *search)
{
    return search->found && reclaim_cost_compare(&search->cost, &search->best) >= 0;
}

static void keep_best(struct search *search)
{
    if (is_hopeless(search))
        return;
    search->found = true;
    search->best = search->cost;
    g_ptr_array_set_size(search->best_ending, 0);
    for (guint i = 0; i < search->ending->len; i++)
        g_ptr_array_add(search->best_ending, search->ending->pdata[i]);
}

/* --- one after the other -------------------------------------------------------------------------- */

/* Who is to be spared first. */
static gint compare_worth(gconstpointer a, gconstpointer b)
{
    const struct giver *left = *(struct giver *const *)a, *right = *(struct giver *const *)b;

    if ((left->n_budgets > 0) != (right->n_budgets > 0))
        return left->n_budgets > 0 ? -1 : 1;
    if (order_of(left->allocation) != order_of(right->allocation))
        return order_of(left->allocation) > order_of(right->allocation) ? -1 : 1;
    if (left->allocation->priority != right->allocation->priority)
        return left->allocation->priority > right->allocation->priority ? -1 : 1;
    if (left->gpus != right->gpus)
        return left->gpus > right->gpus ? -1 : 1;
    if (left->allocation->created_s != right->allocation->created_s)
        return left->allocation->created_s < right->allocation->created_s ? -1 : 1;
    return strcmp(left->allocation->uid, right->allocation->uid);
}

/* Ends them in order until there is room, then spares whom it can. */
static void clear_way(struct search *search)
{
    const struct reclaim_cost none = search->cost;
    bool enough = false;

    for (size_t i = 0; i < search->n && !enough; i++) {
        if (!may_end(search, search->list[i]))
            continue;
        end(search, search->list[i]);
        enough = suffices(search);
    }
    g_autoptr(GPtrArray) taken = g_ptr_array_copy(search->ending, NULL, NULL);
    g_ptr_array_sort(taken, compare_worth);
    for (guint i = 0; enough && i < taken->len; i++) {
        take_back(search, taken->pdata[i], &none);
        if (!suffices(search))
            end(search, taken->pdata[i]);
    }
    /* Costs do not add up backwards. */
    g_autoptr(GPtrArray) kept = g_ptr_array_copy(search->ending, NULL, NULL);
    for (guint i = 0; i < kept->len; i++)
        take_back(search, kept->pdata[i], &none);
    for (guint i = 0; enough && i < kept->len; i++)
        end(search, kept->pdata[i]);
    if (enough)
        keep_best(search);
    for (guint i = enough ? kept->len : 0; i-- > 0;)
        take_back(search, kept->pdata[i], &none);
}

/* --- every set ------------------------------------------------------------------------------------ */

/* Those that end so far, and with them any of those from `from` on. */
static void try_sets(struct search *search, size_t from)
{
    for (size_t i = from; i < search->n && search->tries < RECLAIM_TRIES_MAX; i++) {
        struct giver *giver = search->list[i];
        if (!may_end(search, giver))
            continue;
        const struct reclaim_cost before = end(search, giver);
        if (!is_hopeless(search)) {
            if (suffices(search))
                keep_best(search);
            else
                try_sets(search, i + 1);
        }
        take_back(search, giver, &before);
    }
}

static void look(struct search *search)
{
    if (search->n == 0)
        return;
    clear_way(search);
    if (search->n <= RECLAIM_FEW)
        try_sets(search, 0);
}

/* --- all of it ------------------------------------------------------------------------------------ */

static bool is_on(const struct giver *giver, const struct card *card)
{
    for (uint32_t i = 0; i < giver->allocation->n_shares; i++) {
        const struct share *share = &giver->allocation->shares[i];
        if (!share->device && (share->card == card->index || share->card == CARD_UNKNOWN))
            return true;
    }
    return false;
}

static int32_t first_card(const struct giver *giver)
{
    const struct allocation *allocation = giver->allocation;

    return allocation->n_shares > 0 && !allocation->shares[0].device ? allocation->shares[0].card
                                                                     : CARD_UNKNOWN;
}

/* A pod, and what it takes to clear its card. */
struct place {
    struct giver *giver;
    int32_t card;
    int64_t gpus;
};

/* The cheapest cards first; on each who is worth least. */
static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;

    if (left->gpus != right->gpus)
        return left->gpus < right->gpus ? -1 : 1;
    if (left->card != right->card)
        return left->card < right->card ? -1 : 1;
    return -compare_worth(&left->giver, &right->giver);
}

static void list_all(const struct search *search, struct giver *givers, size_t n)
{
    g_autofree struct place *places = g_new0(struct place, n + 1);

    for (size_t i = 0; i < n; i++) {
        places[i] = (struct place){&givers[i], first_card(&givers[i]), 0};
        for (size_t j = 0; j < n; j++)
            places[i].gpus += first_card(&givers[j]) == places[i].card ? givers[j].gpus : 0;
    }
    qsort(places, n, sizeof *places, compare_places);
    for (size_t i = 0; i < n; i++)
        search->list[i] = places[i].giver;
}

static size_t list_on(const struct search *search, const struct card *card, struct giver *givers,
                      size_t n)
{
    size_t listed = 0;

    for (size_t i = 0; i < n; i++) {
        if (is_on(&givers[i], card))
            search->list[listed++] = &givers[i];
    }
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    for (size_t i = 0; i < listed; i++)
        g_ptr_array_add(sorted, search->list[i]);
    g_ptr_array_sort(sorted, compare_worth);
    for (size_t i = 0; i < listed; i++)
        search->list[i] = sorted->pdata[listed - 1 - i];
    return listed;
}

bool reclaim_choose(struct what_if *what_if, const struct reclaim_query *query,
                    struct giver *givers, size_t n, struct reclaim_cost *ret_cost)
{
    g_autofree int64_t *left = g_memdup2(query->allowed, query->n_allowed * sizeof *left);
    g_autofree struct giver **list = g_new0(struct giver *, n + 1);
    g_autoptr(GPtrArray) ending = g_ptr_array_new(), best_ending = g_ptr_array_new();
    const struct node *node = what_if->node;
    struct search search = {
        .what_if = what_if,
        .query = query,
        .list = list,
        .left = left,
        .cost = {.dearest = INT64_MIN, .highest = INT64_MIN, .oldest = INT64_MAX},
        .ending = ending,
        .best_ending = best_ending,
    };

    for (int32_t i = 0; query->one_card && i < node->n_cards; i++) {
        search.n = list_on(&search, &node->cards[i], givers, n);
        look(&search);
    }
    if (!search.found) {
        search.tries = 0;
        search.n = n;
        list_all(&search, givers, n);
        look(&search);
    }
    for (size_t i = 0; i < n; i++)
        givers[i].chosen = search.found && g_ptr_array_find(best_ending, &givers[i], NULL);
    if (search.found)
        *ret_cost = search.best;
    return search.found;
}
