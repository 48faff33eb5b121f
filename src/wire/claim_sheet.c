/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/claim_sheet.h"

#include "core/fail.h"

#include <string.h>

#define TIME_MAX (INT64_C(1) << 32) /* such a time in nanoseconds is one, too */

static void free_claims(gpointer claims)
{
    g_ptr_array_unref(claims);
}

struct claim_sheet *claim_sheet_new(void)
{
    struct claim_sheet *sheet = g_new(struct claim_sheet, 1);

    sheet->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_claims);
    sheet->pauses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return sheet;
}

struct claim_sheet *claim_sheet_dup(const struct claim_sheet *sheet)
{
    struct claim_sheet *copy = claim_sheet_new();
    GHashTableIter iter;
    gpointer key, value;

    g_hash_table_iter_init(&iter, sheet->nodes);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const GPtrArray *claims = value;
        for (guint i = 0; i < claims->len; i++)
            claim_sheet_add(copy, key, claim_dup(claims->pdata[i]));
    }
    g_hash_table_iter_init(&iter, sheet->pauses);
    while (g_hash_table_iter_next(&iter, &key, &value))
        claim_sheet_pause(copy, key, value);
    return copy;
}

void claim_sheet_free(struct claim_sheet *sheet)
{
    if (!sheet)
        return;
    g_hash_table_unref(sheet->nodes);
    g_hash_table_unref(sheet->pauses);
    g_free(sheet);
}

const GPtrArray *claim_sheet_on(const struct claim_sheet *sheet, const char *node)
{
    return g_hash_table_lookup(sheet->nodes, node);
}

void claim_sheet_remove(struct claim_sheet *sheet, const char *node, const char *uid)
{
    GPtrArray *claims = g_hash_table_lookup(sheet->nodes, node);

    for (guint i = claims ? claims->len : 0; i-- > 0;) {
        if (g_str_equal(((const struct room_claim *)claims->pdata[i])->uid, uid))
            g_ptr_array_remove_index(claims, i);
    }
    if (claims && claims->len == 0)
        g_hash_table_remove(sheet->nodes, node);
}

void claim_sheet_add(struct claim_sheet *sheet, const char *node, struct room_claim *take_claim)
{
    claim_sheet_remove(sheet, node, take_claim->uid);

    GPtrArray *claims = g_hash_table_lookup(sheet->nodes, node);
    if (!claims) {
        claims = claims_new();
        g_hash_table_insert(sheet->nodes, g_strdup(node), claims);
    }
    g_ptr_array_add(claims, take_claim);
}

void claim_sheet_pause(struct claim_sheet *sheet, const char *ns, const struct claim_pause *pause)
{
    g_hash_table_replace(sheet->pauses, g_strdup(ns), g_memdup2(pause, sizeof *pause));
}

/* --- bounds --------------------------------------------------------------------------------------- */

static bool are_few(GHashTable *counts, const GPtrArray *claims)
{
    for (guint i = 0; i < claims->len; i++) {
        const char *ns = ((const struct room_claim *)claims->pdata[i])->ns;
        const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(counts, ns)) + 1;
        if (n > CLAIM_SHEET_NAMESPACE_MAX)
            return false;
        g_hash_table_insert(counts, (gpointer)ns, GUINT_TO_POINTER(n));
    }
    return claims->len <= CLAIMS_MAX;
}

bool claim_sheet_fits(const struct claim_sheet *sheet, const char *text, GError **error)
{
    g_autoptr(GHashTable) counts = g_hash_table_new(g_str_hash, g_str_equal);
    bool fits =
        strlen(text) <= CLAIM_SHEET_MAX && g_hash_table_size(sheet->pauses) <= CLAIM_PAUSES_MAX;
    GHashTableIter iter;
    gpointer claims;

    g_hash_table_iter_init(&iter, sheet->nodes);
    while (fits && g_hash_table_iter_next(&iter, NULL, &claims))
        fits = are_few(counts, claims);
    return fits ||
           fail_with(error, GPULEDGER_ERROR_LIMIT,
                     "more than %d claims of a node, %d of a namespace, %d pauses, or %d KiB",
                     CLAIMS_MAX, CLAIM_SHEET_NAMESPACE_MAX, CLAIM_PAUSES_MAX,
                     (int)(CLAIM_SHEET_MAX >> 10));
}

