/* SPDX-License-Identifier: Apache-2.0 */
/* What explain says of a pod over all nodes: the verdict, the order of nodes, and where it is or would go. */
#include "explained_cluster.h"
#include "suite.h"

#define BROKEN                                                                                     \
    "{'metadata':{'namespace':'kube-system','name':'unhealthy-gpu-%s'},'data':{'gpus':'0'}}"

static const struct {
    struct said_pod pod;
    enum verdict verdict;
    const char *asks, *dialects, *failure;
} verdicts[] = {
    {{"p", .limits = "'cpu':'1'"}, VERDICT_NO_GPU},
    {{"p", .mem = "1.5"},
     VERDICT_INVALID,
     .failure = "container 'main': aliyun.com/gpu-mem: quantity '1.5' is not a whole number"},
    {{"p", .mem = "1", .annotations = "'gpuledger.io/gpu-memory-min':'much'"},
     VERDICT_INVALID,
     .failure = "annotation 'gpuledger.io/gpu-memory-min' is 'much': write an amount of memory, "
                "such as '10Gi'"},
    {{"p", .mem = "1"}, VERDICT_FITS, "1 unit of memory of one card", "gpushare"},
    {{"p", .mem = "11"}, VERDICT_REFUSED, "11 units of memory of one card", "gpushare"},
    {{"p", .limits = "'nvidia.com/gpu':'1'"},
     VERDICT_REFUSED,
     "1 nvidia.com/gpu",
     "nvidia, 4paradigm, hami"},
    {{"p", .node = "n", .card = "0", .mem = "3"},
     VERDICT_PLACED,
     "3 units of memory of one card",
     "gpushare"},
};

START_TEST(each_pod_has_its_verdict)
{
    add_node((struct said_node){"n"});
    add_pod(verdicts[_i].pod);
    g_autoptr(explanation) explanation = explain("ml/p");

    ck_assert_int_eq(explanation->verdict, verdicts[_i].verdict);
    expect_text(explanation->failure, verdicts[_i].failure);
    expect_text(explanation->asks, verdicts[_i].asks);
    expect_text(explanation->dialects, verdicts[_i].dialects);
    ck_assert_str_eq(explanation->ns, "ml");
    ck_assert_str_eq(explanation->name, "p");
    ck_assert(explanation->known);
    ck_assert_int_eq(explanation->remedies != NULL, explanation->verdict == VERDICT_REFUSED);
    ck_assert_int_eq(explanation->preview != NULL, explanation->verdict == VERDICT_REFUSED);
}
END_TEST

/* --- the order of nodes ------------------------------------------------------------------------ */

static void expect_group(const struct explanation *explanation, guint i, enum reason reason,
                         enum barrier barrier, guint n, const char *closest)
{
    ck_assert_uint_gt(explanation->groups->len, i);
    const struct explained_group *group =
        &g_array_index(explanation->groups, struct explained_group, i);
    const struct explained_node *node =
        &g_array_index(explanation->nodes, struct explained_node, group->closest);
    ck_assert_msg(group->reason == reason && group->barrier == barrier && group->n == n,
                  "%u: %s %d %u", i, reason_info(group->reason)->code, group->barrier, group->n);
    ck_assert_str_eq(node->name, closest);
}

/* What takes the pod, what would if kube-scheduler asked, what may change, what may not; the least lack
 * first. */
