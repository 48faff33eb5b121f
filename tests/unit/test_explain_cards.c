/* SPDX-License-Identifier: Apache-2.0 */
/* What explain says of cards: why each refuses a pod, with the numbers, and which of them tells it. */
#include "explained_reason.h"
#include "suite.h"

#define OVERSUBSCRIBED "GPU-a,4,16384,100,Tesla T4,0,true,0,hami-core:"

static const struct explained_reason rows[] = {
    {.node = {"n"}, .pod = {"p", .mem = "10"}, .reason = REASON_NONE, .why = "takes the pod"},
    {.node = {"n"},
     .holders = {{"a", .node = "n", .card = "0", .mem = "6"},
                 {"b", .node = "n", .card = "0", .mem = "4"},
                 {"c", .node = "n", .card = "1", .mem = "5"}},
     .pod = {"p", .mem = "8"},
     .reason = REASON_INSUFFICIENT_MEMORY,
     .why = "card 1: wants 8GiB, 5GiB free of 10GiB; held by ml/c (5GiB)"},
    {.node = {"n"},
     .holders = {{"a", .node = "n", .card = "0", .mem = "6"},
                 {"b", .node = "n", .card = "0", .mem = "1", .ns = "web"},
                 {"c", .node = "n", .card = "1", .mem = "8"}},
     .pod = {"p", .mem = "4"},
     .reason = REASON_INSUFFICIENT_MEMORY,
     .why = "card 0: wants 4GiB, 3GiB free of 10GiB; held by ml/a (6GiB), web/b (1GiB)"},
    /* No card is known for it, so it counts on each. */
    {.node = {"n"},
     .holders = {{"a", .node = "n", .card = "0", .mem = "6"},
                 {"lost", .node = "n", .limits = "'" MEM "':'5'"}},
     .options = {.dialects = {.unplaced_everywhere = 1}},
     .pod = {"p", .mem = "6"},
     .reason = REASON_INSUFFICIENT_MEMORY,
     .why = "card 1: wants 6GiB, 5GiB free of 10GiB; held by ml/lost (5GiB)"},
    {.node = {"n"},
     .pod = {"p", .mem = "12"},
     .reason = REASON_CARD_TOO_SMALL,
     .why = "card 0: wants 12GiB, the card has 10GiB in all"},
    /* The largest card lacks least. */
    {.node = HAMI("GPU-a,4,4096,100,T4,0,true:GPU-b,4,8192,100,T4,0,true:", ""),
     .pod = {"p", .limits = VGPU("9216", "10")},
     .reason = REASON_CARD_TOO_SMALL,
     .why = "card 1: wants 9GiB, the card has 8GiB in all"},
    {.node = HAMI(OVERSUBSCRIBED, ",'gpuledger.io/physical-memory':'*=10Gi'"),
     .holders = {{"a", .node = "n", .limits = VGPU("4096", "10"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,4096,10:;")}},
     .pod = {"p", .limits = VGPU("8192", "10")},
     .reason = REASON_OVERSUBSCRIBED,
     .why = "card 0: wants 8GiB, 6GiB free of the 10GiB that it really has; beyond that the pod "
            "would have to accept oversubscribed memory (gpuledger.io/oversubscribe); held by ml/a "
            "(4GiB)"},
    {.node = HAMI(OVERSUBSCRIBED, ",'gpuledger.io/physical-memory':'*=10Gi'"),
     .pod = {"p", .limits = VGPU("12288", "10")},
     .reason = REASON_CARD_TOO_SMALL,
     .why = "card 0: wants 12GiB, the card really has 10GiB in all"},
    {.node = HAMI(OVERSUBSCRIBED, ",'gpuledger.io/physical-memory':'*=10Gi'"),
     .pod = {"p", .limits = VGPU("20480", "10")},
     .reason = REASON_CARD_TOO_SMALL,
     .why = "card 0: wants 20GiB, the card has 16GiB in all"},
    /* Several device plugins read the resource; that of the node wants a share of a card. */
    {.node = HAMI("GPU-a,4,10240,100,Tesla T4,0,true:", ""),
     .holders = {{"a", .node = "n", .limits = VGPU("2048", "10"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,2048,10:;")}},
     .pod = {"p", .limits = WHOLE("1")},
     .reason = REASON_INSUFFICIENT_MEMORY,
     .why = "card 0: wants 10GiB, 8GiB free of 10GiB; held by ml/a (2GiB)"},
    {.node = HAMI("GPU-a,4,10240,100,Tesla T4,0,true:", ""),
     .holders = {{"a", .node = "n", .limits = VGPU("2048", "10"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,2048,10:;")}},
     .pod = {"p", .containers =
                      "{'name':'c','env':[{'name':'CUDA_DISABLE_CONTROL','value':'true'}],"
                      "'resources':{'limits':{" VGPU("1", "1") "}}}"},
     .reason = REASON_UNLIMITED,
     .why = "card 0: a container of the pod sets CUDA_DISABLE_CONTROL, so that nothing holds it to "
            "its part: it needs the card alone; held by ml/a (2GiB)"},
    /* --- closed ----------------------------------------------------------------------------- */
    {.node = {"n", .amounts = MONO},
     .objects = {{FEED_CONFIGMAPS,
                  "{'metadata':{'namespace':'kube-system','name':'unhealthy-gpu-n'},"
                  "'data':{'gpus':'0'}}"}},
     .pod = {"p", .mem = "1"},
     .reason = REASON_CARD_UNHEALTHY,
     .why = "card 0: a ConfigMap says that it is unhealthy"},
    {.node = HAMI("GPU-a,1,10240,100,Tesla T4,0,false:", ""),
     .pod = {"p", .limits = VGPU("1024", "10")},
     .reason = REASON_CARD_UNHEALTHY,
     .why = "card 0: its node side says that it is unhealthy"},
    {.node = {"n", .annotations = "'gpuledger.io/cordoned-cards':'0'", .amounts = MONO},
     .pod = {"p", .mem = "1"},
     .reason = REASON_CARD_CLOSED,
     .why = "card 0: it is cordoned by an annotation of the node"},
    {.node = {"n", .annotations = "'gpuledger.io/cordoned-cards':'1=of:2'", .amounts = MONO},
     .pod = {"p", .mem = "1"},
     .reason = REASON_CARD_CLOSED,
     .why = "card 0: it may be a card that the node's gpuledger.io/cordoned-cards names"},
    {.node = {"n", .annotations = "'gpuledger.io/slots':'x'", .amounts = MONO},
     .pod = {"p", .mem = "1"},
     .reason = REASON_CARD_CLOSED,
     .why = "card 0: the node's gpuledger.io/slots cannot be read"},
    /* --- holders ---------------------------------------------------------------------------- */
    {.node = {"n", .annotations = "'gpuledger.io/slots':'1'", .amounts = MONO},
     .holders = {{"a", .node = "n", .card = "0", .mem = "2"}},
     .pod = {"p", .mem = "1"},
     .reason = REASON_NODE_SLOTS,
     .why = "card 0: 1 holders of at most 1 by the node's gpuledger.io/slots; held by ml/a (2GiB)"},
    {.node = HAMI("GPU-a,2,10240,100,Tesla T4,0,true:", ""),
     .holders = {{"a", .node = "n", .limits = VGPU("2048", "10"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,2048,10:;")},
                 {"b", .node = "n", .limits = VGPU("3072", "10"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,3072,10:;")}},
     .pod = {"p", .limits = VGPU("1024", "10")},
     .reason = REASON_NO_SLOT,
     .why = "card 0: 2 holders of at most 2; held by ml/a (2GiB), ml/b (3GiB)"},
    {.node = HAMI("GPU-a,4,10240,100,Tesla T4,0,true:", ""),
     .options = {.dialects = {.tenant_isolation = ISOLATION_KERNEL}},
     .holders = {{"a", .node = "n", .ns = "web", .limits = VGPU("2048", "10"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,2048,10:;")}},
     .pod = {"p", .limits = VGPU("1024", "10")},
     .reason = REASON_OTHER_TENANT,
     .why = "card 0: pods of another namespace share it; held by web/a (2GiB)"},
    {.node = {"n", .amounts = MONO},
     .classes = "'default'",
     .holders = {{"t", .node = "n", .card = "0", .mem = "2",
                  .spec = "'priorityClassName':'training',"}},
     .pod = {"p", .mem = "1", .spec = "'priorityClassName':'inference',"},
     .reason = REASON_OTHER_CLASS,
     .why = "card 0: its holders and pods of class 'inference' are not put together; held by ml/t "
            "(2GiB)"},
    {.node = {"n", .amounts = MONO},
     .classes = "'default'",
     .holders = {{"t", .node = "n", .card = "0", .mem = "2",
                  .spec = "'priorityClassName':'training',"}},
     .pod = {"p", .mem = "1"},
     .reason = REASON_OTHER_CLASS,
     .why = "card 0: its holders' class shares no card with pods of no class; held by ml/t (2GiB)"},
    /* --- compute ---------------------------------------------------------------------------- */
    {.node = HAMI(T4, ""),
     .holders = {{"a", .node = "n", .limits = VGPU("2048", "70"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,2048,70:;")},
                 {"b", .node = "n", .limits = VGPU("2048", "60"),
                  .annotations = ON_HAMI("GPU-b,NVIDIA,2048,60:;")}},
     .pod = {"p", .limits = VGPU("1024", "50")},
     .reason = REASON_INSUFFICIENT_CORE,
     .why = "card 1: wants 50% of the compute, 40% free of 100%; held by ml/b (2GiB)"},
    {.node = HAMI("GPU-a,4,10240,100,Tesla T4,0,true:", ""),
     .holders = {{"a", .node = "n", .limits = VGPU("2048", "60"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,2048,60:;")},
                 {"b", .node = "n", .limits = VGPU("1024", "40"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,1024,40:;")}},
     .pod = {"p", .limits = VGPU("1024", "0")},
     .reason = REASON_INSUFFICIENT_CORE,
     .why = "card 0: none of its compute is free; held by ml/a (2GiB), ml/b (1GiB)"},
    /* All of the compute is the card alone. */
    {.node = HAMI("GPU-a,4,10240,100,Tesla T4,0,true:", ""),
     .holders = {{"a", .node = "n", .limits = VGPU("2048", "60"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,2048,60:;")},
                 {"b", .node = "n", .limits = VGPU("1024", "10"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,1024,10:;")}},
     .pod = {"p", .limits = VGPU("1024", "100")},
     .reason = REASON_INSUFFICIENT_MEMORY,
     .why = "card 0: wants it alone, it has 2 holders; held by ml/a (2GiB), ml/b (1GiB)"},
    {.node = {"n", .amounts = "'tencent.com/vcuda-core':'100','tencent.com/vcuda-memory':'40'"},
     .holders = {{"a", .node = "n",
                  .limits = "'tencent.com/vcuda-core':'20','tencent.com/vcuda-memory':'8'",
                  .annotations = "'tencent.com/predicate-gpu-idx-0':'0',"
                                 "'tencent.com/gpu-assigned':'true'"}},
     .pod = {"p", .limits = "'tencent.com/vcuda-core':'100'"},
     .reason = REASON_INSUFFICIENT_MEMORY,
     .why = "card 0: wants it alone, it has 1 holder; held by ml/a (2GiB)"},
    {.node = {"n", .amounts = "'tencent.com/vcuda-core':'100','tencent.com/vcuda-memory':'40'"},
     .holders = {{"a", .node = "n", .limits = "'tencent.com/vcuda-core':'100'",
                  .annotations = "'tencent.com/predicate-gpu-idx-0':'0',"
                                 "'tencent.com/gpu-assigned':'true'"}},
     .pod = {"p", .limits = "'tencent.com/vcuda-core':'10','tencent.com/vcuda-memory':'4'"},
     .reason = REASON_INSUFFICIENT_MEMORY,
     .why = "card 0: somebody has it alone; held by ml/a (100% of the compute)"},
    /* --- terms ------------------------------------------------------------------------------ */
    {.node = {"n"},
     .pod = {"p", .mem = "2", .annotations = "'gpuledger.io/gpu-memory-min':'16Gi'"},
     .reason = REASON_TERMS,
     .why = "card 0: the pod accepts cards from 16GiB on, it has 10GiB"},
    {.node = HAMI(T4, ""),
     .pod = {"p", .limits = VGPU("1024", "10"), .annotations = "'gpuledger.io/gpu-models':'A100'"},
     .reason = REASON_TERMS,
     .why = "card 0: the pod does not accept its model, Tesla T4"},
    {.node = {"n"},
     .pod = {"p", .mem = "2", .annotations = "'gpuledger.io/gpu-models':'A100'"},
     .reason = REASON_TERMS,
     .why = "card 0: the pod does not accept its model, which is not known"},
};

START_TEST(each_reason_has_its_sentence)
{
    expect_reason(&rows[_i]);
}
END_TEST

/* Of many holders the first are named, and all are counted. */
START_TEST(many_holders_are_counted)
{
    begin();
    add_node((struct said_node){"n", .amounts = MONO});
    for (int i = 0; i < EXPLAIN_PODS_MAX + 2; i++) {
        g_autofree char *name = g_strdup_printf("h%d", i);
        hold(name, "n", "0", "1");
    }
    add_pod((struct said_pod){"p", .mem = "1"});
    g_autoptr(explanation) explanation = explain("ml/p");
    expect_text(
        explained(explanation, "n")->why,
        "card 0: wants 1GiB, 0GiB free of 10GiB; held by ml/h0 (1GiB), ml/h1 (1GiB), ml/h2 "
        "(1GiB), ml/h3 (1GiB), ml/h4 (1GiB), ml/h5 (1GiB), ml/h6 (1GiB), ml/h7 (1GiB) and 2 "
        "more");
}
END_TEST

static const struct explained_card *card_of(const struct explained_node *node, guint i)
{
    ck_assert_uint_gt(node->cards->len, i);
    return &g_array_index(node->cards, struct explained_card, i);
}

/* Whatever the node says, each card says what it has. */
START_TEST(each_card_is_described)
{
    begin();
    add_node((struct said_node)HAMI(T4, ""));
    add_pod((struct said_pod){"a", .node = "n", .limits = VGPU("2048", "70"),
                              .annotations = ON_HAMI("GPU-a,NVIDIA,2048,70:;")});
    add_pod((struct said_pod){"p", .limits = VGPU("1024", "50")});
    g_autoptr(explanation) explanation = explain("ml/p");
    const struct explained_node *node = explained(explanation, "n");

    ck_assert_int_eq(node->reason, REASON_NONE);
    ck_assert_uint_eq(node->cards->len, 2);
    const struct explained_card *first = card_of(node, 0), *second = card_of(node, 1);
    ck_assert_int_eq(first->index, 0);
    ck_assert_int_eq(first->reason, REASON_INSUFFICIENT_CORE);
    expect_text(first->why, "wants 50% of the compute, 30% free of 100%; held by ml/a (2GiB)");
    ck_assert_int_eq(first->memory, INT64_C(10) << 30);
    ck_assert_int_eq(first->memory_free, INT64_C(8) << 30);
    ck_assert_int_eq(first->memory_wants, INT64_C(1) << 30);
    ck_assert_int_eq(first->core, 1000);
    ck_assert_int_eq(first->core_free, 300);
    ck_assert_int_eq(first->core_wants, 500);
    ck_assert(first->healthy);
    ck_assert_uint_eq(first->pods->len, 1);
    ck_assert_str_eq(first->pods->pdata[0], "ml/a");
    ck_assert_int_eq(second->index, 1);
    ck_assert_int_eq(second->reason, REASON_NONE);
    expect_text(second->why, "has room: wants 1GiB, 10GiB free of 10GiB");
    ck_assert_uint_eq(second->pods->len, 0);
}
END_TEST

START_TEST(a_card_that_is_broken_is_described_as_such)
{
    begin();
    add_node((struct said_node)HAMI("GPU-a,4,10240,100,Tesla T4,0,true:"
                                    "GPU-b,4,10240,100,Tesla T4,0,false:",
                                    ""));
    add_pod((struct said_pod){"p", .limits = VGPU("1024", "50")});
    g_autoptr(explanation) explanation = explain("ml/p");
    const struct explained_node *node = explained(explanation, "n");

    ck_assert_int_eq(node->reason, REASON_NONE);
    ck_assert(card_of(node, 0)->healthy && !card_of(node, 1)->healthy);
    ck_assert_int_eq(card_of(node, 1)->reason, REASON_CARD_UNHEALTHY);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_cards");
    TCase *tests = tcase_create("cards");

    tcase_add_checked_fixture(tests, NULL, end_classes);
    tcase_add_loop_test(tests, each_reason_has_its_sentence, 0, G_N_ELEMENTS(rows));
    tcase_add_test(tests, many_holders_are_counted);
    tcase_add_test(tests, each_card_is_described);
    tcase_add_test(tests, a_card_that_is_broken_is_described_as_such);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
