/* SPDX-License-Identifier: Apache-2.0 */
/* Who ends so that a node can be switched, how many, and what is asked before each of them. */
#include "evicting_api.h"

#include "kube/api_cluster.h"
#include "suite.h"
#include "switch/node_switch.h"

#define CUT "nvidia.com/mig.config=all-1g.10gb@2026-01-05T11:59:00Z"
#define SLOTS "gpuledger.io/slots=1@2026-01-05T11:59:00Z"
#define NODE "/api/v1/nodes/n1 "
#define DRAIN_S 600

/* On card 0 of a node of two cards, of 2 of its units; `kind` as in struct api_pod, NULL: no controller. */
struct gpu_pod {
    const char *name, *ns, *kind, *annotations;
    bool no_gpu, deleted;
    int priority;
};

static struct cluster *cluster;
static const struct dialect_options dialects_of;
static struct node_switch with;
static GString *pods; /* of the list */
static unsigned n_terms,
    term_until; /* as often as it was asked; as often as it serves, 0: always */

static uint64_t term_of(struct leadership *leadership)
{
    return term_until == 0 || n_terms++ < term_until ? 7 : 8;
}

static const struct leadership_ops ops = {.term = term_of};
static struct leadership leader = {&ops};

static void setup(void)
{
    evicting_begin();
    cluster = api_cluster_new(client);
    pods = g_string_new(NULL);
    n_terms = term_until = 0;
    with = (struct node_switch){.client = client,
                                .cluster = cluster,
                                .moves_ns = "gpu",
                                .limits = {.notice_s = 60, .drain_s = DRAIN_S, .deadline_s = 900},
                                .dialects = &dialects_of,
                                .leadership = &leader,
                                .term = 7};
}

static void teardown(void)
{
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    g_string_free(pods, TRUE);
    api_cluster_free(cluster);
    evicting_end();
}

static void add(struct gpu_pod pod)
{
    g_autofree char *owners =
        pod.kind ? g_strdup_printf(",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
                                   "\"%s\",\"name\":\"o\",\"uid\":\"o\",\"controller\":true}]",
                                   pod.kind)
                 : g_strdup("");

    g_string_append_printf(
        pods,
        "%s{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"uid-%s\",\"annotations\":{"
        "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"%s}%s%s},"
        "\"spec\":{\"nodeName\":\"n1\",\"priority\":%d,\"containers\":[{\"name\":\"c\","
        "\"resources\":{\"limits\":{\"%s\":\"2\"}}}]},\"status\":{\"phase\":\"Running\"}}",
        pods->len ? "," : "", pod.ns ? pod.ns : "ml", pod.name, pod.name,
        pod.annotations ? pod.annotations : "", owners,
        pod.deleted ? ",\"deletionTimestamp\":\"2026-01-05T12:00:00Z\"" : "", pod.priority,
        pod.no_gpu ? "cpu" : "aliyun.com/gpu-mem");
}

/* A look at the node, which is drained since then; NULL: not yet. */
static void look_since(const char *mark, const char *since, struct node_look *ret_look)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *state =
        since ? g_strdup_printf(",\"gpuledger.io/switch-state\":\"draining@%s/\"", since)
              : g_strdup("");

    answer("GET " NODE, 1, 200,
           keep(g_strdup_printf(
               "{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"1\",\"annotations\":{"
               "\"gpuledger.io/switch\":\"%s\"%s}},\"spec\":{\"taints\":[{\"key\":"
               "\"gpuledger.io/switching\",\"effect\":\"NoSchedule\"}]},\"status\":{\"capacity\":{"
               "\"aliyun.com/gpu-mem\":\"20\",\"aliyun.com/gpu-count\":\"2\"}}}",
               mark, state)));
    answer("GET /api/v1/pods?", FAKE_ALWAYS, 200,
           keep(g_strdup_printf("{\"items\":[%s]}", pods->str)));
    answer("/events ", FAKE_ALWAYS, 201, NULL);
    answer("PATCH " NODE, FAKE_ALWAYS, 200, NULL);
    ck_assert_msg(node_switch_look(&with, "n1", NULL, ret_look, &error) == OUTCOME_OK, "%s",
                  error ? error->message : "");
}

/* Returns how many were evicted. */
static guint look_at(const char *mark, struct node_look *ret_look)
{
    struct node_look look;

    look_since(mark, "2026-01-05T11:59:00Z", &look);
    const guint n = look.n_evicted;
    if (ret_look)
        *ret_look = look;
    else
        node_look_clear(&look);
    return n;
}

