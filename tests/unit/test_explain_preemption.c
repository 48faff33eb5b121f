/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods preemption would end for a refused pod, and where; or why none. */
#include "suite.h"

#include "explained_cluster.h"

#define HOST "'cpu':'8','memory':'64Gi','pods':'110'"
#define CPU(amount, units)                                                                         \
    "{'name':'main','resources':{'requests':{'cpu':'" amount "'},'limits':{'" MEM "':'" units "'}" \
    "}}"
#define BUDGET(selector, allowed)                                                                  \
    "{'metadata':{'name':'b','namespace':'ml','uid':'b'},'spec':{'selector':{'matchLabels':"       \
    "{" selector "}}},'status':{'disruptionsAllowed':" allowed "}}"

#define PARTICULAR "'affinity':{'podAntiAffinity':{}},"

/* As a line: "n: ml/a 1, ml/b 2; 1 violation", or "why not". */
static void expect_preview(const struct explanation *explanation, const char *expected)
{
    const struct preview *preview = explanation->preview;
    g_autoptr(GString) text = g_string_new(NULL);

    ck_assert_int_eq(explanation->verdict, VERDICT_REFUSED);
    ck_assert_int_eq(preview->why == NULL, preview->node != NULL);
    if (preview->node)
        g_string_append_printf(text, "%s:", preview->node);
    else
        g_string_append(text, preview->why);
    for (guint i = 0; i < preview->pods->len; i++) {
        const struct evicted_pod *pod = &g_array_index(preview->pods, struct evicted_pod, i);
        g_string_append_printf(text, "%s %s/%s %" G_GINT64_FORMAT, i ? "," : "", pod->ns, pod->name,
                               pod->priority);
    }
    if (preview->violations > 0)
        g_string_append_printf(text, "; %" G_GINT64_FORMAT, preview->violations);
    expect_text(text->str, expected);
}

