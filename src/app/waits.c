/* SPDX-License-Identifier: Apache-2.0 */
#include "app/waits.h"

#include "app/metrics.h"

#include <string.h>

struct wait {
    int64_t since_ms; /* 0: no decision has found it yet */
    bool started;
};

struct waits {
    GHashTable *pods;    /* uid -> struct wait * */
    GPtrArray *untimed;  /* their keys that no decision has found yet */
    int64_t earliest_ms; /* no wait began earlier; INT64_MAX: there are none */
};

struct waits *waits_new(void)
{
    struct waits *waits = g_new0(struct waits, 1);

    waits->pods = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    waits->untimed = g_ptr_array_new_with_free_func(g_free);
    waits->earliest_ms = INT64_MAX;
    return waits;
}

void waits_free(struct waits *waits)
{
    g_ptr_array_unref(waits->untimed);
    g_hash_table_unref(waits->pods);
    g_free(waits);
}

void waits_copy(struct waits *waits, const struct waits *from)
{
    GHashTableIter iter;
    gpointer uid, wait;

    g_hash_table_remove_all(waits->pods);
    g_ptr_array_set_size(waits->untimed, 0);
    g_hash_table_iter_init(&iter, from->pods);
    while (g_hash_table_iter_next(&iter, &uid, &wait))
        g_hash_table_insert(waits->pods, g_strdup(uid), g_memdup2(wait, sizeof(struct wait)));
    for (guint i = 0; i < from->untimed->len; i++)
        g_ptr_array_add(waits->untimed, g_strdup(from->untimed->pdata[i]));
    waits->earliest_ms = from->earliest_ms;
}

static bool has_named(const struct allocation *allocation)
{
    uint32_t n;
    const struct share *shares = allocation_known(allocation, &n);

    for (uint32_t i = 0; i < n; i++) {
        if (shares[i].named)
            return true;
    }
    return false;
}

void waits_note(struct waits *waits, const struct allocation *allocation, bool started)
{
    struct wait *wait = g_hash_table_lookup(waits->pods, allocation->uid);

    if (!allocation->waiting && !has_named(allocation)) {
        waits_forget(waits, allocation->uid);
        return;
    }
    if (wait && wait->started == started)
        return;
    if (!wait) {
        wait = g_new0(struct wait, 1);
        g_hash_table_insert(waits->pods, g_strdup(allocation->uid), wait);
    }
    *wait = (struct wait){.started = started};
    g_ptr_array_add(waits->untimed, g_strdup(allocation->uid));
}

void waits_forget(struct waits *waits, const char *uid)
{
    g_hash_table_remove(waits->pods, uid);
}

void waits_begin(struct waits *waits, struct ledger *ledger, int64_t now_ms, int64_t now_ns)
{
    for (guint i = 0; i < waits->untimed->len; i++) {
        struct wait *wait = g_hash_table_lookup(waits->pods, waits->untimed->pdata[i]);
        struct allocation *allocation = ledger_get(ledger, waits->untimed->pdata[i]);
        if (!wait || !allocation)
            continue;
        wait->since_ms = now_ms;
        waits->earliest_ms = MIN(waits->earliest_ms, now_ms);
        allocation->assume_time_ns = MIN(allocation->assume_time_ns, now_ns);
        for (uint32_t j = 0; j < allocation->n_readings; j++)
            allocation->readings[j].assume_time_ns =
                MIN(allocation->readings[j].assume_time_ns, now_ns);
    }
    g_ptr_array_set_size(waits->untimed, 0);
}

/* As it is, but that nobody waits for it and that it holds no card that an edit names. */
static struct allocation *settle(const struct allocation *allocation)
{
    struct allocation *settled = allocation_dup(allocation);
    uint32_t n, kept = 0;
    const struct share *shares = allocation_known(allocation, &n);

    g_clear_pointer(&settled->known, g_free);
    settled->n_known = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!shares[i].named)
            settled->shares[kept++] = shares[i];
    }
    settled->n_shares = kept;
    settled->waited_out = true;
    settled->doubt = settled->doubt == DOUBT_NONE && allocation->waiting ? DOUBT_WAITED
                                                                         : settled->doubt;
    settled->waiting = settled->heeded = false;
    for (uint32_t i = 0; i < settled->n_readings; i++) {
        settled->readings[i].waiting = settled->readings[i].heeded = false;
        if (settled->readings[i].doubt == DOUBT_NONE)
            settled->readings[i].doubt = settled->doubt;
    }
    return settled;
}

bool waits_end(struct waits *waits, struct ledger *ledger, int64_t now_ms)
{
    GHashTableIter iter;
    gpointer uid, value;
    bool ended = false;

    if (waits->earliest_ms == INT64_MAX || now_ms - waits->earliest_ms < WAIT_MAX_MS)
        return false;
    waits->earliest_ms = INT64_MAX;
    g_hash_table_iter_init(&iter, waits->pods);
    while (g_hash_table_iter_next(&iter, &uid, &value)) {
        const struct wait *wait = value;
        const struct allocation *allocation = ledger_get(ledger, uid);
        if (wait->since_ms == 0)
            continue;
        if (allocation && now_ms - wait->since_ms < WAIT_MAX_MS) {
            waits->earliest_ms = MIN(waits->earliest_ms, wait->since_ms);
            continue;
        }
        if (allocation) {
            metrics_count(COUNTER_WAITS_ENDED, 0);
            ledger_put(ledger, allocation->node->name, settle(allocation));
            ended = true;
        }
        g_hash_table_iter_remove(&iter);
    }
    return ended;
}
