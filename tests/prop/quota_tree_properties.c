/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas below one another, that come, go and change their parents at random, circles included, and pods that
 * name them: filter says of each pod what the rule says, and when pods end, whoever could have room gets it.
 *
 * The oracle walks over its own table of quotas and pods for each question, from the top down, and finds the
 * parts of what is lent by trying levels.
 */
#define PODS 40
#define NODES 6
#include "quota_pods.h"
#include "../unit/objects.h"

#include <math.h>
#include <stdlib.h>

#define QUOTAS 8
#define SPACES 3 /* quota i is for namespace i % SPACES */
#define ROUND_EVENTS 300
#define GONE (-2) /* a parent that does not exist */
#define ENDLESS 1e12

static struct quota {
    bool set, is_parent, keeps;
    int parent, tree;        /* index, NONE: the top, or GONE */
    double min, max, weight; /* units; NONE: not said */
} quotas[QUOTAS];
static unsigned n_passed, n_max, n_lent, n_shared, n_cut, n_drained;

/* --- the oracle ----------------------------------------------------------------------------------- */

static int above(int q)
{
    return quotas[q].parent;
}

/* Whether its own place can be told. */
static bool is_cut(int q)
{
    int at = q;

    if (above(q) == NONE)
        return false;
    if (above(q) == GONE || !quotas[above(q)].set || !quotas[above(q)].is_parent ||
        quotas[above(q)].tree != quotas[q].tree)
        return true;
    for (int i = 0; i < QUOTAS; i++) { /* back to itself, by parents that there are */
        at = above(at);
        if (at == NONE || at == GONE || !quotas[at].set)
            return false;
        if (at == q)
            return true;
        if (above(at) >= 0 && (!quotas[above(at)].set || !quotas[above(at)].is_parent ||
                               quotas[above(at)].tree != quotas[at].tree))
            return false;
    }
    return false;
}

/* NONE: it is at the top, or cut off. */
static int parent_of(int q)
{
    return is_cut(q) ? NONE : above(q);
}

static bool is_below(int q, int top)
{
    for (; q != NONE; q = parent_of(q)) {
        if (q == top)
            return true;
    }
    return false;
}

/* NONE: it counts nowhere. */
static int quota_of(const struct pod *pod)
{
    int first = NONE;

    for (int i = QUOTAS; i-- > 0;) {
        if (!quotas[i].set || quotas[i].is_parent || i % SPACES != pod->space)
            continue;
        if (i == pod->choice)
            return i;
        first = i;
    }
    return first;
}

static double held(int q)
{
    double sum = 0;

    for (int i = 0; i < PODS; i++) {
        const int own = pods[i].stage == STAGE_HELD ? quota_of(&pods[i]) : NONE;
        sum += own != NONE && is_below(own, q) ? pods[i].units : 0;
    }
    return sum;
}

static double min_of(int q)
{
    double sum = 0;

    if (quotas[q].min != NONE)
        return quotas[q].min;
    for (int i = 0; i < QUOTAS; i++)
        sum += quotas[i].set && i != q && parent_of(i) == q ? min_of(i) : 0;
    return sum;
}

static double max_of(int q)
{
    return quotas[q].max == NONE ? ENDLESS : quotas[q].max;
}

static double weight_of(int q)
{
    if (quotas[q].weight != NONE)
        return quotas[q].weight;
    return quotas[q].max != NONE ? quotas[q].max : fmax(fmax(quotas[q].min, 0), CARD);
}

/* It asks for no more than any quota that it counts in may have while nobody has anything. */
static bool may_ever_come(const struct pod *pod)
{
    bool mins = false;
    double most = 0;
    int top = quota_of(pod);

    for (int q = top; q != NONE; top = q, q = parent_of(q)) {
        if (pod->units > max_of(q))
            return false;
    }
    for (int i = 0; i < QUOTAS; i++) {
        mins |= quotas[i].set && quotas[i].min > 0;
        if (quotas[i].set && parent_of(i) == NONE && quotas[i].tree == quotas[top].tree &&
            !is_cut(i))
            most += min_of(i);
    }
    return !mins || pod->units <= (is_cut(top) ? min_of(top) : most);
}

