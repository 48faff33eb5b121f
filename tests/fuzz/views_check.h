/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What must be so of a store whatever it has been told: the ledger adds up, every view of it is
 * JSON, and each line of its metrics is one.
 */
#include "target.h"

#include "audit/audit.h"
#include "inspect/views.h"

#include <string.h>

static inline void check_json(const GString *text)
{
    g_autoptr(json_arena) arena = json_arena_new();

    FUZZ_CHECK(g_utf8_validate(text->str, (gssize)text->len, NULL));
    FUZZ_CHECK(json_parse(arena, text->str, text->len, NULL));
}

static inline void check_metrics(const GString *text)
{
    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);

    for (char **line = lines; *line; line++) {
        const char *value = strrchr(*line, ' ');
        char *end;

        if (!**line || **line == '#')
            continue;
        FUZZ_CHECK(g_str_has_prefix(*line, "gpuledger_") && value);
        g_ascii_strtod(value + 1, &end);
        FUZZ_CHECK(end != value + 1 && !*end);
    }
}

static inline void check_views(struct store *store)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    FUZZ_CHECK(ledger_verify(store_lock(store), NULL));
    store_unlock(store);

    FUZZ_CHECK(view_nodes(store, NULL, text));
    check_json(text);
    g_string_truncate(text, 0);
    FUZZ_CHECK(view_inspect(store, NULL, text));
    check_json(text);
    g_string_truncate(text, 0);
    FUZZ_CHECK(view_nodes_table(store, NULL, text));
    g_string_truncate(text, 0);
    view_metrics(store, 100, text);
    view_pod_metrics(store, text);
    check_metrics(text);

    g_autoptr(audit_report) report = audit_look(store, &(struct audit_options){.stuck_ms = 1});
    g_string_truncate(text, 0);
    json_writer_init(&writer, text);
    audit_report_encode(&writer, report);
    check_json(text);
}
