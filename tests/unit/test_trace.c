/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace of pods may say, and that a pod of a simulation is bound once. */
#include "simulate/memory_cluster.h"
#include "simulate/trace.h"
#include "store/store.h"
#include "suite.h"

#include <string.h>

#define HEADING "name,num_gpu,gpu_milli,pod_group,pod_group_min,cpu_milli,memory_mib\n"

static const struct {
    const char *rows;
    const char *names; /* NULL: refused */
    const char *error; /* part of it */
} traces[] = {
    {"a,1,500,,0,1,1\nb,1,500,,0,1,1\n", "a b", NULL},
    {"\"a\",1,500,,0,1,1\n", "a", NULL},
    {"\"a,b\",1,500,,0,1,1\n", "a,b", NULL},
    {"\"a\"\"b\",1,500,,0,1,1\n", "a\"b", NULL},
    {"\"a\"b,1,500,,0,1,1\n", NULL, "not doubled inside quotes"},
    {"\"a,1,500,,0,1,1\n", NULL, "not closed"},
    {"a,1,500,g,2,1,1\nb,1,500,g,2,1,1\n", "a b", NULL},
    {"a,1,500,g,0,1,1\nb,1,500,g,0,1,1\n", "a b", NULL},
    {"a,1,500,g,2,1,1\nb,1,500,g,3,1,1\n", NULL, "another pod of 'g' above says that it needs 2"},
    {"a,1,500,g,2,1,1\nb,1,500,g,0,1,1\n", NULL, "another pod of 'g' above says that it needs 2"},
    {"a,1,500,,2,1,1\n", NULL, "the pod is in no pod_group"},
};

START_TEST(pods_are_read_or_refused)
{
    g_autofree char *text = g_strconcat(HEADING, traces[_i].rows, NULL);
    g_autoptr(trace) trace = trace_new();
    g_autoptr(GString) names = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const bool ok = trace_read_pods(trace, text, strlen(text), &error);

    if (!traces[_i].names) {
        ck_assert_msg(!ok, "'%s' is read", traces[_i].rows);
        ck_assert_msg(strstr(error->message, traces[_i].error), "%s", error->message);
        return;
    }
    ck_assert_msg(ok, "%s", error ? error->message : "");
    for (guint i = 0; i < trace->pods->len; i++)
        g_string_append_printf(names, "%s%s", i ? " " : "",
                               g_array_index(trace->pods, struct trace_pod, i).name);
    ck_assert_str_eq(names->str, traces[_i].names);
}
END_TEST

static struct cluster *cluster;

static enum outcome bind(const char *uid, const char *node)
{
    const struct binding binding = {.ns = "ml", .name = "p", .uid = uid, .node = node};

    return cluster->ops->bind(cluster, &binding, 0, NULL);
}

START_TEST(a_pod_is_bound_once)
{
    struct store *store = store_new(&(struct store_options){.policy = &policies[0]});

    cluster = memory_cluster_new(store);
    memory_cluster_set_paced(cluster);
    ck_assert(memory_cluster_add(
        cluster,
        g_strdup("{\"metadata\":{\"namespace\":\"ml\",\"name\":\"p\",\"uid\":\"u\"},\"spec\":"
                 "{\"containers\":[{\"name\":\"c\"}]}}"),
        NULL));
    ck_assert_int_eq(bind("another", "n1"), OUTCOME_CONFLICT);
    ck_assert_ptr_null(memory_cluster_node(cluster, "ml", "p"));
    ck_assert_int_eq(bind("u", "n1"), OUTCOME_OK);
    ck_assert_int_eq(bind("u", "n2"), OUTCOME_CONFLICT);
    ck_assert_str_eq(memory_cluster_node(cluster, "ml", "p"), "n1");
    memory_cluster_free(cluster);
    store_free(store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    TCase *tests = tcase_create("trace");

    tcase_add_loop_test(tests, pods_are_read_or_refused, 0, G_N_ELEMENTS(traces));
    tcase_add_test(tests, a_pod_is_bound_once);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