static double demand_of(int q)
{
    double sum = 0;

    for (int i = 0; i < PODS; i++) {
        if (pods[i].stage != STAGE_GONE && quota_of(&pods[i]) == q &&
            (pods[i].stage != STAGE_WAITS || may_ever_come(&pods[i])))
            sum += pods[i].units;
    }
    for (int i = 0; i < QUOTAS; i++) {
        if (quotas[i].set && i != q && parent_of(i) == q)
            sum += fmin(demand_of(i), fmax(max_of(i), held(i)));
    }
    return sum;
}

/* What it has of what it is sure of, with so much more in the one below it: of each of those, what that has within
 * its own min. */
static double sure(int q, int child, double more)
{
    double sum = held(q) + more;

    for (int i = 0; i < QUOTAS; i++) {
        if (quotas[i].set && i != q && parent_of(i) == q)
            sum -= fmax(held(i) + (i == child ? more : 0) - min_of(i), 0);
    }
    return sum;
}

static double needed(int q)
{
    return quotas[q].keeps ? min_of(q) : fmin(min_of(q), demand_of(q));
}

static bool are_siblings(int a, int b)
{
    return a != b && quotas[b].set && !is_cut(b) && parent_of(a) == parent_of(b) &&
           quotas[a].tree == quotas[b].tree;
}

static double lendable(int q);

/* What it and its siblings may have together. */
static double pool_of(int q)
{
    const int parent = parent_of(q);
    double sum = 0;

    if (parent != NONE)
        return fmax(min_of(parent), fmin(lendable(parent), max_of(parent)));
    for (int i = 0; i < QUOTAS; i++)
        sum += i == q || are_siblings(q, i) ? min_of(i) : 0;
    return sum;
}

static double lendable(int q)
{
    double left;

    if (is_cut(q))
        return min_of(q);
    left = pool_of(q);
    for (int i = 0; i < QUOTAS; i++)
        left -= are_siblings(q, i) ? fmax(held(i), needed(i)) : 0;
    return left;
}

/* Its part of what is free above all that is sure: everybody's rises with one level until that is given away. */
static double part_of(int q)
{
    double wants[QUOTAS] = {0}, free = pool_of(q) - min_of(q), low = 0, high = 1e6;

    wants[q] = fmax(max_of(q) - min_of(q), 0);
    for (int i = 0; i < QUOTAS; i++) {
        if (!are_siblings(q, i))
            continue;
        free -= needed(i);
        wants[i] = fmax(fmin(demand_of(i), max_of(i)) - needed(i), 0);
    }
    for (int round = 0; round < 200; round++) {
        const double level = (low + high) / 2;
        double sum = 0;
        for (int i = 0; i < QUOTAS; i++)
            sum += i == q || are_siblings(q, i) ? fmin(wants[i], level * weight_of(i)) : 0;
        if (sum > free)
            high = level;
        else
            low = level;
    }
    return free <= 0 ? 0 : fmin(wants[q], low * weight_of(q));
}

static double borrowed(int q)
{
    return fmax(held(q) - min_of(q), 0);
}

/* Nobody beside it wants more and has less, by weight. */
static bool is_least(int q)
{
    for (int i = 0; i < QUOTAS; i++) {
        if (!are_siblings(q, i) || fmin(demand_of(i), max_of(i)) <= fmax(held(i), min_of(i)))
            continue;
        if (weight_of(q) == 0
                ? weight_of(i) > 0
                : weight_of(i) > 0 && borrowed(i) * weight_of(q) < borrowed(q) * weight_of(i))
            return false;
    }
    return true;
}

enum verdict { PASSES, ABOVE_MAX, NOT_LENT, NOT_SHARED };

static enum verdict judge(const struct pod *pod)
{
    const int own = quota_of(pod);
    bool is_sure = true, mins = false;

    for (int q = own; q != NONE; q = parent_of(q)) {
        if (held(q) + pod->units > max_of(q))
            return ABOVE_MAX;
    }
    for (int i = 0; i < QUOTAS; i++)
        mins |= quotas[i].set && quotas[i].min > 0;
    for (int q = own, child = NONE; mins && q != NONE; child = q, q = parent_of(q)) {
        is_sure = (is_sure ? sure(q, child, pod->units) : held(q) + pod->units) <= min_of(q);
        if (is_sure)
            continue;
        if (held(q) + pod->units > lendable(q))
            return NOT_LENT;
        if (held(q) + pod->units > min_of(q) + part_of(q) + 0.005 && !is_cut(q) && !is_least(q))
            return NOT_SHARED;
    }
    return PASSES;
}

