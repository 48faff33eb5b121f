/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/explain.h"

#include "base/printable.h"
#include "explain/trial.h"
#include "explain/messages/messages.h"
#include "gate/idle_pods/idle_pods.h"
#include "wire/constraints.h"

#include <gpuledger/error.h>
#include <string.h>

/* --- memory --------------------------------------------------------------------------------- */

static void clear_card(gpointer data)
{
    struct explained_card *card = data;

    g_free(card->why);
    g_ptr_array_unref(card->pods);
}

static void clear_node(gpointer data)
{
    struct explained_node *node = data;

    g_free(node->name);
    g_free(node->why);
    g_clear_pointer(&node->cards, g_array_unref);
}

void explanation_free(struct explanation *explanation)
{
    if (!explanation)
        return;
    g_free(explanation->ns);
    g_free(explanation->name);
    g_free(explanation->asks);
    g_free(explanation->dialects);
    g_free(explanation->failure);
    g_free(explanation->held_back);
    g_free(explanation->place.node);
    g_free(explanation->place.cards);
    g_free(explanation->place.state);
    g_clear_pointer(&explanation->place.neighbours, g_ptr_array_unref);
    g_array_unref(explanation->nodes);
    g_array_unref(explanation->groups);
    remedies_free(explanation->remedies);
    preview_free(explanation->preview);
    class_told_free(explanation->work_class);
    quota_told_free(explanation->quota);
    reclaim_preview_free(explanation->reclaim);
    group_place_free(explanation->group);
    g_free(explanation);
}

/* --- nodes and cards ------------------------------------------------------------------------ */

/* What keeps the card from being taken, as an amount; cards compare by it. */
static int64_t lack_of(const struct node *node, const struct card_ask *ask,
                       const struct card *card, enum reason reason)
{
    switch ((int)reason) {
    case REASON_CARD_TOO_SMALL:
        return card_bytes(node, card, ask->memory) - card->memory;
    case REASON_INSUFFICIENT_MEMORY:
        return MAX(card_bytes(node, card, ask->memory) - card_memory_free(node, card), 0);
    case REASON_INSUFFICIENT_CORE:
        return card_core_told(
            card, MAX(card_core(card, ask->core) - card_core_free(node, card), 0));
    default:
        return 0;
    }
}

/* The card that has to tell why the node refuses: one that fails for the same reason, and lacks
 * least. */
static const struct card *closest_card(const struct node *node, const struct request *request,
                                       const struct card_ask *ask, enum reason reason,
                                       int64_t *ret_lack)
{
    const struct card *closest = NULL;

    for (int32_t i = 0; i < node->n_cards && !ask->device; i++) {
        const struct card *card = &node->cards[i];
        if (placement_card_reason(node, request, ask, card) != reason)
            continue;
        const int64_t lack = lack_of(node, ask, card, reason);
        if (!closest || lack < *ret_lack) {
            closest = card;
            *ret_lack = lack;
        }
    }
    return closest;
}

/* Of a node that would take the pod alone, what keeps its group back decides, as in filter. */
static void ask_one(const struct group_place *group, struct feasibility *question,
                    const struct node *node, struct explained_node *ret_node)
{
    const struct request *request = reading_in_message(node, question->admission.request);
    const enum barrier barrier = feasibility_barrier(question, node);
    g_autofree char *outside = feasibility_tell_barrier(question, node, barrier);
    const enum reason alone = feasibility_ask(question, node, NULL);
    const enum reason reason = alone == REASON_NONE && group ? group->reason : alone;
    const struct card *card = NULL;

    node = question->seen;
    *ret_node = (struct explained_node){
        .name = g_strdup(node->name),
        .reason = reason,
        .barrier = barrier,
        .waits = reason == REASON_NONE && question->waits,
        .why = message_of_node(question, node, question->admission.request, reason),
    };
    if (!ret_node->why && request) {
        const struct card_ask *ask = ask_in_message(node, request);
        card = closest_card(node, request, ask, reason, &ret_node->lack);
        g_autofree char *why = card ? message_of_card(node, request, ask, card, reason) : NULL;
        if (card)
            ret_node->why = g_strdup_printf("card %d: %s", card->index, why);
    }
    if (!ret_node->why)
        ret_node->why = g_strdup(reason_info(reason)->text);
    if (outside) {
        char *inside = ret_node->why;
        ret_node->why = g_strconcat(outside, reason == REASON_NONE ? "; else it " : ", and ",
                                    inside, NULL);
        g_free(inside);
    }
}

