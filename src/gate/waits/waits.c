/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/waits/waits.h"

#include "core/ledger.h"
#include "gate/waits/departures.h"
#include "base/roll.h"
#include "base/metrics.h"

#include <string.h>

#define COPIED_AT_ONCE 16 /* pods */

struct wait {
    struct roll_entry entry;
    char *uid;
    int64_t since_ms; /* 0: no decision has found it yet */
    bool started;
    bool awaited; /* as in struct allocation */
};

/* A pod that nobody waits for any longer (struct allocation, `waited_out`). */
struct waited_out {
    struct roll_entry entry;
    char *uid;
};

struct waits {
    GHashTable *pods;   /* uid -> struct wait *, whose uid that is */
    struct roll roll;   /* all of them */
    GPtrArray *untimed; /* their keys that no decision has found yet */
    GHashTable *over;   /* uid -> struct waited_out *, whose uid that is */
    struct roll over_roll;
    struct departures *departures;
    int64_t earliest_ms; /* no wait began earlier; INT64_MAX: there are none */
};

static void wait_free(gpointer data)
{
    struct wait *wait = data;

    g_free(wait->uid);
    g_free(wait);
}

static void waited_out_free(gpointer data)
{
    struct waited_out *over = data;

    g_free(over->uid);
    g_free(over);
}

struct waits *waits_new(void)
{
    struct waits *waits = g_new0(struct waits, 1);

    waits->pods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, wait_free);
    roll_init(&waits->roll);
    waits->over = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, waited_out_free);
    roll_init(&waits->over_roll);
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
    roll_clear(&waits->roll);
    g_hash_table_unref(waits->over);
    roll_clear(&waits->over_roll);
    g_free(waits);
}

/* Its time has not begun, or has. */
static struct wait *add(struct waits *waits, const char *uid, int64_t since_ms, bool started)
{
    struct wait *wait = g_new0(struct wait, 1);

    wait->uid = g_strdup(uid);
    wait->since_ms = since_ms;
    wait->started = started;
    g_hash_table_insert(waits->pods, wait->uid, wait);
    roll_add(&waits->roll, &wait->entry);
    if (since_ms == 0)
        g_ptr_array_add(waits->untimed, g_strdup(uid));
    else
        waits->earliest_ms = MIN(waits->earliest_ms, since_ms);
    return wait;
}

static void set_over(struct waits *waits, const char *uid, bool over)
{
    struct waited_out *known = g_hash_table_lookup(waits->over, uid);

    if (over && !known) {
        known = g_new(struct waited_out, 1);
        known->uid = g_strdup(uid);
        g_hash_table_insert(waits->over, known->uid, known);
        roll_add(&waits->over_roll, &known->entry);
    } else if (!over && known) {
        roll_remove(&waits->over_roll, &known->entry);
        g_hash_table_remove(waits->over, uid);
    }
}

