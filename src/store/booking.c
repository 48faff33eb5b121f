/* SPDX-License-Identifier: Apache-2.0 */
#include "store/booking.h"
#include "core/ledger.h"
#include "dialect/classes/classes.h"
#include "wire/share.h"

#include <string.h>

/* Clocks differ by less; later times are a tenant's word. */
#define AHEAD_NS INT64_C(3600000000000)

static int64_t next_assume_time(const struct node *node, int64_t now_ns)
{
    int64_t time_ns = now_ns;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        if (other->assume_time_ns >= time_ns && other->assume_time_ns - now_ns < AHEAD_NS)
            time_ns = other->assume_time_ns + 1;
    }
    return time_ns;
}

/* What its Binding says that its card has, 0 where it says nothing in the node's units. */
static int64_t units_of_card(const struct allocation *allocation, const struct node *node)
{
    const struct card *card = node_card(node, allocation->shares[0].card);
    const bool units = allocation->shares[0].memory.kind == AMOUNT_NODE_UNITS;

    return units && card ? card->memory / node->memory_unit : 0;
}

static struct allocation *place(const struct booking_entry *entry,
                                const struct placement *placement)
{
    const struct request *request = placement->request;
    struct allocation *allocation =
        allocation_new(entry->uid, entry->ns, entry->name, placement->n_shares);

    allocation_note_request(allocation, request);
    allocation->since_ms = entry->moment->now_ms;
    memcpy(allocation->shares, placement->shares,
           placement->n_shares * sizeof *placement->shares);
    return allocation;
}

struct allocation *booking_reserve(struct ledger *ledger, const struct node *node,
                                   const struct booking_entry *entry,
                                   const struct placement *placement, enum reason *ret_reason)
{
    struct allocation *allocation = place(entry, placement);

    allocation->state = ALLOCATION_ASSUMED;
    allocation->waiting = allocation->dialect->in_flight != NULL;
    allocation->heeded = true;
    allocation->assume_time_ns = next_assume_time(node, entry->moment->now_ns);
    allocation->turn = entry->turn;
    allocation_witness(allocation, node);
    allocation->card_units = units_of_card(allocation, node);
    return ledger_reserve(ledger, node->name, allocation, ret_reason);
}

struct allocation *booking_hold(struct ledger *ledger, const struct node *node,
                                const struct booking_entry *entry,
                                const struct placement *placement)
{
    struct allocation *allocation = place(entry, placement);
    enum reason reason;

    allocation->state = ALLOCATION_HELD;
    allocation_witness(allocation, node);
    allocation->card_units = units_of_card(allocation, node);
    return ledger_reserve(ledger, node->name, allocation, &reason);
}

/* --- as text -------------------------------------------------------------------------------- */

/* In the units of then, whatever those of the node are now. */
static struct share as_granted(const struct allocation *booking, uint32_t i)
{
    uint32_t n;
    const struct share *known = allocation_known(booking, &n);
    struct share share = booking->shares[i];

    if (n == booking->n_shares && known[i].memory.kind == AMOUNT_NODE_UNITS)
        share.memory = known[i].memory;
    return share;
}

void booking_encode(struct json_writer *writer, const struct allocation *booking)
{
    booking_encode_on(writer, booking, booking->node->name);
}

