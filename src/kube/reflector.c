/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread is in one of two states: with a version it watches from there, without one it lists.
 * Everything that goes wrong is an edge between them: what leaves the version usable (cuts, 429,
 * 5xx, a server that is away) leads to the next watch, what does not (410 and other refusals of
 * the request itself, and what goes wrong at one version twice in a row) drops the version. Whether a pause comes before is a matter of its own: a
 * watch that lived is followed at once, so that a server which ends them all after a second costs
 * one request a second, and one which ends them at once costs what the backoff allows.
 *
 * Objects go to the store while a reply arrives. A list that fails midway has then changed the
 * store already; that does no harm, because each object is true on its own, and only the end of a
 * list takes away what it did not name.
 */
#include "kube/reflector.h"

#include "core/fail.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kube/api_list.h"
#include "kube/clock.h"
#include "kube/framer.h"
#include "wire/kubernetes.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define WATCH_TIMEOUT_MIN_S 300
#define WATCH_TIMEOUT_MAX_S 600
/* While somebody waits for a list: */
#define WANTED_PAUSE_MAX_MS 500
#define WANTED_IDLE_MAX_MS 5000
#define FORBIDDEN 403
#define NOT_FOUND 404
#define GONE 410

static const struct reflector_options defaults = {
    .backoff_ms = 800,
    .backoff_max_ms = 30000,
    .backoff_reset_ms = 120000,
    .idle_ms = 100000,
    .short_watch_ms = 1000,
    .unwatched_ms = 60000,
    .page = API_LIST_PAGE,
};

struct reflector {
    struct reflected told; /* its paths are below */
    struct reflector_options options;
    struct api_stream *stream;
    pthread_t thread;
    char *path;       /* without query */
    char *other_path; /* where it may be instead, or NULL */
    GRand *random;
    atomic_uint_fast64_t wanted; /* lists that were asked for */
    atomic_uint_fast64_t listed; /* of those, the last one that a complete list has answered */

    struct json_arena *arena; /* of the object at hand */
    struct framer *events;
    char *version;      /* to watch from; NULL: a list is due */
    bool unpaged;       /* the next list asks for all at once: the last one expired between pages */
    bool ended;         /* the store has been told of the end of a list */
    bool elsewhere;     /* the other path is being tried */
    bool denied;        /* an optional feed that we may not read, and have said so */
    bool watch_denied;  /* so it is listed again and again */
    bool unwatched;     /* no watch has lived for long */
    int64_t lived_ms;   /* when the last one did, or the first list ended; 0: lists fail */
    char *failed_version; /* from which the last watch went wrong, or NULL */
    uint64_t n_objects; /* of the list under way */
    int64_t backoff_ms;
    int64_t failed_ms; /* when the last failure was; 0: never */

    /* Of the watch under way: */
    bool heard;        /* anything, be it a bookmark */
    bool told_objects; /* one that is no ERROR */
    uint64_t n_events;
    long refusal; /* the code of its ERROR event; 0: none */
    int64_t retry_after_ms;
};

/* What is to be done after a list or a watch. */
enum step {
    STEP_ON,    /* the next one, at once */
    STEP_PAUSE, /* the next one, after a pause */
};

/* --- objects -------------------------------------------------------------------------------- */

/* What a list item and the object of an event have in common; events add the rest. */
struct event {
    const char *type;
    const cJSON *object;
    const char *version;
};

static const struct json_field event_fields[] = {
    JSON_FIELD_STRING(struct event, type, "type", JSON_REQUIRED),
    JSON_FIELD_OBJECT(struct event, object, "object", JSON_REQUIRED),
    JSON_FIELD_STRING(struct event, version, "object.metadata.resourceVersion", 0),
    JSON_FIELD_END,
};

struct name {
    const char *ns;
    const char *name;
};

static const struct json_field name_fields[] = {
    JSON_FIELD_STRING(struct name, name, "metadata.name", 0),
    JSON_FIELD_STRING(struct name, ns, "metadata.namespace", 0),
    JSON_FIELD_END,
};

/* One object that cannot be read must not keep the others from being seen. */
static void skip_object(struct reflector *reflector, const cJSON *object, const GError *error)
{
    struct name name = {0};

    metrics_count(COUNTER_OBJECTS_BAD, reflector->told.cell);
    if (object)
        json_decode(reflector->arena, object, name_fields, &name, NULL);
    log_event_limited(LOG_LEVEL_WARN, "object cannot be read",
                      LOG_TEXT("kind", reflector->told.kind), LOG_TEXT("namespace", name.ns),
                      LOG_TEXT("name", name.name), LOG_TEXT("error", error->message));
}

