/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preempt verb: whose end makes room on a card, given what kube-scheduler has named.
 */
#include "fake_cluster.h"
#include "objects.h"
#include "preempting_extender.h"
#include "suite.h"

#include <pthread.h>
#include <string.h>

/* n1: 6 and 3 on card 0, 6 on card 1; all may end for whoever is more important than 5. */
static void populate(void)
{
    apply((struct pod){"a", "6", "n1", "0", .priority = 5});
    apply((struct pod){"b", "6", "n1", "1", .priority = 3});
    apply((struct pod){"c", "3", "n1", "0", .priority = 1});
}

static char *call(const char *body)
{
    g_autoptr(GError) error = NULL;
    GString *reply = g_string_new(NULL);

    if (!extender_preempt(&extender, body, strlen(body), reply, &error))
        g_string_printf(reply, "error: %s", error->message);
    return g_string_free(reply, FALSE);
}

static gint n_asked; /* atomic: pods */

/* A pod of 8 units and one CPU; `spec` is more of its spec. Each question is about a pod of its own, of which nothing is known (test_clearings.c). */
static char *body_of(int priority, const char *spec, const char *key, const char *victims)
{
    return g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"p%d\"},\"spec\":{%s"
        "\"priority\":%d,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"8\"},\"requests\":{\"cpu\":\"1\",\"" MEM "\":\"8\"}}}]}},\"%s\":%s}",
        g_atomic_int_add(&n_asked, 1) + 1, spec, priority, key, victims);
}

static void expect_with(int priority, const char *spec, const char *victims, const char *answer)
{
    g_autofree char *body = body_of(priority, spec, "NodeNameToMetaVictims", victims);
    g_autofree char *reply = call(body), *again = call(body);
    g_autofree char *expected = g_strdup_printf("{\"NodeNameToMetaVictims\":%s}", answer);

    ck_assert_str_eq(reply, expected);
    ck_assert_str_eq(again, expected);
}

static void expect(int priority, const char *victims, const char *answer)
{
    expect_with(priority, "", victims, answer);
}

#define NODE(name, violations, ...)                                                                \
    "\"" name "\":{\"Pods\":[" __VA_ARGS__ "],\"NumPDBViolations\":" violations "}"
#define UID(uid) "{\"UID\":\"" uid "\"}"

/* --- victims -------------------------------------------------------------------------------- */

START_TEST(a_card_is_freed_not_a_sum)
{
    populate();
    /* Its end makes room in sum, on no card: "b" goes instead, which frees more. */
    expect(100, "{" NODE("n1", "0", UID("c")) "}", "{" NODE("n1", "0", UID("b")) "}");
    /* Nothing was named, as kube-scheduler 1.20 does where sums suffice. */
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("b")) "}");
    expect(100, "{\"n1\":null}", "{" NODE("n1", "0", UID("b")) "}");
    expect(100, "{\"n1\":{}}", "{" NODE("n1", "0", UID("b")) "}");
    expect(100, "{\"n1\":{\"Pods\":null}}", "{" NODE("n1", "0", UID("b")) "}");
}
END_TEST

START_TEST(no_more_than_needed_and_no_more_important_ones)
{
    populate();
    expect(100, "{" NODE("n1", "0", UID("b")) "}", "{" NODE("n1", "0", UID("b")) "}");
    /* Two must go for the sake of CPU: not those two. */
    expect(100, "{" NODE("n1", "0", UID("c") "," UID("a")) "}",
           "{" NODE("n1", "0", UID("b") "," UID("c")) "}");
}
END_TEST

START_TEST(the_more_important_stay)
{
    populate();
    expect(4, "{" NODE("n1", "0", UID("c")) "}", "{" NODE("n1", "0", UID("b")) "}");
    expect(3, "{" NODE("n1", "0", UID("c")) "}", "{}"); /* "b" is as important */
    expect(1, "{" NODE("n1", "0") "}", "{}");
    /* Named all the same: kube-scheduler knows why. */
    expect(2, "{" NODE("n1", "0", UID("b")) "}", "{" NODE("n1", "0", UID("b")) "}");
}
END_TEST