/* --- what happens --------------------------------------------------------------------------------- */

static void create(void *data)
{
    const int number = (int)chance_below(PODS);
    struct pod *pod = &pods[number];

    if (pod->stage != STAGE_GONE)
        return;
    *pod = (struct pod){STAGE_WAITS,
                        (int)chance_below(SPACES),
                        chance_percent(50) ? (int)chance_below(QUOTAS) : NONE,
                        (int)chance_between(1, CARD),
                        0,
                        0};
    tell(number);
}

static char *text_of(double units)
{
    return g_strdup_printf("%d00m", (int)units); /* cards of ten units */
}

static void set_quota(void *data)
{
    const int number = (int)chance_below(QUOTAS);
    struct quota *quota = &quotas[number];
    g_autofree char *name = g_strdup_printf("q%d", number);

    if (chance_percent(15)) {
        quota->set = false;
        store_drop_quota(extender.store, &(struct resource_quota_view){
                                             .ns = "admin", .name = name, .elastic = true});
        return;
    }
    *quota = (struct quota){
        .set = true,
        .is_parent = chance_percent(number < 4 ? 70 : 10),
        .keeps = chance_percent(15),
        .parent = chance_percent(30)  ? NONE
                  : chance_percent(5) ? GONE
                                      : (int)chance_below(chance_percent(80) ? 4 : QUOTAS),
        .tree = chance_percent(5),
        .min = chance_percent(70) ? (double)chance_between(0, 60) : NONE,
        .max = chance_percent(50) ? (double)chance_between(0, 120) : NONE,
        .weight = chance_percent(30) ? (double)chance_between(0, 40) : NONE,
    };
    g_autofree char *min = text_of(quota->min), *max = text_of(quota->max),
                    *weight = text_of(quota->weight);
    g_autofree char *weights = g_strdup_printf("{\"gpuledger.io/gpus\":\"%s\"}", weight);
    g_autofree char *spaces = g_strdup_printf("[\"s%d\"]", number % SPACES);
    g_autofree char *in_weights = g_strescape(weights, NULL),
                    *in_spaces = g_strescape(spaces, NULL);
    g_autofree char *parent =
        quota->parent == GONE ? g_strdup("gone") : g_strdup_printf("q%d", quota->parent);
    g_autofree char *object = g_strdup_printf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"admin\",\"labels\":{"
        "\"quota.scheduling.koordinator.sh/is-parent\":\"%s\",\"quota.scheduling.koordinator.sh/"
        "tree-id\":\"t%d\","
        "\"quota.scheduling.koordinator.sh/allow-lent-resource\":\"%s\",\"other\":\"x\","
        "\"quota.scheduling.koordinator.sh/parent\":\"%s\"},\"annotations\":{"
        "\"quota.scheduling.koordinator.sh/%s\":\"%s\",\"quota.scheduling.koordinator.sh/"
        "namespaces\":\"%s\"}},"
        "\"spec\":{\"min\":{%s%s%s},\"max\":{%s%s%s}}}",
        name, quota->is_parent ? "true" : "false", quota->tree, quota->keeps ? "false" : "true",
        quota->parent == NONE ? "" : parent, quota->weight == NONE ? "runtime" : "shared-weight",
        in_weights, in_spaces, quota->min == NONE ? "" : "\"gpuledger.io/gpus\":\"",
        quota->min == NONE ? "" : min, quota->min == NONE ? "" : "\"",
        quota->max == NONE ? "" : "\"gpuledger.io/gpus\":\"", quota->max == NONE ? "" : max,
        quota->max == NONE ? "" : "\"");
    g_autoptr(json_arena) arena = json_arena_new();
    struct resource_quota_view view;
    HOLDS(elastic_quota_view_decode(arena, json_parse(arena, object, strlen(object), NULL), &view,
                                    NULL),
          "%s cannot be read", object);
    store_put_quota(extender.store, &view);
}

