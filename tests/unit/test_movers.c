/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods of a node a plan may move, and why the others stay. */
#include "evicting_api.h"
#include "objects.h"

#include "kube/api_cluster.h"
#include "literals.h"
#include "maintain/movers.h"
#include "suite.h"
#include "wire/kubernetes.h"

#define MEM "aliyun.com/gpu-mem"

static struct cluster *cluster;
static struct store *known;

static void setup(void)
{
    evicting_begin();
    cluster = api_cluster_new(client);
    known = store_new(&(struct store_options){.policy = policies});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(known, feed);
    store_apply_node(
        known, &(struct node_view){.name = "n1",
                                   .capacity = PAIRS({MEM, "20"}, {"aliyun.com/gpu-count", "2"})});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(known, feed);
}

static void teardown(void)
{
    store_free(known);
    api_cluster_free(cluster);
    evicting_end();
}

struct candidate {
    const char *owner;       /* kind of its controller; NULL: it has none */
    const char *annotations; /* more of them: ",\"k\":\"v\"" */
    const char *labels;      /* of the pod: "\"k\":\"v\"" */
    bool deleted, no_gpu;
    int priority;
    const char *started; /* JSON of the status: ",\"startTime\":\"…\"" */
};
static struct permits *permits; /* NULL: none */

static const char *text_of(struct candidate candidate)
{
    g_autofree char *owners =
        candidate.owner
            ? g_strdup_printf(",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\","
                              "\"name\":\"o\",\"uid\":\"o\",\"controller\":true}]",
                              candidate.owner)
            : g_strdup("");

    return keep(g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"a\",\"labels\":{%s},"
        "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":"
        "\"true\"%s}%s%s},\"spec\":{\"nodeName\":\"n1\",\"priority\":%d,\"containers\":[{"
        "\"name\":\"c\",\"resources\":{\"limits\":{\"%s\":\"2\"}}}]},\"status\":{\"phase\":"
        "\"Running\"%s}}",
        candidate.labels ? candidate.labels : "",
        candidate.annotations ? candidate.annotations : "", owners,
        candidate.deleted ? ",\"deletionTimestamp\":\"2026-01-05T12:00:00Z\"" : "",
        candidate.priority, candidate.no_gpu ? "cpu" : MEM,
        candidate.started ? candidate.started : ""));
}

/* In the ledger as well, if `held`. */
static struct movers *read_pod(struct candidate candidate, bool held, bool force)
{
    const char *text = text_of(candidate);
    struct movers *movers = movers_new(cluster, force);

    movers_spare_new(movers, permits);
    if (held) {
        g_autoptr(json_arena) arena = json_arena_new();
        struct pod_view view;
        ck_assert(pod_view_decode(arena, json_parse(arena, text, strlen(text), NULL), &view, NULL));
        store_apply_pod(known, &view);
    }
    answer("GET /api/v1/pods?", 1, 200, keep(g_strdup_printf("{\"items\":[%s]}", text)));
    ck_assert(movers_read(movers, known, "n1", NULL));
    return movers;
}

/* --- who stays ------------------------------------------------------------------------------------ */