/* --- whom ----------------------------------------------------------------------------------------- */

static const struct {
    struct gpu_pod pod;
    guint holds, ends;
} candidates[] = {
    {{.name = "a", .kind = "ReplicaSet"}, 1, 1},
    {{.name = "a"}, 1, 1}, /* nobody makes it again: it ends all the same */
    {{.name = "a", .kind = "DaemonSet"}, 1, 0},
    {{.name = "a", .annotations = ",\"kubernetes.io/config.mirror\":\"x\""}, 1, 0},
    {{.name = "a", .kind = "ReplicaSet", .deleted = true}, 1, 0},
    {{.name = "a", .kind = "ReplicaSet", .no_gpu = true}, 0, 0},
    {{.name = "a", .kind = "Job", .annotations = ",\"gang.scheduling.koordinator.sh/name\":\"g\""},
     1,
     1},
    /* docs/switch.md says all pods with GPUs: the opt-outs of other programs, by which a plan and --reclaim go, do
     * not keep them. */
    {{.name = "a", .kind = "Job", .annotations = ",\"karpenter.sh/do-not-disrupt\":\"true\""},
     1,
     1},
    {{.name = "a",
      .kind = "Job",
      .annotations = ",\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"false\""},
     1,
     1},
    {{.name = "a",
      .kind = "Job",
      .annotations = ",\"scheduling.koordinator.sh/refuse-to-migrate\":\"true\""},
     1,
     1},
};

START_TEST(who_has_a_gpu_ends_unless_it_would_come_back)
{
    struct node_look look;

    add(candidates[_i].pod);
    accept_evictions(FAKE_ALWAYS);
    ck_assert_uint_eq(look_at(CUT, &look), candidates[_i].ends);
    ck_assert_uint_eq(count_requests("/eviction ", NULL), candidates[_i].ends);
    ck_assert_uint_eq(count_requests("/ml/events ", "\"reason\":\"GPUPodMoved\""),
                      candidates[_i].ends);
    /* Without a ledger of its own it waits for Bindings that may be on their way; that is over. */
    ck_assert_uint_eq(look.n_holders, candidates[_i].holds);
    node_look_clear(&look);
}
END_TEST

/* Of three holders of one card two have to go, those of least priority; who cannot be evicted goes last. */
START_TEST(of_slots_only_those_end_who_are_too_many)
{
    add((struct gpu_pod){.name = "high", .kind = "Job", .priority = 9});
    add((struct gpu_pod){.name = "agent", .kind = "DaemonSet", .priority = -1});
    add((struct gpu_pod){.name = "low", .kind = "Job", .priority = 1});
    accept_evictions(FAKE_ALWAYS);
    ck_assert_uint_eq(look_at(SLOTS, NULL), 2);
    ck_assert_uint_eq(count_requests("/high/eviction ", NULL), 1);
    ck_assert_uint_eq(count_requests("/low/eviction ", NULL), 1);
    ck_assert_uint_eq(count_requests("/agent/eviction ", NULL), 0);
}
END_TEST

START_TEST(of_slots_one_may_stay)
{
    add((struct gpu_pod){.name = "high", .kind = "Job", .priority = 9});
    add((struct gpu_pod){.name = "low", .kind = "Job", .priority = 1});
    accept_evictions(FAKE_ALWAYS);
    ck_assert_uint_eq(look_at(SLOTS, NULL), 1);
    ck_assert_uint_eq(count_requests("/low/eviction ", NULL), 1);
}
END_TEST

/* --- when ------------------------------------------------------------------------------------- */

static const struct {
    const char *mark, *since;
    bool dry_run;
    guint ends;
} times[] = {
    {CUT, "2026-01-05T11:59:00Z", false, 1},
    {CUT, "2026-01-05T11:59:00Z", true, 0},
    {CUT, "2026-01-05T11:50:00Z", false, 1}, /* ten minutes: until then */
    {CUT, "2026-01-05T11:49:59Z", false, 0}, /* it is given up */
    {CUT, NULL, false, 0},                   /* it begins: the taint comes first */
    {"nvidia.com/mig.config=all-1g.10gb@2026-01-05T12:00:01Z", NULL, false, 0},
};

