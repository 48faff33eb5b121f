/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/gang/gang_places.h"

#include "queue/pod_rules.h"
#include "store/booking.h"
#include "verbs/gang/gang_kinds.h"

#include <gpuledger/ranking.h>

#include <stdlib.h>

/* What takes as long as some nodes that are asked about, in these. */
#define WORK_MEMBER 24      /* to make a place */
#define RANKS_PER_NODE 32   /* nodes that are looked through for the best */
#define SORTS_PER_NODE 2    /* nodes that are put in order */
#define REFUSALS_PER_NODE 4 /* nodes that do not take a pod */

/* Where pods of a kind may go. */
struct choice {
    guint n;            /* nodes that take such a pod while none of the group has a place */
    GPtrArray *nodes;   /* those that may take one more; borrowed */
    struct rank *ranks; /* of these, when they were first asked about */
    bool sorted;        /* the best is the last */
    size_t best;        /* of these; == nodes->len: it has to be looked for */
};

struct taking {
    struct gang_places_query *query;
    GHashTable *served; /* node -> pods of the group that it got, one after the other */
    struct gang_kinds kinds;
    struct choice choices[GANG_KINDS_MAX + 1];
    guint enough;               /* nodes for a kind, of which more are not looked for; 0: all are */
    guint refused;              /* nodes that did not take a pod and are not counted as work yet */
    struct placement placement; /* too large to be made for each node */
};

static struct choice *choice_of(const struct gang_member_view *member)
{
    return member->kind->own;
}

static void add_node(struct choice *choice, const struct node *node)
{
    if (node && node->dialect)
        g_ptr_array_add(choice->nodes, (gpointer)node);
}

/* All that a pod of the kind is asked about. */
static void list_nodes(const struct gang_places_query *query, bool asked, struct choice *choice)
{
    struct ledger *ledger = store_ledger(query->store);
    const GPtrArray *all = ledger_nodes(ledger);

    choice->nodes = g_ptr_array_new();
    for (size_t i = 0; asked && i < query->n_names; i++)
        add_node(choice, ledger_node(ledger, query->names[i]));
    for (guint i = 0; !asked && i < all->len; i++)
        add_node(choice, all->pdata[i]);
}

static bool is_spent(const struct taking *taking)
{
    return gang_kinds_are_spent(&taking->kinds);
}

static bool takes(struct taking *taking, const struct gang_member_view *member,
                  const struct node *node)
{
    struct feasibility *question = &member->kind->question;
    const bool taken =
        member->rules
            ? feasibility_takes(question, node, &taking->placement)
            : node->present && feasibility_ask(question, node, &taking->placement) == REASON_NONE;

    taking->refused += !taken;
    taking->kinds.work += member->kind->values / VALUES_PER_NODE + taken;
    if (taking->refused == REFUSALS_PER_NODE) {
        taking->kinds.work++;
        taking->refused = 0;
    }
    return taken;
}

struct ranked {
    struct rank rank;
    gpointer node;
};

static int worst_first(const void *a, const void *b)
{
    return ranking_compare(&((const struct ranked *)b)->rank, &((const struct ranked *)a)->rank);
}

/* Without a slack, who is left out changes nothing between the others. */
static void sort_nodes(struct taking *taking, struct choice *choice)
{
    const guint n = choice->nodes->len;
    g_autofree struct ranked *all = g_new(struct ranked, n + 1);

    taking->kinds.work += n / SORTS_PER_NODE;
    for (guint i = 0; i < n; i++)
        all[i] = (struct ranked){choice->ranks[i], choice->nodes->pdata[i]};
    qsort(all, n, sizeof *all, worst_first);
    for (guint i = 0; i < n; i++) {
        choice->ranks[i] = all[i].rank;
        choice->nodes->pdata[i] = all[i].node;
    }
    choice->sorted = true;
}

/* Leaves the nodes that take such a pod, and what the policy thinks of them. */
static void rank_nodes(struct taking *taking, const struct gang_member_view *member)
{
    struct choice *choice = choice_of(member);
    const struct feasibility *question = &member->kind->question;
    const struct policy *policy = terms_rating(member->request->terms, question->admission.policy);
    guint n = 0;

    choice->ranks = g_new(struct rank, choice->nodes->len + 1);
    for (guint i = 0; i < choice->nodes->len && !is_spent(taking); i++) {
        const struct node *node = choice->nodes->pdata[i];
        if (taking->enough > 0 && n == taking->enough)
            break;
        if (!takes(taking, member, node))
            continue;
        feasibility_rate(question, policy, node, &taking->placement, &choice->ranks[n]);
        choice->nodes->pdata[n++] = (gpointer)node;
    }
    g_ptr_array_set_size(choice->nodes, (gint)n);
    choice->n = n;
    choice->best = n;
    if (policy->slack == 0 && !is_spent(taking))
        sort_nodes(taking, choice);
}

/* Its device plugin would serve the last of them after the deadline. */
static bool is_late(const struct taking *taking, const struct gang_member_view *member,
                    const struct node *node)
{
    const guint before = GPOINTER_TO_UINT(g_hash_table_lookup(taking->served, node));

    return taking->query->timeout_ms > 0 && member->request->dialect->in_flight &&
           (before + 1) * (int64_t)GANG_TAKE_MS > taking->query->timeout_ms;
}

/* The node that was found full for such pods is not asked about again. */
static void leave_out(struct choice *choice, size_t at)
{
    choice->ranks[at] = choice->ranks[choice->nodes->len - 1];
    g_ptr_array_remove_index_fast(choice->nodes, (guint)at);
    choice->best = choice->nodes->len;
}

