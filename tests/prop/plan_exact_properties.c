/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan is found if and only if there is one, and it has as few moves as any: of clusters of up to 3 nodes
 * with 3 cards and 8 pods, whose pods may all move. The oracle goes through all places that the pods
 * can come to, on plain numbers: a pod moves once at most, to a card that has room for it while it still
 * counts where it was.
 *
 * With the argument "exhaustive" these are all clusters whose cards have 2 units, then 3; GPULEDGER_EVENTS bounds
 * how many are tried.
 */
#include "chance.h"
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#define NODES 3
#define CARDS 3 /* of a node, at most */
#define PLACES (NODES * CARDS)
#define PODS 8
#define MOVES PODS
#define STATES_MAX (1 << 18) /* of the oracle; what has more is passed over */
#define GAVE_UP_PERCENT 1    /* of the goals, of which the program may say that not all was tried */
#define UNITS(n) {(n), AMOUNT_NODE_UNITS}

static const char row;
#define DIALECT ((const struct dialect *)(const void *)&row)

/* A place is node * CARDS + card. */
struct numbers {
    int size, n_nodes, n_cards[NODES]; /* units of a card */
    int n, place[PODS], units[PODS];
    int admit, empty_node, empty_card; /* admit 0: empty; card -1: the node */
};

static unsigned asked, gave_up, passed_over, reached[MOVES + 1];

/* --- the oracle ------------------------------------------------------------------------------- */

enum { NO_MOVES = -1, TOO_MANY = -2 };

/* Where each pod is, four bits for each. */
struct states {
    uint32_t items[STATES_MAX];
    uint64_t table[2 * STATES_MAX]; /* `search`, and the place in `items` below it; else free */
    uint64_t search;                /* which one this is, in the upper half */
    uint32_t n;
};

static int place_in(uint32_t state, int pod)
{
    return (int)(state >> (4 * pod)) & 15;
}

/* False: it was there. */
static bool add_state(struct states *states, uint32_t state)
{
    uint32_t at = (state * UINT32_C(2654435761)) % (2 * STATES_MAX);

    while (states->table[at] >= states->search) {
        if (states->items[states->table[at] - states->search] == state)
            return false;
        at = (at + 1) % (2 * STATES_MAX);
    }
    states->items[states->n] = state;
    states->table[at] = states->search + states->n++;
    return true;
}

static bool is_emptied(const struct numbers *c, int place)
{
    return !c->admit && place / CARDS == c->empty_node &&
           (c->empty_card < 0 || place % CARDS == c->empty_card);
}

static bool exists(const struct numbers *c, int place)
{
    return place / CARDS < c->n_nodes && place % CARDS < c->n_cards[place / CARDS];
}

static void count(const struct numbers *c, uint32_t state, int *ret_used)
{
    memset(ret_used, 0, PLACES * sizeof *ret_used);
    for (int p = 0; p < c->n; p++)
        ret_used[place_in(state, p)] += c->units[p];
}

static bool is_goal(const struct numbers *c, uint32_t state)
{
    int used[PLACES];
    bool room = false, there = false;

    count(c, state, used);
    for (int i = 0; i < PLACES; i++)
        room |= exists(c, i) && c->size - used[i] >= c->admit;
    for (int p = 0; p < c->n; p++)
        there |= is_emptied(c, place_in(state, p));
    return c->admit ? room : !there;
}

/* All that one more move leads to; true: to the goal. */
static bool go_on(const struct numbers *c, struct states *states, uint32_t state)
{
    int used[PLACES];

    count(c, state, used);
    for (int p = 0; p < c->n; p++) {
        const int from = place_in(state, p);
        for (int to = 0; from == c->place[p] && to < PLACES; to++) {
            if (to == from || !exists(c, to) || is_emptied(c, to) ||
                used[to] + c->units[p] > c->size || states->n == STATES_MAX)
                continue;
            const uint32_t next = (state & ~(UINT32_C(15) << (4 * p))) | (uint32_t)to << (4 * p);
            if (add_state(states, next) && is_goal(c, next))
                return true;
        }
    }
    return false;
}

static int fewest(const struct numbers *c)
{
    static struct states states;
    uint32_t state = 0, level = 0;

    states.search += UINT64_C(1) << 32;
    states.n = 0;
    for (int p = 0; p < c->n; p++)
        state |= (uint32_t)c->place[p] << (4 * p);
    add_state(&states, state);
    if (is_goal(c, state))
        return 0;
    for (int moves = 1; level < states.n; moves++) {
        const uint32_t end = states.n;
        for (; level < end; level++) {
            if (go_on(c, &states, states.items[level]))
                return moves;
            if (states.n == STATES_MAX)
                return TOO_MANY;
        }
    }
    return NO_MOVES;
}

/* --- the program ------------------------------------------------------------------------------ */

