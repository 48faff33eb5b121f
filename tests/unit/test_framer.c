/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/framer.h"

#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

#define ROUNDS 400

static GPtrArray *objects; /* char *, as they were handed out */

static void setup(void)
{
    objects = g_ptr_array_new_with_free_func(g_free);
}

static void teardown(void)
{
    g_ptr_array_unref(objects);
}

static bool collect(const char *object, size_t length, void *data, GError **error)
{
    g_ptr_array_add(objects, g_strndup(object, length));
    return true;
}

/* Feeds a copy of exactly these bytes, so that reading past them is seen. */
static bool feed_copy(struct framer *framer, const char *bytes, size_t length, GError **error)
{
    g_autofree char *copy = g_memdup2(bytes, length);
    return framer_feed(framer, copy, length, error);
}

static void expect_objects(const char *const *expected)
{
    guint n = 0;

    while (expected[n]) {
        ck_assert_uint_lt(n, objects->len);
        ck_assert_str_eq(objects->pdata[n], expected[n]);
        n++;
    }
    ck_assert_uint_eq(objects->len, n);
}

/* --- well-formed streams, cut anywhere ------------------------------------------------------ */

struct stream {
    enum framer_mode mode;
    const char *text;
    const char *envelope; /* of a list */
    const char *expected[6];
    const char *skip;
};

static const struct stream streams[] = {
    {FRAMER_SEQUENCE, "", NULL, {NULL}},
    {FRAMER_SEQUENCE, " \r\n\t ", NULL, {NULL}},
    {FRAMER_SEQUENCE, "{}", NULL, {"{}"}},
    {FRAMER_SEQUENCE, "{\"a\":1}\n{\"b\":[{}]}\n", NULL, {"{\"a\":1}", "{\"b\":[{}]}"}},
    {FRAMER_SEQUENCE, "{}{}{\"x\":{\"y\":{}}}", NULL, {"{}", "{}", "{\"x\":{\"y\":{}}}"}},
    {FRAMER_SEQUENCE,
     "{\"a\":\"}{\\\"}\\\\\"}\n\n{\"\\\\\":\"[\"}",
     NULL,
     {"{\"a\":\"}{\\\"}\\\\\"}", "{\"\\\\\":\"[\"}"}},
    {FRAMER_SEQUENCE, "{\n  \"a\" : 1\n}\n", NULL, {"{\n  \"a\" : 1\n}"}},
    {FRAMER_SEQUENCE,
     "{\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\"}",
     NULL,
     {"{\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\"}"}},
    {FRAMER_LIST, "{}", "{}", {NULL}},
    {FRAMER_LIST, "{\"items\":[]}", "{\"items\":[]}", {NULL}},
    {FRAMER_LIST, "{\"items\":null}\n", "{\"items\":null}", {NULL}},
    {FRAMER_LIST,
     "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"a\":1},"
     "{\"b\":{\"items\":[1,{}]}}]}\n",
     "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}",
     {"{\"a\":1}", "{\"b\":{\"items\":[1,{}]}}"}},
    /* The list before its metadata, white space everywhere. */
    {FRAMER_LIST,
     "{ \"items\" : [ {\"a\":\"]\"} ,\n {} ] , \"metadata\": {\"continue\":\"x\"} }",
     "{ \"items\" : [] , \"metadata\": {\"continue\":\"x\"} }",
     {"{\"a\":\"]\"}", "{}"}},
    /* Only the key counts, and only at the top. */
    {FRAMER_LIST,
     "{\"a\":\"items\",\"b\":[{}],\"metadata\":{\"items\":[{\"c\":1}]},\"items2\":[{}],"
     "\"item\":[{}],\"items\":[{\"d\":1}]}",
     "{\"a\":\"items\",\"b\":[{}],\"metadata\":{\"items\":[{\"c\":1}]},\"items2\":[{}],"
     "\"item\":[{}],\"items\":[]}",
     {"{\"d\":1}"}},
    {FRAMER_LIST, "{\"items\":{\"a\":[{}]},\"b\":[]}", "{\"items\":{\"a\":[{}]},\"b\":[]}", {NULL}},
    {FRAMER_LIST, "{\"items\":\"items\",\"b\":[{}]}", "{\"items\":\"items\",\"b\":[{}]}", {NULL}},
    /* An array to be skipped, empty and full, and what only looks like its beginning: the key of an
     * object, a longer key, a string that quotes it, one whose key the framer need not know. */
    {FRAMER_LIST,
     "{\"skip\":[1],\"items\":[{\"skip\":[{\"a\":[1,\"]\\\"[\"]},[]],\"b\":{\"c\":1,\"skip\":[]}},"
     "{\"skip\":{\"d\":[2]}},{\"noskip\":[3],\"x\\\"skip\":[4],\"e\":\",\\\"skip\\\":[5]\"}]}",
     "{\"skip\":[1],\"items\":[]}",
     {"{\"skip\":[],\"b\":{\"c\":1,\"skip\":[]}}", "{\"skip\":{\"d\":[2]}}",
      "{\"noskip\":[3],\"x\\\"skip\":[4],\"e\":\",\\\"skip\\\":[5]\"}"},
     "skip"},
    {FRAMER_SEQUENCE,
     "{\"skip\":[[],{\"a\":\"]\"}]}\n{\"skip\" :[1],\"b\":[{\"skip\":[2]},3]}{}",
     NULL,
     {"{\"skip\":[]}", "{\"skip\" :[1],\"b\":[{\"skip\":[]},3]}", "{}"},
     "skip"},
};

