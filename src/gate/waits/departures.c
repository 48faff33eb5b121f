/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/waits/departures.h"

#include "base/roll.h"

#include <gpuledger/dialect.h>
#include <string.h>

#define COPIED_AT_ONCE 16

/* A namespace that some are of, or a node that some were on. None is empty. */
struct group {
    char *name;
    GQueue pods; /* struct departure, in the order in which they vanished */
};

struct departure {
    struct roll_entry entry;
    uint64_t number; /* greater than that of who vanished before */
    char *uid; /* as those of its node and tenant g_ref_string, so that an image costs little */
    struct group *node, *tenant;
    struct departed pod;
    int64_t since_ms; /* 0: no decision has found it yet */
    GList in_all, in_node, in_tenant;
};

struct departures {
    GQueue all;                  /* struct departure, in the order in which they vanished */
    GHashTable *nodes, *tenants; /* name, the group's own -> struct group * */
    struct roll roll;            /* all of them */
    uint64_t number;             /* the last */
    guint n_untimed;             /* those that no decision has found yet */
    int64_t earliest_ms;         /* no other's time began earlier; INT64_MAX: there are none */
};

/* One as it was, in an image. */
struct kept {
    uint64_t number;
    char *uid, *node, *tenant; /* g_ref_string */
    struct departed pod;
    int64_t since_ms;
};

struct departures_image {
    struct roll *roll;
    GArray *pods; /* struct kept */
};

static void free_group(gpointer data)
{
    struct group *group = data;

    g_ref_string_release(group->name);
    g_free(group);
}

static struct group *find_group(GHashTable *groups, const char *name)
{
    struct group *group = g_hash_table_lookup(groups, name);

    if (!group) {
        group = g_new0(struct group, 1);
        group->name = g_ref_string_new(name);
        g_hash_table_insert(groups, group->name, group);
    }
    return group;
}

static void leave_group(GHashTable *groups, struct group *group, GList *link)
{
    g_queue_unlink(&group->pods, link);
    if (group->pods.length == 0)
        g_hash_table_remove(groups, group->name);
}

static struct departure *first(const GQueue *pods)
{
    return pods->head->data;
}

struct vanished {
    const char *uid, *node, *ns;
    struct departed pod;
    int64_t since_ms;
};

static void append(struct departures *departures, const struct vanished *vanished)
{
    struct departure *departure = g_new(struct departure, 1);

    *departure = (struct departure){
        .number = ++departures->number,
        .uid = g_ref_string_new(vanished->uid),
        .node = find_group(departures->nodes, vanished->node),
        .tenant = find_group(departures->tenants, vanished->ns ? vanished->ns : ""),
        .pod = vanished->pod,
        .since_ms = vanished->since_ms,
        .in_all.data = departure,
        .in_node.data = departure,
        .in_tenant.data = departure,
    };
    g_queue_push_tail_link(&departures->all, &departure->in_all);
    g_queue_push_tail_link(&departure->node->pods, &departure->in_node);
    g_queue_push_tail_link(&departure->tenant->pods, &departure->in_tenant);
    roll_add(&departures->roll, &departure->entry);
    if (vanished->since_ms == 0)
        departures->n_untimed++;
    else
        departures->earliest_ms = MIN(departures->earliest_ms, vanished->since_ms);
}

static void let_go(struct departures *departures, struct departure *departure)
{
    roll_remove(&departures->roll, &departure->entry);
    departures->n_untimed -= departure->since_ms == 0;
    g_queue_unlink(&departures->all, &departure->in_all);
    leave_group(departures->nodes, departure->node, &departure->in_node);
    leave_group(departures->tenants, departure->tenant, &departure->in_tenant);
    g_ref_string_release(departure->uid);
    g_free(departure);
}

struct departures *departures_new(void)
{
    struct departures *departures = g_new0(struct departures, 1);

    departures->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_group);
    departures->tenants = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_group);
    roll_init(&departures->roll);
    departures->earliest_ms = INT64_MAX;
    return departures;
}

void departures_free(struct departures *departures)
{
    while (departures->all.length > 0)
        let_go(departures, first(&departures->all));
    g_hash_table_unref(departures->nodes);
    g_hash_table_unref(departures->tenants);
    roll_clear(&departures->roll);
    g_free(departures);
}

bool departures_copy(struct departures *departures, const struct departures *from, uint64_t *number)
{
    const GList *link = from->all.head;
    int n = 0;

    while (link && ((const struct departure *)link->data)->number <= *number)
        link = link->next;
    for (; link && n < COPIED_AT_ONCE; link = link->next, n++) {
        const struct departure *departure = link->data;
        append(departures,
               &(struct vanished){departure->uid, departure->node->name, departure->tenant->name,
                                  departure->pod, departure->since_ms});
        *number = departure->number;
    }
    return link;
}

/* The node's, as they are now. */
static void tell(const struct departures *departures, struct ledger *ledger, const char *node)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(struct departed));
    const struct group *group = g_hash_table_lookup(departures->nodes, node);

    for (const GList *link = group ? group->pods.head : NULL; link; link = link->next)
        g_array_append_val(found, ((const struct departure *)link->data)->pod);
    ledger_set_departed(ledger, node, (const struct departed *)(void *)found->data, found->len);
}

/* Of the namespace that has most, who vanished the longest ago. */
static struct departure *find_surplus(const struct departures *departures)
{
    const struct group *most = NULL;
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, departures->tenants);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct group *tenant = value;
        if (!most || tenant->pods.length > most->pods.length ||
            (tenant->pods.length == most->pods.length &&
             first(&tenant->pods)->number < first(&most->pods)->number))
            most = tenant;
    }
    return first(&most->pods);
}

