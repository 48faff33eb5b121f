/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is, where one group has places at a time. */
#include "gang/gangs.h"

#include "suite.h"

#include <string.h>

#define TIMEOUT_MS 60000

static struct gangs *gangs;
static int64_t now_ms;

static void drop(void *data, const char *uid)
{
}

static uint64_t take(void *data, const char *const *uids, size_t n, bool *ret_taken)
{
    for (size_t i = 0; i < n; i++)
        ret_taken[i] = true;
    return 1;
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

static void join(const char *ns, const char *name, int64_t timeout_ms)
{
    const struct pod_group_claim claim = {.name = name, .min = 2, .timeout_ms = timeout_ms};

    for (int i = 0; i < 2; i++) {
        g_autofree char *uid = g_strdup_printf("%s-%d", name, i);
        ck_assert(gangs_join(gangs, ns, &claim, uid, GANG_PENDING, &(struct gang_source){0}));
    }
}

static void leave(const char *name)
{
    for (int i = 0; i < 2; i++) {
        g_autofree char *uid = g_strdup_printf("%s-%d", name, i);
        gangs_forget(gangs, uid);
    }
}

static char *uid_of(const char *name, int number)
{
    return g_strdup_printf("%s-%d", name, number);
}

static enum gang_answer ask(const char *name)
{
    g_autofree char *uid = g_strdup_printf("%s-0", name);
    return gangs_ask(gangs, &(struct gang_ask){.uid = uid,
                                               .pool = g_intern_static_string("pool"),
                                               .now_ms = now_ms,
                                               .take = take});
}

/* All its pods are bound. */
static void come(const char *name)
{
    for (int i = 0; i < 2; i++) {
        g_autofree char *uid = uid_of(name, i);
        gangs_arrive(gangs, uid, now_ms, NULL);
    }
    for (int i = 0; i < 2; i++) {
        g_autofree char *uid = uid_of(name, i);
        ck_assert_int_eq(gangs_arrive(gangs, uid, now_ms, NULL), GANG_YES);
        gangs_book(gangs, uid);
        gangs_settle(gangs, uid, true);
    }
}

/* kube-scheduler asks about the others every second, and about the victim's, which it has refused, at last
 * when it is told that it may ask. Returns when the victim's group has its places, in seconds. */
static int seconds_until_served(const char *const *others, size_t n, int patience_s,
                                void (*meanwhile)(int second))
{
    ask(others[0]);
    ask("victim");
    for (int second = 0; second < patience_s; second++) {
        now_ms += 1000;
        gangs_expire(gangs, now_ms);
        if (meanwhile)
            meanwhile(second);
        for (size_t i = 0; i < n; i++)
            ask(others[i]);
        if (second % 10 == 9 && ask("victim") == GANG_YES)
            return second;
    }
    return patience_s;
}

/* Of each, one pod comes to bind, and the other never. */
START_TEST(no_namespace_has_a_pool_for_itself)
{
    const char *const groups[] = {"a", "b", "c", "d"};

    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++)
        join("mallory", groups[i], TIMEOUT_MS);
    join("ml", "victim", TIMEOUT_MS);
    ck_assert_int_lt(seconds_until_served(groups, G_N_ELEMENTS(groups), 600, NULL), 90);
}
END_TEST

/* However short the time is that they say. */
START_TEST(nor_by_short_deadlines)
{
    char names[80][8];
    const char *groups[80];

    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
        g_snprintf(names[i], sizeof names[i], "m%zu", i);
        groups[i] = names[i];
        join("mallory", names[i], 1000);
    }
    join("ml", "victim", TIMEOUT_MS);
    ck_assert_int_lt(seconds_until_served(groups, G_N_ELEMENTS(groups), 600, NULL), 30);
}
END_TEST

static void make_anew(int second)
{
    if (second % 30 != 29)
        return;
    const char *old = second / 30 % 2 ? "b" : "a", *new = second / 30 % 2 ? "a" : "b";

    leave(old); /* with all that was known of the namespace's groups, for a moment */
    join("mallory", new, TIMEOUT_MS);
}

START_TEST(nor_by_groups_that_are_made_anew)
{
    const char *const groups[] = {"a", "b"};

    join("mallory", "a", TIMEOUT_MS);
    join("ml", "victim", TIMEOUT_MS);
    ck_assert_int_lt(seconds_until_served(groups, G_N_ELEMENTS(groups), 600, make_anew), 90);
}
END_TEST

static void make_often(int second)
{
    if (second % 3 != 2)
        return;
    const char *old = second / 3 % 2 ? "b" : "a", *new = second / 3 % 2 ? "a" : "b";

    leave(old);
    join("mallory", new, TIMEOUT_MS);
}

