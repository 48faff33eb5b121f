/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Nodes and pods of NVIDIA's own plugin in words, "key=value key=value", and what becomes of them.
 * Whatever a test did, teardown finds usage to be the sum of its parts.
 */
#include "core/ledger.h"
#include "ledger_end.h"
#include "literals.h"

#include <check.h>
#include <gpuledger/dialect.h>
#include <gpuledger/error.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)

static const struct dialect *nvidia;
static struct dialect_options options;
static struct ledger *book;
static char *warning;

static GPtrArray *kept, *kept_words; /* until the end of the test */

static inline void free_words(gpointer words)
{
    g_strfreev(words);
}

static inline void setup(void)
{
    kept = g_ptr_array_new_with_free_func(g_free);
    kept_words = g_ptr_array_new_with_free_func(free_words);
    nvidia = dialect_find("nvidia");
    options = (struct dialect_options){0};
    book = ledger_new();
}

static inline void teardown(void)
{
    ledger_end(book);
    g_clear_pointer(&warning, g_free);
    g_clear_pointer(&kept, g_ptr_array_unref);
    g_clear_pointer(&kept_words, g_ptr_array_unref);
}

/* "key=value key=value" as pairs; NULL and "" are none. They live until the end of the test. */
static inline struct string_pairs pairs(const char *text)
{
    char **words = g_strsplit(text ? text : "", " ", -1);
    struct string_pair *items = g_new0(struct string_pair, g_strv_length(words) + 1);
    size_t n = 0;

    g_ptr_array_add(kept_words, words);
    g_ptr_array_add(kept, items);
    for (char **word = words; *word && **word; word++) {
        char *sign = strchr(*word, '=');
        *sign = '\0';
        items[n++] = (struct string_pair){*word, sign + 1};
    }
    return (struct string_pairs){items, n};
}

struct node_words {
    const char *capacity, *allocatable, *labels, *annotations;
};

static inline bool read_node(const char *name, const struct node_words *words, struct topology *topology)
{
    struct node_view view = {
        .name = name,
        .labels = pairs(words->labels),
        .annotations = pairs(words->annotations),
        .capacity = pairs(words->capacity),
        .allocatable = pairs(words->allocatable),
    };
    g_autoptr(GError) error = NULL;

    g_clear_pointer(&warning, g_free);
    bool claimed = dialect_read_topology(&view, &options, topology, &warning, &error);
    ck_assert_msg(!error, "%s", error ? error->message : "");
    return claimed;
}

static inline const struct node *set_node(const char *name, const struct node_words *words)
{
    g_autoptr(topology) topology = topology_new();

    ck_assert(read_node(name, words, topology));
    return ledger_set_topology(book, name, topology);
}

#define NODE(name, ...) set_node(name, &(struct node_words){__VA_ARGS__})

/* One container's devices, "nvidia.com/gpu=1"; `init` those of a plain init container. */
struct pod_words {
    const char *devices, *second, *init, *annotations;
};

static inline struct pod_view pod_view(const char *name, const struct pod_words *words)
{
    struct container_view *containers = g_new0(struct container_view, 3);
    size_t n = 0;

    g_ptr_array_add(kept, containers);
    containers[n++] = (struct container_view){.name = "c", .limits = pairs(words->devices)};
    if (words->second)
        containers[n++] = (struct container_view){.name = "d", .limits = pairs(words->second)};
    if (words->init)
        containers[n++] =
            (struct container_view){.name = "i", .init = true, .limits = pairs(words->init)};
    return (struct pod_view){.ns = "ml",
                             .name = name,
                             .uid = name,
                             .phase = "Pending",
                             .annotations = pairs(words->annotations),
                             .containers = containers,
                             .n_containers = n};
}

static inline struct request *read_request(const struct pod_words *words)
{
    struct pod_view view = pod_view("p", words);
    g_autoptr(GError) error = NULL;
    struct request *request = dialect_read_request(&view, &options, &error);

    ck_assert_msg(!error, "%s", error ? error->message : "");
    return request;
}

#define REQUEST(...) read_request(&(struct pod_words){__VA_ARGS__})

static inline enum reason ask(const char *node, const struct pod_words *words)
{
    g_autoptr(request) request = read_request(words);
    struct admission_query query = {.request = request, .policy = policies, .options = &options};
    struct placement placement;
    enum reason reason, without;

    ck_assert_ptr_nonnull(request);
    enum admission admission =
        dialect_admit(ledger_node(book, node), &query, &placement, &reason);
    ck_assert_int_eq(dialect_admit(ledger_node(book, node), &query, NULL, &without), admission);
    ck_assert_int_eq(without, reason);
    ck_assert_int_eq(admission == ADMISSION_YES, reason == REASON_NONE);
    return reason;
}

#define ASK(node, ...) ask(node, &(struct pod_words){__VA_ARGS__})

/* The pod as the watch shows it after a Binding by us (`by_us`) or by kube-scheduler itself. */
static inline void put(const char *node, const char *name, bool by_us, const struct pod_words *words)
{
    struct pod_view view = pod_view(name, words);
    g_auto(annotations) annotations = {0};
    g_autoptr(allocation) planned = nvidia->read_allocation(&view, &options, &warning);

    ck_assert_ptr_nonnull(planned);
    allocation_witness(planned, ledger_node(book, node));
    nvidia->write_annotations(planned, ledger_node(book, node), &annotations);
    ck_assert_uint_le(annotations.n, 1);
    struct string_pair words_of_both[4];
    size_t n = 0;
    for (; n < view.annotations.n && n < 3; n++)
        words_of_both[n] = view.annotations.items[n];
    if (by_us && annotations.n > 0)
        words_of_both[n++] =
            (struct string_pair){annotations.items[0].key, annotations.items[0].value};
    view.annotations = (struct string_pairs){words_of_both, n};
    struct allocation *bound = dialect_read_allocation(&view, &options, &warning);
    ck_assert_ptr_eq(bound->dialect, nvidia);
    ck_assert_uint_eq(bound->distrust, DISTRUST_NONE);
    ck_assert(!bound->waiting);
    bound->state = ALLOCATION_CONFIRMED;
    ledger_put(book, node, bound);
}

#define PUT(node, name, ...) put(node, name, true, &(struct pod_words){__VA_ARGS__})

/* Admits and binds pods of one device each until one is refused. */
static inline int fill(const char *node, const char *devices, enum reason expected)
{
    for (int n = 0;; n++) {
        g_autofree char *name = g_strdup_printf("fill-%d", n);
        enum reason reason = ASK(node, devices);
        if (reason != REASON_NONE) {
            ck_assert_str_eq(reason_info(reason)->code, reason_info(expected)->code);
            return n;
        }
        PUT(node, name, devices);
    }
}

static inline const struct pool *pool_of(const char *node, const char *resource)
{
    const struct pool *pool = node_pool(ledger_node(book, node), resource);
    ck_assert_ptr_nonnull(pool);
    return pool;
}

#define ck_assert_reason(reason, expected)                                                         \
    ck_assert_str_eq(reason_info(reason)->code, reason_info(expected)->code)

#define GPUS "nvidia.com/gpu"
#define T4 "nvidia.com/gpu.product=Tesla-T4 nvidia.com/gpu.memory=15360 "

#define FACTS(product, memory, major, minor, driver)                                               \
    "nvidia.com/gpu.product=" product " nvidia.com/gpu.memory=" memory                             \
    " nvidia.com/gpu.compute.major=" major " nvidia.com/gpu.compute.minor=" minor                  \
    " nvidia.com/cuda.driver-version.major=" driver " "