static void describe_cards(struct explained_node *told, const struct node *node,
                           const struct request *request)
{
    told->cards = g_array_new(FALSE, FALSE, sizeof(struct explained_card));
    g_array_set_clear_func(told->cards, clear_card);
    if (!request)
        return;
    const struct card_ask *ask = ask_in_message(node, request);
    for (int32_t i = 0; i < node->n_cards && !ask->device; i++) {
        const struct card *card = &node->cards[i];
        const enum reason reason = placement_card_reason(node, request, ask, card);
        const struct explained_card row = {
            .index = card->index,
            .reason = reason,
            .why = message_of_card(node, request, ask, card, reason),
            .memory_wants = card_bytes(node, card, ask->memory),
            .memory_free = card_memory_free(node, card),
            .memory = card->memory,
            .core_wants = card_core_told(card, card_core(card, ask->core)),
            .core_free = card_core_told(card, card_core_free(node, card)),
            .core = card_core_told(card, card->core),
            .healthy = card->healthy,
            .pods = pods_in_message(node, card, NULL),
        };
        g_array_append_val(told->cards, row);
    }
}

/* --- order and groups ----------------------------------------------------------------------- */

/* Those that take the pod; those that would if something else left; the rest. */
static int distance(const struct explained_node *node)
{
    const int outside = node->barrier == BARRIER_NONE ? 0 : 3;

    if (node->reason == REASON_NONE)
        return node->barrier != BARRIER_NONE;
    if (node->reason == REASON_NOT_GPU_SHARE)
        return 8;
    if (node->reason == REASON_OTHER_DIALECT)
        return 4 + outside;
    return outside + (reason_info(node->reason)->resolvable ? 2 : 3);
}

