/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's gauges; the counters are in metrics.c. */
#include "base/metrics.h"
#include "store/node_copy.h"
#include "inspect/views.h"

static int64_t gauge_memory(const struct card *card)
{
    return card->memory;
}

static int64_t gauge_used(const struct card *card)
{
    return card->memory_used;
}

static int64_t gauge_holders(const struct card *card)
{
    return card->holders;
}

static int64_t gauge_healthy(const struct card *card)
{
    return card->healthy;
}

static int64_t gauge_closed(const struct card *card)
{
    return card->closure != CLOSURE_NONE;
}

static const struct card_gauge {
    const char *name;
    const char *help;
    int64_t (*value)(const struct card *card);
} card_gauges[] = {
    {"gpuledger_card_memory_bytes", "Memory of a card.", gauge_memory},
    {"gpuledger_card_memory_used_bytes", "Memory that pods hold of a card.", gauge_used},
    {"gpuledger_card_holders", "Pods on a card.", gauge_holders},
    {"gpuledger_card_healthy", "Whether a card works, so its node side.", gauge_healthy},
    {"gpuledger_card_closed", "Whether a card takes no new pods by an annotation of its node.",
     gauge_closed},
};

static void append_node_gauge(GString *text, const char *name, const char *node, int64_t value)
{
    g_string_append_printf(text, "%s{node=\"", name);
    metrics_append_label(text, node);
    g_string_append_printf(text, "\"} %" G_GINT64_FORMAT "\n", value);
}

static void append_card_gauges(GString *text, const GArray *nodes)
{
    for (size_t g = 0; g < G_N_ELEMENTS(card_gauges); g++) {
        const struct card_gauge *gauge = &card_gauges[g];
        g_string_append_printf(text, "# HELP %s %s\n# TYPE %s gauge\n", gauge->name, gauge->help,
                               gauge->name);
        for (guint i = 0; i < nodes->len; i++) {
            const struct node_copy *node = &g_array_index(nodes, struct node_copy, i);
            for (int32_t j = 0; j < node->n_cards; j++) {
                g_string_append_printf(text, "%s{node=\"", gauge->name);
                metrics_append_label(text, node->name);
                g_string_append_printf(text, "\",card=\"%d\"} %" G_GINT64_FORMAT "\n",
                                       node->cards[j].index, gauge->value(&node->cards[j]));
            }
        }
    }
}

static int64_t gauge_capacity(const struct pool *pool)
{
    return pool->capacity;
}

static int64_t gauge_given(const struct pool *pool)
{
    return pool->used;
}

static const struct pool_gauge {
    const char *name;
    const char *help;
    int64_t (*value)(const struct pool *pool);
} pool_gauges[] = {
    {"gpuledger_pool_devices", "Devices of a resource that may be given by count.",
     gauge_capacity},
    {"gpuledger_pool_devices_used", "Those of them that pods hold.", gauge_given},
};

static void append_pool_gauges(GString *text, const GArray *nodes)
{
    for (size_t g = 0; g < G_N_ELEMENTS(pool_gauges); g++) {
        const struct pool_gauge *gauge = &pool_gauges[g];
        g_string_append_printf(text, "# HELP %s %s\n# TYPE %s gauge\n", gauge->name, gauge->help,
                               gauge->name);
        for (guint i = 0; i < nodes->len; i++) {
            const struct node_copy *node = &g_array_index(nodes, struct node_copy, i);
            for (int32_t j = 0; j < node->n_pools; j++) {
                g_string_append_printf(text, "%s{node=\"", gauge->name);
                metrics_append_label(text, node->name);
                g_string_append(text, "\",resource=\"");
                metrics_append_label(text, node->pools[j].resource);
                g_string_append_printf(text, "\"} %" G_GINT64_FORMAT "\n",
                                       gauge->value(&node->pools[j]));
            }
        }
    }
}

