/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/preemption_preview.h"
#include "policy/victims/victims_cost.h"

#include "base/printable.h"
#include "core/node.h"
#include "explain/cpu_victims.h"
#include "gate/idle_pods/idle_pods.h"
#include "gate/quotas.h"
#include "verbs/preempt/preempt_node.h"

#include <stdlib.h>
#include <string.h>

/* What kube-scheduler adds up: CPU, memory and pods of the node, and extended resources. */
#define HOST_SUMS 3
#define PLENTY (INT64_MAX / 4)
#define SUMS_MAX (HOST_SUMS + POD_FACTS_AMOUNTS_MAX)

struct search {
    const struct preview_query *query;
    struct feasibility question;
    struct preempt_query verb; /* as preempt searches */
    char *fits_in_sum; /* the first node where the sum suffices already */
    char *unread;      /* the first node whose pods without a GPU count and were not read */
    struct cpu_victims cpu_victims;
    bool lesser;       /* there is a pod of lower priority somewhere */
    bool cut;          /* of some node nothing is known: a search was cut short */
    struct elastic_sparing *sparing; /* NULL: no pod is spared */
    bool spared;                     /* some pod is, because a quota guarantees what it holds */
    bool over_quota;                 /* on a node its quotas keep it out, whoever ends of those */
    struct victims_cost best;
    struct preview *found;
};

/* A node that is tried. */
struct attempt {
    const struct node *node;
    const struct node *seen; /* by the pod */
    struct candidate candidate;
    struct victim *victims; /* who may end in kube-scheduler's eyes */
    size_t n;
    GPtrArray *cpu_pods; /* struct allocation *; NULL: none need be known */
    struct seat *cpu_seats;
    int64_t margins[SUMS_MAX];
    int64_t violations; /* among all that it names */
};

/* --- sums ----------------------------------------------------------------------------------- */

static int64_t left_of(int64_t all, int64_t used)
{
    return all > 0 ? all - used : PLENTY;
}

/* What is left of each sum beyond what the pod asks for; below 0 it is short, the more so where pods hold more than the
 * node has. What the node does not offer is left to an extender, so kube-scheduler is configured. */
static void find_margins(const struct search *search, const struct node *node,
                         int64_t ret_margins[SUMS_MAX])
{
    const struct host *all = &node->host, *used = &node->host_used;
    const struct host asked = search->query->request->host;
    const struct pod_facts *facts = search->verb.facts;

    ret_margins[0] = asked.cpu > 0 ? left_of(all->cpu, used->cpu) - asked.cpu : PLENTY;
    ret_margins[1] = asked.memory > 0 ? left_of(all->memory, used->memory) - asked.memory : PLENTY;
    ret_margins[2] = left_of(all->pods, used->pods) - asked.pods;
    for (uint32_t i = 0; i < facts->n_amounts; i++) {
        const char *resource = facts->amounts[i].resource;
        const int64_t whole = node_traits_amount(node->traits, resource);
        int64_t left = whole - facts->amounts[i].thousandths;
        for (guint j = 0; whole > 0 && j < node->allocations->len; j++) {
            const struct allocation *one = node->allocations->pdata[j];
            left -= pod_facts_amount(one->facts, resource);
        }
        ret_margins[HOST_SUMS + i] = whole > 0 ? left : PLENTY;
    }
}

static void give_back(const struct search *search, const struct allocation *allocation, int sign,
                      int64_t margins[SUMS_MAX])
{
    margins[0] += sign * allocation->host.cpu;
    margins[1] += sign * allocation->host.memory;
    margins[2] += sign * allocation->host.pods;
    for (uint32_t i = 0; i < search->verb.facts->n_amounts; i++)
        margins[HOST_SUMS + i] +=
            sign * pod_facts_amount(allocation->facts, search->verb.facts->amounts[i].resource);
}

static bool suffices(const struct search *search, const int64_t margins[SUMS_MAX])
{
    for (uint32_t i = 0; i < HOST_SUMS + search->verb.facts->n_amounts; i++) {
        if (margins[i] < 0)
            return false;
    }
    return true;
}

/* Whether pods without a GPU decide who ends: more is free without them of something that the pod asks for and that
 * is short or of which nobody knows what they take, and the end of all of them would suffice. */
