/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What people write for a node or one of its cards: "NODE" or "NODE/CARD". No Node's name has a slash. */
#include <gpuledger/ledger.h>

struct card_place {
    char *node;
    int32_t card; /* CARD_UNKNOWN: all of the node */
};

/* False, with GPULEDGER_ERROR_INVALID that names the word: it is neither. */
bool card_place_parse(const char *word, struct card_place *ret_place, GError **error);
void card_place_clear(struct card_place *place);
typedef struct card_place card_place; /* for g_auto */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(card_place, card_place_clear)

/* Whether the allocation is there, or may be: of some it is not known on which card they are. */
bool card_place_holds(const struct card_place *place, const struct allocation *allocation);

/* The node, if the ledger has it and that card. NULL, with GPULEDGER_ERROR_NOT_FOUND or _INVALID. */
const struct node *card_place_find(const struct card_place *place, const struct ledger *ledger,
                                   GError **error);

/* The card takes nobody any more, as others that are unhealthy; of a whole node nothing changes. */
void card_place_close(const struct card_place *place, struct ledger *ledger);
