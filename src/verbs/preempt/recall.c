/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What preempt has named last for the pod. Where a node of that answer takes the pod once those have ended
 * whom it named there, or who are being deleted anyway, nobody else is to end for the pod.
 *
 * kube-scheduler offers a node only while somebody has to end there in its own eyes. A node of the last
 * answer that it offers no longer it takes for cleared, though the watch may not have said so here yet; then
 * the answer is no node, which leaves the pod's nomination as it is. (A node with nobody to end would be
 * an error.) If it offers the node again, the same pods are named again: it may not have got the
 * answer, or the API server may have refused.
 */
#include "verbs/preempt/preempt_state.h"

/* Those that count: the pod's node, if it has one. */
static void choose_nodes(struct recall *recall, const char *nominated)
{
    const struct clearing *clearing = recall->clearing;

    recall->nodes = clearing->nodes;
    recall->n_nodes = clearing->n_nodes;
    for (size_t i = 0; nominated && i < clearing->n_nodes; i++) {
        if (g_str_equal(clearing->nodes[i].name, nominated)) {
            recall->nodes = &clearing->nodes[i];
            recall->n_nodes = 1;
        }
    }
}

static void pair_nodes(struct recall *recall, const struct preempt *preempt)
{
    const struct preemption_args *args = &preempt->args;
    g_autoptr(GHashTable) places = g_hash_table_new(g_str_hash, g_str_equal);

    recall->offered =
        json_arena_alloc(preempt->arena, (args->n_nodes + 1) * sizeof(struct preemption_node *));
    recall->absent =
        json_arena_alloc(preempt->arena, recall->n_nodes * sizeof(struct preemption_node *));
    for (size_t i = 0; i < args->n_nodes; i++)
        g_hash_table_insert(places, (gpointer)(uintptr_t)args->nodes[i].name, &recall->offered[i]);
    for (size_t i = 0; i < recall->n_nodes; i++) {
        const struct preemption_node **place = g_hash_table_lookup(places, recall->nodes[i].name);
        if (place)
            *place = &recall->nodes[i];
        else
            recall->absent[recall->n_absent++] = &recall->nodes[i];
    }
    recall->candidates =
        json_arena_alloc(preempt->arena, recall->n_absent * sizeof *recall->candidates);
}

void recall_find(struct preempt *preempt)
{
    struct store *store = preempt->call.extender->store;
    struct recall *recall = &preempt->recall;

    store_lock(store);
    struct clearing *known = clearings_get(store_clearings(store), preempt->args.pod.uid);
    if (known) {
        recall->clearing = clearing_ref(known);
        recall->since_ms = known->since_ms;
    }
    store_unlock(store);
    if (!known)
        return;
    choose_nodes(recall, preempt->args.pod.nominated_node);
    pair_nodes(recall, preempt);
}

void recall_check(struct preempt *preempt)
{
    struct recall *recall = &preempt->recall;

    if (recall->clearing && clearing_is_over(recall->since_ms, preempt->call.moment.now_ms))
        recall_clear(preempt);
}

void recall_clear(struct preempt *preempt)
{
    g_clear_pointer(&preempt->recall.clearing, clearing_unref);
    preempt->recall = (struct recall){0};
}

/* A node that is not offered any more takes the pod all the same. */
static bool is_awaited(const struct preempt *preempt)
{
    const struct recall *recall = &preempt->recall;
    struct preempt_answer answer;

    for (size_t i = 0; i < recall->n_absent; i++) {
        const struct preemption_node on = {.name = recall->absent[i]->name};
        if (preempt_search(&preempt->query, &recall->candidates[i], &on, recall->absent[i],
                           &answer))
            return true;
    }
    return false;
}

/* Where some of those who were named have ended already, or are about to, kube-scheduler has begun: the other
 * nodes are left out. */
bool recall_answer(const struct preempt *preempt, struct preemption_node *answers, size_t *ret_n)
{
    const struct recall *recall = &preempt->recall;
    bool stands = is_awaited(preempt), begun = stands, nobody = stands;
    size_t n = 0;

    for (size_t i = 0; recall->clearing && !nobody && i < preempt->args.n_nodes; i++) {
        const struct preemption_node *last = recall->offered[i];
        struct preempt_answer answer;
        if (!last ||
            !preempt_search(&preempt->query, &preempt->candidates[i], &preempt->args.nodes[i], last,
                            &answer) ||
            answer.beyond)
            continue;
        const bool begins = answer.n_last < last->n_uids;
        if (begins && !begun)
            n = 0;
        stands = true;
        begun |= begins;
        nobody |= answer.node.n_uids == 0;
        if (begins || !begun)
            answers[n++] = answer.node;
    }
    *ret_n = nobody ? 0 : n;
    return stands;
}

GString *recall_text(const struct preempt *preempt)
{
    const struct recall *recall = &preempt->recall;
    struct json_writer writer;

    if (!recall->clearing || preempt->call.moment.number == 0)
        return NULL;
    GString *text = g_string_new(NULL);
    json_writer_init(&writer, text);
    clearing_encode(&writer, recall->clearing, recall->nodes, recall->n_nodes);
    return text;
}

void recall_keep(struct preempt *preempt)
{
    struct clearings *clearings = store_clearings(preempt->call.extender->store);

    if (preempt->recalled) {
        struct clearing *known = clearings_get(clearings, preempt->args.pod.uid);
        if (known == preempt->recall.clearing && known->since_ms == 0)
            known->since_ms = preempt->call.moment.now_ms;
    } else if (preempt->answered) {
        clearings_put(clearings, g_steal_pointer(&preempt->answered));
    }
}