START_TEST(who_is_spared_frees_no_more_than_the_others)
{
    apply((struct pod){"b", "6", "n1", "1", .priority = 3, .cpu = "500m"});
    apply((struct pod){"a", "6", "n1", "0", .priority = 5});
    apply((struct pod){"c", "3", "n1", "0", .priority = 1, .cpu = "2"});
    /* Perhaps it is CPU that is short: then the end of "b" alone does not help. */
    expect(100, "{" NODE("n1", "0", UID("c")) "}", "{" NODE("n1", "0", UID("b") "," UID("c")) "}");
}
END_TEST

/* A pod of 9 units and one CPU. */
static void expect_for_nine(const char *victims, const char *answer)
{
    g_autofree char *eight = body_of(100, "", "NodeNameToMetaVictims", victims);
    g_auto(GStrv) parts = g_strsplit(eight, "\"8\"", -1);
    g_autofree char *body = g_strjoinv("\"9\"", parts);
    g_autofree char *reply = call(body);
    g_autofree char *expected = g_strdup_printf("{\"NodeNameToMetaVictims\":%s}", answer);

    ck_assert_str_eq(reply, expected);
}

static void say_node(const char *mem, const char *cpu, const char *pods)
{
    store_apply_node(extender.store,
                     &(struct node_view){.name = "n1",
                                         .capacity = PAIRS({MEM, "20"}, {COUNT, "2"}),
                                         .allocatable = PAIRS({MEM, mem}, {COUNT, "2"},
                                                              {"cpu", cpu}, {"pods", pods})});
}

/* What is named together frees more than the pod lacks; who ends instead need not free as much. */
START_TEST(no_more_ends_than_the_pod_lacks)
{
    say_node("20", "64", "110");
    apply((struct pod){"four", "4", "n1", "0", .priority = 5});
    apply((struct pod){"six", "6", "n1", "0", .priority = 5});
    apply((struct pod){"seven", "7", "n1", "1", .priority = 5});
    apply((struct pod){"three", "3", "n1", "1", .priority = 100});
    expect_for_nine("{" NODE("n1", "0", UID("seven") "," UID("four")) "}",
                    "{" NODE("n1", "0", UID("four") "," UID("six")) "}");
    /* So it is where a card is unhealthy: the end of its holder frees nothing. */
    store_put_configmap(extender.store, &(struct configmap_view){.ns = "kube-system",
                                                                 .name = "unhealthy-gpu-n1",
                                                                 .data = PAIRS({"gpus", "1"})});
    expect_for_nine("{" NODE("n1", "0", UID("seven") "," UID("four")) "}",
                    "{" NODE("n1", "0", UID("four") "," UID("six")) "}");
    /* One of them is not needed for the sum, so there is a reason that is not known here. */
    expect_for_nine("{" NODE("n1", "0", UID("seven") "," UID("six") "," UID("four")) "}",
                    "{" NODE("n1", "0", UID("seven") "," UID("six") "," UID("four")) "}");
    /* Nor is what it was named for beside one that nobody knows. */
    expect_for_nine(
        "{" NODE("n1", "0", UID("seven") "," UID("four") "," UID("x")) "}",
        "{" NODE("n1", "0", UID("seven") "," UID("four") "," UID("x") "," UID("six")) "}");
}
END_TEST

