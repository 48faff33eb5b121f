/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include "chance.h"

#include <string.h>

void oracle_init(struct oracle *oracle)
{
    *oracle = (struct oracle){0};
    for (int i = 0; i < ORACLE_NODES; i++) {
        g_snprintf(oracle->nodes[i].name, sizeof oracle->nodes[i].name, "n%d", i);
        oracle->nodes[i].unit = 1;
    }
    for (int i = 0; i < ORACLE_PODS; i++) {
        g_snprintf(oracle->pods[i].uid, sizeof oracle->pods[i].uid, "u%d", i);
        oracle->pods[i].node = -1;
    }
}

int64_t oracle_bytes(const struct oracle *oracle, int node, struct amount amount)
{
    __int128 bytes = amount.value;

    if (amount.kind == AMOUNT_NODE_UNITS)
        bytes *= oracle->nodes[node].unit;
    return bytes > AMOUNT_BYTES_MAX ? AMOUNT_BYTES_MAX : (int64_t)bytes;
}

/* Where a share sits: on the only card, on the card it names, or nobody knows where. */
static int32_t place_of(const struct oracle_node *node, const struct share *share)
{
    if (node->n_cards == 1)
        return 0;
    return share->card >= 0 && share->card < node->n_cards ? share->card : CARD_UNKNOWN;
}

struct oracle_usage oracle_usage(const struct oracle *oracle, int node, int32_t card)
{
    struct oracle_usage usage = {0};

    for (int i = 0; i < ORACLE_PODS; i++) {
        const struct oracle_pod *pod = &oracle->pods[i];
        for (uint32_t j = 0; pod->node == node && j < pod->n_shares; j++) {
            const struct share *share = &pod->shares[j];
            if (place_of(&oracle->nodes[node], share) != card)
                continue;
            usage.memory += oracle_bytes(oracle, node, share->memory);
            usage.core += share->core;
            usage.holders++;
            usage.exclusive += share->exclusive;
        }
    }
    return usage;
}

int64_t oracle_memory_free(const struct oracle *oracle, int node, int32_t card)
{
    int64_t used =
        oracle_usage(oracle, node, card).memory + oracle_usage(oracle, node, CARD_UNKNOWN).memory;
    int64_t capacity = oracle->nodes[node].memory[card];

    return used < capacity ? capacity - used : 0;
}

int64_t oracle_core_free(const struct oracle *oracle, int node, int32_t card)
{
    int64_t used =
        oracle_usage(oracle, node, card).core + oracle_usage(oracle, node, CARD_UNKNOWN).core;

    return used < CORE_WHOLE ? CORE_WHOLE - used : 0;
}

static bool fits_card(const struct oracle *oracle, int node, int32_t card,
                      const struct share *shares, uint32_t n)
{
    struct oracle_usage there = oracle_usage(oracle, node, card), added = {0};
    struct oracle_usage unplaced = oracle_usage(oracle, node, CARD_UNKNOWN);

    for (uint32_t i = 0; i < n; i++) {
        if (shares[i].card != card)
            continue;
        added.memory += oracle_bytes(oracle, node, shares[i].memory);
        added.core += shares[i].core;
        added.holders++;
        added.exclusive += shares[i].exclusive;
    }
    if (added.holders == 0)
        return true;
    int32_t exclusive = there.exclusive + unplaced.exclusive + added.exclusive;
    int32_t holders = there.holders + unplaced.holders + added.holders;
    return !oracle->nodes[node].sick[card] &&
           added.memory <= oracle_memory_free(oracle, node, card) &&
           oracle_core_free(oracle, node, card) > 0 &&
           added.core <= oracle_core_free(oracle, node, card) && (exclusive == 0 || holders == 1);
}

bool oracle_fits(const struct oracle *oracle, int node, const struct share *shares, uint32_t n)
{
    const struct oracle_node *where = &oracle->nodes[node];

    if (!where->present)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (shares[i].card < 0 || shares[i].card >= where->n_cards)
            return false;
    }
    for (int32_t card = 0; card < where->n_cards; card++) {
        if (!fits_card(oracle, node, card, shares, n))
            return false;
    }
    return true;
}

