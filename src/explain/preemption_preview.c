/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/preemption_preview.h"

#include "base/printable.h"
#include "queue/quota_relief.h"
#include "store/shortfall.h"
#include "policy/victims/victims.h"

#include <stdlib.h>
#include <string.h>

/* What kube-scheduler adds up: CPU, memory and pods of the node, and extended resources. */
#define HOST_SUMS 3
#define PLENTY (INT64_MAX / 4)
#define SUMS_MAX (HOST_SUMS + POD_FACTS_AMOUNTS_MAX)

struct search {
    const struct preview_query *query;
    struct feasibility question;
    struct pod_facts *asked;
    int64_t *allowed; /* by each budget */
    uint32_t n_allowed;
    char *fits_in_sum; /* the first node where the sum suffices already */
    bool lesser;       /* there is a pod of lower priority somewhere */
    bool cut;          /* of some node nothing is known: a search was cut short */
    bool over_quota;   /* on a node its quotas keep it out, whoever ends of those */
    struct victims_cost best;
    struct preview *found;
};

/* --- sums ----------------------------------------------------------------------------------- */

/* What is left of each sum beyond what the pod asks for; below 0 it is short. What the node does not
 * offer is left to an extender, so kube-scheduler is configured. */
static void find_margins(const struct search *search, const struct node *node,
                         int64_t ret_margins[SUMS_MAX])
{
    const struct host host = node_host_free(node), asked = search->query->request->host;
    const struct pod_facts *facts = search->asked;

    ret_margins[0] = asked.cpu > 0 ? MIN(host.cpu, PLENTY) - asked.cpu : PLENTY;
    ret_margins[1] = asked.memory > 0 ? MIN(host.memory, PLENTY) - asked.memory : PLENTY;
    ret_margins[2] = MIN(host.pods, PLENTY) - asked.pods;
    for (uint32_t i = 0; i < facts->n_amounts; i++) {
        const char *resource = facts->amounts[i].resource;
        const int64_t all = node_traits_amount(node->traits, resource);
        int64_t left = all - facts->amounts[i].thousandths;
        for (guint j = 0; all > 0 && j < node->allocations->len; j++) {
            const struct allocation *one = node->allocations->pdata[j];
            left -= pod_facts_amount(one->facts, resource);
        }
        ret_margins[HOST_SUMS + i] = all > 0 ? left : PLENTY;
    }
}

static void give_back(const struct search *search, const struct allocation *allocation, int sign,
                      int64_t margins[SUMS_MAX])
{
    margins[0] += sign * allocation->host.cpu;
    margins[1] += sign * allocation->host.memory;
    margins[2] += sign * allocation->host.pods;
    for (uint32_t i = 0; i < search->asked->n_amounts; i++)
        margins[HOST_SUMS + i] +=
            sign * pod_facts_amount(allocation->facts, search->asked->amounts[i].resource);
}

static bool suffices(const struct search *search, const int64_t margins[SUMS_MAX])
{
    for (uint32_t i = 0; i < HOST_SUMS + search->asked->n_amounts; i++) {
        if (margins[i] < 0)
            return false;
    }
    return true;
}

/* --- kube-scheduler's own victims ------------------------------------------------------------ */

static int compare_importance(const void *a, const void *b)
{
    const struct allocation *left = ((const struct victim *)a)->seat->allocation;
    const struct allocation *right = ((const struct victim *)b)->seat->allocation;

    if (left->priority != right->priority)
        return left->priority > right->priority ? -1 : 1;
    if (left->created_s != right->created_s)
        return left->created_s < right->created_s ? -1 : 1;
    return strcmp(left->uid, right->uid);
}

/* Whether the pod's end would violate a budget, given those that end already. */
static bool draws_too_much(const struct victim *victim, int64_t *left)
{
    bool violates = false;

    for (uint32_t i = 0; i < victim->n_budgets; i++)
        violates |= --left[victim->budgets[i]] < 0;
    return violates;
}

