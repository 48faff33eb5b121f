/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's own device plugin: nvidia.com/gpu and nvidia.com/mig-…, by count.
 *
 * Source of what the plugin refuses: NVIDIA/k8s-device-plugin@v0.20.0:api/config/v1/config.go,
 * internal/rm/rm.go
 *
 * What the node side does, and why we place as we do. kubelet picks the devices, the plugin only
 * advises it, and nobody can tell either which ones to take. So the ledger counts devices of each
 * kind (a pool) and never knows the card. A device is a card, a MIG instance, a vGPU, or, where
 * cards are shared, one of a card's replicas. Then
 *  - time-slicing keeps nobody apart; the plugin may be told to fail a container that asks for more
 *    than one replica, and with MPS it always does;
 *  - after the replicas have been changed, kubelet takes devices for free whose card an older pod
 *    still uses: it knows them by other names. Hence the annotation that says how many replicas
 *    the card had when the pod was placed, and refuse_mixture();
 *  - while plugin and labels contradict each other because a configuration is being changed, the
 *    pool has nothing to give.
 */
#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/conditions.h"
#include "dialect/digits.h"
#include "dialect/hold.h"
#include "dialect/nvidia/nvidia.h"
#include "dialect/nvidia/nvidia_guard.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <gpuledger/quantity.h>
#include <string.h>

DIALECT_ROW(nvidia, 80);

/* Source: NVIDIA/k8s-device-plugin@v0.20.0:README.md */
#define GPU "nvidia.com/gpu"
#define GPU_SHARED "nvidia.com/gpu.shared"

/* Ours, on pods: how many devices a card was when the pod was placed, and by which kind of sharing:
 * "1", "4:mps", "4:time-slicing". */
#define KEY_REPLICAS "gpuledger.io/gpu-replicas"

/* Of a bound pod; of more containers those with the same devices are counted together. */
#define SHARES_MAX (ALLOCATION_SHARES_MAX / 2)

/* As the label nvidia.com/gpu.sharing-strategy has them
 * (NVIDIA/k8s-device-plugin@v0.20.0:docs/gpu-feature-discovery/README.md). */
static const char *const sharing_names[SHARING_N] = {
    [SHARING_SLICED] = "time-slicing",
    [SHARING_MPS] = "mps",
};

/* --- pods ----------------------------------------------------------------------------------- */

/* The pod asks a plugin that gives parts of cards, and then nvidia.com/gpu means something else
 * (Project-HAMi/HAMi@v2.10.0:pkg/device/nvidia/device.go). */
static bool is_foreign_pod(const struct pod_view *view)
{
    static const char *const resources[] = {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage",
                                            "nvidia.com/gpucores"};
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        for (size_t j = 0; j < G_N_ELEMENTS(resources); j++) {
            if (amount_asks(container_view_amount(container, resources[j])))
                return true;
        }
        if (container_view_amount(container, "nvidia.com/priority")) /* of which 0 is the highest */
            return true;
    }
    return false;
}

/* A name that lives as long as the terms. */
static const char *keep_name(const char *resource, struct terms **terms)
{
    if (strcmp(resource, GPU) == 0)
        return GPU;
    if (strcmp(resource, GPU_SHARED) == 0)
        return GPU_SHARED;
    if (!*terms)
        *terms = terms_new();
    guint n = (*terms)->devices ? g_strv_length((*terms)->devices) : 0;
    for (guint i = 0; i < n; i++) {
        if (g_str_equal((*terms)->devices[i], resource))
            return (*terms)->devices[i];
    }
    (*terms)->devices = g_renew(char *, (*terms)->devices, n + 2);
    (*terms)->devices[n] = g_strdup(resource);
    (*terms)->devices[n + 1] = NULL;
    return (*terms)->devices[n];
}

static bool names_device(const struct container_view *container)
{
    for (size_t i = 0; i < container->limits.n; i++) {
        if (nvidia_is_device(container->limits.items[i].key))
            return true;
    }
    for (size_t i = 0; i < container->requests.n; i++) {
        if (nvidia_is_device(container->requests.items[i].key))
            return true;
    }
    return false;
}

struct wants {
    size_t n;
    struct card_ask items[REQUEST_ASKS_MAX];
};

