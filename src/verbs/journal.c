/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/journal.h"

#include "store/booking.h"

#include <string.h>

struct journal {
    struct store *store;
    GHashTable *entries; /* uid -> struct entry * */
    GHashTable *spaces;  /* namespace -> size of its texts, not 0 */
    size_t size;         /* of all texts */
};

struct entry {
    char *ns, *text; /* a booking as JSON */
    size_t size;     /* of the text */
};

static void entry_free(gpointer data)
{
    struct entry *entry = data;

    g_free(entry->ns);
    g_free(entry->text);
    g_free(entry);
}

struct journal *journal_new(struct store *store)
{
    struct journal *journal = g_new0(struct journal, 1);

    journal->store = store;
    journal->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
    journal->spaces = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return journal;
}

void journal_free(struct journal *journal)
{
    if (!journal)
        return;
    g_hash_table_unref(journal->entries);
    g_hash_table_unref(journal->spaces);
    g_free(journal);
}

/* --- writing -------------------------------------------------------------------------------- */

static char *describe(const struct allocation *booking)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    booking_encode(&writer, booking);
    return g_string_free(text, FALSE);
}

static bool is_open(const struct ledger *ledger, const char *uid)
{
    const struct allocation *booking = ledger_get(ledger, uid);

    return booking &&
           (booking->state == ALLOCATION_ASSUMED || booking->state == ALLOCATION_UNKNOWN);
}

static size_t size_of(const struct journal *journal, const char *ns)
{
    return GPOINTER_TO_SIZE(g_hash_table_lookup(journal->spaces, ns));
}

static void set_size(struct journal *journal, const char *ns, size_t size)
{
    if (size > 0)
        g_hash_table_replace(journal->spaces, g_strdup(ns), GSIZE_TO_POINTER(size));
    else
        g_hash_table_remove(journal->spaces, ns);
}

static void uncount(struct journal *journal, const struct entry *entry)
{
    journal->size -= entry->size;
    set_size(journal, entry->ns, size_of(journal, entry->ns) - entry->size);
}

static void forget(struct journal *journal, const char *uid)
{
    const struct entry *entry = g_hash_table_lookup(journal->entries, uid);

    if (entry)
        uncount(journal, entry);
    g_hash_table_remove(journal->entries, uid);
}

static void keep(struct journal *journal, const struct allocation *booking, char *take_text)
{
    struct entry *entry = g_new0(struct entry, 1);

    forget(journal, booking->uid); /* of a booking that is over */
    *entry = (struct entry){g_strdup(booking->ns), take_text, strlen(take_text)};
    journal->size += entry->size;
    set_size(journal, entry->ns, size_of(journal, entry->ns) + entry->size);
    g_hash_table_insert(journal->entries, g_strdup(booking->uid), entry);
}

/* A namespace has no more than it leaves to others: they find room whatever it does. */
static bool has_room(const struct journal *journal, const char *ns, size_t size)
{
    return journal->size + size <= JOURNAL_MAX &&
           size_of(journal, ns) + size <= JOURNAL_MAX - journal->size - size;
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
        uncount(journal, entry);
        g_hash_table_iter_remove(&iter);
    }
}

bool journal_add(struct journal *journal, const struct allocation *booking)
{
    g_autofree char *text = describe(booking);

    forget(journal, booking->uid);
    if (!has_room(journal, booking->ns, strlen(text)))
        sweep(journal, store_ledger(journal->store));
    if (!has_room(journal, booking->ns, strlen(text)))
        return false;
    keep(journal, booking, g_steal_pointer(&text));
    return true;
}

void journal_encode(struct journal *journal, GString *text)
{
    struct json_writer writer;
    GHashTableIter iter;
    gpointer value;

    json_writer_init(&writer, text);
    sweep(journal, store_lock(journal->store));
    if (journal->size > 0) {
        json_begin_object(&writer);
        json_key_array(&writer, "bookings");
        g_hash_table_iter_init(&iter, journal->entries);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
            const struct entry *entry = value;
            json_raw(&writer, entry->text, entry->size);
        }
        json_end_array(&writer);
        json_end_object(&writer);
    }
    store_unlock(journal->store);
}

/* --- reading -------------------------------------------------------------------------------- */

/* Whether it was news. What is known here of the pod, be it a booking of our own, is no older. */
static bool book(struct journal *journal, const char *node, struct allocation *take_booking)
{
    struct observer *observer = store_observer(journal->store);
    struct moment moment;
    struct ledger *ledger = store_decide(journal->store, &moment);
    const bool known = ledger_get(ledger, take_booking->uid) != NULL;

    if (known) {
        allocation_free(take_booking);
    } else {
        take_booking->since_ms = moment.now_ms;
        take_booking = ledger_put(ledger, node, take_booking);
        store_take_turn(journal->store, take_booking);
        char *entry = describe(take_booking);
        observer_tell(observer, &(struct observation){OBSERVED_INHERITED, observer_number(observer),
                                                      .key = take_booking->uid, .booking = entry});
        keep(journal, take_booking, entry);
    }
    store_notify(journal->store, node, NULL);
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
        struct allocation *booking =
            booking_decode(arena, item, store_options(journal->store)->dialects.classes, &node);

        if (booking)
            booked += book(journal, node, booking);
        else
            ++*ret_bad;
    }
    return booked;
}
