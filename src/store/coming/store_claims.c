/* SPDX-License-Identifier: Apache-2.0 */
/* Room that claims on lent quota keep (wire/claim_sheet.h), and what Nodes show of it. */
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

/* Under the lock. */
static bool set_claims(struct store *store, const char *node, GPtrArray *take_claims)
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

/* --- the ConfigMap -------------------------------------------------------------------------------- */

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

/* Under the lock. */
static bool apply(struct store *store, const struct claim_sheet *sheet)
{
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
        if (!set_claims(store, node, copy_claims(claim_sheet_on(sheet, node))))
            continue;
        store_notify(store, node, NULL);
        changed = true;
    }
    return changed;
}

void store_apply_claims(struct store *store, const struct claim_sheet *sheet)
{
    g_autofree char *text = NULL;

    store_lock(store);
    const bool changed = apply(store, sheet);
    const uint64_t number = changed ? observer_number(store->observer) : 0;
    store_unlock(store);
    if (number > 0)
        text = claim_sheet_encode(sheet);
    observer_tell(store->observer, &(struct observation){OBSERVED_CLAIMS, number, .claims = text});
}

static void add_claim(const char *node, const struct room_claim *claim, void *data)
{
    claim_sheet_add(data, node, claim_dup(claim));
}

char *store_tell_claims(struct store *store)
{
    g_autoptr(claim_sheet) sheet = claim_sheet_new();

    nominations_each_claim(store->nominations, add_claim, sheet);
    return claim_sheet_encode(sheet);
}

void store_set_claims_trouble(struct store *store, const char *why)
{
    store_lock(store);
    g_free(store->claims_trouble);
    store->claims_trouble = g_strdup(why);
    store_unlock(store);
}

char *store_claims_trouble(struct store *store)
{
    store_lock(store);
    char *why = g_strdup(store->claims_trouble);
    store_unlock(store);
    return why;
}

/* --- what Nodes show ------------------------------------------------------------------------------ */

static guint hash_of(const char *text)
{
    return text && *text ? g_str_hash(text) | 1 : 0;
}

GPtrArray *store_read_claim_view(const struct store *store, const char *text, GError **error)
{
    return store->options.claims_on_nodes ? claims_decode(text, error) : NULL;
}

void store_note_claim_view(struct store *store, const char *node, const char *text,
                           GPtrArray *take_claims)
{
    if (!hash_of(text))
        g_hash_table_remove(store->claim_views, node);
    else
        g_hash_table_replace(store->claim_views, g_strdup(node), GUINT_TO_POINTER(hash_of(text)));
    if (take_claims)
        set_claims(store, node, take_claims);
}

bool store_shows_claims(const struct store *store, const char *node, const char *text)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(store->claim_views, node)) == hash_of(text);
}

char **store_list_claim_views(const struct store *store)
{
    g_autofree gpointer *names = g_hash_table_get_keys_as_array(store->claim_views, NULL);

    return g_strdupv((char **)names);
}
