/* SPDX-License-Identifier: Apache-2.0 */
/* preempt beside elastic quotas: a pod that borrows ends no pod whose namespace is within its min, so that preemption
 * and reclaim do not undo each other without end. */
#include "suite.h"

#include "explained_cluster.h"
#include "base/log.h"
#include "explain/reclaim/reclaim_plan.h"
#include "verbs/extender.h"

#define NOW_NS (INT64_C(1767614400) * 1000000000) /* 2026-01-05 12:00 UTC */
#define PRIORITY 100

static struct extender extender;
static struct moment moment;

static void setup_quotas(void)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    moment = (struct moment){.now_ns = NOW_NS, .now_ms = 100000};
    begin_with((struct store_options){.elastic_quotas = true,
                                      .reclaim = true,
                                      .reclaim_uncontrolled = true,
                                      .tree_namespaces = "quotas"});
    extender = (struct extender){.store = told, .bind_timeout_ms = 3000};
    store_set_moment(told, &moment);
}

/* --- pods and quotas ------------------------------------------------------------------------------ */

#define CPUS(n) "{'name':'main','resources':{'limits':{'" MEM "':'10','cpu':'" n "'}}}"
#define HOLDER(of_ns, called, on, at, ...)                                                         \
    {called, of_ns, .node = on, .card = at, .mem = "10", .containers = CPUS("1"), __VA_ARGS__}
#define ENDING "'deletionTimestamp':'2026-01-02T00:00:00Z',"
#define KEEPS_AWAY "'affinity':{'podAntiAffinity':{}},"
#define A_VOLUME "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'v'}}],"

static void set_min(const char *ns, const char *min)
{
    feed(FEED_ELASTIC_QUOTAS, false,
         "{'metadata':{'name':'q','namespace':'%s'},'spec':{'min':{'gpuledger.io/gpus':'%s'},"
         "'max':{'gpuledger.io/gpus':'9'}}}",
         ns, min);
}

/* --- one call ------------------------------------------------------------------------------------- */

#define NODE(...) "'n1':{'Pods':[" __VA_ARGS__ "],'NumPDBViolations':0}"
#define UID(uid) "{'UID':'" uid "'}"

static char *preempt(const char *ns, const char *name, const char *nodes, const char *spec)
{
    g_autoptr(GError) error = NULL;
    GString *reply = g_string_new(NULL);
    g_autofree char *text = g_strdup_printf(
        "{'Pod':{'metadata':{'name':'%s','namespace':'%s','uid':'%s/%s'},'spec':{%s'priority':%d,"
        "'containers':[" CPUS("2") "]}},'NodeNameToMetaVictims':{%s}}",
        name, ns, ns, name, spec, PRIORITY, nodes);
    g_autofree char *body = json_of(text);

    ck_assert_msg(extender_preempt(&extender, body, strlen(body), reply, &error), "%s",
                  error ? error->message : "");
    return g_string_free(reply, FALSE);
}

#define WEB(n, on, ...) HOLDER("web", "web" n, "n1", on, __VA_ARGS__)
#define WEB_LARGE {"web1", "web", .node = "n1", .card = "0", .mem = "10", .containers = CPUS("3")}
#define HALF(n) {"web" n, "web", .node = "n1", .card = "0", .mem = "5"}
#define DEV HOLDER("dev", "d", "n1", "1", .priority = 5)
#define ELSEWHERE HOLDER("ml", "ml1", "n2", "0", .priority = 1000)
#define NOTHING_ENDS                                                                               \
    "it would have more than its namespace is sure of, and so ends no pod of a namespace that "    \
    "would then have less than its own min"

