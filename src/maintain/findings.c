/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/findings.h"

#include "core/fail.h"

#include <string.h>

/* A finding is one text, "CAUSE NODE" or "CAUSE NODE NAMESPACE/NAME": none of these has a space. */
struct findings {
    GHashTable *texts; /* a set */
    size_t n_untold;
};

struct findings *findings_new(void)
{
    struct findings *findings = g_new0(struct findings, 1);

    findings->texts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return findings;
}

void findings_free(struct findings *findings)
{
    if (!findings)
        return;
    g_hash_table_unref(findings->texts);
    g_free(findings);
}

void findings_learn(struct findings *findings, const char *text)
{
    g_hash_table_add(findings->texts, g_strdup(text));
}

void findings_add(struct findings *findings, const struct finding *finding)
{
    g_hash_table_add(findings->texts,
                     finding->pod ? g_strdup_printf("%s %s %s/%s", finding->cause, finding->node,
                                                    finding->ns ? finding->ns : "", finding->pod)
                                  : g_strdup_printf("%s %s", finding->cause, finding->node));
}

void findings_add_untold(struct findings *findings, size_t n)
{
    findings->n_untold += n;
}

void findings_add_report(struct findings *findings, const struct audit_report *report)
{
    size_t n = 0;

    for (guint i = 0; i < report->rows->len; i++) {
        const struct audit_row *row = report->rows->pdata[i];
        const struct audit_cause_info *info = audit_cause_info(row->cause);
        if (!info->difference)
            continue;
        findings_add(findings, &(struct finding){info->code, row->ns, row->name, row->node});
        n++;
    }
    findings_add_untold(findings, audit_report_differences(report) - n + report->unchecked);
}

static gint compare_texts(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **findings_texts(const struct findings *findings)
{
    GPtrArray *texts = g_ptr_array_new();
    GHashTableIter iter;
    gpointer text;

    g_hash_table_iter_init(&iter, findings->texts);
    while (g_hash_table_iter_next(&iter, &text, NULL))
        g_ptr_array_add(texts, g_strdup(text));
    g_ptr_array_sort(texts, compare_texts);
    g_ptr_array_add(texts, NULL);
    return (char **)g_ptr_array_free(texts, FALSE);
}

static bool is_of(const char *text, const char *node)
{
    const char *begin = strchr(text, ' ');
    const size_t length = strlen(node);

    return begin && strncmp(begin + 1, node, length) == 0 &&
           (begin[1 + length] == ' ' || begin[1 + length] == '\0');
}

static bool is_of_any(const char *text, const char *const *nodes)
{
    for (; *nodes; nodes++) {
        if (is_of(text, *nodes))
            return true;
    }
    return false;
}

bool findings_check(const struct findings *now, const struct findings *before,
                    const char *const *nodes, GError **error)
{
    g_auto(GStrv) texts = findings_texts(now);
    const guint n = g_strv_length(texts);

    for (char **text = texts; *text; text++) {
        if (is_of_any(*text, nodes))
            return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                             "stopped: the audit has a finding about a node of the next move: %s",
                             *text);
        if (!g_hash_table_contains(before->texts, *text))
            return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                             "stopped: the audit has found what was not there before: %s", *text);
    }
    if (n + now->n_untold > FINDINGS_KNOWN_MAX)
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                         "stopped: the audit has more than %d findings; put these right first",
                         FINDINGS_KNOWN_MAX);
    return now->n_untold == 0 ||
           fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                     "stopped: the audit does not tell all that it has found");
}
