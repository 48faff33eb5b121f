/* SPDX-License-Identifier: Apache-2.0 */
/* The pod asks for something else. */
#include "explain/remedy_step.h"

#include <gpuledger/quantity.h>
#include <string.h>

#define RESOURCES_MAX 8 /* of a pod, tried one by one */
#define ANNOTATIONS_TRIED 32

/* --- less, or in another unit --------------------------------------------------------------- */

/* One amount of the pod. */
struct asked {
    size_t container;
    const struct string_pair *pair;
    int64_t amount;
};

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

static void change(struct changed *changed, const struct pod_view *pod, const struct asked *asked,
                   int64_t amount)
{
    const char *resource = asked->pair->key;


    changed->view = *pod;
    changed->containers =
        g_memdup2(pod->containers, pod->n_containers * sizeof *changed->containers);
    changed->view.containers = changed->containers;
    g_snprintf(changed->text, sizeof changed->text, "%" G_GINT64_FORMAT, amount);
    struct container_view *view = &changed->containers[asked->container];
    view->limits = change_pairs(&view->limits, resource, changed->text, &changed->pairs[0]);
    view->requests = change_pairs(&view->requests, resource, changed->text, &changed->pairs[1]);
}

static void changed_clear(struct changed *changed)
{
    g_free(changed->containers);
    g_free(changed->pairs[0]);
    g_free(changed->pairs[1]);
}

static const struct node *who_takes_amount(struct search *search, const struct pod_view *pod,
                                           const struct asked *asked, int64_t amount)
{
    struct changed changed;

    change(&changed, pod, asked, amount);
    const struct node *taker = search_taker(search, &changed.view);
    changed_clear(&changed);
    return taker;
}

static struct remedy amount_text(struct search *search, enum remedy_kind kind,
                                 const struct asked *asked, int64_t to)
{
    const struct string_pair *pair = asked->pair;
    const char *name = search->query->pod->containers[asked->container].name;
    struct remedy remedy = {
        .kind = kind,
        .container = g_strdup(name ? name : ""),
        .resource = g_strdup(pair->key),
        .from = g_strdup(pair->value),
        .to = g_strdup_printf("%" G_GINT64_FORMAT, to),
    };

    remedy.text = g_strdup_printf("ask for %s %s instead of %s%s%s%s", remedy.to, pair->key,
                                  pair->value, name ? " in container " : "", name ? name : "",
                                  kind == REMEDY_UNIT ? ", if it was meant in another unit" : "");
    return remedy;
}

#define UNIT_DOUBT 16

/* By how much amounts are too large that were written in a smaller unit than the node's. */
static const int64_t unit_factors[] = {1024, 1000, 256, INT64_C(1) << 20, INT64_C(1) << 30,
                                       INT64_C(1) << 28};

static bool try_units(struct search *search, const struct asked *asked)
{
    /* Who asks for a little too much knows the unit. */
    if (who_takes_amount(search, search->query->pod, asked, asked->amount / UNIT_DOUBT))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(unit_factors) && search_may_try(search); i++) {
        const int64_t to = asked->amount / unit_factors[i];
        if (to == 0 || asked->amount % unit_factors[i] != 0)
            continue;
        const struct node *node = who_takes_amount(search, search->query->pod, asked, to);
        if (!node)
            continue;
        search_add(search, amount_text(search, REMEDY_UNIT, asked, to), node);
        return true;
    }
    return false;
}

/* The largest smaller amount, by bisection: somebody takes `low`, nobody takes `high`. 0: none. */
static int64_t find_less(struct search *search, const struct pod_view *pod,
                         const struct asked *asked, const struct node **ret_node)
{
    int64_t low = 1, high = asked->amount;
    const struct node *node = high > 1 ? who_takes_amount(search, pod, asked, low) : NULL;

    /* Hundredths of several cards go by whole cards: what is between is not valid. */
    const bool hundredths = g_str_has_suffix(asked->pair->key, "-core") && high > 100;
    for (int64_t to = (high - 1) / 100 * 100; hundredths && to >= 100 && search_may_try(search); to -= 100) {
        *ret_node = who_takes_amount(search, pod, asked, to);
        if (*ret_node)
            return to;
    }
    if (!node)
        return 0;
    while (high - low > 1 && search_may_try(search)) {
        const int64_t middle = low + (high - low) / 2;
        const struct node *taker = who_takes_amount(search, pod, asked, middle);
        low = taker ? middle : low;
        node = taker ? taker : node;
        high = taker ? high : middle;
    }
    *ret_node = node;
    return low;
}

