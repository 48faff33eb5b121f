/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod asks of a vGPU plugin: amounts per container, and conditions in annotations.
 *
 * Source: Project-HAMi/HAMi@v2.10.0:pkg/device/nvidia/device.go (GenerateResourceRequests, and the
 * checks of its filter). It takes a quantity that it cannot read for no request at all; here that
 * is an error. So is what its webhook would have to mend, because the plugin never hears of a
 * container without a card.
 */
#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/hami/hami.h"
#include "dialect/hold.h"
#include "dialect/word_list.h"

#include <stdlib.h>
#include <string.h>

#define PERCENT_MAX 100
#define WEIGHT_MAX 1000000

static bool read_amount(const struct container_view *container, const char *resource, int64_t max,
                        int64_t *ret_value, GError **error)
{
    if (!read_container_amount(container, resource, ret_value, error))
        return false;
    if (*ret_value <= max)
        return true;
    return fail_with(error, GPULEDGER_ERROR_RANGE,
                     "container '%s': %s: '%s' is more than %" G_GINT64_FORMAT "%s",
                     container->name, resource, container_view_amount(container, resource), max,
                     max > PERCENT_MAX ? "; it counts MiB, not bytes" : "");
}

/* What a container writes; 0 for what it does not. */
struct wish {
    int64_t count, mib, percent, cores;
};

int64_t vgpu_told_mib(const struct vgpu *vgpu, const struct dialect_options *options)
{
    return vgpu->short_register ? MAX(options->volcano_memory_factor, 1) : 1;
}

/* HAMi's memoryFactor: how many MiB one of its resource is. Source: Project-HAMi/HAMi v2.8.3 and v2.10.0,
 * pkg/device/nvidia/device.go. Its nodes and texts say MiB all the same. */
static int64_t memory_factor(const struct vgpu *vgpu, const struct dialect_options *options)
{
    return vgpu->factor ? MAX(options->hami_memory_factor, 1) : vgpu_told_mib(vgpu, options);
}

static bool is_unlimited(const struct vgpu *vgpu, const struct container_view *container)
{
    return container->hook == HOOK_OFF || (container->hook == HOOK_NAMED && vgpu->hook_by_name);
}

static struct card_ask ask_of(const struct vgpu *vgpu, const struct container_view *container,
                              const struct dialect_options *options, struct wish wish)
{
    wish.mib *= memory_factor(vgpu, options);
    if (wish.mib == 0 && wish.percent == 0)
        wish.mib = options->hami_default_memory;
    if (!container_view_amount(container, vgpu->cores))
        wish.cores = options->hami_default_cores;
    struct amount memory = {wish.percent ? wish.percent * 10 : 1000, AMOUNT_THOUSANDTHS};
    if (wish.mib)
        memory = (struct amount){wish.mib * MIB, AMOUNT_BYTES};
    const bool unlimited = is_unlimited(vgpu, container);
    return (struct card_ask){
        .memory = unlimited ? (struct amount){1000, AMOUNT_THOUSANDTHS} : memory,
        .part = unlimited ? memory : (struct amount){0},
        .unlimited = unlimited,
        .count = (int32_t)wish.count,
        .core = (int32_t)wish.cores * (CORE_WHOLE / 100),
        .exclusive = wish.cores == PERCENT_MAX,
        .init = container->init && !container->sidecar,
        .sidecar = container->sidecar,
    };
}

/* False without an error: the container wants no card. */
static bool read_ask(const struct vgpu *vgpu, const struct container_view *container,
                     const struct dialect_options *options, struct card_ask *ret_ask,
                     GError **error)
{
    struct wish wish;

    if (!read_amount(container, vgpu->count, G_MAXINT32, &wish.count, error) ||
        !read_amount(container, vgpu->memory, AMOUNT_BYTES_MAX / MIB / memory_factor(vgpu, options),
                     &wish.mib, error) ||
        !read_amount(container, vgpu->percentage, PERCENT_MAX, &wish.percent, error) ||
        !read_amount(container, vgpu->cores, PERCENT_MAX, &wish.cores, error))
        return false;
    if (wish.count == 0) {
        if (wish.mib || wish.percent || wish.cores)
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "container '%s' asks for a part of a card but for no card: add '%s'",
                        container->name, vgpu->count);
        return false;
    }
    *ret_ask = ask_of(vgpu, container, options, wish);
    return true;
}

/* --- terms ------------------------------------------------------------------------------------ */

