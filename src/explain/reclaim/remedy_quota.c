/* SPDX-License-Identifier: Apache-2.0 */
/* An elastic quota is larger, or somebody who counts in it or has borrowed from it ends. */
#include "explain/remedy_search.h"
#include "quota/quotas.h"
#include "gate/quotas.h"

#include <string.h>

#define ENDS_TRIED_MAX 400

static char *units_text(const char *key, int64_t amount)
{
    const double units = elastic_units(key, amount);

    return g_str_has_suffix(key, "memory") ? g_strdup_printf("%.4gGi", units / (1 << 30))
                                           : g_strdup_printf("%.6g", units);
}

static char *quota_text(const struct elastic_count *count)
{
    return count->quota ? g_strdup_printf("ElasticQuota %s/%s", count->ns, count->quota)
                        : g_strdup_printf("namespace %s", count->ns);
}

static void try_raise(struct search *search, const struct node *node)
{
    struct feasibility question;
    struct placement placement;
    struct elastic_raise raise;

    search_begin(search, &question, search->query->pod, search->query->request, WITHOUT_LIMITS);
    const struct quota_room *quotas = quotas_gate_room(&question.gates);
    const struct elastic_room *room = quotas ? quota_room_elastic(quotas) : NULL;
    if (room && feasibility_ask(&question, node, &placement) == REASON_NONE &&
        elastic_room_raise(room, node, &placement, &raise)) {
        const char *what = raise.max ? "max" : "min";
        g_autofree char *from =
            units_text(raise.count.key, raise.max ? raise.count.max : raise.count.min);
        g_autofree char *to = units_text(raise.count.key, raise.to);
        g_autofree char *quota = quota_text(&raise.count);
        search_add(search,
                   (struct remedy){
                       .kind = REMEDY_QUOTA,
                       .key = g_strdup(raise.count.key),
                       .from = g_strdup(from),
                       .to = g_strdup(to),
                       .text = g_strdup_printf("give %s a %s of %s %s instead of %s", quota, what,
                                               to, raise.count.key, from),
                   },
                   node);
    }
    feasibility_clear(&question);
}

/* --- who would have to end ------------------------------------------------------------------------ */

/* A pod that counts where the quota lends, or may lend. */
struct candidate {
    const struct allocation *allocation;
    int64_t gpus;
    bool borrows; /* some account of it has more than its min */
};

/* Whoever has borrowed first; then the smallest, least important and youngest. */
static gint compare_candidates(gconstpointer a, gconstpointer b)
{
    const struct candidate *left = a, *right = b;
    const int64_t pairs[][2] = {
        {right->borrows, left->borrows},
        {left->gpus, right->gpus},
        {left->allocation->priority, right->allocation->priority},
        {right->allocation->created_s, left->allocation->created_s},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
    }
    return strcmp(left->allocation->uid, right->allocation->uid);
}

static GArray *list_candidates(struct search *search, struct elastic_quotas *quotas,
                               const struct elastic_account *own)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(struct candidate));
    const GPtrArray *nodes = ledger_nodes(search->ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        for (guint j = 0; j < node->allocations->len; j++) {
            const struct allocation *one = node->allocations->pdata[j];
            const struct pod_view pod = {.uid = one->uid, .ns = one->ns};
            const struct elastic_account *account = elastic_quotas_account(quotas, &pod);
            if (!account || search_stays(one) ||
                elastic_account_top(account) != elastic_account_top(own))
                continue;
            const struct candidate candidate = {one, elastic_gpus(one),
                                                elastic_account_borrows(quotas, account)};
            g_array_append_val(list, candidate);
        }
    }
    g_array_sort(list, compare_candidates);
    return list;
}

static void add_end(struct search *search, const struct node *node, const struct allocation *one,
                    const char *from)
{
    struct remedy remedy = {.kind = one->terminating ? REMEDY_TURN : REMEDY_END,
                            .pods = remedy_pods_new()};
    const struct remedy_pod pod = {g_strdup(one->ns), g_strdup(one->name), NULL};

    g_array_append_val(remedy.pods, pod);
    remedy.planned = search_may_plan(search, one, true);
    remedy.force = search_needs_force(one);
    remedy.text = one->terminating
                      ? g_strdup_printf("wait until %s/%s on %s has ended, which is going already: "
                                        "it counts in the quota",
                                        one->ns, one->name, from)
                      : g_strdup_printf("end %s/%s on %s, which counts in the quota, or wait "
                                        "until it ends",
                                        one->ns, one->name, from);
    search_add(search, remedy, node);
}

/* The search among the node's own pods may have found the same. */
static bool is_told(const struct search *search, const struct allocation *one)
{
    for (guint i = 0; i < search->found->len; i++) {
        const GArray *pods = g_array_index(search->found, struct remedy, i).pods;
        const struct remedy_pod *pod =
            pods && pods->len == 1 ? &g_array_index(pods, struct remedy_pod, 0) : NULL;
        if (pod && g_str_equal(pod->ns, one->ns) && g_str_equal(pod->name, one->name))
            return true;
    }
    return false;
}

/* The first whose end alone is enough. */
static void try_ends(struct search *search, const struct node *node)
{
    struct elastic_quotas *quotas = quotas_elastic(store_quotas(search->query->copy));
    const struct elastic_account *own = elastic_quotas_account(quotas, search->query->pod);
    bool found = false;

    if (!own)
        return;
    g_autoptr(GArray) list = list_candidates(search, quotas, own);
    for (guint i = 0; i < MIN(list->len, ENDS_TRIED_MAX) && !found && search_may_try(search); i++) {
        const struct candidate *candidate = &g_array_index(list, struct candidate, i);
        g_autoptr(allocation) ended = allocation_dup(candidate->allocation);
        g_autofree char *from = g_strdup(candidate->allocation->node->name);
        ledger_drop(search->ledger, ended->uid);
        found = search_takes(search, node);
        if (found && !is_told(search, ended))
            add_end(search, node, ended, from);
        ledger_put(search->ledger, from, g_steal_pointer(&ended));
    }
}

void search_quotas(struct search *search)
{
    for (const char *const *name = search->query->nodes; *name && search_may_try(search); name++) {
        const struct node *node = ledger_node(search->ledger, *name);
        const enum reason reason =
            search_ask(search, node, search->query->pod, search->query->request, NULL);
        if ((reason != REASON_QUOTA_MAX && reason != REASON_QUOTA_LENT &&
             reason != REASON_QUOTA_UNRECLAIMABLE) ||
            search_barrier(search, node) != BARRIER_NONE)
            continue;
        if (!search_has(search, REMEDY_QUOTA))
            try_raise(search, node);
        try_ends(search, node);
        return; /* what a quota says is much the same on every node */
    }
}