static const struct row {
    struct said_node nodes[3];
    struct said_pod holders[5];
    const char *budget;
    struct said_pod pod;
    const char *preview;
} rows[] = {
    /* --- which pods ----------------------------------------------------------------------------- */
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "6", .priority = 1},
      {"b", .node = "n", .card = "1", .mem = "7", .priority = 2}},
     .pod = {"p", .mem = "8", .priority = 10},
     .preview = "n: ml/a 1"},
    /* kube-scheduler counts sums: 7 of 20 are free, and 8 are wanted. */
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "6", .priority = 3},
      {"b", .node = "n", .card = "1", .mem = "3", .priority = 2},
      {"c", .node = "n", .card = "1", .mem = "4", .priority = 1}},
     .pod = {"p", .mem = "8", .priority = 10},
     .preview = "n: ml/b 2, ml/c 1"},
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "10", .priority = 5},
      {"b", .node = "n", .card = "1", .mem = "10", .priority = 9}},
     .pod = {"p", .mem = "8", .priority = 9},
     .preview = "n: ml/a 5"},
    /* The node whose victims matter least. */
    {{{"m", .amounts = MONO}, {"n", .amounts = MONO}, {"o", .amounts = MONO}},
     {{"a", .node = "m", .card = "0", .mem = "10", .priority = 3},
      {"b", .node = "n", .card = "0", .mem = "10", .priority = 1},
      {"c", .node = "o", .card = "0", .mem = "10", .priority = 2}},
     .pod = {"p", .mem = "8", .priority = 9},
     .preview = "n: ml/b 1"},
    /* Its GPU is free, its CPU is not. */
    {{{"n", .amounts = DUO "," HOST}},
     {{"a", .node = "n", .containers = CPU("5", "2"), .priority = 1,
       .annotations = "'ALIYUN_COM_GPU_MEM_IDX':'0','ALIYUN_COM_GPU_MEM_ASSIGNED':'true'"},
      {"b", .node = "n", .containers = CPU("2", "10"), .priority = 1,
       .annotations = "'ALIYUN_COM_GPU_MEM_IDX':'1','ALIYUN_COM_GPU_MEM_ASSIGNED':'true'"}},
     .pod = {"p", .containers = CPU("4", "3"), .priority = 9},
     .preview = "n: ml/a 1"},
    /* --- budgets -------------------------------------------------------------------------------- */
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "10", .priority = 1, .labels = "'app':'web'"},
      {"b", .node = "n", .card = "1", .mem = "10", .priority = 3}},
     .budget = BUDGET("'app':'web'", "0"),
     .pod = {"p", .mem = "8", .priority = 9},
     .preview = "n: ml/b 3"},
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "10", .priority = 1, .labels = "'app':'web'"},
      {"b", .node = "n", .card = "1", .mem = "10", .priority = 3}},
     .budget = BUDGET("'app':'web'", "1"),
     .pod = {"p", .mem = "8", .priority = 9},
     .preview = "n: ml/a 1"},
    {{{"n", .amounts = MONO}},
     {{"a", .node = "n", .card = "0", .mem = "10", .priority = 1, .labels = "'app':'web'"}},
     .budget = BUDGET("'app':'web'", "0"),
     .pod = {"p", .mem = "8", .priority = 9},
     .preview = "n: ml/a 1; 1"},
    /* Of a pod that takes more than its containers say, kube-scheduler's own choice stays: it lets those
     * back first that a budget guards, and then the more important ones. */
    {{{"n", .amounts = MONO}},
     {{"a", .node = "n", .card = "0", .mem = "5", .priority = 1, .labels = "'app':'web'"},
      {"b", .node = "n", .card = "0", .mem = "5", .priority = 3}},
     .budget = BUDGET("'app':'web'", "0"),
     .pod = {"p", .mem = "5", .priority = 9, .spec = PARTICULAR},
     .preview = "n: ml/b 3"},
    {{{"n", .amounts = MONO}},
     {{"a", .node = "n", .card = "0", .mem = "5", .priority = 1, .labels = "'app':'web'"},
      {"b", .node = "n", .card = "0", .mem = "5", .priority = 3, .labels = "'app':'web'"}},
     .budget = BUDGET("'app':'web'", "1"),
     .pod = {"p", .mem = "5", .priority = 9, .spec = PARTICULAR},
     .preview = "n: ml/b 3"},
    /* --- why none ------------------------------------------------------------------------------- */
    {{{"n", .amounts = MONO}},
     {{"a", .node = "n", .card = "0", .mem = "10", .priority = 9}},
     .pod = {"p", .mem = "8", .priority = 9},
     .preview = "no pod where it may go has a lower priority than its own, 9"},
    {{{"n", .spec = "'unschedulable':true", .amounts = MONO}},
     {{"a", .node = "n", .card = "0", .mem = "10", .priority = 1}},
     .pod = {"p", .mem = "8", .priority = 9},
     .preview = "no pod where it may go has a lower priority than its own, 9"},
    {{{"n", .amounts = MONO}},
     {{"a", .node = "n", .card = "0", .mem = "10", .priority = 1}},
     .pod = {"p", .mem = "8", .priority = 9, .spec = "'preemptionPolicy':'Never',"},
     .preview = "its preemptionPolicy is Never"},
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "6", .priority = 1},
      {"b", .node = "n", .card = "1", .mem = "6", .priority = 1}},
     .pod = {"p", .mem = "8", .priority = 9},
     .preview = "in sum n has room for it, so kube-scheduler sees no need; that the room is in "
                "pieces, it cannot see"},
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "6", .priority = 1},
      {"b", .node = "n", .card = "1", .mem = "7", .priority = 20},
      {"c", .node = "n", .card = "0", .mem = "3", .priority = 20}},
     .pod = {"p", .mem = "8", .priority = 9},
     .preview = "no node would take it even if all pods of a priority below 9 ended"},
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "10", .priority = 1,
       .meta = "'deletionTimestamp':'2026-01-02T00:00:00Z',"},
      {"b", .node = "n", .card = "1", .mem = "10", .priority = 20}},
     .pod = {"p", .mem = "8", .priority = 9, .status = "'nominatedNodeName':'n',"},
     .preview = "it waits until ml/a has ended on n"},
    /* Another one that is going there was not ended for it. */
    {{{"n"}},
     {{"a", .node = "n", .card = "0", .mem = "10", .priority = 20,
       .meta = "'deletionTimestamp':'2026-01-02T00:00:00Z',"},
      {"b", .node = "n", .card = "1", .mem = "10", .priority = 1}},
     .pod = {"p", .mem = "8", .priority = 9, .status = "'nominatedNodeName':'n',"},
     .preview = "n: ml/b 1"},
};

