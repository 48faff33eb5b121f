/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_state.h"

#include "store/kinds/kind.h"
#include "gate/part.h"

#include <string.h>

/* An object, or a pod's open booking. */
struct known {
    int kind;
    char *key;           /* the record's; its table's, too */
    uint64_t number;     /* when it was first heard of; the order of arrival follows it */
    uint32_t generation; /* the list of its feed that named it last */
    char *text;          /* of the object, JSON */
    char *first;         /* of a bound pod that has changed since: as it was heard of first, by which its
                          * cards are known; else NULL */
    bool pending;
    enum trust trust;    /* when it was heard of first */
    bool picky;          /* these two as a record has them */
    char *scheduler;
    char *quota,
        *first_quota;  /* as a record has it, of the text and the first; of a booking, of what
                                * was settled */
    int64_t change_ms; /* likewise */
    enum allocation_state state; /* of a booking */
    bool refused;          /* of a booking: no Binding of it was carried out */
    struct known *booking; /* of a bound pod: by which it was bound, or may be; owned, or NULL */
    char *settled;       /* the bound pod that a booking was found to be; NULL: none */
    char *asked; /* of a refused booking whose pod was seen bound: the pod, when it was asked for */
};

struct record_state {
    GHashTable *objects[FEEDS_MAX]; /* key -> struct known * */
    GHashTable *promises;           /* "DIALECT/UID" -> struct known *: those that are stray */
    GHashTable *bookings;        /* pod's UID -> struct known * */
    uint32_t generation[FEEDS_MAX];
    bool listing[FEEDS_MAX];
    bool
        listed[FEEDS_MAX]; /* what is known is all that the store knows; at first that is nothing */
    char *policy;          /* the last OBSERVED_POLICY's line without its number, or NULL */
    char *parts
        [PART_ROWS_MAX]; /* in the order of the table, the last one's object; NULL: none since some were lost */
};

static void known_free(gpointer data)
{
    struct known *known = data;
    g_free(known->key);
    g_free(known->text);
    g_free(known->first);
    if (known->booking)
        known_free(known->booking);
    g_free(known->settled);
    g_free(known->asked);
    g_free(known->scheduler);
    g_free(known->quota);
    g_free(known->first_quota);
    g_free(known);
}

struct record_state *record_state_new(void)
{
    struct record_state *state = g_new0(struct record_state, 1);

    for (int feed = 0; feed < kinds_n; feed++) {
        state->objects[feed] = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, known_free);
        state->listed[feed] = true;
    }
    state->promises = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, known_free);
    state->bookings = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, known_free);
    return state;
}

static void forget_parts(struct record_state *state)
{
    for (size_t i = 0; parts_table[i]; i++)
        g_clear_pointer(&state->parts[i], g_free);
}

void record_state_free(struct record_state *state)
{
    for (int feed = 0; feed < kinds_n; feed++)
        g_hash_table_unref(state->objects[feed]);
    g_hash_table_unref(state->promises);
    g_hash_table_unref(state->bookings);
    g_free(state->policy);
    forget_parts(state);
    g_free(state);
}

/* --- noting --------------------------------------------------------------------------------- */

static char *object_text(const struct record *record)
{
    return g_strndup(record->text->str + record->object_at,
                     record->text->len - record->object_at - 1);
}

/* What counts besides the object's text. */
static void note_besides(struct known *known, const struct record *record)
{
    g_free(known->quota);
    known->quota = g_strdup(record->quota);
    known->change_ms = record->change_ms;
}

static struct known *known_new(const struct record *record)
{
    struct known *known = g_new0(struct known, 1);

    known->kind = record->kind;
    known->key = g_strdup(record->key);
    known->number = record->number;
    known->text = object_text(record);
    known->pending = record->pending;
    known->trust = record->trust;
    known->picky = record->picky;
    known->scheduler = g_strdup(record->scheduler);
    note_besides(known, record);
    return known;
}

static void note_object(struct record_state *state, enum feed feed, const struct record *record)
{
    struct known *known = g_hash_table_lookup(state->objects[feed], record->key);

    /* A pod that waits keeps its turn; word that a bound one waits is old. Of a node whose plugin is away
     * what was said before still counts. */
    const bool goes_on = feed == FEED_PODS && known &&
                         (known->trust != TRUST_NOTHING || record->trust != TRUST_SEAL);
    if (known && (record->paused || goes_on) && !known->pending && !record->pending) {
        if (!known->first) {
            known->first = g_steal_pointer(&known->text);
            known->first_quota = g_steal_pointer(&known->quota);
        }
        g_free(known->text);
        known->text = object_text(record);
        note_besides(known, record);
    } else if (!known || !record->pending) {
        known = known_new(record);
        g_hash_table_replace(state->objects[feed], known->key, known);
    } else if (known->pending) {
        g_free(known->text);
        known->text = object_text(record);
        known->picky = record->picky;
        note_besides(known, record);
    }
    known->generation = state->generation[feed];
}