static bool on_item(const char *text, size_t length, void *data, GError **error)
{
    struct reflector *reflector = data;
    g_autoptr(GError) failure = NULL;

    json_arena_clear(reflector->arena);
    const cJSON *object = json_parse(reflector->arena, text, length, &failure);
    if (!object && reflector->told.spare)
        reflector->told.spare(reflector->told.data);
    if (!object || !reflector->told.apply(reflector->told.data, reflector->arena, object, &failure))
        skip_object(reflector, object, failure);
    reflector->n_objects++;
    return true;
}

static void set_version(struct reflector *reflector, const char *version)
{
    if (!version || !*version)
        return;
    g_free(reflector->version);
    reflector->version = g_strdup(version);
}

/* NULL: all is well. For those who ask whether the program is. */
static void set_trouble(const struct reflector *reflector, const GError *error)
{
    reflector->told.trouble(reflector->told.data, error ? error->message : NULL);
}

/* The watch says that it cannot go on. */
static bool on_refusal(struct reflector *reflector, const cJSON *object, GError **error)
{
    struct status_view status = {0};

    status_view_decode(reflector->arena, object, &status, NULL);
    reflector->refusal = status.code ? (long)status.code : 500;
    reflector->retry_after_ms = CLAMP(status.retry_after_s, 0, 600) * 1000;
    return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "%s",
                     status.message ? status.message : "the watch reported an error");
}

/* A watch lives. */
static void note_life(struct reflector *reflector)
{
    reflector->lived_ms = clock_ms();
    reflector->told_objects = true;
    if (reflector->watch_denied || reflector->unwatched)
        set_trouble(reflector, NULL);
    if (reflector->unwatched)
        reflector->told.unwatched(reflector->told.data, NULL);
    reflector->watch_denied = reflector->unwatched = false;
}

static bool on_event(const char *text, size_t length, void *data, GError **error)
{
    struct reflector *reflector = data;
    g_autoptr(GError) failure = NULL;
    struct event event = {0};
    bool ok = true;

    json_arena_clear(reflector->arena);
    const cJSON *tree = json_parse(reflector->arena, text, length, &failure);
    if (!tree || !json_decode(reflector->arena, tree, event_fields, &event, &failure)) {
        skip_object(reflector, event.object, failure);
        return true;
    }
    if (g_str_equal(event.type, "ERROR"))
        return on_refusal(reflector, event.object, error);
    note_life(reflector);
    set_version(reflector, event.version);
    if (g_str_equal(event.type, "BOOKMARK"))
        return true;

    reflector->n_events++;
    metrics_count(COUNTER_EVENTS, reflector->told.cell);
    if (g_str_equal(event.type, "DELETED"))
        ok = reflector->told.forget(reflector->told.data, reflector->arena, event.object, &failure);
    else if (g_str_equal(event.type, "ADDED") || g_str_equal(event.type, "MODIFIED"))
        ok = reflector->told.apply(reflector->told.data, reflector->arena, event.object, &failure);
    if (!ok)
        skip_object(reflector, event.object, failure);
    return true;
}

/* --- failures ------------------------------------------------------------------------------- */

static void log_failure(const struct reflector *reflector, const char *verb, long status,
                        const GError *error)
{
    if (status == 401 || status == FORBIDDEN) {
        metrics_count(COUNTER_FEED_DENIED, reflector->told.cell);
        g_autofree char *place = reflector->told.ns
                                     ? g_strdup_printf(" in namespace %s", reflector->told.ns)
                                     : g_strdup(" in the whole cluster");
        g_autofree char *advice = g_strdup_printf("grant the verbs get, list and watch on %s%s",
                                                  reflector->told.resource, place);
        g_autofree char *message = g_strdup_printf("cannot %s %s", verb, reflector->told.resource);

        log_event(LOG_LEVEL_ERROR, message, LOG_TEXT("error", error->message),
                  LOG_TEXT("advice", status == FORBIDDEN
                                         ? advice
                                         : "check the credentials of the kubeconfig or "
                                           "the service account"));
        return;
    }
    log_event(LOG_LEVEL_WARN, "API server", LOG_TEXT("verb", verb),
              LOG_TEXT("resource", reflector->told.resource), LOG_TEXT("error", error->message));
}

