/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gives back what a namespace has lent, how fast, and what is asked right before each of them ends. One node of
 * four cards: namespace a has them all, and is sure of one; b is sure of three.
 */
#include "fake_claims.h"
#include "objects.h"
#include "suite.h"
#include "literals.h"

#include "base/log.h"
#include "base/metrics.h"
#include "reclaim/reclaimer.h"
#include "wire/claim.h"
#include "wire/kubernetes.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define GPUS "gpuledger.io/gpus"
#define SECOND_MS 1000
#define LENDERS 4
#define WANTING 3

/* One of namespace a. */
struct lender {
    const char *annotations; /* more of them: ",\"k\":\"v\"" */
    const char *kind;        /* of its controller; NULL: it has none */
    const char *uid;         /* of the pod that has its name by now; NULL: its own */
    bool ending, gone;
    enum eviction tried, evicted; /* what the API server says */
};

static struct lender lenders[LENDERS];
static struct store *known;
static struct reclaimer *reclaimer;
static struct reclaimer_options options;
static struct permits *permits; /* NULL: its own, by the options */
static struct denials *denials; /* NULL: pods of all schedulers are placed here */
static struct moment moment;
static char *claims;   /* on the Node, as the ConfigMap has them */
static GString *asked; /* of evictions: "a0? a0" */
static unsigned n_tried, n_evicted;
static void (*at_read)(void);  /* happens while a pod is read; NULL: nothing */
static const char *wanting;    /* annotations of those of namespace b that wait; NULL: none */
static bool come[2 * WANTING]; /* pods of namespace b that have a card */
static int n_wanting, first_wanting;

/* --- replicas ------------------------------------------------------------------------------------- */

static unsigned n_terms,
    term_until; /* how often it was asked; how often it serves still, 0: always */

static uint64_t term_of(struct leadership *leadership)
{
    return term_until == 0 || n_terms++ < term_until ? 7 : 8;
}

static const struct leadership_ops leader_ops = {.term = term_of};
static struct leadership leader = {&leader_ops};

/* --- the cluster ---------------------------------------------------------------------------------- */

#define HELD                                                                                       \
    "\"ALIYUN_COM_GPU_MEM_IDX\":\"%d\",\"ALIYUN_COM_GPU_MEM_POD\":\"10\","                         \
    "\"ALIYUN_COM_GPU_MEM_DEV\":\"10\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\","                  \
    "\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"1\"%s"

static bool deleted; /* the pods that want, which finalizers hold */

/* Free with g_free. */
static char *text_of(const char *ns, int i, int card, const struct lender *lender, const char *uid)
{
    g_autofree char *held =
        card >= 0
            ? g_strdup_printf(HELD, card, lender && lender->annotations ? lender->annotations : "")
            : g_strdup(!lender && wanting ? wanting : "");
    g_autofree char *owners =
        lender && lender->kind
            ? g_strdup_printf(",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\","
                              "\"name\":\"o\",\"uid\":\"o\",\"controller\":true}]",
                              lender->kind)
            : g_strdup("");

    return g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s%d\",\"uid\":\"%s\",\"annotations\":{%s}"
        "%s%s,\"creationTimestamp\":\"2026-01-02T00:00:00Z\"},\"spec\":{\"priority\":%d,%s"
        "\"schedulerName\":\"default-scheduler\",\"containers\":[{\"name\":\"c\",\"resources\":{"
        "\"limits\":{\"" MEM "\":\"10\"}}}]},\"status\":{\"phase\":\"%s\"}}",
        ns, ns, i, uid, held, owners,
        (lender ? lender->ending : deleted && card < 0)
            ? ",\"deletionTimestamp\":\"2026-01-03T00:00:00Z\""
            : "",
        -i, card >= 0 ? "\"nodeName\":\"n\"," : "", card >= 0 ? "Running" : "Pending");
}

static void decode(struct json_arena *arena, const char *text, struct pod_view *ret_pod)
{
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);

    ck_assert_msg(object && pod_view_decode(arena, object, ret_pod, NULL), "%s", text);
}

