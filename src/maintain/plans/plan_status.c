/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/plan_status.h"

#include "core/fail.h"
#include "maintain/findings.h"

#include <string.h>

const char *const plan_phases[PLAN_PHASES] = {
    [PLAN_PHASE_RUNNING] = "running", [PLAN_PHASE_WAITING] = "waiting", [PLAN_PHASE_DONE] = "done",
    [PLAN_PHASE_STOPPED] = "stopped", [PLAN_PHASE_REFUSED] = "refused",
};

struct plan_status *plan_status_new(const char *digest)
{
    struct plan_status *status = g_new0(struct plan_status, 1);

    status->digest = g_strdup(digest);
    status->log = step_log_new();
    status->fragmented_most = -1;
    return status;
}

void plan_status_free(struct plan_status *status)
{
    if (!status)
        return;
    g_free(status->digest);
    g_free(status->goal);
    g_free(status->waiter);
    g_free(status->text);
    g_strfreev(status->known);
    step_log_free(status->log);
    g_free(status);
}

void plan_status_tell(struct plan_status *status, const char *text)
{
    g_autofree char *valid = text ? g_utf8_make_valid(text, -1) : NULL;

    g_free(status->text);
    status->text =
        valid ? g_utf8_substring(valid, 0, MIN(g_utf8_strlen(valid, -1), PLAN_STATUS_TEXT_MAX))
              : NULL;
}

/* --- JSON ------------------------------------------------------------------------------------- */

char *plan_status_format(const struct plan_status *status)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "phase", plan_phases[status->phase]);
    json_key_string(&writer, "order", status->digest);
    if (status->goal)
        json_key_string(&writer, "goal", status->goal);
    if (status->waiter)
        json_key_string(&writer, "for", status->waiter);
    if (status->text)
        json_key_string(&writer, "text", status->text);
    json_key_int(&writer, "moved", status->moved);
    json_key_int(&writer, "left", status->left);
    if (status->fragmented_most >= 0)
        json_key_int(&writer, "fragmentedMost", status->fragmented_most);
    if (status->known) {
        json_key_array(&writer, "known");
        for (char **known = status->known; *known; known++)
            json_string(&writer, *known);
        json_end_array(&writer);
    }
    json_key(&writer, "steps");
    step_log_encode(&writer, status->log);
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

struct fields {
    const char *phase, *digest, *goal, *waiter, *text;
    int64_t moved, left, most;
    const cJSON *known, *steps;
};
static const struct json_field status_fields[] = {
    JSON_FIELD_STRING(struct fields, phase, "phase", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, digest, "order", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, goal, "goal", 0),
    JSON_FIELD_STRING(struct fields, waiter, "for", 0),
    JSON_FIELD_STRING(struct fields, text, "text", 0),
    JSON_FIELD_INT64(struct fields, moved, "moved", 0),
    JSON_FIELD_INT64(struct fields, left, "left", 0),
    JSON_FIELD_INT64(struct fields, most, "fragmentedMost", 0),
    JSON_FIELD_ARRAY(struct fields, known, "known", 0),
    JSON_FIELD_ARRAY(struct fields, steps, "steps", 0),
    JSON_FIELD_END,
};

static bool find_phase(const char *name, enum plan_phase *ret_phase)
{
    for (int phase = 0; phase < PLAN_PHASES; phase++) {
        if (!g_str_equal(plan_phases[phase], name))
            continue;
        *ret_phase = (enum plan_phase)phase;
        return true;
    }
    return false;
}

/* NULL: one of them is no text, or there are too many. */
static char **read_known(const cJSON *array)
{
    g_auto(GStrv) known = NULL;
    const int n = cJSON_GetArraySize(array);
    const cJSON *item;
    int i = 0;

    if (n > FINDINGS_KNOWN_MAX)
        return NULL;
    known = g_new0(char *, (gsize)n + 1);
    cJSON_ArrayForEach (item, array) {
        if (!cJSON_IsString(item))
            return NULL;
        known[i++] = g_strdup(item->valuestring);
    }
    return g_steal_pointer(&known);
}

static bool read_fields(struct plan_status *status, struct json_arena *arena,
                        const struct fields *fields, GError **error)
{
    if (!find_phase(fields->phase, &status->phase) || fields->moved < 0 ||
        fields->moved > G_MAXINT32 || fields->left < 0 || fields->left > G_MAXINT32 ||
        fields->most < -1)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "a phase or a number that is none");
    status->goal = g_strdup(fields->goal);
    status->waiter = g_strdup(fields->waiter);
    plan_status_tell(status, fields->text);
    status->moved = (guint)fields->moved;
    status->left = (guint)fields->left;
    status->fragmented_most = fields->most;
    if (fields->known) {
        status->known = read_known(fields->known);
        if (!status->known)
            return fail_with(error, GPULEDGER_ERROR_INVALID, "findings that are none");
    }
    return step_log_decode(status->log, arena, fields->steps, error);
}

struct plan_status *plan_status_parse(const char *text, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct fields fields = {.most = -1};
    const size_t length = strnlen(text, PLAN_STATUS_MAX + 1);

    if (length > PLAN_STATUS_MAX) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT, "more than %zu bytes",
                    PLAN_STATUS_MAX);
        return NULL;
    }
    const cJSON *object = json_parse(arena, text, length, error);
    if (!object || !json_decode(arena, object, status_fields, &fields, error))
        return NULL;
    g_autoptr(plan_status) status = plan_status_new(fields.digest);
    return read_fields(status, arena, &fields, error) ? g_steal_pointer(&status) : NULL;
}
