/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/half_groups.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/worker.h"
#include "kube/clock.h"
#include "evict/door.h"
#include "evict/pauses.h"

#include <string.h>

#define EVERY_MS 2000
#define LOOK_GROUPS_MAX 8 /* that one look tries to end */
#define PAUSE_MAX_MS 600000

struct half_groups {
    struct api_client *client;
    struct store *store;
    struct leadership *leadership;
    struct permits *permits;
    struct worker worker;
    GHashTable *sent;  /* UIDs of pods that are about to end */
    GHashTable *turns; /* namespace -> guint64 *: the turn in which a group of it was tried last */
    GHashTable *
        owners; /* title of a group -> UID of the controller of one of its pods, or ""; those that are known */
    struct pauses *pauses; /* of groups that could not be ended */
    uint64_t turn;         /* the last */
    uint64_t term;         /* in which it was looked last */
};

struct bound_pod {
    char *ns, *name, *uid;
    bool ends;
};

/* A copy of one, to be read without the lock. */
struct half_group {
    char *ns, *title;
    uint32_t bound, min;
    GArray *pods; /* struct bound_pod */
};

static void bound_pod_clear(gpointer data)
{
    struct bound_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->name);
    g_free(pod->uid);
}

static void half_group_free(gpointer data)
{
    struct half_group *group = data;

    g_free(group->ns);
    g_free(group->title);
    g_array_unref(group->pods);
    g_free(group);
}

/* --- which --------------------------------------------------------------------------------------- */

struct collecting {
    struct store *store;
    GPtrArray *groups; /* struct half_group */
    GHashTable *bound; /* UIDs of their pods */
};

/* To end who came before the group was told to need more would bring nobody back whom it lacks. */
static bool may_end(const struct gang_half *half)
{
    return half->ours && half->raised_from == 0;
}

/* Under the lock. */
static void collect(const struct gang_half *half, void *data)
{
    const struct collecting *collecting = data;
    g_auto(GStrv) uids = gangs_bound(store_gangs(collecting->store), half->uid);
    struct half_group *group = g_new0(struct half_group, 1);

    group->ns = g_strdup(half->group.ns);
    group->title = g_strdup_printf("%s/%s", half->group.ns, half->group.name);
    group->bound = half->group.bound;
    group->min = half->group.min;
    group->pods = g_array_new(FALSE, TRUE, sizeof(struct bound_pod));
    g_array_set_clear_func(group->pods, bound_pod_clear);
    for (char **uid = uids; *uid; uid++) {
        const struct allocation *held = ledger_get(store_ledger(collecting->store), *uid);
        g_hash_table_add(collecting->bound, g_strdup(*uid));
        if (!held)
            continue;
        const struct bound_pod pod = {g_strdup(held->ns), g_strdup(held->name), g_strdup(*uid),
                                      held->terminating};
        g_array_append_val(group->pods, pod);
    }
    if (may_end(half))
        g_ptr_array_add(collecting->groups, group);
    else
        half_group_free(group);
}

static gboolean is_gone(gpointer uid, gpointer value, gpointer bound)
{
    return !g_hash_table_contains(bound, uid);
}

static GPtrArray *find_groups(struct half_groups *half)
{
    g_autoptr(GHashTable) bound = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    struct collecting collecting = {half->store, g_ptr_array_new_with_free_func(half_group_free),
                                    bound};
    struct moment moment;

    store_decide(half->store, &moment);
    gangs_each_half(store_gangs(half->store), moment.now_ms, collect, &collecting);
    store_unlock(half->store);
    g_hash_table_foreach_remove(half->sent, is_gone, bound);
    return collecting.groups;
}

struct searching {
    const char *uid;
    struct store *store;
    bool found;
};

/* Under the lock. */
static void look_for(const struct gang_half *half, void *data)
{
    struct searching *searching = data;
    g_auto(GStrv) uids = gangs_bound(store_gangs(searching->store), half->uid);

    searching->found |= may_end(half) && g_strv_contains((const char *const *)uids, searching->uid);
}

