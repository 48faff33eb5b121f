/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's gauges; the counters are in metrics.c. */
#include "base/metrics_text.h"
#include "core/ledger.h"
#include "inspect/views.h"
#include "store/node_copy.h"
#include "store/node_walk.h"

#include <gpuledger/fragmentation.h>

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
    const char *sum_name; /* the same of all cards, which is there always */
    const char *sum_help;
    int64_t (*value)(const struct card *card);
} card_gauges[] = {
    {"gpuledger_card_memory_bytes", "Memory of a card.", "gpuledger_cards_memory_bytes",
     "Memory of all cards.", gauge_memory},
    {"gpuledger_card_memory_used_bytes", "Memory that pods hold of a card.",
     "gpuledger_cards_memory_used_bytes", "Memory that pods hold of all cards.", gauge_used},
    {"gpuledger_card_holders", "Shares of a card that pods hold, one for each container.",
     "gpuledger_cards_holders", "Shares of all cards that pods hold.", gauge_holders},
    {"gpuledger_card_healthy", "1 if the node side reports the card as healthy.",
     "gpuledger_cards_healthy", "Cards that their node side reports as healthy.", gauge_healthy},
    {"gpuledger_card_closed", "1 if an annotation of the node keeps new pods off the card.",
     "gpuledger_cards_closed", "Cards that an annotation of their node keeps new pods off.",
     gauge_closed},
};

/* --- numbers as text: there are many of them ------------------------------------------------- */

static void append_int(GString *text, int64_t value)
{
    char digits[24];
    char *at = digits + sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;

    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (value < 0)
        *--at = '-';
    g_string_append_len(text, at, digits + sizeof digits - at);
}

static void append_thousandths(GString *text, int64_t value)
{
    append_int(text, value / 1000);
    g_string_append_c(text, '.');
    for (int64_t part = 100; part > 0; part /= 10)
        g_string_append_c(text, (char)('0' + value / part % 10));
}

