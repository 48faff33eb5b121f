/* SPDX-License-Identifier: Apache-2.0 */
#include "app/journal.h"

#include "json/json.h"

#include <string.h>

struct journal {
    struct store *store;
    GHashTable *entries; /* uid -> char *, a booking as JSON */
    size_t size;         /* of all texts */
};

struct journal *journal_new(struct store *store)
{
    struct journal *journal = g_new0(struct journal, 1);

    journal->store = store;
    journal->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return journal;
}

void journal_free(struct journal *journal)
{
    if (!journal)
        return;
    g_hash_table_unref(journal->entries);
    g_free(journal);
}

/* --- writing -------------------------------------------------------------------------------- */

static void write_share(struct json_writer *writer, const struct share *share)
{
    json_begin_object(writer);
    json_key_int(writer, "memory", share->memory.value);
    json_key_bool(writer, "units", share->memory.kind == AMOUNT_NODE_UNITS);
    json_key_int(writer, "card", share->card);
    json_key_int(writer, "core", share->core);
    json_key_int(writer, "container", share->container);
    json_key_bool(writer, "exclusive", share->exclusive);
    if (share->init)
        json_key_bool(writer, "init", true);
    if (share->place.size > 0) {
        json_key_int(writer, "layout", share->place.layout);
        json_key_int(writer, "start", share->place.start);
        json_key_int(writer, "size", share->place.size);
    }
    if (share->device) {
        json_key_string(writer, "device", share->device);
        json_key_int(writer, "devices", share->devices);
    }
    json_end_object(writer);
}

static char *describe(const struct allocation *booking)
{
    GString *text = g_string_new(NULL);
    g_autofree char *time = g_strdup_printf("%" G_GINT64_FORMAT, booking->assume_time_ns);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "uid", booking->uid);
    json_key_string(&writer, "namespace", booking->ns);
    json_key_string(&writer, "name", booking->name);
    json_key_string(&writer, "node", booking->node->name);
    json_key_string(&writer, "dialect", booking->dialect->name);
    json_key_int(&writer, "amount", booking->match_amount);
    json_key_string(&writer, "time", time);
    json_key(&writer, "shares");
    json_begin_array(&writer);
    for (uint32_t i = 0; i < booking->n_shares; i++)
        write_share(&writer, &booking->shares[i]);
    json_end_array(&writer);
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

static bool is_open(const struct ledger *ledger, const char *uid)
{
    const struct allocation *booking = ledger_get(ledger, uid);

    return booking &&
           (booking->state == ALLOCATION_RESERVED || booking->state == ALLOCATION_UNKNOWN);
}

static void forget(struct journal *journal, const char *uid)
{
    const char *text = g_hash_table_lookup(journal->entries, uid);

    if (text)
        journal->size -= strlen(text);
    g_hash_table_remove(journal->entries, uid);
}

static void keep(struct journal *journal, const char *uid, char *take_entry)
{
    journal->size += strlen(take_entry);
    g_hash_table_insert(journal->entries, g_strdup(uid), take_entry);
}

/* Whose fate is known needs no place. */
static void sweep(struct journal *journal, const struct ledger *ledger)
{
    GHashTableIter iter;
    gpointer uid, entry;

    g_hash_table_iter_init(&iter, journal->entries);
    while (g_hash_table_iter_next(&iter, &uid, &entry)) {
        if (is_open(ledger, uid))
            continue;
        journal->size -= strlen(entry);
        g_hash_table_iter_remove(&iter);
    }
}

bool journal_add(struct journal *journal, const struct allocation *booking)
{
    if (!journal)
        return true;
    g_autofree char *entry = describe(booking);

    forget(journal, booking->uid);
    if (journal->size + strlen(entry) > JOURNAL_MAX)
        return false;
    keep(journal, booking->uid, g_steal_pointer(&entry));
    return true;
}

void journal_encode(struct journal *journal, GString *text)
{
    struct json_writer writer;
    GHashTableIter iter;
    gpointer entry;

    json_writer_init(&writer, text);
    sweep(journal, store_lock(journal->store));
    if (journal->size > 0) {
        json_begin_object(&writer);
        json_key(&writer, "bookings");
        json_begin_array(&writer);
        g_hash_table_iter_init(&iter, journal->entries);
        while (g_hash_table_iter_next(&iter, NULL, &entry))
            json_raw(&writer, entry, strlen(entry));
        json_end_array(&writer);
        json_end_object(&writer);
    }
    store_unlock(journal->store);
}

/* --- reading -------------------------------------------------------------------------------- */

struct booking {
    const char *uid, *ns, *name, *node, *dialect, *time;
    int64_t amount;
    const cJSON *shares;
};

