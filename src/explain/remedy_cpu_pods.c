/* SPDX-License-Identifier: Apache-2.0 */
/* A pod without a GPU moves, from a node that has cards for the pod but no room beside them. */
#include "explain/remedy_search.h"
#include "policy/victims/may_end.h"
#include "wire/constraints.h"

#include <gpuledger/pod_facts.h>
#include <string.h>

#define LIST_MS 4000

/* A CPU-only pod of the node, and where it would go. */
struct mover {
    const struct pod_view *pod;
    struct host host;
    const char *to;
};

/* Nodes without GPUs are homes, too. */
static bool is_home(const struct mover *mover, const struct node *node)
{
    const struct host left = node_host_free(node);

    return node->present && constraints_check(mover->pod->constraints, node) == BARRIER_NONE &&
           mover->host.cpu <= left.cpu && mover->host.memory <= left.memory &&
           mover->host.pods <= left.pods;
}

static const char *find_home(struct search *search, const struct mover *mover,
                             const struct node *from)
{
    const GPtrArray *nodes = ledger_nodes(search->ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node != from && is_home(mover, node))
            return node->name;
    }
    return NULL;
}

/* Whether the pod would go to the node without the cpu_pod. */
static bool makes_room(struct search *search, struct node *node, const struct mover *mover)
{
    const struct host before = node->host_used;

    node->host_used.cpu -= mover->host.cpu;
    node->host_used.memory -= mover->host.memory;
    node->host_used.pods -= mover->host.pods;
    const bool takes = search_takes(search, node);
    node->host_used = before;
    return takes;
}

/* Who is less important, or smaller. */
static bool is_better(const struct mover *one, const struct mover *other)
{
    if (one->pod->priority != other->pod->priority)
        return one->pod->priority < other->pod->priority;
    if (one->host.memory != other->host.memory)
        return one->host.memory < other->host.memory;
    return one->host.cpu < other->host.cpu;
}

/* Of other amounts than CPU and memory nobody here knows what is free elsewhere. */
static bool asks_for_more(const struct pod_view *pod)
{
    g_autoptr(pod_facts) facts = pod_facts_new(pod);
    bool more = facts->particular;

    for (uint32_t i = 0; i < facts->n_amounts; i++)
        more |= facts->amounts[i].thousandths > 0;
    return more;
}

/* Its pods that hold no GPU, would stay, and of which all is known that decides where they go. The
 * cluster is asked without a lock, and no more once it has not answered. */
static const struct pod_view *list_guests(struct search *search, struct json_arena *arena,
                                          const struct node *node, size_t *ret_n)
{
    struct cluster *cluster = search->query->cluster;
    struct store *copy = search->query->copy;
    struct pod_view *pods;
    size_t all, n = 0;

    store_unlock(copy);
    const bool listed =
        cluster->ops->list_pods_on(cluster, arena, node->name,
                                   g_get_monotonic_time() / 1000 + LIST_MS, &pods, &all,
                                   NULL) == OUTCOME_OK;
    store_lock(copy);
    if (!listed)
        search->lists = REMEDY_LISTS_MAX;
    for (size_t i = 0; listed && i < all; i++) {
        struct pod_view pod = pods[i];
        if (pod.terminating || ledger_get(search->ledger, pod.uid) ||
            may_end_not(ENDER_PLAN, true, pod_view_ties(&pod)))
            continue;
        pod.node_name = NULL; /* whoever makes it again does not say */
        if (constraints_decode(arena, &pod, NULL) && pod.constraints->overlooked == 0 &&
            !asks_for_more(&pod))
            pods[n++] = pod;
    }
    *ret_n = n;
    return listed ? pods : NULL;
}

static void try_cpu_pods(struct search *search, struct node *node)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct mover best = {NULL};
    size_t n;
    const struct pod_view *pods = list_guests(search, arena, node, &n);

    for (size_t i = 0; pods && i < n && search_may_try(search); i++) {
        struct mover mover = {&pods[i], host_of_pod(&pods[i]), NULL};
        if ((best.pod && !is_better(&mover, &best)) || !makes_room(search, node, &mover))
            continue;
        mover.to = find_home(search, &mover, node);
        if (mover.to)
            best = mover;
    }
    if (!best.pod)
        return;
    const struct remedy_pod moved = {g_strdup(best.pod->ns), g_strdup(best.pod->name),
                                     g_strdup(best.to)};
    struct remedy remedy = {
        .kind = REMEDY_MOVE,
        .pods = remedy_pods_new(),
        .text = g_strdup_printf("move %s/%s to %s", best.pod->ns, best.pod->name, best.to),
    };
    g_array_append_val(remedy.pods, moved);
    search_add(search, remedy, node);
}

void search_cpu_pods(struct search *search)
{
    const struct cluster *cluster = search->query->cluster;
    const guint found = search->found->len;

    if (!cluster || !cluster->ops->list_pods_on)
        return;
    for (const char *const *name = search->query->nodes;
         *name && search->lists < REMEDY_LISTS_MAX && search->found->len == found; name++) {
        struct node *node = ledger_node(search->ledger, *name);
        if (node->n_cpu_pods == 0 || search_shortage(search, node) == BARRIER_NONE ||
            search_ask(search, node, search->query->pod, search->query->request, NULL) !=
                REASON_NONE)
            continue;
        search->lists++;
        try_cpu_pods(search, node);
    }
}
