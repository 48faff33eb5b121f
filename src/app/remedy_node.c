/* SPDX-License-Identifier: Apache-2.0 */
/* Something of the node changes, or time passes there. */
#include "app/remedy_search.h"

#include <string.h>

static void free_allocation(gpointer data)
{
    allocation_free(data);
}

/* Waiting pods of the node as the node side will have matched them; what they were is returned. */
static GPtrArray *match_all(struct search *search, const struct node *node)
{
    GPtrArray *waiting = g_ptr_array_new_with_free_func(free_allocation);

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *one = node->allocations->pdata[i];
        if (one->waiting)
            g_ptr_array_add(waiting, allocation_dup(one));
    }
    for (guint i = 0; i < waiting->len; i++) {
        struct allocation *matched = allocation_dup(waiting->pdata[i]);
        matched->waiting = false;
        matched->assigned = true;
        ledger_put(search->ledger, node->name, matched);
    }
    return waiting;
}

static void try_match(struct search *search, const struct node *node)
{
    g_autoptr(GPtrArray) waiting = match_all(search, node);

    if (waiting->len > 0 && search_takes(search, node)) {
        struct remedy remedy = {
            .kind = REMEDY_MATCH,
            .pods = remedy_pods_new(),
            .text = g_strdup_printf("wait until the node side of %s has matched the pods that "
                                    "wait there",
                                    node->name),
        };
        for (guint i = 0; i < waiting->len; i++) {
            const struct allocation *one = waiting->pdata[i];
            const struct remedy_pod pod = {g_strdup(one->ns), g_strdup(one->name), NULL};
            g_array_append_val(remedy.pods, pod);
        }
        search_add(search, remedy, node);
    }
    for (guint i = 0; i < waiting->len; i++)
        ledger_put(search->ledger, node->name, allocation_dup(waiting->pdata[i]));
}

static void try_heal(struct search *search, struct node *node)
{
    for (int32_t i = 0; i < node->n_cards && search_may_try(search); i++) {
        struct card *card = &node->cards[i];
        if (card->healthy || search_has(search, REMEDY_HEAL))
            continue;
        card->healthy = true;
        if (search_takes(search, node))
            search_add(search,
                (struct remedy){.kind = REMEDY_HEAL,
                                .card = card->index,
                                .text = g_strdup_printf("mend card %d of %s, which %s says is "
                                                        "unhealthy",
                                                        card->index, node->name,
                                                        card->broken ? "its node side"
                                                                     : "a ConfigMap")},
                node);
        card->healthy = false;
    }
}

static void try_label(struct search *search, struct node *node)
{
    const struct terms *terms = search->query->request->terms;
    const int32_t compute = node->compute, driver = node->driver;
    const bool first = terms && compute == 0 && terms->compute_min > 0;

    if (!first && (!terms || driver != 0 || terms->driver_min == 0))
        return;
    node->compute = MAX(compute, terms->compute_min);
    node->driver = MAX(driver, terms->driver_min);
    if (search_takes(search, node)) {
        const char *label = first ? "nvidia.com/gpu.compute.major"
                                  : "nvidia.com/cuda.driver-version.major";
        search_add(search,
            (struct remedy){.kind = REMEDY_LABEL,
                            .key = g_strdup(label),
                            .text = g_strdup_printf("let GPU Feature Discovery label %s (%s), if "
                                                    "its GPUs are such",
                                                    node->name, label)},
            node);
    }
    node->compute = compute;
    node->driver = driver;
}

static void try_quota(struct search *search, const struct node *node)
{
    struct quota_count count;
    struct judge judge;

    judge_init(&judge, search->query->copy, search->query->pod, search->query->request,
               &search->moment);
    struct quota_room *room = g_steal_pointer(&judge.room);
    if (room) {
        quota_room_count(room, node->name, &count);
        const int64_t to = (count.used + count.wanted + CORE_WHOLE - 1) / CORE_WHOLE;
        if (count.limited && count.pooled && judge_node(&judge, node, NULL) == REASON_NONE)
            search_add(search,
                (struct remedy){
                    .kind = REMEDY_QUOTA,
                    .key = g_strdup(count.model),
                    .from = g_strdup_printf("%g", (double)count.limit / CORE_WHOLE),
                    .to = g_strdup_printf("%" G_GINT64_FORMAT, to),
                    .text = g_strdup_printf("give namespace %s %" G_GINT64_FORMAT " %s instead of "
                                            "%g (ConfigMap kube-system/gpuquota)",
                                            search->query->pod->ns, to, count.model,
                                            (double)count.limit / CORE_WHOLE)},
                node);
    }
    judge.room = room;
    judge_clear(&judge);
}

static void try_resource_quota(struct search *search, const struct node *node)
{
    struct resource_count count;
    struct placement placement;
    struct judge judge;

    judge_init(&judge, search->query->copy, search->query->pod, search->query->request,
               &search->moment);
    struct quota_room *room = g_steal_pointer(&judge.room);
    if (room && judge_node(&judge, node, &placement) == REASON_NONE &&
        !resource_room_allows(quota_room_resources(room), node, &placement, &count) &&
        count.alone) {
        const int64_t to = count.used + count.wanted;
        search_add(search,
            (struct remedy){
                .kind = REMEDY_QUOTA,
                .key = g_strdup(count.key),
                .from = g_strdup_printf("%" G_GINT64_FORMAT, count.limit),
                .to = g_strdup_printf("%" G_GINT64_FORMAT, to),
                .text = g_strdup_printf("let ResourceQuota %s/%s have %" G_GINT64_FORMAT
                                        " instead of %" G_GINT64_FORMAT " under %s",
                                        search->query->pod->ns, count.quota, to, count.limit,
                                        count.key)},
            node);
    }
    judge.room = room;
    judge_clear(&judge);
}

