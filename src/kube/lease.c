/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease.h"

#include "base/log.h"
#include "base/metrics.h"
#include "kube/clock.h"
#include "kube/election.h"
#include "wire/kubernetes.h"
#include "wire/lease.h"

#include <gpuledger/error.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#define CALLS_PER_DEADLINE 3 /* a call that hangs leaves time for others */
#define GIVE_BACK_MS 2000
#define UNSYNCED_WAIT_MS 50
#define REFRESH_WAIT_MS 5
#define SLEEP_MAX_MS 1000 /* the two clocks are not read at one instant */
#define RELEASED_DURATION_S 1 /* what client-go writes; nobody waits for it */

enum phase_of_term {
    STANDING_BY,
    REFRESHING, /* the Lease is ours, the pods are being read */
    SERVING,
};

struct lease {
    struct leadership leadership;
    struct lease_args args;
    char *ns, *name, *identity;
    char *title; /* "namespace/name" */
    char *path;  /* of all Leases of the namespace */
    pthread_t thread;
    bool running;

    /* The thread's own: */
    struct json_arena *arena;
    struct lease_view last; /* as it was last seen; in the arena */
    int64_t taken_ms;
    uint64_t refresh;

    pthread_mutex_t lock; /* the rest; never held across a call or with the store's lock */
    pthread_cond_t changed;
    struct election election;
    enum phase_of_term phase;
    int64_t slept_ms; /* by clock_slept_ms, when the write that is in force began */
    uint64_t term;   /* the last one that began */
    uint64_t asked;  /* publications */
    uint64_t stored; /* of those, the last one that a write has carried */
    bool stopping;
};

/* --- leadership ----------------------------------------------------------------------------- */

/* Under the lock. While the machine slept the others did not: until a write has shown that the Lease
 * is still ours, it is not. */
static int64_t term_end(const struct lease *lease, uint64_t term)
{
    if (lease->args.slept_ms() - lease->slept_ms > SLEEP_MAX_MS)
        return 0;
    return lease->phase == SERVING && term == lease->term ? election_until_ms(&lease->election) : 0;
}

static uint64_t leadership_get_term(struct leadership *leadership)
{
    struct lease *lease = (struct lease *)leadership;

    pthread_mutex_lock(&lease->lock);
    const uint64_t term = term_end(lease, lease->term) > clock_ms() ? lease->term : 0;
    pthread_mutex_unlock(&lease->lock);
    return term;
}

static int64_t leadership_get_until_ms(struct leadership *leadership, uint64_t term)
{
    struct lease *lease = (struct lease *)leadership;

    pthread_mutex_lock(&lease->lock);
    const int64_t until_ms = term_end(lease, term);
    pthread_mutex_unlock(&lease->lock);
    return until_ms;
}

/* Under the lock. */
static void wait_changed(struct lease *lease, int64_t until_ms)
{
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    pthread_cond_timedwait(&lease->changed, &lease->lock, &until);
}

static bool leadership_do_publish(struct leadership *leadership, uint64_t term, int64_t deadline_ms,
                             GError **error)
{
    struct lease *lease = (struct lease *)leadership;

    pthread_mutex_lock(&lease->lock);
    const uint64_t wanted = ++lease->asked;
    pthread_cond_broadcast(&lease->changed);
    for (;;) {
        /* Renewals move the end of the term. */
        const int64_t until_ms = MIN(deadline_ms, term_end(lease, term));
        if (lease->stored >= wanted || until_ms <= clock_ms())
            break;
        wait_changed(lease, until_ms);
    }
    const bool ours = term_end(lease, term) > clock_ms();
    const bool stored = lease->stored >= wanted;
    pthread_mutex_unlock(&lease->lock);

    if (!ours)
        leadership_set_error(error);
    else if (!stored)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                    "the Lease could not be written in time; try again");
    return ours && stored;
}

static const struct leadership_ops ops = {
    .term = leadership_get_term,
    .until_ms = leadership_get_until_ms,
    .publish = leadership_do_publish,
};

struct leadership *lease_leadership(struct lease *lease)
{
    return &lease->leadership;
}

/* --- calls ---------------------------------------------------------------------------------- */