static void apply(const char *ns, int i, int card, const struct lender *lender)
{
    g_autofree char *uid = g_strdup_printf("%s%d", ns, i);
    g_autofree char *text = text_of(ns, i, card, lender, uid);
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view pod;

    decode(arena, text, &pod);
    if (lender && lender->gone)
        store_delete_pod(known, uid);
    else
        store_apply_pod(known, &pod);
}

/* The card of the lender with the highest number of those that are gone, but for so many. */
static int freed_card(int but)
{
    for (int i = LENDERS - 1; i >= 0; i--) {
        if (lenders[i].gone && but-- == 0)
            return i;
    }
    return LENDERS - 1;
}

/* What the watches show. */
static void tell(void)
{
    int n_come = 0;

    store_apply_node(known, &(struct node_view){
                                .name = "n",
                                .capacity = PAIRS({MEM, "40"}, {"aliyun.com/gpu-count", "4"}),
                                .allocatable = PAIRS({MEM, "40"}, {"aliyun.com/gpu-count", "4"})});
    for (int i = 0; i < LENDERS; i++)
        apply("a", i, i, &lenders[i]);
    for (int i = first_wanting; i < n_wanting; i++)
        apply("b", i, come[i] ? freed_card(n_come++) : -1, NULL);
}

static enum outcome get_node(struct cluster *cluster, struct json_arena *arena, const char *name,
                             int64_t deadline_ms, struct node_view *ret_node, GError **error)
{
    *ret_node = (struct node_view){.name = name};
    return OUTCOME_OK;
}

static enum outcome annotate_node(struct cluster *cluster, const struct node_annotation *annotation,
                                  int64_t deadline_ms, GError **error)
{
    return OUTCOME_OK;
}

static void note_written(void)
{
    g_free(claims);
    claims = fake_claims_on("n");
}

static enum outcome get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                            const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                            GError **error)
{
    const int i = name[1] - '0';

    if (at_read)
        at_read();
    if (lenders[i].gone)
        return OUTCOME_NOT_FOUND;
    char *text = text_of("a", i, i, &lenders[i], lenders[i].uid ? lenders[i].uid : name);
    char *kept = json_arena_alloc(arena, strlen(text) + 1);
    strcpy(kept, text);
    g_free(text);
    decode(arena, kept, ret_pod);
    return OUTCOME_OK;
}

static const struct cluster_ops ops = {
    .name = "table", .get_pod = get_pod, .get_node = get_node, .annotate_node = annotate_node};
static struct cluster cluster = {&ops};

static enum eviction evict(void *data, const struct evictee *evictee, bool try, GError **error)
{
    struct lender *lender = &lenders[evictee->name[1] - '0'];
    const enum eviction outcome = try ? lender->tried : lender->evicted;

    g_string_append_printf(asked, "%s%s%s", asked->len ? " " : "", evictee->uid, try ? "?" : "");
    n_tried += try;
    if (!try)
        ck_assert_msg(claims && strstr(claims, evictee->uid), "%s ends, and no claim names it",
                      evictee->uid);
    if (outcome != EVICTION_DONE) {
        g_set_error(error, g_quark_from_static_string("test"), 0, "no");
        return outcome;
    }
    n_evicted += !try;
    lender->ending |= !try;
    return EVICTION_DONE;
}

static void set_min(const char *ns, const char *min)
{
    store_put_quota(known, &(struct resource_quota_view){
                               .ns = ns, .name = "q", .elastic = true, .min = PAIRS({GPUS, min})});
}

static void setup(void)
{
    moment = (struct moment){.now_ns = INT64_C(1764100000000000000), .now_ms = 1000000};
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    asked = g_string_new(NULL);
    n_tried = n_evicted = n_terms = term_until = 0;
    n_wanting = WANTING;
    first_wanting = 0;
    at_read = NULL;
    fake_claims.written = note_written;
    wanting = NULL;
    deleted = false;
    memset(come, 0, sizeof come);
    for (int i = 0; i < LENDERS; i++)
        lenders[i] = (struct lender){.kind = "ReplicaSet"};
    known = store_new(&(struct store_options){.policy = &policies[0],
                                              .patience_ms = 60000,
                                              .elastic_quotas = true,
                                              .reclaim = true,
                                              .gangs = true,
                                              .silent = true});
    store_set_moment(known, &moment);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(known, (enum feed)feed);
    set_min("a", "1");
    set_min("b", "3");
    tell();
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(known, (enum feed)feed);
    options =
        (struct reclaimer_options){.delay_ms = 3 * SECOND_MS, .at_once = 10, .per_minute = 10};
}

