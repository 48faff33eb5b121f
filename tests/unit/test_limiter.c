/* SPDX-License-Identifier: Apache-2.0 */
/* How many pods end at once and within a minute, of all capabilities, of one and of one namespace. */
#include "evict/limiter.h"
#include "suite.h"

#define MINUTE 60000
#define GOING (10 * MINUTE)

static struct limiter *limiter;

static void begin(const struct limits *limits)
{
    limiter = limiter_new(limits);
}

static void teardown(void)
{
    g_clear_pointer(&limiter, limiter_free);
}

static enum limiter_pod look_up(const char *uid, void *data)
{
    return *(const enum limiter_pod *)data;
}

static void settle(enum limiter_pod seen, int64_t now_ms)
{
    limiter_settle(limiter, look_up, &seen, now_ms);
}

static void evict(enum ender ender, const char *ns, const char *uid, int64_t now_ms)
{
    limiter_take(limiter, ender, ns, uid, now_ms);
    limiter_done(limiter, ender, uid, now_ms);
}

START_TEST(so_many_are_on_their_way_out_at_once)
{
    begin(&(struct limits){.of[ENDER_RECLAIM].at_once = 2});
    evict(ENDER_RECLAIM, "a", "a", 0);
    evict(ENDER_RECLAIM, "a", "a", 1); /* the same one */
    evict(ENDER_PLAN, "a", "other", 1);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "a", 1), LIMIT_NONE);
    evict(ENDER_RECLAIM, "a", "b", 1);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "a", 1), LIMIT_AT_ONCE);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "a", 1), LIMIT_NONE);
    g_autoptr(GHashTable) going = limiter_going(limiter);
    ck_assert_uint_eq(g_hash_table_size(going), 3);
    settle(LIMITER_ENDS, GOING - 1);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "a", GOING - 1), LIMIT_AT_ONCE);
    settle(LIMITER_ENDED, GOING - 1);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "a", GOING - 1), LIMIT_NONE);
    ck_assert(!limiter_has(limiter, "a") && !limiter_has(limiter, "b"));
}
END_TEST

/* However quickly they end. */
START_TEST(so_many_end_within_a_minute)
{
    begin(&(struct limits){.of[ENDER_RECLAIM].per_minute = 2});
    evict(ENDER_RECLAIM, "x", "a", 0);
    evict(ENDER_RECLAIM, "x", "b", 30000);
    settle(LIMITER_ENDED, 30000);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", MINUTE - 1), LIMIT_CAPABILITY);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_GANG_STRICT, "x", MINUTE - 1), LIMIT_NONE);
    ck_assert(limiter_counts(limiter, "a", MINUTE - 1));
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", MINUTE), LIMIT_NONE);
    ck_assert(!limiter_counts(limiter, "a", MINUTE) && limiter_counts(limiter, "b", MINUTE));
    limiter_note_ended(limiter, ENDER_RECLAIM, NULL, "c", MINUTE); /* by another replica */
    ck_assert(!limiter_has(limiter, "c"));
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", MINUTE), LIMIT_CAPABILITY);
    settle(LIMITER_ENDED, 30000 + MINUTE);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", 30000 + MINUTE), LIMIT_NONE);
}
END_TEST

/* Other namespaces are not kept from theirs. */
START_TEST(a_namespace_loses_so_many_whoever_evicts)
{
    begin(&(struct limits){.per_namespace = 2});
    evict(ENDER_RECLAIM, "x", "a", 0);
    evict(ENDER_PLAN, "x", "b", 0);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_SWITCH, "x", 1), LIMIT_NAMESPACE);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_SWITCH, "y", 1), LIMIT_NONE);
    limiter_note_ended(limiter, ENDER_RECLAIM, NULL, "c", 1); /* of nobody knows which */
    limiter_note_ended(limiter, ENDER_RECLAIM, NULL, "d", 1);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_SWITCH, "y", 1), LIMIT_NAMESPACE);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_SWITCH, "y", 1 + MINUTE), LIMIT_NONE);
}
END_TEST

START_TEST(a_share_of_all_is_for_reclaim)
{
    begin(&(struct limits){.per_minute = 5, .for_reclaim = 2});
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", i), LIMIT_NONE);
        evict(ENDER_PLAN, "x", uid, i);
    }
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", 3), LIMIT_CLUSTER);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_SWITCH, "x", 3), LIMIT_CLUSTER);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", 3), LIMIT_NONE);
    evict(ENDER_RECLAIM, "x", "r0", 3);
    evict(ENDER_RECLAIM, "x", "r1", 3);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", 3), LIMIT_CLUSTER);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", MINUTE), LIMIT_NONE); /* p0 is old */
}
END_TEST

