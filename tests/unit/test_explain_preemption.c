/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods preemption would end for a refused pod, and where; or why none. */
#include "suite.h"

#include "explain/cpu_victims.h"
#include "explained_cluster.h"

#define HOST "'cpu':'8','memory':'64Gi','pods':'110'"
#define CPU(amount, units)                                                                         \
    "{'name':'main','resources':{'requests':{'cpu':'" amount "'},'limits':{'" MEM "':'" units "'}" \
    "}}"
#define BUDGET(selector, allowed)                                                                  \
    "{'metadata':{'name':'b','namespace':'ml','uid':'b'},'spec':{'selector':{'matchLabels':"       \
    "{" selector "}}},'status':{'disruptionsAllowed':" allowed "}}"

/* A pod that holds no GPU, and one that holds one unit of card 0. */
#define PLAIN(cpu) "{'name':'main','resources':{'requests':{'cpu':'" cpu "'}}}"
#define DEVICES(n) "{'name':'main','resources':{'limits':{'example.com/fpga':'" n "'}}}"
#define ON_CARD "'ALIYUN_COM_GPU_MEM_IDX':'0','ALIYUN_COM_GPU_MEM_ASSIGNED':'true'"
#define NARROW MONO ",'cpu':'4500m','memory':'64Gi','pods':'110'"
#define WITH_DEVICES MONO "," HOST ",'example.com/fpga':'10'"
#define GUARDED "'app':'web'"

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
    /* --- pods without a GPU --------------------------------------------------------------------- */
    /* The node has 4.5 cores: both have to end. */
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("4"), .priority = 1},
      {"g", .node = "n", .containers = CPU("500m", "1"), .priority = 2, .annotations = ON_CARD}},
     .pod = {"p", .containers = CPU("4500m", "1"), .priority = 9},
     .preview = "n: ml/g 2, ml/c 1"},
    /* One of them is enough: the less important one, which is let back last. */
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("4"), .priority = 1},
      {"g", .node = "n", .containers = CPU("500m", "1"), .priority = 2, .annotations = ON_CARD}},
     .pod = {"p", .containers = CPU("500m", "1"), .priority = 9},
     .preview = "n: ml/c 1"},
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("4"), .priority = 2},
      {"g", .node = "n", .containers = CPU("500m", "1"), .priority = 1, .annotations = ON_CARD}},
     .pod = {"p", .containers = CPU("500m", "1"), .priority = 9},
     .preview = "n: ml/g 1"},
    /* No pod with a GPU is less important, and the card has room. */
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("2"), .priority = 1},
      {"d", .node = "n", .containers = PLAIN("2"), .priority = 2},
      {"g", .node = "n", .containers = CPU("500m", "1"), .priority = 9, .annotations = ON_CARD}},
     .pod = {"p", .containers = CPU("2", "1"), .priority = 9},
     .preview = "n: ml/c 1"},
    /* CPU is short, and so is the card. */
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("4"), .priority = 1},
      {"g", .node = "n", .containers = CPU("500m", "8"), .priority = 2, .annotations = ON_CARD}},
     .pod = {"p", .containers = CPU("4", "8"), .priority = 9},
     .preview = "n: ml/g 2, ml/c 1"},
    /* A pod is resized: what it holds counts, not what it asks for. */
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("1"), .priority = 1,
       .status = "'containerStatuses':[{'name':'main','allocatedResources':{'cpu':'4'},"
                 "'resources':{'requests':{'cpu':'4'}}}],"},
      {"g", .node = "n", .containers = CPU("500m", "1"), .priority = 2, .annotations = ON_CARD}},
     .pod = {"p", .containers = CPU("3500m", "1"), .priority = 9},
     .preview = "n: ml/c 1"},
    /* By that, pods hold more than the node has: 5.5 cores of 4.5. */
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("5"), .priority = 2},
      {"g", .node = "n", .containers = CPU("500m", "1"), .priority = 1, .annotations = ON_CARD}},
     .pod = {"p", .containers = CPU("4250m", "1"), .priority = 9},
     .preview = "n: ml/c 2, ml/g 1"},
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("4"), .priority = 1, .labels = GUARDED},
      {"d", .node = "n", .containers = CPU("500m", "1"), .priority = 3, .annotations = ON_CARD}},
     .budget = BUDGET(GUARDED, "0"),
     .pod = {"p", .containers = CPU("500m", "1"), .priority = 9},
     .preview = "n: ml/d 3"},
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("4"), .priority = 1, .labels = GUARDED},
      {"d", .node = "n", .containers = CPU("500m", "1"), .priority = 3, .annotations = ON_CARD}},
     .budget = BUDGET(GUARDED, "0"),
     .pod = {"p", .containers = CPU("1", "1"), .priority = 9},
     .preview = "n: ml/c 1; 1"},
    /* Both draw on one budget, which lets one of them go: the other violates it, whichever that is. */
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("4"), .priority = 2, .labels = GUARDED},
      {"d", .node = "n", .containers = CPU("500m", "1"), .priority = 1, .annotations = ON_CARD,
       .labels = GUARDED}},
     .budget = BUDGET(GUARDED, "1"),
     .pod = {"p", .containers = CPU("4500m", "1"), .priority = 9},
     .preview = "n: ml/c 2, ml/d 1; 1"},
    /* The node whose victims matter least, with a GPU or without. */
    {{{"m", .amounts = NARROW}, {"n", .amounts = NARROW}, {"o", .amounts = NARROW}},
     {{"b", .node = "m", .containers = PLAIN("4500m"), .priority = 3},
      {"c", .node = "n", .containers = PLAIN("4500m"), .priority = 2},
      {"g", .node = "o", .containers = CPU("4500m", "1"), .priority = 4, .annotations = ON_CARD}},
     .pod = {"p", .containers = CPU("1", "1"), .priority = 9},
     .preview = "n: ml/c 2"},
    /* Something else than CPU and memory: what pods without a GPU take of it is read. */
    {{{"n", .amounts = WITH_DEVICES}},
     {{"c", .node = "n", .containers = DEVICES("8"), .priority = 2},
      {"d", .node = "n", .containers = DEVICES("1"), .priority = 3},
      {"g", .node = "n", .card = "0", .mem = "6", .priority = 4}},
     .pod = {"p", .priority = 9,
             .containers =
                 "{'name':'main','resources':{'limits':{'example.com/fpga':'5','" MEM "':'5'}}}"},
     .preview = "n: ml/g 4, ml/c 2"},
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("3"), .priority = 1},
      {"d", .node = "n", .containers = PLAIN("1"), .priority = 9}},
     .pod = {"p", .containers = CPU("4", "1"), .priority = 9},
     .preview = "no node would take it even if all pods of a priority below 9 ended"},
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("4"), .priority = 9}},
     .pod = {"p", .containers = CPU("4", "1"), .priority = 9},
     .preview = "no pod where it may go has a lower priority than its own, 9"},
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .containers = PLAIN("4"), .priority = 1,
       .meta = "'deletionTimestamp':'2026-01-02T00:00:00Z',"}},
     .pod = {"p", .containers = CPU("4", "1"), .priority = 9, .status = "'nominatedNodeName':'n',"},
     .preview = "it waits until ml/c has ended on n"},
    {{{"n", .amounts = NARROW}},
     {{"c", .node = "n", .phase = "Succeeded", .containers = PLAIN("4")},
      {"d", .node = "n", .containers = PLAIN("4"), .priority = 1}},
     .pod = {"p", .containers = CPU("4", "1"), .priority = 9},
     .preview = "n: ml/d 1"},
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