static void report_failure(const struct lease *lease, const char *verb, enum outcome outcome,
                           const GError *error)
{
    metrics_count(COUNTER_LEASE_FAILURES, outcome);
    if (outcome == OUTCOME_CONFLICT)
        return; /* somebody else was faster */
    const bool stranger = g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CREDENTIALS);
    if (stranger || g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_DENIED)) {
        g_autofree char *advice =
            stranger ? g_strdup("check the credentials of the kubeconfig or the service account")
                     : g_strdup_printf(
                           "grant the verbs get, create and update on leases in namespace %s",
                           lease->ns);
        log_event_limited(LOG_LEVEL_ERROR, "cannot use the Lease", LOG_TEXT("verb", verb),
                          LOG_TEXT("error", error->message), LOG_TEXT("advice", advice));
        return;
    }
    log_event_limited(LOG_LEVEL_WARN, "Lease", LOG_TEXT("verb", verb),
                      LOG_TEXT("lease", lease->title), LOG_TEXT("error", error->message));
}

/* Makes the answer the Lease that was last seen. */
static bool remember(struct lease *lease, const GString *reply, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);
    struct lease_view view;

    if (!object || !lease_view_decode(arena, object, &view, error))
        return false;
    struct json_arena *before = lease->arena;
    lease->arena = g_steal_pointer(&arena);
    arena = before;
    lease->last = view;
    return true;
}

/* One call; its answer becomes the Lease that was last seen. */
static enum outcome call(struct lease *lease, const char *method, const GString *body,
                         int64_t deadline_ms, GError **error)
{
    const bool creates = strcmp(method, "POST") == 0;
    g_autofree char *path =
        creates ? g_strdup(lease->path) : g_strdup_printf("%s/%s", lease->path, lease->name);
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call api_call = {
        .method = method,
        .path = path,
        .body = body,
        .deadline_ms = deadline_ms,
        .once = body != NULL,
        .timely = body != NULL,
    };
    const enum outcome outcome = api_client_call(lease->args.client, &api_call, reply, error);

    return outcome != OUTCOME_OK || remember(lease, reply, error) ? outcome : OUTCOME_UNKNOWN;
}

static int64_t call_deadline(const struct lease *lease)
{
    return clock_ms() + lease->args.renew_deadline_ms / CALLS_PER_DEADLINE;
}

static void read_lease(struct lease *lease)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *before = g_strdup(lease->last.holder);
    const enum outcome outcome = call(lease, "GET", NULL, call_deadline(lease), &error);

    if (outcome == OUTCOME_NOT_FOUND)
        lease->last.version = NULL; /* what else it said still counts, above all the journal */
    else if (outcome != OUTCOME_OK)
        report_failure(lease, "get", outcome, error);
    if (g_strcmp0(before, lease->last.holder) != 0)
        log_event(LOG_LEVEL_INFO, "Lease", LOG_TEXT("lease", lease->title),
                  LOG_TEXT("holder", lease->last.holder));

    pthread_mutex_lock(&lease->lock);
    if (outcome == OUTCOME_OK)
        election_read(&lease->election, &lease->last, clock_ms());
    else if (outcome == OUTCOME_NOT_FOUND)
        election_read(&lease->election, NULL, clock_ms());
    else
        election_failed(&lease->election, outcome, clock_ms());
    const int64_t asked_ms = lease->election.asked_ms, given_ms = lease->election.duration_ms;
    pthread_mutex_unlock(&lease->lock);
    if (asked_ms > given_ms)
        log_event_limited(LOG_LEVEL_WARN, "the Lease asks for longer than is waited for",
                          LOG_TEXT("lease", lease->title), LOG_TEXT("holder", lease->last.holder),
                          LOG_NUMBER("asked_ms", asked_ms), LOG_NUMBER("given_ms", given_ms));
}

/* Writes the Lease over the version that was last seen, or creates it, for the holder (NULL:
 * nobody) and with the journal as it is now. */