static bool add_want(struct wants *wants, const struct container_view *container, int32_t index,
                     const struct string_pair *pair, struct terms **terms, GError **error)
{
    int64_t amount;

    if (!quantity_parse(pair->value, &amount, error))
        return fail_within(error, "container '%s': %s: ", container->name, pair->key);
    if (amount == 0)
        return true;
    if (amount > NVIDIA_DEVICES_MAX || wants->n == REQUEST_ASKS_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT,
                         "container '%s': %s: more than %d devices of a kind, or more than %d "
                         "containers with devices, are not served",
                         container->name, pair->key, NVIDIA_DEVICES_MAX, REQUEST_ASKS_MAX);
    wants->items[wants->n++] = (struct card_ask){
        .container = index,
        .count = (int32_t)amount,
        .init = container->init && !container->sidecar,
        .sidecar = container->sidecar,
        .device = keep_name(pair->key, terms),
    };
    return true;
}

/* Devices per container. Limits and requests of such resources are equal; either may be given. */
static bool read_wants(const struct pod_view *view, struct wants *wants, struct terms **terms,
                       GError **error)
{
    wants->n = 0;
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        const struct string_pairs *lists[] = {&container->limits, &container->requests};
        for (size_t j = 0; j < G_N_ELEMENTS(lists); j++) {
            for (size_t k = 0; k < lists[j]->n; k++) {
                const struct string_pair *pair = &lists[j]->items[k];
                if (nvidia_is_device(pair->key) &&
                    (j == 0 || !string_pairs_get(&container->limits, pair->key)) &&
                    !add_want(wants, container, (int32_t)i, pair, terms, error))
                    return false;
            }
        }
    }
    return true;
}

static struct request *read_request(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error)
{
    g_autoptr(terms) terms = NULL;
    struct wants wants;

    if (is_foreign_pod(view) || !read_wants(view, &wants, &terms, error) || wants.n == 0)
        return NULL;
    struct request *request = request_new(&dialect_nvidia, wants.n);
    memcpy(request->asks, wants.items, wants.n * sizeof wants.items[0]);
    request->terms = g_steal_pointer(&terms);
    return request;
}

/* The devices that a bound pod has, per container as long as they can be told apart. False: it holds
 * all that there are. */
static bool take_devices(struct allocation *allocation, size_t *n, const struct share *share)
{
    struct share *like = NULL;

    for (size_t i = 0; *n == SHARES_MAX && i < *n; i++) {
        struct share *other = &allocation->shares[i];
        if (other->init == share->init && g_str_equal(other->device, share->device))
            like = other;
    }
    if (*n < SHARES_MAX) {
        allocation->shares[(*n)++] = *share;
    } else if (like) {
        like->container = CONTAINER_POD;
        like->devices = share->init ? MAX(like->devices, share->devices)
                                    : MIN(like->devices + share->devices, NVIDIA_DEVICES_MAX);
    } else {
        allocation->shares[0] = (struct share){.container = CONTAINER_POD, .card = CARD_UNKNOWN,
                                               .device = DEVICE_ALL};
        *n = 1;
        return false;
    }
    return true;
}

static bool take_container(const struct pod_view *view, size_t i, struct allocation *allocation,
                           size_t *n, struct terms **terms)
{
    const struct container_view *container = &view->containers[i];
    const struct string_pairs *lists[] = {&container->limits, &container->requests};

    for (size_t j = 0; j < G_N_ELEMENTS(lists); j++) {
        for (size_t k = 0; k < lists[j]->n; k++) {
            const char *resource = lists[j]->items[k].key;
            int64_t amount;
            if (!nvidia_is_device(resource) ||
                !quantity_parse(lists[j]->items[k].value, &amount, NULL) || amount == 0 ||
                (j == 1 && string_pairs_get(&container->limits, resource)))
                continue;
            const struct share share = {
                .container = (int32_t)i,
                .card = CARD_UNKNOWN,
                .init = container->init && !container->sidecar,
                .sidecar = container->sidecar,
                .devices = (int32_t)MIN(amount, NVIDIA_DEVICES_MAX),
                .device = *n < SHARES_MAX ? keep_name(resource, terms) : resource,
            };
            if (!take_devices(allocation, n, &share))
                return false;
        }
    }
    return true;
}

/* A number without a kind was written before kinds were, or while the labels of the node contradicted
 * its devices. What cannot be read says nothing. */