/* --- list ----------------------------------------------------------------------------------- */

/* Goes on without an optional feed, and says so once. It is tried again, for roles change. */
static void do_without(struct reflector *reflector, long status, const GError *error)
{
    if (!reflector->denied)
        log_failure(reflector, "list", status, error);
    reflector->denied = true;
    if (!reflector->ended)
        reflector->told.end(reflector->told.data);
    reflector->ended = true;
}

/* The server has no such path; it may have the other one. */
static void look_elsewhere(struct reflector *reflector)
{
    char *path = reflector->path;

    reflector->path = reflector->other_path;
    reflector->other_path = path;
    reflector->elsewhere = true;
}

static bool list_is_wanted(const struct reflector *reflector)
{
    return atomic_load(&reflector->wanted) != atomic_load(&reflector->listed);
}

static enum step list(struct reflector *reflector)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *version = NULL;
    const int64_t began_ms = clock_ms();
    const uint64_t wanted = atomic_load(&reflector->wanted);
    const struct api_list_call call = {
        .path = reflector->path,
        .page = reflector->unpaged ? 0 : reflector->options.page,
        .idle_ms = list_is_wanted(reflector) ? MIN(reflector->options.idle_ms, WANTED_IDLE_MAX_MS)
                                             : reflector->options.idle_ms,
        .emit = on_item,
        .data = reflector,
    };

    reflector->n_objects = 0;
    reflector->retry_after_ms = 0;
    reflector->told.begin(reflector->told.data);
    const struct stream_result result = api_list_run(reflector->stream, &call, &version, &error);
    if (result.end == STREAM_STOPPED)
        return STEP_ON;
    if (result.end != STREAM_COMPLETE) {
        if (result.status == NOT_FOUND && reflector->other_path && !reflector->elsewhere) {
            look_elsewhere(reflector);
            return STEP_ON;
        }
        reflector->elsewhere = false;
        reflector->lived_ms = 0;
        set_trouble(reflector, error);
        if ((result.status == FORBIDDEN || result.status == NOT_FOUND) && reflector->told.optional)
            do_without(reflector, result.status, error);
        else
            log_failure(reflector, "list", result.status, error);
        reflector->retry_after_ms = result.retry_after_ms;
        /* The continue token outlived its snapshot: one reply cannot. */
        const bool at_once = result.status == GONE && !reflector->unpaged;
        reflector->unpaged = result.status == GONE;
        return at_once ? STEP_ON : STEP_PAUSE;
    }
    reflector->told.end(reflector->told.data);
    reflector->ended = true;
    reflector->denied = reflector->elsewhere = false;
    if (reflector->lived_ms == 0)
        reflector->lived_ms = clock_ms();
    if (!reflector->watch_denied && !reflector->unwatched)
        set_trouble(reflector, NULL);
    atomic_store(&reflector->listed, wanted);

    metrics_count(COUNTER_LISTS, reflector->told.cell);
    log_event(LOG_LEVEL_INFO, "listed", LOG_TEXT("resource", reflector->told.resource),
              LOG_NUMBER("objects", reflector->n_objects), LOG_NUMBER("ms", clock_ms() - began_ms));
    set_version(reflector, version);
    reflector->unpaged = false;
    /* A list leaves large free blocks behind that nothing else will need. */
    malloc_trim(0);
    return STEP_ON;
}

/* --- watch ---------------------------------------------------------------------------------- */

/* The version is of no use any more, or something is wrong that a list may heal, or stand in for: who
 * may not watch lists after every pause. */
static bool wants_list(long status)
{
    return status >= 400 && status < 500 && status != 401 && status != 429;
}

/* The version may be one that the API server has yet to reach, because it was set back to a backup: it
 * takes such a watch, and sends nothing of what is older, not even bookmarks, which come each minute
 * otherwise (kubernetes 1.36 S/apiserver/pkg/storage/cacher/cache_watcher.go). */
static bool is_ahead(const struct reflector *reflector, const struct stream_result *result)
{
    return result->silent && result->status == 200 && !reflector->heard;
}

/* The API server has taken the watch, and it has not ended at once. */
static void on_open(void *data)
{
    note_life(data);
}

static bool feed_events(const char *bytes, size_t length, void *data, GError **error)
{
    struct reflector *reflector = data;

    reflector->heard = true;
    return framer_feed(reflector->events, bytes, length, error);
}

