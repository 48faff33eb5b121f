/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/moves.h"

#include "core/fail.h"
#include "kube/clock.h"
#include "plan/rate.h"

#include <string.h>

#define CALL_MS 5000
#define TRIES_MAX 8
#define KEY "moves"
#define AHEAD_MS INT64_C(900000) /* by how much clocks may differ */

/* One that was evicted. */
struct line {
    int64_t at_ms; /* Unix time */
    char *uid, *ns, *node;
    char *by; /* NULL: it counts for all */
};

static void line_clear(gpointer data)
{
    struct line *line = data;

    g_free(line->uid);
    g_free(line->ns);
    g_free(line->node);
    g_free(line->by);
}

/* What the ConfigMap says. */
struct sheet {
    char *version; /* NULL: there is none */
    GArray *lines; /* struct line, of the last hour, in order of time */
};

static void sheet_clear(struct sheet *sheet)
{
    g_free(sheet->version);
    g_array_unref(sheet->lines);
}
typedef struct sheet sheet;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(sheet, sheet_clear)

static struct sheet sheet_new(void)
{
    GArray *lines = g_array_new(FALSE, TRUE, sizeof(struct line));

    g_array_set_clear_func(lines, line_clear);
    return (struct sheet){NULL, lines};
}

static int64_t now_ms(void)
{
    return g_get_real_time() / 1000;
}

/* Free with g_free. NULL, with an error: that is no namespace. */
static char *path_of(const struct moves *moves, const char *name, GError **error)
{
    g_autofree char *ns = transport_escape(moves->ns, "namespace", error);

    return ns ? g_strconcat("/api/v1/namespaces/", ns, "/configmaps", name, NULL) : NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool is_word(const char *text)
{
    return text && *text && !strpbrk(text, " \n");
}

static bool is_capability(const char *text)
{
    return g_str_equal(text, MOVES_PLAN) || g_str_equal(text, MOVES_SWITCH);
}

static gint compare_lines(gconstpointer a, gconstpointer b)
{
    const int64_t one = ((const struct line *)a)->at_ms, other = ((const struct line *)b)->at_ms;

    return (one > other) - (one < other);
}

static bool read_line(struct sheet *sheet, const char *text, int64_t at_most_ms, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    const guint n = g_strv_length(words);
    const bool whole = (n == 4 || (n == 5 && is_capability(words[4]))) && is_word(words[1]) &&
                       is_word(words[2]) && is_word(words[3]);
    g_autoptr(GDateTime) at = whole ? g_date_time_new_from_iso8601(words[0], NULL) : NULL;

    if (!at)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%.80s' is not like 'TIME UID NAMESPACE NODE BY'", text);
    const int64_t at_ms = g_date_time_to_unix(at) * 1000;
    if (at_ms > at_most_ms)
        return fail_with(error, GPULEDGER_ERROR_RANGE, "'%.80s' is in the future", text);
    if (at_ms <= at_most_ms - AHEAD_MS - RATE_HOUR_MS)
        return true;
    g_array_append_val(sheet->lines, ((struct line){at_ms, g_strdup(words[1]), g_strdup(words[2]),
                                                    g_strdup(words[3]), g_strdup(words[4])}));
    return true;
}

struct fields {
    const char *version;
    struct string_pairs data;
};
static const struct json_field fields[] = {
    JSON_FIELD_STRING(struct fields, version, "metadata.resourceVersion", JSON_REQUIRED),
    JSON_FIELD_PAIRS(struct fields, data, "data", 0),
    JSON_FIELD_END,
};

static bool decode(struct sheet *sheet, const GString *reply, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);
    const int64_t at_most_ms = now_ms() + AHEAD_MS;
    struct fields read = {0};

    if (!object || !json_decode(arena, object, fields, &read, error))
        return false;
    const char *text = string_pairs_get(&read.data, KEY);
    g_auto(GStrv) texts = g_strsplit(text ? text : "", "\n", -1);
    for (char **each = texts; *each; each++) {
        if (**each && !read_line(sheet, *each, at_most_ms, error))
            return false;
    }
    g_array_sort(sheet->lines, compare_lines);
    sheet->version = g_strdup(read.version);
    return true;
}

/* False, with an error that says what to do. `outcome`: of the last call; OUTCOME_OK: what it brought is no such
 * ConfigMap. */
static bool fail_whole(const struct moves *moves, enum outcome outcome, const char *done,
                       GError *take_failure, GError **error)
{
    const bool denied = take_failure->code == GPULEDGER_ERROR_DENIED;
    const char *help =
        denied ? "; who counts the hour needs the rights get, create and patch of configmaps there"
        : outcome == OUTCOME_OK ? "; delete it, and the hour begins anew"
                                : "";

    g_set_error(error, GPULEDGER_ERROR,
                denied ? GPULEDGER_ERROR_DENIED : GPULEDGER_ERROR_UNAVAILABLE,
                "the moves of the last hour (ConfigMap %s/" MOVES_NAME ") cannot be %s: %s%s",
                moves->ns, done, take_failure->message, help);
    g_error_free(take_failure);
    return false;
}

/* There may be none yet. */
static bool read_sheet(const struct moves *moves, struct sheet *sheet, GError **error)
{
    GError *failure = NULL;
    g_autofree char *path = path_of(moves, "/" MOVES_NAME, &failure);
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS};
    const enum outcome outcome =
        path ? api_client_call(moves->client, &call, reply, &failure) : OUTCOME_REFUSED;

    if (outcome == OUTCOME_NOT_FOUND) {
        g_clear_error(&failure);
        return true;
    }
    return (outcome == OUTCOME_OK && decode(sheet, reply, &failure)) ||
           fail_whole(moves, outcome, "read", failure, error);
}

