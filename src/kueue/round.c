/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/controller_state.h"

#include "base/log.h"
#include "base/metrics.h"
#include "kube/clock.h"
#include "kueue/joint_fit.h"
#include "store/node_walk.h"

#include <string.h>

#define CROWDED_MS 2000 /* until a namespace with too many promises is looked at again */
#define ROUND_MAX 64    /* Workloads of one round */
#define TRIES_MAX 3     /* of one answer, while others write the Workload as well */
#define NANO INT64_C(1000000000)

struct round {
    struct kueue *kueue;
    struct json_arena *arena; /* of the flavors */
    GArray *flavors;          /* struct named_flavor */
    struct joint_fit *joint;  /* NULL: nobody has needed one yet */
};

/* A Workload that is being looked at, as the API server has it. */
struct look {
    const struct waiting_workload *waiting;
    char *path;
    struct json_arena *arena;
    struct workload_view view;
    enum wish wish;
    int64_t ready_s;
};

/* Free with g_free; NULL, with an error: no such path can be. */
static char *path_of(const struct waiting_workload *workload, const char *rest, GError **error)
{
    g_autofree char *ns = transport_escape(workload->ns, "namespace", error);
    g_autofree char *name = ns ? transport_escape(workload->name, "workload", error) : NULL;

    return name ? g_strdup_printf(KUEUE_PATH "/namespaces/%s/workloads/%s%s", ns, name, rest)
                : NULL;
}

static void leave_for(struct kueue *kueue, const struct look *look, int64_t pause_ms)
{
    worker_lock(&kueue->worker);
    waiting_pause(kueue->waiting, look->waiting->uid, clock_ms() + pause_ms);
    worker_unlock(&kueue->worker);
}

static void be_done(struct kueue *kueue, const struct look *look)
{
    worker_lock(&kueue->worker);
    waiting_remove(kueue->waiting, look->waiting->uid);
    worker_unlock(&kueue->worker);
}

static void say_failure(const struct look *look, const GError *failure)
{
    metrics_count(COUNTER_KUEUE, KUEUE_RESULT_FAILED);
    log_event_limited(LOG_LEVEL_WARN, "Workload not answered",
                      LOG_TEXT("namespace", look->waiting->ns),
                      LOG_TEXT("name", look->waiting->name), LOG_TEXT("why", failure->message));
}

/* False: there is nothing to be done for it, or not now. */
static bool read_workload(struct kueue *kueue, struct look *look)
{
    g_autoptr(GError) failure = NULL;
    const cJSON *object = NULL;

    json_arena_clear(look->arena);
    const enum outcome outcome = kueue_get(kueue, look->path, look->arena, &object, &failure);
    if (outcome == OUTCOME_NOT_FOUND) {
        be_done(kueue, look);
        return false;
    }
    if (outcome != OUTCOME_OK ||
        !workload_view_decode(look->arena, object, &look->view, &failure)) {
        say_failure(look, failure);
        leave_for(kueue, look, KUEUE_PAUSE_MS);
        return false;
    }
    worker_lock(&kueue->worker);
    look->wish = kueue_wish(kueue, &look->view, &look->ready_s);
    worker_unlock(&kueue->worker);
    if (look->wish != WISH_NONE && g_str_equal(look->view.uid, look->waiting->uid))
        return true;
    be_done(kueue, look);
    return false;
}

static const struct named_flavor *find_flavor(const struct round *round, const char *name)
{
    for (guint i = 0; i < round->flavors->len; i++) {
        const struct named_flavor *flavor = &g_array_index(round->flavors, struct named_flavor, i);
        if (g_str_equal(flavor->name, name))
            return flavor;
    }
    return NULL;
}

static bool read_flavor(struct round *round, const char *name, enum outcome *ret_outcome,
                        GError **error)
{
    g_autofree char *escaped = transport_escape(name, "ResourceFlavor", error);
    g_autofree char *path =
        escaped ? g_strdup_printf(KUEUE_PATH "/resourceflavors/%s", escaped) : NULL;
    const cJSON *object = NULL;
    struct named_flavor flavor;

    *ret_outcome =
        path ? kueue_get(round->kueue, path, round->arena, &object, error) : OUTCOME_REFUSED;
    if (*ret_outcome != OUTCOME_OK)
        return false;
    *ret_outcome = OUTCOME_REFUSED;
    if (!flavor_view_decode(round->arena, object, &flavor.view, error))
        return false;
    const size_t size = strlen(name) + 1;
    flavor.name = memcpy(json_arena_alloc(round->arena, size), name, size);
    g_array_append_val(round->flavors, flavor);
    return true;
}

