/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/claim.h"

#include "core/fail.h"
#include "json/json.h"

#include <string.h>

#define OVER "over "                   /* begins no UID */
#define FUTURE_NS INT64_C(60000000000) /* clocks of two replicas may differ so far */

struct room_claim *claim_new(const char *uid, int64_t since_s, int32_t card,
                             const char *const *ends)
{
    struct room_claim *claim = g_new(struct room_claim, 1);

    *claim = (struct room_claim){g_strdup(uid), since_s, card, g_strdupv((char **)ends)};
    return claim;
}

static struct room_claim *copy(const struct room_claim *claim, const char *uid,
                               const char *const *ends)
{
    struct room_claim *new = claim_new(uid, claim->since_s, claim->card, ends);

    new->ns = g_strdup(claim->ns);
    new->group = g_strdup(claim->group);
    return new;
}

struct room_claim *claim_dup(const struct room_claim *claim)
{
    return copy(claim, claim->uid, (const char *const *)claim->ends);
}

struct room_claim *claim_over(const struct room_claim *claim, const char *const *ends)
{
    g_autofree char *uid = g_strconcat(OVER, claim->uid, NULL);

    return copy(claim, uid, ends);
}

bool claim_is_over(const struct room_claim *claim)
{
    return g_str_has_prefix(claim->uid, OVER);
}

void claim_free(struct room_claim *claim)
{
    if (!claim)
        return;
    g_free(claim->uid);
    g_strfreev(claim->ends);
    g_free(claim->ns);
    g_free(claim->group);
    g_free(claim);
}

bool claim_counts(const struct room_claim *claim, int64_t now_ns)
{
    const int64_t age_ns = now_ns - claim->since_s * 1000000000;

    return age_ns >= -FUTURE_NS && age_ns < CLAIM_MS * 1000000;
}

bool claim_names(const struct room_claim *claim, const char *uid)
{
    return g_strv_contains((const char *const *)claim->ends, uid);
}

/* --- the annotation ------------------------------------------------------------------------------- */

struct row {
    const char *uid, *ns, *group;
    int64_t since, card;
    const cJSON *ends;
};
static const struct json_field row_fields[] = {
    JSON_FIELD_STRING(struct row, uid, "for", JSON_REQUIRED),
    JSON_FIELD_STRING(struct row, ns, "namespace", 0),
    JSON_FIELD_STRING(struct row, group, "group", 0),
    JSON_FIELD_INT64(struct row, since, "since", JSON_REQUIRED),
    JSON_FIELD_INT64(struct row, card, "card", 0),
    JSON_FIELD_ARRAY(struct row, ends, "ends", JSON_REQUIRED),
    JSON_FIELD_END,
};

/* NULL: an item is no string, or there are too many. */
static char **read_ends(const cJSON *array)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    const cJSON *item;
    int n = 0;

    cJSON_ArrayForEach (item, array) {
        if (!cJSON_IsString(item) || ++n > CLAIM_ENDS_MAX)
            return NULL;
        g_strv_builder_add(builder, item->valuestring);
    }
    return g_strv_builder_end(builder);
}

static bool read_row(struct json_arena *arena, const cJSON *item, GPtrArray *claims, GError **error)
{
    struct row row = {.card = CARD_UNKNOWN};

    if (!json_decode(arena, item, row_fields, &row, error))
        return false;
    char **ends = read_ends(row.ends);
    /* A time in nanoseconds must be one, too. */
    if (!ends || claims->len == CLAIMS_MAX || row.since < 0 || row.since > INT64_C(1) << 32) {
        g_strfreev(ends);
        return fail_with(error, GPULEDGER_ERROR_LIMIT,
                         "more than %d claims, more than %d pods of one, or a time that is none",
                         CLAIMS_MAX, CLAIM_ENDS_MAX);
    }
    struct room_claim *claim = g_new(struct room_claim, 1);
    *claim = (struct room_claim){
        .uid = g_strdup(row.uid),
        .since_s = row.since,
        .card = row.card >= 0 && row.card < NODE_CARDS_MAX ? (int32_t)row.card : CARD_UNKNOWN,
        .ends = ends,
        .ns = g_strdup(row.ns),
        .group = g_strdup(row.group),
    };
    g_ptr_array_add(claims, claim);
    return true;
}

static void free_claim(gpointer claim)
{
    claim_free(claim);
}

GPtrArray *claims_new(void)
{
    return g_ptr_array_new_with_free_func(free_claim);
}

GPtrArray *claims_read_array(struct json_arena *arena, const cJSON *array, GError **error)
{
    g_autoptr(GPtrArray) claims = claims_new();
    const cJSON *item;

    if (!cJSON_IsArray(array)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "no array");
        return NULL;
    }
    cJSON_ArrayForEach (item, array) {
        if (!read_row(arena, item, claims, error))
            return NULL;
    }
    return g_steal_pointer(&claims);
}

GPtrArray *claims_decode(const char *text, GError **error)
{
    if (!text || !*text)
        return claims_new();
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *array = json_parse(arena, text, strlen(text), error);

    return array ? claims_read_array(arena, array, error) : NULL;
}

void claims_write(struct json_writer *writer, const GPtrArray *claims)
{
    json_begin_array(writer);
    for (guint i = 0; i < claims->len; i++) {
        const struct room_claim *claim = claims->pdata[i];
        json_begin_object(writer);
        json_key_string(writer, "for", claim->uid);
        if (claim->ns)
            json_key_string(writer, "namespace", claim->ns);
        if (claim->group)
            json_key_string(writer, "group", claim->group);
        json_key_int(writer, "since", claim->since_s);
        if (claim->card != CARD_UNKNOWN)
            json_key_int(writer, "card", claim->card);
        json_key_array(writer, "ends");
        for (char **uid = claim->ends; *uid; uid++)
            json_string(writer, *uid);
        json_end_array(writer);
        json_end_object(writer);
    }
    json_end_array(writer);
}

char *claims_encode(const GPtrArray *claims)
{
    struct json_writer writer;

    if (claims->len == 0)
        return NULL;
    GString *text = g_string_new(NULL);
    json_writer_init(&writer, text);
    claims_write(&writer, claims);
    return g_string_free(text, FALSE);
}
