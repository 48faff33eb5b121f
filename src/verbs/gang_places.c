/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/gang_places.h"

#include "queue/pod_rules.h"
#include "store/booking.h"
#include "store/feasibility.h"

#include <gpuledger/ranking.h>

#include <stdlib.h>

/* What takes as long as some nodes that are asked about, in these. */
#define WORK_MEMBER 24      /* to make a place */
#define WORK_LIKE 4         /* to compare a pod with a kind */
#define VALUES_PER_NODE 128 /* values in constraints that are compared */
#define RANKS_PER_NODE 32   /* nodes that are looked through for the best */
#define SORTS_PER_NODE 2    /* nodes that are put in order */

/* Pods that any node takes alike. */
struct kind {
    const struct request *request;
    const struct constraints *constraints;
    int64_t priority, size;
    uint64_t values;    /* in the constraints, and in what else of them takes time */
    guint choice;       /* nodes that take such a pod while none of the group has a place */
    GPtrArray *nodes;   /* those that may take one more; borrowed */
    struct rank *ranks; /* of these, when they were first asked about */
    bool sorted;        /* the best is the last */
    size_t best;        /* of these; == nodes->len: it has to be looked for */
    struct feasibility question; /* of one pod of the kind after the other */
};

/* A member as it is asked about: the one that is asked about as filter was told, the others as the watch
 * has shown them. */
struct member {
    const char *uid;
    const struct pod_rules *rules; /* NULL: of the one that is asked about */
    const struct request *request;
    struct pod_view pod;
    struct kind *kind;
    size_t at; /* in the caller's list */
};

struct taking {
    const struct gang_places_query *query;
    struct kind kinds[GANG_KINDS_MAX + 1];
    size_t n_kinds;
    bool asked;                 /* one of them is of the pod that filter is asked about */
    uint64_t work;              /* done so far, in nodes that were asked about */
    struct placement placement; /* too large to be made for each node */
};

static bool find_member(const struct taking *taking, const char *uid, struct member *ret_member)
{
    const struct gang_places_query *query = taking->query;
    const bool asked = g_str_equal(uid, query->pod->uid);

    *ret_member = (struct member){
        .uid = uid,
        .rules = asked ? NULL : store_rules(query->store, uid),
        .request = asked ? query->request : store_pending(query->store, uid),
        .pod = {.uid = uid,
                .ns = query->pod->ns,
                .name = query->pod->name,
                .priority =
                    asked ? query->pod->priority : store_pending_priority(query->store, uid)},
    };
    if (!asked && ret_member->rules) {
        ret_member->pod.name = ret_member->rules->name;
        ret_member->pod.constraints = ret_member->rules->constraints;
    }
    /* Of whom it cannot be read where it may go there is no saying that it has a place. */
    return ret_member->request && !ledger_get(store_ledger(query->store), uid) &&
           (asked || (ret_member->rules && ret_member->rules->constraints));
}

static void add_node(struct kind *kind, const struct node *node)
{
    if (node && node->dialect)
        g_ptr_array_add(kind->nodes, (gpointer)node);
}

static uint64_t count_values(const struct constraints *constraints)
{
    uint64_t n = constraints ? constraints->selector.n + constraints->n_tolerations : 0;

    for (size_t i = 0; constraints && i < constraints->n_terms; i++) {
        for (size_t j = 0; j < constraints->terms[i].n; j++)
            n += 1 + constraints->terms[i].matches[j].n_values;
    }
    return n;
}

static void init_kind(const struct taking *taking, const struct member *member, struct kind *kind)
{
    const struct gang_places_query *query = taking->query;
    struct ledger *ledger = store_ledger(query->store);
    const GPtrArray *all = ledger_nodes(ledger);

    kind->request = member->request;
    kind->constraints = member->pod.constraints;
    kind->priority = member->pod.priority;
    kind->nodes = g_ptr_array_new();
    kind->values = member->rules ? count_values(kind->constraints) : 0;
    for (size_t i = 0; !member->rules && i < query->n_names; i++)
        add_node(kind, ledger_node(ledger, query->names[i]));
    for (guint i = 0; member->rules && i < all->len; i++)
        add_node(kind, all->pdata[i]);
    for (uint32_t i = 0; i < member->request->n_asks; i++) {
        const struct card_ask *ask = &member->request->asks[i];
        kind->size += ask->count * (ask->exclusive ? CORE_WHOLE : MAX(ask->core, 1));
    }
    feasibility_init(&kind->question, query->store,
                     &(struct feasibility_about){.pod = &member->pod,
                                                 .request = member->request,
                                                 .moment = query->moment,
                                                 .of_many = true});
}

static void kind_clear(struct kind *kind)
{
    feasibility_clear(&kind->question);
    g_ptr_array_unref(kind->nodes);
    g_free(kind->ranks);
}

static bool is_spent(const struct taking *taking)
{
    return taking->work > GANG_WORK_MAX;
}

