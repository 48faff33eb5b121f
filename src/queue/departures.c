/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/departures.h"

#include <gpuledger/dialect.h>
#include <string.h>

/* A namespace that some are of. */
struct tenant {
    char *ns;
    guint n; /* of them */
};

/* All of them lie in a row, since all are looked at when one comes or goes: a line of the cache each. */
struct departure {
    char *uid, *node; /* g_ref_string, so that a copy costs little */
    struct tenant *tenant;
    struct departed pod;
    int64_t since_ms; /* 0: no decision has found it yet */
    guint node_hash;  /* so that most are passed over without a look at their names */
};

struct departures {
    GArray *pods;        /* struct departure, in the order in which they vanished */
    GHashTable *tenants; /* namespace, the tenant's own -> struct tenant *; none is empty */
};

static void free_tenant(gpointer data)
{
    struct tenant *tenant = data;

    g_free(tenant->ns);
    g_free(tenant);
}

static struct departure *at(const struct departures *departures, guint i)
{
    return &g_array_index(departures->pods, struct departure, i);
}

static struct tenant *tenant_of(struct departures *departures, const char *ns)
{
    struct tenant *tenant = g_hash_table_lookup(departures->tenants, ns);

    if (!tenant) {
        tenant = g_new0(struct tenant, 1);
        tenant->ns = g_strdup(ns);
        g_hash_table_insert(departures->tenants, tenant->ns, tenant);
    }
    return tenant;
}

/* Its UID and node are taken. */
static void append(struct departures *departures, struct departure departure, struct tenant *tenant)
{
    departure.tenant = tenant;
    departure.tenant->n++;
    g_array_append_val(departures->pods, departure);
}

/* It is in the row no more. */
static void let_go(struct departures *departures, const struct departure *departure)
{
    if (--departure->tenant->n == 0)
        g_hash_table_remove(departures->tenants, departure->tenant->ns);
    g_ref_string_release(departure->uid);
    g_ref_string_release(departure->node);
}

static void let_all_go(struct departures *departures)
{
    for (guint i = 0; i < departures->pods->len; i++)
        let_go(departures, at(departures, i));
    g_array_set_size(departures->pods, 0);
}

struct departures *departures_new(void)
{
    struct departures *departures = g_new0(struct departures, 1);

    departures->pods = g_array_new(FALSE, FALSE, sizeof(struct departure));
    departures->tenants = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_tenant);
    return departures;
}

void departures_free(struct departures *departures)
{
    let_all_go(departures);
    g_array_unref(departures->pods);
    g_hash_table_unref(departures->tenants);
    g_free(departures);
}

void departures_copy(struct departures *departures, const struct departures *from)
{
    const struct tenant *tenant = NULL; /* of the one before, and here: */
    struct tenant *own = NULL;

    let_all_go(departures);
    for (guint i = 0; i < from->pods->len; i++) {
        const struct departure *departure = at(from, i);
        g_ref_string_acquire(departure->uid);
        g_ref_string_acquire(departure->node);
        if (departure->tenant != tenant)
            own = tenant_of(departures, departure->tenant->ns);
        tenant = departure->tenant;
        append(departures, *departure, own);
    }
}

/* The node's, as they are now. */
static void tell(const struct departures *departures, struct ledger *ledger, const char *node)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(struct departed));
    const guint hash = g_str_hash(node);

    for (guint i = 0; i < departures->pods->len; i++) {
        const struct departure *departure = at(departures, i);
        if (departure->node_hash == hash && g_str_equal(departure->node, node))
            g_array_append_val(found, departure->pod);
    }
    ledger_set_departed(ledger, node, (const struct departed *)(void *)found->data, found->len);
}

/* Of the namespace that has most, who vanished the longest ago. */
static guint find_surplus(const struct departures *departures)
{
    guint surplus = 0;

    for (guint i = 1; i < departures->pods->len; i++) {
        if (at(departures, i)->tenant->n > at(departures, surplus)->tenant->n)
            surplus = i;
    }
    return surplus;
}

static void forget(struct departures *departures, struct ledger *ledger, guint i)
{
    const struct departure gone = *at(departures, i);

    g_array_remove_index(departures->pods, i);
    tell(departures, ledger, gone.node);
    let_go(departures, &gone);
}

/* Its UID and node are taken. The newcomer counts: a namespace with as many as another loses its own. */
static void add(struct departures *departures, struct ledger *ledger, struct departure departure,
                const char *ns)
{
    departure.node_hash = g_str_hash(departure.node);
    append(departures, departure, tenant_of(departures, ns ? ns : ""));
    tell(departures, ledger, departure.node);
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
        (struct departure){.uid = g_ref_string_new(allocation->uid),
                           .node = g_ref_string_new(allocation->node->name),
                           .pod = pod},
        allocation->ns);
}

bool departures_begin(struct departures *departures, int64_t now_ms)
{
    bool began = false;

    for (guint i = 0; i < departures->pods->len; i++) {
        struct departure *departure = at(departures, i);
        if (departure->since_ms != 0)
            continue;
        departure->since_ms = now_ms;
        began = true;
    }
    return began;
}

/* Moves those whose time is over to the other row. */
static void part(struct departures *departures, int64_t now_ms, GArray *over)
{
    guint n = 0;

    for (guint i = 0; i < departures->pods->len; i++) {
        const struct departure departure = *at(departures, i);
        if (departure.since_ms == 0 || now_ms - departure.since_ms < DEPARTURE_MAX_MS)
            *at(departures, n++) = departure;
        else
            g_array_append_val(over, departure);
    }
    g_array_set_size(departures->pods, n);
}

/* A list may drop a thousand pods at once: their nodes are told when all of those have gone. */
bool departures_end(struct departures *departures, struct ledger *ledger, int64_t now_ms)
{
    g_autoptr(GArray) over = g_array_new(FALSE, FALSE, sizeof(struct departure));

    part(departures, now_ms, over);
    for (guint i = 0; i < over->len; i++) {
        const struct departure *departure = &g_array_index(over, struct departure, i);
        tell(departures, ledger, departure->node);
        let_go(departures, departure);
    }
    return over->len > 0;
}

/* --- for who goes on from it ------------------------------------------------------------------ */

void departures_encode(struct json_writer *writer, const struct departures *departures)
{
    json_begin_array(writer);
    for (guint i = 0; i < departures->pods->len; i++) {
        const struct departure *departure = at(departures, i);
        g_autofree char *time =
            g_strdup_printf("%" G_GINT64_FORMAT, departure->pod.assume_time_ns);
        json_begin_object(writer);
        json_key_string(writer, "uid", departure->uid);
        json_key_string(writer, "node", departure->node);
        json_key_string(writer, "namespace", departure->tenant->ns);
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
            (struct departure){.uid = g_ref_string_new(fields.uid),
                               .node = g_ref_string_new(fields.node),
                               .pod = pod,
                               .since_ms = MAX(fields.since, 0)},
            fields.ns);
    }
    return true;
}
