/* SPDX-License-Identifier: Apache-2.0 */
/* A node, and whose end makes room on it: the search needs no lock. */
#include "store/shortfall.h"
#include "policy/victims/victims.h"
#include "verbs/preempt/preempt_state.h"

#include <stdlib.h>
#include <string.h>

/* One that kube-scheduler has named. */
struct named {
    guint hash; /* of its UID */
    size_t at;  /* in the order of their names */
};

/* A node, and who could end on it. */
struct inquiry {
    const struct preemption_node *on; /* as kube-scheduler has named it */
    GHashTable
        *last; /* UIDs that the last answer has named there: nobody else may end; NULL: all may */
    const struct roster *roster;
    struct named *named; /* by hash */
    uint64_t hashes;     /* a bit for the last six of each hash: most who are there are not named */
    const struct seat *
        *seats; /* of each that is named, in the order of their names; NULL: unknown */
    struct victims victims;
};

static int compare_hashes(const void *a, const void *b)
{
    const struct named *one = a, *other = b;

    return (one->hash > other->hash) - (one->hash < other->hash);
}

static uint64_t hash_bit(guint hash)
{
    return UINT64_C(1) << hash % 64;
}

static void hash_named(const struct preempt *preempt, struct inquiry *inquiry)
{
    const struct preemption_node *on = inquiry->on;

    inquiry->named = json_arena_alloc(preempt->arena, (on->n_uids + 1) * sizeof *inquiry->named);
    inquiry->seats = json_arena_alloc(preempt->arena, (on->n_uids + 1) * sizeof *inquiry->seats);
    for (size_t i = 0; i < on->n_uids; i++) {
        inquiry->named[i] = (struct named){g_str_hash(on->uids[i]), i};
        inquiry->hashes |= hash_bit(inquiry->named[i].hash);
    }
    qsort(inquiry->named, on->n_uids, sizeof *inquiry->named, compare_hashes);
}

