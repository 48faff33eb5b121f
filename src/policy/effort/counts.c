/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/effort/counts.h"

#include "core/card.h"
#include "policy/effort/work_meter.h"

/* Sizes by which places are counted: those of which a card holds none, one, two and three. */
#define SIZES_MAX 4
/* A place is counted in a few instructions, a card is looked at in some hundreds. */
#define COUNTS_PER_LOOK 4
#define ASKS_PER_LOOK 32

/* Something of which shares take parts of cards. */
struct measure {
    int64_t (*asked)(const struct card_ask *ask); /* 0: nothing of it */
    /* How much of the card that is, and how much the card has free; INT64_MAX: not known. */
    int64_t (*size)(const struct node *node, const struct card *card, int64_t asked);
    int64_t (*left)(const struct node *node, const struct card *card);
};

static int64_t asked_bytes(const struct card_ask *ask)
{
    return ask->memory.kind == AMOUNT_BYTES ? ask->memory.value : 0;
}

static int64_t asked_units(const struct card_ask *ask)
{
    return ask->memory.kind == AMOUNT_NODE_UNITS ? ask->memory.value : 0;
}

static int64_t asked_thousandths(const struct card_ask *ask)
{
    return ask->memory.kind == AMOUNT_THOUSANDTHS ? ask->memory.value : 0;
}

static int64_t asked_core(const struct card_ask *ask)
{
    return ask->core;
}

static int64_t bytes_size(const struct node *node, const struct card *card, int64_t asked)
{
    return card_bytes(node, card, (struct amount){.value = asked, .kind = AMOUNT_BYTES});
}

static int64_t units_size(const struct node *node, const struct card *card, int64_t asked)
{
    return card_bytes(node, card, (struct amount){.value = asked, .kind = AMOUNT_NODE_UNITS});
}

static int64_t thousandths_size(const struct node *node, const struct card *card, int64_t asked)
{
    return card_bytes(node, card, (struct amount){.value = asked, .kind = AMOUNT_THOUSANDTHS});
}

static int64_t core_size(const struct node *node, const struct card *card, int64_t asked)
{
    return card_core(card, (int32_t)asked);
}

/* What a part of it is depends on whether the pod takes oversubscribed memory. */
static int64_t memory_left(const struct node *node, const struct card *card)
{
    return card->physical > 0 ? INT64_MAX : card_memory_free(node, card);
}

static int64_t core_left(const struct node *node, const struct card *card)
{
    return card_core_free(node, card);
}

static const struct measure measures[] = {
    {asked_bytes, bytes_size, memory_left},
    {asked_units, units_size, memory_left},
    {asked_thousandths, thousandths_size, memory_left},
    {asked_core, core_size, core_left},
};

/* What is asked for by a share that is held beside the others: an init container ends before they begin. */
static int64_t asked_of(const struct measure *measure, const struct card_ask *ask)
{
    return ask->device || ask->init ? 0 : measure->asked(ask);
}

/* The least of more than that; 0: there is none. */
static int64_t least_above(const struct measure *measure, const struct request *request,
                           int64_t bound)
{
    int64_t least = 0;

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const int64_t asked = asked_of(measure, &request->asks[i]);
        if (asked > bound && (least == 0 || asked < least))
            least = asked;
    }
    return least;
}

static int64_t shares_from(const struct measure *measure, const struct request *request,
                           int64_t least)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < request->n_asks; i++)
        n += asked_of(measure, &request->asks[i]) >= least ? request->asks[i].count : 0;
    return n;
}

static int64_t places_on(const struct node *node, const struct card *card,
                         const struct measure *measure, int64_t least)
{
    const int64_t left = measure->left(node, card), size = measure->size(node, card, least);

    if (!card_is_open(card))
        return 0;
    return card->mig || left == INT64_MAX || size <= 0 ? INT32_MAX : left / size;
}

