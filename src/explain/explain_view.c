/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/explain.h"

#include "base/printable.h"
#include "wire/constraints.h"

#include <string.h>

#define PLAN_HINTS_MAX 3 /* commands for single remedies */

static const char *const verdict_names[] = {
    [VERDICT_NO_GPU] = "no_gpu", [VERDICT_INVALID] = "invalid", [VERDICT_PLACED] = "placed",
    [VERDICT_FITS] = "fits",     [VERDICT_REFUSED] = "refused",
};

static const struct explained_node *node_at(const struct explanation *explanation, guint i)
{
    return &g_array_index(explanation->nodes, struct explained_node, i);
}

static guint n_described(const struct explanation *explanation)
{
    return MIN(explanation->nodes->len, EXPLAIN_NODES_MAX);
}

static char *format_time(int64_t since_ns)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(since_ns / 1000000000);

    return time ? g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ") : NULL;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static void encode_strings(struct json_writer *writer, const char *key, const GPtrArray *strings)
{
    json_key_array(writer, key);
    for (guint i = 0; strings && i < strings->len; i++)
        json_string(writer, strings->pdata[i]);
    json_end_array(writer);
}

/* null for REASON_NONE */
static void encode_reason(struct json_writer *writer, enum reason reason)
{
    json_key_string(writer, "reason",
                    reason == REASON_NONE ? NULL : reason_info(reason)->code);
}

static void encode_place(struct json_writer *writer, const struct explanation *explanation)
{
    const struct explained_place *place = &explanation->place;
    g_autofree char *since = place->since_ns > 0 ? format_time(place->since_ns) : NULL;

    json_key(writer, "place");
    if (!place->node) {
        json_null(writer);
        return;
    }
    json_begin_object(writer);
    json_key_string(writer, "node", place->node);
    json_key_string(writer, "cards", place->cards);
    json_key_string(writer, "state", place->state);
    json_key_string(writer, "since", since);
    encode_strings(writer, "neighbours", place->neighbours);
    json_end_object(writer);
}

static void encode_group(struct json_writer *writer, const struct explanation *explanation,
                         const struct explained_group *group)
{
    const struct explained_node *closest = node_at(explanation, group->closest);

    json_begin_object(writer);
    encode_reason(writer, group->reason);
    json_key_string(writer, "text", reason_info(group->reason)->text);
    json_key_bool(writer, "cordoned", group->barrier == BARRIER_CORDONED);
    json_key_string(writer, "barrier", barrier_code(group->barrier));
    json_key_int(writer, "nodes", group->n);
    json_key_string(writer, "closest", closest->name);
    json_key_string(writer, "why", closest->why);
    json_end_object(writer);
}

static void encode_amounts(struct json_writer *writer, const char *key, int64_t wants,
                           int64_t left, int64_t all)
{
    json_key_object(writer, key);
    json_key_int(writer, "wants", wants);
    json_key_int(writer, "free", left);
    json_key_int(writer, "of", all);
    json_end_object(writer);
}

static void encode_card(struct json_writer *writer, const struct explained_card *card)
{
    json_begin_object(writer);
    json_key_int(writer, "index", card->index);
    encode_reason(writer, card->reason);
    json_key_string(writer, "why", card->why);
    json_key_bool(writer, "healthy", card->healthy);
    encode_amounts(writer, "memoryBytes", card->memory_wants, card->memory_free, card->memory);
    encode_amounts(writer, "coreThousandths", card->core_wants, card->core_free, card->core);
    encode_strings(writer, "pods", card->pods);
    json_end_object(writer);
}

static void encode_node(struct json_writer *writer, const struct explained_node *node)
{
    json_begin_object(writer);
    json_key_string(writer, "name", node->name);
    encode_reason(writer, node->reason);
    json_key_string(writer, "why", node->why);
    json_key_bool(writer, "cordoned", node->barrier == BARRIER_CORDONED);
    json_key_string(writer, "barrier", barrier_code(node->barrier));
    json_key_bool(writer, "waits", node->waits);
    json_key_array(writer, "cards");
    for (guint i = 0; i < node->cards->len; i++)
        encode_card(writer, &g_array_index(node->cards, struct explained_card, i));
    json_end_array(writer);
    json_end_object(writer);
}

