/* SPDX-License-Identifier: Apache-2.0 */
#include "app/views.h"

#include "app/metrics.h"

#include <stdlib.h>
#include <string.h>

/* --- copies --------------------------------------------------------------------------------- */

/* What a view needs of a pod and a node, taken under the lock, formatted after it. */
struct pod_copy {
    char *uid, *ns, *name;
    const struct dialect *dialect;
    enum allocation_state state;
    bool assigned, waiting;
    int64_t match_amount;
    int64_t assume_time_ns;
    uint32_t n_shares;
    struct share *shares;
};

struct node_copy {
    char *name;
    const struct dialect *dialect;
    bool present;
    int64_t memory_unit;
    int64_t unplaced_memory;
    int32_t n_cards;
    struct card *cards;
    GArray *pods; /* struct pod_copy, by namespace and name */
};

static void pod_copy_clear(gpointer data)
{
    struct pod_copy *pod = data;
    g_free(pod->uid);
    g_free(pod->ns);
    g_free(pod->name);
    g_free(pod->shares);
}

static void node_copy_clear(gpointer data)
{
    struct node_copy *node = data;
    g_free(node->name);
    g_free(node->cards);
    g_array_unref(node->pods);
}

static gint compare_pods(gconstpointer a, gconstpointer b)
{
    const struct pod_copy *left = a, *right = b;
    int order = strcmp(left->ns, right->ns);
    return order ? order : strcmp(left->name, right->name);
}

/* Parts of a card are shown as the bytes that they are of this one. */
static struct share *copy_shares(const struct allocation *allocation)
{
    struct share *shares =
        g_memdup2(allocation->shares, allocation->n_shares * sizeof(struct share));

    for (uint32_t i = 0; allocation->node && i < allocation->n_shares; i++) {
        const struct card *card = node_share_card(allocation->node, &shares[i]);
        if (shares[i].memory.kind == AMOUNT_THOUSANDTHS)
            shares[i].memory = (struct amount){
                card_bytes(allocation->node, card, shares[i].memory), AMOUNT_BYTES};
    }
    return shares;
}

static struct pod_copy pod_copy(const struct allocation *allocation)
{
    return (struct pod_copy){
        .uid = g_strdup(allocation->uid),
        .ns = g_strdup(allocation->ns),
        .name = g_strdup(allocation->name),
        .dialect = allocation->dialect,
        .state = allocation->state,
        .assigned = allocation->assigned,
        .waiting = allocation->waiting,
        .match_amount = allocation->match_amount,
        .assume_time_ns = allocation->assume_time_ns,
        .n_shares = allocation->n_shares,
        .shares = copy_shares(allocation),
    };
}

static struct node_copy node_copy(const struct node *node, bool with_pods)
{
    struct node_copy copy = {
        .name = g_strdup(node->name),
        .dialect = node->dialect,
        .present = node->present,
        .memory_unit = node->memory_unit,
        .unplaced_memory = node->unplaced_memory,
        .n_cards = node->n_cards,
        .cards = g_memdup2(node->cards, (gsize)node->n_cards * sizeof(struct card)),
        .pods = g_array_new(FALSE, FALSE, sizeof(struct pod_copy)),
    };
    g_array_set_clear_func(copy.pods, pod_copy_clear);
    for (guint i = 0; with_pods && i < node->allocations->len; i++) {
        struct pod_copy pod = pod_copy(g_ptr_array_index(node->allocations, i));
        g_array_append_val(copy.pods, pod);
    }
    return copy;
}

/* Nodes that share GPUs or hold pods that do, by name; all or the one. */
static GArray *copy_nodes(struct store *store, const char *name, bool with_pods)
{
    GArray *copies = g_array_new(FALSE, FALSE, sizeof(struct node_copy));
    struct ledger *ledger = store_lock(store);
    const GPtrArray *nodes = ledger_nodes(ledger);

    g_array_set_clear_func(copies, node_copy_clear);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = g_ptr_array_index(nodes, i);
        bool known = node->present || node->allocations->len > 0; /* not just by a ConfigMap */
        if (name ? !known || !g_str_equal(node->name, name)
                 : node->n_cards == 0 && node->allocations->len == 0)
            continue;
        struct node_copy copy = node_copy(node, with_pods);
        g_array_append_val(copies, copy);
    }
    store_unlock(store);
    for (guint i = 0; i < copies->len; i++)
        g_array_sort(g_array_index(copies, struct node_copy, i).pods, compare_pods);
    return copies;
}

