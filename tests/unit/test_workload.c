/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of Kueue's Workloads, and what pods they are. */
#include "core/constraints.h"
#include "kueue_words.h"
#include "suite.h"

static struct json_arena *arena;

static void setup(void)
{
    arena = json_arena_new();
}

static void teardown(void)
{
    json_arena_free(arena);
}

static struct workload_view read_one(const char *text)
{
    struct workload_view view;
    g_autoptr(GError) error = NULL;

    ck_assert_msg(workload_view_decode(arena, parsed(arena, text), &view, &error), "%s",
                  error ? error->message : "");
    return view;
}

/* It is known, and what is wrong with it, so that it can be told. */
static void expect_unreadable(const char *text, const char *why)
{
    static const struct dialect_options dialects;
    const struct workload_view view = read_one(text);
    g_autoptr(GArray) flavors = g_array_new(FALSE, FALSE, sizeof(struct named_flavor));
    g_autoptr(GError) error = NULL;

    ck_assert_str_eq(view.uid, "uid-a");
    ck_assert_msg(view.unreadable && strstr(view.unreadable, why), "%s", view.unreadable);
    ck_assert_ptr_null(pod_sets_new(&view, flavors, &dialects, &error));
    ck_assert_str_eq(error->message, view.unreadable);
}

static void expect_refused(const char *text, const char *why)
{
    struct workload_view view;
    g_autoptr(GError) error = NULL;

    ck_assert(!workload_view_decode(arena, parsed(arena, text), &view, &error));
    ck_assert_msg(strstr(error->message, why), "%s", error->message);
}

START_TEST(one_that_waits_is_read)
{
    const struct workload_view view =
        read_one(PENDING_WORKLOAD("a", POD_SET_OF("main", "3", GPUSHARE("4"))));

    ck_assert_str_eq(view.ns, "ml");
    ck_assert_str_eq(view.uid, "uid-a");
    ck_assert_str_eq(view.version, "7");
    ck_assert(workload_view_waits(&view));
    ck_assert_str_eq(view.reserved_at, TIME);
    ck_assert_uint_eq(view.n_pod_sets, 1);
    ck_assert_int_eq(view.pod_sets[0].count, 3);
    ck_assert_uint_eq(view.n_checks, 1);
    ck_assert_str_eq(view.checks[0].state, "Pending");
}
END_TEST

/* What takes a Workload out of the line, each by itself. */
static const char *const not_waiting[] = {
    "{" META("a") ",'spec':{'podSets':[]},'status':{}}",
    WORKLOAD_OF("a", "", "'conditions':[{'type':'QuotaReserved','status':'False'}]"),
    WORKLOAD_OF("a", "",
                "'conditions':[{'type':'QuotaReserved','status':'True'},{'type':'Finished','status'"
                ":'True'}]"),
    WORKLOAD_OF("a", "",
                "'conditions':[{'type':'QuotaReserved','status':'True'},{'type':'Evicted','status':"
                "'True'}]"),
    "{" META("a") ",'spec':{'active':false,'podSets':[]},'status':{" RESERVED "}}",
    "{'metadata':{'namespace':'ml','name':'a','uid':'u','deletionTimestamp':'" TIME
    "'},'status':{" RESERVED "}}",
};

START_TEST(others_do_not_wait)
{
    const struct workload_view view = read_one(not_waiting[_i]);

    ck_assert(!workload_view_waits(&view));
}
END_TEST

START_TEST(what_kueue_has_admitted_counts)
{
    const struct workload_view view = read_one(WORKLOAD_OF(
        "a", POD_SET_OF("one", "5", GPUSHARE("4")) "," POD_SET_OF("two", "2", GPUSHARE("4")),
        RESERVED ",'admission':{'clusterQueue':'q','podSetAssignments':[{'name':'one','count':3,"
                 "'flavors':{'aliyun.com/gpu-mem':'f'}},{'name':'two','topologyAssignment':{}}]}"));

    ck_assert_int_eq(view.pod_sets[0].count, 3);
    ck_assert(view.pod_sets[0].flavors);
    ck_assert(!view.pod_sets[0].topology);
    ck_assert_int_eq(view.pod_sets[1].count, 2);
    ck_assert(view.pod_sets[1].topology);
    g_autoptr(GPtrArray) names = pod_sets_flavors(&view);
    ck_assert_uint_eq(names->len, 1);
    ck_assert_str_eq(names->pdata[0], "f");
}
END_TEST

