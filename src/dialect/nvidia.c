/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's own device plugin: nvidia.com/gpu and nvidia.com/mig-…, by count.
 *
 * Source of the keys and of what the plugin refuses: NVIDIA/k8s-device-plugin v0.20.0, GPU Feature
 * Discovery (the nvidia.com/… labels) included.
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
#include "dialect/conditions.h"
#include "dialect/digits.h"
#include "dialect/hold.h"
#include "dialect/nvidia_guard.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define GPU "nvidia.com/gpu"
#define GPU_SHARED "nvidia.com/gpu.shared"
#define MIG_PREFIX "nvidia.com/mig-"
#define SHARED_SUFFIX ".shared"

/* Ours, on pods: how many devices a card was when the pod was placed. */
#define KEY_REPLICAS "gpuledger.io/gpu-replicas"
/* Ours, on nodes, see node_marks.h: cards that take one holder. Which ones is of no use here. */
#define KEY_EXCLUSIVE "gpuledger.io/exclusive-cards"

#define LABEL_CONFIG "nvidia.com/device-plugin.config"
#define LABEL_STRATEGY "nvidia.com/gpu.sharing-strategy"
#define LABEL_MEMORY "nvidia.com/gpu.memory"

/* No node has as many, and no pod asks for as many. */
#define DEVICES_MAX 65536
/* Of a bound pod; of more containers those with the same devices are counted together. */
#define SHARES_MAX (ALLOCATION_SHARES_MAX / 2)
/* Processes that one MPS server takes (Volta and later). */
#define MPS_CLIENTS 48
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

static bool is_device(const char *resource)
{
    return strcmp(resource, GPU) == 0 || strcmp(resource, GPU_SHARED) == 0 ||
           (g_str_has_prefix(resource, MIG_PREFIX) && resource[strlen(MIG_PREFIX)]);
}

/* --- nodes ---------------------------------------------------------------------------------- */

/* Other plugins report nvidia.com/gpu as well, and mean slots. */
static bool is_foreign_node(const struct node_view *view)
{
    static const char *const keys[] = {"hami.io/node-nvidia-register",
                                       "4pd.io/node-nvidia-register"};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (string_pairs_get(&view->annotations, keys[i]))
            return true;
    }
    return false;
}

/* What the labels say of one resource's devices; 0: nothing. */
struct facts {
    const char *model;
    int64_t memory;  /* bytes of a whole card or MIG instance */
    int64_t count;   /* of these */
    int64_t replicas;
    bool shared;     /* if anything says so */
    bool mps;
};

/* The resource's own label: "nvidia.com/gpu.shared" is described by "nvidia.com/gpu.…". */
static const char *get_label(const struct node_view *view, const char *resource, const char *what)
{
    char key[320];
    size_t length = strlen(resource);

    if (g_str_has_suffix(resource, SHARED_SUFFIX))
        length -= strlen(SHARED_SUFFIX);
    g_snprintf(key, sizeof key, "%.*s.%s", (int)length, resource, what);
    return string_pairs_get(&view->labels, key);
}

/* "4096", "4GB", "4Gi", "4096MiB": GPU Feature Discovery writes MiB, people write what they like,
 * and the makers of cards mean 2^30 when they say GB. */
static bool parse_memory(const char *text, int64_t *ret_bytes)
{
    static const struct {
        const char *suffix;
        int64_t unit;
    } forms[] = {
        {"GiB", GIB}, {"GB", GIB}, {"Gi", GIB}, {"MiB", MIB}, {"MB", MIB}, {"Mi", MIB}, {"", MIB},
    };
    g_autofree char *digits = g_strdup(text);
    size_t length = strspn(digits, "0123456789");
    const char *suffix = text + length + strspn(text + length, " ");
    int64_t value;

    digits[length] = '\0';
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        if (g_ascii_strcasecmp(suffix, forms[i].suffix) != 0)
            continue;
        if (!digits_parse(digits, AMOUNT_BYTES_MAX / forms[i].unit, &value) || value == 0)
            return false;
        *ret_bytes = value * forms[i].unit;
        return true;
    }
    return false;
}