void booking_encode_on(struct json_writer *writer, const struct allocation *booking,
                       const char *node)
{
    g_autofree char *time = g_strdup_printf("%" G_GINT64_FORMAT, booking->assume_time_ns);

    json_begin_object(writer);
    json_key_string(writer, "uid", booking->uid);
    json_key_string(writer, "namespace", booking->ns);
    json_key_string(writer, "name", booking->name);
    json_key_string(writer, "node", node);
    json_key_string(writer, "dialect", booking->dialect->name);
    json_key_int(writer, "amount", booking->match_amount);
    if (booking->card_units > 0)
        json_key_int(writer, "cardUnits", booking->card_units);
    if (booking->oversubscribes)
        json_key_bool(writer, "oversubscribes", true);
    if (booking->work_class)
        json_key_string(writer, "class", booking->work_class->name);
    if (booking->terms && booking->terms->memory_wanted > 0)
        json_key_int(writer, "wanted", booking->terms->memory_wanted);
    json_key_string(writer, "time", time);
    if (booking->turn > 0) {
        g_autofree char *turn = g_strdup_printf("%" G_GINT64_FORMAT, booking->turn);
        json_key_string(writer, "turn", turn);
    }
    json_key_array(writer, "shares");
    for (uint32_t i = 0; i < booking->n_shares; i++) {
        const struct share share = as_granted(booking, i);
        share_encode(writer, &share);
    }
    json_end_array(writer);
    json_end_object(writer);
}

struct booking {
    const char *uid, *ns, *name, *node, *dialect, *time, *turn, *work_class;
    int64_t amount, wanted, card_units;
    bool oversubscribes;
    const cJSON *shares;
};

static const struct json_field booking_fields[] = {
    JSON_FIELD_STRING(struct booking, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, name, "name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, node, "node", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, dialect, "dialect", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, time, "time", JSON_REQUIRED),
    JSON_FIELD_STRING(struct booking, turn, "turn", 0),
    JSON_FIELD_STRING(struct booking, work_class, "class", 0),
    JSON_FIELD_INT64(struct booking, amount, "amount", JSON_REQUIRED),
    JSON_FIELD_INT64(struct booking, card_units, "cardUnits", 0),
    JSON_FIELD_BOOL(struct booking, oversubscribes, "oversubscribes", 0),
    JSON_FIELD_INT64(struct booking, wanted, "wanted", 0),
    JSON_FIELD_ARRAY(struct booking, shares, "shares", JSON_REQUIRED),
    JSON_FIELD_END,
};

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
    if (!allocation->terms)
        allocation->terms = terms_new();
    allocation->terms->devices = g_steal_pointer(&kept);
}

struct allocation *booking_decode(struct json_arena *arena, const cJSON *object,
                                  const struct classes *classes, const char **ret_node)
{
    struct booking booking = {0};
    gint64 time_ns, turn = 0;
    const cJSON *item;
    uint32_t n = 0;

    if (!json_decode(arena, object, booking_fields, &booking, NULL) ||
        !g_ascii_string_to_signed(booking.time, 10, 0, G_MAXINT64, &time_ns, NULL) ||
        (booking.turn && !g_ascii_string_to_signed(booking.turn, 10, 0, G_MAXINT64, &turn, NULL)))
        return NULL;
    const struct dialect *dialect = dialect_find(booking.dialect);
    const int n_shares = cJSON_GetArraySize(booking.shares);
    if (!dialect || n_shares < 1 || n_shares > REQUEST_ASKS_MAX)
        return NULL;
    g_autoptr(allocation) allocation =
        allocation_new(booking.uid, booking.ns, booking.name, (size_t)n_shares);
    cJSON_ArrayForEach (item, booking.shares) {
        if (!share_decode(arena, item, &allocation->shares[n++]))
            return NULL;
    }
    if (booking.wanted > 0) {
        allocation->terms = terms_new();
        allocation->terms->memory_wanted = MIN(booking.wanted, AMOUNT_BYTES_MAX);
    }
    keep_devices(allocation);
    allocation->dialect = dialect;
    allocation->state = ALLOCATION_UNKNOWN;
    allocation->waiting = dialect->in_flight != NULL;
    allocation->match_amount = booking.amount;
    allocation->card_units = MAX(booking.card_units, 0);
    allocation->oversubscribes = booking.oversubscribes;
    allocation->class_open = !booking.work_class;
    allocation->work_class =
        booking.work_class ? work_class_ref(classes_find(classes, booking.work_class)) : NULL;
    allocation->assume_time_ns = time_ns;
    allocation->turn = turn;
    *ret_node = booking.node;
    return g_steal_pointer(&allocation);
}
