/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tencent gpu-manager: tencent.com/vcuda-core (100 are a card) and tencent.com/vcuda-memory (blocks
 * of 256 MiB), per container.
 *
 * Source of order and checks, also at v1.0.9, v1.1.4 and v1.1.5:
 * tkestack/gpu-manager@8cd842e:pkg/services/allocator/nvidia/allocator.go, pkg/utils/util.go
 *
 * gpu-manager chooses the card itself. Below 100 core it sorts the cards in an order of its own,
 * takes the first with room and fails the pod if the annotation says another: so we foresee that
 * choice. From 100 core on it takes whole cards by PCI topology, which nobody outside can foresee,
 * and writes their numbers into the pod when it starts: so what we write is provisional.
 *
 * kubelet calls it without naming the pod. It takes the pending, unassigned pod with the oldest
 * predicate time that has a container of that much core. Two pods that kubelet has not admitted yet
 * can be taken for each other, or be served in another order than they were foreseen in. Hence
 * in_flight(): one at a time, until kubelet reports the pod's start time; and none while a pod ends
 * that has not run.
 */
#include "dialect/tencent/tencent.h"

#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/digits.h"
#include "dialect/hold.h"
#include "dialect/rows.h"
#include "dialect/marks/node_marks.h"
#include "dialect/warning.h"

#include <string.h>

/* Source: tkestack/gpu-admission@47d56ae:pkg/util/util.go */
#define KEY_TIME "tencent.com/predicate-time"
/* Ours, in the other's place: without that, gpu-manager compares nothing and writes its choice. */
#define KEY_OWN_TIME "gpuledger.io/predicate-time"
#define KEY_NODE "tencent.com/predicate-node"
#define KEY_IDX "tencent.com/predicate-gpu-idx-"
#define KEY_ASSIGNED "tencent.com/gpu-assigned"
/* The user's: compute is a share to begin with, and may grow to this while the card is idle
 * (tkestack/gpu-manager@8cd842e:pkg/types/types.go). */
#define KEY_CORE_LIMIT "tencent.com/vcuda-core-limit"

#define TIME_MAX (INT64_MAX / 2)

/* --- gpu-manager's order -------------------------------------------------------------------- */

/* The least core free, then the least memory; among equals the card's place in gpu-manager's list.
 * 10 bits, 44 bits, 8 bits. Source: tkestack/gpu-manager@8cd842e:pkg/algorithm/nvidia/share.go,
 * pkg/device/nvidia/sort.go */
static struct cost cost_gpu_manager(const struct node *node, const struct card *card,
                                    const struct card_ask *ask, const struct demand *demand)
{
    const int64_t memory = MIN(card_memory_free(node, card), AMOUNT_BYTES_MAX - 1);

    return (struct cost){
        .loss = ((int64_t)card_core_free(node, card) << 52) | memory << 8 | card->rank,
    };
}

static const struct policy policy = {
    .name = "gpu-manager",
    .help = "the card that Tencent's gpu-manager will take by itself",
    .cost = cost_gpu_manager,
    .foreseen = true,
};

/* gpu-manager counts hundredths of cards and blocks of memory. */
static bool write_profile(const struct card_profile *profile, const struct dialect_options *options,
                          struct profile_words *words)
{
    if (profile->model || profile->slots || profile->memory < BLOCK_BYTES)
        return false;
    profile_words_amount(words, RESOURCE_CORE, profile->cards * CARD_CORE);
    profile_words_amount(words, RESOURCE_MEMORY, profile->cards * (profile->memory / BLOCK_BYTES));
    return true;
}

/* --- pods ----------------------------------------------------------------------------------- */

/* What gpu-manager does not serve, and says so too late for anybody to read. Bits beside those of
 * enum request_trait. */
enum {
    TRAIT_CORE_STEP = 1 << 16,
    TRAIT_CORE_ALONE = 1 << 17,
    TRAIT_MEMORY_ALONE = 1 << 18,
    TRAIT_CORE_LIMIT = 1 << 19,
    TRAIT_WHOLE_FIRST = 1 << 20, /* a container that shares a card comes after one that does not */
};

