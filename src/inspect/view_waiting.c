/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for a node, and what was decided lately. */
#include "base/decisions.h"
#include "inspect/views.h"
#include "store/amounts.h"

#include <string.h>

/* --- pods that wait for a node -------------------------------------------------------------- */

struct waiting_pod {
    char *ns, *title, *created, *place;
    struct request *request;
    int64_t priority;
    bool asked;
};

static void clear_pod(gpointer data)
{
    struct waiting_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->title);
    g_free(pod->created);
    g_free(pod->place);
    request_free(pod->request);
}

struct waiting_pods {
    GArray *shown;      /* struct waiting_pod */
    const char *search; /* in lower case; NULL: all */
    guint found;
};

static bool is_found(const struct waiting_pods *pods, const char *title)
{
    g_autofree char *lower = pods->search ? g_ascii_strdown(title, -1) : NULL;

    return !lower || strstr(lower, pods->search);
}

/* Under the lock; there are only so many. */
static bool add_pod(const struct arrivals_row *row, void *data)
{
    struct waiting_pods *pods = data;

    if (!is_found(pods, row->title))
        return true;
    if (pods->found++ >= VIEW_WAITING_PODS)
        return true;
    const struct waiting_pod pod = {g_strdup(row->ns),
                                    g_strdup(row->title),
                                    g_strdup(row->created),
                                    g_strdup(row->place ? row->place->node : NULL),
                                    request_dup(row->request),
                                    row->priority,
                                    row->asked};

    g_array_append_val(pods->shown, pod);
    return pods->search || pods->shown->len < VIEW_WAITING_PODS;
}

static void write_pod(struct json_writer *writer, const struct waiting_pod *pod)
{
    g_autofree char *asks = request_text(NULL, pod->request);

    json_begin_object(writer);
    json_key_string(writer, "namespace", pod->ns);
    json_key_string(writer, "name", pod->title + strlen(pod->ns) + 1);
    json_key_string(writer, "asks", asks);
    json_key_string(writer, "dialect", pod->request->dialect ? pod->request->dialect->name : NULL);
    json_key_string(writer, "created", pod->created);
    json_key_int(writer, "priority", pod->priority);
    json_key_bool(writer, "asked", pod->asked);
    json_key_string(writer, "place", pod->place);
    json_end_object(writer);
}

/* --- groups that wait, or are half ------------------------------------------------------------ */

static const char *group_state(const struct gang_row *row)
{
    return row->half ? "half" : row->whole ? "whole" : row->held > 0 ? "placed" : "waiting";
}

static void clear_group(gpointer data)
{
    struct gang_row *row = data;

    g_free((char *)row->ns);
    g_free((char *)row->name);
}

/* Under the lock. */
static void add_group(const struct gang_row *row, void *data)
{
    struct gang_row copy = *row;

    if (row->whole && !row->half)
        return;
    copy.ns = g_strdup(row->ns);
    copy.name = g_strdup(row->name);
    g_array_append_val(data, copy);
}

static gint compare_groups(gconstpointer a, gconstpointer b)
{
    const struct gang_row *left = a, *right = b;
    const int order = strcmp(left->ns, right->ns);

    return order ? order : strcmp(left->name, right->name);
}

/* One that was visited twice is in a row with itself. */
static bool is_again(const struct gang_row *row, const struct gang_row *before)
{
    return before && row->native == before->native && compare_groups(row, before) == 0;
}

static void write_group(struct json_writer *writer, const struct gang_row *row)
{
    json_begin_object(writer);
    json_key_string(writer, "namespace", row->ns);
    json_key_string(writer, "name", row->name);
    json_key_string(writer, "state", group_state(row));
    json_key_int(writer, "needs", row->min);
    json_key_int(writer, "known", row->known);
    json_key_int(writer, "held", row->held);
    json_key_int(writer, "bound", row->bound);
    json_key_int(writer, "fit", row->fit);
    json_key_int(writer, "roomNodes", row->room_nodes);
    json_end_object(writer);
}

static void write_groups(struct json_writer *writer, GArray *groups)
{
    const struct gang_row *before = NULL;
    guint n = 0;

    g_array_sort(groups, compare_groups);
    for (guint i = 0; i < groups->len && n < VIEW_WAITING_PODS; i++) {
        const struct gang_row *row = &g_array_index(groups, struct gang_row, i);
        if (is_again(row, before))
            continue;
        write_group(writer, row);
        before = row;
        n++;
    }
}

