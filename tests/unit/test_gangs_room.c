/* SPDX-License-Identifier: Apache-2.0 */
/* For whom room is kept, from whom, and for how long. */
#include "gang/gangs.h"

#include "suite.h"

#include <string.h>

#define ROOM_MS 100000

static struct gangs *gangs;
static int64_t now_ms;
static bool fits;        /* there is room for a group */
static bool there_is;    /* there are nodes that would hold it */
static int64_t priority; /* of its least important pod */
static unsigned looks;
static uint32_t lacks;

static void drop(void *data, const char *uid)
{
}

static uint64_t take(void *data, const char *const *uids, size_t n, bool *ret_taken)
{
    for (size_t i = 0; i < n && fits; i++)
        ret_taken[i] = true;
    return 1;
}

static uint64_t choose(void *data, const struct gang_need *need, struct gang_choice *ret_choice)
{
    looks++;
    lacks = need->lacks;
    ck_assert_uint_eq(need->n, 3);
    *ret_choice = (struct gang_choice){.priority = priority};
    if (there_is) {
        ret_choice->take_nodes = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(ret_choice->take_nodes, g_strdup("n1"));
        g_ptr_array_add(ret_choice->take_nodes, g_strdup("n2"));
    }
    return 1;
}

static void setup(void)
{
    gangs = gangs_new(&(struct gang_keeper){.drop = drop, .room_ms = ROOM_MS});
    now_ms = 5000;
    fits = false;
    there_is = true;
    priority = 10;
    looks = 0;
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

static enum gang_answer ask(const char *name, const char *pool)
{
    g_autofree char *uid = g_strdup_printf("%s-0", name);
    gangs_expire(gangs, now_ms);
    return gangs_ask(
        gangs, &(struct gang_ask){
                   .uid = uid, .pool = pool, .now_ms = now_ms, .take = take, .choose = choose});
}

/* For whom a node is kept from a pod of no group; NULL: for nobody. */
static const char *keeper(const char *node, int64_t of_priority)
{
    struct gang_row row;
    return gangs_kept_on(gangs, node, "other", of_priority, &row) ? row.name : NULL;
}

/* Asks every ten seconds, for so long. */
static void wait_for(const char *name, const char *pool, int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += 10000) {
        now_ms += 10000;
        ask(name, pool);
    }
}

static uint64_t ends(enum gang_room_end end)
{
    return gangs_room_ends(gangs)[end];
}

START_TEST(it_waits_first)
{
    group("ml", "a");
    ck_assert_int_eq(ask("a", "pool"), GANG_NO_ROOM);
    wait_for("a", "pool", GANG_ROOM_AFTER_MS - 10000);
    ck_assert(!gangs_keep_from(gangs, "other", 0));
    wait_for("a", "pool", 10000);
    ck_assert_str_eq(keeper("n1", 0), "a");
    ck_assert_uint_eq(lacks, 2);
    ck_assert_uint_eq(looks, 1);
}
END_TEST

START_TEST(from_whom_it_is_kept)
{
    struct gang_row row;

    group("ml", "a");
    ask("a", "pool");
    wait_for("a", "pool", GANG_ROOM_AFTER_MS);
    ck_assert_str_eq(keeper("n2", 10), "a");
    ck_assert_ptr_null(keeper("n2", 11)); /* it is more important */
    ck_assert_ptr_null(keeper("n3", 0));  /* another node */
    ck_assert(!gangs_keep_from(gangs, "a-1", 0));
    ck_assert(!gangs_kept_on(gangs, "n1", "a-1", 0, NULL));
    ck_assert(gangs_kept_on(gangs, "n1", NULL, 0, &row)); /* one that has not come yet */
    ck_assert_int_eq(row.room_until_ms, now_ms + ROOM_MS);
    ck_assert_uint_eq(row.room_nodes, 2);
}
END_TEST

START_TEST(without_the_option)
{
    gangs_free(gangs);
    gangs = gangs_new(&(struct gang_keeper){.drop = drop});
    group("ml", "a");
    ask("a", "pool");
    wait_for("a", "pool", 10 * ROOM_MS);
    ck_assert(!gangs_keep_from(gangs, "other", 0));
    ck_assert_uint_eq(looks, 0);
}
END_TEST

START_TEST(until_the_group_comes)
{
    group("ml", "a");
    ask("a", "pool");
    wait_for("a", "pool", GANG_ROOM_AFTER_MS);
    gangs_take_news(gangs);
    fits = true;
    wait_for("a", "pool", 10000);
    ck_assert_ptr_null(keeper("n1", 0));
    ck_assert(gangs_take_news(gangs)); /* who was refused has another look */
    ck_assert_uint_eq(ends(GANG_ROOM_CAME), 1);
}
END_TEST