static void find_best(struct taking *taking, const struct gang_member_view *member)
{
    struct choice *choice = choice_of(member);
    const struct policy *policy =
        terms_rating(member->request->terms, member->kind->question.admission.policy);

    if (choice->best < choice->nodes->len) /* only who is left out changes that */
        return;
    if (choice->sorted) {
        choice->best = choice->nodes->len - 1;
        return;
    }
    taking->kinds.work += choice->nodes->len / RANKS_PER_NODE;
    choice->best = ranking_winner(policy, choice->ranks, choice->nodes->len);
}

static const struct node *choose(struct taking *taking, const struct gang_member_view *member)
{
    struct choice *choice = choice_of(member);

    while (choice->nodes->len > 0 && !is_spent(taking)) {
        find_best(taking, member);
        const struct node *node = choice->nodes->pdata[choice->best];
        const bool taken = takes(taking, member, node), late = is_late(taking, member, node);
        if (taken && !late)
            return node;
        taking->query->late |= taken;
        leave_out(choice, choice->best);
    }
    return NULL;
}

/* Who has the fewest nodes to choose from comes first, then who asks for most. */
static gint compare_members(gconstpointer a, gconstpointer b)
{
    const struct gang_member_view *left = a, *right = b;
    const guint n = choice_of(left)->n, its = choice_of(right)->n;

    if (n != its)
        return n < its ? -1 : 1;
    if (left->kind->size != right->kind->size)
        return left->kind->size > right->kind->size ? -1 : 1;
    return left->at < right->at ? -1 : left->at > right->at;
}

/* To look at all nodes of each kind, and to make all places, if all nodes take such pods. */
static uint64_t foresee(const struct taking *taking)
{
    uint64_t work = taking->kinds.work;

    for (size_t i = 0; i < taking->kinds.n; i++) {
        const struct gang_kind *kind = &taking->kinds.all[i];
        const struct choice *choice = kind->own;
        const struct policy *policy =
            terms_rating(kind->request->terms, kind->question.admission.policy);
        const uint64_t n = choice->nodes->len;
        work += n * (1 + kind->values / VALUES_PER_NODE);
        work += policy->slack == 0 ? n / SORTS_PER_NODE : kind->n * (n / RANKS_PER_NODE);
        work += kind->n * (WORK_MEMBER + 1 + kind->values / VALUES_PER_NODE);
    }
    return work;
}

/* Where to look at all nodes would take too long, as many are enough for each kind as there are pods:
 * each of the others takes one of these nodes away at most. */
static GArray *list_members(struct taking *taking, const char *const *uids, size_t n)
{
    GArray *members = gang_kinds_sort(&taking->kinds, uids, n);

    for (guint i = 0; i < members->len; i++) {
        const struct gang_member_view *member = &g_array_index(members, struct gang_member_view, i);
        if (member->kind->own)
            continue;
        member->kind->own = &taking->choices[member->kind - taking->kinds.all];
        list_nodes(taking->query, member->rules == NULL, member->kind->own);
    }
    if (foresee(taking) > GANG_WORK_MAX)
        taking->enough = members->len;
    for (guint i = 0; i < members->len; i++) {
        const struct gang_member_view *member = &g_array_index(members, struct gang_member_view, i);
        if (!choice_of(member)->ranks)
            rank_nodes(taking, member);
    }
    g_array_sort(members, compare_members);
    return members;
}

static bool take_one(struct taking *taking, const struct gang_member_view *member)
{
    const struct gang_places_query *query = taking->query;

    taking->kinds.work += WORK_MEMBER;
    feasibility_go_on(&member->kind->question, query->store, &member->pod);
    const struct node *node = choose(taking, member);
    if (!node)
        return false;
    struct allocation *held = booking_hold(
        store_ledger(query->store), node,
        &(struct booking_entry){member->uid, member->pod.ns, member->pod.name, query->moment},
        &taking->placement);
    if (held)
        g_hash_table_insert(
            taking->served, (gpointer)node,
            GUINT_TO_POINTER(GPOINTER_TO_UINT(g_hash_table_lookup(taking->served, node)) + 1));
    for (size_t i = 0; held && i < taking->kinds.n; i++)
        feasibility_note_taken(&taking->kinds.all[i].question, held);
    return held != NULL;
}

static void clear(struct taking *taking)
{
    for (size_t i = 0; i < taking->kinds.n; i++) {
        struct choice *choice = taking->kinds.all[i].own;
        if (!choice)
            continue;
        g_ptr_array_unref(choice->nodes);
        g_free(choice->ranks);
    }
    gang_kinds_clear(&taking->kinds);
    g_hash_table_unref(taking->served);
}

uint64_t gang_places_take(void *data, const char *const *uids, size_t n, bool *ret_taken)
{
    struct taking *taking = g_new0(struct taking, 1);

    taking->query = data;
    taking->kinds.query = data;
    taking->served = g_hash_table_new(NULL, NULL);
    g_autoptr(GArray) members = list_members(taking, uids, n);
    for (guint i = 0; i < members->len && !is_spent(taking); i++) {
        const struct gang_member_view *member = &g_array_index(members, struct gang_member_view, i);
        ret_taken[member->at] = take_one(taking, member);
    }
    clear(taking);
    const uint64_t work = taking->kinds.work;
    g_free(taking);
    return work;
}
