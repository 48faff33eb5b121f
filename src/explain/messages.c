/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/messages.h"

#include "explain/explain.h"
#include "dialect/discovery.h"
#include "wire/switch_mark.h"

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
                 : card && (share->device || (node_share_card(node, share) != card &&
                                              node_share_card(node, share))))
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

GPtrArray *pods_in_message(const struct node *node, const struct card *card, const struct pool *pool)
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
static void append_holders(GString *text, const struct node *node, const struct card *card,
                           const struct pool *pool)
{
    int n = 0;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = node->allocations->pdata[i];
        struct holding holding;
        if (!held_of(node, allocation, card, pool, &holding) || ++n > EXPLAIN_PODS_MAX)
            continue;
        g_autofree char *size = tell_holding(&holding);
        g_string_append_printf(text, "%s%s/%s", n == 1 ? "; held by " : ", ", allocation->ns,
                               allocation->name);
        if (size)
            g_string_append_printf(text, " (%s)", size);
    }
    if (n > EXPLAIN_PODS_MAX)
        g_string_append_printf(text, " and %d more", n - EXPLAIN_PODS_MAX);
}

/* --- cards ---------------------------------------------------------------------------------- */

struct context {
    GString *text;
    const struct feasibility *question;
    const struct node *node;
    const struct request *request;
    const struct card_ask *ask;
    const struct card *card;
};

static void tell_memory(const struct context *context)
{
    const struct node *node = context->node;
    const struct card *card = context->card;
    const int64_t wants = card_bytes(node, card, context->ask->memory);
    g_autofree char *wanted = bytes_text(wants);
    g_autofree char *left = bytes_text(card_memory_free(node, card));
    g_autofree char *all = bytes_text(card->memory);

    if (wants > card_memory_free(node, card))
        g_string_append_printf(context->text, "wants %s, %s free of %s", wanted, left, all);
    else if (card->exclusive + node->unplaced_exclusive > 0)
        g_string_append(context->text, "somebody has it alone");
    else
        g_string_append_printf(context->text, "wants it alone, it has %d holder%s",
                               card->holders + node->unplaced_holders,
                               card->holders + node->unplaced_holders == 1 ? "" : "s");
    append_holders(context->text, node, card, NULL);
}

static void tell_size(const struct context *context)
{
    g_autofree char *wanted =
        bytes_text(card_bytes(context->node, context->card, context->ask->memory));
    const struct card *card = context->card;
    const bool pretends = card->physical > 0 &&
                          card_bytes(context->node, card, context->ask->memory) <= card->memory;
    g_autofree char *all = bytes_text(pretends ? card->physical : card->memory);

    g_string_append_printf(context->text, "wants %s, the card %shas %s in all", wanted,
                           pretends ? "really " : "", all);
}

static void tell_oversubscribed(const struct context *context)
{
    const struct card *card = context->card;
    g_autofree char *wanted = bytes_text(card_bytes(context->node, card, context->ask->memory));
    g_autofree char *left = bytes_text(card_memory_room(context->node, card, false));
    g_autofree char *real = bytes_text(card->physical);

    g_string_append_printf(context->text,
                           "wants %s, %s free of the %s that it really has; beyond that the pod would "
                           "have to accept oversubscribed memory (gpuledger.io/oversubscribe)",
                           wanted, left, real);
    append_holders(context->text, context->node, card, NULL);
}

static void tell_tenant(const struct context *context)
{
    g_string_append(context->text, "pods of another namespace share it");
    append_holders(context->text, context->node, context->card, NULL);
}

static void tell_company(const struct context *context)
{
    const struct terms *terms = context->request->terms;
    const struct work_class *work_class = terms ? terms->work_class : NULL;

    g_string_append_printf(context->text,
                           work_class ? "its holders and pods of class '%s' are not put together"
                                      : "its holders' class shares no card with pods of no class",
                           work_class ? work_class->name : "");
}

static void tell_class(const struct context *context)
{
    tell_company(context);
    append_holders(context->text, context->node, context->card, NULL);
}