/* A node takes so many pods, which is a sum as others are. */
START_TEST(as_many_end_as_there_are_pods_too_many)
{
    static const char *const pods[] = {"110", "2"};

    apply((struct pod){"eight", "8", "n1", "0", .priority = 3});
    apply((struct pod){"a", "4", "n1", "1", .priority = 5});
    apply((struct pod){"b", "4", "n1", "1", .priority = 5});
    say_node("16", "64", pods[_i]);
    expect(100, "{" NODE("n1", "0", UID("a") "," UID("b")) "}",
           _i == 0 ? "{" NODE("n1", "0", UID("eight")) "}"
                   : "{" NODE("n1", "0", UID("a") "," UID("eight")) "}");
}
END_TEST

START_TEST(in_doubt_all_that_are_named_go)
{
    static const char *const specs[] = {
        "\"topologySpreadConstraints\":[{}],",
        "\"affinity\":{\"podAntiAffinity\":{}},",
        "\"resourceClaims\":[],",
        "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"x\"}}],",
        "\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}},{\"name\":\"w\",\"csi\":{}}],",
        "\"initContainers\":[{\"name\":\"i\",\"ports\":[{\"hostPort\":80}]}],",
    };
    static const char *const harmless[] = {
        "\"topologySpreadConstraints\":[],\"affinity\":{},",
        "\"resources\":{\"requests\":{}},", /* of the pod as a whole: they are read */
        "\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}},{\"name\":\"w\",\"configMap\":{}}],",
        "\"initContainers\":[{\"name\":\"i\",\"ports\":[{\"containerPort\":80}]}],",
    };

    populate();
    for (size_t i = 0; i < G_N_ELEMENTS(specs); i++)
        expect_with(100, specs[i], "{" NODE("n1", "0", UID("c")) "}",
                    "{" NODE("n1", "0", UID("b") "," UID("c")) "}");
    for (size_t i = 0; i < G_N_ELEMENTS(harmless); i++)
        expect_with(100, harmless[i], "{" NODE("n1", "0", UID("c")) "}",
                    "{" NODE("n1", "0", UID("b")) "}");
    apply((struct pod){"c", "3", "n1", "0", .priority = 1, .particular = true});
    expect(100, "{" NODE("n1", "0", UID("c")) "}", "{" NODE("n1", "0", UID("b") "," UID("c")) "}");
}
END_TEST

START_TEST(pods_that_nobody_knows_are_kept)
{
    populate();
    expect(100, "{" NODE("n1", "1", UID("x") "," UID("c") "," UID("y")) "}",
           "{" NODE("n1", "1", UID("x") "," UID("y") "," UID("b")) "}");
    /* Without them nothing would be left to name. */
    store_delete_pod(extender.store, "a");
    store_delete_pod(extender.store, "b");
    store_delete_pod(extender.store, "c");
    expect(100, "{" NODE("n1", "0", UID("x")) "}", "{" NODE("n1", "0", UID("x")) "}");
}
END_TEST

START_TEST(who_is_going_costs_nothing)
{
    populate();
    apply((struct pod){"d", "10", "n2", "0", .priority = 1});
    apply((struct pod){"e", "9", "n2", "1", .priority = 4, .terminating = true});
    expect(100, "{" NODE("n2", "0") "}", "{" NODE("n2", "0", UID("e")) "}");
}
END_TEST

START_TEST(room_is_kept_for_others)
{
    apply((struct pod){"first", "8", .nominated = "n1", .priority = 100});
    apply((struct pod){"a", "6", "n1", "0", .priority = 1});
    apply((struct pod){"b", "6", "n1", "1", .priority = 2});
    /* "first" takes the place of "a": another one of its kind that of "b". */
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("b")) "}");
    expect(101, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("a")) "}");
}
END_TEST

/* --- budgets -------------------------------------------------------------------------------- */

static void set_budget(const char *ns, const char *allowed, const char *selector)
{
    g_autofree char *object = g_strdup_printf(
        "{\"metadata\":{\"name\":\"budget\",\"namespace\":\"%s\",\"uid\":\"u\"},\"spec\":{"
        "\"selector\":%s},\"status\":{\"disruptionsAllowed\":%s,\"disruptedPods\":{"
        "\"counted\":\"2026-01-01T00:00:00Z\"}}}",
        ns, selector, allowed);
    feed_event(extender.store, FEED_BUDGETS, false, object);
}