struct demand {
    uint32_t traits;
    uint32_t n_asks;
    int32_t n_cards; /* of all asks */
    int64_t core;
    bool whole; /* some ask is for whole cards */
    struct card_ask asks[REQUEST_ASKS_MAX];
};

static uint32_t find_traits(const struct container_view *container, int64_t core, int64_t blocks)
{
    if (container->init)
        return REQUEST_GPU_INIT_CONTAINER;
    if (core == 0)
        return TRAIT_MEMORY_ALONE;
    if (core > CARD_CORE && core % CARD_CORE != 0)
        return TRAIT_CORE_STEP;
    return core < CARD_CORE && blocks == 0 ? TRAIT_CORE_ALONE : 0;
}

static bool add_ask(struct demand *demand, int32_t container, int64_t core, int64_t blocks)
{
    const bool whole = core >= CARD_CORE;
    const int64_t cards = whole ? core / CARD_CORE : 1;
    const struct amount memory = {blocks, AMOUNT_NODE_UNITS};

    if (cards > REQUEST_ASKS_MAX - demand->n_cards)
        return false;
    if (demand->whole && !whole)
        demand->traits |= TRAIT_WHOLE_FIRST;
    demand->whole |= whole;
    demand->n_cards += (int32_t)cards;
    demand->core += core;
    demand->asks[demand->n_asks++] = (struct card_ask){
        /* Who has a card to himself has all its memory, whatever he asked for. */
        .memory = {whole ? 0 : amount_bytes(memory, BLOCK_BYTES), AMOUNT_BYTES},
        .container = container,
        .count = (int32_t)cards,
        .core = (int32_t)(whole ? CORE_WHOLE : core * CORE_WHOLE / CARD_CORE),
        .exclusive = whole,
    };
    return true;
}

/* What a pod that was bound holds of it, whether gpu-manager serves it or not; false: more cards than
 * can be told apart. */
static bool take_container(struct demand *demand, const struct pod_view *view, size_t i)
{
    const struct container_view *container = &view->containers[i];
    const int64_t core = amount_or_none(container, RESOURCE_CORE);
    const int64_t blocks = amount_or_none(container, RESOURCE_MEMORY);
    const int64_t cards = core / CARD_CORE + (core % CARD_CORE > 0);

    if (core == 0 && blocks == 0)
        return true;
    if (!add_ask(demand, (int32_t)i,
                 core > CARD_CORE ? MIN(cards, NODE_CARDS_MAX) * CARD_CORE : core, blocks))
        return false;
    demand->asks[demand->n_asks - 1].init = container->init && !container->sidecar;
    demand->asks[demand->n_asks - 1].sidecar = container->sidecar;
    return true;
}

static bool add_container(struct demand *demand, const struct pod_view *view, size_t i,
                          GError **error)
{
    const struct container_view *container = &view->containers[i];
    int64_t core, blocks;

    if (!read_container_amount(container, RESOURCE_CORE, &core, error) ||
        !read_container_amount(container, RESOURCE_MEMORY, &blocks, error))
        return false;
    if (core == 0 && blocks == 0)
        return true;
    const uint32_t traits = find_traits(container, core, blocks);
    demand->traits |= traits;
    if (traits != 0 || add_ask(demand, (int32_t)i, core, blocks))
        return true;
    return fail_with(error, GPULEDGER_ERROR_LIMIT,
                     "container '%s': " RESOURCE_CORE
                     ": the pod's containers ask for more than %d GPUs",
                     container->name, REQUEST_ASKS_MAX);
}

/* Whether a container's share is promised more than its compute may grow to. */
static bool is_above(const struct demand *demand, int64_t limit)
{
    for (uint32_t i = 0; i < demand->n_asks; i++) {
        const struct card_ask *ask = &demand->asks[i];
        if (!ask->exclusive && (int64_t)ask->core * CARD_CORE > limit * CORE_WHOLE)
            return true;
    }
    return false;
}