/* None of them holds its places for long. */
START_TEST(nor_by_groups_that_are_made_anew_all_the_time)
{
    const char *const groups[] = {"a", "b"};

    join("mallory", "a", TIMEOUT_MS);
    join("ml", "victim", TIMEOUT_MS);
    ck_assert_int_lt(seconds_until_served(groups, G_N_ELEMENTS(groups), 600, make_often), 20);
}
END_TEST

static void change_needs(int second)
{
    static const char *const groups[] = {"a", "b"};
    const struct pod_group_claim claim = {
        .name = groups[second % 2], .min = second / 2 % 2 ? 2 : 3, .timeout_ms = TIMEOUT_MS};
    g_autofree char *uid = uid_of(claim.name, 0);

    gangs_join(gangs, "mallory", &claim, uid, GANG_PENDING, &(struct gang_source){0});
}

/* Nor does one of them lack pods, and then not, in turns. */
START_TEST(nor_by_groups_that_come_to_need_more)
{
    const char *const groups[] = {"a", "b"};

    join("mallory", "a", TIMEOUT_MS);
    join("mallory", "b", TIMEOUT_MS);
    join("ml", "victim", TIMEOUT_MS);
    ck_assert_int_lt(seconds_until_served(groups, G_N_ELEMENTS(groups), 600, change_needs), 20);
}
END_TEST

/* Two namespaces have a turn each before it, at most. */
START_TEST(nor_have_two)
{
    const char *const groups[] = {"a", "b", "c", "d"};

    join("mallory", "a", TIMEOUT_MS);
    join("mallory", "b", TIMEOUT_MS);
    join("trudy", "c", TIMEOUT_MS);
    join("trudy", "d", TIMEOUT_MS);
    join("ml", "victim", TIMEOUT_MS);
    ck_assert_int_lt(seconds_until_served(groups, G_N_ELEMENTS(groups), 600, NULL), 160);
}
END_TEST

/* Who waits, and is asked about no more, keeps others away for a moment, and once. */
START_TEST(a_turn_that_nobody_takes)
{
    join("ml", "victim", TIMEOUT_MS);
    join("ml", "second", TIMEOUT_MS);
    join("mallory", "a", TIMEOUT_MS);
    ck_assert_int_eq(ask("victim"), GANG_YES);
    ck_assert_int_eq(ask("a"), GANG_BUSY);
    now_ms += 10000;
    gangs_expire(gangs, now_ms); /* that one takes its time */
    leave("victim");
    ck_assert_int_eq(ask("second"), GANG_BUSY);
    for (int i = 0; i < 25; i++) {
        now_ms += 1000;
        gangs_expire(gangs, now_ms);
    }
    ck_assert(gangs_take_news(gangs));
    ck_assert_int_eq(gangs_judge(gangs, "second-0", now_ms), GANG_YES);
    ck_assert_int_eq(ask("second"), GANG_YES);
    ck_assert_int_eq(ask("a"), GANG_BUSY);
    now_ms += 1000;
    come("second");
    join("ml", "victim", TIMEOUT_MS);
    ck_assert_int_eq(ask("victim"), GANG_YES);
}
END_TEST

/* Groups that come at once give way to nobody. */
START_TEST(swift_ones_do_not_take_turns)
{
    join("ml", "x", TIMEOUT_MS);
    join("ml", "y", TIMEOUT_MS);
    join("other", "a", TIMEOUT_MS);
    ck_assert_int_eq(ask("x"), GANG_YES);
    ck_assert_int_eq(ask("a"), GANG_BUSY);
    now_ms += 2000;
    gangs_expire(gangs, now_ms);
    come("x");
    leave("x");
    ck_assert_int_eq(ask("y"), GANG_YES);
}
END_TEST

/* Nor do those for whom nobody waits. */
START_TEST(who_keeps_nobody_waiting_takes_no_turn)
{
    join("ml", "x", TIMEOUT_MS);
    join("ml", "y", TIMEOUT_MS);
    join("other", "a", TIMEOUT_MS);
    ck_assert_int_eq(ask("x"), GANG_YES);
    leave("x");
    ck_assert_int_eq(ask("y"), GANG_YES);
    ck_assert_int_eq(ask("a"), GANG_BUSY);
    leave("y"); /* in vain: another waits */
    join("ml", "y", TIMEOUT_MS);
    ck_assert_int_eq(ask("y"), GANG_BUSY);
    ck_assert_int_eq(ask("a"), GANG_YES);
}
END_TEST

