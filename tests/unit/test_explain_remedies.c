/* SPDX-License-Identifier: Apache-2.0 */
/* The changes that would admit a refused pod: which are found, what they say, and where the pod would go. */
#include "suite.h"

#include "explained_reason.h"

#define NODES 4
#define HOLDERS 7
#define HOST "'cpu':'8','memory':'64Gi','pods':'110'"

/* A cluster, a pod "p" that is refused in it, and each remedy as "text -> node", the smallest first; with a
 * pair both texts, " + " between them. */
static const struct row {
    struct said_node nodes[NODES];
    struct said_pod holders[HOLDERS];
    struct said_object objects[2];
    struct store_options options;
    struct said_pod pod;
    const char *remedies[6];
    const char *fields[6]; /* what each has beside its text; none: not looked at */
    bool more;             /* there are others, which do not matter here */
} rows[] = {
    /* --- the node ------------------------------------------------------------------------------- */
    {.nodes = {{"n", .spec = "'unschedulable':true"}},
     .pod = {"p", .mem = "5"},
     .remedies = {"uncordon n -> n"}},
    {.nodes = {{"n", .spec = "'taints':[{'key':'gpu','value':'yes','effect':'NoSchedule'},"
                             "{'key':'night','effect':'NoExecute'}]"}},
     .pod = {"p", .mem = "5"},
     .remedies = {"tolerate gpu=yes:NoSchedule, night:NoExecute -> n"},
     .fields = {"tolerate: key gpu=yes:NoSchedule, night:NoExecute"}},
    {.nodes = {{"n", .labels = "'zone':'a'"}},
     .pod = {"p", .mem = "5", .spec = "'nodeSelector':{'zone':'a','disk':'ssd'},"},
     .remedies = {"take disk=ssd out of its nodeSelector -> n"},
     .fields = {"selector: key disk=ssd"}},
    {.nodes = {{"n", .labels = "'zone':'a'"}},
     .pod = {"p", .mem = "5",
             .spec =
                 "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
                 "'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'In',"
                 "'values':['b']}]}]}}},"},
     .remedies = {"take its required nodeAffinity away -> n"}},
    {.nodes = {{"n", .amounts = MONO, .annotations = "'gpuledger.io/cordoned-cards':'0'"}},
     .pod = {"p", .mem = "5"},
     .remedies = {"open card 0 of n again: it is cordoned by an annotation of the node -> n"}},
    {.nodes = {{"n"}},
     .holders = {{"a", .node = "n", .card = "0", .mem = "6"}},
     .objects = {{FEED_CONFIGMAPS,
                  "{'metadata':{'namespace':'kube-system','name':'unhealthy-gpu-n'},"
                  "'data':{'gpus':'1'}}"}},
     .pod = {"p", .mem = "10"},
     .remedies = {"ask for 4 " MEM " instead of 10 in container main -> n", "end ml/a -> n",
                  "mend card 1 of n, which a ConfigMap says is unhealthy -> n"},
     .fields = {"less: container main, resource " MEM ", from 10, to 4", "end: pods ml/a, planned",
                "heal: card 1"}},
    {.nodes = {HAMI("GPU-a,4,10240,100,Tesla T4,0,false:", "")},
     .pod = {"p", .limits = VGPU("1024", "10")},
     .remedies = {"mend card 0 of n, which its node side says is unhealthy -> n"}},
    {.nodes = {{"n"}},
     .pod = {"p", .mem = "5", .annotations = "'gpuledger.io/gpu-compute-min':'8.0'"},
     .remedies =
         {"take away the annotation gpuledger.io/gpu-compute-min: 8.0 -> n",
          "let GPU Feature Discovery label n (nvidia.com/gpu.compute.major), if its GPUs are "
          "such -> n"}},
    /* --- the pod -------------------------------------------------------------------------------- */
    {.nodes = {{"n"}},
     .pod = {"p", .mem = "12"},
     .remedies = {"ask for 10 " MEM " instead of 12 in container main -> n"}},
    {.nodes = {{"n"}},
     .pod = {"p", .mem = "8192"},
     .remedies = {"ask for 8 " MEM " instead of 8192 in container main, if it was meant in another "
                  "unit -> n"},
     .fields = {"unit: container main, resource " MEM ", from 8192, to 8"}},
    {.nodes = {HAMI("GPU-a,4,10240,100,Tesla T4,0,true:", "")},
     .pod = {"p", .mem = "4"},
     .remedies =
         {"ask in the words of HAMi in container main: nvidia.com/gpu: 1, nvidia.com/gpumem: "
          "4096 -> n"}},
    {.nodes = {{"n"}},
     .pod = {"p", .limits = "'nvidia.com/gpu':'1','nvidia.com/gpumem':'4096'"},
     .remedies = {"ask in the words of Aliyun gpushare in container main: " MEM ": 4 -> n"}},
    {.nodes = {{"n", .amounts = "'tencent.com/vcuda-core':'100','tencent.com/vcuda-memory':'40'"}},
     .pod = {"p", .mem = "4"},
     .remedies =
         {"ask in the words of Tencent gpu-manager in container main: "
          "tencent.com/vcuda-memory: 16, tencent.com/vcuda-core: 40 (compute, which it wants "
          "named, in proportion to the memory) -> n"},
     .fields = {"dialect: key tencent, main tencent.com/vcuda-memory 16, main "
                "tencent.com/vcuda-core 40"}},
    {.nodes = {{"n"}},
     .pod = {"p", .mem = "5", .annotations = "'gpuledger.io/gpu-models':'A100','other':'x'"},
     .remedies = {"take away the annotation gpuledger.io/gpu-models: A100 -> n"}},
    /* It is a little too much, and not in another unit. */
    {.nodes = {{"n", .amounts = "'" MEM "':'600','aliyun.com/gpu-count':'1'"}},
     .pod = {"p", .mem = "1024"},
     .remedies = {"ask for 600 " MEM " instead of 1024 in container main -> n"}},
    /* No number of GiB is as much. */
    {.nodes = {{"n"}}, .pod = {"p", .limits = "'nvidia.com/gpu':'1','nvidia.com/gpumem':'1500'"}},
    /* --- other pods ----------------------------------------------------------------------------- */
    /* Not all that end on the way to enough room. */
    {.nodes = {{"n"}},
     .holders = {{"a1", .node = "n", .card = "0", .mem = "1"},
                 {"a2", .node = "n", .card = "0", .mem = "3"},
                 {"a3", .node = "n", .card = "0", .mem = "3"},
                 {"a4", .node = "n", .card = "0", .mem = "3"},
                 {"b1", .node = "n", .card = "1", .mem = "2"},
                 {"b2", .node = "n", .card = "1", .mem = "4"},
                 {"b3", .node = "n", .card = "1", .mem = "4"}},
     .pod = {"p", .mem = "6"},
     .remedies = {"end ml/a2, ml/a3 -> n"}},
    {.nodes = {{"n", .amounts = MONO}},
     .holders = {{"a", .node = "n", .card = "0", .mem = "2"},
                 {"b", .node = "n", .card = "0", .mem = "4"}},
     .pod = {"p", .mem = "7"},
     .remedies = {"ask for 4 " MEM " instead of 7 in container main -> n", "end ml/b -> n"}},
    /* Whose end frees nothing, or who asks to be left alone, is not named. */
    {.nodes = {{"n", .amounts = MONO}},
     .holders = {{"a", .node = "n", .card = "0", .mem = "3",
                  .annotations = "'kubernetes.io/config.mirror':'x'"},
                 {"b", .node = "n", .card = "0", .mem = "2", .meta = DAEMON_SET},
                 {"c", .node = "n", .card = "0", .mem = "2",
                  .annotations = "'karpenter.sh/do-not-disrupt':'true'"},
                 {"d", .node = "n", .card = "0", .mem = "1"},
                 {"e", .node = "n", .card = "0", .mem = "1"}},
     .pod = {"p", .mem = "3"},
     .remedies = {"ask for 1 " MEM " instead of 3 in container main -> n", "end ml/d, ml/e -> n"}},
    {.nodes = {{"n", .amounts = MONO}},
     .holders = {{"a", .node = "n", .card = "0", .mem = "5",
                  .annotations = "'kubernetes.io/config.mirror':'x'"},
                 {"b", .node = "n", .card = "0", .mem = "4", .meta = DAEMON_SET}},
     .pod = {"p", .mem = "4"},
     .remedies = {"ask for 1 " MEM " instead of 4 in container main -> n"}},
    {.nodes = {{"n", .amounts = MONO}},
     .holders = {{"a", .node = "n", .card = "0", .mem = "2"},
                 {"b", .node = "n", .card = "0", .mem = "3"},
                 {"c", .node = "n", .card = "0", .mem = "4"}},
     .pod = {"p", .mem = "6"},
     .remedies = {"ask for 1 " MEM " instead of 6 in container main -> n", "end ml/a, ml/b -> n"}},
    {.nodes = {{"n", .amounts = MONO},
               {"small", .amounts = "'" MEM "':'3','aliyun.com/gpu-count':'1'"}},
     .holders = {{"a", .node = "n", .card = "0", .mem = "2", .meta = REPLICA_SET}},
     .pod = {"p", .mem = "9"},
     .remedies = {"ask for 8 " MEM " instead of 9 in container main -> n",
                  "move ml/a to small -> n"},
     .fields = {"less: container main, resource " MEM ", from 9, to 8",
                "move: pods ml/a to small, planned"}},
    {.nodes = {{"n"}},
     .holders = {{"a", .node = "n", .card = "0", .mem = "2", .meta = REPLICA_SET},
                 {"b", .node = "n", .card = "1", .mem = "3"}},
     .pod = {"p", .mem = "9"},
     .remedies = {"ask for 8 " MEM " instead of 9 in container main -> n",
                  "move ml/a to other cards of n -> n"}},
    {.nodes = {{"n", .amounts = MONO}},
     .holders = {{"a", .node = "n", .card = "0", .mem = "2", .unmatched = true}},
     .pod = {"p", .mem = "2"},
     .remedies = {"wait until the node side of n has matched the pods that wait there -> n",
                  "ask for 1 " MEM " instead of 2 in container main -> n"},
     .fields = {"match: pods ml/a"},
     .more = true},
    {.nodes = {{"n", .amounts = MONO ",'cpu':'4','memory':'64Gi','pods':'110'"},
               {"cpu", .amounts = HOST}},
     .holders = {{"c", .node = "n",
                  .containers = "{'name':'main','resources':{'requests':{'cpu':'2'}}}"},
                 {"d", .node = "n", .priority = 7,
                  .containers = "{'name':'main','resources':{'requests':{'cpu':'1'}}}"}},
     .pod = {"p", .containers = "{'name':'main','resources':{'requests':{'cpu':'2'},'limits':{'" MEM
                                "':'2'}}}"},
     .remedies = {"move ml/c to cpu -> n"},
     .fields = {"move: pods ml/c to cpu"}},
    /* --- quotas --------------------------------------------------------------------------------- */
    {.nodes = {{"n", .labels = "'model':'T4','pool':'x'"}},
     .options = {.model_label = "model", .pool_label = "pool"},
     .objects = {{FEED_CONFIGMAPS,
                  "{'metadata':{'namespace':'kube-system','name':'gpuquota'},'data':{'gpu_quota':"
                  "'{\\\"ml\\\":{\\\"quota\\\":{\\\"T4\\\":1}}}'}}"}},
     .holders = {{"a", .node = "n", .card = "0", .mem = "8"}},
     .pod = {"p", .mem = "5"},
     .remedies = {"ask for 2 " MEM " instead of 5 in container main -> n", "end ml/a -> n",
                  "give namespace ml 2 T4 instead of 1 (ConfigMap kube-system/gpuquota) -> n"},
     .fields = {"less: container main, resource " MEM ", from 5, to 2", "end: pods ml/a, planned",
                "quota: key T4, from 1, to 2"}},
    {.nodes = {HAMI(T4, "")},
     .options = {.resource_quotas = true},
     .objects = {{FEED_RESOURCE_QUOTAS, "{'metadata':{'name':'q','namespace':'ml'},'spec':{'hard':{"
                                        "'limits.nvidia.com/gpumem':'5000'}}}"}},
     .holders = {{"a", .node = "n", .limits = VGPU("4000", "0"),
                  .annotations = ON_HAMI("GPU-a,NVIDIA,4000,0:;")}},
     .pod = {"p", .limits = VGPU("1500", "10")},
     .remedies = {"ask for 1000 nvidia.com/gpumem instead of 1500 in container main -> n",
                  "end ml/a -> n",
                  "let ResourceQuota ml/q have 5500 instead of 5000 under limits.nvidia.com/gpumem "
                  "-> n"}},
    {.nodes = {{"n"}, {"m"}},
     .options = {.elastic_quotas = true},
     .objects = {{FEED_ELASTIC_QUOTAS, "{'metadata':{'name':'q','namespace':'ml'},'spec':{'max':{"
                                       "'gpuledger.io/gpus':'1'}}}"}},
     .holders = {{"a", .node = "m", .card = "0", .mem = "5"},
                 {"b", .node = "m", .card = "1", .mem = "3"}},
     .pod = {"p", .mem = "4"},
     .remedies = {"ask for 2 " MEM " instead of 4 in container main -> m", "end ml/b -> m",
                  "give namespace ml a max of 1.2 gpuledger.io/gpus instead of 1 -> m"},
     .fields = {"less: container main, resource " MEM ", from 4, to 2", "end: pods ml/b, planned",
                "quota: key gpuledger.io/gpus, from 1, to 1.2"}},
    /* --- pairs ---------------------------------------------------------------------------------- */
    {.nodes = {{"n", .spec = "'unschedulable':true"}},
     .pod = {"p", .mem = "12"},
     .remedies = {"uncordon n + ask for 10 " MEM " instead of 12 in container main -> n"}},
    {.nodes = {{"n", .spec = "'unschedulable':true",
                .annotations = "'gpuledger.io/cordoned-cards':'0'", .amounts = MONO}},
     .pod = {"p", .mem = "5"},
     .remedies =
         {"uncordon n + open card 0 of n again: it is cordoned by an annotation of the node "
          "-> n"}},
    {.nodes = {{"n", .labels = "'zone':'a'", .spec = "'unschedulable':true"}},
     .pod = {"p", .mem = "5", .spec = "'nodeSelector':{'zone':'b'},"},
     .remedies = {"uncordon n + take zone=b out of its nodeSelector -> n"}},
    /* --- nothing -------------------------------------------------------------------------------- */
    {.nodes = {{"n", .amounts = "'cpu':'4'"}}, .pod = {"p", .mem = "5"}},
};