/* A pod that is seen bound was bound by its booking, unless that was refused. */
static void keep_booking(struct record_state *state, const char *uid)
{
    struct known *pod = g_hash_table_lookup(state->objects[FEED_PODS], uid);
    struct known *booking = g_hash_table_lookup(state->bookings, uid);

    if (!booking)
        return;
    g_hash_table_steal(state->bookings, uid);
    if (pod && !pod->booking && !booking->refused)
        pod->booking = booking;
    else
        known_free(booking);
}

/* The watch may have shown the pod bound before, by whomever. */
static struct known *booking_seen(struct record_state *state, const char *uid)
{
    struct known *pod = g_hash_table_lookup(state->objects[FEED_PODS], uid);

    return pod ? pod->booking : NULL;
}

static void note_refused(struct record_state *state, const char *uid)
{
    struct known *booking = g_hash_table_lookup(state->bookings, uid);

    booking = booking ? booking : booking_seen(state, uid);
    if (booking)
        booking->refused = true;
}

static void note_pod(struct record_state *state, const struct record *record)
{
    const struct known *known = g_hash_table_lookup(state->objects[FEED_PODS], record->key);

    if (record->unread) { /* it begins anew when it can be read again */
        if (known && known->pending)
            g_hash_table_remove(state->objects[FEED_PODS], record->key);
        return;
    }
    note_object(state, FEED_PODS, record);
    if (!record->pending)
        keep_booking(state, record->key);
}

static void note_settled(struct record_state *state, const struct record *record)
{
    struct known *booking = g_hash_table_lookup(state->bookings, record->key);
    struct known *seen = booking_seen(state, record->key);

    if (!booking && seen && seen->refused && !seen->asked)
        seen->asked = object_text(record);
    if (!booking) /* else the watch knew better */
        return;
    if (record->confirmed) {
        note_pod(state, record);
        return;
    }
    g_free(booking->settled);
    booking->settled = object_text(record);
    note_besides(booking, record);
    booking->state = ALLOCATION_BOUND; /* whatever becomes of the bind that is still under way */
    g_hash_table_remove(state->objects[FEED_PODS], record->key);
}

static void note_booking(struct record_state *state, const struct record *record,
                         enum allocation_state booking_state)
{
    struct known *known = known_new(record);

    known->state = booking_state;
    g_hash_table_replace(state->bookings, known->key, known);
}

static void note_end_of_bind(struct record_state *state, const struct record *record)
{
    struct known *known = g_hash_table_lookup(state->bookings, record->key);

    if (!known)
        return;
    if (record->result == BIND_RESULT_BOUND)
        known->state = ALLOCATION_BOUND;
    else if (record->result == BIND_RESULT_UNKNOWN)
        known->state = ALLOCATION_UNKNOWN;
    else if (known->state == ALLOCATION_ASSUMED)
        g_hash_table_remove(state->bookings, record->key);
}

static gboolean is_stale(gpointer key, gpointer value, gpointer generation)
{
    return ((const struct known *)value)->generation != GPOINTER_TO_UINT(generation);
}

static void note_list(struct record_state *state, const struct record *record)
{
    const enum feed feed = record->feed;

    if (record->kind == OBSERVED_LIST_BEGIN) {
        state->listing[feed] = true;
        state->generation[feed]++;
        return;
    }
    state->listed[feed] |= state->listing[feed];
    state->listing[feed] = false;
    g_hash_table_foreach_remove(state->objects[feed], is_stale,
                                GUINT_TO_POINTER(state->generation[feed]));
    if (feed == FEED_PODS)
        g_hash_table_foreach_remove(state->promises, is_stale,
                                    GUINT_TO_POINTER(state->generation[feed]));
}

static char *promise_key(const struct dialect *dialect, const char *uid)
{
    return g_strdup_printf("%s/%s", dialect->name, uid);
}

static void note_promise(struct record_state *state, const struct record *record)
{
    struct known *known = known_new(record);

    g_free(known->key);
    known->key = promise_key(record->dialect, record->key);
    known->generation = state->generation[FEED_PODS];
    g_hash_table_replace(state->promises, known->key, known);
}