const char *message_of_closure(enum closure closure)
{
    static const char *const texts[] = {
        [CLOSURE_NONE] = "it is not closed",
        [CLOSURE_CORDON] = "it is cordoned by an annotation of the node",
        [CLOSURE_CLASS] = "its class in the node's gpuledger.io/share-class cannot be read",
        [CLOSURE_SLOTS] = "the node's gpuledger.io/slots cannot be read",
    };
    return texts[closure];
}

static void tell_closed(const struct context *context)
{
    g_string_append(context->text, message_of_closure(context->card->closure));
}

static void tell_health(const struct context *context)
{
    g_string_append(context->text, context->card->broken
                                       ? "its node side says that it is unhealthy"
                                       : "a ConfigMap says that it is unhealthy");
}

static void tell_core(const struct context *context)
{
    const struct card *card = context->card;

    if (card_core(card, context->ask->core) > card_core_free(context->node, card))
        g_string_append_printf(context->text, "wants %g%% of the compute, %g%% free of %g%%",
                               card_core_told(card, card_core(card, context->ask->core)) / 10.0,
                               card_core_told(card, card_core_free(context->node, card)) / 10.0,
                               card_core_told(card, card->core) / 10.0);
    else
        g_string_append(context->text, "none of its compute is free");
    append_holders(context->text, context->node, card, NULL);
}

static void tell_slots(const struct context *context)
{
    g_string_append_printf(context->text, "%d holders of at most %d%s",
                           context->card->holders + context->node->unplaced_holders,
                           context->card->slots,
                           context->card->capped ? " by the node's gpuledger.io/slots" : "");
    append_holders(context->text, context->node, context->card, NULL);
}

static void tell_other_use(const struct context *context)
{
    g_string_append_printf(context->text, "pods share it in another way than %s",
                           context->request->dialect->name);
    append_holders(context->text, context->node, context->card, NULL);
}

static void tell_card_terms(const struct context *context)
{
    const struct terms *terms = context->request->terms;
    const struct card *card = context->card;

    if (terms && card->memory < terms->memory_min) {
        g_autofree char *least = bytes_text(terms->memory_min);
        g_autofree char *all = bytes_text(card->memory);
        g_string_append_printf(context->text, "the pod accepts cards from %s on, it has %s",
                               least, all);
    } else if (terms && !terms_accept_model(terms, card->model)) {
        g_string_append_printf(context->text, "the pod does not accept its model, %s",
                               card->model ? card->model : "which is not known");
    } else if (card->best_effort && (context->ask->core > 0 || context->ask->exclusive)) {
        g_string_append(context->text, "it promises no compute");
    } else if (card->parts > 1 && (context->ask->core > 0 || context->ask->exclusive)) {
        g_string_append_printf(context->text, "it promises a holder 1/%d of its compute at most",
                               card->parts);
    } else {
        g_string_append_printf(context->text, "the pod accepts other cards only%s%s",
                               card->mode ? "; its mode is " : "", card->mode ? card->mode : "");
    }
}

static void (*const card_tellers[REASON_N])(const struct context *context) = {
    [REASON_INSUFFICIENT_MEMORY] = tell_memory, [REASON_CARD_TOO_SMALL] = tell_size,
    [REASON_CARD_CLOSED] = tell_closed,         [REASON_CARD_UNHEALTHY] = tell_health,
    [REASON_INSUFFICIENT_CORE] = tell_core,     [REASON_NO_SLOT] = tell_slots,
    [REASON_NODE_SLOTS] = tell_slots,           [REASON_OTHER_USE] = tell_other_use,
    [REASON_TERMS] = tell_card_terms,           [REASON_OVERSUBSCRIBED] = tell_oversubscribed,
    [REASON_OTHER_TENANT] = tell_tenant,        [REASON_OTHER_CLASS] = tell_class,
};

