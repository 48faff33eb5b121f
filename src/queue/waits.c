/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/waits.h"

#include "core/ledger.h"
#include "queue/departures.h"
#include "base/metrics.h"

#include <string.h>

struct wait {
    int64_t since_ms; /* 0: no decision has found it yet */
    bool started;
};

struct waits {
    GHashTable *pods;    /* uid -> struct wait * */
    GPtrArray *untimed;  /* their keys that no decision has found yet */
    struct departures *departures;
    int64_t earliest_ms; /* no wait began earlier; INT64_MAX: there are none */
};

struct waits *waits_new(void)
{
    struct waits *waits = g_new0(struct waits, 1);

    waits->pods = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    waits->untimed = g_ptr_array_new_with_free_func(g_free);
    waits->departures = departures_new();
    waits->earliest_ms = INT64_MAX;
    return waits;
}

void waits_free(struct waits *waits)
{
    departures_free(waits->departures);
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
    departures_copy(waits->departures, from->departures);
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

void waits_note_vanished(struct waits *waits, struct ledger *ledger,
                         const struct allocation *allocation)
{
    departures_note(waits->departures, ledger, allocation);
}

bool waits_begin(struct waits *waits, const struct ledger *ledger, int64_t now_ms)
{
    bool began = departures_begin(waits->departures, now_ms);

    for (guint i = 0; i < waits->untimed->len; i++) {
        struct wait *wait = g_hash_table_lookup(waits->pods, waits->untimed->pdata[i]);
        if (!wait || !ledger_get(ledger, waits->untimed->pdata[i]))
            continue;
        wait->since_ms = now_ms;
        waits->earliest_ms = MIN(waits->earliest_ms, now_ms);
        began = true;
    }
    g_ptr_array_set_size(waits->untimed, 0);
    return began;
}

/* As it is, but that nobody waits for it and that it holds no card that an edit names. */
static struct allocation *settle(const struct allocation *allocation)
{
    struct allocation *settled = allocation_dup(allocation);
    struct allocation_own *own = allocation_own(settled);
    uint32_t n, kept = 0;
    const struct share *shares = allocation_known(allocation, &n);

    g_clear_pointer(&own->known, g_free);
    own->n_known = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!shares[i].named)
            settled->shares[kept++] = shares[i];
    }
    settled->n_shares = kept;
    settled->waited_out = true;
    settled->distrust = settled->distrust == DISTRUST_NONE && allocation->waiting ? DISTRUST_WAITED
                                                                         : settled->distrust;
    settled->waiting = settled->heeded = false;
    for (uint32_t i = 0; i < own->n_readings; i++) {
        own->readings[i].waiting = own->readings[i].heeded = false;
        if (own->readings[i].distrust == DISTRUST_NONE)
            own->readings[i].distrust = settled->distrust;
    }
    return settled;
}

bool waits_end(struct waits *waits, struct ledger *ledger, int64_t now_ms)
{
    GHashTableIter iter;
    gpointer uid, value;
    bool ended = departures_end(waits->departures, ledger, now_ms);

    if (waits->earliest_ms == INT64_MAX || now_ms - waits->earliest_ms < WAIT_MAX_MS)
        return ended;
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

/* --- for who goes on from it ------------------------------------------------------------------ */

static void write_over(struct allocation *allocation, void *data)
{
    struct json_writer *writer = data;

    json_begin_object(writer);
    json_key_string(writer, "uid", allocation->uid);
    json_key_bool(writer, "over", true);
    json_end_object(writer);
}

void waits_encode(struct json_writer *writer, const struct waits *waits,
                  const struct ledger *ledger)
{
    GHashTableIter iter;
    gpointer uid, value;

    json_begin_object(writer);
    json_key_array(writer, "pods");
    g_hash_table_iter_init(&iter, waits->pods);
    while (g_hash_table_iter_next(&iter, &uid, &value)) {
        const struct wait *wait = value;
        json_begin_object(writer);
        json_key_string(writer, "uid", uid);
        json_key_int(writer, "since", wait->since_ms);
        json_key_bool(writer, "started", wait->started);
        json_end_object(writer);
    }
    ledger_each_waited_out(ledger, write_over, writer);
    json_end_array(writer);
    json_key(writer, "vanished");
    departures_encode(writer, waits->departures);
    json_end_object(writer);
}

struct wait_object {
    const char *uid;
    int64_t since;
    bool started, over;
};

static const struct json_field wait_fields[] = {
    JSON_FIELD_STRING(struct wait_object, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_INT64(struct wait_object, since, "since", 0),
    JSON_FIELD_BOOL(struct wait_object, started, "started", 0),
    JSON_FIELD_BOOL(struct wait_object, over, "over", 0),
    JSON_FIELD_END,
};

struct waits_object {
    const cJSON *pods, *vanished;
};

static const struct json_field waits_fields[] = {
    JSON_FIELD_ARRAY(struct waits_object, pods, "pods", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct waits_object, vanished, "vanished", 0),
    JSON_FIELD_END,
};

bool waits_decode(struct waits *waits, struct ledger *ledger, struct json_arena *arena,
                  const cJSON *object, GError **error)
{
    struct waits_object list = {0};
    const cJSON *item;

    if (!json_decode(arena, object, waits_fields, &list, error))
        return false;
    g_hash_table_remove_all(waits->pods);
    g_ptr_array_set_size(waits->untimed, 0);
    waits->earliest_ms = INT64_MAX;
    cJSON_ArrayForEach (item, list.pods) {
        struct wait_object fields = {0};
        if (!json_decode(arena, item, wait_fields, &fields, error))
            return false;
        const struct allocation *allocation = ledger_get(ledger, fields.uid);
        if (fields.over && allocation && !allocation->waited_out)
            ledger_put(ledger, allocation->node->name, settle(allocation));
        if (fields.over || !allocation)
            continue;
        struct wait *wait = g_new0(struct wait, 1);
        *wait = (struct wait){fields.since, fields.started};
        g_hash_table_insert(waits->pods, g_strdup(fields.uid), wait);
        if (wait->since_ms == 0)
            g_ptr_array_add(waits->untimed, g_strdup(fields.uid));
        else
            waits->earliest_ms = MIN(waits->earliest_ms, wait->since_ms);
    }
    return departures_decode(waits->departures, ledger, arena, list.vanished, error);
}