static void append_help(GString *text, const char *name, const char *help)
{
    g_string_append_printf(text, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* --- what is read of the nodes --------------------------------------------------------------- */

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
    {"gpuledger_pool_devices", "Devices of a resource that kubelet hands out by count.",
     gauge_capacity},
    {"gpuledger_pool_devices_used", "Devices of a resource that pods hold.", gauge_given},
};

#define CARD_GAUGES G_N_ELEMENTS(card_gauges)
#define POOL_GAUGES G_N_ELEMENTS(pool_gauges)

struct card_numbers {
    int32_t index;
    int64_t values[CARD_GAUGES];
};

struct pool_numbers {
    char *resource;
    int64_t values[POOL_GAUGES];
};

struct node_numbers {
    char *name;
    bool shares, distrusted, silent;
    int64_t fragmented, unplaced_memory;
    guint n_cards, n_pools; /* which follow those of the node before */
};

/* What was read under one hold of the lock, and the text of all that was read before. A metric's series
 * stand together, so there is a text for each. */
struct gathering {
    struct demand *demand;
    bool each_card;
    GArray *nodes, *cards, *pools; /* struct node_numbers, card_numbers, pool_numbers */
    GString *label;                /* of the node that is written */
    GString *card_texts[CARD_GAUGES], *pool_texts[POOL_GAUGES];
    GString *fragmented_text, *unplaced_text, *doubted_text, *silent_text;
    int64_t n_cards, card_sums[CARD_GAUGES];
    int64_t fragmented, waiting;
    int64_t now_ns;
};

static void gathering_init(struct gathering *all, struct store *store, int64_t cards_max)
{
    struct moment moment;

    *all = (struct gathering){
        .nodes = g_array_new(FALSE, FALSE, sizeof(struct node_numbers)),
        .cards = g_array_new(FALSE, FALSE, sizeof(struct card_numbers)),
        .pools = g_array_new(FALSE, FALSE, sizeof(struct pool_numbers)),
        .label = g_string_new(NULL),
        .fragmented_text = g_string_new(NULL),
        .unplaced_text = g_string_new(NULL),
        .doubted_text = g_string_new(NULL),
        .silent_text = g_string_new(NULL),
    };
    for (size_t g = 0; g < CARD_GAUGES; g++)
        all->card_texts[g] = g_string_new(NULL);
    for (size_t g = 0; g < POOL_GAUGES; g++)
        all->pool_texts[g] = g_string_new(NULL);
    all->demand = store_demand_copy(store);
    all->each_card = (int64_t)ledger_cards(store_decide(store, &moment)) <= cards_max;
    store_unlock(store);
    all->now_ns = moment.now_ns;
}

static void gathering_clear(struct gathering *all)
{
    demand_free(all->demand);
    g_array_unref(all->nodes);
    g_array_unref(all->cards);
    g_array_unref(all->pools);
    g_string_free(all->label, TRUE);
    for (size_t g = 0; g < CARD_GAUGES; g++)
        g_string_free(all->card_texts[g], TRUE);
    for (size_t g = 0; g < POOL_GAUGES; g++)
        g_string_free(all->pool_texts[g], TRUE);
    g_string_free(all->fragmented_text, TRUE);
    g_string_free(all->unplaced_text, TRUE);
    g_string_free(all->doubted_text, TRUE);
    g_string_free(all->silent_text, TRUE);
}

/* Under the lock. */
static void gather_node(const struct node *node, void *data)
{
    struct gathering *all = data;
    const struct node_numbers numbers = {
        .shares = node->n_cards > 0 || node->n_pools > 0 || node->allocations->len > 0,
        .distrusted = node->distrusted && node->present,
        .silent = node->present && node_is_silent(node, node->heartbeat.dialect, all->now_ns),
        .name = g_strdup(node->name),
        .fragmented = fragmentation_of(node, all->demand),
        .unplaced_memory = node->unplaced_memory,
        .n_cards = (guint)node->n_cards,
        .n_pools = (guint)node->n_pools,
    };

    g_array_append_val(all->nodes, numbers);
    all->waiting += node->n_waiting;
    all->n_cards += node->n_cards;
    for (int32_t i = 0; i < node->n_cards; i++) {
        struct card_numbers card = {.index = node->cards[i].index};
        for (size_t g = 0; g < CARD_GAUGES; g++) {
            card.values[g] = card_gauges[g].value(&node->cards[i]);
            all->card_sums[g] += card.values[g];
        }
        if (all->each_card)
            g_array_append_val(all->cards, card);
    }
    for (int32_t i = 0; i < node->n_pools; i++) {
        struct pool_numbers pool = {.resource = g_strdup(node->pools[i].resource)};
        for (size_t g = 0; g < POOL_GAUGES; g++)
            pool.values[g] = pool_gauges[g].value(&node->pools[i]);
        g_array_append_val(all->pools, pool);
    }
}

/* --- their text ------------------------------------------------------------------------------ */

/* name{node="…" */
static void begin_series(GString *text, const char *name, const struct gathering *all)
{
    g_string_append(text, name);
    g_string_append_len(text, all->label->str, (gssize)all->label->len);
}

static void write_card(struct gathering *all, const struct card_numbers *card)
{
    for (size_t g = 0; g < CARD_GAUGES; g++) {
        GString *text = all->card_texts[g];
        begin_series(text, card_gauges[g].name, all);
        g_string_append(text, ",card=\"");
        append_int(text, card->index);
        g_string_append(text, "\"} ");
        append_int(text, card->values[g]);
        g_string_append_c(text, '\n');
    }
}

static void write_pool(struct gathering *all, struct pool_numbers *pool)
{
    for (size_t g = 0; g < POOL_GAUGES; g++) {
        GString *text = all->pool_texts[g];
        begin_series(text, pool_gauges[g].name, all);
        g_string_append(text, ",resource=\"");
        metrics_append_label(text, pool->resource);
        g_string_append(text, "\"} ");
        append_int(text, pool->values[g]);
        g_string_append_c(text, '\n');
    }
    g_free(pool->resource);
}

static void write_node(struct gathering *all, const struct node_numbers *node)
{
    if (node->shares) {
        begin_series(all->fragmented_text, "gpuledger_node_fragmented_gpus", all);
        g_string_append(all->fragmented_text, "} ");
        append_thousandths(all->fragmented_text, node->fragmented);
        g_string_append_c(all->fragmented_text, '\n');
        begin_series(all->unplaced_text, "gpuledger_node_unplaced_memory_bytes", all);
        g_string_append(all->unplaced_text, "} ");
        append_int(all->unplaced_text, node->unplaced_memory);
        g_string_append_c(all->unplaced_text, '\n');
        all->fragmented += node->fragmented;
    }
    if (node->distrusted) {
        begin_series(all->doubted_text, "gpuledger_node_doubted", all);
        g_string_append(all->doubted_text, "} 1\n");
    }
    if (node->silent) {
        begin_series(all->silent_text, "gpuledger_node_silent", all);
        g_string_append(all->silent_text, "} 1\n");
    }
}

/* Writes what was read, and makes room for what comes. */
static void write_gathered(struct gathering *all)
{
    guint card = 0, pool = 0;

    for (guint i = 0; i < all->nodes->len; i++) {
        struct node_numbers *node = &g_array_index(all->nodes, struct node_numbers, i);
        g_string_assign(all->label, "{node=\"");
        metrics_append_label(all->label, node->name);
        g_string_append_c(all->label, '"');
        write_node(all, node);
        for (guint j = 0; all->each_card && j < node->n_cards; j++)
            write_card(all, &g_array_index(all->cards, struct card_numbers, card++));
        for (guint j = 0; j < node->n_pools; j++)
            write_pool(all, &g_array_index(all->pools, struct pool_numbers, pool++));
        g_free(node->name);
    }
    g_array_set_size(all->nodes, 0);
    g_array_set_size(all->cards, 0);
    g_array_set_size(all->pools, 0);
}

static void append_text(GString *reply, const char *name, const char *help, const GString *text)
{
    append_help(reply, name, help);
    g_string_append_len(reply, text->str, (gssize)text->len);
}

static void append_sum(GString *reply, const char *name, const char *help, int64_t value)
{
    append_help(reply, name, help);
    g_string_append_printf(reply, "%s %" G_GINT64_FORMAT "\n", name, value);
}

static void append_gathered(GString *reply, const struct gathering *all)
{
    for (size_t g = 0; all->each_card && g < CARD_GAUGES; g++)
        append_text(reply, card_gauges[g].name, card_gauges[g].help, all->card_texts[g]);
    append_sum(reply, "gpuledger_cards", "Cards of all nodes.", all->n_cards);
    for (size_t g = 0; g < CARD_GAUGES; g++)
        append_sum(reply, card_gauges[g].sum_name, card_gauges[g].sum_help, all->card_sums[g]);
    for (size_t g = 0; g < POOL_GAUGES; g++)
        append_text(reply, pool_gauges[g].name, pool_gauges[g].help, all->pool_texts[g]);
    append_text(reply, "gpuledger_node_fragmented_gpus",
                "Free GPUs of a node that the average expected pod could not use.",
                all->fragmented_text);
    append_help(reply, "gpuledger_fragmented_gpus", "Free GPUs of all nodes that the average expected pod could not use.");
    g_string_append(reply, "gpuledger_fragmented_gpus ");
    append_thousandths(reply, all->fragmented);
    g_string_append_c(reply, '\n');
    append_text(reply, "gpuledger_node_unplaced_memory_bytes",
                "Memory of pods on no known card, counted on each.", all->unplaced_text);
    /* Which words it are, and what counts instead, the log says. */
    append_text(reply, "gpuledger_node_doubted",
                "1 for each node whose Node object cannot be understood, or contradicts itself.",
                all->doubted_text);
    append_text(reply, "gpuledger_node_silent",
                "1 for each node whose device plugin used to report and does not any more.",
                all->silent_text);
    append_sum(reply, "gpuledger_pods_waiting", "Bound pods that the node side has not matched yet.",
               all->waiting);
}

/* --- containers ------------------------------------------------------------------------------ */

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

static void append_shares(GString *text, const struct share_gauge *gauge, const GArray *nodes)
{
    for (guint i = 0; i < nodes->len; i++) {
        const struct node_copy *node = &g_array_index(nodes, struct node_copy, i);
        for (uint32_t j = 0; j < node->n_pods; j++) {
            const struct pod_copy *pod = &node->pods[j];
            for (uint32_t k = 0; k < pod->n_shares; k++)
                append_share(text, gauge, node, pod, &pod->shares[k]);
        }
    }
}

void view_pod_metrics(struct store *store, GString *reply)
{
    g_autoptr(node_reader) reader = node_reader_new(store, NULL, true);
    GString *texts[G_N_ELEMENTS(share_gauges)];
    const GArray *nodes;

    for (size_t g = 0; g < G_N_ELEMENTS(share_gauges); g++)
        texts[g] = g_string_new(NULL);
    while ((nodes = node_reader_next(reader))) {
        for (size_t g = 0; g < G_N_ELEMENTS(share_gauges); g++)
            append_shares(texts[g], &share_gauges[g], nodes);
    }
    for (size_t g = 0; g < G_N_ELEMENTS(share_gauges); g++) {
        append_text(reply, share_gauges[g].name, share_gauges[g].help, texts[g]);
        g_string_free(texts[g], TRUE);
    }
}

/* --- the rest -------------------------------------------------------------------------------- */

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

/* Once for each node, for whomever it is. */
static void append_left_out(GString *text, struct store *store)
{
    g_autoptr(GHashTable) nodes = view_left_out(store);
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(nodes), compare_names);

    g_string_append(text, "# HELP gpuledger_node_left_out 1 for each node that is left out, whole or in "
                          "part, because its kubelet rejected pods.\n"
                          "# TYPE gpuledger_node_left_out gauge\n");
    for (const GList *name = names; name; name = name->next) {
        g_string_append(text, "gpuledger_node_left_out{node=\"");
        metrics_append_label(text, name->data);
        g_string_append(text, "\"} 1\n");
    }
    g_string_append_printf(text, "# HELP gpuledger_nodes_left_out Nodes that are left out, whole or in part.\n"
                                 "# TYPE gpuledger_nodes_left_out gauge\n"
                                 "gpuledger_nodes_left_out %u\n", g_hash_table_size(nodes));
}

