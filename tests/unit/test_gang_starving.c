/* SPDX-License-Identifier: Apache-2.0 */
/* A large group beside a stream of small pods, through filter: three nodes of two cards of 10 units. */
#include "core/ledger.h"
#include "objects.h"
#include "explain/messages/messages.h"
#include "store/feasibility.h"
#include "verbs/extender.h"

#include "suite.h"
#include "gate/gate.h"

#include <string.h>

#define NODES 3
#define CARDS 2
#define STEP_MS 5000 /* in which one of the pods ends that run */
#define LIFE (NODES * CARDS)

static struct extender extender;
static struct moment moment;
static int born; /* pods of the stream */
static struct {
    char *uid;
    int node, card;
} running[LIFE]; /* who ends next is the one that has run longest */
static int ends;

static void start(int64_t room_ms)
{
    const struct store_options options = {.policy = policy_find("binpack"),
                                          .patience_ms = 1000,
                                          .gangs = true,
                                          .gang_room_ms = room_ms,
                                          .elastic_quotas = true};

    extender = (struct extender){.store = store_new(&options), .bind_timeout_ms = 1000};
    moment = (struct moment){.now_ns = 1700000000000000000, .now_ms = 1000000};
    store_set_moment(extender.store, &moment);
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(extender.store, (enum feed)feed);
        for (int i = 0; feed == FEED_NODES && i < NODES; i++) {
            g_autofree char *name = g_strdup_printf("n%d", i);
            const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "20"},
                                                   {"aliyun.com/gpu-count", "2"}};
            store_apply_node(extender.store,
                             &(struct node_view){.name = name, .capacity = {capacity, 2}});
        }
        store_list_end(extender.store, (enum feed)feed);
    }
    born = ends = 0;
}

static void teardown(void)
{
    for (int i = 0; i < LIFE; i++)
        g_clear_pointer(&running[i].uid, g_free);
    store_free(extender.store);
}

/* Pending, of a group that needs `least` if that is not 0; or running on a card. */
static char *pod_text(const char *name, int units, int least, int64_t priority, const char *node,
                      int card)
{
    g_autofree char *group =
        least > 0 ? g_strdup_printf("\"gang.scheduling.koordinator.sh/name\":\"g\","
                                    "\"gang.scheduling.koordinator.sh/min-available\":\"%d\"",
                                    least)
                  : g_strdup("");
    g_autofree char *place =
        node
            ? g_strdup_printf("\"ALIYUN_COM_GPU_MEM_IDX\":\"%d\",\"ALIYUN_COM_GPU_MEM_POD\":\"%d\","
                              "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"",
                              card, units)
            : g_strdup("");
    return g_strdup_printf("{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\","
                           "\"annotations\":{%s%s}},"
                           "\"spec\":{\"priority\":%" G_GINT64_FORMAT
                           "%s%s%s,\"containers\":[{\"name\":\"main\","
                           "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"%d\"}}}]},"
                           "\"status\":{\"phase\":\"%s\"}}",
                           least > 0 ? "ml" : "web", name, name, group, place, priority,
                           node ? ",\"nodeName\":\"" : "", node ? node : "", node ? "\"" : "",
                           units, node ? "Running" : "Pending");
}

static void put(const char *text)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);

    ck_assert(object && pod_view_decode(arena, object, &view, NULL));
    store_apply_pod(extender.store, &view);
}

static char *filter(const char *pod)
{
    g_autofree char *body =
        g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[\"n0\",\"n1\",\"n2\"]}", pod);
    GString *reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    return g_string_free(reply, FALSE);
}

/* The first node that takes it, or -1. */
static int node_for(const char *pod)
{
    g_autofree char *reply = filter(pod);
    const char *names = strstr(reply, "\"NodeNames\":[\"n");

    return names ? names[strlen("\"NodeNames\":[\"n")] - '0' : -1;
}

static int free_card(int node)
{
    bool taken[CARDS] = {false};

    for (int i = 0; i < LIFE; i++) {
        if (running[i].uid && running[i].node == node)
            taken[running[i].card] = true;
    }
    return taken[0] ? 1 : 0;
}

/* A small pod comes, if it finds a node. */
static bool come(void)
{
    g_autofree char *name = g_strdup_printf("s%d", born);
    g_autofree char *pending = pod_text(name, 10, 0, 0, NULL, 0);
    int at = 0;

    put(pending);
    const int node = node_for(pending);
    if (node < 0)
        return false;
    while (at < LIFE && running[at].uid)
        at++;
    ck_assert_int_lt(at, LIFE);
    const int card = free_card(node);
    g_autofree char *where = g_strdup_printf("n%d", node);
    g_autofree char *bound = pod_text(name, 10, 0, 0, where, card);
    put(bound);
    running[at].uid = g_strdup(name);
    running[at].node = node;
    running[at].card = card;
    born++;
    return true;
}

static void end_one(void)
{
    for (int i = 0; i < LIFE; i++) {
        const int at = ends++ % LIFE;
        if (!running[at].uid)
            continue;
        store_delete_pod(extender.store, running[at].uid);
        g_clear_pointer(&running[at].uid, g_free);
        return;
    }
}

static char *member(int i, int units, int least)
{
    g_autofree char *name = g_strdup_printf("g-%d", i);
    return pod_text(name, units, least, 0, NULL, 0);
}

static void put_group(int n, int least)
{
    for (int i = 0; i < n; i++) {
        g_autofree char *text = member(i, 10, least);
        put(text);
    }
}

/* Steps until the group has places; `steps` if it never does. */
static int play(int least, int steps)
{
    g_autofree char *first = member(0, 10, least);

    for (int i = 0; i < steps; i++) {
        moment.now_ms += STEP_MS;
        moment.now_ns += STEP_MS * G_GINT64_CONSTANT(1000000);
        end_one();
        if (node_for(first) >= 0)
            return i;
        while (come())
            ;
    }
    return steps;
}

