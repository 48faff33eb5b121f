/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/executor.h"

#include "core/fail.h"
#include "kube/clock.h"
#include "evict/drain.h"
#include "evict/eviction.h"

#define HAND_OVER_MS 60000
#define LOOK_US G_TIME_SPAN_SECOND

/* Whose steps are counted against a budget: a controller, a node, a namespace. */
struct execution {
    const struct executor *executor;
    GHashTable *taken;      /* "controller UID", "node NAME", "namespace NAME" -> how many */
    char *node;             /* where room is kept for the pod to admit, or NULL */
    struct kept_room *room; /* that, or NULL */
    bool idle;              /* the last step has moved nobody */
};

/* --- budgets ---------------------------------------------------------------------------------- */

static char *account(const char *kind, const char *name)
{
    return g_strconcat(kind, " ", name, NULL);
}

static bool is_left(const struct execution *execution, const char *kind, const char *name,
                    uint32_t most, GError **error)
{
    g_autofree char *key = account(kind, name);

    return most == 0 || GPOINTER_TO_UINT(g_hash_table_lookup(execution->taken, key)) < most ||
           fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                     "stopped: as many pods of %s %s have moved as may (%u)", kind, name, most);
}

static bool check_budgets(const struct execution *execution, const struct relocation_step *step,
                          GError **error)
{
    const struct executor_budgets *budgets = &execution->executor->budgets;

    return (!step->owner ||
            is_left(execution, "controller", step->owner, budgets->per_owner, error)) &&
           is_left(execution, "node", step->from, budgets->per_node, error) &&
           is_left(execution, "namespace", step->ns, budgets->per_namespace, error);
}

static void count(struct execution *execution, const char *kind, const char *name)
{
    char *key = account(kind, name);
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(execution->taken, key));

    g_hash_table_replace(execution->taken, key, GUINT_TO_POINTER(n + 1));
}

static void count_step(struct execution *execution, const struct executor_past *step)
{
    if (step->owner)
        count(execution, "controller", step->owner);
    count(execution, "node", step->node);
    count(execution, "namespace", step->ns);
}

/* How many pods this plan has moved already. */
static guint count_past(struct execution *execution)
{
    const GArray *past = execution->executor->past;

    for (guint i = 0; past && i < past->len; i++)
        count_step(execution, &g_array_index(past, struct executor_past, i));
    return past ? past->len : 0;
}

/* --- time ------------------------------------------------------------------------------------- */

static bool check_window(const struct executor *executor, GError **error)
{
    if (!executor->window || window_is_open(executor->window, g_get_real_time() / G_USEC_PER_SEC))
        return true;
    if (executor->paused)
        *executor->paused = true;
    return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                     "stopped: the window in which pods may be moved is closed");
}

static bool is_wanted(const struct executor *executor, GError **error)
{
    return !executor->is_wanted || executor->is_wanted(executor->data, error);
}

/* The step takes its place in the hour, unless it has to wait for so long. */
static bool book(const struct executor *executor, const struct relocation_step *step,
                 int64_t *ret_wait_ms, GError **error)
{
    const struct moved_pod pod = {step->uid, step->ns, step->from};

    *ret_wait_ms = 0;
    return executor->budgets.per_hour == 0 ||
           moves_book(executor->moves, &pod, executor->budgets.per_hour, ret_wait_ms, error) ||
           fail_within(error, "stopped: ");
}

/* Nothing is kept meanwhile, so that others may have it, and another plan has to be made afterwards. */
static bool wait_for_hour(const struct executor *executor, int64_t wait_ms, GError **error)
{
    const int64_t until_ms = clock_ms() + wait_ms;
    g_autofree char *text = g_strdup_printf(
        "as many pods have moved in this hour as may (%u); the next one waits %" G_GINT64_FORMAT
        " s",
        executor->budgets.per_hour, wait_ms / 1000 + 1);

    if (executor->paused) {
        *executor->paused = true;
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "%s", text);
    }
    executor->tell(executor->data, text);
    if (!keeping_set(executor->keeping, "", NULL, 0, error))
        return false;
    while (clock_ms() < until_ms) {
        if (!check_window(executor, error) || !is_wanted(executor, error))
            return false;
        g_usleep(LOOK_US);
    }
    return true;
}

