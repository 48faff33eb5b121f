/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/fit.h"

#include "base/printable.h"
#include "wire/constraints.h"

#include <string.h>

static void write_group(GString *text, const struct fit_group *group)
{
    const enum reason reason = fit_group_reason(group);

    if (group->needs == 0)
        printable_append(text, "; their group %s does not come: nothing says how many it needs",
                         group->name);
    else if (reason == REASON_NONE)
        printable_append(text, "; their group %s comes: it needs %u", group->name, group->needs);
    else
        printable_append(text, "; their group %s does not come, so none is placed: it needs %u",
                         group->name, group->needs);
    if (group->there > 0)
        printable_append(text, ", %u there already", group->there);
}

/* Sentences for people. Free with g_free. */
static char *summarize(const struct fit *fit)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const int64_t moved = (int64_t)fit->moves->len - fit->stranded;

    if (fit->moves->len > 0)
        printable_append(text,
                         "%u drained pod%s with a GPU: %" G_GINT64_FORMAT
                         " fit%s elsewhere, %" G_GINT64_FORMAT " nowhere%s",
                         fit->moves->len, fit->moves->len == 1 ? "" : "s", moved,
                         moved == 1 ? "s" : "", fit->stranded, fit->name ? "; then " : "");
    else if (fit->drains)
        printable_append(text, "no pod of the drained nodes holds a GPU%s",
                         fit->name ? "; then " : "");
    if (fit->no_gpu)
        printable_append(text, "%s/%s asks for no GPU: gpuledger keeps it from no node", fit->ns,
                         fit->name);
    else if (fit->name && fit->wanted > 0)
        printable_append(text,
                         "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " pods like %s/%s (%s) fit",
                         fit->fitting, fit->wanted, fit->ns, fit->name, fit->asks);
    else if (fit->name)
        printable_append(text, "%" G_GINT64_FORMAT "%s pods like %s/%s (%s) fit", fit->fitting,
                         fit->capped ? " or more" : "", fit->ns, fit->name, fit->asks);
    if (fit->group)
        write_group(text, fit->group);
    if (fit->capped && fit->wanted > 0)
        printable_append(text, "; no more than %d are tried",
                         fit->group ? GANG_MEMBERS_MAX : FIT_REPLICAS_MAX);
    if (fit->made > 0)
        printable_append(text, ", with %" G_GINT64_FORMAT " new node%s", fit->made,
                         fit->made == 1 ? "" : "s");
    return g_strdup(text->str);
}

