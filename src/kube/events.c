/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/events.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/worker.h"
#include "kube/clock.h"
#include "wire/kubernetes.h"

#include <gpuledger/error.h>
#include <string.h>

#define CONTROLLER "gpuledger.io/extender"
#define CALL_MS 5000
#define KNOWN_MAX 4096       /* series that are remembered */
#define FORGET_MS 1800000    /* the API server keeps an Event for an hour */
#define DENIED_PAUSE_MS 10000 /* doubles */
#define DENIED_PAUSE_MAX_MS 600000
#define ALL_CAUSES_FACTOR 4

static const struct events_options defaults = {
    .repeat_ms = 20000,
    .repeat_max_ms = 600000,
    .burst = 10,
    .refill_ms = 6000,
    .queue_max = 256,
};

struct bucket {
    int64_t full_ms; /* when it will be full again, if nothing is taken */
};

/* All that is said about one pod for one cause. */
struct series {
    char *key;
    char *ns, *pod, *uid, *note;
    enum pod_event_cause cause;
    char *name; /* of the Event; NULL: it has not been written yet */
    int64_t count;
    int64_t seen_ms, seen_us; /* the last time: monotonic, and Unix time */
    int64_t next_ms;          /* not written before then */
    int64_t pause_ms;
    bool queued;
    GList *place; /* in `known` */
};

struct events {
    struct api_client *client;
    struct events_options options;
    char *instance;
    struct worker worker;

    /* Under the worker's lock: */
    GHashTable *series; /* key -> struct series * */
    GQueue known;       /* struct series *, the one heard of last at the end */
    GQueue queue;       /* char *: keys of what is to be written */
    struct bucket buckets[POD_EVENT_N];
    struct bucket all;
    int64_t denied_until_ms;
    int64_t denied_pause_ms; /* 0: the last one was not denied */
};

static void series_free(gpointer data)
{
    struct series *series = data;
    g_free(series->key);
    g_free(series->ns);
    g_free(series->pod);
    g_free(series->uid);
    g_free(series->note);
    g_free(series->name);
    g_free(series);
}

/* --- budgets -------------------------------------------------------------------------------- */

/* A bucket of `burst` drops that gets one more each `refill_ms`. */
static bool bucket_has(const struct bucket *bucket, unsigned burst, int64_t refill_ms,
                       int64_t now_ms)
{
    return bucket->full_ms - now_ms <= (int64_t)(burst - 1) * refill_ms;
}

static void bucket_take(struct bucket *bucket, int64_t refill_ms, int64_t now_ms)
{
    bucket->full_ms = MAX(bucket->full_ms, now_ms) + refill_ms;
}

/* From both or from none. */
static bool take_budget(struct events *events, enum pod_event_cause cause, int64_t now_ms)
{
    const struct events_options *options = &events->options;
    const int64_t all_refill_ms = MAX(options->refill_ms / ALL_CAUSES_FACTOR, 1);

    if (!bucket_has(&events->buckets[cause], options->burst, options->refill_ms, now_ms) ||
        !bucket_has(&events->all, options->burst * ALL_CAUSES_FACTOR, all_refill_ms, now_ms))
        return false;
    bucket_take(&events->buckets[cause], options->refill_ms, now_ms);
    bucket_take(&events->all, all_refill_ms, now_ms);
    return true;
}

/* --- noting --------------------------------------------------------------------------------- */

/* Under the lock, as all below. */
static void forget(struct events *events, struct series *series)
{
    g_queue_delete_link(&events->known, series->place);
    g_hash_table_remove(events->series, series->key);
}

/* Cut so that no character is. Free with g_free. */
static char *cut_note(const char *note)
{
    char *text = g_utf8_make_valid(note, -1);

    if (strlen(text) > EVENT_NOTE_MAX)
        *g_utf8_find_prev_char(text, text + EVENT_NOTE_MAX + 1) = '\0';
    return text;
}

static struct series *remember(struct events *events, const struct pod_event *event,
                               char *take_key)
{
    struct series *series = g_new0(struct series, 1);

    if (g_queue_get_length(&events->known) == KNOWN_MAX)
        forget(events, g_queue_peek_head(&events->known));
    series->key = take_key;
    series->ns = g_strdup(event->ns);
    series->pod = g_strdup(event->name);
    series->uid = g_strdup(event->uid);
    series->note = cut_note(event->note);
    series->cause = event->cause;
    series->pause_ms = events->options.repeat_ms;
    g_queue_push_tail(&events->known, series);
    series->place = g_queue_peek_tail_link(&events->known);
    g_hash_table_insert(events->series, series->key, series);
    return series;
}