static bool says(const char *pod, const char *text)
{
    g_autofree char *reply = filter(pod);
    return strstr(reply, text) != NULL;
}

static int count_running(void)
{
    int n = 0;

    for (int i = 0; i < LIFE; i++)
        n += running[i].uid != NULL;
    return n;
}

static uint64_t counted(enum gang_room_end end)
{
    return gangs_room_ends(store_gangs(extender.store))[end];
}

START_TEST(without_room_it_never_comes)
{
    start(0);
    while (come())
        ;
    put_group(4, 4);
    ck_assert_int_eq(play(4, 400), 400);
}
END_TEST

START_TEST(with_room_it_comes)
{
    g_autofree char *small = pod_text("small", 10, 0, 0, NULL, 0);

    start(120000);
    while (come())
        ;
    ck_assert_int_eq(count_running(), LIFE);
    put_group(4, 4);
    const int took = play(4, 400);
    ck_assert_int_lt(took, GANG_ROOM_AFTER_MS / STEP_MS + LIFE + 2);
    ck_assert_uint_eq(counted(GANG_ROOM_CAME), 1);
    ck_assert(!says(small, "is kept for a group")); /* its places are taken, that is all */
}
END_TEST

/* What explain says of a node that is kept, from a copy of the store. */
static void expect_told(const char *uid)
{
    g_autoptr(store) copy = store_copy(extender.store);
    const struct pod_view pod = {.uid = uid, .ns = "web", .name = uid};
    const struct request *request = store_pending(copy, uid);
    const GPtrArray *nodes = ledger_nodes(store_ledger(copy));
    struct feasibility question;
    int n = 0;

    feasibility_init(&question, copy,
                     &(struct feasibility_about){GATE_BY_FILTER, &pod, request, &moment});
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (feasibility_ask(&question, node, NULL) != gate_reason_find("gang_room"))
            continue;
        g_autofree char *told =
            message_of_node(&question, node, request, gate_reason_find("gang_room"));
        ck_assert_msg(
            g_str_has_prefix(told, "is kept for the group ml/g, which waits for room, for 1"), "%s",
            told);
        n++;
    }
    feasibility_clear(&question);
    ck_assert_int_gt(n, 0);
}

/* While two of three nodes are kept, the third is open to all, and all to who is more important. */
START_TEST(who_is_kept_out)
{
    g_autofree char *small = pod_text("small", 10, 0, 0, NULL, 0);
    g_autofree char *important = pod_text("important", 10, 0, 1, NULL, 0);

    start(120000);
    while (come())
        ;
    put_group(4, 4);
    play(4, GANG_ROOM_AFTER_MS / STEP_MS + 1);
    ck_assert_uint_eq(counted(GANG_ROOM_CAME), 0);
    struct gang_row row;
    ck_assert(gangs_tell(store_gangs(extender.store), "g-0", &row));
    ck_assert_uint_eq(row.room_nodes, 2);
    while (says(small, "\"NodeNames\":[\"n"))
        come();
    for (int i = 0; i < LIFE && !says(small, "is kept for a group"); i++)
        end_one();
    ck_assert(says(small, "The node is kept for a group of pods that waits for room"));
    ck_assert(!says(important, "is kept for a group"));
    put(small);
    expect_told("small");
    g_autoptr(GString) nominated = g_string_new(small);
    g_string_replace(nominated, "\"status\":{", "\"status\":{\"nominatedNodeName\":\"n0\",", 1);
    put(nominated->str);
    ck_assert(!says(nominated->str, "is kept for a group")); /* it goes on */
}
END_TEST

/* An empty cluster would not hold it, or its namespace may not have so much. */
START_TEST(what_could_never_come_keeps_nothing)
{
    const struct string_pair max[] = {{"aliyun.com/gpu-mem", "30"}};
    struct gang_row row;

    start(120000);
    while (come())
        ;
    put_group(7, 7);
    play(7, 40);
    ck_assert_uint_eq(counted(GANG_ROOM_NONE), 2);
    teardown();

    start(120000);
    store_put_quota(extender.store,
                    &(struct resource_quota_view){.ns = "ml", .name = "q", .max = {max, 1}});
    while (come())
        ;
    put_group(4, 4);
    play(4, 15);
    ck_assert_uint_eq(counted(GANG_ROOM_NONE), 1);
    ck_assert(gangs_tell(store_gangs(extender.store), "g-0", &row));
    ck_assert_uint_eq(row.room_nodes, 0);
}
END_TEST

/* Pods that run for longer than room is kept: others get half of the time. */
START_TEST(nobody_freezes_a_pool)
{
    int kept = 0;

    start(60000);
    while (come())
        ;
    put_group(6, 6);
    g_autofree char *first = member(0, 10, 6);
    for (int i = 0; i < 1000; i++) {
        moment.now_ms += STEP_MS;
        moment.now_ns += STEP_MS * G_GINT64_CONSTANT(1000000);
        node_for(first);
        kept += gangs_keep_from(store_gangs(extender.store), "other", 0);
    }
    ck_assert_int_gt(kept, 0);
    ck_assert_int_le(kept, 1000 / 4 + 60000 / STEP_MS);
    ck_assert_uint_gt(counted(GANG_ROOM_OVER), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gang_starving");
    TCase *tests = tcase_create("gang_starving");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, without_room_it_never_comes);
    tcase_add_test(tests, with_room_it_comes);
    tcase_add_test(tests, who_is_kept_out);
    tcase_add_test(tests, what_could_never_come_keeps_nothing);
    tcase_add_test(tests, nobody_freezes_a_pool);

    return suite_run(suite);
}
