/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a sentence is about, for the files of this folder alone. */
#include "explain/messages/messages.h"

struct message_context {
    GString *text;
    const struct feasibility *question;
    const struct node *node;
    const struct request *request;
    const struct card_ask *ask;
    const struct card *card;
};

/* "; held by ml/a (4GiB), ml/b (2GiB)", or nothing; of the card, or of the pool, both NULL: of the node. */
void message_append_holders(GString *text, const struct node *node, const struct card *card,
                            const struct pool *pool);
/* With whom the pod is not put together, by its class. */
void message_tell_company(const struct message_context *context);
/* A card says more of the reason than the node. */
bool message_is_of_cards(enum reason reason);