static void teardown(void)
{
    reclaimer_free(reclaimer);
    reclaimer = NULL;
    g_clear_pointer(&permits, permits_free);
    store_free(known);
    g_clear_pointer(&claims, g_free);
    fake_claims_reset();
    g_clear_pointer(&denials, denials_free);
    g_string_free(asked, TRUE);
}

/* So many seconds, in each of which the watches show everything and it looks once. */
static void pass(int seconds)
{
    if (!reclaimer)
        reclaimer = reclaimer_new(&(struct reclaimer_args){.store = known,
                                                           .cluster = &cluster,
                                                           .files = &fake_claims_files,
                                                           .leadership = &leader,
                                                           .denials = denials,
                                                           .permits = permits,
                                                           .evict = evict,
                                                           .options = options});
    for (int i = 0; i < seconds; i++) {
        moment.now_ms += SECOND_MS;
        moment.now_ns += INT64_C(1000000) * SECOND_MS;
        tell();
        reclaimer_look(reclaimer);
    }
}

/* The others of namespace b are gone. */
static void let_one_want(void)
{
    for (n_wanting = WANTING; n_wanting > 1;) {
        g_autofree char *uid = g_strdup_printf("b%d", --n_wanting);
        store_delete_pod(known, uid);
    }
}

static guint n_claims(void)
{
    g_autoptr(GPtrArray) read = claims_decode(claims, NULL);
    guint n = 0;

    for (guint i = 0; i < read->len; i++)
        n += !claim_is_over(read->pdata[i]);
    return n;
}

/* --- who may end ---------------------------------------------------------------------------------- */

static const struct {
    struct lender lender;
    bool uncontrolled;
    unsigned n_evicted;
} candidates[] = {
    {{.kind = "ReplicaSet"}, false, 3},
    {{.kind = "Job"}, false, 3},
    {{.kind = NULL}, false, 0},
    {{.kind = NULL}, true, 3},
    {{.kind = "DaemonSet"}, true, 0},
    {{.annotations = ",\"kubernetes.io/config.mirror\":\"x\""}, true, 0},
    {{.annotations = ",\"descheduler.alpha.kubernetes.io/prefer-no-eviction\":\"\""}, true, 0},
    {{.annotations = ",\"descheduler.alpha.kubernetes.io/eviction-in-progress\":\"\""}, true, 0},
    {{.annotations = ",\"scheduling.koordinator.sh/refuse-to-migrate\":\"true\""}, true, 0},
    {{.annotations = ",\"scheduling.koordinator.sh/refuse-to-migrate\":\"false\""}, true, 3},
    {{.annotations = ",\"scheduling.koordinator.sh/eviction-cost\":\"2147483647\""}, true, 0},
    {{.annotations = ",\"scheduling.koordinator.sh/eviction-cost\":\"7\""}, true, 3},
    {{.annotations = ",\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"false\""}, true, 0},
    {{.annotations = ",\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"true\""}, true, 3},
    {{.annotations = ",\"karpenter.sh/do-not-disrupt\":\"true\""}, true, 0},
    {{.annotations = ",\"gang.scheduling.koordinator.sh/name\":\"g\""}, true, 0},
    {{.kind = "ReplicaSet", .uid = "another"}, false, 0},
    {{.kind = "ReplicaSet", .tried = EVICTION_LATER}, false, 3}, /* a budget: it is waited for */
    {{.kind = "ReplicaSet", .tried = EVICTION_FAILED}, false, 0},
    {{.kind = "ReplicaSet", .tried = EVICTION_UNKNOWN}, false, 0},
};

START_TEST(who_may_not_end_is_never_evicted)
{
    for (int i = 0; i < LENDERS; i++)
        lenders[i] = candidates[_i].lender;
    ((struct store_options *)store_options(known))->reclaim_uncontrolled =
        candidates[_i].uncontrolled;
    pass(20);
    ck_assert_msg(n_evicted == candidates[_i].n_evicted, "%u: %s", n_evicted, asked->str);
    ck_assert_int_eq(claims != NULL, candidates[_i].n_evicted > 0);
}
END_TEST

