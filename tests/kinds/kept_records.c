/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that an older version has made, records/NAME.jsonl: what is played of them is recorded again as
 * the same lines, and a file that goes on from there begins as records/NAME.next says.
 *
 * RECORDS names their folder. With MORE, a kind, only a story.jsonl that has it as well is there.
 *
 * story.jsonl is what story.py does; random.jsonl is one file of a random run (tests/faults/random_runs.c).
 */
#include "base/log.h"
#include "record/record_state.h"
#include "record/replay.h"
#include "../unit/suite.h"
#include "gate/node_backoff/node_backoff.h"

#include <string.h>

static const char *const names[] = {"story", "random"};

struct again {
    struct observer observer;
    struct replay *replay;
    struct record_state *state;
    GString *lines;   /* as they are recorded again, from the kind on */
    GHashTable *seen; /* their kinds */
    uint64_t number;
};

static const struct store_options kept = {.patience_ms = 60000,
                                          .n_places = 8,
                                          .model_label = "gpu-model",
                                          .resource_quotas = true,
                                          .elastic_quotas = true,
                                          .gangs = true,
                                          NODE_BACKOFF_SETTINGS(3, 60000)};

static bool configure(void *data, const cJSON *options, struct store_options *ret_options,
                      struct extender *ret_extender, GError **error)
{
    *ret_options = kept;
    return true;
}

static const char *from_kind(const char *line)
{
    const char *kind = strstr(line, "\"kind\":");

    ck_assert_ptr_nonnull(kind);
    return kind;
}

static uint64_t give_number(struct observer *observer)
{
    return ++((struct again *)observer)->number;
}

static void tell(struct observer *observer, const struct observation *observation)
{
    struct again *again = (struct again *)observer;
    struct record *record = record_new(observation);

    if (!record)
        return;
    if (!record->body) { /* of a call, the recorder writes the rest */
        record_state_note(again->state, record);
        g_string_append_printf(again->lines, "%s\n", from_kind(record->text->str));
    }
    record_free(record);
}

static void play(struct again *again, const char *line, size_t length)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(replay_line(again->replay, line, length, &error), "%.*s: %s", (int)length, line,
                  error ? error->message : "");
    if (!store_observer(replay_store(again->replay)))
        store_set_observer(replay_store(again->replay), &again->observer);
}

/* Of long texts check shows nothing. */
static void expect_equal(const char *got, const char *expected)
{
    size_t at = 0;

    while (got[at] && got[at] == expected[at])
        at++;
    ck_assert_msg(got[at] == expected[at], "from byte %zu on:\n%.300s\ninstead of\n%.300s", at,
                  got + at, expected + at);
}

/* What is told of a line that is played is that line. */
static void expect_same(struct again *again, const char *line, size_t length)
{
    g_autofree char *expected = g_strndup(line, length);
    const char *kind = from_kind(expected) + strlen("\"kind\":\"");

    if (again->lines->len == 0)
        return;
    g_string_truncate(again->lines, again->lines->len - 1);
    expect_equal(again->lines->str, from_kind(expected));
    g_hash_table_add(again->seen, g_strndup(kind, strcspn(kind, "\"")));
    g_string_truncate(again->lines, 0);
}

static char *read_file(const char *name, const char *ending)
{
    g_autofree char *path = g_strdup_printf("%s/%s.%s", g_getenv("RECORDS"), name, ending);
    char *text;

    ck_assert_msg(g_file_get_contents(path, &text, NULL, NULL), "%s", path);
    return text;
}

static void again_begin(struct again *again)
{
    *again = (struct again){.observer = {give_number, tell},
                            .replay = replay_new(&(struct replay_options){.configure = configure}),
                            .state = record_state_new(),
                            .lines = g_string_new(NULL),
                            .seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
}

static void again_end(struct again *again)
{
    replay_free(again->replay);
    record_state_free(again->state);
    g_string_free(again->lines, TRUE);
    g_hash_table_unref(again->seen);
}

/* All of it, or up to the first line that has that. */
static void play_all(struct again *again, const char *text, const char *stop)
{
    const char *last = stop ? strstr(text, stop) : NULL;

    for (const char *at = text, *end; (end = strchr(at, '\n')) && !(last && end > last);
         at = end + 1) {
        play(again, at, (size_t)(end - at));
        expect_same(again, at, (size_t)(end - at));
    }
}

START_TEST(records_are_made_again)
{
    static const char *const kinds[][20] = {
        {"node", "node-gone", "pod", "pod-vanished", "configmap", "configmap-gone", "budget",
         "budget-gone", "resourcequota", "resourcequota-gone", "elasticquota", "elasticquota-gone",
         "podgroup", "podgroup-gone", "native-podgroup", "native-podgroup-gone", "list-begin",
         "list-end"},
        {"node", "node-gone", "pod", "pod-gone", "pod-vanished", "configmap", "budget",
         "budget-gone", "list-begin", "list-end", "policy", "rejected", "resume"},
    };
    g_autofree char *text = read_file(names[_i], "jsonl");
    struct again again;

    again_begin(&again);
    play_all(&again, text, NULL);
    const char *more = g_getenv("MORE");
    ck_assert(!more || g_hash_table_contains(again.seen, more));
    for (size_t i = 0; kinds[_i][i]; i++)
        ck_assert_msg(g_hash_table_contains(again.seen, kinds[_i][i]), "%s: none", kinds[_i][i]);
    again_end(&again);
}
END_TEST

static void expect_next(const char *next, const char *name)
{
    g_autofree char *part = g_strdup_printf("{\"kind\":\"%s\",", g_getenv("MORE"));
    g_autofree char *expected = g_getenv("MORE") ? NULL : read_file(name, "next");

    if (expected)
        expect_equal(next, expected);
    else
        ck_assert_ptr_nonnull(strstr(next, part));
}

/* Where the next file would begin, here while there is an object of each kind; it is played as well. */
START_TEST(the_next_file_begins_as_before)
{
    static const char *const stops[] = {"-gone\"", NULL};
    g_autofree char *text = read_file(names[_i], "jsonl");
    g_autoptr(GString) next = g_string_new("{\"kind\":\"header\",\"format\":5,\"before\":1,"
                                           "\"options\":{}}\n");
    struct again again;

    again_begin(&again);
    play_all(&again, text, stops[_i]);
    record_state_write(again.state, next);
    again_end(&again);
    expect_next(next->str, names[_i]);
    again_begin(&again);
    play_all(&again, next->str, NULL);
    again_end(&again);
}
END_TEST

int main(void)
{
    const int n = g_getenv("MORE") ? 1 : G_N_ELEMENTS(names);
    Suite *suite = suite_create("kept records");
    TCase *tests = tcase_create("records");

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    tcase_add_loop_test(tests, records_are_made_again, 0, n);
    tcase_add_loop_test(tests, the_next_file_begins_as_before, 0, n);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
