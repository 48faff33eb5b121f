/* SPDX-License-Identifier: Apache-2.0 */
/* Who ends groups that stay half, and how fast: against an API server that grants every eviction. */
#include "maintain/half_groups.h"

#include "evicting_api.h"
#include "suite.h"

#include <stdatomic.h>

#define MEMBERS (HALF_GROUPS_MINUTE_MAX + 10) /* that are bound; one more waits */
#define LOOK_MS 2000
#define MINUTE_LOOKS (60000 / LOOK_MS)

static struct store *cluster;
static int n_members;
static int n_ending;           /* members that another replica has evicted */
static int n_foreign;          /* members that somebody else has bound, without their group */
static int n_needed;           /* 0: one more than are bound */
static int n_evil;             /* groups of another namespace, whose pods one controller makes */
static bool evil_apart;        /* each of these has a controller of its own */
static int n_others;           /* namespaces with one group each */
static uint32_t per_namespace; /* that may end in a minute; 0: any number */

/* --- a replica ------------------------------------------------------------------------------------ */

struct replica {
    struct leadership base;
    atomic_uint asked;       /* how often it was asked whether it serves */
    atomic_uint serves_from; /* the first of these times at which it does; and */
    atomic_uint until;       /* the first at which it does no more */
    unsigned whole_from;     /* the first at which the group is whole; 0: never */
};

static void put_pod(int i, bool bound);

static uint64_t term(struct leadership *leadership)
{
    struct replica *replica = (struct replica *)leadership;
    const unsigned n = atomic_fetch_add(&replica->asked, 1);

    if (replica->whole_from > 0 && n == replica->whole_from)
        put_pod(n_members, true);
    return n >= atomic_load(&replica->serves_from) && n < atomic_load(&replica->until);
}

static const struct leadership_ops ops = {.term = term};

/* --- a group -------------------------------------------------------------------------------------- */

#define HELD                                                                                       \
    "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_POD\":\"1\","                           \
    "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\""

struct member {
    const char *ns, *pod, *uid, *group;
    int needed;
    bool bound, ours, ending;
    const char *owner; /* NULL: none */
};

static void put(const struct member *member)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;
    g_autofree char *mark = member->ours ? g_strdup_printf("\"gpuledger.io/gang\":\"%s/%s\",",
                                                           member->ns, member->group)
                                         : g_strdup("");
    g_autofree char *owners =
        member->owner ? g_strdup_printf("\"ownerReferences\":[{\"apiVersion\":\"batch/v1\","
                                        "\"kind\":\"Job\",\"name\":\"o\",\"uid\":\"%s\","
                                        "\"controller\":true}],",
                                        member->owner)
                      : g_strdup("");
    const char *text = keep(g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\",%s%s"
        "\"annotations\":{\"gang.scheduling.koordinator.sh/name\":\"%s\","
        "\"gang.scheduling.koordinator.sh/min-available\":\"%d\","
        "\"gang.scheduling.koordinator.sh/waiting-time\":\"1s\"%s%s%s}},"
        "\"spec\":{%s\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"
        "\"aliyun.com/gpu-mem\":\"1\"}}}]},\"status\":{\"phase\":\"%s\"}}",
        member->ns, member->pod, member->uid,
        member->ending ? "\"deletionTimestamp\":\"2026-01-02T00:00:00Z\"," : "", owners,
        member->group, member->needed, member->bound ? "," : "", member->bound ? mark : "",
        member->bound ? HELD : "", member->bound ? "\"nodeName\":\"n\"," : "",
        member->bound ? "Running" : "Pending"));
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);

    ck_assert(object && pod_view_decode(arena, object, &view, NULL));
    store_apply_pod(cluster, &view);
    if (member->bound)
        answer(keep(g_strdup_printf("GET /api/v1/namespaces/%s/pods/%s ", member->ns, member->pod)),
               FAKE_ALWAYS, 200, text);
}

