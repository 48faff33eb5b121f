/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rule that may keep a pod from a node, and what each caller says where that rule alone objects. A cell
 * that is wrong says what it should be; whoever mends it moves that text to the answers.
 *
 * simulate has no column: it sends filter, prioritize and bind the bodies that kube-scheduler sends
 * (simulate/scheduler_cycle.h).
 */
#include "suite.h"

#include "counting.h"
#include "explain/fit.h"
#include "objecting_cluster.h"
#include "core/reason/reasons.h"
#include "gate/gate.h"

#define T4 "GPU-a,10,10240,100,NVIDIA-T4,0,true:GPU-b,10,10240,100,NVIDIA-T4,0,true:"
#define HAMI_NODE "'" REGISTER "':'" T4 "'"
#define GPUMEM_QUOTA                                                                               \
    "{'metadata':{'name':'q','namespace':'ml'},'spec':{'hard':{'limits.nvidia.com/"                \
    "gpumem':'5000'}}}"
#define SILENT                                                                                     \
    HAMI_NODE                                                                                      \
    ",'hami.io/node-handshake':'Reported 2026-01-05 11:00:00.000000001 +0000 UTC m=+7.5'"

/*
 * Who asks about ml/hi and n1, which has two cards of 10; card 1 is taken by a more important pod. The first ones
 * find card 0 free. The last three find it taken by low/low0, which is less important.
 */
enum asker {
    FILTER,     /* the reason's code, with a + if ends on the node could help; "": it passes */
    PRIORITIZE, /* "scored", or "left out" */
    BIND,       /* the reason's code, or "" */
    WAKE,       /* "woken", or "asleep" */
    EXPLAIN,    /* the reason's code, or "barrier" */
    FIT,        /* of one pod like it: the reason's code, or "" */
    PLACES,     /* of two in its place that come together: what filter says of the first */
    ARRIVALS,   /* it is older, and web/young asks for as much: what filter says of that */
    PREEMPT, /* whom it ends, and what filter says of the pod then, which is not nominated; or "nobody" */
    PREVIEW, /* whom preempt would end; or "nobody" */
    RECLAIM, /* whose room it takes back; or "nobody" */
    ASKER_N
};

struct row {
    const char *rule;
    const char *mem;                         /* that the pod asks for; NULL: 6 */
    const char *annotations, *labels, *spec; /* of the node */
    const char *own;                         /* annotations of the pod */
    const char *config, *resource_quota, *max;
    bool hami;
    void (*arrange)(void);
    const char *says[ASKER_N];
    const char *should[ASKER_N]; /* where `says` is wrong; else NULL */
};

/* --- the cluster ----------------------------------------------------------------------------- */

/* As add_pod; in HAMi's words where the row says so. */
static void put(const struct row *row, struct said_pod pod)
{
    g_autofree char *limits = NULL, *words = NULL;

    if (row->hami) {
        limits =
            g_strdup_printf("'nvidia.com/gpu':'1','nvidia.com/gpumem':'%d'", atoi(pod.mem) * 1000);
        words = g_strdup_printf("'hami.io/vgpu-node':'n1','hami.io/bind-phase':'success',"
                                "'hami.io/vgpu-devices-allocated':'GPU-%s,NVIDIA,%d000,0:;'",
                                g_strcmp0(pod.card, "0") == 0 ? "a" : "b", atoi(pod.mem));
        pod.limits = limits;
        pod.annotations = pod.node ? words : pod.annotations;
        pod.card = pod.mem = NULL;
    }
    add_pod(pod);
}

static const struct row *now; /* whose cluster it is */

static const char *wanted(void)
{
    return now->mem ? now->mem : "6";
}

static void begin_row(const struct row *row)
{
    now = row;
    begin_objecting();
    add_node((struct said_node){"n1", row->labels, row->annotations, row->spec,
                                row->hami ? "'nvidia.com/gpu':'2'" : NULL});
    put(row, (struct said_pod){"guard", "low", .node = "n1", .card = "1", .mem = "10",
                               .priority = 5 * PRIORITY});
    if (row->config)
        feed(FEED_CONFIGMAPS, false, "%s", row->config);
    if (row->resource_quota)
        feed(FEED_RESOURCE_QUOTAS, false, "%s", row->resource_quota);
    if (row->max)
        feed(FEED_ELASTIC_QUOTAS, false,
             "{'metadata':{'name':'q','namespace':'ml'},'spec':{'max':"
             "{'gpuledger.io/gpus':'%s'}}}",
             row->max);
}