/* What the pod asks for that some dialect reads. Returns how many. */
static size_t read_asked(const struct pod_view *pod, struct asked ret_asked[RESOURCES_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < pod->n_containers; i++) {
        const struct container_view *view = &pod->containers[i];
        const struct string_pairs *pairs = view->limits.n ? &view->limits : &view->requests;
        for (size_t j = 0; j < pairs->n && n < RESOURCES_MAX; j++) {
            const struct string_pair *pair = &pairs->items[j];
            struct asked asked = {i, pair, 0};
            if (search_reads(pair->key) && quantity_parse(pair->value, &asked.amount, NULL))
                ret_asked[n++] = asked;
        }
    }
    return n;
}

/* Compute is what a pod may say nothing of. */
static bool is_core(const char *resource)
{
    for (size_t i = 0; dialects[i]; i++) {
        const struct dialect_words *words = &dialects[i]->words;
        if (g_strcmp0(words->core, resource) == 0 && g_strcmp0(words->whole, resource) != 0)
            return true;
    }
    return false;
}

/* Not with the least of it, but without. */
static void try_without(struct search *search, const struct asked *asked)
{
    const struct node *node =
        is_core(asked->pair->key) ? who_takes_amount(search, search->query->pod, asked, 0) : NULL;

    if (node)
        search_add(search, amount_text(search, REMEDY_LESS, asked, 0), node);
}

/* Whether those that read the pod's resources say that no card is large enough. */
static bool is_too_large(struct search *search)
{
    bool too_large = false;

    for (const char *const *name = search->query->nodes; *name; name++) {
        const enum reason reason =
            search_ask(search, ledger_node(search->ledger, *name), search->query->pod,
                     search->query->request, NULL);
        too_large |= reason == REASON_CARD_TOO_SMALL;
        if (reason == REASON_INSUFFICIENT_MEMORY)
            return false;
    }
    return too_large;
}

void search_amounts(struct search *search)
{
    const struct pod_view *pod = search->query->pod;
    struct asked all[RESOURCES_MAX];
    const size_t n = read_asked(pod, all);
    const bool too_large = is_too_large(search);

    for (size_t i = 0; i < n; i++) {
        const struct node *node;
        if (too_large && try_units(search, &all[i]))
            continue;
        const int64_t to = find_less(search, pod, &all[i], &node);
        if (to > 0)
            search_add(search, amount_text(search, REMEDY_LESS, &all[i], to), node);
        else
            try_without(search, &all[i]);
    }
}

/* With next to nothing of the one, the most of the other; and with that, the most of the one. */
static bool try_two(struct search *search, const struct asked *one, const struct asked *other)
{
    const struct node *node;
    struct changed changed;

    change(&changed, search->query->pod, one, 1);
    const int64_t second = find_less(search, &changed.view, other, &node);
    changed_clear(&changed);
    if (second == 0)
        return false;
    change(&changed, search->query->pod, other, second);
    const int64_t first = find_less(search, &changed.view, one, &node);
    changed_clear(&changed);
    if (first == 0)
        return false;
    search_add_pair(search, amount_text(search, REMEDY_LESS, one, first),
                    amount_text(search, REMEDY_LESS, other, second), node);
    return true;
}

void search_two_amounts(struct search *search)
{
    struct asked all[RESOURCES_MAX];
    const size_t n = read_asked(search->query->pod, all);

    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n && search_may_try(search); j++) {
            if (try_two(search, &all[i], &all[j]))
                return;
        }
    }
}

/* --- without a condition --------------------------------------------------------------------- */

void search_annotations(struct search *search)
{
    struct node *any = *search->query->nodes ? ledger_node(search->ledger, *search->query->nodes)
                                             : NULL;
    struct step step;

    for (size_t i = 0; any && i < ANNOTATIONS_TRIED && search_may_try(search) &&
                       step_make(&step, search, any, REMEDY_CONDITION, i);
         i++) {
        const struct node *node = search_taker(search, &step.pod);
        if (node)
            search_add(search, step_tell(&step), node);
        step_undo(&step, any);
    }
}
