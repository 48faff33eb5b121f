/* SPDX-License-Identifier: Apache-2.0 */
/* What looking for places may take: in a call, and for a namespace. */
#include "gang/gangs.h"

#include "suite.h"

static struct gangs *gangs;
static int64_t now_ms;
static size_t room;   /* places that are found at most */
static uint64_t work; /* what it takes */
static unsigned looks, dropped;

static void drop(void *data, const char *uid)
{
    dropped++;
}

static uint64_t take(void *data, const char *const *uids, size_t n, bool *ret_taken)
{
    looks++;
    for (size_t i = 0; i < MIN(n, room); i++)
        ret_taken[i] = true;
    return work;
}

static void setup(void)
{
    gangs = gangs_new(&(struct gang_keeper){.drop = drop});
    now_ms = 5000;
    room = 10;
    work = 1;
    looks = dropped = 0;
}

static void teardown(void)
{
    gangs_free(gangs);
}

/* Three pods "NAME-0" and so on, of which two must come. */
static void group(const char *ns, const char *name)
{
    const struct pod_group_claim claim = {.name = name, .min = 2, .timeout_ms = 60000};

    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("%s-%d", name, i);
        ck_assert(gangs_join(gangs, ns, &claim, uid, GANG_PENDING, &(struct gang_source){0}));
    }
}

static enum gang_answer ask(const char *uid, const char *pool)
{
    return gangs_ask(gangs,
                     &(struct gang_ask){.uid = uid, .pool = pool, .now_ms = now_ms, .take = take});
}

START_TEST(a_search_that_is_cut_short)
{
    group("ml", "a");
    work = GANG_WORK_MAX + 1;
    room = 1;
    ck_assert_int_eq(ask("a-0", "pool"), GANG_SPENT);
    ck_assert_uint_eq(dropped, 1);
    room = 2; /* enough all the same */
    now_ms += GANG_LOOK_MS;
    ck_assert_int_eq(ask("a-0", "pool"), GANG_YES);
    ck_assert_uint_eq(dropped, 1);
}
END_TEST

START_TEST(a_search_that_is_not)
{
    group("ml", "a");
    work = GANG_WORK_MAX;
    room = 1;
    ck_assert_int_eq(ask("a-0", "pool"), GANG_NO_ROOM);
}
END_TEST

/* Of the groups that one namespace has too many of, no pod comes; others' do. */
START_TEST(who_has_all_groups_loses_its_own_alone)
{
    const struct pod_group_claim more = {.name = "more", .min = 2, .timeout_ms = 60000};

    for (int i = 0; i < GANGS_NAMESPACE_MAX; i++) {
        g_autofree char *name = g_strdup_printf("g%d", i);
        const struct pod_group_claim claim = {.name = name, .min = 2, .timeout_ms = 60000};
        ck_assert(gangs_join(gangs, "evil", &claim, name, GANG_PENDING, &(struct gang_source){0}));
    }
    ck_assert(!gangs_join(gangs, "evil", &more, "m", GANG_PENDING, &(struct gang_source){0}));
    group("ml", "a");
    ck_assert_int_eq(ask("a-0", "pool"), GANG_YES);
}
END_TEST

/* Who has taken its namespace's time in advance waits until that has come, others do not. */
START_TEST(the_time_of_a_namespace)
{
    group("ml", "a");
    group("ml", "b");
    group("ml", "c");
    group("other", "d");
    work = GANGS_WORK_SECOND;
    ck_assert_int_eq(ask("a-0", "pool a"), GANG_YES);
    ck_assert_int_eq(ask("b-0", "pool b"), GANG_YES);
    ck_assert_int_eq(ask("c-0", "pool c"), GANG_SPENT);
    ck_assert_int_eq(gangs_judge(gangs, "c-0", now_ms), GANG_SPENT);
    ck_assert_int_eq(ask("d-0", "pool d"), GANG_YES);
    ck_assert_uint_eq(looks, 3);
    ck_assert_uint_eq(dropped, 0);

    now_ms += 2000 - GANGS_AHEAD_MS;
    ck_assert_int_eq(gangs_judge(gangs, "c-0", now_ms), GANG_YES);
    ck_assert_int_eq(ask("c-0", "pool c"), GANG_YES);
}
END_TEST

START_TEST(where_time_is_played)
{
    gangs_free(gangs);
    gangs = gangs_new(&(struct gang_keeper){.drop = drop, .unhurried = true});
    group("ml", "a");
    group("ml", "b");
    work = 3 * GANGS_WORK_SECOND;
    ck_assert_int_eq(ask("a-0", "pool a"), GANG_YES);
    ck_assert_int_eq(ask("b-0", "pool b"), GANG_YES);
}
END_TEST

/* They are asked about, and are there. */
START_TEST(who_has_a_place_keeps_it)
{
    group("ml", "a");
    room = 2;
    work = 3 * GANGS_WORK_SECOND;
    ck_assert_int_eq(ask("a-0", "pool"), GANG_YES);
    ck_assert_int_eq(gangs_judge(gangs, "a-0", now_ms), GANG_YES);
    ck_assert_int_eq(ask("a-1", "pool"), GANG_YES);
    ck_assert_int_eq(ask("a-2", "pool"), GANG_SPENT); /* no room for it either */
    ck_assert_int_eq(ask("a-1", "pool"), GANG_YES);
    ck_assert_uint_eq(dropped, 0);
    ck_assert_uint_eq(looks, 1);
    gangs_lose(gangs, "a-1"); /* its node is not offered: what is left is no group */
    ck_assert_int_eq(ask("a-1", "pool"), GANG_SPENT);
    ck_assert_uint_eq(dropped, 2);
}
END_TEST