static void arrange(void)
{
    if (now->arrange)
        now->arrange();
}

static void put_low(void)
{
    put(now, (struct said_pod){"low0", "low", .node = "n1", .card = "0", .mem = wanted()});
}

static void put_pending(const char *ns, const char *name)
{
    put(now, (struct said_pod){name, ns, .mem = wanted(), .priority = PRIORITY,
                               .annotations = g_str_equal(ns, "ml") ? now->own : NULL});
}

/* --- answers ------------------------------------------------------------------------------------ */

/* The reason that the text has, or "". */
static const char *code_in(const char *text)
{
    for (int reason = REASON_NONE + 1; reason < (int)reasons_count(); reason++) {
        if (strstr(text, reason_info((enum reason)reason)->text))
            return reason_info((enum reason)reason)->code;
    }
    return "";
}

static char *filter(const char *key)
{
    g_autoptr(GString) reply = filter_reply(key, "'n1'");
    const bool passes = strstr(reply->str, "\"NodeNames\":[\"n1\"]");
    const bool helps = strstr(reply->str, "\"FailedNodes\":{\"n1\"");

    ck_assert_msg(passes || *code_in(reply->str), "%s", reply->str);
    return g_strconcat(passes ? "" : code_in(reply->str), helps ? "+" : "", NULL);
}

static char *prioritize(void)
{
    g_autofree char *body = g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[\"n1\"]}",
                                            (const char *)g_hash_table_lookup(pods, "ml/hi"));
    g_autoptr(GString) reply = g_string_new(NULL);

    ck_assert(extender_prioritize(&extender, PRIORITIZE_ALL, body, strlen(body), reply, NULL));
    return g_strdup(strstr(reply->str, "n1") ? "scored" : "left out");
}

static char *bind(void)
{
    static const char body[] = "{\"PodName\":\"hi\",\"PodNamespace\":\"ml\",\"PodUID\":\"ml/hi\","
                               "\"Node\":\"n1\"}";
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_bind(&extender, body, strlen(body), reply);
    ck_assert_msg(*code_in(reply->str) || strstr(reply->str, "\"Error\":\"\""), "%s", reply->str);
    return g_strdup(code_in(reply->str));
}

static char *wake(void)
{
    struct wake *wake = wake_new();

    wake_note_refusal(wake, &(struct pod_view){.ns = "ml", .name = "hi", .uid = "ml/hi"}, 0);
    clock_skip_ms(2 * SECOND_MS);
    const unsigned n = wake_run(wake, told, &writable);
    wake_free(wake);
    return g_strdup(n ? "woken" : "asleep");
}

static char *explain_it(void)
{
    g_autoptr(explanation) explanation = explain("ml/hi");
    const struct explained_node *node = explained(explanation, "n1");

    return g_strdup(node->barrier != BARRIER_NONE ? "barrier"
                    : node->reason == REASON_NONE ? ""
                                                  : reason_info(node->reason)->code);
}

static char *fit_it(void)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    static const char *const none[] = {NULL};
    struct pod_view view;

    read_pod(arena, g_hash_table_lookup(pods, "ml/hi"), &view);
    view.uid = NULL;
    g_autoptr(fit) fit = fit_find(
        &(struct fit_query){
            .store = told, .cluster = &writable, .pod = &view, .replicas = 1, .drain = none},
        &error);
    ck_assert_msg(fit, "%s", error ? error->message : "");
    if (fit->fitting > 0 || !fit->rest)
        return g_strdup("");
    const struct explained_node *node = explained(fit->rest, "n1");
    return g_strdup(node->barrier != BARRIER_NONE ? "barrier" : reason_info(node->reason)->code);
}

static char *places(void)
{
    g_autofree char *half = g_strdup_printf("%d", atoi(wanted()) / 2);

    for (int i = 0; i < 2; i++) {
        g_autofree char *name = g_strdup_printf("m-%d", i);
        put(now, (struct said_pod){name, "ml", .mem = half, .priority = PRIORITY,
                                   .annotations = OF("m", "2")});
    }
    return filter("ml/m-0");
}

static char *arrivals(void)
{
    g_free(filter("ml/hi"));

    put_pending("web", "young");
    return filter("web/young");
}

