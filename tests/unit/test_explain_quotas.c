/* SPDX-License-Identifier: Apache-2.0 */
/* Of elastic quotas: in which one a pod counts, and what would let a refused pod in. */
#include "suite.h"

#include "explained_cluster.h"

#define WORD "quota.scheduling.koordinator.sh/"
#define OF_QUOTA(name) "'" WORD "name':'" name "'"
#define GPUS(n) "{'gpuledger.io/gpus':'" n "'}"
/* One of a tree, in the namespace "quotas". */
#define BRANCH(name, parent, is_parent, min, namespaces)                                           \
    "{'metadata':{'name':'" name "','namespace':'quotas','labels':{'" WORD "parent':'" parent      \
    "','" WORD "is-parent':'" is_parent "'},'annotations':{'" WORD "namespaces':'" namespaces      \
    "'}},'spec':{'min':" GPUS(min) ",'max':" GPUS("4") "}}"
#define ALONE(ns, spec) "{'metadata':{'name':'q','namespace':'" ns "'},'spec':{" spec "}}"

static void begin_quotas(void)
{
    begin_with((struct store_options){.elastic_quotas = true, .tree_namespaces = "quotas"});
}

/* --- in which ------------------------------------------------------------------------------------ */

static const struct {
    struct said_pod pod;
    const char *labels_now; /* instead of those that it was bound with */
    const char *written;
} memberships[] = {
    {{"p", "a", .mem = "1"}, NULL, "\nQUOTA       quotas/team-a, by its namespace\n"},
    {{"p", "a", .mem = "1", .labels = OF_QUOTA("team-a")},
     NULL,
     "\nQUOTA       quotas/team-a, by its label\n"},
    {{"p", "a", .mem = "1", .labels = OF_QUOTA("none")},
     NULL,
     "\nQUOTA       quotas/team-a, by its namespace\n            its label names 'none', which "
     "does "
     "not count: there is no quota of that name in a tree\n"},
    {{"p", "z", .mem = "1"}, NULL, ""},
    {{"p", "a", .mem = "1", .node = "n", .card = "0", .labels = OF_QUOTA("team-a")},
     OF_QUOTA("other"),
     "\nQUOTA       quotas/team-a, by its label\n            its label named team-a when it was "
     "bound; "
     "what it says now came after that, and does not count: 'other'\n"},
};

START_TEST(a_pod_is_told_where_it_counts)
{
    g_autoptr(GString) text = g_string_new(NULL);

    add_node((struct said_node){"n"});
    feed(FEED_ELASTIC_QUOTAS, false, BRANCH("all", "", "true", "2", "[]"));
    feed(FEED_ELASTIC_QUOTAS, false, BRANCH("team-a", "all", "false", "1", "[\\\"a\\\"]"));
    add_pod(memberships[_i].pod);
    if (memberships[_i].labels_now) {
        struct said_pod now = memberships[_i].pod;
        now.labels = memberships[_i].labels_now;
        add_pod(now);
    }
    g_autofree char *key = g_strdup_printf("%s/p", memberships[_i].pod.ns);
    g_autoptr(explanation) explanation = explain(key);
    quota_told_write(text, explanation->quota);
    expect_text(text->str, memberships[_i].written);
}
END_TEST

/* --- what lets a pod in ---------------------------------------------------------------------------- */

static const struct {
    const char *quotas[3];
    struct said_pod holders[4];
    struct said_pod pod;
    const char *remedies; /* of quotas and of pods that end, a line each */
} rows[] = {
    /* The smallest pod whose end is enough. */
    {{ALONE("a", "'max':" GPUS("1"))},
     {{"a0", "a", .node = "n", .card = "0", .mem = "5"},
      {"a1", "a", .node = "n", .card = "1", .mem = "4"},
      {"a2", "a", .node = "n", .card = "1", .mem = "1"}},
     {"p", "a", .mem = "3"},
     "end a/a1 -> n\ngive namespace a a max of 1.3 gpuledger.io/gpus instead of 1 -> n\n"},
    /* A pod of the quota that is where this one cannot go. */
    {{ALONE("a", "'max':" GPUS("1"))},
     {{"a0", "a", .node = "closed", .card = "0", .mem = "8"}},
     {"p", "a", .mem = "5"},
     "end a/a0 on closed, which counts in the quota, or wait until it ends -> n\n"
     "give namespace a a max of 1.3 gpuledger.io/gpus instead of 1 -> n\n"},
    {{ALONE("a", "'max':" GPUS("1"))},
     {{"a0", "a", .node = "closed", .card = "0", .mem = "8",
       .meta = "'deletionTimestamp':'2026-01-02T00:00:00Z',"}},
     {"p", "a", .mem = "5"},
     "turn: wait until a/a0 on closed has ended, which is going already: it counts in the quota -> "
     "n\n"
     "give namespace a a max of 1.3 gpuledger.io/gpus instead of 1 -> n\n"},
    /* b needs what it has lent: a larger min of a would be enough. */
    {{ALONE("a", "'min':" GPUS("1")), ALONE("b", "'min':" GPUS("1"))},
     {{"a0", "a", .node = "n", .card = "0", .mem = "10"}, {"b0", "b", .mem = "10"}},
     {"p", "a", .mem = "5"},
     "end a/a0 -> n\ngive namespace a a min of 1.5 gpuledger.io/gpus instead of 1 -> n\n"},
    {{ALONE("a", "'max':{'gpuledger.io/gpu-memory':'6Gi'}")},
     {{"a0", "a", .node = "n", .card = "0", .mem = "4"}},
     {"p", "a", .mem = "3"},
     "end a/a0 -> n\ngive namespace a a max of 7Gi gpuledger.io/gpu-memory instead of 6Gi -> n\n"},
};

START_TEST(a_quota_is_raised_or_a_pod_of_it_ends)
{
    g_autoptr(GString) text = g_string_new(NULL);

    add_node((struct said_node){"closed", .spec = "'unschedulable':true"});
    add_node((struct said_node){"n"});
    for (size_t i = 0; i < G_N_ELEMENTS(rows[_i].quotas) && rows[_i].quotas[i]; i++)
        feed(FEED_ELASTIC_QUOTAS, false, "%s", rows[_i].quotas[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(rows[_i].holders) && rows[_i].holders[i].name; i++)
        add_pod(rows[_i].holders[i]);
    add_pod(rows[_i].pod);
    g_autoptr(explanation) explanation = explain("a/p");
    ck_assert_int_eq(explanation->verdict, VERDICT_REFUSED);
    const GArray *single = explanation->remedies->single;
    for (guint i = 0; i < single->len; i++) {
        const struct remedy *remedy = &g_array_index(single, struct remedy, i);
        if (remedy->kind != REMEDY_LESS)
            g_string_append_printf(text, "%s%s -> %s\n",
                                   remedy->kind == REMEDY_TURN ? "turn: " : "", remedy->text,
                                   remedy->node);
    }
    expect_text(text->str, rows[_i].remedies);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_quotas");
    TCase *tests = tcase_create("quotas");

    tcase_add_checked_fixture(tests, begin_quotas, end);
    tcase_add_loop_test(tests, a_pod_is_told_where_it_counts, 0, G_N_ELEMENTS(memberships));
    tcase_add_loop_test(tests, a_quota_is_raised_or_a_pod_of_it_ends, 0, G_N_ELEMENTS(rows));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
