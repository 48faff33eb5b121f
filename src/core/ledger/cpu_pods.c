/* SPDX-License-Identifier: Apache-2.0 */
/* Pods without a GPU, which take CPU and memory of their nodes all the same. */
#include "core/ledger/ledger_state.h"
#include "core/node.h"

struct cpu_pod *ledger_cpu_pod(const struct ledger *ledger, const char *uid)
{
    return g_hash_table_lookup(ledger->cpu_pods, &uid);
}

void ledger_append_cpu_pod(struct ledger *ledger, struct cpu_pod *cpu_pod)
{
    cpu_pod->before = ledger->last_cpu_pod;
    cpu_pod->after = NULL;
    *(cpu_pod->before ? &cpu_pod->before->after : &ledger->first_cpu_pod) = cpu_pod;
    ledger->last_cpu_pod = cpu_pod;
}

void ledger_unlink_cpu_pod(struct ledger *ledger, const struct cpu_pod *cpu_pod)
{
    *(cpu_pod->before ? &cpu_pod->before->after : &ledger->first_cpu_pod) = cpu_pod->after;
    *(cpu_pod->after ? &cpu_pod->after->before : &ledger->last_cpu_pod) = cpu_pod->before;
}

const char *ledger_stale_cpu_pod(const struct ledger *ledger, uint32_t generation)
{
    const struct cpu_pod *first = ledger->first_cpu_pod;

    return first && first->generation != generation ? first->uid : NULL;
}

void ledger_note_cpu_pod_priority(struct ledger *ledger, const char *uid, int64_t priority)
{
    struct cpu_pod *known = ledger_cpu_pod(ledger, uid);

    if (known)
        known->priority = (int32_t)CLAMP(priority, INT32_MIN, INT32_MAX);
}

bool ledger_cpu_pod_priority(const struct ledger *ledger, const char *uid, int64_t *ret_priority)
{
    const struct cpu_pod *known = ledger_cpu_pod(ledger, uid);

    if (known)
        *ret_priority = known->priority;
    return known != NULL;
}

/* Leaves the node, even if nothing is on it any more. */
static void ledger_release_cpu_pod(struct ledger *ledger, const struct cpu_pod *cpu_pod)
{
    ledger_unlink_cpu_pod(ledger, cpu_pod);
    node_charge_host(cpu_pod->node, &cpu_pod->host, -1);
    cpu_pod->node->n_cpu_pods--;
}

bool ledger_drop_cpu_pod(struct ledger *ledger, const char *uid)
{
    struct cpu_pod *cpu_pod = ledger_cpu_pod(ledger, uid);
    if (!cpu_pod)
        return false;

    struct node *node = cpu_pod->node;
    ledger_release_cpu_pod(ledger, cpu_pod);
    g_hash_table_remove(ledger->cpu_pods, cpu_pod);
    ledger_collect_node(ledger, node);
    return true;
}
