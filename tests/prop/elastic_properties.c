/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces with and without elastic quotas, whose pods wait, are bound and go in any order: filter says
 * of each pod what the rule says.
 *
 * The oracle adds up everything anew, from its own list of pods, for each question: no namespace beyond
 * its max; up to its min whatever it likes; beyond it only while all that the others have, or need within
 * their mins, and what it then has come to no more than all mins together. A pod that waits for more than its
 * namespace, or all of them together, may ever have needs nothing. In some clusters only what can be taken back is
 * lent: there a pod without a controller passes within its namespace's min alone.
 */
#define PODS 60
#define NODES 8
#include "quota_pods.h"
#include "../unit/objects.h"

#include <stdlib.h>

#define SPACES 4
#define ROUND_EVENTS 400

/* In units; NONE: it says nothing. Of the ElasticQuota, and of annotations of a ResourceQuota. */
static struct quota {
    bool set;
    int64_t min, max;
} quotas[SPACES][2];
static const char *key;
static bool only_reclaimable, bare_too;
static unsigned n_lent, n_max, n_passed, n_tied;

/* --- the oracle ----------------------------------------------------------------------------------- */

struct sum {
    bool limited;
    int64_t min, max, used, waiting;
};

static int64_t add_up_mins(void)
{
    int64_t mins = 0;

    for (int i = 0; i < 2 * SPACES; i++) {
        const struct quota *quota = &quotas[i / 2][i % 2];
        mins += quota->set && quota->min != NONE ? quota->min : 0;
    }
    return mins;
}

static bool may_ever_come(const struct pod *pod, int64_t max, int64_t min)
{
    const int64_t mins = add_up_mins();

    if (mins > 0 && only_reclaimable && !bare_too && !pod->owned && pod->units > min)
        return false;
    return pod->units <= max && (mins == 0 || pod->units <= mins);
}

static struct sum add_up(int space)
{
    struct sum sum = {.max = INT64_MAX};

    for (int i = 0; i < 2; i++) {
        const struct quota *quota = &quotas[space][i];
        if (!quota->set || (quota->min == NONE && quota->max == NONE))
            continue;
        sum.limited = true;
        sum.min += quota->min == NONE ? 0 : quota->min;
        if (quota->max != NONE && quota->max < sum.max)
            sum.max = quota->max;
    }
    for (int i = 0; i < PODS; i++) {
        if (pods[i].space != space)
            continue;
        sum.used += pods[i].stage == STAGE_HELD ? pods[i].units : 0;
        if (pods[i].stage == STAGE_WAITS && may_ever_come(&pods[i], sum.max, sum.min))
            sum.waiting += pods[i].units;
    }
    return sum;
}

/* NULL: it may pass; else what filter has to say. */
static const char *judge(int space, int units, bool owned)
{
    const struct sum own = add_up(space);
    const int64_t wanted = own.used + units;
    int64_t mins = 0, others = 0;

    if (!own.limited)
        return NULL;
    if (wanted > own.max)
        return "quota's max";
    if (wanted <= own.min)
        return NULL;
    for (int i = 0; i < SPACES; i++) {
        const struct sum sum = add_up(i);
        if (!sum.limited)
            continue;
        mins += sum.min;
        if (i == space)
            continue;
        int64_t needs = sum.used + sum.waiting;
        if (needs > sum.min)
            needs = sum.min;
        others += needs > sum.used ? needs : sum.used;
    }
    if (mins > 0 && only_reclaimable && !bare_too && !owned)
        return "can be taken back";
    return mins == 0 || others + wanted <= mins ? NULL : "would borrow";
}

/* --- what happens --------------------------------------------------------------------------------- */

static void create(void *data)
{
    const int number = (int)chance_below(PODS);
    struct pod *pod = &pods[number];

    if (pod->stage != STAGE_GONE)
        return;
    *pod =
        (struct pod){STAGE_WAITS, (int)chance_below(SPACES), NONE, (int)chance_between(1, CARD), 0,
                     0,           chance_percent(50)};
    tell(number);
}