/* A chain such as "mutex,binpack"; what we do not know is left out. */
static void read_policy(const struct vgpu *vgpu, const struct pod_view *view, struct terms *terms)
{
    g_auto(GStrv) names = word_list_read(view, vgpu->policy);

    for (char **name = names; name && *name; name++) {
        terms->idle |= g_str_equal(*name, "mutex");
        terms->near_numa |= g_str_equal(*name, "numa");
        terms->best_linked |= g_str_equal(*name, "topology-aware");
        if (!terms->policy)
            terms->policy = policy_find(*name);
    }
}

/* As strconv.ParseBool has it, in any case
 * (Project-HAMi/HAMi@v2.9.0:pkg/device/nvidia/device.go). */
static bool says_true(const struct pod_view *view, const char *key)
{
    const char *text = key ? string_pairs_get(&view->annotations, key) : NULL;
    return text && (g_ascii_strcasecmp(text, "true") == 0 || g_ascii_strcasecmp(text, "t") == 0 ||
                    g_str_equal(text, "1"));
}

/* "slot=A,core=B,memory=C", each once and not all 0; "" says nothing
 * (Project-HAMi/HAMi@v2.10.0:pkg/util/device_scoring_weights.go). */
static bool parse_weights(const char *text, struct weights *ret_weights)
{
    static const char *const names[] = {"slot", "core", "memory"};
    int32_t *const places[] = {&ret_weights->slots, &ret_weights->core, &ret_weights->memory};
    g_auto(GStrv) parts = g_strsplit(text, ",", G_N_ELEMENTS(names) + 1);
    unsigned seen = 0;

    for (char **part = parts; *part; part++) {
        char *equals = strchr(*part, '=');
        guint64 weight;
        if (!equals || !g_ascii_string_to_unsigned(g_strstrip(equals + 1), 10, 0, WEIGHT_MAX,
                                                   &weight, NULL))
            return false;
        *equals = '\0';
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
            if (!g_str_equal(g_strstrip(*part), names[i]) || seen & (1U << i))
                continue;
            seen |= 1U << i;
            *places[i] = (int32_t)weight;
        }
    }
    return g_strv_length(parts) == G_N_ELEMENTS(names) && seen == (1U << G_N_ELEMENTS(names)) - 1 &&
           (ret_weights->slots || ret_weights->core || ret_weights->memory);
}

static bool read_weights(const struct vgpu *vgpu, const struct pod_view *view,
                         struct weights *ret_weights, GError **error)
{
    const char *text = vgpu->weights ? string_pairs_get(&view->annotations, vgpu->weights) : NULL;

    if (!text || !*text || parse_weights(text, ret_weights))
        return true;
    return fail_with(
        error, GPULEDGER_ERROR_INVALID,
        "annotation '%s': '%.64s' is not like 'slot=1,core=1,memory=2', whole numbers up "
        "to %d and not all 0",
        vgpu->weights, text, WEIGHT_MAX);
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In order, so that a card is found by halving. */
static char **read_uuids(const struct pod_view *view, const char *key)
{
    char **uuids = word_list_read(view, key);

    if (uuids)
        qsort(uuids, g_strv_length(uuids), sizeof *uuids, compare_words);
    return uuids;
}

static struct terms *read_terms(const struct vgpu *vgpu, const struct pod_view *view)
{
    struct terms *terms = terms_new();
    const char *mode = vgpu->mode ? string_pairs_get(&view->annotations, vgpu->mode) : NULL;

    terms->models = word_list_read(view, vgpu->models);
    terms->models_not = word_list_read(view, vgpu->models_not);
    terms->uuids = read_uuids(view, vgpu->uuids);
    terms->uuids_not = read_uuids(view, vgpu->uuids_not);
    terms->mode = mode && *mode ? g_strdup(mode) : NULL;
    terms->same_numa = says_true(view, vgpu->same_numa);
    read_policy(vgpu, view, terms);
    if (vgpu->node_policy)
        terms->node_policy = policy_find(string_pairs_get(&view->annotations, vgpu->node_policy));

