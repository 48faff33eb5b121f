/* SPDX-License-Identifier: Apache-2.0 */
/* A node, and whose end makes room on it: the search needs no lock. */
#include "verbs/preempt/preempt_node.h"

#include "core/node_traits.h"

#include <stdlib.h>
#include <string.h>

/* One of the UIDs that a node was named with. */
struct named {
    guint hash;
    size_t at; /* in the order of their names */
};

/* All of them. Seats have the hashes of theirs, and most are not among them. */
struct naming {
    const struct preemption_node *node;
    struct named *uids; /* by hash */
    uint64_t hashes;    /* a bit for the last six of each hash */
};

/* A node, and who could end on it. */
struct inquiry {
    const struct preemption_node *on; /* as kube-scheduler has named it */
    struct naming named;              /* on it */
    struct naming last; /* in the last answer: nobody else may end; no node: all may */
    const struct roster *roster;
    const struct seat *
        *seats; /* of each that is named, in the order of their names; NULL: unknown */
    struct victims victims;
    const struct seat **spared; /* those that are named and may not end */
    size_t n_spared;
    bool barred; /* nobody knows whether others would do in place of one of these */
};

void candidate_clear(struct candidate *candidate)
{
    g_clear_pointer(&candidate->relief, gates_relief_free);
    g_clear_pointer(&candidate->spared, g_hash_table_unref);
}

static int compare_hashes(const void *a, const void *b)
{
    const struct named *one = a, *other = b;

    return (one->hash > other->hash) - (one->hash < other->hash);
}

static uint64_t hash_bit(guint hash)
{
    return UINT64_C(1) << hash % 64;
}

static struct naming hash_named(const struct preempt_query *query,
                                const struct preemption_node *node)
{
    struct naming naming = {.node = node};

    naming.uids = json_arena_alloc(query->arena, (node->n_uids + 1) * sizeof *naming.uids);
    for (size_t i = 0; i < node->n_uids; i++) {
        naming.uids[i] = (struct named){g_str_hash(node->uids[i]), i};
        naming.hashes |= hash_bit(naming.uids[i].hash);
    }
    qsort(naming.uids, node->n_uids, sizeof *naming.uids, compare_hashes);
    return naming;
}

