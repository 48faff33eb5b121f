/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/cpu_victims.h"

#include "core/ledger.h"
#include "policy/victims/victims_cost.h"

#include <gpuledger/pod_facts.h>

#define READ_MS 4000

static int64_t read_time(const char *text)
{
    g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, NULL) : NULL;

    return time ? g_date_time_to_unix(time) : 0;
}

static struct allocation *make(const struct pod_view *pod)
{
    struct allocation *made = allocation_new(pod->uid, pod->ns ? pod->ns : "", pod->name, 0);

    made->state = ALLOCATION_CONFIRMED;
    made->host = host_of_pod(pod);
    made->priority = pod->priority;
    made->created_s = read_time(pod->created);
    made->started_s = pod->started ? read_time(pod->started_at) : 0;
    made->terminating = pod->terminating;
    made->facts = pod_facts_new(pod);
    return made;
}

bool cpu_victims_made(const struct allocation *allocation)
{
    return !allocation->dialect;
}

GPtrArray *cpu_victims_read(struct cpu_victims *cpu_victims, const struct node *node)
{
    struct cluster *cluster = cpu_victims->cluster;
    g_autoptr(json_arena) arena = NULL;
    struct pod_view *pods;
    size_t n;

    if (!cluster || !cluster->ops->list_pods_on || cpu_victims->reads == CPU_VICTIMS_NODES_MAX)
        return NULL;
    if (cpu_victims->reads++ == 0)
        cpu_victims->deadline_ms = g_get_monotonic_time() / 1000 + READ_MS;
    arena = json_arena_new();
    store_unlock(cpu_victims->copy);
    const enum outcome outcome = cluster->ops->list_pods_on(
        cluster, arena, node->name, cpu_victims->deadline_ms, &pods, &n, NULL);
    const struct ledger *ledger = store_lock(cpu_victims->copy);
    if (outcome != OUTCOME_OK) { /* the next one would wait as long */
        cpu_victims->reads = CPU_VICTIMS_NODES_MAX;
        return NULL;
    }
    GPtrArray *found = g_ptr_array_new_with_free_func((GDestroyNotify)allocation_free);
    for (size_t i = 0; i < n; i++) {
        if (pods[i].uid && pods[i].name && !pod_view_is_terminal(&pods[i]) &&
            !ledger_get(ledger, pods[i].uid))
            g_ptr_array_add(found, make(&pods[i]));
    }
    return found;
}

void cpu_victims_add_cost(const GPtrArray *victims, struct victims_cost *cost)
{
    for (guint i = 0; i < victims->len; i++) {
        const struct allocation *one = victims->pdata[i];
        if (one->terminating) {
            cost->going++;
            continue;
        }
        cost->oldest = victims_cost_oldest(cost, one->priority, allocation_start(one));
        cost->highest = MAX(cost->highest, one->priority);
        cost->sum += one->priority - VICTIMS_LOWEST_PRIORITY;
        cost->n++;
    }
}

char *cpu_victims_say_unread(const char *node, guint n)
{
    const char *const why = "pods without a GPU may have to end, and these were not read";

    return n > 1
               ? g_strdup_printf("on %s and %u more node%s %s", node, n - 1, n > 2 ? "s" : "", why)
               : g_strdup_printf("on %s %s", node, why);
}