static const char *const uids[PODS] = {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"};
static const char *const names[NODES] = {"n0", "n1", "n2"};

static struct request *ask(int units)
{
    struct request *request = request_new(DIALECT, 1);

    request->asks[0] = (struct card_ask){.memory = UNITS(units), .count = 1};
    return request;
}

static struct ledger *build(const struct numbers *c)
{
    struct ledger *ledger = ledger_new();

    for (int n = 0; n < c->n_nodes; n++) {
        g_autoptr(topology) topology = topology_new();
        topology->dialect = DIALECT;
        topology->memory_unit = 1 << 20;
        topology->n_cards = c->n_cards[n];
        for (int i = 0; i < c->n_cards[n]; i++)
            topology->cards[i].memory = (int64_t)c->size << 20;
        ledger_set_topology(ledger, names[n], topology);
    }
    for (int p = 0; p < c->n; p++) {
        struct allocation *allocation = allocation_new(uids[p], "ml", uids[p], 1);
        allocation->dialect = DIALECT;
        allocation->shares[0] =
            (struct share){.memory = UNITS(c->units[p]), .card = c->place[p] % CARDS};
        ledger_put(ledger, names[c->place[p] / CARDS], allocation);
    }
    return ledger;
}

static char *tell(const struct numbers *c)
{
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "cards of %d:", c->size);
    for (int place = 0; place < PLACES; place++) {
        if (!exists(c, place))
            continue;
        g_string_append_printf(text, " n%d/%d {", place / CARDS, place % CARDS);
        for (int p = 0; p < c->n; p++)
            if (c->place[p] == place)
                g_string_append_printf(text, " %d", c->units[p]);
        g_string_append(text, " }");
    }
    if (c->admit)
        g_string_append_printf(text, ", a pod of %d", c->admit);
    else
        g_string_append_printf(text, ", empty n%d/%d", c->empty_node, c->empty_card);
    return g_string_free(text, FALSE);
}

/* Takes the steps in numbers. */
static void follow(const struct numbers *c, const GPtrArray *steps, const char *text)
{
    uint32_t state = 0;

    for (int p = 0; p < c->n; p++)
        state |= (uint32_t)c->place[p] << (4 * p);
    for (guint i = 0; i < steps->len; i++) {
        const struct plan_step *step = steps->pdata[i];
        const int p = step->pod->uid[1] - '0';
        const int to = (step->to[1] - '0') * CARDS + step->takes->shares[0].card;
        int used[PLACES];
        count(c, state, used);
        HOLDS(place_in(state, p) == c->place[p] && exists(c, to) && !is_emptied(c, to) &&
                  used[to] + c->units[p] <= c->size,
              "%s: step %u takes %s to place %d", text, i, step->pod->uid, to);
        state = (state & ~(UINT32_C(15) << (4 * p))) | (uint32_t)to << (4 * p);
    }
    HOLDS(is_goal(c, state), "%s: the goal is not reached", text);
}

static void judge(const struct numbers *c, const struct plan_query *query, int least)
{
    struct ledger *ledger = build(c);
    g_autoptr(GPtrArray) steps = NULL;
    g_autofree char *text = tell(c);
    bool proven = false;
    const enum plan_outcome outcome = plan_make(ledger, query, &proven, &steps);

    asked++;
    gave_up += outcome == PLAN_GAVE_UP;
    HOLDS(outcome != PLAN_NONE || least == NO_MOVES, "%s: no moves, though %d do", text, least);
    HOLDS(outcome != PLAN_NONE || proven, "%s: none, and yet not all was tried", text);
    HOLDS(outcome != PLAN_FOUND || least != NO_MOVES, "%s: moves that there are not", text);
    HOLDS(outcome != PLAN_FOUND || !proven || (int)steps->len == least, "%s: %u moves, fewest %d",
          text, steps->len, least);
    HOLDS(outcome != PLAN_FOUND || (int)steps->len >= least, "%s: %u moves, fewest %d", text,
          steps->len, least);
    gave_up += outcome == PLAN_FOUND && !proven;
    if (outcome == PLAN_FOUND) {
        follow(c, steps, text);
        reached[least]++;
    }
    ledger_free(ledger);
}

static void try_one(const struct numbers *c)
{
    struct plan_pod pods[PODS] = {0};
    g_autoptr(request) admit = ask(c->admit);
    const int least = fewest(c);

    if (least == TOO_MANY) {
        passed_over++;
        return;
    }
    for (int p = 0; p < c->n; p++)
        pods[p] = (struct plan_pod){.uid = uids[p], .request = ask(c->units[p]), .owner = uids[p]};
    const struct plan_query query = {
        .goal = {.admit = c->admit ? admit : NULL,
                 .node = c->admit ? NULL : names[c->empty_node],
                 .card = c->empty_card < 0 ? CARD_UNKNOWN : c->empty_card},
        .pods = pods,
        .n_pods = (size_t)c->n,
        .policy = &policies[0],
        .moves_max = MOVES,
    };
    judge(c, &query, least);
    for (int p = 0; p < c->n; p++)
        request_free((struct request *)(uintptr_t)pods[p].request);
}

/* --- by chance -------------------------------------------------------------------------------- */

