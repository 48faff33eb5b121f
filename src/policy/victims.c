/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/victims.h"

#include <stdlib.h>
#include <string.h>

/* kube-scheduler adds priorities up from here, so that a pod more is never better. */
#define LOWEST_PRIORITY (-(INT64_C(1) << 31))

struct search {
    struct what_if *what_if;
    const struct victims_query *query;
    struct victim *victims; /* those that are fixed first */
    size_t n;
    int64_t *left; /* of each budget */
    size_t n_balances; /* of what the pod asks for */
    int64_t balances[VICTIM_AMOUNTS_MAX]; /* what the victims free beyond what they have to */
    int64_t *freed; /* by each victim, n_balances each */
    struct victims_cost cost; /* of those that are to end */
    struct victims_cost best; /* if nothing is found yet: that better or as good there is */
    bool *out; /* whom the what-if node is without: those that end, and those that may */
    bool *ending, *best_ending;
    bool found, best_owes;
    bool lenient; /* what the victims owe is not asked for */
    unsigned tries;
};

int victims_cost_compare(const struct victims_cost *a, const struct victims_cost *b)
{
    const int64_t pairs[][2] = {
        {a->violations, b->violations},
        {a->dearest, b->dearest},
        {a->highest, b->highest},
        {a->sum, b->sum},
        {a->idle_highest, b->idle_highest},
        {a->idle_sum, b->idle_sum},
        {a->n, b->n},
        {b->oldest, a->oldest},
        {a->going, b->going},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
    }
    return 0;
}

/* --- one pod more or less ------------------------------------------------------------------- */

static size_t count_balances(const struct victims_query *query)
{
    return (query->asked_host.cpu > 0) + (query->asked_host.memory > 0) +
           (query->asked ? query->asked->n_amounts : 0) + (query->lacks != NULL);
}

static void list_freed(const struct victims_query *query, const struct allocation *allocation,
                       int64_t *ret_freed)
{
    if (query->asked_host.cpu > 0)
        *ret_freed++ = allocation->host.cpu;
    if (query->asked_host.memory > 0)
        *ret_freed++ = allocation->host.memory;
    for (uint32_t i = 0; query->asked && i < query->asked->n_amounts; i++)
        *ret_freed++ = pod_facts_amount(allocation->facts, query->asked->amounts[i].resource);
    if (query->lacks)
        *ret_freed = allocation->host.pods;
}

static void balance(struct search *search, size_t at, int sign)
{
    for (size_t i = 0; i < search->n_balances; i++)
        search->balances[i] += sign * search->freed[at * search->n_balances + i];
}

static void take_out(struct search *search, size_t at)
{
    what_if_without(search->what_if, search->victims[at].allocation);
    search->out[at] = true;
    balance(search, at, 1);
}

static void put_back(struct search *search, size_t at)
{
    what_if_with(search->what_if, search->victims[at].allocation);
    search->out[at] = false;
    balance(search, at, -1);
}

static int64_t order_of(const struct allocation *allocation)
{
    return allocation->work_class ? allocation->work_class->victims : VICTIMS_NORMAL;
}

/* What its class says counts before whether it is idle. */
static bool ends_as_idle(const struct victim *victim)
{
    return victim->idle && order_of(victim->allocation) == VICTIMS_FIRST;
}

/* Returns the cost as it was before, for uncount. */
static struct victims_cost count(struct search *search, size_t at)
{
    const struct victims_cost before = search->cost;
    const struct victim *victim = &search->victims[at];
    struct victims_cost *cost = &search->cost;
    bool violates = false;

    search->ending[at] = true;
    if (victim->allocation->terminating) {
        cost->going++;
        return before;
    }
    for (uint32_t i = 0; i < victim->n_budgets; i++)
        violates |= search->left[victim->budgets[i]]-- <= 0;
    cost->violations += violates;
    const bool idle = ends_as_idle(victim);
    int64_t *highest = idle ? &cost->idle_highest : &cost->highest;
    cost->dearest = MAX(cost->dearest, order_of(victim->allocation) - idle);
    *highest = MAX(*highest, victim->allocation->priority);
    *(idle ? &cost->idle_sum : &cost->sum) += victim->allocation->priority - LOWEST_PRIORITY;
    cost->n++;
    cost->oldest = MIN(cost->oldest, victim->allocation->created_s);
    return before;
}