/* All of them end in thought, and as many as can be are let back, those that a budget guards first.
 * Returns how many it names. */
static size_t name_victims(const struct search *search, struct victim *victims, size_t n,
                           int64_t margins[SUMS_MAX])
{
    g_autofree int64_t *left =
        g_memdup2(search->allowed, (search->n_allowed + 1) * sizeof *search->allowed);
    g_autofree bool *guarded = g_new0(bool, n + 1);
    size_t named = 0;

    qsort(victims, n, sizeof *victims, compare_importance);
    for (size_t i = 0; i < n; i++) {
        guarded[i] = draws_too_much(&victims[i], left);
        give_back(search, victims[i].seat->allocation, 1, margins);
    }
    if (!suffices(search, margins))
        return 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            if (guarded[i] != (pass == 0))
                continue;
            give_back(search, victims[i].seat->allocation, -1, margins);
            victims[i].named = !suffices(search, margins);
            if (victims[i].named)
                give_back(search, victims[i].seat->allocation, 1, margins);
            named += victims[i].named;
        }
    }
    return named;
}

/* --- one node ------------------------------------------------------------------------------- */

static int64_t idle_s(const struct preview_query *query, const struct allocation *allocation)
{
    const int64_t now_ns = query->moment->now_ns;
    const int64_t since_ms = idleness_since(store_idleness(query->copy), allocation, now_ns);

    return since_ms > 0 ? MAX((now_ns / 1000000 - since_ms) / 1000, 1) : 0;
}

static size_t gather(struct search *search, const struct roster *roster, struct victim *victims)
{
    size_t n = 0;

    for (uint32_t i = 0; i < roster->n; i++) {
        const struct seat *seat = &roster->seats[i];
        const struct allocation *one = seat->allocation;
        if (!seat->confirmed || seat->priority >= search->query->pod->priority)
            continue;
        struct victim *victim = &victims[n++];
        *victim = (struct victim){.seat = seat, .idle = idle_s(search->query, one) > 0};
        victim->n_budgets = (uint8_t)budgets_of(search->query->budgets, one, victim->budgets,
                                                G_N_ELEMENTS(victim->budgets));
    }
    return n;
}

/* What has to be so for the pod to come, as for the verb. */
struct wish {
    struct admission_query *admission;
    struct quota_relief *relief; /* NULL: quotas let it in as things are */
};

static bool finds_room(const struct node *node, void *data)
{
    const struct wish *wish = data;

    return quota_relief_suffices(wish->relief, node) &&
           dialect_admits(node, wish->admission) != ADMISSION_NO;
}

static void clear_pod(gpointer data)
{
    struct evicted_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->name);
}

static void keep(struct search *search, const struct node *node, const struct victims *victims,
                 const struct victims_cost *cost)
{
    struct preview *found = search->found;

    search->best = *cost;
    g_free(found->node);
    found->node = g_strdup(node->name);
    found->violations = cost->violations;
    g_array_set_size(found->pods, 0);
    for (size_t i = 0; i < victims->n_chosen; i++) {
        const struct allocation *one = victims->all[i].seat->allocation;
        const struct evicted_pod pod = {g_strdup(one->ns), g_strdup(one->name), one->priority,
                                        idle_s(search->query, one)};
        g_array_append_val(found->pods, pod);
    }
}

/* kube-scheduler names mirrors of static pods like other pods; the verb ends none. Nor does it add pods of PodGroups.
 * Returns how many are left. */
static size_t drop_staying(struct victim *victims, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (!victims[i].seat->stays && (victims[i].named || !victims[i].seat->unit))
            victims[kept++] = victims[i];
    }
    return kept;
}

