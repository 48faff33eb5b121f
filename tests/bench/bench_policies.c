/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One decision among 1,213 nodes by each policy: all nodes searched and rated, one chosen. CPU time
 * of this thread, against binpack's in the same run. The cluster fills up and stays full, as pods
 * leave at random.
 */
#include <gpuledger/ranking.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NODES 1213
#define DECISIONS 6000
#define GIB (INT64_C(1) << 30)

static const char row;
#define DIALECT ((const struct dialect *)(const void *)&row)

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static struct request *draw_request(void)
{
    static const int32_t parts[] = {100, 200, 230, 300, 330, 470, 500, 650, 810};
    struct request *request = request_new(DIALECT, draw(100) < 88);

    request->host = (struct host){(int64_t)(1 + draw(12)) * 1000, 0};
    if (request->n_asks == 0)
        return request;
    const bool whole = draw(2);
    const int32_t part = whole ? 1000 : parts[draw(G_N_ELEMENTS(parts))];
    request->asks[0] = (struct card_ask){.memory = {part, AMOUNT_THOUSANDTHS},
                                         .core = part,
                                         .exclusive = whole,
                                         .count = whole && draw(20) == 0 ? 1 << draw(4) : 1};
    return request;
}

static struct ledger *build(void)
{
    static const char *const models[] = {"A10", "A100", "T4"};
    struct ledger *ledger = ledger_new();
    g_autoptr(topology) topology = topology_new();

    topology->dialect = DIALECT;
    topology->memory_unit = 1;
    for (int i = 0; i < NODES; i++) {
        g_autofree char *name = g_strdup_printf("node-%04d", i);
        topology->n_cards = 2 << draw(3);
        topology->host.cpu = 12000 * (int64_t)topology->n_cards;
        for (int32_t j = 0; j < topology->n_cards; j++)
            topology->cards[j] = (struct topology_card){
                .memory = 1000 * GIB, .model = topology_keep(topology, models[i % 3])};
        ledger_set_topology(ledger, name, topology);
    }
    return ledger;
}

static double now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

struct choice {
    struct rank ranks[NODES];
    struct placement placements[NODES];
    size_t n, winner;
};

static void choose(struct ledger *ledger, const struct policy *policy, struct demand *demand,
                   const struct request *request, struct choice *choice)
{
    const GPtrArray *nodes = ledger_nodes(ledger);

    demand_settle(demand, ledger);
    choice->n = 0;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = g_ptr_array_index(nodes, i);
        struct placement *placement = &choice->placements[choice->n];
        if (node_host_free(node).cpu < request->host.cpu ||
            placement_find(node, request, policy, demand, CARD_UNKNOWN, placement) != REASON_NONE)
            continue;
        ranking_rate(policy, node, placement, demand, &choice->ranks[choice->n++]);
    }
    choice->winner = ranking_winner(policy, choice->ranks, choice->n);
}

static void take(struct ledger *ledger, const struct request *request, const struct choice *choice,
                 const char *uid)
{
    const struct placement *placement = &choice->placements[choice->winner];
    const char *node = choice->ranks[choice->winner].name;
    enum reason reason;

    if (request->n_asks == 0) {
        ledger_put_cpu_pod(ledger, node, uid, request->host, 0);
        return;
    }
    struct allocation *allocation = allocation_new(uid, "ml", uid, placement->n_shares);
    allocation->dialect = DIALECT;
    allocation->host = request->host;
    memcpy(allocation->shares, placement->shares, placement->n_shares * sizeof(struct share));
    ledger_reserve(ledger, node, allocation, &reason);
}

static int compare_times(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Sorted times of the decisions. */
static double *measure(const struct policy *policy)
{
    static struct choice choice;
    g_autoptr(ledger) ledger = (state = 1, build());
    g_autoptr(demand) demand = demand_new();
    double *times = g_new(double, DECISIONS);

    for (int i = 0; i < DECISIONS; i++) {
        g_autoptr(request) request = draw_request();
        g_autofree char *uid = g_strdup_printf("u%d", i);
        g_autofree char *leaves = g_strdup_printf("u%u", draw(DECISIONS));
        demand_note(demand, request);
        const double start = now_us();
        choose(ledger, policy, demand, request, &choice);
        times[i] = now_us() - start;
        if (choice.n > 0)
            take(ledger, request, &choice, uid);
        if (i > DECISIONS / 2)
            ledger_drop(ledger, leaves);
    }
    qsort(times, DECISIONS, sizeof *times, compare_times);
    return times;
}

int main(void)
{
    g_autofree double *base = measure(&policies[0]);

    printf("%-12s %12s %12s %12s %12s\n", "policy", "median us", "p99 us", "median ratio",
           "p99 ratio");
    for (const struct policy *policy = policies; policy->name; policy++) {
        g_autofree double *times = measure(policy);
        const int middle = DECISIONS / 2, last = DECISIONS * 99 / 100;
        printf("%-12s %12.0f %12.0f %12.2f %12.2f\n", policy->name, times[middle], times[last],
               times[middle] / base[middle], times[last] / base[last]);
    }
    return EXIT_SUCCESS;
}
