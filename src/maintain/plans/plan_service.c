/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/plan_service.h"

#include "base/log.h"
#include "base/metrics.h"
#include "core/fail.h"
#include "kube/clock.h"
#include "maintain/plans/plan_config_map.h"
#include "maintain/plans/plan_marks.h"
#include "maintain/plans/plan_run.h"
#include "maintain/waiting.h"

#include <string.h>

#define EVERY_MS 5000
#define LOOKS 12 /* so many intervals after nobody was found who waits, it is looked again */
#define CALL_MS 10000
#define LIST_MAX ((size_t)64 << 20)
#define HOUR_S 3600

struct plan_service {
    struct plan_service_options options;
    struct worker worker;
    GHashTable
        *unread; /* names of ConfigMaps that cannot be read -> text: the version that was told */
    GHashTable *turns; /* as struct plan_run_args has them */
    GHashTable *
        passed; /* as struct plan_run_args has it; and UIDs of ConfigMaps for which nobody was found */
    struct pauses *waiters, *stayed; /* as struct plan_run_args has them */
};

/* A ConfigMap, and what has come of it. */
struct entry {
    struct plan_order *order;
    struct plan_status *status; /* NULL: nothing */
};

static void entry_clear(void *data)
{
    struct entry *entry = data;

    plan_order_free(entry->order);
    plan_status_free(entry->status);
}

/* --- what is ordered -------------------------------------------------------------------------- */

struct list {
    const cJSON *items;
};
static const struct json_field list_fields[] = {
    JSON_FIELD_ARRAY(struct list, items, "items", 0),
    JSON_FIELD_END,
};

static gint compare_entries(gconstpointer a, gconstpointer b)
{
    const struct plan_order *one = ((const struct entry *)a)->order;
    const struct plan_order *other = ((const struct entry *)b)->order;
    const int order = strcmp(one->created, other->created);

    return order ? order : strcmp(one->name, other->name);
}

/* What nobody can read is not begun anew, since nobody knows what was done. */
static struct plan_status *read_status(const struct plan_order *order)
{
    g_autoptr(GError) failure = NULL;
    struct plan_status *status = order->status ? plan_status_parse(order->status, &failure) : NULL;

    if (!failure)
        return status;
    g_autofree char *text = g_strdup_printf("the annotation " PLAN_STATUS_KEY
                                            " cannot be read: %s. Delete it to begin anew",
                                            failure->message);
    status = plan_status_new(order->digest);
    status->phase = PLAN_PHASE_STOPPED;
    plan_status_tell(status, text);
    log_event_limited(LOG_LEVEL_WARN, "plan's status cannot be read",
                      LOG_TEXT("configmap", order->name), LOG_TEXT("why", failure->message));
    return status;
}

/* What is left of a ConfigMap that cannot be read. */
struct remains {
    const char *name, *version;
};
static const struct json_field remains_fields[] = {
    JSON_FIELD_STRING(struct remains, name, "metadata.name", 0),
    JSON_FIELD_STRING(struct remains, version, "metadata.resourceVersion", 0),
    JSON_FIELD_END,
};

/* Said and counted once for each change of it. `unread` is what could not be read this time. */
static void note_unread(const struct plan_service *service, GHashTable *unread, const cJSON *item,
                        const char *why)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct remains remains = {0};

    if (!json_decode(arena, item, remains_fields, &remains, NULL))
        remains = (struct remains){0};
    const char *name = remains.name ? remains.name : "?";
    const char *version = remains.version ? remains.version : "";
    g_hash_table_replace(unread, g_strdup(name), g_strdup(version));
    if (g_strcmp0(g_hash_table_lookup(service->unread, name), version) == 0)
        return;
    metrics_count(COUNTER_PLANS, PLAN_RESULT_UNREADABLE);
    log_event_limited(LOG_LEVEL_WARN, "plan cannot be read", LOG_TEXT("configmap", name),
                      LOG_TEXT("why", why));
}

