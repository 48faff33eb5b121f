/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt on one node: which of its pods are named, which of kube-scheduler's are left out, and what budgets and
 * priorities count for. (What may be spared for sums of the node: test_preempt.c.)
 */
#include "fake_cluster.h"
#include "preempting_extender.h"
#include "suite.h"

#include <string.h>

#define PODS_MAX 6

/* Asks for a pod of so many units of one card, of priority 100 unless it is said otherwise. Free with g_free. */
static char *ask(const char *uid, const char *mem, int64_t priority, const char *nodes)
{
    g_autoptr(GError) error = NULL;
    GString *reply = g_string_new(NULL);
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"%s\"},\"spec\":{"
        "\"priority\":%" G_GINT64_FORMAT ",\"containers\":[{\"name\":\"c\",\"resources\":{"
        "\"limits\":{\"" MEM "\":\"%s\"}}}]}},\"NodeNameToMetaVictims\":{%s}}",
        uid, priority, mem, nodes);

    if (!extender_preempt(&extender, body, strlen(body), reply, &error))
        g_string_printf(reply, "error: %s", error->message);
    return g_string_free(reply, FALSE);
}

/* "a b/1": these, who violate so many budgets. As kube-scheduler or the answer has it for node n1. */
static char *victims_of(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, "/", 2);
    g_auto(GStrv) uids = g_strsplit(*text ? parts[0] : "", " ", -1);
    GString *object = g_string_new("\"n1\":{\"Pods\":[");

    for (char **uid = uids; *uid && **uid; uid++)
        g_string_append_printf(object, "%s{\"UID\":\"%s\"}", uid == uids ? "" : ",", *uid);
    g_string_append_printf(object, "],\"NumPDBViolations\":%s}",
                           *text && parts[1] ? parts[1] : "0");
    return g_string_free(object, FALSE);
}

/* `named` and `answer` as above; NULL: the node is no candidate. */
static void expect_of(const char *mem, int64_t priority, const char *named, const char *answer)
{
    static int n_asked;
    g_autofree char *uid = g_strdup_printf("asks-%d", n_asked++);
    g_autofree char *nodes = victims_of(named);
    g_autofree char *reply = ask(uid, mem, priority, nodes);
    g_autofree char *wanted_nodes = answer ? victims_of(answer) : g_strdup("");
    g_autofree char *wanted = g_strdup_printf("{\"NodeNameToMetaVictims\":{%s}}", wanted_nodes);

    ck_assert_str_eq(reply, wanted);
}

/* --- which ---------------------------------------------------------------------------------------- */

