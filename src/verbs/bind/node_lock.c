/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/bind/node_lock.h"

#include "base/log.h"

#include <gpuledger/error.h>
#include <string.h>

#define LOOK_AGAIN_MS 500
#define RELEASE_TRIES 5

/* "TIME,NAMESPACE,NAME"; a lock that names nobody is as good as free once it is old. */
struct holder {
    int64_t age_s;
    const char *ns, *name; /* "" */
};

static struct holder read_holder(char **parts)
{
    struct holder holder = {INT64_MAX, "", ""};
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autoptr(GDateTime) time = *parts ? g_date_time_new_from_iso8601(parts[0], utc) : NULL;

    if (time)
        holder.age_s = g_get_real_time() / G_USEC_PER_SEC - g_date_time_to_unix(time);
    if (g_strv_length(parts) == 3) {
        holder.ns = parts[1];
        holder.name = parts[2];
    }
    return holder;
}

static bool is_ahead(const struct holder *holder)
{
    return holder->age_s < -NODE_LOCK_AHEAD_S;
}

/* Its time says nothing for it any more. */
static bool is_old(const struct holder *holder)
{
    return holder->age_s >= NODE_LOCK_STALE_S || is_ahead(holder);
}

static char *make_value(const struct node_lock *lock)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    return g_strdup_printf("%s,%s,%s", time, lock->ns, lock->name);
}

static bool is_ours(const struct node_lock *lock, const char *value)
{
    g_auto(GStrv) parts = g_strsplit(value, ",", 4);
    const struct holder holder = read_holder(parts);

    return g_str_equal(holder.ns, lock->ns) && g_str_equal(holder.name, lock->name);
}

/* Whether the plugin will never serve whom the lock names. */
static bool is_left_behind(const struct node_lock *lock, struct json_arena *arena,
                           const char *value, int64_t until_ms)
{
    const struct dialect_options *options = &store_options(lock->store)->dialects;
    g_auto(GStrv) parts = g_strsplit(value, ",", 4);
    const struct holder holder = read_holder(parts);
    struct pod_view pod = {0};

    if (!*holder.name)
        return is_old(&holder);
    switch (lock->cluster->ops->get_pod(lock->cluster, arena, holder.ns, holder.name, until_ms,
                                        &pod, NULL)) {
    case OUTCOME_OK:
        break;
    case OUTCOME_NOT_FOUND:
        return true;
    case OUTCOME_CONFLICT:
    case OUTCOME_REFUSED:
    case OUTCOME_UNKNOWN:
        return false;
    }
    if (pod_view_is_terminal(&pod))
        return true;
    if (!pod_view_is_bound(&pod))
        return is_old(&holder);
    g_autoptr(allocation) held = lock->dialect->read_allocation(&pod, options, NULL);
    return !g_str_equal(pod.node_name, lock->node) || !held || !held->waiting;
}

static enum outcome set(const struct node_lock *lock, const struct node_view *node,
                        const char *value, int64_t until_ms, GError **error)
{
    const struct node_annotation annotation = {
        .node = lock->node,
        .version = node->resource_version,
        .key = lock->dialect->lock_key,
        .value = value,
    };
    return lock->cluster->ops->annotate_node(lock->cluster, &annotation, until_ms, error);
}

static void tell_taken(const struct node_lock *lock, const char *value)
{
    g_auto(GStrv) parts = g_strsplit(value, ",", 4);
    const struct holder holder = read_holder(parts);

    log_event(LOG_LEVEL_WARN,
              is_ahead(&holder) ? "took over the lock of a node, whose time is ahead of this clock"
                                : "took over the lock of a node",
              LOG_TEXT("node", lock->node), LOG_TEXT("was", value), LOG_TEXT("pod", lock->name));
}

/* One look at the Node. OUTCOME_CONFLICT: the lock is another's, or the Node has changed meanwhile,
 * which `ret_raced` tells. */
static enum outcome try(const struct node_lock *lock, int64_t until_ms, bool *ret_raced,
                        GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct node_view node = {0};

    *ret_raced = false;
    const enum outcome outcome =
        lock->cluster->ops->get_node(lock->cluster, arena, lock->node, until_ms, &node, error);
    if (outcome != OUTCOME_OK)
        return outcome;
    const char *value = string_pairs_get(&node.annotations, lock->dialect->lock_key);
    if (value && is_ours(lock, value))
        return OUTCOME_OK;
    if (value && !is_left_behind(lock, arena, value, until_ms)) {
        g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT, NODE_LOCK_HELD);
        return OUTCOME_CONFLICT;
    }
    if (value)
        tell_taken(lock, value);
    g_autofree char *own = make_value(lock);
    const enum outcome written = set(lock, &node, own, until_ms, error);
    *ret_raced = written == OUTCOME_CONFLICT;
    return written;
}

/* Until something of the cluster has changed, or it is time to look again. */
static void rest(const struct node_lock *lock, int64_t until_ms)
{
    store_lock(lock->store);
    store_wait(lock->store, lock->node, NULL,
               MIN(until_ms, g_get_monotonic_time() / 1000 + LOOK_AGAIN_MS));
    store_unlock(lock->store);
}

static bool is_needed(const struct node_lock *lock)
{
    return lock->dialect && lock->dialect->lock_key && lock->cluster->ops->annotate_node;
}

enum outcome node_lock_take(const struct node_lock *lock, int64_t until_ms, GError **error)
{
    if (!is_needed(lock))
        return OUTCOME_OK;
    for (;;) {
        GError *failure = NULL;
        bool raced;
        const enum outcome outcome = try(lock, until_ms, &raced, &failure);
        const bool again = outcome == OUTCOME_CONFLICT || outcome == OUTCOME_UNKNOWN;
        if (outcome == OUTCOME_OK)
            return OUTCOME_OK;
        if (!again || g_get_monotonic_time() / 1000 >= until_ms) {
            g_propagate_prefixed_error(error, failure,
                                       "the lock '%s' of the node: ", lock->dialect->lock_key);
            return outcome;
        }
        g_clear_error(&failure);
        if (!raced)
            rest(lock, until_ms);
    }
}

void node_lock_release(const struct node_lock *lock, int64_t until_ms)
{
    if (!is_needed(lock))
        return;
    for (int i = 0; i < RELEASE_TRIES; i++) {
        g_autoptr(json_arena) arena = json_arena_new();
        struct node_view node = {0};
        if (lock->cluster->ops->get_node(lock->cluster, arena, lock->node, until_ms, &node, NULL) !=
            OUTCOME_OK)
            return;
        const char *value = string_pairs_get(&node.annotations, lock->dialect->lock_key);
        if (!value || !is_ours(lock, value) ||
            set(lock, &node, NULL, until_ms, NULL) != OUTCOME_CONFLICT)
            return;
    }
}