/* --- comparing ------------------------------------------------------------------------------ */

static void check_card(const struct oracle *oracle, int at, const struct node *node, int32_t index)
{
    const struct card *card = node_card(node, index);
    struct oracle_usage usage = oracle_usage(oracle, at, index);
    int64_t unplaced = oracle_usage(oracle, at, CARD_UNKNOWN).memory;
    int64_t left = card_memory_free(node, card);

    HOLDS(card && card->index == index, "%s card %d", node->name, index);
    HOLDS(card->memory == oracle->nodes[at].memory[index], "%s card %d", node->name, index);
    HOLDS(card->healthy == !oracle->nodes[at].sick[index], "%s card %d", node->name, index);
    HOLDS(card->memory_used == usage.memory, "%s card %d: %" G_GINT64_FORMAT, node->name, index,
          usage.memory);
    HOLDS(card->core_used == usage.core, "%s card %d", node->name, index);
    HOLDS(card->holders == usage.holders, "%s card %d", node->name, index);
    HOLDS(card->exclusive == usage.exclusive, "%s card %d", node->name, index);
    HOLDS(left == oracle_memory_free(oracle, at, index), "%s card %d", node->name, index);
    HOLDS(left == 0 ? card->memory_used + unplaced >= card->memory
                    : card->memory_used + unplaced + left == card->memory,
          "%s card %d: used and free make the card", node->name, index);
    HOLDS(card_core_free(node, card) == oracle_core_free(oracle, at, index), "%s card %d",
          node->name, index);
}

void oracle_check_node(const struct oracle *oracle, int at, const struct ledger *ledger)
{
    const struct oracle_node *expected = &oracle->nodes[at];
    const struct node *node = ledger_node(ledger, expected->name);
    struct oracle_usage unplaced = oracle_usage(oracle, at, CARD_UNKNOWN);
    int64_t most = -1;
    guint pods = 0, guests = 0, waiting = 0;
    struct host used = {0};
    bool sick = false;

    for (int i = 0; i < ORACLE_PODS; i++) {
        const struct oracle_pod *pod = &oracle->pods[i];
        if (pod->node != at)
            continue;
        pods += !pod->guest;
        guests += pod->guest;
        waiting += pod->waiting;
        used.cpu += pod->host.cpu;
        used.memory += pod->host.memory;
        used.pods += pod->host.pods;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(expected->sick); i++)
        sick |= expected->sick[i];
    HOLDS((node != NULL) == (expected->present || pods + guests > 0 || sick), "%s", expected->name);
    if (!node)
        return;
    HOLDS(node->present == expected->present, "%s", node->name);
    HOLDS((node->dialect != NULL) == expected->shared, "%s", node->name);
    HOLDS(node->n_cards == expected->n_cards, "%s", node->name);
    HOLDS(node->allocations->len == pods, "%s", node->name);
    HOLDS(node->n_waiting == (int32_t)waiting, "%s", node->name);
    HOLDS(node->n_cpu_pods == guests, "%s", node->name);
    HOLDS(host_equal(&node->host, &expected->host), "%s", node->name);
    HOLDS(host_equal(&node->host_used, &used), "%s", node->name);
    HOLDS(node->host.cpu == 0 ? node_host_free(node).cpu == INT64_MAX
                              : node_host_free(node).cpu == MAX(node->host.cpu - used.cpu, 0),
          "%s", node->name);
    HOLDS(node->unplaced_memory == unplaced.memory, "%s", node->name);
    HOLDS(node->unplaced_core == unplaced.core, "%s", node->name);
    HOLDS(node->unplaced_holders == unplaced.holders, "%s", node->name);
    HOLDS(node->unplaced_exclusive == unplaced.exclusive, "%s", node->name);
    for (int32_t i = 0; i < expected->n_cards; i++) {
        check_card(oracle, at, node, i);
        if (!expected->sick[i] && oracle_core_free(oracle, at, i) > 0 &&
            oracle_usage(oracle, at, i).exclusive + unplaced.exclusive == 0)
            most = MAX(most, oracle_memory_free(oracle, at, i));
    }
    HOLDS(node->memory_free_max == most || (most < 0 && expected->n_cards == 0), "%s", node->name);
    HOLDS(!node_card(node, expected->n_cards), "%s", node->name);
    HOLDS(!node_card(node, CARD_UNKNOWN), "%s", node->name);
}