/* All flavors that the Workload needs. `ret_outcome` OUTCOME_UNKNOWN: another time they may be read. */
static bool read_flavors(struct round *round, const struct workload_view *workload,
                         enum outcome *ret_outcome, GError **error)
{
    g_autoptr(GPtrArray) names = pod_sets_flavors(workload);

    for (guint i = 0; i < names->len; i++) {
        const char *name = names->pdata[i];
        if (find_flavor(round, name) || read_flavor(round, name, ret_outcome, error))
            continue;
        g_prefix_error(error, "ResourceFlavor '%s': ", name);
        return false;
    }
    return true;
}

/* --- pods that have come -------------------------------------------------------------------- */

struct arrivals_copy {
    GHashTable *namespaces; /* see promises_namespaces */
    GArray *all;            /* struct arrived, whose strings and facts are its own */
};

static void clear_arrived(gpointer data)
{
    struct arrived *arrived = data;

    g_free((char *)arrived->uid);
    g_free((char *)arrived->ns);
    pod_facts_unref((struct pod_facts *)arrived->facts);
}

/* Under the copy's lock. */
static void collect_arrived(const struct node *node, void *data)
{
    const struct arrivals_copy *copy = data;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *one = node->allocations->pdata[i];
        const int64_t placed_s = one->assume_time_ns / NANO;
        const gint64 *since_s = g_hash_table_lookup(copy->namespaces, one->ns);
        if (!since_s || MAX(placed_s, one->created_s) < *since_s)
            continue;
        const struct arrived arrived = {g_strdup(one->uid), g_strdup(one->ns), placed_s,
                                        one->created_s, pod_facts_ref(one->facts)};
        g_array_append_val(copy->all, arrived);
    }
}

/* Those that are on the copy do not count as promised as well. */
static void look_for_pods(struct kueue *kueue, struct store *copy)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(struct arrived));

    g_array_set_clear_func(all, clear_arrived);
    worker_lock(&kueue->worker);
    promises_lapse(kueue->promises, kueue_now_s());
    g_autoptr(GHashTable) namespaces = promises_namespaces(kueue->promises);
    worker_unlock(&kueue->worker);
    if (g_hash_table_size(namespaces) == 0)
        return;
    struct arrivals_copy arrivals = {namespaces, all};
    node_walk_all(copy, collect_arrived, &arrivals);
    worker_lock(&kueue->worker);
    for (guint i = 0; i < all->len; i++)
        promises_see(kueue->promises, &g_array_index(all, struct arrived, i));
    promises_lapse(kueue->promises, kueue_now_s());
    worker_unlock(&kueue->worker);
}

/* --- answers -------------------------------------------------------------------------------- */

/* On a copy of the store, with all that was promised on it. */
static struct joint_fit *open_joint(struct kueue *kueue)
{
    struct joint_fit *joint = joint_fit_new(kueue->store);

    look_for_pods(kueue, joint_fit_copy(joint));
    worker_lock(&kueue->worker);
    g_autoptr(GPtrArray) owed = promises_owed(kueue->promises);
    worker_unlock(&kueue->worker);
    for (guint i = 0; i < owed->len; i++)
        joint_fit_owe(joint, owed->pdata[i]);
    return joint;
}

/* False: not now. */
static bool decide(struct round *round, const struct look *look, const struct pod_sets *pods,
                   struct answer *ret_answer)
{
    struct kueue *kueue = round->kueue;

    if (pods->sets->len > 0) {
        if (!round->joint)
            round->joint = open_joint(kueue);
        worker_lock(&kueue->worker);
        const bool noted = promises_take(kueue->promises, pods->ns);
        worker_unlock(&kueue->worker);
        if (!noted) {
            leave_for(kueue, look, CROWDED_MS);
            return false;
        }
        if (joint_fit_is_spent(round->joint))
            return false;
    }
    *ret_answer = joint_fit_ask(round->joint, pods);
    return true;
}

static bool is_our_check(const char *name, void *data)
{
    const struct kueue *kueue = data;

    return g_hash_table_contains(kueue->checks, name);
}

static enum outcome send_answer(struct kueue *kueue, const struct look *look,
                                const struct answer *answer, GError **error)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autofree char *path = path_of(look->waiting, "/status" KUEUE_MANAGER, error);
    struct json_writer writer;

    json_writer_init(&writer, body);
    worker_lock(&kueue->worker);
    answer_encode(&writer,
                  &(struct told_workload){&look->view, answer, is_our_check, kueue, kueue_now_s()});
    worker_unlock(&kueue->worker);
    return path ? kueue_apply(kueue, path, body, error) : OUTCOME_REFUSED;
}