/* --- one step --------------------------------------------------------------------------------- */

static char *describe(const struct relocation *plan, guint moved)
{
    const struct relocation_step *step = &g_array_index(plan->steps, struct relocation_step, 0);
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");

    return g_strdup_printf("%s: move %u of %u, %s/%s %s %s (since %s)", plan->goal, moved + 1,
                           moved + plan->steps->len, step->ns, step->name,
                           step->to ? "leaves" : "ends on", step->from, time);
}

static void set_room(struct execution *execution, const char *node, const struct kept_room *room)
{
    g_free(execution->node);
    kept_room_free(execution->room);
    execution->node = room ? g_strdup(node) : NULL;
    execution->room = room ? kept_room_dup(room) : NULL;
}

static void add_places(GArray *places, const GArray *seats)
{
    for (guint i = 0; i < seats->len; i++) {
        const struct relocation_seat *seat = &g_array_index(seats, struct relocation_seat, i);
        const struct keeping_place place = {seat->node, seat->room};
        g_array_append_val(places, place);
    }
}

/* Room for the pod to admit, or the group, and for the step's successor; the node that the pod leaves is only told,
 * unless nobody is to come back there. */
static bool keep(struct execution *execution, const struct relocation *plan, guint moved,
                 GError **error)
{
    const struct executor *executor = execution->executor;
    const struct relocation_step *step = &g_array_index(plan->steps, struct relocation_step, 0);
    g_autofree char *doing = describe(plan, moved);
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(struct keeping_place));
    const struct keeping_place of[] = {
        {step->from, step->left}, {plan->node, plan->room}, {step->to, step->room}};

    set_room(execution, plan->node, plan->room);
    g_array_append_vals(places, of, 1);
    for (size_t i = 1; i < G_N_ELEMENTS(of); i++) {
        if (of[i].room)
            g_array_append_vals(places, &of[i], 1);
    }
    add_places(places, plan->seats);
    return keeping_set(executor->keeping, doing,
                       (const struct keeping_place *)(const void *)places->data, places->len,
                       error);
}

/* The pod goes, and its successor is Ready; or it has gone by itself. */
static bool take_step(const struct executor *executor, const struct relocation_step *step,
                      const char *goal, guint n_ready, enum executor_event *ret_event,
                      GError **error)
{
    /* It does not say for whom: that is another tenant's affair. */
    g_autofree char *note =
        step->to
            ? g_strdup_printf("gpuledger plan makes room on %s; there is room for the pod's "
                              "successor on %s",
                              step->from, step->to)
            : g_strdup_printf("gpuledger plan makes room on %s; whether a successor of the pod "
                              "finds room was not asked",
                              step->from);
    struct drain_pod pod = {.ns = step->ns,
                            .name = step->name,
                            .uid = step->uid,
                            .note = note,
                            .counted = true,
                            .n_ready = n_ready,
                            .alone = !step->to};
    const struct drain_query query = {
        .client = executor->client,
        .store = executor->store,
        .whom = goal,
        .pods = &pod,
        .n_pods = 1,
        .ender = ENDER_PLAN,
        .permits = executor->permits,
        .leadership = executor->leadership,
        .term = executor->term,
        .force = executor->force,
        .timeout_ms = executor->timeout_ms,
        .progress = executor->tell,
        .go_on = executor->is_wanted,
        .data = executor->data,
    };
    bool ok = drain_run(&query, error);

    const bool stays = ok && pod.state == DRAIN_STAYS;
    if (stays)
        ok = fail_with(error, GPULEDGER_ERROR_INVALID, "%s/%s stays: %s", step->ns, step->name,
                       pod.why);
    if ((pod.lost || stays) && executor->note_lost)
        executor->note_lost(executor->data, step->ns, step->owner);
    *ret_event = !ok ? EXECUTOR_FAILED : pod.state == DRAIN_GONE ? EXECUTOR_GONE : EXECUTOR_MOVED;
    g_free(pod.why);
    return ok;
}

