/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/messages/message_context.h"

#include "base/printable.h"
#include "dialect/hami/hook.h"
#include "explain/explain.h"
#include "core/reason/reasons.h"

#include <string.h>

/* --- who is there --------------------------------------------------------------------------- */

/* What an allocation holds of a card or pool, or of a node. */
struct holding {
    int64_t bytes;
    int32_t core, devices;
};

/* False: nothing. */
static bool held_of(const struct node *node, const struct allocation *allocation,
                    const struct card *card, const struct pool *pool, struct holding *ret_holding)
{
    bool here = false;

    *ret_holding = (struct holding){0};
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        if (pool ? g_strcmp0(share->device, pool->resource) != 0
                 : card && (share->device ||
                            (node_share_card(node, share) != card && node_share_card(node, share))))
            continue;
        here = true;
        ret_holding->devices += share->device ? share->devices : 0;
        if (share->device)
            continue;
        ret_holding->bytes +=
            card_bytes(node, card ? card : node_share_card(node, share), share->memory);
        ret_holding->core += share->core;
    }
    return here;
}

/* The first of these that is anything. Free with g_free. */
static char *tell_holding(const struct holding *holding)
{
    if (holding->bytes > 0)
        return bytes_text(holding->bytes);
    if (holding->core > 0)
        return g_strdup_printf("%g%% of the compute", holding->core / 10.0);
    return holding->devices > 0 ? g_strdup_printf("%d", holding->devices) : NULL;
}

GPtrArray *pods_in_message(const struct node *node, const struct card *card,
                           const struct pool *pool)
{
    GPtrArray *pods = g_ptr_array_new_with_free_func(g_free);
    struct holding holding;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = node->allocations->pdata[i];
        if (held_of(node, allocation, card, pool, &holding))
            g_ptr_array_add(pods, g_strdup_printf("%s/%s", allocation->ns, allocation->name));
    }
    return pods;
}

/* "; held by ml/a (4GiB), ml/b (2GiB)", or nothing. */
void message_append_holders(GString *text, const struct node *node, const struct card *card,
                            const struct pool *pool)
{
    int n = 0;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = node->allocations->pdata[i];
        struct holding holding;
        if (!held_of(node, allocation, card, pool, &holding) || ++n > EXPLAIN_PODS_MAX)
            continue;
        g_autofree char *size = tell_holding(&holding);
        printable_append(text, "%s%s/%s", n == 1 ? "; held by " : ", ", allocation->ns,
                         allocation->name);
        if (size)
            printable_append(text, " (%s)", size);
    }
    if (n > EXPLAIN_PODS_MAX)
        printable_append(text, " and %d more", n - EXPLAIN_PODS_MAX);
}

/* --- cards ---------------------------------------------------------------------------------- */

static void tell_memory(const struct message_context *context)
{
    const struct node *node = context->node;
    const struct card *card = context->card;
    const int64_t wants = card_bytes(node, card, context->ask->memory);
    g_autofree char *wanted = bytes_text(wants);
    g_autofree char *left = bytes_text(card_memory_free(node, card));
    g_autofree char *all = bytes_text(card->memory);

    if (wants > card_memory_free(node, card))
        printable_append(context->text, "wants %s, %s free of %s", wanted, left, all);
    else if (card->exclusive + node->unplaced_exclusive > 0)
        g_string_append(context->text, "somebody has it alone");
    else
        printable_append(context->text, "wants it alone, it has %d holder%s",
                         card->holders + node->unplaced_holders,
                         card->holders + node->unplaced_holders == 1 ? "" : "s");
    message_append_holders(context->text, node, card, NULL);
}

static void tell_unlimited(const struct message_context *context)
{
    g_string_append(context->text,
                    "a container of the pod sets " HOOK_VARIABLE
                    ", so that nothing holds it to its part: it needs the card alone");
    message_append_holders(context->text, context->node, context->card, NULL);
}

static void tell_size(const struct message_context *context)
{
    g_autofree char *wanted =
        bytes_text(card_bytes(context->node, context->card, context->ask->memory));
    const struct card *card = context->card;
    const bool pretends =
        card->physical > 0 && card_bytes(context->node, card, context->ask->memory) <= card->memory;
    g_autofree char *all = bytes_text(pretends ? card->physical : card->memory);

    printable_append(context->text, "wants %s, the card %shas %s in all", wanted,
                     pretends ? "really " : "", all);
}

static void tell_oversubscribed(const struct message_context *context)
{
    const struct card *card = context->card;
    g_autofree char *wanted = bytes_text(card_bytes(context->node, card, context->ask->memory));
    g_autofree char *left = bytes_text(card_memory_room(context->node, card, false));
    g_autofree char *real = bytes_text(card->physical);

    printable_append(context->text,
                     "wants %s, %s free of the %s that it really has; beyond that the pod would "
                     "have to accept oversubscribed memory (gpuledger.io/oversubscribe)",
                     wanted, left, real);
    message_append_holders(context->text, context->node, card, NULL);
}

static void tell_tenant(const struct message_context *context)
{
    g_string_append(context->text, "pods of another namespace share it");
    message_append_holders(context->text, context->node, context->card, NULL);
}