static enum outcome write_lease(struct lease *lease, const char *holder, int64_t deadline_ms,
                                GError **error)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) bookings = g_string_new(NULL);
    g_autofree char *now = micro_time_format(g_get_real_time());
    const bool stays = g_strcmp0(holder, lease->last.holder) == 0;
    struct lease_view next = lease->last;
    struct json_writer writer;

    next.renewed = now;
    next.duration_s = holder ? lease->args.duration_ms / 1000 : RELEASED_DURATION_S;
    next.holder = holder;
    if (holder && !stays) {
        next.acquired = now;
        next.transitions += lease->last.holder != NULL;
    }
    journal_encode(lease->args.journal, bookings);
    json_writer_init(&writer, body);
    lease_encode(&writer, lease->ns, lease->name, &next, LEASE_JOURNAL_KEY, bookings->str);
    const enum outcome outcome =
        call(lease, next.version ? "PUT" : "POST", body, deadline_ms, error);
    if (outcome == OUTCOME_OK)
        metrics_set(GAUGE_JOURNAL, (int64_t)bookings->len);
    return outcome;
}

/* --- the life of a term --------------------------------------------------------------------- */

/* Keeps what the former holder has left open. Harmless if the Lease is not ours in the end: it is
 * settled by asking about each pod. */
static void read_journal(struct lease *lease)
{
    const char *text = string_pairs_get(&lease->last.annotations, LEASE_JOURNAL_KEY);
    int bad = 0;

    if (!text || !*text)
        return;
    const unsigned booked = journal_decode(lease->args.journal, text, &bad);
    log_event(LOG_LEVEL_INFO, "bookings of the former holder are kept",
              LOG_TEXT("from", lease->last.holder), LOG_NUMBER("bookings", booked));
    if (bad != 0)
        log_event(LOG_LEVEL_ERROR, "bookings of the former holder cannot be understood",
                  LOG_NUMBER("bookings", bad),
                  LOG_TEXT("hint", "if it was another version of gpuledger, cards that it has just "
                                   "given may be given again"));
}

static void take(struct lease *lease)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *former = g_strdup(lease->last.holder);
    const int64_t began_ms = clock_ms(), slept_ms = lease->args.slept_ms();

    read_journal(lease);
    pthread_mutex_lock(&lease->lock);
    const uint64_t carried = lease->asked;
    pthread_mutex_unlock(&lease->lock);
    const enum outcome outcome = write_lease(lease, lease->identity, call_deadline(lease), &error);
    if (outcome != OUTCOME_OK) {
        report_failure(lease, lease->last.version ? "update" : "create", outcome, error);
    } else {
        lease->taken_ms = clock_ms();
        lease->refresh = lease->args.refresh.begin(lease->args.refresh.data);
        metrics_count(COUNTER_LEASE_CHANGES, LEASE_CHANGE_TAKEN);
        log_event(LOG_LEVEL_INFO, "took the Lease", LOG_TEXT("lease", lease->title),
                  LOG_TEXT("as", lease->identity), LOG_TEXT("from", former),
                  LOG_NUMBER("transitions", lease->last.transitions));
    }

    pthread_mutex_lock(&lease->lock);
    if (outcome == OUTCOME_OK) {
        election_wrote(&lease->election, &lease->last, began_ms, clock_ms());
        lease->slept_ms = slept_ms;
        lease->stored = carried;
        lease->phase = REFRESHING;
    } else {
        election_failed(&lease->election, outcome, clock_ms());
    }
    pthread_mutex_unlock(&lease->lock);
}

static void renew(struct lease *lease)
{
    g_autoptr(GError) error = NULL;
    const int64_t began_ms = clock_ms(), slept_ms = lease->args.slept_ms();

    pthread_mutex_lock(&lease->lock);
    const uint64_t carried = lease->asked;
    const int64_t until_ms = election_until_ms(&lease->election);
    pthread_mutex_unlock(&lease->lock);
    const enum outcome outcome =
        write_lease(lease, lease->identity, MIN(call_deadline(lease), until_ms), &error);
    if (outcome != OUTCOME_OK)
        report_failure(lease, "update", outcome, error);

    pthread_mutex_lock(&lease->lock);
    if (outcome == OUTCOME_OK) {
        election_wrote(&lease->election, &lease->last, began_ms, clock_ms());
        lease->slept_ms = slept_ms;
        lease->stored = carried;
        pthread_cond_broadcast(&lease->changed);
    } else {
        election_failed(&lease->election, outcome, clock_ms());
    }
    pthread_mutex_unlock(&lease->lock);
}