static void put_pod(int i, bool bound)
{
    g_autofree char *pod = g_strdup_printf("g-%d", i), *uid = g_strdup_printf("uid-%d", i);

    put(&(struct member){.ns = "ml",
                         .pod = pod,
                         .uid = uid,
                         .group = "g",
                         .needed = n_needed ? n_needed : n_members + 1,
                         .bound = bound,
                         .ours = i >= n_foreign,
                         .ending = i < n_ending});
}

/* A group of "evil", half of it bound. */
static void put_evil(int i)
{
    for (int half = 0; half < 2; half++) {
        g_autofree char *group = g_strdup_printf("e%d", i),
                        *pod = g_strdup_printf("e%d-%d", i, half);
        put(&(struct member){.ns = "evil",
                             .pod = pod,
                             .uid = pod,
                             .group = group,
                             .needed = 2,
                             .bound = half == 0,
                             .ours = true,
                             .owner = evil_apart ? group : "own"});
    }
}

/* One of a namespace of its own, half of it bound. */
static void put_other(int i)
{
    g_autofree char *ns = g_strdup_printf("other-%d", i);

    for (int half = 0; half < 2; half++) {
        g_autofree char *pod = g_strdup_printf("o%d-%d", i, half);
        put(&(struct member){.ns = ns,
                             .pod = pod,
                             .uid = pod,
                             .group = "o",
                             .needed = 2,
                             .bound = half == 0,
                             .ours = true});
    }
}

static void list(enum feed feed)
{
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "100"},
                                           {"aliyun.com/gpu-count", "1"}};

    store_list_begin(cluster, feed);
    if (feed == FEED_NODES)
        store_apply_node(cluster, &(struct node_view){.name = "n", .capacity = {capacity, 2}});
    for (int i = 0; feed == FEED_PODS && i <= n_members; i++)
        put_pod(i, i < n_members);
    for (int i = 0; feed == FEED_PODS && i < n_evil; i++)
        put_evil(i);
    for (int i = 0; feed == FEED_PODS && i < n_others; i++)
        put_other(i);
    store_list_end(cluster, feed);
}

/* It is half from now on, as housekeeping finds. What a test says of its pods and of evictions goes before. */
static void fill(int members)
{
    n_members = members;
    cluster = store_new(
        &(struct store_options){.policy = &policies[0], .gangs = true, .gang_strict = true});
    for (int feed = 0; feed < FEED_N; feed++)
        list((enum feed)feed);
    clock_skip_ms(1000); /* its deadline */
    store_end_waits(cluster);
    accept_evictions(FAKE_ALWAYS);
    answer("/events ", FAKE_ALWAYS, 201, NULL);
}

static void setup_empty(void)
{
    evicting_begin();
    n_ending = n_foreign = n_needed = n_evil = n_others = 0;
    evil_apart = false;
    per_namespace = 0;
}

static void setup(void)
{
    setup_empty();
    fill(MEMBERS);
}

static struct permits *permits;

static void teardown(void)
{
    g_clear_pointer(&permits, permits_free);
    store_free(cluster);
    evicting_end();
}

/* --- tests ---------------------------------------------------------------------------------------- */

static struct half_groups *start(struct leadership *leadership, int64_t minute_ms)
{
    const struct permits_options options = {
        .limits = {.per_namespace = per_namespace,
                   .of[ENDER_GANG_STRICT].per_minute = HALF_GROUPS_MINUTE_MAX,
                   .minute_ms = minute_ms}};
    permits_free(permits);
    permits = permits_new(&options);
    struct half_groups *half = half_groups_start(
        &(struct half_groups_options){
            .client = client, .store = cluster, .leadership = leadership, .permits = permits},
        NULL);

    ck_assert(half);
    clock_await_waiting(1);
    return half;
}

/* It looks so often. */
static void pass(int looks)
{
    for (int i = 0; i < looks; i++) {
        clock_skip_ms(LOOK_MS);
        clock_await_waiting(1);
    }
}