/* Its other pods may have come since. */
static bool is_still_half(struct half_groups *half, const char *uid)
{
    struct searching searching = {.uid = uid, .store = half->store};
    struct moment moment;

    store_decide(half->store, &moment);
    gangs_each_half(store_gangs(half->store), moment.now_ms, look_for, &searching);
    store_unlock(half->store);
    return searching.found;
}

/* --- its end ------------------------------------------------------------------------------------- */

static void note(const struct half_group *group, const char *pod, enum door_answer answer,
                 const char *why)
{
    if (answer == DOOR_OPEN)
        log_event(LOG_LEVEL_WARN, "evicted a pod of a group that stays half",
                  LOG_TEXT("group", group->title), LOG_TEXT("pod", pod),
                  LOG_NUMBER("bound", group->bound), LOG_NUMBER("needs", group->min));
    else
        log_event_limited(
            answer == DOOR_OBSERVED ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
            answer == DOOR_OBSERVED ? "a pod of a group that stays half would be evicted"
                                    : "a pod of a group that stays half cannot be evicted",
            LOG_TEXT("group", group->title), LOG_TEXT("pod", pod), LOG_TEXT("why", why));
}

static void note_going(struct limiter *limiter, const struct half_group *group, int64_t now_ms)
{
    for (guint i = 0; i < group->pods->len; i++) {
        const struct bound_pod *pod = &g_array_index(group->pods, struct bound_pod, i);
        if (pod->ends && !limiter_has(limiter, pod->uid))
            limiter_note_going(limiter, ENDER_GANG_STRICT, pod->ns, pod->uid, now_ms);
    }
}

/* The replica that served before has evicted those that end, perhaps, and within the last minute others that are gone. */
static void begin_term(struct half_groups *half, uint64_t term, const GPtrArray *groups)
{
    int64_t now_ms;

    if (term == half->term)
        return;
    half->term = term;
    struct limiter *limiter = permits_lock(half->permits, &now_ms);
    for (guint i = 0; i < groups->len; i++)
        note_going(limiter, groups->pdata[i], now_ms);
    limiter_fill(limiter, ENDER_GANG_STRICT, now_ms);
    permits_unlock(half->permits);
}

/* One of its pods. */
struct ending {
    struct half_groups *half;
    const struct half_group *group;
    struct door_order order;
};

/* Right before its end. */
static bool is_wanted(void *data, GError **error)
{
    const struct ending *ending = data;

    return is_still_half(ending->half, ending->order.uid);
}

static void prepare(struct ending *ending, struct half_groups *half, const struct half_group *group,
                    const struct bound_pod *pod, const char *why)
{
    *ending = (struct ending){.half = half,
                              .group = group,
                              .order = {.client = half->client,
                                        .store = half->store,
                                        .whom = group->title,
                                        .ender = ENDER_GANG_STRICT,
                                        .permits = half->permits,
                                        .ns = pod->ns,
                                        .name = pod->name,
                                        .uid = pod->uid,
                                        .note = why,
                                        .leadership = half->leadership,
                                        .term = half->term,
                                        .is_wanted = is_wanted,
                                        .data = ending}};
}

static bool fails(const struct ending *ending, enum door_answer answer, const GError *failure)
{
    const bool failed = answer == DOOR_STAYS || answer == DOOR_LATER || answer == DOOR_OBSERVED ||
                        answer == DOOR_FAILED || answer == DOOR_UNKNOWN;

    if (failed)
        note(ending->group, ending->order.name, answer, failure->message);
    return failed;
}

static const char *owner_of(const struct half_groups *half, const struct half_group *group)
{
    return g_hash_table_lookup(half->owners, group->title);
}

/* Of the first of its pods that was read, or could not be. */
static void note_owner(struct half_groups *half, const struct half_group *group, const char *owner)
{
    if (!owner_of(half, group))
        g_hash_table_insert(half->owners, g_strdup(group->title), g_strdup(owner ? owner : ""));
}