/* Both cards of n1 have these; the pod wants 8 of 10. */
static const struct {
    struct pod pods[PODS_MAX];
    const char *answer;
} choices[] = {
    /* The highest priority among them is as low as possible, whatever their number. */
    {{{"a", "10", "n1", "0", .priority = 5}, {"b", "10", "n1", "1", .priority = 3}}, "b"},
    {{{"a", "10", "n1", "0", .priority = 5},
      {"b", "5", "n1", "1", .priority = 3},
      {"c", "5", "n1", "1", .priority = 3}},
     "b c"},
    {{{"a", "10", "n1", "0", .priority = -3}, {"b", "10", "n1", "1", .priority = -2}}, "a"},
    /* Then the sum of the priorities, of which each counts from the lowest there is: so fewer pods. */
    {{{"a", "5", "n1", "0", .priority = 3},
      {"b", "5", "n1", "0", .priority = 3},
      {"c", "10", "n1", "1", .priority = 3}},
     "c"},
    {{{"a", "5", "n1", "0", .priority = 3},
      {"b", "5", "n1", "0", .priority = 1},
      {"c", "5", "n1", "1", .priority = 3},
      {"d", "5", "n1", "1", .priority = 2}},
     "a b"},
    /* Then the age: those who have run for long stay. */
    {{{"a", "10", "n1", "0", .priority = 3, .created = "2026-01-01T00:00:00Z"},
      {"b", "10", "n1", "1", .priority = 3, .created = "2026-01-01T00:00:01Z"}},
     "b"},
    {{{"a", "10", "n1", "0", .priority = 3, .created = "2026-01-01T00:00:02Z"},
      {"b", "10", "n1", "1", .priority = 3, .created = "2026-01-01T00:00:01Z"}},
     "a"},
    /* As kube-scheduler sees the age: since kubelet has the pod, whenever it was created. */
    {{{"a", "10", "n1", "0", .priority = 3, .created = "2026-01-01T00:00:00Z",
       .started = "2026-01-01T00:00:09Z"},
      {"b", "10", "n1", "1", .priority = 3, .created = "2026-01-01T00:00:01Z",
       .started = "2026-01-01T00:00:02Z"}},
     "a"},
    /* Who has not started is the youngest of all. */
    {{{"a", "10", "n1", "0", .priority = 3, .created = "2026-01-01T00:00:00Z", .not_started = true},
      {"b", "10", "n1", "1", .priority = 3, .created = "2026-01-01T00:00:01Z",
       .started = "2026-01-01T00:00:02Z"}},
     "a"},
    /* Only the age of the most important ones counts. */
    {{{"a", "5", "n1", "0", .priority = 3, .started = "2026-01-01T00:00:05Z"},
      {"b", "5", "n1", "0", .priority = 1, .started = "2026-01-01T00:00:01Z"},
      {"c", "5", "n1", "1", .priority = 3, .started = "2026-01-01T00:00:04Z"},
      {"d", "5", "n1", "1", .priority = 1, .started = "2026-01-01T00:00:04Z"}},
     "a b"},
    /* Of one card no more than it takes: 2 are free. */
    {{{"a", "6", "n1", "0", .priority = 3},
      {"b", "2", "n1", "0", .priority = 1},
      {"c", "10", "n1", "1", .priority = 50}},
     "a"},
    /* Who is being deleted anyway costs nothing, however important. */
    {{{"a", "10", "n1", "0", .priority = 1},
      {"b", "10", "n1", "1", .priority = 90, .terminating = true}},
     "b"},
    {{{"a", "5", "n1", "0", .priority = 1},
      {"b", "5", "n1", "0", .priority = 90, .terminating = true},
      {"c", "10", "n1", "1", .priority = 2}},
     "b a"},
    /* As important, or more: they stay, though nothing helps then. */
    {{{"a", "10", "n1", "0", .priority = 100}, {"b", "10", "n1", "1", .priority = 101}}, NULL},
    {{{"a", "10", "n1", "0", .priority = 100}, {"b", "10", "n1", "1", .priority = 99}}, "b"},
    /* Nor does one who is being deleted and is not less important. */
    {{{"a", "10", "n1", "0", .priority = 100, .terminating = true},
      {"b", "10", "n1", "1", .priority = 101}},
     NULL},
};

START_TEST(those_end_whose_end_costs_least)
{
    for (int i = 0; i < PODS_MAX && choices[_i].pods[i].uid; i++)
        apply(choices[_i].pods[i]);
    expect_of("8", 100, "", choices[_i].answer);
}
END_TEST

/* --- named ---------------------------------------------------------------------------------------- */

/* a and b fill card 0, c and d card 1; x is on no node that is known here. */
static const struct {
    const char *named, *answer;
} namings[] = {
    {"a b", "a b"},       {"b a", "a b"}, /* the most important first, whoever has named them */
    {"d c", "a b"},                       /* they are dearer, and free no more */
    {"a", "a b"},         {"b", "a b"},
    {"c", "a b"},         {"x a", "x a b"}, /* whom nobody knows stays named */
    {"x", "x a b"},       {"a x b y", "a x b y"},
    {"high", "high a b"}, /* more important, so it is named for a reason that is not known here */
};