/* Whether the version may be why watches go wrong: what the API server cannot decode after it, it cannot
 * decode each time. So two in a row that go wrong at one version lead to a list. client-go lists after the
 * first (client-go@v0.36.3:tools/cache/reflector.go). */
static bool is_stuck(struct reflector *reflector, const struct stream_result *result, long status)
{
    const bool may_be = result->end == STREAM_ABORTED ? status != 429 : status == 500;
    const bool stuck = may_be && g_strcmp0(reflector->failed_version, reflector->version) == 0;

    g_free(reflector->failed_version);
    reflector->failed_version = may_be && !stuck ? g_strdup(reflector->version) : NULL;
    return stuck;
}

/* Called at the end of each watch. One that may not be has lists in its place. */
static void note_end(struct reflector *reflector, bool lived, const GError *error)
{
    const char *why = error ? error->message : "watches end at once";

    if (lived)
        note_life(reflector);
    if (lived || reflector->watch_denied || reflector->told_objects ||
        clock_ms() - reflector->lived_ms < reflector->options.unwatched_ms)
        return;
    reflector->unwatched = reflector->told.unwatched != NULL;
    reflector->told.trouble(reflector->told.data, why);
    if (reflector->unwatched)
        reflector->told.unwatched(reflector->told.data, why);
}

static enum step watch(struct reflector *reflector)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) url = g_string_new(reflector->path);
    const int64_t began_ms = clock_ms();

    api_url_add_number(url, "watch", 1);
    api_url_add(url, "resourceVersion", reflector->version);
    api_url_add(url, "allowWatchBookmarks", "true");
    api_url_add_number(
        url, "timeoutSeconds",
        g_rand_int_range(reflector->random, WATCH_TIMEOUT_MIN_S, WATCH_TIMEOUT_MAX_S + 1));
    framer_clear(reflector->events);
    reflector->heard = reflector->told_objects = false;
    reflector->n_events = 0;
    reflector->refusal = 0;
    reflector->retry_after_ms = 0;
    const struct api_stream_call call = {
        .path = url->str,
        .wakeable = true,
        .idle_ms = reflector->options.idle_ms,
        .open_ms = reflector->options.short_watch_ms,
        .opened = on_open,
        .receive = feed_events,
        .data = reflector,
    };
    api_stream_add(reflector->stream, &call);
    const struct stream_result result = api_stream_run(reflector->stream, &error);
    if (result.end == STREAM_STOPPED || result.end == STREAM_WOKEN)
        return STEP_ON;
    metrics_count(COUNTER_WATCH_RESTARTS, reflector->told.cell);

    const bool lived =
        reflector->n_events > 0 || clock_ms() - began_ms >= reflector->options.short_watch_ms;
    const long status = result.end == STREAM_STATUS ? result.status : reflector->refusal;
    if (result.end == STREAM_STATUS)
        reflector->retry_after_ms = result.retry_after_ms;
    const bool ahead = is_ahead(reflector, &result);
    if (is_stuck(reflector, &result, status) || wants_list(status) || ahead)
        g_clear_pointer(&reflector->version, g_free);
    reflector->watch_denied = status == FORBIDDEN;
    note_end(reflector, lived && result.end != STREAM_ABORTED && result.status == 200 && !ahead,
             error);
    if (reflector->watch_denied)
        set_trouble(reflector, error);
    if (status == GONE) {
        log_event(LOG_LEVEL_INFO, "watch expired", LOG_TEXT("resource", reflector->told.resource));
        return lived ? STEP_ON : STEP_PAUSE;
    }
    if (result.end == STREAM_COMPLETE && !lived)
        g_set_error(&error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                    "the watch ended at once");
    if (error && !(result.end == STREAM_CUT && lived))
        log_failure(reflector, "watch", status, error);
    return lived && (result.end == STREAM_COMPLETE || result.end == STREAM_CUT) ? STEP_ON
                                                                                : STEP_PAUSE;
}

/* --- the thread ----------------------------------------------------------------------------- */