/* Of the others as many give back as it takes, those of least priority first. */
START_TEST(somebody_else_ends_for_whom_stays)
{
    lenders[3].annotations = ",\"karpenter.sh/do-not-disrupt\":\"true\"";
    lenders[2].tried = EVICTION_FAILED;
    pass(20);
    ck_assert_uint_eq(n_evicted, 2);
    ck_assert(lenders[1].ending && lenders[0].ending);
    /* They are left alone for five minutes. */
    const unsigned before = n_tried;
    pass(260);
    ck_assert_uint_eq(n_tried, before);
    lenders[2].tried = EVICTION_DONE;
    lenders[3].annotations = NULL;
    pass(60);
    ck_assert_uint_eq(n_evicted, 3);
}
END_TEST

/* Between the claim and its end: the claim goes, and it does not end. */
static const struct {
    const char *annotations;
    const char *min; /* of namespace a */
    bool ends;
} changes[] = {
    {NULL, "1", true},
    {",\"karpenter.sh/do-not-disrupt\":\"true\"", "1", false},
    {NULL, "4", false},
    {NULL, "3", true}, /* one has been borrowed still */
};

START_TEST(it_is_asked_again_right_before)
{
    let_one_want();
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_LATER;
    for (int i = 0; i < 10 && !claims; i++)
        pass(1);
    ck_assert_uint_eq(n_claims(), 1);
    for (int i = 0; i < LENDERS; i++) {
        lenders[i].evicted = EVICTION_DONE;
        lenders[i].annotations = changes[_i].annotations;
    }
    set_min("a", changes[_i].min);
    g_string_truncate(asked, 0);
    pass(6);
    ck_assert_uint_eq(n_evicted, changes[_i].ends ? 1 : 0);
    ck_assert_uint_eq(n_claims(), changes[_i].ends ? 1 : 0);
}
END_TEST

static void take_all(void)
{
    set_min("a", "4");
}

/* The pod is read without the lock, and much may happen until it is. */
START_TEST(it_is_asked_again_after_the_pod_was_read)
{
    let_one_want();
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_LATER;
    for (int i = 0; i < 10 && !claims; i++)
        pass(1);
    ck_assert_uint_eq(n_claims(), 1);
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_DONE;
    at_read = take_all;
    pass(7);
    ck_assert_uint_eq(n_evicted, 0);
    ck_assert_uint_eq(n_claims(), 0);
}
END_TEST

START_TEST(who_has_gone_meanwhile_is_not_evicted)
{
    let_one_want();
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_LATER;
    for (int i = 0; i < 10 && !claims; i++)
        pass(1);
    g_string_truncate(asked, 0);
    for (int i = 0; i < LENDERS; i++) {
        lenders[i].evicted = EVICTION_DONE;
        lenders[i].gone = _i == 0;
        lenders[i].ending = _i == 1;
        lenders[i].uid = _i == 2 ? "another" : NULL; /* the watch has yet to show it */
    }
    pass(30);
    ck_assert_str_eq(asked->str, "");
}
END_TEST

/* As a group. */
static void want_together(void)
{
    wanting = "\"gang.scheduling.koordinator.sh/name\":\"g\","
              "\"gang.scheduling.koordinator.sh/min-available\":\"3\"";
    tell();
}

/* One of those who have borrowed cannot end, by whatever means: the others give back. */
START_TEST(who_cannot_end_is_passed_over)
{
    static const struct lender ways[] = {
        {.kind = "ReplicaSet", .tried = EVICTION_FAILED},
        {.kind = NULL},
        {.kind = "ReplicaSet", .annotations = ",\"karpenter.sh/do-not-disrupt\":\"true\""},
        {.kind = "DaemonSet"},
    };
    const int stays = _i % LENDERS;

    lenders[stays] = ways[_i / LENDERS];
    tell();
    pass(60);
    ck_assert_uint_eq(n_evicted, LENDERS - 1);
    ck_assert(!lenders[stays].ending);
}
END_TEST

/* --- how fast ------------------------------------------------------------------------------------- */