static gint compare_nodes(gconstpointer a, gconstpointer b)
{
    const struct explained_node *left = a, *right = b;

    if (distance(left) != distance(right))
        return distance(left) - distance(right);
    if (left->reason != right->reason)
        return left->reason < right->reason ? -1 : 1;
    if (left->barrier != right->barrier)
        return left->barrier < right->barrier ? -1 : 1;
    if (left->lack != right->lack)
        return left->lack < right->lack ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Sorted, nodes that say the same stand together, the closest first. */
static void group_nodes(struct explanation *explanation)
{
    for (guint i = 0; i < explanation->nodes->len; i++) {
        const struct explained_node *node =
            &g_array_index(explanation->nodes, struct explained_node, i);
        struct explained_group *last =
            explanation->groups->len
                ? &g_array_index(explanation->groups, struct explained_group,
                                 explanation->groups->len - 1)
                : NULL;
        explanation->n_taking += node->reason == REASON_NONE && node->barrier == BARRIER_NONE;
        if (last && last->reason == node->reason && last->barrier == node->barrier) {
            last->n++;
            continue;
        }
        const struct explained_group group = {node->reason, node->barrier, 1, i};
        g_array_append_val(explanation->groups, group);
    }
}

/* --- where it would go ---------------------------------------------------------------------- */

/* Under the lock. */
static void foresee(struct explanation *explanation, struct store *copy,
                    const struct trial_pod *pod)
{
    const struct policy *policy = terms_rating(pod->request->terms, store_options(copy)->policy);
    struct placement placement;
    const struct node *best = trial_choose(copy, pod, &placement);

    if (!best)
        return;
    explanation->place.node = g_strdup(best->name);
    explanation->place.cards = shares_text(best, placement.shares, placement.n_shares);
    explanation->place.state = g_strdup(policy->name);
}

/* Budgets are not copied with a store. */
static struct budgets *copy_budgets(struct store *store)
{
    store_lock(store);
    struct budgets *budgets = budgets_copy(store_budgets(store));
    store_unlock(store);
    return budgets;
}

static void find_remedies(struct explanation *explanation, struct store *store, struct store *copy,
                          struct cluster *cluster, const struct pod_view *pod,
                          const struct request *request)
{
    struct budgets *budgets = copy_budgets(store);
    const guint n = MIN(explanation->nodes->len, REMEDY_NODES_MAX);
    g_autofree const char **names = g_new0(const char *, n + 1);
    guint n_names = 0;

    for (guint i = 0; i < n; i++) {
        const struct explained_node *node =
            &g_array_index(explanation->nodes, struct explained_node, i);
        if (node->reason != REASON_NOT_GPU_SHARE)
            names[n_names++] = node->name;
    }
    explanation->remedies = remedies_find(&(struct remedies_query){
        .copy = copy,
        .cluster = cluster,
        .budgets = budgets,
        .pod = pod,
        .request = request,
        .nodes = names,
    });
    budgets_free(budgets);
}

static void preview_preemption(struct explanation *explanation, struct store *store,
                               struct store *copy, struct cluster *cluster,
                               const struct pod_view *pod, const struct request *request)
{
    struct moment moment;

    struct budgets *budgets = copy_budgets(store);
    store_decide(copy, &moment);
    explanation->preview = preview_find(&(struct preview_query){
        .copy = copy,
        .cluster = cluster,
        .budgets = budgets,
        .pod = pod,
        .request = request,
        .moment = &moment,
    });
    store_unlock(copy);
    budgets_free(budgets);
}

/* --- the whole ------------------------------------------------------------------------------ */

static void ask_all(struct explanation *explanation, struct feasibility *question)
{
    const GPtrArray *nodes = ledger_nodes(question->ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        struct explained_node told;
        if (!node->present)
            continue;
        ask_one(explanation->group, question, node, &told);
        g_array_append_val(explanation->nodes, told);
    }
    explanation->n_nodes = explanation->nodes->len;
    g_array_sort(explanation->nodes, compare_nodes);
    group_nodes(explanation);
    for (guint i = 0; i < explanation->nodes->len && i < EXPLAIN_NODES_MAX; i++) {
        struct explained_node *told = &g_array_index(explanation->nodes, struct explained_node, i);
        const struct node *node = ledger_node(question->ledger, told->name);
        describe_cards(told, nominees_see(&question->nominees, node),
                       reading_in_message(node, question->admission.request));
    }
}

static char *name_dialects(const struct request *request)
{
    GString *text = g_string_new(NULL);

    for (; request; request = request->alternative)
        printable_append(text, "%s%s", text->len ? ", " : "", request->dialect->name);
    return g_string_free(text, FALSE);
}

static void explain_wish(struct explanation *explanation, struct store *copy,
                         const struct pod_view *view, const struct request *request)
{
    struct feasibility question;
    struct moment moment;

    explanation->asks = request_text(NULL, request);
    explanation->dialects = name_dialects(request);
    explanation->overlooked = view->constraints ? view->constraints->overlooked : 0;
    store_decide(copy, &moment);
    feasibility_init(&question, copy,
                     &(struct feasibility_about){GATE_BY_EXPLAIN, view, request, &moment});
    ask_all(explanation, &question);
    feasibility_clear(&question);
    explanation->verdict = explanation->n_taking > 0 ? VERDICT_FITS : VERDICT_REFUSED;
    if (explanation->n_taking > 0)
        foresee(explanation, copy, &(struct trial_pod){view, request, &moment});
    store_unlock(copy);
}

static struct explanation *new_explanation(const struct pod_view *pod)
{
    struct explanation *explanation = g_new0(struct explanation, 1);

    explanation->ns = g_strdup(pod->ns);
    explanation->name = g_strdup(pod->name);
    explanation->known = pod->uid != NULL;
    explanation->nodes = g_array_new(FALSE, FALSE, sizeof(struct explained_node));
    g_array_set_clear_func(explanation->nodes, clear_node);
    explanation->groups = g_array_new(FALSE, FALSE, sizeof(struct explained_group));
    return explanation;
}

struct explanation *explain_on(struct store *copy, const struct pod_view *pod,
                               const struct request *request)
{
    struct explanation *explanation = new_explanation(pod);

    explain_wish(explanation, copy, pod, request);
    return explanation;
}

/* Those on the same cards, or with devices of the same pools. */
static GPtrArray *find_neighbours(const struct allocation *own)
{
    const struct node *node = own->node;
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *self = g_strdup_printf("%s/%s", own->ns, own->name);
    GPtrArray *neighbours = g_ptr_array_new_with_free_func(g_free);

    g_hash_table_add(seen, g_strdup(self));
    for (uint32_t i = 0; i < own->n_shares; i++) {
        const struct share *share = &own->shares[i];
        g_autoptr(GPtrArray) pods =
            pods_in_message(node, node_share_card(node, share),
                      share->device ? node_pool(node, share->device) : NULL);
        for (guint j = 0; j < pods->len; j++) {
            if (g_hash_table_add(seen, g_strdup(pods->pdata[j])))
                g_ptr_array_add(neighbours, g_strdup(pods->pdata[j]));
        }
    }
    return neighbours;
}

static const char *const state_names[] = {
    [ALLOCATION_ASSUMED] = "its Binding is under way",
    [ALLOCATION_UNKNOWN] = "its Binding's outcome is not known yet",
    [ALLOCATION_BOUND] = "bound, not yet seen in the watch",
    [ALLOCATION_CONFIRMED] = "bound",
    [ALLOCATION_HELD] = "its group has a place for it there",
};

static const char *const distrust_names[DISTRUST_N] = {
    [DISTRUST_NONE] = "",
    [DISTRUST_UNMARKED] = "; no card is written: another scheduler has bound it",
    [DISTRUST_LOST] = "; the annotation with its card was lost",
    [DISTRUST_MALFORMED] = "; the annotation with its card cannot be read",
    [DISTRUST_EDITED] = "; its annotations contradict what it was bound with, which counts",
    [DISTRUST_UNREAD] = "; what it asks for cannot be read, and counts as the most that it may be",
    [DISTRUST_MISTAKEN] = "; it was given what another pod was promised, on a card nobody knows",
    [DISTRUST_WAITED] = "; its node side has not taken it, and nobody waits for it any longer",
};

static void explain_place(struct explanation *explanation, const struct allocation *held)
{
    struct explained_place *place = &explanation->place;

    explanation->verdict = VERDICT_PLACED;
    explanation->dialects = g_strdup(held->dialect->name);
    place->node = g_strdup(held->node->name);
    place->cards = shares_text(held->node, held->shares, held->n_shares);
    place->since_ns = held->assume_time_ns;
    place->state = g_strconcat(held->assigned  ? "assigned: its node side has taken it"
                               : held->waiting ? "waiting for its node side to take it"
                                               : state_names[held->state],
                               distrust_names[held->distrust], NULL);
    place->neighbours = find_neighbours(held);
}

bool explain_read_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                      const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                      GError **error)
{
    g_autoptr(GError) failure = NULL;
    const enum outcome outcome =
        cluster->ops->get_pod(cluster, arena, ns, name, deadline_ms, ret_pod, &failure);

    if (outcome == OUTCOME_OK)
        return true;
    if (outcome == OUTCOME_NOT_FOUND)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND,
                    "there is no pod '%s/%s'", ns, name);
    else
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                    "pod '%s/%s' cannot be read: %s", ns, name, failure->message);
    return false;
}