/* The first line: what there is to say in one sentence. Free with g_free. */
static char *summarize(const struct explanation *explanation)
{
    const struct explained_place *place = &explanation->place;
    const char *ns = explanation->ns, *name = explanation->name;

    switch (explanation->verdict) {
    case VERDICT_NO_GPU:
        break;
    case VERDICT_INVALID:
        return g_strdup_printf("%s/%s is refused everywhere: %s", ns, name, explanation->failure);
    case VERDICT_PLACED:
        return g_strdup_printf("%s/%s is on %s, %s", ns, name, place->node, place->cards);
    case VERDICT_FITS:
        return g_strdup_printf("%s/%s wants %s (%s): %u of %u nodes take%s it, first by %s is %s, %s",
                               ns, name, explanation->asks, explanation->dialects,
                               explanation->n_taking, explanation->n_nodes,
                               explanation->n_taking == 1 ? "s" : "", place->state, place->node,
                               place->cards);
    case VERDICT_REFUSED:
        if (explanation->n_nodes == 1)
            return g_strdup_printf("%s/%s wants %s (%s): the only node does not take it", ns, name,
                                   explanation->asks, explanation->dialects);
        return g_strdup_printf("%s/%s wants %s (%s): none of %u nodes takes it", ns, name,
                               explanation->asks, explanation->dialects, explanation->n_nodes);
    }
    return g_strdup_printf("%s/%s asks for no GPU: gpuledger keeps it from no node", ns, name);
}

void explanation_encode(struct json_writer *writer, const struct explanation *explanation)
{
    g_autofree char *summary = summarize(explanation);

    json_begin_object(writer);
    json_key_string(writer, "namespace", explanation->ns);
    json_key_string(writer, "name", explanation->name);
    json_key_string(writer, "verdict", verdict_names[explanation->verdict]);
    json_key_string(writer, "summary", summary);
    json_key_string(writer, "asks", explanation->asks);
    json_key_string(writer, "dialects", explanation->dialects);
    json_key_string(writer, "failure", explanation->failure);
    encode_place(writer, explanation);
    overlooked_encode(writer, explanation->overlooked);
    json_key_string(writer, "heldBack", explanation->held_back);
    json_key_int(writer, "nodesTotal", explanation->n_nodes);
    json_key_int(writer, "nodesTaking", explanation->n_taking);
    json_key_array(writer, "groups");
    for (guint i = 0; i < explanation->groups->len; i++)
        encode_group(writer, explanation,
                     &g_array_index(explanation->groups, struct explained_group, i));
    json_end_array(writer);
    json_key_array(writer, "nodes");
    for (guint i = 0; !explanation->brief && i < n_described(explanation); i++)
        encode_node(writer, node_at(explanation, i));
    json_end_array(writer);
    remedies_encode(writer, explanation->remedies);
    preview_encode(writer, explanation->preview);
    reclaim_preview_encode(writer, explanation->reclaim);
    group_place_encode(writer, explanation->group);
    class_told_encode(writer, explanation->work_class);
    quota_told_encode(writer, explanation->quota);
    json_key_int(writer, "nodesOmitted",
                 explanation->nodes->len - (explanation->brief ? 0 : n_described(explanation)));
    json_end_object(writer);
}

/* --- tables --------------------------------------------------------------------------------- */

static const char *group_word(enum reason reason, enum barrier barrier)
{
    if (reason != REASON_NONE)
        return reason_info(reason)->code;
    return barrier != BARRIER_NONE ? barrier_code(barrier) : "takes it";
}

static int widest_name(const struct explanation *explanation)
{
    size_t width = strlen("NODE");

    for (guint i = 0; i < n_described(explanation); i++)
        width = MAX(width, strlen(node_at(explanation, i)->name));
    return (int)width;
}

static void write_groups(GString *text, const struct explanation *explanation)
{
    const int width = MAX(widest_name(explanation), (int)strlen("CLOSEST"));

    printable_append(text, "\n%5s  %-20s  %-*s  %s\n", "NODES", "REASON", width, "CLOSEST", "WHY");
    for (guint i = 0; i < explanation->groups->len; i++) {
        const struct explained_group *group =
            &g_array_index(explanation->groups, struct explained_group, i);
        const struct explained_node *closest = node_at(explanation, group->closest);
        printable_append(text, "%5u  %-20s  %-*s  %s\n", group->n,
                         group_word(group->reason, group->barrier), width, closest->name,
                         closest->why);
    }
}

