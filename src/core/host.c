/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
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

bool host_equal(const struct host *a, const struct host *b)
{
    return a->cpu == b->cpu && a->memory == b->memory && a->pods == b->pods;
}

/* --- what a pod holds ----------------------------------------------------------------------- */

/* Amounts saturate here, so that sums of any number of them fit. */
#define HELD_MAX (INT64_C(1) << 58)

/* What is read of a pod. */
struct reading {
    const struct pod_view *pod;
    const char *resource;
    bool unreadable;
};

static int64_t add(int64_t a, int64_t b)
{
    return MIN(a + b, HELD_MAX);
}

/* False: nothing is said of it. */
static bool find(struct reading *reading, const struct string_pairs *pairs, int64_t *ret_amount)
{
    const char *text = string_pairs_get(pairs, reading->resource);
    int64_t amount = 0;

    if (text && !quantity_parse_thousandths(text, &amount, NULL)) {
        /* It may be too large to be counted so. */
        reading->unreadable |= !quantity_parse(text, &amount, NULL);
        amount = amount > 0 ? HELD_MAX : 0;
    }
    *ret_amount = MIN(amount, HELD_MAX);
    return text;
}

static int64_t get(struct reading *reading, const struct string_pairs *pairs)
{
    int64_t amount;

    find(reading, pairs, &amount);
    return amount;
}

/* Of the request, and what kubelet reports. */
static int64_t while_resized(const struct reading *reading, int64_t asked, int64_t reported)
{
    return reading->pod->resize_infeasible ? reported : MAX(asked, reported);
}

/* The API server sets a request that is missing to the limit; files written by hand may not. */
static int64_t container_holds(struct reading *reading, const struct container_view *container)
{
    int64_t asked;

    if (!find(reading, &container->requests, &asked))
        asked = get(reading, &container->limits);
    if (!container->reported || (container->init && !container->sidecar))
        return asked;
    return while_resized(
        reading, asked, MAX(get(reading, &container->actual), get(reading, &container->allocated)));
}

/* Init containers run one after the other before the others, sidecars from their turn on. */
static int64_t containers_hold(struct reading *reading)
{
    int64_t sidecars = 0, peak = 0, together = 0;

    for (size_t i = 0; i < reading->pod->n_containers; i++) {
        const struct container_view *container = &reading->pod->containers[i];
        const int64_t held = container_holds(reading, container);
        if (container->sidecar)
            sidecars = add(sidecars, held);
        else if (container->init)
            peak = MAX(peak, add(held, sidecars));
        else
            together = add(together, held);
    }
    return MAX(add(together, sidecars), peak);
}

/* What Kubernetes counts of a pod as a whole. */
static bool has_level(const char *resource)
{
    return g_str_equal(resource, "cpu") || g_str_equal(resource, "memory") ||
           g_str_has_prefix(resource, "hugepages-");
}

/* Where kubelet reports nothing of the resource and the request does not count, the containers do. */
static int64_t level_holds(struct reading *reading, int64_t asked)
{
    int64_t actual, allocated;
    const bool has = find(reading, &reading->pod->level_actual, &actual);
    const bool may_have = find(reading, &reading->pod->level_allocated, &allocated);

    if (!has && !may_have && reading->pod->resize_infeasible)
        return containers_hold(reading);
    return while_resized(reading, asked, MAX(actual, allocated));
}

int64_t pod_view_holds(const struct pod_view *pod, const char *resource, bool *ret_unreadable)
{
    struct reading reading = {pod, resource, false};
    int64_t held;

    if (!has_level(resource) || !find(&reading, &pod->level, &held))
        held = containers_hold(&reading);
    else if (pod->level_reported)
        held = level_holds(&reading, held);
    held = add(held, get(&reading, &pod->overhead));
    if (ret_unreadable && reading.unreadable)
        *ret_unreadable = true;
    return held;
}

struct host host_of_pod(const struct pod_view *pod)
{
    const int64_t memory = pod_view_holds(pod, "memory", NULL);

    return (struct host){
        .cpu = MIN(pod_view_holds(pod, "cpu", NULL), HOST_AMOUNT_MAX),
        .memory = MIN(memory / 1000 + (memory % 1000 > 0), HOST_AMOUNT_MAX),
        .pods = 1,
    };
}

struct host host_of_node(const struct node_view *node)
{
    struct host host = read_pairs(&node->allocatable);

    host.pods = read_whole(string_pairs_get(&node->allocatable, "pods"));
    return host;
}