/* Pods "NAME-0" and so on, of which `min` must come. Beyond what a group may have they are not of it. */
static void fill_group(const char *ns, const char *name, int n, uint32_t min)
{
    const struct pod_group_claim claim = {.name = name, .min = min, .timeout_ms = 60000};

    for (int i = 0; i < n; i++) {
        g_autofree char *uid = g_strdup_printf("%s-%d", name, i);
        ck_assert_int_eq(gangs_join(gangs, ns, &claim, uid, GANG_PENDING, &(struct gang_source){0}),
                         i < GANG_MEMBERS_MAX);
    }
}

START_TEST(who_has_all_places_gets_no_more_alone)
{
    room = GANG_MEMBERS_MAX;
    fill_group("ml", "a", GANGS_PLACES_MAX / 2, GANGS_PLACES_MAX / 2);
    fill_group("ml", "b", GANGS_PLACES_MAX / 2, GANGS_PLACES_MAX / 2);
    fill_group("ml", "c", 2, 2);
    fill_group("web", "d", 2, 2);
    ck_assert_int_eq(ask("a-0", "one"), GANG_YES);
    ck_assert_int_eq(ask("b-0", "two"), GANG_YES);
    ck_assert_int_eq(ask("c-0", "three"), GANG_CAPPED);
    ck_assert_int_eq(ask("d-0", "three"), GANG_YES);
}
END_TEST

/* Of more pods than a group may have the last ones are not of it; of a group that needs more none comes. */
START_TEST(a_group_has_so_many_members)
{
    room = 2 * GANG_MEMBERS_MAX;
    fill_group("ml", "a", GANG_MEMBERS_MAX + 3, 2);
    fill_group("ml", "b", GANG_MEMBERS_MAX, GANG_MEMBERS_MAX + 1);
    ck_assert_int_eq(ask("b-0", "two"), GANG_CAPPED);
    ck_assert_int_eq(ask("a-0", "one"), GANG_YES);
}
END_TEST

#define MANY 512
#define NEEDED 256

static unsigned asked;   /* nodes' sides */
static int n_behind;     /* the first of the group */
static uint64_t version; /* of all nodes */

static bool takes(void *data, const char *uid)
{
    asked++;
    return atoi(uid + strlen("large-")) >= n_behind;
}

static uint64_t version_of(void *data, const char *uid)
{
    return version;
}

static const struct gang_gate gate = {takes, NULL, version_of};

/* All of a large group have places, and binds of all of them have come. */
static void arrive(void)
{
    const struct pod_group_claim claim = {.name = "large", .min = NEEDED, .timeout_ms = 600000};

    room = MANY;
    for (int i = 0; i < MANY; i++) {
        g_autofree char *uid = g_strdup_printf("large-%d", i);
        ck_assert(gangs_join(gangs, "ml", &claim, uid, GANG_PENDING, &(struct gang_source){0}));
    }
    ck_assert_int_eq(ask("large-0", "pool"), GANG_YES);
}

/* Of how many the Binding is due. */
static int look_at_all(void)
{
    int due = 0;

    for (int i = 0; i < MANY; i++) {
        g_autofree char *uid = g_strdup_printf("large-%d", i);
        due += gangs_arrive(gangs, uid, now_ms + i, &gate) == GANG_YES;
    }
    now_ms += GANG_ANSWER_MS;
    return due;
}

/* Each member asks about each other once in a while, and not at each of its looks. */
START_TEST(waiting_for_plugins_takes_as_much_as_there_are_members)
{
    arrive();
    version = 1;
    n_behind = MANY - NEEDED + 1;
    asked = 0;
    ck_assert_int_eq(look_at_all(), 0);
    ck_assert_uint_le(asked, 4 * MANY); /* and none of them has been asked about before */
    for (int second = 0; second < 10; second++) {
        asked = 0;
        ck_assert_int_eq(look_at_all(), 0);
        ck_assert_uint_ge(asked, MANY);
        ck_assert_uint_le(asked, 3 * MANY);
    }
    n_behind--; /* one more is taken, though nothing of its node has changed */
    ck_assert_int_gt(look_at_all(), 0);
}
END_TEST

/* A node that has changed is asked at once. */
START_TEST(a_plugin_is_asked_again_once_its_node_has_changed)
{
    arrive();
    version = 1;
    n_behind = MANY;
    look_at_all();
    now_ms -= GANG_ANSWER_MS;
    version++;
    n_behind = 0;
    ck_assert_int_eq(gangs_arrive(gangs, "large-0", now_ms + MANY, &gate), GANG_YES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gangs_work");
    TCase *tests = tcase_create("gangs_work");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_search_that_is_cut_short);
    tcase_add_test(tests, a_search_that_is_not);
    tcase_add_test(tests, who_has_all_groups_loses_its_own_alone);
    tcase_add_test(tests, the_time_of_a_namespace);
    tcase_add_test(tests, where_time_is_played);
    tcase_add_test(tests, who_has_a_place_keeps_it);
    tcase_add_test(tests, who_has_all_places_gets_no_more_alone);
    tcase_add_test(tests, a_group_has_so_many_members);
    tcase_add_test(tests, waiting_for_plugins_takes_as_much_as_there_are_members);
    tcase_add_test(tests, a_plugin_is_asked_again_once_its_node_has_changed);

    return suite_run(suite);
}
