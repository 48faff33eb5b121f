/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/marks/card_order.h"
#include "dialect/discovery.h"
#include "dialect/hami/hook.h"
#include "dialect/marks/node_marks.h"
#include "explain/explain.h"
#include "base/printable.h"
#include "explain/messages/message_context.h"
#include "policy/victims/may_end.h"
#include "quota/share_amounts.h"
#include "wire/switch_mark.h"
#include "core/reason/reasons.h"
#include "gate/quotas.h"

#include <string.h>

static void tell_unread(const struct message_context *context)
{
    if (context->node->distrusted)
        g_string_append(context->text, "; not all that it says of its GPUs can be understood, the "
                                       "log says why");
}

static void tell_dialects(const struct message_context *context)
{
    g_string_append(context->text, "shares its GPUs as ");
    for (int32_t i = 0; i < context->node->n_dialects; i++)
        printable_append(context->text, "%s%s", i ? ", " : "", context->node->dialects[i]->name);
    tell_unread(context);
}

static void tell_withheld(const struct message_context *context)
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
        printable_append(context->text, "has %d %s, gives %d: %s", pool->reported, ask->device,
                         pool->capacity, why[pool->withheld]);
}

static void tell_silence(const struct message_context *context)
{
    const struct heartbeat *heartbeat = &context->node->heartbeat;
    const int64_t silent_ns = context->question->admission.now_ns - heartbeat->at_ns;

    if (heartbeat->at_ns == HEARTBEAT_NONE_NS)
        g_string_append(context->text,
                        "its GPU plugin does not report any more, as its scheduler has found");
    else
        printable_append(context->text,
                         "its GPU plugin has not reported for %" G_GINT64_FORMAT
                         " min, or its clock is behind",
                         silent_ns / (60 * G_GINT64_CONSTANT(1000000000)));
}

static void tell_count(const struct message_context *context)
{
    const struct card_ask *ask = context->ask;
    const struct pool *pool = ask->device ? node_pool(context->node, ask->device) : NULL;

    if (ask->device)
        printable_append(context->text, "has %d %s, the pod wants %d", pool ? pool->capacity : 0,
                         ask->device, ask->count);
    else if (ask->count > context->node->n_cards)
        printable_append(context->text, "has %d card%s, the pod wants %d", context->node->n_cards,
                         context->node->n_cards == 1 ? "" : "s", ask->count);
    else
        g_string_append(context->text, "fewer of its cards are of use than the pod asks for");
}

static void tell_devices(const struct message_context *context)
{
    const struct card_ask *ask = context->ask;
    const struct pool *pool = ask->device ? node_pool(context->node, ask->device) : NULL;

    if (!pool)
        return;
    printable_append(context->text, "wants %d %s, %d free of %d", ask->count, ask->device,
                     (int)MAX(pool->capacity - pool->used, 0), pool->capacity);
    message_append_holders(context->text, context->node, NULL, pool);
}

/* Of devices by count: the cards of a node say it themselves. */
static bool tell_small_devices(const struct message_context *context)
{
    const struct terms *terms = context->request->terms;
    const struct pool *pool =
        context->ask->device ? node_pool(context->node, context->ask->device) : NULL;

    if (!pool || !terms || terms->memory_min <= pool->memory)
        return false;
    g_autofree char *wanted = bytes_text(terms->memory_min);
    g_autofree char *memory = bytes_text(pool->memory);
    printable_append(context->text, "wants %s, its %s have %s", wanted, pool->resource, memory);
    return true;
}

static void append_driver(GString *text, int32_t driver)
{
    const int32_t minor = driver / 100 % 1000, revision = driver % 100;

    printable_append(text, "%d", driver / DRIVER_VERSION(1, 0, 0));
    if (minor > 0 || revision > 0)
        printable_append(text, ".%d", minor);
    if (revision > 0)
        printable_append(text, ".%02d", revision);
}

static void tell_node_terms(const struct message_context *context)
{
    const struct terms *terms = context->request->terms;
    const struct node *node = context->node;
    const struct pool *pool = context->ask->device ? node_pool(node, context->ask->device) : NULL;

    if (terms && node->compute < terms->compute_min && node->compute == 0)
        g_string_append(context->text, "has no label " DISCOVERY_COMPUTE ", which the "
                                       "pod's gpuledger.io/gpu-compute-min needs");
    else if (terms && node->compute < terms->compute_min)
        printable_append(context->text, "has compute capability %d.%d, the pod wants %d.%d",
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
    } else if (pool && !pool_is_known(pool, terms))
        printable_append(context->text,
                         pool->doubt == DOUBT_UNSAID ? "has no labels that say what its %s are"
                                                     : "its labels contradict the number of its %s",
                         pool->resource);
    else if (context->ask->device)
        printable_append(context->text, "its %s are not what the pod accepts",
                         context->ask->device);
}

