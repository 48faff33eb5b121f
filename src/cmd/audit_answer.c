/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/audit_answer.h"

#include "client/client.h"
#include "core/fail.h"

#define PATH "/api/v1/audit"
#define POLL_MS 200
#define PATIENCE_MS 180000

struct answer {
    int64_t run;
    const char *error;
    const cJSON *report;
};
static const struct json_field answer_fields[] = {
    JSON_FIELD_INT64(struct answer, run, "run", JSON_REQUIRED),
    JSON_FIELD_STRING(struct answer, error, "error", 0),
    JSON_FIELD_OBJECT(struct answer, report, "report", 0),
    JSON_FIELD_END,
};

static bool read_answer(struct json_arena *arena, const GString *body, const char *server,
                        struct answer *ret_answer, GError **error)
{
    *ret_answer = (struct answer){0};
    const cJSON *document = json_parse(arena, body->str, body->len, error);
    if (document && json_decode(arena, document, answer_fields, ret_answer, error))
        return true;
    return fail_within(error, "the answer of '%s' is not understood: ", server);
}

const cJSON *audit_answer_ask(struct json_arena *arena, const struct config *config, GError **error)
{
    struct client_request request = {PATH, "application/json", .post = true};
    int64_t until_ms = g_get_monotonic_time() / 1000 + PATIENCE_MS;
    g_autoptr(GString) body = g_string_new(NULL);
    struct answer asked, answer;
    g_autoptr(client) client = client_open(config, error);
    if (!client)
        return NULL;
    const char *server = client_name(client);
    if (!client_get(client, &request, body, error) ||
        !read_answer(arena, body, server, &asked, error))
        return NULL;
    request.post = false;
    do {
        g_string_truncate(body, 0);
        if (!client_get(client, &request, body, error) ||
            !read_answer(arena, body, server, &answer, error))
            return NULL;
        if (answer.run >= asked.run)
            break;
        g_usleep(POLL_MS * 1000);
    } while (g_get_monotonic_time() / 1000 < until_ms);
    if (answer.run < asked.run)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                    "'%s' has not audited its ledger within %d s; its log says why", server,
                    PATIENCE_MS / 1000);
    else if (answer.error)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                    "'%s' could not audit its ledger: %s", server, answer.error);
    else
        return answer.report;
    return NULL;
}

/* --- rows ------------------------------------------------------------------------------------- */

const struct json_field audit_answer_fields[] = {
    JSON_FIELD_STRING(struct audit_answer_row, cause, "cause", JSON_REQUIRED),
    JSON_FIELD_STRING(struct audit_answer_row, ns, "namespace", 0),
    JSON_FIELD_STRING(struct audit_answer_row, name, "name", 0),
    JSON_FIELD_STRING(struct audit_answer_row, uid, "uid", 0),
    JSON_FIELD_STRING(struct audit_answer_row, node, "node", JSON_REQUIRED),
    JSON_FIELD_STRING(struct audit_answer_row, cluster, "cluster", 0),
    JSON_FIELD_STRING(struct audit_answer_row, ledger, "ledger", 0),
    JSON_FIELD_END,
};

/* Which causes are something wrong. */
struct cause {
    const char *code;
    bool difference;
};
static const struct json_field cause_fields[] = {
    JSON_FIELD_STRING(struct cause, code, "cause", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct cause, difference, "difference", 0),
    JSON_FIELD_END,
};

struct report {
    int64_t unchecked, omitted;
    const cJSON *causes, *rows;
};
static const struct json_field report_fields[] = {
    JSON_FIELD_INT64(struct report, unchecked, "unchecked", 0),
    JSON_FIELD_INT64(struct report, omitted, "omitted", 0),
    JSON_FIELD_ARRAY(struct report, causes, "causes", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct report, rows, "rows", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool is_wrong(struct json_arena *arena, const cJSON *causes, const char *code)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, causes) {
        struct cause cause = {0};
        if (json_decode(arena, item, cause_fields, &cause, NULL) && g_str_equal(cause.code, code))
            return cause.difference;
    }
    return true;
}

bool audit_answer_find(const struct config *config, struct findings *findings, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = audit_answer_ask(arena, config, error), *item;
    struct report report = {0};

    if (!document || !json_decode(arena, document, report_fields, &report, error))
        return false;
    cJSON_ArrayForEach (item, report.rows) {
        struct audit_answer_row row = {0};
        if (!json_decode(arena, item, audit_answer_fields, &row, error))
            return false;
        if (is_wrong(arena, report.causes, row.cause))
            findings_add(findings, &(struct finding){row.cause, row.ns, row.name, row.node});
    }
    findings_add_untold(findings, (size_t)MAX(report.unchecked + report.omitted, 0));
    return true;
}
