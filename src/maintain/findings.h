/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a plan may go on in spite of what an audit finds (audit/audit.h).
 *
 * What was there before the plan began and is about other nodes than its moves is known, and does not stop
 * it. Everything else does: what has come since, wherever it is, since the plan may have made it; and what
 * is about a node that a pod is to leave or to come to, since what is known of that node is wrong.
 *
 * One thread.
 */
#include "audit/audit.h"

#define FINDINGS_KNOWN_MAX                                                                         \
    64 /* beside so many a plan may begin; with more, nobody looks after the cluster */

/* What an audit found; borrowed. */
struct finding {
    const char *cause;    /* its code: "card_gone" */
    const char *ns, *pod; /* NULL: it is about the node */
    const char *node;
};

struct findings;

struct findings *findings_new(void);
void findings_free(struct findings *findings); /* NULL is ignored */
typedef struct findings findings;              /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(findings, findings_free)

void findings_add(struct findings *findings, const struct finding *finding);
/* Something that is not told, such as a row that was left out of a report. */
void findings_add_untold(struct findings *findings, size_t n);
/* All that the report has, if it tells of something wrong. */
void findings_add_report(struct findings *findings, const struct audit_report *report);

/* In order; each is the text of one, as findings_learn takes it. Free with g_strfreev. */
char **findings_texts(const struct findings *findings);
void findings_learn(struct findings *findings, const char *text);

/* The nodes of moves that are next; the list ends with NULL. False, with an error: the plan stops. */
bool findings_check(const struct findings *now, const struct findings *before,
                    const char *const *nodes, GError **error);