static struct series *find_series(struct events *events, const struct pod_event *event,
                                  int64_t now_ms)
{
    g_autofree char *key = g_strdup_printf("%s/%d", event->uid, (int)event->cause);
    struct series *series = g_hash_table_lookup(events->series, key);

    if (series && now_ms - series->seen_ms > FORGET_MS) {
        forget(events, series);
        series = NULL;
    }
    if (!series)
        return remember(events, event, g_steal_pointer(&key));
    g_queue_unlink(&events->known, series->place);
    g_queue_push_tail_link(&events->known, series->place);
    return series;
}

static enum pod_event_result note(struct events *events, const struct pod_event *event,
                                  int64_t now_ms)
{
    if (now_ms < events->denied_until_ms)
        return POD_EVENT_RESULT_FAILED;
    struct series *series = find_series(events, event, now_ms);
    series->count++;
    series->seen_ms = now_ms;
    series->seen_us = g_get_real_time();
    if (series->queued || now_ms < series->next_ms)
        return POD_EVENT_RESULT_MERGED;

    enum pod_event_result result = POD_EVENT_RESULT_WRITTEN;
    if (g_queue_get_length(&events->queue) >= events->options.queue_max)
        result = POD_EVENT_RESULT_QUEUE_FULL;
    else if (!take_budget(events, series->cause, now_ms))
        result = POD_EVENT_RESULT_LIMITED;
    if (result != POD_EVENT_RESULT_WRITTEN) {
        if (!series->name)
            forget(events, series); /* the next one is the first */
        return result;
    }
    series->queued = true;
    g_queue_push_tail(&events->queue, g_strdup(series->key));
    worker_wake(&events->worker);
    return result;
}

void events_post(struct events *events, const struct pod_event *event)
{
    worker_lock(&events->worker);
    enum pod_event_result result = note(events, event, clock_ms());
    worker_unlock(&events->worker);
    if (result != POD_EVENT_RESULT_WRITTEN)
        metrics_count(COUNTER_POD_EVENTS, result);
}

/* --- writing -------------------------------------------------------------------------------- */

/* What is to be written, copied, so that the lock is free meanwhile. */
struct letter {
    char *key, *ns, *pod, *uid, *note, *name;
    enum pod_event_cause cause;
    int64_t count;
    int64_t seen_us;
};

static void letter_clear(struct letter *letter)
{
    g_free(letter->key);
    g_free(letter->ns);
    g_free(letter->pod);
    g_free(letter->uid);
    g_free(letter->note);
    g_free(letter->name);
}
typedef struct letter letter;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(letter, letter_clear)

static enum outcome send_letter(struct events *events, const struct letter *letter,
                                GError **error)
{
    const char *place = letter->ns ? letter->ns : EVENT_NODE_NAMESPACE;
    g_autofree char *ns = transport_escape(place, "namespace", error);
    g_autofree char *time = micro_time_format(letter->seen_us);
    g_autofree char *new_name = event_name(letter->pod, letter->seen_us);
    g_autoptr(GString) path = g_string_new(NULL);
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) reply = g_string_new(NULL);
    struct json_writer writer;

    if (!ns)
        return OUTCOME_REFUSED;
    json_writer_init(&writer, body);
    g_string_printf(path, "/apis/events.k8s.io/v1/namespaces/%s/events", ns);
    if (letter->name) {
        g_string_append_printf(path, "/%s", letter->name);
        event_series_encode(&writer, letter->count, time);
    } else {
        const struct pod_event_info *info = pod_event_info(letter->cause);
        event_encode(&writer, &(struct event_object){
                                  .ns = place,
                                  .node = !letter->ns,
                                  .kind = info->kind,
                                  .name = new_name,
                                  .pod = letter->pod,
                                  .pod_uid = letter->uid,
                                  .time = time,
                                  .reason = info->reason,
                                  .action = info->action,
                                  .controller = CONTROLLER,
                                  .instance = events->instance,
                                  .note = letter->note,
                                  .normal = info->normal,
                              });
    }
    const struct api_call call = {
        .method = letter->name ? "PATCH" : "POST",
        .path = path->str,
        .body = body,
        .deadline_ms = clock_ms() + CALL_MS,
        .once = !letter->name,
    };
    return api_client_call(events->client, &call, reply, error);
}

/* Under the lock. */
static void take_letter(struct events *events, struct letter *ret_letter)
{
    g_autofree char *key = g_queue_pop_head(&events->queue);
    const struct series *series = g_hash_table_lookup(events->series, key);

    if (!series)
        return; /* forgotten, for there are so many */
    *ret_letter = (struct letter){
        .key = g_steal_pointer(&key),
        .ns = g_strdup(series->ns),
        .pod = g_strdup(series->pod),
        .uid = g_strdup(series->uid),
        .note = g_strdup(series->note),
        .name = g_strdup(series->name),
        .cause = series->cause,
        .count = series->count,
        .seen_us = series->seen_us,
    };
}