START_TEST(nobody_ends_before_its_time_or_after)
{
    struct node_look look;

    add((struct gpu_pod){.name = "a", .kind = "Job"});
    accept_evictions(FAKE_ALWAYS);
    with.dry_run = times[_i].dry_run;
    look_since(times[_i].mark, times[_i].since, &look);
    ck_assert_uint_eq(look.n_evicted, times[_i].ends);
    ck_assert_uint_eq(count_requests("/eviction ", NULL), times[_i].ends);
    node_look_clear(&look);
}
END_TEST

/* Whoever keeps no ledger does not know of Bindings that are on their way: it waits for them. */
START_TEST(an_empty_node_is_empty_when_no_binding_can_be_on_its_way)
{
    static const struct {
        const char *since;
        guint holds;
    } rows[] = {
        {"2026-01-05T12:00:00Z", 1}, {"2026-01-05T11:59:31Z", 1}, {"2026-01-05T11:59:30Z", 0}};
    struct node_look look;

    look_since(CUT, rows[_i].since, &look);
    ck_assert_uint_eq(look.n_holders, rows[_i].holds);
    ck_assert_int_eq(look.event, rows[_i].holds ? SWITCH_EVENT_NONE : SWITCH_EVENT_SET);
    node_look_clear(&look);
}
END_TEST

/* --- how many --------------------------------------------------------------------------------- */

static const struct {
    uint32_t most;
    const char *namespaces[3];
    guint ends;
} namespaces[] = {
    {0, {"ml", "ml", "ml"}, 3}, {1, {"ml", "web", "db"}, 3},
    {1, {"ml", "ml", "db"}, 0}, /* nobody of the others either */
    {2, {"ml", "ml", "db"}, 3}, {2, {"ml", "ml", "ml"}, 0},
};

START_TEST(nobody_ends_where_too_many_of_a_namespace_would)
{
    struct node_look look;

    for (int i = 0; i < 3; i++)
        add((struct gpu_pod){.name = keep(g_strdup_printf("p%d", i)),
                             .ns = namespaces[_i].namespaces[i]});
    accept_evictions(FAKE_ALWAYS);
    with.limits.max_per_namespace = namespaces[_i].most;
    ck_assert_uint_eq(look_at(CUT, &look), namespaces[_i].ends);
    if (namespaces[_i].ends == 0)
        ck_assert_str_eq(look.waits, "more pods of one namespace are there than may end");
    node_look_clear(&look);
}
END_TEST

START_TEST(none_ends_while_evictions_are_stopped)
{
    struct permits *permits = permits_new(&(struct permits_options){.stopped = true});
    struct node_look look;

    add((struct gpu_pod){.name = "a", .kind = "Job"});
    accept_evictions(FAKE_ALWAYS);
    with.permits = permits;
    ck_assert_uint_eq(look_at(CUT, &look), 0);
    ck_assert_str_eq(look.waits, "evictions are stopped");
    ck_assert_uint_eq(count_evictions(), 0);
    node_look_clear(&look);
    permits_stop(permits, NULL);
    ck_assert_uint_eq(look_at(CUT, NULL), 1);
    with.permits = NULL;
    permits_free(permits);
}
END_TEST

START_TEST(as_many_end_as_the_limits_allow)
{
    struct permits *permits =
        permits_new(&(struct permits_options){.limits = {.per_namespace = 2}});

    for (int i = 0; i < 3; i++)
        add((struct gpu_pod){.name = keep(g_strdup_printf("p%d", i)), .kind = "Job"});
    accept_evictions(FAKE_ALWAYS);
    with.permits = permits;
    ck_assert_uint_eq(look_at(CUT, NULL), 2);
    ck_assert_uint_eq(count_evictions(), 2);
    with.permits = NULL;
    permits_free(permits);
}
END_TEST

static const char *hour(const char *ago)
{
    return keep(g_strdup_printf(
        "{\"metadata\":{\"name\":\"gpuledger-moves\",\"resourceVersion\":\"4\"},\"data\":{"
        "\"moves\":\"%s\"}}",
        ago));
}
#define MOVES "/api/v1/namespaces/gpu/configmaps/gpuledger-moves "