START_TEST(the_closest_nodes_come_first)
{
    add_node((struct said_node){"cpu", .amounts = "'cpu':'8'"});
    add_node((struct said_node){"hami",
                                .annotations = "'" REGISTER "':'GPU-a,4,10240,100,T4,0,true:'",
                                .amounts = "'nvidia.com/gpu':'4'"});
    add_node((struct said_node){"broken", .amounts = MONO});
    feed(FEED_CONFIGMAPS, false, BROKEN, "broken");
    add_node((struct said_node){"full", .amounts = MONO});
    hold("a", "full", "0", "7");
    add_node((struct said_node){"nearly", .amounts = MONO});
    hold("b", "nearly", "0", "5");
    add_node(
        (struct said_node){"slots", .annotations = "'gpuledger.io/slots':'1'", .amounts = MONO});
    hold("d", "slots", "0", "1");
    add_node((struct said_node){"closed", .spec = "'unschedulable':true"});
    add_node((struct said_node){"closed-full", .spec = "'unschedulable':true", .amounts = MONO});
    hold("c", "closed-full", "0", "7");
    add_node((struct said_node){"free-b"});
    add_node((struct said_node){"free-a"});
    add_pod((struct said_pod){"p", .mem = "6"});
    static const char *const order[] = {"free-a", "free-b", "closed", "nearly",      "full",
                                        "slots",  "broken", "hami",   "closed-full", "cpu"};

    g_autoptr(explanation) explanation = explain("ml/p");
    ck_assert_uint_eq(explanation->n_nodes, G_N_ELEMENTS(order));
    ck_assert_uint_eq(explanation->n_taking, 2);
    for (size_t i = 0; i < G_N_ELEMENTS(order); i++)
        ck_assert_str_eq(g_array_index(explanation->nodes, struct explained_node, i).name,
                         order[i]);
    ck_assert_uint_eq(explanation->groups->len, 8);
    expect_group(explanation, 0, REASON_NONE, BARRIER_NONE, 2, "free-a");
    expect_group(explanation, 1, REASON_NONE, BARRIER_CORDONED, 1, "closed");
    expect_group(explanation, 2, REASON_INSUFFICIENT_MEMORY, BARRIER_NONE, 2, "nearly");
    expect_group(explanation, 3, REASON_NODE_SLOTS, BARRIER_NONE, 1, "slots");
    expect_group(explanation, 4, REASON_CARD_UNHEALTHY, BARRIER_NONE, 1, "broken");
    expect_group(explanation, 5, REASON_OTHER_DIALECT, BARRIER_NONE, 1, "hami");
    expect_group(explanation, 6, REASON_INSUFFICIENT_MEMORY, BARRIER_CORDONED, 1, "closed-full");
    expect_group(explanation, 7, REASON_NOT_GPU_SHARE, BARRIER_NONE, 1, "cpu");
    ck_assert_int_eq(explained(explanation, "nearly")->lack, INT64_C(1) << 30);
    ck_assert_int_eq(explained(explanation, "full")->lack, INT64_C(3) << 30);
}
END_TEST

/* A node that kube-scheduler does not offer takes nothing. */
START_TEST(a_node_behind_a_barrier_takes_no_pod)
{
    add_node((struct said_node){"n", .spec = "'unschedulable':true"});
    add_pod((struct said_pod){"p", .mem = "6"});
    g_autoptr(explanation) explanation = explain("ml/p");
    ck_assert_int_eq(explanation->verdict, VERDICT_REFUSED);
    ck_assert_uint_eq(explanation->n_taking, 0);
    ck_assert_int_eq(explained(explanation, "n")->barrier, BARRIER_CORDONED);
    ck_assert_ptr_null(explanation->place.node);
}
END_TEST

/* Pods may be bound to a Node that is gone. */
START_TEST(a_node_that_is_gone_is_not_asked)
{
    add_node((struct said_node){"n"});
    hold("lost", "gone", "0", "1");
    add_pod((struct said_pod){"p", .mem = "6"});
    g_autoptr(explanation) explanation = explain("ml/p");
    ck_assert_uint_eq(explanation->n_nodes, 1);
    ck_assert_uint_eq(explanation->nodes->len, 1);
}
END_TEST

START_TEST(not_all_nodes_are_described)
{
    for (int i = 0; i < EXPLAIN_NODES_MAX + 3; i++) {
        g_autofree char *name = g_strdup_printf("n%04d", i);
        add_node((struct said_node){name, .amounts = MONO});
    }
    add_pod((struct said_pod){"p", .mem = "3"});
    g_autoptr(explanation) explanation = explain("ml/p");
    ck_assert_uint_eq(explanation->n_nodes, EXPLAIN_NODES_MAX + 3);
    ck_assert_uint_eq(explanation->n_taking, EXPLAIN_NODES_MAX + 3);
    g_autoptr(GString) text = g_string_new(NULL);
    explanation_write(text, explanation, true);
    ck_assert_ptr_nonnull(strstr(text->str, "n0499     0  has room"));
    ck_assert_ptr_null(strstr(text->str, "n0500 "));
    ck_assert(g_str_has_suffix(text->str, "\n3 more nodes are counted above\n"));
}
END_TEST

