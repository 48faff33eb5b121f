/* SPDX-License-Identifier: Apache-2.0 */
/* Which groups are said to be half, and from when on. */
#include "gang/gangs.h"

#include "suite.h"

#include <string.h>

#define TIMEOUT_MS 1000

static struct gangs *gangs;
static int64_t now_ms;

static void drop(void *data, const char *uid)
{
}

static void setup(void)
{
    gangs = gangs_new(&(struct gang_keeper){.drop = drop});
    now_ms = 5000;
}

static void teardown(void)
{
    gangs_free(gangs);
}

static void declare(uint32_t min)
{
    ck_assert(gangs_declare(
        gangs,
        &(struct pod_group_view){.ns = "ml", .name = "g", .min = min, .timeout_ms = TIMEOUT_MS},
        0));
}

static void join(const char *uid, enum gang_role role)
{
    const struct pod_group_claim claim = {.name = "g"};
    ck_assert(gangs_join(gangs, "ml", &claim, uid, role, &(struct gang_source){0}));
}

static void add(const struct gang_half *half, void *data)
{
    g_string_append_printf(data, "%s/%s %s: %u of %u for %d\n", half->group.ns, half->group.name,
                           half->uid, half->group.bound, half->group.min, (int)half->for_ms);
}

/* After that many milliseconds, at each end of which somebody looks. */
static void expect(int64_t ms, const char *text)
{
    g_autoptr(GString) found = g_string_new(NULL);

    gangs_expire(gangs, now_ms);
    now_ms += ms;
    gangs_expire(gangs, now_ms);
    gangs_each_half(gangs, now_ms, add, found);
    ck_assert_str_eq(found->str, text);
}

START_TEST(half_for_longer_than_the_deadline)
{
    declare(3);
    join("a", GANG_PENDING);
    join("b", GANG_BOUND);
    join("c", GANG_PENDING);
    expect(TIMEOUT_MS, "");
    expect(1, "ml/g b: 1 of 3 for 1001\n");
    join("a", GANG_BOUND);
    expect(1, "ml/g a: 2 of 3 for 1002\n");
    join("c", GANG_BOUND);
    expect(TIMEOUT_MS + 1, "");
}
END_TEST

START_TEST(nobody_bound_is_not_half)
{
    declare(2);
    join("a", GANG_PENDING);
    join("b", GANG_PENDING);
    expect(10 * TIMEOUT_MS, "");
}
END_TEST

START_TEST(who_replaces_a_pod_of_a_whole_group_makes_no_half)
{
    declare(2);
    join("a", GANG_BOUND);
    join("b", GANG_BOUND);
    ck_assert(gangs_forget(gangs, "b"));
    join("b2", GANG_PENDING);
    expect(10 * TIMEOUT_MS, "");
}
END_TEST

/* After a restart nobody knows that it was whole: it has its deadline's time. */
START_TEST(the_time_begins_when_it_is_seen)
{
    declare(2);
    join("a", GANG_BOUND);
    join("b2", GANG_PENDING);
    expect(TIMEOUT_MS, "");
    join("b2", GANG_BOUND);
    ck_assert(gangs_forget(gangs, "a"));
    join("a2", GANG_PENDING);
    expect(10 * TIMEOUT_MS, "");
}
END_TEST

START_TEST(what_is_lacking_has_ended)
{
    declare(3);
    join("a", GANG_BOUND);
    join("b", GANG_BOUND);
    expect(10 * TIMEOUT_MS, "");
    join("c", GANG_PENDING);
    expect(0, "ml/g a: 2 of 3 for 10000\n");
}
END_TEST

START_TEST(a_pod_without_gpu_is_there)
{
    declare(2);
    join("a", GANG_BOUND);
    join("b", GANG_PLAIN);
    join("c", GANG_PENDING);
    expect(10 * TIMEOUT_MS, "");
}
END_TEST

START_TEST(a_binding_under_way_may_mend_it)
{
    declare(2);
    join("a", GANG_BOUND);
    join("b", GANG_BOOKED);
    expect(2 * TIMEOUT_MS, "");
    gangs_settle(gangs, "b", false);
    expect(0, "ml/g a: 1 of 2 for 2000\n");
}
END_TEST

