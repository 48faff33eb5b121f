/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pods of each shape weigh: of kinds of cards among which pods may choose, all at once, since a
 * shape weighs the same wherever it goes. If small pods weighed less on one kind and large ones on
 * another, each would go there, and neither would find what completes it.
 */
#include "policy/cutting.h"
#include "policy/value_model_making.h"

#include <stdlib.h>
#include <string.h>

/* Of what a pair weighs, so much is for how much it is, the rest what cutting says. That alone
 * gives room for small pods away for nothing. */
#define AMOUNT_PART 0.15

/* Pairs that are told apart in hundredths, at most, each counted for every family. */
#define FINE_PAIRS_MAX 24

/* So much more large pods than were seen, and so much more small ones. */
#define TILT 0.5

/* So much of all cards is counted to one family, in turn, and the rest as they are. */
#define SUPPLY_TILT 0.5

/* Kinds that pods see alike, whatever the models: of each the same part is wanted. */
struct family {
    struct draft *first;
    double cards;
};

/* Pods that are cut alike of each family. */
struct size {
    double wanted, weight;
    struct cut cuts[KINDS_MAX]; /* by family */
};

/* All cards, or the pools of one resource: what pods may choose among. */
struct market {
    struct making *making;
    size_t n_families;
    struct family families[KINDS_MAX];
    double cards;
    bool paired;
    int32_t step, pair_step; /* as in struct draft */
    int n_sizes;
    struct size sizes[CUTTING_SIZES_MAX];
};

/* --- sizes ---------------------------------------------------------------------------------- */

/* Whether some pods want more memory and others more compute; if not, the larger part tells all. */
static bool has_pairs(const struct making *making, const struct draft *draft)
{
    bool memory = false, core = false;

    for (size_t i = 0; i < making->n; i++) {
        const struct room *room = &draft->rooms[i];
        memory |= room->memory >= room->core + COARSE;
        core |= room->core >= room->memory + COARSE;
    }
    return memory && core;
}

static bool is_nothing(const struct cut *cut)
{
    return cut->size == 0 && cut->other == 0;
}

/* By family. False: none of them will do. */
static bool cut_all(const struct market *market, size_t shape, struct cut *ret_cuts)
{
    bool any = false;

    for (size_t k = 0; k < market->n_families; k++) {
        ret_cuts[k] = draft_cut(market->families[k].first, shape);
        any |= !is_nothing(&ret_cuts[k]);
    }
    return any;
}

static size_t size_of_cuts(const struct market *market)
{
    return market->n_families * sizeof(struct cut);
}

static struct size *find_size(struct market *market, const struct cut *cuts)
{
    for (int i = 0; i < market->n_sizes; i++) {
        if (memcmp(market->sizes[i].cuts, cuts, size_of_cuts(market)) == 0)
            return &market->sizes[i];
    }
    return NULL;
}

static void set_steps(struct market *market, int32_t step, int32_t pair_step)
{
    for (size_t k = 0; k < market->n_families; k++) {
        market->families[k].first->step = step;
        market->families[k].first->pair_step = pair_step;
    }
    market->step = step;
    market->pair_step = pair_step;
}

/* The sizes that are wanted, cut by such steps. False: they are too many. */
static bool collect_sizes(struct market *market, int32_t step, int32_t pair_step, int most)
{
    const struct making *making = market->making;
    struct cut cuts[KINDS_MAX];

    set_steps(market, step, pair_step);
    market->n_sizes = 0;
    for (size_t i = 0; i < making->n; i++) {
        if (!cut_all(market, i, cuts))
            continue;
        struct size *size = find_size(market, cuts);
        if (!size && market->n_sizes == most)
            return false;
        if (!size) {
            size = &market->sizes[market->n_sizes++];
            *size = (struct size){0};
            memcpy(size->cuts, cuts, size_of_cuts(market));
        }
        size->wanted += making->shapes[i].count * making->shapes[i].cards;
    }
    return true;
}

static gint compare_sizes(gconstpointer a, gconstpointer b)
{
    const struct size *left = a, *right = b;

    for (size_t k = 0; k < KINDS_MAX; k++) {
        const struct cut *one = &left->cuts[k], *other = &right->cuts[k];
        if (one->size != other->size)
            return one->size - other->size;
        if (one->other != other->other)
            return one->other - other->other;
    }
    return 0;
}