char *message_of_card(const struct node *node, const struct request *request, const struct card_ask *ask,
                const struct card *card, enum reason reason)
{
    const struct context context = {g_string_new(NULL), NULL, node, request, ask, card};

    if (reason == REASON_NONE) {
        g_autofree char *wanted = bytes_text(card_bytes(node, card, ask->memory));
        g_autofree char *left = bytes_text(card_memory_free(node, card));
        g_autofree char *all = bytes_text(card->memory);
        g_string_append_printf(context.text, "has room: wants %s, %s free of %s", wanted, left,
                               all);
    } else if (card_tellers[reason]) {
        card_tellers[reason](&context);
    } else {
        g_string_append(context.text, reason_info(reason)->text);
    }
    return g_string_free(context.text, FALSE);
}

/* --- nodes ---------------------------------------------------------------------------------- */

static void tell_dialects(const struct context *context)
{
    g_string_append(context->text, "shares its GPUs as ");
    for (int32_t i = 0; i < context->node->n_dialects; i++)
        g_string_append_printf(context->text, "%s%s", i ? ", " : "",
                               context->node->dialects[i]->name);
}

static void tell_withheld(const struct context *context)
{
    static const char *const why[] = {
        [WITHHELD_NONE] = "all are given",
        [WITHHELD_CHANGE] = "it does not report yet what its new configuration makes of cards",
        [WITHHELD_EXCLUSIVE] = "the rest may be on a card that takes one holder",
        [WITHHELD_MPS] = "the rest may be on one card, whose MPS server takes no more clients",
        [WITHHELD_SLOTS] = "the rest may be on one card, full by the node's gpuledger.io/slots",
    };
    const struct card_ask *ask = context->ask;
    const struct pool *pool = ask->device ? node_pool(context->node, ask->device) : NULL;

    if (pool)
        g_string_append_printf(context->text, "has %d %s, gives %d: %s", pool->reported,
                               ask->device, pool->capacity, why[pool->withheld]);
}

static void tell_switch(const struct context *context)
{
    const int64_t ns_per_s = G_GINT64_CONSTANT(1000000000), lasts_s = context->request->lasts_s;
    const int64_t switches_ns = context->node->switches_ns;
    g_autofree char *time = switch_time_format(switches_ns / ns_per_s);

    if (switches_ns <= context->question->admission.now_ns)
        g_string_append(context->text, "is being made a node that shares its cards in another way");
    else if (context->node->slots_ahead > 0)
        g_string_append_printf(
            context->text,
            "lets a card have %d holders at most from %s on, and has no room for "
            "another who may be there still",
            context->node->slots_ahead, time);
    else
        g_string_append_printf(context->text, "shares its cards in another way from %s on", time);
    if (lasts_s > 0)
        g_string_append_printf(context->text,
                               ", and the pod may run for %" G_GINT64_FORMAT
                               " s (activeDeadlineSeconds and terminationGracePeriodSeconds)",
                               lasts_s);
    else
        g_string_append(context->text,
                        ", and the pod does not say for how long it runs (activeDeadlineSeconds)");
}

static void tell_silence(const struct context *context)
{
    const struct heartbeat *heartbeat = &context->node->heartbeat;
    const int64_t silent_ns = context->question->admission.now_ns - heartbeat->at_ns;

    if (heartbeat->at_ns == HEARTBEAT_NONE_NS)
        g_string_append(context->text,
                        "its GPU plugin does not report any more, as its scheduler has found");
    else
        g_string_append_printf(context->text,
                               "its GPU plugin has not reported for %" G_GINT64_FORMAT
                               " min, or its clock is behind",
                               silent_ns / (60 * G_GINT64_CONSTANT(1000000000)));
}

static void tell_count(const struct context *context)
{
    const struct card_ask *ask = context->ask;
    const struct pool *pool = ask->device ? node_pool(context->node, ask->device) : NULL;

    if (ask->device)
        g_string_append_printf(context->text, "has %d %s, the pod wants %d",
                               pool ? pool->capacity : 0, ask->device, ask->count);
    else if (ask->count > context->node->n_cards)
        g_string_append_printf(context->text, "has %d card%s, the pod wants %d",
                               context->node->n_cards, context->node->n_cards == 1 ? "" : "s",
                               ask->count);
    else
        g_string_append(context->text, "fewer of its cards are of use than the pod asks for");
}