static void read_division(const struct pod_view *view, struct share *share)
{
    const char *text = string_pairs_get(&view->annotations, KEY_REPLICAS);
    const char *colon = text ? strchr(text, ':') : NULL;
    g_autofree char *number = colon ? g_strndup(text, (gsize)(colon - text)) : g_strdup(text);
    enum sharing sharing = SHARING_UNKNOWN;
    int64_t replicas = 0;

    for (enum sharing i = 0; colon && i < SHARING_N; i++) {
        if (g_strcmp0(sharing_names[i], colon + 1) == 0)
            sharing = i;
    }
    if ((colon && sharing == SHARING_UNKNOWN) ||
        !digits_parse(number, NVIDIA_DEVICES_MAX, &replicas))
        return;
    share->replicas = (int32_t)replicas;
    share->sharing = replicas == 1 && !colon ? SHARING_WHOLE : sharing;
}

/* Whatever else the pod asks for and whatever its annotations say: kubelet hands out these devices by
 * their names alone. */
static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    g_autoptr(allocation) all = NULL;
    g_autoptr(terms) terms = NULL;
    struct share division = {0};
    size_t n = 0;

    for (size_t i = 0; i < view->n_containers; i++) {
        if (!names_device(&view->containers[i]))
            continue;
        if (!all)
            all = allocation_new(view->uid, view->ns, view->name, SHARES_MAX);
        if (!take_container(view, i, all, &n, &terms))
            break;
    }
    if (n == 0)
        return NULL;
    struct allocation *allocation = allocation_new(view->uid, view->ns, view->name, n);
    allocation->dialect = &dialect_nvidia;
    conditions_memory_wanted(view, &terms);
    allocation->terms = g_steal_pointer(&terms);
    allocation->assigned = view->started;
    read_division(view, &division);
    for (size_t i = 0; i < n; i++) {
        allocation->shares[i] = all->shares[i];
        allocation->shares[i].replicas = division.replicas;
        allocation->shares[i].sharing = division.sharing;
    }
    return allocation;
}

/* --- placement ------------------------------------------------------------------------------ */

/* The devices were given when cards were divided as they are. Of two kinds, one may not be known. */
static bool is_divided_alike(const struct share *share, const struct pool *pool)
{
    if (!g_str_equal(share->device, pool->resource))
        return false;
    if (share->replicas == 0 || (pool->doubt != DOUBT_NONE && share->sharing == SHARING_UNKNOWN))
        return true;
    if (pool->doubt != DOUBT_NONE &&
        pool->divided == 0) /* only MPS has promised a part of the memory */
        return share->sharing != SHARING_MPS;
    return share->replicas == pool->divided &&
           (share->sharing == SHARING_UNKNOWN || pool->sharing == SHARING_UNKNOWN ||
            share->sharing == pool->sharing);
}

/* Pods that were given devices of this pool, or of one that it has taken the place of, when a card
 * was divided otherwise: any card may be one of theirs. Replicas that only take turns may be joined
 * by others that do. */
static enum reason refuse_mixture(const struct node *node, const struct pool *pool)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        for (uint32_t j = 0; j < other->n_shares; j++) {
            const struct share *share = &other->shares[j];
            if (!nvidia_are_of_pool(node, share, pool))
                continue;
            if (is_divided_alike(share, pool))
                continue;
            if (share->replicas <= 1 || share->sharing != SHARING_SLICED ||
                pool->sharing != SHARING_SLICED)
                return REASON_OTHER_USE;
        }
    }
    return REASON_NONE;
}

static enum reason refuse(const struct node *node, const struct request *request,
                          const struct dialect_options *options)
{
    const struct terms *terms = request->terms;

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct pool *pool = node_pool(node, request->asks[i].device);
        if (!pool)
            return REASON_TERMS;
        if (terms && terms->isolation_min > pool->isolation)
            return REASON_ISOLATION;
        if (terms && terms->memory_min > 0 && pool->memory > 0 &&
            pool->memory < terms->memory_min)
            return REASON_CARD_TOO_SMALL;
        enum reason reason = refuse_mixture(node, pool);
        if (reason == REASON_NONE && options->nvidia_memory_guard)
            reason = nvidia_guard_refuse(node, request, pool);
        if (reason != REASON_NONE)
            return reason;
    }
    return REASON_NONE;
}

/* kubelet needs no word of ours. Only who places the next pod does, after a restart. 0, where nothing
 * is known, takes the place of what may have come with the pod. */
static void write_annotations(const struct allocation *allocation, const struct node *node,
                              struct annotations *annotations)
{
    const struct share none = {0}, *first = allocation->n_shares > 0 ? allocation->shares : &none;
    int32_t replicas = first->replicas;
    enum sharing sharing = first->sharing;