/* Whoever looks at the node finds out; nothing else depends on it. */
static void tell_node(const struct executor *executor, const struct executor_news *news)
{
    const struct relocation_step *step = news->step;
    g_autoptr(GError) failure = NULL;
    g_autofree char *text =
        news->event == EXECUTOR_FAILED ? g_strdup_printf("a plan has stopped: %s", news->why)
        : step->to ? g_strdup_printf("a plan has moved %s/%s off this node%s", step->ns, step->name,
                                     step->owner ? "; its successor is Ready" : "")
                   : g_strdup_printf("a plan has ended %s/%s on this node", step->ns, step->name);

    const struct pod_event event = {.cause = news->event == EXECUTOR_FAILED ? POD_EVENT_PLAN_STOPPED
                                                                            : POD_EVENT_PLAN_MOVED,
                                    .name = step->from,
                                    .uid = step->from,
                                    .note = text};
    if (eviction_tell(executor->client, &event, &failure) == OUTCOME_OK)
        return;
    g_autofree char *complaint =
        g_strdup_printf("no Event of node %s could be written: %s", step->from, failure->message);
    executor->tell(executor->data, complaint);
}

static bool note(const struct executor *executor, const struct executor_news *news, GError **error)
{
    if (news->event == EXECUTOR_MOVED || news->event == EXECUTOR_FAILED)
        tell_node(executor, news);
    return !executor->note || executor->note(executor->data, news, error);
}

/* Before anything is done: what it needs is there. */
static bool may_begin(const struct execution *execution, const struct relocation *plan,
                      struct executor_news *news, GError **error)
{
    const struct executor *executor = execution->executor;
    const struct relocation_step *step = news->step;

    return check_window(executor, error) && is_wanted(executor, error) &&
           (!executor->may_go_on || executor->may_go_on(executor->data, plan, error)) &&
           keeping_check(executor->keeping, error) && check_budgets(execution, step, error) &&
           (!step->owner || eviction_count_ready(executor->client, step->ns, step->owner,
                                                 &news->n_ready, error) == OUTCOME_OK);
}

/* The first one of the plan, as far as it is allowed; or the hour is full for so long, and nothing is done. Idle:
 * nobody was moved. */