#define IN(values) "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":" values "}]}"
#define OP(op) "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"" op "\"}]}"

/* "a" would go, but for a budget; "b" is more important. */
static void populate_budgeted(void)
{
    apply((struct pod){"a", "6", "n1", "0", .priority = 1, .app = "web"});
    apply((struct pod){"b", "6", "n1", "1", .priority = 3, .app = "db"});
}

static void expect_guarded(const char *ns, const char *allowed, const char *selector, bool guarded)
{
    set_budget(ns, allowed, selector);
    expect(100, "{" NODE("n1", "0") "}",
           guarded ? "{" NODE("n1", "0", UID("b")) "}" : "{" NODE("n1", "0", UID("a")) "}");
}

START_TEST(budgets_spare_pods)
{
    static const struct {
        const char *ns, *allowed, *selector;
        bool guarded;
    } rows[] = {
        {"ml", "0", "{\"matchLabels\":{\"app\":\"web\"}}", true},
        {"ml", "0", "{\"matchLabels\":{\"app\":\"web\",\"tier\":\"x\"}}", true},
        {"ml", "0", "{\"matchLabels\":{\"app\":\"web\",\"tier\":\"y\"}}", false},
        {"ml", "0", "{\"matchLabels\":{\"none\":\"web\"}}", false},
        {"ml", "-1", "{\"matchLabels\":{\"app\":\"web\"}}", true},
        {"ml", "1", "{\"matchLabels\":{\"app\":\"web\"}}", false},
        {"other", "0", "{\"matchLabels\":{\"app\":\"web\"}}", false},
        {"ml", "0", IN("[\"x\",\"web\"]"), true},
        {"ml", "0", IN("[\"x\"]"), false},
        {"ml", "0", "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"NotIn\",\"values\":[\"db\"]}]}",
         true},
        {"ml", "0", "null", false},
    };

    populate_budgeted();
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        expect_guarded(rows[i].ns, rows[i].allowed, rows[i].selector, rows[i].guarded);
        store_drop_budget(extender.store, rows[i].ns, "budget");
        expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("a")) "}");
    }
}
END_TEST

START_TEST(what_cannot_be_avoided_is_counted)
{
    populate_budgeted();
    set_budget("ml", "0", OP("Exists"));
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "1", UID("a")) "}");
    set_budget("ml", "0", "{}");
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "1", UID("a")) "}");
    /* One of those that kube-scheduler counted is "a", the other one is not known here. */
    expect(100, "{" NODE("n1", "2", UID("a") "," UID("x")) "}",
           "{" NODE("n1", "2", UID("a") "," UID("x")) "}");
    /* Both are, so the third is of a pod without a budget. */
    expect(100, "{" NODE("n1", "2", UID("a") "," UID("b") "," UID("x")) "}",
           "{" NODE("n1", "2", UID("b") "," UID("x") "," UID("a")) "}");
    set_budget("ml", "1", "{}");
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("a")) "}");
    set_budget("ml", "0", OP("DoesNotExist"));
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("a")) "}");
}
END_TEST

START_TEST(pods_that_are_counted_already_draw_on_nothing)
{
    apply((struct pod){"counted", "6", "n1", "0", .priority = 1, .app = "web"});
    apply((struct pod){"b", "6", "n1", "1", .priority = 3, .app = "db"});
    set_budget("ml", "0", "{\"matchLabels\":{\"app\":\"web\"}}");
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("counted")) "}");
}
END_TEST

START_TEST(budgets_that_a_list_does_not_name_are_gone)
{
    populate_budgeted();
    expect_guarded("ml", "0", "{\"matchLabels\":{\"app\":\"web\"}}", true);
    store_list_begin(extender.store, FEED_BUDGETS);
    store_list_end(extender.store, FEED_BUDGETS);
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("a")) "}");
}
END_TEST