static void give_back(struct lease *lease)
{
    g_autoptr(GError) error = NULL;

    pthread_mutex_lock(&lease->lock);
    const int64_t until_ms = election_until_ms(&lease->election);
    election_resign(&lease->election);
    pthread_mutex_unlock(&lease->lock);
    if (until_ms <= clock_ms())
        return;
    const enum outcome outcome =
        write_lease(lease, NULL, MIN(clock_ms() + GIVE_BACK_MS, until_ms), &error);
    if (outcome != OUTCOME_OK) {
        report_failure(lease, "update", outcome, error);
        return;
    }
    metrics_count(COUNTER_LEASE_CHANGES, LEASE_CHANGE_RELEASED);
    log_event(LOG_LEVEL_INFO, "gave the Lease back", LOG_TEXT("lease", lease->title));
}

/* Under the lock: brings the phase in line with what is known. Returns whether it changed. */
static bool follow(struct lease *lease)
{
    const bool held = election_until_ms(&lease->election) > 0 && !lease->stopping;

    if (!held && lease->phase != STANDING_BY) {
        lease->phase = STANDING_BY;
        pthread_cond_broadcast(&lease->changed);
        return true;
    }
    if (held && lease->phase == REFRESHING &&
        lease->args.refresh.is_done(lease->args.refresh.data, lease->refresh)) {
        lease->phase = SERVING;
        lease->term++;
        return true;
    }
    return false;
}

static void announce(struct lease *lease, enum phase_of_term phase, bool stopping)
{
    metrics_set(GAUGE_LEASE_HELD, phase == SERVING);
    if (lease->args.changed)
        lease->args.changed(lease->args.changed_data, phase == SERVING);
    if (phase == SERVING) {
        log_event(LOG_LEVEL_INFO, "serving", LOG_TEXT("lease", lease->title),
                  LOG_NUMBER("ms", clock_ms() - lease->taken_ms));
        return;
    }
    if (!stopping) {
        metrics_count(COUNTER_LEASE_CHANGES, LEASE_CHANGE_LOST);
        log_event(LOG_LEVEL_WARN, "lost the Lease", LOG_TEXT("lease", lease->title),
                  LOG_TEXT("holder", lease->last.holder));
    }
    /* Binds that wait for something look up, and leave. */
    store_lock(lease->args.store);
    store_notify_all(lease->args.store);
    store_unlock(lease->args.store);
}

bool lease_is_held(struct lease *lease, char **ret_why)
{
    pthread_mutex_lock(&lease->lock);
    const bool held = term_end(lease, lease->term) > clock_ms();
    const enum phase_of_term phase = lease->phase;
    g_autofree char *holder = g_strdup(lease->election.holder);
    const int64_t asked_ms = lease->election.asked_ms, given_ms = lease->election.duration_ms;
    pthread_mutex_unlock(&lease->lock);

    if (!held && phase != STANDING_BY)
        *ret_why =
            g_strdup_printf("the Lease %s has been taken, the pods are being read", lease->title);
    else if (!held && *holder && asked_ms > given_ms)
        *ret_why = g_strdup_printf("this replica stands by; the Lease %s was last held by %s, which "
                                   "asks for %" G_GINT64_FORMAT " s and is given %" G_GINT64_FORMAT,
                                   lease->title, holder, asked_ms / 1000, given_ms / 1000);
    else if (!held && *holder)
        *ret_why = g_strdup_printf("this replica stands by; the Lease %s was last held by %s",
                                   lease->title, holder);
    else if (!held)
        *ret_why =
            g_strdup_printf("this replica stands by; nobody holds the Lease %s", lease->title);
    return held;
}

/* --- the thread ----------------------------------------------------------------------------- */

static void carry_out(struct lease *lease, enum election_step step)
{
    switch (step) {
    case ELECTION_WAIT:
        break;
    case ELECTION_READ:
        read_lease(lease);
        break;
    case ELECTION_CREATE:
    case ELECTION_TAKE:
        take(lease);
        break;
    case ELECTION_RENEW:
        renew(lease);
        break;
    }
}