static void append(GString *text, const struct remedies *remedies)
{
    for (guint i = 0; i < remedies->single->len; i++) {
        const struct remedy *one = &g_array_index(remedies->single, struct remedy, i);
        g_string_append_printf(text, "%s -> %s\n", one->text, one->node);
    }
    for (guint i = 0; i < remedies->pairs->len; i++) {
        const struct remedy *both = g_array_index(remedies->pairs, struct remedy_pair, i).changes;
        g_string_append_printf(text, "%s + %s -> %s\n", both[0].text, both[1].text, both[0].node);
    }
}

static void append_field(GString *text, const char *name, const char *value)
{
    if (value)
        g_string_append_printf(text, "%s%s %s", g_str_has_suffix(text->str, ":") ? " " : ", ", name,
                               value);
}

/* "less: container main, resource aliyun.com/gpu-mem, from 9, to 8" */
static char *describe(const struct remedy *remedy)
{
    static const char *const kinds[REMEDY_N] = {
        "turn", "match", "uncordon", "tolerate", "selector",  "affinity", "unit", "dialect",
        "less", "move",  "end",      "heal",     "condition", "label",    "quota"};
    GString *text = g_string_new(kinds[remedy->kind]);
    g_autofree char *card =
        remedy->kind == REMEDY_HEAL ? g_strdup_printf("%d", remedy->card) : NULL;

    g_string_append_c(text, ':');
    append_field(text, "container", remedy->container);
    append_field(text, "resource", remedy->resource);
    append_field(text, "key", remedy->key);
    append_field(text, "from", remedy->from);
    append_field(text, "to", remedy->to);
    append_field(text, "card", card);
    for (guint i = 0; remedy->amounts && i < remedy->amounts->len; i++) {
        const struct remedy_amount *one = &g_array_index(remedy->amounts, struct remedy_amount, i);
        g_string_append_printf(text, ", %s %s %s", one->container, one->resource, one->amount);
    }
    for (guint i = 0; remedy->pods && i < remedy->pods->len; i++) {
        const struct remedy_pod *pod = &g_array_index(remedy->pods, struct remedy_pod, i);
        g_string_append_printf(text, "%s%s/%s%s%s", i ? ", " : " pods ", pod->ns, pod->name,
                               pod->to ? " to " : "", pod->to ? pod->to : "");
    }
    if (remedy->planned)
        g_string_append(text, ", planned");
    return g_string_free(text, FALSE);
}