static bool needs_cpu_pods(const struct search *search, const struct attempt *attempt)
{
    const struct node *node = attempt->seen;
    const struct host cpu_pods = node_cpu_pods(node);
    int64_t most[SUMS_MAX];
    bool needs = false;

    if (node->n_cpu_pods == 0)
        return false;
    memcpy(most, attempt->margins, sizeof most);
    for (uint32_t i = 0; i < HOST_SUMS; i++)
        needs |= most[i] < 0;
    for (uint32_t i = 0; i < search->verb.facts->n_amounts; i++)
        needs |= search->verb.facts->amounts[i].thousandths > 0 && most[HOST_SUMS + i] != PLENTY &&
                 !dialect_reads(search->query->request->dialect,
                                search->verb.facts->amounts[i].resource);
    most[0] += cpu_pods.cpu;
    most[1] += cpu_pods.memory;
    most[2] += cpu_pods.pods;
    for (size_t i = 0; needs && i < attempt->n; i++)
        give_back(search, attempt->victims[i].seat->allocation, 1, most);
    return needs && suffices(search, most);
}

/* --- kube-scheduler's own victims ------------------------------------------------------------ */

static int compare_importance(const void *a, const void *b)
{
    const struct seat *one = ((const struct victim *)a)->seat;
    const struct seat *other = ((const struct victim *)b)->seat;
    const struct allocation *left = one->allocation, *right = other->allocation;

    if (left->priority != right->priority)
        return left->priority > right->priority ? -1 : 1;
    const int age = seat_compare_age(one, other);
    return age != 0 ? age : strcmp(left->uid, right->uid);
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
static size_t name_victims(const struct search *search, struct attempt *attempt)
{
    struct victim *victims = attempt->victims;
    const size_t n = attempt->n;
    int64_t *margins = attempt->margins;
    g_autofree int64_t *left =
        g_memdup2(search->verb.allowed, (budgets_n(search->verb.budgets) + 1) * sizeof *left);
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
            attempt->violations += victims[i].named && guarded[i];
        }
    }
    return named;
}

/* --- one node ------------------------------------------------------------------------------- */

static int64_t idle_s(const struct preview_query *query, const struct allocation *allocation)
{
    const int64_t now_ns = query->moment->now_ns;
    const int64_t since_ms = idleness_since(
        idle_pods_known(store_part(query->copy, &part_idle_pods)), allocation, now_ns);

    return since_ms > 0 ? MAX((now_ns / 1000000 - since_ms) / 1000, 1) : 0;
}

static void add_victim(const struct search *search, const struct seat *seat,
                       struct victim *ret_victim)
{
    *ret_victim = (struct victim){.seat = seat};
    ret_victim->n_budgets =
        (uint8_t)budgets_of(search->query->budgets, seat->allocation, ret_victim->budgets,
                            G_N_ELEMENTS(ret_victim->budgets));
}

static void gather(const struct search *search, struct attempt *attempt)
{
    const struct roster *roster = attempt->candidate.stand_in->roster;

    attempt->victims = g_new0(struct victim, roster->n + 1);
    for (uint32_t i = 0; i < roster->n; i++) {
        const struct seat *seat = &roster->seats[i];
        if (!seat->confirmed || seat->priority >= search->query->pod->priority)
            continue;
        add_victim(search, seat, &attempt->victims[attempt->n++]);
    }
}

static void clear_pod(gpointer data)
{
    struct evicted_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->name);
}

static void keep_pod(struct search *search, const struct allocation *one)
{
    const struct evicted_pod pod = {g_strdup(one->ns), g_strdup(one->name), one->priority,
                                    cpu_victims_made(one) ? 0 : idle_s(search->query, one)};

    g_array_append_val(search->found->pods, pod);
}

static const struct allocation *find_ending(const struct attempt *attempt, const char *uid)
{
    for (size_t i = 0; i < attempt->n; i++) {
        if (g_str_equal(attempt->victims[i].seat->allocation->uid, uid))
            return attempt->victims[i].seat->allocation;
    }
    return NULL;
}

static void keep(struct search *search, const struct attempt *attempt,
                 const struct preempt_answer *answer)
{
    struct preview *found = search->found;

    search->best = answer->cost;
    g_free(found->node);
    found->node = g_strdup(attempt->node->name);
    found->violations = answer->cost.violations;
    g_array_set_size(found->pods, 0);
    for (size_t i = 0; i < answer->node.n_uids; i++) {
        const struct allocation *ending = find_ending(attempt, answer->node.uids[i]);
        if (ending)
            keep_pod(search, ending);
    }
}