/* Whether there are fewer places for shares of at least that size than there are such shares. */
static bool is_short(const struct situation *at, const struct measure *measure, int64_t least)
{
    const struct node *node = at->node;
    int64_t places = 0;

    work_do(at->work, 1 + node->n_cards / COUNTS_PER_LOOK + at->request->n_asks / ASKS_PER_LOOK);
    for (int32_t i = 0; i < node->n_cards; i++)
        places += places_on(node, &node->cards[i], measure, least);
    return places < shares_from(measure, at->request, least);
}

/* How much may be asked of the emptiest card; 0: not known. */
static double emptiest(const struct situation *at, const struct measure *measure)
{
    const struct node *node = at->node;
    int64_t most = 0, size = 0;

    for (int32_t i = 0; i < node->n_cards; i++) {
        const int64_t left = measure->left(node, &node->cards[i]);
        if (left == INT64_MAX)
            return 0;
        if (left > most) {
            most = left;
            size = measure->size(node, &node->cards[i], CORE_WHOLE);
        }
    }
    return size > 0 ? (double)most / (double)size * CORE_WHOLE : 0;
}

bool counts_refuse(const struct situation *at)
{
    for (size_t i = 0; i < G_N_ELEMENTS(measures); i++) {
        const struct measure *measure = &measures[i];
        if (least_above(measure, at->request, 0) == 0)
            continue;
        const double whole = emptiest(at, measure);
        for (int32_t n = 1; n <= SIZES_MAX && whole > 0; n++) {
            const int64_t least = least_above(measure, at->request, (int64_t)(whole / n));
            if (least > 0 && is_short(at, measure, least))
                return true;
        }
    }
    return false;
}

/* --- side by side ------------------------------------------------------------------------------- */

/* A card that shares are put on, one after the other. */
struct filling {
    struct card card;  /* as it will be */
    int32_t at;        /* its place on the node */
    uint32_t last_ask; /* whose share is the last one there */
};

static bool open_card(const struct node *node, struct filling *filling, int32_t place)
{
    if (place >= node->n_cards)
        return false;
    *filling = (struct filling){node->cards[place], place, UINT32_MAX};
    return true;
}

/* One share of the ask on the card that is being filled; false: it does not fit there. */
static bool put(const struct situation *at, uint32_t number, struct filling *filling,
                struct placement *placement)
{
    const struct card_ask *ask = &at->request->asks[number];
    const struct card *card = &at->node->cards[filling->at];
    struct part part;

    work_do(at->work, 1);
    if (card->mig || filling->last_ask == number ||
        card_obstacle(at, ask, &filling->card, card, &part) != OBSTACLE_NONE)
        return false;
    placement->shares[placement->n_shares++] = (struct share){
        .memory = ask->memory.kind == AMOUNT_THOUSANDTHS ? (struct amount){part.bytes, AMOUNT_BYTES}
                                                         : ask->memory,
        .container = ask->container,
        .card = card->index,
        .core = part.core,
        .exclusive = ask->exclusive,
        .init = ask->init,
        .sidecar = ask->sidecar,
    };
    filling->last_ask = number;
    filling->card.memory_used += part.bytes;
    filling->card.memory_promised += part.bytes;
    filling->card.core_used += card_core(card, part.core);
    filling->card.holders++;
    filling->card.exclusive += card_excludes(card, ask->exclusive, part.core);
    return true;
}

/* What goes by other things than by what single cards have left. */
static bool is_choosy(const struct situation *at)
{
    const struct terms *terms = at->request->terms;

    return at->policy->foreseen || at->pinned != CARD_UNKNOWN ||
           (terms && (terms->same_numa || terms->neighbours != NEIGHBOURS_ANY));
}

bool counts_place(const struct situation *at, struct placement *placement)
{
    const struct request *request = at->request;
    struct filling filling;

    placement->request = request;
    placement->n_shares = 0;
    if (is_choosy(at) || !open_card(at->node, &filling, 0))
        return false;
    for (uint32_t i = 0; i < request->n_asks; i++) {
        if (request->asks[i].device)
            return false;
        for (int32_t left = request->asks[i].count; left > 0; left--) {
            while (!put(at, i, &filling, placement)) {
                if (!open_card(at->node, &filling, filling.at + 1))
                    return false;
            }
        }
    }
    return true;
}
