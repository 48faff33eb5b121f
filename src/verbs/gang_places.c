/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/gang_places.h"

#include "queue/pod_rules.h"
#include "store/booking.h"
#include "store/feasibility.h"

#include <gpuledger/ranking.h>

/* Pods that any node takes alike. */
struct kind {
    const struct request *request;
    const struct constraints *constraints;
    int64_t priority, size;
    guint choice;       /* nodes that take such a pod while none of the group has a place */
    GPtrArray *nodes;   /* those that may take one more; borrowed */
    struct rank *ranks; /* of these, when they were first asked about */
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
    struct kind kinds[GANG_KINDS_MAX];
    size_t n_kinds;
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

static struct kind make_kind(const struct taking *taking, const struct member *member)
{
    const struct gang_places_query *query = taking->query;
    struct ledger *ledger = store_ledger(query->store);
    struct kind kind = {.request = member->request,
                        .constraints = member->pod.constraints,
                        .priority = member->pod.priority,
                        .nodes = g_ptr_array_new()};
    const GPtrArray *all = ledger_nodes(ledger);

    for (size_t i = 0; !member->rules && i < query->n_names; i++)
        add_node(&kind, ledger_node(ledger, query->names[i]));
    for (guint i = 0; member->rules && i < all->len; i++)
        add_node(&kind, all->pdata[i]);
    for (uint32_t i = 0; i < member->request->n_asks; i++) {
        const struct card_ask *ask = &member->request->asks[i];
        kind.size += ask->count * (ask->exclusive ? CORE_WHOLE : MAX(ask->core, 1));
    }
    return kind;
}

static void kind_clear(struct kind *kind)
{
    g_ptr_array_unref(kind->nodes);
    g_free(kind->ranks);
}

static bool takes(struct feasibility *question, const struct member *member,
                  const struct node *node, struct placement *ret_placement)
{
    return member->rules
               ? feasibility_takes(question, node, ret_placement)
               : node->present && feasibility_ask(question, node, ret_placement) == REASON_NONE;
}

/* Leaves the nodes that take such a pod, and what the policy thinks of them. */
static void rank_nodes(struct taking *taking, struct kind *kind, struct feasibility *question,
                       const struct member *member)
{
    const struct policy *policy = terms_rating(member->request->terms, question->admission.policy);
    guint n = 0;

    kind->ranks = g_new(struct rank, kind->nodes->len + 1);
    for (guint i = 0; i < kind->nodes->len; i++) {
        const struct node *node = kind->nodes->pdata[i];
        if (!takes(question, member, node, &taking->placement))
            continue;
        ranking_rate(policy, question->seen, &taking->placement, question->admission.demand,
                     &kind->ranks[n]);
        kind->ranks[n].waits = question->waits;
        kind->ranks[n].name = node->name;
        kind->nodes->pdata[n++] = (gpointer)node;
    }
    g_ptr_array_set_size(kind->nodes, (gint)n);
    kind->choice = n;
}

/* The node that was found full for such pods is not asked about again. */
static void leave_out(struct kind *kind, size_t at)
{
    kind->ranks[at] = kind->ranks[kind->nodes->len - 1];
    g_ptr_array_remove_index_fast(kind->nodes, (guint)at);
}

static const struct node *choose(struct taking *taking, struct feasibility *question,
                                 const struct member *member)
{
    struct kind *kind = member->kind;
    const struct policy *policy = terms_rating(member->request->terms, question->admission.policy);

    while (kind->nodes->len > 0) {
        const size_t best = ranking_winner(policy, kind->ranks, kind->nodes->len);
        const struct node *node = kind->nodes->pdata[best];
        if (takes(question, member, node, &taking->placement))
            return node;
        leave_out(kind, best);
    }
    return NULL;
}

/* NULL: there are too many. */
static struct kind *find_kind(struct taking *taking, const struct member *member)
{
    for (size_t i = 0; member->rules && i < taking->n_kinds; i++) {
        struct kind *kind = &taking->kinds[i];
        if (kind->constraints && kind->priority == member->pod.priority &&
            request_equal(kind->request, member->request) &&
            constraints_equal(kind->constraints, member->pod.constraints))
            return kind;
    }
    if (taking->n_kinds == GANG_KINDS_MAX)
        return NULL;
    struct kind *kind = &taking->kinds[taking->n_kinds++];
    struct feasibility question;
    *kind = make_kind(taking, member);
    feasibility_init(
        &question, taking->query->store,
        &(struct feasibility_about){&member->pod, member->request, taking->query->moment});
    rank_nodes(taking, kind, &question, member);
    feasibility_clear(&question);
    return kind;
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

    for (size_t i = 0; i < n; i++) {
        struct member member;
        if (!find_member(taking, uids[i], &member) || !(member.kind = find_kind(taking, &member)))
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
    struct feasibility question;
    const struct allocation *held = NULL;

    feasibility_init(&question, query->store,
                     &(struct feasibility_about){&member->pod, member->request, query->moment});
    const struct node *node = choose(taking, &question, member);
    feasibility_clear(&question);
    if (node)
        held = booking_hold(
            store_ledger(query->store), node,
            &(struct booking_entry){member->uid, member->pod.ns, member->pod.name, query->moment},
            &taking->placement);
    return held != NULL;
}

void gang_places_take(void *data, const char *const *uids, size_t n, bool *ret_taken)
{
    struct taking *taking = g_new0(struct taking, 1);

    taking->query = data;
    g_autoptr(GArray) members = list_members(taking, uids, n);
    for (guint i = 0; i < members->len; i++) {
        const struct member *member = &g_array_index(members, struct member, i);
        ret_taken[member->at] = take_one(taking, member);
    }
    for (size_t i = 0; i < taking->n_kinds; i++)
        kind_clear(&taking->kinds[i]);
    g_free(taking);
}
