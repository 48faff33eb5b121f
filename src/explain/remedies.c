/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/remedies.h"

#include "base/printable.h"
#include "explain/remedy_search.h"

static void clear_pair(gpointer data)
{
    struct remedy_pair *pair = data;

    remedy_clear(&pair->changes[0]);
    remedy_clear(&pair->changes[1]);
}

void remedies_free(struct remedies *remedies)
{
    if (!remedies)
        return;
    g_array_unref(remedies->single);
    g_array_unref(remedies->pairs);
    g_free(remedies);
}

struct remedies *remedies_find(const struct remedies_query *query)
{
    struct remedies *remedies = g_new0(struct remedies, 1);
    struct search search = {
        .query = query,
        .found = remedies_new(),
        .pairs = g_array_new(FALSE, FALSE, sizeof(struct remedy_pair)),
        .tries_max = REMEDY_TRIES_MAX,
    };

    g_array_set_clear_func(search.pairs, clear_pair);
    search.ledger = store_decide(query->copy, &search.moment);
    search_singles(&search);
    if (search.found->len == 0)
        search_pairs(&search);
    store_unlock(query->copy);
    *remedies = (struct remedies){search.found, search.pairs};
    return remedies;
}

/* --- views ---------------------------------------------------------------------------------- */

static const char *const kind_names[REMEDY_N] = {
    [REMEDY_TURN] = "turn",       [REMEDY_MATCH] = "match",
    [REMEDY_UNCORDON] = "uncordon", [REMEDY_TOLERATE] = "tolerate",
    [REMEDY_SELECTOR] = "selector", [REMEDY_AFFINITY] = "affinity",
    [REMEDY_UNIT] = "unit",
    [REMEDY_DIALECT] = "dialect",   [REMEDY_LESS] = "less",       [REMEDY_MOVE] = "move",
    [REMEDY_END] = "end",         [REMEDY_HEAL] = "heal",
    [REMEDY_CONDITION] = "condition", [REMEDY_LABEL] = "label",
    [REMEDY_QUOTA] = "quota",
};

/* Rows of one container stand together. */
static void encode_amounts(struct json_writer *writer, const GArray *amounts)
{
    const char *container = NULL;

    json_key_array(writer, "containers");
    for (guint i = 0; amounts && i < amounts->len; i++) {
        const struct remedy_amount *one = &g_array_index(amounts, struct remedy_amount, i);
        if (g_strcmp0(container, one->container) != 0) {
            if (container) {
                json_end_object(writer);
                json_end_object(writer);
            }
            container = one->container;
            json_begin_object(writer);
            json_key_string(writer, "name", container);
            json_key_object(writer, "amounts");
        }
        json_key_string(writer, one->resource, one->amount);
    }
    if (container) {
        json_end_object(writer);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void encode_remedy(struct json_writer *writer, const struct remedy *remedy)
{
    json_begin_object(writer);
    json_key_string(writer, "kind", kind_names[remedy->kind]);
    json_key_string(writer, "text", remedy->text);
    json_key_string(writer, "node", remedy->node);
    json_key_string(writer, "container", remedy->container);
    json_key_string(writer, "resource", remedy->resource);
    json_key_string(writer, "key", remedy->key);
    json_key_string(writer, "from", remedy->from);
    json_key_string(writer, "to", remedy->to);
    encode_amounts(writer, remedy->amounts);
    json_key_known_int(writer, "card", remedy->kind == REMEDY_HEAL, remedy->card);
    json_key_array(writer, "pods");
    for (guint i = 0; remedy->pods && i < remedy->pods->len; i++) {
        const struct remedy_pod *pod = &g_array_index(remedy->pods, struct remedy_pod, i);
        json_begin_object(writer);
        json_key_string(writer, "namespace", pod->ns);
        json_key_string(writer, "name", pod->name);
        json_key_string(writer, "to", pod->to);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static const struct remedy_pair *pair_at(const struct remedies *remedies, guint i)
{
    return &g_array_index(remedies->pairs, struct remedy_pair, i);
}

void remedies_encode(struct json_writer *writer, const struct remedies *remedies)
{
    json_key_array(writer, "remedies");
    for (guint i = 0; remedies && i < remedies->single->len; i++)
        encode_remedy(writer, &g_array_index(remedies->single, struct remedy, i));
    json_end_array(writer);
    json_key_array(writer, "pairs");
    for (guint i = 0; remedies && i < remedies->pairs->len; i++) {
        const struct remedy *changes = pair_at(remedies, i)->changes;
        json_begin_object(writer);
        json_key_string(writer, "node", changes[0].node);
        json_key_array(writer, "changes");
        encode_remedy(writer, &changes[0]);
        encode_remedy(writer, &changes[1]);
        json_end_array(writer);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void remedies_write(GString *text, const struct remedies *remedies)
{
    if (!remedies)
        return;
    g_string_append(text, remedies->single->len > 0  ? "\nANY OF THESE WOULD ADMIT IT\n"
                          : remedies->pairs->len > 0 ? "\nNO SINGLE CHANGE WOULD ADMIT IT; ANY "
                                                       "OF THESE PAIRS WOULD\n"
                                                     : "\nNo change, nor two together, was found "
                                                       "that would admit it.\n");
    for (guint i = 0; i < remedies->single->len; i++) {
        const struct remedy *remedy = &g_array_index(remedies->single, struct remedy, i);
        printable_append(text, "%5u  %s; it would go to %s\n", i + 1, remedy->text, remedy->node);
    }
    for (guint i = 0; i < remedies->pairs->len; i++) {
        const struct remedy *changes = pair_at(remedies, i)->changes;
        printable_append(text, "%5u  %s, and %s; it would go to %s\n", i + 1, changes[0].text,
                         changes[1].text, changes[0].node);
    }
}
