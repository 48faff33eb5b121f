/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/half_groups.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/worker.h"
#include "kube/clock.h"
#include "maintain/evict/eviction.h"
#include "policy/victims/may_end.h"

#include <string.h>

#define EVERY_MS 2000
#define MINUTE_MS 60000
#define LOOK_GROUPS_MAX 8 /* that one look tries to end */
#define PAUSE_MAX_MS 600000

struct half_groups {
    struct api_client *client;
    struct store *store;
    struct leadership *leadership;
    struct worker worker;
    GHashTable *sent;   /* UIDs of pods that are about to end */
    GHashTable *turns;  /* namespace -> guint64 *: the turn in which a group of it was tried last */
    GHashTable *pauses; /* title of a group that could not be ended -> struct pause * */
    uint64_t turn;      /* the last */
    int64_t minute_ms;
    uint64_t term;                           /* in which it was looked last */
    int64_t last_ms[HALF_GROUPS_MINUTE_MAX]; /* when each of the last evictions was, in turn */
    unsigned next;                           /* of these, which the next one replaces */
};

/* A group that could not be ended is tried again after this, which doubles each time. */
struct pause {
    int64_t last_ms, until_ms;
};

struct bound_pod {
    char *ns, *name, *uid;
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
        const struct bound_pod pod = {g_strdup(held->ns), g_strdup(held->name), g_strdup(*uid)};
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

/* In the term in which it has begun to look. */
static bool serves(const struct half_groups *half)
{
    return leadership_term(half->leadership) == half->term;
}

static void note(const struct half_group *group, const struct evictee *evictee,
                 enum group_eviction_result result, const char *why)
{
    metrics_count(COUNTER_GROUP_EVICTIONS, result);
    if (result == GROUP_EVICTION_EVICTED)
        log_event(LOG_LEVEL_WARN, "evicted a pod of a group that stays half",
                  LOG_TEXT("group", group->title), LOG_TEXT("pod", evictee->name),
                  LOG_NUMBER("bound", group->bound), LOG_NUMBER("needs", group->min));
    else
        log_event_limited(LOG_LEVEL_WARN, "a pod of a group that stays half cannot be evicted",
                          LOG_TEXT("group", group->title), LOG_TEXT("pod", evictee->name),
                          LOG_TEXT("why", why));
}

/* False: it went wrong, or a budget has nothing to give. */
static bool evict(struct half_groups *half, const struct half_group *group,
                  const struct evictee *evictee, bool try)
{
    g_autoptr(GError) failure = NULL;
    const enum eviction outcome = eviction_send(half->client, evictee, try, &failure);

    if (outcome != EVICTION_DONE)
        note(group, evictee,
             outcome == EVICTION_LATER ? GROUP_EVICTION_WAITS : GROUP_EVICTION_FAILED,
             failure->message);
    else if (!try)
        note(group, evictee, GROUP_EVICTION_EVICTED, NULL);
    return outcome == EVICTION_DONE;
}

/* Those of its pods that have to end. False: one of them cannot be read, or does not end. */
static bool read_pods(struct half_groups *half, const struct half_group *group, GArray *evictees)
{
    for (guint i = 0; i < group->pods->len; i++) {
        const struct bound_pod *pod = &g_array_index(group->pods, struct bound_pod, i);
        g_autoptr(GError) failure = NULL;
        struct evictee evictee = {0};
        if (g_hash_table_contains(half->sent, pod->uid))
            continue;
        const enum outcome outcome =
            evictee_read(half->client, pod->ns, pod->name, &evictee, &failure);
        if (outcome != OUTCOME_OK && outcome != OUTCOME_NOT_FOUND) {
            note(group, &(struct evictee){.name = pod->name}, GROUP_EVICTION_FAILED,
                 failure->message);
            return false;
        }
        if (outcome == OUTCOME_NOT_FOUND || evictee.ended || evictee.ends ||
            g_strcmp0(evictee.uid, pod->uid) != 0) {
            evictee_clear(&evictee);
            continue;
        }
        const enum pod_tie tie = may_end_not(ENDER_GANG_STRICT, false, evictee.ties);
        if (tie) {
            note(group, &evictee, GROUP_EVICTION_FAILED, may_end_text(tie));
            evictee_clear(&evictee);
            return false;
        }
        g_array_append_val(evictees, evictee);
    }
    return true;
}

/* Nobody knows how many pods whoever served before has evicted a moment ago: as many as may be. */
static void begin_term(struct half_groups *half, uint64_t term)
{
    const int64_t now_ms = clock_ms();

    if (term == half->term)
        return;
    half->term = term;
    for (size_t i = 0; i < G_N_ELEMENTS(half->last_ms); i++)
        half->last_ms[i] = now_ms;
}

/* As many were evicted within the minute that ends now as may be. */
static bool is_full(const struct half_groups *half)
{
    return clock_ms() - half->last_ms[half->next] < half->minute_ms;
}

static void take_from_minute(struct half_groups *half)
{
    half->last_ms[half->next] = clock_ms();
    half->next = (half->next + 1) % G_N_ELEMENTS(half->last_ms);
}

/* False: it could not be ended whole. */
static bool end_group(struct half_groups *half, const struct half_group *group)
{
    g_autoptr(GArray) evictees = g_array_new(FALSE, TRUE, sizeof(struct evictee));
    g_autofree char *why = g_strdup_printf(
        "Only %u pods of the group %s are bound, of the %u that it needs, for longer than its "
        "deadline. It comes again as a whole (--gang-strict).",
        group->bound, group->title, group->min);
    bool ok;

    g_array_set_clear_func(evictees, (GDestroyNotify)evictee_clear);
    ok = read_pods(half, group, evictees);
    for (guint i = 0; ok && i < evictees->len && worker_goes_on(&half->worker); i++)
        ok = evict(half, group, &g_array_index(evictees, struct evictee, i), true);
    for (guint i = 0; ok && i < evictees->len && worker_goes_on(&half->worker); i++) {
        const struct evictee *evictee = &g_array_index(evictees, struct evictee, i);
        if (!serves(half) || !is_still_half(half, evictee->uid) || is_full(half))
            return true;
        take_from_minute(half);
        ok = evict(half, group, evictee, false);
        if (!ok)
            return false;
        g_hash_table_add(half->sent, g_strdup(evictee->uid));
        eviction_tell(half->client, evictee, why, NULL); /* an Event that is lost is no harm */
    }
    return ok;
}

/* --- turns --------------------------------------------------------------------------------------- */

/* It is tried again later, and later each time. */
static void put_off(struct half_groups *half, const struct half_group *group)
{
    struct pause *pause = g_hash_table_lookup(half->pauses, group->title);

    if (!pause) {
        pause = g_new0(struct pause, 1);
        g_hash_table_insert(half->pauses, g_strdup(group->title), pause);
    }
    pause->last_ms = CLAMP(2 * pause->last_ms, EVERY_MS, PAUSE_MAX_MS);
    pause->until_ms = clock_ms() + pause->last_ms;
}

static bool is_put_off(const struct half_groups *half, const struct half_group *group)
{
    const struct pause *pause = g_hash_table_lookup(half->pauses, group->title);

    return pause && clock_ms() < pause->until_ms;
}

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
    g_hash_table_foreach_remove(half->pauses, is_unknown, titles);
}

/* A few; those that are left come first at the next look. */
static void end_some(struct half_groups *half, GPtrArray *groups)
{
    forget_others(half, groups);
    for (int n = 0; n < LOOK_GROUPS_MAX && worker_goes_on(&half->worker) && !is_full(half); n++) {
        struct half_group *group = take_next(half, groups);
        if (!group)
            return;
        if (!end_group(half, group))
            put_off(half, group);
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
        begin_term(half, term);
        g_autoptr(GPtrArray) groups = find_groups(half);
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
    half->minute_ms = options->minute_ms != 0 ? options->minute_ms : MINUTE_MS;
    half->sent = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    half->turns = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    half->pauses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
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
    g_hash_table_unref(half->pauses);
    g_free(half);
}
