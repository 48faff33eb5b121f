/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of a group that nobody places: those with scheduling gates, and those that are being deleted. */
#include "core/ledger.h"
#include "gang/gangs.h"
#include "verbs/extender.h"

#include "suite.h"

#include <string.h>

static struct extender extender;
static struct moment moment;

static void setup(void)
{
    const struct store_options options = {
        .policy = policy_find("binpack"), .patience_ms = 1000, .gangs = true, .silent = true};
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "40"},
                                           {"aliyun.com/gpu-count", "4"}};

    extender = (struct extender){.store = store_new(&options), .bind_timeout_ms = 1000};
    moment = (struct moment){.now_ns = 1700000000000000000, .now_ms = 1000000};
    store_set_moment(extender.store, &moment);
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(extender.store, (enum feed)feed);
        if (feed == FEED_NODES)
            store_apply_node(extender.store,
                             &(struct node_view){.name = "n", .capacity = {capacity, 2}});
        store_list_end(extender.store, (enum feed)feed);
    }
}

static void teardown(void)
{
    store_free(extender.store);
}

enum state { PLACEABLE, GATED, DELETED };

static char *pod_text(const char *name, enum state state)
{
    return g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"%s\",\"uid\":\"%s\",%s\"annotations\":{"
        "\"gang.scheduling.koordinator.sh/name\":\"g\","
        "\"gang.scheduling.koordinator.sh/min-available\":\"2\"}},\"spec\":{%s"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"10\"}"
        "}}]},\"status\":{\"phase\":\"Pending\"}}",
        name, name,
        state == DELETED ? "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
                           "\"finalizers\":[\"example.com/never\"],"
                         : "",
        state == GATED ? "\"schedulingGates\":[{\"name\":\"example.com/never\"}]," : "");
}

static void put(const char *name, enum state state)
{
    g_autofree char *text = pod_text(name, state);
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);

    ck_assert(object && pod_view_decode(arena, object, &view, NULL));
    store_apply_pod(extender.store, &view);
}

/* `why` NULL: it passes. */
static void expect_filter(const char *name, const char *why)
{
    g_autofree char *text = pod_text(name, PLACEABLE);
    g_autofree char *body = g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[\"n\"]}", text);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    ck_assert_msg(strstr(reply->str, why ? why : "\"NodeNames\":[\"n\"]"), "%s", reply->str);
}

static void expect_held(size_t n)
{
    ck_assert_uint_eq(ledger_count(store_ledger(extender.store), ALLOCATION_HELD), n);
}

START_TEST(who_is_not_placed_is_none_of_those_that_are_needed)
{
    put("a", PLACEABLE);
    put("b", (enum state)_i);
    expect_filter("a", "fewer pods than it needs");
    expect_held(0);
    put("b", PLACEABLE);
    moment.now_ms += 1000;
    expect_filter("a", NULL);
    expect_held(2);
    store_delete_pod(extender.store, "b");
    put("c", (enum state)_i);
    expect_filter("a", "fewer pods than it needs");
    expect_held(0);
}
END_TEST

START_TEST(who_is_not_placed_gets_no_place)
{
    put("a", PLACEABLE);
    put("b", PLACEABLE);
    put("c", (enum state)_i);
    expect_filter("a", NULL);
    expect_held(2);
}
END_TEST

/* The others keep theirs where they are enough, and else until they are asked about. */
START_TEST(a_place_is_given_back_at_once)
{
    put("a", PLACEABLE);
    put("b", PLACEABLE);
    put("c", PLACEABLE);
    expect_filter("a", NULL);
    expect_held(3);
    put("c", (enum state)_i);
    expect_held(2);
    expect_filter("b", NULL);
    expect_held(2);
    put("b", (enum state)_i);
    expect_filter("a", "fewer pods than it needs");
    expect_held(0);
}
END_TEST

/* Its Binding may come through. */
START_TEST(whose_binding_is_due_keeps_its_place)
{
    struct gangs *gangs = store_gangs(extender.store);

    put("a", PLACEABLE);
    put("b", PLACEABLE);
    expect_filter("a", NULL);
    ck_assert_int_eq(gangs_arrive(gangs, "a", moment.now_ms, NULL), GANG_WAIT);
    ck_assert_int_eq(gangs_arrive(gangs, "b", moment.now_ms, NULL), GANG_YES);
    put("b", DELETED);
    expect_held(2);
    gangs_depart(gangs, "b");
    expect_held(1);
    gangs_depart(gangs, "a");
    expect_filter("a", "fewer pods than it needs");
    expect_held(0);
    put("b", PLACEABLE);
    moment.now_ms += 1000;
    expect_filter("a", NULL);
    expect_held(2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gangs barred");
    TCase *barred = tcase_create("barred");

    tcase_add_checked_fixture(barred, setup, teardown);
    tcase_add_loop_test(barred, who_is_not_placed_is_none_of_those_that_are_needed, GATED,
                        DELETED + 1);
    tcase_add_loop_test(barred, who_is_not_placed_gets_no_place, GATED, DELETED + 1);
    tcase_add_loop_test(barred, a_place_is_given_back_at_once, GATED, DELETED + 1);
    tcase_add_test(barred, whose_binding_is_due_keeps_its_place);
    suite_add_tcase(suite, barred);
    return suite_run(suite);
}
