/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/controller_state.h"

#include "base/log.h"
#include "base/metrics.h"
#include "kueue/answer.h"

#define CHECKS_MAX 64 /* of ours */

void own_check_free(gpointer data)
{
    struct own_check *check = data;

    if (check->body)
        g_string_free(check->body, TRUE);
    g_free(check);
}

/* --- AdmissionChecks, told by their reflector ----------------------------------------------- */

static void begin_checks(void *data)
{
    struct kueue *kueue = data;

    worker_lock(&kueue->worker);
    kueue->checks_list++;
    worker_unlock(&kueue->worker);
}

static gboolean is_unlisted(gpointer name, gpointer check, gpointer data)
{
    const struct kueue *kueue = data;

    return ((const struct own_check *)check)->list != kueue->checks_list;
}

static void end_checks(void *data)
{
    struct kueue *kueue = data;

    worker_lock(&kueue->worker);
    g_hash_table_foreach_remove(kueue->checks, is_unlisted, kueue);
    worker_wake(&kueue->worker);
    worker_unlock(&kueue->worker);
}

/* Under the lock; NULL: there are too many. */
static struct own_check *take_check(struct kueue *kueue, const char *name)
{
    struct own_check *check = g_hash_table_lookup(kueue->checks, name);

    if (check)
        return check;
    if (g_hash_table_size(kueue->checks) == CHECKS_MAX) {
        log_event_limited(LOG_LEVEL_WARN, "AdmissionCheck left out", LOG_TEXT("name", name),
                          LOG_TEXT("why", "there are too many of this controller"));
        return NULL;
    }
    check = g_new0(struct own_check, 1);
    g_hash_table_insert(kueue->checks, g_strdup(name), check);
    kueue->relist = true;
    return check;
}

static bool apply_check(void *data, struct json_arena *arena, const cJSON *object, GError **error)
{
    struct kueue *kueue = data;
    struct check_view view;
    struct json_writer writer;

    if (!check_view_decode(arena, object, &view, error))
        return false;
    if (!view.ours)
        return true;
    if (view.unreadable) {
        metrics_count(COUNTER_OBJECTS_BAD, WATCHED_ADMISSION_CHECKS);
        log_event_limited(LOG_LEVEL_WARN, "AdmissionCheck cannot be read",
                          LOG_TEXT("name", view.name), LOG_TEXT("why", view.unreadable));
    }
    g_autoptr(GString) body = g_string_new(NULL);
    json_writer_init(&writer, body);
    const bool due = check_condition_encode(&writer, &view, kueue_now_s());
    worker_lock(&kueue->worker);
    struct own_check *check = take_check(kueue, view.name);
    if (check) {
        check->list = kueue->checks_list;
        if (check->body)
            g_string_free(check->body, TRUE);
        check->body = due ? g_steal_pointer(&body) : NULL;
        worker_wake(&kueue->worker);
    }
    worker_unlock(&kueue->worker);
    return true;
}

static bool forget_check(void *data, struct json_arena *arena, const cJSON *object, GError **error)
{
    struct kueue *kueue = data;
    struct check_view view;

    if (!check_view_decode(arena, object, &view, error))
        return false;
    worker_lock(&kueue->worker);
    g_hash_table_remove(kueue->checks, view.name);
    worker_unlock(&kueue->worker);
    return true;
}

/* Its reflector has logged it. */
static void hear_trouble(void *data, const char *why)
{
}

/* --- Workloads, told by their reflector ------------------------------------------------------- */

static void begin_workloads(void *data)
{
    struct kueue *kueue = data;

    worker_lock(&kueue->worker);
    waiting_begin(kueue->waiting);
    worker_unlock(&kueue->worker);
}

static void end_workloads(void *data)
{
    struct kueue *kueue = data;

    worker_lock(&kueue->worker);
    waiting_end(kueue->waiting);
    kueue->listed = true;
    worker_wake(&kueue->worker);
    worker_unlock(&kueue->worker);
}