static void expect_envelope(const struct framer *framer, const char *expected)
{
    size_t length;
    const char *text = framer_envelope(framer, &length);
    g_autofree char *envelope = g_strndup(text, length);

    ck_assert_str_eq(envelope, expected);
}

START_TEST(frames_alike_wherever_the_bytes_are_cut)
{
    const struct stream *stream = &streams[_i];
    const size_t length = strlen(stream->text);
    g_autoptr(framer) framer = framer_new(stream->mode, 0, collect, NULL);
    g_autoptr(GRand) random = g_rand_new_with_seed((guint32)_i);

    if (stream->skip)
        framer_skip(framer, stream->skip);
    for (unsigned round = 0; round < ROUNDS; round++) {
        /* All at once, byte by byte, then at random. */
        for (size_t at = 0; at < length;) {
            g_autoptr(GError) error = NULL;
            const size_t left = length - at;
            const size_t n = round == 0   ? left
                             : round == 1 ? 1
                                          : (size_t)g_rand_int_range(random, 1, (gint32)left + 1);

            ck_assert_msg(feed_copy(framer, stream->text + at, n, &error), "%s: %s", stream->text,
                          error ? error->message : "no error");
            at += n;
        }
        ck_assert(stream->mode == FRAMER_SEQUENCE || length == 0 || framer_is_complete(framer));
        ck_assert(stream->mode == FRAMER_LIST || framer_is_complete(framer));
        expect_objects(stream->expected);
        if (stream->envelope)
            expect_envelope(framer, stream->envelope);
        framer_clear(framer);
        g_ptr_array_set_size(objects, 0);
    }
}
END_TEST

START_TEST(knows_when_something_is_half_read)
{
    const struct stream *stream = &streams[_i];
    const size_t length = strlen(stream->text);
    g_autoptr(framer) framer = framer_new(stream->mode, 0, collect, NULL);

    for (size_t i = 0; i < length; i++) {
        const guint before = objects->len;

        ck_assert(feed_copy(framer, stream->text + i, 1, NULL));
        /* An object comes with its last byte, not later. */
        if (objects->len > before)
            ck_assert_int_eq(stream->text[i], '}');
        if (stream->mode == FRAMER_SEQUENCE && framer_is_complete(framer))
            ck_assert(strchr("} \r\n\t", stream->text[i]));
    }
}
END_TEST

/* --- what is no such stream ----------------------------------------------------------------- */

struct refused {
    enum framer_mode mode;
    const char *text;
    const char *message;
};