static const struct {
    struct candidate candidate;
    bool force;
    const char *stays; /* NULL: it may be moved */
} candidates[] = {
    {{.owner = "ReplicaSet"}, false, NULL},
    {{.owner = "Job"}, false, NULL},
    {{.owner = NULL}, false, "nobody makes it again; --force ends it"},
    {{.owner = NULL}, true, NULL},
    {{.owner = "DaemonSet"}, true, "its DaemonSet would make it again on this node"},
    {{.owner = "ReplicaSet", .annotations = ",\"kubernetes.io/config.mirror\":\"x\""},
     true,
     "it is kubelet's own: remove its file from the node"},
    {{.owner = "ReplicaSet", .deleted = true}, true, "it ends already"},
    {{.owner = "Job", .annotations = ",\"gang.scheduling.koordinator.sh/name\":\"g\""},
     true,
     "it is of the group 'g', which would wait for it"},
#define KEEPS(key, value)                                                                          \
    {{.owner = "Job", .annotations = ",\"" key "\":\"" value "\""},                                \
     true,                                                                                         \
     "its annotation " key " says so"}
#define MOVES(key, value)                                                                          \
    {{.owner = "Job", .annotations = ",\"" key "\":\"" value "\""}, false, NULL}
    KEEPS("descheduler.alpha.kubernetes.io/prefer-no-eviction", ""),
    KEEPS("descheduler.alpha.kubernetes.io/eviction-in-progress", "true"),
    KEEPS("scheduling.koordinator.sh/refuse-to-migrate", "yes"),
    KEEPS("scheduling.koordinator.sh/eviction-cost", "2147483647"),
    KEEPS("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    KEEPS("karpenter.sh/do-not-disrupt", "true"),
    MOVES("descheduler.alpha.kubernetes.io/prefer-no-eviction", "false"),
    MOVES("scheduling.koordinator.sh/eviction-cost", "2147483646"),
    MOVES("cluster-autoscaler.kubernetes.io/safe-to-evict", "true"),
    MOVES("karpenter.sh/do-not-disrupt", "false"),
    MOVES("karpenter.sh/do-not-disrupt", "1h"),
};

START_TEST(who_may_be_moved)
{
    g_autoptr(movers) movers = read_pod(candidates[_i].candidate, true, candidates[_i].force);

    ck_assert_uint_eq(movers_n(movers), 1);
    ck_assert_str_eq(movers_get(movers, 0)->uid, "a");
    ck_assert_msg(g_strcmp0(movers_get(movers, 0)->stays, candidates[_i].stays) == 0, "%s",
                  movers_get(movers, 0)->stays);
}
END_TEST

static const struct {
    const char *started; /* the clock begins at 12:00 */
    bool stays;
} runs[] = {
    {",\"startTime\":\"2026-01-05T11:50:00Z\"", false},
    {",\"startTime\":\"2026-01-05T11:50:01Z\"", true},
    {NULL, true},
};

/* Else a plan would choose it, and stop where it is to be evicted. */
START_TEST(who_has_not_run_for_long_enough_stays)
{
    permits = permits_new(&(struct permits_options){.min_runtime_ms = 600000});
    g_autoptr(movers) movers =
        read_pod((struct candidate){.owner = "Job", .started = runs[_i].started}, true, false);

    ck_assert_msg(g_strcmp0(movers_get(movers, 0)->stays, runs[_i].stays ? PERMITS_YOUNG : NULL) ==
                      0,
                  "%s", movers_get(movers, 0)->stays);
    g_clear_pointer(&permits, permits_free);
}
END_TEST

START_TEST(only_pods_of_the_ledger_are_moved)
{
    static const struct {
        struct candidate candidate;
        bool held;
        guint n;
    } rows[] = {
        {{.owner = "Job"}, true, 1},
        {{.owner = "Job"}, false, 0},
        {{.owner = "Job", .no_gpu = true}, false, 0},
    };
    g_autoptr(movers) movers = read_pod(rows[_i].candidate, rows[_i].held, false);

    ck_assert_uint_eq(movers_n(movers), rows[_i].n);
}
END_TEST

/* As its successor would be. */
START_TEST(a_mover_has_neither_uid_nor_node)
{
    g_autoptr(movers) movers = read_pod((struct candidate){.owner = "Job"}, true, false);
    const struct mover *mover = movers_get(movers, 0);

    ck_assert_ptr_null(mover->view.uid);
    ck_assert_ptr_null(mover->view.node_name);
    ck_assert_str_eq(mover->controller.uid, "o");
    ck_assert_ptr_nonnull(mover->request);
}
END_TEST

START_TEST(the_more_important_stay)
{
    static const struct {
        int priority;
        bool stays;
    } rows[] = {{99, false}, {100, false}, {101, true}};
    g_autoptr(movers) movers = movers_new(cluster, false);
    const struct candidate candidate = {.owner = "Job", .priority = rows[_i].priority};
    g_autoptr(movers) before = read_pod(candidate, true, false);

    answer("GET /api/v1/pods?", 1, 200,
           keep(g_strdup_printf("{\"items\":[%s]}", text_of(candidate))));
    movers_spare_above(movers, 100);
    ck_assert(movers_read(movers, known, "n1", NULL));
    ck_assert_int_eq(movers_get(movers, 0)->stays != NULL, rows[_i].stays);
    ck_assert_ptr_null(movers_get(before, 0)->stays);
}
END_TEST

START_TEST(pods_that_cannot_be_read_are_an_error)
{
    g_autoptr(movers) movers = movers_new(cluster, false);
    g_autoptr(GError) error = NULL;

    answer("GET /api/v1/pods?", 1, 403, NULL);
    ck_assert(!movers_read(movers, known, "n1", &error));
    ck_assert_msg(g_str_has_prefix(error->message, "pods of node 'n1': "), "%s", error->message);
}
END_TEST

/* --- budgets ---------------------------------------------------------------------------------- */

static void set_budget(const char *name, int allowed, const char *app)
{
    g_autofree char *text = g_strdup_printf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\"},\"spec\":{"
        "\"selector\":"
        "{\"matchLabels\":{\"app\":\"%s\"}}},\"status\":{\"disruptionsAllowed\":%d}}",
        name, name, app, allowed);
    g_autoptr(json_arena) arena = json_arena_new();
    struct budget_view view;

    ck_assert(budget_view_decode(arena, json_parse(arena, text, strlen(text), NULL), &view, NULL));
    store_put_budget(known, &view);
}

static const struct {
    int allowed[2];  /* -1: there is no such budget */
    const char *app; /* of the budgets */
    const char *stays;
} budgets[] = {
    {{-1, -1}, "web", NULL},
    {{1, -1}, "web", NULL},
    {{0, -1}, "web", "its PodDisruptionBudget has nothing to give now"},
    {{0, -1}, "db", NULL},
    {{0, 0}, "db", NULL},
    {{5, 5},
     "web",
     "several PodDisruptionBudgets cover it, and the Eviction API refuses such pods"},
};

START_TEST(a_budget_that_gives_nothing_keeps_its_pods)
{
    for (int i = 0; i < 2; i++) {
        if (budgets[_i].allowed[i] >= 0)
            set_budget(i == 0 ? "first" : "second", budgets[_i].allowed[i], budgets[_i].app);
    }
    g_autoptr(movers) movers =
        read_pod((struct candidate){.owner = "Job", .labels = "\"app\":\"web\""}, true, false);
    ck_assert_msg(g_strcmp0(movers_get(movers, 0)->stays, budgets[_i].stays) == 0, "%s",
                  movers_get(movers, 0)->stays);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("movers");
    TCase *tests = tcase_create("movers");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, who_may_be_moved, 0, G_N_ELEMENTS(candidates));
    tcase_add_loop_test(tests, who_has_not_run_for_long_enough_stays, 0, G_N_ELEMENTS(runs));
    tcase_add_loop_test(tests, only_pods_of_the_ledger_are_moved, 0, 3);
    tcase_add_test(tests, a_mover_has_neither_uid_nor_node);
    tcase_add_loop_test(tests, the_more_important_stay, 0, 3);
    tcase_add_test(tests, pods_that_cannot_be_read_are_an_error);
    tcase_add_loop_test(tests, a_budget_that_gives_nothing_keeps_its_pods, 0,
                        G_N_ELEMENTS(budgets));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