/* Namespace ml asks for one card on n1, beside the one that it has on n2; web and dev hold what is there. */
static const struct row {
    const char *ml, *web, *dev; /* mins */
    struct said_pod holders[5];
    const char *spec, *named, *answer;
} rows[] = {
    /* ml borrows, web is within its min. */
    {"1", "2", "3", {ELSEWHERE, WEB("1", "0"), WEB("2", "1")}, "", NODE(), ""},
    {"1", "2", "3", {ELSEWHERE, WEB("1", "0"), WEB("2", "1")}, "", NODE(UID("web/web1")), ""},
    /* web has borrowed, too. */
    {"1",
     "0",
     "5",
     {ELSEWHERE, WEB("1", "0"), WEB("2", "1", .priority = 2)},
     "",
     NODE(),
     NODE(UID("web/web1"))},
    /* ml is within its min, and priority decides. */
    {"2",
     "2",
     "2",
     {ELSEWHERE, WEB("1", "0"), WEB("2", "1")},
     "",
     NODE(UID("web/web1")),
     NODE(UID("web/web1"))},
    /* web has borrowed one card and not two: its least important pod ends, whomever kube-scheduler names. */
    {"1",
     "1",
     "4",
     {ELSEWHERE, WEB("1", "0", .priority = 2), WEB("2", "1")},
     "",
     NODE(UID("web/web1")),
     NODE(UID("web/web2"))},
    /* It is ending already. */
    {"1",
     "1",
     "4",
     {ELSEWHERE, HOLDER("web", "web1", "n2", "1", .meta = ENDING), WEB("2", "1"),
      HOLDER("ml", "ml2", "n1", "0", .priority = 1000)},
     "",
     NODE(),
     ""},
    {"1",
     "1",
     "4",
     {ELSEWHERE, HOLDER("web", "web1", "n2", "1"), WEB("2", "1"),
      HOLDER("ml", "ml2", "n1", "0", .priority = 1000)},
     "",
     NODE(),
     NODE(UID("web/web2"))},
    /* Half a card more than the min is less than a pod has. */
    {"1", "1500m", "4", {ELSEWHERE, WEB("1", "0"), WEB("2", "1")}, "", NODE(), ""},
    /* That is what each of two pods has that the card would take. */
    {"1",
     "1500m",
     "4",
     {ELSEWHERE, HALF("1"), HALF("2"), WEB("3", "1", .priority = 1000)},
     "",
     NODE(),
     ""},
    /* Its own pods may always end. */
    {"1",
     "2",
     "3",
     {WEB("1", "0"), HOLDER("ml", "ml2", "n1", "1", .priority = 50)},
     "",
     NODE(),
     NODE(UID("ml/ml2"))},
    /* A namespace without a quota is guaranteed nothing. */
    {"1",
     "2",
     "3",
     {ELSEWHERE, WEB("1", "0"), HOLDER("other", "o", "n1", "1", .priority = 9)},
     "",
     NODE(),
     NODE(UID("other/o"))},
    /* dev has borrowed, and its pod frees as much CPU as web's, which kube-scheduler has named. */
    {"1", "1", "0", {ELSEWHERE, WEB("1", "0"), DEV}, "", NODE(UID("web/web1")), NODE(UID("dev/d"))},
    /* It frees less. */
    {"1", "1", "0", {ELSEWHERE, WEB_LARGE, DEV}, "", NODE(UID("web/web1")), ""},
    /* Why kube-scheduler named web's pod is not known. */
    {"1", "1", "0", {ELSEWHERE, WEB("1", "0"), DEV}, A_VOLUME, NODE(UID("web/web1")), ""},
    {"1",
     "1",
     "0",
     {ELSEWHERE, WEB("1", "0", .spec = KEEPS_AWAY), DEV},
     "",
     NODE(UID("web/web1")),
     ""},
};

static void populate(const struct row *row)
{
    add_node((struct said_node){"n1"});
    add_node((struct said_node){"n2"});
    set_min("ml", row->ml);
    set_min("web", row->web);
    set_min("dev", row->dev);
    set_min("spare", "3"); /* which no pod uses */
    for (const struct said_pod *holder = row->holders; holder->name; holder++)
        add_pod(*holder);
}

START_TEST(who_borrows_ends_nobody_within_its_min)
{
    populate(&rows[_i]);
    g_autofree char *reply = preempt("ml", "asks", rows[_i].named, rows[_i].spec);
    g_autofree char *wanted = g_strdup_printf("{'NodeNameToMetaVictims':{%s}}", rows[_i].answer);
    expect_text(g_strdelimit(reply, "\"", '\''), wanted);
}
END_TEST