/* Pairs in hundredths, if that does not take too long: it is done under the caller's lock. */
static void set_sizes(struct market *market)
{
    int32_t step = market->paired ? FINE : 1, pair_step = step;

    if (market->paired &&
        !collect_sizes(market, step, pair_step, FINE_PAIRS_MAX / (int)market->n_families))
        step = pair_step = COARSE;
    while (!collect_sizes(market, step, pair_step, CUTTING_SIZES_MAX))
        step = MAX(2 * step, COARSE);
    qsort(market->sizes, (size_t)market->n_sizes, sizeof *market->sizes, compare_sizes);
}

/* --- cutting -------------------------------------------------------------------------------- */

/* Some cards more than there are, and some pods more than were seen. */
struct tilt {
    const struct family *family; /* of which there are more; NULL: all are as they are */
    double large;                /* so much more large pods; negative: small ones */
};

/* Of a card, the larger part of what is taken, the mean of all cards that will do. */
static double part_of(const struct market *market, const struct size *size)
{
    double sum = 0, cards = 0;

    for (size_t k = 0; k < market->n_families; k++) {
        const struct family *family = &market->families[k];
        const struct cut *cut = &size->cuts[k];
        if (is_nothing(cut))
            continue;
        sum += family->cards * MAX(cut->size, cut->other);
        cards += family->cards;
    }
    return sum / cards / draft_whole(market->families[0].first);
}

/* Adds so much of what sizes would weigh. The mean card is worth 1 again, as they are. */
static void add_weights(struct market *market, const struct tilt *tilt, double part)
{
    const size_t n = (size_t)market->n_sizes;
    const int32_t whole = draft_whole(market->families[0].first);
    g_autofree struct piece *pieces = g_new0(struct piece, n);
    g_autofree struct cut *cuts = g_new(struct cut, n * market->n_families);
    struct stock stocks[KINDS_MAX];
    double worth = 0;

    for (size_t i = 0; i < n; i++) {
        const struct size *size = &market->sizes[i];
        pieces[i].wanted = size->wanted * (1 + tilt->large * (2 * part_of(market, size) - 1));
        for (size_t k = 0; k < market->n_families; k++)
            cuts[k * n + i] = size->cuts[k];
    }
    for (size_t k = 0; k < market->n_families; k++) {
        const struct family *family = &market->families[k];
        double cards = family->cards / market->cards;
        if (tilt->family)
            cards = (1 - SUPPLY_TILT) * cards + (family == tilt->family ? SUPPLY_TILT : 0);
        stocks[k] = (struct stock){whole, market->paired ? whole : 0, cards, &cuts[k * n], 0};
    }
    cutting_weigh_stocks(pieces, n, stocks, market->n_families);
    for (size_t k = 0; k < market->n_families; k++)
        worth += stocks[k].price * market->families[k].cards / market->cards;
    for (size_t i = 0; worth > 0 && i < n; i++)
        market->sizes[i].weight += part * pieces[i].weight / worth;
}

/* Where pods of two sizes complete each other on a card, and as many of the ones come as of the
 * others, cutting gives all of the card's worth to either of them by chance, and to the other nothing.
 * And where pods that only some of the cards will do for are more than these can hold, it gives all
 * cards' worth to those, and nothing to what all others want. So pairs weigh the mean of what they
 * would if more of the large ones came and if more of the small ones did, and where cards differ, the
 * mean of what pods would if more of each family's cards were there. No set that fits a card weighs
 * more than the card's mean, as that is so of each. */
static void weigh_sizes(struct market *market)
{
    static const double tilts[] = {-TILT, TILT};
    const size_t n = market->paired ? G_N_ELEMENTS(tilts) : 1;
    const bool differ = market->n_families > 1;

    for (size_t t = 0; t < n; t++) {
        for (size_t k = 0; k < market->n_families; k++) {
            const struct family *family = &market->families[k];
            const struct tilt tilt = {differ ? family : NULL, market->paired ? tilts[t] : 0};
            add_weights(market, &tilt, family->cards / market->cards / (double)n);
        }
    }
}

/* --- the whole ------------------------------------------------------------------------------ */