START_TEST(another_min_ends_or_begins_it)
{
    declare(3);
    join("a", GANG_BOUND);
    join("b", GANG_BOUND);
    join("c", GANG_PENDING);
    expect(2 * TIMEOUT_MS, "ml/g a: 2 of 3 for 2000\n");
    declare(2); /* whole now */
    expect(2 * TIMEOUT_MS, "");
    declare(3); /* its pods stay pods like others, but it is said */
    ck_assert_int_eq(gangs_judge(gangs, "c", now_ms), GANG_NONE);
    expect(TIMEOUT_MS, "");
    expect(1, "ml/g a: 2 of 3 for 1001\n");
    declare(2);
    expect(2 * TIMEOUT_MS, "");
}
END_TEST

static void note_raised(const struct gang_half *half, void *data)
{
    *(uint32_t *)data = half->raised_from;
}

/* Then nothing that it lacks has ended: it has never come. */
START_TEST(a_min_above_all_its_pods)
{
    uint32_t raised_from = 0;

    declare(2);
    join("a", GANG_BOUND);
    join("b", GANG_PENDING);
    declare(9);
    ck_assert_int_eq(gangs_judge(gangs, "b", now_ms), GANG_FEW);
    expect(TIMEOUT_MS + 1, "ml/g a: 1 of 9 for 1001\n");
    gangs_each_half(gangs, now_ms, note_raised, &raised_from);
    ck_assert_uint_eq(raised_from, 2);
    declare(2);
    expect(0, "ml/g a: 1 of 2 for 1001\n");
    join("b", GANG_BOUND);
    declare(9);
    ck_assert(gangs_forget(gangs, "a"));
    ck_assert(gangs_forget(gangs, "b"));
    join("c", GANG_BOUND); /* of the next pods nothing is known */
    expect(2 * TIMEOUT_MS, "");
}
END_TEST

/* Its object is made anew, and by its next pod. */
START_TEST(a_min_that_was_not_said_for_a_while)
{
    declare(2);
    join("a", GANG_BOUND);
    join("b", GANG_BOUND);
    gangs_undeclare(gangs, "ml", "g", false);
    expect(2 * TIMEOUT_MS, "");
    declare(3);
    expect(TIMEOUT_MS + 1, "ml/g a: 2 of 3 for 1001\n");
}
END_TEST

START_TEST(a_group_that_nobody_declares_any_more)
{
    declare(2);
    join("a", GANG_BOUND);
    join("b", GANG_PENDING);
    expect(2 * TIMEOUT_MS, "ml/g a: 1 of 2 for 2000\n");
    gangs_undeclare(gangs, "ml", "g", false);
    expect(2 * TIMEOUT_MS, "");
    ck_assert(gangs_forget(gangs, "a"));
    ck_assert(gangs_forget(gangs, "b"));
    expect(2 * TIMEOUT_MS, "");
}
END_TEST

static void note_ours(const struct gang_half *half, void *data)
{
    *(int *)data = half->ours;
}

/* -1: none is half. */
static int ours(void)
{
    int found = -1;
    gangs_each_half(gangs, now_ms, note_ours, &found);
    return found;
}

/* Only if all who are bound have come with the group, by their Bindings, which are believed of who is bound. */
START_TEST(whom_we_have_bound_with_the_group)
{
    const struct pod_group_claim with = {.name = "g", .bound_with = true};
    const struct gang_source source = {0};

    declare(4);
    ck_assert(gangs_join(gangs, "ml", &with, "a", GANG_PENDING, &source));
    join("b", GANG_PENDING);
    join("c", GANG_PENDING);
    join("d", GANG_PENDING);
    join("a", GANG_BOUND);
    expect(TIMEOUT_MS + 1, "ml/g a: 1 of 4 for 1001\n");
    ck_assert_int_eq(ours(), 0);
    ck_assert(gangs_join(gangs, "ml", &with, "a", GANG_BOUND, &source));
    ck_assert_int_eq(ours(), 1);
    join("b", GANG_BOUND);
    ck_assert_int_eq(ours(), 0);
    g_auto(GStrv) bound = gangs_bound(gangs, "c");
    ck_assert_uint_eq(g_strv_length(bound), 2);
    ck_assert(g_strv_contains((const char *const *)bound, "a"));
    ck_assert(g_strv_contains((const char *const *)bound, "b"));
}
END_TEST

