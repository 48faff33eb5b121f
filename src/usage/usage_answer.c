/* SPDX-License-Identifier: Apache-2.0 */
#include "usage/usage_answer.h"

#include "core/fail.h"
#include "json/json.h"

#include <math.h>
#include <string.h>

#define SHOWN_MAX 200 /* bytes of the server's own words in an error */
#define NAMESPACE_MAX 63
#define POD_MAX 253
#define UNKNOWN (-1.0) /* instead of a percentage */

struct answer {
    const char *status, *failure, *type;
    const cJSON *result, *warnings;
};

static const struct json_field answer_fields[] = {
    JSON_FIELD_STRING(struct answer, status, "status", JSON_REQUIRED),
    JSON_FIELD_STRING(struct answer, failure, "error", 0),
    JSON_FIELD_STRING(struct answer, type, "data.resultType", 0),
    JSON_FIELD_ARRAY(struct answer, result, "data.result", 0),
    JSON_FIELD_ARRAY(struct answer, warnings, "warnings", 0),
    JSON_FIELD_END,
};

/* --- one series ------------------------------------------------------------------------------ */

static bool is_name(const char *text, size_t max)
{
    const size_t length = text ? strlen(text) : 0;

    return length > 0 && length <= max &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == length;
}

static const char *label(const cJSON *metric, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metric, name));
}

/* "NAMESPACE/NAME", for g_free; NULL: the series names no pod. */
static char *pod_of(const cJSON *metric)
{
    static const char *const pairs[][2] = {{"exported_namespace", "exported_pod"},
                                           {"namespace", "pod"}};

    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        const char *ns = label(metric, pairs[i][0]), *name = label(metric, pairs[i][1]);
        if (is_name(ns, NAMESPACE_MAX) && is_name(name, POD_MAX))
            return g_strconcat(ns, "/", name, NULL);
    }
    return NULL;
}

/* The Unix time in milliseconds that a value is of; 0: it has none. */
static int64_t time_of(const cJSON *value)
{
    const cJSON *at = cJSON_GetArrayItem(value, 0);
    const double seconds = cJSON_IsNumber(at) ? at->valuedouble : 0;

    return seconds > 0 && seconds < 1e12 ? (int64_t)(seconds * 1000) : 0;
}

static double percent_of(const cJSON *value)
{
    const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(value, 1));
    char *end = NULL;
    const double percent = text && *text ? g_ascii_strtod(text, &end) : NAN;

    return end && !*end && percent >= 0 && percent <= 100 ? percent : UNKNOWN;
}

/* A pod that has several cards is as busy as the busiest; one value that cannot be read, and it is not
 * known. */
static void note(struct usage_reading *reading, char *take_pod, double percent)
{
    double *known = g_hash_table_lookup(reading->percents, take_pod);

    if (known || g_hash_table_size(reading->percents) >= USAGE_PODS_MAX) {
        if (known && *known != UNKNOWN)
            *known = percent == UNKNOWN ? UNKNOWN : MAX(*known, percent);
        reading->n_cut += !known;
        g_free(take_pod);
        return;
    }
    g_hash_table_insert(reading->percents, take_pod, g_memdup2(&percent, sizeof percent));
}

static gboolean is_unknown(gpointer key, gpointer value, gpointer data)
{
    return *(const double *)value == UNKNOWN;
}

/* --- all of them ----------------------------------------------------------------------------- */

static bool check(const struct answer *answer, GError **error)
{
    if (!g_str_equal(answer->status, "success"))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "it answers: %.*s", SHOWN_MAX,
                         answer->failure ? answer->failure : answer->status);
    if (g_strcmp0(answer->type, "vector") != 0 || !answer->result)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field 'data.resultType': the query must give an instant vector, not "
                         "'%.*s'",
                         SHOWN_MAX, answer->type ? answer->type : "");
    if (cJSON_GetArraySize(answer->warnings) > 0) {
        const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(answer->warnings, 0));
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "it warns that something may be missing: %.*s", SHOWN_MAX,
                         first ? first : "");
    }
    return true;
}

static bool read_series(const cJSON *series, int64_t now_ms, struct usage_reading *reading,
                        GError **error)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(series, "value");
    const int64_t at_ms = time_of(value);

    reading->n_series++;
    if (at_ms == 0)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field 'data.result.value': no time in it");
    if (ABS(now_ms - at_ms) > USAGE_CLOCK_MS)
        return fail_with(error, GPULEDGER_ERROR_RANGE,
                         "it tells of a time %" G_GINT64_FORMAT " s away from ours",
                         ABS(now_ms - at_ms) / 1000);
    char *pod = pod_of(cJSON_GetObjectItemCaseSensitive(series, "metric"));
    if (pod)
        note(reading, pod, percent_of(value));
    return true;
}

bool usage_answer_read(const char *text, size_t length, int64_t now_ms,
                       struct usage_reading *ret_reading, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct usage_reading reading = {0};
    struct answer answer = {0};
    const cJSON *json = json_parse(arena, text, length, error), *series;

    if (!json || !json_decode(arena, json, answer_fields, &answer, error) || !check(&answer, error))
        return false;
    reading.percents = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    cJSON_ArrayForEach (series, answer.result) {
        if (!read_series(series, now_ms, &reading, error)) {
            usage_reading_clear(&reading);
            return false;
        }
    }
    reading.n_bad = g_hash_table_foreach_remove(reading.percents, is_unknown, NULL);
    *ret_reading = reading;
    return true;
}

void usage_reading_clear(struct usage_reading *reading)
{
    g_clear_pointer(&reading->percents, g_hash_table_unref);
}
