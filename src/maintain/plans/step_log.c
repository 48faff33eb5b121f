/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/step_log.h"

#include "base/metrics.h"
#include "core/fail.h"
#include "wire/kubernetes.h"

G_STATIC_ASSERT((int)EXECUTOR_EVENTS_N == (int)PLAN_STEP_N &&
                (int)EXECUTOR_FAILED == (int)PLAN_STEP_FAILED);

struct step_log {
    GArray *steps; /* struct logged_step */
};

static void clear_step(void *data)
{
    struct logged_step *step = data;

    g_free(step->ns);
    g_free(step->name);
    g_free(step->uid);
    g_free(step->from);
    g_free(step->to);
    g_free(step->owner);
    g_free(step->why);
}

struct step_log *step_log_new(void)
{
    struct step_log *log = g_new0(struct step_log, 1);

    log->steps = g_array_new(FALSE, TRUE, sizeof(struct logged_step));
    g_array_set_clear_func(log->steps, clear_step);
    return log;
}

void step_log_free(struct step_log *log)
{
    if (!log)
        return;
    g_array_unref(log->steps);
    g_free(log);
}

guint step_log_n(const struct step_log *log)
{
    return log->steps->len;
}

const struct logged_step *step_log_get(const struct step_log *log, guint i)
{
    return &g_array_index(log->steps, struct logged_step, i);
}

static struct logged_step *last_open(const struct step_log *log)
{
    struct logged_step *last =
        log->steps->len > 0 ? &g_array_index(log->steps, struct logged_step, log->steps->len - 1)
                            : NULL;

    return last && last->event == EXECUTOR_STEP ? last : NULL;
}

const struct logged_step *step_log_open(const struct step_log *log)
{
    return last_open(log);
}

static void append(struct step_log *log, const struct logged_step *take_step)
{
    if (log->steps->len == STEP_LOG_MAX)
        g_array_remove_index(log->steps, 0);
    g_array_append_val(log->steps, *take_step);
}

void step_log_note(struct step_log *log, const struct executor_news *news, int64_t now_s)
{
    const struct relocation_step *step = news->step;

    if (news->event != EXECUTOR_STEP) {
        step_log_end(log, news->event, news->why);
        return;
    }
    append(log, &(struct logged_step){
                    .ns = g_strdup(step->ns),
                    .name = g_strdup(step->name),
                    .uid = g_strdup(step->uid),
                    .from = g_strdup(step->from),
                    .to = g_strdup(step->to),
                    .owner = g_strdup(step->owner),
                    .n_ready = news->n_ready,
                    .at_s = now_s,
                });
}

void step_log_end(struct step_log *log, enum executor_event event, const char *why)
{
    struct logged_step *open = last_open(log);

    if (!open)
        return;
    open->event = event;
    open->why = why ? g_strndup(why, STEP_WHY_MAX) : NULL;
}

void step_log_disown(struct step_log *log)
{
    for (guint i = 0; i < log->steps->len; i++)
        g_array_index(log->steps, struct logged_step, i).other = true;
}

void step_log_withdraw(struct step_log *log)
{
    const guint n = log->steps->len;

    if (n > 0 && (last_open(log) || step_log_get(log, n - 1)->event == EXECUTOR_GONE))
        g_array_set_size(log->steps, n - 1);
}

GArray *step_log_past(const struct step_log *log, int64_t since_s)
{
    GArray *past = g_array_new(FALSE, TRUE, sizeof(struct executor_past));

    for (guint i = 0; i < log->steps->len; i++) {
        const struct logged_step *step = step_log_get(log, i);
        const struct executor_past one = {step->owner, step->from, step->ns};
        if (!step->other && step->event == EXECUTOR_MOVED && step->at_s >= since_s)
            g_array_append_val(past, one);
    }
    return past;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void encode_step(struct json_writer *writer, const struct logged_step *step)
{
    g_autofree char *at = micro_time_format(step->at_s * G_USEC_PER_SEC);

    json_begin_object(writer);
    json_key_string(writer, "namespace", step->ns);
    json_key_string(writer, "name", step->name);
    json_key_string(writer, "uid", step->uid);
    json_key_string(writer, "from", step->from);
    json_key_string(writer, "to", step->to);
    if (step->owner)
        json_key_string(writer, "controller", step->owner);
    json_key_int(writer, "ready", step->n_ready);
    json_key_string(writer, "at", at);
    json_key_string(writer, "outcome",
                    step->event == EXECUTOR_MOVED && !step->to ? "ended"
                                                               : plan_step_names[step->event]);
    if (step->why)
        json_key_string(writer, "why", step->why);
    if (step->other)
        json_key_bool(writer, "other", true);
    json_end_object(writer);
}

void step_log_encode(struct json_writer *writer, const struct step_log *log)
{
    json_begin_array(writer);
    for (guint i = 0; i < log->steps->len; i++)
        encode_step(writer, &g_array_index(log->steps, struct logged_step, i));
    json_end_array(writer);
}

struct fields {
    const char *ns, *name, *uid, *from, *to, *owner, *at, *outcome, *why;
    int64_t ready;
    bool other;
};
static const struct json_field step_fields[] = {
    JSON_FIELD_STRING(struct fields, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, name, "name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, from, "from", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, to, "to", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, owner, "controller", 0),
    JSON_FIELD_STRING(struct fields, at, "at", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, outcome, "outcome", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, why, "why", 0),
    JSON_FIELD_INT64(struct fields, ready, "ready", 0),
    JSON_FIELD_BOOL(struct fields, other, "other", 0),
    JSON_FIELD_END,
};

static bool find_event(const char *name, enum executor_event *ret_event)
{
    for (int event = 0; event < EXECUTOR_EVENTS_N; event++) {
        if (g_strcmp0(plan_step_names[event], name) != 0)
            continue;
        *ret_event = (enum executor_event)event;
        return true;
    }
    return false;
}

static bool decode_step(struct step_log *log, struct json_arena *arena, const cJSON *item,
                        GError **error)
{
    g_autoptr(GDateTime) at = NULL;
    struct fields fields = {0};
    enum executor_event event;

    if (!json_decode(arena, item, step_fields, &fields, error))
        return false;
    at = g_date_time_new_from_iso8601(fields.at, NULL);
    if (!at || !find_event(fields.outcome, &event) || fields.ready < 0 || fields.ready > G_MAXINT32)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "a step of '%s' has a time, an outcome or a count that is none",
                         fields.name);
    append(log, &(struct logged_step){
                    .event = event,
                    .ns = g_strdup(fields.ns),
                    .name = g_strdup(fields.name),
                    .uid = g_strdup(fields.uid),
                    .from = g_strdup(fields.from),
                    .to = g_strdup(fields.to),
                    .owner = g_strdup(fields.owner),
                    .n_ready = (guint)fields.ready,
                    .at_s = g_date_time_to_unix(at),
                    .why = g_strdup(fields.why),
                    .other = fields.other,
                });
    return true;
}

bool step_log_decode(struct step_log *log, struct json_arena *arena, const cJSON *array,
                     GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, array) {
        if (!decode_step(log, arena, item, error))
            return false;
    }
    return true;
}