START_TEST(each_takes_its_place_in_the_hour_before_it_ends)
{
    add((struct gpu_pod){.name = "a", .kind = "Job"});
    accept_evictions(FAKE_ALWAYS);
    answer("GET " MOVES, 1, 200, hour(""));
    answer("PATCH " MOVES, 1, 200, NULL);
    with.limits.max_per_hour = 5;
    ck_assert_uint_eq(look_at(CUT, NULL), 1);
    expect_list("G nodes/n1; G pods?fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase%21%3DSucceeded"
                "%2Cstatus.phase%21%3DFailed; P a/eviction dry; G gpu/configmaps/gpuledger-moves; "
                "P gpu/configmaps/gpuledger-moves; P a/eviction; P ml/events");
    ck_assert_uint_eq(count_requests(MOVES, "2026-01-05T12:00:00Z uid-a ml n1 switch\\n"), 1);
}
END_TEST

START_TEST(a_full_hour_lets_nobody_else_end)
{
    struct node_look look;

    for (int i = 0; i < 3; i++)
        add((struct gpu_pod){.name = keep(g_strdup_printf("p%d", i)), .kind = "Job"});
    accept_evictions(FAKE_ALWAYS);
    answer("GET " MOVES, 1, 200, hour("2026-01-05T11:30:00Z x web n9\\n"));
    answer("GET " MOVES, FAKE_ALWAYS, 200,
           hour("2026-01-05T11:30:00Z x web n9\\n2026-01-05T12:00:00Z uid-p0 ml n1\\n"));
    answer("PATCH " MOVES, FAKE_ALWAYS, 200, NULL);
    with.limits.max_per_hour = 2;
    ck_assert_uint_eq(look_at(CUT, &look), 1);
    ck_assert_uint_eq(count_evictions(), 1);
    ck_assert_str_eq(look.waits, "as many pods as may have been evicted within an hour");
    ck_assert_ptr_null(look.unread);
    node_look_clear(&look);
}
END_TEST

START_TEST(an_hour_that_nobody_knows_lets_nobody_end)
{
    struct node_look look;

    add((struct gpu_pod){.name = "a", .kind = "Job"});
    add((struct gpu_pod){.name = "b", .kind = "Job"});
    accept_evictions(FAKE_ALWAYS);
    answer("GET " MOVES, _i == 0 ? FAKE_ALWAYS : 1, _i == 0 ? 403 : 200, hour(""));
    if (_i == 1)
        answer("PATCH " MOVES, 1, 403, NULL);
    with.limits.max_per_hour = 2;
    ck_assert_uint_eq(look_at(CUT, &look), 0);
    ck_assert_uint_eq(count_evictions(), 0);
    ck_assert_str_eq(look.waits, "how many pods were evicted within the hour is not known");
    ck_assert_ptr_nonnull(strstr(look.unread, "the moves of the last hour"));
    node_look_clear(&look);
}
END_TEST

/* --- outcomes --------------------------------------------------------------------------------- */

static const struct {
    int status;
    const char *text;
    bool per_hour; /* it is tried first */
    guint ends;    /* of both */
    unsigned booked;
} outcomes[] = {
    {201, NULL, false, 2, 0},
    {404, NULL, false, 2, 0},
    {409, NULL, false, 1, 0},
    {403, NULL, false, 1, 0},
    {500, NULL, false, 1, 0},
    {500, SAYS_BUDGETS, false, 1, 0},
    {429, SAYS_BUDGET, false, 1, 0},
    /* Who would not end takes no place in the hour. */
    {201, NULL, true, 2, 2},
    {429, SAYS_BUDGET, true, 1, 1},
    {403, NULL, true, 1, 1},
};

/* Its next look sees what has become of it; the others go on. */
START_TEST(one_that_does_not_end_keeps_nobody_else)
{
    add((struct gpu_pod){.name = "a", .kind = "Job"});
    add((struct gpu_pod){.name = "b", .kind = "Job"});
    answer("a/eviction ", FAKE_ALWAYS, outcomes[_i].status, outcomes[_i].text);
    accept_evictions(FAKE_ALWAYS);
    answer("GET " MOVES, FAKE_ALWAYS, 200, hour(""));
    answer("PATCH " MOVES, FAKE_ALWAYS, 200, NULL);
    with.limits.max_per_hour = outcomes[_i].per_hour ? 9 : 0;
    ck_assert_uint_eq(look_at(CUT, NULL), outcomes[_i].ends);
    ck_assert_uint_eq(count_requests("/events ", NULL), outcomes[_i].ends);
    ck_assert_uint_eq(count_requests("PATCH " MOVES, NULL), outcomes[_i].booked);
}
END_TEST

/* --- the term --------------------------------------------------------------------------------- */

