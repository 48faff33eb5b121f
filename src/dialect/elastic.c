/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic-gpu, and nano-gpu as it was called before: a share of one card, or whole cards, for each
 * container. Four releases, four spellings of the same; each is a dialect of its own, because a
 * node's agent reads one spelling only.
 *
 * The older three are kept: a row is some 25 lines, and without it its pods would pass for pods that
 * ask for no GPU, while their agent goes on handing out the cards.
 *
 * The agent asks kubelet which container the devices belong to that it is about to start, and reads
 * that container's annotation: nothing can be mistaken, so nothing is in flight
 * (elastic-ai/elastic-gpu-agent@2609107:pkg/plugins/gpushare.go, pkg/kube/locator.go).
 */
#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/marks/card_order.h"
#include "dialect/hold.h"
#include "core/bytes.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <string.h>

DIALECT_ROW(elastic, 40);
DIALECT_ROW(elastic_com, 41);
DIALECT_ROW(nano_io, 42);
DIALECT_ROW(nano, 43);

/* Source: elastic-ai/elastic-gpu-scheduler@09b010d:pkg/utils/types.go */
#define CORE_PER_CARD 100
#define ANNOTATION_NAME_MAX 63 /* what follows the '/' of a key */

enum { CORE, MEMORY };

struct spelling {
    const struct dialect *dialect;
    /* Hundredths of a card; MiB, or NULL: that release shares by compute only. */
    const char *resources[3];
    const char *records[3]; /* mark and container */
    const char *replaces[2]; /* mark */
    const char *mark;      /* annotation "true" of every pod that was placed */
    const char *container; /* annotation of each GPU container: the cards; its name follows */
    bool whole_cards;      /* several cards for one container */
};

/* Source: elastic-ai/elastic-gpu-agent@2609107:pkg/plugins/gpushare.go;
 * elastic-ai/elastic-gpu-scheduler@09b010d:pkg/utils/types.go (annotations) */
static const struct spelling elastic_io = {
    .dialect = &dialect_elastic,
    .resources = {"elasticgpu.io/gpu-core", "elasticgpu.io/gpu-memory"},
    .records = {"elasticgpu.io/assumed", "elasticgpu.io/container-*"},
    .replaces = {"elasticgpu.io/assumed"},
    .mark = "elasticgpu.io/assumed",
    .container = "elasticgpu.io/container-",
    .whole_cards = true,
};
/* The resources were renamed, the annotations were not. Source:
 * elastic-ai/elastic-gpu@94fc37e:apis/elasticgpu/v1alpha1/types.go (resources);
 * elastic-ai/elastic-gpu-scheduler@09b010d:pkg/utils/types.go (annotations) */
static const struct spelling elastic_com = {
    .dialect = &dialect_elastic_com,
    .resources = {"elasticgpu.com/gpu-core", "elasticgpu.com/gpu-memory"},
    .records = {"elasticgpu.io/assumed", "elasticgpu.io/container-*"},
    .replaces = {"elasticgpu.io/assumed"},
    .mark = "elasticgpu.io/assumed",
    .container = "elasticgpu.io/container-",
    .whole_cards = true,
};
/* Source: elastic-ai/elastic-gpu-scheduler@v0.1.0:pkg/types/types.go */
static const struct spelling nano_io = {
    .dialect = &dialect_nano_io,
    .resources = {"nano-gpu.io/gpu-core", "nano-gpu.io/gpu-memory"},
    .records = {"nano-gpu.io/gpu", "nano-gpu.io/gpu-*"},
    .replaces = {"nano-gpu.io/gpu"},
    .mark = "nano-gpu.io/gpu",
    .container = "nano-gpu.io/gpu-",
};
/* Source: elastic-ai/elastic-gpu-scheduler@v0.3.0:pkg/types/types.go */
static const struct spelling nano = {
    .dialect = &dialect_nano,
    .resources = {"nano-gpu/gpu-percent"},
    .records = {"nano-gpu/assume", "nano-gpu/container-*"},
    .replaces = {"nano-gpu/assume"},
    .mark = "nano-gpu/assume",
    .container = "nano-gpu/container-",
};

static const struct spelling *const spellings[] = {&elastic_io, &elastic_com, &nano_io, &nano};

static const struct spelling *spelling_of(const struct dialect *dialect)
{
    for (size_t i = 0; i < G_N_ELEMENTS(spellings); i++) {
        if (spellings[i]->dialect == dialect)
            return spellings[i];
    }
    g_assert_not_reached();
}