static const struct json_field booking_fields[] = {
    JSON_FIELD_STRING(struct booking, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, name, "name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, node, "node", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, dialect, "dialect", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, time, "time", JSON_REQUIRED),
    JSON_FIELD_INT64(struct booking, amount, "amount", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct booking, shares, "shares", JSON_REQUIRED),
    JSON_FIELD_END,
};

struct booked_share {
    int64_t memory, card, core, container, devices, layout, start, size;
    bool units, exclusive, init;
    const char *device;
};

static const struct json_field share_fields[] = {
    JSON_FIELD_INT64(struct booked_share, memory, "memory", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct booked_share, units, "units", 0),
    JSON_FIELD_INT64(struct booked_share, card, "card", JSON_REQUIRED),
    JSON_FIELD_INT64(struct booked_share, core, "core", 0),
    JSON_FIELD_INT64(struct booked_share, container, "container", 0),
    JSON_FIELD_BOOL(struct booked_share, exclusive, "exclusive", 0),
    JSON_FIELD_BOOL(struct booked_share, init, "init", 0),
    JSON_FIELD_STRING(struct booked_share, device, "device", 0),
    JSON_FIELD_INT64(struct booked_share, devices, "devices", 0),
    JSON_FIELD_INT64(struct booked_share, layout, "layout", 0),
    JSON_FIELD_INT64(struct booked_share, start, "start", 0),
    JSON_FIELD_INT64(struct booked_share, size, "size", 0),
    JSON_FIELD_END,
};

static bool read_share(struct json_arena *arena, const cJSON *object, struct share *ret_share)
{
    struct booked_share share = {.container = CONTAINER_POD};

    if (!json_decode(arena, object, share_fields, &share, NULL) || share.memory < 0 ||
        share.card < CARD_UNKNOWN || share.card > INT32_MAX || share.core < 0 ||
        share.core > INT32_MAX || share.container < CONTAINER_POD ||
        share.container > INT32_MAX || share.devices < 0 || share.devices > INT32_MAX ||
        ((share.layout | share.start | share.size) & ~INT64_C(255)) != 0)
        return false;
    *ret_share = (struct share){
        .memory = {share.memory, share.units ? AMOUNT_NODE_UNITS : AMOUNT_BYTES},
        .container = (int32_t)share.container,
        .card = (int32_t)share.card,
        .core = (int32_t)share.core,
        .exclusive = share.exclusive,
        .init = share.init,
        .place = {(uint8_t)share.layout, (uint8_t)share.start, (uint8_t)share.size},
        .devices = (int32_t)share.devices,
        .device = share.device,
    };
    return true;
}

/* The devices' names outlive the document. */
static void keep_devices(struct allocation *allocation)
{
    g_autoptr(GStrvBuilder) devices = g_strv_builder_new();
    uint32_t n = 0;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        if (allocation->shares[i].device)
            g_strv_builder_add(devices, allocation->shares[i].device);
    }
    g_auto(GStrv) kept = g_strv_builder_end(devices);
    if (!*kept)
        return;
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        if (allocation->shares[i].device)
            allocation->shares[i].device = kept[n++];
    }
    allocation->terms = terms_new();
    allocation->terms->devices = g_steal_pointer(&kept);
}

/* NULL: it cannot be understood. */
static struct allocation *read_booking(struct json_arena *arena, const cJSON *object,
                                       const char **ret_node)
{
    struct booking booking = {0};
    gint64 time_ns;
    const cJSON *item;
    uint32_t n = 0;

    if (!json_decode(arena, object, booking_fields, &booking, NULL) ||
        !g_ascii_string_to_signed(booking.time, 10, 0, G_MAXINT64, &time_ns, NULL))
        return NULL;
    const struct dialect *dialect = dialect_find(booking.dialect);
    const int n_shares = cJSON_GetArraySize(booking.shares);
    if (!dialect || n_shares < 1 || n_shares > REQUEST_ASKS_MAX)
        return NULL;
    g_autoptr(allocation) allocation =
        allocation_new(booking.uid, booking.ns, booking.name, (size_t)n_shares);
    cJSON_ArrayForEach (item, booking.shares) {
        if (!read_share(arena, item, &allocation->shares[n++]))
            return NULL;
    }
    keep_devices(allocation);
    allocation->dialect = dialect;
    allocation->state = ALLOCATION_UNKNOWN;
    allocation->waiting = dialect->in_flight != NULL;
    allocation->match_amount = booking.amount;
    allocation->assume_time_ns = time_ns;
    allocation->since_ms = g_get_monotonic_time() / 1000;
    *ret_node = booking.node;
    return g_steal_pointer(&allocation);
}

/* Whether it was news. What is known here of the pod, be it a booking of our own, is no older. */
static bool book(struct journal *journal, const char *node, struct allocation *take_booking)
{
    struct ledger *ledger = store_lock(journal->store);
    const bool known = ledger_get(ledger, take_booking->uid) != NULL;

    if (known) {
        allocation_free(take_booking);
    } else {
        take_booking = ledger_put(ledger, node, take_booking);
        keep(journal, take_booking->uid, describe(take_booking));
    }
    store_notify(journal->store);
    store_unlock(journal->store);
    return !known;
}

struct document {
    const cJSON *bookings;
};

static const struct json_field document_fields[] = {
    JSON_FIELD_ARRAY(struct document, bookings, "bookings", JSON_REQUIRED),
    JSON_FIELD_END,
};

unsigned journal_decode(struct journal *journal, const char *text, int *ret_bad)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct document document = {0};
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);
    const cJSON *item;
    const char *node;
    unsigned booked = 0;

    *ret_bad = -1;
    if (!object || !json_decode(arena, object, document_fields, &document, NULL))
        return 0;
    *ret_bad = 0;
    cJSON_ArrayForEach (item, document.bookings) {
        struct allocation *booking = read_booking(arena, item, &node);

        if (booking)
            booked += book(journal, node, booking);
        else
            ++*ret_bad;
    }
    return booked;
}
