/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a source of usage answers: it is refused with a message, or gives percentages of pods that have
 * the names of pods, and who is idle by it is written in a record as what is read again as the same.
 */
#include "target.h"

#include "gate/idle_pods/idle_pods_told.h"
#include "usage/usage_history.h"

#include <string.h>

#define NOW_MS INT64_C(1767225600000)

static void check_reading(const struct usage_reading *reading)
{
    GHashTableIter iter;
    gpointer pod, percent;

    FUZZ_CHECK(g_hash_table_size(reading->percents) <= USAGE_PODS_MAX);
    FUZZ_CHECK(g_hash_table_size(reading->percents) + reading->n_bad <= reading->n_series);
    g_hash_table_iter_init(&iter, reading->percents);
    while (g_hash_table_iter_next(&iter, &pod, &percent)) {
        const char *slash = strchr(pod, '/');
        const double value = *(const double *)percent;
        FUZZ_CHECK(slash && slash > (const char *)pod && slash[1] && !strchr(slash + 1, '/'));
        FUZZ_CHECK(value >= 0 && value <= 100);
    }
}

static char *written(const struct idleness *idleness)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    idle_pods_encode(&writer, idleness);
    return g_string_free(text, FALSE);
}

static void check_told(const struct idleness *idleness)
{
    g_autofree char *text = written(idleness);
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);

    FUZZ_CHECK(object);
    g_autoptr(idleness) again = idle_pods_decode(arena, object, NULL);
    FUZZ_CHECK(again);
    g_autofree char *same = written(again);
    FUZZ_CHECK(g_str_equal(text, same));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct usage_history *history =
        usage_history_new(&(struct usage_rule){.below = 5, .after_ms = 1, .gap_ms = 60000});
    struct usage_reading reading;
    g_autoptr(GError) error = NULL;

    if (usage_answer_read((const char *)data, size, NOW_MS, &reading, &error)) {
        check_reading(&reading);
        usage_history_take(history, &reading, NOW_MS);
        usage_reading_clear(&reading);
    } else {
        FUZZ_CHECK(error && *error->message);
    }
    g_autoptr(idleness) idleness = usage_history_tell(history);
    check_told(idleness);
    usage_history_free(history);
    return 0;
}
