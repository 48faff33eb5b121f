/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/waits/waits.h"

#include "core/allocation.h"
#include "core/ledger.h"
#include "suite.h"

#include <gpuledger/dialect.h>
#include <string.h>

static struct waits *waits;
static struct ledger *known;

static void set_up(void)
{
    waits = waits_new();
    known = ledger_new();
}

static void tear_down(void)
{
    waits_free(waits);
    ledger_free(known);
}

static struct allocation *new_allocation(const char *uid)
{
    struct allocation *allocation = allocation_new(uid, "ml", uid, 0);

    allocation->dialect = dialect_find("gpushare");
    allocation->state = ALLOCATION_CONFIRMED;
    allocation->waiting = true;
    return allocation;
}

static void come(int from, int to)
{
    for (int i = from; i < to; i++) {
        g_autofree char *uid = g_strdup_printf("u%03d", i);
        ck_assert_ptr_nonnull(ledger_put(known, "n1", new_allocation(uid)));
        waits_note(waits, ledger_get(known, uid), true);
    }
}

static void go(int from, int to)
{
    for (int i = from; i < to; i++) {
        g_autofree char *uid = g_strdup_printf("u%03d", i);
        waits_forget(waits, uid);
        ledger_drop(known, uid);
    }
}

static struct waits_image *begin_image(struct waits *of)
{
    struct waits_image *image = waits_image_new();

    waits_image_begin(image, of);
    return image;
}

static char *finish(struct waits_image *take_image)
{
    g_autoptr(waits_image) image = take_image;
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    while (waits_image_take(image))
        continue;
    json_writer_init(&writer, text);
    waits_encode(&writer, image);
    return g_string_free(text, FALSE);
}

/* 40 that nobody waits for any longer, and 40 that wait. */
static void let_wait(void)
{
    come(0, 40);
    waits_begin(waits, known, 1);
    ck_assert(waits_end(waits, known, 1 + WAIT_MAX_MS));
    come(40, 80);
    waits_begin(waits, known, 2 + WAIT_MAX_MS);
}

START_TEST(an_image_is_of_the_moment_in_which_it_began)
{
    let_wait();
    g_autofree char *at_once = finish(begin_image(waits));
    struct waits_image *image = begin_image(waits);
    ck_assert(waits_image_take(image));
    go(0, 10);
    go(40, 50);
    ck_assert(waits_image_take(image));
    ck_assert(waits_end(waits, known, 2 + 2 * WAIT_MAX_MS));
    come(80, 100);
    g_autofree char *meanwhile = finish(image), *later = finish(begin_image(waits));
    ck_assert_str_eq(meanwhile, at_once);
    ck_assert_ptr_nonnull(strstr(at_once, "{\"uid\":\"u000\",\"over\":true}"));
    ck_assert_ptr_nonnull(strstr(at_once, "{\"uid\":\"u040\",\"since\":60002,\"started\":true}"));
    ck_assert_ptr_null(strstr(later, "u000"));
    ck_assert_ptr_nonnull(strstr(later, "{\"uid\":\"u050\",\"over\":true}"));
    ck_assert_ptr_nonnull(strstr(later, "u099"));
}
END_TEST

/* The watch shows it again, as it does whenever anything of the pod changes. */
START_TEST(who_is_shown_again_waits_no_longer)
{
    come(0, 1);
    ck_assert(waits_begin(waits, known, 1));
    waits_note(waits, ledger_get(known, "u000"), true);
    waits_begin(waits, known, WAIT_MAX_MS / 2);
    ck_assert(!waits_end(waits, known, WAIT_MAX_MS));
    ck_assert(waits_end(waits, known, 1 + WAIT_MAX_MS));
    ck_assert(ledger_get(known, "u000")->waited_out);
}
END_TEST

/* As a record's next file begins: whom nobody waits for is not waited for again. */
START_TEST(who_has_waited_out_is_told)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct waits *other = waits_new();
    g_autoptr(ledger) its = ledger_new();

    let_wait();
    g_autofree char *text = finish(begin_image(waits));
    for (int i = 0; i < 80; i++) {
        g_autofree char *uid = g_strdup_printf("u%03d", i);
        ledger_put(its, "n1", new_allocation(uid));
        waits_note(other, ledger_get(its, uid), true);
    }
    ck_assert(waits_decode(other, its, arena, json_parse(arena, text, strlen(text), NULL), NULL));
    for (int i = 0; i < 80; i++) {
        g_autofree char *uid = g_strdup_printf("u%03d", i);
        const struct allocation *held = ledger_get(its, uid);
        ck_assert_int_eq(held->waited_out, i < 40);
        ck_assert_int_eq(held->waiting, i >= 40);
    }
    g_autofree char *again = finish(begin_image(other));
    ck_assert_str_eq(again, text);
    waits_free(other);
}
END_TEST

START_TEST(a_copy_is_made_a_few_at_a_time)
{
    struct part_cursor cursor = PART_BEGIN;
    struct waits *copy = waits_new();
    int turns = 1;

    let_wait();
    while (waits_copy(copy, waits, &cursor))
        turns++;
    ck_assert_int_gt(turns, 4);
    g_autofree char *text = finish(begin_image(waits)), *its = finish(begin_image(copy));
    ck_assert_str_eq(its, text);
    waits_free(copy);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waits");
    TCase *tc = tcase_create("waits");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, an_image_is_of_the_moment_in_which_it_began);
    tcase_add_test(tc, who_is_shown_again_waits_no_longer);
    tcase_add_test(tc, who_has_waited_out_is_told);
    tcase_add_test(tc, a_copy_is_made_a_few_at_a_time);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
