/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a ledger keeps is what adds up. */
#include "core/ledger/ledger_state.h"
#include "core/node.h"

#include <gpuledger/error.h>

/* Node -> struct host, what its CPU-only pods have; nodes without CPU-only pods are not in it. */
static GHashTable *add_up_cpu_pods(const struct ledger *ledger)
{
    GHashTable *sums = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, ledger->cpu_pods);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const struct cpu_pod *cpu_pod = key;
        struct host *sum = g_hash_table_lookup(sums, cpu_pod->node);
        if (!sum) {
            sum = g_new0(struct host, 1);
            g_hash_table_insert(sums, cpu_pod->node, sum);
        }
        sum->cpu += cpu_pod->host.cpu;
        sum->memory += cpu_pod->host.memory;
        sum->pods += cpu_pod->host.pods;
    }
    return sums;
}

/* NULL: what the node holds is what the ledger says that it does; else an allocation that is not. */
static const struct allocation *find_stray(const struct ledger *ledger, const struct node *node)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
        if (allocation->node != node || ledger_get(ledger, allocation->uid) != allocation)
            return allocation;
    }
    return NULL;
}

bool ledger_holds(const struct ledger *ledger, const struct node *node)
{
    return !find_stray(ledger, node);
}

static bool verify_states(const struct ledger *ledger, GError **error)
{
    size_t n[ALLOCATION_STATES] = {0};
    GHashTableIter iter;
    gpointer data;

    g_hash_table_iter_init(&iter, ledger->allocations);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const struct allocation *allocation = data;
        n[allocation->state]++;
        const bool open = g_hash_table_lookup(ledger->open, allocation->uid) == data;
        if (open != (allocation->state == ALLOCATION_CONFIRMED))
            continue;
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "pod '%s' is not counted in its state", allocation->uid);
        return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(n); i++) {
        if (n[i] == ledger->n_in_state[i])
            continue;
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "%zu pods are in state %zu, counted were %zu", n[i], i, ledger->n_in_state[i]);
        return false;
    }
    return true;
}

bool ledger_verify(const struct ledger *ledger, GError **error)
{
    static const struct host none = {0};
    g_autoptr(GHashTable) cpu_pods = add_up_cpu_pods(ledger);
    GHashTableIter iter;
    gpointer data;
    size_t held = 0;

    g_hash_table_iter_init(&iter, ledger->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const struct node *node = data;
        const struct host *sum = g_hash_table_lookup(cpu_pods, node);
        if (!node_verify(node, sum ? *sum : none, error))
            return false;
        const struct allocation *stray = find_stray(ledger, node);
        if (stray) {
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                        "node '%s' holds pod '%s', which the ledger does not", node->name,
                        stray->uid);
            return false;
        }
        held += node->allocations->len;
    }
    if (held != ledger_size(ledger)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "nodes hold %zu pods, the ledger %zu", held, ledger_size(ledger));
        return false;
    }
    return verify_states(ledger, error);
}