/* --- where it is, or would go ------------------------------------------------------------------ */

START_TEST(the_policy_chooses)
{
    begin_with((struct store_options){.policy = policy_find(_i ? "spread" : "binpack")});
    add_node((struct said_node){"empty"});
    add_node((struct said_node){"used"});
    hold("a", "used", "1", "5");
    add_pod((struct said_pod){"p", .mem = "4"});
    g_autoptr(explanation) explanation = explain("ml/p");
    ck_assert_str_eq(explanation->place.node, _i ? "empty" : "used");
    ck_assert_str_eq(explanation->place.cards, _i ? "card 0 (4GiB)" : "card 1 (4GiB)");
    ck_assert_str_eq(explanation->place.state, _i ? "spread" : "binpack");
}
END_TEST

static const struct {
    struct said_pod pod;
    const char *cards, *state;
    int64_t since_s;
} places[] = {
    {{"p", .node = "n", .card = "1", .mem = "3"},
     "card 1 (3GiB)",
     "assigned: its node side has taken it",
     1767225600},
    {{"p", .node = "n", .card = "1", .mem = "3", .unmatched = true},
     "card 1 (3GiB)",
     "waiting for its node side to take it",
     1767225600},
    {{"p", .node = "n", .limits = "'" MEM "':'3'"},
     "",
     "bound; no card is written: another scheduler has bound it",
     0},
    {{"p", .node = "n", .limits = "'" MEM "':'3'",
      .annotations = "'ALIYUN_COM_GPU_MEM_IDX':'x','ALIYUN_COM_GPU_MEM_ASSIGNED':'true'"},
     "no known card (3GiB on each)",
     "assigned: its node side has taken it; the annotation with its card cannot be read",
     0},
};

START_TEST(a_pod_is_where_it_is)
{
    add_node((struct said_node){"n"});
    hold("other", "n", "0", "1");
    add_pod(places[_i].pod);
    g_autoptr(explanation) explanation = explain("ml/p");
    ck_assert_int_eq(explanation->verdict, VERDICT_PLACED);
    ck_assert_str_eq(explanation->place.node, "n");
    expect_text(explanation->place.cards, places[_i].cards);
    expect_text(explanation->place.state, places[_i].state);
    ck_assert_int_eq(explanation->place.since_ns / 1000000000, places[_i].since_s);
    ck_assert_uint_eq(explanation->nodes->len, 0);
}
END_TEST

static void expect_neighbours(const char *key, const char *expected)
{
    g_autoptr(explanation) explanation = explain(key);
    g_autoptr(GString) names = g_string_new(NULL);

    for (guint i = 0; i < explanation->place.neighbours->len; i++)
        g_string_append_printf(names, "%s%s", i ? "," : "",
                               (char *)explanation->place.neighbours->pdata[i]);
    ck_assert_str_eq(names->str, expected);
}

START_TEST(neighbours_are_on_the_same_cards)
{
    add_node((struct said_node){"n"});
    add_node((struct said_node){"m"});
    hold("p", "n", "0", "1");
    hold("a", "n", "0", "2");
    hold("b", "n", "1", "2");
    hold("c", "m", "0", "2");
    add_pod((struct said_pod){"p", .ns = "web", .node = "n", .card = "0", .mem = "3"});
    expect_neighbours("ml/p", "ml/a,web/p");
    expect_neighbours("ml/b", "");
    /* Of devices by count no card is known: the pool counts. */
    add_node((struct said_node){"d", .amounts = "'nvidia.com/gpu':'4'"});
    add_pod((struct said_pod){"x", .node = "d", .limits = "'nvidia.com/gpu':'1'"});
    add_pod((struct said_pod){"y", .node = "d", .limits = "'nvidia.com/gpu':'2'"});
    expect_neighbours("ml/x", "ml/y");
}
END_TEST

/* --- what kube-scheduler does besides ------------------------------------------------------------ */

