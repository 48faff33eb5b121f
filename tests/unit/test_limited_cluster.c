/* SPDX-License-Identifier: Apache-2.0 */
#include "store/limited_cluster.h"

#include "suite.h"

#include <gpuledger/error.h>

/* Writes down what it is asked. */
static struct {
    int64_t deadline_ms;
    const struct binding *binding;
    const char *ns, *name;
    enum feed feed;
    const struct pod_annotation *annotation;
    const struct node_annotation *node_annotation;
    const struct pod_event *event;
} asked;

static enum outcome ask_bind(struct cluster *cluster, const struct binding *binding,
                             int64_t deadline_ms, GError **error)
{
    asked.deadline_ms = deadline_ms;
    asked.binding = binding;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT, "taken");
    return OUTCOME_CONFLICT;
}

static enum outcome ask_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                            const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                            GError **error)
{
    asked.deadline_ms = deadline_ms;
    asked.ns = ns;
    asked.name = name;
    ret_pod->uid = "u";
    return OUTCOME_OK;
}

static enum outcome ask_list(struct cluster *cluster, enum feed feed, struct store *store,
                             GError **error)
{
    asked.feed = feed;
    return OUTCOME_UNKNOWN;
}

static enum outcome ask_annotate(struct cluster *cluster, const struct pod_annotation *annotation,
                                 int64_t deadline_ms, GError **error)
{
    asked.deadline_ms = deadline_ms;
    asked.annotation = annotation;
    return OUTCOME_NOT_FOUND;
}

static enum outcome ask_node(struct cluster *cluster, struct json_arena *arena, const char *name,
                             int64_t deadline_ms, struct node_view *ret_node, GError **error)
{
    asked.deadline_ms = deadline_ms;
    asked.name = name;
    ret_node->resource_version = "7";
    return OUTCOME_OK;
}

static enum outcome ask_pods_on(struct cluster *cluster, struct json_arena *arena,
                                const char *node, int64_t deadline_ms, struct pod_view **ret_pods,
                                size_t *ret_n, GError **error)
{
    asked.deadline_ms = deadline_ms;
    asked.name = node;
    *ret_n = 3;
    return OUTCOME_OK;
}

static enum outcome ask_annotate_node(struct cluster *cluster,
                                      const struct node_annotation *annotation,
                                      int64_t deadline_ms, GError **error)
{
    asked.deadline_ms = deadline_ms;
    asked.node_annotation = annotation;
    return OUTCOME_CONFLICT;
}

static void ask_post(struct cluster *cluster, const struct pod_event *event)
{
    asked.event = event;
}

static const struct cluster_ops ops = {
    .name = "asked",
    .bind = ask_bind,
    .get_pod = ask_pod,
    .list_pods_on = ask_pods_on,
    .list = ask_list,
    .annotate_pod = ask_annotate,
    .get_node = ask_node,
    .annotate_node = ask_annotate_node,
    .post_event = ask_post,
};
static struct cluster inner = {&ops};

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

START_TEST(calls_end_sooner_than_asked)
{
    g_autofree struct cluster *cluster = limited_cluster_new(&inner, 1000);
    struct pod_view pod = {0};
    int64_t before_ms = now_ms();
    cluster->ops->get_pod(cluster, NULL, "a", "b", before_ms + 3600000, &pod, NULL);
    ck_assert_int_ge(asked.deadline_ms, before_ms + 1000);
    ck_assert_int_le(asked.deadline_ms, now_ms() + 1000);
    cluster->ops->bind(cluster, NULL, before_ms + 3600000, NULL);
    ck_assert_int_le(asked.deadline_ms, now_ms() + 1000);
}
END_TEST

START_TEST(but_never_later)
{
    g_autofree struct cluster *cluster = limited_cluster_new(&inner, 3600000);
    struct pod_view pod = {0};
    int64_t deadline_ms = now_ms() + 5;
    cluster->ops->get_pod(cluster, NULL, "a", "b", deadline_ms, &pod, NULL);
    ck_assert_int_eq(asked.deadline_ms, deadline_ms);
    cluster->ops->bind(cluster, NULL, deadline_ms, NULL);
    ck_assert_int_eq(asked.deadline_ms, deadline_ms);
}
END_TEST