static void tell_isolation(const struct message_context *context)
{
    printable_append(context->text, "keeps holders of a card apart by '%s', the pod wants '%s'",
                     isolation_name(node_isolation(context->node, context->request)),
                     isolation_name(context->request->terms->isolation_min));
    if (context->request->terms->unlimited)
        g_string_append(context->text, ", and a container of it sets " HOOK_VARIABLE);
}

static void tell_node_use(const struct message_context *context)
{
    for (int32_t i = 0; i < context->node->n_cards && !context->ask->device; i++) {
        if (placement_card_reason(context->node, context->request, context->ask,
                                  &context->node->cards[i]) == REASON_OTHER_USE)
            return; /* a card tells */
    }
    printable_append(context->text, "its GPUs are in use by pods of another way of sharing");
    message_append_holders(context->text, context->node, NULL, NULL);
}

static void tell_numbers(const struct message_context *context)
{
    const struct allocation *other = card_order_stranger(context->node, context->request->dialect);

    if (other)
        printable_append(
            context->text,
            "%s/%s of %s is there, whose card's number is of another kind (NVML's, or of "
            "/dev/nvidiaN); the annotation " NODE_CARD_ORDER_KEY " would say how they map",
            other->ns, other->name, other->dialect->name);
}

static void tell_at_once(const struct message_context *context)
{
    const struct card_ask *ask = context->ask;
    const struct pool *pool = ask->device ? node_pool(context->node, ask->device) : NULL;

    if (pool)
        printable_append(context->text,
                         "wants %d %s, of which its plugin gives a container at most %d",
                         ask->count, ask->device, pool->at_once);
}

/* Cards tell by themselves. */
static void tell_node_tenant(const struct message_context *context)
{
    if (!context->ask->device)
        return;
    g_string_append(context->text, "pods of another namespace share its GPUs");
    message_append_holders(context->text, context->node, NULL,
                           node_pool(context->node, context->ask->device));
}

static void tell_node_class(const struct message_context *context)
{
    if (!context->ask->device)
        return;
    message_tell_company(context);
    message_append_holders(context->text, context->node, NULL,
                           node_pool(context->node, context->ask->device));
}

static void tell_class_group(const struct message_context *context)
{
    printable_append(context->text,
                     "pods of class '%s' come in groups, and it names none: give it one, such as "
                     "by the label scheduling.x-k8s.io/pod-group",
                     context->request->terms->work_class->name);
}

static void tell_annotations(const struct message_context *context)
{
    printable_append(
        context->text,
        "the pod has %" G_GINT64_FORMAT " bytes of annotations, and "
        "the API server lets it have %d: make those shorter that it came with, so that %d are "
        "left for its GPU's",
        context->request->annotations, ANNOTATIONS_BYTES_MAX, ANNOTATIONS_BYTES_LATER + 4096);
}

static double gpus(int64_t amount)
{
    return (double)share_thousandths(amount) / 1000;
}

static void tell_quota(const struct message_context *context)
{
    struct quota_count count;

    quota_room_count(quotas_gate_room(&context->question->gates), context->node, &count);
    if (!count.model)
        g_string_append(context->text, "the namespace has a quota, and no label of the node says "
                                       "of which model its GPUs are (--quota-model-label)");
    else if (!count.pooled)
        g_string_append(context->text, "the namespace may not use nodes of its pool "
                                       "(--quota-pool-label)");
    else if (!count.limited)
        printable_append(context->text, "the namespace may have no %s", count.model);
    else
        printable_append(context->text, "wants %g %s, the namespace has %g of %g",
                         gpus(count.wanted), count.model, gpus(count.used), gpus(count.limit));
}