static const struct refused refused[] = {
    {FRAMER_SEQUENCE, "[]", "unexpected byte 0x5b where an object should begin"},
    {FRAMER_SEQUENCE, "{} x", "unexpected byte 0x78"},
    {FRAMER_SEQUENCE, "{}}", "unexpected byte 0x7d"},
    {FRAMER_SEQUENCE, "\"a\"", "unexpected byte 0x22"},
    {FRAMER_SEQUENCE, "{},{}", "unexpected byte 0x2c"},
    {FRAMER_SEQUENCE, "<html>", "unexpected byte 0x3c"},
    {FRAMER_SEQUENCE, "null", "unexpected byte 0x6e"},
    {FRAMER_SEQUENCE, "{]", "unexpected byte 0x5d where an object should end"},
    {FRAMER_LIST, "{\"items\":[{]}]}", "unexpected byte 0x5d where an object should end"},
    {FRAMER_LIST, "{\"a\":1]", "unexpected byte 0x5d where an object should end"},
    {FRAMER_LIST, "[{}]", "unexpected byte 0x5b where an object should begin"},
    {FRAMER_LIST, "{}{}", "after the end of the list"},
    {FRAMER_LIST, "{\"items\":[]} 1", "after the end of the list"},
    {FRAMER_LIST, "{\"items\":[1]}", "where an item of the list should begin"},
    {FRAMER_LIST, "{\"items\":[null]}", "where an item of the list should begin"},
    {FRAMER_LIST, "{\"items\":[\"a\"]}", "unexpected byte 0x22"},
    {FRAMER_LIST, "{\"items\":[[]]}", "where an item of the list should begin"},
    {FRAMER_LIST, "{\"items\":[}", "where the list should end"},
};

START_TEST(refuses_what_is_no_such_stream)
{
    const struct refused *row = &refused[_i];
    g_autoptr(framer) framer = framer_new(row->mode, 0, collect, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) again = NULL;

    ck_assert(!feed_copy(framer, row->text, strlen(row->text), &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID));
    ck_assert_msg(strstr(error->message, row->message), "%s", error->message);
    ck_assert(!framer_is_complete(framer));

    /* Unusable until cleared, then as new. */
    ck_assert(!feed_copy(framer, "{}", 2, &again));
    ck_assert(again);
    framer_clear(framer);
    ck_assert(feed_copy(framer, "{}", 2, NULL));
    ck_assert(framer_is_complete(framer));
}
END_TEST

/* --- limits --------------------------------------------------------------------------------- */

START_TEST(caps_an_object)
{
    g_autoptr(framer) framer = framer_new(FRAMER_SEQUENCE, 16, collect, NULL);
    g_autoptr(GError) error = NULL;

    ck_assert(feed_copy(framer, "{\"a\":\"12345678\"}", 16, NULL));
    ck_assert_uint_eq(objects->len, 1);
    ck_assert(!feed_copy(framer, "{\"a\":\"123456789\"}", 17, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
    ck_assert_uint_eq(objects->len, 1);
}
END_TEST

START_TEST(caps_the_envelope_but_not_the_list)
{
    g_autoptr(framer) framer = framer_new(FRAMER_LIST, 64, collect, NULL);
    g_autoptr(GError) error = NULL;

    ck_assert(feed_copy(framer, "{\"items\":[{}", 12, NULL));
    for (unsigned i = 0; i < 1000; i++)
        ck_assert(feed_copy(framer, ",{\"a\":1}", 8, NULL));
    ck_assert_uint_eq(objects->len, 1001);
    ck_assert(feed_copy(framer, "],\"b\":\"", 7, NULL));
    bool ok = true;
    for (unsigned i = 0; i < 64 && ok; i++)
        ok = feed_copy(framer, "x", 1, &error);
    ck_assert(!ok);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
}
END_TEST

static bool stop_at_second(const char *object, size_t length, void *data, GError **error)
{
    unsigned *n = data;

    if (++*n < 2)
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT, "enough");
    return false;
}

START_TEST(ends_when_the_receiver_says_so)
{
    unsigned n = 0;
    g_autoptr(framer) framer = framer_new(FRAMER_SEQUENCE, 0, stop_at_second, &n);
    g_autoptr(GError) error = NULL;

    ck_assert(!feed_copy(framer, "{}{}{}", 6, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT));
    ck_assert_uint_eq(n, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("framer");
    TCase *tcase = tcase_create("streams");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, frames_alike_wherever_the_bytes_are_cut, 0, G_N_ELEMENTS(streams));
    tcase_add_loop_test(tcase, knows_when_something_is_half_read, 0, G_N_ELEMENTS(streams));
    tcase_add_loop_test(tcase, refuses_what_is_no_such_stream, 0, G_N_ELEMENTS(refused));
    tcase_add_test(tcase, caps_an_object);
    tcase_add_test(tcase, caps_the_envelope_but_not_the_list);
    tcase_add_test(tcase, ends_when_the_receiver_says_so);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
