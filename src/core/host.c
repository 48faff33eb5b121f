/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/host.h>
#include <gpuledger/quantity.h>

static int64_t read_cpu(const char *text)
{
    int64_t thousandths;

    if (!text || !quantity_parse_thousandths(text, &thousandths, NULL))
        return 0;
    return MIN(thousandths, HOST_AMOUNT_MAX);
}

static int64_t read_whole(const char *text)
{
    int64_t amount;

    if (!text || !quantity_parse(text, &amount, NULL))
        return 0;
    return MIN(amount, HOST_AMOUNT_MAX);
}

static struct host read_pairs(const struct string_pairs *pairs)
{
    return (struct host){.cpu = read_cpu(string_pairs_get(pairs, "cpu")),
                         .memory = read_whole(string_pairs_get(pairs, "memory"))};
}

static int64_t sum(int64_t a, int64_t b)
{
    return MIN(a + b, HOST_AMOUNT_MAX);
}

static struct host host_sum(struct host a, struct host b)
{
    return (struct host){.cpu = sum(a.cpu, b.cpu), .memory = sum(a.memory, b.memory)};
}

static struct host host_max(struct host a, struct host b)
{
    return (struct host){.cpu = MAX(a.cpu, b.cpu), .memory = MAX(a.memory, b.memory)};
}

bool host_equal(const struct host *a, const struct host *b)
{
    return a->cpu == b->cpu && a->memory == b->memory && a->pods == b->pods;
}

/* The API server sets a request that is missing to the limit; files written by hand may not. */
static struct host read_container(const struct container_view *container)
{
    const struct host limits = read_pairs(&container->limits);
    struct host host = read_pairs(&container->requests);

    if (!string_pairs_get(&container->requests, "cpu"))
        host.cpu = limits.cpu;
    if (!string_pairs_get(&container->requests, "memory"))
        host.memory = limits.memory;
    return host;
}

struct host host_of_pod(const struct pod_view *pod)
{
    struct host running = {0}, sidecars = {0}, starting = {0};

    for (size_t i = 0; i < pod->n_containers; i++) {
        const struct container_view *container = &pod->containers[i];
        const struct host host = read_container(container);
        if (container->sidecar)
            sidecars = host_sum(sidecars, host);
        else if (!container->init)
            running = host_sum(running, host);
        /* Beside the sidecars that were started before it. */
        if (container->init)
            starting = host_max(starting, container->sidecar ? sidecars : host_sum(sidecars, host));
    }
    running = host_sum(host_max(host_sum(running, sidecars), starting), read_pairs(&pod->overhead));
    running.pods = 1;
    return running;
}

struct host host_of_node(const struct node_view *node)
{
    struct host host = read_pairs(&node->allocatable);

    host.pods = read_whole(string_pairs_get(&node->allocatable, "pods"));
    return host;
}
