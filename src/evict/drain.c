/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/drain.h"

#include "core/fail.h"
#include "kube/clock.h"

#define LOOK_US (500 * G_TIME_SPAN_MILLISECOND)

const char *const drain_states[] = {"stays", "gone", "evicted", "failed"};

/* One pod of the drain. */
struct step {
    const struct drain_query *query;
    struct drain_pod *pod;
    struct evictee evictee;
    char *said;      /* the last progress, which is not told twice */
    char *untold;    /* why its Event could not be written */
    GError *stopped; /* nobody wants it any more */
    int64_t until_ms;
};

static void step_clear(struct step *step)
{
    evictee_clear(&step->evictee);
    g_free(step->said);
    g_free(step->untold);
    g_clear_error(&step->stopped);
}
typedef struct step step_cleared;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(step_cleared, step_clear)

static void tell(struct step *step, const char *what)
{
    g_autofree char *text = g_strdup_printf("%s/%s: %s", step->pod->ns, step->pod->name, what);

    if (g_strcmp0(text, step->said) == 0)
        return;
    g_free(step->said);
    step->said = g_strdup(text);
    if (step->query->progress)
        step->query->progress(step->query->data, text);
}

/* Waits a little; false: the pod's time is over. */
static bool pause_for(struct step *step)
{
    const struct drain_query *query = step->query;

    g_usleep(LOOK_US);
    return clock_ms() < step->until_ms &&
           (!query->go_on || query->go_on(query->data, &step->stopped));
}

static bool fail_pod(struct drain_pod *pod, GError **error, GError *take_failure)
{
    pod->state = DRAIN_FAILED;
    pod->why = g_strdup(take_failure->message);
    g_propagate_prefixed_error(error, take_failure, "%s/%s: ", pod->ns, pod->name);
    return false;
}

/* After a pause that was the last: it was stopped, or what was waited for has not come. */
static bool give_up(struct step *step, GError **error, GError *take_failure)
{
    if (!step->stopped)
        return fail_pod(step->pod, error, take_failure);
    g_clear_error(&take_failure);
    return fail_pod(step->pod, error, g_steal_pointer(&step->stopped));
}

static struct door_order order_of(struct step *step)
{
    const struct drain_query *query = step->query;
    const struct drain_pod *pod = step->pod;

    return (struct door_order){.client = query->client,
                               .store = query->store,
                               .whom = query->whom,
                               .note = pod->note,
                               .ret_untold = &step->untold,
                               .ender = query->ender,
                               .permits = query->permits,
                               .leadership = query->leadership,
                               .term = query->term,
                               .force = query->force,
                               .ns = pod->ns,
                               .name = pod->name,
                               .uid = pod->uid,
                               .is_wanted = query->go_on,
                               .data = query->data};
}

/* Reads the pod. True without `ret_goes`: it is left alone, and its row says why. `ret_ends`: somebody has ended it. */
static bool read_pod(struct step *step, bool *ret_goes, bool *ret_ends, GError **error)
{
    const struct door_order order = order_of(step);
    struct drain_pod *pod = step->pod;
    GError *failure = NULL;
    const enum door_answer answer = door_look(&order, &step->evictee, &failure);

    *ret_ends = answer == DOOR_ENDS;
    *ret_goes = answer == DOOR_OPEN || *ret_ends;
    if (answer == DOOR_FAILED)
        return fail_pod(pod, error, failure);
    if (answer == DOOR_GONE)
        pod->state = DRAIN_GONE;
    if (answer == DOOR_STAYS)
        pod->why = g_strdup(failure->message);
    g_clear_error(&failure);
    return true;
}

/* --- beforehand ------------------------------------------------------------------------------- */

static bool try_pod(const struct drain_query *query, struct drain_pod *pod, GError **error)
{
    g_auto(step_cleared) step = {query, pod, .until_ms = clock_ms() + query->timeout_ms};
    const struct door_order order = order_of(&step);
    GError *failure = NULL;
    bool goes, ends;

    if (!read_pod(&step, &goes, &ends, error))
        return false;
    if (!goes || ends)
        return true;
    const enum door_answer answer = door_try(&order, &step.evictee, &failure);
    if (answer != DOOR_OPEN && answer != DOOR_LATER)
        return fail_pod(pod, error, failure);
    g_clear_error(&failure);
    return true;
}

/* --- one pod ---------------------------------------------------------------------------------- */

/* As read_pod: while it is waited, the pod's author may write that it stays. */
static bool evict(struct step *step, bool *ret_goes, bool *ret_ends, GError **error)
{
    const struct door_order order = order_of(step);

    for (;;) {
        g_autoptr(GError) failure = NULL;
        const enum door_answer answer = door_end(&order, &step->evictee, &failure);
        if (answer == DOOR_OPEN)
            return true;
        if (answer == DOOR_UNWANTED)
            step->stopped = g_steal_pointer(&failure);
        const bool held = g_error_matches(failure, GPULEDGER_ERROR, DOOR_HELD);
        if (answer != DOOR_LATER || !pause_for(step)) {
            step->pod->lost = answer == DOOR_LATER && !held && !step->stopped;
            return give_up(step, error, g_steal_pointer(&failure));
        }
        tell(step, held ? failure->message : "waits for a PodDisruptionBudget");
        evictee_clear(&step->evictee);
        if (!read_pod(step, ret_goes, ret_ends, error))
            return false;
        if (!*ret_goes || *ret_ends)
            return true;
    }
}

