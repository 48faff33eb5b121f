/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_line.h"

#include <gpuledger/error.h>

struct fields {
    struct record_line line;
    const char *kind;
};

#define LINE(KIND, member, path) JSON_FIELD_##KIND(struct fields, line.member, path, 0)
static const struct json_field line_fields[] = {
    LINE(INT64, number, "n"),
    JSON_FIELD_STRING(struct fields, kind, "kind", JSON_REQUIRED),
    LINE(INT64, before, "before"),
    LINE(INT64, format, "format"),
    LINE(INT64, ms, "ms"),
    LINE(INT64, until_ms, "until"),
    LINE(INT64, call, "call"),
    LINE(INT64, state, "state"),
    LINE(INT64, count, "count"),
    LINE(INT64, patience_ms, "patience"),
    LINE(INT64, left_out, "left-out"),
    LINE(INT64, entry, "entry"),
    LINE(INT64, change_ms, "changing"),
    LINE(STRING, feed, "feed"),
    LINE(STRING, key, "key"),
    LINE(STRING, verb, "verb"),
    LINE(STRING, at, "at"),
    LINE(STRING, ns, "namespace"),
    LINE(STRING, name, "name"),
    LINE(STRING, uid, "uid"),
    LINE(STRING, node, "node"),
    LINE(STRING, result, "result"),
    LINE(STRING, policy, "policy"),
    LINE(STRING, version, "version"),
    LINE(STRING, commit, "commit"),
    LINE(STRING, scheduler, "scheduler"),
    LINE(STRING, seal, "seal"),
    LINE(STRING, quota, "quota"),
    LINE(STRING, claims, "claims"),
    LINE(BOOL, confirmed, "confirmed"),
    LINE(BOOL, picky, "picky"),
    LINE(BOOL, spared, "spared"),
    LINE(BOOL, moment.counting, "counting"),
    LINE(OBJECT, object, "object"),
    LINE(OBJECT, body, "body"),
    LINE(OBJECT, asks, "asks"),
    LINE(OBJECT, recalled, "recalled"),
    LINE(OBJECT, answer, "answer"),
    LINE(OBJECT, booking, "booking"),
    LINE(OBJECT, options, "options"),
    JSON_FIELD_END,
};

static bool read_kind(const char *name, struct record_line *line, GError **error)
{
    if (record_kind_find(name, &line->kind, &line->of))
        return true;
    g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "field 'kind': there is none of that name");
    return false;
}

static bool read_moment(struct record_line *line, GError **error)
{
    line->moment.now_ms = line->ms;
    if (!line->at ||
        g_ascii_string_to_signed(line->at, 10, 0, G_MAXINT64, &line->moment.now_ns, NULL))
        return true;
    g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "field 'at': expected a number of nanoseconds");
    return false;
}

bool record_line_decode(struct json_arena *arena, const char *text, size_t length,
                        struct record_line *ret_line, GError **error)
{
    struct fields fields = {0};
    const cJSON *tree = json_parse(arena, text, length, error);

    if (!tree || !json_decode(arena, tree, line_fields, &fields, error) ||
        !read_kind(fields.kind, &fields.line, error) || !read_moment(&fields.line, error))
        return false;
    fields.line.reply = cJSON_GetObjectItemCaseSensitive(tree, "reply"); /* of any type */
    *ret_line = fields.line;
    return true;
}
