/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/victims/victims.h"

#include "policy/victims/victims_cost.h"

#include <string.h>

struct search {
    struct what_if *what_if;
    const struct roster *roster;
    const struct victims_query *query;
    struct victim *victims; /* those that are fixed first */
    size_t n;
    int64_t *left;                        /* of each budget */
    size_t n_balances;                    /* of what the pod asks for */
    int64_t balances[VICTIM_AMOUNTS_MAX]; /* what the victims free beyond what they have to */
    int64_t *freed;                       /* by one of each kind, n_balances each */
    struct victims_cost cost;             /* of those that are to end */
    struct victims_cost best;       /* if nothing is found yet: that better or as good there is */
    uint32_t *ending, *best_ending; /* those who are to end, ascending */
    size_t n_ending, n_best;
    bool found, best_owes;
    bool lenient; /* what the victims owe is not asked for */
    unsigned tries;
    struct scratch *scratch;
};

/* For take_out_all. */
struct scratch {
    guint *places;
    int *of_kind; /* by kind: how many; all 0 in between */
    uint32_t *kinds;
    struct what_if_part *parts; /* of each of those kinds */
};

/* --- one pod more or less ------------------------------------------------------------------- */

static size_t count_balances(const struct victims_query *query)
{
    return (query->asked_host.cpu > 0) + (query->asked_host.memory > 0) +
           (query->asked ? query->asked->n_amounts : 0) + (query->lacks != NULL);
}

static void list_freed(const struct victims_query *query, const struct seat_kind *kind,
                       int64_t *ret_freed)
{
    if (query->asked_host.cpu > 0)
        *ret_freed++ = kind->host.cpu;
    if (query->asked_host.memory > 0)
        *ret_freed++ = kind->host.memory;
    for (uint32_t i = 0; query->asked && i < query->asked->n_amounts; i++)
        *ret_freed++ = pod_facts_amount(kind->facts, query->asked->amounts[i].resource);
    if (query->lacks)
        *ret_freed = kind->host.pods;
}

/* By the end of one of the kind. */
static const int64_t *freed_by(const struct search *search, uint32_t kind)
{
    return &search->freed[kind * search->n_balances];
}

static void balance(struct search *search, uint32_t kind, int64_t n)
{
    const int64_t *freed = freed_by(search, kind);

    for (size_t i = 0; i < search->n_balances; i++)
        search->balances[i] += n * freed[i];
}

static void take_out(struct search *search, size_t at)
{
    const struct seat *seat = search->victims[at].seat;

    what_if_without(search->what_if, seat->allocation);
    balance(search, seat->kind, 1);
}

static void put_back(struct search *search, size_t at)
{
    const struct seat *seat = search->victims[at].seat;

    what_if_with(search->what_if, seat->allocation);
    balance(search, seat->kind, -1);
}

/* Who is counted later stands behind those that end already. */
static inline void count(struct search *search, size_t at)
{
    const struct victim *victim = &search->victims[at];
    const struct seat *seat = victim->seat;
    struct victims_cost *cost = &search->cost;
    bool violates = false;

    search->ending[search->n_ending++] = (uint32_t)at;
    if (seat->terminating) {
        cost->going++;
        return;
    }
    for (uint32_t i = 0; i < victim->n_budgets; i++)
        violates |= search->left[victim->budgets[i]]-- <= 0;
    cost->violations += violates;
    const bool idle = victim_ends_as_idle(victim);
    cost->oldest = victims_cost_oldest(cost, seat->priority, seat->started_s);
    int64_t *highest = idle ? &cost->idle_highest : &cost->highest;
    cost->dearest = MAX(cost->dearest, seat->order - idle);
    *highest = MAX(*highest, seat->priority);
    *(idle ? &cost->idle_sum : &cost->sum) += seat->priority - VICTIMS_LOWEST_PRIORITY;
    cost->n++;
}

/* The last ones, until so many are left. */
static void uncount(struct search *search, size_t n_left, struct victims_cost before)
{
    for (; search->n_ending > n_left; search->n_ending--) {
        const struct victim *victim = &search->victims[search->ending[search->n_ending - 1]];
        for (uint32_t i = 0; i < victim->n_budgets && !victim->seat->terminating; i++)
            search->left[victim->budgets[i]]++;
    }
    search->cost = before;
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
    search->n_best = search->n_ending;
    memcpy(search->best_ending, search->ending, search->n_ending * sizeof *search->ending);
}