/* Array of struct entry, the oldest first. NULL, with an error: they cannot be read. */
static GArray *list_orders(struct plan_service *service, GError **error)
{
    g_autofree char *ns = g_uri_escape_string(service->options.ns, NULL, FALSE);
    g_autofree char *path =
        g_strdup_printf("/api/v1/namespaces/%s/configmaps?labelSelector=gpuledger.io%%2Fplan", ns);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) reply = g_string_new(NULL);
    struct list list = {0};
    const cJSON *item;
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS, .reply_max = LIST_MAX};

    if (api_client_call(service->options.client, &call, reply, error) != OUTCOME_OK)
        return NULL;
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);
    if (!object || !json_decode(arena, object, list_fields, &list, error))
        return NULL;
    GArray *entries = g_array_new(FALSE, TRUE, sizeof(struct entry));
    g_array_set_clear_func(entries, entry_clear);
    GHashTable *unread = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    cJSON_ArrayForEach (item, list.items) {
        g_autoptr(GError) failure = NULL;
        struct entry entry = {.order = plan_order_decode(arena, item, &failure)};
        if (!entry.order) {
            note_unread(service, unread, item, failure->message);
            continue;
        }
        entry.status = read_status(entry.order);
        g_array_append_val(entries, entry);
    }
    g_hash_table_unref(service->unread);
    service->unread = unread;
    g_array_sort(entries, compare_entries);
    if (entries->len > PLAN_ORDERS_MAX) {
        log_event_limited(LOG_LEVEL_WARN, "too many plans are ordered",
                          LOG_NUMBER("configmaps", entries->len),
                          LOG_NUMBER("looked_at", PLAN_ORDERS_MAX));
        g_array_set_size(entries, PLAN_ORDERS_MAX);
    }
    return entries;
}

/* --- one of them ------------------------------------------------------------------------------ */

static int64_t now_s(void)
{
    return g_get_real_time() / G_USEC_PER_SEC;
}

/* What cannot be read may be under way: beside it no other plan begins. Free with g_free; NULL: all can. */
static char *why_held(const struct plan_service *service, const struct entry *entry)
{
    GHashTableIter iter;
    gpointer name;

    g_hash_table_iter_init(&iter, service->unread);
    if (entry->status->phase == PLAN_PHASE_RUNNING || !g_hash_table_iter_next(&iter, &name, NULL))
        return NULL;
    return g_strdup_printf(
        "waits: the ConfigMap %s cannot be read, and what it orders may be under "
        "way. Put it right, or delete it",
        (const char *)name);
}

/* Neither its window nor the hour lets it begin; NULL: both do. Free with g_free. `ret_unread`: nobody can read the
 * hour. */
static char *why_waits(const struct plan_service *service, const struct entry *entry,
                       bool *ret_unread)
{
    const struct plan_order *order = entry->order;
    const struct moves moves = {service->options.client, service->options.ns, MOVES_PLAN};
    g_autoptr(GError) failure = NULL;
    int64_t wait_ms = 0;

    g_autofree char *stopped =
        service->options.permits ? permits_why_stopped(service->options.permits) : NULL;

    if (stopped)
        return g_strdup_printf("waits: evictions are stopped: %s", stopped);
    if (order->window && !window_is_open(order->window, now_s()))
        return g_strdup("waits for its window");
    if (order->budgets.per_hour == 0 ||
        moves_wait(&moves, order->budgets.per_hour, &wait_ms, &failure))
        return wait_ms > 0 ? g_strdup("as many pods have moved in this hour as may; it waits")
                           : NULL;
    *ret_unread = true;
    return g_strdup_printf("waits: %s", failure->message);
}

/* What has come of another order of the same ConfigMap is over, but for the hour. */
static void begin_anew(struct entry *entry)
{
    struct plan_status *status = plan_status_new(entry->order->digest);

    status->phase = PLAN_PHASE_WAITING;
    if (entry->status) {
        step_log_free(status->log);
        status->log = g_steal_pointer(&entry->status->log);
        step_log_end(status->log, EXECUTOR_FAILED, "its order was changed while nobody was at it");
        step_log_disown(status->log);
        plan_status_free(entry->status);
    }
    entry->status = status;
}