static int64_t mib_bytes(int64_t mib)
{
    struct amount amount = {mib, AMOUNT_NODE_UNITS};

    return amount_bytes(amount, MIB);
}

/* --- nodes ---------------------------------------------------------------------------------- */

/* The agent counts hundredths of cards and MiB. */
static bool write_profile(const struct card_profile *profile, const struct dialect_options *options,
                          struct profile_words *words)
{
    const struct spelling *spelling = spelling_of(profile->dialect);

    if (profile->model || profile->slots || profile->memory < mib_bytes(1))
        return false;
    profile_words_amount(words, spelling->resources[CORE], profile->cards * CORE_PER_CARD);
    if (spelling->resources[MEMORY])
        profile_words_amount(words, spelling->resources[MEMORY],
                             profile->cards * (profile->memory / mib_bytes(1)));
    return true;
}

static bool read_topology(const struct spelling *spelling, const struct node_view *view,
                          struct topology *topology, GError **error)
{
    int64_t core, memory;

    if (!read_capacity(view, spelling->resources[CORE], &core, error) ||
        !read_capacity(view, spelling->resources[MEMORY], &memory, error))
        return false;
    if (core == 0 && memory == 0)
        return false;
    if (core < CORE_PER_CARD || core % CORE_PER_CARD || core / CORE_PER_CARD > NODE_CARDS_MAX)
        return fail_with(error, cards_error(core / CORE_PER_CARD),
                         "node '%s': capacity %s is %" G_GINT64_FORMAT
                         "; it must be %d for each of 1 to %d cards",
                         view->name, spelling->resources[CORE], core, CORE_PER_CARD,
                         NODE_CARDS_MAX);
    topology->dialect = spelling->dialect;
    topology->memory_unit = 1;
    topology->n_cards = (int32_t)(core / CORE_PER_CARD);
    for (int32_t i = 0; i < topology->n_cards; i++) {
        topology->cards[i].memory = mib_bytes(memory / topology->n_cards);
    }
    return true;
}

/* --- pods ----------------------------------------------------------------------------------- */

/* What one container asks for. */
struct wish {
    int32_t container;
    int32_t cards;  /* 1, or as many whole ones */
    int64_t core;   /* hundredths of one card */
    int64_t memory; /* MiB of it */
    bool init, sidecar;
    bool whole;
};

struct wishes {
    uint32_t traits;
    guint n;
    struct wish items[REQUEST_ASKS_MAX];
};

/* What the agent could not carry out, or the API server not store. */
static bool check_wish(const struct spelling *spelling, const struct container_view *container,
                       int64_t core, int64_t memory, GError **error)
{
    const char *complaint = NULL;
    size_t prefix = strlen(strchr(spelling->container, '/') + 1);

    if (core > CORE_PER_CARD && !spelling->whole_cards)
        complaint = "at most 100, one card";
    else if (core > CORE_PER_CARD && core % CORE_PER_CARD)
        complaint = "up to 100, or a multiple of it for whole cards";
    else if (core / CORE_PER_CARD > NODE_CARDS_MAX)
        complaint = "of fewer cards";
    else if (core > CORE_PER_CARD && memory > 0)
        complaint = "without gpu-memory beside it: the node's agent reads one card for that";
    if (complaint)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "container '%s': %s is %" G_GINT64_FORMAT "; it must be %s",
                         container->name, spelling->resources[CORE], core, complaint);
    if (!container->name)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "a container has no 'name': the annotation '%s…' needs it",
                         spelling->container);
    if (prefix + strlen(container->name) > ANNOTATION_NAME_MAX)
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "container '%s': its name is too long for the annotation '%s…': at most %d "
            "characters",
            container->name, spelling->container, (int)(ANNOTATION_NAME_MAX - prefix));
    return true;
}

/* `checked`: also whether the node side could serve it. */
static bool read_wishes(const struct spelling *spelling, const struct pod_view *view, bool checked,
                        struct wishes *ret_wishes, GError **error)
{
    ret_wishes->traits = 0;
    ret_wishes->n = 0;
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        int64_t core, memory;