/* --- every set ------------------------------------------------------------------------------ */

/* Lets all of them end and spares one after the other: what that costs the best costs at most. False:
 * not even the end of all of them suffices. */
static bool bound(struct search *search, size_t from)
{
    const struct victims_cost before = search->cost;
    const size_t n_ending = search->n_ending;

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
    for (size_t i = search->n_ending; i-- > n_ending;)
        put_back(search, search->ending[i]);
    uncount(search, n_ending, before);
    return possible;
}

/* Those that end so far, and with them any of those from `from` on. */
static void try_sets(struct search *search, size_t from)
{
    if (suffices(search)) {
        keep_best(search);
        return;
    }
    const struct victims_cost before = search->cost;
    const size_t n_ending = search->n_ending;
    for (size_t i = from; i < search->n; i++) {
        count(search, i);
        if (!is_hopeless(search)) {
            take_out(search, i);
            try_sets(search, i + 1);
            put_back(search, i);
        }
        uncount(search, n_ending, before);
    }
}

/* --- one after the other -------------------------------------------------------------------- */

/* Victims who are all out: those that are on one card, or all, from the dearest on. */
struct crowd {
    size_t n;
    uint32_t *victims;
};

/* Whether the end of the one frees just what that of the other does. False where telling takes longer. */
static bool are_alike(const struct search *search, size_t a, size_t b)
{
    const uint32_t one = search->victims[a].seat->kind, other = search->victims[b].seat->kind;
    const struct seat_kind *kinds = search->roster->kinds;

    return kinds[one].alike &&
           (one == other || (seat_kinds_hold_same(&kinds[one], &kinds[other]) &&
                             memcmp(freed_by(search, one), freed_by(search, other),
                                    search->n_balances * sizeof *search->freed) == 0));
}

/* Whether the rest suffices if this one stays; then it is put back. */
static bool can_stay(struct search *search, size_t at)
{
    put_back(search, at);
    if (suffices(search))
        return true;
    take_out(search, at);
    return false;
}

static bool is_over(const struct search *search)
{
    return is_hopeless(search) || (search->found && search->tries > VICTIMS_TRIES_MAX);
}

/* Those from `from` on who are like `needed` (see spare), up to the first who is not. */
static size_t count_needed(struct search *search, const struct crowd *crowd, size_t from,
                           size_t needed)
{
    size_t i = from;

    if (needed == search->n || !search->query->one_card)
        return from;
    for (; i < crowd->n && !is_over(search) && are_alike(search, crowd->victims[i], needed); i++) {
        count(search, crowd->victims[i]);
        search->tries++;
    }
    return i;
}

/* It suffices that those of the crowd end who are out, all of them from `from` on. Each is spared if it
 * can be, the dearest first. `needed`: one of those before who could not, with no fewer out than now, so
 * one that is like it is needed too; the number of victims: there is none. */
