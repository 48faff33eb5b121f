/* SPDX-License-Identifier: Apache-2.0 */
/* What a record leaves out, and what a replay makes of that. */
#include "next_file.h"
#include "part_record.h"

#include "record/recorder.h"
#include "store/images/learned.h"

#include <unistd.h>

static char *directory, *path;
static struct recorder *recorder; /* of the live store */

static void begin_recording(void)
{
    directory = g_dir_make_tmp("gpuledger-record-XXXXXX", NULL);
    path = g_build_filename(directory, "record", NULL);
    recorder = recorder_new(
        &(struct recorder_options){.path = path, .file_max = 1 << 30, .options = "{}"}, NULL);
    ck_assert_ptr_nonnull(recorder);
    recorder_observe(recorder, live);
}

/* What is in the file, for g_free. */
static char *end_recording(void)
{
    char *text;

    recorder_free(recorder);
    store_set_observer(live, NULL);
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    unlink(path);
    rmdir(directory);
    g_free(path);
    g_free(directory);
    return text;
}

static void begin_replay(void)
{
    next_file = replay_new(&(struct replay_options){.configure = configure});
}

/* Of what cannot be understood nobody knows what it gives away. */
START_TEST(a_call_that_is_not_understood_is_left_out)
{
    static const char body[] =
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"p\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM "\":\"4\"}}}]}},"
        "\"NodeNames\":[\"n1\"],\"Owner\":{\"metadata\":{\"token\":\"secret\"}}}";
    g_autofree char *left_out = g_strdup_printf("\"left-out\":%zu}\n", strlen(body));
    g_autofree char *understood = ask("4");
    const char *bodies[] = {body, understood};
    struct extender extender = {.store = live};

    begin_recording();
    list_all();
    for (size_t i = 0; i < G_N_ELEMENTS(bodies); i++) {
        g_autoptr(GString) reply = g_string_new(NULL);
        extender_filter(&extender, bodies[i], strlen(bodies[i]), reply);
        ck_assert_ptr_nonnull(strstr(reply->str, "\"NodeNames\":[\"n1\""));
    }
    g_autofree char *text = end_recording();
    ck_assert_ptr_nonnull(strstr(text, left_out));
    ck_assert_ptr_null(strstr(text, "secret"));
    begin_replay();
    play(text);
    const struct replay_summary *summary = replay_summary(next_file);
    ck_assert_uint_eq(summary->calls, 2);
    ck_assert_uint_eq(summary->unchecked, 1);
    ck_assert_uint_eq(summary->different, 0);
}
END_TEST

static void note_gone(uint64_t taken)
{
    recorder_take(recorder, record_new(&(struct observation){
                                .what = OBSERVED_POD_ENDED, .number = taken, .key = "nobody"}));
}

/* What was lost may have been pods that taught something. */
START_TEST(after_a_loss_it_is_told_what_was_learned)
{
    uint64_t after;

    begin_recording();
    for (uint64_t i = 1; i <= RECORDER_OPEN_MAX; i++)
        ck_assert_uint_eq(recorder_number(recorder), i);
    ck_assert_uint_eq(recorder_number(recorder), 0);
    for (uint64_t i = 1; i <= RECORDER_OPEN_MAX; i++)
        note_gone(i);
    while ((after = recorder_number(recorder)) == 0) /* until some are written */
        g_usleep(1000);
    note_gone(after);
    g_autofree char *text = end_recording();
    const char *lost = strstr(text, "\"kind\":\"lost\"");
    ck_assert_ptr_nonnull(lost);
    ck_assert_ptr_null(g_strstr_len(text, lost - text, "\"kind\":\"learned\""));
    ck_assert_ptr_nonnull(strstr(lost, "\"kind\":\"learned\""));
}
END_TEST

/* What was lost may have ended it. */
START_TEST(after_a_loss_no_booking_is_open)
{
    begin_replay();
    play("{\"kind\":\"header\",\"format\":5,\"before\":0,\"options\":{}}\n");
    list_all();
    add_running("r", "2", "n2");
    note(record_new(&(struct observation){
        .what = OBSERVED_INHERITED,
        .number = ++number,
        .key = "u",
        .booking = "{\"uid\":\"u\",\"namespace\":\"ml\",\"name\":\"u\",\"node\":\"n1\",\"dialect\":"
                   "\"gpushare\",\"amount\":6,\"time\":\"1767240616097659000\",\"shares\":[{"
                   "\"memory\":6,\"units\":true,\"card\":0}]}"}));
    ck_assert_int_eq(ledger_size(store_lock(replay_store(next_file))), 2);
    store_unlock(replay_store(next_file));
    play("{\"n\":99,\"kind\":\"lost\",\"count\":7}\n");
    struct ledger *ledger = store_lock(replay_store(next_file));
    ck_assert_ptr_nonnull(ledger_get(ledger, "r"));
    ck_assert_ptr_null(ledger_get(ledger, "u"));
    store_unlock(replay_store(next_file));
    ck_assert_uint_eq(replay_summary(next_file)->lost, 7);
}
END_TEST

/* Until all lists have ended and it was told what was learned, whatever a call was answered is right. */
START_TEST(after_a_loss_nothing_is_compared_for_a_while)
{
    static const char wrong[] =
        "{\"n\":%" G_GUINT64_FORMAT ",\"kind\":\"call\",\"verb\":\"filter\","
        "\"entry\":0,\"at\":\"1\",\"ms\":1,\"body\":%s,\"reply\":{}}\n";
    const struct replay_summary *summary;
    g_autofree char *asked = ask("4");

    begin_replay();
    play("{\"kind\":\"header\",\"format\":5,\"before\":0,\"options\":{}}\n");
    list_all();
    play("{\"n\":1,\"kind\":\"lost\",\"count\":1}\n");
    if (_i > 0)
        list_all();
    if (_i > 1)
        note(record_part(live, &part_learned, ++number));
    g_autofree char *call = g_strdup_printf(wrong, ++number, asked);
    play(call);
    summary = replay_summary(next_file);
    ck_assert_uint_eq(summary->calls, 1);
    ck_assert_uint_eq(summary->unchecked, _i < 2);
    ck_assert_uint_eq(summary->different, _i == 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("losses");
    TCase *tests = tcase_create("losses");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_call_that_is_not_understood_is_left_out);
    tcase_add_test(tests, after_a_loss_it_is_told_what_was_learned);
    tcase_add_test(tests, after_a_loss_no_booking_is_open);
    tcase_add_loop_test(tests, after_a_loss_nothing_is_compared_for_a_while, 0, 3);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
