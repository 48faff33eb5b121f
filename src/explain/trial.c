/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/trial.h"

#include "store/booking.h"

#include <gpuledger/ranking.h>

#include <string.h>

bool trial_knows(struct store *copy, const char *name)
{
    const struct node *node = ledger_node(store_lock(copy), name);
    const bool known = node && node->present;

    store_unlock(copy);
    return known;
}

/* Taints that say how a node is, which was copied, and not what it is. Sources: kubernetes/kubernetes 1.37.2,
 * staging/src/k8s.io/api/core/v1/well_known_taints.go; kubernetes/autoscaler, cluster-autoscaler/utils/taints. */
static const char *const state_taints[] = {
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "gpuledger.io/switching",
};

static bool is_of_state(const struct taint_view *taint)
{
    for (size_t i = 0; i < G_N_ELEMENTS(state_taints); i++) {
        if (g_str_has_prefix(taint->key, state_taints[i]))
            return true;
    }
    return false;
}

static struct taint_view *copy_taints(const struct node_view *kind, size_t *ret_n)
{
    struct taint_view *taints = g_new(struct taint_view, kind->n_taints + 1);

    *ret_n = 0;
    for (size_t i = 0; i < kind->n_taints; i++) {
        if (!is_of_state(&kind->taints[i]))
            taints[(*ret_n)++] = kind->taints[i];
    }
    return taints;
}

#define NAME_LABEL "kubernetes.io/hostname"

static struct string_pair *copy_labels(const struct string_pairs *labels, const char *name)
{
    struct string_pair *pairs = g_new(struct string_pair, labels->n + 1);

    for (size_t i = 0; i < labels->n; i++) {
        const bool names = g_str_equal(labels->items[i].key, NAME_LABEL);
        pairs[i] =
            (struct string_pair){labels->items[i].key, names ? name : labels->items[i].value};
    }
    return pairs;
}

/* Of extended resources a sound node has all for pods: what is missing is sick. */
static struct string_pair *copy_amounts(const struct node_view *kind)
{
    const struct string_pairs *amounts = &kind->allocatable;
    struct string_pair *pairs = g_new(struct string_pair, amounts->n + 1);

    for (size_t i = 0; i < amounts->n; i++) {
        const char *key = amounts->items[i].key, *all = string_pairs_get(&kind->capacity, key);
        pairs[i] =
            (struct string_pair){key, all && strchr(key, '/') ? all : amounts->items[i].value};
    }
    return pairs;
}

void trial_add_node(struct store *copy, const struct node_view *kind, const char *name)
{
    struct node_view view = *kind;
    g_autofree struct taint_view *taints = copy_taints(kind, &view.n_taints);
    g_autofree struct string_pair *labels = copy_labels(&kind->labels, name);
    g_autofree struct string_pair *amounts = copy_amounts(kind);

    view.name = name;
    view.as_new = true;
    view.cordoned = false;
    view.taints = taints;
    view.labels.items = labels;
    view.allocatable.items = amounts;
    store_apply_node(copy, &view);
}

const struct node *trial_choose(struct store *copy, const struct trial_pod *pod,
                               struct placement *ret_placement)
{
    const struct terms *terms = pod->request->terms;
    const GPtrArray *nodes = ledger_nodes(store_ledger(copy));
    g_autofree struct rank *ranks = g_new0(struct rank, nodes->len);
    const struct node *best = NULL;
    struct feasibility question;
    guint n = 0;

    feasibility_init(
        &question, copy,
        &(struct feasibility_about){GATE_BY_TRIAL, pod->view, pod->request, pod->moment});
    question.work.left = WORK_APART;
    const struct policy *policy = terms_rating(terms, question.admission.policy);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (pod->only && !g_hash_table_contains(pod->only, node->name))
            continue;
        if (!feasibility_takes(&question, node, ret_placement))
            continue;
        feasibility_rate(&question, policy, node, ret_placement, &ranks[n++]);
    }
    if (n > 0) {
        best = ledger_node(question.ledger, ranks[ranking_winner(policy, ranks, n)].name);
        feasibility_ask(&question, best, ret_placement);
    }
    if (pod->cut)
        *pod->cut |= question.work.cut;
    feasibility_clear(&question);
    return best;
}

bool trial_put(struct store *copy, const struct trial_pod *pod, const char *uid,
              const struct node *node, const struct placement *placement)
{
    struct ledger *ledger = store_ledger(copy);
    const struct booking_entry entry = {uid, pod->view->ns, pod->view->name, pod->moment};
    enum reason reason;
    const struct allocation *booked = booking_reserve(ledger, node, &entry, placement, &reason);

    if (!booked)
        return false;
    struct allocation *matched = allocation_dup(booked);
    matched->state = ALLOCATION_CONFIRMED;
    matched->waiting = false;
    matched->assigned = true;
    ledger_put(ledger, node->name, matched);
    return true;
}

const struct node *trial_settle(struct store *copy, const struct trial_pod *pod, const char *uid)
{
    struct placement placement;
    const struct node *home = trial_choose(copy, pod, &placement);

    return home && trial_put(copy, pod, uid, home, &placement) ? home : NULL;
}