/* One look at things; false: the end. */
static bool turn(struct lease *lease, bool synced)
{
    int64_t until_ms = 0;

    pthread_mutex_lock(&lease->lock);
    const enum election_step step = election_next(&lease->election, clock_ms(), synced,
                                                  lease->asked > lease->stored, &until_ms);
    const bool changed = follow(lease);
    const enum phase_of_term phase = lease->phase;
    const bool stopping = lease->stopping;
    if (step == ELECTION_WAIT && !changed && !stopping) {
        if (!synced)
            until_ms = MIN(until_ms, clock_ms() + UNSYNCED_WAIT_MS);
        if (phase == REFRESHING)
            until_ms = MIN(until_ms, clock_ms() + REFRESH_WAIT_MS);
        wait_changed(lease, until_ms);
    }
    pthread_mutex_unlock(&lease->lock);
    if (changed)
        announce(lease, phase, stopping);
    if (!stopping)
        carry_out(lease, step);
    return !stopping;
}

static void *run(void *data)
{
    struct lease *lease = data;
    bool synced;

    do
        synced = store_is_synced(lease->args.store);
    while (turn(lease, synced));
    give_back(lease);
    return NULL;
}

/* --- start and end -------------------------------------------------------------------------- */

char *lease_identity(const char *name)
{
    g_autofree char *uuid = g_uuid_string_random();
    return g_strdup_printf("%s_%.8s", name, uuid);
}

static void init(struct lease *lease, const struct lease_args *args)
{
    pthread_condattr_t monotonic;

    lease->leadership.ops = &ops;
    lease->args = *args;
    lease->args.slept_ms = args->slept_ms ? args->slept_ms : clock_slept_ms;
    lease->ns = g_strdup(args->ns);
    lease->name = g_strdup(args->name);
    lease->identity = g_strdup(args->identity);
    lease->title = g_strdup_printf("%s/%s", args->ns, args->name);
    lease->arena = json_arena_new();
    election_init(&lease->election, &(struct election_options){
                                        .identity = lease->identity,
                                        .duration_ms = args->duration_ms,
                                        .renew_deadline_ms = args->renew_deadline_ms,
                                        .retry_ms = args->retry_ms,
                                        .first_wait_ms = args->first_wait_ms,
                                    });
    pthread_mutex_init(&lease->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&lease->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Signals are for the main thread. */
static int start_thread(struct lease *lease)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(&lease->thread, NULL, run, lease);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

struct lease *lease_start(const struct lease_args *args, GError **error)
{
    g_autofree char *ns = transport_escape(args->ns, "namespace", error);
    g_autofree char *name = ns ? transport_escape(args->name, "Lease", error) : NULL;

    if (!name)
        return NULL;
    struct lease *lease = g_new0(struct lease, 1);
    init(lease, args);
    lease->path = g_strdup_printf("/apis/coordination.k8s.io/v1/namespaces/%s/leases", ns);
    metrics_set(GAUGE_LEASE_HELD, 0);
    const int failure = start_thread(lease);
    if (failure) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "cannot start a thread for the Lease: %s", g_strerror(failure));
        lease_free(lease);
        return NULL;
    }
    lease->running = true;
    return lease;
}

void lease_stop(struct lease *lease)
{
    if (!lease->running)
        return;
    pthread_mutex_lock(&lease->lock);
    lease->stopping = true;
    pthread_cond_broadcast(&lease->changed);
    pthread_mutex_unlock(&lease->lock);
    pthread_join(lease->thread, NULL);
    lease->running = false;
}

void lease_free(struct lease *lease)
{
    if (!lease)
        return;
    lease_stop(lease);
    pthread_cond_destroy(&lease->changed);
    pthread_mutex_destroy(&lease->lock);
    election_release(&lease->election);
    json_arena_free(lease->arena);
    g_free(lease->ns);
    g_free(lease->name);
    g_free(lease->identity);
    g_free(lease->title);
    g_free(lease->path);
    g_free(lease);
}