START_TEST(the_victims_are_those_of_preempt)
{
    const struct row *row = &rows[_i];

    for (size_t i = 0; i < G_N_ELEMENTS(row->nodes) && row->nodes[i].name; i++)
        add_node(row->nodes[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(row->holders) && row->holders[i].name; i++)
        add_pod(row->holders[i]);
    if (row->budget)
        feed(FEED_BUDGETS, false, "%s", row->budget);
    add_pod(row->pod);
    g_autoptr(explanation) explanation = explain("ml/p");
    expect_preview(explanation, row->preview);
}
END_TEST

/* What is not there yet cannot be ended. */
START_TEST(a_pod_whose_binding_is_under_way_stays)
{
    add_node((struct said_node){"n", .amounts = MONO});
    add_pod((struct said_pod){"a", .node = "n", .card = "0", .mem = "10", .priority = 1});
    add_pod((struct said_pod){"p", .mem = "8", .priority = 9});
    unconfirm("ml/a");
    g_autoptr(explanation) explanation = explain("ml/p");
    expect_preview(explanation, "no pod where it may go has a lower priority than its own, 9");
}
END_TEST

/* A namespace that is over its quota may end only pods that count in it. */
START_TEST(what_quotas_leave_is_looked_at)
{
    begin_with((struct store_options){.elastic_quotas = true});
    feed(FEED_ELASTIC_QUOTAS, false,
         "{'metadata':{'name':'q','namespace':'ml'},'spec':{'max':{'gpuledger.io/gpus':'1'}}}");
    add_node((struct said_node){"n"});
    add_pod((struct said_pod){"w", .ns = "web", .node = "n", .card = "0", .mem = "10"});
    add_pod((struct said_pod){"a", .node = "n", .card = "1", .mem = "8", .priority = 3});
    add_pod((struct said_pod){"p", .mem = "10", .priority = 9});
    g_autoptr(explanation) explanation = explain("ml/p");
    expect_preview(explanation, "n: ml/a 3");
    add_pod((struct said_pod){"p", .mem = "10", .priority = 2});
    g_autoptr(explanation) lesser = explain("ml/p");
    expect_preview(lesser,
                   "its quotas leave no room for it, and its own pods of a priority below 2 "
                   "on one node give back too little");
}
END_TEST

/* --- as it is read --------------------------------------------------------------------------------- */

static void populate(void)
{
    add_node((struct said_node){"n", .amounts = MONO});
    add_pod((struct said_pod){"a", .node = "n", .card = "0", .mem = "4", .priority = 1,
                              .labels = "'app':'web'"});
    add_pod((struct said_pod){"b", .node = "n", .card = "0", .mem = "6", .priority = 2});
    feed(FEED_BUDGETS, false, BUDGET("'app':'web'", "0"));
    add_pod((struct said_pod){"p", .mem = "9", .priority = 9});
}

START_TEST(people_read_a_line)
{
    g_autoptr(GString) text = g_string_new(NULL);

    populate();
    g_autoptr(explanation) explanation = explain("ml/p");
    preview_write(text, explanation->preview);
    expect_text(text->str, "\nPreemption would end, on n: ml/a (priority 1), ml/b (priority 2); 1 "
                           "against a PodDisruptionBudget.\n");
    g_string_truncate(text, 0);
    preview_write(text, NULL);
    expect_text(text->str, "");
    add_pod((struct said_pod){"p", .mem = "9", .priority = 1});
    g_autoptr(explanation) lesser = explain("ml/p");
    preview_write(text, lesser->preview);
    expect_text(text->str, "\nPreemption ends nobody: no pod where it may go has a lower priority "
                           "than its own, 1.\n");
}
END_TEST

static void encode(const struct preview *preview, const char *expected)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    preview_encode(&writer, preview);
    json_end_object(&writer);
    g_strdelimit(text->str, "\"", '\'');
    expect_text(text->str, expected);
}

START_TEST(programs_read_an_object)
{
    populate();
    g_autoptr(explanation) explanation = explain("ml/p");
    encode(explanation->preview,
           "{'preemption':{'node':'n','whyNot':null,'budgetViolations':1,'pods':[{'namespace':'ml',"
           "'name':'a','priority':1,'idleSeconds':null},{'namespace':'ml','name':'b','priority':2,"
           "'idleSeconds':null}]}}");
    encode(NULL, "{'preemption':null}");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_preemption");
    TCase *tests = tcase_create("preemption");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, the_victims_are_those_of_preempt, 0, G_N_ELEMENTS(rows));
    tcase_add_test(tests, a_pod_whose_binding_is_under_way_stays);
    tcase_add_test(tests, what_quotas_leave_is_looked_at);
    tcase_add_test(tests, people_read_a_line);
    tcase_add_test(tests, programs_read_an_object);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