static void try_node(struct search *search, const struct node *node, struct wish *wish)
{
    const struct pod_view *pod = search->query->pod;
    const struct node *seen = nominees_see(&search->question.nominees, node);
    g_autoptr(what_if) left = feasibility_spare(search->question.rejects, node, seen,
                                                search->query->request, search->question.ns);
    g_autoptr(what_if) what_if = what_if_new(left ? left->node : seen);
    g_autoptr(roster) roster = roster_new(what_if);
    g_autofree struct victim *victims = g_new0(struct victim, roster->n + 1);
    int64_t margins[SUMS_MAX];
    struct victims_cost cost;

    const size_t n = gather(search, roster, victims);
    search->lesser |= n > 0;
    if (n == 0)
        return;
    if (quota_room_refuse(search->question.room, seen, NULL) != REASON_NONE) {
        wish->relief = quota_relief_new(search->question.room, node, pod->priority);
        search->over_quota |= !wish->relief;
        if (!wish->relief)
            return;
    }
    find_margins(search, what_if->node, margins);
    if (suffices(search, margins)) { /* it ends nobody where nobody need end, in its own eyes */
        if (!search->fits_in_sum)
            search->fits_in_sum = g_strdup(node->name);
        return;
    }
    if (name_victims(search, victims, n, margins) == 0)
        return;
    for (size_t i = 0; i < n; i++)
        victims[i].fixed = victims[i].named && (victims[i].seat->unit || pod->particular ||
                                                !victims[i].seat->allocation->facts ||
                                                victims[i].seat->allocation->facts->particular);
    int64_t lacks[VICTIM_AMOUNTS_MAX];
    shortfall_measure(what_if->node, roster, search->query->request, search->asked, lacks);
    const struct victims_query query = {
        .admits = finds_room,
        .data = wish,
        .asked_host = search->query->request->host,
        .asked = search->asked,
        .lacks = lacks,
        .allowed = search->allowed,
        .n_allowed = search->n_allowed,
        .one_card = !wish->relief && dialect_asks_one_card(what_if->node, search->query->request),
        .fickle = dialect_is_fickle(search->query->request),
    };
    struct victims all = {victims, drop_staying(victims, n), 0};
    search->question.work.cut = false;
    const bool found = victims_choose(what_if, roster, &query, &all, &cost);
    search->cut |= search->question.work.cut;
    if (found && !search->question.work.cut && /* no pod ends where not all was looked at */
        cost.n + cost.going > 0 &&
        (!search->found->node || victims_cost_compare(&cost, &search->best) < 0))
        keep(search, node, &all, &cost);
}

/* --- the whole ------------------------------------------------------------------------------ */

/* The pod's own nomination, while those ended for it are still going: it waits. */
static const struct allocation *find_going(const struct search *search)
{
    const struct pod_view *pod = search->query->pod;
    const struct node *node = pod->nominated_node && *pod->nominated_node
                                  ? ledger_node(search->question.ledger, pod->nominated_node)
                                  : NULL;

    for (guint i = 0; node && i < node->allocations->len; i++) {
        const struct allocation *one = node->allocations->pdata[i];
        if (one->terminating && one->priority < pod->priority)
            return one;
    }
    return NULL;
}

static char *say_why_not(const struct search *search)
{
    const int64_t priority = search->query->pod->priority;

    if (!search->lesser)
        return g_strdup_printf("no pod where it may go has a lower priority than its own, %"
                               G_GINT64_FORMAT, priority);
    if (search->fits_in_sum)
        return g_strdup_printf("in sum %s has room for it, so kube-scheduler sees no need; that the "
                               "room is in pieces, it cannot see",
                               search->fits_in_sum);
    if (search->over_quota)
        return g_strdup_printf("its quotas leave no room for it, and its own pods of a priority "
                               "below %" G_GINT64_FORMAT " on one node give back too little",
                               priority);
    if (search->cut)
        return g_strdup("a search for room was cut short, and no pod ends on that");
    return g_strdup_printf("no node would take it even if all pods of a priority below %"
                           G_GINT64_FORMAT " ended",
                           priority);
}