/* Also where its share was meant for a larger minute. */
START_TEST(the_share_for_reclaim_shuts_no_other_out)
{
    begin(&(struct limits){.per_minute = 10, .for_reclaim = 15});
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", 0), LIMIT_NONE);
    evict(ENDER_PLAN, "x", "a", 0);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", 0), LIMIT_CLUSTER);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", 0), LIMIT_NONE);
}
END_TEST

/* Reclaim may use what others leave, too; then they wait for all. */
START_TEST(reclaim_may_use_all)
{
    begin(&(struct limits){.per_minute = 2, .for_reclaim = 1});
    evict(ENDER_RECLAIM, "x", "a", 0);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", 0), LIMIT_NONE);
    evict(ENDER_RECLAIM, "x", "b", 0);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", 0), LIMIT_CLUSTER);
}
END_TEST

/* Of one that was evicted it is waited for ten minutes, of one that may have been for one, unless it ends. */
START_TEST(an_unknown_outcome_counts_for_a_minute)
{
    const bool ends = _i == 1;

    begin(&(struct limits){.of[ENDER_RECLAIM] = {5, 1}});
    limiter_take(limiter, ENDER_RECLAIM, "x", "a", 0);
    limiter_doubt(limiter, ENDER_RECLAIM, "a", 100);
    ck_assert(limiter_has(limiter, "a"));
    settle(ends ? LIMITER_ENDS : LIMITER_STAYS, 100 + MINUTE - 1);
    ck_assert(limiter_has(limiter, "a") && limiter_counts(limiter, "a", 100 + MINUTE - 1));
    settle(LIMITER_STAYS, 100 + MINUTE);
    ck_assert_int_eq(limiter_has(limiter, "a"), ends);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", 100 + MINUTE),
                     ends ? LIMIT_AT_ONCE : LIMIT_NONE);
    settle(LIMITER_STAYS, 100 + GOING);
    ck_assert(!limiter_has(limiter, "a"));
}
END_TEST

/* What was refused takes no place; what may have happened before that keeps its own. */
START_TEST(a_refusal_gives_its_place_back)
{
    begin(&(struct limits){.of[ENDER_RECLAIM].per_minute = 1});
    limiter_take(limiter, ENDER_RECLAIM, "x", "a", 0);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", 0), LIMIT_CAPABILITY);
    ck_assert(limiter_has(limiter, "a"));
    limiter_withdraw(limiter, ENDER_RECLAIM, "a");
    ck_assert(!limiter_has(limiter, "a"));
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", 0), LIMIT_NONE);
    limiter_take(limiter, ENDER_RECLAIM, "x", "a", 0);
    limiter_doubt(limiter, ENDER_RECLAIM, "a", 0);
    limiter_take(limiter, ENDER_RECLAIM, "x", "a", 10);
    limiter_withdraw(limiter, ENDER_RECLAIM, "a");
    ck_assert(limiter_has(limiter, "a"));
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "x", 10), LIMIT_CAPABILITY);
}
END_TEST

/* Two capabilities may want the same pod to end at the same moment. */
START_TEST(a_refusal_leaves_another_its_place)
{
    begin(&(struct limits){.per_namespace = 1});
    limiter_take(limiter, ENDER_PLAN, "x", "a", 0);
    limiter_take(limiter, ENDER_RECLAIM, "x", "a", 0);
    limiter_withdraw(limiter, ENDER_RECLAIM, "a");
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", 0), LIMIT_NAMESPACE);
    limiter_done(limiter, ENDER_PLAN, "a", 0);
    ck_assert(limiter_has(limiter, "a") && limiter_counts(limiter, "a", 0));
    limiter_take(limiter, ENDER_RECLAIM, "x", "a", 1);
    limiter_withdraw(limiter, ENDER_RECLAIM, "a");
    ck_assert(limiter_has(limiter, "a") && limiter_counts(limiter, "a", 1));
}
END_TEST