/* The preview, by what kube-scheduler would name. */
START_TEST(the_preview_says_so)
{
    populate(&rows[0]);
    add_pod((struct said_pod){"p", .mem = "10", .spec = "'nodeSelector':{'at':'n1'},",
                              .priority = PRIORITY});
    add_node((struct said_node){"n1", .labels = "'at':'n1'"});
    g_autoptr(explanation) explanation = explain("ml/p");
    expect_text(explanation->preview->why, NOTHING_ENDS);
    set_min("web", "0");
    g_autoptr(explanation) later = explain("ml/p");
    expect_text(later->preview->why, NULL);
}
END_TEST

/* --- trees ---------------------------------------------------------------------------------------- */

#define TREE "quota.scheduling.koordinator.sh/"

static void grow(const char *name, const char *parent, const char *min, const char *ns)
{
    feed(FEED_ELASTIC_QUOTAS, false,
         "{'metadata':{'name':'%s','namespace':'quotas','labels':{'" TREE "parent':'%s','" TREE
         "is-parent':'%s'},'annotations':{'" TREE "namespaces':'[%s%s%s]'}},'spec':{'min':{"
         "'gpuledger.io/gpus':'%s'},'max':{'gpuledger.io/gpus':'9'}}}",
         name, parent, ns ? "false" : "true", ns ? "\\\"" : "", ns ? ns : "", ns ? "\\\"" : "",
         min);
}

/* The min of the group of ml, of ml, of the group of web, and of web, each with one card; a group may have more than
 * the sum of what stands below. */
static const struct {
    const char *group, *ml, *other_group, *web;
    bool ends;
} trees[] = {
    {"2", "1", "1", "1", true},  /* the group is sure of two, and ml borrows within it */
    {"1", "1", "1", "1", false}, /* the group borrows, and web is within its min */
    {"1", "1", "1", "0", false}, /* web borrows of its group, which is within its min */
    {"1", "1", "0", "0", true},  /* both have borrowed */
};

START_TEST(in_trees_it_counts_up_to_where_they_meet)
{
    grow("g1", "", trees[_i].group, NULL);
    grow("g2", "", trees[_i].other_group, NULL);
    grow("g3", "", "3", "spare");
    grow("l1", "g1", trees[_i].ml, "ml");
    grow("l2", "g2", trees[_i].web, "web");
    add_node((struct said_node){"n1"});
    add_node((struct said_node){"n2"});
    add_pod((struct said_pod)ELSEWHERE);
    add_pod(
        (struct said_pod){"x", "other", .node = "n1", .card = "1", .mem = "10", .priority = 1000});
    add_pod((struct said_pod)WEB("1", "0"));
    g_autofree char *reply = preempt("ml", "asks", NODE(), "");
    ck_assert_int_eq(strstr(reply, "web1") != NULL, trees[_i].ends);
}
END_TEST

/* --- constant demand ------------------------------------------------------------------------------ */

/* Every pod wants a whole card of n1, and there are two; one that ends is made again at once. */
static const char *const wanting[] = {"ml", "ml", "web", "web"};
static char *names[G_N_ELEMENTS(wanting)];
static int32_t cards[G_N_ELEMENTS(wanting)]; /* -1: it waits */
static unsigned n_made;

static void say(guint at, const char *card)
{
    const char *ns = wanting[at];

    add_pod((struct said_pod){names[at], ns, .node = card ? "n1" : NULL, .card = card, .mem = "10",
                              .containers = CPUS("2"),
                              .priority = g_str_equal(ns, "ml") ? PRIORITY : 1});
}

static void make(guint at)
{
    g_free(names[at]);
    names[at] = g_strdup_printf("p%u", n_made++);
    cards[at] = -1;
    say(at, NULL);
}

static bool end_one(const char *uid)
{
    for (guint i = 0; i < G_N_ELEMENTS(wanting); i++) {
        g_autofree char *own = g_strdup_printf("%s/%s", wanting[i], names[i]);
        if (!g_str_equal(own, uid))
            continue;
        store_delete_pod(told, uid);
        make(i);
        return true;
    }
    return false;
}