/* How many pods each key has sealed: one that is not the newest can go when it has none. */
static void append_seals(struct store *store, GString *reply)
{
    struct seals *seals = store_options(store)->seals;

    g_autoptr(keyring) keyring = seals ? seals_keyring(seals) : keyring_new();
    g_string_append(reply, "# HELP gpuledger_pods_sealed Pods by the key of their seal.\n"
                           "# TYPE gpuledger_pods_sealed gauge\n");
    g_autofree unsigned *sealed = g_new(unsigned, keyring_size(keyring));
    store_lock(store);
    const struct sealing *sealing = store_sealing(store);
    for (unsigned i = 0; i < keyring_size(keyring); i++)
        sealed[i] = sealing_count(sealing, keyring_id(keyring, i));
    const unsigned open = sealing_count(sealing, NULL);
    const bool full = sealing_count_in_the_way(sealing, keyring) > 0;
    store_unlock(store);
    for (unsigned i = 0; i < keyring_size(keyring); i++)
        g_string_append_printf(reply, "gpuledger_pods_sealed{key=\"%s\"} %u\n",
                               keyring_id(keyring, i), sealed[i]);
    g_string_append_printf(reply,
                           "# HELP gpuledger_pods_to_seal Pods whose seal is still to be written.\n"
                           "# TYPE gpuledger_pods_to_seal gauge\n"
                           "gpuledger_pods_to_seal %u\n",
                           open);
    append_sum(
        reply, "gpuledger_seal_keys_full",
        "1 while no other key can be made: there are eight, and pods are sealed with the oldest.",
        full);
}