/* Under the lock. Without the right to write there is no point in trying one after the other. */
static void pause_denied(struct events *events, const GError *failure)
{
    char *key;

    if (events->denied_pause_ms == 0)
        log_event(LOG_LEVEL_WARN, "cannot write Events", LOG_TEXT("error", failure->message),
                  LOG_TEXT("advice", failure->code == GPULEDGER_ERROR_CREDENTIALS
                                         ? "check the credentials of the kubeconfig "
                                           "or the service account"
                                         : "grant the verbs create and patch on events of the "
                                           "group events.k8s.io in the whole cluster, or start "
                                           "with --events=false"));
    events->denied_pause_ms =
        CLAMP(events->denied_pause_ms * 2, DENIED_PAUSE_MS, DENIED_PAUSE_MAX_MS);
    events->denied_until_ms = clock_ms() + events->denied_pause_ms;
    while ((key = g_queue_pop_head(&events->queue))) {
        struct series *series = g_hash_table_lookup(events->series, key);

        metrics_count(COUNTER_POD_EVENTS, POD_EVENT_RESULT_FAILED);
        if (series)
            forget(events, series);
        g_free(key);
    }
}

/* Whether we may write no Events at all, not just none into a namespace that goes away. Source:
 * apiserver@v0.36.3:pkg/admission/plugin/namespace/lifecycle/admission.go. */
static bool is_denied(const GError *failure)
{
    if (g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_CREDENTIALS))
        return true;
    return g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_DENIED) &&
           !strstr(failure->message, "unable to create new content in namespace ");
}

/* Under the lock. What could not be written is forgotten, and new when it is said again. */
static void conclude(struct events *events, const struct letter *letter, enum outcome outcome,
                     const GError *failure)
{
    struct series *series = g_hash_table_lookup(events->series, letter->key);
    const bool expired = letter->name && outcome == OUTCOME_NOT_FOUND;

    metrics_count(COUNTER_POD_EVENTS, outcome == OUTCOME_OK ? POD_EVENT_RESULT_WRITTEN
                                                            : POD_EVENT_RESULT_FAILED);
    if (outcome == OUTCOME_OK) {
        events->denied_pause_ms = 0;
    } else if (is_denied(failure)) {
        pause_denied(events, failure);
    } else if (!expired) {
        log_event_limited(LOG_LEVEL_WARN, "Event not written", LOG_TEXT("pod", letter->pod),
                          LOG_TEXT("why", failure->message));
    }
    if (!series)
        return;
    series->queued = false;
    if (outcome != OUTCOME_OK) {
        forget(events, series);
        return;
    }
    if (!series->name)
        series->name = event_name(letter->pod, letter->seen_us);
    series->next_ms = clock_ms() + series->pause_ms;
    series->pause_ms = MIN(series->pause_ms * 2, events->options.repeat_max_ms);
}

static void *run(void *data)
{
    struct events *events = data;

    worker_lock(&events->worker);
    while (worker_wait(&events->worker, g_queue_is_empty(&events->queue) ? WORKER_FOREVER : 0)) {
        g_auto(letter) letter = {NULL};
        g_autoptr(GError) failure = NULL;

        if (g_queue_is_empty(&events->queue))
            continue;
        take_letter(events, &letter);
        if (!letter.key)
            continue;
        worker_unlock(&events->worker);
        const enum outcome outcome = send_letter(events, &letter, &failure);
        worker_lock(&events->worker);
        conclude(events, &letter, outcome, failure);
    }
    worker_unlock(&events->worker);
    return NULL;
}

/* --- life ----------------------------------------------------------------------------------- */

static struct events_options with_defaults(const struct events_options *options)
{
    struct events_options given = options ? *options : (struct events_options){0};

    return (struct events_options){
        .repeat_ms = given.repeat_ms ? given.repeat_ms : defaults.repeat_ms,
        .repeat_max_ms = given.repeat_max_ms ? given.repeat_max_ms : defaults.repeat_max_ms,
        .burst = given.burst ? given.burst : defaults.burst,
        .refill_ms = given.refill_ms ? given.refill_ms : defaults.refill_ms,
        .queue_max = given.queue_max ? given.queue_max : defaults.queue_max,
    };
}

struct events *events_start(struct api_client *client, const struct events_options *options,
                            GError **error)
{
    struct events *events = g_new0(struct events, 1);

    events->client = client;
    events->options = with_defaults(options);
    events->instance = g_strndup(g_get_host_name(), EVENT_WORD_MAX);
    events->series = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, series_free);
    g_queue_init(&events->known);
    g_queue_init(&events->queue);
    worker_init(&events->worker);
    if (!worker_start(&events->worker, run, events, error))
        g_clear_pointer(&events, events_free);
    return events;
}

void events_free(struct events *events)
{
    if (!events)
        return;
    worker_release(&events->worker);
    g_queue_clear_full(&events->queue, g_free);
    g_queue_clear(&events->known);
    g_hash_table_unref(events->series);
    g_free(events->instance);
    g_free(events);
}
