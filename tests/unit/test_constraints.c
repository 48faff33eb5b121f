/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes kube-scheduler leaves out: objects as the API server writes them, and the verdict. */
#include "suite.h"
#include "wire/constraints.h"
#include "wire/kubernetes.h"

#include <string.h>

#define LABELLED                                                                                   \
    "{'metadata':{'name':'n1','labels':{'gpu':'t4','zone':'a','age':'7','empty':''}}"
#define TAINTED(taints) "{'metadata':{'name':'n1'},'spec':{'taints':[" taints "]}}"
#define TERM(inside)                                                                               \
    "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"               \
    "{'nodeSelectorTerms':[" inside "]}}}}"
#define EXPRESSION(text) TERM("{'matchExpressions':[" text "]}")
#define TOLERATING(text) "{'tolerations':[" text "]}"

static struct json_arena *arena;

static const cJSON *parse(const char *text)
{
    g_autofree char *quoted = g_strdelimit(g_strdup(text), "'", '"');
    const cJSON *tree = json_parse(arena, quoted, strlen(quoted), NULL);

    ck_assert_msg(tree != NULL, "%s", text);
    return tree;
}

static struct pod_view read_pod(const char *spec, GError **error)
{
    g_autofree char *text =
        g_strdup_printf("{'metadata':{'namespace':'d','name':'p'},'spec':%s}", spec);
    struct pod_view pod;

    ck_assert(pod_view_decode_anonymous(arena, parse(text), &pod, NULL));
    ck_assert_int_eq(constraints_decode(arena, &pod, error), !*error);
    return pod;
}

static struct node read_node(const char *text)
{
    struct node_view view;

    ck_assert(node_view_decode(arena, parse(text), &view, NULL));
    return (struct node){
        .name = view.name, .cordoned = view.cordoned, .traits = node_traits_new(&view)};
}

/* --- one verdict each ------------------------------------------------------------------------- */