/* --- the hour --------------------------------------------------------------------------------- */

static bool counts(const struct line *line, const char *by)
{
    return !line->by || !by || g_str_equal(line->by, by);
}

/* Of what counts for `by`, beside the pod with that UID, or NULL. */
static int64_t wait_of(const struct sheet *sheet, const char *by, const char *uid,
                       uint32_t per_hour)
{
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(int64_t));

    for (guint i = 0; i < sheet->lines->len; i++) {
        const struct line *line = &g_array_index(sheet->lines, struct line, i);
        if (g_strcmp0(line->uid, uid) != 0 && counts(line, by))
            g_array_append_val(times, line->at_ms);
    }
    return rate_wait_ms(times, per_hour, RATE_HOUR_MS, now_ms());
}

bool moves_wait(const struct moves *moves, uint32_t per_hour, int64_t *ret_wait_ms, GError **error)
{
    g_auto(sheet) sheet = sheet_new();

    if (!read_sheet(moves, &sheet, error))
        return false;
    *ret_wait_ms = wait_of(&sheet, moves->by, NULL, per_hour);
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Its time is the next whole second, so that no hour ends too early. */
static void add_line(struct sheet *sheet, const struct moved_pod *pod, const char *by)
{
    const int64_t at_ms = (now_ms() + 999) / 1000 * 1000;
    guint n = 0;

    while (n < sheet->lines->len) {
        const struct line *line = &g_array_index(sheet->lines, struct line, n);
        if (g_str_equal(line->uid, pod->uid) || line->at_ms <= now_ms() - RATE_HOUR_MS)
            g_array_remove_index(sheet->lines, n);
        else
            n++;
    }
    g_array_append_val(sheet->lines, ((struct line){at_ms, g_strdup(pod->uid), g_strdup(pod->ns),
                                                    g_strdup(pod->node), g_strdup(by)}));
}

static char *format(const struct sheet *sheet)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < sheet->lines->len; i++) {
        const struct line *line = &g_array_index(sheet->lines, struct line, i);
        g_autoptr(GDateTime) at = g_date_time_new_from_unix_utc(line->at_ms / 1000);
        g_autofree char *time = g_date_time_format(at, "%Y-%m-%dT%H:%M:%SZ");
        g_string_append_printf(text, "%s %s %s %s%s%s\n", time, line->uid, line->ns, line->node,
                               line->by ? " " : "", line->by ? line->by : "");
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void encode(GString *body, const struct sheet *sheet)
{
    g_autofree char *text = format(sheet);
    struct json_writer writer;

    json_writer_init(&writer, body);
    json_begin_object(&writer);
    if (!sheet->version) {
        json_key_string(&writer, "apiVersion", "v1");
        json_key_string(&writer, "kind", "ConfigMap");
    }
    json_key_object(&writer, "metadata");
    json_key_string(&writer, "name", MOVES_NAME);
    if (sheet->version)
        json_key_string(&writer, "resourceVersion", sheet->version);
    json_end_object(&writer);
    json_key_object(&writer, "data");
    json_key_string(&writer, KEY, text);
    json_end_object(&writer);
    json_end_object(&writer);
}

static enum outcome write_sheet(const struct moves *moves, const struct sheet *sheet,
                                GError **error)
{
    g_autofree char *path = path_of(moves, sheet->version ? "/" MOVES_NAME : "", error);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);

    if (!path)
        return OUTCOME_REFUSED;
    encode(body, sheet);
    return api_client_call(moves->client,
                           &(struct api_call){.method = sheet->version ? "PATCH" : "POST",
                                              .path = path,
                                              .body = body,
                                              .deadline_ms = clock_ms() + CALL_MS,
                                              .once = true},
                           reply, error);
}

/* Somebody else has written, or deleted it, or nobody knows whether this was written: then it stands there. */
static bool is_to_be_read_again(const struct sheet *sheet, enum outcome outcome)
{
    return outcome == OUTCOME_CONFLICT || outcome == OUTCOME_UNKNOWN ||
           (outcome == OUTCOME_NOT_FOUND && sheet->version);
}

bool moves_book(const struct moves *moves, const struct moved_pod *pod, uint32_t per_hour,
                int64_t *ret_wait_ms, GError **error)
{
    if (!is_word(pod->uid) || !is_word(pod->ns) || !is_word(pod->node))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "a pod without UID, namespace or node cannot be counted");
    for (int i = 1;; i++) {
        g_auto(sheet) sheet = sheet_new();
        GError *failure = NULL;
        if (!read_sheet(moves, &sheet, error))
            return false;
        *ret_wait_ms = wait_of(&sheet, moves->by, pod->uid, per_hour);
        if (*ret_wait_ms > 0)
            return true;
        add_line(&sheet, pod, moves->by);
        const enum outcome outcome = write_sheet(moves, &sheet, &failure);
        if (outcome == OUTCOME_OK)
            return true;
        if (i < TRIES_MAX && is_to_be_read_again(&sheet, outcome)) {
            g_clear_error(&failure);
            continue;
        }
        return fail_whole(moves, outcome, "written", failure, error);
    }
}