/* `card` NULL: on none that the node has. */
static bool on_card(const struct node_copy *node, const struct share *share,
                    const struct card *card)
{
    if (card)
        return node->n_cards == 1 || share->card == card->index;
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (on_card(node, share, &node->cards[i]))
            return false;
    }
    return true;
}

/* --- the view of the Aliyun command-line tool ----------------------------------------------- */

static int64_t units(const struct node_copy *node, int64_t bytes)
{
    return bytes / node->memory_unit;
}

static void write_inspect_card(struct json_writer *writer, const struct node_copy *node,
                               const struct card *card)
{
    json_begin_object(writer);
    json_key_int(writer, "id", card->index);
    json_key_int(writer, "totalGPU", units(node, card->memory));
    json_key_int(writer, "usedGPU", units(node, card->memory_used));
    json_key(writer, "pods");
    json_begin_array(writer);
    for (guint i = 0; i < node->pods->len; i++) {
        const struct pod_copy *pod = &g_array_index(node->pods, struct pod_copy, i);
        int64_t bytes = 0;
        bool here = false;
        for (uint32_t j = 0; j < pod->n_shares; j++) {
            if (!on_card(node, &pod->shares[j], card))
                continue;
            here = true;
            bytes += amount_bytes(pod->shares[j].memory, node->memory_unit);
        }
        if (!here)
            continue;
        json_begin_object(writer);
        json_key_string(writer, "name", pod->name);
        json_key_string(writer, "namespace", pod->ns);
        json_key_int(writer, "usedGPU", units(node, bytes));
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static void write_inspect_node(struct json_writer *writer, const struct node_copy *node)
{
    int64_t total = 0, used = 0;

    for (int32_t i = 0; i < node->n_cards; i++) {
        total += units(node, node->cards[i].memory);
        used += units(node, node->cards[i].memory_used);
    }
    json_begin_object(writer);
    json_key_string(writer, "name", node->name);
    json_key_int(writer, "totalGPU", total);
    json_key_int(writer, "usedGPU", used);
    json_key(writer, "devs");
    json_begin_array(writer);
    for (int32_t i = 0; i < node->n_cards; i++)
        write_inspect_card(writer, node, &node->cards[i]);
    json_end_array(writer);
    json_end_object(writer);
}

bool view_inspect(struct store *store, const char *name, GString *reply)
{
    int64_t start_us = g_get_monotonic_time();
    g_autoptr(GArray) nodes = copy_nodes(store, name, true);
    bool found = !name || nodes->len > 0;
    struct json_writer writer;

    json_writer_init(&writer, reply);
    json_begin_object(&writer);
    json_key(&writer, "nodes");
    json_begin_array(&writer);
    for (guint i = 0; i < nodes->len; i++)
        write_inspect_node(&writer, &g_array_index(nodes, struct node_copy, i));
    json_end_array(&writer);
    if (!found) {
        g_autofree char *text = g_strdup_printf("node '%s' is not known", name);
        json_key_string(&writer, "error", text);
    }
    json_end_object(&writer);
    metrics_observe(VERB_INSPECT, PHASE_TOTAL, g_get_monotonic_time() - start_us);
    return found;
}

/* --- nodes ---------------------------------------------------------------------------------- */

static const char *const state_names[] = {
    [ALLOCATION_RESERVED] = "reserved",
    [ALLOCATION_UNKNOWN] = "unknown",
    [ALLOCATION_BOUND] = "bound",
    [ALLOCATION_CONFIRMED] = "confirmed",
};

static void write_pod(struct json_writer *writer, const struct pod_copy *pod, const char *node,
                      int64_t memory_unit)
{
    json_begin_object(writer);
    json_key_string(writer, "namespace", pod->ns);
    json_key_string(writer, "name", pod->name);
    json_key_string(writer, "uid", pod->uid);
    json_key_string(writer, "node", node);
    json_key_string(writer, "dialect", pod->dialect->name);
    json_key_string(writer, "state", pod->assigned ? "assigned" : state_names[pod->state]);
    json_key_bool(writer, "waiting", pod->waiting);
    json_key(writer, "shares");
    json_begin_array(writer);
    for (uint32_t i = 0; i < pod->n_shares; i++) {
        const struct share *share = &pod->shares[i];
        json_begin_object(writer);
        json_key(writer, "card");
        if (share->card == CARD_UNKNOWN)
            json_null(writer);
        else
            json_int(writer, share->card);
        json_key(writer, "container");
        if (share->container == CONTAINER_POD)
            json_null(writer);
        else
            json_int(writer, share->container);
        json_key_int(writer, "memoryBytes", amount_bytes(share->memory, memory_unit));
        json_key_int(writer, "coreThousandths", share->core);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static int64_t free_bytes(const struct node_copy *node, const struct card *card)
{
    return MAX(card->memory - card->memory_used - node->unplaced_memory, 0);
}

static void write_node(struct json_writer *writer, const struct node_copy *node)
{
    json_begin_object(writer);
    json_key_string(writer, "name", node->name);
    json_key_string(writer, "dialect", node->dialect ? node->dialect->name : NULL);
    json_key_bool(writer, "present", node->present);
    json_key_int(writer, "memoryUnitBytes", node->memory_unit);
    json_key_int(writer, "unplacedMemoryBytes", node->unplaced_memory);
    json_key(writer, "cards");
    json_begin_array(writer);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        json_begin_object(writer);
        json_key_int(writer, "index", card->index);
        json_key_bool(writer, "healthy", card->healthy);
        json_key_int(writer, "memoryBytes", card->memory);
        json_key_int(writer, "memoryUsedBytes", card->memory_used);
        json_key_int(writer, "memoryFreeBytes", free_bytes(node, card));
        json_key_int(writer, "holders", card->holders);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_key(writer, "pods");
    json_begin_array(writer);
    for (guint i = 0; i < node->pods->len; i++)
        write_pod(writer, &g_array_index(node->pods, struct pod_copy, i), node->name,
                  node->memory_unit);
    json_end_array(writer);
    json_end_object(writer);
}

bool view_nodes(struct store *store, const char *name, GString *reply)
{
    g_autoptr(GArray) nodes = copy_nodes(store, name, true);
    struct json_writer writer;

    if (name && nodes->len == 0)
        return false;
    json_writer_init(&writer, reply);
    if (name) {
        write_node(&writer, &g_array_index(nodes, struct node_copy, 0));
        return true;
    }
    json_begin_object(&writer);
    json_key(&writer, "nodes");
    json_begin_array(&writer);
    for (guint i = 0; i < nodes->len; i++)
        write_node(&writer, &g_array_index(nodes, struct node_copy, i));
    json_end_array(&writer);
    json_end_object(&writer);
    return true;
}

/* --- tables --------------------------------------------------------------------------------- */

/* "15GiB", "4096MiB": the node's own unit, so that it compares with what pods ask for. */
static char *format_units(const struct node_copy *node, int64_t bytes)
{
    const char *suffix = node->memory_unit == (INT64_C(1) << 20) ? "MiB" : "GiB";
    int64_t unit = node->memory_unit > 1 ? node->memory_unit : INT64_C(1) << 30;
    return g_strdup_printf("%" G_GINT64_FORMAT "%s", bytes / unit, suffix);
}

#define BAR_WIDTH 20

static void append_bar(GString *text, int64_t used, int64_t total)
{
    int64_t filled = total > 0 ? MIN(used * BAR_WIDTH / total, BAR_WIDTH) : 0;
    if (used > 0 && filled == 0)
        filled = 1;
    for (int64_t i = 0; i < BAR_WIDTH; i++)
        g_string_append_c(text, i < filled ? '#' : '.');
}

static void append_card_pods(GString *text, const struct node_copy *node, const struct card *card)
{
    bool first = true;

    for (guint i = 0; i < node->pods->len; i++) {
        const struct pod_copy *pod = &g_array_index(node->pods, struct pod_copy, i);
        for (uint32_t j = 0; j < pod->n_shares; j++) {
            const struct share *share = &pod->shares[j];
            if (!on_card(node, share, card))
                continue;
            g_autofree char *size =
                format_units(node, amount_bytes(share->memory, node->memory_unit));
            g_string_append_printf(text, "%s%s/%s(%s%s)", first ? "" : " ", pod->ns, pod->name,
                                   size, pod->waiting ? ", waiting" : "");
            first = false;
        }
    }
    if (first)
        g_string_append_c(text, '-');
}

static void append_card_row(GString *text, const struct node_copy *node, const struct card *card,
                            int name_width)
{
    g_autofree char *used = format_units(node, card->memory_used);
    g_autofree char *total = format_units(node, card->memory);
    g_autofree char *usage = g_strdup_printf("%s/%s", used, total);

    g_string_append_printf(text, "%-*s  %4d  ", name_width, node->name, card->index);
    append_bar(text, card->memory_used, card->memory);
    g_string_append_printf(text, "  %-17s  %-9s  ", usage, card->healthy ? "healthy" : "UNHEALTHY");
    append_card_pods(text, node, card);
    g_string_append_c(text, '\n');
}

bool view_nodes_table(struct store *store, const char *name, GString *reply)
{
    g_autoptr(GArray) nodes = copy_nodes(store, name, true);
    int name_width = 4;

    if (name && nodes->len == 0)
        return false;
    for (guint i = 0; i < nodes->len; i++)
        name_width = MAX(name_width,
                         (int)strlen(g_array_index(nodes, struct node_copy, i).name));
    g_string_append_printf(reply, "%-*s  CARD  %-*s  %-17s  %-9s  PODS\n", name_width, "NODE",
                           BAR_WIDTH, "MEMORY", "USED/TOTAL", "HEALTH");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node_copy *node = &g_array_index(nodes, struct node_copy, i);
        for (int32_t j = 0; j < node->n_cards; j++)
            append_card_row(reply, node, &node->cards[j], name_width);
        if (node->unplaced_memory > 0) {
            g_autofree char *size = format_units(node, node->unplaced_memory);
            g_string_append_printf(reply, "%-*s     ?  on no known card, counted on each: %s: ",
                                   name_width, node->name, size);
            append_card_pods(reply, node, NULL);
            g_string_append_c(reply, '\n');
        }
    }
    return true;
}

/* --- pods ----------------------------------------------------------------------------------- */

struct pod_search {
    const char *ns, *name;
    const struct allocation *found;
};

static void match_pod(struct allocation *allocation, void *data)
{
    struct pod_search *search = data;
    if (g_str_equal(allocation->name, search->name) && g_str_equal(allocation->ns, search->ns))
        search->found = allocation;
}

bool view_pod(struct store *store, const char *ns, const char *name, GString *reply)
{
    struct pod_search search = {ns, name, NULL};
    struct pod_copy pod = {0};
    g_autofree char *node = NULL;
    int64_t memory_unit = 1;

    ledger_each(store_lock(store), match_pod, &search);
    if (search.found) {
        pod = pod_copy(search.found);
        node = g_strdup(search.found->node->name);
        memory_unit = search.found->node->memory_unit;
    }
    store_unlock(store);
    if (!node)
        return false;

    struct json_writer writer;
    json_writer_init(&writer, reply);
    write_pod(&writer, &pod, node, memory_unit);
    pod_copy_clear(&pod);
    return true;
}

/* --- metrics -------------------------------------------------------------------------------- */

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

static const struct card_gauge {
    const char *name;
    const char *help;
    int64_t (*value)(const struct card *card);
} card_gauges[] = {
    {"gpuledger_card_memory_bytes", "Memory of a card.", gauge_memory},
    {"gpuledger_card_memory_used_bytes", "Memory that pods hold of a card.", gauge_used},
    {"gpuledger_card_holders", "Pods on a card.", gauge_holders},
    {"gpuledger_card_healthy", "Whether a card may take pods.", gauge_healthy},
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

struct state_counts {
    int64_t n[G_N_ELEMENTS(state_names)];
    int64_t waiting;
};

static void count_state(struct allocation *allocation, void *data)
{
    struct state_counts *counts = data;
    counts->n[allocation->state]++;
    counts->waiting += allocation->waiting;
}

void view_metrics(struct store *store, GString *reply)
{
    g_autoptr(GArray) nodes = copy_nodes(store, NULL, false);
    g_autoptr(GError) drift = NULL;
    struct state_counts counts = {0};
    struct ledger *ledger = store_lock(store);
    bool sound = ledger_verify(ledger, &drift);

    ledger_each(ledger, count_state, &counts);
    store_unlock(store);

    append_card_gauges(reply, nodes);
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
    for (size_t i = 0; i < G_N_ELEMENTS(state_names); i++)
        g_string_append_printf(reply, "gpuledger_allocations{state=\"%s\"} %" G_GINT64_FORMAT "\n",
                               state_names[i], counts.n[i]);
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
}