static bool is_open(const struct entry *entry)
{
    return entry->status->phase == PLAN_PHASE_RUNNING || entry->status->phase == PLAN_PHASE_WAITING;
}

/* Nothing is to be done with it now but to say so. False: that is said already, or cannot be. */
static bool set_phase(const struct plan_run_args *args, enum plan_phase phase, const char *text)
{
    g_autoptr(GError) failure = NULL;
    const bool counts = phase == PLAN_PHASE_STOPPED || phase == PLAN_PHASE_REFUSED;
    const enum plan_phase before = args->status->phase;
    g_autofree char *said = g_strdup(args->status->text);

    args->status->phase = phase;
    plan_status_tell(args->status, text);
    if (args->order->status && before == phase && g_strcmp0(said, args->status->text) == 0)
        return false;
    if (!plan_config_map_write(args->with->client, args->order, args->status, &failure)) {
        log_event_limited(LOG_LEVEL_WARN, "plan's status cannot be written",
                          LOG_TEXT("configmap", args->order->name),
                          LOG_TEXT("why", failure->message));
        return false;
    }
    if (counts)
        metrics_count(COUNTER_PLANS,
                      phase == PLAN_PHASE_STOPPED ? PLAN_RESULT_STOPPED : PLAN_RESULT_REFUSED);
    log_event(counts ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "plan does not run",
              LOG_TEXT("configmap", args->order->name), LOG_TEXT("phase", plan_phases[phase]),
              LOG_TEXT("text", text));
    return true;
}

static gboolean is_over(gpointer uid, gpointer until_ms, gpointer data)
{
    return *(const int64_t *)until_ms <= clock_ms();
}

/* For whom it is to go on. False: for nobody now. */
static bool find_waiter(struct plan_service *service, const struct plan_run_args *args)
{
    struct plan_aim *aim = &args->order->aim;
    g_autofree char *why = NULL;

    if (!aim->waits)
        return true;
    if (args->status->waiter || step_log_open(args->status->log)) {
        if (plan_aim_read(aim, "pod", args->status->waiter ? args->status->waiter : "", NULL))
            return true;
        set_phase(args, PLAN_PHASE_STOPPED, "its status does not say for whom it is");
        return false;
    }
    g_hash_table_foreach_remove(service->passed, is_over, NULL);
    if (g_hash_table_contains(service->passed, args->order->uid))
        return false;
    if (plan_run_choose(args, &why))
        return true;
    const int64_t until_ms = clock_ms() + LOOKS * service->options.interval_ms;
    g_hash_table_replace(service->passed, g_strdup(args->order->uid),
                         g_memdup2(&until_ms, sizeof until_ms));
    set_phase(args, PLAN_PHASE_WAITING, why);
    return false;
}

/* Says what it would do, again after a pause. */
static void observe(struct plan_service *service, const struct plan_run_args *args)
{
    const int64_t until_ms = clock_ms() + LOOKS * service->options.interval_ms;
    g_autofree char *text = NULL;

    g_hash_table_foreach_remove(service->passed, is_over, NULL);
    if (g_hash_table_contains(service->passed, args->order->name) || !find_waiter(service, args))
        return;
    text = plan_run_observe(args);
    g_hash_table_replace(service->passed, g_strdup(args->order->name),
                         g_memdup2(&until_ms, sizeof until_ms));
    g_clear_pointer(&args->status->waiter, g_free);
    if (set_phase(args, PLAN_PHASE_WAITING, text))
        metrics_count_eviction(ENDER_PLAN, EVICTION_OUTCOME_OBSERVED);
}