/* The first with that hash or a greater one. */
static size_t find_hash(const struct inquiry *inquiry, guint hash)
{
    size_t from = 0, to = inquiry->on->n_uids;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (inquiry->named[middle].hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Whether kube-scheduler has named who is there, perhaps more than once. */
static bool note_named(const struct inquiry *inquiry, const struct seat *seat)
{
    const size_t n = inquiry->on->n_uids;
    bool found = false;

    for (size_t i = find_hash(inquiry, seat->uid_hash);
         i < n && inquiry->named[i].hash == seat->uid_hash; i++) {
        const size_t at = inquiry->named[i].at;
        if (!g_str_equal(inquiry->on->uids[at], seat->uid))
            continue;
        inquiry->seats[at] = seat;
        found = true;
    }
    return found;
}

static bool is_of_last(const struct inquiry *inquiry, const char *uid)
{
    return !inquiry->last || g_hash_table_contains(inquiry->last, uid);
}

static bool may_end(const struct inquiry *inquiry, const struct seat *seat)
{
    return seat->terminating || is_of_last(inquiry, seat->uid);
}

/* Whom the watch has not shown yet kube-scheduler may not have seen either; only what it names
 * itself it has. Of such a pod, and of one that it wants gone for a reason of which nothing is known
 * here, nothing is decided here. */
static void gather(const struct preempt *preempt, struct inquiry *inquiry)
{
    const struct roster *roster = inquiry->roster;
    const bool budgets = budgets_n(preempt->budgets) > 0;

    hash_named(preempt, inquiry);
    for (uint32_t i = 0; i < roster->n; i++) {
        const struct seat *seat = &roster->seats[i];
        struct allocation *allocation = seat->allocation;
        const bool named = inquiry->hashes & hash_bit(seat->uid_hash) && note_named(inquiry, seat);
        const bool lesser = seat->confirmed && seat->priority < preempt->args.pod.priority;
        if (!named && !(lesser && may_end(inquiry, seat)))
            continue;
        struct victim *victim = &inquiry->victims.all[inquiry->victims.n++];
        *victim = (struct victim){
            .seat = seat,
            .allocation = allocation,
            .named = named,
            .fixed = named && (!lesser || preempt->args.particular || !allocation->facts ||
                               allocation->facts->particular),
            .idle = preempt->idleness &&
                    idleness_since(preempt->idleness, allocation, preempt->call.moment.now_ns) > 0,
        };
        if (budgets)
            victim->n_budgets = budgets_of(preempt->budgets, allocation, victim->budgets,
                                           G_N_ELEMENTS(victim->budgets));
    }
}

/* Violations among those that kube-scheduler has named and the ledger does not know. */
static int64_t foreign_violations(const struct preempt *preempt, const struct inquiry *inquiry)
{
    g_autofree int64_t *left =
        g_memdup2(preempt->allowed, budgets_n(preempt->budgets) * sizeof *left);
    int64_t known = 0;

    for (size_t i = 0; inquiry->on->violations > 0 && i < inquiry->victims.n; i++) {
        const struct victim *victim = &inquiry->victims.all[i];
        bool violates = false;
        for (uint32_t j = 0; victim->named && j < victim->n_budgets; j++)
            violates |= left[victim->budgets[j]]-- <= 0;
        known += violates;
    }
    return MAX(inquiry->on->violations - known, 0);
}

static bool knows_named(const struct inquiry *inquiry)
{
    for (size_t i = 0; i < inquiry->on->n_uids; i++) {
        if (!inquiry->seats[i])
            return false;
    }
    return true;
}

/* Those that kube-scheduler has named first, as it has named them. `n`: how many are chosen. */
static void write_victims(const struct preempt *preempt, const struct inquiry *inquiry, size_t n,
                          struct preemption_node *answer)
{
    const size_t n_named = inquiry->on->n_uids;
    const struct seat *seats = inquiry->roster->seats;
    g_autofree bool *spared = g_new0(bool, inquiry->roster->n + 1);
    const char **others =
        json_arena_alloc(preempt->arena, (n_named + n + 1) * sizeof *answer->uids);
    size_t n_others = 0;

    answer->uids = others;
    others += n_named;
    for (size_t i = 0; i < inquiry->victims.n; i++) {
        const struct victim *victim = &inquiry->victims.all[i];
        if (victim->named)
            spared[victim->seat - seats] = !victim->chosen;
        else if (victim->chosen)
            others[n_others++] = victim->seat->uid;
        if (victim->chosen)
            __builtin_prefetch(victim->seat->uid); /* it is written soon */
    }
    for (size_t i = 0; i < n_named; i++) {
        const struct seat *seat = inquiry->seats[i];
        if (!seat || !spared[seat - seats])
            answer->uids[answer->n_uids++] = inquiry->on->uids[i];
    }
    memmove(&answer->uids[answer->n_uids], others, n_others * sizeof *others);
    answer->n_uids += n_others;
}

/* What has to be so for the pod to come. */
struct wish {
    struct admission_query admission;
    const struct quota_relief *relief;
};

static bool finds_room(const struct node *node, void *data)
{
    struct wish *wish = data;

    return quota_relief_suffices(wish->relief, node) &&
           dialect_admits(node, &wish->admission) != ADMISSION_NO;
}

/* How many the last answer has named too; of all others only who is being deleted is nobody new. */
static void compare_with_last(const struct inquiry *inquiry, struct preempt_answer *answer)
{
    for (size_t i = 0; i < inquiry->victims.n; i++) {
        const struct victim *victim = &inquiry->victims.all[i];
        if (!victim->chosen || victim->seat->terminating)
            continue;
        answer->n_last += is_of_last(inquiry, victim->seat->uid);
        answer->beyond |= !is_of_last(inquiry, victim->seat->uid);
    }
    for (size_t i = 0; i < inquiry->on->n_uids; i++) {
        const bool known = inquiry->seats[i] != NULL;
        answer->n_last += !known && is_of_last(inquiry, inquiry->on->uids[i]);
        answer->beyond |= !known && !is_of_last(inquiry, inquiry->on->uids[i]);
    }
}

static GHashTable *uids_of(const struct preemption_node *node)
{
    GHashTable *uids = g_hash_table_new(g_str_hash, g_str_equal);

    for (size_t i = 0; i < node->n_uids; i++)
        g_hash_table_add(uids, (gpointer)(uintptr_t)node->uids[i]);
    return uids;
}

bool preempt_search(const struct preempt *preempt, const struct candidate *candidate,
                    const struct preemption_node *on, const struct preemption_node *last,
                    struct preempt_answer *ret_answer)
{
    struct stand_in *stand_in = candidate->stand_in;
    g_autoptr(GHashTable) last_uids = last ? uids_of(last) : NULL;
    struct inquiry inquiry = {.on = on, .last = last_uids};
    struct preempt_answer answer = {.node.name = on->name};
    struct victims_cost cost;

    if (!stand_in)
        return false;
    const struct node *node = stand_in->what_if->node;
    stand_in_prepare(stand_in);
    inquiry.roster = stand_in->roster;
    g_autofree struct victim *victims = g_new(struct victim, inquiry.roster->n + 1);
    inquiry.victims.all = victims;
    gather(preempt, &inquiry);
    int64_t lacks[VICTIM_AMOUNTS_MAX];
    shortfall_measure(node, inquiry.roster, preempt->request, preempt->facts, lacks);
    struct wish wish = {preempt->admission, candidate->relief};
    const struct victims_query query = {
        .admits = finds_room,
        .data = &wish,
        .asked_host = preempt->request->host,
        .asked = preempt->facts,
        .lacks = knows_named(&inquiry) ? lacks : NULL,
        .allowed = preempt->allowed,
        .n_allowed = budgets_n(preempt->budgets),
        .one_card = !wish.relief && dialect_asks_one_card(node, preempt->request),
        .fickle = dialect_is_fickle(preempt->request),
    };
    if (!victims_choose(stand_in->what_if, inquiry.roster, &query, &inquiry.victims, &cost))
        return false;
    answer.node.dearest = cost.dearest;
    write_victims(preempt, &inquiry, (size_t)(cost.n + cost.going), &answer.node);
    answer.node.violations =
        MIN(cost.violations + foreign_violations(preempt, &inquiry), (int64_t)answer.node.n_uids);
    if (last)
        compare_with_last(&inquiry, &answer);
    *ret_answer = answer;
    return true;
}
