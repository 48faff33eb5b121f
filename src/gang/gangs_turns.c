/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is, where one group that is not whole has places at a time. A namespace whose group kept
 * others waiting for long, which its pods' authors can make it do, gives way to the groups of namespaces
 * that have done so less lately: or it might have the pool for itself, one of its groups after the other. So
 * does one whose group had its places in vain, for however short a time, while others waited: or its next
 * group would be asked about before theirs each time.
 */
#include "gang/gangs_state.h"

#include <string.h>

#define SWIFT_MS 5000 /* in which groups come that come at all */
#define TURN_MS 20000 /* in which kube-scheduler asks about a pod that it is told of */
#define SLOW_MAX 1024 /* namespaces; beyond them who was slow least lately is forgotten */
#define SLOW "slow/"
#define SLOW_MS 86400000 /* "slow/NAMESPACE" of gangs.rests is so long after it was slow last */

static char *slow_key(const char *ns)
{
    return g_strdup_printf(SLOW "%s", ns);
}

void gang_recall_slow(const struct gangs *gangs, struct gang_tenant *tenant)
{
    g_autofree char *key = slow_key(tenant->ns);
    const int64_t *until_ms = g_hash_table_lookup(gangs->rests, key);

    tenant->slow_ms = until_ms ? *until_ms : 0;
}

/* Makes room for another one: who may make namespaces makes no more than so many entries. */
static void forget_slowest(struct gangs *gangs)
{
    const char *oldest = NULL;
    int64_t oldest_ms = INT64_MAX;
    GHashTableIter iter;
    gpointer key, value;
    guint n = 0;

    g_hash_table_iter_init(&iter, gangs->rests);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const int64_t until_ms = *(const int64_t *)value;
        if (!g_str_has_prefix(key, SLOW))
            continue;
        n++;
        if (until_ms < oldest_ms || (until_ms == oldest_ms && strcmp(key, oldest) < 0)) {
            oldest = key;
            oldest_ms = until_ms;
        }
    }
    if (n < SLOW_MAX)
        return;
    struct gang_tenant *tenant = gang_tenant_of(gangs, oldest + strlen(SLOW));
    if (tenant)
        tenant->slow_ms = 0;
    g_hash_table_remove(gangs->rests, oldest);
}

/* Returns whether that is news: each time is told to a record. */
static bool note_slow(struct gangs *gangs, struct gang_tenant *tenant, int64_t now_ms)
{
    const int64_t until_ms = now_ms + SLOW_MS;

    if (until_ms - tenant->slow_ms < SWIFT_MS)
        return false;
    g_autofree char *key = slow_key(tenant->ns);
    if (!g_hash_table_contains(gangs->rests, key))
        forget_slowest(gangs);
    tenant->slow_ms = until_ms;
    g_hash_table_replace(gangs->rests, g_steal_pointer(&key),
                         g_memdup2(&until_ms, sizeof until_ms));
    return true;
}

static bool is_taken(const struct gangs *gangs, const struct gang *asking, const char *pool)
{
    for (guint i = 0; i < gangs->holding->len; i++) {
        const struct gang *gang = g_ptr_array_index(gangs->holding, i);
        if (gang != asking && !gang->whole && gang->pool == pool)
            return true;
    }
    return false;
}

/* A group of another namespace. */
static bool does_another_wait(const struct gangs *gangs, const struct gang *than)
{
    for (guint i = 0; i < gangs->waiting->len; i++) {
        const struct gang *gang = g_ptr_array_index(gangs->waiting, i);
        if (gang->pool == than->pool && gang->tenant != than->tenant)
            return true;
    }
    return false;
}

void gang_end_turn(struct gangs *gangs, struct gang *gang)
{
    const bool came =
        gang->whole || (gang->min > 0 && gang->n[BOUND] + gang->n[PLAIN] >= gang->min);

    if (gang->held_ms != 0 && !came && does_another_wait(gangs, gang))
        note_slow(gangs, gang->tenant, gang->asked_ms);
    gang->held_ms = 0;
}