static void write_nodes(GString *text, const struct explanation *explanation)
{
    const int width = widest_name(explanation);

    printable_append(text, "\n%-*s  CARD  %-20s  %s\n", width, "NODE", "REASON", "WHY");
    for (guint i = 0; i < n_described(explanation); i++) {
        const struct explained_node *node = node_at(explanation, i);
        printable_append(text, "%-*s     *  %-20s  %s\n", width, node->name,
                         group_word(node->reason, node->barrier), node->why);
        for (guint j = 0; j < node->cards->len; j++) {
            const struct explained_card *card =
                &g_array_index(node->cards, struct explained_card, j);
            printable_append(text, "%-*s  %4d  %-20s  %s\n", width, node->name, card->index,
                             card->reason == REASON_NONE ? "has room"
                                                         : reason_info(card->reason)->code,
                             card->why);
        }
    }
    if (explanation->nodes->len > n_described(explanation))
        printable_append(text, "%u more nodes are counted above\n",
                         explanation->nodes->len - n_described(explanation));
}

static void write_place(GString *text, const struct explanation *explanation)
{
    const struct explained_place *place = &explanation->place;
    g_autofree char *since = place->since_ns > 0 ? format_time(place->since_ns) : NULL;

    printable_append(text, "\nSTATE       %s\n", place->state);
    if (since)
        printable_append(text, "SINCE       %s\n", since);
    g_string_append(text, "BESIDE      ");
    for (guint i = 0; i < place->neighbours->len; i++)
        printable_append(text, "%s%s", i ? ", " : "", (char *)place->neighbours->pdata[i]);
    printable_append(text, "%s\n", place->neighbours->len ? "" : "nobody");
}

static void write_only(GString *text, const struct explanation *explanation, guint i)
{
    const struct remedy *remedy = &g_array_index(explanation->remedies->single, struct remedy, i);
    const GArray *pods = remedy->pods;

    printable_append(text, "'gpuledger plan %s/%s --only ", explanation->ns, explanation->name);
    for (guint k = 0; k < pods->len; k++) {
        const struct remedy_pod *pod = &g_array_index(pods, struct remedy_pod, k);
        printable_append(text, "%s%s/%s", k ? "," : "", pod->ns, pod->name);
    }
    printable_append(text,
                     remedy->kind == REMEDY_END
                         ? " --end%s' shows how those of %u end; with --apply it ends them.\n"
                         : "%s' keeps to the pods of %u.\n",
                     remedy->force ? " --force" : "", i + 1);
}

/* A remedy that moves or ends pods says what it comes to; the plan says in which order, and can do it. */
static void write_plan_hint(GString *text, const struct explanation *explanation)
{
    const GArray *remedies = explanation->remedies ? explanation->remedies->single : NULL;
    guint told = 0;

    for (guint i = 0; explanation->known && remedies && i < remedies->len; i++) {
        const struct remedy *remedy = &g_array_index(remedies, struct remedy, i);
        if (!remedy->planned || told == PLAN_HINTS_MAX)
            continue;
        if (told++ == 0 && remedy->kind == REMEDY_END)
            g_string_append_c(text, '\n');
        else if (told == 1)
            printable_append(text,
                             "\n'gpuledger plan %s/%s' shows moves that make room for it, step by "
                             "step; with --apply it makes them.\n",
                             explanation->ns, explanation->name);
        write_only(text, explanation, i);
    }
}

void explanation_write(GString *text, const struct explanation *explanation, bool wide)
{
    g_autofree char *summary = summarize(explanation);
    g_autofree char *overlooked = overlooked_tell(explanation->overlooked);

    printable_append(text, "%s\n", summary);
    if (explanation->held_back)
        printable_append(text, "Held back: %s\n", explanation->held_back);
    if (overlooked)
        printable_append(text, "Not looked at: %s\n", overlooked);
    if (explanation->verdict == VERDICT_PLACED)
        write_place(text, explanation);
    class_told_write(text, explanation->work_class);
    quota_told_write(text, explanation->quota);
    group_place_write(text, explanation->group);
    if (explanation->groups->len > 0)
        write_groups(text, explanation);
    preview_write(text, explanation->preview);
    reclaim_preview_write(text, explanation->reclaim);
    remedies_write(text, explanation->remedies);
    write_plan_hint(text, explanation);
    if (wide && explanation->nodes->len > 0)
        write_nodes(text, explanation);
}
