/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/plan_order.h"
#include "maintain/plans/plan_status.h"
#include "suite.h"

static void begin(struct step_log *log, int64_t at_s)
{
    char ns[] = "ml", name[] = "web-1", uid[] = "u1", from[] = "n1", to[] = "n2", owner[] = "c";
    const struct relocation_step step = {
        .ns = ns, .name = name, .uid = uid, .from = from, .to = to, .owner = owner};

    step_log_note(log, &(struct executor_news){EXECUTOR_STEP, &step, 3, NULL}, at_s);
}

/* Whoever goes on with it knows what is needed: which step has begun, with how many Ready pods before it. */
START_TEST(a_step_that_has_begun_is_read_again)
{
    g_autoptr(plan_status) status = plan_status_new("0123");

    status->goal = g_strdup("nobody on n1");
    status->moved = 1;
    status->fragmented_most = 1250;
    status->known = g_strsplit("foreign n4 test/x,left_out n5", ",", 0);
    begin(status->log, 1000);
    step_log_end(status->log, EXECUTOR_MOVED, NULL);
    begin(status->log, 1060);
    g_autofree char *text = plan_status_format(status);
    g_autoptr(plan_status) read = plan_status_parse(text, NULL);

    ck_assert(read);
    ck_assert_int_eq(read->phase, PLAN_PHASE_RUNNING);
    ck_assert_str_eq(read->digest, "0123");
    ck_assert_str_eq(read->goal, "nobody on n1");
    ck_assert_uint_eq(read->moved, 1);
    ck_assert_int_eq(read->fragmented_most, 1250);
    ck_assert_str_eq(read->known[1], "left_out n5");
    ck_assert_uint_eq(step_log_n(read->log), 2);
    ck_assert_int_eq(step_log_get(read->log, 0)->event, EXECUTOR_MOVED);
    const struct logged_step *open = step_log_open(read->log);
    ck_assert(open && open->at_s == 1060 && open->n_ready == 3);
    ck_assert_str_eq(open->uid, "u1");
    ck_assert_str_eq(open->owner, "c");
    step_log_withdraw(read->log);
    ck_assert(!step_log_open(read->log) && step_log_n(read->log) == 1);
}
END_TEST

/* The longest names there are, and as many steps as are kept: an annotation has room for 256 KiB. */
START_TEST(the_longest_fits_an_annotation)
{
    g_autoptr(plan_status) status = plan_status_new("0123456789abcdef");
    g_autofree char *ns = g_strnfill(63, 's'), *name = g_strnfill(253, 'n');
    g_autofree char *uid = g_strnfill(36, 'u'), *why = g_strnfill(5000, 'w');
    const struct relocation_step longest = {
        .ns = ns, .name = name, .uid = uid, .from = name, .to = name, .owner = uid};

    for (int i = 0; i < 2 * STEP_LOG_MAX; i++) {
        step_log_note(status->log, &(struct executor_news){EXECUTOR_STEP, &longest, 3, NULL}, i);
        step_log_end(status->log, EXECUTOR_FAILED, why);
    }
    plan_status_tell(status, why);
    g_autofree char *text = plan_status_format(status);
    ck_assert_uint_eq(step_log_n(status->log), STEP_LOG_MAX);
    ck_assert_int_eq(step_log_get(status->log, 0)->at_s, STEP_LOG_MAX);
    ck_assert_uint_le(strlen(text), PLAN_STATUS_MAX);
}
END_TEST

/* Others find the cards as if the pod were there: whose it is, and what it accepts. */
START_TEST(a_room_keeps_what_its_pod_accepts)
{
    g_autoptr(plan_mark) mark = plan_mark_new();

    for (int i = 0; i < 2; i++) {
        struct kept_room *room = kept_room_new();
        *room = (struct kept_room){.uid = g_strdup("big"),
                                   .group = i == 1 ? g_strdup("train") : NULL,
                                   .held = allocation_new("big", "ml", "big", 1)};
        room->held->dialect = dialect_find("gpushare");
        room->held->shares[0] = (struct share){.card = 0, .memory = {4, AMOUNT_NODE_UNITS}};
        room->held->oversubscribes = i == 1;
        if (i == 1) {
            room->held->terms = terms_new();
            room->held->terms->memory_wanted = 5000;
        }
        g_ptr_array_add(mark->rooms, room);
    }
    mark->until_ns = g_get_real_time() * 1000;
    g_autofree char *text = plan_mark_format(mark);
    g_autoptr(plan_mark) read = plan_mark_parse(text, NULL, NULL);
    ck_assert_msg(read && read->rooms->len == 2, "%s", text);
    for (guint i = 0; i < 2; i++) {
        const struct kept_room *room = read->rooms->pdata[i];
        const struct allocation *held = room->held;
        ck_assert_str_eq(room->ns, "ml");
        ck_assert_int_eq(g_strcmp0(room->group, "train") == 0, i == 1);
        ck_assert_str_eq(held->ns, "ml");
        ck_assert_int_eq(held->oversubscribes, i == 1);
        ck_assert_int_eq(held->terms ? held->terms->memory_wanted : 0, i == 1 ? 5000 : 0);
    }
}
END_TEST

/* The same words in another order are the same order. */
START_TEST(an_order_is_known_by_its_words)
{
    static const struct {
        const char *data;
        bool same;
    } cases[] = {
        {"{\"max-moves\":\"3\",\"empty\":\"n1\"}", true},
        {"{\"empty\":\"n1\",\"max-moves\":\"4\"}", false},
        {"{\"empty\":\"n1\"}", false},
        {"{\"empty\":\"n1max-moves\",\"\":\"3\"}", false},
    };
    g_autofree char *digest = NULL;

    for (int i = -1; i < (int)G_N_ELEMENTS(cases); i++) {
        g_autoptr(json_arena) arena = json_arena_new();
        g_autofree char *text =
            g_strdup_printf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"uid\":\"u\","
                            "\"resourceVersion\":\"1\"},"
                            "\"data\":%s}",
                            i < 0 ? "{\"empty\":\"n1\",\"max-moves\":\"3\"}" : cases[i].data);
        g_autoptr(plan_order) order =
            plan_order_decode(arena, json_parse(arena, text, strlen(text), NULL), NULL);
        ck_assert(order);
        if (i < 0)
            digest = g_strdup(order->digest);
        else
            ck_assert_int_eq(g_str_equal(order->digest, digest), cases[i].same);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_status");
    TCase *tests = tcase_create("plan_status");

    tcase_add_test(tests, a_step_that_has_begun_is_read_again);
    tcase_add_test(tests, the_longest_fits_an_annotation);
    tcase_add_test(tests, an_order_is_known_by_its_words);
    tcase_add_test(tests, a_room_keeps_what_its_pod_accepts);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