START_TEST(whom_kube_scheduler_has_named)
{
    apply((struct pod){"a", "5", "n1", "0", .priority = 2});
    apply((struct pod){"b", "5", "n1", "0", .priority = 1});
    apply((struct pod){"c", "5", "n1", "1", .priority = 3});
    apply((struct pod){"d", "4", "n1", "1", .priority = 3});
    apply((struct pod){"high", "1", "n1", "1", .priority = 1000});
    expect_of("8", 100, namings[_i].named, namings[_i].answer);
}
END_TEST

/* a and b, which fill card 0, are of one PodGroup; c and d, dearer, fill card 1. */
static const struct {
    const char *named, *answer;
    bool terminating; /* a and b */
} units[] = {
    {"", "c d"},        /* none is added */
    {"a", "c d a"},     /* nor is the rest of a group that is named in part */
    {"a b", "a b"},     /* all are named, and end */
    {"a b c", "d a b"}, /* another ends in the place of c, but in no place of theirs */
    {"c a b", "d a b"}, {"", "a b", true}, /* who is being deleted anyway costs nothing */
};

START_TEST(a_pod_group_ends_as_kube_scheduler_names_it)
{
    apply((struct pod){"a", "5", "n1", "0", .priority = 2, .group = "g",
                       .terminating = units[_i].terminating});
    apply((struct pod){"b", "5", "n1", "0", .priority = 1, .group = "g",
                       .terminating = units[_i].terminating});
    apply((struct pod){"c", "5", "n1", "1", .priority = 4});
    apply((struct pod){"d", "5", "n1", "1", .priority = 3});
    expect_of("8", 100, units[_i].named, units[_i].answer);
}
END_TEST

/* Whom the watch has not shown yet kube-scheduler may not have seen either. */
START_TEST(a_pod_that_the_watch_has_not_shown_ends_if_it_is_named)
{
    struct allocation *assumed = allocation_new("new", "ml", "new", 1);
    struct ledger *ledger = store_lock(extender.store);

    assumed->dialect = ledger_node(ledger, "n1")->dialect;
    assumed->state = ALLOCATION_BOUND;
    assumed->shares[0] = (struct share){.memory = {10, AMOUNT_NODE_UNITS}, .card = 0};
    ledger_put(ledger, "n1", assumed);
    store_unlock(extender.store);
    apply((struct pod){"b", "10", "n1", "1", .priority = 50});
    expect_of("8", 100, "", "b");
    expect_of("8", 100, "new", "new");
}
END_TEST

/* --- budgets -------------------------------------------------------------------------------------- */

static void set_budget(const char *name, int allowed, const char *key, const char *value)
{
    g_autofree char *object =
        g_strdup_printf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\"},"
                        "\"spec\":{\"selector\":{"
                        "\"matchLabels\":{\"%s\":\"%s\"}}},\"status\":{\"disruptionsAllowed\":%d}}",
                        name, name, key, value, allowed);

    feed_event(extender.store, FEED_BUDGETS, false, object);
}