static int32_t free_card(void)
{
    int32_t card = 0;

    for (guint i = 0; i < G_N_ELEMENTS(wanting); i++)
        card = cards[i] == 0 ? 1 : card;
    return card;
}

/* Where the quotas let it and a card is free. */
static void schedule(guint at)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *text =
        g_strdup_printf("{'Pod':{'metadata':{'name':'%s','namespace':'%s','uid':'%s/"
                        "%s'},'spec':{'containers':[" CPUS("2") "]}},'NodeNames':['n1']}",
                        names[at], wanting[at], wanting[at], names[at]);
    g_autofree char *body = json_of(text);

    if (cards[at] >= 0)
        return;
    extender_filter(&extender, body, strlen(body), reply);
    if (!strstr(reply->str, "\"NodeNames\":[\"n1\"]"))
        return;
    cards[at] = free_card();
    say(at, cards[at] == 0 ? "0" : "1");
}

/* kube-scheduler ends whom the answer names. */
static unsigned preempt_for(guint at)
{
    unsigned n = 0;

    g_autofree char *reply = preempt(wanting[at], names[at], NODE(), "");
    for (const char *from = strstr(reply, "\"UID\":\""); from; from = strstr(from, "\"UID\":\"")) {
        from += strlen("\"UID\":\"");
        g_autofree char *uid = g_strndup(from, strcspn(from, "\""));
        n += end_one(uid);
    }
    return n;
}

static unsigned reclaim_for(guint at)
{
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(told, NULL, NULL);
    struct pod_view view;
    struct reclaim_pod pod;
    unsigned n = 0;

    g_autofree char *uid = g_strdup_printf("%s/%s", wanting[at], names[at]);
    if (!reclaim_ground_pod(ground, uid, &view, &pod))
        return 0;
    g_autoptr(reclaim_plan) plan = reclaim_plan_make(ground, &pod, 1);
    for (guint i = 0; i < plan->ends->len; i++)
        n += end_one(g_array_index(plan->ends, struct reclaim_end, i).uid);
    return n;
}

#define ROUNDS 40

START_TEST(with_constant_demand_ends_come_to_zero)
{
    unsigned lately = 0;

    add_node((struct said_node){"n1"});
    set_min("ml", "1");
    set_min("web", "1");
    set_min("spare", "2"); /* which nobody uses, so there is something to borrow */
    for (guint i = 0; i < G_N_ELEMENTS(wanting); i++)
        make(i);
    for (int round = 0; round < ROUNDS; round++) {
        moment.now_ms += 60000;
        moment.now_ns += INT64_C(60000000000);
        lately = 0;
        for (guint i = 0; i < G_N_ELEMENTS(wanting); i++) {
            const guint at = _i ? (guint)(G_N_ELEMENTS(wanting) - 1 - i) : i;
            schedule(at);
            if (cards[at] < 0 && g_str_equal(wanting[at], "ml"))
                lately += preempt_for(at);
            schedule(at);
            if (cards[at] < 0)
                lately += reclaim_for(at);
            schedule(at);
        }
    }
    ck_assert_uint_eq(lately, 0);
    ck_assert_int_ge(MAX(cards[0], cards[1]), 0); /* each namespace has what it is sure of */
    ck_assert_int_ge(MAX(cards[2], cards[3]), 0);
    for (guint i = 0; i < G_N_ELEMENTS(wanting); i++)
        g_clear_pointer(&names[i], g_free);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("preempt_quotas");
    TCase *tests = tcase_create("preempt_quotas");

    tcase_add_checked_fixture(tests, setup_quotas, end);
    tcase_add_loop_test(tests, who_borrows_ends_nobody_within_its_min, 0, G_N_ELEMENTS(rows));
    tcase_add_test(tests, the_preview_says_so);
    tcase_add_loop_test(tests, in_trees_it_counts_up_to_where_they_meet, 0, G_N_ELEMENTS(trees));
    tcase_add_loop_test(tests, with_constant_demand_ends_come_to_zero, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