/* Of which nothing is known yet is not. */
static bool is_put_off(const struct half_groups *half, const struct half_group *group)
{
    const char *owner = owner_of(half, group);

    return owner && pauses_left(half->pauses, group->ns, owner, clock_ms()) > 0;
}

/* Looks at it and tries it. False: the group cannot end. `ret_goes`: it is there to be ended. */
static bool look(const struct ending *ending, struct evictee *ret_evictee, bool *ret_goes)
{
    g_autoptr(GError) failure = NULL;
    enum door_answer answer = door_look(&ending->order, ret_evictee, &failure);

    *ret_goes = answer == DOOR_OPEN;
    note_owner(ending->half, ending->group, ret_evictee->owner);
    if (is_put_off(ending->half, ending->group))
        return false;
    if (*ret_goes)
        answer = door_try(&ending->order, ret_evictee, &failure);
    return !fails(ending, answer, failure);
}

/* False: it could not be ended. `ret_wanted`: nor is it to be. */
static bool end(const struct ending *ending, const struct evictee *evictee, bool *ret_wanted)
{
    g_autoptr(GError) failure = NULL;
    const enum door_answer answer = door_end(&ending->order, evictee, &failure);

    *ret_wanted = answer != DOOR_UNWANTED;
    if (answer == DOOR_OPEN) {
        note(ending->group, evictee->name, answer, NULL);
        g_hash_table_add(ending->half->sent, g_strdup(evictee->uid));
    }
    return !fails(ending, answer, failure);
}

static void clear_evictee(void *evictee)
{
    evictee_clear(evictee);
}

/* False: it could not be ended whole. */
static bool end_group(struct half_groups *half, const struct half_group *group)
{
    g_autofree char *why = g_strdup_printf(
        "Only %u pods of the group %s are bound, of the %u that it needs, for longer than its "
        "deadline. It comes again as a whole (--gang-strict).",
        group->bound, group->title, group->min);
    g_autofree struct ending *endings = g_new0(struct ending, group->pods->len);
    g_autoptr(GArray) evictees = g_array_new(FALSE, TRUE, sizeof(struct evictee));
    guint n = 0;
    bool ok = true, goes = true;

    g_array_set_clear_func(evictees, clear_evictee);
    for (guint i = 0; ok && i < group->pods->len && worker_goes_on(&half->worker); i++) {
        const struct bound_pod *pod = &g_array_index(group->pods, struct bound_pod, i);
        struct evictee evictee = {0};
        if (g_hash_table_contains(half->sent, pod->uid))
            continue;
        prepare(&endings[n], half, group, pod, why);
        ok = look(&endings[n], &evictee, &goes);
        n += ok && goes;
        if (ok && goes)
            g_array_append_val(evictees, evictee);
        else
            evictee_clear(&evictee);
    }
    goes = true;
    for (guint i = 0; ok && goes && i < n && worker_goes_on(&half->worker); i++)
        ok = end(&endings[i], &g_array_index(evictees, struct evictee, i), &goes);
    return ok;
}

/* --- turns --------------------------------------------------------------------------------------- */

static uint64_t last_turn(const struct half_groups *half, const struct half_group *group)
{
    const guint64 *turn = g_hash_table_lookup(half->turns, group->ns);

    return turn ? *turn : 0;
}

/* Of the namespace whose last turn is longest ago; it is taken out of the list. NULL: none is left. */
static struct half_group *take_next(struct half_groups *half, GPtrArray *groups)
{
    guint next = groups->len;

    for (guint i = 0; i < groups->len; i++) {
        if (!is_put_off(half, groups->pdata[i]) &&
            (next == groups->len ||
             last_turn(half, groups->pdata[i]) < last_turn(half, groups->pdata[next])))
            next = i;
    }
    if (next == groups->len)
        return NULL;
    struct half_group *group = g_ptr_array_steal_index(groups, next);
    const guint64 turn = ++half->turn;
    g_hash_table_replace(half->turns, g_strdup(group->ns), g_memdup2(&turn, sizeof turn));
    return group;
}