static void drop_promise(struct record_state *state, const struct dialect *dialect, const char *uid)
{
    g_autofree char *key = promise_key(dialect, uid);

    g_hash_table_remove(state->promises, key);
}

static void drop_promises(struct record_state *state, const char *uid)
{
    for (size_t i = 0; dialects[i] && g_hash_table_size(state->promises) > 0; i++)
        drop_promise(state, dialects[i], uid);
}

void record_state_note(struct record_state *state, const struct record *record)
{
    switch (record->kind) {
    case OBSERVED_LIST_BEGIN:
    case OBSERVED_LIST_END:
        note_list(state, record);
        break;
    case OBSERVED_NODE:
        note_object(state, FEED_NODES, record);
        break;
    case OBSERVED_OBJECT:
        note_object(state, record->feed, record);
        break;
    case OBSERVED_POD:
        note_pod(state, record);
        break;
    case OBSERVED_NODE_GONE:
        g_hash_table_remove(state->objects[FEED_NODES], record->key);
        break;
    case OBSERVED_OBJECT_GONE:
        g_hash_table_remove(state->objects[record->feed], record->key);
        break;
    case OBSERVED_PROMISE:
        note_promise(state, record);
        break;
    case OBSERVED_PROMISE_GONE:
        drop_promise(state, record->dialect, record->key);
        break;
    case OBSERVED_POD_VANISHED:
        drop_promises(state, record->key);
        G_GNUC_FALLTHROUGH;
    case OBSERVED_POD_ENDED:
    case OBSERVED_POD_REJECTED:
        g_hash_table_remove(state->objects[FEED_PODS], record->key);
        g_hash_table_remove(state->bookings, record->key);
        break;
    case OBSERVED_DROPPED:
        g_hash_table_remove(state->bookings, record->key);
        break;
    case OBSERVED_ASKED_POD:
        note_settled(state, record);
        break;
    case OBSERVED_LOOK:
        if (record->result == BIND_RESULT_BOUND)
            note_booking(state, record, ALLOCATION_ASSUMED);
        break;
    case OBSERVED_INHERITED:
        note_booking(state, record, ALLOCATION_UNKNOWN);
        break;
    case OBSERVED_CONCLUSION:
        note_end_of_bind(state, record);
        break;
    case OBSERVED_POLICY:
        g_free(state->policy);
        state->policy = g_strconcat("{", strstr(record->text->str, "\"kind\""), NULL);
        break;
    case OBSERVED_REFUSED:
        note_refused(state, record->key);
        break;
    case OBSERVED_PART:
        g_free(state->parts[record->feed]);
        state->parts[record->feed] = object_text(record);
        break;
    default:
        break;
    }
}

void record_state_lose(struct record_state *state)
{
    memset(state->listing, 0, sizeof state->listing);
    memset(state->listed, 0, sizeof state->listed);
    g_hash_table_remove_all(state->bookings);
    forget_parts(state);
}

/* --- writing -------------------------------------------------------------------------------- */

static void begin_line_of(struct json_writer *writer, GString *text, const char *kind)
{
    json_writer_init(writer, text);
    json_begin_object(writer);
    json_key_string(writer, "kind", kind);
}

static void begin_line(struct json_writer *writer, GString *text, int kind)
{
    begin_line_of(writer, text, record_kind_name(kind, FEED_NODES));
}

static void end_line(struct json_writer *writer)
{
    json_end_object(writer);
    g_string_append_c(writer->text, '\n');
}

/* The last field of a line. */
static void end_with(struct json_writer *writer, const char *key, const char *object)
{
    json_key(writer, key);
    json_raw(writer, object, strlen(object));
    end_line(writer);
}

static void write_object(GString *text, int kind, const char *object)
{
    struct json_writer writer;

    begin_line(&writer, text, kind);
    end_with(&writer, "object", object);
}

static void write_parts(const struct record_state *state, GString *text)
{
    struct json_writer writer;

    for (size_t i = 0; parts_table[i]; i++) {
        if (!state->parts[i])
            continue;
        begin_line_of(&writer, text, parts_table[i]->image->kind);
        end_with(&writer, "object", state->parts[i]);
    }
}

static void write_settled(GString *text, bool confirmed, const char *pod, const char *quota)
{
    struct json_writer writer;

    begin_line(&writer, text, OBSERVED_ASKED_POD);
    json_key_bool(&writer, "confirmed", confirmed);
    record_write_quota(&writer, quota);
    end_with(&writer, "object", pod);
}