START_TEST(so_many_are_on_their_way_out_at_once)
{
    options.at_once = 2;
    pass(60);
    ck_assert_uint_eq(n_evicted, 2);
    for (int i = 0; i < LENDERS; i++)
        lenders[i].gone = lenders[i].ending;
    pass(10);
    ck_assert_uint_eq(n_evicted, 3);
}
END_TEST

/* Even if they end at once. */
START_TEST(so_many_end_within_a_minute)
{
    const int began_s = 1000;
    int at_s[LENDERS] = {0};

    options.per_minute = 1;
    for (unsigned seen = 0; seen < WANTING;) {
        pass(1);
        for (int i = 0; i < LENDERS; i++)
            lenders[i].gone = lenders[i].ending;
        if (n_evicted > seen)
            at_s[seen++] = (int)(moment.now_ms / SECOND_MS) - began_s;
        ck_assert_int_lt(moment.now_ms, 2000000);
    }
    ck_assert_int_ge(at_s[1] - at_s[0], 60);
    ck_assert_int_ge(at_s[2] - at_s[1], 60);
    ck_assert_int_lt(at_s[2] - at_s[0], 130);
}
END_TEST

/* More than eight minutes' worth is nobody's. */
static int64_t read_moment(void *data)
{
    return moment.now_ms;
}

/* By what lets three, or two, end in eight minutes. */
static const struct {
    struct limits limits;
    guint n_claims;
} slow[] = {
    {{.per_namespace = 1, .minute_ms = 160000}, WANTING},
    {{.per_namespace = 1, .minute_ms = 240000}, 0},
    {{.of[ENDER_RECLAIM].per_minute = 1, .minute_ms = 160000}, WANTING},
    {{.of[ENDER_RECLAIM].per_minute = 1, .minute_ms = 240000}, 0},
    {{.per_minute = 1, .minute_ms = 160000}, WANTING},
    {{.per_minute = 1, .minute_ms = 240000}, 0},
    /* Others may use the rest of the minute. */
    {{.per_minute = 60, .for_reclaim = 1, .minute_ms = 160000}, WANTING},
    {{.per_minute = 60, .for_reclaim = 1, .minute_ms = 240000}, 0},
};

START_TEST(what_would_take_too_long_is_not_begun)
{
    const struct permits_options of = {.limits = slow[_i].limits, .clock = read_moment};

    want_together();
    permits = permits_new(&of);
    pass(20);
    ck_assert_uint_eq(n_claims(), slow[_i].n_claims);
    ck_assert_int_eq(n_tried > 0, slow[_i].n_claims > 0);
}
END_TEST

/* Nor is what would, beside what ends for claims already. */
START_TEST(what_ends_for_others_takes_its_time)
{
    const struct permits_options of = {.limits = slow[1].limits, .clock = read_moment};

    permits = permits_new(&of);
    pass(20);
    ck_assert_uint_eq(n_claims(), 2);
}
END_TEST

/* Nor does anybody begin where a budget keeps one of those that end for a group. */
START_TEST(where_a_budget_keeps_one_nobody_begins)
{
    want_together();
    lenders[1].tried = EVICTION_LATER;
    pass(60);
    ck_assert_uint_eq(n_claims(), WANTING);
    ck_assert_msg(n_evicted == 0, "%s", asked->str);
    lenders[1].tried = EVICTION_DONE;
    pass(10);
    ck_assert_uint_eq(n_evicted, WANTING);
}
END_TEST

/* An answer that was lost takes the place of one that ends, and is asked for again after a minute. */
START_TEST(an_unknown_outcome_counts)
{
    options.at_once = _i == 0 ? 1 : 10;
    options.per_minute = _i == 1 ? 1 : 10;
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_UNKNOWN;
    pass(5);
    const size_t length = asked->len;
    ck_assert(!g_str_has_suffix(asked->str, "?")); /* one was meant */
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_DONE;
    pass(55);
    if (_i < 2)
        ck_assert_msg(asked->len == length, "%s", asked->str + length);
    pass(60);
    ck_assert_uint_ge(n_evicted, 1);
}
END_TEST

START_TEST(nobody_gives_back_before_the_pod_has_waited)
{
    options.delay_ms = 30 * SECOND_MS;
    pass(29);
    ck_assert_uint_eq(n_claims(), 0);
    pass(3);
    ck_assert_uint_eq(n_evicted, 3);
}
END_TEST