static bool step_once(struct execution *execution, const struct relocation *plan, guint moved,
                      int64_t *ret_wait_ms, GError **error)
{
    const struct executor *executor = execution->executor;
    const struct relocation_step *step = &g_array_index(plan->steps, struct relocation_step, 0);
    struct executor_news news = {.event = EXECUTOR_STEP, .step = step};
    GError *failure = NULL;

    if (!may_begin(execution, plan, &news, error) || !book(executor, step, ret_wait_ms, error))
        return false;
    execution->idle = *ret_wait_ms > 0;
    if (execution->idle)
        return true;
    if (!keep(execution, plan, moved, error) || !note(executor, &news, error))
        return false;
    const bool taken = take_step(executor, step, plan->goal, news.n_ready, &news.event, &failure);
    news.why = taken ? NULL : failure->message;
    if (!taken) {
        note(executor, &news, NULL);
        g_propagate_prefixed_error(error, failure, "stopped: ");
        return false;
    }
    if (step->left && !keeping_narrow(executor->keeping, error))
        return false;
    execution->idle = news.event == EXECUTOR_GONE;
    if (!execution->idle)
        count_step(execution, &(struct executor_past){step->owner, step->from, step->ns});
    return note(executor, &news, error);
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool is_placed(const struct executor *executor, const char *ns, const char *name)
{
    g_auto(evictee) pod = {0};

    return evictee_read(executor->client, ns, name, &pod, NULL) == OUTCOME_OK && pod.placed;
}

/* Looks once a second. False: time is over, or it is not wanted any more, which is told. */
static bool await_node(const struct executor *executor, const char *ns, const char *name,
                       int64_t until_ms)
{
    while (clock_ms() < until_ms && is_wanted(executor, NULL)) {
        if (is_placed(executor, ns, name))
            return true;
        g_usleep(LOOK_US);
    }
    g_autofree char *text =
        g_strdup_printf("%s/%s has no node yet; the room is not kept any longer", ns, name);
    executor->tell(executor->data, text);
    return false;
}

/* The room is kept for the pod, or the pods of the group, until they have nodes. */
static bool hand_over(const struct execution *execution, const struct relocation *last,
                      GError **error)
{
    const struct executor *executor = execution->executor;
    const int64_t until_ms = clock_ms() + MIN(executor->timeout_ms, HAND_OVER_MS);
    const struct keeping_place place = {execution->node, execution->room};
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(struct keeping_place));

    if (executor->ns && execution->room)
        g_array_append_val(places, place);
    add_places(places, last->seats);
    if (places->len > 0 &&
        !keeping_set(executor->keeping, last->goal,
                     (const struct keeping_place *)(const void *)places->data, places->len, error))
        return false;
    if (executor->ns && !await_node(executor, executor->ns, executor->name, until_ms) &&
        executor->in_vain)
        *executor->in_vain = true;
    for (guint i = 0; i < last->seats->len; i++) {
        const struct relocation_seat *seat = &g_array_index(last->seats, struct relocation_seat, i);
        if (!await_node(executor, seat->ns, seat->name, until_ms))
            break;
    }
    return true;
}

/* The plan does not come closer than with so many moves left, or there is none. */
static bool stop(const struct executor *executor, const struct relocation *plan, guint moved,
                 guint left, GError **error)
{
    const char *s = moved == 1 ? "" : "s";
    const bool closer = plan->reached && plan->steps->len < left;

    if (executor->stalled && !closer)
        *executor->stalled = true;
    if (!plan->reached)
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "stopped after %u move%s: %s", moved,
                         s, plan->why);
    return closer ||
           fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                     "stopped after %u move%s: as many are needed as before the last, since "
                     "other pods came or went, or its successor took the room",
                     moved, s);
}

static bool look_again(const struct executor *executor, struct relocation **plan, GError **error)
{
    struct relocation *next = executor->look(executor->data, error);

    if (!next)
        return false;
    relocation_free(*plan);
    *plan = next;
    return true;
}

static bool run(struct execution *execution, struct relocation **plan, guint *moved, GError **error)
{
    const struct executor *executor = execution->executor;

    while ((*plan)->steps->len > 0) {
        int64_t wait_ms;

        if (!step_once(execution, *plan, *moved, &wait_ms, error) ||
            (wait_ms > 0 && !wait_for_hour(executor, wait_ms, error)))
            return false;
        const guint left = execution->idle ? G_MAXUINT : (*plan)->steps->len;
        *moved += !execution->idle;
        if (!look_again(executor, plan, error) || !stop(executor, *plan, *moved, left, error))
            return false;
    }
    if (*moved == 0)
        return true;
    return (!executor->may_go_on || executor->may_go_on(executor->data, *plan, error)) &&
           hand_over(execution, *plan, error);
}

bool executor_run(const struct executor *executor, struct relocation **plan, guint *ret_moved,
                  GError **error)
{
    struct execution execution = {
        .executor = executor,
        .taken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
    };

    *ret_moved = count_past(&execution);
    const bool ok = (*plan)->reached ? run(&execution, plan, ret_moved, error)
                                     : stop(executor, *plan, *ret_moved, G_MAXUINT, error);
    set_room(&execution, NULL, NULL);
    g_hash_table_unref(execution.taken);
    return ok;
}
