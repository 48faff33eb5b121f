/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod whose search is dear has the nodes in turn: a call of filter begins where the last one about the pod had no
 * work left; and a record of it gives the same decisions again.
 */
#include "literals.h"
#include "recorded_calls.h"
#include "suite.h"

#include "store/store_state.h"

#define HARD 3 /* nodes of eight cards: that the pod does not fit is not found out */
#define NAMES "[\"n0\",\"n1\",\"n2\",\"room\"]"
#define PAIRS_OF_CONTAINERS 6 /* two thirds of a card, and 40 percent of one */

static struct extender extender;
static struct store_options options;
static struct moment moment;

static void add_node(const char *name, int cards)
{
    g_autoptr(GString) said = g_string_new(NULL);

    for (int i = 0; i < cards; i++)
        g_string_append_printf(said, "GPU-%s-%d,10,10000,100,NVIDIA-Tesla T4,0,true:", name, i);
    store_apply_node(
        extender.store,
        &(struct node_view){.name = name,
                            .annotations = PAIRS({"hami.io/node-nvidia-register", said->str}),
                            .capacity = PAIRS({"nvidia.com/gpu", "90"}),
                            .allocatable = PAIRS({"nvidia.com/gpu", "90"})});
}

static void setup(void)
{
    options = (struct store_options){.patience_ms = 60000};
    extender = (struct extender){.store = store_new(&options)};
    moment = (struct moment){.now_ns = INT64_C(1767225600000000000), .now_ms = 100000};
    store_set_moment(extender.store, &moment);
    record_begin(extender.store);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    for (int i = 0; i < HARD; i++) {
        g_autofree char *name = g_strdup_printf("n%d", i);
        add_node(name, 8);
    }
    add_node("room", 9);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void teardown(void)
{
    record_end(extender.store);
    g_clear_pointer(&extender.store, store_free);
}

/* Whether some node takes the pod. */
static bool passes(const char *uid)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) reply = g_string_new(NULL);

    g_string_printf(body,
                    "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ml\",\"uid\":\"%s\"},"
                    "\"spec\":{\"containers\":[",
                    uid);
    for (int i = 0; i < 2 * PAIRS_OF_CONTAINERS; i++)
        g_string_append_printf(body,
                               "%s{\"name\":\"c%d\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":"
                               "\"1\",\"nvidia.com/gpumem\":\"%s\"}}}",
                               i > 0 ? "," : "", i, i % 2 ? "4000" : "7000");
    g_string_append(body, "]}},\"NodeNames\":" NAMES "}");
    extender_filter(&extender, body->str, body->len, reply);
    ck_assert_ptr_nonnull(strstr(reply->str, "\"Error\":\"\""));
    return strstr(reply->str, "\"NodeNames\":[\"room\"]") != NULL;
}

START_TEST(each_node_has_its_turn)
{
    for (int i = 0; i < HARD; i++)
        ck_assert(!passes("u"));
    ck_assert(passes("u"));
    ck_assert(!passes("u")); /* it is known no more */
    expect_played(&options, HARD + 2, 0);
}
END_TEST

START_TEST(each_pod_has_its_own)
{
    for (int i = 0; i < 2 * HARD; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        ck_assert(!passes(uid));
    }
    expect_played(&options, 2 * HARD, 0);
}
END_TEST

/* Nor where what is known is told anew, as a record's file that begins needs it. */
START_TEST(it_is_forgotten)
{
    for (int i = 0; i < HARD; i++)
        ck_assert(!passes("u"));
    if (_i) {
        moment.now_ms += PASSES_MS;
        moment.now_ns += PASSES_MS * INT64_C(1000000);
    } else {
        store_tell_known(extender.store);
    }
    ck_assert(!passes("u"));
    expect_played(&options, HARD + 1, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recorded turns");
    TCase *turns = tcase_create("turns");

    tcase_add_checked_fixture(turns, setup, teardown);
    tcase_add_test(turns, each_node_has_its_turn);
    tcase_add_test(turns, each_pod_has_its_own);
    tcase_add_loop_test(turns, it_is_forgotten, 0, 2);
    suite_add_tcase(suite, turns);
    return suite_run(suite);
}
