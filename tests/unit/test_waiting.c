/* SPDX-License-Identifier: Apache-2.0 */
/* For which of the pods that wait moves are looked for. */
#include "evicting_api.h"

#include "kube/api_cluster.h"
#include "literals.h"
#include "maintain/waiting.h"
#include "suite.h"
#include "wire/kubernetes.h"

#define MEM "aliyun.com/gpu-mem"
#define NOW INT64_C(1767614400) /* of the clock that stands still */

static struct cluster *cluster;
static struct store *known;
static GHashTable *passed, *turns;
static struct pauses *pauses;
static bool asking;

/* An API server's pod; `wants` units, on the first card of `node`. */
static const char *text_of_ns(const char *ns, const char *name, int wants, const char *node,
                              const char *created, const char *annotations)
{
    return keep(g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"uid-%s\","
        "\"creationTimestamp\":\"%s\",\"annotations\":{%s%s},\"ownerReferences\":[{\"apiVersion\":"
        "\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"o\",\"uid\":\"o\",\"controller\":true}]},"
        "\"spec\":{%s%s%s\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"%d\"}}}]},\"status\":{\"phase\":\"%s\"}}",
        ns, name, name, created,
        node ? "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"" : "",
        annotations, node ? "\"nodeName\":\"" : "", node ? node : "", node ? "\"," : "", wants,
        node ? "Running" : "Pending"));
}

static const char *text_of(const char *name, int wants, const char *node, const char *created,
                           const char *annotations)
{
    return text_of_ns("ml", name, wants, node, created, annotations);
}

static void apply(const char *text)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;

    ck_assert(pod_view_decode(arena, json_parse(arena, text, strlen(text), NULL), &view, NULL));
    store_apply_pod(known, &view);
}

/* n1: one card of 10, with a pod of 4. n2: one of 4, which takes it. */
static void setup(void)
{
    static const char *const sizes[] = {"10", "4"};

    evicting_begin();
    cluster = api_cluster_new(client);
    passed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    turns = waiting_turns_new();
    pauses = pauses_new(3600000, 3600000);
    asking = false;
    known = store_new(&(struct store_options){.policy = policies, .hold_ms = 1});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(known, feed);
    for (int i = 0; i < 2; i++)
        store_apply_node(known,
                         &(struct node_view){
                             .name = i ? "n2" : "n1",
                             .capacity = PAIRS({MEM, sizes[i]}, {"aliyun.com/gpu-count", "1"}),
                             .allocatable = PAIRS({MEM, sizes[i]}, {"aliyun.com/gpu-count", "1"})});
    const char *web = text_of("web", 4, "n1", "2026-01-05T10:00:00Z", "");
    apply(web);
    answer("GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1", FAKE_ALWAYS, 200,
           keep(g_strdup_printf("{\"items\":[%s]}", web)));
    answer("GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn2", FAKE_ALWAYS, 200, "{\"items\":[]}");
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(known, feed);
}

static void teardown(void)
{
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    g_hash_table_unref(passed);
    g_hash_table_unref(turns);
    pauses_free(pauses);
    store_free(known);
    api_cluster_free(cluster);
    evicting_end();
}

/* A pod that waits; the API server has it so: bound by now to that node, or NULL; with these annotations. */
static void wait_as(const char *name, int wants, const char *created, const char *node,
                    const char *annotations)
{
    apply(text_of(name, wants, NULL, created, strchr(annotations, '}') ? "" : annotations));
    answer(keep(g_strdup_printf("GET /api/v1/namespaces/ml/pods/%s ", name)), FAKE_ALWAYS, 200,
           text_of(name, wants, node, created, annotations));
}

static void wait_in(const char *ns, const char *name, int wants, const char *created)
{
    const char *text = text_of_ns(ns, name, wants, NULL, created, "");

    apply(text);
    answer(keep(g_strdup_printf("GET /api/v1/namespaces/%s/pods/%s ", ns, name)), FAKE_ALWAYS, 200,
           text);
}

static struct relocation *find(int64_t waited_ms, GError **error)
{
    return waiting_find(
        &(struct waiting_query){.relocation = {.store = known, .cluster = cluster, .moves_max = 10},
                                .waited_ms = waited_ms,
                                .now_s = NOW,
                                .passed = passed,
                                .pauses = pauses,
                                .asking = asking,
                                .turns = turns},
        error);
}

#define OLD "2026-01-05T11:00:00Z"

/* Half an hour ago the clock said so. */
static const struct {
    const char *created;
    int64_t waited_ms;
    bool found;
} ages[] = {
    {"2026-01-05T11:30:00Z", 1800000, true},
    {"2026-01-05T11:30:01Z", 1800000, false},
    {"2026-01-05T11:30:00Z", 1800001, false},
    {"yesterday", 1800000, true}, /* made long ago */
};

