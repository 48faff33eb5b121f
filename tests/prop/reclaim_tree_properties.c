/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas below one another lend each other cards and take them back: with mins that are said or follow from
 * those below, maxes, weights, quotas that lend nothing, trees beside each other, and changes of all of these
 * while pods come, go and are evicted, and replicas take over.
 *
 * The oracle is the text of docs/quotas.md over its own table of quotas: whoever is evicted is, with every
 * quota above it that is not above the claimant, as much over its min; the claim is sure in the claimant's
 * quota below the first that both have in common, and further up; nobody is promised more; nothing holds more
 * than its max. When nothing happens from outside, evictions come to an end, nobody takes from those who
 * take from him, and nobody waits who is sure of room all the way up, as all sets of pods of all cards tell.
 */
#include "chance.h"
#include "../unit/objects.h"
#include "lending_cluster.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define PARENTS 4
#define QUOTAS                                                                                     \
    (LENDING_SPACES + PARENTS) /* the first are of one namespace each, the others parents */
#define NONE (-1)
#define ROUND_EVENTS 60

static struct quota {
    bool set, keeps;
    int parent; /* NONE: the top */
    int tree;
    int64_t min, max, weight; /* units; NONE: not said */
} quotas[QUOTAS];
static unsigned n_rounds, n_taken, n_from_branch, n_from_outside, n_from_above, n_sure_waits;

/* --- the oracle ----------------------------------------------------------------------------------- */

static bool is_above(int quota, int space)
{
    for (int at = space; at != NONE; at = quotas[at].parent) {
        if (at == quota)
            return true;
    }
    return false;
}

static int64_t min_of(int quota)
{
    int64_t sum = 0;

    if (quotas[quota].min != NONE || quota < LENDING_SPACES)
        return MAX(quotas[quota].min, 0);
    for (int i = 0; i < QUOTAS; i++)
        sum += quotas[i].set && quotas[i].parent == quota ? min_of(i) : 0;
    return sum;
}

/* What is counted of namespaces. */
enum counted {
    STAYS, /* those not counted that end */
    HOLDS_ALL,
    PROMISED, /* and what is kept for those that wait */
};

static int64_t has(int quota, enum counted counted)
{
    int64_t sum = 0;

    for (int space = 0; space < lending.n_spaces; space++) {
        if (is_above(quota, space))
            sum += lending_held(space, counted != STAYS) +
                   (counted == PROMISED ? lending_promised(space) : 0);
    }
    return sum;
}

/* What a quota has of what it is sure of: of those below it, what each has within its own min. */
static int64_t has_surely(int quota, int child, enum counted counted, int64_t more)
{
    int64_t sum = 0;

    if (child == NONE)
        return has(quota, counted) + more;
    for (int i = 0; i < QUOTAS; i++) {
        if (!quotas[i].set || quotas[i].parent != quota)
            continue;
        const int64_t all = has(i, counted) + (i == child ? more : 0);
        sum += MIN(all, min_of(i));
    }
    return sum;
}

/* Whether so much more is sure in `from`, which is the namespace's quota or above it, and further up. What is not sure
 * further down is sure there as far as all that it has is within its min. */
static bool is_sure(int space, int from, enum counted counted, int64_t more)
{
    bool sure = true, reached = false;

    for (int at = space, child = NONE; at != NONE; child = at, at = quotas[at].parent) {
        const int64_t counts =
            sure ? has_surely(at, child, counted, more) : has(at, counted) + more;
        sure = counts <= min_of(at);
        reached |= at == from;
        if (reached && !sure)
            return false;
    }
    return reached;
}

static int top_of(int quota)
{
    while (quotas[quota].parent != NONE)
        quota = quotas[quota].parent;
    return quota;
}

/* The claimant's quota below the first that is above the other as well; NONE: they lend each other nothing. */
static int branch_of(int claimant, int other)
{
    int branch = claimant;

    if (claimant == other || quotas[top_of(claimant)].tree != quotas[top_of(other)].tree)
        return NONE;
    for (int at = quotas[claimant].parent; at != NONE && !is_above(at, other);
         at = quotas[at].parent)
        branch = at;
    return branch;
}

/* Whether a quota has as much over its min, and so have those above it that the claimant is not below. */
static bool may_give(int space, int claimant, int64_t units, const int64_t *freed)
{
    for (int at = space; at != NONE && !is_above(at, claimant); at = quotas[at].parent) {
        if (has(at, STAYS) - (freed ? freed[at] : 0) - units < min_of(at))
            return false;
    }
    return true;
}

static void judge_eviction(const struct lending_pod *pod)
{
    HOLDS(pod->stage == STAGE_HELD, "p%d ends already", (int)(pod - lending.pods));
    HOLDS(!pod->opts_out, "p%d has asked to stay", (int)(pod - lending.pods));
    HOLDS(has(pod->space, STAYS) - pod->units >= min_of(pod->space), "s%d loses what is its own",
          pod->space);
}