static int n_asked; /* of no_answer, by explain's remedies too */

static enum outcome no_answer(struct cluster *base, struct json_arena *arena, const char *node,
                              int64_t deadline_ms, struct pod_view **ret_pods, size_t *ret_n,
                              GError **error)
{
    n_asked++;
    return OUTCOME_UNKNOWN;
}

static const struct cluster_ops without_answers = {
    .name = "objects", .get_pod = get_pod, .list_pods_on = no_answer};
static const struct cluster_ops without_lists = {.name = "objects", .get_pod = get_pod};

static void expect_without(const struct cluster_ops *ops, const char *expected)
{
    cluster.ops = ops;
    g_autoptr(explanation) explanation = explain("ml/p");
    expect_preview(explanation, expected);
    cluster.ops = &cluster_ops;
}

/* Nothing is said of pods that are not known. */
START_TEST(pods_without_a_gpu_that_cannot_be_read_are_said)
{
    add_node((struct said_node){"n", .amounts = NARROW});
    add_pod((struct said_pod){"c", .node = "n", .containers = PLAIN("4"), .priority = 1});
    add_pod((struct said_pod){"g", .node = "n", .containers = CPU("500m", "1"), .priority = 2,
                              .annotations = ON_CARD});
    add_pod((struct said_pod){"p", .containers = CPU("500m", "1"), .priority = 9});
    const char *const why = "on n pods without a GPU may have to end, and these were not read";
    expect_without(&without_answers, why);
    expect_without(&without_lists, why);
    /* Where only the card is short, they do not count. */
    add_pod((struct said_pod){"p", .mem = "10", .priority = 9});
    expect_without(&without_answers, "n: ml/g 2");
    add_node((struct said_node){"o", .amounts = NARROW});
    add_pod((struct said_pod){"d", .node = "o", .containers = PLAIN("4"), .priority = 1});
    add_pod((struct said_pod){"p", .containers = CPU("4", "1"), .priority = 9});
    n_asked = 0;
    expect_without(&without_answers, "on n and 1 more node pods without a GPU may have to end, and "
                                     "these were not read");
    ck_assert_int_eq(n_asked,
                     2); /* once for remedies, and once for this: the next one would wait as long */
    /* Nor where not even the end of all of them would help. */
    add_pod((struct said_pod){"p", .containers = CPU("4501m", "1"), .priority = 9});
    expect_without(&without_answers,
                   "no node would take it even if all pods of a priority below 9 ended");
}
END_TEST