START_TEST(what_is_too_much_or_no_number_is_refused)
{
    g_autoptr(GString) many = g_string_new(NULL);

    for (int i = 0; i <= WORKLOAD_POD_SETS_MAX; i++)
        g_string_append_printf(many, "%s{'name':'s%d','count':1}", i ? "," : "", i);
    g_autofree char *text = g_strdup_printf("{" META("a") ",'spec':{'podSets':[%s]}}", many->str);
    expect_unreadable(text, "19 items, at most 18");
    expect_unreadable(WORKLOAD_OF("a", "{'name':'m','count':-1}", ""), "pod set 'm': -1 pods");
    expect_unreadable(WORKLOAD_OF("a", "{'name':'m','count':4294967296}", ""), "4294967296 pods");
    expect_unreadable(WORKLOAD_OF("a", "{'name':'m','count':'2'}", ""), "count");
    expect_unreadable(WORKLOAD_OF("a", "", "'admission':{'podSetAssignments':[{'name':'x'}]}"),
                      "there is no pod set 'x'");
    expect_refused("{'metadata':{'namespace':'ml','name':'a'}}", "metadata.uid");
}
END_TEST

START_TEST(times_that_have_not_come_are_now)
{
    ck_assert_int_eq(kueue_time(TIME, TIME_S + 5), TIME_S);
    ck_assert_int_eq(kueue_time("2999-01-01T00:00:00Z", TIME_S), TIME_S);
    ck_assert_int_eq(kueue_time("soon", TIME_S), 0);
    ck_assert_int_eq(kueue_time(NULL, TIME_S), 0);
}
END_TEST

/* --- pods ----------------------------------------------------------------------------------- */

static struct pod_sets *sets_of(const char *text, const char *flavor, char **ret_error)
{
    static const struct dialect_options dialects;
    const struct workload_view view = read_one(text);
    g_autoptr(GArray) flavors = g_array_new(FALSE, FALSE, sizeof(struct named_flavor));
    struct named_flavor named = {"f", {{0}}};
    g_autoptr(GError) error = NULL;

    if (flavor) {
        ck_assert(flavor_view_decode(arena, parsed(arena, flavor), &named.view, NULL));
        g_array_append_val(flavors, named);
    }
    struct pod_sets *sets = pod_sets_new(&view, flavors, &dialects, &error);
    ck_assert(!sets == !!error);
    *ret_error = error ? g_strdup(error->message) : NULL;
    return sets;
}

START_TEST(pods_get_what_their_flavor_has)
{
    g_autofree char *error = NULL;
    g_autoptr(pod_sets) sets = sets_of(
        WORKLOAD_OF(
            "a",
            POD_SET_OF("main", "2",
                       GPUSHARE("4") ",'nodeSelector':{'zone':'b','pool':'own'},"
                                     "'schedulingGates':[{'name':'kueue.x-k8s.io/admission'}],"
                                     "'tolerations':[{'key':'a','operator':'Exists'}]"),
            RESERVED ",'admission':{'podSetAssignments':[{'name':'main',"
                     "'flavors':{'aliyun.com/gpu-mem':'f','cpu':'f'}}]},"
                     "'admissionChecks':[{'name':'other','state':'Ready','podSetUpdates':["
                     "{'name':'main','labels':{'x':'y'},'nodeSelector':{'rack':'9'}}]}]"),
        "{'spec':{'nodeLabels':{'pool':'shared','kind':'t4'},'tolerations':[{'key':'gpu','operator'"
        ":'Exists'}]}}",
        &error);
    struct pod_view pod;

    ck_assert_msg(sets, "%s", error ? error : "");
    ck_assert_int_eq(sets->n_pods, 2);
    ck_assert(pod_set_read(&g_array_index(sets->sets, struct pod_set, 0), arena, &pod, NULL));
    const struct string_pairs *selector = &pod.constraints->selector;
    ck_assert_str_eq(string_pairs_get(selector, "zone"), "b");
    ck_assert_str_eq(string_pairs_get(selector, "pool"), "own");
    ck_assert_str_eq(string_pairs_get(selector, "kind"), "t4");
    ck_assert_str_eq(string_pairs_get(selector, "rack"), "9");
    ck_assert_str_eq(string_pairs_get(&pod.labels, "app"), "main");
    ck_assert_str_eq(string_pairs_get(&pod.labels, "x"), "y");
    ck_assert(pod.constraints->n_tolerations >= 2);
    ck_assert_uint_eq(pod.constraints->overlooked, 0); /* Kueue takes its gate away */
    ck_assert(!strstr(g_array_index(sets->sets, struct pod_set, 0).text, "\"env\""));
}
END_TEST

/* Of the environment it is kept what switches limits off. */
START_TEST(pods_may_switch_their_limits_off)
{
    g_autofree char *error = NULL;
    g_autoptr(pod_sets) sets = sets_of(
        WORKLOAD_OF(
            "a",
            POD_SET_OF("main", "1",
                       "'containers':[{'name':'c','env':[{'name':'A','value':'B'},"
                       "{'name':'CUDA_DISABLE_CONTROL','value':'true'}],"
                       "'resources':{'limits':{'nvidia.com/gpu':'1','nvidia.com/gpumem':'9'}}}]"),
            RESERVED),
        NULL, &error);
    struct pod_view pod;

    ck_assert_msg(sets, "%s", error ? error : "");
    ck_assert(pod_set_read(&g_array_index(sets->sets, struct pod_set, 0), arena, &pod, NULL));
    ck_assert_int_eq(pod.containers[0].hook, HOOK_OFF);
    ck_assert(!strstr(g_array_index(sets->sets, struct pod_set, 0).text, "\"B\""));
}
END_TEST

