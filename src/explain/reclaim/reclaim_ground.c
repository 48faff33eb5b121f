/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster as it will be, when those have ended that end already, and those have come that have claims. */
#include "explain/reclaim/reclaim_ground.h"

#include "queue/pod_rules.h"
#include "queue/reservation.h"

/* What was changed for the last question. */
struct change {
    struct allocation *dropped; /* a copy; NULL: a pod was put */
    char *node, *uid;
};

static void clear_change(gpointer data)
{
    struct change *change = data;

    allocation_free(change->dropped);
    g_free(change->node);
    g_free(change->uid);
}

void reclaim_ground_free(struct reclaim_ground *ground)
{
    if (!ground)
        return;
    store_free(ground->copy);
    budgets_free(ground->budgets);
    g_hash_table_unref(ground->going);
    g_array_unref(ground->changes);
    g_free(ground);
}

struct elastic_quotas *reclaim_ground_quotas(const struct reclaim_ground *ground)
{
    return quotas_elastic(store_quotas(ground->copy));
}

/* For the pod's account and all above it. */
static void add_going(struct reclaim_ground *ground, const struct pod_view *pod,
                      const int64_t *amounts, int sign)
{
    const struct elastic_account *at = elastic_quotas_account(reclaim_ground_quotas(ground), pod);

    for (; at; at = elastic_account_parent(at)) {
        amount_sum *sums = g_hash_table_lookup(ground->going, at);
        if (!sums) {
            sums = g_new0(amount_sum, ELASTIC_KEYS_MAX);
            g_hash_table_insert(ground->going, (gpointer)at, sums);
        }
        for (int key = 0; key < ELASTIC_KEYS_MAX; key++)
            sums[key] += sign * amounts[key];
    }
}

struct pod_view reclaim_view(const struct allocation *allocation)
{
    return (struct pod_view){.uid = allocation->uid, .ns = allocation->ns};
}

static void count_going(struct reclaim_ground *ground, const struct allocation *allocation,
                        int sign)
{
    const struct pod_view pod = reclaim_view(allocation);
    int64_t amounts[ELASTIC_KEYS_MAX];

    elastic_quotas_measure(reclaim_ground_quotas(ground), allocation, amounts);
    add_going(ground, &pod, amounts, sign);
}

void reclaim_ground_drop(struct reclaim_ground *ground, struct allocation *allocation)
{
    const struct change change = {allocation_dup(allocation), g_strdup(allocation->node->name),
                                  NULL};

    count_going(ground, allocation, 1);
    ledger_drop(store_ledger(ground->copy), change.dropped->uid);
    g_array_append_val(ground->changes, change);
}

bool reclaim_ground_put(struct reclaim_ground *ground, const struct trial_pod *pod,
                        const struct node *node, const struct placement *placement)
{
    g_autofree char *uid =
        pod->view->uid ? g_strdup(pod->view->uid) : g_strdup_printf("reclaim-%u", ground->number++);
    const struct change change = {NULL, NULL, uid};

    if (!trial_put(ground->copy, pod, uid, node, placement))
        return false;
    uid = NULL;
    g_array_append_val(ground->changes, change);
    return true;
}

void reclaim_ground_undo(struct reclaim_ground *ground, guint n)
{
    struct ledger *ledger = store_ledger(ground->copy);

    while (ground->changes->len > n) {
        struct change *change =
            &g_array_index(ground->changes, struct change, ground->changes->len - 1);
        if (change->dropped) {
            const struct allocation *back =
                ledger_put(ledger, change->node, g_steal_pointer(&change->dropped));
            count_going(ground, back, -1);
        } else {
            ledger_drop(ledger, change->uid);
        }
        g_array_set_size(ground->changes, (gint)ground->changes->len - 1);
    }
}

struct claim_place {
    const char *node;
    const struct room_claim *claim;
};

struct claims {
    GArray *places; /* struct claim_place */
    int64_t now_ns;
};