static void tell_devices(const struct context *context)
{
    const struct card_ask *ask = context->ask;
    const struct pool *pool = ask->device ? node_pool(context->node, ask->device) : NULL;

    if (!pool)
        return;
    g_string_append_printf(context->text, "wants %d %s, %d free of %d", ask->count, ask->device,
                           (int)MAX(pool->capacity - pool->used, 0), pool->capacity);
    append_holders(context->text, context->node, NULL, pool);
}

/* Of devices by count: the cards of a node say it themselves. */
static bool tell_small_devices(const struct context *context)
{
    const struct terms *terms = context->request->terms;
    const struct pool *pool =
        context->ask->device ? node_pool(context->node, context->ask->device) : NULL;

    if (!pool || !terms || terms->memory_min <= pool->memory)
        return false;
    g_autofree char *wanted = bytes_text(terms->memory_min);
    g_autofree char *memory = bytes_text(pool->memory);
    g_string_append_printf(context->text, "wants %s, its %s have %s", wanted, pool->resource, memory);
    return true;
}

static void append_driver(GString *text, int32_t driver)
{
    const int32_t minor = driver / 100 % 1000, revision = driver % 100;

    g_string_append_printf(text, "%d", driver / DRIVER_VERSION(1, 0, 0));
    if (minor > 0 || revision > 0)
        g_string_append_printf(text, ".%d", minor);
    if (revision > 0)
        g_string_append_printf(text, ".%02d", revision);
}

static void tell_node_terms(const struct context *context)
{
    const struct terms *terms = context->request->terms;
    const struct node *node = context->node;

    if (terms && node->compute < terms->compute_min && node->compute == 0)
        g_string_append(context->text, "has no label " DISCOVERY_COMPUTE ", which the "
                                       "pod's gpuledger.io/gpu-compute-min needs");
    else if (terms && node->compute < terms->compute_min)
        g_string_append_printf(context->text,
                               "has compute capability %d.%d, the pod wants %d.%d",
                               node->compute / 100, node->compute % 100, terms->compute_min / 100,
                               terms->compute_min % 100);
    else if (terms && node->driver < terms->driver_min && node->driver == 0)
        g_string_append(context->text, "has no label " DISCOVERY_DRIVER ", which "
                                       "the pod's gpuledger.io/gpu-driver-min needs");
    else if (terms && node->driver < terms->driver_min) {
        g_string_append(context->text, "has driver ");
        append_driver(context->text, node->driver);
        g_string_append(context->text, ", the pod wants ");
        append_driver(context->text, terms->driver_min);
    }
    else if (context->ask->device)
        g_string_append_printf(context->text, "its %s are not what the pod accepts",
                               context->ask->device);
}

static void tell_isolation(const struct context *context)
{
    g_string_append_printf(context->text, "keeps holders of a card apart by '%s', the pod wants '%s'",
                           isolation_name(node_isolation(context->node, context->request)),
                           isolation_name(context->request->terms->isolation_min));
}

static void tell_node_use(const struct context *context)
{
    for (int32_t i = 0; i < context->node->n_cards && !context->ask->device; i++) {
        if (placement_card_reason(context->node, context->request, context->ask,
                                  &context->node->cards[i]) == REASON_OTHER_USE)
            return; /* a card tells */
    }
    g_string_append_printf(context->text, "its GPUs are in use by pods of another way of sharing");
    append_holders(context->text, context->node, NULL, NULL);
}

static void tell_at_once(const struct context *context)
{
    const struct card_ask *ask = context->ask;
    const struct pool *pool = ask->device ? node_pool(context->node, ask->device) : NULL;

    if (pool)
        g_string_append_printf(context->text,
                               "wants %d %s, of which its plugin gives a container at most %d",
                               ask->count, ask->device, pool->at_once);
}

/* Cards tell by themselves. */
static void tell_node_tenant(const struct context *context)
{
    if (!context->ask->device)
        return;
    g_string_append(context->text, "pods of another namespace share its GPUs");
    append_holders(context->text, context->node, NULL, node_pool(context->node, context->ask->device));
}

static void tell_node_class(const struct context *context)
{
    if (!context->ask->device)
        return;
    tell_company(context);
    append_holders(context->text, context->node, NULL,
                   node_pool(context->node, context->ask->device));
}