static void count_plan(const char *node, const struct plan_mark *mark, bool lives, void *data)
{
    *(unsigned *)data += lives;
}

static void append_states(struct store *store, GString *reply)
{
    const struct ledger *ledger = store_lock(store);
    size_t n[VIEW_STATES_N];
    unsigned n_plans = 0;

    for (size_t i = 0; i < VIEW_STATES_N; i++)
        n[i] = ledger_count(ledger, (enum allocation_state)i);
    store_marks_each(store, count_plan, &n_plans);
    store_unlock(store);
    append_left_out(reply, store);
    append_help(reply, "gpuledger_nodes_planned", "Nodes on which a plan is at work.");
    g_string_append_printf(reply, "gpuledger_nodes_planned %u\n", n_plans);
    append_help(reply, "gpuledger_allocations", "Pods in the ledger by state.");
    for (size_t i = 0; i < VIEW_STATES_N; i++)
        g_string_append_printf(reply, "gpuledger_allocations{state=\"%s\"} %zu\n", view_states[i],
                               n[i]);
}

void view_metrics(struct store *store, int64_t cards_max, GString *reply)
{
    struct gathering all;
    struct node_walk walk;

    append_states(store, reply);
    gathering_init(&all, store, cards_max);
    node_walk_init(&walk, store);
    while (node_walk_step(&walk, gather_node, &all))
        write_gathered(&all);
    append_gathered(reply, &all);
    gathering_clear(&all);
    append_sum(reply, "gpuledger_ledger_drift",
               "1 if the kept sums differed from a fresh count at the last comparison.",
               !store_is_sound(store));
    append_seals(store, reply);
    view_quotas_metrics(store, reply);
    view_groups_metrics(store, reply);
}