/* Whoever served before may have evicted as many as may be a moment ago. (tests/killed counts them.) */
START_TEST(who_begins_to_serve_asks_nothing_for_a_minute)
{
    struct replica replica = {.base = {&ops}, .serves_from = 0, .until = G_MAXUINT};
    struct half_groups *half = start(&replica.base, 0);

    pass(MINUTE_LOOKS);
    half_groups_free(half);
    ck_assert_uint_ge(atomic_load(&replica.asked), 2);
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

START_TEST(who_may_evict_nothing_asks_nothing)
{
    struct replica replica = {.base = {&ops}, .serves_from = 0, .until = G_MAXUINT};
    struct half_groups *half = start(&replica.base, -1);

    permits_stop(permits, "somebody says so");
    pass(2 * MINUTE_LOOKS);
    half_groups_free(half);
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

START_TEST(who_stands_by_asks_nothing)
{
    struct replica replica = {.base = {&ops}, .serves_from = 3, .until = G_MAXUINT};
    struct half_groups *half = start(&replica.base, -1);

    pass(3);
    ck_assert_uint_eq(fake_server_count(server), 0);
    pass(1);
    ck_assert_uint_gt(fake_server_count(server), 0);
    ck_assert_uint_ge(atomic_load(&replica.asked), 4);
    half_groups_free(half);

    const unsigned before = fake_server_count(server);
    replica = (struct replica){.base = {&ops}, .serves_from = G_MAXUINT};
    half = start(&replica.base, -1);
    pass(2);
    half_groups_free(half);
    ck_assert_uint_eq(fake_server_count(server), before);
}
END_TEST

/* Between two of its evictions: it is asked once before it reads, and once before each of them. */
START_TEST(who_serves_no_more_ends_nobody_else)
{
    struct replica replica = {.base = {&ops}, .serves_from = 0, .until = 1 + 5};
    struct half_groups *half = start(&replica.base, -1);

    pass(3);
    half_groups_free(half);
    ck_assert_uint_eq(count_evictions(), 5);
}
END_TEST

static void setup_with_ending(void)
{
    setup_empty();
    n_ending = 3;
    fill(MEMBERS);
}

/* The other replica was killed, or had no answer. */
START_TEST(who_ends_already_is_not_evicted_again)
{
    struct half_groups *half = start(NULL, -1);

    /* Each is read; who does not end is tried, evicted, and has an Event. */
    pass(1);
    ck_assert_uint_eq(fake_server_count(server), MEMBERS + 3 * (MEMBERS - (unsigned)n_ending));
    half_groups_free(half);
    for (unsigned i = 0; i < fake_server_count(server); i++) {
        g_autofree char *request = fake_server_request(server, i);
        ck_assert(!strstr(request, "/pods/g-0/eviction ") &&
                  !strstr(request, "/pods/g-2/eviction "));
    }
    ck_assert_uint_eq(count_evictions(), MEMBERS - (unsigned)n_ending);
}
END_TEST

/* Of what another replica has evicted, those that still end are known: they count for their namespace. All else waits for
 * nothing. */
START_TEST(a_takeover_keeps_other_capabilities_waiting_for_what_is_known)
{
    setup_empty();
    n_ending = 2;
    per_namespace = 3;
    fill(MEMBERS);
    struct half_groups *half = start(NULL, 0);

    pass(1);
    ck_assert_int_eq(permits_forbid(permits, ENDER_GANG_STRICT, "other"), LIMIT_CAPABILITY);
    ck_assert_int_eq(permits_forbid(permits, ENDER_RECLAIM, "other"), LIMIT_NONE);
    ck_assert_int_eq(permits_take(permits, ENDER_RECLAIM, "ml", "x"), LIMIT_NONE);
    ck_assert_int_eq(permits_forbid(permits, ENDER_RECLAIM, "ml"), LIMIT_NAMESPACE);
    half_groups_free(half);
}
END_TEST

/* --- how fast --------------------------------------------------------------------------------------- */

/* Within any minute; the first is over before the first of them. */
START_TEST(so_many_end_within_a_minute)
{
    struct half_groups *half = start(NULL, 0);

    pass(MINUTE_LOOKS);
    ck_assert_uint_eq(count_requests(NULL, NULL), 0);
    pass(1);
    ck_assert_uint_eq(count_evictions(), HALF_GROUPS_MINUTE_MAX);
    pass(MINUTE_LOOKS - 1);
    ck_assert_uint_eq(count_evictions(), HALF_GROUPS_MINUTE_MAX);
    pass(1);
    ck_assert_uint_eq(count_evictions(), MEMBERS);
    pass(2 * MINUTE_LOOKS); /* they take their time to end */
    ck_assert_uint_eq(count_evictions(), MEMBERS);
    half_groups_free(half);
}
END_TEST

/* Whether it was carried out nobody knows. */
START_TEST(an_eviction_that_has_failed_counts_in_the_minute)
{
    setup_empty();
    answer("/eviction ", MEMBERS, 201, NULL); /* the tries */
    answer("/eviction ", HALF_GROUPS_MINUTE_MAX - 1, 201, NULL);
    answer("/eviction ", 4, 500, NULL); /* one, which is sent four times */
    fill(MEMBERS);
    struct half_groups *half = start(NULL, 0);
    pass(MINUTE_LOOKS + 1);
    ck_assert_uint_eq(count_evictions(), HALF_GROUPS_MINUTE_MAX + 3);
    pass(MINUTE_LOOKS - 1);
    ck_assert_uint_eq(count_evictions(), HALF_GROUPS_MINUTE_MAX + 3);
    pass(2);
    ck_assert_uint_eq(count_evictions(), MEMBERS + 4);
    half_groups_free(half);
}
END_TEST

/* --- whom ------------------------------------------------------------------------------------------- */

/* How the API server has "g-1" of three, and what it says of its eviction. Its group ends whole or not at all. */
static const struct {
    struct api_pod pod;
    int read, tried, evicted;
    const char *text; /* of what it says */
    unsigned ends;    /* of all three */
} members[] = {
    {{.name = "g-1"}, 200, 201, 201, NULL, 3},
    /* Docs name no opt-out of other programs, and none is asked for; nor who would make it again. */
    {{.name = "g-1", .annotations = "{\"karpenter.sh/do-not-disrupt\":\"true\"}"},
     200,
     201,
     201,
     NULL,
     3},
    {{.name = "g-1", .owner = "j1", .kind = "Job"}, 200, 201, 201, NULL, 3},
    /* It would come back to the node. */
    {{.name = "g-1", .owner = "d1", .kind = "DaemonSet"}, 200, 201, 201, NULL, 0},
    /* Only kubelet ends it. */
    {{.name = "g-1", .annotations = "{\"kubernetes.io/config.mirror\":\"x\"}"},
     200,
     201,
     201,
     NULL,
     0},
    {{.name = "g-1"}, 403, 201, 201, NULL, 0},
    {{.name = "g-1"}, 200, 403, 201, NULL, 0},
    {{.name = "g-1"}, 200, 429, 201, SAYS_BUDGET, 0},
    {{.name = "g-1"}, 200, 500, 201, SAYS_BUDGETS, 0},
    /* It has gone, or is about to: the others end. */
    {{.name = "g-1"}, 404, 201, 201, NULL, 2},
    {{.name = "g-1", .uid = "another"}, 200, 201, 201, NULL, 2},
    {{.name = "g-1", .phase = "Failed"}, 200, 201, 201, NULL, 2},
    {{.name = "g-1", .phase = "Succeeded"}, 200, 201, 201, NULL, 2},
    {{.name = "g-1", .deleted = true}, 200, 201, 201, NULL, 2},
};

START_TEST(all_of_them_end_or_none)
{
    struct api_pod pod = members[_i].pod;
    setup_empty();
    pod.uid = pod.uid ? pod.uid : "uid-1";
    answer("GET /api/v1/namespaces/ml/pods/g-1 ", FAKE_ALWAYS, members[_i].read,
           members[_i].read == 404 ? SAYS_GONE : pod_text(pod));
    answer("g-1/eviction ", members[_i].tried >= 429 ? FAKE_ALWAYS : 1, members[_i].tried,
           members[_i].text);
    fill(3);
    struct half_groups *half = start(NULL, -1);
    pass(1);
    ck_assert_uint_eq(count_evictions(), members[_i].ends);
    ck_assert_uint_eq(count_requests("/events ", "\"reason\":\"GPUPodMoved\""), members[_i].ends);
    half_groups_free(half);
}
END_TEST

/* All are tried once more: at the next look, then less often each time. */
START_TEST(a_budget_is_waited_for)
{
    setup_empty();
    answer("g-1/eviction ", 2, 429, SAYS_BUDGET); /* two looks */
    fill(3);
    struct half_groups *half = start(NULL, -1);
    pass(3);
    ck_assert_uint_eq(count_evictions(), 0);
    pass(1);
    ck_assert_uint_eq(count_evictions(), 3);
    half_groups_free(half);
}
END_TEST

#define EVIL 30

/* Namespaces take turns, and whoever is refused is left alone for longer each time. */
START_TEST(groups_that_cannot_end_keep_no_others_waiting)
{
    setup_empty();
    n_evil = EVIL;
    answer("/namespaces/evil/", FAKE_ALWAYS, 403, NULL);
    fill(3);
    struct half_groups *half = start(NULL, -1);
    pass(1);
    ck_assert_uint_eq(count_evictions(), 3);
    ck_assert_uint_lt(count_requests("/namespaces/evil/", NULL), EVIL);
    pass(20); /* all had their turn */
    const unsigned n = count_requests("/namespaces/evil/", NULL);
    ck_assert_uint_ge(n, EVIL);
    pass(20);
    ck_assert_uint_lt(count_requests("/namespaces/evil/", NULL) - n, n);
    half_groups_free(half);
}
END_TEST

/* A look tries eight groups. */
START_TEST(each_namespace_has_its_turn_in_a_look)
{
    setup_empty();
    n_evil = EVIL;
    evil_apart = true;
    n_others = 5;
    answer("POST /api/v1/namespaces/evil/", FAKE_ALWAYS, 429, SAYS_BUDGET);
    fill(1);
    struct half_groups *half = start(NULL, -1);
    pass(1);
    ck_assert_uint_eq(count_evictions(), 1 + 5);
    ck_assert_uint_eq(count_requests("POST /api/v1/namespaces/evil/", "dryRun"), 2);
    half_groups_free(half);
}
END_TEST

/* A pause ends when a group of the controller has ended: the next one begins with the shortest. */
START_TEST(after_an_end_the_pauses_begin_anew)
{
    setup_empty();
    answer("g-1/eviction ", 3, 429, SAYS_BUDGET); /* after 0, 2 and 6 s */
    answer("/x-0/eviction ", 1, 429, SAYS_BUDGET);
    fill(3);
    struct half_groups *half = start(NULL, -1);
    pass(8);
    ck_assert_uint_eq(count_evictions(), 3);
    for (int i = 0; i < 2; i++)
        put(&(struct member){.ns = "ml",
                             .pod = i == 0 ? "x-0" : "x-1",
                             .uid = i == 0 ? "x-0" : "x-1",
                             .group = "x",
                             .needed = 2,
                             .bound = i == 0,
                             .ours = true});
    clock_skip_ms(1000);
    store_end_waits(cluster);
    pass(1);
    ck_assert_uint_eq(count_requests("/x-0/eviction ", NULL), 1);
    pass(2);
    ck_assert_uint_eq(count_evictions(), 4);
    half_groups_free(half);
}
END_TEST

/* Whatever a controller calls its groups: one that cannot end is tried for all of them. */
START_TEST(groups_of_a_controller_wait_together)
{
    setup_empty();
    n_evil = EVIL;
    answer("POST /api/v1/namespaces/evil/", FAKE_ALWAYS, 429, SAYS_BUDGET);
    fill(3);
    struct half_groups *half = start(NULL, -1);
    pass(1);
    ck_assert_uint_eq(count_evictions(), 3);
    ck_assert_uint_eq(count_requests("POST /api/v1/namespaces/evil/", NULL), 1);
    pass(30); /* after 2, 4, 8, 16 and 32 s */
    ck_assert_uint_eq(count_requests("POST /api/v1/namespaces/evil/", NULL), 5);
    half_groups_free(half);
}
END_TEST

START_TEST(where_one_is_refused_after_all_the_others_wait)
{
    setup_empty();
    answer("/eviction ", 3, 201, NULL); /* the tries */
    answer("/eviction ", 1, 201, NULL); /* the first */
    answer("/eviction ", 1, 403, NULL); /* the second */
    fill(3);
    struct half_groups *half = start(NULL, -1);
    pass(1);
    ck_assert_uint_eq(count_evictions(), 2);
    ck_assert_uint_eq(count_requests("/events ", "GPUPodMoved"), 1);
    ck_assert_uint_eq(count_requests("/events ", "GPUEvictionRefused"), 1);
    ck_assert_uint_eq(count_requests("/events ", "GPUEvictionsPaused"), 1);
    pass(1); /* the first is not evicted again */
    ck_assert_uint_eq(count_evictions(), 4);
    ck_assert_uint_eq(count_requests("/events ", "GPUPodMoved"), 3);
    ck_assert_uint_eq(count_requests("/events ", NULL), 5);
    pass(3);
    ck_assert_uint_eq(count_evictions(), 4);
    half_groups_free(half);
}
END_TEST

/* Its last pod has come while the first of them was evicted: it is asked before each. */
START_TEST(who_has_become_whole_goes_on)
{
    struct replica replica = {
        .base = {&ops}, .serves_from = 0, .until = G_MAXUINT, .whole_from = (unsigned)_i};

    setup_empty();
    fill(3);
    struct half_groups *half = start(&replica.base, -1);
    pass(3);
    ck_assert_uint_eq(count_evictions(), (unsigned)_i);
    half_groups_free(half);
}
END_TEST

/* Groups that are not this program's own work, and those that are whole, go on. */
START_TEST(others_groups_and_whole_ones_go_on)
{
    setup_empty();
    n_foreign = _i == 0 ? 1 : 0;
    n_needed = _i == 1 ? 3 : 0;
    fill(3);
    struct half_groups *half = start(NULL, -1);
    pass(2);
    ck_assert_uint_eq(fake_server_count(server), 0);
    half_groups_free(half);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("half_groups");
    TCase *tests = tcase_create("half_groups");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, who_begins_to_serve_asks_nothing_for_a_minute);
    tcase_add_test(tests, who_may_evict_nothing_asks_nothing);
    tcase_add_test(tests, who_stands_by_asks_nothing);
    tcase_add_test(tests, who_serves_no_more_ends_nobody_else);

    TCase *going = tcase_create("going");
    suite_add_tcase(suite, going);
    tcase_add_checked_fixture(going, setup_with_ending, teardown);
    tcase_add_test(going, who_ends_already_is_not_evicted_again);

    TCase *fast = tcase_create("fast"), *whom = tcase_create("whom");
    suite_add_tcase(suite, fast);
    tcase_add_checked_fixture(fast, setup, teardown);
    tcase_add_test(fast, so_many_end_within_a_minute);
    suite_add_tcase(suite, whom);
    tcase_add_checked_fixture(whom, NULL, teardown);
    tcase_add_test(whom, a_takeover_keeps_other_capabilities_waiting_for_what_is_known);
    tcase_add_test(whom, an_eviction_that_has_failed_counts_in_the_minute);
    tcase_add_loop_test(whom, all_of_them_end_or_none, 0, G_N_ELEMENTS(members));
    tcase_add_test(whom, a_budget_is_waited_for);
    tcase_add_test(whom, groups_that_cannot_end_keep_no_others_waiting);
    tcase_add_test(whom, each_namespace_has_its_turn_in_a_look);
    tcase_add_test(whom, after_an_end_the_pauses_begin_anew);
    tcase_add_test(whom, groups_of_a_controller_wait_together);
    tcase_add_test(whom, where_one_is_refused_after_all_the_others_wait);
    tcase_add_loop_test(whom, who_has_become_whole_goes_on, 1, 3);
    tcase_add_loop_test(whom, others_groups_and_whole_ones_go_on, 0, 2);
    return suite_run(suite);
}