START_TEST(who_has_waited_for_long_enough_is_helped)
{
    wait_as("big", 8, ages[_i].created, NULL, "");
    g_autoptr(relocation) plan = find(ages[_i].waited_ms, NULL);
    ck_assert(plan);
    ck_assert_uint_eq(plan->steps->len, ages[_i].found ? 1 : 0);
    ck_assert_int_eq(plan->reached, true);
    ck_assert_str_eq(plan->goal, ages[_i].found ? "room for ml/big (8 units of memory of one card)"
                                                : "room for those who wait");
}
END_TEST

static const struct {
    int wants;
    const char *node, *annotations; /* by now */
    bool passed;
    const char *why; /* NULL: moves are found */
} pods[] = {
    {8, NULL, "", false, NULL},
    {8, "n1", "", false, "1 wait, and no moves help any of them"},
    {8, NULL, "", true, "1 wait, and no moves help any of them"},
    {8, NULL, "\"gang.scheduling.koordinator.sh/name\":\"g\"", false,
     "1 wait, and no moves help any of them"},
    /* It was deleted since. */
    {8, NULL, "},\"deletionTimestamp\":\"2026-01-05T11:30:00Z\",\"labels\":{", false,
     "1 wait, and no moves help any of them"},
    {5, NULL, "", false, "1 wait, and no moves help any of them"}, /* it fits as it is */
    {11, NULL, "", false, "1 wait, and no moves help any of them"},
};

START_TEST(who_needs_no_moves_or_none_help_is_passed_over)
{
    wait_as("big", pods[_i].wants, OLD, pods[_i].node, pods[_i].annotations);
    if (pods[_i].passed)
        g_hash_table_insert(passed, g_strdup("uid-big"), NULL);
    g_autoptr(relocation) plan = find(1000, NULL);
    ck_assert(plan);
    ck_assert_uint_eq(plan->steps->len, pods[_i].why ? 0 : 1);
    ck_assert_int_eq(plan->reached, pods[_i].why == NULL);
    if (pods[_i].why)
        ck_assert_str_eq(plan->why, pods[_i].why);
    else
        ck_assert_str_eq(plan->name, "big");
}
END_TEST

START_TEST(the_first_whom_moves_help_is_helped)
{
    wait_as("huge", 11, "2026-01-05T10:30:00Z", NULL, "");
    wait_as("later", 8, "2026-01-05T11:10:00Z", NULL, "");
    wait_as("sooner", 9, "2026-01-05T11:00:00Z", NULL, "");
    g_autoptr(relocation) plan = find(1000, NULL);
    ck_assert(plan);
    ck_assert_str_eq(plan->name, "sooner");
}
END_TEST

START_TEST(of_many_the_first_are_looked_at)
{
    const int n = WAITING_TRIES_MAX + _i;
    g_autofree char *why = g_strdup_printf(_i == 0 ? "%d wait, and no moves help any of them"
                                                   : "%d wait, and no moves help one of the "
                                                     "first 16",
                                           n);

    for (int i = 0; i < n; i++)
        wait_as(keep(g_strdup_printf("p%02d", i)), 11,
                keep(g_strdup_printf("2026-01-05T10:%02d:00Z", i)), NULL, "");
    g_autoptr(relocation) plan = find(1000, NULL);
    ck_assert(plan);
    ck_assert_str_eq(plan->why, why);
    ck_assert_uint_eq(count_requests("/ml/pods/p15 ", NULL), 1);
    ck_assert_uint_eq(count_requests("/ml/pods/p16 ", NULL), 0);
}
END_TEST

/* Made anew, with another UID. */
START_TEST(pods_of_a_paused_controller_are_passed_over)
{
    pauses_begin(pauses, _i == 0 ? "ml" : "other", "o", g_get_monotonic_time() / 1000);
    wait_as("big", 8, OLD, NULL, "");
    g_autoptr(relocation) plan = find(0, NULL);
    ck_assert(plan);
    ck_assert_uint_eq(plan->steps->len, _i == 0 ? 0 : 1);
}
END_TEST

/* The order has helped "big", in vain, or could not help it: it has had its turn, and another one of its controller
 * waits. */
static const struct {
    bool helped, in_vain, sibling; /* the other one is helped then */
} left[] = {{true, false, true}, {true, true, false}, {false, false, false}};

START_TEST(who_was_left_is_passed_over)
{
    const struct waiting_left was = {"ml", "uid-big", "o", left[_i].helped, left[_i].in_vain};

    wait_as("big", 8, OLD, NULL, "");
    ck_assert_int_eq(waiting_leave(&was, passed, pauses, 3600000), !left[_i].sibling);
    g_autoptr(relocation) plan = find(0, NULL);
    ck_assert(plan && plan->steps->len == 0);
    wait_as("again", 8, OLD, NULL, "");
    g_autoptr(relocation) next = find(0, NULL);
    ck_assert_uint_eq(next->steps->len, left[_i].sibling ? 1 : 0);
}
END_TEST