START_TEST(pods_without_a_gpu_are_left_out)
{
    g_autofree char *error = NULL;
    g_autoptr(pod_sets) sets = sets_of(
        WORKLOAD_OF("a",
                    POD_SET_OF("driver", "1", "'containers':[{'name':'c'}]") "," POD_SET_OF(
                        "worker", "4", GPUSHARE("2")) "," POD_SET_OF("none", "0", GPUSHARE("2")),
                    RESERVED),
        NULL, &error);

    ck_assert_uint_eq(sets->sets->len, 1);
    ck_assert_int_eq(sets->n_pods, 4);
    ck_assert_str_eq(g_array_index(sets->sets, struct pod_set, 0).name, "worker");
}
END_TEST

START_TEST(what_cannot_be_read_names_its_pod_set)
{
    g_autofree char *large = g_strnfill(POD_SET_TEXT_MAX, 'x');
    g_autofree char *text = g_strdup_printf(
        WORKLOAD_OF("a", POD_SET_OF("main", "1", GPUSHARE("4") ",'hostname':'%s'"), RESERVED),
        large);
    const struct {
        const char *text, *why;
    } cases[] = {
        {text, "at most 65536 are read"},
        {WORKLOAD_OF("a", POD_SET_OF("main", "1", GPUSHARE("a lot")), RESERVED), "a lot"},
        {WORKLOAD_OF(
             "a",
             POD_SET_OF(
                 "main", "1",
                 GPUSHARE(
                     "4") ",'affinity':{'nodeAffinity':{'"
                          "requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'"
                          "matchExpressions':[{'key':'a','operator':'Near'}]}]}}}"),
             RESERVED),
         "Near"},
        {WORKLOAD_OF("a", POD_SET_OF("main", "10001", GPUSHARE("4")), RESERVED),
         "10001 pods with a GPU"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *error = NULL;
        ck_assert(!sets_of(cases[i].text, NULL, &error));
        ck_assert_msg(strstr(error, cases[i].why), "%s", error);
        ck_assert_msg(i == 3 || strstr(error, "pod set 'main'"), "%s", error);
    }
}
END_TEST

START_TEST(a_template_that_is_no_pod_is_no_crash)
{
    static const char *const templates[] = {"{}", "{'spec':{}}",
                                            "{'metadata':{},'spec':{'containers':[]}}"};

    for (size_t i = 0; i < G_N_ELEMENTS(templates); i++) {
        g_autofree char *error = NULL;
        g_autofree char *text = g_strdup_printf(
            "{" META("a") ",'spec':{'podSets':[{'name':'m','count':1,'template':%s}]}}",
            templates[i]);
        g_autoptr(pod_sets) sets = sets_of(text, NULL, &error);
        ck_assert(sets);
        ck_assert_uint_eq(sets->sets->len, 0);
    }
}
END_TEST

/* --- checks --------------------------------------------------------------------------------- */

START_TEST(only_checks_of_this_controller_are_ours)
{
    struct check_view view;

    ck_assert(check_view_decode(arena,
                                parsed(arena, "{'metadata':{'name':'c','generation':3},'spec':{'"
                                              "controllerName':'gpuledger.io/fit','parameters':{}},"
                                              "'status':{'conditions':[{'type':'Active','status':'"
                                              "True','reason':'Active','observedGeneration':2}]}}"),
                                &view, NULL));
    ck_assert(view.ours && view.parameters);
    ck_assert_int_eq(view.observed, 2);
    ck_assert_str_eq(view.status, "True");
    ck_assert(check_view_decode(
        arena, parsed(arena, "{'metadata':{'name':'c'},'spec':{'controllerName':'x'}}"), &view,
        NULL));
    ck_assert(!view.ours && !view.status);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("workload");
    TCase *tests = tcase_create("workload");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, one_that_waits_is_read);
    tcase_add_loop_test(tests, others_do_not_wait, 0, G_N_ELEMENTS(not_waiting));
    tcase_add_test(tests, what_kueue_has_admitted_counts);
    tcase_add_test(tests, what_is_too_much_or_no_number_is_refused);
    tcase_add_test(tests, times_that_have_not_come_are_now);
    tcase_add_test(tests, pods_get_what_their_flavor_has);
    tcase_add_test(tests, pods_may_switch_their_limits_off);
    tcase_add_test(tests, pods_without_a_gpu_are_left_out);
    tcase_add_test(tests, what_cannot_be_read_names_its_pod_set);
    tcase_add_test(tests, a_template_that_is_no_pod_is_no_crash);
    tcase_add_test(tests, only_checks_of_this_controller_are_ours);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