static void set_price(const struct making *making, struct draft *draft)
{
    double memory = 0, core = 0;

    for (size_t i = 0; i < making->n; i++) {
        const double cards = making->shapes[i].count * making->shapes[i].cards;
        memory += cards * draft->rooms[i].memory;
        core += cards * draft->rooms[i].core;
    }
    draft->memory_price =
        memory + core > 0 ? (int32_t)(PART_WHOLE * memory / (memory + core)) : PART_WHOLE / 2;
}

/* No set that fits a card weighs more than 1: that is so of either part. */
static double amount_of(const struct draft *draft, const struct cut *cut)
{
    return (double)(draft->memory_price * cut->size +
                    (PART_WHOLE - draft->memory_price) * cut->other) /
           (PART_WHOLE * draft_whole(draft));
}

/* The amount is another part of each card; the mean of all that will do counts. */
static double mean_amount(const struct market *market, const struct cut *cuts)
{
    double sum = 0, cards = 0;

    for (size_t k = 0; k < market->n_families; k++) {
        const struct family *family = &market->families[k];
        if (is_nothing(&cuts[k]))
            continue;
        sum += family->cards * amount_of(family->first, &cuts[k]);
        cards += family->cards;
    }
    return sum / cards;
}

static void set_weights(struct market *market)
{
    struct cut cuts[KINDS_MAX];

    for (size_t i = 0; i < market->making->n; i++) {
        if (!cut_all(market, i, cuts))
            continue;
        double weight = find_size(market, cuts)->weight;
        if (market->paired)
            weight = (1 - AMOUNT_PART) * weight + AMOUNT_PART * mean_amount(market, cuts);
        for (size_t k = 0; k < market->n_families; k++) {
            if (market->families[k].first->wanted[i] > 0)
                market->families[k].first->weights[i] = weight;
        }
    }
}

static struct family *find_family(struct market *market, const struct draft *draft)
{
    for (size_t k = 0; k < market->n_families; k++) {
        struct family *family = &market->families[k];
        if (memcmp(family->first->rooms, draft->rooms, market->making->n * sizeof *draft->rooms) ==
            0)
            return family;
    }
    return NULL;
}

static bool is_in(const struct draft *draft, const struct draft *one)
{
    return g_strcmp0(draft->pool ? draft->pool->resource : NULL,
                     one->pool ? one->pool->resource : NULL) == 0;
}

/* From the draft on. */
static void collect_families(struct market *market, struct draft *one)
{
    struct making *making = market->making;

    for (struct draft *draft = one; draft < making->drafts + making->n_drafts; draft++) {
        const double cards = MAX(draft->kind.cards, draft->kind.size);
        if (!is_in(draft, one))
            continue;
        struct family *family = find_family(market, draft);
        if (!family) {
            family = &market->families[market->n_families++];
            *family = (struct family){draft, 0};
            market->paired |= has_pairs(making, draft);
        }
        family->cards += cards;
        market->cards += cards;
    }
}

static void share_weights(struct market *market, struct draft *one)
{
    struct making *making = market->making;

    for (struct draft *draft = one; draft < making->drafts + making->n_drafts; draft++) {
        const struct family *family = is_in(draft, one) ? find_family(market, draft) : NULL;
        if (!family || family->first == draft)
            continue;
        draft->weights = g_memdup2(family->first->weights, making->n * sizeof *draft->weights);
        draft->paired = family->first->paired;
        draft->step = family->first->step;
        draft->pair_step = family->first->pair_step;
        draft->memory_price = family->first->memory_price;
    }
}

static void weigh_market(struct making *making, struct draft *one)
{
    g_autofree struct market *market = g_new0(struct market, 1);

    market->making = making;
    collect_families(market, one);
    for (size_t k = 0; k < market->n_families; k++) {
        struct draft *draft = market->families[k].first;
        draft->weights = g_new0(double, making->n);
        draft->paired = market->paired;
        if (draft->paired)
            set_price(making, draft);
    }
    set_sizes(market);
    weigh_sizes(market);
    set_weights(market);
    share_weights(market, one);
}

void drafts_weigh(struct making *making)
{
    for (size_t k = 0; k < making->n_drafts; k++) {
        if (!making->drafts[k].weights)
            weigh_market(making, &making->drafts[k]);
    }
}