/* Then the pool has as long without, the namespace three times as long, and the group longer each time. */
START_TEST(for_so_long_at_most)
{
    group("ml", "a");
    group("ml", "b");
    group("other", "c");
    ask("a", "pool");
    wait_for("a", "pool", GANG_ROOM_AFTER_MS);
    ask("b", "pool");
    ask("c", "pool");
    wait_for("a", "pool", ROOM_MS - 10000);
    ck_assert_str_eq(keeper("n1", 0), "a");
    now_ms += 10000;
    gangs_expire(gangs, now_ms);
    ck_assert_ptr_null(keeper("n1", 0));
    ck_assert_uint_eq(ends(GANG_ROOM_OVER), 1);

    wait_for("c", "pool", ROOM_MS - 10000);
    ck_assert_ptr_null(keeper("n1", 0)); /* the pool has had its part */
    wait_for("b", "pool", 10000);
    ck_assert_ptr_null(keeper("n1", 0)); /* and the namespace has had its part */
    ck_assert_int_eq(ask("c", "pool"), GANG_NO_ROOM);
    ck_assert_str_eq(keeper("n1", 0), "c");
    now_ms += GANG_LOOK_MS;
    fits = true;
    ck_assert_int_eq(ask("c", "pool"), GANG_YES);
    gangs_forget(gangs, "c-0");
    gangs_forget(gangs, "c-1");
    gangs_forget(gangs, "c-2");
    fits = false;
    wait_for("b", "pool", 2 * ROOM_MS - 10000);
    ck_assert_ptr_null(keeper("n1", 0));
    wait_for("b", "pool", 10000);
    ck_assert_str_eq(keeper("n1", 0), "b");
}
END_TEST

START_TEST(it_lapses_when_nobody_asks)
{
    group("ml", "a");
    ask("a", "pool");
    wait_for("a", "pool", GANG_ROOM_AFTER_MS);
    now_ms += GANG_ROOM_ASKED_MS - 1;
    gangs_expire(gangs, now_ms);
    ck_assert_str_eq(keeper("n1", 0), "a");
    now_ms++;
    ck_assert(gangs_expire(gangs, now_ms));
    ck_assert_ptr_null(keeper("n1", 0));
    ck_assert_uint_eq(ends(GANG_ROOM_LAPSED), 1);
}
END_TEST

START_TEST(who_has_waited_longest_comes_first)
{
    group("ml", "a");
    group("other", "b");
    ask("b", "pool");
    now_ms += GANG_LOOK_MS;
    ask("a", "pool");
    now_ms += GANG_ROOM_AFTER_MS;
    ask("a", "pool");
    ck_assert(!gangs_keep_from(gangs, "x", 0)); /* it is the other's turn, who has asked */
    ask("b", "pool");
    ck_assert_str_eq(keeper("n1", 0), "b");
    ask("a", "another pool");
    now_ms += GANG_LOOK_MS;
    ask("a", "another pool");
    ck_assert_uint_eq(looks, 2); /* a pool of its own */
}
END_TEST

START_TEST(where_there_is_none)
{
    there_is = false;
    group("ml", "a");
    ask("a", "pool");
    wait_for("a", "pool", GANG_ROOM_AFTER_MS);
    ck_assert(!gangs_keep_from(gangs, "other", 0));
    ck_assert_uint_eq(ends(GANG_ROOM_NONE), 1);
    wait_for("a", "pool", 50000);
    ck_assert_uint_eq(looks, 1);
    wait_for("a", "pool", 10000);
    ck_assert_uint_eq(looks, 2);
    wait_for("a", "pool", 110000);
    ck_assert_uint_eq(looks, 2); /* later each time */
    there_is = true;
    wait_for("a", "pool", 10000);
    ck_assert_str_eq(keeper("n1", 0), "a");
}
END_TEST