/* True: it has been at work. */
static bool serve_entry(struct plan_service *service, struct entry *entry, uint64_t term)
{
    const bool anew = !entry->status || g_strcmp0(entry->status->digest, entry->order->digest) != 0;

    if (anew && !entry->order->wanted)
        return false;
    if (anew)
        begin_anew(entry);
    /* What goes on for ever has its bounds for each hour. */
    g_autoptr(GArray) past =
        step_log_past(entry->status->log, entry->order->aim.waits ? now_s() - HOUR_S : 0);
    const struct plan_run_args args = {.with = &service->options,
                                       .worker = &service->worker,
                                       .term = term,
                                       .past = past,
                                       .passed = service->passed,
                                       .waiters = service->waiters,
                                       .stayed = service->stayed,
                                       .turns = service->turns,
                                       .order = entry->order,
                                       .status = entry->status};
    if (!is_open(entry))
        return false;
    if (!entry->order->wanted) {
        step_log_end(entry->status->log, EXECUTOR_FAILED,
                     "its plan was stopped while nobody was at it");
        set_phase(&args, PLAN_PHASE_STOPPED,
                  "its label does not say '" PLAN_ORDER_RUN "' any more");
        return false;
    }
    if (entry->order->problem) {
        set_phase(&args, PLAN_PHASE_REFUSED, entry->order->problem);
        return false;
    }
    const bool begun = step_log_open(entry->status->log);
    bool unread = false;
    g_autofree char *waits = begun ? NULL : why_held(service, entry);
    if (!begun && !waits)
        waits = why_waits(service, entry, &unread);
    if (waits) {
        if (set_phase(&args, PLAN_PHASE_WAITING, waits) && unread)
            metrics_count(COUNTER_PLANS, PLAN_RESULT_UNREADABLE);
        return false;
    }
    if (permits_observe(service->options.permits, ENDER_PLAN) && !begun) {
        observe(service, &args);
        return false;
    }
    if (!find_waiter(service, &args))
        return false;
    plan_run(&args);
    return true;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* One that is under way goes first; then the oldest. True: one has been at work. */
static bool serve_one(struct plan_service *service, GArray *entries, uint64_t term)
{
    for (int first = 1; first >= 0; first--) {
        for (guint i = 0; i < entries->len; i++) {
            struct entry *entry = &g_array_index(entries, struct entry, i);
            const bool runs = entry->status && entry->status->phase == PLAN_PHASE_RUNNING;
            if (runs == first && serve_entry(service, entry, term))
                return true;
        }
    }
    return false;
}

static void *run(void *data)
{
    struct plan_service *service = data;

    while (worker_rest(&service->worker, service->options.interval_ms)) {
        g_autoptr(GError) failure = NULL;
        const uint64_t term = leadership_term(service->options.leadership);
        if (term == 0 || !store_is_synced(service->options.store))
            continue;
        g_autoptr(GArray) entries = list_orders(service, &failure);
        if (!entries) {
            log_event_limited(LOG_LEVEL_WARN, "plans that are ordered cannot be read",
                              LOG_TEXT("namespace", service->options.ns),
                              LOG_TEXT("why", failure->message));
            continue;
        }
        /* A plan that was stopped while nobody was at it leaves what nobody else would take away. */
        if (!serve_one(service, entries, term))
            plan_marks_sweep(&service->options);
    }
    return NULL;
}

struct plan_service *plan_service_start(const struct plan_service_options *options, GError **error)
{
    struct plan_service *service = g_new0(struct plan_service, 1);

    service->options = *options;
    if (service->options.interval_ms == 0)
        service->options.interval_ms = EVERY_MS;
    service->unread = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    service->turns = waiting_turns_new();
    service->passed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    service->waiters = pauses_new(PLAN_PAUSE_MS, PLAN_PAUSE_MS);
    service->stayed = pauses_new(PLAN_PAUSE_MS, PLAN_PAUSE_MS);
    worker_init(&service->worker);
    if (!worker_start(&service->worker, run, service, error))
        g_clear_pointer(&service, plan_service_free);
    return service;
}

void plan_service_free(struct plan_service *service)
{
    if (!service)
        return;
    worker_release(&service->worker);
    g_hash_table_unref(service->unread);
    g_hash_table_unref(service->passed);
    pauses_free(service->waiters);
    pauses_free(service->stayed);
    g_hash_table_unref(service->turns);
    g_free(service);
}