    for (uint32_t i = 1; i < allocation->n_shares; i++) {
        replicas = allocation->shares[i].replicas == replicas ? replicas : 0;
        sharing = allocation->shares[i].sharing == sharing ? sharing : SHARING_UNKNOWN;
    }
    const char *name = replicas > 0 ? sharing_names[sharing] : NULL;
    annotations_add(annotations, KEY_REPLICAS,
                    g_strdup_printf("%d%s%s", replicas, name ? ":" : "", name ? name : ""));
}

static const char *const resources[] = {GPU, GPU_SHARED, NVIDIA_MIG_PREFIX "*", NULL};

static const char *const records[] = {
    KEY_REPLICAS, NULL,
};

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *ret_topology, char **ret_warning, GError **error)
{
    if (!nvidia_read_pools(view, options, ret_topology, ret_warning, error))
        return false;
    ret_topology->dialect = &dialect_nvidia;
    return true;
}

static bool write_profile(const struct card_profile *profile, const struct dialect_options *options,
                          struct profile_words *words)
{
    return nvidia_write_profile(profile, words);
}

const struct dialect dialect_nvidia = {
    .name = "nvidia",
    .read_instance = nvidia_read_instance,
    .title = "NVIDIA device plugin",
    .notes =
        {
            .asks = "`nvidia.com/gpu`, `nvidia.com/gpu.shared` or `nvidia.com/mig-PROFILE` of any "
                    "containers: whole devices (cards, MIG instances, vGPUs, replicas of a shared "
                    "card), of the kind that the pod's `gpuledger.io/…` annotations describe.",
            .nodes =
                "Capacity and allocatable of these resources, and the labels of GPU Feature "
                "Discovery: product, memory, count, replicas, sharing strategy, compute "
                "capability, driver. Where they contradict the capacity (for up to a minute after "
                "a change, or with several models), that counts, with a warning: the larger number "
                "of replicas is taken, and no pod that asks for a model, a memory or isolation is "
                "placed. Without them no isolation is promised, unless the label "
                "`nvidia.com/gpu.replicas: 1` says that a device is a card. A node whose "
                "`nvidia.com/device-plugin.config` is being changed to one that "
                "`--nvidia-config-replicas` names gives nothing until both agree, for a "
                "minute at most. A label "
                "of one's own may say the memory of a vGPU (`--nvidia-memory-label`). With "
                "the annotation `gpuledger.io/exclusive-cards` a node of time-sliced cards takes "
                "one pod, with `gpuledger.io/slots` so many devices are given of shared cards. "
                "With MPS at most 48 pods of a card, and each counts as its part of "
                "the memory. Not nodes with HAMi's register annotation.",
            .writes = "`gpuledger.io/gpu-replicas`, for ourselves: what a card was divided into, "
                      "and how (`4:mps`, `4:time-slicing`). After either has changed, kubelet "
                      "takes devices for free whose cards "
                      "older pods use, so the node gives nothing until these have ended (changes "
                      "among time-sliced numbers apart). A node whose plugin HAMi's or "
                      "4paradigm's has replaced gives nothing either while pods of before run. A "
                      "Binding without it is counted, too.",
            .played = "device plugin v0.20.0 and kubelet's device manager",
            .limits =
                "kubelet chooses the device: which card a pod has is not known, so devices "
                "are counted, not cards. More than one replica for a container: refused "
                "with MPS without `--nvidia-mps-several`, and with "
                "`--nvidia-fail-requests-greater-than-one`. Time-sliced "
                "memory is not divided: `gpu-memory-min` compares with the whole card, and with "
                "`--nvidia-memory-guard` the pods that may meet on one card want no more "
                "than it has altogether (`gpu-memory`). Where cards of several "
                "models have one name, it compares with the memory that the label says, of one of "
                "them: on a smaller card pods may want more than it has. MPS has room for 48 "
                "clients on a card, but for 16 below compute capability 7.5 (V100, too): this is "
                "not counted, and with more replicas its daemon does not start. A pod "
                "names its MIG profile, unless the webhook of `--admission` chooses it. Which of "
                "the nodes that fit "
                "is kube-scheduler's choice.",
        },
    .words = {.whole = GPU, .whole_units = 1},
    .resources = resources,
    .records = records,
    .replaces = records,
    .isolation = ISOLATION_HARDWARE,
    .read_topology = read_topology,
    .write_profile = write_profile,
    .read_request = read_request,
    .read_allocation = read_allocation,
    .refuse = refuse,
    .write_annotations = write_annotations,
};