static bool read_memory(const struct node_view *view, const char *label, const char *text,
                        int64_t *ret_bytes, char **ret_warning)
{
    if (!text)
        return false;
    if (parse_memory(text, ret_bytes))
        return true;
    warn(ret_warning, g_strdup_printf("node '%s': label '%s' is '%.32s': write an amount of memory "
                                      "such as '4GB'; it is ignored",
                                      view->name, label, text));
    return false;
}

/* A profile names its memory, rounded up to whole GB: "…mig-2g.10gb.me". Less than the least that
 * such an instance has, which is for the case that no label says it. */
static int64_t profile_memory(const char *text)
{
    const char *profile = g_strrstr(text, "g.");
    int64_t gigabytes;

    if (!profile)
        return 0;
    g_autofree char *digits = g_strdup(profile + 2);
    size_t length = strspn(digits, "0123456789");
    if (!g_str_has_prefix(digits + length, "gb"))
        return 0;
    digits[length] = '\0';
    return digits_parse(digits, 10000, &gigabytes) ? gigabytes * 1000 * 1000 * 1000 / 20 * 19 : 0;
}

static struct facts read_facts(const struct node_view *view, const char *resource,
                               const struct dialect_options *options, struct topology *topology,
                               char **ret_warning)
{
    struct facts facts = {0};
    const char *product = get_label(view, resource, "product");
    const char *strategy = string_pairs_get(&view->labels, LABEL_STRATEGY);
    const char *own = options->nvidia_memory_label;
    bool is_mig = g_str_has_prefix(resource, MIG_PREFIX);

    facts.mps = g_strcmp0(strategy, "mps") == 0 && !is_mig;
    digits_parse(get_label(view, resource, "count"), DEVICES_MAX, &facts.count);
    digits_parse(get_label(view, resource, "replicas"), DEVICES_MAX, &facts.replicas);
    facts.shared = g_str_has_suffix(resource, SHARED_SUFFIX) || facts.replicas > 1 ||
                   (facts.replicas == 0 && !is_mig && strategy && strcmp(strategy, "none") != 0);
    if (product) {
        g_autofree char *model = g_strdup(product);
        if (g_str_has_suffix(model, "-SHARED")) {
            facts.shared = true;
            model[strlen(model) - strlen("-SHARED")] = '\0';
        }
        facts.model = topology_keep(topology, model);
    }
    /* What the administrator says is there because nobody else knows it. */
    if ((is_mig || !own || !*own ||
         !read_memory(view, own, string_pairs_get(&view->labels, own), &facts.memory,
                      ret_warning)) &&
        !read_memory(view, is_mig ? "memory" : LABEL_MEMORY, get_label(view, resource, "memory"),
                     &facts.memory, ret_warning)) {
        const char *instance = is_mig ? resource : product ? strstr(product, "-MIG-") : NULL;
        facts.memory = instance ? profile_memory(instance) : 0;
    }
    return facts;
}

/* How many replicas the node's configuration makes of a card, by its name: "default=1,a100=4".
 * 0: not known. */
static int64_t announced_replicas(const char *table, const char *configuration)
{
    g_auto(GStrv) items = g_strsplit(table ? table : "", ",", -1);

    for (char **item = items; *item; item++) {
        char *sign = strchr(*item, '=');
        int64_t replicas;
        if (!sign || !digits_parse(g_strstrip(sign + 1), DEVICES_MAX, &replicas))
            continue;
        *sign = '\0';
        if (strcmp(g_strstrip(*item), configuration) == 0)
            return replicas;
    }
    return 0;
}

/* Whether plugin and labels have not caught up with the configuration that the node is to have.
 * Fewer devices than there should be are lost cards, unless they are as many as another number of
 * replicas would give. */