/* A pod of the group by what it says itself. */
static void say(const char *uid, uint32_t says)
{
    const struct pod_group_claim claim = {.name = "g", .min = says, .timeout_ms = TIMEOUT_MS};
    ck_assert(gangs_join(gangs, "ml", &claim, uid, GANG_PENDING, &(struct gang_source){0}));
}

static void expect_needed(uint32_t needs, uint32_t says_least)
{
    struct gang_row row;
    ck_assert(gangs_tell(gangs, "b", &row));
    ck_assert_uint_eq(row.min, needs);
    ck_assert_uint_eq(row.says_least, says_least);
}

/* Whoever is heard of last, and until that one is gone. */
START_TEST(the_largest_number_that_pods_say)
{
    say("a", 2);
    say("b", 3);
    say("c", 0); /* nothing */
    say("a", 2); /* is heard of again */
    expect_needed(3, 2);
    say("a", 3);
    expect_needed(3, 0);
    say("a", 5);
    expect_needed(5, 3);
    declare(2); /* an object knows better */
    expect_needed(2, 0);
    say("c", 7);
    expect_needed(2, 0);
    gangs_undeclare(gangs, "ml", "g", false);
    expect_needed(7, 3);
    ck_assert(gangs_forget(gangs, "c"));
    expect_needed(5, 3);
    ck_assert(gangs_forget(gangs, "a"));
    expect_needed(3, 0);
}
END_TEST

/* What Bindings say: it came, whole, when it needed two; the number has risen since. In any order. */
START_TEST(a_raised_min_is_known_after_a_restart)
{
    for (int order = 0; order < 2; order++) {
        uint32_t raised_from = 0;
        const struct pod_group_claim two = {.name = "g", .came_with = 2};

        if (order == 0)
            declare(5);
        ck_assert(gangs_join(gangs, "ml", &two, "a", GANG_BOUND, &(struct gang_source){0}));
        ck_assert(gangs_join(gangs, "ml", &two, "b", GANG_BOUND, &(struct gang_source){0}));
        join("c", GANG_PENDING);
        if (order == 1)
            declare(5);
        ck_assert_int_eq(gangs_judge(gangs, "c", now_ms), GANG_NONE); /* it was whole */
        expect(TIMEOUT_MS + 1, "ml/g a: 2 of 5 for 1001\n");
        gangs_each_half(gangs, now_ms, note_raised, &raised_from);
        ck_assert_uint_eq(raised_from, 2);
        teardown();
        setup();
    }
}
END_TEST

/* A crash between two Bindings: it needs as many as then, and is not whole. */
START_TEST(one_that_is_half_is_so_after_a_restart)
{
    const struct pod_group_claim three = {.name = "g", .came_with = 3};

    declare(3);
    ck_assert(gangs_join(gangs, "ml", &three, "a", GANG_BOUND, &(struct gang_source){0}));
    ck_assert(gangs_join(gangs, "ml", &three, "b", GANG_BOUND, &(struct gang_source){0}));
    join("c", GANG_PENDING);
    ck_assert_int_eq(gangs_judge(gangs, "c", now_ms), GANG_YES);
    expect(TIMEOUT_MS + 1, "ml/g a: 2 of 3 for 1001\n");
    declare(6);
    ck_assert_int_eq(gangs_judge(gangs, "c", now_ms), GANG_FEW);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gangs_half");
    TCase *tests = tcase_create("gangs_half");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, half_for_longer_than_the_deadline);
    tcase_add_test(tests, nobody_bound_is_not_half);
    tcase_add_test(tests, who_replaces_a_pod_of_a_whole_group_makes_no_half);
    tcase_add_test(tests, the_time_begins_when_it_is_seen);
    tcase_add_test(tests, what_is_lacking_has_ended);
    tcase_add_test(tests, a_pod_without_gpu_is_there);
    tcase_add_test(tests, a_binding_under_way_may_mend_it);
    tcase_add_test(tests, another_min_ends_or_begins_it);
    tcase_add_test(tests, a_min_above_all_its_pods);
    tcase_add_test(tests, a_min_that_was_not_said_for_a_while);
    tcase_add_test(tests, whom_we_have_bound_with_the_group);
    tcase_add_test(tests, a_group_that_nobody_declares_any_more);
    tcase_add_test(tests, the_largest_number_that_pods_say);
    tcase_add_test(tests, a_raised_min_is_known_after_a_restart);
    tcase_add_test(tests, one_that_is_half_is_so_after_a_restart);

    return suite_run(suite);
}
