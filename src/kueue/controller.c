/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/controller_state.h"

#include "base/log.h"
#include "kube/clock.h"

#define STAND_BY_MS 1000 /* between looks at whether this replica serves */
#define LISTING_MS 50    /* between looks at whether a list has ended */
#define ROUND_MS 500

/* --- AdmissionChecks: their condition ------------------------------------------------------- */

/* Under the lock: the name of one that has something to be written, and what; free with g_free. */
static char *due_check(struct kueue *kueue, GString *body)
{
    GHashTableIter iter;
    gpointer name, data;

    if (clock_ms() < kueue->check_after_ms)
        return NULL;
    g_hash_table_iter_init(&iter, kueue->checks);
    while (g_hash_table_iter_next(&iter, &name, &data)) {
        struct own_check *check = data;
        if (!check->body)
            continue;
        g_string_assign(body, check->body->str);
        g_string_free(check->body, TRUE);
        check->body = NULL; /* the watch tells if it is not so */
        return g_strdup(name);
    }
    return NULL;
}

/* Under the lock, which is given back meanwhile. */
static void write_checks(struct kueue *kueue)
{
    g_autoptr(GString) body = g_string_new(NULL);

    for (;;) {
        g_autofree char *name = due_check(kueue, body);
        g_autoptr(GError) failure = NULL;
        if (!name)
            return;
        worker_unlock(&kueue->worker);
        g_autofree char *escaped = transport_escape(name, "admission check", &failure);
        g_autofree char *path =
            escaped
                ? g_strdup_printf(KUEUE_PATH "/admissionchecks/%s/status" KUEUE_MANAGER, escaped)
                : NULL;
        const enum outcome outcome =
            path ? kueue_apply(kueue, path, body, &failure) : OUTCOME_REFUSED;
        worker_lock(&kueue->worker);
        if (outcome == OUTCOME_OK) {
            log_event(LOG_LEVEL_INFO, "AdmissionCheck told", LOG_TEXT("name", name));
            continue;
        }
        log_event_limited(LOG_LEVEL_WARN, "AdmissionCheck not written", LOG_TEXT("name", name),
                          LOG_TEXT("why", failure->message),
                          LOG_TEXT("advice", "apply manifests/overlays/kueue"));
        struct own_check *check = g_hash_table_lookup(kueue->checks, name);
        if (check && !check->body && outcome != OUTCOME_NOT_FOUND)
            check->body = g_string_new(body->str);
        kueue->check_after_ms = clock_ms() + KUEUE_PAUSE_MS;
    }
}

/* --- the thread ----------------------------------------------------------------------------- */

/* Under the lock; false: nobody is due. */
static bool is_due(struct kueue *kueue, int64_t *ret_next_ms)
{
    g_autoptr(GPtrArray) next = waiting_next(kueue->waiting, 1, clock_ms(), ret_next_ms);

    return next->len > 0;
}

/* Under the lock, which is given back meanwhile. A replica that begins to serve knows nothing of what was
 * said before. */
static bool take_office(struct kueue *kueue)
{
    worker_unlock(&kueue->worker);
    const uint64_t term = store_is_synced(kueue->store) ? leadership_term(kueue->leadership) : 0;
    worker_lock(&kueue->worker);
    if (term != kueue->term) {
        waiting_begin(kueue->waiting);
        waiting_end(kueue->waiting);
        promises_forget_all(kueue->promises);
        kueue->relist = true;
    }
    kueue->term = term;
    kueue->serving = term != 0;
    return kueue->serving;
}

static bool start_workloads(struct kueue *kueue)
{
    g_autoptr(GError) failure = NULL;

    kueue->workloads_feed = kueue_watch_workloads(kueue, &failure);
    if (!kueue->workloads_feed)
        log_event_limited(LOG_LEVEL_ERROR, "Workloads not read", LOG_TEXT("why", failure->message));
    return kueue->workloads_feed;
}

/* Under the lock: Workloads are read once there is a check of ours, and again when what is looked for in
 * them has changed. */
static void tend_workloads(struct kueue *kueue)
{
    const bool wanted =
        (kueue->relist || waiting_missed(kueue->waiting)) && g_hash_table_size(kueue->checks) > 0;

    if (!wanted)
        return;
    if (kueue->workloads_feed)
        kueue->wanted = reflector_relist(kueue->workloads_feed);
    else if (!start_workloads(kueue))
        return;
    kueue->relist = false;
}

/* All that were let in before are known: who is answered is answered beside them. */
static bool knows_all(const struct kueue *kueue)
{
    return kueue->workloads_feed && kueue->listed && !kueue->relist &&
           reflector_has_listed(kueue->workloads_feed, kueue->wanted);
}

static void *run(void *data)
{
    struct kueue *kueue = data;
    int64_t next_ms = 0;

    worker_lock(&kueue->worker);
    while (worker_wait(&kueue->worker, next_ms)) {
        next_ms = clock_ms() + STAND_BY_MS;
        if (!take_office(kueue))
            continue;
        tend_workloads(kueue);
        write_checks(kueue);
        int64_t due_ms;
        if (!knows_all(kueue)) {
            next_ms = MIN(next_ms, clock_ms() + LISTING_MS);
        } else if (!is_due(kueue, &due_ms)) {
            next_ms = MIN(next_ms, due_ms);
        } else if (clock_ms() < kueue->round_after_ms) {
            next_ms = MIN(next_ms, kueue->round_after_ms);
        } else {
            worker_unlock(&kueue->worker);
            kueue_round(kueue);
            worker_lock(&kueue->worker);
            next_ms = kueue->round_after_ms;
        }
    }
    worker_unlock(&kueue->worker);
    return NULL;
}

/* --- life ----------------------------------------------------------------------------------- */

struct kueue *kueue_start(struct api_client *client, struct store *store,
                          struct leadership *leadership, const struct kueue_options *options,
                          GError **error)
{
    struct kueue *kueue = g_new0(struct kueue, 1);

    kueue->client = client;
    kueue->store = store;
    kueue->leadership = leadership;
    kueue->options = options ? *options : (struct kueue_options){0};
    if (kueue->options.round_ms == 0)
        kueue->options.round_ms = ROUND_MS;
    kueue->checks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, own_check_free);
    kueue->waiting = waiting_new();
    kueue->promises = promises_new();
    worker_init(&kueue->worker);
    kueue->checks_feed = kueue_watch_checks(kueue, error);
    if (!kueue->checks_feed || !worker_start(&kueue->worker, run, kueue, error))
        g_clear_pointer(&kueue, kueue_free);
    return kueue;
}

void kueue_free(struct kueue *kueue)
{
    if (!kueue)
        return;
    worker_stop(&kueue->worker);
    reflector_free(kueue->checks_feed);
    reflector_free(kueue->workloads_feed);
    g_hash_table_unref(kueue->checks);
    waiting_free(kueue->waiting);
    promises_free(kueue->promises);
    worker_release(&kueue->worker);
    g_free(kueue);
}