/* Budgets of the pods of an app; -1: there is none. All pods have the label tier=x. */
static const struct {
    struct pod pods[4];
    int web, all;
    const char *named, *answer;
} budgets[] = {
    /* They count for more than priorities. */
    {{{"a", "10", "n1", "0", .priority = 1, .app = "web"}, {"b", "10", "n1", "1", .priority = 50}},
     0,
     -1,
     "",
     "b"},
    {{{"a", "10", "n1", "0", .priority = 1, .app = "web"}, {"b", "10", "n1", "1", .priority = 50}},
     1,
     -1,
     "",
     "a"},
    /* Two draw on one budget, which has one to give. */
    {{{"a", "5", "n1", "0", .priority = 1, .app = "web"},
      {"b", "5", "n1", "0", .priority = 1, .app = "web"},
      {"c", "10", "n1", "1", .priority = 50}},
     1,
     -1,
     "",
     "c"},
    {{{"a", "5", "n1", "0", .priority = 1, .app = "web"},
      {"b", "5", "n1", "0", .priority = 1, .app = "web"},
      {"c", "10", "n1", "1", .priority = 50}},
     2,
     -1,
     "",
     "a b"},
    {{{"a", "5", "n1", "0", .priority = 1, .app = "web"},
      {"b", "5", "n1", "0", .priority = 1, .app = "web"},
      {"c", "10", "n1", "1", .priority = 500}},
     1,
     -1,
     "",
     "a b/1"},
    {{{"a", "5", "n1", "0", .priority = 1, .app = "web"},
      {"b", "5", "n1", "0", .priority = 1, .app = "web"},
      {"c", "10", "n1", "1", .priority = 500}},
     0,
     -1,
     "",
     "a b/2"},
    /* One of two budgets of a pod is enough, and it violates once. */
    {{{"a", "10", "n1", "0", .priority = 1, .app = "web"}, {"b", "10", "n1", "1", .priority = 500}},
     0,
     0,
     "",
     "a/1"},
    {{{"a", "10", "n1", "0", .priority = 1, .app = "web"}, {"b", "10", "n1", "1", .priority = 500}},
     5,
     0,
     "",
     "a/1"},
    /* Who is being deleted draws on nothing. */
    {{{"a", "10", "n1", "0", .priority = 1, .app = "web", .terminating = true},
      {"b", "10", "n1", "1", .priority = 50}},
     0,
     -1,
     "",
     "a"},
    /* What kube-scheduler has counted for pods that are not known here counts on; for others it is counted anew. */
    {{{"a", "10", "n1", "0", .priority = 1}}, -1, -1, "x a/1", "x a/1"},
    {{{"a", "10", "n1", "0", .priority = 1}, {"b", "10", "n1", "1", .priority = 500}},
     -1,
     -1,
     "a/1",
     "a/1"},
    {{{"a", "10", "n1", "0", .priority = 1, .app = "web"}, {"b", "10", "n1", "1", .priority = 500}},
     0,
     -1,
     "x a/1",
     "x a/1"},
    {{{"a", "10", "n1", "0", .priority = 1, .app = "web"}, {"b", "10", "n1", "1", .priority = 500}},
     0,
     -1,
     "x a/2",
     "x a/2"},
    {{{"a", "10", "n1", "0", .priority = 1, .app = "web"}, {"b", "10", "n1", "1", .priority = 50}},
     0,
     -1,
     "x a/1",
     "x b"},
};

START_TEST(budgets_count_before_all_else)
{
    for (int i = 0; i < 4 && budgets[_i].pods[i].uid; i++)
        apply(budgets[_i].pods[i]);
    /* So n1 has no room besides. */
    if (!budgets[_i].pods[1].uid)
        apply((struct pod){"full", "10", "n1", "1", .priority = 1000});
    if (budgets[_i].web >= 0)
        set_budget("web", budgets[_i].web, "app", "web");
    if (budgets[_i].all >= 0)
        set_budget("all", budgets[_i].all, "tier", "x");
    expect_of("8", 100, budgets[_i].named, budgets[_i].answer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("preempt_victims");
    TCase *tests = tcase_create("preempt_victims");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, those_end_whose_end_costs_least, 0, G_N_ELEMENTS(choices));
    tcase_add_loop_test(tests, whom_kube_scheduler_has_named, 0, G_N_ELEMENTS(namings));
    tcase_add_loop_test(tests, a_pod_group_ends_as_kube_scheduler_names_it, 0, G_N_ELEMENTS(units));
    tcase_add_test(tests, a_pod_that_the_watch_has_not_shown_ends_if_it_is_named);
    tcase_add_loop_test(tests, budgets_count_before_all_else, 0, G_N_ELEMENTS(budgets));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