/* In GPUs, of each node and of all. */
static void append_fragmentation(GString *text, const GArray *nodes)
{
    int64_t all = 0;

    g_string_append(text, "# HELP gpuledger_node_fragmented_gpus Free GPU that a pod which is "
                          "expected, on average, could not use.\n"
                          "# TYPE gpuledger_node_fragmented_gpus gauge\n");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node_copy *node = &g_array_index(nodes, struct node_copy, i);
        g_string_append(text, "gpuledger_node_fragmented_gpus{node=\"");
        metrics_append_label(text, node->name);
        g_string_append_printf(text, "\"} %.3f\n", (double)node->fragmented / 1000);
        all += node->fragmented;
    }
    g_string_append_printf(text,
                           "# HELP gpuledger_fragmented_gpus The same of all nodes.\n"
                           "# TYPE gpuledger_fragmented_gpus gauge\n"
                           "gpuledger_fragmented_gpus %.3f\n",
                           (double)all / 1000);
}

static double share_memory(const struct share_copy *share)
{
    return (double)share->memory;
}

static double share_core(const struct share_copy *share)
{
    return (double)share->core / CORE_WHOLE;
}

static const struct share_gauge {
    const char *name;
    const char *help;
    double (*value)(const struct share_copy *share);
} share_gauges[] = {
    {"gpuledger_container_memory_bytes", "Memory of a card that a container was granted.",
     share_memory},
    {"gpuledger_container_core_ratio", "Compute of a card that it was granted; 1 is all of it.",
     share_core},
};

static void append_share(GString *text, const struct share_gauge *gauge,
                         const struct node_copy *node, const struct pod_copy *pod,
                         const struct share_copy *share)
{
    const char *container = pod_facts_container(pod->facts, share->container);
    const struct card *card = NULL;

    for (int32_t i = 0; i < node->n_cards && !card; i++) {
        if (share_copy_is_on(node, share, &node->cards[i]))
            card = &node->cards[i];
    }
    if (!card) /* a device by count, or no known card */
        return;
    g_string_append_printf(text, "%s{namespace=\"", gauge->name);
    metrics_append_label(text, pod->ns);
    g_string_append(text, "\",pod=\"");
    metrics_append_label(text, pod->name);
    g_string_append(text, "\",container=\"");
    metrics_append_label(text, container ? container : "");
    g_string_append_printf(text, "\",container_index=\"%d\",node=\"", share->container);
    metrics_append_label(text, node->name);
    g_string_append_printf(text, "\",card=\"%d\",uuid=\"", card->index);
    metrics_append_label(text, card->uuid ? card->uuid : "");
    g_string_append_printf(text, "\"} %.15g\n", gauge->value(share));
}

void view_pod_metrics(struct store *store, GString *reply)
{
    g_autoptr(GArray) nodes = node_copies(store, NULL, true);

    for (size_t g = 0; g < G_N_ELEMENTS(share_gauges); g++) {
        const struct share_gauge *gauge = &share_gauges[g];
        g_string_append_printf(reply, "# HELP %s %s\n# TYPE %s gauge\n", gauge->name, gauge->help,
                               gauge->name);
        for (guint i = 0; i < nodes->len; i++) {
            const struct node_copy *node = &g_array_index(nodes, struct node_copy, i);
            for (guint j = 0; j < node->pods->len; j++) {
                const struct pod_copy *pod = &g_array_index(node->pods, struct pod_copy, j);
                for (uint32_t k = 0; k < pod->n_shares; k++)
                    append_share(reply, gauge, node, pod, &pod->shares[k]);
            }
        }
    }
}

struct left_out {
    GString *text;
    GHashTable *nodes; /* a set of names */
};

/* Once for each node, for whomever it is. */
static void append_pause(const struct rejects_pause *pause, void *data)
{
    struct left_out *left_out = data;

    if (!g_hash_table_contains(left_out->nodes, pause->node))
        append_node_gauge(left_out->text, "gpuledger_node_left_out", pause->node, 1);
    g_hash_table_add(left_out->nodes, (gpointer)pause->node);
}

/* Under the lock. */
static void append_left_out(GString *text, const struct rejects *rejects)
{
    g_autoptr(GHashTable) nodes = g_hash_table_new(g_str_hash, g_str_equal);
    struct left_out left_out = {text, nodes};

    g_string_append(text, "# HELP gpuledger_node_left_out 1 for each node that is left out, or a card "
                          "of it, for pods that its kubelet has rejected.\n"
                          "# TYPE gpuledger_node_left_out gauge\n");
    rejects_each(rejects, NULL, append_pause, &left_out);
    g_string_append_printf(text, "# HELP gpuledger_nodes_left_out How many there are.\n"
                                 "# TYPE gpuledger_nodes_left_out gauge\n"
                                 "gpuledger_nodes_left_out %u\n", g_hash_table_size(nodes));
}