static void try_turn(struct search *search, const struct node *node)
{
    struct judge judge;

    judge_init(&judge, search->query->copy, search->query->pod, search->query->request,
               &search->moment);
    if (judge_node(&judge, node, NULL) == REASON_EARLIER_POD)
        search_add(search,
            (struct remedy){.kind = REMEDY_TURN,
                            .text = g_strdup_printf("wait: the room on %s is left to %s for a "
                                                    "while, which came first",
                                                    node->name, judge.older.title)},
            node);
    judge_clear(&judge);
}

static void try_uncordon(struct search *search, struct node *node)
{
    node->cordoned = false;
    if (search_takes(search, node))
        search_add(search,
                   (struct remedy){.kind = REMEDY_UNCORDON,
                                   .text = g_strdup_printf("uncordon %s", node->name)},
                   node);
    node->cordoned = true;
}

/* Whether the pod would go there if these were its constraints. */
static bool takes_with(struct search *search, const struct node *node,
                       const struct constraints *constraints)
{
    struct pod_view pod = *search->query->pod;

    pod.constraints = constraints;
    return search_takes_as(search, node, &pod);
}

static void try_tolerate(struct search *search, const struct node *node)
{
    struct constraints more = *search->query->pod->constraints;
    g_autofree struct toleration *tolerations =
        g_new(struct toleration, more.n_tolerations + node->traits->n_taints);
    g_autoptr(GString) taints = g_string_new(NULL);
    const struct taint_view *taint;

    for (size_t i = 0; i < more.n_tolerations; i++)
        tolerations[i] = more.tolerations[i];
    more.tolerations = tolerations;
    while ((taint = constraints_taint(&more, node))) {
        g_autofree char *text = taint_tell(taint);
        g_string_append_printf(taints, "%s%s", taints->len ? ", " : "", text);
        tolerations[more.n_tolerations++] = (struct toleration){
            .key = taint->key, .value = taint->value, .effect = taint->effect};
    }
    if (takes_with(search, node, &more))
        search_add(search,
                   (struct remedy){.kind = REMEDY_TOLERATE,
                                   .key = g_strdup(taints->str),
                                   .text = g_strdup_printf("tolerate %s", taints->str)},
                   node);
}

/* Without the labels that this node has not; what it has may as well be asked for. */
static void try_selector(struct search *search, const struct node *node)
{
    struct constraints less = *search->query->pod->constraints;
    g_autofree struct string_pair *pairs = g_new(struct string_pair, less.selector.n + 1);
    g_autoptr(GString) gone = g_string_new(NULL);
    size_t n = 0;

    for (size_t i = 0; i < less.selector.n; i++) {
        const struct string_pair *pair = &less.selector.items[i];
        const char *value =
            node->traits ? string_pairs_get(&node->traits->labels, pair->key) : NULL;
        if (g_strcmp0(value, pair->value) == 0)
            pairs[n++] = *pair;
        else
            g_string_append_printf(gone, "%s%s=%s", gone->len ? ", " : "", pair->key, pair->value);
    }
    less.selector = (struct string_pairs){pairs, n};
    if (takes_with(search, node, &less))
        search_add(search,
                   (struct remedy){.kind = REMEDY_SELECTOR,
                                   .key = g_strdup(gone->str),
                                   .text = g_strdup_printf("take %s out of its nodeSelector",
                                                           gone->str)},
                   node);
}

static void try_affinity(struct search *search, const struct node *node)
{
    struct constraints less = *search->query->pod->constraints;

    less.has_affinity = false;
    less.n_terms = 0;
    if (takes_with(search, node, &less))
        search_add(search,
                   (struct remedy){.kind = REMEDY_AFFINITY,
                                   .text = g_strdup("take its required nodeAffinity away")},
                   node);
}

/* What would let kube-scheduler ask about the node. */
static void try_barrier(struct search *search, struct node *node, enum barrier barrier)
{
    if (barrier == BARRIER_CORDONED && !search_has(search, REMEDY_UNCORDON))
        try_uncordon(search, node);
    if (barrier == BARRIER_TAINT && !search_has(search, REMEDY_TOLERATE))
        try_tolerate(search, node);
    if (barrier == BARRIER_SELECTOR && !search_has(search, REMEDY_SELECTOR))
        try_selector(search, node);
    if (barrier == BARRIER_AFFINITY && !search_has(search, REMEDY_AFFINITY))
        try_affinity(search, node);
}

/* One node of each kind is enough. */
void search_node(struct search *search, struct node *node)
{
    const enum barrier barrier = search_barrier(search, node);
    const enum reason reason =
        search_ask(search, node, search->query->pod, search->query->request, NULL);

    if (barrier != BARRIER_NONE) {
        if (reason == REASON_NONE)
            try_barrier(search, node, barrier);
        return;
    }
    if (reason == REASON_EARLIER_POD && !search_has(search, REMEDY_TURN))
        try_turn(search, node);
    if ((reason == REASON_AWAITING_ASSIGNMENT || reason == REASON_AWAITING_TURN) &&
        !search_has(search, REMEDY_MATCH))
        try_match(search, node);
    if (reason == REASON_QUOTA && !search_has(search, REMEDY_QUOTA))
        try_quota(search, node);
    if (reason == REASON_RESOURCE_QUOTA && !search_has(search, REMEDY_QUOTA))
        try_resource_quota(search, node);
    if (reason == REASON_TERMS && !search_has(search, REMEDY_LABEL))
        try_label(search, node);
    if (!search_has(search, REMEDY_HEAL))
        try_heal(search, node);
}