static void add_claim(const char *node, const struct room_claim *claim, void *data)
{
    const struct claims *claims = data;
    const struct claim_place place = {node, claim};

    if (claim_counts(claim, claims->now_ns))
        g_array_append_val(claims->places, place);
}

bool reclaim_ground_pod(const struct reclaim_ground *ground, const char *uid,
                        struct pod_view *ret_view, struct reclaim_pod *ret_pod)
{
    const struct pod_rules *rules = store_rules(ground->copy, uid);
    const struct request *request = store_pending(ground->copy, uid);

    if (!rules || !rules->constraints || !request || ledger_get(store_ledger(ground->copy), uid))
        return false;
    *ret_view = (struct pod_view){
        .uid = uid,
        .ns = rules->ns,
        .name = rules->name,
        .priority = store_pending_priority(ground->copy, uid),
        .constraints = rules->constraints,
    };
    *ret_pod = (struct reclaim_pod){ret_view, request};
    return true;
}

/* Under the copy's lock: the pod has the room that is made for it; at least it counts for its namespace. */
static void settle_claim(struct reclaim_ground *ground, const struct claim_place *place)
{
    const struct moment *moment = &ground->moment;
    struct pod_view view;
    struct reclaim_pod pod;
    struct feasibility question;
    struct placement placement;

    for (char **uid = place->claim->ends; *uid; uid++) {
        struct allocation *ending = ledger_get(store_ledger(ground->copy), *uid);
        if (ending)
            reclaim_ground_drop(ground, ending);
    }
    if (!reclaim_ground_pod(ground, place->claim->uid, &view, &pod))
        return;
    feasibility_init(
        &question, ground->copy,
        &(struct feasibility_about){GATE_BY_RECLAIM, &view, pod.request, moment, WITHOUT_ORDER});
    const struct node *node = ledger_node(store_ledger(ground->copy), place->node);
    const bool takes = node && feasibility_takes(&question, node, &placement);
    if (takes)
        card_place_on(node, place->claim->card, &placement);
    feasibility_clear(&question);
    if (takes && reclaim_ground_put(ground, &(struct trial_pod){&view, pod.request, moment}, node,
                                    &placement))
        return;
    const struct request *asks = node ? reservation_read_for(node, pod.request) : NULL;
    int64_t amounts[ELASTIC_KEYS_MAX];
    if (!asks)
        return;
    elastic_quotas_foresee(reclaim_ground_quotas(ground), node, asks, amounts);
    add_going(ground, &view, amounts, 1);
}

/* Under the copy's lock. */
static void drop_terminating(struct reclaim_ground *ground)
{
    const GPtrArray *nodes = ledger_nodes(store_ledger(ground->copy));

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        for (guint j = node->allocations->len; j-- > 0;) {
            struct allocation *one = node->allocations->pdata[j];
            if (one->terminating)
                reclaim_ground_drop(ground, one);
        }
    }
}

struct reclaim_ground *
reclaim_ground_new(struct store *store,
                   bool (*stays)(const struct allocation *allocation, void *data), void *data)
{
    struct reclaim_ground *ground = g_new0(struct reclaim_ground, 1);
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(struct claim_place));

    ground->stays = stays;
    ground->data = data;
    ground->going = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    ground->changes = g_array_new(FALSE, FALSE, sizeof(struct change));
    g_array_set_clear_func(ground->changes, clear_change);
    store_decide(store, &ground->moment);
    ground->budgets = budgets_copy(store_budgets(store));
    store_unlock(store);
    ground->copy = store_copy(store);
    store_lock(ground->copy);
    drop_terminating(ground);
    nominations_each_claim(store_nominations(ground->copy), add_claim,
                           &(struct claims){places, ground->moment.now_ns});
    for (guint i = 0; i < places->len; i++)
        settle_claim(ground, &g_array_index(places, struct claim_place, i));
    store_unlock(ground->copy);
    return ground;
}
