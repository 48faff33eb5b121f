/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger/node_image.h"

#include "core/allocation.h"
#include "core/node_traits.h"

#include <gpuledger/links.h>
#include <gpuledger/mig.h>
#include <string.h>

#define ALIGNMENT ((size_t)16)
/* Pods of a node lie anywhere in memory; while one is looked at, those after it come. */
#define PREFETCHED 6
#define PREFETCHED_BYTES (sizeof(struct allocation_own) + sizeof(struct share))
#define LINE 64

static size_t align(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static size_t sum_texts(const struct node *node, bool texts)
{
    size_t sum = text_size(node->name);

    for (int32_t i = 0; texts && i < node->n_cards; i++)
        sum += text_size(node->cards[i].uuid) + text_size(node->cards[i].model) +
               text_size(node->cards[i].mode);
    for (int32_t i = 0; i < node->n_pools; i++)
        sum += text_size(node->pools[i].resource) + text_size(node->pools[i].model);
    return sum;
}

static void prefetch(const GPtrArray *allocations, guint at)
{
    if (at >= allocations->len)
        return;
    const char *block = (const char *)allocation_own(g_ptr_array_index(allocations, at));
    for (size_t offset = 0; offset < PREFETCHED_BYTES; offset += LINE)
        __builtin_prefetch(block + offset);
}

static size_t sum_allocations(const GPtrArray *allocations)
{
    size_t sum = 0;

    for (guint i = 0; i < allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(allocations, i);
        prefetch(allocations, i + PREFETCHED);
        __builtin_prefetch(allocation->facts); /* which get one reference more */
        __builtin_prefetch(allocation->terms);
        sum += align(allocation_size(allocation));
    }
    return sum;
}

size_t node_image_size(const struct node *from, bool texts)
{
    return align(sizeof(struct node_image)) +
           align(from->allocations->len * sizeof(struct allocation *)) +
           align((size_t)from->n_cards * sizeof(struct card)) +
           align((size_t)from->n_pools * sizeof(struct pool)) + sum_allocations(from->allocations) +
           align(sum_texts(from, texts));
}

/* The next so many bytes of the block. */
static void *cut(char **at, size_t size)
{
    void *piece = *at;

    *at += align(size);
    return piece;
}

static void *keep(char **at, const void *from, size_t size)
{
    void *piece = cut(at, size);

    return size > 0 ? memcpy(piece, from, size) : piece;
}

/* Texts are not aligned. */
static char *keep_text(char **at, const char *text)
{
    const size_t size = text_size(text);
    char *copy = *at;

    if (!text)
        return NULL;
    *at += size;
    return memcpy(copy, text, size);
}

static void keep_allocations(struct node_image *image, const GPtrArray *from, char **at)
{
    GPtrArray *allocations = &image->allocations;

    allocations->pdata = cut(at, from->len * sizeof(struct allocation *));
    allocations->len = from->len;
    for (guint i = 0; i < from->len; i++) {
        const struct allocation *its = g_ptr_array_index(from, i);
        struct allocation *copy = allocation_copy(its, cut(at, allocation_size(its)));
        copy->node = &image->own.node;
        allocations->pdata[i] = copy;
    }
}

static void keep_texts(struct node *node, bool texts, char **at)
{
    node->name = keep_text(at, node->name);
    for (int32_t i = 0; i < node->n_cards; i++) {
        struct card *card = &node->cards[i];
        card->uuid = texts ? keep_text(at, card->uuid) : NULL;
        card->model = texts ? keep_text(at, card->model) : NULL;
        card->mode = texts ? keep_text(at, card->mode) : NULL;
    }
    for (int32_t i = 0; i < node->n_pools; i++) {
        node->pools[i].resource = keep_text(at, node->pools[i].resource);
        node->pools[i].model = keep_text(at, node->pools[i].model);
    }
}

/* What the ledger replaces and never changes is not copied. */
static void keep_references(struct node *node)
{
    links_ref(node->links);
    node_traits_ref(node->traits);
    for (int32_t i = 0; i < node->n_cards; i++)
        mig_profiles_ref(node->cards[i].mig);
    if (node->unhealthy)
        g_array_ref(node->unhealthy);
    if (node->departed)
        g_array_ref(node->departed);
    if (node->promised)
        g_array_ref(node->promised);
}

struct node_image *node_image_take(const struct node *from, bool texts, void *block)
{
    char *at = block;
    struct node_image *image = cut(&at, sizeof *image);
    struct node *node = &image->own.node;

    image->own = *node_own(from);
    image->own.alone = *image->own.pulse;
    image->own.pulse = &image->own.alone;
    image->own.changes = NULL;
    keep_allocations(image, from->allocations, &at);
    node->allocations = &image->allocations;
    node->cards = keep(&at, from->cards, (size_t)from->n_cards * sizeof(struct card));
    node->pools = keep(&at, from->pools, (size_t)from->n_pools * sizeof(struct pool));
    keep_texts(node, texts, &at);
    keep_references(node);
    return image;
}

void node_image_clear(struct node_image *image)
{
    struct node *node = &image->own.node;

    for (guint i = 0; i < image->allocations.len; i++)
        allocation_clear(g_ptr_array_index(&image->allocations, i));
    for (int32_t i = 0; i < node->n_cards; i++)
        mig_profiles_unref(node->cards[i].mig);
    links_unref(node->links);
    node_traits_unref(node->traits);
    g_clear_pointer(&node->unhealthy, g_array_unref);
    g_clear_pointer(&node->departed, g_array_unref);
    g_clear_pointer(&node->promised, g_array_unref);
}