START_TEST(a_gate_holds_a_pod_back)
{
    add_node((struct said_node){"n"});
    add_pod((struct said_pod){"p", .mem = "1",
                              .spec = "'schedulingGates':[{'name':'example.com/wait'}],"});
    g_autoptr(explanation) explanation = explain("ml/p");
    ck_assert_int_eq(explanation->verdict, VERDICT_FITS);
    ck_assert_msg(explanation->held_back && strstr(explanation->held_back, "example.com/wait"),
                  "%s", explanation->held_back);
}
END_TEST

START_TEST(what_kube_scheduler_alone_looks_at_is_named)
{
    add_node((struct said_node){"n"});
    add_pod((struct said_pod){"p", .mem = "1",
                              .spec = "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z',"
                                      "'whenUnsatisfiable':'DoNotSchedule'}],"});
    g_autoptr(explanation) explanation = explain("ml/p");
    g_autoptr(GString) text = g_string_new(NULL);
    ck_assert_uint_ne(explanation->overlooked, 0);
    explanation_write(text, explanation, false);
    ck_assert_msg(strstr(text->str, "\nNot looked at: topologySpreadConstraints"), "%s", text->str);
}
END_TEST

/* --- reading it ---------------------------------------------------------------------------------- */

START_TEST(a_pod_that_cannot_be_read_is_an_error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view view;

    ck_assert(!explain_read_pod(&cluster, arena, "ml", "none", 1, &view, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND));
    ck_assert_str_eq(error->message, "there is no pod 'ml/none'");
    hold("p", "n", "0", "1");
    ck_assert(explain_read_pod(&cluster, arena, "ml", "p", 1, &view, NULL));
    ck_assert_str_eq(view.uid, "ml/p");
}
END_TEST

static enum outcome get_nothing(struct cluster *base, struct json_arena *arena, const char *ns,
                                const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                                GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNKNOWN, "timed out");
    return OUTCOME_UNKNOWN;
}

START_TEST(an_api_server_that_does_not_answer_is_an_error)
{
    static const struct cluster_ops silent_ops = {.get_pod = get_nothing};
    struct cluster silent = {&silent_ops};
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view view;

    ck_assert(!explain_read_pod(&silent, arena, "ml", "p", 1, &view, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE));
    ck_assert_str_eq(error->message, "pod 'ml/p' cannot be read: timed out");
}
END_TEST

/* --- as people see it ---------------------------------------------------------------------------- */

static void populate(void)
{
    add_node((struct said_node){"n1"});
    add_node((struct said_node){"n2", .amounts = MONO});
    add_node((struct said_node){"n3", .spec = "'unschedulable':true"});
    hold("a", "n1", "0", "6");
    hold("c", "n1", "1", "5");
    add_pod(
        (struct said_pod){.name = "d", .node = "n2", .card = "0", .mem = "3", .meta = REPLICA_SET});
    add_pod((struct said_pod){"p", .mem = "8"});
}

static const char refused[] =
    "ml/p wants 8 units of memory of one card (gpushare): none of 3 nodes takes it\n\n"
    "NODES  REASON                CLOSEST  WHY\n"
    "    1  cordoned              n3       cordoned; else it takes the pod\n"
    "    2  insufficient_memory   n2       card 0: wants 8GiB, 7GiB free of 10GiB; held by ml/d "
    "(3GiB)\n\n"
    "Preemption ends nobody: no pod where it may go has a lower priority than its own, 0.\n\n"
    "ANY OF THESE WOULD ADMIT IT\n"
    "    1  uncordon n3; it would go to n3\n"
    "    2  ask for 7 aliyun.com/gpu-mem instead of 8 in container main; it would go to n2\n"
    "    3  move ml/d to n1; it would go to n2\n\n"
    "'gpuledger plan ml/p' shows moves that make room for it, step by step; with --apply it makes "
    "them.\n"
    "'gpuledger plan ml/p --only ml/d' keeps to the pods of 3.\n\n"
    "NODE  CARD  REASON                WHY\n"
    "n3       *  cordoned              cordoned; else it takes the pod\n"
    "n3       0  has room              has room: wants 8GiB, 10GiB free of 10GiB\n"
    "n3       1  has room              has room: wants 8GiB, 10GiB free of 10GiB\n"
    "n2       *  insufficient_memory   card 0: wants 8GiB, 7GiB free of 10GiB; held by ml/d "
    "(3GiB)\n"
    "n2       0  insufficient_memory   wants 8GiB, 7GiB free of 10GiB; held by ml/d (3GiB)\n"
    "n1       *  insufficient_memory   card 1: wants 8GiB, 5GiB free of 10GiB; held by ml/c "
    "(5GiB)\n"
    "n1       0  insufficient_memory   wants 8GiB, 4GiB free of 10GiB; held by ml/a (6GiB)\n"
    "n1       1  insufficient_memory   wants 8GiB, 5GiB free of 10GiB; held by ml/c (5GiB)\n";