/* Nothing else depends on it. */
static void complain(struct step *step)
{
    g_autofree char *text = g_strdup_printf("no Event could be written: %s", step->untold);

    tell(step, text);
}

/* Until the pod with this UID is gone. */
static bool await_end(struct step *step, GError **error)
{
    do {
        g_auto(evictee) now = {0};
        GError *failure = NULL;
        const enum outcome outcome =
            evictee_read(step->query->client, step->pod->ns, step->pod->name, &now, &failure);
        if (outcome == OUTCOME_NOT_FOUND || now.ended ||
            g_strcmp0(now.uid, step->evictee.uid) != 0) {
            const bool over = outcome == OUTCOME_NOT_FOUND || outcome == OUTCOME_OK;
            if (over) {
                g_clear_error(&failure);
                return true;
            }
        }
        g_clear_error(&failure); /* asked again while there is time */
        tell(step, "is evicted and ends");
    } while (pause_for(step));
    step->pod->lost = !step->stopped;
    return give_up(step, error,
                   g_error_new(GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                               "is evicted, but has not ended in time"));
}

static bool await_successor(struct step *step, guint n_ready, GError **error)
{
    const struct evictee *evictee = &step->evictee;
    const char *kind = evictee->owner_kind ? evictee->owner_kind : "controller";
    guint n = 0;

    do {
        if (eviction_count_ready(step->query->client, evictee->ns, evictee->owner, &n, NULL) ==
                OUTCOME_OK &&
            n >= n_ready)
            return true;
        tell(step, "has ended; its successor is not Ready yet");
    } while (pause_for(step));
    step->pod->lost = !step->stopped;
    return give_up(step, error,
                   g_error_new(GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                               "its successor is not Ready in time: of its %s's pods %u are, %u "
                               "were",
                               kind, n, n_ready));
}

static bool drain_pod(const struct drain_query *query, struct drain_pod *pod, GError **error)
{
    g_auto(step_cleared) step = {query, pod, .until_ms = clock_ms() + query->timeout_ms};
    guint n_ready = pod->n_ready;
    GError *failure = NULL;
    bool goes, ends;

    if (!read_pod(&step, &goes, &ends, error))
        return false;
    if (!goes)
        return true;
    const bool succeeded = step.evictee.owner && !pod->alone;
    if (!pod->counted && succeeded &&
        eviction_count_ready(query->client, pod->ns, step.evictee.owner, &n_ready, &failure) !=
            OUTCOME_OK)
        return fail_pod(pod, error, failure);
    if (!ends && !evict(&step, &goes, &ends, error))
        return false;
    if (!goes)
        return true;
    if (step.untold)
        complain(&step);
    if (!await_end(&step, error) || (succeeded && !await_successor(&step, n_ready, error)))
        return false;
    pod->state = DRAIN_EVICTED;
    tell(&step, succeeded ? "evicted, and its successor is Ready" : "evicted");
    return true;
}

bool drain_run(const struct drain_query *query, GError **error)
{
    for (guint i = 0; i < query->n_pods; i++) {
        if (!try_pod(query, &query->pods[i], error))
            return false;
        g_clear_pointer(&query->pods[i].why, g_free);
        query->pods[i].state = DRAIN_STAYS;
    }
    for (guint i = 0; i < query->n_pods; i++) {
        if (!drain_pod(query, &query->pods[i], error))
            return false;
    }
    return true;
}

bool drain_finish(const struct drain_query *query, const char *owner, GError **error)
{
    struct drain_pod *pod = query->pods;
    g_auto(step_cleared) step = {query, pod, .until_ms = clock_ms() + query->timeout_ms};
    g_auto(evictee) now = {0};
    GError *failure = NULL;
    const enum outcome outcome = evictee_read(query->client, pod->ns, pod->name, &now, &failure);

    pod->state = DRAIN_STAYS;
    if (outcome != OUTCOME_OK && outcome != OUTCOME_NOT_FOUND)
        return fail_pod(pod, error, failure);
    g_clear_error(&failure);
    if (outcome == OUTCOME_OK && !now.ended && !now.ends && g_strcmp0(now.uid, pod->uid) == 0)
        return true;
    step.evictee = (struct evictee){.ns = g_strdup(pod->ns),
                                    .name = g_strdup(pod->name),
                                    .uid = g_strdup(pod->uid),
                                    .owner = g_strdup(owner),
                                    .owner_kind = g_strdup(now.owner_kind)};
    if (!await_end(&step, error) || (owner && !await_successor(&step, pod->n_ready, error)))
        return false;
    pod->state = DRAIN_EVICTED;
    return true;
}
