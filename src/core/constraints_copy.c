/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints that outlive what they were read from: all in one block. */
#include "core/constraints.h"

#include <string.h>

#define ALIGNMENT ((size_t)16)

/* Without a base it only measures. */
struct packer {
    char *base;
    size_t used;
};

static void *pack(struct packer *packer, const void *data, size_t size)
{
    void *at = packer->base ? packer->base + packer->used : NULL;

    if (at && size)
        memcpy(at, data, size);
    packer->used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static const char *pack_text(struct packer *packer, const char *text)
{
    return text ? pack(packer, text, strlen(text) + 1) : NULL;
}

static const struct string_pair *pack_pairs(struct packer *packer, const struct string_pairs *from)
{
    struct string_pair *pairs = pack(packer, from->items, from->n * sizeof *pairs);

    for (size_t i = 0; i < from->n; i++) {
        const struct string_pair pair = {pack_text(packer, from->items[i].key),
                                         pack_text(packer, from->items[i].value)};
        if (pairs)
            pairs[i] = pair;
    }
    return pairs;
}

static const char *const *pack_values(struct packer *packer, const struct match *from)
{
    const char **values = pack(packer, from->values, from->n_values * sizeof *values);

    for (size_t i = 0; i < from->n_values; i++) {
        const char *value = pack_text(packer, from->values[i]);
        if (values)
            values[i] = value;
    }
    return values;
}

static const struct match *pack_matches(struct packer *packer, const struct match_term *from)
{
    struct match *matches = pack(packer, from->matches, from->n * sizeof *matches);

    for (size_t i = 0; i < from->n; i++) {
        const char *key = pack_text(packer, from->matches[i].key);
        const char *const *values = pack_values(packer, &from->matches[i]);
        if (!matches)
            continue;
        matches[i].key = key;
        matches[i].values = values;
    }
    return matches;
}

static const struct match_term *pack_terms(struct packer *packer, const struct constraints *from)
{
    struct match_term *terms = pack(packer, from->terms, from->n_terms * sizeof *terms);

    for (size_t i = 0; i < from->n_terms; i++) {
        const struct match *matches = pack_matches(packer, &from->terms[i]);
        if (terms)
            terms[i].matches = matches;
    }
    return terms;
}

static const struct toleration *pack_tolerations(struct packer *packer,
                                                 const struct constraints *from)
{
    struct toleration *tolerations =
        pack(packer, from->tolerations, from->n_tolerations * sizeof *tolerations);

    for (size_t i = 0; i < from->n_tolerations; i++) {
        const struct toleration *one = &from->tolerations[i];
        const char *key = pack_text(packer, one->key), *value = pack_text(packer, one->value),
                   *effect = pack_text(packer, one->effect);
        if (tolerations)
            tolerations[i] = (struct toleration){key, value, effect, one->operator};
    }
    return tolerations;
}

static struct constraints *pack_all(struct packer *packer, const struct constraints *from)
{
    struct constraints *to = pack(packer, from, sizeof *from);
    const char *node_name = pack_text(packer, from->node_name);
    const struct string_pair *selector = pack_pairs(packer, &from->selector);
    const struct match_term *terms = pack_terms(packer, from);
    const struct toleration *tolerations = pack_tolerations(packer, from);

    if (to) {
        to->node_name = node_name;
        to->selector.items = selector;
        to->terms = terms;
        to->tolerations = tolerations;
    }
    return to;
}

struct constraints *constraints_dup(const struct constraints *constraints)
{
    struct packer packer = {0};

    if (!constraints)
        return NULL;
    pack_all(&packer, constraints);
    packer = (struct packer){.base = g_malloc(packer.used)};
    return pack_all(&packer, constraints);
}