static bool is_changing(const struct facts *facts, int64_t announced, int64_t reported)
{
    if (facts->replicas > 0 && facts->replicas != announced)
        return true;
    return facts->count > 0 && (reported > facts->count * announced ||
                                (reported % facts->count == 0 &&
                                 reported / facts->count != announced));
}

/* How many of `reported` devices may be given. */
static int64_t usable_devices(const struct node_view *view, const char *resource,
                              const struct facts *facts, const struct dialect_options *options,
                              int64_t reported, char **ret_warning)
{
    const char *configuration = string_pairs_get(&view->labels, LABEL_CONFIG);
    const char *exclusive = string_pairs_get(&view->annotations, KEY_EXCLUSIVE);
    int64_t expected = facts->count * MAX(facts->replicas, 1);

    if (configuration && !g_str_has_prefix(resource, MIG_PREFIX)) {
        int64_t announced =
            announced_replicas(options->nvidia_config_replicas, configuration);
        if (announced == 0)
            announced = facts->replicas;
        if (announced > 0 && is_changing(facts, announced, reported)) {
            warn(ret_warning,
                 g_strdup_printf("node '%s' is being changed to configuration '%.64s': %s is not "
                                 "given until the node reports what it makes of the cards",
                                 view->name, configuration, resource));
            return 0;
        }
    }
    if (facts->count > 0 && reported != expected)
        warn(ret_warning, g_strdup_printf("node '%s': its labels promise %" G_GINT64_FORMAT
                                          " of %s, it has %" G_GINT64_FORMAT ", which counts",
                                          view->name, expected, resource, reported));
    if (facts->shared && !facts->mps && exclusive && *exclusive) {
        warn(ret_warning, g_strdup_printf("node '%s' shares cards of which '%.64s' take one "
                                          "holder: one pod gets a device",
                                          view->name, exclusive));
        return MIN(reported, 1);
    }
    if (facts->mps && facts->replicas > MPS_CLIENTS) {
        warn(ret_warning, g_strdup_printf("node '%s' makes %" G_GINT64_FORMAT " of a card, but MPS "
                                          "serves %d: the node gives no more than that, as they "
                                          "may all be on one card",
                                          view->name, facts->replicas, MPS_CLIENTS));
        return MIN(reported, MPS_CLIENTS);
    }
    return reported;
}

static bool read_devices(const struct node_view *view, const char *resource, int64_t *ret_devices,
                         GError **error)
{
    const char *usable = string_pairs_get(&view->allocatable, resource);
    int64_t capacity, allocatable = DEVICES_MAX;

    if (!quantity_parse(string_pairs_get(&view->capacity, resource), &capacity, error) ||
        (usable && !quantity_parse(usable, &allocatable, error))) {
        g_prefix_error(error, "node '%s': %s: ", view->name, resource);
        return false;
    }
    if (capacity > DEVICES_MAX) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_RANGE,
                    "node '%s': capacity %s is %" G_GINT64_FORMAT "; it must not be above %d",
                    view->name, resource, capacity, DEVICES_MAX);
        return false;
    }
    *ret_devices = MIN(capacity, allocatable);
    return true;
}