static void tell_class_group(const struct context *context)
{
    g_string_append_printf(
        context->text,
        "pods of class '%s' come in groups, and it names none: give it one, such as "
        "by the label scheduling.x-k8s.io/pod-group",
        context->request->terms->work_class->name);
}

static void tell_quota(const struct context *context)
{
    struct quota_count count;

    quota_room_count(context->question->room, context->node->name, &count);
    if (!count.model)
        g_string_append(context->text, "the namespace has a quota, and no label of the node says "
                                       "of which model its GPUs are (--quota-model-label)");
    else if (!count.pooled)
        g_string_append(context->text, "the namespace may not use nodes of its pool "
                                       "(--quota-pool-label)");
    else if (!count.limited)
        g_string_append_printf(context->text, "the namespace may have no %s", count.model);
    else
        g_string_append_printf(context->text, "wants %g %s, the namespace has %g of %g",
                               (double)count.wanted / CORE_WHOLE, count.model,
                               (double)count.used / CORE_WHOLE,
                               (double)count.limit / CORE_WHOLE);
}

static void tell_resource_quota(const struct context *context)
{
    struct resource_count count;

    if (!resource_room_allows(quota_room_resources(context->question->room), context->node, NULL,
                              &count))
        g_string_append_printf(context->text,
                               "wants %" G_GINT64_FORMAT " %s, ResourceQuota %s leaves %" G_GINT64_FORMAT
                               " of %" G_GINT64_FORMAT " (%s)",
                               count.wanted, count.unit, count.quota,
                               MAX(count.limit - count.used, 0), count.limit, count.key);
    else
        g_string_append(context->text, reason_info(REASON_RESOURCE_QUOTA)->text);
}

/* In the units of a quota's key; memory as people write it. Free with g_free. */
static char *amount_text(const char *key, int64_t amount)
{
    const double units = elastic_units(key, amount);

    return g_str_equal(key, "gpuledger.io/gpu-memory")
               ? g_strdup_printf("%.4g GiB", units / (1 << 30))
               : g_strdup_printf("%.4g", units);
}

static void tell_elastic_quota(const struct context *context)
{
    const struct elastic_room *room =
        context->question->room ? quota_room_elastic(context->question->room) : NULL;
    struct elastic_count count;
    int64_t wanted;
    const enum reason reason = elastic_room_refuse(room, context->node, NULL, &count, &wanted);

    if (reason == REASON_NONE) { /* only where the pod was placed */
        g_string_append(context->text, reason_info(REASON_QUOTA_LENT)->text);
        return;
    }
    g_autofree char *wants = amount_text(count.key, wanted);
    g_autofree char *used = amount_text(count.key, count.used);
    g_autofree char *min = amount_text(count.key, count.min);
    g_string_append_printf(context->text, "wants %s of %s, ", wants, count.key);
    if (count.quota)
        g_string_append_printf(context->text, "quota %s/%s", count.ns, count.quota);
    else
        g_string_append(context->text, "the namespace");
    g_string_append_printf(context->text, " has %s", used);
    if (reason == REASON_QUOTA_MAX) {
        g_autofree char *max = amount_text(count.key, count.max);
        g_string_append_printf(context->text, " of at most %s", max);
    } else {
        g_autofree char *lendable =
            amount_text(count.key, MAX(MIN(count.lendable, count.share), 0));
        g_string_append_printf(context->text,
                               ", is sure of %s, and may have %s while others need theirs", min,
                               lendable);
        g_autofree char *borrowers = elastic_room_borrowers(room, count.key);
        if (borrowers)
            g_string_append_printf(context->text, "; %s", borrowers);
    }
}

/* "ml/a, ml/b and 2 more" of those that have not ended yet. */
static void append_ending(const struct context *context, const struct reservation *place)
{
    GString *text = context->text;
    int n = 0;

    for (guint i = 0; i < place->ending->len; i++) {
        const struct allocation *other =
            ledger_get(context->question->ledger, place->ending->pdata[i]);
        if (other && ++n <= EXPLAIN_PODS_MAX)
            g_string_append_printf(text, "%s%s/%s", n > 1 ? ", " : " and gets it after ",
                                   other->ns, other->name);
    }
    if (n > EXPLAIN_PODS_MAX)
        g_string_append_printf(text, " and %d more", n - EXPLAIN_PODS_MAX);
}