        if (!read_container_amount(container, spelling->resources[CORE], &core, error) ||
            !read_container_amount(container, spelling->resources[MEMORY], &memory, error))
            return false;
        if (core == 0 && memory == 0)
            continue;
        if (checked && !check_wish(spelling, container, core, memory, error))
            return false;
        if (ret_wishes->n == G_N_ELEMENTS(ret_wishes->items))
            return fail_with(error, GPULEDGER_ERROR_RANGE,
                             "container '%s': a pod may have at most %d GPU containers",
                             container->name, REQUEST_ASKS_MAX);
        bool whole = core >= CORE_PER_CARD;
        ret_wishes->items[ret_wishes->n++] = (struct wish){
            .container = (int32_t)i,
            .init = container->init && !container->sidecar,
            .sidecar = container->sidecar,
            .whole = whole,
            .cards = whole ? (int32_t)MIN(core / CORE_PER_CARD + (core % CORE_PER_CARD > 0),
                                          NODE_CARDS_MAX)
                           : 1,
            .core = whole ? CORE_PER_CARD : core,
            .memory = memory,
        };
        if (container->init)
            ret_wishes->traits |= REQUEST_GPU_INIT_CONTAINER;
    }
    return true;
}

/* Whole cards include their memory. */
static struct amount wish_memory(const struct wish *wish)
{
    return wish->whole ? (struct amount){1000, AMOUNT_THOUSANDTHS}
                       : (struct amount){mib_bytes(wish->memory), AMOUNT_BYTES};
}

static int32_t wish_core(const struct wish *wish)
{
    return (int32_t)(wish->core * CORE_WHOLE / CORE_PER_CARD);
}

static struct terms *terms_of_containers(const struct pod_view *view)
{
    struct terms *terms = terms_new();

    terms->containers = g_new0(char *, view->n_containers + 1);
    for (size_t i = 0; i < view->n_containers; i++) {
        terms->containers[i] = g_strdup(view->containers[i].name);
        terms->n_init += view->containers[i].init;
    }
    return terms;
}

static struct request *read_request(const struct spelling *spelling, const struct pod_view *view,
                                    GError **error)
{
    struct wishes wishes;

    if (!read_wishes(spelling, view, true, &wishes, error) || wishes.n == 0)
        return NULL;
    struct request *request = request_new(spelling->dialect, wishes.n);
    request->traits = wishes.traits;
    request->terms = terms_of_containers(view);
    for (guint i = 0; i < wishes.n; i++) {
        const struct wish *wish = &wishes.items[i];
        request->asks[i] = (struct card_ask){
            .memory = wish_memory(wish),
            .container = wish->container,
            .count = wish->cards,
            .core = wish_core(wish),
            .exclusive = wish->whole,
            .init = wish->init,
            .sidecar = wish->sidecar,
        };
    }
    return request;
}

static void lose_cards(struct share *shares, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        shares[i].card = CARD_UNKNOWN;
        shares[i].minor = 0;
    }
}

/* Reads the annotation of one container into its shares, which begin as unknown. */
static enum distrust read_cards(const struct spelling *spelling, const struct pod_view *view,
                             const struct wish *wish, struct share *shares, char **ret_warning)
{
    const char *name = view->containers[wish->container].name;
    g_autofree char *key = g_strconcat(spelling->container, name, NULL);
    const char *text = string_pairs_get(&view->annotations, key);
    if (!text) {
        bool marked = string_pairs_get(&view->annotations, spelling->mark);
        warn(ret_warning,
             g_strdup_printf("container '%.64s' holds GPU without the annotation %s…%s", name,
                             spelling->container, marked ? "" : ": bound by another scheduler?"));
        return marked ? DISTRUST_LOST : DISTRUST_UNMARKED;
    }

    g_auto(GStrv) items = g_strsplit(text, ",", NODE_CARDS_MAX + 1);
    guint n = MAX(g_strv_length(items), 1); /* "" has none, and is none */
    for (guint i = 0; i < n; i++) {
        guint64 card;
        if (!items[i] ||
            !g_ascii_string_to_unsigned(items[i], 10, 0, NODE_CARDS_MAX - 1, &card, NULL)) {
            warn(ret_warning, g_strdup_printf("annotation %s%.64s '%.32s' is not a list of cards",
                                              spelling->container, name, text));
            lose_cards(shares, wish->cards);
            return DISTRUST_MALFORMED;
        }
        if (i < (guint)wish->cards) {
            shares[i].card = (int32_t)card;
            shares[i].minor = (int32_t)card + 1;
        }
    }
    if (n == (guint)wish->cards)
        return DISTRUST_NONE;
    /* Of too many nobody can say which it is on. */
    if (n > (guint)wish->cards)
        lose_cards(shares, wish->cards);
    warn(ret_warning, g_strdup_printf("annotation %s%.64s names %u cards, the container asks for "
                                      "%d",
                                      spelling->container, name, n, wish->cards));
    return n > (guint)wish->cards ? DISTRUST_MALFORMED : DISTRUST_EDITED;
}

