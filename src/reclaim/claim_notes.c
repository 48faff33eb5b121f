/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/claim_notes.h"

#include "core/fail.h"

#define CALL_MS 10000
#define TRIES_MAX 5

/* As the Node has them now. What cannot be read is written anew. */
static GPtrArray *read_claims(const struct node_view *node)
{
    GPtrArray *claims = claims_decode(string_pairs_get(&node->annotations, CLAIM_KEY), NULL);

    return claims ? claims : claims_decode(NULL, NULL);
}

static void remove_claim(GPtrArray *claims, const char *uid)
{
    for (guint i = claims->len; i-- > 0;) {
        if (g_str_equal(((const struct room_claim *)claims->pdata[i])->uid, uid))
            g_ptr_array_remove_index(claims, i);
    }
}

/* `add` NULL: takes out that of `uid`. */
static enum outcome change(struct cluster *cluster, const char *name, const GPtrArray *add,
                           const char *uid, GError **error)
{
    const int64_t until_ms = g_get_monotonic_time() / 1000 + CALL_MS;
    g_autoptr(json_arena) arena = json_arena_new();
    struct node_view node = {0};
    const enum outcome outcome =
        cluster->ops->get_node(cluster, arena, name, until_ms, &node, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    g_autoptr(GPtrArray) claims = read_claims(&node);
    if (uid)
        remove_claim(claims, uid);
    for (guint i = 0; add && i < add->len; i++) {
        const struct room_claim *claim = add->pdata[i];
        remove_claim(claims, claim->uid);
        g_ptr_array_add(claims, claim_dup(claim));
    }
    if (claims->len > CLAIMS_MAX) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT, "more than %d claims",
                    CLAIMS_MAX);
        return OUTCOME_REFUSED;
    }
    g_autofree char *text = claims_encode(claims);
    const struct node_annotation annotation = {
        .node = name, .version = node.resource_version, .key = CLAIM_KEY, .value = text};
    return cluster->ops->annotate_node(cluster, &annotation, until_ms, error);
}

static bool try(struct cluster *cluster, const char *node, const GPtrArray *add, const char *uid,
                GError **error)
{
    enum outcome outcome = OUTCOME_CONFLICT;

    if (!cluster->ops->annotate_node || !cluster->ops->get_node)
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "Nodes cannot be changed here");
    for (int i = 0; i < TRIES_MAX && outcome == OUTCOME_CONFLICT; i++) {
        g_clear_error(error);
        outcome = change(cluster, node, add, uid, error);
    }
    if (outcome == OUTCOME_NOT_FOUND && !add) {
        g_clear_error(error);
        return true;
    }
    return outcome == OUTCOME_OK || fail_within(error, "node '%s': ", node);
}

bool claim_notes_add(struct cluster *cluster, const char *node, const GPtrArray *claims,
                     GError **error)
{
    return try(cluster, node, claims, NULL, error);
}

bool claim_notes_remove(struct cluster *cluster, const char *node, const char *uid, GError **error)
{
    return try(cluster, node, NULL, uid, error);
}

bool claim_notes_replace(struct cluster *cluster, const char *node, const char *uid,
                         const GPtrArray *claims, GError **error)
{
    return try(cluster, node, claims, uid, error);
}
