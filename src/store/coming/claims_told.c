/* SPDX-License-Identifier: Apache-2.0 */
/* Claims that count, and what a record has of them. */
#include "store/store_state.h"
#include "wire/claim_sheet.h"

/* Under the lock: a pod whose claim has come or gone. */
static void nominate(struct store *store, const char *uid)
{
    const struct pending *pending = g_hash_table_lookup(store->pending, uid);

    if (pending)
        nominations_note(store->nominations,
                         &(struct pod_view){.uid = uid,
                                            .priority = pending->priority,
                                            .created = pending->created,
                                            .nominated_node = pending->nominated_node,
                                            .terminating = pending->terminating},
                         pending->request);
}

static void nominate_all(struct store *store, const GPtrArray *claims)
{
    for (guint i = 0; claims && i < claims->len; i++)
        nominate(store, ((const struct room_claim *)claims->pdata[i])->uid);
}

bool store_set_claims(struct store *store, const char *node, GPtrArray *take_claims)
{
    const GPtrArray *known = nominations_claims(store->nominations, node);
    g_autoptr(GPtrArray) before = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *was = known ? claims_encode(known) : NULL;
    g_autofree char *is = take_claims ? claims_encode(take_claims) : NULL;

    if (g_strcmp0(was, is) == 0) {
        g_clear_pointer(&take_claims, g_ptr_array_unref);
        return false;
    }
    for (guint i = 0; known && i < known->len; i++)
        g_ptr_array_add(before, g_strdup(((const struct room_claim *)known->pdata[i])->uid));
    nominations_set_claims(store->nominations, node, take_claims);
    for (guint i = 0; i < before->len; i++)
        nominate(store, before->pdata[i]);
    nominate_all(store, nominations_claims(store->nominations, node));
    return true;
}

static void note_node(const char *node, const struct room_claim *claim, void *data)
{
    g_hash_table_add(data, g_strdup(node));
}

static GPtrArray *copy_claims(const GPtrArray *claims)
{
    GPtrArray *copy = claims_new();

    for (guint i = 0; claims && i < claims->len; i++)
        g_ptr_array_add(copy, claim_dup(claims->pdata[i]));
    return copy;
}

bool store_take_sheet(void *self, void *data)
{
    struct store *store = self;
    const struct claim_sheet *sheet = data;
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter iter;
    gpointer node;
    bool changed = false;

    nominations_each_claim(store->nominations, note_node, names);
    g_hash_table_iter_init(&iter, sheet->nodes);
    while (g_hash_table_iter_next(&iter, &node, NULL))
        g_hash_table_add(names, g_strdup(node));
    g_hash_table_iter_init(&iter, names);
    while (g_hash_table_iter_next(&iter, &node, NULL)) {
        if (!store_set_claims(store, node, copy_claims(claim_sheet_on(sheet, node))))
            continue;
        sleepers_wake(&store->sleepers, node, NULL);
        changed = true;
    }
    return changed;
}

/* --- a record ------------------------------------------------------------------------------------- */

static void add_claim(const char *node, const struct room_claim *claim, void *data)
{
    claim_sheet_add(data, node, claim_dup(claim));
}

static void *begin(void *self)
{
    const struct store *store = self;
    g_autoptr(claim_sheet) sheet = claim_sheet_new();

    if (!store->options.reclaim || store->options.claims_on_nodes)
        return NULL;
    nominations_each_claim(store->nominations, add_claim, sheet);
    return claim_sheet_encode(sheet);
}

static bool learn(void *self, struct json_arena *arena, const cJSON *object, GError **error)
{
    g_autoptr(claim_sheet) sheet = claim_sheet_decode(arena, object, error);

    if (sheet)
        store_take_sheet(self, sheet);
    return sheet != NULL;
}

static const struct part_image image = {
    .kind = "claims", .begin = begin, .encode = store_write_text, .free = g_free, .learn = learn};

const struct part part_claims = {
    .name = "claims",
    .source = PART_OF_WATCHES,
    .start = store_as_part,
    .image = &image,
};