static char *preempt(void)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":%s,\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"low/low0\"}]}}}",
        (const char *)g_hash_table_lookup(pods, "ml/hi"));
    g_autoptr(GString) reply = g_string_new(NULL);

    ck_assert(extender_preempt(&extender, body, strlen(body), reply, NULL));
    if (!strstr(reply->str, "low/low0"))
        return g_strdup("nobody");
    store_delete_pod(told, "low/low0");
    g_autofree char *then = filter("ml/hi");
    return g_strdup_printf("low0%s%s", *then ? ", " : "", then);
}

static char *preview(void)
{
    g_autoptr(explanation) explanation = explain("ml/hi");
    const struct preview *preview = explanation->preview;

    if (!preview || !preview->node)
        return g_strdup("nobody");
    return g_strdup(g_array_index(preview->pods, struct evicted_pod, 0).name);
}

static char *reclaim(void)
{
    struct reclaim_pod pod;
    struct pod_view view;

    feed(
        FEED_ELASTIC_QUOTAS, false,
        "{'metadata':{'name':'q','namespace':'ml'},'spec':{'min':{'gpuledger.io/gpus':'2'}%s%s%s}}",
        now->max ? ",'max':{'gpuledger.io/gpus':'" : "", now->max ? now->max : "",
        now->max ? "'}" : "");
    feed(FEED_ELASTIC_QUOTAS, false,
         "{'metadata':{'name':'q','namespace':'low'},'spec':{'min':{'gpuledger.io/gpus':'0'}}}");
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    if (!reclaim_ground_pod(ground, "ml/hi", &view, &pod))
        return g_strdup("nobody");
    g_autoptr(reclaim_plan) plan = reclaim_plan_make(ground, &pod, 1);
    if (plan->answer != RECLAIM_FOUND)
        return g_strdup("nobody");
    return g_strdup(g_array_index(plan->ends, struct reclaim_end, 0).name);
}

static char *filter_it(void)
{
    return filter("ml/hi");
}

static const struct {
    const char *name;
    char *(*ask)(void);
    bool full; /* card 0 is taken */
} askers[ASKER_N] = {
    [FILTER] = {"filter", filter_it},
    [PRIORITIZE] = {"prioritize", prioritize},
    [BIND] = {"bind", bind},
    [WAKE] = {"wake", wake},
    [EXPLAIN] = {"explain", explain_it},
    [FIT] = {"fit", fit_it},
    [PLACES] = {"places", places},
    [ARRIVALS] = {"arrivals", arrivals},
    [PREEMPT] = {"preempt", preempt, .full = true},
    [PREVIEW] = {"preview", preview, .full = true},
    [RECLAIM] = {"reclaim", reclaim, .full = true},
};

/* --- rules --------------------------------------------------------------------------------------- */

static void reject_on_node(void)
{
    reject_three("n1", NODE_FAILS);
}

static void reject_on_card(void)
{
    reject_three("n1", CARD_FAILS);
}

static void lose_five_seals(void)
{
    lose_seals("n1", "ml", UNSEALED);
}

static void nominate_other(void)
{
    add_pod((struct said_pod){"other", "web", .mem = "10", .priority = 5 * PRIORITY,
                              .status = "'nominatedNodeName':'n1',"});
}

static void come_first(void)
{
    put_pending("web", "elder");
    g_free(filter("web/elder"));
}

static void keep_for_group(void)
{
    await_group("'n1'");
}