/* Theirs is another scheduler, or this one's. */
START_TEST(for_pods_of_other_schedulers_nobody_gives_back)
{
    denials = denials_new(_i == 0 ? "another" : "another,default-scheduler", false);
    pass(20);
    ck_assert_uint_eq(n_evicted, _i == 0 ? 0 : 3);
}
END_TEST

START_TEST(the_most_important_pod_comes_first)
{
    options.at_once = 1;
    pass(5);
    ck_assert_uint_eq(n_claims(), 1);
    ck_assert_ptr_nonnull(strstr(claims, "\"for\":\"b0\""));
}
END_TEST

/* Of those that a claim names only who ends, or has ended, counts for whoever takes over. */
START_TEST(whom_nobody_has_evicted_does_not_count)
{
    let_one_want();
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_LATER;
    for (int i = 0; i < 10 && !claims; i++)
        pass(1);
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_DONE;
    g_clear_pointer(&reclaimer, reclaimer_free);
    options.per_minute = 1;
    pass(1);
    ck_assert_uint_eq(n_evicted, 1);
}
END_TEST

/* --- the term --------------------------------------------------------------------------------- */

/* It is asked when it looks, before a claim is written, and before each eviction. */
START_TEST(each_eviction_is_of_the_term_in_which_it_looked)
{
    const unsigned n = (unsigned)_i;

    /* All three have claims, and nobody has ended yet. */
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_LATER;
    pass(8);
    ck_assert_uint_eq(n_claims(), WANTING);
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_DONE;
    moment.now_ms += 10 * SECOND_MS; /* after the pause */
    moment.now_ns += INT64_C(10000000000);
    n_terms = 0;
    term_until = 1 + n; /* the look itself */
    pass(1);
    ck_assert_uint_eq(n_evicted, n);
}
END_TEST

START_TEST(who_serves_no_more_claims_nothing)
{
    pass(2); /* they have not waited for long enough */
    ck_assert_uint_eq(n_tried, 0);
    n_terms = 0;
    term_until = 1;
    pass(1);
    ck_assert_uint_eq(n_claims(), 0);
    ck_assert_uint_gt(n_tried, 0);
}
END_TEST

/* --- claims ----------------------------------------------------------------------------------- */

/* After ten minutes; then nobody gives back for it for a minute, and after that for two. */
START_TEST(a_claim_that_lapses_waits_longer_each_time)
{
    int64_t since_ms[3];

    let_one_want();
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_LATER;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 1000 && n_claims() == 0; j++)
            pass(1);
        ck_assert_uint_eq(n_claims(), 1);
        since_ms[i] = moment.now_ms;
        for (int j = 0; j < 1000 && n_claims() == 1; j++)
            pass(1);
        ck_assert_int_eq((moment.now_ms - since_ms[i]) / SECOND_MS, CLAIM_MS / SECOND_MS);
    }
    ck_assert_int_ge(since_ms[1] - since_ms[0], CLAIM_MS + 60 * SECOND_MS);
    ck_assert_int_lt(since_ms[1] - since_ms[0], CLAIM_MS + 70 * SECOND_MS);
    ck_assert_int_ge(since_ms[2] - since_ms[1], CLAIM_MS + 120 * SECOND_MS);
    ck_assert_int_lt(since_ms[2] - since_ms[1], CLAIM_MS + 130 * SECOND_MS);
}
END_TEST

START_TEST(a_claim_ends_when_its_pod_has_come)
{
    let_one_want();
    pass(6);
    ck_assert_uint_eq(n_evicted, 1);
    ck_assert(lenders[3].ending);
    lenders[3].gone = come[0] = true;
    const uint64_t before = metrics_counted(COUNTER_RECLAIMS, RECLAIM_RESULT_BOUND);
    pass(1);
    ck_assert_uint_eq(n_claims(), 0);
    ck_assert_uint_eq(metrics_counted(COUNTER_RECLAIMS, RECLAIM_RESULT_BOUND), before + 1);
    /* For whoever takes over within the minute. */
    ck_assert_ptr_nonnull(strstr(claims, "\"for\":\"over b0\""));
    ck_assert_ptr_nonnull(strstr(claims, "\"ends\":[\"a3\"]"));
    pass(62);
    ck_assert_ptr_null(claims);
}
END_TEST