static void expect_fields(const struct row *row, const struct remedies *remedies)
{
    for (guint i = 0; i < G_N_ELEMENTS(row->fields) && row->fields[i]; i++) {
        ck_assert_uint_gt(remedies->single->len, i);
        g_autofree char *fields = describe(&g_array_index(remedies->single, struct remedy, i));
        expect_text(fields, row->fields[i]);
    }
}

START_TEST(each_change_that_helps_is_found)
{
    const struct row *row = &rows[_i];
    g_autoptr(GString) found = g_string_new(NULL), expected = g_string_new(NULL);

    begin_with(row->options);
    for (size_t i = 0; i < NODES && row->nodes[i].name; i++)
        add_node(row->nodes[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(row->objects) && row->objects[i].json; i++)
        feed(row->objects[i].feed, false, "%s", row->objects[i].json);
    for (size_t i = 0; i < HOLDERS && row->holders[i].name; i++)
        add_pod(row->holders[i]);
    add_pod(row->pod);
    g_autoptr(explanation) explanation = explain("ml/p");
    ck_assert_int_eq(explanation->verdict, VERDICT_REFUSED);
    append(found, explanation->remedies);
    for (size_t i = 0; i < G_N_ELEMENTS(row->remedies) && row->remedies[i]; i++)
        g_string_append_printf(expected, "%s\n", row->remedies[i]);
    if (row->more)
        g_string_truncate(found, MIN(found->len, expected->len));
    expect_text(found->str, expected->str);
    expect_fields(row, explanation->remedies);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_remedies");
    TCase *tests = tcase_create("remedies");

    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_loop_test(tests, each_change_that_helps_is_found, 0, G_N_ELEMENTS(rows));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
