/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/reclaim/quota_told.h"

#include "base/printable.h"

/* What its label says, against what counts of it. */
static char *find_fault(const struct elastic_quotas *quotas, const struct pod_view *pod,
                        const char *counts, const char *label)
{
    const char *fault = counts ? elastic_choice_fault(quotas, pod->ns, counts) : NULL;

    if (g_strcmp0(counts, label) != 0)
        return g_strdup_printf("its label named %s when it was bound; what it says now came after "
                               "that, and does not count: '%s'",
                               counts ? counts : "no quota", label ? label : "");
    return fault ? g_strdup_printf("its label names '%s', which does not count: %s", counts, fault)
                 : NULL;
}

/* Under the lock. */
static struct quota_told *find(const struct elastic_quotas *quotas, const struct pod_view *pod,
                               bool bound)
{
    const char *label = quota_of_pod(pod);
    const char *counts = bound ? elastic_quotas_choice(quotas, pod->uid) : label;
    const struct pod_view who = {.uid = bound ? pod->uid : NULL,
                                 .ns = pod->ns,
                                 .labels = bound ? (struct string_pairs){0} : pod->labels};
    const struct elastic_account *account = elastic_quotas_account(quotas, &who);
    struct quota_told *told;

    if (!label && !counts && (!account || !elastic_account_in_tree(account)))
        return NULL;
    told = g_new0(struct quota_told, 1);
    told->name = account ? g_strdup(elastic_account_id(account)) : NULL;
    told->note = find_fault(quotas, pod, counts, label);
    if (account && counts && !elastic_choice_fault(quotas, pod->ns, counts))
        told->from = g_strdup("its label");
    return told;
}

struct quota_told *quota_told_find(struct store *store, const struct pod_view *pod)
{
    struct ledger *ledger = store_lock(store);
    const struct allocation *held = pod->uid ? ledger_get(ledger, pod->uid) : NULL;
    const struct elastic_quotas *quotas = store_elastic_quotas(store);
    struct quota_told *told = NULL;

    if (quotas && pod->ns)
        told = find(quotas, pod, held && held->state == ALLOCATION_CONFIRMED);
    store_unlock(store);
    return told;
}

void quota_told_free(struct quota_told *told)
{
    if (!told)
        return;
    g_free(told->name);
    g_free(told->from);
    g_free(told->note);
    g_free(told);
}

void quota_told_encode(struct json_writer *writer, const struct quota_told *told)
{
    json_key(writer, "quota");
    if (!told) {
        json_null(writer);
        return;
    }
    json_begin_object(writer);
    json_key_string(writer, "name", told->name);
    json_key_string(writer, "from", told->from);
    json_key_string(writer, "note", told->note);
    json_end_object(writer);
}

void quota_told_write(GString *text, const struct quota_told *told)
{
    if (!told)
        return;
    printable_append(text, "\nQUOTA       %s", told->name ? told->name : "none");
    if (told->name)
        printable_append(text, ", by %s", told->from ? told->from : "its namespace");
    if (told->note)
        printable_append(text, "\n            %s", told->note);
    g_string_append_c(text, '\n');
}
