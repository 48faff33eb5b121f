/* SPDX-License-Identifier: Apache-2.0 */
/* Who ends groups that stay half, and how fast: against an API server that grants every eviction. */
#include "maintain/half_groups.h"

#include "scripted_api.h"
#include "suite.h"

#include <stdatomic.h>
#include <string.h>

#define MEMBERS (HALF_GROUPS_MINUTE_MAX + 10) /* that are bound; one more waits */

static struct store *cluster;
static GPtrArray *texts; /* of the script */
static int n_ending;     /* members that another replica has evicted */

/* --- a replica ------------------------------------------------------------------------------------ */

struct replica {
    struct leadership base;
    atomic_uint asked;       /* how often it was asked whether it serves */
    atomic_uint serves_from; /* the first of these times at which it does; and */
    atomic_uint until;       /* the first at which it does no more */
};

static uint64_t term(struct leadership *leadership)
{
    struct replica *replica = (struct replica *)leadership;
    const unsigned n = atomic_fetch_add(&replica->asked, 1);

    return n >= atomic_load(&replica->serves_from) && n < atomic_load(&replica->until);
}

static const struct leadership_ops ops = {.term = term};

/* --- a group -------------------------------------------------------------------------------------- */

static const char *keep(char *text)
{
    g_ptr_array_add(texts, text);
    return text;
}

static void put_pod(int i, bool bound)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;
    const char *text = keep(g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"g-%d\",\"uid\":\"uid-%d\",%"
        "s\"annotations\":{"
        "\"gang.scheduling.koordinator.sh/name\":\"g\","
        "\"gang.scheduling.koordinator.sh/min-available\":\"%d\","
        "\"gang.scheduling.koordinator.sh/waiting-time\":\"1s\"%s}},"
        "\"spec\":{%s\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"
        "\"aliyun.com/gpu-mem\":\"1\"}}}]},\"status\":{\"phase\":\"%s\"}}",
        i, i, i < n_ending ? "\"deletionTimestamp\":\"2026-01-02T00:00:00Z\"," : "", MEMBERS + 1,
        bound ? ",\"gpuledger.io/gang\":\"ml/g\",\"ALIYUN_COM_GPU_MEM_IDX\":\"0\","
                "\"ALIYUN_COM_GPU_MEM_POD\":\"1\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\""
              : "",
        bound ? "\"nodeName\":\"n\"," : "", bound ? "Running" : "Pending"));
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);

    ck_assert(object && pod_view_decode(arena, object, &view, NULL));
    store_apply_pod(cluster, &view);
    if (bound)
        script(&(struct fake_reply){
            .match = keep(g_strdup_printf("GET /api/v1/namespaces/ml/pods/g-%d ", i)),
            .times = FAKE_ALWAYS,
            .chunks = {text}});
}

static void list(enum feed feed)
{
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "100"},
                                           {"aliyun.com/gpu-count", "1"}};

    store_list_begin(cluster, feed);
    if (feed == FEED_NODES)
        store_apply_node(cluster, &(struct node_view){.name = "n", .capacity = {capacity, 2}});
    for (int i = 0; feed == FEED_PODS && i <= MEMBERS; i++)
        put_pod(i, i < MEMBERS);
    store_list_end(cluster, feed);
}

static void setup(void)
{
    api_begin();
    texts = g_ptr_array_new_with_free_func(g_free);
    cluster = store_new(
        &(struct store_options){.policy = &policies[0], .gangs = true, .gang_strict = true});
    for (int feed = 0; feed < FEED_N; feed++)
        list((enum feed)feed);
    store_end_waits(cluster); /* as housekeeping does: it is half from now on */
    script(&(struct fake_reply){
        .match = "/eviction", .status = 201, .times = FAKE_ALWAYS, .chunks = {"{}"}});
    script(&(struct fake_reply){
        .match = "/events", .status = 201, .times = FAKE_ALWAYS, .chunks = {"{}"}});
}

static void teardown(void)
{
    store_free(cluster);
    api_end();
    g_ptr_array_unref(texts);
}

static unsigned count(bool tried)
{
    unsigned n = 0;

    for (unsigned i = 0; i < fake_server_count(server); i++) {
        g_autofree char *request = fake_server_request(server, i);
        n += strstr(request, "/eviction ") != NULL && (strstr(request, "dryRun") != NULL) == tried;
    }
    return n;
}

/* --- tests ---------------------------------------------------------------------------------------- */

static struct half_groups *start(struct leadership *leadership, int64_t minute_ms)
{
    struct half_groups *half = half_groups_start(
        &(struct half_groups_options){
            .client = client, .store = cluster, .leadership = leadership, .minute_ms = minute_ms},
        NULL);

    ck_assert(half);
    return half;
}

/* Whoever served before may have evicted as many as may be a moment ago. (tests/killed counts them.) */
START_TEST(who_begins_to_serve_asks_nothing_for_a_minute)
{
    struct replica replica = {.base = {&ops}, .serves_from = 0, .until = G_MAXUINT};
    struct half_groups *half = start(&replica.base, 0);

    while (atomic_load(&replica.asked) < 2)
        g_usleep(10000);
    half_groups_free(half);
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

START_TEST(who_stands_by_asks_nothing)
{
    struct replica replica = {.base = {&ops}, .serves_from = 3, .until = G_MAXUINT};
    struct half_groups *half = start(&replica.base, -1);

    expect_requests(1);
    ck_assert_uint_ge(atomic_load(&replica.asked), 4);
    half_groups_free(half);

    const unsigned before = fake_server_count(server);
    replica = (struct replica){.base = {&ops}, .serves_from = G_MAXUINT};
    half = start(&replica.base, -1);
    while (atomic_load(&replica.asked) < 2)
        g_usleep(10000);
    half_groups_free(half);
    ck_assert_uint_eq(fake_server_count(server), before);
}
END_TEST

/* Between two of its evictions: it is asked once before it reads, and once before each of them. */
START_TEST(who_serves_no_more_ends_nobody_else)
{
    struct replica replica = {.base = {&ops}, .serves_from = 0, .until = 1 + 5};
    struct half_groups *half = start(&replica.base, -1);

    while (atomic_load(&replica.asked) < 8)
        g_usleep(10000);
    half_groups_free(half);
    ck_assert_uint_eq(count(false), 5);
}
END_TEST

static void setup_with_ending(void)
{
    n_ending = 3;
    setup();
}

/* The other replica was killed, or had no answer. */
START_TEST(who_ends_already_is_not_evicted_again)
{
    struct half_groups *half = start(NULL, -1);

    /* Each is read; who does not end is tried, evicted, and has an Event. */
    expect_requests(MEMBERS + 3 * (MEMBERS - (unsigned)n_ending));
    half_groups_free(half);
    for (unsigned i = 0; i < fake_server_count(server); i++) {
        g_autofree char *request = fake_server_request(server, i);
        ck_assert(!strstr(request, "/pods/g-0/eviction ") &&
                  !strstr(request, "/pods/g-2/eviction "));
    }
    ck_assert_uint_eq(count(false), MEMBERS - (unsigned)n_ending);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("half_groups");
    TCase *tests = tcase_create("half_groups");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, who_begins_to_serve_asks_nothing_for_a_minute);
    tcase_add_test(tests, who_stands_by_asks_nothing);
    tcase_add_test(tests, who_serves_no_more_ends_nobody_else);

    TCase *going = tcase_create("going");
    suite_add_tcase(suite, going);
    tcase_add_checked_fixture(going, setup_with_ending, teardown);
    tcase_add_test(going, who_ends_already_is_not_evicted_again);
    return suite_run(suite);
}