struct preview *preview_find(const struct preview_query *query)
{
    const struct constraints *constraints = query->pod->constraints;
    struct search search = {.query = query, .found = g_new0(struct preview, 1)};
    g_autofree int64_t *allowed = g_new0(int64_t, budgets_n(query->budgets) + 1);

    search.found->pods = g_array_new(FALSE, FALSE, sizeof(struct evicted_pod));
    g_array_set_clear_func(search.found->pods, clear_pod);
    if (constraints && constraints->never_preempts) {
        search.found->why = g_strdup("its preemptionPolicy is Never");
        return search.found;
    }
    feasibility_init(&search.question, query->copy,
                     &(struct feasibility_about){query->pod, query->request, query->moment});
    search.question.work.left = WORK_APART;
    const GPtrArray *nodes = ledger_nodes(search.question.ledger);
    const struct allocation *going = find_going(&search);
    g_autoptr(pod_facts) asked = pod_facts_new(query->pod);
    search.asked = asked;
    search.allowed = allowed;
    search.n_allowed = budgets_n(query->budgets);
    budgets_allowed(query->budgets, allowed);
    for (guint i = 0; i < nodes->len && !going; i++) {
        const struct node *node = nodes->pdata[i];
        struct wish wish = {.admission = &search.question.admission};
        if (node->present && node->n_dialects > 0 &&
            constraints_check(constraints, node) == BARRIER_NONE)
            try_node(&search, node, &wish);
        quota_relief_free(wish.relief);
    }
    if (going)
        search.found->why = g_strdup_printf("it waits until %s/%s has ended on %s", going->ns,
                                            going->name, query->pod->nominated_node);
    else if (!search.found->node)
        search.found->why = say_why_not(&search);
    feasibility_clear(&search.question);
    g_free(search.fits_in_sum);
    return search.found;
}

void preview_free(struct preview *preview)
{
    if (!preview)
        return;
    g_free(preview->why);
    g_free(preview->node);
    g_array_unref(preview->pods);
    g_free(preview);
}

/* --- views ---------------------------------------------------------------------------------- */

void preview_encode(struct json_writer *writer, const struct preview *preview)
{
    json_key(writer, "preemption");
    if (!preview) {
        json_null(writer);
        return;
    }
    json_begin_object(writer);
    json_key_string(writer, "node", preview->node);
    json_key_string(writer, "whyNot", preview->why);
    json_key_int(writer, "budgetViolations", preview->violations);
    json_key_array(writer, "pods");
    for (guint i = 0; i < preview->pods->len; i++) {
        const struct evicted_pod *pod = &g_array_index(preview->pods, struct evicted_pod, i);
        json_begin_object(writer);
        json_key_string(writer, "namespace", pod->ns);
        json_key_string(writer, "name", pod->name);
        json_key_int(writer, "priority", pod->priority);
        json_key(writer, "idleSeconds");
        if (pod->idle_s > 0)
            json_int(writer, pod->idle_s);
        else
            json_null(writer);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

void preview_write(GString *text, const struct preview *preview)
{
    if (!preview)
        return;
    if (preview->why) {
        printable_append(text, "\nPreemption ends nobody: %s.\n", preview->why);
        return;
    }
    printable_append(text, "\nPreemption would end, on %s: ", preview->node);
    for (guint i = 0; i < preview->pods->len; i++) {
        const struct evicted_pod *pod = &g_array_index(preview->pods, struct evicted_pod, i);
        printable_append(text, "%s%s/%s (priority %" G_GINT64_FORMAT, i ? ", " : "", pod->ns,
                         pod->name, pod->priority);
        if (pod->idle_s > 0)
            printable_append(text, ", idle for %" G_GINT64_FORMAT " min by usage source",
                             pod->idle_s / 60);
        g_string_append_c(text, ')');
    }
    if (preview->violations > 0)
        printable_append(text, "; %" G_GINT64_FORMAT " against a PodDisruptionBudget",
                         preview->violations);
    g_string_append(text, ".\n");
}