static const struct row rows[] = {
    {.rule = "none",
     .says = {"", "scored", "", "woken", "", "", "", "earlier_pod", "low0", "low0", "low0"}},
    {.rule = "none, HAMi",
     .hami = true,
     .annotations = HAMI_NODE,
     .says = {"", "scored", "", "woken", "", "", "", "earlier_pod", "low0", "low0", "low0"}},
    {.rule = "nominated pod",
     .arrange = nominate_other,
     .says = {"insufficient_memory+", "left out", "insufficient_memory", "asleep",
              "insufficient_memory", "insufficient_memory", "gang_no_room", "insufficient_memory+",
              "nobody", "nobody", "nobody"}},
    {.rule = "room kept by a plan",
     .annotations = ROOM_ON_CARD_0,
     .says = {"insufficient_memory+", "left out", "insufficient_memory", "asleep",
              "insufficient_memory", "insufficient_memory", "gang_no_room", "insufficient_memory+",
              "nobody", "nobody", "guard"}},
    {.rule = "rejects, node",
     .arrange = reject_on_node,
     .says = {"rejecting", "left out", "rejecting", "asleep", "rejecting", "rejecting",
              "gang_no_room", "", "nobody", "nobody", "nobody"}},
    {.rule = "rejects, card",
     .arrange = reject_on_card,
     .says = {"rejecting", "left out", "rejecting", "asleep", "rejecting", "rejecting",
              "gang_no_room", "earlier_pod", "nobody", "nobody", "guard"},
     .should = {[ARRIVALS] = ""}},
    {.rule = "unsealed",
     .mem = "5",
     .arrange = lose_five_seals,
     .says = {"unsealed", "left out", "unsealed", "asleep", "unsealed", "unsealed", "gang_no_room",
              "", "nobody", "nobody", "nobody"}},
    {.rule = "mode switch, ahead",
     .annotations = SWITCH_AHEAD,
     .says = {"mode_switch_ahead", "left out", "mode_switch_ahead", "asleep", "mode_switch_ahead",
              "mode_switch_ahead", "gang_no_room", "mode_switch_ahead", "nobody", "nobody",
              "nobody"}},
    {.rule = "mode switch, now",
     .annotations = "'gpuledger.io/switch-state':'drain'",
     .says = {"mode_switch_ahead", "left out", "mode_switch_ahead", "asleep", "mode_switch_ahead",
              "mode_switch_ahead", "gang_no_room", "mode_switch_ahead", "nobody", "nobody",
              "nobody"}},
    {.rule = "model quota",
     .labels = "'model':'T4'",
     .config = CONFIG("\\\"A100\\\":1"),
     .says = {"quota", "left out", "quota", "asleep", "quota", "quota", "gang_no_room",
              "earlier_pod", "nobody", "nobody", "nobody"},
     .should = {[ARRIVALS] = ""}},
    {.rule = "ResourceQuota",
     .hami = true,
     .annotations = HAMI_NODE,
     .resource_quota = GPUMEM_QUOTA,
     .says = {"resource_quota", "left out", "resource_quota", "asleep", "resource_quota",
              "resource_quota", "gang_no_room", "earlier_pod", "nobody", "nobody", "nobody"},
     .should = {[ARRIVALS] = ""}},
    {.rule = "elastic quota",
     .max = "500m",
     .says = {"quota_max", "left out", "quota_max", "asleep", "quota_max", "quota_max",
              "gang_no_room", "earlier_pod", "nobody", "nobody", "nobody"},
     .should = {[ARRIVALS] = ""}},
    {.rule = "order of arrival",
     .arrange = come_first,
     .says = {"earlier_pod", "left out", "earlier_pod", "woken", "earlier_pod", "earlier_pod",
              "gang_no_room", "earlier_pod", "low0, earlier_pod", "low0", "low0"}},
    {.rule = "room kept for a group",
     .arrange = keep_for_group,
     .says = {"gang_room", "left out", "gang_room", "asleep", "gang_room", "gang_room",
              "gang_no_room", "gang_room", "nobody", "nobody", "nobody"}},
    {.rule = "group that is not there",
     .own = OF("g", "3"),
     .says = {"gang_few", "scored", "gang_lost", "asleep", "gang_few", "", "", "", "nobody",
              "nobody", "low0"}},
    {.rule = "silent device plugin",
     .hami = true,
     .annotations = SILENT,
     .says = {"plugin_silent", "left out", "plugin_silent", "asleep", "plugin_silent",
              "plugin_silent", "gang_no_room", "plugin_silent", "nobody", "nobody", "nobody"}},
    {.rule = "cordoned node",
     .spec = "'unschedulable':true",
     .says = {"", "scored", "", "woken", "barrier", "barrier", "gang_no_room", "earlier_pod",
              "low0", "nobody", "nobody"}},
    {.rule = "cordoned card",
     .annotations = "'gpuledger.io/cordoned-cards':'0'",
     .says = {"insufficient_memory+", "left out", "insufficient_memory", "asleep",
              "insufficient_memory", "insufficient_memory", "gang_no_room", "insufficient_memory+",
              "nobody", "nobody", "guard"}},
};