/* What one of a group does not get, none of it gets: that it would take would not help. */
START_TEST(claims_of_a_group_end_together)
{
    want_together();
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_LATER;
    for (int i = 0; i < 30 && n_claims() == 0; i++)
        pass(1);
    ck_assert_uint_eq(n_claims(), WANTING);
    lenders[LENDERS - 1].annotations = ",\"karpenter.sh/do-not-disrupt\":\"true\"";
    for (int i = 0; i < 10 && n_claims() == WANTING; i++)
        pass(1);
    ck_assert_uint_eq(n_claims(), 0);
    ck_assert_uint_eq(n_evicted, 0);
}
END_TEST

/* So many seconds until somebody ends. */
static int await_eviction(void)
{
    const unsigned before = n_evicted;
    int seconds = 0;

    for (; seconds < 20000 && n_evicted == before; seconds++)
        pass(1);
    ck_assert_uint_eq(n_evicted, before + 1);
    return seconds;
}

static void forget_wanting(void)
{
    g_autofree char *uid = g_strdup_printf("b%d", first_wanting);

    store_delete_pod(known, uid);
    first_wanting = n_wanting;
}

/* The pod for which one has ended goes before it comes, and who has ended is made again. */
static void go_in_vain(void)
{
    lenders[3].gone = true;
    pass(1);
    forget_wanting();
    pass(2);
    ck_assert_uint_eq(n_claims(), 0);
    lenders[3] = (struct lender){.kind = "ReplicaSet"};
}

static void let_another_want(void)
{
    n_wanting = first_wanting + 1;
}

static void set_evictions(enum eviction outcome)
{
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = outcome;
}

static void await_claims(guint n)
{
    for (int i = 0; i < 2000 && n_claims() != n; i++)
        pass(1);
    ck_assert_uint_eq(n_claims(), n);
}

/* Until then a budget keeps the pod that is to give back. */
START_TEST(nobody_ends_for_a_pod_that_is_being_deleted)
{
    let_one_want();
    set_evictions(EVICTION_LATER);
    await_claims(1);
    deleted = true;
    set_evictions(EVICTION_DONE);
    pass(10);
    ck_assert_uint_eq(n_evicted, 0);
    ck_assert_uint_eq(n_claims(), 0);
}
END_TEST

/* Whose eviction was made: after a lapse it is another one than before. */
static bool end_one(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(lenders); i++) {
        if (lenders[i].ending)
            return lenders[i].gone = true;
    }
    ck_abort_msg("no pod ends");
}

/* A pod of the same controller has come meanwhile, so the next one begins anew. */
START_TEST(a_claim_that_has_served_ends_the_pauses)
{
    let_one_want();
    set_evictions(EVICTION_LATER);
    await_claims(1);
    await_claims(0); /* lapsed */
    set_evictions(EVICTION_DONE);
    for (int i = 0; i < 200 && n_evicted == 0; i++)
        pass(1);
    come[0] = end_one();
    await_claims(0);
    n_wanting = 2;
    set_evictions(EVICTION_LATER);
    await_claims(1);
    await_claims(0);
    pass(80); /* not two minutes */
    ck_assert_uint_eq(n_claims(), 1);
}
END_TEST

/* Nobody has ended for the first, and the second has another UID. */
START_TEST(a_pod_that_is_made_anew_waits_as_long)
{
    let_one_want();
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_LATER;
    pass(10);
    ck_assert_uint_eq(n_claims(), 1);
    while (n_claims() == 1)
        pass(1);
    forget_wanting();
    let_another_want();
    pass(30);
    ck_assert_uint_eq(n_claims(), 0);
    pass(40);
    ck_assert_uint_eq(n_claims(), 1);
}
END_TEST

/* Whatever its pods are called: who makes another one each time gets less each time. */
START_TEST(a_namespace_whose_pods_do_not_come_waits_longer_each_time)
{
    let_one_want();
    await_eviction();
    for (int i = 0, pause = 60; i < 4; i++, pause *= 2) {
        go_in_vain();
        let_another_want();
        const int waited = await_eviction();
        ck_assert_int_ge(waited, pause - 5);
        ck_assert_int_le(waited, pause + 5);
    }
    /* One that comes is trusted again. */
    lenders[3].gone = true;
    come[first_wanting] = true;
    pass(1);
    come[first_wanting] = false;
    forget_wanting();
    lenders[3] = (struct lender){.kind = "ReplicaSet"};
    let_another_want();
    ck_assert_int_lt(await_eviction(), 120);
}
END_TEST