static void tell_resource_quota(const struct message_context *context)
{
    struct resource_count count;

    if (!resource_room_allows(quota_room_resources(quotas_gate_room(&context->question->gates)),
                              context->node, NULL, &count))
        printable_append(context->text,
                         "wants %" G_GINT64_FORMAT " %s, ResourceQuota %s leaves %" G_GINT64_FORMAT
                         " of %" G_GINT64_FORMAT " (%s)",
                         count.wanted, count.unit, count.quota, MAX(count.limit - count.used, 0),
                         count.limit, count.key);
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

static void tell_elastic_quota(const struct message_context *context)
{
    const struct quota_room *quotas = quotas_gate_room(&context->question->gates);
    const struct elastic_room *room = quotas ? quota_room_elastic(quotas) : NULL;
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
    printable_append(context->text, "wants %s of %s, ", wants, count.key);
    if (count.quota)
        printable_append(context->text, "quota %s/%s", count.ns, count.quota);
    else
        g_string_append(context->text, "the namespace");
    printable_append(context->text, " has %s", used);
    if (reason == REASON_QUOTA_MAX) {
        g_autofree char *max = amount_text(count.key, count.max);
        printable_append(context->text, " of at most %s", max);
    } else if (reason == REASON_QUOTA_UNRECLAIMABLE) {
        const enum pod_tie tie = elastic_room_tie(room);
        printable_append(context->text, ", is sure of %s, and this pod could not be taken back: %s",
                         min,
                         tie == POD_TIE_BARE ? "no controller makes it again" : may_end_text(tie));
    } else {
        g_autofree char *lendable =
            amount_text(count.key, MAX(MIN(count.lendable, count.share), 0));
        printable_append(context->text, ", is sure of %s, and may have %s while others need theirs",
                         min, lendable);
        g_autofree char *borrowers = elastic_room_borrowers(room, count.key);
        if (borrowers)
            printable_append(context->text, "; %s", borrowers);
    }
}

/* "ml/a, ml/b and 2 more" of those that have not ended yet. */
static void append_ending(const struct message_context *context, const struct reservation *place)
{
    GString *text = context->text;
    int n = 0;

    for (guint i = 0; i < place->ending->len; i++) {
        const struct allocation *other =
            ledger_get(context->question->ledger, place->ending->pdata[i]);
        if (other && ++n <= EXPLAIN_PODS_MAX)
            printable_append(text, "%s%s/%s", n > 1 ? ", " : " and gets it after ", other->ns,
                             other->name);
    }
    if (n > EXPLAIN_PODS_MAX)
        printable_append(text, " and %d more", n - EXPLAIN_PODS_MAX);
}

/* "card 0, card 2", or "1 nvidia.com/gpu". */
static void append_place(GString *text, const struct reservation *place)
{
    for (uint32_t i = 0; i < place->held->n_shares; i++) {
        const struct share *share = &place->held->shares[i];
        g_string_append(text, i > 0 ? ", " : "");
        if (share->device)
            printable_append(text, "%d %s", share->devices, share->device);
        else
            printable_append(text, "card %d", share->card);
    }
}

static void tell_earlier(const struct message_context *context)
{
    const struct arrivals_older *older = &context->question->older;

    if (!older->place) {
        printable_append(context->text, "its room is left to %s, which came first", older->title);
        return;
    }
    g_string_append(context->text, "the pod does not fit beside what is kept there: ");
    append_place(context->text, older->place);
    printable_append(context->text, " for %s, which came first", older->title);
    append_ending(context, older->place);
}

/* Who may meet whom is kubelet's choice, so all are named that hold something. */
static void tell_shared_memory(const struct message_context *context)
{
    const struct terms *terms = context->request->terms;
    const struct pool *pool = node_pool(context->node, context->ask->device);
    g_autofree char *wanted = terms && terms->memory_wanted > 0 ? bytes_text(terms->memory_wanted)
                                                                : g_strdup("its equal part");
    g_autofree char *memory = bytes_text(pool ? pool->memory : 0);

    printable_append(context->text, "wants %s of a GPU of %s, which kubelet may let %d pods share",
                     wanted, memory, pool && pool->replicas > 0 ? pool->replicas : 0);
    for (guint i = 0, n = 0; i < context->node->allocations->len && n < EXPLAIN_PODS_MAX; i++) {
        const struct allocation *other = context->node->allocations->pdata[i];
        if (!other->terms || other->terms->memory_wanted == 0)
            continue;
        g_autofree char *its = bytes_text(other->terms->memory_wanted);
        printable_append(context->text, "%s%s/%s (%s)", n++ ? ", " : "; want as well: ", other->ns,
                         other->name, its);
    }
}

static void tell_waiting(const struct message_context *context)
{
    const struct node *node = context->node;
    int n = 0;

    g_string_append(context->text, "its node side has not matched ");
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = node->allocations->pdata[i];
        if (other->waiting && ++n <= EXPLAIN_PODS_MAX)
            printable_append(context->text, "%s%s/%s", n > 1 ? ", " : "", other->ns, other->name);
    }
    if (n > EXPLAIN_PODS_MAX)
        printable_append(context->text, " and %d more", n - EXPLAIN_PODS_MAX);
    g_string_append(context->text, " yet");
}

struct owners {
    const struct message_context *context;
    int n;
};