static void uncount(struct search *search, size_t at, struct victims_cost before)
{
    const struct victim *victim = &search->victims[at];

    search->ending[at] = false;
    search->cost = before;
    for (uint32_t i = 0; !victim->allocation->terminating && i < victim->n_budgets; i++)
        search->left[victim->budgets[i]]++;
}

static bool owes(const struct search *search)
{
    for (size_t i = 0; i < search->n_balances; i++) {
        if (search->balances[i] < 0)
            return true;
    }
    return false;
}

static bool suffices(struct search *search)
{
    search->tries++;
    return (search->lenient || !owes(search)) &&
           search->query->admits(search->what_if->node, search->query->data);
}

static bool is_hopeless(const struct search *search)
{
    const int compared = victims_cost_compare(&search->cost, &search->best);
    return search->found ? compared >= 0 : compared > 0;
}

static void keep_best(struct search *search)
{
    search->found = true;
    search->best = search->cost;
    search->best_owes = owes(search);
    memcpy(search->best_ending, search->ending, search->n * sizeof *search->ending);
}

/* --- every set ------------------------------------------------------------------------------ */

/* Lets all of them end and spares one after the other: what that costs the best costs at most. False:
 * not even the end of all of them suffices. */
static bool bound(struct search *search, size_t from)
{
    const struct victims_cost before = search->cost;

    for (size_t i = from; i < search->n; i++)
        take_out(search, i);
    const bool possible = suffices(search);
    for (size_t i = from; i < search->n; i++) {
        put_back(search, i);
        if (!possible || suffices(search))
            continue;
        take_out(search, i);
        count(search, i);
    }
    if (possible)
        search->best = search->cost;
    for (size_t i = search->n; i-- > from;) {
        if (search->ending[i]) {
            put_back(search, i);
            uncount(search, i, before);
        }
    }
    return possible;
}

/* Those that end so far, and with them any of those from `from` on. */
static void try_sets(struct search *search, size_t from)
{
    if (suffices(search)) {
        keep_best(search);
        return;
    }
    for (size_t i = from; i < search->n; i++) {
        const struct victims_cost before = count(search, i);
        if (!is_hopeless(search)) {
            take_out(search, i);
            try_sets(search, i + 1);
            put_back(search, i);
        }
        uncount(search, i, before);
    }
}

/* --- one after the other -------------------------------------------------------------------- */

/* Whether the end of the one frees just what that of the other does. False where telling takes longer. */
static bool are_alike(const struct search *search, size_t a, size_t b)
{
    const struct allocation *one = search->victims[a].allocation;
    const struct allocation *other = search->victims[b].allocation;
    const struct share *its = &one->shares[0], *others = &other->shares[0];
    const size_t n = search->n_balances;

    return one->n_shares == 1 && other->n_shares == 1 && !its->device && !others->device &&
           !its->init && !others->init && its->card == others->card && its->key == others->key &&
           its->core == others->core && its->exclusive == others->exclusive &&
           its->memory.value == others->memory.value && its->memory.kind == others->memory.kind &&
           its->place.size == 0 && others->place.size == 0 && its->dialect == others->dialect &&
           one->work_class == other->work_class && one->dialect == other->dialect &&
           one->oversubscribes == other->oversubscribes && !one->waiting && !other->waiting &&
           one->distrust == other->distrust &&
           memcmp(&search->freed[a * n], &search->freed[b * n], n * sizeof *search->freed) == 0;
}

/* Whether the rest suffices if this one stays; then it is put back. `needed` has been found needed when
 * no fewer were out than now, so one that is like it is needed too. */
static bool can_stay(struct search *search, size_t at, size_t needed)
{
    if (needed < search->n && search->query->one_card && are_alike(search, at, needed)) {
        search->tries++;
        return false;
    }
    put_back(search, at);
    if (suffices(search))
        return true;
    take_out(search, at);
    return false;
}

/* It suffices that those who are out from `at` on end. Each is spared if it can be, the dearest first.
 * `needed`: one of those before who could not; the number of victims: there is none. */
static void spare(struct search *search, size_t at, size_t needed)
{
    if (is_hopeless(search) || (search->found && search->tries > VICTIMS_TRIES_MAX))
        return;
    while (at < search->n && !search->out[at])
        at++;
    if (at == search->n) {
        keep_best(search);
        return;
    }
    if (can_stay(search, at, needed)) {
        spare(search, at + 1, needed);
        take_out(search, at);
    } else {
        needed = at;
    }
    const struct victims_cost before = count(search, at);
    spare(search, at + 1, needed);
    uncount(search, at, before);
}