START_TEST(a_refused_pod_is_a_table)
{
    g_autoptr(GString) text = g_string_new(NULL);

    populate();
    g_autoptr(explanation) explanation = explain("ml/p");
    explanation_write(text, explanation, true);
    expect_text(text->str, refused);
}
END_TEST

static void expect_written(const char *key, const char *expected)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(explanation) explanation = explain(key);

    explanation_write(text, explanation, false);
    expect_text(text->str, expected);
}

START_TEST(other_pods_are_a_few_lines)
{
    populate();
    hold("e", "n1", "0", "1");
    expect_written("ml/a", "ml/a is on n1, card 0 (6GiB)\n\n"
                           "STATE       assigned: its node side has taken it\n"
                           "SINCE       2026-01-01T00:00:00Z\n"
                           "BESIDE      ml/e\n");
    expect_written("ml/d", "ml/d is on n2, card 0 (3GiB)\n\n"
                           "STATE       assigned: its node side has taken it\n"
                           "SINCE       2026-01-01T00:00:00Z\n"
                           "BESIDE      nobody\n");
    add_pod((struct said_pod){"p", .mem = "7"});
    expect_written("ml/p",
                   "ml/p wants 7 units of memory of one card (gpushare): 1 of 3 nodes takes it, "
                   "first by binpack is n2, card 0 (7GiB)\n\n"
                   "NODES  REASON                CLOSEST  WHY\n"
                   "    1  takes it              n2       takes the pod\n"
                   "    1  cordoned              n3       cordoned; else it takes the pod\n"
                   "    1  insufficient_memory   n1       card 1: wants 7GiB, 5GiB free of 10GiB; "
                   "held by ml/c (5GiB)\n");
    add_pod((struct said_pod){"p", .limits = "'cpu':'1'"});
    expect_written("ml/p", "ml/p asks for no GPU: gpuledger keeps it from no node\n");
    add_pod((struct said_pod){"p", .mem = "x"});
    expect_written("ml/p", "ml/p is refused everywhere: container 'main': aliyun.com/gpu-mem: "
                           "quantity 'x' is not a number with an optional suffix such as k, M, "
                           "Gi\n");
}
END_TEST

