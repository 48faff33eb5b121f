/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a running extender's audit says (GET and POST /api/v1/audit, docs/api.md). One thread. */
#include "json/json.h"
#include "maintain/findings.h"
#include "options/config.h"

/* Has the extender audit its ledger, and waits for the report, which the arena owns. NULL, with an error: nobody
 * answers, or not in three minutes, or the audit has failed. */
const cJSON *audit_answer_ask(struct json_arena *arena, const struct config *config,
                              GError **error);

/* A row of the report; what it lacks is NULL. */
struct audit_answer_row {
    const char *cause, *ns, *name, *uid, *node, *cluster, *ledger;
};
extern const struct json_field audit_answer_fields[];

/* The same, as findings. */
bool audit_answer_find(const struct config *config, struct findings *findings, GError **error);