/* Under the copy's lock: for how many seconds; 0: not as far as is known. */
static int64_t tell_idle(const struct store *copy, const struct allocation *held)
{
    const int64_t now_ns = g_get_real_time() * 1000;
    const int64_t since_ms =
        idleness_since(idle_pods_known(store_part(copy, &part_idle_pods)), held, now_ns);

    return since_ms > 0 ? MAX((now_ns / 1000000 - since_ms) / 1000, 1) : 0;
}

/* filter gives a pod of a group a place together with as many others as the group needs, or none. So
 * what makes room for this pod admits it only where it is the last one that its group lacks. */
static bool needs_no_others(const struct group_place *group)
{
    return !group || group->reason == REASON_NONE ||
           (group->reason == REASON_GANG_NO_ROOM && group->bound + 1 >= group->needs);
}

static struct group_place *find_group(struct store *store, const struct pod_view *pod,
                                      const struct request *request)
{
    if (!store_options(store)->gangs || !pod->uid)
        return NULL;
    g_autoptr(store) trial = store_copy(store);
    return group_place_find(store, trial, pod, request);
}

struct explanation *explain_pod(struct store *store, struct cluster *cluster,
                                const struct pod_view *asked)
{
    struct explanation *explanation = new_explanation(asked);
    g_autoptr(store) copy = store_copy(store);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    struct pod_view view = *asked;
    const struct pod_view *pod = &view;
    g_autoptr(request) request =
        constraints_decode(arena, &view, &failure)
            ? dialect_read_request(pod, &store_options(copy)->dialects, &failure)
            : NULL;

    explanation->held_back = gates_tell(pod);
    explanation->quota = quota_told_find(copy, pod);
    const struct allocation *held = pod->uid ? ledger_get(store_lock(copy), pod->uid) : NULL;
    explanation->work_class = class_told_find(&store_options(copy)->dialects, pod, held);
    if (held)
        explain_place(explanation, held);
    if (held && explanation->work_class)
        explanation->work_class->idle_s = tell_idle(copy, held);
    if (pod->uid)
        store_unlock(copy);
    if (held) {
        explanation->asks = request ? request_text(NULL, request) : NULL;
        explanation->group = group_place_find(store, NULL, pod, NULL);
    } else if (failure) {
        explanation->verdict = VERDICT_INVALID;
        explanation->failure = g_strdup(failure->message);
    } else if (request) {
        explanation->group = find_group(store, pod, request);
        explain_wish(explanation, copy, pod, request);
        if (explanation->verdict == VERDICT_REFUSED) {
            if (needs_no_others(explanation->group))
                find_remedies(explanation, store, copy, cluster, pod, request);
            if (!explanation->group) /* for one pod of a group nobody is ended */
                preview_preemption(explanation, store, copy, cluster, pod, request);
            explanation->reclaim = reclaim_preview_find(store, pod, request);
        }
    }
    return explanation;
}