/* A second at first, then twice as long each time. */
START_TEST(who_lets_its_deadline_pass_is_not_next)
{
    join("ml", "late", TIMEOUT_MS);
    for (int64_t rest_ms = GANG_BACKOFF_MIN_MS; rest_ms < 8 * GANG_BACKOFF_MIN_MS; rest_ms *= 2) {
        ck_assert_int_eq(ask("late"), GANG_YES);
        now_ms += TIMEOUT_MS;
        gangs_expire(gangs, now_ms);
        ck_assert_int_eq(ask("late"), GANG_BACKOFF);
        now_ms += rest_ms - 1;
        ck_assert_int_eq(ask("late"), GANG_BACKOFF);
        now_ms++;
    }
    ck_assert_int_eq(ask("late"), GANG_YES);
}
END_TEST

static char *encode(struct gangs *of)
{
    g_autoptr(gangs_image) image = gangs_image_new(&(struct gang_places){0});
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    gangs_image_begin(image, of, 0);
    while (gangs_image_take(image))
        continue;
    json_writer_init(&writer, text);
    gangs_encode(&writer, image);
    return g_string_free(text, FALSE);
}

static int count_slow(void)
{
    g_autofree char *text = encode(gangs);
    int n = 0;

    for (const char *at = text; (at = strstr(at, "\"slow/")); at++)
        n++;
    return n;
}

/* Who makes namespaces makes no list longer than a thousand, and is known by the last of them. */
START_TEST(slow_namespaces_are_few)
{
    for (int i = 0; i < 3000; i++) {
        g_autofree char *ns = g_strdup_printf("ns%d", i);
        join(ns, "x", TIMEOUT_MS);
        ck_assert_int_eq(ask("x"), GANG_YES);
        now_ms += 6000;
        gangs_expire(gangs, now_ms);
        leave("x");
    }
    ck_assert_int_eq(count_slow(), 1024);
    join("ns2999", "x", TIMEOUT_MS);
    join("ns0", "y", TIMEOUT_MS);
    join("ml", "z", TIMEOUT_MS);
    ck_assert_int_eq(ask("z"), GANG_YES);
    ck_assert_int_eq(ask("x"), GANG_BUSY);
    ck_assert_int_eq(ask("y"), GANG_BUSY);
    come("z");
    ck_assert_int_eq(ask("x"), GANG_BUSY); /* the other may come first */
    ck_assert_int_eq(ask("y"), GANG_YES);
}
END_TEST

START_TEST(a_record_goes_on_from_it)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct gangs *const first = gangs;

    join("mallory", "a", 10000);
    join("mallory", "b", TIMEOUT_MS);
    join("ml", "victim", TIMEOUT_MS);
    ck_assert_int_eq(ask("a"), GANG_YES);
    ck_assert_int_eq(ask("victim"), GANG_BUSY);
    now_ms += 11000;
    ck_assert(gangs_expire(gangs, now_ms));
    now_ms += 1000;
    ck_assert(gangs_expire(gangs, now_ms)); /* its turn begins */
    g_autofree char *before = encode(first);
    ck_assert(strstr(before, "\"waiting\":true"));
    ck_assert(strstr(before, "\"slow/mallory\""));

    gangs = gangs_new(&(struct gang_keeper){.drop = drop});
    join("mallory", "a", 10000);
    join("mallory", "b", TIMEOUT_MS);
    join("ml", "victim", TIMEOUT_MS);
    const cJSON *object = json_parse(arena, before, strlen(before), NULL);
    ck_assert(gangs_decode(gangs, arena, object, 0, NULL, NULL, NULL));
    g_autofree char *after = encode(gangs);
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(ask("b"), GANG_BUSY);
    gangs_free(first);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gangs_turns");
    TCase *tests = tcase_create("gangs_turns");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, no_namespace_has_a_pool_for_itself);
    tcase_add_test(tests, nor_by_short_deadlines);
    tcase_add_test(tests, nor_by_groups_that_are_made_anew);
    tcase_add_test(tests, nor_by_groups_that_are_made_anew_all_the_time);
    tcase_add_test(tests, nor_by_groups_that_come_to_need_more);
    tcase_add_test(tests, nor_have_two);
    tcase_add_test(tests, a_turn_that_nobody_takes);
    tcase_add_test(tests, swift_ones_do_not_take_turns);
    tcase_add_test(tests, who_keeps_nobody_waiting_takes_no_turn);
    tcase_add_test(tests, who_lets_its_deadline_pass_is_not_next);
    tcase_add_test(tests, slow_namespaces_are_few);
    tcase_add_test(tests, a_record_goes_on_from_it);

    return suite_run(suite);
}