static struct allocation *read_allocation(const struct spelling *spelling,
                                          const struct pod_view *view, char **ret_warning)
{
    struct wishes wishes;
    size_t n_shares = 0;

    if (!read_wishes(spelling, view, false, &wishes, NULL))
        return dialect_hold_many(spelling->dialect, view, ret_warning);
    if (wishes.n == 0)
        return NULL;
    for (guint i = 0; i < wishes.n; i++)
        n_shares += (size_t)wishes.items[i].cards;
    if (n_shares > REQUEST_ASKS_MAX)
        return dialect_hold_many(spelling->dialect, view, ret_warning);

    struct allocation *allocation = allocation_new(view->uid, view->ns, view->name, n_shares);
    struct share *share = allocation->shares;
    allocation->dialect = spelling->dialect;
    allocation->terms = terms_of_containers(view);
    /* Nobody writes that the agent has started a container; kubelet asks for no other devices. */
    allocation->assigned = view->started;
    /* The agent reads them last before a container starts, when its image is there. */
    allocation->heeded = !view->phase || g_str_equal(view->phase, "Pending");
    for (guint i = 0; i < wishes.n; i++) {
        const struct wish *wish = &wishes.items[i];
        for (int32_t k = 0; k < wish->cards; k++) {
            share[k] = (struct share){
                .memory = wish_memory(wish),
                .container = wish->container,
                .card = CARD_UNKNOWN,
                .core = wish_core(wish),
                .exclusive = wish->whole,
                .init = wish->init,
                .sidecar = wish->sidecar,
            };
        }
        enum distrust distrust = read_cards(spelling, view, wish, share, ret_warning);
        if (allocation->distrust == DISTRUST_NONE)
            allocation->distrust = distrust;
        share += wish->cards;
    }
    return allocation;
}

/* --- placement ------------------------------------------------------------------------------ */

/* kubelet does not tell the agent about the devices of init containers. */
static enum reason refuse(const struct node *node, const struct request *request,
                          const struct dialect_options *options)
{
    return request->traits & REQUEST_GPU_INIT_CONTAINER ? REASON_GPU_INIT_CONTAINER : REASON_NONE;
}

/* One annotation for each container that has a share; shares of a container are neighbours. */
static void write_annotations(const struct allocation *allocation, const struct node *node,
                              struct annotations *annotations)
{
    const struct spelling *spelling = spelling_of(allocation->dialect);

    annotations_add(annotations, spelling->mark, g_strdup("true"));
    for (uint32_t i = 0; i < allocation->n_shares;) {
        int32_t container = allocation->shares[i].container;
        g_autofree char *key = g_strconcat(spelling->container,
                                           allocation->terms->containers[container], NULL);
        g_autoptr(GString) cards = g_string_new(NULL);

        for (; i < allocation->n_shares && allocation->shares[i].container == container; i++)
            g_string_append_printf(cards, "%s%d", cards->len ? "," : "",
                                   card_order_minor(node, allocation->shares[i].card));
        annotations_add(annotations, key, g_string_free(g_steal_pointer(&cards), FALSE));
    }
}

/* --- the rows ------------------------------------------------------------------------------- */

/* What differs between the rows' functions is only which spelling they pass on. */
#define FUNCTIONS(spelling)                                                                        \
    static bool spelling##_topology(const struct node_view *view,                                  \
                                    const struct dialect_options *options,                         \
                                    struct topology *ret_topology, char **ret_warning,             \
                                    GError **error)                                                \
    {                                                                                              \
        return read_topology(&spelling, view, ret_topology, error);                                \
    }                                                                                              \
    static struct request *spelling##_request(                                                     \
        const struct pod_view *view, const struct dialect_options *options, GError **error)        \
    {                                                                                              \
        return read_request(&spelling, view, error);                                               \
    }                                                                                              \
    static struct allocation *spelling##_allocation(                                               \
        const struct pod_view *view, const struct dialect_options *options, char **ret_warning)    \
    {                                                                                              \
        return read_allocation(&spelling, view, ret_warning);                                      \
    }

FUNCTIONS(elastic_io)
FUNCTIONS(elastic_com)
FUNCTIONS(nano_io)
FUNCTIONS(nano)

#define MEMBERS(spelling)                                                                          \
    .resources = spelling.resources, .records = spelling.records, .replaces = spelling.replaces,   \
    .names_cards = true, .numbers = CARD_NUMBERS_MINOR, .isolation = ISOLATION_NONE,               \
    .read_topology = spelling##_topology, .write_profile = write_profile,                          \
    .read_request = spelling##_request, .read_allocation = spelling##_allocation,                  \
    .refuse = refuse, .write_annotations = write_annotations