static gboolean is_unknown(gpointer key, gpointer value, gpointer known)
{
    return !g_hash_table_contains(known, key);
}

/* What is remembered of namespaces and groups that are half no more. */
static void forget_others(struct half_groups *half, const GPtrArray *groups)
{
    g_autoptr(GHashTable) namespaces = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) titles = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < groups->len; i++) {
        const struct half_group *group = groups->pdata[i];
        g_hash_table_add(namespaces, group->ns);
        g_hash_table_add(titles, group->title);
    }
    g_hash_table_foreach_remove(half->turns, is_unknown, namespaces);
    g_hash_table_foreach_remove(half->owners, is_unknown, titles);
}

/* Whether a pod of some namespace may be evicted at all. */
static bool may_begin(const struct half_groups *half)
{
    const enum limit limit = permits_forbid(half->permits, ENDER_GANG_STRICT, NULL);
    g_autofree char *stopped = permits_why_stopped(half->permits);

    return !stopped && (limit == LIMIT_NONE || limit == LIMIT_NAMESPACE);
}

/* Of the first of its pods. */
static void tell_paused(struct half_groups *half, const struct half_group *group, int64_t pause_ms)
{
    const struct bound_pod *pod = &g_array_index(group->pods, struct bound_pod, 0);
    g_autofree char *note = g_strdup_printf(
        "The group %s stays half and cannot be ended; nobody tries for %" G_GINT64_FORMAT
        " s (--gang-strict).",
        group->title, pause_ms / 1000);
    struct ending ending;

    if (group->pods->len == 0)
        return;
    prepare(&ending, half, group, pod, NULL);
    door_tell(&ending.order, DOOR_PAUSED, note);
}

/* It is tried again later if it could not be ended, and later each time. */
static void try_group(struct half_groups *half, const struct half_group *group)
{
    const guint n_sent = g_hash_table_size(half->sent);
    const bool ok = end_group(half, group);
    const char *owner = owner_of(half, group);

    const int64_t pause_ms = ok ? 0 : pauses_begin(half->pauses, group->ns, owner, clock_ms());

    if (pause_ms > 0)
        tell_paused(half, group, pause_ms);
    else if (ok && g_hash_table_size(half->sent) > n_sent)
        pauses_end(half->pauses, group->ns, owner);
}

/* A few; those that are left come first at the next look. */
static void end_some(struct half_groups *half, GPtrArray *groups)
{
    forget_others(half, groups);
    for (int n = 0; n < LOOK_GROUPS_MAX && worker_goes_on(&half->worker); n++) {
        struct half_group *group = may_begin(half) ? take_next(half, groups) : NULL;
        if (!group)
            return;
        try_group(half, group);
        half_group_free(group);
    }
}

static void *run(void *data)
{
    struct half_groups *half = data;

    while (worker_rest(&half->worker, EVERY_MS)) {
        const uint64_t term = leadership_term(half->leadership);
        if (!store_is_synced(half->store) || term == 0)
            continue;
        g_autoptr(GPtrArray) groups = find_groups(half);
        begin_term(half, term, groups);
        end_some(half, groups);
    }
    return NULL;
}

struct half_groups *half_groups_start(const struct half_groups_options *options, GError **error)
{
    struct half_groups *half = g_new0(struct half_groups, 1);

    half->client = options->client;
    half->store = options->store;
    half->leadership = options->leadership;
    half->permits = options->permits;
    half->sent = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    half->turns = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    half->owners = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    half->pauses = pauses_new(EVERY_MS, PAUSE_MAX_MS);
    worker_init(&half->worker);
    if (!worker_start(&half->worker, run, half, error))
        g_clear_pointer(&half, half_groups_free);
    return half;
}

void half_groups_free(struct half_groups *half)
{
    if (!half)
        return;
    worker_release(&half->worker);
    g_hash_table_unref(half->sent);
    g_hash_table_unref(half->turns);
    g_hash_table_unref(half->owners);
    pauses_free(half->pauses);
    g_free(half);
}
