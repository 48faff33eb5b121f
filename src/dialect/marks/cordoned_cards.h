/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The node annotation gpuledger.io/cordoned-cards: cards that take no new pods. Items between commas:
 *
 *   3=GPU-5f6d  the card of this UUID, wherever the node lists it; 3 is where it was
 *   3=of:8      card 3 of 8. With another number of cards it may be any of them
 *   3           card 3, whichever card that is
 *   *           every card
 *
 * If no listed card has the UUID, the card is gone, or it is one of those that are listed without a UUID.
 * An item that cannot be read may mean any card. A card that an item may mean is closed.
 */
#include <gpuledger/dialect.h>

#define CORDONED_CARDS_KEY "gpuledger.io/cordoned-cards"

/* Closes cards of the topology. `ret_warning`, unless it is NULL or set: the first item that cannot be read,
 * does not name a card for certain, or names one again. */
void cordoned_cards_apply(const char *list, struct topology *topology, char **ret_warning);

/* One card, out of service or back. */
struct cordon_edit {
    const char *list; /* NULL: there is no annotation */
    const struct topology *topology;
    int32_t card;
    bool open;
};

/* Whether the list names this index for a card that is gone, or with another number of cards. */
bool cordoned_cards_lists(const struct cordon_edit *edit);

/* The list after the edit, the caller's; NULL: it is empty. Opening a card where all are named names the
 * others. If no item names the card, opening removes the last one of that index whose card is gone, or
 * whose index the node does not have. `ret_uuid` is the UUID of the card in question, NULL if it is not known, the caller's. */
char *cordoned_cards_edit(const struct cordon_edit *edit, char **ret_uuid);

/* The first item of the list that means this card, or may mean it, the caller's; NULL: none. */
char *cordoned_cards_keeper(const struct cordon_edit *edit);