static bool read_demand(const struct pod_view *view, struct demand *ret_demand, GError **error)
{
    const char *limit = string_pairs_get(&view->annotations, KEY_CORE_LIMIT);
    int64_t number;

    *ret_demand = (struct demand){0};
    for (size_t i = 0; i < view->n_containers; i++) {
        if (!add_container(ret_demand, view, i, error))
            return false;
    }
    if (limit && ret_demand->n_asks > 0 &&
        (!digits_parse(limit, INT32_MAX, &number) || is_above(ret_demand, number)))
        ret_demand->traits |= TRAIT_CORE_LIMIT;
    return true;
}

/* The same of a pod that was bound: all that can be read. False: see take_container. */
static bool take_demand(const struct pod_view *view, struct demand *ret_demand)
{
    bool fits = true;

    *ret_demand = (struct demand){0};
    for (size_t i = 0; i < view->n_containers; i++)
        fits &= take_container(ret_demand, view, i);
    return fits;
}

static struct request *read_request(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error)
{
    struct demand demand;

    if (!read_demand(view, &demand, error) || (demand.n_asks == 0 && demand.traits == 0))
        return NULL;
    struct request *request = request_new(&dialect_tencent, demand.n_asks);
    request->traits = demand.traits;
    request->match_amount = demand.core;
    memcpy(request->asks, demand.asks, demand.n_asks * sizeof *demand.asks);
    if (options->tencent_unchecked) {
        request->terms = terms_new();
        request->terms->unchecked = true;
    }
    return request;
}

static bool is_marked(const struct pod_view *view)
{
    for (size_t i = 0; i < view->annotations.n; i++) {
        const char *key = view->annotations.items[i].key;
        if (g_str_equal(key, KEY_TIME) || g_str_equal(key, KEY_OWN_TIME) ||
            g_str_equal(key, KEY_NODE) || g_str_equal(key, KEY_ASSIGNED) ||
            g_str_has_prefix(key, KEY_IDX))
            return true;
    }
    return false;
}

/* As many different card numbers as there are shares. */
static bool parse_cards(const char *text, int32_t count, struct share *shares)
{
    g_auto(GStrv) items = g_strsplit(text, ",", count + 1);

    if (g_strv_length(items) != (guint)count)
        return false;
    for (int32_t i = 0; i < count; i++) {
        int64_t card;
        if (!digits_parse(items[i], NODE_CARDS_MAX - 1, &card))
            return false;
        for (int32_t j = 0; j < i; j++) {
            if (shares[j].card == card)
                return false;
        }
        shares[i].card = (int32_t)card;
    }
    return true;
}

/* Fills in the cards of one container's shares, or CARD_UNKNOWN and why. */
static void read_cards(const struct pod_view *view, const struct card_ask *ask,
                       struct share *shares, enum distrust *distrust, char **ret_warning)
{
    g_autofree char *key = g_strdup_printf(KEY_IDX "%d", ask->container);
    const char *text = string_pairs_get(&view->annotations, key);

    if (text && parse_cards(text, ask->count, shares))
        return;
    for (int32_t i = 0; i < ask->count; i++)
        shares[i].card = CARD_UNKNOWN;
    if (text) {
        *distrust = DISTRUST_MALFORMED;
        warn(ret_warning, g_strdup_printf("annotation '%s' '%.32s' is not the numbers of %d cards",
                                          key, text, ask->count));
    } else if (is_marked(view)) {
        *distrust = DISTRUST_LOST;
        warn(ret_warning, g_strdup_printf("has lost the annotation '%s'", key));
    } else {
        *distrust = DISTRUST_UNMARKED;
        warn(ret_warning, g_strdup("holds " RESOURCE_CORE " without '" KEY_IDX
                                   "…': bound by another scheduler?"));
    }
}