static const struct verdict_case {
    const char *pod, *node;
    enum barrier barrier;
    const char *told;
} verdicts[] = {
    {"{}", LABELLED "}", BARRIER_NONE, NULL},

    {"{'nodeSelector':{'gpu':'t4','zone':'a'}}", LABELLED "}", BARRIER_NONE, NULL},
    {"{'nodeSelector':{'empty':''}}", LABELLED "}", BARRIER_NONE, NULL},
    {"{'nodeSelector':{'zone':'a','gpu':'a100'}}", LABELLED "}", BARRIER_SELECTOR,
     "nodeSelector: gpu=a100; the node has gpu=t4"},
    {"{'nodeSelector':{'disk':''}}", LABELLED "}", BARRIER_SELECTOR,
     "nodeSelector: disk=; the node has no label disk"},

    {EXPRESSION("{'key':'gpu','operator':'In','values':['a100','t4']}"), LABELLED "}", BARRIER_NONE,
     NULL},
    {EXPRESSION("{'key':'gpu','operator':'In','values':['a100','h100']}"), LABELLED "}",
     BARRIER_AFFINITY, "nodeAffinity: gpu In [a100, h100]; the node has gpu=t4"},
    {EXPRESSION("{'key':'disk','operator':'In','values':['ssd']}"), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: disk In [ssd]; the node has no label disk"},
    {EXPRESSION("{'key':'gpu','operator':'NotIn','values':['a100']}"), LABELLED "}", BARRIER_NONE,
     NULL},
    {EXPRESSION("{'key':'disk','operator':'NotIn','values':['ssd']}"), LABELLED "}", BARRIER_NONE,
     NULL},
    {EXPRESSION("{'key':'gpu','operator':'NotIn','values':['t4']}"), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: gpu NotIn [t4]; the node has gpu=t4"},
    {EXPRESSION("{'key':'empty','operator':'Exists'}"), LABELLED "}", BARRIER_NONE, NULL},
    {EXPRESSION("{'key':'disk','operator':'Exists'}"), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: disk Exists; the node has no label disk"},
    {EXPRESSION("{'key':'disk','operator':'DoesNotExist'}"), LABELLED "}", BARRIER_NONE, NULL},
    {EXPRESSION("{'key':'empty','operator':'DoesNotExist'}"), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: empty DoesNotExist; the node has empty="},
    {EXPRESSION("{'key':'age','operator':'Gt','values':['6']}"), LABELLED "}", BARRIER_NONE, NULL},
    {EXPRESSION("{'key':'age','operator':'Gt','values':['7']}"), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: age Gt [7]; the node has age=7"},
    {EXPRESSION("{'key':'age','operator':'Lt','values':['10']}"), LABELLED "}", BARRIER_NONE, NULL},
    {EXPRESSION("{'key':'age','operator':'Lt','values':['7']}"), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: age Lt [7]; the node has age=7"},
    {EXPRESSION("{'key':'gpu','operator':'Gt','values':['1']}"), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: gpu Gt [1]; the node has gpu=t4"},
    {EXPRESSION("{'key':'disk','operator':'Lt','values':['1']}"), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: disk Lt [1]; the node has no label disk"},
    {TERM("{'matchFields':[{'key':'metadata.name','operator':'In','values':['n1']}]}"),
     LABELLED "}", BARRIER_NONE, NULL},
    {TERM("{'matchFields':[{'key':'metadata.name','operator':'In','values':['n2']}]}"),
     LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: metadata.name In [n2]; the node is n1"},
    {TERM("{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':['n1']}]}"),
     LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: metadata.name NotIn [n1]; the node is n1"},
    /* all of a term, any of the terms */
    {EXPRESSION("{'key':'gpu','operator':'Exists'},{'key':'disk','operator':'Exists'}"),
     LABELLED "}", BARRIER_AFFINITY, "nodeAffinity: disk Exists; the node has no label disk"},
    {TERM("{'matchExpressions':[{'key':'gpu','operator':'Exists'}],'matchFields':"
          "[{'key':'metadata.name','operator':'In','values':['n2']}]}"),
     LABELLED "}", BARRIER_AFFINITY, "nodeAffinity: metadata.name In [n2]; the node is n1"},
    {TERM("{'matchExpressions':[{'key':'disk','operator':'Exists'}]},"
          "{'matchExpressions':[{'key':'gpu','operator':'Exists'}]}"),
     LABELLED "}", BARRIER_NONE, NULL},
    {TERM("{'matchExpressions':[{'key':'disk','operator':'Exists'}]},"
          "{'matchExpressions':[{'key':'rack','operator':'Exists'}]}"),
     LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: disk Exists; the node has no label disk; nor does another of 2 terms hold"},
    /* what is empty matches nothing */
    {TERM("{}"), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: its terms are empty, which no node matches"},
    {TERM(""), LABELLED "}", BARRIER_AFFINITY,
     "nodeAffinity: its terms are empty, which no node matches"},
    /* both must hold */
    {"{'nodeSelector':{'gpu':'t4'},'affinity':{'nodeAffinity':{"
     "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':["
     "{'key':'zone','operator':'In','values':['b']}]}]}}}}",
     LABELLED "}", BARRIER_AFFINITY, "nodeAffinity: zone In [b]; the node has zone=a"},
    /* what is preferred keeps nobody away */
    {"{'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,"
     "'preference':{'matchExpressions':[{'key':'disk','operator':'Exists'}]}}]}}}",
     LABELLED "}", BARRIER_NONE, NULL},

    {"{}", TAINTED("{'key':'ml','value':'yes','effect':'NoSchedule'}"), BARRIER_TAINT,
     "taint ml=yes:NoSchedule is not tolerated"},
    {"{}", TAINTED("{'key':'ml','effect':'NoExecute'}"), BARRIER_TAINT,
     "taint ml:NoExecute is not tolerated"},
    {"{}", TAINTED("{'key':'ml','value':'yes','effect':'PreferNoSchedule'}"), BARRIER_NONE, NULL},
    {TOLERATING("{'key':'ml','value':'yes','effect':'NoSchedule'}"),
     TAINTED("{'key':'ml','value':'yes','effect':'NoSchedule'}"), BARRIER_NONE, NULL},
    {TOLERATING("{'key':'ml','operator':'Equal','value':'no'}"),
     TAINTED("{'key':'ml','value':'yes','effect':'NoSchedule'}"), BARRIER_TAINT,
     "taint ml=yes:NoSchedule is not tolerated"},
    {TOLERATING("{'key':'ml','operator':'Exists','effect':'NoExecute'}"),
     TAINTED("{'key':'ml','value':'yes','effect':'NoSchedule'}"), BARRIER_TAINT,
     "taint ml=yes:NoSchedule is not tolerated"},
    {TOLERATING("{'key':'other','operator':'Exists'}"),
     TAINTED("{'key':'ml','value':'yes','effect':'NoSchedule'}"), BARRIER_TAINT,
     "taint ml=yes:NoSchedule is not tolerated"},
    {TOLERATING("{'key':'ml','operator':'Exists'}"),
     TAINTED("{'key':'ml','value':'yes','effect':'NoExecute'}"), BARRIER_NONE, NULL},
    {TOLERATING("{'operator':'Exists'}"),
     TAINTED("{'key':'ml','value':'yes','effect':'NoExecute'}"), BARRIER_NONE, NULL},
    {TOLERATING("{'key':'ml','operator':'Exists'}"),
     TAINTED("{'key':'ml','effect':'NoSchedule'},{'key':'db','effect':'NoSchedule'}"),
     BARRIER_TAINT, "taint db:NoSchedule is not tolerated"},
    {TOLERATING("{'key':'ml','operator':'Exists'},{'key':'db','operator':'Exists'}"),
     TAINTED("{'key':'ml','effect':'NoSchedule'},{'key':'db','effect':'NoSchedule'}"),
     BARRIER_NONE, NULL},
    {TOLERATING("{'key':'load','operator':'Lt','value':'9'}"),
     TAINTED("{'key':'load','value':'8','effect':'NoSchedule'}"), BARRIER_NONE, NULL},
    {TOLERATING("{'key':'load','operator':'Lt','value':'9'}"),
     TAINTED("{'key':'load','value':'10','effect':'NoSchedule'}"), BARRIER_TAINT,
     "taint load=10:NoSchedule is not tolerated"},
    {TOLERATING("{'key':'load','operator':'Gt','value':'9'}"),
     TAINTED("{'key':'load','value':'10','effect':'NoSchedule'}"), BARRIER_NONE, NULL},
    {TOLERATING("{'key':'load','operator':'Gt','value':'9'},"
                "{'key':'load','operator':'Lt','value':'9'}"),
     TAINTED("{'key':'load','value':'9','effect':'NoSchedule'}"), BARRIER_TAINT,
     "taint load=9:NoSchedule is not tolerated"},
    {TOLERATING("{'key':'load','operator':'Gt','value':'9'}"),
     TAINTED("{'key':'load','value':'many','effect':'NoSchedule'}"), BARRIER_TAINT,
     "taint load=many:NoSchedule is not tolerated"},

    {"{}", "{'metadata':{'name':'n1'},'spec':{'unschedulable':true}}", BARRIER_CORDONED,
     "cordoned"},
    {TOLERATING("{'key':'node.kubernetes.io/unschedulable','operator':'Exists'}"),
     "{'metadata':{'name':'n1'},'spec':{'unschedulable':true}}", BARRIER_NONE, NULL},
    {TOLERATING("{'key':'node.kubernetes.io/unschedulable','operator':'Exists',"
                "'effect':'NoExecute'}"),
     "{'metadata':{'name':'n1'},'spec':{'unschedulable':true}}", BARRIER_CORDONED, "cordoned"},

    {"{'nodeName':'n1'}", LABELLED "}", BARRIER_NONE, NULL},
    {"{'nodeName':'n2'}", LABELLED "}", BARRIER_NODE_NAME, "nodeName: the pod names n2"},
    {"{'nodeName':''}", LABELLED "}", BARRIER_NONE, NULL},
};

START_TEST(a_verdict)
{
    const struct verdict_case *row = &verdicts[_i];
    g_autoptr(GError) error = NULL;
    const struct pod_view pod = read_pod(row->pod, &error);
    const struct node node = read_node(row->node);

    ck_assert_msg(!error, "%s", error ? error->message : "");
    const enum barrier barrier = constraints_check(pod.constraints, &node);
    g_autofree char *told = constraints_tell(pod.constraints, &node, barrier);
    ck_assert_msg(barrier == row->barrier, "%s on %s: %s", row->pod, row->node, told);
    ck_assert_pstr_eq(told, row->told);
    node_traits_unref(node.traits);
}
END_TEST

START_TEST(without_constraints_only_cordoned_nodes_are_left_out)
{
    struct node node = read_node(TAINTED("{'key':'ml','effect':'NoSchedule'}"));

    ck_assert_int_eq(constraints_check(NULL, &node), BARRIER_NONE);
    node.cordoned = true;
    ck_assert_int_eq(constraints_check(NULL, &node), BARRIER_CORDONED);
    node_traits_unref(node.traits);
}
END_TEST

START_TEST(the_first_barrier_is_kube_schedulers)
{
    g_autoptr(GError) error = NULL;
    struct pod_view pod = read_pod(
        "{'nodeName':'n2','nodeSelector':{'gpu':'t4'},'affinity':{'nodeAffinity':{"
        "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[]}}}}", &error);
    struct constraints constraints = *pod.constraints;
    struct node node = read_node(TAINTED("{'key':'ml','effect':'NoSchedule'}"));

    node.cordoned = true;
    ck_assert_int_eq(constraints_check(&constraints, &node), BARRIER_CORDONED);
    node.cordoned = false;
    ck_assert_int_eq(constraints_check(&constraints, &node), BARRIER_NODE_NAME);
    constraints.node_name = "n1";
    ck_assert_int_eq(constraints_check(&constraints, &node), BARRIER_TAINT);
    const struct toleration all = {.operator = TOLERATION_EXISTS};
    constraints.tolerations = &all;
    constraints.n_tolerations = 1;
    ck_assert_int_eq(constraints_check(&constraints, &node), BARRIER_SELECTOR);
    constraints.selector.n = 0;
    ck_assert_int_eq(constraints_check(&constraints, &node), BARRIER_AFFINITY);
    node_traits_unref(node.traits);
}
END_TEST

/* --- what is not modelled --------------------------------------------------------------------- */

static const struct overlooked_case {
    const char *pod, *told;
} overlooked[] = {
    {"{}", NULL},
    {"{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{}]}}}",
     "podAffinity"},
    {"{'affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{}]}}}", NULL},
    {"{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{}]}}}",
     "podAntiAffinity"},
    {"{'topologySpreadConstraints':[{'whenUnsatisfiable':'DoNotSchedule'}]}",
     "topologySpreadConstraints"},
    {"{'topologySpreadConstraints':[{'whenUnsatisfiable':'ScheduleAnyway'}]}", NULL},
    {"{'volumes':[{'name':'a','emptyDir':{}},{'name':'b','configMap':{}}]}", NULL},
    {"{'volumes':[{'name':'a','emptyDir':{}},{'name':'b','persistentVolumeClaim':{}}]}", "volumes"},
    {"{'containers':[{'ports':[{'containerPort':80}]}]}", NULL},
    {"{'containers':[{'ports':[{'containerPort':80,'hostPort':80}]}]}", "hostPorts"},
    {"{'initContainers':[{'ports':[{'hostPort':80}]}]}", "hostPorts"},
    {"{'resourceClaims':[{'name':'gpu'}]}", "resourceClaims"},
    {"{'schedulingGates':[{'name':'queue'}]}", "schedulingGates"},
    {"{'priorityClassName':'high'}", "priorityClassName"},
    {"{'priorityClassName':'high','priority':7}", NULL},
    {"{'volumes':[{'name':'b','nfs':{}}],'schedulingGates':[{'name':'queue'}]}",
     "volumes, schedulingGates"},
};

START_TEST(what_is_not_looked_at_is_said)
{
    const struct overlooked_case *row = &overlooked[_i];
    g_autoptr(GError) error = NULL;
    const struct pod_view pod = read_pod(row->pod, &error);
    g_autofree char *told = overlooked_tell(pod.constraints->overlooked);

    ck_assert_pstr_eq(told, row->told);
}
END_TEST

START_TEST(who_never_preempts_is_known)
{
    g_autoptr(GError) error = NULL;

    ck_assert(read_pod("{'preemptionPolicy':'Never'}", &error).constraints->never_preempts);
    ck_assert(!read_pod("{'preemptionPolicy':'PreemptLowerPriority'}", &error)
                   .constraints->never_preempts);
}
END_TEST

/* --- what cannot be understood ---------------------------------------------------------------- */

static const char *const mistakes[][2] = {
    {EXPRESSION("{'key':'a','operator':'Like','values':['b']}"),
     "field 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
     "nodeSelectorTerms': item 0: field 'operator': 'Like' is not one that is known"},
    {EXPRESSION("{'key':'a','operator':'In','values':[1]}"),
     "field 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
     "nodeSelectorTerms': item 0: field 'values': item 0: expected a string"},
    {TERM("{'matchFields':[{'key':'metadata.uid','operator':'In','values':['b']}]}"),
     "field 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
     "nodeSelectorTerms': item 0: field 'matchFields': only 'metadata.name' is a field of nodes"},
    {TOLERATING("{'operator':'Exists'},{'operator':'Maybe'}"),
     "field 'spec.tolerations': item 1: field 'operator': 'Maybe' is not one that is known"},
};

START_TEST(a_mistake_is_named)
{
    g_autoptr(GError) error = NULL;

    read_pod(mistakes[_i][0], &error);
    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(error->message, mistakes[_i][1]);
}
END_TEST

/* --- traits ----------------------------------------------------------------------------------- */

START_TEST(traits_outlive_the_object)
{
    struct node node = read_node(
        "{'metadata':{'name':'n1','labels':{'gpu':'t4'}},'spec':{'taints':["
        "{'key':'ml','effect':'NoSchedule'},{'key':'db','effect':'PreferNoSchedule'}]},"
        "'status':{'allocatable':{'cpu':'4','example.com/gpu':'3'}}}");
    struct node_traits *traits = node_traits_ref(node.traits);

    json_arena_clear(arena);
    node_traits_unref(node.traits);
    ck_assert_str_eq(string_pairs_get(&traits->labels, "gpu"), "t4");
    ck_assert_int_eq(traits->n_taints, 1);
    ck_assert_str_eq(traits->taints[0].key, "ml");
    ck_assert_int_eq(node_traits_amount(traits, "example.com/gpu"), 3000);
    ck_assert_int_eq(node_traits_amount(traits, "cpu"), 0);
    node_traits_unref(traits);
}
END_TEST

static void set_up(void)
{
    arena = json_arena_new();
}

static void tear_down(void)
{
    json_arena_free(arena);
}

int main(void)
{
    Suite *suite = suite_create("constraints");
    TCase *tc = tcase_create("constraints");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, a_verdict, 0, G_N_ELEMENTS(verdicts));
    tcase_add_test(tc, without_constraints_only_cordoned_nodes_are_left_out);
    tcase_add_test(tc, the_first_barrier_is_kube_schedulers);
    tcase_add_loop_test(tc, what_is_not_looked_at_is_said, 0, G_N_ELEMENTS(overlooked));
    tcase_add_test(tc, who_never_preempts_is_known);
    tcase_add_loop_test(tc, a_mistake_is_named, 0, G_N_ELEMENTS(mistakes));
    tcase_add_test(tc, traits_outlive_the_object);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