static void forget(struct departures *departures, struct ledger *ledger,
                   struct departure *departure)
{
    char *node = g_ref_string_acquire(departure->node->name);

    let_go(departures, departure);
    tell(departures, ledger, node);
    g_ref_string_release(node);
}

/* The newcomer counts: a namespace with as many as another loses its own. */
static void add(struct departures *departures, struct ledger *ledger,
                const struct vanished *vanished)
{
    append(departures, vanished);
    tell(departures, ledger, vanished->node);
    if (departures->all.length > DEPARTURES_MAX)
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
        &(struct vanished){allocation->uid, allocation->node->name, allocation->ns, pod, 0});
}

/* They are mostly the last ones. */
bool departures_begin(struct departures *departures, int64_t now_ms)
{
    const bool begins = departures->n_untimed > 0;

    for (GList *link = departures->all.tail; departures->n_untimed > 0; link = link->prev) {
        struct departure *departure = link->data;
        if (departure->since_ms != 0)
            continue;
        roll_change(&departures->roll, &departure->entry);
        departure->since_ms = now_ms;
        departures->n_untimed--;
        departures->earliest_ms = MIN(departures->earliest_ms, now_ms);
    }
    return begins;
}

static bool is_over(const struct departure *departure, int64_t now_ms)
{
    return departure->since_ms != 0 && now_ms - departure->since_ms >= DEPARTURE_MAX_MS;
}

/* A list may drop a thousand pods at once: their nodes are told when all of those have gone. */
bool departures_end(struct departures *departures, struct ledger *ledger, int64_t now_ms)
{
    g_autoptr(GPtrArray) nodes = NULL;

    if (departures->earliest_ms == INT64_MAX || now_ms - departures->earliest_ms < DEPARTURE_MAX_MS)
        return false;
    nodes = g_ptr_array_new_with_free_func((GDestroyNotify)g_ref_string_release);
    departures->earliest_ms = INT64_MAX;
    for (GList *link = departures->all.head, *next; link; link = next) {
        struct departure *departure = link->data;
        next = link->next;
        if (is_over(departure, now_ms)) {
            g_ptr_array_add(nodes, g_ref_string_acquire(departure->node->name));
            let_go(departures, departure);
        } else if (departure->since_ms != 0) {
            departures->earliest_ms = MIN(departures->earliest_ms, departure->since_ms);
        }
    }
    for (guint i = 0; i < nodes->len; i++) {
        if (i == 0 || nodes->pdata[i] != nodes->pdata[i - 1])
            tell(departures, ledger, nodes->pdata[i]);
    }
    return nodes->len > 0;
}

/* --- an image --------------------------------------------------------------------------------- */

static void clear_kept(gpointer data)
{
    const struct kept *kept = data;

    g_ref_string_release(kept->uid);
    g_ref_string_release(kept->node);
    g_ref_string_release(kept->tenant);
}

struct departures_image *departures_image_new(void)
{
    struct departures_image *image = g_new0(struct departures_image, 1);

    image->pods = g_array_new(FALSE, FALSE, sizeof(struct kept));
    g_array_set_clear_func(image->pods, clear_kept);
    return image;
}

void departures_image_free(struct departures_image *image)
{
    g_array_unref(image->pods);
    g_free(image);
}

static void save(const struct roll_entry *entry, void *data)
{
    const struct departure *departure = (const struct departure *)entry;
    struct departures_image *image = data;
    const struct kept kept = {
        .number = departure->number,
        .uid = g_ref_string_acquire(departure->uid),
        .node = g_ref_string_acquire(departure->node->name),
        .tenant = g_ref_string_acquire(departure->tenant->name),
        .pod = departure->pod,
        .since_ms = departure->since_ms,
    };

    g_array_append_val(image->pods, kept);
}

void departures_image_begin(struct departures_image *image, struct departures *departures)
{
    image->roll = &departures->roll;
    roll_begin_image(image->roll, save, image);
}

bool departures_image_take(struct departures_image *image)
{
    return roll_take(image->roll, COPIED_AT_ONCE);
}

static gint compare_kept(gconstpointer a, gconstpointer b)
{
    const struct kept *one = a, *other = b;

    return (one->number > other->number) - (one->number < other->number);
}

void departures_encode(struct json_writer *writer, struct departures_image *image)
{
    g_array_sort(image->pods, compare_kept);
    json_begin_array(writer);
    for (guint i = 0; i < image->pods->len; i++) {
        const struct kept *kept = &g_array_index(image->pods, struct kept, i);
        g_autofree char *time = g_strdup_printf("%" G_GINT64_FORMAT, kept->pod.assume_time_ns);
        json_begin_object(writer);
        json_key_string(writer, "uid", kept->uid);
        json_key_string(writer, "node", kept->node);
        json_key_string(writer, "namespace", kept->tenant);
        json_key_string(writer, "dialect", kept->pod.dialect->name);
        json_key_int(writer, "amount", kept->pod.match_amount);
        json_key_string(writer, "time", time);
        json_key_int(writer, "since", kept->since_ms);
        json_end_object(writer);
    }
    json_end_array(writer);
}

/* --- and back --------------------------------------------------------------------------------- */

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

    while (departures->all.length > 0)
        forget(departures, ledger, first(&departures->all));
    departures->earliest_ms = INT64_MAX;
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
            &(struct vanished){fields.uid, fields.node, fields.ns, pod, MAX(fields.since, 0)});
    }
    return true;
}