#define CARD_WORDS(domain)                                                                         \
    {                                                                                              \
        .memory = domain "/gpu-memory", .memory_unit = INT64_C(1) << 20,                           \
        .core = domain "/gpu-core", .core_needed = true, .whole = domain "/gpu-core",              \
        .whole_units = CORE_PER_CARD                                                               \
    }

#define EXACT                                                                                      \
    " The agent asks kubelet whose devices it is about to start, so nothing is mistaken and no "   \
    "pod waits for another."
#define LIMITS                                                                                     \
    " GPU in an init container: kubelet does not tell the agent about it. Container names too "    \
    "long for the annotation. The label that the other scheduler reads at its start is not "       \
    "written."
#define WHOLE_LIMITS                                                                               \
    "150 and the like: more than a card must be a multiple of 100. Several cards together with "   \
    "gpu-memory: the agent's memory plugin reads one card." LIMITS
#define SHARE_LIMITS "More than 100: one card at most." LIMITS

const struct dialect dialect_elastic = {
    .name = "elastic",
    .title = "elastic-gpu",
    .notes =
        {
            .asks = "`elasticgpu.io/gpu-core` of each container: hundredths of one card, or 100 "
                    "for each whole one; `elasticgpu.io/gpu-memory`: MiB of one card.",
            .nodes = "Capacity `elasticgpu.io/gpu-core`, 100 for each card, and "
                     "`elasticgpu.io/gpu-memory`, divided among them.",
            .writes = "`elasticgpu.io/container-NAME` for each container with GPU (`0`, or `0,1`), "
                      "and `elasticgpu.io/assumed`." EXACT,
            .own_scheduler = "elastic-gpu-scheduler",
            .sees = "The annotations of any pod while it runs. When it starts it finds pods by a "
                    "label that "
                    "gpuledger does not write, and misses all that were bound before: this does "
                    "not work.",
            .played = "elastic-gpu-agent 2609107. Read besides: elastic-gpu-scheduler 09b010d",
            .limits = WHOLE_LIMITS,
        },
    .words = CARD_WORDS("elasticgpu.io"),
    MEMBERS(elastic_io),
};

const struct dialect dialect_elastic_com = {
    .name = "elastic-com",
    .title = "elastic-gpu (elasticgpu.com)",
    .notes =
        {
            .asks = "As elastic, with `elasticgpu.com` for `elasticgpu.io`: the names in the last "
                    "commits of elastic-gpu, which elastic-gpu-scheduler is built with.",
            .nodes = "Likewise.",
            .writes =
                "`elasticgpu.io/container-NAME` and `elasticgpu.io/assumed`, as elastic: these "
                "were not renamed." EXACT,
            .played = "the same agent under these names of resources",
            .limits = WHOLE_LIMITS,
        },
    .words = CARD_WORDS("elasticgpu.com"),
    MEMBERS(elastic_com),
};

const struct dialect dialect_nano_io = {
    .name = "nano-io",
    .title = "nano-gpu v0.1",
    .notes =
        {
            .asks = "`nano-gpu.io/gpu-core` of each container: hundredths of one card; "
                    "`nano-gpu.io/gpu-memory`: MiB of it.",
            .nodes = "Capacity `nano-gpu.io/gpu-core`, 100 for each card, and "
                     "`nano-gpu.io/gpu-memory`, divided among them.",
            .writes = "`nano-gpu.io/gpu-NAME` for each container with GPU, and "
                      "`nano-gpu.io/gpu`." EXACT,
            .played =
                "the same agent under these names. Read besides: elastic-gpu-scheduler v0.1.0",
            .limits = SHARE_LIMITS,
        },
    MEMBERS(nano_io),
};

const struct dialect dialect_nano = {
    .name = "nano",
    .title = "nano-gpu v0.2, v0.3",
    .notes =
        {
            .asks = "`nano-gpu/gpu-percent` of each container: hundredths of one card. Memory is "
                    "nobody's.",
            .nodes = "Capacity `nano-gpu/gpu-percent`, 100 for each card.",
            .writes = "`nano-gpu/container-NAME` for each container with GPU, and "
                      "`nano-gpu/assume`." EXACT,
            .played = "the same agent under these names. Read besides: nano-gpu-agent v0.2.0, "
                      "elastic-gpu-scheduler v0.3.0",
            .limits = SHARE_LIMITS,
        },
    MEMBERS(nano),
};