/* --- writing -------------------------------------------------------------------------------------- */

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

static GList *in_order(GHashTable *table)
{
    return g_list_sort(g_hash_table_get_keys(table), compare_names);
}

char *claim_sheet_encode(const struct claim_sheet *sheet)
{
    g_autoptr(GList) nodes = in_order(sheet->nodes), pauses = in_order(sheet->pauses);
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_object(&writer, "nodes");
    for (const GList *item = nodes; item; item = item->next) {
        json_key(&writer, item->data);
        claims_write(&writer, claim_sheet_on(sheet, item->data));
    }
    json_end_object(&writer);
    json_key_object(&writer, "pauses");
    for (const GList *item = pauses; item; item = item->next) {
        const struct claim_pause *pause = g_hash_table_lookup(sheet->pauses, item->data);
        json_key_object(&writer, item->data);
        json_key_int(&writer, "until", pause->until_s);
        json_key_int(&writer, "seconds", pause->last_s);
        json_end_object(&writer);
    }
    json_end_object(&writer);
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

char *claim_sheet_sum(const char *text)
{
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}

/* --- reading -------------------------------------------------------------------------------------- */

struct sheet_object {
    const cJSON *nodes, *pauses;
};
static const struct json_field sheet_fields[] = {
    JSON_FIELD_OBJECT(struct sheet_object, nodes, "nodes", JSON_REQUIRED),
    JSON_FIELD_OBJECT(struct sheet_object, pauses, "pauses", JSON_REQUIRED),
    JSON_FIELD_END,
};

static const struct json_field pause_fields[] = {
    JSON_FIELD_INT64(struct claim_pause, until_s, "until", JSON_REQUIRED),
    JSON_FIELD_INT64(struct claim_pause, last_s, "seconds", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool read_node(struct claim_sheet *sheet, struct json_arena *arena, const cJSON *item,
                      GError **error)
{
    g_autoptr(GPtrArray) claims = claims_read_array(arena, item, error);

    for (guint i = 0; claims && i < claims->len; i++) {
        const struct room_claim *claim = claims->pdata[i];
        if (!claim->ns)
            return fail_with(error, GPULEDGER_ERROR_INVALID, "a claim says no namespace");
        claim_sheet_add(sheet, item->string, claim_dup(claim));
    }
    return claims != NULL;
}

static bool read_pause(struct claim_sheet *sheet, struct json_arena *arena, const cJSON *item,
                       GError **error)
{
    struct claim_pause pause = {0};

    if (!json_decode(arena, item, pause_fields, &pause, error))
        return false;
    if (pause.until_s < 0 || pause.until_s > TIME_MAX || pause.last_s < 0 ||
        pause.last_s > TIME_MAX)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "a time that is none");
    claim_sheet_pause(sheet, item->string, &pause);
    return true;
}

struct claim_sheet *claim_sheet_decode(struct json_arena *arena, const cJSON *object,
                                       GError **error)
{
    g_autoptr(claim_sheet) sheet = claim_sheet_new();
    struct sheet_object read = {0};
    const cJSON *item;

    if (!json_decode(arena, object, sheet_fields, &read, error))
        return NULL;
    cJSON_ArrayForEach (item, read.nodes) {
        if (!read_node(sheet, arena, item, error))
            return NULL;
    }
    cJSON_ArrayForEach (item, read.pauses) {
        if (!read_pause(sheet, arena, item, error))
            return NULL;
    }
    return g_steal_pointer(&sheet);
}

struct claim_sheet *claim_sheet_read(const char *text, const char *sum, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *own = text ? claim_sheet_sum(text) : NULL;

    if (!text || g_strcmp0(own, sum) != 0) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "somebody else has changed it: its sum is another");
        return NULL;
    }
    const cJSON *object = json_parse(arena, text, strlen(text), error);
    g_autoptr(claim_sheet) sheet = object ? claim_sheet_decode(arena, object, error) : NULL;
    return sheet && claim_sheet_fits(sheet, text, error) ? g_steal_pointer(&sheet) : NULL;
}
