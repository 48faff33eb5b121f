/* SPDX-License-Identifier: Apache-2.0 */
/* What explain says of a node as a whole: why it refuses a pod, with the numbers. */
#include "explained_reason.h"
#include "suite.h"

#define SWITCH(time) "'gpuledger.io/switch':'nvidia.com/device-plugin.config=night@" time "'"
#define LABELS "'nvidia.com/gpu.product':'Tesla-T4','nvidia.com/gpu.memory':'15360'"
#define ELASTIC(ns, spec)                                                                          \
    {FEED_ELASTIC_QUOTAS, "{'metadata':{'name':'q','namespace':'" ns "'},'spec':{" spec "}}"}

#define SHARED(cards, replicas)                                                                    \
    LABELS ",'nvidia.com/gpu.sharing-strategy':'time-slicing','nvidia.com/gpu.count':'" cards      \
           "','nvidia.com/gpu.replicas':'" replicas "'"

static char new_configuration[] = "new=1";

static const struct explained_reason rows[] = {
    /* --- counts ----------------------------------------------------------------------------- */
    {.node = HAMI(T4, ""),
     .pod = {"p", .limits = "'nvidia.com/gpu':'3','nvidia.com/gpumem':'1'"},
     .reason = REASON_CARD_COUNT,
     .why = "has 2 cards, the pod wants 3"},
    {.node = HAMI("GPU-a,4,10240,100,Tesla T4,0,true:", ""),
     .pod = {"p", .limits = "'nvidia.com/gpu':'2','nvidia.com/gpumem':'1'"},
     .reason = REASON_CARD_COUNT,
     .why = "has 1 card, the pod wants 2"},
    {.node = {"n", .amounts = WHOLE("4")},
     .pod = {"p", .limits = WHOLE("5")},
     .reason = REASON_CARD_COUNT,
     .why = "has 4 nvidia.com/gpu, the pod wants 5"},
    {.node = {"n", .amounts = WHOLE("4")},
     .holders = {{"a", .node = "n", .limits = WHOLE("2")},
                 {"b", .node = "n", .ns = "web", .limits = WHOLE("1")}},
     .pod = {"p", .limits = WHOLE("2")},
     .reason = REASON_INSUFFICIENT_DEVICES,
     .why = "wants 2 nvidia.com/gpu, 1 free of 4; held by ml/a (2), web/b (1)"},
    {.node = {"n", .amounts = WHOLE("4"), .labels = LABELS},
     .pod = {"p", .limits = WHOLE("1"), .annotations = "'gpuledger.io/gpu-memory-min':'16Gi'"},
     .reason = REASON_CARD_TOO_SMALL,
     .why = "wants 16GiB, its nvidia.com/gpu have 15GiB"},
    {.node = {"n", .amounts = WHOLE("8"),
              .labels = LABELS ",'nvidia.com/gpu.sharing-strategy':'time-slicing',"
                               "'nvidia.com/gpu.count':'2','nvidia.com/gpu.replicas':'4'"},
     .pod = {"p", .limits = WHOLE("2")},
     .options = {.dialects = {.nvidia_fail_requests_greater_than_one = true}},
     .reason = REASON_DEVICES_AT_ONCE,
     .why = "wants 2 nvidia.com/gpu, of which its plugin gives a container at most 1"},
    /* --- ways of sharing -------------------------------------------------------------------- */
    {.node = {"n", .amounts = "'cpu':'8'"},
     .pod = {"p", .mem = "1"},
     .reason = REASON_NOT_GPU_SHARE,
     .why = "shares no GPU"},
    {.node = {"n", .amounts = "'" MEM "':'10','aliyun.com/gpu-count':'0'"},
     .pod = {"p", .mem = "1"},
     .reason = REASON_NOT_GPU_SHARE,
     .why = "shares no GPU; not all that it says of its GPUs can be understood, the log says why"},
    {.node = HAMI(T4, ""),
     .pod = {"p", .mem = "1"},
     .reason = REASON_OTHER_DIALECT,
     .why = "shares its GPUs as hami"},
    {.node = {"n", .amounts = DUO ",'nvidia.com/gpu':'2'"},
     .pod = {"p", .limits = "'tencent.com/vcuda-core':'10','tencent.com/vcuda-memory':'4'"},
     .reason = REASON_OTHER_DIALECT,
     .why = "shares its GPUs as gpushare, nvidia"},
    {.node = {"n"},
     .pod = {"p", .mem = "1", .annotations = "'gpuledger.io/isolation':'hardware'"},
     .reason = REASON_ISOLATION,
     .why = "keeps holders of a card apart by 'none', the pod wants 'hardware'"},
    /* --- changes ---------------------------------------------------------------------------- */
    {.node = {"n", .annotations = SWITCH("2099-01-02T03:04:05Z")},
     .pod = {"p", .mem = "2"},
     .rule = "mode_switch_ahead",
     .why =
         "shares its cards in another way from 2099-01-02T03:04:05Z on, and the pod does not say "
         "for how long it runs (activeDeadlineSeconds)"},
    {.node = {"n", .annotations = SWITCH("2020-01-02T03:04:05Z")},
     .pod = {"p", .mem = "2",
             .spec = "'activeDeadlineSeconds':7200,"
                     "'terminationGracePeriodSeconds':30,"},
     .rule = "mode_switch_ahead",
     .why = "is being made a node that shares its cards in another way, and the pod may run for "
            "7230 s (activeDeadlineSeconds and terminationGracePeriodSeconds)"},
    {.node = {"n",
              .annotations = "'gpuledger.io/slots':'2','gpuledger.io/switch':"
                             "'gpuledger.io/slots=1@2099-01-02T03:04:05Z'",
              .amounts = MONO},
     .holders = {{"a", .node = "n", .card = "0", .mem = "2"}},
     .pod = {"p", .mem = "1"},
     .rule = "mode_switch_ahead",
     .why = "lets a card have 1 holders at most from 2099-01-02T03:04:05Z on, and has no room for "
            "another who may be there still, and the pod does not say for how long it runs "
            "(activeDeadlineSeconds)"},
    {.node = HAMI(T4, ",'hami.io/node-handshake':'Deleted_2026-11-25 12:00:00'"),
     .pod = {"p", .limits = VGPU("1024", "10")},
     .reason = REASON_PLUGIN_SILENT,
     .why = "its GPU plugin does not report any more, as its scheduler has found"},
    /* --- devices that may all be on one card ------------------------------------------------- */
    {.node = {"n", .labels = SHARED("2", "4") ",'nvidia.com/device-plugin.config':'new'",
              .amounts = WHOLE("4")},
     .pod = {"p", .limits = WHOLE("1")},
     .options = {.dialects.nvidia_config_replicas = new_configuration},
     .reason = REASON_CHANGING,
     .why =
         "has 4 nvidia.com/gpu, gives 0: it does not report yet what its new configuration makes "
         "of cards"},
    {.node = {"n", .labels = SHARED("2", "4"), .amounts = WHOLE("4")},
     .pod = {"p", .limits = WHOLE("1"), .annotations = "'gpuledger.io/gpu-memory-min':'1Gi'"},
     .reason = REASON_TERMS,
     .why = "its labels contradict the number of its nvidia.com/gpu"},
    {.node = {"n", .amounts = WHOLE("4")},
     .pod = {"p", .limits = WHOLE("1"), .annotations = "'gpuledger.io/gpu-unshared':'true'"},
     .reason = REASON_TERMS,
     .why = "has no labels that say what its nvidia.com/gpu are"},
    {.node = {"n", .labels = SHARED("2", "4"), .annotations = "'gpuledger.io/exclusive-cards':'0'",
              .amounts = WHOLE("8")},
     .holders = {{"a", .node = "n", .limits = WHOLE("1")}},
     .pod = {"p", .limits = WHOLE("1")},
     .reason = REASON_WITHHELD,
     .why = "has 8 nvidia.com/gpu, gives 1: the rest may be on a card that takes one holder"},
    {.node = {"n", .labels = SHARED("2", "4"), .annotations = "'gpuledger.io/slots':'1'",
              .amounts = WHOLE("8")},
     .holders = {{"a", .node = "n", .limits = WHOLE("1")}},
     .pod = {"p", .limits = WHOLE("1")},
     .reason = REASON_WITHHELD,
     .why = "has 8 nvidia.com/gpu, gives 1: the rest may be on one card, full by the node's "
            "gpuledger.io/slots"},
    {.node = {"n", .labels = SHARED("2", "4"), .amounts = WHOLE("8")},
     .options = {.dialects = {.nvidia_memory_guard = true}},
     .holders = {{"a", .node = "n", .limits = WHOLE("1"),
                  .annotations = "'gpuledger.io/gpu-memory':'10Gi'"},
                 {"b", .node = "n", .limits = WHOLE("1"),
                  .annotations = "'gpuledger.io/gpu-memory':'2Gi'"}},
     .pod = {"p", .limits = WHOLE("1"), .annotations = "'gpuledger.io/gpu-memory':'6Gi'"},
     .reason = REASON_SHARED_MEMORY,
     .why = "wants 6GiB of a GPU of 15GiB, which kubelet may let 4 pods share; want as well: ml/a "
            "(10GiB), ml/b (2GiB)"},
    /* --- terms ------------------------------------------------------------------------------ */
    {.node = {"n"},
     .pod = {"p", .mem = "2", .annotations = "'gpuledger.io/gpu-compute-min':'8.0'"},
     .reason = REASON_TERMS,
     .why = "has no label nvidia.com/gpu.compute.major, which the pod's "
            "gpuledger.io/gpu-compute-min needs"},
    {.node = {"n",
              .labels = "'nvidia.com/gpu.compute.major':'7','nvidia.com/gpu.compute.minor':'5'"},
     .pod = {"p", .mem = "2", .annotations = "'gpuledger.io/gpu-compute-min':'8.6'"},
     .reason = REASON_TERMS,
     .why = "has compute capability 7.5, the pod wants 8.6"},
    {.node = {"n"},
     .pod = {"p", .mem = "2", .annotations = "'gpuledger.io/gpu-driver-min':'550'"},
     .reason = REASON_TERMS,
     .why = "has no label nvidia.com/cuda.driver-version.major, which the pod's "
            "gpuledger.io/gpu-driver-min needs"},
    {.node = {"n", .labels = "'nvidia.com/cuda.driver.major':'535',"
                             "'nvidia.com/cuda.driver.minor':'104',"
                             "'nvidia.com/cuda.driver.rev':'12'"},
     .pod = {"p", .mem = "2", .annotations = "'gpuledger.io/gpu-driver-min':'550.54'"},
     .reason = REASON_TERMS,
     .why = "has driver 535.104.12, the pod wants 550.54"},
    {.node = {"n", .labels = "'nvidia.com/cuda.driver.major':'535'"},
     .pod = {"p", .mem = "2", .annotations = "'gpuledger.io/gpu-driver-min':'550'"},
     .reason = REASON_TERMS,
     .why = "has driver 535, the pod wants 550"},
    {.node = {"n", .amounts = WHOLE("4"), .labels = LABELS},
     .pod = {"p", .limits = WHOLE("1"), .annotations = "'gpuledger.io/gpu-models':'A100'"},
     .reason = REASON_TERMS,
     .why = "its nvidia.com/gpu are not what the pod accepts"},
    /* --- quotas ----------------------------------------------------------------------------- */
    {.node = {"n", .annotations = "'" REGISTER "':'" T4 "'", .labels = "'model':'T4','pool':'x'",
              .amounts = "'nvidia.com/gpu':'8'"},
     .options = {.model_label = "model", .pool_label = "pool"},
     .objects = {{FEED_CONFIGMAPS,
                  "{'metadata':{'namespace':'kube-system','name':'gpuquota'},'data':{'gpu_quota':"
                  "'{\\\"ml\\\":{\\\"quota\\\":{\\\"T4\\\":1}}}'}}"}},
     .holders = {{"a", .node = "n", .limits = VGPU("5120", "70"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,5120,70:;")}},
     .pod = {"p", .limits = VGPU("1024", "50")},
     .reason = REASON_QUOTA,
     .why = "wants 0.5 T4, the namespace has 0.7 of 1"},
    {.node = {"n", .labels = "'model':'T4'"},
     .options = {.model_label = "model", .pool_label = "pool"},
     .objects = {{FEED_CONFIGMAPS,
                  "{'metadata':{'namespace':'kube-system','name':'gpuquota'},'data':{'gpu_quota':"
                  "'{\\\"ml\\\":{\\\"quota\\\":{\\\"A100\\\":1}}}'}}"}},
     .pod = {"p", .mem = "1"},
     .reason = REASON_QUOTA,
     .why = "the namespace may have no T4"},
    {.node = {"n", .labels = "'model':'T4','pool':'x'"},
     .options = {.model_label = "model", .pool_label = "pool"},
     .objects = {{FEED_CONFIGMAPS,
                  "{'metadata':{'namespace':'kube-system','name':'gpuquota'},'data':{'gpu_quota':"
                  "'{\\\"ml\\\":{\\\"quota\\\":{\\\"T4\\\":1},\\\"pool\\\":[\\\"y\\\"]}}'}}"}},
     .pod = {"p", .mem = "1"},
     .reason = REASON_QUOTA,
     .why = "the namespace may not use nodes of its pool (--quota-pool-label)"},
    {.node = {"n"},
     .options = {.model_label = "model", .pool_label = "pool"},
     .objects = {{FEED_CONFIGMAPS,
                  "{'metadata':{'namespace':'kube-system','name':'gpuquota'},'data':{'gpu_quota':"
                  "'{\\\"ml\\\":{\\\"quota\\\":{\\\"T4\\\":1}}}'}}"}},
     .pod = {"p", .mem = "1"},
     .reason = REASON_QUOTA,
     .why = "the namespace has a quota, and no label of the node says of which model its GPUs are "
            "(--quota-model-label)"},
    {.node = HAMI(T4, ""),
     .options = {.resource_quotas = true},
     .objects = {{FEED_RESOURCE_QUOTAS, "{'metadata':{'name':'q','namespace':'ml'},'spec':{'hard':{"
                                        "'limits.nvidia.com/gpumem':'5000'}}}"}},
     .holders = {{"a", .node = "n", .limits = VGPU("4000", "0"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,4000,0:;")}},
     .pod = {"p", .limits = VGPU("1500", "10")},
     .reason = REASON_RESOURCE_QUOTA,
     .why = "wants 1500 MiB, ResourceQuota q leaves 1000 of 5000 (limits.nvidia.com/gpumem)"},
    {.node = {"n"},
     .options = {.elastic_quotas = true},
     .objects = {ELASTIC("ml", "'min':{'gpuledger.io/gpus':'1'},'max':{'gpuledger.io/gpus':'1'}")},
     .holders = {{"a", .node = "n", .card = "0", .mem = "5"}},
     .pod = {"p", .mem = "8"},
     .reason = REASON_QUOTA_MAX,
     .why = "wants 0.8 of gpuledger.io/gpus, the namespace has 0.5 of at most 1"},
    {.node = {"n"},
     .options = {.elastic_quotas = true},
     .objects = {ELASTIC("ml", "'max':{'gpuledger.io/gpu-memory':'6Gi'}")},
     .holders = {{"a", .node = "n", .card = "0", .mem = "4"}},
     .pod = {"p", .mem = "3"},
     .reason = REASON_QUOTA_MAX,
     .why = "wants 3 GiB of gpuledger.io/gpu-memory, the namespace has 4 GiB of at most 6 GiB"},
    {.node = {"n"},
     .options = {.elastic_quotas = true, .silent = true},
     .objects = {ELASTIC("ml", "'max':{'gpuledger.io/gpus':'many'}")},
     .pod = {"p", .mem = "3"},
     .reason = REASON_QUOTA_UNKEPT,
     .why = "a quota of the namespace cannot be kept: 'gpuledger audit' and the log say which"},
    /* The other namespace needs what it has lent. */
    {.node = {"n"},
     .options = {.elastic_quotas = true},
     .objects = {ELASTIC("ml", "'min':{'gpuledger.io/gpus':'1'}"),
                 ELASTIC("web", "'min':{'gpuledger.io/gpus':'1'}")},
     .holders = {{"a", .node = "n", .card = "0", .mem = "10"}, {"w", .ns = "web", .mem = "10"}},
     .pod = {"p", .mem = "5"},
     .reason = REASON_QUOTA_LENT,
     .why = "wants 0.5 of gpuledger.io/gpus, the namespace has 1, is sure of 1, and may have 1 "
            "while others need theirs"},
    /* What it would borrow could not be taken back. */
    {.node = {"n"},
     .options = {.elastic_quotas = true, .reclaim = true},
     .objects = {ELASTIC("ml", "'min':{'gpuledger.io/gpus':'1'}"),
                 ELASTIC("web", "'min':{'gpuledger.io/gpus':'1'}")},
     .holders = {{"a", .node = "n", .card = "0", .mem = "10"}},
     .pod = {"p", .mem = "5"},
     .reason = REASON_QUOTA_UNRECLAIMABLE,
     .why = "wants 0.5 of gpuledger.io/gpus, the namespace has 1, is sure of 1, and this pod could "
            "not be taken back: no controller makes it again"},
    {.node = {"n"},
     .options = {.elastic_quotas = true, .reclaim = true, .reclaim_uncontrolled = true},
     .objects = {ELASTIC("ml", "'min':{'gpuledger.io/gpus':'1'}"),
                 ELASTIC("web", "'min':{'gpuledger.io/gpus':'1'}")},
     .holders = {{"a", .node = "n", .card = "0", .mem = "10"}},
     .pod = {"p", .mem = "5", .annotations = "'karpenter.sh/do-not-disrupt':'true'"},
     .reason = REASON_QUOTA_UNRECLAIMABLE,
     .why = "wants 0.5 of gpuledger.io/gpus, the namespace has 1, is sure of 1, and this pod could "
            "not be taken back: one of its annotations says so"},
    {.node = {"n"},
     .classes = "{'training':{'group':'required'}}",
     .options = {.gangs = true},
     .pod = {"p", .mem = "1", .spec = "'priorityClassName':'training',"},
     .reason = REASON_CLASS_GROUP,
     .why = "pods of class 'training' come in groups, and it names none: give it one, such as by "
            "the label scheduling.x-k8s.io/pod-group"},
    /* --- who goes first --------------------------------------------------------------------- */
    {.node = {"n", .amounts = MONO},
     .holders = {{"a", .node = "n", .card = "0", .mem = "2", .unmatched = true}},
     .pod = {"p", .mem = "2"},
     .reason = REASON_AWAITING_ASSIGNMENT,
     .why = "its node side has not matched ml/a yet"},
    {.node = {"n", .amounts = MONO},
     .options = {.hold_ms = 600000, .n_places = 8, .all_ask = true},
     .holders = {{"old", .mem = "8", .meta = "'creationTimestamp':'2025-01-01T00:00:00Z',"},
                 {"a", .node = "n", .card = "0", .mem = "4"}},
     .pod = {"p", .mem = "4"},
     .reason = REASON_EARLIER_POD,
     .why = "the pod does not fit beside what is kept there: card 0 for ml/old, which came first "
            "and gets it after ml/a"},
    /* --- kube-scheduler does not ask about it ------------------------------------------------ */
    {.node = {"n", .spec = "'unschedulable':true"},
     .pod = {"p", .mem = "1"},
     .reason = REASON_NONE,
     .why = "cordoned; else it takes the pod"},
    {.node = {"n", .spec = "'unschedulable':true"},
     .pod = {"p", .mem = "12"},
     .reason = REASON_CARD_TOO_SMALL,
     .why = "cordoned, and card 0: wants 12GiB, the card has 10GiB in all"},
};

START_TEST(each_reason_has_its_sentence)
{
    expect_reason(&rows[_i]);
}
END_TEST

/* Of many pods that have not been matched the first are named. */
START_TEST(many_waiting_pods_are_counted)
{
    begin();
    add_node((struct said_node){"n"});
    for (int i = 0; i < EXPLAIN_PODS_MAX + 1; i++) {
        g_autofree char *name = g_strdup_printf("w%d", i);
        add_pod((struct said_pod){name, .node = "n", .card = "0", .mem = "1", .unmatched = true});
    }
    hold("a", "n", "1", "1");
    add_pod((struct said_pod){"p", .mem = "1"});
    g_autoptr(explanation) explanation = explain("ml/p");
    expect_text(
        explained(explanation, "n")->why,
        "its node side has not matched ml/w0, ml/w1, ml/w2, ml/w3, ml/w4, ml/w5, ml/w6, ml/w7 "
        "and 1 more yet");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_nodes");
    TCase *tests = tcase_create("nodes");

    tcase_add_checked_fixture(tests, NULL, end_classes);
    tcase_add_loop_test(tests, each_reason_has_its_sentence, 0, G_N_ELEMENTS(rows));
    tcase_add_test(tests, many_waiting_pods_are_counted);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