static bool append_owner(const struct stray *stray, void *data)
{
    struct owners *owners = data;
    const struct request *request = owners->context->request;

    if (stray->dialect == request->dialect &&
        (stray->match_amount == 0 || stray->match_amount == request->match_amount) &&
        ++owners->n <= EXPLAIN_PODS_MAX)
        printable_append(owners->context->text, "%s%s/%s", owners->n > 1 ? ", " : "", stray->ns,
                         stray->name);
    return true;
}

static void tell_promises(const struct message_context *context)
{
    struct owners owners = {context};

    g_string_append(context->text, "its GPU plugin may give the pod what was promised to ");
    strays_each(context->question->strays, context->node->name, append_owner, &owners);
    if (owners.n > EXPLAIN_PODS_MAX)
        printable_append(context->text, " and %d more", owners.n - EXPLAIN_PODS_MAX);
    g_string_append(context->text, ", which kubelet does not ask for any more");
}

static void tell_unkept_quota(const struct message_context *context)
{
    g_string_append(context->text,
                    "a quota of the namespace cannot be kept: 'gpuledger audit' and the log say "
                    "which");
}

static void tell_counting(const struct message_context *context)
{
    g_string_append(context->text,
                    "what pods hold is still being added up for the namespace's quotas: within a "
                    "second or so filter answers");
}

static void tell_none(const struct message_context *context)
{
    g_string_append(context->text, "takes the pod");
}

static void tell_unknown(const struct message_context *context)
{
    g_string_append(context->text, "does not exist, or not any more");
}

static void tell_no_share(const struct message_context *context)
{
    g_string_append(context->text, "shares no GPU");
    tell_unread(context);
}

static void tell_limit(const struct message_context *context)
{
    g_string_append(context->text, "has more GPUs than gpuledger serves");
    tell_unread(context);
}

static void (*const node_tellers[REASONS_MAX])(const struct message_context *context) = {
    [REASON_NONE] = tell_none,
    [REASON_NODE_UNKNOWN] = tell_unknown,
    [REASON_NOT_GPU_SHARE] = tell_no_share,
    [REASON_NODE_LIMIT] = tell_limit,
    [REASON_OTHER_DIALECT] = tell_dialects,
    [REASON_CARD_COUNT] = tell_count,
    [REASON_CHANGING] = tell_withheld,
    [REASON_PLUGIN_SILENT] = tell_silence,
    [REASON_WITHHELD] = tell_withheld,
    [REASON_INSUFFICIENT_DEVICES] = tell_devices,
    [REASON_SHARED_MEMORY] = tell_shared_memory,
    [REASON_DEVICES_AT_ONCE] = tell_at_once,
    [REASON_OTHER_TENANT] = tell_node_tenant,
    [REASON_OTHER_CLASS] = tell_node_class,
    [REASON_CLASS_GROUP] = tell_class_group,
    [REASON_ANNOTATIONS] = tell_annotations,
    [REASON_TERMS] = tell_node_terms,
    [REASON_ISOLATION] = tell_isolation,
    [REASON_OTHER_USE] = tell_node_use,
    [REASON_CARD_NUMBERS] = tell_numbers,
    [REASON_QUOTA] = tell_quota,
    [REASON_RESOURCE_QUOTA] = tell_resource_quota,
    [REASON_QUOTA_MAX] = tell_elastic_quota,
    [REASON_QUOTA_LENT] = tell_elastic_quota,
    [REASON_QUOTA_UNRECLAIMABLE] = tell_elastic_quota,
    [REASON_QUOTA_UNKEPT] = tell_unkept_quota,
    [REASON_QUOTA_COUNTING] = tell_counting,
    [REASON_EARLIER_POD] = tell_earlier,
    [REASON_AWAITING_ASSIGNMENT] = tell_waiting,
    [REASON_AWAITING_TURN] = tell_waiting,
    [REASON_PROMISE_STANDS] = tell_promises,
};

char *message_of_node(const struct feasibility *question, const struct node *node,
                      const struct request *request, enum reason reason)
{
    const struct request *reading = reading_in_message(node, request);
    const struct message_context context = {
        .text = g_string_new(NULL),
        .question = question,
        .node = node,
        .request = reading ? reading : request,
        .ask = ask_in_message(node, reading ? reading : request),
    };

    if (gates_message(&question->gates, reason, node, context.text))
        return g_string_free(context.text, FALSE);
    if (node_tellers[reason])
        node_tellers[reason](&context);
    else if (!(reason == REASON_CARD_TOO_SMALL && tell_small_devices(&context)) &&
             (!message_is_of_cards(reason) || node->n_cards == 0))
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