static bool gives_way(const struct gangs *gangs, const struct gang *asking, const char *pool)
{
    const int64_t slow_ms = asking->tenant->slow_ms;

    if (slow_ms == 0 || gang_places(asking) > 0)
        return false;
    for (guint i = 0; i < gangs->waiting->len; i++) {
        const struct gang *gang = g_ptr_array_index(gangs->waiting, i);
        if (gang->pool == pool && gang->tenant->slow_ms < slow_ms)
            return true;
    }
    return false;
}

bool gang_must_wait(const struct gangs *gangs, const struct gang *asking, const char *pool)
{
    return is_taken(gangs, asking, pool) || gives_way(gangs, asking, pool);
}

void gang_set_waiting(struct gangs *gangs, struct gang *gang, bool waiting)
{
    if (waiting && !gang->waiting)
        g_ptr_array_add(gangs->waiting, gang);
    if (!waiting && gang->waiting) {
        g_ptr_array_remove_fast(gangs->waiting, gang);
        gangs->news = true; /* others may come before it */
    }
    gang->waiting = waiting;
    gang->turn_ms = 0;
}

/* What those who wait for a pool go by. */
struct turn {
    const char *pool;
    bool taken;
    int64_t slow_ms; /* of those who have been slow least lately */
};

/* One for each pool, of which there are a few. */
static struct turn *find_turn(GArray *turns, const struct gangs *gangs, const struct gang *waiting)
{
    for (guint i = 0; i < turns->len; i++) {
        struct turn *turn = &g_array_index(turns, struct turn, i);
        if (turn->pool == waiting->pool)
            return turn;
    }
    const struct turn turn = {waiting->pool, is_taken(gangs, waiting, waiting->pool), INT64_MAX};
    g_array_append_val(turns, turn);
    return &g_array_index(turns, struct turn, turns->len - 1);
}

/* Who does not come when it may has had its turn. Returns whether anything has changed. */
static bool expire_turn(struct gangs *gangs, struct gang *gang, const struct turn *turn,
                        int64_t now_ms)
{
    const int64_t before_ms = gang->turn_ms;

    if (turn->taken || gang->tenant->slow_ms > turn->slow_ms) {
        gang->turn_ms = 0;
    } else if (gang->turn_ms == 0) {
        gang->turn_ms = MAX(now_ms, 1);
    } else if (now_ms - gang->turn_ms >= TURN_MS) {
        note_slow(gangs, gang->tenant, now_ms);
        gang_set_waiting(gangs, gang, false);
    }
    return gang->turn_ms != before_ms;
}

bool gangs_expire_turns(struct gangs *gangs, int64_t now_ms)
{
    g_autoptr(GArray) turns = g_array_new(FALSE, FALSE, sizeof(struct turn));
    bool any = false;

    for (guint i = 0; i < gangs->holding->len; i++) {
        const struct gang *gang = g_ptr_array_index(gangs->holding, i);
        const bool late = gang->deadline_ms != 0 && now_ms >= gang->deadline_ms;
        if (!gang->whole && gang->held_ms != 0 && (late || now_ms - gang->held_ms >= SWIFT_MS))
            any |= note_slow(gangs, gang->tenant, now_ms);
    }
    for (guint i = 0; i < gangs->waiting->len; i++) {
        const struct gang *gang = g_ptr_array_index(gangs->waiting, i);
        struct turn *turn = find_turn(turns, gangs, gang);
        turn->slow_ms = MIN(turn->slow_ms, gang->tenant->slow_ms);
    }
    for (guint i = gangs->waiting->len; i > 0; i--) {
        struct gang *gang = g_ptr_array_index(gangs->waiting, i - 1);
        gang_change(gangs, gang);
        any |= expire_turn(gangs, gang, find_turn(turns, gangs, gang), now_ms);
    }
    return any;
}
