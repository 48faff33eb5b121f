/* SPDX-License-Identifier: Apache-2.0 */
/* Room that claims on lent quota keep (wire/claim_sheet.h), and what Nodes show of it. */
#include "store/store_state.h"
#include "wire/claim_sheet.h"

/* --- the ConfigMap -------------------------------------------------------------------------------- */

void store_apply_claims(struct store *store, struct claim_sheet *sheet)
{
    store_change_part(store, &part_claims, store_take_sheet, sheet);
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
        store_set_claims(store, node, take_claims);
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
