/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/trial.h"

#include "store/booking.h"

#include <gpuledger/ranking.h>

bool trial_knows(struct store *copy, const char *name)
{
    const struct node *node = ledger_node(store_lock(copy), name);
    const bool known = node && node->present;

    store_unlock(copy);
    return known;
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

    feasibility_init(&question, copy,
                     &(struct feasibility_about){pod->view, pod->request, pod->moment});
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
