/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up kind, to show how one is added and to test that nothing else knows of it: a CardFault names cards
 * of a node that must not be used.
 *
 *   {"kind":"CardFault","metadata":{"namespace":"ops","name":"a"},"spec":{"node":"n1","cards":"0,1"}}
 */
#include "core/ledger.h"
#include "store/kinds/kind.h"
#include "store/store_state.h"

KIND_ROW(card_faults, 99);

struct card_fault_view {
    const char *ns, *name; /* as all views begin */
    const char *node, *cards;
};

#define FAULT(member, path) JSON_FIELD_STRING(struct card_fault_view, member, path, JSON_REQUIRED)
static const struct json_field fields[] = {
    FAULT(ns, "metadata.namespace"),
    FAULT(name, "metadata.name"),
    FAULT(node, "spec.node"),
    FAULT(cards, "spec.cards"),
    JSON_FIELD_END,
};

static bool card_fault_view_decode(struct json_arena *arena, const cJSON *object,
                                   struct card_fault_view *ret_view, GError **error)
{
    *ret_view = (struct card_fault_view){NULL};
    return json_decode(arena, object, fields, ret_view, error);
}

static void card_fault_view_encode(struct json_writer *writer, const struct card_fault_view *view)
{
    json_encode(writer, &(struct json_encoding){.fields = fields, .base = view});
}

KIND_VIEW(card_fault);

/* What it said of which node. */
struct known {
    char *node;
    uint32_t generation;
};

static void known_free(gpointer data)
{
    struct known *known = data;

    g_free(known->node);
    g_free(known);
}

static GHashTable *all_known(const struct kind_call *call)
{
    if (!*call->kept)
        *call->kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, known_free);
    return *call->kept;
}

static void apply(const struct kind_call *call, const void *view)
{
    const struct card_fault_view *fault = view;
    g_autoptr(GArray) cards = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_auto(GStrv) words = g_strsplit(fault->cards, ",", -1);
    struct known *known = g_new0(struct known, 1);

    for (size_t i = 0; words[i]; i++) {
        guint64 card;
        if (g_ascii_string_to_unsigned(words[i], 10, 0, NODE_CARDS_MAX - 1, &card, NULL))
            g_array_append_val(cards, (int32_t){(int32_t)card});
    }
    *known = (struct known){g_strdup(fault->node), call->generation};
    g_hash_table_replace(all_known(call), g_strdup_printf("%s/%s", fault->ns, fault->name), known);
    ledger_set_unhealthy(call->store->ledger, fault->node, (const int32_t *)(void *)cards->data,
                         cards->len);
    store_notify(call->store, fault->node, NULL);
}

static void forget(const struct kind_call *call, const struct object_name *name)
{
    g_autofree char *key = g_strdup_printf("%s/%s", name->ns, name->name);
    const struct known *known = g_hash_table_lookup(all_known(call), key);

    if (known)
        ledger_set_unhealthy(call->store->ledger, known->node, NULL, 0);
    g_hash_table_remove(all_known(call), key);
}

static void sweep(const struct kind_call *call)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, all_known(call));
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct known *known = value;
        if (known->generation == call->generation)
            continue;
        ledger_set_unhealthy(call->store->ledger, known->node, NULL, 0);
        g_hash_table_iter_remove(&iter);
    }
}

static void free_known(void *kept)
{
    g_hash_table_unref(kept);
}

const struct kind kind_card_faults = {
    KIND_NAME("cardfault"),
    .feed = "cardfaults",
    .resource = "cardfaults",
    .kind = "CardFault",
    .api = "/apis/cards.example.com/v1",
    .optional = true,
    KIND_OF_VIEW(card_fault),
    .apply = apply,
    .remove = forget,
    .sweep = sweep,
    .free = free_known,
};