START_TEST(everything_else_is_passed_on)
{
    g_autofree struct cluster *cluster = limited_cluster_new(&inner, 1000);
    g_autoptr(GError) error = NULL;
    struct pod_view pod = {0};
    struct binding binding = {0};
    ck_assert_str_eq(cluster->ops->name, "asked");
    ck_assert_int_eq(cluster->ops->bind(cluster, &binding, now_ms(), &error), OUTCOME_CONFLICT);
    ck_assert_ptr_eq(asked.binding, &binding);
    ck_assert_str_eq(error->message, "taken");
    ck_assert_int_eq(cluster->ops->get_pod(cluster, NULL, "a", "b", now_ms(), &pod, NULL),
                     OUTCOME_OK);
    ck_assert_str_eq(asked.ns, "a");
    ck_assert_str_eq(asked.name, "b");
    ck_assert_str_eq(pod.uid, "u");
    struct pod_view *pods;
    size_t n = 0;
    ck_assert_int_eq(cluster->ops->list_pods_on(cluster, NULL, "m", now_ms() + 3600000, &pods, &n,
                                                NULL),
                     OUTCOME_OK);
    ck_assert_str_eq(asked.name, "m");
    ck_assert_uint_eq(n, 3);
    ck_assert_int_le(asked.deadline_ms, now_ms() + 1000);
    const struct pod_annotation annotation = {0};
    const struct pod_event event = {0};
    ck_assert_int_eq(cluster->ops->list(cluster, FEED_PODS, NULL, NULL), OUTCOME_UNKNOWN);
    ck_assert_int_eq(asked.feed, FEED_PODS);
    ck_assert_int_eq(cluster->ops->annotate_pod(cluster, &annotation, now_ms() + 3600000, NULL),
                     OUTCOME_NOT_FOUND);
    ck_assert_ptr_eq(asked.annotation, &annotation);
    ck_assert_int_le(asked.deadline_ms, now_ms() + 1000);
    const struct node_annotation lock = {0};
    struct node_view node = {0};
    ck_assert_int_eq(cluster->ops->get_node(cluster, NULL, "n", now_ms() + 3600000, &node, NULL),
                     OUTCOME_OK);
    ck_assert_int_le(asked.deadline_ms, now_ms() + 1000);
    ck_assert_str_eq(asked.name, "n");
    ck_assert_str_eq(node.resource_version, "7");
    ck_assert_int_eq(cluster->ops->annotate_node(cluster, &lock, now_ms() + 3600000, NULL),
                     OUTCOME_CONFLICT);
    ck_assert_int_le(asked.deadline_ms, now_ms() + 1000);
    ck_assert_ptr_eq(asked.node_annotation, &lock);
    pod_event_post(cluster, &event);
    ck_assert_ptr_eq(asked.event, &event);
}
END_TEST

START_TEST(what_is_not_there_is_not_offered)
{
    static const struct cluster_ops few = {.name = "few", .bind = ask_bind, .get_pod = ask_pod};
    static struct cluster poor = {&few};
    g_autofree struct cluster *cluster = limited_cluster_new(&poor, 1000);
    ck_assert_ptr_null(cluster->ops->list_pods_on);
    ck_assert_ptr_null(cluster->ops->annotate_pod);
    ck_assert_ptr_null(cluster->ops->get_node);
    ck_assert_ptr_null(cluster->ops->annotate_node);
    asked.event = NULL;
    pod_event_post(cluster, &(struct pod_event){0});
    ck_assert_ptr_null(asked.event);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limited_cluster");
    TCase *cases = tcase_create("deadlines");
    tcase_add_test(cases, calls_end_sooner_than_asked);
    tcase_add_test(cases, but_never_later);
    tcase_add_test(cases, everything_else_is_passed_on);
    tcase_add_test(cases, what_is_not_there_is_not_offered);
    suite_add_tcase(suite, cases);

    return suite_run(suite);
}