START_TEST(a_group_that_is_none_any_more)
{
    const struct pod_group_claim more = {.name = "a", .min = 3, .timeout_ms = 60000};

    group("ml", "a");
    group("other", "b");
    ask("a", "pool");
    wait_for("a", "pool", GANG_ROOM_AFTER_MS);
    gangs_join(gangs, "ml", &more, "a-1", GANG_PENDING, &(struct gang_source){0});
    ck_assert(!gangs_keep_from(gangs, "other", 0)); /* it needs more now */
    ck_assert_uint_eq(ends(GANG_ROOM_LEFT), 1);

    ask("b", "another");
    wait_for("b", "another", GANG_ROOM_AFTER_MS);
    ck_assert_str_eq(keeper("n1", 0), "b");
    gangs_forget(gangs, "b-0");
    ck_assert_str_eq(keeper("n1", 0), "b");
    gangs_forget(gangs, "b-1");
    ck_assert(!gangs_keep_from(gangs, "other", 0));
    ck_assert_uint_eq(ends(GANG_ROOM_LEFT), 2);
}
END_TEST

static char *finish(struct gangs_image *image)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    while (gangs_image_take(image))
        continue;
    json_writer_init(&writer, text);
    gangs_encode(&writer, image);
    return g_string_free(text, FALSE);
}

static char *encode(struct gangs *of)
{
    g_autoptr(gangs_image) image = gangs_image_new(&(struct gang_places){0});

    gangs_image_begin(image, of, 0);
    return finish(image);
}

/* Room and rests that end while an image is taken are in it. */
START_TEST(an_image_is_of_its_moment)
{
    g_autoptr(gangs_image) image = gangs_image_new(&(struct gang_places){0});

    group("ml", "a");
    ask("a", "pool");
    wait_for("a", "pool", GANG_ROOM_AFTER_MS);
    ck_assert_str_eq(keeper("n1", 0), "a");
    g_autofree char *before = encode(gangs);
    ck_assert(strstr(before, "\"roomNodes\":[\"n1\",\"n2\"]"));
    gangs_image_begin(image, gangs, 0);
    ck_assert(gangs_expire(gangs, 100 * ROOM_MS));
    ck_assert(!gangs_keep_from(gangs, "other", 0));
    g_autofree char *got = finish(image), *after = encode(gangs);
    ck_assert_str_eq(got, before);
    ck_assert_str_ne(after, before);
}
END_TEST

START_TEST(a_record_goes_on_from_it)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct gangs *const first = gangs;

    group("ml", "a");
    group("ml", "b");
    ask("a", "pool");
    ask("b", "pool");
    wait_for("a", "pool", GANG_ROOM_AFTER_MS + ROOM_MS); /* there are rests now, too */
    wait_for("b", "other pool", 7 * ROOM_MS / 2);
    ck_assert_str_eq(keeper("n1", 0), "b");
    g_autofree char *before = encode(first);
    ck_assert(strstr(before, "\"roomNodes\":[\"n1\",\"n2\"]"));

    gangs = gangs_new(&(struct gang_keeper){.drop = drop, .room_ms = ROOM_MS});
    group("ml", "a");
    group("ml", "b");
    const cJSON *object = json_parse(arena, before, strlen(before), NULL);
    ck_assert(gangs_decode(gangs, arena, object, 0, NULL, NULL, NULL));
    g_autofree char *after = encode(gangs);
    ck_assert_str_eq(before, after);
    ck_assert_str_eq(keeper("n1", 0), "b");
    gangs_free(first);
}
END_TEST

START_TEST(a_copy_knows_it)
{
    group("ml", "a");
    ask("a", "pool");
    wait_for("a", "pool", GANG_ROOM_AFTER_MS);
    struct gangs *copy = gangs_new(&(struct gang_keeper){.drop = drop});
    gangs_copy_rooms(copy, gangs);
    ck_assert(gangs_kept_on(copy, "n1", "other", 0, NULL));
    ck_assert(!gangs_kept_on(copy, "n1", "a-2", 0, NULL));
    gangs_forget(gangs, "a-0");
    gangs_forget(gangs, "a-1");
    ck_assert(gangs_kept_on(copy, "n1", "other", 0, NULL));
    gangs_free(copy);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gangs_room");
    TCase *tests = tcase_create("gangs_room");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, it_waits_first);
    tcase_add_test(tests, from_whom_it_is_kept);
    tcase_add_test(tests, without_the_option);
    tcase_add_test(tests, until_the_group_comes);
    tcase_add_test(tests, for_so_long_at_most);
    tcase_add_test(tests, it_lapses_when_nobody_asks);
    tcase_add_test(tests, who_has_waited_longest_comes_first);
    tcase_add_test(tests, where_there_is_none);
    tcase_add_test(tests, a_group_that_is_none_any_more);
    tcase_add_test(tests, an_image_is_of_its_moment);
    tcase_add_test(tests, a_record_goes_on_from_it);
    tcase_add_test(tests, a_copy_knows_it);

    return suite_run(suite);
}