static void spare(struct search *search, const struct crowd *crowd, size_t from, size_t needed)
{
    const struct victims_cost before = search->cost;
    const size_t n_ending = search->n_ending;
    size_t i = from;

    for (;;) {
        i = count_needed(search, crowd, i, needed);
        if (is_over(search))
            break;
        if (i == crowd->n) {
            keep_best(search);
            break;
        }
        const size_t at = crowd->victims[i++];
        if (can_stay(search, at)) {
            spare(search, crowd, i, needed);
            take_out(search, at);
        } else {
            needed = at;
        }
        count(search, at);
    }
    uncount(search, n_ending, before);
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

/* Victims by the card that they are on, each list in their order. Who is on another number of cards than
 * one, or nobody knows on which, is in the last. */
struct cards_victims {
    uint32_t *first, *next; /* by card, by victim; the number of victims: nobody */
};

static size_t group_of(const struct search *search, size_t at)
{
    const int32_t card = search->victims[at].seat->card, n = search->what_if->node->n_cards;

    return (size_t)(card >= 0 && card < n ? card : n);
}

static void list_by_card(const struct search *search, size_t from,
                         const struct cards_victims *lists)
{
    for (int32_t i = 0; i <= search->what_if->node->n_cards; i++)
        lists->first[i] = (uint32_t)search->n;
    for (size_t i = search->n; i-- > from;) {
        uint32_t *first = &lists->first[group_of(search, i)];
        lists->next[i] = *first;
        *first = (uint32_t)i;
    }
}

/* Who is on the card. */
static void gather(const struct search *search, const struct cards_victims *lists,
                   const struct card *card, struct crowd *crowd)
{
    uint32_t on_it = lists->first[card->index];
    uint32_t perhaps = lists->first[search->what_if->node->n_cards];

    for (crowd->n = 0; on_it < search->n || perhaps < search->n;) {
        if (on_it < perhaps) {
            crowd->victims[crowd->n++] = on_it;
            on_it = lists->next[on_it];
            continue;
        }
        if (is_on(search->victims[perhaps].seat->allocation, card))
            crowd->victims[crowd->n++] = perhaps;
        perhaps = lists->next[perhaps];
    }
}

static guint find_place(const struct search *search, const struct seat *seat)
{
    const GPtrArray *all = search->what_if->node->allocations;
    guint at = seat->place;

    if (at < all->len && all->pdata[at] == seat->allocation)
        return at;
    for (at = 0; all->pdata[at] != seat->allocation;)
        at++;
    return at;
}

static void take_out_all(struct search *search, const struct crowd *crowd)
{
    const struct scratch *scratch = search->scratch;
    size_t n_kinds = 0;

    for (size_t i = 0; i < crowd->n; i++) {
        const struct seat *seat = search->victims[crowd->victims[i]].seat;
        scratch->places[i] = find_place(search, seat);
        if (scratch->of_kind[seat->kind]++ == 0)
            scratch->kinds[n_kinds++] = seat->kind;
    }
    for (size_t i = 0; i < n_kinds; i++) {
        const uint32_t kind = scratch->kinds[i];
        int *n = &scratch->of_kind[kind];
        scratch->parts[i] = (struct what_if_part){search->roster->kinds[kind].example, *n};
        balance(search, kind, *n);
        *n = 0;
    }
    const struct what_if_those those = {scratch->places, crowd->n, scratch->parts, n_kinds};
    what_if_without_those(search->what_if, &those);
}

static void spare_most(struct search *search, const struct crowd *crowd,
                       const struct what_if_mark *mark)
{
    int64_t balances[VICTIM_AMOUNTS_MAX];

    memcpy(balances, search->balances, sizeof balances);
    take_out_all(search, crowd);
    if (suffices(search))
        spare(search, crowd, 0, search->n);
    what_if_return(search->what_if, mark);
    memcpy(search->balances, balances, sizeof balances);
}

static void spare_on_cards(struct search *search, size_t from, struct crowd *crowd,
                           const struct what_if_mark *mark)
{
    const struct node *node = search->what_if->node;
    g_autofree uint32_t *first = g_new(uint32_t, (size_t)node->n_cards + 1);
    g_autofree uint32_t *next = g_new(uint32_t, search->n);
    const struct cards_victims lists = {first, next};

    list_by_card(search, from, &lists);
    search->lenient = true;
    for (int32_t i = 0; i < node->n_cards; i++) {
        gather(search, &lists, &node->cards[i], crowd);
        spare_most(search, crowd, mark);
    }
    search->lenient = false;
}

/* Where one card is asked for, the best set is one of pods on one card, or else others are needed for
 * what is owed. The mark is of the what-if node as it is. */
static void spare_many(struct search *search, size_t from, const struct what_if_mark *mark)
{
    const struct victims_cost worst = search->best;
    const size_t n_kinds = search->roster->n_kinds;
    g_autofree int *of_kind = g_new0(int, n_kinds);
    g_autofree uint32_t *kinds = g_new(uint32_t, n_kinds);
    g_autofree struct what_if_part *parts = g_new(struct what_if_part, n_kinds);
    g_autofree guint *places = g_new(guint, search->n);
    struct scratch scratch = {places, of_kind, kinds, parts};
    g_autofree uint32_t *members = g_new(uint32_t, search->n);
    struct crowd crowd = {0, members};

    search->scratch = &scratch;
    if (search->query->one_card)
        spare_on_cards(search, from, &crowd, mark);
    if (search->found && !search->best_owes)
        return;
    search->found = false;
    search->best = worst;
    search->tries = 0;
    for (crowd.n = 0; from + crowd.n < search->n; crowd.n++)
        members[crowd.n] = (uint32_t)(from + crowd.n);
    spare_most(search, &crowd, mark);
}

/* --- all of it ------------------------------------------------------------------------------ */

/* Whether sums tell why a pod was named: without its end the others would not suffice. */
static bool is_explained(const struct search *search, uint32_t kind)
{
    const int64_t *lacks = search->query->lacks;

    for (size_t i = 0; i < search->n_balances; i++) {
        if (lacks[i] != INT64_MAX && -search->balances[i] - freed_by(search, kind)[i] < lacks[i])
            return true;
    }
    return false;
}

/* If it is sums that kube-scheduler named them for, no more is owed than the pod lacks. */
static void owe_lacks(struct search *search, size_t n_named)
{
    bool explained = true;

    for (size_t i = 0; n_named > 0; i++) {
        if (!search->victims[i].named)
            continue;
        explained &= is_explained(search, search->victims[i].seat->kind);
        n_named--;
    }
    for (size_t i = 0; i < search->query->n_spared; i++)
        explained &= is_explained(search, search->query->spared[i]->kind);
    /* The last are places for pods, of which a node mostly has more than enough. */
    for (size_t i = explained ? 0 : search->n_balances - 1; i < search->n_balances; i++) {
        if (search->query->lacks[i] != INT64_MAX)
            search->balances[i] = MAX(search->balances[i], -search->query->lacks[i]);
    }
}

/* What the named ones would free is owed from the start. */
static void begin(struct search *search, size_t *ret_n_fixed)
{
    size_t n_named = 0;

    for (uint32_t i = 0; i < search->roster->n_kinds; i++)
        list_freed(search->query, &search->roster->kinds[i],
                   &search->freed[i * search->n_balances]);
    for (size_t i = 0; i < search->n; i++) {
        if (!search->victims[i].named)
            continue;
        balance(search, search->victims[i].seat->kind, -1);
        n_named++;
    }
    for (size_t i = 0; i < search->query->n_spared; i++)
        balance(search, search->query->spared[i]->kind, -1);
    if (search->query->lacks)
        owe_lacks(search, n_named);
    for (*ret_n_fixed = 0; *ret_n_fixed < search->n && search->victims[*ret_n_fixed].fixed;
         ++*ret_n_fixed) {
        take_out(search, *ret_n_fixed);
        count(search, *ret_n_fixed);
    }
}

/* They are in order, so none of them is moved by one before. */
static void put_chosen_first(const struct search *search, struct victims *victims)
{
    victims->n_chosen = search->found ? search->n_best : 0;
    for (size_t i = 0; i < victims->n_chosen; i++) {
        struct victim *chosen = &victims->all[search->best_ending[i]];
        const struct victim other = victims->all[i];
        victims->all[i] = *chosen;
        *chosen = other;
    }
}

bool victims_choose(struct what_if *what_if, const struct roster *roster,
                    const struct victims_query *query, struct victims *victims,
                    struct victims_cost *ret_cost)
{
    const size_t n = victims->n, n_balances = count_balances(query);
    g_autoptr(what_if_mark_ptr) mark = what_if_mark(what_if);
    g_autofree int64_t *left = g_memdup2(query->allowed, query->n_allowed * sizeof *left);
    g_autofree uint32_t *ending = g_new(uint32_t, n + 1);
    g_autofree uint32_t *best_ending = g_new(uint32_t, n + 1);
    g_autofree int64_t *freed = g_new(int64_t, roster->n_kinds *n_balances + 1);
    struct search search = {
        .what_if = what_if,
        .roster = roster,
        .query = query,
        .victims = victims->all,
        .n = n,
        .left = left,
        .n_balances = n_balances,
        .freed = freed,
        .cost = {.dearest = INT64_MIN,
                 .highest = INT64_MIN,
                 .idle_highest = INT64_MIN,
                 .oldest = INT64_MAX},
        .best = {.violations = INT64_MAX},
        .ending = ending,
        .best_ending = best_ending,
    };
    size_t n_fixed;

    victims_sort(victims->all, n);
    begin(&search, &n_fixed);
    if (n - n_fixed > VICTIMS_FEW) {
        g_autoptr(what_if_mark_ptr) later = n_fixed > 0 ? what_if_mark(what_if) : NULL;
        spare_many(&search, n_fixed, later ? later : mark); /* which returns to that itself */
        if (later)
            what_if_return(what_if, mark);
    } else {
        if (bound(&search, n_fixed) || query->fickle)
            try_sets(&search, n_fixed);
        what_if_return(what_if, mark);
    }
    put_chosen_first(&search, victims);
    if (search.found)
        *ret_cost = search.best;
    return search.found;
}