static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options, char **ret_warning)
{
    struct demand demand;

    if (!take_demand(view, &demand))
        return dialect_hold_many(&dialect_tencent, view, ret_warning);
    if (demand.n_cards == 0)
        return NULL;

    const char *own_time = string_pairs_get(&view->annotations, KEY_OWN_TIME);
    const char *time = own_time ? own_time : string_pairs_get(&view->annotations, KEY_TIME);
    const char *assigned = string_pairs_get(&view->annotations, KEY_ASSIGNED);
    const bool settled = assigned && !g_str_equal(assigned, "false");
    const bool pending = !view->phase || g_str_equal(view->phase, "Pending");
    const bool checked = !own_time && time && assigned;
    struct allocation *allocation =
        allocation_new(view->uid, view->ns, view->name, (size_t)demand.n_cards);
    struct share *share = allocation->shares;

    allocation->dialect = &dialect_tencent;
    allocation->match_amount = demand.core;
    if (time && !digits_parse(time, TIME_MAX, &allocation->assume_time_ns))
        warn(ret_warning, g_strdup_printf("annotation '%s' '%.32s' is not a time",
                                          own_time ? KEY_OWN_TIME : KEY_TIME, time));
    for (uint32_t i = 0; i < demand.n_asks; i++) {
        const struct card_ask *ask = &demand.asks[i];
        for (int32_t k = 0; k < ask->count; k++)
            share[k] = (struct share){
                .memory = ask->memory,
                .container = ask->container,
                .core = ask->core,
                .exclusive = ask->exclusive,
                .init = ask->init,
                .sidecar = ask->sidecar,
            };
        read_cards(view, ask, share, &allocation->distrust, ret_warning);
        share += ask->count;
    }
    /* kubelet reports the start time after gpu-manager has handed out cards; which whole ones, it
     * writes down before the container starts. One that is deleted before that, gpu-manager counts
     * no more, and may take once again for whom kubelet asks next. */
    allocation->assigned = settled || view->started;
    /* Which cards they are, gpu-manager says last before the containers start, unless it was to take
     * the card that the annotations name. */
    allocation->open = (demand.whole || !checked) && !(settled && !pending);
    allocation->waiting =
        pending && (!view->started || view->terminating || (demand.whole && !settled));
    return allocation;
}

/* tkestack/gpu-manager 8cd842ed, also v1.0.9 to v1.1.5: pkg/services/allocator/nvidia/allocator.go: pods of
 * the node, Pending, not assigned, whose containers are not in its own checkpoint: which they are
 * once kubelet has started the pod. */
static bool read_promise(const struct pod_view *view, struct device_promise *ret_promise)
{
    const char *assigned = string_pairs_get(&view->annotations, KEY_ASSIGNED);
    const bool pending = !view->phase || g_str_equal(view->phase, "Pending");
    struct demand demand;

    *ret_promise = (struct device_promise){.node = view->node_name};
    return pending && pod_view_is_bound(view) && !view->started &&
           (!assigned || g_str_equal(assigned, "false")) &&
           (!take_demand(view, &demand) || demand.n_cards > 0);
}

/* --- placement ------------------------------------------------------------------------------ */

static enum reason refuse(const struct node *node, const struct request *request,
                          const struct dialect_options *options)
{
    static const struct {
        uint32_t trait;
        enum reason reason;
    } refusals[] = {
        {REQUEST_GPU_INIT_CONTAINER, REASON_GPU_INIT_CONTAINER},
        {TRAIT_CORE_STEP, REASON_CORE_STEP},
        {TRAIT_CORE_ALONE, REASON_CORE_WITHOUT_MEMORY},
        {TRAIT_MEMORY_ALONE, REASON_MEMORY_WITHOUT_CORE},
        {TRAIT_CORE_LIMIT, REASON_CORE_LIMIT},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(refusals); i++) {
        if (request->traits & refusals[i].trait)
            return refusals[i].reason;
    }
    if ((request->traits & TRAIT_WHOLE_FIRST) && node->n_cards > 1)
        return REASON_UNFORESEEN_CARD;
    return REASON_NONE;
}

