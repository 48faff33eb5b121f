/* SPDX-License-Identifier: Apache-2.0 */
#include "core/node_traits.h"

#include <gpuledger/quantity.h>
#include <string.h>

/* What is being put together: borrowed strings. */
struct draft {
    size_t n_labels, n_taints, n_amounts;
    size_t texts_size;
    struct taint_view taints[NODE_TRAITS_TAINTS_MAX];
    struct pod_facts_amount amounts[NODE_TRAITS_AMOUNTS_MAX];
};

static void draft_labels(struct draft *draft, const struct string_pairs *labels)
{
    draft->n_labels = MIN(labels->n, NODE_TRAITS_LABELS_MAX);
    for (size_t i = 0; i < draft->n_labels; i++)
        draft->texts_size += strlen(labels->items[i].key) + strlen(labels->items[i].value) + 2;
}

static void draft_taints(struct draft *draft, const struct node_view *view)
{
    for (size_t i = 0; i < view->n_taints && draft->n_taints < NODE_TRAITS_TAINTS_MAX; i++) {
        const struct taint_view *taint = &view->taints[i];
        if (!taint->key || (g_strcmp0(taint->effect, "NoSchedule") != 0 &&
                            g_strcmp0(taint->effect, "NoExecute") != 0))
            continue;
        draft->taints[draft->n_taints++] = (struct taint_view){
            taint->key, taint->value ? taint->value : "", taint->effect};
        draft->texts_size += strlen(taint->key) + strlen(taint->effect) + 2 +
                             (taint->value ? strlen(taint->value) : 0) + 1;
    }
}

/* CPU and memory the ledger counts by itself. */
static void draft_amounts(struct draft *draft, const struct node_view *view)
{
    const struct string_pairs *all = view->allocatable.n > 0 ? &view->allocatable : &view->capacity;

    for (size_t i = 0; i < all->n && draft->n_amounts < NODE_TRAITS_AMOUNTS_MAX; i++) {
        int64_t amount;
        if (!strchr(all->items[i].key, '/') ||
            !quantity_parse_thousandths(all->items[i].value, &amount, NULL))
            continue;
        draft->amounts[draft->n_amounts++] =
            (struct pod_facts_amount){all->items[i].key, amount};
        draft->texts_size += strlen(all->items[i].key) + 1;
    }
}

static char *keep(char **at, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *kept = memcpy(*at, text, size);

    *at += size;
    return kept;
}

struct node_traits *node_traits_new(const struct node_view *view)
{
    struct draft draft;

    draft.n_labels = draft.n_taints = draft.n_amounts = draft.texts_size = 0;
    draft_labels(&draft, &view->labels);
    draft_taints(&draft, view);
    draft_amounts(&draft, view);

    struct node_traits *traits = g_malloc0(
        sizeof *traits + draft.n_amounts * sizeof *draft.amounts +
        draft.n_labels * sizeof(struct string_pair) + draft.n_taints * sizeof *draft.taints +
        draft.texts_size);
    struct pod_facts_amount *amounts = (struct pod_facts_amount *)(void *)(traits + 1);
    struct string_pair *labels = (struct string_pair *)(void *)(amounts + draft.n_amounts);
    struct taint_view *taints = (struct taint_view *)(void *)(labels + draft.n_labels);
    char *texts = (char *)(taints + draft.n_taints);

    for (size_t i = 0; i < draft.n_amounts; i++)
        amounts[i] = (struct pod_facts_amount){keep(&texts, draft.amounts[i].resource),
                                               draft.amounts[i].thousandths};
    for (size_t i = 0; i < draft.n_labels; i++) {
        labels[i].key = keep(&texts, view->labels.items[i].key);
        labels[i].value = keep(&texts, view->labels.items[i].value);
    }
    for (size_t i = 0; i < draft.n_taints; i++) {
        taints[i].key = keep(&texts, draft.taints[i].key);
        taints[i].value = keep(&texts, draft.taints[i].value);
        taints[i].effect = keep(&texts, draft.taints[i].effect);
    }
    *traits = (struct node_traits){
        .n_references = 1,
        .n_taints = (uint32_t)draft.n_taints,
        .n_amounts = (uint32_t)draft.n_amounts,
        .labels = {labels, draft.n_labels},
        .taints = taints,
        .amounts = amounts,
    };
    return traits;
}

struct node_traits *node_traits_ref(struct node_traits *traits)
{
    if (traits)
        g_atomic_int_inc(&traits->n_references);
    return traits;
}

void node_traits_unref(struct node_traits *traits)
{
    if (traits && g_atomic_int_dec_and_test(&traits->n_references))
        g_free(traits);
}

int64_t node_traits_amount(const struct node_traits *traits, const char *resource)
{
    for (uint32_t i = 0; traits && i < traits->n_amounts; i++) {
        if (g_str_equal(traits->amounts[i].resource, resource))
            return traits->amounts[i].thousandths;
    }
    return 0;
}