static void pause_after_failure(struct reflector *reflector)
{
    const struct reflector_options *options = &reflector->options;
    const int64_t now_ms = clock_ms();

    if (!reflector->failed_ms || now_ms - reflector->failed_ms > options->backoff_reset_ms)
        reflector->backoff_ms = options->backoff_ms;
    reflector->failed_ms = now_ms;

    const int64_t jitter_ms =
        (int64_t)(g_rand_double(reflector->random) * (double)reflector->backoff_ms);
    int64_t pause_ms = reflector->backoff_ms + jitter_ms;
    if (list_is_wanted(reflector))
        pause_ms = MIN(pause_ms, WANTED_PAUSE_MAX_MS);
    api_stream_pause(reflector->stream, MAX(pause_ms, reflector->retry_after_ms));
    reflector->backoff_ms = MIN(reflector->backoff_ms * 2, options->backoff_max_ms);
}

static void *run(void *data)
{
    struct reflector *reflector = data;

    if (!reflector->path) {
        reflector->told.begin(reflector->told.data);
        reflector->told.end(reflector->told.data);
        return NULL;
    }
    while (!api_stream_is_stopped(reflector->stream)) {
        if (list_is_wanted(reflector))
            g_clear_pointer(&reflector->version, g_free);
        if ((reflector->version ? watch(reflector) : list(reflector)) == STEP_PAUSE)
            pause_after_failure(reflector);
    }
    return NULL;
}

static int64_t given(int64_t value, int64_t fallback)
{
    return value ? value : fallback;
}

static void set_options(struct reflector *reflector, const struct reflector_options *options)
{
    reflector->options = defaults;
    if (!options)
        return;
    reflector->options = (struct reflector_options){
        .backoff_ms = given(options->backoff_ms, defaults.backoff_ms),
        .backoff_max_ms = given(options->backoff_max_ms, defaults.backoff_max_ms),
        .backoff_reset_ms = given(options->backoff_reset_ms, defaults.backoff_reset_ms),
        .idle_ms = given(options->idle_ms, defaults.idle_ms),
        .short_watch_ms = given(options->short_watch_ms, defaults.short_watch_ms),
        .unwatched_ms = given(options->unwatched_ms, defaults.unwatched_ms),
        .page = given(options->page, defaults.page),
    };
}

static void release(struct reflector *reflector)
{
    api_stream_free(reflector->stream);
    framer_free(reflector->events);
    json_arena_free(reflector->arena);
    g_rand_free(reflector->random);
    g_free(reflector->version);
    g_free(reflector->failed_version);
    g_free(reflector->path);
    g_free(reflector->other_path);
    if (reflector->told.release)
        reflector->told.release(reflector->told.data);
    g_free(reflector);
}

/* Signals are for the main thread. */
static int start_thread(struct reflector *reflector)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(&reflector->thread, NULL, run, reflector);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

static struct reflector *new_reflector(struct api_client *client, const struct reflected *reflected,
                                       const struct reflector_options *options)
{
    struct reflector *reflector = g_new0(struct reflector, 1);

    reflector->told = *reflected;
    set_options(reflector, options);
    reflector->path = g_strdup(reflected->path);
    reflector->other_path = g_strdup(reflected->older_path);
    reflector->random = g_rand_new();
    reflector->arena = json_arena_new();
    reflector->events = framer_new(FRAMER_SEQUENCE, 0, on_event, reflector);
    framer_skip(reflector->events, API_LIST_UNREAD);
    reflector->stream = api_stream_new(client);
    return reflector;
}

static struct reflector *start_new(struct reflector *take_reflector, GError **error)
{
    const int failure = start_thread(take_reflector);

    if (!failure)
        return take_reflector;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT, "cannot start a thread for %s: %s",
                take_reflector->told.resource, g_strerror(failure));
    release(take_reflector);
    return NULL;
}

struct reflector *reflector_start_on(struct api_client *client, const struct reflected *reflected,
                                     const struct reflector_options *options, GError **error)
{
    return start_new(new_reflector(client, reflected, options), error);
}

uint64_t reflector_relist(struct reflector *reflector)
{
    const uint64_t wanted = atomic_fetch_add(&reflector->wanted, 1) + 1;

    api_stream_wake(reflector->stream);
    return wanted;
}

bool reflector_has_listed(const struct reflector *reflector, uint64_t wanted)
{
    return atomic_load(&reflector->listed) >= wanted;
}

void reflector_stop(struct reflector *reflector)
{
    api_stream_stop(reflector->stream);
}

void reflector_free(struct reflector *reflector)
{
    if (!reflector)
        return;
    reflector_stop(reflector);
    pthread_join(reflector->thread, NULL);
    release(reflector);
}