/* Cards of which nobody has anything: those without a sharer, less one for each that some pod has
 * to itself, wherever that is. Two of those may claim one number until both have been told apart. */
static int32_t count_free(const struct node *node)
{
    int32_t n = 0;

    for (int32_t i = 0; i < node->n_cards; i++)
        n += node->cards[i].holders == node->cards[i].exclusive;
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        for (uint32_t j = 0; j < other->n_shares; j++)
            n -= other->shares[j].exclusive;
    }
    return n;
}

/* gpu-manager has given out whole cards and not said which. Who wants whole ones needs only enough
 * of them. Who wants a part of one is foreseen if it will be a card that others share already:
 * gpu-manager prefers those, and they are not given out as a whole. */
static void look_beyond(const struct node *node, const struct request *request,
                        struct in_flight *in_flight)
{
    const struct card_ask *ask = &request->asks[0];
    struct placement placement;

    in_flight->restricted = true;
    if (request->n_asks != 1)
        return;
    if (ask->exclusive) {
        in_flight->restricted = ask->count > count_free(node);
    } else if (placement_find(node, request, &policy, NULL, CARD_UNKNOWN, &placement) ==
               REASON_NONE) {
        const struct card *card = node_card(node, placement.shares[0].card);
        in_flight->card = card->holders > 0 ? card->index : CARD_UNKNOWN;
    }
}

static bool takes_whole(const struct allocation *allocation)
{
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        if (allocation->shares[i].exclusive)
            return true;
    }
    return false;
}

static void in_flight(const struct node *node, const struct request *request,
                      struct in_flight *ret_in_flight)
{
    struct in_flight found = {.card = CARD_UNKNOWN, .since_ns = INT64_MAX};
    bool unsettled = false;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        if (!other->waiting || other->dialect != &dialect_tencent)
            continue;
        if (other->assigned && takes_whole(other) && !other->terminating)
            unsettled = true;
        else
            found.restricted = true;
        found.since_ns = MIN(found.since_ns, other->assume_time_ns);
    }
    if (!found.restricted && unsettled)
        look_beyond(node, request, &found);
    *ret_in_flight = found;
}

/* --- annotations ---------------------------------------------------------------------------- */

static void write_cards(const struct allocation *allocation, struct annotations *annotations)
{
    for (uint32_t i = 0; i < allocation->n_shares;) {
        const int32_t container = allocation->shares[i].container;
        g_autofree char *key = g_strdup_printf(KEY_IDX "%d", container);
        GString *cards = g_string_new(NULL);

        for (; i < allocation->n_shares && allocation->shares[i].container == container; i++)
            g_string_append_printf(cards, "%s%d", cards->len ? "," : "",
                                   allocation->shares[i].card);
        annotations_add(annotations, key, g_string_free(cards, FALSE));
    }
}

static void write_annotations(const struct allocation *allocation, const struct node *node,
                              struct annotations *annotations)
{
    const bool unchecked = allocation->terms && allocation->terms->unchecked;

    annotations_add(annotations, unchecked ? KEY_OWN_TIME : KEY_TIME,
                    g_strdup_printf("%" G_GINT64_FORMAT, allocation->assume_time_ns));
    annotations_add(annotations, KEY_NODE, g_strdup(node->name));
    annotations_add(annotations, KEY_ASSIGNED, g_strdup("false"));
    write_cards(allocation, annotations);
}

static void write_assigned(const struct allocation *allocation, int64_t now_ns,
                           struct annotations *annotations)
{
    write_cards(allocation, annotations);
    annotations_add(annotations, KEY_ASSIGNED, g_strdup("true"));
}

static const char *const resources[] = {RESOURCE_CORE, RESOURCE_MEMORY, NULL};
static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *ret_topology, char **ret_warning, GError **error)
{
    if (!tencent_read_topology(view, options, ret_topology, ret_warning, error))
        return false;
    ret_topology->dialect = &dialect_tencent;
    return true;
}