/* "card 0, card 2", or "1 nvidia.com/gpu". */
static void append_place(GString *text, const struct reservation *place)
{
    for (uint32_t i = 0; i < place->held->n_shares; i++) {
        const struct share *share = &place->held->shares[i];
        g_string_append(text, i > 0 ? ", " : "");
        if (share->device)
            g_string_append_printf(text, "%d %s", share->devices, share->device);
        else
            g_string_append_printf(text, "card %d", share->card);
    }
}

static void tell_earlier(const struct context *context)
{
    const struct arrivals_older *older = &context->question->older;

    if (!older->place) {
        g_string_append_printf(context->text, "its room is left to %s, which came first",
                               older->title);
        return;
    }
    g_string_append(context->text, "the pod does not fit beside what is kept there: ");
    append_place(context->text, older->place);
    g_string_append_printf(context->text, " for %s, which came first", older->title);
    append_ending(context, older->place);
}

/* Who may meet whom is kubelet's choice, so all are named that hold something. */
static void tell_shared_memory(const struct context *context)
{
    const struct terms *terms = context->request->terms;
    const struct pool *pool = node_pool(context->node, context->ask->device);
    g_autofree char *wanted = terms && terms->memory_wanted > 0
                                  ? bytes_text(terms->memory_wanted)
                                  : g_strdup("its equal part");
    g_autofree char *memory = bytes_text(pool ? pool->memory : 0);

    g_string_append_printf(context->text,
                           "wants %s of a GPU of %s, which kubelet may let %d pods share", wanted,
                           memory, pool && pool->replicas > 0 ? pool->replicas : 0);
    for (guint i = 0, n = 0; i < context->node->allocations->len && n < EXPLAIN_PODS_MAX; i++) {
        const struct allocation *other = context->node->allocations->pdata[i];
        if (!other->terms || other->terms->memory_wanted == 0)
            continue;
        g_autofree char *its = bytes_text(other->terms->memory_wanted);
        g_string_append_printf(context->text, "%s%s/%s (%s)", n++ ? ", " : "; want as well: ",
                               other->ns, other->name, its);
    }
}

static void tell_unsealed(const struct context *context)
{
    g_string_append_printf(context->text,
                           "%d pods of the namespace there have no seal and count on every GPU (at most "
                           "%d may)",
                           feasibility_unsealed(context->question, context->node), UNSEALED_MAX);
}

static void tell_waiting(const struct context *context)
{
    const struct node *node = context->node;
    int n = 0;

    g_string_append(context->text, "its node side has not matched ");
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = node->allocations->pdata[i];
        if (other->waiting && ++n <= EXPLAIN_PODS_MAX)
            g_string_append_printf(context->text, "%s%s/%s", n > 1 ? ", " : "", other->ns,
                                   other->name);
    }
    if (n > EXPLAIN_PODS_MAX)
        g_string_append_printf(context->text, " and %d more", n - EXPLAIN_PODS_MAX);
    g_string_append(context->text, " yet");
}

static void append_pause(const struct rejects_pause *pause, void *data)
{
    const struct context *context = data;
    g_autofree char *told = rejects_tell(pause, context->question->turn.now_ms);

    if (pause->ns && !g_str_equal(pause->ns, context->question->ns))
        return;
    g_string_append_printf(context->text, "%s%s, for its kubelet has rejected %" G_GUINT64_FORMAT
                           " pods (%s)", context->text->len > 0 ? "; " : "", told, pause->total,
                           rejection_names[pause->last]);
}

static void tell_rejecting(const struct context *context)
{
    rejects_each(context->question->rejects, context->node->name, append_pause, (void *)context);
    if (context->text->len == 0)
        g_string_append(context->text, "has rejected a pod, and has as many on their way as may be "
                                       "lost");
}