/* It counts from when its eviction was answered. */
START_TEST(an_eviction_counts_from_its_answer)
{
    begin(&(struct limits){.of[ENDER_PLAN].per_minute = 1});
    limiter_take(limiter, ENDER_PLAN, "x", "a", 0);
    limiter_done(limiter, ENDER_PLAN, "a", 1500);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", MINUTE + 1499), LIMIT_CAPABILITY);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", MINUTE + 1500), LIMIT_NONE);
}
END_TEST

START_TEST(what_is_not_known_counts_as_all_of_the_capability)
{
    begin(&(struct limits){
        .per_minute = 3, .per_namespace = 1, .of[ENDER_GANG_STRICT].per_minute = 3});
    evict(ENDER_GANG_STRICT, "x", "a", 0);
    limiter_fill(limiter, ENDER_GANG_STRICT, 0);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_GANG_STRICT, "y", 0), LIMIT_CAPABILITY);
    /* Others go by what is known. */
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", 0), LIMIT_NAMESPACE);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "y", 0), LIMIT_NONE);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_RECLAIM, "y", 0), LIMIT_NONE);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_GANG_STRICT, "x", MINUTE), LIMIT_NONE);
}
END_TEST

/* Nobody says of them that they have ended. */
START_TEST(what_is_long_ago_is_forgotten)
{
    begin(&(struct limits){.of[ENDER_PLAN].at_once = 1});
    evict(ENDER_PLAN, "x", "a", 0);
    evict(ENDER_PLAN, "x", "b", GOING - 1);
    ck_assert(limiter_has(limiter, "a"));
    evict(ENDER_PLAN, "x", "c", GOING);
    ck_assert(!limiter_has(limiter, "a") && limiter_has(limiter, "b"));
}
END_TEST

/* However long its answer takes. */
START_TEST(what_is_under_way_keeps_its_place)
{
    begin(&(struct limits){.of[ENDER_PLAN].at_once = 2});
    limiter_take(limiter, ENDER_PLAN, "x", "a", 0);
    evict(ENDER_PLAN, "x", "b", GOING);
    ck_assert_int_eq(limiter_forbids(limiter, ENDER_PLAN, "x", GOING), LIMIT_AT_ONCE);
}
END_TEST

START_TEST(without_limits_any_number_ends)
{
    begin(&(struct limits){0});
    for (int i = 0; i < 200; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        ck_assert_int_eq(limiter_forbids(limiter, ENDER_SWITCH, "x", 0), LIMIT_NONE);
        evict(ENDER_SWITCH, "x", uid, 0);
    }
}
END_TEST

START_TEST(each_limit_has_its_words)
{
    for (int i = LIMIT_NONE + 1; i < LIMIT_N; i++)
        ck_assert(*limit_texts[i] != '\0');
}
END_TEST

START_TEST(a_namespace_loses_no_more_than_it_may)
{
    const char *const namespaces[] = {"a", "b", "a", "a"};

    ck_assert(limiter_spreads(namespaces, 4, 0));
    ck_assert(limiter_spreads(namespaces, 4, 3));
    ck_assert(!limiter_spreads(namespaces, 4, 2));
    ck_assert(limiter_spreads(namespaces, 3, 2));
    ck_assert(limiter_spreads(NULL, 0, 1));
    ck_assert(!limiter_spreads((const char *const[]){NULL, NULL}, 2, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limiter");
    TCase *tests = tcase_create("limiter");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, so_many_are_on_their_way_out_at_once);
    tcase_add_test(tests, so_many_end_within_a_minute);
    tcase_add_test(tests, a_namespace_loses_so_many_whoever_evicts);
    tcase_add_test(tests, a_share_of_all_is_for_reclaim);
    tcase_add_test(tests, the_share_for_reclaim_shuts_no_other_out);
    tcase_add_test(tests, reclaim_may_use_all);
    tcase_add_loop_test(tests, an_unknown_outcome_counts_for_a_minute, 0, 2);
    tcase_add_test(tests, a_refusal_gives_its_place_back);
    tcase_add_test(tests, a_refusal_leaves_another_its_place);
    tcase_add_test(tests, an_eviction_counts_from_its_answer);
    tcase_add_test(tests, what_is_not_known_counts_as_all_of_the_capability);
    tcase_add_test(tests, what_is_long_ago_is_forgotten);
    tcase_add_test(tests, what_is_under_way_keeps_its_place);
    tcase_add_test(tests, without_limits_any_number_ends);
    tcase_add_test(tests, each_limit_has_its_words);
    tcase_add_test(tests, a_namespace_loses_no_more_than_it_may);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