    terms->containers = g_new0(char *, view->n_containers + 1);
    for (size_t i = 0; i < view->n_containers; i++) {
        const char *name = view->containers[i].name;
        terms->containers[i] = g_strdup(name ? name : "");
        terms->n_init += view->containers[i].init;
    }
    return terms;
}

static bool have_unlimited(const struct card_ask *asks, uint32_t n)
{
    bool some = false;

    for (uint32_t i = 0; i < n; i++)
        some |= asks[i].unlimited;
    return some;
}

/* --- the request ------------------------------------------------------------------------------ */

static bool check_lists(const struct vgpu *vgpu, const struct pod_view *view, GError **error)
{
    const char *const keys[] = {vgpu->models, vgpu->models_not, vgpu->uuids, vgpu->uuids_not,
                                vgpu->policy};
    const char *mode = vgpu->mode ? string_pairs_get(&view->annotations, vgpu->mode) : NULL;

    if (mode && strlen(mode) > WORD_LIST_BYTES_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT, "annotation '%s' may have at most %d bytes",
                         vgpu->mode, WORD_LIST_BYTES_MAX);
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *text = keys[i] ? string_pairs_get(&view->annotations, keys[i]) : NULL;
        if (!word_list_check(keys[i], text, error))
            return false;
    }
    return true;
}

struct request *vgpu_read_asks(const struct vgpu *vgpu, const struct pod_view *view,
                               const struct dialect_options *options, GError **error)
{
    struct card_ask asks[REQUEST_ASKS_MAX];
    uint32_t n = 0, traits = 0;
    int64_t devices = 0;

    for (size_t i = 0; i < view->n_containers; i++) {
        struct card_ask ask;
        GError *failure = NULL;
        if (!read_ask(vgpu, &view->containers[i], options, &ask, &failure)) {
            if (!failure)
                continue;
            g_propagate_error(error, failure);
            return NULL;
        }
        if (n == REQUEST_ASKS_MAX) {
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                        "the pod has more than %d containers that ask for '%s'", REQUEST_ASKS_MAX,
                        vgpu->count);
            return NULL;
        }
        devices += ask.count;
        ask.container = (int32_t)i;
        traits |= n > 0 ? REQUEST_SEVERAL_GPU_CONTAINERS : 0;
        traits |= view->containers[i].init ? REQUEST_GPU_INIT_CONTAINER : 0;
        asks[n++] = ask;
    }
    if (n == 0)
        return NULL;
    struct request *request = request_new(vgpu->dialect, n);
    request->terms = read_terms(vgpu, view);
    request->terms->told_mib = vgpu_told_mib(vgpu, options);
    request->terms->unlimited = have_unlimited(asks, n);
    request->traits = traits;
    request->match_amount = devices;
    for (uint32_t i = 0; i < n; i++)
        request->asks[i] = asks[i];
    return request;
}

struct request *vgpu_take_asks(const struct vgpu *vgpu, const struct pod_view *view,
                               const struct dialect_options *options, bool *ret_many)
{
    g_autoptr(GArray) asks = g_array_new(FALSE, FALSE, sizeof(struct card_ask));
    int64_t devices = 0;

    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        struct wish wish = {
            .count = MIN(amount_or_none(container, vgpu->count), NODE_CARDS_MAX),
            .mib = MIN(amount_or_none(container, vgpu->memory),
                       AMOUNT_BYTES_MAX / MIB / memory_factor(vgpu, options)),
            .percent = MIN(amount_or_none(container, vgpu->percentage), PERCENT_MAX),
            .cores = MIN(amount_or_none(container, vgpu->cores), PERCENT_MAX),
        };
        /* Volcano takes memory without a number for one card, and promises that: volcano-sh/volcano
         * v1.15.1, pkg/scheduler/api/devices/util.go:213-222. */
        if (wish.count == 0 && vgpu->own_count && wish.mib > 0)
            wish.count = 1;
        if (wish.count == 0)
            continue;
        struct card_ask ask = ask_of(vgpu, container, options, wish);
        ask.container = (int32_t)i;
        devices += ask.count;
        g_array_append_val(asks, ask);
    }
    *ret_many = asks->len > REQUEST_ASKS_MAX;
    if (asks->len == 0 || *ret_many)
        return NULL;
    struct request *request = request_new(vgpu->dialect, asks->len);
    request->terms = read_terms(vgpu, view);
    request->terms->told_mib = vgpu_told_mib(vgpu, options);
    request->match_amount = devices;
    memcpy(request->asks, asks->data, asks->len * sizeof(struct card_ask));
    request->terms->unlimited = have_unlimited(request->asks, request->n_asks);
    return request;
}

struct request *vgpu_read_request(const struct vgpu *vgpu, const struct pod_view *view,
                                  const struct dialect_options *options, GError **error)
{
    g_autoptr(request) request = vgpu_read_asks(vgpu, view, options, error);

    if (!request || !check_lists(vgpu, view, error) ||
        !read_weights(vgpu, view, &request->terms->weights, error))
        return NULL;
    return g_steal_pointer(&request);
}