/* Others may have written the Workload since it was read; the answer is for the same reservation alone. */
static bool tell(struct kueue *kueue, struct look *look, const struct answer *answer)
{
    g_autofree char *reserved_at = g_strdup(look->view.reserved_at);

    for (int i = 0; i < TRIES_MAX; i++) {
        g_autoptr(GError) failure = NULL;
        if (i > 0 && (!read_workload(kueue, look) || look->wish != WISH_ANSWER ||
                      g_strcmp0(look->view.reserved_at, reserved_at) != 0))
            return false;
        const enum outcome outcome = send_answer(kueue, look, answer, &failure);
        if (outcome == OUTCOME_OK)
            return true;
        if (outcome == OUTCOME_CONFLICT && i + 1 < TRIES_MAX)
            continue;
        say_failure(look, failure);
        leave_for(kueue, look, KUEUE_PAUSE_MS);
        return false;
    }
    return false;
}

static void conclude(struct kueue *kueue, const struct look *look, const struct answer *answer,
                     struct pod_sets *pods)
{
    metrics_count(COUNTER_KUEUE, answer->result);
    log_event_limited(LOG_LEVEL_INFO,
                      answer_lets_in(answer) ? "Workload let in" : "Workload sent back",
                      LOG_TEXT("namespace", look->waiting->ns),
                      LOG_TEXT("name", look->waiting->name), LOG_TEXT("why", answer->message));
    worker_lock(&kueue->worker);
    waiting_remove(kueue->waiting, look->waiting->uid);
    if (pods && answer_lets_in(answer))
        promises_add(kueue->promises, pods, kueue_now_s());
    worker_unlock(&kueue->worker);
}

/* What it was let in with is remembered again, by a replica that has not done it itself. */
static void remember(struct kueue *kueue, const struct look *look, struct pod_sets *pods)
{
    worker_lock(&kueue->worker);
    if (promises_take(kueue->promises, pods->ns))
        promises_add(kueue->promises, pods, look->ready_s);
    if (look->view.admitted)
        promises_admit(kueue->promises, pods->uid,
                       kueue_time(look->view.admitted_at, kueue_now_s()));
    waiting_remove(kueue->waiting, look->waiting->uid);
    worker_unlock(&kueue->worker);
}

static void answer_workload(struct round *round, struct look *look)
{
    struct kueue *kueue = round->kueue;
    g_autoptr(GError) failure = NULL;
    enum outcome outcome = OUTCOME_OK;

    if (!read_workload(kueue, look))
        return;
    g_autoptr(pod_sets) pods = read_flavors(round, &look->view, &outcome, &failure)
                                   ? pod_sets_new(&look->view, round->flavors,
                                                  &store_options(kueue->store)->dialects, &failure)
                                   : NULL;
    if (outcome == OUTCOME_UNKNOWN) {
        say_failure(look, failure);
        leave_for(kueue, look, KUEUE_PAUSE_MS);
        return;
    }
    if (look->wish == WISH_MEMORY) {
        if (pods)
            remember(kueue, look, pods);
        else
            be_done(kueue, look);
        return;
    }
    struct answer answer = {KUEUE_RESULT_UNREADABLE, NULL};
    if (!pods)
        answer = answer_of(KUEUE_RESULT_UNREADABLE, g_strdup(failure->message));
    else if (!decide(round, look, pods, &answer))
        return;
    if (tell(kueue, look, &answer))
        conclude(kueue, look, &answer, pods);
    g_free(answer.message);
}

/* --- all of them ---------------------------------------------------------------------------- */

void kueue_round(struct kueue *kueue)
{
    const int64_t began_ms = clock_ms();
    int64_t ignored;
    g_autoptr(json_arena) flavors_arena = json_arena_new();
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GArray) flavors = g_array_new(FALSE, FALSE, sizeof(struct named_flavor));
    struct round round = {kueue, flavors_arena, flavors, NULL};

    worker_lock(&kueue->worker);
    g_autoptr(GPtrArray) next = waiting_next(kueue->waiting, ROUND_MAX, began_ms, &ignored);
    worker_unlock(&kueue->worker);
    for (guint i = 0; i < next->len; i++) {
        g_autoptr(GError) failure = NULL;
        const struct waiting_workload *waiting = next->pdata[i];
        g_autofree char *path = path_of(waiting, "", &failure);
        struct look look = {.waiting = waiting, .path = path, .arena = arena};
        if (path)
            answer_workload(&round, &look);
        else
            be_done(kueue, &look);
    }
    joint_fit_free(round.joint);
    /* However many Workloads somebody makes, half of one CPU is what it takes to answer them. */
    kueue->round_after_ms = clock_ms() + MAX(kueue->options.round_ms, clock_ms() - began_ms);
}