/* Whoever takes over, or begins anew. */
START_TEST(a_pause_outlasts_who_has_begun_it)
{
    let_one_want();
    await_eviction();
    go_in_vain();
    g_clear_pointer(&reclaimer, reclaimer_free);
    let_another_want();
    ck_assert_int_ge(await_eviction(), 50);
}
END_TEST

/* What does not fit is not claimed. */
START_TEST(claims_of_a_namespace_are_so_many_at_most)
{
    const char *const none[] = {"gone", NULL};

    let_one_want();
    for (int i = 0; i < CLAIM_SHEET_NAMESPACE_MAX; i++) {
        g_autofree char *uid = g_strdup_printf("over %d", i), *node = g_strdup_printf("m%d", i);
        struct room_claim *claim = claim_new(uid, moment.now_ns / 1000000000, 0, none);
        claim->ns = g_strdup(i == 0 && _i == 1 ? "c" : "b");
        fake_claims_put(node, claim);
    }
    for (int i = 0; i < LENDERS; i++)
        lenders[i].evicted = EVICTION_LATER;
    fake_claims.n_writes = 0;
    pass(10);
    g_autofree char *why = store_claims_trouble(known);
    ck_assert_ptr_null(why); /* nor is written what could not be read */
    ck_assert_uint_eq(n_claims(), _i);
    ck_assert_uint_eq(fake_claims.n_writes, _i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reclaim_evictions");
    TCase *tests = tcase_create("evictions");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, who_may_not_end_is_never_evicted, 0, G_N_ELEMENTS(candidates));
    tcase_add_loop_test(tests, who_cannot_end_is_passed_over, 0, 4 * LENDERS);
    tcase_add_test(tests, somebody_else_ends_for_whom_stays);
    tcase_add_loop_test(tests, it_is_asked_again_right_before, 0, G_N_ELEMENTS(changes));
    tcase_add_test(tests, it_is_asked_again_after_the_pod_was_read);
    tcase_add_loop_test(tests, who_has_gone_meanwhile_is_not_evicted, 0, 3);
    tcase_add_test(tests, so_many_are_on_their_way_out_at_once);
    tcase_add_test(tests, so_many_end_within_a_minute);
    tcase_add_loop_test(tests, what_would_take_too_long_is_not_begun, 0, G_N_ELEMENTS(slow));
    tcase_add_test(tests, what_ends_for_others_takes_its_time);
    tcase_add_test(tests, where_a_budget_keeps_one_nobody_begins);
    tcase_add_loop_test(tests, an_unknown_outcome_counts, 0, 3);
    tcase_add_test(tests, nobody_gives_back_before_the_pod_has_waited);
    tcase_add_loop_test(tests, for_pods_of_other_schedulers_nobody_gives_back, 0, 2);
    tcase_add_test(tests, the_most_important_pod_comes_first);
    tcase_add_test(tests, whom_nobody_has_evicted_does_not_count);
    tcase_add_loop_test(tests, each_eviction_is_of_the_term_in_which_it_looked, 0, 4);
    tcase_add_test(tests, who_serves_no_more_claims_nothing);
    tcase_add_test(tests, a_claim_that_lapses_waits_longer_each_time);
    tcase_add_test(tests, nobody_ends_for_a_pod_that_is_being_deleted);
    tcase_add_test(tests, a_claim_ends_when_its_pod_has_come);
    tcase_add_test(tests, claims_of_a_group_end_together);
    tcase_add_test(tests, a_pause_outlasts_who_has_begun_it);
    tcase_add_loop_test(tests, claims_of_a_namespace_are_so_many_at_most, 0, 2);
    tcase_add_test(tests, a_namespace_whose_pods_do_not_come_waits_longer_each_time);
    tcase_add_test(tests, a_pod_that_is_made_anew_waits_as_long);
    tcase_add_test(tests, a_claim_that_has_served_ends_the_pauses);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