static char *amount_text(int64_t units)
{
    if (g_str_equal(key, "gpuledger.io/gpus")) /* of cards of ten units */
        return g_strdup_printf("%" G_GINT64_FORMAT "00m", units);
    return g_strdup_printf("%" G_GINT64_FORMAT, units);
}

static void set_quota(void *data)
{
    const int space = (int)chance_below(SPACES), kind = (int)chance_below(2);
    struct quota *quota = &quotas[space][kind];
    const struct resource_quota_view names = {
        .ns = name_of("s", space), .name = "q", .elastic = kind == 0};
    struct resource_quota_view view = names;

    if (chance_percent(25)) {
        quota->set = false;
        store_drop_quota(extender.store, &names);
        return;
    }
    *quota = (struct quota){true, chance_percent(80) ? chance_between(0, 40) : NONE,
                            chance_percent(60) ? chance_between(0, 80) : NONE};
    g_autofree char *min = amount_text(quota->min), *max = amount_text(quota->max);
    const struct string_pair mins[] = {{"cpu", "1"}, {key, min}}, maxs[] = {{key, max}, {"x", "?"}};
    if (quota->min != NONE)
        view.min = (struct string_pairs){mins, 2};
    if (quota->max != NONE)
        view.max = (struct string_pairs){maxs, 2};
    store_put_quota(extender.store, &view);
}

static void ask(void *data)
{
    const int number = (int)chance_below(PODS);
    const bool known = pods[number].stage == STAGE_WAITS;
    const int space = known ? pods[number].space : (int)chance_below(SPACES);
    const int units = known ? pods[number].units : (int)chance_between(1, CARD);
    const bool owned = known ? pods[number].owned : chance_percent(50);
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"s%d\",\"uid\":\"%s\"%s},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/"
        "gpu-mem\":\"%d\"}}}"
        "]}},\"NodeNames\":[\"n0\"]}",
        space, known ? name_of("p", number) : "x",
        owned
            ? ",\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"uid\":\"rs\",\"controller\":true}]"
            : "",
        units);

    extender_filter(&extender, body, strlen(body), reply);
    const char *wanted = judge(space, units, owned);
    const bool passes = strstr(reply->str, "\"NodeNames\":[\"n0\"]") != NULL;
    const struct sum sum = add_up(space);
    HOLDS(passes == !wanted && (!wanted || strstr(reply->str, wanted)),
          "s%d (min %ld, max %ld, used %ld) wants %d: %s, not %s", space, (long)sum.min,
          (long)sum.max, (long)sum.used, units, reply->str, wanted ? wanted : "to pass");
    n_passed += passes && sum.limited;
    n_max += wanted && strstr(wanted, "max");
    n_lent += wanted && strstr(wanted, "borrow");
    n_tied += wanted && strstr(wanted, "back");
}

static const struct chance_action actions[] = {
    {"create", 8, create},   {"hold", 8, hold}, {"end", 4, end},
    {"quota", 1, set_quota}, {"ask", 12, ask},  {0},
};

static void begin(void)
{
    only_reclaimable = chance_percent(60);
    bare_too = chance_percent(20);
    begin_cluster(
        store_new(&(struct store_options){.patience_ms = 60000,
                                          .elastic_quotas = true,
                                          .reclaim = only_reclaimable || chance_percent(50),
                                          .reclaim_uncontrolled = bare_too,
                                          .lend_unreclaimable = !only_reclaimable}));
    key = chance_percent(50) ? "gpuledger.io/gpus" : "aliyun.com/gpu-mem";
    memset(quotas, 0, sizeof quotas);
}

int main(void)
{
    chance_init("elastic quotas limit and lend as the rule says", 40000);
    live(actions, ROUND_EVENTS, begin);
    HOLDS(n_passed > 0 && n_max > 0 && n_lent > 0 && n_tied > 0,
          "%u passed, %u above max, %u not lent, %u not to be taken back", n_passed, n_max, n_lent,
          n_tied);
    g_print("# %u passed, %u above max, %u not lent, %u not to be taken back\n", n_passed, n_max,
            n_lent, n_tied);
    return 0;
}