bool waits_copy(struct waits *waits, const struct waits *from, struct part_cursor *cursor)
{
    const struct roll_entry *entry;

    for (int i = 0; i < COPIED_AT_ONCE && (entry = roll_walk(&from->roll, &cursor->members)); i++) {
        const struct wait *wait = (const struct wait *)entry;
        if (!g_hash_table_contains(waits->pods, wait->uid))
            add(waits, wait->uid, wait->since_ms, wait->started)->awaited = wait->awaited;
    }
    if (cursor->members > 0)
        return true;
    for (int i = 0; i < COPIED_AT_ONCE && (entry = roll_walk(&from->over_roll, &cursor->others));
         i++)
        set_over(waits, ((const struct waited_out *)entry)->uid, true);
    return cursor->others > 0 ||
           departures_copy(waits->departures, from->departures, &cursor->last);
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

static void forget_wait(struct waits *waits, const char *uid)
{
    struct wait *wait = g_hash_table_lookup(waits->pods, uid);

    if (!wait)
        return;
    roll_remove(&waits->roll, &wait->entry);
    g_hash_table_remove(waits->pods, uid);
}

void waits_note(struct waits *waits, const struct allocation *allocation, bool started)
{
    struct wait *wait = g_hash_table_lookup(waits->pods, allocation->uid);

    set_over(waits, allocation->uid, allocation->waited_out);
    if (!allocation->waiting && !has_named(allocation)) {
        forget_wait(waits, allocation->uid);
        return;
    }
    if (!wait) {
        add(waits, allocation->uid, 0, started)->awaited = allocation->awaited;
        return;
    }
    if (wait->started == started && wait->awaited == allocation->awaited)
        return;
    roll_change(&waits->roll, &wait->entry);
    wait->since_ms = 0;
    wait->started = started;
    wait->awaited = allocation->awaited;
    g_ptr_array_add(waits->untimed, g_strdup(allocation->uid));
}

void waits_forget(struct waits *waits, const char *uid)
{
    forget_wait(waits, uid);
    set_over(waits, uid, false);
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
        roll_change(&waits->roll, &wait->entry);
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
    settled->distrust = settled->distrust == DISTRUST_NONE && allocation->waiting
                            ? DISTRUST_WAITED
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
    bool ended = departures_end(waits->departures, ledger, now_ms);

    if (waits->earliest_ms == INT64_MAX || now_ms - waits->earliest_ms < WAIT_MAX_MS)
        return ended;
    waits->earliest_ms = INT64_MAX;
    for (guint i = waits->roll.entries->len; i > 0; i--) {
        const struct wait *wait = waits->roll.entries->pdata[i - 1];
        if (wait->since_ms == 0)
            continue;
        const struct allocation *allocation = ledger_get(ledger, wait->uid);
        if (allocation && wait->awaited)
            continue;
        if (allocation && now_ms - wait->since_ms < WAIT_MAX_MS) {
            waits->earliest_ms = MIN(waits->earliest_ms, wait->since_ms);
            continue;
        }
        if (allocation) {
            metrics_count(COUNTER_WAITS_ENDED, 0);
            ledger_put(ledger, allocation->node->name, settle(allocation));
            set_over(waits, wait->uid, true);
            ended = true;
        }
        forget_wait(waits, wait->uid);
    }
    return ended;
}

/* --- for who goes on from it ------------------------------------------------------------------ */

struct waits_image {
    struct waits *waits;
    GSList *pods; /* struct wait * */
    GSList *over; /* UIDs of those who have waited as long as anybody may */
    struct departures_image *departures;
};

struct waits_image *waits_image_new(void)
{
    struct waits_image *image = g_new0(struct waits_image, 1);

    image->departures = departures_image_new();
    return image;
}

void waits_image_free(struct waits_image *image)
{
    if (!image)
        return;
    g_slist_free_full(image->pods, wait_free);
    g_slist_free_full(image->over, g_free);
    departures_image_free(image->departures);
    g_free(image);
}

/* Under the lock. */
static void save(const struct roll_entry *entry, void *data)
{
    struct waits_image *image = data;
    struct wait *wait = g_memdup2(entry, sizeof *wait);

    wait->uid = g_strdup(wait->uid);
    image->pods = g_slist_prepend(image->pods, wait);
}

static void save_over(const struct roll_entry *entry, void *data)
{
    struct waits_image *image = data;

    image->over = g_slist_prepend(image->over, g_strdup(((const struct waited_out *)entry)->uid));
}

void waits_image_begin(struct waits_image *image, struct waits *waits)
{
    image->waits = waits;
    roll_begin_image(&waits->roll, save, image);
    roll_begin_image(&waits->over_roll, save_over, image);
    departures_image_begin(image->departures, waits->departures);
}

bool waits_image_take(struct waits_image *image)
{
    return roll_take(&image->waits->roll, COPIED_AT_ONCE) ||
           roll_take(&image->waits->over_roll, COPIED_AT_ONCE) ||
           departures_image_take(image->departures);
}

static gint compare_waits(gconstpointer a, gconstpointer b)
{
    return strcmp(((const struct wait *)a)->uid, ((const struct wait *)b)->uid);
}

static gint compare_uids(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

void waits_encode(struct json_writer *writer, struct waits_image *image)
{
    image->pods = g_slist_sort(image->pods, compare_waits);
    image->over = g_slist_sort(image->over, compare_uids);
    json_begin_object(writer);
    json_key_array(writer, "pods");
    for (const GSList *item = image->pods; item; item = item->next) {
        const struct wait *wait = item->data;
        json_begin_object(writer);
        json_key_string(writer, "uid", wait->uid);
        json_key_int(writer, "since", wait->since_ms);
        json_key_bool(writer, "started", wait->started);
        json_end_object(writer);
    }
    for (const GSList *uid = image->over; uid; uid = uid->next) {
        json_begin_object(writer);
        json_key_string(writer, "uid", uid->data);
        json_key_bool(writer, "over", true);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_key(writer, "vanished");
    departures_encode(writer, image->departures);
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
    g_ptr_array_set_size(waits->roll.entries, 0);
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
        if (fields.over && allocation)
            set_over(waits, fields.uid, true);
        if (fields.over || !allocation)
            continue;
        if (!g_hash_table_contains(waits->pods, fields.uid)) /* named twice */
            add(waits, fields.uid, fields.since, fields.started)->awaited = allocation->awaited;
    }
    return departures_decode(waits->departures, ledger, arena, list.vanished, error);
}