static void judge_taking(const struct lending_pod *pod, const struct lending_pod *claimant)
{
    const int branch = branch_of(claimant->space, pod->space);

    HOLDS(branch != NONE, "s%d takes from s%d, of another tree", claimant->space, pod->space);
    HOLDS(may_give(pod->space, claimant->space, pod->units, NULL),
          "s%d takes %d from s%d, which has not borrowed that", claimant->space, pod->units,
          pod->space);
    HOLDS(is_sure(claimant->space, branch, HOLDS_ALL, claimant->units),
          "s%d takes %d from s%d, and is not sure of it in q%d", claimant->space, pod->units,
          pod->space, branch);
    n_taken++;
    n_from_branch += quotas[branch].parent != NONE;
    n_from_outside += quotas[branch].parent == NONE;
    n_from_above += !is_sure(claimant->space, claimant->space, HOLDS_ALL, claimant->units);
}

/* With all that is kept for others it is sure somewhere on its way up. */
static void judge_claim(const struct lending_pod *claimant)
{
    HOLDS(is_sure(claimant->space, top_of(claimant->space), PROMISED, 0),
          "s%d is promised more than is sure at the top", claimant->space);
}

static bool fits_maxes(int space, int64_t units)
{
    for (int at = space; at != NONE; at = quotas[at].parent) {
        if (quotas[at].max != NONE && has(at, HOLDS_ALL) + units > quotas[at].max)
            return false;
    }
    return true;
}

/* Whether pods of one card that may end, as many as their quotas have borrowed, make so much room. */
static bool could_make_room(int node, int card, const struct lending_pod *claimant)
{
    int on[LENDING_CARD + 1], n = 0;
    int64_t left = LENDING_CARD;

    for (int i = 0; i < LENDING_PODS; i++) {
        const struct lending_pod *pod = &lending.pods[i];
        if (pod->node != node || pod->card != card || pod->stage < STAGE_HELD)
            continue;
        left -= pod->units;
        if (pod->stage == STAGE_HELD && !pod->opts_out &&
            branch_of(claimant->space, pod->space) != NONE)
            on[n++] = i;
    }
    for (unsigned set = 0; set < 1u << n; set++) {
        int64_t units = 0, freed[QUOTAS] = {0};
        bool allowed = true;
        for (int i = 0; i < n; i++) {
            const struct lending_pod *pod = &lending.pods[on[i]];
            if (!(set >> i & 1))
                continue;
            allowed &= may_give(pod->space, claimant->space, pod->units, freed);
            for (int at = pod->space; at != NONE; at = quotas[at].parent)
                freed[at] += pod->units;
            units += pod->units;
        }
        if (allowed && left + units >= claimant->units)
            return true;
    }
    return false;
}

/* For who looks for a mistake. */
static void dump(void)
{
    for (int i = 0; i < QUOTAS; i++) {
        const struct quota *quota = &quotas[i];
        if (quota->set)
            printf("# q%d below q%d, tree %d: has %ld of %ld (%ld) to %ld, weight %ld%s\n", i,
                   quota->parent, quota->tree, (long)has(i, HOLDS_ALL), (long)min_of(i),
                   (long)quota->min, (long)quota->max, (long)quota->weight,
                   quota->keeps ? ", keeps" : "");
    }
    fflush(stdout);
}

static void judge_rest(void)
{
    if (g_getenv("GPULEDGER_TRACE"))
        dump();
    for (int i = 0; i < LENDING_PODS; i++) {
        const struct lending_pod *pod = &lending.pods[i];
        if (pod->stage != STAGE_WAITS || !is_sure(pod->space, pod->space, HOLDS_ALL, pod->units) ||
            !fits_maxes(pod->space, pod->units))
            continue;
        n_sure_waits++;
        for (int node = 0; node < lending.n_nodes; node++) {
            for (int card = 0; card < lending.n_cards; card++)
                HOLDS(!could_make_room(node, card, pod),
                      "p%d of s%d (%d units) waits, n%d/%d could have room", i, pod->space,
                      pod->units, node, card);
        }
    }
}

static const struct lending_judge judge = {
    .eviction = judge_eviction,
    .taking = judge_taking,
    .claim = judge_claim,
    .rest = judge_rest,
};

/* --- quotas ------------------------------------------------------------------------------------------- */

#define WORD "\"quota.scheduling.koordinator.sh/"
#define KEY "\"gpuledger.io/gpus\":\""

/* As cards; "": it is not said. */
static char *amount_of(int64_t units)
{
    return units == NONE ? g_strdup("") : g_strdup_printf(KEY "%" G_GINT64_FORMAT "00m\"", units);
}

