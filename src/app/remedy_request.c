/* SPDX-License-Identifier: Apache-2.0 */
/* The pod asks for something else. */
#include "app/remedy_search.h"

#include <gpuledger/quantity.h>
#include <string.h>

#define RESOURCES_MAX 8 /* of a pod, tried one by one */
#define ANNOTATIONS_TRIED 32

/* --- less, or in another unit --------------------------------------------------------------- */

/* The pod with one amount changed. */
struct changed {
    struct pod_view view;
    struct container_view *containers;
    struct string_pair *pairs[2]; /* limits and requests of the container */
    char text[24];
};

static struct string_pairs change_pairs(const struct string_pairs *pairs, const char *resource,
                                        const char *text, struct string_pair **ret_items)
{
    struct string_pair *items = g_memdup2(pairs->items, pairs->n * sizeof *items);

    for (size_t i = 0; i < pairs->n; i++) {
        if (g_str_equal(items[i].key, resource))
            items[i].value = text;
    }
    *ret_items = items;
    return (struct string_pairs){items, pairs->n};
}

static void change(struct changed *changed, const struct pod_view *pod, size_t container,
                   const char *resource, int64_t amount)
{
    changed->view = *pod;
    changed->containers =
        g_memdup2(pod->containers, pod->n_containers * sizeof *changed->containers);
    changed->view.containers = changed->containers;
    g_snprintf(changed->text, sizeof changed->text, "%" G_GINT64_FORMAT, amount);
    struct container_view *view = &changed->containers[container];
    view->limits = change_pairs(&view->limits, resource, changed->text, &changed->pairs[0]);
    view->requests = change_pairs(&view->requests, resource, changed->text, &changed->pairs[1]);
}

static void changed_clear(struct changed *changed)
{
    g_free(changed->containers);
    g_free(changed->pairs[0]);
    g_free(changed->pairs[1]);
}

static const struct node *who_takes_amount(struct search *search, size_t container,
                                           const char *resource, int64_t amount)
{
    struct changed changed;

    change(&changed, search->query->pod, container, resource, amount);
    const struct node *taker = search_taker(search, &changed.view);
    changed_clear(&changed);
    return taker;
}

static void add_amount(struct search *search, enum remedy_kind kind, size_t container,
                       const struct string_pair *pair, int64_t to, const struct node *node)
{
    const char *name = search->query->pod->containers[container].name;
    struct remedy remedy = {
        .kind = kind,
        .container = g_strdup(name ? name : ""),
        .resource = g_strdup(pair->key),
        .from = g_strdup(pair->value),
        .to = g_strdup_printf("%" G_GINT64_FORMAT, to),
    };

    remedy.text = g_strdup_printf("ask for %s %s instead of %s%s%s%s", remedy.to, pair->key,
                                  pair->value, name ? " in container " : "", name ? name : "",
                                  kind == REMEDY_UNIT ? ": it was meant in another unit" : "");
    search_add(search, remedy, node);
}

/* By how much amounts are too large that were written in a smaller unit than the node's. */
static const int64_t unit_factors[] = {1024, 1000, 256, INT64_C(1) << 20, INT64_C(1) << 30,
                                       INT64_C(1) << 28};

static bool try_units(struct search *search, size_t container, const struct string_pair *pair,
                      int64_t amount)
{
    for (size_t i = 0; i < G_N_ELEMENTS(unit_factors) && search_may_try(search); i++) {
        const int64_t to = amount / unit_factors[i];
        if (to == 0 || amount % unit_factors[i] != 0)
            continue;
        const struct node *node = who_takes_amount(search, container, pair->key, to);
        if (!node)
            continue;
        add_amount(search, REMEDY_UNIT, container, pair, to, node);
        return true;
    }
    return false;
}

/* The largest smaller amount, by bisection: somebody takes `low`, nobody takes `high`. */
static void try_less(struct search *search, size_t container, const struct string_pair *pair,
                     int64_t amount)
{
    int64_t low = 1, high = amount;
    const struct node *node =
        amount > 1 ? who_takes_amount(search, container, pair->key, low) : NULL;

    /* Hundredths of several cards go by whole cards: what is between is not valid. */
    const bool hundredths = g_str_has_suffix(pair->key, "-core") && amount > 100;
    for (int64_t to = (amount - 1) / 100 * 100; hundredths && to >= 100 && search_may_try(search); to -= 100) {
        const struct node *taker = who_takes_amount(search, container, pair->key, to);
        if (!taker)
            continue;
        add_amount(search, REMEDY_LESS, container, pair, to, taker);
        return;
    }
    if (!node)
        return;
    while (high - low > 1 && search_may_try(search)) {
        const int64_t middle = low + (high - low) / 2;
        const struct node *taker = who_takes_amount(search, container, pair->key, middle);
        low = taker ? middle : low;
        node = taker ? taker : node;
        high = taker ? high : middle;
    }
    add_amount(search, REMEDY_LESS, container, pair, low, node);
}

void search_amounts(struct search *search, bool too_large)
{
    const struct pod_view *pod = search->query->pod;
    int n = 0;

    for (size_t i = 0; i < pod->n_containers; i++) {
        const struct container_view *view = &pod->containers[i];
        const struct string_pairs *pairs = view->limits.n ? &view->limits : &view->requests;
        for (size_t j = 0; j < pairs->n && n < RESOURCES_MAX; j++) {
            const struct string_pair *pair = &pairs->items[j];
            int64_t amount;
            if (!search_reads(pair->key) || !quantity_parse(pair->value, &amount, NULL))
                continue;
            n++;
            if (!too_large || !try_units(search, i, pair, amount))
                try_less(search, i, pair, amount);
        }
    }
}

/* --- without a condition --------------------------------------------------------------------- */

void search_annotations(struct search *search)
{
    const struct pod_view *pod = search->query->pod;

    for (size_t i = 0; i < pod->annotations.n && i < ANNOTATIONS_TRIED && search_may_try(search); i++) {
        const struct string_pair *pair = &pod->annotations.items[i];
        g_autofree struct string_pair *others =
            g_memdup2(pod->annotations.items, pod->annotations.n * sizeof *others);
        struct pod_view without = *pod;
        others[i] = others[pod->annotations.n - 1];
        without.annotations = (struct string_pairs){others, pod->annotations.n - 1};
        const struct node *node = search_taker(search, &without);
        if (!node)
            continue;
        search_add(search,
            (struct remedy){.kind = REMEDY_CONDITION,
                            .key = g_strdup(pair->key),
                            .from = g_strdup(pair->value),
                            .text = g_strdup_printf("take away the annotation %s: %s", pair->key,
                                                    pair->value)},
            node);
    }
}