static const char *const records[] = {KEY_TIME,    KEY_OWN_TIME, KEY_NODE,
                                      KEY_IDX "*", KEY_ASSIGNED, NULL};

static const char *const replaced[] = {KEY_NODE, KEY_ASSIGNED, NULL};

static const char *const card_marks[] = {NODE_CARD_MEMORY_KEY, NODE_CARD_ORDER_KEY, NULL};

const struct dialect dialect_tencent = {
    .name = "tencent",
    .title = "Tencent gpu-manager",
    .words = {.memory = RESOURCE_MEMORY,
              .memory_unit = BLOCK_BYTES,
              .core = RESOURCE_CORE,
              .core_needed = true,
              .whole = RESOURCE_CORE,
              .whole_units = CARD_CORE},
    .resources = resources,
    .records = records,
    .replaces = replaced,
    .isolation = ISOLATION_HOOK,
    .card_marks = card_marks,
    .quotas_namespace = "kube-system", /* gpu-quota-admission, before f7d9868 */
    .quotas_name = "gpuquota",
    .quotas_key = "gpu_quota",
    .policy = &policy,
    .notes =
        {
            .asks =
                "Per container: `tencent.com/vcuda-core`, of which 100 are a card, and "
                "`tencent.com/vcuda-memory` in blocks of 256 MiB. Below 100 it is a share of one "
                "card; a multiple of 100 is as many whole cards, whatever the memory. "
                "Annotation `tencent.com/vcuda-core-limit`: compute may grow to this while the "
                "card is idle; what is promised remains `vcuda-core`.",
            .nodes = "Capacity of the same names: 100 core are a card, each with an equal part of "
                     "the memory. Unequal cards: annotation `gpuledger.io/card-memory` by minor "
                     "number, in blocks (`60,40`) or bytes (`15109Mi,15107Mi`). For gpu-manager "
                     "v1.1.5 and older (`--tencent-gpu-manager`), which takes equal cards as NVML "
                     "counts them: annotation `gpuledger.io/card-order`, the minor numbers in that "
                     "order (`1,0`).",
            .writes = "`tencent.com/predicate-gpu-idx-N` for each container N, `predicate-time`, "
                      "`predicate-node` and `gpu-assigned`. gpu-manager takes the least used card "
                      "with room by its own count, and fails the pod if the annotation says "
                      "another; `--policy` does not apply. One pod at a time: the next bind to the "
                      "node waits until kubelet has reported the start time of the last, and while "
                      "one that never ran is being deleted. Which whole cards a pod has, "
                      "gpu-manager writes before its containers start.",
            .own_scheduler = "gpu-admission",
            .sees = "The cards of any pod of the node with "
                    "`tencent.com/predicate-gpu-idx`.",
            .played = "gpu-manager v1.0.9, v1.1.4, v1.1.5 and 8cd842e. Read besides: gpu-admission "
                      "47d56ae",
            .limits =
                "Refused: 101 to 199 core and the like, core below 100 without memory, memory "
                "without core, GPUs of init containers, a container that shares a card after "
                "one of the pod that takes whole ones, a core limit that is no number "
                "or below `vcuda-core`. Not "
                "known: which of two equally used cards has fewer processes, which "
                "gpu-manager looks at before their numbers; a pod that ends between the bind "
                "of another and its admission, which gpu-manager counts no more. With "
                "`--tencent-unchecked` that fails no pod: `predicate-time` is left out, "
                "gpu-manager compares nothing and writes the card that it took.",
        },
    .read_topology = read_topology,
    .write_profile = write_profile,
    .read_request = read_request,
    .read_allocation = read_allocation,
    .refuse = refuse,
    .in_flight = in_flight,
    .read_promise = read_promise,
    .one_in_flight = true,
    .write_annotations = write_annotations,
    .write_assigned = write_assigned,
};