void view_waiting(struct store *store, const char *search, GString *reply)
{
    g_autoptr(GArray) pods = g_array_new(FALSE, FALSE, sizeof(struct waiting_pod));
    g_autofree char *lower = search && *search ? g_ascii_strdown(search, -1) : NULL;
    struct waiting_pods looked = {pods, lower, 0};
    g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(struct gang_row));
    struct json_writer writer;

    g_array_set_clear_func(pods, clear_pod);
    g_array_set_clear_func(groups, clear_group);
    const guint all = store_arrivals_each(store, add_pod, &looked);
    const guint total = lower ? looked.found : all;
    store_gangs_each(store, add_group, groups);
    json_writer_init(&writer, reply);
    json_begin_object(&writer);
    json_key_array(&writer, "pods");
    for (guint i = 0; i < pods->len; i++)
        write_pod(&writer, &g_array_index(pods, struct waiting_pod, i));
    json_end_array(&writer);
    json_key_int(&writer, "total", total);
    json_key_array(&writer, "groups");
    write_groups(&writer, groups);
    json_end_array(&writer);
    json_end_object(&writer);
}

/* --- groups in metrics ------------------------------------------------------------------------ */

enum { GROUPS_WAITING, GROUPS_PLACED, GROUPS_HALF, GROUPS_WHOLE, GROUPS_N };

struct group_counts {
    uint64_t groups[GROUPS_N], room_nodes, room_ends[GANG_ROOM_N];
};

static void count_group(const struct gang_row *row, void *data)
{
    struct group_counts *counts = data;

    counts->room_nodes += row->room_nodes;
    counts->groups[row->half       ? GROUPS_HALF
                   : row->whole    ? GROUPS_WHOLE
                   : row->held > 0 ? GROUPS_PLACED
                                   : GROUPS_WAITING]++;
}

void view_groups_metrics(struct store *store, GString *reply)
{
    static const char *const states[GROUPS_N] = {"waiting", "placed", "half", "whole"};
#define END_TEXT(name, text) text,
    static const char *const ends[GANG_ROOM_N] = {GANG_ROOM_ENDS(END_TEXT)};
    struct group_counts counts = {0};

    store_gangs_each(store, count_group, &counts);
    store_lock(store);
    memcpy(counts.room_ends, gangs_room_ends(store_gangs(store)), sizeof counts.room_ends);
    store_unlock(store);
    g_string_append(reply, "# HELP gpuledger_groups Groups of pods that come together.\n"
                           "# TYPE gpuledger_groups gauge\n");
    for (int i = 0; i < GROUPS_N; i++)
        g_string_append_printf(reply, "gpuledger_groups{state=\"%s\"} %" G_GUINT64_FORMAT "\n",
                               states[i], counts.groups[i]);
    g_string_append_printf(
        reply,
        "# HELP gpuledger_group_room_nodes Nodes that are kept for groups "
        "(--gang-keep-room).\n"
        "# TYPE gpuledger_group_room_nodes gauge\n"
        "gpuledger_group_room_nodes %" G_GUINT64_FORMAT "\n"
        "# HELP gpuledger_group_rooms_total Room that was kept or looked for for a "
        "group, by what became of it.\n"
        "# TYPE gpuledger_group_rooms_total counter\n",
        counts.room_nodes);
    for (int i = 0; i < GANG_ROOM_N; i++)
        g_string_append_printf(reply,
                               "gpuledger_group_rooms_total{result=\"%s\"} %" G_GUINT64_FORMAT "\n",
                               ends[i], counts.room_ends[i]);
}

/* --- decisions ------------------------------------------------------------------------------ */

static void write_refusals(struct json_writer *writer, const struct decision *decision)
{
    json_begin_array(writer);
    for (size_t i = 0; i < DECISION_REASONS && decision->refusals[i].n > 0; i++) {
        json_begin_object(writer);
        json_key_string(writer, "reason", reason_info(decision->refusals[i].reason)->code);
        json_key_string(writer, "text", reason_info(decision->refusals[i].reason)->text);
        json_key_int(writer, "nodes", (int64_t)decision->refusals[i].n);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void write_decision(const struct decision_row *row, void *data)
{
    struct json_writer *writer = data;
    const struct decision *decision = &row->decision;

    json_begin_object(writer);
    json_key_string(writer, "verb", metrics_verb(decision->verb));
    json_key_string(writer, "namespace", decision->ns);
    json_key_string(writer, "name", decision->name);
    json_key_int(writer, "first", row->first_s);
    json_key_int(writer, "last", row->last_s);
    json_key_int(writer, "times", (int64_t)row->times);
    json_key_int(writer, "offered", (int64_t)decision->n_nodes);
    json_key_int(writer, "taking", (int64_t)decision->n_taking);
    json_key(writer, "refusals");
    write_refusals(writer, decision);
    json_key_string(writer, "node", decision->node);
    json_key_known_int(writer, "card", decision->card >= 0, decision->card);
    json_key_string(writer, "result", decision->result);
    json_key_string(writer, "policy", decision->policy);
    json_key_string(writer, "why", decision->why);
    json_end_object(writer);
}

void view_decisions(GString *reply)
{
    struct json_writer writer;

    json_writer_init(&writer, reply);
    json_begin_object(&writer);
    json_key_array(&writer, "decisions");
    decisions_each(write_decision, &writer);
    json_end_array(&writer);
    json_end_object(&writer);
}