static void encode_rest(struct json_writer *writer, const struct explanation *rest)
{
    json_key_array(writer, "refusals");
    for (guint i = 0; rest && i < rest->groups->len; i++) {
        const struct explained_group *group =
            &g_array_index(rest->groups, struct explained_group, i);
        const struct explained_node *closest =
            &g_array_index(rest->nodes, struct explained_node, group->closest);
        json_begin_object(writer);
        json_key_string(writer, "reason",
                        group->reason == REASON_NONE ? NULL : reason_info(group->reason)->code);
        json_key_bool(writer, "cordoned", group->barrier == BARRIER_CORDONED);
        json_key_string(writer, "barrier", barrier_code(group->barrier));
        json_key_int(writer, "nodes", group->n);
        json_key_string(writer, "closest", closest->name);
        json_key_string(writer, "why", closest->why);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void fit_encode(struct json_writer *writer, const struct fit *fit)
{
    g_autofree char *summary = summarize(fit);

    json_begin_object(writer);
    json_key_string(writer, "summary", summary);
    json_key_bool(writer, "fits", fit_is_whole(fit));
    json_key_string(writer, "namespace", fit->ns);
    json_key_string(writer, "name", fit->name);
    json_key_string(writer, "asks", fit->asks);
    overlooked_encode(writer, fit->overlooked);
    json_key_known_int(writer, "wanted", fit->wanted > 0, fit->wanted);
    json_key_int(writer, "fitting", fit->fitting);
    json_key_bool(writer, "capped", fit->capped);
    json_key_int(writer, "newNodes", fit->made);
    json_key(writer, "group");
    fit_group_encode(writer, fit->group);
    json_key_array(writer, "places");
    for (guint i = 0; i < fit->places->len; i++) {
        const struct fit_place *place = &g_array_index(fit->places, struct fit_place, i);
        json_begin_object(writer);
        json_key_string(writer, "node", place->node);
        json_key_int(writer, "pods", place->pods);
        json_key_bool(writer, "new", place->made);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_key_array(writer, "drained");
    for (guint i = 0; i < fit->moves->len; i++) {
        const struct fit_move *move = &g_array_index(fit->moves, struct fit_move, i);
        json_begin_object(writer);
        json_key_string(writer, "namespace", move->ns);
        json_key_string(writer, "name", move->name);
        json_key_string(writer, "from", move->from);
        json_key_string(writer, "to", move->to);
        json_key_string(writer, "why", move->why);
        json_end_object(writer);
    }
    json_end_array(writer);
    encode_rest(writer, fit->rest);
    json_end_object(writer);
}

/* --- tables --------------------------------------------------------------------------------- */

static void write_moves(GString *text, const struct fit *fit)
{
    size_t title_width = strlen("DRAINED"), from_width = strlen("FROM");

    for (guint i = 0; i < fit->moves->len; i++) {
        const struct fit_move *move = &g_array_index(fit->moves, struct fit_move, i);
        title_width = MAX(title_width, strlen(move->ns) + 1 + strlen(move->name));
        from_width = MAX(from_width, strlen(move->from));
    }
    printable_append(text, "\n%-*s  %-*s  %s\n", (int)title_width, "DRAINED", (int)from_width,
                     "FROM", "TO");
    for (guint i = 0; i < fit->moves->len; i++) {
        const struct fit_move *move = &g_array_index(fit->moves, struct fit_move, i);
        g_autofree char *title = g_strdup_printf("%s/%s", move->ns, move->name);
        printable_append(text, "%-*s  %-*s  %s%s\n", (int)title_width, title, (int)from_width,
                         move->from, move->to ? move->to : "nowhere; ", move->to ? "" : move->why);
    }
}

static void write_places(GString *text, const struct fit *fit)
{
    printable_append(text, "\n%5s  %s\n", "PODS", "NODE");
    for (guint i = 0; i < fit->places->len; i++) {
        const struct fit_place *place = &g_array_index(fit->places, struct fit_place, i);
        printable_append(text, "%5" G_GINT64_FORMAT "  %s\n", place->pods, place->node);
    }
}

static void write_rest(GString *text, const struct explanation *rest)
{
    size_t width = strlen("CLOSEST");

    for (guint i = 0; i < rest->groups->len; i++) {
        const struct explained_group *group =
            &g_array_index(rest->groups, struct explained_group, i);
        width = MAX(width, strlen(g_array_index(rest->nodes, struct explained_node, group->closest)
                                      .name));
    }
    g_string_append(text, "\nWHY NOT ONE MORE\n");
    printable_append(text, "%5s  %-20s  %-*s  %s\n", "NODES", "REASON", (int)width, "CLOSEST",
                     "WHY");
    for (guint i = 0; i < rest->groups->len; i++) {
        const struct explained_group *group =
            &g_array_index(rest->groups, struct explained_group, i);
        const struct explained_node *closest =
            &g_array_index(rest->nodes, struct explained_node, group->closest);
        printable_append(text, "%5u  %-20s  %-*s  %s\n", group->n,
                         group->reason == REASON_NONE ? barrier_code(group->barrier)
                                                      : reason_info(group->reason)->code,
                         (int)width, closest->name, closest->why);
    }
}

void fit_write(GString *text, const struct fit *fit)
{
    g_autofree char *summary = summarize(fit);
    g_autofree char *overlooked = overlooked_tell(fit->overlooked);
    g_autofree char *why = fit->group && fit->group->needs == 0 ? fit_group_tell(fit->group) : NULL;

    printable_append(text, "%s\n", summary);
    if (overlooked)
        printable_append(text, "Not looked at: %s\n", overlooked);
    if (why)
        printable_append(text, "%s\n", why);
    if (fit->moves->len > 0)
        write_moves(text, fit);
    if (fit->places->len > 0)
        write_places(text, fit);
    if (fit->rest && fit->rest->groups->len > 0)
        write_rest(text, fit->rest);
}
