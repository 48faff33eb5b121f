/* SPDX-License-Identifier: Apache-2.0 */
/* Shares as JSON: what bookings, seals, records and the state of plans say of cards. */
#include "suite.h"

#include "wire/share.h"

#include <gpuledger/dialect.h>
#include <string.h>

/* Numbers that differ, so that no two fields can change places. */
static const struct share shares[] = {
    {.memory = {7, AMOUNT_BYTES}, .card = 2, .container = 1, .core = 3},
    {.memory = {8, AMOUNT_NODE_UNITS}, .card = 5, .container = CONTAINER_POD, .exclusive = true},
    {.memory = {9, AMOUNT_THOUSANDTHS}, .card = CARD_UNKNOWN, .init = true},
    {.memory = {1, AMOUNT_BYTES}, .sidecar = true, .basis = SHARE_BY_NUMBER},
    {.memory = {1, AMOUNT_BYTES}, .place = {.layout = 4, .start = 5, .size = 6}},
    {.memory = {1, AMOUNT_BYTES}, .place = {.layout = 255, .start = 254, .size = 253}},
    {.device = "nvidia.com/gpu", .card = CARD_UNKNOWN, .devices = 3, .replicas = 4},
    {.device = "nvidia.com/gpu", .card = CARD_UNKNOWN, .devices = 1, .sharing = SHARING_MPS},
    {.memory = {1, AMOUNT_BYTES}, .key = UINT64_C(0xfedcba9876543210)},
};

static void expect_same(const struct share *read, const struct share *written)
{
    ck_assert_int_eq(read->memory.value, written->memory.value);
    ck_assert_int_eq(read->memory.kind, written->memory.kind);
    ck_assert_int_eq(read->card, written->card);
    ck_assert_int_eq(read->container, written->container);
    ck_assert_int_eq(read->core, written->core);
    ck_assert_int_eq(read->exclusive, written->exclusive);
    ck_assert_int_eq(read->init, written->init);
    ck_assert_int_eq(read->sidecar, written->sidecar);
    ck_assert_int_eq(read->basis, written->basis);
    ck_assert_int_eq(read->place.layout, written->place.layout);
    ck_assert_int_eq(read->place.start, written->place.start);
    ck_assert_int_eq(read->place.size, written->place.size);
    ck_assert_int_eq(read->devices, written->devices);
    ck_assert_int_eq(read->replicas, written->replicas);
    ck_assert_int_eq(read->sharing, written->sharing);
    ck_assert_pstr_eq(read->device, written->device);
    ck_assert_ptr_eq(read->dialect, written->dialect);
    ck_assert_uint_eq(read->key, written->key);
}

static void expect_read_back(const struct share *written)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;
    struct share read;

    json_writer_init(&writer, text);
    share_encode(&writer, written);
    ck_assert_msg(share_decode(arena, json_parse(arena, text->str, text->len, NULL), &read), "%s",
                  text->str);
    expect_same(&read, written);
}

START_TEST(a_share_is_read_as_it_was_written)
{
    expect_read_back(&shares[_i]);
}
END_TEST

START_TEST(every_dialect_is_found_by_its_name)
{
    for (size_t i = 0; dialects[i]; i++)
        expect_read_back(&(struct share){.memory = {1, AMOUNT_BYTES}, .dialect = dialects[i]});
}
END_TEST

static const char *const bad[] = {
    "[]",
    "{\"card\":0}",
    "{\"memory\":1}",
    "{\"memory\":-1,\"card\":0}",
    "{\"memory\":1,\"card\":-2}",
    "{\"memory\":1,\"card\":2147483648}",
    "{\"memory\":1,\"card\":0,\"core\":-1}",
    "{\"memory\":1,\"card\":0,\"container\":-2}",
    "{\"memory\":1,\"card\":0,\"devices\":-1}",
    "{\"memory\":1,\"card\":0,\"replicas\":-1}",
    "{\"memory\":1,\"card\":0,\"sharing\":-1}",
    "{\"memory\":1,\"card\":0,\"sharing\":4}",
    "{\"memory\":1,\"card\":0,\"basis\":-1}",
    "{\"memory\":1,\"card\":0,\"basis\":99}",
    "{\"memory\":1,\"card\":0,\"size\":1,\"layout\":256}",
    "{\"memory\":1,\"card\":0,\"size\":1,\"start\":-1}",
    "{\"memory\":1,\"card\":0,\"size\":256}",
    "{\"memory\":1,\"card\":0,\"gpu\":\"0\"}",
    "{\"memory\":1,\"card\":0,\"gpu\":\"x\"}",
    "{\"memory\":1,\"card\":0,\"dialect\":\"none-such\"}",
};

START_TEST(a_share_out_of_range_is_refused)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct share read;

    ck_assert(!share_decode(arena, json_parse(arena, bad[_i], strlen(bad[_i]), NULL), &read));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("share");
    TCase *tests = tcase_create("share");

    tcase_add_loop_test(tests, a_share_is_read_as_it_was_written, 0, G_N_ELEMENTS(shares));
    tcase_add_test(tests, every_dialect_is_found_by_its_name);
    tcase_add_loop_test(tests, a_share_out_of_range_is_refused, 0, G_N_ELEMENTS(bad));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