START_TEST(what_each_caller_says)
{
    const struct row *row = &rows[_i];
    g_autoptr(GString) wrong = g_string_new(NULL);

    for (int asker = 0; asker < ASKER_N; asker++) {
        begin_row(row);
        if (askers[asker].full)
            put_low();
        arrange();
        put_pending("ml", "hi");
        g_autofree char *answer = askers[asker].ask();
        if (g_strcmp0(answer, row->says[asker]) != 0)
            g_string_append_printf(wrong, "\n  %s: \"%s\", not \"%s\"", askers[asker].name, answer,
                                   row->says[asker] ? row->says[asker] : "(null)");
        if (row->should[asker])
            ck_assert_str_ne(row->should[asker], row->says[asker]);
    }
    ck_assert_msg(wrong->len == 0, "%s:%s", row->rule, wrong->str);
    end();
}
END_TEST

/* Both nodes are full, and n0 would be chosen by its name. */
START_TEST(no_room_is_kept_where_a_rule_keeps_the_group_away)
{
    begin_objecting();
    for (int node = 0; node < 2; node++) {
        g_autofree char *name = g_strdup_printf("n%d", node);
        add_node((struct said_node){name, .annotations = _i == node ? SWITCH_AHEAD : NULL});
        for (int card = 0; card < 2; card++) {
            g_autofree char *holder = g_strdup_printf("holder-%d-%d", node, card);
            hold(holder, name, card ? "1" : "0", "10");
        }
    }
    await_group("'n0','n1'");
    add_pod((struct said_pod){"small", .mem = "1", .spec = "'activeDeadlineSeconds':60,",
                              .annotations = "'gpuledger.io/max-duration':'1m'"});
    for (int node = 0; node < 2; node++) {
        g_autofree char *holder = g_strdup_printf("ml/holder-%d-0", node);
        store_delete_pod(told, holder);
    }
    g_autoptr(GString) reply = filter_reply("ml/small", "'n0','n1'");
    ck_assert_msg(strstr(reply->str, _i == 0 ? "\"NodeNames\":[\"n0\"]" : "\"NodeNames\":[\"n1\"]"),
                  "%s", reply->str);
    ck_assert_str_eq(code_in(reply->str), "gang_room");
    end();
}
END_TEST

/* Of several that object the first one's reason is said. */
START_TEST(gates_are_asked_in_this_order)
{
    g_autoptr(GString) names = g_string_new(NULL);

    for (size_t i = 0; gates_table[i]; i++)
        g_string_append_printf(names, "%s ", gates_table[i]->name);
    ck_assert_str_eq(
        names->str,
        "unsealed mode_switch node_backoff quotas gang_room counting counting_left_out ");
}
END_TEST

#define BY(asker) (1U << GATE_BY_##asker)

/* Which of enum gate_asker each caller here is, and those that it calls itself. */
static const unsigned asks_as[ASKER_N] = {
    [FILTER] = BY(FILTER),
    [PRIORITIZE] = BY(PRIORITIZE),
    [BIND] = BY(BIND),
    [WAKE] = BY(WAKE),
    [EXPLAIN] = BY(EXPLAIN) | BY(TRIAL),
    [FIT] = BY(FIT),
    [PLACES] = BY(PLACES),
    [ARRIVALS] = BY(FILTER) | BY(ARRIVALS),
    [PREEMPT] = BY(PREEMPT) | BY(FILTER),
    [PREVIEW] = BY(EXPLAIN) | BY(PREVIEW) | BY(TRIAL),
    [RECLAIM] = BY(RECLAIM) | BY(TRIAL),
};

/* Each gate is asked by all that its row does not leave out, and by no others. */
START_TEST(callers_ask_the_gates_whose_rows_say_so)
{
    unsigned by = 0;

    begin_row(&rows[0]);
    if (askers[_i].full)
        put_low();
    put_pending("ml", "hi");
    memset(counted_asked, 0, sizeof counted_asked);
    g_free(askers[_i].ask());
    for (int asker = 0; asker < GATE_ASKERS_N; asker++) {
        by |= counted_asked[asker] > 0 ? 1U << asker : 0;
        ck_assert_uint_eq(counted_left_out[asker], 0);
    }
    ck_assert_msg(by == asks_as[_i], "%s: %x, not %x", askers[_i].name, by, asks_as[_i]);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gates_net");
    TCase *tests = tcase_create("gates_net");

    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_loop_test(tests, what_each_caller_says, 0, G_N_ELEMENTS(rows));
    tcase_add_loop_test(tests, no_room_is_kept_where_a_rule_keeps_the_group_away, 0, 2);
    tcase_add_loop_test(tests, callers_ask_the_gates_whose_rows_say_so, 0, ASKER_N);
    tcase_add_test(tests, gates_are_asked_in_this_order);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