/* The verb's part: kube-scheduler has named. */
static void ask_verb(struct search *search, struct attempt *attempt, size_t n_named)
{
    const char **uids = json_arena_alloc(search->verb.arena, n_named * sizeof *uids);
    int64_t *priorities = json_arena_alloc(search->verb.arena, n_named * sizeof *priorities);
    struct preemption_node on = {
        .name = attempt->node->name, .uids = uids, .violations = attempt->violations};
    g_autoptr(GPtrArray) cpu_named = g_ptr_array_new();
    struct preempt_answer answer;

    for (size_t i = 0; i < attempt->n; i++) {
        struct allocation *one = attempt->victims[i].seat->allocation;
        if (!attempt->victims[i].named)
            continue;
        priorities[on.n_uids] = one->priority;
        uids[on.n_uids++] = one->uid;
        if (cpu_victims_made(one))
            g_ptr_array_add(cpu_named, one);
    }
    attempt->candidate.priorities = priorities;
    const bool found = preempt_search(&search->verb, &attempt->candidate, &on, NULL, &answer);
    search->cut |= search->question.work.cut;
    if (!found || answer.node.n_uids == 0)
        return;
    cpu_victims_add_cost(cpu_named, &answer.cost);
    if (!search->found->node || victims_cost_compare(&answer.cost, &search->best) < 0)
        keep(search, attempt, &answer);
}

/* False: they are not known. */
static bool gather_cpu_pods(struct search *search, struct attempt *attempt)
{
    attempt->cpu_pods = cpu_victims_read(&search->cpu_victims, attempt->node);
    if (!attempt->cpu_pods)
        return false;
    const guint n = attempt->cpu_pods->len;
    attempt->cpu_seats = g_new0(struct seat, n + 1);
    attempt->victims = g_renew(struct victim, attempt->victims, attempt->n + n + 1);
    for (guint i = 0; i < n; i++) {
        struct allocation *one = attempt->cpu_pods->pdata[i];
        for (uint32_t j = 0; j < search->verb.facts->n_amounts; j++) {
            if (attempt->margins[HOST_SUMS + j] != PLENTY)
                attempt->margins[HOST_SUMS + j] -=
                    pod_facts_amount(one->facts, search->verb.facts->amounts[j].resource);
        }
        if (one->priority >= search->query->pod->priority)
            continue;
        attempt->cpu_seats[i] = (struct seat){.allocation = one,
                                              .priority = one->priority,
                                              .created_s = one->created_s,
                                              .started_s = allocation_start(one)};
        add_victim(search, &attempt->cpu_seats[i], &attempt->victims[attempt->n++]);
    }
    return true;
}

/* Whether a pod without a GPU may draw on a budget before one that has a GPU: kube-scheduler counts all that might
 * end. Where that is not known, budgets count for pods with GPUs alone. */
static bool draws_with_cpu_pods(const struct attempt *attempt)
{
    bool guarded = false;

    for (size_t i = 0; i < attempt->n; i++)
        guarded |= attempt->victims[i].n_budgets > 0;
    return guarded && attempt->seen->n_cpu_pods > 0;
}

static void attempt_clear(struct attempt *attempt)
{
    g_clear_pointer(&attempt->cpu_pods, g_ptr_array_unref);
    g_free(attempt->cpu_seats);
    g_free(attempt->victims);
    stand_in_free(attempt->candidate.stand_in);
    candidate_clear(&attempt->candidate);
}

/* Whether some pod of the node may end for it; `quotas`: the reason that none of these mends. */
static bool may_help(struct search *search, struct attempt *attempt, enum reason quotas)
{
    const bool needs = needs_cpu_pods(search, attempt);

    search->lesser |= attempt->n > 0;
    if (attempt->n == 0 && !needs)
        return false;
    if (quotas != REASON_NONE) {
        search->over_quota = true;
        return false;
    }
    if ((needs || draws_with_cpu_pods(attempt)) && !gather_cpu_pods(search, attempt) && needs) {
        if (search->found->n_unread++ == 0)
            search->unread = g_strdup(attempt->node->name);
        return false;
    }
    search->lesser |= attempt->n > 0;
    return attempt->n > 0;
}