/* It is asked right before each, and with an hour when the place was taken, which then is lost. */
static const struct {
    unsigned until;
    bool per_hour;
    guint ends;
    unsigned booked;
} term_rows[] = {
    {0, false, 3, 0}, {3, false, 3, 0}, {2, false, 2, 0}, {1, false, 1, 0},
    {1, true, 0, 1},  {2, true, 1, 2},  {3, true, 1, 2},
};

START_TEST(nobody_ends_after_the_term)
{
    for (int i = 0; i < 3; i++)
        add((struct gpu_pod){.name = keep(g_strdup_printf("p%d", i)), .kind = "Job"});
    accept_evictions(FAKE_ALWAYS);
    answer("GET " MOVES, FAKE_ALWAYS, 200, hour(""));
    answer("PATCH " MOVES, FAKE_ALWAYS, 200, NULL);
    with.limits.max_per_hour = term_rows[_i].per_hour ? 9 : 0;
    term_until = term_rows[_i].until;
    ck_assert_uint_eq(look_at(CUT, NULL), term_rows[_i].ends);
    ck_assert_uint_eq(count_evictions(), term_rows[_i].ends);
    ck_assert_uint_eq(count_requests("PATCH " MOVES, NULL), term_rows[_i].booked);
}
END_TEST

START_TEST(nothing_is_written_after_the_term)
{
    g_autoptr(GError) error = NULL;
    struct node_look look;

    answer("GET " NODE, 1, 200,
           "{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"1\",\"annotations\":{"
           "\"gpuledger.io/switch\":\"" CUT "\"}},\"status\":{}}");
    with.term = 6;
    ck_assert_int_eq(node_switch_look(&with, "n1", NULL, &look, &error), OUTCOME_CONFLICT);
    ck_assert_ptr_nonnull(error);
    ck_assert_uint_eq(fake_server_count(server), 1);
    node_look_clear(&look);
}
END_TEST

/* The command carries out what it was told to, and nothing else. */
START_TEST(another_switch_is_left_alone)
{
    static const struct switch_mark mine = {.label = "nvidia.com/mig.config", .value = "other"};
    g_autoptr(GError) error = NULL;
    struct node_look look;

    answer("GET " NODE, 1, 200,
           "{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"1\",\"annotations\":{"
           "\"gpuledger.io/switch\":\"" CUT
           "\",\"gpuledger.io/switch-state\":\"draining@2026-01-05T11:59:00Z/\"}},\"status\":{}}");
    with.only = &mine;
    ck_assert_int_eq(node_switch_look(&with, "n1", NULL, &look, &error), OUTCOME_REFUSED);
    ck_assert_ptr_nonnull(strstr(error->message, "another switch is announced"));
    ck_assert_uint_eq(fake_server_count(server), 1);
    node_look_clear(&look);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("switch_drain");
    TCase *tests = tcase_create("switch_drain");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, who_has_a_gpu_ends_unless_it_would_come_back, 0,
                        G_N_ELEMENTS(candidates));
    tcase_add_test(tests, of_slots_only_those_end_who_are_too_many);
    tcase_add_test(tests, of_slots_one_may_stay);
    tcase_add_loop_test(tests, nobody_ends_before_its_time_or_after, 0, G_N_ELEMENTS(times));
    tcase_add_loop_test(tests, an_empty_node_is_empty_when_no_binding_can_be_on_its_way, 0, 3);
    tcase_add_loop_test(tests, nobody_ends_where_too_many_of_a_namespace_would, 0,
                        G_N_ELEMENTS(namespaces));
    tcase_add_test(tests, each_takes_its_place_in_the_hour_before_it_ends);
    tcase_add_test(tests, none_ends_while_evictions_are_stopped);
    tcase_add_test(tests, as_many_end_as_the_limits_allow);
    tcase_add_test(tests, a_full_hour_lets_nobody_else_end);
    tcase_add_loop_test(tests, an_hour_that_nobody_knows_lets_nobody_end, 0, 2);
    tcase_add_loop_test(tests, one_that_does_not_end_keeps_nobody_else, 0, G_N_ELEMENTS(outcomes));
    tcase_add_loop_test(tests, nobody_ends_after_the_term, 0, G_N_ELEMENTS(term_rows));
    tcase_add_test(tests, nothing_is_written_after_the_term);
    tcase_add_test(tests, another_switch_is_left_alone);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
