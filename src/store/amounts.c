/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts, requests and shares for people. */
#include "store/amounts.h"

#include "core/bytes.h"

#define ASKS_MAX 4 /* told of one request */

char *bytes_text(int64_t bytes)
{
    if (bytes % GIB == 0)
        return g_strdup_printf("%" G_GINT64_FORMAT "GiB", bytes / GIB);
    if (bytes % MIB != 0)
        return g_strdup_printf("%" G_GINT64_FORMAT "B", bytes);
    if (bytes > 16 * GIB)
        return g_strdup_printf("%.1fGiB", (double)bytes / (double)GIB);
    return g_strdup_printf("%" G_GINT64_FORMAT "MiB", bytes / MIB);
}

/* Without a node: "8 units of memory", of which only a node knows what they are. */
static char *amount_text(const struct node *node, const struct card *card, struct amount amount)
{
    if (amount.kind == AMOUNT_THOUSANDTHS && !card)
        return g_strdup_printf("%" G_GINT64_FORMAT "%% of the memory", amount.value / 10);
    if (amount.kind == AMOUNT_NODE_UNITS && !node)
        return g_strdup_printf("%" G_GINT64_FORMAT " unit%s of memory", amount.value,
                               amount.value == 1 ? "" : "s");
    return bytes_text(node ? card_bytes(node, card, amount) : amount_bytes(amount, 1));
}

static void append_ask(GString *text, const struct node *node, const struct card_ask *ask)
{
    if (ask->device) {
        g_string_append_printf(text, "%d %s", ask->count, ask->device);
        return;
    }
    g_autofree char *memory = amount_text(node, NULL, ask->memory);
    const char *and = "";
    if (ask->exclusive &&
        (ask->memory.kind == AMOUNT_THOUSANDTHS ? ask->memory.value >= 1000
                                                : ask->memory.value == 0) &&
        (ask->core == 0 || ask->core >= CORE_WHOLE)) {
        g_string_append_printf(text, "%d whole card%s", ask->count, ask->count > 1 ? "s" : "");
        return;
    }
    if (ask->memory.value > 0) {
        g_string_append(text, memory);
        and = " and ";
    }
    if (ask->core > 0)
        g_string_append_printf(text, "%s%g%% of the compute", and, ask->core / 10.0);
    else if (ask->memory.value == 0)
        g_string_append(text, "a place");
    if (ask->count > 1)
        g_string_append_printf(text, " of each of %d cards", ask->count);
    else
        g_string_append(text, " of one card");
    if (ask->exclusive)
        g_string_append(text, ", shared with nobody");
}

char *request_text(const struct node *node, const struct request *request)
{
    GString *text = g_string_new(NULL);

    for (uint32_t i = 0; i < request->n_asks && i < ASKS_MAX; i++) {
        if (i > 0)
            g_string_append(text, " + ");
        append_ask(text, node, &request->asks[i]);
    }
    if (request->n_asks == 0)
        g_string_append(text, "what no card can give");
    if (request->n_asks > ASKS_MAX)
        g_string_append_printf(text, " + %u more", request->n_asks - ASKS_MAX);
    return g_string_free(text, FALSE);
}

char *shares_text(const struct node *node, const struct share *shares, uint32_t n)
{
    GString *text = g_string_new(NULL);

    for (uint32_t i = 0; i < n; i++) {
        const struct share *share = &shares[i];
        const struct card *card = node_share_card(node, share);
        g_autofree char *memory = bytes_text(card_bytes(node, card, share->memory));
        const char *separator = text->len ? ", " : "";
        if (share->device)
            g_string_append_printf(text, "%s%d %s", separator, share->devices, share->device);
        else if (card)
            g_string_append_printf(text, "%scard %d (%s)", separator, card->index, memory);
        else
            g_string_append_printf(text, "%sno known card (%s on each)", separator, memory);
    }
    return g_string_free(text, FALSE);
}