/* Crowded, so that room is short; the goal is such that something has to move. */
static struct numbers draw(void)
{
    struct numbers c = {.size = (int)chance_between(4, 12),
                        .n_nodes = (int)chance_between(1, NODES)};
    int used[PLACES] = {0}, free_most = 0;

    for (int n = 0; n < c.n_nodes; n++)
        c.n_cards[n] = (int)chance_between(1, CARDS);
    const int largest = (int)chance_between(2, c.size);
    for (int tries = 0; tries < 3 * PODS && c.n < PODS; tries++) {
        const int place = (int)chance_below(PLACES), units = (int)chance_between(1, largest);
        if (!exists(&c, place) || used[place] + units > c.size)
            continue;
        used[place] += units;
        c.place[c.n] = place;
        c.units[c.n++] = units;
    }
    for (int i = 0; i < PLACES; i++)
        free_most = exists(&c, i) ? MAX(free_most, c.size - used[i]) : free_most;
    const int place = c.n > 0 ? c.place[chance_below((uint32_t)c.n)] : 0;
    c.empty_node = place / CARDS;
    c.empty_card = chance_percent(80) ? place % CARDS : -1;
    if (chance_percent(50) && free_most < c.size)
        c.admit = (int)chance_between(free_most + 1, MIN(free_most + 3, c.size));
    return c;
}

/* --- all -------------------------------------------------------------------------------------- */

/* What a card may hold, largest first; what a node may have, by the number of its kind of cards. */
struct all {
    int size;
    int card[64][PODS], n_on[64];
    int n_cards;
    int node[512][CARDS], n_of[512];
    int n_nodes;
};

static void list_cards(struct all *all, const int *held, int n, int left, int most)
{
    memcpy(all->card[all->n_cards], held, (size_t)n * sizeof *held);
    all->n_on[all->n_cards++] = n;
    for (int units = 1; units <= MIN(left, most) && n < PODS; units++) {
        int next[PODS] = {0};
        memcpy(next, held, (size_t)n * sizeof *held);
        next[n] = units;
        list_cards(all, next, n + 1, left - units, units);
    }
}

static void list_nodes(struct all *all, const int *cards, int n, int from)
{
    if (n > 0) {
        memcpy(all->node[all->n_nodes], cards, (size_t)n * sizeof *cards);
        all->n_of[all->n_nodes++] = n;
    }
    for (int kind = from; n < CARDS && kind < all->n_cards; kind++) {
        int next[CARDS] = {0};
        memcpy(next, cards, (size_t)n * sizeof *cards);
        next[n] = kind;
        list_nodes(all, next, n + 1, kind);
    }
}

static void try_goals(struct numbers *c)
{
    for (c->admit = 1; c->admit <= c->size && chance_next_event(); c->admit++)
        try_one(c);
    c->admit = 0;
    for (c->empty_node = 0; c->empty_node < c->n_nodes; c->empty_node++)
        for (c->empty_card = -1; c->empty_card < c->n_cards[c->empty_node]; c->empty_card++)
            if (chance_next_event())
                try_one(c);
}

/* False: it has too many pods. */
static bool add_node(const struct all *all, struct numbers *c, int kind)
{
    const int node = c->n_nodes++;

    c->n_cards[node] = all->n_of[kind];
    for (int i = 0; i < all->n_of[kind]; i++) {
        const int card = all->node[kind][i];
        for (int k = 0; k < all->n_on[card]; k++) {
            if (c->n == PODS)
                return false;
            c->place[c->n] = node * CARDS + i;
            c->units[c->n++] = all->card[card][k];
        }
    }
    return true;
}

static void try_clusters(const struct all *all, const struct numbers *before, int from)
{
    for (int kind = from; before->n_nodes < NODES && kind < all->n_nodes; kind++) {
        struct numbers c = *before;
        if (!add_node(all, &c, kind))
            continue;
        try_goals(&c);
        try_clusters(all, &c, kind);
    }
}

static void try_all(void)
{
    static const int nobody[PODS];

    for (int size = 2; size <= 3; size++) {
        struct all all = {.size = size};
        const struct numbers empty = {.size = size};
        list_cards(&all, nobody, 0, size, size);
        list_nodes(&all, nobody, 0, 0);
        try_clusters(&all, &empty, 0);
    }
}

int main(int argc, char **argv)
{
    const bool exhaustive = argc > 1 && strcmp(argv[1], "exhaustive") == 0;

    chance_init("plan exact", exhaustive ? UINT32_MAX : 1500);
    if (exhaustive)
        try_all();
    while (!exhaustive && chance_next_event()) {
        const struct numbers c = draw();
        try_one(&c);
    }
    printf("%u goals, %u of which not all was tried, %u passed over; by moves:", asked, gave_up,
           passed_over);
    for (int i = 0; i <= MOVES; i++)
        printf(" %u", reached[i]);
    printf("\n");
    HOLDS(gave_up * 100 <= asked * GAVE_UP_PERCENT, "%u of %u were not found out", gave_up, asked);
    return 0;
}