static void tell_gang_room(const struct context *context)
{
    const struct feasibility *question = context->question;
    struct gang_row group;

    if (!gangs_kept_on(question->gangs, context->node->name, question->uid, question->priority,
                       &group))
        return;
    g_string_append_printf(
        context->text,
        "is kept for the group %s/%s, which waits for room, for %" G_GINT64_FORMAT " s at most",
        group.ns, group.name, MAX(group.room_until_ms - question->turn.now_ms + 999, 0) / 1000);
}

static void tell_none(const struct context *context)
{
    g_string_append(context->text, "takes the pod");
}

static void tell_unknown(const struct context *context)
{
    g_string_append(context->text, "does not exist, or not any more");
}

static void tell_no_share(const struct context *context)
{
    g_string_append(context->text, "shares no GPU");
}

static void (*const node_tellers[REASON_N])(const struct context *context) = {
    [REASON_NONE] = tell_none,
    [REASON_NODE_UNKNOWN] = tell_unknown,
    [REASON_NOT_GPU_SHARE] = tell_no_share,
    [REASON_OTHER_DIALECT] = tell_dialects,
    [REASON_CARD_COUNT] = tell_count,
    [REASON_CHANGING] = tell_withheld,
    [REASON_PLUGIN_SILENT] = tell_silence,
    [REASON_MODE_SWITCH_AHEAD] = tell_switch,
    [REASON_WITHHELD] = tell_withheld,
    [REASON_INSUFFICIENT_DEVICES] = tell_devices,
    [REASON_SHARED_MEMORY] = tell_shared_memory,
    [REASON_DEVICES_AT_ONCE] = tell_at_once,
    [REASON_OTHER_TENANT] = tell_node_tenant,
    [REASON_OTHER_CLASS] = tell_node_class,
    [REASON_CLASS_GROUP] = tell_class_group,
    [REASON_TERMS] = tell_node_terms,
    [REASON_ISOLATION] = tell_isolation,
    [REASON_OTHER_USE] = tell_node_use,
    [REASON_UNSEALED] = tell_unsealed,
    [REASON_QUOTA] = tell_quota,
    [REASON_RESOURCE_QUOTA] = tell_resource_quota,
    [REASON_QUOTA_MAX] = tell_elastic_quota,
    [REASON_QUOTA_LENT] = tell_elastic_quota,
    [REASON_EARLIER_POD] = tell_earlier,
    [REASON_REJECTING] = tell_rejecting,
    [REASON_GANG_ROOM] = tell_gang_room,
    [REASON_AWAITING_ASSIGNMENT] = tell_waiting,
    [REASON_AWAITING_TURN] = tell_waiting,
};

char *message_of_node(const struct feasibility *question, const struct node *node,
                const struct request *request, enum reason reason)
{
    const struct request *reading = reading_in_message(node, request);
    const struct context context = {
        .text = g_string_new(NULL),
        .question = question,
        .node = node,
        .request = reading ? reading : request,
        .ask = ask_in_message(node, reading ? reading : request),
    };

    if (node_tellers[reason])
        node_tellers[reason](&context);
    else if (!(reason == REASON_CARD_TOO_SMALL && tell_small_devices(&context)) &&
             (!card_tellers[reason] || node->n_cards == 0))
        g_string_append(context.text, reason_info(reason)->text);
    return g_string_free(context.text, context.text->len == 0);
}

const struct request *reading_in_message(const struct node *node, const struct request *request)
{
    while (request && !node_offers(node, request->dialect))
        request = request->alternative;
    return request;
}

const struct card_ask *ask_in_message(const struct node *node, const struct request *request)
{
    /* What a node side cannot serve at all may ask for nothing that can be said in cards. */
    static const struct card_ask nothing = {.count = 1};

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        int32_t n = 0;
        if (ask->device && placement_pool_reason(node, request, ask) != REASON_NONE)
            return ask;
        for (int32_t j = 0; j < node->n_cards && !ask->device; j++)
            n += placement_card_reason(node, request, ask, &node->cards[j]) == REASON_NONE;
        if (!ask->device && n < ask->count)
            return ask;
    }
    return request->n_asks > 0 ? &request->asks[request->n_asks - 1] : &nothing;
}