static const char *const words[] = {[PASSES] = NULL,
                                    [ABOVE_MAX] = "quota's max",
                                    [NOT_LENT] = "would borrow",
                                    [NOT_SHARED] = "would borrow"};

static enum verdict ask_about(const struct pod *pod, const char *uid)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"s%d\",\"uid\":\"%s\",\"labels\":{"
        "\"quota.scheduling.koordinator.sh/name\":\"%s\"}},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/"
        "gpu-mem\":\"%d\"}}}]}},\"NodeNames\":[\"n0\"]}",
        pod->space, uid, pod->choice == NONE ? "" : name_of("q", pod->choice), pod->units);
    const enum verdict verdict = judge(pod);
    const int own = quota_of(pod);

    extender_filter(&extender, body, strlen(body), reply);
    const bool passes = strstr(reply->str, "\"NodeNames\":[\"n0\"]") != NULL;
    HOLDS(passes == (verdict == PASSES) && (passes || strstr(reply->str, words[verdict])),
          "%d units of s%d in q%d (asks for q%d): %s, not %s", pod->units, pod->space, own,
          pod->choice, reply->str, words[verdict] ? words[verdict] : "to pass");
    n_passed += passes && own != NONE;
    n_max += verdict == ABOVE_MAX;
    n_lent += verdict == NOT_LENT;
    n_shared += verdict == NOT_SHARED;
    n_cut += own != NONE && is_cut(own);
    return verdict;
}

static void ask(void *data)
{
    const int number = (int)chance_below(PODS);
    const struct pod new = {STAGE_WAITS,
                            (int)chance_below(SPACES),
                            (int)chance_below(QUOTAS),
                            (int)chance_between(1, CARD),
                            0,
                            0};

    if (pods[number].stage == STAGE_WAITS)
        ask_about(&pods[number], name_of("p", number));
    else
        ask_about(&new, "x");
}

/* Nobody comes any more and quotas stay as they are: whoever is let pass has room, one after the other ends, and
 * in the end nobody waits for his part of what is lent while nobody has it. */
static void drain(void *data)
{
    for (int step = 0, idle = 0; idle < 2; step++) {
        int last = NONE;
        bool any = false;
        HOLDS(step <= 3 * PODS, "it goes on and on");
        for (int i = 0; i < PODS; i++) {
            if (pods[i].stage == STAGE_WAITS && ask_about(&pods[i], name_of("p", i)) == PASSES) {
                hold_it(i);
                any |= pods[i].stage == STAGE_HELD;
            }
            last = pods[i].stage == STAGE_HELD ? i : last;
        }
        if (last != NONE)
            end_it(last);
        idle = any || last != NONE ? 0 : idle + 1;
    }
    for (int i = 0; i < PODS; i++) {
        HOLDS(pods[i].stage != STAGE_WAITS || ask_about(&pods[i], name_of("p", i)) != NOT_SHARED,
              "p%d waits for its part, and nobody has anything", i);
    }
    n_drained++;
}

static const struct chance_action actions[] = {
    {"create", 80, create},
    {"hold", 60, hold},
    {"end", 40, end},
    {"quota", 40, set_quota},
    {"ask", 120, ask},
    {"drain", 1, drain},
    {0},
};

static void begin(void)
{
    begin_cluster(store_new(&(struct store_options){
        .patience_ms = 60000, .elastic_quotas = true, .tree_namespaces = "admin", .silent = true}));
    memset(quotas, 0, sizeof quotas);
    for (int i = 0; i < 2 * QUOTAS; i++)
        set_quota(NULL);
}

int main(void)
{
    chance_init("quotas of a tree limit, lend and share as the rule says", 40000);
    live(actions, ROUND_EVENTS, begin);
    HOLDS(n_passed > 0 && n_max > 0 && n_lent > 0 && n_shared > 0 && n_cut > 0 && n_drained > 0,
          "%u passed, %u above max, %u not lent, %u not shared, %u cut off, %u drained", n_passed,
          n_max, n_lent, n_shared, n_cut, n_drained);
    g_print("# %u passed, %u above max, %u not lent, %u not shared, %u cut off, %u drained\n",
            n_passed, n_max, n_lent, n_shared, n_cut, n_drained);
    return 0;
}