/* The first with that hash or a greater one. */
static size_t find_hash(const struct naming *naming, guint hash)
{
    size_t from = 0, to = naming->node->n_uids;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (naming->uids[middle].hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The next from `i` on with that UID, one that find_hash has found or a later one; their number: none. */
static size_t find_uid(const struct naming *naming, size_t i, guint hash, const char *uid)
{
    const size_t n = naming->node->n_uids;

    while (i < n && naming->uids[i].hash == hash &&
           !g_str_equal(naming->node->uids[naming->uids[i].at], uid))
        i++;
    return i < n && naming->uids[i].hash == hash ? i : n;
}

/* Whether kube-scheduler has named who is there, perhaps more than once. */
static bool note_named(const struct inquiry *inquiry, const struct seat *seat)
{
    const struct naming *named = &inquiry->named;
    const guint hash = seat->uid_hash;
    bool found = false;

    if (!(named->hashes & hash_bit(hash)))
        return false;
    for (size_t i = find_uid(named, find_hash(named, hash), hash, seat->uid);
         i < named->node->n_uids; i = find_uid(named, i + 1, hash, seat->uid)) {
        inquiry->seats[named->uids[i].at] = seat;
        found = true;
    }
    return found;
}

static bool is_of_last(const struct inquiry *inquiry, guint hash, const char *uid)
{
    const struct naming *last = &inquiry->last;

    return last->hashes & hash_bit(hash) &&
           find_uid(last, find_hash(last, hash), hash, uid) < last->node->n_uids;
}

static bool may_end(const struct inquiry *inquiry, const struct seat *seat)
{
    return !inquiry->last.node || seat->terminating ||
           is_of_last(inquiry, seat->uid_hash, seat->uid);
}

/* kube-scheduler may have named it for a reason of which nothing is known here. */
static bool is_particular(const struct preempt_query *query, const struct seat *seat)
{
    const struct pod_facts *facts = seat->allocation->facts;

    return seat->unit || query->particular || !facts || facts->particular;
}

static bool is_spared(const struct preempt_query *query, const struct candidate *candidate,
                      struct inquiry *inquiry, const struct seat *seat, bool named)
{
    if (!candidate->spared || !g_hash_table_contains(candidate->spared, seat->uid))
        return false;
    if (named) {
        inquiry->spared[inquiry->n_spared++] = seat;
        inquiry->barred |= is_particular(query, seat);
    }
    return true;
}

/* Whom the watch has not shown yet kube-scheduler may not have seen either; only what it names
 * itself it has. Of such a pod, and of one that it wants gone for a reason of which nothing is known
 * here, nothing is decided here. */
static void gather(const struct preempt_query *query, const struct candidate *candidate,
                   struct inquiry *inquiry)
{
    const struct roster *roster = inquiry->roster;
    const bool budgets = budgets_n(query->budgets) > 0;

    inquiry->named = hash_named(query, inquiry->on);
    inquiry->seats =
        json_arena_alloc(query->arena, (inquiry->on->n_uids + 1) * sizeof *inquiry->seats);
    inquiry->spared =
        json_arena_alloc(query->arena, (inquiry->on->n_uids + 1) * sizeof *inquiry->spared);
    for (uint32_t i = 0; i < roster->n; i++) {
        const struct seat *seat = &roster->seats[i];
        const struct allocation *allocation = seat->allocation;
        const bool named = note_named(inquiry, seat);
        const bool lesser = seat->confirmed && seat->priority < query->priority;
        if (seat->stays || /* what it holds, kubelet goes on with; also where it is named */
            is_spared(query, candidate, inquiry, seat, named))
            continue;
        if (!named && !(lesser && may_end(inquiry, seat) && (!seat->unit || seat->terminating)))
            continue;
        struct victim *victim = &inquiry->victims.all[inquiry->victims.n++];
        *victim = (struct victim){
            .seat = seat,
            .named = named,
            .fixed = named && (!lesser || is_particular(query, seat)),
            .idle =
                query->idleness && idleness_since(query->idleness, allocation, query->now_ns) > 0,
        };
        if (budgets)
            victim->n_budgets = (uint8_t)budgets_of(query->budgets, allocation, victim->budgets,
                                                    G_N_ELEMENTS(victim->budgets));
    }
}

/* Violations among those that kube-scheduler has named and the ledger does not know. */
static int64_t foreign_violations(const struct preempt_query *query, const struct inquiry *inquiry)
{
    if (inquiry->on->violations == 0)
        return 0;
    g_autofree int64_t *left = g_memdup2(query->allowed, budgets_n(query->budgets) * sizeof *left);
    int64_t known = 0;

    for (size_t i = 0; i < inquiry->victims.n; i++) {
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

/* One whom the answer names. */
struct ending {
    const char *uid;
    int64_t priority, started_s, created_s; /* of a CPU-only pod the times are 0 */
    size_t at;
};

static int compare_endings(const void *a, const void *b)
{
    const struct ending *one = a, *other = b;

    if (one->priority != other->priority)
        return one->priority > other->priority ? -1 : 1;
    if (one->started_s != other->started_s)
        return one->started_s < other->started_s ? -1 : 1;
    if (one->created_s != other->created_s)
        return one->created_s < other->created_s ? -1 : 1;
    return (one->at > other->at) - (one->at < other->at);
}

/* Those that kube-scheduler has named and that end. One of which no priority is known stays behind the one before
 * it: kube-scheduler names the most important ones first. */
static size_t list_named(const struct inquiry *inquiry, const bool *ends, const int64_t *priorities,
                         struct ending *endings)
{
    struct ending last = {.priority = INT64_MAX};
    size_t n = 0;

    for (size_t i = 0; i < inquiry->on->n_uids; i++) {
        const struct seat *seat = inquiry->seats[i];
        const int64_t known = seat ? seat->priority : priorities ? priorities[i] : INT64_MIN;
        if (seat && !ends[seat - inquiry->roster->seats])
            continue;
        if (known > INT64_MIN) {
            last.priority = known;
            last.started_s = seat ? seat->started_s : 0;
            last.created_s = seat ? seat->created_s : 0;
        }
        last.uid = inquiry->on->uids[i];
        last.at = i;
        endings[n++] = last;
    }
    return n;
}

/* The most important ones first, whoever has named them: kube-scheduler takes the first for that. Source:
 * kubernetes/kubernetes 1.37.2, pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption. */
static void write_victims(const struct preempt_query *query, const struct inquiry *inquiry,
                          const int64_t *priorities, struct preemption_node *answer)
{
    const size_t n_named = inquiry->on->n_uids, n = inquiry->victims.n_chosen;
    g_autofree bool *ends = g_new0(bool, inquiry->roster->n + 1);
    g_autofree struct ending *endings = g_new(struct ending, n_named + n + 1);

    for (size_t i = 0; i < n; i++) {
        const struct seat *seat = inquiry->victims.all[i].seat;
        ends[seat - inquiry->roster->seats] = true;
        __builtin_prefetch(seat->uid); /* it is written soon */
    }
    answer->n_uids = list_named(inquiry, ends, priorities, endings);
    answer->as_named = answer->n_uids == n_named;
    for (size_t i = 0; i < n; i++) {
        const struct victim *victim = &inquiry->victims.all[i];
        if (victim->named)
            continue;
        endings[answer->n_uids] =
            (struct ending){victim->seat->uid, victim->seat->priority, victim->seat->started_s,
                            victim->seat->created_s, n_named + answer->n_uids};
        answer->n_uids++;
        answer->as_named = false;
    }
    qsort(endings, answer->n_uids, sizeof *endings, compare_endings);
    answer->uids = json_arena_alloc(query->arena, (answer->n_uids + 1) * sizeof *answer->uids);
    for (size_t i = 0; i < answer->n_uids; i++)
        answer->uids[i] = endings[i].uid;
}

static int64_t lack(int64_t all, int64_t used, int64_t asked)
{
    return all > 0 ? MAX(asked - (all - used), 0) : INT64_MAX;
}

static int64_t lack_of(const struct node *node, const struct roster *roster,
                       const struct pod_facts_amount *asked)
{
    const int64_t used = roster_amount(roster, asked->resource);

    return used == INT64_MAX
               ? used
               : lack(node_traits_amount(node->traits, asked->resource), used, asked->thousandths);
}

/* What the pod lacks on the node of that which kube-scheduler adds up: what it asks for, less what is left of what
 * the node may give; in the order of struct victims_query.lacks, in thousandths. INT64_MAX: not known, as where
 * pods hold something of which nothing is kept. */
static void measure_lacks(const struct preempt_query *query, const struct node *node,
                          const struct roster *roster, int64_t ret_lacks[VICTIM_AMOUNTS_MAX])
{
    const struct pod_facts *asked = query->facts;
    const struct request *request = query->request;

    const struct host *host = &node->host, *used = &node->host_used;
    const struct host *own = &request->host;

    if (own->cpu > 0)
        *ret_lacks++ = lack(host->cpu, used->cpu, own->cpu);
    if (own->memory > 0)
        *ret_lacks++ = lack(host->memory, used->memory, own->memory);
    for (uint32_t i = 0; asked && i < asked->n_amounts; i++) {
        /* Of pods without GPUs only CPU and memory are kept. */
        const bool known =
            node->n_cpu_pods == 0 || dialect_reads(request->dialect, asked->amounts[i].resource);
        *ret_lacks++ = known ? lack_of(node, roster, &asked->amounts[i]) : INT64_MAX;
    }
    /* As many as are named are not owed where nobody says how many pods the node takes. */
    *ret_lacks = host->pods > 0 ? lack(host->pods, used->pods, own->pods) : 0;
}

/* What has to be so for the pod to come. */
struct wish {
    struct admission_query admission;
    const struct gates_relief *relief;
};

static bool finds_room(const struct node *node, void *data)
{
    struct wish *wish = data;

    return gates_suffice(wish->relief, node) &&
           dialect_admits(node, &wish->admission) != ADMISSION_NO;
}

/* How many the last answer has named too; of all others only who is being deleted is nobody new. */
static void compare_with_last(const struct inquiry *inquiry, struct preempt_answer *answer)
{
    for (size_t i = 0; i < inquiry->victims.n_chosen; i++) {
        const struct seat *seat = inquiry->victims.all[i].seat;
        if (seat->terminating)
            continue;
        const bool again = is_of_last(inquiry, seat->uid_hash, seat->uid);
        answer->n_last += again;
        answer->beyond |= !again;
    }
    for (size_t i = 0; i < inquiry->on->n_uids; i++) {
        const char *uid = inquiry->on->uids[i];
        if (inquiry->seats[i])
            continue;
        const bool again = is_of_last(inquiry, g_str_hash(uid), uid);
        answer->n_last += again;
        answer->beyond |= !again;
    }
}

bool preempt_search(const struct preempt_query *query, const struct candidate *candidate,
                    const struct preemption_node *on, const struct preemption_node *last,
                    struct preempt_answer *ret_answer)
{
    struct stand_in *stand_in = candidate->stand_in;
    struct inquiry inquiry = {.on = on};
    struct preempt_answer answer = {.node.name = on->name};

    if (!stand_in)
        return false;
    const struct node *node = stand_in->what_if->node;
    stand_in_prepare(stand_in);
    inquiry.roster = stand_in->roster;
    g_autofree struct victim *victims = g_new(struct victim, inquiry.roster->n + 1);
    inquiry.victims.all = victims;
    if (last)
        inquiry.last = hash_named(query, last);
    gather(query, candidate, &inquiry);
    if (inquiry.barred)
        return false;
    int64_t lacks[VICTIM_AMOUNTS_MAX];
    measure_lacks(query, node, inquiry.roster, lacks);
    struct wish wish = {query->admission, candidate->relief};
    const struct victims_query wanted = {
        .admits = finds_room,
        .data = &wish,
        .asked_host = query->request->host,
        .asked = query->facts,
        .lacks = knows_named(&inquiry) ? lacks : NULL,
        .allowed = query->allowed,
        .n_allowed = budgets_n(query->budgets),
        .spared = inquiry.spared,
        .n_spared = inquiry.n_spared,
        .one_card = !wish.relief && dialect_asks_one_card(node, query->request),
        .fickle = dialect_is_fickle(query->request),
    };
    const int64_t foreign = foreign_violations(query, &inquiry);
    query->admission.work->cut = false;
    if (!victims_choose(stand_in->what_if, inquiry.roster, &wanted, &inquiry.victims,
                        &answer.cost) ||
        query->admission.work->cut) /* nobody ends where not all was looked at */
        return false;
    answer.node.dearest = answer.cost.dearest;
    answer.cost.violations += foreign;
    write_victims(query, &inquiry, candidate->priorities, &answer.node);
    answer.node.violations = MIN(answer.cost.violations, (int64_t)answer.node.n_uids);
    if (last)
        compare_with_last(&inquiry, &answer);
    *ret_answer = answer;
    return true;
}