enum wish kueue_wish(const struct kueue *kueue, const struct workload_view *workload,
                     int64_t *ret_ready_s)
{
    enum wish wish = WISH_NONE;

    *ret_ready_s = 0;
    for (size_t i = 0; i < workload->n_checks && workload_view_waits(workload); i++) {
        const struct workload_check *check = &workload->checks[i];
        if (!g_hash_table_contains(kueue->checks, check->name))
            continue;
        if (g_str_equal(check->state, "Pending"))
            return WISH_ANSWER;
        if (!g_str_equal(check->state, "Ready"))
            return WISH_NONE;
        *ret_ready_s = MAX(*ret_ready_s, kueue_time(check->since, kueue_now_s()));
        wish = WISH_MEMORY;
    }
    if (wish == WISH_MEMORY && workload->admitted)
        *ret_ready_s = MAX(*ret_ready_s, kueue_time(workload->admitted_at, kueue_now_s()));
    return wish == WISH_MEMORY && *ret_ready_s + PROMISE_S <= kueue_now_s() ? WISH_NONE : wish;
}

/* Under the lock. */
static void note_wish(struct kueue *kueue, const struct workload_view *workload)
{
    int64_t ready_s;
    const enum wish wish = kueue_wish(kueue, workload, &ready_s);
    const bool known = promises_has(kueue->promises, workload->uid);
    const struct waiting_workload entry = {
        .uid = (char *)workload->uid,
        .ns = (char *)workload->ns,
        .name = (char *)workload->name,
        .what = wish == WISH_ANSWER ? WAITING_ANSWER : WAITING_MEMORY,
        .since_s = kueue_time(workload->reserved_at, kueue_now_s()),
    };

    if (workload->admitted)
        promises_admit(kueue->promises, workload->uid,
                       kueue_time(workload->admitted_at, kueue_now_s()));
    if (!workload_view_waits(workload))
        promises_forget(kueue->promises, workload->uid);
    if (wish == WISH_NONE || (wish == WISH_MEMORY && known)) {
        waiting_remove(kueue->waiting, workload->uid);
        return;
    }
    if (!waiting_put(kueue->waiting, &entry)) {
        metrics_count(COUNTER_KUEUE, KUEUE_RESULT_LEFT_OUT);
        log_event_limited(LOG_LEVEL_WARN, "Workload left waiting",
                          LOG_TEXT("namespace", workload->ns),
                          LOG_TEXT("why", "too many wait for an answer"));
    }
    worker_wake(&kueue->worker);
}

static bool apply_workload(void *data, struct json_arena *arena, const cJSON *object,
                           GError **error)
{
    struct kueue *kueue = data;
    struct workload_view view;

    if (!workload_view_decode(arena, object, &view, error)) {
        metrics_count(COUNTER_KUEUE, KUEUE_RESULT_UNREADABLE);
        return false;
    }
    worker_lock(&kueue->worker);
    if (kueue->serving)
        note_wish(kueue, &view);
    worker_unlock(&kueue->worker);
    return true;
}

struct uid_object {
    const char *uid;
};
static const struct json_field uid_fields[] = {
    JSON_FIELD_STRING(struct uid_object, uid, "metadata.uid", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool forget_workload(void *data, struct json_arena *arena, const cJSON *object,
                            GError **error)
{
    struct kueue *kueue = data;
    struct uid_object read = {0};

    if (!json_decode(arena, object, uid_fields, &read, error))
        return false;
    worker_lock(&kueue->worker);
    waiting_remove(kueue->waiting, read.uid);
    promises_forget(kueue->promises, read.uid);
    worker_unlock(&kueue->worker);
    return true;
}

/* --- reflectors ----------------------------------------------------------------------------- */

struct reflector *kueue_watch_checks(struct kueue *kueue, GError **error)
{
    const struct reflected reflected = {
        .resource = "admissionchecks.kueue.x-k8s.io",
        .kind = "AdmissionCheck",
        .path = KUEUE_PATH "/admissionchecks",
        .cell = WATCHED_ADMISSION_CHECKS,
        .optional = true,
        .begin = begin_checks,
        .end = end_checks,
        .apply = apply_check,
        .forget = forget_check,
        .trouble = hear_trouble,
        .data = kueue,
    };

    return reflector_start_on(kueue->client, &reflected, kueue->options.reflector, error);
}

struct reflector *kueue_watch_workloads(struct kueue *kueue, GError **error)
{
    const struct reflected reflected = {
        .resource = "workloads.kueue.x-k8s.io",
        .kind = "Workload",
        .path = KUEUE_PATH "/workloads",
        .cell = WATCHED_WORKLOADS,
        .optional = true,
        .begin = begin_workloads,
        .end = end_workloads,
        .apply = apply_workload,
        .forget = forget_workload,
        .trouble = hear_trouble,
        .data = kueue,
    };

    return reflector_start_on(kueue->client, &reflected, kueue->options.reflector, error);
}