static void check_share(const char *uid, const struct share *held, const struct share *expected)
{
    HOLDS(held->memory.value == expected->memory.value, "%s", uid);
    HOLDS(held->memory.kind == expected->memory.kind, "%s", uid);
    HOLDS(held->container == expected->container, "%s", uid);
    HOLDS(held->card == expected->card, "%s", uid);
    HOLDS(held->core == expected->core, "%s", uid);
    HOLDS(held->exclusive == expected->exclusive, "%s", uid);
}

static void check_pod(const struct oracle *oracle, const struct oracle_pod *pod,
                      const struct ledger *ledger)
{
    const struct allocation *held = ledger_get(ledger, pod->uid);

    HOLDS((held != NULL) == (pod->node >= 0 && !pod->guest), "%s", pod->uid);
    if (!held)
        return;
    HOLDS(g_str_equal(held->uid, pod->uid), "%s", pod->uid);
    HOLDS(g_str_equal(held->node->name, oracle->nodes[pod->node].name), "%s", pod->uid);
    HOLDS(held->assigned == pod->assigned, "%s", pod->uid);
    HOLDS(held->waiting == pod->waiting, "%s", pod->uid);
    HOLDS(held->match_amount == pod->match_amount, "%s", pod->uid);
    HOLDS(held->assume_time_ns == pod->assume_time_ns, "%s", pod->uid);
    HOLDS(held->n_shares == pod->n_shares, "%s", pod->uid);
    for (uint32_t i = 0; i < pod->n_shares; i++)
        check_share(pod->uid, &held->shares[i], &pod->shares[i]);
}

void oracle_check(const struct oracle *oracle, const struct ledger *ledger)
{
    g_autoptr(GError) error = NULL;
    size_t n = 0;

    for (int i = 0; i < ORACLE_NODES; i++)
        oracle_check_node(oracle, i, ledger);
    for (int i = 0; i < ORACLE_PODS; i++) {
        check_pod(oracle, &oracle->pods[i], ledger);
        n += oracle->pods[i].node >= 0 && !oracle->pods[i].guest;
    }
    HOLDS(ledger_size(ledger) == n, "%zu pods", n);
    HOLDS(ledger_verify(ledger, &error), "%s", error->message);
}

/* --- as the ledger takes it ----------------------------------------------------------------- */

struct allocation *oracle_allocation(const struct oracle_pod *pod, const struct dialect *dialect)
{
    struct allocation *allocation = allocation_new(pod->uid, "ml", pod->uid, pod->n_shares);

    allocation->dialect = dialect;
    allocation->assigned = pod->assigned;
    allocation->waiting = pod->waiting;
    allocation->host = pod->host;
    allocation->match_amount = pod->match_amount;
    allocation->assume_time_ns = pod->assume_time_ns;
    memcpy(allocation->shares, pod->shares, pod->n_shares * sizeof pod->shares[0]);
    return allocation;
}

void oracle_topology(const struct oracle_node *node, const struct dialect *dialect,
                     struct topology *ret_topology)
{
    static const char *const uuids[] = {"GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4",
                                        "GPU-5", "GPU-6", "GPU-7"};
    G_STATIC_ASSERT(G_N_ELEMENTS(uuids) >= ORACLE_CARDS);

    *ret_topology = (struct topology){
        .dialect = dialect,
        .memory_unit = node->unit,
        .host = node->host,
        .n_cards = node->n_cards,
    };
    for (int32_t i = 0; i < node->n_cards; i++)
        ret_topology->cards[i] =
            (struct topology_card){.memory = node->memory[i], .uuid = uuids[i]};
}

size_t oracle_sick(const struct oracle_node *node, int32_t *ret_indices)
{
    size_t n = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(node->sick); i++) {
        if (node->sick[i])
            ret_indices[n++] = (int32_t)i;
    }
    return n;
}