static const char as_json[] =
    "{'namespace':'ml','name':'p','verdict':'refused','summary':'ml/p wants 8 units of "
    "memory of one card (gpushare): the only node does not take it','asks':'8 units of "
    "memory of one card','dialects':'gpushare','failure':null,'place':null,"
    "'notLookedAt':[],'heldBack':null,'nodesTotal':1,'nodesTaking':0,"
    "'groups':[{'reason':'terms','text':'The node has no GPU of the kind that the pod "
    "asks for','cordoned':false,'barrier':null,'nodes':1,'closest':'n','why':'has no "
    "label nvidia.com/cuda.driver-version.major, which the pod's "
    "gpuledger.io/gpu-driver-min needs'}],"
    "'nodes':[{'name':'n','reason':'terms','why':'has no label "
    "nvidia.com/cuda.driver-version.major, which the pod's gpuledger.io/gpu-driver-min "
    "needs','cordoned':false,'barrier':null,'waits':false,"
    "'cards':[{'index':0,'reason':'insufficient_memory','why':'wants 8GiB, 4GiB free of "
    "10GiB; held by ml/a (6GiB)','healthy':true,'memoryBytes':{'wants':8589934592,"
    "'free':4294967296,'of':10737418240},'coreThousandths':{'wants':0,'free':1000,"
    "'of':1000},'pods':['ml/a']}]}],'remedies':[],"
    "'pairs':[{'node':'n','changes':[{'kind':'less','text':'ask for 4 aliyun.com/gpu-mem "
    "instead of 8 in container main','node':'n','container':'main',"
    "'resource':'aliyun.com/gpu-mem','key':null,'from':'8','to':'4','containers':[],"
    "'card':null,'pods':[]},"
    "{'kind':'condition','text':'take away the annotation gpuledger.io/gpu-driver-min: "
    "550','node':'n','container':null,'resource':null,"
    "'key':'gpuledger.io/gpu-driver-min','from':'550','to':null,'containers':[],"
    "'card':null,'pods':[]}]},"
    "{'node':'n','changes':[{'kind':'less','text':'ask for 4 aliyun.com/gpu-mem instead "
    "of 8 in container main','node':'n','container':'main',"
    "'resource':'aliyun.com/gpu-mem','key':null,'from':'8','to':'4','containers':[],"
    "'card':null,'pods':[]},"
    "{'kind':'label','text':'let GPU Feature Discovery label n "
    "(nvidia.com/cuda.driver-version.major), if its GPUs are such','node':'n',"
    "'container':null,'resource':null,'key':'nvidia.com/cuda.driver-version.major',"
    "'from':null,'to':null,'containers':[],'card':null,'pods':[]}]}],"
    "'preemption':{'node':null,'whyNot':'no pod where it may go has a lower priority "
    "than its own, 0','budgetViolations':0,'nodesUnread':0,'pods':[]},'reclaim':null,'group':null,"
    "'class':null,'quota':null,'nodesOmitted':0}";

START_TEST(programs_get_the_same)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    add_node((struct said_node){"n", .amounts = MONO});
    hold("a", "n", "0", "6");
    add_pod(
        (struct said_pod){"p", .mem = "8", .annotations = "'gpuledger.io/gpu-driver-min':'550'"});
    g_autoptr(explanation) explanation = explain("ml/p");
    json_writer_init(&writer, text);
    explanation_encode(&writer, explanation);
    g_strdelimit(text->str, "\"", '\'');
    expect_text(text->str, as_json);
}
END_TEST

/* Everything is tried on copies. */
START_TEST(nothing_is_changed)
{
    populate();
    add_pod((struct said_pod){"q", .mem = "8", .annotations = "'gpuledger.io/gpu-models':'A100'"});
    const uint64_t freed = ledger_freed(store_lock(told));
    const size_t size = ledger_size(store_ledger(told));
    store_unlock(told);
    explanation_free(explain("ml/p"));
    explanation_free(explain("ml/q"));
    explanation_free(explain("ml/a"));
    ck_assert_uint_eq(ledger_freed(store_lock(told)), freed);
    ck_assert_uint_eq(ledger_size(store_ledger(told)), size);
    ck_assert(ledger_node(store_ledger(told), "n3")->cordoned);
    store_unlock(told);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_pod");
    TCase *tests = tcase_create("pod");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, each_pod_has_its_verdict, 0, G_N_ELEMENTS(verdicts));
    tcase_add_test(tests, the_closest_nodes_come_first);
    tcase_add_test(tests, a_node_behind_a_barrier_takes_no_pod);
    tcase_add_test(tests, a_node_that_is_gone_is_not_asked);
    tcase_add_test(tests, not_all_nodes_are_described);
    tcase_add_loop_test(tests, the_policy_chooses, 0, 2);
    tcase_add_loop_test(tests, a_pod_is_where_it_is, 0, G_N_ELEMENTS(places));
    tcase_add_test(tests, neighbours_are_on_the_same_cards);
    tcase_add_test(tests, a_gate_holds_a_pod_back);
    tcase_add_test(tests, what_kube_scheduler_alone_looks_at_is_named);
    tcase_add_test(tests, a_pod_that_cannot_be_read_is_an_error);
    tcase_add_test(tests, an_api_server_that_does_not_answer_is_an_error);
    tcase_add_test(tests, a_refused_pod_is_a_table);
    tcase_add_test(tests, other_pods_are_a_few_lines);
    tcase_add_test(tests, programs_get_the_same);
    tcase_add_test(tests, nothing_is_changed);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