/* Where a victim is. */
struct seat {
    guint place;  /* in the list of the what-if node as it was marked */
    int32_t card; /* the only one that it is on; CARD_UNKNOWN: it counts on every one; or: */
};

#define SEVERAL_CARDS (-2)

static int32_t only_card(const struct allocation *allocation)
{
    const struct share *share = &allocation->shares[0];

    return allocation->n_shares == 1 && !share->device ? share->card : SEVERAL_CARDS;
}

/* Victims mostly stand in the order in which the node lists them. */
static struct seat *find_seats(const struct search *search, size_t from)
{
    const GPtrArray *all = search->what_if->node->allocations;
    struct seat *seats = g_new(struct seat, search->n + 1);
    guint at = 0;

    for (size_t i = from; i < search->n; i++) {
        const struct allocation *allocation = search->victims[i].allocation;
        while (all->pdata[at] != allocation)
            at = at + 1 < all->len ? at + 1 : 0;
        seats[i] = (struct seat){at, only_card(allocation)};
        at = at + 1 < all->len ? at + 1 : 0;
    }
    return seats;
}

static bool is_on(const struct allocation *allocation, const struct card *card)
{
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        if (!share->device && (share->card == card->index || share->card == CARD_UNKNOWN))
            return true;
    }
    return false;
}

static bool sits_on(const struct search *search, const struct seat *seats, size_t at,
                    const struct card *card)
{
    const int32_t only = seats[at].card;

    return !card || (only == SEVERAL_CARDS ? is_on(search->victims[at].allocation, card)
                                           : only == card->index || only == CARD_UNKNOWN);
}

static int compare_places(const void *a, const void *b)
{
    const guint one = *(const guint *)a, other = *(const guint *)b;

    return (one > other) - (one < other);
}

/* Of those from `from` on who are on the card; NULL: of all. */
static void take_out_all(struct search *search, size_t from, const struct card *card,
                         const struct seat *seats)
{
    g_autofree guint *places = g_new(guint, search->n + 1);
    bool ascending = true;
    size_t n = 0;

    for (size_t i = from; i < search->n; i++) {
        if (!sits_on(search, seats, i, card))
            continue;
        ascending &= n == 0 || places[n - 1] < seats[i].place;
        places[n++] = seats[i].place;
        search->out[i] = true;
        balance(search, i, 1);
    }
    if (!ascending)
        qsort(places, n, sizeof *places, compare_places);
    what_if_without_those(search->what_if, places, n);
}

/* Of those whom take_out_all takes out. */
static void spare_most(struct search *search, size_t from, const struct card *card,
                       const struct seat *seats, const struct what_if_mark *mark)
{
    int64_t balances[VICTIM_AMOUNTS_MAX];

    memcpy(balances, search->balances, sizeof balances);
    take_out_all(search, from, card, seats);
    if (suffices(search))
        spare(search, from, search->n);
    what_if_return(search->what_if, mark);
    memset(&search->out[from], 0, (search->n - from) * sizeof *search->out);
    memcpy(search->balances, balances, sizeof balances);
}

/* Where one card is asked for, the best set is one of pods on one card, or else others are needed for
 * what is owed. */
static void spare_many(struct search *search, size_t from)
{
    const struct node *node = search->what_if->node;
    const struct victims_cost worst = search->best;
    g_autoptr(what_if_mark_ptr) mark = what_if_mark(search->what_if);
    g_autofree struct seat *seats = find_seats(search, from);

    search->lenient = true;
    for (int32_t i = 0; search->query->one_card && i < node->n_cards; i++)
        spare_most(search, from, &node->cards[i], seats, mark);
    search->lenient = false;
    if (search->found && !search->best_owes)
        return;
    search->found = false;
    search->best = worst;
    search->tries = 0;
    spare_most(search, from, NULL, seats, mark);
}

/* --- all of it ------------------------------------------------------------------------------ */

