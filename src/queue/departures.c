/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/departures.h"

#include <gpuledger/dialect.h>
#include <string.h>

struct departure {
    char *uid, *node, *ns;
    struct departed pod;
    int64_t since_ms; /* 0: no decision has found it yet */
};

struct departures {
    GPtrArray *pods; /* struct departure *, in the order in which they vanished */
};

static void free_departure(gpointer data)
{
    struct departure *departure = data;

    g_free(departure->uid);
    g_free(departure->node);
    g_free(departure->ns);
    g_free(departure);
}

static struct departure *departure_new(const char *uid, const char *node, const char *ns,
                                       struct departed pod, int64_t since_ms)
{
    struct departure *departure = g_new0(struct departure, 1);

    *departure =
        (struct departure){g_strdup(uid), g_strdup(node), g_strdup(ns ? ns : ""), pod, since_ms};
    return departure;
}

struct departures *departures_new(void)
{
    struct departures *departures = g_new0(struct departures, 1);

    departures->pods = g_ptr_array_new_with_free_func(free_departure);
    return departures;
}

void departures_free(struct departures *departures)
{
    g_ptr_array_unref(departures->pods);
    g_free(departures);
}

void departures_copy(struct departures *departures, const struct departures *from)
{
    g_ptr_array_set_size(departures->pods, 0);
    for (guint i = 0; i < from->pods->len; i++) {
        const struct departure *departure = g_ptr_array_index(from->pods, i);
        g_ptr_array_add(departures->pods,
                        departure_new(departure->uid, departure->node, departure->ns,
                                      departure->pod, departure->since_ms));
    }
}

/* The node's, as they are now. */
static void tell(const struct departures *departures, struct ledger *ledger, const char *node)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(struct departed));

    for (guint i = 0; i < departures->pods->len; i++) {
        const struct departure *departure = g_ptr_array_index(departures->pods, i);
        if (g_str_equal(departure->node, node))
            g_array_append_val(found, departure->pod);
    }
    ledger_set_departed(ledger, node, (const struct departed *)(void *)found->data, found->len);
}

/* Of the namespace that has most, who vanished the longest ago. */
static guint find_surplus(const struct departures *departures)
{
    g_autoptr(GHashTable) counts = g_hash_table_new(g_str_hash, g_str_equal);
    guint most = 0, surplus = 0;

    for (guint i = departures->pods->len; i-- > 0;) {
        const struct departure *departure = g_ptr_array_index(departures->pods, i);
        const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(counts, departure->ns)) + 1;
        g_hash_table_insert(counts, departure->ns, GUINT_TO_POINTER(n));
        if (n < most)
            continue;
        most = n;
        surplus = i;
    }
    return surplus;
}

static void forget(struct departures *departures, struct ledger *ledger, guint i)
{
    struct departure *departure = g_ptr_array_steal_index(departures->pods, i);

    tell(departures, ledger, departure->node);
    free_departure(departure);
}

/* The newcomer counts: a namespace with as many as another loses its own. */
static void add(struct departures *departures, struct ledger *ledger,
                struct departure *take_departure)
{
    g_ptr_array_add(departures->pods, take_departure);
    tell(departures, ledger, take_departure->node);
    if (departures->pods->len > DEPARTURES_MAX)
        forget(departures, ledger, find_surplus(departures));
}

void departures_note(struct departures *departures, struct ledger *ledger,
                     const struct allocation *allocation)
{
    const struct departed pod = {allocation->dialect, allocation->match_amount,
                                 allocation->assume_time_ns};

    if (!allocation->waiting || !pod.dialect || !pod.dialect->in_flight)
        return;
    add(departures, ledger,
        departure_new(allocation->uid, allocation->node->name, allocation->ns, pod, 0));
}

bool departures_begin(struct departures *departures, int64_t now_ms)
{
    bool began = false;

    for (guint i = 0; i < departures->pods->len; i++) {
        struct departure *departure = g_ptr_array_index(departures->pods, i);
        if (departure->since_ms != 0)
            continue;
        departure->since_ms = now_ms;
        began = true;
    }
    return began;
}

bool departures_end(struct departures *departures, struct ledger *ledger, int64_t now_ms)
{
    bool ended = false;

    for (guint i = departures->pods->len; i-- > 0;) {
        const struct departure *departure = g_ptr_array_index(departures->pods, i);
        if (departure->since_ms == 0 || now_ms - departure->since_ms < DEPARTURE_MAX_MS)
            continue;
        forget(departures, ledger, i);
        ended = true;
    }
    return ended;
}

/* --- for who goes on from it ------------------------------------------------------------------ */

void departures_encode(struct json_writer *writer, const struct departures *departures)
{
    json_begin_array(writer);
    for (guint i = 0; i < departures->pods->len; i++) {
        const struct departure *departure = g_ptr_array_index(departures->pods, i);
        g_autofree char *time =
            g_strdup_printf("%" G_GINT64_FORMAT, departure->pod.assume_time_ns);
        json_begin_object(writer);
        json_key_string(writer, "uid", departure->uid);
        json_key_string(writer, "node", departure->node);
        json_key_string(writer, "namespace", departure->ns);
        json_key_string(writer, "dialect", departure->pod.dialect->name);
        json_key_int(writer, "amount", departure->pod.match_amount);
        json_key_string(writer, "time", time);
        json_key_int(writer, "since", departure->since_ms);
        json_end_object(writer);
    }
    json_end_array(writer);
}

struct departure_object {
    const char *uid, *node, *ns, *dialect, *time;
    int64_t amount, since;
};

static const struct json_field departure_fields[] = {
    JSON_FIELD_STRING(struct departure_object, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct departure_object, node, "node", JSON_REQUIRED),
    JSON_FIELD_STRING(struct departure_object, ns, "namespace", 0),
    JSON_FIELD_STRING(struct departure_object, dialect, "dialect", JSON_REQUIRED),
    JSON_FIELD_STRING(struct departure_object, time, "time", JSON_REQUIRED),
    JSON_FIELD_INT64(struct departure_object, amount, "amount", JSON_REQUIRED),
    JSON_FIELD_INT64(struct departure_object, since, "since", 0),
    JSON_FIELD_END,
};

bool departures_decode(struct departures *departures, struct ledger *ledger,
                       struct json_arena *arena, const cJSON *list, GError **error)
{
    const cJSON *item;

    while (departures->pods->len > 0)
        forget(departures, ledger, departures->pods->len - 1);
    cJSON_ArrayForEach (item, list) {
        struct departure_object fields = {0};
        if (!json_decode(arena, item, departure_fields, &fields, error))
            return false;
        const struct dialect *dialect = dialect_find(fields.dialect);
        if (!dialect || !dialect->in_flight)
            continue;
        const struct departed pod = {dialect, fields.amount,
                                     g_ascii_strtoll(fields.time, NULL, 10)};
        add(departures, ledger,
            departure_new(fields.uid, fields.node, fields.ns, pod, MAX(fields.since, 0)));
    }
    return true;
}