void message_tell_company(const struct message_context *context)
{
    const struct terms *terms = context->request->terms;
    const struct work_class *work_class = terms ? terms->work_class : NULL;

    printable_append(context->text,
                     work_class ? "its holders and pods of class '%s' are not put together"
                                : "its holders' class shares no card with pods of no class",
                     work_class ? work_class->name : "");
}

static void tell_class(const struct message_context *context)
{
    message_tell_company(context);
    message_append_holders(context->text, context->node, context->card, NULL);
}

const char *message_of_closure(enum closure closure)
{
    static const char *const texts[] = {
        [CLOSURE_NONE] = "it is not closed",
        [CLOSURE_CORDON] = "it is cordoned by an annotation of the node",
        [CLOSURE_CORDON_MAYBE] =
            "it may be a card that the node's gpuledger.io/cordoned-cards names",
        [CLOSURE_CLASS] = "its class in the node's gpuledger.io/share-class cannot be read",
        [CLOSURE_SLOTS] = "the node's gpuledger.io/slots cannot be read",
    };
    return texts[closure];
}

static void tell_closed(const struct message_context *context)
{
    g_string_append(context->text, message_of_closure(context->card->closure));
}

static void tell_health(const struct message_context *context)
{
    g_string_append(context->text, context->card->broken ? "its node side says that it is unhealthy"
                                                         : "a ConfigMap says that it is unhealthy");
}

static void tell_core(const struct message_context *context)
{
    const struct card *card = context->card;

    if (card_core(card, context->ask->core) > card_core_free(context->node, card))
        printable_append(context->text, "wants %g%% of the compute, %g%% free of %g%%",
                         card_core_told(card, card_core(card, context->ask->core)) / 10.0,
                         card_core_told(card, card_core_free(context->node, card)) / 10.0,
                         card_core_told(card, card->core) / 10.0);
    else
        g_string_append(context->text, "none of its compute is free");
    message_append_holders(context->text, context->node, card, NULL);
}

static void tell_slots(const struct message_context *context)
{
    printable_append(context->text, "%d holders of at most %d%s",
                     context->card->holders + context->node->unplaced_holders, context->card->slots,
                     context->card->capped ? " by the node's gpuledger.io/slots" : "");
    message_append_holders(context->text, context->node, context->card, NULL);
}

static void tell_other_use(const struct message_context *context)
{
    printable_append(context->text, "pods share it in another way than %s",
                     context->request->dialect->name);
    message_append_holders(context->text, context->node, context->card, NULL);
}

static void tell_card_terms(const struct message_context *context)
{
    const struct terms *terms = context->request->terms;
    const struct card *card = context->card;

    if (terms && card->memory < terms->memory_min) {
        g_autofree char *least = bytes_text(terms->memory_min);
        g_autofree char *all = bytes_text(card->memory);
        printable_append(context->text, "the pod accepts cards from %s on, it has %s", least, all);
    } else if (terms && !terms_accept_model(terms, card->model)) {
        printable_append(context->text, "the pod does not accept its model, %s",
                         card->model ? card->model : "which is not known");
    } else if (card->best_effort && (context->ask->core > 0 || context->ask->exclusive)) {
        g_string_append(context->text, "it promises no compute");
    } else if (card->parts > 1 && (context->ask->core > 0 || context->ask->exclusive)) {
        printable_append(context->text, "it promises a holder 1/%d of its compute at most",
                         card->parts);
    } else {
        printable_append(context->text, "the pod accepts other cards only%s%s",
                         card->mode ? "; its mode is " : "", card->mode ? card->mode : "");
    }
}

static void (*const card_tellers[REASONS_MAX])(const struct message_context *context) = {
    [REASON_INSUFFICIENT_MEMORY] = tell_memory, [REASON_CARD_TOO_SMALL] = tell_size,
    [REASON_CARD_CLOSED] = tell_closed,         [REASON_CARD_UNHEALTHY] = tell_health,
    [REASON_INSUFFICIENT_CORE] = tell_core,     [REASON_NO_SLOT] = tell_slots,
    [REASON_NODE_SLOTS] = tell_slots,           [REASON_OTHER_USE] = tell_other_use,
    [REASON_TERMS] = tell_card_terms,           [REASON_OVERSUBSCRIBED] = tell_oversubscribed,
    [REASON_UNLIMITED] = tell_unlimited,        [REASON_OTHER_TENANT] = tell_tenant,
    [REASON_OTHER_CLASS] = tell_class,
};

char *message_of_card(const struct node *node, const struct request *request,
                      const struct card_ask *ask, const struct card *card, enum reason reason)
{
    const struct message_context context = {g_string_new(NULL), NULL, node, request, ask, card};

    if (reason == REASON_NONE) {
        g_autofree char *wanted = bytes_text(card_bytes(node, card, ask->memory));
        g_autofree char *left = bytes_text(card_memory_free(node, card));
        g_autofree char *all = bytes_text(card->memory);
        printable_append(context.text, "has room: wants %s, %s free of %s", wanted, left, all);
    } else if (card_tellers[reason]) {
        card_tellers[reason](&context);
    } else {
        g_string_append(context.text, reason_info(reason)->text);
    }
    return g_string_free(context.text, FALSE);
}

bool message_is_of_cards(enum reason reason)
{
    return card_tellers[reason] != NULL;
}