/* Fixed ones first, then the dearest. */
static int compare_victims(const void *a, const void *b)
{
    const struct victim *left = a, *right = b;
    const struct allocation *one = left->allocation, *other = right->allocation;

    if (left->fixed != right->fixed)
        return left->fixed ? -1 : 1;
    if (one->terminating != other->terminating)
        return other->terminating ? -1 : 1;
    if ((left->n_budgets > 0) != (right->n_budgets > 0))
        return left->n_budgets > 0 ? -1 : 1;
    if (order_of(one) != order_of(other))
        return order_of(one) > order_of(other) ? -1 : 1;
    if (ends_as_idle(left) != ends_as_idle(right))
        return ends_as_idle(right) ? -1 : 1;
    if (one->priority != other->priority)
        return one->priority > other->priority ? -1 : 1;
    if (one->created_s != other->created_s)
        return one->created_s < other->created_s ? -1 : 1;
    return strcmp(one->uid, other->uid);
}

/* Who came in this order mostly stands in it: then nothing is moved. */
static void sort_victims(struct victim *victims, size_t n)
{
    size_t sorted = 1;

    while (sorted < n && compare_victims(&victims[sorted - 1], &victims[sorted]) < 0)
        sorted++;
    if (sorted < n)
        qsort(victims, n, sizeof *victims, compare_victims);
}

/* Whether sums tell why a pod was named: without its end the others would not suffice. */
static bool is_explained(const struct search *search, size_t at)
{
    const int64_t *lacks = search->query->lacks;

    for (size_t i = 0; i < search->n_balances; i++) {
        if (lacks[i] != INT64_MAX &&
            -search->balances[i] - search->freed[at * search->n_balances + i] < lacks[i])
            return true;
    }
    return false;
}

/* If it is sums that kube-scheduler named them for, no more is owed than the pod lacks. */
static void owe_lacks(struct search *search)
{
    bool explained = true;

    for (size_t i = 0; i < search->n; i++)
        explained &= !search->victims[i].named || is_explained(search, i);
    /* The last are places for pods, of which a node mostly has more than enough. */
    for (size_t i = explained ? 0 : search->n_balances - 1; i < search->n_balances; i++) {
        if (search->query->lacks[i] != INT64_MAX)
            search->balances[i] = MAX(search->balances[i], -search->query->lacks[i]);
    }
}

/* What the named ones would free is owed from the start. */
static void begin(struct search *search, size_t *ret_n_fixed)
{
    for (size_t i = 0; i < search->n; i++) {
        list_freed(search->query, search->victims[i].allocation,
                   &search->freed[i * search->n_balances]);
        if (search->victims[i].named)
            balance(search, i, -1);
    }
    if (search->query->lacks)
        owe_lacks(search);
    for (*ret_n_fixed = 0; *ret_n_fixed < search->n && search->victims[*ret_n_fixed].fixed;
         ++*ret_n_fixed) {
        take_out(search, *ret_n_fixed);
        count(search, *ret_n_fixed);
    }
}

bool victims_choose(struct what_if *what_if, const struct victims_query *query,
                    struct victim *victims, size_t n, struct victims_cost *ret_cost)
{
    g_autofree int64_t *left = g_memdup2(query->allowed, query->n_allowed * sizeof *left);
    g_autofree bool *out = g_new0(bool, n + 1);
    g_autofree bool *ending = g_new0(bool, n + 1);
    g_autofree bool *best_ending = g_new0(bool, n + 1);
    const size_t n_balances = count_balances(query);
    g_autofree int64_t *freed = g_new(int64_t, n * n_balances + 1);
    struct search search = {
        .what_if = what_if,
        .query = query,
        .victims = victims,
        .n = n,
        .left = left,
        .n_balances = n_balances,
        .freed = freed,
        .cost = {.dearest = INT64_MIN,
                 .highest = INT64_MIN,
                 .idle_highest = INT64_MIN,
                 .oldest = INT64_MAX},
        .best = {.violations = INT64_MAX},
        .out = out,
        .ending = ending,
        .best_ending = best_ending,
    };
    size_t n_fixed;

    sort_victims(victims, n);
    begin(&search, &n_fixed);
    if (n - n_fixed > VICTIMS_FEW)
        spare_many(&search, n_fixed);
    else if (bound(&search, n_fixed) || query->fickle)
        try_sets(&search, n_fixed);
    for (size_t i = 0; i < n_fixed; i++)
        put_back(&search, i);
    for (size_t i = 0; i < n; i++)
        victims[i].chosen = search.found && best_ending[i];
    if (search.found)
        *ret_cost = search.best;
    return search.found;
}