START_TEST(a_pod_that_is_gone_is_passed_over)
{
    apply(text_of("big", 8, NULL, OLD, ""));
    answer("GET /api/v1/namespaces/ml/pods/big ", FAKE_ALWAYS, 404, NULL);
    g_autoptr(relocation) plan = find(1000, NULL);
    g_autoptr(relocation) gone = waiting_gone("ml", "big");
    ck_assert(plan && plan->steps->len == 0 && !plan->reached);
    ck_assert(gone && gone->steps->len == 0 && gone->reached);
    ck_assert_str_eq(gone->goal, "room for ml/big, which is gone");
}
END_TEST

/* Whoever has many pods, made long ago, keeps those of others from being helped for one look at most. */
START_TEST(namespaces_take_turns)
{
    for (int i = 0; i < 3 * WAITING_TRIES_MAX; i++)
        wait_in("evil", keep(g_strdup_printf("p%02d", i)), 11,
                keep(g_strdup_printf("2026-01-05T10:%02d:00Z", i)));
    wait_as("big", 8, OLD, NULL, "");
    g_autoptr(relocation) plan = find(1000, NULL);
    ck_assert(plan);
    ck_assert_str_eq(plan->name, "big");
    ck_assert_uint_eq(count_requests("/evil/pods/", NULL), 1);
}
END_TEST

/* A namespace whose pods no moves help is last at the next look. */
START_TEST(a_look_goes_on_where_the_last_one_ended)
{
    for (int i = 0; i < WAITING_TRIES_MAX; i++)
        wait_in(keep(g_strdup_printf("n%02d", i)), keep(g_strdup_printf("p%02d", i)), 11,
                keep(g_strdup_printf("2026-01-05T10:%02d:00Z", i)));
    wait_as("big", 8, OLD, NULL, "");
    g_autoptr(relocation) first = find(1000, NULL);
    ck_assert(first && !first->reached);
    ck_assert_uint_eq(count_requests("/ml/pods/big ", NULL), 0);
    g_autoptr(relocation) second = find(1000, NULL);
    ck_assert(second && second->reached);
    ck_assert_str_eq(second->name, "big");
}
END_TEST

/* Those that are passed over cost reads, and no tries. */
START_TEST(groups_take_no_tries)
{
    for (int i = 0; i < 2 * WAITING_TRIES_MAX; i++)
        wait_as(keep(g_strdup_printf("g%02d", i)), 8,
                keep(g_strdup_printf("2026-01-05T10:%02d:00Z", i)), NULL,
                "\"gang.scheduling.koordinator.sh/name\":\"g\"");
    wait_as("big", 8, OLD, NULL, "");
    g_autoptr(relocation) plan = find(1000, NULL);
    ck_assert(plan);
    ck_assert_str_eq(plan->name, "big");
}
END_TEST

static void ask_about(const char *uid)
{
    struct moment moment;

    store_decide(known, &moment);
    arrivals_ask(store_arrivals(known), uid, moment.now_ms);
    store_unlock(known);
}

/* Gates, volumes, affinity, another scheduler: whatever it is, kube-scheduler does not ask. */
START_TEST(about_whom_nobody_asks_is_not_helped)
{
    asking = true;
    wait_as("big", 8, OLD, NULL, "");
    g_autoptr(relocation) before = find(1000, NULL);
    ck_assert(before && before->steps->len == 0);
    ask_about("uid-big");
    g_autoptr(relocation) plan = find(1000, NULL);
    ck_assert(plan && plan->steps->len == 1);
    clock_skip_ms(ARRIVALS_ASKING_MS - 1000);
    g_autoptr(relocation) still = find(1000, NULL);
    ck_assert(still && still->steps->len == 1);
    clock_skip_ms(2000);
    g_autoptr(relocation) after = find(1000, NULL);
    ck_assert(after && after->steps->len == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waiting");
    TCase *tests = tcase_create("waiting");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, who_has_waited_for_long_enough_is_helped, 0, G_N_ELEMENTS(ages));
    tcase_add_loop_test(tests, who_needs_no_moves_or_none_help_is_passed_over, 0,
                        G_N_ELEMENTS(pods));
    tcase_add_test(tests, the_first_whom_moves_help_is_helped);
    tcase_add_loop_test(tests, of_many_the_first_are_looked_at, 0, 2);
    tcase_add_loop_test(tests, pods_of_a_paused_controller_are_passed_over, 0, 2);
    tcase_add_loop_test(tests, who_was_left_is_passed_over, 0, G_N_ELEMENTS(left));
    tcase_add_test(tests, a_pod_that_is_gone_is_passed_over);
    tcase_add_test(tests, namespaces_take_turns);
    tcase_add_test(tests, a_look_goes_on_where_the_last_one_ended);
    tcase_add_test(tests, groups_take_no_tries);
    tcase_add_test(tests, about_whom_nobody_asks_is_not_helped);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
