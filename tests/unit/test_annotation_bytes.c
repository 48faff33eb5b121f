/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod whose annotations leave no room for those of a GPU is bound to no node: the API server would refuse every
 * later change of it.
 */
#include "binding_world.h"
#include "dialect/annotations.h"
#include "suite.h"
#include "wire/kubernetes.h"

#include <string.h>

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* Keys of three bytes; so many bytes with them. */
static void annotate(const char *pod, const char *key, size_t bytes)
{
    g_autofree char *value = g_strnfill(bytes - strlen(key), 'x');

    fake_cluster_annotate(cluster, pod, key, value);
    world_catch_up(&world);
}

static bool is_refused_everywhere(const char *pod)
{
    g_autofree char *reply = world_filter(&world, pod, "duo,mono");
    const char *text = reason_info(REASON_ANNOTATIONS)->text;
    g_autofree char *all = g_strdup_printf(
        "\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{\"duo\":\"%s\",\"mono\":\"%s\"}", text,
        text);

    return strstr(reply, all) != NULL;
}

static bool passes(const char *pod)
{
    g_autofree char *reply = world_filter(&world, pod, "duo,mono");

    return strstr(reply, "\"NodeNames\":[\"duo\",\"mono\"]") != NULL;
}

START_TEST(filter_refuses_it_on_every_node)
{
    world_add_pending(&world, "p", 6);
    annotate("p", "big", ANNOTATIONS_BYTES_MAX - ANNOTATIONS_BYTES_LATER);
    ck_assert(is_refused_everywhere("p"));
    annotate("p", "big", 240 * 1024);
    ck_assert(passes("p"));
    annotate("p", "two", 20 * 1024); /* all count together */
    ck_assert(is_refused_everywhere("p"));
}
END_TEST

/* Whatever room there is on the nodes, so that nobody ends for it. */
START_TEST(so_it_is_where_there_is_no_room)
{
    world_add_bound(&world, "a", "duo", 9, "0");
    world_add_bound(&world, "b", "duo", 9, "1");
    world_add_bound(&world, "c", "mono", 9, "0");
    world_add_pending(&world, "p", 6);
    annotate("p", "big", 255 * 1024);
    ck_assert(is_refused_everywhere("p"));
}
END_TEST

START_TEST(what_bind_replaces_does_not_count)
{
    world_add_pending(&world, "p", 6);
    annotate("p", "big", 200 * 1024);
    annotate("p", "ALIYUN_COM_GPU_MEM_IDX", 50 * 1024);
    ck_assert(passes("p"));
    world_expect_bind(&world, "p", "duo", "");
}
END_TEST

/* It has been edited since. */
START_TEST(bind_looks_again)
{
    world_add_pending(&world, "p", 6);
    ck_assert(passes("p"));
    annotate("p", "big", ANNOTATIONS_BYTES_MAX - ANNOTATIONS_BYTES_LATER);
    world_expect_bind(&world, "p", "duo", reason_info(REASON_ANNOTATIONS)->text);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    annotate("p", "big", 1024);
    world_expect_bind(&world, "p", "duo", "");
}
END_TEST

/* An earlier Binding of it may have been carried out, or not. */
START_TEST(it_is_not_sent_again)
{
    fake_cluster_script_bind(cluster, &(struct fake_step){.act = FAKE_FAIL,
                                                          .outcome = OUTCOME_UNKNOWN,
                                                          .delay_ms = WORLD_ONE_TRY_MS});
    world.extender.bind_timeout_ms = WORLD_ONE_TRY_MS;
    world_add_pending(&world, "p", 6);
    g_autofree char *first = world_bind(&world, "p", "duo");
    ck_assert_str_ne(first, "");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
    world.extender.bind_timeout_ms = 3000;
    annotate("p", "big", ANNOTATIONS_BYTES_MAX - ANNOTATIONS_BYTES_LATER);
    const size_t n_sent = fake_cluster_n_sent(cluster);
    world_expect_bind(&world, "p", "duo", reason_info(REASON_ANNOTATIONS)->text);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), n_sent);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
}
END_TEST

/* What was applied is not kept in a record, its size is. */
START_TEST(a_record_knows_how_much_there_was)
{
    world_add_pending(&world, "p", 6);
    annotate("p", LAST_APPLIED, 250 * 1024);
    annotate("p", "own", 1024);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *object = fake_cluster_pod_json(cluster, "p");
    struct json_writer writer;
    struct pod_view pod, again;

    const cJSON *tree = json_parse(arena, object, strlen(object), NULL);
    ck_assert(pod_view_decode(arena, tree, &pod, NULL));
    json_writer_init(&writer, text);
    pod_view_encode(&writer, &pod);
    ck_assert_uint_lt(text->len, 4096);
    ck_assert(pod_view_decode(arena, json_parse(arena, text->str, text->len, NULL), &again, NULL));
    ck_assert_int_eq(annotations_left(&pod, dialect_find("gpushare")), 251 * 1024);
    ck_assert_int_eq(annotations_left(&again, dialect_find("gpushare")), 251 * 1024);
    g_string_truncate(text, 0);
    json_writer_init(&writer, text);
    pod_view_encode(&writer, &again); /* as what is kept of a record is written anew */
    ck_assert(pod_view_decode(arena, json_parse(arena, text->str, text->len, NULL), &again, NULL));
    ck_assert_int_eq(annotations_left(&again, dialect_find("gpushare")), 251 * 1024);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("annotation_bytes");
    TCase *tests = tcase_create("annotation_bytes");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, filter_refuses_it_on_every_node);
    tcase_add_test(tests, so_it_is_where_there_is_no_room);
    tcase_add_test(tests, what_bind_replaces_does_not_count);
    tcase_add_test(tests, bind_looks_again);
    tcase_add_test(tests, it_is_not_sent_again);
    tcase_add_test(tests, a_record_knows_how_much_there_was);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