START_TEST(selectors_that_are_not_understood_are_errors)
{
    static const char *const selectors[][2] = {
        {OP("Matches"), "is none of In, NotIn"},
        {"{\"matchExpressions\":[{\"operator\":\"In\"}]}", "item 0: field 'key': missing"},
        {IN("[5]"), "expected a string"},
        {IN("\"x\""), "expected an array"},
        {"{\"matchLabels\":[]}", "expected an object"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(selectors); i++) {
        g_autoptr(json_arena) arena = json_arena_new();
        g_autoptr(GError) error = NULL;
        struct budget_view view;
        g_autofree char *object = g_strdup_printf(
            "{\"metadata\":{\"name\":\"b\",\"namespace\":\"ml\"},\"spec\":{\"selector\":%s}}",
            selectors[i][0]);
        const cJSON *json = json_parse(arena, object, strlen(object), NULL);
        ck_assert(!budget_view_decode(arena, json, &view, &error));
        ck_assert_msg(strstr(error->message, selectors[i][1]), "%s", error->message);
    }
}
END_TEST

/* --- nodes ---------------------------------------------------------------------------------- */

START_TEST(nodes_where_nothing_helps_are_dropped)
{
    populate();
    apply((struct pod){"d", "10", "n2", "0", .priority = 1000});
    apply((struct pod){"e", "10", "n2", "1", .priority = 1000});
    apply((struct pod){"f", "1", "lost", "0", .priority = 1}); /* on a node that nobody knows */
    expect(100,
           "{" NODE("n2", "0", UID("z")) "," NODE("n1", "0", UID("c")) "," NODE(
               "nope", "0", UID("c")) "," NODE("lost", "0", UID("f")) "}",
           "{" NODE("n1", "0", UID("b")) "}");
    expect(100, "{}", "{}");
    expect(100, "null", "{}");
}
END_TEST

START_TEST(nobody_has_to_end_where_there_is_room)
{
    populate();
    expect(100, "{" NODE("n2", "0") "," NODE("n1", "0") "}", "{" NODE("n1", "0", UID("b")) "}");
}
END_TEST

START_TEST(whole_pods_are_understood)
{
    populate();
    g_autofree char *body =
        body_of(100, "", "NodeNameToVictims",
                "{\"n1\":{\"Pods\":[null,{\"metadata\":{\"name\":\"c\",\"uid\":\"c\"}}],"
                "\"NumPDBViolations\":7}}");
    g_autofree char *reply = call(body);
    ck_assert_str_eq(reply, "{\"NodeNameToMetaVictims\":{" NODE("n1", "1", UID("b")) "}}");
}
END_TEST

START_TEST(a_pod_without_a_gpu_gets_what_was_named)
{
    g_autofree char *reply =
        call("{\"pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"p\"}},"
             "\"nodenametometavictims\":{\"n1\":{\"pods\":[{\"uid\":\"x\"}],"
             "\"numpdbviolations\":1},\"n2\":null}}");
    ck_assert_str_eq(reply, "{\"NodeNameToMetaVictims\":{" NODE("n1", "1", UID("x")) "}}");
}
END_TEST

START_TEST(a_pod_that_holds_a_card_needs_none)
{
    g_autofree char *uid = g_strdup_printf("p%d", g_atomic_int_get(&n_asked) + 1);

    populate();
    apply((struct pod){uid, "8", "n2", "0", .priority = 100});
    expect(100, "{" NODE("n1", "0", UID("c")) "}", "{}");
}
END_TEST

/* --- what cannot be answered ---------------------------------------------------------------- */

START_TEST(malformed_calls_are_errors)
{
#define POD "\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"p\"}}"
    static const char *const calls[][2] = {
        {"nonsense", "error: "},
        {"{}", "error: field 'Pod': missing"},
        {"{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\"}}}", "metadata.uid"},
        {"{" POD ",\"NodeNameToVictims\":{},\"NodeNameToMetaVictims\":{}}", "got both"},
        {"{" POD ",\"NodeNameToMetaVictims\":[]}", "NodeNameToMetaVictims"},
        {"{" POD ",\"NodeNameToMetaVictims\":{\"n\":5}}", "node 'n'"},
        {"{" POD ",\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[5]}}}", "node 'n'"},
        {"{" POD ",\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[{}]}}}", "item 0: the UID is missing"},
        {"{" POD ",\"NodeNameToVictims\":{\"n\":{\"Pods\":[null,{\"metadata\":{}}]}}}",
         "item 1: the UID is missing"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        const uint64_t bad = metrics_counted(COUNTER_REQUESTS_BAD, VERB_PREEMPT);
        g_autofree char *reply = call(calls[i][0]);
        ck_assert_msg(g_str_has_prefix(reply, "error: ") && strstr(reply, calls[i][1]), "%s: %s",
                      calls[i][0], reply);
        ck_assert_uint_eq(metrics_counted(COUNTER_REQUESTS_BAD, VERB_PREEMPT), bad + 1);
    }
}
END_TEST

START_TEST(before_the_cluster_is_read_there_is_no_answer)
{
    struct store *full = extender.store;
    g_autofree char *body = body_of(100, "", "NodeNameToMetaVictims", "{}");

    extender.store = store_new(&(struct store_options){0});
    g_autofree char *reply = call(body);
    ck_assert_ptr_nonnull(strstr(reply, "has not read the cluster's"));
    store_free(extender.store);
    extender.store = full;
}
END_TEST

/* The limit is of a call, however many nodes share it. */
START_TEST(too_many_victims_are_an_error)
{
    const int n_nodes = _i + 1, n_each = 100000 / n_nodes;

    for (int more = 0; more < 2; more++) {
        g_autoptr(GString) victims = g_string_new("{");
        for (int n = 0; n < n_nodes; n++) {
            g_string_append_printf(victims, "%s\"n%d\":{\"Pods\":[null", n ? "," : "", n + 1);
            for (int i = 1; i < n_each + (more && n == n_nodes - 1); i++)
                g_string_append(victims, ",           null"); /* long, or memory is what lacks */
            g_string_append(victims, "]}");
        }
        g_string_append(victims, "}");
        g_autofree char *body = body_of(100, "", "NodeNameToMetaVictims", victims->str);
        g_autofree char *reply = call(body);
        const char *start = more ? "error: field 'NodeNameToMetaVictims': node 'n" : "{\"NodeName";
        ck_assert_msg(g_str_has_prefix(reply, start), "%s", reply);
        ck_assert_int_eq(strstr(reply, "more than 100000 victims") != NULL, more);
    }
}
END_TEST

START_TEST(of_a_long_call_each_node_has_its_turn)
{
    g_autoptr(GString) victims = g_string_new("{");
    struct moment moment = {.now_ms = 1};
    bool first = false, last = false;

    for (int i = 0; i < 2500; i++) {
        g_autofree char *node = g_strdup_printf("m%04d", i);
        g_autofree char *uid = g_strdup_printf("u%04d", i);
        store_apply_node(extender.store,
                         &(struct node_view){.name = node,
                                             .capacity = PAIRS({MEM, "10"}, {COUNT, "1"})});
        apply((struct pod){uid, "6", node, "0", .priority = 5});
        g_string_append_printf(victims, "%s\"%s\":null", i ? "," : "", node);
    }
    g_string_append_c(victims, '}');
    for (moment.now_ns = 1; moment.now_ns < 2500; moment.now_ns += 1000) {
        size_t n = 0;
        g_autofree char *body = body_of(100, "", "NodeNameToMetaVictims", victims->str);
        store_set_moment(extender.store, &moment);
        g_autofree char *reply = call(body);
        for (const char *at = reply; (at = strstr(at, "\"UID\":")); at++)
            n++;
        ck_assert_uint_eq(n, 2000);
        first |= strstr(reply, "\"u0000\"") != NULL;
        last |= strstr(reply, "\"u2499\"") != NULL;
    }
    ck_assert(first && last);
    store_set_moment(extender.store, NULL);
}
END_TEST

/* Each of two threads gets one of two answers, whatever the other one has taken or given back. */
static void *ask_often(void *data)
{
    g_autofree char *body = body_of(100, "", "NodeNameToMetaVictims", "{" NODE("n1", "0") "}");
    size_t *ret_right = data;

    for (int i = 0; i < 300; i++) {
        g_autofree char *reply = call(body);
        *ret_right +=
            g_str_equal(reply, "{\"NodeNameToMetaVictims\":{" NODE("n1", "0", UID("b")) "}}") ||
            g_str_equal(reply,
                        "{\"NodeNameToMetaVictims\":{" NODE("n1", "0", UID("a") "," UID("c")) "}}");
    }
    return NULL;
}

START_TEST(calls_at_once_see_what_is_there)
{
    pthread_t threads[2];
    size_t n_right[2] = {0};

    populate();
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, &n_right[i]), 0);
    for (int i = 0; i < 300; i++)
        apply((struct pod){"b", "6", "n1", "1", .priority = i % 2 ? 3 : 7});
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(n_right[0] + n_right[1], 600);
    /* What is told of a pod changes a copy that was kept, though it holds what it did. */
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("b")) "}");
    apply((struct pod){"b", "6", "n1", "1", .priority = 7});
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("a") "," UID("c")) "}");
    apply((struct pod){"b", "6", "n1", "1", .priority = 7, .terminating = true});
    expect(100, "{" NODE("n1", "0") "}", "{" NODE("n1", "0", UID("b")) "}");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("preempt");
    TCase *tests = tcase_create("preempt");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_card_is_freed_not_a_sum);
    tcase_add_test(tests, no_more_than_needed_and_no_more_important_ones);
    tcase_add_test(tests, the_more_important_stay);
    tcase_add_test(tests, who_is_spared_frees_no_more_than_the_others);
    tcase_add_test(tests, no_more_ends_than_the_pod_lacks);
    tcase_add_loop_test(tests, as_many_end_as_there_are_pods_too_many, 0, 2);
    tcase_add_test(tests, in_doubt_all_that_are_named_go);
    tcase_add_test(tests, pods_that_nobody_knows_are_kept);
    tcase_add_test(tests, who_is_going_costs_nothing);
    tcase_add_test(tests, room_is_kept_for_others);
    tcase_add_test(tests, budgets_spare_pods);
    tcase_add_test(tests, what_cannot_be_avoided_is_counted);
    tcase_add_test(tests, pods_that_are_counted_already_draw_on_nothing);
    tcase_add_test(tests, budgets_that_a_list_does_not_name_are_gone);
    tcase_add_test(tests, selectors_that_are_not_understood_are_errors);
    tcase_add_test(tests, nodes_where_nothing_helps_are_dropped);
    tcase_add_test(tests, nobody_has_to_end_where_there_is_room);
    tcase_add_test(tests, whole_pods_are_understood);
    tcase_add_test(tests, a_pod_without_a_gpu_gets_what_was_named);
    tcase_add_test(tests, a_pod_that_holds_a_card_needs_none);
    tcase_add_test(tests, malformed_calls_are_errors);
    tcase_add_test(tests, before_the_cluster_is_read_there_is_no_answer);
    tcase_add_loop_test(tests, too_many_victims_are_an_error, 0, 2);
    tcase_add_test(tests, of_a_long_call_each_node_has_its_turn);
    tcase_add_test(tests, calls_at_once_see_what_is_there);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