/* Under the lock. Which words it are, and what counts instead, the log says. */
static void append_doubted(GString *text, const GPtrArray *nodes)
{
    g_string_append(text, "# HELP gpuledger_node_doubted 1 for each node of which something that its "
                          "Node says cannot be understood, or contradicts the rest.\n"
                          "# TYPE gpuledger_node_doubted gauge\n");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->doubted && node->present)
            append_node_gauge(text, "gpuledger_node_doubted", node->name, 1);
    }
}

struct state_counts {
    int64_t n[G_N_ELEMENTS(view_states)];
    int64_t waiting;
};

static void count_state(struct allocation *allocation, void *data)
{
    struct state_counts *counts = data;
    counts->n[allocation->state]++;
    counts->waiting += allocation->waiting;
}

/* How many pods each key has sealed: one that is not the newest can go when it has none. */
static void append_seals(struct store *store, GString *reply)
{
    struct seals *seals = store_options(store)->seals;

    g_autoptr(keyring) keyring = seals ? seals_keyring(seals) : keyring_new();
    g_string_append(reply, "# HELP gpuledger_pods_sealed Pods by the key of their seal.\n"
                           "# TYPE gpuledger_pods_sealed gauge\n");
    store_lock(store);
    const struct sealing *sealing = store_sealing(store);
    for (unsigned i = 0; i < keyring_size(keyring); i++)
        g_string_append_printf(reply, "gpuledger_pods_sealed{key=\"%s\"} %u\n",
                               keyring_id(keyring, i),
                               sealing_count(sealing, keyring_id(keyring, i)));
    g_string_append_printf(reply,
                           "# HELP gpuledger_pods_to_seal Pods whose seal is still to be written.\n"
                           "# TYPE gpuledger_pods_to_seal gauge\n"
                           "gpuledger_pods_to_seal %u\n",
                           sealing_count(sealing, NULL));
    store_unlock(store);
}

void view_metrics(struct store *store, GString *reply)
{
    g_autoptr(GArray) nodes = node_copies(store, NULL, false);
    g_autoptr(GError) drift = NULL;
    struct state_counts counts = {0};
    struct ledger *ledger = store_lock(store);
    bool sound = ledger_verify(ledger, &drift);

    ledger_each(ledger, count_state, &counts);
    append_left_out(reply, store_rejects(store));
    append_doubted(reply, ledger_nodes(ledger));
    store_unlock(store);

    append_card_gauges(reply, nodes);
    append_pool_gauges(reply, nodes);
    append_fragmentation(reply, nodes);
    g_string_append(reply, "# HELP gpuledger_node_unplaced_memory_bytes Memory of pods on no known "
                           "card, counted on each.\n"
                           "# TYPE gpuledger_node_unplaced_memory_bytes gauge\n");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node_copy *node = &g_array_index(nodes, struct node_copy, i);
        append_node_gauge(reply, "gpuledger_node_unplaced_memory_bytes", node->name,
                          node->unplaced_memory);
    }
    g_string_append(reply, "# HELP gpuledger_allocations Pods in the ledger by state.\n"
                           "# TYPE gpuledger_allocations gauge\n");
    for (size_t i = 0; i < G_N_ELEMENTS(view_states); i++)
        g_string_append_printf(reply, "gpuledger_allocations{state=\"%s\"} %" G_GINT64_FORMAT "\n",
                               view_states[i], counts.n[i]);
    g_string_append_printf(reply,
                           "# HELP gpuledger_pods_waiting Bound pods that the node side has not "
                           "matched yet.\n"
                           "# TYPE gpuledger_pods_waiting gauge\n"
                           "gpuledger_pods_waiting %" G_GINT64_FORMAT "\n"
                           "# HELP gpuledger_ledger_drift 1 if the kept sums differ from a fresh "
                           "addition.\n"
                           "# TYPE gpuledger_ledger_drift gauge\n"
                           "gpuledger_ledger_drift %d\n",
                           counts.waiting, !sound);
    append_seals(store, reply);
}