static void add_pool(const struct node_view *view, const char *resource, int64_t reported,
                     const struct dialect_options *options, struct topology *topology,
                     char **ret_warning)
{
    struct facts facts = read_facts(view, resource, options, topology, ret_warning);

    if (facts.count > 0 && reported > facts.count)
        facts.shared = true;
    int64_t usable = usable_devices(view, resource, &facts, options, reported, ret_warning);
    if (!facts.shared)
        facts.replicas = 1;
    else if (facts.replicas <= 1) /* the label is late: what is reported tells, if it divides */
        facts.replicas =
            facts.count > 0 && reported % facts.count == 0 ? reported / facts.count : 0;
    bool mps = facts.shared && facts.mps;
    topology->pools[topology->n_pools++] = (struct pool){
        .resource = topology_keep(topology, resource),
        .model = (char *)facts.model,
        .capacity = (int32_t)usable,
        .at_once =
            mps || (facts.shared && options->nvidia_fail_requests_greater_than_one) ? 1 : 0,
        .memory = mps && facts.replicas > 0 ? facts.memory / facts.replicas : facts.memory,
        .shared = facts.shared,
        .replicas = (int32_t)facts.replicas,
        .isolation = mps ? ISOLATION_HOOK : facts.shared ? ISOLATION_NONE : ISOLATION_HARDWARE,
    };
}

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *ret_topology, char **ret_warning, GError **error)
{
    struct topology *topology = ret_topology;
    int64_t devices;

    if (is_foreign_node(view))
        return false;
    for (size_t i = 0; i < view->capacity.n; i++) {
        const char *resource = view->capacity.items[i].key;
        if (!is_device(resource))
            continue;
        if (!read_devices(view, resource, &devices, error))
            return false;
        const char *capacity = view->capacity.items[i].value;
        if (g_str_equal(capacity, "0") || topology->n_pools == NODE_POOLS_MAX)
            continue;
        add_pool(view, resource, devices, options, topology, ret_warning);
    }
    if (topology->n_pools == 0)
        return false;
    topology->dialect = &dialect_nvidia;
    topology->memory_unit = 1;
    return true;
}

/* --- pods ----------------------------------------------------------------------------------- */

/* The pod asks a plugin that gives parts of cards, and then nvidia.com/gpu means something else. */
static bool is_foreign_pod(const struct pod_view *view)
{
    static const char *const resources[] = {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage",
                                            "nvidia.com/gpucores", "nvidia.com/priority"};
    for (size_t i = 0; i < view->n_containers; i++) {
        for (size_t j = 0; j < G_N_ELEMENTS(resources); j++) {
            if (container_view_amount(&view->containers[i], resources[j]))
                return true;
        }
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
        if (is_device(container->limits.items[i].key))
            return true;
    }
    for (size_t i = 0; i < container->requests.n; i++) {
        if (is_device(container->requests.items[i].key))
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

    if (!quantity_parse(pair->value, &amount, error)) {
        g_prefix_error(error, "container '%s': %s: ", container->name, pair->key);
        return false;
    }
    if (amount == 0)
        return true;
    if (amount > DEVICES_MAX || wants->n == REQUEST_ASKS_MAX) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "container '%s': %s: more than %d devices of a kind, or more than %d "
                    "containers with devices, are not served",
                    container->name, pair->key, DEVICES_MAX, REQUEST_ASKS_MAX);
        return false;
    }
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
                if (is_device(pair->key) &&
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
                                    : MIN(like->devices + share->devices, DEVICES_MAX);
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
            if (!is_device(resource) ||
                !quantity_parse(lists[j]->items[k].value, &amount, NULL) || amount == 0 ||
                (j == 1 && string_pairs_get(&container->limits, resource)))
                continue;
            const struct share share = {
                .container = (int32_t)i,
                .card = CARD_UNKNOWN,
                .init = container->init && !container->sidecar,
                .sidecar = container->sidecar,
                .devices = (int32_t)MIN(amount, DEVICES_MAX),
                .device = *n < SHARES_MAX ? keep_name(resource, terms) : resource,
            };
            if (!take_devices(allocation, n, &share))
                return false;
        }
    }
    return true;
}

/* Whatever else the pod asks for and whatever its annotations say: kubelet hands out these devices by
 * their names alone. */
static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    g_autoptr(allocation) all = NULL;
    g_autoptr(terms) terms = NULL;
    int64_t replicas = 0;
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
    digits_parse(string_pairs_get(&view->annotations, KEY_REPLICAS), DEVICES_MAX, &replicas);
    for (size_t i = 0; i < n; i++) {
        allocation->shares[i] = all->shares[i];
        allocation->shares[i].replicas = (int32_t)replicas;
    }
    return allocation;
}