static bool takes(struct taking *taking, const struct member *member, const struct node *node)
{
    struct feasibility *question = &member->kind->question;

    taking->work += 1 + member->kind->values / VALUES_PER_NODE;
    return member->rules ? feasibility_takes(question, node, &taking->placement)
                         : node->present &&
                               feasibility_ask(question, node, &taking->placement) == REASON_NONE;
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
static void sort_nodes(struct taking *taking, struct kind *kind)
{
    const guint n = kind->nodes->len;
    g_autofree struct ranked *all = g_new(struct ranked, n + 1);

    taking->work += n / SORTS_PER_NODE;
    for (guint i = 0; i < n; i++)
        all[i] = (struct ranked){kind->ranks[i], kind->nodes->pdata[i]};
    qsort(all, n, sizeof *all, worst_first);
    for (guint i = 0; i < n; i++) {
        kind->ranks[i] = all[i].rank;
        kind->nodes->pdata[i] = all[i].node;
    }
    kind->sorted = true;
}

/* Leaves the nodes that take such a pod, and what the policy thinks of them. */
static void rank_nodes(struct taking *taking, const struct member *member)
{
    struct kind *kind = member->kind;
    const struct feasibility *question = &kind->question;
    const struct policy *policy = terms_rating(member->request->terms, question->admission.policy);
    guint n = 0;

    kind->ranks = g_new(struct rank, kind->nodes->len + 1);
    for (guint i = 0; i < kind->nodes->len && !is_spent(taking); i++) {
        const struct node *node = kind->nodes->pdata[i];
        if (!takes(taking, member, node))
            continue;
        ranking_rate(policy, question->seen, &taking->placement, question->admission.demand,
                     &kind->ranks[n]);
        kind->ranks[n].waits = question->waits;
        kind->ranks[n].name = node->name;
        kind->nodes->pdata[n++] = (gpointer)node;
    }
    g_ptr_array_set_size(kind->nodes, (gint)n);
    kind->choice = n;
    kind->best = n;
    if (policy->slack == 0 && !is_spent(taking))
        sort_nodes(taking, kind);
}

/* The node that was found full for such pods is not asked about again. */
static void leave_out(struct kind *kind, size_t at)
{
    kind->ranks[at] = kind->ranks[kind->nodes->len - 1];
    g_ptr_array_remove_index_fast(kind->nodes, (guint)at);
    kind->best = kind->nodes->len;
}

static void find_best(struct taking *taking, const struct member *member)
{
    struct kind *kind = member->kind;
    const struct policy *policy =
        terms_rating(member->request->terms, kind->question.admission.policy);

    if (kind->best < kind->nodes->len) /* only who is left out changes that */
        return;
    if (kind->sorted) {
        kind->best = kind->nodes->len - 1;
        return;
    }
    taking->work += kind->nodes->len / RANKS_PER_NODE;
    kind->best = ranking_winner(policy, kind->ranks, kind->nodes->len);
}

static const struct node *choose(struct taking *taking, const struct member *member)
{
    struct kind *kind = member->kind;

    while (kind->nodes->len > 0 && !is_spent(taking)) {
        find_best(taking, member);
        const struct node *node = kind->nodes->pdata[kind->best];
        if (takes(taking, member, node))
            return node;
        leave_out(kind, kind->best);
    }
    return NULL;
}

static bool is_like(struct taking *taking, const struct member *member, const struct kind *kind)
{
    taking->work += WORK_LIKE;
    if (!kind->constraints || kind->priority != member->pod.priority ||
        !request_equal(kind->request, member->request))
        return false;
    taking->work += kind->values / VALUES_PER_NODE;
    return constraints_equal(kind->constraints, member->pod.constraints);
}

/* Sets the member's kind. False: there are too many. */
static bool find_kind(struct taking *taking, struct member *member)
{
    const bool asked = member->rules == NULL;

    for (size_t i = 0; !asked && i < taking->n_kinds; i++) {
        member->kind = &taking->kinds[i];
        if (is_like(taking, member, member->kind))
            return true;
    }
    taking->asked |= asked; /* a kind of its own, beside those that count */
    if (taking->n_kinds >= GANG_KINDS_MAX + (size_t)taking->asked)
        return false;
    member->kind = &taking->kinds[taking->n_kinds++];
    init_kind(taking, member, member->kind);
    rank_nodes(taking, member);
    return true;
}

/* Who has the fewest nodes to choose from comes first, then who asks for most. */
static gint compare_members(gconstpointer a, gconstpointer b)
{
    const struct member *left = a, *right = b;

    if (left->kind->choice != right->kind->choice)
        return left->kind->choice < right->kind->choice ? -1 : 1;
    if (left->kind->size != right->kind->size)
        return left->kind->size > right->kind->size ? -1 : 1;
    return left->at < right->at ? -1 : left->at > right->at;
}

static GArray *list_members(struct taking *taking, const char *const *uids, size_t n)
{
    GArray *members = g_array_new(FALSE, FALSE, sizeof(struct member));

    for (size_t i = 0; i < n && !is_spent(taking); i++) {
        struct member member;
        if (!find_member(taking, uids[i], &member) || !find_kind(taking, &member))
            continue;
        member.at = i;
        g_array_append_val(members, member);
    }
    g_array_sort(members, compare_members);
    return members;
}

static bool take_one(struct taking *taking, const struct member *member)
{
    const struct gang_places_query *query = taking->query;

    taking->work += WORK_MEMBER;
    feasibility_go_on(&member->kind->question, query->store, &member->pod);
    const struct node *node = choose(taking, member);
    if (!node)
        return false;
    struct allocation *held = booking_hold(
        store_ledger(query->store), node,
        &(struct booking_entry){member->uid, member->pod.ns, member->pod.name, query->moment},
        &taking->placement);
    for (size_t i = 0; held && i < taking->n_kinds; i++)
        feasibility_note_taken(&taking->kinds[i].question, held);
    return held != NULL;
}

uint64_t gang_places_take(void *data, const char *const *uids, size_t n, bool *ret_taken)
{
    struct taking *taking = g_new0(struct taking, 1);

    taking->query = data;
    g_autoptr(GArray) members = list_members(taking, uids, n);
    for (guint i = 0; i < members->len && !is_spent(taking); i++) {
        const struct member *member = &g_array_index(members, struct member, i);
        ret_taken[member->at] = take_one(taking, member);
    }
    for (size_t i = 0; i < taking->n_kinds; i++)
        kind_clear(&taking->kinds[i]);
    const uint64_t work = taking->work;
    g_free(taking);
    return work;
}