static void try_node(struct search *search, const struct node *node)
{
    struct feasibility_opening opening;
    struct attempt attempt = {.node = node};
    size_t n_named;

    const enum reason reason = feasibility_open(&search->question, node, &opening);
    if (!opening.seen)
        return;
    attempt.candidate = (struct candidate){
        .stand_in = stand_in_new(opening.seen),
        .relief = opening.relief,
        .spared = elastic_sparing_find(search->sparing, node, search->query->pod->priority)};
    search->spared |= attempt.candidate.spared != NULL;
    stand_in_prepare(attempt.candidate.stand_in);
    attempt.seen = attempt.candidate.stand_in->what_if->node;
    gather(search, &attempt);
    find_margins(search, attempt.seen, attempt.margins);
    if (may_help(search, &attempt, reason)) {
        if (suffices(search,
                     attempt.margins)) { /* it ends no pod where none need end, in its own eyes */
            if (!search->fits_in_sum)
                search->fits_in_sum = g_strdup(node->name);
        } else if ((n_named = name_victims(search, &attempt)) > 0) {
            ask_verb(search, &attempt, n_named);
        }
    }
    attempt_clear(&attempt);
}

/* --- the whole ------------------------------------------------------------------------------ */

static const struct allocation *find_going_of(const struct search *search, const GPtrArray *pods)
{
    for (guint i = 0; i < pods->len; i++) {
        const struct allocation *one = pods->pdata[i];
        if (one->terminating && one->priority < search->query->pod->priority)
            return one;
    }
    return NULL;
}

/* The pod's own nomination, while a pod that ended for it is still going: it waits, as the text says. */
static char *find_going(struct search *search)
{
    const char *name = search->query->pod->nominated_node;
    const struct node *node = name && *name ? ledger_node(search->question.ledger, name) : NULL;
    const struct allocation *going = node ? find_going_of(search, node->allocations) : NULL;
    g_autoptr(GPtrArray) cpu_pods = NULL;

    if (node && !going && node->n_cpu_pods > 0)
        cpu_pods = cpu_victims_read(&search->cpu_victims, node);
    if (cpu_pods)
        going = find_going_of(search, cpu_pods);
    return going ? g_strdup_printf("it waits until %s/%s has ended on %s", going->ns, going->name,
                                   name)
                 : NULL;
}

static char *say_why_not(const struct search *search)
{
    const int64_t priority = search->query->pod->priority;

    if (search->unread)
        return cpu_victims_say_unread(search->unread, search->found->n_unread);
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
    if (search->spared)
        return g_strdup("it would have more than its namespace is sure of, and so ends no pod of a "
                        "namespace that would then have less than its own min");
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
    feasibility_init(
        &search.question, query->copy,
        &(struct feasibility_about){GATE_BY_PREVIEW, query->pod, query->request, query->moment});
    search.question.work.left = WORK_APART;
    search.sparing = quotas_gate_sparing(&search.question.gates, search.question.ledger);
    const GPtrArray *nodes = ledger_nodes(search.question.ledger);
    search.cpu_victims = (struct cpu_victims){.cluster = query->cluster, .copy = query->copy};
    search.found->why = find_going(&search);
    g_autoptr(pod_facts) facts = pod_facts_new(query->pod);
    g_autoptr(json_arena) arena = json_arena_new();
    budgets_allowed(query->budgets, allowed);
    search.verb = (struct preempt_query){
        .arena = arena,
        .request = query->request,
        .admission = search.question.admission,
        .facts = facts,
        .priority = query->pod->priority,
        .particular = query->pod->particular,
        .now_ns = query->moment->now_ns,
        .budgets = query->budgets,
        .allowed = allowed,
        .idleness = idle_pods_known(store_part(query->copy, &part_idle_pods)),
    };
    for (guint i = 0; i < nodes->len && !search.found->why; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->present && node->n_dialects > 0 &&
            constraints_check(constraints, node) == BARRIER_NONE)
            try_node(&search, node);
    }
    if (!search.found->why && !search.found->node)
        search.found->why = say_why_not(&search);
    elastic_sparing_free(search.sparing);
    feasibility_clear(&search.question);
    g_free(search.fits_in_sum);
    g_free(search.unread);
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
    json_key_int(writer, "nodesUnread", preview->n_unread);
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
    if (preview->n_unread > 0)
        printable_append(text, "; pods without a GPU of %u other node%s were not read",
                         preview->n_unread, preview->n_unread > 1 ? "s" : "");
    g_string_append(text, ".\n");
}