/* That no Binding of it was carried out, and what the API server then said of the pod, if it was asked. */
static void write_refused(GString *text, const struct known *booking)
{
    struct json_writer writer;

    if (!booking->refused)
        return;
    begin_line(&writer, text, OBSERVED_REFUSED);
    json_key_string(&writer, "key", booking->key);
    end_line(&writer);
    if (booking->asked)
        write_settled(text, true, booking->asked, NULL); /* its pod is told after it */
}

static void write_booking(GString *text, const struct known *known)
{
    struct json_writer writer;

    begin_line(&writer, text, RECORD_BOOKING);
    json_key_int(&writer, "state", known->state);
    end_with(&writer, "booking", known->text);
}

static void write_settlement(GString *text, const struct known *booking)
{
    struct json_writer writer;

    if (!booking->settled)
        return;
    write_settled(text, false, booking->settled, booking->quota);
    if (booking->state == ALLOCATION_UNKNOWN) { /* what was settled is in distrust again */
        begin_line(&writer, text, OBSERVED_CONCLUSION);
        json_key_string(&writer, "key", booking->key);
        json_key_string(&writer, "result", bind_result_names[BIND_RESULT_UNKNOWN]);
        end_line(&writer);
    }
}

static void write_object_as(GString *text, const struct kind *kind, const struct known *known,
                            const char *object)
{
    struct json_writer writer;

    begin_line_of(&writer, text, kind->name);
    if (object == known->text)
        record_write_asking(&writer, known->picky, known->scheduler);
    record_write_trust(&writer, known->trust);
    record_write_quota(&writer, object == known->text ? known->quota : known->first_quota);
    if (object == known->text && known->change_ms)
        json_key_int(&writer, "changing", known->change_ms);
    end_with(&writer, "object", object);
}

/* A booking that was refused after its pod had been seen bound is so after the pod was first heard of. */
static void write_known(GString *text, const struct kind *kind, const struct known *known)
{
    if (known->booking) {
        write_booking(text, known->booking);
        write_settlement(text, known->booking);
    }
    write_object_as(text, kind, known, known->first ? known->first : known->text);
    if (known->booking)
        write_refused(text, known->booking);
    if (known->first)
        write_object_as(text, kind, known, known->text);
}

/* Of those whose pod no watch has shown bound. */
static void write_open(GString *text, const struct known *booking)
{
    write_booking(text, booking);
    write_refused(text, booking);
    write_settlement(text, booking);
}

static void write_list(GString *text, int kind, int feed)
{
    struct json_writer writer;

    begin_line(&writer, text, kind);
    json_key_string(&writer, "feed", kinds[feed]->feed);
    end_line(&writer);
}

static gint compare_numbers(gconstpointer a, gconstpointer b)
{
    const struct known *left = a, *right = b;

    return left->number < right->number ? -1 : left->number > right->number;
}

static GList *in_order(GHashTable *table)
{
    return g_list_sort(g_hash_table_get_values(table), compare_numbers);
}

/* After a list of the pods has begun; those alone that it has named, if it is still under way. */
static void write_promises(const struct record_state *state, GString *text, bool named)
{
    g_autoptr(GList) promises = in_order(state->promises);

    for (const GList *item = promises; item; item = item->next) {
        const struct known *known = item->data;
        if (!named || known->generation == state->generation[FEED_PODS])
            write_object(text, OBSERVED_PROMISE, known->text);
    }
}

void record_state_write(const struct record_state *state, GString *text)
{
    if (state->policy)
        g_string_append_printf(text, "%s\n", state->policy);
    for (int feed = 0; feed < kinds_n; feed++) {
        g_autoptr(GList) objects = in_order(state->objects[feed]);

        write_list(text, OBSERVED_LIST_BEGIN, feed);
        for (const GList *item = objects; item; item = item->next)
            write_known(text, kinds[feed], item->data);
        if (feed == FEED_PODS)
            write_promises(state, text, false);
        if (state->listed[feed])
            write_list(text, OBSERVED_LIST_END, feed);
        if (!state->listing[feed])
            continue;
        /* The list under way will sweep what it has not named. */
        write_list(text, OBSERVED_LIST_BEGIN, feed);
        for (const GList *item = objects; item; item = item->next) {
            const struct known *known = item->data;
            if (known->generation == state->generation[feed])
                write_known(text, kinds[feed], known);
        }
        if (feed == FEED_PODS)
            write_promises(state, text, true);
    }
    g_autoptr(GList) bookings = in_order(state->bookings);
    for (const GList *item = bookings; item; item = item->next)
        write_open(text, item->data);
    write_parts(state, text);
}
