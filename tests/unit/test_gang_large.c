/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of eight kinds of pods on ten thousand nodes of a card of 100 units each: one call is enough. */
#include "store/store.h"
#include "verbs/extender.h"

#include "suite.h"

#include <string.h>

#define NODES 10000
#define MEMBERS 512
#define KINDS 8

static struct extender extender;

static void teardown(void)
{
    store_free(extender.store);
}

static char *node_name(int i)
{
    return g_strdup_printf("n%05d", i);
}

static void put_node(int i)
{
    g_autofree char *name = node_name(i);
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "100"},
                                           {"aliyun.com/gpu-count", "1"}};

    store_apply_node(extender.store, &(struct node_view){.name = name, .capacity = {capacity, 2}});
}

/* It leaves room for none of the group. */
static void put_running(int i)
{
    g_autofree char *node = node_name(i), *uid = g_strdup_printf("running-%d", i);
    const struct string_pair limits[] = {{"aliyun.com/gpu-mem", "50"}};
    const struct container_view containers[] = {{.name = "main", .limits = {limits, 1}}};
    const struct string_pair annotations[] = {{"ALIYUN_COM_GPU_MEM_IDX", "0"},
                                              {"ALIYUN_COM_GPU_MEM_POD", "50"},
                                              {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"}};

    store_apply_pod(extender.store, &(struct pod_view){.ns = "web",
                                                       .name = uid,
                                                       .uid = uid,
                                                       .node_name = node,
                                                       .phase = "Running",
                                                       .annotations = {annotations, 3},
                                                       .containers = containers,
                                                       .n_containers = 1});
}

static char *member_text(int i)
{
    return g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"g-%d\",\"uid\":\"g-%d\",\"annotations\":{"
        "\"gang.scheduling.koordinator.sh/name\":\"g\","
        "\"gang.scheduling.koordinator.sh/min-available\":\"%d\"}},"
        "\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"
        "\"aliyun.com/gpu-mem\":\"%d\"}}}]},\"status\":{\"phase\":\"Pending\"}}",
        i, i, MEMBERS, 100 - i % KINDS);
}

static void put_member(int i)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *text = member_text(i);
    struct pod_view view;
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);

    ck_assert(object && pod_view_decode(arena, object, &view, NULL));
    store_apply_pod(extender.store, &view);
}

/* Only the last `n_free` nodes have room. */
static void start(const char *policy, int n_free)
{
    const struct store_options options = {
        .policy = policy_find(policy), .patience_ms = 1000, .gangs = true};

    extender = (struct extender){.store = store_new(&options), .bind_timeout_ms = 1000};
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(extender.store, (enum feed)feed);
        for (int i = 0; feed == FEED_NODES && i < NODES; i++)
            put_node(i);
        for (int i = 0; feed == FEED_PODS && i < NODES - n_free; i++)
            put_running(i);
        for (int i = 0; feed == FEED_PODS && i < MEMBERS; i++)
            put_member(i);
        store_list_end(extender.store, (enum feed)feed);
    }
}

/* What filter says of one, of all nodes. */
static char *ask(int i)
{
    g_autofree char *pod = member_text(i);
    g_autoptr(GString) body = g_string_new(NULL);
    GString *reply = g_string_new(NULL);

    g_string_append_printf(body, "{\"Pod\":%s,\"NodeNames\":[", pod);
    for (int node = 0; node < NODES; node++)
        g_string_append_printf(body, "%s\"n%05d\"", node ? "," : "", node);
    g_string_append(body, "]}");
    extender_filter(&extender, body->str, body->len, reply);
    return g_string_free(reply, FALSE);
}

static void expect_all_placed(void)
{
    struct gang_row row;
    g_autofree char *reply = ask(3);

    ck_assert(strstr(reply, "\"NodeNames\":[\"n"));
    ck_assert(gangs_tell(store_gangs(extender.store), "g-0", &row));
    ck_assert_uint_eq(row.held, MEMBERS);
}

START_TEST(where_there_is_room_everywhere)
{
    start("binpack", NODES);
    expect_all_placed();
}
END_TEST

START_TEST(where_the_best_node_is_looked_for_each_time)
{
    start("oc", NODES);
    expect_all_placed();
}
END_TEST

START_TEST(where_only_the_last_nodes_have_room)
{
    start("binpack", MEMBERS);
    expect_all_placed();
}
END_TEST

START_TEST(where_one_is_too_many)
{
    struct gang_row row;

    start("binpack", MEMBERS - 1);
    g_autofree char *reply = ask(0);
    ck_assert(strstr(reply, "no room for the pod's group as a whole"));
    ck_assert(gangs_tell(store_gangs(extender.store), "g-0", &row));
    ck_assert_uint_eq(row.held, 0);
    ck_assert_uint_eq(row.fit, MEMBERS - 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gang_large");
    TCase *tests = tcase_create("gang_large");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, where_there_is_room_everywhere);
    tcase_add_test(tests, where_the_best_node_is_looked_for_each_time);
    tcase_add_test(tests, where_only_the_last_nodes_have_room);
    tcase_add_test(tests, where_one_is_too_many);

    return suite_run(suite);
}