/* --- placement ------------------------------------------------------------------------------ */

/* Pods that were given devices of this pool when a card was another number of them: any card may
 * be one of theirs. Replicas that only take turns may be joined by others that do. */
static enum reason refuse_mixture(const struct node *node, const struct pool *pool)
{
    for (guint i = 0; pool->used > 0 && i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        for (uint32_t j = 0; j < other->n_shares; j++) {
            const struct share *share = &other->shares[j];
            if (g_strcmp0(share->device, pool->resource) != 0 || share->replicas == 0 ||
                share->replicas == pool->replicas)
                continue;
            if (share->replicas == 1 || !pool->shared || pool->isolation != ISOLATION_NONE)
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
    int32_t replicas = allocation->n_shares > 0 ? allocation->shares[0].replicas : 0;

    for (uint32_t i = 0; i < allocation->n_shares; i++)
        replicas = allocation->shares[i].replicas == replicas ? replicas : 0;
    annotations_add(annotations, KEY_REPLICAS, g_strdup_printf("%d", replicas));
}

static const char *const resources[] = {GPU, GPU_SHARED, MIG_PREFIX "*", NULL};

static const char *const records[] = {
    KEY_REPLICAS, NULL,
};

const struct dialect dialect_nvidia = {
    .name = "nvidia",
    .title = "NVIDIA device plugin",
    .notes =
        {
            .asks = "`nvidia.com/gpu`, `nvidia.com/gpu.shared` or `nvidia.com/mig-PROFILE` of any "
                    "containers: whole devices (cards, MIG instances, vGPUs, replicas of a shared "
                    "card), of the kind that the pod's `gpuledger.io/…` annotations describe.",
            .nodes = "Capacity and allocatable of these resources, and the labels of GPU Feature "
                     "Discovery: product, memory, count, replicas, sharing strategy, compute "
                     "capability, driver. Where they contradict the capacity, that counts, with a "
                     "warning; but a node whose `nvidia.com/device-plugin.config` is being "
                     "changed gives nothing until both agree (`--nvidia-config-replicas`). A label "
                     "of one's own may say the memory of a vGPU (`--nvidia-memory-label`). With "
                     "the annotation `gpuledger.io/exclusive-cards` a node of time-sliced cards takes "
                     "one pod. With MPS at most 48 pods of a card, and each counts as its part of "
                     "the memory. Not nodes with HAMi's register annotation.",
            .writes = "`gpuledger.io/gpu-replicas`, for ourselves: what a card was divided into. "
                      "After that number has changed, kubelet takes devices for free whose cards "
                      "older pods use, so the node gives nothing until these have ended (changes "
                      "among time-sliced numbers apart). A Binding without it is counted, too.",
            .played = "device plugin v0.20.0 and kubelet's device manager",
            .limits = "kubelet chooses the device: which card a pod has is not known, so devices "
                      "are counted, not cards. More than one replica for a container: refused "
                      "with MPS, and with `--nvidia-fail-requests-greater-than-one`. Time-sliced "
                      "memory is not divided: `gpu-memory-min` compares with the whole card, and with "
                      "`--nvidia-memory-guard` the pods that may meet on one card want no more "
                      "than it has altogether (`gpu-memory`). A pod "
                      "names its MIG profile, unless the webhook of `--admission` chooses it. Which of the nodes that fit "
                      "is kube-scheduler's choice.",
        },
    .words = {.whole = GPU, .whole_units = 1},
    .resources = resources,
    .records = records,
    .isolation = ISOLATION_HARDWARE,
    .read_topology = read_topology,
    .read_request = read_request,
    .read_allocation = read_allocation,
    .refuse = refuse,
    .write_annotations = write_annotations,
};