START_TEST(so_many_nodes_are_read)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (int i = 0; i < CPU_VICTIMS_NODES_MAX + 2; i++) {
        g_autofree char *node = g_strdup_printf("n%02d", i), *pod = g_strdup_printf("c%02d", i);
        add_node((struct said_node){node, .amounts = NARROW});
        add_pod((struct said_pod){pod, .node = node, .containers = PLAIN("4"),
                                  .priority = CPU_VICTIMS_NODES_MAX + 2 - i});
    }
    add_pod((struct said_pod){"p", .containers = CPU("1", "1"), .priority = 99});
    g_autoptr(explanation) explanation = explain("ml/p");
    preview_write(text, explanation->preview);
    expect_text(text->str,
                "\nPreemption would end, on n15: ml/c15 (priority 3); pods without a GPU "
                "of 2 other nodes were not read.\n");
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
    expect_text(text->str, "\nPreemption would end, on n: ml/b (priority 2), ml/a (priority 1); 1 "
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
           "{'preemption':{'node':'n','whyNot':null,'budgetViolations':1,'nodesUnread':0,'pods':[{'"
           "namespace':'ml',"
           "'name':'b','priority':2,'idleSeconds':null},{'namespace':'ml','name':'a','priority':1,"
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
    tcase_add_test(tests, pods_without_a_gpu_that_cannot_be_read_are_said);
    tcase_add_test(tests, so_many_nodes_are_read);
    tcase_add_test(tests, people_read_a_line);
    tcase_add_test(tests, programs_read_an_object);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