static void tell_quota(int number)
{
    const struct quota *quota = &quotas[number];
    g_autofree char *min = amount_of(quota->min), *max = amount_of(quota->max),
                    *weight = amount_of(quota->weight), *weights = g_strescape(weight, NULL);
    g_autofree char *parent =
        quota->parent == NONE ? g_strdup("") : g_strdup_printf("q%d", quota->parent);
    g_autofree char *spaces =
        number < LENDING_SPACES ? g_strdup_printf("[\\\"s%d\\\"]", number) : g_strdup("[]");
    g_autofree char *object = g_strdup_printf(
        "{\"metadata\":{\"name\":\"q%d\",\"namespace\":\"admin\",\"labels\":{" WORD
        "is-parent\":\"%s\"," WORD "tree-id\":\"t%d\"," WORD "allow-lent-resource\":\"%s\"," WORD
        "parent\":\"%s\"},\"annotations\":{" WORD "shared-weight\":\"{%s}\"," WORD
        "namespaces\":\"%s\"}},\"spec\":{\"min\":{%s},\"max\":{%s}}}",
        number, number < LENDING_SPACES ? "false" : "true", quota->tree,
        quota->keeps ? "false" : "true", parent, weights, spaces, min, max);
    g_autoptr(json_arena) arena = json_arena_new();
    struct resource_quota_view view;

    HOLDS(elastic_quota_view_decode(arena, json_parse(arena, object, strlen(object), NULL), &view,
                                    NULL) &&
              !view.in.unread,
          "%s cannot be read", object);
    store_put_quota(lending.store, &view);
}

/* Amounts, not the place. No max is below the min, so that a min can be had. */
static void draw(int number)
{
    struct quota *quota = &quotas[number];
    const int64_t all = lending.n_nodes * lending.n_cards * LENDING_CARD;

    quota->min = number < LENDING_SPACES ? chance_between(0, 3 * all / (2 * lending.n_spaces))
                 : chance_percent(50)    ? NONE
                                         : chance_between(0, all);
    quota->max = chance_percent(75) ? NONE : min_of(number) + chance_between(0, all);
    quota->weight = chance_percent(50) ? NONE : chance_between(0, all);
    quota->keeps = chance_percent(15);
}

/* A parent has a smaller number among the parents than those below it, so that there is no circle. */
static void place(int number)
{
    struct quota *quota = &quotas[number];
    const int n = number < LENDING_SPACES ? PARENTS : number - LENDING_SPACES;
    const int parent = LENDING_SPACES + (int)chance_below((uint32_t)n + 1);

    quota->parent = parent < LENDING_SPACES + n && quotas[parent].set &&
                            quotas[parent].tree == quota->tree && chance_percent(80)
                        ? parent
                        : NONE;
}

static void begin(void)
{
    lending.judge = &judge;
    lending_begin((int)chance_between(2, LENDING_SPACES), (int)chance_between(1, 3),
                  (int)chance_between(1, 3));
    memset(quotas, 0, sizeof quotas);
    for (int i = 0; i < QUOTAS; i++)
        quotas[i].parent = NONE;
    for (int step = 0; step < QUOTAS; step++) {
        const int number = step < PARENTS ? LENDING_SPACES + step : step - PARENTS;
        if (number < LENDING_SPACES ? number >= lending.n_spaces : chance_percent(20))
            continue;
        quotas[number].set = true;
        quotas[number].tree = chance_percent(10);
        place(number);
        draw(number);
    }
    for (int i = 0; i < QUOTAS; i++) {
        if (quotas[i].set)
            tell_quota(i);
    }
}

static int any_quota(void)
{
    int number;

    do
        number = (int)chance_below(QUOTAS);
    while (!quotas[number].set);
    return number;
}

static void change_amounts(void *data)
{
    const int number = any_quota();

    draw(number);
    tell_quota(number);
}

static void move(void *data)
{
    const int number = any_quota();

    place(number);
    tell_quota(number);
}

static const struct chance_action actions[] = {
    {"submit", 6, lending_submit},   {"crowd", 6, lending_crowd},
    {"finish", 12, lending_finish},  {"leave", 8, lending_leave},
    {"amounts", 1, change_amounts},  {"move", 1, move},
    {"step", 40, lending_pass_time}, {"takeover", 1, lending_change_replica},
    {"chaos", 1, lending_stir},      {0},
};

int main(void)
{
    log_configure(g_getenv("GPULEDGER_TRACE") ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR,
                  LOG_FORMAT_LOGFMT);
    chance_init("reclaim in trees", 8000);
    while (chance_next_event()) {
        begin();
        for (int i = 0; i < ROUND_EVENTS && chance_next_event(); i++)
            chance_act(actions, NULL);
        lending_rest();
        n_rounds++;
    }
    printf("# %u rounds: %u pods ended, %u for a claim within a branch, %u for one from outside, "
           "%u for one "
           "that only a parent is sure of; %u wait that are sure\n",
           n_rounds, n_taken, n_from_branch, n_from_outside, n_from_above, n_sure_waits);
    HOLDS(n_from_branch > 0 && n_from_outside > 0 && n_from_above > 0, "not all was tried");
    return 0;
}
